/* SPDX-License-Identifier: Apache-2.0 */
/* ct_hbfp_quant, ct_hbfp_dequant and ct_fp_term against host/emu/ct_num.c: every mantissa and
 * exponent, every tie, random. */
#include "fp_ref.h"
#include "lane_pipe.h"

#include "host/emu/ct_num.h"

#include "ct_fp_term_dut.h"
#include "ct_hbfp_dequant_dut.h"
#include "ct_hbfp_quant_dut.h"

enum { kLanes = ct_hbfp_quant_x_i_bits / 32, kVectors = 200000 };

/* --- ct_hbfp_quant --- */

typedef struct {
  ct_hbfp_quant_dut *dut;
  lane_pipe pipe;
} quant_bench;

static void quant_tick(void *d) {
  ct_hbfp_quant_tick(d);
}

static quant_bench open_quant(void) {
  ct_hbfp_quant_dut *d = ct_hbfp_quant_new(ct_tb_trace());
  *d->valid_i = 0;
  ct_hbfp_quant_reset(d, 2);
  return (quant_bench){d,
                       {"ct_hbfp_quant",
                        d,
                        quant_tick,
                        d->valid_i,
                        d->valid_o,
                        d->q_o,
                        kLanes / 4,
                        3,
                        0,
                        0,
                        {{0}},
                        false,
                        {0}}};
}

static void quant_feed(quant_bench *t, const uint32_t *x, uint8_t e, unsigned narrow, bool offer) {
  uint32_t want[kLanes / 4] = {0};
  *t->dut->e_i = e;
  *t->dut->narrow_i = (uint8_t)narrow;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    t->dut->x_i[lane] = x[lane];
    pipe_pack(want, 8, lane, (uint8_t)ct_hbfp8_quant_narrow(x[lane], e, narrow));
  }
  pipe_step(&t->pipe, offer ? want : NULL);
}

/* Every tie and its two neighbours, positive and negative, at distances of 0..26 from the group's
 * exponent. (A tie of a narrow mantissa is one of these, too.) */
static void quant_ties(quant_bench *t, unsigned narrow) {
  uint32_t x[kLanes];
  unsigned n = 0;
  for (uint32_t gap = 0; gap < 27; ++gap) {
    for (uint32_t k = 0; k < 256 * 3 * 2; ++k) {
      const uint32_t magnitude = ((200u - gap) << 23 | (k / 6) << 15) + k / 2 % 3 - 1;
      x[n] = magnitude | (k & 1) << 31;
      if (++n == kLanes) quant_feed(t, x, 200, narrow, true), n = 0;
    }
  }
}

static void quant_corners(quant_bench *t, unsigned narrow) {
  uint32_t x[kLanes];
  for (unsigned e = 0; e < 256; ++e) {
    for (size_t i = 0; i < fp_corners_count; i += kLanes) {
      for (unsigned lane = 0; lane < kLanes; ++lane)
        x[lane] = fp_corners[(i + lane) % fp_corners_count];
      quant_feed(t, x, (uint8_t)e, narrow, true);
    }
  }
}

/* Groups as they come: exponents close together, the shared one the group's own; now and then any.
 */
static void quant_random(quant_bench *t) {
  ct_rng rng = ct_rng_make(1);
  ct_stall stall = ct_stall_make(2, 20, 3);
  uint32_t x[kLanes];
  for (int i = 0; i < kVectors; ++i) {
    const uint32_t middle = ct_rng_below(&rng, 256), spread = 1 + ct_rng_below(&rng, 16);
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      const uint32_t exponent = (middle + ct_rng_below(&rng, spread)) & 255;
      x[lane] = (fp_gen(&rng) & 0x807FFFFFu) | exponent << 23;
    }
    const uint8_t e =
        ct_rng_percent(&rng, 5) ? (uint8_t)ct_rng_u64(&rng) : ct_hbfp8_group_exp(x, kLanes);
    quant_feed(t, x, e, ct_rng_below(&rng, 7), !ct_stall_next(&stall));
  }
}

static void quantises(void **state) {
  (void)state;
  quant_bench t = open_quant();
  for (unsigned narrow = 0; narrow < 7; ++narrow) {
    quant_ties(&t, narrow);
    quant_corners(&t, narrow);
  }
  quant_random(&t);
  pipe_drain(&t.pipe);
  ct_hbfp_quant_free(t.dut);
}

/* --- ct_hbfp_dequant: every mantissa with every exponent, in both modes --- */

static void dequant_tick(void *d) {
  ct_hbfp_dequant_tick(d);
}

static uint32_t dequant_model(bool sign_mode, int8_t q, uint8_t e) {
  if (!sign_mode) return ct_hbfp8_dequant(q, e);
  return q > 0 && e != CT_EXP_ZERO && e != CT_EXP_NAN ? CT_FP_ONE : 0;
}

static void dequant_all(ct_hbfp_dequant_dut *d, lane_pipe *p, bool sign_mode) {
  ct_stall stall = ct_stall_make(3, 20, 3);
  uint32_t want[kLanes];
  for (unsigned n = 0; n < 256 * 256 / kLanes;) {
    const uint8_t e = (uint8_t)(n * kLanes / 256);
    *d->mode_i = sign_mode ? 2 : 1;
    *d->e_i = e;
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      const int8_t q = (int8_t)(n * kLanes + lane);
      pipe_pack(d->q_i, 8, lane, (uint8_t)q);
      want[lane] = dequant_model(sign_mode, q, e);
    }
    const bool offer = !ct_stall_next(&stall);
    pipe_step(p, offer ? want : NULL);
    n += offer;
  }
}

static void dequantises(void **state) {
  (void)state;
  ct_hbfp_dequant_dut *d = ct_hbfp_dequant_new(ct_tb_trace());
  lane_pipe p = {"ct_hbfp_dequant",
                 d,
                 dequant_tick,
                 d->valid_i,
                 d->valid_o,
                 d->x_o,
                 kLanes,
                 2,
                 0,
                 0,
                 {{0}},
                 false,
                 {0}};
  *d->valid_i = 0;
  *d->en_i = 1;
  ct_hbfp_dequant_reset(d, 2);
  dequant_all(d, &p, false);
  dequant_all(d, &p, true);
  pipe_drain(&p);
  ct_hbfp_dequant_free(d);
}

/* --- ct_fp_term --- */

typedef struct {
  ct_fp_term_dut *dut;
  lane_pipe pipe;
} term_bench;

static void term_tick(void *d) {
  ct_fp_term_tick(d);
}

static void term_feed(term_bench *t, const int32_t *s, uint8_t ea, const uint8_t *eb, bool offer) {
  uint32_t want[kLanes];
  *t->dut->ea_i = ea;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    pipe_pack(t->dut->s_i, 19, lane, (uint32_t)s[lane]);
    pipe_pack(t->dut->eb_i, 8, lane, eb[lane]);
    want[lane] = ct_fp_term(s[lane], ea, eb[lane]);
  }
  pipe_step(&t->pipe, offer ? want : NULL);
}

static int32_t gen_sum(ct_rng *rng) {
  const int32_t limit = 16 * 127 * 127;
  const int32_t bit = 1 << ct_rng_below(rng, 18);
  int32_t s;
  switch (ct_rng_below(rng, 8)) {
    case 0:
      s = 0;
      break;
    case 1:
      s = bit;
      break;
    case 2:
      s = bit - 1;
      break;
    case 3:
      s = limit;
      break;
    default:
      s = (int32_t)ct_rng_below(rng, (uint32_t)limit + 1) >> ct_rng_below(rng, 18);
  }
  if (s > limit) s = limit;
  return ct_rng_percent(rng, 50) ? s : -s;
}

/* Exponents from everywhere, and such as bring the result to an end of the range. */
static uint8_t gen_partner(ct_rng *rng, uint8_t ea) {
  const int near = (int)ct_rng_below(rng, 40) - 20;
  switch (ct_rng_below(rng, 8)) {
    case 0:
      return (uint8_t)(ct_rng_percent(rng, 50) ? 0 : 255);
    case 1:
    case 2:
      return (uint8_t)(130 - ea + near);
    case 3:
    case 4:
      return (uint8_t)(384 - ea + near);
    default:
      return (uint8_t)ct_rng_u64(rng);
  }
}

static void terms(void **state) {
  (void)state;
  ct_fp_term_dut *d = ct_fp_term_new(ct_tb_trace());
  term_bench t = {d,
                  {"ct_fp_term",
                   d,
                   term_tick,
                   d->valid_i,
                   d->valid_o,
                   d->p_o,
                   kLanes,
                   2,
                   0,
                   0,
                   {{0}},
                   false,
                   {0}}};
  ct_rng rng = ct_rng_make(4);
  ct_stall stall = ct_stall_make(5, 20, 3);
  *d->valid_i = 0;
  ct_fp_term_reset(d, 2);
  for (int i = 0; i < kVectors; ++i) {
    int32_t s[kLanes];
    uint8_t eb[kLanes];
    const uint8_t ea = (uint8_t)i;
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      s[lane] = gen_sum(&rng);
      eb[lane] = gen_partner(&rng, ea);
    }
    term_feed(&t, s, ea, eb, !ct_stall_next(&stall));
  }
  pipe_drain(&t.pipe);
  ct_fp_term_free(d);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(quantises),
      cmocka_unit_test(dequantises),
      cmocka_unit_test(terms),
  };
  return cmocka_run_group_tests_name("ct_hbfp", tests, NULL, NULL);
}
