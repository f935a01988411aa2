/*
 * command.pml
 *		Of guard.pml: commands that concern a filter (ddl.c, ddl_function.c), and the
 *		worker that finds what there is to guard (worker.c).
 */

#ifdef BASE
/*
 * ALTER TABLE ... DISABLE TRIGGER, a row that no trigger sees, ENABLE TRIGGER:
 * trigger_event of src/ddl.c under the command's lock, which is held to commit
 */
proctype ddl()
{
#ifdef EARLYPOISON
	poison(0);
	BUMP;
	atomic { !rellock -> rellock = 1 };
#else
	atomic { !rellock -> rellock = 1 };
	poison(0);					/* poison_root */
	BUMP;						/* bguard_ddl_changed */
#endif
	if
	:: placed = placed | ROW(BYPASS)	/* in the same transaction */
	:: skip
	fi;
	atomic {
		committed = committed | (placed & ROW(BYPASS));
		sound = 0;
		trow++;
		rellock = 0
	};
	placed = placed | ROW(BYPASS);
	committed = committed | ROW(BYPASS);

	atomic { !rellock -> rellock = 1 };
	poison(0);
	BUMP;
	atomic { sound = 1; trow++; rellock = 0 }
}
#endif

#ifdef PART
/*
 * CREATE TABLE ... PARTITION OF: the clone of the trigger is there at once, so it
 * does not poison (trigger_event); its creator or anybody later inserts row 1
 */
proctype creator()
{
	byte	made, h, v, e, c, b;
	bit		agrees;
	bit		done;

	atomic { !rellock -> rellock = 1 };
	BUMP;
	if
	:: atomic { leaves = leaves | ROW(1); rellock = 0; done = 1 }
	:: skip
	fi;
	insert_row(1);
	atomic {
		committed = committed | ROW(1);
		leaves = leaves | ROW(1);
		if
		:: !done -> rellock = 0
		:: else
		fi
	}
}

/* ATTACH PARTITION of a table that has row 2: inherits_event, under the locks */
proctype attach()
{
	atomic { !rellock -> rellock = 1 };
#ifndef ATTACHSILENT
	poison(0);
#endif
	BUMP;
	atomic {
		leaves = leaves | ROW(BYPASS);
		committed = committed | ROW(BYPASS);
		rellock = 0
	}
}
#endif

#ifdef FUNC
/* CREATE OR REPLACE FUNCTION of a hash function: bguard_ddl_function_event */
proctype replace_function()
{
#ifndef FUNCUNLOCKED
	atomic { !fnlock -> fnlock = 1 };	/* keep_builders_out */
#endif
	poison(0);					/* bguard_registry_poison_hashproc */
	BUMP;						/* bguard_ddl_changed */
	atomic { fn = 1; fnlock = 0 }
}
#endif

#ifdef OPCLASS
/* DROP and CREATE OPERATOR CLASS in one transaction: its commit, nothing else */
proctype replace_opclass()
{
	fn = 1
}
#endif

#ifdef REUSE
/* worker: discover(), retire_undefined(); the entry becomes another filter's */
proctype discover()
{
	byte	c, b, s;

	create(0, 1);
	retire(0, 1, c, b, s);
end:
	atomic { !ALIVE(E[0].owner) -> skip };
	create(0, 2)
}
#endif

#ifdef SHARE
/* worker: the other filter's definition is gone */
proctype discover()
{
	byte	c, b, s;

	retire(0, 1, c, b, s)
}
#endif
