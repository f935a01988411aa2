--
-- PRIVILEGES
-- Who may define filters, ask them and see their figures.  [J1-J4]
--
CREATE ROLE regress_bloomguard_owner;
CREATE ROLE regress_bloomguard_reader;
CREATE ROLE regress_bloomguard_column;
CREATE ROLE regress_bloomguard_stranger;
CREATE ROLE regress_bloomguard_bypass BYPASSRLS;
CREATE ROLE regress_bloomguard_stats IN ROLE pg_read_all_stats;
GRANT CREATE ON SCHEMA public TO regress_bloomguard_owner;

SET ROLE regress_bloomguard_owner;
CREATE TABLE privileges_t (id int, tenant int, secret text);
CREATE TABLE privileges_bare (id int);
GRANT SELECT ON privileges_t TO regress_bloomguard_reader, regress_bloomguard_bypass;
GRANT SELECT (id, secret) ON privileges_t TO regress_bloomguard_column;
INSERT INTO privileges_t SELECT i, i, 's' || i FROM generate_series(1, 100) i;
SELECT bloomguard_track('privileges_t', 'id'), bloomguard_track('privileges_t', 'id, tenant');
SELECT bloomguard_wait_ready('privileges_t');
SELECT bloomguard_check('privileges_t', 'id', 1) AS there, bloomguard_check('privileges_t', 'id', 0) AS not_there;

--
-- Only the owner, and who has his role, defines, rebuilds and verifies.
--
SET ROLE regress_bloomguard_reader;
SELECT refused($$SELECT bloomguard_track('privileges_t', 'secret')$$);
SELECT refused($$SELECT bloomguard_track('privileges_t', 'id', 0.5)$$);
SELECT refused($$SELECT bloomguard_untrack('privileges_t')$$);
SELECT refused($$SELECT bloomguard_untrack('privileges_t', 'id')$$);
SELECT refused($$SELECT bloomguard_rebuild('privileges_t')$$);
SELECT refused($$SELECT * FROM bloomguard_verify('privileges_t')$$);
-- neither with the right to create triggers
RESET ROLE;
GRANT TRIGGER ON privileges_t TO regress_bloomguard_reader;
SET ROLE regress_bloomguard_reader;
SELECT refused($$SELECT bloomguard_track('privileges_t', 'secret')$$);
RESET ROLE;
REVOKE TRIGGER ON privileges_t FROM regress_bloomguard_reader;
SET ROLE regress_bloomguard_stranger;
SELECT refused($$SELECT bloomguard_track('privileges_t', 'id')$$);
SELECT refused($$SELECT bloomguard_track('pg_class', 'relname')$$);
SET ROLE regress_bloomguard_owner;
SELECT key_columns_verified, rows_scanned, rows_absent FROM bloomguard_verify('privileges_t')
ORDER BY key_columns_verified COLLATE "C";
-- a superuser is everybody
RESET ROLE;
SELECT bloomguard_rebuild('privileges_t');
SELECT wait_generation('privileges_t', 2);
-- a member of the owner's role
GRANT regress_bloomguard_owner TO regress_bloomguard_reader;
SET ROLE regress_bloomguard_reader;
SELECT rows_absent FROM bloomguard_verify('privileges_t', 'id');
RESET ROLE;
REVOKE regress_bloomguard_owner FROM regress_bloomguard_reader;

--
-- To ask needs SELECT on the table, or on all key columns.
--
SET ROLE regress_bloomguard_reader;
SELECT bloomguard_might_contain('privileges_t', 'id', 1) AS there, bloomguard_might_contain('privileges_t', 'id', 0) AS not_there,
	bloomguard_check('privileges_t', 'id, tenant', 1, 2) AS not_there;
SELECT * FROM oracle('privileges_t', 'id, tenant', '1', '2');
SET ROLE regress_bloomguard_column;
SELECT bloomguard_might_contain('privileges_t', 'id', 1) AS there, bloomguard_might_contain('privileges_t', 'id', 0) AS not_there;
SELECT refused($$SELECT bloomguard_might_contain('privileges_t', 'id, tenant', 1, 1)$$);
SELECT refused($$SELECT bloomguard_check('privileges_t', 'id, tenant', 1, 1)$$);
SELECT refused($$SELECT bloomguard_check('privileges_t', 'tenant', 1)$$);
SET ROLE regress_bloomguard_stranger;
SELECT refused($$SELECT bloomguard_might_contain('privileges_t', 'id', 1)$$);
SELECT refused($$SELECT bloomguard_check('privileges_t', 'id', 1)$$);
SELECT refused($$SELECT bloomguard_check('privileges_t', 'id', NULL::int)$$);
SELECT refused($$SELECT bloomguard_check('privileges_t', 'tenant', 1)$$);
-- also where no filter is
SELECT refused($$SELECT bloomguard_check('privileges_bare', 1)$$);
-- whatever the filter's state
SET bloomguard.enabled = off;
SELECT refused($$SELECT bloomguard_check('privileges_t', 'id', 1)$$);
RESET bloomguard.enabled;
RESET ROLE;

-- Rights are looked at on every call, also when the call site remembers all else.
CREATE FUNCTION privileges_ask(who name) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	PERFORM set_config('role', who, true);
	RETURN bloomguard_check('privileges_t', 'id', 0);
EXCEPTION WHEN insufficient_privilege THEN
	RETURN SQLERRM;
END $$;
BEGIN;
SELECT who, privileges_ask(who) FROM unnest('{regress_bloomguard_owner, regress_bloomguard_reader}'::name[]) who;
SELECT privileges_ask('regress_bloomguard_reader');
RESET ROLE;
SELECT privileges_ask('regress_bloomguard_stranger');
RESET ROLE;
REVOKE SELECT ON privileges_t FROM regress_bloomguard_reader;
SELECT privileges_ask('regress_bloomguard_reader');
RESET ROLE;
GRANT SELECT ON privileges_t TO regress_bloomguard_reader;
SELECT privileges_ask('regress_bloomguard_reader');
RESET ROLE;
COMMIT;
DROP FUNCTION privileges_ask;

--
-- Through a view of the owner's, a function call in it is still the caller's own;
-- only SECURITY DEFINER lends rights.
--
SET ROLE regress_bloomguard_owner;
CREATE VIEW privileges_view AS
SELECT k, bloomguard_might_contain('privileges_t', 'id', k) AS maybe FROM generate_series(100, 101) k;
GRANT SELECT ON privileges_view TO regress_bloomguard_reader, regress_bloomguard_stranger;
CREATE FUNCTION privileges_definer(k int) RETURNS boolean LANGUAGE sql STABLE SECURITY DEFINER
	SET search_path = public, pg_temp AS 'SELECT bloomguard_might_contain(''privileges_t'', ''id'', k)';
SELECT * FROM privileges_view;
SET ROLE regress_bloomguard_reader;
SELECT * FROM privileges_view;
SET ROLE regress_bloomguard_stranger;
SELECT refused('SELECT * FROM privileges_view');
SELECT k, privileges_definer(k) FROM generate_series(100, 101) k;
-- a probe that names a view: there is no filter
RESET ROLE;
SELECT bloomguard_check('privileges_view', 1);

--
-- Row-level security in force: a definite answer would tell of hidden rows.
--
SET ROLE regress_bloomguard_owner;
CREATE POLICY p ON privileges_t FOR SELECT TO regress_bloomguard_reader USING (tenant = 1);
ALTER TABLE privileges_t ENABLE ROW LEVEL SECURITY;
SELECT bloomguard_check('privileges_t', 'id', 1) AS there, bloomguard_check('privileges_t', 'id', 0) AS not_there;
SET ROLE regress_bloomguard_reader;
SELECT count(*) AS visible FROM privileges_t;
SELECT bloomguard_check('privileges_t', 'id', k), bloomguard_might_contain('privileges_t', 'id', k)
FROM (VALUES (1), (2), (0)) v(k);
-- row_security = off does not lift it: the query would fail, the probe does not tell
SET row_security = off;
SELECT bloomguard_check('privileges_t', 'id', 0);
RESET row_security;
SET ROLE regress_bloomguard_column;
SELECT bloomguard_check('privileges_t', 'id', 0);
SET ROLE regress_bloomguard_stranger;
SELECT refused($$SELECT bloomguard_check('privileges_t', 'id', 0)$$);
-- one call site, several roles: what holds for one is not taken for another
SELECT k, privileges_definer(k) FROM generate_series(100, 101) k;
SET ROLE regress_bloomguard_bypass;
SELECT bloomguard_check('privileges_t', 'id', 1) AS there, bloomguard_check('privileges_t', 'id', 0) AS not_there;
RESET ROLE;
SELECT bloomguard_check('privileges_t', 'id', 1) AS there, bloomguard_check('privileges_t', 'id', 0) AS not_there;
-- forced, for the owner as well
ALTER TABLE privileges_t FORCE ROW LEVEL SECURITY;
SET ROLE regress_bloomguard_owner;
SELECT bloomguard_check('privileges_t', 'id', 0);
-- he may still verify, and the filter has not suffered
SELECT rows_absent FROM bloomguard_verify('privileges_t', 'id');
RESET ROLE;
ALTER TABLE privileges_t NO FORCE ROW LEVEL SECURITY;
ALTER TABLE privileges_t DISABLE ROW LEVEL SECURITY;
SET ROLE regress_bloomguard_reader;
SELECT bloomguard_check('privileges_t', 'id', 0);
RESET ROLE;
-- on a partition its own policy counts, as it does for a query that names it
CREATE TABLE privileges_part (id int) PARTITION BY RANGE (id);
CREATE TABLE privileges_part_1 PARTITION OF privileges_part FOR VALUES FROM (0) TO (10);
INSERT INTO privileges_part VALUES (1);
GRANT SELECT ON privileges_part TO regress_bloomguard_reader;
SELECT bloomguard_track('privileges_part', 'id');
SELECT bloomguard_wait_ready('privileges_part');
SET ROLE regress_bloomguard_reader;
SELECT bloomguard_check('privileges_part', 2);
SELECT refused($$SELECT bloomguard_check('privileges_part_1', 2)$$);
RESET ROLE;
GRANT SELECT ON privileges_part_1 TO regress_bloomguard_reader;
ALTER TABLE privileges_part_1 ENABLE ROW LEVEL SECURITY;
SET ROLE regress_bloomguard_reader;
SELECT bloomguard_check('privileges_part', 2) AS root, bloomguard_check('privileges_part_1', 2) AS partition;
RESET ROLE;
DROP TABLE privileges_part;

--
-- The views: figures only for the owner and for pg_read_all_stats; the counters
-- are reset by those who were granted it.
--
SET ROLE regress_bloomguard_owner;
SELECT key_columns, state, bits IS NOT NULL AS figures FROM bloomguard_filters ORDER BY key_columns COLLATE "C";
SELECT key_columns, probes > 0 AS counted FROM bloomguard_stats ORDER BY key_columns COLLATE "C";
SET ROLE regress_bloomguard_stats;
SELECT key_columns, state, bits IS NOT NULL AS figures FROM bloomguard_filters ORDER BY key_columns COLLATE "C";
SELECT key_columns, probes > 0 AS counted FROM bloomguard_stats ORDER BY key_columns COLLATE "C";
SET ROLE regress_bloomguard_reader;
SELECT key_columns, state, num_nonnulls(bits, hashes, bytes, keys_added, estimated_keys, fill, estimated_rate,
	built_at, build_seconds, last_error) AS figures, generation FROM bloomguard_filters ORDER BY key_columns COLLATE "C";
SELECT count(*) FROM bloomguard_stats;
SET ROLE regress_bloomguard_stranger;
SELECT count(*) FROM bloomguard_filters;
SELECT count(*) FROM bloomguard_stats;
SELECT count(*) FROM bloomguard_progress;
SELECT count(*) FROM bloomguard_memory;
SELECT refused('SELECT bloomguard_stats_reset()');
SET ROLE regress_bloomguard_stats;
SELECT refused('SELECT bloomguard_stats_reset()');
RESET ROLE;
GRANT EXECUTE ON FUNCTION bloomguard_stats_reset() TO regress_bloomguard_stats;
SET ROLE regress_bloomguard_stats;
SELECT bloomguard_stats_reset();
SELECT key_columns, probes FROM bloomguard_stats ORDER BY key_columns COLLATE "C";
RESET ROLE;

-- The setting is everybody's, for his own session; those of the server are not.
SET ROLE regress_bloomguard_stranger;
SET bloomguard.enabled = off;
RESET bloomguard.enabled;
SELECT refused('SET bloomguard.false_positive_rate = 0.1');
SELECT refused('SET bloomguard.max_workers = 1');
RESET ROLE;

SELECT * FROM oracle('privileges_t', 'id', '0');
SELECT * FROM oracle('privileges_t', 'id, tenant', '1', '2');
DROP VIEW privileges_view;
DROP FUNCTION privileges_definer;
DROP TABLE privileges_t, privileges_bare;
REVOKE CREATE ON SCHEMA public FROM regress_bloomguard_owner;
REVOKE EXECUTE ON FUNCTION bloomguard_stats_reset() FROM regress_bloomguard_stats;
DROP ROLE regress_bloomguard_owner, regress_bloomguard_reader, regress_bloomguard_column,
	regress_bloomguard_stranger, regress_bloomguard_bypass, regress_bloomguard_stats;
