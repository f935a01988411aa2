#!/bin/sh
# overhead.sh: what a server pays that does not use the extension
#
#	sh bench/overhead.sh [seconds of a run]		(3)
#
# Four servers with pgbench's tables: two without the library, one that has it
# loaded and the extension created, one in which besides another table is
# guarded.  The two without it tell the noise: their ratio would be 1.

set -eu
BENCH_ROUNDS=${BENCH_ROUNDS:-10}
# shellcheck source=bench/common.sh
. "$(dirname "$0")/common.sh"

seconds=${1:-3}
scale=10
servers="plain again loaded guarded"

choose_server
PG_BIN=$("$PG_CONFIG" --bindir)
[ -f "$("$PG_CONFIG" --sharedir)/extension/bloomguard.control" ] ||
	die "bloomguard is not installed for $PG_CONFIG: make && make install"
[ -r /proc/self/stat ] || die "CPU is read from /proc, which is not there"

work=$(mktemp -d "${BENCH_TMP:-/tmp}/bguard-bench.XXXXXX")
# shellcheck disable=SC2317
stop_servers()
{
	for server in $servers; do
		[ ! -f "$work/$server/postmaster.pid" ] ||
			as_server "$PG_BIN/pg_ctl" -D "$work/$server" -m immediate -w stop >/dev/null || true
	done
	rm -rf "$work"
}
trap stop_servers EXIT
trap 'exit 130' INT TERM HUP
[ "$(id -u)" != 0 ] || chown postgres "$work"

# port SERVER: what tells the sockets of one folder apart
port()
{
	case $1 in plain) echo 5432 ;; again) echo 5433 ;; loaded) echo 5434 ;; *) echo 5435 ;; esac
}

# on SERVER [options of psql]
on()
{
	server=$1
	shift
	as_server "$PG_BIN/psql" -XqAt -v ON_ERROR_STOP=1 -h "$work" -p "$(port "$server")" \
		-U postgres -d postgres "$@"
}

# bench SERVER options of pgbench...
bench()
{
	server=$1
	shift
	as_server "$PG_BIN/pgbench" -h "$work" -p "$(port "$server")" -U postgres "$@" postgres 2>&1
}

for server in $servers; do
	library=bloomguard
	case $server in plain|again) library= ;; esac
	as_server "$PG_BIN/initdb" -D "$work/$server" -U postgres -A trust -E UTF8 \
		--no-locale --no-sync >/dev/null
	cat >>"$work/$server/postgresql.conf" <<-CONF
		shared_preload_libraries = '$library'
		listen_addresses = ''
		unix_socket_directories = '$work'
		port = $(port "$server")
		shared_buffers = 256MB
		fsync = off
		autovacuum = off
		max_wal_size = 4GB
		checkpoint_timeout = 1d
	CONF
	as_server "$PG_BIN/pg_ctl" -D "$work/$server" -l "$work/$server.log" -w start >/dev/null || {
		cat "$work/$server.log"
		die "the server did not start"
	}
	[ -z "$library" ] || on "$server" -c "CREATE EXTENSION bloomguard"
	bench "$server" -i -q -s $scale >/dev/null
done
on guarded >/dev/null <<SQL
CREATE TABLE elsewhere (id bigint, name text);
INSERT INTO elsewhere SELECT i, i FROM generate_series(1, 100000) AS i;
SELECT bloomguard_track('elsewhere', 'id'), bloomguard_track('elsewhere', 'name');
SELECT bloomguard_wait_ready('elsewhere');
SQL
say "$("$PG_BIN/postgres" --version), $rounds rounds of $seconds s, pgbench scale $scale"

# CPU of the server's processes that have ended, in clock ticks.  The pause lets
# the postmaster hear of the last ones
ended()
{
	sleep 0.3
	awk '{ print $16 + $17 }' "/proc/$(head -n 1 "$work/$1/postmaster.pid")/stat"
}

# run WORKLOAD SERVER option: one sample: CPU of a transaction in us, tps
run()
{
	workload=$1
	of=$2
	before=$(ended "$of")
	bench "$of" -n -M prepared -c 1 -T "$seconds" "$3" >"$work/out" || die "$(cat "$work/out")"
	after=$(ended "$of")
	awk -v ticks=$((after - before)) -v hz="$(getconf CLK_TCK)" '
		/^number of transactions actually processed/ { sub(/.*: */, ""); n = $1 + 0 }
		/^tps = / { tps = $3 }
		END { if (n == 0 || tps == 0) exit 1; print ticks / hz / n * 1e6, tps }' \
		"$work/out" >>"$work/$workload.$of" || die "no figures: $(cat "$work/out")"
}

# spread: median, least and most of the numbers on standard input
spread()
{
	sort -n | awk '{ v[NR] = $1 }
		END { m = NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2
			printf "%.4f %.4f %.4f\n", m, v[1], v[NR] }'
}

# against WORKLOAD SERVER column: spread of its ratio to what the servers without
# the library had in the same round; of "again" to "plain"
against()
{
	paste -d ' ' "$work/$1.plain" "$work/$1.again" "$work/$1.$2" |
		awk -v c="$3" -v noise="$2" '{
			base = noise == "again" ? $c : ($c + $(c + 2)) / 2; print $(c + 4) / base }' |
		spread
}

# least WORKLOAD SERVER: ratio of the least CPU of all rounds, which a busy machine
# spoils least
least()
{
	plain="$work/$1.plain"
	[ "$2" = again ] || plain="$plain $work/$1.again"
	# shellcheck disable=SC2086
	awk -v of="$work/$1.$2" '
		FILENAME == of { if (!n++ || $1 < v) v = $1; next }
		!m++ || $1 < base { base = $1 }
		END { printf "%.4f\n", v / base }' $plain "$work/$1.$2"
}

# workload NAME option
workload()
{
	# not counted
	for each in $servers; do bench "$each" -n -M prepared -c 1 -T 1 "$2" >/dev/null; done
	round=0
	while [ $round -lt "$rounds" ]; do
		# there and back, so that nobody is always the first
		if [ $((round % 2)) = 0 ]; then order=$servers; else order="guarded loaded again plain"; fi
		for each in $order; do run "$1" "$each" "$2"; done
		round=$((round + 1))
	done
}

# statements NAME STATEMENT: the same for a loop within the server, where neither
# client nor scheduler is in it: CPU of a statement in us, statements in a second
# of CPU
statements()
{
	count=5000
	round=0
	while [ $round -le $((rounds * 3)) ]; do
		for each in $servers; do
			on "$each" -c "VACUUM pgbench_accounts" -c "SET client_min_messages = log" \
				-c "SET log_statement_stats = on" -c "DO \$\$ DECLARE n int; BEGIN
					FOR i IN 1..$count LOOP $2; END LOOP; END \$\$" 2>&1 | awk -v n=$count '
				/ s user, .* s system, .* s elapsed/ {
					sub(/^![ \t]*/, ""); cpu = $1 + $4; found = 1; exit }
				END { if (!found) exit 1; print cpu / n * 1e6, n / cpu }' \
				>"$work/out" || die "no figures for: $2"
			# the first round is not counted
			[ $round = 0 ] || cat "$work/out" >>"$work/$1.$each"
		done
		round=$((round + 1))
	done
}

# report WORKLOAD
report()
{
	for each in $servers; do
		# shellcheck disable=SC2046
		set -- "$1" $(awk '{ print $1 }' "$work/$1.$each" | spread) \
			$(awk '{ print $2 }' "$work/$1.$each" | spread)
		printf '%-14s %-8s cpu %7.2f us (%.2f .. %.2f)   %6.0f tps (%.0f .. %.0f)\n' \
			"$1" "$each" "$2" "$3" "$4" "$5" "$6" "$7"
	done
	for each in again loaded guarded; do
		# shellcheck disable=SC2046
		set -- "$1" $(against "$1" "$each" 1) $(against "$1" "$each" 2) $(least "$1" "$each")
		printf '%-14s %-8s cpu x %.3f (%.3f .. %.3f; of least %.3f)   tps x %.3f (%.3f .. %.3f)\n' \
			"$1" "$each" "$2" "$3" "$4" "$8" "$5" "$6" "$7"
	done
}

# conclude WORKLOAD: plain against plain says how much can be told apart.  A bare
# statement takes about two microseconds, where a few nanoseconds count
conclude()
{
	case $1 in SELECT|UPDATE) limit=1.05 ;; *) limit=1.02 ;; esac
	# shellcheck disable=SC2046
	set -- "$1" $(against "$1" again 1)
	set -- "$1" "$(awk -v r="$2" 'BEGIN { print r < 1 ? 1 / r : r }')"
	judge "$1, noise, cpu" "$2" "$limit" x
	for each in loaded guarded; do
		# shellcheck disable=SC2046
		set -- "$1" $(against "$1" "$each" 1)
		judge "$1, $each, cpu" "$2" "$limit" x
	done
}

workload select-only -S
workload simple-update -N
statements SELECT "SELECT abalance INTO n FROM pgbench_accounts WHERE aid = 1 + i % 1000"
statements UPDATE "UPDATE pgbench_accounts SET abalance = i WHERE aid = 1 + i % 1000; COMMIT"
for name in select-only simple-update SELECT UPDATE; do report "$name"; done
for name in select-only simple-update SELECT UPDATE; do conclude "$name"; done
if [ "$missed" = 0 ]; then
	say "conclusion: a server that does not use the extension pays nothing that could be measured"
else
	say "conclusion: none, unless the noise is below its limit; more rounds help"
fi
finish
