/*
 * settle.sql: put right what the clients left behind, as an administrator would
 *
 * Nobody else is connected.  After it every filter of "guarded" must become ready.
 * What is sound is left alone, so that a filter that served during the storm is
 * the one that is verified.
 */
\set QUIET on
\pset tuples_only on

-- prepared transactions that nobody came back for
SELECT format(CASE WHEN hashtext(gid) % 2 = 0 THEN 'COMMIT PREPARED %L' ELSE 'ROLLBACK PREPARED %L' END, gid)
FROM pg_prepared_xacts \gexec

-- names
SELECT 'ALTER TABLE renamed RENAME TO plain' WHERE to_regclass('renamed') IS NOT NULL \gexec
SELECT format('ALTER TABLE %s RENAME COLUMN mail TO email', attrelid::regclass)
FROM pg_attribute WHERE attrelid = 'plain'::regclass AND attname = 'mail' \gexec
SELECT 'ALTER TABLE part RENAME COLUMN value TO v'
FROM pg_attribute WHERE attrelid = 'part'::regclass AND attname = 'value' \gexec

-- partitions; one that is away does not follow the root's renamings
SELECT format('ALTER TABLE part DETACH PARTITION %s FINALIZE', inhrelid::regclass)
FROM pg_inherits WHERE inhdetachpending \gexec
SELECT format('ALTER TABLE %s RENAME COLUMN value TO v', attrelid::regclass)
FROM pg_attribute JOIN pg_class c ON c.oid = attrelid
WHERE relname IN ('part_1', 'part_2', 'part_3') AND NOT relispartition AND attname = 'value' \gexec
SELECT format('ALTER TABLE %I ALTER COLUMN v TYPE text', relname)
FROM pg_class WHERE relname IN ('part_1', 'part_2', 'part_3') AND NOT relispartition \gexec
SELECT 'ALTER TABLE part ALTER COLUMN v TYPE text' FROM pg_attribute
WHERE attrelid = 'part'::regclass AND attname = 'v' AND atttypid <> 'text'::regtype \gexec
SELECT format('ALTER TABLE part ATTACH PARTITION %s FOR VALUES FROM (%s) TO (%s)', relname, low, low + 10000)
FROM (VALUES ('part_1', 0), ('part_2', 10000), ('part_3', 20000)) p (name, low)
	JOIN pg_class ON relname = name
WHERE NOT relispartition \gexec

-- triggers that are off, or not sound; the workers make them ALWAYS again
SELECT format('ALTER TABLE %s ENABLE TRIGGER ALL', tgrelid::regclass)
FROM pg_trigger WHERE tgenabled = 'D' GROUP BY tgrelid \gexec
SELECT format('DROP TRIGGER %I ON %s', tgname, tgrelid::regclass)
FROM pg_trigger
WHERE tgfoid = 'bloomguard_maintain'::regproc AND tgparentid = 0 AND tgqual IS NOT NULL \gexec
SELECT format('SELECT bloomguard_track(%L, %L)', relation, key_columns)
FROM guarded g
WHERE root AND NOT EXISTS (SELECT FROM bloomguard_filters f
	WHERE f.relation = g.relation::regclass AND f.key_columns = g.key_columns) \gexec

-- about as many rows as in the beginning
INSERT INTO plain SELECT (g * 1234567.0)::bigint % 2000000000, 'fill' || g, g % 100
FROM generate_series(1, 6000 - (SELECT count(*) FROM plain)::int) g;
DELETE FROM plain WHERE ctid IN (SELECT ctid FROM plain OFFSET 12000);
DELETE FROM part WHERE (tableoid, ctid) IN (SELECT tableoid, ctid FROM part OFFSET 12000);
DELETE FROM load WHERE ctid IN (SELECT ctid FROM load OFFSET 5000);
DELETE FROM doc WHERE ctid IN (SELECT ctid FROM doc OFFSET 600);
