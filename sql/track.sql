--
-- TRACK
-- bloomguard_track() and bloomguard_untrack() on what can be guarded.
--

-- what defines a filter, with partitions
CREATE VIEW track_triggers AS
SELECT tgrelid::regclass AS relation, tgname, tgenabled, tgparentid <> 0 AS clone,
	regexp_replace(encode(tgargs, 'escape'), E'\\\\000', ' | ', 'g') AS arguments
FROM pg_trigger WHERE tgfoid = 'bloomguard_maintain'::regproc
ORDER BY tgrelid::regclass::text COLLATE "C", tgname COLLATE "C";

--
-- A plain table, with rows before and after.
--
CREATE TABLE track_plain (id int PRIMARY KEY, email text);
INSERT INTO track_plain SELECT i, 'user' || i FROM generate_series(1, 500) i;
SELECT bloomguard_track('track_plain', 'id');
SELECT bloomguard_wait_ready('track_plain');
INSERT INTO track_plain SELECT i, 'user' || i FROM generate_series(501, 1000) i;
SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE tgrelid = 'track_plain'::regclass AND tgname ~ 'bloom';
SELECT * FROM track_triggers;
SELECT state, reason, false_positive_rate, capacity >= 1000 AS roomy, hashes, generation, last_error
FROM bloomguard_filters WHERE relation = 'track_plain'::regclass;
SELECT * FROM oracle('track_plain', 'id', '0');

--
-- Tracking again changes the arguments in place: the same trigger, always ready,
-- and a rotation.
--
SELECT oid AS tgoid FROM pg_trigger WHERE tgrelid = 'track_plain'::regclass AND tgname ~ 'bloom' \gset
SELECT bloomguard_track('track_plain', ' ID ', 0.001, 20000);
SELECT bloomguard_wait_ready('track_plain', '0');
SELECT wait_generation('track_plain', 2);
SELECT * FROM track_triggers;
SELECT count(*) AS same_trigger FROM pg_trigger WHERE oid = :tgoid;
SELECT state, false_positive_rate, capacity, hashes FROM bloomguard_filters WHERE relation = 'track_plain'::regclass;
SELECT * FROM oracle('track_plain', 'id', '0');
-- what is not given is resolved at each build again
SELECT bloomguard_track('track_plain', 'id');
SELECT wait_generation('track_plain', 3);
SELECT * FROM track_triggers;
SELECT false_positive_rate, capacity < 20000 AS from_table FROM bloomguard_filters WHERE relation = 'track_plain'::regclass;
-- nothing of it when rolled back; the trigger's row in use is the old one
BEGIN;
SELECT bloomguard_track('track_plain', 'id', 0.5);
SELECT bloomguard_check('track_plain', 0) AS still_answers;
ROLLBACK;
SELECT * FROM track_triggers;
SELECT * FROM oracle('track_plain', 'id', '0');
-- a rebuild is a rotation as well
SELECT bloomguard_rebuild('track_plain');
SELECT wait_generation('track_plain', 4);
SELECT bloomguard_rebuild('track_plain', 'id');
SELECT wait_generation('track_plain', 5);
SELECT * FROM oracle('track_plain', 'id', '0');

--
-- Several filters on one relation.
--
SELECT bloomguard_track('track_plain', 'email'), bloomguard_track('track_plain', 'id, email'),
	bloomguard_track('track_plain', 'email,id');
SELECT bloomguard_wait_ready('track_plain');
SELECT key_columns, state FROM bloomguard_filters WHERE relation = 'track_plain'::regclass
ORDER BY key_columns COLLATE "C";
SELECT refused($$SELECT bloomguard_might_contain('track_plain', 5)$$);
SELECT bloomguard_check('track_plain', 'id', 5) AS id, bloomguard_check('track_plain', 'email', 'user5') AS email,
	bloomguard_check('track_plain', 'id, email', 5, 'user5') AS both,
	bloomguard_check('track_plain', 'id, email', 5, 'user6') AS crossed,
	bloomguard_check('track_plain', 'email, id', 'user5', 5) AS turned;
INSERT INTO track_plain VALUES (1001, 'user1001');
SELECT * FROM oracle('track_plain', 'id', '0');
SELECT * FROM oracle('track_plain', 'email', 'user0');
SELECT * FROM oracle('track_plain', 'id, email', '1', 'user2');
SELECT * FROM oracle('track_plain', 'email, id', 'user1', '2');

-- untrack one, then the rest
SELECT bloomguard_untrack('track_plain', 'id, email');
SELECT tgname FROM track_triggers;
SELECT refused($$SELECT bloomguard_untrack('track_plain', 'id, email')$$);
BEGIN;
SELECT bloomguard_untrack('track_plain');
SELECT count(*) FROM track_triggers;
ROLLBACK;
SELECT bloomguard_wait_ready('track_plain');
SELECT * FROM oracle('track_plain', 'email', 'user0');
SELECT bloomguard_untrack('track_plain');
SELECT count(*) FROM track_triggers;
SELECT count(*) FROM bloomguard_filters;
SELECT refused($$SELECT bloomguard_untrack('track_plain')$$);
-- and again from the start
SELECT bloomguard_track('track_plain', 'id');
SELECT * FROM oracle('track_plain', 'id', '0');
DROP TABLE track_plain;
SELECT count(*) FROM bloomguard_filters;

--
-- Rolled back, nothing remains; neither of a savepoint.
--
CREATE TABLE track_back (a int, b int);
BEGIN;
SELECT bloomguard_track('track_back', 'a');
INSERT INTO track_back VALUES (1, 1);
SELECT bloomguard_check('track_back', 1);
ROLLBACK;
SELECT count(*) FROM track_triggers;
SELECT count(*) FROM bloomguard_filters;
BEGIN;
SELECT bloomguard_track('track_back', 'a');
SAVEPOINT s;
SELECT bloomguard_track('track_back', 'b', 0.1);
SELECT bloomguard_track('track_back', 'a', 0.1);
INSERT INTO track_back VALUES (7, 7);
ROLLBACK TO s;
INSERT INTO track_back VALUES (1, 2);
COMMIT;
SELECT * FROM track_triggers;
SELECT * FROM oracle('track_back', 'a', '7');
-- untracked in a savepoint that is rolled back
BEGIN;
SAVEPOINT s;
SELECT bloomguard_untrack('track_back');
INSERT INTO track_back VALUES (8, 8);
SELECT bloomguard_might_contain('track_back', 8) AS without_filter;
ROLLBACK TO s;
INSERT INTO track_back VALUES (9, 9);
SELECT bloomguard_might_contain('track_back', 9) AS maybe;
COMMIT;
SELECT * FROM oracle('track_back', 'a', '7');
-- untracked and tracked in one transaction
BEGIN;
SELECT bloomguard_untrack('track_back');
INSERT INTO track_back VALUES (10, 10);
SELECT bloomguard_track('track_back', 'a');
INSERT INTO track_back VALUES (11, 11);
SELECT bloomguard_might_contain('track_back', 10) AS before, bloomguard_might_contain('track_back', 11) AS after;
COMMIT;
SELECT * FROM oracle('track_back', 'a', '7');
DROP TABLE track_back;

--
-- Partitions of partitions: the root's trigger is cloned to all, also to those
-- that come later, and fires always.
--
CREATE TABLE track_part (id int, region text, day date) PARTITION BY LIST (region);
CREATE TABLE track_part_eu PARTITION OF track_part FOR VALUES IN ('eu') PARTITION BY RANGE (id);
CREATE TABLE track_part_eu_1 PARTITION OF track_part_eu FOR VALUES FROM (0) TO (100);
CREATE TABLE track_part_us PARTITION OF track_part FOR VALUES IN ('us');
INSERT INTO track_part SELECT i, 'eu', '2024-01-01' FROM generate_series(0, 49) i;
INSERT INTO track_part SELECT i, 'us', '2024-01-01' FROM generate_series(1000, 1049) i;
SELECT bloomguard_track('track_part', 'id');
SELECT bloomguard_wait_ready('track_part');
CREATE TABLE track_part_eu_2 PARTITION OF track_part_eu FOR VALUES FROM (100) TO (200);
CREATE TABLE track_part_default PARTITION OF track_part DEFAULT;
INSERT INTO track_part SELECT i, 'eu', '2024-01-01' FROM generate_series(50, 150) i;
INSERT INTO track_part VALUES (5000, 'asia', '2024-01-01');
INSERT INTO track_part_us VALUES (6000, 'us', '2024-01-01');
SELECT * FROM track_triggers;
SELECT relation, key_columns, state FROM bloomguard_filters;
SELECT bloomguard_check('track_part', 150) AS eu, bloomguard_check('track_part', 5000) AS asia,
	bloomguard_check('track_part', 6000) AS us, bloomguard_check('track_part', 200) AS nowhere;
SELECT * FROM oracle('track_part', 'id', '7000');
-- changed arguments reach every clone
SELECT bloomguard_track('track_part', 'id', 0.02, 30000);
SELECT wait_generation('track_part', 2);
SELECT DISTINCT arguments, tgenabled FROM track_triggers;
SELECT * FROM oracle('track_part', 'id', '7000');
-- refused for a partition, with the way out
SELECT refused($$SELECT bloomguard_track('track_part_us', 'id')$$);
SELECT refused($$SELECT bloomguard_track('track_part_eu', 'id')$$);
SELECT refused($$SELECT bloomguard_untrack('track_part_us')$$);
SELECT bloomguard_untrack('track_part');
SELECT count(*) FROM track_triggers;
DROP TABLE track_part;

--
-- Unlogged tables, and up to eight key columns.
--
CREATE UNLOGGED TABLE track_wide (c1 int, c2 int, c3 text, c4 int, c5 numeric, c6 date, c7 bool, c8 uuid);
INSERT INTO track_wide SELECT i, i, i, i, i, '2024-01-01', true, md5(i::text)::uuid FROM generate_series(1, 50) i;
SELECT bloomguard_track('track_wide', string_agg('c' || i, ', ' ORDER BY i))
FROM generate_series(1, 8) n, generate_series(1, n) i GROUP BY n;
SELECT bloomguard_wait_ready('track_wide');
INSERT INTO track_wide SELECT i, i, i, i, i, '2024-01-01', true, md5(i::text)::uuid FROM generate_series(51, 100) i;
SELECT * FROM oracle('track_wide', 'c1', '0');
SELECT * FROM oracle('track_wide', 'c1, c2', '1', '2');
SELECT * FROM oracle('track_wide', 'c1, c2, c3', '1', '1', '2');
SELECT * FROM oracle('track_wide', 'c1, c2, c3, c4', '1', '1', '1', '2');
SELECT * FROM oracle('track_wide', 'c1, c2, c3, c4, c5', '1', '1', '1', '1', '2');
SELECT * FROM oracle('track_wide', 'c1, c2, c3, c4, c5, c6', '1', '1', '1', '1', '1', '2024-01-02');
SELECT * FROM oracle('track_wide', 'c1, c2, c3, c4, c5, c6, c7', '1', '1', '1', '1', '1', '2024-01-01', 'false');
SELECT * FROM oracle('track_wide', 'c1, c2, c3, c4, c5, c6, c7, c8', '1', '1', '1', '1', '1', '2024-01-01', 'true',
	md5('2'));
DROP TABLE track_wide;

--
-- Names that need quoting, that are taken, that are long, and a search_path
-- that does not help.
--
CREATE SCHEMA "Track ""S""";
CREATE TABLE "Track ""S"""."T, 'x'" ("E, mail" text, "c""d" int, lower int, "Lower" int);
INSERT INTO "Track ""S"""."T, 'x'" VALUES ('a', 1, 2, 3);
SELECT bloomguard_track('"Track ""S"""."T, ''x''"', '"E, mail", "c""d"');
SELECT bloomguard_track('"Track ""S"""."T, ''x''"', 'LOWER');
SELECT bloomguard_track('"Track ""S"""."T, ''x''"', '"Lower"');
SELECT * FROM track_triggers;
SELECT key_columns FROM bloomguard_filters ORDER BY key_columns COLLATE "C";
INSERT INTO "Track ""S"""."T, 'x'" VALUES ('b', 2, 4, 5);
SELECT * FROM oracle('"Track ""S"""."T, ''x''"', '"E, mail", "c""d"', 'a', '2');
SELECT * FROM oracle('"Track ""S"""."T, ''x''"', 'lower', '3');
SELECT * FROM oracle('"Track ""S"""."T, ''x''"', '"Lower"', '2');
SELECT bloomguard_untrack('"Track ""S"""."T, ''x''"', '"E, mail","c""d"');
SELECT tgname FROM track_triggers;
DROP SCHEMA "Track ""S""" CASCADE;

CREATE TABLE track_name (id int, a_b int, a int, b int,
	a_column_whose_name_is_as_long_as_any_name_can_be_in_postgresql int,
	a_column_whose_name_is_as_long_as_any_name_can_be_in_postgresqm int);
CREATE FUNCTION track_noop() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE TRIGGER bloomguard_id AFTER INSERT ON track_name FOR EACH ROW EXECUTE FUNCTION track_noop();
CREATE TRIGGER bloomguard_id1 AFTER INSERT ON track_name FOR EACH ROW EXECUTE FUNCTION track_noop();
SET search_path = pg_catalog;
SELECT public.bloomguard_track('public.track_name', 'id'), public.bloomguard_track('public.track_name', 'a_b'),
	public.bloomguard_track('public.track_name', 'a, b'),
	public.bloomguard_track('public.track_name', 'a_column_whose_name_is_as_long_as_any_name_can_be_in_postgresql'),
	public.bloomguard_track('public.track_name', 'a_column_whose_name_is_as_long_as_any_name_can_be_in_postgresqm');
RESET search_path;
SELECT tgname, arguments FROM track_triggers;
INSERT INTO track_name SELECT i, i, i, i, i, i FROM generate_series(1, 10) i;
SELECT * FROM oracle('track_name', 'id', '0');
SELECT * FROM oracle('track_name', 'a, b', '1', '2');
SELECT * FROM oracle('track_name', 'a_column_whose_name_is_as_long_as_any_name_can_be_in_postgresqm', '0');
-- a name taken on a partition only
CREATE TABLE track_name_part (id int) PARTITION BY LIST (id);
CREATE TABLE track_name_part_1 PARTITION OF track_name_part FOR VALUES IN (1);
CREATE TRIGGER bloomguard_id AFTER INSERT ON track_name_part_1 FOR EACH ROW EXECUTE FUNCTION track_noop();
SELECT bloomguard_track('track_name_part', 'id');
INSERT INTO track_name_part VALUES (1);
SELECT tgname FROM track_triggers WHERE relation = 'track_name_part_1'::regclass;
SELECT * FROM oracle('track_name_part', 'id', '2');
DROP TABLE track_name, track_name_part;
DROP FUNCTION track_noop;

--
-- Capacity from the table's size, with headroom, analyzed or not.
--
CREATE TABLE track_size (k int);
INSERT INTO track_size SELECT generate_series(1, 60000);
SELECT bloomguard_track('track_size', 'k');
SELECT bloomguard_wait_ready('track_size');
SELECT capacity >= 60000 AS enough, capacity < 600000 AS sensible FROM bloomguard_filters;
ANALYZE track_size;
SELECT bloomguard_rebuild('track_size');
SELECT wait_generation('track_size', 2);
SELECT capacity BETWEEN 85000 AND 95000 AS half_again FROM bloomguard_filters;
-- a given capacity is a minimum
SELECT bloomguard_track('track_size', 'k', capacity => 10);
SELECT wait_generation('track_size', 3);
SELECT capacity >= 60000 AS enough FROM bloomguard_filters;
SELECT bloomguard_track('track_size', 'k', capacity => 200000);
SELECT wait_generation('track_size', 4);
SELECT capacity FROM bloomguard_filters;
SELECT * FROM oracle('track_size', 'k', '0');
SELECT key_columns_verified, rows_scanned, rows_absent, random_keys >= 1000000 AS many,
	false_positive_rate < 0.01 AS below_target FROM bloomguard_verify('track_size');
DROP TABLE track_size;
-- an empty table has a sensible minimum
CREATE TABLE track_empty (k int);
SELECT bloomguard_track('track_empty', 'k', 1e-9);
SELECT bloomguard_wait_ready('track_empty');
SELECT capacity, hashes, keys_added, estimated_keys, fill FROM bloomguard_filters;
SELECT * FROM oracle('track_empty', 'k', '0');
DROP TABLE track_empty;

--
-- The textbook's sizes: m = ceil(-n ln p / (ln 2)^2) in units of 512, k = round(m/n ln 2).
--
SELECT bits, bytes, hashes, round(rate_at_1x::numeric, 4) AS at_1x, round(rate_at_2x::numeric, 3) AS at_2x,
	round(rate_at_5x::numeric, 3) AS at_5x FROM bloomguard_size(10000000, 0.01);
SELECT n, p, bits, bits % 512 AS odd, bytes * 8 = bits AS whole, hashes FROM
	(VALUES (1, 0.5), (1, 0.01), (1000, 0.01), (1000000, 0.001), (1000000, 1e-9), (1000000000, 0.01),
	 (1000000000000, 0.01)) v(n, p), bloomguard_size(n, p);
SELECT bloomguard_size(NULL, 0.01) IS NULL AS strict;

--
-- wait_ready
--
CREATE TABLE track_wait (k int);
SELECT refused($$SELECT bloomguard_wait_ready('track_wait')$$);
BEGIN;
SELECT bloomguard_track('track_wait', 'k');
SELECT refused($$SELECT bloomguard_wait_ready('track_wait')$$);
COMMIT;
SELECT bloomguard_wait_ready('track_wait');
SELECT bloomguard_wait_ready('track_wait', '0 s');
-- a lock of ours keeps the worker away
BEGIN;
ALTER TABLE track_wait ALTER k TYPE bigint;
SELECT bloomguard_wait_ready('track_wait', '0 s') AS at_once, bloomguard_wait_ready('track_wait', '50 ms') AS after_a_while;
COMMIT;
SELECT bloomguard_wait_ready('track_wait');
SELECT * FROM oracle('track_wait', 'k', '0');
-- blocked: told at once, not after the minute
ALTER TABLE track_wait DISABLE TRIGGER bloomguard_k;
SELECT now() AS started \gset
SELECT bloomguard_wait_ready('track_wait', '10 min');
SELECT clock_timestamp() - :'started' < '5 min' AS at_once;
SELECT state, reason FROM bloomguard_filters;
INSERT INTO track_wait VALUES (1);
SELECT bloomguard_check('track_wait', 1), bloomguard_might_contain('track_wait', 0) AS maybe;
ALTER TABLE track_wait ENABLE ALWAYS TRIGGER bloomguard_k;
SELECT bloomguard_wait_ready('track_wait');
SELECT * FROM oracle('track_wait', 'k', '0');
-- tracking again puts a trigger right that was switched off
ALTER TABLE track_wait DISABLE TRIGGER bloomguard_k;
INSERT INTO track_wait VALUES (2);
SELECT bloomguard_track('track_wait', 'k');
SELECT tgenabled FROM track_triggers;
SELECT * FROM oracle('track_wait', 'k', '0');
DROP TABLE track_wait;

DROP VIEW track_triggers;
