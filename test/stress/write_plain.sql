-- write_plain.sql: inserts, deletes, HOT, cold and key updates, savepoints
\set new random(1, 2000000000)
\set hot random(1, 2000000000)
\set cold random(1, 2000000000)
\set key random(1, 2000000000)
\set old random(1, 2000000000)
\set r random(1, 12)
BEGIN;
\if :r = 1
SET LOCAL session_replication_role = replica;
\endif
INSERT INTO plain SELECT :new + g, 'user' || (:new + g), g FROM generate_series(1, 4) g;
INSERT INTO plain SELECT nextval('ids'), 'seq' || :new || '-' || g, g + 30 FROM generate_series(1, 3) g;
UPDATE plain SET note = 'hot' || :hot
	WHERE ctid = ANY (ARRAY(SELECT ctid FROM plain WHERE id >= :hot ORDER BY id LIMIT 3));
UPDATE plain SET v = v + 1
	WHERE ctid = ANY (ARRAY(SELECT ctid FROM plain WHERE id >= :cold ORDER BY id LIMIT 3));
SAVEPOINT a;
UPDATE plain SET id = (id + :key) % 2000000000, email = 'moved' || :key
	WHERE ctid = ANY (ARRAY(SELECT ctid FROM plain WHERE id >= :key ORDER BY id LIMIT 3));
\if :r <= 4
ROLLBACK TO a;
\elif :r <= 6
SAVEPOINT b;
INSERT INTO plain SELECT :new + g, 'inner' || (:new + g), g FROM generate_series(5, 6) g;
RELEASE b;
ROLLBACK TO a;
\endif
DELETE FROM plain
	WHERE ctid = ANY (ARRAY(SELECT ctid FROM plain WHERE id >= :old ORDER BY id LIMIT 5));
DELETE FROM plain
	WHERE ctid = ANY (ARRAY(SELECT ctid FROM plain WHERE id >= 1000000000000 ORDER BY id LIMIT 3 OFFSET :r * 20));
-- rows of its own, in its own snapshot
SELECT oracle('plain', 'id BETWEEN :new AND :new + 6');
\if :r = 12
ROLLBACK;
\else
COMMIT;
\endif
\if :r = 7
COPY plain (id, email) FROM PROGRAM 'sh :rows :new 50 copied';
DELETE FROM plain WHERE ctid = ANY (ARRAY(SELECT ctid FROM plain WHERE id >= :old ORDER BY id LIMIT 60));
\endif
\sleep 5 ms
