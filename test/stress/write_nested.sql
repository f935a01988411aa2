-- write_nested.sql: probes inside the statement that writes the rows
\set a random(1, 2000000000)
\set b random(0, 29000)
\set r random(1, 7)
BEGIN;
\if :r = 2 or :r = 4
-- workers ask their leader what is in flight
SET LOCAL :parallel = on;
\endif
\if :r <= 2
INSERT INTO plain SELECT :a + g, 'nested' || (:a + g), g FROM generate_series(1, 12) g
	WHERE oracle('plain', 'id BETWEEN :a AND :a + 12');
\elif :r = 3
INSERT INTO plain SELECT :a + g, 'returned' || (:a + g), g FROM generate_series(1, 5) g
	RETURNING oracle('plain', 'id = ' || id);
UPDATE plain SET id = id + 1 WHERE id BETWEEN :a + 1 AND :a + 5
	RETURNING oracle('plain', 'id BETWEEN :a AND :a + 6');
\elif :r = 4
WITH w AS (INSERT INTO plain SELECT :a + g, 'cte' || (:a + g), g FROM generate_series(1, 5) g RETURNING id)
	SELECT count(*) FROM w WHERE oracle('plain', 'id = ' || id);
\elif :r = 5
INSERT INTO part SELECT :b + g, g, 'nested' || :a FROM generate_series(1, 10) g
	WHERE oracle('part', 'id BETWEEN :b AND :b + 10');
UPDATE part SET id = (id + 10000) % 30000 WHERE id BETWEEN :b AND :b + 3 AND oracle('part', 'id = ' || id)
	RETURNING oracle('part', 'id = ' || id);
\elif :r = 6
-- a writing function inside a writing statement, and errors caught on the way
DO $$
BEGIN
	FOR i IN 1..5 LOOP
		BEGIN
			INSERT INTO plain SELECT :a + i, 'caught' || i, i WHERE oracle('plain', 'id = :a');
			PERFORM oracle('plain', 'id BETWEEN :a AND :a + 5');
			IF i = 3 THEN
				PERFORM 1 / 0;
			END IF;
		EXCEPTION WHEN division_by_zero THEN
			PERFORM oracle('plain', 'id BETWEEN :a AND :a + 5');
		END;
	END LOOP;
END $$;
\else
-- the statement's own snapshot is old, its functions' are not
DECLARE c CURSOR FOR SELECT oracle('plain', 'id BETWEEN :a AND :a + 9') FROM generate_series(1, 3);
FETCH 1 FROM c;
INSERT INTO plain SELECT :a + g, 'cursor' || (:a + g), g FROM generate_series(1, 5) g;
FETCH ALL FROM c;
\endif
DELETE FROM plain WHERE id BETWEEN :a + 5 AND :a + 10 OR email LIKE 'returned%';
COMMIT;
\sleep 10 ms
