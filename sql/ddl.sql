--
-- Commands that change a definition or a stored key, and those that do not.
--
-- What could let a row escape takes the filter out of service inside the
-- transaction, before the command ends; it is built again by itself as soon as
-- the definition is sound.  A rewrite with the same keys asks for a rotation,
-- the filter staying in service.  Everything else disturbs nothing.
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS bloomguard;
CREATE EXTENSION IF NOT EXISTS citext;
CREATE SCHEMA bg_ddl;
SET search_path = bg_ddl, public;
RESET client_min_messages;

-- absent, maybe or unguarded, for a key that no row has
CREATE FUNCTION answer(rel text) RETURNS text LANGUAGE plpgsql
SET client_min_messages = error AS $$
DECLARE
	result text;
BEGIN
	IF to_regclass(rel) IS NULL THEN
		RETURN 'no relation';
	END IF;
	EXECUTE format('SELECT bloomguard_check(%L, %L)', rel, '-1') INTO result;
	RETURN split_part(result, ':', 1);
END $$;

CREATE FUNCTION generation(rel text) RETURNS int LANGUAGE sql AS
'SELECT generation FROM bloomguard_filters WHERE relation = rel::regclass';

-- The oracle: how the filter stands, and how many rows it calls absent
CREATE FUNCTION oracle(rel text, key text DEFAULT 'id', OUT filter text,
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
CREATE PROCEDURE poisons(command text, rel text DEFAULT 'tt', key text DEFAULT 'id',
	undo boolean DEFAULT false,
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
CREATE PROCEDURE rotates(command text DEFAULT 'SELECT', rel text DEFAULT 'tt',
	key text DEFAULT 'id', before int DEFAULT NULL,
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
	SELECT * INTO result FROM oracle(rel, key);
	called_absent := result.called_absent;
	other_key := result.other_key;
END $$;

-- And for one that disturbs nothing.  That no build follows is known when a
-- later request has been answered.
CREATE TABLE later (id int);
SELECT bloomguard_track('later', 'id', 1e-9);
CREATE PROCEDURE disturbs_nothing(command text DEFAULT 'SELECT', rel text DEFAULT 'tt',
	undo boolean DEFAULT false, before int DEFAULT NULL,
	INOUT inside text DEFAULT NULL, INOUT afterwards text DEFAULT NULL)
LANGUAGE plpgsql AS $$
DECLARE
	first int := coalesce(before, generation(rel));
	asked int;
	deadline timestamptz := clock_timestamp() + interval '60 s';
BEGIN
	EXECUTE command;
	inside := answer(rel);
	IF undo THEN
		ROLLBACK;
	ELSE
		COMMIT;
	END IF;
	asked := generation('later');
	PERFORM bloomguard_rebuild('later');
	COMMIT;
	WHILE generation('later') = asked AND clock_timestamp() < deadline LOOP
		NULL;
	END LOOP;
	afterwards := CASE WHEN answer(rel) <> 'absent' THEN 'out of service'
		WHEN generation(rel) > first THEN 'built again' ELSE 'undisturbed' END;
END $$;

CREATE FUNCTION triggers(rel text, OUT name name, OUT enabled "char", OUT args text)
RETURNS SETOF record LANGUAGE sql AS $$
	SELECT tgname, tgenabled, rtrim(replace(encode(tgargs, 'escape'), '\000', ' '))
	FROM pg_trigger
	WHERE tgrelid = rel::regclass AND NOT tgisinternal ORDER BY tgname
$$;

CREATE TABLE tt (id int, other int, note text);
INSERT INTO tt SELECT g, g, g FROM generate_series(1, 100) g;
SELECT bloomguard_track('tt', 'id', 1e-9);
SELECT * FROM oracle('tt');
SELECT * FROM triggers('tt');

--
-- Disabled: out of service until it is enabled again
--
CALL poisons('ALTER TABLE tt DISABLE TRIGGER bloomguard_id');
INSERT INTO tt VALUES (101);
SELECT bloomguard_check('tt', 101);
SELECT * FROM oracle('tt');
-- enabled is not enough for session_replication_role, but a worker sees to that
ALTER TABLE tt ENABLE TRIGGER bloomguard_id;
SELECT * FROM oracle('tt');
SELECT * FROM triggers('tt');

CALL poisons('ALTER TABLE tt DISABLE TRIGGER bloomguard_id', undo => true);
CALL poisons('ALTER TABLE tt ENABLE REPLICA TRIGGER bloomguard_id');
INSERT INTO tt VALUES (102);
ALTER TABLE tt ENABLE ALWAYS TRIGGER bloomguard_id;
SELECT * FROM oracle('tt');
CALL poisons('ALTER TABLE tt ENABLE TRIGGER bloomguard_id');
SELECT * FROM triggers('tt');
CALL poisons('ALTER TABLE tt ENABLE ALWAYS TRIGGER bloomguard_id');
SELECT * FROM triggers('tt');
CALL poisons('ALTER TABLE tt DISABLE TRIGGER USER');
ALTER TABLE tt ENABLE TRIGGER USER;
SELECT * FROM oracle('tt');

-- as pg_restore --disable-triggers does [B3]
CALL poisons('ALTER TABLE tt DISABLE TRIGGER ALL');
COPY tt FROM stdin;
103	103	a
104	104	b
\.
ALTER TABLE tt ENABLE TRIGGER ALL;
SELECT * FROM oracle('tt');
SELECT * FROM triggers('tt');

-- all in one transaction, and seen by it [B4, B5, B6]
BEGIN;
ALTER TABLE tt DISABLE TRIGGER ALL;
INSERT INTO tt VALUES (105);
ALTER TABLE tt ENABLE TRIGGER ALL;
SELECT answer('tt');
INSERT INTO tt VALUES (106);
COMMIT;
SELECT * FROM oracle('tt');

-- a savepoint that is rolled back does not bring the filter back
BEGIN;
SAVEPOINT a;
ALTER TABLE tt DISABLE TRIGGER ALL;
ROLLBACK TO a;
SELECT answer('tt');
COMMIT;
SELECT * FROM oracle('tt');

-- a prepared transaction keeps its lock, and with it every build away [B7]
BEGIN;
ALTER TABLE tt DISABLE TRIGGER bloomguard_id;
INSERT INTO tt VALUES (107);
PREPARE TRANSACTION 'bg_ddl';
SELECT bloomguard_wait_ready('tt', '1500 ms'), answer('tt');
COMMIT PREPARED 'bg_ddl';
SELECT * FROM oracle('tt');
ALTER TABLE tt ENABLE ALWAYS TRIGGER bloomguard_id;
SELECT * FROM oracle('tt');

--
-- Replaced [A7]
--
CALL poisons($$CREATE OR REPLACE TRIGGER bloomguard_id AFTER INSERT OR UPDATE ON tt
	FOR EACH ROW EXECUTE FUNCTION bloomguard_maintain('id', 'false_positive_rate=1e-9')$$);
SELECT * FROM triggers('tt');
CALL poisons($$CREATE OR REPLACE TRIGGER bloomguard_id AFTER INSERT OR UPDATE ON tt
	FOR EACH ROW WHEN (new.id > 0) EXECUTE FUNCTION bloomguard_maintain('id')$$);
-- untrack takes it away, whatever became of it
SELECT bloomguard_untrack('tt');
SELECT bloomguard_track('tt', 'id', 1e-9);
SELECT * FROM oracle('tt');
CALL poisons($$CREATE OR REPLACE TRIGGER bloomguard_id AFTER INSERT OR UPDATE OF other ON tt
	FOR EACH ROW EXECUTE FUNCTION bloomguard_maintain('id')$$);
CREATE OR REPLACE TRIGGER bloomguard_id AFTER INSERT OR UPDATE ON tt
	FOR EACH ROW EXECUTE FUNCTION bloomguard_maintain('id', 'false_positive_rate=1e-9');
SELECT * FROM oracle('tt');
CALL poisons($$CREATE OR REPLACE TRIGGER bloomguard_id AFTER INSERT ON tt
	FOR EACH ROW EXECUTE FUNCTION bloomguard_maintain('id')$$);
CREATE OR REPLACE TRIGGER bloomguard_id AFTER INSERT OR UPDATE ON tt
	FOR EACH ROW EXECUTE FUNCTION bloomguard_maintain('id', 'false_positive_rate=1e-9');
SELECT * FROM oracle('tt');
CALL poisons($$CREATE OR REPLACE TRIGGER bloomguard_id BEFORE INSERT OR UPDATE ON tt
	FOR EACH ROW EXECUTE FUNCTION bloomguard_maintain('id')$$);
CREATE OR REPLACE TRIGGER bloomguard_id AFTER INSERT OR UPDATE ON tt
	FOR EACH ROW EXECUTE FUNCTION bloomguard_maintain('id', 'false_positive_rate=1e-9');
SELECT * FROM oracle('tt');
-- a row still gets in when the arguments make no sense
CALL poisons($$CREATE OR REPLACE TRIGGER bloomguard_id AFTER INSERT OR UPDATE ON tt
	FOR EACH ROW EXECUTE FUNCTION bloomguard_maintain('nothing of the kind')$$);
INSERT INTO tt VALUES (108);
SELECT bloomguard_check('tt', 108);
CREATE OR REPLACE TRIGGER bloomguard_id AFTER INSERT OR UPDATE ON tt
	FOR EACH ROW EXECUTE FUNCTION bloomguard_maintain('id', 'false_positive_rate=1e-9');
SELECT * FROM oracle('tt');
-- a constraint trigger adds at commit at the earliest [A11]
CALL poisons($$DROP TRIGGER bloomguard_id ON tt;
	CREATE CONSTRAINT TRIGGER bloomguard_id AFTER INSERT OR UPDATE ON tt
	DEFERRABLE INITIALLY DEFERRED
	FOR EACH ROW EXECUTE FUNCTION bloomguard_maintain('id')$$);
SELECT bloomguard_untrack('tt');
SELECT bloomguard_track('tt', 'id', 1e-9);
SELECT * FROM oracle('tt');
-- of another function: no filter any more, and one again when it is ours
CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
BEGIN;
CREATE OR REPLACE TRIGGER bloomguard_id AFTER INSERT OR UPDATE ON tt
	FOR EACH ROW EXECUTE FUNCTION nothing();
SELECT answer('tt');
COMMIT;
INSERT INTO tt VALUES (109);
SELECT answer('tt'), generation('tt');
CREATE OR REPLACE TRIGGER bloomguard_id AFTER INSERT OR UPDATE ON tt
	FOR EACH ROW EXECUTE FUNCTION bloomguard_maintain('id', 'false_positive_rate=1e-9');
SELECT * FROM oracle('tt');

--
-- Renamed and dropped triggers
--
CALL poisons('ALTER TRIGGER bloomguard_id ON tt RENAME TO mine');
SELECT * FROM triggers('tt');
CALL poisons('ALTER TRIGGER mine ON tt RENAME TO bloomguard_id');
CALL poisons('DROP TRIGGER bloomguard_id ON tt', undo => true);
SET client_min_messages = warning;
CALL poisons('ALTER EXTENSION bloomguard DROP FUNCTION public.bloomguard_maintain();
	DROP FUNCTION public.bloomguard_maintain() CASCADE', undo => true);
-- the checks go with it: that the filter was built again is what shows the poison
BEGIN;
SELECT generation('tt') AS before \gset
DROP EXTENSION bloomguard CASCADE;
INSERT INTO tt VALUES (110);
ROLLBACK;
SELECT * FROM oracle('tt');
SELECT generation('tt') > :before AS built_again;
RESET client_min_messages;
BEGIN;
DROP TRIGGER bloomguard_id ON tt;
INSERT INTO tt VALUES (111);
SELECT answer('tt');
COMMIT;
SELECT bloomguard_check('tt', 111);
SELECT generation('tt');
SELECT bloomguard_track('tt', 'id', 1e-9);
SELECT * FROM oracle('tt');

--
-- Functions that every key goes through
--
CALL poisons('ALTER FUNCTION public.bloomguard_maintain() COST 2', undo => true);
CALL poisons($$CREATE OR REPLACE FUNCTION public.bloomguard_maintain() RETURNS trigger
	AS '$libdir/bloomguard', 'bloomguard_maintain' LANGUAGE C$$, undo => true);
-- one that looks alike does not take the triggers' place
CREATE FUNCTION bg_ddl.bloomguard_maintain() RETURNS trigger
	AS '$libdir/bloomguard', 'bloomguard_maintain' LANGUAGE C;
SELECT * FROM oracle('tt');
CALL poisons('ALTER TABLE tt DISABLE TRIGGER bloomguard_id', undo => true);
DROP FUNCTION bg_ddl.bloomguard_maintain();
SELECT * FROM oracle('tt');
CREATE TABLE ci (id citext);
INSERT INTO ci VALUES ('Abc');
SELECT bloomguard_track('ci', 'id', 1e-9);
SELECT * FROM oracle('ci');
CALL poisons('ALTER FUNCTION citext_hash_extended(citext, bigint) COST 2', rel => 'ci', undo => true);
CALL disturbs_nothing('ALTER FUNCTION citext_hash_extended(citext, bigint) COST 2', undo => true);

--
-- Columns
--
CALL poisons('ALTER TABLE tt RENAME id TO ident', key => 'ident');
SELECT * FROM triggers('tt');
INSERT INTO tt VALUES (112);
SELECT bloomguard_check('tt', 'ident', 112), bloomguard_check('tt', 'ident', 113);
CALL poisons('ALTER TABLE tt RENAME ident TO id', undo => true, key => 'ident');
SELECT * FROM triggers('tt');
-- names that change places: the filter stays with the column [A14]
CALL poisons('ALTER TABLE tt RENAME ident TO aside; ALTER TABLE tt RENAME other TO ident;
	ALTER TABLE tt RENAME aside TO other', key => 'other');
SELECT * FROM triggers('tt');
CALL poisons('ALTER TABLE tt RENAME other TO id; ALTER TABLE tt RENAME ident TO other');
SELECT * FROM triggers('tt');
INSERT INTO tt VALUES (113);
SELECT bloomguard_check('tt', 113);
BEGIN;
ALTER TABLE tt RENAME id TO "a name, quoted";
SAVEPOINT a;
ALTER TABLE tt RENAME "a name, quoted" TO lost;
ROLLBACK TO a;
COMMIT;
SELECT * FROM triggers('tt');
SELECT * FROM oracle('tt', 'a name, quoted');
CALL poisons('ALTER TABLE tt RENAME "a name, quoted" TO id');
CALL disturbs_nothing('ALTER TABLE tt RENAME other TO another');
CALL disturbs_nothing('ALTER TABLE tt RENAME another TO other');

CALL poisons('ALTER TABLE tt ALTER id TYPE bigint');
-- same type, other values: only the rewrite tells [B11]
CALL poisons('ALTER TABLE tt ALTER id TYPE bigint USING id + 1000');
SELECT min(id), max(id), count(*) FILTER (WHERE bloomguard_check('tt', id) <> 'maybe') FROM tt;
CALL poisons('ALTER TABLE tt ALTER id TYPE bigint USING id - 1000', undo => true);
CALL rotates('ALTER TABLE tt ALTER other TYPE bigint');
CALL rotates('ALTER TABLE tt ALTER other TYPE bigint USING other + 1');
CALL disturbs_nothing('ALTER TABLE tt ALTER note TYPE varchar');

-- equality changes without a rewrite [B12]
CREATE COLLATION insensitive (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE TABLE tx (id varchar(10), note text);
INSERT INTO tx VALUES ('Abc'), ('def');
SELECT bloomguard_track('tx', 'id', 1e-9);
SELECT * FROM oracle('tx');
CALL disturbs_nothing('ALTER TABLE tx ALTER id TYPE varchar(20)', rel => 'tx');
CALL poisons('ALTER TABLE tx ALTER id TYPE text', rel => 'tx');
SELECT bloomguard_check('tx', 'ABC');
CALL poisons('ALTER TABLE tx ALTER id TYPE text COLLATE insensitive', rel => 'tx');
SELECT id, bloomguard_check('tx', 'ABC') FROM tx WHERE id = 'ABC';
CALL poisons('ALTER TABLE tx ALTER id TYPE text COLLATE "C"', rel => 'tx');
SELECT bloomguard_check('tx', 'ABC');
CALL poisons('ALTER TABLE tx ALTER id TYPE citext', rel => 'tx');
SELECT id, bloomguard_check('tx', 'ABC') FROM tx WHERE id = 'ABC';
CALL disturbs_nothing('ALTER TABLE tx ALTER id SET STORAGE EXTERNAL', rel => 'tx');
-- to a type that cannot be guarded, and back
CALL poisons('ALTER TABLE tx ALTER id TYPE json USING to_json(id)', rel => 'tx', key => 'note');
ALTER TABLE tx ALTER id TYPE text;
SELECT * FROM oracle('tx');

-- dropped, and a new one under the old name [B13]
CALL poisons('ALTER TABLE tx DROP id', rel => 'tx', key => 'note');
INSERT INTO tx VALUES ('x');
ALTER TABLE tx ADD id text;
INSERT INTO tx VALUES ('y', 'new');
SELECT * FROM oracle('tx');
SELECT bloomguard_check('tx', 'new'), bloomguard_check('tx', 'def');
CALL poisons('ALTER TABLE tx DROP id; ALTER TABLE tx ADD id int', rel => 'tx');
INSERT INTO tx VALUES ('z', 5);
SELECT bloomguard_check('tx', 5), bloomguard_check('tx', 6);
-- nothing is written: the new column alone, or another that takes the name
CALL poisons('ALTER TABLE tx DROP id', rel => 'tx', key => 'note');
ALTER TABLE tx ADD id int;
SELECT * FROM oracle('tx');
CALL poisons('ALTER TABLE tx DROP id', rel => 'tx', key => 'note');
ALTER TABLE tx RENAME note TO id;
SELECT * FROM oracle('tx');
SELECT bloomguard_check('tx', 'z'), bloomguard_check('tx', 'new');

--
-- Rewrites with the same keys: in service all the time [B18, B19]
--
CREATE INDEX tt_id ON tt (id);
CALL rotates('CLUSTER tt USING tt_id');
CALL rotates('ALTER TABLE tt SET UNLOGGED');
CALL rotates('ALTER TABLE tt SET LOGGED');
CALL rotates('ALTER TABLE tt ADD volatile int DEFAULT random()');
SELECT generation('tt') AS before \gset
VACUUM FULL tt;
CALL rotates(before => :before);
CALL disturbs_nothing('ALTER TABLE tt SET ACCESS METHOD heap');
SET allow_in_place_tablespaces = on;
SET client_min_messages = warning;
CREATE TABLESPACE regress_bg_space LOCATION '';
RESET client_min_messages;
CALL disturbs_nothing('ALTER TABLE tt SET TABLESPACE regress_bg_space');
CALL disturbs_nothing('ALTER TABLE tt SET TABLESPACE pg_default');
DROP TABLESPACE regress_bg_space;
BEGIN;
TRUNCATE tt;
SELECT answer('tt'), bloomguard_check('tt', 1001);
INSERT INTO tt VALUES (-2);
ROLLBACK;
CALL disturbs_nothing();
SELECT * FROM oracle('tt');
CREATE TABLE base (id int PRIMARY KEY);
CREATE TABLE ref (id int REFERENCES base);
INSERT INTO base VALUES (1);
INSERT INTO ref VALUES (1);
SELECT bloomguard_track('ref', 'id', 1e-9);
SELECT * FROM oracle('ref');
SET client_min_messages = warning;
CALL rotates('TRUNCATE base CASCADE', rel => 'ref');
RESET client_min_messages;
SELECT bloomguard_check('ref', 1);
INSERT INTO base VALUES (1), (2);
INSERT INTO ref VALUES (1);
BEGIN;
SAVEPOINT a;
TRUNCATE ref;
INSERT INTO ref VALUES (2);
ROLLBACK TO a;
SELECT * FROM oracle('ref');
COMMIT;
SELECT * FROM oracle('ref');

--
-- What disturbs nothing
--
SELECT generation('tt') AS before \gset
CALL disturbs_nothing('ALTER TABLE tt RENAME TO ttt; ALTER TABLE ttt RENAME TO tt');
CALL disturbs_nothing('CREATE SCHEMA s; ALTER TABLE tt SET SCHEMA s; ALTER TABLE s.tt SET SCHEMA bg_ddl; DROP SCHEMA s');
CREATE ROLE regress_bg_owner;
CALL disturbs_nothing('ALTER TABLE tt OWNER TO regress_bg_owner');
CALL disturbs_nothing('ALTER TABLE tt OWNER TO CURRENT_USER');
CALL disturbs_nothing('GRANT SELECT ON tt TO regress_bg_owner');
CALL disturbs_nothing('REVOKE ALL ON tt FROM regress_bg_owner');
DROP ROLE regress_bg_owner;
CALL disturbs_nothing('ALTER TABLE tt ADD added int');
CALL disturbs_nothing('ALTER TABLE tt ADD constant int DEFAULT 5');
CALL disturbs_nothing('ALTER TABLE tt DROP added');
CALL disturbs_nothing('ALTER TABLE tt ALTER id SET NOT NULL');
CALL disturbs_nothing('ALTER TABLE tt ALTER id SET STATISTICS 50');
CALL disturbs_nothing('ALTER TABLE tt ALTER id SET (n_distinct = -1)');
CALL disturbs_nothing('ALTER TABLE tt ALTER id SET DEFAULT 7');
CALL disturbs_nothing('ALTER TABLE tt ADD CHECK (id > -5)');
CALL disturbs_nothing('ALTER TABLE tt ADD PRIMARY KEY (id)');
CALL disturbs_nothing('ALTER TABLE tt REPLICA IDENTITY FULL');
CALL disturbs_nothing('ALTER TABLE tt SET (fillfactor = 90)');
CALL disturbs_nothing('ALTER TABLE tt ENABLE ROW LEVEL SECURITY');
CALL disturbs_nothing('CREATE POLICY p ON tt USING (true); DROP POLICY p ON tt');
CALL disturbs_nothing('ALTER TABLE tt DISABLE ROW LEVEL SECURITY');
CALL disturbs_nothing('CREATE TABLE fk (id bigint REFERENCES tt); DROP TABLE fk');
CALL disturbs_nothing('CREATE INDEX tt_other ON tt (other)');
CALL disturbs_nothing('REINDEX TABLE tt');
CALL disturbs_nothing('DROP INDEX tt_other');
CALL disturbs_nothing('CREATE STATISTICS st ON id, other FROM tt');
CALL disturbs_nothing('ANALYZE tt');
CALL disturbs_nothing('COMMENT ON TABLE tt IS ''commented''; COMMENT ON COLUMN tt.id IS ''commented''');
CALL disturbs_nothing('COMMENT ON TRIGGER bloomguard_id ON tt IS ''commented''');
CALL disturbs_nothing('CREATE VIEW vv AS SELECT * FROM tt');
CALL disturbs_nothing('CREATE RULE r AS ON UPDATE TO tt DO ALSO SELECT 1; DROP RULE r ON tt');
CALL disturbs_nothing('CREATE TABLE likes (LIKE tt INCLUDING ALL)');
CALL disturbs_nothing('CREATE TRIGGER other AFTER INSERT ON tt FOR EACH ROW EXECUTE FUNCTION nothing()');
CALL disturbs_nothing('ALTER TABLE tt DISABLE TRIGGER other');
CALL disturbs_nothing('ALTER TRIGGER other ON tt RENAME TO another');
CALL disturbs_nothing('DROP TRIGGER another ON tt');
CALL disturbs_nothing('CREATE PUBLICATION regress_bg_pub FOR TABLE tt; DROP PUBLICATION regress_bg_pub');
CALL disturbs_nothing('LOCK TABLE tt IN ACCESS EXCLUSIVE MODE');
CREATE INDEX CONCURRENTLY tt_other ON tt (other);
REINDEX INDEX CONCURRENTLY tt_other;
DROP INDEX CONCURRENTLY tt_other;
VACUUM tt;
VACUUM (ANALYZE, FREEZE) tt;
-- changed arguments: not out of service, but a rotation
CALL disturbs_nothing(before => :before);
CALL rotates('SELECT bloomguard_track(''tt'', ''id'', 1e-9, 20000)');
SELECT * FROM triggers('tt');
SELECT * FROM oracle('tt');

--
-- Inheritance, into which no trigger goes [B16]
--
CALL poisons('CREATE TABLE heir () INHERITS (tt)');
INSERT INTO heir VALUES (7000);
SELECT bloomguard_check('tt', 7000);
ALTER TABLE heir NO INHERIT tt;
SELECT * FROM oracle('tt');
SELECT bloomguard_check('tt', 7000);
CALL poisons('ALTER TABLE heir INHERIT tt');
DROP TABLE heir;
SELECT * FROM oracle('tt');

--
-- Dropped, and another one under the name [B20]
--
DROP VIEW vv;
CALL poisons('DROP TABLE tt', undo => true);
DROP TABLE tt;
CREATE TABLE tt (id int);
INSERT INTO tt VALUES (1);
SELECT answer('tt'), generation('tt');
SELECT bloomguard_track('tt', 'id', 1e-9);
SELECT * FROM oracle('tt');
SELECT bloomguard_check('tt', 1001);
CREATE SCHEMA bg_ddl_2 CREATE TABLE tt (id int);
SELECT bloomguard_track('bg_ddl_2.tt', 'id', 1e-9);
SELECT * FROM oracle('bg_ddl_2.tt');
SET client_min_messages = warning;
CALL poisons('DROP SCHEMA bg_ddl_2 CASCADE', rel => 'bg_ddl_2.tt', undo => true);
DROP SCHEMA bg_ddl_2 CASCADE;
SELECT count(*) FROM bloomguard_filters WHERE relation::text LIKE '%bg_ddl_2%';
RESET client_min_messages;

--
-- An extension that is dropped and created again starts from nothing [B8]
--
CREATE DATABASE regress_bg_ddl;
\c regress_bg_ddl
CREATE EXTENSION bloomguard;
CREATE TABLE tt (id int);
INSERT INTO tt VALUES (1);
SELECT bloomguard_track('tt', 'id', 1e-9);
SELECT bloomguard_wait_ready('tt'), bloomguard_check('tt', 1), bloomguard_check('tt', 2);
SET client_min_messages = error;
DROP EXTENSION bloomguard CASCADE;
INSERT INTO tt VALUES (2);
CREATE EXTENSION bloomguard;
SELECT bloomguard_check('tt', 2);
SELECT count(*) FROM bloomguard_filters;
RESET client_min_messages;
SELECT bloomguard_track('tt', 'id', 1e-9);
SELECT bloomguard_wait_ready('tt'), bloomguard_check('tt', 2), bloomguard_check('tt', 3);
SELECT count(*) FROM tt WHERE NOT bloomguard_might_contain('tt', id);
\c contrib_regression
DROP DATABASE regress_bg_ddl;

SET client_min_messages = warning;
DROP SCHEMA bg_ddl CASCADE;
