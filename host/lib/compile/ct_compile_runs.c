/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gradients that accumulate: updates are needed in the last run of a step alone, and so is what
 * only they read (the norm of all gradients, say). From the last step to the first, each learns
 * from its readers when it is needed.
 */
#include <stdlib.h>

#include "ct_compile_impl.h"

/* Needed in the last of so many runs, by value; 0: nobody has asked yet. 1: in each. */
static void ask(uint32_t *needed, uint32_t runs) {
  *needed = !*needed || *needed == runs ? runs : 1;
}

/* Planes of another value are that one's. */
static uint32_t *of_value(struct ct_compiler *c, int value) {
  struct ct_val *v = &c->value[value];
  return v->within == CT_NO_VALUE ? &v->runs : &c->value[v->within].runs;
}

static void from_readers(struct ct_compiler *c, struct ct_net_step *s, int value, unsigned keep,
                         bool made) {
  (void)keep;
  const uint32_t runs = *of_value(c, value);
  if (made && runs) ask(&s->runs, runs);
}

static void to_makers(struct ct_compiler *c, struct ct_net_step *s, int value, unsigned keep,
                      bool made) {
  (void)keep;
  if (!made) ask(of_value(c, value), s->runs);
}

/* What lasts, or goes to the caller, is made in each run, unless an update makes it. */
static void ask_from_outside(struct ct_compiler *c) {
  for (size_t i = 0; i < c->values; ++i) {
    const struct ct_val *v = &c->value[i];
    if (v->place != CT_VALUE_ARENA || v->same != CT_NO_VALUE) ask(of_value(c, (int)i), 1);
  }
}

void ct_compile_runs(struct ct_compiler *c) {
  struct ct_net_step **step = calloc(c->steps + 1, sizeof(struct ct_net_step *));
  if (!step) {
    ct_compile_fail(c, CT_ERR_MEMORY, "no memory for the network");
    return;
  }
  ask_from_outside(c);
  for (size_t i = 0; i < c->steps; ++i)
    step[c->step[i].order] = &c->step[i];
  for (size_t i = c->steps; i-- > 0;) {
    struct ct_net_step *s = step[i];
    if (s->early) s->runs = 1;
    if (!s->runs) ct_step_uses(c, s, from_readers);
    if (!s->runs) s->runs = 1;
    ct_step_uses(c, s, to_makers);
  }
  free(step);
}
