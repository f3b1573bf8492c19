/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lowering layer under random kernels: every program is race-free whatever time its steps take,
 * and computes on the emulator (and some on the simulated core) to the byte what the recorded
 * commands do when they run one after the other. Layers that are wrong on purpose are found out.
 */
#include <stdlib.h>
#include <string.h>

#include "coltrain/coltrain.h"
#include "ct_disasm.h"
#include "ct_racecheck.h"
#include "lower_kernels.h"

static const uint32_t units_of[K_ARGS] = {K_WEIGHTS_UNITS, K_STATE_UNITS, K_OUT_UNITS, K_CALM_UNITS,
                                          0};

static uint32_t all_units(void) {
  uint32_t n = 0;
  for (int i = 0; i < K_ARGS; ++i)
    n += units_of[i];
  return n;
}

/* Arguments for data from unit `base` on. */
static void set_args(uint32_t *args, uint32_t base) {
  for (int i = 0; i < K_ARGS; ++i) {
    args[i] = base;
    base += units_of[i];
  }
  args[K_SCALAR - 1] = 0x3f400000; /* 0.75 */
}

/* ---- Programs ------------------------------------------------------------------------------ */

struct how {
  size_t limit;
  enum ct_lower_fault fault;
  unsigned nth;
};

static int make(struct kernel *k, const struct how *how, struct ct_codes *codes, char *why,
                size_t size) {
  struct ct_lower *l = ct_lower_start(K_ARGS, false);
  assert_non_null(l);
  if (how->limit) ct_lower_limit(l, how->limit);
  ct_lower_fault(l, how->fault, how->nth);
  kernel_record(k, l);
  assert_true(k->spm <= K_SPM_WORDS);
  return ct_lower_finish(l, "a random kernel", codes, &(struct ct_why){why, size});
}

static struct ct_code make_list(struct kernel *k) {
  struct ct_lower *l = ct_lower_start(K_ARGS, false);
  struct ct_code code;
  assert_non_null(l);
  ct_lower_flat(l);
  kernel_record(k, l);
  assert_int_equal(ct_lower_error(l), CT_OK);
  assert_int_equal(ct_lower_list(l, &code), CT_OK);
  ct_lower_drop(l);
  return code;
}

static bool race_free(const struct ct_codes *codes, unsigned depth, char *why, size_t size) {
  for (size_t i = 0; i < codes->count; ++i) {
    struct ct_racecheck check = {.cmds = codes->job[i].cmd,
                                 .count = codes->job[i].count,
                                 .spm_words = K_SPM_WORDS,
                                 .dram_units = all_units(),
                                 .depth = depth,
                                 .spm_holds_data = i > 0};
    set_args(check.args, 0);
    for (check.eager = 0; check.eager <= 6; ++check.eager)
      if (!ct_racecheck(&check, NULL, why, size)) return false;
  }
  return true;
}

static void print_line(void *arg, const char *text) {
  (void)arg;
  print_message("%s\n", text);
}

static void print_codes(const struct ct_codes *codes) {
  for (size_t i = 0; i < codes->count && getenv("CT_VERBOSE"); ++i)
    ct_disasm(codes->job[i].cmd, codes->job[i].count, print_line, NULL);
}

/* ---- Devices ------------------------------------------------------------------------------- */

struct bed {
  ct_device *dev;
  uint64_t at;
  uint8_t *before, *after, *want;
  size_t size;
};

static void bed_open(struct bed *b, const char *uri, ct_rng *rng) {
  float x[K_W_ROWS * 16 * K_W_COLS * 16];
  assert_int_equal(ct_open(uri, &b->dev), CT_OK);
  b->size = (size_t)all_units() * 16;
  assert_int_equal(ct_mem_alloc(b->dev, b->size, &b->at), CT_OK);
  b->before = calloc(3, b->size);
  b->after = b->before + b->size;
  b->want = b->after + b->size;
  for (size_t i = 0; i < sizeof x / sizeof *x; ++i)
    x[i] = (float)((int)ct_rng_below(rng, 2001) - 1000) * 1e-3f;
  ct_pack(x, K_W_ROWS * 16, K_W_COLS * 16, K_W_COLS * 16, CT_SQUARE, b->before);
  float *y = (float *)(b->before + (size_t)K_WEIGHTS_UNITS * 16);
  for (uint32_t i = 0; i < (K_STATE_UNITS + K_OUT_UNITS + K_CALM_UNITS) * 4; ++i)
    y[i] = (float)((int)ct_rng_below(rng, 2001) - 1000) * 1e-3f;
}

static void bed_close(struct bed *b) {
  free(b->before);
  ct_close(b->dev);
}

static void run_job(struct bed *b, const struct ct_cmd *cmd, size_t count) {
  ct_program *program;
  struct ct_event event;
  uint64_t tag;
  struct ct_job job = {.watchdog = 5000000};
  assert_int_equal(ct_program_load(b->dev, cmd, count, &program), CT_OK);
  job.program = program;
  set_args(job.args, (uint32_t)(b->at / 16));
  assert_int_equal(ct_submit(b->dev, CT_TRAINING, &job, &tag), CT_OK);
  assert_int_equal(ct_wait(b->dev, tag, &event, CT_FOREVER), CT_OK);
  ct_program_free(program);
  if (event.error) fail_msg("a job ended with code %s", ct_code_text(event.code));
}

static void run_codes(struct bed *b, const struct ct_codes *codes, uint8_t *result) {
  assert_int_equal(ct_mem_write(b->dev, b->at, b->before, b->size), CT_OK);
  for (size_t i = 0; i < codes->count; ++i)
    run_job(b, codes->job[i].cmd, codes->job[i].count);
  assert_int_equal(ct_mem_read(b->dev, b->at, result, b->size), CT_OK);
}

/* Command by command: a job each, that begins with the walk so far. */
static void run_list(struct bed *b, const struct ct_code *list, uint8_t *result) {
  struct ct_cmd job[4] = {{{0}}};
  assert_int_equal(ct_mem_write(b->dev, b->at, b->before, b->size), CT_OK);
  CT_PUT(&job[3], ALL_OP, CT_OP_END);
  for (size_t i = 0; i < list->count; ++i) {
    const uint32_t op = CT_GET(&list->cmd[i], ALL_OP);
    if (op == CT_OP_WPIX || op == CT_OP_WTAP) job[op == CT_OP_WTAP] = list->cmd[i];
    job[2] = list->cmd[i];
    run_job(b, job, 4);
  }
  assert_int_equal(ct_mem_read(b->dev, b->at, result, b->size), CT_OK);
}

/* ---- Tests --------------------------------------------------------------------------------- */

static size_t draw_limit(ct_rng *rng) {
  return ct_rng_below(rng, 2) ? 0 : 200 + ct_rng_below(rng, 200);
}

static void run_random(const char *uri, int cases, uint64_t stream) {
  ct_rng rng = ct_rng_make(stream);
  struct bed b;
  char why[256];
  size_t jobs = 0, commands = 0;
  bed_open(&b, uri, &rng);
  for (int i = 0; i < cases; ++i) {
    struct kernel k;
    struct ct_codes codes;
    kernel_draw(&k, &rng);
    const struct how how = {.limit = draw_limit(&rng)};
    if (getenv("CT_VERBOSE")) kernel_print(&k);
    if (make(&k, &how, &codes, why, sizeof why)) fail_msg("case %d: %s", i, why);
    if (!race_free(&codes, 1 + ct_rng_below(&rng, 16), why, sizeof why)) {
      print_codes(&codes);
      fail_msg("case %d: %s", i, why);
    }
    const struct ct_code list = make_list(&k);
    run_list(&b, &list, b.want);
    run_codes(&b, &codes, b.after);
    if (memcmp(b.want, b.after, b.size) != 0) {
      print_message("case %d\n", i);
      ct_assert_same("device memory", b.after, b.want, b.size);
    }
    for (size_t j = 0; j < codes.count; ++j)
      commands += codes.job[j].count;
    jobs += codes.count;
    free(list.cmd);
    ct_codes_free(&codes);
  }
  print_message("%s: %d kernels, %zu jobs, %zu commands\n", uri, cases, jobs, commands);
  bed_close(&b);
}

static void test_random_kernels(void **state) {
  (void)state;
  run_random("emu:", 150, 1);
}

static void test_random_kernels_simulated(void **state) {
  (void)state;
  run_random("sim:stall=25,seed=5", 4, 2);
}

enum { M_TILES = 4, M_AT = 64, M_CALM = 8 };

/* Words of a place. */
static uint32_t words(struct ct_lower *l, const char *name, enum ct_place place, uint32_t at) {
  return ct_tensor(l, &(struct ct_tensor){.name = name,
                                          .place = place,
                                          .reg = place == CT_IN_DRAM ? K_CALM : 0,
                                          .at = at,
                                          .size = CT_TILE,
                                          .col = 1});
}

/* VS makes as many tiles as the product has, and all of them are its operands. */
static void record_made_operands(struct ct_lower *l) {
  const uint32_t dram = words(l, "calm in memory", CT_IN_DRAM, 0);
  const uint32_t calm = words(l, "calm words", CT_IN_SPM, M_CALM);
  const struct ct_carriers carriers = {.va_reg = 13,
                                       .vs_reg = 15,
                                       .vl_reg = 14,
                                       .acc = 15,
                                       .calm = calm,
                                       .load = dram,
                                       .store_spm = calm,
                                       .store_dram = dram};
  const struct ct_ring regs = {
      .name = "results", .place = CT_IN_REG, .at = 0, .size = 1, .slots = M_TILES};
  const struct ct_ring made = {
      .name = "made", .place = CT_IN_SPM, .at = M_AT, .size = CT_TILE, .slots = M_TILES};
  const struct ct_ring products = {
      .name = "products", .place = CT_IN_ACC, .at = 0, .size = 1, .slots = M_TILES};
  ct_lower_carriers(l, &carriers);
  ct_ld(l, &(struct ct_dma){
               .dram = ct_all_of(l, dram), .spm = ct_all_of(l, calm), .nb = K_CALM_UNITS});
  const struct ct_ref r = ct_next_n(l, ct_ring(l, &regs), M_TILES);
  const struct ct_ref a = ct_next_n(l, ct_ring(l, &made), M_TILES);
  ct_va(l, &(struct ct_va){.to = r, .c = CT_VA_SCALAR, .sc_reg = K_SCALAR, .more = M_TILES - 1});
  ct_vs(l, &(struct ct_vmove){.reg = r,
                              .spm = a,
                              .mode = CT_VS_ROWS,
                              .rows = CT_TILE,
                              .more = M_TILES - 1,
                              .tile_stride = CT_TILE});
  ct_mm(l, &(struct ct_mm){.a = a,
                           .b = ct_nth(a, M_TILES - 1),
                           .acc = ct_next_n(l, ct_ring(l, &products), M_TILES),
                           .am = CT_TILE,
                           .kt = 1,
                           .nt = 1,
                           .rows = M_TILES * CT_TILE,
                           .acc_n = M_TILES});
}

/* Wait2 holds back tiles of a product, not the reads of its operands. */
static void test_operands_are_not_awaited_by_tile(void **state) {
  (void)state;
  char why[256] = "";
  struct ct_codes codes;
  struct ct_lower *l = ct_lower_start(K_ARGS, false);
  assert_non_null(l);
  record_made_operands(l);
  if (ct_lower_finish(l, "made operands", &codes, &(struct ct_why){why, sizeof why}))
    fail_msg("%s", why);
  if (!race_free(&codes, 16, why, sizeof why)) fail_msg("%s", why);
  ct_codes_free(&codes);
}

/* A job knows nothing of the walks of the one before: each begins with its own. */
static void test_walks_go_on_behind_a_cut(void **state) {
  (void)state;
  static const struct ct_walk_shape shape = {16, 1, 1, 16, 16, 16, 16, 1, 1, 1, 0, 0, 1, 1, 1, 1};
  char why[256] = "";
  struct ct_codes codes;
  struct ct_lower *l = ct_lower_start(K_ARGS, false);
  assert_non_null(l);
  const uint32_t dram = words(l, "calm in memory", CT_IN_DRAM, 0);
  const uint32_t calm = words(l, "calm words", CT_IN_SPM, M_CALM);
  const uint32_t acc = words(l, "products", CT_IN_ACC, 0);
  const struct ct_carriers carriers = {.acc = 15, .calm = calm, .load = dram};
  ct_lower_carriers(l, &carriers);
  ct_lower_limit(l, 12);
  ct_ld(l, &(struct ct_dma){
               .dram = ct_all_of(l, dram), .spm = ct_all_of(l, calm), .nb = K_CALM_UNITS});
  ct_mm_walk(l, &shape);
  for (uint32_t i = 0; i < 30; ++i)
    ct_mm(l, &(struct ct_mm){.a = ct_all_of(l, calm),
                             .b = ct_all_of(l, calm),
                             .acc = ct_tile_of(l, acc, 0, i % 2),
                             .walk = true,
                             .pos = ct_walk_pos(&shape, 0, 0, 1),
                             .kt = 1,
                             .nt = 1,
                             .rows = CT_TILE});
  if (ct_lower_finish(l, "walks", &codes, &(struct ct_why){why, sizeof why})) fail_msg("%s", why);
  assert_true(codes.count > 2);
  if (!race_free(&codes, 16, why, sizeof why)) fail_msg("%s", why);
  ct_codes_free(&codes);
}

/* Loads in a loop, or in one of its loops; the odd one out, somewhere in the middle, differs. */
enum odd { ODD_ADDRESS, ODD_FIELD, ODD_COUNT, ODDS };
struct odd_one {
  struct ct_lower *l;
  uint32_t dram, spm, outer, odd_outer, odd;
  enum odd how;
};

static void odd_load(void *arg, uint32_t pass) {
  const struct odd_one *o = arg;
  const bool odd = pass == o->odd && o->outer == o->odd_outer;
  const uint32_t row = pass + (odd && o->how == ODD_ADDRESS);
  for (uint32_t i = 0; i < (odd && o->how == ODD_COUNT ? 2 : 1); ++i)
    ct_ld(o->l, &(struct ct_dma){.dram = ct_tile_of(o->l, o->dram, row, o->outer),
                                 .spm = ct_tile_of(o->l, o->spm, 0, 0),
                                 .nb = odd && o->how == ODD_FIELD ? 2 : 1});
}

static void odd_loads(void *arg, uint32_t pass) {
  struct odd_one *o = arg;
  o->outer = pass;
  ct_repeat(o->l, 12, odd_load, o);
}

static int loop_with(const struct odd_one *how, bool nested, uint64_t look, char *why,
                     size_t size) {
  struct odd_one o = *how;
  struct ct_codes codes;
  o.l = ct_lower_start(K_ARGS, false);
  assert_non_null(o.l);
  ct_lower_look(o.l, look);
  o.dram = ct_tensor(o.l, &(struct ct_tensor){.name = "a matrix",
                                              .place = CT_IN_DRAM,
                                              .reg = K_OUT,
                                              .size = 1 << 12,
                                              .row = 1,
                                              .col = 32});
  o.spm = words(o.l, "calm words", CT_IN_SPM, M_CALM);
  if (nested)
    ct_repeat(o.l, 10, odd_loads, &o);
  else
    ct_repeat(o.l, 12, odd_load, &o);
  const int err = ct_lower_finish(o.l, "loads", &codes, &(struct ct_why){why, size});
  if (!err) ct_codes_free(&codes);
  return err;
}

/* A loop whose passes are not alike is refused, whichever of them differs: so it is for programs
 * that cost less to look at than CT_LOOK. Of longer ones the first two and the last count. */
static void test_odd_passes_are_found_out(void **state) {
  (void)state;
  char why[256] = "";
  const struct odd_one even = {.odd = UINT32_MAX};
  for (unsigned nested = 0; nested < 2; ++nested) {
    assert_int_equal(loop_with(&even, nested, CT_LOOK, why, sizeof why), CT_OK);
    for (uint32_t odd = 0; odd < 12; ++odd)
      for (enum odd how = ODD_ADDRESS; how < ODDS; ++how) {
        const struct odd_one o = {.odd_outer = nested ? 6 : 0, .odd = odd, .how = how};
        assert_int_equal(loop_with(&o, nested, CT_LOOK, why, sizeof why), CT_ERR_INTERNAL);
        assert_non_null(strstr(why, "do not look alike"));
        const bool seen = !nested && (odd < 2 || odd == 11);
        assert_int_equal(loop_with(&o, nested, 0, why, sizeof why), seen ? CT_ERR_INTERNAL : CT_OK);
      }
  }
}

/* A layer that is wrong on purpose: the race checker must object to some of its programs. */
static void test_faulty_layers_are_found_out(void **state) {
  (void)state;
  ct_rng rng = ct_rng_make(3);
  char why[256];
  for (int fault = CT_NO_FAULT + 1; fault < CT_FAULTS; ++fault) {
    unsigned found = 0, tried = 0;
    for (int i = 0, draws = ct_tb_draws(200); i < draws; ++i) {
      struct kernel k;
      struct ct_codes codes;
      kernel_draw(&k, &rng);
      const struct how how = {.fault = (enum ct_lower_fault)fault, .nth = ct_rng_below(&rng, 4)};
      if (make(&k, &how, &codes, why, sizeof why)) continue;
      ++tried;
      found += !race_free(&codes, 16, why, sizeof why);
      ct_codes_free(&codes);
    }
    print_message("fault %d: %u of %u programs refused\n", fault, found, tried);
    if (found < 3) fail_msg("fault %d is found out in %u of %u programs", fault, found, tried);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_kernels),
                                     cmocka_unit_test(test_random_kernels_simulated),
                                     cmocka_unit_test(test_operands_are_not_awaited_by_tile),
                                     cmocka_unit_test(test_walks_go_on_behind_a_cut),
                                     cmocka_unit_test(test_odd_passes_are_found_out),
                                     cmocka_unit_test(test_faulty_layers_are_found_out)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
