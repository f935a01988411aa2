/*
 * fuzz_definition.c
 *		Trigger arguments are bytes that anybody may have written: whoever owns a
 *		table can call the trigger function with any, and a superuser can edit
 *		pg_trigger.tgargs.  Feeds them to the project's own reader, src/definition.c,
 *		without a server, and checks what must hold whatever they are.
 *
 * Reading ends, touches nothing beyond the bytes, and gives either a problem or a
 * definition that is in its bounds and survives being printed and read again.
 */
#include "postgres.h"

#include <sys/mman.h>
#include <unistd.h>

#include "common/shortest_dec.h"
#include "core/sizing.h"
#include "fuzz.h"
#include "server.h"

extern int	LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const uint8_t *current;
static size_t current_size;
uint64_t	ncomplaints;

void
complain(const char *what)
{
	if (ncomplaints++ < 10)
	{
		printf("# %s:", what);
		for (size_t i = 0; i < current_size; i++)
			printf(" %02x", current[i]);
		printf("\n");
	}
#ifdef BGUARD_LIBFUZZER
	abort();
#endif
}

/* the bytes with their end at the end of what may be read */
static const char *
at_the_edge(const void *bytes, size_t size)
{
	static char *edge;

	if (edge == NULL)
	{
		size_t		page = (size_t) sysconf(_SC_PAGESIZE);
		size_t		pages = MAXALIGN(MOST_BYTES) / page + 1;
		char	   *map = mmap(NULL, (pages + 1) * page, PROT_READ | PROT_WRITE,
							   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (map == MAP_FAILED || mprotect(map + pages * page, page, PROT_NONE) != 0)
			abort();
		edge = map + pages * page;
	}
	return memcpy(edge - size, bytes, size);
}

/* the arguments in the bytes: all that are wanted, or none */
static int
unpack(int nargs, const char *bytes, size_t size, char ***args)
{
	const char *data = at_the_edge(bytes, size);
	size_t		at = 0;
	int			zeros = 0;
	int			n;

	*args = palloc(sizeof(char *) * Max(nargs, 1));
	n = bguard_definition_unpack(data, size, nargs, *args);
	for (size_t i = 0; i < size; i++)
		zeros += bytes[i] == '\0';
	CHECK(n == (zeros >= nargs ? Max(nargs, 0) : 0));
	for (int i = 0; i < n; i++)
	{
		CHECK(strcmp((*args)[i], bytes + at) == 0);
		at += strlen((*args)[i]) + 1;
	}
	return n;
}

void
pack(Input *input, int nargs, char *const *args)
{
	input->bytes[0] = nargs & 0xff;
	input->bytes[1] = (nargs >> 8) & 0xff;
	input->size = 2;
	for (int i = 0; i < nargs; i++)
	{
		size_t		len = strlen(args[i]) + 1;

		if (input->size + len > MOST_BYTES)
			abort();
		memcpy(input->bytes + input->size, args[i], len);
		input->size += len;
	}
}

/* arguments as bloomguard_track() writes them */
static int
print(const BGuardDefinition *def, char **args)
{
	int			n = 0;

	args[n++] = bguard_definition_join(def->ncols, (char **) def->names);
	if (def->rate > 0)
	{
		char		buf[DOUBLE_SHORTEST_DECIMAL_LEN];

		double_to_shortest_decimal_buf(def->rate, buf);
		args[n++] = psprintf("false_positive_rate=%s", buf);
	}
	if (def->capacity > 0)
		args[n++] = psprintf("capacity=" INT64_FORMAT, def->capacity);
	return n;
}

bool
same_definition(const BGuardDefinition *a, const BGuardDefinition *b)
{
	if (a->ncols != b->ncols || a->rate != b->rate || a->capacity != b->capacity)
		return false;
	for (int i = 0; i < a->ncols; i++)
	{
		if (strcmp(a->names[i], b->names[i]) != 0)
			return false;
	}
	return true;
}

static void
check_problem(const BGuardDefinition *def)
{
	char	   *sentence = bguard_definition_sentence(pstrdup(def->problem));

	CHECK(def->problem[0] != '\0');
	CHECK(strcmp(sentence + 1, def->problem + 1) == 0);
	CHECK(def->ncols == 0 && def->rate == 0 && def->capacity == 0);
}

static void
check_definition(const BGuardDefinition *def)
{
	Input		again;
	BGuardDefinition back;
	char	   *printed[3];
	char	  **args;
	int			nargs;

	CHECK(def->ncols >= 1 && def->ncols <= BGUARD_MAX_KEY_COLUMNS);
	for (int i = 0; i < def->ncols; i++)
	{
		CHECK(strnlen(def->names[i], NAMEDATALEN) < NAMEDATALEN);
		for (int j = 0; j < i; j++)
			CHECK(strcmp(def->names[i], def->names[j]) != 0);
	}
	CHECK(def->rate == 0 ||
		  (def->rate >= BGUARD_MIN_RATE && def->rate <= BGUARD_MAX_RATE));
	CHECK(def->capacity == 0 ||
		  (def->capacity >= 1 && def->capacity <= BGUARD_MAX_CAPACITY));

	pack(&again, print(def, printed), printed);
	nargs = unpack(again.bytes[0], (char *) again.bytes + 2, again.size - 2, &args);
	bguard_definition_parse(nargs, args, &back);
	CHECK(back.problem == NULL && same_definition(def, &back));
}

void
read_input(const uint8_t *data, size_t size, BGuardDefinition *def)
{
	char	  **args = NULL;
	int			nargs = size < 2 ? 0 : (int16_t) (data[0] | data[1] << 8);

	current = data;
	current_size = size;
	if (size >= 2)
		nargs = unpack(nargs, (const char *) data + 2, size - 2, &args);

	/* what is not filled in shall be noticed */
	memset(def, 0x5a, sizeof(*def));
	bguard_definition_parse(nargs, args, def);
	CHECK(strcmp(def->key_columns, nargs > 0 ? args[0] : "") == 0);
	if (def->problem != NULL)
		check_problem(def);
	else
		check_definition(def);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	BGuardDefinition def;

	if (size <= MOST_BYTES / 4)
		read_input(data, size, &def);
	server_reset();
	return 0;
}
