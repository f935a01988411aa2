# 080_standby.pl: a streaming standby, before and after its promotion
#
# Adds are not in the WAL, so during recovery every answer is maybe.  After the
# promotion the filters are built by themselves.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use BloomguardTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $primary = guard_node('primary', init => { allows_streaming => 1 });
make_table($primary, 'postgres', 't', 200);
$primary->safe_psql('postgres', 'CREATE DATABASE second');
$primary->safe_psql('second', 'CREATE EXTENSION bloomguard');
make_table($primary, 'second', 't', 100);
sound($primary, 'primary', rows => 200);
$primary->backup('backup');

my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'backup', has_streaming => 1);
$standby->start;

sub in_recovery_ok
{
	my ($label) = @_;

	$primary->wait_for_catchup($standby);
	is(answer($standby, 'postgres', 't', $_),
		'unguarded: recovery in progress', "$label: check of $_ says why")
	  for (1, -1);
	is( $standby->safe_psql('postgres',
			"SELECT count(*) FROM t WHERE NOT bloomguard_might_contain('t', id)"),
		'0', "$label: no row is absent");
	is($standby->safe_psql('postgres', "SELECT bloomguard_might_contain('t', -1)"),
		't', "$label: a probe answers maybe");
	is($standby->safe_psql('postgres', 'SELECT state, reason FROM bloomguard_filters'),
		'stale|the server is in recovery', "$label: the view says why");
	is( $standby->safe_psql('postgres',
			"SELECT count(*) FROM pg_stat_activity WHERE backend_type LIKE 'bloomguard%'"),
		'0', "$label: no process of ours");
	return;
}

sub refused_ok
{
	my ($call, $pattern) = @_;
	my ($code, $out, $err) = $standby->psql('postgres', "SELECT $call");

	like($err, $pattern, "$call is refused");
	return;
}

in_recovery_ok('standby');
refused_ok("bloomguard_track('t', 'filler')", qr/cannot execute bloomguard_track\(\) during recovery/);
refused_ok("bloomguard_untrack('t')", qr/recovery|read-only/);
refused_ok("bloomguard_rebuild('t')", qr/recovery|read-only/);
refused_ok("bloomguard_verify('t')", qr/during recovery/);
is($standby->safe_psql('postgres', "SELECT bloomguard_wait_ready('t', '1 h')"), 'f',
	'nobody waits there');
is( $standby->safe_psql(
		'postgres', 'SELECT count(*) FROM bloomguard_stats, bloomguard_memory'),
	$standby->safe_psql('postgres', 'SELECT count(*) FROM bloomguard_stats'),
	'the other views work');

# DDL that is replayed, and rows
$primary->safe_psql('postgres', <<'SQL');
INSERT INTO t SELECT i, 'x' FROM generate_series(1001, 1100) i;
UPDATE t SET id = id + 5000 WHERE id <= 10;
CREATE TABLE later (id bigint);
SELECT bloomguard_track('later', 'id', 1e-9);
INSERT INTO later SELECT generate_series(1, 10);
CREATE TABLE gone (id bigint);
SELECT bloomguard_track('gone', 'id', 1e-9);
DROP TABLE gone;
ALTER TABLE t DISABLE TRIGGER bloomguard_id;
ALTER TABLE t ENABLE ALWAYS TRIGGER bloomguard_id;
VACUUM t;
SQL
$primary->wait_for_catchup($standby);
is( $standby->safe_psql('postgres', 'SELECT relation FROM bloomguard_filters ORDER BY 1'),
	"t\nlater", 'a table tracked since is shown');
$primary->safe_psql('postgres', "SELECT bloomguard_untrack('later')");
in_recovery_ok('standby, after DDL');
$standby->restart;
in_recovery_ok('standby, restarted');
$standby->stop('immediate');
$standby->start;
in_recovery_ok('standby, after a crash');

# promotion: nobody is asked for anything
$primary->stop('fast');
$standby->promote;
sound($standby, 'promoted', rows => 300);
sound($standby, 'promoted, second database', db => 'second', rows => 100);
is(answer($standby, 'postgres', 't', $_), 'maybe', "promoted: $_") for (1001, 5001);
$standby->safe_psql('postgres', "INSERT INTO t VALUES (9999, 'x')");
is(answer($standby, 'postgres', 't', 9999), 'maybe', 'promoted: a new row');
$standby->restart;
sound($standby, 'promoted and restarted', rows => 301);

# nothing came down
unlike(slurp_file($_->logfile), qr/was terminated by signal|PANIC|TRAP/,
	$_->name . ': nothing crashed')
  for ($primary, $standby);

$standby->stop;
done_testing();
