# 130_never_in_the_way.pl: what a guard lacks is not the table's trouble
#
# No memory, no entry, no worker, no extension, a hash function that raises: each
# time the table's writes go on, in sessions that were there before, with
# prepared statements and inside an open transaction, too; queries that ask get
# their maybe; and where it can, the filter comes back by itself with every row
# that was written meanwhile.
#
# What others show: what the views and the log say of a full arena and a full
# registry, 040_memory.pl; worker slots taken at run time, 120_workers.pl; the
# library not preloaded any more, 010_preload.pl.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use BloomguardTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = guard_node('way', conf => <<'CONF');
bloomguard.shared_memory = 1MB
bloomguard.max_filters = 3
max_prepared_transactions = 2
CONF

my %rows;			# of a table, as far as committed
my $key = 10_000;	# the last one used

# a filter of nearly 600 kB: two do not fit
sub make_large
{
	my ($rel) = @_;

	make_table($node, 'postgres', $rel, 20, track => 0);
	$node->safe_psql('postgres', "SELECT bloomguard_track('$rel', 'id', 1e-9, 110000)");
	$rows{$rel} = 20;
	return;
}

# Every way to write, four rows in and one of them out again, and a question
# about those that stay.  Keys are not used twice.
sub writes
{
	my ($rel) = @_;
	my ($a, $b, $c, $d, $e) = map { ++$key } 1 .. 5;

	return <<SQL;
INSERT INTO $rel VALUES ($a), ($b), ($c);
COPY $rel (id) FROM STDIN;
$d
\\.
UPDATE $rel SET id = $e WHERE id = $b;
DELETE FROM $rel WHERE id = $c;
SELECT count(*), bool_and(bloomguard_might_contain('$rel', id)) FROM $rel WHERE id BETWEEN $a AND $e;
SQL
}

# the same by prepared statements; without the question when asks => 0
sub prepared_writes
{
	my ($rel, %p) = @_;
	my ($a, $b, $c, $d, $e) = map { ++$key } 1 .. 5;

	return <<SQL . ($p{asks} // 1 ? "EXECUTE ask($a, $e);\n" : "SELECT '3|t';\n");
EXECUTE ins($a); EXECUTE ins($b); EXECUTE ins($c); EXECUTE ins($d);
EXECUTE upd($b, $e);
EXECUTE del($c);
SQL
}

sub background
{
	my $session = $node->background_psql('postgres', on_error_stop => 0);

	# one warning for each session is due when there is no filter
	$session->query_safe('SET client_min_messages = error');
	return $session;
}

# what a session prints, errors included
sub says
{
	my ($session, $sql) = @_;
	my $out = $session->query($sql);
	my $err = $session->{stderr};

	$session->{stderr} = '';
	return $out . $err;
}

# A session with prepared statements and one in a transaction, both of which
# have written and asked.
sub arrive
{
	my ($rel) = @_;
	my %guests = (rel => $rel, prepared => background(), open => background());

	is(says($guests{prepared}, <<SQL . prepared_writes($rel)), '3|t', "$rel: prepared");
SET plan_cache_mode = force_generic_plan;
PREPARE ins(bigint) AS INSERT INTO $rel VALUES (\$1);
PREPARE upd(bigint, bigint) AS UPDATE $rel SET id = \$2 WHERE id = \$1;
PREPARE del(bigint) AS DELETE FROM $rel WHERE id = \$1;
PREPARE ask(bigint, bigint) AS SELECT count(*), bool_and(bloomguard_might_contain('$rel', id))
	FROM $rel WHERE id BETWEEN \$1 AND \$2;
SQL
	is(says($guests{open}, 'BEGIN; ' . writes($rel)), '3|t', "$rel: in a transaction");
	$rows{$rel} += 3;
	$guests{open_rows} = 3;
	return \%guests;
}

# all of them, and a new session, write and ask
sub go_on
{
	my ($guests, $label) = @_;
	my $rel = $guests->{rel};
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	is(says($guests->{prepared}, prepared_writes($rel)), '3|t', "$label: prepared statements go on");
	is(says($guests->{open}, writes($rel)), '3|t', "$label: an open transaction goes on");
	my ($code, $out, $err) = $node->psql('postgres', writes($rel));
	is("$code $out", '0 3|t', "$label: a new session goes on") or diag($err);
	$rows{$rel} += 6;
	$guests->{open_rows} += 3;
	return;
}

sub leave
{
	my ($guests, $label) = @_;

	is(says($guests->{open}, 'COMMIT'), '', "$label: the open transaction commits");
	$rows{ $guests->{rel} } += $guests->{open_rows};
	$guests->{$_}->quit for ('open', 'prepared');
	return;
}

# a key that was added, not merely one that nobody can tell
sub guarded
{
	my ($rel, $label) = @_;

	is($node->safe_psql('postgres',
			"SELECT DISTINCT bloomguard_check('$rel', id) FROM $rel"),
		'maybe', "$label: every row was asked for");
	return;
}

# no room in the arena, until another filter goes
make_large('other');
sound($node, 'other', rel => 'other');
make_large('t');
filter_is($node, 'postgres', 't', "state = 'no memory'", 'no memory');
my $guests = arrive('t');
is(answer($node, 'postgres', 't', -1), 'unguarded: no memory', 'no memory: maybe');
go_on($guests, 'no memory');
$node->safe_psql('postgres', "SELECT bloomguard_untrack('other')");
filter_is($node, 'postgres', 't', "state = 'ready'", 'room: ready, beside an open transaction');
go_on($guests, 'room');
guarded('t', 'room');
leave($guests, 'room');
sound($node, 'room', rows => $rows{t});

# no room for a rotation, until the server has more
my $generation = $node->safe_psql('postgres', 'SELECT generation FROM bloomguard_filters');
$guests = arrive('t');
$node->safe_psql('postgres', "SELECT bloomguard_rebuild('t')");
filter_is($node, 'postgres', 't', "state = 'ready' AND reason ~ 'bloomguard.shared_memory'",
	'a rotation that does not fit');
go_on($guests, 'not rotated');
guarded('t', 'not rotated');
sound($node, 'not rotated, beside an open transaction', rows => $rows{t});
leave($guests, 'not rotated');
sound($node, 'not rotated', rows => $rows{t});
is($node->safe_psql('postgres', 'SELECT generation FROM bloomguard_filters'),
	$generation, 'not rotated: the generation of before');
$node->append_conf('postgresql.conf', 'bloomguard.shared_memory = 4MB');
$node->restart;
sound($node, 'more memory', rows => $rows{t});
$node->safe_psql('postgres', "SELECT bloomguard_rebuild('t')");
filter_is($node, 'postgres', 't', 'generation = 2 AND reason IS NULL', 'more memory: rotated');
sound($node, 'more memory, rotated', rows => $rows{t});

# no entry, until another filter goes
for my $rel ('a', 'b')
{
	make_table($node, 'postgres', $rel, 4);
	sound($node, $rel, rel => $rel, rows => 4);
}
make_table($node, 'postgres', 'fourth', 20);
$rows{fourth} = 20;
filter_is($node, 'postgres', 'fourth', "state = 'no memory' AND reason ~ 'bloomguard.max_filters'",
	'no entry');
$guests = arrive('fourth');
go_on($guests, 'no entry');
$node->safe_psql('postgres', "SELECT bloomguard_untrack('a')");
filter_is($node, 'postgres', 'fourth', "state = 'ready'", 'an entry: ready, beside an open transaction');
go_on($guests, 'an entry');
guarded('fourth', 'an entry');
leave($guests, 'an entry');
sound($node, 'an entry', rel => 'fourth', rows => $rows{fourth});

# No worker: at first not even the launcher finds a place, then nobody but it and
# core's own launcher.  A prepared transaction is open all the time.
$node->safe_psql('postgres',
	"BEGIN;\n" . writes('t') . "PREPARE TRANSACTION 'before'");
my $crowded = 'could not start a bloomguard worker: out of background worker slots';
for my $places (0, 2)
{
	my $offset = -s $node->logfile;

	$node->append_conf('postgresql.conf', "max_worker_processes = $places");
	$node->restart;
	$guests = arrive('t');
	go_on($guests, "$places places");
	$node->wait_for_log(qr/$crowded/, $offset) if $places > 0;
	is(answer($node, 'postgres', 't', -1), 'unguarded: stale', "$places places: maybe");
	is($node->safe_psql('postgres', "SELECT bloomguard_rebuild('t'), bloomguard_wait_ready('t', '0')"),
		'|f', "$places places: nobody waits for a worker");
	is( $node->safe_psql(
			'postgres',
			"SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'bloomguard launcher'"),
		$places > 0 ? '1' : '0', "$places places: launcher or not");
	go_on($guests, "$places places, still");
	leave($guests, "$places places");
}
$node->append_conf('postgresql.conf', 'max_worker_processes = 8');
$node->restart;
sound($node, 'places enough', rows => $rows{t});
$node->safe_psql('postgres', "COMMIT PREPARED 'before'");
$rows{t} += 3;
sound($node, 'prepared before', rows => $rows{t});

# The extension is dropped.  An open transaction that has not touched the table
# does not hold it up, and has a snapshot of before.
$node->safe_psql('postgres', 'CREATE TABLE neutral (id int)');
sub begin_anew
{
	my ($guests) = @_;

	$guests->{open}->query_safe(
		'COMMIT; BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT * FROM neutral');
	$rows{ $guests->{rel} } += $guests->{open_rows};
	$guests->{open_rows} = 0;
	return;
}
$guests = arrive('t');
begin_anew($guests);
my $held = background();
$held->query_safe('BEGIN; DROP EXTENSION bloomguard CASCADE');
# asking reads no table: it does not wait
is($node->safe_psql('postgres', "SET lock_timeout = '10s'; SELECT bloomguard_check('t', -1)"),
	'unguarded: relation is locked', 'dropped, not committed: maybe');
$held->query_safe('ROLLBACK');
$held->quit;
filter_is($node, 'postgres', 't', "state = 'ready'", 'drop rolled back: ready');
go_on($guests, 'drop rolled back');
guarded('t', 'drop rolled back');
leave($guests, 'drop rolled back');
sound($node, 'drop rolled back', rows => $rows{t});

$guests = arrive('t');
begin_anew($guests);
slow_builds($node);
$node->safe_psql('postgres', "SELECT bloomguard_rebuild('t')");
ok(build_runs($node), 'dropped while it is built');
my ($code, $out, $err) = $node->psql('postgres', 'DROP EXTENSION bloomguard CASCADE');
is($code, 0, 'dropped') or diag($err);
is(says($guests->{prepared}, prepared_writes('t', asks => 0)), '3|t', 'dropped: prepared statements go on');
$rows{t} += 3;
like(says($guests->{prepared}, 'EXECUTE ask(0, 0)'),
	qr/ERROR:  (function bloomguard_might_contain.* does not exist|cache lookup failed)/,
	'dropped: what is not there cannot be asked');
is(says($guests->{open}, "INSERT INTO t VALUES (5); UPDATE t SET id = 6 WHERE id = 5; DELETE FROM t WHERE id = 1"),
	'', 'dropped: an open transaction goes on');
fast_builds($node);
$node->safe_psql('postgres', 'CREATE EXTENSION bloomguard');
is(says($guests->{prepared}, prepared_writes('t')), '3|t', 'created again: prepared statements ask again');
$rows{t} += 3;
begin_anew($guests);
is(answer($node, 'postgres', 't', -1), 'unguarded: no filter', 'created again: no filter');
$node->safe_psql('postgres', "SELECT bloomguard_track('t', 'id', 1e-9)");
filter_is($node, 'postgres', 't', "state = 'ready'", 'tracked again: ready');
go_on($guests, 'tracked again');
guarded('t', 'tracked again');
leave($guests, 'tracked again');
sound($node, 'tracked again', rows => $rows{t});
is($node->safe_psql('postgres', 'SELECT filters, used_bytes = (SELECT bytes FROM bloomguard_filters) FROM bloomguard_memory'),
	'1|t', 'nothing is left of those that were dropped');

# A hash function of the key's type that is replaced by one that raises.  It was
# part of every write before, so writes that add a key raise it as well; nothing
# else does.
$node->safe_psql('postgres', <<'SQL');
SET client_min_messages = warning;
CREATE TYPE odd;
CREATE FUNCTION odd_in(cstring) RETURNS odd AS 'int4in' LANGUAGE internal IMMUTABLE STRICT;
CREATE FUNCTION odd_out(odd) RETURNS cstring AS 'int4out' LANGUAGE internal IMMUTABLE STRICT;
CREATE TYPE odd (INPUT = odd_in, OUTPUT = odd_out, LIKE = int4);
CREATE FUNCTION odd_eq(odd, odd) RETURNS boolean AS 'int4eq' LANGUAGE internal IMMUTABLE STRICT;
CREATE OPERATOR = (LEFTARG = odd, RIGHTARG = odd, FUNCTION = odd_eq, COMMUTATOR = =, HASHES);
CREATE FUNCTION odd_hash(odd) RETURNS int AS 'hashint4' LANGUAGE internal IMMUTABLE STRICT;
CREATE FUNCTION odd_hash64(k odd, seed bigint) RETURNS bigint LANGUAGE sql IMMUTABLE STRICT
	AS 'SELECT hashint4extended(k::text::int, seed)';
CREATE OPERATOR CLASS odd_ops DEFAULT FOR TYPE odd USING hash AS
	OPERATOR 1 =, FUNCTION 1 odd_hash(odd), FUNCTION 2 odd_hash64(odd, bigint);
CREATE TABLE o (k odd, n int);
INSERT INTO o SELECT i::text::odd, i FROM generate_series(1, 100) i;
SELECT bloomguard_track('o', 'k', 1e-9);
SQL
sound($node, 'a hash function in SQL', rel => 'o', rows => 100);
my $session = background();
is(says($session, "INSERT INTO o VALUES ('101', 101)"), '', 'a write in a session of before');
$session->query_safe("PREPARE ask AS SELECT bloomguard_might_contain('o', '101'::odd), bloomguard_might_contain('o', '-1'::odd)");
is(says($session, 'EXECUTE ask'), 't|f', 'a question in a session of before');
# another body that is as good
$node->safe_psql('postgres', <<'SQL');
CREATE OR REPLACE FUNCTION odd_hash64(k odd, seed bigint) RETURNS bigint LANGUAGE sql IMMUTABLE STRICT
	AS 'SELECT hashint4extended(-k::text::int, seed)';
SQL
is(says($session, "INSERT INTO o VALUES ('102', 102)"), '', 'replaced: writes go on');
sound($node, 'hash function replaced', rel => 'o', rows => 102);
is(says($session, 'EXECUTE ask'), 't|f', 'replaced: asked by the new one');
# and one that raises
$node->safe_psql('postgres', <<'SQL');
CREATE OR REPLACE FUNCTION odd_hash64(k odd, seed bigint) RETURNS bigint LANGUAGE plpgsql AS
	$$ BEGIN RAISE 'no hash today' USING ERRCODE = 'HV000'; END $$;
SQL
filter_is($node, 'postgres', 'o', "state = 'stale' AND last_error = 'no hash today'",
	'raises: the build says so');
is(says($session, 'EXECUTE ask'), 't|t', 'raises: maybe');
is(says($session, "DELETE FROM o WHERE n = 1"), '', 'raises: DELETE goes on');
for my $sql ("INSERT INTO o VALUES ('103', 103)", 'UPDATE o SET n = n WHERE n = 2')
{
	like(says($session, "\\set VERBOSITY verbose\n$sql"), qr/ERROR:  HV000: no hash today/,
		"raises: so does $sql");
}
is(says($session, 'SELECT count(*) FROM o'), '101', 'raises: nothing was written');
# untracked, there is nothing to hash
is(says($session, "SELECT bloomguard_untrack('o'); INSERT INTO o VALUES ('103', 103)"), '',
	'raises: untracked, writes go on');
# sound again, with the definition that the table had
$node->safe_psql('postgres', <<'SQL');
CREATE OR REPLACE FUNCTION odd_hash64(k odd, seed bigint) RETURNS bigint LANGUAGE sql IMMUTABLE STRICT
	AS 'SELECT hashint4extended(k::text::int, seed)';
SELECT bloomguard_track('o', 'k', 1e-9);
SQL
sound($node, 'hash function put right', rel => 'o', rows => 102);
is(says($session, "INSERT INTO o VALUES ('104', 104); SELECT bloomguard_check('o', '104'::odd)"),
	'maybe', 'put right: a session of before adds');
$node->safe_psql('postgres', <<'SQL');
CREATE OR REPLACE FUNCTION odd_hash64(k odd, seed bigint) RETURNS bigint LANGUAGE plpgsql AS
	$$ BEGIN RAISE 'no hash today'; END $$;
SQL
filter_is($node, 'postgres', 'o', "last_error = 'no hash today'", 'raises again');
$node->safe_psql('postgres', <<'SQL');
CREATE OR REPLACE FUNCTION odd_hash64(k odd, seed bigint) RETURNS bigint LANGUAGE sql IMMUTABLE STRICT
	AS 'SELECT hashint4extended(k::text::int, seed)';
SQL
sound($node, 'put right: by itself', rel => 'o', rows => 103);
$session->quit;
sound($node, 'in the end', rows => $rows{t});

$node->stop;
done_testing();
