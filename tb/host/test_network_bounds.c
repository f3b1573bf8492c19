/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random networks on the device, forward and whole training steps, beside the reference in double
 * precision, node by node: each node's reference reads what the device made of everything in front,
 * and each number that the device made of it lies within a bound that is derived from the
 * arithmetic (node_bounds.h). So what a network makes is known to be what its nodes should make,
 * without a bound that grows from layer to layer.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "network_bed.h"
#include "node_bounds.h"

/* The numbers of tensors: given, or as the device has made them. A learning rate has no place on a
 * device and is the reference's. */
struct values {
  double **of;
  bool *made;
  size_t tensors;
};

/* What was compared of an operator: numbers that are not 0, and those whose bound is below their
 * magnitude. */
struct seen {
  const char *op;
  size_t numbers, telling;
};

struct tally {
  struct seen seen[64];
  size_t ops, nodes;
  double worst; /* of difference over bound */
};

static struct seen *seen_of(struct tally *t, const char *op) {
  size_t i = 0;
  while (i < t->ops && strcmp(t->seen[i].op, op) != 0)
    ++i;
  if (i < t->ops) return &t->seen[i];
  for (size_t k = 0; ct_graph_op_name(k); ++k) /* whose names last */
    if (!strcmp(ct_graph_op_name(k), op)) t->seen[i].op = ct_graph_op_name(k);
  assert_non_null(t->seen[i].op);
  return &t->seen[t->ops++];
}

static double *room(size_t count) {
  double *x = calloc(count + 1, sizeof *x);
  assert_non_null(x);
  return x;
}

static size_t elements(const struct bed *b, int tensor) {
  return bed_info(b, tensor).elements;
}

/* What the device has in one tensor is the value of another, or of the same. */
static void read_one(struct net_bed *n, struct values *v, int tensor, int value) {
  const size_t count = elements(n->bed, tensor);
  float *f = malloc(count * sizeof *f);
  assert_non_null(f);
  if (ct_network_read(n->net, tensor, f, count))
    fail_msg("%s: %s", bed_info(n->bed, tensor).name, ct_last_error(n->dev));
  if (!v->of[value]) v->of[value] = room(count);
  for (size_t i = 0; i < count; ++i)
    v->of[value][i] = (double)f[i];
  free(f);
  v->made[value] = bed_info(n->bed, value).node >= 0;
}

/* In front of a run. */
static void given(struct net_bed *n, struct values *v) {
  struct ct_graph_info info;
  assert_int_equal(ct_graph_info(n->bed->g, &info), CT_OK);
  *v = (struct values){calloc(info.tensors + 1, sizeof *v->of),
                       calloc(info.tensors + 1, sizeof *v->made), info.tensors};
  assert_non_null(v->of);
  assert_non_null(v->made);
  for (int t = 1; t <= (int)v->tensors; ++t) {
    if (bed_info(n->bed, t).node >= 0) continue;
    v->of[t] = room(elements(n->bed, t));
    memcpy(v->of[t], bed_data(n->bed, t), elements(n->bed, t) * sizeof **v->of);
  }
}

static bool is_rate(const struct bed *b, int tensor) {
  struct ct_node_info node;
  const struct ct_tensor_info t = bed_info(b, tensor);
  return t.node >= 0 && !ct_graph_node_info(b->g, (size_t)t.node, &node) &&
         !strcmp(node.op, "rate");
}

/* Behind a run: outputs, and what weights and states have become. */
static void made(struct net_bed *n, struct values *v) {
  for (int t = 1; t <= (int)v->tensors; ++t) {
    const struct ct_tensor_info info = bed_info(n->bed, t);
    if (info.becomes) {
      read_one(n, v, t, info.becomes);
    } else if (info.role == CT_ROLE_OUTPUT && !is_rate(n->bed, t) && !v->made[t]) {
      read_one(n, v, t, t);
    }
  }
}

static void drop(struct values *v) {
  for (size_t i = 0; i <= v->tensors; ++i)
    free(v->of[i]);
  free(v->of);
  free(v->made);
}

static void compare(struct node_case *one, size_t output, const double *got, struct tally *tally,
                    const char *what) {
  const double *want = bed_data(&one->bed, one->out[output]);
  double *bound = node_bound(one, output);
  struct seen *seen = seen_of(tally, one->of.op);
  for (size_t i = 0; i < bed_info(&one->bed, one->out[output]).elements; ++i) {
    const double off = fabs(got[i] - want[i]);
    if (!(off <= bound[i]) || !isfinite(bound[i]))
      fail_msg("%s%s (%s), output %zu, number %zu: %.9g, not %.9g; at most %.3g off, it is %.3g",
               what, one->of.op, one->of.name, output, i, got[i], want[i], bound[i], off);
    seen->numbers += want[i] != 0;
    seen->telling += bound[i] < fabs(want[i]);
    if (off > 0 && off / bound[i] > tally->worst) tally->worst = off / bound[i];
  }
  free(bound);
}

static void check_node(struct bed *b, size_t index, struct values *v, struct tally *tally,
                       const char *what) {
  struct node_case one;
  node_take(&one, b, index);
  for (size_t i = 0; i < one.of.input_count; ++i) {
    const int t = one.of.inputs[i];
    if (!t) continue;
    if (!v->of[t]) fail_msg("%s was not read", bed_info(b, t).name);
    memcpy(bed_data(&one.bed, one.in[i]), v->of[t], elements(b, t) * sizeof **v->of);
  }
  node_run(&one);
  for (size_t i = 0; i < one.of.output_count; ++i) {
    const int t = one.of.outputs[i];
    if (v->made[t]) compare(&one, i, v->of[t], tally, what);
    if (!v->of[t] && is_rate(b, t)) v->of[t] = room(elements(b, t));
    if (is_rate(b, t)) v->of[t][0] = bed_data(&one.bed, one.out[i])[0];
  }
  ++tally->nodes;
  node_drop(&one);
}

enum { NODES = 1024, FEW = 1000 };
#define LEAST 0.3

static void check_network(ct_rng *rng, bool training, struct tally *tally) {
  const struct net_shape shape = {.all = true,
                                  .training = training,
                                  .most_layers = 3,
                                  .most_channels = 40,
                                  .most_size = 10,
                                  .most_images = 6};
  struct bed b;
  struct net_bed n;
  struct values v;
  struct ct_graph_info info;
  uint32_t order[NODES];
  char text[1024];
  net_random(&b, &shape, rng);
  net_open(&n, &b, "emu:");
  net_draw(&n, ct_rng_u64(rng), rng);
  given(&n, &v);
  net_run_device(&n, b.step);
  made(&n, &v);
  assert_int_equal(ct_graph_info(b.g, &info), CT_OK);
  assert_int_equal(ct_graph_order(b.g, order, NODES), info.nodes);
  for (size_t i = 0; i < info.nodes; ++i)
    check_node(&b, order[i], &v, tally, net_text(&b, text, sizeof text));
  drop(&v);
  net_close(&n);
  bed_free(&b);
}

/* Bounds that allow anything would check nothing, of any operator. */
static void report(const struct tally *t) {
  size_t numbers = 0, telling = 0;
  for (size_t i = 0; i < t->ops; ++i) {
    const struct seen *s = &t->seen[i];
    numbers += s->numbers;
    telling += s->telling;
    if (getenv("SHOW"))
      printf("%-24s %8zu %5.1f %%\n", s->op, s->numbers,
             s->numbers ? 100 * (double)s->telling / (double)s->numbers : 0);
    if (s->numbers >= FEW && (double)s->telling < LEAST * (double)s->numbers)
      fail_msg("%s: of %zu numbers only %zu are larger than their bounds", s->op, s->numbers,
               s->telling);
  }
  printf(
      "%zu nodes, %zu numbers, bounds below the number %.1f %%, difference at most %.2f of one\n",
      t->nodes, numbers, 100 * (double)telling / (double)numbers, t->worst);
}

static void test_forward(void **state) {
  (void)state;
  ct_rng rng = ct_rng_make(1);
  struct tally tally = {0};
  for (int i = 0, draws = ct_tb_draws(40); i < draws; ++i)
    check_network(&rng, false, &tally);
  report(&tally);
}

static void test_steps(void **state) {
  (void)state;
  ct_rng rng = ct_rng_make(2);
  struct tally tally = {0};
  for (int i = 0, draws = ct_tb_draws(40); i < draws; ++i)
    check_network(&rng, true, &tally);
  report(&tally);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_forward), cmocka_unit_test(test_steps)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
