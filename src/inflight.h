/*
 * inflight.h
 *		Is a modifying statement of this backend still running?
 *
 * AFTER triggers leave a window: between a row's insertion and the end of its
 * own statement, code inside that statement can see rows whose add is still
 * queued.  It is closed by command id: a snapshot sees the rows of a statement
 * iff the statement's command id is smaller than the snapshot's curcid.
 */
#ifndef BGUARD_INFLIGHT_H
#define BGUARD_INFLIGHT_H

#include "utils/snapshot.h"

/* install hooks and callbacks, ask for the shared slots; from _PG_init only */
extern void bguard_inflight_init(void);

/*
 * This process is a background worker of ours: it writes rows through the
 * executor only, like an ordinary backend.  Call it before its first query.
 */
extern void bguard_inflight_own_worker(void);

/*
 * May the snapshot see a row of a table guarded by a filter of root_relid, whose
 * add is still queued?  True means: answer maybe.  A few loads when no
 * modifying statement is in flight.  Reads catalogs otherwise.  The snapshot is
 * an MVCC snapshot of this transaction.  True when shared memory is not attached.
 */
extern bool bguard_inflight_blocks(Snapshot snapshot, Oid root_relid);

/* subtransactions of this backend aborted so far: locks taken in them are gone */
extern uint64 bguard_inflight_subxact_aborts(void);

#endif							/* BGUARD_INFLIGHT_H */
