--
-- VIEWS
-- What monitoring relies on.
--

-- Names and types of the columns.
SELECT attrelid::regclass AS view, string_agg(attname || ' ' || format_type(atttypid, atttypmod), ', ' ORDER BY attnum)
FROM pg_attribute
WHERE attrelid IN ('bloomguard_filters'::regclass, 'bloomguard_stats'::regclass,
	'bloomguard_progress'::regclass, 'bloomguard_memory'::regclass) AND attnum > 0
GROUP BY attrelid ORDER BY attrelid::regclass::text COLLATE "C" \gx

-- Workers are asynchronous: poll until the query says true.
CREATE FUNCTION views_wait(query text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
	deadline timestamptz := clock_timestamp() + '60 s';
	done boolean := false;
BEGIN
	LOOP
		EXECUTE query INTO done;
		EXIT WHEN done OR clock_timestamp() > deadline;
	END LOOP;
	RETURN done;
END $$;

-- Nothing is tracked, nothing is built.
SELECT views_wait('SELECT used_bytes = 0 AND filters = 0 FROM bloomguard_memory');
SELECT views_wait('SELECT count(*) = 0 FROM bloomguard_progress');
SELECT * FROM bloomguard_filters;
SELECT * FROM bloomguard_stats;
SELECT * FROM bloomguard_progress;
SELECT total_bytes, used_bytes, largest_free_bytes <= total_bytes AS within, filters, max_filters FROM bloomguard_memory;

--
-- States.
--
CREATE TABLE views_t (k int);
INSERT INTO views_t SELECT generate_series(1, 5000);
BEGIN;
SELECT bloomguard_track('views_t', 'k', 0.01, 10000);
-- seen only by this transaction
SELECT relation, key_columns, state, reason IS NOT NULL AS explained, false_positive_rate, capacity, bits, generation
FROM bloomguard_filters;
SELECT count(*) FROM bloomguard_stats;
COMMIT;
SELECT bloomguard_wait_ready('views_t');
SELECT relation, key_columns, state, reason, false_positive_rate, capacity, bits, hashes, bytes,
	keys_added BETWEEN 4900 AND 5000 AS keys_added, estimated_keys BETWEEN 4800 AND 5200 AS estimated_keys,
	fill BETWEEN 0.28 AND 0.33 AS fill, estimated_rate < 0.001 AS estimated_rate, generation,
	since <= clock_timestamp() AS since, built_at <= clock_timestamp() AS built_at, build_seconds >= 0 AS build_seconds,
	last_error
FROM bloomguard_filters \gx
-- added later: counted when the transaction ends; keys that are there already are none
BEGIN;
INSERT INTO views_t SELECT generate_series(5001, 6000);
INSERT INTO views_t SELECT generate_series(1, 1000);
COMMIT;
SELECT keys_added BETWEEN 5850 AND 6000 AS keys_added, estimated_keys BETWEEN 5750 AND 6250 AS estimated_keys
FROM bloomguard_filters;
SELECT adds, rotations FROM bloomguard_stats;
SELECT views_wait('SELECT count(*) = 0 FROM bloomguard_progress');
SELECT used_bytes >= f.bytes AS used, used_bytes + largest_free_bytes <= total_bytes AS within,
	filters, used_bytes % 64 = 0 AS whole_lines
FROM bloomguard_memory, bloomguard_filters f;

-- blocked, with the reason; and how it comes back
ALTER TABLE views_t DISABLE TRIGGER bloomguard_k;
SELECT bloomguard_wait_ready('views_t');
SELECT state, reason, bits FROM bloomguard_filters;
SELECT bloomguard_check('views_t', 0);
ALTER TABLE views_t ENABLE REPLICA TRIGGER bloomguard_k;
SELECT bloomguard_wait_ready('views_t');
SELECT state, reason FROM bloomguard_filters;
-- state "O" is repaired by the worker
ALTER TABLE views_t ENABLE TRIGGER bloomguard_k;
SELECT bloomguard_wait_ready('views_t');
SELECT tgenabled FROM pg_trigger WHERE tgname = 'bloomguard_k';
SELECT state, reason FROM bloomguard_filters;
-- a trigger that no longer sees every row
CREATE OR REPLACE TRIGGER bloomguard_k AFTER INSERT ON views_t FOR EACH ROW EXECUTE FUNCTION bloomguard_maintain('k');
SELECT bloomguard_wait_ready('views_t');
SELECT state, reason FROM bloomguard_filters;
CREATE OR REPLACE TRIGGER bloomguard_k AFTER INSERT OR UPDATE ON views_t FOR EACH ROW WHEN (NEW.k > 0)
	EXECUTE FUNCTION bloomguard_maintain('k');
SELECT bloomguard_wait_ready('views_t');
SELECT state, reason FROM bloomguard_filters;
CREATE OR REPLACE TRIGGER bloomguard_k AFTER INSERT OR UPDATE OF k ON views_t FOR EACH ROW
	EXECUTE FUNCTION bloomguard_maintain('k');
SELECT bloomguard_wait_ready('views_t');
SELECT state, reason FROM bloomguard_filters;
CREATE OR REPLACE TRIGGER bloomguard_k AFTER INSERT OR UPDATE ON views_t FOR EACH ROW
	EXECUTE FUNCTION bloomguard_maintain('no_such_column');
SELECT bloomguard_wait_ready('views_t');
SELECT state, reason FROM bloomguard_filters;
CREATE OR REPLACE TRIGGER bloomguard_k AFTER INSERT OR UPDATE ON views_t FOR EACH ROW
	EXECUTE FUNCTION bloomguard_maintain('k', 'capacity=many');
SELECT bloomguard_wait_ready('views_t');
SELECT state, reason FROM bloomguard_filters;
INSERT INTO views_t VALUES (7000);
SELECT bloomguard_might_contain('views_t', 'k', 7000) AS maybe;
CREATE OR REPLACE TRIGGER bloomguard_k AFTER INSERT OR UPDATE ON views_t FOR EACH ROW
	EXECUTE FUNCTION bloomguard_maintain('k', 'capacity=10000');
SELECT bloomguard_wait_ready('views_t');
SELECT tgenabled FROM pg_trigger WHERE tgname = 'bloomguard_k';
SELECT state, reason FROM bloomguard_filters;
SELECT * FROM oracle('views_t', 'k', '0');

-- no memory: said which setting and how much; the others are not disturbed
CREATE TABLE views_big (k int);
SELECT bloomguard_track('views_big', 'k', 0.01, 1000000000);
SELECT bloomguard_wait_ready('views_big');
SELECT relation, state, regexp_replace(reason, '\d+', 'N', 'g') AS reason, bits FROM bloomguard_filters
ORDER BY relation::text COLLATE "C";
INSERT INTO views_big VALUES (1);
SELECT bloomguard_check('views_big', 1), bloomguard_might_contain('views_big', 2) AS maybe;
SELECT * FROM oracle('views_t', 'k', '0');
-- with less it fits
SELECT bloomguard_track('views_big', 'k', 0.01, 10000);
SELECT wait_generation('views_big', 1);
SELECT * FROM oracle('views_big', 'k', '2');
-- a rotation that does not fit keeps the old generation in service
SELECT bloomguard_track('views_big', 'k', 0.01, 1000000000);
SELECT views_wait($$SELECT reason ~ 'bloomguard.shared_memory' FROM bloomguard_filters WHERE relation = 'views_big'::regclass$$);
INSERT INTO views_big VALUES (3);
SELECT * FROM oracle('views_big', 'k', '2');
SELECT relation, state, capacity FROM bloomguard_filters WHERE relation = 'views_big'::regclass;
DROP TABLE views_big;

--
-- Counters: exactly what was asked, flushed when the transaction ends.
--
CREATE TABLE views_c (k int, v int);
INSERT INTO views_c SELECT i, i FROM generate_series(1, 10) i;
SELECT bloomguard_track('views_c', 'k');
SELECT bloomguard_wait_ready('views_c');
CREATE VIEW views_counters AS
SELECT probes, absent, maybe, unguarded, unguarded_reasons, adds,
	least(rotations, 1) AS rotations	-- DDL may be followed by two builds
FROM bloomguard_stats WHERE relation = 'views_c'::regclass;
SELECT bloomguard_stats_reset();
SELECT * FROM views_counters;
SELECT stats_reset BETWEEN clock_timestamp() - interval '1 min' AND clock_timestamp() AS just_now
FROM bloomguard_stats WHERE relation = 'views_c'::regclass;

SELECT count(bloomguard_check('views_c', k)) AS three_absent_two_maybe FROM (VALUES (0), (11), (12), (1), (2)) v(k);
SELECT * FROM views_counters;
-- within a transaction not yet
BEGIN;
SELECT bloomguard_might_contain('views_c', 0);
SELECT probes FROM views_counters;
COMMIT;
SELECT probes FROM views_counters;
-- rolled back, they have been asked all the same
BEGIN;
SELECT bloomguard_might_contain('views_c', 1);
ROLLBACK;
SELECT * FROM views_counters;
-- NULL
SELECT bloomguard_might_contain('views_c', NULL::int);
-- disabled
SET bloomguard.enabled = off;
SELECT bloomguard_check('views_c', 0), bloomguard_check('views_c', 1);
RESET bloomguard.enabled;
SELECT * FROM views_counters;
-- SERIALIZABLE, where a scan that is spared would not be seen by anybody
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT bloomguard_check('views_c', 0), bloomguard_might_contain('views_c', 0);
COMMIT;
-- REPEATABLE READ is answered
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT bloomguard_check('views_c', 0);
COMMIT;
SELECT * FROM views_counters;
-- not ready
BEGIN;
ALTER TABLE views_c ALTER k TYPE bigint;
SELECT bloomguard_check('views_c', 0);
COMMIT;
SELECT bloomguard_wait_ready('views_c');
SELECT * FROM views_counters;
-- in flight: the row is there, its key is not yet added
CREATE FUNCTION views_ask(k int) RETURNS text LANGUAGE plpgsql VOLATILE AS
	$$BEGIN RETURN bloomguard_check('views_c', k); END$$;
INSERT INTO views_c VALUES (20, 20) RETURNING views_ask(20);
SELECT * FROM views_counters;
-- row security
CREATE ROLE regress_bloomguard_user;
GRANT SELECT ON views_c TO regress_bloomguard_user;
ALTER TABLE views_c ENABLE ROW LEVEL SECURITY;
SET ROLE regress_bloomguard_user;
SELECT bloomguard_check('views_c', 0);
RESET ROLE;
SELECT * FROM views_counters;
-- adds: every INSERT and UPDATE of a row, also when its key stays
UPDATE views_c SET v = 0 WHERE k <= 5;
INSERT INTO views_c VALUES (NULL, 1), (21, 1);
SELECT adds FROM views_counters;
-- sums are right
SELECT probes = absent + maybe AS probes, unguarded <= maybe AS maybes,
	unguarded = (SELECT sum(value::int) FROM jsonb_each_text(unguarded_reasons)) AS reasons FROM views_counters;
SELECT bloomguard_stats_reset();
SELECT * FROM views_counters;
SELECT * FROM oracle('views_c', 'k', '0');

-- what a filter held is given back
SELECT used_bytes AS used FROM bloomguard_memory \gset
SELECT bloomguard_untrack('views_c');
SELECT bloomguard_untrack('views_t');
SELECT views_wait('SELECT used_bytes = 0 AND filters = 0 FROM bloomguard_memory');
SELECT used_bytes < :used AS less, largest_free_bytes = total_bytes AS all_free FROM bloomguard_memory;
DROP FUNCTION views_wait, views_ask;
DROP VIEW views_counters;
DROP TABLE views_c, views_t;
DROP ROLE regress_bloomguard_user;

--
-- A reason that is too long is cut between two characters
--
CREATE TABLE views_long (id int);
DO $$ BEGIN
	EXECUTE format('CREATE TRIGGER g AFTER INSERT OR UPDATE ON views_long
		FOR EACH ROW EXECUTE FUNCTION bloomguard_maintain(%L)', 'xy ' || repeat('é', 200));
END $$;
SELECT bloomguard_wait_ready('views_long');
SELECT state, octet_length(reason), length(reason), right(convert_from(convert_to(reason, 'UTF8'), 'UTF8'), 3)
FROM bloomguard_filters WHERE relation = 'views_long'::regclass;
DROP TABLE views_long;
