--
-- HAZARDS_BUILD
-- In whose name a worker runs code of the key's type, what a type's hash function
-- can do to a write, when a filter is built anew by itself, and what settings of
-- database and role do to a build.
--

--
-- A hash function may be anybody's: in a worker it runs as the table's owner, who
-- cannot become somebody else there [J4]
--
CREATE ROLE regress_hazards_owner;
GRANT CREATE ON SCHEMA public TO regress_hazards_owner;
SET client_min_messages = warning;
CREATE TYPE hazards_int;
CREATE FUNCTION hazards_in(cstring) RETURNS hazards_int AS 'int4in' LANGUAGE internal IMMUTABLE STRICT;
CREATE FUNCTION hazards_out(hazards_int) RETURNS cstring AS 'int4out' LANGUAGE internal IMMUTABLE STRICT;
CREATE TYPE hazards_int (INPUT = hazards_in, OUTPUT = hazards_out, LIKE = int4);
CREATE FUNCTION hazards_eq(hazards_int, hazards_int) RETURNS boolean AS 'int4eq' LANGUAGE internal IMMUTABLE STRICT;
CREATE OPERATOR = (LEFTARG = hazards_int, RIGHTARG = hazards_int, FUNCTION = hazards_eq, COMMUTATOR = =, HASHES);
CREATE FUNCTION hazards_hash(hazards_int) RETURNS int AS 'hashint4' LANGUAGE internal IMMUTABLE STRICT;
CREATE FUNCTION hazards_plain(hazards_int, bigint) RETURNS bigint AS 'hashint4extended' LANGUAGE internal IMMUTABLE STRICT;
CREATE FUNCTION hazards_hash64(hazards_int, bigint) RETURNS bigint LANGUAGE sql IMMUTABLE STRICT
	AS 'SELECT public.hazards_plain($1, $2)';
CREATE OPERATOR CLASS hazards_ops DEFAULT FOR TYPE hazards_int USING hash AS
	OPERATOR 1 =, FUNCTION 1 hazards_hash(hazards_int), FUNCTION 2 hazards_hash64(hazards_int, bigint);
RESET client_min_messages;
CREATE TABLE hazards_log (worker boolean, who name, escape text, path text);
GRANT INSERT ON hazards_log TO PUBLIC;
ALTER FUNCTION hazards_hash64(hazards_int, bigint) OWNER TO regress_hazards_owner;

SET ROLE regress_hazards_owner;
CREATE TABLE hazards_owned (k hazards_int);
INSERT INTO hazards_owned VALUES ('1');
CREATE OR REPLACE FUNCTION hazards_hash64(hazards_int, bigint) RETURNS bigint LANGUAGE plpgsql VOLATILE STRICT AS $$
DECLARE
	worker boolean := current_setting('application_name') = 'bloomguard worker';
	escape text := 'escaped';
BEGIN
	IF worker THEN
		BEGIN
			SET ROLE NONE;
		EXCEPTION WHEN OTHERS THEN
			escape := SQLERRM;
		END;
		BEGIN
			CREATE TEMP TABLE hazards_trap (k int);
			escape := escape || ', trap';
		EXCEPTION WHEN OTHERS THEN
			escape := escape || ', ' || SQLERRM;
		END;
		INSERT INTO public.hazards_log VALUES (worker, current_user, escape, current_setting('search_path'));
	END IF;
	RETURN public.hazards_plain($1, $2);
END $$;
SELECT bloomguard_track('hazards_owned', 'k', 1e-9);
SELECT bloomguard_wait_ready('hazards_owned');
RESET ROLE;
-- owned by somebody else: from the next build on
SELECT DISTINCT * FROM hazards_log;
SELECT * FROM oracle('hazards_owned', 'k', '2');

--
-- A hash function that raises makes a write fail, as an index on the column would;
-- in a build it leaves the filter out of service [A15]
--
SET ROLE regress_hazards_owner;
CREATE OR REPLACE FUNCTION hazards_hash64(hazards_int, bigint) RETURNS bigint LANGUAGE plpgsql STRICT AS $$
BEGIN
	IF $1 OPERATOR(public.=) '13'::public.hazards_int THEN
		RAISE 'no hash for %', $1;
	END IF;
	RETURN public.hazards_plain($1, $2);
END $$;
SELECT bloomguard_wait_ready('hazards_owned');
INSERT INTO hazards_owned VALUES ('12'), ('13');
INSERT INTO hazards_owned VALUES ('12');
SELECT * FROM oracle('hazards_owned', 'k', '2');
ALTER TABLE hazards_owned DISABLE TRIGGER bloomguard_k;
INSERT INTO hazards_owned VALUES ('13');
ALTER TABLE hazards_owned ENABLE ALWAYS TRIGGER bloomguard_k;
SELECT bloomguard_wait_ready('hazards_owned', '200 ms');
SELECT count(*) FROM hazards_owned WHERE k = '12' AND NOT bloomguard_might_contain('hazards_owned', k);
DELETE FROM hazards_owned WHERE k = '13';
VACUUM hazards_owned;
SELECT * FROM oracle('hazards_owned', 'k', '2');
RESET ROLE;
DROP TABLE hazards_owned, hazards_log;
SET client_min_messages = warning;
DROP TYPE hazards_int CASCADE;
DROP OPERATOR FAMILY hazards_ops USING hash;
RESET client_min_messages;

--
-- A table that outgrows its filter: every row is still found, and a larger filter
-- is built without anybody asking [E-12, E-13]
--
CREATE TABLE hazards_grow (k int);
SELECT bloomguard_track('hazards_grow', 'k', 1e-9, 1000);
SELECT bloomguard_wait_ready('hazards_grow');
SELECT capacity < 20000 AS small FROM bloomguard_filters WHERE relation = 'hazards_grow'::regclass;
INSERT INTO hazards_grow SELECT generate_series(1, 20000);
SELECT count(*) FROM hazards_grow WHERE NOT bloomguard_might_contain('hazards_grow', k);
SELECT wait_generation('hazards_grow', 2);
SELECT capacity >= 20000 AS larger, estimated_rate < 1e-8 AS sharp FROM bloomguard_filters
	WHERE relation = 'hazards_grow'::regclass;
SELECT * FROM oracle('hazards_grow', 'k', '-1');
DROP TABLE hazards_grow;

--
-- Settings of the database and of the role that workers run as must neither stop a
-- build nor change what it sees [F6, C20].  Two of them would make core pass over
-- damaged pages, and a filter would lack their keys.
--
CREATE TABLE hazards_s (k int, v int) PARTITION BY LIST (v);
CREATE TABLE hazards_s_1 PARTITION OF hazards_s FOR VALUES IN (1);
INSERT INTO hazards_s SELECT i, 1 FROM generate_series(1, 1000) i;
ALTER TABLE hazards_s ENABLE ROW LEVEL SECURITY;
ALTER TABLE hazards_s FORCE ROW LEVEL SECURITY;
ALTER TABLE hazards_s_1 ENABLE ROW LEVEL SECURITY;
ALTER TABLE hazards_s_1 FORCE ROW LEVEL SECURITY;
CREATE SCHEMA hazards_trap;
CREATE FUNCTION hazards_trap.bloomguard_maintain() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE TABLE hazards_trap.pg_trigger (oid oid);
CREATE FUNCTION hazards_set(how text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	setting text;
	target text := format('DATABASE %I', current_database());
BEGIN
	FOR setting IN SELECT unnest(ARRAY[
		'default_transaction_isolation TO ''serializable''',
		'default_transaction_read_only TO on',
		'default_transaction_deferrable TO on',
		'statement_timeout TO 1',
		'lock_timeout TO 1',
		'idle_in_transaction_session_timeout TO 1',
		'session_replication_role TO replica',
		'row_security TO off',
		'search_path TO hazards_trap, pg_catalog, public',
		'zero_damaged_pages TO on',
		'ignore_checksum_failure TO on',
		'synchronous_commit TO off',
		'vacuum_cost_delay TO 100',
		'vacuum_cost_limit TO 1',
		'work_mem TO 64',
		'transform_null_equals TO on',
		'bloomguard.enabled TO off'])
	LOOP
		IF how = 'RESET' THEN
			setting := split_part(setting, ' ', 1);
		END IF;
		EXECUTE format('ALTER %s %s %s', target, how, setting);
		EXECUTE format('ALTER ROLE %I %s %s', current_user, how, setting);
	END LOOP;
END $$;
SELECT hazards_set('SET');
SELECT bloomguard_track('hazards_s', 'k', 1e-9);
SELECT * FROM oracle('hazards_s', 'k', '-1');
INSERT INTO hazards_s SELECT i, 1 FROM generate_series(1001, 2000) i;
SELECT bloomguard_rebuild('hazards_s');
SELECT wait_generation('hazards_s', 2);
SELECT * FROM oracle('hazards_s', 'k', '-1');
-- a repair writes the catalog
ALTER TABLE hazards_s ENABLE TRIGGER ALL;
SELECT bloomguard_wait_ready('hazards_s');
SELECT DISTINCT tgenabled FROM pg_trigger WHERE tgname = 'bloomguard_k';
SELECT * FROM oracle('hazards_s', 'k', '-1');
-- a page that cannot be read ends the build: no keys are left out in silence.  The
-- file has not been read into buffers since it was moved.
SET allow_in_place_tablespaces = on;
SET client_min_messages = warning;
CREATE TABLESPACE regress_hazards_space LOCATION '';
RESET client_min_messages;
CREATE TABLE hazards_bad (k int, filler text);
ALTER TABLE hazards_bad ALTER filler SET STORAGE PLAIN;
INSERT INTO hazards_bad SELECT i, repeat('x', 2000) FROM generate_series(1, 12) i;
ALTER TABLE hazards_bad SET TABLESPACE regress_hazards_space;
DO $$
BEGIN
	EXECUTE format('COPY (SELECT 1) TO PROGRAM %L', format(
		'cat >/dev/null; head -c %1$s /dev/zero | tr ''\0'' x | dd of=%2$s bs=%1$s seek=1 conv=notrunc 2>/dev/null',
		current_setting('block_size'), pg_relation_filepath('hazards_bad')));
END $$;
SELECT bloomguard_track('hazards_bad', 'k', 1e-9);
CREATE FUNCTION hazards_error(OUT ready boolean, OUT error text) LANGUAGE plpgsql AS $$
DECLARE
	deadline timestamptz := clock_timestamp() + '60 s';
BEGIN
	LOOP
		SELECT f.state = 'ready', regexp_replace(f.last_error, ' of relation .*', '') INTO ready, error
			FROM bloomguard_filters f WHERE f.relation = 'hazards_bad'::regclass;
		EXIT WHEN ready OR error IS NOT NULL OR clock_timestamp() > deadline;
	END LOOP;
END $$;
SELECT * FROM hazards_error();
SELECT bloomguard_might_contain('hazards_bad', -1) AS maybe;
DROP TABLE hazards_bad;
DROP FUNCTION hazards_error;
DROP TABLESPACE regress_hazards_space;
RESET allow_in_place_tablespaces;
SELECT hazards_set('RESET');
SELECT count(*) FROM pg_db_role_setting, unnest(setconfig) setting
	WHERE setting ~ '^(default_transaction|zero_damaged_pages|search_path|bloomguard)';
DROP FUNCTION hazards_set;
DROP TABLE hazards_s;
SET client_min_messages = warning;
DROP SCHEMA hazards_trap CASCADE;
REVOKE CREATE ON SCHEMA public FROM regress_hazards_owner;
DROP ROLE regress_hazards_owner;
