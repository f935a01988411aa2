/*
 * build.h
 *		Fill a generation from the table while writers go on.
 *
 * STEPS
 *	1 remember the poison counter; full barrier; claim the entry
 *	2 look at the definition without locks: size, and whether it is sound at all;
 *	  put a trigger that lost ALWAYS right again
 *	3 take a slot and a run of lines; clear; publish as building; full barrier
 *	4 CHECK: root and every descendant (detach-pending ones, too), one at a time,
 *	  each in its own short transaction, under a lock that conflicts with every
 *	  change of a definition or of the list of partitions: definition sound, note
 *	  relfilenode and trigger row.  A change committed earlier is seen, one in
 *	  flight blocks us, one that begins later moves the poison counter.
 *	  Likewise for functions that are being replaced (src/ddl_function.c).  Then
 *	  move the registry's version, so that no writer goes on with an old recipe.
 *	5 scan every leaf of that list, in chunks, each its own transaction
 *	6 compare trigger rows once more; poison counter as remembered; validate by one
 *	  compare-and-swap.  Any mismatch discards the generation.
 *
 * The check comes after publication, so that a partition created in between is
 * on the list, or its creator still holds the lock that the check waits for: its
 * rows are scanned, or were written when the building slot was there to be seen.
 *
 * LOCKS: at most one relation lock at a time, asked for conditionally in a loop,
 * so that nobody queues behind a build and no deadlock can include one.
 * RowExclusiveLock on leaves (conflicts with CREATE TRIGGER, ENABLE, DISABLE, all
 * of AccessExclusive; not with VACUUM, ANALYZE, CREATE INDEX CONCURRENTLY),
 * ShareUpdateExclusiveLock on partitioned tables (conflicts with ATTACH, DETACH,
 * CREATE ... PARTITION OF, too).  Scanning holds AccessShareLock per chunk.
 */
#ifndef BGUARD_BUILD_H
#define BGUARD_BUILD_H

#include "definition.h"
#include "fleet.h"
#include "registry.h"
#include "storage/block.h"

typedef enum BGuardBuildResult
{
	BGUARD_BUILD_DONE,
	BGUARD_BUILD_CHANGED,		/* poisoned or rewritten meanwhile: try again */
	BGUARD_BUILD_LOCKED,		/* a lock was not to be had: try again later */
	BGUARD_BUILD_BLOCKED,		/* definition unsound: reason is set */
	BGUARD_BUILD_NO_MEMORY,		/* reason is set */
	BGUARD_BUILD_GONE			/* the definition does not exist any more */
} BGuardBuildResult;

/* root or descendant of a guarded relation */
typedef struct BGuardMember
{
	Oid			relid;
	char		relkind;
	Oid			relfilenode;
	Oid			tgoid;			/* our trigger on it */
	TransactionId tgxmin;		/* of the trigger's row */
	char		tgenabled;
} BGuardMember;

typedef struct BGuardBuild
{
	BGuardOwner owner;
	BGuardWorker *worker;		/* progress */
	int			number;			/* entry */
	BGuardEntry *entry;
	BGuardEntryKey key;
	MemoryContext cxt;			/* of this build */
	uint32		poison;			/* counter remembered at the start */

	/* from the check */
	BGuardDefinition def;
	BGuardSignature sig;
	List	   *members;		/* BGuardMember * */
	double		tuples;			/* estimated rows of all leaves */
	uint64		blocks;
	char		name[2 * NAMEDATALEN + 2];	/* schema.table, for messages */
	char		reason[BGUARD_REASON_LEN];

	uint32		slot;
	BGuardBloom filter;
	uint64		tuples_done;
	uint64		keys_done;
	TimestampTz waited;			/* for locks, microseconds: not work */
} BGuardBuild;

/* build_check.c */
extern BGuardBuildResult bguard_build_check(BGuardBuild *build, bool locked);
extern BGuardBuildResult bguard_build_repair(BGuardBuild *build);
extern bool bguard_build_unchanged(BGuardBuild *build);

/* build_scan.c */
extern BGuardBuildResult bguard_build_scan(BGuardBuild *build,
										   const BGuardMember *member);
/* conditional lock in a loop of at most wait_ms; ends the wait when poisoned */
extern bool bguard_build_lock(BGuardBuild *build, Oid relid, int lockmode,
							  int wait_ms);

/* build.c */
extern bool bguard_build_poisoned(const BGuardBuild *build);
extern void bguard_build_run(int number, const BGuardEntryKey *key,
							 BGuardOwner owner);

#endif							/* BGUARD_BUILD_H */
