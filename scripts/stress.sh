#!/bin/sh
# stress.sh: look for a false negative, with everything at once
#
#	sh scripts/stress.sh SECONDS [SEED]
#
# Builds and installs a private copy of the tree, starts a throwaway cluster, and
# lets some twenty clients loose on it (test/stress/*.sql): writers, DDL, two-
# phase commit, rotations, VACUUM, and readers at every isolation level that ask
# each visible row's key.  In every round of some seconds it kills a backend or a
# worker, or stops or restarts the server.  After each round all is put right,
# every filter must become ready, bloomguard_verify must find no row absent, and
# absent keys must be turned away.
#
# Fails on a false negative, a filter that does not come back, a crash that was
# not ordered, an error that no statement here may meet, a client that hangs, and
# when hardly anything was asked.  Then the data directory and the logs are kept.
#
# The seed decides what each client and the driver choose; how they interleave
# is the machine's.  The same seed does not give the same run.
#
# Environment: PG_CONFIG or PG_MAJOR choose the server, KEEP_WORK=1 keeps all logs.

set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=scripts/common.sh
. "$root/scripts/common.sh"

usage="usage: sh scripts/stress.sh SECONDS [SEED]"
seconds=${1:-}
seed=${2:-$(($(date +%s) % 100000))}
case $seconds/$seed in
	/*|*[!0-9/]*|0*|*/0?*) die "$usage" ;;
esac

# name of test/stress/NAME.sql, and how many sessions run it
clients="write_plain 2 write_uniq 2 write_part 1 write_other 1 write_nested 1 write_bulk 2
	write_prepared 1 resolve 1 rotate 1 vacuum 1 ddl_plain 1 ddl_part 1 ddl_scratch 1
	read_now 1 read_held 3 read_cursor 1 read_export 1 read_import 1 read_parallel 1
	read_absent 1"
round_seconds=8

# Errors that statements may meet here, by SQLSTATE: deadlock, lock timeout, no
# serialization, shut down, a name that is away, a partition that is away, a key
# that is there, a prepared transaction or snapshot that is gone, a filter that
# is away or was tracked just before, COPY's program that is stopped with the server,
# a value too long for the type that ALTER gives its column.
expected="22001 38000 40P01 55P03 40001 57P01 57P02 57P03 42P01 42703 42704 23514 23505 22023 55000 42710"

install_packages build

# a short path: the name of a socket is limited to about 100 bytes
work=$(mktemp -d "${TMPDIR:-/tmp}/bloomguard-stress.XXXXXX")
chmod 755 "$work"
data=$work/data
log=$work/server.log
keep=${KEEP_WORK:-}
sessions=

unset PGOPTIONS PGSERVICE PGPASSWORD PGTZ PGCLIENTENCODING PGSSLMODE PGHOSTADDR || true
export PGHOST="$work" PGPORT=5432 PGUSER=postgres PGDATABASE=stress PGCONNECT_TIMEOUT=20

finish()
{
	: >"$work/stop"
	if [ -f "$data/postmaster.pid" ]; then
		as_server "$PG_BIN/pg_ctl" -D "$data" -m immediate -w stop >/dev/null 2>&1 || true
	fi
	# shellcheck disable=SC2086
	[ -z "$sessions" ] || wait $sessions 2>/dev/null || true
	if [ -n "$keep" ]; then say "left: $work" >&2; else rm -rf "$work"; fi
}
trap finish EXIT
trap 'exit 130' INT TERM HUP

now() { date +%s; }
note() { say "$*" >&2; }

# sql [options of psql]: statements from standard input, -c or -f
sql()
{
	"$PG_BIN/psql" -XqAt -v ON_ERROR_STOP=1 "$@"
}

# fail reason...: the end, with what there is to be seen; everything is kept
fail()
{
	keep=yes
	say "FAILED after $(($(now) - ${began:-$(now)})) s, seed $seed: $*"
	sql -P format=aligned -P tuples_only=off -c "SELECT relation, key_columns, state, reason,
		since, generation, built_at, last_error FROM bloomguard_filters" >"$work/filters" 2>&1 || true
	say "server's log $log, states of the filters $work/filters, clients' output $work/clients"
	exit 1
}

# pick N: sets $picked to a number from 0 to N - 1, by the seed
state=$seed
pick()
{
	state=$(((state * 1103515245 + 12345) % 2147483648))
	picked=$((state / 65536 % $1))
}

start_server()
{
	as_server "$PG_BIN/pg_ctl" -D "$data" -l "$log" -w -t 120 start >/dev/null ||
		fail "the server does not start"
}

# stop_server immediate|fast
stop_server()
{
	as_server "$PG_BIN/pg_ctl" -D "$data" -m "$1" -w -t 120 stop >/dev/null ||
		fail "the server does not stop"
}

wait_server()
{
	tries=0
	until sql -c "SELECT 1" >/dev/null 2>&1; do
		tries=$((tries + 1))
		[ "$tries" -lt 600 ] || fail "the server does not come back"
		sleep 0.1
	done
}

# what a statement of the log says, with its message
statement_of()
{
	grep -A 30 -m 1 -e "$1" "$log" | sed '2,${/^[0-9-]* [0-9:.]* .*\(ERROR\|LOG\|WARNING\|FATAL\): /q}'
}

# Has something happened that ends the search?
check_log()
{
	if grep -q 'ERROR:  FALSE NEGATIVE' "$log"; then
		statement_of 'ERROR:  FALSE NEGATIVE'
		fail "false negative"
	fi
	if grep -qE 'PANIC|TRAP:|\(PID [0-9]*\) was terminated by signal ([0-8]|1[0-9])([^0-9]|$)' "$log"; then
		statement_of 'PANIC\|TRAP:\|terminated by signal'
		fail "the server crashed by itself"
	fi
}

# Our workers, who wait for nobody's lock, meet none but being ended.
check_workers()
{
	if grep -E ' bloomguard [a-z]+/.* (ERROR|FATAL): ' "$log" | grep -v ' 57P0[1-3] ' >"$work/worker-errors"; then
		cat "$work/worker-errors"
		fail "errors in workers of bloomguard"
	fi
}

# errors by SQLSTATE: "count SQLSTATE", but for those that PostgreSQL raises by itself
# under concurrent DDL
errors()
{
	sed -n 's/^[^ ]* [^ ]* [^ ]* \[[0-9]*\] \([A-Z0-9]\{5\}\) .*\(ERROR\|FATAL\):  /\1 \2 /p' "$log" |
		grep -vE '^XX000 .*(tuple concurrently (updated|deleted)|could not open relation with OID|cache lookup failed for (trigger|relation))|canceling autovacuum task' |
		awk '{ print $1 }' | sort | uniq -c
}

# add the server's counters to ours, before a crash takes them
collect()
{
	sql >/dev/null <<SQL || true
INSERT INTO tally SELECT sum(absent), sum(maybe), sum(unguarded), sum(adds), sum(rotations)
	FROM bloomguard_stats;
SELECT bloomguard_stats_reset();
SQL
}

# session name number seed: run one script until the round is over.  An error ends
# pgbench, and the next one goes on.
session()
{
	runs=0
	while left=$((until - $(now))) && [ "$left" -gt 0 ] && [ ! -f "$work/stop" ]; do
		runs=$((runs + 1))
		PGAPPNAME=$1 "$PG_BIN/pgbench" -n -T "$left" \
			--random-seed=$((($3 + runs * 7919) % 2147483647)) \
			-D rows="$work/sql/rows.sh" -D parallel="$parallel" \
			-f "$work/sql/$1.sql" >>"$work/clients/$1.$2" 2>&1 || sleep 0.05
	done
}

start_sessions()
{
	sessions=
	number=0
	# shellcheck disable=SC2086
	set -- $clients
	while [ $# -gt 0 ]; do
		copies=$2
		while [ "$copies" -gt 0 ]; do
			number=$((number + 1))
			case $1$copies in
				# waits less than others, who queue behind it
				ddl*) options="-c lock_timeout=1500" ;;
				read_parallel1|read_held1) options=$all_parallel ;;
				*) options= ;;
			esac
			PGOPTIONS=$options session "$1" "$copies" \
				$(((seed * 1009 + round * 101 + number) % 1000000)) &
			sessions="$sessions $!"
			copies=$((copies - 1))
		done
		shift 2
	done
}

wait_sessions()
{
	waited=0
	for session in $sessions; do
		while kill -0 "$session" 2>/dev/null; do
			waited=$((waited + 1))
			[ "$waited" -lt 600 ] || {
				sql -c "SELECT application_name, state, wait_event, query FROM pg_stat_activity
					WHERE backend_type = 'client backend'" >"$work/hanging" 2>&1 || true
				fail "clients hang, see $work/hanging"
			}
			sleep 0.1
		done
	done
	sessions=
}

# kill_process condition on pg_stat_activity: one of them, the hard way
kill_process()
{
	pid=$(sql -c "SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND $1
		ORDER BY md5(pid::text || '$picked') LIMIT 1" 2>/dev/null) || pid=
	if [ -n "$pid" ] && as_server kill -9 "$pid" 2>/dev/null; then crashes=$((crashes + 1)); fi
	wait_server
}

# terminate condition on pg_stat_activity: all of them
terminate()
{
	sql -c "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE pid <> pg_backend_pid() AND $1" >/dev/null 2>&1 || true
}

# one misfortune, each of them in eight rounds
disturb()
{
	pick 1000
	collect
	case $(((seed + round * 3) % 8)) in
		0) event="kill -9 of a backend"; kill_process "backend_type = 'client backend'" ;;
		1) event="kill -9 of a worker of bloomguard"; kill_process "backend_type LIKE 'bloomguard%'" ;;
		2) event="kill -9 of any process"; kill_process true ;;
		3) event="immediate stop"; stop_server immediate; crashes=$((crashes + 1)); start_server ;;
		4) event="fast restart"; stop_server fast; restarts=$((restarts + 1)); start_server ;;
		5) event="terminated workers of bloomguard"; terminate "backend_type LIKE 'bloomguard%'" ;;
		6) event="terminated sessions"; terminate "backend_type = 'client backend' AND pid % 3 = 0" ;;
		7) event="reload"; as_server "$PG_BIN/pg_ctl" -D "$data" reload >/dev/null ;;
	esac
}

# run_file name: settle or verify
run_file()
{
	sql -f "$work/sql/$1.sql" >"$work/$1.out" 2>&1 || {
		cat "$work/$1.out"
		check_log
		fail "$1.sql failed after: $event"
	}
}

# all is put right, and all must be well
settle()
{
	collect
	sql -c "ALTER SYSTEM RESET bloomguard.cost_delay" -c "SELECT pg_reload_conf()" >/dev/null
	run_file settle
	run_file verify
	if [ -s "$work/verify.out" ]; then
		cat "$work/verify.out"
		fail "not well after: $event"
	fi
	verified=$((verified + 1))
}

# transactions that all clients, or those of one script, have come through
transactions()
{
	cat "$work/clients/${1:-}"* |
		awk -F: '/^number of transactions actually processed/ { n += $2 } END { print n + 0 }'
}

note "== build with $("$PG_CONFIG" --version)"
copy_tree
make_tree -s all
install_tree
mv "$work/tree/test/stress" "$work/sql"
rm -rf "$work/tree"

note "== start a throwaway cluster in $work"
as_server "$PG_BIN/initdb" -D "$data" -U postgres -A trust -E UTF8 --no-locale --no-sync >/dev/null
cat >>"$data/postgresql.conf" <<CONF
shared_preload_libraries = 'bloomguard'
bloomguard.naptime = 1s
bloomguard.cost_limit = 5
listen_addresses = ''
port = 5432
unix_socket_directories = '$work'
max_connections = 80
max_prepared_transactions = 40
max_worker_processes = 24
shared_buffers = 64MB
fsync = off		# nothing here has to survive a crash of the machine
lock_timeout = 10s
statement_timeout = 60s
deadlock_timeout = 200ms
autovacuum_naptime = 1s
log_line_prefix = '%m [%p] %e %b/%a '
CONF
start_server
"$PG_BIN/createdb" -h "$work" stress
mkdir "$work/clients"
sql -f "$work/sql/setup.sql" >/dev/null
parallel=$(sql -d postgres -c "SELECT name FROM pg_settings
	WHERE name IN ('force_parallel_mode', 'debug_parallel_query')")
all_parallel="-c $parallel=on -c parallel_setup_cost=0 -c parallel_tuple_cost=0"
all_parallel="$all_parallel -c min_parallel_table_scan_size=0"
event=set-up
round=0 crashes=0 restarts=0 verified=0
settle
sql -c "SET $parallel = on" -c "EXPLAIN SELECT count(*) FROM plain
	WHERE NOT bloomguard_might_contain('plain', 'id', id)" | grep -q Gather ||
	fail "probes are not planned in parallel"

note "== search for $seconds s; seed $seed decides the choices, not how they interleave"
began=$(now)
end=$((began + seconds))
while [ "$(now)" -lt "$end" ]; do
	round=$((round + 1))
	until=$(($(now) + round_seconds))
	[ "$until" -lt "$end" ] || until=$end
	pick 4
	at=$(($(now) + 2 + picked))
	# builds that are over at once, or so slow that much happens meanwhile
	pick 3
	sql -c "ALTER SYSTEM SET bloomguard.cost_delay = $picked" -c "SELECT pg_reload_conf()" >/dev/null
	event=nothing
	start_sessions
	while [ "$(now)" -lt "$until" ]; do
		sleep 0.5
		check_log
		if [ "$event" = nothing ] && [ "$(now)" -ge "$at" ]; then disturb; fi
	done
	wait_sessions
	wait_server
	check_log
	stopped=$(now)
	settle
	check_log
	note "$(($(now) - began)) s: $(transactions) transactions; after \"$event\" all filters" \
		"ready and complete in $(($(now) - stopped)) s"
done
collect

# was it a search at all?
# shellcheck disable=SC2086
set -- $clients
while [ $# -gt 0 ]; do
	n=$(transactions "$1")
	note "$(printf '%9d  %s' "$n" "$1")"
	[ "$n" -gt 0 ] || fail "$1.sql never came to its end, see $work/clients/$1.1"
	shift 2
done
errors >"$work/errors"
note "prepared transactions that came through a crash or restart: $(grep -c 'recovering prepared' "$log" || true)"
note "errors by SQLSTATE: $(awk '{ printf "%s%s %s", sep, $2, $1; sep = ", " }' "$work/errors")"
while read -r n code; do
	case " $expected " in
		*" $code "*) ;;
		*)
			grep -m 5 " $code .*\(ERROR\|FATAL\): " "$log" || true
			fail "$n errors of SQLSTATE $code"
			;;
	esac
done <"$work/errors"
check_workers
ordered=$(grep -c '(PID [0-9]*) was terminated by signal 9' "$log" || true)
[ "$ordered" -le "$crashes" ] || fail "$ordered processes were killed, not $crashes"

sql -F ' ' -c "SELECT sum(absent + maybe - unguarded), sum(rotations), sum(adds) FROM tally" >"$work/sums"
read -r answered rotations adds <"$work/sums"
share=$(sql -c "SELECT coalesce(100 * sum(turned_away) / nullif(sum(asked), 0), 0)::int FROM absent_keys")
[ "$answered" -gt $((seconds * 1000)) ] || fail "only $answered probes were answered by a filter"
[ "$share" -ge 30 ] || fail "only $share % of absent keys were turned away"

say "stress: $seconds s, seed $seed: $(transactions) transactions, $adds adds," \
	"$answered probes answered by a filter ($share % of absent keys turned away)," \
	"$rotations rotations, $crashes crashes, $restarts restarts, $verified verifications," \
	"false negatives: 0"
