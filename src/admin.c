/*
 * admin.c
 *		bloomguard_rebuild(), bloomguard_wait_ready(), bloomguard_size(),
 *		bloomguard_stats_reset().
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/relation.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/indexing.h"
#include "catalog/pg_trigger.h"
#include "compat.h"
#include "core/sizing.h"
#include "definition.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "request.h"
#include "stats.h"
#include "storage/latch.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/timestamp.h"

PG_FUNCTION_INFO_V1(bloomguard_rebuild);
PG_FUNCTION_INFO_V1(bloomguard_wait_ready);
PG_FUNCTION_INFO_V1(bloomguard_size);
PG_FUNCTION_INFO_V1(bloomguard_stats_reset);

/* first and longest pause between two looks at the state, in milliseconds */
#define WAIT_FIRST_MS	1
#define WAIT_MOST_MS	50

/*
 * bloomguard_rebuild(relation regclass, key_columns text DEFAULT NULL)
 *		returns void
 *
 * Ask for a rotation, at commit, of one filter or (NULL) all of the relation's.
 * Owner only.  The present generation stays in service meanwhile.
 */
Datum
bloomguard_rebuild(PG_FUNCTION_ARGS)
{
	Relation	rel;
	ListCell   *lc;

	PreventCommandDuringRecovery("bloomguard_rebuild()");
	bguard_arena_require();
	rel = bguard_definition_open(PG_ARGISNULL(0), PG_GETARG_OID(0), true,
								 AccessShareLock);
	foreach(lc, bguard_definition_select(rel, PG_ARGISNULL(1) ? NULL :
										 text_to_cstring(PG_GETARG_TEXT_PP(1))))
	{
		BGuardDefinition *def = lfirst(lc);

		bguard_request_rotation_of(def->root_relid, def->root_tgoid);
	}
	relation_close(rel, AccessShareLock);
	PG_RETURN_VOID();
}

/* was the trigger made or changed by this very transaction? */
static bool
made_here(Oid tgoid)
{
	HeapTuple	tuple = bguard_definition_fetch(tgoid, NULL);

	return HeapTupleIsValid(tuple) &&
		TransactionIdIsCurrentTransactionId(HeapTupleHeaderGetXmin(tuple->t_data));
}

/* sleep for *pause milliseconds, the next time longer */
static void
wait_a_moment(long *pause)
{
	CHECK_FOR_INTERRUPTS();
	(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
					 *pause, PG_WAIT_EXTENSION);
	ResetLatch(MyLatch);
	*pause = Min(*pause * 2, WAIT_MOST_MS);
}

typedef enum WaitState
{
	WAIT_READY,
	WAIT_ON,
	WAIT_HOPELESS				/* blocked, or out of memory */
} WaitState;

static WaitState
wait_state(const BGuardDefinition *def)
{
	BGuardEntryKey key = {MyDatabaseId, def->root_relid, def->root_tgoid};
	int			number = bguard_registry_find(&key);
	WaitState	state = WAIT_ON;
	BGuardEntry *e;

	if (number < 0)
		return bguard_registry_full() ? WAIT_HOPELESS : WAIT_ON;
	e = bguard_registry_entry(number);
	if (BGUARD_LINK_CURRENT(pg_atomic_read_u64(&e->link)) != 0)
		return WAIT_READY;

	LWLockAcquire(bguard_lock, LW_SHARED);
	if (e->verdict != BGUARD_VERDICT_PENDING &&
		e->verdict_poison == pg_atomic_read_u32(&e->poison) &&
		GetCurrentTimestamp() < e->retry_at)
		state = WAIT_HOPELESS;
	LWLockRelease(bguard_lock);
	return state;
}

/*
 * bloomguard_wait_ready(relation regclass, timeout interval DEFAULT '60 s')
 *		returns boolean
 *
 * true as soon as every filter of the relation is ready; false at the timeout,
 * and at once when one is blocked or out of memory.  Error when nothing is
 * tracked, or by this uncommitted transaction: it would wait for itself.
 */
Datum
bloomguard_wait_ready(PG_FUNCTION_ARGS)
{
	Relation	rel;
	Interval   *timeout;
	TimestampTz end;
	List	   *defs;
	ListCell   *lc;
	long		pause = WAIT_FIRST_MS;

	bguard_arena_require();
	if (PG_ARGISNULL(1))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("timeout must not be null")));
	timeout = PG_GETARG_INTERVAL_P(1);
	end = DatumGetTimestampTz(DirectFunctionCall2(timestamptz_pl_interval,
												  TimestampTzGetDatum(GetCurrentTimestamp()),
												  IntervalPGetDatum(timeout)));

	/* the timeout holds for the lock, too */
	while (!PG_ARGISNULL(0) &&
		   !ConditionalLockRelationOid(PG_GETARG_OID(0), AccessShareLock))
	{
		if (GetCurrentTimestamp() >= end)
			PG_RETURN_BOOL(false);
		wait_a_moment(&pause);
	}
	rel = bguard_definition_open(PG_ARGISNULL(0), PG_GETARG_OID(0), false, NoLock);
	defs = bguard_definition_select(rel, NULL);
	foreach(lc, defs)
	{
		if (wait_state(lfirst(lc)) != WAIT_READY &&
			made_here(((BGuardDefinition *) lfirst(lc))->root_tgoid))
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("relation \"%s\" was tracked or changed by the current transaction",
							RelationGetRelationName(rel)),
					 errhint("Commit first: the filter is built after that.")));
	}
	/* a builder, or DDL, is not kept waiting by us */
	relation_close(rel, AccessShareLock);
	if (RecoveryInProgress())
		PG_RETURN_BOOL(false);

	for (;;)
	{
		WaitState	worst = WAIT_READY;

		foreach(lc, defs)
			worst = Max(worst, wait_state(lfirst(lc)));
		if (worst == WAIT_READY)
			PG_RETURN_BOOL(true);
		if (worst == WAIT_HOPELESS || GetCurrentTimestamp() >= end)
			PG_RETURN_BOOL(false);

		wait_a_moment(&pause);
	}
}

/*
 * bloomguard_size(capacity bigint, false_positive_rate float8)
 *		returns (bits, bytes, hashes, rate_at_1x, rate_at_2x, rate_at_5x)
 *
 * Dry run: m = ceil(-n ln p / (ln 2)^2) rounded up to 512 bits, k = round(m/n ln
 * 2), and (1 - e^(-kn/m))^k with once, twice and five times the capacity.
 */
Datum
bloomguard_size(PG_FUNCTION_ARGS)
{
	int64		capacity = PG_GETARG_INT64(0);
	double		rate = PG_GETARG_FLOAT8(1);
	BGuardGeometry geometry;
	TupleDesc	desc;
	Datum		values[6];
	bool		nulls[6] = {0};

	if (capacity < 1 || capacity > BGUARD_MAX_CAPACITY)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("capacity must be between 1 and %lld",
						(long long) BGUARD_MAX_CAPACITY)));
	if (!bguard_sizing_compute((uint64) capacity, rate, &geometry))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("false-positive rate must be between %g and %g",
						BGUARD_MIN_RATE, BGUARD_MAX_RATE)));

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	values[0] = Int64GetDatum((int64) geometry.bits);
	values[1] = Int64GetDatum((int64) (geometry.bits / 8));
	values[2] = Int32GetDatum((int32) geometry.hashes);
	values[3] = Float8GetDatum(bguard_sizing_rate(geometry.bits, geometry.hashes, capacity));
	values[4] = Float8GetDatum(bguard_sizing_rate(geometry.bits, geometry.hashes, 2.0 * capacity));
	values[5] = Float8GetDatum(bguard_sizing_rate(geometry.bits, geometry.hashes, 5.0 * capacity));
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values, nulls)));
}

/*
 * bloomguard_stats_reset() returns void
 *
 * Zero the counters of all filters of this database.  Not granted to PUBLIC.
 */
Datum
bloomguard_stats_reset(PG_FUNCTION_ARGS)
{
	bguard_arena_require();
	LWLockAcquire(bguard_lock, LW_EXCLUSIVE);
	for (uint32 i = 0; i < bguard_control->max_filters; i++)
	{
		BGuardEntry *e = bguard_registry_entry((int) i);

		if (e->key.dboid == MyDatabaseId)
			bguard_stats_reset(e);
	}
	LWLockRelease(bguard_lock);
	PG_RETURN_VOID();
}
