/*
 * probe_resolve.c
 *		What a probe caches: which filter is asked, how a key is hashed, who may ask.
 *
 * Reads catalogs while the caller holds AccessShareLock on the named relation; when
 * that has to be done again is said in probe.c.  Errors of the caller are raised
 * here: columns, types, number of key parts, privilege.
 */
#include "postgres.h"

#include "access/relation.h"
#include "catalog/objectaddress.h"
#include "compat.h"
#include "definition.h"
#include "miscadmin.h"
#include "probe_state.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/rls.h"

static BGuardProbeReason resolve_filter(BGuardProbe *probe, Relation rel);
static BGuardDefinition *choose_filter(Relation rel, List *defs, int ncols,
									   char **names);
static void check_count(BGuardProbe *probe, Relation rel, int ncols,
						char **names);
static void init_argument(BGuardProbe *probe, int i,
						  const BGuardKeyPart *part, const char *name);

/* read the catalogs; the relation is locked, if it exists */
void
bguard_probe_resolve(BGuardProbe *probe)
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

	/*
	 * Before anything is looked up: what comes later is then noticed.  What came
	 * before, like another body of a hash function, must be seen, although nothing
	 * is locked anew in a transaction that goes on.
	 */
	probe->version = bguard_registry_version();
	AcceptInvalidationMessages();

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
		col->innerproc = part.innerproc;
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
void
bguard_probe_check_rights(BGuardProbe *probe, Oid userid, int sec_context)
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
