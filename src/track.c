/*
 * track.c
 *		bloomguard_track() and bloomguard_untrack(): create, change and drop the
 *		trigger that is a filter's definition.
 *
 * The trigger is made by the same commands that a user would type, so that
 * privileges, event triggers, partitions and the dependency machinery work as
 * always.  Nothing is built here: at commit a worker is told to look.
 *
 * LOCKS: ShareRowExclusiveLock on the relation (untrack: AccessExclusiveLock),
 * after the owner check.
 */
#include "postgres.h"

#include "access/relation.h"
#include "access/xact.h"
#include "catalog/pg_inherits.h"
#include "commands/defrem.h"
#include "commands/trigger.h"
#include "common/shortest_dec.h"
#include "compat.h"
#include "core/sizing.h"
#include "debug.h"
#include "definition.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "request.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

PG_FUNCTION_INFO_V1(bloomguard_track);
PG_FUNCTION_INFO_V1(bloomguard_untrack);

static void
split_key_columns(const char *list, int *ncols, char **names)
{
	char	   *problem = bguard_definition_split(list, ncols, names);

	if (problem != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid list of key columns"),
				 errdetail("%s.", bguard_definition_sentence(problem)),
				 errhint("Give column names separated by commas, with SQL's quoting, as in 'tenant_id, \"Email\"'.")));
}

/* refuse relations and partitions that cannot be guarded */
static void
check_relation(Relation rel)
{
	char	   *hint;
	char	   *problem;
	ListCell   *lc;

	if (rel->rd_rel->relispartition)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("cannot track partition \"%s\"", RelationGetRelationName(rel)),
				 errdetail("The filter of a partitioned table covers all of its partitions."),
				 errhint("Track the partitioned table at the root.")));

	problem = bguard_definition_judge_relation(rel, &hint);
	if (problem != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("cannot track relation \"%s\"", RelationGetRelationName(rel)),
				 errdetail("%s.", bguard_definition_sentence(problem)),
				 hint ? errhint("%s", hint) : 0));

	if (rel->rd_rel->relkind != RELKIND_PARTITIONED_TABLE)
		return;
	foreach(lc, find_all_inheritors(RelationGetRelid(rel), ShareRowExclusiveLock, NULL))
	{
		Relation	member;
		ListCell   *def;

		if (lfirst_oid(lc) == RelationGetRelid(rel))
			continue;
		member = relation_open(lfirst_oid(lc), NoLock);
		problem = bguard_definition_judge_relation(member, &hint);
		if (problem != NULL)
			ereport(ERROR,
					(errcode(ERRCODE_WRONG_OBJECT_TYPE),
					 errmsg("cannot track relation \"%s\"", RelationGetRelationName(rel)),
					 errdetail("Partition: %s.", problem),
					 errhint("Detach that partition, or track the others one by one after detaching them.")));
		foreach(def, bguard_definition_of_relation(member))
		{
			if (((BGuardDefinition *) lfirst(def))->root_relid == RelationGetRelid(member))
				ereport(ERROR,
						(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
						 errmsg("partition \"%s\" is tracked by itself",
								RelationGetRelationName(member)),
						 errhint("Call bloomguard_untrack() for the partition first.")));
		}
		relation_close(member, NoLock);
	}
}

/* refuse columns that do not exist or cannot be hashed */
static void
check_columns(Relation rel, int ncols, char **names)
{
	BGuardDefinition def = {0};
	BGuardSignature sig;
	char	   *problem;

	for (int i = 0; i < ncols; i++)
	{
		if (get_attnum(RelationGetRelid(rel), names[i]) == InvalidAttrNumber)
			ereport(ERROR,
					(errcode(ERRCODE_UNDEFINED_COLUMN),
					 errmsg("column \"%s\" of relation \"%s\" does not exist",
							names[i], RelationGetRelationName(rel))));
		def.names[i] = names[i];
	}
	def.ncols = ncols;
	problem = bguard_definition_signature(rel, &def, &sig);
	if (problem != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot track columns of relation \"%s\"",
						RelationGetRelationName(rel)),
				 errdetail("%s.", bguard_definition_sentence(problem)),
				 errhint("Key columns are stored columns of a type that has a default hash operator class with a 64-bit hash and contains no composite type.")));
}

/* bloomguard_<columns>, shortened and numbered until nothing has that name */
static char *
choose_trigger_name(Relation rel, int ncols, char **names)
{
	List	   *members = find_all_inheritors(RelationGetRelid(rel), NoLock, NULL);
	StringInfoData columns;

	initStringInfo(&columns);
	for (int i = 0; i < ncols; i++)
		appendStringInfo(&columns, "%s%s", i > 0 ? "_" : "", names[i]);

	for (int number = 0;; number++)
	{
		char	   *name = makeObjectName("bloomguard", columns.data,
										  number > 0 ? psprintf("%d", number) : NULL);
		bool		taken = false;
		ListCell   *lc;

		foreach(lc, members)
			taken |= OidIsValid(get_trigger_oid(lfirst_oid(lc), name, true));
		if (!taken)
			return name;
	}
}

/* trigger arguments: the columns and what the user gave */
static int
make_arguments(int ncols, char **names, double rate, int64 capacity, char **args)
{
	int			nargs = 0;
	char		buf[DOUBLE_SHORTEST_DECIMAL_LEN];

	args[nargs++] = bguard_definition_join(ncols, names);
	if (rate > 0)
	{
		double_to_shortest_decimal_buf(rate, buf);
		args[nargs++] = psprintf("false_positive_rate=%s", buf);
	}
	if (capacity > 0)
		args[nargs++] = psprintf("capacity=" INT64_FORMAT, capacity);
	return nargs;
}

static void
run_command(const char *command)
{
	if (SPI_execute(command, false, 0) != SPI_OK_UTILITY)
		elog(ERROR, "SPI_execute failed: %s", command);
}

static char *
qualified_name(Oid relid)
{
	return quote_qualified_identifier(get_namespace_name(get_rel_namespace(relid)),
									  get_rel_name(relid));
}

static void
create_trigger(Oid relid, const char *name, int nargs, char **args)
{
	Oid			function = bguard_definition_function();
	StringInfoData command;

	initStringInfo(&command);
	appendStringInfo(&command,
					 "CREATE TRIGGER %s AFTER INSERT OR UPDATE ON %s FOR EACH ROW EXECUTE FUNCTION %s(",
					 quote_identifier(name), qualified_name(relid),
					 quote_qualified_identifier(get_namespace_name(get_func_namespace(function)),
												get_func_name(function)));
	for (int i = 0; i < nargs; i++)
		appendStringInfo(&command, "%s%s", i > 0 ? ", " : "",
						 quote_literal_cstr(args[i]));
	appendStringInfoChar(&command, ')');
	run_command(command.data);
}

/* also the clones on partitions, since it recurses */
static void
enable_always(Oid relid, const char *name)
{
	if (BGUARD_MUTANT(ORDINARY_TRIGGER))
		return;
	run_command(psprintf("ALTER TABLE %s ENABLE ALWAYS TRIGGER %s",
						 qualified_name(relid), quote_identifier(name)));
}

/* new arguments for the trigger and its clones, in place: no filter is poisoned */
static void
change_arguments(Relation rel, BGuardDefinition *def, int nargs, char **args)
{
	ListCell   *lc;

	foreach(lc, find_all_inheritors(RelationGetRelid(rel), ShareRowExclusiveLock, NULL))
	{
		Relation	member = relation_open(lfirst_oid(lc), NoLock);
		ListCell   *d;

		foreach(d, bguard_definition_of_relation(member))
		{
			BGuardDefinition *clone = lfirst(d);

			if (clone->root_tgoid == def->tgoid)
				bguard_definition_update_tgargs(clone->tgoid, nargs, args);
		}
		relation_close(member, NoLock);
	}
	CommandCounterIncrement();
}

static char
trigger_state(Relation rel, Oid tgoid)
{
	for (int i = 0; rel->trigdesc != NULL && i < rel->trigdesc->numtriggers; i++)
	{
		if (rel->trigdesc->triggers[i].tgoid == tgoid)
			return rel->trigdesc->triggers[i].tgenabled;
	}
	return '\0';
}

/*
 * bloomguard_track(relation regclass, key_columns text,
 *					false_positive_rate float8 DEFAULT NULL,
 *					capacity bigint DEFAULT NULL) returns void
 *
 * false_positive_rate: 1e-9 .. 0.5, NULL: the setting at each build.  capacity:
 * keys, 1 .. 10^12, a minimum; NULL: from the table's size.  Errors: not
 * preloaded (55000), not the owner (42501), anything that cannot be guarded.
 */
Datum
bloomguard_track(PG_FUNCTION_ARGS)
{
	Oid			relid;
	double		rate = 0;
	int64		capacity = 0;
	int			ncols;
	char	   *names[BGUARD_MAX_KEY_COLUMNS];
	int			nargs;
	char	   *args[3];
	char	   *name;
	bool		always = false;
	Relation	rel;
	BGuardDefinition *def;

	bguard_arena_require();
	PreventCommandDuringRecovery("bloomguard_track()");
	PreventCommandIfReadOnly("bloomguard_track()");

	if (PG_ARGISNULL(1))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("key columns must not be null")));
	split_key_columns(text_to_cstring(PG_GETARG_TEXT_PP(1)), &ncols, names);
	if (!PG_ARGISNULL(2))
	{
		rate = PG_GETARG_FLOAT8(2);
		if (!(rate >= BGUARD_MIN_RATE && rate <= BGUARD_MAX_RATE))
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("false-positive rate must be between %g and %g",
							BGUARD_MIN_RATE, BGUARD_MAX_RATE)));
	}
	if (!PG_ARGISNULL(3))
	{
		capacity = PG_GETARG_INT64(3);
		if (capacity < 1 || capacity > BGUARD_MAX_CAPACITY)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("capacity must be between 1 and %lld",
							(long long) BGUARD_MAX_CAPACITY)));
	}

	rel = bguard_definition_open(PG_ARGISNULL(0), PG_GETARG_OID(0), true,
								 ShareRowExclusiveLock);
	relid = RelationGetRelid(rel);
	check_relation(rel);
	check_columns(rel, ncols, names);
	nargs = make_arguments(ncols, names, rate, capacity, args);

	def = bguard_definition_find(rel, ncols, names);
	if (def == NULL)
		name = choose_trigger_name(rel, ncols, names);
	else
	{
		name = def->tgname;
		always = trigger_state(rel, def->tgoid) == TRIGGER_FIRES_ALWAYS;
		/* a build under way takes other sizes as no change, but not a new row */
		if (def->rate != rate || def->capacity != capacity ||
			strcmp(def->key_columns, args[0]) != 0)
			change_arguments(rel, def, nargs, args);
		bguard_request_rotation_of(relid, def->tgoid);
	}

	/* ALTER TABLE wants the relation closed; the lock stays */
	relation_close(rel, NoLock);
	SPI_connect();
	if (def == NULL)
		create_trigger(relid, name, nargs, args);
	if (!always)
		enable_always(relid, name);
	SPI_finish();

	bguard_request_visit();
	PG_RETURN_VOID();
}

/*
 * bloomguard_untrack(relation regclass, key_columns text DEFAULT NULL)
 *		returns void
 *
 * NULL: every filter of the relation.  Works without preloading, too.  Errors:
 * nothing of the kind is tracked (42704), not the owner, a partition.
 */
Datum
bloomguard_untrack(PG_FUNCTION_ARGS)
{
	/* what DROP TRIGGER takes anyway: no upgrade, no deadlock */
	Relation	rel = bguard_definition_open(PG_ARGISNULL(0), PG_GETARG_OID(0),
											 true, AccessExclusiveLock);
	Oid			relid = RelationGetRelid(rel);
	List	   *defs;
	ListCell   *lc;

	defs = bguard_definition_select(rel, PG_ARGISNULL(1) ? NULL :
									text_to_cstring(PG_GETARG_TEXT_PP(1)));
	/* a partition may also have been tracked by itself before it was attached */
	foreach(lc, defs)
	{
		if (((BGuardDefinition *) lfirst(lc))->root_relid != relid)
			ereport(ERROR,
					(errcode(ERRCODE_WRONG_OBJECT_TYPE),
					 errmsg("cannot untrack partition \"%s\"", RelationGetRelationName(rel)),
					 errhint("Untrack the partitioned table at the root.")));
	}

	relation_close(rel, NoLock);
	SPI_connect();
	foreach(lc, defs)
		run_command(psprintf("DROP TRIGGER %s ON %s",
							 quote_identifier(((BGuardDefinition *) lfirst(lc))->tgname),
							 qualified_name(relid)));
	SPI_finish();
	bguard_request_visit();
	PG_RETURN_VOID();
}
