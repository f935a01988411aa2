/*
 * arena.h
 *		Our block of the main shared memory segment.
 *
 * The block holds a control struct, areas that other rooms ask for before the
 * server starts, a table of slots, and the arena: lines of 64 bytes for bits.
 *
 * The slot table is the allocator: every slot that is taken names one run of
 * lines, what no slot names is free, and TAKE picks the first gap that fits.
 * NOTHING BUT BITS, not even a free-list link, is ever stored in the arena.  A
 * late reader or writer of a generation that is gone can so at worst read or set
 * a meaningless bit, in bounds.
 *
 * LOCKING: bguard_lock (one LWLock) protects taking and freeing slots.  A slot's
 * span is one 64-bit atomic word, written under the lock and read without it,
 * so it cannot be torn.  Its other fields are written by the owner before the
 * slot is linked (see registry.h) and do not change while it is.  There are no
 * pointers in the block.
 */
#ifndef BGUARD_ARENA_H
#define BGUARD_ARENA_H

#include "core/bloom.h"
#include "core/sizing.h"
#include "datatype/timestamp.h"
#include "port/atomics.h"
#include "storage/lwlock.h"

#ifdef PG_HAVE_ATOMIC_U64_SIMULATION
#error "bloomguard needs native 64-bit atomic operations"
#endif

/* changes with every change of a struct in the block */
#define BGUARD_LAYOUT_VERSION	1

typedef struct BGuardControl
{
	uint32		layout_version;
	uint32		max_filters;
	uint32		nslots;			/* slots are numbered 1 .. nslots - 1 */
	uint64		arena_lines;
	uint64		seed;			/* of all hashes of this cluster start */
	pg_atomic_uint64 version;	/* see registry.h */
} BGuardControl;

/* a build: who took a slot or an entry.  start 0 means nobody */
typedef struct BGuardOwner
{
	uint32		worker;			/* number in the worker table */
	uint32		start;			/* its start counter, never 0 */
} BGuardOwner;

typedef struct BGuardSlot
{
	pg_atomic_uint64 span;		/* first line << 32 | lines; lines 0: free */
	uint32		hashes;			/* k */
	int32		entry;			/* registry entry it was taken for */
	BGuardOwner owner;			/* the build that took it */
	uint64		capacity;		/* keys it was sized for */
	double		rate;			/* false-positive rate it was sized for */
	TimestampTz built_at;		/* 0 until validated */
	double		build_seconds;
	pg_atomic_uint64 keys_added;	/* adds that set at least one bit */
} BGuardSlot;

/* this backend's view of the block; NULL when the library was not preloaded */
extern BGuardControl *bguard_control;
extern LWLock *bguard_lock;

#define bguard_attached()	(bguard_control != NULL)

/*
 * Another room's area.  size() is called when shared memory is requested,
 * attach() at start-up with the area's address; found is false when it must be
 * initialised (the memory is not zeroed).  Register from _PG_init only.
 */
typedef Size (*bguard_area_size) (void);
typedef void (*bguard_area_attach) (void *area, bool found);

extern void bguard_arena_add_area(bguard_area_size size,
								  bguard_area_attach attach);
extern void bguard_arena_init(void);

/* error 55000 that names the setting, unless the library was preloaded */
extern void bguard_arena_require(void);

/* before the lock is taken for bguard_arena_take() or bguard_arena_usage() */
extern void bguard_arena_prepare(void);
/* bguard_lock held exclusively.  0 when no gap fits, else the slot's number */
extern uint32 bguard_arena_take(uint64 lines, int32 entry, BGuardOwner owner);
/* bguard_lock held exclusively */
extern void bguard_arena_free(uint32 slot);
/* zero the run of a slot just taken, in pieces with interrupts served */
extern void bguard_arena_clear(uint32 slot);

extern BGuardSlot *bguard_arena_slot(uint32 slot);

/*
 * The filter that a slot describes at this moment, bounds checked on the copy.
 * false when the slot is free or out of bounds.  Takes no lock.
 */
extern bool bguard_arena_filter(uint32 slot, BGuardBloom *filter);

/* bguard_lock held, shared at least */
extern void bguard_arena_usage(uint64 *used_lines, uint64 *largest_free);

#endif							/* BGUARD_ARENA_H */
