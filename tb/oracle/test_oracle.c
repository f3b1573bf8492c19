/* SPDX-License-Identifier: Apache-2.0
 *
 * One training step of random perceptrons, on the emulator and on the simulated RTL, against the
 * double-precision oracle; and the same with programs made wrong on purpose, which the oracle must
 * reject: a sign flipped anywhere, 1/batch left out, a mask or a transpose forgotten.
 *
 * The test lays tensors out and reads them back by itself (docs/programming.md), so that the
 * oracle's verdict does not hang on the library's packing either.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coltrain/coltrain.h"
#include "ct_cmd.h"
#include "ct_oracle.h"
#include "ct_prog.h"
#include "ct_tb.h"

enum { UNIT = 16, RECORD = 17 * UNIT, MAX_L = ORACLE_MAX_LAYERS };

/* ---- A case: a network, a batch, and where they start from ---- */

struct problem {
  struct ct_mlp net;
  uint32_t batch;
  float lr, mu, wd;
  unsigned narrow; /* what the step quantises has mantissas of 8 - narrow bits */
  double *x, *y;   /* exactly what the device holds */
  uint8_t *x_bytes, *y_bytes, *image, *state;
  double *master[MAX_L], *compute[MAX_L], *bias[MAX_L], *vw[MAX_L], *vb[MAX_L];
};

static double uniform(ct_rng *rng) {
  return (double)ct_rng_below(rng, 1u << 24) / (1 << 23) - 1.0;
}

static double *doubles(size_t n) {
  double *p = calloc(n ? n : 1, sizeof *p);
  assert_non_null(p);
  return p;
}

/* Packs m (rows x cols) as square HBFP8 tiles and replaces its values by what was stored. */
static uint8_t *pack_square(double *m, uint32_t rows, uint32_t cols) {
  uint8_t *out = calloc((size_t)ct_tiles(rows) * ct_tiles(cols), RECORD);
  assert_non_null(out);
  for (uint32_t r0 = 0; r0 < rows; r0 += 16)
    for (uint32_t c0 = 0; c0 < cols; c0 += 16) {
      uint8_t *rec = out + ((size_t)(r0 / 16) * ct_tiles(cols) + c0 / 16) * RECORD;
      double peak = 0;
      for (uint32_t r = r0; r < r0 + 16 && r < rows; r++)
        for (uint32_t c = c0; c < c0 + 16 && c < cols; c++)
          peak = fmax(peak, fabs(m[(size_t)r * cols + c]));
      if (peak == 0) continue;
      int e;
      frexp(peak, &e);
      memset(rec, e - 1 + 127, 16);
      for (uint32_t r = r0; r < r0 + 16 && r < rows; r++)
        for (uint32_t c = c0; c < c0 + 16 && c < cols; c++) {
          double *v = &m[(size_t)r * cols + c], q = nearbyint(ldexp(*v, 7 - e));
          q = fmax(-127, fmin(127, q));
          rec[16 + 16 * (r - r0) + (c - c0)] = (uint8_t)(int8_t)q;
          *v = ldexp(q, e - 7);
        }
    }
  return out;
}

static void put_float(uint8_t *at, double v) {
  float f = (float)v;
  memcpy(at, &f, 4);
}

static double get_float(const uint8_t *at) {
  float f;
  memcpy(&f, at, 4);
  return f;
}

/* Where the FP32 pair of weight (n, k) of layer l lies in the state: momentum, master 1024 on. */
static size_t state_at(const struct ct_mlp *net, uint32_t l, uint32_t n, uint32_t k) {
  size_t tile = ct_mlp_tile(net, l) + (size_t)(n / 16) * ct_mlp_in(net, l) + k / 16;
  return tile * 2048 + (n % 16) * 64 + (k % 16) * 4;
}

static size_t bias_at(const struct ct_mlp *net, uint32_t l, uint32_t n) {
  return (size_t)ct_mlp_bias_tile(net, l) * 64 + n * 4u;
}

static void make_layer(struct problem *p, uint32_t l, ct_rng *rng, bool moving) {
  uint32_t in = p->net.width[l], out = p->net.width[l + 1];
  size_t n = (size_t)in * out;
  p->master[l] = doubles(n);
  p->compute[l] = doubles(n);
  p->vw[l] = doubles(n);
  p->bias[l] = doubles(out);
  p->vb[l] = doubles(out);
  double scale = sqrt(3.0 / in);
  for (size_t i = 0; i < n; i++) {
    p->master[l][i] = p->compute[l][i] = (float)(scale * uniform(rng));
    p->vw[l][i] = moving ? (float)(0.1 * uniform(rng)) : 0;
    size_t at = state_at(&p->net, l, (uint32_t)(i / in), (uint32_t)(i % in));
    put_float(p->state + at, p->vw[l][i]);
    put_float(p->state + at + 1024, p->master[l][i]);
  }
  uint8_t *packed = pack_square(p->compute[l], out, in);
  memcpy(p->image + (size_t)ct_mlp_tile(&p->net, l) * RECORD, packed,
         (size_t)ct_mlp_in(&p->net, l) * ct_mlp_out(&p->net, l) * RECORD);
  free(packed);
  for (uint32_t i = 0; i < out; i++) {
    p->bias[l][i] = (float)(0.3 * uniform(rng));
    p->vb[l][i] = moving ? (float)(0.1 * uniform(rng)) : 0;
    put_float(p->image + (size_t)ct_mlp_bias_at(&p->net) * UNIT + bias_at(&p->net, l, i),
              p->bias[l][i]);
    put_float(p->state + (size_t)ct_mlp_bias_momentum_at(&p->net) * UNIT + bias_at(&p->net, l, i),
              p->vb[l][i]);
  }
}

static void make_problem(struct problem *p, ct_rng *rng, uint32_t layers, const uint32_t *widths,
                         uint32_t batch, bool moving) {
  memset(p, 0, sizeof *p);
  p->net.layers = layers;
  for (uint32_t l = 0; l <= layers; l++)
    p->net.width[l] = widths[l];
  p->batch = batch;
  p->lr = 0.05f;
  p->mu = 0.9f;
  p->wd = 0.001f;
  uint32_t in = p->net.width[0], out = p->net.width[layers];
  p->x = doubles((size_t)batch * in);
  p->y = doubles((size_t)batch * out);
  for (size_t i = 0; i < (size_t)batch * in; i++)
    p->x[i] = uniform(rng);
  for (uint32_t r = 0; r < batch; r++)
    p->y[(size_t)r * out + ct_rng_below(rng, out)] = 1;
  p->x_bytes = pack_square(p->x, batch, in);
  p->y_bytes = pack_square(p->y, batch, out);
  p->image = calloc(ct_mlp_image_units(&p->net), UNIT);
  p->state = calloc(ct_mlp_state_units(&p->net), UNIT);
  assert_true(p->image && p->state);
  for (uint32_t l = 0; l < layers; l++)
    make_layer(p, l, rng, moving);
}

static void free_problem(struct problem *p) {
  for (uint32_t l = 0; l < p->net.layers; l++) {
    free(p->master[l]);
    free(p->compute[l]);
    free(p->bias[l]);
    free(p->vw[l]);
    free(p->vb[l]);
  }
  free(p->x);
  free(p->y);
  free(p->x_bytes);
  free(p->y_bytes);
  free(p->image);
  free(p->state);
}

/* ---- The device's answer ---- */

struct answer {
  double loss;
  uint8_t *image, *state;
};

static uint64_t upload(ct_device *dev, const void *data, size_t size) {
  uint64_t addr;
  assert_int_equal(ct_mem_alloc(dev, size, &addr), CT_OK);
  assert_int_equal(ct_mem_write(dev, addr, data, size), CT_OK);
  return addr;
}

static uint32_t float_bits(float f) {
  uint32_t u;
  memcpy(&u, &f, 4);
  return u;
}

/* Runs the programs; false if the device ended one with an error (as a mutant may). */
static bool run_jobs(ct_device *dev, const struct ct_code *code, int count, const uint32_t *args) {
  bool good = true;
  for (int i = 0; i < count && good; i++) {
    struct ct_job job = {.watchdog = 5000000};
    struct ct_event result;
    ct_program *program;
    uint64_t tag;
    assert_int_equal(ct_program_load(dev, code[i].cmd, code[i].count, &program), CT_OK);
    job.program = program;
    memcpy(job.args, args, CT_TRAIN_STREAMED_ARGS * sizeof *args);
    assert_int_equal(ct_submit(dev, CT_TRAINING, &job, &tag), CT_OK);
    assert_int_equal(ct_wait(dev, tag, &result, CT_FOREVER), CT_OK);
    good = result.error == CT_OK;
    ct_program_free(program);
  }
  return good;
}

struct tweak {
  double inv_scale, lr_scale;
};

static bool run_device(ct_device *dev, const struct problem *p, const struct ct_code *code,
                       int count, struct tweak t, struct answer *a) {
  size_t image = (size_t)ct_mlp_image_units(&p->net) * UNIT,
         state = (size_t)ct_mlp_state_units(&p->net) * UNIT;
  size_t rows = ct_tiles(p->batch);
  uint8_t zero[UNIT] = {0};
  uint64_t at[5] = {upload(dev, p->x_bytes, rows * ct_tiles(p->net.width[0]) * RECORD),
                    upload(dev, p->y_bytes, rows * ct_tiles(p->net.width[p->net.layers]) * RECORD),
                    upload(dev, p->image, image), upload(dev, p->state, state),
                    upload(dev, zero, UNIT)};
  uint32_t args[CT_TRAIN_STREAMED_ARGS] = {0};
  for (int i = 0; i < 5; i++)
    args[i] = (uint32_t)(at[i] / UNIT);
  const struct ct_train shape = {.net = &p->net, .batch = p->batch};
  uint64_t work = 0;
  assert_int_equal(ct_mem_alloc(dev, ct_train_streamed_units(&shape) * UNIT, &work), CT_OK);
  args[CT_TRAIN_WORK - 1] = (uint32_t)(work / UNIT);
  args[CT_TRAIN_INV - 1] = float_bits((float)(t.inv_scale / p->batch));
  args[CT_TRAIN_MU - 1] = float_bits(p->mu);
  args[CT_TRAIN_NEG_LR - 1] = float_bits((float)(-t.lr_scale * p->lr));
  args[CT_TRAIN_WD - 1] = float_bits(p->wd);
  bool good = run_jobs(dev, code, count, args);
  a->image = malloc(image);
  a->state = malloc(state);
  assert_true(a->image && a->state);
  assert_int_equal(ct_mem_read(dev, at[2], a->image, image), CT_OK);
  assert_int_equal(ct_mem_read(dev, at[3], a->state, state), CT_OK);
  assert_int_equal(ct_mem_read(dev, at[4], zero, UNIT), CT_OK);
  a->loss = get_float(zero);
  for (int i = 0; i < 5; i++)
    assert_int_equal(ct_mem_free(dev, at[i]), CT_OK);
  assert_int_equal(ct_mem_free(dev, work), CT_OK);
  return good;
}

/* ---- The verdict ---- */

static void want(struct oracle_step *s, const struct problem *p) {
  memset(s, 0, sizeof *s);
  s->layers = (int)p->net.layers;
  s->batch = (int)p->batch;
  for (uint32_t l = 0; l <= p->net.layers; l++)
    s->width[l] = (int)p->net.width[l];
  s->x = p->x;
  s->y = p->y;
  for (uint32_t l = 0; l < p->net.layers; l++) {
    s->compute[l] = p->compute[l];
    s->master[l] = p->master[l];
    s->bias[l] = p->bias[l];
    s->momentum_w[l] = p->vw[l];
    s->momentum_b[l] = p->vb[l];
  }
  s->lr = p->lr;
  s->mu = p->mu;
  s->weight_decay = p->wd;
  s->mantissa = 8 - (int)p->narrow;
}

static double worst_of(double worst, const struct oracle_mat *m, const double *got,
                       const char *what, uint32_t l) {
  size_t where;
  double e = oracle_excess(m, got, &where);
  if (e > 1 && worst <= 1 && getenv("CT_VERBOSE"))
    print_message("  layer %u %s[%zu]: %.9g, oracle %.9g +- %.3g\n", (unsigned)l, what, where,
                  got[where], m->value[where], m->radius[where]);
  return fmax(worst, e);
}

/* The compute copy must be the new master, half a step (a whole one at the clip) away at most, with
 * zeros below its mantissas. */
static double check_compute(const struct problem *p, const struct answer *a, uint32_t l) {
  double worst = 0;
  uint32_t in = p->net.width[l], out = p->net.width[l + 1];
  for (uint32_t n = 0; n < out; n++)
    for (uint32_t k = 0; k < in; k++) {
      size_t tile = ct_mlp_tile(&p->net, l) + (size_t)(n / 16) * ct_mlp_in(&p->net, l) + k / 16;
      const uint8_t *rec = a->image + tile * RECORD;
      int code = (int8_t)rec[16 + 16 * (n % 16) + k % 16], scale = 1 << p->narrow;
      double step = ldexp(scale, rec[n % 16] - 133), q = code / scale;
      double master = get_float(a->state + state_at(&p->net, l, n, k) + 1024);
      if (code % scale) return INFINITY;
      worst =
          fmax(worst, fabs(q * step - master) / (fabs(q) == 128 / scale - 1 ? step : 0.5 * step));
    }
  return worst;
}

/* The largest excess over all that the step left; at most 1 is right. */
static double judge(const struct problem *p, const struct oracle_result *o,
                    const struct answer *a) {
  double worst = fabs(a->loss - o->loss) / o->loss_radius;
  if (isnan(worst)) worst = INFINITY;
  for (uint32_t l = 0; l < p->net.layers; l++) {
    uint32_t in = p->net.width[l], out = p->net.width[l + 1];
    double *w = doubles((size_t)in * out), *v = doubles((size_t)in * out), *b = doubles(out),
           *vb = doubles(out);
    for (size_t i = 0; i < (size_t)in * out; i++) {
      size_t at = state_at(&p->net, l, (uint32_t)(i / in), (uint32_t)(i % in));
      v[i] = get_float(a->state + at);
      w[i] = get_float(a->state + at + 1024);
    }
    for (uint32_t i = 0; i < out; i++) {
      b[i] = get_float(a->image + (size_t)ct_mlp_bias_at(&p->net) * UNIT + bias_at(&p->net, l, i));
      vb[i] = get_float(a->state + (size_t)ct_mlp_bias_momentum_at(&p->net) * UNIT +
                        bias_at(&p->net, l, i));
    }
    worst = worst_of(worst, &o->new_vw[l], v, "weight momentum", l);
    worst = worst_of(worst, &o->new_w[l], w, "weight", l);
    worst = worst_of(worst, &o->new_vb[l], vb, "bias momentum", l);
    worst = worst_of(worst, &o->new_b[l], b, "bias", l);
    if (check_compute(p, a, l) > 1) worst = INFINITY;
    free(w);
    free(v);
    free(b);
    free(vb);
  }
  return worst;
}

static double try_once(ct_device *dev, const struct problem *p, const struct ct_code *code,
                       int count, struct tweak t) {
  struct oracle_step step;
  struct oracle_result oracle;
  struct answer a;
  want(&step, p);
  assert_int_equal(oracle_run(&step, &oracle), 0);
  bool good = run_device(dev, p, code, count, t, &a);
  double worst = good ? judge(p, &oracle, &a) : INFINITY;
  oracle_free(&oracle);
  free(a.image);
  free(a.state);
  return worst;
}

static struct ct_codes programs_for(ct_device *dev, const struct problem *p) {
  struct ct_info info;
  char text[256] = "";
  assert_int_equal(ct_info(dev, &info), CT_OK);
  struct ct_train shape = {.net = &p->net, .batch = p->batch, .spm_words = info.spm_words / 2};
  struct ct_codes codes;
  if (ct_prog_train(&shape, &codes, &(struct ct_why){text, sizeof text}))
    fail_msg("no program: %s", text);
  return codes;
}

/* ---- Tests ---- */

/* All that the programs quantise gets mantissas of 8 - narrow bits. */
static void make_narrow(struct ct_codes *codes, unsigned narrow) {
  for (size_t i = 0; i < codes->count; i++)
    for (size_t c = 0; c < codes->job[i].count; c++) {
      struct ct_cmd *cmd = &codes->job[i].cmd[c];
      if (CT_GET(cmd, ALL_OP) == CT_OP_VS) CT_PUT(cmd, VS_NARROW, narrow);
    }
}

/* Steps of random nets: layers between least and widest, batches up to largest. narrow: mantissas
 * of every width in turn, right by the oracle of that width and, three bits apart or more, wrong by
 * the one of 8 bits. */
struct steps {
  const char *uri;
  int cases;
  uint32_t least, widest, largest;
  bool narrow;
};

static double step_of(ct_device *dev, const struct steps *s, int i, ct_rng *rng) {
  struct problem p;
  uint32_t widths[4];
  for (int l = 0; l < 4; l++)
    widths[l] = s->least + ct_rng_below(rng, s->widest - s->least + 1);
  make_problem(&p, rng, 1 + ct_rng_below(rng, 3), widths, 1 + ct_rng_below(rng, s->largest), i % 2);
  struct ct_codes codes = programs_for(dev, &p);
  if (s->narrow) p.narrow = (unsigned)i % 7;
  make_narrow(&codes, p.narrow);
  const double e = try_once(dev, &p, codes.job, (int)codes.count, (struct tweak){1, 1});
  if (!(e <= 1))
    fail_msg("%s case %d, %u bits: %.3f radii from the oracle (CT_VERBOSE=1 says where)", s->uri, i,
             8 - p.narrow, e);
  if (p.narrow >= 3) {
    p.narrow = 0;
    assert_true(try_once(dev, &p, codes.job, (int)codes.count, (struct tweak){1, 1}) > 1);
  }
  ct_codes_free(&codes);
  free_problem(&p);
  return e;
}

static void random_steps(const struct steps *s) {
  ct_rng rng = ct_rng_make(s->narrow ? 5 : 1);
  ct_device *dev;
  double worst = 0;
  assert_int_equal(ct_open(s->uri, &dev), CT_OK);
  for (int i = 0; i < s->cases; i++)
    worst = fmax(worst, step_of(dev, s, i, &rng));
  print_message("%s%s: %d steps, at most %.3f of the radius away\n", s->uri,
                s->narrow ? ", narrow" : "", s->cases, worst);
  ct_close(dev);
}

static void test_emulator(void **state) {
  (void)state;
  random_steps(&(struct steps){"emu:", 60, 2, 70, 40, false});
}

static void test_simulator(void **state) {
  (void)state;
  random_steps(&(struct steps){"sim:stall=25,seed=3", 6, 2, 50, 40, false});
}

static void test_small_core(void **state) {
  (void)state;
  random_steps(&(struct steps){"sim:core=16x8,stall=10,seed=4", 3, 2, 40, 33, false});
}

static void test_narrow(void **state) {
  (void)state;
  random_steps(&(struct steps){"emu:", 42, 8, 70, 40, true});
  random_steps(&(struct steps){"sim:stall=10,seed=6", 7, 8, 20, 40, true});
}

/* Steps whose activations go through device memory, in windows of all sizes. */
static void test_streamed(void **state) {
  (void)state;
  ct_rng rng = ct_rng_make(3);
  ct_device *dev;
  double worst = 0;
  assert_int_equal(ct_open("emu:", &dev), CT_OK);
  for (int i = 0; i < 40; i++) {
    struct problem p;
    struct ct_codes codes;
    uint32_t widths[4];
    char text[256] = "";
    for (int l = 0; l < 4; l++)
      widths[l] = 2 + ct_rng_below(&rng, 69);
    make_problem(&p, &rng, 1 + ct_rng_below(&rng, 3), widths, 1 + ct_rng_below(&rng, 70), i % 2);
    const struct ct_train shape = {
        .net = &p.net, .batch = p.batch, .spm_words = 400 + ct_rng_below(&rng, 4000)};
    if (ct_prog_train_streamed(&shape, &codes, &(struct ct_why){text, sizeof text}))
      fail_msg("no program: %s", text);
    double e = try_once(dev, &p, codes.job, (int)codes.count, (struct tweak){1, 1});
    worst = fmax(worst, e);
    if (!(e <= 1)) fail_msg("case %d: %.3f radii from the oracle (CT_VERBOSE=1 says where)", i, e);
    ct_codes_free(&codes);
    free_problem(&p);
  }
  print_message("streamed: 40 steps, at most %.3f of the radius away\n", worst);
  ct_close(dev);
}

/* One change to a program: where field of a command op is from, it becomes to. Signs are tried
 * place by place, the rest everywhere at once (a place may be as small as a corner of a tile). The
 * first harmless places change no result: softmax and its loss stay the same whatever is subtracted
 * from a row, so the sign of the row's maximum is free as long as nothing overflows. */
struct mutation {
  const char *what;
  uint32_t op;
  enum ct_field_id field;
  int32_t from, to;
  bool each;
  int harmless;
};

static const struct mutation mutations[] = {
    {"sign of an addend", CT_OP_VA, CT_F_VA_NEG_C, 1, 0, true, 1},
    {"ReLU left out", CT_OP_VA, CT_F_VA_RELU, 1, 0, false, 0},
    {"mask left out", CT_OP_VA, CT_F_VA_FN, 3, 0, false, 0},
    {"weights not transposed", CT_OP_MM, CT_F_MM_B_TRANS, 1, 0, false, 0},
    {"gradient not transposed", CT_OP_MM, CT_F_MM_A_TRANS, 1, 0, false, 0},
    {"exponential left out", CT_OP_VA, CT_F_VA_FUNC, 8, 0, false, 0},
    {"reciprocal left out", CT_OP_VA, CT_F_VA_FUNC, 9, 0, false, 0},
    {"logarithm left out", CT_OP_VA, CT_F_VA_FUNC, 10, 0, false, 0},
};

/* Applies the mutation to its nth place, or to all. Returns to how many. */
static int mutate(struct ct_code *code, int count, const struct mutation *m, int nth) {
  int seen = 0, done = 0;
  for (int i = 0; i < count; i++)
    for (size_t c = 0; c < code[i].count; c++) {
      struct ct_cmd *cmd = &code[i].cmd[c];
      if (CT_GET(cmd, ALL_OP) != m->op || (int32_t)ct_cmd_get(cmd, m->field) != m->from) continue;
      if (!m->each || seen++ == nth) done += ct_cmd_set(cmd, m->field, m->to);
    }
  return done;
}

static void expect_rejected(ct_device *dev, const struct problem *p, const struct mutation *m) {
  int places = 0, done;
  do {
    struct ct_codes codes = programs_for(dev, p);
    int count = (int)codes.count;
    done = mutate(codes.job, count, m, places);
    double e = done ? try_once(dev, p, codes.job, count, (struct tweak){1, 1}) : INFINITY;
    ct_codes_free(&codes);
    if (e <= 1 && places >= m->harmless)
      fail_msg("%s, place %d: the oracle did not notice (%.3f)", m->what, places, e);
    places += done;
  } while (done && m->each);
  print_message("rejected: %s (%d places)\n", m->what, places - m->harmless);
  assert_true(places > m->harmless);
}

static void test_mutants(void **state) {
  (void)state;
  ct_rng rng = ct_rng_make(2);
  ct_device *dev;
  struct problem p;
  assert_int_equal(ct_open("emu:", &dev), CT_OK);
  const uint32_t widths[] = {40, 24, 10};
  make_problem(&p, &rng, 2, widths, 13, false); /* one row tile: each operation has one place */
  struct ct_codes codes = programs_for(dev, &p);
  const struct ct_code *code = codes.job;
  const int count = (int)codes.count;
  assert_true(try_once(dev, &p, code, count, (struct tweak){1, 1}) <= 1);
  assert_true(try_once(dev, &p, code, count, (struct tweak){p.batch, 1}) > 1); /* 1/batch missing */
  assert_true(try_once(dev, &p, code, count, (struct tweak){-1, 1}) > 1);      /* gradient's sign */
  assert_true(try_once(dev, &p, code, count, (struct tweak){1, -1}) > 1);      /* step's sign */
  ct_codes_free(&codes);
  for (size_t i = 0; i < sizeof mutations / sizeof *mutations; i++)
    expect_rejected(dev, &p, &mutations[i]);
  free_problem(&p);
  ct_close(dev);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_emulator),   cmocka_unit_test(test_streamed),
      cmocka_unit_test(test_mutants),    cmocka_unit_test(test_simulator),
      cmocka_unit_test(test_small_core), cmocka_unit_test(test_narrow),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
