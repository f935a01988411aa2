-- read_parallel.sql: plain statements, as their plan is: in parallel workers, by index
\set r random(1, 6)
\set a random(1, 2000000000)
\if :r = 1
SELECT false_negative('plain', 'id', format('key (%s)', id))
	FROM plain WHERE NOT bloomguard_might_contain('plain', 'id', id);
\elif :r = 2
SELECT false_negative('part', 'v', format('key (%s)', v))
	FROM part WHERE NOT bloomguard_might_contain('part', 'v', v);
\elif :r = 3
SELECT false_negative('uniq', 'name', format('key (%s)', name))
	FROM uniq WHERE NOT bloomguard_might_contain('uniq', 'name', name);
\elif :r = 4
SELECT false_negative('part', 'id', format('key (%s)', id))
	FROM part_1 WHERE NOT bloomguard_might_contain('part_1', 'id', id);
\elif :r = 5
SELECT false_negative('plain', 'id', format('key (%s)', id))
	FROM plain WHERE id BETWEEN :a AND :a + 50000000 AND NOT bloomguard_might_contain('plain', 'id', id);
\else
SELECT false_negative('plain', 'id', format('key (%s)', p.id))
	FROM plain p JOIN part q ON p.v = q.k AND q.id % 100 = 1
	WHERE NOT bloomguard_might_contain('plain', 'id', p.id) OR NOT bloomguard_might_contain('part', 'id', q.id);
\endif
\sleep 20 ms
