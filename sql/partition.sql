--
-- One filter for a partitioned table and everything beneath it
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS bloomguard;
CREATE EXTENSION IF NOT EXISTS file_fdw;
CREATE SCHEMA bg_partition;
SET search_path = bg_partition, public;
RESET client_min_messages;

-- absent, maybe or unguarded, for a key that no row has
CREATE FUNCTION answer(rel text) RETURNS text LANGUAGE plpgsql
SET client_min_messages = error AS $$
DECLARE
	result text;
BEGIN
	EXECUTE format('SELECT bloomguard_check(%L, %L)', rel, '-1') INTO result;
	RETURN split_part(result, ':', 1);
END $$;

CREATE FUNCTION generation(rel text) RETURNS int LANGUAGE sql AS
'SELECT generation FROM bloomguard_filters WHERE relation = rel::regclass';

-- The oracle: how the filter stands, and how many rows it calls absent
CREATE FUNCTION oracle(rel text DEFAULT 'rt', key text DEFAULT 'id', OUT filter text,
	OUT rows bigint, OUT called_absent bigint, OUT other_key text)
LANGUAGE plpgsql AS $$
BEGIN
	PERFORM bloomguard_wait_ready(rel);
	SELECT concat_ws(': ', state, reason) INTO filter FROM bloomguard_filters
		WHERE relation = rel::regclass;
	EXECUTE format('SELECT count(*),
			count(*) FILTER (WHERE NOT bloomguard_might_contain(%L, %I)) FROM %s',
		rel, key, rel) INTO rows, called_absent;
	other_key := answer(rel);
END $$;

-- Run a command.  What is answered inside its transaction?  And after its end,
-- which is a rollback with undo?
CREATE PROCEDURE poisons(command text, key text DEFAULT 'id',
	undo boolean DEFAULT false, rel text DEFAULT 'rt',
	INOUT inside text DEFAULT NULL, INOUT afterwards text DEFAULT NULL,
	INOUT called_absent bigint DEFAULT NULL, INOUT other_key text DEFAULT NULL)
LANGUAGE plpgsql AS $$
DECLARE
	before int := generation(rel);
	result record;
BEGIN
	IF answer(rel) <> 'absent' THEN
		RAISE WARNING 'filter was not in service before "%"', command;
	END IF;
	EXECUTE command;
	inside := answer(rel);
	IF undo THEN
		ROLLBACK;
	ELSE
		COMMIT;
	END IF;
	SELECT * INTO result FROM oracle(rel, key);
	afterwards := result.filter;
	IF result.filter = 'ready' THEN
		afterwards := CASE WHEN generation(rel) > before
			THEN 'built again' ELSE 'undisturbed' END;
	END IF;
	called_absent := result.called_absent;
	other_key := result.other_key;
END $$;

-- The same for a command that asks for a rotation: service is not interrupted
CREATE PROCEDURE rotates(command text DEFAULT 'SELECT', before int DEFAULT NULL,
	rel text DEFAULT 'rt',
	INOUT inside text DEFAULT NULL, INOUT afterwards text DEFAULT NULL,
	INOUT called_absent bigint DEFAULT NULL, INOUT other_key text DEFAULT NULL)
LANGUAGE plpgsql AS $$
DECLARE
	first int := coalesce(before, generation(rel));
	deadline timestamptz := clock_timestamp() + interval '60 s';
	now record;
	result record;
BEGIN
	EXECUTE command;
	inside := answer(rel);
	COMMIT;
	LOOP
		SELECT generation, state INTO now FROM bloomguard_filters
			WHERE relation = rel::regclass;
		afterwards := CASE WHEN now.state <> 'ready' THEN 'out of service'
			WHEN now.generation > first THEN 'rotated' END;
		EXIT WHEN afterwards IS NOT NULL OR clock_timestamp() > deadline;
	END LOOP;
	SELECT * INTO result FROM oracle(rel);
	called_absent := result.called_absent;
	other_key := result.other_key;
END $$;

-- And for one that disturbs nothing.  That no build follows is known when a
-- later request has been answered.
CREATE TABLE later (id int);
SELECT bloomguard_track('later', 'id', 1e-9);
CREATE PROCEDURE disturbs_nothing(command text DEFAULT 'SELECT',
	before int DEFAULT NULL, rel text DEFAULT 'rt',
	INOUT inside text DEFAULT NULL, INOUT afterwards text DEFAULT NULL)
LANGUAGE plpgsql AS $$
DECLARE
	first int := coalesce(before, generation(rel));
	asked int;
	deadline timestamptz := clock_timestamp() + interval '60 s';
BEGIN
	EXECUTE command;
	inside := answer(rel);
	COMMIT;
	asked := generation('later');
	PERFORM bloomguard_rebuild('later');
	COMMIT;
	WHILE generation('later') = asked AND clock_timestamp() < deadline LOOP
		NULL;
	END LOOP;
	afterwards := CASE WHEN answer(rel) <> 'absent' THEN 'out of service'
		WHEN generation(rel) > first THEN 'built again' ELSE 'undisturbed' END;
END $$;

-- our triggers on a table and its partitions
CREATE FUNCTION triggers(rel text DEFAULT 'rt', OUT relation regclass, OUT name name,
	OUT enabled "char", OUT args text)
RETURNS SETOF record LANGUAGE sql AS $$
	SELECT tgrelid, tgname, tgenabled, rtrim(replace(encode(tgargs, 'escape'), '\000', ' '))
	FROM pg_trigger
	WHERE tgrelid IN (SELECT relid FROM pg_partition_tree(rel)) AND tgname LIKE 'bloomguard%'
	ORDER BY tgrelid::regclass::text, tgname
$$;

--
-- A tree with everything: list, range, hash and default partitions, and leaves
-- that number their columns in their own way
--
CREATE TABLE rt (region text, id int, note text) PARTITION BY LIST (region);
CREATE TABLE l1 PARTITION OF rt FOR VALUES IN ('a');
CREATE TABLE l2 (gone int, note text, also_gone int, id int, region text);
ALTER TABLE l2 DROP gone;
ALTER TABLE l2 DROP also_gone;
ALTER TABLE rt ATTACH PARTITION l2 FOR VALUES IN ('b');
CREATE TABLE sub PARTITION OF rt FOR VALUES IN ('c') PARTITION BY RANGE (id);
CREATE TABLE sub_1 PARTITION OF sub FOR VALUES FROM (0) TO (1000);
CREATE TABLE sub_2 PARTITION OF sub FOR VALUES FROM (1000) TO (2000) PARTITION BY HASH (id);
CREATE TABLE sub_2_0 PARTITION OF sub_2 FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE sub_2_1 PARTITION OF sub_2 FOR VALUES WITH (MODULUS 2, REMAINDER 1);
CREATE TABLE other PARTITION OF rt DEFAULT;
INSERT INTO rt SELECT chr(97 + g % 4), g FROM generate_series(1, 1999) g;
SELECT bloomguard_track('rt', 'id', 1e-9, 100000);
SELECT * FROM oracle();
SELECT * FROM triggers();

-- the tree is tracked at its root
SELECT bloomguard_track('l1', 'note');
SELECT bloomguard_untrack('l1');
-- a partition is asked through its root's filter
SELECT bloomguard_check('l1', 1), bloomguard_check('l1', 4), bloomguard_check('sub_2_1', 4000);

--
-- Writes through the root, an intermediate level and to leaves; rows that move
--
SELECT generation('rt') AS before \gset
INSERT INTO rt VALUES ('a', 10001), ('b', 10002), ('z', 10003);
INSERT INTO l1 VALUES ('a', 10004);
INSERT INTO l2 (region, id) VALUES ('b', 10005);
INSERT INTO sub VALUES ('c', 0);
INSERT INTO sub_2 SELECT 'c', g FROM generate_series(1000, 1003) g;
COPY rt FROM stdin;
a	10006	x
b	10007	x
q	10008	x
\.
COPY l2 (region, id) FROM stdin;
b	10009
\.
UPDATE rt SET id = id + 20000 WHERE id BETWEEN 5 AND 8 AND region <> 'c';
UPDATE l2 SET id = id + 20000 WHERE id BETWEEN 9 AND 40;
-- from leaf to leaf: a DELETE and an INSERT [A12]
UPDATE rt SET region = 'b', id = id + 30000 WHERE id = 100;
UPDATE rt SET region = 'a' WHERE id BETWEEN 200 AND 210;
UPDATE sub SET id = id + 1000 WHERE id BETWEEN 302 AND 310;
MERGE INTO rt USING (SELECT g FROM generate_series(400, 410) g) s ON rt.id = s.g
	WHEN MATCHED THEN UPDATE SET region = 'd', id = rt.id + 40000;
-- as a logical replication worker writes [B1]
SET session_replication_role = replica;
INSERT INTO rt VALUES ('a', 50001), ('b', 50002);
INSERT INTO l2 (region, id) VALUES ('b', 50003);
UPDATE rt SET region = 'b' WHERE id = 50001;
RESET session_replication_role;
SELECT * FROM oracle();
SELECT * FROM oracle('rt', 'id') UNION ALL
	SELECT NULL, count(*), count(*) FILTER (WHERE NOT bloomguard_might_contain('l2', id)), answer('l2') FROM l2;
CALL disturbs_nothing(before => :before);

--
-- Partitions that come and go
--
-- a new one is covered from its first row on, and disturbs nothing [B17]
SELECT generation('rt') AS before \gset
CALL disturbs_nothing('CREATE TABLE l3 PARTITION OF rt FOR VALUES IN (''e'')');
INSERT INTO l3 VALUES ('e', 60001);
BEGIN;
CREATE TABLE l4 PARTITION OF rt FOR VALUES IN ('f');
INSERT INTO rt VALUES ('f', 60002);
INSERT INTO l4 VALUES ('f', 60003);
SELECT bloomguard_check('rt', 60002), bloomguard_check('rt', 60003), answer('rt');
COMMIT;
CALL disturbs_nothing('CREATE TABLE l5 PARTITION OF rt FOR VALUES IN (''g'') PARTITION BY LIST (id)');
CALL disturbs_nothing('CREATE TABLE l5_1 PARTITION OF l5 DEFAULT');
INSERT INTO rt VALUES ('g', 60004);
SELECT * FROM triggers() WHERE relation::text ~ '^l[345]';
CREATE TABLE l6 (note text, region text, id int);
CALL disturbs_nothing('ALTER TABLE rt ATTACH PARTITION l6 FOR VALUES IN (''h'')');
INSERT INTO rt VALUES ('h', 60005);
INSERT INTO l6 (region, id) VALUES ('h', 60006);
SELECT bloomguard_check('rt', 60004), bloomguard_check('rt', 60005), bloomguard_check('rt', 60006);
CALL disturbs_nothing('DROP TABLE l4');
SELECT * FROM oracle();
CALL disturbs_nothing(before => :before);

-- rows that come with a partition went past the trigger [B14]
CREATE TABLE l7 AS SELECT 'i'::text AS region, 70001 AS id, ''::text AS note;
CALL poisons('ALTER TABLE rt ATTACH PARTITION l7 FOR VALUES IN (''i'')', undo => true);
CALL poisons('ALTER TABLE rt ATTACH PARTITION l7 FOR VALUES IN (''i'')');
SELECT bloomguard_check('rt', 70001), bloomguard_check('rt', 70002);
-- also deeper down, and when the rows are dead for us only
CREATE TABLE l8 (region text, id int, note text) PARTITION BY LIST (region);
CREATE TABLE l8_1 PARTITION OF l8 DEFAULT;
INSERT INTO l8 VALUES ('j', 70002);
CALL poisons('ALTER TABLE rt ATTACH PARTITION l8 FOR VALUES IN (''j'')');
SELECT bloomguard_check('rt', 70002);
CREATE TABLE l9 (LIKE rt);
INSERT INTO l9 VALUES ('k', 70003);
DELETE FROM l9;
CALL poisons('ALTER TABLE rt ATTACH PARTITION l9 FOR VALUES IN (''k'')');

-- detached: nothing is lost; what is written outside counts when it is back [B15]
CALL disturbs_nothing('ALTER TABLE rt DETACH PARTITION l7');
SELECT * FROM triggers('l7');
INSERT INTO l7 VALUES ('i', 70004);
CALL poisons('ALTER TABLE rt ATTACH PARTITION l7 FOR VALUES IN (''i'')');
SELECT bloomguard_check('rt', 70004);
INSERT INTO l7 VALUES ('i', 70005);
SELECT bloomguard_check('rt', 70005);
SELECT generation('rt') AS before \gset
ALTER TABLE rt DETACH PARTITION other;
ALTER TABLE rt DETACH PARTITION l7 CONCURRENTLY;
CALL disturbs_nothing(before => :before);
INSERT INTO l7 VALUES ('i', 70006);
CALL poisons('ALTER TABLE rt ATTACH PARTITION l7 FOR VALUES IN (''i'')');
SELECT bloomguard_check('rt', 70006);
CALL poisons('ALTER TABLE rt ATTACH PARTITION other DEFAULT');
-- into another tree: rows go to the filter of that one
CREATE TABLE rt2 (LIKE rt) PARTITION BY LIST (region);
SELECT bloomguard_track('rt2', 'id', 1e-9);
SELECT * FROM oracle('rt2');
BEGIN;
ALTER TABLE rt DETACH PARTITION l3;
TRUNCATE l3;
ALTER TABLE rt2 ATTACH PARTITION l3 DEFAULT;
COMMIT;
SELECT * FROM oracle('rt2');
INSERT INTO l3 VALUES ('e', 80001);
SELECT bloomguard_check('rt2', 80001), bloomguard_check('rt', 80001), bloomguard_check('l3', 80001);
SELECT * FROM oracle('rt2');

-- a table with a filter of its own: core refuses a second trigger of that name
CREATE TABLE own (LIKE rt);
SELECT bloomguard_track('own', 'id', 1e-9);
ALTER TABLE rt ATTACH PARTITION own FOR VALUES IN ('l');
SELECT bloomguard_untrack('own');
CALL disturbs_nothing('ALTER TABLE rt ATTACH PARTITION own FOR VALUES IN (''l'')');
-- a tracked tree under a root that is not: its filter goes on, for itself
CREATE TABLE top (LIKE rt) PARTITION BY LIST (region);
CALL disturbs_nothing('ALTER TABLE top ATTACH PARTITION rt2 FOR VALUES IN (''e'')', rel => 'rt2');
INSERT INTO top VALUES ('e', 80002);
SELECT bloomguard_check('rt2', 80002);
SELECT * FROM oracle('rt2');
-- and has to go before that root can be tracked
SELECT bloomguard_track('top', 'id', 1e-9);
SELECT bloomguard_untrack('rt2');
SELECT bloomguard_track('top', 'id', 1e-9);
SELECT * FROM oracle('top');
SELECT bloomguard_check('rt2', 80001), bloomguard_check('l3', 80002);

--
-- The triggers of root and leaves.  Root first: recursion reaches the clones
--
CALL poisons('ALTER TABLE rt DISABLE TRIGGER bloomguard_id');
INSERT INTO l1 VALUES ('a', 90001);
ALTER TABLE rt ENABLE TRIGGER bloomguard_id;
SELECT * FROM oracle();
SELECT enabled, count(*) FROM triggers() GROUP BY 1;
CALL poisons('ALTER TABLE rt DISABLE TRIGGER ALL', undo => true);
-- one leaf alone, which nothing at the root shows
CALL poisons('ALTER TABLE l1 DISABLE TRIGGER bloomguard_id');
INSERT INTO rt VALUES ('a', 90002);
ALTER TABLE l1 ENABLE REPLICA TRIGGER bloomguard_id;
SELECT * FROM oracle();
ALTER TABLE l1 ENABLE TRIGGER bloomguard_id;
SELECT * FROM oracle();
CALL poisons('ALTER TABLE sub_2_1 DISABLE TRIGGER ALL');
INSERT INTO sub_2 SELECT 'c', g FROM generate_series(1100, 1107) g;
ALTER TABLE sub_2_1 ENABLE TRIGGER ALL;
SELECT * FROM oracle();
SELECT enabled, count(*) FROM triggers() GROUP BY 1;
-- the root alone, whose state a partition that is created later takes over
CALL poisons('ALTER TABLE ONLY rt DISABLE TRIGGER bloomguard_id');
CREATE TABLE l10 PARTITION OF rt FOR VALUES IN ('m');
INSERT INTO rt VALUES ('m', 90003);
ALTER TABLE ONLY rt ENABLE ALWAYS TRIGGER bloomguard_id;
SELECT * FROM oracle();
ALTER TABLE rt ENABLE ALWAYS TRIGGER bloomguard_id;
SELECT * FROM oracle();
SELECT bloomguard_check('rt', 90003);
-- created again, on all of them
CALL poisons($$CREATE OR REPLACE TRIGGER bloomguard_id AFTER INSERT OR UPDATE ON rt
	FOR EACH ROW EXECUTE FUNCTION bloomguard_maintain('id', 'false_positive_rate=1e-9')$$);
SELECT enabled, count(*) FROM triggers() GROUP BY 1;
CALL poisons($$CREATE OR REPLACE TRIGGER bloomguard_id AFTER INSERT OR UPDATE ON rt
	FOR EACH ROW WHEN (false) EXECUTE FUNCTION bloomguard_maintain('id', 'false_positive_rate=1e-9')$$);
CREATE OR REPLACE TRIGGER bloomguard_id AFTER INSERT OR UPDATE ON rt
	FOR EACH ROW EXECUTE FUNCTION bloomguard_maintain('id', 'false_positive_rate=1e-9');
SELECT * FROM oracle();
CALL poisons('ALTER TRIGGER bloomguard_id ON rt RENAME TO bloomguard_renamed');
CALL poisons('ALTER TRIGGER bloomguard_renamed ON rt RENAME TO bloomguard_id');
DROP TRIGGER bloomguard_id ON l1;
CALL poisons('DROP TRIGGER bloomguard_id ON rt', undo => true);
SELECT * FROM oracle();

--
-- Columns, and rewrites of all or one
--
CALL poisons('ALTER TABLE rt RENAME id TO ident', key => 'ident');
SELECT enabled, args, count(*) FROM triggers() GROUP BY 1, 2;
INSERT INTO l2 (region, ident) VALUES ('b', 100001);
SELECT bloomguard_check('rt', 'ident', 100001), bloomguard_check('l2', 'ident', 100002);
CALL poisons('ALTER TABLE rt RENAME ident TO id');
SELECT enabled, args, count(*) FROM triggers() GROUP BY 1, 2;
CALL disturbs_nothing('ALTER TABLE rt RENAME note TO remark');
CALL disturbs_nothing('ALTER TABLE rt ADD added int');
CALL disturbs_nothing('ALTER TABLE rt ADD constant int DEFAULT 1');
CALL disturbs_nothing('ALTER TABLE rt DROP added');
CALL disturbs_nothing('ALTER TABLE rt ALTER id SET STATISTICS 50');
CALL rotates('ALTER TABLE rt ADD volatile int DEFAULT random()');
SELECT generation('rt') AS before \gset
CREATE INDEX rt_id ON rt (id);
REINDEX INDEX rt_id;
DROP INDEX rt_id;
VACUUM rt;
CALL disturbs_nothing('ANALYZE rt', before => :before);
SELECT generation('rt') AS before \gset
VACUUM FULL l1;
CALL rotates(before => :before);
CALL rotates('TRUNCATE l6');
CALL disturbs_nothing('ALTER TABLE l1 RENAME TO l1_renamed; ALTER TABLE l1_renamed RENAME TO l1');
-- the key's type, where no partition key forbids it: other numbers in a leaf
CREATE TABLE ty (id int, p int) PARTITION BY LIST (p);
CREATE TABLE ty_1 (gone int, p int, id int);
ALTER TABLE ty_1 DROP gone;
ALTER TABLE ty ATTACH PARTITION ty_1 DEFAULT;
INSERT INTO ty VALUES (1, 1), (2, 2);
SELECT bloomguard_track('ty', 'id', 1e-9);
SELECT * FROM oracle('ty');
CALL poisons('ALTER TABLE ty ALTER id TYPE bigint', rel => 'ty');
CALL poisons('ALTER TABLE ty ALTER id TYPE text', rel => 'ty');
CALL poisons('ALTER TABLE ty ALTER id TYPE text USING id || ''x''', rel => 'ty');
SELECT bloomguard_check('ty', '1'), bloomguard_check('ty', '1x');
CALL rotates('ALTER TABLE ty ADD q float DEFAULT random()', rel => 'ty');
CALL poisons('ALTER TABLE ty DROP id', rel => 'ty', key => 'p');
ALTER TABLE ty ADD id int;
INSERT INTO ty VALUES (3, 3, 4);
SELECT * FROM oracle('ty');

--
-- A foreign partition, the rows of which change elsewhere [B26]
--
CREATE SERVER regress_bg_files FOREIGN DATA WRAPPER file_fdw;
CREATE FOREIGN TABLE far (region text, id int, remark text, constant int, volatile int)
	SERVER regress_bg_files OPTIONS (program 'echo n,110001,,,', format 'csv', null '');
CALL poisons('ALTER TABLE rt ATTACH PARTITION far FOR VALUES IN (''n'')');
SELECT id, bloomguard_check('rt', id) FROM rt WHERE region = 'n';
ALTER TABLE rt DETACH PARTITION far;
SELECT * FROM oracle();
CALL poisons('ALTER TABLE rt ATTACH PARTITION far FOR VALUES IN (''n'')');
DROP FOREIGN TABLE far;
SELECT * FROM oracle();

--
-- Untracked, dropped
--
SELECT bloomguard_untrack('rt');
SELECT count(*) FROM triggers();
SELECT answer('rt'), answer('l1');
SELECT bloomguard_track('rt', 'id', 1e-9);
SELECT * FROM oracle();
DROP TABLE rt;
SELECT relation FROM bloomguard_filters JOIN pg_class ON oid = relation
	WHERE relnamespace = 'bg_partition'::regnamespace ORDER BY relname;
SELECT * FROM oracle('top');

SET client_min_messages = warning;
DROP SERVER regress_bg_files;
DROP SCHEMA bg_partition CASCADE;

-- A partition can be verified by itself, also when it numbers columns otherwise.
CREATE TABLE public.bgv (k int, v text) PARTITION BY LIST (v);
CREATE TABLE public.bgv_a (dropped int, v text, k int);
ALTER TABLE public.bgv_a DROP COLUMN dropped;
ALTER TABLE public.bgv ATTACH PARTITION public.bgv_a FOR VALUES IN ('a');
CREATE TABLE public.bgv_b PARTITION OF public.bgv DEFAULT;
INSERT INTO public.bgv SELECT i, CASE WHEN i % 2 = 0 THEN 'a' ELSE 'b' END FROM generate_series(1, 100) i;
SELECT bloomguard_track('public.bgv', 'k', 1e-9);
SELECT bloomguard_wait_ready('public.bgv');
SELECT rows_scanned, rows_absent FROM bloomguard_verify('public.bgv');
SELECT rows_scanned, rows_absent FROM bloomguard_verify('public.bgv_a');
SELECT bloomguard_check('public.bgv_a', -1), bloomguard_check('public.bgv_a', 1);
DROP TABLE public.bgv;
