# 100_progress_log.pl: what a build shows while it goes on, and what it logs
#
# The progress view of a build that takes its time, a log line at its start and
# at its end, bloomguard_rebuild() and bloomguard_wait_ready().

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use BloomguardTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = guard_node('progress_log');
my $progress = 'FROM bloomguard_progress';

sub psql_error
{
	my ($sql) = @_;
	my ($code, $out, $err) = $node->psql('postgres', $sql);

	return $err;
}

# a first build
slow_builds($node);
make_table($node, 'postgres', 't', 2000);
ok(build_runs($node), 'a build shows up in bloomguard_progress');
is( $node->safe_psql('postgres', <<'SQL'), 'postgres|t|id|scanning table|500|t|t|t|t', 'all of it');
SELECT datname, relation, key_columns, phase, blocks_total,
	blocks_done BETWEEN 1 AND 500, tuples_done <= blocks_done * 4,
	started_at BETWEEN now() - interval '1 minute' AND now(), seconds BETWEEN 0 AND 60
FROM bloomguard_progress;
SQL
is( $node->safe_psql('postgres',
		"SELECT count(*) FROM pg_stat_activity JOIN bloomguard_progress USING (pid) WHERE backend_type = 'bloomguard worker' AND query LIKE '%public.t%'"
	),
	'1',
	'its process is in pg_stat_activity');
my ($done, $started) = split /\|/,
  $node->safe_psql('postgres', "SELECT blocks_done, started_at $progress");
ok($node->poll_query_until('postgres', "SELECT blocks_done > $done + 5 $progress"),
	'it makes progress');
is($node->safe_psql('postgres', "SELECT started_at = '$started' $progress"), 't',
	'it is the same build');
ok( $node->poll_query_until('postgres',
		"SELECT tuples_done > 0 AND tuples_done <= blocks_done * 4 $progress"),
	'rows are counted');
is($node->safe_psql('postgres', 'SELECT state, reason FROM bloomguard_filters'),
	'building|not built yet', 'bloomguard_filters shows it');
is(answer($node, 'postgres', 't', -1), 'unguarded: building', 'probes say so');
is($node->safe_psql('postgres', "SELECT bloomguard_wait_ready('t', '200 ms')"), 'f',
	'bloomguard_wait_ready() returns at its timeout');
is($node->safe_psql('postgres', "SELECT bloomguard_wait_ready('t', '0')"), 'f',
	'at once with a timeout of 0');

# from another database, and for a user without privileges
$node->safe_psql('postgres', 'CREATE DATABASE other; CREATE ROLE nobody LOGIN');
$node->safe_psql('other', 'CREATE EXTENSION bloomguard');
is($node->safe_psql('other', "SELECT datname, key_columns IS NULL, phase $progress"),
	'postgres|t|scanning table', 'it is shown in other databases');
is($node->safe_psql('postgres', "SET ROLE nobody; SELECT count(*) $progress"), '0',
	'not to users who may not see the table');

# a session that waits is told as soon as it is ready
my $waiting = $node->background_psql('postgres');
$waiting->query_until(qr/started/, <<'SQL');
\echo started
SELECT bloomguard_wait_ready('t', '10 min');
\echo finished
SQL
end_builds($node);
$waiting->query_until(qr/finished/, '');
$waiting->quit;
sound($node, 'built', rows => 2000);
is($node->safe_psql('postgres', "SELECT count(*) $progress"), '0', 'nothing is shown any more');

# the log: of a build that was interrupted only the start
my $log = slurp_file($node->logfile);
like($log, qr/LOG:  building filter of relation "public\.t" \(id\)/, 'log line at the start');
like(
	$log,
	qr/LOG:  built filter of relation "public\.t" \(id\): 2000 rows, 2000 keys, \d+ kB, 30 hashes, \d+\.\d+ s/,
	'log line at the end');
is(log_count($node, qr/LOG:  built filter of relation "public\.t"/), 1, 'one end');
cmp_ok(log_count($node, qr/LOG:  building filter of relation "public\.t"/), '>=', 2, 'two starts');

# bloomguard_rebuild(): at commit, the old generation serves until then
my $offset = -s $node->logfile;
is( $node->safe_psql('postgres', 'SELECT state, generation, build_seconds > 0, built_at <= now(), last_error IS NULL FROM bloomguard_filters'),
	'ready|1|t|t|t', 'first generation');
$node->safe_psql('postgres', "BEGIN; SELECT bloomguard_rebuild('t'); ROLLBACK");
slow_builds($node);
$node->safe_psql('postgres', "SELECT bloomguard_rebuild('t', 'id')");
ok(build_runs($node), 'a rotation shows up in bloomguard_progress');
is($node->safe_psql('postgres', 'SELECT state, generation FROM bloomguard_filters'),
	'ready|1', 'the filter stays in service meanwhile');
is(answer($node, 'postgres', 't', -1), 'absent', 'and answers');
is($node->safe_psql('postgres', "SELECT bloomguard_wait_ready('t', '0')"), 't',
	'there is nothing to wait for');
end_builds($node);
filter_is($node, 'postgres', 't', 'generation = 2', 'second generation');
sound($node, 'rotated', rows => 2000);
is(log_count($node, qr/LOG:  built filter of relation "public\.t"/, $offset), 1,
	'the request that was rolled back did nothing');

# errors
like(psql_error('CREATE TABLE u (id int); SELECT bloomguard_wait_ready(\'u\')'),
	qr/ERROR/, 'bloomguard_wait_ready() of an untracked table');
like(psql_error("SELECT bloomguard_rebuild('u')"), qr/ERROR/, 'bloomguard_rebuild() of one');
like(
	psql_error("BEGIN; SELECT bloomguard_track('u', 'id'); SELECT bloomguard_wait_ready('u')"),
	qr/ERROR:  .*was tracked or changed by the current transaction/,
	'bloomguard_wait_ready() would wait for itself');
like(psql_error("SET ROLE nobody; SELECT bloomguard_rebuild('t')"),
	qr/must be owner/, 'bloomguard_rebuild() is for the owner');

# a build that fails says why, and is tried again
$node->safe_psql('postgres', <<'SQL');
CREATE TYPE fragile;
CREATE FUNCTION fragile_in(cstring) RETURNS fragile STRICT IMMUTABLE LANGUAGE internal AS 'int4in';
CREATE FUNCTION fragile_out(fragile) RETURNS cstring STRICT IMMUTABLE LANGUAGE internal AS 'int4out';
CREATE TYPE fragile (INPUT = fragile_in, OUTPUT = fragile_out, LIKE = int4);
CREATE FUNCTION fragile_eq(fragile, fragile) RETURNS bool STRICT IMMUTABLE LANGUAGE internal AS 'int4eq';
CREATE OPERATOR = (LEFTARG = fragile, RIGHTARG = fragile, FUNCTION = fragile_eq);
CREATE TABLE broken (is_broken bool);
INSERT INTO broken VALUES (true);
CREATE FUNCTION fragile_hash(fragile) RETURNS int STRICT IMMUTABLE LANGUAGE internal AS 'hashint4';
CREATE FUNCTION fragile_hash64(fragile, int8) RETURNS int8 STRICT IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
	IF (SELECT is_broken FROM public.broken) THEN RAISE 'no hash today'; END IF;
	RETURN hashint4extended($1::text::int, $2);
END $$;
CREATE FUNCTION fragile_text(fragile) RETURNS text STRICT IMMUTABLE LANGUAGE sql
	AS $$ SELECT textin(public.fragile_out($1)) $$;
CREATE CAST (fragile AS text) WITH FUNCTION fragile_text(fragile);
CREATE OPERATOR CLASS fragile_ops DEFAULT FOR TYPE fragile USING hash AS
	OPERATOR 1 =, FUNCTION 1 fragile_hash(fragile), FUNCTION 2 fragile_hash64(fragile, int8);
CREATE TABLE f (id fragile);
INSERT INTO f SELECT i::text::fragile FROM generate_series(1, 100) i;
SELECT bloomguard_track('f', 'id', 1e-9);
SQL
filter_is($node, 'postgres', 'f', "state = 'stale' AND last_error = 'no hash today'",
	'a build that failed shows its error');
is($node->safe_psql('postgres', "SELECT count(*) FROM f WHERE NOT bloomguard_might_contain('f', id)"),
	'0', 'it answers maybe');
$node->safe_psql('postgres', 'UPDATE broken SET is_broken = false');
sound($node, 'tried again', rel => 'f', rows => 100);
is( $node->safe_psql('postgres',
		"SELECT last_error IS NULL FROM bloomguard_filters WHERE relation = 'f'::regclass"),
	't', 'the error is forgotten');

$node->stop;
done_testing();
