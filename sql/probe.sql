--
-- PROBE
-- Where and how questions are asked: a probe may live for a whole transaction,
-- across statements, snapshots and aborted subtransactions.  [C5, I1, J10]
--
CREATE EXTENSION dblink;
CREATE TABLE probe_t (k int, v text);
INSERT INTO probe_t SELECT i, i FROM generate_series(1, 1000) i;
SELECT bloomguard_track('probe_t', 'k');
SELECT bloomguard_wait_ready('probe_t');
ANALYZE probe_t;

--
-- PL/pgSQL: one call site in a loop, with EXCEPTION blocks.
--
DO $$
DECLARE
	missed int := 0;
	false_alarms int := 0;
	undone int := 0;
BEGIN
	FOR i IN 2001..2100 LOOP
		-- not there yet
		IF bloomguard_might_contain('probe_t', i) THEN
			false_alarms := false_alarms + 1;
		END IF;
		BEGIN
			INSERT INTO probe_t VALUES (i, 'loop');
			IF NOT bloomguard_might_contain('probe_t', i) THEN
				missed := missed + 1;
			END IF;
			IF i % 2 = 0 THEN
				RAISE EXCEPTION 'undo';
			END IF;
		EXCEPTION WHEN raise_exception THEN
			undone := undone + 1;
		END;
		IF i % 2 = 1 AND NOT bloomguard_might_contain('probe_t', i) THEN
			missed := missed + 1;
		END IF;
		-- the filter still works
		IF bloomguard_check('probe_t', -i) <> 'absent' THEN
			false_alarms := false_alarms + 1;
		END IF;
	END LOOP;
	RAISE NOTICE 'missed %, false alarms below three %, undone %', missed, false_alarms < 3, undone;
END $$;
SELECT * FROM oracle('probe_t', 'k', '0');

-- the first call in a subtransaction that is rolled back, and its lock with it:
-- the next call takes it again
CREATE FUNCTION probe_locks(rel regclass) RETURNS bigint LANGUAGE sql AS
	'SELECT count(*) FROM pg_locks WHERE relation = rel AND pid = pg_backend_pid()';
DO $$
DECLARE
	answer text;
BEGIN
	FOR i IN 1..4 LOOP
		BEGIN
			answer := bloomguard_check('probe_t', 0);
			IF i < 4 THEN
				RAISE EXCEPTION '%, locks: %', answer, probe_locks('probe_t');
			END IF;
		EXCEPTION WHEN raise_exception THEN
			RAISE NOTICE '%; undone: %', SQLERRM, probe_locks('probe_t');
		END;
	END LOOP;
	RAISE NOTICE '%, locks: %', answer, probe_locks('probe_t');
END $$;
DROP FUNCTION probe_locks;
BEGIN;
SELECT bloomguard_check('probe_t', 0);
SELECT mode, granted FROM pg_locks WHERE relation = 'probe_t'::regclass AND pid = pg_backend_pid();
COMMIT;

-- a filter that comes, changes and goes under one call site
CREATE FUNCTION probe_ask(rel regclass, key int) RETURNS text LANGUAGE plpgsql STABLE AS
	$$BEGIN RETURN bloomguard_check(rel, key); END$$;
SET client_min_messages = error;
BEGIN;
SELECT probe_ask('probe_t', 0) AS ready;
SAVEPOINT s;
ALTER TABLE probe_t ALTER v TYPE varchar;
SELECT probe_ask('probe_t', 0) AS other_column;
ALTER TABLE probe_t ALTER k TYPE bigint;
SELECT probe_ask('probe_t', 0) AS key_column;
ROLLBACK TO s;
SELECT probe_ask('probe_t', 0) AS stays_poisoned;
SELECT bloomguard_untrack('probe_t');
SELECT probe_ask('probe_t', 0) AS gone;
SELECT bloomguard_track('probe_t', 'k');
SELECT probe_ask('probe_t', 0) AS new;
ROLLBACK;
SELECT bloomguard_wait_ready('probe_t');
SELECT probe_ask('probe_t', 0) AS ready_again;

-- a call site that is asked about one relation after another
CREATE TABLE probe_u (k int);
INSERT INTO probe_u VALUES (0);
SELECT bloomguard_track('probe_u', 'k');
SELECT bloomguard_wait_ready('probe_u');
CREATE TABLE probe_none (k int);
BEGIN;
SELECT rel, key, probe_ask(rel, key) FROM (VALUES ('probe_t'::regclass, 0), ('probe_u', 0), ('probe_none', 0), ('probe_t', 1),
	('probe_u', 1), ('probe_t', 0), ('probe_none', 1), ('pg_class', 1), (NULL, 1)) v(rel, key);
SELECT rel, cols, bloomguard_check(rel, cols, key) FROM (VALUES ('probe_t'::regclass, 'k', 0), ('probe_t', ' "k" ', 1),
	('probe_t', 'K', 0), ('probe_u', 'k', 0), ('probe_u', 'k', 5)) v(rel, cols, key);
-- dropped, and one of its name made again
DROP TABLE probe_u;
CREATE TABLE probe_u (k int);
INSERT INTO probe_u VALUES (9);
SELECT probe_ask('probe_u', 9) AS no_filter;
SELECT bloomguard_track('probe_u', 'k');
SELECT probe_ask('probe_u', 9) AS not_ready;
COMMIT;
SELECT bloomguard_wait_ready('probe_u');
SELECT probe_ask('probe_u', 9), probe_ask('probe_u', 0);
RESET client_min_messages;
DROP TABLE probe_u, probe_none;

--
-- Prepared statements, custom and generic.
--
PREPARE probe_p(int) AS SELECT bloomguard_check('probe_t', $1);
PREPARE probe_q(int) AS SELECT count(*) FROM probe_t WHERE k = $1 AND bloomguard_might_contain('probe_t', $1);
SET plan_cache_mode = force_custom_plan;
EXECUTE probe_p(1);
EXECUTE probe_p(0);
EXECUTE probe_q(1);
SET plan_cache_mode = force_generic_plan;
EXECUTE probe_p(1);
EXECUTE probe_p(0);
EXECUTE probe_p(3000);
INSERT INTO probe_t VALUES (3000);
EXECUTE probe_p(3000);
EXECUTE probe_q(3000);
EXECUTE probe_q(3001);
ALTER TABLE probe_t ADD COLUMN more int;
EXECUTE probe_p(3000);
EXECUTE probe_p(0);
ALTER TABLE probe_t DROP COLUMN more;
EXECUTE probe_q(3000);
RESET plan_cache_mode;
DEALLOCATE ALL;

--
-- Parallel query: workers ask for themselves.
--
CREATE TABLE probe_keys AS SELECT i AS k FROM generate_series(1, 20000) i;
ALTER TABLE probe_keys SET (parallel_workers = 2);
ANALYZE probe_keys;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
EXPLAIN (COSTS OFF)
SELECT count(*) FROM probe_keys WHERE bloomguard_might_contain('probe_t', k);
SELECT count(*) BETWEEN 1051 AND 1600 AS few, count(*) FILTER (WHERE t.k IS NOT NULL) AS rows_found
FROM probe_keys LEFT JOIN (SELECT DISTINCT k FROM probe_t) t USING (k) WHERE bloomguard_might_contain('probe_t', k);
SELECT count(*) AS rows_absent FROM probe_t WHERE NOT bloomguard_might_contain('probe_t', k);
-- within a transaction that has written
BEGIN;
INSERT INTO probe_t VALUES (19999);
SELECT count(*) AS found FROM probe_keys WHERE k = 19999 AND bloomguard_might_contain('probe_t', k);
ROLLBACK;
SET force_parallel_mode = on;
SELECT bloomguard_check('probe_t', 1), bloomguard_check('probe_t', 0);
RESET force_parallel_mode;
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;
RESET max_parallel_workers_per_gather;
-- as an anti-join and in DML of its own
SELECT count(*) AS to_insert FROM probe_keys WHERE k BETWEEN 990 AND 1009 AND NOT bloomguard_might_contain('probe_t', k);
INSERT INTO probe_t SELECT k FROM probe_keys WHERE k BETWEEN 990 AND 1009 AND NOT bloomguard_might_contain('probe_t', k);
SELECT count(*) AS now_there FROM probe_t WHERE k BETWEEN 990 AND 1009;
DROP TABLE probe_keys;

--
-- Cursors: the snapshot is that of DECLARE.
--
BEGIN;
DECLARE probe_c CURSOR FOR SELECT i, bloomguard_might_contain('probe_t', i) AS maybe,
	EXISTS (SELECT FROM probe_t WHERE k = i) AS there FROM generate_series(4001, 4003) i;
FETCH probe_c;
INSERT INTO probe_t VALUES (4002);
DECLARE probe_d SCROLL CURSOR FOR SELECT i, bloomguard_might_contain('probe_t', i) AS maybe,
	EXISTS (SELECT FROM probe_t WHERE k = i) AS there FROM generate_series(4001, 4003) i;
-- (a key that the snapshot does not see may be answered either way, but it is there)
FETCH probe_c;
FETCH ALL FROM probe_d;
FETCH BACKWARD ALL FROM probe_d;
SAVEPOINT s;
INSERT INTO probe_t VALUES (4003);
ROLLBACK TO s;
FETCH probe_c;
COMMIT;
SELECT * FROM oracle('probe_t', 'k', '0');

--
-- An old snapshot still sees a row that was deleted, whatever has been rebuilt
-- since.  The other session is one of dblink's.
--
SELECT dblink_connect('other', format('host=%s port=%s dbname=%s user=%s',
	split_part(current_setting('unix_socket_directories'), ',', 1), current_setting('port'), current_database(), current_user));
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT count(*) FROM probe_t WHERE k IN (7, 8);
SELECT dblink_exec('other', 'DELETE FROM probe_t WHERE k = 7');
SELECT dblink_exec('other', 'UPDATE probe_t SET k = -8 WHERE k = 8');
SELECT dblink_exec('other', 'INSERT INTO probe_t VALUES (5000)');
SELECT * FROM dblink('other', $$SELECT max(generation) FROM bloomguard_filters WHERE relation = 'probe_t'::regclass$$) AS g(generation int) \gset
SELECT dblink_exec('other', 'DO ''BEGIN PERFORM bloomguard_rebuild(''''probe_t''''); END''');
SELECT * FROM dblink('other', format('SELECT wait_generation(''probe_t'', %s)', :generation + 1)) AS g(rotated boolean);
SELECT dblink_exec('other', 'VACUUM probe_t');
SELECT count(*) AS still_seen FROM probe_t WHERE k IN (7, 8);
SELECT bloomguard_might_contain('probe_t', 7) AS deleted, bloomguard_might_contain('probe_t', 8) AS updated,
	bloomguard_might_contain('probe_t', -8) AS new, bloomguard_check('probe_t', 0) AS never_there;
SELECT count(*) AS rows_absent FROM probe_t WHERE NOT bloomguard_might_contain('probe_t', k);
COMMIT;
-- once nobody sees them, a rotation sheds them
VACUUM probe_t;
SELECT bloomguard_rebuild('probe_t');
SELECT wait_generation('probe_t', :generation + 2);
SELECT bloomguard_check('probe_t', 7) AS deleted, bloomguard_check('probe_t', 8) AS updated, bloomguard_check('probe_t', -8) AS new;

-- a relation that is locked is not waited for
SELECT dblink_exec('other', 'BEGIN');
SELECT dblink_exec('other', 'LOCK TABLE probe_t');
SELECT bloomguard_check('probe_t', 0), bloomguard_might_contain('probe_t', 0);
SELECT dblink_exec('other', 'COMMIT');
SELECT bloomguard_check('probe_t', 0);
-- keys that another session has not committed are maybes already
SELECT dblink_exec('other', 'BEGIN');
SELECT dblink_exec('other', 'INSERT INTO probe_t VALUES (6000)');
SELECT bloomguard_check('probe_t', 6000);
SELECT dblink_exec('other', 'ROLLBACK');
SELECT dblink_disconnect('other');

--
-- Switched off, for one session, it says maybe; the filter stays complete.
--
SET bloomguard.enabled = off;
SELECT bloomguard_might_contain('probe_t', 0), bloomguard_check('probe_t', 0);
INSERT INTO probe_t VALUES (7000);
SET bloomguard.enabled = on;
SELECT bloomguard_might_contain('probe_t', 7000), bloomguard_check('probe_t', 0);
BEGIN;
SET LOCAL bloomguard.enabled = off;
SELECT probe_ask('probe_t', 0);
SET LOCAL bloomguard.enabled = on;
SELECT probe_ask('probe_t', 0);
COMMIT;

--
-- No filter: maybe, with one warning for each session and list.  No relation:
-- maybe.
--
CREATE TABLE probe_bare (k int, l int);
SELECT bloomguard_might_contain('probe_bare', 1);
SELECT bloomguard_might_contain('probe_bare', 2);
SELECT bloomguard_check('probe_bare', 2);
SELECT bloomguard_might_contain('probe_bare', 'k', 1);
SELECT bloomguard_might_contain('probe_bare', 'k', 2);
SELECT bloomguard_might_contain('probe_bare', 'k, l', 1, 2), bloomguard_might_contain('probe_bare', 'k, l', 1, 2);
SELECT bloomguard_might_contain('probe_t', 'v', 'x');
SELECT count(*) FROM generate_series(1, 1000) i WHERE bloomguard_might_contain('probe_bare', 'l', i);
SELECT refused($$SELECT bloomguard_might_contain('probe_bare', 'no_such_column', 1)$$);
SELECT 'probe_bare'::regclass::oid AS gone \gset
DROP TABLE probe_bare;
SELECT bloomguard_might_contain(:gone::regclass, 1), bloomguard_check(:gone::regclass, 1),
	bloomguard_check(:gone::regclass, 'k', 1), bloomguard_check(NULL, 1), bloomguard_might_contain(NULL, 'k', 1);

--
-- A partition is answered by its root's filter.
--
CREATE TABLE probe_part (k int, v int) PARTITION BY RANGE (k);
CREATE TABLE probe_part_1 PARTITION OF probe_part FOR VALUES FROM (0) TO (100);
CREATE TABLE probe_part_2 (v int, dropped int, k int NOT NULL) PARTITION BY RANGE (k);
ALTER TABLE probe_part_2 DROP COLUMN dropped;
CREATE TABLE probe_part_2a PARTITION OF probe_part_2 FOR VALUES FROM (100) TO (150);
ALTER TABLE probe_part ATTACH PARTITION probe_part_2 FOR VALUES FROM (100) TO (200);
INSERT INTO probe_part SELECT i, i FROM generate_series(0, 149, 2) i;
SELECT bloomguard_track('probe_part', 'k');
SELECT bloomguard_wait_ready('probe_part');
SELECT rel, bloomguard_check(rel, 10) AS k10, bloomguard_check(rel, 110) AS k110, bloomguard_check(rel, 11) AS k11,
	bloomguard_check(rel, 'k', 11) AS named
FROM unnest('{probe_part, probe_part_1, probe_part_2, probe_part_2a}'::regclass[]) rel;
INSERT INTO probe_part_2a (k) VALUES (111);
SELECT rel, bloomguard_check(rel, 111) FROM unnest('{probe_part, probe_part_1, probe_part_2, probe_part_2a}'::regclass[]) rel;
SELECT * FROM oracle('probe_part', 'k', '11');
SELECT count(*) AS rows_absent FROM probe_part_2a WHERE NOT bloomguard_might_contain('probe_part_2a', k);
-- a partition without its root's filter: the warning names the root
CREATE TABLE probe_bare (k int) PARTITION BY RANGE (k);
CREATE TABLE probe_bare_1 PARTITION OF probe_bare FOR VALUES FROM (0) TO (100);
SELECT bloomguard_might_contain('probe_bare_1', 1);
-- a former partition has no filter
ALTER TABLE probe_part DETACH PARTITION probe_part_1;
INSERT INTO probe_part_1 VALUES (11);
SELECT bloomguard_check('probe_part_1', 11);
SELECT bloomguard_check('probe_part', 11);
DROP TABLE probe_bare, probe_part, probe_part_1;

SELECT * FROM oracle('probe_t', 'k', '0');
DROP FUNCTION probe_ask;
DROP TABLE probe_t;
DROP EXTENSION dblink;
