-- read_import.sql: reads a snapshot that another session has exported
\set n random(0, 10)
\set ms random(10, 400)
SELECT coalesce(min(f), 'none') AS snapshot, count(*) AS found FROM pg_ls_dir('pg_snapshots') f
	WHERE f NOT LIKE '%.tmp' \gset
\if :found
BEGIN ISOLATION LEVEL REPEATABLE READ;
SET TRANSACTION SNAPSHOT ':snapshot';
\sleep :ms ms
SELECT oracle_of(:n);
COMMIT;
\else
\sleep 20 ms
\endif
