/*
 * ddl_rename.c
 *		Column names in our triggers' arguments follow RENAME COLUMN.
 *
 * The object-access hook notes every renamed key column: the relation and both
 * names.  When the utility command has ended, the arguments of all triggers of
 * ours on that relation are changed in place, which keeps their OIDs and their
 * state (issuing the trigger again would reset ALWAYS).  Core recurses to
 * partitions, and to the typed tables of a composite type, by itself and gives
 * one note for each.
 *
 * Notes live in TopTransactionContext and carry the level of the subtransaction
 * they were made in, so an error between note and change leaves nothing behind.
 * The renaming command's AccessExclusiveLock is held to transaction end, so
 * nobody else changes these triggers, and no builder reads them, meanwhile.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/pg_trigger.h"
#include "ddl.h"
#include "definition.h"
#include "utils/fmgroids.h"
#include "utils/memutils.h"
#include "utils/rel.h"

typedef struct RenameNote
{
	Oid			relid;
	int			nest_level;
	char	   *old_name;
	char	   *new_name;
} RenameNote;

static List *notes = NIL;

/*
 * bguard_ddl_note_rename
 *		See ddl.h.
 */
void
bguard_ddl_note_rename(Oid relid, const char *old_name, const char *new_name)
{
	MemoryContext oldcxt = MemoryContextSwitchTo(TopTransactionContext);
	RenameNote *note = palloc(sizeof(RenameNote));

	note->relid = relid;
	note->nest_level = GetCurrentTransactionNestLevel();
	note->old_name = pstrdup(old_name);
	note->new_name = pstrdup(new_name);
	notes = lappend(notes, note);
	MemoryContextSwitchTo(oldcxt);
}

/* the trigger's first argument with the column's new name; others untouched */
static void
rename_in_trigger(const BGuardDefinition *def, const RenameNote *note)
{
	char	   *names[BGUARD_MAX_KEY_COLUMNS];
	bool		found = false;
	Relation	pg_trigger;
	HeapTuple	tuple;
	int			nargs = 0;
	char	  **args = NULL;

	for (int i = 0; i < def->ncols; i++)
	{
		names[i] = def->names[i];
		if (strcmp(names[i], note->old_name) == 0)
		{
			names[i] = note->new_name;
			found = true;
		}
	}
	if (!found)
		return;

	pg_trigger = table_open(TriggerRelationId, AccessShareLock);
	tuple = bguard_definition_fetch(def->tgoid, NULL);
	if (HeapTupleIsValid(tuple))
		bguard_definition_tgargs(tuple, RelationGetDescr(pg_trigger),
								 &nargs, &args);
	table_close(pg_trigger, AccessShareLock);

	if (nargs > 0)
	{
		args[0] = bguard_definition_join(def->ncols, names);
		bguard_definition_update_tgargs(def->tgoid, nargs, args);
		/* a later note may be about the same trigger */
		CommandCounterIncrement();
	}
}

/*
 * bguard_ddl_apply_renames
 *		See ddl.h.
 */
void
bguard_ddl_apply_renames(void)
{
	if (notes == NIL || !IsTransactionState())
		return;

	/* the renaming itself must be visible to what is rebuilt from now on */
	CommandCounterIncrement();
	while (notes != NIL)
	{
		RenameNote *note = linitial(notes);
		ListCell   *lc;

		notes = list_delete_first(notes);
		foreach(lc, bguard_ddl_triggers(note->relid))
			rename_in_trigger(lfirst(lc), note);
	}
	bguard_registry_bump_version();
}

static void
rename_xact(XactEvent event, void *arg)
{
	switch (event)
	{
		case XACT_EVENT_COMMIT:
		case XACT_EVENT_PARALLEL_COMMIT:
		case XACT_EVENT_ABORT:
		case XACT_EVENT_PARALLEL_ABORT:
		case XACT_EVENT_PREPARE:
			notes = NIL;		/* its memory goes with the transaction */
			break;
		default:
			break;
	}
}

static void
rename_subxact(SubXactEvent event, SubTransactionId mySubid,
			   SubTransactionId parentSubid, void *arg)
{
	int			level;
	ListCell   *lc;

	if (notes == NIL ||
		(event != SUBXACT_EVENT_ABORT_SUB && event != SUBXACT_EVENT_COMMIT_SUB))
		return;

	level = GetCurrentTransactionNestLevel();
	foreach(lc, notes)
	{
		RenameNote *note = lfirst(lc);

		if (note->nest_level < level)
			continue;
		if (event == SUBXACT_EVENT_ABORT_SUB)
			notes = foreach_delete_current(notes, lc);
		else
			note->nest_level = level - 1;
	}
}

void
bguard_ddl_rename_init(void)
{
	RegisterXactCallback(rename_xact, NULL);
	RegisterSubXactCallback(rename_subxact, NULL);
}
