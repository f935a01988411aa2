/*
 * verify.sql: when all is quiet, every filter is in service, complete, and turns
 * absent keys away.  Writes one line for each defect.
 */
\set QUIET on
\pset tuples_only on
\pset format unaligned

SELECT oracle_of() \g /dev/null
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT oracle_of() \g /dev/null
COMMIT;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT oracle_of() \g /dev/null
COMMIT;

SELECT format('not ready: %s', relation) FROM (SELECT DISTINCT relation FROM guarded WHERE root) g
WHERE NOT bloomguard_wait_ready(relation, '120 s');
SELECT format('not ready: %s (%s): %s %s', relation, key_columns, state, reason)
FROM bloomguard_filters WHERE state <> 'ready';
SELECT format('no filter: %s (%s)', g.relation, g.key_columns)
FROM guarded g LEFT JOIN bloomguard_filters f
	ON f.relation = g.relation::regclass AND f.key_columns = g.key_columns
WHERE root AND f.relation IS NULL;

SELECT format('FALSE NEGATIVE: bloomguard_verify(%L, %L): %s of %s rows are absent',
	relation, key_columns, rows_absent, rows_scanned)
FROM guarded, bloomguard_verify(relation, key_columns)
WHERE root AND rows_absent <> 0;

-- a filter that only says maybe would pass all of that; one that is overfull may
-- let pass what it says itself, and tells nothing when it lets pass nearly all
CREATE TEMP TABLE probe (relation text, key_columns text, asked int, turned_away int);
SELECT format('INSERT INTO probe SELECT %L, %L, count(*), count(*) FILTER (WHERE NOT
	bloomguard_might_contain(%L, %L, %s)) FROM generate_series(1, 1000) g',
	relation, key_columns, relation, key_columns,
	CASE key_columns WHEN 'id, email' THEN '-g, ''none'' || g' WHEN 'id, k' THEN '-g, -g'
		WHEN 'tenant, name' THEN '-g, ''none'' || g' WHEN 'id' THEN '-g' WHEN 'owner' THEN '-g'
		ELSE '''none'' || g' END)
FROM guarded WHERE root \gexec
SELECT format('does not turn away: %s (%s): %s of %s absent keys', probe.relation, key_columns, turned_away, asked)
FROM probe JOIN bloomguard_filters f USING (key_columns)
WHERE f.relation = probe.relation::regclass AND asked * (1 - estimated_rate) > 50
	AND turned_away < 0.8 * asked * (1 - estimated_rate);
