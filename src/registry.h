/*
 * registry.h
 *		Which filter guards which relation: entries, the link word, poison.
 *
 * THE LOCKING AND ORDERING RULES
 *
 * Entry = { link, poison counter, key, signature, owner, state for the views }.
 * link is ONE 64-bit atomic { current slot:16, building slot:16, counter:32 };
 * slot 0 means none, and a filter answers only while current is not 0.
 *
 * V1 A current generation has every bit of every tuple version that a snapshot
 *	  can see.
 * V2 A generation that is current or building receives every add.
 * V3 Bits of a generation are never cleared while it is linked.
 * V4 Any doubt answers maybe.
 * V5 Every change of the link adds 1 to its counter, which is never reset, not
 *	  even when an entry is used again for another filter.
 * V6 Key and signature change only while both slots are 0, under bguard_lock.
 *	  Readers compare them between their two loads of the link.
 *
 * ADD	  row is on its page; hash; FULL BARRIER; load the link ONCE; for both
 *		  slots that are there: load the span once, check bounds, set bits.
 * PROBE  snapshot taken, relation locked; l1 = link; current 0: maybe; READ
 *		  BARRIER; key and signature are the relation's, else maybe; span, bounds,
 *		  bits; READ BARRIER; l2 = link; l1 != l2: maybe.
 * POISON poison counter + 1 (full barrier); then both slots to 0 by compare-and-
 *		  swap, counter + 1, also when both are 0 already.  No lock, no memory, no
 *		  transaction; not undone by rollback.  For DDL only while the command's
 *		  table lock is held.
 * BUILD  see build.h: remember the poison counter; FULL BARRIER; claim; check the
 *		  definition under short locks; take a slot; clear; WRITE BARRIER; publish;
 *		  FULL BARRIER; relation sizes, scan; poison counter unchanged; validate by
 *		  ONE compare-and-swap {old, G, c} -> {G, 0, c + 1}; free the old slot.
 *
 * bguard_lock (exclusive): key, signature, owner, slots, state texts, creation
 * and retirement.  Shared: looking an entry up.  It is never held while
 * anything is allocated, raised or read from a catalog, and never taken on the
 * probe path once the entry is cached.
 *
 * control->version grows with every creation, retirement and concerning DDL.  A
 * backend that caches "trigger or relation -> entry" (negative results
 * included) reads the version BEFORE the lookup and drops the cache when it moved.
 *
 * An entry's key is (database, root relation, root trigger): the trigger is the
 * filter's definition, so its OID is the filter's identity.
 */
#ifndef BGUARD_REGISTRY_H
#define BGUARD_REGISTRY_H

#include "arena.h"
#include "keys.h"

typedef struct BGuardEntryKey
{
	Oid			dboid;			/* InvalidOid: entry is free */
	Oid			relid;			/* root relation */
	Oid			tgoid;			/* root trigger */
} BGuardEntryKey;

/* one key column in the root's numbering; compared member by member */
typedef struct BGuardSigColumn
{
	AttrNumber	attnum;
	Oid			typid;
	Oid			collid;
	Oid			hashproc;
	Oid			innerproc;		/* of what a container holds; keys.h */
} BGuardSigColumn;

typedef struct BGuardSignature
{
	int32		ncols;
	BGuardSigColumn cols[BGUARD_MAX_KEY_COLUMNS];
} BGuardSignature;

/* why a filter was poisoned last; texts by bguard_registry_poison_text */
typedef enum BGuardPoison
{
	BGUARD_POISON_NONE,
	BGUARD_POISON_TRIGGER,		/* created, altered or replaced */
	BGUARD_POISON_TRIGGER_DROP,
	BGUARD_POISON_COLUMN,		/* key column renamed, dropped, type, collation */
	BGUARD_POISON_REWRITE,		/* table rewritten while key column altered */
	BGUARD_POISON_ATTACH,		/* partition with rows, or inheritance child */
	BGUARD_POISON_FUNCTION,		/* our function or a hash function changed */
	BGUARD_POISON_RELATION,		/* dropped */
	BGUARD_POISON_ADD			/* the add path could not do its work */
} BGuardPoison;

/* worker's verdict on an entry; the views derive the rest from the link */
typedef enum BGuardVerdict
{
	BGUARD_VERDICT_PENDING,		/* nothing known against it */
	BGUARD_VERDICT_BLOCKED,		/* definition unsound, see reason */
	BGUARD_VERDICT_NO_MEMORY	/* arena full, see reason */
} BGuardVerdict;

#define BGUARD_REASON_LEN	256

/* why a probe could not be answered; counted per entry */
typedef enum BGuardUnguarded
{
	BGUARD_UNGUARDED_NOT_READY,	/* no current generation */
	BGUARD_UNGUARDED_CHANGED,	/* link moved under the probe, or signature */
	BGUARD_UNGUARDED_IN_FLIGHT,
	BGUARD_UNGUARDED_SERIALIZABLE,
	BGUARD_UNGUARDED_RLS,
	BGUARD_UNGUARDED_SNAPSHOT,	/* no MVCC snapshot */
	BGUARD_UNGUARDED_OLD_SNAPSHOT,	/* old_snapshot_threshold */
	BGUARD_UNGUARDED_NULL,
	BGUARD_UNGUARDED_LOCK,
	BGUARD_UNGUARDED_DISABLED,	/* bloomguard.enabled */
	BGUARD_UNGUARDED_RECOVERY
#define BGUARD_UNGUARDED_COUNT	(BGUARD_UNGUARDED_RECOVERY + 1)
} BGuardUnguarded;

typedef struct BGuardCounters
{
	pg_atomic_uint64 absent;
	pg_atomic_uint64 maybe;		/* bits were tested and set */
	pg_atomic_uint64 unguarded[BGUARD_UNGUARDED_COUNT];
	pg_atomic_uint64 adds;
	pg_atomic_uint64 rotations;
} BGuardCounters;

typedef struct BGuardEntry
{
	/* read by every add and probe, written rarely: a cache line of its own */
	pg_atomic_uint64 link;
	pg_atomic_uint32 poison;	/* poison counter */
	pg_atomic_uint32 poison_reason; /* BGuardPoison of the last poison */
	char		pad1[PG_CACHE_LINE_SIZE - 16];

	BGuardEntryKey key;
	BGuardSignature sig;
	BGuardOwner owner;			/* build that claims the entry */

	/* what the worker knows, for the views and for scheduling */
	BGuardVerdict verdict;
	uint32		verdict_poison;	/* poison counter the verdict was found at */
	char		reason[BGUARD_REASON_LEN];
	char		last_error[BGUARD_REASON_LEN];
	pg_atomic_uint64 since;		/* TimestampTz of the last change of state */
	TimestampTz retry_at;		/* not before then, unless poisoned since */
	uint32		failures;		/* in a row */
	TimestampTz next_build;		/* never before then: back-off of builds */
	uint32		streak;			/* builds in quick succession */
	TimestampTz build_end;		/* of the last build */
	double		build_seconds;	/* of the last build */
	uint32		generation;		/* validated so far */
	pg_atomic_uint32 rotation_wanted;	/* requests so far */
	uint32		rotation_done;	/* requests answered */

	BGuardCounters counters;
	TimestampTz stats_reset;
} BGuardEntry;

/* the link word */
#define BGUARD_LINK(cur, bld, ctr) \
	(((uint64) (cur) << 48) | ((uint64) (bld) << 32) | (uint32) (ctr))
#define BGUARD_LINK_CURRENT(l)	((uint32) ((l) >> 48))
#define BGUARD_LINK_BUILDING(l)	((uint32) (((l) >> 32) & 0xffff))
#define BGUARD_LINK_COUNTER(l)	((uint32) (l))

extern void bguard_registry_init(void);

/* entries are type-stable: the address of number 0 .. max_filters - 1 */
extern BGuardEntry *bguard_registry_entry(int number);

extern uint64 bguard_registry_version(void);
extern void bguard_registry_bump_version(void);

/* takes bguard_lock shared; -1 when there is none */
extern int	bguard_registry_find(const BGuardEntryKey *key);
/* takes bguard_lock shared: are all max_filters entries in use? */
extern bool bguard_registry_full(void);
/* takes bguard_lock shared: is any entry of this database in use? */
extern bool bguard_registry_database_used(Oid dboid);

/* poison: no lock, no memory, no error (the lookup by relation takes the lock) */
extern void bguard_registry_poison(BGuardEntry *entry, BGuardPoison reason);
extern void bguard_registry_poison_trigger(Oid dboid, Oid tgoid,
										   BGuardPoison reason);
extern void bguard_registry_poison_relation(Oid dboid, Oid relid,
											BGuardPoison reason);
extern void bguard_registry_poison_database(Oid dboid, BGuardPoison reason);
/*
 * Entries of this database whose signature names the function; InvalidOid: that
 * hash what is inside arrays or ranges, by whatever function.
 */
extern void bguard_registry_poison_hashproc(Oid dboid, Oid hashproc,
											BGuardPoison reason);
extern bool bguard_registry_uses_hashproc(Oid dboid, Oid hashproc);
extern const char *bguard_registry_poison_text(BGuardPoison reason);

/* ask for a rotation of a root relation's filter, tgoid InvalidOid: of all */
extern void bguard_registry_want_rotation(Oid dboid, Oid relid, Oid tgoid);
/* something changed in the database: do not wait for the next try */
extern void bguard_registry_retry_soon(Oid dboid);

/* worker side; each takes bguard_lock itself unless it says otherwise */
extern int	bguard_registry_create(const BGuardEntryKey *key,
								   const BGuardSignature *sig);
extern void bguard_registry_retire(int number, const BGuardEntryKey *key);
/* true when key and signature are as given, made so while both slots are 0 */
extern bool bguard_registry_set_signature(int number,
										  const BGuardSignature *sig);
extern bool bguard_registry_claim(int number, const BGuardEntryKey *key,
								  BGuardOwner owner);
extern void bguard_registry_release(int number, BGuardOwner owner);
extern uint64 bguard_registry_publish(BGuardEntry *entry, uint32 slot);
extern bool bguard_registry_validate(BGuardEntry *entry, uint64 published);
extern void bguard_registry_discard(BGuardEntry *entry, uint32 slot,
									BGuardOwner owner);
/* copy to a text of BGUARD_REASON_LEN bytes, cut between two characters */
extern void bguard_registry_clip(char *to, const char *from);
/* the verdict holds while the poison counter is as given; retry after delay, ms */
extern void bguard_registry_set_verdict(int number, BGuardVerdict verdict,
										uint32 poison, const char *reason,
										int64 retry_ms);
/* does the entry need a worker by now?  bguard_lock held, shared at least */
extern bool bguard_registry_due(const BGuardEntry *entry, TimestampTz now);

extern bool bguard_signature_equal(const BGuardSignature *a,
								   const BGuardSignature *b);

#endif							/* BGUARD_REGISTRY_H */
