/*
 * compat.h
 *		Every difference between PostgreSQL versions.
 */
#ifndef BGUARD_COMPAT_H
#define BGUARD_COMPAT_H

#include "access/transam.h"
#include "catalog/pg_class.h"
#include "commands/vacuum.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "optimizer/appendinfo.h"
#include "storage/proc.h"
#include "utils/acl.h"
#include "utils/snapmgr.h"
#if PG_VERSION_NUM >= 160000
#include "varatt.h"
#endif

#if PG_VERSION_NUM < 150000
#error "bloomguard needs PostgreSQL 15 or later"
#endif

/* number of this process in the PGPROC array, and its transaction's local id */
#if PG_VERSION_NUM >= 170000
#define BGUARD_PROCNO(proc)		((int) GetNumberFromPGProc(proc))
#define BGUARD_MY_LXID			(MyProc->vxid.lxid)
#else
#define BGUARD_PROCNO(proc)		((proc)->pgprocno)
#define BGUARD_MY_LXID			(MyProc->lxid)
#endif

/* rows that a snapshot still wants may be removed */
#if PG_VERSION_NUM >= 170000
#define BGUARD_OLD_SNAPSHOT_ACTIVE()	false
#else
#define BGUARD_OLD_SNAPSHOT_ACTIVE()	(old_snapshot_threshold >= 0)
#endif

#if PG_VERSION_NUM >= 180000
#define BGUARD_RUN_PARAMS	QueryDesc *queryDesc, ScanDirection direction, uint64 count
#define BGUARD_RUN_ARGS		queryDesc, direction, count
#else
#define BGUARD_RUN_PARAMS	QueryDesc *queryDesc, ScanDirection direction, uint64 count, bool execute_once
#define BGUARD_RUN_ARGS		queryDesc, direction, count, execute_once
#endif

static inline bool
bguard_compat_owns_relation(Oid relid, Oid roleid)
{
#if PG_VERSION_NUM >= 160000
	return object_ownercheck(RelationRelationId, relid, roleid);
#else
	return pg_class_ownercheck(relid, roleid);
#endif
}

/* an expression over parent relations, for one of their children */
static inline Node *
bguard_compat_adjust_attrs(PlannerInfo *root, Node *node, RelOptInfo *child)
{
#if PG_VERSION_NUM >= 160000
	return adjust_appendrel_attrs_multilevel(root, node, child, child->top_parent);
#else
	return adjust_appendrel_attrs_multilevel(root, node, child->relids,
											 child->top_parent_relids);
#endif
}

/* cost-based delay of core; the settings must be in force */
static inline void
bguard_compat_cost_delay(void)
{
#if PG_VERSION_NUM >= 180000
	vacuum_delay_point(false);
#else
	vacuum_delay_point();
#endif
}

#endif							/* BGUARD_COMPAT_H */
