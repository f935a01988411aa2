/*
 * bloomguard.c
 *		Module entry: settings, shared memory, hooks, launcher.
 *
 * Without shared_preload_libraries only the settings are defined: the SQL
 * functions then find no shared memory, adds do nothing, probes answer "maybe".
 */
#include "postgres.h"

#include "arena.h"
#include "ddl.h"
#include "fleet.h"
#include "fmgr.h"
#include "guc.h"
#include "inflight.h"
#include "miscadmin.h"
#include "registry.h"
#include "request.h"
#include "stats.h"
#include "worker.h"

PG_MODULE_MAGIC;

PGDLLEXPORT void _PG_init(void);

void
_PG_init(void)
{
	bool		preloading = process_shared_preload_libraries_in_progress;

	bguard_guc_init(preloading);
	if (!preloading)
		return;

	bguard_arena_init();
	bguard_registry_init();
	bguard_fleet_init();
	bguard_request_init();
	bguard_stats_init();
	bguard_inflight_init();
	bguard_ddl_init();
	bguard_launcher_init();
}
