/* SPDX-License-Identifier: Apache-2.0 */
#include "explain_group.h"

#include <inttypes.h>

enum { AT_ONCE = 8 }; /* as many as a run has memory for */

/* ---- Running ------------------------------------------------------------------------------- */

int group_draw(const struct group *g, uint64_t seed) {
  int err = CT_OK;
  for (uint32_t m = 0; m < g->members && !err; ++m) {
    err = ct_network_select(g->net, m);
    if (!err) err = ct_network_draw(g->net, seed + m);
  }
  if (!err) err = ct_network_select(g->net, 0);
  return err ? cli_fail_device(g->dev, err, "cannot write the weights") : 0;
}

/* Members that are at work at once: one work, whose cycles count from its begin to its end. */
static int run_block(struct group *g, uint32_t first, uint32_t count) {
  struct ct_event event;
  uint64_t tag = 0;
  const struct ct_members run = {
      .first = first, .count = count, .queue = CT_TRAINING, .step = g->step};
  /* (One alone may keep activations compressed, which runs of members cannot.) */
  const struct ct_run alone = {.queue = run.queue, .step = run.step};
  int err = g->members > 1 ? ct_network_submit_members(g->net, &run, &tag)
                           : ct_network_submit(g->net, &alone, &tag);
  if (!err) err = ct_wait(g->dev, tag, &event, CT_FOREVER);
  if (!err) err = event.error;
  if (err) return err;
  if (event.end == CT_NO_CYCLE)
    g->cycles = CT_NO_CYCLE;
  else
    g->cycles += event.end - event.start;
  return CT_OK;
}

/* Of a queue that holds fewer jobs as many as it takes. */
static int run_some(struct group *g, uint32_t first, uint32_t *count) {
  int err;
  while ((err = run_block(g, first, *count)) == CT_ERR_NO_SPACE && *count > 1)
    *count /= 2;
  return err;
}

uint32_t group_at_once(const struct group *g) {
  return g->members < AT_ONCE ? g->members : AT_ONCE;
}

int group_run(struct group *g) {
  int err = CT_OK;
  g->cycles = 0;
  for (uint32_t m = 0, count; m < g->members && !err; m += count) {
    count = g->members - m < AT_ONCE ? g->members - m : AT_ONCE;
    err = run_some(g, m, &count);
  }
  return err ? cli_fail_device(g->dev, err, "cannot run the members together") : 0;
}

/* ---- What it costs ------------------------------------------------------------------------- */

/* Of one member, or of all. */
struct sums {
  bool known;
  uint64_t expected, busy;
};

static void add(struct sums *s, uint64_t expected, uint64_t busy) {
  if (expected == CT_NO_CYCLE) s->known = false;
  s->expected += expected;
  s->busy += busy;
}

/* Of what runs in each step. */
static void sum_up(ct_network *net, struct sums *one, struct sums *all) {
  struct ct_network_stage g;
  *one = *all = (struct sums){.known = true};
  for (size_t i = 0; !ct_network_stage(net, i, &g) && i < ct_network_stages(net); ++i) {
    if (g.once || g.expected == 0) continue;
    add(one, g.expected, g.busy);
    add(all, g.all_expected, g.all_busy);
  }
}

static json_t *ratio_json(uint64_t a, uint64_t b) {
  if (a == CT_NO_CYCLE || !b) return json_null();
  return cli_json_number((double)a / (double)b);
}

json_t *group_stage_json(const struct ct_network_stage *s) {
  return json_pack("{s:o, s:I, s:s, s:s, s:o, s:I}", "cycles_expected",
                   cli_json_cycles(s->all_expected), "cycles_busy", (json_int_t)s->all_busy, "unit",
                   s->all_unit, "bound", s->all_bound, "gain_bound",
                   ratio_json(s->all_expected, s->all_busy), "members_a_pass",
                   (json_int_t)s->round);
}

/* Models times steps in a million cycles. */
static json_t *rate_json(uint32_t models, uint64_t cycles) {
  if (cycles == CT_NO_CYCLE || !cycles) return json_null();
  return cli_json_number(1e6 * models / (double)cycles);
}

/* Device memory that a member has for itself; what a run makes is there for those at once. */
static uint64_t member_bytes(const struct group *g, struct ct_network_info *info) {
  *info = (struct ct_network_info){.members = 1};
  ct_network_info(g->net, info);
  return info->weights_bytes;
}

json_t *group_json(const struct group *g, uint64_t alone) {
  struct ct_network_info info;
  struct sums one, all;
  const uint64_t own = member_bytes(g, &info);
  sum_up(g->net, &one, &all);
  if (!all.known) all.expected = CT_NO_CYCLE;
  return json_pack("{s:o, s:o, s:I, s:o, s:o, s:o, s:I, s:I, s:I}", "cycles_expected",
                   cli_json_cycles(all.expected), "cycles_measured", cli_json_cycles(g->cycles),
                   "cycles_busy", (json_int_t)all.busy, "gain_bound",
                   ratio_json(all.expected, all.busy), "models_steps_per_mcycle",
                   rate_json(g->members, g->cycles), "models_steps_per_mcycle_alone",
                   rate_json(1, alone), "member_bytes", (json_int_t)own, "frame_bytes",
                   (json_int_t)info.frame_bytes, "run_bytes", (json_int_t)info.run_bytes);
}

/* ---- As text ------------------------------------------------------------------------------- */

static void print_cycles(FILE *to, uint64_t cycles) {
  if (cycles == CT_NO_CYCLE)
    fprintf(to, " %11s", "-");
  else
    fprintf(to, " %11" PRIu64, cycles);
}

static void print_costs(FILE *to, uint64_t one, uint64_t all, uint64_t busy) {
  print_cycles(to, one);
  print_cycles(to, all);
  if (all == CT_NO_CYCLE || !busy)
    fprintf(to, " %11s %6s", "-", "-");
  else
    fprintf(to, " %11" PRIu64 " %6.2f", busy, (double)all / (double)busy);
}

static void print_stage(FILE *to, const struct ct_network_stage *s, int width) {
  fprintf(to, "%-*s %-21.21s", width, s->node, s->op);
  if (s->round)
    fprintf(to, " %6" PRIu32, s->round);
  else
    fprintf(to, " %6s", "-");
  print_costs(to, s->expected, s->all_expected, s->all_busy);
  fprintf(to, " %-6s %s\n", s->all_unit, s->all_bound);
}

static void print_total(FILE *to, const struct group *g, uint64_t alone, int width) {
  struct sums one, all;
  sum_up(g->net, &one, &all);
  fprintf(to, "%-*s %-21s %6s", width, "expected", "", "");
  print_costs(to, one.known ? one.expected : CT_NO_CYCLE, all.known ? all.expected : CT_NO_CYCLE,
              all.busy);
  fprintf(to, "\n%-*s %-21s %6s", width, "measured", "", "");
  print_cycles(to, alone);
  print_cycles(to, g->cycles);
  fputc('\n', to);
}

static void print_rates(FILE *to, const struct group *g, uint64_t alone) {
  if (alone == CT_NO_CYCLE || g->cycles == CT_NO_CYCLE || !alone || !g->cycles) return;
  const double before = 1e6 / (double)alone, rate = 1e6 * g->members / (double)g->cycles;
  fprintf(to,
          "models times steps in a million cycles: %.4g together, %.4g one after the other, %.3f "
          "times as many\n",
          rate, before, rate / before);
}

static void print_memory(FILE *to, const struct group *g) {
  struct ct_network_info info;
  const uint64_t own = member_bytes(g, &info);
  fprintf(to,
          "memory of each member: %" PRIu64 " KiB of weights and states; of all: %" PRIu64
          " KiB for what runs make, of as many as are at work at once\n",
          (own + 1023) / 1024, (info.run_bytes + 1023) / 1024);
}

void group_print(FILE *to, const struct group *g, uint64_t alone, int width) {
  struct ct_network_stage s;
  if (width < (int)sizeof "expected" - 1) width = (int)sizeof "expected" - 1;
  fprintf(to, "\n%" PRIu32 " member%s in the same jobs\n", g->members, g->members == 1 ? "" : "s");
  fprintf(to, "%-*s %-21s %6s %11s %11s %11s %6s %-6s %s\n", width, "layer", "kernel", "a pass",
          "one", "all", "busy", "bound", "unit", "bound by");
  for (size_t i = 0; i < ct_network_stages(g->net); ++i)
    if (!ct_network_stage(g->net, i, &s)) print_stage(to, &s, width);
  print_total(to, g, alone, width);
  print_rates(to, g, alone);
  print_memory(to, g);
}
