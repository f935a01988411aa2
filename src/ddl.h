/*
 * ddl.h
 *		Commands that could let a row bypass a trigger, or change a stored key.
 */
#ifndef BGUARD_DDL_H
#define BGUARD_DDL_H

#include "nodes/pg_list.h"
#include "postgres_ext.h"
#include "registry.h"

/* install hooks and callbacks; from _PG_init only, when preloading */
extern void bguard_ddl_init(void);

/* within the room: ddl.c, ddl_function.c, ddl_rename.c and ddl_utility.c */

/* caches must look again, and a worker shall look at commit */
extern void bguard_ddl_changed(void);
/* every filter of this database, and the same */
extern void bguard_ddl_poison_database(BGuardPoison reason);
/* a function was created, replaced, altered or dropped */
extern void bguard_ddl_function_event(Oid funcoid);
/*
 * An operator class, or a function of one, comes or goes: poisons filters on arrays
 * and ranges, since sessions may turn to it without making their recipes anew
 */
extern void bguard_ddl_opclass_event(void);

/*
 * Our triggers on a relation, by pg_trigger: List of BGuardDefinition * without
 * tgname.  Takes no lock on the relation and does not open it.  A trigger whose
 * root cannot be found has root_tgoid 0.
 */
extern List *bguard_ddl_triggers(Oid relid);

/*
 * A key column of a relation that carries triggers of ours was renamed.  The
 * names are copied.  The command holds AccessExclusiveLock on the relation.
 */
extern void bguard_ddl_note_rename(Oid relid, const char *old_name,
								   const char *new_name);
/* change the triggers of all noted relations; a utility command has ended */
extern void bguard_ddl_apply_renames(void);
extern void bguard_ddl_rename_init(void);
extern void bguard_ddl_utility_init(void);

#endif							/* BGUARD_DDL_H */
