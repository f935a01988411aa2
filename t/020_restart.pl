# 020_restart.pl: every filter of every database comes back by itself
#
# After a fast, a smart and an immediate stop.  Until a filter is rebuilt the
# answer is maybe, and the new start has another seed than the one before.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use BloomguardTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = guard_node('restart');
my @databases = ('postgres', 'one', 'two', 'three');

for my $db (@databases)
{
	if ($db ne 'postgres')
	{
		$node->safe_psql('postgres', "CREATE DATABASE $db");
		$node->safe_psql($db, 'CREATE EXTENSION bloomguard');
	}
	make_table($node, $db, 't', 400);
}
# a database that nobody may connect to stands in nobody's way
$node->safe_psql('postgres', 'CREATE DATABASE closed ALLOW_CONNECTIONS false');

# Which of 2,000 keys that are not there pass is a matter of the seed.
$node->safe_psql('postgres', <<'SQL');
CREATE TABLE seeded AS SELECT i AS id FROM generate_series(1, 10000) i;
SELECT bloomguard_track('seeded', 'id', 0.1, 10000);
SQL

sub passing
{
	return $node->safe_psql('postgres', <<'SQL');
SELECT bloomguard_wait_ready('seeded');
SELECT string_agg(i::text, ' ' ORDER BY i) FROM generate_series(20001, 22000) i
WHERE bloomguard_might_contain('seeded', i);
SQL
}

sound($node, "at first, $_", db => $_, rows => 400) for @databases;
my $before = passing();
my $generation = $node->safe_psql('postgres',
	"SELECT generation FROM bloomguard_filters WHERE relation = 'seeded'::regclass");
$node->safe_psql('postgres', "SELECT bloomguard_rebuild('seeded')");
filter_is($node, 'postgres', 'seeded', "generation > $generation", 'rebuilt');
is(passing(), $before, 'a rebuild keeps the seed');

my $rows = 400;
for my $mode ('fast', 'smart', 'immediate')
{
	$rows++;
	$node->safe_psql($_, "INSERT INTO t VALUES ($rows, 'x')") for @databases;
	$node->stop($mode);
	$node->start;

	# whatever is in service by now: no row may be called absent
	is( $node->safe_psql($_,
			"SELECT count(*) FROM t WHERE NOT bloomguard_might_contain('t', id)"),
		'0', "$mode, at once, $_: no row is absent")
	  for @databases;
	sound($node, "$mode, $_", db => $_, rows => $rows) for @databases;
	my $now = passing();
	isnt($now, $before, "$mode: another seed");
	$before = $now;
}

# the time until then, made longer
set_pace($node, 100, 1);
$node->stop('fast');
$node->start;
ok(build_runs($node, 'one') || build_runs($node), 'a build goes on');
for my $db (@databases)
{
	like(answer($node, $db, 't', $_), qr/^unguarded: (building|stale)$/,
		"not built yet, $db: $_ may be there")
	  for (1, $rows, -1);
	like(
		$node->safe_psql(
			$db, "SELECT state, reason FROM bloomguard_filters WHERE relation = 't'::regclass"),
		qr/^((building|stale)\|not built yet|stale\|waiting for a worker.*)$/,
		"not built yet, $db: the view says so");
}
# two workers for four databases: the others get their turn
end_builds($node);
sound($node, "in the end, $_", db => $_, rows => $rows) for @databases;
is($node->safe_psql('postgres', "SELECT filters FROM bloomguard_memory"),
	'5', 'all filters are known');

$node->stop;
done_testing();
