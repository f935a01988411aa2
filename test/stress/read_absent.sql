-- read_absent.sql: keys that no row has ever had; most must be turned away
\set a random(1, 1000000)
INSERT INTO absent_keys
	SELECT count(*), count(*) FILTER (WHERE NOT absent) FROM (
	SELECT bloomguard_might_contain('plain', 'id', -:a - g) FROM generate_series(1, 100) g UNION ALL
	SELECT bloomguard_might_contain('uniq', 'tenant, name', -:a, 'none' || g) FROM generate_series(1, 100) g UNION ALL
	SELECT bloomguard_might_contain('part', 'id, k', -:a - g, 1) FROM generate_series(1, 100) g UNION ALL
	SELECT bloomguard_might_contain('doc', 'none' || :a + g) FROM generate_series(1, 100) g) s (absent);
\sleep 100 ms
