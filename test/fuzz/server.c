/*
 * server.c
 *		Stand-ins for the few functions of the server that the code under test
 *		calls.
 *
 * Each piece of memory is a malloc of its own, so that the address sanitizer sees
 * its ends.  Splitting and quoting follow what the server documents, with UTF-8
 * as its encoding and without any locale; the rest (psprintf, StringInfo) comes
 * from libpgcommon.
 */
#include "postgres.h"

#include "nodes/pg_list.h"
#include "server.h"
#include "utils/builtins.h"
#include "utils/varlena.h"

static void **pieces;
static size_t npieces;
static size_t room;

extern void server_assertion_failed(void);

void
server_assertion_failed(void)
{
	abort();
}

static void *
allocate(void *old, size_t size)
{
	void	   *piece = realloc(old, size > 0 ? size : 1);

	if (piece == NULL)
		abort();
	return piece;
}

void *
palloc(Size size)
{
	if (npieces == room)
	{
		room = room * 2 + 64;
		pieces = allocate(pieces, room * sizeof(void *));
	}
	return pieces[npieces++] = allocate(NULL, size);
}

void *
palloc0(Size size)
{
	return memset(palloc(size), 0, size);
}

static size_t
find_piece(void *piece)
{
	for (size_t i = npieces; i-- > 0;)
	{
		if (pieces[i] == piece)
			return i;
	}
	abort();
}

void *
repalloc(void *piece, Size size)
{
	size_t		i = find_piece(piece);

	return pieces[i] = allocate(piece, size);
}

void
pfree(void *piece)
{
	pieces[find_piece(piece)] = pieces[npieces - 1];
	npieces--;
	free(piece);
}

char *
pnstrdup(const char *string, Size size)
{
	size_t		len = strnlen(string, size);
	char	   *copy = palloc(len + 1);

	memcpy(copy, string, len);
	copy[len] = '\0';
	return copy;
}

char *
pstrdup(const char *string)
{
	return pnstrdup(string, strlen(string));
}

void
server_reset(void)
{
	while (npieces > 0)
		free(pieces[--npieces]);
}

static bool
is_space(char c)
{
	return c != '\0' && strchr(" \t\n\r\f", c) != NULL;
}

/* cut to less than NAMEDATALEN bytes, not within a character */
static void
cut_name(char *name)
{
	size_t		len = 0;

	if (strlen(name) < NAMEDATALEN)
		return;
	while (name[len] != '\0')
	{
		unsigned char c = (unsigned char) name[len];
		size_t		next = len + (c < 0xc0 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : c < 0xf8 ? 4 : 1);

		if (next >= NAMEDATALEN)
			break;
		len = next;
	}
	name[len] = '\0';
}

/*
 * The next identifier of the list, NULL when there is none.  Quoted: everything
 * up to the closing quote, two quotes stand for one.  Bare: everything up to white
 * space or separator, in lower case, and at least one character.
 */
static char *
next_name(const char **at, char separator)
{
	const char *p = *at;
	char	   *name = palloc(strlen(p) + 1);
	size_t		len = 0;

	if (*p == '"')
	{
		for (p++; *p != '"' || p[1] == '"'; p++)
		{
			if (*p == '\0')
				return NULL;
			if (*p == '"')
				p++;
			name[len++] = *p;
		}
		p++;
	}
	else
	{
		for (; *p != '\0' && *p != separator && !is_space(*p); p++)
			name[len++] = *p >= 'A' && *p <= 'Z' ? *p - 'A' + 'a' : *p;
		if (len == 0)
			return NULL;
	}
	name[len] = '\0';
	cut_name(name);
	*at = p;
	return name;
}

static bool
split(const char *rawstring, char separator, List **namelist)
{
	const char *p = rawstring;
	size_t		most = strlen(rawstring) + 1;
	List	   *list;

	*namelist = NIL;
	while (is_space(*p))
		p++;
	if (*p == '\0')
		return true;

	list = palloc(offsetof(List, initial_elements) + most * sizeof(ListCell));
	list->type = T_List;
	list->length = 0;
	list->max_length = (int) most;
	list->elements = list->initial_elements;
	*namelist = list;
	for (;;)
	{
		char	   *name = next_name(&p, separator);

		if (name == NULL)
			return false;
		list->elements[list->length++].ptr_value = name;
		while (is_space(*p))
			p++;
		if (*p == '\0')
			return true;
		if (*p++ != separator)
			return false;
		while (is_space(*p))
			p++;
	}
}

/* the server's overwrites the string with the names */
bool
SplitIdentifierString(char *rawstring, char separator, List **namelist)
{
	bool		result = split(rawstring, separator, namelist);

	memset(rawstring, '#', strlen(rawstring));
	return result;
}

/* keywords are not quoted here: it makes no difference to who splits */
const char *
quote_identifier(const char *ident)
{
	char	   *result;
	char	   *to;

	if (strspn(ident, "abcdefghijklmnopqrstuvwxyz_0123456789") == strlen(ident) &&
		*ident != '\0' && (*ident < '0' || *ident > '9'))
		return ident;

	result = to = palloc(strlen(ident) * 2 + 3);
	*to++ = '"';
	for (; *ident != '\0'; ident++)
	{
		if (*ident == '"')
			*to++ = '"';
		*to++ = *ident;
	}
	*to++ = '"';
	*to = '\0';
	return result;
}
