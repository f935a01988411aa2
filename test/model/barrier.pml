/*
 * barrier.pml
 *		Promela model of memory order: are the barriers of the add path, the build
 *		and the probe enough, and is each of them needed?
 *
 * guard.pml lets every step be seen by everybody at once.  Here a store goes to a
 * buffer of its process, one place for each variable, and reaches memory at any
 * later time; a process sees its own stores early.  Buffered stores leave in any
 * order (weaker than x86, as on ARM or POWER), with TSO in the order in which they
 * were made (x86).  Loads of the probe that no barrier keeps apart are made in any
 * order, likewise the writer's loads of version and link, which have none.
 *
 * CLAIM	once a row has committed and the generation is in service, its bit is
 *			there (ADD); a probe never combines the link of one filter or generation
 *			with the key or the bits of another (PROBE).
 *
 * CONFIGURATIONS (one of them has to be defined; each with or without TSO)
 *	 ADD	writer (heap_insert, bloomguard_maintain, add_key) against builder
 *			(bguard_arena_clear, bguard_registry_publish, the version after the
 *			locked check, bguard_build_scan, bguard_registry_validate).  Two pairs
 *			of the form "store mine, full barrier, load yours": row and link, row
 *			and version.  The hash function was replaced before the locked check:
 *			who goes by the old version sets other bits, which are of no use.
 *	 PROBE	bguard_probe_ask against bguard_registry_retire, _create, _publish and
 *			_validate, which give entry and slot to another filter
 *
 * MUTATIONS, each is found; under TSO, too, where it says so
 *	 NOWRITERBARRIER	ADD, TSO	pg_memory_barrier() of add_key
 *	 NOBUILDERBARRIER	ADD, TSO	all between link and version and the scan: the
 *									next two
 *	 NOBUMPBARRIER		ADD, TSO	full barrier of the version's fetch-and-add
 *	 NOCLEARBARRIER		ADD			nothing puts the clearing before the scan, nor
 *									before publication: link and version are visible
 *									in time, the clearing at some time
 *	 NOREADBARRIER		PROBE, TSO	both read barriers of the probe
 *	 NOREADBARRIER1		PROBE, TSO	the one after the first load of the link
 *	 NOREADBARRIER2		PROBE, TSO	the one before the second
 *	 NOPOISONBARRIER	PROBE		compare-and-swap of poison is no full barrier
 * Some are sound, and must stay so, as another barrier does the work as well:
 *	 NOPUBLISHBARRIER	ADD			full barrier of publish: that of the version comes
 *									before the scan
 *	 NOWRITEBARRIER		ADD			pg_write_barrier() of publish: who adds before the
 *									clearing is visible placed the row before that,
 *									and the clearing is visible before the scan
 *
 * An x86 processor makes loads in order; under TSO it is the compiler that
 * NOREADBARRIER lets reorder them.
 *
 * NOT MODELLED
 *	 Locks, but for their full barriers: LWLockAcquire and LWLockRelease, the page's
 *	 lock, ProcArrayLock at commit and for a snapshot.  Of the page's lock no more is
 *	 believed than that the row is stored.  Loads that depend on each other by their
 *	 address (slot number, span, words) are in order, as they are everywhere but on
 *	 Alpha.  Stores that a processor shows to some others earlier than to the rest.
 */
#define NV		5
#define ROW		0				/* on its page */
#define LINK	1
#define WORD	2				/* the row's bit */
#define VERSION	3
#define KEY		4

/* values of the link; each is another counter, too */
#define NOTHING		0
#define BUILDING	1
#define CURRENT		2
#define REUSED		3			/* the slot is current again, for another filter */

/* processes with buffers */
#define WRITER	0
#define BUILDER	1
#define AT(p, v)	((p) * NV + (v))

byte	mem[NV];
byte	buf[10];				/* 2 * NV */
bit		held[10];
byte	stamp[10];				/* in which order they were stored */
byte	clock;
bit		committed;

#define EMPTY(p) \
	(!held[AT(p, 0)] && !held[AT(p, 1)] && !held[AT(p, 2)] && \
	 !held[AT(p, 3)] && !held[AT(p, 4)])

#define FENCE(p)	EMPTY(p)

inline store(p, v, x)
{
	atomic {
		!held[AT(p, v)];
		buf[AT(p, v)] = x;
		held[AT(p, v)] = 1;
		stamp[AT(p, v)] = clock;
		clock++
	}
}

/* a read-modify-write is of memory, after the process's own store there */
inline set_bit(p)
{
	atomic { !held[AT(p, WORD)] -> mem[WORD] = 1 }
}

#ifdef TSO
#define BEFORE(i, j)	(!held[j] || stamp[j] >= stamp[i])
#define OLDEST(p, i) \
	(BEFORE(i, AT(p, 0)) && BEFORE(i, AT(p, 1)) && BEFORE(i, AT(p, 2)) && \
	 BEFORE(i, AT(p, 3)) && BEFORE(i, AT(p, 4)))
#else
#define OLDEST(p, i)	1
#endif

#define DRAIN(p, v) \
	:: atomic { \
		held[AT(p, v)] && OLDEST(p, AT(p, v)) -> \
		mem[v] = buf[AT(p, v)]; \
		held[AT(p, v)] = 0; \
		buf[AT(p, v)] = 0; \
		stamp[AT(p, v)] = 0 }

/* store buffers reach memory at any time */
proctype buffers()
{
end:
	do
	DRAIN(WRITER, ROW)
	DRAIN(BUILDER, LINK)
	DRAIN(BUILDER, WORD)
	DRAIN(BUILDER, VERSION)
	DRAIN(BUILDER, KEY)
	od
}

#ifdef ADD
proctype writer()
{
	byte	v, l;
	bit		seen_v, seen_l;

	store(WRITER, ROW, 1);		/* heap_insert */
#ifndef NOWRITERBARRIER
	FENCE(WRITER);				/* add_key: pg_memory_barrier */
#endif
	/* recipe_entry loads the version, add_key the link */
	do
	:: !seen_v -> atomic { v = mem[VERSION]; seen_v = 1 }
	:: !seen_l -> atomic { l = mem[LINK]; seen_l = 1 }
	:: seen_v && seen_l -> break
	od;
	/* made by the old version, the recipe's bits are of no use to the reader */
	if
	:: v == 1 && l != NOTHING -> set_bit(WRITER)
	:: else
	fi;
	/* ProcArrayEndTransaction */
	FENCE(WRITER);
	committed = 1
}

proctype builder()
{
	bit		row;

	/* bguard_arena_clear; the word may hold anything */
	store(BUILDER, WORD, 0);
	/* bguard_registry_publish */
#if !defined(NOWRITEBARRIER) && !defined(NOCLEARBARRIER)
	FENCE(BUILDER);				/* pg_write_barrier */
#endif
	store(BUILDER, LINK, BUILDING);
#if defined(NOCLEARBARRIER)
	!held[AT(BUILDER, LINK)];
#elif !defined(NOPUBLISHBARRIER) && !defined(NOBUILDERBARRIER)
	FENCE(BUILDER);				/* compare-and-swap, pg_memory_barrier */
#endif

	/* bguard_registry_bump_version, after the locked check */
	store(BUILDER, VERSION, 1);
#if defined(NOCLEARBARRIER)
	!held[AT(BUILDER, VERSION)];
#elif !defined(NOBUMPBARRIER) && !defined(NOBUILDERBARRIER)
	FENCE(BUILDER);				/* fetch-and-add */
#endif

	/* bguard_build_scan */
	row = mem[ROW];
	if
	:: row -> set_bit(BUILDER)
	:: else
	fi;

	/* bguard_registry_validate: LWLockAcquire, compare-and-swap */
	FENCE(BUILDER);
	store(BUILDER, LINK, CURRENT);
	FENCE(BUILDER)
}

proctype reader()
{
	/* a snapshot that sees the row, then the link */
	committed;
	mem[LINK] == CURRENT;
	assert(mem[WORD] == 1)
}
#endif

#ifdef PROBE
#if defined(NOREADBARRIER) || defined(NOREADBARRIER1)
#define ORDER1	1
#else
#define ORDER1	seen1
#endif
#if defined(NOREADBARRIER) || defined(NOREADBARRIER2)
#define ORDER2	1
#else
#define ORDER2	(seen_key && seen_word)
#endif

/* the row is committed, its filter in service with its bit */
proctype reader()
{
	byte	link1, link2, key, word;
	bit		seen1, seen2, seen_key, seen_word;

	do
	:: !seen1 -> atomic { link1 = mem[LINK]; seen1 = 1 }
	/* key, signature, version: whatever says whose entry it is */
	:: ORDER1 && !seen_key -> atomic { key = mem[KEY]; seen_key = 1 }
	:: ORDER1 && !seen_word -> atomic { word = mem[WORD]; seen_word = 1 }
	/* loads of the same word are in order */
	:: seen1 && ORDER2 && !seen2 -> atomic { link2 = mem[LINK]; seen2 = 1 }
	:: seen1 && seen2 && seen_key && seen_word -> break
	od;
	assert(!((link1 == CURRENT || link1 == REUSED) && link1 == link2 &&
			 key == 1 && word == 0))
}

/* the entry and its slot go to another filter, to which the row is nothing */
proctype builder()
{
	/* bguard_registry_retire: poison, free, key */
	store(BUILDER, LINK, NOTHING);
#ifndef NOPOISONBARRIER
	FENCE(BUILDER);				/* compare-and-swap */
#endif
	store(BUILDER, KEY, 2);
	/* bguard_registry_create moves the version; take_slot, bguard_arena_clear */
#ifndef NOPOISONBARRIER
	FENCE(BUILDER);				/* LWLockRelease */
#endif
	store(BUILDER, WORD, 0);
	FENCE(BUILDER);				/* pg_write_barrier of publish */
	store(BUILDER, LINK, BUILDING);
	FENCE(BUILDER);
	store(BUILDER, LINK, REUSED);
	FENCE(BUILDER)
}
#endif

init
{
	atomic {
#ifdef PROBE
		mem[LINK] = CURRENT;
		mem[KEY] = 1;
		mem[WORD] = 1;
#else
		run writer();
#endif
		run builder();
		run reader();
		run buffers()
	}
}
