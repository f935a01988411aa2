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

/*
 * Filters hashed by the function, or all on arrays and ranges, are poisoned.  The
 * lock is taken in any case: a filter may be tracked and built for the first time
 * before the command commits.
 */
static void
hash_function_event(Oid funcoid)
{
	keep_builders_out();
	if (!bguard_registry_uses_hashproc(MyDatabaseId, funcoid))
		return;
	bguard_registry_poison_hashproc(MyDatabaseId, funcoid, BGUARD_POISON_FUNCTION);
	bguard_ddl_changed();
}

/* f(x, bigint) returns bigint */
static bool
may_hash(Oid funcoid)
{
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(funcoid));
	Form_pg_proc form;
	bool		may;

	/* not there yet: brand-new, so nothing was hashed with it */
	if (!HeapTupleIsValid(tuple))
		return false;
	form = (Form_pg_proc) GETSTRUCT(tuple);
	may = form->pronargs == 2 && form->prorettype == INT8OID &&
		form->proargtypes.values[1] == INT8OID;
	ReleaseSysCache(tuple);
	return may;
}

/*
 * bguard_ddl_function_event
 *		See ddl.h.
 */
void
bguard_ddl_function_event(Oid funcoid)
{
	if (bguard_definition_was_function(funcoid))
	{
		keep_builders_out();
		bguard_ddl_poison_database(BGUARD_POISON_FUNCTION);
	}
	else if (may_hash(funcoid))
		hash_function_event(funcoid);
}

/*
 * bguard_ddl_opclass_event
 *		See ddl.h.
 */
void
bguard_ddl_opclass_event(void)
{
	hash_function_event(InvalidOid);
}
