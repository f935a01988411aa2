/*
 * bloom.h
 *		A Bloom filter over the caller's memory.  No PostgreSQL header is needed.
 *
 * CONCURRENCY: any number of threads or processes may add to, and test, the
 * same words at the same time without a lock.  A bit goes from 0 to 1 only, by
 * an atomic OR; words are read with plain (relaxed) loads.  Whoever needs an
 * add to be seen by a later test orders the two himself (for us: commit,
 * snapshot, probe).  Nothing here allocates or fails.
 */
#ifndef BGUARD_CORE_BLOOM_H
#define BGUARD_CORE_BLOOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct BGuardBloom
{
	uint64_t   *words;			/* bits / 64 words */
	uint64_t	bits;			/* m, a multiple of 64, at least 64 */
	uint32_t	hashes;			/* k, at least 1 */
} BGuardBloom;

/* keys that the batch functions take to be in flight at once */
#define BGUARD_BLOOM_BATCH	16

/* true if at least one bit was not set before, i.e. the key was new */
extern bool bguard_bloom_add(const BGuardBloom *filter, uint64_t hash);
/* false: the hash was never added.  true: it may have been */
extern bool bguard_bloom_test(const BGuardBloom *filter, uint64_t hash);
/* any n; the number of keys that were new */
extern size_t bguard_bloom_add_batch(const BGuardBloom *filter,
									 const uint64_t *hashes, size_t n);
extern void bguard_bloom_test_batch(const BGuardBloom *filter,
									const uint64_t *hashes, size_t n,
									bool *results);
/* bits set among nwords words; the caller splits long runs to stay responsive */
extern uint64_t bguard_bloom_count(const uint64_t *words, size_t nwords);
/* OR source into target: both of the same bits, hashes and seed */
extern void bguard_bloom_merge(const BGuardBloom *target,
							   const uint64_t *source_words);

#endif							/* BGUARD_CORE_BLOOM_H */
