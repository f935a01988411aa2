# 120_workers.pl: workers are a scarce thing
#
# When the server has no background worker to spare, builds wait, and nothing
# else does; it is logged once.  bloomguard.max_workers and bloomguard.naptime
# are followed when they are changed.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use BloomguardTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

# the logical replication launcher, our launcher, and one more
my $node = guard_node('workers', conf => "max_worker_processes = 3\n");

# something that lasts, and may run in a parallel worker
$node->safe_psql('postgres', <<'SQL');
CREATE FUNCTION hold_on() RETURNS void LANGUAGE plpgsql PARALLEL SAFE
	AS 'BEGIN LOOP END LOOP; END';
SQL

# a parallel worker takes the last place, for as long as we want
sub take_last_place
{
	my $session = $node->background_psql('postgres', on_error_stop => 0);

	$session->query(<<'SQL');
SELECT set_config(name, 'on', false) FROM pg_settings
WHERE name IN ('force_parallel_mode', 'debug_parallel_query');
SQL
	$session->query_until(qr/sleeping/, <<'SQL');
\echo sleeping
SELECT hold_on();
\echo awake
SQL
	$node->poll_query_until('postgres',
		"SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'parallel worker' AND query ~ 'hold_on'"
	) or die 'no parallel worker';
	return $session;
}

sub give_back
{
	my ($session) = @_;

	$node->safe_psql('postgres',
		"SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE backend_type = 'client backend' AND query ~ 'hold_on' AND pid <> pg_backend_pid()"
	);
	$session->query_until(qr/awake/, '');
	$session->quit;
	return;
}

# the workers of the extension's creation have left
$node->poll_query_until('postgres',
	"SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type = 'bloomguard worker'");
my $session = take_last_place();
my $offset = -s $node->logfile;
make_table($node, 'postgres', 't', 100);
my $complaint = qr/could not start a bloomguard worker: out of background worker slots/;
$node->wait_for_log($complaint, $offset);
pass('the log says that no worker could be started');
like(slurp_file($node->logfile, $offset), qr/HINT:  Raise "max_worker_processes"/,
	'and what to do');
$node->safe_psql('postgres', "INSERT INTO t VALUES (101, 'x')");
like(answer($node, 'postgres', 't', $_), qr/^unguarded: /, "meanwhile $_: maybe") for (1, 101, -1);
is($node->safe_psql('postgres', "SELECT bloomguard_wait_ready('t', '0')"), 'f', 'it is not ready');
# several tries by the launcher, and several requests
pass_time($node, 2.5);
$node->safe_psql('postgres', 'CREATE TABLE u (id bigint)');
$node->safe_psql('postgres', "SELECT bloomguard_track('u', 'id', 1e-9)");
pass_time($node, 1.5);
is(log_count($node, $complaint, $offset), 1, 'it was logged once');
give_back($session);
sound($node, 'place given back', rows => 101);
sound($node, 'place given back, u', rel => 'u', rows => 0);

# a filter that serves is not touched by this
$session = take_last_place();
$offset = -s $node->logfile;
$node->safe_psql('postgres', "SELECT bloomguard_rebuild('t')");
$node->wait_for_log($complaint, $offset);
pass('a second shortage is logged again');
$node->safe_psql('postgres', "INSERT INTO t VALUES (102, 'x')");
sound($node, 'no worker for a rotation', rows => 102);
is(answer($node, 'postgres', 't', 102), 'maybe', 'a key added meanwhile');
give_back($session);
filter_is($node, 'postgres', 't', 'generation = 2', 'rotated when there was a worker');
sound($node, 'rotated', rows => 102);

# max_workers: one at a time, then two
$node->append_conf('postgresql.conf', <<'CONF');
max_worker_processes = 8
bloomguard.max_workers = 1
CONF
$node->restart;
sound($node, 'restarted', rows => 102);
slow_builds($node);
for my $db ('one', 'two')
{
	$node->safe_psql('postgres', "CREATE DATABASE $db");
	$node->safe_psql($db, 'CREATE EXTENSION bloomguard');
	make_table($node, $db, 't', 2000);
}
ok(build_runs($node), 'one build');
pass_time($node, 2);
is( $node->safe_psql('postgres',
		"SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'bloomguard worker'"),
	'1', 'only one worker');
$node->append_conf('postgresql.conf', "bloomguard.max_workers = 3\n");
$node->reload;
ok( $node->poll_query_until('postgres',
		"SELECT count(DISTINCT datname) = 2 FROM bloomguard_progress WHERE phase = 'scanning table'"),
	'max_workers = 3: both databases at a time');
make_table($node, 'one', 'u', 2000);
ok( $node->poll_query_until('postgres',
		"SELECT count(*) = 3 FROM bloomguard_progress WHERE phase = 'scanning table'"),
	'and two builds in one of them');
is( $node->safe_psql('one',
		"SELECT count(DISTINCT relation) FROM bloomguard_progress WHERE datname = 'one'"),
	'2', 'each its own');
end_builds($node);
sound($node, 'one', db => 'one', rows => 2000);
sound($node, 'one, u', db => 'one', rel => 'u', rows => 2000);
sound($node, 'two', db => 'two', rows => 2000);

# naptime: a new database is noticed when the launcher looks around
$node->append_conf('postgresql.conf', "bloomguard.naptime = '1 d'\n");
$node->reload;
$node->safe_psql('postgres', 'CREATE DATABASE copy TEMPLATE one');
# asked for by SQL: at once, however long the nap
$node->safe_psql('one', "SELECT bloomguard_rebuild('t')");
filter_is($node, 'one', 't', 'generation >= 2', 'a request wakes the launcher');
$node->append_conf('postgresql.conf', "bloomguard.naptime = '1 s'\n");
$node->reload;
sound($node, 'copy', db => 'copy', rows => 2000);
sound($node, 'copy, u', db => 'copy', rel => 'u', rows => 2000);

$node->stop;
done_testing();
