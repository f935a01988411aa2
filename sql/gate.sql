--
-- The gate: with bloomguard.gate on, a query that looks up a tracked key does not
-- start its scan when the key is definitely absent.
--
CREATE TABLE gate_t (id bigint PRIMARY KEY, name varchar(20), code char(5), tenant int, v int);
INSERT INTO gate_t SELECT g, 'name' || g, 'c' || g, g % 10, g FROM generate_series(1, 1000) g;
CREATE TABLE gate_p (id int, region text, v int) PARTITION BY RANGE (id);
CREATE TABLE gate_p1 PARTITION OF gate_p FOR VALUES FROM (0) TO (500);
CREATE TABLE gate_p2 PARTITION OF gate_p FOR VALUES FROM (500) TO (2000) PARTITION BY LIST (region);
CREATE TABLE gate_p2n PARTITION OF gate_p2 FOR VALUES IN ('north');
CREATE TABLE gate_p2d PARTITION OF gate_p2 DEFAULT;
INSERT INTO gate_p SELECT g, CASE WHEN g % 2 = 0 THEN 'north' ELSE 'south' END, g FROM generate_series(1, 1000) g;
CREATE TABLE gate_o AS SELECT g AS id FROM generate_series(-5, 5) g;
SELECT bloomguard_track('gate_t', 'id', 1e-9), bloomguard_track('gate_t', 'name', 1e-9),
	bloomguard_track('gate_t', 'code', 1e-9), bloomguard_track('gate_t', 'tenant, v', 1e-9),
	bloomguard_track('gate_p', 'v', 1e-9);
SELECT bloomguard_wait_ready('gate_t'), bloomguard_wait_ready('gate_p');
ANALYZE gate_t, gate_p, gate_o;

-- rows and gates of a query: filter, key, answers
CREATE FUNCTION gate_of(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	line text;
	n int := 0;
	gates text := '';
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query LOOP
		n := n + 1;
		IF n = 1 THEN
			gates := substring(line, 'rows=\d+') || ':';
		END IF;
		IF line ~ 'Bloomguard Gate' THEN
			gates := gates || ' gate';
		ELSIF line ~ '^ *(Filter of|Key|Absent|Maybe|Unguarded|Unguarded Reason|Child):' THEN
			gates := gates || ', ' || trim(line);
		END IF;
	END LOOP;
	RETURN NEXT gates;
END $$;

SELECT gate_of('SELECT * FROM gate_t WHERE id = -1');
SET bloomguard.gate = on;
SELECT gate_of('SELECT * FROM gate_t WHERE id = -1');
SELECT gate_of('SELECT * FROM gate_t WHERE id = 1');
EXPLAIN (COSTS OFF) SELECT * FROM gate_t WHERE id = -1;
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, FORMAT YAML) SELECT id FROM gate_t WHERE id = -1;

--
-- Keys
--
SELECT gate_of('SELECT * FROM gate_t WHERE -1::smallint = id');
SELECT gate_of('SELECT * FROM gate_t WHERE id = 4294967297');
SELECT gate_of('SELECT * FROM gate_t WHERE name = ''name0''');
SELECT gate_of('SELECT * FROM gate_t WHERE name = ''name7''::text');
SELECT gate_of('SELECT * FROM gate_t WHERE code = ''c7''');
SELECT gate_of('SELECT * FROM gate_t WHERE code = ''c7   ''::char(9)');
SELECT gate_of('SELECT * FROM gate_t WHERE code = ''d7''');
SELECT gate_of('SELECT * FROM gate_t WHERE id IN (-1, -2, -3)');
SELECT gate_of('SELECT * FROM gate_t WHERE id IN (-1, -2, 3)');
SELECT gate_of('SELECT * FROM gate_t WHERE id = ANY (ARRAY[-1, NULL])');
SELECT gate_of('SELECT * FROM gate_t WHERE id = ANY (ARRAY[]::bigint[])');
SELECT gate_of('SELECT * FROM gate_t WHERE id = ANY (''{{-1,-2},{-3,4}}''::int[])');
SELECT gate_of('SELECT * FROM gate_t WHERE id = ANY (ARRAY(SELECT -g FROM generate_series(1, 2000) g))');
SELECT gate_of('SELECT * FROM gate_t WHERE id = NULL::bigint');
SELECT gate_of('SELECT * FROM gate_t WHERE id = length(current_user) - 1000');
-- all columns of a key, also as lists
SELECT gate_of('SELECT * FROM gate_t WHERE tenant = 1 AND v = 2');
SELECT gate_of('SELECT * FROM gate_t WHERE v = 11 AND tenant = 1');
SELECT gate_of('SELECT * FROM gate_t WHERE (tenant, v) = (3, 4)');
SELECT gate_of('SELECT * FROM gate_t WHERE tenant IN (1, 2) AND v IN (3, 4)');
SELECT gate_of('SELECT * FROM gate_t WHERE tenant IN (1, 2) AND v IN (3, 12)');
SELECT gate_of('SELECT * FROM gate_t WHERE tenant = 1');
-- the longer key of two
SELECT gate_of('SELECT * FROM gate_t WHERE tenant = 1 AND v = 2 AND id = 12');

--
-- Not gated: another equality, volatile, no equality at all
--
SELECT gate_of('SELECT * FROM gate_t WHERE id = -1.0');
SELECT gate_of('SELECT * FROM gate_t WHERE id + 0 = -1');
SELECT gate_of('SELECT * FROM gate_t WHERE id = (random() * 0 - 1)::int');
SELECT gate_of('SELECT * FROM gate_t WHERE id < -1');
SELECT gate_of('SELECT * FROM gate_t WHERE id <> ALL (ARRAY[-1]) AND id < 0');
SELECT gate_of('SELECT * FROM gate_t WHERE id IS NOT DISTINCT FROM -1');
SELECT gate_of('SELECT * FROM gate_t WHERE id = -1 OR v = -1');
SELECT gate_of('SELECT * FROM gate_t TABLESAMPLE SYSTEM (100) WHERE id = -1');

--
-- Partitions
--
SELECT gate_of('SELECT * FROM gate_p WHERE v = -1');
SELECT gate_of('SELECT * FROM gate_p WHERE v = 700');
SELECT gate_of('SELECT v + 1, random() FROM gate_p WHERE v = -1 ORDER BY id, region LIMIT 3');
SELECT gate_of('SELECT count(*), max(region) FROM gate_p WHERE v = -1');
SELECT gate_of('SELECT count(*) FROM gate_p WHERE v = 700');
SELECT gate_of('SELECT region, count(*) FROM gate_p WHERE v = -1 GROUP BY region');
SELECT gate_of('SELECT region, count(*) FROM gate_p WHERE v = -1 GROUP BY ROLLUP (region)');
SELECT gate_of('SELECT min(id) FROM gate_p WHERE v = -1');
SELECT gate_of('SELECT DISTINCT region FROM gate_p WHERE v = -1');
SELECT gate_of('SELECT generate_series(1, 3), row_number() OVER () FROM gate_p WHERE v = -1');
SELECT gate_of('SELECT * FROM gate_p2 WHERE v = -1');
SELECT gate_of('SELECT * FROM gate_p2n WHERE v = -1');
SELECT gate_of('SELECT * FROM gate_p WHERE v = -1 FOR UPDATE');
BEGIN;
SELECT gate_of('UPDATE gate_p SET region = region WHERE v = -1');
SELECT gate_of('DELETE FROM gate_p WHERE v = -1');
SELECT gate_of('UPDATE gate_p SET region = o.id::text FROM gate_o o WHERE v = -1');
ROLLBACK;

--
-- Joins: the key of each outer row
--
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_memoize = off;
SELECT gate_of('SELECT * FROM gate_o o JOIN gate_t t ON t.id = o.id');
SELECT gate_of('SELECT * FROM gate_o o LEFT JOIN gate_t t ON t.id = o.id');
SELECT gate_of('SELECT * FROM gate_o o LEFT JOIN gate_t t ON t.id = -1');
SELECT gate_of('SELECT * FROM gate_o o WHERE EXISTS (SELECT FROM gate_t t WHERE t.id = o.id)');
SELECT gate_of('SELECT * FROM gate_o o WHERE NOT EXISTS (SELECT FROM gate_t t WHERE t.id = o.id)');
SELECT gate_of('SELECT (SELECT v FROM gate_t t WHERE t.id = o.id) FROM gate_o o');
SELECT gate_of('SELECT * FROM gate_o o, LATERAL (SELECT * FROM gate_t t WHERE t.id = o.id + 1 LIMIT 1) x');
SELECT count(t.id), count(*) FROM gate_o o LEFT JOIN gate_t t ON t.id = o.id;
RESET enable_hashjoin;
RESET enable_mergejoin;
RESET enable_memoize;
CREATE INDEX gate_p_v ON gate_p (v);
ANALYZE gate_p;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_memoize = off;
SET enable_seqscan = off;
SELECT gate_of('SELECT * FROM gate_o o JOIN gate_p p ON p.v = o.id');
RESET enable_hashjoin;
RESET enable_mergejoin;
RESET enable_memoize;
RESET enable_seqscan;

--
-- Other shapes
--
SELECT gate_of('SELECT 1 FROM gate_t WHERE id = -1 UNION ALL SELECT 2 FROM gate_p WHERE v = -1');
SELECT gate_of('WITH a AS MATERIALIZED (SELECT * FROM gate_t WHERE id = -1) SELECT * FROM a');
SELECT gate_of('SELECT * FROM gate_t WHERE id = -1 FOR UPDATE');
BEGIN;
SELECT gate_of('UPDATE gate_t SET v = 0 WHERE id = -1');
SELECT gate_of('DELETE FROM gate_t WHERE id = -1');
SELECT gate_of('INSERT INTO gate_o SELECT id FROM gate_t WHERE id = -1');
SELECT gate_of('MERGE INTO gate_o USING (SELECT * FROM gate_t WHERE id = -1) t ON gate_o.id = t.id WHEN MATCHED THEN DELETE');
-- rows of this transaction
INSERT INTO gate_t VALUES (-1, 'new');
SELECT gate_of('SELECT * FROM gate_t WHERE id = -1');
ROLLBACK;

-- prepared statements: the plan knows nothing of the filter
PREPARE gate_q(bigint) AS SELECT id, v FROM gate_t WHERE id = $1;
SET plan_cache_mode = force_generic_plan;
SELECT gate_of('EXECUTE gate_q(-1)');
SELECT gate_of('EXECUTE gate_q(1)');
SET plan_cache_mode = force_custom_plan;
SELECT gate_of('EXECUTE gate_q(-1)');
SET plan_cache_mode = force_generic_plan;
INSERT INTO gate_t VALUES (-1, 'new');
SELECT gate_of('EXECUTE gate_q(-1)');
DELETE FROM gate_t WHERE id = -1;
SET bloomguard.gate = off;
SELECT gate_of('EXECUTE gate_q(-1)');
SET bloomguard.gate = on;
SELECT gate_of('EXECUTE gate_q(-2)');
SET bloomguard.enabled = off;
SELECT gate_of('EXECUTE gate_q(-2)');
RESET bloomguard.enabled;
RESET plan_cache_mode;

-- a lookup that is not made leaves no predicate lock
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT gate_of('SELECT * FROM gate_t WHERE id = -2');
COMMIT;

-- cursors go backward, and rows are updated through them
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT id FROM gate_t WHERE id = 5;
FETCH NEXT FROM c;
FETCH NEXT FROM c;
FETCH PRIOR FROM c;
DECLARE d CURSOR FOR SELECT id FROM gate_t WHERE id = 6;
FETCH NEXT FROM d;
UPDATE gate_t SET v = v WHERE CURRENT OF d;
ROLLBACK;

--
-- What row security hides is not gated
--
CREATE ROLE regress_bloomguard_gate;
ALTER TABLE gate_t ENABLE ROW LEVEL SECURITY;
CREATE POLICY gate_even ON gate_t USING (v % 2 = 0);
GRANT SELECT ON gate_t TO regress_bloomguard_gate;
SELECT gate_of('SELECT * FROM gate_t WHERE id = -2');
SET ROLE regress_bloomguard_gate;
SELECT gate_of('SELECT * FROM gate_t WHERE id = -2');
RESET ROLE;
ALTER TABLE gate_t DISABLE ROW LEVEL SECURITY;
CREATE VIEW gate_barrier WITH (security_barrier) AS SELECT * FROM gate_t WHERE v % 2 = 0;
SELECT gate_of('SELECT * FROM gate_barrier WHERE id = -2');
CREATE VIEW gate_view AS SELECT id, name FROM gate_t WHERE v % 2 = 0;
SELECT gate_of('SELECT * FROM gate_view WHERE id = -2');

SELECT count(*), count(*) FILTER (WHERE NOT bloomguard_might_contain('gate_t', 'id', id)) AS called_absent FROM gate_t;
SELECT count(*), count(*) FILTER (WHERE NOT bloomguard_might_contain('gate_p', 'v', v)) AS called_absent FROM gate_p;
DROP VIEW gate_view, gate_barrier;
DROP TABLE gate_t, gate_p, gate_o;
DROP FUNCTION gate_of;
DROP ROLE regress_bloomguard_gate;
