--
-- Inside a statement that writes a tracked table, code may see rows whose keys
-- are added when the statement ends.  Such questions are not answered [A1, A2].
--
-- Every note below says whether a row is visible to whoever asks, and what the
-- filter says.  Visible and absent must never come together.
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS bloomguard;
CREATE SCHEMA bg_inflight;
SET search_path = bg_inflight, public;
RESET client_min_messages;

CREATE TABLE t (id int, note text);
CREATE TABLE untracked (id int);
SELECT bloomguard_track('t', 'id', 1e-9);
SELECT bloomguard_wait_ready('t');

CREATE FUNCTION look(who text, key int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	visible boolean := EXISTS (SELECT FROM t WHERE id = key);
	answer text := bloomguard_check('t', key);
BEGIN
	RAISE NOTICE '%: key % is %, %', who, key,
		CASE WHEN visible THEN 'visible' ELSE 'not visible' END, answer;
	IF visible AND answer = 'absent' THEN
		RAISE WARNING 'FALSE NEGATIVE';
	END IF;
	RETURN key;
END $$;
-- the same with the snapshot of whoever calls it
CREATE FUNCTION look_stable(who text, key int) RETURNS int STABLE LANGUAGE plpgsql AS $$
DECLARE
	visible boolean := EXISTS (SELECT FROM t WHERE id = key);
	answer text := bloomguard_check('t', key);
BEGIN
	RAISE NOTICE '%: key % is %, %', who, key,
		CASE WHEN visible THEN 'visible' ELSE 'not visible' END, answer;
	IF visible AND answer = 'absent' THEN
		RAISE WARNING 'FALSE NEGATIVE';
	END IF;
	RETURN key;
END $$;
CREATE FUNCTION look_at_row() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	PERFORM look(concat_ws(' ', tg_argv[0], tg_when, tg_level), new.id + tg_argv[1]::int);
	RETURN new;
END $$;

--
-- The statement's own snapshot does not see its rows, so it is answered; a
-- volatile function's does
--
INSERT INTO t SELECT g FROM generate_series(1, 2) g
	WHERE NOT bloomguard_might_contain('t', g)
	RETURNING id, bloomguard_check('t', id);
INSERT INTO t SELECT g FROM generate_series(1, 4) g
	WHERE NOT bloomguard_might_contain('t', g) RETURNING id;
INSERT INTO t SELECT look('volatile', g - 1) + 1 FROM generate_series(11, 13) g;
INSERT INTO t SELECT look_stable('stable', g - 1) + 1 FROM generate_series(21, 22) g;
INSERT INTO t VALUES (31), (32) RETURNING look('returning', id);
UPDATE t SET id = look('update', id - 1) + 101 WHERE id IN (31, 32) RETURNING look('returning', id);

--
-- Triggers: before, after with a name that sorts first and last, and at the end
-- of the statement
--
CREATE TRIGGER a_before BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION look_at_row('row before', '-1');
CREATE TRIGGER a_after AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION look_at_row('first', 0);
CREATE TRIGGER z_after AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION look_at_row('last', 0);
CREATE FUNCTION look_at_end() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	PERFORM look(concat_ws(' ', 'end', tg_when, tg_level), max(id)) FROM t;
	RETURN NULL;
END $$;
CREATE TRIGGER y_after AFTER INSERT ON t FOR EACH STATEMENT EXECUTE FUNCTION look_at_end();
INSERT INTO t VALUES (201), (202);
-- COPY, with and without a condition
COPY t (id) FROM stdin;
203
204
\.
COPY t (id) FROM stdin WHERE NOT bloomguard_might_contain('t', id);
204
205
\.
COPY t (id) FROM stdin WHERE look('copy', id) < 206;
205
206
\.
COPY (INSERT INTO t VALUES (207) RETURNING look('copy to', id)) TO stdout;
SELECT look('afterwards', 207);
DROP TRIGGER a_before ON t;
DROP TRIGGER a_after ON t;
DROP TRIGGER z_after ON t;
DROP TRIGGER y_after ON t;

--
-- Other statements that write
--
WITH w AS (INSERT INTO t VALUES (301), (302) RETURNING id)
	SELECT look('cte', id), look_stable('cte, stable', id), bloomguard_check('t', id) FROM w;
WITH w AS (UPDATE t SET id = 303 WHERE id = 301 RETURNING id) SELECT 1;
MERGE INTO t USING (VALUES (302), (304), (305)) s (id) ON t.id = s.id
	WHEN MATCHED THEN UPDATE SET id = look('merge, update', t.id) + 100
	WHEN NOT MATCHED THEN INSERT (id) VALUES (look('merge, insert', s.id - 1) + 1);
CREATE TABLE made AS WITH w AS (SELECT look('before', 306) AS id) SELECT * FROM w;
EXPLAIN (COSTS OFF) INSERT INTO t VALUES (look('explain', 306));
SELECT look('after explain', 306), bloomguard_check('t', 306);
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) INSERT INTO t VALUES (307), (look('explain', 307));
PREPARE p AS INSERT INTO t SELECT look('prepared', g - 1) + 1 FROM generate_series($1::int, $2) g;
EXECUTE p(308, 309);
SELECT look('afterwards', 309);
-- two actions of one rule
CREATE TABLE ruled (id int);
CREATE RULE r AS ON INSERT TO ruled DO INSTEAD (
	INSERT INTO t VALUES (new.id);
	INSERT INTO t VALUES (look('second action', new.id) + 1));
INSERT INTO ruled VALUES (310);

--
-- Referential actions: the rows are written by inner statements, whose triggers
-- fire with those of the outer one, which is an UPDATE or a DELETE of the parent
--
CREATE TABLE parent (id int PRIMARY KEY);
CREATE TABLE child (id int DEFAULT 4000 REFERENCES parent ON UPDATE CASCADE ON DELETE SET DEFAULT);
SELECT bloomguard_track('child', 'id', 1e-9);
SELECT bloomguard_wait_ready('child');
CREATE FUNCTION look_child(who text, key int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	visible boolean := EXISTS (SELECT FROM child WHERE id = key);
	answer text := bloomguard_check('child', key);
BEGIN
	RAISE NOTICE '%: child % is %, %', who, key,
		CASE WHEN visible THEN 'visible' ELSE 'not visible' END, answer;
	IF visible AND answer = 'absent' THEN
		RAISE WARNING 'FALSE NEGATIVE';
	END IF;
	RETURN key;
END $$;
CREATE FUNCTION look_at_child() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	PERFORM look_child(concat_ws(' ', tg_table_name, tg_op, tg_when, tg_level), tg_argv[0]::int);
	RETURN NULL;
END $$;
CREATE TRIGGER zz AFTER UPDATE ON parent FOR EACH ROW EXECUTE FUNCTION look_at_child(4101);
CREATE TRIGGER zz_statement AFTER UPDATE ON parent FOR EACH STATEMENT EXECUTE FUNCTION look_at_child(4101);
CREATE TRIGGER zz_delete AFTER DELETE ON parent FOR EACH ROW EXECUTE FUNCTION look_at_child(4000);
CREATE TRIGGER zz_delete_statement AFTER DELETE ON parent FOR EACH STATEMENT EXECUTE FUNCTION look_at_child(4000);
CREATE TRIGGER aa AFTER UPDATE ON child FOR EACH ROW EXECUTE FUNCTION look_at_child(4101);
INSERT INTO parent VALUES (4000), (4001);
INSERT INTO child VALUES (4001);
UPDATE parent SET id = 4101 WHERE id = 4001;
BEGIN ISOLATION LEVEL REPEATABLE READ;
UPDATE parent SET id = 4101 WHERE id = 4101;
DELETE FROM parent WHERE id = 4101;
SELECT look_child('afterwards', 4000);
COMMIT;

--
-- Nested statements, subtransactions, deferred triggers
--
CREATE FUNCTION nested(key int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO t VALUES (key);
	PERFORM look('after the inner statement', key);
	RETURN key + 1000;
END $$;
SELECT nested(501);
-- inside one that writes it, and inside one that writes another table
INSERT INTO t VALUES (nested(502)), (look('outer', 502));
INSERT INTO untracked VALUES (nested(503));
CREATE FUNCTION caught(key int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN key .. key + 2 LOOP
		BEGIN
			INSERT INTO t VALUES (i), (look('in the block', i)), (i / (i - key - 1));
		EXCEPTION WHEN division_by_zero THEN
			PERFORM look('after the error', i);
		END;
	END LOOP;
	PERFORM look('after the loop', key);
	RETURN 0;
END $$;
SELECT caught(510);
INSERT INTO t VALUES (520), (caught(520));
CREATE FUNCTION in_sql(key int) RETURNS int LANGUAGE sql AS $$
	INSERT INTO t VALUES (key);
	SELECT look('sql function', key) $$;
SELECT in_sql(530);
CREATE FUNCTION set_in_sql(key int) RETURNS SETOF int LANGUAGE sql AS
	'INSERT INTO t VALUES (key), (key + 1) RETURNING id';
SELECT look('set returning', i) FROM set_in_sql(531) i LIMIT 1;
DO $$
DECLARE
	r record;
BEGIN
	FOR r IN INSERT INTO t VALUES (533), (534) RETURNING id LOOP
		PERFORM look('loop over returning', r.id);
	END LOOP;
END $$;
BEGIN;
DECLARE held CURSOR WITH HOLD FOR SELECT nested(535);
COMMIT;
FETCH held;
CLOSE held;
-- the same call sees different snapshots
DO $$
BEGIN
	FOR i IN 540 .. 542 LOOP
		RAISE NOTICE '%: %', i, bloomguard_check('t', 541);
		INSERT INTO t VALUES (i);
	END LOOP;
END $$;
CREATE CONSTRAINT TRIGGER deferred AFTER INSERT ON t DEFERRABLE INITIALLY DEFERRED
	FOR EACH ROW WHEN (new.id BETWEEN 550 AND 560) EXECUTE FUNCTION look_at_row('deferred', 0);
BEGIN;
INSERT INTO t VALUES (551), (552);
SET CONSTRAINTS ALL IMMEDIATE;
SET CONSTRAINTS ALL DEFERRED;
INSERT INTO t VALUES (553);
COMMIT;
DROP TRIGGER deferred ON t;
-- an error at the top leaves nothing behind
INSERT INTO t VALUES (560), (look('before the error', 560)), (1 / 0);
SELECT look('afterwards', 560);
BEGIN;
SAVEPOINT a;
INSERT INTO t VALUES (561), (1 / 0);
ROLLBACK TO a;
SELECT look('afterwards', 561);
COMMIT;

--
-- A statement that writes another table is no reason for doubt
--
CREATE TRIGGER asks BEFORE INSERT OR UPDATE ON untracked FOR EACH ROW EXECUTE FUNCTION look_at_row('untracked', 600);
CREATE TRIGGER asks_after AFTER INSERT OR UPDATE ON untracked FOR EACH ROW EXECUTE FUNCTION look_at_row('untracked', 600);
INSERT INTO untracked VALUES (1), (2);
UPDATE untracked SET id = id + 1 WHERE id = 2;
COPY untracked FROM stdin;
4
\.
WITH w AS (INSERT INTO untracked VALUES (5) RETURNING id) SELECT look('cte', 605) FROM w;
-- unless the tracked one is written as well
WITH w AS (INSERT INTO untracked VALUES (6) RETURNING id), v AS (INSERT INTO t VALUES (606))
	SELECT look('cte', 606) FROM w;

--
-- Partitions: root, leaf and sibling are one relation here, another tree is not
--
CREATE TABLE pt (id int, p int) PARTITION BY LIST (p);
CREATE TABLE pt_1 PARTITION OF pt FOR VALUES IN (1);
CREATE TABLE pt_2 PARTITION OF pt FOR VALUES IN (2);
CREATE TABLE qt (id int, p int) PARTITION BY LIST (p);
CREATE TABLE qt_1 PARTITION OF qt FOR VALUES IN (1);
SELECT bloomguard_track('pt', 'id', 1e-9);
SELECT bloomguard_wait_ready('pt');
CREATE FUNCTION look_pt(who text, key int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
	RAISE NOTICE '%: root %, leaf %', who, bloomguard_check('pt', key), bloomguard_check('pt_2', key);
	IF bloomguard_check('pt', key) = 'absent' AND EXISTS (SELECT FROM pt WHERE id = key) THEN
		RAISE WARNING 'FALSE NEGATIVE';
	END IF;
	RETURN key;
END $$;
INSERT INTO pt VALUES (1, 1), (look_pt('root', 1), 2);
INSERT INTO pt_1 VALUES (2, 1), (look_pt('leaf', 2), 1);
UPDATE pt SET p = 2, id = look_pt('moved', id) + 10 WHERE id = 2;
COPY pt FROM stdin WHERE look_pt('copy', id) > 0;
3	1
4	2
\.
INSERT INTO qt VALUES (look_pt('another tree', 5), 1);
UPDATE qt_1 SET id = look_pt('a leaf of it', 5);
SELECT count(*), count(*) FILTER (WHERE NOT bloomguard_might_contain('pt', id)), bloomguard_check('pt', -1) FROM pt;

--
-- Parallel workers read what their leader has in flight
--
CREATE TABLE numbers AS SELECT g FROM generate_series(701, 703) g;
CREATE FUNCTION look_parallel(key int, leader int) RETURNS text STABLE PARALLEL SAFE LANGUAGE plpgsql AS $$
BEGIN
	RETURN format('key %s is %s, %s, %s', key,
		CASE WHEN EXISTS (SELECT FROM t WHERE id = key) THEN 'visible' ELSE 'not visible' END,
		bloomguard_check('t', key),
		CASE WHEN pg_backend_pid() = leader THEN 'leader' ELSE 'worker' END);
END $$;
-- a loop or SELECT INTO would not use workers
CREATE FUNCTION all_parallel(leader int) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
	RETURN QUERY SELECT look_parallel(g, leader) FROM numbers;
END $$;
CREATE FUNCTION parallel_query() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN SELECT * FROM all_parallel(pg_backend_pid()) ORDER BY 1 LOOP
		RAISE NOTICE '%', line;
	END LOOP;
	RETURN NULL;
END $$;
CREATE TRIGGER a_parallel AFTER INSERT ON t FOR EACH STATEMENT EXECUTE FUNCTION parallel_query();
CREATE TRIGGER a_parallel_row AFTER INSERT ON t FOR EACH ROW WHEN (new.id = 701) EXECUTE FUNCTION parallel_query();
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET parallel_leader_participation = off;
INSERT INTO t VALUES (701), (702);
DROP TRIGGER a_parallel ON t;
DROP TRIGGER a_parallel_row ON t;
SELECT * FROM all_parallel(pg_backend_pid()) ORDER BY 1;
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;
RESET parallel_leader_participation;

--
-- More statements around each other than are remembered one by one
--
CREATE FUNCTION deep(level int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
	IF level = 0 THEN
		RETURN look('inside all of them', 1001);
	END IF;
	IF level = 70 THEN
		INSERT INTO t VALUES (1001), (deep(level - 1));
	ELSE
		INSERT INTO untracked VALUES (deep(level - 1));
	END IF;
	RETURN 0;
END $$;
DROP TRIGGER asks ON untracked;
DROP TRIGGER asks_after ON untracked;
SELECT deep(70);
SELECT look('afterwards', 1001), look('afterwards', 1002);

-- The oracle
SELECT bloomguard_wait_ready('t'), bloomguard_check('t', -1);
SELECT count(*) FROM t WHERE NOT bloomguard_might_contain('t', id);
SELECT bloomguard_wait_ready('child'), bloomguard_check('child', -1);
SELECT count(*) FROM child WHERE NOT bloomguard_might_contain('child', id);
SELECT generation FROM bloomguard_filters
	WHERE relation IN ('t'::regclass, 'child'::regclass, 'pt'::regclass);

SET client_min_messages = warning;
DROP SCHEMA bg_inflight CASCADE;
