/*
 * guard.pml
 *		Promela model of the registry's protocol: can a filter call a row absent?
 *
 * CLAIM	a reader whose snapshot sees a row never gets a definite "absent" for it
 *			(the assertion of reader.pml).  Searched exhaustively, in every order of
 *			the steps below, for each of the configurations; no end state but those
 *			labelled end.
 *
 * The parts: registry.pml, writer.pml, command.pml, builder.pml, reader.pml; the
 * processes are started below.
 *
 * Each step of the C code that another process could notice is a step here, and
 * names its function.  Several words that one atomic instruction moves together,
 * and what bguard_lock keeps still for everybody who looks, are one step.  Loops
 * around a compare-and-swap are its success.  The steps are those of
 *	 writer		bloomguard_maintain, recipe_make, recipe_entry, add_key
 *	 builder	bguard_build_run, build_generation, registry.c; several builds, each
 *				may fail or die; a successor reclaims what a dead one left
 *	 reader		bguard_probe_ask, bguard_probe_resolve
 *	 others		what src/ddl.c, src/ddl_function.c and src/worker.c do, see below
 *
 * CONFIGURATIONS (one of them has to be defined)
 *	 BASE		writers with the trigger; a command that disables it, a row that
 *				bypasses it, a command that enables it
 *	 PART		partitions: one that is created, and written to by its creator before
 *				or after commit; one that is attached with a row in it
 *	 FUNC		the hash function gets another body: poison and version in the
 *				command, visible at its commit; no signature tells
 *	 OPCLASS	the key type gets another hash operator class: no poison, no lock,
 *				the signature tells
 *	 REUSE		no entry at first; created, retired, created for another filter
 *	 SHARE		two filters share the slots; one is retired while both are built
 * ROUNDS is the number of builds of a builder (2), WRITERS that of writers (1; 0 in
 * PART and SHARE).  CALM: builds neither fail nor die.  RIVAL: a second builder.
 *
 * MUTATIONS, each leads to a wrong "absent" in the configuration named
 *	 ADDFIRST		BASE	writer adds before its row is on the page
 *	 LINKFIRST		BASE	writer loads the link before its row is on the page
 *	 TWOLOADS		BASE	writer loads current and building one by one
 *	 NOCOUNTER		BASE	the link's counter stays when the link changes
 *	 NOPOISONLINK	BASE	poison moves its counter only
 *	 EARLYPOISON	BASE	command poisons before it has its lock
 *	 NOLOCK			BASE	last check of the definition takes no lock
 *	 SCANFIRST		BASE	rows are read before publication
 *	 CLEARLAST		BASE	bits are cleared after rows were read
 *	 BLINDVALID		BASE	validation is a store, not a compare-and-swap
 *	 FREEOTHERS		BASE	discard frees the slot without a look at its owner
 *	 NORECHECK		BASE	reader does not load the link again
 *	 LATESNAPSHOT	BASE	reader's snapshot is younger than its look at the bits
 *	 CHECKFIRST		PART	locked check, and so list of partitions, before publication
 *	 ATTACHSILENT	PART	ATTACH of a table with rows does not poison
 *	 NOBUMP			FUNC	version not moved after the locked check
 *	 FUNCUNLOCKED	FUNC	replacement does not keep the check out
 *	 LATEVERSION	FUNC	writer notes the version after what it looked up
 *	 NOVERSIONCHECK	FUNC	reader does not compare the version
 *	 NOSIGCHECK		OPCLASS	reader does not compare the signature
 *	 NOAGREE		OPCLASS	writer does not compare the signature
 *	 NOSCANSIG		OPCLASS	scan hashes with the operator class of the moment
 *	 SIGINPLACE		OPCLASS	signature replaced while a slot is linked
 *	 KEEPLOOKUP		OPCLASS	recipe_make keeps the look-up of the recipe before
 *	 STALECACHE		REUSE	writer keeps what it found, "no entry", whatever the
 *							version; FUNC, too
 *	 KEYFIRST		REUSE	reader compares version, key and signature before its
 *							first load of the link
 *	 SWEEPLIVE		SHARE	sweep_slots frees slots of living builds
 *	 FREEFIRST		SHARE	old slot freed before the swap
 *	 LATEFREE		SHARE	validation frees the old slot after it let go of the lock
 *
 * Some are sound, because another rule holds; without that rule, too, they are not:
 *	 NOPCHECK		BASE	poison counter not compared.  The locked check comes after
 *							publication, so poison after it moves the link that
 *							was published.  Found with CHECKFIRST NOROWCHECK
 *	 LATEPOISON		BASE	poison counter remembered after the locked check; likewise
 *	 SLOTSFIRST		BASE	poison moves the link first.  Found with CHECKFIRST
 *	 NOROWCHECK		BASE	trigger rows not compared: a backstop, commands poison
 *	 CLEARLATE		BASE	bits cleared after publication: who added before has its
 *							row on a page that is scanned later (see CLEARLAST)
 *	 NOREMAKE		FUNC	a look-up of another version does not make the recipe anew:
 *							the row was placed before that version's scan
 *	 NOCREATEBUMP	REUSE	creation does not move the version: a build does before
 *							its scan.  Found with NOBUMP
 *	 NOKEYCHECK		REUSE	reader does not compare the key: it compares the version.
 *							Found with NOVERSIONCHECK
 *
 * NOT MODELLED
 *	 Memory order: steps are seen in program order by everybody; barrier.pml has the
 *	 barriers.  Rows that go away: the scan takes all rows that are there, what it
 *	 must not skip is HeapTupleSatisfiesVacuum's.  A scan page by page: it reads all
 *	 rows at the moment when it counts the blocks, as a page that is read later
 *	 can only have more.  Several bits a key: an add is its last bit, a probe its
 *	 first.  Runs of lines: a slot is its own run.  Repair of a trigger that lost
 *	 ALWAYS, rewrites, DETACH, verdicts, who is due, statements in flight
 *	 (src/inflight.c; no registry is involved), wrap-around of the counters.
 *	 The reader's and the writers' relation locks, which keep away most of the
 *	 commands: nothing here relies on them.
 */
#if defined(SHARE)
#define NE	2					/* entries */
#define NS	4					/* slots are 1 .. NS - 1 */
#define NB	2					/* builders */
#define RK	2					/* key of the filter that the reader asks */
#else
#define NE	1
#define NS	3
#ifdef RIVAL
#define NB	2
#else
#define NB	1
#endif
#define RK	1
#endif
#ifndef ROUNDS
#define ROUNDS	2
#endif
#ifndef WRITERS
#if defined(PART) || defined(SHARE)
#define WRITERS	0
#else
#define WRITERS	1
#endif
#endif

/*
 * Where entry, signature and hash function stay what they are, what is cached
 * stays right: nobody then compares versions here, which only would make more
 * look-ups, and more answers of "maybe"
 */
#if defined(FUNC) || defined(OPCLASS) || defined(REUSE)
#define CACHES
#endif

#include "registry.pml"
#include "writer.pml"
#include "command.pml"
#include "builder.pml"
#include "reader.pml"

init
{
	atomic {
		alive = 1 << 1;
#if defined(SHARE)
		/* slot 1 is in service for the other filter; row 0 is there already */
		alive = alive | (1 << 2);
		E[0].key = 1; E[0].cur = 1; used[1] = 1; sentry[1] = 0;
		E[1].key = RK;
		placed = ROW(0); committed = ROW(0);
		run builder(0, 1, 1);
		run builder(1, 2, ROUNDS);
		run discover();
#else
		run builder(0, 1, ROUNDS);
#endif
#if defined(BASE)
		E[0].key = RK;
		run ddl();
#elif defined(PART)
		E[0].key = RK;
		placed = ROW(BYPASS);
		leaves = ROW(0);
		run creator();
		run attach();
#elif defined(FUNC)
		E[0].key = RK;
		run replace_function();
#elif defined(OPCLASS)
		E[0].key = RK;
		run replace_opclass();
#elif defined(REUSE)
		run discover();
#endif
#ifdef RIVAL
		alive = alive | (1 << 2);
		run builder(0, 2, 1);
#endif
#if WRITERS > 0
		run writer(0);
#endif
#if WRITERS > 1
		run writer(1);
#endif
		run reader()
	}
}
