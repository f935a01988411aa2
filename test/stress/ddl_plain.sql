-- ddl_plain.sql: DDL on a table that is being written, and rows that bypass its triggers
\set r random(1, 26)
\set a random(1, 2000000000)
-- where an earlier round was interrupted in the middle
SELECT count(*) AS renamed FROM pg_class WHERE relname = 'renamed' \gset
\if :renamed
ALTER TABLE renamed RENAME TO plain;
\endif
SELECT count(*) AS mail FROM pg_attribute
	WHERE attrelid = to_regclass('plain') AND attname = 'mail' \gset
\if :mail
ALTER TABLE plain RENAME COLUMN mail TO email;
\endif
\if :r = 1
BEGIN;
ALTER TABLE plain DISABLE TRIGGER bloomguard_id;
INSERT INTO plain VALUES (:a, 'bypass' || :a, 1);
ALTER TABLE plain ENABLE ALWAYS TRIGGER bloomguard_id;
COMMIT;
\elif :r = 2
-- comes back as an ordinary trigger
ALTER TABLE plain DISABLE TRIGGER ALL;
INSERT INTO plain SELECT :a + g, 'bypass' || (:a + g), 1 FROM generate_series(1, 20) g;
\sleep 100 ms
ALTER TABLE plain ENABLE TRIGGER ALL;
\elif :r = 3
BEGIN;
ALTER TABLE plain DISABLE TRIGGER ALL;
INSERT INTO plain SELECT :a + g, 'bypass' || (:a + g), 1 FROM generate_series(1, 20) g;
ROLLBACK;
\elif :r = 4
BEGIN;
ALTER TABLE plain DISABLE TRIGGER ALL;
INSERT INTO plain SELECT :a + g, 'bypass' || (:a + g), 1 FROM generate_series(1, 20) g;
PREPARE TRANSACTION 'ddl :a';
\sleep 400 ms
ALTER TABLE plain ENABLE TRIGGER ALL;
\elif :r = 5
BEGIN;
ALTER TABLE plain DISABLE TRIGGER USER;
INSERT INTO plain SELECT :a + g, 'bypass' || (:a + g), 1 FROM generate_series(1, 20) g;
ALTER TABLE plain ENABLE TRIGGER USER;
PREPARE TRANSACTION 'ddl :a';
\elif :r = 6
BEGIN;
TRUNCATE plain;
INSERT INTO plain SELECT (:a + g * 1234567.0)::bigint % 2000000000, 'fresh' || (:a + g), g % 100 FROM generate_series(1, 3000) g;
COMMIT;
\elif :r = 7
BEGIN;
TRUNCATE plain;
INSERT INTO plain SELECT :a + g, 'gone' || (:a + g), g FROM generate_series(1, 30) g;
SELECT oracle('plain');
ROLLBACK;
\elif :r = 8
ALTER TABLE plain ALTER id TYPE bigint USING (id + 1);
\elif :r = 9
BEGIN;
ALTER TABLE plain ALTER id TYPE bigint USING (id + 1000);
SELECT oracle('plain');
ROLLBACK;
\elif :r = 10
ALTER TABLE plain RENAME COLUMN email TO mail;
\sleep 100 ms
ALTER TABLE plain RENAME COLUMN mail TO email;
\elif :r = 11
BEGIN;
ALTER TABLE plain RENAME TO renamed;
INSERT INTO renamed VALUES (:a, 'renamed' || :a, 1);
\if :a % 2 = 0
ROLLBACK;
\else
COMMIT;
\sleep 50 ms
ALTER TABLE renamed RENAME TO plain;
\endif
\elif :r = 12
VACUUM FULL plain;
\elif :r = 13
CLUSTER plain USING plain_id;
\elif :r = 14
BEGIN;
DROP TRIGGER IF EXISTS bloomguard_email ON plain;
INSERT INTO plain SELECT :a + g, 'bypass' || (:a + g), 1 FROM generate_series(1, 20) g;
SELECT bloomguard_track('plain', 'email');
COMMIT;
\elif :r = 15
DROP TRIGGER IF EXISTS bloomguard_id ON plain;
INSERT INTO plain SELECT :a + g, 'bypass' || (:a + g), 1 FROM generate_series(1, 20) g;
\sleep 50 ms
SELECT bloomguard_track('plain', 'id');
\elif :r = 16
SELECT bloomguard_untrack('plain', 'id, email');
INSERT INTO plain SELECT :a + g, 'bypass' || (:a + g), 1 FROM generate_series(1, 20) g;
SELECT bloomguard_track('plain', 'id, email', capacity => 10000 + :a % 20000);
\elif :r = 17
CREATE OR REPLACE TRIGGER bloomguard_email AFTER INSERT OR UPDATE ON plain
	FOR EACH ROW WHEN (NEW.v < 0) EXECUTE FUNCTION bloomguard_maintain('email');
INSERT INTO plain SELECT :a + g, 'bypass' || (:a + g), 1 FROM generate_series(1, 20) g;
BEGIN;
DROP TRIGGER bloomguard_email ON plain;
SELECT bloomguard_track('plain', 'email');
COMMIT;
\elif :r = 18
ALTER TABLE plain ADD COLUMN IF NOT EXISTS filler int DEFAULT 7;
INSERT INTO plain VALUES (:a, 'filler' || :a, 1);
ALTER TABLE plain DROP COLUMN filler;
\elif :r = 19
CREATE INDEX CONCURRENTLY IF NOT EXISTS plain_note ON plain (note);
DROP INDEX CONCURRENTLY IF EXISTS plain_note;
\elif :r = 20
-- a fill of NULLs
BEGIN;
UPDATE plain SET email = NULL WHERE id BETWEEN :a AND :a::bigint + 200000000;
INSERT INTO plain SELECT CASE WHEN g % 2 = 0 THEN :a + g END, NULL, g FROM generate_series(1, 100) g;
COMMIT;
DELETE FROM plain WHERE id IS NULL;
UPDATE plain SET email = 'again' || id WHERE email IS NULL;
\elif :r = 21
ALTER TABLE plain ALTER email TYPE varchar(200);
INSERT INTO plain SELECT :a + g, 'varchar' || (:a + g), 1 FROM generate_series(1, 5) g;
\sleep 100 ms
ALTER TABLE plain ALTER email TYPE text;
\elif :r = 22
BEGIN;
INSERT INTO plain VALUES (:a, 'before' || :a, 1);
SAVEPOINT a;
ALTER TABLE plain DISABLE TRIGGER ALL;
INSERT INTO plain VALUES (:a + 1, 'bypass' || :a, 1);
ROLLBACK TO a;
INSERT INTO plain VALUES (:a + 2, 'after' || :a, 1);
COMMIT;
\elif :r = 23
BEGIN;
ALTER TRIGGER bloomguard_id ON plain RENAME TO other_name;
INSERT INTO plain VALUES (:a, 'other' || :a, 1);
ALTER TRIGGER other_name ON plain RENAME TO bloomguard_id;
COMMIT;
\elif :r = 24
SELECT bloomguard_track('plain', 'id', 0.001 * (1 + :a % 9));
\elif :r = 25
ALTER TABLE plain ALTER note TYPE varchar(300) USING note || 'x';
ALTER TABLE plain ALTER note TYPE text;
\else
BEGIN;
SET LOCAL session_replication_role = replica;
INSERT INTO plain SELECT :a + g, 'replica' || (:a + g), 1 FROM generate_series(1, 50) g;
COMMIT;
\endif
\sleep 50 ms
