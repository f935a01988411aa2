-- write_other.sql: keys stored out of line, referential actions, NULLs, COPY FREEZE
\set a random(1, 1000000)
\set n random(1, 1000)
\set to random(1001, 2000)
\set r random(1, 10)
\if :r <= 3
BEGIN;
INSERT INTO doc SELECT repeat(md5(:a::text || g), 80), :n + g FROM generate_series(1, 2) g;
-- the stored key is taken along, or replaced
UPDATE doc SET n = n + 1 WHERE n BETWEEN :n AND :n + 5;
UPDATE doc SET key = repeat(md5(n::text || :a), 100) WHERE n BETWEEN :n AND :n + 1;
DELETE FROM doc WHERE n BETWEEN :a % 1000 AND :a % 1000 + 1;
SELECT oracle('doc', 'n BETWEEN :n AND :n + 6');
\if :r = 3
ROLLBACK;
\else
COMMIT;
\endif
\elif :r <= 5
-- the child's keys follow
BEGIN;
INSERT INTO parent VALUES (:n, :n) ON CONFLICT (id) DO NOTHING;
INSERT INTO child VALUES (:n, :a % 100), (NULL, 3);
UPDATE parent SET id = :to WHERE id = :n AND NOT EXISTS (SELECT FROM parent WHERE id = :to);
SELECT oracle('child', 'owner = :to');
COMMIT;
DELETE FROM parent WHERE id BETWEEN :a % 1990 AND :a % 1990 + 3;
\elif :r <= 8
BEGIN;
\if :r = 8
TRUNCATE load, scratch;
\else
TRUNCATE load;
\endif
COPY load FROM PROGRAM 'sh :rows :a 500 frozen' WITH (FREEZE);
INSERT INTO load SELECT NULL, 'null' || g FROM generate_series(1, 50) g;
SELECT oracle('load');
\if :r = 7
ROLLBACK;
\else
COMMIT;
\endif
\elif :r = 9
COPY load FROM PROGRAM 'sh :rows :a 200 copied';
DELETE FROM load WHERE id % 3 = :a % 3;
\else
UPDATE load SET label = NULL WHERE id % 10 = :a % 10;
UPDATE load SET label = 'back' || :a WHERE label IS NULL;
\endif
\sleep 10 ms
