/*
 * verify.c
 *		bloomguard_verify(): compare a filter with its table.
 *
 * Under one snapshot, the caller's, every row is asked for; none may be absent.
 * The false-positive rate is measured with random key hashes.  Random hashes are
 * asked first: those called absent cannot be a row's (if no row is), so only the
 * few that passed have to be remembered, and are struck out when a scanned row
 * has them.
 *
 * Rows are tested by the link protocol of registry.h, one look at the link for
 * each block of the table.  A rotation in between is followed; a filter that
 * leaves service ends the verification with an error, since its answers could
 * not be wrong any more.
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/relation.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "common/pg_prng.h"
#include "compat.h"
#include "definition.h"
#include "funcapi.h"
#include "inflight.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

PG_FUNCTION_INFO_V1(bloomguard_verify);

/* random keys: enough that about that many pass a filter at its target */
#define WANTED_POSITIVES	10000.0
#define MIN_RANDOM_KEYS		1000000.0
#define MAX_RANDOM_KEYS		10000000.0

typedef struct Verification
{
	BGuardDefinition *def;
	BGuardEntry *entry;
	int			ncols;
	BGuardKeyPart parts[BGUARD_MAX_KEY_COLUMNS];
	int64		rows;
	int64		absent;
	int64		asked;			/* random keys */
	uint64	   *passed;			/* those called maybe, sorted */
	int64		npassed;
	bool	   *struck;			/* a row has it */
	int64		nstruck;
} Verification;

static void
not_ready(Verification *v)
{
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("filter of relation \"%s\" (%s) is not ready",
					get_rel_name(v->def->root_relid), v->def->key_columns),
			 errhint("bloomguard_wait_ready() waits for it, bloomguard_filters shows its state.")));
}

/* what does the filter say of this hash?  Errors when it is not in service */
static bool
test_hash(Verification *v, uint64 hash)
{
	for (;;)
	{
		uint64		link = pg_atomic_read_u64(&v->entry->link);
		BGuardBloom filter;
		bool		passed;

		if (BGUARD_LINK_CURRENT(link) == 0)
			not_ready(v);
		pg_read_barrier();
		passed = !bguard_arena_filter(BGUARD_LINK_CURRENT(link), &filter) ||
			bguard_bloom_test(&filter, hash);
		pg_read_barrier();
		if (link == pg_atomic_read_u64(&v->entry->link) &&
			v->entry->key.tgoid == v->def->root_tgoid)
			return passed;
		CHECK_FOR_INTERRUPTS();
	}
}

static int
compare_hashes(const void *a, const void *b)
{
	uint64		x = *(const uint64 *) a;
	uint64		y = *(const uint64 *) b;

	return x < y ? -1 : x > y;
}

static void
ask_random(Verification *v)
{
	uint32		current = BGUARD_LINK_CURRENT(pg_atomic_read_u64(&v->entry->link));
	int64		room = 65536;
	double		wanted;

	if (current == 0)
		not_ready(v);
	wanted = WANTED_POSITIVES / Max(bguard_arena_slot(current)->rate, 1e-9);
	v->asked = (int64) Min(Max(wanted, MIN_RANDOM_KEYS), MAX_RANDOM_KEYS);
	v->passed = MemoryContextAllocHuge(CurrentMemoryContext, room * sizeof(uint64));

	for (int64 i = 0; i < v->asked; i++)
	{
		uint64		hash = pg_prng_uint64(&pg_global_prng_state);

		if (i % 65536 == 0)
			CHECK_FOR_INTERRUPTS();
		if (!test_hash(v, hash))
			continue;
		if (v->npassed == room)
		{
			room *= 2;
			v->passed = repalloc_huge(v->passed, room * sizeof(uint64));
		}
		v->passed[v->npassed++] = hash;
	}
	qsort(v->passed, v->npassed, sizeof(uint64), compare_hashes);
	v->struck = MemoryContextAllocHuge(CurrentMemoryContext, v->npassed + 1);
	memset(v->struck, 0, v->npassed + 1);
}

static void
strike(Verification *v, uint64 hash)
{
	uint64	   *found = bsearch(&hash, v->passed, v->npassed, sizeof(uint64),
								compare_hashes);

	if (found != NULL && !v->struck[found - v->passed])
	{
		v->struck[found - v->passed] = true;
		v->nstruck++;
	}
}

static void
verify_leaf(Verification *v, Oid relid)
{
	Relation	rel = relation_open(relid, AccessShareLock);
	AttrNumber	attnums[BGUARD_MAX_KEY_COLUMNS];
	MemoryContext scratch;
	MemoryContext old;
	TableScanDesc scan;
	TupleTableSlot *slot;

	if (rel->rd_rel->relkind != RELKIND_RELATION)
	{
		relation_close(rel, NoLock);
		return;
	}
	for (int i = 0; i < v->ncols; i++)
		attnums[i] = get_attnum(relid, v->def->names[i]);

	scratch = AllocSetContextCreate(CurrentMemoryContext, "bloomguard verify row",
									ALLOCSET_DEFAULT_SIZES);
	slot = table_slot_create(rel, NULL);
	scan = table_beginscan(rel, GetActiveSnapshot(), 0, NULL);
	while (table_scan_getnextslot(scan, ForwardScanDirection, slot))
	{
		Datum		values[BGUARD_MAX_KEY_COLUMNS];
		bool		isnull = false;
		uint64		hash;

		CHECK_FOR_INTERRUPTS();
		v->rows++;
		for (int i = 0; i < v->ncols && !isnull; i++)
			values[i] = slot_getattr(slot, attnums[i], &isnull);
		if (isnull)
			continue;
		old = MemoryContextSwitchTo(scratch);
		hash = bguard_keys_hash(v->parts, v->ncols, values, bguard_control->seed);
		MemoryContextSwitchTo(old);
		MemoryContextReset(scratch);
		if (!test_hash(v, hash))
			v->absent++;
		strike(v, hash);
	}
	table_endscan(scan);
	ExecDropSingleTupleTableSlot(slot);
	MemoryContextDelete(scratch);
	relation_close(rel, NoLock);
}

static void
verify_one(BGuardDefinition *def, Relation rel, ReturnSetInfo *rsinfo)
{
	Verification v = {0};
	BGuardEntryKey key = {MyDatabaseId, def->root_relid, def->root_tgoid};
	BGuardSignature sig;
	int			number = bguard_registry_find(&key);
	Datum		values[6];
	bool		nulls[6] = {0};
	int64		keys;
	char	   *problem;
	ListCell   *lc;

	v.def = def;
	if (number < 0)
		not_ready(&v);
	v.entry = bguard_registry_entry(number);
	problem = bguard_definition_signature(rel, def, &sig);
	if (problem != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("filter of relation \"%s\" cannot be verified",
						RelationGetRelationName(rel)),
				 errdetail("%s.", bguard_definition_sentence(problem))));
	/* the entry numbers columns as the root does, of which this may be a partition */
	for (int i = 0; i < sig.ncols && RelationGetRelid(rel) != def->root_relid; i++)
		sig.cols[i].attnum = get_attnum(def->root_relid, def->names[i]);
	/* this session may hash by an operator class that was replaced */
	if (!bguard_signature_equal(&sig, &v.entry->sig))
		not_ready(&v);
	v.ncols = sig.ncols;
	for (int i = 0; i < v.ncols; i++)
		(void) bguard_keys_part_init(&v.parts[i], sig.cols[i].typid,
									 sig.cols[i].collid, CurrentMemoryContext);

	if (bguard_inflight_blocks(GetActiveSnapshot(), def->root_relid))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("cannot verify a filter inside a statement that modifies its table"),
				 errdetail("Keys of that statement are added when it ends.")));

	ask_random(&v);
	foreach(lc, find_all_inheritors(RelationGetRelid(rel), AccessShareLock, NULL))
		verify_leaf(&v, lfirst_oid(lc));

	keys = v.asked - v.nstruck;
	values[0] = CStringGetTextDatum(def->key_columns);
	values[1] = Int64GetDatum(v.rows);
	values[2] = Int64GetDatum(v.absent);
	values[3] = Int64GetDatum(keys);
	values[4] = Int64GetDatum(v.npassed - v.nstruck);
	values[5] = Float8GetDatum((double) (v.npassed - v.nstruck) / Max(keys, 1));
	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	pfree(v.passed);
	pfree(v.struck);
}

/*
 * bloomguard_verify(relation regclass, key_columns text DEFAULT NULL)
 *		returns setof (key_columns, rows_scanned, rows_absent, random_keys,
 *		false_positives, false_positive_rate)
 *
 * One row for the filter on key_columns, or for each filter of the relation.
 * rows_absent must be 0.  Owner only.  Errors: SERIALIZABLE, where every probe
 * answers maybe and the check could not fail; filter not ready; not tracked.
 */
Datum
bloomguard_verify(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	Relation	rel;
	ListCell   *lc;

	InitMaterializedSRF(fcinfo, 0);

	bguard_arena_require();
	if (IsolationIsSerializable())
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot verify a filter in a serializable transaction"),
				 errdetail("Every probe answers \"maybe\" there, so the check could not fail."),
				 errhint("Use READ COMMITTED or REPEATABLE READ.")));
	if (RecoveryInProgress())
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("cannot verify a filter during recovery")));
	rel = bguard_definition_open(PG_ARGISNULL(0), PG_GETARG_OID(0), true,
								 AccessShareLock);
	foreach(lc, bguard_definition_select(rel, PG_ARGISNULL(1) ? NULL :
										 text_to_cstring(PG_GETARG_TEXT_PP(1))))
		verify_one(lfirst(lc), rel, rsinfo);
	relation_close(rel, NoLock);
	return (Datum) 0;
}
