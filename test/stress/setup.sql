/*
 * setup.sql: the relations of the stress test, their filters, and the oracle
 *
 *	plain		three filters, keys that move; HOT, cold and key updates
 *	uniq		a key of two columns, ON CONFLICT and MERGE, keys that a BEFORE
 *				trigger changes
 *	part		partitions of two levels, which number their columns differently
 *	doc			keys that are stored out of line
 *	bulk		many adds at the same moment
 *	load		COPY, mostly FREEZE, into a table truncated just before
 *	parent, child	keys that a referential action changes
 *	scratch		dropped, made and tracked again
 */
CREATE EXTENSION bloomguard;

-- what is not tracked yet is probed by triggers already
SET client_min_messages = error;

-- filters that the oracle asks, also by the name of a partition
CREATE TABLE guarded (relation text, key_columns text, root boolean DEFAULT true,
	PRIMARY KEY (relation, key_columns));
INSERT INTO guarded VALUES
	('plain', 'id'), ('plain', 'email'), ('plain', 'id, email'),
	('uniq', 'tenant, name'), ('uniq', 'name'),
	('part', 'id'), ('part', 'v'), ('part', 'id, k'),
	('doc', 'key'), ('bulk', 'id'), ('load', 'id'), ('load', 'label'),
	('parent', 'id'), ('child', 'owner'), ('scratch', 'id'), ('scratch', 'label');
INSERT INTO guarded VALUES ('part_1', 'id', false), ('part_2a', 'id, k', false);

-- what the driver counts; the server's own counters go with each crash
CREATE TABLE tally (absent bigint, maybe bigint, unguarded bigint, adds bigint, rotations bigint);
CREATE TABLE absent_keys (asked bigint, turned_away bigint);

CREATE FUNCTION false_negative(relation text, key_columns text, witness text)
RETURNS boolean VOLATILE PARALLEL RESTRICTED LANGUAGE plpgsql AS $$
BEGIN
	RAISE EXCEPTION 'FALSE NEGATIVE: relation %, key columns (%), %, isolation level %, snapshot %, client "%"',
		relation, key_columns, witness, current_setting('transaction_isolation'),
		pg_current_snapshot(), current_setting('application_name')
		USING ERRCODE = 'BG001';
END $$;

/*
 * The oracle: of the rows that meet the condition, is one called absent by a
 * filter of the relation?  Row and answer come from one snapshot.  An error if
 * so, else true, for use in WHERE and RETURNING.
 */
CREATE FUNCTION oracle(relation text, condition text DEFAULT 'true')
RETURNS boolean VOLATILE PARALLEL UNSAFE LANGUAGE plpgsql AS $$
DECLARE
	columns text;
	witness text;
BEGIN
	FOREACH columns IN ARRAY
		(SELECT array_agg(g.key_columns) FROM guarded g WHERE g.relation = oracle.relation)
	LOOP
		EXECUTE format($q$
			SELECT min(format('key (%%s) in %%s, ctid %%s, xmin %%s, xmax %%s',
				left(concat_ws(', ', %3$s), 200), tableoid::regclass, ctid, xmin, xmax))
			FROM %1$I
			WHERE (%4$s) AND NOT bloomguard_might_contain(%1$L, %2$L, %3$s) $q$,
			relation, columns, columns, condition) INTO witness;
		IF witness IS NOT NULL THEN
			PERFORM false_negative(relation, columns, witness);
		END IF;
	END LOOP;
	RETURN true;
END $$;

/* one relation of those eleven, by number, or all of them */
CREATE FUNCTION oracle_of(number int DEFAULT NULL)
RETURNS boolean VOLATILE PARALLEL UNSAFE LANGUAGE sql AS $$
	SELECT bool_and(oracle(relation)) FROM (
		SELECT DISTINCT relation FROM guarded ORDER BY relation
		LIMIT CASE WHEN number IS NOT NULL THEN 1 END OFFSET coalesce(number, 0)) s
$$;

/* user's triggers: probe the row that was just written, before and after our trigger */
CREATE FUNCTION probe_new() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	PERFORM oracle(TG_ARGV[0], format('%s = %L', TG_ARGV[1], to_jsonb(NEW)->>TG_ARGV[1]));
	RETURN NULL;
END $$;

/* keys that are changed by a BEFORE trigger with a late name */
CREATE FUNCTION lower_name() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	NEW.name := lower(NEW.name);
	RETURN NEW;
END $$;

CREATE SEQUENCE ids START 1000000000000;

CREATE TABLE plain (id bigint, email text, v int, note text) WITH (fillfactor = 70);
INSERT INTO plain SELECT g * 240000, 'user' || g, g % 100 FROM generate_series(1, 8000) g;
CREATE INDEX plain_id ON plain (id);
CREATE INDEX plain_v ON plain (v);
CREATE TRIGGER aaa_probe AFTER INSERT OR UPDATE ON plain
	FOR EACH ROW WHEN (NEW.v % 10 = 3) EXECUTE FUNCTION probe_new('plain', 'id');
CREATE TRIGGER zzz_probe AFTER INSERT OR UPDATE ON plain
	FOR EACH ROW WHEN (NEW.v % 10 = 4) EXECUTE FUNCTION probe_new('plain', 'id');

CREATE TABLE uniq (tenant int, name text, n int, PRIMARY KEY (tenant, name));
INSERT INTO uniq SELECT g % 20, 'item' || g / 20, g FROM generate_series(1, 4000) g;
CREATE TRIGGER zzz_lower BEFORE INSERT OR UPDATE ON uniq
	FOR EACH ROW EXECUTE FUNCTION lower_name();
CREATE TRIGGER aaa_probe AFTER INSERT OR UPDATE ON uniq
	FOR EACH ROW WHEN (NEW.n % 20 = 3) EXECUTE FUNCTION probe_new('uniq', 'name');

CREATE TABLE part (id int, k int, v text) PARTITION BY RANGE (id);
CREATE TABLE part_1 (gone int, v text, k int, id int);
ALTER TABLE part_1 DROP COLUMN gone;
ALTER TABLE part ATTACH PARTITION part_1 FOR VALUES FROM (0) TO (10000);
CREATE TABLE part_2 PARTITION OF part FOR VALUES FROM (10000) TO (20000) PARTITION BY LIST (k);
CREATE TABLE part_2a PARTITION OF part_2 FOR VALUES IN (0, 1, 2, 3, 4);
CREATE TABLE part_2b PARTITION OF part_2 DEFAULT;
CREATE TABLE part_3 PARTITION OF part FOR VALUES FROM (20000) TO (30000);
INSERT INTO part SELECT g, g % 10, 'v' || g FROM generate_series(1, 29999, 4) g;
CREATE INDEX ON part (id);
CREATE TRIGGER aaa_probe AFTER INSERT OR UPDATE ON part
	FOR EACH ROW WHEN (NEW.id % 20 = 3) EXECUTE FUNCTION probe_new('part', 'id');

CREATE TABLE doc (key text, n int);
ALTER TABLE doc ALTER key SET STORAGE EXTERNAL;
CREATE INDEX doc_n ON doc (n);
INSERT INTO doc SELECT repeat(md5(g::text), 80), g FROM generate_series(1, 400) g;

CREATE TABLE bulk (id bigint);

CREATE TABLE load (id bigint, label text);
INSERT INTO load SELECT g, 'label' || g FROM generate_series(1, 1000) g;

CREATE TABLE parent (id int PRIMARY KEY, n int);
CREATE TABLE child (owner int REFERENCES parent ON UPDATE CASCADE ON DELETE CASCADE, n int);
CREATE INDEX child_owner ON child (owner);
CREATE TRIGGER aaa_probe AFTER INSERT OR UPDATE ON child
	FOR EACH ROW WHEN (NEW.n % 10 = 3) EXECUTE FUNCTION probe_new('child', 'owner');
INSERT INTO parent SELECT g, g FROM generate_series(1, 1000) g;
INSERT INTO child SELECT g % 1000 + 1, g FROM generate_series(1, 3000) g;

CREATE TABLE scratch (id bigint, label text);

SELECT bloomguard_track(relation, key_columns) FROM guarded WHERE root;
