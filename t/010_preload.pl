# 010_preload.pl: without shared_preload_libraries, with it, and without it again
#
# Unloaded, the extension must be harmless: it installs, refuses to track with the
# setting's name, adds nothing, answers maybe, and never fails a write of a table
# that was tracked when it was loaded [B33].

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use BloomguardTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('preload');
$node->init;
$node->append_conf('postgresql.conf', 
	"autovacuum = off\nbloomguard.naptime = 1s\nbloomguard.shared_memory = 2MB\n");
$node->start;

# sqlstate and message of a statement that must fail
sub error_of
{
	my ($sql) = @_;
	my ($code, $out, $err) =
	  $node->psql('postgres', "\\set VERBOSITY verbose\n$sql");

	return $err =~ /ERROR:  (\w+): (.*)/ ? "$1 $2" : "no error: $out $err";
}

sub unguarded_ok
{
	my ($label) = @_;

	is(answer($node, 'postgres', 't', 1),
		'unguarded: library not preloaded', "$label: check says why");
	is($node->safe_psql('postgres', "SELECT bloomguard_might_contain('t', -1)"),
		't', "$label: a probe answers maybe");
	is( $node->safe_psql(
			'postgres',
			'SELECT relation, key_columns, state, reason FROM bloomguard_filters'),
		't|id|stale|the library is not in shared_preload_libraries',
		"$label: the filter is shown, with the reason");
	is( $node->safe_psql(
			'postgres',
			'SELECT (SELECT count(*) FROM bloomguard_stats), (SELECT count(*) FROM bloomguard_progress)'
		),
		'0|0',
		"$label: no counters, no builds");
	is($node->safe_psql('postgres', 'SELECT * FROM bloomguard_memory'),
		'0|0|0|0|0', "$label: no memory");
	return;
}

sub writes_ok
{
	my ($label, $from) = @_;
	my $copied = $from + 1;

	my ($code, $out, $err) = $node->psql('postgres', <<SQL);
INSERT INTO t VALUES ($from, 'x');
COPY t FROM STDIN;
$copied	y
\\.
UPDATE t SET id = id + 1 WHERE id = $copied;
BEGIN; SAVEPOINT s; INSERT INTO t VALUES (0, 'gone'); ROLLBACK TO s; COMMIT;
SQL
	is("$code$err", '0', "$label: writes go on");
	return;
}

# never loaded
$node->safe_psql('postgres', 'CREATE EXTENSION bloomguard');
make_table($node, 'postgres', 't', 10, track => 0);
like(
	error_of("SELECT bloomguard_track('t', 'id')"),
	qr/^55000 .*shared_preload_libraries/,
	'tracking fails with 55000 and names the setting');
is($node->safe_psql('postgres', 'SELECT count(*) FROM pg_trigger WHERE NOT tgisinternal'),
	'0', 'and leaves nothing behind');
is($node->safe_psql('postgres', "SELECT bloomguard_check('t', 1)"),
	'unguarded: library not preloaded', 'a probe of an untracked table');

# as restored from a dump
$node->safe_psql('postgres', <<'SQL');
CREATE TRIGGER bloomguard_id AFTER INSERT OR UPDATE ON t FOR EACH ROW
	EXECUTE FUNCTION bloomguard_maintain('id', 'false_positive_rate=1e-09');
ALTER TABLE t ENABLE ALWAYS TRIGGER bloomguard_id;
SQL
writes_ok('not loaded', 11);
unguarded_ok('not loaded');
for my $call ("bloomguard_rebuild('t')", "bloomguard_wait_ready('t')",
	"bloomguard_verify('t')", 'bloomguard_stats_reset()')
{
	like(error_of("SELECT $call"), qr/^55000 .*shared_preload_libraries/,
		"$call fails with 55000");
}
is($node->safe_psql('postgres', 'SELECT bits, hashes FROM bloomguard_size(10000000, 0.01)'),
	'95851008|7', 'bloomguard_size() needs no memory');
is($node->safe_psql('postgres', <<'SQL'), '10', 'LOAD in a session is harmless');
LOAD 'bloomguard';
SET bloomguard.enabled = off;
RESET bloomguard.enabled;
INSERT INTO t VALUES (100, 'z');
DELETE FROM t WHERE id = 100;
SELECT count(*) FROM t WHERE id <= 10 AND bloomguard_might_contain('t', id);
SQL
unlike(slurp_file($node->logfile), qr/WARNING:.*bloomguard/,
	'settings that mean something only when it is preloaded draw no warning');

# untrack, and the way back
$node->safe_psql('postgres', "SELECT bloomguard_untrack('t')");
is($node->safe_psql('postgres', 'SELECT count(*) FROM pg_trigger WHERE NOT tgisinternal'),
	'0', 'untrack works without the library');
$node->safe_psql('postgres', <<'SQL');
CREATE TRIGGER bloomguard_id AFTER INSERT OR UPDATE ON t FOR EACH ROW
	EXECUTE FUNCTION bloomguard_maintain('id', 'false_positive_rate=1e-09');
ALTER TABLE t ENABLE ALWAYS TRIGGER bloomguard_id;
SQL

# loaded
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'bloomguard'\n");
$node->restart;
sound($node, 'loaded', rows => 12);
like(error_of('SET bloomguard.no_such_setting = 1'), qr/^42602 /,
	'settings that do not exist are refused');
is($node->safe_psql('postgres', 'SELECT total_bytes / 1048576 FROM bloomguard_memory'),
	'2', 'memory as set');
writes_ok('loaded', 21);
sound($node, 'loaded, after writes', rows => 14);
is(answer($node, 'postgres', 't', 23), 'maybe', 'an updated key is there');
is($node->safe_psql('postgres', "LOAD 'bloomguard'; SELECT bloomguard_check('t', -1)"),
	'absent', 'LOAD when loaded is harmless');

# and unloaded again: rows are written that nobody adds
$node->append_conf('postgresql.conf', "shared_preload_libraries = ''\n");
$node->restart;
writes_ok('unloaded', 31);
unguarded_ok('unloaded');

$node->append_conf('postgresql.conf', "shared_preload_libraries = 'bloomguard'\n");
$node->restart;
sound($node, 'loaded again', rows => 16);
is(answer($node, 'postgres', 't', 31), 'maybe', 'a key written meanwhile is there');

$node->stop;
done_testing();
