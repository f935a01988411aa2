/*
 * gate.h
 *		The gate: ordinary lookups of a tracked key are guarded without a change.
 *
 * A custom scan stands on top of the paths of a tracked relation whose key is bound
 * by equalities.  When it is executed it asks the filter first; for a key that is
 * definitely absent its child is not even initialised.  See gate_plan.c for where it
 * is placed, gate_match.c for what it may ask, gate_exec.c for what it does.
 *
 * The plan knows nothing of the filter's state: whether there is one, and what it
 * says, is found out by each execution.
 */
#ifndef BGUARD_GATE_H
#define BGUARD_GATE_H

#include "nodes/extensible.h"
#include "nodes/pathnodes.h"

/* what a gate asks; lists have one member for each key column */
typedef struct BGuardGate
{
	Oid			relid;
	char	   *key_columns;	/* the filter's identifier list */
	List	   *exprs;			/* Expr: a key part, or an array of them */
	List	   *types;			/* Oid: type of the part, or of the elements */
	List	   *arrays;			/* int: is the expression an array? */
} BGuardGate;

/* of the node in EXPLAIN, and in copies of plans sent to parallel workers */
#define BGUARD_GATE_NAME	"Bloomguard Gate"

/* install hooks, register the node; from _PG_init only */
extern void bguard_gate_init(void);

/*
 * gate_match.c: the question that a scan of the relation, which is open and locked,
 * must pass if it enforces these RestrictInfos.  Variables of the relations in outer
 * may occur in it.  NULL when no filter's key is bound.
 */
extern BGuardGate *bguard_gate_match(PlannerInfo *root, RelOptInfo *rel,
									 List *clauses, Relids outer);
/* may scans of this relation be gated at all? */
extern bool bguard_gate_allowed(PlannerInfo *root, RelOptInfo *rel,
								RangeTblEntry *rte);

/* gate_exec.c */
extern const CustomScanMethods bguard_gate_scan_methods;

/* gate as a list for custom_private, without its expressions; and back */
extern List *bguard_gate_serialize(const BGuardGate *gate, bool topmost);
extern void bguard_gate_deserialize(List *list, BGuardGate *gate,
									bool *topmost);

#endif							/* BGUARD_GATE_H */
