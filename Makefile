# bloomguard: a Bloom filter of a table's key, complete at all times
#
#	make && make install		build and install (PG_CONFIG=... for another server)
#	make installcheck			pg_regress, isolation and TAP tests, each in temporary
#								instances; after "make install", not as root
#	make check-core				tests of the filter itself and of what reads trigger
#								arguments, no server needed
#
# scripts/test.sh does all of this on a copy of the tree.

MODULE_big = bloomguard
OBJS = \
	bloomguard.o \
	src/guc.o \
	src/debug.o \
	src/arena.o \
	src/fleet.o \
	src/registry.o \
	src/registry_poison.o \
	src/definition.o \
	src/definition_judge.o \
	src/keys.o \
	src/request.o \
	src/stats.o \
	src/inflight.o \
	src/ddl.o \
	src/ddl_function.o \
	src/ddl_rename.o \
	src/ddl_utility.o \
	src/trigger.o \
	src/track.o \
	src/probe.o \
	src/probe_resolve.o \
	src/probe_sql.o \
	src/probe_support.o \
	src/probe_share.o \
	src/gate_match.o \
	src/gate_plan.o \
	src/gate_exec.o \
	src/build.o \
	src/build_check.o \
	src/build_scan.o \
	src/worker.o \
	src/launcher.o \
	src/views.o \
	src/admin.o \
	src/verify.o \
	src/core/hash.o \
	src/core/sizing.o \
	src/core/bloom.o
PGFILEDESC = "bloomguard - a Bloom filter of a table's key in shared memory"

EXTENSION = bloomguard
DATA = $(wildcard bloomguard--*.sql)

REGRESS = \
	setup \
	types \
	track \
	write \
	ddl \
	partition \
	inflight \
	hash_function \
	frozen \
	probe \
	gate \
	gate_support \
	privileges \
	errors \
	hazards \
	hazards_build \
	nested_ddl \
	views

ISOLATION = $(patsubst specs/%.spec,%,$(sort $(wildcard specs/*.spec)))

TAP_TESTS = 1

# Temporary instances of their own, preloaded with the library.  TAP removes
# tmp_check, hence the other names.
REGRESS_OPTS = --temp-instance=tmp_check_regress \
	--temp-config=$(srcdir)/bloomguard.conf --encoding=UTF8 --no-locale
ISOLATION_OPTS = --temp-instance=tmp_check_isolation \
	--temp-config=$(srcdir)/bloomguard.conf --encoding=UTF8 --no-locale

# xxHash is used header-only, so nothing is linked
XXHASH_CFLAGS := $(shell pkg-config --cflags libxxhash 2>/dev/null)
PG_CPPFLAGS = -I$(srcdir)/src $(XXHASH_CFLAGS)

# A second copy of the library in a process keeps to its own functions and
# variables: on ELF systems those of the first would take their place.
SHLIB_LINK = $(if $(filter linux freebsd netbsd openbsd,$(PORTNAME)),-Xlinker -Bsymbolic)

EXTRA_CLEAN = tmp_check_regress tmp_check_isolation \
	tmp_check_races output_races \
	test/core/test_core test/core/test_core_sanitize \
	test/fuzz/fuzz_definition test/fuzz/fuzz_definition_libfuzzer

PG_CONFIG ?= pg_config
PGXS := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)

# Races, stopped at named points (src/debug.h): only for a library that was built
# with PROFILE=-DBGUARD_DEBUG.  "setup" comes first, it makes what the others use.
RACES = setup $(filter-out setup,$(patsubst $(srcdir)/test/races/specs/%.spec,%,$(sort \
	$(wildcard $(srcdir)/test/races/specs/*.spec))))
.PHONY: installcheck-races
installcheck-races:
	$(MAKE) installcheck REGRESS= TAP_TESTS= ISOLATION='$(RACES)' \
		ISOLATION_OPTS='--temp-instance=tmp_check_races --inputdir=$(srcdir)/test/races \
		--outputdir=output_races --temp-config=$(srcdir)/bloomguard.conf \
		--encoding=UTF8 --no-locale'

# PGXS knows no header dependencies
OUR_HEADERS = $(wildcard $(srcdir)/src/*.h $(srcdir)/src/core/*.h)
$(OBJS) $(OBJS:.o=.bc): $(OUR_HEADERS)

# Built without PostgreSQL's headers, which is what shows that src/core needs none
.PHONY: check-core
check-core:
	$(MAKE) -C $(srcdir)/test/core check CC='$(CC)' \
		CPPFLAGS='$(XXHASH_CFLAGS)' CFLAGS='-O2 -g $(PROFILE)'
	$(MAKE) -C $(srcdir)/test/fuzz check CC='$(CC)' PG_CONFIG='$(PG_CONFIG)' \
		CFLAGS='-O1 -g $(PROFILE)'
