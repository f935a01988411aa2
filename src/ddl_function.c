/*
 * ddl_function.c
 *		Functions that filters depend on: ours, and those that hash keys.
 *
 * CREATE OR REPLACE FUNCTION and ALTER FUNCTION lock no table, so nothing would
 * keep a builder from using the old function between the event and the commit.
 * Both therefore lock an object that stands for all functions of the database:
 * the command in ShareLock, to its end and without waiting for its like; the
 * builder's check (src/build_check.c) in RowExclusiveLock, conditionally.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "ddl.h"
#include "definition.h"
#include "miscadmin.h"
#include "registry.h"
#include "storage/lock.h"
#include "utils/fmgroids.h"
#include "utils/syscache.h"

/*
 * To the end of the command's transaction, so that no build is checked between
 * this event and the commit.
 */
static void
keep_builders_out(void)
{
	LOCKTAG		tag;

	BGUARD_FUNCTIONS_LOCKTAG(tag);
	(void) LockAcquire(&tag, ShareLock, false, false);
}

/* does a filter of this database hash with the function? */
static bool
is_hash_function(Oid funcoid)
{
	bool		found = false;

	LWLockAcquire(bguard_lock, LW_SHARED);
	for (uint32 i = 0; i < bguard_control->max_filters && !found; i++)
	{
		BGuardEntry *entry = bguard_registry_entry((int) i);

		if (entry->key.dboid != MyDatabaseId)
			continue;
		for (int j = 0; j < entry->sig.ncols; j++)
			found |= entry->sig.cols[j].hashproc == funcoid;
	}
	LWLockRelease(bguard_lock);
	return found;
}

/*
 * Arrays, ranges and multiranges are hashed by core with the hash function of
 * what they contain, which no signature names.  Any function of the form
 * f(x, bigint) returns bigint may be one.
 */
static void
container_event(Oid funcoid)
{
	static const Oid containers[] = {
		F_HASH_ARRAY_EXTENDED, F_HASH_RANGE_EXTENDED, F_HASH_MULTIRANGE_EXTENDED
	};
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(funcoid));
	Form_pg_proc form;
	bool		like;

	/* not there yet: brand-new, so nothing was hashed with it */
	if (!HeapTupleIsValid(tuple))
		return;
	form = (Form_pg_proc) GETSTRUCT(tuple);
	like = form->pronargs == 2 && form->prorettype == INT8OID &&
		form->proargtypes.values[1] == INT8OID;
	ReleaseSysCache(tuple);
	for (int i = 0; like && i < lengthof(containers); i++)
	{
		if (!is_hash_function(containers[i]))
			continue;
		keep_builders_out();
		bguard_registry_poison_hashproc(MyDatabaseId, containers[i],
										BGUARD_POISON_FUNCTION);
		bguard_ddl_changed();
	}
}

/*
 * bguard_ddl_function_event
 *		See ddl.h.
 */
void
bguard_ddl_function_event(Oid funcoid)
{
	if (!bguard_registry_database_used(MyDatabaseId))
	{
		/* ours may come back: filters were forgotten while it could not be found */
		if (bguard_definition_was_function(funcoid))
			bguard_ddl_changed();
		return;
	}
	if (bguard_definition_was_function(funcoid))
	{
		keep_builders_out();
		bguard_ddl_poison_database(BGUARD_POISON_FUNCTION);
	}
	else if (is_hash_function(funcoid))
	{
		keep_builders_out();
		bguard_registry_poison_hashproc(MyDatabaseId, funcoid,
										BGUARD_POISON_FUNCTION);
		bguard_ddl_changed();
	}
	container_event(funcoid);
}
