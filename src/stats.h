/*
 * stats.h
 *		Counters: backend-local on the hot path, flushed at transaction end.
 *
 * Nothing shared is written by a probe.  An add that sets a new bit writes that
 * bit and nothing else shared.
 */
#ifndef BGUARD_STATS_H
#define BGUARD_STATS_H

#include "registry.h"

typedef struct BGuardLocalCounters
{
	Oid			tgoid;			/* entry's trigger when counting began */
	uint64		absent;
	uint64		maybe;
	uint64		adds;
	uint64		new_keys[2];	/* adds that set a bit: in current, in building */
	uint32		slots[2];		/* slots those were counted for */
	uint32		unguarded[BGUARD_UNGUARDED_COUNT];
} BGuardLocalCounters;

extern void bguard_stats_init(void);
/* counters of this backend for the entry; never NULL, never raises but for memory */
extern BGuardLocalCounters *bguard_stats_local(int entry, Oid tgoid);
/* zero the shared counters of an entry */
extern void bguard_stats_reset(BGuardEntry *entry);
extern const char *bguard_stats_unguarded_name(BGuardUnguarded reason);

#endif							/* BGUARD_STATS_H */
