/*
 * build_check.c
 *		Is the definition sound, on the root and on every descendant?
 *
 * Used twice by a build: without locks to size it and to tell a blocked
 * definition early, and under short locks, after publication, to decide (see
 * build.h).  Each relation has a transaction of its own; results are kept in the
 * build's memory context.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/relation.h"
#include "access/table.h"
#include "access/xact.h"
#include "build.h"
#include "catalog/indexing.h"
#include "catalog/pg_am.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_trigger.h"
#include "commands/trigger.h"
#include "debug.h"
#include "miscadmin.h"
#include "optimizer/plancat.h"
#include "storage/bufmgr.h"
#include "storage/lmgr.h"
#include "storage/lock.h"
#include "utils/fmgroids.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

/* how long a check waits for one lock, in milliseconds */
#define LOCK_WAIT_MS	1000

static BGuardBuildResult
blocked(BGuardBuild *build, const char *reason)
{
	bguard_registry_clip(build->reason, reason);
	return BGUARD_BUILD_BLOCKED;
}

/*
 * Our trigger on the relation: on the root the one that defines the filter, on a
 * descendant the one whose chain of parents ends there.  A copied tuple or NULL.
 */
static HeapTuple
find_trigger(BGuardBuild *build, Relation pg_trigger, Oid relid)
{
	Oid			function = bguard_definition_function();
	HeapTuple	found = NULL;
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;

	ScanKeyInit(&key, Anum_pg_trigger_tgrelid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(relid));
	scan = systable_beginscan(pg_trigger, TriggerRelidNameIndexId, true, NULL,
							  1, &key);
	while (found == NULL && HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_trigger trigger = (Form_pg_trigger) GETSTRUCT(tuple);
		Oid			root_tgoid;
		Oid			root_relid;

		if (trigger->tgfoid == function &&
			bguard_definition_root(trigger->oid, &root_tgoid, &root_relid) &&
			root_tgoid == build->key.tgoid && root_relid == build->key.relid)
			found = heap_copytuple(tuple);
	}
	systable_endscan(scan);
	return found;
}

/* the root: definition, signature, names for messages */
static BGuardBuildResult
check_root(BGuardBuild *build, Relation rel, HeapTuple tuple, TupleDesc desc)
{
	MemoryContext old = MemoryContextSwitchTo(build->cxt);
	char	   *problem;
	char	   *hint;
	int			nargs;
	char	  **args;

	snprintf(build->name, sizeof(build->name), "%s.%s",
			 get_namespace_name(RelationGetNamespace(rel)),
			 RelationGetRelationName(rel));

	bguard_definition_tgargs(tuple, desc, &nargs, &args);
	bguard_definition_parse(nargs, args, &build->def);
	problem = bguard_definition_judge_relation(rel, &hint);
	if (problem == NULL)
		problem = bguard_definition_signature(rel, &build->def, &build->sig);
	MemoryContextSwitchTo(old);

	return problem ? blocked(build, problem) : BGUARD_BUILD_DONE;
}

/* children of a partitioned member, detach-pending ones included */
static List *
children_of(BGuardBuild *build, Oid relid)
{
	MemoryContext old = MemoryContextSwitchTo(build->cxt);
	List	   *children = find_inheritance_children_extended(relid, false,
															  NoLock, NULL, NULL);

	MemoryContextSwitchTo(old);
	return children;
}

/*
 * Is somebody making the relation a parent, or putting an end to that?  INHERIT
 * takes only ShareUpdateExclusiveLock on the parent, which goes together with the
 * check's lock on a table that is not partitioned (one that conflicts would have
 * to wait for VACUUM).  The row is there before the command poisons, so that one
 * of the two is seen here.
 */
static bool
parenthood_in_doubt(Oid relid)
{
	Relation	pg_inherits = table_open(InheritsRelationId, AccessShareLock);
	SnapshotData dirty;
	ScanKeyData key;
	SysScanDesc scan;
	bool		found = false;

	InitDirtySnapshot(dirty);
	ScanKeyInit(&key, Anum_pg_inherits_inhparent, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(relid));
	scan = systable_beginscan(pg_inherits, InheritsParentIndexId, true, &dirty,
							  1, &key);
	while (!found && HeapTupleIsValid(systable_getnext(scan)))
		found = TransactionIdIsValid(dirty.xmin) ||
			TransactionIdIsValid(dirty.xmax);
	systable_endscan(scan);
	table_close(pg_inherits, AccessShareLock);
	return found;
}

/*
 * Lock one relation inside a transaction, to its end.  GONE when there is none.
 */
static BGuardBuildResult
lock_relation(BGuardBuild *build, Oid relid, bool locked)
{
	char		relkind = get_rel_relkind(relid);
	LOCKMODE	lockmode = AccessShareLock;

	if (relkind == '\0')
		return BGUARD_BUILD_GONE;
	if (locked)
		lockmode = relkind == RELKIND_PARTITIONED_TABLE ?
			ShareUpdateExclusiveLock : RowExclusiveLock;
	return bguard_build_lock(build, relid, lockmode, LOCK_WAIT_MS) ?
		BGUARD_BUILD_DONE : BGUARD_BUILD_LOCKED;
}

/*
 * Check one relation, which is locked.  Appends its member and, for a partitioned
 * one, its children's OIDs to *queue.
 */
static BGuardBuildResult
check_relation(BGuardBuild *build, Oid relid, bool locked, List **queue)
{
	bool		is_root = relid == build->key.relid;
	BGuardBuildResult result = BGUARD_BUILD_DONE;
	Relation	pg_trigger;
	Relation	rel;
	HeapTuple	tuple;
	BGuardMember member = {0};
	char	   *problem;
	bool		origin;

	rel = try_relation_open(relid, NoLock);
	if (rel == NULL)
		return BGUARD_BUILD_GONE;

	pg_trigger = table_open(TriggerRelationId, AccessShareLock);
	tuple = find_trigger(build, pg_trigger, relid);

	if (is_root && tuple == NULL)
		result = BGUARD_BUILD_GONE;
	else if (locked && rel->rd_rel->relkind == RELKIND_RELATION &&
			 parenthood_in_doubt(relid))
		result = BGUARD_BUILD_LOCKED;
	else if (is_root)
		result = check_root(build, rel, tuple, RelationGetDescr(pg_trigger));
	else if (rel->rd_rel->relkind == RELKIND_FOREIGN_TABLE)
		result = blocked(build, psprintf(_("partition \"%s\" is a foreign table"),
										 RelationGetRelationName(rel)));
	else if (rel->rd_rel->relkind == RELKIND_RELATION &&
			 rel->rd_rel->relam != HEAP_TABLE_AM_OID)
		result = blocked(build, psprintf(_("partition \"%s\" does not use the heap access method"),
										 RelationGetRelationName(rel)));
	else if (tuple == NULL)
		result = blocked(build, psprintf(_("partition \"%s\" does not have the trigger"),
										 RelationGetRelationName(rel)));

	if (result == BGUARD_BUILD_DONE)
	{
		problem = bguard_definition_judge_trigger(tuple, RelationGetDescr(pg_trigger),
												  &origin);
		if (problem == NULL && origin && locked)
			result = BGUARD_BUILD_CHANGED;	/* since the repair: repair it again */
		else if (problem != NULL)
			result = blocked(build, is_root ? problem :
							 psprintf(_("partition \"%s\": %s"),
									  RelationGetRelationName(rel), problem));
	}

	if (result == BGUARD_BUILD_DONE)
	{
		MemoryContext old;
		BGuardMember *copy;

		member.relid = relid;
		member.relkind = rel->rd_rel->relkind;
		member.relfilenode = rel->rd_rel->relfilenode;
		member.tgoid = ((Form_pg_trigger) GETSTRUCT(tuple))->oid;
		member.tgenabled = ((Form_pg_trigger) GETSTRUCT(tuple))->tgenabled;
		member.tgxmin = HeapTupleHeaderGetRawXmin(tuple->t_data);

		if (member.relkind == RELKIND_RELATION)
		{
			BlockNumber pages;
			double		tuples;
			double		allvisfrac;

			estimate_rel_size(rel, NULL, &pages, &tuples, &allvisfrac);
			build->tuples += tuples;
			build->blocks += RelationGetNumberOfBlocks(rel);
		}

		old = MemoryContextSwitchTo(build->cxt);
		copy = palloc(sizeof(BGuardMember));
		*copy = member;
		build->members = lappend(build->members, copy);
		MemoryContextSwitchTo(old);

		if (member.relkind == RELKIND_PARTITIONED_TABLE)
		{
			List	   *children = children_of(build, relid);

			old = MemoryContextSwitchTo(build->cxt);
			*queue = list_concat(*queue, children);
			MemoryContextSwitchTo(old);
		}
	}

	table_close(pg_trigger, AccessShareLock);
	relation_close(rel, NoLock);
	return result;
}

/*
 * Is a function that filters depend on being replaced?  The lock is free unless
 * a command that does so is under way, and held only to the end of this little
 * transaction.
 */
static bool
functions_in_doubt(void)
{
	LOCKTAG		tag;
	bool		free;

	BGUARD_FUNCTIONS_LOCKTAG(tag);
	StartTransactionCommand();
	free = LockAcquire(&tag, RowExclusiveLock, false, true) != LOCKACQUIRE_NOT_AVAIL;
	CommitTransactionCommand();
	return !free;
}

/*
 * bguard_build_check
 *		Walk over root and descendants; fill def, sig, members, tuples, blocks.
 *
 * BGUARD_BUILD_DONE: all sound.  With locked, each under its lock; without, a
 * trigger that only lost ALWAYS passes (bguard_build_repair comes next).
 */
BGuardBuildResult
bguard_build_check(BGuardBuild *build, bool locked)
{
	List	   *queue;
	BGuardBuildResult result = BGUARD_BUILD_DONE;
	MemoryContext old = MemoryContextSwitchTo(build->cxt);

	build->members = NIL;
	build->tuples = 0;
	build->blocks = 0;
	queue = list_make1_oid(build->key.relid);
	MemoryContextSwitchTo(old);

	if (locked && functions_in_doubt())
		return BGUARD_BUILD_LOCKED;

	/* the list grows while it is walked */
	for (int i = 0; i < list_length(queue) && result == BGUARD_BUILD_DONE; i++)
	{
		CHECK_FOR_INTERRUPTS();
		StartTransactionCommand();
		/* no snapshot while waiting: who has the lock may wait for older ones */
		result = lock_relation(build, list_nth_oid(queue, i), locked);
		if (result == BGUARD_BUILD_DONE)
		{
			PushActiveSnapshot(GetTransactionSnapshot());
			result = check_relation(build, list_nth_oid(queue, i), locked, &queue);
			PopActiveSnapshot();
		}
		CommitTransactionCommand();

		/* a partition that was dropped meanwhile has no rows for anybody */
		if (result == BGUARD_BUILD_GONE && i > 0)
			result = BGUARD_BUILD_DONE;
	}
	return result;
}

/*
 * bguard_build_repair
 *		Put "ENABLE TRIGGER ALL" right: a trigger in state 'O' becomes ALWAYS.
 *
 * Only from 'O', never from disabled or replica.  The row is changed in place
 * under ShareRowExclusiveLock, asked for conditionally: writers that did not
 * fire the trigger have ended then, and the check that follows sees the change.
 */
BGuardBuildResult
bguard_build_repair(BGuardBuild *build)
{
	ListCell   *lc;

	foreach(lc, build->members)
	{
		BGuardMember *member = lfirst(lc);
		Relation	pg_trigger;
		HeapTuple	tuple;

		if (member->tgenabled != TRIGGER_FIRES_ON_ORIGIN ||
			BGUARD_MUTANT(ORDINARY_TRIGGER))
			continue;

		StartTransactionCommand();
		if (!bguard_build_lock(build, member->relid, ShareRowExclusiveLock,
							   LOCK_WAIT_MS))
		{
			CommitTransactionCommand();
			return BGUARD_BUILD_LOCKED;
		}
		PushActiveSnapshot(GetTransactionSnapshot());
		pg_trigger = table_open(TriggerRelationId, RowExclusiveLock);
		tuple = find_trigger(build, pg_trigger, member->relid);
		if (HeapTupleIsValid(tuple) &&
			((Form_pg_trigger) GETSTRUCT(tuple))->tgenabled == TRIGGER_FIRES_ON_ORIGIN)
		{
			((Form_pg_trigger) GETSTRUCT(tuple))->tgenabled = TRIGGER_FIRES_ALWAYS;
			CatalogTupleUpdate(pg_trigger, &tuple->t_self, tuple);
			CacheInvalidateRelcacheByRelid(member->relid);
			ereport(LOG,
					(errmsg("trigger \"%s\" of relation \"%s\" was set to ENABLE ALWAYS again",
							NameStr(((Form_pg_trigger) GETSTRUCT(tuple))->tgname),
							get_rel_name(member->relid))));
		}
		table_close(pg_trigger, RowExclusiveLock);
		PopActiveSnapshot();
		CommitTransactionCommand();
	}
	return BGUARD_BUILD_DONE;
}

/*
 * Is it bloomguard_track() that changed the row: other sizes, the rest as it was
 * checked?  It asks for a rotation of its own.
 */
static bool
only_sizes_changed(const BGuardBuild *build, HeapTuple tuple, TupleDesc desc)
{
	BGuardDefinition def;
	bool		origin;
	int			nargs;
	char	  **args;

	bguard_definition_tgargs(tuple, desc, &nargs, &args);
	bguard_definition_parse(nargs, args, &def);
	return def.problem == NULL &&
		strcmp(def.key_columns, build->def.key_columns) == 0 &&
		(def.rate != build->def.rate || def.capacity != build->def.capacity) &&
		bguard_definition_judge_trigger(tuple, desc, &origin) == NULL && !origin;
}

/*
 * bguard_build_unchanged
 *		Are the members' trigger rows those of the check, but for sizes?  A backstop
 *		for a hook that another library kept from us; no lock is needed for it.
 */
bool
bguard_build_unchanged(BGuardBuild *build)
{
	bool		same = true;
	ListCell   *lc;

	StartTransactionCommand();
	PushActiveSnapshot(GetTransactionSnapshot());
	foreach(lc, build->members)
	{
		BGuardMember *member = lfirst(lc);
		Relation	pg_trigger;
		HeapTuple	tuple;

		/* a member that was dropped has no rows that anybody can see */
		if (get_rel_relkind(member->relid) == '\0')
			continue;
		CHECK_FOR_INTERRUPTS();
		pg_trigger = table_open(TriggerRelationId, AccessShareLock);
		tuple = find_trigger(build, pg_trigger, member->relid);
		if (tuple == NULL)
			/* detached meanwhile; a dropped root trigger has poisoned */
			same = same && member->relid != build->key.relid;
		else if (((Form_pg_trigger) GETSTRUCT(tuple))->oid != member->tgoid ||
				 (HeapTupleHeaderGetRawXmin(tuple->t_data) != member->tgxmin &&
				  !only_sizes_changed(build, tuple, RelationGetDescr(pg_trigger))))
			same = false;
		table_close(pg_trigger, AccessShareLock);
	}
	PopActiveSnapshot();
	CommitTransactionCommand();
	return same;
}
