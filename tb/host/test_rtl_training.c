/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Networks by name, trained on a simulated core and on emu: beside each other: after each step the
 * loss, every weight and every state are the same bytes. make test takes two steps of LeNet-5 and
 * one of ResNet-8, make campaign an epoch of 2,000 images and five steps.
 *
 * Environment: CT_LENET_IMAGES (32), CT_LENET_BATCH (16), CT_RESNET_STEPS (1), CT_RESNET_BATCH (2),
 * CT_TRAIN_ON (sim:, a device), CT_TRAIN_DATA (of LeNet-5: fashion-mnist, or drawn where that is
 * not installed).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ct_tb.h"

#include "coltrain/network.h"
#include "ct_dataset.h"

enum { DEVICES = 2, CLASSES = 10 };

struct rig {
  const char *name;
  struct ct_dataset data;
  uint32_t batch;
  ct_graph *g;
  int x, y, loss;
  const char *uri[DEVICES];
  ct_device *dev[DEVICES];
  ct_network *net[DEVICES];
};

static uint32_t setting(const char *name, uint32_t usual) {
  const char *text = getenv(name);
  char *end = NULL;
  const unsigned long n = text ? strtoul(text, &end, 10) : usual;
  if (text && (!*text || *end || n < 1 || n > 1000000)) fail_msg("%s is %s", name, text);
  return (uint32_t)n;
}

static const char *named(const char *name, const char *usual) {
  const char *text = getenv(name);
  return text ? text : usual;
}

static void ok(const struct rig *r, int d, int err) {
  if (err) fail_msg("%s: %s: %s", r->name, r->uri[d], ct_last_error(r->dev[d]));
}

static void open_data(struct rig *r, const char *data, const char *other, size_t images) {
  char why[CT_DATASET_WHY];
  if (!ct_dataset_open(&r->data, data, 1, images, why, sizeof why)) return;
  print_message("%s: %s; %s in its place\n", r->name, why, other);
  if (ct_dataset_open(&r->data, other, 1, images, why, sizeof why)) fail_msg("%s", why);
}

static void open_rig(struct rig *r) {
  const struct ct_optimise how = {
      .schedule = {.rate = 0.05}, .momentum = 0.9, .weight_decay = 0.0005};
  assert_int_equal(ct_graph_create(&r->g), CT_OK);
  if (ct_graph_builtin(r->g, r->name, r->batch, true) ||
      ct_graph_optimise(r->g, ct_graph_find(r->g, "loss"), &how) || ct_graph_check(r->g))
    fail_msg("%s", ct_graph_error(r->g));
  r->x = ct_graph_find(r->g, "x");
  r->y = ct_graph_find(r->g, "y");
  r->loss = ct_graph_find(r->g, "loss");
  r->uri[0] = "emu:";
  r->uri[1] = named("CT_TRAIN_ON", "sim:");
  for (int d = 0; d < DEVICES; ++d) {
    if (ct_open(r->uri[d], &r->dev[d])) fail_msg("%s", ct_last_error(NULL));
    ok(r, d, ct_network_create(r->dev[d], r->g, NULL, &r->net[d]));
    ok(r, d, ct_network_draw(r->net[d], 1));
  }
}

static void close_rig(struct rig *r) {
  for (int d = 0; d < DEVICES; ++d) {
    ct_network_free(r->net[d]);
    ct_close(r->dev[d]);
  }
  ct_graph_free(r->g);
  ct_dataset_free(&r->data);
}

/* The images of a step in their order, from the first again when there are no more. */
static void step(const struct rig *r, uint32_t number) {
  const size_t pixels = (size_t)r->batch * r->data.features, labels = (size_t)r->batch * CLASSES;
  float *x = malloc(pixels * sizeof *x), *y = calloc(labels, sizeof *y);
  uint32_t *order = malloc(r->batch * sizeof *order);
  assert_true(x && y && order);
  for (uint32_t i = 0; i < r->batch; ++i) {
    order[i] = (uint32_t)(((size_t)number * r->batch + i) % r->data.train.count);
    y[i * CLASSES + r->data.train.labels[order[i]]] = 1;
  }
  ct_dataset_values(&r->data, &r->data.train, order, r->batch, x);
  for (int d = 0; d < DEVICES; ++d) {
    ok(r, d, ct_network_write(r->net[d], r->x, x, pixels));
    ok(r, d, ct_network_write(r->net[d], r->y, y, labels));
    ok(r, d, ct_network_run(r->net[d], CT_TRAINING, number));
  }
  free(order);
  free(x);
  free(y);
}

static void same_tensor(const struct rig *r, int tensor, const struct ct_tensor_info *t,
                        uint32_t number) {
  char what[128];
  float *data[DEVICES];
  for (int d = 0; d < DEVICES; ++d) {
    data[d] = malloc(t->elements * sizeof **data);
    assert_non_null(data[d]);
    ok(r, d, ct_network_read(r->net[d], tensor, data[d], t->elements));
  }
  snprintf(what, sizeof what, "%s, step %u: %s", r->name, number, t->name);
  ct_assert_same(what, data[1], data[0], t->elements * sizeof **data);
  for (int d = 0; d < DEVICES; ++d)
    free(data[d]);
}

/* Returns how many tensors there are. */
static int compare(const struct rig *r, uint32_t number) {
  struct ct_graph_info info;
  int compared = 0;
  assert_int_equal(ct_graph_info(r->g, &info), CT_OK);
  for (int i = 1; i <= (int)info.tensors; ++i) {
    struct ct_tensor_info t;
    assert_int_equal(ct_graph_tensor_info(r->g, i, &t), CT_OK);
    if (i != r->loss && t.role != CT_ROLE_WEIGHT && t.role != CT_ROLE_STATE) continue;
    same_tensor(r, i, &t, number);
    ++compared;
  }
  return compared;
}

/* Cycles of the last run on the core; 0: it counts none. */
static uint64_t cycles_of(const struct rig *r) {
  uint64_t all = 0;
  for (size_t i = 0; i < ct_network_stages(r->net[1]); ++i) {
    struct ct_network_stage s;
    ok(r, 1, ct_network_stage(r->net[1], i, &s));
    all += s.cycles == CT_NO_CYCLE ? 0 : s.cycles;
  }
  return all;
}

static void train(struct rig *r, uint32_t steps, int tensors) {
  const uint64_t from = ct_tb_ms();
  uint64_t cycles = 0;
  open_rig(r);
  assert_true(compare(r, 0) >= tensors);
  for (uint32_t i = 0; i < steps; ++i) {
    step(r, i);
    compare(r, i + 1);
    cycles += cycles_of(r);
  }
  float loss;
  ok(r, 0, ct_network_read(r->net[0], r->loss, &loss, 1));
  print_message(
      "%s: %u steps of %u images on %s leave the bytes of emu:, loss %.4f; %.1f million "
      "cycles, %.1f s\n",
      r->name, steps, r->batch, r->uri[1], (double)loss, (double)cycles / 1e6,
      (double)(ct_tb_ms() - from) / 1e3);
  close_rig(r);
}

static void test_lenet5(void **state) {
  (void)state;
  const uint32_t images = setting("CT_LENET_IMAGES", 32);
  struct rig r = {.name = "lenet5", .batch = setting("CT_LENET_BATCH", 16)};
  open_data(&r, named("CT_TRAIN_DATA", "fashion-mnist"), "random-28x28x1", images);
  train(&r, (images + r.batch - 1) / r.batch, 21);
}

static void test_resnet8(void **state) {
  (void)state;
  struct rig r = {.name = "resnet8", .batch = setting("CT_RESNET_BATCH", 2)};
  open_data(&r, "random-32x32x3", "random-32x32x3", 0);
  train(&r, setting("CT_RESNET_STEPS", 1), 60);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_lenet5), cmocka_unit_test(test_resnet8)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
