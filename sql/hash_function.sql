--
-- A type's hash function is replaced while its values are stored [D8].  Equal
-- values still hash alike by the new one, so nothing else is wrong with it.
--
SET client_min_messages = warning;
CREATE TYPE hf_int;
CREATE FUNCTION hf_in(cstring) RETURNS hf_int AS 'int4in' LANGUAGE internal IMMUTABLE STRICT;
CREATE FUNCTION hf_out(hf_int) RETURNS cstring AS 'int4out' LANGUAGE internal IMMUTABLE STRICT;
CREATE TYPE hf_int (INPUT = hf_in, OUTPUT = hf_out, LIKE = int4);
CREATE FUNCTION hf_eq(hf_int, hf_int) RETURNS boolean AS 'int4eq' LANGUAGE internal IMMUTABLE STRICT;
CREATE OPERATOR = (LEFTARG = hf_int, RIGHTARG = hf_int, FUNCTION = hf_eq, COMMUTATOR = =, HASHES);
CREATE FUNCTION hf_hash(hf_int) RETURNS int AS 'hashint4' LANGUAGE internal IMMUTABLE STRICT;
CREATE FUNCTION hf_hash64(hf_int, bigint) RETURNS bigint AS 'hashint4extended' LANGUAGE internal IMMUTABLE STRICT;
CREATE OPERATOR CLASS hf_ops DEFAULT FOR TYPE hf_int USING hash AS
	OPERATOR 1 =, FUNCTION 1 hf_hash(hf_int), FUNCTION 2 hf_hash64(hf_int, bigint);
RESET client_min_messages;

CREATE TABLE hf (k hf_int, ks hf_int[]);
INSERT INTO hf SELECT i::text::hf_int, ARRAY[i::text]::hf_int[] FROM generate_series(256, 25600, 256) i;
SELECT bloomguard_track('hf', 'k', 1e-9), bloomguard_track('hf', 'ks', 1e-9);
SELECT bloomguard_wait_ready('hf');
-- this session's recipe for adding is made with the first function
INSERT INTO hf VALUES ('25856', '{25856}');
SELECT bloomguard_check('hf', 'k', '1000'::hf_int), bloomguard_check('hf', 'ks', '{1000}'::hf_int[]);

BEGIN;
CREATE OR REPLACE FUNCTION hf_hash64(hf_int, bigint) RETURNS bigint
	AS 'hashcharextended' LANGUAGE internal IMMUTABLE STRICT;
-- out of service at once; both filters, since the array is hashed with it, too
SELECT bloomguard_check('hf', 'k', '1000'::hf_int), bloomguard_check('hf', 'ks', '{1000}'::hf_int[]);
-- no builder gets by until the end of the transaction
SELECT mode, granted FROM pg_locks
WHERE locktype = 'object' AND classid = 'pg_proc'::regclass AND objid = 0 AND pid = pg_backend_pid();
COMMIT;
SELECT bloomguard_wait_ready('hf');
INSERT INTO hf VALUES ('26112', '{26112}');
SELECT count(*) FROM hf WHERE NOT bloomguard_might_contain('hf', 'k', k);
-- inside arrays core keeps the function that a session first used: reconnect
\c -
SELECT count(*) FROM hf WHERE NOT bloomguard_might_contain('hf', 'ks', ks);
-- all that is stored has 0 as its lowest byte, which is all the new function sees
SELECT bloomguard_check('hf', 'k', '200'::hf_int), bloomguard_check('hf', 'ks', '{200}'::hf_int[]);

-- another function of that form disturbs filters on containers only
CREATE FUNCTION hf_other(text, bigint) RETURNS bigint LANGUAGE sql AS 'SELECT $2';
CREATE OR REPLACE FUNCTION hf_other(text, bigint) RETURNS bigint LANGUAGE sql AS 'SELECT $2 + 1';
SELECT bloomguard_check('hf', 'k', '200'::hf_int);
SELECT bloomguard_wait_ready('hf');

SET client_min_messages = warning;
DROP TABLE hf;
DROP TYPE hf_int CASCADE;
DROP OPERATOR FAMILY hf_ops USING hash;
DROP FUNCTION hf_other;

--
-- A hash function that writes rows of another tracked table comes back to the
-- add path while an array of many elements, unpacked there, is being hashed.
--
SET client_min_messages = warning;
CREATE TYPE hf_int;
CREATE FUNCTION hf_in(cstring) RETURNS hf_int AS 'int4in' LANGUAGE internal IMMUTABLE STRICT;
CREATE FUNCTION hf_out(hf_int) RETURNS cstring AS 'int4out' LANGUAGE internal IMMUTABLE STRICT;
CREATE TYPE hf_int (INPUT = hf_in, OUTPUT = hf_out, LIKE = int4);
CREATE FUNCTION hf_eq(hf_int, hf_int) RETURNS boolean AS 'int4eq' LANGUAGE internal IMMUTABLE STRICT;
CREATE OPERATOR = (LEFTARG = hf_int, RIGHTARG = hf_int, FUNCTION = hf_eq, COMMUTATOR = =, HASHES);
CREATE FUNCTION hf_hash(hf_int) RETURNS int AS 'hashint4' LANGUAGE internal IMMUTABLE STRICT;
CREATE FUNCTION hf_plain(hf_int, bigint) RETURNS bigint AS 'hashint4extended' LANGUAGE internal IMMUTABLE STRICT;
CREATE TABLE hf_log (k text);
CREATE FUNCTION hf_hash64(hf_int, bigint) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
	IF $1 = '-1'::hf_int THEN
		INSERT INTO hf_log VALUES ('hashed');
	END IF;
	RETURN hf_plain($1, $2);
END $$;
CREATE OPERATOR CLASS hf_ops DEFAULT FOR TYPE hf_int USING hash AS
	OPERATOR 1 =, FUNCTION 1 hf_hash(hf_int), FUNCTION 2 hf_hash64(hf_int, bigint);
RESET client_min_messages;

CREATE TABLE hf (ks hf_int[]);
SELECT bloomguard_track('hf', 'ks'), bloomguard_track('hf_log', 'k');
SELECT bloomguard_wait_ready('hf'), bloomguard_wait_ready('hf_log');
INSERT INTO hf SELECT array_agg((CASE WHEN i = 1 THEN -1 ELSE i % 10 END)::text::hf_int ORDER BY i)
FROM generate_series(1, 50000) i;
SELECT count(*) FROM hf WHERE NOT bloomguard_might_contain('hf', ks);
SELECT count(*) FROM hf_log WHERE NOT bloomguard_might_contain('hf_log', k);

SET client_min_messages = warning;
DROP TABLE hf, hf_log;
DROP TYPE hf_int CASCADE;
DROP OPERATOR FAMILY hf_ops USING hash;
