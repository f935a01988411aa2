/*
 * keys.h
 *		Datums of a key to a 64-bit hash, with the equality of SQL.
 *
 * A "part" is one key column, reduced to what hashing needs.  Two values that
 * the column type's default hash operator class calls equal (under the
 * column's collation) have the same hash; two types of one hash operator
 * family (int2, int4, int8; float4, float8; text, name) hash alike.
 */
#ifndef BGUARD_KEYS_H
#define BGUARD_KEYS_H

#include "access/attnum.h"

struct FmgrInfo;

#define BGUARD_MAX_KEY_COLUMNS	8

/* how a value becomes 64 bits */
typedef enum BGuardHashRoad
{
	BGUARD_ROAD_INT2,			/* widened to int64, XXH64 of 8 bytes */
	BGUARD_ROAD_INT4,
	BGUARD_ROAD_INT8,
	BGUARD_ROAD_UINT4,			/* oid */
	BGUARD_ROAD_BYTE,			/* bool, "char" */
	BGUARD_ROAD_FIXED,			/* typlen bytes by reference: uuid */
	BGUARD_ROAD_NAME,			/* bytes up to the terminating zero */
	BGUARD_ROAD_VARLENA,		/* detoasted bytes: bytea, deterministic text */
	BGUARD_ROAD_PROC			/* HASHEXTENDED_PROC, then XXH64 of its result */
} BGuardHashRoad;

typedef struct BGuardKeyPart
{
	Oid			typid;			/* the column's declared type */
	Oid			basetype;		/* domains stripped */
	Oid			collid;			/* the column's collation, or InvalidOid */
	Oid			hashproc;		/* HASHEXTENDED_PROC of the default class */
	Oid			innerproc;		/* array, range: that of what is inside, if any */
	Oid			opfamily;		/* hash operator family of the default class */
	int16		typlen;
	BGuardHashRoad road;
	struct FmgrInfo *hashfn;	/* for BGUARD_ROAD_PROC */
} BGuardKeyPart;

/* how a probe's argument of some type becomes a value of the part */
typedef enum BGuardArgKind
{
	BGUARD_ARG_HASH,			/* hash as it is, by "part" below */
	BGUARD_ARG_INPUT			/* C string or text, through the input function */
} BGuardArgKind;

typedef struct BGuardKeyArg
{
	BGuardArgKind kind;
	BGuardKeyPart part;			/* recipe for the argument's own type */
	Oid			argtype;		/* UNKNOWNOID: Datum is a cstring; else text */
	Oid			ioparam;
	struct FmgrInfo *infn;
} BGuardKeyArg;

/*
 * Fill *part for a column of this type and collation.  Long-lived call state
 * goes to cxt.  Returns NULL, or why the type cannot be a key (a translated
 * phrase for an error's detail, palloc'd in the current context).  Raises only
 * on catalog corruption.
 */
extern char *bguard_keys_part_init(BGuardKeyPart *part, Oid typid, Oid collid,
								   MemoryContext cxt);

/*
 * One 64-bit hash of a whole key; no part is NULL.  May detoast, may raise what
 * the types' hash functions raise.
 */
extern uint64 bguard_keys_hash(BGuardKeyPart *parts, int nparts,
							   const Datum *values, uint64 seed);

/*
 * Prepare to take arguments of argtype for the part: the column's own type (or
 * one that is binary-coercible to it), a type of the same hash operator family,
 * or text/unknown, which the column type's input function reads (typmod -1).
 * Returns false for any other type.
 */
extern bool bguard_keys_arg_init(BGuardKeyArg *arg, const BGuardKeyPart *part,
								 Oid argtype, MemoryContext cxt);

/* per-column hash of one argument that is not NULL; raises what input raises */
extern uint64 bguard_keys_hash_arg(BGuardKeyArg *arg, Datum value,
								   uint64 seed);

/* combine per-column hashes: the identity for one column */
extern uint64 bguard_keys_combine(const uint64 *hashes, int nhashes,
								  uint64 seed);

#endif							/* BGUARD_KEYS_H */
