/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Training steps whose activations lie in device memory: every program is race-free, and a step
 * leaves the same bytes as the one that keeps them in the scratchpad.
 */
#include <stdlib.h>
#include <string.h>

#include "all_passes.h"
#include "coltrain/coltrain.h"
#include "ct_lower.h"
#include "ct_racecheck.h"
#include "harness/ct_tb.h"

enum { DEPTHS = 16, LEAST_RING = 128 }; /* LEAST_RING: jobs that every device's queue holds */

/* Where a step's data lie, in units. */
struct bed {
  struct ct_mlp net;
  uint32_t batch;
  bool logits; /* they are wanted */
  uint32_t x, y, image, state, loss, logits_at, work, units;
  uint8_t *bytes;         /* before a step */
  uint64_t cycles, other; /* of the step, and of what it was compared with */
};

static uint32_t data_units(const struct bed *b) {
  return b->work;
}

static void put_f32(struct bed *b, uint32_t unit, uint32_t i, float x) {
  memcpy(b->bytes + (size_t)unit * 16 + (size_t)i * 4, &x, sizeof x);
}

static float draw(ct_rng *rng, float scale) {
  return ((float)ct_rng_below(rng, 2001) - 1000.0f) * 1e-3f * scale;
}

static float *draw_matrix(ct_rng *rng, uint32_t rows, uint32_t cols, float scale) {
  float *x = malloc((size_t)rows * cols * sizeof *x);
  assert_non_null(x);
  for (size_t i = 0; i < (size_t)rows * cols; ++i)
    x[i] = ct_rng_below(rng, 4) ? draw(rng, scale) : 0;
  return x;
}

static void fill_layer(struct bed *b, uint32_t l, ct_rng *rng) {
  const struct ct_mlp *net = &b->net;
  const uint32_t in = net->width[l], out = net->width[l + 1], first = ct_mlp_tile(net, l);
  float *w = draw_matrix(rng, out, in, 0.5f);
  ct_pack(w, out, in, in, CT_SQUARE,
          b->bytes + ((size_t)b->image + (size_t)first * CT_RECORD_UNITS) * 16);
  for (uint32_t r = 0; r < out; ++r) {
    for (uint32_t c = 0; c < in; ++c) {
      const uint32_t tile = first + r / 16 * ct_mlp_in(net, l) + c / 16;
      const uint32_t at = b->state + tile * 2 * CT_F32_TILE_UNITS, i = r % 16 * 16 + c % 16;
      put_f32(b, at, i, draw(rng, 0.1f));
      put_f32(b, at + CT_F32_TILE_UNITS, i, w[(size_t)r * in + c]);
    }
    const uint32_t bias = ct_mlp_bias_tile(net, l) * CT_F32_ROW_UNITS;
    put_f32(b, b->image + ct_mlp_bias_at(net) + bias, r, draw(rng, 1.0f));
    put_f32(b, b->state + ct_mlp_bias_momentum_at(net) + bias, r, draw(rng, 0.1f));
  }
  free(w);
}

static void bed_make(struct bed *b, ct_rng *rng) {
  const struct ct_mlp *net = &b->net;
  const struct ct_train shape = {.net = net, .batch = b->batch};
  const uint32_t in = net->width[0], classes = net->width[net->layers];
  b->x = 0;
  b->y = b->x + (uint32_t)(ct_pack_size(b->batch, in) / 16);
  b->image = b->y + (uint32_t)(ct_pack_size(b->batch, classes) / 16);
  b->state = b->image + ct_mlp_image_units(net);
  b->loss = b->state + ct_mlp_state_units(net);
  b->logits_at = b->loss + 1;
  b->work = b->logits_at + ct_tiles(b->batch) * ct_tiles(classes) * CT_F32_TILE_UNITS;
  b->units = b->work + (uint32_t)ct_train_streamed_units(&shape);
  b->bytes = calloc(b->units, 16);
  assert_non_null(b->bytes);
  float *x = draw_matrix(rng, b->batch, in, 1.0f);
  float *y = calloc((size_t)b->batch * classes, sizeof *y);
  assert_non_null(y);
  for (uint32_t r = 0; r < b->batch; ++r)
    y[(size_t)r * classes + ct_rng_below(rng, classes)] = 1.0f;
  ct_pack(x, b->batch, in, in, CT_SQUARE, b->bytes);
  ct_pack(y, b->batch, classes, classes, CT_SQUARE, b->bytes + (size_t)b->y * 16);
  for (uint32_t l = 0; l < net->layers; ++l)
    fill_layer(b, l, rng);
  free(x);
  free(y);
}

static void set_args(const struct bed *b, uint32_t base, uint32_t *args) {
  const float inverse = 1.0f / (float)b->batch, mu = 0.9f, minus_lr = -0.05f, wd = 1e-3f;
  args[CT_TRAIN_X - 1] = base + b->x;
  args[CT_TRAIN_Y - 1] = base + b->y;
  args[CT_TRAIN_IMAGE - 1] = base + b->image;
  args[CT_TRAIN_STATE - 1] = base + b->state;
  args[CT_TRAIN_LOSS - 1] = base + b->loss;
  args[CT_TRAIN_WORK - 1] = base + b->work;
  if (b->logits) args[CT_TRAIN_LOGITS - 1] = base + b->logits_at;
  memcpy(&args[CT_TRAIN_INV - 1], &inverse, sizeof inverse);
  memcpy(&args[CT_TRAIN_MU - 1], &mu, sizeof mu);
  memcpy(&args[CT_TRAIN_NEG_LR - 1], &minus_lr, sizeof minus_lr);
  memcpy(&args[CT_TRAIN_WD - 1], &wd, sizeof wd);
}

static void print_shape(const struct bed *b, uint32_t window, size_t jobs) {
  print_message("batch %u, window %u, %zu jobs, widths", b->batch, window, jobs);
  for (uint32_t l = 0; l <= b->net.layers; ++l)
    print_message(" %u", b->net.width[l]);
  print_message("\n");
}

static void check_races(const struct bed *b, const struct ct_codes *codes, uint32_t window,
                        ct_rng *rng) {
  char why[256];
  for (size_t i = 0; i < codes->count; ++i) {
    struct ct_racecheck check = {.cmds = codes->job[i].cmd,
                                 .count = codes->job[i].count,
                                 .spm_words = window,
                                 .dram_units = b->units,
                                 .depth = 1 + ct_rng_below(rng, DEPTHS),
                                 .eager = (int)ct_rng_below(rng, 7),
                                 .spm_holds_data = i > 0};
    set_args(b, 0, check.args);
    if (!ct_racecheck(&check, NULL, why, sizeof why))
      fail_msg("job %zu of %zu, depth %u, eager %d: %s", i, codes->count, check.depth, check.eager,
               why);
  }
}

/* Returns its cycles. */
static uint64_t run_job(ct_device *dev, const struct bed *b, uint64_t at,
                        const struct ct_code *code) {
  struct ct_job job = {.watchdog = 0};
  struct ct_event event;
  ct_program *program;
  uint64_t tag;
  assert_int_equal(ct_program_load(dev, code->cmd, code->count, &program), CT_OK);
  job.program = program;
  set_args(b, (uint32_t)(at / 16), job.args);
  assert_int_equal(ct_submit(dev, CT_TRAINING, &job, &tag), CT_OK);
  assert_int_equal(ct_wait(dev, tag, &event, CT_FOREVER), CT_OK);
  ct_program_free(program);
  if (event.error) fail_msg("a job ended with code %s", ct_code_text(event.code));
  return event.end - event.start;
}

/* What a step leaves behind. */
static uint8_t *run_step(ct_device *dev, const struct bed *b, const struct ct_code *code,
                         size_t jobs, uint64_t *cycles) {
  uint64_t at;
  uint8_t *after = malloc((size_t)b->units * 16);
  assert_non_null(after);
  assert_int_equal(ct_mem_alloc(dev, (size_t)b->units * 16, &at), CT_OK);
  assert_int_equal(ct_mem_write(dev, at, b->bytes, (size_t)b->units * 16), CT_OK);
  *cycles = 0;
  for (size_t i = 0; i < jobs; ++i)
    *cycles += run_job(dev, b, at, &code[i]);
  assert_int_equal(ct_mem_read(dev, at, after, (size_t)b->units * 16), CT_OK);
  assert_int_equal(ct_mem_free(dev, at), CT_OK);
  return after;
}

static void make_streamed(const struct bed *b, uint32_t window, struct ct_codes *codes) {
  char why[256] = "";
  const struct ct_train shape = {
      .net = &b->net, .batch = b->batch, .spm_words = window, .logits = b->logits};
  if (ct_prog_train_streamed(&shape, codes, &(struct ct_why){why, sizeof why})) fail_msg("%s", why);
}

static void same_results(const struct bed *b, const uint8_t *got, const uint8_t *want) {
  const struct {
    const char *name;
    uint32_t from, to;
  } parts[] = {{"loss", b->loss, b->loss + 1},
               {"logits", b->logits_at, b->work},
               {"image", b->image, b->state},
               {"state", b->state, b->loss},
               {"inputs and targets", b->x, b->image}};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; ++i)
    ct_assert_same(parts[i].name, got + (size_t)parts[i].from * 16,
                   want + (size_t)parts[i].from * 16, (size_t)(parts[i].to - parts[i].from) * 16);
  assert_true(memcmp(want, b->bytes, (size_t)data_units(b) * 16) != 0);
  const size_t at = (size_t)b->logits_at * 16;
  assert_int_equal(memcmp(want + at, b->bytes + at, (size_t)b->work * 16 - at) != 0, b->logits);
}

/* The bytes of the step that keeps all in the scratchpad. It may not fit; then
 * those of a streamed step with other blocks and chunks, and false. */
static bool check_same(ct_device *dev, struct bed *b, const struct ct_codes *codes,
                       uint32_t window) {
  struct ct_info info;
  assert_int_equal(ct_info(dev, &info), CT_OK);
  const struct ct_train shape = {
      .net = &b->net, .batch = b->batch, .spm_words = info.spm_words / 2, .logits = b->logits};
  struct ct_codes other = {NULL, 0};
  const bool resident = ct_prog_train(&shape, &other, NULL) == CT_OK;
  if (!resident) make_streamed(b, window < 2048 ? 32768 : 400, &other);
  uint8_t *want = run_step(dev, b, other.job, other.count, &b->other);
  uint8_t *got = run_step(dev, b, codes->job, codes->count, &b->cycles);
  same_results(b, got, want);
  free(want);
  free(got);
  ct_codes_free(&other);
  return resident;
}

static struct ct_mlp draw_net(ct_rng *rng, uint32_t most) {
  struct ct_mlp net = {.layers = 1 + ct_rng_below(rng, 4)};
  for (uint32_t l = 0; l <= net.layers; ++l)
    net.width[l] = 1 + ct_rng_below(rng, most);
  return net;
}

static uint32_t draw_window(ct_rng *rng) {
  static const uint32_t windows[] = {200, 352, 500, 1024, 2048, 4096, 32768};
  return windows[ct_rng_below(rng, sizeof windows / sizeof *windows)] + ct_rng_below(rng, 40);
}

/* One step in a window; whether the other builder made it, too. */
static bool check_step(ct_device *dev, const struct ct_mlp *net, uint32_t batch, uint32_t window,
                       ct_rng *rng) {
  struct bed b = {.net = *net, .batch = batch, .logits = ct_rng_below(rng, 2)};
  struct ct_codes codes;
  bed_make(&b, rng);
  make_streamed(&b, window, &codes);
  print_shape(&b, window, codes.count);
  check_races(&b, &codes, window, rng);
  const bool both = check_same(dev, &b, &codes, window);
  ct_codes_free(&codes);
  free(b.bytes);
  return both;
}

static void test_same_bytes_as_resident_steps(void **state) {
  (void)state;
  ct_rng rng = ct_rng_make(1);
  ct_device *dev;
  int both = 0;
  assert_int_equal(ct_open("emu:spm=524288", &dev), CT_OK);
  for (int i = 0, draws = ct_tb_draws(60); i < draws; ++i) {
    const struct ct_mlp net = draw_net(&rng, ct_rng_below(&rng, 3) ? 90 : 250);
    const uint32_t batch = 1 + ct_rng_below(&rng, ct_rng_below(&rng, 2) ? 40 : 200);
    both += check_step(dev, &net, batch, draw_window(&rng), &rng);
  }
  print_message("%d of %d steps compared with those that keep all in the scratchpad\n", both,
                ct_tb_draws(60));
  assert_int_equal(both, ct_tb_draws(60));
  ct_close(dev);
}

/* Batches and layers that no scratchpad holds. */
static void test_large_steps(void **state) {
  (void)state;
  static const struct {
    uint32_t batch, layers, width[4];
  } cases[] = {{4096, 2, {20, 40, 10}},     {4095, 1, {33, 17}}, {3, 1, {5000, 20}},
               {17, 2, {30, 5000, 3}},      {1, 1, {40, 4990}},  {1000, 2, {100, 300, 50}},
               {32, 3, {784, 600, 100, 10}}};
  ct_rng rng = ct_rng_make(2);
  ct_device *dev;
  assert_int_equal(ct_open("emu:spm=524288", &dev), CT_OK);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    struct ct_mlp net = {.layers = cases[i].layers};
    memcpy(net.width, cases[i].width, sizeof cases[i].width);
    check_step(dev, &net, cases[i].batch, i % 2 ? 4096 : 32768, &rng);
  }
  ct_close(dev);
}

/* On the simulated core a step through device memory leaves the same bytes, and takes less than
 * twice the time where both are possible. */
static void test_on_the_simulated_core(void **state) {
  (void)state;
  ct_rng rng = ct_rng_make(4);
  ct_device *dev;
  static const struct {
    uint32_t batch, layers, width[4];
  } cases[] = {{32, 3, {64, 128, 64, 10}}, {64, 3, {784, 256, 128, 10}}, {45, 2, {70, 90, 21}}};
  assert_int_equal(ct_open("sim:", &dev), CT_OK);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    struct bed b = {.batch = cases[i].batch, .net = {.layers = cases[i].layers}};
    struct ct_codes codes;
    memcpy(b.net.width, cases[i].width, sizeof cases[i].width);
    bed_make(&b, &rng);
    make_streamed(&b, 32768, &codes);
    print_shape(&b, 32768, codes.count);
    assert_true(check_same(dev, &b, &codes, 32768));
    print_message("%llu cycles, in the scratchpad %llu\n", (unsigned long long)b.cycles,
                  (unsigned long long)b.other);
    assert_in_range(b.cycles, b.other, 2 * b.other);
    ct_codes_free(&codes);
    free(b.bytes);
  }
  ct_close(dev);
}

/* Either builder, as a model asks for them. */
static bool goes_through_memory(const struct bed *b, uint32_t window) {
  char why[256] = "";
  const struct ct_train shape = {.net = &b->net, .batch = b->batch, .spm_words = window};
  struct ct_codes codes;
  uint64_t work;
  if (ct_prog_step(&shape, &codes, &work, &(struct ct_why){why, sizeof why})) {
    print_shape(b, window, 0);
    fail_msg("%s", why);
  }
  assert_true(codes.count > 0);
  assert_true(work == 0 || work == ct_train_streamed_units(&shape));
  ct_codes_free(&codes);
  return work > 0;
}

/* Programs of all shapes: none is too long, and a ring of jobs takes a step. */
static void test_no_shape_is_refused(void **state) {
  (void)state;
  ct_rng rng = ct_rng_make(3);
  size_t most = 0, longest = 0;
  all_passes(false); /* of the largest that would take minutes */
  int through = 0, asked = 0;
  for (int i = 0, draws = ct_tb_draws(300); i < draws; ++i) {
    static const uint32_t widest[] = {20, 300, 5000, 60000};
    const uint32_t width = widest[ct_rng_below(&rng, 4)], window = draw_window(&rng);
    struct bed b = {.batch = 1 + ct_rng_below(&rng, ct_rng_below(&rng, 2) ? 4096 : 100)};
    struct ct_codes codes;
    b.net.layers = 1 + ct_rng_below(&rng, width > 1000 ? 3 : CT_MLP_LAYERS);
    for (uint32_t l = 0; l <= b.net.layers; ++l)
      b.net.width[l] = 1 + ct_rng_below(&rng, l % 2 && width > 5000 ? 500 : width);
    if (width <= 300) {
      ++asked;
      through += goes_through_memory(&b, window);
    }
    make_streamed(&b, window, &codes);
    if (codes.count > most) most = codes.count;
    for (size_t j = 0; j < codes.count; ++j)
      if (codes.job[j].count > longest) longest = codes.job[j].count;
    ct_codes_free(&codes);
  }
  print_message(
      "%d shapes: at most %zu jobs, and %zu commands in one; %d of %d go through memory\n",
      ct_tb_draws(300), most, longest, through, asked);
  all_passes(true);
  assert_in_range(through, 1, asked - 1);
  assert_in_range(most, 1, LEAST_RING);
}

static void test_what_is_refused(void **state) {
  (void)state;
  char why[256] = "";
  const struct ct_why w = {why, sizeof why};
  const struct ct_mlp net = {.layers = 1, .width = {20, 10}};
  struct ct_codes codes;
  struct ct_train shape = {.net = &net, .batch = 4097, .spm_words = 32768};
  assert_int_equal(ct_prog_train_streamed(&shape, &codes, &w), CT_ERR_NO_SPACE);
  assert_non_null(strstr(why, "4097 rows"));
  shape.batch = 0;
  assert_int_equal(ct_prog_train_streamed(&shape, &codes, &w), CT_ERR_ARG);
  shape.batch = 1;
  shape.spm_words = 128;
  assert_int_equal(ct_prog_train_streamed(&shape, &codes, &w), CT_ERR_NO_SPACE);
  assert_non_null(strstr(why, "scratchpad"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_same_bytes_as_resident_steps), cmocka_unit_test(test_large_steps),
      CT_PLAIN_TEST(test_on_the_simulated_core), cmocka_unit_test(test_no_shape_is_refused),
      cmocka_unit_test(test_what_is_refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
