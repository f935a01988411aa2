/*
 * sizing.c
 *		Geometry of a textbook Bloom filter: keys and rate to bits and hashes,
 *		and share of bits set to rate and keys.
 *
 * Pure functions: no state, no locking, no errors.  All arithmetic is in double,
 * which is exact for every number of bits that the limits in sizing.h allow
 * (below 2^46).
 */
#include "sizing.h"

#include <math.h>

#define LN2		0.69314718055994530942

/*
 * Bits and hashes for capacity distinct keys (1 .. BGUARD_MAX_CAPACITY) at a
 * false-positive rate (BGUARD_MIN_RATE .. BGUARD_MAX_RATE).  false, and geometry
 * untouched, when either is out of range or the rate is not a number.
 */
bool
bguard_sizing_compute(uint64_t capacity, double rate, BGuardGeometry *geometry)
{
	double		bits;
	double		hashes;
	uint64_t	lines;

	if (capacity < 1 || capacity > (uint64_t) BGUARD_MAX_CAPACITY)
		return false;
	/* written so that NaN fails */
	if (!(rate >= BGUARD_MIN_RATE && rate <= BGUARD_MAX_RATE))
		return false;

	bits = -(double) capacity * log(rate) / (LN2 * LN2);
	hashes = floor(bits / (double) capacity * LN2 + 0.5);
	if (hashes < 1)
		hashes = 1;
	if (hashes > BGUARD_MAX_HASHES)
		hashes = BGUARD_MAX_HASHES;

	lines = ((uint64_t) ceil(bits) + BGUARD_LINE_BITS - 1) / BGUARD_LINE_BITS;

	geometry->lines = lines;
	geometry->bits = lines * BGUARD_LINE_BITS;
	geometry->hashes = (uint32_t) hashes;
	return true;
}

/*
 * Expected false-positive rate (0 .. 1) of a filter of so many bits and hashes
 * that holds nkeys distinct keys.  1, the answer of no information, when the
 * arguments describe no filter.
 */
double
bguard_sizing_rate(uint64_t bits, uint32_t hashes, double nkeys)
{
	if (bits == 0 || hashes == 0 || isnan(nkeys))
		return 1.0;
	if (nkeys <= 0)
		return 0.0;
	return bguard_sizing_fill_rate(-expm1(-(double) hashes * nkeys /
										  (double) bits),
								   hashes);
}

/*
 * False-positive rate (0 .. 1) of a filter with this share of its bits set.
 * Shares outside 0 .. 1 count as the nearer end, NaN as 1.
 */
double
bguard_sizing_fill_rate(double fill, uint32_t hashes)
{
	if (hashes == 0 || !(fill < 1))
		return 1.0;
	if (fill <= 0)
		return 0.0;
	return pow(fill, (double) hashes);
}

/*
 * Estimated distinct keys of a filter with this share of its bits set.  Always
 * finite: a filter that is full is taken to have half a bit left.
 */
double
bguard_sizing_fill_keys(uint64_t bits, uint32_t hashes, double fill)
{
	double		fullest;

	if (bits == 0 || hashes == 0 || !(fill > 0))
		return 0.0;
	fullest = 1.0 - 0.5 / (double) bits;
	if (fill > fullest)
		fill = fullest;
	return -(double) bits / (double) hashes * log1p(-fill);
}
