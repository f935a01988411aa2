/*
 * gate_plan.c
 *		Place gates when a query is planned.
 *
 * WHERE
 *
 * set_rel_pathlist_hook: every path of a plain table, and of a partitioned root that
 * is joined to something, is wrapped; a parameterised path, too, with the join
 * clauses that it enforces.  Partial paths are gathered first, so that the gate
 * stands above Gather: beneath it each worker would start the child late and alone.
 *
 * create_upper_paths_hook: a partitioned root that is the only relation of a SELECT,
 * since core throws away the paths of the first hook there.  At UPPERREL_FINAL, when
 * no rows from below mean no rows at the top; beneath a plain aggregate, which makes
 * a row of none, at UPPERREL_GROUP_AGG.
 *
 * NOT IN
 *
 * Cursors: FETCH BACKWARD and WHERE CURRENT OF do not pass a custom scan.  The
 * planner's options are seen in planner_hook only, hence the static.
 */
#include "postgres.h"

#include "arena.h"
#include "catalog/pg_class.h"
#include "compat.h"
#include "gate.h"
#include "guc.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/planner.h"
#include "optimizer/restrictinfo.h"
#include "optimizer/tlist.h"

static planner_hook_type prev_planner = NULL;
static set_rel_pathlist_hook_type prev_rel_pathlist = NULL;
static create_upper_paths_hook_type prev_upper_paths = NULL;

/* a cursor is being planned */
static bool planning_cursor = false;

static Plan *plan_gate(PlannerInfo *root, RelOptInfo *rel, CustomPath *path,
					   List *tlist, List *clauses, List *custom_plans);
static List *reparameterize_gate(PlannerInfo *root, List *custom_private,
								 RelOptInfo *child_rel);

static const CustomPathMethods path_methods = {
	.CustomName = BGUARD_GATE_NAME,
	.PlanCustomPath = plan_gate,
	.ReparameterizeCustomPathByChild = reparameterize_gate
};

/* gates are wanted in what is being planned */
static bool
wanted(void)
{
	return bguard_gate && !planning_cursor && bguard_attached() &&
		!InNoForceRLSOperation();
}

/* path under a gate, or itself where there can be none */
static Path *
wrap(PlannerInfo *root, RelOptInfo *rel, Path *path, const BGuardGate *gate,
	 bool topmost)
{
	CustomPath *custom;
	QualCost	cost;

	if (gate == NULL || IsA(path, CustomPath) || IsA(path, ForeignPath))
		return path;

	custom = makeNode(CustomPath);
	custom->path.pathtype = T_CustomScan;
	custom->path.parent = rel;
	custom->path.pathtarget = path->pathtarget;
	custom->path.param_info = path->param_info;
	custom->path.parallel_aware = false;
	/* no Gather on top of what counts on being topmost, not even for debugging */
	custom->path.parallel_safe = path->parallel_safe && !topmost &&
		is_parallel_safe(root, (Node *) gate->exprs);
	custom->path.parallel_workers = 0;
	custom->path.rows = path->rows;
	custom->path.pathkeys = path->pathkeys;

	/* the same for every path, so that their order stays */
	cost_qual_eval(&cost, gate->exprs, root);
	cost.startup += cost.per_tuple + cpu_operator_cost * list_length(gate->exprs);
	custom->path.startup_cost = path->startup_cost + cost.startup;
	custom->path.total_cost = path->total_cost + cost.startup;

	custom->flags = 0;
	custom->custom_paths = list_make1(path);
	custom->custom_private = list_make2(bguard_gate_serialize(gate, topmost),
										gate->exprs);
	custom->methods = &path_methods;
	return (Path *) custom;
}

static void
gate_rel_pathlist(PlannerInfo *root, RelOptInfo *rel, Index rti,
				  RangeTblEntry *rte)
{
	BGuardGate *gate;
	ListCell   *lc;

	if (prev_rel_pathlist)
		prev_rel_pathlist(root, rel, rti, rte);

	if (!wanted() || !bguard_gate_allowed(root, rel, rte))
		return;

	gate = bguard_gate_match(root, rel, rel->baserestrictinfo, NULL);
	if (gate != NULL && rel->partial_pathlist != NIL)
	{
		generate_useful_gather_paths(root, rel, false);
		rel->partial_pathlist = NIL;
	}
	foreach(lc, rel->pathlist)
	{
		Path	   *path = lfirst(lc);
		BGuardGate *own = gate;

		if (own == NULL && path->param_info != NULL)
			own = bguard_gate_match(root, rel,
									list_concat_copy(rel->baserestrictinfo,
													 path->param_info->ppi_clauses),
									path->param_info->ppi_req_outer);
		lfirst(lc) = wrap(root, rel, path, own, false);
	}
}

/* the partitioned root that is all that a SELECT reads, with its gate, or NULL */
static BGuardGate *
match_only_relation(PlannerInfo *root)
{
	Query	   *query = root->parse;
	Node	   *from;
	RelOptInfo *rel;
	RangeTblEntry *rte;

	if (query->commandType != CMD_SELECT || query->rowMarks != NIL ||
		query->hasModifyingCTE || query->setOperations != NULL ||
		list_length(query->jointree->fromlist) != 1)
		return NULL;
	from = linitial(query->jointree->fromlist);
	if (!IsA(from, RangeTblRef))
		return NULL;
	rel = root->simple_rel_array[((RangeTblRef *) from)->rtindex];
	rte = root->simple_rte_array[((RangeTblRef *) from)->rtindex];
	if (rel == NULL || rte->relkind != RELKIND_PARTITIONED_TABLE ||
		!bguard_gate_allowed(root, rel, rte))
		return NULL;
	return bguard_gate_match(root, rel, rel->baserestrictinfo, NULL);
}

/* do no rows from the table mean no rows of the query? */
static bool
empty_of_empty(const Query *query)
{
	/* one group of no rows: without GROUP BY, and in grouping sets */
	if (query->groupClause == NIL || query->groupingSets != NIL)
		return !query->hasAggs && query->groupingSets == NIL &&
			query->havingQual == NULL;
	return true;
}

static void
gate_upper_paths(PlannerInfo *root, UpperRelationKind stage,
				 RelOptInfo *input_rel, RelOptInfo *output_rel, void *extra)
{
	BGuardGate *gate;
	ListCell   *lc;

	if (prev_upper_paths)
		prev_upper_paths(root, stage, input_rel, output_rel, extra);

	if ((stage != UPPERREL_FINAL && stage != UPPERREL_GROUP_AGG) || !wanted() ||
		IS_DUMMY_REL(input_rel) || IS_DUMMY_REL(output_rel) ||
		(stage == UPPERREL_FINAL) != empty_of_empty(root->parse))
		return;
	gate = match_only_relation(root);
	foreach(lc, output_rel->pathlist)
	{
		Path	   *path = lfirst(lc);

		if (stage == UPPERREL_FINAL)
			lfirst(lc) = wrap(root, output_rel, path, gate, root->query_level == 1);
		else if (IsA(path, AggPath))
		{
			AggPath    *agg = (AggPath *) path;

			/* what is combined from parallel workers has other rows below */
			if (agg->aggstrategy == AGG_PLAIN && agg->aggsplit == AGGSPLIT_SIMPLE)
				agg->subpath = wrap(root, input_rel, agg->subpath, gate, false);
		}
	}
}

static Plan *
plan_gate(PlannerInfo *root, RelOptInfo *rel, CustomPath *path, List *tlist,
		  List *clauses, List *custom_plans)
{
	CustomScan *scan = makeNode(CustomScan);
	Plan	   *child = linitial(custom_plans);

	/* the child's rows are handed on as they are; it enforces the clauses */
	scan->scan.plan.targetlist = tlist != NIL ? tlist :
		copyObject(child->targetlist);
	scan->scan.plan.qual = NIL;
	scan->scan.scanrelid = 0;
	scan->custom_plans = custom_plans;
	scan->custom_scan_tlist = copyObject(child->targetlist);
	scan->custom_private = linitial(path->custom_private);
	scan->custom_exprs = copyObject(lsecond(path->custom_private));
	scan->flags = path->flags;
	scan->methods = &bguard_gate_scan_methods;
	return &scan->scan.plan;
}

/* the outer relation's variables become those of one of its children */
static List *
reparameterize_gate(PlannerInfo *root, List *custom_private,
					RelOptInfo *child_rel)
{
	List	   *exprs = lsecond(custom_private);

	exprs = (List *) bguard_compat_adjust_attrs(root, (Node *) exprs, child_rel);
	return list_make2(linitial(custom_private), exprs);
}

static PlannedStmt *
gate_planner(Query *parse, const char *query_string, int cursor_options,
			 ParamListInfo params)
{
	bool		outer = planning_cursor;
	PlannedStmt *result;

	/* an error may leave it as it is: every planning begins here */
	planning_cursor = (cursor_options & CURSOR_OPT_FAST_PLAN) != 0;
	result = prev_planner ?
		prev_planner(parse, query_string, cursor_options, params) :
		standard_planner(parse, query_string, cursor_options, params);
	planning_cursor = outer;
	return result;
}

/*
 * bguard_gate_init
 *		See gate.h.
 */
void
bguard_gate_init(void)
{
	RegisterCustomScanMethods(&bguard_gate_scan_methods);
	prev_planner = planner_hook;
	planner_hook = gate_planner;
	prev_rel_pathlist = set_rel_pathlist_hook;
	set_rel_pathlist_hook = gate_rel_pathlist;
	prev_upper_paths = create_upper_paths_hook;
	create_upper_paths_hook = gate_upper_paths;
}
