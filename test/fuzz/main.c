/*
 * main.c
 *		Makes inputs for fuzz_definition.c.  Writes TAP.
 *
 *	fuzz_definition [inputs [seed]]
 *
 * Three kinds: some whose outcome is written down, well-formed ones that must be
 * read as they were meant, and those damaged at random.  Everything is
 * deterministic: what passes once passes always.
 */
#include "postgres.h"

#include <math.h>

#include "core/sizing.h"
#include "fuzz.h"
#include "lib/stringinfo.h"
#include "server.h"

static int	ntests = 0;
static int	nfailed = 0;
static uint64_t seed = UINT64_C(0x626c6f6f6d677264);

static void
ok(bool passed, const char *what)
{
	/* no test answers for the one before it */
	passed &= ncomplaints == 0;
	ncomplaints = 0;
	ntests++;
	if (!passed)
		nfailed++;
	printf("%sok %d - %s\n", passed ? "" : "not ", ntests, what);
	fflush(stdout);
}

/* 0 .. n - 1 */
static uint64_t
random_below(uint64_t n)
{
	uint64_t	x = seed += UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return (x ^ (x >> 31)) % n;
}

static bool
one_in(uint64_t n)
{
	return random_below(n) == 0;
}

typedef struct Case
{
	const char *problem;		/* part of it, or NULL */
	const char *columns;		/* as they are printed */
	double		rate;
	int64		capacity;
	const char *args[4];
} Case;

#define TEN		"0123456789"
#define LONG63	"n23" TEN TEN TEN TEN TEN TEN
#define UTF16	"\303\251\303\251\303\251\303\251\303\251\303\251\303\251\303\251"

static const Case cases[] = {
	{NULL, "id", 0, 0, {"id"}},
	{NULL, "tenant_id, \"Email\"", 0, 0, {" Tenant_ID ,\n\t\"Email\" "}},
	{NULL, "\"\"\"\", \"a\"\"b\", \"c d\", \"e,f\"", 0, 0, {"\"\"\"\", a\"b, \"c d\",\"e,f\""}},
	{NULL, "a, \"A\"", 0, 0, {"A, \"A\""}},
	{NULL, "\"\"", 0, 0, {"\"\""}},
	{NULL, "a, b, c, d, e, f, g, h", 0, 0, {"a,b,c,d,e,f,g,h"}},
	{NULL, LONG63, 0, 0, {LONG63}},
	{NULL, LONG63, 0, 0, {LONG63 "4"}},
	/* cut before the character that does not fit */
	{NULL, "\"X" UTF16 UTF16 UTF16 "\303\251\303\251\303\251\303\251\303\251\303\251\303\251\"",
	0, 0, {"\"X" UTF16 UTF16 UTF16 UTF16 "\""}},
	{"is empty", NULL, 0, 0, {NULL}},
	{"is empty", NULL, 0, 0, {""}},
	{"is empty", NULL, 0, 0, {" \t\r\n\f"}},
	{"not a list", NULL, 0, 0, {"a,"}},
	{"not a list", NULL, 0, 0, {",a"}},
	{"not a list", NULL, 0, 0, {"a,,b"}},
	{"not a list", NULL, 0, 0, {"a b"}},
	{"not a list", NULL, 0, 0, {"\"a"}},
	{"not a list", NULL, 0, 0, {"\"a\"\""}},
	{"at most", NULL, 0, 0, {"a,b,c,d,e,f,g,h,i"}},
	{"twice", NULL, 0, 0, {"a,A"}},
	{"twice", NULL, 0, 0, {LONG63 "4," LONG63 "5"}},

	{NULL, "a", 0.5, 1, {"a", "false_positive_rate=0.5", "capacity=1"}},
	{NULL, "a", 1e-9, 0, {"a", "false_positive_rate=1e-9"}},
	{NULL, "a", 0, INT64CONST(1000000000000), {"a", "capacity=1000000000000"}},
	/* the last one counts */
	{NULL, "a", 0, 3, {"a", "capacity=2", "capacity=3"}},
	{"cannot be read", NULL, 0, 0, {"a", "capacity=1000000000001"}},
	{"cannot be read", NULL, 0, 0, {"a", "capacity=0"}},
	{"cannot be read", NULL, 0, 0, {"a", "capacity=-1"}},
	{"cannot be read", NULL, 0, 0, {"a", "capacity=99999999999999999999"}},
	{"cannot be read", NULL, 0, 0, {"a", "capacity=18446744073709551617"}},
	{"cannot be read", NULL, 0, 0, {"a", "capacity=1e3"}},
	{"cannot be read", NULL, 0, 0, {"a", "capacity=1 "}},
	{"cannot be read", NULL, 0, 0, {"a", "capacity="}},
	{"cannot be read", NULL, 0, 0, {"a", "capacity"}},
	{"cannot be read", NULL, 0, 0, {"a", "capacity=x", "capacity=2"}},
	{"cannot be read", NULL, 0, 0, {"a", "false_positive_rate=0.50001"}},
	{"cannot be read", NULL, 0, 0, {"a", "false_positive_rate=9e-10"}},
	{"cannot be read", NULL, 0, 0, {"a", "false_positive_rate=0"}},
	{"cannot be read", NULL, 0, 0, {"a", "false_positive_rate=1e-400"}},
	{"cannot be read", NULL, 0, 0, {"a", "false_positive_rate=nan"}},
	{"cannot be read", NULL, 0, 0, {"a", "false_positive_rate=inf"}},
	{"cannot be read", NULL, 0, 0, {"a", "false_positive_rate=0,1"}},
	{"cannot be read", NULL, 0, 0, {"a", "false_positive_rate="}},
	{"cannot be read", NULL, 0, 0, {"a", "rate=0.1"}},
	{"cannot be read", NULL, 0, 0, {"a", "b"}},
	{"cannot be read", NULL, 0, 0, {"a", ""}},
};

static void
test_cases(void)
{
	for (int i = 0; i < lengthof(cases); i++)
	{
		const Case *c = &cases[i];
		Input		input;
		BGuardDefinition def;
		int			nargs = 0;

		while (nargs < lengthof(c->args) && c->args[nargs] != NULL)
			nargs++;
		pack(&input, nargs, (char **) c->args);
		read_input(input.bytes, input.size, &def);
		if (c->problem != NULL)
			CHECK(def.problem != NULL && strstr(def.problem, c->problem) != NULL);
		else
			CHECK(def.problem == NULL &&
				  strcmp(bguard_definition_join(def.ncols, def.names), c->columns) == 0);
		CHECK(def.rate == c->rate && def.capacity == c->capacity);

		/* without its end, whatever the length, it is no definition */
		for (size_t size = 2; size < input.size && nargs > 0; size++)
		{
			read_input(input.bytes, size, &def);
			CHECK(def.problem != NULL);
		}
		server_reset();
	}
	ok(true, "what is accepted and what is refused");
}

/* a name that may be any bytes, but rather the interesting ones */
static char *
random_name(void)
{
	static const char *const bits[] = {
		"a", "b", "id", "_", "0", "A", "Z", "\"", "\"\"", "'", ",", ", ", " ", "\t",
		"\n", "\v", "\\", "=", ".", "$", "%s", "%n", "\303\251", "\342\202\254",
		"\360\237\220\230", "\303\211", "\200", "\377", "capacity=1", "select"
	};
	char	   *name = palloc(NAMEDATALEN);
	size_t		most = one_in(8) ? NAMEDATALEN - 1 : random_below(12);
	size_t		len = 0;

	while (len < most)
	{
		const char *bit = bits[random_below(lengthof(bits))];
		size_t		size = strlen(bit);

		if (size > most - len)
			break;
		memcpy(name + len, bit, size);
		len += size;
	}
	if (one_in(8) && len < NAMEDATALEN - 1)
		name[len++] = (char) (1 + random_below(255));
	name[len] = '\0';
	return name;
}

static bool
needs_quotes(const char *name)
{
	return name[0] == '\0' || name[0] == '"' || strpbrk(name, ", \t\n\r\f") != NULL ||
		strpbrk(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != NULL;
}

static void
random_space(StringInfo list)
{
	while (one_in(4))
		appendStringInfoChar(list, " \t\n\r\f"[random_below(5)]);
}

/* a name in one of the ways in which it can be written */
static void
write_name(StringInfo list, const char *name)
{
	bool		quoted = needs_quotes(name) || one_in(3);

	random_space(list);
	if (quoted)
		appendStringInfoChar(list, '"');
	for (; *name != '\0'; name++)
	{
		if (quoted && *name == '"')
			appendStringInfoChar(list, '"');
		if (!quoted && *name >= 'a' && *name <= 'z' && one_in(4))
			appendStringInfoChar(list, *name - 'a' + 'A');
		else
			appendStringInfoChar(list, *name);
	}
	if (quoted)
		appendStringInfoChar(list, '"');
	random_space(list);
}

/* arguments that are well-formed, and what they mean */
static void
random_meant(Input *input, BGuardDefinition *meant)
{
	StringInfoData list;
	char	   *args[8];
	int			nargs = 1;

	memset(meant, 0, sizeof(*meant));
	initStringInfo(&list);
	for (uint64_t wanted = 1 + random_below(BGUARD_MAX_KEY_COLUMNS); wanted > 0; wanted--)
	{
		char	   *name = random_name();
		bool		taken = false;

		for (int i = 0; i < meant->ncols; i++)
			taken |= strcmp(meant->names[i], name) == 0;
		if (taken)
			continue;
		if (meant->ncols > 0)
			appendStringInfoChar(&list, ',');
		write_name(&list, name);
		meant->names[meant->ncols++] = name;
	}
	args[0] = list.data;
	while (nargs < lengthof(args) && one_in(2))
	{
		if (one_in(2))
		{
			int			scale = -53 - (int) random_below(28);

			meant->rate = ldexp(1 + random_below(UINT64CONST(1) << 52), scale);
			if (meant->rate < BGUARD_MIN_RATE || meant->rate > BGUARD_MAX_RATE)
				meant->rate = one_in(2) ? BGUARD_MIN_RATE : BGUARD_MAX_RATE;
			args[nargs++] = psprintf("false_positive_rate=%.17g", meant->rate);
		}
		else
		{
			meant->capacity = 1 + (int64) random_below(UINT64CONST(1) << random_below(40));
			args[nargs++] = psprintf("capacity=" INT64_FORMAT, meant->capacity);
		}
	}
	pack(input, nargs, args);
}

static void
test_meant(uint64_t n)
{
	while (n-- > 0)
	{
		Input		input;
		BGuardDefinition meant;
		BGuardDefinition def;

		random_meant(&input, &meant);
		read_input(input.bytes, input.size, &def);
		CHECK(def.problem == NULL && same_definition(&def, &meant));
		server_reset();
	}
	ok(true, "well-formed arguments are read as they were meant");
}

static void
replace(Input *input, size_t from, size_t upto, const void *bytes, size_t size)
{
	if (from > upto || upto > input->size ||
		input->size - (upto - from) + size > MOST_BYTES / 4)
		return;
	memmove(input->bytes + from + size, input->bytes + upto, input->size - upto);
	memcpy(input->bytes + from, bytes, size);
	input->size = input->size - (upto - from) + size;
}

static void
mutate(Input *input)
{
	static const char *const bits[] = {
		"\"", "\"\"", ",", ", ", " ", "=", "a", "A", "false_positive_rate=", "capacity=",
		"9223372036854775808", "-", "1e999", "1e-999", "nan", "0x1p-3", "inf", "%s%n",
		"\303", "\360\237\220\230", "\377", TEN TEN TEN TEN TEN TEN TEN
	};
	const char *bit = bits[random_below(lengthof(bits))];
	size_t		from = 2 + random_below(Max(input->size - 1, 1));
	size_t		upto = from + random_below(8);
	uint8_t		copy[64];
	size_t		size = Min(random_below(sizeof(copy)), input->size - Min(from, input->size));

	switch (random_below(8))
	{
		case 0:
			replace(input, from, from, bit, strlen(bit));
			break;
		case 1:
			replace(input, from, upto, bit, strlen(bit));
			break;
		case 2:
			replace(input, from, upto, "", 0);
			break;
		case 3:
			replace(input, from, from, "", 1);
			break;
		case 4:
			copy[0] = (uint8_t) random_below(256);
			replace(input, from, from + 1, copy, 1);
			break;
		case 5:
			memcpy(copy, input->bytes + from, size);
			replace(input, 2 + random_below(Max(input->size - 1, 1)), from, copy, size);
			replace(input, from, from, copy, size);
			break;
		case 6:
			if (one_in(4))
				input->size = Min(input->size, Max(from, 2));
			break;
		default:
			if (one_in(4))
				input->bytes[random_below(2)] = (uint8_t) random_below(256);
			else
				input->bytes[0] += one_in(2) ? 1 : -1;
	}
}

/* as many arguments as there are: MOST_BYTES / 4 at most */
static void
repair_count(Input *input)
{
	input->bytes[0] = input->bytes[1] = 0;
	for (size_t i = 2; i < input->size; i++)
	{
		if (input->bytes[i] == '\0' && ++input->bytes[0] == 0)
			input->bytes[1]++;
	}
}

static void
test_mutated(uint64_t n)
{
	static const char *const kinds[] = {
		"not a list", "is empty", "at most", "named twice", "cannot be read"
	};
	uint64_t	refused[lengthof(kinds)] = {0};
	uint64_t	accepted = 0;
	bool		all = true;
	char		what[256];

	for (uint64_t i = 0; i < n; i++)
	{
		Input		input;
		BGuardDefinition def;

		random_meant(&input, &def);
		for (uint64_t mutations = 1 + random_below(6); mutations > 0; mutations--)
			mutate(&input);
		if (!one_in(4))
			repair_count(&input);
		read_input(input.bytes, input.size, &def);
		accepted += def.problem == NULL;
		for (int kind = 0; kind < lengthof(kinds); kind++)
			refused[kind] += def.problem != NULL && strstr(def.problem, kinds[kind]) != NULL;
		server_reset();
	}
	snprintf(what, sizeof(what), UINT64_FORMAT " inputs: a problem or a sound definition", n);
	ok(true, what);

	/* inputs that all go one way would show nothing */
	printf("# accepted: " UINT64_FORMAT "\n", accepted);
	for (int kind = 0; kind < lengthof(kinds); kind++)
	{
		printf("# %s: " UINT64_FORMAT "\n", kinds[kind], refused[kind]);
		all &= refused[kind] > n / 2000;
	}
	ok(all && accepted > n / 20, "of each kind there were some");
}

int
main(int argc, char **argv)
{
	uint64_t	n = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000000;

	if (argc > 2)
		seed = strtoull(argv[2], NULL, 10);
	test_cases();
	test_meant(n / 4);
	test_mutated(n);
	printf("1..%d\n", ntests);
	return nfailed > 0;
}
