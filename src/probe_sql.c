/*
 * probe_sql.c
 *		bloomguard_might_contain and bloomguard_check.
 *
 * Each has six overloads, which differ in how the parser resolves the types of
 * the key; one C function serves them all.  Calls with two arguments ask the
 * relation's only filter; calls with more name the key columns and give one
 * value for each, or one array (always, if the overload is VARIADIC text[] or
 * "char"[]).
 *
 * Not strict, so that a NULL anywhere is answered, not passed over: NULL as the
 * result of might_contain would read as "absent" in NOT might_contain(...).
 *
 * No locking rules of its own, see probe.c.
 */
#include "postgres.h"

#include "access/parallel.h"
#include "arena.h"
#include "catalog/partition.h"
#include "fmgr.h"
#include "keys.h"
#include "probe.h"
#include "utils/array.h"
#include "utils/arrayaccess.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

/* the most (relation, column list) pairs a session warns about */
#define MAX_WARNED	64

/* what one call site keeps in fn_extra */
typedef struct ProbeCall
{
	BGuardProbe *probe;
	bool		variadic;		/* key comes as an array */

	/* the question as it was asked last */
	bool		prepared;
	Oid			relid;
	int			nparts;
	char	   *list;			/* key_columns as given, not terminated */
	int			list_len;

	/* of the array's elements */
	Oid			elemtype;
	int16		typlen;
	bool		typbyval;
	char		typalign;

	/* serial of the probe when a missing filter was last dealt with */
	uint64		warned_serial;
} ProbeCall;

PG_FUNCTION_INFO_V1(bloomguard_might_contain);
PG_FUNCTION_INFO_V1(bloomguard_check);

static BGuardAnswer ask(FunctionCallInfo fcinfo, BGuardProbeReason *reason);
static int	spread_array(ProbeCall *call, AnyArrayType *array, Datum *values,
						 bool *nulls);
static void prepare(FunctionCallInfo fcinfo, ProbeCall *call, Oid relid,
					int nparts, const char *list, int list_len);
static void warn_no_filter(Oid relid, const char *list, int list_len);

Datum
bloomguard_might_contain(PG_FUNCTION_ARGS)
{
	BGuardProbeReason reason;

	PG_RETURN_BOOL(ask(fcinfo, &reason) != BGUARD_ANSWER_ABSENT);
}

Datum
bloomguard_check(PG_FUNCTION_ARGS)
{
	BGuardProbeReason reason;

	switch (ask(fcinfo, &reason))
	{
		case BGUARD_ANSWER_ABSENT:
			PG_RETURN_TEXT_P(cstring_to_text("absent"));
		case BGUARD_ANSWER_MAYBE:
			PG_RETURN_TEXT_P(cstring_to_text("maybe"));
		case BGUARD_ANSWER_UNGUARDED:
			break;
	}
	PG_RETURN_TEXT_P(cstring_to_text(psprintf("unguarded: %s",
											  bguard_probe_reason_text(reason))));
}

static BGuardAnswer
ask(FunctionCallInfo fcinfo, BGuardProbeReason *reason)
{
	ProbeCall  *call = (ProbeCall *) fcinfo->flinfo->fn_extra;
	bool		named = PG_NARGS() > 2;
	Datum		values[BGUARD_MAX_KEY_COLUMNS];
	bool		nulls[BGUARD_MAX_KEY_COLUMNS];
	text	   *list_text = NULL;
	const char *list = NULL;
	int			list_len = 0;
	Oid			relid;
	int			nparts;
	BGuardAnswer answer;

	if (unlikely(!bguard_attached()))
	{
		*reason = BGUARD_REASON_NOT_PRELOADED;
		return BGUARD_ANSWER_UNGUARDED;
	}
	if (unlikely(PG_ARGISNULL(0)))
	{
		*reason = BGUARD_REASON_NO_RELATION;
		return BGUARD_ANSWER_UNGUARDED;
	}
	relid = PG_GETARG_OID(0);

	if (unlikely(call == NULL))
	{
		MemoryContext cxt = fcinfo->flinfo->fn_mcxt;

		call = MemoryContextAllocZero(cxt, sizeof(ProbeCall));
		call->probe = bguard_probe_create(cxt);
		call->variadic = named && get_fn_expr_variadic(fcinfo->flinfo);
		fcinfo->flinfo->fn_extra = call;
	}

	if (named)
	{
		if (unlikely(PG_ARGISNULL(1)))
			ereport(ERROR,
					(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
					 errmsg("key_columns must not be null")));
		list_text = PG_GETARG_TEXT_PP(1);
		list = VARDATA_ANY(list_text);
		list_len = VARSIZE_ANY_EXHDR(list_text);
	}

	if (call->variadic)
	{
		if (PG_ARGISNULL(2))
		{
			*reason = BGUARD_REASON_NULL;
			return BGUARD_ANSWER_UNGUARDED;
		}
		nparts = spread_array(call, PG_GETARG_ANY_ARRAY_P(2), values, nulls);
	}
	else
	{
		int			first = named ? 2 : 1;

		nparts = PG_NARGS() - first;
		for (int i = 0; i < Min(nparts, BGUARD_MAX_KEY_COLUMNS); i++)
		{
			values[i] = PG_GETARG_DATUM(first + i);
			nulls[i] = PG_ARGISNULL(first + i);
		}
	}

	/*
	 * Neither relation nor list need be constant, and equal pointers are not
	 * equal contents: the list is compared byte by byte.
	 */
	if (unlikely(!call->prepared ||
				 call->relid != relid ||
				 call->nparts != nparts ||
				 call->list_len != list_len ||
				 (list_len > 0 && memcmp(call->list, list, list_len) != 0)))
		prepare(fcinfo, call, relid, nparts, list, list_len);

	answer = bguard_probe_ask(call->probe, values, nulls, reason);

	if (unlikely(*reason == BGUARD_REASON_NO_FILTER) &&
		call->warned_serial != bguard_probe_serial(call->probe))
	{
		warn_no_filter(relid, list, list_len);
		call->warned_serial = bguard_probe_serial(call->probe);
	}
	return answer;
}

/* the number of elements; values and nulls of the first few */
static int
spread_array(ProbeCall *call, AnyArrayType *array, Datum *values, bool *nulls)
{
	array_iter	iter;
	int			nitems;

	if (unlikely(call->elemtype != AARR_ELEMTYPE(array)))
	{
		call->prepared = false;
		call->elemtype = AARR_ELEMTYPE(array);
		get_typlenbyvalalign(call->elemtype, &call->typlen, &call->typbyval,
							 &call->typalign);
	}

	nitems = ArrayGetNItems(AARR_NDIM(array), AARR_DIMS(array));
	array_iter_setup(&iter, array);
	for (int i = 0; i < Min(nitems, BGUARD_MAX_KEY_COLUMNS); i++)
		values[i] = array_iter_next(&iter, &nulls[i], i, call->typlen,
									call->typbyval, call->typalign);
	return nitems;
}

/* (re)state the question */
static void
prepare(FunctionCallInfo fcinfo, ProbeCall *call, Oid relid, int nparts,
		const char *list, int list_len)
{
	Oid			argtypes[BGUARD_MAX_KEY_COLUMNS];
	int			first = PG_NARGS() > 2 ? 2 : 1;
	char	   *key_columns = NULL;

	call->prepared = false;
	for (int i = 0; i < Min(nparts, BGUARD_MAX_KEY_COLUMNS); i++)
		argtypes[i] = call->variadic ? call->elemtype :
			get_fn_expr_argtype(fcinfo->flinfo, first + i);

	if (list != NULL)
		key_columns = pnstrdup(list, list_len);
	bguard_probe_prepare(call->probe, relid, key_columns, nparts, argtypes,
						 false);

	if (call->list != NULL)
		pfree(call->list);
	call->list = NULL;
	call->list_len = 0;
	if (list_len > 0)
	{
		call->list = MemoryContextAlloc(fcinfo->flinfo->fn_mcxt, list_len);
		memcpy(call->list, list, list_len);
		call->list_len = list_len;
	}
	if (key_columns != NULL)
		pfree(key_columns);
	call->relid = relid;
	call->nparts = nparts;
	call->prepared = true;
}

/*
 * One warning per session, relation and column list.  Parallel workers say
 * nothing, each would be a session of its own; the leader usually asks as well.
 */
static void
warn_no_filter(Oid relid, const char *list, int list_len)
{
	static struct
	{
		Oid			relid;
		char	   *list;		/* in TopMemoryContext, NULL: none was given */
	}			warned[MAX_WARNED];
	static int	nwarned = 0;
	char	   *key_columns = list ? pnstrdup(list, list_len) : NULL;
	char	   *name;
	Oid			target = relid;

	if (IsParallelWorker() || nwarned >= MAX_WARNED)
		return;
	for (int i = 0; i < nwarned; i++)
	{
		if (warned[i].relid == relid &&
			(key_columns == NULL ? warned[i].list == NULL :
			 warned[i].list != NULL && strcmp(key_columns, warned[i].list) == 0))
			return;
	}

	name = get_rel_name(relid);
	if (name == NULL)
		return;
	warned[nwarned].list = key_columns ?
		MemoryContextStrdup(TopMemoryContext, key_columns) : NULL;
	warned[nwarned].relid = relid;
	nwarned++;

	/* a partition is tracked through its root */
	if (get_rel_relispartition(relid))
	{
		List	   *ancestors = get_partition_ancestors(relid);

		if (ancestors != NIL && get_rel_name(llast_oid(ancestors)) != NULL)
			target = llast_oid(ancestors);
	}

	ereport(WARNING,
			(key_columns ?
			 errmsg("relation \"%s\" has no filter on (%s)", name, key_columns) :
			 errmsg("relation \"%s\" has no filter", name),
			 errdetail("Every key is answered as a maybe."),
			 errhint("Create the filter with SELECT bloomguard_track(%s, %s).",
					 quote_literal_cstr(quote_qualified_identifier(get_namespace_name(get_rel_namespace(target)),
																   get_rel_name(target))),
					 key_columns ? quote_literal_cstr(key_columns) : "'...'")));
}
