# BloomguardTest.pm: what the TAP tests share
#
# A node that is preloaded and quick to notice things, tables of few rows that
# take many pages, builds that last as long as a test wants, and the oracle: a
# filter that is in service, has every row of its table, and still tells a key
# that is not there.

package BloomguardTest;

use strict;
use warnings;

use Exporter 'import';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

our @EXPORT = qw(
  guard_node guard_conf make_table answer filter_is sound
  set_pace slow_builds fast_builds build_runs end_builds pass_time log_count
);

# For filters that single keys are asked of: with it, a wrong "maybe" is not to
# be expected in the lifetime of this project.
our $sharp = '1e-9';

sub guard_conf
{
	return <<'CONF';
shared_preload_libraries = 'bloomguard'
bloomguard.naptime = 1s
autovacuum = off
CONF
}

# A started node with the extension in database postgres.  init => parameters of
# init(), conf => more settings.
sub guard_node
{
	my ($name, %p) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);

	$node->init(%{ $p{init} // {} });
	$node->append_conf('postgresql.conf', guard_conf() . ($p{conf} // ''));
	$node->start;
	$node->safe_psql('postgres', 'CREATE EXTENSION bloomguard');
	return $node;
}

# Table with keys 1 .. rows, four rows to a page, tracked unless track => 0
sub make_table
{
	my ($node, $db, $rel, $rows, %p) = @_;

	$node->safe_psql($db, <<SQL);
CREATE TABLE $rel (id bigint, filler text);
ALTER TABLE $rel ALTER filler SET STORAGE PLAIN;
INSERT INTO $rel SELECT i, repeat('x', 1900) FROM generate_series(1, $rows) i;
SQL
	$node->safe_psql($db, "SELECT bloomguard_track('$rel', 'id', $sharp)")
	  if $p{track} // 1;
	return;
}

# what bloomguard_check() says of a key
sub answer
{
	my ($node, $db, $rel, $key) = @_;

	return $node->safe_psql($db, "SELECT bloomguard_check('$rel', '$key')");
}

# wait until the relation's filters all meet a condition on bloomguard_filters
sub filter_is
{
	my ($node, $db, $rel, $condition, $label) = @_;

	return ok(
		$node->poll_query_until(
			$db,
			"SELECT count(*) > 0 AND count(*) = count(*) FILTER (WHERE $condition) "
			  . "FROM bloomguard_filters WHERE relation = '$rel'::regclass"),
		$label);
}

# The oracle.  db, rel; rows => exact number; absent => a key that is not there
sub sound
{
	my ($node, $label, %p) = @_;
	my $db = $p{db} // 'postgres';
	my $rel = $p{rel} // 't';
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	filter_is($node, $db, $rel, "state = 'ready'", "$label: filter is ready");
	is( $node->safe_psql(
			$db,
			"SELECT rows_absent, rows_scanned - (SELECT count(*) FROM $rel) "
			  . "FROM bloomguard_verify('$rel')"),
		'0|0',
		"$label: no row is called absent");
	is($node->safe_psql($db, "SELECT count(*) FROM $rel"),
		$p{rows}, "$label: rows as expected")
	  if defined $p{rows};
	is(answer($node, $db, $rel, $p{absent} // -1),
		'absent', "$label: a key that is not there is absent");
	return;
}

# set bloomguard.cost_delay, and see that new processes have it
sub set_pace
{
	my ($node, $delay, $limit) = @_;

	$node->append_conf('postgresql.conf',
		"bloomguard.cost_delay = '$delay'\nbloomguard.cost_limit = $limit\n");
	$node->reload;
	$node->poll_query_until('postgres',
		"SELECT setting = '$delay' FROM pg_settings WHERE name = 'bloomguard.cost_delay'"
	) or die "setting not in force";
	return;
}

# from the next build on: a tenth of a second for each page
sub slow_builds { set_pace($_[0], 100, 1); return; }
sub fast_builds { set_pace($_[0], 0, 200); return; }

# wait until a build reads pages, of a database if named
sub build_runs
{
	my ($node, $datname) = @_;

	return $node->poll_query_until('postgres',
		"SELECT count(*) > 0 FROM bloomguard_progress WHERE phase = 'scanning table' AND blocks_done > 0"
		  . (defined $datname ? " AND datname = '$datname'" : ''));
}

# let no build go on at a slow pace
sub end_builds
{
	my ($node) = @_;

	fast_builds($node);
	$node->safe_psql('postgres',
		'SELECT pg_terminate_backend(pid) FROM bloomguard_progress');
	return;
}

# let the server live on for that many seconds
sub pass_time
{
	my ($node, $seconds) = @_;
	my $until = $node->safe_psql('postgres',
		"SELECT clock_timestamp() + interval '$seconds s'");

	return $node->poll_query_until('postgres',
		"SELECT clock_timestamp() > '$until'");
}

# how often does the log have it?
sub log_count
{
	my ($node, $pattern, $offset) = @_;
	my @found = slurp_file($node->logfile, $offset // 0) =~ /$pattern/g;

	return scalar @found;
}

1;
