/* SPDX-License-Identifier: Apache-2.0 */
/* Updates: the learning rate of a step, gradients of several runs, the factor that keeps a norm,
 * new weights and states. The formulas are in coltrain/graph.h. */
#include <math.h>
#include <string.h>

#include "ct_op.h"
#include "ct_real.h"

/* The runs that make a step; the step of a run, and whether it is the step's last. */
#define RUNS CT_WHOLE("runs", 1, 1, CT_MOST_ACCUMULATED, 1)

static uint64_t step_of(const struct ct_ref_call *c, unsigned runs) {
  return c->step / ct_attr_u32(c->n, runs, 0);
}

static bool ends_step(const struct ct_ref_call *c, unsigned runs) {
  return ct_ends_step(c->step, ct_attr_u32(c->n, runs, 0));
}

/* ---- Learning rate: no inputs, a scalar ---------------------------------------------------- */

enum { KIND, BASE, WARMUP, PERIOD, FACTOR, FLOOR, RATE_RUNS };
static const struct ct_attr_rule rate_attrs[] = {
    CT_WHOLE("kind", 1, CT_SCHEDULE_CONSTANT, CT_SCHEDULE_COSINE, 0),
    CT_NUMBER("rate", 0, 1000, NAN),
    CT_WHOLE("warmup", 1, 0, UINT32_MAX, 0),
    CT_WHOLE("period", 1, 1, UINT32_MAX, 1),
    CT_NUMBER("factor", 0, 1, 1),
    CT_NUMBER("floor", 0, 1000, 0),
    RUNS,
    {0}};

double ct_schedule_rate(const struct ct_schedule *s, uint64_t step) {
  if (!s) return 0;
  const uint64_t t = step < s->warmup ? 0 : step - s->warmup, period = s->period ? s->period : 1;
  double rate = s->rate;
  if (s->kind == CT_SCHEDULE_STEP) rate *= ct_real_power(s->factor, t / period);
  if (s->kind == CT_SCHEDULE_COSINE) {
    const double done = t < period ? (double)t / (double)period : 1;
    rate = s->floor + (s->rate - s->floor) * (1 + ct_real_cos_pi(done)) / 2;
  }
  return step < s->warmup ? rate * (double)(step + 1) / s->warmup : rate;
}

static void rate_reference(const struct ct_ref_call *c) {
  const struct ct_schedule s = {.rate = ct_attr(c->n, BASE, 0),
                                .kind = (enum ct_schedule_kind)ct_attr_u32(c->n, KIND, 0),
                                .warmup = ct_attr_u32(c->n, WARMUP, 0),
                                .period = ct_attr_u32(c->n, PERIOD, 0),
                                .factor = ct_attr(c->n, FACTOR, 0),
                                .floor = ct_attr(c->n, FLOOR, 0)};
  c->out[0][0] = ct_schedule_rate(&s, step_of(c, RATE_RUNS));
}

const struct ct_gop ct_gop_rate = {.name = "rate",
                                   .outputs = 1,
                                   .attrs = rate_attrs,
                                   .shape = ct_shape_scalar,
                                   .reference = rate_reference};

/* ---- Gradients of several runs: their mean, as far as it has come ---------------------------- */

static const struct ct_attr_rule accumulate_attrs[] = {RUNS, {0}};

static int accumulate_shape(ct_graph *g, const struct ct_gnode *n, struct ct_shape *out) {
  out[0] = *ct_in(g, n, 0);
  return ct_need_shape(g, n, 1, out, "the sum so far");
}

static void accumulate_reference(const struct ct_ref_call *c) {
  const uint32_t runs = ct_attr_u32(c->n, 0, 0);
  const bool begins = c->step % runs == 0;
  for (uint64_t i = 0; i < ct_shape_elements(ct_out(c->g, c->n, 0)); ++i)
    c->out[0][i] = (begins ? 0 : c->in[0][i]) + c->in[1][i] / runs;
}

const struct ct_gop ct_gop_accumulate = {.name = "accumulate",
                                         .inputs = 2,
                                         .outputs = 1,
                                         .attrs = accumulate_attrs,
                                         .shape = accumulate_shape,
                                         .reference = accumulate_reference};

/* ---- Clipping: the factor by which all inputs are multiplied, a scalar --------------------- */

static const struct ct_attr_rule clip_norm_attrs[] = {CT_NUMBER("most", 1e-30, 1e30, NAN), {0}};

static void clip_norm_reference(const struct ct_ref_call *c) {
  double sum = 0;
  for (unsigned i = 0; i < c->n->inputs; ++i)
    for (uint64_t k = 0; c->in[i] && k < ct_shape_elements(ct_in(c->g, c->n, i)); ++k)
      sum += c->in[i][k] * c->in[i][k];
  const double norm = ct_real_sqrt(sum), most = ct_attr(c->n, 0, 0);
  c->out[0][0] = norm > most ? most / norm : 1;
}

const struct ct_gop ct_gop_clip_norm = {.name = "clip_norm",
                                        .inputs = 1,
                                        .optional = CT_GOP_INPUTS - 1,
                                        .outputs = 1,
                                        .attrs = clip_norm_attrs,
                                        .shape = ct_shape_scalar,
                                        .reference = clip_norm_reference};

/* ---- New weights --------------------------------------------------------------------------- */

/* Outputs, all of the weight's shape: the weight, then the states; inputs: weight, gradient,
 * states, rate. */
static int update_shape(ct_graph *g, const struct ct_gnode *n, struct ct_shape *out) {
  int err = CT_OK;
  for (unsigned i = 0; i < n->op->outputs; ++i)
    out[i] = *ct_in(g, n, 0);
  for (unsigned i = 1; i < n->inputs - 1 && !err; ++i)
    err = ct_need_shape(g, n, i, out, i == 1 ? "its gradient" : "its state");
  return err ? err : ct_need_shape(g, n, n->inputs - 1, &(struct ct_shape){1, {1}}, "its rate");
}

/* A run in which nothing is updated: the weight and its states stay. Inputs 1 and, behind the
 * states, the last are gradient and rate. */
static void stay(const struct ct_ref_call *c) {
  for (unsigned k = 0; k < c->n->op->outputs; ++k)
    memcpy(c->out[k], c->in[k ? k + 1 : 0],
           ct_shape_elements(ct_out(c->g, c->n, k)) * sizeof *c->out[k]);
}

enum { MOMENTUM, DECAY, SGD_RUNS };
static const struct ct_attr_rule sgd_attrs[] = {
    CT_NUMBER("momentum", 0, 1, 0), CT_NUMBER("decay", 0, 1, 0), RUNS, {0}};

static void sgd_reference(const struct ct_ref_call *c) {
  if (!ends_step(c, SGD_RUNS)) {
    stay(c);
    return;
  }
  const double *w = c->in[0], *g = c->in[1], *v = c->in[2], rate = c->in[3][0];
  for (uint64_t i = 0; i < ct_shape_elements(ct_out(c->g, c->n, 0)); ++i) {
    c->out[1][i] = ct_attr(c->n, MOMENTUM, 0) * v[i] + g[i] + ct_attr(c->n, DECAY, 0) * w[i];
    c->out[0][i] = w[i] - rate * c->out[1][i];
  }
}

const struct ct_gop ct_gop_sgd = {.name = "sgd",
                                  .inputs = 4,
                                  .outputs = 2,
                                  .attrs = sgd_attrs,
                                  .shape = update_shape,
                                  .reference = sgd_reference};

enum { BETA1, BETA2, EPSILON, ADAM_DECAY, DECOUPLED, ADAM_RUNS };
static const struct ct_attr_rule adam_attrs[] = {CT_NUMBER("beta1", 0, 0.999999, 0.9),
                                                 CT_NUMBER("beta2", 0, 0.999999, 0.999),
                                                 CT_NUMBER("epsilon", 0, 1, 1e-8),
                                                 CT_NUMBER("decay", 0, 1, 0),
                                                 CT_WHOLE("decoupled", 1, 0, 1, 0),
                                                 RUNS,
                                                 {0}};

static double or_own(double x, unsigned attr) {
  return x == 0 ? adam_attrs[attr].fallback : x;
}

struct ct_adam ct_adam_of(const struct ct_optimise *how) {
  return (struct ct_adam){.beta1 = or_own(how->beta1, BETA1),
                          .beta2 = or_own(how->beta2, BETA2),
                          .epsilon = or_own(how->epsilon, EPSILON)};
}

static void adam_reference(const struct ct_ref_call *c) {
  if (!ends_step(c, ADAM_RUNS)) {
    stay(c);
    return;
  }
  const uint64_t t = step_of(c, ADAM_RUNS) + 1;
  const double b1 = ct_attr(c->n, BETA1, 0), b2 = ct_attr(c->n, BETA2, 0),
               decay = ct_attr(c->n, ADAM_DECAY, 0);
  const double coupled = ct_attr(c->n, DECOUPLED, 0) != 0 ? 0 : decay, apart = decay - coupled;
  const double *w = c->in[0], *g = c->in[1], *m = c->in[2], *v = c->in[3], rate = c->in[4][0];
  const double fix1 = 1 - ct_real_power(b1, t), fix2 = 1 - ct_real_power(b2, t);
  for (uint64_t i = 0; i < ct_shape_elements(ct_out(c->g, c->n, 0)); ++i) {
    const double pull = g[i] + coupled * w[i];
    c->out[1][i] = b1 * m[i] + (1 - b1) * pull;
    c->out[2][i] = b2 * v[i] + (1 - b2) * pull * pull;
    const double root = ct_real_sqrt(c->out[2][i] / fix2) + ct_attr(c->n, EPSILON, 0);
    c->out[0][i] = w[i] - rate * (c->out[1][i] / fix1 / root + apart * w[i]);
  }
}

const struct ct_gop ct_gop_adam = {.name = "adam",
                                   .inputs = 5,
                                   .outputs = 3,
                                   .attrs = adam_attrs,
                                   .shape = update_shape,
                                   .reference = adam_reference};
