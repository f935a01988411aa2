/*
 * hash.h
 *		Bytes to 64-bit hash.  No PostgreSQL header is needed here.
 *
 * One hash function is used everywhere: XXH64 of the xxHash library.  Its
 * identity is kept as a number, so that bits made with another function are
 * refused rather than misread.
 */
#ifndef BGUARD_CORE_HASH_H
#define BGUARD_CORE_HASH_H

#include <stddef.h>
#include <stdint.h>

#define BGUARD_HASH_XXH64	1

extern uint64_t bguard_hash_bytes(const void *data, size_t len, uint64_t seed);
extern uint64_t bguard_hash_u64(uint64_t value, uint64_t seed);
extern uint64_t bguard_hash_combine(const uint64_t *parts, int nparts,
									uint64_t seed);

#endif							/* BGUARD_CORE_HASH_H */
