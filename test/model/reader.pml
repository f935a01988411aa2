/*
 * reader.pml
 *		Of guard.pml: a probe (probe.c, probe_resolve.c), and the promise.
 */

/* bguard_probe_resolve: the version before all that is looked up */
inline resolve()
{
	v = version;
	h = fn;
	find(e)
}

/* what is compared between the two loads of the link */
inline compare()
{
	mine = 1;
#ifndef NOVERSIONCHECK
	mine = v == version;
#endif
#ifndef NOKEYCHECK
	mine = mine && E[e].key == RK;
#endif
#ifndef NOSIGCHECK
	mine = mine && E[e].sig == SIGNATURE(h)
#endif
}

proctype reader()
{
	byte	k, v, h, e, c, b, n;
	bit		hit, same, mine;

	/* cached by an earlier call of the same transaction */
#ifdef CACHES
	resolve();
#else
	d_step { e = RK - 1; mine = 1 };
#endif

#ifndef LATESNAPSHOT
	/* any snapshot that sees any row */
	atomic {
		if
		:: committed & ROW(0) -> k = 0
		:: committed & ROW(1) -> k = 1
		:: committed & ROW(2) -> k = 2
		fi
	};
#else
	if
	:: k = 0
	:: k = 2
	fi;
#endif

	/* bguard_probe_ask */
#ifdef CACHES
	if
	:: v != version -> resolve()
	:: else
	fi;
#endif
	if
	:: e == NONE -> goto maybe
	:: else
	fi;
#ifdef KEYFIRST
	compare();
#endif
	d_step { c = E[e].cur; b = E[e].bld; n = E[e].ctr };
	if
	:: c == 0 -> goto maybe
	:: else
	fi;

	/* read barrier */
#if defined(CACHES) && !defined(KEYFIRST)
	compare();
#endif
	/* bguard_arena_filter, bguard_bloom_test */
	if
	:: !mine || !used[c] -> goto maybe
	:: else
	fi;
	hit = (bits[c] & BIT(k, h)) != 0;
	if
	:: hit -> goto maybe
	:: else
	fi;

	/* read barrier; the second load of the link */
#ifdef NORECHECK
	same = 1;
#else
	same = c == E[e].cur && b == E[e].bld && n == E[e].ctr;
#endif
#ifdef LATESNAPSHOT
	if
	:: !(committed & ROW(k)) -> goto maybe
	:: else
	fi;
#endif
	/* the promise */
	assert(!same);
maybe:
	skip
}
