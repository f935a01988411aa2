/*
 * definition.h
 *		The trigger is the definition of a filter: find it, read it, judge it.
 *
 * Everything here reads catalogs: call it inside a transaction, under no lock of
 * ours.  Results are palloc'd in the current memory context.
 */
#ifndef BGUARD_DEFINITION_H
#define BGUARD_DEFINITION_H

#include "access/htup.h"
#include "nodes/pg_list.h"
#include "registry.h"
#include "storage/lockdefs.h"
#include "utils/relcache.h"
#include "utils/snapshot.h"

/*
 * Lock tag that stands for all functions that filters of this database depend
 * on: no object has OID 0.  Taken by src/ddl_function.c and src/build_check.c;
 * the file that uses it includes catalog/pg_proc.h and storage/lock.h.
 */
#define BGUARD_FUNCTIONS_LOCKTAG(tag) \
	SET_LOCKTAG_OBJECT(tag, MyDatabaseId, ProcedureRelationId, InvalidOid, 0)

typedef struct BGuardDefinition
{
	Oid			tgoid;			/* trigger on the named relation */
	Oid			root_tgoid;		/* top of its tgparentid chain (itself if none) */
	Oid			root_relid;		/* relation of root_tgoid */
	char	   *tgname;			/* of tgoid */
	/* from the arguments */
	char	   *key_columns;	/* first argument as it stands */
	int			ncols;			/* 0: arguments cannot be read, see problem */
	char	   *names[BGUARD_MAX_KEY_COLUMNS];
	double		rate;			/* 0: not given */
	int64		capacity;		/* 0: not given */
	char	   *problem;		/* NULL, or why the arguments cannot be read */
} BGuardDefinition;

/* OID of the extension's trigger function in this database, or InvalidOid */
extern Oid	bguard_definition_function(void);
/* also one that is or was renamed or replaced */
extern bool bguard_definition_was_function(Oid funcoid);

/*
 * Split an identifier list ('tenant_id, "Email"') with SQL's rules for case and
 * quotes.  Returns NULL, or what is wrong with it.
 */
extern char *bguard_definition_split(const char *list, int *ncols,
									 char **names);

/*
 * The relation that an SQL function was given, locked and open.  Raises when it is
 * null or does not exist and, with own, when the user does not own it: asked
 * before locking, since nobody may lock a table that is not his.
 */
extern Relation bguard_definition_open(bool isnull, Oid relid, bool own,
									   LOCKMODE lockmode);

/*
 * Copy of a pg_trigger row, NULL if it is not there.  snapshot NULL: the catalog
 * snapshot of the moment.
 */
extern HeapTuple bguard_definition_fetch(Oid tgoid, Snapshot snapshot);

/* fill all but tgoid .. root_relid from trigger arguments */
extern void bguard_definition_parse(int nargs, char **args,
									BGuardDefinition *def);

/*
 * Follow tgparentid to the top.  catalog snapshot; false when a trigger of the
 * chain is not there.
 */
extern bool bguard_definition_root(Oid tgoid, Oid *root_tgoid,
								   Oid *root_relid);

/* our triggers on an open relation, by name: List of BGuardDefinition * */
extern List *bguard_definition_of_relation(Relation rel);

/* ours with exactly these columns in this order, or NULL */
extern BGuardDefinition *bguard_definition_find(Relation rel, int ncols,
												char **names);
/*
 * What a user's (relation, key_columns) means: the definition on that identifier
 * list, or with NULL all of the relation's.  Never NIL: raises when the list is
 * none, or nothing of the kind is tracked.
 */
extern List *bguard_definition_select(Relation rel, const char *key_columns);

/* root triggers of ours in this database: List of BGuardDefinition * */
extern List *bguard_definition_list(void);

/*
 * The strings in size bytes of tgargs, each with its terminating zero, copied to
 * args.  Returns nargs, or 0 if so many are not there: half a definition is none.
 */
extern int	bguard_definition_unpack(const char *data, Size size, int nargs,
									 char **args);
/* our triggers as argument text of pg_trigger.tgargs */
extern void bguard_definition_tgargs(HeapTuple tuple, TupleDesc desc,
									 int *nargs, char ***args);
/* replace tgargs of a pg_trigger row in place, relcache told */
extern void bguard_definition_update_tgargs(Oid tgoid, int nargs, char **args);

/*
 * Is the pg_trigger row the trigger we created?  AFTER INSERT OR UPDATE ROW,
 * ALWAYS, no WHEN, no OF, not deferrable, not a constraint trigger, no
 * transition tables.  Returns NULL, or what is wrong with it.  enabled_origin is
 * set (and NULL returned) when the only fault is tgenabled 'O', which a worker
 * repairs.
 */
extern char *bguard_definition_judge_trigger(HeapTuple tuple, TupleDesc desc,
											 bool *enabled_origin);

/*
 * Signature of the definition's key columns in the root relation (which must be
 * open).  Returns NULL, or what is wrong: a column that is gone, or that cannot
 * be a key.
 */
extern char *bguard_definition_signature(Relation root,
										 const BGuardDefinition *def,
										 BGuardSignature *sig);

/* why the relation cannot be tracked, by kind (NULL if it can); with a hint */
extern char *bguard_definition_judge_relation(Relation rel, char **hint);

/* a phrase as the beginning of a sentence: first letter upper case, in place */
extern char *bguard_definition_sentence(char *phrase);

/* key list with identifiers quoted, as it is stored in the arguments */
extern char *bguard_definition_join(int ncols, char **names);

#endif							/* BGUARD_DEFINITION_H */
