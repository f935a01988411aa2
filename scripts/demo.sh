#!/bin/sh
# demo.sh: the main job of bloomguard on real data, in a throwaway cluster
#
#	sh scripts/demo.sh			show it, stop the cluster and remove everything
#	sh scripts/demo.sh --keep	leave the cluster up and say how to connect
#
# Installs missing Debian packages (sudo when not root) and the extension, and
# starts a server of its own in a temporary folder, on a Unix socket only.  No
# other cluster is touched.  PG_CONFIG or PG_MAJOR choose the server.

set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=scripts/common.sh
. "$root/scripts/common.sh"

keep=
case ${1:-} in
	'') ;;
	--keep) keep=yes ;;
	*) die "usage: sh scripts/demo.sh [--keep]" ;;
esac

install_packages build

# a short path: the name of a socket is limited to about 100 bytes
work=$(mktemp -d "${TMPDIR:-/tmp}/bloomguard-demo.XXXXXX")
data=$work/data
stop_all()
{
	if [ -f "$data/postmaster.pid" ]; then
		as_server "$PG_BIN/pg_ctl" -D "$data" -m immediate -w stop >/dev/null || true
	fi
	rm -rf "$work"
}
trap stop_all EXIT
trap 'exit 130' INT TERM HUP

now() { date +%s.%N; }
since() { awk -v a="$1" -v b="$(now)" 'BEGIN { printf "%.1f", b - a }'; }
step() { printf '\n== %s\n' "$*"; }

# sql [options of psql]: statements from standard input or -c
sql()
{
	as_server "$PG_BIN/psql" -XqAt -P pager=off -v ON_ERROR_STOP=1 -h "$work" -p 5432 \
		-U postgres -d demo "$@"
}
# table: the same, for people to read
table()
{
	sql -P format=aligned -P tuples_only=off -P footer=off -c "$1"
}

began=$(now)
step "build and install with $("$PG_CONFIG" --version)"
copy_tree
make_tree -s -j"$(nproc)" all
install_tree
rm -rf "$work/tree"

step "start a throwaway cluster in $work"
as_server "$PG_BIN/initdb" -D "$data" -U postgres -A trust -E UTF8 --no-locale --no-sync >/dev/null
cat >>"$data/postgresql.conf" <<CONF
shared_preload_libraries = 'bloomguard'
listen_addresses = ''
port = 5432
unix_socket_directories = '$work'
shared_buffers = 256MB
max_wal_size = 4GB
fsync = off		# nothing here has to survive a crash of the machine
CONF
as_server "$PG_BIN/pg_ctl" -D "$data" -l "$work/server.log" -w start >/dev/null || {
	cat "$work/server.log"
	die "the server did not start"
}
as_server "$PG_BIN/createdb" -h "$work" -p 5432 -U postgres demo
sql -c "CREATE EXTENSION bloomguard"

step "load 2,000,000 pgbench accounts and every package name that apt knows"
as_server "$PG_BIN/pgbench" -h "$work" -p 5432 -U postgres -i -s 20 -q demo 2>&1 | tail -n 1
if [ "$(apt-cache pkgnames 2>/dev/null | wc -l)" -lt 1000 ]; then
	refresh_apt
fi
sql -c "CREATE TABLE packages (name text PRIMARY KEY)"
{ apt-cache pkgnames || true; } | sort -u | sql -c "COPY packages FROM STDIN"
sql -c "ANALYZE packages"
say "packages: $(sql -c "SELECT count(*) FROM packages") names"

step "track both"
t=$(now)
# accounts for exactly the rows that are there, names with the usual room for growth
sql -c "SELECT bloomguard_track('pgbench_accounts', 'aid', capacity => 2000000)" >/dev/null
sql -c "SELECT bloomguard_track('packages', 'name')" >/dev/null
say "the two calls returned after $(since "$t") s"
for relation in pgbench_accounts packages; do
	[ "$(sql -c "SELECT bloomguard_wait_ready('$relation')")" = t ] || {
		table "SELECT relation, state, reason FROM bloomguard_filters"
		die "the filter of $relation did not become ready"
	}
done
say "both filters were ready after $(since "$t") s"

step "100,000 requests, 95 % of them for keys that do not exist"
sql <<'SQL'
SELECT setseed(0.42);

-- every twentieth key exists
CREATE TABLE account_requests AS
SELECT i % 20 = 0 AS is_there,
	CASE WHEN i % 20 = 0 THEN 1 + floor(random() * 2000000)::int
		ELSE 2000001 + floor(random() * 2000000000)::int END AS key
FROM generate_series(1, 50000) i;

-- a name that exists, or one with a wrong ending; is_there is looked up
CREATE TABLE package_requests AS
WITH numbered AS (
	SELECT name, row_number() OVER (ORDER BY name) AS no FROM packages),
asked AS (
	SELECT CASE WHEN i % 20 = 0 THEN name ELSE name || '-' || left(md5(i::text), 4) END AS key
	FROM generate_series(1, 50000) i
		JOIN numbered ON no = 1 + (i * 7919::bigint) % (SELECT count(*) FROM packages))
SELECT EXISTS (SELECT FROM packages WHERE name = key) AS is_there, key FROM asked;

-- the pattern an application would use
CREATE FUNCTION account_exists(key int) RETURNS boolean STABLE LANGUAGE plpgsql AS $$
BEGIN
	IF NOT bloomguard_might_contain('pgbench_accounts', key) THEN
		RETURN false;			-- definitely absent: the table is not touched
	END IF;
	RETURN EXISTS (SELECT FROM pgbench_accounts WHERE aid = key);
END $$;

CREATE FUNCTION package_exists(key text) RETURNS boolean STABLE LANGUAGE plpgsql AS $$
BEGIN
	IF NOT bloomguard_might_contain('packages', key) THEN
		RETURN false;
	END IF;
	RETURN EXISTS (SELECT FROM packages WHERE name = key);
END $$;

-- what PostgreSQL itself counted: scans that were started on the table
CREATE FUNCTION scans(relation regclass) RETURNS bigint LANGUAGE sql AS
	'SELECT coalesce(seq_scan, 0) + coalesce(idx_scan, 0) FROM pg_stat_all_tables WHERE relid = $1';
CREATE TABLE result (relation regclass, requests int, absent int, found int, wrong int,
	seconds numeric, reached bigint);
SQL

# ask relation requests function: one row of result
ask()
{
	sql <<SQL
SELECT pg_stat_force_next_flush();
SELECT scans('$1') AS before \gset
SELECT clock_timestamp() AS began \gset
SELECT count(*) AS requests,
	count(*) FILTER (WHERE NOT is_there) AS absent,
	count(*) FILTER (WHERE answer) AS found,
	count(*) FILTER (WHERE answer <> is_there) AS wrong
FROM (SELECT is_there, $3(key) AS answer FROM $2 OFFSET 0) s \gset
SELECT clock_timestamp() - :'began'::timestamptz AS took \gset
SELECT pg_stat_force_next_flush();
INSERT INTO result SELECT '$1', :requests, :absent, :found, :wrong,
	extract(epoch FROM :'took'::interval), scans('$1') - :before;
SQL
}
ask pgbench_accounts account_requests account_exists >/dev/null
ask packages package_requests package_exists >/dev/null

table "
SELECT relation, requests, absent AS for_absent_keys,
	requests - reached AS turned_away, reached AS reached_the_table,
	found, wrong AS wrong_answers, round(seconds, 2) AS seconds
FROM result
UNION ALL
SELECT NULL, sum(requests), sum(absent), sum(requests - reached), sum(reached),
	sum(found), sum(wrong), round(sum(seconds), 2)
FROM result"
say "turned_away = requests for which PostgreSQL counted no scan of the table"
say ""
table "
SELECT r.relation, f.false_positive_rate AS target_rate,
	round((reached - found)::numeric / absent, 6) AS measured_rate,
	reached - found AS false_positives, absent AS of_absent_keys
FROM result r JOIN bloomguard_filters f ON f.relation = r.relation"
say "the first filter is full; the second has the usual room for growth, and a lower rate until it is used"

step "an insert is seen at once"
# a name that the filter calls absent (one in a hundred might be a false positive)
name=$(sql -c "SELECT name FROM (SELECT 'bloomguard-demo-' || i AS name FROM generate_series(1, 1000) i) s
	WHERE NOT bloomguard_might_contain('packages', name) LIMIT 1")
say "before: bloomguard_check('packages', '$name') = $(sql -c "SELECT bloomguard_check('packages', '$name')")"
sql -c "INSERT INTO packages VALUES ('$name')"
say "after:  bloomguard_check('packages', '$name') = $(sql -c "SELECT bloomguard_check('packages', '$name')")"

step "restart: the filters are rebuilt by themselves"
as_server "$PG_BIN/pg_ctl" -D "$data" -l "$work/server.log" -m fast -w restart >/dev/null
t=$(now)
say "at once: bloomguard_check('pgbench_accounts', -1) = $(sql -c "SELECT bloomguard_check('pgbench_accounts', -1)")"
for relation in pgbench_accounts packages; do
	[ "$(sql -c "SELECT bloomguard_wait_ready('$relation')")" = t ] ||
		die "the filter of $relation did not come back"
done
say "both filters were ready again $(since "$t") s after the start; from the server's log:"
grep 'built filter' "$work/server.log" | tail -n 2 | sed 's/^.*LOG: */    /'
say "now:     bloomguard_check('packages', '$name') = $(sql -c "SELECT bloomguard_check('packages', '$name')")"

step "the filters, and a check of every row against them"
table "
SELECT relation, key_columns, state, capacity, pg_size_pretty(bytes) AS size, hashes,
	false_positive_rate AS target_rate, estimated_keys, estimated_rate::numeric(8,6),
	build_seconds::numeric(8,2)
FROM bloomguard_filters"
for relation in pgbench_accounts packages; do
	table "SELECT '$relation' AS relation, * FROM bloomguard_verify('$relation')"
done

step "done in $(since "$began") s"
if [ -n "$keep" ]; then
	trap - EXIT
	say "connect:  $PG_BIN/psql -h $work -p 5432 -U postgres -d demo"
	if [ "$(id -u)" = 0 ]; then run='runuser -u postgres -- '; else run=; fi
	say "stop:     $run$PG_BIN/pg_ctl -D $data -m fast stop && rm -rf $work"
fi
