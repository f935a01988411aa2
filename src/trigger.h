/*
 * trigger.h
 *		The trigger function, for another copy of the library.
 */
#ifndef BGUARD_TRIGGER_H
#define BGUARD_TRIGGER_H

struct FunctionCallInfoBaseData;

/* PGFunction, without its header */
typedef Datum (*BGuardTriggerFunction) (struct FunctionCallInfoBaseData *fcinfo);

/* of this copy */
extern BGuardTriggerFunction bguard_maintain_here;
/* of the copy that was loaded before this one; NULL: this is the first */
extern BGuardTriggerFunction bguard_maintain_elsewhere;

#endif							/* BGUARD_TRIGGER_H */
