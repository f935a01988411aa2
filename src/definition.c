/*
 * definition.c
 *		The trigger is the definition of a filter: find it, read it, judge it.
 *
 * pg_trigger has no system cache, so rows are fetched by its OID index, with the
 * catalog snapshot of the moment.  Nothing here takes a lock on a user's
 * relation or touches shared memory.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/relation.h"
#include "access/table.h"
#include "catalog/indexing.h"
#include "catalog/objectaddress.h"
#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_trigger.h"
#include "commands/trigger.h"
#include "compat.h"
#include "core/sizing.h"
#include "definition.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/catcache.h"
#include "utils/fmgroids.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"
#include "utils/varlena.h"

static Oid	function_oid = InvalidOid;
static bool function_known = false;
static uint64 invalidations = 0;

static void
forget_function(Datum arg, int cacheid, uint32 hashvalue)
{
	function_known = false;
	invalidations++;
}

/* is the pg_proc row the C function of this library that our triggers call? */
static bool
is_maintain(HeapTuple tuple)
{
	Form_pg_proc proc = (Form_pg_proc) GETSTRUCT(tuple);
	Datum		source;
	bool		isnull;

	if (proc->pronargs != 0 || proc->prolang != ClanguageId)
		return false;
	source = SysCacheGetAttr(PROCOID, tuple, Anum_pg_proc_prosrc, &isnull);
	return !isnull && strcmp(TextDatumGetCString(source), "bloomguard_maintain") == 0;
}

/*
 * bguard_definition_function
 *		OID of bloomguard_maintain() in this database, InvalidOid without the
 *		extension.  Told by what it calls, so that it is found also after ALTER
 *		EXTENSION ... DROP FUNCTION; only superusers create C functions.
 */
Oid
bguard_definition_function(void)
{
	static bool registered = false;
	uint64		before;
	Oid			found = InvalidOid;
	CatCList   *list;

	if (function_known)
		return function_oid;

	if (!registered)
	{
		CacheRegisterSyscacheCallback(PROCOID, forget_function, (Datum) 0);
		registered = true;
	}

	before = invalidations;
	list = SearchSysCacheList1(PROCNAMEARGSNSP,
							   CStringGetDatum("bloomguard_maintain"));
	for (int i = 0; i < list->n_members; i++)
	{
		Oid			oid = ((Form_pg_proc) GETSTRUCT(&list->members[i]->tuple))->oid;

		/* of several, the first: one that is created later changes nothing */
		if (is_maintain(&list->members[i]->tuple) &&
			(!OidIsValid(found) || oid < found))
			found = oid;
	}
	ReleaseSysCacheList(list);

	/* an invalidation during the look-up wins */
	function_oid = found;
	function_known = before == invalidations;
	return found;
}

/*
 * bguard_definition_was_function
 *		Is, or was before this command, the function one that our triggers call?
 *		Also when its name or its body is another for the moment.
 */
bool
bguard_definition_was_function(Oid funcoid)
{
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(funcoid));
	bool		result;

	if (!HeapTupleIsValid(tuple))
		return false;
	result = is_maintain(tuple) ||
		strcmp(NameStr(((Form_pg_proc) GETSTRUCT(tuple))->proname),
			   "bloomguard_maintain") == 0;
	ReleaseSysCache(tuple);
	return result;
}

/*
 * bguard_definition_split
 *		Split and check an identifier list.  *ncols 1 .. 8 on success (NULL).
 */
char *
bguard_definition_split(const char *list, int *ncols, char **names)
{
	List	   *parts;
	ListCell   *lc;
	int			n = 0;

	*ncols = 0;
	if (!SplitIdentifierString(pstrdup(list), ',', &parts))
		return psprintf(_("\"%s\" is not a list of column names"), list);
	if (parts == NIL)
		return pstrdup(_("the list of key columns is empty"));
	if (list_length(parts) > BGUARD_MAX_KEY_COLUMNS)
		return psprintf(_("a key has at most %d columns"),
						BGUARD_MAX_KEY_COLUMNS);
	foreach(lc, parts)
	{
		char	   *name = lfirst(lc);

		for (int i = 0; i < n; i++)
		{
			if (strcmp(names[i], name) == 0)
				return psprintf(_("column \"%s\" is named twice"), name);
		}
		names[n++] = pstrdup(name);
	}
	*ncols = n;
	return NULL;
}

/*
 * bguard_definition_join
 *		The reverse: how the list is stored in the trigger's arguments.
 */
char *
bguard_definition_join(int ncols, char **names)
{
	StringInfoData buf;

	initStringInfo(&buf);
	for (int i = 0; i < ncols; i++)
		appendStringInfo(&buf, "%s%s", i > 0 ? ", " : "",
						 quote_identifier(names[i]));
	return buf.data;
}

/*
 * bguard_definition_sentence
 *		Phrases stand alone in the views, but begin an error's detail.
 */
char *
bguard_definition_sentence(char *phrase)
{
	*phrase = pg_toupper((unsigned char) *phrase);
	return phrase;
}

/*
 * bguard_definition_parse
 *		Read trigger arguments: '<columns>' ['false_positive_rate=..']
 *		['capacity=..'].  Whatever cannot be read becomes def->problem.
 */
void
bguard_definition_parse(int nargs, char **args, BGuardDefinition *def)
{
	def->key_columns = pstrdup(nargs > 0 ? args[0] : "");
	def->ncols = 0;
	def->rate = 0;
	def->capacity = 0;

	def->problem = bguard_definition_split(def->key_columns, &def->ncols,
										   def->names);
	for (int i = 1; i < nargs && def->problem == NULL; i++)
	{
		const char *value = strchr(args[i], '=');
		char	   *end = NULL;
		bool		ok = false;

		value = value ? value + 1 : "";
		errno = 0;
		if (strncmp(args[i], "false_positive_rate=", 20) == 0)
		{
			def->rate = strtod(value, &end);
			ok = def->rate >= BGUARD_MIN_RATE && def->rate <= BGUARD_MAX_RATE;
		}
		else if (strncmp(args[i], "capacity=", 9) == 0)
		{
			def->capacity = strtoll(value, &end, 10);
			ok = def->capacity >= 1 && def->capacity <= BGUARD_MAX_CAPACITY;
		}
		if (!ok || errno != 0 || end == value || *end != '\0')
			def->problem = psprintf(_("trigger argument \"%s\" cannot be read"),
									args[i]);
	}
	if (def->problem != NULL)
	{
		def->ncols = 0;
		def->rate = 0;
		def->capacity = 0;
	}
}

/*
 * bguard_definition_open
 *		See definition.h.
 */
Relation
bguard_definition_open(bool isnull, Oid relid, bool own, LOCKMODE lockmode)
{
	char		relkind;
	Relation	rel = NULL;

	if (isnull)
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("relation must not be null")));

	relkind = get_rel_relkind(relid);
	if (relkind != '\0' && own &&
		!bguard_compat_owns_relation(relid, GetUserId()))
		aclcheck_error(ACLCHECK_NOT_OWNER, get_relkind_objtype(relkind),
					   get_rel_name(relid));
	if (relkind != '\0')
		rel = try_relation_open(relid, lockmode);
	if (rel == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("relation with OID %u does not exist", relid)));

	/* the owner may have changed while we waited for the lock */
	if (own && !bguard_compat_owns_relation(relid, GetUserId()))
		aclcheck_error(ACLCHECK_NOT_OWNER, get_relkind_objtype(relkind),
					   RelationGetRelationName(rel));
	return rel;
}

/*
 * bguard_definition_fetch
 *		See definition.h.
 */
HeapTuple
bguard_definition_fetch(Oid tgoid, Snapshot snapshot)
{
	Relation	pg_trigger = table_open(TriggerRelationId, AccessShareLock);
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;

	ScanKeyInit(&key, Anum_pg_trigger_oid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(tgoid));
	scan = systable_beginscan(pg_trigger, TriggerOidIndexId, true, snapshot, 1,
							  &key);
	tuple = systable_getnext(scan);
	if (HeapTupleIsValid(tuple))
		tuple = heap_copytuple(tuple);
	systable_endscan(scan);
	table_close(pg_trigger, AccessShareLock);
	return tuple;
}

/*
 * bguard_definition_root
 *		The trigger at the top of the tgparentid chain, and its relation.
 *
 * Never by partition ancestors: while DETACH CONCURRENTLY is pending that chain
 * is cut, yet old snapshots still read the leaf through its root.
 */
bool
bguard_definition_root(Oid tgoid, Oid *root_tgoid, Oid *root_relid)
{
	bool		found = false;

	while (OidIsValid(tgoid))
	{
		HeapTuple	tuple = bguard_definition_fetch(tgoid, NULL);

		found = HeapTupleIsValid(tuple);
		if (!found)
			break;
		*root_tgoid = tgoid;
		*root_relid = ((Form_pg_trigger) GETSTRUCT(tuple))->tgrelid;
		tgoid = ((Form_pg_trigger) GETSTRUCT(tuple))->tgparentid;
		heap_freetuple(tuple);
	}
	return found;
}

/*
 * bguard_definition_of_relation
 *		Our triggers on an open relation, in the order of their names.
 */
List *
bguard_definition_of_relation(Relation rel)
{
	Oid			function = bguard_definition_function();
	List	   *result = NIL;
	TriggerDesc *triggers;

	/*
	 * A copy: catalogs are read below, and an invalidation that arrives then
	 * (CREATE TRIGGER in another session goes together with our lock) frees the
	 * relation's own.
	 */
	triggers = CopyTriggerDesc(rel->trigdesc);
	if (triggers == NULL || !OidIsValid(function))
		return NIL;

	for (int i = 0; i < triggers->numtriggers; i++)
	{
		Trigger    *trigger = &triggers->triggers[i];
		BGuardDefinition *def;

		if (trigger->tgfoid != function)
			continue;
		def = palloc0(sizeof(BGuardDefinition));
		def->tgoid = def->root_tgoid = trigger->tgoid;
		def->root_relid = RelationGetRelid(rel);
		def->tgname = pstrdup(trigger->tgname);
		if (trigger->tgisclone &&
			!bguard_definition_root(trigger->tgoid, &def->root_tgoid,
									&def->root_relid))
			continue;
		bguard_definition_parse(trigger->tgnargs, trigger->tgargs, def);
		result = lappend(result, def);
	}
	return result;
}

/*
 * bguard_definition_find
 *		Columns and their order must be the same.
 */
BGuardDefinition *
bguard_definition_find(Relation rel, int ncols, char **names)
{
	ListCell   *lc;

	foreach(lc, bguard_definition_of_relation(rel))
	{
		BGuardDefinition *def = lfirst(lc);
		bool		same = def->ncols == ncols;

		for (int i = 0; i < ncols && same; i++)
			same = strcmp(def->names[i], names[i]) == 0;
		if (same)
			return def;
	}
	return NULL;
}

/*
 * bguard_definition_select
 *		For SQL functions that take (relation, key_columns DEFAULT NULL).
 */
List *
bguard_definition_select(Relation rel, const char *key_columns)
{
	int			ncols;
	char	   *names[BGUARD_MAX_KEY_COLUMNS];
	List	   *defs = NIL;

	if (key_columns == NULL)
		defs = bguard_definition_of_relation(rel);
	else
	{
		char	   *problem = bguard_definition_split(key_columns, &ncols, names);
		BGuardDefinition *def;

		if (problem != NULL)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("invalid list of key columns"),
					 errdetail("%s.", bguard_definition_sentence(problem))));
		def = bguard_definition_find(rel, ncols, names);
		if (def != NULL)
			defs = list_make1(def);
	}
	if (defs == NIL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 key_columns == NULL ?
				 errmsg("relation \"%s\" is not tracked", RelationGetRelationName(rel)) :
				 errmsg("relation \"%s\" is not tracked on (%s)",
						RelationGetRelationName(rel), key_columns),
				 errhint("See bloomguard_filters for what is.")));
	return defs;
}

/*
 * bguard_definition_unpack
 *		See definition.h.
 */
int
bguard_definition_unpack(const char *data, Size size, int nargs, char **args)
{
	for (int i = 0; i < nargs; i++)
	{
		Size		len = strnlen(data, size);

		if (len == size)
			return 0;
		args[i] = pstrdup(data);
		data += len + 1;
		size -= len + 1;
	}
	return Max(nargs, 0);
}

/*
 * bguard_definition_tgargs
 *		Arguments of a pg_trigger row.
 */
void
bguard_definition_tgargs(HeapTuple tuple, TupleDesc desc, int *nargs,
						 char ***args)
{
	bool		isnull;
	Datum		value = heap_getattr(tuple, Anum_pg_trigger_tgargs, desc, &isnull);
	bytea	   *packed;

	*nargs = ((Form_pg_trigger) GETSTRUCT(tuple))->tgnargs;
	*args = palloc0(sizeof(char *) * Max(*nargs, 1));
	if (isnull)
		*nargs = 0;
	if (*nargs == 0)
		return;

	packed = DatumGetByteaPP(value);
	*nargs = bguard_definition_unpack(VARDATA_ANY(packed),
									  VARSIZE_ANY_EXHDR(packed), *nargs, *args);
}

/*
 * bguard_definition_update_tgargs
 *		Replace the arguments of a trigger in place: its OID, its state and its
 *		clones stay as they are.  The caller holds a lock on the relation that
 *		keeps other definition changes away.
 */
void
bguard_definition_update_tgargs(Oid tgoid, int nargs, char **args)
{
	Relation	pg_trigger = table_open(TriggerRelationId, RowExclusiveLock);
	HeapTuple	tuple = bguard_definition_fetch(tgoid, NULL);
	Datum		values[Natts_pg_trigger] = {0};
	bool		nulls[Natts_pg_trigger] = {0};
	bool		replace[Natts_pg_trigger] = {0};
	StringInfoData buf;
	bytea	   *packed;
	HeapTuple	changed;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "could not find tuple for trigger %u", tgoid);

	initStringInfo(&buf);
	for (int i = 0; i < nargs; i++)
		appendBinaryStringInfo(&buf, args[i], (int) strlen(args[i]) + 1);
	packed = palloc(VARHDRSZ + buf.len);
	SET_VARSIZE(packed, VARHDRSZ + buf.len);
	memcpy(VARDATA(packed), buf.data, buf.len);

	values[Anum_pg_trigger_tgnargs - 1] = Int16GetDatum((int16) nargs);
	replace[Anum_pg_trigger_tgnargs - 1] = true;
	values[Anum_pg_trigger_tgargs - 1] = PointerGetDatum(packed);
	replace[Anum_pg_trigger_tgargs - 1] = true;
	changed = heap_modify_tuple(tuple, RelationGetDescr(pg_trigger),
								values, nulls, replace);
	CatalogTupleUpdate(pg_trigger, &changed->t_self, changed);
	CacheInvalidateRelcacheByRelid(((Form_pg_trigger) GETSTRUCT(tuple))->tgrelid);
	table_close(pg_trigger, RowExclusiveLock);
}

/* false, too, for a relation that was dropped under our scan */
static bool
is_temporary(Oid relid)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	bool		temporary;

	if (!HeapTupleIsValid(tuple))
		return false;
	temporary = ((Form_pg_class) GETSTRUCT(tuple))->relpersistence == RELPERSISTENCE_TEMP;
	ReleaseSysCache(tuple);
	return temporary;
}

/*
 * bguard_definition_list
 *		Root triggers of ours in the whole database.  pg_trigger has no index by
 *		function, so this reads it all: for workers and views.
 */
List *
bguard_definition_list(void)
{
	Oid			function = bguard_definition_function();
	List	   *result = NIL;
	Relation	pg_trigger;
	SysScanDesc scan;
	HeapTuple	tuple;

	if (!OidIsValid(function))
		return NIL;

	pg_trigger = table_open(TriggerRelationId, AccessShareLock);
	scan = systable_beginscan(pg_trigger, InvalidOid, false, NULL, 0, NULL);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_trigger trigger = (Form_pg_trigger) GETSTRUCT(tuple);
		BGuardDefinition *def;
		int			nargs;
		char	  **args;

		/* a temporary table is refused; by hand it shall not use up an entry */
		if (trigger->tgfoid != function || OidIsValid(trigger->tgparentid) ||
			is_temporary(trigger->tgrelid))
			continue;
		def = palloc0(sizeof(BGuardDefinition));
		def->tgoid = def->root_tgoid = trigger->oid;
		def->root_relid = trigger->tgrelid;
		def->tgname = pstrdup(NameStr(trigger->tgname));
		bguard_definition_tgargs(tuple, RelationGetDescr(pg_trigger),
								 &nargs, &args);
		bguard_definition_parse(nargs, args, def);
		result = lappend(result, def);
	}
	systable_endscan(scan);
	table_close(pg_trigger, AccessShareLock);
	return result;
}
