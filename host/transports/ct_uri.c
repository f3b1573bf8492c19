/* SPDX-License-Identifier: Apache-2.0 */
#include "ct_uri.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ct_near.h"

/* ---- The table ----------------------------------------------------------------------------- */

#define MHZ UINT64_C(1000000)

/* What several have. A line of help has room for 48 characters of text and default. */
#define KEY_CORE                                                \
  {                                                             \
    "core", CT_URI_CHOICE, 0, 0, 0, "16x16|16x8|16x4", "16x16", \
        "array; lanes and scratchpad follow"                    \
  }
#define KEY_DRAM \
  { "dram", CT_URI_NUMBER, 1, 65536, 256, NULL, NULL, "MiB of device memory" }
#define KEY_CLOCK(otherwise, fallback, text) \
  { "clock", CT_URI_MHZ, MHZ, 4000 * MHZ, otherwise, NULL, fallback, text }
#define KEY_BOARD_CLOCK KEY_CLOCK(0, "the device's", "MHz, if the device cannot tell")

static const struct ct_uri_key emu_keys[] = {
    KEY_CORE,
    KEY_DRAM,
    KEY_CLOCK(100 * MHZ, NULL, "MHz that it reports; it has no time"),
    {"spm", CT_URI_NUMBER, 128, 1 << 20, 0, NULL, "of core=", "scratchpad words, a power of two"},
    {"cols", CT_URI_CHOICE, 0, 0, 0, "4|8|16", "of core=", "columns of the array"},
    {"lanes", CT_URI_CHOICE, 0, 0, 0, "4|16", "of core=", "vector lanes"},
    {"compress", CT_URI_CHOICE, 0, 0, 0, "0|1", "of core=", "1: LD and ST of compressed groups"},
    {"path", CT_URI_CHOICE, 0, 0, 0, "plain|avx2|avx512", "the fastest",
     "instructions; the same bits"},
};

static const struct ct_uri_key sim_keys[] = {
    KEY_CORE,
    KEY_DRAM,
    KEY_CLOCK(100 * MHZ, NULL, "MHz; seconds follow, no cycle does"),
    {"memory", CT_URI_CHOICE, 0, 0, 0, "plain|sdram", "plain", "sdram: a board's, 32 MiB"},
    {"cas", CT_URI_CHOICE, 0, 0, 3, "2|3", "3", "CAS latency of memory=sdram"},
    {"latency", CT_URI_NUMBER, 1, 100000, 60, NULL, NULL, "of the memory, cycles"},
    {"bandwidth", CT_URI_NUMBER, 1, 16, 16, NULL, NULL, "of the memory, bytes a cycle each way"},
    {"stall", CT_URI_NUMBER, 0, 99, 0, NULL, NULL, "percent of cycles the memory refuses in"},
    {"seed", CT_URI_NUMBER, 0, UINT64_MAX, 1, "N", NULL, "decides which cycles those are"},
    {"threads", CT_URI_NUMBER, 1, 2, 1, NULL, NULL, "of the host; 2 needs make THREADS=2"},
    {"wave", CT_URI_TEXT, 0, 511, 0, "FILE", "none", "every signal, FST; needs make TRACE=1"},
};

static const struct ct_uri_key mmio_keys[] = {
    {"regs", CT_URI_NUMBER, 0, INT64_MAX - 4096, 0, "OFFSET", NULL, "of the registers in FILE"},
    {"mem", CT_URI_TEXT, 0, 255, 0, "FILE", "the first FILE", "has the core's memory"},
    {"mem-at", CT_URI_NUMBER, 0, INT64_MAX, UINT64_MAX, "OFFSET", "0", "of the memory in that"},
    {"mem-size", CT_URI_NUMBER, 1 << 20, INT64_MAX, 0, "BYTES", "the core's",
     "of memory, at least 1 MiB"},
    {"irq", CT_URI_TEXT, 0, 255, 0, "FILE|off", "FILE, if it is one",
     "UIO device of the interrupt"},
    KEY_BOARD_CLOCK,
};

static const struct ct_uri_key usb_keys[] = {
    {"serial", CT_URI_TEXT, 0, 63, 0, "TEXT", "any", "serial number of the chip"},
    {"bus", CT_URI_NUMBER, 1, 255, 0, NULL, "any", "USB bus of the board"},
    {"addr", CT_URI_NUMBER, 1, 127, 0, NULL, "any", "its address on the bus"},
    {"vid", CT_URI_NUMBER, 1, 0xffff, 0, NULL, "0x0403", "vendor number of the chip"},
    {"pid", CT_URI_NUMBER, 1, 0xffff, 0, NULL, "0x6014 or 0x6010", "its product number"},
    {"latency", CT_URI_NUMBER, 2, 255, 16, NULL, NULL, "of the chip's timer, ms"},
    {"timeout", CT_URI_NUMBER, 50, 60000, 700, NULL, NULL, "of an access, ms"},
    KEY_BOARD_CLOCK,
};

static const struct ct_uri_key serial_keys[] = {
    {"baud", CT_URI_NUMBER, 9600, 12000000, 3000000, NULL, NULL, "bits a second"},
    {"timeout", CT_URI_NUMBER, 50, 600000, 0, NULL, "700, or what baud= needs", "of an access, ms"},
    KEY_BOARD_CLOCK,
};

#define KEYS(list) .key = (list), .keys = sizeof(list) / sizeof *(list)
static const struct ct_uri_scheme schemes[] = {
    {"emu", "the bit-exact model in C, without time", NULL, KEYS(emu_keys)},
    {"sim", "the simulated hardware, cycle by cycle", NULL, KEYS(sim_keys)},
    {"mmio", "a core in this machine's address space: mmio:/dev/uio0 and others (docs/mmio.md)",
     "FILE", KEYS(mmio_keys)},
    {"usb", "a board on USB, by an FT232H or FT2232H (docs/usb.md)", NULL, KEYS(usb_keys)},
    {"serial", "a board on a serial port: serial:/dev/ttyUSB0 and others (docs/serial.md)", "FILE",
     KEYS(serial_keys), .unlisted = "not looked for: name the port, as in serial:/dev/ttyUSB0"},
};
enum { SCHEMES = sizeof schemes / sizeof *schemes };

const struct ct_uri_scheme *ct_uri_scheme(size_t index) {
  return index < SCHEMES ? &schemes[index] : NULL;
}

const struct ct_uri_scheme *ct_uri_find(const char *name) {
  for (size_t i = 0; i < SCHEMES; ++i)
    if (!strcmp(name, schemes[i].name)) return &schemes[i];
  return NULL;
}

/* ---- For people ---------------------------------------------------------------------------- */

struct ct_uri_words ct_uri_values(const struct ct_uri_key *key) {
  struct ct_uri_words w;
  const uint64_t unit = key->kind == CT_URI_MHZ ? MHZ : 1;
  if (key->values)
    snprintf(w.text, sizeof w.text, "%s", key->values);
  else
    snprintf(w.text, sizeof w.text, "%" PRIu64 "..%" PRIu64, key->min / unit, key->max / unit);
  return w;
}

struct ct_uri_words ct_uri_default(const struct ct_uri_key *key) {
  struct ct_uri_words w;
  const uint64_t unit = key->kind == CT_URI_MHZ ? MHZ : 1;
  if (key->fallback)
    snprintf(w.text, sizeof w.text, "%s", key->fallback);
  else
    snprintf(w.text, sizeof w.text, "%" PRIu64, key->otherwise / unit);
  return w;
}

/* ---- Parsing ------------------------------------------------------------------------------- */

/* A piece of the arguments: NAME=VALUE, or only one of them. */
struct piece {
  const char *name, *value; /* value NULL: there is no = */
  size_t name_length, length;
};

/* The piece that begins at p; returns where the next begins. */
static const char *next_piece(const char *p, struct piece *piece) {
  const size_t whole = strcspn(p, ","), name = strcspn(p, "=,");
  *piece = (struct piece){.name = p, .name_length = name};
  if (p[name] == '=') {
    piece->value = p + name + 1;
    piece->length = whole - name - 1;
  }
  return p + whole + (p[whole] == ',');
}

static bool is_key(const struct piece *piece, const char *name) {
  return strlen(name) == piece->name_length && !strncmp(name, piece->name, piece->name_length);
}

static bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/* Decimal, or 0x and hexadecimal digits. */
static bool read_number(const char *text, size_t length, uint64_t *number) {
  char *end = NULL;
  const bool hex = length > 2 && text[0] == '0' && (text[1] | 32) == 'x';
  errno = 0;
  *number = strtoull(text, &end, hex ? 16 : 10);
  return length > 0 && is_digit(*text) && end == text + length && !errno;
}

/* Digits of a number, the first of which counts `unit`; false: there are none, or too many. */
static bool read_digits(const char *text, size_t length, uint64_t unit, uint64_t *sum) {
  for (size_t i = 0; i < length; ++i, unit /= 10) {
    if (!is_digit(text[i]) || unit == 0) return false;
    *sum += (uint64_t)(text[i] - '0') * unit;
  }
  return length > 0;
}

/* "56.8" as 56800000, by integers: what is read is what was written. */
static bool read_mhz(const char *text, size_t length, uint64_t *hz) {
  const char *point = memchr(text, '.', length);
  const size_t whole = point ? (size_t)(point - text) : length;
  uint64_t unit = MHZ;
  *hz = 0;
  if (whole == 0 || whole > 6) return false;
  for (size_t i = 1; i < whole; ++i)
    unit *= 10;
  if (!read_digits(text, whole, unit, hz)) return false;
  return !point || read_digits(point + 1, length - whole - 1, MHZ / 10, hz);
}

/* Whether a text is one of "a|b|c". */
static bool is_choice(const char *values, const char *text, size_t length) {
  for (const char *p = values; *p; p += strcspn(p, "|"), p += *p == '|')
    if (length && strcspn(p, "|") == length && !strncmp(p, text, length)) return true;
  return false;
}

static bool read_value(const struct ct_uri_key *key, const struct piece *piece,
                       struct ct_uri_value *v) {
  *v = (struct ct_uri_value){.text = piece->value, .length = piece->length};
  if (!piece->value) return false;
  switch (key->kind) {
    case CT_URI_CHOICE:
      v->number = strtoull(v->text, NULL, 10);
      return is_choice(key->values, v->text, v->length);
    case CT_URI_TEXT:
      return v->length > 0 && v->length <= key->max;
    case CT_URI_MHZ:
      return read_mhz(v->text, v->length, &v->number) && v->number >= key->min &&
             v->number <= key->max;
    default:
      return read_number(v->text, v->length, &v->number) && v->number >= key->min &&
             v->number <= key->max;
  }
}

/* ---- What is wrong ---- */

static bool refuse_value(const struct ct_uri_key *key, const struct piece *piece, char *why,
                         size_t size) {
  const struct ct_uri_words values = ct_uri_values(key);
  const bool range = key->kind == CT_URI_NUMBER || key->kind == CT_URI_MHZ;
  const int n =
      snprintf(why, size, "option %s=%.*s: needs ", key->name,
               (int)(piece->length < 64 ? piece->length : 64), piece->value ? piece->value : "");
  if (n < 0 || (size_t)n >= size) return false;
  why += n;
  size -= (size_t)n;
  if (key->kind == CT_URI_TEXT)
    snprintf(why, size, "a text of 1..%" PRIu64 " characters (%s)", key->max, key->text);
  else if (range && key->values)
    snprintf(why, size, "a number of %" PRIu64 "..%" PRIu64 " (%s)", key->min, key->max, key->text);
  else
    snprintf(why, size, "%s%s (%s)", range ? "a number of " : "one of ", values.text, key->text);
  return false;
}

/* An unknown key: which was probably meant, and which there are. */
static bool refuse_key(const struct ct_uri_scheme *s, const struct piece *piece, char *why,
                       size_t size) {
  char given[64];
  struct ct_near near = {.given = given};
  snprintf(given, sizeof given, "%.*s", (int)piece->name_length, piece->name);
  for (size_t i = 0; i < s->keys; ++i)
    ct_near_consider(&near, s->key[i].name);
  size_t at = 0;
  const int n = snprintf(why, size, "%s: has no option \"%s\"%s%s%s there are", s->name, given,
                         near.name ? "; did you mean " : ";", near.name ? near.name : "",
                         near.name ? "=?" : "");
  if (n > 0) at = (size_t)n;
  for (size_t i = 0; i < s->keys && at < size; ++i) {
    const int more = snprintf(why + at, size - at, "%s %s=%s", i ? "," : "", s->key[i].name,
                              ct_uri_values(&s->key[i]).text);
    at += more > 0 ? (size_t)more : 0;
  }
  return false;
}

/* ---- */

static bool take_piece(struct ct_uri *u, const struct piece *piece, char *why, size_t why_size) {
  for (size_t i = 0; i < u->scheme->keys; ++i) {
    const struct ct_uri_key *key = &u->scheme->key[i];
    if (!is_key(piece, key->name)) continue;
    return read_value(key, piece, &u->value[i]) || refuse_value(key, piece, why, why_size);
  }
  return refuse_key(u->scheme, piece, why, why_size);
}

bool ct_uri_parse(struct ct_uri *u, const char *scheme, const char *args, char *why,
                  size_t why_size) {
  struct piece piece;
  const char *p = args ? args : "";
  *u = (struct ct_uri){.scheme = ct_uri_find(scheme), .file = p};
  if (!u->scheme || u->scheme->keys > CT_URI_KEYS) {
    snprintf(why, why_size, "the options of \"%s:\" are not in the table", scheme);
    return false;
  }
  if (*p && p[strlen(p) - 1] == ',') {
    snprintf(why, why_size, "\"%s:%s\" ends with a comma: leave it out, or write what comes next",
             scheme, p);
    return false;
  }
  if (u->scheme->file) {
    const char *next = next_piece(p, &piece);
    if (!piece.value) u->file_length = piece.name_length;
    if (u->file_length) p = next;
  }
  while (*p) {
    p = next_piece(p, &piece);
    if (!take_piece(u, &piece, why, why_size)) return false;
  }
  return true;
}

/* ---- Values -------------------------------------------------------------------------------- */

/* A key that is not in the table is a defect, which the first use shows: it has no value. */
static const struct ct_uri_value *value_of(const struct ct_uri *u, const char *key, size_t *index) {
  for (*index = 0; *index < u->scheme->keys; ++*index)
    if (!strcmp(key, u->scheme->key[*index].name)) return &u->value[*index];
  return NULL;
}

bool ct_uri_given(const struct ct_uri *u, const char *key) {
  size_t i;
  const struct ct_uri_value *v = value_of(u, key, &i);
  return v && v->text;
}

uint64_t ct_uri_number(const struct ct_uri *u, const char *key) {
  size_t i;
  const struct ct_uri_value *v = value_of(u, key, &i);
  if (!v) return 0;
  return v->text ? v->number : u->scheme->key[i].otherwise;
}

void ct_uri_text(const struct ct_uri *u, const char *key, char *to, size_t size) {
  size_t i;
  const struct ct_uri_value *v = value_of(u, key, &i);
  snprintf(to, size, "%.*s", v && v->text ? (int)v->length : 0, v && v->text ? v->text : "");
}

bool ct_uri_is(const struct ct_uri *u, const char *key, const char *text) {
  size_t i;
  const struct ct_uri_value *v = value_of(u, key, &i);
  return v && v->text && v->length == strlen(text) && !strncmp(v->text, text, v->length);
}

bool ct_uri_clock(uint32_t given_hz, uint32_t device_hz, char *why, size_t why_size) {
  if (given_hz == 0 || given_hz == device_hz) return true;
  snprintf(why, why_size,
           "option clock=: the device says itself that its clock has %" PRIu32 ".%06" PRIu32
           " MHz; leave the option out",
           (uint32_t)(device_hz / MHZ), (uint32_t)(device_hz % MHZ));
  return false;
}

void ct_uri_without(const char *uri, const char *const *keys, char *to) {
  const size_t head = strcspn(uri, ":") + (strchr(uri, ':') != NULL);
  struct piece piece;
  memcpy(to, uri, head);
  to += head;
  bool first = true;
  for (const char *p = uri + head; *p;) {
    const char *next = next_piece(p, &piece);
    bool left_out = false;
    for (size_t i = 0; keys[i]; ++i)
      left_out |= is_key(&piece, keys[i]);
    if (!left_out) {
      const size_t length = strcspn(p, ",");
      if (!first) *to++ = ',';
      memcpy(to, p, length);
      to += length;
    }
    first &= left_out;
    p = next;
  }
  *to = 0;
}
