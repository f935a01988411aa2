-- write_part.sql: rows that move between partitions, writes to a partition directly
\set a random(0, 29999)
\set b random(0, 29999)
\set c random(1, 1000000000)
\set k random(0, 9)
\set r random(1, 6)
BEGIN;
INSERT INTO part VALUES (:a, :k, 'new' || :c), (:b, :k, NULL), (:a, NULL, 'null' || :c);
UPDATE part SET id = :b, k = :k WHERE id BETWEEN :a AND :a + 3;
UPDATE part SET k = (k + 5) % 10 WHERE id BETWEEN :b AND :b + 5;
INSERT INTO part_2a SELECT 10000 + :c % 10000, :k % 5, 'leaf' || :c;
SAVEPOINT a;
UPDATE part SET v = 'moved' || :c, id = (id + 10000) % 30000 WHERE id BETWEEN :c % 30000 AND :c % 30000 + 5;
\if :r = 1
ROLLBACK TO a;
\endif
DELETE FROM part WHERE id BETWEEN :k * 3000 + :c % 3000 AND :k * 3000 + :c % 3000 + 12;
SELECT oracle('part', 'id IN (:a, :b)');
\if :r = 2
ROLLBACK;
\else
COMMIT;
\endif
\sleep 5 ms
