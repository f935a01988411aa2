# 150_upgrade.pl: pg_upgrade, and a setting that lets rows go that are still wanted
#
# pg_upgrade carries the triggers, so the filters are there in the new cluster,
# built from its tables [B23]; the library may be preloaded while it runs.  With
# old_snapshot_threshold (versions 15 and 16) no question is answered [C24].  And
# ALTER DATABASE ... SET TABLESPACE does not wait for a build [F1].

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use BloomguardTest;
use Cwd;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $old = guard_node('old');
my $bindir = $old->config_data('--bindir');

#
# old_snapshot_threshold
#
make_table($old, 'postgres', 't', 100);
sound($old, 'at first', rows => 100);
SKIP:
{
	skip 'no old_snapshot_threshold', 1
	  if $old->safe_psql('postgres', 'SHOW server_version_num') >= 170000;

	$old->append_conf('postgresql.conf', "old_snapshot_threshold = '1min'\n");
	$old->restart;
	filter_is($old, 'postgres', 't', "state = 'ready'", 'threshold: the filter is built');
	is(answer($old, 'postgres', 't', $_), 'unguarded: old_snapshot_threshold is set',
		"threshold: $_")
	  for (1, -1);
	is( $old->safe_psql('postgres', <<'SQL'), 't|1', 'threshold: a probe answers maybe, and is counted');
BEGIN;
SELECT bloomguard_stats_reset() \g /dev/null
SELECT bloomguard_might_contain('t', -1) AS maybe \gset
COMMIT;
SELECT :'maybe', unguarded_reasons ->> 'old_snapshot_threshold' FROM bloomguard_stats;
SQL
	$old->append_conf('postgresql.conf', "old_snapshot_threshold = -1\n");
	$old->restart;
	sound($old, 'threshold off again', rows => 100);
}

#
# ALTER DATABASE ... SET TABLESPACE while a build runs there
#
$old->safe_psql('postgres', 'CREATE DATABASE moving');
$old->safe_psql('moving', 'CREATE EXTENSION bloomguard');
my $space = $old->basedir . '/space';
mkdir $space or die;
$old->safe_psql('postgres', "CREATE TABLESPACE space LOCATION '$space'");
slow_builds($old);
make_table($old, 'moving', 't', 400);
ok(build_runs($old, 'moving'), 'a build runs');
my ($code, $out, $err) = $old->psql('postgres', 'ALTER DATABASE moving SET TABLESPACE space');
is("$code$err", '0', 'SET TABLESPACE succeeds while a build runs');
end_builds($old);
sound($old, 'moved', db => 'moving', rows => 400);
$old->safe_psql('postgres', 'DROP DATABASE moving');
$old->safe_psql('postgres', 'DROP TABLESPACE space');

#
# pg_upgrade
#
$old->safe_psql('postgres', <<'SQL');
ALTER TABLE t RENAME id TO key;
CREATE TABLE parts (gone int, id bigint) PARTITION BY RANGE (id);
ALTER TABLE parts DROP COLUMN gone;
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (500);
CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM (500) TO (5000);
INSERT INTO parts SELECT generate_series(1, 1000);
SELECT bloomguard_track('parts', 'id', 1e-9, 20000);
SQL
sound($old, 'before, parts', rel => 'parts', rows => 1000);
my $definitions = 'SELECT relation, key_columns, false_positive_rate FROM bloomguard_filters ORDER BY relation::text';
my $expected = $old->safe_psql('postgres', $definitions);
$old->stop;

my $new = PostgreSQL::Test::Cluster->new('new');
$new->init;
$new->append_conf('postgresql.conf', guard_conf());
my $here = getcwd;
chdir PostgreSQL::Test::Utils::tempdir;
command_ok(
	[
		'pg_upgrade', '--no-sync', '-b', $bindir, '-B', $bindir,
		'-d', $old->data_dir, '-D', $new->data_dir,
		'-p', $old->port, '-P', $new->port, '-s', $old->host
	],
	'pg_upgrade');
chdir $here;
$new->start;
is( $new->safe_psql('postgres',
		"SELECT count(*) FROM t WHERE NOT bloomguard_might_contain('t', key)"),
	'0', 'upgraded, at once: no row is absent');
sound($new, 'upgraded', rows => 100);
sound($new, 'upgraded, parts', rel => 'parts', rows => 1000);
is($new->safe_psql('postgres', $definitions), $expected, 'same definitions');
is($new->safe_psql('postgres',
		"SELECT DISTINCT tgenabled FROM pg_trigger WHERE tgfoid = 'bloomguard_maintain'::regproc"),
	'A', 'all triggers are ENABLE ALWAYS');
$new->safe_psql('postgres', "INSERT INTO t VALUES (2001, 'x'); INSERT INTO parts VALUES (2001)");
is(answer($new, 'postgres', $_, 2001), 'maybe', "upgraded: a new row of $_") for ('t', 'parts');

$new->stop;
done_testing();
