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

#include "access/relation.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/objectaddress.h"
#include "compat.h"
#include "definition.h"
#include "guc.h"
#include "inflight.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "probe.h"
#include "registry.h"
#include "stats.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/rls.h"
#include "utils/syscache.h"

struct BGuardProbe
{
	/* the question */
	MemoryContext parent;
	Oid			relid;
	char	   *key_columns;	/* NULL: the relation's only filter */
	int			nargs;
	Oid			argtypes[BGUARD_MAX_KEY_COLUMNS];
	bool		trusted;

	/* transaction and subtransaction aborts that the lock was taken at */
	LocalTransactionId lxid;
	uint64		aborts;

	/* what the catalogs say; valid while version is unchanged */
	bool		resolved;
	uint64		serial;
	uint64		version;
	MemoryContext cxt;			/* reset when resolving anew */
	BGuardProbeReason standing; /* NONE: the rest is filled */
	int			nattrs;			/* key columns in the named relation */
	AttrNumber	attrs[BGUARD_MAX_KEY_COLUMNS];
	BGuardEntryKey key;
	BGuardSignature sig;
	BGuardEntry *entry;			/* NULL: there is none yet */
	int			number;			/* of the entry */
	BGuardKeyArg *args;			/* nargs of them, in cxt */

	/* may the user ask? */
	bool		rights_known;
	Oid			userid;
	int			sec_context;
	bool		row_security;
	bool		rls;			/* in force for the user */
};

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
static void resolve(BGuardProbe *probe);
static BGuardProbeReason resolve_filter(BGuardProbe *probe, Relation rel);
static BGuardDefinition *choose_filter(Relation rel, List *defs, int ncols,
									   char **names);
static void check_count(BGuardProbe *probe, Relation rel, int ncols,
						char **names);
static void init_argument(BGuardProbe *probe, int i,
						  const BGuardKeyPart *part, const char *name);
static void check_rights(BGuardProbe *probe, Oid userid, int sec_context);

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
		resolve(probe);

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
			check_rights(probe, userid, sec_context);
	}

	if (unlikely(probe->standing != BGUARD_REASON_NONE))
	{
		*reason = probe->standing;
		return BGUARD_ANSWER_UNGUARDED;
	}

	/* an entry that was given to another filter meanwhile is noticed below */
	entry = probe->entry;
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

		/* whose entry it is must be read after the first load of the link */
		pg_read_barrier();
		if (likely(entry->key.dboid == probe->key.dboid &&
				   entry->key.relid == probe->key.relid &&
				   entry->key.tgoid == probe->key.tgoid &&
				   bguard_signature_equal(&entry->sig, &probe->sig) &&
				   bguard_arena_filter(slot, &filter)))
		{
			if (bguard_bloom_test(&filter, hash))
			{
				bguard_stats_local(probe->number, probe->key.tgoid)->maybe++;
				return BGUARD_ANSWER_MAYBE;
			}

			/* a negative counts only if nothing moved while it was found */
			pg_read_barrier();
			if (likely(pg_atomic_read_u64(&entry->link) == link))
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

/* read the catalogs; the relation is locked, if it exists */
static void
resolve(BGuardProbe *probe)
{
	MemoryContext oldcxt;
	Relation	rel;

	probe->resolved = false;
	probe->rights_known = false;
	probe->serial++;
	probe->nattrs = 0;
	probe->entry = NULL;
	probe->args = NULL;
	MemoryContextReset(probe->cxt);

	/* before anything is looked up: what comes later is then noticed */
	probe->version = bguard_registry_version();

	rel = try_relation_open(probe->relid, NoLock);
	if (rel == NULL)
	{
		/* the OID may be used again: look anew at every call */
		probe->lxid = InvalidLocalTransactionId;
		probe->standing = BGUARD_REASON_NO_RELATION;
	}
	else
	{
		oldcxt = MemoryContextSwitchTo(probe->cxt);
		probe->standing = resolve_filter(probe, rel);
		MemoryContextSwitchTo(oldcxt);
		relation_close(rel, NoLock);
	}
	probe->resolved = true;
}

/*
 * Find the filter, the recipe for its key and the way of each argument.
 *
 * The filter's columns are numbered as in the root, their types and collations
 * are taken from the named relation: partitions have the root's, and it is the
 * named relation that is locked.
 */
static BGuardProbeReason
resolve_filter(BGuardProbe *probe, Relation rel)
{
	TupleDesc	desc = RelationGetDescr(rel);
	List	   *defs = bguard_definition_of_relation(rel);
	BGuardDefinition *def;
	char	   *names[BGUARD_MAX_KEY_COLUMNS];
	int			ncols = 0;

	if (probe->key_columns)
	{
		char	   *problem = bguard_definition_split(probe->key_columns,
													  &ncols, names);

		if (problem)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("invalid list of key columns"),
					 errdetail_internal("%s.", bguard_definition_sentence(problem))));

		for (int i = 0; i < ncols; i++)
		{
			AttrNumber	attnum = get_attnum(probe->relid, names[i]);

			if (attnum == InvalidAttrNumber)
				ereport(ERROR,
						(errcode(ERRCODE_UNDEFINED_COLUMN),
						 errmsg("column \"%s\" of relation \"%s\" does not exist",
								names[i], RelationGetRelationName(rel))));
			probe->attrs[probe->nattrs++] = attnum;
		}
		check_count(probe, rel, ncols, names);
		def = choose_filter(rel, defs, ncols, names);
	}
	else
		def = choose_filter(rel, defs, 0, NULL);

	if (def == NULL)
		return BGUARD_REASON_NO_FILTER;
	if (def->ncols == 0)
		return BGUARD_REASON_STALE;
	check_count(probe, rel, def->ncols, def->names);

	if (!probe->key_columns)
	{
		for (int i = 0; i < def->ncols; i++)
		{
			AttrNumber	attnum = get_attnum(probe->relid, def->names[i]);

			if (attnum <= 0)
				return BGUARD_REASON_STALE;
			probe->attrs[probe->nattrs++] = attnum;
		}
	}

	memset(&probe->sig, 0, sizeof(probe->sig));
	probe->sig.ncols = def->ncols;
	probe->args = palloc0(def->ncols * sizeof(BGuardKeyArg));
	for (int i = 0; i < def->ncols; i++)
	{
		BGuardSigColumn *col = &probe->sig.cols[i];
		Form_pg_attribute att;
		BGuardKeyPart part;

		if (probe->attrs[i] <= 0)
			return BGUARD_REASON_STALE;
		att = TupleDescAttr(desc, probe->attrs[i] - 1);
		if (bguard_keys_part_init(&part, att->atttypid, att->attcollation,
								  probe->cxt) != NULL)
			return BGUARD_REASON_STALE;
		init_argument(probe, i, &part, def->names[i]);

		col->attnum = def->root_relid == probe->relid ? probe->attrs[i] :
			get_attnum(def->root_relid, def->names[i]);
		col->typid = att->atttypid;
		col->collid = att->attcollation;
		col->hashproc = part.hashproc;
	}

	probe->key.dboid = MyDatabaseId;
	probe->key.relid = def->root_relid;
	probe->key.tgoid = def->root_tgoid;
	probe->number = bguard_registry_find(&probe->key);
	if (probe->number >= 0)
		probe->entry = bguard_registry_entry(probe->number);
	return BGUARD_REASON_NONE;
}

static bool
same_columns(const BGuardDefinition *def, int ncols, char *const *names)
{
	if (def->ncols != ncols)
		return false;
	for (int i = 0; i < ncols; i++)
	{
		if (strcmp(def->names[i], names[i]) != 0)
			return false;
	}
	return true;
}

/*
 * The filter on exactly these columns in this order or, with names NULL, the
 * only one there is; NULL when there is none.  One whose arguments cannot be
 * read (ncols 0) is returned only if there is no other.
 */
static BGuardDefinition *
choose_filter(Relation rel, List *defs, int ncols, char **names)
{
	BGuardDefinition *chosen = NULL;
	bool		ambiguous = false;
	StringInfoData list;
	ListCell   *lc;

	if (names == NULL)
		initStringInfo(&list);
	foreach(lc, defs)
	{
		BGuardDefinition *def = (BGuardDefinition *) lfirst(lc);

		if (def->ncols == 0)
			continue;
		if (names != NULL)
		{
			if (same_columns(def, ncols, names))
				return def;
			continue;
		}
		appendStringInfo(&list, "%s(%s)", list.len > 0 ? ", " : "",
						 def->key_columns);
		if (chosen == NULL)
			chosen = def;
		else if (!same_columns(def, chosen->ncols, chosen->names))
			ambiguous = true;
	}

	if (ambiguous)
		ereport(ERROR,
				(errcode(ERRCODE_AMBIGUOUS_PARAMETER),
				 errmsg("relation \"%s\" has more than one filter",
						RelationGetRelationName(rel)),
				 errdetail("Its filters are on %s.", list.data),
				 errhint("Name the columns of one of them in the argument key_columns.")));

	if (chosen == NULL && names == NULL && defs != NIL)
		chosen = (BGuardDefinition *) linitial(defs);
	return chosen;
}

static void
check_count(BGuardProbe *probe, Relation rel, int ncols, char **names)
{
	if (probe->nargs == ncols)
		return;

	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("wrong number of key parts for relation \"%s\": %d instead of %d",
					RelationGetRelationName(rel), probe->nargs, ncols),
			 errdetail("The key columns are (%s).",
					   bguard_definition_join(ncols, names)),
			 probe->key_columns ? 0 :
			 errhint("Name the columns in the argument key_columns, followed by one value for each.")));
}

static void
init_argument(BGuardProbe *probe, int i, const BGuardKeyPart *part,
			  const char *name)
{
	Oid			argtype = probe->argtypes[i];

	if (!OidIsValid(argtype))
		ereport(ERROR,
				(errcode(ERRCODE_INDETERMINATE_DATATYPE),
				 errmsg("could not determine data type of key part %d", i + 1)));

	if (!bguard_keys_arg_init(&probe->args[i], part, argtype, probe->cxt))
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("key of type %s cannot be looked up in column \"%s\" of type %s",
						format_type_be(argtype), name,
						format_type_be(part->typid)),
				 errhint("Cast the key: CAST(... AS %s).",
						 format_type_be(part->typid))));
}

/*
 * SELECT on the relation or on all key columns, else an error.  Note whether
 * row security is in force: a definite answer would then tell of hidden rows.
 */
static void
check_rights(BGuardProbe *probe, Oid userid, int sec_context)
{
	bool		allowed;

	probe->rights_known = false;
	allowed = pg_class_aclcheck(probe->relid, userid, ACL_SELECT) == ACLCHECK_OK;
	if (!allowed)
	{
		/*
		 * Without known columns there is nothing to be told about a key, but who
		 * may read nothing at all shall not hold the lock.
		 */
		allowed = probe->nattrs > 0 ||
			pg_attribute_aclcheck_all(probe->relid, userid, ACL_SELECT,
									  ACLMASK_ANY) == ACLCHECK_OK;
		for (int i = 0; allowed && i < probe->nattrs; i++)
			allowed = pg_attribute_aclcheck(probe->relid, probe->attrs[i],
											userid, ACL_SELECT) == ACLCHECK_OK;
	}
	if (!allowed)
		aclcheck_error(ACLCHECK_NO_PRIV,
					   get_relkind_objtype(get_rel_relkind(probe->relid)),
					   get_rel_name(probe->relid));

	probe->rls = check_enable_rls(probe->relid, InvalidOid, true) == RLS_ENABLED;
	probe->userid = userid;
	probe->sec_context = sec_context;
	probe->row_security = row_security;
	probe->rights_known = true;
}
