/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arguments of a device's name: "key=value,key=value". In a header because plug-ins use it too.
 */
#ifndef CT_ARGS_H
#define CT_ARGS_H

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coltrain/coltrain.h" /* the errors transports return */

/* One option: a number within min..max, or (text not NULL) any text. */
struct ct_arg {
  const char *name;
  uint64_t *number;
  uint64_t min, max;
  char *text;
  size_t textsize;
};

static inline bool ct_arg_set(const struct ct_arg *arg, const char *value, size_t len, char *why,
                              size_t whysize) {
  if (arg->text) {
    if (len > 0 && len < arg->textsize) {
      memcpy(arg->text, value, len);
      arg->text[len] = 0;
      return true;
    }
    snprintf(why, whysize, "option %s needs a text of 1..%zu characters", arg->name,
             arg->textsize - 1);
    return false;
  }
  char *end = NULL;
  errno = 0;
  const uint64_t n = strtoull(value, &end, 0);
  if (len > 0 && isdigit((unsigned char)*value) && end == value + len && !errno && n >= arg->min &&
      n <= arg->max) {
    *arg->number = n;
    return true;
  }
  snprintf(why, whysize, "option %s=%.*s: needs a number of %" PRIu64 "..%" PRIu64, arg->name,
           (int)len, value, arg->min, arg->max);
  return false;
}

/* Sets what args names; args may be NULL or empty. False, with a sentence in why, for an unknown or
 * malformed option. */
static inline bool ct_args_parse(const char *args, const struct ct_arg *table, size_t count,
                                 char *why, size_t whysize) {
  const char *p = args ? args : "";
  while (*p) {
    const size_t len = strcspn(p, ","), name = strcspn(p, "=,");
    const struct ct_arg *arg = NULL;
    for (size_t i = 0; i < count && !arg; ++i)
      if (strlen(table[i].name) == name && strncmp(table[i].name, p, name) == 0) arg = &table[i];
    if (!arg) {
      snprintf(why, whysize, "unknown option \"%.*s\"", (int)name, p);
      return false;
    }
    const bool has_value = p[name] == '=';
    if (!ct_arg_set(arg, p + name + has_value, len - name - has_value, why, whysize)) return false;
    p += len;
    if (*p == ',') ++p;
  }
  return true;
}

#endif
