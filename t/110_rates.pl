# 110_rates.pl: the false-positive rate, measured, at the capacity
#
# One million keys of four kinds, filters for 1 % and for 0.1 %, asked for keys
# that no row has.  The measured rate must lie within 5 % of the target.
#
# How many keys have to be asked: with N keys the relative deviation of the
# measured rate is 1 / sqrt(N p), and 0.4 % of the 5 % is the target's own
# distance from the true rate (k is a whole number).  With N p = 9,000 the limit
# is 4.36 standard deviations away (1.3e-5, for both sides), with N p = 20,000
# more than 6.  Four filters of the first kind and eight measurements by
# bloomguard_verify() (N p = 10,000, 4.6 and more) fail by chance in fewer than
# one of ten thousand runs.  The hash seed is another one in every run.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use BloomguardTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use POSIX qw(ceil floor);

my $node = guard_node('rates', conf => <<'CONF');
bloomguard.max_workers = 2
shared_buffers = 128MB
max_wal_size = 4GB
jit = off
CONF
my $n = 1_000_000;
my %asked = (0.01 => 2_000_000, 0.001 => 9_000_000);

# a key of each kind, made of a number
my %key = (
	sequential => ['bigint', 'i'],
	random => ['bigint', 'hashint8extended(i, 4711)'],
	uuid => ['uuid', 'md5(i::text)::uuid'],
	text => ['text', q('customer-' || i)],
);

for my $kind (sort keys %key)
{
	my ($type, $expression) = @{ $key{$kind} };

	# one filter is filled by the trigger, one by a build
	$node->safe_psql('postgres', <<SQL);
CREATE TABLE $kind (key $type, again $type);
SELECT bloomguard_track('$kind', 'key', 0.01, $n);
SELECT bloomguard_wait_ready('$kind');
INSERT INTO $kind SELECT k, k FROM (SELECT $expression AS k FROM generate_series(1, $n) i OFFSET 0) s;
SQL
	# so that the table's size is known exactly: the capacity given is a minimum
	$node->safe_psql('postgres', "VACUUM $kind");
	$node->safe_psql('postgres', "SELECT bloomguard_track('$kind', 'again', 0.001, $n)");
}

# one measurement: a backend counts the keys that pass
sub measure
{
	my ($kind, $column, $rate) = @_;
	my $expression = $key{$kind}[1];
	my ($from, $to) = ($n + 1, $n + $asked{$rate});

	return <<SQL;
SELECT '$kind', $rate, count(*) FILTER (WHERE bloomguard_might_contain('$kind', '$column', $expression))::float8 / $asked{$rate}
FROM generate_series($from, $to) i;
SQL
}

my @sessions;

for my $kind (sort keys %key)
{
	is($node->safe_psql('postgres', "SELECT bloomguard_wait_ready('$kind', '3 min')"), 't',
		"$kind: filters are ready");
	my %column = (0.01 => 'key', 0.001 => 'again');
	for my $rate (0.01, 0.001)
	{
		# m and k as promised
		my $ln2 = log(2);
		my $m = 512 * ceil(ceil(-$n * log($rate) / $ln2**2) / 512);
		my $k = floor($m / $n * $ln2 + 0.5);

		is( $node->safe_psql('postgres',
				"SELECT bits, hashes, bytes, capacity, generation, keys_added > 0.95 * $n FROM bloomguard_filters WHERE relation = '$kind'::regclass AND key_columns = '$column{$rate}'"
			),
			"$m|$k|" . $m / 8 . "|$n|1|t",
			"$kind, $rate: m = $m, k = $k");
	}
}

# two processes, each two kinds
sub measure_all
{
	my @kinds = @_;
	my $sql = '';

	for my $kind (@kinds)
	{
		$sql .= measure($kind, 'key', 0.01) . measure($kind, 'again', 0.001);
		$sql .= "SELECT '$kind verified', CASE key_columns_verified WHEN 'key' THEN 0.01 ELSE 0.001 END, "
		  . "false_positive_rate, rows_absent, rows_scanned, random_keys FROM bloomguard_verify('$kind');\n";
	}
	return $sql;
}

my @runs;
for my $kinds ([ 'sequential', 'uuid' ], [ 'random', 'text' ])
{
	my ($out, $err) = ('', '');
	my $sql = measure_all(@$kinds);

	push @runs, {
		handle => IPC::Run::start(
			[ 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr('postgres') ],
			'<', \$sql, '>', \$out, '2>', \$err),
		out => \$out,
		err => \$err
	};
}
my $lines = 0;
for my $run (@runs)
{
	ok($run->{handle}->finish, 'measured') or diag(${ $run->{err} });
	for my $line (split /\n/, ${ $run->{out} })
	{
		my ($kind, $rate, $measured, $absent, $scanned, $random) = split /\|/, $line;

		$lines++;
		ok(abs($measured / $rate - 1) <= 0.05,
			sprintf('%s, target %g: measured %.6f (%+.2f %%)',
				$kind, $rate, $measured, 100 * ($measured / $rate - 1)));
		next unless defined $absent;
		is("$absent|$scanned", "0|$n", "$kind, $rate: no row is called absent");
		cmp_ok($random * $rate, '>=', 9_999, "$kind, $rate: with enough random keys");
	}
}
is($lines, 16, 'sixteen measurements');
is( $node->safe_psql('postgres',
		"SELECT count(*) FROM bloomguard_filters WHERE abs(estimated_rate / false_positive_rate - 1) > 0.05"),
	'0', 'the rate estimated from the fill agrees');

$node->stop;
done_testing();
