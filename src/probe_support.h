/*
 * probe_support.h
 *		Estimates of what a probe lets through; for probe_support.c and probe_share.c.
 */
#ifndef BGUARD_PROBE_SUPPORT_H
#define BGUARD_PROBE_SUPPORT_H

#include "arena.h"
#include "keys.h"
#include "utils/selfuncs.h"

/* share of keys that are there when nothing is known: a guard is for absent ones */
#define BGUARD_DEFAULT_SHARE	0.1

/* what a call asks */
typedef struct BGuardTarget
{
	int			ncols;
	Oid			stats_relid;	/* root, whose statistics count */
	bool		stats_inherited;
	AttrNumber	stats_attnums[BGUARD_MAX_KEY_COLUMNS];
	Oid			collids[BGUARD_MAX_KEY_COLUMNS];
	BGuardKeyPart parts[BGUARD_MAX_KEY_COLUMNS];

	double		rate;			/* of false positives */
	bool		ready;			/* the rest is filled */
	double		keys;			/* distinct keys */
	BGuardBloom filter;
} BGuardTarget;

/* one part of the key that is asked for */
typedef struct BGuardTargetKey
{
	Const	   *constant;		/* or a variable: */
	VariableStatData var;
} BGuardTargetKey;

/* share of rows that pass, by the parts of the key, as many as the target has columns */
extern double bguard_share_of_rows(const BGuardTarget *target, BGuardTargetKey *parts);

#endif							/* BGUARD_PROBE_SUPPORT_H */
