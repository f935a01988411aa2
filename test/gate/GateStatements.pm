# GateStatements.pm: random statements of every kind, and how to run them
#
# query() makes one: a hash with
#	sql			statements that belong together, run once with the gate off and once
#				with it on
#	compare		how the rows of each compare; see GateQueries.pm
#	explain		what EXPLAIN takes, if it can be explained
#	before		statements run once, before both
#	kind		for statistics

package GateStatements;

use strict;
use warnings;

use GateQueries;
use GateRandom;
use GateSchema;

sub all_columns { return ('id', (map { $_->[0] } @{ $_[0]{columns} }), 'g', 'v', 's'); }

# the table's contents, as far as they matter
sub state_of
{
	my ($t) = @_;

	return "SELECT count(*), sum(id::bigint * (v + 3)), sum(g) FROM $t->{name}";
}

sub write_statement
{
	my $t = pick(grep { !$_->{fixed} && $_->{name} ne 'feed' } @GateSchema::tables);
	my $me = [ alias(), $t ];
	my ($a, $name) = ($me->[0], $t->{name});
	my $where = conditions(@$me);
	my $other = [ alias(), partner_of($t) ];
	my $draw = rnd(100);
	my $column = pick(@{ $t->{columns} });
	my $set = chance(30) ? "$column->[0] = " . literal($column->[1]) : chance(20) && !$t->{by} ? 'g = 1' : "v = ($a.v + 1) % 20";
	my $b = $other->[0];

	return "UPDATE $name $a SET $set WHERE $where RETURNING $a.id, $a.v" if $draw < 25;
	return "DELETE FROM $name $a WHERE $where RETURNING $a.id" if $draw < 42;
	return "UPDATE $name $a SET $set FROM $other->[1]{name} $b WHERE " . join_condition($me, $other)
	  . " AND $b.id < 40 RETURNING $a.id"
	  if $draw < 52;
	return "DELETE FROM $name $a USING $other->[1]{name} $b WHERE " . join_condition($me, $other)
	  . ' AND ' . conditions(@$other) . " RETURNING $a.id"
	  if $draw < 60;
	if ($draw < 72)
	{
		my $columns = join ', ', all_columns($t);
		my $values = join ', ', map { $_ eq 'id' ? "$a.id + 100000" : "$a.$_" } all_columns($t);
		my $conflict = $t->{by} || $t->{view} ? '' : pick('', " ON CONFLICT DO NOTHING");

		return "INSERT INTO $name ($columns) SELECT $values FROM $name $a WHERE $where$conflict RETURNING id";
	}
	if ($draw < 86 && !$t->{view})
	{
		my $source = chance(50) ? "(SELECT * FROM feed WHERE id < 40)" : '(SELECT DISTINCT ON (v) * FROM feed ORDER BY v, id)';
		my $feed = [ $b, $GateSchema::table{feed} ];

		return ("MERGE INTO $name $a USING $source $b ON " . join_condition($me, $feed)
			  . pick('', '', ' AND ' . conditions(@$me)) . ' WHEN MATCHED AND ' . "$a.v > 4"
			  . pick(' THEN DELETE', ' THEN UPDATE SET v = 3') . ' WHEN NOT MATCHED THEN DO NOTHING', state_of($t));
	}
	return "WITH w AS (" . pick("DELETE FROM $name $a WHERE $where RETURNING *", "UPDATE $name $a SET v = 1 WHERE $where RETURNING $a.*")
	  . ') SELECT count(*), min(id) FROM w';
}

sub writes
{
	my @sql = write_statement();

	push @sql, write_statement() if chance(15);
	return { kind => 'write', sql => \@sql, compare => 'set', explain => $sql[0] };
}

# our own rows must be seen at once
sub writes_and_reads
{
	my $t = pick(grep { $_->{name} !~ /detail|master/ } @GateSchema::tracked);
	my $a = alias();
	my $column = pick(@{ $t->{columns} });
	my $value = literal($column->[1], absent_number());
	my $read = "SELECT $a.id FROM $t->{name} $a WHERE $a.$column->[0] = $value";
	my $columns = join ', ', all_columns($t);
	my $values = join ', ', map { $_ eq 'id' ? 'id + 200000' : $_ eq $column->[0] ? $value : $_ } all_columns($t);

	return {
		kind => 'read own',
		compare => 'set',
		sql => [
			$read,
			chance(50) ? "UPDATE $t->{name} SET $column->[0] = $value WHERE id = " . (1 + rnd(130))
			: "INSERT INTO $t->{name} ($columns) SELECT $values FROM $t->{name} WHERE id < 4",
			$read,
			state_of($t) ] };
}

sub selects
{
	my ($mode, $sql) = @{ select_statement() };

	return { kind => 'select', sql => [$sql], compare => $mode, explain => $sql };
}

# A cursor is planned without gates, hence with one and the same plan: its rows
# come in the same order.
sub cursors
{
	my ($mode, $sql) = @{ chance(50) ? select_statement() : plain_select() };
	my @sql;

	if (chance(30))
	{
		my $t = pick(grep { !$_->{view} } @GateSchema::tables);
		my $a = alias();

		@sql = ("DECLARE c CURSOR FOR SELECT $a.id FROM $t->{name} $a WHERE " . conditions($a, $t) . pick('', ' FOR UPDATE'),
			'FETCH ' . pick(1, 2, 'NEXT') . ' FROM c',
			pick("UPDATE $t->{name} SET v = 7", "DELETE FROM $t->{name}") . ' WHERE CURRENT OF c RETURNING id',
			'FETCH 2 FROM c');
	}
	else
	{
		@sql = ('DECLARE c ' . pick('', 'SCROLL ', 'SCROLL ', 'NO SCROLL ', 'BINARY ') . "CURSOR FOR $sql",
			map { pick('FETCH 2', 'FETCH ALL', 'FETCH NEXT', 'FETCH BACKWARD 1', 'FETCH PRIOR', 'MOVE LAST',
					'FETCH ABSOLUTE 2', 'FETCH FIRST', 'MOVE 1', 'FETCH RELATIVE 0') . ' FROM c' } 1 .. 2 + rnd(4));
	}
	return { kind => 'cursor', sql => \@sql, compare => 'list' };
}

sub prepared
{
	fresh(1);
	my ($mode, $sql) = chance(75) ? @{ select_statement() } : ('set', write_statement());
	my @params = @{ parameters() };
	my $types = @params && chance(70) ? ' (' . join(', ', map { $_->[0] } @params) . ')' : '';
	my $prepare = "PREPARE p$types AS $sql";
	my @execute = map {
		'EXECUTE p'
		  . (@params
			? ' (' . join(', ', map { chance(5) ? 'NULL' : $_->[2] ? array_of($_->[1]) : literal($_->[1]) } @params) . ')'
			: '')
	} 1 .. pick(1, 2, 3, 3, 7);
	fresh(0);

	# kept across the change of the setting, or made anew
	return { kind => 'prepared', compare => $mode, before => [$prepare], sql => \@execute, explain => $execute[0] } if chance(50);
	return { kind => 'prepared', compare => $mode, sql => [ $prepare, @execute ], explain => $execute[0] };
}

sub functions
{
	my $t = pick(@GateSchema::tracked, $GateSchema::table{v_barrier});
	my ($name, $type) = ($t->{name}, $t->{columns}[0][1]);
	my $draw = rnd(100);
	my $sql =
		$draw < 30 ? "SELECT pl_$name(" . literal($type) . '), pl_' . $name . '(' . literal($type) . ')'
	  : $draw < 50 ? "SELECT f.id, pl_$name(f.k_$type) FROM feed f WHERE f.id < 6"
	  : $draw < 70 ? "SELECT * FROM sql_$name(" . literal($type) . ')'
	  : $draw < 85 ? "SELECT f.id, i FROM feed f, sql_$name(f.k_$type) i WHERE f.id < 20"
	  :				 undef;
	return { kind => 'function', sql => [$sql], compare => 'set', explain => $sql } if $sql;

	my (undef, $query) = @{ select_statement() };
	return {
		kind => 'function',
		compare => 'list',
		sql => [
			"DO \$do\$DECLARE r record; n int := 0; BEGIN FOR r IN $query LOOP n := n + 1; END LOOP; "
			  . "PERFORM set_config('gate.rows', n::text, true); END\$do\$",
			"SELECT current_setting('gate.rows', true)" ] };
}

# How often a policy is asked tells whether a gate stood before it; what a
# volatile key is depends on how often it is evaluated.
sub counted
{
	my $name = pick('secured', 'secured', 'p_int4', 'r_range', 'v_barrier', 'secured');
	my $n = pick(absent_number(), absent_number(), present_number());

	# a function that might leak something has to wait for the policy
	my $where =
		$name !~ /secured|v_barrier/ ? 'a.k = gate_turning(' . present_number() . ', ' . absent_number() . ')'
	  : chance(70) ? "a.k = stable_int4('$n')"
	  : 'a.k = ' . value('int4');

	return {
		kind => 'counted',
		compare => 'set',
		role => 1,
		sql => [ "SELECT a.id FROM $name a WHERE $where", "SELECT current_setting('gate.calls')" ] };
}

sub query
{
	my $draw = rnd(100);

	fresh(0);
	return selects() if $draw < 62;
	return writes() if $draw < 74;
	return writes_and_reads() if $draw < 76;
	return cursors() if $draw < 81;
	return prepared() if $draw < 93;
	return functions() if $draw < 97;
	return counted();
}

# the planner's settings, anew for each query
sub settings
{
	my ($query) = @_;
	my %set;

	for (qw(nestloop hashjoin mergejoin seqscan indexscan indexonlyscan bitmapscan material memoize sort
		hashagg partition_pruning incremental_sort parallel_append))
	{
		$set{"enable_$_"} = 'off' if chance(12);
	}
	for (qw(partitionwise_join partitionwise_aggregate))
	{
		$set{"enable_$_"} = 'on' if chance(25);
	}
	$set{plan_cache_mode} = pick(qw(force_generic_plan force_generic_plan force_custom_plan auto));
	$set{constraint_exclusion} = 'on' if chance(5);
	$set{from_collapse_limit} = 1 if chance(5);
	$set{join_collapse_limit} = 1 if chance(5);
	$set{work_mem} = 64 if chance(5);
	if (chance(9))
	{
		@set{qw(parallel_setup_cost parallel_tuple_cost min_parallel_table_scan_size min_parallel_index_scan_size)} =
		  (0) x 4;
		$set{parallel_leader_participation} = 'off' if chance(30);
	}
	else
	{
		$set{max_parallel_workers_per_gather} = 0;
	}
	my @sql = map { "SET LOCAL $_ = $set{$_}" } sort keys %set;
	# its name changed in version 16
	push @sql, "DO \$\$BEGIN PERFORM set_config(name, '" . pick('on', 'regress') . "', true) FROM pg_settings "
	  . "WHERE name IN ('force_parallel_mode', 'debug_parallel_query'); END\$\$"
	  if chance(2);
	push @sql, 'SET LOCAL ROLE gate_user' if $query->{role} || chance(10);
	return @sql;
}

# script for psql that runs query number $n; markers tell what is what
sub block
{
	my ($n, $query, $explain) = @_;
	my $settings = join '\; ', settings($query);
	my $sql = "SAVEPOINT q\\; $settings;\n";

	$sql .= "$_;\n" for @{ $query->{before} // [] };
	$sql .= "SAVEPOINT r;\n";
	for my $side (chance(50) ? qw(off on) : qw(on off))
	{
		$sql .= "\\echo \@\@ $n $side\nSET LOCAL bloomguard.gate = $side\\; SET gate.calls = 0;\n";
		$sql .= "$_;\n\\echo \@E :SQLSTATE :ROW_COUNT\n" for @{ $query->{sql} };
		$sql .= "ROLLBACK TO r;\n";
		$sql .= "DEALLOCATE ALL;\n" if $query->{kind} eq 'prepared' && !$query->{before};
	}
	if ($explain && $query->{explain})
	{
		my $format = chance(15) ? pick('FORMAT JSON, ', 'FORMAT XML, ', 'FORMAT YAML, ', 'VERBOSE, ') : '';

		$sql .= "SET LOCAL bloomguard.gate = on;\n";
		$sql .= "$query->{sql}[0];\n" if $query->{kind} eq 'prepared' && !$query->{before};
		$sql .= "\\echo \@X $n\nEXPLAIN (${format}ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) $query->{explain};\n\\echo \@E :SQLSTATE :ROW_COUNT\n";
	}
	$sql .= "ROLLBACK TO q;\n";
	$sql .= "DEALLOCATE ALL;\n" if $query->{kind} eq 'prepared';
	return $sql;
}

my $new_id = 1000;

# one of the statements that another session commits meanwhile
sub disturbance
{
	my $t = pick(@GateSchema::busy);
	my ($name, $draw) = ($t->{name}, rnd(100));
	my $column = pick(@{ $t->{columns} });
	my $some = '(SELECT id FROM ' . $name . ' ORDER BY hashint4(id + ' . rnd(10000) . ') LIMIT ' . (1 + rnd(3)) . ')';

	return "INSERT INTO $name VALUES " . GateSchema::row($t, $new_id++) if $draw < 35;
	return "UPDATE $name SET $column->[0] = " . literal($column->[1]) . " WHERE id IN $some" if $draw < 65;
	return "DELETE FROM $name WHERE id IN $some" if $draw < 92 || $t->{untracked};
	return "VACUUM $name" if $draw < 94;
	return "SELECT bloomguard_rebuild('$name')";
}

1;
