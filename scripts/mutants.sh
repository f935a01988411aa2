#!/bin/sh
# mutants.sh: is every fault noticed by a test?
#
#	sh scripts/mutants.sh			all mutants
#	sh scripts/mutants.sh NAME...	some
#
# Builds the library once without a fault and once with each mutant of
# src/core/mutant.h, in a copy of the tree and of the server, and runs the tests
# that must notice it.  These must pass without the fault and fail with it.  Writes
# TAP and then a table: which test noticed, and the first line that told.
#
# Environment: PG_CONFIG, PG_MAJOR, KEEP_WORK as for test.sh.

set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=scripts/common.sh
. "$root/scripts/common.sh"

# mutant, then suite:test,test,... that must notice
table='
MVCC_SCAN			races:insert-build
NO_BARRIER			races:insert-overlap
TWO_LOADS			races:insert-add
PLAIN_OR			core:all
SIZE_FIRST			races:insert-build
NO_IN_FLIGHT		regress:inflight
NO_DISABLE_POISON	regress:ddl
ORDINARY_TRIGGER	regress:write
CHANGED_KEYS		races:update-build
NO_RECHECK			races:insert-probe
INT32_HASH			regress:types
CHECK_FIRST			races:attach-create
BLIND_VALIDATE		races:insert-function
STALE_RECIPE		races:insert-function
'

install_packages test
work=$(mktemp -d "${TMPDIR:-/tmp}/bloomguard-mutants.XXXXXX")
finish()
{
	if [ -n "${KEEP_WORK:-}" ]; then say "# left: $work"; else rm -rf "$work"; fi
}
trap finish EXIT
trap 'exit 130' INT TERM HUP
chmod 755 "$work"
copy_tree
private_server

# every mutant of the header is in the table
for name in $(sed -n 's/^	BGUARD_MUTANT_\([A-Z0-9_]*\).*/\1/p' "$root/src/core/mutant.h"); do
	[ "$name" = NONE ] || case $table in
		*"
$name	"*) ;;
		*) die "mutant $name is not in the table of scripts/mutants.sh" ;;
	esac
done

# build name: the library with this mutant; only what mentions it is compiled anew
build()
{
	rm -f "$tree"/*.so
	# shellcheck disable=SC2086
	[ -z "${objects:-}" ] || rm -f $objects
	objects=$(grep -l "BGUARD_MUTANT($1)" "$tree"/src/*.c "$tree"/src/core/*.c |
		sed 's/c$/o/' | tr '\n' ' ')
	# shellcheck disable=SC2086
	[ -z "$objects" ] || rm -f $objects
	make_tree -s -j"$(nproc)" PROFILE="-O1 -DBGUARD_DEBUG -DBGUARD_MUTATION=$1" all &&
		install_tree
}

# run suite tests name: the tests, as one command that fails when one of them does
run()
{
	tests=$(echo "$2" | tr ',' ' ')
	rm -rf "$tree/regression.diffs" "$tree/output_races"
	case $1 in
		core) make_tree -s -B PROFILE="-DBGUARD_DEBUG -DBGUARD_MUTATION=$3" check-core ;;
		regress) make_tree -s installcheck ISOLATION= TAP_TESTS= REGRESS="setup $tests" ;;
		races) make_tree -s installcheck-races RACES="setup $tests" ;;
	esac
}

# the first difference that tells of a fault: a line of results that is new, not one
# that only has other blanks
told()
{
	{
		cat "$tree/regression.diffs" "$tree/output_races/regression.diffs" 2>/dev/null |
			awk '/^(\+\+\+|---) / { next }
				{ text = substr($0, 2); gsub(/[ \t]+/, "", text) }
				/^[-+]/ { kind[NR] = substr($0, 1, 1); line[NR] = $0; stripped[NR] = text }
				/^-/ { old[text] = 1 }
				END {
					for (i = 1; i <= NR; i++)
						if (kind[i] == "+" && !(stripped[i] in old) && line[i] ~ /absent|\|/ &&
							line[i] !~ /SELECT|^\+step/)
							print line[i]
				}'
		grep '^not ok' "$work/log" || true
	} | head -n 1 | tr -s ' ' | cut -c 1-60
}

wanted=${*:-$(echo "$table" | awk 'NF { print $1 }')}
suites=$(for name in $wanted; do
	echo "$table" | awk -v name="$name" '$1 == name { print $2 }'
done | sort -u)
[ -n "$suites" ] || die "no such mutant: $wanted"

number=0
bad=0
report()
{
	number=$((number + 1))
	[ "$1" = ok ] || bad=$((bad + 1))
	say "$1 $number - $2"
}

build NONE >"$work/log" 2>&1 || { cat "$work/log"; die "does not build"; }
for pair in $suites; do
	if run "${pair%%:*}" "${pair#*:}" NONE >"$work/log" 2>&1; then
		report ok "no mutant: $pair passes"
	else
		tail -n 40 "$work/log" | sed 's/^/# /'
		report 'not ok' "no mutant: $pair passes"
	fi
done

for name in $wanted; do
	pair=$(echo "$table" | awk -v name="$name" '$1 == name { print $2 }')
	if [ -z "$pair" ] || ! build "$name" >"$work/log" 2>&1; then
		tail -n 40 "$work/log" | sed 's/^/# /'
		report 'not ok' "$name: builds"
	elif run "${pair%%:*}" "${pair#*:}" "$name" >"$work/log" 2>&1; then
		report 'not ok' "$name: noticed by $pair"
	else
		printf '%-18s %-22s %s\n' "$name" "$pair" "$(told)" >>"$work/table"
		report ok "$name: noticed by $pair"
	fi
done

say "1..$number"
say "# mutant             noticed by             first line that told"
[ ! -f "$work/table" ] || sed 's/^/# /' "$work/table"
[ "$bad" = 0 ]
