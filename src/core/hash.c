/*
 * hash.c
 *		Bytes to 64-bit hash: XXH64.
 *
 * This is the only file that includes xxhash.h.  The library is compiled in
 * (XXH_INLINE_ALL), so there is nothing to link, the 8-byte case becomes a few
 * instructions, and no symbol of ours can bind to another library's xxHash.
 *
 * Integers are hashed in the machine's byte order: hashes, like the bits made
 * from them, do not travel between machines of different endianness.
 *
 * Pure functions: no state, no locking, no errors.
 */
#include "hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#if XXH_VERSION_NUMBER < 800
#error "bloomguard needs xxHash 0.8.0 or later"
#endif

/*
 * Hash of len bytes at data, which may be NULL when len is 0.  Any alignment.
 */
uint64_t
bguard_hash_bytes(const void *data, size_t len, uint64_t seed)
{
	return XXH64(data, len, seed);
}

/*
 * Hash of the 8 bytes of value.
 */
uint64_t
bguard_hash_u64(uint64_t value, uint64_t seed)
{
	return XXH64(&value, sizeof(value), seed);
}

/*
 * One hash of nparts (at least 0) hashes.  Hashing their array, rather than
 * adding or XORing them, makes their order count and lets nothing cancel.
 */
uint64_t
bguard_hash_combine(const uint64_t *parts, int nparts, uint64_t seed)
{
	return XXH64(parts, (size_t) nparts * sizeof(uint64_t), seed);
}
