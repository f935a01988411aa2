/*
 * probe.h
 *		Asking a filter: is this key definitely absent?
 *
 * A BGuardProbe is one question (relation, key columns, argument types) that is
 * asked many times with different keys.  It belongs to the backend that made it
 * and may live across statements, snapshots, subtransaction aborts and even
 * transactions: what it caches, it checks on every call.
 */
#ifndef BGUARD_PROBE_H
#define BGUARD_PROBE_H


typedef enum BGuardAnswer
{
	BGUARD_ANSWER_ABSENT,		/* no row that the snapshot sees has the key */
	BGUARD_ANSWER_MAYBE,		/* the filter has all bits of the key */
	BGUARD_ANSWER_UNGUARDED		/* cannot be told: maybe, see the reason */
} BGuardAnswer;

/* why a probe was not answered; texts by bguard_probe_reason_text */
typedef enum BGuardProbeReason
{
	BGUARD_REASON_NONE,			/* it was */
	BGUARD_REASON_NOT_PRELOADED,
	BGUARD_REASON_NO_RELATION,
	BGUARD_REASON_NO_FILTER,
	BGUARD_REASON_LOCKED,
	BGUARD_REASON_ROW_SECURITY,
	BGUARD_REASON_RECOVERY,
	BGUARD_REASON_DISABLED,
	BGUARD_REASON_NO_SNAPSHOT,
	BGUARD_REASON_OLD_SNAPSHOT,
	BGUARD_REASON_SERIALIZABLE,
	BGUARD_REASON_BUILDING,		/* first generation is being built */
	BGUARD_REASON_STALE,		/* no generation to ask, none being built */
	BGUARD_REASON_BLOCKED,		/* nor can one be: bloomguard_filters says why */
	BGUARD_REASON_NO_MEMORY,	/* nor is there room for one */
	BGUARD_REASON_IN_FLIGHT,
	BGUARD_REASON_NULL,
	BGUARD_REASON_CHANGED		/* filter changed under the probe */
} BGuardProbeReason;

typedef struct BGuardProbe BGuardProbe;

/* an empty probe in the memory context, which must outlive its use */
extern BGuardProbe *bguard_probe_create(MemoryContext cxt);

/*
 * What is to be asked: the filter of relid on key_columns (an identifier list),
 * or with NULL the relation's only filter, for keys of nargs parts of the types
 * argtypes (TEXTOID and UNKNOWNOID are read by the column type's input
 * function).  The arguments are copied; of more than BGUARD_MAX_KEY_COLUMNS types
 * only those.  With trusted, SELECT privilege and row security are the caller's
 * business.  Reads no catalog; raises only for memory.
 */
extern void bguard_probe_prepare(BGuardProbe *probe, Oid relid,
								 const char *key_columns, int nargs,
								 const Oid *argtypes, bool trusted);

/*
 * Ask for one key, under the active snapshot.  values and nulls are nargs long.
 * *reason is set with every answer.
 *
 * Raises: a column that does not exist, more than one filter to choose from,
 * wrong number or type of key parts, no SELECT privilege, and what input and
 * hash functions of the key's types raise.  Nothing when not preloaded.
 */
extern BGuardAnswer bguard_probe_ask(BGuardProbe *probe, const Datum *values,
									 const bool *nulls,
									 BGuardProbeReason *reason);

/* changes whenever the probe has looked at the catalogs anew */
extern uint64 bguard_probe_serial(const BGuardProbe *probe);

extern const char *bguard_probe_reason_text(BGuardProbeReason reason);

#endif							/* BGUARD_PROBE_H */
