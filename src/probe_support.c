/*
 * probe_support.c
 *		What the planner is told about bloomguard_might_contain.
 *
 * Without it a condition that passes 1 % of the rows counts as one that passes a
 * third, and a join behind it reads all of a large table instead of a few index
 * entries.
 *
 * SELECTIVITY
 *
 * A row passes if its key is null, is in the filter, or has all bits by chance:
 *		nulls + (1 - nulls) * (share + (1 - share) * p)
 *
 * share (probe_share.c) is measured where that can be done: a column's most common
 * values and the bounds of its histogram are a sample of its values, and the filter
 * itself says which of them are there, in some microseconds and for any type.  That
 * is a statement about the filter at this moment; it is an estimate and nothing else, an
 * answer is never made out of it.  (h + 1/2) / (n + 1) of the values that are not
 * common are taken to be there if h bounds out of n are: the estimator of Krichevsky
 * and Trofimov (IEEE Trans. Inf. Theory 27, 1981), which never says none or all.
 *
 * Where the filter cannot be asked, because there is no generation just now, the key
 * needs an input function (which may raise), or two of its parts vary, statistics are
 * compared: of the values in the range of the tracked column, as many are taken to be
 * there as can be by the numbers of distinct values.  That is how the server estimates
 * semi-joins (eqjoinsel_semi in selfuncs.c).  Without statistics it is
 * BGUARD_DEFAULT_SHARE.
 *
 * Cases in which every probe answers maybe are estimated as such: not preloaded,
 * recovery, serializable, bloomguard.enabled off, no filter, row security.  What
 * passes soon (no generation just now) is not: plans outlive it.
 *
 * RULES
 *
 * Nothing here raises, whatever the arguments: mistakes are for the probe to report, if
 * it is ever executed.  So no input function is called, and no function of a type that
 * is not built in.  Nothing of the tracked relation is looked at unless the user may
 * ask the filter, and no values of another column unless he may read them (acl_ok).
 * The lock on the tracked relation is the one that the probe takes, is taken only if it
 * can be had at once, and is given back at once.
 */
#include "postgres.h"

#include "access/relation.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "compat.h"
#include "definition.h"
#include "guc.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "nodes/supportnodes.h"
#include "optimizer/optimizer.h"
#include "probe_support.h"
#include "registry.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/rls.h"

/* words to tell the fill from */
#define FILL_WORDS		1024

/*
 * Costs in units of cpu_operator_cost; measured against "bigint > constant".  The
 * first call reads catalogs.
 */
#define COST_PROBE		4.0
#define COST_PART		1.5
#define COST_STARTUP	500.0

PG_FUNCTION_INFO_V1(bloomguard_might_contain_support);

static double estimate(SupportRequestSelectivity *req, MemoryContext planner);

Datum
bloomguard_might_contain_support(PG_FUNCTION_ARGS)
{
	Node	   *request = (Node *) PG_GETARG_POINTER(0);

	if (IsA(request, SupportRequestSelectivity))
	{
		SupportRequestSelectivity *req = (SupportRequestSelectivity *) request;
		MemoryContext cxt = AllocSetContextCreate(CurrentMemoryContext,
												  "bloomguard selectivity",
												  ALLOCSET_DEFAULT_SIZES);
		MemoryContext oldcxt = MemoryContextSwitchTo(cxt);
		double		share = estimate(req, oldcxt);

		MemoryContextSwitchTo(oldcxt);
		MemoryContextDelete(cxt);
		CLAMP_PROBABILITY(share);
		req->selectivity = share;
		PG_RETURN_POINTER(req);
	}

	if (IsA(request, SupportRequestCost))
	{
		SupportRequestCost *req = (SupportRequestCost *) request;
		int			nparts = 1;

		if (req->node != NULL && IsA(req->node, FuncExpr))
			nparts = Max(list_length(((FuncExpr *) req->node)->args) - 2, 1);
		req->startup = COST_STARTUP * cpu_operator_cost;
		req->per_tuple = (COST_PROBE + nparts * COST_PART) * cpu_operator_cost;
		PG_RETURN_POINTER(req);
	}

	PG_RETURN_POINTER(NULL);
}

/* does every probe of this transaction answer maybe? */
static bool
always_maybe(void)
{
	return !bguard_attached() || RecoveryInProgress() || !bguard_enabled ||
		BGUARD_OLD_SNAPSHOT_ACTIVE() || IsolationIsSerializable();
}

/* may the user ask about these columns?  See bguard_probe_check_rights(). */
static bool
may_ask(Oid relid, int nattrs, const AttrNumber *attrs)
{
	bool		missing = false;

	if (pg_class_aclcheck_ext(relid, GetUserId(), ACL_SELECT,
							  &missing) == ACLCHECK_OK)
		return !missing;
	if (missing)
		return false;
	if (nattrs == 0)
		return pg_attribute_aclcheck_all(relid, GetUserId(), ACL_SELECT,
										 ACLMASK_ANY) == ACLCHECK_OK;
	for (int i = 0; i < nattrs; i++)
	{
		if (pg_attribute_aclcheck_ext(relid, attrs[i], GetUserId(), ACL_SELECT,
									  &missing) != ACLCHECK_OK || missing)
			return false;
	}
	return true;
}

/* the filter that a probe with these columns would ask; NULL if it would raise */
static BGuardDefinition *
choose(List *defs, int ncols, char **names)
{
	BGuardDefinition *chosen = NULL;
	ListCell   *lc;

	foreach(lc, defs)
	{
		BGuardDefinition *def = lfirst(lc);
		BGuardDefinition *other = chosen;
		int			nother = names != NULL ? ncols : other ? other->ncols : -1;
		char	  **wanted = names != NULL ? names : other ? other->names : NULL;
		bool		same = def->ncols == nother;

		if (def->ncols == 0)
			continue;
		for (int i = 0; i < nother && same; i++)
			same = strcmp(def->names[i], wanted[i]) == 0;
		if (names == NULL && other != NULL && !same)
			return NULL;
		if (chosen == NULL && (names == NULL || same))
			chosen = def;
	}
	return chosen;
}

/* the present generation, if there is one */
static void
read_filter(BGuardTarget *target, const BGuardDefinition *def)
{
	BGuardEntryKey key = {MyDatabaseId, def->root_relid, def->root_tgoid};
	int			number = bguard_registry_find(&key);
	BGuardEntry *entry;
	uint32		slot;
	Size		words;
	double		fill;

	target->rate = def->rate > 0 ? def->rate : bguard_false_positive_rate;
	if (number < 0)
		return;
	entry = bguard_registry_entry(number);
	slot = BGUARD_LINK_CURRENT(pg_atomic_read_u64(&entry->link));
	if (slot == 0 || !bguard_arena_filter(slot, &target->filter))
		return;

	words = Min(target->filter.bits / 64, FILL_WORDS);
	fill = bguard_bloom_count(target->filter.words, words) / (words * 64.0);
	target->rate = bguard_sizing_fill_rate(fill, target->filter.hashes);
	target->keys = bguard_sizing_fill_keys(target->filter.bits,
										   target->filter.hashes, fill);
	target->ready = true;
}

/*
 * Find what is asked.  false: nothing can be said beyond *share.  The relation is
 * locked.
 */
static bool
fill_target(BGuardTarget *target, Relation rel, int ncols, char **names,
			double *share)
{
	List	   *defs = bguard_definition_of_relation(rel);
	BGuardDefinition *def = choose(defs, ncols, names);
	AttrNumber	attrs[BGUARD_MAX_KEY_COLUMNS];

	if (defs == NIL || (def == NULL && names != NULL))
	{
		*share = 1.0;
		return false;
	}
	if (def == NULL)
		return false;

	target->ncols = def->ncols;
	target->stats_relid = def->root_relid;
	target->stats_inherited =
		get_rel_relkind(def->root_relid) == RELKIND_PARTITIONED_TABLE;
	for (int i = 0; i < def->ncols; i++)
	{
		Form_pg_attribute att;

		attrs[i] = get_attnum(RelationGetRelid(rel), def->names[i]);
		if (attrs[i] <= 0)
			return false;
		att = TupleDescAttr(RelationGetDescr(rel), attrs[i] - 1);
		if (bguard_keys_part_init(&target->parts[i], att->atttypid,
								  att->attcollation, CurrentMemoryContext) != NULL)
			return false;
		target->collids[i] = att->attcollation;
		target->stats_attnums[i] = get_attnum(def->root_relid, def->names[i]);
	}
	if (!may_ask(RelationGetRelid(rel), def->ncols, attrs))
		return false;
	if (check_enable_rls(RelationGetRelid(rel), InvalidOid, true) == RLS_ENABLED)
	{
		*share = 1.0;
		return false;
	}
	read_filter(target, def);
	return true;
}

static bool
find_target(BGuardTarget *target, Oid relid, const char *key_columns, double *share)
{
	char	   *names[BGUARD_MAX_KEY_COLUMNS];
	int			ncols = 0;
	Relation	rel;
	bool		found = false;

	/* who may read nothing of it shall not hold the lock, not even for a moment */
	if ((key_columns != NULL &&
		 bguard_definition_split(key_columns, &ncols, names) != NULL) ||
		!may_ask(relid, 0, NULL) ||
		!ConditionalLockRelationOid(relid, AccessShareLock))
		return false;
	rel = try_relation_open(relid, NoLock);
	if (rel != NULL)
	{
		found = fill_target(target, rel, ncols, key_columns ? names : NULL, share);
		relation_close(rel, NoLock);
	}
	UnlockRelationOid(relid, AccessShareLock);
	return found;
}

/*
 * The parts of the key among the arguments; false when they are in an array that
 * is not known.  Not every array holds the parts: it may be the key.
 */
static bool
split_key(List *args, Oid funcid, const BGuardTarget *target, List **key)
{
	Node	   *arg;
	Oid			elemtype;

	*key = list_copy_tail(args, list_length(args) > 2 ? 2 : 1);
	if (list_length(args) != 3)
		return true;
	arg = linitial(*key);
	elemtype = get_element_type(exprType(arg));
	if (!OidIsValid(elemtype) ||
		(get_func_variadictype(funcid) == ANYOID && target->ncols == 1 &&
		 OidIsValid(get_element_type(target->parts[0].basetype))))
		return true;

	*key = NIL;
	if (IsA(arg, ArrayExpr) && !((ArrayExpr *) arg)->multidims)
		*key = ((ArrayExpr *) arg)->elements;
	else if (IsA(arg, Const) && !((Const *) arg)->constisnull)
	{
		Datum	   *values;
		bool	   *nulls;
		int			nvalues;
		int16		typlen;
		bool		typbyval;
		char		typalign;

		get_typlenbyvalalign(elemtype, &typlen, &typbyval, &typalign);
		deconstruct_array(DatumGetArrayTypeP(((Const *) arg)->constvalue), elemtype,
						  typlen, typbyval, typalign, &values, &nulls, &nvalues);
		for (int i = 0; i < Min(nvalues, BGUARD_MAX_KEY_COLUMNS + 1); i++)
			*key = lappend(*key, makeConst(elemtype, -1, InvalidOid, typlen,
										   values[i], nulls[i], typbyval));
	}
	return *key != NIL;
}

/* share of rows that pass */
static double
estimate(SupportRequestSelectivity *req, MemoryContext planner)
{
	bool		named = list_length(req->args) > 2;
	Node	   *relation;
	Node	   *columns;
	const char *key_columns = NULL;
	double		share = BGUARD_DEFAULT_SHARE;
	BGuardTarget target = {0};
	BGuardTargetKey parts[BGUARD_MAX_KEY_COLUMNS] = {{0}};
	List	   *key;

	if (always_maybe())
		return 1.0;
	if (list_length(req->args) < 2)
		return BGUARD_DEFAULT_SHARE;

	relation = linitial(req->args);
	columns = lsecond(req->args);
	if (!IsA(relation, Const) || ((Const *) relation)->consttype != REGCLASSOID)
		return BGUARD_DEFAULT_SHARE;
	if (((Const *) relation)->constisnull)
		return 1.0;
	if (named)
	{
		if (!IsA(columns, Const) || ((Const *) columns)->constisnull ||
			((Const *) columns)->consttype != TEXTOID)
			return BGUARD_DEFAULT_SHARE;
		key_columns = TextDatumGetCString(((Const *) columns)->constvalue);
	}

	if (!find_target(&target, DatumGetObjectId(((Const *) relation)->constvalue),
					 key_columns, &share) ||
		!split_key(req->args, req->funcid, &target, &key) ||
		list_length(key) != target.ncols)
		return share;

	for (int i = 0; i < target.ncols; i++)
	{
		Node	   *node = list_nth(key, i);

		if (IsA(node, Const))
			parts[i].constant = (Const *) node;
		else
		{
			/* may make what the planner keeps: the hash table of join relations */
			MemoryContext oldcxt = MemoryContextSwitchTo(planner);

			examine_variable(req->root, node, 0, &parts[i].var);
			MemoryContextSwitchTo(oldcxt);
		}
	}
	share = bguard_share_of_rows(&target, parts);
	for (int i = 0; i < target.ncols; i++)
	{
		if (parts[i].constant == NULL)
			ReleaseVariableStats(parts[i].var);
	}
	return share;
}
