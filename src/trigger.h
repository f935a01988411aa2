/*
 * trigger.h
 *		The trigger function, for another copy of the library.
 */
#ifndef BGUARD_TRIGGER_H
#define BGUARD_TRIGGER_H

#include "fmgr.h"

/* of this copy */
extern PGFunction bguard_maintain_here;
/* of the copy that was loaded before this one; NULL: this is the first */
extern PGFunction bguard_maintain_elsewhere;

#endif							/* BGUARD_TRIGGER_H */
