/*
 * registry.pml
 *		The world of guard.pml: entries, slots, table and catalog, and what registry.c,
 *		registry_poison.c and arena.c do with them for everybody.
 */

#define NONE	255
#define BIT(k, h)	(1 << ((k) + 3 * (h)))	/* key of row k as hashed by h */
#define ROW(k)	(1 << (k))

/* rows: 0, 1 by writers with the trigger; 2 without */
#define BYPASS	2

/* does the signature tell hash functions apart? */
#ifdef OPCLASS
#define SIGNATURE(h)	(h)
#else
#define SIGNATURE(h)	0
#endif

/* BGuardEntry; cur, bld and ctr are the link word */
typedef Entry
{
	byte	cur;
	byte	bld;
	byte	ctr;
	byte	pc;					/* poison counter */
	byte	key;				/* 0: free */
	byte	sig;
	byte	owner
};

Entry	E[NE];
byte	bits[NS];				/* of the slots */
bit		used[NS];				/* BGuardSlot: span is not 0 */
byte	sentry[NS];				/* its entry */
byte	sowner[NS];				/* its owner */
byte	version = 1;			/* of the registry */
short	alive;					/* owners that are RUNNING, as bits */
bit		lock;					/* bguard_lock, exclusively */

/* the table and its catalog */
byte	placed;					/* rows that are on a page */
byte	committed;				/* rows that a new snapshot sees */
byte	leaves = 7;				/* partitions: row k is in leaf k */
bit		rellock;				/* a command has the relation */
bit		fnlock;					/* a command has BGUARD_FUNCTIONS_LOCKTAG */
bit		sound = 1;				/* definition: the trigger fires */
byte	trow;					/* its pg_trigger row's xmin */
bit		fn;						/* hash function of the key */

#ifdef NOCOUNTER
#define COUNT(e)	skip
#else
#define COUNT(e)	E[e].ctr++
#endif

/* one compare-and-swap on the link word that succeeds */
#define SET_LINK(e, c, b)	E[e].cur = c; E[e].bld = b; COUNT(e)

#define ALIVE(o)	((o) != 0 && (alive & (1 << (o))))

/* bguard_registry_bump_version */
#ifdef CACHES
#define BUMP	version++
#else
#define BUMP	skip
#endif

/* LWLockAcquire, LWLockRelease; a single step under the lock begins with !lock */
#define LOCK	atomic { !lock -> lock = 1 }
#define UNLOCK	lock = 0

/* bguard_registry_poison: the counter first */
inline poison(e)
{
#ifndef SLOTSFIRST
	E[e].pc++;
#endif
#ifndef NOPOISONLINK
	d_step { SET_LINK(e, 0, 0) };
#endif
#ifdef SLOTSFIRST
	E[e].pc++
#endif
}

/* bguard_registry_find: under bguard_lock, shared */
inline find(e)
{
	atomic {
		!lock;
		if
		:: E[0].key == RK -> e = 0
#if NE > 1
		:: E[1].key == RK -> e = 1
#endif
		:: else -> e = NONE
		fi
	}
}

/* bguard_arena_free, under the lock */
#define FREE(s)	used[s] = 0; sentry[s] = 0; sowner[s] = 0

/* does a living build own the slot? */
#ifdef SWEEPLIVE
#define OWNED(s)	0
#else
#define OWNED(s)	ALIVE(sowner[s])
#endif

/*
 * sweep_slots, under the lock: it loads the link, and poison may move that
 * while the slots are gone through
 */
inline sweep_slots(e, c, b, s)
{
	d_step { c = E[e].cur; b = E[e].bld };
	d_step {
		s = 1;
		do
		:: s < NS ->
			if
			:: used[s] && sentry[s] == e && s != c && s != b && !OWNED(s) -> FREE(s)
			:: else
			fi;
			s++
		:: else -> break
		od;
		s = 0; c = 0; b = 0
	}
}

/* bguard_registry_create, under the lock; the version moves last */
inline create(e, k)
{
	LOCK;
	if
	:: E[e].key == 0 && !ALIVE(E[e].owner) ->
		d_step { E[e].owner = 0; E[e].sig = 0 };
		E[e].key = k;
#ifndef NOCREATEBUMP
		BUMP
#endif
	:: else
	fi;
	UNLOCK
}

/* bguard_registry_retire, under the lock */
inline retire(e, k, c, b, s)
{
	LOCK;
	if
	:: E[e].key == k ->
		poison(e);
		sweep_slots(e, c, b, s);
		E[e].key = 0;
		BUMP
	:: else
	fi;
	UNLOCK
}
