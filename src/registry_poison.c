/*
 * registry_poison.c
 *		Poison: take a filter out of service until a complete build.
 *
 * The rule is in registry.h.  Poisoning one entry needs no lock, no memory and no
 * transaction; finding entries by relation, trigger or function takes
 * bguard_lock (shared), so that keys and signatures stay still meanwhile.
 */
#include "postgres.h"

#include "debug.h"
#include "registry.h"
#include "utils/timestamp.h"

/*
 * bguard_registry_poison
 *		Take the filter out of service until a complete build.
 *
 * The counter moves first: a builder that validates in between loses its
 * compare-and-swap, or its generation is cleared here.  Callable anywhere.
 */
void
bguard_registry_poison(BGuardEntry *entry, BGuardPoison reason)
{
	uint64		link;

	pg_atomic_write_u32(&entry->poison_reason, reason);
	pg_atomic_fetch_add_u32(&entry->poison, 1);
	BGUARD_PAUSE("poison-counted");

	link = pg_atomic_read_u64(&entry->link);
	while (!pg_atomic_compare_exchange_u64(&entry->link, &link,
										   BGUARD_LINK(0, 0, BGUARD_LINK_COUNTER(link) + 1)))
		 /* link was re-read */ ;

	pg_atomic_write_u64(&entry->since, (uint64) GetCurrentTimestamp());
}

/* see bguard_registry_poison_hashproc; bguard_lock is held */
static bool
hashes_with(const BGuardSignature *sig, Oid hashproc)
{
	for (int i = 0; i < sig->ncols; i++)
	{
		const BGuardSigColumn *col = &sig->cols[i];

		if (OidIsValid(hashproc) ?
			col->hashproc == hashproc || col->innerproc == hashproc :
			OidIsValid(col->innerproc))
			return true;
	}
	return false;
}

/*
 * Entries picked by database and one more property, if given.  The lock only keeps
 * keys and signatures still while they are compared.
 */
static void
poison_matching(Oid dboid, Oid relid, Oid tgoid, const Oid *hashproc,
				BGuardPoison reason)
{
	BGUARD_PAUSE("poison-begin");
	LWLockAcquire(bguard_lock, LW_SHARED);
	for (uint32 i = 0; i < bguard_control->max_filters; i++)
	{
		BGuardEntry *e = bguard_registry_entry((int) i);
		bool		match = e->key.dboid == dboid && dboid != InvalidOid;

		if (match && OidIsValid(relid))
			match = e->key.relid == relid;
		if (match && OidIsValid(tgoid))
			match = e->key.tgoid == tgoid;
		if (match && hashproc != NULL)
			match = hashes_with(&e->sig, *hashproc);
		if (match)
			bguard_registry_poison(e, reason);
	}
	LWLockRelease(bguard_lock);
	BGUARD_PAUSE("poison-end");
}

/*
 * bguard_registry_poison_trigger
 *		Poison the filter that the root trigger defines.
 */
void
bguard_registry_poison_trigger(Oid dboid, Oid tgoid, BGuardPoison reason)
{
	poison_matching(dboid, InvalidOid, tgoid, NULL, reason);
}

/*
 * bguard_registry_poison_relation
 *		Poison every filter of the root relation.
 */
void
bguard_registry_poison_relation(Oid dboid, Oid relid, BGuardPoison reason)
{
	poison_matching(dboid, relid, InvalidOid, NULL, reason);
}

/*
 * bguard_registry_poison_database
 *		Poison every filter of the database.
 */
void
bguard_registry_poison_database(Oid dboid, BGuardPoison reason)
{
	poison_matching(dboid, InvalidOid, InvalidOid, NULL, reason);
}

/*
 * bguard_registry_uses_hashproc
 *		Would bguard_registry_poison_hashproc() find an entry?
 */
bool
bguard_registry_uses_hashproc(Oid dboid, Oid hashproc)
{
	bool		found = false;

	LWLockAcquire(bguard_lock, LW_SHARED);
	for (uint32 i = 0; i < bguard_control->max_filters && !found; i++)
	{
		BGuardEntry *e = bguard_registry_entry((int) i);

		found = e->key.dboid == dboid && hashes_with(&e->sig, hashproc);
	}
	LWLockRelease(bguard_lock);
	return found;
}

/*
 * bguard_registry_poison_hashproc
 *		Poison filters of the database whose keys are hashed by the function, or
 *		all that hash what is inside of arrays or ranges.
 */
void
bguard_registry_poison_hashproc(Oid dboid, Oid hashproc, BGuardPoison reason)
{
	poison_matching(dboid, InvalidOid, InvalidOid, &hashproc, reason);
}

/*
 * bguard_registry_poison_text
 *		For the reason column of bloomguard_filters.
 */
const char *
bguard_registry_poison_text(BGuardPoison reason)
{
	switch (reason)
	{
		case BGUARD_POISON_NONE:
			return "not built yet";
		case BGUARD_POISON_TRIGGER:
			return "trigger was created or altered";
		case BGUARD_POISON_TRIGGER_DROP:
			return "trigger was dropped";
		case BGUARD_POISON_COLUMN:
			return "key column was altered";
		case BGUARD_POISON_REWRITE:
			return "key column was rewritten";
		case BGUARD_POISON_ATTACH:
			return "partition with rows or inheritance child was attached";
		case BGUARD_POISON_FUNCTION:
			return "function was replaced";
		case BGUARD_POISON_RELATION:
			return "relation was dropped";
		case BGUARD_POISON_ADD:
			return "a key could not be added";
	}
	return "unknown";
}
