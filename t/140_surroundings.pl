# 140_surroundings.pl: settings, limits and files that others changed
#
# Settings of a database or of all roles, connection limits and closed databases
# do not keep workers from their work [F6] [F10].  The library's file is replaced
# under a running server, or a process comes to a second copy of it [B34]: writes
# go on, probes answer maybe or know every row, nothing crashes.
#
# DROP DATABASE and its like while filters are built: 050_databases.pl [F1] [F2].

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use BloomguardTest;
use File::Copy;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

# where the server shall find a library of our own first
my $folder = PostgreSQL::Test::Utils::tempdir_short();
my $node = guard_node('around', conf => "dynamic_library_path = '$folder:\$libdir'\n");
my ($installed) = glob($node->config_data('--pkglibdir') . '/bloomguard.{so,dylib,dll}');
my ($suffix) = $installed =~ /(\.\w+)$/;
my $server = $node->safe_psql('postgres', 'SELECT pg_postmaster_start_time()');

#
# Settings
#
my @settings = (
	"statement_timeout = 1",
	"lock_timeout = 1",
	"idle_in_transaction_session_timeout = 1",
	"default_transaction_read_only = on",
	"default_transaction_deferrable = on",
	"default_transaction_isolation = 'serializable'",
	"session_replication_role = 'replica'",
	"row_security = off",
	"search_path = ''",
	"role = 'nobody'",
	"exit_on_error = on",
	"default_toast_compression = 'pglz'",
	"work_mem = '64kB'",
	"maintenance_work_mem = '1MB'",
	"temp_buffers = 100",
	"enable_seqscan = off",
	"synchronize_seqscans = off",
	"bytea_output = 'escape'",
	"extra_float_digits = -15",
	"xmloption = 'document'",
	"bloomguard.enabled = off",
);
# what our own sessions need to see the result
my $neutral = join ' ', map { "-c $_" } (
	'statement_timeout=0', 'lock_timeout=0', 'idle_in_transaction_session_timeout=0',
	'default_transaction_read_only=off', 'default_transaction_deferrable=off',
	'default_transaction_isolation=read\\ committed', 'session_replication_role=origin',
	'search_path=public', 'role=none', 'bloomguard.enabled=on');

$node->safe_psql('postgres', 'CREATE ROLE nobody');
for my $where ('DATABASE meddled', 'ROLE ALL', 'ROLE ALL IN DATABASE meddled')
{
	$node->safe_psql('postgres', 'CREATE DATABASE meddled');
	$node->safe_psql('meddled', <<'SQL');
CREATE EXTENSION bloomguard;
CREATE TABLE t (id text, filler text);
ALTER TABLE t ENABLE ROW LEVEL SECURITY;
ALTER TABLE t FORCE ROW LEVEL SECURITY;
REVOKE ALL ON t FROM PUBLIC;
INSERT INTO t SELECT i FROM generate_series(1, 1000) i;
CREATE TABLE u (id int);
SQL
	# a transaction that was serializable, read only and deferrable would wait for it
	my $writer = $node->background_psql('meddled');
	$writer->query_safe('BEGIN ISOLATION LEVEL SERIALIZABLE READ WRITE; INSERT INTO u VALUES (1)');
	# the worker's part of it is done with the settings in force, too
	my $sql = join '', map { "ALTER $where SET $_;\n" } @settings;
	my ($code, $out, $err) = $node->psql('postgres', $sql, on_error_stop => 0);
	unlike($err, qr/ERROR/, "$where: settings made");

	local $ENV{PGOPTIONS} = $neutral;
	$node->safe_psql('meddled', "SELECT bloomguard_track('t', 'id', 1e-9)");
	sound($node, $where, db => 'meddled', rows => 1000);

	# a worker puts a trigger that lost ALWAYS right again
	$node->safe_psql('meddled', 'ALTER TABLE t ENABLE TRIGGER bloomguard_id');
	sound($node, "$where, repaired", db => 'meddled', rows => 1000);
	is($node->safe_psql('meddled', "SELECT tgenabled FROM pg_trigger WHERE tgname = 'bloomguard_id'"),
		'A', "$where: the trigger is ALWAYS again");

	# a session with these settings writes and asks; a millisecond is too short
	{
		local $ENV{PGOPTIONS} =
		  '-c statement_timeout=1min -c default_transaction_read_only=off -c role=none -c bloomguard.enabled=on';
		is( $node->safe_psql(
				'meddled', "INSERT INTO public.t VALUES ('new'); SELECT public.bloomguard_check('public.t', 'new')"),
			'unguarded: serializable transaction', "$where: a session that has them");
	}
	$writer->query_safe('COMMIT');
	$writer->quit;
	$node->restart if $where eq 'DATABASE meddled';
	sound($node, "$where, in the end", db => 'meddled', rows => 1001);

	$node->safe_psql('postgres', "ALTER $where RESET ALL; DROP DATABASE meddled");
}
unlike(slurp_file($node->logfile), qr/bloomguard worker.*exited with exit code/,
	'no worker has failed');

# A page that cannot be read is not read as an empty one: the filter would lack
# its keys [F6].
sub swap_header
{
	my ($file, $header) = @_;
	my $old;

	open(my $fh, '+<:raw', $file) or die "$file: $!";
	sysseek($fh, 8192, 0);
	sysread($fh, $old, 24) == 24 or die "$file: short";
	sysseek($fh, 8192, 0);
	syswrite($fh, $header) == 24 or die "$file: $!";
	close($fh);
	return $old;
}

make_table($node, 'postgres', 'damaged', 20);
sound($node, 'before the damage', rel => 'damaged', rows => 20);
my $file = $node->data_dir . '/' . $node->safe_psql('postgres', "SELECT pg_relation_filepath('damaged')");
$node->safe_psql('postgres', 'ALTER DATABASE postgres SET zero_damaged_pages = on');
$node->stop;
my $header = swap_header($file, "\xff" x 24);
$node->start;
filter_is($node, 'postgres', 'damaged', "state = 'stale' AND last_error ~ 'invalid page in block 1'",
	'a damaged page is an error');
is(answer($node, 'postgres', 'damaged', -1), 'unguarded: stale', 'a damaged page: maybe');
$node->stop;
swap_header($file, $header);
$node->start;
sound($node, 'the page put right', rel => 'damaged', rows => 20);
$node->safe_psql('postgres', 'ALTER DATABASE postgres RESET ALL; DROP TABLE damaged');

#
# Limits
#
$node->safe_psql('postgres', 'CREATE ROLE guest LOGIN; CREATE DATABASE limited CONNECTION LIMIT 1');
$node->safe_psql('limited', <<'SQL');
CREATE EXTENSION bloomguard;
GRANT ALL ON SCHEMA public TO guest;
SQL
my $guest = $node->background_psql('limited', on_error_stop => 0, extra_params => [ '-U', 'guest' ]);

sub guest_says
{
	my ($sql) = @_;
	my $out = $guest->query($sql);
	my $err = $guest->{stderr};

	$guest->{stderr} = '';
	return $out . $err;
}

is(guest_says(<<'SQL'), '', 'the only place is taken');
CREATE TABLE t (id bigint, filler text);
ALTER TABLE t ALTER filler SET STORAGE PLAIN;
INSERT INTO t SELECT i, repeat('x', 1900) FROM generate_series(1, 2000) i;
SQL
my ($code, $out, $err) = $node->psql('limited', 'SELECT 1', extra_params => [ '-U', 'guest' ]);
like($err, qr/too many connections for database "limited"/, 'no other guest gets in');
guest_says("SELECT bloomguard_track('t', 'id', 1e-9)");
sound($node, 'limit reached', db => 'limited', rows => 2000);
# a worker does not take the place
slow_builds($node);
guest_says("SELECT bloomguard_rebuild('t')");
ok(build_runs($node, 'limited'), 'a build runs');
$guest->quit;
$node->poll_query_until('postgres',
	"SELECT count(*) = 0 FROM pg_stat_activity WHERE usename = 'guest'");
$guest = $node->background_psql('limited', on_error_stop => 0, extra_params => [ '-U', 'guest' ]);
is(guest_says("SELECT count(*) FROM bloomguard_progress; INSERT INTO t VALUES (3001)"), '1',
	'and comes again, beside the worker');
end_builds($node);
sound($node, 'limit reached, rotated', db => 'limited', rows => 2001);

# Closed for connections, with a session in it, which goes on
$node->safe_psql('postgres', 'ALTER DATABASE limited ALLOW_CONNECTIONS false');
ok($node->poll_query_until('postgres', 'SELECT filters = 0 FROM bloomguard_memory'),
	'closed: its filter is forgotten');
is(guest_says("INSERT INTO t VALUES (3002); UPDATE t SET id = 3003 WHERE id = 3002; DELETE FROM t WHERE id = 1"),
	'', 'closed: writes go on');
is(guest_says("SELECT bloomguard_check('t', -1)"), 'unguarded: stale', 'closed: maybe');
$node->safe_psql('postgres', 'ALTER DATABASE limited ALLOW_CONNECTIONS true');
sound($node, 'open again', db => 'limited', rows => 2001);
is(guest_says("INSERT INTO t VALUES (3004); SELECT bloomguard_check('t', 3003), bloomguard_check('t', 3004), bloomguard_check('t', -1)"),
	'maybe|maybe|absent', 'open again: the session asks');
sound($node, 'open again, with a new row', db => 'limited', rows => 2002);
$guest->quit;
$node->safe_psql('postgres', 'DROP DATABASE limited');

#
# Files
#
sub put_library
{
	my ($file, $name) = @_;

	# a new file, as a package manager does it
	copy($file, "$folder/new") or die "cannot copy $file: $!";
	chmod 0755, "$folder/new";
	rename "$folder/new", "$folder/$name$suffix" or die $!;
	return;
}

# which file the extension's functions come from
sub point
{
	my ($library, $which) = @_;

	$node->safe_psql('postgres',
		"UPDATE pg_proc SET probin = '$library' WHERE probin IS NOT NULL AND proname $which");
	return;
}

sub writes_ok
{
	my ($label, $from) = @_;
	my ($a, $b, $c) = ($from, $from + 1, $from + 2);
	my ($code, $out, $err) = $node->psql('postgres', <<SQL);
INSERT INTO t VALUES ($a), ($c);
COPY t (id) FROM STDIN;
$b
\\.
UPDATE t SET id = id WHERE id = $b;
DELETE FROM t WHERE id = $c;
SELECT bool_and(bloomguard_might_contain('t', id)) FROM t WHERE id >= $a;
SQL
	is("$code $out", '0 t', "$label: writes go on") or diag($err);
	return;
}

make_table($node, 'postgres', 't', 100);
sound($node, 'as installed', rows => 100);

# The server has loaded the file of our folder, the functions name that in
# $libdir: a second copy, as far as the server can tell.  Not loaded, everything
# is maybe.
put_library($installed, 'bloomguard');
$node->restart;
writes_ok('two copies', 201);
is(answer($node, 'postgres', 't', -1), 'unguarded: library not preloaded', 'two copies: maybe');
is( $node->safe_psql('postgres',
		"SELECT relation, state FROM bloomguard_filters; LOAD 'bloomguard'; LOAD '\$libdir/bloomguard'"),
	't|stale', 'two copies: the view answers');

# Only the trigger comes from the second copy: the first is asked, and has to
# know the rows [B34].
my $named = '$libdir/bloomguard';
point('bloomguard', "~ '^bloomguard_' AND proname <> 'bloomguard_maintain'");
sound($node, 'trigger from the second copy', rows => 102);
writes_ok('trigger from the second copy', 301);
is(answer($node, 'postgres', 't', 301), 'maybe', 'trigger from the second copy: its row is known');
sound($node, 'trigger from the second copy, after writes', rows => 104);

# only the probes do
point('bloomguard', "= 'bloomguard_maintain'");
point($named, "IN ('bloomguard_might_contain', 'bloomguard_check')");
writes_ok('probes from the second copy', 401);
is(answer($node, 'postgres', 't', -1), 'unguarded: library not preloaded',
	'probes from the second copy: maybe');

# nothing does: one copy again
point('bloomguard', "~ '^bloomguard_'");
sound($node, 'one copy', rows => 106);

# A session that has the first copy loads a second one, and goes on with both
my $session = $node->background_psql('postgres', on_error_stop => 0);
put_library($installed, 'second');
is($session->query_safe("INSERT INTO t VALUES (501); SELECT bloomguard_check('t', 501)"), 'maybe',
	'a session of before');
$session->query_safe(<<SQL);
LOAD '$folder/second$suffix';
CREATE FUNCTION second_check(regclass, "any") RETURNS text STABLE
	AS '$folder/second$suffix', 'bloomguard_check' LANGUAGE C;
CREATE FUNCTION second_maintain() RETURNS trigger
	AS '$folder/second$suffix', 'bloomguard_maintain' LANGUAGE C;
SQL
is( $session->query_safe(
		"INSERT INTO t VALUES (502); SELECT bloomguard_check('t', 502), bloomguard_check('t', -1), second_check('t', -1)"),
	'maybe|absent|unguarded: library not preloaded', 'a second copy in a session');
# a trigger of that copy is no filter of ours, and does no harm
$session->query_safe(<<'SQL');
CREATE TRIGGER second AFTER INSERT OR UPDATE ON t FOR EACH ROW EXECUTE FUNCTION second_maintain('id');
INSERT INTO t VALUES (503);
SQL
sound($node, 'a trigger of the second copy', rows => 109);

# The file is replaced under the running server, by anything at all: processes
# that are forked have the library already.
append_to_file("$folder/rubbish", 'no library');
put_library("$folder/rubbish", 'bloomguard');
is($session->query_safe("INSERT INTO t VALUES (504); SELECT bloomguard_check('t', 504)"), 'maybe',
	'file replaced: a session of before');
writes_ok('file replaced', 601);
my $generation = $node->safe_psql('postgres', 'SELECT generation FROM bloomguard_filters');
$node->safe_psql('postgres', "SELECT bloomguard_rebuild('t')");
filter_is($node, 'postgres', 't', "generation > $generation", 'file replaced: workers go on');
unlink "$folder/bloomguard$suffix";
# so does one that is gone, for as long as a session has looked its functions up
is($session->query_safe("INSERT INTO t VALUES (505); SELECT bloomguard_check('t', 505)"), 'maybe',
	'file gone: a session of before');
put_library($installed, 'bloomguard');
sound($node, 'file put back', rows => 113);
$session->query_safe('DROP TRIGGER second ON t');
$session->quit;
isnt($server, $node->safe_psql('postgres', 'SELECT pg_postmaster_start_time()'),
	'the server was restarted');
unlike(slurp_file($node->logfile), qr/was terminated by signal/, 'and nobody has crashed');

$node->stop;
done_testing();
