/*
 * launcher.c
 *		The static launcher: decides which database gets a worker, and when.
 *
 * It connects to no database (shared catalogs only), so that it is in nobody's
 * way, and serves interrupts in its loop.  A database gets a worker when
 *		- it has not been looked at since the launcher started, or was created
 *		  since (also as a copy of one with tracked tables);
 *		- a transaction in it asked for a visit;
 *		- an entry of it is due: poisoned, never built, a rotation wanted.
 * Workers are not restarted by the postmaster: back-off is decided here.
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/pg_database.h"
#include "fleet.h"
#include "guc.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "registry.h"
#include "request.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"
#include "worker.h"

#define RESTART_SECONDS		5
#define FIRST_BACKOFF_MS	1000
#define MAX_BACKOFF_MS		300000
#define MIN_NAP_MS			10
/* no worker could be registered */
#define CROWDED_NAP_MS		1000

typedef struct Database
{
	Oid			dboid;
	bool		visit;			/* wants a worker that looks at the catalog */
	bool		seen;			/* by the latest look at pg_database */
	TimestampTz retry_at;		/* no worker before then */
	int			failures;		/* visits in a row that failed */
} Database;

static List *databases = NIL;
static BackgroundWorkerHandle *handles[BGUARD_MAX_WORKERS];
static BGuardOwner places[BGUARD_MAX_WORKERS];

static Database *
find_database(Oid dboid)
{
	ListCell   *lc;

	foreach(lc, databases)
	{
		Database   *db = lfirst(lc);

		if (db->dboid == dboid)
			return db;
	}
	return NULL;
}

/* learn which databases can be connected to; new ones want a visit */
static void
look_at_databases(MemoryContext lasting, bool visit_all)
{
	Relation	rel;
	TableScanDesc scan;
	HeapTuple	tuple;
	ListCell   *lc;

	foreach(lc, databases)
		((Database *) lfirst(lc))->seen = false;

	StartTransactionCommand();
	(void) GetTransactionSnapshot();
	rel = table_open(DatabaseRelationId, AccessShareLock);
	scan = table_beginscan_catalog(rel, 0, NULL);
	while (HeapTupleIsValid(tuple = heap_getnext(scan, ForwardScanDirection)))
	{
		Form_pg_database form = (Form_pg_database) GETSTRUCT(tuple);
		Database   *db;

		/* a negative limit other than -1 marks a half-dropped database */
		if (!form->datallowconn || form->datconnlimit < -1)
			continue;
		db = find_database(form->oid);
		if (db == NULL)
		{
			MemoryContext old = MemoryContextSwitchTo(lasting);

			db = palloc0(sizeof(Database));
			db->dboid = form->oid;
			db->visit = true;
			databases = lappend(databases, db);
			MemoryContextSwitchTo(old);
		}
		db->seen = true;
		db->visit |= visit_all;
	}
	table_endscan(scan);
	table_close(rel, AccessShareLock);
	CommitTransactionCommand();

	foreach(lc, databases)
	{
		Database   *db = lfirst(lc);

		if (!db->seen)
		{
			databases = foreach_delete_current(databases, lc);
			pfree(db);
		}
	}
}

/* entries of databases that are gone, or cannot be connected to any more */
static void
retire_lost(void)
{
	for (uint32 i = 0; i < bguard_control->max_filters; i++)
	{
		BGuardEntryKey key = bguard_registry_entry(i)->key;

		if (OidIsValid(key.dboid) && find_database(key.dboid) == NULL)
		{
			bguard_registry_retire((int) i, &key);
			bguard_request_note_room();
		}
	}
}

/*
 * Look after workers that have left, or never came.  true: one of them did not
 * get far, so its database may be gone.
 */
static bool
reap(void)
{
	bool		failed = false;

	for (int i = 0; i < BGUARD_MAX_WORKERS; i++)
	{
		BGuardWorker *w = bguard_fleet_worker(i);
		Database   *db;
		pid_t		pid;

		if (handles[i] == NULL)
		{
			/* of a launcher before this one */
			BGuardOwner orphan = {(uint32) i, w->start};

			if (w->state == BGUARD_WORKER_DONE)
				bguard_fleet_forget(orphan);
			continue;
		}
		if (GetBackgroundWorkerPid(handles[i], &pid) != BGWH_STOPPED)
			continue;

		db = find_database(w->dboid);
		if (db != NULL && w->discovered)
			db->failures = 0;
		else if (db != NULL)
		{
			int64		delay = Min((int64) FIRST_BACKOFF_MS << Min(db->failures, 10),
									MAX_BACKOFF_MS);

			failed = true;
			db->visit = true;
			db->failures++;
			db->retry_at = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), delay);
		}
		bguard_fleet_forget(places[i]);
		pfree(handles[i]);
		handles[i] = NULL;
	}
	return failed;
}

/* false: there is no room for another worker in the server */
static bool
start_worker(Oid dboid)
{
	static bool complained = false;
	BackgroundWorker worker = {0};
	BackgroundWorkerHandle *handle;
	BGuardOwner owner;

	if (!bguard_fleet_reserve(dboid, &owner))
		return false;

	worker.bgw_flags = BGWORKER_SHMEM_ACCESS |
		BGWORKER_BACKEND_DATABASE_CONNECTION;
	worker.bgw_start_time = BgWorkerStart_RecoveryFinished;
	worker.bgw_restart_time = BGW_NEVER_RESTART;
	strlcpy(worker.bgw_library_name, "bloomguard", BGW_MAXLEN);
	strlcpy(worker.bgw_function_name, "bguard_worker_main", BGW_MAXLEN);
	strlcpy(worker.bgw_name, "bloomguard worker", BGW_MAXLEN);
	strlcpy(worker.bgw_type, "bloomguard worker", BGW_MAXLEN);
	worker.bgw_main_arg = ObjectIdGetDatum(dboid);
	worker.bgw_notify_pid = MyProcPid;
	memcpy(worker.bgw_extra, &owner, sizeof(owner));

	if (!RegisterDynamicBackgroundWorker(&worker, &handle))
	{
		bguard_fleet_forget(owner);
		if (!complained)
			ereport(LOG,
					(errmsg("could not start a bloomguard worker: out of background worker slots"),
					 errhint("Raise \"%s\"; filters answer \"maybe\" until they are built.",
							 "max_worker_processes")));
		complained = true;
		return false;
	}
	complained = false;
	handles[owner.worker] = handle;
	places[owner.worker] = owner;
	return true;
}

/* how many workers are there, in all or in one database? */
static int
count_workers(Oid dboid)
{
	int			n = 0;

	for (int i = 0; i < BGUARD_MAX_WORKERS; i++)
	{
		BGuardWorker *w = bguard_fleet_worker(i);

		if (w->state == BGUARD_WORKER_STARTING || w->state == BGUARD_WORKER_RUNNING)
			n += dboid == InvalidOid || w->dboid == dboid;
	}
	return n;
}

/*
 * Entries of the database that want a builder now.  *soonest: when the next one
 * will, if it is before the time given.
 */
static int
count_due(Oid dboid, TimestampTz now, TimestampTz *soonest)
{
	int			n = 0;

	LWLockAcquire(bguard_lock, LW_SHARED);
	for (uint32 i = 0; i < bguard_control->max_filters; i++)
	{
		BGuardEntry *e = bguard_registry_entry(i);
		TimestampTz at;

		if (e->key.dboid != dboid)
			continue;
		if (bguard_registry_due(e, now))
		{
			n++;
			continue;
		}
		at = pg_atomic_read_u32(&e->poison) != e->verdict_poison ?
			e->next_build : Max(e->next_build, e->retry_at);
		if (at > now && at < *soonest && bguard_registry_due(e, at))
			*soonest = at;
	}
	LWLockRelease(bguard_lock);
	return n;
}

/* give workers to the databases that need one; returns the nap's length, ms */
static long
dispatch(void)
{
	TimestampTz now = GetCurrentTimestamp();
	TimestampTz soonest = TimestampTzPlusMilliseconds(now, (int64) bguard_naptime * 1000);
	int			workers = count_workers(InvalidOid);
	ListCell   *lc;

	foreach(lc, databases)
	{
		Database   *db = lfirst(lc);
		int			due = count_due(db->dboid, now, &soonest);
		int			here = count_workers(db->dboid);
		bool		visit = db->visit;

		if ((visit || due > here) && now < db->retry_at)
		{
			soonest = Min(soonest, db->retry_at);
			continue;
		}
		/* a worker that is there already takes one entry after the other */
		while ((visit || due > here) && workers < bguard_max_workers)
		{
			if (bguard_request_held(db->dboid))
				break;
			if (!start_worker(db->dboid))
				return CROWDED_NAP_MS;
			db->visit = visit = false;
			workers++;
			here++;
		}
	}
	return Max(TimestampDifferenceMilliseconds(now, soonest), MIN_NAP_MS);
}

static void
launcher_exit(int code, Datum arg)
{
	bguard_request_launcher(false);
}

/*
 * bguard_launcher_main
 *		Runs until the server stops.
 */
void
bguard_launcher_main(Datum arg)
{
	MemoryContext lasting;
	TimestampTz looked_at = 0;

	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
	BackgroundWorkerUnblockSignals();

	if (!bguard_attached())
		proc_exit(0);

	BackgroundWorkerInitializeConnection(NULL, NULL, 0);
	lasting = AllocSetContextCreate(TopMemoryContext, "bloomguard launcher",
									ALLOCSET_DEFAULT_SIZES);
	MemoryContextSwitchTo(lasting);

	before_shmem_exit(launcher_exit, (Datum) 0);
	bguard_request_launcher(true);

	/* a worker that an earlier launcher asked for, and that did not come yet */
	for (int i = 0; i < BGUARD_MAX_WORKERS; i++)
	{
		BGuardWorker *w = bguard_fleet_worker(i);
		BGuardOwner orphan = {(uint32) i, w->start};

		if (w->state == BGUARD_WORKER_STARTING)
			bguard_fleet_forget(orphan);
	}

	for (;;)
	{
		Oid			dboid;
		bool		all;
		bool		any_all = false;
		long		nap;

		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
		if (ShutdownRequestPending)
			proc_exit(1);
		if (ConfigReloadPending)
		{
			ConfigReloadPending = false;
			ProcessConfigFile(PGC_SIGHUP);
		}

		if (reap())
			looked_at = 0;
		for (;;)
		{
			bool		found = bguard_request_next(&dboid, &all);
			Database   *db;

			any_all |= all;
			if (!found)
				break;
			db = find_database(dboid);
			if (db != NULL)
			{
				db->visit = true;
				db->retry_at = 0;
			}
			/* the request may come of a database created or dropped */
			looked_at = 0;
		}
		if (any_all || looked_at == 0 ||
			TimestampDifferenceExceeds(looked_at, GetCurrentTimestamp(),
									   bguard_naptime * 1000))
		{
			look_at_databases(lasting, any_all);
			MemoryContextSwitchTo(lasting);
			retire_lost();
			looked_at = GetCurrentTimestamp();
		}
		nap = dispatch();

		pgstat_report_activity(STATE_IDLE, NULL);
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 nap, PG_WAIT_EXTENSION);
	}
}

/*
 * bguard_launcher_init
 *		Register the launcher.  Not under pg_upgrade: workers would connect to
 *		databases that it copies and drops.
 */
void
bguard_launcher_init(void)
{
	BackgroundWorker worker = {0};

	if (IsBinaryUpgrade)
		return;

	worker.bgw_flags = BGWORKER_SHMEM_ACCESS |
		BGWORKER_BACKEND_DATABASE_CONNECTION;
	worker.bgw_start_time = BgWorkerStart_RecoveryFinished;
	worker.bgw_restart_time = RESTART_SECONDS;
	strlcpy(worker.bgw_library_name, "bloomguard", BGW_MAXLEN);
	strlcpy(worker.bgw_function_name, "bguard_launcher_main", BGW_MAXLEN);
	strlcpy(worker.bgw_name, "bloomguard launcher", BGW_MAXLEN);
	strlcpy(worker.bgw_type, "bloomguard launcher", BGW_MAXLEN);
	RegisterBackgroundWorker(&worker);
}
