/*
 * worker.c
 *		A worker of one database: find the filters, build what is due, leave.
 *
 * Which filters there are is read from the catalog, never believed from a
 * message.  The worker stays only while there is something to do, so that DROP
 * DATABASE and kin find nobody; it serves interrupts everywhere and dies at
 * SIGTERM, which a command that wants the database to itself sends (request.h).
 */
#include "postgres.h"

#include "access/xact.h"
#include "build.h"
#include "definition.h"
#include "fleet.h"
#include "guc.h"
#include "inflight.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "registry.h"
#include "request.h"
#include "storage/ipc.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"
#include "worker.h"

/*
 * Settings of the database or the role must not change what a build sees, nor
 * stop it.  The two that make core skip damaged pages would lose keys silently.
 */
static void
neutral_settings(void)
{
	static const char *const settings[][2] = {
		{"search_path", ""},
		{"default_transaction_isolation", "read committed"},
		{"default_transaction_read_only", "off"},
		{"default_transaction_deferrable", "off"},
		{"statement_timeout", "0"},
		{"lock_timeout", "0"},
		{"idle_in_transaction_session_timeout", "0"},
		{"session_replication_role", "origin"},
		{"row_security", "on"},
		{"zero_damaged_pages", "off"},
		{"ignore_checksum_failure", "off"},
		{"synchronous_commit", "local"},
	};

	for (int i = 0; i < lengthof(settings); i++)
		SetConfigOption(settings[i][0], settings[i][1], PGC_SUSET,
						PGC_S_OVERRIDE);
	if (GetConfigOption("transaction_timeout", true, false) != NULL)
		SetConfigOption("transaction_timeout", "0", PGC_SUSET, PGC_S_OVERRIDE);
}

/* cost delay as set now: core's own mechanism with our figures */
static void
cost_settings(void)
{
	SetConfigOption("vacuum_cost_delay", psprintf("%g", bguard_cost_delay),
					PGC_SUSET, PGC_S_OVERRIDE);
	SetConfigOption("vacuum_cost_limit", psprintf("%d", bguard_cost_limit),
					PGC_SUSET, PGC_S_OVERRIDE);
	VacuumCostActive = bguard_cost_delay > 0;
	VacuumCostBalance = 0;
}

/* forget entries of this database that no trigger defines; false: look again */
static bool
retire_undefined(List *definitions, uint64 version)
{
	if (bguard_registry_version() != version)
		return false;

	for (uint32 i = 0; i < bguard_control->max_filters; i++)
	{
		BGuardEntryKey key = bguard_registry_entry(i)->key;
		bool		defined = false;
		ListCell   *lc;

		if (key.dboid != MyDatabaseId)
			continue;
		foreach(lc, definitions)
		{
			BGuardDefinition *def = lfirst(lc);

			defined |= def->tgoid == key.tgoid && def->root_relid == key.relid;
		}
		if (!defined)
		{
			bguard_registry_retire(i, &key);
			bguard_request_note_room();
		}
	}
	return true;
}

/*
 * Make the registry agree with the catalog.  Two workers may do so at a time:
 * one that sees the registry change between its look at the catalog and its
 * retirements looks again, lest it retire what the other has just found.
 */
static void
discover(void)
{
	bool		done = false;

	while (!done)
	{
		uint64		version = bguard_registry_version();
		List	   *definitions;
		ListCell   *lc;
		bool		full = false;

		CHECK_FOR_INTERRUPTS();
		StartTransactionCommand();
		/* trigger arguments may be out of line */
		PushActiveSnapshot(GetTransactionSnapshot());
		definitions = bguard_definition_list();
		done = retire_undefined(definitions, version);
		foreach(lc, definitions)
		{
			BGuardDefinition *def = lfirst(lc);
			BGuardEntryKey key = {MyDatabaseId, def->root_relid, def->tgoid};
			BGuardSignature none = {0};

			/* the build gives the signature */
			if (bguard_registry_create(&key, &none) < 0)
				full = true;
		}
		PopActiveSnapshot();
		CommitTransactionCommand();
		if (full)
			bguard_request_note_full();
		if (full && done)
			ereport(LOG,
					(errmsg("too many filters for setting \"%s\"",
							"bloomguard.max_filters"),
					 errhint("Raise it and restart the server.")));
	}
}

/* build whatever is due in this database, one after the other */
static void
build_due(BGuardOwner owner)
{
	for (uint32 i = 0; i < bguard_control->max_filters; i++)
	{
		BGuardEntry *e = bguard_registry_entry(i);
		BGuardEntryKey key;
		bool		due;

		if (ConfigReloadPending)
		{
			ConfigReloadPending = false;
			ProcessConfigFile(PGC_SIGHUP);
			cost_settings();
		}
		CHECK_FOR_INTERRUPTS();

		LWLockAcquire(bguard_lock, LW_SHARED);
		key = e->key;
		due = key.dboid == MyDatabaseId &&
			bguard_registry_due(e, GetCurrentTimestamp());
		LWLockRelease(bguard_lock);
		if (due)
			bguard_build_run((int) i, &key, owner);
	}
}

/*
 * bguard_worker_main
 *		arg: database OID.  bgw_extra: the place in the table of workers.
 */
void
bguard_worker_main(Datum arg)
{
	Oid			dboid = DatumGetObjectId(arg);
	BGuardOwner owner;
	MemoryContext loop;

	memcpy(&owner, MyBgworkerEntry->bgw_extra, sizeof(owner));

	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();

	if (!bguard_attached() || !bguard_fleet_enter(owner) ||
		bguard_request_held(dboid))
		proc_exit(0);
	bguard_inflight_own_worker();

	BackgroundWorkerInitializeConnectionByOid(dboid, InvalidOid, 0);
	SetConfigOption("application_name", "bloomguard worker", PGC_USERSET,
					PGC_S_SESSION);
	neutral_settings();
	cost_settings();

	loop = AllocSetContextCreate(TopMemoryContext, "bloomguard worker",
								 ALLOCSET_DEFAULT_SIZES);
	MemoryContextSwitchTo(loop);

	discover();
	bguard_fleet_discovered(owner);
	MemoryContextSwitchTo(loop);
	build_due(owner);
	proc_exit(0);
}
