/*
 * guc.c
 *		Every setting of bloomguard.
 *
 * Settings that size shared memory exist only when the library is preloaded:
 * PGC_POSTMASTER settings cannot be defined later, and would mean nothing.
 */
#include "postgres.h"

#include <limits.h>

#include "core/sizing.h"
#include "guc.h"
#include "miscadmin.h"
#include "utils/guc.h"
#include "utils/plancache.h"

int			bguard_shared_memory_mb = 64;
int			bguard_max_filters = 128;
bool		bguard_enabled = true;
bool		bguard_gate = false;
double		bguard_false_positive_rate = 0.01;
int			bguard_max_workers = 2;
int			bguard_naptime = 10;
double		bguard_cost_delay = 0;
int			bguard_cost_limit = 200;

/* plans of before have gates, or have none */
static void
assign_gate(bool newval, void *extra)
{
	if (newval != bguard_gate && IsUnderPostmaster)
		ResetPlanCache();
}

/*
 * bguard_guc_init
 *		Define the settings and reserve the prefix.  Called once, from _PG_init.
 */
void
bguard_guc_init(bool preloading)
{
	DefineCustomBoolVariable("bloomguard.enabled",
							 "Lets probes answer \"absent\".",
							 "When off, every probe of the session answers \"maybe\". Filters are kept complete all the same.",
							 &bguard_enabled,
							 true,
							 PGC_USERSET, 0,
							 NULL, NULL, NULL);

	DefineCustomBoolVariable("bloomguard.gate",
							 "Guards ordinary queries that look up a tracked key.",
							 "A scan for keys that are definitely absent is not started.",
							 &bguard_gate,
							 false,
							 PGC_USERSET, GUC_EXPLAIN,
							 NULL, assign_gate, NULL);

	DefineCustomRealVariable("bloomguard.false_positive_rate",
							 "Target false-positive rate of filters that were tracked without one.",
							 "Takes effect at the next build of such a filter.",
							 &bguard_false_positive_rate,
							 0.01, BGUARD_MIN_RATE, BGUARD_MAX_RATE,
							 PGC_SIGHUP, 0,
							 NULL, NULL, NULL);

	DefineCustomIntVariable("bloomguard.max_workers",
							"Maximum number of workers that build filters at the same time.",
							NULL,
							&bguard_max_workers,
							2, 1, BGUARD_MAX_WORKERS,
							PGC_SIGHUP, 0,
							NULL, NULL, NULL);

	DefineCustomIntVariable("bloomguard.naptime",
							"Time between two looks of the launcher at all databases.",
							"Changes made by SQL wake it at once.",
							&bguard_naptime,
							10, 1, INT_MAX / 1000,
							PGC_SIGHUP, GUC_UNIT_S,
							NULL, NULL, NULL);

	DefineCustomRealVariable("bloomguard.cost_delay",
							 "Time a build sleeps whenever its cost limit is reached.",
							 "0 lets builds run at full speed.",
							 &bguard_cost_delay,
							 0, 0, 100,
							 PGC_SIGHUP, GUC_UNIT_MS,
							 NULL, NULL, NULL);

	DefineCustomIntVariable("bloomguard.cost_limit",
							"Cost that a build may run up before it sleeps.",
							"Counted as for VACUUM.",
							&bguard_cost_limit,
							200, 1, 10000,
							PGC_SIGHUP, 0,
							NULL, NULL, NULL);

	if (preloading)
	{
		/* a span names its first line in 32 bits: 256 GB of lines */
		DefineCustomIntVariable("bloomguard.shared_memory",
								"Shared memory for the bits of all filters.",
								"A rotation needs room for the old and the new filter: allow twice the largest one.",
								&bguard_shared_memory_mb,
								64, 1, 256 * 1024 - 1,
								PGC_POSTMASTER, GUC_UNIT_MB,
								NULL, NULL, NULL);

		DefineCustomIntVariable("bloomguard.max_filters",
								"Maximum number of filters in all databases together.",
								NULL,
								&bguard_max_filters,
								128, 1, 20000,
								PGC_POSTMASTER, 0,
								NULL, NULL, NULL);

		/* otherwise settings of a preloaded server would be warned about */
		MarkGUCPrefixReserved("bloomguard");
	}
}
