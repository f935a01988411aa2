-- read_export.sql: exports its snapshot for read_import.sql, and reads it at the end
\set n random(0, 10)
\set ms random(200, 1500)
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT pg_export_snapshot();
\sleep :ms ms
SELECT oracle_of(:n);
COMMIT;
