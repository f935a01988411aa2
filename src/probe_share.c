/*
 * probe_share.c
 *		Which share of the keys that a query asks for may be in the filter?
 *
 * By the filter where it can be asked, else by statistics, see probe_support.c.  The
 * user may ask, and the tracked relation need not be locked any more: what is read of
 * it are the words of the filter and rows of the syscache.
 */
#include "postgres.h"

#include "access/nbtree.h"
#include "access/transam.h"
#include "catalog/pg_class.h"
#include "catalog/pg_statistic.h"
#include "nodes/primnodes.h"
#include "probe_support.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/typcache.h"

/* statistics that know no exception are not trusted further than this */
#define MAX_SHARE		0.99
/* values of a list of statistics that are looked at */
#define MAX_SAMPLE		200

/* a value of a variable: is it in the filter, with the constants beside it? */
typedef struct FilterTest
{
	const BGuardBloom *filter;
	int			nparts;
	int			varying;
	BGuardKeyArg arg;
	uint64		hashes[BGUARD_MAX_KEY_COLUMNS];
} FilterTest;

/* is it between the smallest and the largest value that statistics know? */
typedef struct RangeTest
{
	FmgrInfo	cmp;			/* variable's type, column's type */
	Oid			collid;
	Datum		low;
	Datum		high;
} RangeTest;

typedef bool (*ValueTest) (Datum value, void *context);

/* built in: trusted not to raise */
static bool
built_in(Oid function)
{
	return function < FirstNormalObjectId;
}

/* can values of the type be hashed for the part, without an input function? */
static bool
can_hash(BGuardKeyArg *arg, const BGuardKeyPart *part, Oid type)
{
	return built_in(part->hashproc) && built_in(part->innerproc) &&
		bguard_keys_arg_init(arg, part, type, CurrentMemoryContext) &&
		arg->kind == BGUARD_ARG_HASH && built_in(arg->part.hashproc);
}

static bool
in_filter(Datum value, void *context)
{
	FilterTest *test = context;

	test->hashes[test->varying] = bguard_keys_hash_arg(&test->arg, value,
													   bguard_control->seed);
	return bguard_bloom_test(test->filter,
							 bguard_keys_combine(test->hashes, test->nparts,
												 bguard_control->seed));
}

static bool
in_range(Datum value, void *context)
{
	RangeTest  *test = context;

	return DatumGetInt32(FunctionCall2Coll(&test->cmp, test->collid, value,
										   test->low)) >= 0 &&
		DatumGetInt32(FunctionCall2Coll(&test->cmp, test->collid, value,
										test->high)) <= 0;
}

static double
null_share(const VariableStatData *var)
{
	if (var->statsTuple == NULL)
		return 0;
	return ((Form_pg_statistic) GETSTRUCT(var->statsTuple))->stanullfrac;
}

/*
 * Share of a variable's values, not counting nulls, that pass the test; -1 when
 * statistics have no values, or none that the user may see.
 */
static double
share_of_values(const VariableStatData *var, ValueTest test, void *context)
{
	AttStatsSlot slot;
	double		nulls = null_share(var);
	double		known = 0;
	double		passed = 0;
	double		rest;
	int			n = 0;
	int			hits = 0;

	if (var->statsTuple == NULL || !var->acl_ok || nulls >= 1)
		return -1;

	if (get_attstatsslot(&slot, var->statsTuple, STATISTIC_KIND_MCV, InvalidOid,
						 ATTSTATSSLOT_VALUES | ATTSTATSSLOT_NUMBERS))
	{
		/* the most common come first */
		for (; n < Min(Min(slot.nvalues, slot.nnumbers), MAX_SAMPLE); n++)
		{
			known += slot.numbers[n];
			if (test(slot.values[n], context))
			{
				passed += slot.numbers[n];
				hits++;
			}
		}
		free_attstatsslot(&slot);
	}

	/* the others, if there are more than rounding leaves */
	rest = 1 - nulls - known;
	if (rest > 1e-4)
	{
		if (get_attstatsslot(&slot, var->statsTuple, STATISTIC_KIND_HISTOGRAM,
							 InvalidOid, ATTSTATSSLOT_VALUES))
		{
			int			sample = Min(slot.nvalues, MAX_SAMPLE);

			hits = 0;
			for (n = 0; n < sample; n++)
				hits += test(slot.values[(int64) n * slot.nvalues / sample], context);
			free_attstatsslot(&slot);
		}
		if (n == 0)
			return -1;
		passed += rest * (hits + 0.5) / (n + 1);
		known += rest;
	}
	return known > 0 ? passed / known : -1;
}

/* ask the filter for the values of the one part that varies; -1: cannot be done */
static double
share_by_filter(const BGuardTarget *target, const BGuardTargetKey *parts)
{
	FilterTest	test;

	if (!target->ready)
		return -1;
	test.filter = &target->filter;
	test.nparts = target->ncols;
	test.varying = -1;
	for (int i = 0; i < target->ncols; i++)
	{
		Const	   *constant = parts[i].constant;
		BGuardKeyArg arg;

		if (!can_hash(&arg, &target->parts[i],
					  constant ? constant->consttype : parts[i].var.vartype))
			return -1;
		if (constant != NULL)
			test.hashes[i] = bguard_keys_hash_arg(&arg, constant->constvalue,
												  bguard_control->seed);
		else if (test.varying >= 0)
			return -1;
		else
		{
			test.varying = i;
			test.arg = arg;
		}
	}
	if (test.varying < 0)
		return bguard_bloom_test(test.filter,
								 bguard_keys_combine(test.hashes, test.nparts,
													 bguard_control->seed)) ? 1 : 0;
	return share_of_values(&parts[test.varying].var, in_filter, &test);
}

/* extend the range by the values of a list; they are copies */
static void
widen(AttStatsSlot *slot, FmgrInfo *cmp, RangeTest *test, bool *any,
	  int16 typlen, bool typbyval)
{
	for (int i = 0; i < slot->nvalues; i++)
	{
		if (!*any || DatumGetInt32(FunctionCall2Coll(cmp, test->collid,
													 slot->values[i], test->low)) < 0)
			test->low = datumCopy(slot->values[i], typbyval, typlen);
		if (!*any || DatumGetInt32(FunctionCall2Coll(cmp, test->collid,
													 slot->values[i], test->high)) > 0)
			test->high = datumCopy(slot->values[i], typbyval, typlen);
		*any = true;
	}
}

/* share of a variable's values in the range of the column; 1 if it is not known */
static double
share_in_range(const BGuardTarget *target, int col, HeapTuple stats,
			   const VariableStatData *var)
{
	TypeCacheEntry *ours = lookup_type_cache(target->parts[col].basetype,
											 TYPECACHE_BTREE_OPFAMILY | TYPECACHE_CMP_PROC_FINFO);
	TypeCacheEntry *theirs = lookup_type_cache(getBaseType(var->vartype),
											   TYPECACHE_BTREE_OPFAMILY);
	static const int kinds[] = {STATISTIC_KIND_MCV, STATISTIC_KIND_HISTOGRAM};
	RangeTest	test;
	bool		any = false;
	Oid			proc;
	double		share;

	if (!var->acl_ok || var->statsTuple == NULL ||
		!OidIsValid(ours->btree_opf) || ours->btree_opf != theirs->btree_opf ||
		IsPolymorphicType(ours->btree_opintype) ||
		!OidIsValid(ours->cmp_proc_finfo.fn_oid) ||
		!built_in(ours->cmp_proc_finfo.fn_oid))
		return 1;
	proc = get_opfamily_proc(ours->btree_opf, theirs->btree_opintype,
							 ours->btree_opintype, BTORDER_PROC);
	if (!OidIsValid(proc) || !built_in(proc))
		return 1;
	fmgr_info(proc, &test.cmp);
	test.collid = target->collids[col];

	for (int i = 0; i < lengthof(kinds); i++)
	{
		AttStatsSlot slot;

		if (!get_attstatsslot(&slot, stats, kinds[i], InvalidOid,
							  ATTSTATSSLOT_VALUES))
			continue;
		widen(&slot, &ours->cmp_proc_finfo, &test, &any, ours->typlen,
			  ours->typbyval);
		free_attstatsslot(&slot);
	}
	if (!any)
		return 1;
	share = share_of_values(var, in_range, &test);
	return share < 0 ? 1 : share;
}

/* number of distinct values by statistics of the tracked relation; 0: unknown */
static double
distinct_values(Oid relid, HeapTuple stats)
{
	double		distinct = ((Form_pg_statistic) GETSTRUCT(stats))->stadistinct;
	HeapTuple	tuple;

	if (distinct >= 0)
		return distinct;
	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	if (!HeapTupleIsValid(tuple))
		return 0;
	distinct *= -((Form_pg_class) GETSTRUCT(tuple))->reltuples;
	ReleaseSysCache(tuple);
	return Max(distinct, 0);
}

/* compare statistics; -1 when a number of distinct values is not known */
static double
share_by_statistics(const BGuardTarget *target, BGuardTargetKey *parts)
{
	double		ours = 1;
	double		theirs = 1;
	double		rows = -1;
	double		share = 1;
	bool		known = true;

	for (int i = 0; i < target->ncols; i++)
	{
		HeapTuple	stats = SearchSysCache3(STATRELATTINH,
											ObjectIdGetDatum(target->stats_relid),
											Int16GetDatum(target->stats_attnums[i]),
											BoolGetDatum(target->stats_inherited));
		VariableStatData *var = &parts[i].var;
		bool		isdefault;

		if (HeapTupleIsValid(stats))
		{
			ours *= distinct_values(target->stats_relid, stats);
			if (parts[i].constant == NULL)
				share *= share_in_range(target, i, stats, var);
			ReleaseSysCache(stats);
		}
		else
			ours = 0;
		if (parts[i].constant != NULL)
			continue;
		theirs *= get_variable_numdistinct(var, &isdefault);
		known &= !isdefault;
		if (var->rel != NULL)
			rows = Max(rows, var->rel->tuples);
	}

	if (target->ready)
		ours = target->keys;
	if (rows > 0)
		theirs = Min(theirs, rows);
	if (!known || ours <= 0 || theirs <= 0)
		return -1;
	share *= Min(ours / theirs, 1);
	return Min(share, MAX_SHARE);
}

/*
 * bguard_share_of_rows
 *		See probe_support.h.
 */
double
bguard_share_of_rows(const BGuardTarget *target, BGuardTargetKey *parts)
{
	double		nulls = 0;
	double		share;

	for (int i = 0; i < target->ncols; i++)
	{
		if (parts[i].constant == NULL)
			nulls = 1 - (1 - nulls) * (1 - null_share(&parts[i].var));
		else if (parts[i].constant->constisnull)
			return 1;
	}
	share = share_by_filter(target, parts);
	if (share >= 0)
		share = Max(share, target->rate);
	else
	{
		share = share_by_statistics(target, parts);
		if (share < 0)
			share = BGUARD_DEFAULT_SHARE;
		share += (1 - share) * target->rate;
	}
	return nulls + (1 - nulls) * share;
}
