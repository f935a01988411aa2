/*
 * probe_state.h
 *		What a probe keeps; for probe.c and probe_resolve.c only.
 */
#ifndef BGUARD_PROBE_STATE_H
#define BGUARD_PROBE_STATE_H

#include "probe.h"
#include "registry.h"
#include "storage/lock.h"

struct BGuardProbe
{
	/* the question */
	MemoryContext parent;
	Oid			relid;
	char	   *key_columns;	/* NULL: the relation's only filter */
	int			nargs;
	Oid			argtypes[BGUARD_MAX_KEY_COLUMNS];
	bool		trusted;

	/* transaction and subtransaction aborts that the lock was taken at */
	LocalTransactionId lxid;
	uint64		aborts;

	/* what the catalogs say; valid while version is unchanged */
	bool		resolved;
	uint64		serial;
	uint64		version;
	MemoryContext cxt;			/* reset when resolving anew */
	BGuardProbeReason standing; /* NONE: the rest is filled */
	int			nattrs;			/* key columns in the named relation */
	AttrNumber	attrs[BGUARD_MAX_KEY_COLUMNS];
	BGuardEntryKey key;
	BGuardSignature sig;
	BGuardEntry *entry;			/* NULL: there is none yet */
	int			number;			/* of the entry */
	BGuardKeyArg *args;			/* nargs of them, in cxt */

	/* may the user ask? */
	bool		rights_known;
	Oid			userid;
	int			sec_context;
	bool		row_security;
	bool		rls;			/* in force for the user */
};

/* probe_resolve.c */
extern void bguard_probe_resolve(BGuardProbe *probe);
extern void bguard_probe_check_rights(BGuardProbe *probe, Oid userid,
									  int sec_context);

#endif							/* BGUARD_PROBE_STATE_H */
