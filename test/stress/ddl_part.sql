-- ddl_part.sql: partitions come and go, with rows written while they are away
\set r random(1, 18)
\set c random(1, 1000000000)
-- where an earlier round was interrupted in the middle
SELECT count(*) AS pending FROM pg_inherits WHERE inhdetachpending \gset
\if :pending
ALTER TABLE part DETACH PARTITION part_3 FINALIZE;
\endif
SELECT count(*) AS value FROM pg_attribute
	WHERE attrelid = 'part'::regclass AND attname = 'value' \gset
\if :value
ALTER TABLE part RENAME COLUMN value TO v;
\endif
SELECT count(*) AS varchar FROM pg_attribute
	WHERE attrelid = 'part'::regclass AND attname = 'v' AND atttypid <> 'text'::regtype \gset
\if :varchar
ALTER TABLE part ALTER v TYPE text;
\endif
SELECT count(*) FILTER (WHERE relname = 'part_1') AS away_1,
	count(*) FILTER (WHERE relname = 'part_3') AS away_3
	FROM pg_class WHERE relname IN ('part_1', 'part_3') AND NOT relispartition \gset
\if :away_1
ALTER TABLE part ATTACH PARTITION part_1 FOR VALUES FROM (0) TO (10000);
\endif
\if :away_3
ALTER TABLE part ATTACH PARTITION part_3 FOR VALUES FROM (20000) TO (30000);
\endif
\if :r = 1
BEGIN;
ALTER TABLE part DETACH PARTITION part_1;
INSERT INTO part_1 (id, k, v) SELECT g, 1, 'away' || :c FROM generate_series(:c % 9000, :c % 9000 + 20) g;
ALTER TABLE part ATTACH PARTITION part_1 FOR VALUES FROM (0) TO (10000);
COMMIT;
\elif :r = 2
ALTER TABLE part DETACH PARTITION part_1;
INSERT INTO part_1 (id, k, v) SELECT g, 1, 'away' || :c FROM generate_series(:c % 9000, :c % 9000 + 20) g;
\sleep 50 ms
ALTER TABLE part ATTACH PARTITION part_1 FOR VALUES FROM (0) TO (10000);
\elif :r <= 5
SET lock_timeout = '4s';
ALTER TABLE part DETACH PARTITION part_3 CONCURRENTLY;
RESET lock_timeout;
INSERT INTO part_3 (id, k, v) SELECT g, 1, 'away' || :c FROM generate_series(20000 + :c % 9000, 20000 + :c % 9000 + 20) g;
ALTER TABLE part ATTACH PARTITION part_3 FOR VALUES FROM (20000) TO (30000);
\elif :r = 6
BEGIN;
ALTER TABLE part DETACH PARTITION part_2;
INSERT INTO part_2 (id, k, v) SELECT 10000 + :c % 9000 + g, g, 'away' || :c FROM generate_series(1, 9) g;
ALTER TABLE part ATTACH PARTITION part_2 FOR VALUES FROM (10000) TO (20000);
\if :c % 2 = 0
ROLLBACK;
\else
COMMIT;
\endif
\elif :r = 7
-- a new partition that brings rows; none reads them before
DROP TABLE IF EXISTS part_4;
BEGIN;
CREATE TABLE part_4 (v text, id int, extra int, k int);
ALTER TABLE part_4 DROP COLUMN extra;
INSERT INTO part_4 (id, k, v) SELECT 30000 + g, g % 10, 'four' || :c + g FROM generate_series(1, 200) g;
ALTER TABLE part ATTACH PARTITION part_4 FOR VALUES FROM (30000) TO (40000);
INSERT INTO part VALUES (39999, 1, 'four' || :c);
COMMIT;
SELECT oracle('part', 'id >= 30000');
DROP TABLE part_4;
\elif :r = 8
DROP TABLE IF EXISTS part_5;
CREATE TABLE part_5 PARTITION OF part FOR VALUES FROM (40000) TO (50000);
INSERT INTO part SELECT 40000 + g, g % 10, 'five' || :c + g FROM generate_series(1, 200) g;
SELECT oracle('part', 'id >= 40000');
BEGIN;
TRUNCATE part_5;
DROP TABLE part_5;
COMMIT;
\elif :r = 9
ALTER TABLE part_2a DISABLE TRIGGER ALL;
INSERT INTO part_2a SELECT 10000 + :c % 9000 + g, g, 'bypass' || :c FROM generate_series(1, 4) g;
INSERT INTO part SELECT 10000 + :c % 9000 + g, g, 'bypass' || :c FROM generate_series(1, 4) g;
\sleep 50 ms
ALTER TABLE part_2a ENABLE TRIGGER ALL;
\elif :r = 10
BEGIN;
ALTER TABLE part_1 DISABLE TRIGGER ALL;
INSERT INTO part SELECT :c % 9000 + g, 1, 'bypass' || :c FROM generate_series(1, 4) g;
\if :c % 3 = 0
PREPARE TRANSACTION 'ddl :c';
\sleep 400 ms
\elif :c % 3 = 1
COMMIT;
\else
ROLLBACK;
\endif
ALTER TABLE part_1 ENABLE TRIGGER ALL;
\elif :r = 11
BEGIN;
TRUNCATE part_2;
INSERT INTO part SELECT 10000 + g * 5, g % 10, 'fresh' || :c + g FROM generate_series(1, 1000) g;
\if :c % 2 = 0
ROLLBACK;
\else
COMMIT;
\endif
\elif :r = 12
ALTER TABLE part ALTER v TYPE varchar(100);
INSERT INTO part VALUES (:c % 30000, 1, 'varchar' || :c);
ALTER TABLE part ALTER v TYPE text;
\elif :r = 13
ALTER TABLE part RENAME COLUMN v TO value;
\sleep 50 ms
ALTER TABLE part RENAME COLUMN value TO v;
\elif :r = 14
BEGIN;
ALTER TABLE part ADD COLUMN filler int DEFAULT 7;
ALTER TABLE part DROP COLUMN filler;
COMMIT;
\elif :r = 15
VACUUM FULL part_3;
\elif :r = 16
BEGIN;
DROP TRIGGER IF EXISTS bloomguard_v ON part;
INSERT INTO part SELECT :c % 29000 + g, 1, 'bypass' || :c + g FROM generate_series(1, 10) g;
SELECT bloomguard_track('part', 'v');
COMMIT;
\elif :r = 17
BEGIN;
ALTER TABLE part ALTER v TYPE text USING v || 'x';
SELECT oracle('part');
\if :c % 2 = 0
ROLLBACK;
\else
COMMIT;
\endif
\else
BEGIN;
SET LOCAL session_replication_role = replica;
INSERT INTO part SELECT :c % 29000 + g, g % 10, 'replica' || :c + g FROM generate_series(1, 50) g;
UPDATE part SET id = (id + 10000) % 30000 WHERE id BETWEEN :c % 29000 AND :c % 29000 + 10;
COMMIT;
\endif
\sleep 50 ms
