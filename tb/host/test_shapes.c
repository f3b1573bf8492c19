/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Networks, batches, scratchpads and memories of all sizes, through the library: nothing whose data
 * fit device memory is refused, and everything computes to the byte what a device with a scratchpad
 * for all of it does (whose steps and answers test_mlp and test_infer compare with the contract).
 *
 * Nothing is skipped. The only refusal allowed is of what does not fit device memory, by this
 * file's own reckoning; what surely does not must be refused.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "all_passes.h"
#include "coltrain/coltrain.h"
#include "ct_model.h"
#include "ct_prog.h"
#include "harness/ct_tb.h"

enum { ROWS = CT_INFER_ROWS_MAX, LEAST_SPM = 512, LEAST_RING = 128, MOST_BATCH = 4096 };

struct shape {
  struct ct_mlp net;
  uint32_t batch, rows, most; /* rows to answer; requests of a server's batch */
  uint32_t spm, mib;
  bool small; /* the core */
};

/* ---- Drawing ------------------------------------------------------------------------------- */

static uint32_t draw_log(ct_rng *rng, uint32_t least, uint32_t most) {
  uint32_t limit = least;
  while (limit < most && ct_rng_below(rng, 4))
    limit *= 3;
  return least + ct_rng_below(rng, ct_min_u32(limit, most) - least + 1);
}

static uint64_t tiles_of(const struct ct_mlp *net) {
  uint64_t tiles = 0;
  for (uint32_t l = 0; l < net->layers; ++l)
    tiles += (uint64_t)ct_tiles(net->width[l]) * ct_tiles(net->width[l + 1]);
  return tiles;
}

/* Up to so many weight tiles. */
static struct ct_mlp draw_net(ct_rng *rng, uint32_t widest, uint64_t most) {
  struct ct_mlp net;
  do {
    memset(&net, 0, sizeof net);
    net.layers = 1 + ct_rng_below(rng, ct_rng_below(rng, 2) ? 3 : CT_MLP_LAYERS);
    const uint32_t limit = draw_log(rng, 16, widest);
    for (uint32_t l = 0; l <= net.layers; ++l)
      net.width[l] = 1 + ct_rng_below(rng, ct_rng_below(rng, 3) ? limit : ct_min_u32(limit, 64));
  } while (tiles_of(&net) > most);
  return net;
}

/* As much work as a test has time for. */
static struct shape draw_shape(ct_rng *rng) {
  enum { TILES = 20000, WORK = 400000 };
  struct shape s = {.net = draw_net(rng, 40000, TILES),
                    .rows = 1 + ct_rng_below(rng, 40),
                    .most = ct_rng_below(rng, ROWS + 1),
                    .spm = LEAST_SPM << ct_rng_below(rng, 8),
                    .mib = 1 << ct_rng_below(rng, 8),
                    .small = ct_rng_below(rng, 2)};
  const uint64_t rows = 16 * WORK / tiles_of(&s.net);
  s.batch = draw_log(rng, 1, rows < MOST_BATCH ? (uint32_t)rows : MOST_BATCH);
  return s;
}

static void print_shape(const struct shape *s) {
  print_message("batch %u, %u rows, batches of %u, spm %u, %u MiB, %s core, widths", s->batch,
                s->rows, s->most, s->spm, s->mib, s->small ? "small" : "large");
  for (uint32_t l = 0; l <= s->net.layers; ++l)
    print_message(" %u", s->net.width[l]);
  print_message("\n");
}

/* ---- Reckoning ----------------------------------------------------------------------------- */

static uint64_t packed(uint64_t rows, uint64_t cols) {
  return (rows + 15) / 16 * ((cols + 15) / 16) * 272;
}

/* Bytes that have to lie in device memory at once, whatever the library does. */
static uint64_t at_least(const struct shape *s) {
  const uint64_t tiles = tiles_of(&s->net);
  return tiles * (272 + 2048) + packed(s->batch, s->net.width[0]) +
         packed(s->batch, s->net.width[s->net.layers]);
}

/* Bytes with which nothing may be refused: activations and their gradients in device memory, the
 * programs of a step at their longest, a version, rows and answers, and what alignment loses. */
static uint64_t at_most(const struct shape *s) {
  enum { PROGRAM = 512 * 32, FIXED = (1 << 20) - (1 << 18) };
  const struct ct_mlp *net = &s->net;
  const uint64_t classes = net->width[net->layers], in = net->width[0];
  uint64_t bytes = at_least(s) + tiles_of(net) * 272 + FIXED;
  for (uint32_t l = 0; l <= net->layers; ++l)
    bytes += 2 * packed(s->batch, net->width[l]) + ((uint64_t)net->width[l] + 16) * 4 * 4 +
             3 * packed(1, net->width[l]) + UINT64_C(3) * PROGRAM;
  bytes += 2 * ((uint64_t)s->batch + 16) * (classes + 16) * 4;
  return bytes + (s->rows + ROWS) * (packed(1, in) + classes * 4 + 512);
}

/* ---- What a device answers ----------------------------------------------------------------- */

struct results {
  float loss[2];
  uint8_t *weights;
  float *answer, *served;
  size_t bytes, answers;
};

static void results_free(struct results *r) {
  free(r->weights);
  free(r->answer);
  free(r->served);
}

static float *draw_floats(ct_rng *rng, size_t n) {
  float *x = malloc(n * sizeof *x);
  assert_non_null(x);
  for (size_t i = 0; i < n; ++i)
    x[i] = (float)((int)ct_rng_below(rng, 2001) - 900) * 1e-3f;
  return x;
}

static int train(ct_model *m, const struct shape *s, ct_rng *rng, struct results *r) {
  const struct ct_training how = {.batch = s->batch, .rates = {.lr = 0.05f, .momentum = 0.9f}};
  const uint32_t classes = s->net.width[s->net.layers];
  float *x = draw_floats(rng, (size_t)s->batch * s->net.width[0]);
  uint32_t *labels = calloc(s->batch, sizeof *labels);
  assert_non_null(labels);
  for (uint32_t i = 0; i < s->batch; ++i)
    labels[i] = ct_rng_below(rng, classes);
  int err = ct_model_training(m, &how);
  for (int i = 0; i < 2 && !err; ++i)
    err = ct_model_step(m, x, labels, &r->loss[i]);
  free(x);
  free(labels);
  struct ct_weights_info info;
  if (err) return err;
  assert_int_equal(ct_weights_info(ct_model_weights(m), &info), CT_OK);
  r->bytes = info.bytes;
  r->weights = malloc(info.bytes);
  assert_non_null(r->weights);
  return ct_weights_read(ct_model_weights(m), r->weights, info.bytes);
}

static int serve_rows(ct_model *m, const struct shape *s, ct_server *server, ct_rows *rows,
                      ct_answers *answers, const float *x, float *answer) {
  ct_device *dev = m->dev;
  int err = ct_rows_write(rows, 0, s->rows, x);
  for (size_t i = 0; i < s->rows && !err; ++i) {
    const struct ct_request r = {.rows = rows, .answers = answers, .row = i, .answer = i};
    err = ct_server_push(server, &r, NULL);
  }
  for (size_t i = 0; i < s->rows && !err; ++i) {
    struct ct_event e;
    err = ct_reap(dev, &e, CT_FOREVER);
    if (!err) assert_int_equal(e.error, CT_OK);
  }
  return err ? err : ct_answers_read(answers, 0, s->rows, answer);
}

static int serve(ct_model *m, const struct shape *s, const float *x, float *answer) {
  const struct ct_serving how = {
      .batching = CT_BATCHING_FIXED, .max_wait = 100, .max_batch = s->most};
  ct_server *server = NULL;
  ct_rows *rows = NULL;
  ct_answers *answers = NULL;
  int err = ct_rows_create(m, s->rows, &rows);
  if (!err) err = ct_answers_create(m, s->rows, &answers);
  if (!err) err = ct_server_create(m, NULL, &how, &server);
  if (!err) err = serve_rows(m, s, server, rows, answers, x, answer);
  ct_server_free(server);
  ct_answers_free(answers);
  ct_rows_free(rows);
  return err;
}

static int answer(ct_model *m, const struct shape *s, ct_rng *rng, struct results *r) {
  const size_t classes = s->net.width[s->net.layers];
  float *x = draw_floats(rng, (size_t)s->rows * s->net.width[0]);
  r->answers = s->rows * classes * sizeof(float);
  r->answer = calloc(1, r->answers);
  r->served = calloc(1, r->answers);
  assert_true(r->answer && r->served);
  int err = ct_model_infer(m, NULL, x, s->rows, r->answer);
  if (!err) err = serve(m, s, x, r->served);
  free(x);
  return err;
}

/* CT_OK, or the first refusal, whose sentence is in why. */
static int run(const char *uri, const struct shape *s, uint64_t seed, struct results *r,
               char why[256]) {
  ct_rng rng = ct_rng_make(seed);
  ct_device *dev;
  ct_model *m = NULL;
  memset(r, 0, sizeof *r);
  if (ct_open(uri, &dev)) fail_msg("%s: %s", uri, ct_last_error(NULL));
  int err = ct_model_create(dev, s->net.width, s->net.layers, seed, &m);
  if (!err) err = train(m, s, &rng, r);
  if (!err) err = answer(m, s, &rng, r);
  if (err) snprintf(why, 256, "%s", ct_last_error(dev));
  ct_model_free(m);
  ct_close(dev);
  return err;
}

/* ---- Tests --------------------------------------------------------------------------------- */

static void same_results(const struct results *got, const struct results *want) {
  ct_assert_same("losses", got->loss, want->loss, sizeof got->loss);
  ct_assert_same("weights", got->weights, want->weights, want->bytes);
  ct_assert_same("answers", got->answer, want->answer, want->answers);
  ct_assert_same("answers of a server", got->served, want->answer, want->answers);
}

/* Whether it was refused, which has to be right. */
static bool check(const char *uri, const struct shape *s, uint64_t seed) {
  struct results got, want;
  char why[256] = "";
  const uint64_t memory = (uint64_t)s->mib << 20;
  const int err = run(uri, s, seed, &got, why);
  if (err && (err != CT_ERR_NO_SPACE || !strstr(why, "device memory") || at_most(s) <= memory)) {
    print_shape(s);
    fail_msg("%s: %s (error %d; %llu to %llu bytes)", uri, why, err,
             (unsigned long long)at_least(s), (unsigned long long)at_most(s));
  }
  if (!err) {
    assert_true(at_least(s) <= memory);
    if (run("emu:spm=1048576,dram=1024", s, seed, &want, why)) fail_msg("%s", why);
    same_results(&got, &want);
    results_free(&want);
  }
  results_free(&got);
  return err != CT_OK;
}

static void test_all_shapes(void **state) {
  (void)state;
  ct_rng rng = ct_rng_make(1);
  int refused = 0, large = 0;
  for (int i = 0, draws = ct_tb_draws(80); i < draws; ++i) {
    struct shape s = draw_shape(&rng);
    while (i % 8 == 7 && at_least(&s) <= (uint64_t)s.mib << 20) /* so that few draws hold one */
      s = draw_shape(&rng);
    char uri[128];
    snprintf(uri, sizeof uri, "emu:core=%s,spm=%u,dram=%u", s.small ? "16x8" : "16x16", s.spm,
             s.mib);
    if (getenv("CT_VERBOSE")) print_shape(&s);
    large += at_most(&s) > (uint64_t)s.mib << 20;
    refused += check(uri, &s, 100 + (uint64_t)i);
  }
  print_message("%d shapes: %d may not fit device memory, %d are refused\n", ct_tb_draws(80), large,
                refused);
  assert_in_range(refused, 1, large);
}

/* On the simulated core: a step and answers that go through device memory. */
static void test_on_the_simulated_core(void **state) {
  (void)state;
  static const struct shape shapes[] = {{{2, {60, 50, 10}}, 300, 5, 4, 8192, 256, true},
                                        {{2, {20, 5000, 9}}, 1, 16, 16, 8192, 256, true}};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; ++i)
    assert_false(check("sim:core=16x8", &shapes[i], i + 1));
}

/* ---- Programs ------------------------------------------------------------------------------ */

static void check_programs(const struct shape *s, uint32_t window) {
  char text[256] = "";
  const struct ct_why why = {text, sizeof text};
  const struct ct_train step = {.net = &s->net, .batch = s->batch, .spm_words = window};
  struct ct_codes codes;
  struct ct_code code;
  uint64_t work;
  int err = ct_prog_step(&step, &codes, &work, &why);
  if (!err) {
    assert_in_range(codes.count, 1, LEAST_RING);
    ct_codes_free(&codes);
  }
  for (uint32_t rows = 0; rows <= ROWS && !err; rows += 1 + rows / 2) {
    const struct ct_infer infer = {
        .net = &s->net, .rows = rows, .spm_words = window, .work = &work};
    err = ct_prog_infer(&infer, &code, &why);
    if (!err) free(code.cmd);
  }
  if (err) {
    print_shape(s);
    fail_msg("window %u: %s", window, text);
  }
}

/* As large as a model may be, as deep, in every window. */
static void test_programs_of_all_shapes(void **state) {
  (void)state;
  all_passes(false); /* of the largest that would take minutes */
  enum { MOST_TILES = 1 << 21 };
  ct_rng rng = ct_rng_make(2);
  for (int i = 0, draws = ct_tb_draws(200); i < draws; ++i) {
    struct shape s = {.net = draw_net(&rng, CT_MLP_WIDEST, MOST_TILES),
                      .batch = draw_log(&rng, 1, MOST_BATCH)};
    if (i % 10 == 0) { /* deep and wide, no width a multiple of anything */
      s.net.layers = CT_MLP_LAYERS;
      for (uint32_t l = 0; l <= s.net.layers; ++l)
        s.net.width[l] = 5777 - 2 * ct_rng_below(&rng, 400);
    }
    check_programs(&s, CT_INFER_LEAST + ct_rng_below(&rng, 1u << ct_rng_below(&rng, 16)));
  }
  all_passes(true);
}

/* What is too small for any program says so, and how large it has to be. */
static void test_what_is_refused(void **state) {
  (void)state;
  static const uint32_t width[] = {20, 10};
  const struct ct_training how = {.batch = 16};
  ct_device *dev;
  ct_model *m;
  struct ct_request request = {.count = 16};
  float x[16 * 20] = {1}, y[16 * 10];
  assert_int_equal(ct_open("emu:spm=128", &dev), CT_OK);
  assert_int_equal(ct_model_create(dev, width, 1, 1, &m), CT_OK);
  assert_int_equal(ct_model_training(m, &how), CT_ERR_NO_SPACE);
  assert_non_null(strstr(ct_last_error(dev), "200 words"));
  assert_int_equal(ct_rows_create(m, 16, &request.rows), CT_OK);
  assert_int_equal(ct_answers_create(m, 16, &request.answers), CT_OK);
  assert_int_equal(ct_rows_write(request.rows, 0, 16, x), CT_OK);
  assert_int_equal(ct_model_infer_submit(m, &request, NULL), CT_ERR_NO_SPACE);
  assert_non_null(strstr(ct_last_error(dev), "a window of 256 words"));
  assert_int_equal(ct_model_infer(m, NULL, x, 16, y), CT_OK); /* a few rows at a time */
  ct_rows_free(request.rows);
  ct_answers_free(request.answers);
  ct_model_free(m);
  ct_close(dev);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_all_shapes), CT_PLAIN_TEST(test_on_the_simulated_core),
      cmocka_unit_test(test_programs_of_all_shapes), cmocka_unit_test(test_what_is_refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
