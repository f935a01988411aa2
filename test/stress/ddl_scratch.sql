-- ddl_scratch.sql: a table that is dropped, made and tracked again; small DDL on others
\set r random(1, 9)
\set a random(1, 1000000)
\if :r <= 3
BEGIN;
DROP TABLE IF EXISTS scratch;
CREATE TABLE scratch (id bigint, label text);
INSERT INTO scratch SELECT :a + g, 'first' || (:a + g) FROM generate_series(1, 100) g;
SELECT bloomguard_track('scratch', 'id');
INSERT INTO scratch SELECT :a + g, 'second' || (:a + g) FROM generate_series(101, 200) g;
SELECT bloomguard_track('scratch', 'label');
INSERT INTO scratch SELECT :a + g, 'third' || (:a + g) FROM generate_series(201, 300) g;
SELECT oracle('scratch');
\if :r = 3
ROLLBACK;
\else
COMMIT;
\endif
\elif :r = 4
BEGIN;
DROP TABLE scratch;
ROLLBACK;
\elif :r = 5
BEGIN;
SELECT bloomguard_untrack('scratch');
INSERT INTO scratch SELECT :a + g, 'bypass' || (:a + g) FROM generate_series(1, 100) g;
SELECT bloomguard_track('scratch', 'id'), bloomguard_track('scratch', 'label');
\if :a % 2 = 0
ROLLBACK;
\else
COMMIT;
\endif
\elif :r = 6
CREATE OR REPLACE FUNCTION lower_name() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	NEW.name := lower(NEW.name);
	RETURN NEW;
END $$;
\elif :r = 7
CREATE OR REPLACE TRIGGER aaa_probe AFTER INSERT OR UPDATE ON child
	FOR EACH ROW WHEN (NEW.n % 10 IN (3, 4)) EXECUTE FUNCTION probe_new('child', 'owner');
\elif :r = 8
BEGIN;
ALTER TABLE doc DISABLE TRIGGER ALL;
INSERT INTO doc VALUES (repeat(md5(:a::text), 90), :a % 1000);
ALTER TABLE doc ENABLE TRIGGER ALL;
COMMIT;
VACUUM FULL doc;
\else
ALTER TABLE doc ALTER key TYPE varchar;
ALTER TABLE doc ALTER key TYPE text;
\endif
-- rows by ordinary writers
INSERT INTO scratch SELECT :a + g, 'more' || (:a + g) FROM generate_series(301, 320) g;
UPDATE scratch SET id = id + 1000, label = label || 'x' WHERE id BETWEEN :a + 1 AND :a + 20;
DELETE FROM scratch WHERE id BETWEEN :a + 50 AND :a + 100;
\sleep 50 ms
