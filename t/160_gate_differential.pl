# 160_gate_differential.pl: a query answers the same with the gate and without it
#
# Random queries over tracked tables of every kind, each run with bloomguard.gate
# off and on in one transaction: rows, counts and errors must be the same.  The
# first part of them runs on quiet data, under all isolation levels; the others
# while another session writes, commits, and has filters rebuilt, under REPEATABLE
# READ, so that the snapshots grow old.  What the test must not be is vacuous:
# EXPLAIN ANALYZE of a sample counts the gates and their answers.  [I1], [I3] to
# [I6], [I8] to [I16]
#
# Environment: GATE_QUERIES=100000 for more of them, GATE_SEED=7 for others,
# GATE_ONLY=n for one alone.  test/gate has the generator.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use lib "$FindBin::RealBin/../test/gate";

use BloomguardTest;
use GateRandom;
use GateSchema;
use GateStatements;
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $queries = $ENV{GATE_QUERIES} // 2000;
my $seed = $ENV{GATE_SEED} // 1;
my $batch = 200;
my $explain_every = 5;
my $max_shown = 20;

my $node = guard_node('gate', init => { extra => [ '--encoding=UTF8', '--no-locale' ] }, conf => <<'CONF');
jit = off
log_statement = none
log_min_error_statement = panic
deadlock_timeout = 50ms
max_worker_processes = 16
max_parallel_workers = 8
CONF

seed_with($seed, 0);
$node->safe_psql('postgres', GateSchema::script());
for my $t (@GateSchema::tracked)
{
	$node->safe_psql('postgres', "SELECT bloomguard_wait_ready('$t->{name}')") eq 't'
	  or die "$t->{name} is not ready";
}

my $rotations = $node->safe_psql('postgres', 'SELECT sum(rotations) FROM bloomguard_stats');

my %count;
my @differences;
my %text;

# sections of the output: what each statement gave
sub sections
{
	my ($output) = @_;
	my (%found, $at, @rows);

	for my $line (split /\n/, $output)
	{
		if ($line =~ /^@@ (\d+) (\w+)$/)
		{
			$at = $found{$1}{$2} = [];
			@rows = ();
		}
		elsif ($line =~ /^\@X (\d+)$/)
		{
			$at = $found{$1}{explain} = [];
			@rows = ();
		}
		elsif ($line =~ /^\@E (\w+) (\d+)$/)
		{
			push @$at, { state => $1, count => $2, rows => [@rows] } if $at;
			@rows = ();
		}
		else
		{
			push @rows, $line;
		}
	}
	return \%found;
}

# how the two differ; undef if they do not
sub difference
{
	my ($query, $off, $on) = @_;

	return 'nothing was answered' if !$off || !$on || @$off != @{ $query->{sql} } || @$on != @$off;
	for my $i (0 .. $#$off)
	{
		my ($without, $with) = ($off->[$i], $on->[$i]);

		# what the other session does may fail either
		return undef if grep { $_->{state} =~ /^(40001|40P01)$/ } $without, $with;
		next if $without->{state} ne '00000' && $with->{state} eq $without->{state};

		# a row that is never reached cannot raise an error of its values
		if ($without->{state} =~ /^22/)
		{
			$count{spared}++;
			return undef;
		}
		return "statement $i: $without->{state} off, $with->{state} on" if $without->{state} ne $with->{state};
		return "statement $i: $without->{count} rows off, $with->{count} on" if $without->{count} ne $with->{count};
		next if $query->{compare} eq 'count';
		my @rows_off = @{ $without->{rows} };
		my @rows_on = @{ $with->{rows} };

		if ($query->{compare} eq 'set')
		{
			@rows_off = sort @rows_off;
			@rows_on = sort @rows_on;
		}
		return join "\n", "statement $i: rows off", @rows_off, 'rows on', @rows_on
		  if join("\n", @rows_off) ne join("\n", @rows_on);
	}
	return undef;
}

sub judge
{
	my ($found, $queries) = @_;

	for my $n (sort { $a <=> $b } keys %$queries)
	{
		my $query = $queries->{$n};
		my $is = $found->{$n} // {};
		my $difference = difference($query, $is->{off}, $is->{on});

		$count{queries}++;
		$count{"kind $query->{kind}"}++;
		$count{failed}++ if grep { $_->{state} ne '00000' } @{ $is->{off} // [] };
		$count{rows}++ if grep { $_->{count} > 0 } @{ $is->{off} // [] };
		if (defined $difference)
		{
			push @differences,
			  "query $n: $difference\n" . join(";\n", @{ $query->{before} // [] }, @{ $query->{sql} });
			diag($differences[-1]) if @differences <= $max_shown;
		}
		next unless $is->{explain};
		my $explain = $is->{explain}[0];
		my $plan = join "\n", @{ $explain->{rows} };

		if ($explain->{state} ne '00000')
		{
			$count{'explain failed'}++;
			if ($is->{off} && $is->{off}[-1]{state} eq '00000' && $explain->{state} !~ /^40/)
			{
				push @differences, "query $n: EXPLAIN fails, $explain->{state}\n" . join(";\n", @{ $query->{sql} });
				diag($differences[-1]) if @differences <= $max_shown;
			}
			next;
		}
		$count{explained}++;
		$count{gated}++ if $plan =~ /Bloomguard Gate/;
		$count{absent}++ if $plan =~ /Absent\W+[1-9]/;
		$count{'maybe'}++ if $plan =~ /Maybe\W+[1-9]/;
		$count{parallel}++ if $plan =~ /Gather/;
	}
	return;
}

# queries of these numbers; the other session is busy meanwhile, or there is none
sub run_batch
{
	my ($busy, @numbers) = @_;
	my %batch;
	my $script = "SET gate.calls = 0;\nSET client_min_messages = error;\n";
	my $i = 0;

	for my $n (@numbers)
	{
		seed_with($seed, $n);
		my $begin = 'BEGIN ISOLATION LEVEL ' . ($busy ? 'REPEATABLE READ' : pick(('READ COMMITTED', 'REPEATABLE READ') x 3, 'SERIALIZABLE'));

		$script .= ($i ? "COMMIT;\n" : '') . "$begin;\n" if $i++ % ($busy ? 25 : 5) == 0;
		$batch{$n} = GateStatements::query();
		$text{$n} = GateStatements::block($n, $batch{$n}, $n % $explain_every == 0 || $ENV{GATE_ONLY});
		$script .= $text{$n};
	}
	$script .= "COMMIT;\n";
	diag($script) if $ENV{GATE_ONLY};

	my $other;
	if ($busy)
	{
		my $writes = join ";\n", map { GateStatements::disturbance() } 1 .. @numbers * 3;

		$other = IPC::Run::start(
			[ 'psql', '-XqAt', '-d', $node->connstr('postgres'), '-o', '/dev/null' ],
			'<', \"$writes;\n", '2>', '/dev/null');
	}
	my ($stdout, $stderr) = ('', '');
	$node->psql('postgres', $script, stdout => \$stdout, stderr => \$stderr, on_error_stop => 0);
	$other->finish if $other;
	judge(sections($stdout), \%batch);
	%text = ();
	return $stderr !~ /server closed|terminating connection/;
}

my @numbers = $ENV{GATE_ONLY} ? ($ENV{GATE_ONLY}) : (1 .. $queries);
my $quiet = int($queries * 0.6);
my $alive = 1;
while ($alive && @numbers)
{
	my $busy = $numbers[0] > $quiet;
	my @now = splice @numbers, 0, $batch;

	$alive = run_batch($busy, @now);
	note("$now[-1] queries, " . scalar(@differences) . ' differences') if $now[-1] % 2000 == 0;
}

ok($alive, 'the server is up');
is(scalar(@differences), 0, "no query of $count{queries} differs");
note(join "\n", map { "$_: $count{$_}" } sort keys %count);
note($node->safe_psql('postgres',
	'SELECT sum(probes) AS probes, sum(absent) AS absent, sum(maybe) AS maybe, sum(unguarded) AS unguarded FROM bloomguard_stats'));

unless ($ENV{GATE_ONLY})
{
	# that this test says something
	my $explained = $count{explained};

	cmp_ok($count{gated}, '>', 0.3 * $explained, "plans with a gate: $count{gated} of $explained");
	cmp_ok($count{absent}, '>', 0.12 * $explained, "gates that let nothing pass: $count{absent}");
	cmp_ok($count{maybe}, '>', 0.1 * $explained, "gates that let something pass: $count{maybe}");
	cmp_ok($count{rows}, '>', 0.3 * $count{queries}, "queries with rows: $count{rows}");
	cmp_ok($count{parallel}, '>', 0.01 * $explained, "parallel plans: $count{parallel}");
	cmp_ok($node->safe_psql('postgres', 'SELECT sum(rotations) FROM bloomguard_stats') - $rotations,
		'>', 10, 'filters were rebuilt meanwhile');
	cmp_ok($node->safe_psql('postgres', 'SELECT count(*) FROM r_hash WHERE id > 1000'),
		'>', 5, 'another session wrote');
	cmp_ok($count{failed}, '<', 0.15 * $count{queries}, "queries that fail either way: $count{failed}");
}

# the oracle
for my $t (@GateSchema::tracked)
{
	my $rel = $t->{name};

	$node->poll_query_until('postgres',
		"SELECT count(*) = 0 FROM bloomguard_filters WHERE relation = '$rel'::regclass AND state <> 'ready'"
	) or die "$rel is not ready";
	is($node->safe_psql('postgres', "SELECT sum(rows_absent) FROM bloomguard_verify('$rel')"),
		'0', "$rel: no row is called absent");
}

$node->stop;
done_testing();
