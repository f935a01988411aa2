/*
 * ddl_utility.c
 *		Utility commands that concern workers rather than one filter.
 *
 * Commands that need a database to themselves keep our workers out of it while
 * they run.  COMMIT PREPARED has no callback in which the DDL of the prepared
 * transaction could ask for a visit, so it is asked for here.  And renamed key
 * columns are followed when their command has ended (ddl_rename.c).
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "arena.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_database.h"
#include "commands/dbcommands.h"
#include "commands/defrem.h"
#include "compat.h"
#include "ddl.h"
#include "request.h"
#include "tcop/utility.h"
#include "utils/acl.h"
#include "utils/syscache.h"

static ProcessUtility_hook_type prev_utility = NULL;

/*
 * The database that the command needs to itself, InvalidOid if there is none or
 * core will refuse the command to this user anyway: nobody shall be able to
 * keep workers out of other people's databases.
 */
static Oid
database_to_hold(Node *parsetree)
{
	const char *name = NULL;
	bool		as_template = false;
	bool		allowed;
	Oid			dboid;
	HeapTuple	tuple;
	ListCell   *lc;

	switch (nodeTag(parsetree))
	{
		case T_DropdbStmt:
			name = ((DropdbStmt *) parsetree)->dbname;
			break;
		case T_CreatedbStmt:
			name = "template1";
			as_template = true;
			foreach(lc, ((CreatedbStmt *) parsetree)->options)
			{
				DefElem    *option = lfirst(lc);

				if (strcmp(option->defname, "template") == 0 && option->arg)
					name = defGetString(option);
			}
			break;
		case T_RenameStmt:
			if (((RenameStmt *) parsetree)->renameType == OBJECT_DATABASE)
				name = ((RenameStmt *) parsetree)->subname;
			break;
		case T_AlterDatabaseStmt:
			foreach(lc, ((AlterDatabaseStmt *) parsetree)->options)
			{
				if (strcmp(((DefElem *) lfirst(lc))->defname, "tablespace") == 0)
					name = ((AlterDatabaseStmt *) parsetree)->dbname;
			}
			break;
		default:
			break;
	}
	if (name == NULL)
		return InvalidOid;
	dboid = get_database_oid(name, true);
	if (!OidIsValid(dboid))
		return InvalidOid;

	tuple = SearchSysCache1(DATABASEOID, ObjectIdGetDatum(dboid));
	if (!HeapTupleIsValid(tuple))
		return InvalidOid;
	allowed = has_privs_of_role(GetUserId(),
								((Form_pg_database) GETSTRUCT(tuple))->datdba);
	as_template &= ((Form_pg_database) GETSTRUCT(tuple))->datistemplate;
	ReleaseSysCache(tuple);
	if (!allowed && as_template)
	{
		tuple = SearchSysCache1(AUTHOID, ObjectIdGetDatum(GetUserId()));
		if (HeapTupleIsValid(tuple))
		{
			allowed = ((Form_pg_authid) GETSTRUCT(tuple))->rolcreatedb;
			ReleaseSysCache(tuple);
		}
	}
	return allowed ? dboid : InvalidOid;
}

static void
next_utility(PlannedStmt *pstmt, const char *queryString, bool readOnlyTree,
			 ProcessUtilityContext context, ParamListInfo params,
			 QueryEnvironment *queryEnv, DestReceiver *dest,
			 QueryCompletion *qc)
{
	if (prev_utility)
		prev_utility(pstmt, queryString, readOnlyTree, context, params,
					 queryEnv, dest, qc);
	else
		standard_ProcessUtility(pstmt, queryString, readOnlyTree, context,
								params, queryEnv, dest, qc);
}

/*
 * The hold ends with the transaction; here only if the command fails, perhaps
 * in a subtransaction.  A function of its own, so that no variable lives across
 * PG_TRY.
 */
static pg_noinline void
utility_while_held(Oid dboid, PlannedStmt *pstmt, const char *queryString,
				   bool readOnlyTree, ProcessUtilityContext context,
				   ParamListInfo params, QueryEnvironment *queryEnv,
				   DestReceiver *dest, QueryCompletion *qc)
{
	bguard_request_hold(dboid);
	PG_TRY();
	{
		next_utility(pstmt, queryString, readOnlyTree, context, params,
					 queryEnv, dest, qc);
	}
	PG_CATCH();
	{
		bguard_request_release_holds();
		PG_RE_THROW();
	}
	PG_END_TRY();
}

static void
ddl_utility(PlannedStmt *pstmt, const char *queryString, bool readOnlyTree,
			ProcessUtilityContext context, ParamListInfo params,
			QueryEnvironment *queryEnv, DestReceiver *dest,
			QueryCompletion *qc)
{
	Node	   *parsetree = pstmt->utilityStmt;
	bool		prepared_ended = false;
	Oid			held = InvalidOid;
	Oid			dropped = InvalidOid;

	if (bguard_attached() && !IsBinaryUpgrade)
	{
		/* the tree may be gone when the command has ended */
		if (IsA(parsetree, TransactionStmt))
		{
			TransactionStmtKind what = ((TransactionStmt *) parsetree)->kind;

			prepared_ended = what == TRANS_STMT_COMMIT_PREPARED ||
				what == TRANS_STMT_ROLLBACK_PREPARED;
		}
		else
			held = database_to_hold(parsetree);
		if (IsA(parsetree, DropdbStmt))
			dropped = get_database_oid(((DropdbStmt *) parsetree)->dbname, true);
	}

	if (OidIsValid(held))
		utility_while_held(held, pstmt, queryString, readOnlyTree, context,
						   params, queryEnv, dest, qc);
	else
		next_utility(pstmt, queryString, readOnlyTree, context, params,
					 queryEnv, dest, qc);

	/*
	 * A copy of a database may be created under the same OID before the launcher
	 * looks: all else in an entry's key is then the same as well.  No worker can
	 * be there any more, and none can come before the command has committed.
	 */
	if (OidIsValid(dropped))
		bguard_registry_poison_database(dropped, BGUARD_POISON_RELATION);
	bguard_ddl_apply_renames();
	if (prepared_ended && OidIsValid(MyDatabaseId))
		bguard_request_visit_now(MyDatabaseId);
}

void
bguard_ddl_utility_init(void)
{
	prev_utility = ProcessUtility_hook;
	ProcessUtility_hook = ddl_utility;
}
