# common.sh: what test.sh and demo.sh share.  Sourced, not run.
#
# The environment can say which server to use:
#	PG_CONFIG	path of pg_config
#	PG_MAJOR	major version, from Debian's packages
# Without either it is the pg_config in the PATH if that is 15 or later, else the
# version that the distribution calls its own.
#
# The caller sets root (the source tree) and work (a temporary folder); tree, if
# the copy of the source shall not be $work/tree.  install_packages sets PG_CONFIG,
# PG_MAJOR and PG_BIN.

# shellcheck shell=sh disable=SC2154,SC2034

export LC_ALL=C.UTF-8

say()
{
	printf '%s\n' "$*"
}

die()
{
	printf '%s\n' "$*" >&2
	exit 1
}

as_root()
{
	if [ "$(id -u)" = 0 ]; then
		"$@"
	elif command -v sudo >/dev/null; then
		sudo "$@"
	else
		die "root is needed for: $*"
	fi
}

# As root, the server's work is done by the user postgres: it refuses root.
# as_server command...: with a clean environment, everything temporary in $work
as_server()
{
	if [ "$(id -u)" = 0 ]; then
		runuser -u postgres -- env -i PATH="$PATH" HOME="$work" TMPDIR="$work" \
			LC_ALL="$LC_ALL" "$@"
	else
		env -u PGHOST -u PGPORT -u PGUSER -u PGDATABASE -u PGOPTIONS \
			HOME="$work" TMPDIR="$work" "$@"
	fi
}

# major version of a pg_config; nothing when it is not there
major_of()
{
	"$1" --version 2>/dev/null | sed -n 's/^PostgreSQL \([0-9]*\).*/\1/p'
}

refresh_apt()
{
	[ -z "${apt_is_fresh:-}" ] || return 0
	as_root apt-get -q update || say "apt-get update failed, going on with what apt knows"
	apt_is_fresh=yes
}

# the major version that the distribution's package "postgresql" stands for
major_of_distribution()
{
	apt-cache depends postgresql 2>/dev/null |
		sed -n 's/.*Depends: postgresql-\([0-9][0-9]*\)$/\1/p' | head -n 1
}

choose_server()
{
	if [ -n "${PG_CONFIG:-}" ]; then
		PG_MAJOR=$(major_of "$PG_CONFIG")
		[ -n "$PG_MAJOR" ] || die "cannot run PG_CONFIG=$PG_CONFIG"
	elif [ -z "${PG_MAJOR:-}" ]; then
		PG_MAJOR=$(major_of pg_config)
		if [ "${PG_MAJOR:-0}" -ge 15 ]; then
			PG_CONFIG=$(command -v pg_config)
		elif command -v apt-cache >/dev/null; then
			[ -n "$(major_of_distribution)" ] || refresh_apt
			PG_MAJOR=$(major_of_distribution)
		fi
	fi
	PG_MAJOR=${PG_MAJOR:-15}
	[ "$PG_MAJOR" -ge 15 ] || die "bloomguard needs PostgreSQL 15 or later, not $PG_MAJOR"
	if [ -z "${PG_CONFIG:-}" ]; then
		PG_CONFIG=/usr/lib/postgresql/$PG_MAJOR/bin/pg_config
	fi
}

# Is everything there?  $1 = build, or test, which needs Perl's IPC::Run and spin, too
have_packages()
{
	[ "$(major_of "$PG_CONFIG")" = "$PG_MAJOR" ] &&
		[ -x "$("$PG_CONFIG" --bindir)/initdb" ] &&
		[ -x "$("$PG_CONFIG" --bindir)/pgbench" ] &&
		[ -f "$("$PG_CONFIG" --pgxs)" ] &&
		[ -f "$("$PG_CONFIG" --includedir-server)/postgres.h" ] &&
		command -v gcc >/dev/null && command -v make >/dev/null &&
		echo '#include <xxhash.h>' | gcc -E -x c - >/dev/null 2>&1 || return 1
	[ "$1" = build ] || {
		command -v prove >/dev/null && perl -MIPC::Run -e 1 2>/dev/null &&
			command -v spin >/dev/null
	}
}

# Install what is missing.  The server is named together with its headers, so
# that both are of one minor version.
install_packages()
{
	choose_server
	if ! have_packages "$1"; then
		command -v apt-get >/dev/null ||
			die "needed: PostgreSQL $PG_MAJOR with server headers, xxHash headers, gcc, make, Perl with IPC::Run, spin"
		say "installing packages for PostgreSQL $PG_MAJOR"
		refresh_apt
		packages="postgresql-$PG_MAJOR postgresql-server-dev-$PG_MAJOR libxxhash-dev gcc libc6-dev make"
		[ "$1" = build ] || packages="$packages libipc-run-perl perl spin"
		# shellcheck disable=SC2086
		as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y \
			--no-install-recommends $packages || die "installing packages failed"
		have_packages "$1" || die "packages were installed, but something is still missing"
	fi
	PG_BIN=$("$PG_CONFIG" --bindir)
}

# Bitcode is made by the compiler the server was built with; without it, none
llvm_flag()
{
	clang=$(sed -n 's/^CLANG[ \t]*=[ \t]*//p' \
		"$(dirname "$("$PG_CONFIG" --pgxs)")/../Makefile.global")
	[ -n "$clang" ] && command -v "$clang" >/dev/null || echo with_llvm=no
}

# Copy the tree to $tree, which the server's user owns, without old objects
copy_tree()
{
	tree=${tree:-$work/tree}
	mkdir "$tree"
	(cd "$root" && tar -cf - --exclude=./.git --exclude='./tmp_check*' \
		--exclude=./test/core/test_core --exclude=./test/fuzz/fuzz_definition \
		--exclude='*.o' --exclude='*.bc' --exclude='*.so' .) |
		(cd "$tree" && tar -xf -)
	if [ "$(id -u)" = 0 ]; then
		chown -R postgres "$work"
	fi
}

# make_tree arguments...: make in the copy, as the server's user
make_tree()
{
	# shellcheck disable=SC2046
	as_server make --no-print-directory -C "$tree" PG_CONFIG="$PG_CONFIG" $(llvm_flag) "$@"
}

install_tree()
{
	if [ -w "$("$PG_CONFIG" --pkglibdir)" ]; then install_as=; else install_as=as_root; fi
	# shellcheck disable=SC2046
	$install_as make -s --no-print-directory -C "$tree" PG_CONFIG="$PG_CONFIG" $(llvm_flag) install
}

# A copy of the server in $work/server, for a library that nobody else shall load.
# PostgreSQL finds its folders from where the program lies, so it needs no more
# than to keep their places.  Sets PG_CONFIG and PG_BIN.
private_server()
{
	for what in bindir sharedir pkglibdir includedir includedir-server libdir; do
		folder=$("$PG_CONFIG" "--$what")
		[ ! -e "$work/server$folder" ] || continue
		mkdir -p "$work/server$(dirname "$folder")"
		case $what in
			bindir|sharedir|pkglibdir) cp -RL "$folder" "$work/server$folder" ;;
			*) ln -s "$folder" "$work/server$folder" ;;
		esac
	done
	PG_BIN=$work/server$("$PG_CONFIG" --bindir)
	PG_CONFIG=$PG_BIN/pg_config
	[ "$("$PG_CONFIG" --bindir)" = "$PG_BIN" ] || die "the copy of the server does not find itself"
}
