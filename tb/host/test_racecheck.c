/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The race checker itself: every semaphore a program waits for is needed. Taking any one wait away
 * (and the signals with it) has to make the checker object, or the wait was useless; and programs
 * damaged in other ways do not pass either.
 */
#include <stdlib.h>
#include <string.h>

#include "coltrain/coltrain.h"
#include "ct_prog.h"
#include "ct_racecheck.h"
#include "harness/ct_tb.h"
#include "tb/system/ct_gen.h"

enum { ALL = 0xffff };

static const enum ct_field_id sem_fields[] = {CT_F_ALL_WAIT0, CT_F_ALL_WAIT1, CT_F_ALL_WAIT2,
                                              CT_F_ALL_SIG0, CT_F_ALL_SIG1};

/* Forgets semaphore s wherever it is named. */
static void forget(struct ct_cmd *cmd, size_t count, unsigned s) {
  for (size_t i = 0; i < count; ++i) {
    if (ct_op_find(CT_GET(&cmd[i], ALL_OP))->group == CT_GROUP_ADDI) continue;
    for (size_t f = 0; f < 5; ++f)
      if (ct_cmd_get(&cmd[i], sem_fields[f]) == CT_SEM(s)) ct_cmd_set(&cmd[i], sem_fields[f], 0);
  }
}

static bool uses(const struct ct_cmd *cmd, size_t count, unsigned s) {
  for (size_t i = 0; i < count; ++i)
    for (size_t f = 0; f < 3; ++f)
      if (ct_cmd_get(&cmd[i], sem_fields[f]) == CT_SEM(s)) return true;
  return false;
}

/* How many of these semaphores of the program (bits) can be spared. */
static unsigned count_spared(struct ct_racecheck check, const struct ct_code *code, unsigned sems) {
  char why[256];
  unsigned spared = 0;
  struct ct_cmd *damaged = malloc(code->count * sizeof *damaged);
  if (!ct_racecheck(&check, NULL, why, sizeof why)) fail_msg("%s", why);
  for (unsigned s = 0; s < CT_NUM_SEMS; ++s) {
    if (!(sems >> s & 1) || !uses(code->cmd, code->count, s)) continue;
    memcpy(damaged, code->cmd, code->count * sizeof *damaged);
    forget(damaged, code->count, s);
    struct ct_racecheck worse = check;
    worse.cmds = damaged;
    bool fine = ct_racecheck(&worse, NULL, why, sizeof why);
    for (worse.eager = 1; fine && worse.eager <= 6; ++worse.eager)
      fine = ct_racecheck(&worse, NULL, why, sizeof why);
    if (fine) print_message("semaphore %u can be spared\n", s);
    spared += fine;
  }
  free(damaged);
  return spared;
}

/* None of them can. */
static void check_needed(struct ct_racecheck check, const struct ct_code *code, unsigned sems) {
  assert_int_equal(count_spared(check, code, sems), 0);
}

static struct ct_racecheck gemm_check(struct ct_code *code) {
  const struct ct_gemm shape = {.m = 130, .n = 100, .k = 300, .pitch = 25, .spm_words = 8000};
  assert_int_equal(ct_prog_gemm(&shape, code, NULL), 0);
  return (struct ct_racecheck){.cmds = code->cmd,
                               .count = code->count,
                               .args = {0, 20000, 40000},
                               .spm_words = 8000,
                               .dram_units = 60000,
                               .depth = 16};
}

/* Shapes whose panels go round, and one that stays in the scratchpad. In a window that holds little
 * more than two panels of A, waiting for tiles of the result may imply the wait for a panel. */
static void test_products_need_every_semaphore(void **state) {
  (void)state;
  static const struct ct_gemm shapes[] = {
      {.m = 130, .n = 100, .k = 300, .pitch = 25, .spm_words = 2000},
      {.m = 40, .n = 300, .k = 900, .pitch = 75, .spm_words = 8000},
      {.m = 300, .n = 300, .k = 70, .pitch = 75, .spm_words = 3000},
      {.m = 300, .n = 300, .k = 70, .pitch = 75, .spm_words = 32768},
      {.m = 300, .n = 300, .k = 70, .spm_words = 32768, .result = CT_GEMM_HBFP8},
      {.m = 200, .n = 200, .k = 600, .spm_words = 32768, .result = CT_GEMM_HBFP8},
      {.m = 64, .n = 50, .k = 70, .spm_words = 32768, .result = CT_GEMM_HBFP8},
      {.m = 64, .n = 500, .k = 600, .pitch = 125, .spm_words = 32768},
      {.m = 64, .n = 500, .k = 600, .spm_words = 32768, .result = CT_GEMM_HBFP8},
  };
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; ++i) {
    struct ct_code code;
    assert_int_equal(ct_prog_gemm(&shapes[i], &code, NULL), 0);
    const struct ct_racecheck check = {.cmds = code.cmd,
                                       .count = code.count,
                                       .args = {0, 40000, 80000},
                                       .spm_words = shapes[i].spm_words,
                                       .dram_units = 200000,
                                       .depth = 16};
    check_needed(check, &code, ALL);
    free(code.cmd);
  }
}

static void test_steps_need_every_semaphore(void **state) {
  (void)state;
  const struct ct_mlp net = {.layers = 3, .width = {64, 128, 64, 10}};
  const struct ct_train shape = {.net = &net, .batch = 32, .spm_words = 32768};
  struct ct_codes codes;
  assert_int_equal(ct_prog_train(&shape, &codes, NULL), CT_OK);
  for (size_t i = 0; i < codes.count; ++i) {
    const struct ct_racecheck check = {.cmds = codes.job[i].cmd,
                                       .count = codes.job[i].count,
                                       .spm_words = 32768,
                                       .args = {0, 2000, 10000, 40000, 90000},
                                       .dram_units = 100000,
                                       .depth = 16,
                                       .spm_holds_data = i > 0};
    /* A ring's slots are always given back by a signal, whatever else may imply it. */
    assert_in_range(count_spared(check, &codes.job[i], ALL), 0, 2);
  }
  ct_codes_free(&codes);
}

/* Semaphores that commands of one kind signal and commands of another wait for. */
static unsigned sems_between(const struct ct_code *code, uint32_t from, uint32_t to) {
  unsigned given = 0, taken = 0;
  for (size_t i = 0; i < code->count; ++i)
    for (size_t f = 0; f < 5; ++f) {
      const uint32_t op = CT_GET(&code->cmd[i], ALL_OP);
      if (op != from && op != to) continue;
      const unsigned sem = (unsigned)ct_cmd_get(&code->cmd[i], sem_fields[f]);
      if (sem && f < 3 && op == to) taken |= 1u << (sem - CT_SEM(0));
      if (sem && f >= 3 && op == from) given |= 1u << (sem - CT_SEM(0));
    }
  return given & taken;
}

/* panels: those that tell loads that a panel is free. */
static void check_requests(uint32_t window, bool panels) {
  const struct ct_mlp net = {.layers = 3, .width = {64, 400, 300, 10}};
  const struct ct_infer shape = {.net = &net, .rows = 2, .spm_words = window};
  struct ct_code code;
  assert_int_equal(ct_prog_infer(&shape, &code, NULL), 0);
  const struct ct_racecheck check = {.cmds = code.cmd,
                                     .count = code.count,
                                     .spm_words = window,
                                     .args = {0, 80000, 80100, 80200},
                                     .dram_units = 80300,
                                     .depth = 16};
  const unsigned free_panels = sems_between(&code, CT_OP_VS, CT_OP_LD);
  assert_int_equal(free_panels != 0, panels);
  check_needed(check, &code, panels ? free_panels : ALL);
  free(code.cmd);
}

/* In a small window panels go round, and waiting for them implies other waits. */
static void test_requests_need_every_semaphore(void **state) {
  (void)state;
  check_requests(32768, false);
  check_requests(8192, true);
}

/* Damages one field and expects a certain complaint. */
static void check_complaint(uint32_t op, enum ct_field_id field, int64_t value, const char *part) {
  char why[256] = "";
  struct ct_code code;
  const struct ct_racecheck check = gemm_check(&code);
  for (size_t i = 0; i < code.count; ++i)
    if (CT_GET(&code.cmd[i], ALL_OP) == op) ct_cmd_set(&code.cmd[i], field, value);
  assert_false(ct_racecheck(&check, NULL, why, sizeof why));
  if (!strstr(why, part)) fail_msg("\"%s\" does not speak of \"%s\"", why, part);
  free(code.cmd);
}

static void test_complaints(void **state) {
  (void)state;
  check_complaint(CT_OP_VS, CT_F_VS_SPM, 7999, "outside the window");
  check_complaint(CT_OP_ST, CT_F_DMA_DRAM, 59999, "outside the memory");
  check_complaint(CT_OP_LD, CT_F_DMA_S0, 2, "nothing has written");
  check_complaint(CT_OP_VA, CT_F_ALL_SIG0, 0, "stuck");
  check_complaint(CT_OP_MM, CT_F_ALL_SIG0, CT_SEM(0), "two queues");
  check_complaint(CT_OP_END, CT_F_ALL_OP, CT_OP_NOP, "no END");
}

/* ---- Compressed groups ---- */

enum { INDEX = 1000 };

/* Two groups of a tile, whose index unit orders a store and loads: the first of these may free
 * them. */
static void add_groups(struct ct_cmd *cmd, uint32_t op, uint32_t spm, bool frees) {
  *cmd = (struct ct_cmd){{0}};
  CT_PUT(cmd, ALL_OP, op);
  CT_PUT(cmd, DMA_COMP, 1);
  CT_PUT(cmd, DMA_DRAM, INDEX);
  CT_PUT(cmd, DMA_SPM, spm);
  CT_PUT(cmd, DMA_NB, 16);
  CT_PUT(cmd, DMA_N1, 2 | 120 << 4);
  CT_PUT(cmd, DMA_S1, 16);
  CT_PUT(cmd, DMA_N2, 1);
  CT_PUT(cmd, DMA_FREE, frees);
}

static void comp_check(bool waits, uint32_t words, const char *complaint) {
  struct ct_cmd cmd[4] = {{{0}}};
  char why[256] = "";
  CT_PUT(&cmd[0], ALL_OP, CT_OP_LD); /* the words of both groups */
  CT_PUT(&cmd[0], DMA_NB, 32);
  CT_PUT(&cmd[0], DMA_S0, 1);
  CT_PUT(&cmd[0], DMA_N1, 1);
  CT_PUT(&cmd[0], DMA_N2, 1);
  CT_PUT(&cmd[0], ALL_SIG0, CT_SEM(0));
  add_groups(&cmd[1], CT_OP_ST, 0, false);
  CT_PUT(&cmd[1], ALL_WAIT0, CT_SEM(0));
  CT_PUT(&cmd[1], ALL_SIG0, CT_SEM(1));
  add_groups(&cmd[2], CT_OP_LD, 64, true);
  if (waits) CT_PUT(&cmd[2], ALL_WAIT0, CT_SEM(1));
  CT_PUT(&cmd[3], ALL_OP, CT_OP_END);
  const struct ct_racecheck check = {
      .cmds = cmd, .count = 4, .spm_words = words, .dram_units = INDEX + 1, .depth = 16};
  const bool fine = ct_racecheck(&check, NULL, why, sizeof why);
  assert_int_equal(fine, !complaint);
  if (complaint && !strstr(why, complaint)) fail_msg("%s", why);
}

static void test_compressed_groups(void **state) {
  (void)state;
  comp_check(true, 96, NULL);
  comp_check(false, 96, "DRAM unit 1000");
  comp_check(true, 95, "outside the window");
}

/* ---- Programs by hand ---- */

enum {
  OWN = 32
}; /* words that are a unit's own, from OWN * operation on; so are its register, ... */

/* A command that only its semaphores order against others: s (0: none, else number + 1). */
struct small {
  uint32_t op;
  unsigned wait0, wait1, wait2, sig0, sig1;
  uint32_t at;  /* instead of its own words */
  unsigned reg; /* instead of its own tile register */
};

static struct ct_cmd small_cmd(const struct small *s) {
  struct ct_cmd cmd = {{0}};
  const unsigned sem[5] = {s->wait0, s->wait1, s->wait2, s->sig0, s->sig1};
  const uint32_t at = s->at ? s->at : OWN * s->op, reg = s->reg ? s->reg : s->op;
  CT_PUT(&cmd, ALL_OP, s->op);
  for (size_t f = 0; f < 5; ++f)
    if (sem[f]) ct_cmd_set(&cmd, sem_fields[f], CT_SEM(sem[f] - 1));
  switch (s->op) {
    case CT_OP_LOOP:
      CT_PUT(&cmd, CTL_COUNT, 2);
      break;
    case CT_OP_LD:
    case CT_OP_ST:
      CT_PUT(&cmd, DMA_DRAM, OWN * s->op);
      CT_PUT(&cmd, DMA_SPM, at);
      CT_PUT(&cmd, DMA_NB, 1);
      CT_PUT(&cmd, DMA_S0, 1);
      CT_PUT(&cmd, DMA_N1, 1);
      CT_PUT(&cmd, DMA_N2, 1);
      break;
    case CT_OP_MM:
      CT_PUT(&cmd, MM_A, at);
      CT_PUT(&cmd, MM_B, OWN * s->op);
      CT_PUT(&cmd, MM_KT, 1);
      CT_PUT(&cmd, MM_NT, 1);
      CT_PUT(&cmd, MM_ROWS, 1);
      break;
    case CT_OP_VL:
      CT_PUT(&cmd, VL_TD, reg);
      CT_PUT(&cmd, VL_SPM, at);
      CT_PUT(&cmd, VL_ROWS, 1);
      break;
    case CT_OP_VA:
      CT_PUT(&cmd, VA_TD, reg);
      CT_PUT(&cmd, VA_TA, reg);
      CT_PUT(&cmd, VA_ROWS, 1);
      break;
    case CT_OP_VS:
      CT_PUT(&cmd, VS_TS, reg);
      CT_PUT(&cmd, VS_SPM, at);
      CT_PUT(&cmd, VS_ROWS, 1);
      break;
    default:
      break;
  }
  return cmd;
}

/* part: what the complaint says; NULL: there is none. */
static void check_small(const char *name, const struct small *s, size_t n, const char *part) {
  struct ct_cmd cmd[16] = {{{0}}};
  char why[256] = "";
  struct ct_racecheck check = {.cmds = cmd,
                               .count = n + 1,
                               .spm_words = 4096,
                               .dram_units = 4096,
                               .depth = 16,
                               .spm_holds_data = true};
  assert_true(n < 16);
  for (size_t i = 0; i < n; ++i)
    cmd[i] = small_cmd(&s[i]);
  CT_PUT(&cmd[n], ALL_OP, CT_OP_END);
  for (check.eager = 0; check.eager <= 6; ++check.eager) {
    const bool fine = ct_racecheck(&check, NULL, why, sizeof why);
    if (fine && part) fail_msg("%s: nothing is found wrong", name);
    if (!fine && !part) fail_msg("%s: %s", name, why);
    if (part && !strstr(why, part)) fail_msg("%s: \"%s\" is not \"%s\"", name, why, part);
  }
}
#define SMALL(name, part, ...)                           \
  check_small(name, (const struct small[]){__VA_ARGS__}, \
              sizeof((const struct small[]){__VA_ARGS__}) / sizeof(struct small), part)

/* From LD and VL to VA and VS: semaphore 1. */
#define LD_GIVES \
  { CT_OP_LD, .sig1 = 1 }
#define VL_TAKES \
  { CT_OP_VL, .wait0 = 1, .sig0 = 2 }
#define VA_KNOWS \
  { CT_OP_VA, .wait0 = 2, .sig0 = 3 }
#define VS_KNOWS \
  { CT_OP_VS, .wait0 = 3 }
#define VA_GIVES \
  { CT_OP_VA, .reg = 9, .sig0 = 1 }
#define VS_TAKES \
  { CT_OP_VS, .reg = 9, .wait0 = 1 }

static void test_semaphores_are_taken_over(void **state) {
  (void)state;
  SMALL("take-over", NULL, LD_GIVES, VL_TAKES, VA_KNOWS, VS_KNOWS, VA_GIVES, VS_TAKES);
  SMALL("and back", NULL, LD_GIVES, VL_TAKES, VA_KNOWS, VS_KNOWS, VA_GIVES,
        {CT_OP_VS, .reg = 9, .wait0 = 1, .sig0 = 4, .sig1 = 5}, {CT_OP_LD, .wait1 = 4},
        {CT_OP_VL, .wait0 = 5}, LD_GIVES, VL_TAKES);
  SMALL("the new giver does not know", "signalled by two queues", LD_GIVES, VL_TAKES,
        {CT_OP_VS, .wait0 = 2}, VA_GIVES, VS_TAKES);
  SMALL("the new taker does not know", "awaited by two queues", LD_GIVES, VL_TAKES, VA_KNOWS,
        VA_GIVES, VS_TAKES);
  SMALL("the new taker learns it only with the token", "awaited by two queues", LD_GIVES, VL_TAKES,
        {CT_OP_VA, .reg = 9, .wait0 = 2, .sig0 = 1}, VS_TAKES);
  SMALL("a token is left over", "race", {CT_OP_LD, .sig0 = 1, .sig1 = 1}, VL_TAKES, VA_KNOWS,
        VS_KNOWS, VA_GIVES, VS_TAKES);
  SMALL("the old taker comes again", "awaited by two queues", LD_GIVES, VL_TAKES, VA_KNOWS,
        VS_KNOWS, {CT_OP_VA, .sig0 = 1, .sig1 = 1}, {CT_OP_VS, .wait0 = 1}, {CT_OP_VL, .wait0 = 1});
  SMALL("in a loop", "by two queues", {.op = CT_OP_LOOP}, LD_GIVES, VL_TAKES, VA_KNOWS, VS_KNOWS,
        VA_GIVES, VS_TAKES, {.op = CT_OP_ENDL});
}

/* MM reads operands ahead of tiles that wait. */
static void test_products_read_ahead(void **state) {
  (void)state;
  enum { WORDS = 4000 }; /* that VS writes */
  SMALL("reads wait", NULL, {CT_OP_VS, .at = WORDS, .sig0 = 1},
        {CT_OP_MM, .at = WORDS, .wait0 = 1});
  SMALL("only tiles wait", "race", {CT_OP_VS, .at = WORDS, .sig0 = 1},
        {CT_OP_MM, .at = WORDS, .wait2 = 1});
  SMALL("tiles of the command before wait", "race", {CT_OP_VS, .at = WORDS, .sig0 = 1},
        {CT_OP_MM, .wait2 = 1}, {CT_OP_MM, .at = WORDS});
  SMALL("a tile tells what it waited for", NULL, {CT_OP_VS, .at = WORDS, .sig0 = 1},
        {CT_OP_MM, .wait2 = 1, .sig1 = 2}, {CT_OP_LD, .at = WORDS, .wait1 = 2});
  SMALL("reads do not", "race", {CT_OP_VS, .at = WORDS, .sig0 = 1},
        {CT_OP_MM, .wait2 = 1, .sig0 = 2}, {CT_OP_LD, .at = WORDS, .wait1 = 2});
  SMALL("reads are signalled before the tile", "signalled by two queues", {CT_OP_MM, .sig1 = 1},
        {CT_OP_VA, .wait0 = 1, .sig0 = 2}, {CT_OP_LD, .wait1 = 2}, {CT_OP_MM, .sig0 = 1},
        {CT_OP_LD, .wait1 = 1});
  SMALL("they know the tile", NULL, {CT_OP_MM, .sig1 = 1}, {CT_OP_VA, .wait0 = 1, .sig0 = 2},
        {CT_OP_LD, .wait1 = 2, .sig1 = 3}, {CT_OP_MM, .wait0 = 3, .sig0 = 1},
        {CT_OP_LD, .wait1 = 1});
}

/* The random programs of the whole-core benches, walks and loops among them. */
static void test_random_programs_are_race_free(void **state) {
  (void)state;
  ct_rng rng = ct_rng_make(7);
  struct ct_gen_prog *p = test_malloc(sizeof *p);
  char why[256];
  unsigned walks = 0;
  for (unsigned i = 0; i < 150; ++i) {
    memset(p, 0, sizeof *p);
    ct_gen_random(&rng, p, 20 + ct_rng_below(&rng, 200), 0, CT_GEN_IN_UNITS);
    struct ct_racecheck check = {.cmds = p->cmds,
                                 .count = p->count,
                                 .spm_words = CT_GEN_SPM,
                                 .dram_units = CT_GEN_IN_UNITS + CT_GEN_OUT_UNITS,
                                 .depth = 16,
                                 .spm_holds_data = true};
    memcpy(check.args, p->args, sizeof check.args);
    for (check.eager = 0; check.eager <= 6; ++check.eager)
      if (!ct_racecheck(&check, NULL, why, sizeof why)) fail_msg("program %u: %s", i, why);
    for (unsigned j = 0; j < p->count; ++j)
      walks += CT_GET(&p->cmds[j], ALL_OP) == CT_OP_MM && CT_GET(&p->cmds[j], MM_WALK);
  }
  assert_true(walks > 100);
  test_free(p);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_products_need_every_semaphore),
                                     cmocka_unit_test(test_steps_need_every_semaphore),
                                     cmocka_unit_test(test_requests_need_every_semaphore),
                                     cmocka_unit_test(test_complaints),
                                     cmocka_unit_test(test_compressed_groups),
                                     cmocka_unit_test(test_semaphores_are_taken_over),
                                     cmocka_unit_test(test_products_read_ahead),
                                     cmocka_unit_test(test_random_programs_are_race_free)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
