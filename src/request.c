/*
 * request.c
 *		Asking the workers for something, when the transaction commits.
 *
 * For the rules see request.h.
 */
#include "postgres.h"

#include "access/xact.h"
#include "compat.h"
#include "fleet.h"
#include "miscadmin.h"
#include "registry.h"
#include "request.h"
#include "storage/latch.h"
#include "storage/proc.h"
#include "storage/procarray.h"

/* when more databases wait than fit, the launcher looks at all of them */
#define MAX_WAITING		64
#define MAX_HOLDS		64
/* when a transaction asks for more rotations, the rest is asked for one by one */
#define MAX_ROTATIONS	64

typedef struct RequestShared
{
	int32		launcher;		/* PGPROC number, -1: not running */
	bool		all;			/* every database wants a visit */
	bool		full;			/* a filter found no entry */
	int32		nwaiting;
	Oid			waiting[MAX_WAITING];
	struct
	{
		Oid			dboid;		/* InvalidOid: free */
		int			pid;
	}			holds[MAX_HOLDS];
} RequestShared;

static RequestShared *shared = NULL;

/* does this process hold a database? */
static bool holding = false;

/* this transaction's requests */
static bool visit_pending = false;
static int	nrotations = 0;
static struct
{
	Oid			relid;
	Oid			tgoid;			/* InvalidOid: all of the relation */
}			rotations[MAX_ROTATIONS];

static Size
area_size(void)
{
	return sizeof(RequestShared);
}

static void
area_attach(void *area, bool found)
{
	shared = area;
	if (!found)
	{
		memset(shared, 0, sizeof(RequestShared));
		shared->launcher = -1;
	}
}

static void
xact_callback(XactEvent event, void *arg)
{
	/* by now others see what the command did to the database */
	if (holding && (event == XACT_EVENT_COMMIT || event == XACT_EVENT_ABORT ||
					event == XACT_EVENT_PREPARE))
		bguard_request_release_holds();

	switch (event)
	{
		case XACT_EVENT_COMMIT:
			if (!visit_pending)
				return;
			visit_pending = false;
			for (int i = 0; i < nrotations; i++)
				bguard_registry_want_rotation(MyDatabaseId,
											  rotations[i].relid, rotations[i].tgoid);
			nrotations = 0;
			bguard_request_visit_now(MyDatabaseId);
			break;
		case XACT_EVENT_ABORT:
			/* poison is not taken back, so there may be something to build */
			if (visit_pending)
				bguard_request_wake();
			visit_pending = false;
			nrotations = 0;
			break;
		case XACT_EVENT_PREPARE:

			/*
			 * Who ends it knows nothing of its requests: leave them now.  The build
			 * waits for the transaction's locks; COMMIT PREPARED has it try at once.
			 */
			for (int i = 0; i < nrotations; i++)
				bguard_registry_want_rotation(MyDatabaseId,
											  rotations[i].relid, rotations[i].tgoid);
			if (visit_pending)
				bguard_request_wake();
			visit_pending = false;
			nrotations = 0;
			break;
		default:
			break;
	}
}

/*
 * bguard_request_init
 *		Ask for the shared list, register the callback.  From _PG_init, when
 *		preloading only.
 */
void
bguard_request_init(void)
{
	bguard_arena_add_area(area_size, area_attach);
	RegisterXactCallback(xact_callback, NULL);
}

/*
 * bguard_request_visit
 *		At commit, have a worker look at this database.
 */
void
bguard_request_visit(void)
{
	if (bguard_attached())
		visit_pending = true;
}

/*
 * bguard_request_rotation_of
 *		At commit, rotate one filter or all of the root relation.  Beyond what can
 *		be remembered, the request is made at once: it is then answered from the
 *		old rows perhaps, a superset.
 */
void
bguard_request_rotation_of(Oid root_relid, Oid root_tgoid)
{
	if (!bguard_attached())
		return;
	visit_pending = true;
	for (int i = 0; i < nrotations; i++)
	{
		if (rotations[i].relid == root_relid && rotations[i].tgoid == root_tgoid)
			return;
	}
	if (nrotations < MAX_ROTATIONS)
	{
		rotations[nrotations].relid = root_relid;
		rotations[nrotations].tgoid = root_tgoid;
		nrotations++;
	}
	else
		bguard_registry_want_rotation(MyDatabaseId, root_relid, root_tgoid);
}

/*
 * bguard_request_rotation
 *		All filters of the root relation.
 */
void
bguard_request_rotation(Oid root_relid)
{
	bguard_request_rotation_of(root_relid, InvalidOid);
}

/*
 * bguard_request_visit_now
 *		Put the database on the list and wake the launcher.
 */
void
bguard_request_visit_now(Oid dboid)
{
	if (!bguard_attached())
		return;

	bguard_registry_retry_soon(dboid);
	LWLockAcquire(bguard_lock, LW_EXCLUSIVE);
	for (int i = 0; i < shared->nwaiting; i++)
	{
		if (shared->waiting[i] == dboid)
			dboid = InvalidOid;
	}
	if (OidIsValid(dboid))
	{
		if (shared->nwaiting < MAX_WAITING)
			shared->waiting[shared->nwaiting++] = dboid;
		else
			shared->all = true;
	}
	LWLockRelease(bguard_lock);
	bguard_request_wake();
}

/*
 * bguard_request_wake
 *		Set the launcher's latch, if there is one.
 */
void
bguard_request_wake(void)
{
	int32		launcher = shared->launcher;

	/* a PGPROC that has changed hands is merely woken once for nothing */
	if (launcher >= 0)
		SetLatch(&ProcGlobal->allProcs[launcher].procLatch);
}

/*
 * bguard_request_note_full
 *		See request.h.
 */
void
bguard_request_note_full(void)
{
	LWLockAcquire(bguard_lock, LW_EXCLUSIVE);
	shared->full = true;
	LWLockRelease(bguard_lock);
}

/*
 * bguard_request_note_room
 *		See request.h.
 */
void
bguard_request_note_room(void)
{
	bool		wake;

	LWLockAcquire(bguard_lock, LW_EXCLUSIVE);
	wake = shared->full;
	shared->all |= shared->full;
	shared->full = false;
	LWLockRelease(bguard_lock);
	if (wake)
		bguard_request_wake();
}

/*
 * bguard_request_launcher
 *		The launcher says that it is there, or gone.
 */
void
bguard_request_launcher(bool running)
{
	LWLockAcquire(bguard_lock, LW_EXCLUSIVE);
	shared->launcher = running ? BGUARD_PROCNO(MyProc) : -1;
	LWLockRelease(bguard_lock);
}

/*
 * bguard_request_next
 *		Launcher: take one database off the list.
 */
bool
bguard_request_next(Oid *dboid, bool *all)
{
	bool		found;

	LWLockAcquire(bguard_lock, LW_EXCLUSIVE);
	*all = shared->all;
	shared->all = false;
	found = shared->nwaiting > 0;
	if (found)
		*dboid = shared->waiting[--shared->nwaiting];
	LWLockRelease(bguard_lock);
	return found;
}

/*
 * bguard_request_hold
 *		Keep workers out of the database until this process releases, its
 *		transaction ends, or it is gone.
 *		When the table is full nothing is held: core's own wait of five seconds
 *		is then all there is.
 */
void
bguard_request_hold(Oid dboid)
{
	if (!bguard_attached() || !OidIsValid(dboid))
		return;

	LWLockAcquire(bguard_lock, LW_EXCLUSIVE);
	for (int i = 0; i < MAX_HOLDS; i++)
	{
		if (!OidIsValid(shared->holds[i].dboid) ||
			shared->holds[i].pid == MyProcPid ||
			BackendPidGetProc(shared->holds[i].pid) == NULL)
		{
			shared->holds[i].dboid = dboid;
			shared->holds[i].pid = MyProcPid;
			holding = true;
			break;
		}
	}
	LWLockRelease(bguard_lock);
	bguard_fleet_terminate(dboid);
}

/*
 * bguard_request_release_holds
 *		Let workers in again, and have one look.
 */
void
bguard_request_release_holds(void)
{
	Oid			released = InvalidOid;

	if (!bguard_attached())
		return;

	LWLockAcquire(bguard_lock, LW_EXCLUSIVE);
	for (int i = 0; i < MAX_HOLDS; i++)
	{
		if (OidIsValid(shared->holds[i].dboid) &&
			shared->holds[i].pid == MyProcPid)
		{
			released = shared->holds[i].dboid;
			shared->holds[i].dboid = InvalidOid;
		}
	}
	holding = false;
	LWLockRelease(bguard_lock);
	if (OidIsValid(released))
		bguard_request_visit_now(released);
}

/*
 * bguard_request_held
 *		Does a living process hold the database?
 */
bool
bguard_request_held(Oid dboid)
{
	bool		held = false;

	LWLockAcquire(bguard_lock, LW_SHARED);
	for (int i = 0; i < MAX_HOLDS && !held; i++)
		held = shared->holds[i].dboid == dboid &&
			BackendPidGetProc(shared->holds[i].pid) != NULL;
	LWLockRelease(bguard_lock);
	return held;
}
