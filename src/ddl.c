/*
 * ddl.c
 *		Commands that could let a row bypass a trigger, or change a stored key.
 *
 * The object-access hook sees every change of a definition.  What could make a
 * filter lie poisons it; a rewrite or truncation with the same keys asks for a
 * rotation at commit; everything else (new columns, indexes, VACUUM, a new empty
 * partition) must not disturb it.
 *
 * There is no map of the tables that a filter guards: every one of them carries
 * our trigger, so the trigger leads there.  Relation -> our triggers on it ->
 * tgparentid up to the top -> the root's trigger, which is the filter's identity.
 *
 * LOCKING: poison is sound only under a lock that keeps a builder's check of the
 * definition out until the command has committed (see registry.h).  Core holds
 * it when the hook fires, with one exception: for DROP of a trigger, alone or by
 * cascade, the hook comes first.  A builder could create an entry, check the
 * definition and validate in the gap between poison and lock.  So for a root's
 * trigger the hook itself takes AccessExclusiveLock on its table, the lock
 * that core takes next in the same order, and looks for entries only then.
 * Clones need nothing: they go only with their leaf, with a detach, or with the
 * root's trigger, which has its own event.
 *
 * For all other events "no entry in this database" is a sound reason to return:
 * an entry created later is checked by its builder under a lock that conflicts
 * with the one this command holds to its end.
 *
 * The hook raises no error of its own (waiting for the lock above may).  A
 * catalog row that is not found poisons every filter of the database.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/relation.h"
#include "access/table.h"
#include "catalog/indexing.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_am.h"
#include "catalog/pg_amproc.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_opclass.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_trigger.h"
#include "commands/trigger.h"
#include "compat.h"
#include "ddl.h"
#include "debug.h"
#include "definition.h"
#include "request.h"
#include "storage/bufmgr.h"
#include "storage/lmgr.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/syscache.h"

/* what is wanted of a pg_trigger row */
typedef struct TriggerRow
{
	Oid			tgrelid;
	Oid			tgparentid;
	Oid			tgfoid;
	char		tgenabled;
} TriggerRow;

static object_access_hook_type prev_access = NULL;

/*
 * Relations a key column of which was altered by this transaction, type and
 * collation staying the same: if they are rewritten, the keys have changed
 * (ALTER TYPE .. USING).  In TopTransactionContext, valid for touched_lxid only.
 * An aborted subtransaction leaves its mark, which is only too careful.
 */
static List *touched = NIL;
static LocalTransactionId touched_lxid = InvalidLocalTransactionId;

void
bguard_ddl_changed(void)
{
	bguard_registry_bump_version();
	bguard_request_visit();
}

void
bguard_ddl_poison_database(BGuardPoison reason)
{
	bguard_registry_poison_database(MyDatabaseId, reason);
	bguard_ddl_changed();
}

/* poison the filter of a root trigger; all of them when it is not known */
static void
poison_root(Oid root_tgoid, BGuardPoison reason)
{
	if (!OidIsValid(root_tgoid))
	{
		bguard_ddl_poison_database(reason);
		return;
	}
	bguard_registry_poison_trigger(MyDatabaseId, root_tgoid, reason);
	bguard_ddl_changed();
}

/* snapshot NULL: the catalog snapshot */
static bool
read_trigger(Oid tgoid, Snapshot snapshot, TriggerRow *row)
{
	HeapTuple	tuple = bguard_definition_fetch(tgoid, snapshot);
	Form_pg_trigger form;

	if (!HeapTupleIsValid(tuple))
		return false;
	form = (Form_pg_trigger) GETSTRUCT(tuple);
	row->tgrelid = form->tgrelid;
	row->tgparentid = form->tgparentid;
	row->tgfoid = form->tgfoid;
	row->tgenabled = form->tgenabled;
	heap_freetuple(tuple);
	return true;
}

/*
 * Top of the tgparentid chain, InvalidOid if it breaks off.  A trigger that
 * this command created is in SnapshotSelf only; one that another session changes
 * right now may be missing there, but not in the catalog snapshot.
 */
static Oid
root_trigger(Oid tgoid)
{
	TriggerRow	row;

	for (;;)
	{
		if (!read_trigger(tgoid, SnapshotSelf, &row) &&
			!read_trigger(tgoid, NULL, &row))
			return InvalidOid;
		if (!OidIsValid(row.tgparentid))
			return tgoid;
		tgoid = row.tgparentid;
	}
}

/*
 * bguard_ddl_triggers
 *		See ddl.h.
 */
List *
bguard_ddl_triggers(Oid relid)
{
	Oid			function = bguard_definition_function();
	List	   *result = NIL;
	Relation	pg_trigger;
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;
	ListCell   *lc;

	if (!OidIsValid(function))
		return NIL;

	pg_trigger = table_open(TriggerRelationId, AccessShareLock);
	ScanKeyInit(&key, Anum_pg_trigger_tgrelid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(relid));
	scan = systable_beginscan(pg_trigger, TriggerRelidNameIndexId, true, NULL,
							  1, &key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_trigger form = (Form_pg_trigger) GETSTRUCT(tuple);
		BGuardDefinition *def;
		int			nargs;
		char	  **args;

		if (form->tgfoid != function)
			continue;
		def = palloc0(sizeof(BGuardDefinition));
		def->tgoid = form->oid;
		bguard_definition_tgargs(tuple, RelationGetDescr(pg_trigger),
								 &nargs, &args);
		bguard_definition_parse(nargs, args, def);
		result = lappend(result, def);
	}
	systable_endscan(scan);
	table_close(pg_trigger, AccessShareLock);

	foreach(lc, result)
	{
		BGuardDefinition *def = lfirst(lc);
		TriggerRow	row;

		def->root_tgoid = root_trigger(def->tgoid);
		if (OidIsValid(def->root_tgoid) &&
			(read_trigger(def->root_tgoid, SnapshotSelf, &row) ||
			 read_trigger(def->root_tgoid, NULL, &row)))
			def->root_relid = row.tgrelid;
		else
			def->root_tgoid = InvalidOid;
	}
	return result;
}

/*
 * An event on a trigger.  Both versions of the row count: CREATE OR REPLACE may
 * give our trigger another function, or another trigger ours.
 */
static void
trigger_event(ObjectAccessType access, Oid tgoid)
{
	Oid			function = bguard_definition_function();
	TriggerRow	old_row = {0};
	TriggerRow	new_row = {0};
	bool		has_old;
	bool		has_new;
	Oid			parent;

	if (!OidIsValid(function))
		return;
	has_old = read_trigger(tgoid, NULL, &old_row);
	has_new = read_trigger(tgoid, SnapshotSelf, &new_row);
	if (!has_old && !has_new)
	{
		bguard_ddl_poison_database(BGUARD_POISON_TRIGGER);
		return;
	}
	if (!(has_old && old_row.tgfoid == function) &&
		!(has_new && new_row.tgfoid == function))
		return;

	parent = has_new ? new_row.tgparentid : old_row.tgparentid;
	switch (access)
	{
		case OAT_DROP:
			if (OidIsValid(parent))
			{
				/* who cached this relation's root must look again */
				bguard_registry_bump_version();
				/* the partition that goes may be what blocked the filter */
				bguard_request_visit();
				break;
			}
			LockRelationOid(has_new ? new_row.tgrelid : old_row.tgrelid,
							AccessExclusiveLock);
			poison_root(tgoid, BGUARD_POISON_TRIGGER_DROP);
			break;

		case OAT_POST_CREATE:
			/* replaced from above: a root's trigger becomes a clone of another */
			if (has_old && !OidIsValid(old_row.tgparentid))
				bguard_registry_poison_trigger(MyDatabaseId, tgoid,
											   BGUARD_POISON_TRIGGER);
			/* a new partition's clone is ALWAYS, one that was replaced is not */
			if (OidIsValid(parent) && has_new && new_row.tgfoid == function &&
				new_row.tgenabled == TRIGGER_FIRES_ALWAYS)
			{
				bguard_registry_bump_version();
				break;
			}
			poison_root(root_trigger(tgoid), BGUARD_POISON_TRIGGER);
			break;

		case OAT_POST_ALTER:
			if (!BGUARD_MUTANT(NO_DISABLE_POISON))
				poison_root(root_trigger(tgoid), BGUARD_POISON_TRIGGER);
			break;

		default:
			break;
	}
}

static void
touch(Oid relid)
{
	MemoryContext oldcxt = MemoryContextSwitchTo(TopTransactionContext);

	if (touched_lxid != BGUARD_MY_LXID)
	{
		touched = NIL;
		touched_lxid = BGUARD_MY_LXID;
	}
	touched = list_append_unique_oid(touched, relid);
	MemoryContextSwitchTo(oldcxt);
}

static bool
is_touched(Oid relid)
{
	return touched_lxid == BGUARD_MY_LXID && list_member_oid(touched, relid);
}

/* the attribute as this command leaves it; false if its row is not found */
static bool
read_new_attribute(Oid relid, AttrNumber attnum, FormData_pg_attribute *att)
{
	Relation	pg_attribute = table_open(AttributeRelationId, AccessShareLock);
	ScanKeyData keys[2];
	SysScanDesc scan;
	HeapTuple	tuple;
	bool		found;

	ScanKeyInit(&keys[0], Anum_pg_attribute_attrelid, BTEqualStrategyNumber,
				F_OIDEQ, ObjectIdGetDatum(relid));
	ScanKeyInit(&keys[1], Anum_pg_attribute_attnum, BTEqualStrategyNumber,
				F_INT2EQ, Int16GetDatum(attnum));
	scan = systable_beginscan(pg_attribute, AttributeRelidNumIndexId, true,
							  SnapshotSelf, 2, keys);
	tuple = systable_getnext(scan);
	found = HeapTupleIsValid(tuple);
	if (found)
		memcpy(att, GETSTRUCT(tuple), ATTRIBUTE_FIXED_PART_SIZE);
	systable_endscan(scan);
	table_close(pg_attribute, AccessShareLock);
	return found;
}

static bool
is_key(const BGuardDefinition *def, const char *name)
{
	for (int i = 0; i < def->ncols; i++)
	{
		if (strcmp(def->names[i], name) == 0)
			return true;
	}
	return false;
}

/*
 * A column was altered or is being dropped.  Names tell whether it is a key:
 * arguments are kept up with them, and partitions number columns differently.
 */
static void
column_event(ObjectAccessType access, Oid relid, AttrNumber attnum)
{
	List	   *triggers = bguard_ddl_triggers(relid);
	FormData_pg_attribute old_att;
	FormData_pg_attribute new_att;
	HeapTuple	tuple;
	bool		has_new = false;
	bool		renamed;
	bool		changed;
	bool		any_key = false;
	ListCell   *lc;

	if (triggers == NIL)
		return;
	tuple = SearchSysCache2(ATTNUM, ObjectIdGetDatum(relid),
							Int16GetDatum(attnum));
	if (!HeapTupleIsValid(tuple))
	{
		bguard_ddl_poison_database(BGUARD_POISON_COLUMN);
		return;
	}
	memcpy(&old_att, GETSTRUCT(tuple), ATTRIBUTE_FIXED_PART_SIZE);
	ReleaseSysCache(tuple);

	if (access == OAT_POST_ALTER)
		has_new = read_new_attribute(relid, attnum, &new_att);
	renamed = has_new &&
		strcmp(NameStr(old_att.attname), NameStr(new_att.attname)) != 0;
	changed = !has_new || renamed ||
		old_att.atttypid != new_att.atttypid ||
		old_att.attcollation != new_att.attcollation;

	foreach(lc, triggers)
	{
		BGuardDefinition *def = lfirst(lc);

		if (!is_key(def, NameStr(old_att.attname)))
			continue;
		any_key = true;
		if (changed)
			poison_root(def->root_tgoid, BGUARD_POISON_COLUMN);
	}
	if (any_key && !changed)
		touch(relid);
	/* another column may have got the name of one that was missing */
	if (!any_key && renamed)
		bguard_request_visit();
	if (any_key && renamed)
		bguard_ddl_note_rename(relid, NameStr(old_att.attname),
							   NameStr(new_att.attname));
}

/* the relation got a new file, or will be emptied when the command goes on */
static void
rewrite_event(Oid relid)
{
	ListCell   *lc;

	foreach(lc, bguard_ddl_triggers(relid))
	{
		BGuardDefinition *def = lfirst(lc);

		if (is_touched(relid) || !OidIsValid(def->root_tgoid))
			poison_root(def->root_tgoid, BGUARD_POISON_REWRITE);
		else
			bguard_request_rotation(def->root_relid);
	}
}

/* parents of a relation, of whatever kind; snapshot NULL: the catalog snapshot */
static List *
parents_of(Oid relid, Snapshot snapshot)
{
	Relation	pg_inherits = table_open(InheritsRelationId, AccessShareLock);
	List	   *parents = NIL;
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;

	ScanKeyInit(&key, Anum_pg_inherits_inhrelid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(relid));
	scan = systable_beginscan(pg_inherits, InheritsRelidSeqnoIndexId, true,
							  snapshot, 1, &key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
		parents = lappend_oid(parents,
							  ((Form_pg_inherits) GETSTRUCT(tuple))->inhparent);
	systable_endscan(scan);
	table_close(pg_inherits, AccessShareLock);
	return parents;
}

/* is the relation a child of one that carries our trigger? */
static bool
is_guarded_child(Oid relid)
{
	ListCell   *lc;

	foreach(lc, parents_of(relid, NULL))
	{
		if (bguard_ddl_triggers(lfirst_oid(lc)) != NIL)
			return true;
	}
	return false;
}

static void
relation_event(ObjectAccessType access, Oid relid, int subid, void *arg)
{
	if (subid != 0)
	{
		/* also without an entry: a rename has to be followed */
		if (access == OAT_POST_ALTER || access == OAT_DROP)
			column_event(access, relid, (AttrNumber) subid);
		/* a new column may be the one that was missing */
		else if (access == OAT_POST_CREATE && bguard_ddl_triggers(relid) != NIL)
			bguard_request_visit();
		return;
	}
	if (!bguard_registry_database_used(MyDatabaseId))
		return;

	switch (access)
	{
		case OAT_DROP:

			/*
			 * The triggers of a table go first, and their events have done the
			 * rest already.  This one leaves the better reason.
			 */
			bguard_registry_poison_relation(MyDatabaseId, relid,
											BGUARD_POISON_RELATION);
			if (is_guarded_child(relid))
				bguard_request_visit();
			break;

		case OAT_TRUNCATE:
			rewrite_event(relid);
			break;

		case OAT_POST_ALTER:
			if (((ObjectAccessPostAlter *) arg)->is_internal)
				rewrite_event(relid);
			break;

		default:
			break;
	}
}

/* the command's and our own */
#define REFERENCES_EXPECTED	2

/*
 * Does the new child hold no row, and will rows be added to it as to any other
 * partition?  The command holds AccessExclusiveLock on it.
 *
 * A statement of this session that is at work on the child, and calls the command
 * in a function or a trigger, has a copy of the triggers of before.  ATTACH does
 * not look for that.
 */
static bool
is_empty_partition(Oid child)
{
	Relation	rel = try_relation_open(child, NoLock);
	bool		result = false;

	if (rel == NULL)
		return false;
	if (rel->rd_refcnt > REFERENCES_EXPECTED)
		result = false;
	else if (rel->rd_rel->relkind == RELKIND_PARTITIONED_TABLE)
		result = find_inheritance_children_extended(child, false, NoLock,
													NULL, NULL) == NIL;
	else if (rel->rd_rel->relkind == RELKIND_RELATION &&
			 rel->rd_rel->relam == HEAP_TABLE_AM_OID)
		result = RelationGetNumberOfBlocks(rel) == 0;
	relation_close(rel, NoLock);
	return result;
}

static void
inherits_event(Oid child, Oid parent)
{
	List	   *triggers;
	ListCell   *lc;

	if (!bguard_registry_database_used(MyDatabaseId))
		return;
	triggers = bguard_ddl_triggers(parent);
	if (triggers == NIL)
		return;
	/* once this command is done, which is what counts */
	if (!list_member_oid(parents_of(child, SnapshotSelf), parent))
	{
		/* a detach: harmless, and the child may be what blocked the filter */
		bguard_request_visit();
		return;
	}
	if (get_rel_relkind(parent) == RELKIND_PARTITIONED_TABLE &&
		is_empty_partition(child))
		return;

	foreach(lc, triggers)
		poison_root(((BGuardDefinition *) lfirst(lc))->root_tgoid,
					BGUARD_POISON_ATTACH);
}

static void
ddl_access(ObjectAccessType access, Oid classId, Oid objectId, int subId,
		   void *arg)
{
	if (prev_access)
		prev_access(access, classId, objectId, subId, arg);

	if (access == OAT_NAMESPACE_SEARCH || access == OAT_FUNCTION_EXECUTE)
		return;
	if (!bguard_attached() || IsBootstrapProcessingMode() || IsBinaryUpgrade ||
		!OidIsValid(MyDatabaseId))
		return;

	switch (classId)
	{
		case TriggerRelationId:
			trigger_event(access, objectId);
			break;
		case RelationRelationId:
			relation_event(access, objectId, subId, arg);
			break;
		case InheritsRelationId:
			if (access == OAT_POST_ALTER)
				inherits_event(objectId,
							   ((ObjectAccessPostAlter *) arg)->auxiliary_id);
			break;
		case ProcedureRelationId:
			bguard_ddl_function_event(objectId);
			break;
		case OperatorClassRelationId:
		case AccessMethodProcedureRelationId:
			bguard_ddl_opclass_event();
			break;
		default:
			break;
	}
}

/*
 * bguard_ddl_init
 *		See ddl.h.
 */
void
bguard_ddl_init(void)
{
	prev_access = object_access_hook;
	object_access_hook = ddl_access;
	bguard_ddl_rename_init();
	bguard_ddl_utility_init();
}
