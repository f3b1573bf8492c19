/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sweep.h"

static const struct {
  const char *name;
  double least, most;
  bool whole;
} keys[SWEEP_KEYS] = {[SWEEP_LR] = {"lr", 0, 1000, false},
                      [SWEEP_MOMENTUM] = {"momentum", 0, 1, false},
                      [SWEEP_DECAY] = {"weight-decay", 0, 1, false},
                      [SWEEP_OPTIMISER] = {"optimiser", 0, 2, true},
                      [SWEEP_BETA1] = {"beta1", 1e-6, 0.999999, false},
                      [SWEEP_BETA2] = {"beta2", 1e-6, 0.999999, false},
                      [SWEEP_EPSILON] = {"epsilon", 1e-30, 1, false},
                      [SWEEP_BATCH] = {"batch", 1, 65536, true},
                      [SWEEP_SEED] = {"seed", 0, 4294967295, true}};
static const char *const optimisers[] = {"sgd", "adam", "adamw"};
enum { OPTIMISERS = sizeof optimisers / sizeof *optimisers };

const char *sweep_key_name(enum sweep_key key) {
  return keys[key].name;
}

/* What --lr and such have given is a float, and "0.2" is as good for that. */
static bool reads_back(const char *text, double value) {
  const double back = strtod(text, NULL);
  return back == value || ((double)(float)value == value && (float)back == (float)value);
}

struct sweep_text sweep_value_text(enum sweep_key key, double value) {
  struct sweep_text t;
  if (key == SWEEP_OPTIMISER) snprintf(t.text, sizeof t.text, "%s", optimisers[(size_t)value]);
  for (int digits = 6; key != SWEEP_OPTIMISER && digits <= 17; ++digits) {
    snprintf(t.text, sizeof t.text, "%.*g", digits, value);
    if (reads_back(t.text, value)) break;
  }
  return t;
}

/* ---- Reading ------------------------------------------------------------------------------- */

static size_t find_key(const char *arg, size_t length, const struct argp_state *state) {
  for (size_t k = 0; k < SWEEP_KEYS; ++k)
    if (strlen(keys[k].name) == length && !strncmp(keys[k].name, arg, length)) return k;
  argp_error(state,
             "--sweep: \"%s\" does not begin with what can be swept and \"=\": lr, momentum, "
             "weight-decay, optimiser, beta1, beta2, epsilon, batch or seed",
             arg);
  return 0;
}

static bool number_of(size_t key, const char *text, double *value) {
  char *end = NULL;
  if (key == SWEEP_OPTIMISER) {
    for (size_t i = 0; i < OPTIMISERS; ++i) {
      *value = (double)i;
      if (!strcmp(text, optimisers[i])) return true;
    }
    return false;
  }
  *value = strtod(text, &end);
  return *text && !*end && *value >= keys[key].least && *value <= keys[key].most &&
         (!keys[key].whole || *value == floor(*value));
}

static void take_value(struct sweep_options *o, size_t key, const char *text,
                       const struct argp_state *state) {
  double value = 0;
  if (!number_of(key, text, &value) && key == SWEEP_OPTIMISER)
    argp_error(state, "--sweep: the optimiser \"%s\" is none of sgd, adam, adamw", text);
  else if (!number_of(key, text, &value))
    argp_error(state, "--sweep: %s \"%s\" is no %snumber of %g..%g", keys[key].name, text,
               keys[key].whole ? "whole " : "", keys[key].least, keys[key].most);
  if (o->axis[key].count == SWEEP_VALUES)
    argp_error(state, "--sweep: %s has more than %d values", keys[key].name, SWEEP_VALUES);
  o->axis[key].value[o->axis[key].count++] = value;
}

void sweep_take(struct sweep_options *o, const char *arg, const struct argp_state *state) {
  const size_t length = strcspn(arg, "="), key = find_key(arg, length, state);
  if (!arg[length])
    argp_error(state, "--sweep: \"%s\" has no values: write %s=A,B,C", arg, keys[key].name);
  if (o->axis[key].count) argp_error(state, "--sweep: %s is given twice", keys[key].name);
  for (const char *p = arg + length + 1;;) {
    char text[32];
    const size_t size = strcspn(p, ",");
    snprintf(text, sizeof text, "%.*s", (int)(size < sizeof text ? size : sizeof text), p);
    take_value(o, key, text, state);
    if (!p[size]) break;
    p += size + 1;
  }
  o->given = true;
}
