# 040_memory.pl: an arena that is full, a registry that is full
#
# What does not fit says so and answers maybe, disturbs nobody, and comes into
# service by itself when there is room.  A rotation that does not fit leaves the
# old generation in service.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use BloomguardTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = guard_node('memory',
	conf => "bloomguard.shared_memory = 1MB\nbloomguard.max_filters = 4\n");
my $kb = 1024;

sub track
{
	my ($rel, $rate, $capacity) = @_;

	$node->safe_psql('postgres', <<SQL);
CREATE TABLE $rel AS SELECT i AS id FROM generate_series(1, 1000) i;
SELECT bloomguard_track('$rel', 'id', $rate, $capacity);
SQL
	return;
}

sub column
{
	my ($rel, $what) = @_;

	return $node->safe_psql('postgres',
		"SELECT $what FROM bloomguard_filters WHERE relation = '$rel'::regclass");
}

sub bytes
{
	my ($capacity, $rate) = @_;

	return $node->safe_psql('postgres',
		"SELECT bytes FROM bloomguard_size($capacity, $rate)");
}

track('small', 1e-9, 10000);
sound($node, 'small', rel => 'small', rows => 1000);

# one that never fits
track('huge', 0.01, 2_000_000);
filter_is($node, 'postgres', 'huge', "state = 'no memory'", 'a filter that does not fit');
my $needs = int(bytes(2_000_000, 0.01) / $kb);
my $free = int(
	$node->safe_psql('postgres', 'SELECT largest_free_bytes FROM bloomguard_memory') / $kb);
my $reason = column('huge', 'reason');
like($reason, qr/bloomguard\.shared_memory/, 'the reason names the setting');
like($reason, qr/\b$needs kB/, 'what it needs');
like($reason, qr/\b$free kB/, 'what there is');
my ($missing) = $reason =~ /at least (\d+) kB/;
ok($missing >= $needs - $free && $missing <= $needs - $free + 2,
	"and how much is missing ($missing kB)");
is(answer($node, 'postgres', 'huge', -1), 'unguarded: no memory', 'it answers maybe');
is($node->safe_psql('postgres', "SELECT bloomguard_might_contain('huge', -1)"), 't',
	'it answers maybe, as a boolean');
is($node->safe_psql('postgres', "SELECT bloomguard_wait_ready('huge', '1 h')"), 'f',
	'nobody waits for it');
is( $node->safe_psql(
		'postgres',
		'INSERT INTO huge VALUES (2000); UPDATE huge SET id = 2001 WHERE id = 2000; SELECT count(*) FROM huge'
	),
	'1001',
	'writes go on');
like(slurp_file($node->logfile),
	qr/filter of relation "public\.huge" \(id\) cannot be built: needs \d+ kB/, 'it is logged');
sound($node, 'small, beside it', rel => 'small', rows => 1000);

# a rotation that does not fit: needs old and new at the same time
track('large', 0.01, 450_000);
sound($node, 'large', rel => 'large', rows => 1000);
my $generation = column('large', 'generation');
$node->safe_psql('postgres', 'INSERT INTO large VALUES (5000)');
$node->safe_psql('postgres', "SELECT bloomguard_rebuild('large')");
filter_is($node, 'postgres', 'large', "reason ~ 'bloomguard.shared_memory'",
	'a rotation that does not fit');
is(column('large', 'state, generation'), "ready|$generation", 'the old generation serves');
is(answer($node, 'postgres', 'large', 5000), 'maybe', 'with what was added');
$node->safe_psql('postgres', 'INSERT INTO large VALUES (5001)');
is(answer($node, 'postgres', 'large', 5001), 'maybe', 'and is added to');
sound($node, 'large, not rotated', rel => 'large', rows => 1002);

# one that would fit if another were not there
track('next', 0.01, 450_000);
filter_is($node, 'postgres', 'next', "state = 'no memory'", 'a filter that does not fit now');
is($node->safe_psql('postgres', 'SELECT filters, max_filters FROM bloomguard_memory'),
	'4|4', 'the registry is full');

# one filter too many, in another database, too
my $offset = -s $node->logfile;
track('fifth', 0.01, 10000);
$node->wait_for_log(qr/too many filters for setting "bloomguard\.max_filters"/, $offset);
like(column('fifth', 'state, reason'), qr/^no memory\|.*bloomguard\.max_filters/,
	'one filter too many says why');
is(answer($node, 'postgres', 'fifth', -1), 'unguarded: stale', 'it answers maybe');
is( $node->safe_psql('postgres',
		"SELECT count(*) FROM fifth WHERE NOT bloomguard_might_contain('fifth', id)"),
	'0',
	'its rows are not absent');
$node->safe_psql('postgres', 'INSERT INTO fifth VALUES (5000)');
sound($node, 'small, beside those', rel => 'small', rows => 1000);

# room is found by itself: of the arena and of the registry
$node->safe_psql('postgres', "SELECT bloomguard_untrack('large')");
sound($node, 'next', rel => 'next', rows => 1000);
sound($node, 'fifth', rel => 'fifth', rows => 1001);
is(answer($node, 'postgres', 'large', 1), 'unguarded: no filter', 'the untracked one is gone');
is(column('huge', 'state'), 'no memory', 'what never fits still does not');

# a rolled back untrack leaves everything, DROP TABLE makes room, too
$node->safe_psql('postgres', "BEGIN; SELECT bloomguard_untrack('next'); ROLLBACK");
sound($node, 'untrack rolled back', rel => 'next', rows => 1000);
$node->safe_psql('postgres', 'DROP TABLE next');
ok( $node->poll_query_until(
		'postgres', 'SELECT filters = 3 FROM bloomguard_memory'),
	'a dropped table gives its place back');
is( $node->safe_psql('postgres',
		'SELECT used_bytes = (SELECT sum(bytes) FROM bloomguard_filters) FROM bloomguard_memory'),
	't',
	'and its memory');

# what did not fit fits after it was asked for less
$node->safe_psql('postgres', "SELECT bloomguard_track('huge', 'id', 0.01, 100000)");
sound($node, 'huge, asked for less', rel => 'huge', rows => 1001);
sound($node, 'small, in the end', rel => 'small', rows => 1000);

$node->stop;
done_testing();
