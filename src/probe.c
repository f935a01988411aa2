/*
 * probe.c
 *		The probe path: from a key to "definitely absent" or "maybe".
 *
 * WHAT IS CACHED, AND WHAT GUARDS IT
 *
 * A probe keeps the filter's identity, the hash recipe and the conversion of
 * its arguments.  They are read from the catalogs under AccessShareLock on the
 * named relation and hold while
 *	 - that lock is held: same local transaction, and no subtransaction aborted
 *	   since it was taken (the lock may have been taken in it),
 *	 - the registry's version word is unchanged: it moves with every entry that
 *	   comes or goes and every DDL on a trigger of ours or a key column, clones
 *	   on partitions included (src/ddl.c).
 * Privilege and row security hold for the user, security context and
 * row_security setting they were found for.  Everything else is tested on every
 * call: a probe in a PL/pgSQL expression lives for a whole transaction, across
 * statements and snapshots.
 *
 * LOCKS
 *
 * The relation's lock is taken conditionally, as a guard must not queue behind
 * DDL or become part of a deadlock, and is kept to the end of the transaction.
 * bguard_lock is taken (shared) only to find the entry.  The filter itself is
 * read without a lock, by the PROBE rule of registry.h.
 *
 * ORDER
 *
 * The active snapshot exists before the link is loaded, so every row it sees was
 * added before.  Errors of the caller (columns, types, privilege) come before
 * all doubts, so that they do not depend on the state of the filter.
 */
#include "postgres.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "compat.h"
#include "debug.h"
#include "guc.h"
#include "inflight.h"
#include "miscadmin.h"
#include "probe.h"
#include "probe_state.h"
#include "stats.h"
#include "storage/lmgr.h"
#include "utils/memutils.h"
#include "utils/rls.h"
#include "utils/syscache.h"

/* every reason: its text, and the counter of the entry it is counted by */
static const struct
{
	const char *text;
	int			counter;		/* BGuardUnguarded, or -1 */
}			reasons[] =
{
	[BGUARD_REASON_NONE] = {"", -1},
	[BGUARD_REASON_NOT_PRELOADED] = {"library not preloaded", -1},
	[BGUARD_REASON_NO_RELATION] = {"relation does not exist", -1},
	[BGUARD_REASON_NO_FILTER] = {"no filter", -1},
	[BGUARD_REASON_LOCKED] = {"relation is locked", BGUARD_UNGUARDED_LOCK},
	[BGUARD_REASON_ROW_SECURITY] = {"row security in force", BGUARD_UNGUARDED_RLS},
	[BGUARD_REASON_RECOVERY] = {"recovery in progress", BGUARD_UNGUARDED_RECOVERY},
	[BGUARD_REASON_DISABLED] = {"bloomguard.enabled is off", BGUARD_UNGUARDED_DISABLED},
	[BGUARD_REASON_NO_SNAPSHOT] = {"no MVCC snapshot", BGUARD_UNGUARDED_SNAPSHOT},
	[BGUARD_REASON_OLD_SNAPSHOT] = {"old_snapshot_threshold is set", BGUARD_UNGUARDED_OLD_SNAPSHOT},
	[BGUARD_REASON_SERIALIZABLE] = {"serializable transaction", BGUARD_UNGUARDED_SERIALIZABLE},
	[BGUARD_REASON_BUILDING] = {"building", BGUARD_UNGUARDED_NOT_READY},
	[BGUARD_REASON_STALE] = {"stale", BGUARD_UNGUARDED_NOT_READY},
	[BGUARD_REASON_BLOCKED] = {"blocked", BGUARD_UNGUARDED_NOT_READY},
	[BGUARD_REASON_NO_MEMORY] = {"no memory", BGUARD_UNGUARDED_NOT_READY},
	[BGUARD_REASON_IN_FLIGHT] = {"modifying statement in flight", BGUARD_UNGUARDED_IN_FLIGHT},
	[BGUARD_REASON_NULL] = {"key is null", BGUARD_UNGUARDED_NULL},
	[BGUARD_REASON_CHANGED] = {"filter changed", BGUARD_UNGUARDED_CHANGED},
};

static BGuardProbeReason not_ready_reason(BGuardEntry *entry, uint64 link);
static void count_unguarded(BGuardProbe *probe, BGuardProbeReason reason);
static bool take_lock(BGuardProbe *probe);

BGuardProbe *
bguard_probe_create(MemoryContext cxt)
{
	BGuardProbe *probe = MemoryContextAllocZero(cxt, sizeof(BGuardProbe));
	probe->parent = cxt;
	probe->cxt = AllocSetContextCreate(cxt, "bloomguard probe",
									   ALLOCSET_SMALL_SIZES);
	return probe;
}

void
bguard_probe_prepare(BGuardProbe *probe, Oid relid, const char *key_columns,
					 int nargs, const Oid *argtypes, bool trusted)
{
	char	   *copy = NULL;

	if (key_columns)
		copy = MemoryContextStrdup(probe->parent, key_columns);
	if (probe->key_columns)
		pfree(probe->key_columns);
	probe->key_columns = copy;

	if (relid != probe->relid)
		probe->lxid = InvalidLocalTransactionId;
	probe->resolved = false;
	probe->relid = relid;
	/* no filter has more columns than fit: check_count() will say so */
	probe->nargs = nargs;
	for (int i = 0; i < Min(nargs, BGUARD_MAX_KEY_COLUMNS); i++)
		probe->argtypes[i] = argtypes[i];
	probe->trusted = trusted;
}

BGuardAnswer
bguard_probe_ask(BGuardProbe *probe, const Datum *values, const bool *nulls,
				 BGuardProbeReason *reason)
{
	BGuardEntry *entry;
	BGuardBloom filter;
	Snapshot	snapshot;
	uint64		hashes[BGUARD_MAX_KEY_COLUMNS];
	uint64		hash;
	uint64		link;
	uint32		slot;
	Oid			userid;
	int			sec_context;

	*reason = BGUARD_REASON_NONE;
	if (unlikely(!bguard_attached()))
	{
		*reason = BGUARD_REASON_NOT_PRELOADED;
		return BGUARD_ANSWER_UNGUARDED;
	}

	if (unlikely(probe->lxid != BGUARD_MY_LXID ||
				 probe->lxid == InvalidLocalTransactionId ||
				 probe->aborts != bguard_inflight_subxact_aborts()))
	{
		if (!take_lock(probe))
		{
			/* counted only if the entry is known from an earlier lock */
			*reason = BGUARD_REASON_LOCKED;
			if (probe->resolved)
				count_unguarded(probe, *reason);
			return BGUARD_ANSWER_UNGUARDED;
		}
	}

	if (unlikely(!probe->resolved ||
				 probe->version != bguard_registry_version()))
		bguard_probe_resolve(probe);

	if (unlikely(probe->standing == BGUARD_REASON_NO_RELATION))
	{
		*reason = BGUARD_REASON_NO_RELATION;
		return BGUARD_ANSWER_UNGUARDED;
	}

	if (!probe->trusted)
	{
		GetUserIdAndSecContext(&userid, &sec_context);
		if (unlikely(!probe->rights_known ||
					 probe->userid != userid ||
					 probe->sec_context != sec_context ||
					 probe->row_security != row_security))
			bguard_probe_check_rights(probe, userid, sec_context);
	}

	if (unlikely(probe->standing != BGUARD_REASON_NONE))
	{
		*reason = probe->standing;
		return BGUARD_ANSWER_UNGUARDED;
	}

	/* an entry that was given to another filter meanwhile is noticed below */
	entry = probe->entry;
	BGUARD_PAUSE("probe-resolved");
	snapshot = ActiveSnapshotSet() ? GetActiveSnapshot() : NULL;
	link = likely(entry != NULL) ? pg_atomic_read_u64(&entry->link) : 0;
	slot = BGUARD_LINK_CURRENT(link);

	if (unlikely(RecoveryInProgress()))
		*reason = BGUARD_REASON_RECOVERY;
	else if (unlikely(!bguard_enabled))
		*reason = BGUARD_REASON_DISABLED;
	else if (unlikely(snapshot == NULL ||
					  snapshot->snapshot_type != SNAPSHOT_MVCC))
		*reason = BGUARD_REASON_NO_SNAPSHOT;
	else if (unlikely(BGUARD_OLD_SNAPSHOT_ACTIVE()))
		*reason = BGUARD_REASON_OLD_SNAPSHOT;
	else if (unlikely(IsolationIsSerializable()))
		*reason = BGUARD_REASON_SERIALIZABLE;
	else if (unlikely(probe->rls && !probe->trusted))
		*reason = BGUARD_REASON_ROW_SECURITY;
	else if (unlikely(slot == 0))
		*reason = not_ready_reason(entry, link);
	else if (unlikely(bguard_inflight_blocks(snapshot, probe->key.relid)))
		*reason = BGUARD_REASON_IN_FLIGHT;
	else
	{
		for (int i = 0; i < probe->nargs; i++)
		{
			if (unlikely(nulls[i]))
			{
				*reason = BGUARD_REASON_NULL;
				break;
			}
		}
	}

	if (likely(*reason == BGUARD_REASON_NONE))
	{
		for (int i = 0; i < probe->nargs; i++)
			hashes[i] = bguard_keys_hash_arg(&probe->args[i], values[i],
											 bguard_control->seed);
		hash = bguard_keys_combine(hashes, probe->nargs, bguard_control->seed);

		/*
		 * Whose entry it is must be read after the first load of the link.  The
		 * version as well: a build moves it before its slot goes into service, so
		 * that nobody asks for the hash of a function that was replaced.
		 */
		pg_read_barrier();
		if (likely(probe->version == bguard_registry_version() &&
				   entry->key.dboid == probe->key.dboid &&
				   entry->key.relid == probe->key.relid &&
				   entry->key.tgoid == probe->key.tgoid &&
				   bguard_signature_equal(&entry->sig, &probe->sig) &&
				   bguard_arena_filter(slot, &filter)))
		{
			BGUARD_PAUSE("probe-loaded");
			if (bguard_bloom_test(&filter, hash))
			{
				bguard_stats_local(probe->number, probe->key.tgoid)->maybe++;
				return BGUARD_ANSWER_MAYBE;
			}

			/* a negative counts only if nothing moved while it was found */
			pg_read_barrier();
			BGUARD_PAUSE("probe-tested");
			if (likely(pg_atomic_read_u64(&entry->link) == link) ||
				BGUARD_MUTANT(NO_RECHECK))
			{
				bguard_stats_local(probe->number, probe->key.tgoid)->absent++;
				return BGUARD_ANSWER_ABSENT;
			}
		}
		*reason = BGUARD_REASON_CHANGED;
	}

	count_unguarded(probe, *reason);
	return BGUARD_ANSWER_UNGUARDED;
}

uint64
bguard_probe_serial(const BGuardProbe *probe)
{
	return probe->serial;
}

const char *
bguard_probe_reason_text(BGuardProbeReason reason)
{
	Assert((int) reason >= 0 && (int) reason < (int) lengthof(reasons));
	return reasons[reason].text;
}

/*
 * Why there is no current generation.  The verdict is read without the lock: it
 * is for the eye only.
 */
static BGuardProbeReason
not_ready_reason(BGuardEntry *entry, uint64 link)
{
	if (BGUARD_LINK_BUILDING(link) != 0)
		return BGUARD_REASON_BUILDING;
	if (entry != NULL &&
		entry->verdict_poison == pg_atomic_read_u32(&entry->poison))
	{
		if (entry->verdict == BGUARD_VERDICT_BLOCKED)
			return BGUARD_REASON_BLOCKED;
		if (entry->verdict == BGUARD_VERDICT_NO_MEMORY)
			return BGUARD_REASON_NO_MEMORY;
	}
	return BGUARD_REASON_STALE;
}

static void
count_unguarded(BGuardProbe *probe, BGuardProbeReason reason)
{
	int			counter = reasons[reason].counter;

	if (probe->entry != NULL && counter >= 0)
		bguard_stats_local(probe->number, probe->key.tgoid)->unguarded[counter]++;
}

/*
 * The relation's lock, if it can be had at once.  What was resolved under an
 * earlier lock has to be resolved again.
 */
static bool
take_lock(BGuardProbe *probe)
{
	/* a try that fails must be repeated, whatever was held before */
	probe->lxid = InvalidLocalTransactionId;
	if (!ConditionalLockRelationOid(probe->relid, AccessShareLock))
		return false;
	if (!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(probe->relid)))
	{
		/* no relation, nothing to hold: resolve() will say so */
		UnlockRelationOid(probe->relid, AccessShareLock);
		probe->resolved = false;
		return true;
	}
	probe->aborts = bguard_inflight_subxact_aborts();
	probe->lxid = BGUARD_MY_LXID;
	probe->resolved = false;
	return true;
}
