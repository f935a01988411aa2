/*
 * debug.c
 *		Pause points, see debug.h.  Empty without -DBGUARD_DEBUG.
 */
#include "postgres.h"

#include "debug.h"

#ifdef BGUARD_DEBUG

#include "common/hashfn.h"
#include "miscadmin.h"
#include "registry.h"
#include "storage/lock.h"

/*
 * bguard_debug_pause
 *		Wait while somebody holds the point's advisory lock.
 *
 * A session lock, since workers come here outside of transactions, too.
 */
bool
bguard_debug_pause(const char *format,...)
{
	char		name[NAMEDATALEN];
	va_list		args;
	int64		key;
	LOCKTAG		tag;
	int			length = snprintf(name, sizeof(name), "bloomguard:");
	bool		waited;

	if (!OidIsValid(MyDatabaseId))
		return false;

	va_start(args, format);
	vsnprintf(name + length, sizeof(name) - length, format, args);
	va_end(args);

	/* hashtext() and pg_advisory_lock(bigint) of that */
	key = (int32) hash_bytes((const unsigned char *) name, (int) strlen(name));
	SET_LOCKTAG_ADVISORY(tag, MyDatabaseId, (uint32) (key >> 32), (uint32) key, 1);

	waited = LockAcquire(&tag, ShareLock, true, true) == LOCKACQUIRE_NOT_AVAIL;
	if (waited)
		(void) LockAcquire(&tag, ShareLock, true, false);
	LockRelease(&tag, ShareLock, true);
	return waited;
}

static uint64 early_links[64];

/*
 * bguard_debug_note_links
 *		For the mutant NO_BARRIER: remember the links of the first entries.
 */
void
bguard_debug_note_links(void)
{
	for (int i = 0; i < lengthof(early_links) && i < bguard_control->max_filters; i++)
		early_links[i] = pg_atomic_read_u64(&bguard_registry_entry(i)->link);
}

uint64
bguard_debug_early_link(int number)
{
	return early_links[Min(number, lengthof(early_links) - 1)];
}

#endif							/* BGUARD_DEBUG */
