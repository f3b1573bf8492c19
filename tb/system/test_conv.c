/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Convolution layers on the cores, with a memory that stalls: forward, input gradient and weight
 * gradient leave the bytes of the emulator, which test_emu_conv.c holds against plain loops. Both
 * contexts at once, each with a layer of its own.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ct_conv.h"
#include "ct_pair.h"

enum { LIMIT = 3000000, HALF = 2048 /* words of a context's window */ };

struct work {
  struct ct_conv_data data;
  struct ct_gen_prog prog;
  uint8_t in[CT_CONV_WORDS * 17];
};

/* A pass of a layer in one context; the layer's words lie in its half of the scratchpad. */
static void submit(struct ct_pair *pair, struct work *w, unsigned ctx, const struct ct_conv *c,
                   enum ct_conv_pass pass, ct_rng *rng) {
  ct_conv_draw(c, rng, false, &w->data);
  assert_true(w->data.end <= HALF);
  ct_conv_program(c, &w->data, pass, ct_rig_unit(ctx, CT_RIG_IN), ct_rig_unit(ctx, CT_RIG_OUT),
                  &w->prog);
  ct_pair_mem_write(pair, ct_rig_addr(ctx, CT_RIG_IN), w->in, ct_conv_records(&w->data, w->in));
  const struct ct_rig_job job = {.prog = &w->prog, .tag = pass};
  ct_pair_submit(pair, ctx, &job);
}

static bool reap(struct ct_pair *pair, unsigned ctx, const char *what) {
  struct ct_rig_cpl cpl[2];
  for (unsigned d = 0; d < 2; ++d)
    cpl[d] = ct_rig_reap(&pair->rig[d], ctx, LIMIT);
  assert_int_equal(cpl[0].code, CT_DEV_OK);
  return ct_same_completions(&cpl[0], &cpl[1]) && ct_same_out(pair, ctx, what);
}

static void layers(void **state) {
  const struct ct_core *core = *state;
  struct work *w = test_calloc(2, sizeof *w);
  ct_rng rng = ct_rng_make(21 + (uint64_t)(core - ct_cores));
  struct ct_pair pair;
  bool same = true;
  ct_pair_open(&pair, core, "stall=25,latency=20,seed=5");
  for (unsigned c = 0; c < 2; ++c) {
    ct_pair_cwrite(&pair, c, CT_CREG_SPM_BASE, HALF * c);
    ct_pair_cwrite(&pair, c, CT_CREG_SPM_SIZE, HALF);
  }
  assert_true(ct_rig_read(&pair.rig[0], CT_REG_FEATURES) & CT_FEATURE_CONV);
  for (unsigned i = 0; i < CT_CONV_PASSES * ct_conv_layer_count && same; ++i) {
    const struct ct_conv *mine = &ct_conv_layers[i / CT_CONV_PASSES];
    const struct ct_conv *other = &ct_conv_layers[ct_rng_below(&rng, ct_conv_layer_count)];
    submit(&pair, &w[0], i % 2, mine, (enum ct_conv_pass)(i % CT_CONV_PASSES), &rng);
    submit(&pair, &w[1], 1 - i % 2, other, (enum ct_conv_pass)ct_rng_below(&rng, CT_CONV_PASSES),
           &rng);
    for (unsigned c = 0; c < 2; ++c)
      ct_pair_ring(&pair, c);
    for (unsigned c = 0; c < 2; ++c)
      same &= reap(&pair, c, mine->name);
  }
  same = same && ct_same_counters(&pair, true);
  ct_pair_close(&pair);
  test_free(w);
  assert_true(same);
}

static void ends(void **state) {
  const struct ct_core *core = *state;
  struct ct_gen_prog *prog = test_calloc(1, sizeof *prog);
  struct ct_pair pair;
  ct_pair_open(&pair, core, "stall=25,seed=6");
  ct_pair_cwrite(&pair, 1, CT_CREG_SPM_SIZE, CT_CONV_ENDS_WINDOW);
  for (unsigned i = 0; i < ct_conv_end_count; ++i) {
    const struct ct_conv_end *want = &ct_conv_ends[i];
    const struct ct_rig_job job = {.prog = prog};
    ct_conv_end_program(i, prog);
    ct_pair_submit(&pair, 1, &job);
    ct_pair_ring(&pair, 1);
    for (unsigned d = 0; d < 2; ++d) {
      const struct ct_rig_cpl cpl = ct_rig_reap(&pair.rig[d], 1, LIMIT);
      if (cpl.code != want->code || cpl.addr != want->addr)
        fail_msg("%s, %s: code %" PRIu32 ", address %" PRIx32, pair.rig[d].name, want->what,
                 cpl.code, cpl.addr);
    }
  }
  ct_pair_close(&pair);
  test_free(prog);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_prestate(ends, (void *)&ct_cores[0]),
      cmocka_unit_test_prestate(ends, (void *)&ct_cores[1]),
      cmocka_unit_test_prestate(ends, (void *)&ct_cores[2]),
      cmocka_unit_test_prestate(layers, (void *)&ct_cores[0]),
      cmocka_unit_test_prestate(layers, (void *)&ct_cores[1]),
      cmocka_unit_test_prestate(layers, (void *)&ct_cores[2]),
  };
  return cmocka_run_group_tests_name("convolution", tests, NULL, NULL);
}
