/*
 * keys.c
 *		Datums of a key to a 64-bit hash, with the equality of SQL.
 *
 * The default hash operator class of the column's type, under the column's
 * collation, says which values are equal; whatever it calls equal gets one hash
 * here.  Types whose equality is that of their bits take a road of their own,
 * because some of core's hash functions (hashint8extended, and with it those of
 * the time types) fold 64 bits into 32 first: a filter fed by them has false
 * positives that no size can cure.  Everything else goes through
 * HASHEXTENDED_PROC and one more mixing.
 *
 * A "road" is chosen once, in part_init; hashing reads no catalog of its own.
 * (The type's hash function may.)
 *
 * MEMORY: our own roads leave nothing behind.  BGUARD_ROAD_PROC and the input
 * functions run code of the type, which may leave detoasted copies and results
 * in the current memory context: callers who hash in a loop reset it.
 *
 * LOCKING: none; nothing shared is touched.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "compat.h"
#include "core/hash.h"
#include "debug.h"
#include "fmgr.h"
#include "keys.h"
#include "mb/pg_wchar.h"
#include "parser/parse_coerce.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"
#include "utils/varlena.h"

/* what an array, range, multirange or domain over one is made of, or InvalidOid */
static Oid
contained_type(Oid typid)
{
	Oid			element;

	typid = getBaseType(typid);
	element = get_element_type(typid);
	if (!OidIsValid(element))
		element = get_range_subtype(typid);
	if (!OidIsValid(element))
		element = get_multirange_range(typid);
	return element;
}

/*
 * The hash function that core's functions for arrays and ranges call in the end:
 * it can be replaced without any change of theirs.
 */
static Oid
inner_hash_function(Oid typid)
{
	Oid			inner = InvalidOid;

	for (Oid element = contained_type(typid); OidIsValid(element);
		 element = contained_type(element))
		inner = element;
	if (!OidIsValid(inner))
		return InvalidOid;
	return lookup_type_cache(getBaseType(inner),
							 TYPECACHE_HASH_EXTENDED_PROC)->hash_extended_proc;
}

/*
 * Is the type composite, or made of a composite type: array, range, multirange
 * or domain over one?  ALTER TYPE ... ADD ATTRIBUTE changes the hash of composite
 * values that are stored already, and nothing in a signature tells.
 */
static bool
has_composite(Oid typid)
{
	Oid			element;

	check_stack_depth();

	typid = getBaseType(typid);
	if (typid == RECORDOID || typid == RECORDARRAYOID ||
		get_typtype(typid) == TYPTYPE_COMPOSITE)
		return true;

	element = contained_type(typid);
	return OidIsValid(element) && has_composite(element);
}

/*
 * Is there bpchar under a nondeterministic collation inside of the type?
 *
 * hashbpcharextended of version 15 then hashes the padding, which the equality
 * operator ignores.  cut_padding() makes up for it, but does not reach into
 * arrays and ranges.
 */
static bool
has_padding_hashed(Oid typid, Oid collid)
{
	Oid			element;

	check_stack_depth();

	typid = getBaseType(typid);
	if (typid == BPCHAROID)
		return OidIsValid(collid) && !get_collation_isdeterministic(collid);

	element = get_element_type(typid);
	if (!OidIsValid(element))
		element = get_multirange_range(typid);
	if (!OidIsValid(element))
	{
		element = get_range_subtype(typid);
		/* a range compares under a collation of its own */
		collid = OidIsValid(element) ? get_range_collation(typid) : collid;
	}
	return OidIsValid(element) && has_padding_hashed(element, collid);
}

/* a bpchar without its trailing blanks */
static Datum
cut_padding(Datum value)
{
	struct varlena *padded = PG_DETOAST_DATUM_PACKED(value);
	int			padded_len = VARSIZE_ANY_EXHDR(padded);
	int			len = bpchartruelen(VARDATA_ANY(padded), padded_len);

	return PointerGetDatum(len == padded_len ? padded :
						   cstring_to_text_with_len(VARDATA_ANY(padded), len));
}

/* where the last character begins; len is not 0 */
static int
last_character(const char *data, int len)
{
	int			at = len - 1;

	if (GetDatabaseEncoding() == PG_UTF8)
	{
		while (at > 0 && IS_HIGHBIT_SET(data[at]) && (data[at] & 0x40) == 0)
			at--;
	}
	else if (pg_database_encoding_max_length() > 1)
	{
		int			next;

		for (at = 0; (next = at + pg_mblen(data + at)) < len; at = next)
			;
	}
	return at;
}

/*
 * A varchar without its trailing blanks.
 *
 * varchar = bpchar compares as bpchar does, where the blanks of neither count, and
 * the parser has made text of a bpchar argument before we see it.  So the blanks
 * of a varchar column never count.  Under a nondeterministic collation nor does
 * what it calls equal to a blank, or to nothing, at the end: values that are equal
 * as they are have to be equal when they are cut.
 */
static Datum
cut_blanks(Datum value, Oid collid)
{
	struct varlena *whole = PG_DETOAST_DATUM_PACKED(value);
	const char *data = VARDATA_ANY(whole);
	int			whole_len = VARSIZE_ANY_EXHDR(whole);
	int			len = bpchartruelen(unconstify(char *, data), whole_len);

	if (!get_collation_isdeterministic(collid))
	{
		while (len > 0)
		{
			int			at = last_character(data, len);

			if (varstr_cmp(data + at, len - at, " ", 1, collid) != 0 &&
				varstr_cmp(data + at, len - at, "", 0, collid) != 0)
				break;
			len = at;
		}
	}
	return PointerGetDatum(len == whole_len ? whole :
						   cstring_to_text_with_len(data, len));
}

/*
 * The road of a base type.  Types are named one by one: only for these do we
 * know that equality is equality of the bits.
 */
static BGuardHashRoad
choose_road(Oid basetype, Oid collid)
{
	switch (basetype)
	{
		case INT2OID:
			return BGUARD_ROAD_INT2;
		case INT4OID:
		case DATEOID:
			return BGUARD_ROAD_INT4;
		case INT8OID:
		case TIMEOID:
		case TIMESTAMPOID:
		case TIMESTAMPTZOID:
		case XID8OID:
		case PG_LSNOID:
			return BGUARD_ROAD_INT8;
		case OIDOID:
			return BGUARD_ROAD_UINT4;
		case BOOLOID:
		case CHAROID:
			return BGUARD_ROAD_BYTE;
		case UUIDOID:
			return BGUARD_ROAD_FIXED;
		case NAMEOID:
			return BGUARD_ROAD_NAME;
		case BYTEAOID:
			return BGUARD_ROAD_VARLENA;
		case TEXTOID:
		case VARCHAROID:
			/* otherwise equality is that of the collation's sort keys */
			if (get_collation_isdeterministic(collid))
				return BGUARD_ROAD_VARLENA;
			break;
		default:
			break;
	}
	return BGUARD_ROAD_PROC;
}

/*
 * Fill *part for a column.
 *
 * typid, collid: the column's declared type and collation (InvalidOid for a type
 * that has none).  cxt: lives as long as *part.
 *
 * Returns NULL, or why the type cannot be a key: a translated phrase, in lower
 * case and without a full stop, in the current context; *part must not be used
 * then.  Raises an error on catalog corruption only.
 */
char *
bguard_keys_part_init(BGuardKeyPart *part, Oid typid, Oid collid,
					  MemoryContext cxt)
{
	TypeCacheEntry *typentry;
	Oid			basetype = getBaseType(typid);

	/* composite first: the pseudo-type record is one as well */
	if (has_composite(basetype))
		return psprintf(_("type %s is or contains a composite type, whose attributes may change while values are stored"),
						format_type_be(typid));
	if (get_typtype(basetype) == TYPTYPE_PSEUDO)
		return psprintf(_("type %s is a pseudo-type"),
						format_type_be(typid));

	/*
	 * For arrays and ranges the type cache looks into the element type too, and
	 * finds nothing when that has no hash function.
	 */
	typentry = lookup_type_cache(basetype,
								 TYPECACHE_HASH_OPFAMILY |
								 TYPECACHE_HASH_EXTENDED_PROC);
	if (!OidIsValid(typentry->hash_opf) ||
		!OidIsValid(typentry->hash_extended_proc))
		return psprintf(_("type %s has no default hash operator class with a 64-bit hash function"),
						format_type_be(typid));

	if (type_is_collatable(basetype))
	{
		if (!OidIsValid(collid))
			return pstrdup(_("collation is not determined"));

		/*
		 * name = name compares bytes whatever the collation, but name = text
		 * heeds it.  No one hash serves both unless they are the same.
		 */
		if (basetype == NAMEOID && !get_collation_isdeterministic(collid))
			return psprintf(_("type %s has a nondeterministic collation, which its equality operator ignores"),
							format_type_be(typid));
	}
	else
		collid = InvalidOid;

	if (basetype != BPCHAROID && has_padding_hashed(basetype, collid))
		return psprintf(_("type %s contains blank-padded strings under a nondeterministic collation, whose hash heeds the padding"),
						format_type_be(typid));

	memset(part, 0, sizeof(*part));
	part->typid = typid;
	part->basetype = basetype;
	part->collid = collid;
	part->hashproc = typentry->hash_extended_proc;
	part->innerproc = inner_hash_function(basetype);
	part->opfamily = typentry->hash_opf;
	part->typlen = typentry->typlen;
	part->road = choose_road(basetype, collid);
	if (part->road == BGUARD_ROAD_PROC)
	{
		part->hashfn = MemoryContextAlloc(cxt, sizeof(FmgrInfo));
		fmgr_info_cxt(part->hashproc, part->hashfn, cxt);
	}
	return NULL;
}

/*
 * Hash of one value, which is not NULL and of the part's type.
 *
 * Raises what detoasting and the type's hash function raise.  See the banner for
 * what may be left in the current memory context.
 */
static uint64
hash_part(BGuardKeyPart *part, Datum value, uint64 seed)
{
	uint64		hash;

	switch (part->road)
	{
		case BGUARD_ROAD_INT2:
			return bguard_hash_u64((uint64) (int64) DatumGetInt16(value), seed);
		case BGUARD_ROAD_INT4:
			return bguard_hash_u64((uint64) (int64) DatumGetInt32(value), seed);
		case BGUARD_ROAD_INT8:
			if (BGUARD_MUTANT(INT32_HASH))
				value = Int64GetDatum((int32) (DatumGetInt64(value) ^ (DatumGetInt64(value) >> 32)));
			return bguard_hash_u64((uint64) DatumGetInt64(value), seed);
		case BGUARD_ROAD_UINT4:
			return bguard_hash_u64((uint64) DatumGetObjectId(value), seed);
		case BGUARD_ROAD_BYTE:
			return bguard_hash_u64((uint64) DatumGetUInt8(value), seed);
		case BGUARD_ROAD_FIXED:
			return bguard_hash_bytes(DatumGetPointer(value),
									 (size_t) part->typlen, seed);
		case BGUARD_ROAD_NAME:
			{
				const char *name = NameStr(*DatumGetName(value));

				return bguard_hash_bytes(name, strlen(name), seed);
			}
		case BGUARD_ROAD_VARLENA:
			{
				struct varlena *bytes = PG_DETOAST_DATUM_PACKED(value);
				int			len = VARSIZE_ANY_EXHDR(bytes);

				/* see cut_blanks() */
				if (part->basetype == VARCHAROID)
					len = bpchartruelen(VARDATA_ANY(bytes), len);
				hash = bguard_hash_bytes(VARDATA_ANY(bytes), len, seed);
				if ((Pointer) bytes != DatumGetPointer(value))
					pfree(bytes);
				return hash;
			}
		case BGUARD_ROAD_PROC:
			break;
	}

	if (part->basetype == BPCHAROID)
		value = cut_padding(value);
	else if (part->basetype == VARCHAROID)
		value = cut_blanks(value, part->collid);
	hash = DatumGetUInt64(FunctionCall2Coll(part->hashfn, part->collid, value,
											UInt64GetDatum(seed)));
	return bguard_hash_u64(hash, seed);
}

/*
 * Hash of a whole key of nparts (1 .. BGUARD_MAX_KEY_COLUMNS) values, none NULL.
 * Raises what hash_part raises.
 */
uint64
bguard_keys_hash(BGuardKeyPart *parts, int nparts, const Datum *values,
				 uint64 seed)
{
	uint64		hashes[BGUARD_MAX_KEY_COLUMNS];
	int			i;

	Assert(nparts >= 1 && nparts <= BGUARD_MAX_KEY_COLUMNS);

	if (nparts == 1)
		return hash_part(&parts[0], values[0], seed);
	for (i = 0; i < nparts; i++)
		hashes[i] = hash_part(&parts[i], values[i], seed);
	return bguard_keys_combine(hashes, nparts, seed);
}

/*
 * Combine the hashes of nhashes (at least 1) columns, in the key's order.  One
 * column's hash is the key's hash.
 */
uint64
bguard_keys_combine(const uint64 *hashes, int nhashes, uint64 seed)
{
	if (nhashes == 1)
		return hashes[0];
	return bguard_hash_combine((const uint64_t *) hashes, nhashes, seed);
}

/* arguments that are hashed just as the column's own values are */
static bool
use_part(BGuardKeyArg *arg, const BGuardKeyPart *part, MemoryContext cxt)
{
	arg->kind = BGUARD_ARG_HASH;
	arg->part = *part;
	/* call state in fn_extra cannot be shared with the original */
	if (part->road == BGUARD_ROAD_PROC)
	{
		arg->part.hashfn = MemoryContextAlloc(cxt, sizeof(FmgrInfo));
		fmgr_info_copy(arg->part.hashfn, part->hashfn, cxt);
	}
	return true;
}

/* arguments that are read by the column type's input function */
static bool
use_input(BGuardKeyArg *arg, const BGuardKeyPart *part, Oid readas,
		  MemoryContext cxt)
{
	Oid			typinput;

	use_part(arg, part, cxt);
	arg->kind = BGUARD_ARG_INPUT;
	arg->argtype = readas;
	getTypeInputInfo(part->basetype, &typinput, &arg->ioparam);
	arg->infn = MemoryContextAlloc(cxt, sizeof(FmgrInfo));
	fmgr_info_cxt(typinput, arg->infn, cxt);
	return true;
}

/*
 * Prepare to take arguments of argtype for the part; see keys.h for the types
 * that are taken.  cxt lives as long as *arg.  false, and *arg not to be used,
 * for any other type.  Raises an error on catalog corruption only.
 *
 * An argument is compared as the column compares: under the column's collation,
 * without the column's typmod and without the constraints of its domain.
 */
bool
bguard_keys_arg_init(BGuardKeyArg *arg, const BGuardKeyPart *part, Oid argtype,
					 MemoryContext cxt)
{
	TypeCacheEntry *argentry;
	TypeCacheEntry *partentry;
	Oid			argbase;
	char	   *problem;

	memset(arg, 0, sizeof(*arg));
	arg->argtype = argtype;

	if (!OidIsValid(argtype))
		return false;
	if (argtype == UNKNOWNOID)
		return use_input(arg, part, UNKNOWNOID, cxt);

	/* the column's own type, or one that is it under another label */
	argbase = getBaseType(argtype);
	if (argbase == part->basetype ||
		IsBinaryCoercible(argbase, part->basetype))
		return use_part(arg, part, cxt);

	/*
	 * Text counts as untyped.  That includes a name column, to which text is of
	 * the same family: an untyped parameter arrives here as text, and compared
	 * with the column it would be cut to the length of a name, as input does.
	 */
	if (part->road == BGUARD_ROAD_NAME &&
		(argbase == TEXTOID || argbase == VARCHAROID))
		return use_input(arg, part, TEXTOID, cxt);

	argentry = lookup_type_cache(argbase,
								 TYPECACHE_HASH_OPFAMILY |
								 TYPECACHE_HASH_EXTENDED_PROC);
	if (OidIsValid(argentry->hash_opf) &&
		OidIsValid(argentry->hash_extended_proc) &&
		argentry->hash_opf == part->opfamily)
	{
		partentry = lookup_type_cache(part->basetype, TYPECACHE_HASH_OPFAMILY);

		/*
		 * Both are relabelled to one concrete type before they are compared
		 * (regclass and regproc to oid, inet and cidr to inet).  Sharing a
		 * polymorphic one, as all enums do, does not make them comparable.
		 */
		if (argentry->hash_opintype == partentry->hash_opintype)
		{
			if (!IsPolymorphicType(argentry->hash_opintype))
				return use_part(arg, part, cxt);
		}
		else if (OidIsValid(get_opfamily_member(part->opfamily,
												argentry->hash_opintype,
												partentry->hash_opintype,
												HTEqualStrategyNumber)) &&
				 OidIsValid(get_opfamily_member(part->opfamily,
												partentry->hash_opintype,
												argentry->hash_opintype,
												HTEqualStrategyNumber)))
		{
			/*
			 * Under a nondeterministic collation a name must be hashed as text;
			 * its own hash function ignores the collation.  Nor does it know of
			 * cut_blanks().
			 */
			if (argbase == NAMEOID &&
				(part->road == BGUARD_ROAD_PROC || part->basetype == VARCHAROID))
				return use_input(arg, part, UNKNOWNOID, cxt);

			problem = bguard_keys_part_init(&arg->part, argbase, part->collid,
											cxt);
			if (problem == NULL)
			{
				arg->kind = BGUARD_ARG_HASH;
				return true;
			}
			pfree(problem);
		}
	}

	if (argbase == TEXTOID || argbase == VARCHAROID)
		return use_input(arg, part, TEXTOID, cxt);
	return false;
}

/*
 * Hash of one argument, which is not NULL and of the type given to
 * bguard_keys_arg_init.  Raises what the column type's input function and hash
 * function raise.
 */
uint64
bguard_keys_hash_arg(BGuardKeyArg *arg, Datum value, uint64 seed)
{
	char	   *string;
	uint64		hash;

	if (arg->kind == BGUARD_ARG_HASH)
		return hash_part(&arg->part, value, seed);

	string = arg->argtype == UNKNOWNOID ?
		DatumGetCString(value) : TextDatumGetCString(value);
	hash = hash_part(&arg->part,
					 InputFunctionCall(arg->infn, string, arg->ioparam, -1),
					 seed);
	if (string != DatumGetPointer(value))
		pfree(string);
	return hash;
}
