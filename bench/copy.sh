#!/bin/sh
# copy.sh: price of the trigger in COPY, bare table and table with primary key
#
#	sh bench/copy.sh [rows]		(1000000)

set -eu
# shellcheck source=bench/common.sh
. "$(dirname "$0")/common.sh"

rows=${1:-1000000}
start_server

# keys in random order, so that the index is filled as by a real load
sql -c "COPY (SELECT i FROM generate_series(1, $rows) AS i ORDER BY hashint8extended(i, 1))
	TO '$work/keys.txt'"
say "COPY of $rows rows of bigint in random order"

# copy NAME COLUMN tracked|untracked: into a table of its own, which starts empty
copy()
{
	sql -c "CREATE TABLE target (id $2)"
	if [ "$3" = tracked ]; then
		sql >/dev/null <<-SQL
			SELECT bloomguard_track('target', 'id', 0.01, $((rows * 3 / 2)));
			SELECT bloomguard_wait_ready('target');
		SQL
	fi
	sql -c "CHECKPOINT"
	sample "$1" "COPY target FROM '$work/keys.txt'"
	if [ "$3" = tracked ]; then
		absent=$(sql -c "SELECT count(*) FROM target
			WHERE bloomguard_check('target', id) <> 'maybe'")
		[ "$absent" = 0 ] || die "$absent rows are not in the filter"
	fi
	sql -c "DROP TABLE target"
}

# not counted
copy warm bigint untracked
copy warm bigint tracked
round=0
while [ $round -lt "$rounds" ]; do
	copy bare bigint untracked
	copy bare_tracked bigint tracked
	copy pk "bigint PRIMARY KEY" untracked
	copy pk_tracked "bigint PRIMARY KEY" tracked
	round=$((round + 1))
done

show "bare" bare cpu
show "bare, tracked" bare_tracked cpu
show "primary key" pk cpu
show "primary key, tracked" pk_tracked cpu
judge "bare, tracked / untracked, cpu" "$(ratio bare_tracked bare cpu)" 2.8 x
judge "primary key, cpu" "$(ratio pk_tracked pk cpu)" 1.2 x
finish
