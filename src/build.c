/*
 * build.c
 *		One build of one filter, from claim to verdict.  Steps and locks: build.h.
 *
 * Runs in a worker, outside any transaction.  Errors are caught here: the
 * generation is discarded, the claim given back, the next try put off.
 */
#include "postgres.h"

#include <math.h>

#include "access/xact.h"
#include "build.h"
#include "catalog/pg_class.h"
#include "debug.h"
#include "guc.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

/* a filter is sized for at least that many keys */
#define MIN_CAPACITY		10000
/* room to grow before the next rotation */
#define HEADROOM			1.5

/* when to try again, in milliseconds */
#define RETRY_LOCKED_MS		200
#define RETRY_LOCKED_MAX_MS	10000
#define RETRY_BLOCKED_MS	1000
#define RETRY_BLOCKED_MAX_MS	300000
#define RETRY_MEMORY_MS		60000
#define RETRY_ERROR_MS		1000
#define RETRY_ERROR_MAX_MS	300000

/* builds that follow each other within that multiple of their cost are a streak */
#define STREAK_COST			10
#define STREAK_MS			1000
#define STREAK_MAX			6

/*
 * bguard_build_poisoned
 *		Has anything poisoned the filter since the build began?
 */
bool
bguard_build_poisoned(const BGuardBuild *build)
{
	return pg_atomic_read_u32(&build->entry->poison) != build->poison;
}

static void
set_phase(BGuardBuild *build, BGuardPhase phase)
{
	pg_atomic_write_u32(&build->worker->phase, phase);
}

/*
 * Capacity to size for: what the user asked for is a minimum, so are the rows
 * that are there and the keys that the present generation has taken.
 */
static uint64
choose_capacity(BGuardBuild *build)
{
	uint32		current = BGUARD_LINK_CURRENT(pg_atomic_read_u64(&build->entry->link));
	double		capacity = Max(build->tuples * HEADROOM, MIN_CAPACITY);

	if (build->def.capacity > 0)
		capacity = Max(build->tuples, (double) build->def.capacity);
	if (current != 0)
	{
		BGuardSlot *slot = bguard_arena_slot(current);
		double		known = (double) pg_atomic_read_u64(&slot->keys_added);

		/* deleted keys are in there, too: only believe it when it outgrew its slot */
		if (known > slot->capacity)
			capacity = Max(capacity, known * HEADROOM);
	}
	return (uint64) Min(capacity, (double) BGUARD_MAX_CAPACITY);
}

/* take a slot and a run for the new generation, with its fields set */
static BGuardBuildResult
take_slot(BGuardBuild *build)
{
	double		rate = build->def.rate > 0 ? build->def.rate : bguard_false_positive_rate;
	uint64		capacity = choose_capacity(build);
	BGuardGeometry geometry;
	uint64		used;
	uint64		largest;
	BGuardSlot *slot;

	if (!bguard_sizing_compute(capacity, rate, &geometry))
		elog(ERROR, "impossible filter geometry: capacity " UINT64_FORMAT ", rate %g",
			 capacity, rate);

	bguard_arena_prepare();
	LWLockAcquire(bguard_lock, LW_EXCLUSIVE);
	build->slot = bguard_arena_take(geometry.lines, build->number, build->owner);
	bguard_arena_usage(&used, &largest);
	LWLockRelease(bguard_lock);

	if (build->slot == 0 && largest >= geometry.lines)
	{
		strlcpy(build->reason, _("all slots are taken: raise bloomguard.max_filters"),
				sizeof(build->reason));
		return BGUARD_BUILD_NO_MEMORY;
	}
	if (build->slot == 0)
	{
		snprintf(build->reason, sizeof(build->reason),
				 _("needs %llu kB of bloomguard.shared_memory in one piece, largest free piece is %llu kB: raise it by at least %llu kB"),
				 (unsigned long long) (geometry.lines * BGUARD_LINE_BYTES / 1024),
				 (unsigned long long) (largest * BGUARD_LINE_BYTES / 1024),
				 (unsigned long long) ((geometry.lines - largest) * BGUARD_LINE_BYTES / 1024 + 1));
		return BGUARD_BUILD_NO_MEMORY;
	}

	slot = bguard_arena_slot(build->slot);
	slot->hashes = geometry.hashes;
	slot->capacity = capacity;
	slot->rate = rate;
	return BGUARD_BUILD_DONE;
}

/* steps 2 to 6 of build.h; the slot, if one was taken, is in build->slot */
static BGuardBuildResult
build_generation(BGuardBuild *build, TimestampTz start)
{
	BGuardBuildResult result;
	uint64		published;
	BGuardSlot *slot;
	BGuardSignature sized_for;
	ListCell   *lc;

	set_phase(build, BGUARD_PHASE_CHECKING);
	result = bguard_build_check(build, false);
	if (result == BGUARD_BUILD_DONE)
		result = bguard_build_repair(build);
	if (result != BGUARD_BUILD_DONE)
		return result;

	if (!bguard_registry_set_signature(build->number, &build->sig))
	{
		/* a change of the key that no hook told us of */
		bguard_registry_poison(build->entry, BGUARD_POISON_COLUMN);
		return BGUARD_BUILD_CHANGED;
	}
	sized_for = build->sig;

	result = take_slot(build);
	if (result != BGUARD_BUILD_DONE)
		return result;
	ereport(LOG,
			(errmsg("building filter of relation \"%s\" (%s)",
					build->name, build->def.key_columns)));

	pgstat_report_activity(STATE_RUNNING,
						   psprintf("building filter of %s (%s)", build->name,
									build->def.key_columns));

	set_phase(build, BGUARD_PHASE_CLEARING);
	bguard_arena_clear(build->slot);
	if (!bguard_arena_filter(build->slot, &build->filter))
		elog(ERROR, "slot %u of a build is gone", build->slot);
	if (BGUARD_MUTANT(CHECK_FIRST) &&
		(result = bguard_build_check(build, true)) != BGUARD_BUILD_DONE)
		return result;
	if (BGUARD_MUTANT(SIZE_FIRST))
		pg_atomic_write_u64(&build->worker->blocks_total, build->blocks);
	BGUARD_PAUSE("build-cleared");
	published = bguard_registry_publish(build->entry, build->slot);
	BGUARD_PAUSE("build-published");

	set_phase(build, BGUARD_PHASE_CHECKING);
	if (!BGUARD_MUTANT(CHECK_FIRST))
		result = bguard_build_check(build, true);
	if (result != BGUARD_BUILD_DONE)
		return result;
	if (!bguard_signature_equal(&build->sig, &sized_for))
		return BGUARD_BUILD_CHANGED;

	BGUARD_PAUSE("build-checked");

	/*
	 * Writers make their recipes anew: what hashed a key otherwise, by a function
	 * that was replaced before the check, has its row on a page by now.
	 */
	bguard_registry_bump_version();

	if (!BGUARD_MUTANT(SIZE_FIRST))
		pg_atomic_write_u64(&build->worker->blocks_total, build->blocks);
	set_phase(build, BGUARD_PHASE_SCANNING);
	foreach(lc, build->members)
	{
		BGuardMember *member = lfirst(lc);

		if (member->relkind != RELKIND_RELATION)
			continue;
		result = bguard_build_scan(build, member);
		if (result != BGUARD_BUILD_DONE)
			return result;
	}

	BGUARD_PAUSE("build-scanned");
	set_phase(build, BGUARD_PHASE_VALIDATING);
	if (!bguard_build_unchanged(build))
	{
		bguard_registry_poison(build->entry, BGUARD_POISON_TRIGGER);
		return BGUARD_BUILD_CHANGED;
	}

	slot = bguard_arena_slot(build->slot);
	pg_atomic_fetch_add_u64(&slot->keys_added, build->keys_done);
	slot->built_at = GetCurrentTimestamp();
	slot->build_seconds = (slot->built_at - start) / (double) USECS_PER_SEC;
	if (bguard_build_poisoned(build))
		return BGUARD_BUILD_CHANGED;
	BGUARD_PAUSE("build-validating");
	if (!bguard_registry_validate(build->entry, published))
		return BGUARD_BUILD_CHANGED;

	ereport(LOG,
			(errmsg("built filter of relation \"%s\" (%s): %llu rows, %llu keys, %llu kB, %u hashes, %.3f s",
					build->name, build->def.key_columns,
					(unsigned long long) build->tuples_done,
					(unsigned long long) build->keys_done,
					(unsigned long long) (build->filter.bits / 8192),
					build->filter.hashes, slot->build_seconds)));
	return BGUARD_BUILD_DONE;
}

/* exponential delay: first, first * 2, ... at most "most" */
static int64
backoff(int64 first, uint32 failures, int64 most)
{
	return Min(first << Min(failures, 20), most);
}

/* put the result into the entry: what the views show, when to try again */
static void
conclude(BGuardBuild *build, BGuardBuildResult result, uint32 wanted,
		 TimestampTz start)
{
	BGuardEntry *e = build->entry;
	TimestampTz now = GetCurrentTimestamp();
	/* who waits for a lock is no burden */
	double		seconds = (now - start - build->waited) / (double) USECS_PER_SEC;
	bool		ready = BGUARD_LINK_CURRENT(pg_atomic_read_u64(&e->link)) != 0;
	BGuardVerdict verdict = BGUARD_VERDICT_PENDING;
	const char *reason = build->reason;
	int64		retry = 0;

	LWLockAcquire(bguard_lock, LW_EXCLUSIVE);
	if (result == BGUARD_BUILD_DONE || result == BGUARD_BUILD_CHANGED)
	{
		/* a burst of builds is spread, the more so the longer they take */
		if (!TimestampDifferenceExceeds(e->build_end, start,
										(int) Min(e->build_seconds * 1000 * STREAK_COST + STREAK_MS,
												  INT_MAX / 2)))
			e->streak = Min(e->streak + 1, STREAK_MAX);
		else
			e->streak = 0;
		e->build_end = now;
		e->build_seconds = seconds;
		e->next_build = TimestampTzPlusMilliseconds(now,
													(int64) (seconds * 1000 * ((1 << e->streak) - 1)));
	}
	if (result == BGUARD_BUILD_DONE)
	{
		e->failures = 0;
		e->last_error[0] = '\0';
		e->rotation_done = wanted;
		/*
		 * Too small by now, be it that the estimate was, or that writers have added
		 * more meanwhile: once more, with what is known now.
		 */
		if (pg_atomic_read_u64(&bguard_arena_slot(build->slot)->keys_added) >
			bguard_arena_slot(build->slot)->capacity)
			pg_atomic_fetch_add_u32(&e->rotation_wanted, 1);
	}
	else
		e->failures++;
	if (result == BGUARD_BUILD_NO_MEMORY && ready)
		/* the old generation stays in service; do not try again for ever */
		e->rotation_done = wanted;
	LWLockRelease(bguard_lock);

	switch (result)
	{
		case BGUARD_BUILD_DONE:
			pg_atomic_fetch_add_u64(&e->counters.rotations, 1);
			break;
		case BGUARD_BUILD_CHANGED:
		case BGUARD_BUILD_GONE:
			break;
		case BGUARD_BUILD_LOCKED:
			reason = _("waiting for a lock on the relation or a partition");
			retry = backoff(RETRY_LOCKED_MS, e->failures - 1, RETRY_LOCKED_MAX_MS);
			break;
		case BGUARD_BUILD_BLOCKED:
			verdict = BGUARD_VERDICT_BLOCKED;
			retry = backoff(RETRY_BLOCKED_MS, e->failures - 1, RETRY_BLOCKED_MAX_MS);
			break;
		case BGUARD_BUILD_NO_MEMORY:
			verdict = BGUARD_VERDICT_NO_MEMORY;
			retry = RETRY_MEMORY_MS;
			break;
	}
	if ((verdict == BGUARD_VERDICT_BLOCKED || verdict == BGUARD_VERDICT_NO_MEMORY) &&
		(e->verdict != verdict || strcmp(e->reason, reason) != 0))
		ereport(LOG,
				(errmsg("filter of relation \"%s\" (%s) cannot be built: %s",
						build->name, build->def.key_columns, reason)));
	bguard_registry_set_verdict(build->number, verdict, build->poison,
								result == BGUARD_BUILD_DONE ? NULL : reason, retry);
}

/* an error ended the build; called in the error's aftermath, outside transactions */
static void
conclude_error(BGuardBuild *build, const char *message)
{
	BGuardEntry *e = build->entry;
	int64		retry;

	LWLockAcquire(bguard_lock, LW_EXCLUSIVE);
	e->failures++;
	bguard_registry_clip(e->last_error, message);
	retry = backoff(RETRY_ERROR_MS, e->failures - 1, RETRY_ERROR_MAX_MS);
	e->next_build = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), retry);
	LWLockRelease(bguard_lock);
	/* a filter that is in service has no reason to show, only a last error */
	bguard_registry_set_verdict(build->number, BGUARD_VERDICT_PENDING, build->poison,
								BGUARD_LINK_CURRENT(pg_atomic_read_u64(&e->link)) != 0 ?
								NULL : message, retry);
}

/*
 * bguard_build_run
 *		Build entry "number", if it still has this key and nobody else builds it.
 *
 * Never raises for what goes wrong with the build itself; does raise what ends
 * the worker (FATAL) or a request to cancel.
 */
void
bguard_build_run(int number, const BGuardEntryKey *key, BGuardOwner owner)
{
	MemoryContext caller = CurrentMemoryContext;
	TimestampTz start = GetCurrentTimestamp();
	BGuardBuild *volatile build;
	BGuardBuildResult result = BGUARD_BUILD_CHANGED;
	MemoryContext cxt;
	uint32		wanted;
	uint32		poison;

	/* before the claim: a retirement in between is poison, too */
	poison = pg_atomic_read_u32(&bguard_registry_entry(number)->poison);
	pg_memory_barrier();
	if (!bguard_registry_claim(number, key, owner))
		return;

	cxt = AllocSetContextCreate(caller, "bloomguard build",
								ALLOCSET_DEFAULT_SIZES);
	build = MemoryContextAllocZero(cxt, sizeof(BGuardBuild));
	build->owner = owner;
	build->worker = bguard_fleet_worker(owner.worker);
	build->number = number;
	build->entry = bguard_registry_entry(number);
	build->key = *key;
	build->cxt = cxt;
	snprintf(build->name, sizeof(build->name), "%u", key->relid);
	build->def.key_columns = "";

	/* requests from here on are for the next build */
	wanted = pg_atomic_read_u32(&build->entry->rotation_wanted);
	build->poison = poison;
	pg_memory_barrier();

	pg_atomic_write_u64(&build->worker->blocks_total, 0);
	pg_atomic_write_u64(&build->worker->blocks_done, 0);
	pg_atomic_write_u64(&build->worker->tuples_done, 0);
	build->worker->started_at = start;
	build->worker->relid = key->relid;
	build->worker->root_tgoid = key->tgoid;
	build->worker->root_relid = key->relid;

	PG_TRY();
	{
		BGUARD_PAUSE("build-claimed");
		result = build_generation(build, start);
		if (result != BGUARD_BUILD_DONE && build->slot != 0)
			bguard_registry_discard(build->entry, build->slot, owner);
		conclude(build, result, wanted, start);
	}
	PG_CATCH();
	{
		ErrorData  *error;

		MemoryContextSwitchTo(cxt);
		error = CopyErrorData();
		EmitErrorReport();
		FlushErrorState();
		AbortCurrentTransaction();
		MemoryContextSwitchTo(caller);

		if (build->slot != 0)
			bguard_registry_discard(build->entry, build->slot, owner);
		conclude_error(build, error->message ? error->message : "");
		bguard_registry_release(number, owner);
		build->worker->root_relid = InvalidOid;
		MemoryContextDelete(cxt);
		pgstat_report_activity(STATE_IDLE, NULL);
		return;
	}
	PG_END_TRY();

	bguard_registry_release(number, owner);
	set_phase(build, BGUARD_PHASE_IDLE);
	build->worker->root_relid = InvalidOid;
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(cxt);
}
