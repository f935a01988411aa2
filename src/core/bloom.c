/*
 * bloom.c
 *		A Bloom filter over the caller's memory.
 *
 * POSITIONS: the i-th bit of a key is the high half of x[i] * m, where
 *		x[0] = hash, x[i + 1] = x[i] + s[i], s[i + 1] = s[i] + t   (mod 2^64)
 * and s[0] and t are remixes of the hash.  The multiplication spreads evenly over
 * 0 .. m - 1 for any m, without a division.  This is double hashing with a
 * triangular term.  With a constant step, two keys whose steps come close share
 * a whole run of positions, and small filters with low rates miss their target
 * (1,000 keys at 1e-4: by an eighth); with a second step of the key's own they
 * hold it.  Changing any of this changes what saved bits mean.
 *
 * LOCKING: none, see bloom.h.  Words are read with relaxed loads (plain moves)
 * and changed by relaxed atomic OR only.  An add looks before it ORs, so that
 * keys that are there already leave the cache line shared.
 */
#include "bloom.h"
#include "mutant.h"
#include "sizing.h"

/* positions that are tested before the first branch */
#define GROUP	4

/* state of the walk over a key's positions */
typedef struct Walk
{
	uint64_t	x;
	uint64_t	step;
	uint64_t	step2;
} Walk;

static inline uint64_t
multiply_high(uint64_t a, uint64_t b)
{
#ifdef __SIZEOF_INT128__
	__extension__ typedef unsigned __int128 Wide;

	return (uint64_t) (((Wide) a * b) >> 64);
#else
	uint64_t	a_low = a & UINT32_MAX;
	uint64_t	a_high = a >> 32;
	uint64_t	b_low = b & UINT32_MAX;
	uint64_t	b_high = b >> 32;
	uint64_t	middle;
	uint64_t	middle2;

	/* neither sum can overflow: (2^32 - 1)^2 + 2 (2^32 - 1) = 2^64 - 1 */
	middle = a_high * b_low + ((a_low * b_low) >> 32);
	middle2 = a_low * b_high + (middle & UINT32_MAX);
	return a_high * b_high + (middle >> 32) + (middle2 >> 32);
#endif
}

/* a bijection in which every bit of x reaches every bit of the result */
static inline uint64_t
mix64(uint64_t x)
{
	x ^= x >> 32;
	x *= UINT64_C(0xd6e8feb86659fd93);
	x ^= x >> 32;
	x *= UINT64_C(0xd6e8feb86659fd93);
	x ^= x >> 32;
	return x;
}

static inline Walk
walk_start(uint64_t hash)
{
	Walk		walk;

	walk.x = hash;
	walk.step = mix64(hash) | 1;
	walk.step2 = walk.step * UINT64_C(0x9e3779b97f4a7c15);
	walk.step2 ^= walk.step2 >> 29;
	return walk;
}

static inline uint64_t
walk_next(Walk *walk, uint64_t bits)
{
	uint64_t	position = multiply_high(walk->x, bits);

	walk->x += walk->step;
	walk->step += walk->step2;
	return position;
}

/* the bit at position, in the lowest bit of the result; the rest is noise */
static inline uint64_t
get_bit(const uint64_t *words, uint64_t position)
{
	return __atomic_load_n(&words[position >> 6], __ATOMIC_RELAXED) >>
		(position & 63);
}

/*
 * Set the bits of one key.  All are looked at first, so that their cache misses
 * overlap: a locked instruction lets nothing overtake it.  positions is used up.
 * True if one of them was clear.
 */
static inline bool
set_bits(uint64_t *words, uint64_t *positions, uint32_t hashes)
{
	uint32_t	clear = 0;
	uint32_t	i;

	/* no branch on a bit: it would be mispredicted too often */
	for (i = 0; i < hashes; i++)
	{
		uint64_t	position = positions[i];

		positions[clear] = position;
		clear += ~get_bit(words, position) & 1;
	}
	for (i = 0; i < clear; i++)
	{
		uint64_t   *word = &words[positions[i] >> 6];
		uint64_t	bit = UINT64_C(1) << (positions[i] & 63);

		if (BGUARD_MUTANT(PLAIN_OR))
			__atomic_store_n(word, __atomic_load_n(word, __ATOMIC_RELAXED) | bit,
							 __ATOMIC_RELAXED);
		else
			(void) __atomic_fetch_or(word, bit, __ATOMIC_RELAXED);
	}
	return clear != 0;
}

static inline bool
add_one(uint64_t *words, uint64_t bits, uint32_t hashes, uint64_t hash)
{
	Walk		walk = walk_start(hash);
	uint64_t	positions[BGUARD_MAX_HASHES];
	bool		fresh = false;

	while (hashes > 0)
	{
		uint32_t	n = hashes < BGUARD_MAX_HASHES ? hashes : BGUARD_MAX_HASHES;
		uint32_t	i;

		for (i = 0; i < n; i++)
			positions[i] = walk_next(&walk, bits);
		fresh |= set_bits(words, positions, n);
		hashes -= n;
	}
	return fresh;
}

/*
 * The loads of a group are independent, so their cache misses overlap; a branch
 * after each bit would be mispredicted half of the time.
 */
static inline bool
test_one(const uint64_t *words, uint64_t bits, uint32_t hashes, uint64_t hash)
{
	Walk		walk = walk_start(hash);
	uint64_t	all;

	while (hashes >= GROUP)
	{
		uint64_t	p0 = walk_next(&walk, bits);
		uint64_t	p1 = walk_next(&walk, bits);
		uint64_t	p2 = walk_next(&walk, bits);
		uint64_t	p3 = walk_next(&walk, bits);

		all = get_bit(words, p0) & get_bit(words, p1) &
			get_bit(words, p2) & get_bit(words, p3);
		if (!(all & 1))
			return false;
		hashes -= GROUP;
	}

	all = 1;
	while (hashes-- > 0)
		all &= get_bit(words, walk_next(&walk, bits));
	return (all & 1) != 0;
}

/* positions of the keys under way, those of key i in row i % BGUARD_BLOOM_BATCH */
typedef uint64_t Ahead[BGUARD_BLOOM_BATCH][BGUARD_MAX_HASHES];

/*
 * Compute a key's positions, once, and ask for their lines.  The second argument
 * of the builtin must be a constant, hence two functions.
 */
static inline void
prefetch_add(const BGuardBloom *f, uint64_t hash, uint64_t *positions)
{
	Walk		walk = walk_start(hash);
	uint32_t	i;

	for (i = 0; i < f->hashes; i++)
	{
		positions[i] = walk_next(&walk, f->bits);
		__builtin_prefetch(&f->words[positions[i] >> 6], 1);
	}
}

static inline void
prefetch_test(const BGuardBloom *f, uint64_t hash, uint64_t *positions)
{
	Walk		walk = walk_start(hash);
	uint32_t	i;

	for (i = 0; i < f->hashes; i++)
	{
		positions[i] = walk_next(&walk, f->bits);
		__builtin_prefetch(&f->words[positions[i] >> 6], 0);
	}
}

/*
 * Add a key.  True if it set at least one bit: the key was new.  (A new key all
 * of whose bits were set already, a false positive, counts as known.)
 */
bool
bguard_bloom_add(const BGuardBloom *filter, uint64_t hash)
{
	return add_one(filter->words, filter->bits, filter->hashes, hash);
}

/*
 * False: the key was never added.  True: it may have been.
 */
bool
bguard_bloom_test(const BGuardBloom *filter, uint64_t hash)
{
	return test_one(filter->words, filter->bits, filter->hashes, hash);
}

/*
 * Add n keys (any n, repeats allowed).  Returns how many were new.
 */
size_t
bguard_bloom_add_batch(const BGuardBloom *filter, const uint64_t *hashes,
					   size_t n)
{
	/* stores to words must not make the compiler load these again */
	BGuardBloom f = *filter;
	Ahead		ahead;
	size_t		fresh = 0;
	size_t		i;

	if (f.hashes > BGUARD_MAX_HASHES)
	{
		for (i = 0; i < n; i++)
			fresh += add_one(f.words, f.bits, f.hashes, hashes[i]);
		return fresh;
	}

	for (i = 0; i < n && i < BGUARD_BLOOM_BATCH; i++)
		prefetch_add(&f, hashes[i], ahead[i]);
	for (i = 0; i < n; i++)
	{
		uint64_t   *positions = ahead[i % BGUARD_BLOOM_BATCH];

		fresh += set_bits(f.words, positions, f.hashes);
		if (n - i > BGUARD_BLOOM_BATCH)
			prefetch_add(&f, hashes[i + BGUARD_BLOOM_BATCH], positions);
	}
	return fresh;
}

/*
 * Test n keys (any n); results has room for n.
 */
void
bguard_bloom_test_batch(const BGuardBloom *filter, const uint64_t *hashes,
						size_t n, bool *results)
{
	BGuardBloom f = *filter;
	Ahead		ahead;
	size_t		i;

	if (f.hashes > BGUARD_MAX_HASHES)
	{
		for (i = 0; i < n; i++)
			results[i] = test_one(f.words, f.bits, f.hashes, hashes[i]);
		return;
	}

	for (i = 0; i < n && i < BGUARD_BLOOM_BATCH; i++)
		prefetch_test(&f, hashes[i], ahead[i]);
	for (i = 0; i < n; i++)
	{
		uint64_t   *positions = ahead[i % BGUARD_BLOOM_BATCH];
		uint64_t	all = 1;
		uint32_t	j;

		for (j = 0; j < f.hashes; j++)
			all &= get_bit(f.words, positions[j]);
		results[i] = (all & 1) != 0;
		if (n - i > BGUARD_BLOOM_BATCH)
			prefetch_test(&f, hashes[i + BGUARD_BLOOM_BATCH], positions);
	}
}

/*
 * Bits set among nwords words.  Takes about a second for a few gigabytes.
 */
uint64_t
bguard_bloom_count(const uint64_t *words, size_t nwords)
{
	uint64_t	count = 0;
	size_t		i;

	for (i = 0; i < nwords; i++)
		count += (uint64_t)
			__builtin_popcountll(__atomic_load_n(&words[i], __ATOMIC_RELAXED));
	return count;
}

/*
 * OR source_words, of the same bits, hashes and seed, into target.  Adds to
 * either may go on; what is added to the source meanwhile may be missed.
 */
void
bguard_bloom_merge(const BGuardBloom *target, const uint64_t *source_words)
{
	uint64_t   *words = target->words;
	uint64_t	nwords = target->bits / 64;
	uint64_t	i;

	for (i = 0; i < nwords; i++)
	{
		uint64_t	source = __atomic_load_n(&source_words[i],
											 __ATOMIC_RELAXED);

		if (source & ~__atomic_load_n(&words[i], __ATOMIC_RELAXED))
			__atomic_fetch_or(&words[i], source, __ATOMIC_RELAXED);
	}
}
