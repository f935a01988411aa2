--
-- TYPES
-- What SQL calls equal must never be called absent, whatever its bytes; and what
-- differs should be told apart.  [D1-D14]
--
-- The filters here hold a few keys each: a false positive has a probability of
-- less than 1e-15, so "absent" can be expected of single keys.
--
CREATE EXTENSION citext;
CREATE TYPE types_mood AS ENUM ('sad', 'ok', 'happy');
CREATE TYPE types_other_enum AS ENUM ('sad');
CREATE DOMAIN types_posint AS int CHECK (VALUE > 0);
CREATE DOMAIN types_email AS citext CHECK (VALUE ~ '@');
CREATE DOMAIN types_small AS types_posint CHECK (VALUE < 1000);
CREATE DOMAIN types_amount AS numeric(10,2);
CREATE COLLATION types_ci (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE COLLATION types_nd (provider = icu, locale = 'und', deterministic = false);
CREATE COLLATION types_de (provider = icu, locale = 'de');

-- stored, equal and absent are lists of expressions, with " ; " between them; those in equal are equal, by
-- the column's "=", to one in stored
CREATE TABLE types_case (name text PRIMARY KEY, type text,
	stored text[], equal text[], absent text[]);

INSERT INTO types_case
SELECT name, type, string_to_array(stored, ' ; '), string_to_array(equal, ' ; '), string_to_array(absent, ' ; ')
FROM (VALUES
('int2', 'int2', '1 ; -1 ; 32767',
	$$1::int2 ; 1::int4 ; 1::int8 ; -1::int8 ; -1::int2 ; '32767' ; ' 1 '$$,
	$$2::int2 ; 2 ; -2::int8 ; 4294967297::int8 ; 65537 ; 4294967295::int8 ; '2'$$),
('int4', 'int4', '1 ; -1 ; 70000',
	$$1::int2 ; 1::int4 ; 1::int8 ; -1::int2 ; -1::int8 ; 70000::int8 ; '70000'$$,
	$$2::int2 ; 2 ; 2::int8 ; 4464::int2 ; 4294967297::int8 ; 4294967295::int8 ; '-2'$$),
-- core's hashint8extended folds 64 bits into 32: it takes 4 for 4294967301
('int8', 'int8', '1 ; -1 ; 4294967301 ; 9223372036854775807 ; -9223372036854775808',
	$$1::int2 ; 1::int4 ; 1::int8 ; -1::int2 ; -1::int4 ; 4294967301 ; '4294967301' ; 9223372036854775807$$,
	$$4::int2 ; 4::int4 ; 4::int8 ; 5 ; 0 ; 4294967295 ; -4294967297 ; '4'$$),
('int8_4', 'int8', '4', '4 ; 4::int2 ; 4::int8', '4294967301 ; -4294967292 ; 0'),
('numeric', 'numeric', $$1.0 ; 0.100 ; 'NaN' ; 10000000000 ; 'Infinity' ; 0 ; 12345678901234567890.5$$,
	$$1.00 ; 1::numeric ; 0.1 ; '1.0000' ; 'NaN'::numeric ; 1e10::numeric ; 10000000000.000 ; 'Infinity'::numeric ; 0.000 ; -0.0 ; 12345678901234567890.500$$,
	$$1.01 ; 0.01 ; 2::numeric ; 1e9::numeric$$),
-- (numeric's hash function ignores the sign: -1 is a maybe where 1 is)
('numeric_typmod', 'numeric(10,2)', '1 ; 2.5', $$1.0 ; 1.00000 ; 2.5 ; '2.50'$$, '1.001 ; 2.51 ; 3.0'),
('float4', 'float4', $$0 ; 'NaN' ; 1.5 ; 0.1 ; '-Infinity'$$,
	$$0::float4 ; 0::float8 ; '-0'::float4 ; '-0'::float8 ; 'NaN'::float4 ; 'NaN'::float8 ; 1.5::float4 ; 1.5::float8 ; 0.1::float4 ; 0.1::float4::float8 ; '-Infinity'::float8 ; '1.50'$$,
	$$0.1::float8 ; 2.5::float4 ; 2.5::float8 ; 'Infinity'::float4$$),
('float8', 'float8', $$'-0' ; 'NaN' ; 1.5 ; 0.1$$,
	$$0::float4 ; 0::float8 ; '-0'::float4 ; '-0'::float8 ; 'NaN'::float4 ; 'NaN'::float8 ; 1.5::float4 ; 1.5::float8 ; 0.1::float8 ; '1.50'$$,
	$$0.1::float4 ; 2.5::float4 ; 2.5::float8 ; 'Infinity'::float8$$),
('text', 'text', $$'a' ; '' ; 'Straße' ; repeat('x', 100000) ; '  b '$$,
	$$'a' ; 'a'::text ; 'a'::varchar ; 'a'::varchar(7) ; 'a'::name ; 'a'::bpchar ; ''::text ; 'Straße'::text ; repeat('x', 100000) ; '  b '::text$$,
	$$'b' ; 'A'::text ; 'a '::text ; 'b'::name ; 'c'::bpchar ; repeat('x', 99999) ; 'Strasse'$$),
('text_icu', 'text COLLATE types_de', $$'a' ; 'ä'$$, $$'a' ; 'ä'::text ; 'a'::varchar$$,
	$$'A' ; 'b'$$),
('varchar', 'varchar(20)', $$'a' ; 'bc '$$,
	$$'a' ; 'a'::text ; 'a'::varchar ; 'a'::name ; 'bc '::varchar(3)$$,
	$$'b' ; 'bd'::varchar ; ' a'::text$$),
('bpchar', 'char(5)', $$'ab' ; ''$$,
	$$'ab' ; 'ab  ' ; 'ab'::bpchar ; 'ab   '::char(5) ; 'ab        '::char(10) ; 'ab'::text ; 'ab'::varchar ; ''::bpchar ; '          '::char(10)$$,
	$$'abc' ; ' ab'::bpchar ; 'b'::char(1)$$),
('bpchar_any', 'bpchar', $$'ab  '$$, $$'ab' ; 'ab'::bpchar ; 'ab '::char(3)$$, $$'b' ; 'b'::bpchar$$),
('citext', 'citext', $$'Hello' ; 'x'$$, $$'hELLO' ; 'HELLO'::citext ; 'X'::citext$$,
	$$'hallo' ; 'y'::citext$$),
('name', 'name', $$'abc' ; repeat('y', 63)$$,
	$$'abc' ; 'abc'::name ; 'abc'::text ; 'abc'::varchar ; repeat('y', 63) ; repeat('y', 100)::name$$,
	$$'abd' ; 'abd'::name ; 'abc '::text ; repeat('y', 62)$$),
('uuid', 'uuid', $$'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'$$,
	$$'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid ; '{A0EEBC99-9C0B4EF8-BB6D6BB9-BD380A11}'$$,
	$$'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a12'::uuid ; '00000000-0000-0000-0000-000000000000'$$),
('bytea', 'bytea', $$'\x00ff' ; '' ; decode(repeat('00', 50000), 'hex')$$,
	$$'\x00ff'::bytea ; '\000\377'::bytea ; '\x00FF' ; ''::bytea ; decode(repeat('00', 50000), 'hex')$$,
	$$'\x00'::bytea ; '\xff00'::bytea ; decode(repeat('00', 49999), 'hex')$$),
('bool', 'bool', 'true', $$true ; 'yes' ; 't'::bool$$, $$false ; 'no'$$),
('bool_false', 'bool', 'false', $$false ; 'off'$$, 'true'),
('date', 'date', $$'2024-02-29' ; 'infinity'$$, $$'2024-02-29'::date ; '20240229' ; 'infinity'::date$$,
	$$'2024-03-01'::date ; '-infinity'::date ; '2024-02-28'$$),
('time', 'time', $$'12:00'$$, $$'12:00:00'::time ; '12:00 PM'$$, $$'12:00:01'::time ; '00:00'$$),
('timetz', 'timetz', $$'12:00+00'$$, $$'12:00:00+00'::timetz$$, $$'12:00+01'::timetz$$),
('timestamp', 'timestamp', $$'2024-01-01 12:00' ; 'infinity'$$,
	$$'2024-01-01 12:00:00.000'::timestamp ; 'Jan 1 2024 12:00' ; 'infinity'::timestamp$$,
	$$'2024-01-01 12:00:00.000001'::timestamp ; '-infinity'::timestamp$$),
('timestamptz', 'timestamptz', $$'2024-01-01 12:00+00'$$,
	$$'2024-01-01 14:00+02'::timestamptz ; '2024-01-01 12:00 UTC'$$,
	$$'2024-01-01 12:00+02'::timestamptz$$),
('interval', 'interval', $$'1 day' ; '1 mon' ; '-1 day 24 hours 1 sec'$$,
	$$'24:00'::interval ; '1 day'::interval ; '30 days'::interval ; '720:00'::interval ; '86400' ; '1 sec'::interval$$,
	$$'1 day 1 sec'::interval ; '2 days'::interval ; '31 days'::interval ; '-1 day'::interval$$),
('inet', 'inet', $$'10.0.0.1' ; '10.0.0.1/24' ; '::1'$$,
	$$'10.0.0.1/32'::inet ; '10.0.0.1'::cidr ; '10.0.0.1/24'::inet ; '10.0.0.1/32' ; '0:0:0:0:0:0:0:1'::inet$$,
	$$'10.0.0.1/8'::inet ; '10.0.0.2'::inet ; '10.0.0.0/24'::cidr ; '::2'$$),
('cidr', 'cidr', $$'10.0.0.0/24'$$, $$'10.0.0.0/24'::inet ; '10.0.0/24'::cidr$$,
	$$'10.0.0.1/24'::inet ; '10.0.0.0/16'$$),
('macaddr', 'macaddr', $$'08:00:2b:01:02:03'$$, $$'08002b-010203'::macaddr$$,
	$$'08:00:2b:01:02:04'::macaddr$$),
('enum', 'types_mood', $$'sad'$$, $$'sad' ; 'sad'::types_mood$$, $$'ok' ; 'happy'::types_mood$$),
('domain', 'types_posint', '5', $$5 ; 5::int8 ; 5::types_posint ; 5::types_small ; '5'$$,
	$$6 ; 0 ; -5 ; 6::types_posint ; '-5'$$),
('domain_of_domain', 'types_small', '5', '5 ; 5::int2 ; 5::types_posint', '6 ; 5000 ; 4294967301'),
('domain_citext', 'types_email', $$'Joe@example.com'$$,
	$$'joe@EXAMPLE.com'::citext ; 'JOE@example.com' ; 'joe@example.com'::types_email$$,
	$$'jane@example.com' ; 'no'$$),
('domain_numeric', 'types_amount', '1.5', $$1.500 ; '1.5'$$, '1.501'),
('int4_array', 'int4[]', $$'{1,2}' ; '{}' ; '{NULL,1}' ; '{{1,2},{3,4}}'$$,
	$$'{1,2}' ; ARRAY[1,2] ; '[1:2]={1,2}'::int4[] ; '{}'::int4[] ; '{NULL,1}'::int4[] ; '{{1,2},{3,4}}'::int4[]$$,
	$$'{2,1}' ; ARRAY[1,2,3] ; '{NULL,2}' ; '{1}'::int4[]$$),
('numeric_array', 'numeric[]', $$'{1.0,2}'$$, $$'{1.00,2.0}'::numeric[] ; ARRAY[1,2]::numeric[]$$,
	$$'{1.01,2}'::numeric[]$$),
('text_array', 'text[]', $$'{a,b}' ; '{"a,b"}'$$, $$'{a,b}'::text[] ; ARRAY['a,b']$$,
	$$'{ab}'::text[] ; '{A,b}'::text[]$$),
('citext_array', 'citext[]', $$'{A}'$$, $$'{a}'::citext[]$$, $$'{b}'::citext[]$$),
('int4range', 'int4range', $$'[1,5)' ; 'empty'$$, $$'[1,4]'::int4range ; '(0,5)' ; '(3,3)'::int4range$$,
	$$'[1,5]'::int4range ; '[2,5)'::int4range ; '[1,)'$$),
('numrange', 'numrange', $$'[1.0,2.0]'$$, $$'[1,2.00]'::numrange$$,
	$$'[1,2)'::numrange ; '[1.01,2]'::numrange$$),
('tstzrange', 'tstzrange', $$'[2024-01-01 12:00+00,)'$$, $$'[2024-01-01 14:00+02,)'::tstzrange$$,
	$$'(2024-01-01 12:00+00,)'::tstzrange$$),
('multirange', 'int4multirange', $$'{[1,3),[3,5)}'$$, $$'{[1,4]}'::int4multirange ; '{[1,5)}'$$,
	$$'{[1,3),[4,5)}'::int4multirange$$),
('jsonb', 'jsonb', $$'{"a": 1, "b": [true, null]}' ; '1.0' ; '"x"'$$,
	$$'{"b": [true, null], "a": 1.00}'::jsonb ; '1'::jsonb ; '{"a":2,"a":1,"b":[true,null]}' ; '"x"'$$,
	$$'{"a": 2, "b": [true, null]}'::jsonb ; '"1"'::jsonb ; '"y"' ; '{"a": 1}'::jsonb$$),
('char', '"char"', $$'a' ; ''$$, $$'a'::"char" ; 'a' ; ''::"char"$$, $$'b'::"char" ; 'b'$$),
('oid', 'oid', '4000000000 ; 1259', $$4000000000::oid ; '4000000000' ; 'pg_class'::regclass$$,
	$$294967296::oid ; 'pg_proc'::regclass ; '5'$$),
('xid8', 'xid8', $$'4294967301'$$, $$'4294967301'::xid8$$, $$'4'::xid8$$),
('pg_lsn', 'pg_lsn', $$'1/5'$$, $$'00000001/00000005'::pg_lsn$$, $$'0/4'::pg_lsn$$),
('icu_case', 'text COLLATE types_ci', $$'Hello' ; 'ä'$$,
	$$'hello' ; 'HELLO'::text ; 'hello'::varchar ; 'Ä'::text ; U&'a\0308'::text$$,
	$$'hallo' ; 'hello '::text ; 'a'$$),
('icu_varchar', 'varchar(10) COLLATE types_ci', $$'Hello'$$, $$'hello' ; 'HELLO'::varchar$$,
	$$'hallo'::varchar$$),
-- hashbpcharextended of version 15 hashes the padding here
('icu_bpchar', 'char(10) COLLATE types_ci', $$'Hello' ; ''$$, $$'hello   ' ; 'HELLO'::bpchar ; 'hello '::char(7) ; 'Hello'::text ; '  '::bpchar$$,
	$$'hallo'::bpchar$$),
('icu_normal', 'text COLLATE types_nd', $$U&'caf\00e9'$$,
	$$U&'cafe\0301' ; U&'caf\00e9'::text$$, $$'cafe' ; U&'CAF\00c9'::text$$)) v(name, type, stored, equal, absent);

SELECT count(*) AS cases FROM types_case;

-- Two tables for each: one is filled before it is tracked, so that a build adds
-- the keys, the other afterwards, so that the trigger does.
DO $$
DECLARE
	c types_case;
	path text;
BEGIN
	FOR c IN TABLE types_case LOOP
		FOREACH path IN ARRAY '{build, trigger}'::text[] LOOP
			EXECUTE format('CREATE TABLE types_%s_%s (id int GENERATED ALWAYS AS IDENTITY, k %s)',
						   c.name, path, c.type);
			IF path = 'build' THEN
				EXECUTE format('INSERT INTO types_%s_build (k) VALUES (%s), (NULL)',
							   c.name, array_to_string(c.stored, '), ('));
			END IF;
			PERFORM bloomguard_track(format('types_%s_%s', c.name, path)::regclass, 'k');
		END LOOP;
	END LOOP;
END $$;
SELECT count(*) AS not_ready FROM types_case, unnest('{build, trigger}'::text[]) path
WHERE NOT bloomguard_wait_ready(format('types_%s_%s', name, path)::regclass);
DO $$
DECLARE
	c types_case;
BEGIN
	FOR c IN TABLE types_case LOOP
		EXECUTE format('INSERT INTO types_%s_trigger (k) VALUES (%s), (NULL)',
					   c.name, array_to_string(c.stored, '), ('));
	END LOOP;
END $$;

-- Ask.  For each expression: is it so by SQL's "=", and what says the filter?
CREATE FUNCTION types_ask(c types_case, path text)
RETURNS TABLE (kind text, expr text, is_there boolean, answer text)
LANGUAGE plpgsql AS $$
DECLARE
	t text := format('types_%s_%s', c.name, path);
BEGIN
	FOR kind, expr IN
		SELECT 'equal', unnest(c.equal) UNION ALL SELECT 'absent', unnest(c.absent)
	LOOP
		BEGIN
			EXECUTE format('SELECT EXISTS (SELECT FROM %1$s WHERE k = %2$s), bloomguard_check(%1$L, %2$s)',
						   t, expr) INTO is_there, answer;
		EXCEPTION WHEN OTHERS THEN
			is_there := NULL;
			answer := SQLERRM;
		END;
		RETURN NEXT;
		-- the form with key_columns answers alike
		EXECUTE format('SELECT bloomguard_check(%L, ''k'', %s)', t, expr) INTO expr;
		IF expr IS DISTINCT FROM answer THEN
			answer := concat(answer, ', ', expr);
			RETURN NEXT;
		END IF;
	END LOOP;
END $$;

CREATE TABLE types_result AS
SELECT c.name, path, a.*
FROM types_case c, unnest('{build, trigger}'::text[]) path, types_ask(c, path) a;

-- must be empty
SELECT * FROM types_result
WHERE is_there IS DISTINCT FROM (kind = 'equal') OR
	answer IS DISTINCT FROM CASE kind WHEN 'equal' THEN 'maybe' ELSE 'absent' END
ORDER BY name, path, expr;
SELECT name, count(*) FILTER (WHERE answer = 'maybe') AS equal,
	count(*) FILTER (WHERE answer = 'absent') AS absent
FROM types_result GROUP BY name ORDER BY name COLLATE "C";

-- The oracle over all of them.
CREATE FUNCTION types_rows(t text, OUT rows bigint, OUT maybe bigint, OUT nulls bigint, OUT absent bigint)
LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('SELECT count(*), count(*) FILTER (WHERE bloomguard_check(%1$L, k) = ''maybe''), '
		'count(*) FILTER (WHERE bloomguard_check(%1$L, k) = ''unguarded: key is null''), '
		'count(*) FILTER (WHERE NOT bloomguard_might_contain(%1$L, k)) FROM %1$s', t)
	INTO rows, maybe, nulls, absent;
END $$;
SELECT path, count(*) AS tables, sum(rows) = sum(maybe + nulls) AS guarded, sum(nulls) AS nulls,
	sum(r.absent) AS absent
FROM types_case c, unnest('{build, trigger}'::text[]) path, types_rows(format('types_%s_%s', c.name, path)) r
GROUP BY path ORDER BY path;

DO $$
DECLARE
	c types_case;
BEGIN
	FOR c IN TABLE types_case LOOP
		EXECUTE format('DROP TABLE types_%s_build, types_%1$s_trigger', c.name);
	END LOOP;
END $$;
DROP FUNCTION types_rows;
DROP FUNCTION types_ask;
DROP TABLE types_case, types_result;

--
-- Bigints that fold into the same 32 bits: a filter fed by core's hash would
-- answer "maybe" to all of the second half.
--
CREATE TABLE types_fold (k int8);
INSERT INTO types_fold SELECT i << 32 | i FROM generate_series(1, 2000::int8) i;
SELECT bloomguard_track('types_fold', 'k', 0.001);
SELECT bloomguard_wait_ready('types_fold');
INSERT INTO types_fold SELECT i << 32 | i FROM generate_series(2001, 4000::int8) i;
SELECT count(*) AS keys,
	count(*) FILTER (WHERE NOT bloomguard_might_contain('types_fold', i << 32 | i)) > 3600 AS absent
FROM generate_series(4001, 8000::int8) i;
SELECT * FROM oracle('types_fold', 'k', '4');
DROP TABLE types_fold;

--
-- Keys out of line, compressed or not, and compared with the same value inline.
--
CREATE TABLE types_toast (id int, k text, b bytea);
ALTER TABLE types_toast ALTER b SET STORAGE EXTERNAL;
INSERT INTO types_toast SELECT i, repeat(chr(64 + i), 200000), decode(repeat(to_hex(16 + i), 20000), 'hex')
FROM generate_series(1, 10) i;
SELECT bloomguard_track('types_toast', 'k'), bloomguard_track('types_toast', 'b'),
	bloomguard_track('types_toast', 'k, b');
SELECT bloomguard_wait_ready('types_toast');
INSERT INTO types_toast SELECT i, repeat(chr(64 + i), 200000), decode(repeat(to_hex(16 + i), 20000), 'hex')
FROM generate_series(11, 20) i;
INSERT INTO types_toast SELECT 21, string_agg(md5(i::text), ''), '' FROM generate_series(1, 1000) i;
-- both ways of storage are there
SELECT bool_or(pg_column_size(k) < length(k) / 10) AS compressed,
	bool_and(pg_column_size(b) = length(b)) AS plain,
	pg_relation_size((SELECT reltoastrelid FROM pg_class WHERE oid = 'types_toast'::regclass)) > 400000 AS toasted
FROM types_toast WHERE id < 21;
SELECT count(*) AS wrong FROM types_toast WHERE id < 21 AND NOT
	(bloomguard_might_contain('types_toast', 'k', repeat(chr(64 + id), 200000)) AND
	 bloomguard_might_contain('types_toast', 'b', decode(repeat(to_hex(16 + id), 20000), 'hex')) AND
	 bloomguard_might_contain('types_toast', 'k, b', repeat(chr(64 + id), 200000),
							  decode(repeat(to_hex(16 + id), 20000), 'hex')));
SELECT bloomguard_check('types_toast', 'k', repeat('A', 199999)),
	bloomguard_check('types_toast', 'k, b', k, '\x00'::bytea) AS crossed
FROM types_toast WHERE id = 1;
UPDATE types_toast SET k = k || 'x' WHERE id < 5;
SELECT * FROM oracle('types_toast', 'k', 'A');
SELECT * FROM oracle('types_toast', 'b', '\xff');
SELECT * FROM oracle('types_toast', 'k, b', 'A', '\xff');
DROP TABLE types_toast;

--
-- Keys of several columns: order counts, nothing cancels, no boundary shifts.
--
CREATE TABLE types_pair (a text, b text, i int4, j int8, n numeric);
INSERT INTO types_pair VALUES ('x', 'y', 1, 1, 1.0), ('ab', 'c', 5, 7, 2.50), ('', 'z', 0, 0, 0);
SELECT bloomguard_track('types_pair', 'a, b'), bloomguard_track('types_pair', 'i, j'),
	bloomguard_track('types_pair', 'a, i, n'), bloomguard_track('types_pair', 'b, a');
SELECT bloomguard_wait_ready('types_pair');
INSERT INTO types_pair VALUES ('p', NULL, 8, NULL, 1), (NULL, NULL, NULL, NULL, NULL), ('q', 'r', 9, 10, 3);
SELECT key_columns FROM bloomguard_filters WHERE relation = 'types_pair'::regclass ORDER BY key_columns COLLATE "C";
SELECT a, b, bloomguard_check('types_pair', 'a, b', a, b) AS "a, b",
	bloomguard_check('types_pair', 'b, a', a, b) AS "b, a"
FROM (VALUES ('x', 'y'), ('y', 'x'), ('ab', 'c'), ('a', 'bc'), ('abc', ''), ('', 'z'), ('z', ''),
	('x', 'c'), ('q', 'r'), ('p', NULL), (NULL, 'y'), (NULL, NULL)) v(a, b);
SELECT i, j, bloomguard_check('types_pair', 'i, j', i, j)
FROM (VALUES (1, 1), (2, 2), (5, 7), (7, 5), (0, 0), (5, 1), (9, 10), (8, NULL)) v(i, j);
SELECT bloomguard_check('types_pair', 'a, i, n', 'ab', 5::int8, 2.5000) AS yes,
	bloomguard_check('types_pair', 'a, i, n', 'ab', 5::int2, 2.51) AS no,
	bloomguard_check('types_pair', 'a, i, n', 'q'::name, 9, '3') AS yes,
	bloomguard_check('types_pair', ' a ,i,  n ', 'q'::varchar, '9', 3.0) AS yes;
-- one array for all parts
SELECT bloomguard_check('types_pair', 'i, j', VARIADIC ARRAY[5, 7]) AS yes,
	bloomguard_check('types_pair', 'i, j', VARIADIC ARRAY[7, 5]::int8[]) AS no,
	bloomguard_check('types_pair', 'a, i, n', VARIADIC '{ab, 5, 2.5}'::text[]) AS yes,
	bloomguard_check('types_pair', 'a, i, n', VARIADIC '{ab, 5, NULL}'::text[]) AS "null",
	bloomguard_check('types_pair', 'a, i, n', VARIADIC NULL::text[]) AS "null";
SELECT * FROM oracle('types_pair', 'a, b', 'y', 'x');
SELECT * FROM oracle('types_pair', 'i, j', '2', '2');
SELECT * FROM oracle('types_pair', 'a, i, n', 'x', '1', '2');

--
-- Untyped parameters, as drivers send them, unknown literals and NULL.
--
CREATE TABLE types_arg (i int, u uuid, t text, c "char", n name, b bpchar, e types_mood, d date);
INSERT INTO types_arg VALUES (5, 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', 'a', 'a', 'a', 'a', 'sad', '2024-01-01');
DO $$
BEGIN
	PERFORM bloomguard_track('types_arg', c) FROM unnest('{i,u,t,c,n,b,e,d,"i, u","t, i","c, n","i, t, c"}'::text[]) c;
END $$;
SELECT bloomguard_wait_ready('types_arg');
PREPARE types_i AS SELECT bloomguard_check('types_arg', 'i', $1);
PREPARE types_u AS SELECT bloomguard_check('types_arg', 'u', $1);
PREPARE types_t AS SELECT bloomguard_check('types_arg', 't', $1);
PREPARE types_c AS SELECT bloomguard_check('types_arg', 'c', $1);
PREPARE types_e AS SELECT bloomguard_check('types_arg', 'e', $1);
PREPARE types_iu AS SELECT bloomguard_check('types_arg', 'i, u', $1, $2);
PREPARE types_ti AS SELECT bloomguard_might_contain('types_arg', 't, i', $1, $2);
PREPARE types_itc AS SELECT bloomguard_check('types_arg', 'i, t, c', $1, $2, $3);
EXECUTE types_i('5');
EXECUTE types_i('6');
EXECUTE types_i(5);
EXECUTE types_i(NULL);
EXECUTE types_i('five');
EXECUTE types_u('A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11');
EXECUTE types_u('a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a12');
EXECUTE types_t('a');
EXECUTE types_t('b');
EXECUTE types_c('a');
EXECUTE types_c('b');
EXECUTE types_e('sad');
EXECUTE types_e('ok');
EXECUTE types_e('angry');
EXECUTE types_iu('5', 'a0eebc999c0b4ef8bb6d6bb9bd380a11');
EXECUTE types_iu('5', '00000000-0000-0000-0000-000000000000');
EXECUTE types_iu('5', NULL);
EXECUTE types_ti('a', '5');
EXECUTE types_ti('5', '5');
EXECUTE types_itc('5', 'a', 'a');
EXECUTE types_itc('5', 'a', 'b');
-- the form without key_columns
CREATE TABLE types_one_int (k int);
CREATE TABLE types_one_uuid (k uuid);
CREATE TABLE types_one_text (k text);
CREATE TABLE types_one_char (k "char");
SELECT bloomguard_track('types_one_int', 'k'), bloomguard_track('types_one_uuid', 'k'),
	bloomguard_track('types_one_text', 'k'), bloomguard_track('types_one_char', 'k');
SELECT bloomguard_wait_ready('types_one_int'), bloomguard_wait_ready('types_one_uuid'),
	bloomguard_wait_ready('types_one_text'), bloomguard_wait_ready('types_one_char');
INSERT INTO types_one_int VALUES (5);
INSERT INTO types_one_uuid VALUES ('a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11');
INSERT INTO types_one_text VALUES ('a');
INSERT INTO types_one_char VALUES ('a');
PREPARE types_1i AS SELECT bloomguard_might_contain('types_one_int', $1);
PREPARE types_1u AS SELECT bloomguard_might_contain('types_one_uuid', $1);
PREPARE types_1t AS SELECT bloomguard_might_contain('types_one_text', $1);
PREPARE types_1c AS SELECT bloomguard_might_contain('types_one_char', $1);
SELECT name, parameter_types FROM pg_prepared_statements WHERE name ~ '^types_1|types_iu' ORDER BY name COLLATE "C";
EXECUTE types_1i('5');
EXECUTE types_1i('6');
EXECUTE types_1u('a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11');
EXECUTE types_1u('a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a12');
EXECUTE types_1t('a');
EXECUTE types_1t('b');
EXECUTE types_1c('a');
EXECUTE types_1c('b');
-- typed ones resolve, too: nothing has become ambiguous
PREPARE types_2(int, uuid) AS SELECT bloomguard_check('types_arg', 'i, u', $1, $2);
EXECUTE types_2(5, 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11');
PREPARE types_3("char", name) AS SELECT bloomguard_check('types_arg', 'c, n', $1, $2);
EXECUTE types_3('a', 'a');
SELECT bloomguard_check('types_one_int', 5) AS int4, bloomguard_check('types_one_int', 5::int8) AS int8,
	bloomguard_check('types_one_int', '5') AS literal, bloomguard_check('types_one_int', '5'::text) AS text,
	bloomguard_check('types_one_int', '5'::varchar) AS varchar, bloomguard_check('types_one_int', NULL) AS "null",
	bloomguard_check('types_one_int', NULL::int) AS null_int, bloomguard_check('types_one_int', NULL::text) AS null_text;
SELECT bloomguard_check('types_one_text', 'a') AS literal, bloomguard_check('types_one_text', 'a'::text) AS text,
	bloomguard_check('types_one_text', 'a'::varchar) AS varchar, bloomguard_check('types_one_text', 'a'::bpchar) AS bpchar,
	bloomguard_check('types_one_text', 'a'::name) AS name,
	bloomguard_check('types_one_text', NULL) AS "null";
SELECT bloomguard_check('types_one_char', 'a') AS literal, bloomguard_check('types_one_char', 'a'::"char") AS "char",
	bloomguard_check('types_one_char', 'a'::text) AS text, bloomguard_check('types_one_char', 'b'::text) AS other;
SELECT bloomguard_check('types_arg', 'c, n', 'a'::"char", 'a'::name) AS "char, name",
	bloomguard_check('types_arg', 'c, n', 'a', 'a') AS literals,
	bloomguard_check('types_arg', 'c, n', 'a', 'a'::name) AS "literal, name",
	bloomguard_check('types_arg', 'i, u', 5, 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11') AS "int, literal",
	bloomguard_check('types_arg', 'b', 'a'::bpchar) AS bpchar;
-- only a call that mixes typed and untyped parameters needs a cast
PREPARE types_4(int) AS SELECT bloomguard_check('types_arg', 'i, u', $1, $2);
PREPARE types_4(int) AS SELECT bloomguard_check('types_arg', 'i, u', $1, $2::uuid);
EXECUTE types_4(5, 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11');

--
-- A key of another type is an error that names both and the cast, never a silent
-- conversion [D14].
--
SELECT bloomguard_might_contain('types_one_int', 5.0);
SELECT bloomguard_might_contain('types_one_int', 5::float8);
SELECT bloomguard_might_contain('types_one_int', true);
SELECT bloomguard_might_contain('types_one_int', '2024-01-01'::date);
SELECT bloomguard_might_contain('types_one_text', 5);
SELECT bloomguard_might_contain('types_one_text', 'a'::"char");
SELECT bloomguard_might_contain('types_one_text', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid);
SELECT bloomguard_might_contain('types_one_uuid', '\x00'::bytea);
SELECT bloomguard_might_contain('types_arg', 'e', 'sad'::types_other_enum);
SELECT bloomguard_might_contain('types_arg', 'd', '2024-01-01'::timestamp);
SELECT bloomguard_might_contain('types_arg', 'i, u', 5, 5);
-- beside a "char", a literal is one as well
SELECT bloomguard_might_contain('types_arg', 'c, n', 'a'::"char", 'a');
SELECT bloomguard_might_contain('types_arg', 'i, u', 5);
SELECT bloomguard_might_contain('types_one_int', 'k', 5, 6);
SELECT bloomguard_might_contain('types_one_int', 'not a number');
-- also when the filter would not be asked
SET bloomguard.enabled = off;
SELECT bloomguard_might_contain('types_one_int', 5.0);
RESET bloomguard.enabled;
-- the cast that was named works
SELECT bloomguard_might_contain('types_one_int', CAST(5.0 AS integer)),
	bloomguard_might_contain('types_one_int', CAST(6.0 AS integer));

SELECT * FROM oracle('types_arg', 'i, t, c', '5', 'a', 'b');
SELECT * FROM oracle('types_one_int', 'k', '6');
SELECT * FROM oracle('types_one_uuid', 'k', '00000000-0000-0000-0000-000000000000');
SELECT * FROM oracle('types_one_text', 'k', 'b');
SELECT * FROM oracle('types_one_char', 'k', 'b');
DEALLOCATE ALL;
DROP TABLE types_pair, types_arg, types_one_int, types_one_uuid, types_one_text, types_one_char;
DROP COLLATION types_ci, types_nd, types_de;
DROP DOMAIN types_small, types_posint, types_email, types_amount;
DROP TYPE types_mood, types_other_enum;
DROP EXTENSION citext;

--
-- varchar = char(n) is decided as for char(n): blanks at the end count for neither.
-- The parser makes text of a char(n) key before the guard sees it, so they never
-- count in a varchar column [D1, D14].
--
CREATE TABLE types_blanks (k varchar(10));
INSERT INTO types_blanks VALUES ('B '), ('C'), ('  ');
SELECT bloomguard_track('types_blanks', 'k', 1e-9);
SELECT key, (SELECT count(*) FROM types_blanks WHERE k = key) AS rows, bloomguard_check('types_blanks', key) AS check
FROM unnest('{B,C,D,""}'::char(5)[]) key, bloomguard_wait_ready('types_blanks');
SELECT count(*) FROM types_blanks WHERE NOT bloomguard_might_contain('types_blanks', k);
DROP TABLE types_blanks;
