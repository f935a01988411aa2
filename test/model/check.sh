#!/bin/sh
# check.sh: search the models of the protocol with spin; writes TAP
#
#	sh test/model/check.sh			small configurations: a minute, 0.2 GB each
#	sh test/model/check.sh full	larger ones, too: ten minutes, 2 GB each
#
# Three kinds of checks:
#	holds	the model as it should be: searched to the end, no error
#	found	with a mutation that breaks the protocol: the assertion is violated
#	sound	with a mutation that another rule makes up for (says the model's banner):
#			as "holds"
# Each names the least number of states: a search of fewer has not looked.
#
# Needs spin and gcc in the PATH.  Works in a temporary folder.  MODEL_JOBS is the
# number of searches at a time (default: processors, at most 2), KEEP_WORK=1 leaves
# the folder.

set -u

cd "$(dirname "$0")" || exit 1
here=$PWD
full=
case ${1:-} in
	'') ;;
	full) full=yes ;;
	*) echo "usage: check.sh [full]" >&2; exit 2 ;;
esac

for tool in spin gcc; do
	command -v "$tool" >/dev/null || {
		echo "Bail out! $tool is not installed"
		exit 1
	}
done

jobs=${MODEL_JOBS:-$(nproc 2>/dev/null || echo 1)}
[ "$jobs" -le 2 ] || [ -n "${MODEL_JOBS:-}" ] || jobs=2

work=$(mktemp -d "${TMPDIR:-/tmp}/bloomguard-model.XXXXXX")
finish()
{
	if [ -n "${KEEP_WORK:-}" ]; then echo "# left: $work"; else rm -rf "$work"; fi
}
trap finish EXIT
trap 'exit 130' INT TERM HUP PIPE

# kind, model, least states, names that are defined
cases()
{
	cat <<-'CASES'
		holds guard 1000000 BASE
		holds guard 400000 PART
		holds guard 1500000 FUNC CALM
		holds guard 500000 OPCLASS CALM
		holds guard 2500000 REUSE CALM
		holds guard 2500000 SHARE
		holds barrier 400 ADD
		holds barrier 400 ADD TSO
		holds barrier 500 PROBE
		holds barrier 500 PROBE TSO
		found guard 1000 BASE ADDFIRST
		found guard 1000 BASE LINKFIRST
		found guard 1000 BASE TWOLOADS
		found guard 1000 BASE NOCOUNTER
		found guard 1000 BASE NOPOISONLINK
		found guard 1000 BASE EARLYPOISON
		found guard 1000 BASE NOLOCK
		found guard 1000 BASE SCANFIRST
		found guard 1000 BASE CLEARLAST
		found guard 1000 BASE BLINDVALID
		found guard 1000 BASE FREEOTHERS
		found guard 1000 BASE NORECHECK
		found guard 1000 BASE LATESNAPSHOT
		found guard 1000 BASE CHECKFIRST NOROWCHECK NOPCHECK
		found guard 1000 BASE CHECKFIRST NOROWCHECK LATEPOISON
		found guard 1000 BASE CHECKFIRST SLOTSFIRST
		found guard 1000 PART CHECKFIRST
		found guard 1000 PART ATTACHSILENT
		found guard 1000 FUNC CALM NOBUMP
		found guard 1000 FUNC CALM FUNCUNLOCKED
		found guard 1000 FUNC CALM LATEVERSION
		found guard 1000 FUNC CALM NOVERSIONCHECK
		found guard 1000 FUNC CALM STALECACHE
		found guard 1000 OPCLASS CALM NOSIGCHECK
		found guard 1000 OPCLASS CALM NOAGREE
		found guard 1000 OPCLASS CALM NOSCANSIG
		found guard 1000 OPCLASS CALM SIGINPLACE
		found guard 1000 OPCLASS CALM KEEPLOOKUP
		found guard 1000 REUSE CALM STALECACHE
		found guard 1000 REUSE CALM NOCREATEBUMP NOBUMP
		found guard 1000 REUSE CALM KEYFIRST
		found guard 1000 REUSE CALM NOKEYCHECK NOVERSIONCHECK
		found guard 1000 SHARE SWEEPLIVE
		found guard 1000 SHARE FREEFIRST
		found guard 1000 SHARE LATEFREE
		found barrier 100 ADD NOWRITERBARRIER
		found barrier 100 ADD TSO NOWRITERBARRIER
		found barrier 100 ADD NOBUILDERBARRIER
		found barrier 100 ADD TSO NOBUILDERBARRIER
		found barrier 100 ADD NOBUMPBARRIER
		found barrier 100 ADD TSO NOBUMPBARRIER
		found barrier 100 ADD NOCLEARBARRIER
		found barrier 100 PROBE NOREADBARRIER
		found barrier 100 PROBE TSO NOREADBARRIER
		found barrier 100 PROBE NOREADBARRIER1
		found barrier 100 PROBE NOREADBARRIER2
		found barrier 100 PROBE NOPOISONBARRIER
		sound barrier 400 ADD NOWRITEBARRIER
		sound barrier 400 ADD NOPUBLISHBARRIER
	CASES
	[ -z "$full" ] || cat <<-'CASES'
		sound guard 500000 BASE NOPCHECK
		sound guard 500000 BASE NOPCHECK NOROWCHECK
		sound guard 500000 BASE LATEPOISON NOROWCHECK
		sound guard 500000 BASE SLOTSFIRST NOROWCHECK
		sound guard 500000 BASE CHECKFIRST NOROWCHECK
		sound guard 500000 BASE CLEARLATE
		sound guard 500000 FUNC CALM NOREMAKE
		sound guard 500000 REUSE CALM NOCREATEBUMP
		sound guard 500000 REUSE CALM NOKEYCHECK
		sound guard 500000 REUSE CALM NOVERSIONCHECK
		holds guard 5000000 FUNC
		holds guard 2000000 OPCLASS
		holds guard 10000000 PART WRITERS=1
		holds guard 10000000 REUSE
		holds guard 5000000 BASE CALM RIVAL
		holds guard 5000000 BASE CALM WRITERS=2
		holds guard 5000000 BASE WRITERS=2
		holds guard 2000000 BASE ROUNDS=3
		holds guard 5000000 SHARE ROUNDS=3
	CASES
}

# search number kind model states name...: a line with the verdict to
# $work/number/result, what is wrong with it to $work/number/why
search()
{
	dir=$work/$1
	kind=$2
	model=$3
	least=$4
	shift 4
	mkdir "$dir" && cd "$dir" || return
	echo "not ok" >result
	echo "it did not come to an end" >why

	defines=
	for name; do
		# a name that the model does not know would change nothing
		grep -Eq "^#.*\b${name%%=*}\b" "$here"/*.pml || {
			echo "no model knows $name" >why
			return
		}
		defines="$defines -D$name"
	done

	# shellcheck disable=SC2086
	spin $defines -a "$here/$model.pml" >spin.out 2>&1
	[ -s pan.c ] || {
		{ echo "spin failed"; cat spin.out; } >why
		return
	}
	# what is searched for long is worth a compiler's time
	case $kind,$model in
		found,*|*,barrier) optimise=-O0 ;;
		*) optimise=-O1 ;;
	esac
	gcc $optimise -w -DSAFETY -DCOLLAPSE -DMEMLIM=4000 -o pan pan.c >gcc.out 2>&1 || {
		{ echo "gcc failed"; cat gcc.out; } >why
		return
	}
	if [ "$model" = barrier ]; then hash=16; else hash=22; fi
	[ -z "$full" ] || [ "$least" -lt 2000000 ] || hash=25
	./pan -m20000 -w$hash >out 2>&1
	code=$?

	states=$(sed -n 's/^ *\([0-9][0-9.e+]*\) states, stored.*/\1/p' out)
	states=$(printf '%.0f' "${states:-0}")
	seconds=$(sed -n 's/^pan: elapsed time \(.*\) seconds.*/\1/p' out)
	memory=$(sed -n 's/^ *\([0-9.]*\).*total actual memory usage.*/\1/p' out)
	depth=$(sed -n 's/.*depth reached \([0-9]*\),.*/\1/p' out)
	echo "$states states, depth ${depth:-?}, ${seconds:-?} s, ${memory:-?} MB" >figures

	if ! grep -q '^Full statespace search for:' out; then
		echo "no full search"
	elif [ "$states" -lt "$least" ]; then
		echo "only $states states, at least $least expected"
	elif grep -Eq 'max search depth too small|out of memory|hash table full|VECTORSZ' out; then
		echo "search was cut off"
	elif [ "$kind" = found ]; then
		grep -q '^pan:1: assertion violated' out && grep -q 'errors: 1$' out ||
			echo "the mutation was not found"
	elif [ "$code" != 0 ] || ! grep -q 'errors: 0$' out ||
		grep -q 'Search not completed' out; then
		echo "errors, or search not completed"
	elif grep -Eq '"(hit = |assert\(mem|assert\( *!\(*link1)' out; then
		# from the list of what was not reached
		echo "the reader never came to a look at the bits"
	fi >why
	if [ -s why ]; then
		grep -E '^pan|errors:|unreached|assert' out >>why
	else
		echo ok >result
	fi
	rm -f pan pan.*
}

number=0
bad=0
cases >"$work/cases"

# report number kind model states name...
report()
{
	dir=$work/$1
	what="$1 - $3: $(echo "$*" | cut -d ' ' -f 5-) $2"
	if [ "$(cat "$dir/result")" = ok ]; then
		echo "ok $what"
		sed 's/^/# /' "$dir/figures"
	else
		echo "not ok $what"
		sed 's/^/# /' "$dir/why"
		bad=1
	fi
}

# some at a time, told in the order of the list
number=0
told=0
bad=0
cases >"$work/cases"
total=$(wc -l <"$work/cases")
while [ "$number" -lt "$total" ]; do
	number=$((number + 1))
	# shellcheck disable=SC2046
	search "$number" $(sed -n "${number}p" "$work/cases") &
	[ $((number % jobs)) = 0 ] || [ "$number" = "$total" ] || continue
	wait
	while [ "$told" -lt "$number" ]; do
		told=$((told + 1))
		# shellcheck disable=SC2046
		report "$told" $(sed -n "${told}p" "$work/cases")
	done
done

echo "1..$number"
exit $bad
