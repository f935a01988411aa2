#!/bin/sh
# test.sh: build and install bloomguard, and run its tests
#
#	sh scripts/test.sh				all suites
#	sh scripts/test.sh tap			named suites, in the order in which all are run:
#		source		rules of the source tree
#		core		the filter itself, without a server
#		model		the protocol, checked exhaustively (by spin)
#		regress		SQL behaviour
#		isolation	sessions that interleave
#		races		the same, stopped at points of a debug build in between
#		mutants		does each test that must notice a fault notice it?
#		tap			restarts, crashes, several servers
#		stress		a minute of everything at once (STRESS_SECONDS)
#
# Installs missing Debian packages (sudo when not root), builds a private copy of
# the tree with warnings as errors, installs it, and runs the tests there as a
# non-root user, in temporary instances.  No other cluster is touched.  It can be
# run any number of times.
#
# The last line counts the checks of "source", "core", "model", "mutants" and
# "stress", the test files of "regress", "isolation" and "races", and the top-level
# checks of "tap".  A suite in which nothing ran, or that ended badly without naming
# a check, counts as one failure.
#
# Environment: PG_CONFIG or PG_MAJOR choose the server, PROVE_TESTS='t/...'
# chooses TAP files, KEEP_WORK=1 leaves the copy where it is.

set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=scripts/common.sh
. "$root/scripts/common.sh"

all="source core model regress isolation races mutants tap stress"
suites=${*:-$all}
passed=0
failed=0

for suite in $suites; do
	case " $all " in
		*" $suite "*) ;;
		*) die "unknown suite: $suite; there are $all" ;;
	esac
done

install_packages test

# a short path: the name of a socket is limited to about 100 bytes
work=$(mktemp -d "${TMPDIR:-/tmp}/bloomguard-test.XXXXXX")
finish()
{
	if [ -n "${KEEP_WORK:-}" ]; then say "left: $work"; else rm -rf "$work"; fi
}
trap finish EXIT
trap 'exit 130' INT TERM HUP
chmod 755 "$work"

say "== build with $("$PG_CONFIG" --version)"
copy_tree
strict="-Wall -Wextra -Wno-unused-parameter -Wno-sign-compare"
strict="$strict -Wno-missing-field-initializers -Werror"
make_tree -s -j"$(nproc)" PROFILE="$strict" all
install_tree

# run_logged log command...: output to the screen and to the log; its exit code
# is in $status
run_logged()
{
	log=$1
	shift
	{ "$@" 2>&1 && echo 0 >"$work/status" || echo "$?" >"$work/status"; } | tee "$log"
	status=$(cat "$work/status")
}

# what was skipped or is known to fail does not count
count()
{
	grep -E "$1" "$log" | grep -Eivc '# *(skip|todo)' || true
}

# tally suite pattern-of-passed pattern-of-failed
tally()
{
	good=$(count "$2")
	bad=$(count "$3")
	if [ "$bad" = 0 ] && { [ "$status" != 0 ] || [ "$good" = 0 ]; }; then
		say "$1: exit code $status after $good passed"
		bad=1
	fi
	say "$1: $good passed, $bad failed"
	passed=$((passed + good))
	failed=$((failed + bad))
	[ "$bad" = 0 ]
}

show()
{
	for file; do
		[ ! -s "$file" ] || { say "-- $file"; tail -n "${lines:-400}" "$file"; }
	done
}

# of TAP files that failed or did not come to their end: their log and the ends
# of their servers' logs
show_tap_logs()
{
	for own in "$tree"/tmp_check/log/regress_log_*; do
		[ -f "$own" ] || continue
		if grep -q '\] not ok ' "$own" || ! grep -q '\] 1\.\.' "$own"; then
			show "$own"
			lines=60 show "$tree"/tmp_check/log/"${own##*/regress_log_}"_*.log
		fi
	done
}

# The library with pause points must not get into the server that others use.  Runs
# in a subshell, so that tree and server are as they were.
run_races()
(
	tree=$work/debug
	copy_tree && private_server &&
		make_tree -s -j"$(nproc)" PROFILE="$strict -DBGUARD_DEBUG" all &&
		install_tree && make_tree -s installcheck-races
)

for suite in $suites; do
	say "== $suite"
	case $suite in
		source)
			run_logged "$work/source.log" sh "$tree/scripts/check-source.sh"
			tally source '^ok ' '^not ok ' || true
			;;
		core)
			run_logged "$work/core.log" make_tree -s PROFILE="$strict" check-core
			tally core '^ok ' '^not ok ' || true
			;;
		regress)
			run_logged "$work/regress.log" make_tree -s installcheck ISOLATION= TAP_TESTS=
			# pg_regress writes TAP from version 16 on
			tally regress '(\.\.\. ok |^ok )' '(\.\.\. FAILED|^not ok )' || {
				show "$tree/regression.diffs"
				lines=60 show "$tree/log/postmaster.log"
			}
			;;
		isolation)
			run_logged "$work/isolation.log" make_tree -s installcheck REGRESS= TAP_TESTS=
			tally isolation '(\.\.\. ok |^ok )' '(\.\.\. FAILED|^not ok )' || {
				show "$tree/output_iso/regression.diffs"
				lines=60 show "$tree/output_iso/log/postmaster.log"
			}
			;;
		races)
			run_logged "$work/races.log" run_races
			tally races '(\.\.\. ok |^ok )' '(\.\.\. FAILED|^not ok )' || {
				show "$work/debug/output_races/regression.diffs"
				lines=60 show "$work/debug/output_races/log/postmaster.log"
			}
			;;
		mutants)
			run_logged "$work/mutants.log" sh "$root/scripts/mutants.sh"
			tally mutants '^ok ' '^not ok ' || true
			;;
		model)
			run_logged "$work/model.log" as_server sh "$tree/test/model/check.sh"
			tally model '^ok ' '^not ok ' || true
			;;
		stress)
			run_logged "$work/stress.log" sh "$root/scripts/stress.sh" "${STRESS_SECONDS:-60}"
			tally stress 'false negatives: 0' 'false negatives: [1-9]' || true
			;;
		tap)
			run_logged "$work/tap.log" make_tree -s installcheck REGRESS= ISOLATION= \
				PROVE_FLAGS=--verbose PROVE_TESTS="${PROVE_TESTS:-}" \
				${GATE_QUERIES:+GATE_QUERIES="$GATE_QUERIES"} ${GATE_SEED:+GATE_SEED="$GATE_SEED"}
			tally tap '^ok ' '^not ok ' || show_tap_logs
			;;
	esac
done

say "$passed passed, $failed failed"
[ "$failed" = 0 ] && [ "$passed" != 0 ]
