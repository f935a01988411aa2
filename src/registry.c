/*
 * registry.c
 *		Entries, the link word, poison.  The rules are in registry.h.
 */
#include "postgres.h"

#include "debug.h"
#include "fleet.h"
#include "guc.h"
#include "mb/pg_wchar.h"
#include "registry.h"
#include "utils/timestamp.h"

/* a filter out of service waits no longer for its next build, however long it takes */
#define NOT_READY_MAX_MS	300000

/* each begins a cache line: links of neighbours shall not share one */
typedef union PaddedEntry
{
	BGuardEntry entry;
	char		pad[CACHELINEALIGN(sizeof(BGuardEntry))];
} PaddedEntry;

static PaddedEntry *entries = NULL;

static Size
area_size(void)
{
	return mul_size(bguard_max_filters, sizeof(PaddedEntry));
}

static void
area_attach(void *area, bool found)
{
	entries = area;
	if (found)
		return;

	memset(entries, 0, area_size());
	for (int i = 0; i < bguard_max_filters; i++)
	{
		BGuardEntry *e = &entries[i].entry;

		pg_atomic_init_u64(&e->link, 0);
		pg_atomic_init_u32(&e->poison, 0);
		pg_atomic_init_u32(&e->poison_reason, BGUARD_POISON_NONE);
		pg_atomic_init_u64(&e->since, 0);
		pg_atomic_init_u32(&e->rotation_wanted, 0);
		pg_atomic_init_u64(&e->counters.absent, 0);
		pg_atomic_init_u64(&e->counters.maybe, 0);
		pg_atomic_init_u64(&e->counters.adds, 0);
		pg_atomic_init_u64(&e->counters.rotations, 0);
		for (int r = 0; r < BGUARD_UNGUARDED_COUNT; r++)
			pg_atomic_init_u64(&e->counters.unguarded[r], 0);
	}
}

/*
 * bguard_registry_init
 *		Ask for the entries.  From _PG_init, when preloading only.
 */
void
bguard_registry_init(void)
{
	bguard_arena_add_area(area_size, area_attach);
}

/*
 * bguard_registry_entry
 *		Entry 0 .. max_filters - 1; the address never changes its meaning.
 */
BGuardEntry *
bguard_registry_entry(int number)
{
	Assert(number >= 0 && (uint32) number < bguard_control->max_filters);
	return &entries[number].entry;
}

/*
 * bguard_registry_version
 *		Read it BEFORE the look-up that is to be cached.
 */
uint64
bguard_registry_version(void)
{
	return pg_atomic_read_u64(&bguard_control->version);
}

/*
 * bguard_registry_bump_version
 *		Make every backend look its cached entries up again.
 */
void
bguard_registry_bump_version(void)
{
	pg_atomic_fetch_add_u64(&bguard_control->version, 1);
}

static bool
key_equal(const BGuardEntryKey *a, const BGuardEntryKey *b)
{
	return a->dboid == b->dboid && a->relid == b->relid && a->tgoid == b->tgoid;
}

/*
 * bguard_signature_equal
 *		Member by member: the struct has padding.
 */
bool
bguard_signature_equal(const BGuardSignature *a, const BGuardSignature *b)
{
	if (a->ncols != b->ncols)
		return false;
	for (int i = 0; i < a->ncols && i < BGUARD_MAX_KEY_COLUMNS; i++)
	{
		if (a->cols[i].attnum != b->cols[i].attnum ||
			a->cols[i].typid != b->cols[i].typid ||
			a->cols[i].collid != b->cols[i].collid ||
			a->cols[i].hashproc != b->cols[i].hashproc ||
			a->cols[i].innerproc != b->cols[i].innerproc)
			return false;
	}
	return true;
}

static int
find_locked(const BGuardEntryKey *key)
{
	for (uint32 i = 0; i < bguard_control->max_filters; i++)
	{
		if (key_equal(&entries[i].entry.key, key))
			return (int) i;
	}
	return -1;
}

/*
 * bguard_registry_find
 *		Number of the entry with this key, or -1.
 */
int
bguard_registry_find(const BGuardEntryKey *key)
{
	int			number;

	LWLockAcquire(bguard_lock, LW_SHARED);
	number = find_locked(key);
	LWLockRelease(bguard_lock);
	return number;
}

/*
 * bguard_registry_full
 *		Is there no entry left for another filter?
 */
bool
bguard_registry_full(void)
{
	bool		full = true;

	LWLockAcquire(bguard_lock, LW_SHARED);
	for (uint32 i = 0; i < bguard_control->max_filters && full; i++)
		full = bguard_registry_entry((int) i)->key.dboid != InvalidOid;
	LWLockRelease(bguard_lock);
	return full;
}

/*
 * bguard_registry_database_used
 *		Is any entry of the database in use?
 */
bool
bguard_registry_database_used(Oid dboid)
{
	bool		used = false;

	LWLockAcquire(bguard_lock, LW_SHARED);
	for (uint32 i = 0; i < bguard_control->max_filters && !used; i++)
		used = entries[i].entry.key.dboid == dboid;
	LWLockRelease(bguard_lock);
	return used;
}

/*
 * bguard_registry_want_rotation
 *		Ask for a rotation of one filter or all filters of a root relation.  One
 *		that waits for its next try, blocked or without memory, tries at once.
 */
void
bguard_registry_want_rotation(Oid dboid, Oid relid, Oid tgoid)
{
	LWLockAcquire(bguard_lock, LW_EXCLUSIVE);
	for (uint32 i = 0; i < bguard_control->max_filters; i++)
	{
		BGuardEntry *e = &entries[i].entry;

		if (e->key.dboid == dboid && e->key.relid == relid &&
			(!OidIsValid(tgoid) || e->key.tgoid == tgoid))
		{
			pg_atomic_fetch_add_u32(&e->rotation_wanted, 1);
			e->retry_at = 0;
		}
	}
	LWLockRelease(bguard_lock);
}

/*
 * bguard_registry_retry_soon
 *		Let filters of the database that are blocked, or wait for a lock, try again
 *		at once: what was in their way may be gone.
 */
void
bguard_registry_retry_soon(Oid dboid)
{
	LWLockAcquire(bguard_lock, LW_EXCLUSIVE);
	for (uint32 i = 0; i < bguard_control->max_filters; i++)
	{
		BGuardEntry *e = &entries[i].entry;

		if (e->key.dboid == dboid && e->verdict != BGUARD_VERDICT_NO_MEMORY)
			e->retry_at = 0;
	}
	LWLockRelease(bguard_lock);
}

/*
 * Free every slot of the entry that is not linked and whose owner is gone.
 * bguard_lock is held exclusively.
 */
static void
sweep_slots(int number)
{
	uint64		link = pg_atomic_read_u64(&entries[number].entry.link);

	for (uint32 s = 1; s < bguard_control->nslots; s++)
	{
		BGuardSlot *slot = bguard_arena_slot(s);

		if ((pg_atomic_read_u64(&slot->span) & 0xffffffff) != 0 &&
			slot->entry == number &&
			s != BGUARD_LINK_CURRENT(link) && s != BGUARD_LINK_BUILDING(link) &&
			!bguard_fleet_alive(slot->owner))
			bguard_arena_free(s);
	}
}

/*
 * bguard_registry_create
 *		A new entry, or the one that has this key already.  -1 when all
 *		max_filters entries are in use.
 */
int
bguard_registry_create(const BGuardEntryKey *key, const BGuardSignature *sig)
{
	int			number;

	LWLockAcquire(bguard_lock, LW_EXCLUSIVE);
	number = find_locked(key);
	if (number < 0)
	{
		for (uint32 i = 0; i < bguard_control->max_filters; i++)
		{
			BGuardEntry *e = &entries[i].entry;

			if (e->key.dboid != InvalidOid || bguard_fleet_alive(e->owner))
				continue;
			number = (int) i;
			e->sig = *sig;
			e->owner.start = 0;
			e->verdict = BGUARD_VERDICT_PENDING;
			e->verdict_poison = pg_atomic_read_u32(&e->poison);
			e->reason[0] = e->last_error[0] = '\0';
			e->retry_at = e->next_build = e->build_end = 0;
			e->failures = e->streak = e->generation = 0;
			e->build_seconds = 0;
			e->rotation_done = pg_atomic_read_u32(&e->rotation_wanted);
			e->stats_reset = GetCurrentTimestamp();
			pg_atomic_write_u32(&e->poison_reason, BGUARD_POISON_NONE);
			pg_atomic_write_u64(&e->since, (uint64) e->stats_reset);
			pg_atomic_write_u64(&e->counters.absent, 0);
			pg_atomic_write_u64(&e->counters.maybe, 0);
			pg_atomic_write_u64(&e->counters.adds, 0);
			pg_atomic_write_u64(&e->counters.rotations, 0);
			for (int r = 0; r < BGUARD_UNGUARDED_COUNT; r++)
				pg_atomic_write_u64(&e->counters.unguarded[r], 0);
			pg_write_barrier();
			e->key = *key;
			pg_write_barrier();
			bguard_registry_bump_version();
			break;
		}
	}
	LWLockRelease(bguard_lock);
	return number;
}

/*
 * bguard_registry_retire
 *		The filter's definition is gone: poison, free its memory and the entry, if
 *		it still has this key.  A slot that a living builder owns is freed by that
 *		builder.
 */
void
bguard_registry_retire(int number, const BGuardEntryKey *key)
{
	BGuardEntry *e = &entries[number].entry;

	LWLockAcquire(bguard_lock, LW_EXCLUSIVE);
	if (key_equal(&e->key, key))
	{
		bguard_registry_poison(e, BGUARD_POISON_RELATION);
		sweep_slots(number);
		e->key.dboid = e->key.relid = e->key.tgoid = InvalidOid;
		bguard_registry_bump_version();

		/* there is room now: let those try again who found none */
		for (uint32 i = 0; i < bguard_control->max_filters; i++)
		{
			if (entries[i].entry.verdict == BGUARD_VERDICT_NO_MEMORY)
				entries[i].entry.retry_at = 0;
		}
	}
	LWLockRelease(bguard_lock);
}

/*
 * bguard_registry_set_signature
 *		Give the entry this signature.  Fails while a slot is linked under
 *		another one: the caller poisons and tries again.
 */
bool
bguard_registry_set_signature(int number, const BGuardSignature *sig)
{
	BGuardEntry *e = &entries[number].entry;
	bool		done = true;

	LWLockAcquire(bguard_lock, LW_EXCLUSIVE);
	if (!bguard_signature_equal(&e->sig, sig))
	{
		uint64		link = pg_atomic_read_u64(&e->link);

		/* only the owner of the entry links a slot, and the caller owns it */
		done = BGUARD_LINK_CURRENT(link) == 0 && BGUARD_LINK_BUILDING(link) == 0;
		if (done)
		{
			e->sig = *sig;
			pg_write_barrier();
			bguard_registry_bump_version();
		}
	}
	LWLockRelease(bguard_lock);
	return done;
}

/*
 * bguard_registry_claim
 *		Become the entry's only builder.  Reclaims what a dead one left behind.
 *		false when the entry is another filter's by now, or has a living owner.
 */
bool
bguard_registry_claim(int number, const BGuardEntryKey *key, BGuardOwner owner)
{
	BGuardEntry *e = &entries[number].entry;
	bool		done;

	LWLockAcquire(bguard_lock, LW_EXCLUSIVE);
	done = key_equal(&e->key, key) && !bguard_fleet_alive(e->owner);
	if (done)
	{
		uint64		link = pg_atomic_read_u64(&e->link);

		e->owner = owner;
		while (BGUARD_LINK_BUILDING(link) != 0 &&
			   !pg_atomic_compare_exchange_u64(&e->link, &link,
											   BGUARD_LINK(BGUARD_LINK_CURRENT(link), 0,
														   BGUARD_LINK_COUNTER(link) + 1)))
			 /* link was re-read */ ;
		sweep_slots(number);
	}
	LWLockRelease(bguard_lock);
	return done;
}

/*
 * bguard_registry_release
 *		Give the claim back.
 */
void
bguard_registry_release(int number, BGuardOwner owner)
{
	BGuardEntry *e = &entries[number].entry;

	LWLockAcquire(bguard_lock, LW_EXCLUSIVE);
	if (e->owner.worker == owner.worker && e->owner.start == owner.start)
		e->owner.start = 0;
	LWLockRelease(bguard_lock);
}

/*
 * bguard_registry_publish
 *		Make the slot, whose bits are clear and whose fields are set, a target of
 *		adds.  Returns the link as it stands now: { old, slot, c }.
 */
uint64
bguard_registry_publish(BGuardEntry *entry, uint32 slot)
{
	uint64		link;
	uint64		published;

	pg_write_barrier();
	link = pg_atomic_read_u64(&entry->link);
	do
		published = BGUARD_LINK(BGUARD_LINK_CURRENT(link), slot,
								BGUARD_LINK_COUNTER(link) + 1);
	while (!pg_atomic_compare_exchange_u64(&entry->link, &link, published));
	pg_memory_barrier();
	return published;
}

/*
 * bguard_registry_validate
 *		{ old, G, c } -> { G, 0, c + 1 } in one step; then old's run is free, late
 *		readers fail their second look at the link.
 *
 * The lock spans the step and the freeing: an unlinked slot without a living
 * owner may be swept, and taken by another filter, as soon as it is released.
 */
bool
bguard_registry_validate(BGuardEntry *entry, uint64 published)
{
	uint64		expected = published;
	uint32		old = BGUARD_LINK_CURRENT(published);
	uint32		slot = BGUARD_LINK_BUILDING(published);
	bool		done;

	LWLockAcquire(bguard_lock, LW_EXCLUSIVE);
	if (BGUARD_MUTANT(BLIND_VALIDATE))
		expected = pg_atomic_read_u64(&entry->link);
	done = pg_atomic_compare_exchange_u64(&entry->link, &expected,
										  BGUARD_LINK(slot, 0,
													  BGUARD_LINK_COUNTER(published) + 1));
	if (done)
	{
		/* from here on the link keeps the slot, not the build */
		bguard_arena_slot(slot)->owner.start = 0;
		entry->generation++;
		if (old != 0)
			bguard_arena_free(old);
		else
			pg_atomic_write_u64(&entry->since, (uint64) GetCurrentTimestamp());
	}
	LWLockRelease(bguard_lock);
	return done;
}

/*
 * bguard_registry_discard
 *		Unlink the slot if it is linked as building, and free it if it is still
 *		this build's.
 */
void
bguard_registry_discard(BGuardEntry *entry, uint32 slot, BGuardOwner owner)
{
	uint64		link = pg_atomic_read_u64(&entry->link);
	BGuardSlot *s = bguard_arena_slot(slot);

	while (BGUARD_LINK_BUILDING(link) == slot &&
		   !pg_atomic_compare_exchange_u64(&entry->link, &link,
										   BGUARD_LINK(BGUARD_LINK_CURRENT(link), 0,
													   BGUARD_LINK_COUNTER(link) + 1)))
		 /* link was re-read */ ;

	LWLockAcquire(bguard_lock, LW_EXCLUSIVE);
	if (s->owner.worker == owner.worker && s->owner.start == owner.start &&
		s->owner.start != 0)
		bguard_arena_free(slot);
	LWLockRelease(bguard_lock);
}

/*
 * bguard_registry_clip
 *		See registry.h.  Half a character in a view fails whoever converts it.
 */
void
bguard_registry_clip(char *to, const char *from)
{
	int			len = pg_mbcliplen(from, (int) strlen(from), BGUARD_REASON_LEN - 1);

	memcpy(to, from, len);
	to[len] = '\0';
}

/*
 * bguard_registry_set_verdict
 *		What the worker found out, valid while the poison counter is "poison".
 *		reason may be NULL.  retry_ms: when to try again, in milliseconds.
 */
void
bguard_registry_set_verdict(int number, BGuardVerdict verdict, uint32 poison,
							const char *reason, int64 retry_ms)
{
	BGuardEntry *e = &entries[number].entry;
	TimestampTz now = GetCurrentTimestamp();

	LWLockAcquire(bguard_lock, LW_EXCLUSIVE);
	if (e->verdict != verdict)
		pg_atomic_write_u64(&e->since, (uint64) now);
	e->verdict = verdict;
	e->verdict_poison = poison;
	bguard_registry_clip(e->reason, reason ? reason : "");
	e->retry_at = TimestampTzPlusMilliseconds(now, retry_ms);
	LWLockRelease(bguard_lock);
}

/*
 * bguard_registry_due
 *		Has the entry no current generation, or a rotation to do, and is it time?
 */
bool
bguard_registry_due(const BGuardEntry *entry, TimestampTz now)
{
	uint64		link = pg_atomic_read_u64(unconstify(pg_atomic_uint64 *, &entry->link));
	uint32		poison = pg_atomic_read_u32(unconstify(pg_atomic_uint32 *, &entry->poison));
	uint32		wanted = pg_atomic_read_u32(unconstify(pg_atomic_uint32 *, &entry->rotation_wanted));

	if (entry->key.dboid == InvalidOid || bguard_fleet_alive(entry->owner))
		return false;
	if (BGUARD_LINK_CURRENT(link) != 0 && wanted == entry->rotation_done)
		return false;
	if (now < entry->next_build &&
		(BGUARD_LINK_CURRENT(link) != 0 ||
		 now < TimestampTzPlusMilliseconds(entry->build_end, NOT_READY_MAX_MS)))
		return false;
	return poison != entry->verdict_poison || now >= entry->retry_at;
}
