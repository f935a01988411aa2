/*
 * fleet.h
 *		The table of workers: who is running, in which database, doing what.
 *
 * A place in the table is FREE, then STARTING (launcher reserved it), RUNNING
 * (the worker is there), DONE (the worker left, the launcher has not looked yet),
 * FREE.  A worker's start counter tells it from earlier holders of its place, so
 * { place, start } names one build owner for ever.
 *
 * LOCKING: state, start, dboid, pid and discovered change under bguard_lock,
 * exclusively.  Progress fields are written by the worker alone and read by
 * anybody without a lock: each is read whole, together they may be of different
 * moments, which a progress view can bear.
 */
#ifndef BGUARD_FLEET_H
#define BGUARD_FLEET_H

#include "arena.h"
#include "guc.h"

typedef enum BGuardWorkerState
{
	BGUARD_WORKER_FREE,
	BGUARD_WORKER_STARTING,
	BGUARD_WORKER_RUNNING,
	BGUARD_WORKER_DONE
} BGuardWorkerState;

typedef enum BGuardPhase
{
	BGUARD_PHASE_IDLE,
	BGUARD_PHASE_CHECKING,		/* definition, under short locks */
	BGUARD_PHASE_CLEARING,		/* zeroing the new bits */
	BGUARD_PHASE_SCANNING,
	BGUARD_PHASE_VALIDATING
} BGuardPhase;

typedef struct BGuardWorker
{
	BGuardWorkerState state;
	uint32		start;			/* never 0 once used */
	Oid			dboid;
	int			pid;
	bool		discovered;		/* has read all definitions of its database */

	/* progress */
	Oid			root_relid;		/* InvalidOid: no build is running */
	Oid			root_tgoid;
	Oid			relid;			/* being scanned */
	pg_atomic_uint32 phase;
	pg_atomic_uint64 blocks_total;
	pg_atomic_uint64 blocks_done;
	pg_atomic_uint64 tuples_done;
	TimestampTz started_at;
} BGuardWorker;

extern void bguard_fleet_init(void);

extern BGuardWorker *bguard_fleet_worker(uint32 place);

/* launcher: reserve a place for a worker of this database; false when full */
extern bool bguard_fleet_reserve(Oid dboid, BGuardOwner *owner);
/* launcher: the worker never came, or has left and was looked at */
extern void bguard_fleet_forget(BGuardOwner owner);
/* worker: take the place; false when it is no longer ours.  Leaves at exit */
extern bool bguard_fleet_enter(BGuardOwner owner);
/* worker: every definition of the database has been read */
extern void bguard_fleet_discovered(BGuardOwner owner);

/* is this build still running?  bguard_lock held */
extern bool bguard_fleet_alive(BGuardOwner owner);
/* SIGTERM to the workers of a database; takes bguard_lock */
extern void bguard_fleet_terminate(Oid dboid);

extern const char *bguard_fleet_phase_name(BGuardPhase phase);

#endif							/* BGUARD_FLEET_H */
