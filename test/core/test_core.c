/*
 * test_core.c
 *		Tests of src/core, without a server.  Writes TAP.
 *
 * Everything is deterministic: seeds are fixed, so a rate that is in bounds once
 * stays there.  Exit status 0 if all tests passed.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "bloom.h"
#include "hash.h"
#include "sizing.h"

#define SEED	UINT64_C(0x626c6f6f6d677264)
#define MILLION	1000000

static int	ntests = 0;
static int	nfailed = 0;

static void
ok(bool passed, const char *format,...)
{
	va_list		args;

	ntests++;
	if (!passed)
		nfailed++;
	printf("%sok %d - ", passed ? "" : "not ", ntests);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
	fflush(stdout);
}

static bool
near(double value, double expected, double tolerance)
{
	return fabs(value - expected) <= tolerance * fabs(expected);
}

/* the i-th of a sequence of random numbers, no two of them alike */
static uint64_t
random64(uint64_t i)
{
	i = (i + 1) * UINT64_C(0x9e3779b97f4a7c15);
	i = (i ^ (i >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	i = (i ^ (i >> 27)) * UINT64_C(0x94d049bb133111eb);
	return i ^ (i >> 31);
}

static BGuardBloom
new_filter(uint64_t bits, uint32_t hashes)
{
	BGuardBloom filter;

	filter.bits = bits;
	filter.hashes = hashes;
	filter.words = calloc(bits / 64, sizeof(uint64_t));
	if (filter.words == NULL)
	{
		printf("Bail out!  out of memory\n");
		exit(2);
	}
	return filter;
}

static BGuardBloom
new_sized_filter(uint64_t capacity, double rate)
{
	BGuardGeometry geometry;

	if (!bguard_sizing_compute(capacity, rate, &geometry))
	{
		printf("Bail out!  cannot size a filter\n");
		exit(2);
	}
	return new_filter(geometry.bits, geometry.hashes);
}

static uint64_t
count_bits(const BGuardBloom *filter)
{
	return bguard_bloom_count(filter->words, filter->bits / 64);
}

/*
 * Key number i as a hash, made the way keys of that kind are.
 */
typedef enum KeyKind
{
	KEY_SEQUENTIAL_64,
	KEY_RANDOM_64,
	KEY_SEQUENTIAL_16_BYTES,
	KEY_RANDOM_16_BYTES
} KeyKind;

static const char *const key_kind_names[] = {
	"sequential 64-bit", "random 64-bit",
	"sequential 16-byte", "random 16-byte"
};

static uint64_t
key_hash(KeyKind kind, uint64_t i)
{
	uint64_t	bytes[2];

	switch (kind)
	{
		case KEY_SEQUENTIAL_64:
			return bguard_hash_u64(i, SEED);
		case KEY_RANDOM_64:
			return bguard_hash_u64(random64(i), SEED);
		case KEY_SEQUENTIAL_16_BYTES:
			bytes[0] = 0;
			bytes[1] = i;
			break;
		case KEY_RANDOM_16_BYTES:
		default:
			bytes[0] = random64(2 * i);
			bytes[1] = random64(2 * i + 1);
			break;
	}
	return bguard_hash_bytes(bytes, sizeof(bytes), SEED);
}

static void
test_hash(void)
{
	const uint64_t seed = UINT64_C(2654435761);
	uint64_t	ab[2] = {1, 2};
	uint64_t	ba[2] = {2, 1};
	uint64_t	aa[2] = {1, 1};
	uint64_t	bb[2] = {2, 2};
	char		buffer[64];
	uint64_t	value = UINT64_C(0x0123456789abcdef);

	ok(bguard_hash_bytes("", 0, 0) == UINT64_C(0xef46db3751d8e999) &&
	   bguard_hash_bytes(NULL, 0, 0) == UINT64_C(0xef46db3751d8e999),
	   "XXH64 of nothing");
	ok(bguard_hash_bytes("", 0, seed) == UINT64_C(0xac75fda2929b17ef),
	   "XXH64 of nothing, seeded");
	ok(bguard_hash_bytes("a", 1, 0) == UINT64_C(0xd24ec4f1a98c6e5b),
	   "XXH64 of a");
	ok(bguard_hash_bytes("abc", 3, 0) == UINT64_C(0x44bc2cf5ad770999),
	   "XXH64 of abc");
	ok(bguard_hash_bytes("Nobody inspects the spammish repetition", 39, 0) ==
	   UINT64_C(0xfbcea83c8a378bf1), "XXH64 of 39 bytes");

	memcpy(buffer + 1, "Nobody inspects the spammish repetition", 39);
	ok(bguard_hash_bytes(buffer + 1, 39, 0) == UINT64_C(0xfbcea83c8a378bf1),
	   "alignment does not matter");
	ok(bguard_hash_u64(value, 7) == bguard_hash_bytes(&value, 8, 7),
	   "an integer hashes as its 8 bytes");
	ok(bguard_hash_u64(value, 7) != bguard_hash_u64(value, 8),
	   "the seed matters");

	ok(bguard_hash_combine(ab, 2, 7) != bguard_hash_combine(ba, 2, 7),
	   "combine depends on the order");
	ok(bguard_hash_combine(aa, 2, 7) != bguard_hash_combine(bb, 2, 7),
	   "equal parts do not cancel");
	ok(bguard_hash_combine(ab, 1, 7) != bguard_hash_combine(ab, 2, 7),
	   "combine depends on the number of parts");
}

static void
test_sizing(void)
{
	BGuardGeometry g = {1, 2, 3};
	BGuardBloom filter;
	double		fill;
	bool		good;
	uint64_t	n;
	double		rate;
	uint64_t	i;

	good = bguard_sizing_compute(10000000, 0.01, &g);
	ok(good && g.bits == (UINT64_C(95850584) + 511) / 512 * 512 &&
	   g.lines * 512 == g.bits && g.hashes == 7,
	   "10,000,000 keys at 1 %%: %" PRIu64 " bits, %u hashes", g.bits, g.hashes);
	good = bguard_sizing_compute(MILLION, 0.001, &g);
	ok(good && g.bits == (UINT64_C(14377588) + 511) / 512 * 512 && g.hashes == 10,
	   "1,000,000 keys at 0.1 %%: %" PRIu64 " bits, %u hashes", g.bits, g.hashes);
	ok(bguard_sizing_compute(1, 0.01, &g) && g.bits == 512 && g.lines == 1 &&
	   g.hashes == 7, "one key");
	ok(bguard_sizing_compute(1, BGUARD_MAX_RATE, &g) && g.bits == 512 &&
	   g.hashes == 1, "the largest rate");
	ok(bguard_sizing_compute(1000, BGUARD_MIN_RATE, &g) && g.hashes == 30,
	   "the smallest rate");
	/* log2(e) * log2(1e9) * 1e12 = 43.13e12 */
	ok(bguard_sizing_compute(BGUARD_MAX_CAPACITY, BGUARD_MIN_RATE, &g) &&
	   near((double) g.bits, 43.1328e12, 1e-4) && g.hashes == 30,
	   "the largest filter");

	good = true;
	for (n = 1; n < UINT64_C(100000000000); n = n * 3 + 1)
		for (rate = 0.5; rate > 1e-9; rate *= 0.37)
		{
			/* rounding k moves the rate, most of all where k is small */
			double		slack = rate > 0.1 ? 1.13 : 1.03;

			if (!bguard_sizing_compute(n, rate, &g) ||
				g.bits % 512 != 0 || g.bits != g.lines * 512 ||
				g.hashes < 1 || g.hashes > BGUARD_MAX_HASHES ||
				bguard_sizing_rate(g.bits, g.hashes, (double) n) > rate * slack)
				good = false;
		}
	ok(good, "capacity and rate are kept over the whole range");

	memset(&g, 0x55, sizeof(g));
	good = !bguard_sizing_compute(0, 0.01, &g) &&
		!bguard_sizing_compute((uint64_t) BGUARD_MAX_CAPACITY + 1, 0.01, &g) &&
		!bguard_sizing_compute(UINT64_MAX, 0.01, &g) &&
		!bguard_sizing_compute(1000, 0.0, &g) &&
		!bguard_sizing_compute(1000, -0.01, &g) &&
		!bguard_sizing_compute(1000, BGUARD_MIN_RATE / 2, &g) &&
		!bguard_sizing_compute(1000, 0.51, &g) &&
		!bguard_sizing_compute(1000, 1.0, &g) &&
		!bguard_sizing_compute(1000, NAN, &g) &&
		!bguard_sizing_compute(1000, INFINITY, &g) &&
		!bguard_sizing_compute(1000, -INFINITY, &g);
	ok(good, "impossible values are refused");
	ok(g.bits == UINT64_C(0x5555555555555555) && g.hashes == 0x55555555,
	   "and leave the geometry alone");

	ok(bguard_sizing_rate(95850584, 7, 0) == 0 &&
	   near(bguard_sizing_rate(95850584, 7, 10e6), 0.01, 0.005) &&
	   near(bguard_sizing_rate(95850584, 7, 20e6), 0.158, 0.01) &&
	   bguard_sizing_rate(95850584, 7, 1e18) == 1 &&
	   bguard_sizing_rate(95850584, 7, INFINITY) == 1,
	   "rate at 0, 1, 2 and very many times the capacity");
	ok(bguard_sizing_rate(0, 7, 10) == 1 && bguard_sizing_rate(512, 0, 10) == 1 &&
	   bguard_sizing_rate(512, 7, NAN) == 1 &&
	   bguard_sizing_fill_rate(NAN, 7) == 1 &&
	   bguard_sizing_fill_rate(2, 7) == 1 && bguard_sizing_fill_rate(-1, 7) == 0 &&
	   bguard_sizing_fill_rate(0.5, 1) == 0.5,
	   "rate of what is no filter is 1");
	ok(bguard_sizing_fill_keys(512, 7, 0) == 0 &&
	   bguard_sizing_fill_keys(512, 7, NAN) == 0 &&
	   bguard_sizing_fill_keys(512, 7, -1) == 0 &&
	   bguard_sizing_fill_keys(0, 7, 0.5) == 0 &&
	   isfinite(bguard_sizing_fill_keys(UINT64_C(1) << 45, 1, 1)) &&
	   bguard_sizing_fill_keys(UINT64_C(1) << 45, 1, 1) > 1e14 &&
	   bguard_sizing_fill_keys(512, 7, 1) == bguard_sizing_fill_keys(512, 7, 7),
	   "estimated keys are finite");

	filter = new_sized_filter(MILLION, 0.01);
	for (i = 0; i < MILLION; i++)
		bguard_bloom_add(&filter, bguard_hash_u64(i, SEED));
	fill = (double) count_bits(&filter) / (double) filter.bits;
	ok(near(bguard_sizing_fill_keys(filter.bits, filter.hashes, fill), 1e6, 0.002),
	   "keys estimated from the fill: %.0f",
	   bguard_sizing_fill_keys(filter.bits, filter.hashes, fill));
	ok(near(bguard_sizing_fill_rate(fill, filter.hashes),
			bguard_sizing_rate(filter.bits, filter.hashes, 1e6), 0.01),
	   "rate estimated from the fill: %.5f",
	   bguard_sizing_fill_rate(fill, filter.hashes));
	free(filter.words);
}

/*
 * 10 million probes see 100,000 false positives at 1 % (standard error 0.3 %) and
 * 10,000 at 0.1 % (1 %), so a tolerance of 5 % is 5 standard errors at least.
 */
static void
test_rates(void)
{
	const double targets[] = {0.01, 0.001};
	const uint64_t probes = 10 * MILLION;
	int			t;
	int			kind;
	uint64_t	i;

	for (t = 0; t < 2; t++)
		for (kind = KEY_SEQUENTIAL_64; kind <= KEY_RANDOM_16_BYTES; kind++)
		{
			BGuardBloom filter = new_sized_filter(MILLION, targets[t]);
			uint64_t	missing = 0;
			uint64_t	positives = 0;
			double		rate;

			for (i = 0; i < MILLION; i++)
				bguard_bloom_add(&filter, key_hash(kind, i));
			for (i = 0; i < MILLION; i++)
				missing += !bguard_bloom_test(&filter, key_hash(kind, i));
			for (i = MILLION; i < MILLION + probes; i++)
				positives += bguard_bloom_test(&filter, key_hash(kind, i));
			rate = (double) positives / (double) probes;

			ok(missing == 0, "%s keys, target %g: no false negative",
			   key_kind_names[kind], targets[t]);
			ok(near(rate, targets[t], 0.05),
			   "%s keys, target %g: measured %.6f (%+.1f %%)",
			   key_kind_names[kind], targets[t], rate,
			   (rate / targets[t] - 1) * 100);
			free(filter.words);
		}
}

/*
 * Where plain double hashing fails: many hashes in few bits.  About 4375 false
 * positives are expected in 200 filters (standard error 1.5 %); with a constant
 * step they are an eighth more.
 */
static void
test_small_filters(void)
{
	const uint64_t nkeys = 1000;
	const uint64_t probes = 250000;
	uint64_t	positives = 0;
	double		expected = 0;
	uint64_t	seed;
	uint64_t	i;

	for (seed = 0; seed < 200; seed++)
	{
		BGuardBloom filter = new_sized_filter(nkeys, 1e-4);

		expected += (double) probes *
			bguard_sizing_rate(filter.bits, filter.hashes, (double) nkeys);
		for (i = 0; i < nkeys; i++)
			bguard_bloom_add(&filter, bguard_hash_u64(i, SEED + seed));
		for (i = nkeys; i < nkeys + probes; i++)
			positives += bguard_bloom_test(&filter,
										   bguard_hash_u64(i, SEED + seed));
		free(filter.words);
	}
	ok(near((double) positives, expected, 0.05),
	   "small filters, low rate: %" PRIu64 " false positives, %.0f expected",
	   positives, expected);
}

static void
test_batches(void)
{
	const uint32_t ks[] = {1, 2, 3, 4, 5, 7, 8, 10, 30};
	const size_t sizes[] = {0, 1, 2, 15, 16, 17, 31, 32, 33, 1000};
	uint64_t   *hashes = malloc(MILLION * sizeof(uint64_t));
	bool	   *results = malloc(MILLION * sizeof(bool));
	BGuardBloom one;
	BGuardBloom many;
	uint64_t	wrong = 0;
	size_t		fresh_one;
	size_t		fresh_many;
	bool		good = true;
	size_t		k;
	size_t		s;
	size_t		i;

	if (hashes == NULL || results == NULL)
		exit(2);

	/* every fifth key is a repetition */
	for (i = 0; i < MILLION; i++)
		hashes[i] = bguard_hash_u64(i % 5 == 4 ? i / 2 : i, SEED);

	for (k = 0; k < sizeof(ks) / sizeof(ks[0]); k++)
		for (s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
		{
			one = new_filter(20480, ks[k]);
			many = new_filter(20480, ks[k]);
			fresh_one = 0;
			for (i = 0; i < sizes[s]; i++)
				fresh_one += bguard_bloom_add(&one, hashes[i]);
			fresh_many = bguard_bloom_add_batch(&many, hashes, sizes[s]);
			if (fresh_one != fresh_many ||
				memcmp(one.words, many.words, 20480 / 8) != 0)
				good = false;
			memset(results, 2, 2000);
			bguard_bloom_test_batch(&many, hashes, 2000, results);
			for (i = 0; i < 2000; i++)
				if (results[i] != bguard_bloom_test(&one, hashes[i]) ||
					(i < sizes[s] && !results[i]))
					good = false;
			free(one.words);
			free(many.words);
		}
	ok(good, "batches do what single calls do, for all sizes and hash counts");

	one = new_sized_filter(MILLION, 0.01);
	many = new_sized_filter(MILLION, 0.01);
	fresh_one = 0;
	for (i = 0; i < MILLION; i++)
		fresh_one += bguard_bloom_add(&one, hashes[i]);
	fresh_many = bguard_bloom_add_batch(&many, hashes, MILLION);
	ok(memcmp(one.words, many.words, one.bits / 8) == 0,
	   "a million keys: same bits");
	ok(fresh_one == fresh_many, "a million keys: same number of new ones");
	bguard_bloom_test_batch(&many, hashes, MILLION, results);
	for (i = 0; i < MILLION; i++)
		wrong += !results[i];
	ok(wrong == 0, "a million keys: no false negative");
	ok(bguard_bloom_add_batch(&many, hashes, MILLION) == 0 &&
	   memcmp(one.words, many.words, one.bits / 8) == 0,
	   "adding again changes nothing");

	free(one.words);
	free(many.words);
	free(hashes);
	free(results);
}

static void
test_count_and_merge(void)
{
	BGuardBloom a = new_filter(5120, 3);
	BGuardBloom b = new_filter(5120, 3);
	BGuardBloom both = new_filter(5120, 3);
	uint64_t   *copy = malloc(5120 / 8);
	uint64_t	words[4] = {0, UINT64_MAX, 1, UINT64_C(1) << 63};
	uint64_t	i;

	if (copy == NULL)
		exit(2);
	ok(bguard_bloom_count(words, 4) == 66 && bguard_bloom_count(words, 1) == 0 &&
	   bguard_bloom_count(words, 0) == 0, "count");

	ok(!bguard_bloom_test(&a, 0) && !bguard_bloom_test(&a, UINT64_MAX),
	   "an empty filter contains nothing");
	ok(bguard_bloom_add(&a, 12345) && !bguard_bloom_add(&a, 12345),
	   "a key is new once");
	for (i = 0; i < 300; i++)
	{
		bguard_bloom_add(&a, random64(i));
		bguard_bloom_add(&b, random64(1000 + i));
		bguard_bloom_add(&both, random64(i));
		bguard_bloom_add(&both, random64(1000 + i));
	}
	bguard_bloom_add(&both, 12345);
	memcpy(copy, b.words, 5120 / 8);
	bguard_bloom_merge(&a, b.words);
	ok(memcmp(a.words, both.words, 5120 / 8) == 0, "merge is the union");
	ok(memcmp(b.words, copy, 5120 / 8) == 0, "merge leaves the source alone");

	free(a.words);
	free(b.words);
	free(both.words);
	free(copy);
}

/*
 * No position may lie outside the words.  Filters end at an unreadable page, so
 * that a touch beyond the end is a crash; the sanitizer sees the rest.
 */
static void
test_bounds(void)
{
	const size_t page = 4096 * 16;
	const uint64_t sizes[] = {64, 128, 512, 576, UINT64_C(1000000) * 64};
	bool		good = true;
	size_t		s;
	uint64_t	i;

	for (s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
	{
		size_t		bytes = sizes[s] / 8;
		size_t		length = (bytes + page - 1) / page * page;
		char	   *map = mmap(NULL, length + page, PROT_READ | PROT_WRITE,
							   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		BGuardBloom filter;

		if (map == MAP_FAILED || mprotect(map + length, page, PROT_NONE) != 0)
		{
			printf("Bail out!  mmap: %s\n", strerror(errno));
			exit(2);
		}
		filter.words = (uint64_t *) (map + length - bytes);
		filter.bits = sizes[s];
		filter.hashes = 30;
		for (i = 0; i < 10000; i++)
		{
			bguard_bloom_add(&filter, random64(i));
			good &= bguard_bloom_test(&filter, random64(i));
		}
		bguard_bloom_add(&filter, 0);
		bguard_bloom_add(&filter, UINT64_MAX);
		good &= bguard_bloom_test(&filter, 0) &&
			bguard_bloom_test(&filter, UINT64_MAX);
		/* nothing before the words either */
		for (i = 0; i < length - bytes; i++)
			good &= map[i] == 0;
		munmap(map, length + page);
	}
	ok(good, "positions stay in bounds");
}

/*
 * 5 GiB of bits, of which only the pages that are touched take memory.
 */
static void
test_huge(void)
{
	const uint64_t bytes = UINT64_C(5) << 30;
	const size_t page = 4096 * 16;
	const uint64_t nkeys = 1000;
	char	   *map = mmap(NULL, bytes + page, PROT_READ | PROT_WRITE,
						   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	BGuardBloom filter;
	uint64_t	missing = 0;
	uint64_t	positives = 0;
	uint64_t	fresh = 0;
	uint64_t	set = 0;
	uint64_t	quarters[4] = {0, 0, 0, 0};
	unsigned char *resident = malloc(bytes / 4096);
	uint64_t	i;

	if (map == MAP_FAILED || resident == NULL ||
		mprotect(map + bytes, page, PROT_NONE) != 0)
	{
		ok(true, "filter of 4.3e10 bits # SKIP no address space");
		free(resident);
		return;
	}
	filter.words = (uint64_t *) map;
	filter.bits = bytes * 8;
	filter.hashes = 7;

	for (i = 0; i < nkeys; i++)
		fresh += bguard_bloom_add(&filter, random64(i));
	/* tests read pages in as well: look at what was written first */
	if (mincore(map, bytes, resident) == 0)
	{
		for (i = 0; i < bytes / 4096; i++)
		{
			uint64_t	n;

			if (!(resident[i] & 1))
				continue;
			n = bguard_bloom_count(filter.words + i * 512, 512);
			set += n;
			quarters[i / (bytes / 4096 / 4)] += n;
		}
		ok(set >= nkeys * 7 - 2 && set <= nkeys * 7,
		   "4.3e10 bits: %" PRIu64 " of %" PRIu64 " bits set", set, nkeys * 7);
		/* standard deviation of each is 36 */
		ok(quarters[0] > 1600 && quarters[1] > 1600 && quarters[2] > 1600 &&
		   quarters[3] > 1600,
		   "4.3e10 bits: %" PRIu64 ", %" PRIu64 ", %" PRIu64 ", %" PRIu64
		   " in the quarters",
		   quarters[0], quarters[1], quarters[2], quarters[3]);
	}
	for (i = 0; i < nkeys; i++)
		missing += !bguard_bloom_test(&filter, random64(i));
	for (i = nkeys; i < nkeys * 2; i++)
		positives += bguard_bloom_test(&filter, random64(i));
	ok(fresh == nkeys && missing == 0, "4.3e10 bits: no false negative");
	ok(positives == 0, "4.3e10 bits: no false positive");
	munmap(map, bytes + page);
	free(resident);
}

#define NTHREADS	4
#define PER_THREAD	200000

typedef struct ThreadArg
{
	const BGuardBloom *filter;
	uint64_t	first;
	uint64_t	missing;
} ThreadArg;

static void *
adder(void *p)
{
	ThreadArg  *arg = p;
	uint64_t	hashes[100];
	uint64_t	i;

	for (i = 0; i < PER_THREAD; i += 100)
	{
		int			j;

		for (j = 0; j < 100; j++)
			hashes[j] = random64(arg->first + i + (uint64_t) j);
		if (i / 100 % 2 == 0)
			bguard_bloom_add_batch(arg->filter, hashes, 100);
		else
			for (j = 0; j < 100; j++)
				bguard_bloom_add(arg->filter, hashes[j]);
		/* what a thread has added itself it sees at once */
		for (j = 0; j < 100; j++)
			arg->missing += !bguard_bloom_test(arg->filter, hashes[j]);
	}
	return NULL;
}

/*
 * The threads' keys are different but their bits are close together, in many
 * rounds, so that a lost OR would show.
 */
static void
test_threads(void)
{
	uint64_t	lost = 0;
	uint64_t	missing = 0;
	int			round;

	for (round = 0; round < 5; round++)
	{
		BGuardBloom shared = new_filter(UINT64_C(1) << 22, 5);
		BGuardBloom serial = new_filter(UINT64_C(1) << 22, 5);
		pthread_t	threads[NTHREADS];
		ThreadArg	args[NTHREADS];
		uint64_t	base = (uint64_t) round * NTHREADS * PER_THREAD;
		uint64_t	i;
		int			t;

		for (t = 0; t < NTHREADS; t++)
		{
			args[t].filter = &shared;
			args[t].first = base + (uint64_t) t * PER_THREAD;
			args[t].missing = 0;
			if (pthread_create(&threads[t], NULL, adder, &args[t]) != 0)
			{
				printf("Bail out!  cannot create a thread\n");
				exit(2);
			}
		}
		for (t = 0; t < NTHREADS; t++)
		{
			pthread_join(threads[t], NULL);
			missing += args[t].missing;
		}
		for (i = 0; i < NTHREADS * PER_THREAD; i++)
			bguard_bloom_add(&serial, random64(base + i));
		for (i = 0; i < shared.bits / 64; i++)
			lost += shared.words[i] != serial.words[i];
		free(shared.words);
		free(serial.words);
	}
	ok(missing == 0, "%d threads: each sees what it has added", NTHREADS);
	ok(lost == 0, "%d threads: no bit is lost", NTHREADS);
}

int
main(void)
{
	test_hash();
	test_sizing();
	test_batches();
	test_count_and_merge();
	test_bounds();
	test_huge();
	test_threads();
	test_small_filters();
	test_rates();

	printf("1..%d\n", ntests);
	if (nfailed > 0)
		printf("# %d of %d tests failed\n", nfailed, ntests);
	return nfailed > 0 ? 1 : 0;
}
