#!/bin/sh
# build.sh: time of a build, as a multiple of SELECT count(id)
#
#	sh bench/build.sh [rows]	(10000000)

set -eu
# shellcheck source=bench/common.sh
. "$(dirname "$0")/common.sh"

rows=${1:-10000000}
start_server

sql <<SQL
CREATE TABLE keys (id bigint);
INSERT INTO keys SELECT i FROM generate_series(1, $rows) AS i;
VACUUM ANALYZE keys;
SQL
say "$rows rows of bigint, $(sql -c "SELECT pg_size_pretty(pg_relation_size('keys'))")"

# CPU of the server processes that have ended, in clock ticks; nothing without
# /proc.  The pause lets the postmaster hear of the last ones
ended()
{
	sleep 0.3
	postmaster=$(head -n 1 "$work/data/postmaster.pid")
	[ ! -r "/proc/$postmaster/stat" ] || awk '{ print $16 + $17 }' "/proc/$postmaster/stat"
}

# A definition made anew is built at once; rotations in a row are put off.  Elapsed
# time is the worker's own account; its CPU is what ends with it, and so includes
# the few milliseconds of the session that asks.
build()
{
	before=$(ended)
	sql >/dev/null <<-SQL
		SELECT bloomguard_untrack('keys') FROM bloomguard_filters;
		SELECT bloomguard_track('keys', 'id');
		SELECT bloomguard_wait_ready('keys', '10 min');
		DO \$\$
		BEGIN
			WHILE EXISTS (SELECT FROM pg_stat_activity
						  WHERE backend_type LIKE 'bloomguard worker%') LOOP
				PERFORM pg_sleep(0.01), pg_stat_clear_snapshot();
			END LOOP;
		END
		\$\$;
	SQL
	after=$(ended)
	seconds=$(sql -c "SELECT build_seconds FROM bloomguard_filters WHERE state = 'ready'")
	[ -n "$seconds" ] || die "the filter was not built"
	[ -z "$after" ] || cpu=$(awk -v t=$((after - before)) -v hz="$(getconf CLK_TCK)" \
		'BEGIN { print t / hz }')
}

# not counted: everything is in memory afterwards
sample warm "SELECT count(id) FROM keys"
build
round=0
while [ $round -lt "$rounds" ]; do
	sample count "SELECT count(id) FROM keys"
	build
	note build "$seconds" "${cpu:-}"
	round=$((round + 1))
done

sql -c "SELECT format('filter: %s kB, %s hashes', bytes / 1024, hashes) FROM bloomguard_filters"
absent=$(sql -c "SELECT count(*) FROM keys WHERE bloomguard_check('keys', id) <> 'maybe'")
[ "$absent" = 0 ] || die "$absent rows are called absent"

show "SELECT count(id)" count cpu
show "build" build "${cpu:+cpu}"
judge "build / count(id), wall" "$(ratio build count wall)" 3.0 x
[ -z "${cpu:-}" ] || judge "build / count(id), cpu" "$(ratio build count cpu)" 3.0 x
finish
