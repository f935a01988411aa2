/*
 * fuzz.h
 *		One input, and the checks that hold of each.
 */
#ifndef FUZZ_FUZZ_H
#define FUZZ_FUZZ_H

#include "definition.h"

#define MOST_BYTES	4096

/* the number of arguments (two bytes, the low one first), then tgargs */
typedef struct Input
{
	uint8_t		bytes[MOST_BYTES];
	size_t		size;
} Input;

/* failed checks of read_input() and of CHECK; the first ones are printed */
extern uint64_t ncomplaints;

extern void complain(const char *what);

#define CHECK(condition) \
	do { if (!(condition)) complain(#condition); } while (0)

/* make an input of these arguments */
extern void pack(Input *input, int nargs, char *const *args);
/* read the input and check what has been read */
extern void read_input(const uint8_t *data, size_t size, BGuardDefinition *def);
extern bool same_definition(const BGuardDefinition *a, const BGuardDefinition *b);

#endif							/* FUZZ_FUZZ_H */
