/*
 * fleet.c
 *		The table of workers; see fleet.h for its life and locking.
 */
#include "postgres.h"

#include <signal.h>

#include "fleet.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "utils/timestamp.h"

static BGuardWorker *workers = NULL;
static BGuardOwner my_place;

static Size
area_size(void)
{
	return mul_size(BGUARD_MAX_WORKERS, sizeof(BGuardWorker));
}

static void
area_attach(void *area, bool found)
{
	workers = area;
	if (!found)
	{
		memset(workers, 0, area_size());
		for (int i = 0; i < BGUARD_MAX_WORKERS; i++)
		{
			pg_atomic_init_u32(&workers[i].phase, BGUARD_PHASE_IDLE);
			pg_atomic_init_u64(&workers[i].blocks_total, 0);
			pg_atomic_init_u64(&workers[i].blocks_done, 0);
			pg_atomic_init_u64(&workers[i].tuples_done, 0);
		}
	}
}

/*
 * bguard_fleet_init
 *		Ask for the table.  From _PG_init, when preloading only.
 */
void
bguard_fleet_init(void)
{
	bguard_arena_add_area(area_size, area_attach);
}

/*
 * bguard_fleet_worker
 *		Place 0 .. BGUARD_MAX_WORKERS - 1.
 */
BGuardWorker *
bguard_fleet_worker(uint32 place)
{
	Assert(place < BGUARD_MAX_WORKERS);
	return &workers[place];
}

/*
 * bguard_fleet_reserve
 *		Find a free place and mark it STARTING for a worker of the database.
 */
bool
bguard_fleet_reserve(Oid dboid, BGuardOwner *owner)
{
	bool		done = false;

	LWLockAcquire(bguard_lock, LW_EXCLUSIVE);
	for (uint32 i = 0; i < BGUARD_MAX_WORKERS && !done; i++)
	{
		BGuardWorker *w = &workers[i];

		if (w->state != BGUARD_WORKER_FREE)
			continue;
		w->state = BGUARD_WORKER_STARTING;
		if (++w->start == 0)
			w->start = 1;
		w->dboid = dboid;
		w->pid = 0;
		w->discovered = false;
		owner->worker = i;
		owner->start = w->start;
		done = true;
	}
	LWLockRelease(bguard_lock);
	return done;
}

/*
 * bguard_fleet_forget
 *		Free the place, if it is still this owner's.  A worker that comes late
 *		finds another state or start counter and exits.
 */
void
bguard_fleet_forget(BGuardOwner owner)
{
	BGuardWorker *w = &workers[owner.worker];

	LWLockAcquire(bguard_lock, LW_EXCLUSIVE);
	if (w->start == owner.start)
	{
		w->state = BGUARD_WORKER_FREE;
		w->root_relid = InvalidOid;
	}
	LWLockRelease(bguard_lock);
}

/*
 * Exit callback: the place is done.  LWLocks have been released by then, also
 * after an error.
 */
static void
leave(int code, Datum arg)
{
	BGuardWorker *w = &workers[my_place.worker];

	LWLockAcquire(bguard_lock, LW_EXCLUSIVE);
	if (w->start == my_place.start)
	{
		w->state = BGUARD_WORKER_DONE;
		w->root_relid = InvalidOid;
	}
	LWLockRelease(bguard_lock);
}

/*
 * bguard_fleet_enter
 *		Called by a worker first of all.
 */
bool
bguard_fleet_enter(BGuardOwner owner)
{
	BGuardWorker *w = &workers[owner.worker];
	bool		mine;

	LWLockAcquire(bguard_lock, LW_EXCLUSIVE);
	mine = w->start == owner.start && w->state == BGUARD_WORKER_STARTING;
	if (mine)
	{
		w->state = BGUARD_WORKER_RUNNING;
		w->pid = MyProcPid;
	}
	LWLockRelease(bguard_lock);

	if (mine)
	{
		my_place = owner;
		before_shmem_exit(leave, (Datum) 0);
	}
	return mine;
}

/*
 * bguard_fleet_discovered
 *		Tell the launcher that this database needs no second visit.
 */
void
bguard_fleet_discovered(BGuardOwner owner)
{
	LWLockAcquire(bguard_lock, LW_EXCLUSIVE);
	if (workers[owner.worker].start == owner.start)
		workers[owner.worker].discovered = true;
	LWLockRelease(bguard_lock);
}

/*
 * bguard_fleet_alive
 *		bguard_lock is held.  A worker that dies without its exit callback takes
 *		shared memory with it, so the table can be trusted.
 */
bool
bguard_fleet_alive(BGuardOwner owner)
{
	return owner.start != 0 &&
		workers[owner.worker].start == owner.start &&
		workers[owner.worker].state == BGUARD_WORKER_RUNNING;
}

/*
 * bguard_fleet_terminate
 *		End the workers of a database.  One that is still starting sees the hold
 *		that came before this call (src/request.c).
 */
void
bguard_fleet_terminate(Oid dboid)
{
	LWLockAcquire(bguard_lock, LW_SHARED);
	for (int i = 0; i < BGUARD_MAX_WORKERS; i++)
	{
		if (workers[i].state == BGUARD_WORKER_RUNNING &&
			workers[i].dboid == dboid)
			kill(workers[i].pid, SIGTERM);
	}
	LWLockRelease(bguard_lock);
}

/*
 * bguard_fleet_phase_name
 *		As shown by the progress view.
 */
const char *
bguard_fleet_phase_name(BGuardPhase phase)
{
	switch (phase)
	{
		case BGUARD_PHASE_IDLE:
			return "idle";
		case BGUARD_PHASE_CHECKING:
			return "checking definition";
		case BGUARD_PHASE_CLEARING:
			return "clearing bits";
		case BGUARD_PHASE_SCANNING:
			return "scanning table";
		case BGUARD_PHASE_VALIDATING:
			return "validating";
	}
	return "unknown";
}
