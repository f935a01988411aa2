# 090_dump_restore.pl: the trigger is the definition, so dumps carry it [B22]
#
# A data-only restore with --disable-triggers loads rows unseen and turns ALWAYS
# into ordinary: that is noticed and put right by itself [B3].

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use BloomguardTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = guard_node('dump_restore');
my $dir = PostgreSQL::Test::Utils::tempdir;

$node->safe_psql('postgres', 'CREATE DATABASE source');
$node->safe_psql('source', <<'SQL');
CREATE SCHEMA guard;
CREATE EXTENSION bloomguard SCHEMA guard;
SET search_path = public, guard;
CREATE TABLE t (gone int, id bigint, note text);
ALTER TABLE t DROP COLUMN gone;
INSERT INTO t SELECT i, 'x' FROM generate_series(1, 1000) i;
SELECT bloomguard_track('t', 'id', 1e-9, 20000);
CREATE SCHEMA "Odd";
CREATE TABLE "Odd"."Mixed, case" ("Tenant" int, "e ""mail" text);
INSERT INTO "Odd"."Mixed, case" SELECT i % 7, 'user ' || i FROM generate_series(1, 500) i;
SELECT bloomguard_track('"Odd"."Mixed, case"', '"Tenant", "e ""mail"', 1e-9);
CREATE TABLE parts (id bigint, note text) PARTITION BY RANGE (id);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (500);
CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM (500) TO (5000);
INSERT INTO parts SELECT i, 'x' FROM generate_series(1, 1000) i;
SELECT bloomguard_track('parts', 'id', 1e-9);
SQL

sub sql
{
	my ($db, $sql) = @_;

	return $node->safe_psql($db, "SET search_path = public, guard; $sql");
}

# the oracle, for all three
sub all_sound
{
	my ($label, $db) = @_;

	for my $rel ('t', '"Odd"."Mixed, case"', 'parts')
	{
		is(sql($db, "SELECT bloomguard_wait_ready('$rel')"), 't', "$label, $rel: ready");
		is( sql($db,
				"SELECT rows_absent, rows_scanned = (SELECT count(*) FROM $rel), rows_scanned > 0 FROM bloomguard_verify('$rel')"
			),
			'0|t|t',
			"$label, $rel: no row is called absent");
	}
	is( sql($db, <<'SQL'), 'absent|absent|absent|maybe', "$label: keys that are not there");
SELECT bloomguard_check('t', -1), bloomguard_check('parts', -1),
	bloomguard_check('"Odd"."Mixed, case"', '"Tenant", "e ""mail"', 1, 'nobody'),
	bloomguard_check('"Odd"."Mixed, case"', '"Tenant", "e ""mail"', 1, 'user 1');
SQL
	is( sql($db, "SELECT DISTINCT tgenabled FROM pg_trigger WHERE tgname LIKE 'bloomguard%'"),
		'A', "$label: all triggers are ENABLE ALWAYS");
	return;
}

my $definitions = 'SELECT relation, key_columns, false_positive_rate, capacity >= 10000 '
  . 'FROM bloomguard_filters ORDER BY relation::text';

sub fresh
{
	my ($db) = @_;

	$node->safe_psql('postgres', "CREATE DATABASE $db TEMPLATE template0");
	return $node->connstr($db);
}

all_sound('source', 'source');
my $expected = sql('source', $definitions);
my $source = $node->connstr('source');

# plain
$node->command_ok([ 'pg_dump', '-f', "$dir/plain.sql", '-d', $source ], 'pg_dump, plain');
$node->command_ok(
	[ 'psql', '-XqAt', '-v', 'ON_ERROR_STOP=1', '-o', "$dir/out", '-f', "$dir/plain.sql", '-d', fresh('plain') ],
	'psql');
all_sound('plain', 'plain');
is(sql('plain', $definitions), $expected, 'plain: same definitions');

# custom, restored by two processes
$node->command_ok([ 'pg_dump', '-Fc', '-f', "$dir/custom", '-d', $source ], 'pg_dump, custom');
$node->command_ok(
	[ 'pg_restore', '--exit-on-error', '-j2', '-d', fresh('custom'), "$dir/custom" ],
	'pg_restore -j2');
all_sound('custom', 'custom');
is(sql('custom', $definitions), $expected, 'custom: same definitions');

# schema first, then data with triggers disabled: rows that no trigger saw
$node->command_ok(
	[ 'pg_restore', '--exit-on-error', '--schema-only', '-d', fresh('data'), "$dir/custom" ],
	'pg_restore --schema-only');
is(sql('data', "SELECT bloomguard_wait_ready('$_')"), 't', "empty $_ is ready")
  for ('t', '"Odd"."Mixed, case"', 'parts');
is(sql('data', "SELECT bloomguard_check('t', 1), bloomguard_check('parts', 999)"),
	'absent|absent', 'its filters are empty');
my $offset = -s $node->logfile;
$node->command_ok(
	[
		'pg_restore', '--exit-on-error', '--data-only', '--disable-triggers',
		'-d', $node->connstr('data'), "$dir/custom"
	],
	'pg_restore --data-only --disable-triggers');
is( sql('data', <<'SQL'), '0|0', 'at once: no row is absent');
SELECT (SELECT count(*) FROM t WHERE NOT bloomguard_might_contain('t', id)),
	(SELECT count(*) FROM parts WHERE NOT bloomguard_might_contain('parts', id));
SQL
all_sound('data', 'data');
like(slurp_file($node->logfile, $offset),
	qr/trigger "bloomguard_id" of relation "t" was set to ENABLE ALWAYS again/,
	'data: the repair is logged');

# one table, into a database that has the extension
fresh('single');
$node->safe_psql('single', 'CREATE SCHEMA guard; CREATE EXTENSION bloomguard SCHEMA guard');
$node->command_ok(
	[ 'pg_restore', '--exit-on-error', '-t', 't', '-T', 't bloomguard_id', '-d', $node->connstr('single'), "$dir/custom" ],
	'pg_restore of one table and its trigger');
is(sql('single', "SELECT count(*) FROM bloomguard_filters"), '1', 'one table is tracked');
is(sql('single', "SELECT bloomguard_wait_ready('t')"), 't', 'single: ready');
is(sql('single', "SELECT rows_scanned, rows_absent FROM bloomguard_verify('t')"),
	'1000|0', 'single: no row is called absent');
$node->command_ok([ 'pg_dump', '-t', 't', '--clean', '-f', "$dir/single.sql", '-d', $source ],
	'pg_dump of one table');
$node->command_ok(
	[ 'psql', '-XqAt', '-v', 'ON_ERROR_STOP=1', '-o', "$dir/out", '-f', "$dir/single.sql", '-d', $node->connstr('single') ],
	'over the one that is there');
is(sql('single', "SELECT bloomguard_wait_ready('t')"), 't', 'single, again: ready');
is(sql('single', "SELECT rows_scanned, rows_absent FROM bloomguard_verify('t')"),
	'1000|0', 'single, again: no row is called absent');
is(sql('single', "SELECT bloomguard_check('t', -1)"), 'absent', 'single, again: absent');

$node->stop;
done_testing();
