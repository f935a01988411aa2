# 030_crash.pl: processes that are killed or told to end
#
# kill -9 of a backend, of a worker in the middle of a build and of the launcher
# restart the server; the filters come back [C18].  pg_terminate_backend() of
# worker and launcher does not: the build is tried again, the launcher returns.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use BloomguardTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = guard_node('crash', conf => "restart_after_crash = on\n");
make_table($node, 'postgres', 't', 2000);
my $rows = 2000;
sound($node, 'at first', rows => $rows);

sub pid_of
{
	my ($type) = @_;

	$node->poll_query_until('postgres',
		"SELECT count(*) > 0 FROM pg_stat_activity WHERE backend_type = '$type'")
	  or die "no $type";
	return $node->safe_psql('postgres',
		"SELECT pid FROM pg_stat_activity WHERE backend_type = '$type' ORDER BY pid LIMIT 1");
}

# kill -9, see the server restart; committed and uncommitted rows before it
sub crash
{
	my ($label, $pid) = @_;
	my $offset = -s $node->logfile;

	$node->safe_psql('postgres', 'INSERT INTO t VALUES (' . ++$rows . ", 'x')");
	kill('KILL', $pid) == 1 or die "cannot kill $pid";
	$node->wait_for_log(qr/all server processes terminated; reinitializing/, $offset);
	ok($node->poll_query_until('postgres', 'SELECT true'), "$label: the server recovered");
	is( $node->safe_psql(
			'postgres',
			"SELECT count(*) FROM t WHERE NOT bloomguard_might_contain('t', id)"),
		'0',
		"$label: at once, no row is absent");
	return;
}

# a backend, with an open transaction whose keys are in the filter
my $session = $node->background_psql('postgres', on_error_stop => 0);
$session->query("BEGIN");
$session->query("INSERT INTO t SELECT i, 'x' FROM generate_series(100001, 100100) i");
my $pid = $session->query('SELECT pg_backend_pid()');
is(answer($node, 'postgres', 't', 100001), 'maybe', 'a key of an open transaction');
crash('backend', $pid);
sound($node, 'backend', rows => $rows, absent => 100001);
$session->{run}->finish;

# a worker that builds
slow_builds($node);
$node->safe_psql('postgres', "SELECT bloomguard_rebuild('t')");
ok(build_runs($node), 'a rotation goes on');
$node->safe_psql('postgres', 'INSERT INTO t VALUES (' . ++$rows . ", 'x')");
crash('worker, rotation', pid_of('bloomguard worker'));
ok(build_runs($node), 'another build goes on');
crash('worker, build', pid_of('bloomguard worker'));
ok(build_runs($node), 'and another');
end_builds($node);
sound($node, 'worker', rows => $rows);
is( $node->safe_psql('postgres', 'SELECT used_bytes = (SELECT bytes FROM bloomguard_filters) FROM bloomguard_memory'),
	't', 'nothing of the killed builds is left in the arena');

# the launcher
crash('launcher', pid_of('bloomguard launcher'));
sound($node, 'launcher', rows => $rows);

# A worker told to end in the middle of a rotation: the old generation serves on.
slow_builds($node);
my $generation = $node->safe_psql('postgres', 'SELECT generation FROM bloomguard_filters');
$node->safe_psql('postgres', "SELECT bloomguard_rebuild('t')");
ok(build_runs($node), 'a rotation goes on');
$pid = pid_of('bloomguard worker');
my $key = ++$rows;
$node->safe_psql('postgres', "INSERT INTO t VALUES ($key, 'x')");
$node->safe_psql('postgres', "SELECT pg_terminate_backend($pid)");
$node->poll_query_until('postgres',
	"SELECT count(*) = 1 FROM bloomguard_progress WHERE pid <> $pid AND phase = 'scanning table'")
  or die 'not tried again';
pass('a terminated rotation is tried again by another worker');
is(answer($node, 'postgres', 't', $key), 'maybe', 'a key added meanwhile');
is(answer($node, 'postgres', 't', -1), 'absent', 'the old generation serves');
end_builds($node);
filter_is($node, 'postgres', 't', "generation > $generation", 'rotated in the end');
sound($node, 'terminated rotation', rows => $rows);
is( $node->safe_psql('postgres', 'SELECT used_bytes = (SELECT bytes FROM bloomguard_filters) FROM bloomguard_memory'),
	't', 'nothing of the terminated builds is left in the arena');

# A worker told to end in the first build of a filter
slow_builds($node);
make_table($node, 'postgres', 'u', 400);
ok(build_runs($node), 'a first build goes on');
like(answer($node, 'postgres', 'u', -1), qr/^unguarded: building/, 'maybe meanwhile');
$node->safe_psql('postgres', 'SELECT pg_cancel_backend(pid) FROM bloomguard_progress');
end_builds($node);
sound($node, 'terminated build', rel => 'u', rows => 400);

# The launcher told to end, while a worker of it builds
slow_builds($node);
$node->safe_psql('postgres', "SELECT bloomguard_rebuild('t')");
ok(build_runs($node), 'a rotation goes on');
$pid = pid_of('bloomguard launcher');
$node->safe_psql('postgres', "SELECT pg_terminate_backend($pid)");
$node->safe_psql('postgres', "CREATE TABLE v AS SELECT i AS id FROM generate_series(1, 10) i");
$node->safe_psql('postgres', "SELECT bloomguard_track('v', 'id', 1e-9)");
ok( $node->poll_query_until(
		'postgres',
		"SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'bloomguard launcher' AND pid <> $pid"
	),
	'the launcher returned');
sound($node, 'tracked while it was away', rel => 'v', rows => 10);
end_builds($node);
sound($node, 'in the end', rows => $rows);
ok($node->poll_query_until('postgres', 'SELECT count(*) = 0 FROM bloomguard_progress'),
	'no build is left over');
like(slurp_file($node->logfile), qr/bloomguard launcher/, 'the log knows of it');

$node->stop;
done_testing();
