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
check "no postgres.h in a header" \
	"$(grep -l 'include "postgres\.h"' src/*.h src/core/*.h)"
check "every object of the Makefile has a source, every source an object" \
	"$(printf '%s\n' bloomguard.c src/*.c src/core/*.c | sed 's/\.c$/.o/' | while read -r object; do
		grep -q "^	$object\( \\\\\)*\$" Makefile || echo "$object"
	done)"

echo "1..$number"
exit $bad
