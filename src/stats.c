/*
 * stats.c
 *		Counters: backend-local on the hot path, flushed at transaction end.
 *
 * The local array has a place for every entry of the registry and is allocated
 * at first use.  Touched places are chained, so that a flush visits no others.
 * Flushing needs no lock: shared counters are atomics.
 */
#include "postgres.h"

#include "access/xact.h"
#include "request.h"
#include "stats.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

typedef struct LocalPlace
{
	BGuardLocalCounters counters;
	int32		next;			/* next touched place, -1: last */
	bool		touched;
} LocalPlace;

static LocalPlace *places = NULL;
static int32 first_touched = -1;

static void
add_to(pg_atomic_uint64 *counter, uint64 delta)
{
	if (delta != 0)
		pg_atomic_fetch_add_u64(counter, delta);
}

/*
 * New keys are counted for the slot they went to.  A filter that has taken more
 * keys than it was sized for asks for a rotation; whoever crosses the line
 * wakes the launcher.
 */
static void
flush_new_keys(BGuardEntry *entry, BGuardLocalCounters *local)
{
	uint64		link = pg_atomic_read_u64(&entry->link);

	for (int i = 0; i < 2; i++)
	{
		BGuardSlot *slot;
		uint64		before;

		if (local->new_keys[i] == 0 ||
			(local->slots[i] != BGUARD_LINK_CURRENT(link) &&
			 local->slots[i] != BGUARD_LINK_BUILDING(link)))
			continue;
		slot = bguard_arena_slot(local->slots[i]);
		before = pg_atomic_fetch_add_u64(&slot->keys_added, local->new_keys[i]);
		if (before <= slot->capacity &&
			before + local->new_keys[i] > slot->capacity &&
			local->slots[i] == BGUARD_LINK_CURRENT(link))
		{
			pg_atomic_fetch_add_u32(&entry->rotation_wanted, 1);
			bguard_request_wake();
		}
	}
}

/* add this backend's counts to the shared ones */
static void
flush(void)
{
	while (first_touched >= 0)
	{
		LocalPlace *place = &places[first_touched];
		BGuardEntry *entry = bguard_registry_entry(first_touched);
		BGuardLocalCounters *local = &place->counters;

		/* an entry used again for another filter gets nothing of ours */
		if (entry->key.tgoid == local->tgoid)
		{
			add_to(&entry->counters.absent, local->absent);
			add_to(&entry->counters.maybe, local->maybe);
			add_to(&entry->counters.adds, local->adds);
			for (int r = 0; r < BGUARD_UNGUARDED_COUNT; r++)
				add_to(&entry->counters.unguarded[r], local->unguarded[r]);
			flush_new_keys(entry, local);
		}
		memset(local, 0, sizeof(BGuardLocalCounters));
		place->touched = false;
		first_touched = place->next;
	}
}

static void
xact_callback(XactEvent event, void *arg)
{
	if (event == XACT_EVENT_COMMIT || event == XACT_EVENT_ABORT ||
		event == XACT_EVENT_PREPARE || event == XACT_EVENT_PARALLEL_COMMIT ||
		event == XACT_EVENT_PARALLEL_ABORT)
		flush();
}

/*
 * bguard_stats_init
 *		From _PG_init, when preloading only.
 */
void
bguard_stats_init(void)
{
	RegisterXactCallback(xact_callback, NULL);
}

/*
 * bguard_stats_local
 *		This backend's counters for the entry, under the name of its trigger.
 */
BGuardLocalCounters *
bguard_stats_local(int entry, Oid tgoid)
{
	LocalPlace *place;

	if (unlikely(places == NULL))
		places = MemoryContextAllocZero(TopMemoryContext,
										sizeof(LocalPlace) * bguard_control->max_filters);
	place = &places[entry];
	if (unlikely(!place->touched || place->counters.tgoid != tgoid))
	{
		if (!place->touched)
		{
			place->touched = true;
			place->next = first_touched;
			first_touched = entry;
		}
		memset(&place->counters, 0, sizeof(BGuardLocalCounters));
		place->counters.tgoid = tgoid;
	}
	return &place->counters;
}

/*
 * bguard_stats_reset
 *		Zero the counters of an entry.
 */
void
bguard_stats_reset(BGuardEntry *entry)
{
	pg_atomic_write_u64(&entry->counters.absent, 0);
	pg_atomic_write_u64(&entry->counters.maybe, 0);
	pg_atomic_write_u64(&entry->counters.adds, 0);
	pg_atomic_write_u64(&entry->counters.rotations, 0);
	for (int r = 0; r < BGUARD_UNGUARDED_COUNT; r++)
		pg_atomic_write_u64(&entry->counters.unguarded[r], 0);
	entry->stats_reset = GetCurrentTimestamp();
}

/*
 * bguard_stats_unguarded_name
 *		Key of the reason in bloomguard_stats.unguarded_reasons.
 */
const char *
bguard_stats_unguarded_name(BGuardUnguarded reason)
{
	static const char *const names[] = {
		[BGUARD_UNGUARDED_NOT_READY] = "not_ready",
		[BGUARD_UNGUARDED_CHANGED] = "changed",
		[BGUARD_UNGUARDED_IN_FLIGHT] = "in_flight",
		[BGUARD_UNGUARDED_SERIALIZABLE] = "serializable",
		[BGUARD_UNGUARDED_RLS] = "row_security",
		[BGUARD_UNGUARDED_SNAPSHOT] = "snapshot",
		[BGUARD_UNGUARDED_OLD_SNAPSHOT] = "old_snapshot_threshold",
		[BGUARD_UNGUARDED_NULL] = "null_key",
		[BGUARD_UNGUARDED_LOCK] = "relation_locked",
		[BGUARD_UNGUARDED_DISABLED] = "disabled",
		[BGUARD_UNGUARDED_RECOVERY] = "recovery",
	};

	StaticAssertStmt(lengthof(names) == BGUARD_UNGUARDED_COUNT,
					 "every reason has a name");
	return names[reason];
}
