-- write_uniq.sql: ON CONFLICT, MERGE, updates of a key of two columns
\set tenant random(0, 19)
\set item random(1, 300)
\set c random(1, 1000000000)
\set r random(1, 8)
\if :r <= 2
INSERT INTO uniq SELECT :tenant, 'Item' || (:item + g), g FROM generate_series(1, 10) g
	ON CONFLICT (tenant, name) DO NOTHING;
\elif :r <= 4
-- the key moves on conflict
INSERT INTO uniq AS u SELECT :tenant, 'item' || (:item + g), g FROM generate_series(1, 5) g
	ON CONFLICT (tenant, name) DO UPDATE SET n = u.n + 1, name = 'Moved' || :c || u.name;
\elif :r <= 6
MERGE INTO uniq u
	USING (SELECT :tenant AS tenant, 'item' || (:item + g) AS name, g FROM generate_series(1, 8) g) s
	ON u.tenant = s.tenant AND u.name = s.name
	WHEN MATCHED AND s.g % 3 = 0 THEN DELETE
	WHEN MATCHED AND s.g % 3 = 1 THEN UPDATE SET name = 'Merged' || :c || u.name, n = u.n + 1
	WHEN MATCHED THEN UPDATE SET n = u.n + 1
	WHEN NOT MATCHED THEN INSERT VALUES (s.tenant, s.name, s.g);
\elif :r = 7
BEGIN;
DELETE FROM uniq WHERE tenant = :tenant AND name LIKE 'm%' AND (n + :c) % 2 = 0;
SELECT oracle('uniq', 'tenant = :tenant');
COMMIT;
\else
BEGIN;
UPDATE uniq SET name = 'Renamed' || :c || name WHERE tenant = :tenant AND name = 'item' || :item;
SELECT oracle('uniq', 'tenant = :tenant');
ROLLBACK;
\endif
\sleep 5 ms
