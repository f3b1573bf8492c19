/* SPDX-License-Identifier: Apache-2.0 */
#include "arrivals.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ct_arrivals.h"
#include "ct_rand.h"

enum { TICKS = 10000000 /* of a second */, LONGEST_LINE = 4096 };

/* ---- Times of a file ---- */

/* Days since 0000-03-01 in the Gregorian calendar: years begin in March, so that February's length
 * does not matter. */
static uint64_t days_of(uint64_t year, uint64_t month, uint64_t day) {
  const uint64_t y = month > 2 ? year : year - 1, m = month > 2 ? month - 3 : month + 9;
  return 365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1;
}

/* Digits, as many as there are; false: none, or too many. */
static bool read_number(const char **p, uint64_t *value) {
  const char *begin = *p;
  for (*value = 0; isdigit((unsigned char)**p) && *p - begin < 12; ++*p)
    *value = *value * 10 + (uint64_t)(**p - '0');
  return *p != begin && !isdigit((unsigned char)**p);
}

static bool skip(const char **p, char c) {
  if (**p != c) return false;
  ++*p;
  return true;
}

/* What follows a decimal point, if there is one, in ticks. */
static bool read_fraction(const char **p, uint64_t *ticks) {
  uint64_t weight = TICKS / 10;
  if (!skip(p, '.')) return true;
  if (!isdigit((unsigned char)**p)) return false;
  for (; isdigit((unsigned char)**p); ++*p, weight /= 10)
    *ticks += weight * (uint64_t)(**p - '0');
  return true;
}

/* "12.5" or "2023-11-16 18:15:46.6805900", up to the end of the column. */
static bool read_time(const char *p, uint64_t *ticks) {
  uint64_t v[6];
  if (!read_number(&p, &v[0])) return false;
  uint64_t seconds = v[0];
  if (skip(&p, '-')) {
    const bool date = read_number(&p, &v[1]) && skip(&p, '-') && read_number(&p, &v[2]) &&
                      (skip(&p, ' ') || skip(&p, 'T')) && read_number(&p, &v[3]) && skip(&p, ':') &&
                      read_number(&p, &v[4]) && skip(&p, ':') && read_number(&p, &v[5]);
    if (!date || v[0] < 1 || v[0] > 9999 || v[1] < 1 || v[1] > 12 || v[2] < 1 || v[2] > 31 ||
        v[3] > 23 || v[4] > 59 || v[5] > 60)
      return false;
    seconds = ((days_of(v[0], v[1], v[2]) * 24 + v[3]) * 60 + v[4]) * 60 + v[5];
  }
  if (seconds > UINT64_MAX / TICKS / 4) return false;
  *ticks = seconds * TICKS;
  if (!read_fraction(&p, ticks)) return false;
  return !*p || strchr(",;\t\r\n ", *p);
}

static int append(uint64_t **times, size_t *count, size_t *room, uint64_t time) {
  if (*count == *room) {
    const size_t more = *room ? 2 * *room : 4096;
    uint64_t *grown = realloc(*times, more * sizeof *grown);
    if (!grown) return cli_fail("no memory for %zu arrival times", more);
    *times = grown;
    *room = more;
  }
  (*times)[(*count)++] = time;
  return 0;
}

/* One line's time; number counts from 1. */
static int read_line(const char *line, const char *path, size_t number, uint64_t **times,
                     size_t *count, size_t *room) {
  uint64_t time;
  if (!isdigit((unsigned char)line[0]) && number == 1) return 0; /* names of the columns */
  if (line[strspn(line, "\r\n")] == 0) return 0;
  if (!read_time(line, &time))
    return cli_fail(
        "%s: line %zu does not begin with seconds, or a date and time such as "
        "2023-11-16 18:15:46.68",
        path, number);
  if (*count && time < (*times)[*count - 1])
    return cli_fail("%s: line %zu is earlier than the line before", path, number);
  return append(times, count, room, time);
}

/* What has no lines, such as /dev/zero, has an end all the same. */
static int read_lines(FILE *file, const char *path, uint64_t **times, size_t *count) {
  char line[LONGEST_LINE];
  size_t room = 0;
  int status = 0;
  for (size_t number = 1; !status && fgets(line, sizeof line, file); ++number) {
    if (!strchr(line, '\n') && !feof(file))
      status = cli_fail("%s: line %zu is longer than %d bytes, or no text", path, number,
                        LONGEST_LINE - 2);
    else
      status = read_line(line, path, number, times, count, &room);
  }
  if (!status && ferror(file)) return cli_fail("%s: cannot be read: %s", path, strerror(errno));
  if (!status && *count < 2) return cli_fail("%s: has fewer than two arrival times", path);
  return status;
}

/* How many there are, two at least, or 0 after a sentence. */
static size_t read_file(const char *path, uint64_t **times) {
  size_t count = 0;
  FILE *file = fopen(path, "r");
  if (!file) cli_fail("%s: cannot be opened: %s", path, strerror(errno));
  if (!file) return 0;
  if (read_lines(file, path, times, &count)) count = 0;
  fclose(file);
  return count;
}

/* The n times as a ring: it begins at an arrival that the seed chooses, and again a mean gap after
 * its end. */
static int repeat(struct arrivals *a, size_t n) {
  const uint64_t span = a->times[n - 1] - a->times[0], round = span + span / (n - 1);
  uint64_t *times = malloc(a->count * sizeof *times);
  struct ct_rand rand;
  if (!times) return cli_fail("no memory for %zu arrivals", a->count);
  ct_rand_seed(&rand, a->seed, CT_RAND_STREAM_ARRIVALS);
  const size_t from = (size_t)ct_rand_below(&rand, n);
  for (size_t i = 0; i < a->count; ++i)
    times[i] = a->times[(from + i) % n] + (from + i) / n * round - a->times[from];
  free(a->times);
  a->times = times;
  return 0;
}

static int take_file(struct arrivals *a) {
  const char *path = a->o->file;
  const size_t have = read_file(path, &a->times);
  if (have < 2) return 1;
  if (a->o->ring) return repeat(a, have);
  if (have < a->count)
    return cli_fail("%s has %zu arrivals, not %zu; give --requests", path, have, a->count);
  return 0;
}

/* ---- Lists ---- */

static const char *const names[] = {"poisson", "constant", "bursty", "trace"};

const char *arrivals_name(enum arrivals_kind kind) {
  return names[kind];
}

bool arrivals_by_name(const char *name, enum arrivals_kind *kind) {
  for (int i = ARRIVALS_POISSON; i <= ARRIVALS_FILE; ++i) {
    *kind = (enum arrivals_kind)i;
    if (!strcmp(name, names[i])) return true;
  }
  return false;
}

int arrivals_open(struct arrivals *a, const struct arrivals_options *o, size_t count,
                  uint64_t seed) {
  *a = (struct arrivals){.o = o, .seed = seed, .count = count};
  if (o->file && take_file(a)) return 1;
  if (o->file && a->times[count - 1] == a->times[0])
    return cli_fail(
        "%s: the first %zu arrivals are at the same time, which is no rate; give more "
        "--requests",
        o->file, count);
  a->cycle = calloc(count, sizeof *a->cycle);
  return a->cycle ? 0 : cli_fail("no memory for %zu arrivals", count);
}

void arrivals_close(struct arrivals *a) {
  free(a->cycle);
  free(a->times);
  *a = (struct arrivals){.o = NULL};
}

static int make(struct arrivals *a, uint64_t mean) {
  const struct arrivals_options *o = a->o;
  switch (o->kind) {
    case ARRIVALS_CONSTANT:
      return ct_arrivals_constant(mean, a->cycle, a->count);
    case ARRIVALS_BURSTY:
      return ct_arrivals_bursty(a->seed, mean, o->period * o->on_percent / 100, o->period, a->cycle,
                                a->count);
    case ARRIVALS_FILE:
      return ct_arrivals_trace(mean, a->times, a->cycle, a->count);
    default:
      return ct_arrivals_poisson(a->seed, mean, a->cycle, a->count);
  }
}

int arrivals_make(struct arrivals *a, uint64_t busy, uint64_t done, uint32_t permille) {
  if (!make(a, ct_arrivals_mean_q16(busy, done, permille))) return 0;
  return cli_fail("no arrivals can be made for a load of %.3f; choose --load nearer to 1",
                  (double)permille / 1000);
}
