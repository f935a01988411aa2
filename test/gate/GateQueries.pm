# GateQueries.pm: random SELECTs for t/160_gate_differential.pl
#
# select_statement() makes one: how its rows may be compared, and its text.  Rows
# compare as "set" (in any order), "list" (in this order) or by their "count".
#
# What a query answers must not depend on its plan: rows are cut off in a total
# order only, and one of several values that are equal, but not the same, is never
# shown.

package GateQueries;

use strict;
use warnings;

use Exporter 'import';

use GateRandom;
use GateSchema;

our @EXPORT = qw(fresh parameters alias literal array_of value conditions bound any_table
  partner_of join_condition plain_select select_statement);

# where literals go when they are to become parameters
my $params;
my $aliases;

# which types may a literal have for a column of this family?
my %literal_types = (
	int => [qw(int2 int4 int8 int4 int8 numeric float8 gate_int)],
	text => [qw(text varchar name bpchar text varchar gate_text)],
	date => [qw(date date timestamptz timestamp)],
	tstz => [qw(timestamptz timestamptz date)],
	num => [qw(numeric numeric int4 float8)],
	uuid => ['uuid'],
	enum => ['gate_enum'],
	arr => ['int4[]']);

sub alias { return chr(ord('a') + $aliases++ % 26) . ($aliases > 26 ? int($aliases / 26) : ''); }

sub literal { return GateSchema::spell($_[0], $_[1] // some_number()); }

sub array_of
{
	my ($type) = @_;
	my @elements = map { chance(15) ? 'NULL' : literal($type) } 1 .. rnd(5);
	my $sqltype = GateSchema::declared($type);

	return chance(50) ? "'{}'::${sqltype}[]" : "NULL::${sqltype}[]" if chance(6);
	return "ARRAY[[" . literal($type) . ', ' . literal($type) . "], [" . literal($type) . ", NULL]]::${sqltype}[]"
	  if chance(4);
	return "'{NULL}'::${sqltype}[]" if chance(2);
	return "gate_many(" . pick(3, 900, 1023, 1024, 1500) . ", " . some_number() . ")" if $type =~ /^int[48]$/ && chance(12);
	return "gate_many(" . pick(3, 900, 1500) . ", " . literal($type) . "::text)" if $type =~ /^(text|c|ci)$/ && chance(8);
	return 'ARRAY[' . join(', ', @elements) . "]::${sqltype}[]";
}

# a value, perhaps a parameter; $plainly: nothing but that
sub value
{
	my ($type, $plainly) = @_;
	my $family = GateSchema::family($type);

	if ($params && chance(75))
	{
		my $declared = chance(30) ? 'unknown' : chance(60) ? GateSchema::declared($type) : pick(@{ $literal_types{$family} });

		push @$params, [ $declared, $type, 0 ];
		return '$' . @$params;
	}
	my $literal = literal($type);
	return $literal if $plainly || chance(55);
	my $draw = rnd(100);
	return "$literal\::" . pick(@{ $literal_types{$family} }) if $draw < 50;
	return "stable_$type($literal)" if $draw < 68;
	return "volatile_$type($literal)" if $draw < 74;
	return "(SELECT $literal\::" . GateSchema::declared($type) . ')' if $draw < 80;
	return "(SELECT k_$type FROM feed WHERE id = " . (1 + rnd(60)) . ')' if $draw < 88;
	return "CASE WHEN now() > '2001-01-01' THEN $literal ELSE " . literal($type) . " END::" . GateSchema::declared($type)
	  if $draw < 94;
	return 'NULL' if $draw < 97;
	return "coalesce(NULL, $literal)\::" . GateSchema::declared($type);
}

sub column_of_family
{
	my ($t, $family) = @_;
	my @found = grep { GateSchema::family($_->[1]) eq $family } @{ $t->{columns} };

	return @found ? pick(@found) : undef;
}

# column, from a table or [alias, table] of an outer query
sub bound
{
	my ($alias, $column, @outer) = @_;
	my ($name, $type) = @$column;
	my $family = GateSchema::family($type);
	my $c = "$alias.$name";
	my $draw = rnd(1000);

	if (@outer && chance(60))
	{
		my $other = pick(@outer);
		my $theirs = column_of_family($other->[1], $family);

		return "$c = $other->[0].$theirs->[0]" if $theirs;
	}
	if ($family eq 'text' && chance(12))
	{
		my $collation = pick('gate_ci', 'gate_ci', '"C"', '"en-x-icu"');

		return "$c = " . literal($type, chance(60) ? present_number() : undef) . " COLLATE $collation" if chance(70);
		return "$c COLLATE $collation = ANY (ARRAY[" . literal($type) . ', ' . literal($type, present_number()) . "])";
	}
	return "$c = " . value($type) if $draw < 480;
	return value($type) . " = $c" if $draw < 520;
	if ($type ne 'arr')
	{
		my $sqltype = GateSchema::declared($type);

		if ($draw < 650)
		{
			if ($params && chance(70))
			{
				push @$params, [ chance(30) ? 'unknown' : "${sqltype}[]", $type, 1 ];
				return "$c = ANY (\$" . @$params . ')';
			}
			return "$c = ANY (" . array_of($type) . ')';
		}
		return "$c " . pick('<> ALL', '= ALL', '> ANY', '= ANY') . " ($1)" if $draw < 670 && array_of($type) =~ /(.*)/s;
		return "$c === " . some_number() if $draw < 695 && $type =~ /^(int4|dom)$/;
		return "$c " . pick('LIKE', '~~*') . " 'key 1%'" if $draw < 700 && $type =~ /^(text|c|varchar)$/;
	}
	return "$c IN (" . join(', ', map { value($type, chance(80)) } 1 .. 1 + rnd(4)) . ')' if $draw < 790;
	return "$c NOT IN (" . value($type, 1) . ', ' . value($type, 1) . ')' if $draw < 800;
	return "$c IS NULL" if $draw < 810;
	return "$c IS NOT DISTINCT FROM " . value($type, 1) if $draw < 830;
	return "$c " . pick(qw(< > <= >= <>)) . ' ' . value($type, 1) if $draw < 870;
	return "$c BETWEEN " . value($type, 1) . ' AND ' . value($type, 1) if $draw < 880;
	return "($c = " . value($type) . " OR $alias.v = " . rnd(20) . ')' if $draw < 900;
	return "($c = " . value($type, 1) . " OR $c = " . value($type, 1) . ')' if $draw < 920;
	return "NOT ($c = " . value($type) . ')' if $draw < 930;
	return "($c, $alias.g) = (" . value($type) . ', ' . rnd(4) . ')' if $draw < 950;
	return "($c = " . value($type) . ') IS ' . pick('TRUE', 'NOT TRUE', 'NOT NULL') if $draw < 960;
	return "$c IN (SELECT k_$type FROM feed WHERE v = " . rnd(20) . ')' if $draw < 975;
	return "$c = " . value($type, 1) . " AND $c = " . value($type, 1);
}

# conditions on a table; the key of one of its filters mostly
sub conditions
{
	my ($alias, $t, @outer) = @_;
	my %column = map { $_->[0] => $_ } @{ $t->{columns} };
	my @names = $t->{sparse} ? (pick(sort keys %column)) : @{ pick(@{ $t->{keys} }) };
	my @all;

	pop @names if @names > 1 && chance(12);
	push @all, bound($alias, $column{$_}, @outer) for @names;
	push @all, pick("$alias.v > " . rnd(12), "$alias.g = " . rnd(4), "$alias.g <> 2",
		"$alias.s = 's1'", "$alias.id < " . rnd(140), "$alias.v + $alias.g < 15")
	  if chance(25);
	return join ' AND ', @all;
}

sub any_table
{
	my $t = pick(@GateSchema::tables, @GateSchema::partitioned, @GateSchema::partitioned);

	return $t->{secured} && chance(60) ? any_table() : $t;
}

# that has a column to compare with one of ours
sub partner_of
{
	my ($t) = @_;

	return $GateSchema::table{feed} if !$t->{sparse} && chance(35);
	for (1 .. 12)
	{
		my $other = any_table();

		for my $column (@{ $t->{columns} })
		{
			return $other if column_of_family($other, GateSchema::family($column->[1]));
		}
	}
	return $GateSchema::table{feed};
}

# id, v and one key column, for the rows of these [alias, table]
sub outputs
{
	my @all;

	for (@_)
	{
		my ($alias, $t) = @$_;
		my $column = pick(@{ $t->{columns} });

		push @all, "$alias.id", "$alias.v", GateSchema::plain("$alias.$column->[0]", $column->[1]);
	}
	my $n = 0;
	return join ', ', map { "$_ AS o" . ++$n } @all;
}

# all tables' ids
sub total_order { return join ', ', map { "$_->[0].id" . pick('', '', ' DESC') } @_; }

sub tail
{
	my @in = @_;

	return [ 'set', '' ] if chance(55);
	my $order = ' ORDER BY ' . total_order(@in);
	$order = ' ORDER BY ' . $in[0][0] . '.v,' . substr $order, 10 if chance(30);
	return [ 'list', $order ] if chance(50);
	return [ 'list', $order . ' LIMIT ' . (1 + rnd(6)) . (chance(40) ? ' OFFSET ' . rnd(3) : '') ];
}

sub join_condition
{
	my ($a, $b) = @_;

	for (1 .. 4)
	{
		my $ours = pick(@{ $a->[1]{columns} });
		my $theirs = column_of_family($b->[1], GateSchema::family($ours->[1]));

		next unless $theirs;
		my $on = pick("$a->[0].$ours->[0] = $b->[0].$theirs->[0]", "$b->[0].$theirs->[0] = $a->[0].$ours->[0]");
		$on .= " AND $b->[0].v > " . rnd(10) if chance(15);
		$on .= " AND $a->[0].g = $b->[0].g" if chance(10);
		$on .= ' AND ' . conditions(@$b) if chance(12);
		return $on;
	}
	return pick("$a->[0].id = $b->[0].id", "$a->[0].v = $b->[0].id");
}

# ([alias, table] ..., from, where)
sub joined
{
	my ($first) = @_;
	my $t = $first // (chance(40) ? $GateSchema::table{feed} : any_table());
	my @in = ([ alias(), $t ]);
	my $from = "$t->{name} $in[0][0]";
	my $full = 0;

	for (1 .. (chance(25) ? 2 : 1))
	{
		my $left = pick(@in);
		my $other = partner_of($left->[1]);
		my $next = [ alias(), $other ];
		my $kind = pick(qw(JOIN JOIN JOIN JOIN LEFT LEFT LEFT RIGHT FULL));

		$full = 1 if $kind eq 'FULL';
		$from .= ($kind eq 'JOIN' ? ' JOIN ' : " $kind JOIN ");
		if ($kind =~ /JOIN|LEFT/ && chance(15))
		{
			my $inner = alias();

			$from .= "LATERAL (SELECT * FROM $other->{name} $inner WHERE " . conditions($inner, $other, $left)
			  . (chance(30) ? " ORDER BY $inner.id LIMIT 2" : '') . ") $next->[0] ON "
			  . pick('true', "$next->[0].v > 3");
		}
		else
		{
			$from .= "$other->{name} $next->[0] ON " . join_condition($left, $next);
		}
		push @in, $next;
	}
	my @where;
	push @where, conditions(@$_) for grep { chance(45) } @in;
	push @where, "$in[0][0].id < " . (1 + rnd(60)) unless @where;
	return (\@in, $from, join ' AND ', @where);
}

sub subquery_condition
{
	my (@outer) = @_;
	my $t = partner_of($outer[0][1]);
	my $inner = alias();
	my $where = conditions($inner, $t, @outer);
	my $column = pick(@{ $t->{columns} });
	my $ours = column_of_family($outer[0][1], GateSchema::family($column->[1]));

	return pick('', 'NOT ') . "EXISTS (SELECT FROM $t->{name} $inner WHERE $where)" if !$ours || chance(45);
	return "$outer[0][0].$ours->[0] " . pick('', '', 'NOT ') . "IN (SELECT $inner.$column->[0] FROM $t->{name} $inner WHERE "
	  . ($params || chance(50) ? $where : conditions($inner, $t)) . ')';
}

# SELECT of any shape: [how to compare, text]
sub plain_select
{
	my $t = any_table();
	my $me = [ alias(), $t ];
	my $tail = tail($me);

	return [ $tail->[0], 'SELECT ' . outputs($me) . " FROM $t->{name} $me->[0] WHERE " . conditions(@$me) . $tail->[1] ];
}

sub limited
{
	my $t = any_table();
	my $a = alias();

	return [ 'count', "SELECT $a.id FROM $t->{name} $a WHERE " . conditions($a, $t) . ' LIMIT ' . (1 + rnd(3)) ];
}

sub aggregate
{
	my ($in, $from, $where);

	if (chance(70))
	{
		my $t = any_table();
		my $a = alias();

		($in, $from, $where) = ([ [ $a, $t ] ], "$t->{name} $a", conditions($a, $t));
	}
	else
	{
		($in, $from, $where) = joined();
	}
	my $a = $in->[-1][0];
	my $agg = join ', ', pick('count(*)', 'count(*)', "max($a.id)", "min($a.v)"),
	  (chance(50) ? pick("min($a.id)", "sum($a.v)", "count(DISTINCT $a.v)", "array_agg($a.id ORDER BY $a.id)",
		"count(*) FILTER (WHERE $a.v > 5)", 'bool_or(true)') : ());
	return [ 'set', "SELECT $agg FROM $from WHERE $where" . pick('', '', '', ' HAVING count(*) > 0') ] if chance(55);
	my $key = pick("$a.v", "$a.g", "$a.g", "$a.s");
	return [ 'set', "SELECT $key, $agg FROM $from WHERE $where GROUP BY "
		  . pick($key, $key, "ROLLUP ($key)", "GROUPING SETS (($key), ())") . pick('', ' HAVING count(*) > 1') ];
}

sub join_select
{
	my ($in, $from, $where) = joined();
	my $tail = tail(@$in);

	return [ $tail->[0], 'SELECT ' . outputs(@$in) . " FROM $from WHERE $where$tail->[1]" ];
}

sub nested
{
	my ($in, $from, $where) = chance(25) ? joined() : ();

	unless ($in)
	{
		my $t = chance(35) ? $GateSchema::table{feed} : any_table();

		$in = [ [ alias(), $t ] ];
		($from, $where) = ("$t->{name} $in->[0][0]", pick('true', conditions(@{ $in->[0] })));
	}
	my $tail = tail(@$in);
	return [ $tail->[0], 'SELECT ' . outputs(@$in) . " FROM $from WHERE $where AND " . subquery_condition(@$in) . $tail->[1] ];
}

sub scalar_subquery
{
	my $t = chance(50) ? $GateSchema::table{feed} : any_table();
	my $me = [ alias(), $t ];
	my $other = partner_of($t);
	my $inner = alias();

	return [ 'set', "SELECT $me->[0].id, (SELECT " . pick("count(*)", "max($inner.id)", "min($inner.v)")
		  . " FROM $other->{name} $inner WHERE " . conditions($inner, $other, $me)
		  . ") FROM $t->{name} $me->[0] WHERE " . pick("$me->[0].id < 30", conditions(@$me)) ];
}

sub member
{
	my $t = any_table();
	my $a = alias();

	return "SELECT $a.id, $a.v FROM $t->{name} $a WHERE " . conditions($a, $t);
}

sub set_operation
{
	my $sql = member();

	$sql = "($sql) " . pick('UNION', 'UNION ALL', 'INTERSECT', 'EXCEPT', 'EXCEPT ALL', 'UNION ALL') . ' (' . member() . ')'
	  for 1 .. 1 + rnd(2);
	return [ 'list', "$sql ORDER BY 1, 2" . pick('', ' LIMIT 4') ] if chance(40);
	return [ 'set', $sql ];
}

sub cte
{
	my $kind = pick('', 'MATERIALIZED ', 'NOT MATERIALIZED ');
	my $t = any_table();
	my $a = alias();
	my $column = pick(@{ $t->{columns} });

	return [ 'set', "WITH w AS $kind(" . member() . ') SELECT x.id, y.v FROM w x ' . pick('LEFT ', '') . 'JOIN w y ON x.id = y.v + 1' ]
	  if chance(35);
	return [ 'set', "WITH RECURSIVE w (n, i) AS (SELECT $a.v, 1 FROM $t->{name} $a WHERE " . conditions($a, $t)
		  . " UNION SELECT b.v, w.i + 1 FROM w JOIN $t->{name} b ON b.id = w.n + 1 WHERE w.i < 3 AND b.$column->[0] = "
		  . value($column->[1], 1) . ') SELECT * FROM w' ]
	  if chance(25);
	return [ 'set', "WITH w AS $kind(SELECT $a.id, $a.v, $a.g, $column->[0] AS k FROM $t->{name} $a) SELECT w.id, w.v FROM w WHERE "
		  . bound('w', [ 'k', $column->[1] ]) ];
}

sub window
{
	my $t = any_table();
	my $a = alias();
	my $where = conditions($a, $t);

	return [ 'set', "SELECT $a.id, " . pick("row_number() OVER (ORDER BY $a.id)", "sum($a.v) OVER (PARTITION BY $a.g ORDER BY $a.id)",
			"lag($a.v) OVER (ORDER BY $a.id)", 'count(*) OVER ()') . " FROM $t->{name} $a WHERE $where" ]
	  if chance(60);
	my $column = pick(@{ $t->{columns} });
	return [ 'set', "SELECT * FROM (SELECT $a.id, $a.v, $a.$column->[0] AS k, row_number() OVER (PARTITION BY $a.$column->[0] ORDER BY $a.id) AS n "
		  . "FROM $t->{name} $a) q WHERE n < 3 AND k = " . value($column->[1]) ]
	  unless $column->[1] =~ /^(ci|charci|num)$/;
	return window();
}

sub distinct
{
	my $t = any_table();
	my $a = alias();
	my $where = conditions($a, $t);

	return [ 'set', "SELECT DISTINCT $a.v, $a.g FROM $t->{name} $a WHERE $where" ] if chance(50);
	return [ 'list', "SELECT DISTINCT ON ($a.g) $a.g, $a.id FROM $t->{name} $a WHERE $where ORDER BY $a.g, $a.id" ];
}

sub from_values
{
	my $t = any_table();
	my $a = alias();
	my $column = pick(@{ $t->{columns} });
	my ($name, $type) = @$column;
	my $sqltype = GateSchema::declared($type);
	my $values = join ', ', map { '(' . literal($type) . "::$sqltype, $_)" } 1 .. 1 + rnd(5);
	my $kind = pick('JOIN', 'LEFT JOIN', 'LEFT JOIN');

	return [ 'set', "SELECT q.n, $a.id, $a.v FROM (VALUES $values) q (k, n) $kind $t->{name} $a ON $a.$name = q.k" ] if chance(60);
	return [ 'set', "SELECT q.n, r.* FROM (VALUES $values) q (k, n) $kind LATERAL (SELECT count(*), max($a.id) FROM $t->{name} $a WHERE $a.$name = q.k"
		  . (chance(30) ? " AND $a.v > q.n" : '') . ') r ON true' ];
}

sub subselect_from
{
	my ($mode, $sql) = @{ pick(\&plain_select, \&join_select, \&nested)->() };

	return [ 'set', "SELECT q.o1, q.o2 FROM ($sql) q WHERE q.o2 > " . rnd(6) ] if $mode ne 'count' && chance(60);
	return [ 'set', "SELECT count(*) FROM ($sql OFFSET 0) q" ];
}

sub sample
{
	my $t = pick(@GateSchema::tracked);
	my $a = alias();

	return [ 'set', "SELECT $a.id FROM $t->{name} $a TABLESAMPLE BERNOULLI (50) REPEATABLE (" . rnd(9) . ') WHERE ' . conditions($a, $t) ];
}

sub locking
{
	my $t = pick(grep { !$_->{fixed} } @GateSchema::tables);
	my $me = [ alias(), $t ];
	my $for = pick('FOR UPDATE', 'FOR SHARE', 'FOR NO KEY UPDATE', 'FOR KEY SHARE');
	my ($in, $from, $where) = ([$me], "$t->{name} $me->[0]", conditions(@$me));

	if (chance(35))
	{
		my $next = [ alias(), partner_of($t) ];

		$from .= ' ' . pick('JOIN', 'LEFT JOIN') . " $next->[1]{name} $next->[0] ON " . join_condition($me, $next);
		$in = [ $me, $next ];
	}
	return [ 'set', 'SELECT ' . outputs(@$in) . " FROM $from WHERE $where $for OF $me->[0]" . pick('', '', ' SKIP LOCKED') ];
}

our @selects = (
	(\&plain_select) x 16, (\&aggregate) x 9, (\&join_select) x 18, (\&nested) x 12,
	(\&scalar_subquery) x 6, (\&set_operation) x 5, (\&cte) x 5, (\&window) x 3, (\&distinct) x 3,
	(\&from_values) x 6, (\&subselect_from) x 4, (\&limited) x 2, \&sample, (\&locking) x 4);

sub select_statement { return pick(@selects)->(); }

sub fresh
{
	my ($want_params) = @_;

	$params = $want_params ? [] : undef;
	$aliases = 0;
	return;
}

sub parameters { return $params; }

1;
