/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "sweep.h"

/* The number that was written, not its neighbour. */
static json_t *value_json(enum sweep_key key, double value) {
  const struct sweep_text text = sweep_value_text(key, value);
  if (key == SWEEP_OPTIMISER) return json_string(text.text);
  if (key == SWEEP_BATCH || key == SWEEP_SEED) return json_integer((json_int_t)value);
  return json_real(strtod(text.text, NULL));
}

static const char *state_name(enum ct_member_state state) {
  return state == CT_MEMBER_READY ? "ready" : state == CT_MEMBER_DIVERGED ? "diverged" : "failed";
}

static json_t *member_json(const struct sweep_member *m) {
  json_t *o =
      json_pack("{s:I, s:s, s:o, s:I, s:I, s:o, s:o, s:o, s:I, s:I, s:I, s:O, s:b}", "member",
                (json_int_t)m->number, "state", state_name(m->info.state), "ended_by",
                cli_json_cycles(m->info.ended_by), "epochs", (json_int_t)m->epochs, "steps",
                (json_int_t)m->info.runs, "loss", cli_json_number(m->loss), "test_accuracy",
                cli_json_number(m->accuracy), "cycles",
                m->info.cycles ? json_integer((json_int_t)m->info.cycles) : json_null(), "together",
                (json_int_t)m->info.together, "bytes", (json_int_t)m->info.bytes, "weights_crc32",
                (json_int_t)m->crc, "by_epoch", m->by_epoch, "left", m->left);
  for (size_t k = 0; k < SWEEP_KEYS; ++k)
    json_object_set_new(o, sweep_key_name((enum sweep_key)k),
                        value_json((enum sweep_key)k, m->value[k]));
  return o;
}

static json_t *swept_json(const struct sweep *s) {
  json_t *o = json_object();
  for (size_t k = 0; k < SWEEP_KEYS; ++k) {
    if (!s->o->axis[k].count) continue;
    json_t *values = json_array();
    for (size_t i = 0; i < s->o->axis[k].count; ++i)
      json_array_append_new(values, value_json((enum sweep_key)k, s->o->axis[k].value[i]));
    json_object_set_new(o, sweep_key_name((enum sweep_key)k), values);
  }
  return o;
}

int sweep_write_json(struct sweep *s, const struct sweep_member *best) {
  struct ct_array_info info = {0};
  json_t *root = json_object(), *members = json_array();
  uint64_t steps = 0;
  ct_array_info(s->array, &info);
  for (size_t i = 0; i < s->members; ++i) {
    json_array_append_new(members, member_json(&s->member[i]));
    steps += s->member[i].info.runs;
  }
  learn_json(s->l, root);
  json_object_update_new(
      root,
      json_pack("{s:o, s:I, s:o, s:o, s:I, s:I, s:o, s:o}", "sweep", swept_json(s), "halving",
                (json_int_t)s->o->halving, "members", members, "best",
                best ? json_integer(best->number) : json_null(), "steps", (json_int_t)steps,
                "batches", (json_int_t)info.batches, "cycles", cli_json_cycles(s->cycles),
                "models_steps_per_mcycle",
                s->cycles == CT_NO_CYCLE ? json_null()
                                         : cli_json_ratio(1e6 * (double)steps, (double)s->cycles)));
  return cli_json_write(s->l->json, root);
}
