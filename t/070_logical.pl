# 070_logical.pl: rows that come by logical replication
#
# Initial sync and apply fire only triggers that are ENABLE ALWAYS or REPLICA, and
# write without the executor hooks that know of statements in flight.  So keys
# must get in, and whatever a trigger asks there gets maybe: in the worker itself
# and in a parallel query that it starts [B2].

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use BloomguardTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $publisher = guard_node('publisher', init => { allows_streaming => 'logical' });
my $subscriber = guard_node('subscriber', init => { allows_streaming => 'logical' });

for my $node ($publisher, $subscriber)
{
	$node->safe_psql('postgres', <<'SQL');
CREATE TABLE t (id bigint PRIMARY KEY, note text);
CREATE TABLE parts (id bigint PRIMARY KEY, note text) PARTITION BY RANGE (id);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (1000);
CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM (1000) TO (10000);
SELECT bloomguard_track('t', 'id', 1e-9), bloomguard_track('parts', 'id', 1e-9);
SQL
}
$publisher->safe_psql('postgres', <<'SQL');
INSERT INTO t SELECT i, 'sync' FROM generate_series(1, 1000) i;
INSERT INTO parts SELECT i, 'sync' FROM generate_series(1, 2000) i;
CREATE PUBLICATION pub FOR TABLE t, parts;
SQL

# A trigger that asks about the very row, and about one that is not there.  Its
# name sorts before ours, so ours has not fired when it asks.
$subscriber->safe_psql('postgres', <<'SQL');
CREATE TABLE asked (id bigint, own text, none text, workers int, parallel text);
CREATE TABLE many AS SELECT i AS id FROM generate_series(1, 3000) i;
ALTER TABLE many SET (parallel_workers = 2);
ANALYZE many;
CREATE FUNCTION pid() RETURNS int LANGUAGE plpgsql PARALLEL SAFE
	AS 'BEGIN RETURN pg_backend_pid(); END';
CREATE FUNCTION ask() RETURNS trigger LANGUAGE plpgsql
	SET search_path = public
	SET parallel_setup_cost = 0 SET parallel_tuple_cost = 0
	SET min_parallel_table_scan_size = 0 SET parallel_leader_participation = off
AS $$
DECLARE
	n int;
	answers text;
BEGIN
	-- EXECUTE: a plain SELECT INTO never runs in parallel
	EXECUTE $q$
		SELECT count(*) FILTER (WHERE p <> pg_backend_pid()), string_agg(DISTINCT a, ',')
		FROM (SELECT pid() AS p, bloomguard_check('t', $1) AS a FROM many OFFSET 0) m
		$q$ INTO n, answers USING NEW.id;
	INSERT INTO asked VALUES (NEW.id, bloomguard_check('t', NEW.id),
		bloomguard_check('t', -NEW.id), n, answers);
	RETURN NULL;
END $$;
CREATE TRIGGER aaa AFTER INSERT OR UPDATE ON t FOR EACH ROW EXECUTE FUNCTION ask();
SQL
sound($subscriber, 'before', rows => 0);

my $connstr = $publisher->connstr . ' dbname=postgres';
$subscriber->safe_psql('postgres',
	"CREATE SUBSCRIPTION sub CONNECTION '$connstr' PUBLICATION pub");
$subscriber->wait_for_subscription_sync($publisher, 'sub');
sound($subscriber, 'initial sync', rows => 1000);
sound($subscriber, 'initial sync, partitioned', rel => 'parts', rows => 2000);
is($subscriber->safe_psql('postgres', 'SELECT count(*) FROM asked'), '0',
	'an ordinary trigger is not fired there');

# apply
$subscriber->safe_psql('postgres', 'ALTER TABLE t ENABLE ALWAYS TRIGGER aaa');
sound($subscriber, 'after ALTER TABLE', rows => 1000);
my $generation = $subscriber->safe_psql('postgres',
	"SELECT generation FROM bloomguard_filters WHERE relation = 't'::regclass");
$publisher->safe_psql('postgres', <<'SQL');
INSERT INTO t SELECT i, 'apply' FROM generate_series(1001, 1010) i;
UPDATE t SET id = id + 10000 WHERE id <= 5;
UPDATE t SET note = 'same key' WHERE id = 6;
DELETE FROM t WHERE id = 7;
UPDATE parts SET id = id + 2500 WHERE id <= 5;
INSERT INTO parts SELECT i, 'apply' FROM generate_series(9001, 9010) i;
SQL
$publisher->wait_for_catchup('sub');
is( $subscriber->safe_psql('postgres',
		"SELECT count(*) FROM t WHERE note = 'apply' OR id > 10000"),
	'15', 'rows were applied');
sound($subscriber, 'apply', rows => 1009);
sound($subscriber, 'apply, partitioned', rel => 'parts', rows => 2010);
is( $subscriber->safe_psql('postgres',
		"SELECT generation FROM bloomguard_filters WHERE relation = 't'::regclass"),
	$generation, 'by the trigger: nothing was rebuilt');
is(answer($subscriber, 'postgres', 't', $_), 'maybe', "applied: $_")
  for (1001, 1010, 10001, 10005);
is(answer($subscriber, 'postgres', 'parts', $_), 'maybe', "applied: $_") for (2501, 9010);

is($subscriber->safe_psql('postgres', 'SELECT count(*) FROM asked'), '16',
	'the trigger has asked');
is( $subscriber->safe_psql('postgres', 'SELECT DISTINCT own, none, parallel FROM asked'),
	join('|', ('unguarded: modifying statement in flight') x 3),
	'and always got maybe');
is($subscriber->safe_psql('postgres', 'SELECT max(workers) > 0 FROM asked'), 't',
	'also in parallel workers');

# the same trigger in an ordinary session, which knows its statements
$subscriber->safe_psql('postgres', <<'SQL');
TRUNCATE asked;
INSERT INTO t VALUES (20001, 'local');
SQL
is( $subscriber->safe_psql('postgres', 'SELECT DISTINCT own, none, parallel FROM asked'),
	join('|', ('unguarded: modifying statement in flight') x 3),
	'in an ordinary session: maybe');
sound($subscriber, 'in the end', rows => 1010);
sound($publisher, 'publisher', rows => 1009);

$subscriber->stop;
$publisher->stop;
done_testing();
