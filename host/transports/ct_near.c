/* SPDX-License-Identifier: Apache-2.0 */
#include "ct_near.h"

#include <stdbool.h>
#include <string.h>

/* NAME_LENGTH: longer names are not compared. NEAR: of so many letters one may be wrong. */
enum { NAME_LENGTH = 63, NEAR = 3 };

static size_t least(size_t a, size_t b) {
  return a < b ? a : b;
}

/* Letters to insert, remove, replace or swap with their neighbour to make b of a. */
static size_t distance(const char *a, const char *b) {
  size_t row[3][NAME_LENGTH + 2];
  const size_t n = strlen(a), m = strlen(b);
  if (n > NAME_LENGTH || m > NAME_LENGTH) return NAME_LENGTH;
  size_t *before = row[0], *last = row[1], *now = row[2];
  for (size_t j = 0; j <= m; ++j)
    last[j] = before[j] = j;
  for (size_t i = 1; i <= n; ++i) {
    now[0] = i;
    for (size_t j = 1; j <= m; ++j) {
      now[j] = least(least(last[j], now[j - 1]) + 1, last[j - 1] + (a[i - 1] != b[j - 1]));
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        now[j] = least(now[j], before[j - 2] + 1);
    }
    size_t *const free_row = before;
    before = last;
    last = now;
    now = free_row;
  }
  return last[m];
}

void ct_near_consider(struct ct_near *near, const char *name) {
  const size_t d = distance(near->given, name);
  const size_t length = strlen(near->given);
  /* A name that the given one begins, or that begins it, is near too. */
  const size_t common = least(length, strlen(name));
  const bool begins = common >= NEAR && strncmp(near->given, name, common) == 0;
  if (!begins && d > (length + NEAR - 1) / NEAR) return;
  if (near->name && d >= near->distance) return;
  near->name = name;
  near->distance = d;
}
