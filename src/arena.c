/*
 * arena.c
 *		Our block of the main shared memory segment: request, start-up, slots.
 *
 * For locking and what may be stored where, see arena.h.
 *
 * The block, in this order: control struct, slot table, other rooms' areas (each
 * aligned to a cache line), the arena.
 */
#include "postgres.h"

#include "arena.h"
#include "guc.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/shmem.h"
#include "utils/memutils.h"

/* pieces in which a run is zeroed, so that interrupts are served in between */
#define CLEAR_PIECE		(4 * 1024 * 1024)

/* a build owns a slot beside the current one; dead owners may hold one more */
#define SLOTS_PER_FILTER	3

#define MAX_AREAS		8

#define SPAN(first, lines)	(((uint64) (first) << 32) | (uint32) (lines))
#define SPAN_FIRST(span)	((uint32) ((span) >> 32))
#define SPAN_LINES(span)	((uint32) (span))

typedef struct Area
{
	bguard_area_size size;
	bguard_area_attach attach;
} Area;

BGuardControl *bguard_control = NULL;
LWLock	   *bguard_lock = NULL;

static BGuardSlot *slots = NULL;
static char *arena = NULL;
static uint64 *sorted = NULL;	/* backend-local scratch, see prepare() */

static Area areas[MAX_AREAS];
static int	nareas = 0;

static shmem_request_hook_type prev_shmem_request_hook = NULL;
static shmem_startup_hook_type prev_shmem_startup_hook = NULL;

static uint64
arena_lines(void)
{
	return (uint64) bguard_shared_memory_mb * 1024 * 1024 / BGUARD_LINE_BYTES;
}

static uint32
slot_count(void)
{
	return (uint32) bguard_max_filters * SLOTS_PER_FILTER + 1;
}

static Size
block_size(void)
{
	Size		size = CACHELINEALIGN(sizeof(BGuardControl));

	size = add_size(size, CACHELINEALIGN(mul_size(slot_count(),
												  sizeof(BGuardSlot))));
	for (int i = 0; i < nareas; i++)
		size = add_size(size, CACHELINEALIGN(areas[i].size()));
	size = add_size(size, mul_size(arena_lines(), BGUARD_LINE_BYTES));

	/* room to align the start */
	return add_size(size, PG_CACHE_LINE_SIZE);
}

static void
shmem_request(void)
{
	if (prev_shmem_request_hook)
		prev_shmem_request_hook();

	RequestAddinShmemSpace(block_size());
	RequestNamedLWLockTranche("bloomguard", 1);
}

static void
shmem_startup(void)
{
	bool		found;
	char	   *at;
	BGuardControl *control;

	if (prev_shmem_startup_hook)
		prev_shmem_startup_hook();

	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);

	at = ShmemInitStruct("bloomguard", block_size(), &found);
	at = (char *) CACHELINEALIGN(at);

	control = (BGuardControl *) at;
	at += CACHELINEALIGN(sizeof(BGuardControl));
	slots = (BGuardSlot *) at;
	at += CACHELINEALIGN(slot_count() * sizeof(BGuardSlot));

	if (!found)
	{
		memset(control, 0, sizeof(BGuardControl));
		control->layout_version = BGUARD_LAYOUT_VERSION;
		control->max_filters = bguard_max_filters;
		control->nslots = slot_count();
		control->arena_lines = arena_lines();
		if (!pg_strong_random(&control->seed, sizeof(control->seed)))
			control->seed = ((uint64) MyStartTimestamp) ^ (uintptr_t) MyProcPid << 32;
		pg_atomic_init_u64(&control->version, 1);

		memset(slots, 0, slot_count() * sizeof(BGuardSlot));
		for (uint32 i = 0; i < control->nslots; i++)
		{
			pg_atomic_init_u64(&slots[i].span, 0);
			pg_atomic_init_u64(&slots[i].keys_added, 0);
		}
	}

	for (int i = 0; i < nareas; i++)
	{
		areas[i].attach(at, found);
		at += CACHELINEALIGN(areas[i].size());
	}
	arena = at;

	bguard_lock = &(GetNamedLWLockTranche("bloomguard"))->lock;

	/* a block laid out by another build of the library is left alone */
	if (control->layout_version == BGUARD_LAYOUT_VERSION)
		bguard_control = control;

	LWLockRelease(AddinShmemInitLock);
}

/*
 * bguard_arena_add_area
 *		Register another room's part of the block.  From _PG_init only.
 */
void
bguard_arena_add_area(bguard_area_size size, bguard_area_attach attach)
{
	if (nareas >= MAX_AREAS)
		elog(ERROR, "too many shared memory areas");
	areas[nareas].size = size;
	areas[nareas].attach = attach;
	nareas++;
}

/*
 * bguard_arena_init
 *		Install the shared memory hooks.  From _PG_init, when preloading only.
 */
void
bguard_arena_init(void)
{
	prev_shmem_request_hook = shmem_request_hook;
	shmem_request_hook = shmem_request;
	prev_shmem_startup_hook = shmem_startup_hook;
	shmem_startup_hook = shmem_startup;
}

/*
 * bguard_arena_require
 *		For SQL functions that mean nothing without shared memory.
 */
void
bguard_arena_require(void)
{
	if (!bguard_attached())
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("bloomguard must be loaded via \"shared_preload_libraries\""),
				 errhint("Add \"bloomguard\" to \"shared_preload_libraries\" and restart the server.")));
}

/*
 * bguard_arena_prepare
 *		Memory to sort spans in.  Call it before taking bguard_lock for
 *		bguard_arena_take() or bguard_arena_usage(): nothing is allocated under it.
 */
void
bguard_arena_prepare(void)
{
	if (sorted == NULL)
		sorted = MemoryContextAlloc(TopMemoryContext,
									bguard_control->nslots * sizeof(uint64));
}

static int
compare_spans(const void *a, const void *b)
{
	uint64		x = *(const uint64 *) a;
	uint64		y = *(const uint64 *) b;

	return x < y ? -1 : x > y;
}

/* spans in use, in the order of their first lines; bguard_lock is held */
static uint32
sort_spans(void)
{
	uint32		n = 0;

	Assert(sorted != NULL);
	for (uint32 i = 1; i < bguard_control->nslots; i++)
	{
		uint64		span = pg_atomic_read_u64(&slots[i].span);

		if (SPAN_LINES(span) != 0)
			sorted[n++] = span;
	}
	qsort(sorted, n, sizeof(uint64), compare_spans);
	return n;
}

/*
 * The gap before the i-th of n sorted spans, for i = n the one at the arena's
 * end: its first line and, as the result, its length (may be 0).
 */
static uint64
gap_before(uint32 i, uint32 n, uint64 *first)
{
	uint64		end = i < n ? SPAN_FIRST(sorted[i]) : bguard_control->arena_lines;

	*first = i == 0 ? 0 :
		(uint64) SPAN_FIRST(sorted[i - 1]) + SPAN_LINES(sorted[i - 1]);
	return end - *first;
}

/*
 * bguard_arena_take
 *		Take a slot and a run of lines (at least 1): first fit.
 *
 * bguard_lock is held exclusively.  The span is written before the lock is
 * released: that is the reservation.  Returns the slot, or 0 when no gap is
 * large enough or all slots are taken.
 */
uint32
bguard_arena_take(uint64 lines, int32 entry, BGuardOwner owner)
{
	uint64		at = 0;
	uint32		slot;
	uint32		gap;
	uint32		n;

	Assert(LWLockHeldByMeInMode(bguard_lock, LW_EXCLUSIVE));

	if (lines == 0 || lines > bguard_control->arena_lines)
		return 0;
	for (slot = 1; slot < bguard_control->nslots; slot++)
	{
		if (SPAN_LINES(pg_atomic_read_u64(&slots[slot].span)) == 0)
			break;
	}
	if (slot == bguard_control->nslots)
		return 0;
	n = sort_spans();
	for (gap = 0; gap <= n; gap++)
	{
		if (gap_before(gap, n, &at) >= lines)
			break;
	}
	if (gap > n)
		return 0;

	slots[slot].hashes = 0;
	slots[slot].entry = entry;
	slots[slot].owner = owner;
	slots[slot].capacity = 0;
	slots[slot].rate = 0;
	slots[slot].built_at = 0;
	slots[slot].build_seconds = 0;
	pg_atomic_write_u64(&slots[slot].keys_added, 0);
	pg_atomic_write_u64(&slots[slot].span, SPAN(at, lines));
	return slot;
}

/*
 * bguard_arena_free
 *		Give a slot and its run back.  bguard_lock is held exclusively; the slot is
 *		not linked.
 */
void
bguard_arena_free(uint32 slot)
{
	Assert(LWLockHeldByMeInMode(bguard_lock, LW_EXCLUSIVE));
	Assert(slot > 0 && slot < bguard_control->nslots);

	slots[slot].entry = -1;
	slots[slot].owner.start = 0;
	pg_atomic_write_u64(&slots[slot].span, 0);
}

/*
 * bguard_arena_clear
 *		Zero the run of a slot that the caller took and has not linked yet.
 *		Serves interrupts; no lock is held.
 */
void
bguard_arena_clear(uint32 slot)
{
	uint64		span = pg_atomic_read_u64(&slots[slot].span);
	char	   *at = arena + (Size) SPAN_FIRST(span) * BGUARD_LINE_BYTES;
	Size		left = (Size) SPAN_LINES(span) * BGUARD_LINE_BYTES;

	while (left > 0)
	{
		Size		piece = Min(left, CLEAR_PIECE);

		CHECK_FOR_INTERRUPTS();
		memset(at, 0, piece);
		at += piece;
		left -= piece;
	}
}

/*
 * bguard_arena_slot
 *		Address of a slot, 1 .. nslots - 1.
 */
BGuardSlot *
bguard_arena_slot(uint32 slot)
{
	Assert(slot > 0 && slot < bguard_control->nslots);
	return &slots[slot];
}

/*
 * bguard_arena_filter
 *		The filter a slot describes now.
 *
 * The span is loaded once and checked on that copy, so that whatever the slot
 * turns into meanwhile, the words stay inside the arena.
 */
bool
bguard_arena_filter(uint32 slot, BGuardBloom *filter)
{
	uint64		span;

	if (slot == 0 || slot >= bguard_control->nslots)
		return false;
	span = pg_atomic_read_u64(&slots[slot].span);
	if (SPAN_LINES(span) == 0 ||
		(uint64) SPAN_FIRST(span) + SPAN_LINES(span) > bguard_control->arena_lines)
		return false;

	filter->words = (uint64_t *) (arena + (Size) SPAN_FIRST(span) * BGUARD_LINE_BYTES);
	filter->bits = (uint64) SPAN_LINES(span) * BGUARD_LINE_BITS;
	filter->hashes = slots[slot].hashes;
	/* a slot that changes hands may show any number: keep loops short */
	return filter->hashes > 0 && filter->hashes <= BGUARD_MAX_HASHES;
}

/*
 * bguard_arena_usage
 *		Lines in use, and the largest free gap, in lines.  bguard_lock is held.
 */
void
bguard_arena_usage(uint64 *used_lines, uint64 *largest_free)
{
	uint32		n = sort_spans();

	*used_lines = 0;
	*largest_free = 0;
	for (uint32 i = 0; i <= n; i++)
	{
		uint64		first;

		*largest_free = Max(*largest_free, gap_before(i, n, &first));
		if (i < n)
			*used_lines += SPAN_LINES(sorted[i]);
	}
}
