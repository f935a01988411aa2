-- write_bulk.sql: two sessions that add to the same words as fast as they can
\set a random(1, 1000000000)
INSERT INTO bulk SELECT :a + g FROM generate_series(1, 4000) g;
SELECT oracle('bulk');
DELETE FROM bulk WHERE id BETWEEN :a AND :a + 4000;
\sleep 100 ms
