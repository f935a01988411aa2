/*
 * gate_match.c
 *		What may a scan be asked first?  Which equalities bind a filter's key?
 *
 * A key column is bound by "column = expression" or "column = ANY (array)" among
 * the clauses that the scan enforces, if the operator is the equality of the
 * column's hash family, its collation says the same of equality as the column's,
 * and the expression can be evaluated once before the scan: no volatile function, no
 * subplan, no variable but of outer relations.
 *
 * Never gated: what row security or a security barrier hides, referential-integrity
 * queries (they see rows by other rules), samples, inheritance parents, partitions
 * by themselves (the root's filter answers for all), partitioned relations that are
 * written to or whose rows are locked.
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "access/table.h"
#include "catalog/pg_class.h"
#include "definition.h"
#include "gate.h"
#include "keys.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "optimizer/prep.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/* one key column, bound */
typedef struct Binding
{
	Expr	   *expr;
	Oid			type;
	bool		array;
} Binding;

/*
 * Is this a query within a security-barrier view?  A condition that was pushed down
 * there looks like one of the view's own.
 */
static bool
behind_barrier(PlannerInfo *root)
{
	ListCell   *lc;

	for (root = root->parent_root; root != NULL; root = root->parent_root)
	{
		foreach(lc, root->parse->rtable)
		{
			RangeTblEntry *rte = lfirst_node(RangeTblEntry, lc);

			if (rte->rtekind == RTE_SUBQUERY && rte->security_barrier)
				return true;
		}
	}
	return false;
}

bool
bguard_gate_allowed(PlannerInfo *root, RelOptInfo *rel, RangeTblEntry *rte)
{
	if (rel->reloptkind != RELOPT_BASEREL || IS_DUMMY_REL(rel) ||
		rte->rtekind != RTE_RELATION || rte->tablesample != NULL ||
		rte->securityQuals != NIL || behind_barrier(root))
		return false;
	if (rte->relkind == RELKIND_RELATION)
		return !rte->inh;
	return rte->relkind == RELKIND_PARTITIONED_TABLE && rte->inh &&
		!bms_is_member((int) rel->relid, root->all_result_relids) &&
		get_plan_rowmark(root->rowMarks, rel->relid) == NULL;
}

/* does the expression have something that nobody can evaluate before the scan? */
static bool
unfit_walker(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, PlaceHolderVar) || IsA(node, SubPlan) ||
		IsA(node, AlternativeSubPlan) || IsA(node, SubLink) ||
		IsA(node, CurrentOfExpr) || IsA(node, Aggref) ||
		IsA(node, WindowFunc) || IsA(node, GroupingFunc))
		return true;
	return expression_tree_walker(node, unfit_walker, context);
}

static bool
fit_to_ask(PlannerInfo *root, Node *expr, Relids outer)
{
	return bms_is_subset(pull_varnos(root, expr), outer) &&
		!unfit_walker(expr, NULL) && !contain_volatile_functions(expr);
}

/* the column itself, perhaps under a binary relabelling */
static bool
is_column(Node *node, Index relid, AttrNumber attnum)
{
	while (node != NULL && IsA(node, RelabelType))
		node = (Node *) ((RelabelType *) node)->arg;
	return node != NULL && IsA(node, Var) &&
		((Var *) node)->varno == (int) relid &&
		((Var *) node)->varattno == attnum &&
		((Var *) node)->varlevelsup == 0;
}

/* do operator and column call the same values equal? */
static bool
same_equality(Oid opno, Oid inputcollid, const BGuardKeyPart *part)
{
	if (get_op_opfamily_strategy(opno, part->opfamily) != HTEqualStrategyNumber)
		return false;
	if (!OidIsValid(part->collid) || inputcollid == part->collid)
		return true;
	return OidIsValid(inputcollid) &&
		get_collation_isdeterministic(inputcollid) &&
		get_collation_isdeterministic(part->collid);
}

static bool
bind_by_clause(PlannerInfo *root, RelOptInfo *rel, Expr *clause,
			   AttrNumber attnum, const BGuardKeyPart *part, Relids outer,
			   Binding *binding)
{
	Node	   *left;
	Node	   *right;
	BGuardKeyArg arg;

	if (IsA(clause, OpExpr) && list_length(((OpExpr *) clause)->args) == 2)
	{
		OpExpr	   *op = (OpExpr *) clause;

		left = linitial(op->args);
		right = lsecond(op->args);
		if (!is_column(left, rel->relid, attnum))
		{
			Node	   *swap = left;

			left = right;
			right = swap;
		}
		if (!is_column(left, rel->relid, attnum) ||
			!same_equality(op->opno, op->inputcollid, part))
			return false;
		binding->array = false;
		binding->type = exprType(right);
	}
	else if (IsA(clause, ScalarArrayOpExpr) &&
			 ((ScalarArrayOpExpr *) clause)->useOr)
	{
		ScalarArrayOpExpr *op = (ScalarArrayOpExpr *) clause;

		left = linitial(op->args);
		right = lsecond(op->args);
		if (!is_column(left, rel->relid, attnum) ||
			!same_equality(op->opno, op->inputcollid, part))
			return false;
		binding->array = true;
		binding->type = get_base_element_type(exprType(right));
	}
	else
		return false;

	if (!OidIsValid(binding->type) || binding->type == UNKNOWNOID ||
		!fit_to_ask(root, right, outer) ||
		!bguard_keys_arg_init(&arg, part, binding->type, CurrentMemoryContext))
		return false;
	binding->expr = (Expr *) right;
	return true;
}

static bool
bind_column(PlannerInfo *root, RelOptInfo *rel, List *clauses,
			AttrNumber attnum, const BGuardKeyPart *part, Relids outer,
			Binding *binding)
{
	ListCell   *lc;
	Binding		array = {0};

	foreach(lc, clauses)
	{
		RestrictInfo *rinfo = lfirst_node(RestrictInfo, lc);

		if (rinfo->pseudoconstant || rinfo->security_level > 0 ||
			!bind_by_clause(root, rel, rinfo->clause, attnum, part, outer, binding))
			continue;
		/* one value is better than many */
		if (!binding->array)
			return true;
		array = *binding;
	}
	*binding = array;
	return array.expr != NULL;
}

static BGuardGate *
match_definition(PlannerInfo *root, RelOptInfo *rel, Relation relation,
				 const BGuardDefinition *def, List *clauses, Relids outer)
{
	TupleDesc	desc = RelationGetDescr(relation);
	BGuardGate *gate = palloc0(sizeof(BGuardGate));

	for (int i = 0; i < def->ncols; i++)
	{
		AttrNumber	attnum = get_attnum(RelationGetRelid(relation), def->names[i]);
		BGuardKeyPart part;
		Binding		binding;

		if (attnum <= 0 ||
			bguard_keys_part_init(&part, TupleDescAttr(desc, attnum - 1)->atttypid,
								  TupleDescAttr(desc, attnum - 1)->attcollation,
								  CurrentMemoryContext) != NULL ||
			!bind_column(root, rel, clauses, attnum, &part, outer, &binding))
			return NULL;
		gate->exprs = lappend(gate->exprs, binding.expr);
		gate->types = lappend_oid(gate->types, binding.type);
		gate->arrays = lappend_int(gate->arrays, binding.array);
	}
	gate->relid = RelationGetRelid(relation);
	gate->key_columns = def->key_columns;
	return def->ncols > 0 ? gate : NULL;
}

BGuardGate *
bguard_gate_match(PlannerInfo *root, RelOptInfo *rel, List *clauses,
				  Relids outer)
{
	RangeTblEntry *rte = planner_rt_fetch(rel->relid, root);
	Relation	relation;
	BGuardGate *best = NULL;

	if (clauses == NIL)
		return NULL;
	relation = table_open(rte->relid, NoLock);
	if (relation->trigdesc != NULL)
	{
		List	   *defs = bguard_definition_of_relation(relation);
		ListCell   *lc;

		foreach(lc, defs)
		{
			BGuardGate *gate = match_definition(root, rel, relation, lfirst(lc),
												clauses, outer);

			/* the more columns, the fewer keys there are */
			if (gate != NULL &&
				(best == NULL || list_length(gate->exprs) > list_length(best->exprs)))
				best = gate;
		}
	}
	table_close(relation, NoLock);
	return best;
}
