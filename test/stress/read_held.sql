-- read_held.sql: one snapshot, asked again after writes and rotations.  It locks
-- nothing for long, so that DDL comes in between
\set n random(0, 10)
\set m random(0, 10)
\set r random(1, 8)
\set long random(10, 2000)
\set short random(10, 250)
\if :r = 1
BEGIN ISOLATION LEVEL SERIALIZABLE;
\else
BEGIN ISOLATION LEVEL REPEATABLE READ;
\endif
\if :r <= 3
-- the filter first, the table later: keys that are about to be inserted
SELECT coalesce(array_agg(k), '{}') AS absent
	FROM ids, generate_series(last_value - 50, last_value + 150) k
	WHERE NOT bloomguard_might_contain('plain', 'id', k) \gset
\else
SELECT 1;
\endif
\sleep :long ms
SELECT oracle_of(:n);
\if :r <= 3
SELECT false_negative('plain', 'id', format('key (%s), asked before the table was read', id))
	FROM plain WHERE id = ANY (':absent');
\endif
\sleep :short ms
SELECT oracle_of(:n);
SELECT oracle_of(:m);
COMMIT;
