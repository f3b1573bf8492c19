/* SPDX-License-Identifier: Apache-2.0 */
/* Members of arrays, and the same networks alone: see the header. */
#include "array_bed.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Batches ------------------------------------------------------------------------------- */

/* Inputs are whole 64ths, labels one-hot. */
static void draw(float *x, const struct ct_tensor_info *t, ct_rng *rng) {
  const size_t cols = t->shape.dim[t->shape.dims - 1];
  if (t->role == CT_ROLE_LABEL) {
    memset(x, 0, t->elements * sizeof *x);
    for (size_t i = 0; i < t->elements; i += cols)
      x[i + ct_rng_below(rng, (uint32_t)cols)] = 1;
    return;
  }
  for (size_t i = 0; i < t->elements; ++i)
    x[i] = ((float)ct_rng_below(rng, 127) - 63) / 64;
}

/* How a tensor is written: to a frame, or to the network's own. */
struct target {
  ct_frame *frame;
  ct_network *network;
};

static int put(const struct target *to, int tensor, const float *x, size_t count) {
  return to->frame ? ct_frame_write(to->frame, tensor, x, count)
                   : ct_network_write(to->network, tensor, x, count);
}

static int write_all(const struct bed_feed *f, uint64_t run, const struct target *to, ct_graph *g) {
  struct ct_graph_info info;
  ct_rng rng = ct_rng_make(f->seed * 1000003 + run);
  ct_graph_info(g, &info);
  int rc = 0;
  for (size_t i = 1; i <= info.tensors && rc >= 0; ++i) {
    struct ct_tensor_info t;
    ct_graph_tensor_info(g, (int)i, &t);
    if (t.node >= 0 || (t.role != CT_ROLE_INPUT && t.role != CT_ROLE_LABEL)) continue;
    float *x = malloc(t.elements * sizeof *x);
    assert_non_null(x);
    draw(x, &t, &rng);
    if (t.role == CT_ROLE_INPUT && run >= f->poison) x[0] = INFINITY;
    rc = put(to, (int)i, x, t.elements);
    free(x);
  }
  return rc;
}

int bed_write(void *feed, uint64_t run, ct_frame *frame) {
  struct bed_feed *f = feed;
  ++f->asked;
  if (run >= f->refuse) return CT_ERR_IO;
  return write_all(f, run, &(struct target){frame, NULL},
                   ct_network_graph(ct_frame_network(frame)));
}

/* ---- Networks ------------------------------------------------------------------------------ */

static int weight(ct_graph *g, const char *name, uint32_t rows, uint32_t cols) {
  return ct_graph_tensor(g, &(struct ct_new_tensor){.name = name,
                                                    .role = CT_ROLE_WEIGHT,
                                                    .initial = CT_INITIAL_HE,
                                                    .shape = {2, {rows, cols}}});
}

static int add(ct_graph *g, const char *op, const int *in, size_t count,
               const struct ct_attr *attr) {
  return ct_graph_add(
      g,
      &(struct ct_new_node){
          .op = op, .inputs = in, .input_count = count, .attrs = attr, .attr_count = attr ? 1 : 0});
}

/* Linear, dropout, ReLU, linear, cross entropy. */
static int describe_dropout(ct_graph *g, const struct bed_case *c) {
  const uint32_t *w = c->widths;
  const int x =
      ct_graph_tensor(g, &(struct ct_new_tensor){.name = "x", .shape = {2, {c->batch, w[0]}}});
  const int y = ct_graph_tensor(
      g,
      &(struct ct_new_tensor){.name = "y", .role = CT_ROLE_LABEL, .shape = {2, {c->batch, w[2]}}});
  int t = add(g, "linear", (int[]){x, weight(g, "w1", w[1], w[0])}, 2, NULL);
  t = add(g, "dropout", &t, 1, &(struct ct_attr){"rate", 1, {c->drop}});
  t = add(g, "relu", &t, 1, NULL);
  t = add(g, "linear", (int[]){t, weight(g, "w2", w[2], w[1])}, 2, NULL);
  const struct ct_new_tensor loss = {.name = "loss", .role = CT_ROLE_ACTIVATION};
  const int out = ct_graph_tensor(g, &loss);
  ct_graph_add(
      g, &(struct ct_new_node){
             .op = "cross_entropy", .inputs = (int[]){t, y}, .input_count = 2, .outputs = &out});
  return ct_graph_result(g, out) < 0 ? CT_ERR_ARG : CT_OK;
}

ct_graph *bed_graph(const struct bed_case *c) {
  ct_graph *g;
  assert_int_equal(ct_graph_create(&g), CT_OK);
  const int err = c->net         ? ct_graph_builtin(g, c->net, c->batch, true)
                  : c->drop != 0 ? describe_dropout(g, c)
                                 : ct_graph_mlp(g, c->widths, c->layers, c->batch, true);
  if (err || ct_graph_check(g)) fail_msg("%s", ct_graph_error(g));
  return g;
}

void bed_draw_case(struct bed_case *c, ct_rng *rng) {
  static const double rates[] = {0.3, 0.1, 0.03, 0.01};
  *c =
      (struct bed_case){.layers = 2,
                        .widths = {8 + 24 * ct_rng_below(rng, 2), 8 + 24 * ct_rng_below(rng, 2), 5},
                        .batch = 4 + 4 * ct_rng_below(rng, 2),
                        .drop = ct_rng_percent(rng, 20) ? 0.25 : 0,
                        .seed = ct_rng_below(rng, 1000) + 1,
                        .masks = ct_rng_below(rng, 3)};
  c->how = (struct ct_optimise){
      .optimiser = (enum ct_optimiser)ct_rng_below(rng, 3),
      .schedule = {.rate = rates[ct_rng_below(rng, 4)]},
      .momentum = 0.1 * ct_rng_below(rng, 10),
      .weight_decay = ct_rng_percent(rng, 50) ? 0.001 * (1 + ct_rng_below(rng, 3)) : 0,
      .beta1 = 0.8 + 0.05 * ct_rng_below(rng, 3),
      .beta2 = 0.99,
      .accumulate = ct_rng_percent(rng, 25) ? 2 : 1};
  if (ct_rng_percent(rng, 30))
    c->how.schedule = (struct ct_schedule){.rate = rates[ct_rng_below(rng, 4)],
                                           .kind = CT_SCHEDULE_COSINE,
                                           .warmup = 2,
                                           .period = 5 + ct_rng_below(rng, 5)};
}

void bed_draw_kin(struct bed_case *c, const struct bed_case *like, ct_rng *rng) {
  bed_draw_case(c, rng);
  const struct ct_optimise how = c->how;
  struct bed_case kin = *like;
  kin.seed = c->seed;
  kin.masks = c->masks;
  kin.how.schedule = how.schedule;
  kin.how.momentum = how.momentum;
  kin.how.beta1 = how.beta1;
  if (kin.how.weight_decay != 0) kin.how.weight_decay = 0.001 * (1 + ct_rng_below(rng, 5));
  *c = kin;
}

/* ---- Members ------------------------------------------------------------------------------- */

int bed_try_join(ct_array *a, const struct bed_case *c, uint32_t *number) {
  ct_graph *g = bed_graph(c);
  const int err = ct_array_join(a,
                                &(struct ct_member){.graph = g,
                                                    .optimise = &c->how,
                                                    .feed = {bed_write, c->feed},
                                                    .seed = c->seed,
                                                    .masks = c->masks},
                                number);
  ct_graph_free(g);
  return err;
}

uint32_t bed_join(ct_array *a, ct_device *dev, const struct bed_case *c) {
  uint32_t number = 0;
  if (bed_try_join(a, c, &number)) fail_msg("%s", ct_last_error(dev));
  return number;
}

/* ---- Alone --------------------------------------------------------------------------------- */

ct_network *bed_alone(ct_device *dev, const struct bed_case *c) {
  ct_graph *checked = bed_graph(c), *g;
  ct_network *n;
  uint8_t *data;
  size_t size;
  assert_int_equal(ct_graph_pack(checked, &data, &size), CT_OK);
  assert_int_equal(ct_graph_create(&g), CT_OK);
  assert_int_equal(ct_graph_unpack(g, data, size), CT_OK);
  if (ct_graph_optimise(g, ct_graph_find(g, "loss"), &c->how) || ct_graph_check(g))
    fail_msg("%s", ct_graph_error(g));
  if (ct_network_create(dev, g, &(struct ct_network_options){.seed = c->masks}, &n) ||
      ct_network_draw(n, c->seed))
    fail_msg("%s", ct_last_error(dev));
  ct_graph_free_bytes(data);
  ct_graph_free(checked);
  ct_graph_free(g);
  return n;
}

void bed_run_alone(ct_network *n, const struct bed_case *c, uint64_t from, uint64_t runs) {
  for (uint64_t run = from; run < from + runs; ++run) {
    assert_int_equal(write_all(c->feed, run, &(struct target){NULL, n}, ct_network_graph(n)),
                     CT_OK);
    assert_int_equal(ct_network_run(n, CT_TRAINING, run), CT_OK);
  }
}

uint64_t bed_digest(ct_network *n) {
  ct_graph *g = ct_network_graph(n);
  struct ct_graph_info info;
  uint64_t h = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
  ct_graph_info(g, &info);
  for (size_t i = 1; i <= info.tensors; ++i) {
    struct ct_tensor_info t;
    ct_graph_tensor_info(g, (int)i, &t);
    if (t.role != CT_ROLE_WEIGHT && t.role != CT_ROLE_STATE) continue;
    unsigned char *x = malloc(t.elements * sizeof(float));
    assert_non_null(x);
    assert_int_equal(ct_network_read(n, (int)i, (float *)x, t.elements), CT_OK);
    for (size_t k = 0; k < t.elements * sizeof(float); ++k)
      h = (h ^ x[k]) * UINT64_C(0x100000001b3);
    free(x);
  }
  return h;
}

void bed_expect_alone(ct_array *a, uint32_t number, const struct bed_case *c, uint64_t runs,
                      ct_device *beside) {
  struct ct_member_info info;
  assert_int_equal(ct_array_member(a, number, &info), CT_OK);
  assert_int_equal(info.runs, runs);
  ct_network *n = bed_alone(beside, c);
  bed_run_alone(n, c, 0, runs);
  if (bed_digest(n) != bed_digest(ct_array_network(a, number)))
    fail_msg("member %u after %llu runs is not what it is alone", number, (unsigned long long)runs);
  ct_network_free(n);
}
