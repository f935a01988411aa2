--
-- Commands inside the statements that they concern
--

--
-- A partition is attached by a function that the statement calls whose rows go into
-- it.  The statement has the triggers of before [A12, B14].
--
CREATE TABLE nested_r (k int) PARTITION BY RANGE (k);
CREATE TABLE nested_r1 PARTITION OF nested_r FOR VALUES FROM (0) TO (100);
INSERT INTO nested_r VALUES (1);
SELECT bloomguard_track('nested_r', 'k', 1e-9);
SELECT * FROM oracle('nested_r', 'k', '50');
CREATE TABLE nested_r2 (k int);
CREATE FUNCTION nested_attach() RETURNS int LANGUAGE plpgsql AS $$
BEGIN
	IF NOT EXISTS (SELECT FROM pg_inherits WHERE inhrelid = 'nested_r2'::regclass) THEN
		ALTER TABLE nested_r ATTACH PARTITION nested_r2 FOR VALUES FROM (100) TO (200);
	END IF;
	RETURN 0;
END $$;
INSERT INTO nested_r2 SELECT g + nested_attach() FROM generate_series(101, 110) g;
SELECT * FROM oracle('nested_r', 'k', '50');
SELECT count(*) FROM nested_r WHERE k > 100;
DROP TABLE nested_r;
DROP FUNCTION nested_attach;

--
-- A hash function writes rows of the table whose key it hashes, and changes what
-- the session knows of the table's filter.
--
SET client_min_messages = warning;
CREATE TYPE nested_int;
CREATE FUNCTION nested_in(cstring) RETURNS nested_int AS 'int4in' LANGUAGE internal IMMUTABLE STRICT;
CREATE FUNCTION nested_out(nested_int) RETURNS cstring AS 'int4out' LANGUAGE internal IMMUTABLE STRICT;
CREATE TYPE nested_int (INPUT = nested_in, OUTPUT = nested_out, LIKE = int4);
CREATE FUNCTION nested_eq(nested_int, nested_int) RETURNS boolean AS 'int4eq' LANGUAGE internal IMMUTABLE STRICT;
CREATE OPERATOR = (LEFTARG = nested_int, RIGHTARG = nested_int, FUNCTION = nested_eq, COMMUTATOR = =, HASHES);
CREATE FUNCTION nested_hash(nested_int) RETURNS int AS 'hashint4' LANGUAGE internal IMMUTABLE STRICT;
CREATE FUNCTION nested_plain(nested_int, bigint) RETURNS bigint AS 'hashint4extended' LANGUAGE internal IMMUTABLE STRICT;
CREATE FUNCTION nested_hash64(nested_int, bigint) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
	IF $1 OPERATOR(public.=) '-1'::public.nested_int AND to_regclass('public.nested_p2') IS NULL THEN
		CREATE TABLE public.nested_p2 PARTITION OF public.nested_p FOR VALUES IN (2);
		INSERT INTO public.nested_t VALUES ('-2'), ('-3');
	END IF;
	RETURN public.nested_plain($1, $2);
END $$;
CREATE OPERATOR CLASS nested_ops DEFAULT FOR TYPE nested_int USING hash AS
	OPERATOR 1 =, FUNCTION 1 nested_hash(nested_int), FUNCTION 2 nested_hash64(nested_int, bigint);
RESET client_min_messages;
CREATE TABLE nested_p (k int) PARTITION BY LIST (k);
CREATE TABLE nested_t (k nested_int);
INSERT INTO nested_t SELECT g::text::nested_int FROM generate_series(1, 10) g;
SELECT bloomguard_track('nested_p', 'k', 1e-9), bloomguard_track('nested_t', 'k', 1e-9);
SELECT * FROM oracle('nested_t', 'k', '50');
INSERT INTO nested_t VALUES ('11'), ('-1'), ('12');
SELECT count(*) FROM nested_t;
SELECT * FROM oracle('nested_t', 'k', '50');
-- the same at every call: the row is written, the filter does without it for a while
CREATE SEQUENCE nested_s START 10;
CREATE OR REPLACE FUNCTION nested_hash64(nested_int, bigint) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
	IF $1 OPERATOR(public.=) '-9'::public.nested_int AND
		current_setting('application_name') <> 'bloomguard worker' THEN
		EXECUTE format('CREATE TABLE public.nested_p%1$s PARTITION OF public.nested_p FOR VALUES IN (%1$s)',
			nextval('public.nested_s'));
	END IF;
	RETURN public.nested_plain($1, $2);
END $$;
SELECT * FROM oracle('nested_t', 'k', '50');
INSERT INTO nested_t VALUES ('-9');
DELETE FROM nested_t WHERE k = '-9';
SELECT * FROM oracle('nested_t', 'k', '50');
SET client_min_messages = warning;
DROP SEQUENCE nested_s;
DROP TABLE nested_t, nested_p;
DROP TYPE nested_int CASCADE;
DROP OPERATOR FAMILY nested_ops USING hash;
