# GateRandom.pm: random numbers that are the same on every machine
#
# Perl's own are drawn by others, too.

package GateRandom;

use strict;
use warnings;

use Exporter 'import';

our @EXPORT = qw(seed_with rnd chance pick absent_number present_number some_number);

my $state = 1;

sub step
{
	use integer;

	$state = ($state * 25214903917 + 11) & ((1 << 48) - 1);
	return ($state >> 17) & 0x7fffffff;
}

# start again, for query number $n of a run
sub seed_with
{
	use integer;
	my ($seed, $n) = @_;

	$state = ($seed * 1000003 + $n * 7919 + 12345) & ((1 << 48) - 1);
	step() for 1 .. 5;
	return;
}

# 0 .. $n - 1
sub rnd { return step() % $_[0]; }
sub chance { return rnd(100) < $_[0]; }
sub pick { return $_[ rnd(scalar @_) ]; }

# of keys
sub present_number { return 4 * rnd(50); }
sub absent_number { return 4 * rnd(50) + 1 + rnd(3); }
sub some_number { return chance(40) ? present_number() : absent_number(); }

1;
