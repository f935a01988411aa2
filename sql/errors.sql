--
-- ERRORS
-- What cannot be guarded is refused with an error that says why and what to do
-- instead: SQLSTATE, message, detail, hint.
--
\pset format unaligned
\pset tuples_only on
CREATE TABLE errors_t (id int, t text, c1 int, c2 int, c3 int, c4 int, c5 int, c6 int, c7 int, c8 int, c9 int);
INSERT INTO errors_t (id, t) VALUES (1, 'a');

--
-- Relations.
--
CREATE TEMP TABLE errors_temp (id int);
SELECT refused($$SELECT bloomguard_track('errors_temp', 'id')$$);

CREATE FOREIGN DATA WRAPPER errors_wrapper;
CREATE SERVER errors_server FOREIGN DATA WRAPPER errors_wrapper;
CREATE FOREIGN TABLE errors_foreign (id int) SERVER errors_server;
SELECT refused($$SELECT bloomguard_track('errors_foreign', 'id')$$);

CREATE VIEW errors_view AS SELECT id FROM errors_t;
SELECT refused($$SELECT bloomguard_track('errors_view', 'id')$$);
CREATE MATERIALIZED VIEW errors_matview AS SELECT id FROM errors_t;
SELECT refused($$SELECT bloomguard_track('errors_matview', 'id')$$);
CREATE SEQUENCE errors_sequence;
SELECT refused($$SELECT bloomguard_track('errors_sequence', 'last_value')$$);
CREATE INDEX errors_index ON errors_t (id);
SELECT refused($$SELECT bloomguard_track('errors_index', 'id')$$);
CREATE TYPE errors_row AS (id int);
SELECT refused($$SELECT bloomguard_track('errors_row', 'id')$$);
SELECT refused(format('SELECT bloomguard_track(%L, ''chunk_id'')', reltoastrelid::regclass)) ~ '^42809: cannot track relation "pg_toast_'
FROM pg_class WHERE oid = 'errors_t'::regclass;

CREATE TABLE errors_parent (id int);
CREATE TABLE errors_child () INHERITS (errors_parent);
SELECT refused($$SELECT bloomguard_track('errors_parent', 'id')$$);
-- a child may be
SELECT refused($$SELECT bloomguard_track('errors_child', 'id')$$);

CREATE ACCESS METHOD errors_heap TYPE TABLE HANDLER heap_tableam_handler;
CREATE TABLE errors_am (id int) USING errors_heap;
SELECT refused($$SELECT bloomguard_track('errors_am', 'id')$$);

-- partitions
CREATE TABLE errors_part (id int) PARTITION BY RANGE (id);
CREATE TABLE errors_part_1 PARTITION OF errors_part FOR VALUES FROM (0) TO (10);
SELECT refused($$SELECT bloomguard_track('errors_part_1', 'id')$$);
CREATE FOREIGN TABLE errors_part_2 PARTITION OF errors_part FOR VALUES FROM (10) TO (20) SERVER errors_server;
SELECT refused($$SELECT bloomguard_track('errors_part', 'id')$$);
DROP FOREIGN TABLE errors_part_2;
CREATE TABLE errors_part_2 PARTITION OF errors_part FOR VALUES FROM (10) TO (20) USING errors_heap;
SELECT refused($$SELECT bloomguard_track('errors_part', 'id')$$);
DROP TABLE errors_part_2;
CREATE TABLE errors_part_2 (id int);
SELECT bloomguard_track('errors_part_2', 'id');
ALTER TABLE errors_part ATTACH PARTITION errors_part_2 FOR VALUES FROM (10) TO (20);
SELECT refused($$SELECT bloomguard_track('errors_part', 'id')$$);
DROP TABLE errors_part;

SELECT refused($$SELECT bloomguard_track(NULL, 'id')$$);
SELECT refused($$SELECT bloomguard_track(1, 'id')$$);
SELECT refused($$SELECT bloomguard_track('errors_nowhere', 'id')$$);

--
-- Columns and types.
--
SELECT refused($$SELECT bloomguard_track('errors_t', 'nosuch')$$);
SELECT refused($$SELECT bloomguard_track('errors_t', 'id, nosuch')$$);
SELECT refused($$SELECT bloomguard_track('errors_t', 'ID, "T"')$$);
SELECT refused($$SELECT bloomguard_track('errors_t', 'ctid')$$);
SELECT refused($$SELECT bloomguard_track('errors_t', 'id, xmin')$$);
SELECT refused($$SELECT bloomguard_track('errors_t', 'tableoid')$$);
SELECT refused($$SELECT bloomguard_track('errors_t', 'c1,c2,c3,c4,c5,c6,c7,c8,c9')$$);
SELECT refused($$SELECT bloomguard_track('errors_t', 'id, t, id')$$);
SELECT refused($$SELECT bloomguard_track('errors_t', 'id, "id"')$$);
SELECT refused($$SELECT bloomguard_track('errors_t', '')$$);
SELECT refused($$SELECT bloomguard_track('errors_t', '  ')$$);
SELECT refused($$SELECT bloomguard_track('errors_t', ',')$$);
SELECT refused($$SELECT bloomguard_track('errors_t', 'id,')$$);
SELECT refused($$SELECT bloomguard_track('errors_t', 'id t')$$);
SELECT refused($$SELECT bloomguard_track('errors_t', '"id')$$);
SELECT refused($$SELECT bloomguard_track('errors_t', 'lower(t)')$$);
SELECT refused($$SELECT bloomguard_track('errors_t', NULL)$$);
ALTER TABLE errors_t DROP COLUMN c9;
SELECT refused($$SELECT bloomguard_track('errors_t', 'c9')$$);

CREATE TYPE errors_pair AS (a int, b text);
CREATE TYPE errors_pair_range AS RANGE (SUBTYPE = errors_pair);
CREATE DOMAIN errors_pair_domain AS errors_pair;
CREATE DOMAIN errors_pairs_domain AS errors_pair[];
CREATE DOMAIN errors_money AS money;
CREATE COLLATION errors_ci (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE TABLE errors_types (money money, money_domain errors_money, money_array money[], bit bit(3), varbit varbit,
	tsvector tsvector, tsquery tsquery, json json, xml xml, point point, box box, txid_snapshot txid_snapshot,
	pair errors_pair, pairs errors_pair[], pair_range errors_pair_range, pair_multirange errors_pair_multirange,
	pair_domain errors_pair_domain, pair_domains errors_pair_domain[], pairs_domain errors_pairs_domain,
	row_type errors_am, row_types errors_am[], json_array json[],
	ci_name name COLLATE errors_ci, ci_chars char(3)[] COLLATE errors_ci);
SELECT attname || ' -> ' || refused(format('SELECT bloomguard_track(''errors_types'', %L)', attname))
FROM pg_attribute WHERE attrelid = 'errors_types'::regclass AND attnum > 0 ORDER BY attnum;
-- one such column is enough
ALTER TABLE errors_types ADD id int;
SELECT refused($$SELECT bloomguard_track('errors_types', 'id, json')$$);

--
-- Rate and capacity.
--
SELECT r || ' -> ' || refused(format('SELECT bloomguard_track(''errors_t'', ''id'', %L)', r))
FROM unnest('{0, 1, -0.1, 0.51, 9e-10, NaN, Infinity, -Infinity}'::text[]) r;
SELECT c || ' -> ' || refused(format('SELECT bloomguard_track(''errors_t'', ''id'', NULL, %L)', c))
FROM unnest('{0, -1, 1000000000001, 9223372036854775807}'::text[]) c;
SELECT r || ' -> ' || refused(format('SELECT bloomguard_size(1000, %L)', r))
FROM unnest('{0, 1, -0.1, 0.51, 9e-10, NaN, Infinity}'::text[]) r;
SELECT c || ' -> ' || refused(format('SELECT bloomguard_size(%L, 0.01)', c))
FROM unnest('{0, -1, 1000000000001, -9223372036854775808}'::text[]) c;
-- the limits themselves are allowed
SELECT refused($$SELECT bloomguard_track('errors_t', 'id', 0.5, 1)$$);
SELECT refused($$SELECT bloomguard_track('errors_t', 'id', 1e-9, 1000000000000)$$);
SELECT hashes FROM bloomguard_size(1000000000000, 1e-9);

-- None of this left anything behind.
SELECT count(*) FROM pg_trigger WHERE tgfoid = 'bloomguard_maintain'::regproc AND tgrelid = 'errors_t'::regclass;

--
-- The other functions.
--
SELECT refused($$SELECT bloomguard_untrack('errors_t')$$);
SELECT refused($$SELECT bloomguard_untrack('errors_t', 'id')$$);
SELECT refused($$SELECT bloomguard_untrack(NULL)$$);
SELECT refused($$SELECT bloomguard_untrack(1)$$);
SELECT refused($$SELECT bloomguard_rebuild('errors_t')$$);
SELECT refused($$SELECT bloomguard_rebuild(NULL)$$);
SELECT refused($$SELECT bloomguard_rebuild(1)$$);
SELECT refused($$SELECT bloomguard_wait_ready('errors_t')$$);
SELECT refused($$SELECT bloomguard_wait_ready(NULL)$$);
SELECT refused($$SELECT bloomguard_wait_ready(1)$$);
SELECT refused($$SELECT * FROM bloomguard_verify('errors_t')$$);
SELECT refused($$SELECT * FROM bloomguard_verify('errors_t', 'id')$$);
SELECT refused($$SELECT * FROM bloomguard_verify(NULL)$$);
SELECT refused($$SELECT * FROM bloomguard_verify(1)$$);
SELECT bloomguard_track('errors_t', 'id, t');
SELECT refused($$SELECT bloomguard_untrack('errors_t', 'id')$$);
SELECT refused($$SELECT bloomguard_untrack('errors_t', 't, id')$$);
SELECT refused($$SELECT bloomguard_rebuild('errors_t', 'id')$$);
SELECT refused($$SELECT bloomguard_rebuild('errors_t', 'id,,')$$);
SELECT refused($$SELECT bloomguard_wait_ready('errors_t', NULL)$$);
SELECT refused($$SELECT * FROM bloomguard_verify('errors_t', 'id')$$);
SELECT bloomguard_wait_ready('errors_t');

-- under SERIALIZABLE the oracle could not fail
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT refused($$SELECT * FROM bloomguard_verify('errors_t')$$);
COMMIT;
-- not ready
BEGIN;
ALTER TABLE errors_t ALTER t TYPE varchar(10);
SELECT refused($$SELECT * FROM bloomguard_verify('errors_t')$$);
COMMIT;
SELECT bloomguard_wait_ready('errors_t');
SELECT rows_scanned, rows_absent FROM bloomguard_verify('errors_t');
-- inside of a statement that writes the table
CREATE FUNCTION errors_verify() RETURNS trigger LANGUAGE plpgsql AS
	$$BEGIN PERFORM * FROM bloomguard_verify('errors_t'); RETURN NULL; END$$;
CREATE TRIGGER a_first AFTER INSERT ON errors_t FOR EACH ROW EXECUTE FUNCTION errors_verify();
SELECT refused($$INSERT INTO errors_t (id, t) VALUES (2, 'b')$$);
DROP TRIGGER a_first ON errors_t;
DROP FUNCTION errors_verify;
-- a read-only transaction
BEGIN READ ONLY;
SELECT refused($$SELECT bloomguard_track('errors_t', 'id')$$);
SELECT bloomguard_check('errors_t', 'id, t', 2, 'b');
COMMIT;

--
-- Questions that cannot be meant.
--
SELECT refused($$SELECT bloomguard_might_contain('errors_t', 'id, nosuch', 1, 'a')$$);
SELECT refused($$SELECT bloomguard_might_contain('errors_t', 'id, t', 1)$$);
SELECT refused($$SELECT bloomguard_might_contain('errors_t', 1)$$);
SELECT refused($$SELECT bloomguard_might_contain('errors_t', 'id, t', 1, 'a', 3)$$);
SELECT refused($$SELECT bloomguard_might_contain('errors_t', 'id, t', VARIADIC '{1,a,3}'::text[])$$);
SELECT refused($$SELECT bloomguard_might_contain('errors_t', 'id, t', VARIADIC '{}'::text[])$$);
SELECT refused($$SELECT bloomguard_might_contain('errors_t', 'id,, t', 1, 'a')$$);
SELECT refused($$SELECT bloomguard_might_contain('errors_t', NULL::text, 1, 'a')$$);
SELECT refused($$SELECT bloomguard_might_contain('errors_t', 'id, t', 1, 2, 3, 4, 5, 6, 7, 8, 9, 10)$$);
SELECT refused($$SELECT bloomguard_might_contain('errors_nowhere', 1)$$);

\pset tuples_only off
\pset format aligned
SELECT * FROM oracle('errors_t', 'id, t', '1', 'b');
SET client_min_messages = warning;
DROP TABLE errors_t, errors_types, errors_parent, errors_am, errors_temp CASCADE;
DROP TYPE errors_pair CASCADE;
RESET client_min_messages;
DROP TYPE errors_row;
DROP DOMAIN errors_money;
DROP COLLATION errors_ci;
DROP ACCESS METHOD errors_heap;
DROP SEQUENCE errors_sequence;
DROP FOREIGN TABLE errors_foreign;
DROP SERVER errors_server;
DROP FOREIGN DATA WRAPPER errors_wrapper;
