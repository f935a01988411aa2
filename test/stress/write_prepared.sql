-- write_prepared.sql: two-phase commit; every third is left to others, also over restarts
\set a random(1, 2000000000)
\set b random(0, 29999)
\set k random(0, 9)
\set r random(1, 6)
BEGIN;
INSERT INTO plain SELECT :a + g, 'prepared' || (:a + g), g FROM generate_series(1, 5) g;
UPDATE part SET id = (id + 10000) % 30000, k = :k WHERE id = :b;
INSERT INTO part VALUES (:b, :k, 'prepared' || :a);
SAVEPOINT a;
INSERT INTO doc VALUES (repeat(md5(:a::text), 80), :b % 1000);
UPDATE plain SET email = 'prepared' || :a
	WHERE ctid = ANY (ARRAY(SELECT ctid FROM plain WHERE id >= :a ORDER BY id LIMIT 1));
\if :r = 1
ROLLBACK TO a;
\endif
SELECT oracle('plain', 'id BETWEEN :a AND :a + 5');
PREPARE TRANSACTION 'write :a';
\if :r <= 3
COMMIT PREPARED 'write :a';
\elif :r = 4
ROLLBACK PREPARED 'write :a';
\endif
\sleep 50 ms
