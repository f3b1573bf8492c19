/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Convolution layers on the emulator, on every path: to the bit what plain loops give, and within
 * FP32 of double precision. The programs are race-free.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ct_conv.h"
#include "ct_rig.h"
#include "host/ct_racecheck.h"
#include "host/emu/ct_path.h"

static const char *const names[] = {"plain", "avx2", "avx512"};
static const char *const pass_names[] = {"forward", "input gradient", "weight gradient"};

struct bench {
  struct ct_conv_data data;
  struct ct_conv_result want;
  struct ct_gen_prog prog;
  uint8_t in[CT_CONV_WORDS * 17], out[CT_CONV_TILES * 1024];
};

static uint32_t get(const uint8_t *at) {
  return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static void run(struct bench *b, const char *path, size_t size, unsigned tiles) {
  struct ct_rig rig;
  char args[64];
  snprintf(args, sizeof args, "dram=8,path=%s", path);
  ct_rig_open(&rig, args, &ct_transport_emu, NULL, args);
  ct_rig_cwrite(&rig, 1, CT_CREG_SPM_SIZE, CT_CONV_WORDS);
  rig.ops->mem_write(rig.self, ct_rig_addr(1, CT_RIG_IN), b->in, size);
  const struct ct_rig_job job = {.prog = &b->prog};
  ct_rig_submit(&rig, 1, &job);
  ct_rig_ring(&rig, 1);
  assert_int_equal(ct_rig_reap(&rig, 1, 0).code, CT_DEV_OK);
  rig.ops->mem_read(rig.self, ct_rig_addr(1, CT_RIG_OUT), b->out, (size_t)1024 * tiles);
  ct_rig_close(&rig);
}

/* Where the device and the loops agree they must agree with the mathematics, too. */
static void compare(const struct bench *b, const char *what, unsigned tiles, bool plain) {
  for (unsigned i = 0; i < 256 * tiles; ++i) {
    const unsigned t = i / 256, r = i / 16 % 16, j = i % 16;
    if (r >= b->want.rows[t]) continue;
    const uint32_t got = get(b->out + (size_t)4 * i);
    float value;
    memcpy(&value, &got, sizeof value);
    if (got != b->want.bits[t][r][j])
      fail_msg("%s: tile %u (%u, %u) is %08x, not %08x", what, t, r, j, (unsigned)got,
               (unsigned)b->want.bits[t][r][j]);
    if (plain && !(fabs((double)value - b->want.value[t][r][j]) <= b->want.radius[t][r][j]))
      fail_msg("%s: tile %u (%u, %u) is %g, and %g +- %g is right", what, t, r, j, (double)value,
               b->want.value[t][r][j], b->want.radius[t][r][j]);
  }
}

static void check_races(const struct bench *b, const char *what) {
  char why[256];
  struct ct_racecheck check = {.cmds = b->prog.cmds,
                               .count = b->prog.count,
                               .spm_words = CT_CONV_WORDS,
                               .dram_units = (CT_RIG_MIB << 20) / 16,
                               .depth = 16};
  for (check.eager = 0; check.eager <= 6; ++check.eager)
    if (!ct_racecheck(&check, NULL, why, sizeof why)) fail_msg("%s: %s", what, why);
}

static void one_pass(struct bench *b, const struct ct_conv *c, enum ct_conv_pass pass,
                     ct_rng *rng) {
  char what[96];
  const bool plain = ct_rng_percent(rng, 50);
  snprintf(what, sizeof what, "%s, %s", c->name, pass_names[pass]);
  ct_conv_draw(c, rng, plain, &b->data);
  ct_conv_program(c, &b->data, pass, ct_rig_unit(1, CT_RIG_IN), ct_rig_unit(1, CT_RIG_OUT),
                  &b->prog);
  check_races(b, what);
  const unsigned tiles = ct_conv_expect(c, &b->data, pass, &b->want);
  const size_t size = ct_conv_records(&b->data, b->in);
  for (unsigned i = 0; i < sizeof names / sizeof *names; ++i) {
    if (!ct_path_find(names[i])) continue;
    memset(b->out, 0, sizeof b->out);
    run(b, names[i], size, tiles);
    compare(b, what, tiles, plain);
  }
}

static void layers(void **state) {
  (void)state;
  struct bench *b = test_calloc(1, sizeof *b);
  ct_rng rng = ct_rng_make(11);
  for (unsigned round = 0; round < 2; ++round)
    for (unsigned i = 0; i < ct_conv_layer_count; ++i)
      for (unsigned pass = 0; pass < CT_CONV_PASSES; ++pass)
        one_pass(b, &ct_conv_layers[i], (enum ct_conv_pass)pass, &rng);
  test_free(b);
}

static void ends(void **state) {
  (void)state;
  struct ct_gen_prog *prog = test_calloc(1, sizeof *prog);
  struct ct_rig rig;
  ct_rig_open(&rig, "emu", &ct_transport_emu, NULL, "dram=8");
  ct_rig_cwrite(&rig, 0, CT_CREG_SPM_SIZE, CT_CONV_ENDS_WINDOW);
  for (unsigned i = 0; i < ct_conv_end_count; ++i) {
    const struct ct_conv_end *want = &ct_conv_ends[i];
    const struct ct_rig_job job = {.prog = prog};
    ct_conv_end_program(i, prog);
    ct_rig_submit(&rig, 0, &job);
    ct_rig_ring(&rig, 0);
    const struct ct_rig_cpl cpl = ct_rig_reap(&rig, 0, 0);
    if (cpl.code != want->code || cpl.addr != want->addr)
      fail_msg("%s: code %u, address %x", want->what, (unsigned)cpl.code, (unsigned)cpl.addr);
  }
  ct_rig_close(&rig);
  test_free(prog);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(layers), cmocka_unit_test(ends)};
  return cmocka_run_group_tests_name("convolution on the emulator", tests, NULL, NULL);
}
