/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gradients in device memory: the programs are race-free, and a step that leaves them with an
 * update by them leaves the bytes of a step, in the scratchpad and through memory, on emu: and
 * sim:. Sums over batches, scales, norms and the update itself are compared with plain C of the
 * numeric contract. Steps that fail, are cancelled or are not the last in the queue spoil no
 * weights.
 */
#include "ct_tb.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "all_passes.h"
#include "coltrain/coltrain.h"
#include "ct_network.h"
#include "ct_num.h"
#include "ct_queue.h"
#include "ct_racecheck.h"
#include "tiny_program.h"

enum { DEPTHS = 16, MOST_LAYERS = 4 };

static uint32_t bits_of(float x) {
  return ct_bits_of(x);
}

static float float_of(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

static float draw(ct_rng *rng, float scale) {
  return ((float)ct_rng_below(rng, 2001) - 1000.0f) * 1e-3f * scale;
}

/* ---- Programs ------------------------------------------------------------------------------ */

/* Where data lie, in units. */
struct place {
  struct ct_mlp net;
  uint32_t batch, window;
  uint32_t x, y, image, state, gradients, scratch, loss, work, units;
  uint8_t *bytes; /* before a step */
  struct ct_rates rates;
  float scale;
};

static void put_units(struct place *p, uint32_t at, uint32_t units, ct_rng *rng, float scale) {
  for (size_t i = 0; i < (size_t)units * 4; ++i) {
    const float x = draw(rng, scale);
    memcpy(p->bytes + (size_t)at * 16 + 4 * i, &x, sizeof x);
  }
}

static void put_packed(struct place *p, uint32_t at, uint32_t rows, uint32_t cols, ct_rng *rng,
                       float scale) {
  float *x = malloc((size_t)rows * cols * sizeof *x);
  assert_non_null(x);
  for (size_t i = 0; i < (size_t)rows * cols; ++i)
    x[i] = ct_rng_below(rng, 4) ? draw(rng, scale) : 0;
  assert_int_equal(ct_pack(x, rows, cols, cols, CT_SQUARE, p->bytes + (size_t)at * 16), CT_OK);
  free(x);
}

/* State, biases and gradients are anything: padding must not matter. */
static void place_make(struct place *p, ct_rng *rng) {
  const struct ct_mlp *n = &p->net;
  const struct ct_train shape = {.net = n, .batch = p->batch};
  const uint32_t classes = n->width[n->layers];
  p->y = (uint32_t)(ct_pack_size(p->batch, n->width[0]) / 16);
  p->image = p->y + (uint32_t)(ct_pack_size(p->batch, classes) / 16);
  p->state = p->image + ct_mlp_image_units(n);
  p->gradients = p->state + ct_mlp_state_units(n);
  p->scratch = p->gradients + ct_mlp_scratch_at(n);
  p->loss = p->gradients + ct_mlp_gradient_units(n);
  p->work = p->loss + 1;
  p->units = p->work + (uint32_t)ct_train_streamed_units(&shape);
  p->bytes = calloc(p->units, 16);
  assert_non_null(p->bytes);
  put_packed(p, p->x, p->batch, n->width[0], rng, 1.0f);
  put_packed(p, p->y, p->batch, classes, rng, 1.0f);
  for (uint32_t l = 0; l < n->layers; ++l)
    put_packed(p, p->image + ct_mlp_tile(n, l) * CT_RECORD_UNITS, n->width[l + 1], n->width[l], rng,
               0.5f);
  put_units(p, p->image + ct_mlp_bias_at(n), p->state - p->image - ct_mlp_bias_at(n), rng, 1.0f);
  put_units(p, p->state, p->loss - p->state, rng, 0.3f);
  p->rates = (struct ct_rates){
      .lr = draw(rng, 0.5f) + 0.5f, .momentum = 0.9f, .weight_decay = draw(rng, 0.01f) + 0.01f};
  p->scale = draw(rng, 1.0f) + 1.5f;
}

static void step_args(const struct place *p, uint32_t base, bool keeps, uint32_t *args) {
  args[CT_TRAIN_X - 1] = base + p->x;
  args[CT_TRAIN_Y - 1] = base + p->y;
  args[CT_TRAIN_IMAGE - 1] = base + p->image;
  args[CT_TRAIN_STATE - 1] = base + (keeps ? p->gradients : p->state);
  args[CT_TRAIN_LOSS - 1] = base + p->loss;
  args[CT_TRAIN_WORK - 1] = base + p->work;
  args[CT_TRAIN_INV - 1] = bits_of(1.0f / (float)p->batch);
  args[CT_TRAIN_MU - 1] = bits_of(p->rates.momentum);
  args[CT_TRAIN_NEG_LR - 1] = bits_of(-p->rates.lr);
  args[CT_TRAIN_WD - 1] = bits_of(p->rates.weight_decay);
}

static void apply_args(const struct place *p, uint32_t base, float scale, uint32_t *args) {
  step_args(p, base, false, args);
  args[CT_APPLY_GRADIENTS - 1] = base + p->gradients;
  args[CT_APPLY_SCALE - 1] = bits_of(scale);
}

static void print_shape(const struct place *p, const char *what, size_t jobs) {
  print_message("%s: batch %u, window %u, %zu jobs, widths", what, p->batch, p->window, jobs);
  for (uint32_t l = 0; l <= p->net.layers; ++l)
    print_message(" %u", p->net.width[l]);
  print_message("\n");
}

static void check_races(const struct place *p, const struct ct_codes *codes, const uint32_t *args,
                        ct_rng *rng) {
  char why[256];
  for (size_t i = 0; i < codes->count; ++i) {
    struct ct_racecheck check = {.cmds = codes->job[i].cmd,
                                 .count = codes->job[i].count,
                                 .spm_words = p->window,
                                 .dram_units = p->units,
                                 .depth = 1 + ct_rng_below(rng, DEPTHS),
                                 .eager = (int)ct_rng_below(rng, 7),
                                 .spm_holds_data = i > 0};
    memcpy(check.args, args, CT_MAX_ARGS * sizeof *args);
    if (!ct_racecheck(&check, NULL, why, sizeof why))
      fail_msg("job %zu of %zu, depth %u, eager %d: %s", i, codes->count, check.depth, check.eager,
               why);
  }
}

static void run(ct_device *dev, const struct ct_codes *codes, const uint32_t *args) {
  for (size_t i = 0; i < codes->count; ++i) {
    struct ct_job job = {.watchdog = 0};
    struct ct_event event;
    ct_program *program;
    uint64_t tag;
    assert_int_equal(ct_program_load(dev, codes->job[i].cmd, codes->job[i].count, &program), CT_OK);
    job.program = program;
    memcpy(job.args, args, sizeof job.args);
    assert_int_equal(ct_submit(dev, CT_TRAINING, &job, &tag), CT_OK);
    assert_int_equal(ct_wait(dev, tag, &event, CT_FOREVER), CT_OK);
    ct_program_free(program);
    if (event.error) fail_msg("a job ended with code %s", ct_code_text(event.code));
  }
}

typedef int builder(const struct ct_train *shape, struct ct_codes *codes, const struct ct_why *why);

/* False: that step does not fit. */
static bool build(const struct place *p, builder *make, enum ct_gradients how,
                  struct ct_codes *codes) {
  char why[256] = "";
  const struct ct_train shape = {
      .net = &p->net, .batch = p->batch, .spm_words = p->window, .gradients = how};
  const int err = make(&shape, codes, &(struct ct_why){why, sizeof why});
  if (err && (make != ct_prog_train || err != CT_ERR_NO_SPACE)) fail_msg("%s", why);
  return err == CT_OK;
}

static void checked_step(ct_device *dev, const struct place *p, builder *make,
                         enum ct_gradients how, uint64_t at, ct_rng *rng) {
  struct ct_codes codes;
  uint32_t args[CT_MAX_ARGS] = {0};
  assert_true(build(p, make, how, &codes));
  step_args(p, 0, how != CT_GRADIENTS_NONE, args);
  check_races(p, &codes, args, rng);
  step_args(p, (uint32_t)(at / 16), how != CT_GRADIENTS_NONE, args);
  run(dev, &codes, args);
  ct_codes_free(&codes);
}

static size_t checked_apply(ct_device *dev, const struct place *p, uint64_t at, float scale,
                            ct_rng *rng) {
  char why[256] = "";
  struct ct_codes codes;
  uint32_t args[CT_MAX_ARGS] = {0};
  if (ct_prog_apply(&p->net, p->window, &codes, &(struct ct_why){why, sizeof why}))
    fail_msg("%s", why);
  apply_args(p, 0, scale, args);
  check_races(p, &codes, args, rng);
  apply_args(p, (uint32_t)(at / 16), scale, args);
  run(dev, &codes, args);
  const size_t jobs = codes.count;
  ct_codes_free(&codes);
  return jobs;
}

static void reload(ct_device *dev, const struct place *p, uint64_t at) {
  assert_int_equal(ct_mem_write(dev, at, p->bytes, (size_t)p->units * 16), CT_OK);
}

static void fetch(ct_device *dev, const struct place *p, uint64_t at, uint8_t *to) {
  assert_int_equal(ct_mem_read(dev, at, to, (size_t)p->units * 16), CT_OK);
}

static void same(const char *what, const struct place *p, const uint8_t *got, const uint8_t *want,
                 uint32_t from, uint32_t to) {
  (void)p;
  ct_assert_same(what, got + (size_t)from * 16, want + (size_t)from * 16, (size_t)(to - from) * 16);
}

/* to = a + b, gradients alone. */
static void add_gradients(const struct place *p, uint8_t *to, const uint8_t *a, const uint8_t *b) {
  for (size_t i = (size_t)p->gradients * 16; i < (size_t)p->scratch * 16; i += 4) {
    uint32_t x, y;
    memcpy(&x, a + i, 4);
    memcpy(&y, b + i, 4);
    x = ct_fp_add(x, y);
    memcpy(to + i, &x, 4);
  }
}

/* A step that leaves gradients changes nothing else; with the update it is a step; what it adds is
 * what it leaves. */
static void check_kind(ct_device *dev, struct place *p, builder *make, ct_rng *rng) {
  const size_t bytes = (size_t)p->units * 16;
  uint8_t *fused = malloc(bytes), *set = malloc(bytes), *got = malloc(bytes);
  uint64_t at;
  assert_true(fused && set && got);
  assert_int_equal(ct_mem_alloc(dev, bytes, &at), CT_OK);
  reload(dev, p, at);
  checked_step(dev, p, make, CT_GRADIENTS_NONE, at, rng);
  fetch(dev, p, at, fused);
  reload(dev, p, at);
  checked_step(dev, p, make, CT_GRADIENTS_SET, at, rng);
  fetch(dev, p, at, set);
  same("inputs, weights and state", p, set, p->bytes, 0, p->gradients);
  same("loss", p, set, fused, p->loss, p->work);
  checked_apply(dev, p, at, 1.0f, rng);
  fetch(dev, p, at, got);
  same("weights and state after an update", p, got, fused, 0, p->gradients);
  same("gradients after an update", p, got, set, p->gradients, p->scratch);
  reload(dev, p, at);
  checked_step(dev, p, make, CT_GRADIENTS_ADD, at, rng);
  fetch(dev, p, at, got);
  add_gradients(p, set, p->bytes, set);
  same("sums", p, got, set, 0, p->work);
  assert_int_equal(ct_mem_free(dev, at), CT_OK);
  free(fused);
  free(set);
  free(got);
}

static struct ct_mlp draw_net(ct_rng *rng, uint32_t most) {
  struct ct_mlp net = {.layers = 1 + ct_rng_below(rng, MOST_LAYERS)};
  for (uint32_t l = 0; l <= net.layers; ++l)
    net.width[l] = 1 + ct_rng_below(rng, most);
  return net;
}

/* Both kinds of step, where they fit. */
static void check_place(ct_device *dev, struct place *p, int *kinds, ct_rng *rng) {
  struct ct_codes codes;
  place_make(p, rng);
  print_shape(p, "step", 0);
  check_kind(dev, p, ct_prog_train_streamed, rng);
  ++kinds[1];
  if (build(p, ct_prog_train, CT_GRADIENTS_NONE, &codes)) {
    ct_codes_free(&codes);
    check_kind(dev, p, ct_prog_train, rng);
    ++kinds[0];
  }
  free(p->bytes);
}

static void test_programs(void **state) {
  (void)state;
  ct_rng rng = ct_rng_make(1);
  ct_device *dev;
  int kinds[2] = {0, 0};
  assert_int_equal(ct_open("emu:spm=65536", &dev), CT_OK);
  for (int i = 0, draws = ct_tb_draws(40); i < draws; ++i) {
    static const uint32_t windows[] = {32768, 256, 400, 1024, 2048, 4096};
    /* Each size in turn, so that few draws also hold one that fits the scratchpad. */
    struct place p = {.net = draw_net(&rng, ct_rng_below(&rng, 3) ? 90 : 250),
                      .batch = 1 + ct_rng_below(&rng, ct_rng_below(&rng, 3) ? 40 : 200),
                      .window = windows[i % 6] + ct_rng_below(&rng, 40)};
    check_place(dev, &p, kinds, &rng);
  }
  print_message("%d steps in the scratchpad, %d through memory\n", kinds[0], kinds[1]);
  assert_int_equal(kinds[1], ct_tb_draws(40));
  assert_in_range(kinds[0], (ct_tb_draws(40) + 7) / 8, ct_tb_draws(40));
  ct_close(dev);
}

static void test_programs_on_the_simulated_core(void **state) {
  (void)state;
  ct_rng rng = ct_rng_make(2);
  ct_device *dev;
  int kinds[2] = {0, 0};
  assert_int_equal(ct_open("sim:", &dev), CT_OK);
  for (int i = 0; i < 4; ++i) {
    struct place p = {
        .net = draw_net(&rng, 70), .batch = 1 + ct_rng_below(&rng, 50), .window = 32768};
    check_place(dev, &p, kinds, &rng);
  }
  assert_int_equal(kinds[0] + kinds[1], 8);
  ct_close(dev);
}

enum { LEAST_WINDOW = 237 }; /* of an update, as the header says */

/* Steps and updates of all shapes are built; in a window that is too small a sentence says so. */
static void test_no_shape_is_refused(void **state) {
  (void)state;
  ct_rng rng = ct_rng_make(3);
  size_t most = 0;
  char why[256] = "";
  struct ct_codes codes;
  all_passes(false); /* of the largest that would take minutes */
  for (int i = 0, draws = ct_tb_draws(200); i < draws; ++i) {
    static const uint32_t widest[] = {20, 300, 5000, 60000};
    const uint32_t width = widest[ct_rng_below(&rng, 4)];
    struct ct_mlp net = {.layers = 1 + ct_rng_below(&rng, width > 1000 ? 3 : CT_MLP_LAYERS)};
    for (uint32_t l = 0; l <= net.layers; ++l)
      net.width[l] = 1 + ct_rng_below(&rng, l % 2 && width > 5000 ? 500 : width);
    const uint32_t roomy = UINT32_C(512) << ct_rng_below(&rng, 7);
    const uint32_t window = ct_rng_below(&rng, 5) ? roomy : LEAST_WINDOW;
    if (ct_prog_apply(&net, window, &codes, &(struct ct_why){why, sizeof why})) fail_msg("%s", why);
    if (codes.count > most) most = codes.count;
    ct_codes_free(&codes);
    for (int how = CT_GRADIENTS_SET; how <= CT_GRADIENTS_ADD; ++how) {
      uint64_t work;
      const struct ct_train shape = {
          .net = &net,
          .batch = 1 + ct_rng_below(&rng, ct_rng_below(&rng, 2) ? 4096 : 100),
          .spm_words = window,
          .gradients = (enum ct_gradients)how};
      const struct ct_why w = {why, sizeof why};
      if (ct_prog_step(&shape, &codes, &work, &w)) fail_msg("%s", why);
      ct_codes_free(&codes);
      if (ct_prog_train_streamed(&shape, &codes, &w)) fail_msg("%s", why);
      ct_codes_free(&codes);
    }
  }
  all_passes(true);
  print_message("%d updates: at most %zu jobs\n", ct_tb_draws(200), most);
  const struct ct_mlp net = {.layers = 1, .width = {20, 10}};
  assert_int_equal(ct_prog_apply(&net, LEAST_WINDOW - 1, &codes, &(struct ct_why){why, sizeof why}),
                   CT_ERR_NO_SPACE);
  assert_non_null(strstr(why, "scratchpad"));
}

/* ---- Models -------------------------------------------------------------------------------- */

enum { MOST_ROWS = 40, MOST_WIDTH = 60, STEPS = 5 };

struct bed {
  ct_device *dev;
  bool emu;
  ct_rng rng;
  ct_program *endless;
  uint64_t held;
  struct ct_mlp net;
  uint32_t rows;
  struct ct_rates rates;
  ct_model *model;
  ct_batch *batch[STEPS];
  struct ct_numbers *gradients[STEPS]; /* of each batch alone: w and b */
};

static ct_model *make_model(const struct bed *b, ct_device *dev, bool gradients) {
  const struct ct_training training = {.batch = b->rows, .rates = b->rates, .gradients = gradients};
  ct_model *m;
  assert_int_equal(ct_model_create(dev, b->net.width, b->net.layers, 5, &m), CT_OK);
  assert_int_equal(ct_model_training(m, &training), CT_OK);
  return m;
}

static ct_batch *make_batch(struct bed *b, ct_model *m) {
  float *x = malloc((size_t)b->rows * b->net.width[0] * sizeof *x);
  uint32_t labels[MOST_ROWS];
  ct_batch *batch;
  assert_non_null(x);
  for (size_t i = 0; i < (size_t)b->rows * b->net.width[0]; ++i)
    x[i] = draw(&b->rng, 1.0f);
  for (uint32_t i = 0; i < b->rows; ++i)
    labels[i] = ct_rng_below(&b->rng, b->net.width[b->net.layers]);
  assert_int_equal(ct_batch_create(m, &batch), CT_OK);
  assert_int_equal(ct_batch_write(batch, x, labels), CT_OK);
  free(x);
  return batch;
}

static int submit(ct_model *m, ct_batch *batch, enum ct_gradients how, uint64_t *tag) {
  const struct ct_step step = {.batch = batch, .gradients = how};
  return ct_model_step_submit(m, &step, tag);
}

static void wait_for(struct bed *b, uint64_t tag, int error) {
  struct ct_event e;
  assert_int_equal(ct_wait(b->dev, tag, &e, 60000), CT_OK);
  if (e.error != error) fail_msg("%d instead of %d: %s", e.error, error, ct_code_text(e.code));
}

static void step(struct bed *b, ct_model *m, ct_batch *batch, enum ct_gradients how) {
  uint64_t tag;
  if (submit(m, batch, how, &tag)) fail_msg("%s", ct_last_error(b->dev));
  wait_for(b, tag, CT_OK);
}

static struct ct_numbers *numbers_of(const struct bed *b, ct_model *m) {
  struct ct_numbers *x = ct_numbers_alloc(&b->net);
  assert_non_null(x);
  for (uint32_t l = 0; l < b->net.layers; ++l)
    assert_int_equal(ct_model_get(m, l, x->w[l], x->b[l], x->vw[l], x->vb[l]), CT_OK);
  return x;
}

static struct ct_numbers *gradients_of(const struct bed *b, ct_model *m) {
  struct ct_numbers *x = ct_numbers_alloc(&b->net);
  assert_non_null(x);
  for (uint32_t l = 0; l < b->net.layers; ++l)
    if (ct_model_get_gradients(m, l, x->w[l], x->b[l])) fail_msg("%s", ct_last_error(b->dev));
  return x;
}

static void set_gradients(const struct bed *b, ct_model *m, const struct ct_numbers *x) {
  for (uint32_t l = 0; l < b->net.layers; ++l)
    assert_int_equal(ct_model_set_gradients(m, l, x->w[l], x->b[l]), CT_OK);
}

static void same_numbers(const char *what, const struct ct_numbers *a, const struct ct_numbers *b) {
  ct_assert_same(what, a->all, b->all, a->count * sizeof *a->all);
}

/* small: the scratchpad holds no step, which then is many jobs. */
static void open_bed(struct bed *b, bool emu, bool small, uint64_t seed) {
  const char *uri = small ? "emu:dram=32,spm=512" : emu ? "emu:dram=32" : "sim:dram=32";
  *b = (struct bed){.emu = emu, .rng = ct_rng_make(seed)};
  if (ct_open(uri, &b->dev)) fail_msg("%s", ct_last_error(NULL));
  b->endless = tiny_program(b->dev, true);
  b->net = draw_net(&b->rng, MOST_WIDTH);
  b->net.width[b->net.layers] += 1;
  b->rows = 1 + ct_rng_below(&b->rng, MOST_ROWS);
  b->rates = (struct ct_rates){.lr = 0.2f, .momentum = 0.8f, .weight_decay = 0.01f};
  b->model = make_model(b, b->dev, true);
  for (int i = 0; i < STEPS; ++i) {
    b->batch[i] = make_batch(b, b->model);
    step(b, b->model, b->batch[i], CT_GRADIENTS_SET);
    b->gradients[i] = gradients_of(b, b->model);
  }
}

static void close_bed(struct bed *b) {
  for (int i = 0; i < STEPS; ++i) {
    ct_batch_free(b->batch[i]);
    ct_numbers_free(b->gradients[i]);
  }
  ct_model_free(b->model);
  ct_program_free(b->endless);
  ct_close(b->dev);
}

/* Jobs submitted to the training queue from here on wait until let_go(). */
static void hold(struct bed *b) {
  b->held = tiny_hold(b->dev, CT_TRAINING, b->endless, b->emu);
}

static void let_go(struct bed *b) {
  tiny_let_go(b->dev, b->held, b->emu);
}

/* ---- What an update is, in plain C ---- */

static float update(float w, float g, float *v, const struct ct_rates *r, float wd, float scale) {
  uint32_t t = ct_fp_mul(bits_of(g), bits_of(scale));
  if (wd != 0) t = ct_fp_add(ct_fp_mul(bits_of(w), bits_of(wd)), t);
  const uint32_t now = ct_fp_add(ct_fp_mul(bits_of(*v), bits_of(r->momentum)), t);
  *v = float_of(now);
  return float_of(ct_fp_add(ct_fp_mul(now, bits_of(-r->lr)), bits_of(w)));
}

static void apply_in_c(const struct bed *b, struct ct_numbers *x, const struct ct_numbers *g,
                       float scale) {
  for (uint32_t l = 0; l < b->net.layers; ++l) {
    const size_t out = b->net.width[l + 1], weights = out * b->net.width[l];
    for (size_t i = 0; i < weights; ++i)
      x->w[l][i] =
          update(x->w[l][i], g->w[l][i], &x->vw[l][i], &b->rates, b->rates.weight_decay, scale);
    for (size_t i = 0; i < out; ++i)
      x->b[l][i] = update(x->b[l][i], g->b[l][i], &x->vb[l][i], &b->rates, 0, scale);
  }
}

/* sum = sum + g, momentum's places too (they hold 0). */
static void add_in_c(struct ct_numbers *sum, const struct ct_numbers *g) {
  for (size_t i = 0; i < sum->count; ++i)
    sum->all[i] = float_of(ct_fp_add(bits_of(sum->all[i]), bits_of(g->all[i])));
}

/* The device computes with what these numbers are quantised to. */
static void check_image(const struct bed *b, ct_model *m, const struct ct_numbers *x) {
  struct ct_weights_info info;
  ct_weights *live = ct_model_weights(m);
  assert_int_equal(ct_weights_info(live, &info), CT_OK);
  uint8_t *got = malloc(info.bytes), *want = calloc(1, info.bytes);
  assert_true(got && want);
  assert_int_equal(ct_weights_read(live, got, info.bytes), CT_OK);
  for (uint32_t l = 0; l < b->net.layers; ++l) {
    const uint32_t out = b->net.width[l + 1], in = b->net.width[l];
    const size_t biases = ct_mlp_bias_at(&b->net) + ct_mlp_bias_tile(&b->net, l) * 4;
    ct_pack(x->w[l], out, in, in, CT_SQUARE,
            want + (size_t)ct_mlp_tile(&b->net, l) * CT_RECORD_UNITS * 16);
    memcpy(want + biases * 16, x->b[l], out * sizeof(float));
  }
  ct_assert_same("image", got, want, info.bytes);
  free(got);
  free(want);
}

/* ---- What holds ---- */

/* Sums of any number of batches, in the order of their steps, submitted ahead; any scale. */
static void sums_and_scales(struct bed *b) {
  for (int round = 0; round < 4; ++round) {
    const int n = 1 + (int)ct_rng_below(&b->rng, STEPS);
    const struct ct_apply apply = {.scale = round ? draw(&b->rng, 1.0f) + 1.5f : 0, .user = b};
    uint64_t tag[STEPS], last;
    struct ct_numbers *x = numbers_of(b, b->model);
    struct ct_event e;
    hold(b);
    for (int i = 0; i < n; ++i)
      assert_int_equal(
          submit(b->model, b->batch[i], i ? CT_GRADIENTS_ADD : CT_GRADIENTS_SET, &tag[i]), CT_OK);
    assert_int_equal(ct_model_apply_submit(b->model, &apply, &last), CT_OK);
    let_go(b);
    for (int i = 0; i < n; ++i)
      wait_for(b, tag[i], CT_OK);
    assert_int_equal(ct_wait(b->dev, last, &e, 60000), CT_OK);
    assert_int_equal(e.error, CT_OK);
    assert_int_equal(e.kind, CT_EVENT_APPLY);
    assert_ptr_equal(e.user, b);
    for (int i = 1; i < n && round == 0; ++i)
      add_in_c(b->gradients[0], b->gradients[i]);
    struct ct_numbers *g = gradients_of(b, b->model), *after = numbers_of(b, b->model);
    if (round == 0) same_numbers("sum of gradients", g, b->gradients[0]);
    apply_in_c(b, x, g, round ? apply.scale : 1.0f);
    same_numbers("updated numbers", after, x);
    check_image(b, b->model, x);
    ct_numbers_free(x);
    ct_numbers_free(g);
    ct_numbers_free(after);
  }
  struct ct_model_info info;
  assert_int_equal(ct_model_info(b->model, &info), CT_OK);
  assert_int_equal(info.steps, 4);
}

/* A step in two leaves the bits, and the loss, of a step in one. */
static void a_step_in_two(struct bed *b) {
  ct_model *fused = make_model(b, b->dev, false);
  for (int i = 0; i < 3; ++i) {
    float loss[2];
    ct_rng rng = b->rng; /* twice the same data */
    ct_batch *one = make_batch(b, b->model);
    b->rng = rng;
    ct_batch *two = make_batch(b, fused);
    step(b, b->model, one, CT_GRADIENTS_SET);
    assert_int_equal(ct_model_apply(b->model, NULL), CT_OK);
    step(b, fused, two, CT_GRADIENTS_NONE);
    assert_int_equal(ct_batch_loss(one, &loss[0]), CT_OK);
    assert_int_equal(ct_batch_loss(two, &loss[1]), CT_OK);
    ct_assert_same("loss", &loss[0], &loss[1], sizeof loss[0]);
    struct ct_numbers *x = numbers_of(b, b->model), *y = numbers_of(b, fused);
    same_numbers("numbers", x, y);
    check_image(b, b->model, y);
    ct_numbers_free(x);
    ct_numbers_free(y);
    ct_batch_free(one);
    ct_batch_free(two);
  }
  ct_model_free(fused);
}

/* Two devices that exchange sums by the host are one that adds up. */
static void exchange(struct bed *b) {
  ct_device *other_dev = NULL;
  assert_int_equal(ct_open("emu:dram=32", &other_dev), CT_OK);
  ct_model *other = make_model(b, other_dev, true);
  const struct ct_apply mean = {.scale = 0.5f};
  step(b, b->model, b->batch[0], CT_GRADIENTS_SET);
  struct ct_numbers *sum = gradients_of(b, b->model);
  add_in_c(sum, b->gradients[1]);
  set_gradients(b, other, sum);
  assert_int_equal(ct_model_apply(other, &mean), CT_OK);
  step(b, b->model, b->batch[1], CT_GRADIENTS_ADD);
  assert_int_equal(ct_model_apply(b->model, &mean), CT_OK);
  struct ct_numbers *x = numbers_of(b, b->model), *y = numbers_of(b, other);
  same_numbers("exchanged", x, y);
  check_image(b, other, x);
  ct_numbers_free(x);
  ct_numbers_free(y);
  ct_numbers_free(sum);
  ct_model_free(other);
  ct_close(other_dev);
}

static void refused(struct bed *b, int got, int error, const char *part) {
  if (got != error || !strstr(ct_last_error(b->dev), part))
    fail_msg("%d, wanted %d: \"%s\" does not speak of \"%s\"", got, error, ct_last_error(b->dev),
             part);
}

/* Of a step that failed, or was cancelled, nothing is used, and what waited for it does not run.
 * The second one fails when it reads gradients, at its end, the others at their beginning. */
static void lost_gradients(struct bed *b, bool cancels, int which) {
  uint64_t tag[4];
  float w[MOST_WIDTH * (MOST_WIDTH + 1)], norm;
  struct ct_numbers *before = numbers_of(b, b->model);
  hold(b);
  for (int i = 0; i < 3; ++i)
    assert_int_equal(
        submit(b->model, b->batch[i], i ? CT_GRADIENTS_ADD : CT_GRADIENTS_SET, &tag[i]), CT_OK);
  assert_int_equal(ct_model_apply_submit(b->model, NULL, &tag[3]), CT_OK);
  const struct ct_transport_ops *ops = b->dev->plugin.ops;
  if (cancels)
    assert_int_equal(ct_cancel(b->dev, tag[which]), CT_OK);
  else
    assert_int_equal(
        ops->fault(b->dev->self, CT_FAULT_AXI_READ,
                   which == 1 && !cancels ? b->model->live->gradients
                                          : b->batch[which]->frame.at.external[CT_MLP_X]),
        0);
  let_go(b);
  for (int i = 0; i < 4; ++i)
    wait_for(b, tag[i], i < which ? CT_OK : i == which && cancels ? CT_ERR_CANCELLED : CT_ERR_JOB);
  struct ct_numbers *after = numbers_of(b, b->model);
  same_numbers("numbers after a failure", after, before);
  check_image(b, b->model, before);
  refused(b, submit(b->model, b->batch[0], CT_GRADIENTS_ADD, NULL), CT_ERR_ARG, "CT_GRADIENTS_SET");
  refused(b, ct_model_apply(b->model, NULL), CT_ERR_ARG, "layer 0");
  refused(b, ct_model_get_gradients(b->model, 0, w, NULL), CT_ERR_ARG, "no gradients");
  refused(b, ct_model_gradient_norm(b->model, &norm), CT_ERR_ARG, "no gradients");
  ct_numbers_free(before);
  ct_numbers_free(after);
}

static void failures(struct bed *b) {
  for (int which = 0; which < 3; ++which) {
    lost_gradients(b, true, which);
    lost_gradients(b, false, which);
    step(b, b->model, b->batch[3], CT_GRADIENTS_SET);
    struct ct_numbers *g = gradients_of(b, b->model);
    same_numbers("gradients afterwards", g, b->gradients[3]);
    ct_numbers_free(g);
  }
}

/* What cannot be known to be whole is refused; readers of live weights are welcome. */
static void in_flight(struct bed *b) {
  uint64_t tag[3];
  ct_weights *version;
  float w[MOST_WIDTH * (MOST_WIDTH + 1)];
  hold(b);
  assert_int_equal(submit(b->model, b->batch[0], CT_GRADIENTS_SET, &tag[0]), CT_OK);
  refused(b, ct_model_get_gradients(b->model, 0, w, NULL), CT_ERR_BUSY, "in flight");
  refused(b, ct_model_set_gradients(b->model, 0, w, w), CT_ERR_BUSY, "in flight");
  refused(b, ct_model_set(b->model, 0, w, NULL, NULL, NULL), CT_ERR_BUSY, "gradients");
  struct ct_numbers *x = numbers_of(b, b->model);
  assert_int_equal(ct_model_publish_submit(b->model, NULL, &version, &tag[1]), CT_OK);
  refused(b, submit(b->model, b->batch[1], CT_GRADIENTS_ADD, NULL), CT_ERR_BUSY, "other work");
  refused(b, ct_model_apply(b->model, NULL), CT_ERR_BUSY, "other work");
  assert_int_equal(submit(b->model, b->batch[1], CT_GRADIENTS_SET, &tag[2]), CT_OK);
  let_go(b);
  for (int i = 0; i < 3; ++i)
    wait_for(b, tag[i], CT_OK);
  assert_int_equal(ct_model_apply(b->model, NULL), CT_OK);
  apply_in_c(b, x, b->gradients[1], 1.0f);
  struct ct_numbers *y = numbers_of(b, b->model);
  same_numbers("numbers", y, x);
  ct_numbers_free(x);
  ct_numbers_free(y);
  ct_weights_free(version);
}

/* Handles go, the device is closed, with all of it in flight. */
static void left_behind(struct bed *b) {
  uint64_t tag;
  hold(b);
  assert_int_equal(submit(b->model, b->batch[0], CT_GRADIENTS_SET, &tag), CT_OK);
  assert_int_equal(submit(b->model, b->batch[1], CT_GRADIENTS_ADD, &tag), CT_OK);
  assert_int_equal(ct_model_apply_submit(b->model, NULL, &tag), CT_OK);
  if (b->emu) ct_model_free(b->model);
  ct_batch_free(b->batch[0]);
  ct_close(b->dev);
  if (!b->emu) ct_model_free(b->model);
  for (int i = 0; i < STEPS; ++i) {
    if (i) ct_batch_free(b->batch[i]);
    ct_numbers_free(b->gradients[i]);
  }
  ct_program_free(b->endless);
  open_bed(b, b->emu, false, 77);
}

/* Gradients and their norm to the host and back; programs for them come to batches of before. */
static void host_access(struct bed *b) {
  struct ct_numbers *g = ct_numbers_alloc(&b->net);
  ct_model *m = make_model(b, b->dev, false);
  ct_batch *batch = make_batch(b, m);
  const struct ct_training with = {.batch = b->rows, .rates = b->rates, .gradients = true};
  assert_non_null(g);
  refused(b, submit(m, batch, CT_GRADIENTS_SET, NULL), CT_ERR_ARG, "ct_training.gradients");
  refused(b, ct_model_apply(m, NULL), CT_ERR_ARG, "ct_training.gradients");
  refused(b, ct_model_set_gradients(m, 0, g->w[0], g->b[0]), CT_ERR_ARG, "ct_training.gradients");
  assert_int_equal(ct_model_training(m, &with), CT_OK);
  refused(b, submit(m, batch, CT_GRADIENTS_ADD, NULL), CT_ERR_ARG, "layer 0");
  refused(b, submit(m, batch, (enum ct_gradients)7, NULL), CT_ERR_ARG, "gradients 7");
  refused(b, ct_model_set_gradients(m, 0, NULL, g->b[0]), CT_ERR_ARG, "no gradients");
  refused(b, ct_model_set_gradients(m, 16, g->w[0], g->b[0]), CT_ERR_ARG, "no layer 16");
  double sum = 0;
  for (uint32_t l = 0; l < b->net.layers; ++l) {
    const size_t out = b->net.width[l + 1], weights = out * b->net.width[l];
    for (size_t i = 0; i < weights + out; ++i) {
      const float x = (float)((int)ct_rng_below(&b->rng, 2001) - 1000); /* sums stay exact */
      *(i < weights ? &g->w[l][i] : &g->b[l][i - weights]) = x;
      sum += (double)x * (double)x;
    }
    assert_int_equal(ct_model_set_gradients(m, l, g->w[l], NULL), CT_ERR_ARG);
    assert_int_equal(ct_model_set_gradients(m, l, g->w[l], g->b[l]), CT_OK);
  }
  float norm = 0;
  assert_int_equal(ct_model_gradient_norm(m, &norm), CT_OK);
  const float want = (float)sqrt(sum);
  ct_assert_same("norm", &norm, &want, sizeof norm);
  struct ct_numbers *back = gradients_of(b, m);
  same_numbers("gradients of the host", back, g);
  step(b, m, batch, CT_GRADIENTS_ADD);
  for (size_t i = 0; i < 6; ++i) {
    static const uint32_t odd[6] = {0x7f800000, 0x7fc00000, 0xff800000, 0x7f7fffff, 0x00800000, 1};
    static const uint32_t norms[6] = {0x7f800000, 0x7f800000, 0x7f800000,
                                      0x7f7fffff, 0x00800000, 0};
    memset(g->all, 0, g->count * sizeof *g->all);
    g->w[b->net.layers - 1][0] = float_of(odd[i]);
    set_gradients(b, m, g);
    assert_int_equal(ct_model_gradient_norm(m, &norm), CT_OK);
    assert_int_equal(bits_of(norm), norms[i]);
  }
  for (int e = -126; e <= 114; e += 60) { /* carries at every place of the sum */
    size_t count = 0;
    for (uint32_t l = 0; l < b->net.layers; ++l) {
      const size_t out = b->net.width[l + 1], all = out * (b->net.width[l] + 1);
      for (size_t i = 0; i < all; ++i, ++count)
        *(i < all - out ? &g->w[l][i] : &g->b[l][i - (all - out)]) = ldexpf(i % 2 ? 1 : -1, e);
    }
    set_gradients(b, m, g);
    assert_int_equal(ct_model_gradient_norm(m, &norm), CT_OK);
    const float root = ldexpf((float)sqrt((double)count), e);
    ct_assert_same("norm", &norm, &root, sizeof norm);
  }
  ct_numbers_free(back);
  ct_numbers_free(g);
  ct_batch_free(batch);
  ct_model_free(m);
}

enum { WORKS = 36, UPDATE = CT_GRADIENTS_ADD + 1, CANCEL };

struct any_work {
  int kind, batch; /* an enum ct_gradients or UPDATE */
  uint64_t tag;
};

/* Works in any order, as they are taken, and cancels; nothing changes weights. */
static size_t submit_any(struct bed *b, struct any_work *work) {
  const struct ct_rates still = {.lr = 0};
  const struct ct_apply apply = {.rates = &still};
  size_t n = 0;
  for (int i = 0; i < WORKS; ++i) {
    struct any_work *w = &work[n];
    *w = (struct any_work){.kind = (int)ct_rng_below(&b->rng, CANCEL + 1),
                           .batch = (int)ct_rng_below(&b->rng, STEPS)};
    const struct ct_step step = {
        .batch = b->batch[w->batch], .rates = &still, .gradients = (enum ct_gradients)w->kind};
    int err = CT_ERR_BUSY;
    if (w->kind == CANCEL && n && ct_rng_below(&b->rng, 3) == 0)
      assert_int_equal(ct_cancel(b->dev, work[ct_rng_below(&b->rng, (uint32_t)n)].tag), CT_OK);
    else if (w->kind == UPDATE)
      err = ct_model_apply_submit(b->model, &apply, &w->tag);
    else if (w->kind < UPDATE)
      err = ct_model_step_submit(b->model, &step, &w->tag);
    if (err == CT_OK)
      ++n;
    else if (err != CT_ERR_BUSY && err != CT_ERR_ARG)
      fail_msg("%s", ct_last_error(b->dev));
  }
  return n;
}

/* Takes a work's event; whole: whether gradients are there by what has ended before. */
static bool follow(struct bed *b, const struct any_work *w, bool whole, struct ct_numbers *sum) {
  struct ct_event e;
  const struct ct_numbers *g = b->gradients[w->batch];
  assert_int_equal(ct_wait(b->dev, w->tag, &e, 60000), CT_OK);
  if (w->kind == CT_GRADIENTS_NONE) return whole;
  if (e.error) return whole && w->kind == UPDATE;
  if (w->kind != CT_GRADIENTS_SET && !whole) fail_msg("it ran on gradients that were lost");
  if (w->kind == CT_GRADIENTS_SET) memcpy(sum->all, g->all, sum->count * sizeof *sum->all);
  if (w->kind == CT_GRADIENTS_ADD) add_in_c(sum, g);
  return true;
}

/* Whatever comes in whatever order, what ran is what its event says, and nothing goes by gradients
 * that are lost. */
static void any_order(struct bed *b) {
  struct any_work work[WORKS];
  struct ct_numbers *sum = ct_numbers_alloc(&b->net);
  bool whole = true;
  assert_non_null(sum);
  step(b, b->model, b->batch[0], CT_GRADIENTS_SET);
  memcpy(sum->all, b->gradients[0]->all, sum->count * sizeof *sum->all);
  for (int round = 0; round < 8; ++round) {
    if (round % 2) hold(b);
    const size_t n = submit_any(b, work);
    if (round % 2) let_go(b);
    for (size_t i = 0; i < n; ++i)
      whole = follow(b, &work[i], whole, sum);
    if (whole) {
      struct ct_numbers *g = gradients_of(b, b->model);
      same_numbers("gradients in any order", g, sum);
      ct_numbers_free(g);
    } else {
      refused(b, ct_model_get_gradients(b->model, 0, NULL, NULL), CT_ERR_ARG, "no gradients");
    }
  }
  ct_numbers_free(sum);
}

/* All that is left of device memory, so that nothing more has room. */
static size_t take_all(const struct bed *b, uint64_t *piece, size_t most) {
  size_t n = 0;
  for (uint64_t size = UINT64_C(1) << 25; size >= 256; size /= 2) {
    while (n < most && ct_mem_alloc(b->dev, size, &piece[n]) == CT_OK)
      ++n;
  }
  assert_true(n < most);
  return n;
}

/* Gradients that have no room leave the model as it was: none can be left, and later they can. */
static void no_room(struct bed *b) {
  enum { PIECES = 256 };
  uint64_t piece[PIECES];
  const struct ct_training with = {.batch = b->rows, .rates = b->rates, .gradients = true};
  ct_model *m = make_model(b, b->dev, false);
  ct_batch *batch = make_batch(b, m);
  const uint64_t programs = ct_heap_largest(&b->dev->code);
  const size_t pieces = take_all(b, piece, PIECES);
  refused(b, ct_model_training(m, &with), CT_ERR_NO_SPACE, "device memory");
  assert_int_equal(ct_heap_largest(&b->dev->code), programs);
  refused(b, submit(m, batch, CT_GRADIENTS_SET, NULL), CT_ERR_ARG, "ct_training.gradients");
  refused(b, submit(m, batch, CT_GRADIENTS_ADD, NULL), CT_ERR_ARG, "ct_training.gradients");
  refused(b, ct_model_apply(m, NULL), CT_ERR_ARG, "ct_training.gradients");
  step(b, m, batch, CT_GRADIENTS_NONE);
  for (size_t i = 0; i < pieces; ++i)
    assert_int_equal(ct_mem_free(b->dev, piece[i]), CT_OK);
  assert_int_equal(ct_model_training(m, &with), CT_OK);
  step(b, m, batch, CT_GRADIENTS_SET);
  assert_int_equal(ct_model_apply(m, NULL), CT_OK);
  ct_batch_free(batch);
  ct_model_free(m);
}

static void wrong_arguments(struct bed *b) {
  static const uint32_t scales[] = {0x80000000, 0xbf800000, 0x7f800000, 0x7fc00000, 0x007fffff};
  for (size_t i = 0; i < sizeof scales / sizeof *scales; ++i) {
    const struct ct_apply apply = {.scale = float_of(scales[i])};
    refused(b, ct_model_apply(b->model, &apply), CT_ERR_ARG, "scale");
  }
  const struct ct_rates bad = {.lr = -1};
  const struct ct_apply rates = {.rates = &bad}, reserved = {.reserved = {1}};
  refused(b, ct_model_apply(b->model, &rates), CT_ERR_ARG, "learning rate");
  refused(b, ct_model_apply(b->model, &reserved), CT_ERR_ARG, "ct_apply");
  refused(b, ct_model_gradient_norm(b->model, NULL), CT_ERR_ARG, "norm is NULL");
  assert_int_equal(ct_model_apply(NULL, NULL), CT_ERR_ARG);
  assert_int_equal(ct_model_get_gradients(NULL, 0, NULL, NULL), CT_ERR_ARG);
  assert_int_equal(ct_model_set_gradients(NULL, 0, NULL, NULL), CT_ERR_ARG);
  assert_int_equal(ct_model_gradient_norm(NULL, NULL), CT_ERR_ARG);
}

/* Steps through memory, of several jobs; a server reads the live weights meanwhile. */
static void large_batches(struct bed *b) {
  static const uint32_t widths[] = {300, 200, 9};
  enum { ROWS = 1000 };
  const struct ct_training training = {.batch = ROWS, .rates = b->rates, .gradients = true};
  ct_model *m[2];
  ct_batch *batch;
  float *x = malloc((size_t)ROWS * 300 * sizeof *x);
  uint32_t labels[ROWS];
  uint64_t tag;
  assert_non_null(x);
  if (!b->emu) {
    free(x);
    return; /* test_programs has streamed steps on sim: */
  }
  for (size_t i = 0; i < (size_t)ROWS * 300; ++i)
    x[i] = draw(&b->rng, 1.0f);
  for (uint32_t i = 0; i < ROWS; ++i)
    labels[i] = ct_rng_below(&b->rng, 9);
  float got[2][9 * 200], bias[2][9];
  for (int i = 0; i < 2; ++i) {
    ct_server *server = NULL;
    assert_int_equal(ct_model_create(b->dev, widths, 2, 3, &m[i]), CT_OK);
    if (ct_model_training(m[i], &training)) fail_msg("%s", ct_last_error(b->dev));
    assert_int_equal(ct_batch_create(m[i], &batch), CT_OK);
    assert_int_equal(ct_batch_write(batch, x, labels), CT_OK);
    if (i) assert_int_equal(ct_server_create(m[i], NULL, NULL, &server), CT_OK);
    if (submit(m[i], batch, i ? CT_GRADIENTS_SET : CT_GRADIENTS_NONE, &tag))
      fail_msg("%s", ct_last_error(b->dev));
    wait_for(b, tag, CT_OK);
    if (i) refused(b, ct_model_apply(m[i], NULL), CT_ERR_BUSY, "server");
    ct_server_free(server);
    if (i) assert_int_equal(ct_model_apply(m[i], NULL), CT_OK);
    assert_int_equal(ct_model_get(m[i], 1, got[i], bias[i], NULL, NULL), CT_OK);
    ct_batch_free(batch);
  }
  ct_assert_same("weights", got[1], got[0], sizeof got[0]);
  ct_assert_same("biases", bias[1], bias[0], sizeof bias[0]);
  ct_model_free(m[0]);
  ct_model_free(m[1]);
  free(x);
}

/* ---- Clipping ---- */

static void test_clip_scale(void **state) {
  (void)state;
  ct_rng rng = ct_rng_make(9);
  float s = -1;
  assert_int_equal(ct_clip_scale(0, 0.5f, 1, &s), CT_OK);
  assert_true(s == 0.5f);
  assert_int_equal(ct_clip_scale(4, 0.25f, 1, &s), CT_OK);
  assert_true(s == 0.25f);
  for (int i = 0; i < 100000; ++i) {
    const float norm = float_of(0x30000000 + ct_rng_below(&rng, 0x20000000));
    const float most = float_of(0x30000000 + ct_rng_below(&rng, 0x20000000));
    const float scale = float_of(0x38000000 + ct_rng_below(&rng, 0x08000000));
    const float scaled = norm * scale, want = scaled > most ? most / norm : scale;
    assert_int_equal(ct_clip_scale(norm, scale, most, &s), CT_OK);
    if (bits_of(s) != bits_of(want)) fail_msg("%a %a %a: %a, not %a", norm, scale, most, s, want);
  }
  const struct {
    float norm, scale, most;
    const char *part;
  } bad[] = {{INFINITY, 1, 1, "norm"},
             {NAN, 1, 1, "norm"},
             {-1, 1, 1, "norm"},
             {1, 0, 1, "scale"},
             {1, -1, 1, "scale"},
             {1, 1, 0, "largest norm"},
             {1, 1, INFINITY, "largest norm"},
             {1e30f, 1, 1e-20f, "too small"}};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) {
    s = 3;
    assert_int_equal(ct_clip_scale(bad[i].norm, bad[i].scale, bad[i].most, &s), CT_ERR_ARG);
    assert_non_null(strstr(ct_last_error(NULL), bad[i].part));
    assert_true(s == 3);
  }
  assert_int_equal(ct_clip_scale(1, 1, 1, NULL), CT_ERR_ARG);
}

__extension__ typedef unsigned __int128 wide;

/* Roots are rounded to nearest even: of anything, and of numbers at and beside ties. */
static void test_roots(void **state) {
  (void)state;
  ct_rng rng = ct_rng_make(19);
  for (int i = 0; i < 200000; ++i) {
    const unsigned shift = ct_rng_below(&rng, 36);
    const uint64_t half = UINT64_C(1) << 24 | ct_rng_below(&rng, 1 << 24) | 1;
    wide a = ((wide)(half * half) << (2 * shift + 2)) + ct_rng_below(&rng, 3);
    if (i % 2) a = ((wide)ct_rng_u64(&rng) << 58 | ct_rng_u64(&rng)) >> ct_rng_below(&rng, 50);
    if (i % 4 == 0) --a;
    if (a >> 60 == 0) continue;
    const uint64_t words[2] = {(uint64_t)a, (uint64_t)(a >> 64)};
    const uint32_t bits = bits_of(ct_root(words, 2, 0)), mant = (bits & 0x7fffff) | 0x800000;
    const unsigned exp = (bits >> 23) - 150; /* the root is mant * 2^exp */
    const uint64_t below = 2 * (uint64_t)mant - 1, above = below + 2;
    const wide low = (wide)(below * below) << 2 * exp, high = (wide)(above * above) << 2 * exp;
    const bool even = !(mant & 1);
    if (4 * a < low || 4 * a > high || ((4 * a == low || 4 * a == high) && !even))
      fail_msg("root of 0x%llx%016llx: %08x", (unsigned long long)words[1],
               (unsigned long long)words[0], bits);
  }
}

/* ---- On both ---- */

static void on_both(void (*test)(struct bed *), uint64_t seed, int draws) {
  for (int i = 0, n = CT_TB_SANITIZED ? 3 : 3 * draws; i < n; ++i) {
    struct bed b;
    open_bed(&b, i % 3 != 0, i % 3 == 2, seed + (uint64_t)(i / 3) * 100);
    if (i % 3 == 2)
      assert_true(ct_network_stage_jobs(b.model->plan->step[CT_GRADIENTS_SET], 0) > 2);
    test(&b);
    assert_int_equal(ct_outstanding(b.dev, CT_TRAINING), 0);
    close_bed(&b);
  }
}

#define ON_BOTH(test, seed, draws)              \
  static void test##_everywhere(void **state) { \
    (void)state;                                \
    on_both(test, seed, draws);                 \
  }

ON_BOTH(sums_and_scales, 10, 3)
ON_BOTH(a_step_in_two, 11, 2)
ON_BOTH(exchange, 12, 2)
ON_BOTH(failures, 13, 2)
ON_BOTH(in_flight, 14, 1)
ON_BOTH(left_behind, 15, 1)
ON_BOTH(host_access, 16, 1)
ON_BOTH(wrong_arguments, 17, 1)
ON_BOTH(large_batches, 18, 1)
ON_BOTH(no_room, 19, 1)
ON_BOTH(any_order, 20, 2)

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_programs),
      cmocka_unit_test(test_programs_on_the_simulated_core),
      cmocka_unit_test(test_no_shape_is_refused),
      cmocka_unit_test(test_clip_scale),
      cmocka_unit_test(test_roots),
      cmocka_unit_test(sums_and_scales_everywhere),
      cmocka_unit_test(a_step_in_two_everywhere),
      cmocka_unit_test(exchange_everywhere),
      cmocka_unit_test(failures_everywhere),
      cmocka_unit_test(in_flight_everywhere),
      cmocka_unit_test(left_behind_everywhere),
      cmocka_unit_test(host_access_everywhere),
      cmocka_unit_test(wrong_arguments_everywhere),
      cmocka_unit_test(large_batches_everywhere),
      cmocka_unit_test(no_room_everywhere),
      cmocka_unit_test(any_order_everywhere),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
