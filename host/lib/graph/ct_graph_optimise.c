/* SPDX-License-Identifier: Apache-2.0 */
/* A whole training step: gradients, clipping, the rate, and an update of each weight. */
#include <stdio.h>
#include <stdlib.h>

#include "ct_graph_impl.h"

/* What updates share. */
struct step {
  ct_graph *g;
  const struct ct_optimise *how;
  int rate, clip; /* tensors; clip 0: gradients are not scaled */
  uint32_t runs;  /* that make a step */
  size_t tensors; /* before there were gradients */
  int *gradient;  /* by tensor: what a weight is updated by; 0: it is not updated */
};

static int emit_rate(const struct step *s) {
  const struct ct_schedule *h = &s->how->schedule;
  return CT_EMIT(
      s->g, NULL, .op = "rate",
      CT_ATTRS({"kind", 1, {h->kind}}, {"rate", 1, {h->rate}}, {"warmup", 1, {h->warmup}},
               {"period", 1, {h->period ? h->period : 1}}, {"factor", 1, {h->factor}},
               {"floor", 1, {h->floor}}, {"runs", 1, {s->runs}}));
}

static int emit_clip(struct step *s) {
  ct_graph *g = s->g;
  int *gradients = calloc(s->tensors + 1, sizeof *gradients);
  if (!gradients) return ct_graph_fail(g, CT_ERR_MEMORY, "no memory for the graph");
  size_t count = 0;
  for (size_t i = 1; i <= s->tensors; ++i)
    if (s->gradient[i]) gradients[count++] = s->gradient[i];
  const struct ct_attr most = {"most", 1, {s->how->clip}};
  s->clip = ct_emit(
      g, NULL,
      &(struct ct_emit){
          .op = "clip_norm", .in = gradients, .inputs = count, .attrs = &most, .attr_count = 1});
  free(gradients);
  return s->clip < 0 ? s->clip : CT_OK;
}

/* A state that goes with a weight. */
static int emit_state(ct_graph *g, int weight, const char *what) {
  char name[200];
  snprintf(name, sizeof name, "%.160s.%s", g->tensor[weight]->name, what);
  return ct_graph_tensor(
      g, &(struct ct_new_tensor){
             .name = name, .shape = g->tensor[weight]->shape, .role = CT_ROLE_STATE});
}

/* What a weight is updated by: its gradient, or the mean of those of several runs. */
static int emit_mean(const struct step *s, int w) {
  ct_graph *g = s->g;
  const int gradient = g->tensor[w]->gradient;
  if (s->runs == 1) return gradient;
  const int mean = emit_state(g, w, "gradient");
  const int more =
      CT_EMIT(g, NULL, .op = "accumulate", CT_IN(mean, gradient), CT_ATTRS({"runs", 1, {s->runs}}));
  const int err = ct_graph_becomes(g, mean, more);
  return err < 0 ? err : more;
}

static int emit_means(struct step *s) {
  const ct_graph *g = s->g;
  for (size_t i = 1; i <= s->tensors; ++i) {
    if (g->tensor[i]->role != CT_ROLE_WEIGHT || !g->tensor[i]->gradient) continue;
    s->gradient[i] = emit_mean(s, (int)i);
    if (s->gradient[i] < 0) return s->gradient[i];
  }
  return CT_OK;
}

static int emit_sgd(const struct step *s, int w, int gradient, double decay) {
  ct_graph *g = s->g;
  const int v = emit_state(g, w, "momentum");
  const int new_w = CT_EMIT(
      g, NULL, .op = "sgd", CT_IN(w, gradient, v, s->rate),
      CT_ATTRS({"momentum", 1, {s->how->momentum}}, {"decay", 1, {decay}}, {"runs", 1, {s->runs}}));
  if (new_w > 0) ct_graph_becomes(g, v, new_w + 1);
  return ct_graph_becomes(g, w, new_w);
}

static int emit_adam(const struct step *s, int w, int gradient, double decay) {
  ct_graph *g = s->g;
  const int m = emit_state(g, w, "mean"), v = emit_state(g, w, "square");
  const bool decoupled = s->how->optimiser == CT_OPTIMISER_ADAMW;
  const struct ct_adam how = ct_adam_of(s->how);
  const int new_w = CT_EMIT(
      g, NULL, .op = "adam", CT_IN(w, gradient, m, v, s->rate),
      CT_ATTRS({"beta1", 1, {how.beta1}}, {"beta2", 1, {how.beta2}}, {"epsilon", 1, {how.epsilon}},
               {"decay", 1, {decay}}, {"decoupled", 1, {decoupled}}, {"runs", 1, {s->runs}}));
  if (new_w > 0) {
    ct_graph_becomes(g, m, new_w + 1);
    ct_graph_becomes(g, v, new_w + 2);
  }
  return ct_graph_becomes(g, w, new_w);
}

static int update(const struct step *s, int w) {
  ct_graph *g = s->g;
  const double decay = g->tensor[w]->shape.dims > 1 ? s->how->weight_decay : 0;
  int gradient = s->gradient[w];
  if (s->clip) gradient = CT_EMIT(g, NULL, .op = "mul", CT_IN(gradient, s->clip));
  const int done = s->how->optimiser == CT_OPTIMISER_SGD ? emit_sgd(s, w, gradient, decay)
                                                         : emit_adam(s, w, gradient, decay);
  return done < 0 ? done : CT_OK;
}

static int emit_all(struct step *s) {
  s->rate = emit_rate(s);
  int err = s->rate < 0 ? s->rate : emit_means(s);
  if (!err && s->how->clip != 0) err = emit_clip(s);
  for (size_t i = 1; i <= s->tensors && !err; ++i)
    if (s->gradient[i]) err = update(s, (int)i);
  return err;
}

static int check_how(ct_graph *g, const struct ct_optimise *how) {
  if (!how) return ct_graph_fail(g, CT_ERR_ARG, "how to optimise is NULL");
  for (size_t i = 0; i < sizeof how->reserved / sizeof *how->reserved; ++i)
    if (how->reserved[i])
      return ct_graph_fail(g, CT_ERR_ARG, "reserved[%zu] of struct ct_optimise is not 0", i);
  if (how->optimiser < CT_OPTIMISER_SGD || how->optimiser > CT_OPTIMISER_ADAMW)
    return ct_graph_fail(g, CT_ERR_ARG, "there is no optimiser %d", (int)how->optimiser);
  if (how->schedule.floor > how->schedule.rate)
    return ct_graph_fail(g, CT_ERR_ARG, "the schedule's floor %g is above its rate %g",
                         how->schedule.floor, how->schedule.rate);
  if (how->accumulate > CT_MOST_ACCUMULATED)
    return ct_graph_fail(g, CT_ERR_ARG, "a step cannot be made of %u runs: at most %d",
                         how->accumulate, CT_MOST_ACCUMULATED);
  return CT_OK;
}

/* What is refused leaves no gradients, either. */
static int add_updates(struct step *s, struct ct_mark mark) {
  ct_graph *g = s->g;
  g->backward = true;
  const int err = emit_all(s);
  g->backward = false;
  if (!err) return CT_OK;
  ct_graph_rollback(g, mark);
  g->differentiated = false;
  return err;
}

int ct_graph_optimise(ct_graph *g, int loss, const struct ct_optimise *how) {
  int err = ct_graph_open(g);
  if (!err) err = check_how(g, how);
  if (err) return err;
  const struct ct_mark mark = ct_graph_mark(g);
  struct step s = {.g = g,
                   .how = how,
                   .runs = how->accumulate ? how->accumulate : 1,
                   .tensors = mark.tensors,
                   .gradient = calloc(mark.tensors + 1, sizeof *s.gradient)};
  if (!s.gradient) return ct_graph_fail(g, CT_ERR_MEMORY, "no memory for the graph");
  err = ct_graph_gradients(g, loss, NULL, 0);
  if (!err) err = add_updates(&s, mark);
  free(s.gradient);
  return err;
}
