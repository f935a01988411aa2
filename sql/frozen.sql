--
-- Rows of COPY ... FREEZE are visible to every snapshot, that of the COPY itself
-- included, before their keys are added [B24, A1].
--
CREATE TABLE frozen (k int);
INSERT INTO frozen VALUES (-1);
SELECT bloomguard_track('frozen', 'k', 1e-9);
SELECT bloomguard_wait_ready('frozen');
-- STABLE, so that it sees what the statement sees
CREATE FUNCTION frozen_look(x int) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
DECLARE
	visible bigint := count(*) FROM frozen WHERE k = x;
BEGIN
	IF visible > 0 THEN
		RAISE NOTICE 'visible: %, might be there: %', visible, bloomguard_might_contain('frozen', x);
	END IF;
	RETURN true;
END $$;
BEGIN;
TRUNCATE frozen;
-- more than what COPY keeps back before it writes, then one of them again
COPY frozen FROM PROGRAM 'seq 1 1100; echo 1' WITH (FREEZE) WHERE frozen_look(k);
COMMIT;
SELECT bloomguard_wait_ready('frozen'), bloomguard_check('frozen', -2);
SELECT count(*), count(*) FILTER (WHERE NOT bloomguard_might_contain('frozen', k)) AS called_absent FROM frozen;
DROP FUNCTION frozen_look;
DROP TABLE frozen;
