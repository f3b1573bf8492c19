/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several devices in one process, each on its own thread: emulated and simulated ones multiply,
 * train and serve at once, and every bit is that of the same work done alone. Also built with the
 * thread sanitizer, which sees the library (the simulator is a plug-in that it does not see into).
 */
#include "ct_tb.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "coltrain/coltrain.h"

enum { DEVICES = 5, M = 20, N = 18, K = 34, IN = 21, OUT = 6, BATCH = 5, STEPS = 3 };

struct work {
  const char *uri;
  unsigned seed;
  int error;
  char why[256];
  float c[M * N], w[IN * OUT], loss, logits[BATCH * OUT];
};

static float next_float(unsigned *state) {
  *state = *state * 1664525u + 1013904223u;
  return (float)(*state >> 16) * 0x1p-16f - 0.5f;
}

static int multiply(ct_device *dev, struct work *work, unsigned *state) {
  float a[M * K], b[K * N];
  for (int i = 0; i < M * K; ++i)
    a[i] = next_float(state);
  for (int i = 0; i < K * N; ++i)
    b[i] = next_float(state);
  return ct_matmul(dev, CT_TRAINING, M, N, K, a, b, work->c, NULL);
}

static int learn(ct_device *dev, struct work *work, unsigned *state) {
  static const uint32_t widths[] = {IN, OUT};
  const struct ct_training training = {.batch = BATCH, .rates = {.lr = 0.1f, .momentum = 0.9f}};
  float x[BATCH * IN];
  uint32_t labels[BATCH];
  ct_model *model = NULL;
  ct_weights *weights = NULL;
  for (int i = 0; i < BATCH * IN; ++i)
    x[i] = next_float(state);
  for (uint32_t i = 0; i < BATCH; ++i)
    labels[i] = (i + *state) % OUT;
  int err = ct_model_create(dev, widths, 1, work->seed, &model);
  if (!err) err = ct_model_training(model, &training);
  for (int i = 0; i < STEPS && !err; ++i)
    err = ct_model_step(model, x, labels, &work->loss);
  if (!err) err = ct_model_publish(model, &weights);
  if (!err) err = ct_model_infer(model, weights, x, BATCH, work->logits);
  if (!err) err = ct_model_get(model, 0, work->w, NULL, NULL, NULL);
  ct_weights_free(weights);
  ct_model_free(model);
  return err;
}

static void *run(void *arg) {
  struct work *work = arg;
  ct_device *dev = NULL;
  unsigned state = work->seed;
  work->error = ct_open(work->uri, &dev);
  if (work->error) snprintf(work->why, sizeof work->why, "%s", ct_last_error(NULL));
  if (!work->error) work->error = multiply(dev, work, &state);
  if (!work->error) work->error = learn(dev, work, &state);
  if (dev && work->error) snprintf(work->why, sizeof work->why, "%s", ct_last_error(dev));
  /* A mistake of this thread's is this thread's. */
  if (!work->error && ct_pack_row(NULL, 1, NULL) != CT_ERR_ARG) work->error = CT_ERR_INTERNAL;
  ct_close(dev);
  return NULL;
}

static const char *const uris[DEVICES] = {"emu:dram=32", "sim:dram=32", "emu:path=plain,dram=32",
                                          "sim:core=16x8,dram=32", "sim:stall=20,seed=4,dram=32"};

static void devices_do_not_meet(void **state) {
  (void)state;
  static struct work together[DEVICES], alone[DEVICES];
  pthread_t thread[DEVICES];
  for (unsigned i = 0; i < DEVICES; ++i) {
    together[i] = (struct work){.uri = uris[i], .seed = i % 2};
    assert_int_equal(pthread_create(&thread[i], NULL, run, &together[i]), 0);
  }
  for (unsigned i = 0; i < DEVICES; ++i)
    assert_int_equal(pthread_join(thread[i], NULL), 0);
  for (unsigned i = 0; i < DEVICES; ++i) {
    alone[i] = (struct work){.uri = "emu:dram=32", .seed = i % 2};
    run(&alone[i]);
    if (together[i].error) fail_msg("%s: %s", uris[i], together[i].why);
    assert_int_equal(alone[i].error, CT_OK);
    ct_assert_same("product", together[i].c, alone[i].c, sizeof alone[i].c);
    ct_assert_same("weights", together[i].w, alone[i].w, sizeof alone[i].w);
    ct_assert_same("loss", &together[i].loss, &alone[i].loss, sizeof alone[i].loss);
    ct_assert_same("logits", together[i].logits, alone[i].logits, sizeof alone[i].logits);
  }
  assert_memory_not_equal(alone[0].c, alone[1].c, sizeof alone[0].c);
}

/* Two in one thread, in turns. */
static void two_in_one_thread(void **state) {
  (void)state;
  ct_device *dev[2];
  uint64_t at[2];
  uint32_t word = 0;
  for (uint32_t i = 0; i < 2; ++i) {
    assert_int_equal(ct_open(uris[i], &dev[i]), CT_OK);
    assert_int_equal(ct_mem_alloc(dev[i], 4, &at[i]), CT_OK);
  }
  for (uint32_t i = 0; i < 2; ++i) {
    word = i + 7;
    assert_int_equal(ct_mem_write(dev[i], at[i], &word, 4), CT_OK);
  }
  assert_int_equal(ct_mem_free(dev[0], 1), CT_ERR_ARG);
  assert_string_equal(ct_last_error(dev[1]), "");
  for (uint32_t i = 0; i < 2; ++i) {
    assert_int_equal(ct_mem_read(dev[i], at[i], &word, 4), CT_OK);
    assert_int_equal(word, i + 7);
    ct_close(dev[i]);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(devices_do_not_meet),
                                     cmocka_unit_test(two_in_one_thread)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
