/*
 * inflight.c
 *		Is a modifying statement of this backend still running?
 *
 * A row's add is queued until the triggers of its statement fire, at the end of
 * ExecutorFinish.  Until then code inside the statement may see the row but not
 * its bits.  A row carries the command id of its statement (es_output_cid), and
 * a snapshot of the same transaction sees it iff that is smaller than the
 * snapshot's curcid, so it is enough to know the command ids in flight.
 *
 * In flight: from the first ExecutorRun or ExecutorFinish of a modifying
 * statement until the chained ExecutorFinish has returned; not from
 * ExecutorStart, because EXPLAIN starts what it never finishes.  COPY FROM: as
 * long as the utility command runs.  Whatever an error leaves behind is dropped
 * by the callbacks for the end of the (sub)transaction, so there is no PG_TRY.
 *
 * The list is a fixed array, newest last: nothing here allocates on the way of
 * somebody's INSERT.  When it is full, newer statements are folded into the last
 * entry, which then stands for any relation until the (sub)transaction ends.
 *
 * A statement whose triggers are skipped (referential actions) hands its events
 * to the level of the statement around it.  That one's command id is smaller, and
 * it stays in flight until the events have fired; all it needs is to stand for
 * any relation from then on.
 *
 * SHARED STATE: one slot per PGPROC number, holding the lowest command id in
 * flight.  Only its own process writes it; parallel workers read their leader's.
 * No ordering is needed: a leader writes its slot before it launches the workers
 * that probe within the statement, and what it removes meanwhile is not theirs.
 *
 * Background workers that are neither parallel workers nor ours (logical
 * replication and kin) write rows without the executor.  Their slot is 0 for
 * life, set before any query of a trigger of theirs runs, so that parallel
 * workers of such a query are warned as well.
 */
#include "postgres.h"

#include "access/parallel.h"
#include "access/twophase.h"
#include "access/xact.h"
#include "arena.h"
#include "catalog/namespace.h"
#include "catalog/partition.h"
#include "compat.h"
#include "debug.h"
#include "executor/executor.h"
#include "inflight.h"
#include "parser/parsetree.h"
#include "postmaster/bgworker.h"
#include "storage/ipc.h"
#include "tcop/utility.h"
#include "utils/lsyscache.h"

#define MAX_ENTRIES		64
#define MAX_TARGETS		4

/* identity of an entry that no statement will come back to remove */
#define KEY_NONE		((uintptr_t) 0)

typedef struct InflightEntry
{
	uintptr_t	key;			/* address of the QueryDesc; odd for COPY */
	CommandId	cid;
	int			nest_level;		/* of the subtransaction it runs in */
	bool		skip_triggers;
	bool		any;			/* may write any relation */
	int			ntargets;
	Oid			targets[MAX_TARGETS];
} InflightEntry;

typedef union InflightSlot
{
	pg_atomic_uint32 lowest;	/* InvalidCommandId: nothing in flight */
	char		pad[PG_CACHE_LINE_SIZE];
} InflightSlot;

/* what kind of process this is, found out on first use */
typedef enum ProcessKind
{
	KIND_UNKNOWN,
	KIND_ORDINARY,
	KIND_PARALLEL,				/* reads its leader's slot */
	KIND_FOREIGN				/* writes rows without the executor */
} ProcessKind;

static InflightSlot *slots = NULL;
static InflightSlot *my_slot = NULL;
static ProcessKind kind = KIND_UNKNOWN;
static bool own_worker = false;

static InflightEntry entries[MAX_ENTRIES];
static int	nentries = 0;
static CommandId lowest_cid = InvalidCommandId;
static uint64 subxact_aborts = 0;
static uint64 copies = 0;

static ExecutorRun_hook_type prev_run = NULL;
static ExecutorFinish_hook_type prev_finish = NULL;
static ProcessUtility_hook_type prev_utility = NULL;

static int
slot_count(void)
{
	return MaxBackends + NUM_AUXILIARY_PROCS + max_prepared_xacts;
}

static Size
area_size(void)
{
	return mul_size(sizeof(InflightSlot), slot_count());
}

static void
area_attach(void *area, bool found)
{
	slots = area;
	if (found)
		return;
	for (int i = 0; i < slot_count(); i++)
		pg_atomic_init_u32(&slots[i].lowest, InvalidCommandId);
}

/*
 * Runs after the abort of an open transaction, which waits for its parallel
 * workers, and before the PGPROC is given back.
 */
static void
clear_slot(int code, Datum arg)
{
	pg_atomic_write_u32(&my_slot->lowest, InvalidCommandId);
}

static void
find_kind(void)
{
	if (slots == NULL || MyProc == NULL)
		return;
	if (IsParallelWorker())
	{
		kind = KIND_PARALLEL;
		return;
	}

	/* whoever had this PGPROC before may have died without clearing it */
	my_slot = &slots[BGUARD_PROCNO(MyProc)];
	kind = MyBgworkerEntry != NULL && !own_worker ?
		KIND_FOREIGN : KIND_ORDINARY;
	pg_atomic_write_u32(&my_slot->lowest,
						kind == KIND_FOREIGN ? 0 : InvalidCommandId);
	on_shmem_exit(clear_slot, (Datum) 0);
}

static void
publish_lowest(void)
{
	CommandId	lowest = InvalidCommandId;

	for (int i = 0; i < nentries; i++)
		lowest = Min(lowest, entries[i].cid);
	if (lowest != lowest_cid)
	{
		lowest_cid = lowest;
		pg_atomic_write_u32(&my_slot->lowest, lowest);
	}
}

static void
remove_entry(int i)
{
	nentries--;
	memmove(&entries[i], &entries[i + 1],
			sizeof(InflightEntry) * (nentries - i));
}

static void
add_target(InflightEntry *entry, Oid relid)
{
	if (entry->any)
		return;
	for (int i = 0; i < entry->ntargets; i++)
	{
		if (entry->targets[i] == relid)
			return;
	}
	if (OidIsValid(relid) && entry->ntargets < MAX_TARGETS)
		entry->targets[entry->ntargets++] = relid;
	else
		entry->any = true;
}

/* partitions and their root are all among the result relations of a plan */
static void
add_plan_targets(InflightEntry *entry, const PlannedStmt *plan)
{
	ListCell   *lc;

	if (plan->resultRelations == NIL)
		entry->any = true;
	foreach(lc, plan->resultRelations)
	{
		add_target(entry, rt_fetch(lfirst_int(lc), plan->rtable)->relid);
		if (entry->any)
			break;
	}
}

/* a new entry without targets; the last one, widened, when there is no room */
static InflightEntry *
push_entry(uintptr_t key, CommandId cid, bool skip_triggers)
{
	int			level = GetCurrentTransactionNestLevel();
	InflightEntry *entry;

	if (nentries == MAX_ENTRIES)
	{
		entry = &entries[MAX_ENTRIES - 1];
		entry->key = KEY_NONE;
		entry->cid = Min(entry->cid, cid);
		entry->nest_level = Min(entry->nest_level, level);
		entry->skip_triggers = false;
		entry->any = true;
	}
	else
	{
		entry = &entries[nentries++];
		entry->key = key;
		entry->cid = cid;
		entry->nest_level = level;
		entry->skip_triggers = skip_triggers;
		entry->any = false;
		entry->ntargets = 0;
	}
	publish_lowest();
	if (BGUARD_MUTANT(NO_BARRIER))
		bguard_debug_note_links();
	return entry;
}

static inline bool
is_modifying(const QueryDesc *desc)
{
	if (likely(desc->operation == CMD_SELECT))
		return desc->plannedstmt->hasModifyingCTE;
	return desc->operation == CMD_INSERT || desc->operation == CMD_UPDATE ||
		desc->operation == CMD_DELETE || desc->operation == CMD_MERGE;
}

/* note that the statement is in flight, if it is a modifying one */
static void
enter_statement(QueryDesc *desc)
{
	uintptr_t	key = (uintptr_t) desc;
	CommandId	cid = desc->estate->es_output_cid;
	bool		skip = (desc->estate->es_top_eflags & EXEC_FLAG_SKIP_TRIGGERS) != 0;

	if (kind == KIND_UNKNOWN)
		find_kind();
	if (kind != KIND_ORDINARY || !is_modifying(desc))
		return;

	for (int i = nentries - 1; i >= 0; i--)
	{
		InflightEntry *entry = &entries[i];

		if (entry->key != key)
			continue;
		if (entry->cid == cid && entry->skip_triggers == skip)
		{
			entry->nest_level = Min(entry->nest_level,
									GetCurrentTransactionNestLevel());
			add_plan_targets(entry, desc->plannedstmt);
			return;
		}
		/* memory used again: the older statement was never finished */
		entry->key = KEY_NONE;
		entry->any = true;
		entry->skip_triggers = false;
	}
	add_plan_targets(push_entry(key, cid, skip), desc->plannedstmt);
}

/* the statement's triggers have fired, or were handed to the one around it */
static void
leave_statement(uintptr_t key)
{
	int			i = nentries - 1;

	while (i >= 0 && entries[i].key != key)
		i--;
	if (i < 0)
		return;					/* folded */

	if (entries[i].skip_triggers)
	{
		int			below = i - 1;

		while (below >= 0 && entries[below].skip_triggers)
			below--;
		if (below < 0 || entries[below].cid > entries[i].cid)
		{
			/* nobody known fires them: in flight to transaction end */
			entries[i].key = KEY_NONE;
			entries[i].any = true;
			entries[i].skip_triggers = false;
			return;
		}
		entries[below].any = true;
	}
	remove_entry(i);
	publish_lowest();
}

static void
inflight_run(BGUARD_RUN_PARAMS)
{
	if (unlikely(kind != KIND_ORDINARY) || is_modifying(queryDesc))
		enter_statement(queryDesc);

	if (prev_run)
		prev_run(BGUARD_RUN_ARGS);
	else
		standard_ExecutorRun(BGUARD_RUN_ARGS);
}

static void
inflight_finish(QueryDesc *queryDesc)
{
	bool		modifying = is_modifying(queryDesc);

	if (unlikely(kind != KIND_ORDINARY) || modifying)
		enter_statement(queryDesc);

	if (prev_finish)
		prev_finish(queryDesc);
	else
		standard_ExecutorFinish(queryDesc);

	if (modifying && nentries > 0)
		leave_statement((uintptr_t) queryDesc);
}

/* rows of COPY ... FREEZE are visible to every snapshot, its own included */
static bool
is_frozen_copy(const CopyStmt *stmt)
{
	ListCell   *lc;

	foreach(lc, stmt->options)
	{
		if (strcmp(((DefElem *) lfirst(lc))->defname, "freeze") == 0)
			return true;
	}
	return false;
}

/*
 * COPY FROM takes its command id when it starts to copy; that of now is no
 * larger.  Its relation is locked here as it will be by COPY itself, a moment
 * later, so that the name cannot come to mean another one in between.
 */
static uintptr_t
enter_copy(const CopyStmt *stmt)
{
	CommandId	cid = GetCurrentCommandId(false);
	uintptr_t	key;
	Oid			relid;

	if (kind == KIND_UNKNOWN)
		find_kind();
	if (kind != KIND_ORDINARY)
		return KEY_NONE;

	/* the table was created or truncated before, so no snapshot has number 0 */
	if (is_frozen_copy(stmt))
		cid = FirstCommandId;
	relid = RangeVarGetRelid(stmt->relation, RowExclusiveLock, true);
	key = (uintptr_t) (2 * copies++ + 1);
	add_target(push_entry(key, cid, false), relid);
	return key;
}

static void
inflight_utility(PlannedStmt *pstmt, const char *queryString,
				 bool readOnlyTree, ProcessUtilityContext context,
				 ParamListInfo params, QueryEnvironment *queryEnv,
				 DestReceiver *dest, QueryCompletion *qc)
{
	uintptr_t	key = KEY_NONE;

	if (IsA(pstmt->utilityStmt, CopyStmt))
	{
		CopyStmt   *stmt = (CopyStmt *) pstmt->utilityStmt;

		if (stmt->is_from && stmt->relation != NULL)
			key = enter_copy(stmt);
	}

	if (prev_utility)
		prev_utility(pstmt, queryString, readOnlyTree, context, params,
					 queryEnv, dest, qc);
	else
		standard_ProcessUtility(pstmt, queryString, readOnlyTree, context,
								params, queryEnv, dest, qc);

	if (key != KEY_NONE)
		leave_statement(key);
}

static void
inflight_xact(XactEvent event, void *arg)
{
	switch (event)
	{
		case XACT_EVENT_COMMIT:
		case XACT_EVENT_PARALLEL_COMMIT:
		case XACT_EVENT_ABORT:
		case XACT_EVENT_PARALLEL_ABORT:
		case XACT_EVENT_PREPARE:
			if (nentries > 0)
			{
				nentries = 0;
				publish_lowest();
			}
			break;
		default:
			break;
	}
}

static void
inflight_subxact(SubXactEvent event, SubTransactionId mySubid,
				 SubTransactionId parentSubid, void *arg)
{
	int			level;

	if (event == SUBXACT_EVENT_ABORT_SUB)
		subxact_aborts++;
	else if (event != SUBXACT_EVENT_COMMIT_SUB)
		return;
	if (nentries == 0)
		return;

	level = GetCurrentTransactionNestLevel();
	for (int i = nentries - 1; i >= 0; i--)
	{
		if (entries[i].nest_level < level)
			continue;
		if (event == SUBXACT_EVENT_ABORT_SUB)
			remove_entry(i);
		else
			entries[i].nest_level = level - 1;
	}
	publish_lowest();
}

/*
 * Top of the relation's partition tree.  InvalidOid when it cannot be told: the
 * chain of ancestors is cut at a detach that is pending, and older snapshots
 * still see, and write, through that link.
 */
static Oid
topmost_ancestor(Oid relid)
{
	List	   *ancestors = get_partition_ancestors(relid);
	Oid			top = ancestors == NIL ? relid : llast_oid(ancestors);

	list_free(ancestors);
	return get_rel_relispartition(top) ? InvalidOid : top;
}

/*
 * May a statement that names target among its result relations write a row that
 * is read through root?  False only if it is proved that it cannot.  A
 * statement that goes through a partitioned table may write any leaf beneath,
 * also one that the plan does not name, so whole partition trees are compared.
 */
static bool
is_related(Oid target, Oid root)
{
	char		target_kind;
	char		root_kind;
	Oid			target_top;
	Oid			root_top;

	if (target == root)
		return true;
	target_kind = get_rel_relkind(target);
	root_kind = get_rel_relkind(root);
	if (target_kind == '\0' || root_kind == '\0')
		return true;
	if (target_kind != RELKIND_PARTITIONED_TABLE &&
		!get_rel_relispartition(target))
		return false;
	if (root_kind != RELKIND_PARTITIONED_TABLE &&
		!get_rel_relispartition(root))
		return false;

	target_top = topmost_ancestor(target);
	root_top = topmost_ancestor(root);
	return !OidIsValid(target_top) || !OidIsValid(root_top) ||
		target_top == root_top;
}

/*
 * bguard_inflight_blocks
 *		See inflight.h.
 */
bool
bguard_inflight_blocks(Snapshot snapshot, Oid root_relid)
{
	if (BGUARD_MUTANT(NO_IN_FLIGHT))
		return false;

	if (unlikely(kind == KIND_UNKNOWN))
		find_kind();

	if (unlikely(kind != KIND_ORDINARY))
	{
		PGPROC	   *leader;

		if (kind != KIND_PARALLEL)
			return true;
		leader = MyProc->lockGroupLeader;
		return leader == NULL || snapshot->curcid >
			pg_atomic_read_u32(&slots[BGUARD_PROCNO(leader)].lowest);
	}

	if (likely(lowest_cid >= snapshot->curcid))
		return false;

	for (int i = 0; i < nentries; i++)
	{
		InflightEntry *entry = &entries[i];

		if (entry->cid >= snapshot->curcid)
			continue;
		if (entry->any)
			return true;
		for (int j = 0; j < entry->ntargets; j++)
		{
			if (is_related(entry->targets[j], root_relid))
				return true;
		}
	}
	return false;
}

uint64
bguard_inflight_subxact_aborts(void)
{
	return subxact_aborts;
}

/*
 * bguard_inflight_own_worker
 *		See inflight.h.
 */
void
bguard_inflight_own_worker(void)
{
	own_worker = true;
}

/*
 * bguard_inflight_init
 *		Only when the library is preloaded: a backend that loads it later has no
 *		slot, and could not know what was in flight before.
 */
void
bguard_inflight_init(void)
{
	bguard_arena_add_area(area_size, area_attach);

	prev_run = ExecutorRun_hook;
	ExecutorRun_hook = inflight_run;
	prev_finish = ExecutorFinish_hook;
	ExecutorFinish_hook = inflight_finish;
	prev_utility = ProcessUtility_hook;
	ProcessUtility_hook = inflight_utility;
	RegisterXactCallback(inflight_xact, NULL);
	RegisterSubXactCallback(inflight_subxact, NULL);
}
