/*
 * debug.h
 *		Pause points and mutants (core/mutant.h) for the tests of races.
 *
 * In an ordinary build both are nothing.  With -DBGUARD_DEBUG a process that
 * comes to a pause point waits while another session holds the advisory lock
 *		pg_advisory_lock(hashtext('bloomguard:' || point))
 * in the same database, and goes on at once when nobody does.  The points:
 *
 *	add-placed			row is on its page, its key not hashed yet
 *	add-loaded			link loaded, bits not set yet
 *	add-done			bits set
 *	probe-resolved		link not loaded yet
 *	probe-loaded		link loaded, bits not tested yet
 *	probe-tested		bits were clear, link not loaded again yet
 *	poison-begin		about to poison what a command concerns, lock held
 *	poison-counted		poison counter moved, link not yet; under bguard_lock, so
 *						hold it briefly: builds wait for that lock unseen
 *	poison-end			poisoned
 *	build-claimed		poison counter remembered
 *	build-cleared		slot ready, not published yet
 *	build-published		published, locked check not begun
 *	build-checked		locked check done, registry's version not moved yet
 *	scan-begin			about to take the leaf's lock, once per chunk
 *	scan-counted		blocks of the leaf counted, once per chunk
 *	scan-page-N			about to read block N of a leaf; a wait ends the chunk
 *	build-scanned		all leaves read, triggers not compared yet
 *	build-validating	all compared, link not swapped yet
 */
#ifndef BGUARD_DEBUG_H
#define BGUARD_DEBUG_H

#include "core/mutant.h"

#ifdef BGUARD_DEBUG
/* true when it had to wait; may raise, as any wait for a lock */
extern bool bguard_debug_pause(const char *format,...) pg_attribute_printf(1, 2);

/* for the mutant NO_BARRIER: the links as they were when the statement began */
extern void bguard_debug_note_links(void);
extern uint64 bguard_debug_early_link(int number);

#define BGUARD_PAUSE(...)	((void) bguard_debug_pause(__VA_ARGS__))
#define BGUARD_PAUSED(...)	bguard_debug_pause(__VA_ARGS__)
#else
#define bguard_debug_note_links()	((void) 0)
#define bguard_debug_early_link(number)	((void) (number), UINT64CONST(0))
#define BGUARD_PAUSE(...)	((void) 0)
#define BGUARD_PAUSED(...)	false
#endif

#endif							/* BGUARD_DEBUG_H */
