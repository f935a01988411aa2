/*
 * bloomguard.c
 *		Module entry: settings, shared memory, hooks, launcher.
 *
 * Without shared_preload_libraries only the settings are defined: the SQL
 * functions then find no shared memory, adds do nothing, probes answer "maybe".
 *
 * A process may come to a second copy of the library: by another path, of a file
 * that is another one by now ("dynamic_library_path", a full path in
 * "shared_preload_libraries").  Its settings are defined already and the memory
 * is not its own.  It answers as one that was not preloaded, but its trigger
 * hands each row to the first copy: others go on asking that copy's filters.
 */
#include "postgres.h"

#include "arena.h"
#include "ddl.h"
#include "fleet.h"
#include "fmgr.h"
#include "gate.h"
#include "guc.h"
#include "inflight.h"
#include "miscadmin.h"
#include "registry.h"
#include "request.h"
#include "stats.h"
#include "trigger.h"
#include "worker.h"

PG_MODULE_MAGIC;

PGDLLEXPORT void _PG_init(void);

void
_PG_init(void)
{
	bool		preloading = process_shared_preload_libraries_in_progress;
	void	  **first = find_rendezvous_variable("bloomguard_maintain");

	if (*first != NULL)
	{
		/* where symbols of one name are shared, there is no elsewhere */
		if (*first != &bguard_maintain_here)
			bguard_maintain_elsewhere = *(BGuardTriggerFunction *) *first;
		ereport(LOG,
				(errmsg("another copy of the library bloomguard is loaded already, this one stays idle"),
				 errhint("Remove one of the files, or let \"%s\" and the functions of the extension name the same.",
						 "shared_preload_libraries")));
		return;
	}
	*first = &bguard_maintain_here;

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
	bguard_gate_init();
	bguard_launcher_init();
}
