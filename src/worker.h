/*
 * worker.h
 *		The fleet: one launcher, short-lived workers in the databases.
 */
#ifndef BGUARD_WORKER_H
#define BGUARD_WORKER_H

#include "postgres_ext.h"

/* register the launcher; from _PG_init, when preloading only */
extern void bguard_launcher_init(void);

/* entry points of the processes */
extern PGDLLEXPORT void bguard_launcher_main(Datum arg);
extern PGDLLEXPORT void bguard_worker_main(Datum arg);

#endif							/* BGUARD_WORKER_H */
