# 050_databases.pl: commands that want a database to themselves
#
# DROP DATABASE, CREATE DATABASE ... TEMPLATE and ALTER DATABASE RENAME while a
# worker builds there: core waits five seconds for other sessions and knows
# nothing of our workers, so we have to end them.  A copy's filters are built
# by themselves [B21], those of a dropped database are forgotten.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use BloomguardTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time);

my $node = guard_node('databases', conf => "bloomguard.max_workers = 8\n");

sub make_database
{
	my ($db) = @_;

	$node->safe_psql('postgres', "CREATE DATABASE $db");
	$node->safe_psql($db, 'CREATE EXTENSION bloomguard');
	make_table($node, $db, 't', 2000);
	return;
}

# while a build runs in the database
sub at_once
{
	my ($sql, $db) = @_;

	ok(build_runs($node, $db), "$sql: a build runs");
	my $start = time;
	my ($code, $out, $err) = $node->psql('postgres', $sql);
	my $seconds = time - $start;

	is("$code$err", '0', "$sql: succeeds");
	# a session of five seconds' stay would have made it fail
	cmp_ok($seconds, '<', 5, "$sql: does not wait");
	return;
}

slow_builds($node);
make_database('original');
at_once('CREATE DATABASE copied TEMPLATE original', 'original');
at_once('CREATE DATABASE copied2 TEMPLATE original STRATEGY file_copy', 'original');
at_once('ALTER DATABASE original RENAME TO renamed', 'original');
at_once('ALTER DATABASE copied RENAME TO copied1', 'copied');
at_once('DROP DATABASE copied2', 'copied2');
at_once('ALTER DATABASE renamed RENAME TO original', 'renamed');

# a command that fails lets the workers in again
my ($code) = $node->psql('postgres', 'CREATE DATABASE copied1 TEMPLATE original');
isnt($code, 0, 'a command that fails');
ok(build_runs($node, 'original'), 'the build goes on after it');

end_builds($node);
sound($node, 'original', db => 'original', rows => 2000);
sound($node, 'copy', db => 'copied1', rows => 2000);
is($node->safe_psql('postgres', 'SELECT filters FROM bloomguard_memory'), '2',
	'two filters are known');

# the two are separate
$node->safe_psql('original', "INSERT INTO t VALUES (-5, 'x')");
is(answer($node, 'original', 't', -5), 'maybe', 'a key of the original');
is(answer($node, 'copied1', 't', -5), 'absent', 'is not one of the copy');

# ready filters, and a rotation, in a database that is dropped
$node->safe_psql('postgres', 'CREATE DATABASE third TEMPLATE original');
sound($node, 'third', db => 'third', rows => 2001);
is($node->safe_psql('postgres', 'SELECT filters FROM bloomguard_memory'), '3',
	'three filters are known');
slow_builds($node);
$node->safe_psql('third', "SELECT bloomguard_rebuild('t')");
at_once('DROP DATABASE third', 'third');
ok($node->poll_query_until('postgres', 'SELECT filters = 2 FROM bloomguard_memory'),
	'its filter is forgotten');
end_builds($node);

my $used = $node->safe_psql('postgres', 'SELECT used_bytes FROM bloomguard_memory');
my $bytes = $node->safe_psql('original', 'SELECT bytes FROM bloomguard_filters');
is($used, 2 * $bytes, 'and its memory is free');

# no worker has gone, again and again, to a database that is not there
cmp_ok(log_count($node, qr/FATAL:  database \d+ does not exist/), '<=', 2,
	'dropped databases are left alone');

# a database in which a session stays is not dropped by our doing, and is unharmed
my $session = $node->background_psql('copied1');
($code) = $node->psql('postgres', 'SET statement_timeout = 200; DROP DATABASE copied1');
isnt($code, 0, 'DROP DATABASE with a session in it fails');
$session->quit;
sound($node, 'not dropped', db => 'copied1', rows => 2000);
$node->safe_psql('postgres', 'DROP DATABASE copied1 WITH (FORCE)');
ok($node->poll_query_until('postgres', 'SELECT filters = 1 FROM bloomguard_memory'),
	'dropped by force, forgotten');

# tracked in template1: every new database has it
$node->safe_psql('template1', 'CREATE EXTENSION bloomguard');
make_table($node, 'template1', 't', 10);
$node->safe_psql('postgres', 'CREATE DATABASE child');
sound($node, 'child of template1', db => 'child', rows => 10);

# no longer open for connections, and open again
$node->safe_psql('postgres', 'ALTER DATABASE child ALLOW_CONNECTIONS false');
$node->safe_psql('postgres', 'ALTER DATABASE child ALLOW_CONNECTIONS true');
sound($node, 'closed and open again', db => 'child', rows => 10);

# a database that is dropped and created again under its OID, as a copy of another,
# has the same relations and triggers, but not the same rows; the launcher has not
# looked meanwhile [B20, B21]
$node->safe_psql('postgres', 'ALTER SYSTEM SET bloomguard.naptime = 3600');
$node->safe_psql('postgres', 'SELECT pg_reload_conf()');
my $oid = $node->safe_psql('postgres', "SELECT oid FROM pg_database WHERE datname = 'child'");
$node->safe_psql('postgres', 'CREATE DATABASE twin TEMPLATE child');
$node->safe_psql('twin', 'INSERT INTO t VALUES (4711)');
$node->safe_psql('postgres', 'DROP DATABASE child');
$node->safe_psql('postgres', "CREATE DATABASE child TEMPLATE twin OID $oid");
isnt(answer($node, 'child', 't', 4711), 'absent', 'nothing is left of the database of before');
sound($node, 'the same OID', db => 'child', rows => 11);

$node->stop;
done_testing();
