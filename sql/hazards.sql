--
-- HAZARDS
-- Rows of the hazard catalogue that no other file has: our trigger attached to
-- what it is not made for, tables and types that change under a filter in unusual
-- ways, entries that are used again, and where the functions may be used.
-- doc/guarantees.md says which test shows what.
--
CREATE EXTENSION postgres_fdw;
CREATE ACCESS METHOD hazards_heap TYPE TABLE HANDLER heap_tableam_handler;

-- state and reason of a relation's filters, when a worker has come to a verdict
CREATE FUNCTION hazards_state(rel regclass) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	deadline timestamptz := clock_timestamp() + '60 s';
	result text;
BEGIN
	LOOP
		SELECT string_agg(concat_ws(': ', state, reason), '; ') INTO result
			FROM bloomguard_filters WHERE relation = rel;
		EXIT WHEN result ~ '^(ready|blocked)' OR clock_timestamp() > deadline;
	END LOOP;
	RETURN result;
END $$;

--
-- Our trigger by hand, in every way that CREATE TRIGGER has.  It may do nothing,
-- but must not touch rows that are not there, change the row, or fail the command
-- [A13]; and a filter that it defines is blocked.
--
CREATE FUNCTION hazards_attach(rel regclass, what text, args text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('CREATE TRIGGER hazards_by_hand %s EXECUTE FUNCTION bloomguard_maintain(%s)',
		format(what, rel), args);
	EXECUTE format('ALTER TABLE %s ENABLE ALWAYS TRIGGER hazards_by_hand', rel);
	RETURN what;
END $$;
CREATE TABLE hazards_hand (k int, v text);
CREATE PROCEDURE hazards_by_hand(what text, args text DEFAULT '''k''',
	INOUT attached text DEFAULT NULL, INOUT state text DEFAULT NULL, INOUT rows text DEFAULT NULL)
LANGUAGE plpgsql AS $$
BEGIN
	attached := hazards_attach('hazards_hand', what, args);
	COMMIT;
	state := hazards_state('hazards_hand');
	INSERT INTO hazards_hand VALUES (1, 'a'), (2, 'b'), (NULL, 'c');
	UPDATE hazards_hand SET k = k + 10, v = v || v;
	DELETE FROM hazards_hand WHERE k = 12;
	INSERT INTO hazards_hand VALUES (3, 'd');
	rows := string_agg(concat(k, v), ' ' ORDER BY k)
		|| ', absent: ' || count(*) FILTER (WHERE NOT bloomguard_might_contain('hazards_hand', 'k', k))
		FROM hazards_hand;
	TRUNCATE hazards_hand;
	DROP TRIGGER hazards_by_hand ON hazards_hand;
	COMMIT;
END $$;
SET client_min_messages = error;
CALL hazards_by_hand('BEFORE INSERT OR UPDATE ON %s FOR EACH ROW');
CALL hazards_by_hand('BEFORE INSERT OR UPDATE OR DELETE ON %s FOR EACH ROW');
CALL hazards_by_hand('AFTER DELETE ON %s FOR EACH ROW');
CALL hazards_by_hand('AFTER INSERT OR UPDATE OR DELETE ON %s FOR EACH ROW');
CALL hazards_by_hand('BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON %s FOR EACH STATEMENT');
CALL hazards_by_hand('AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON %s FOR EACH STATEMENT');
-- transition tables [A8]
CALL hazards_by_hand('AFTER INSERT ON %s REFERENCING NEW TABLE AS n FOR EACH STATEMENT');
CALL hazards_by_hand('AFTER UPDATE ON %s REFERENCING OLD TABLE AS o NEW TABLE AS n FOR EACH ROW');
-- arguments
CALL hazards_by_hand('AFTER INSERT OR UPDATE ON %s FOR EACH ROW', '');
CALL hazards_by_hand('AFTER INSERT OR UPDATE ON %s FOR EACH ROW', '''''');
CALL hazards_by_hand('AFTER INSERT OR UPDATE ON %s FOR EACH ROW', '''k, k''');
CALL hazards_by_hand('AFTER INSERT OR UPDATE ON %s FOR EACH ROW', '''ctid''');
CALL hazards_by_hand('AFTER INSERT OR UPDATE ON %s FOR EACH ROW', '''k, v, a, b, c, d, e, f, g''');
CALL hazards_by_hand('AFTER INSERT OR UPDATE ON %s FOR EACH ROW', '''k'', ''capacity=1000'', ''capacity=99999999999999999999''');
-- as bloomguard_track() does it: a filter like any other
CALL hazards_by_hand('AFTER INSERT OR UPDATE ON %s FOR EACH ROW');
RESET client_min_messages;

-- a view
CREATE VIEW hazards_view AS SELECT * FROM hazards_hand;
CREATE TRIGGER hazards_by_hand INSTEAD OF INSERT OR UPDATE OR DELETE ON hazards_view
	FOR EACH ROW EXECUTE FUNCTION bloomguard_maintain('k');
INSERT INTO hazards_view VALUES (1, 'a');
INSERT INTO hazards_hand VALUES (1, 'a');
UPDATE hazards_view SET k = 2;
DELETE FROM hazards_view;
SELECT hazards_state('hazards_view');
SELECT * FROM hazards_view;
DROP VIEW hazards_view;
-- a foreign table: rows come from a tuplestore
DO $$
BEGIN
	EXECUTE format('CREATE SERVER hazards_loopback FOREIGN DATA WRAPPER postgres_fdw OPTIONS (dbname %L, host %L, port %L)',
		current_database(), split_part(current_setting('unix_socket_directories'), ',', 1), current_setting('port'));
END $$;
CREATE USER MAPPING FOR CURRENT_USER SERVER hazards_loopback;
CREATE FOREIGN TABLE hazards_far (k int, v text) SERVER hazards_loopback OPTIONS (table_name 'hazards_hand');
SELECT hazards_attach('hazards_far', 'AFTER INSERT OR UPDATE ON %s FOR EACH ROW', '''k''');
INSERT INTO hazards_far VALUES (3, 'c'), (4, 'd');
UPDATE hazards_far SET k = k + 1 WHERE v = 'd';
SELECT hazards_state('hazards_far');
SELECT count(*), count(*) FILTER (WHERE NOT bloomguard_might_contain('hazards_far', k)) AS called_absent FROM hazards_far;
DROP SERVER hazards_loopback CASCADE;
-- a temporary table does not use up an entry
CREATE TEMP TABLE hazards_temp (k int);
SELECT hazards_attach('hazards_temp', 'AFTER INSERT OR UPDATE ON %s FOR EACH ROW', '''k''');
INSERT INTO hazards_temp VALUES (1);
SELECT count(*) FROM bloomguard_filters WHERE relation = 'hazards_temp'::regclass;
SELECT bloomguard_might_contain('hazards_temp', 1), bloomguard_might_contain('hazards_temp', 2);
DROP TABLE hazards_temp, hazards_hand;
-- not as a trigger at all
SELECT bloomguard_maintain();
CREATE EVENT TRIGGER hazards_event ON ddl_command_end EXECUTE FUNCTION bloomguard_maintain();
DROP PROCEDURE hazards_by_hand;
DROP FUNCTION hazards_attach;

--
-- A copy made by LIKE has no trigger, so no filter speaks for it [B17]
--
CREATE TABLE hazards_t (k int, v text);
INSERT INTO hazards_t SELECT i, i FROM generate_series(1, 100) i;
SELECT bloomguard_track('hazards_t', 'k', 1e-9);
SELECT * FROM oracle('hazards_t', 'k', '-1');
CREATE TABLE hazards_like (LIKE hazards_t INCLUDING ALL);
INSERT INTO hazards_like VALUES (-1);
SELECT bloomguard_check('hazards_like', -1), bloomguard_check('hazards_t', -1);
DROP TABLE hazards_like;

--
-- Rows that lie elsewhere than in a heap: a partition of another access method
-- puts the filter of its tree out of service, empty or not [B28]
--
CREATE TABLE hazards_p (k int) PARTITION BY LIST (k);
CREATE TABLE hazards_p_1 PARTITION OF hazards_p FOR VALUES IN (1);
INSERT INTO hazards_p VALUES (1);
SELECT bloomguard_track('hazards_p', 'k', 1e-9);
SELECT * FROM oracle('hazards_p', 'k', '-1');
BEGIN;
CREATE TABLE hazards_p_2 PARTITION OF hazards_p FOR VALUES IN (2) USING hazards_heap;
INSERT INTO hazards_p VALUES (2);
SELECT bloomguard_check('hazards_p', -1) <> 'absent' AS out_of_service;
COMMIT;
SELECT hazards_state('hazards_p');
SELECT bloomguard_check('hazards_p', 2), bloomguard_might_contain('hazards_p', -1) AS maybe;
DROP TABLE hazards_p_2;
SELECT * FROM oracle('hazards_p', 'k', '-1');
CREATE TABLE hazards_p_2 (k int) USING hazards_heap;
ALTER TABLE hazards_p ATTACH PARTITION hazards_p_2 FOR VALUES IN (2);
SELECT hazards_state('hazards_p');
ALTER TABLE hazards_p DETACH PARTITION hazards_p_2;
SELECT * FROM oracle('hazards_p', 'k', '-1');
DROP TABLE hazards_p, hazards_p_2;
-- a table that moves to one: no new filter is made from it, the trigger goes on
-- feeding the old one
ALTER TABLE hazards_t SET ACCESS METHOD hazards_heap;
INSERT INTO hazards_t VALUES (101);
SELECT * FROM oracle('hazards_t', 'k', '-1');
SELECT bloomguard_rebuild('hazards_t');
INSERT INTO hazards_t VALUES (102);
SELECT * FROM oracle('hazards_t', 'k', '-1');
SELECT generation FROM bloomguard_filters WHERE relation = 'hazards_t'::regclass;
ALTER TABLE hazards_t SET ACCESS METHOD heap;
SELECT * FROM oracle('hazards_t', 'k', '-1');

--
-- Tables of a composite type: their columns are altered through the type
-- [A14, B12, B13]
--
CREATE TYPE hazards_row AS (k int, v int);
CREATE TABLE hazards_of OF hazards_row;
INSERT INTO hazards_of SELECT i, -i FROM generate_series(1, 100) i;
SELECT bloomguard_track('hazards_of', 'k', 1e-9);
SELECT * FROM oracle('hazards_of', 'k', '-1');
BEGIN;
ALTER TYPE hazards_row RENAME ATTRIBUTE k TO id CASCADE;
SELECT bloomguard_check('hazards_of', 'id', 0) <> 'absent' AS out_of_service;
INSERT INTO hazards_of VALUES (101, 0);
COMMIT;
SELECT * FROM oracle('hazards_of', 'id', '-1');
-- the names change places, the filter stays with its column
BEGIN;
ALTER TYPE hazards_row RENAME ATTRIBUTE id TO aside CASCADE;
ALTER TYPE hazards_row RENAME ATTRIBUTE v TO id CASCADE;
ALTER TYPE hazards_row RENAME ATTRIBUTE aside TO v CASCADE;
COMMIT;
SELECT key_columns FROM bloomguard_filters WHERE relation = 'hazards_of'::regclass;
SELECT * FROM oracle('hazards_of', 'v', '-1');
BEGIN;
ALTER TYPE hazards_row ALTER ATTRIBUTE v TYPE bigint CASCADE;
SELECT bloomguard_check('hazards_of', 'v', 0) <> 'absent' AS out_of_service;
COMMIT;
SELECT * FROM oracle('hazards_of', 'v', '-1');
ALTER TYPE hazards_row DROP ATTRIBUTE v CASCADE;
SELECT hazards_state('hazards_of');
ALTER TYPE hazards_row ADD ATTRIBUTE v int CASCADE;
INSERT INTO hazards_of VALUES (0, 7);
SELECT * FROM oracle('hazards_of', 'v', '-1');
DROP TABLE hazards_of;
DROP TYPE hazards_row;

--
-- A label of an enum gets another name: the value is the same [D7]
--
CREATE TYPE hazards_mood AS ENUM ('sad', 'happy');
CREATE TABLE hazards_e (k hazards_mood, ks hazards_mood[]);
INSERT INTO hazards_e VALUES ('sad', '{sad}');
SELECT bloomguard_track('hazards_e', 'k', 1e-9), bloomguard_track('hazards_e', 'ks', 1e-9);
SELECT bloomguard_wait_ready('hazards_e');
PREPARE hazards_ask(text) AS SELECT bloomguard_check('hazards_e', 'k', $1), bloomguard_check('hazards_e', 'ks', '{' || $1 || '}');
SET plan_cache_mode = force_generic_plan;
EXECUTE hazards_ask('sad');
EXECUTE hazards_ask('happy');
ALTER TYPE hazards_mood RENAME VALUE 'sad' TO 'blue';
EXECUTE hazards_ask('blue');
ALTER TYPE hazards_mood ADD VALUE 'sad';
INSERT INTO hazards_e VALUES ('happy', '{happy}');
EXECUTE hazards_ask('sad');
EXECUTE hazards_ask('happy');
RESET plan_cache_mode;
DEALLOCATE hazards_ask;
SELECT * FROM oracle('hazards_e', 'k', 'sad');
SELECT * FROM oracle('hazards_e', 'ks', '{sad}');
DROP TABLE hazards_e;
DROP TYPE hazards_mood;

--
-- A type whose operator class hashes to 32 bits only is refused [D16]
--
CREATE TYPE hazards_int;
SET client_min_messages = warning;
CREATE FUNCTION hazards_in(cstring) RETURNS hazards_int AS 'int4in' LANGUAGE internal IMMUTABLE STRICT;
CREATE FUNCTION hazards_out(hazards_int) RETURNS cstring AS 'int4out' LANGUAGE internal IMMUTABLE STRICT;
RESET client_min_messages;
CREATE TYPE hazards_int (INPUT = hazards_in, OUTPUT = hazards_out, LIKE = int4);
CREATE FUNCTION hazards_eq(hazards_int, hazards_int) RETURNS boolean AS 'int4eq' LANGUAGE internal IMMUTABLE STRICT;
CREATE OPERATOR = (LEFTARG = hazards_int, RIGHTARG = hazards_int, FUNCTION = hazards_eq, COMMUTATOR = =, HASHES);
CREATE FUNCTION hazards_hash(hazards_int) RETURNS int AS 'hashint4' LANGUAGE internal IMMUTABLE STRICT;
CREATE OPERATOR CLASS hazards_ops DEFAULT FOR TYPE hazards_int USING hash AS
	OPERATOR 1 =, FUNCTION 1 hazards_hash(hazards_int);
CREATE TABLE hazards_h (k hazards_int);
SELECT refused($$SELECT bloomguard_track('hazards_h', 'k')$$);
DROP TABLE hazards_h;
SET client_min_messages = warning;
DROP TYPE hazards_int CASCADE;
DROP OPERATOR FAMILY hazards_ops USING hash;
RESET client_min_messages;

--
-- Generated columns: virtual ones are refused [A5]; another expression changes the
-- stored keys without firing a trigger [B11].  Versions that have neither say the
-- same.
--
DO $$
DECLARE
	answer text := '0A000: cannot track columns of relation "hazards_v"';
BEGIN
	IF current_setting('server_version_num')::int >= 180000 THEN
		CREATE TABLE hazards_v (a int);
		EXECUTE 'ALTER TABLE hazards_v ADD k int GENERATED ALWAYS AS (a + 1) VIRTUAL';
		answer := split_part(refused('SELECT bloomguard_track(''hazards_v'', ''k'')'), E'\n', 1);
		DROP TABLE hazards_v;
	END IF;
	RAISE NOTICE '%', answer;
END $$;
CREATE TABLE hazards_g (a int, k int GENERATED ALWAYS AS (a + 1000) STORED);
INSERT INTO hazards_g SELECT generate_series(1, 100);
SELECT bloomguard_track('hazards_g', 'k', 1e-9);
SELECT * FROM oracle('hazards_g', 'k', '-1');
DO $$
BEGIN
	IF current_setting('server_version_num')::int >= 170000 THEN
		EXECUTE 'ALTER TABLE hazards_g ALTER k SET EXPRESSION AS (a + 5000)';
		IF bloomguard_check('hazards_g', -1) = 'absent' THEN
			RAISE WARNING 'still in service';
		END IF;
	END IF;
END $$;
SELECT * FROM oracle('hazards_g', 'k', '-1');
ALTER TABLE hazards_g ALTER k DROP EXPRESSION;
INSERT INTO hazards_g VALUES (0, 9);
SELECT * FROM oracle('hazards_g', 'k', '-1');
DROP TABLE hazards_g;

--
-- A place in the registry that is used again: nothing of the old filter speaks for
-- the new one, in a session that has asked and added through both [B20, E-8]
--
SELECT bloomguard_untrack('hazards_t');
CREATE FUNCTION hazards_turn(turn int) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO hazards_turn VALUES (turn);
	RETURN concat_ws(', ', bloomguard_check('hazards_turn', turn), bloomguard_check('hazards_turn', turn - 1));
END $$;
CREATE PROCEDURE hazards_turns() LANGUAGE plpgsql AS $$
DECLARE
	deadline timestamptz := clock_timestamp() + '60 s';
	before int;
BEGIN
	FOR turn IN 1 .. 4 LOOP
		before := filters FROM bloomguard_memory;
		CREATE TABLE hazards_turn (k int);
		PERFORM bloomguard_track('hazards_turn', 'k', 1e-9);
		COMMIT;
		PERFORM bloomguard_wait_ready('hazards_turn');
		RAISE NOTICE '%', hazards_turn(turn);
		RAISE NOTICE 'counted: %', (SELECT sum(probes) FROM bloomguard_stats WHERE relation = 'hazards_turn'::regclass);
		COMMIT;
		RAISE NOTICE 'counted: %, called absent: %',
			(SELECT sum(probes) FROM bloomguard_stats WHERE relation = 'hazards_turn'::regclass),
			(SELECT count(*) FROM hazards_turn WHERE NOT bloomguard_might_contain('hazards_turn', k));
		DROP TABLE hazards_turn;
		COMMIT;
		-- the place is free when the worker has been
		WHILE (SELECT filters > before FROM bloomguard_memory) AND clock_timestamp() < deadline LOOP
			COMMIT;
		END LOOP;
	END LOOP;
END $$;
CALL hazards_turns();
DROP PROCEDURE hazards_turns;
DROP FUNCTION hazards_turn;

--
-- The function of all our triggers is another one for a while: renamed, or replaced
-- by one that adds nothing.  Meanwhile there is no filter; when it is back there is,
-- by itself, with the rows that came in between [B8]
--
SELECT bloomguard_track('hazards_t', 'k', 1e-9);
SELECT * FROM oracle('hazards_t', 'k', '-1');
-- return when the workers have forgotten the filter
CREATE FUNCTION hazards_forgotten(before int) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
	deadline timestamptz := clock_timestamp() + '60 s';
BEGIN
	WHILE (SELECT filters >= before FROM bloomguard_memory) AND clock_timestamp() < deadline LOOP
	END LOOP;
	RETURN clock_timestamp() < deadline;
END $$;
SELECT filters AS before FROM bloomguard_memory \gset
SET client_min_messages = error;
ALTER FUNCTION bloomguard_maintain() RENAME TO hazards_renamed;
SELECT hazards_forgotten(:before);
INSERT INTO hazards_t VALUES (201);
SELECT bloomguard_might_contain('hazards_t', 201), bloomguard_might_contain('hazards_t', -1);
ALTER FUNCTION hazards_renamed() RENAME TO bloomguard_maintain;
SELECT * FROM oracle('hazards_t', 'k', '-1');
CREATE OR REPLACE FUNCTION bloomguard_maintain() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
SELECT hazards_forgotten(:before);
INSERT INTO hazards_t VALUES (202);
SELECT bloomguard_might_contain('hazards_t', 202), bloomguard_might_contain('hazards_t', -1);
CREATE OR REPLACE FUNCTION bloomguard_maintain() RETURNS trigger
	AS '$libdir/bloomguard', 'bloomguard_maintain' LANGUAGE C;
SELECT * FROM oracle('hazards_t', 'k', '-1');
SELECT count(*) FROM hazards_t WHERE k > 200;
RESET client_min_messages;
SELECT bloomguard_untrack('hazards_t');
DROP FUNCTION hazards_forgotten;

--
-- TRUNCATE by a prepared transaction: the rows are back, or the filter sheds them,
-- as without a second phase [B18]
--
CREATE TABLE hazards_2pc (k int);
INSERT INTO hazards_2pc SELECT generate_series(1, 100);
SELECT bloomguard_track('hazards_2pc', 'k', 1e-9);
SELECT * FROM oracle('hazards_2pc', 'k', '-1');
BEGIN;
TRUNCATE hazards_2pc;
INSERT INTO hazards_2pc VALUES (101);
PREPARE TRANSACTION 'hazards';
ROLLBACK PREPARED 'hazards';
SELECT * FROM oracle('hazards_2pc', 'k', '-1');
SELECT wait_generation('hazards_2pc', 2);
BEGIN;
TRUNCATE hazards_2pc;
INSERT INTO hazards_2pc VALUES (102);
PREPARE TRANSACTION 'hazards';
COMMIT PREPARED 'hazards';
SELECT wait_generation('hazards_2pc', 3);
SELECT * FROM oracle('hazards_2pc', 'k', '5');
DROP TABLE hazards_2pc;

--
-- A prepared statement outlives filter and table [I14, J10]
--
SELECT bloomguard_track('hazards_t', 'k', 1e-9);
SELECT * FROM oracle('hazards_t', 'k', '-1');
SET plan_cache_mode = force_generic_plan;
PREPARE hazards_ask(regclass, int) AS SELECT bloomguard_check($1, $2);
SELECT 'hazards_t'::regclass::oid AS relation \gset
EXECUTE hazards_ask(:relation, -1);
SELECT bloomguard_untrack('hazards_t');
EXECUTE hazards_ask(:relation, -1);
SELECT bloomguard_track('hazards_t', 'k', 1e-9);
SELECT bloomguard_wait_ready('hazards_t');
EXECUTE hazards_ask(:relation, -1);

--
-- Where the functions may be used.  They are STABLE, so core refuses them where an
-- answer would be kept [I2, I21]
--
CREATE INDEX ON hazards_t (k) WHERE bloomguard_might_contain('hazards_t', k);
CREATE INDEX ON hazards_t (bloomguard_check('hazards_t', k));
ALTER TABLE hazards_t ADD g boolean GENERATED ALWAYS AS (bloomguard_might_contain('hazards_t', k)) STORED;
-- a CHECK constraint that asks about the row itself sees it come before its key
ALTER TABLE hazards_t ADD CHECK (bloomguard_might_contain('hazards_t', k));
INSERT INTO hazards_t VALUES (-5);
INSERT INTO hazards_t VALUES (5);
SELECT * FROM oracle('hazards_t', 'k', '-5');
-- not trusted: who is no superuser cannot install hooks [J8]
SELECT superuser, trusted FROM pg_available_extension_versions WHERE name = 'bloomguard' AND installed;

DROP TABLE hazards_t;
EXECUTE hazards_ask(:relation, -1);
DEALLOCATE hazards_ask;
RESET plan_cache_mode;
DROP FUNCTION hazards_state;
DROP ACCESS METHOD hazards_heap;
SET client_min_messages = warning;
DROP EXTENSION postgres_fdw CASCADE;
