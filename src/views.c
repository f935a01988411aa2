/*
 * views.c
 *		Set-returning functions behind the views.
 *
 * What filters there are is read from the catalog, what is known of them from
 * the registry: a filter whose trigger exists is shown, also when no worker has
 * seen it yet, or the library is not preloaded.  Entries are copied under
 * bguard_lock (shared); nothing is allocated or read from a catalog meanwhile.
 *
 * Rows are shown for relations that the user may see at all; figures only to the
 * owner and to pg_read_all_stats.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/xlog.h"
#include "catalog/pg_authid.h"
#include "commands/dbcommands.h"
#include "compat.h"
#include "definition.h"
#include "fleet.h"
#include "funcapi.h"
#include "guc.h"
#include "miscadmin.h"
#include "stats.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/jsonb.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"

PG_FUNCTION_INFO_V1(bloomguard_filters);
PG_FUNCTION_INFO_V1(bloomguard_stats);
PG_FUNCTION_INFO_V1(bloomguard_progress);
PG_FUNCTION_INFO_V1(bloomguard_memory);

/* words looked at to estimate the fill: positions are uniform, so a piece will do */
#define FILL_SAMPLE_WORDS	(1024 * 1024)

#define FILTERS_COLUMNS		18
#define STATS_COLUMNS		10
#define PROGRESS_COLUMNS	9
#define MEMORY_COLUMNS		5

typedef struct Row
{
	ReturnSetInfo *rsinfo;
	int			n;
	Datum		values[FILTERS_COLUMNS];
	bool		nulls[FILTERS_COLUMNS];
} Row;

static void
put(Row *row, Datum value)
{
	row->nulls[row->n] = false;
	row->values[row->n++] = value;
}

static void
put_null(Row *row)
{
	row->nulls[row->n] = true;
	row->values[row->n++] = (Datum) 0;
}

static void
put_text(Row *row, const char *text)
{
	if (text == NULL || *text == '\0')
		put_null(row);
	else
		put(row, CStringGetTextDatum(text));
}

static void
put_time(Row *row, TimestampTz at)
{
	if (at == 0)
		put_null(row);
	else
		put(row, TimestampTzGetDatum(at));
}

static void
emit(Row *row)
{
	tuplestore_putvalues(row->rsinfo->setResult, row->rsinfo->setDesc,
						 row->values, row->nulls);
	row->n = 0;
}

/*
 * May the user see that the filter is there?  And its figures?  No, if the
 * relation is not: whoever asks for its privileges then gets an error.
 */
static bool
may_see(Oid relid)
{
	return get_rel_relkind(relid) != '\0' &&
		(pg_class_aclcheck(relid, GetUserId(),
						   ACL_SELECT | ACL_INSERT | ACL_UPDATE | ACL_DELETE) == ACLCHECK_OK ||
		 pg_attribute_aclcheck_all(relid, GetUserId(), ACL_SELECT,
								   ACLMASK_ANY) == ACLCHECK_OK ||
		 has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS));
}

static bool
may_see_figures(Oid relid)
{
	return get_rel_relkind(relid) != '\0' &&
		(bguard_compat_owns_relation(relid, GetUserId()) ||
		 has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS));
}

/* a copy of the definition's entry; false when there is none */
static bool
copy_entry(const BGuardDefinition *def, BGuardEntry *copy)
{
	BGuardEntryKey key = {MyDatabaseId, def->root_relid, def->root_tgoid};
	int			number;

	if (!bguard_attached() || (number = bguard_registry_find(&key)) < 0)
		return false;
	LWLockAcquire(bguard_lock, LW_SHARED);
	memcpy(copy, bguard_registry_entry(number), sizeof(BGuardEntry));
	LWLockRelease(bguard_lock);
	return copy->key.tgoid == key.tgoid;
}

/* state and reason as shown */
static const char *
state_of(BGuardEntry *e, bool found, const char **reason)
{
	uint64		link;
	bool		verdict_holds;

	*reason = NULL;
	if (!bguard_attached())
	{
		*reason = _("the library is not in shared_preload_libraries");
		return "stale";
	}
	if (RecoveryInProgress())
	{
		*reason = _("the server is in recovery");
		return "stale";
	}
	if (!found)
	{
		if (bguard_registry_full())
		{
			*reason = _("all entries are taken: raise bloomguard.max_filters");
			return "no memory";
		}
		*reason = _("waiting for a worker; if that lasts, see the server log");
		return "stale";
	}
	link = pg_atomic_read_u64(&e->link);
	verdict_holds = e->verdict_poison == pg_atomic_read_u32(&e->poison);
	if (verdict_holds && e->reason[0] != '\0')
		*reason = e->reason;
	if (BGUARD_LINK_CURRENT(link) != 0)
		return "ready";
	if (*reason == NULL)
		*reason = bguard_registry_poison_text(pg_atomic_read_u32(&e->poison_reason));
	if (BGUARD_LINK_BUILDING(link) != 0)
		return "building";
	if (verdict_holds && e->verdict == BGUARD_VERDICT_BLOCKED)
		return "blocked";
	if (verdict_holds && e->verdict == BGUARD_VERDICT_NO_MEMORY)
		return "no memory";
	return "stale";
}

/* share of bits set, from a piece of the filter */
static double
measure_fill(const BGuardBloom *filter)
{
	Size		words = Min(filter->bits / 64, FILL_SAMPLE_WORDS);

	CHECK_FOR_INTERRUPTS();
	return (double) bguard_bloom_count(filter->words, words) / (words * 64.0);
}

/* columns of the current generation, or NULLs */
static void
put_generation(Row *row, const BGuardDefinition *def, BGuardEntry *e, bool show)
{
	uint32		current = show ? BGUARD_LINK_CURRENT(pg_atomic_read_u64(&e->link)) : 0;
	BGuardSlot	slot;
	BGuardBloom filter;
	double		fill;
	double		rate = def->rate > 0 ? def->rate : bguard_false_positive_rate;

	if (current == 0 || !bguard_arena_filter(current, &filter))
	{
		put(row, Float8GetDatum(rate));
		if (def->capacity > 0)
			put(row, Int64GetDatum(def->capacity));
		else
			put_null(row);
		for (int i = 0; i < 7; i++)
			put_null(row);		/* bits .. estimated_rate */
		if (show)
			put(row, Int32GetDatum((int32) e->generation));
		else
			put_null(row);
		put_null(row);
		put_null(row);
		return;
	}
	memcpy(&slot, bguard_arena_slot(current), sizeof(slot));
	fill = measure_fill(&filter);
	put(row, Float8GetDatum(slot.rate));
	put(row, Int64GetDatum((int64) slot.capacity));
	put(row, Int64GetDatum((int64) filter.bits));
	put(row, Int32GetDatum((int32) filter.hashes));
	put(row, Int64GetDatum((int64) (filter.bits / 8)));
	put(row, Int64GetDatum((int64) pg_atomic_read_u64(&slot.keys_added)));
	put(row, Int64GetDatum((int64) bguard_sizing_fill_keys(filter.bits, filter.hashes, fill)));
	put(row, Float8GetDatum(fill));
	put(row, Float8GetDatum(bguard_sizing_fill_rate(fill, filter.hashes)));
	put(row, Int32GetDatum((int32) e->generation));
	put_time(row, slot.built_at);
	put(row, Float8GetDatum(slot.build_seconds));
}

/*
 * bloomguard_filters() returns setof record
 *		One row for each filter of this database; columns as in the view.
 */
Datum
bloomguard_filters(PG_FUNCTION_ARGS)
{
	Row			row = {(ReturnSetInfo *) fcinfo->resultinfo};
	ListCell   *lc;

	InitMaterializedSRF(fcinfo, 0);
	foreach(lc, bguard_definition_list())
	{
		BGuardDefinition *def = lfirst(lc);
		BGuardEntry *e = palloc0(sizeof(BGuardEntry));
		bool		found;
		bool		figures;
		const char *reason;
		const char *state;

		if (!may_see(def->root_relid))
			continue;
		found = copy_entry(def, e);
		figures = found && may_see_figures(def->root_relid);
		state = state_of(e, found, &reason);

		put(&row, ObjectIdGetDatum(def->root_relid));
		put_text(&row, def->key_columns);
		put_text(&row, state);
		put_text(&row, reason);
		put_time(&row, found ? (TimestampTz) pg_atomic_read_u64(&e->since) : 0);
		put_generation(&row, def, e, figures);
		put_text(&row, figures ? e->last_error : NULL);
		emit(&row);
		pfree(e);
	}
	return (Datum) 0;
}

/* {"reason": count, ...} of the reasons that occurred */
static Datum
reasons_json(BGuardEntry *e)
{
	StringInfoData buf;

	initStringInfo(&buf);
	appendStringInfoChar(&buf, '{');
	for (int r = 0; r < BGUARD_UNGUARDED_COUNT; r++)
	{
		uint64		count = pg_atomic_read_u64(&e->counters.unguarded[r]);

		if (count > 0)
			appendStringInfo(&buf, "%s\"%s\": " UINT64_FORMAT, buf.len > 1 ? ", " : "",
							 bguard_stats_unguarded_name(r), count);
	}
	appendStringInfoChar(&buf, '}');
	return DirectFunctionCall1(jsonb_in, CStringGetDatum(buf.data));
}

/*
 * bloomguard_stats() returns setof record
 *		Counters of the filters of this database that a worker has seen.
 */
Datum
bloomguard_stats(PG_FUNCTION_ARGS)
{
	Row			row = {(ReturnSetInfo *) fcinfo->resultinfo};
	ListCell   *lc;

	InitMaterializedSRF(fcinfo, 0);
	foreach(lc, bguard_definition_list())
	{
		BGuardDefinition *def = lfirst(lc);
		BGuardEntry *e = palloc0(sizeof(BGuardEntry));
		int64		absent;
		int64		maybe;
		int64		unguarded = 0;

		if (!may_see_figures(def->root_relid) || !copy_entry(def, e))
			continue;
		for (int r = 0; r < BGUARD_UNGUARDED_COUNT; r++)
			unguarded += (int64) pg_atomic_read_u64(&e->counters.unguarded[r]);
		absent = (int64) pg_atomic_read_u64(&e->counters.absent);
		/* an answer without the filter is a maybe, too */
		maybe = (int64) pg_atomic_read_u64(&e->counters.maybe) + unguarded;

		put(&row, ObjectIdGetDatum(def->root_relid));
		put_text(&row, def->key_columns);
		put(&row, Int64GetDatum(absent + maybe));
		put(&row, Int64GetDatum(absent));
		put(&row, Int64GetDatum(maybe));
		put(&row, Int64GetDatum(unguarded));
		put(&row, reasons_json(e));
		put(&row, Int64GetDatum((int64) pg_atomic_read_u64(&e->counters.adds)));
		put(&row, Int64GetDatum((int64) pg_atomic_read_u64(&e->counters.rotations)));
		put_time(&row, e->stats_reset);
		emit(&row);
		pfree(e);
	}
	return (Datum) 0;
}

/*
 * bloomguard_progress() returns setof record
 *		Running builds of the whole cluster.  key_columns only for this database,
 *		whose catalog can be read.
 */
Datum
bloomguard_progress(PG_FUNCTION_ARGS)
{
	Row			row = {(ReturnSetInfo *) fcinfo->resultinfo};
	List	   *definitions;

	InitMaterializedSRF(fcinfo, 0);
	if (!bguard_attached())
		return (Datum) 0;
	definitions = bguard_definition_list();

	for (uint32 i = 0; i < BGUARD_MAX_WORKERS; i++)
	{
		BGuardWorker *w = bguard_fleet_worker(i);
		char	   *columns = NULL;
		char	   *datname;
		Oid			root_tgoid = w->root_tgoid;
		Oid			root_relid = w->root_relid;
		ListCell   *lc;

		if (w->state != BGUARD_WORKER_RUNNING || !OidIsValid(root_relid))
			continue;
		if (w->dboid == MyDatabaseId ? !may_see(root_relid) :
			!has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS))
			continue;
		foreach(lc, definitions)
		{
			BGuardDefinition *def = lfirst(lc);

			if (w->dboid == MyDatabaseId && def->tgoid == root_tgoid)
				columns = def->key_columns;
		}
		datname = get_database_name(w->dboid);
		put(&row, Int32GetDatum(w->pid));
		if (datname != NULL)
			put(&row, DirectFunctionCall1(namein, CStringGetDatum(datname)));
		else
			put_null(&row);
		put(&row, ObjectIdGetDatum(root_relid));
		put_text(&row, columns);
		put_text(&row, bguard_fleet_phase_name(pg_atomic_read_u32(&w->phase)));
		put(&row, Int64GetDatum((int64) pg_atomic_read_u64(&w->blocks_total)));
		put(&row, Int64GetDatum((int64) pg_atomic_read_u64(&w->blocks_done)));
		put(&row, Int64GetDatum((int64) pg_atomic_read_u64(&w->tuples_done)));
		put_time(&row, w->started_at);
		emit(&row);
	}
	return (Datum) 0;
}

/*
 * bloomguard_memory() returns record
 *		Use of the arena and of the registry, whole cluster; one row, zeros when
 *		the library is not preloaded.
 */
Datum
bloomguard_memory(PG_FUNCTION_ARGS)
{
	Row			row = {(ReturnSetInfo *) fcinfo->resultinfo};
	uint64		used = 0;
	uint64		largest = 0;
	int64		total = 0;
	int32		filters = 0;
	int32		max_filters = 0;

	InitMaterializedSRF(fcinfo, 0);
	if (bguard_attached())
	{
		bguard_arena_prepare();
		LWLockAcquire(bguard_lock, LW_SHARED);
		bguard_arena_usage(&used, &largest);
		for (uint32 i = 0; i < bguard_control->max_filters; i++)
			filters += bguard_registry_entry((int) i)->key.dboid != InvalidOid;
		LWLockRelease(bguard_lock);
		total = (int64) bguard_control->arena_lines * BGUARD_LINE_BYTES;
		max_filters = (int32) bguard_control->max_filters;
	}
	put(&row, Int64GetDatum(total));
	put(&row, Int64GetDatum((int64) used * BGUARD_LINE_BYTES));
	put(&row, Int64GetDatum((int64) largest * BGUARD_LINE_BYTES));
	put(&row, Int32GetDatum(filters));
	put(&row, Int32GetDatum(max_filters));
	emit(&row);
	return (Datum) 0;
}

StaticAssertDecl(STATS_COLUMNS <= FILTERS_COLUMNS &&
				 PROGRESS_COLUMNS <= FILTERS_COLUMNS &&
				 MEMORY_COLUMNS <= FILTERS_COLUMNS,
				 "a row has room for the widest view");
