/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs as bytes: what is read is what was written, and does the same; bytes that were cut short
 * or changed are refused with a sentence or make another graph, and nothing crashes.
 */
#include <stdlib.h>
#include <string.h>

#include "ct_graph_impl.h"
#include "graph_bed.h"

struct bytes {
  uint8_t *data;
  size_t size;
};

static struct bytes packed(ct_graph *g) {
  struct bytes b;
  if (ct_graph_pack(g, &b.data, &b.size)) fail_msg("%s", ct_graph_error(g));
  return b;
}

static ct_graph *trained(const char *name) {
  const struct ct_optimise how = {
      .optimiser = CT_OPTIMISER_ADAM, .schedule = {.rate = 0.1}, .clip = 1};
  static const uint32_t widths[] = {4, 5, 3};
  ct_graph *g;
  assert_int_equal(ct_graph_create(&g), CT_OK);
  const int err = name ? ct_graph_builtin(g, name, 2, true) : ct_graph_mlp(g, widths, 2, 2, true);
  if (err || ct_graph_optimise(g, ct_graph_find(g, "loss"), &how))
    fail_msg("%s", ct_graph_error(g));
  return g;
}

/* Once more the same bytes, the same numbers of everything. */
static void test_there_and_back(void **state) {
  (void)state;
  static const char *const names[] = {NULL, "lenet5", "resnet8", "resnet20"};
  for (size_t i = 0; i < 4; ++i) {
    struct ct_graph_info was, is;
    ct_graph *g = trained(names[i]), *back;
    const struct bytes b = packed(g);
    assert_int_equal(ct_graph_create(&back), CT_OK);
    if (ct_graph_unpack(back, b.data, b.size) || ct_graph_check(back))
      fail_msg("%s", ct_graph_error(back));
    const struct bytes again = packed(back);
    ct_assert_same("bytes", again.data, b.data, b.size);
    assert_int_equal(again.size, b.size);
    assert_int_equal(ct_graph_check(g), CT_OK);
    assert_true(ct_graph_info(g, &was) == CT_OK && ct_graph_info(back, &is) == CT_OK);
    assert_memory_equal(&was, &is, sizeof was);
    free(b.data);
    free(again.data);
    ct_graph_free(g);
    ct_graph_free(back);
  }
}

/* A step of what was read leaves what a step of the original does. */
static void test_same_step(void **state) {
  (void)state;
  struct bed b[2] = {{.g = trained(NULL), .update = true}, {.update = true}};
  const struct bytes bytes = packed(b[0].g);
  struct ct_graph_info info;
  assert_int_equal(ct_graph_create(&b[1].g), CT_OK);
  assert_int_equal(ct_graph_unpack(b[1].g, bytes.data, bytes.size), CT_OK);
  assert_int_equal(ct_graph_gradient(b[1].g, ct_graph_find(b[1].g, "fc1.weight")),
                   ct_graph_gradient(b[0].g, ct_graph_find(b[0].g, "fc1.weight")));
  for (int k = 0; k < 2; ++k) {
    ct_rng rng = ct_rng_make(1);
    bed_check(&b[k]);
    assert_int_equal(ct_graph_info(b[k].g, &info), CT_OK);
    for (int t = 1; t <= (int)info.tensors; ++t)
      for (size_t i = 0; bed_info(&b[k], t).node < 0 && i < bed_info(&b[k], t).elements; ++i)
        bed_data(&b[k], t)[i] = ct_rng_below(&rng, 100) * 0.01;
    bed_run(&b[k]);
  }
  for (int t = 1; t <= (int)info.tensors; ++t)
    if (bed_info(&b[0], t).node < 0)
      assert_memory_equal(bed_data(&b[0], t), bed_data(&b[1], t),
                          bed_info(&b[0], t).elements * sizeof(double));
  free(bytes.data);
  bed_free(&b[0]);
  bed_free(&b[1]);
}

/* Into a graph of its own; whether it is a graph. The bytes lie where nothing may be read behind.
 */
static int unpack(const uint8_t *data, size_t size) {
  uint8_t *copy = malloc(size + !size);
  ct_graph *g;
  assert_non_null(copy);
  memcpy(copy, data, size);
  assert_int_equal(ct_graph_create(&g), CT_OK);
  const int err = ct_graph_unpack(g, copy, size);
  struct ct_graph_info info;
  assert_int_equal(ct_graph_info(g, &info), CT_OK);
  if (err) {
    assert_true(err == CT_ERR_FORMAT || err == CT_ERR_ARG || err == CT_ERR_UNSUPPORTED);
    assert_true(ct_graph_error(g)[0] && info.tensors == 0 && info.nodes == 0);
  } else if (ct_graph_check(g)) {
    assert_true(ct_graph_error(g)[0] != 0);
  }
  ct_graph_free(g);
  free(copy);
  return err;
}

static void test_cut_short(void **state) {
  (void)state;
  ct_graph *g = trained(NULL);
  const struct bytes b = packed(g);
  for (size_t size = 0; size < b.size; ++size)
    assert_int_not_equal(unpack(b.data, size), CT_OK);
  uint8_t *more = calloc(1, b.size + 1);
  assert_non_null(more);
  memcpy(more, b.data, b.size);
  assert_int_equal(unpack(more, b.size), CT_OK);
  assert_int_equal(unpack(more, b.size + 1), CT_ERR_FORMAT);
  free(more);
  free(b.data);
  ct_graph_free(g);
}

/* Bytes changed, and runs of bytes copied elsewhere. */
static void test_changed(void **state) {
  (void)state;
  enum { ROUNDS = 4000 };
  ct_rng rng = ct_rng_make(2);
  ct_graph *g = trained(NULL);
  const struct bytes b = packed(g);
  uint8_t *copy = malloc(b.size);
  size_t refused = 0;
  assert_non_null(copy);
  for (int i = 0; i < ROUNDS; ++i) {
    memcpy(copy, b.data, b.size);
    for (uint32_t k = 0; k <= ct_rng_below(&rng, 4); ++k) {
      const uint32_t at = ct_rng_below(&rng, (uint32_t)b.size),
                     from = ct_rng_below(&rng, (uint32_t)b.size - 8);
      if (ct_rng_below(&rng, 3))
        copy[at] = (uint8_t)(ct_rng_below(&rng, 2) ? copy[at] ^ 1u << ct_rng_below(&rng, 8)
                                                   : ct_rng_below(&rng, 256));
      else
        memmove(copy + (at < b.size - 8 ? at : 0), copy + from, 8);
    }
    refused += unpack(copy, b.size) != CT_OK;
  }
  print_message("%d graphs of changed bytes, %zu refused\n", ROUNDS, refused);
  assert_in_range(refused, ROUNDS / 2, ROUNDS - 1); /* names and numbers may be others */
  free(copy);
  free(b.data);
  ct_graph_free(g);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_there_and_back),
      cmocka_unit_test(test_same_step),
      cmocka_unit_test(test_cut_short),
      cmocka_unit_test(test_changed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
