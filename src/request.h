/*
 * request.h
 *		Asking the workers for something, when the transaction commits.
 *
 * A request made earlier would let a worker look at the old state of the
 * catalog or of the table.  What an aborted subtransaction asked for is not
 * taken back: a needless visit or rotation does no harm.  PREPARE TRANSACTION
 * drops requests; COMMIT PREPARED asks for a visit of its own (src/ddl.c).
 *
 * SHARED STATE: a short list of databases that wait for a visit, and the
 * launcher's PGPROC number.  Protected by bguard_lock; written at commit, read
 * by the launcher.
 */
#ifndef BGUARD_REQUEST_H
#define BGUARD_REQUEST_H

#include "postgres_ext.h"

extern void bguard_request_init(void);

/* at commit: wake the launcher and have a worker look at this database */
extern void bguard_request_visit(void);
/* at commit: rotate the filters of this root relation, and visit */
extern void bguard_request_rotation(Oid root_relid);
/* the same for one filter, by its root trigger (InvalidOid: all) */
extern void bguard_request_rotation_of(Oid root_relid, Oid root_tgoid);
/* now, from any process: have a worker look at the database */
extern void bguard_request_visit_now(Oid dboid);

/*
 * Keep workers out of a database while a command needs it to itself (DROP
 * DATABASE and kin).  Holding also ends workers that are in it; releasing asks
 * for a visit.  Holds end by themselves with the transaction, so that what comes
 * after sees what the command did, and when their process is gone.
 */
extern void bguard_request_hold(Oid dboid);
extern void bguard_request_release_holds(void);
/* is the database held by a living process?  bguard_lock not held */
extern bool bguard_request_held(Oid dboid);

/*
 * A filter found no entry in the registry, which is full: have every database
 * looked at when there is room again.  And: an entry has become free.
 */
extern void bguard_request_note_full(void);
extern void bguard_request_note_room(void);

/* launcher side */
extern void bguard_request_launcher(bool running);
extern void bguard_request_wake(void);
/* take one waiting database; false when none.  *all: look at every database */
extern bool bguard_request_next(Oid *dboid, bool *all);

#endif							/* BGUARD_REQUEST_H */
