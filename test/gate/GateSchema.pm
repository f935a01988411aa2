# GateSchema.pm: the tables that random queries of t/160_gate_differential.pl read
#
# One plain table for each type of key, composite keys, several filters on one
# table, two levels of partitions by range, list and hash, row security, foreign
# keys, inheritance, views.  A key is made of a number below 200: rows have those
# that 4 divides, all others are absent.  Of table "feed", which no filter guards
# and which joins start from, most keys are absent from the others.
#
# Every table has id (unique), g (0 .. 3), v and s besides its key columns.

package GateSchema;

use strict;
use warnings;

use GateRandom;

my $ci = 'COLLATE gate_ci';

# type => how it is declared, how a number is spelled, types that compare with it
our %types = (
	int2 => [ 'int2', sub { $_[0] }, 'int' ],
	int4 => [ 'int4', sub { $_[0] }, 'int' ],
	int8 => [ 'int8', sub { $_[0] }, 'int' ],
	dom => [ 'gate_int', sub { $_[0] }, 'int' ],
	text => [ 'text', \&words, 'text' ],
	c => [ 'text COLLATE "C"', \&words, 'text' ],
	ci => [ "text $ci", \&words, 'text' ],
	varchar => [ 'varchar(20)', \&words, 'text' ],
	char => [ 'char(12)', sub { words(@_) . ' ' x rnd(3) }, 'text' ],
	charci => [ "char(12) $ci", sub { words(@_) . ' ' x rnd(3) }, 'text' ],
	name => [ 'name', \&words, 'text' ],
	domt => [ 'gate_text', \&words, 'text' ],
	uuid => [ 'uuid', sub { sprintf '00000000-0000-4000-8000-%012d', $_[0] }, 'uuid' ],
	num => [ 'numeric', sub { $_[0] . pick('', '.0', '.00') }, 'num' ],
	tstz => [ 'timestamptz', sub { ($_[0] + 1900) . pick('-03-04 05:00+00', '-03-04 07:00+02') }, 'tstz' ],
	date => [ 'date', sub { ($_[0] + 1900) . '-03-04' }, 'date' ],
	enum => [ 'gate_enum', sub { "e$_[0]" }, 'enum' ],
	arr => [ 'int4[]', sub { "{$_[0],7}" }, 'arr' ]);

sub words
{
	my ($n) = @_;

	return pick("key $n", "key $n", "key $n", "key $n", "Key $n", "KEY $n");
}

sub spell
{
	my ($type, $n) = @_;

	return "'" . $types{$type}[1]->($n) . "'";
}

sub declared { return $types{ $_[0] }[0] =~ s/ COLLATE .*//r; }
sub family { return $types{ $_[0] }[2]; }

# an expression that is the same for all values that are equal
sub plain
{
	my ($column, $type) = @_;

	return "trim_scale($column)" if $type eq 'num';
	return "lower($column COLLATE \"C\")" if $type =~ /^(ci|charci)$/;
	return $column;
}

our @tables;
our %table;

sub add
{
	my ($name, $columns, %p) = @_;
	my @columns = map { [ split /:/ ] } split / /, $columns;

	push @tables,
	  $table{$name} =
	  { name => $name, columns => \@columns, keys => [ [ map { $_->[0] } @columns ] ], %p };
	return;
}

add("p_$_", "k:$_") for sort keys %types;
add('c_two', 'a:int4 b:text', keys => [ [ 'a', 'b' ], ['b'] ]);
add('c_three', 'a:int8 b:uuid c:date');
add('c_many', 'a:ci b:num c:int2', keys => [ ['a'], ['b'], ['c'], [ 'a', 'c' ] ]);
add('r_range', 'k:int4', by => 'RANGE (k)');
add('r_list', 'k:text', by => 'LIST (g)');
add('r_hash', 'k:int8', by => 'HASH (k)');
add('r_hash2', 'k:int8', by => 'HASH (k)');
add('r_uuid', 'k:uuid', by => 'HASH (k)');
add('r_comp', 'a:int4 b:ci', by => 'LIST (g)');
add('secured', 'k:int4', own => 'ALTER TABLE secured ENABLE ROW LEVEL SECURITY;'
	  . 'CREATE POLICY visible ON secured USING (gate_visible(g));', secured => 1);
add('master', 'k:int4', own => 'DELETE FROM master a USING master b WHERE a.k = b.k AND a.id > b.id;'
	  . 'CREATE UNIQUE INDEX ON master (k);');
add('detail', 'k:int4', own => 'UPDATE detail SET k = NULL WHERE k NOT IN (SELECT k FROM master WHERE k IS NOT NULL);'
	  . 'ALTER TABLE detail ADD FOREIGN KEY (k) REFERENCES master (k) ON DELETE RESTRICT ON UPDATE CASCADE;');
add('parent', 'k:int4', untracked => 1,
	own => 'CREATE TABLE child (CHECK (true)) INHERITS (parent); INSERT INTO child SELECT id + 1000, k, g, v, s FROM parent;'
	  . 'SELECT bloomguard_track(\'child\', \'k\', 1e-6);');
add('child', 'k:int4', untracked => 1, made => 1);
add('feed', join(' ', map { "k_$_:$_" } sort keys %types), untracked => 1, sparse => 1);
add('v_simple', 'k:int4', view => 'SELECT * FROM r_range');
add('v_text', 'k:text', view => 'SELECT * FROM p_text WHERE g < 3');
add('v_barrier', 'k:int4', view => 'SELECT * FROM p_int4 WHERE gate_visible(g)', barrier => 1);
add('v_barrier2', 'k:int8', view => 'SELECT * FROM r_hash WHERE g > 0', barrier => 1);
add('v_join', 'k:uuid', fixed => 1,
	view => 'SELECT a.id, a.k, a.g, b.v, a.s FROM p_uuid a LEFT JOIN r_uuid b ON b.id = a.id');
add('v_union', 'k:int8', fixed => 1,
	view => 'SELECT * FROM r_hash UNION ALL SELECT id + 5000, k, g, v, s FROM p_int8');

our @views = grep { $_->{view} } @tables;
our @tracked = grep { !$_->{view} && !$_->{untracked} } @tables;
our @partitioned = grep { $_->{by} } @tables;
# what others may write while queries run
our @busy = grep { !$_->{view} && $_->{name} !~ /^(master|detail|parent|child)$/ } @tables;

sub row
{
	my ($t, $id) = @_;
	my @keys;

	for (@{ $t->{columns} })
	{
		my $n = $t->{sparse} && chance(75) ? absent_number() : present_number();

		push @keys, chance(4) ? 'NULL' : spell($_->[1], $n);
	}
	return sprintf '(%d, %s, %d, %d, %s)', $id, join(', ', @keys), rnd(4), rnd(20),
	  "'s" . rnd(5) . "'";
}

sub partitions
{
	my ($t) = @_;
	my ($name, $by) = @$t{qw(name by)};
	my $sub = 'PARTITION BY LIST (g)';
	my @bound;

	if ($by =~ /^RANGE/)
	{
		@bound = ('FROM (MINVALUE) TO (60)', 'FROM (60) TO (120)', 'FROM (120) TO (MAXVALUE)', undef);
	}
	elsif ($by =~ /^LIST/)
	{
		@bound = ('IN (0)', 'IN (1, 2)', 'IN (3)');
		$sub = 'PARTITION BY RANGE (v)';
	}
	else
	{
		@bound = map { "WITH (MODULUS 3, REMAINDER $_)" } 0 .. 2;
	}
	my $sql = '';
	for my $i (0 .. $#bound)
	{
		my $for = defined $bound[$i] ? "FOR VALUES $bound[$i]" : 'DEFAULT';

		# one of them has partitions of its own
		$sql .= "CREATE TABLE ${name}_$i PARTITION OF $name $for" . ($i == 1 ? " $sub" : '') . ";\n";
	}
	my @sub = $sub =~ /LIST/ ? ('IN (0, 1)', 'IN (2, 3, NULL)') : ('FROM (MINVALUE) TO (10)', 'FROM (10) TO (MAXVALUE)');
	$sql .= "CREATE TABLE ${name}_1_$_ PARTITION OF ${name}_1 FOR VALUES $sub[$_];\n" for 0 .. 1;
	return $sql;
}

sub create_table
{
	my ($t) = @_;
	my $name = $t->{name};
	my $columns = join ', ', map { "$_->[0] $types{ $_->[1] }[0]" } @{ $t->{columns} };
	my $sql = "CREATE TABLE $name (id int NOT NULL, $columns, g int, v int, s text)"
	  . ($t->{by} ? " PARTITION BY $t->{by}" : '') . ";\n";

	$sql .= partitions($t) if $t->{by};
	$sql .= "INSERT INTO $name VALUES\n"
	  . join(",\n", map { row($t, $_) } 1 .. ($t->{sparse} ? 60 : 130)) . ";\n";
	$sql .= "CREATE UNIQUE INDEX ON $name (id);\n" unless $t->{by};

	# not every key has an index
	for (@{ $t->{columns} })
	{
		$sql .= "CREATE INDEX ON $name ($_->[0]);\n" if chance(70);
	}
	unless ($t->{untracked})
	{
		$sql .= "SELECT bloomguard_track('$name', '" . join(', ', @$_) . "', 1e-6);\n" for @{ $t->{keys} };
	}
	return $sql . ($t->{own} // '') . "\n";
}

# everything, as a script
sub script
{
	my $labels = join ', ', map { "'e$_'" } 0 .. 199;
	my $sql = <<"SQL";
CREATE COLLATION gate_ci (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE DOMAIN gate_int AS int4 CHECK (VALUE >= 0);
CREATE DOMAIN gate_text AS text;
CREATE TYPE gate_enum AS ENUM ($labels);
-- equal, but for the last digit
CREATE FUNCTION gate_roughly(a int4, b int4) RETURNS boolean
	LANGUAGE sql IMMUTABLE AS 'SELECT a / 10 = b / 10';
CREATE OPERATOR === (FUNCTION = gate_roughly, LEFTARG = int4, RIGHTARG = int4, COMMUTATOR = ===);
-- counts its calls
CREATE FUNCTION gate_visible(g int) RETURNS boolean LANGUAGE plpgsql VOLATILE AS \$\$
BEGIN
	PERFORM set_config('gate.calls', (current_setting('gate.calls')::int + 1)::text, false);
	RETURN g <> 2;
END\$\$;
-- another value with each call
CREATE FUNCTION gate_turning(a int, b int) RETURNS int LANGUAGE plpgsql VOLATILE AS \$\$
BEGIN
	PERFORM set_config('gate.calls', (current_setting('gate.calls')::int + 1)::text, false);
	RETURN CASE WHEN current_setting('gate.calls')::int % 3 = 0 THEN a ELSE b END;
END\$\$;
CREATE FUNCTION gate_many(n int, last int) RETURNS int[] LANGUAGE plpgsql STABLE PARALLEL SAFE AS
	'BEGIN RETURN array(SELECT -i FROM generate_series(1, n) i) || last; END';
CREATE FUNCTION gate_many(n int, last text) RETURNS text[] LANGUAGE plpgsql STABLE PARALLEL SAFE AS
	'BEGIN RETURN array(SELECT ''x'' || i FROM generate_series(1, n) i) || last; END';
SQL

	for my $type (sort keys %types)
	{
		my $sqltype = declared($type);

		$sql .= <<"SQL";
CREATE FUNCTION stable_$type(a text) RETURNS $sqltype LANGUAGE plpgsql STABLE PARALLEL SAFE AS 'BEGIN RETURN a; END';
CREATE FUNCTION volatile_$type(a text) RETURNS $sqltype LANGUAGE plpgsql VOLATILE AS 'BEGIN RETURN a; END';
SQL
	}
	for my $t (@tables)
	{
		next if $t->{made};
		$sql .=
		  $t->{view}
		  ? "CREATE VIEW $t->{name}" . ($t->{barrier} ? ' WITH (security_barrier)' : '') . " AS $t->{view};\n"
		  : create_table($t);
	}
	for my $t (@tracked, $table{v_barrier})
	{
		my $type = declared($t->{columns}[0][1]);
		my ($name, $k) = ($t->{name}, $t->{columns}[0][0]);

		$sql .= <<"SQL";
CREATE FUNCTION sql_$name(key $type) RETURNS SETOF int LANGUAGE sql STABLE AS
	'SELECT id FROM $name WHERE $k = key';
CREATE FUNCTION pl_$name(key $type) RETURNS text LANGUAGE plpgsql AS \$\$
DECLARE
	n int;
	r record;
	found_ids text := '';
	c SCROLL CURSOR FOR SELECT id FROM $name WHERE $k = key ORDER BY id;
BEGIN
	SELECT count(*) INTO n FROM $name WHERE $k = key;
	IF EXISTS (SELECT FROM $name WHERE $k = key AND v > 3) THEN
		found_ids := 'some';
	END IF;
	FOR r IN SELECT id FROM $name WHERE $k = key ORDER BY id LOOP
		found_ids := found_ids || ' ' || r.id;
	END LOOP;
	OPEN c;
	MOVE LAST FROM c;
	FETCH PRIOR FROM c INTO r;
	found_ids := found_ids || coalesce(' prior ' || r.id, '');
	CLOSE c;
	RETURN n || ' ' || found_ids;
END\$\$;
SQL
	}
	return $sql . <<'SQL';
CREATE ROLE gate_user;
GRANT ALL ON ALL TABLES IN SCHEMA public TO gate_user;
ANALYZE;
SQL
}

1;
