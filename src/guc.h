/*
 * guc.h
 *		Every setting of bloomguard.
 */
#ifndef BGUARD_GUC_H
#define BGUARD_GUC_H

/* the most that bloomguard.max_workers can be set to: sizes the worker table */
#define BGUARD_MAX_WORKERS	64

extern int	bguard_shared_memory_mb;	/* bloomguard.shared_memory */
extern int	bguard_max_filters;			/* bloomguard.max_filters */
extern bool bguard_enabled;				/* bloomguard.enabled */
extern bool bguard_gate;		/* bloomguard.gate */
extern double bguard_false_positive_rate;	/* bloomguard.false_positive_rate */
extern int	bguard_max_workers;			/* bloomguard.max_workers */
extern int	bguard_naptime;				/* bloomguard.naptime, seconds */
extern double bguard_cost_delay;		/* bloomguard.cost_delay, milliseconds */
extern int	bguard_cost_limit;			/* bloomguard.cost_limit */

/* preloading: the library is being loaded by shared_preload_libraries */
extern void bguard_guc_init(bool preloading);

#endif							/* BGUARD_GUC_H */
