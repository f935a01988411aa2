/*
 * writer.pml
 *		Of guard.pml: a row is written, and the trigger adds its key (trigger.c).
 */

/* add_to_slot: bguard_arena_filter, bguard_bloom_add */
inline add_to_slot(s, k, h)
{
	d_step {
		if
		:: s != 0 && used[s] -> bits[s] = bits[s] | BIT(k, h)
		:: else
		fi
	}
}

/* recipe_make: AcceptInvalidationMessages after the version was noted */
inline recipe_make()
{
#ifdef LATEVERSION
	h = fn;
	made = version;
#else
	made = version;
	h = fn;
#endif
#ifndef KEEPLOOKUP
	v = 0;
#endif
}

/* the look-up of recipe_entry */
inline look_up()
{
#ifdef CACHES
#ifndef LATEVERSION
	v = version;
#endif
	find(e);
	d_step {
		agrees = e == NONE || E[e].sig == SIGNATURE(h);
#ifdef NOAGREE
		agrees = 1
#endif
	}
#ifdef LATEVERSION
	v = version;
#endif
#else
	d_step { e = 0; agrees = 1 }
#endif
}

/* loads of the link, and the adds, of add_key */
inline load_link(e, c, b)
{
#ifdef TWOLOADS
	c = E[e].cur;
	b = E[e].bld
#else
	d_step { c = E[e].cur; b = E[e].bld }
#endif
}

/*
 * The row is placed, then the trigger adds its key.  What it cached was found at
 * any time before: made, h by recipe_make, v, e, agrees by recipe_entry.
 */
inline insert_row(k)
{
	/* cache as an earlier statement left it */
#ifdef CACHES
	recipe_make();
#endif
	look_up();
#if defined(ADDFIRST)
	if
	:: e != NONE ->
		load_link(e, c, b);
		add_to_slot(c, k, h);
		add_to_slot(b, k, h)
	:: else
	fi;
	placed = placed | ROW(k);
#elif defined(LINKFIRST)
	if
	:: e != NONE -> load_link(e, c, b)
	:: else
	fi;
	placed = placed | ROW(k);
	add_to_slot(c, k, h);
	add_to_slot(b, k, h);
#else
	/* heap_insert; the AFTER trigger comes when that has been done */
	placed = placed | ROW(k);
	do
	::
		/* bloomguard_maintain: is the recipe of this version?  recipe_make */
#if defined(CACHES) && !defined(STALECACHE)
		if
		:: made != version -> recipe_make()
		:: else
		fi;
#endif
		/* add_key: hash; full barrier; recipe_entry */
#if defined(CACHES) && !defined(STALECACHE)
		if
		:: v != version -> look_up()
		:: else
		fi;
#ifndef NOREMAKE
		if
		:: v != made -> goto again
		:: else
		fi;
#endif
#endif
		if
		:: e == NONE -> break
		:: else
		fi;
		load_link(e, c, b);
		if
		:: !agrees && (c != 0 || b != 0) ->
			if
			:: made != version -> goto again
			:: else
			fi;
			poison(e);
			break
		:: else
		fi;
		add_to_slot(c, k, h);
		add_to_slot(b, k, h);
		break;
again:	skip
	od;
#endif
	skip;
	d_step { c = 0; b = 0; h = 0; made = 0; v = 0; e = 0; agrees = 0 }
}

proctype writer(byte k)
{
	byte	made, h, v, e, c, b;
	bit		agrees;

	insert_row(k);
	committed = committed | ROW(k)
}
