# 060_two_phase.pl: prepared transactions
#
# Rows of a prepared transaction belong to the filter, also across a restart.  A
# prepared DISABLE TRIGGER holds its lock without a session: no filter may become
# ready until it is known how it ends [B7].

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use BloomguardTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = guard_node('two_phase', conf => "max_prepared_transactions = 10\n");
make_table($node, 'postgres', 't', 100);
sound($node, 'at first', rows => 100);

# rows
$node->safe_psql('postgres', <<'SQL');
BEGIN;
INSERT INTO t VALUES (1001, 'x');
UPDATE t SET id = 1002 WHERE id = 1;
SAVEPOINT s;
INSERT INTO t VALUES (1003, 'x');
RELEASE s;
PREPARE TRANSACTION 'rows';
SQL
$node->safe_psql('postgres', "BEGIN; INSERT INTO t VALUES (1004, 'x'); PREPARE TRANSACTION 'lost'");
is(answer($node, 'postgres', 't', $_), 'maybe', "prepared: $_") for (1001 .. 1004);

for my $how ('restart', 'crash')
{
	$node->stop($how eq 'crash' ? 'immediate' : 'fast');
	$node->start;
	sound($node, "prepared, $how", rows => 100);
	is(answer($node, 'postgres', 't', $_), 'maybe', "prepared, $how: $_") for (1001 .. 1004);
}
# rebuilt from rows that no snapshot sees yet, and then they are seen
$node->safe_psql('postgres', "COMMIT PREPARED 'rows'");
$node->safe_psql('postgres', "ROLLBACK PREPARED 'lost'");
sound($node, 'committed', rows => 102);
is(answer($node, 'postgres', 't', $_), 'maybe', "committed: $_") for (1001 .. 1003);

# Until the end of a prepared DISABLE TRIGGER the check must find a lock that it
# does not get.  Two failures show that it was tried, and tried again.
sub pending_ok
{
	my ($label) = @_;
	my $offset = -s $node->logfile;

	filter_is($node, 'postgres', 't', "state <> 'ready' AND reason ~ 'waiting for a lock'",
		"$label: waits for the lock");
	like(answer($node, 'postgres', 't', 2), qr/^unguarded: /, "$label: maybe");
	like(answer($node, 'postgres', 't', -1), qr/^unguarded: /, "$label: maybe, no row");
	pass_time($node, 2);
	filter_is($node, 'postgres', 't', "state <> 'ready'", "$label: still not ready");
	unlike(slurp_file($node->logfile, $offset), qr/built filter of relation "public\.t"/,
		"$label: nothing was built");
	return;
}

my $prepare = "BEGIN; ALTER TABLE t DISABLE TRIGGER bloomguard_id; PREPARE TRANSACTION 'disable'";

$node->safe_psql('postgres', $prepare);
pending_ok('prepared DISABLE');
$node->restart;
pending_ok('prepared DISABLE, after a restart');
$node->safe_psql('postgres', "ROLLBACK PREPARED 'disable'");
sound($node, 'ROLLBACK PREPARED', rows => 102);

$node->safe_psql('postgres', $prepare);
pending_ok('prepared DISABLE again');
$node->safe_psql('postgres', "COMMIT PREPARED 'disable'");
$node->safe_psql('postgres', "INSERT INTO t VALUES (2001, 'unseen')");
filter_is($node, 'postgres', 't', "state = 'blocked' AND reason ~ 'disabled'",
	'COMMIT PREPARED: blocked, with the reason');
like(answer($node, 'postgres', 't', 2001), qr/^unguarded: /, 'COMMIT PREPARED: maybe');
is($node->safe_psql('postgres', "SELECT bloomguard_wait_ready('t', '1 h')"), 'f',
	'nobody waits for a blocked filter');
$node->safe_psql('postgres', 'ALTER TABLE t ENABLE ALWAYS TRIGGER bloomguard_id');
sound($node, 'enabled again', rows => 103);
is(answer($node, 'postgres', 't', 2001), 'maybe', 'the row that no trigger saw');

# the same, ended at once after a restart, before any worker has looked
$node->safe_psql('postgres', $prepare);
$node->restart;
$node->safe_psql('postgres', "ROLLBACK PREPARED 'disable'");
sound($node, 'rolled back after a restart', rows => 103);

# track and untrack
make_table($node, 'postgres', 'u', 10, track => 0);
$node->safe_psql('postgres',
	"BEGIN; SELECT bloomguard_track('u', 'id', 1e-9); PREPARE TRANSACTION 'track'");
$node->safe_psql('postgres', "COMMIT PREPARED 'track'");
sound($node, 'prepared track', rel => 'u', rows => 10);
$node->safe_psql('postgres',
	"BEGIN; SELECT bloomguard_untrack('u'); PREPARE TRANSACTION 'untrack'");
$node->safe_psql('postgres', "ROLLBACK PREPARED 'untrack'");
sound($node, 'prepared untrack, rolled back', rel => 'u', rows => 10);
$node->safe_psql('postgres',
	"BEGIN; SELECT bloomguard_untrack('u'); PREPARE TRANSACTION 'untrack'");
$node->safe_psql('postgres', "COMMIT PREPARED 'untrack'");
ok($node->poll_query_until('postgres', 'SELECT filters = 1 FROM bloomguard_memory'),
	'prepared untrack: forgotten');

$node->stop;
done_testing();
