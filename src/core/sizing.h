/*
 * sizing.h
 *		Geometry of a textbook Bloom filter.  No PostgreSQL header is needed.
 */
#ifndef BGUARD_CORE_SIZING_H
#define BGUARD_CORE_SIZING_H

#include <stdbool.h>
#include <stdint.h>

/* Bits are handed out in lines of one cache line each. */
#define BGUARD_LINE_BYTES	64
#define BGUARD_LINE_BITS	(BGUARD_LINE_BYTES * 8)
#define BGUARD_LINE_WORDS	(BGUARD_LINE_BYTES / 8)

/* Limits of what may be asked for. */
#define BGUARD_MIN_RATE		1e-9
#define BGUARD_MAX_RATE		0.5
#define BGUARD_MAX_CAPACITY	INT64_C(1000000000000)
#define BGUARD_MAX_HASHES	30

typedef struct BGuardGeometry
{
	uint64_t	bits;			/* m, a multiple of BGUARD_LINE_BITS */
	uint64_t	lines;			/* m / BGUARD_LINE_BITS */
	uint32_t	hashes;			/* k, 1 .. BGUARD_MAX_HASHES */
} BGuardGeometry;

/* false when capacity or rate is out of range; geometry untouched then */
extern bool bguard_sizing_compute(uint64_t capacity, double rate,
								  BGuardGeometry *geometry);
/* expected false-positive rate with nkeys distinct keys: (1 - e^(-kn/m))^k */
extern double bguard_sizing_rate(uint64_t bits, uint32_t hashes, double nkeys);
/* false-positive rate and distinct keys as told by the share of bits set */
extern double bguard_sizing_fill_rate(double fill, uint32_t hashes);
extern double bguard_sizing_fill_keys(uint64_t bits, uint32_t hashes,
									  double fill);

#endif							/* BGUARD_CORE_SIZING_H */
