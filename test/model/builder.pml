/*
 * builder.pml
 *		Of guard.pml: builds, one after the other (build.c, build_check.c,
 *		build_scan.c, registry.c).
 */

/*
 * A worker dies: leave() of src/fleet.c; its place gets another start counter.
 * Or an error, or a cancel: bguard_build_run catches it.
 */
#ifdef CALM
#define DIE		false
#define FAIL	false
#else
#define DIE \
	atomic { !lock -> alive = alive & ~(1 << own) }; \
	d_step { own = own + NB; alive = alive | (1 << own) }; \
	goto next
#define FAIL	goto failed
#endif

/* bguard_registry_claim: is somebody building the entry? */
#ifdef CLAIMLIVE
#define CLAIMED(e)	0
#else
#define CLAIMED(e)	ALIVE(E[e].owner)
#endif

/* bguard_registry_discard: does this build own its slot still? */
#ifdef FREEOTHERS
#define MINE(s)	used[s]
#else
#define MINE(s)	(sowner[s] == own)
#endif

/* bguard_build_check: catalog to locals */
#define LOOK	ok = sound; sig = SIGNATURE(fn); list = leaves; row = trow

inline locked_check()
{
	/* functions_in_doubt: conditional, here one that waits */
	atomic { !fnlock -> skip };
	/* lock_relation, check_relation, unlock */
#ifdef NOLOCK
	d_step { LOOK }
#else
	atomic { !rellock -> LOOK }
#endif
}

/* bguard_registry_publish */
inline publish()
{
	d_step { old = E[e].cur; SET_LINK(e, E[e].cur, g); ctr = E[e].ctr }
}

inline scan_rows()
{
	/* scan_chunk, prepare_columns: chunk by chunk, with the function of the moment */
	d_step {
#ifdef OPCLASS
#ifndef NOSCANSIG
		ok = SIGNATURE(fn) == sized;
#endif
#endif
		/* RelationGetNumberOfBlocks and scan_page */
		seen = 0;
		if
		:: key == RK ->
			seen = placed & list;
			if
			:: fn -> seen = seen << 3
			:: else
			fi
		:: else
		fi
	};
#ifdef CLEARLAST
	bits[g] = 0;
#endif
	/* flush_hashes */
	d_step { bits[g] = bits[g] | seen; seen = 0 }
}

proctype builder(byte e; byte own; byte rounds)
{
	byte	key, p0, g, old, ctr, list, row, seen;
	byte	c, b, s;
	bit		sig, sized, ok;

	do
	:: rounds == 0 -> break
	:: else ->
		rounds--;

		/* bguard_build_run: bguard_registry_claim */
end:
		atomic {
			!lock && E[e].key != 0 && !CLAIMED(e);
			lock = 1;
			key = E[e].key;
			E[e].owner = own;
			if
			:: E[e].bld != 0 -> SET_LINK(e, E[e].cur, 0)
			:: else
			fi
		};
		sweep_slots(e, c, b, s);
		UNLOCK;

#ifndef LATEPOISON
		p0 = E[e].pc;			/* full barrier */
#endif

		/* bguard_build_check(build, false) */
		d_step { LOOK };
		if
		:: !ok -> goto failed
		:: else
		fi;

		/* bguard_registry_set_signature */
		atomic {
			!lock;
			ok = 1;
			if
			:: E[e].sig != sig ->
#ifndef SIGINPLACE
				ok = E[e].cur == 0 && E[e].bld == 0;
#endif
				if
				:: ok -> E[e].sig = sig; BUMP
				:: else
				fi
			:: else
			fi
		};
		if
		:: !ok -> poison(e); goto failed
		:: else
		fi;
		sized = sig;

		/* take_slot, bguard_arena_take */
		atomic {
			!lock;
			s = 1;
			do
			:: s < NS && g == 0 ->
				if
				:: !used[s] -> g = s; used[s] = 1; sentry[s] = e; sowner[s] = own
				:: else
				fi;
				s++
			:: else -> break
			od;
			s = 0
		};
		if
		:: g == 0 -> goto failed	/* no memory */
		:: else
		fi;
		if
		:: DIE
		:: skip
		fi;

#ifdef CHECKFIRST
		locked_check();
		if
		:: !ok || sig != sized -> goto failed
		:: else
		fi;
#endif
#ifdef SCANFIRST
		list = leaves;
		scan_rows();
#endif
		/* bguard_arena_clear; write barrier */
#if !defined(CLEARLATE) && !defined(CLEARLAST) && !defined(SCANFIRST)
		bits[g] = 0;
#endif
		publish();				/* full barrier */
#ifdef CLEARLATE
		bits[g] = 0;
#endif

		/* bguard_build_check(build, true); bguard_signature_equal */
#ifndef CHECKFIRST
		locked_check();
		if
		:: !ok || sig != sized -> goto failed
		:: else
		fi;
#endif
#ifdef LATEPOISON
		p0 = E[e].pc;
#endif

		/* so that no writer goes on with an old recipe */
#ifndef NOBUMP
		BUMP;
#endif

		/* bguard_build_scan */
#ifndef SCANFIRST
		scan_rows();
		if
		:: !ok -> goto failed
		:: else
		fi;
#endif
		if
		:: DIE
		:: FAIL
		:: skip
		fi;

		/* bguard_build_unchanged */
#ifndef NOROWCHECK
		if
		:: row != trow -> poison(e); goto failed
		:: else
		fi;
#endif

		/* bguard_build_poisoned */
#ifndef NOPCHECK
		if
		:: E[e].pc != p0 -> goto failed
		:: else
		fi;
#endif

		/* bguard_registry_validate */
#ifdef FREEFIRST
		atomic {
			!lock;
			if
			:: old != 0 -> FREE(old)
			:: else
			fi;
			old = 0
		};
		if
		:: DIE
		:: skip
		fi;
#endif
		atomic {
			!lock;
#ifdef BLINDVALID
			ok = 1;
#else
			ok = E[e].bld == g && E[e].ctr == ctr;
#endif
			if
			:: ok ->
				SET_LINK(e, g, 0);
				sowner[g] = 0;
#ifndef LATEFREE
				lock = 1
#endif
			:: else
			fi
		};
		if
		:: !ok -> goto failed
		:: else
		fi;
		atomic {
#ifdef LATEFREE
			!lock;
#endif
			if
			:: old != 0 -> FREE(old)
			:: else
			fi;
			UNLOCK
		};
		/* conclude; what is caught from here on finds a slot that is in service */
		if
		:: DIE
		:: FAIL
		:: skip
		fi;
		goto release;

failed:
		/* bguard_registry_discard */
		if
		:: g != 0 ->
			d_step {
				if
				:: E[e].bld == g -> SET_LINK(e, E[e].cur, 0)
				:: else
				fi
			};
			atomic {
				!lock;
				if
				:: MINE(g) -> FREE(g)
				:: else
				fi
			}
		:: else
		fi;

release:
		/* bguard_registry_release */
		atomic {
			!lock;
			if
			:: E[e].owner == own -> E[e].owner = 0
			:: else
			fi
		};
next:
		skip;
		d_step {
			key = 0; p0 = 0; g = 0; old = 0; ctr = 0; list = 0; row = 0; seen = 0;
			sig = 0; sized = 0; ok = 0
		}
	od;
	/* proc_exit */
	atomic { !lock -> alive = alive & ~(1 << own) }
}
