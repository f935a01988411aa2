/* bloomguard--1.0.sql: every object of the extension */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION bloomguard" to load this file. \quit

/*
 * The trigger function.  Its triggers are the definitions of the filters.
 */
CREATE FUNCTION bloomguard_maintain()
RETURNS trigger
AS 'MODULE_PATHNAME', 'bloomguard_maintain'
LANGUAGE C;

COMMENT ON FUNCTION bloomguard_maintain() IS
'adds the key of a new row to its filter; use bloomguard_track() to create the trigger';

/*
 * Definition.  Ownership of the relation is checked by the functions.
 */
CREATE FUNCTION bloomguard_track(relation regclass, key_columns text,
	false_positive_rate float8 DEFAULT NULL, capacity bigint DEFAULT NULL)
RETURNS void
AS 'MODULE_PATHNAME', 'bloomguard_track'
LANGUAGE C VOLATILE PARALLEL UNSAFE CALLED ON NULL INPUT;

COMMENT ON FUNCTION bloomguard_track(regclass, text, float8, bigint) IS
'guard the key columns of a relation, or change how they are guarded';

CREATE FUNCTION bloomguard_untrack(relation regclass, key_columns text DEFAULT NULL)
RETURNS void
AS 'MODULE_PATHNAME', 'bloomguard_untrack'
LANGUAGE C VOLATILE PARALLEL UNSAFE CALLED ON NULL INPUT;

COMMENT ON FUNCTION bloomguard_untrack(regclass, text) IS
'stop guarding these key columns, or (NULL) all of the relation';

CREATE FUNCTION bloomguard_rebuild(relation regclass, key_columns text DEFAULT NULL)
RETURNS void
AS 'MODULE_PATHNAME', 'bloomguard_rebuild'
LANGUAGE C VOLATILE PARALLEL UNSAFE CALLED ON NULL INPUT;

COMMENT ON FUNCTION bloomguard_rebuild(regclass, text) IS
'have the filter rebuilt from the table, at commit; the present one serves meanwhile';

CREATE FUNCTION bloomguard_wait_ready(relation regclass, timeout interval DEFAULT '60 s')
RETURNS boolean
AS 'MODULE_PATHNAME', 'bloomguard_wait_ready'
LANGUAGE C VOLATILE PARALLEL UNSAFE CALLED ON NULL INPUT;

COMMENT ON FUNCTION bloomguard_wait_ready(regclass, interval) IS
'wait until all filters of the relation are ready; false at the timeout or when it cannot be';

CREATE FUNCTION bloomguard_verify(relation regclass, key_columns text DEFAULT NULL,
	OUT key_columns_verified text, OUT rows_scanned bigint, OUT rows_absent bigint,
	OUT random_keys bigint, OUT false_positives bigint, OUT false_positive_rate float8)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'bloomguard_verify'
LANGUAGE C VOLATILE PARALLEL UNSAFE CALLED ON NULL INPUT;

COMMENT ON FUNCTION bloomguard_verify(regclass, text) IS
'compare filter and table: rows_absent must be 0; false-positive rate measured with random keys';

CREATE FUNCTION bloomguard_size(capacity bigint, false_positive_rate float8,
	OUT bits bigint, OUT bytes bigint, OUT hashes integer,
	OUT rate_at_1x float8, OUT rate_at_2x float8, OUT rate_at_5x float8)
RETURNS record
AS 'MODULE_PATHNAME', 'bloomguard_size'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION bloomguard_size(bigint, float8) IS
'size of a filter for so many keys, and its expected rate at 1x, 2x and 5x of them';

/*
 * Tells the planner what a probe lets through, and what it costs.
 */
CREATE FUNCTION bloomguard_might_contain_support(internal)
RETURNS internal
AS 'MODULE_PATHNAME', 'bloomguard_might_contain_support'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION bloomguard_might_contain_support(internal) IS
'planner support for bloomguard_might_contain: selectivity and cost';

/*
 * Probes.  Each has six overloads, so that untyped parameters and literals
 * resolve: text is read by the key type's input function, "char" stands beside
 * it because text would make keys of that type ambiguous.  One C function serves
 * all of them.  Not strict: a NULL is answered as a maybe.
 */
CREATE FUNCTION bloomguard_might_contain(relation regclass, key "any")
RETURNS boolean
AS 'MODULE_PATHNAME', 'bloomguard_might_contain'
LANGUAGE C STABLE PARALLEL SAFE CALLED ON NULL INPUT COST 10
SUPPORT bloomguard_might_contain_support;

COMMENT ON FUNCTION bloomguard_might_contain(regclass, "any") IS
'false: no row has this key, under the relation''s only filter; true: maybe';

CREATE FUNCTION bloomguard_might_contain(relation regclass, key text)
RETURNS boolean
AS 'MODULE_PATHNAME', 'bloomguard_might_contain'
LANGUAGE C STABLE PARALLEL SAFE CALLED ON NULL INPUT COST 10
SUPPORT bloomguard_might_contain_support;

COMMENT ON FUNCTION bloomguard_might_contain(regclass, text) IS
'false: no row has this key, under the relation''s only filter; true: maybe';

CREATE FUNCTION bloomguard_might_contain(relation regclass, key "char")
RETURNS boolean
AS 'MODULE_PATHNAME', 'bloomguard_might_contain'
LANGUAGE C STABLE PARALLEL SAFE CALLED ON NULL INPUT COST 10
SUPPORT bloomguard_might_contain_support;

COMMENT ON FUNCTION bloomguard_might_contain(regclass, "char") IS
'false: no row has this key, under the relation''s only filter; true: maybe';

CREATE FUNCTION bloomguard_might_contain(relation regclass, key_columns text, VARIADIC key "any")
RETURNS boolean
AS 'MODULE_PATHNAME', 'bloomguard_might_contain'
LANGUAGE C STABLE PARALLEL SAFE CALLED ON NULL INPUT COST 10
SUPPORT bloomguard_might_contain_support;

COMMENT ON FUNCTION bloomguard_might_contain(regclass, text, VARIADIC "any") IS
'false: no row has this key in these columns; true: maybe';

CREATE FUNCTION bloomguard_might_contain(relation regclass, key_columns text, VARIADIC key text[])
RETURNS boolean
AS 'MODULE_PATHNAME', 'bloomguard_might_contain'
LANGUAGE C STABLE PARALLEL SAFE CALLED ON NULL INPUT COST 10
SUPPORT bloomguard_might_contain_support;

COMMENT ON FUNCTION bloomguard_might_contain(regclass, text, VARIADIC text[]) IS
'false: no row has this key in these columns; true: maybe';

CREATE FUNCTION bloomguard_might_contain(relation regclass, key_columns text, VARIADIC key "char"[])
RETURNS boolean
AS 'MODULE_PATHNAME', 'bloomguard_might_contain'
LANGUAGE C STABLE PARALLEL SAFE CALLED ON NULL INPUT COST 10
SUPPORT bloomguard_might_contain_support;

COMMENT ON FUNCTION bloomguard_might_contain(regclass, text, VARIADIC "char"[]) IS
'false: no row has this key in these columns; true: maybe';

CREATE FUNCTION bloomguard_check(relation regclass, key "any")
RETURNS text
AS 'MODULE_PATHNAME', 'bloomguard_check'
LANGUAGE C STABLE PARALLEL SAFE CALLED ON NULL INPUT COST 10;

COMMENT ON FUNCTION bloomguard_check(regclass, "any") IS
'absent, maybe or unguarded with the reason, by the relation''s only filter';

CREATE FUNCTION bloomguard_check(relation regclass, key text)
RETURNS text
AS 'MODULE_PATHNAME', 'bloomguard_check'
LANGUAGE C STABLE PARALLEL SAFE CALLED ON NULL INPUT COST 10;

COMMENT ON FUNCTION bloomguard_check(regclass, text) IS
'absent, maybe or unguarded with the reason, by the relation''s only filter';

CREATE FUNCTION bloomguard_check(relation regclass, key "char")
RETURNS text
AS 'MODULE_PATHNAME', 'bloomguard_check'
LANGUAGE C STABLE PARALLEL SAFE CALLED ON NULL INPUT COST 10;

COMMENT ON FUNCTION bloomguard_check(regclass, "char") IS
'absent, maybe or unguarded with the reason, by the relation''s only filter';

CREATE FUNCTION bloomguard_check(relation regclass, key_columns text, VARIADIC key "any")
RETURNS text
AS 'MODULE_PATHNAME', 'bloomguard_check'
LANGUAGE C STABLE PARALLEL SAFE CALLED ON NULL INPUT COST 10;

COMMENT ON FUNCTION bloomguard_check(regclass, text, VARIADIC "any") IS
'absent, maybe or unguarded with the reason, by the filter on these columns';

CREATE FUNCTION bloomguard_check(relation regclass, key_columns text, VARIADIC key text[])
RETURNS text
AS 'MODULE_PATHNAME', 'bloomguard_check'
LANGUAGE C STABLE PARALLEL SAFE CALLED ON NULL INPUT COST 10;

COMMENT ON FUNCTION bloomguard_check(regclass, text, VARIADIC text[]) IS
'absent, maybe or unguarded with the reason, by the filter on these columns';

CREATE FUNCTION bloomguard_check(relation regclass, key_columns text, VARIADIC key "char"[])
RETURNS text
AS 'MODULE_PATHNAME', 'bloomguard_check'
LANGUAGE C STABLE PARALLEL SAFE CALLED ON NULL INPUT COST 10;

COMMENT ON FUNCTION bloomguard_check(regclass, text, VARIADIC "char"[]) IS
'absent, maybe or unguarded with the reason, by the filter on these columns';

/*
 * Views.  The functions behind them show what the user may see.
 */
CREATE FUNCTION bloomguard_filters(
	OUT relation regclass, OUT key_columns text, OUT state text, OUT reason text,
	OUT since timestamptz, OUT false_positive_rate float8, OUT capacity bigint,
	OUT bits bigint, OUT hashes integer, OUT bytes bigint, OUT keys_added bigint,
	OUT estimated_keys bigint, OUT fill float8, OUT estimated_rate float8,
	OUT generation integer, OUT built_at timestamptz, OUT build_seconds float8,
	OUT last_error text)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'bloomguard_filters'
LANGUAGE C VOLATILE PARALLEL RESTRICTED STRICT;

COMMENT ON FUNCTION bloomguard_filters() IS
'behind the view of the same name';

CREATE VIEW bloomguard_filters AS SELECT * FROM bloomguard_filters();
COMMENT ON VIEW bloomguard_filters IS 'filters of this database: definition and state';
COMMENT ON COLUMN bloomguard_filters.relation IS 'guarded relation, the root if partitioned';
COMMENT ON COLUMN bloomguard_filters.key_columns IS 'key columns, as given to bloomguard_track()';
COMMENT ON COLUMN bloomguard_filters.state IS 'ready, building, stale, blocked or no memory';
COMMENT ON COLUMN bloomguard_filters.reason IS 'why it is in that state';
COMMENT ON COLUMN bloomguard_filters.since IS 'when it came into that state';
COMMENT ON COLUMN bloomguard_filters.false_positive_rate IS 'target rate';
COMMENT ON COLUMN bloomguard_filters.capacity IS 'keys it is sized for';
COMMENT ON COLUMN bloomguard_filters.bits IS 'size in bits';
COMMENT ON COLUMN bloomguard_filters.hashes IS 'bits set for each key';
COMMENT ON COLUMN bloomguard_filters.bytes IS 'size in bytes';
COMMENT ON COLUMN bloomguard_filters.keys_added IS 'adds that set at least one new bit, flushed at transaction end';
COMMENT ON COLUMN bloomguard_filters.estimated_keys IS 'distinct keys, estimated from the fill';
COMMENT ON COLUMN bloomguard_filters.fill IS 'share of bits that are set';
COMMENT ON COLUMN bloomguard_filters.estimated_rate IS 'false-positive rate now, estimated from the fill';
COMMENT ON COLUMN bloomguard_filters.generation IS 'builds completed since the server started';
COMMENT ON COLUMN bloomguard_filters.built_at IS 'when the present generation was completed';
COMMENT ON COLUMN bloomguard_filters.build_seconds IS 'how long that took';
COMMENT ON COLUMN bloomguard_filters.last_error IS 'error that ended the last build, if one did';

CREATE FUNCTION bloomguard_stats(
	OUT relation regclass, OUT key_columns text, OUT probes bigint, OUT absent bigint,
	OUT maybe bigint, OUT unguarded bigint, OUT unguarded_reasons jsonb,
	OUT adds bigint, OUT rotations bigint, OUT stats_reset timestamptz)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'bloomguard_stats'
LANGUAGE C VOLATILE PARALLEL RESTRICTED STRICT;

COMMENT ON FUNCTION bloomguard_stats() IS
'behind the view of the same name';

CREATE VIEW bloomguard_stats AS SELECT * FROM bloomguard_stats();
COMMENT ON VIEW bloomguard_stats IS 'counters of the filters of this database, for owners and pg_read_all_stats';
COMMENT ON COLUMN bloomguard_stats.relation IS 'guarded relation, the root if partitioned';
COMMENT ON COLUMN bloomguard_stats.key_columns IS 'key columns, as given to bloomguard_track()';
COMMENT ON COLUMN bloomguard_stats.probes IS 'questions asked';
COMMENT ON COLUMN bloomguard_stats.absent IS 'answered: definitely absent';
COMMENT ON COLUMN bloomguard_stats.maybe IS 'answered: maybe';
COMMENT ON COLUMN bloomguard_stats.unguarded IS 'maybes that were given without asking the filter';
COMMENT ON COLUMN bloomguard_stats.unguarded_reasons IS 'those by reason';
COMMENT ON COLUMN bloomguard_stats.adds IS 'keys added by the trigger';
COMMENT ON COLUMN bloomguard_stats.rotations IS 'builds completed';
COMMENT ON COLUMN bloomguard_stats.stats_reset IS 'counting since then';

CREATE FUNCTION bloomguard_stats_reset()
RETURNS void
AS 'MODULE_PATHNAME', 'bloomguard_stats_reset'
LANGUAGE C VOLATILE PARALLEL RESTRICTED STRICT;

REVOKE ALL ON FUNCTION bloomguard_stats_reset() FROM PUBLIC;

COMMENT ON FUNCTION bloomguard_stats_reset() IS
'zero the counters of all filters of this database';

CREATE FUNCTION bloomguard_progress(
	OUT pid integer, OUT datname name, OUT relation regclass, OUT key_columns text,
	OUT phase text, OUT blocks_total bigint, OUT blocks_done bigint,
	OUT tuples_done bigint, OUT started_at timestamptz)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'bloomguard_progress'
LANGUAGE C VOLATILE PARALLEL RESTRICTED STRICT;

COMMENT ON FUNCTION bloomguard_progress() IS
'behind the view of the same name';

CREATE VIEW bloomguard_progress AS
SELECT *, extract(epoch FROM clock_timestamp() - started_at)::float8 AS seconds
FROM bloomguard_progress();
COMMENT ON VIEW bloomguard_progress IS 'running builds, of all databases';
COMMENT ON COLUMN bloomguard_progress.pid IS 'worker that builds';
COMMENT ON COLUMN bloomguard_progress.datname IS 'its database';
COMMENT ON COLUMN bloomguard_progress.relation IS 'guarded relation; a number when it is in another database';
COMMENT ON COLUMN bloomguard_progress.key_columns IS 'key columns; null when in another database';
COMMENT ON COLUMN bloomguard_progress.phase IS 'checking definition, clearing bits, scanning table or validating';
COMMENT ON COLUMN bloomguard_progress.blocks_total IS 'blocks to scan, of all partitions';
COMMENT ON COLUMN bloomguard_progress.blocks_done IS 'blocks scanned';
COMMENT ON COLUMN bloomguard_progress.tuples_done IS 'tuples whose keys were added';
COMMENT ON COLUMN bloomguard_progress.started_at IS 'start of the build';
COMMENT ON COLUMN bloomguard_progress.seconds IS 'seconds since then';

CREATE FUNCTION bloomguard_memory(
	OUT total_bytes bigint, OUT used_bytes bigint, OUT largest_free_bytes bigint,
	OUT filters integer, OUT max_filters integer)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'bloomguard_memory'
LANGUAGE C VOLATILE PARALLEL RESTRICTED STRICT ROWS 1;

COMMENT ON FUNCTION bloomguard_memory() IS
'behind the view of the same name';

CREATE VIEW bloomguard_memory AS SELECT * FROM bloomguard_memory();
COMMENT ON VIEW bloomguard_memory IS 'use of bloomguard.shared_memory, whole cluster';
COMMENT ON COLUMN bloomguard_memory.total_bytes IS 'bloomguard.shared_memory';
COMMENT ON COLUMN bloomguard_memory.used_bytes IS 'taken by filters, also those being built';
COMMENT ON COLUMN bloomguard_memory.largest_free_bytes IS 'largest filter that can be built now';
COMMENT ON COLUMN bloomguard_memory.filters IS 'filters known, of all databases';
COMMENT ON COLUMN bloomguard_memory.max_filters IS 'bloomguard.max_filters';

GRANT SELECT ON bloomguard_filters, bloomguard_stats, bloomguard_progress,
	bloomguard_memory TO PUBLIC;
