/*
 * build_scan.c
 *		Read every tuple that is not DEAD and add its key to the building slot.
 *
 * An MVCC scan would miss rows that are uncommitted at publication and rows that
 * only older snapshots still see.  So: page by page, all line pointers under one
 * share lock (a HOT update cannot slip from one to another in between), and every
 * tuple that HeapTupleSatisfiesVacuum does not call DEAD.  While the page stays
 * pinned nothing on it moves, so keys are read and hashed after unlocking.
 *
 * A chunk is about a second of work in a transaction of its own: AccessShareLock,
 * a snapshot (for detoasting, and to keep the horizon honest), the horizon.
 * Blocks are counted after publication; those beyond were filled by writers that
 * saw the building slot.
 */
#include "postgres.h"

#include "access/detoast.h"
#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/relation.h"
#include "access/xact.h"
#include "build.h"
#include "compat.h"
#include "debug.h"
#include "guc.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#include "storage/latch.h"
#include "storage/lmgr.h"
#include "storage/procarray.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/resowner.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#define CHUNK_MS			1000
#define PAGES_PER_CLOCK		64	/* look at the clock that often */
#define HASHES				512 /* added together */
/* how long a chunk waits for its lock */
#define LOCK_WAIT_MS		60000

typedef struct Chunk
{
	BGuardBuild *build;
	Relation	rel;
	int			ncols;
	AttrNumber	attnums[BGUARD_MAX_KEY_COLUMNS];
	BGuardKeyPart parts[BGUARD_MAX_KEY_COLUMNS];
	TransactionId horizon;
	BufferAccessStrategy strategy;
	MemoryContext hash_cxt;		/* reset after each page */
	uint64		hashes[HASHES];
	int			nhashes;
} Chunk;

/*
 * bguard_build_lock
 *		Lock the relation inside the current transaction, without ever queueing.
 *		false after wait_ms milliseconds, or when the filter was poisoned.
 */
bool
bguard_build_lock(BGuardBuild *build, Oid relid, int lockmode, int wait_ms)
{
	TimestampTz start = GetCurrentTimestamp();
	TimestampTz last = start;

	while (!ConditionalLockRelationOid(relid, lockmode))
	{
		TimestampTz now = GetCurrentTimestamp();

		CHECK_FOR_INTERRUPTS();
		build->waited += now - last;
		last = now;
		if (bguard_build_poisoned(build) ||
			TimestampDifferenceExceeds(start, now, wait_ms))
			return false;
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 10, PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
	}
	return true;
}

static void
flush_hashes(Chunk *chunk)
{
	if (chunk->nhashes == 0)
		return;
	chunk->build->keys_done += bguard_bloom_add_batch(&chunk->build->filter,
													  chunk->hashes,
													  chunk->nhashes);
	chunk->nhashes = 0;
}

/*
 * Is the tuple that could not be detoasted needed by anybody?  Its TOAST rows go
 * when its inserter aborts, or its last reader leaves, between our look at the
 * page and now.  Then it is not normal, another tuple, or DEAD for a horizon of
 * this moment, and no snapshot, present or future, sees it.
 */
static bool
still_needed(Chunk *chunk, Buffer buffer, OffsetNumber offset,
			 TransactionId xmin)
{
	TransactionId horizon = GetOldestNonRemovableTransactionId(chunk->rel);
	Page		page = BufferGetPage(buffer);
	bool		needed = false;
	ItemId		item;

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	item = PageGetItemId(page, offset);
	if (ItemIdIsNormal(item))
	{
		HeapTupleData tuple;

		tuple.t_tableOid = RelationGetRelid(chunk->rel);
		tuple.t_data = (HeapTupleHeader) PageGetItem(page, item);
		tuple.t_len = ItemIdGetLength(item);
		ItemPointerSet(&tuple.t_self, BufferGetBlockNumber(buffer), offset);
		needed = HeapTupleHeaderGetRawXmin(tuple.t_data) == xmin &&
			HeapTupleSatisfiesVacuum(&tuple, horizon, buffer) != HEAPTUPLE_DEAD;
	}
	LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
	return needed;
}

/*
 * Fetch an out-of-line key, in a subtransaction since that may fail.  false: the
 * tuple is needed by nobody any more.
 */
static bool
fetch_external(Chunk *chunk, Buffer buffer, OffsetNumber offset,
			   TransactionId xmin, Datum *value)
{
	MemoryContext cxt = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	struct varlena *volatile fetched = NULL;
	volatile bool failed = false;
	ErrorData  *volatile error = NULL;

	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(cxt);
	PG_TRY();
	{
		fetched = detoast_attr((struct varlena *) DatumGetPointer(*value));
		ReleaseCurrentSubTransaction();
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(cxt);
		error = CopyErrorData();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
		failed = true;
	}
	PG_END_TRY();
	MemoryContextSwitchTo(cxt);
	CurrentResourceOwner = owner;

	if (failed)
	{
		/* a request to stop is not a missing chunk */
		if (error->sqlerrcode == ERRCODE_QUERY_CANCELED ||
			error->sqlerrcode == ERRCODE_ADMIN_SHUTDOWN ||
			still_needed(chunk, buffer, offset, xmin))
			ReThrowError(error);
		return false;
	}
	*value = PointerGetDatum(fetched);
	return true;
}

/* hash the key of one tuple of a pinned page */
static void
add_tuple(Chunk *chunk, HeapTuple tuple, Buffer buffer, OffsetNumber offset)
{
	TupleDesc	desc = RelationGetDescr(chunk->rel);
	TransactionId xmin = HeapTupleHeaderGetRawXmin(tuple->t_data);
	Datum		values[BGUARD_MAX_KEY_COLUMNS];

	for (int i = 0; i < chunk->ncols; i++)
	{
		bool		isnull;

		values[i] = heap_getattr(tuple, chunk->attnums[i], desc, &isnull);
		if (isnull)
			return;
		if (chunk->parts[i].typlen == -1 &&
			VARATT_IS_EXTERNAL(DatumGetPointer(values[i])) &&
			!fetch_external(chunk, buffer, offset, xmin, &values[i]))
			return;
	}
	chunk->hashes[chunk->nhashes++] =
		bguard_keys_hash(chunk->parts, chunk->ncols, values,
						 bguard_control->seed);
	if (chunk->nhashes == HASHES)
		flush_hashes(chunk);
}

static void
scan_page(Chunk *chunk, BlockNumber block)
{
	OffsetNumber wanted[MaxHeapTuplesPerPage];
	int			nwanted = 0;
	Buffer		buffer = ReadBufferExtended(chunk->rel, MAIN_FORKNUM, block,
											RBM_NORMAL, chunk->strategy);
	Page		page = BufferGetPage(buffer);
	MemoryContext old;
	HeapTupleData tuple;
	OffsetNumber last;
	bool		all_visible;

	tuple.t_tableOid = RelationGetRelid(chunk->rel);

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	all_visible = PageIsAllVisible(page);
	last = PageGetMaxOffsetNumber(page);
	for (OffsetNumber offset = FirstOffsetNumber; offset <= last; offset++)
	{
		ItemId		item = PageGetItemId(page, offset);

		if (!ItemIdIsNormal(item))
			continue;
		if (!all_visible)
		{
			tuple.t_data = (HeapTupleHeader) PageGetItem(page, item);
			tuple.t_len = ItemIdGetLength(item);
			ItemPointerSet(&tuple.t_self, block, offset);
			if (HeapTupleSatisfiesVacuum(&tuple, chunk->horizon,
										 buffer) == HEAPTUPLE_DEAD)
				continue;
			if (BGUARD_MUTANT(MVCC_SCAN) &&
				!HeapTupleSatisfiesVisibility(&tuple, GetActiveSnapshot(), buffer))
				continue;
		}
		wanted[nwanted++] = offset;
	}
	LockBuffer(buffer, BUFFER_LOCK_UNLOCK);

	old = MemoryContextSwitchTo(chunk->hash_cxt);
	for (int i = 0; i < nwanted; i++)
	{
		ItemId		item = PageGetItemId(page, wanted[i]);

		tuple.t_data = (HeapTupleHeader) PageGetItem(page, item);
		tuple.t_len = ItemIdGetLength(item);
		ItemPointerSet(&tuple.t_self, block, wanted[i]);
		add_tuple(chunk, &tuple, buffer, wanted[i]);
	}
	MemoryContextSwitchTo(old);
	MemoryContextReset(chunk->hash_cxt);
	chunk->build->tuples_done += nwanted;
	ReleaseBuffer(buffer);
}

/* key columns by this relation's own numbering; false: not as signed */
static bool
prepare_columns(Chunk *chunk)
{
	BGuardBuild *build = chunk->build;
	TupleDesc	desc = RelationGetDescr(chunk->rel);

	chunk->ncols = build->sig.ncols;
	for (int i = 0; i < chunk->ncols; i++)
	{
		AttrNumber	attnum = get_attnum(RelationGetRelid(chunk->rel),
										build->def.names[i]);

		if (attnum <= 0 ||
			TupleDescAttr(desc, attnum - 1)->atttypid != build->sig.cols[i].typid ||
			TupleDescAttr(desc, attnum - 1)->attcollation != build->sig.cols[i].collid ||
			bguard_keys_part_init(&chunk->parts[i], build->sig.cols[i].typid,
								  build->sig.cols[i].collid,
								  CurrentMemoryContext) != NULL ||
			/* the operator class may be another by now: no lock keeps it */
			chunk->parts[i].hashproc != build->sig.cols[i].hashproc ||
			chunk->parts[i].innerproc != build->sig.cols[i].innerproc)
			return false;
		chunk->attnums[i] = attnum;
	}
	return true;
}

/*
 * One chunk, inside a transaction, with the relation locked: pages from *next
 * on.  *counted is the number of blocks when this member's first chunk began,
 * InvalidBlockNumber before.  Sets *done when the member needs no more.
 */
static BGuardBuildResult
scan_chunk(BGuardBuild *build, const BGuardMember *member, BlockNumber *next,
		   BlockNumber *counted, bool *done)
{
	TimestampTz start = GetCurrentTimestamp();
	BGuardBuildResult result = BGUARD_BUILD_DONE;
	BlockNumber end;
	Chunk	   *chunk;
	Oid			user;
	int			security;

	*done = true;
	chunk = palloc0(sizeof(Chunk));
	chunk->build = build;
	chunk->rel = try_relation_open(member->relid, NoLock);
	if (chunk->rel == NULL)
		return BGUARD_BUILD_DONE;
	if (chunk->rel->rd_rel->relfilenode != member->relfilenode ||
		!prepare_columns(chunk))
	{
		relation_close(chunk->rel, NoLock);
		return BGUARD_BUILD_CHANGED;
	}

	/* hash functions may be a user's: run them as the table's owner */
	GetUserIdAndSecContext(&user, &security);
	SetUserIdAndSecContext(chunk->rel->rd_rel->relowner,
						   security | SECURITY_RESTRICTED_OPERATION);

	chunk->horizon = GetOldestNonRemovableTransactionId(chunk->rel);
	chunk->strategy = GetAccessStrategy(BAS_BULKREAD);
	chunk->hash_cxt = AllocSetContextCreate(CurrentMemoryContext,
											"bloomguard hash",
											ALLOCSET_DEFAULT_SIZES);
	/* a truncated tail is gone; what grew meanwhile is not ours to read */
	end = RelationGetNumberOfBlocks(chunk->rel);
	if (*counted == InvalidBlockNumber)
		*counted = BGUARD_MUTANT(SIZE_FIRST) ?
			(BlockNumber) pg_atomic_read_u64(&build->worker->blocks_total) : end;
	end = Min(end, *counted);
	BGUARD_PAUSE("scan-counted");

	*done = false;
	while (*next < end && !*done)
	{
		CHECK_FOR_INTERRUPTS();
		bguard_compat_cost_delay();
		if (bguard_build_poisoned(build))
		{
			result = BGUARD_BUILD_CHANGED;
			break;
		}
		if (BGUARD_PAUSED("scan-page-%u", *next))
			break;
		scan_page(chunk, (*next)++);
		pg_atomic_write_u64(&build->worker->blocks_done,
							pg_atomic_read_u64(&build->worker->blocks_done) + 1);
		/* 64 pages take long when they are slept upon */
		if (VacuumCostActive || *next % PAGES_PER_CLOCK == 0)
		{
			pg_atomic_write_u64(&build->worker->tuples_done, build->tuples_done);
			if (TimestampDifferenceExceeds(start, GetCurrentTimestamp(), CHUNK_MS))
				break;
		}
	}
	flush_hashes(chunk);
	*done = *next >= end;
	pg_atomic_write_u64(&build->worker->tuples_done, build->tuples_done);

	SetUserIdAndSecContext(user, security);
	relation_close(chunk->rel, NoLock);
	return result;
}

/*
 * bguard_build_scan
 *		Scan one leaf completely.
 *
 * BGUARD_BUILD_DONE also when the leaf is gone.  CHANGED: discard the build.
 * LOCKED: the leaf's lock was not to be had for a minute.
 */
BGuardBuildResult
bguard_build_scan(BGuardBuild *build, const BGuardMember *member)
{
	BlockNumber next = 0;
	BlockNumber counted = InvalidBlockNumber;
	BGuardBuildResult result;
	bool		done;

	build->worker->relid = member->relid;
	do
	{
		BGUARD_PAUSE("scan-begin");
		StartTransactionCommand();
		/* no snapshot while waiting: who has the lock may wait for older ones */
		if (bguard_build_lock(build, member->relid, AccessShareLock, LOCK_WAIT_MS))
		{
			PushActiveSnapshot(GetTransactionSnapshot());
			result = scan_chunk(build, member, &next, &counted, &done);
			PopActiveSnapshot();
		}
		else
			result = bguard_build_poisoned(build) ?
				BGUARD_BUILD_CHANGED : BGUARD_BUILD_LOCKED;
		CommitTransactionCommand();
	} while (result == BGUARD_BUILD_DONE && !done);
	return result;
}
