/* SPDX-License-Identifier: Apache-2.0 */
/* The emulator by itself: the manual's example as printed there, and random programs under the
 * sanitizers. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ct_rig.h"
#include "host/lib/isa/ct_disasm.h"

enum { IN_A = CT_RIG_IN, IN_B = CT_RIG_IN + 272, OUT_C = CT_RIG_OUT };

static struct ct_cmd *add(struct ct_gen_prog *p, unsigned code) {
  struct ct_cmd *cmd = &p->cmds[p->count++];
  CT_PUT(cmd, ALL_OP, code);
  return cmd;
}

static struct ct_cmd *add_dma(struct ct_gen_prog *p, unsigned code, unsigned reg, uint32_t spm,
                              uint32_t nb, bool hdr) {
  struct ct_cmd *cmd = add(p, code);
  CT_PUT(cmd, DMA_DRAM_REG, reg);
  CT_PUT(cmd, DMA_SPM, spm);
  CT_PUT(cmd, DMA_HDR, hdr);
  CT_PUT(cmd, DMA_NB, nb);
  CT_PUT(cmd, DMA_S0, 1);
  CT_PUT(cmd, DMA_N1, 1);
  CT_PUT(cmd, DMA_N2, 1);
  return cmd;
}

/* docs/programming.md, "An example". */
static void build_example(struct ct_gen_prog *p, unsigned ctx) {
  memset(p, 0, sizeof *p);
  p->args[0] = ct_rig_unit(ctx, IN_A);
  p->args[1] = ct_rig_unit(ctx, IN_B);
  p->args[2] = ct_rig_unit(ctx, OUT_C);
  struct ct_cmd *cmd = add_dma(p, CT_OP_LD, 1, 0, 16, true);
  CT_PUT(cmd, ALL_SIG0, CT_SEM(0));
  cmd = add_dma(p, CT_OP_LD, 2, 16, 16, true);
  CT_PUT(cmd, ALL_SIG0, CT_SEM(1));
  cmd = add(p, CT_OP_MM);
  CT_PUT(cmd, MM_B, 16);
  CT_PUT(cmd, MM_KT, 1);
  CT_PUT(cmd, MM_NT, 1);
  CT_PUT(cmd, MM_ROWS, 16);
  CT_PUT(cmd, ALL_WAIT0, CT_SEM(0));
  CT_PUT(cmd, ALL_WAIT1, CT_SEM(1));
  CT_PUT(cmd, ALL_SIG1, CT_SEM(2));
  cmd = add(p, CT_OP_VA);
  CT_PUT(cmd, VA_A_SRC, 1);
  CT_PUT(cmd, VA_ROWS, 16);
  CT_PUT(cmd, VA_COLS, 16);
  CT_PUT(cmd, ALL_WAIT0, CT_SEM(2));
  CT_PUT(cmd, ALL_SIG0, CT_SEM(3));
  cmd = add(p, CT_OP_VS);
  CT_PUT(cmd, VS_SPM, 32);
  CT_PUT(cmd, VS_ROW_STRIDE, 4);
  CT_PUT(cmd, VS_ROWS, 16);
  CT_PUT(cmd, ALL_WAIT0, CT_SEM(3));
  CT_PUT(cmd, ALL_SIG0, CT_SEM(4));
  cmd = add_dma(p, CT_OP_ST, 3, 32, 64, false);
  CT_PUT(cmd, ALL_WAIT0, CT_SEM(4));
  add(p, CT_OP_END);
}

static void next_line_is(void *arg, const char *text) {
  char line[256] = "";
  assert_non_null(fgets(line, sizeof line, arg));
  line[strcspn(line, "\n")] = 0;
  assert_string_equal(line, text);
}

static void manual_prints_the_example(void **state) {
  (void)state;
  struct ct_gen_prog *p = test_malloc(sizeof *p);
  FILE *manual = fopen("docs/programming.md", "r");
  char line[512] = "";
  assert_non_null(manual);
  static const char *const marks[] = {"## An example\n", "```\n"};
  for (size_t i = 0; i < 2; ++i) {
    do {
      assert_non_null(fgets(line, sizeof line, manual));
    } while (strcmp(line, marks[i]) != 0);
  }
  build_example(p, 0);
  ct_disasm(p->cmds, p->count, next_line_is, manual);
  next_line_is(manual, "```");
  fclose(manual);
  test_free(p);
}

static double record_value(const uint8_t *record, unsigned row, unsigned i) {
  return ldexp((int8_t)record[16 + 16 * row + i], record[row] - 133);
}

/* Products of blocks are exact in FP32 here: few bits, near exponents. */
static void example_multiplies(void **state) {
  (void)state;
  struct ct_rig rig;
  struct ct_gen_prog *p = test_malloc(sizeof *p);
  ct_rng rng = ct_rng_make(1);
  ct_rig_open(&rig, "emu", &ct_transport_emu, NULL, "dram=8");
  for (unsigned ctx = 0; ctx < 2; ++ctx) {
    uint8_t a[272], b[272];
    float c[256];
    for (unsigned i = 0; i < 272; ++i) {
      a[i] = (uint8_t)(i < 16 ? 125 + ct_rng_below(&rng, 5) : ct_rng_below(&rng, 255) - 127);
      b[i] = (uint8_t)(i < 16 ? 125 + ct_rng_below(&rng, 5) : ct_rng_below(&rng, 255) - 127);
    }
    build_example(p, ctx);
    rig.ops->mem_write(rig.self, ct_rig_addr(ctx, IN_A), a, sizeof a);
    rig.ops->mem_write(rig.self, ct_rig_addr(ctx, IN_B), b, sizeof b);
    const struct ct_rig_job job = {.prog = p, .tag = 42};
    ct_rig_submit(&rig, ctx, &job);
    ct_rig_ring(&rig, ctx);
    const struct ct_rig_cpl cpl = ct_rig_reap(&rig, ctx, 0);
    assert_int_equal(cpl.code, CT_DEV_OK);
    assert_int_equal(cpl.tag, 42);
    assert_int_equal(cpl.rows, 16);
    rig.ops->mem_read(rig.self, ct_rig_addr(ctx, OUT_C), c, sizeof c);
    for (unsigned i = 0; i < 256; ++i) {
      double sum = 0;
      for (unsigned k = 0; k < 16; ++k)
        sum += record_value(a, i / 16, k) * record_value(b, i % 16, k);
      assert_true(c[i] == (float)sum);
    }
  }
  ct_rig_close(&rig);
  test_free(p);
}

/* What the loops of random programs look like. */
struct loops {
  unsigned count, empty, around[CT_NUM_LOOPS + 1]; /* commands of units, by the loops around them */
  unsigned longest;                                /* of the programs, in commands */
};

static void count_loops(struct loops *l, const struct ct_gen_prog *p) {
  unsigned depth = 0, last = CT_OP_NOP;
  for (unsigned i = 0; i < p->count; ++i) {
    const unsigned code = CT_GET(&p->cmds[i], ALL_OP);
    l->count += code == CT_OP_LOOP;
    l->empty += code == CT_OP_ENDL && last == CT_OP_LOOP;
    depth += (code == CT_OP_LOOP) - (code == CT_OP_ENDL);
    assert_in_range(depth, 0, CT_NUM_LOOPS);
    if (code >= CT_OP_LD) ++l->around[depth];
    last = code;
  }
  assert_int_equal(depth, 0);
  if (p->count > l->longest) l->longest = p->count;
}

/* Every command ends well, and the same program gives the same bytes again. */
static void random_programs(void **state) {
  (void)state;
  struct ct_gen_prog *progs = test_calloc(3, sizeof *progs);
  const size_t size = 16 * CT_GEN_OUT_UNITS;
  uint8_t *out = test_calloc(2, size), *in = test_malloc(16 * CT_GEN_IN_UNITS);
  ct_rng rng = ct_rng_make(2);
  struct loops loops = {0};
  for (unsigned round = 0; round < 20; ++round) {
    const unsigned ctx = round % 2, length = round % 4 ? 200 : CT_PROG_MAX - round % 8;
    ct_gen_input(&rng, in);
    ct_gen_setup(&progs[0], ct_rig_unit(ctx, CT_RIG_IN));
    ct_gen_random(&rng, &progs[1], length, ct_rig_unit(ctx, CT_RIG_IN),
                  ct_rig_unit(ctx, CT_RIG_OUT));
    assert_int_equal(progs[1].count, length);
    count_loops(&loops, &progs[1]);
    ct_gen_dump(&progs[2], ct_rig_unit(ctx, CT_RIG_OUT));
    for (unsigned again = 0; again < 2; ++again) {
      struct ct_rig rig;
      ct_rig_open(&rig, "emu", &ct_transport_emu, NULL, again ? "dram=8,spm=8192" : "dram=8");
      rig.ops->mem_write(rig.self, ct_rig_addr(ctx, CT_RIG_IN), in, 16 * CT_GEN_IN_UNITS);
      for (unsigned j = 0; j < 3; ++j) {
        const struct ct_rig_job job = {.prog = &progs[j], .tag = j};
        ct_rig_submit(&rig, ctx, &job);
        ct_rig_ring(&rig, ctx);
        assert_int_equal(ct_rig_reap(&rig, ctx, 0).code, CT_DEV_OK);
      }
      rig.ops->mem_read(rig.self, ct_rig_addr(ctx, CT_RIG_OUT), out + again * size, size);
      ct_rig_close(&rig);
    }
    assert_memory_equal(out, out + size, size);
  }
  printf("  %u loops, %u of them empty; commands in 0 to 4 loops: %u %u %u %u %u\n", loops.count,
         loops.empty, loops.around[0], loops.around[1], loops.around[2], loops.around[3],
         loops.around[4]);
  assert_int_equal(loops.longest, CT_PROG_MAX);
  assert_true(loops.count > 100 && loops.empty > 10);
  for (unsigned i = 1; i <= CT_NUM_LOOPS; ++i)
    assert_true(loops.around[i] > 5);
  test_free(progs);
  test_free(out);
  test_free(in);
}

struct lines {
  char text[16][CT_DISASM_MAX];
  unsigned count;
};

static void keep_line(void *arg, const char *text) {
  struct lines *l = arg;
  snprintf(l->text[l->count++], CT_DISASM_MAX, "%s", text);
}

/* What no assembler would write. */
static void disassembles_anything(void **state) {
  (void)state;
  struct ct_cmd cmds[16] = {{{0}}};
  struct lines *l = test_calloc(1, sizeof *l);
  CT_PUT(&cmds[0], ALL_OP, CT_OP_ENDL);
  CT_PUT(&cmds[1], ALL_OP, CT_OP_LOOP);
  CT_PUT(&cmds[1], CTL_COUNT, 3);
  CT_PUT(&cmds[1], CTL_COUNT_REG, 9);
  CT_PUT(&cmds[2], ALL_OP, 0x3f);
  cmds[2].w[7] = 0xabcdef;
  CT_PUT(&cmds[3], ALL_OP, CT_OP_ADDI);
  CT_PUT(&cmds[3], ADDI_RD1, 5);
  CT_PUT(&cmds[3], ADDI_RS1, 6);
  CT_PUT(&cmds[3], ADDI_IMM1, (uint32_t)-7);
  CT_PUT(&cmds[3], ADDI_RD3, 1);
  CT_PUT(&cmds[3], ADDI_IMM3, 0x80000000u);
  CT_PUT(&cmds[4], ALL_OP, CT_OP_VA);
  CT_PUT(&cmds[4], VA_SB, 0x7fc00000);
  CT_PUT(&cmds[4], VA_SC, 0x3f000000);
  CT_PUT(&cmds[4], ALL_SIG1, 31);
  cmds[4].w[7] = 5;
  CT_PUT(&cmds[5], ALL_OP, CT_OP_ENDL);
  CT_PUT(&cmds[6], ALL_OP, CT_OP_ST);
  CT_PUT(&cmds[6], DMA_DRAM, 0xffffffff);
  CT_PUT(&cmds[6], DMA_D1, 0xffffff);
  CT_PUT(&cmds[6], DMA_S2, 0x80000);
  ct_disasm(cmds, 7, keep_line, l);
  assert_int_equal(l->count, 7);
  assert_string_equal(l->text[0], "   0  ENDL");
  assert_string_equal(l->text[1], "   1  LOOP  Count=r9+3");
  assert_string_equal(
      l->text[2],
      "   2    ?0x3f  0000003f 00000000 00000000 00000000 00000000 00000000 00000000 00abcdef");
  assert_string_equal(l->text[3], "   3    ADDI  r5 = r6 - 7, r1 = -2147483648");
  assert_string_equal(l->text[4],
                      "   4    VA    Sb=0x7fc00000 Sc=0.5; sig1 s15; reserved word7=0x00000005");
  assert_string_equal(l->text[5], "   5  ENDL");
  assert_string_equal(l->text[6], "   6  ST    Dram=0xffffffff Spm=0x0 D1=-1 S2=-524288");
  /* Whatever the bits, the line ends within the buffer. */
  ct_rng rng = ct_rng_make(3);
  for (unsigned i = 0; i < 5000; ++i) {
    char text[CT_DISASM_MAX];
    ct_rng_fill(&rng, &cmds[0], sizeof cmds[0]);
    const size_t size = 1 + ct_rng_below(&rng, sizeof text);
    const size_t length = ct_disasm_cmd(&cmds[0], text, size);
    assert_int_equal(length, strlen(text));
    assert_true(length < size && length + 1 < CT_DISASM_MAX);
  }
  test_free(l);
}

/* Fields take what fits them, and give it back. */
static void fields_hold_their_range(void **state) {
  (void)state;
  for (unsigned f = 0; f < CT_NUM_FIELDS; ++f) {
    const struct ct_field_info *info = &ct_fields[f];
    struct ct_cmd cmd, bytes;
    uint8_t buf[CT_CMD_BYTES];
    const bool is_int = info->kind == CT_KIND_INT;
    const int64_t range = INT64_C(1) << info->width, max = is_int ? range / 2 - 1 : range - 1;
    const int64_t min = is_int ? -range / 2 : 0;
    memset(&cmd, 0xff, sizeof cmd);
    assert_false(ct_cmd_set(&cmd, (enum ct_field_id)f, max + 1));
    assert_false(ct_cmd_set(&cmd, (enum ct_field_id)f, min - 1));
    assert_true(ct_cmd_set(&cmd, (enum ct_field_id)f, min));
    const uint32_t got = ct_cmd_get(&cmd, (enum ct_field_id)f);
    assert_true((is_int ? ct_sign_extend(got, info->width) : (int64_t)got) == min);
    ct_cmd_to_bytes(&cmd, buf);
    bytes = ct_cmd_from_bytes(buf);
    assert_memory_equal(&bytes, &cmd, sizeof cmd);
    unsigned zeros = 0;
    for (unsigned b = 0; b < 256; ++b)
      zeros += !(cmd.w[b / 32] >> b % 32 & 1);
    assert_int_equal(zeros, is_int ? info->width - 1 : info->width);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(manual_prints_the_example), cmocka_unit_test(example_multiplies),
      cmocka_unit_test(random_programs),           cmocka_unit_test(disassembles_anything),
      cmocka_unit_test(fields_hold_their_range),
  };
  ct_tb_seed();
  return cmocka_run_group_tests_name("emulator", tests, NULL, NULL);
}
