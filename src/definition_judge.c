/*
 * definition_judge.c
 *		Is a definition sound: trigger, key columns, relation.
 *
 * Each judge returns NULL or a phrase that says what is wrong.  No locks, no
 * shared memory; see definition.h.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_am.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_trigger.h"
#include "commands/trigger.h"
#include "debug.h"
#include "definition.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/*
 * bguard_definition_judge_trigger
 *		Does the trigger see every row?  See definition.h.
 */
char *
bguard_definition_judge_trigger(HeapTuple tuple, TupleDesc desc,
								bool *enabled_origin)
{
	Form_pg_trigger trigger = (Form_pg_trigger) GETSTRUCT(tuple);
	const char *name = NameStr(trigger->tgname);
	bool		no_qual;
	bool		no_old;
	bool		no_new;

	*enabled_origin = false;

	(void) heap_getattr(tuple, Anum_pg_trigger_tgqual, desc, &no_qual);
	(void) heap_getattr(tuple, Anum_pg_trigger_tgoldtable, desc, &no_old);
	(void) heap_getattr(tuple, Anum_pg_trigger_tgnewtable, desc, &no_new);

	if ((trigger->tgtype & (TRIGGER_TYPE_ROW | TRIGGER_TYPE_TIMING_MASK)) !=
		(TRIGGER_TYPE_ROW | TRIGGER_TYPE_AFTER) ||
		(trigger->tgtype & TRIGGER_TYPE_EVENT_MASK) !=
		(TRIGGER_TYPE_INSERT | TRIGGER_TYPE_UPDATE))
		return psprintf(_("trigger \"%s\" is not AFTER INSERT OR UPDATE FOR EACH ROW"),
						name);
	if (!no_qual)
		return psprintf(_("trigger \"%s\" has a WHEN condition"), name);
	if (trigger->tgattr.dim1 > 0)
		return psprintf(_("trigger \"%s\" is limited to some columns"), name);
	if (trigger->tgdeferrable || OidIsValid(trigger->tgconstraint))
		return psprintf(_("trigger \"%s\" is a constraint trigger"), name);
	if (!no_old || !no_new)
		return psprintf(_("trigger \"%s\" has transition tables"), name);

	switch (trigger->tgenabled)
	{
		case TRIGGER_FIRES_ALWAYS:
			return NULL;
		case TRIGGER_FIRES_ON_ORIGIN:
			*enabled_origin = !BGUARD_MUTANT(ORDINARY_TRIGGER);
			return NULL;
		case TRIGGER_FIRES_ON_REPLICA:
			return psprintf(_("trigger \"%s\" is enabled for replica sessions only"),
							name);
		default:
			return psprintf(_("trigger \"%s\" is disabled"), name);
	}
}

/*
 * bguard_definition_signature
 *		Attribute numbers, types, collations and hash functions of the key.
 */
char *
bguard_definition_signature(Relation root, const BGuardDefinition *def,
							BGuardSignature *sig)
{
	TupleDesc	desc = RelationGetDescr(root);
	MemoryContext scratch = AllocSetContextCreate(CurrentMemoryContext,
												  "bloomguard signature",
												  ALLOCSET_SMALL_SIZES);
	char	   *problem = NULL;

	memset(sig, 0, sizeof(BGuardSignature));
	if (def->problem != NULL)
		problem = pstrdup(def->problem);

	for (int i = 0; i < def->ncols && problem == NULL; i++)
	{
		AttrNumber	attnum = get_attnum(RelationGetRelid(root), def->names[i]);
		BGuardKeyPart part;
		Form_pg_attribute att;
		char	   *why;

		if (attnum == InvalidAttrNumber)
		{
			problem = psprintf(_("column \"%s\" does not exist"), def->names[i]);
			break;
		}
		if (attnum < 0)
		{
			problem = psprintf(_("column \"%s\" is a system column"),
							   def->names[i]);
			break;
		}
		att = TupleDescAttr(desc, attnum - 1);
		if (att->attgenerated != '\0' &&
			att->attgenerated != ATTRIBUTE_GENERATED_STORED)
		{
			problem = psprintf(_("column \"%s\" is a virtual generated column"),
							   def->names[i]);
			break;
		}
		why = bguard_keys_part_init(&part, att->atttypid, att->attcollation,
									scratch);
		if (why != NULL)
		{
			problem = psprintf(_("column \"%s\": %s"), def->names[i], why);
			break;
		}
		sig->cols[i].attnum = attnum;
		sig->cols[i].typid = att->atttypid;
		sig->cols[i].collid = att->attcollation;
		sig->cols[i].hashproc = part.hashproc;
		sig->cols[i].innerproc = part.innerproc;
		sig->ncols = i + 1;
	}
	MemoryContextDelete(scratch);
	return problem;
}

/*
 * bguard_definition_judge_relation
 *		Can rows of this relation be guarded?  Returns NULL or why not; *hint says
 *		what to do instead, or NULL.  Partitions are judged one by one by the
 *		caller, for which a leaf of a tracked root is fine.
 */
char *
bguard_definition_judge_relation(Relation rel, char **hint)
{
	const char *name = RelationGetRelationName(rel);

	*hint = NULL;
	switch (rel->rd_rel->relkind)
	{
		case RELKIND_RELATION:
		case RELKIND_PARTITIONED_TABLE:
			break;
		case RELKIND_FOREIGN_TABLE:
			*hint = pstrdup(_("Track the table on the server that holds it."));
			return psprintf(_("\"%s\" is a foreign table, whose rows change elsewhere"), name);
		case RELKIND_VIEW:
			*hint = pstrdup(_("Track the tables beneath it."));
			return psprintf(_("\"%s\" is a view"), name);
		case RELKIND_MATVIEW:
			*hint = pstrdup(_("Track the tables beneath it."));
			return psprintf(_("\"%s\" is a materialized view"), name);
		default:
			return psprintf(_("\"%s\" is not a table"), name);
	}
	if (rel->rd_rel->relpersistence == RELPERSISTENCE_TEMP)
	{
		*hint = pstrdup(_("Track a permanent or unlogged table."));
		return psprintf(_("\"%s\" is a temporary table"), name);
	}
	if (rel->rd_rel->relkind == RELKIND_RELATION)
	{
		if (rel->rd_rel->relam != HEAP_TABLE_AM_OID)
		{
			*hint = pstrdup(_("Use ALTER TABLE ... SET ACCESS METHOD heap, where the version has it, or copy the rows to a heap table."));
			return psprintf(_("\"%s\" does not use the heap access method"), name);
		}
		if (find_inheritance_children(RelationGetRelid(rel), NoLock) != NIL)
		{
			*hint = pstrdup(_("Use declarative partitioning, or track each child by itself."));
			return psprintf(_("\"%s\" is an inheritance parent"), name);
		}
	}
	return NULL;
}
