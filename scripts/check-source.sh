#!/bin/sh
# check-source.sh: rules of the source tree that no compiler checks; writes TAP

cd "$(dirname "$0")/.." || exit 1
number=0
bad=0

# check name offender...: fails when there is an offender
check()
{
	name=$1
	shift
	number=$((number + 1))
	if [ -z "$*" ]; then
		echo "ok $number - $name"
	else
		echo "not ok $number - $name"
		printf '# %s\n' "$@"
		bad=1
	fi
}

version=$(sed -n "s/^default_version *= *'\(.*\)'/\1/p" bloomguard.control)
full=$version.0

check "install script of version $version" \
	"$([ -f "bloomguard--$version.sql" ] || echo "no bloomguard--$version.sql")"
check "META.json has version $full" \
	"$([ "$(grep -c "\"version\": \"$full\"" META.json)" -ge 2 ] || echo META.json)"
check "META.json names the install script" \
	"$(grep -q "\"file\": \"bloomguard--$version.sql\"" META.json || echo META.json)"
check "CHANGELOG.md has a section for $full" \
	"$(grep -q "^## $full" CHANGELOG.md || echo CHANGELOG.md)"
check "README.md names version $version" \
	"$(grep -q "$version" README.md || echo README.md)"
check "version tests only in src/compat.h" \
	"$(grep -l 'PG_VERSION_NUM' bloomguard.c src/*.[ch] src/core/*.[ch] | grep -v '^src/compat.h$')"
check "xxhash.h only in src/core/hash.c" \
	"$(grep -l 'include.*xxhash\.h' bloomguard.c src/*.[ch] src/core/*.[ch] | grep -v '^src/core/hash.c$')"
check "no header of PostgreSQL in src/core" \
	"$(grep -lE 'include "(postgres|c\.h|access/|catalog/|storage/|utils/|port/)' src/core/*.[ch])"
check "no postgres.h or fmgr.h in a header" \
	"$(grep -lE 'include "(postgres|fmgr)\.h"' src/*.h src/core/*.h)"
check "every object of the Makefile has a source, every source an object" \
	"$(printf '%s\n' bloomguard.c src/*.c src/core/*.c | sed 's/\.c$/.o/' | while read -r object; do
		grep -q "^	$object\( \\\\\)*\$" Makefile || echo "$object"
	done)"
# shellcheck disable=SC2016
check "every file that doc/guarantees.md names is there" \
	"$(grep -oE '`(sql|specs|t|test|scripts|src)/[A-Za-z0-9_./*-]+`' doc/guarantees.md | tr -d '`' | sort -u |
		while read -r pattern; do
			# shellcheck disable=SC2086
			set -- $pattern
			[ -e "$1" ] || echo "$pattern"
		done)"
check "every test of sql, specs and t is named in doc/guarantees.md" \
	"$(for file in sql/*.sql specs/*.spec t/*.pl; do
		grep -q "\`$file\`" doc/guarantees.md || echo "$file"
	done)"
check "every hazard has a row in doc/guarantees.md" \
	"$(for group in A:15 B:37 C:32 D:16 E-:13 F:14 G:16 H:16 I:22 J:10; do
		last=${group#*:}
		for i in $(seq "$last"); do
			grep -q "^| ${group%:*}$i |" doc/guarantees.md || echo "${group%:*}$i"
		done
	done)"
check "no pointer in shared memory" \
	"$(for struct in BGuardControl BGuardSlot BGuardOwner BGuardEntryKey BGuardSigColumn BGuardSignature \
		BGuardCounters BGuardEntry BGuardWorker RequestShared InflightSlot; do
		members=$(cat src/*.[ch] | sed -n "/^typedef [a-z]* $struct\$/,/^}/p" |
			sed -e 's|/\*.*||' -e '/^[[:space:]]*\*/d')
		[ -n "$members" ] || echo "$struct: not found"
		printf '%s\n' "$members" | grep -F '*' | sed "s/^/$struct: /"
	done)"
check "nothing raised, allocated or read from a catalog under bguard_lock" \
	"$(awk '/LWLockAcquire\(bguard_lock/ { held = 1 }
		/LWLockRelease\(bguard_lock/ || /^}/ { held = 0 }
		held && /palloc|pstrdup|psprintf|MemoryContextAlloc|ereport|elog\(|CHECK_FOR_INTERRUPTS|table_open|relation_open|SearchSysCache|get_rel_|systable_|[^W]LockAcquire|WaitLatch|StartTransaction/ {
			print FILENAME ":" FNR
		}' src/*.c)"
check "no process flag that frees a build from vacuum's horizon" \
	"$(grep -lE 'statusFlags|PROC_IN_VACUUM|PROC_IN_SAFE_IC' src/*.[ch])"

echo "1..$number"
exit $bad
