-- read_cursor.sql: cursors that are opened before and fetched later
\set r random(1, 6)
\set ms random(10, 300)
BEGIN;
\if :r = 1
DECLARE c CURSOR FOR SELECT false_negative('plain', 'email', format('key (%s)', email))
	FROM plain WHERE NOT bloomguard_might_contain('plain', 'email', email);
\elif :r = 2
DECLARE c CURSOR FOR SELECT false_negative('part', 'id, k', format('key (%s, %s)', id, k))
	FROM part WHERE NOT bloomguard_might_contain('part', 'id, k', id, k);
\elif :r = 3
DECLARE c CURSOR FOR SELECT false_negative('doc', 'key', format('key (%s)', left(key, 50)))
	FROM doc WHERE NOT bloomguard_might_contain('doc', key);
\elif :r = 4
DECLARE c CURSOR FOR SELECT false_negative('uniq', 'tenant, name', format('key (%s, %s)', tenant, name))
	FROM uniq WHERE NOT bloomguard_might_contain('uniq', 'tenant, name', tenant, name);
\elif :r = 5
DECLARE h CURSOR WITH HOLD FOR SELECT false_negative('child', 'owner', format('key (%s)', owner))
	FROM child WHERE NOT bloomguard_might_contain('child', owner);
\else
-- each row fetched, and asked for, later than the one before
DECLARE c CURSOR FOR SELECT id, CASE WHEN NOT bloomguard_might_contain('plain', 'id, email', id, email)
	THEN false_negative('plain', 'id, email', format('key (%s, %s)', id, email)) END FROM plain;
FETCH 1000 FROM c;
\sleep 30 ms
FETCH 1000 FROM c;
\endif
\sleep :ms ms
\if :r = 5
COMMIT;
FETCH ALL FROM h;
CLOSE h;
\else
FETCH ALL FROM c;
COMMIT;
\endif
