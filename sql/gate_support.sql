--
-- GATE_SUPPORT
-- What the planner is told about bloomguard_might_contain: estimates, plans that come
-- of them, and that telling it raises nothing, reveals nothing and keeps no lock.
--
CREATE EXTENSION dblink;
SET max_parallel_workers_per_gather = 0;
SET jit = off;

CREATE TABLE support_t (id bigint PRIMARY KEY, name text);
INSERT INTO support_t SELECT i, md5(i::text) FROM generate_series(1, 200000) i;
SELECT bloomguard_track('support_t', 'id', 0.001);
SELECT bloomguard_track('support_t', 'name', 0.001);
SELECT bloomguard_wait_ready('support_t');

-- of 20000 rows: 1 % of id, half of half_id and name, all of hit; a third null; five
-- common values of which the most common is there; two columns of a key
CREATE TABLE support_r AS
SELECT CASE WHEN i % 100 = 0 THEN i ELSE 10000000 + i END::bigint AS id,
	CASE WHEN i % 2 = 0 THEN i ELSE 10000000 + i END AS half_id,
	md5((CASE WHEN i % 2 = 0 THEN i ELSE -i END)::text) AS name,
	i AS hit,
	CASE WHEN i % 3 > 0 THEN 10000000 + i END AS nulls,
	CASE WHEN i % 10 < 6 THEN 1 ELSE 10000000 + i % 10 END AS common,
	i % 7 AS tenant,
	i::text AS hit_text
FROM generate_series(1, 20000) i;
ANALYZE support_t, support_r;

-- percentage of the rows of support_r that a condition is estimated to pass
CREATE FUNCTION support_percent(condition text, rel text DEFAULT 'support_r') RETURNS numeric
LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE format('EXPLAIN (FORMAT json) SELECT FROM %s r WHERE %s', rel, condition) INTO plan;
	RETURN round((plan -> 0 -> 'Plan' ->> 'Plan Rows')::numeric / 200, 1);
END $$;
-- with what passes in truth
CREATE FUNCTION support_about(condition text, percent numeric, tolerance numeric,
	OUT estimate text, OUT truth text)
LANGUAGE plpgsql AS $$
DECLARE
	estimated numeric := support_percent(condition);
	counted numeric;
BEGIN
	EXECUTE 'SELECT count(*)::numeric / 200 FROM support_r r WHERE ' || condition INTO counted;
	estimate := CASE WHEN abs(estimated - percent) <= tolerance THEN 'good' ELSE estimated::text END;
	truth := CASE WHEN abs(counted - percent) <= 0.5 THEN 'good' ELSE counted::text END;
END $$;

--
-- The share of keys that are there
--
SELECT c AS condition, a.* FROM (VALUES
	('bloomguard_might_contain(''support_t'', ''id'', id)', 1, 2),
	('NOT bloomguard_might_contain(''support_t'', ''id'', id)', 99, 2),
	('bloomguard_might_contain(''support_t'', ''id'', half_id)', 50, 10),
	('bloomguard_might_contain(''support_t'', ''name'', name)', 50, 20),
	('bloomguard_might_contain(''support_t'', ''id'', hit)', 100, 2),
	('NOT bloomguard_might_contain(''support_t'', ''id'', hit)', 0, 2),
	('bloomguard_might_contain(''support_t'', ''id'', common)', 60, 1),
	-- null is a maybe
	('bloomguard_might_contain(''support_t'', ''id'', nulls)', 33.33, 2),
	-- arrays of key parts, both of the overloads
	('bloomguard_might_contain(''support_t'', ''id'', VARIADIC ARRAY[id])', 1, 2),
	('bloomguard_might_contain(''support_t'', ''name'', VARIADIC ARRAY[name])', 50, 20),
	-- an input function is not called to estimate: numbers of distinct values
	('bloomguard_might_contain(''support_t'', ''id'', hit_text)', 100, 2))
	AS v(c, p, t), support_about(c, p, t) a;

-- statistics of two varying parts, and the filter with a constant beside one
CREATE TABLE support_two (tenant int, id bigint);
INSERT INTO support_two SELECT i % 7, i FROM generate_series(1, 40000) i;
SELECT bloomguard_track('support_two', 'tenant, id', 0.001);
SELECT bloomguard_wait_ready('support_two');
ANALYZE support_two;
SELECT c AS condition, a.* FROM (VALUES
	('bloomguard_might_contain(''support_two'', ''tenant, id'', 0, hit)', 14.3, 8),
	('bloomguard_might_contain(''support_two'', ''tenant, id'', VARIADIC ARRAY[11, hit])', 0, 2),
	('bloomguard_might_contain(''support_two'', ''tenant, id'', tenant, hit)', 100, 2),
	('bloomguard_might_contain(''support_two'', ''tenant, id'', tenant, id)', 1, 2),
	('bloomguard_might_contain(''support_two'', ''tenant, id'', tenant, NULL::int)', 100, 0))
	AS v(c, p, t), support_about(c, p, t) a;

-- the only filter; a partition is asked by the root's, whose keys are counted
CREATE TABLE support_p (k bigint) PARTITION BY RANGE (k);
CREATE TABLE support_p1 PARTITION OF support_p FOR VALUES FROM (0) TO (5001);
CREATE TABLE support_p2 PARTITION OF support_p FOR VALUES FROM (5001) TO (10001);
INSERT INTO support_p SELECT generate_series(1, 10000);
SELECT bloomguard_track('support_p', 'k', 0.001);
SELECT bloomguard_wait_ready('support_p');
ANALYZE support_p;
SELECT c AS condition, a.* FROM (VALUES
	('bloomguard_might_contain(''support_p'', hit)', 50, 4),
	('bloomguard_might_contain(''support_p1'', hit)', 50, 4),
	('bloomguard_might_contain(''support_p2'', ''k'', half_id)', 25, 10),
	('bloomguard_might_contain(''support_p2'', ''k'', VARIADIC ARRAY[hit])', 50, 4))
	AS v(c, p, t), support_about(c, p, t) a;

--
-- Plans: few keys are there, and the large table is not read for them.  The same function
-- without support, and no guard at all, show what is avoided.
--
CREATE FUNCTION support_none(regclass, text, VARIADIC "any") RETURNS boolean
AS '$libdir/bloomguard', 'bloomguard_might_contain' LANGUAGE C STABLE COST 10;
CREATE FUNCTION support_reads_all(query text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
	plan text;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT json) ' || query INTO plan;
	RETURN plan LIKE '%Hash Cond%' OR plan LIKE '%Merge Cond%';
END $$;
SELECT support_reads_all('SELECT FROM support_r r WHERE EXISTS (SELECT FROM support_t t WHERE t.id = r.id)') AS exists,
	support_reads_all('SELECT FROM support_r r WHERE support_none(''support_t'', ''id'', r.id)
		AND EXISTS (SELECT FROM support_t t WHERE t.id = r.id)') AS unaided;
EXPLAIN (COSTS off) SELECT * FROM support_r r
WHERE bloomguard_might_contain('support_t', 'id', r.id) AND EXISTS (SELECT FROM support_t t WHERE t.id = r.id);
EXPLAIN (COSTS off) SELECT * FROM support_r r
WHERE bloomguard_might_contain('support_t', 'id', r.id) AND NOT EXISTS (SELECT FROM support_t t WHERE t.id = r.id);
EXPLAIN (COSTS off) SELECT * FROM support_r r JOIN support_t t ON t.id = r.id
WHERE bloomguard_might_contain('support_t', 'id', r.id);
-- rows without a match, in two steps
EXPLAIN (COSTS off)
SELECT id FROM support_r r WHERE NOT bloomguard_might_contain('support_t', 'id', r.id)
UNION ALL
SELECT id FROM support_r r
WHERE bloomguard_might_contain('support_t', 'id', r.id) AND NOT EXISTS (SELECT FROM support_t t WHERE t.id = r.id);
-- most keys are there: it is read
SELECT support_reads_all('SELECT FROM support_r r WHERE bloomguard_might_contain(''support_t'', ''id'', r.hit)
	AND EXISTS (SELECT FROM support_t t WHERE t.id = r.hit)') AS hits;
-- a comparison is cheaper, and therefore made first
EXPLAIN (COSTS off) SELECT FROM support_r WHERE bloomguard_might_contain('support_t', 'id', id) AND hit > 0;

--
-- What can be said without statistics
--
SELECT support_percent('bloomguard_might_contain(''support_t'', ''id'', r.hit + (random() * 10)::int)') AS no_statistics,
	support_percent('bloomguard_might_contain((ARRAY[''support_t''::regclass])[tenant], ''id'', id)') AS other_relation,
	support_percent('bloomguard_might_contain(''support_t'', hit_text, id)') AS other_columns;
-- no generation to ask: statistics are compared, ranges and numbers of values
BEGIN;
ALTER TABLE support_t RENAME id TO key;
SELECT bloomguard_check('support_t', 'key', 1) AS check,
	support_percent('bloomguard_might_contain(''support_t'', ''key'', id)') BETWEEN 0.5 AND 3 AS id,
	support_percent('bloomguard_might_contain(''support_t'', ''key'', half_id)') BETWEEN 40 AND 60 AS half_id,
	support_percent('bloomguard_might_contain(''support_t'', ''key'', hit)') BETWEEN 95 AND 100 AS hit;
ROLLBACK;
SELECT bloomguard_wait_ready('support_t');
-- every answer is maybe
SELECT support_percent('bloomguard_might_contain(NULL, ''id'', id)') AS no_relation,
	support_percent('bloomguard_might_contain(''support_r'', ''id'', id)') AS no_filter;
SET bloomguard.enabled = off;
SELECT support_percent('bloomguard_might_contain(''support_t'', ''id'', id)') AS disabled;
RESET bloomguard.enabled;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT support_percent('bloomguard_might_contain(''support_t'', ''id'', id)') AS serializable;
COMMIT;

--
-- Mistakes are for the probe to report
--
SELECT count(support_percent(c)) AS planned FROM (VALUES
	('bloomguard_might_contain(''support_t'', id)'),
	('bloomguard_might_contain(''support_t'', ''no_such'', id)'),
	('bloomguard_might_contain(''support_t'', ''"'', id)'),
	('bloomguard_might_contain(''support_t'', NULL, id)'),
	('bloomguard_might_contain(''support_t'', ''id'', id, id)'),
	('bloomguard_might_contain(''support_t'', ''id'', id, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10)'),
	('bloomguard_might_contain(''support_t'', ''id'', VARIADIC ARRAY[id, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10])'),
	('bloomguard_might_contain(''support_t'', ''id'', VARIADIC ''{1,2,3,4,5,6,7,8,9,10,11}''::int[])'),
	('bloomguard_might_contain(''support_t'', ''id'', VARIADIC NULL::int[])'),
	('bloomguard_might_contain(''support_t'', ''id'', VARIADIC ''{}''::int[])'),
	('bloomguard_might_contain(''support_t'', ''id'', now())'),
	('bloomguard_might_contain(''support_t'', ''id'', r)'),
	('bloomguard_might_contain(''support_t'', ''id'', r.ctid)'),
	('bloomguard_might_contain(''support_two'', ''tenant, id'', ''x'', id) OR hit = 0'),
	('bloomguard_might_contain(''support_t'', ''id'', ''x'') OR hit = 0'),
	('bloomguard_might_contain(''pg_class'', ''oid'', id::oid)'),
	('bloomguard_might_contain(''support_t_pkey'', ''id'', id)'),
	('bloomguard_might_contain(''bloomguard_filters'', ''bits'', id)'),
	('bloomguard_might_contain(0::regclass, id)'),
	('bloomguard_might_contain(987654321::regclass, ''id'', id)')) v(c);

-- a key of two relations, and of none
SELECT support_percent('a.tenant = r.tenant AND bloomguard_might_contain(''support_two'', ''tenant, id'', a.tenant, r.hit)',
		'support_r a, support_r') > 0 AS two,
	support_percent('bloomguard_might_contain(''support_t'', ''id'', 1) OR bloomguard_might_contain(''support_t'', ''id'', 0)') AS none;

-- nor is a hash function called that is not built in
SET client_min_messages = warning;
CREATE TYPE support_int;
CREATE FUNCTION support_in(cstring) RETURNS support_int AS 'int4in' LANGUAGE internal IMMUTABLE STRICT;
CREATE FUNCTION support_out(support_int) RETURNS cstring AS 'int4out' LANGUAGE internal IMMUTABLE STRICT;
CREATE TYPE support_int (INPUT = support_in, OUTPUT = support_out, LIKE = int4);
CREATE FUNCTION support_eq(support_int, support_int) RETURNS boolean AS 'int4eq' LANGUAGE internal IMMUTABLE STRICT;
CREATE OPERATOR = (LEFTARG = support_int, RIGHTARG = support_int, FUNCTION = support_eq, COMMUTATOR = =, HASHES);
CREATE FUNCTION support_hash(support_int) RETURNS int AS 'hashint4' LANGUAGE internal IMMUTABLE STRICT;
CREATE FUNCTION support_hash64(v support_int, seed bigint) RETURNS bigint LANGUAGE plpgsql IMMUTABLE STRICT AS $$
BEGIN
	IF v::text::int < 0 THEN
		RAISE EXCEPTION 'hashed';
	END IF;
	RETURN v::text::bigint;
END $$;
CREATE OPERATOR CLASS support_ops DEFAULT FOR TYPE support_int USING hash AS
	OPERATOR 1 =, FUNCTION 1 support_hash(support_int), FUNCTION 2 support_hash64(support_int, bigint);
RESET client_min_messages;
CREATE TABLE support_own (k support_int);
INSERT INTO support_own SELECT i::text::support_int FROM generate_series(1, 100) i;
SELECT bloomguard_track('support_own', 'k');
SELECT bloomguard_wait_ready('support_own');
CREATE TABLE support_bad AS SELECT (i % 10 - 10)::text::support_int AS k FROM generate_series(1, 100) i;
ANALYZE support_own, support_bad;
EXPLAIN (COSTS off) SELECT FROM support_bad WHERE bloomguard_might_contain('support_own', 'k', k);
SELECT refused('SELECT FROM support_bad WHERE bloomguard_might_contain(''support_own'', ''k'', k)');

--
-- Privileges: who may not ask is told nothing, who may ask about the column is
--
CREATE ROLE regress_bloomguard_planner;
GRANT SELECT ON support_r TO regress_bloomguard_planner;
GRANT SELECT (name) ON support_t TO regress_bloomguard_planner;
SET ROLE regress_bloomguard_planner;
SELECT support_percent('bloomguard_might_contain(''support_t'', ''id'', hit)') AS present,
	support_percent('bloomguard_might_contain(''support_t'', ''id'', id)') AS absent,
	support_percent('bloomguard_might_contain(''support_two'', hit)') AS nothing,
	support_percent('bloomguard_might_contain(''support_t'', ''name'', name)') BETWEEN 30 AND 70 AS column;
RESET ROLE;
GRANT SELECT ON support_t TO regress_bloomguard_planner;
ALTER TABLE support_t ENABLE ROW LEVEL SECURITY;
SET ROLE regress_bloomguard_planner;
SELECT support_percent('bloomguard_might_contain(''support_t'', ''id'', id)') AS row_security;
RESET ROLE;
ALTER TABLE support_t DISABLE ROW LEVEL SECURITY;
-- the filter is not asked for values that he may not see
ALTER TABLE support_r ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON support_r USING (tenant < 7);
SET ROLE regress_bloomguard_planner;
SELECT support_percent('bloomguard_might_contain(''support_t'', ''id'', id)') =
	support_percent('bloomguard_might_contain(''support_t'', ''id'', hit)') AS alike;
RESET ROLE;
ALTER TABLE support_r DISABLE ROW LEVEL SECURITY;
-- nothing is known of values behind a barrier
REVOKE SELECT ON support_r FROM regress_bloomguard_planner;
CREATE VIEW support_view WITH (security_barrier) AS SELECT * FROM support_r;
GRANT SELECT ON support_view TO regress_bloomguard_planner;
SET ROLE regress_bloomguard_planner;
SELECT support_percent('bloomguard_might_contain(''support_t'', ''id'', hit)', 'support_view') AS hidden;
RESET ROLE;
SELECT support_percent('bloomguard_might_contain(''support_t'', ''id'', hit)', 'support_view') AS hidden;

--
-- Locks: none is waited for, none is kept
--
BEGIN;
SELECT support_percent('bloomguard_might_contain(''support_t'', ''id'', id)') < 3 AS asked;
SELECT count(*) FROM pg_locks WHERE relation = 'support_t'::regclass;
COMMIT;
SELECT dblink_connect('support', format('host=%s port=%s dbname=%s user=%s',
	split_part(current_setting('unix_socket_directories'), ',', 1), current_setting('port'), current_database(), current_user));
SELECT dblink_exec('support', 'BEGIN; LOCK TABLE support_t');
SELECT support_percent('bloomguard_might_contain(''support_t'', ''id'', id)') AS locked;
SELECT dblink_exec('support', 'ROLLBACK');
SELECT dblink_disconnect('support');

SELECT * FROM oracle('support_t', 'id', '0');
DROP EXTENSION dblink;
DROP VIEW support_view;
DROP TABLE support_t, support_r, support_two, support_p, support_own, support_bad;
DROP FUNCTION support_percent, support_about, support_none, support_reads_all;
SET client_min_messages = warning;
DROP TYPE support_int CASCADE;
DROP ROLE regress_bloomguard_planner;
