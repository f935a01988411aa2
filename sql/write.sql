--
-- Every way of writing a row: its key is in the filter when the statement has
-- ended.  The filter is built while the table is empty, and the generation that
-- is shown says that it has not been built again since: what it holds came in
-- through the trigger.
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS bloomguard;
CREATE SCHEMA bg_write;
SET search_path = bg_write, public;
RESET client_min_messages;

-- The oracle: a filter that is ready calls no row absent, but does call another
-- key so (the target rate is such that chance does not matter)
CREATE FUNCTION oracle(relation regclass, key text, other text DEFAULT '-1',
	OUT ready boolean, OUT generation int, OUT rows bigint,
	OUT called_absent bigint, OUT other_key text)
LANGUAGE plpgsql AS $$
BEGIN
	ready := bloomguard_wait_ready(relation);
	SELECT f.generation INTO generation FROM bloomguard_filters f
		WHERE f.relation = oracle.relation;
	EXECUTE format('SELECT count(*),
			count(*) FILTER (WHERE NOT bloomguard_might_contain(%L, %I)) FROM %s',
		relation, key, relation) INTO rows, called_absent;
	EXECUTE format('SELECT bloomguard_check(%L, %L)', relation, other)
		INTO other_key;
END $$;

-- Build again; true when that is done, with the old generation in service meanwhile
CREATE PROCEDURE rebuild(relation regclass, INOUT rebuilt boolean DEFAULT false)
LANGUAGE plpgsql AS $$
DECLARE
	before int;
	now record;
	deadline timestamptz := clock_timestamp() + interval '60 s';
BEGIN
	SELECT f.generation INTO before FROM bloomguard_filters f
		WHERE f.relation = rebuild.relation;
	PERFORM bloomguard_rebuild(relation);
	COMMIT;
	LOOP
		SELECT f.generation, f.state INTO now FROM bloomguard_filters f
			WHERE f.relation = rebuild.relation;
		rebuilt := now.generation > before;
		EXIT WHEN rebuilt OR now.state <> 'ready' OR clock_timestamp() > deadline;
	END LOOP;
END $$;

--
-- Plain statements
--
CREATE TABLE t (id int PRIMARY KEY, k bigint UNIQUE, note text)
	WITH (fillfactor = 50);
SELECT bloomguard_track('t', 'k', 1e-9, 100000);
SELECT bloomguard_wait_ready('t');
\set oracle 'SELECT * FROM oracle(''t'', ''k'');'
:oracle

INSERT INTO t VALUES (1, 1), (2, 2);
INSERT INTO t (id, k) VALUES (3, 3) RETURNING k, bloomguard_check('t', k);
SELECT bloomguard_check('t', 3), bloomguard_check('t', 4);
INSERT INTO t SELECT g, g FROM generate_series(4, 3000) g;
:oracle

COPY t FROM stdin;
3001	3001	a
3002	3002	b
3003	3003	\N
\.
:oracle

-- the key, another column, both, nothing at all [C9]
UPDATE t SET k = k + 100000 WHERE id <= 10;
UPDATE t SET note = 'x' WHERE id BETWEEN 11 AND 20;
UPDATE t SET note = 'y', k = -k - 100 WHERE id BETWEEN 21 AND 30;
UPDATE t SET k = k;
UPDATE t SET k = s.k + 200000 FROM (SELECT id, k FROM t WHERE id BETWEEN 31 AND 40) s
	WHERE s.id = t.id;
:oracle

-- MERGE and ON CONFLICT fire different triggers for the same outcome [B37]
MERGE INTO t USING (SELECT g FROM generate_series(2991, 3020) g) s ON t.id = s.g
	WHEN MATCHED AND s.g < 3000 THEN UPDATE SET k = t.k + 300000
	WHEN MATCHED THEN DELETE
	WHEN NOT MATCHED THEN INSERT (id, k) VALUES (s.g, s.g);
:oracle
INSERT INTO t SELECT g, g FROM generate_series(3015, 3030) g
	ON CONFLICT DO NOTHING;
INSERT INTO t SELECT g, g FROM generate_series(3021, 3040) g
	ON CONFLICT (id) DO UPDATE SET k = excluded.k + 400000;
:oracle

WITH moved AS (DELETE FROM t WHERE id BETWEEN 100 AND 110 RETURNING id, k),
	changed AS (UPDATE t SET k = k + 500000 WHERE id BETWEEN 111 AND 120 RETURNING k)
	INSERT INTO t SELECT id + 10000, k + 10000 FROM moved;
WITH added AS (INSERT INTO t VALUES (20000, 20000), (20001, 20001) RETURNING k)
	SELECT k, bloomguard_check('t', k) FROM added ORDER BY k;
:oracle

-- prepared statements, cursors, functions, rules and views
PREPARE ins(int) AS INSERT INTO t VALUES ($1, $1);
EXECUTE ins(20002);
EXECUTE ins(20003);
BEGIN;
DECLARE c CURSOR FOR SELECT * FROM t WHERE id IN (20002, 20003) FOR UPDATE;
MOVE 1 IN c;
UPDATE t SET k = k + 600000 WHERE CURRENT OF c;
COMMIT;
CREATE FUNCTION ins(int) RETURNS bigint LANGUAGE sql
	AS 'INSERT INTO t VALUES ($1, $1) RETURNING k';
SELECT ins(20004);
CREATE VIEW v AS SELECT * FROM t WHERE id > 0;
INSERT INTO v VALUES (20005, 20005);
UPDATE v SET k = k + 700000 WHERE id = 20005;
CREATE TABLE elsewhere (id int, k bigint);
CREATE RULE away AS ON INSERT TO elsewhere
	DO INSTEAD INSERT INTO t VALUES (new.id, new.k);
INSERT INTO elsewhere VALUES (20006, 20006);
:oracle

-- statements that fail, and those that are taken back, leave nothing out
INSERT INTO t VALUES (30000, 30000), (1, 30001);
BEGIN;
INSERT INTO t VALUES (30001, 30001);
SAVEPOINT a;
INSERT INTO t VALUES (30002, 30002);
ROLLBACK TO a;
INSERT INTO t VALUES (30003, 30003);
SAVEPOINT b;
UPDATE t SET k = k + 1 WHERE id = 30003;
RELEASE b;
:oracle
COMMIT;
BEGIN;
INSERT INTO t VALUES (30005, 30005);
ROLLBACK;
DO $$
BEGIN
	FOR i IN 30010 .. 30019 LOOP
		BEGIN
			INSERT INTO t VALUES (i, i);
			INSERT INTO t VALUES (i + 100, i + 100 / (i % 2));
		EXCEPTION WHEN division_by_zero THEN
			INSERT INTO t VALUES (i, -i);
		END;
	END LOOP;
END $$;
:oracle

-- as a logical replication worker writes [B1, B2]
SET session_replication_role = replica;
INSERT INTO t VALUES (40000, 40000);
UPDATE t SET k = 40002 WHERE id = 40000;
COPY t FROM stdin;
40001	40001	a
\.
RESET session_replication_role;
SELECT bloomguard_check('t', 40001), bloomguard_check('t', 40002);
:oracle

-- a deferred trigger that writes at commit
CREATE TABLE orders (id int);
CREATE FUNCTION at_commit() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO t VALUES (new.id, new.id);
	RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER late AFTER INSERT ON orders DEFERRABLE INITIALLY DEFERRED
	FOR EACH ROW EXECUTE FUNCTION at_commit();
BEGIN;
INSERT INTO orders VALUES (50000), (50001);
SELECT bloomguard_check('t', 50000);
COMMIT;
SELECT bloomguard_check('t', 50000);
:oracle

-- the same rows by a scan: deleted, updated and aborted versions are all there
CALL rebuild('t');
SELECT rows > 0 AS rows, called_absent, other_key FROM oracle('t', 'k');

--
-- COPY FREEZE: rows that even older snapshots see [B24]
--
CREATE TABLE f (k int);
SELECT bloomguard_track('f', 'k', 1e-9);
SELECT bloomguard_wait_ready('f');
INSERT INTO f VALUES (1);
BEGIN;
TRUNCATE f;
COPY f FROM stdin WITH (FREEZE);
2
3
\.
SELECT ready, rows, called_absent, other_key FROM oracle('f', 'k');
COMMIT;
CALL rebuild('f');
SELECT ready, rows, called_absent, other_key FROM oracle('f', 'k');

--
-- A generated key [A5]
--
CREATE TABLE gen (a int, k int GENERATED ALWAYS AS (a * 1000 + 7) STORED);
SELECT bloomguard_track('gen', 'k', 1e-9);
SELECT bloomguard_wait_ready('gen');
INSERT INTO gen VALUES (1), (2);
UPDATE gen SET a = 3 WHERE a = 2;
COPY gen (a) FROM stdin;
4
\.
SELECT k, bloomguard_check('gen', k) FROM gen ORDER BY k;
SELECT * FROM oracle('gen', 'k');

--
-- BEFORE triggers that change the key, whatever their names [A4], also in an
-- UPDATE whose list does not name it [A6]
--
CREATE TABLE b (k int, note text);
SELECT bloomguard_track('b', 'k', 1e-9);
SELECT bloomguard_wait_ready('b');
CREATE FUNCTION change_key() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	new.k := new.k + tg_argv[0]::int;
	RETURN new;
END $$;
CREATE TRIGGER aa BEFORE INSERT OR UPDATE ON b FOR EACH ROW EXECUTE FUNCTION change_key(10);
CREATE TRIGGER zz BEFORE INSERT OR UPDATE OF note ON b FOR EACH ROW EXECUTE FUNCTION change_key(1000);
INSERT INTO b VALUES (1, 'a'), (2, 'b');
UPDATE b SET note = 'c' WHERE note = 'b';
COPY b FROM stdin;
3	c
\.
SET session_replication_role = replica;
INSERT INTO b VALUES (4, 'd');
RESET session_replication_role;
SELECT k, bloomguard_check('b', k) FROM b ORDER BY k;
SELECT bloomguard_check('b', 1), bloomguard_check('b', 11);
SELECT * FROM oracle('b', 'k');

--
-- Referential actions write the child in the queue of the parent's statement
--
CREATE TABLE parent (id int PRIMARY KEY);
CREATE TABLE child (id int PRIMARY KEY, p int DEFAULT 0 REFERENCES parent
	ON UPDATE CASCADE ON DELETE SET DEFAULT);
INSERT INTO parent VALUES (1), (2), (3);
SELECT bloomguard_track('child', 'p', 1e-9);
SELECT bloomguard_wait_ready('child');
INSERT INTO child VALUES (1, 1), (2, 2), (3, 3);
UPDATE parent SET id = id + 100 WHERE id < 3;
SELECT p, bloomguard_check('child', p) FROM child ORDER BY p;
INSERT INTO parent VALUES (0);
SELECT bloomguard_check('child', 0);
DELETE FROM parent WHERE id = 101;
SELECT p, bloomguard_check('child', p) FROM child ORDER BY p;
SELECT * FROM oracle('child', 'p');

--
-- NULL is no key: not added, and a question about it is a maybe
--
CREATE TABLE n (id int, a int, b text);
SELECT bloomguard_track('n', 'a, b', 1e-9);
SELECT bloomguard_wait_ready('n');
INSERT INTO n VALUES (1, 1, 'x'), (2, NULL, 'x'), (3, 3, NULL), (4, NULL, NULL);
SELECT count(*) FROM n WHERE NOT bloomguard_might_contain('n', 'a, b', a, b);
UPDATE n SET a = 2 WHERE id = 2;
UPDATE n SET b = NULL WHERE id = 1;
UPDATE n SET a = 4, b = 'y' WHERE id = 4;
SELECT id, bloomguard_check('n', 'a, b', a, b) FROM n ORDER BY id;
SELECT bloomguard_check('n', 'a, b', 1, 'y'), bloomguard_check('n', 'a, b', 2, 'x');
SELECT keys_added, generation FROM bloomguard_filters WHERE relation = 'n'::regclass;
CALL rebuild('n');
SELECT bloomguard_wait_ready('n');
SELECT count(*) FROM n WHERE NOT bloomguard_might_contain('n', 'a, b', a, b);
SELECT bloomguard_check('n', 'a, b', 1, 'y');

--
-- HOT chains: the key is on one version of many
--
CREATE TABLE h (k int, n int) WITH (fillfactor = 20);
INSERT INTO h SELECT g, 0 FROM generate_series(1, 200) g;
SELECT bloomguard_track('h', 'k', 1e-9);
SELECT bloomguard_wait_ready('h');
BEGIN;
UPDATE h SET n = n + 1;
UPDATE h SET n = n + 1 WHERE k % 2 = 0;
SELECT pg_stat_get_xact_tuples_hot_updated('h'::regclass) > 0 AS hot;
COMMIT;
SELECT * FROM oracle('h', 'k');
CALL rebuild('h');
SELECT ready, rows, called_absent, other_key FROM oracle('h', 'k');

--
-- Keys out of line: compressed, external, and left alone by an update
--
CREATE TABLE big (id int, k text);
ALTER TABLE big ALTER k SET STORAGE EXTERNAL;
SELECT bloomguard_track('big', 'k', 1e-9);
SELECT bloomguard_wait_ready('big');
INSERT INTO big SELECT g, repeat(md5(g::text), 500 * g) FROM generate_series(1, 5) g;
ALTER TABLE big ALTER k SET STORAGE EXTENDED;
INSERT INTO big SELECT g, repeat(md5(g::text), 5000 * g) FROM generate_series(6, 8) g;
INSERT INTO big VALUES (9, 'short');
UPDATE big SET id = id + 100 WHERE id % 2 = 0;
UPDATE big SET k = k || 'x' WHERE id = 3;
SELECT ready, rows, called_absent, other_key FROM oracle('big', 'k');
BEGIN;
DELETE FROM big WHERE id = 1;
INSERT INTO big SELECT 10, repeat('never there', 10000);
ROLLBACK;
DELETE FROM big WHERE id = 5;
CALL rebuild('big');
SELECT ready, rows, called_absent, other_key FROM oracle('big', 'k');

--
-- Unlogged
--
CREATE UNLOGGED TABLE u (k int);
SELECT bloomguard_track('u', 'k', 1e-9);
SELECT bloomguard_wait_ready('u');
INSERT INTO u SELECT generate_series(1, 100);
COPY u FROM stdin;
101
\.
UPDATE u SET k = k + 1000 WHERE k < 10;
SELECT * FROM oracle('u', 'k');
CALL rebuild('u');
SELECT ready, rows, called_absent, other_key FROM oracle('u', 'k');

--
-- Prepared transactions: written before a build, committed after it [C1, C22]
--
CREATE TABLE p (id int, k int);
INSERT INTO p VALUES (1, 1), (2, 2), (3, 3);
SELECT bloomguard_track('p', 'k', 1e-9);
SELECT bloomguard_wait_ready('p');
BEGIN;
INSERT INTO p VALUES (4, 4);
UPDATE p SET k = 20 WHERE id = 2;
PREPARE TRANSACTION 'bg_write_1';
BEGIN;
UPDATE p SET k = 30 WHERE id = 3;
DELETE FROM p WHERE id = 1;
PREPARE TRANSACTION 'bg_write_2';
CALL rebuild('p');
SELECT ready, rows, called_absent, other_key FROM oracle('p', 'k');
COMMIT PREPARED 'bg_write_1';
SELECT ready, rows, called_absent, other_key FROM oracle('p', 'k');
ROLLBACK PREPARED 'bg_write_2';
SELECT k, bloomguard_check('p', k) FROM p ORDER BY k;
SELECT ready, rows, called_absent, other_key FROM oracle('p', 'k');

SET client_min_messages = warning;
DROP SCHEMA bg_write CASCADE;
