/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel_bed.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ct_num.h"
#include "ct_racecheck.h"

enum { BYTES = KB_UNITS * 16, HALF = KB_UNITS / 2 };

uint32_t kb_bits(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

float kb_float(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

void kb_open(struct kbed *b, const char *uri, uint64_t stream) {
  *b = (struct kbed){.rng = ct_rng_make(stream)};
  assert_int_equal(ct_open(uri, &b->dev), CT_OK);
  assert_int_equal(ct_mem_alloc(b->dev, BYTES, &b->at), CT_OK);
  b->mem = malloc(BYTES);
  b->before = malloc(BYTES);
  b->out = calloc(KB_UNITS, sizeof *b->out);
  assert_true(b->mem && b->before && b->out);
  kb_clear(b);
}

void kb_close(struct kbed *b) {
  free(b->mem);
  free(b->before);
  free(b->out);
  ct_close(b->dev);
}

/* What is nowhere written is garbage. */
void kb_clear(struct kbed *b) {
  ct_rng_fill(&b->rng, b->mem, BYTES);
  memset(b->out, 0, KB_UNITS * sizeof *b->out);
  b->out[0] = true; /* scratch */
  b->used = 1;
}

struct ct_room kb_room(uint32_t spm_words) {
  return (struct ct_room){
      .spm_words = spm_words, .args = KB_ARGS, .scratch = {.reg = 1, .at = 0}, .scratch_units = 1};
}

struct ct_room kb_room_scratch(struct kbed *b, uint32_t spm_words, uint64_t units) {
  struct ct_room room = kb_room(spm_words);
  assert_true(b->used == 1 && units < KB_UNITS);
  for (uint32_t u = 0; u < units; ++u)
    b->out[u] = true;
  b->used = (uint32_t)units;
  room.scratch_units = units;
  return room;
}

/* r2 lies 100 units behind r1. */
struct ct_mat kb_mat(struct kbed *b, uint32_t rows, uint32_t cols, unsigned keeps, bool out) {
  struct ct_mat m = {.rows = rows, .cols = cols};
  for (unsigned k = 0; k < CT_KEEPS; ++k) {
    if (!(keeps >> k & 1)) continue;
    const uint32_t units = (uint32_t)ct_mat_units(rows, cols, (enum ct_keep)k);
    const bool second = b->used >= 100 && ct_rng_percent(&b->rng, 50);
    m.keep[k] = (struct ct_seat){second ? 2 : 1, b->used - (second ? 100 : 0)};
    assert_true(b->used + units + 8 < KB_UNITS);
    for (uint32_t u = 0; u < units; ++u)
      b->out[b->used + u] = out;
    b->used += units + ct_rng_below(&b->rng, 4);
  }
  return m;
}

/* ---- Pieces ---- */

static uint8_t *piece_of(const struct kbed *b, const struct ct_mat *m, unsigned keep, uint32_t p,
                         uint32_t g) {
  const uint32_t at = m->keep[keep].at + (m->keep[keep].reg == 2 ? 100 : 0);
  const uint32_t piece = p * ct_mat_groups(m) + g;
  return b->mem + ((size_t)at + (size_t)piece * ct_keep_units((enum ct_keep)keep)) * 16;
}

/* A tile of what the matrix shall hold, padding +0. */
static void tile_of(const struct ct_mat *m, const uint32_t *x, uint32_t p, uint32_t g,
                    uint32_t t[16][16]) {
  for (uint32_t r = 0; r < 16; ++r)
    for (uint32_t c = 0; c < 16; ++c) {
      const uint32_t row = g * 16 + r, col = p * 16 + c;
      t[r][c] = row < m->rows && col < m->cols ? x[(size_t)row * m->cols + col] : 0;
    }
}

static void encode(const struct ct_mat *m, unsigned keep, uint32_t t[16][16], uint8_t *to) {
  if (keep == CT_KEEP_F32) {
    memcpy(to, t, 1024);
    return;
  }
  for (unsigned r = 0; r < 16; ++r) {
    to[r] = keep == CT_KEEP_ROWS ? ct_hbfp8_group_exp(t[r], 16) : ct_hbfp8_group_exp(t[0], 256);
    for (unsigned c = 0; c < 16; ++c)
      to[16 + r * 16 + c] = (uint8_t)ct_hbfp8_quant_narrow(t[r][c], to[r], m->narrow);
  }
}

static void decode(unsigned keep, const uint8_t *from, uint32_t t[16][16]) {
  if (keep == CT_KEEP_F32) {
    memcpy(t, from, 1024);
    return;
  }
  for (unsigned r = 0; r < 16; ++r)
    for (unsigned c = 0; c < 16; ++c)
      t[r][c] = ct_hbfp8_dequant((int8_t)from[16 + r * 16 + c], from[r]);
}

void kb_put(struct kbed *b, const struct ct_mat *m, uint32_t *x) {
  for (unsigned k = 0; k < CT_KEEPS; ++k)
    for (uint32_t p = 0; m->keep[k].reg && p < ct_mat_planes(m); ++p)
      for (uint32_t g = 0; g < ct_mat_groups(m); ++g) {
        uint32_t t[16][16];
        tile_of(m, x, p, g, t);
        encode(m, k, t, piece_of(b, m, k, p, g));
        decode(k, piece_of(b, m, k, p, g), t);
        for (uint32_t i = 0; i < 256; ++i) {
          const uint32_t row = g * 16 + i / 16, col = p * 16 + i % 16;
          if (row < m->rows && col < m->cols) x[(size_t)row * m->cols + col] = t[i / 16][i % 16];
        }
      }
}

static bool is_nan(uint32_t x) {
  return (x & 0x7fffffff) > 0x7f800000;
}

static void check_piece(const struct ct_mat *m, unsigned keep, const uint8_t *got,
                        const uint8_t *want, uint32_t p, uint32_t g, const char *what) {
  static const char *const names[CT_KEEPS] = {"FP32", "rows", "square"};
  const unsigned size = keep == CT_KEEP_F32 ? 4 : 1, head = keep == CT_KEEP_F32 ? 0 : 16;
  for (unsigned i = 0; i < 16 * ct_keep_units((enum ct_keep)keep); i += size) {
    uint32_t a = 0, b = 0;
    memcpy(&a, got + i, size);
    memcpy(&b, want + i, size);
    if (a == b || (size == 4 && is_nan(a) && is_nan(b))) continue;
    const unsigned e = i < head ? i * 16 : (i - head) / size;
    fail_msg("%s (%s, %u x %u): row %u, column %u is %x (%g), not %x (%g)%s", what, names[keep],
             m->rows, m->cols, g * 16 + e / 16, p * 16 + e % 16, a, (double)kb_float(a), b,
             (double)kb_float(b), i < head ? ": the exponent" : "");
  }
}

void kb_check(const struct kbed *b, const struct ct_mat *m, const uint32_t *want,
              const char *what) {
  for (unsigned k = 0; k < CT_KEEPS; ++k)
    for (uint32_t p = 0; m->keep[k].reg && p < ct_mat_planes(m); ++p)
      for (uint32_t g = 0; g < ct_mat_groups(m); ++g) {
        uint32_t t[16][16];
        uint8_t tile[1024];
        tile_of(m, want, p, g, t);
        encode(m, k, t, tile);
        check_piece(m, k, piece_of(b, m, k, p, g), tile, p, g, what);
      }
}

void kb_get(const struct kbed *b, const struct ct_mat *m, uint32_t *x) {
  for (uint32_t row = 0; row < m->rows; ++row)
    for (uint32_t col = 0; col < m->cols; ++col)
      memcpy(
          &x[(size_t)row * m->cols + col],
          piece_of(b, m, CT_KEEP_F32, col / 16, row / 16) + (size_t)(row % 16 * 16 + col % 16) * 4,
          4);
}

/* ---- Programs ---- */

static void set_args(const struct kbed *b, uint32_t *args, uint32_t base) {
  args[0] = base;
  args[1] = base + 100;
  args[2] = b->number[0];
  args[3] = b->number[1];
}

static void print_line(void *arg, const char *text) {
  (void)arg;
  print_message("%s\n", text);
}

static void check_race(const struct kbed *b, const struct ct_codes *codes, uint32_t spm_words) {
  char why[256];
  for (size_t i = 0; i < codes->count; ++i) {
    struct ct_racecheck check = {.cmds = codes->job[i].cmd,
                                 .count = codes->job[i].count,
                                 .spm_words = spm_words,
                                 .dram_units = KB_UNITS,
                                 .depth = 16,
                                 .spm_holds_data = i > 0};
    set_args(b, check.args, 0);
    for (check.eager = 0; check.eager <= 6; ++check.eager)
      if (!ct_racecheck(&check, NULL, why, sizeof why)) {
        ct_disassemble(codes->job[i].cmd, codes->job[i].count, print_line, NULL);
        fail_msg("job %zu: %s", i, why);
      }
  }
}

static void run_job(struct kbed *b, const struct ct_code *code) {
  struct ct_job job = {.watchdog = 0};
  struct ct_event event;
  ct_program *program;
  uint64_t tag;
  assert_int_equal(ct_program_load(b->dev, code->cmd, code->count, &program), CT_OK);
  job.program = program;
  set_args(b, job.args, (uint32_t)(b->at / 16));
  assert_int_equal(ct_submit(b->dev, CT_TRAINING, &job, &tag), CT_OK);
  assert_int_equal(ct_wait(b->dev, tag, &event, CT_FOREVER), CT_OK);
  if (event.error) fail_msg("a job ended with code %s", ct_code_text(event.code));
  ct_program_free(program);
}

void kb_run(struct kbed *b, struct ct_codes *codes, uint32_t spm_words) {
  check_race(b, codes, spm_words);
  memcpy(b->before, b->mem, BYTES);
  assert_int_equal(ct_mem_write(b->dev, b->at, b->mem, BYTES), CT_OK);
  for (size_t i = 0; i < codes->count; ++i)
    run_job(b, &codes->job[i]);
  assert_int_equal(ct_mem_read(b->dev, b->at, b->mem, BYTES), CT_OK);
  for (uint32_t u = 0; u < KB_UNITS; ++u)
    if (!b->out[u] && memcmp(b->mem + (size_t)u * 16, b->before + (size_t)u * 16, 16) != 0)
      fail_msg("unit %u was written", u);
  ct_codes_free(codes);
}
