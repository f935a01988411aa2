/*
 * trigger.c
 *		The add path: bloomguard_maintain(), an AFTER INSERT OR UPDATE ROW trigger.
 *
 * Order (see registry.h): the row is on its page when the trigger fires; hash;
 * full barrier; ONE load of the link; bits of every slot that it names.  The key
 * is added on every INSERT and every UPDATE, also when it looks unchanged, and
 * never taken back.
 *
 * A write must not fail for our sake: what cannot be resolved poisons the filter
 * instead of raising.  (Only the hash function of a user-defined key type may
 * raise.)
 *
 * The backend caches by trigger OID: the recipe of the key and the entry, "no
 * entry" included, while the registry's version is unchanged and the relation's
 * descriptor agrees with them.
 */
#include "postgres.h"

#include "access/transam.h"
#include "catalog/pg_type.h"
#include "commands/trigger.h"
#include "debug.h"
#include "definition.h"
#include "miscadmin.h"
#include "request.h"
#include "stats.h"
#include "trigger.h"
#include "utils/builtins.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/memutils.h"
#include "utils/rel.h"

PG_FUNCTION_INFO_V1(bloomguard_maintain);

BGuardTriggerFunction bguard_maintain_here = bloomguard_maintain;
BGuardTriggerFunction bguard_maintain_elsewhere = NULL;

/* how often a key is hashed anew because the registry changed meanwhile */
#define MAX_TRIES	100

typedef struct AddRecipe
{
	Oid			tgoid;			/* hash key: the trigger that fires */
	Oid			relid;			/* its relation */
	bool		clone;
	bool		usable;			/* recipe below is filled */
	MemoryContext cxt;			/* of the recipe */
	bool		user_defined;	/* has a hash function that is not PostgreSQL's */
	int			hashing;		/* calls of user-defined hash functions under way */
	int			level;			/* as many of them use older recipes */
	Oid			root_tgoid;
	Oid			root_relid;
	int			ncols;
	char	   *arg;			/* column list the recipe was made from */
	NameData	names[BGUARD_MAX_KEY_COLUMNS];
	AttrNumber	attnums[BGUARD_MAX_KEY_COLUMNS];
	BGuardKeyPart parts[BGUARD_MAX_KEY_COLUMNS];

	uint64		made;			/* registry version before the recipe was made */
	uint64		version;		/* registry version of the look-up, 0: none */
	int			entry;			/* or -1 */
	bool		agrees;			/* with the entry's signature */
} AddRecipe;

static HTAB *recipes = NULL;

/* recipe for this trigger on this relation is still right? */
static bool
recipe_fits(const AddRecipe *recipe, Relation rel, const Trigger *trigger)
{
	TupleDesc	desc = RelationGetDescr(rel);

	if (!recipe->usable || recipe->relid != RelationGetRelid(rel) ||
		recipe->clone != trigger->tgisclone ||
		strcmp(recipe->arg, trigger->tgargs[0]) != 0)
		return false;
	for (int i = 0; i < recipe->ncols; i++)
	{
		Form_pg_attribute att;

		if (recipe->attnums[i] > desc->natts)
			return false;
		att = TupleDescAttr(desc, recipe->attnums[i] - 1);
		if (att->attisdropped ||
			att->atttypid != recipe->parts[i].typid ||
			att->attcollation != recipe->parts[i].collid ||
			strcmp(NameStr(att->attname), NameStr(recipe->names[i])) != 0)
			return false;
	}
	return true;
}

/*
 * Fill the recipe from trigger and descriptor.  false when the definition makes
 * no sense any more.
 */
static bool
recipe_make(AddRecipe *recipe, Relation rel, const Trigger *trigger)
{
	TupleDesc	desc;
	BGuardDefinition def;
	MemoryContext old;
	bool		ok;

	recipe->usable = recipe->user_defined = false;
	recipe->version = 0;
	recipe->made = bguard_registry_version();
	/* what changed before that version must be seen, also within a statement */
	AcceptInvalidationMessages();
	desc = RelationGetDescr(rel);

	/*
	 * A hash function that writes rows comes here while it is being called through
	 * the old recipe, which then stays to the end of the transaction.
	 */
	if (recipe->cxt != NULL && recipe->hashing > recipe->level)
		MemoryContextSetParent(recipe->cxt, TopTransactionContext);
	else if (recipe->cxt != NULL)
		MemoryContextDelete(recipe->cxt);
	recipe->cxt = AllocSetContextCreate(TopMemoryContext,
										"bloomguard add recipe",
										ALLOCSET_SMALL_SIZES);
	recipe->level = recipe->hashing;
	old = MemoryContextSwitchTo(recipe->cxt);

	recipe->relid = recipe->root_relid = RelationGetRelid(rel);
	recipe->root_tgoid = trigger->tgoid;
	recipe->clone = trigger->tgisclone;

	bguard_definition_parse(trigger->tgnargs, trigger->tgargs, &def);
	ok = def.problem == NULL;
	recipe->ncols = def.ncols;
	for (int i = 0; i < def.ncols && ok; i++)
	{
		AttrNumber	attnum = InvalidAttrNumber;

		for (int a = 0; a < desc->natts && attnum == InvalidAttrNumber; a++)
		{
			if (!TupleDescAttr(desc, a)->attisdropped &&
				strcmp(NameStr(TupleDescAttr(desc, a)->attname), def.names[i]) == 0)
				attnum = a + 1;
		}
		ok = attnum != InvalidAttrNumber &&
			bguard_keys_part_init(&recipe->parts[i],
								  TupleDescAttr(desc, attnum - 1)->atttypid,
								  TupleDescAttr(desc, attnum - 1)->attcollation,
								  recipe->cxt) == NULL;
		if (ok)
		{
			recipe->attnums[i] = attnum;
			recipe->user_defined |=
				recipe->parts[i].hashproc >= FirstNormalObjectId ||
				recipe->parts[i].innerproc >= FirstNormalObjectId;
			namestrcpy(&recipe->names[i], def.names[i]);
		}
	}
	if (ok)
	{
		recipe->arg = pstrdup(trigger->tgargs[0]);
		recipe->usable = true;
	}
	MemoryContextSwitchTo(old);
	return ok;
}

static AddRecipe *
recipe_find(Relation rel, const Trigger *trigger)
{
	AddRecipe  *recipe;
	bool		found;

	if (recipes == NULL)
	{
		HASHCTL		ctl = {0};

		ctl.keysize = sizeof(Oid);
		ctl.entrysize = sizeof(AddRecipe);
		recipes = hash_create("bloomguard add recipes", 64, &ctl,
							  HASH_ELEM | HASH_BLOBS);
	}
	recipe = hash_search(recipes, &trigger->tgoid, HASH_ENTER, &found);
	if (!found)
	{
		recipe->usable = false;
		recipe->made = 0;
		recipe->cxt = NULL;
		recipe->hashing = recipe->level = 0;
		recipe->version = 0;
	}
	return recipe;
}

/*
 * Does the entry hash keys as the recipe does?  A signature changes only while
 * no slot is linked, and the registry's version moves before one is, so no lock
 * is needed: what is read here counts only for slots of this version.
 */
static bool
recipe_agrees(const AddRecipe *recipe, const BGuardSignature *sig)
{
	bool		agrees = recipe->ncols == sig->ncols;

	for (int i = 0; i < recipe->ncols && agrees; i++)
		agrees = recipe->parts[i].typid == sig->cols[i].typid &&
			recipe->parts[i].hashproc == sig->cols[i].hashproc &&
			recipe->parts[i].innerproc == sig->cols[i].innerproc;
	return agrees;
}

/*
 * The entry, looked up again when the registry has changed; the root, too, since
 * an OID may have been used again.  -1: none, -2: the root cannot be found.
 */
static int
recipe_entry(AddRecipe *recipe)
{
	uint64		version = bguard_registry_version();

	if (BGUARD_MUTANT(STALE_RECIPE) && recipe->version != 0)
		version = recipe->version = recipe->made;
	if (unlikely(recipe->version != version))
	{
		BGuardEntryKey key;

		if (recipe->clone &&
			!bguard_definition_root(recipe->tgoid, &recipe->root_tgoid,
									&recipe->root_relid))
			return -2;
		key.dboid = MyDatabaseId;
		key.relid = recipe->root_relid;
		key.tgoid = recipe->root_tgoid;
		recipe->entry = bguard_registry_find(&key);
		recipe->agrees = recipe->entry >= 0 &&
			recipe_agrees(recipe, &bguard_registry_entry(recipe->entry)->sig);
		recipe->version = version;
	}
	return recipe->entry;
}

/* set the key's bits in a slot; was it new there? */
static bool
add_to_slot(uint32 slot, uint64 hash)
{
	BGuardBloom filter;

	return bguard_arena_filter(slot, &filter) && bguard_bloom_add(&filter, hash);
}

static void
count_new(BGuardLocalCounters *local, int which, uint32 slot)
{
	if (local->slots[which] != slot)
	{
		local->slots[which] = slot;
		local->new_keys[which] = 0;
	}
	local->new_keys[which]++;
}

/* the trigger's root, however little of the recipe could be made */
static void
poison_recipe(Oid tgoid)
{
	Oid			root_tgoid;
	Oid			root_relid;

	if (bguard_definition_root(tgoid, &root_tgoid, &root_relid))
		bguard_registry_poison_trigger(MyDatabaseId, root_tgoid,
									   BGUARD_POISON_ADD);
	else
		bguard_registry_poison_database(MyDatabaseId, BGUARD_POISON_ADD);
}

/*
 * The key's hash.  A user-defined hash function may write rows, and come back here,
 * or raise.
 */
static uint64
hash_key(AddRecipe *recipe, const Datum *values)
{
	volatile uint64 hash = 0;

	if (!recipe->user_defined)
		return bguard_keys_hash(recipe->parts, recipe->ncols, values,
								bguard_control->seed);

	recipe->hashing++;
	PG_TRY();
	{
		hash = bguard_keys_hash(recipe->parts, recipe->ncols, values,
								bguard_control->seed);
	}
	PG_FINALLY();
	{
		recipe->hashing--;
	}
	PG_END_TRY();
	return hash;
}

/*
 * false: the registry changed since the recipe was made.  A builder that came to
 * another signature (the operator class may be another) says so before it
 * publishes, so the key has to be hashed again by a recipe of now.
 */
static bool
add_key(AddRecipe *recipe, TupleTableSlot *row)
{
	Datum		values[BGUARD_MAX_KEY_COLUMNS];
	uint64		made = recipe->made;
	BGuardLocalCounters *local;
	BGuardEntry *entry;
	uint64		hash;
	uint64		link;
	uint32		current;
	uint32		building;
	int			number;

	BGUARD_PAUSE("add-placed");
	for (int i = 0; i < recipe->ncols; i++)
	{
		bool		isnull;

		values[i] = slot_getattr(row, recipe->attnums[i], &isnull);
		if (isnull)
			return true;
	}

	/* what hash functions leave behind goes with the trigger's context */
	hash = hash_key(recipe, values);

	if (!BGUARD_MUTANT(NO_BARRIER))
		pg_memory_barrier();

	/* a hash function that writes rows may have had the recipe made anew, too */
	number = recipe_entry(recipe);
	if (unlikely(recipe->version != made) && number != -2)
		return false;
	if (number == -2)
		poison_recipe(recipe->tgoid);
	if (number < 0)
		return true;
	entry = bguard_registry_entry(number);
	local = bguard_stats_local(number, recipe->root_tgoid);
	local->adds++;

	link = pg_atomic_read_u64(&entry->link);
	if (BGUARD_MUTANT(NO_BARRIER))
		link = bguard_debug_early_link(number);
	BGUARD_PAUSE("add-loaded");
	current = BGUARD_LINK_CURRENT(link);
	if (BGUARD_MUTANT(TWO_LOADS))
		link = pg_atomic_read_u64(&entry->link);
	building = BGUARD_LINK_BUILDING(link);
	if (unlikely(!recipe->agrees) && (current != 0 || building != 0))
	{
		/*
		 * The operator class was replaced, which no lock prevents.  Who asks by the
		 * old one shall not be told that this row is absent.
		 */
		if (bguard_registry_version() != made)
			return false;
		bguard_registry_poison(entry, BGUARD_POISON_COLUMN);
		bguard_request_wake();
		return true;
	}
	if (current != 0 && add_to_slot(current, hash))
		count_new(local, 0, current);
	if (building != 0 && add_to_slot(building, hash))
		count_new(local, 1, building);
	BGUARD_PAUSE("add-done");
	return true;
}

/* for the mutant CHANGED_KEYS: keys of one int4 column only */
static bool
key_unchanged(const AddRecipe *recipe, TupleTableSlot *old, TupleTableSlot *new)
{
	bool		null_old;
	bool		null_new;

	return recipe->usable && recipe->ncols == 1 &&
		recipe->parts[0].typid == INT4OID &&
		slot_getattr(old, recipe->attnums[0], &null_old) ==
		slot_getattr(new, recipe->attnums[0], &null_new) &&
		!null_old && !null_new;
}

/*
 * bloomguard_maintain() returns trigger
 *
 * Arguments: column list, then options (see definition.h).  Attached in any
 * other way than bloomguard_track() does it, the trigger does nothing; workers
 * report such a definition as blocked.
 */
Datum
bloomguard_maintain(PG_FUNCTION_ARGS)
{
	TriggerData *data = (TriggerData *) fcinfo->context;
	AddRecipe  *recipe;
	bool		compared;
	TupleTableSlot *row;
	HeapTuple	result;
	int			tries = 0;

	/* its filters are those that are asked */
	if (unlikely(bguard_maintain_elsewhere != NULL))
		return bguard_maintain_elsewhere(fcinfo);

	if (!CALLED_AS_TRIGGER(fcinfo))
		ereport(ERROR,
				(errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
				 errmsg("function \"%s\" must be called as a trigger",
						"bloomguard_maintain")));

	/* a BEFORE trigger would drop the row if we returned nothing */
	result = TRIGGER_FIRED_BY_UPDATE(data->tg_event) ?
		data->tg_newtuple : data->tg_trigtuple;

	if (!bguard_attached() ||
		!TRIGGER_FIRED_AFTER(data->tg_event) ||
		!TRIGGER_FIRED_FOR_ROW(data->tg_event) ||
		!(TRIGGER_FIRED_BY_INSERT(data->tg_event) ||
		  TRIGGER_FIRED_BY_UPDATE(data->tg_event)) ||
		data->tg_trigger->tgnargs < 1)
		return PointerGetDatum(result);

	/*
	 * Each trigger of a statement has an FmgrInfo of its own.  While the
	 * statement holds the relation open nobody can alter it, so once is enough
	 * to compare it with the recipe.
	 */
	recipe = fcinfo->flinfo->fn_extra;
	compared = recipe != NULL && recipe->tgoid == data->tg_trigger->tgoid;
	if (!compared)
	{
		recipe = recipe_find(data->tg_relation, data->tg_trigger);
		fcinfo->flinfo->fn_extra = recipe;
	}

	row = TRIGGER_FIRED_BY_UPDATE(data->tg_event) ?
		data->tg_newslot : data->tg_trigslot;
	if (BGUARD_MUTANT(CHANGED_KEYS) && TRIGGER_FIRED_BY_UPDATE(data->tg_event) &&
		key_unchanged(recipe, data->tg_trigslot, row))
		return PointerGetDatum(result);
	do
	{
		CHECK_FOR_INTERRUPTS();
		/* a hash function that itself changes the registry would go on for ever */
		if (tries++ == MAX_TRIES)
		{
			poison_recipe(data->tg_trigger->tgoid);
			break;
		}
		if (((recipe->made != bguard_registry_version() &&
			  !BGUARD_MUTANT(STALE_RECIPE)) || !recipe->usable ||
			 (!compared &&
			  !recipe_fits(recipe, data->tg_relation, data->tg_trigger))) &&
			!recipe_make(recipe, data->tg_relation, data->tg_trigger))
		{
			poison_recipe(data->tg_trigger->tgoid);
			break;
		}
		compared = true;
	} while (!add_key(recipe, row));
	return PointerGetDatum(result);
}
