/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Multilayer perceptrons: the programs are race-free, and requests and training steps on the
 * emulator equal straightforward C over the numeric contract, bit by bit.
 */
#include <stdlib.h>
#include <string.h>

#include "coltrain/coltrain.h"
#include "ct_num.h"
#include "ct_prog.h"
#include "ct_racecheck.h"
#include "harness/ct_tb.h"
#include "one_copy.h"

/* ---- Programs ---- */

static struct ct_mlp make_net(const uint32_t *width, uint32_t layers) {
  struct ct_mlp net = {.layers = layers};
  memcpy(net.width, width, (layers + 1) * sizeof *width);
  return net;
}

static void check_infer(const struct ct_mlp *net, uint32_t rows, uint32_t window, unsigned depth) {
  char why[256];
  const struct ct_why w = {why, sizeof why};
  const struct ct_infer shape = {.net = net, .rows = rows, .spm_words = window};
  struct ct_code code;
  if (ct_prog_infer(&shape, &code, &w)) fail_msg("%s", why);
  const uint32_t row_units = (uint32_t)(ct_pack_row_size(net->width[0]) / 16);
  const uint32_t out = ct_mlp_image_units(net), answer = (net->width[net->layers] + 3) / 4;
  struct ct_racecheck check = {.cmds = code.cmd,
                               .count = code.count,
                               .args = {0, out},
                               .spm_words = window,
                               .dram_units = out + rows * (answer + row_units),
                               .depth = depth,
                               .eager = (int)(rows + window + depth) % 7};
  for (uint32_t r = 0; r < rows; ++r)
    check.args[CT_INFER_ROW - 1 + r] = out + rows * answer + r * row_units;
  struct ct_racecheck_stats stats;
  if (!ct_racecheck(&check, &stats, why, sizeof why))
    fail_msg("%u rows of %u-%u.., window %u, depth %u: %s", rows, net->width[0], net->width[1],
             window, depth, why);
  assert_int_equal(stats.st_beats, rows * answer);
  /* Programs of loops have products of one row that only carry signals. */
  const uint64_t needed = (uint64_t)rows * ct_mlp_tile(net, net->layers);
  assert_in_range(stats.rows, needed, needed + code.count);
  if (getenv("CT_VERBOSE"))
    print_message("%u rows, %u-%u..: %zu commands, %llu beats in\n", rows, net->width[0],
                  net->width[1], code.count, (unsigned long long)stats.ld_beats);
  free(code.cmd);
}

/* The same commands for every size of a batch, whose requests lie anywhere; with weights that go
 * through, that get a place, that have one. */
static void check_batches(const struct ct_mlp *net, uint32_t window, unsigned depth, bool pinned) {
  char why[256];
  const struct ct_why w = {why, sizeof why};
  const uint32_t row_units = (uint32_t)(ct_pack_row_size(net->width[0]) / 16);
  const uint32_t out = ct_mlp_image_units(net), answer = (net->width[net->layers] + 3) / 4;
  for (int resident = 0; resident <= pinned; ++resident) {
    const struct ct_infer shape = {.net = net,
                                   .rows = CT_INFER_BATCH,
                                   .spm_words = window,
                                   .resident = resident,
                                   .pinned = pinned,
                                   .pin_at = window};
    struct ct_code code;
    if (ct_prog_infer(&shape, &code, &w)) fail_msg("%s", why);
    struct ct_racecheck check = {.cmds = code.cmd,
                                 .count = code.count,
                                 .spm_words = window + (pinned ? ct_infer_pinned(net) : 0),
                                 .dram_units = out + 32 * (answer + row_units),
                                 .depth = depth,
                                 .spm_holds_data = resident};
    for (uint32_t rows = 1; rows <= CT_INFER_ROWS_MAX; ++rows) {
      struct ct_racecheck_stats stats;
      check.batch = rows;
      check.eager = (int)(rows + window + depth) % 7;
      for (uint32_t r = 0; r < rows; ++r) {
        check.output[r] = out + 7 * r % 32 * answer;
        check.input[r] = out + 32 * answer + 5 * r % 32 * row_units;
      }
      if (!ct_racecheck(&check, &stats, why, sizeof why))
        fail_msg("a batch of %u, %u-%u.., window %u, depth %u: %s", rows, net->width[0],
                 net->width[1], window, depth, why);
      /* Programs of loops load a tile that their carriers read. */
      const uint64_t beats = (uint64_t)rows * row_units + (resident ? 0 : out);
      assert_in_range(stats.ld_beats, beats, beats + (resident ? 0 : CT_RECORD_UNITS));
      assert_int_equal(stats.st_beats, rows * answer);
      const uint64_t needed = (uint64_t)rows * ct_mlp_tile(net, net->layers);
      assert_in_range(stats.rows, needed, needed + (resident ? 0 : code.count));
    }
    free(code.cmd);
  }
}

static void check_train(const struct ct_mlp *net, uint32_t batch, uint32_t window, unsigned depth,
                        int max_jobs) {
  char why[256];
  const struct ct_why w = {why, sizeof why};
  const bool logits = (batch + depth + window / 32) % 2; /* half of them store these, too */
  const struct ct_train shape = {.net = net, .batch = batch, .spm_words = window, .logits = logits};
  struct ct_codes codes;
  if (ct_prog_train(&shape, &codes, &w)) fail_msg("%s", why);
  const struct ct_code *code = codes.job;
  const int jobs = (int)codes.count;
  assert_in_range(jobs, 1, max_jobs);
  const uint32_t x = 0, y = x + ct_tiles(batch) * ct_mlp_in(net, 0) * 17;
  const uint32_t image = y + ct_tiles(batch) * ct_mlp_out(net, net->layers - 1) * 17;
  const uint32_t state = image + ct_mlp_image_units(net), loss = state + ct_mlp_state_units(net);
  const uint32_t answers = ct_tiles(batch) * ct_mlp_out(net, net->layers - 1) * CT_F32_TILE_UNITS;
  uint64_t rows = 0;
  for (int i = 0; i < jobs; ++i) {
    struct ct_racecheck_stats stats;
    const struct ct_racecheck check = {
        .cmds = code[i].cmd,
        .count = code[i].count,
        .args = {x, y, image, state, loss, [CT_TRAIN_LOGITS - 1] = loss + 1},
        .spm_words = window,
        .dram_units = loss + 1 + (logits ? answers : 0),
        .depth = depth,
        .eager = (int)(batch + depth) % 7,
        .spm_holds_data = i > 0};
    if (!ct_racecheck(&check, &stats, why, sizeof why))
      fail_msg("%u-%u.. batch %u, window %u, depth %u, job %d: %s", net->width[0], net->width[1],
               batch, window, depth, i, why);
    rows += stats.rows;
    if (getenv("CT_VERBOSE"))
      print_message("%u-%u-%u.., batch %u: job %d, %zu commands, %llu dispatched, %llu rows\n",
                    net->width[0], net->width[1], net->width[2], batch, i, code[i].count,
                    (unsigned long long)stats.dispatched, (unsigned long long)stats.rows);
  }
  ct_codes_free(&codes);
  const uint64_t tiles = ct_mlp_tile(net, net->layers), first = ct_mlp_tile(net, 1);
  const uint64_t useful = (2 * tiles - first) * batch + tiles * 16 * ct_tiles(batch);
  /* Products that only carry signals: between phases, and where a column's panel has several parts.
   */
  assert_in_range(rows, useful, useful + useful / 32 + 16 * (uint64_t)jobs + 4 * net->layers);
}

static const uint32_t nets[][6] = {{3, 64, 128, 64, 10},   {1, 5, 3},
                                   {2, 20, 40, 2},         {1, 64, 10},
                                   {2, 100, 90, 33},       {4, 17, 50, 50, 20, 7},
                                   {3, 784, 300, 100, 10}, {2, 250, 272, 100},
                                   {3, 44, 36, 67, 21},    {3, 70, 16, 33, 12}};

static void test_infer_programs_are_race_free(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof nets / sizeof *nets; ++i) {
    const struct ct_mlp net = make_net(nets[i] + 1, nets[i][0]);
    check_infer(&net, 1, 32768, 16);
    check_infer(&net, 16, 32768, 1);
    check_infer(&net, 5, 4096, 4);
  }
  const uint32_t wide[] = {784, 1300, 2000, 1100};
  const struct ct_mlp net = make_net(wide, 3);
  check_infer(&net, 1, 32768, 16);
  check_infer(&net, 16, 32768, 1);
}

static void test_batch_programs_are_race_free(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof nets / sizeof *nets; ++i) {
    const struct ct_mlp net = make_net(nets[i] + 1, nets[i][0]);
    check_batches(&net, 32768, i % 2 ? 16 : 1, false);
    check_batches(&net, 4096, 4, false);
    if (ct_mlp_tile(&net, net.layers) < 255) check_batches(&net, 4096, i % 2 ? 2 : 16, true);
  }
  const uint32_t wide[] = {784, 1300, 2000, 1100};
  const struct ct_mlp net = make_net(wide, 3);
  check_batches(&net, 32768, 16, false);
}

static void test_training_programs_are_race_free(void **state) {
  (void)state;
  static const uint32_t batches[] = {1, 16, 32, 40, 64, 70, 100, 128};
  for (size_t i = 0; i < sizeof nets / sizeof *nets; ++i) {
    const struct ct_mlp net = make_net(nets[i] + 1, nets[i][0]);
    for (size_t b = 0; b < sizeof batches / sizeof *batches; ++b)
      check_train(&net, batches[b], 32768, b % 2 ? 1 : 16, 1000);
  }
  const uint32_t digits[] = {64, 128, 64, 10};
  const struct ct_mlp net = make_net(digits, 3);
  check_train(&net, 32, 4096, 16, 2);
  check_train(&net, 500, 32768, 2, 3);
}

/* Networks, batches, windows and queues of all kinds; a program that has no room is refused. */
static struct ct_mlp random_net(ct_rng *rng) {
  struct ct_mlp net = {.layers = 1 + ct_rng_below(rng, 4)};
  const uint32_t most = ct_rng_below(rng, 2) ? 100 : 700;
  for (uint32_t l = 0; l <= net.layers; ++l)
    net.width[l] = 1 + ct_rng_below(rng, most);
  return net;
}

/* Words of what has to stay in the scratchpad: X and dZ of all layers, Z and Y, biases with
 * gradient and momentum; and those of the least that passes it: two panels of a step, two weight
 * tiles in and out. A step is refused for want of these and for nothing else. */
static uint64_t step_words(const struct ct_mlp *net, uint32_t batch) {
  const uint64_t mt = ct_tiles(batch), ct = ct_mlp_out(net, net->layers - 1);
  uint64_t words = ct * mt * 80 + 12 * (uint64_t)ct_mlp_bias_tile(net, net->layers);
  for (uint32_t l = 0; l < net->layers; ++l)
    words += (uint64_t)(ct_mlp_in(net, l) + ct_mlp_out(net, l)) * mt * 16;
  return words + 16 + 2 * 4 * 16 + 2 * (128 + 144);
}

static bool step_fits(const struct ct_mlp *net, uint32_t batch, uint32_t window) {
  const struct ct_train shape = {.net = net, .batch = batch, .spm_words = window};
  char why[256] = "";
  struct ct_codes codes;
  const int err = ct_prog_train(&shape, &codes, &(struct ct_why){why, sizeof why});
  if (err && step_words(net, batch) <= window)
    fail_msg("%u-%u-.. (%u layers), batch %u, window %u: %s", net->width[0], net->width[1],
             net->layers, batch, window, why);
  if (err) assert_non_null(strstr(why, "scratchpad"));
  ct_codes_free(&codes);
  return !err;
}

static void test_random_programs_are_race_free(void **state) {
  (void)state;
  ct_rng rng = ct_rng_make(5);
  for (int i = 0, draws = ct_tb_draws(40); i < draws; ++i) {
    const struct ct_mlp net = random_net(&rng);
    const uint32_t window = ct_rng_below(&rng, 2) ? 32768 : 4096 + ct_rng_below(&rng, 8192);
    const uint32_t batch = 1 + ct_rng_below(&rng, 128), rows = 1 + batch % 16;
    const unsigned depth = 1 + ct_rng_below(&rng, 16);
    if (step_fits(&net, batch, window)) check_train(&net, batch, window, depth, 1000);
    check_infer(&net, rows, window, depth);
    check_batches(&net, window, depth, false);
  }
}

/* Shapes of all kinds are refused only if what must stay does not fit; building takes no more work
 * than its programs have parts. */
static void test_no_shape_is_refused(void **state) {
  (void)state;
  ct_rng rng = ct_rng_make(6);
  unsigned taken = 0, most_jobs = 0;
  uint64_t most_work = 0;
  for (int i = 0, draws = ct_tb_draws(150); i < draws; ++i) {
    struct ct_mlp net = {.layers = 1 + ct_rng_below(&rng, 4)};
    const bool mnist = ct_rng_below(&rng, 2);
    for (uint32_t l = 0; l <= net.layers; ++l)
      net.width[l] = 1 + ct_rng_below(&rng, ct_rng_below(&rng, 2) ? 650 : 2500);
    if (mnist) net.width[0] = 784;
    if (mnist) net.width[net.layers] = 10;
    static const uint32_t batches[] = {1, 16, 20, 32, 48, 100, 128, 500, 4096};
    const uint32_t batch = batches[ct_rng_below(&rng, sizeof batches / sizeof *batches)];
    const uint32_t window = ct_rng_below(&rng, 3) ? 32768 : 8192;
    if (!step_fits(&net, batch, window)) continue;
    uint64_t work = 0;
    const struct ct_train shape = {.net = &net, .batch = batch, .spm_words = window, .work = &work};
    struct ct_codes codes;
    assert_int_equal(ct_prog_train(&shape, &codes, NULL), CT_OK);
    if (work / codes.count > most_work) most_work = work / codes.count;
    if (codes.count > most_jobs) most_jobs = (unsigned)codes.count;
    ct_codes_free(&codes);
    if (ct_mlp_tile(&net, net.layers) * ct_tiles(batch) < 8000)
      check_train(&net, batch, window, 1 + ct_rng_below(&rng, 16), 1000);
    ++taken;
  }
  print_message("%u steps of %d fit, of up to %u jobs; a job takes %llu commands and comparisons\n",
                taken, ct_tb_draws(150), most_jobs, (unsigned long long)most_work);
  assert_in_range(most_work, 1, 1000000);
  assert_in_range(taken, ct_tb_draws(150) / 8, ct_tb_draws(150));
}

/* The smallest window that takes a step. */
static uint32_t least_window(const struct ct_mlp *net, uint32_t batch) {
  for (uint32_t window = 256; window <= 32768; window += 32)
    if (step_fits(net, batch, window)) return window;
  fail_msg("no window takes a step of %u rows", batch);
  return 0;
}

/* With less room fewer weight tiles are updated together: one, two, four. */
static void test_training_in_small_windows(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof nets / sizeof *nets; ++i) {
    const struct ct_mlp net = make_net(nets[i] + 1, nets[i][0]);
    if (net.width[0] > 100) continue;
    const uint32_t least = least_window(&net, 20);
    for (uint32_t more = 0; more <= 1800; more += 600)
      check_train(&net, 20, least + more, 16, 1000);
  }
}

static void test_a_large_step_is_two_jobs(void **state) {
  (void)state;
  const uint32_t width[] = {784, 512, 256, 10};
  const struct ct_mlp net = make_net(width, 3);
  check_train(&net, 64, 32768, 16, 2);
}

static void test_copies_are_race_free(void **state) {
  (void)state;
  char why[256];
  const struct ct_why w = {why, sizeof why};
  static const uint32_t units[] = {1, 255, 256, 257, 1208, 35828};
  for (size_t i = 0; i < sizeof units / sizeof *units; ++i) {
    struct ct_code code;
    assert_int_equal(one_copy(units[i], 4096, &code, &w), CT_OK);
    const struct ct_racecheck check = {.cmds = code.cmd,
                                       .count = code.count,
                                       .args = {0, units[i]},
                                       .spm_words = 4096,
                                       .dram_units = 2 * units[i],
                                       .depth = 16};
    struct ct_racecheck_stats stats;
    if (!ct_racecheck(&check, &stats, why, sizeof why)) fail_msg("%u units: %s", units[i], why);
    assert_int_equal(stats.st_beats, units[i]);
    free(code.cmd);
  }
}

/* ---- A model in plain C ---- */

/* A row-major matrix of FP32 bits. */
struct matrix {
  uint32_t rows, cols;
  uint32_t *x;
};

/* The same in HBFP8: mantissas and an exponent for each element. */
struct blocks {
  uint32_t rows, cols;
  int8_t *q;
  uint8_t *e;
};

static struct matrix matrix_new(uint32_t rows, uint32_t cols) {
  return (struct matrix){rows, cols, calloc((size_t)rows * cols, sizeof(uint32_t))};
}

static struct matrix matrix_from(const float *x, uint32_t rows, uint32_t cols) {
  struct matrix m = matrix_new(rows, cols);
  memcpy(m.x, x, (size_t)rows * cols * sizeof *x);
  return m;
}

static uint32_t smaller(uint32_t a, uint32_t b) {
  return a < b ? a : b;
}

static struct blocks quantise(const struct matrix *m, bool square) {
  struct blocks b = {m->rows, m->cols, calloc((size_t)m->rows * m->cols, 1),
                     calloc((size_t)m->rows * m->cols, 1)};
  const uint32_t high = square ? 16 : 1;
  for (uint32_t r0 = 0; r0 < m->rows; r0 += high) {
    for (uint32_t c0 = 0; c0 < m->cols; c0 += 16) {
      uint8_t e = 0;
      for (uint32_t r = r0; r < smaller(r0 + high, m->rows); ++r) {
        const uint8_t row =
            ct_hbfp8_group_exp(m->x + (size_t)r * m->cols + c0, smaller(16, m->cols - c0));
        if (row > e) e = row;
      }
      for (uint32_t r = r0; r < smaller(r0 + high, m->rows); ++r) {
        for (uint32_t c = c0; c < smaller(c0 + 16, m->cols); ++c) {
          b.q[(size_t)r * m->cols + c] = ct_hbfp8_quant(m->x[(size_t)r * m->cols + c], e);
          b.e[(size_t)r * m->cols + c] = e;
        }
      }
    }
  }
  return b;
}

static void blocks_free(struct blocks *b) {
  free(b->q);
  free(b->e);
}

static struct blocks transpose(const struct blocks *a) {
  const size_t n = (size_t)a->rows * a->cols;
  struct blocks t = {a->cols, a->rows, malloc(n), malloc(n)};
  for (uint32_t r = 0; r < a->rows; ++r) {
    for (uint32_t c = 0; c < a->cols; ++c) {
      t.q[(size_t)c * a->rows + r] = a->q[(size_t)r * a->cols + c];
      t.e[(size_t)c * a->rows + r] = a->e[(size_t)r * a->cols + c];
    }
  }
  return t;
}

/* a * b^T */
static struct matrix product(const struct blocks *a, const struct blocks *b) {
  struct matrix c = matrix_new(a->rows, b->rows);
  for (uint32_t i = 0; i < a->rows; ++i) {
    for (uint32_t j = 0; j < b->rows; ++j) {
      uint32_t acc = 0;
      for (uint32_t k0 = 0; k0 < a->cols; k0 += 16) {
        const size_t ia = (size_t)i * a->cols + k0, ib = (size_t)j * b->cols + k0;
        int32_t s = 0;
        for (uint32_t k = 0; k < smaller(16, a->cols - k0); ++k)
          s += a->q[ia + k] * b->q[ib + k];
        acc = ct_fp_add(acc, ct_fp_term(s, a->e[ia], b->e[ib]));
      }
      c.x[(size_t)i * c.cols + j] = acc;
    }
  }
  return c;
}

/* Sum by the contract: sixteen partial sums, then halves. */
static uint32_t sum(const uint32_t *x, size_t n, size_t step) {
  uint32_t p[16] = {0};
  for (size_t i = 0; i < n; ++i)
    p[i % 16] = ct_fp_add(p[i % 16], x[i * step]);
  for (size_t half = 8; half; half /= 2)
    for (size_t j = 0; j < half; ++j)
      p[j] = ct_fp_add(p[j], p[j + half]);
  return p[0];
}

struct layer {
  struct matrix w, b, vw, vb;
};

struct model {
  uint32_t layers;
  struct layer layer[16];
};

static struct matrix add_bias(struct matrix z, const struct matrix *b, bool relu) {
  for (uint32_t i = 0; i < z.rows; ++i) {
    for (uint32_t j = 0; j < z.cols; ++j) {
      uint32_t *x = &z.x[(size_t)i * z.cols + j];
      *x = ct_fp_add(*x, b->x[j]);
      if (relu) *x = ct_fp_relu(*x);
    }
  }
  return z;
}

/* Logits; activations are quantised by row, or by tile (then xq receives them). */
static struct matrix run_forward(const struct model *m, const struct matrix *x, bool square,
                                 struct blocks *xq) {
  struct matrix z = {0, 0, NULL};
  for (uint32_t l = 0; l < m->layers; ++l) {
    struct blocks a = quantise(l ? &z : x, square), w = quantise(&m->layer[l].w, true);
    free(z.x);
    z = add_bias(product(&a, &w), &m->layer[l].b, l + 1 < m->layers);
    blocks_free(&w);
    if (xq)
      xq[l] = a;
    else
      blocks_free(&a);
  }
  return z;
}

static uint32_t negative(uint32_t x) {
  return x ^ 0x80000000u;
}

/* One row: z becomes its gradient; returns the loss. */
static uint32_t softmax_row(uint32_t *z, uint32_t n, uint32_t label, uint32_t inverse) {
  uint32_t *e = malloc(n * sizeof *e), *t = malloc(n * sizeof *t), most = z[0];
  for (uint32_t j = 1; j < n; ++j)
    most = ct_fp_max(most, z[j]);
  for (uint32_t j = 0; j < n; ++j)
    e[j] = ct_fn_exp(ct_fp_add(z[j], negative(most)));
  const uint32_t s = sum(e, n, 1), r = ct_fn_recip(s), log = ct_fn_log(s);
  for (uint32_t j = 0; j < n; ++j) {
    const uint32_t y = j == label ? CT_FP_ONE : 0, d = ct_fp_add(z[j], negative(most));
    t[j] = ct_fp_mul(ct_fp_add(log, negative(d)), y);
    z[j] = ct_fp_mul(ct_fp_add(ct_fp_mul(e[j], r), negative(y)), inverse);
  }
  const uint32_t loss = sum(t, n, 1);
  free(e);
  free(t);
  return loss;
}

static void optimise(struct matrix *w, struct matrix *v, const uint32_t *g, const uint32_t *wd,
                     uint32_t mu, uint32_t lr) {
  for (size_t i = 0; i < (size_t)w->rows * w->cols; ++i) {
    const uint32_t t = wd ? ct_fp_add(ct_fp_mul(w->x[i], *wd), g[i]) : g[i];
    v->x[i] = ct_fp_add(ct_fp_mul(v->x[i], mu), t);
    w->x[i] = ct_fp_add(ct_fp_mul(v->x[i], negative(lr)), w->x[i]);
  }
}

static uint32_t bits(float x) {
  uint32_t u;
  memcpy(&u, &x, sizeof u);
  return u;
}

/* The gradient of the layer below: masked where its activation is not positive. */
static struct matrix gradient_below(const struct blocks *dz, const struct matrix *w,
                                    const struct blocks *x) {
  struct blocks wq = quantise(w, true), wt = transpose(&wq);
  struct matrix dx = product(dz, &wt);
  for (size_t i = 0; i < (size_t)dx.rows * dx.cols; ++i)
    if (x->q[i] <= 0) dx.x[i] = 0;
  blocks_free(&wq);
  blocks_free(&wt);
  return dx;
}

/* One step; returns the sum of the losses. */
static uint32_t train_step(struct model *m, const struct matrix *x, const uint32_t *labels,
                           const struct ct_rates *t) {
  struct blocks xq[16];
  struct matrix dz = run_forward(m, x, true, xq);
  uint32_t *loss = malloc(x->rows * sizeof *loss);
  const uint32_t wd = bits(t->weight_decay), mu = bits(t->momentum), lr = bits(t->lr);
  for (uint32_t i = 0; i < x->rows; ++i)
    loss[i] =
        softmax_row(dz.x + (size_t)i * dz.cols, dz.cols, labels[i], bits(1.0f / (float)x->rows));
  const uint32_t total = sum(loss, x->rows, 1);
  for (uint32_t l = m->layers; l-- > 0;) {
    struct layer *y = &m->layer[l];
    struct blocks dzq = quantise(&dz, true), dzt = transpose(&dzq), xt = transpose(&xq[l]);
    struct matrix dw = product(&dzt, &xt), below = {0, 0, NULL};
    uint32_t *db = malloc(dz.cols * sizeof *db);
    for (uint32_t j = 0; j < dz.cols; ++j)
      db[j] = sum(dz.x + j, dz.rows, dz.cols);
    if (l) below = gradient_below(&dzq, &y->w, &xq[l]);
    optimise(&y->w, &y->vw, dw.x, &wd, mu, lr);
    optimise(&y->b, &y->vb, db, NULL, mu, lr);
    blocks_free(&dzq);
    blocks_free(&dzt);
    blocks_free(&xt);
    blocks_free(&xq[l]);
    free(dw.x);
    free(db);
    free(dz.x);
    dz = below;
  }
  free(loss);
  return total;
}

/* ---- The device against it ---- */

static struct model model_from(ct_model *device, const struct ct_mlp *net) {
  struct model m = {.layers = net->layers};
  for (uint32_t l = 0; l < net->layers; ++l) {
    struct layer *y = &m.layer[l];
    const uint32_t in = net->width[l], out = net->width[l + 1];
    y->w = matrix_new(out, in);
    y->vw = matrix_new(out, in);
    y->b = matrix_new(1, out);
    y->vb = matrix_new(1, out);
    assert_int_equal(ct_model_get(device, l, (float *)y->w.x, (float *)y->b.x, (float *)y->vw.x,
                                  (float *)y->vb.x),
                     CT_OK);
  }
  return m;
}

static void model_free(struct model *m) {
  for (uint32_t l = 0; l < m->layers; ++l) {
    free(m->layer[l].w.x);
    free(m->layer[l].vw.x);
    free(m->layer[l].b.x);
    free(m->layer[l].vb.x);
  }
}

static void same_matrix(const char *what, uint32_t l, const struct matrix *got,
                        const struct matrix *want) {
  for (size_t i = 0; i < (size_t)got->rows * got->cols; ++i)
    if (got->x[i] != want->x[i])
      fail_msg("%s of layer %u, element %zu of %u x %u: %08x, should be %08x", what, l, i,
               got->rows, got->cols, got->x[i], want->x[i]);
}

static void same_model(ct_model *device, const struct ct_mlp *net, const struct model *want) {
  struct model got = model_from(device, net);
  for (uint32_t l = 0; l < net->layers; ++l) {
    same_matrix("biases", l, &got.layer[l].b, &want->layer[l].b);
    same_matrix("bias momentum", l, &got.layer[l].vb, &want->layer[l].vb);
    same_matrix("momentum", l, &got.layer[l].vw, &want->layer[l].vw);
    same_matrix("weights", l, &got.layer[l].w, &want->layer[l].w);
  }
  model_free(&got);
}

static float *random_rows(ct_rng *rng, size_t n) {
  float *x = malloc(n * sizeof *x);
  for (size_t i = 0; i < n; ++i)
    x[i] = ct_rng_below(rng, 3) ? (float)ct_rng_below(rng, 1000) * 1e-3f - 0.3f : 0;
  return x;
}

static ct_device *open_emulator(const char *uri) {
  char why[256];
  ct_device *dev;
  const struct ct_options options = {.why = why, .why_size = sizeof why};
  if (ct_open_with(uri, &options, &dev)) fail_msg("%s: %s", uri, why);
  return dev;
}

static void check_answers(ct_model *m, const struct ct_mlp *net, ct_rng *rng, uint32_t rows) {
  const uint32_t classes = net->width[net->layers];
  float *x = random_rows(rng, (size_t)rows * net->width[0]),
        *got = malloc((size_t)rows * classes * sizeof *got);
  struct model want = model_from(m, net);
  struct matrix in = matrix_from(x, rows, net->width[0]);
  struct matrix z = run_forward(&want, &in, false, NULL);
  assert_int_equal(ct_model_infer(m, NULL, x, rows, got), CT_OK);
  ct_assert_same("logits", got, z.x, (size_t)rows * classes * sizeof *got);
  model_free(&want);
  free(in.x);
  free(z.x);
  free(x);
  free(got);
}

static void train(ct_model *m, ct_device *dev, const struct ct_mlp *net, uint32_t batch, int steps,
                  ct_rng *rng) {
  const struct ct_training t = {.batch = batch};
  if (ct_model_training(m, &t)) fail_msg("%s", ct_last_error(dev));
  struct model want = model_from(m, net);
  uint32_t *labels = malloc(batch * sizeof *labels);
  for (int i = 0; i < steps; ++i) {
    /* Every step has rates of its own. */
    const struct ct_rates rates = {.lr = 0.01f * (float)(1 + ct_rng_below(rng, 20)),
                                   .momentum = 0.1f * (float)ct_rng_below(rng, 10),
                                   .weight_decay = 1e-4f * (float)ct_rng_below(rng, 20)};
    assert_int_equal(ct_model_set_rates(m, &rates), CT_OK);
    float *x = random_rows(rng, (size_t)batch * net->width[0]), loss;
    struct matrix in = matrix_from(x, batch, net->width[0]);
    for (uint32_t r = 0; r < batch; ++r)
      labels[r] = ct_rng_below(rng, net->width[net->layers]);
    uint32_t total = train_step(&want, &in, labels, &rates);
    if (ct_model_step(m, x, labels, &loss)) fail_msg("%s", ct_last_error(dev));
    float mean;
    memcpy(&mean, &total, sizeof mean);
    assert_int_equal(bits(loss), bits(mean / (float)batch));
    same_model(m, net, &want);
    free(x);
    free(in.x);
  }
  free(labels);
  model_free(&want);
}

/* Training, and then answers, if any. */
static void check_training(const char *uri, const struct ct_mlp *net, uint32_t batch, int steps,
                           uint32_t answers, ct_rng *rng) {
  ct_device *dev = open_emulator(uri);
  ct_model *m;
  assert_int_equal(ct_model_create(dev, net->width, net->layers, ct_rng_u64(rng), &m), CT_OK);
  train(m, dev, net, batch, steps, rng);
  if (answers) check_answers(m, net, rng, answers);
  ct_model_free(m);
  ct_close(dev);
}

static void check_steps(const char *uri, const struct ct_mlp *net, uint32_t batch, int steps,
                        ct_rng *rng) {
  check_training(uri, net, batch, steps, 1 + ct_rng_below(rng, 20), rng);
}

static void test_steps_equal_the_contract(void **state) {
  (void)state;
  ct_rng rng = ct_rng_make(1);
  const struct {
    uint32_t layers, width[6], batch;
  } cases[] = {{3, {64, 128, 64, 10}, 32},   {1, {5, 3}, 4},
               {2, {20, 40, 2}, 1},          {2, {100, 90, 33}, 50},
               {4, {17, 50, 50, 20, 7}, 70}, {2, {250, 272, 100}, 16},
               {3, {784, 130, 64, 10}, 64},  {2, {40, 30, 20}, 150}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    const struct ct_mlp net = make_net(cases[i].width, cases[i].layers);
    check_steps("emu:", &net, cases[i].batch, i == 0 ? 4 : 2, &rng);
  }
  const uint32_t digits[] = {64, 128, 64, 10};
  const struct ct_mlp net = make_net(digits, 3);
  check_steps("emu:spm=8192,cols=8,lanes=4", &net, 32, 2, &rng);
}

static void test_wide_answers_equal_the_contract(void **state) {
  (void)state;
  ct_rng rng = ct_rng_make(2);
  const uint32_t width[] = {784, 1300, 600, 10};
  const struct ct_mlp net = make_net(width, 3);
  ct_device *dev = open_emulator("emu:");
  ct_model *m;
  assert_int_equal(ct_model_create(dev, net.width, net.layers, 7, &m), CT_OK);
  check_answers(m, &net, &rng, 3);
  ct_model_free(m);
  ct_close(dev);
}

static void test_published_versions_stay(void **state) {
  (void)state;
  ct_rng rng = ct_rng_make(3);
  const uint32_t width[] = {64, 128, 64, 10};
  const struct ct_training t = {.batch = 8, .rates = {.lr = 0.1f}};
  ct_device *dev = open_emulator("emu:");
  ct_model *m;
  struct ct_model_info info;
  struct ct_weights_info of;
  struct ct_event r;
  ct_weights *version;
  uint64_t tag;
  float *x = random_rows(&rng, 8 * 64), before[80], after[80], now[80];
  uint32_t labels[8] = {0, 1, 2, 3, 4, 5, 6, 7};
  assert_int_equal(ct_model_create(dev, width, 3, 1, &m), CT_OK);
  assert_int_equal(ct_model_training(m, &t), CT_OK);
  assert_int_equal(ct_model_infer(m, NULL, x, 8, before), CT_OK);
  assert_int_equal(ct_model_publish_submit(m, &info, &version, &tag), CT_OK);
  assert_int_equal(ct_wait(dev, tag, &r, CT_FOREVER), CT_OK);
  assert_int_equal(r.error, CT_OK);
  assert_ptr_equal(r.user, &info);
  assert_int_equal(r.kind, CT_EVENT_PUBLISH);
  assert_int_equal(r.version, 1);
  assert_int_equal(ct_model_step(m, x, labels, NULL), CT_OK);
  assert_int_equal(ct_model_infer(m, version, x, 8, after), CT_OK);
  assert_int_equal(ct_model_infer(m, NULL, x, 8, now), CT_OK);
  assert_memory_equal(before, after, sizeof before);
  assert_memory_not_equal(before, now, sizeof before);
  assert_int_equal(ct_model_info(m, &info), CT_OK);
  assert_int_equal(info.steps, 1);
  assert_int_equal(ct_weights_info(version, &of), CT_OK);
  assert_true(of.version == 1 && of.error == CT_OK && of.steps == 0);
  assert_int_equal(ct_weights_info(ct_model_weights(m), &of), CT_OK);
  assert_true(of.version == 0 && of.error == CT_OK && of.steps == 1);
  free(x);
  ct_weights_free(version);
  ct_model_free(m);
  ct_close(dev);
}

/* Steps whose activations go through device memory. */
static void test_steps_of_any_size_equal_the_contract(void **state) {
  (void)state;
  ct_rng rng = ct_rng_make(6);
  const struct {
    const char *uri;
    uint32_t layers, width[6], batch;
  } cases[] = {{"emu:spm=2048", 3, {64, 128, 64, 10}, 70},
               {"emu:spm=2048", 1, {5, 3}, 1500},
               {"emu:", 2, {30, 20, 4}, 4096},
               {"emu:", 2, {4200, 20, 3}, 5},
               {"emu:", 2, {100, 90, 33}, 1100},
               {"emu:spm=4096", 2, {250, 272, 100}, 33},
               {"emu:spm=4096,cols=8,lanes=4", 4, {17, 50, 50, 20, 7}, 70}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    const struct ct_mlp net = make_net(cases[i].width, cases[i].layers);
    check_training(cases[i].uri, &net, cases[i].batch, 2, 0, &rng);
  }
}

/* Shapes of all kinds; none is refused. */
static void test_random_steps_equal_the_contract(void **state) {
  (void)state;
  ct_rng rng = ct_rng_make(7);
  for (int i = 0, draws = ct_tb_draws(25); i < draws; ++i) {
    struct ct_mlp net = {.layers = 1 + ct_rng_below(&rng, 4)};
    const uint32_t most = ct_rng_below(&rng, 4) ? 80 : 400;
    for (uint32_t l = 0; l <= net.layers; ++l)
      net.width[l] = 1 + ct_rng_below(&rng, most);
    uint32_t batch = 1 + ct_rng_below(&rng, 60);
    if (most == 80 && ct_rng_below(&rng, 4) == 0) batch += ct_rng_below(&rng, 1000);
    check_training(ct_rng_below(&rng, 2) ? "emu:spm=4096" : "emu:", &net, batch, 1, 0, &rng);
  }
}

/* A step on the simulated core leaves what it leaves on the emulator. */
static void test_streamed_steps_on_the_simulated_core(void **state) {
  (void)state;
  ct_rng rng = ct_rng_make(8);
  const uint32_t width[] = {40, 50, 20};
  const struct ct_mlp net = make_net(width, 2);
  check_training("sim:stall=20", &net, 2100, 1, 0, &rng);
}

static void test_what_does_not_fit_is_refused(void **state) {
  (void)state;
  ct_device *dev = open_emulator("emu:dram=8");
  const uint32_t width[] = {784, 512, 10};
  struct ct_training t = {.batch = 4096, .rates = {.lr = 0.1f}};
  ct_model *m;
  assert_int_equal(ct_model_create(dev, width, 2, 1, &m), CT_OK);
  assert_int_equal(ct_model_training(m, &t), CT_ERR_NO_SPACE);
  assert_non_null(strstr(ct_last_error(dev), "memory"));
  t.batch = 5000;
  assert_int_equal(ct_model_training(m, &t), CT_ERR_NO_SPACE);
  assert_non_null(strstr(ct_last_error(dev), "5000 rows"));
  t.batch = 500; /* nothing that was refused has kept memory */
  for (int i = 0; i < 20; ++i) {
    t.batch += 1;
    if (ct_model_training(m, &t)) fail_msg("%s", ct_last_error(dev));
  }
  float x[784] = {0}, logits[10];
  assert_int_equal(ct_model_infer(m, NULL, x, 1, logits), CT_OK);
  ct_model_free(m);
  const uint32_t none[] = {64, 0, 10};
  assert_int_equal(ct_model_create(dev, none, 2, 1, &m), CT_ERR_ARG);
  assert_null(m);
  ct_close(dev);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_infer_programs_are_race_free),
                                     cmocka_unit_test(test_batch_programs_are_race_free),
                                     cmocka_unit_test(test_random_programs_are_race_free),
                                     cmocka_unit_test(test_no_shape_is_refused),
                                     cmocka_unit_test(test_training_programs_are_race_free),
                                     cmocka_unit_test(test_training_in_small_windows),
                                     cmocka_unit_test(test_a_large_step_is_two_jobs),
                                     cmocka_unit_test(test_copies_are_race_free),
                                     cmocka_unit_test(test_steps_equal_the_contract),
                                     cmocka_unit_test(test_wide_answers_equal_the_contract),
                                     cmocka_unit_test(test_published_versions_stay),
                                     cmocka_unit_test(test_steps_of_any_size_equal_the_contract),
                                     cmocka_unit_test(test_random_steps_equal_the_contract),
                                     cmocka_unit_test(test_streamed_steps_on_the_simulated_core),
                                     cmocka_unit_test(test_what_does_not_fit_is_refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
