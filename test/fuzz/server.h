/*
 * server.h
 *		Stand-ins for the few functions of the server that the code under test
 *		calls.
 */
#ifndef FUZZ_SERVER_H
#define FUZZ_SERVER_H

/* free everything that was allocated since the last call */
extern void server_reset(void);

#endif							/* FUZZ_SERVER_H */
