-- resolve.sql: ends prepared transactions of other sessions; those that hold a
-- table's lock do so for as long as this waits
\set r random(1, 4)
\set n random(1, 1000000)
SELECT coalesce(min(gid), 'none') AS gid, count(*) AS found FROM (
	SELECT gid FROM pg_prepared_xacts
	WHERE prepared < now() - CASE WHEN gid LIKE 'ddl%' THEN interval '0.2 s' ELSE interval '0.3 s' END
	ORDER BY gid NOT LIKE 'ddl%', md5(gid || :n) LIMIT 1) s \gset
\if :found
\if :r = 1
ROLLBACK PREPARED ':gid';
\else
COMMIT PREPARED ':gid';
\endif
\endif
\sleep 50 ms
