/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Forward passes of all shapes: 1..16 layers, widths of 1..65,536, rows 1..16 and batches, windows
 * from small to large. Nothing is skipped, and nothing refused by the builder that models ask;
 * where the one that keeps activations in the window refuses one, the sentence names one that is
 * enough. All programs are race-free, and compute to the byte what plain C over the numeric
 * contract does.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coltrain/coltrain.h"
#include "ct_infer_spilled.h"
#include "ct_infer_wide.h"
#include "ct_num.h"
#include "ct_prog.h"
#include "ct_racecheck.h"
#include "harness/ct_tb.h"

enum { UNIT = 16, ROWS = CT_INFER_ROWS_MAX, MOST_TILES = 6000 };

typedef int maker(const struct ct_infer *shape, struct ct_code *code, const struct ct_why *why);

struct shape {
  struct ct_mlp net;
  uint32_t rows, window; /* rows: CT_INFER_BATCH too */
  maker *make;
  uint64_t work;   /* units of workspace that the program takes */
  bool holds;      /* a program before left its weights in the scratchpad */
  uint32_t planes; /* of answers: struct ct_infer */
};

/* The least window of any network. */
enum { WORDS_OF_ROW = 16, WORDS_OF_TILE = 84 };

/* ---- Drawing ------------------------------------------------------------------------------- */

static uint32_t draw_log(ct_rng *rng, uint32_t most) {
  uint32_t limit = 1;
  while (limit < most && ct_rng_below(rng, 6))
    limit *= 4;
  return 1 + ct_rng_below(rng, ct_min_u32(limit, most));
}

/* As many weights as a test has time for. */
static struct ct_mlp draw_net(ct_rng *rng) {
  struct ct_mlp net = {.layers = 1 + ct_rng_below(rng, ct_rng_below(rng, 2) ? 4 : CT_MLP_LAYERS)};
  uint32_t tiles = MOST_TILES;
  net.width[0] = draw_log(rng, CT_MLP_WIDEST);
  for (uint32_t l = 0; l < net.layers; ++l) {
    const uint32_t most = 1 + tiles / 2 / ct_tiles(net.width[l]);
    net.width[l + 1] = draw_log(rng, ct_min_u32(16 * most, CT_MLP_WIDEST));
    const uint32_t used = ct_mlp_in(&net, l) * ct_mlp_out(&net, l);
    tiles -= ct_min_u32(used, tiles);
  }
  return net;
}

static uint32_t least_window(uint32_t rows) {
  const uint32_t words = (rows ? rows : ROWS) * WORDS_OF_ROW;
  return words < WORDS_OF_TILE ? WORDS_OF_TILE : words;
}

static struct shape draw_shape(ct_rng *rng) {
  static maker *const makers[] = {ct_prog_infer, ct_infer_wide, ct_infer_spilled};
  struct shape s = {.net = draw_net(rng),
                    .rows = 1 + ct_rng_below(rng, ROWS),
                    .make = makers[ct_rng_below(rng, 3)]};
  s.window = least_window(s.rows) + draw_log(rng, 32768) - 1;
  return s;
}

static void print_shape(const struct shape *s) {
  print_message("%s, %u rows, window %u:",
                s->make == ct_infer_wide      ? "wide"
                : s->make == ct_infer_spilled ? "spilled"
                                              : "any",
                s->rows, s->window);
  for (uint32_t l = 0; l <= s->net.layers; ++l)
    print_message(" %u", s->net.width[l]);
  print_message("\n");
}

/* A refusal of ct_infer_wide() says how large a window it takes: for what has to lie there, and in
 * a window as large as that perhaps once more, for few enough commands. The others refuse nothing.
 */
static struct ct_code make(struct shape *s) {
  static const char phrase[] = "a window of ";
  char why[256] = "";
  uint32_t used = 0;
  struct ct_code code = {NULL, 0};
  for (int refusals = 0;; ++refusals) {
    const struct ct_infer shape = {.net = &s->net,
                                   .rows = s->rows,
                                   .spm_words = s->window,
                                   .used = &used,
                                   .planes = s->planes,
                                   .work = &s->work};
    const int err = s->make(&shape, &code, &(struct ct_why){why, sizeof why});
    if (!err) break;
    const char *at = strstr(why, phrase);
    const uint32_t words = at ? (uint32_t)strtoul(at + sizeof phrase - 1, NULL, 10) : 0;
    if (err != CT_ERR_NO_SPACE || refusals == 2 || words <= s->window || s->make != ct_infer_wide) {
      print_shape(s);
      fail_msg("%s", why);
    }
    s->window = words;
  }
  assert_in_range(used, 1, s->window);
  return code;
}

/* ---- Where things are ---------------------------------------------------------------------- */

struct where {
  uint32_t row_units, answer, image, rows, out, work, all; /* units */
};

static struct where where_of(const struct ct_mlp *net, uint64_t work) {
  struct where w = {.row_units = (uint32_t)(ct_pack_row_size(net->width[0]) / UNIT),
                    .answer = (net->width[net->layers] + 3) / 4};
  w.rows = ct_mlp_image_units(net);
  w.out = w.rows + ROWS * w.row_units;
  w.work = w.out + ROWS * w.answer;
  w.all = w.work + (uint32_t)work;
  return w;
}

/* ---- Races --------------------------------------------------------------------------------- */

static void check_races(const struct shape *s, const struct ct_code *code, unsigned depth,
                        uint32_t batch) {
  char why[256];
  struct where w = where_of(&s->net, s->work);
  const uint32_t tiles = ct_mlp_out(&s->net, s->net.layers - 1);
  w.work += s->planes * tiles;
  w.all += s->planes * tiles;
  struct ct_racecheck check = {.cmds = code->cmd,
                               .count = code->count,
                               .args = {w.image, w.out},
                               .spm_words = s->window,
                               .dram_units = w.all,
                               .depth = depth,
                               .eager = (int)(depth + s->window) % 7,
                               .batch = batch,
                               .spm_holds_data = s->holds};
  for (uint32_t r = 0; r < ROWS; ++r) {
    check.input[r] = w.rows + 5 * r % ROWS * w.row_units;
    check.output[r] = w.out + 7 * r % ROWS * w.answer;
    if (!batch && r < s->rows) check.args[CT_INFER_ROW - 1 + r] = w.rows + r * w.row_units;
  }
  check.args[ct_infer_work(s->rows) - 1] = w.work;
  struct ct_racecheck_stats stats;
  if (!ct_racecheck(&check, &stats, why, sizeof why)) {
    print_shape(s);
    fail_msg("depth %u, batch of %u: %s", depth, batch, why);
  }
  const uint64_t row = s->planes ? tiles * CT_F32_ROW_UNITS : w.answer;
  const uint64_t answers = (batch ? batch : s->rows) * row;
  assert_in_range(stats.st_beats, answers, s->work ? UINT64_MAX : answers);
}

/* ---- The contract in plain C --------------------------------------------------------------- */

/* Rows of blocks: 16 mantissas and an exponent. */
struct blocks {
  uint32_t tiles;
  int8_t *q;
  uint8_t *e;
};

static struct blocks blocks_new(uint32_t rows, uint32_t tiles) {
  return (struct blocks){tiles, calloc((size_t)rows * tiles, 16), calloc((size_t)rows * tiles, 1)};
}

static void blocks_free(struct blocks *b) {
  free(b->q);
  free(b->e);
}

/* A vector of FP32 as row r. */
static void quantise(struct blocks *b, uint32_t r, const uint32_t *x, uint32_t n) {
  for (uint32_t t = 0; t < b->tiles; ++t) {
    const size_t at = (size_t)r * b->tiles + t;
    const uint32_t in = ct_min_u32(16, n - 16 * t);
    b->e[at] = ct_hbfp8_group_exp(x + 16 * t, in);
    for (uint32_t i = 0; i < in; ++i)
      b->q[at * 16 + i] = ct_hbfp8_quant(x[16 * t + i], b->e[at]);
  }
}

/* Row r of the inputs, from its records. */
static void unpack_row(struct blocks *b, uint32_t r, const uint8_t *record) {
  for (uint32_t t = 0; t < b->tiles; ++t) {
    const size_t at = (size_t)r * b->tiles + t;
    const uint8_t *head = record + (size_t)(t / 16) * CT_RECORD_UNITS * UNIT;
    b->e[at] = head[t % 16];
    memcpy(b->q + at * 16, head + (size_t)(1 + t % 16) * UNIT, 16);
  }
}

static uint32_t dot(const struct blocks *a, uint32_t r, const uint8_t *tiles, uint32_t j) {
  uint32_t acc = 0;
  for (uint32_t t = 0; t < a->tiles; ++t) {
    const size_t at = (size_t)r * a->tiles + t;
    const uint8_t *tile = tiles + (size_t)t * CT_RECORD_UNITS * UNIT;
    const int8_t *w = (const int8_t *)tile + (size_t)(1 + j) * UNIT;
    int32_t s = 0;
    for (int i = 0; i < 16; ++i)
      s += a->q[at * 16 + (size_t)i] * w[i];
    acc = ct_fp_add(acc, ct_fp_term(s, a->e[at], tile[j]));
  }
  return acc;
}

static void forward(const struct ct_mlp *net, const uint8_t *image, uint32_t rows,
                    const uint8_t *inputs, size_t row_bytes, uint32_t *out, size_t out_pitch) {
  struct blocks a = blocks_new(rows, ct_mlp_in(net, 0));
  for (uint32_t r = 0; r < rows; ++r)
    unpack_row(&a, r, inputs + r * row_bytes);
  for (uint32_t l = 0; l < net->layers; ++l) {
    const uint32_t n = net->width[l + 1];
    const uint8_t *w = image + (size_t)ct_mlp_tile(net, l) * CT_RECORD_UNITS * UNIT;
    const uint8_t *bias =
        image + ((size_t)ct_mlp_bias_at(net) + ct_mlp_bias_tile(net, l) * CT_F32_ROW_UNITS) * UNIT;
    struct blocks next = blocks_new(rows, ct_tiles(n));
    uint32_t *z = malloc(n * sizeof *z);
    for (uint32_t r = 0; r < rows; ++r) {
      for (uint32_t j = 0; j < n; ++j) {
        uint32_t b;
        memcpy(&b, bias + 4 * (size_t)j, sizeof b);
        z[j] = ct_fp_add(
            dot(&a, r, w + (size_t)(j / 16) * a.tiles * CT_RECORD_UNITS * UNIT, j % 16), b);
        if (l + 1 < net->layers) z[j] = ct_fp_relu(z[j]);
      }
      if (l + 1 < net->layers)
        quantise(&next, r, z, n);
      else
        memcpy(out + r * out_pitch, z, n * sizeof *z);
    }
    free(z);
    blocks_free(&a);
    a = next;
  }
  blocks_free(&a);
}

/* ---- On a device --------------------------------------------------------------------------- */

static void fill_word(ct_rng *rng, uint8_t *word, uint8_t *exponent, uint32_t used) {
  *exponent = (uint8_t)(118 + ct_rng_below(rng, 12));
  for (uint32_t i = 0; i < used; ++i)
    word[i] = (uint8_t)((int)ct_rng_below(rng, 255) - 127);
}

/* Weights, biases, rows; elements past a row's end are 0. */
static void fill(const struct ct_mlp *net, const struct where *w, ct_rng *rng, uint8_t *memory) {
  for (uint32_t t = 0; t < ct_mlp_tile(net, net->layers); ++t)
    for (uint32_t r = 0; r < 16; ++r) {
      uint8_t *tile = memory + (size_t)t * CT_RECORD_UNITS * UNIT;
      fill_word(rng, tile + (size_t)(1 + r) * UNIT, tile + r, 16);
    }
  const size_t bias = (size_t)ct_mlp_bias_at(net) * UNIT;
  for (size_t at = bias; at < (size_t)w->rows * UNIT; at += 4) {
    const float b = (float)((int)ct_rng_below(rng, 2001) - 1000) * 1e-3f;
    memcpy(memory + at, &b, sizeof b);
  }
  for (uint32_t r = 0; r < ROWS; ++r)
    for (uint32_t t = 0; t < ct_mlp_in(net, 0); ++t) {
      uint8_t *head = memory + ((size_t)w->rows + r * w->row_units) * UNIT +
                      (size_t)(t / 16) * CT_RECORD_UNITS * UNIT;
      fill_word(rng, head + (size_t)(1 + t % 16) * UNIT, head + t % 16,
                ct_min_u32(16, net->width[0] - 16 * t));
    }
}

static uint64_t run(ct_device *dev, const struct ct_code *code, const struct where *w, uint64_t at,
                    uint32_t rows) {
  ct_program *program;
  struct ct_event event;
  struct ct_job job = {.watchdog = 50000000};
  uint64_t tag;
  assert_int_equal(ct_program_load(dev, code->cmd, code->count, &program), CT_OK);
  const uint32_t base = (uint32_t)(at / UNIT);
  job.program = program;
  job.args[CT_INFER_IMAGE - 1] = base;
  job.args[CT_INFER_OUT - 1] = base + w->out;
  for (uint32_t r = 0; r < rows; ++r)
    job.args[CT_INFER_ROW - 1 + r] = base + w->rows + r * w->row_units;
  job.args[ct_infer_work(rows) - 1] = base + w->work;
  assert_int_equal(ct_submit(dev, CT_INFERENCE, &job, &tag), CT_OK);
  assert_int_equal(ct_wait(dev, tag, &event, CT_FOREVER), CT_OK);
  ct_program_free(program);
  if (event.error) fail_msg("the job ended with code %s", ct_code_text(event.code));
  return event.end - event.arrive;
}

/* Programs that run one after the other; each has to give the answers. Returns what the last one
 * took. */
static uint64_t check_all(const char *transport, const struct shape *s, const struct ct_code *code,
                          size_t codes, ct_rng *rng) {
  char uri[128];
  ct_device *dev;
  uint64_t at;
  uint32_t spm = 128;
  const struct where w = where_of(&s->net, s->work);
  const size_t size = (size_t)w.all * UNIT, pitch = (size_t)w.answer * 4;
  uint8_t *memory = calloc(1, size);
  while (spm / 2 < s->window)
    spm *= 2;
  snprintf(uri, sizeof uri, transport, spm);
  assert_int_equal(ct_open(uri, &dev), CT_OK);
  fill(&s->net, &w, rng, memory);
  assert_int_equal(ct_mem_alloc(dev, size, &at), CT_OK);
  uint32_t *got = calloc(s->rows * pitch, 4), *want = calloc(s->rows * pitch, 4);
  uint64_t cycles = 0;
  forward(&s->net, memory, s->rows, memory + (size_t)w.rows * UNIT, (size_t)w.row_units * UNIT,
          want, pitch);
  for (size_t i = 0; i < codes; ++i) {
    assert_int_equal(ct_mem_write(dev, at, memory, size), CT_OK);
    cycles = run(dev, &code[i], &w, at, s->rows);
    assert_int_equal(ct_mem_read(dev, at + (uint64_t)w.out * UNIT, got, s->rows * pitch * 4),
                     CT_OK);
    if (memcmp(got, want, s->rows * pitch * 4) != 0) print_shape(s);
    ct_assert_same("answers", got, want, s->rows * pitch * 4);
  }
  free(got);
  free(want);
  free(memory);
  ct_close(dev);
  return cycles;
}

static uint64_t check_bytes(const char *transport, const struct shape *s,
                            const struct ct_code *code, ct_rng *rng) {
  return check_all(transport, s, code, 1, rng);
}

/* ---- Tests --------------------------------------------------------------------------------- */

static void run_random(const char *transport, int cases, uint64_t stream) {
  ct_rng rng = ct_rng_make(stream);
  size_t most = 0, wide = 0;
  for (int i = 0; i < cases; ++i) {
    struct shape s = draw_shape(&rng);
    if (getenv("CT_VERBOSE")) print_shape(&s);
    struct ct_code code = make(&s);
    if (code.count > most) most = code.count;
    wide += s.make == ct_infer_wide;
    check_races(&s, &code, 1 + ct_rng_below(&rng, 16), 0);
    check_bytes(transport, &s, &code, &rng);
    free(code.cmd);
    s.planes = CT_F32_TILE_UNITS; /* their bytes: test_perceptrons */
    code = make(&s);
    check_races(&s, &code, 1 + ct_rng_below(&rng, 16), 0);
    free(code.cmd);
    s.planes = 0;
    s.rows = CT_INFER_BATCH;
    if (s.window < least_window(s.rows)) s.window = least_window(s.rows);
    code = make(&s);
    check_races(&s, &code, 1 + ct_rng_below(&rng, 16), 1 + ct_rng_below(&rng, ROWS));
    free(code.cmd);
  }
  print_message("%d shapes, %zu of them as loops over blocks, %zu commands at most\n", cases, wide,
                most);
}

static void test_random_shapes(void **state) {
  (void)state;
  run_random("emu:spm=%u", 80, 1);
}

/* ---- Weights that stay --------------------------------------------------------------------- */

/* A program that loads the weights, with or without a place of their own, and one that finds them.
 */
static void make_both(const struct shape *s, bool pinned, struct ct_code *code) {
  char why[256] = "";
  uint32_t used;
  struct ct_infer shape = {.net = &s->net, .rows = s->rows, .spm_words = s->window, .used = &used};
  if (pinned) shape.spm_words = shape.pin_at = s->window - ct_infer_pinned(&s->net);
  shape.pinned = pinned;
  for (int i = 0; i < 2; ++i) {
    shape.resident = i;
    if (ct_prog_infer(&shape, &code[i], &(struct ct_why){why, sizeof why})) {
      print_shape(s);
      fail_msg("%s", why);
    }
    assert_in_range(used, 1, shape.spm_words);
  }
}

static void test_weights_that_stay(void **state) {
  (void)state;
  ct_rng rng = ct_rng_make(8);
  for (int i = 0, draws = ct_tb_draws(100); i < draws; ++i) {
    struct shape s = {.net = {.layers = 1 + ct_rng_below(&rng, 4)},
                      .rows = 1 + ct_rng_below(&rng, ROWS),
                      .window = 20000 + ct_rng_below(&rng, 10000),
                      .make = ct_prog_infer};
    const bool pinned = ct_rng_below(&rng, 2);
    const unsigned depth = 1 + ct_rng_below(&rng, 16);
    const uint32_t batch = 1 + ct_rng_below(&rng, ROWS);
    struct ct_code code[2];
    for (uint32_t l = 0; l <= s.net.layers; ++l)
      s.net.width[l] = 1 + ct_rng_below(&rng, 250);
    s.net.width[0] += ct_rng_below(&rng, 2) * 300; /* rows of two records */
    make_both(&s, pinned, code);
    for (int k = 0; k < 2; ++k, s.holds = !s.holds)
      check_races(&s, &code[k], depth, 0);
    check_all("emu:spm=%u", &s, code, 2, &rng);
    free(code[0].cmd);
    free(code[1].cmd);
    s.rows = CT_INFER_BATCH;
    make_both(&s, pinned, code);
    for (int k = 0; k < 2; ++k, s.holds = !s.holds) {
      check_races(&s, &code[k], depth, batch);
      free(code[k].cmd);
    }
  }
}

/* Cycles from the doorbell to the completion, of programs whose semaphores were placed by hand
 * before: none of the lowering layer takes 1 % more. */
static void test_cycles(void **state) {
  (void)state;
  static const struct {
    uint32_t width[4], rows;
    uint64_t loads, finds; /* finds 0: the weights have no room */
  } before[] = {{{64, 128, 64, 10}, 1, 1681, 1513},       {{64, 128, 64, 10}, 2, 1681, 0},
                {{64, 128, 64, 10}, 4, 1721, 1532},       {{64, 128, 64, 10}, 16, 1983, 1797},
                {{256, 256, 256, 256}, 1, 14060, 13104},  {{256, 256, 256, 256}, 4, 14319, 13219},
                {{256, 256, 256, 256}, 16, 15606, 14506}, {{784, 512, 256, 10}, 1, 36513, 0},
                {{784, 512, 256, 10}, 4, 36713, 0},       {{784, 512, 256, 10}, 16, 37469, 0}};
  ct_rng rng = ct_rng_make(9);
  for (size_t i = 0; i < sizeof before / sizeof *before; ++i) {
    struct shape s = {
        .net = {.layers = 3}, .rows = before[i].rows, .window = 32768, .make = ct_prog_infer};
    struct ct_code code[2] = {{NULL, 0}, {NULL, 0}};
    memcpy(s.net.width, before[i].width, sizeof before[i].width);
    if (before[i].finds)
      make_both(&s, false, code);
    else
      code[0] = make(&s);
    const uint64_t loads = check_all("sim:", &s, code, 1, &rng);
    const uint64_t finds = before[i].finds ? check_all("sim:", &s, code, 2, &rng) : 0;
    print_message("%u-%u-%u-%u, %2u rows: %llu cycles (%llu), %llu (%llu)\n", s.net.width[0],
                  s.net.width[1], s.net.width[2], s.net.width[3], s.rows, (unsigned long long)loads,
                  (unsigned long long)before[i].loads, (unsigned long long)finds,
                  (unsigned long long)before[i].finds);
    /* 1 % until the units got stages for a board: some 35 cycles of a job, whatever its size. Since
     * operations of VA follow each other at once the smallest that finds its weights takes 5 cycles
     * more, 1,560; all others take fewer. */
    assert_in_range(loads, 1, before[i].loads * 103 / 100);
    assert_in_range(finds, 0, before[i].finds * 103 / 100 + 5);
    free(code[0].cmd);
    free(code[1].cmd);
  }
}

/* Networks of up to a thousand units, in the default core's window: none is refused at once. */
static void test_ordinary_networks_are_not_refused(void **state) {
  (void)state;
  ct_rng rng = ct_rng_make(7);
  for (int i = 0, draws = ct_tb_draws(300); i < draws; ++i) {
    struct shape s = {.net = {.layers = 1 + ct_rng_below(&rng, CT_MLP_LAYERS)},
                      .rows = ct_rng_below(&rng, ROWS + 1),
                      .window = 32768,
                      .make = ct_prog_infer};
    for (uint32_t l = 0; l <= s.net.layers; ++l)
      s.net.width[l] = 1 + ct_rng_below(&rng, 1000);
    struct ct_code code = make(&s);
    if (s.window != 32768) {
      print_shape(&s);
      fail_msg("refused");
    }
    free(code.cmd);
  }
}

/* As many layers as there may be, in windows that only just do: where commands are scarcest. */
static void test_deep_networks(void **state) {
  (void)state;
  ct_rng rng = ct_rng_make(2);
  size_t most = 0;
  for (int i = 0, draws = ct_tb_draws(60); i < draws; ++i) {
    struct shape s = {.net = {.layers = CT_MLP_LAYERS - ct_rng_below(&rng, 2)},
                      .rows = ct_rng_below(&rng, ROWS + 1),
                      .window = 1,
                      .make = ct_infer_wide};
    const uint32_t kind = ct_rng_below(&rng, 8), widest = kind ? 400 : 1000;
    for (uint32_t l = 0; l <= s.net.layers; ++l) {
      s.net.width[l] = widest - ct_rng_below(&rng, widest / 2);
      if (kind == 1) s.net.width[l] = l % 2 ? 9000 - ct_rng_below(&rng, 5000) : 20 + l;
    }
    free(make(&s).cmd); /* the least window */
    s.window += ct_rng_below(&rng, 2) * ct_rng_below(&rng, 1u << ct_rng_below(&rng, 14));
    struct ct_code code = make(&s);
    if (code.count > most) most = code.count;
    check_races(&s, &code, 1 + ct_rng_below(&rng, 16),
                s.rows == CT_INFER_BATCH ? 1 + ct_rng_below(&rng, ROWS) : 0);
    free(code.cmd);
    s.window = least_window(s.rows) + ct_rng_below(&rng, 400);
    s.make = ct_rng_below(&rng, 2) ? ct_infer_spilled : ct_prog_infer;
    code = make(&s);
    check_races(&s, &code, 1 + ct_rng_below(&rng, 16),
                s.rows == CT_INFER_BATCH ? 1 + ct_rng_below(&rng, ROWS) : 0);
    free(code.cmd);
  }
  print_message("%zu commands at most\n", most);
}

/* On the simulated core, in little room and with a memory that stalls. */
static void test_on_the_simulated_core(void **state) {
  (void)state;
  static const struct shape shapes[] = {
      {{3, {64, 128, 64, 10}}, 1, 1024, ct_infer_wide, 0, false, 0},
      {{3, {64, 128, 64, 10}}, 16, 4096, ct_infer_wide, 0, false, 0},
      {{2, {100, 270, 33}}, 5, 1100, ct_infer_wide, 0, false, 0},
      {{4, {17, 600, 3, 50, 130}}, 16, 12000, ct_infer_wide, 0, false, 0},
      {{2, {1100, 20, 70}}, 2, 300, ct_infer_wide, 0, false, 0},
      {{3, {100, 270, 150, 33}}, 16, 400, ct_infer_spilled, 0, false, 0},
      {{2, {1100, 20, 70}}, 5, 2000, ct_infer_spilled, 0, false, 0}};
  ct_rng rng = ct_rng_make(3);
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; ++i) {
    struct shape s = shapes[i];
    struct ct_code code = make(&s);
    check_races(&s, &code, 16, 0);
    check_bytes(i % 2 ? "sim:stall=25,seed=5" : "sim:bandwidth=8", &s, &code, &rng);
    free(code.cmd);
  }
}

/* What it costs where the window would hold the activations: no more than three times the cycles.
 */
static void test_what_spilling_costs(void **state) {
  (void)state;
  static const struct shape shapes[] = {
      {{4, {784, 1000, 500, 256, 10}}, 16, 32768, ct_infer_wide, 0, false, 0},
      {{2, {300, 4000, 10}}, 16, 32768, ct_infer_wide, 0, false, 0},
      {{2, {300, 4000, 10}}, 1, 32768, ct_infer_wide, 0, false, 0}};
  ct_rng rng = ct_rng_make(9);
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; ++i) {
    struct shape s = shapes[i];
    uint64_t cycles[2];
    for (int spilled = 0; spilled < 2; ++spilled) {
      if (spilled) s.make = ct_infer_spilled;
      struct ct_code code = make(&s);
      cycles[spilled] = check_bytes("sim:", &s, &code, &rng);
      free(code.cmd);
    }
    print_shape(&s);
    print_message("%llu cycles, in the scratchpad %llu\n", (unsigned long long)cycles[1],
                  (unsigned long long)cycles[0]);
    assert_in_range(cycles[1], cycles[0], 3 * cycles[0]);
  }
}

static float *draw_floats(ct_rng *rng, size_t n) {
  float *x = malloc(n * sizeof *x);
  for (size_t i = 0; i < n; ++i)
    x[i] = (float)((int)ct_rng_below(rng, 2001) - 900) * 1e-3f;
  return x;
}

/* Where 16 rows of the activations have no room, they go through device memory; where a window has
 * no room for a row of 16 blocks of each, ct_model_infer() takes fewer at a time. */
static void test_rows_that_do_not_fit_together(void **state) {
  (void)state;
  enum { N = 21, IN = 40, HIDDEN = 3000, OUT = 5 };
  static const uint32_t width[] = {IN, HIDDEN, OUT};
  ct_rng rng = ct_rng_make(5);
  static const char *const uri[] = {"emu:", "emu:spm=2048", "emu:spm=256"};
  ct_device *dev[3];
  float *x = draw_floats(&rng, (size_t)N * IN), y[3][N * OUT];
  for (int i = 0; i < 3; ++i) {
    ct_model *m;
    assert_int_equal(ct_open(uri[i], &dev[i]), CT_OK);
    assert_int_equal(ct_model_create(dev[i], width, 2, 9, &m), CT_OK);
    if (ct_model_infer(m, NULL, x, N, y[i])) fail_msg("%s", ct_last_error(dev[i]));
    ct_model_free(m);
    ct_close(dev[i]);
  }
  ct_assert_same("answers", y[1], y[0], sizeof y[0]);
  ct_assert_same("answers", y[2], y[0], sizeof y[0]);
  free(x);
}

/* ---- Batches ------------------------------------------------------------------------------- */

enum { REQUESTS = 40, BATCH_IN = 300, BATCH_OUT = 70 };

/* The device has to take the program that is meant. */
static void assert_wide(const struct ct_mlp *net, uint32_t rows, uint32_t window) {
  const struct ct_infer shape = {.net = net, .rows = rows, .spm_words = window};
  struct ct_code any, wide;
  assert_int_equal(ct_prog_infer(&shape, &any, NULL), CT_OK);
  assert_int_equal(ct_infer_wide(&shape, &wide, NULL), CT_OK);
  assert_int_equal(any.count, wide.count);
  assert_memory_equal(any.cmd, wide.cmd, any.count * sizeof *any.cmd);
  free(any.cmd);
  free(wide.cmd);
}

static ct_model *draw_model(ct_device *dev, ct_rng *rng, struct ct_mlp *net) {
  ct_model *m;
  net->layers = CT_MLP_LAYERS;
  for (uint32_t l = 0; l <= net->layers; ++l)
    net->width[l] = 250 + ct_rng_below(rng, 70);
  net->width[0] = BATCH_IN;
  net->width[net->layers] = BATCH_OUT;
  assert_int_equal(ct_model_create(dev, net->width, net->layers, 3, &m), CT_OK);
  for (uint32_t l = 0; l < net->layers; ++l) {
    float *w = draw_floats(rng, (size_t)net->width[l] * net->width[l + 1]);
    assert_int_equal(ct_model_set(m, l, w, w, NULL, NULL), CT_OK);
    free(w);
  }
  return m;
}

/* Answers n requests of rows x; returns how many were in the largest batch. */
static uint32_t serve_all(ct_device *dev, ct_model *m, const struct ct_serving *serving,
                          const float *x, size_t n, float *answer) {
  ct_weights *weights;
  ct_server *server;
  ct_rows *rows;
  ct_answers *answers;
  uint32_t largest = 0;
  assert_int_equal(ct_model_publish(m, &weights), CT_OK);
  assert_int_equal(ct_rows_create(m, n, &rows), CT_OK);
  assert_int_equal(ct_answers_create(m, n, &answers), CT_OK);
  assert_int_equal(ct_rows_write(rows, 0, n, x), CT_OK);
  if (ct_server_create(m, weights, serving, &server)) fail_msg("%s", ct_last_error(dev));
  for (size_t i = 0; i < n; ++i) {
    const struct ct_request r = {.rows = rows, .answers = answers, .row = i, .answer = i};
    assert_int_equal(ct_server_push(server, &r, NULL), CT_OK);
  }
  for (size_t i = 0; i < n; ++i) {
    struct ct_event e;
    assert_int_equal(ct_reap(dev, &e, CT_FOREVER), CT_OK);
    assert_int_equal(e.error, CT_OK);
    if (e.batch > largest) largest = e.batch;
  }
  assert_int_equal(ct_answers_read(answers, 0, n, answer), CT_OK);
  ct_server_free(server);
  ct_weights_free(weights);
  ct_rows_free(rows);
  ct_answers_free(answers);
  return largest;
}

/* Answers of batches equal those of single rows. */
static void check_batches(const char *uri, uint32_t window) {
  const struct ct_serving serving = {.batching = CT_BATCHING_FIXED, .max_wait = 2000};
  ct_rng rng = ct_rng_make(4);
  struct ct_mlp net;
  ct_device *dev;
  assert_int_equal(ct_open(uri, &dev), CT_OK);
  ct_model *m = draw_model(dev, &rng, &net);
  assert_wide(&net, CT_INFER_BATCH, window);
  float *x = draw_floats(&rng, (size_t)REQUESTS * BATCH_IN);
  float *want = calloc(REQUESTS, BATCH_OUT * sizeof *want),
        *got = calloc(REQUESTS, BATCH_OUT * sizeof *got);
  if (ct_model_infer(m, NULL, x, REQUESTS, want)) fail_msg("%s", ct_last_error(dev));
  assert_in_range(serve_all(dev, m, &serving, x, REQUESTS, got), 2, ROWS);
  ct_assert_same("answers", got, want, REQUESTS * BATCH_OUT * sizeof *got);
  free(x);
  free(want);
  free(got);
  ct_model_free(m);
  ct_close(dev);
}

static void test_batches(void **state) {
  (void)state;
  check_batches("emu:spm=16384", 16384);
  if (!CT_TB_SANITIZED) check_batches("sim:stall=10,seed=7", 32768);
}

/* Batches whose activations have no room go through device memory, and smaller ones find room. */
static void test_servers_of_wide_networks(void **state) {
  (void)state;
  enum { IN = 40, HIDDEN = 6000, OUT = 5, N = 40 };
  static const uint32_t width[] = {IN, HIDDEN, OUT};
  ct_rng rng = ct_rng_make(6);
  ct_device *dev;
  ct_model *m;
  float *x = draw_floats(&rng, (size_t)N * IN), want[N * OUT], got[N * OUT];
  assert_int_equal(ct_open("emu:spm=4096", &dev), CT_OK);
  assert_int_equal(ct_model_create(dev, width, 2, 9, &m), CT_OK);
  for (size_t i = 0; i < N; ++i) /* one by one: in the scratchpad */
    assert_int_equal(ct_model_infer(m, NULL, x + i * IN, 1, want + i * OUT), CT_OK);
  for (uint32_t most = 4; most <= ROWS; most *= 4) {
    const struct ct_serving serving = {
        .batching = CT_BATCHING_FIXED, .max_wait = 2000, .max_batch = most};
    assert_in_range(serve_all(dev, m, &serving, x, N, got), 1, most);
    ct_assert_same("answers", got, want, sizeof got);
  }
  free(x);
  ct_model_free(m);
  ct_close(dev);
}

/* Many requests of many rows under way in both queues, each queue with a workspace of its own. */
static void check_in_flight(const char *uri, const uint32_t *width, size_t layers,
                            size_t requests) {
  ct_rng rng = ct_rng_make(8);
  const size_t in = width[0], out = width[layers], n = requests * ROWS;
  ct_device *dev;
  ct_model *m;
  ct_rows *rows;
  ct_answers *answers;
  struct ct_event e;
  float *x = draw_floats(&rng, n * in), *want = calloc(n * out, 4), *got = calloc(n * out, 4);
  assert_int_equal(ct_open("emu:spm=524288", &dev), CT_OK);
  assert_int_equal(ct_model_create(dev, width, layers, 9, &m), CT_OK);
  assert_int_equal(ct_model_infer(m, NULL, x, n, want), CT_OK);
  ct_close(dev);
  ct_model_free(m);
  assert_int_equal(ct_open(uri, &dev), CT_OK);
  assert_int_equal(ct_model_create(dev, width, layers, 9, &m), CT_OK);
  assert_int_equal(ct_rows_create(m, n, &rows), CT_OK);
  assert_int_equal(ct_answers_create(m, n, &answers), CT_OK);
  assert_int_equal(ct_rows_write(rows, 0, n, x), CT_OK);
  for (size_t i = 0; i < requests; ++i) {
    const struct ct_request r = {.queue = i % 2 ? CT_TRAINING : CT_INFERENCE,
                                 .rows = rows,
                                 .answers = answers,
                                 .row = i * ROWS,
                                 .answer = i * ROWS,
                                 .count = ROWS};
    if (ct_model_infer_submit(m, &r, NULL)) fail_msg("%s", ct_last_error(dev));
  }
  for (size_t i = 0; i < requests; ++i) {
    assert_int_equal(ct_reap(dev, &e, CT_FOREVER), CT_OK);
    assert_int_equal(e.error, CT_OK);
  }
  assert_int_equal(ct_answers_read(answers, 0, n, got), CT_OK);
  ct_assert_same("answers", got, want, n * out * sizeof *got);
  ct_answers_free(answers);
  ct_rows_free(rows);
  ct_model_free(m);
  ct_close(dev);
  free(x);
  free(want);
  free(got);
}

static void test_many_in_flight(void **state) {
  (void)state;
  static const uint32_t small[] = {40, 3000, 2000, 35}, large[] = {20, 33000, 9};
  check_in_flight("emu:spm=2048", small, 3, 9);
  if (!CT_TB_SANITIZED) check_in_flight("sim:", large, 2, 4);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_shapes),
                                     cmocka_unit_test(test_weights_that_stay),
                                     cmocka_unit_test(test_cycles),
                                     cmocka_unit_test(test_ordinary_networks_are_not_refused),
                                     cmocka_unit_test(test_deep_networks),
                                     cmocka_unit_test(test_on_the_simulated_core),
                                     CT_PLAIN_TEST(test_what_spilling_costs),
                                     cmocka_unit_test(test_rows_that_do_not_fit_together),
                                     cmocka_unit_test(test_batches),
                                     cmocka_unit_test(test_servers_of_wide_networks),
                                     cmocka_unit_test(test_many_in_flight)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
