--
-- SETUP
-- Install the extension; helpers for the tests that follow.
--

-- Before it exists, somebody has left traps for an install script that does not
-- say which schema it means.
CREATE SCHEMA bg_trap;
CREATE FUNCTION bg_trap.clock_timestamp() RETURNS timestamptz
	LANGUAGE sql AS 'SELECT NULL::timestamptz';
CREATE FUNCTION bg_trap.trap(timestamptz, timestamptz) RETURNS interval
	LANGUAGE sql AS 'SELECT NULL::interval';
CREATE OPERATOR bg_trap.- (FUNCTION = bg_trap.trap, LEFTARG = timestamptz, RIGHTARG = timestamptz);
CREATE FUNCTION bg_trap.date_part(text, interval) RETURNS float8
	LANGUAGE sql AS 'SELECT 0::float8';
CREATE FUNCTION bg_trap.extract(text, interval) RETURNS numeric
	LANGUAGE sql AS 'SELECT 0::numeric';
CREATE TEMP TABLE bloomguard_filters (trap int);
CREATE TEMP TABLE bloomguard_stats (trap int);
CREATE TEMP TABLE pg_trigger (trap int);

-- what objects of the extension need, beyond pg_catalog, themselves and their schema
CREATE VIEW bg_trap.captured AS
WITH member AS (
	SELECT classid, objid FROM pg_catalog.pg_depend
	WHERE refclassid = 'pg_extension'::regclass AND deptype = 'e' AND
		refobjid = (SELECT oid FROM pg_extension WHERE extname = 'bloomguard')),
-- views depend on others through their rules
needs AS (
	SELECT d.* FROM pg_catalog.pg_depend d JOIN member USING (classid, objid)
	UNION ALL
	SELECT d.* FROM member m
	JOIN pg_catalog.pg_rewrite r ON m.classid = 'pg_class'::regclass AND r.ev_class = m.objid
	JOIN pg_catalog.pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid)
SELECT DISTINCT pg_describe_object(refclassid, refobjid, refobjsubid) AS needs
FROM needs n
WHERE n.refclassid <> 'pg_extension'::regclass AND
	n.refclassid <> 'pg_namespace'::regclass AND
	n.refobjid >= 16384 AND
	(n.refclassid, n.refobjid) NOT IN (SELECT classid, objid FROM member);

SET search_path = bg_trap, pg_catalog, public;
CREATE EXTENSION bloomguard;
SELECT extnamespace::regnamespace FROM pg_extension WHERE extname = 'bloomguard';
SELECT * FROM bg_trap.captured;
SELECT count(*) > 5 AS views_are_looked_at FROM pg_depend d JOIN pg_rewrite r ON d.objid = r.oid
WHERE d.classid = 'pg_rewrite'::regclass AND r.ev_class IN
	('bg_trap.bloomguard_filters'::regclass, 'bg_trap.bloomguard_stats'::regclass,
	 'bg_trap.bloomguard_progress'::regclass, 'bg_trap.bloomguard_memory'::regclass);
-- the temporary tables were not taken for the views
SELECT relation, key_columns, state FROM bg_trap.bloomguard_filters;
SELECT attname FROM pg_attribute WHERE attrelid = 'pg_temp.bloomguard_filters'::regclass AND attnum > 0;
SELECT relacl IS NULL AS not_granted FROM pg_class WHERE oid = 'pg_temp.bloomguard_filters'::regclass;
DROP EXTENSION bloomguard;
RESET search_path;
DROP TABLE pg_temp.bloomguard_filters, pg_temp.bloomguard_stats, pg_temp.pg_trigger;
SET client_min_messages = warning;
DROP SCHEMA bg_trap CASCADE;
RESET client_min_messages;

-- It lives where its user wants it, and can be moved.
CREATE SCHEMA bg_elsewhere;
CREATE EXTENSION bloomguard SCHEMA bg_elsewhere;
ALTER EXTENSION bloomguard SET SCHEMA public;
DROP SCHEMA bg_elsewhere;
DROP EXTENSION bloomguard;

CREATE EXTENSION bloomguard;

-- Everything explains itself.
SELECT pg_describe_object(classid, objid, 0) AS without_comment
FROM pg_depend
WHERE refclassid = 'pg_extension'::regclass AND deptype = 'e' AND
	refobjid = (SELECT oid FROM pg_extension WHERE extname = 'bloomguard') AND
	obj_description(objid, classid::regclass::name) IS NULL
UNION ALL
SELECT attrelid::regclass || '.' || attname
FROM pg_attribute
WHERE attrelid IN ('bloomguard_filters'::regclass, 'bloomguard_stats'::regclass,
	'bloomguard_progress'::regclass, 'bloomguard_memory'::regclass) AND
	attnum > 0 AND col_description(attrelid, attnum) IS NULL;

-- What there is.  Nothing has a body that a search_path could bend, nothing runs
-- with another user's rights, and only the size is said to be immutable.
SELECT p.oid::regprocedure AS function, provolatile AS volatility,
	proparallel AS parallel, proisstrict AS strict, proleakproof AS leakproof
FROM pg_proc p
JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
JOIN pg_extension e ON e.oid = d.refobjid AND e.extname = 'bloomguard'
ORDER BY p.oid::regprocedure::text COLLATE "C";
SELECT count(*) AS not_plain_c
FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang
WHERE proname LIKE 'bloomguard%' AND
	(lanname <> 'c' OR prosecdef OR proconfig IS NOT NULL OR probin <> '$libdir/bloomguard');

-- The settings, and that their prefix is reserved.
SELECT name, setting, unit, context FROM pg_settings
WHERE name LIKE 'bloomguard.%' AND name <> 'bloomguard.naptime' ORDER BY name COLLATE "C";
SET bloomguard.no_such_setting = 1;

--
-- Helpers.
--

-- The oracle: may not be wrong about any row.  An answer that is always "maybe"
-- would pass, so the filter must be ready, a key that is not in the table must be
-- answered "absent", and the rows "maybe", not "unguarded".
CREATE FUNCTION oracle(rel regclass, cols text, VARIADIC absent_key text[],
	OUT ready boolean, OUT absent_key_is text, OUT rows bigint,
	OUT rows_guarded boolean, OUT rows_absent bigint)
LANGUAGE plpgsql AS $$
BEGIN
	ready := bloomguard_wait_ready(rel);
	EXECUTE format('SELECT bloomguard_check($1, $2, VARIADIC %L::text[])', absent_key)
		INTO absent_key_is USING rel, cols;
	EXECUTE format(
		'SELECT count(*), '
		'	coalesce(bool_and(bloomguard_check($1, $2, %1$s) = ''maybe'') '
		'		FILTER (WHERE num_nulls(%1$s) = 0), true) FROM %2$s', cols, rel)
		INTO rows, rows_guarded USING rel, cols;
	EXECUTE format(
		'SELECT count(*) FROM %2$s WHERE NOT bloomguard_might_contain($1, $2, %1$s)', cols, rel)
		INTO rows_absent USING rel, cols;
END $$;

-- How a command is refused: SQLSTATE, message, detail, hint.  One that is not
-- refused is undone.
CREATE FUNCTION refused(command text) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
	m text;
	d text;
	h text;
BEGIN
	EXECUTE command;
	RAISE EXCEPTION 'it was not refused';
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS m = MESSAGE_TEXT, d = PG_EXCEPTION_DETAIL, h = PG_EXCEPTION_HINT;
	RETURN concat_ws(E'\n', SQLSTATE || ': ' || m, 'DETAIL: ' || nullif(d, ''), 'HINT: ' || nullif(h, ''));
END $$;

-- Wait until every filter of the relation is in its n-th generation, or a later one.
CREATE FUNCTION wait_generation(rel regclass, n int) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
	deadline timestamptz := clock_timestamp() + '60 s';
BEGIN
	LOOP
		IF (SELECT coalesce(min(generation), 0) >= n FROM bloomguard_filters WHERE relation = rel) THEN
			RETURN bloomguard_wait_ready(rel);
		END IF;
		IF clock_timestamp() > deadline THEN
			RETURN false;
		END IF;
	END LOOP;
END $$;

-- The helpers can see a false answer: a filter is always ready here, but its
-- table is asked for keys that it does not have.
CREATE TABLE setup_t (k int);
INSERT INTO setup_t SELECT generate_series(1, 100);
SELECT bloomguard_track('setup_t', 'k');
SELECT * FROM oracle('setup_t', 'k', '-1');
SELECT * FROM oracle('setup_t', 'k', '1');
SELECT count(*) AS absent FROM setup_t WHERE NOT bloomguard_might_contain('setup_t', k + 1000);
SELECT refused('SELECT 1/0');
SELECT refused('SELECT 1');

-- The extension is not dropped from under a filter.
DROP EXTENSION bloomguard;
DROP TABLE setup_t;
