# common.sh: a throwaway server and the arithmetic of the benchmarks.  Sourced.
#
# The environment can say:
#	PG_CONFIG, PG_MAJOR		which server, as for scripts/demo.sh
#	BENCH_ROUNDS			rounds, at least 5 (7)
#	BENCH_TMP				where the cluster goes, a short path (/tmp)
#
# Each script defines its variants, runs them in turn, A B A B ..., and ends with
# "report".  A sample is the server's own account of one statement, from
# log_statement_stats: CPU of the backend, and elapsed time.

# shellcheck shell=sh disable=SC2154,SC2034

root=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=scripts/common.sh
. "$root/scripts/common.sh"

rounds=${BENCH_ROUNDS:-7}
[ "$rounds" -ge 5 ] || die "BENCH_ROUNDS must be at least 5"
missed=0

stop_server()
{
	if [ -f "$work/data/postmaster.pid" ]; then
		as_server "$PG_BIN/pg_ctl" -D "$work/data" -m immediate -w stop >/dev/null || true
	fi
	rm -rf "$work"
}

# start_server [setting...]: a cluster of our own with the installed extension
start_server()
{
	choose_server
	PG_BIN=$("$PG_CONFIG" --bindir)
	[ -f "$("$PG_CONFIG" --sharedir)/extension/bloomguard.control" ] ||
		die "bloomguard is not installed for $PG_CONFIG: make && make install"

	work=$(mktemp -d "${BENCH_TMP:-/tmp}/bguard-bench.XXXXXX")
	trap stop_server EXIT
	trap 'exit 130' INT TERM HUP
	[ "$(id -u)" != 0 ] || chown postgres "$work"

	as_server "$PG_BIN/initdb" -D "$work/data" -U postgres -A trust -E UTF8 \
		--no-locale --no-sync >/dev/null
	# a filter and its successor have to fit into bloomguard.shared_memory
	cat >>"$work/data/postgresql.conf" <<CONF
shared_preload_libraries = 'bloomguard'
bloomguard.shared_memory = 128MB
bloomguard.cost_delay = 0
bloomguard.max_workers = 1
listen_addresses = ''
unix_socket_directories = '$work'
port = 5432
shared_buffers = 2GB
fsync = off
autovacuum = off
jit = off
max_parallel_workers_per_gather = 0
max_wal_size = 16GB
checkpoint_timeout = 1d
CONF
	for setting; do
		printf '%s\n' "$setting" >>"$work/data/postgresql.conf"
	done
	as_server "$PG_BIN/pg_ctl" -D "$work/data" -l "$work/server.log" -w start >/dev/null || {
		cat "$work/server.log"
		die "the server did not start"
	}
	sql -c "CREATE EXTENSION bloomguard"
	say "$("$PG_BIN/postgres" --version), $rounds rounds"
}

# sql [options of psql]: statements from -c or standard input
sql()
{
	as_server "$PG_BIN/psql" -XqAt -v ON_ERROR_STOP=1 -h "$work" -U postgres -d postgres "$@"
}

# sample NAME STATEMENT: run it once, note its elapsed time and CPU
sample()
{
	# a connection of its own for each, so that all start alike
	sql -c "SET client_min_messages = log" -c "SET log_statement_stats = on" \
		-c "$2" 2>&1 >/dev/null | awk '
		/ s user, .* s system, .* s elapsed/ {
			sub(/^![ \t]*/, ""); print $7, $1 + $4; found = 1; exit }
		{ rest = rest $0 "\n" }
		END { if (!found) { printf "%s", rest > "/dev/stderr"; exit 1 } }' \
		>>"$work/$1.samples" || die "no figures for: $2"
}

# note NAME ELAPSED [CPU]: a sample from another source
note()
{
	printf '%s %s\n' "$2" "${3:-}" >>"$work/$1.samples"
}

# median NAME wall|cpu, least NAME wall|cpu
column()
{
	awk -v c="$2" '{ print c == "cpu" ? $2 : $1 }' "$work/$1.samples" | sort -n
}
median()
{
	column "$1" "$2" | awk '{ v[NR] = $1 }
		END { printf "%.4f", NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'
}
least()
{
	column "$1" "$2" | head -n 1
}

# show LABEL NAME [cpu]: the figures of one variant
show()
{
	if [ "${3:-}" = cpu ]; then
		printf '%-34s cpu %8.3f s (least %.3f)   wall %8.3f s (least %.3f)\n' "$1" \
			"$(median "$2" cpu)" "$(least "$2" cpu)" \
			"$(median "$2" wall)" "$(least "$2" wall)"
	else
		printf '%-34s wall %8.3f s (least %.3f)\n' "$1" \
			"$(median "$2" wall)" "$(least "$2" wall)"
	fi
}

# judge LABEL VALUE LIMIT UNIT: the result beside its target
judge()
{
	verdict=$(awk -v v="$2" -v limit="$3" 'BEGIN { print v <= limit ? "met" : "MISSED" }')
	printf '%-34s %.2f%s, target at most %s%s: %s\n' "$1" "$2" "$4" "$3" "$4" "$verdict"
	[ "$verdict" = met ] || missed=1
}

# ratio A B wall|cpu: of the medians
ratio()
{
	awk -v a="$(median "$1" "$3")" -v b="$(median "$2" "$3")" 'BEGIN { print a / b }'
}

# exit status 1 when a target was missed
finish()
{
	exit $missed
}
