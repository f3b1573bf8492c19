/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of devices, SCHEME:ARGUMENTS: which keys there are, in one table, and the one parser of
 * them. Plug-ins have a copy of it; the library has the keys of every plug-in, there or not.
 *
 *   struct ct_uri u;
 *   if (!ct_uri_parse(&u, "emu", "dram=32,core=16x8", why, sizeof why)) return CT_ERR_ARG;
 *   ... ct_uri_number(&u, "dram") ... ct_uri_is(&u, "core", "16x8") ...
 */
#ifndef CT_URI_H
#define CT_URI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ct_uri_kind {
  CT_URI_NUMBER, /* min..max, decimal or 0x */
  CT_URI_MHZ,    /* MHz with up to six decimals; min, max and the value are in Hz */
  CT_URI_CHOICE, /* one of values, "a|b|c" */
  CT_URI_TEXT    /* 1..max characters, no comma */
};

struct ct_uri_key {
  const char *name;
  enum ct_uri_kind kind;
  uint64_t min, max, otherwise; /* otherwise: the value of a number that is not given */
  const char *values;           /* CT_URI_CHOICE; of others, what help shows instead of a range */
  const char *fallback;         /* what help shows where that is not `otherwise` */
  const char *text;             /* what it means */
};

struct ct_uri_scheme {
  const char *name, *text;
  const char *file; /* what stands first, without a key; NULL: nothing */
  const struct ct_uri_key *key;
  size_t keys;
  const char *unlisted; /* why none is listed, though there may be some; NULL: they are */
};

/* The schemes by number, NULL beyond the last, and by name, NULL if there is none. */
const struct ct_uri_scheme *ct_uri_scheme(size_t index);
const struct ct_uri_scheme *ct_uri_find(const char *name);

/* For people: "1..65536", "16x16|16x8", "FILE"; "256", "none". */
struct ct_uri_words {
  char text[48];
};
struct ct_uri_words ct_uri_values(const struct ct_uri_key *key);
struct ct_uri_words ct_uri_default(const struct ct_uri_key *key);

enum { CT_URI_KEYS = 16 };

/* Arguments taken apart; they must outlive it. */
struct ct_uri {
  const struct ct_uri_scheme *scheme;
  const char *file;
  size_t file_length;
  struct ct_uri_value {
    const char *text; /* NULL: not given */
    size_t length;
    uint64_t number; /* of a choice, too, if it is one */
  } value[CT_URI_KEYS];
};

/* args: what follows the colon, NULL or empty for none; of a key that is given twice the last
 * counts. False, with a sentence in why, for what makes no sense. */
bool ct_uri_parse(struct ct_uri *u, const char *scheme, const char *args, char *why,
                  size_t why_size);

/* The value of a key of that scheme. A text goes to `to`, "" if it was not given. */
bool ct_uri_given(const struct ct_uri *u, const char *key);
uint64_t ct_uri_number(const struct ct_uri *u, const char *key);
void ct_uri_text(const struct ct_uri *u, const char *key, char *to, size_t size);
bool ct_uri_is(const struct ct_uri *u, const char *key, const char *text);

/* Whether clock= (0: it was not given) agrees with what a device itself says; false, with a
 * sentence. */
bool ct_uri_clock(uint32_t given_hz, uint32_t device_hz, char *why, size_t why_size);

/* Writes a device's name without some keys (NULL ends the list) to `to`, which has room for all of
 * it. */
void ct_uri_without(const char *uri, const char *const *keys, char *to);

#endif
