#!/bin/sh
# probe.sh: price of a probe from SQL, per row of a sequential scan
#
#	sh bench/probe.sh [rows]	(10000000)

set -eu
# shellcheck source=bench/common.sh
. "$(dirname "$0")/common.sh"

rows=${1:-10000000}
start_server

# the filter has to be of the stated size: no headroom
sql >/dev/null <<SQL
CREATE TABLE keys (id bigint);
INSERT INTO keys SELECT i FROM generate_series(1, $rows) AS i;
VACUUM ANALYZE keys;
SELECT bloomguard_track('keys', 'id', 0.01, $rows);
SELECT bloomguard_wait_ready('keys', '10 min');
SQL
say "$rows rows of bigint, filter of $(sql -c "SELECT bytes / 1024 || ' kB' FROM bloomguard_filters")"

# scan NAME CONDITION
scan()
{
	sample "$1" "SELECT count(*) FROM keys WHERE $2"
}

# above NAME: ns of CPU per row above "id > 0"
above()
{
	awk -v a="$(median "$1" cpu)" -v b="$(median base cpu)" -v n="$rows" \
		'BEGIN { print (a - b) * 1e9 / n }'
}

scan warm "id > 0"
round=0
while [ $round -lt "$rounds" ]; do
	scan base "id > 0"
	scan present "bloomguard_might_contain('keys', id)"
	scan base "id > 0"
	scan absent "bloomguard_might_contain('keys', id + $rows)"
	scan base "id > 0"
	scan named "bloomguard_might_contain('keys', 'id', id)"
	round=$((round + 1))
done

found=$(sql -c "SELECT count(*) FROM keys WHERE bloomguard_might_contain('keys', id)")
[ "$found" = "$rows" ] || die "only $found of $rows keys were found"
sql -c "SELECT format('absent keys answered maybe: %s %%',
		round(100.0 * count(*) / $rows, 2))
	FROM keys WHERE bloomguard_might_contain('keys', id + $rows)"

show "id > 0" base cpu
show "might_contain(keys, id), present" present cpu
show "the same, absent" absent cpu
show "with key_columns, present" named cpu
judge "present, cpu above id > 0" "$(above present)" 250 " ns"
judge "absent" "$(above absent)" 250 " ns"
judge "with key_columns" "$(above named)" 250 " ns"
finish
