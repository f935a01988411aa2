/*
 * gate_exec.c
 *		Execute a gate: ask the filter, start the child only on maybe.
 *
 * The child is initialised when the gate first lets something pass, with the flags
 * that the gate was started with and in the query's memory context.  It is
 * initialised at once for EXPLAIN, and where something below or above is parallel:
 * workers and leader count on each other's nodes.  Only a gate at the very top of the
 * plan, or right above Gather, is not beneath a Gather for sure.
 *
 * The question is asked once for each scan and again after a rescan, under the
 * query's own snapshot.  Rows that are re-checked in newer versions (EvalPlanQual)
 * are let pass without asking.
 */
#include "postgres.h"

#include "access/parallel.h"
#include "commands/explain.h"
#include "executor/executor.h"
#include "gate.h"
#include "guc.h"
#include "keys.h"
#include "nodes/makefuncs.h"
#include "probe.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/ruleutils.h"
#include "utils/snapmgr.h"

/* keys that one question may be about; for more it passes */
#define MAX_QUESTIONS	1024

/* reasons of the gate's own, besides BGuardProbeReason */
#define GATE_REASON_OFF			1001
#define GATE_REASON_TOO_MANY	1002

typedef struct GateState
{
	CustomScanState css;
	BGuardGate	gate;
	bool		topmost;
	int			eflags;
	int			nkeys;
	ExprState **exprs;
	BGuardProbe *probe;
	PlanState  *child;			/* NULL: not started */
	bool		asked;
	bool		open;			/* what was answered */

	uint32		reason;			/* of the last unguarded answer, or 0 */
} GateState;

/* one key column's values: one, or an array's elements without nulls */
typedef struct Part
{
	int			n;
	Datum	   *values;
} Part;

List *
bguard_gate_serialize(const BGuardGate *gate, bool topmost)
{
	return list_make4(list_make1_oid(gate->relid),
					  makeString(pstrdup(gate->key_columns)),
					  gate->types,
					  lappend_int(list_copy(gate->arrays), topmost));
}

void
bguard_gate_deserialize(List *list, BGuardGate *gate, bool *topmost)
{
	gate->relid = linitial_oid(linitial(list));
	gate->key_columns = strVal(lsecond(list));
	gate->types = lthird(list);
	gate->arrays = lfourth(list);
	gate->exprs = NIL;
	*topmost = llast_int(gate->arrays) != 0;
}

static const CustomExecMethods exec_methods;

static Node *
create_state(CustomScan *scan)
{
	GateState  *state = palloc0(sizeof(GateState));

	NodeSetTag(state, T_CustomScanState);
	state->css.methods = &exec_methods;
	return (Node *) state;
}

static void
start_child(GateState *state)
{
	CustomScan *scan = (CustomScan *) state->css.ss.ps.plan;
	EState	   *estate = state->css.ss.ps.state;
	MemoryContext old = MemoryContextSwitchTo(estate->es_query_cxt);

	state->child = ExecInitNode(linitial(scan->custom_plans), estate,
								state->eflags);
	state->css.custom_ps = list_make1(state->child);
	MemoryContextSwitchTo(old);
}

static void
begin_gate(CustomScanState *node, EState *estate, int eflags)
{
	GateState  *state = (GateState *) node;
	CustomScan *scan = (CustomScan *) node->ss.ps.plan;
	Plan	   *child = linitial(scan->custom_plans);
	Oid			types[BGUARD_MAX_KEY_COLUMNS];
	ListCell   *lc;
	int			i = 0;

	bguard_gate_deserialize(scan->custom_private, &state->gate, &state->topmost);
	state->eflags = eflags;
	state->nkeys = list_length(scan->custom_exprs);
	state->exprs = palloc(sizeof(ExprState *) * state->nkeys);
	foreach(lc, scan->custom_exprs)
	{
		state->exprs[i] = ExecInitExpr(lfirst(lc), &node->ss.ps);
		types[i] = list_nth_oid(state->gate.types, i);
		i++;
	}

	/* rows are the child's, in the slots of the child */
	node->ss.ps.resultopsfixed = false;

	/* the executor has looked at the privileges, the planner at row security */
	state->probe = bguard_probe_create(estate->es_query_cxt);
	bguard_probe_prepare(state->probe, state->gate.relid, state->gate.key_columns,
						 state->nkeys, types, true);

	if ((eflags & EXEC_FLAG_EXPLAIN_ONLY) != 0 || IsParallelWorker() ||
		(estate->es_plannedstmt->parallelModeNeeded && !state->topmost &&
		 !IsA(child, Gather) && !IsA(child, GatherMerge)))
		start_child(state);
}

/* evaluate a key column's expression; false: no key can be made of it */
static bool
evaluate(GateState *state, int i, Part *part)
{
	ExprContext *econtext = state->css.ss.ps.ps_ExprContext;
	bool		isnull;
	Datum		value = ExecEvalExprSwitchContext(state->exprs[i], econtext, &isnull);
	MemoryContext old;

	if (isnull)
		return false;
	old = MemoryContextSwitchTo(econtext->ecxt_per_tuple_memory);
	if (list_nth_int(state->gate.arrays, i))
	{
		ArrayType  *array = DatumGetArrayTypeP(value);
		Datum	   *values;
		bool	   *nulls;
		int			n;
		int16		typlen;
		bool		typbyval;
		char		typalign;

		get_typlenbyvalalign(ARR_ELEMTYPE(array), &typlen, &typbyval, &typalign);
		if (ArrayGetNItems(ARR_NDIM(array), ARR_DIMS(array)) > MAX_QUESTIONS)
			n = MAX_QUESTIONS + 1;
		else
			deconstruct_array(array, ARR_ELEMTYPE(array), typlen, typbyval,
							  typalign, &values, &nulls, &n);
		part->n = 0;
		part->values = n > 0 && n <= MAX_QUESTIONS ? values : NULL;
		for (int j = 0; j < n && n <= MAX_QUESTIONS; j++)
		{
			if (!nulls[j])
				part->values[part->n++] = values[j];
		}
		if (n > MAX_QUESTIONS)
			part->n = n;
	}
	else
	{
		part->n = 1;
		part->values = palloc(sizeof(Datum));
		part->values[0] = value;
	}
	MemoryContextSwitchTo(old);
	return true;
}

/*
 * Answers are counted where core adds up what parallel workers count: a gate has no
 * clause, by which rows could be removed, and no second kind of rows.
 */
#define COUNT_ABSENT(state)		InstrCountFiltered1(&(state)->css.ss.ps, 1)
#define COUNT_UNGUARDED(state)	InstrCountFiltered2(&(state)->css.ss.ps, 1)
#define COUNT_MAYBE(state)		InstrCountTuples2(&(state)->css.ss.ps, 1)

static const char *
reason_text(uint32 reason)
{
	if (reason == GATE_REASON_OFF)
		return "bloomguard.gate is off";
	if (reason == GATE_REASON_TOO_MANY)
		return "too many keys";
	return bguard_probe_reason_text((BGuardProbeReason) reason);
}

/* it passes, for that reason */
static bool
unguarded(GateState *state, uint32 reason)
{
	COUNT_UNGUARDED(state);
	state->reason = reason;
	return true;
}

/* Is any of the keys more than absent? */
static bool
ask_all(GateState *state)
{
	static const bool nulls[BGUARD_MAX_KEY_COLUMNS] = {false};
	Part		parts[BGUARD_MAX_KEY_COLUMNS];
	int			at[BGUARD_MAX_KEY_COLUMNS] = {0};
	Datum		values[BGUARD_MAX_KEY_COLUMNS];
	uint64		questions = 1;
	int			i;

	for (i = 0; i < state->nkeys; i++)
	{
		/* equality with NULL is no row's; let the scan find that out */
		if (!evaluate(state, i, &parts[i]))
			return unguarded(state, BGUARD_REASON_NULL);
		questions *= parts[i].n;
		if (questions > MAX_QUESTIONS)
			return unguarded(state, GATE_REASON_TOO_MANY);
	}

	/* every combination; none at all when an array has no element but nulls */
	for (uint64 q = 0; q < questions; q++)
	{
		BGuardProbeReason reason;

		for (i = 0; i < state->nkeys; i++)
			values[i] = parts[i].values[at[i]];
		switch (bguard_probe_ask(state->probe, values, nulls, &reason))
		{
			case BGUARD_ANSWER_ABSENT:
				break;
			case BGUARD_ANSWER_MAYBE:
				COUNT_MAYBE(state);
				return true;
			case BGUARD_ANSWER_UNGUARDED:
				return unguarded(state, reason);
		}
		for (i = 0; i < state->nkeys && ++at[i] == parts[i].n; i++)
			at[i] = 0;
	}
	/* no filter has said so: the scan knows best */
	if (questions == 0)
		return unguarded(state, BGUARD_REASON_NULL);
	COUNT_ABSENT(state);
	return false;
}

static bool
ask(GateState *state)
{
	EState	   *estate = state->css.ss.ps.state;
	bool		pushed = false;
	bool		open;

	if (estate->es_epq_active != NULL)
		return true;
	if (!bguard_gate)
		return unguarded(state, GATE_REASON_OFF);
	if (estate->es_snapshot == InvalidSnapshot)
		return unguarded(state, BGUARD_REASON_NO_SNAPSHOT);

	/* the scan will use this one, whatever is active */
	if (!ActiveSnapshotSet() || GetActiveSnapshot() != estate->es_snapshot)
	{
		PushActiveSnapshot(estate->es_snapshot);
		pushed = true;
	}
	open = ask_all(state);
	if (pushed)
		PopActiveSnapshot();
	ResetExprContext(state->css.ss.ps.ps_ExprContext);
	return open;
}

static TupleTableSlot *
exec_gate(CustomScanState *node)
{
	GateState  *state = (GateState *) node;

	if (!state->asked)
	{
		state->open = ask(state);
		state->asked = true;
	}
	if (!state->open)
		return NULL;
	if (state->child == NULL)
		start_child(state);
	return ExecProcNode(state->child);
}

static void
rescan_gate(CustomScanState *node)
{
	GateState  *state = (GateState *) node;

	state->asked = false;
	if (state->child == NULL)
		return;
	/* the child is nobody's lefttree: core does not tell it */
	if (node->ss.ps.chgParam != NULL)
		UpdateChangedParamSet(state->child, node->ss.ps.chgParam);
	if (state->child->chgParam == NULL)
		ExecReScan(state->child);
}

static void
end_gate(CustomScanState *node)
{
	GateState  *state = (GateState *) node;

	if (state->child != NULL)
		ExecEndNode(state->child);
}

static void
explain_count(const char *name, double count, ExplainState *es)
{
	if (count > 0 || es->format != EXPLAIN_FORMAT_TEXT)
		ExplainPropertyFloat(name, NULL, count, 0, es);
}

static void
explain_gate(CustomScanState *node, List *ancestors, ExplainState *es)
{
	GateState  *state = (GateState *) node;
	CustomScan *scan = (CustomScan *) node->ss.ps.plan;
	char	   *name = get_rel_name(state->gate.relid);
	List	   *context = set_deparse_context_plan(es->deparse_cxt, &scan->scan.plan,
												   ancestors);
	List	   *keys = NIL;
	ListCell   *lc;
	int			i = 0;

	ExplainPropertyText("Filter of",
						psprintf("%s (%s)", name ? quote_identifier(name) : "?",
								 state->gate.key_columns), es);
	foreach(lc, scan->custom_exprs)
	{
		char	   *key = deparse_expression(lfirst(lc), context, es->verbose, false);

		keys = lappend(keys, list_nth_int(state->gate.arrays, i++) ?
					   psprintf("ANY (%s)", key) : key);
	}
	ExplainPropertyList("Key", keys, es);

	if (!es->analyze || node->ss.ps.instrument == NULL)
		return;
	explain_count("Absent", node->ss.ps.instrument->nfiltered1, es);
	explain_count("Maybe", node->ss.ps.instrument->ntuples2, es);
	explain_count("Unguarded", node->ss.ps.instrument->nfiltered2, es);
	if (state->reason != 0)
		ExplainPropertyText("Unguarded Reason", reason_text(state->reason), es);
	if (state->child == NULL)
		ExplainPropertyText("Child", "not started", es);
}

static const CustomExecMethods exec_methods = {
	.CustomName = BGUARD_GATE_NAME,
	.BeginCustomScan = begin_gate,
	.ExecCustomScan = exec_gate,
	.EndCustomScan = end_gate,
	.ReScanCustomScan = rescan_gate,
	.ExplainCustomScan = explain_gate
};

const CustomScanMethods bguard_gate_scan_methods = {
	.CustomName = BGUARD_GATE_NAME,
	.CreateCustomScanState = create_state
};
