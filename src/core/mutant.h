/*
 * mutant.h
 *		Faults on request: each mutant breaks one rule that keeps the promise.
 *
 * A test that cannot fail proves nothing.  scripts/mutants.sh builds the extension
 * once for each mutant, with -DBGUARD_DEBUG -DBGUARD_MUTATION=<name>, and runs the
 * tests that must notice.  Without BGUARD_DEBUG the condition is a constant false,
 * and nothing of it is in the library.
 */
#ifndef BGUARD_MUTANT_H
#define BGUARD_MUTANT_H

#ifdef BGUARD_DEBUG

enum BGuardMutant
{
	BGUARD_MUTANT_NONE,
	BGUARD_MUTANT_MVCC_SCAN,	/* a build reads what its snapshot sees */
	BGUARD_MUTANT_NO_BARRIER,	/* a writer's load of the link moves up, to the
								 * start of its statement */
	BGUARD_MUTANT_TWO_LOADS,	/* current and building slot by two loads */
	BGUARD_MUTANT_PLAIN_OR,		/* bits are set by load and store */
	BGUARD_MUTANT_SIZE_FIRST,	/* relation size read before publication */
	BGUARD_MUTANT_NO_IN_FLIGHT, /* probes heed no statement under way */
	BGUARD_MUTANT_NO_DISABLE_POISON,	/* ALTER of a trigger goes unnoticed */
	BGUARD_MUTANT_ORDINARY_TRIGGER, /* not ENABLE ALWAYS, and nobody minds */
	BGUARD_MUTANT_CHANGED_KEYS, /* an UPDATE adds only a key that changed */
	BGUARD_MUTANT_NO_RECHECK,	/* a negative stands though the link moved */
	BGUARD_MUTANT_INT32_HASH,	/* integers are folded to 32 bits */
	BGUARD_MUTANT_CHECK_FIRST,	/* locked check before publication */
	BGUARD_MUTANT_BLIND_VALIDATE,	/* validation is a store, not a swap */
	BGUARD_MUTANT_STALE_RECIPE	/* a writer's cache outlives the registry's
								 * version */
};

#ifndef BGUARD_MUTATION
#define BGUARD_MUTATION NONE
#endif
#define BGUARD_MUTANT_PASTE(name)	BGUARD_MUTANT_##name
#define BGUARD_MUTANT_NAME(name)	BGUARD_MUTANT_PASTE(name)
#define BGUARD_MUTANT(name) \
	(BGUARD_MUTANT_NAME(BGUARD_MUTATION) == BGUARD_MUTANT_##name)

#else

#define BGUARD_MUTANT(name) 0

#endif							/* BGUARD_DEBUG */

#endif							/* BGUARD_MUTANT_H */
