/* SPDX-License-Identifier: Apache-2.0 */
/* ct_dma: every byte it moves, its signals, throughput, bounds, windows, errors, flush, abandon. */
#include <string.h>

#include "dma_bench.h"

enum { kInf = 0, kTrn = 1 };

static const struct dma_config kPlain = {.mem = {.latency = 60}};

/* First units of the regions that dma_bench.h describes. */
static uint32_t rd_region(int ctx) {
  return (uint32_t)ctx * kCtxUnits;
}

static uint32_t wr_region(int ctx) {
  return (uint32_t)ctx * kCtxUnits + kRdUnits;
}

/* ---- Contents ------------------------------------------------------------------------------ */

static void push_random(dma_bench *b, ct_rng *rng, int ctx, int side) {
  const struct ct_cmd cmd = dma_random_command(b, rng, ctx, side);
  dma_push(b, ctx, side, &cmd);
}

static void fetch_random(dma_bench *b, ct_rng *rng, int ctx) {
  const uint32_t len =
      ct_rng_percent(rng, 20) ? 1 + ct_rng_below(rng, 1024) : 1 + ct_rng_below(rng, 40);
  const uint32_t addr = rd_region(ctx) + ct_rng_below(rng, kRdUnits - len);
  if (ct_rng_percent(rng, 50))
    dma_fetch(b, ctx, addr, len);
  else
    dma_fetch_soft(b, ctx, addr, len);
}

static void change_settings(dma_bench *b, ct_rng *rng) {
  b->policy = (unsigned)ct_rng_below(rng, 5);
  b->floor = ct_rng_percent(rng, 50) ? 0 : (unsigned)ct_rng_below(rng, 256);
  *b->dut->train_cap_i = (uint8_t)ct_rng_below(rng, 16);
}

/* Cycles in which settings change and nothing new may be granted now and then. */
static void restless_cycles(dma_bench *b, ct_rng *rng, unsigned cycles) {
  while (cycles) {
    const unsigned some = 1 + ct_rng_below(rng, cycles < 300 ? cycles : 300);
    if (ct_rng_percent(rng, 50)) change_settings(b, rng);
    *b->dut->freeze_i = ct_rng_percent(rng, 15);
    dma_cycles(b, some);
    cycles -= some;
  }
  *b->dut->freeze_i = 0;
}

/* Commands of all four queues and fetches, pushed in bursts so that queues run dry now and then. */
static void random_mix(dma_bench *b, ct_rng *rng, unsigned rounds) {
  for (unsigned i = 0; i < rounds; ++i) {
    for (int c = 0; c < kCtx; ++c) {
      for (int s = 0; s < kSides; ++s) {
        for (unsigned n = ct_rng_below(rng, 6); n > 0; --n)
          push_random(b, rng, c, s);
      }
      if (ct_rng_percent(rng, 50)) fetch_random(b, rng, c);
    }
    change_settings(b, rng);
    restless_cycles(b, rng, ct_rng_below(rng, 2000));
  }
  dma_drain(b, 2000000);
  /* All that was owed has been given and taken. */
  static const int waited[] = {0, 1, 2, 8, 9, 10};
  for (int c = 0; c < kCtx; ++c) {
    for (unsigned i = 0; i < sizeof waited / sizeof *waited; ++i)
      assert_int_equal(b->owed[c][waited[i]] + b->sem[c][waited[i]], 0);
  }
}

static void random_traffic(void **state) {
  (void)state;
  static const struct dma_config configs[] = {
      {.mem = {.latency = 60}, .cmd_stall = 0, .spm_stall = 0},
      {.mem = {.latency = 60, .stall_percent = 25},
       .cmd_stall = 30,
       .spm_stall = 25,
       .sem_percent = 5},
      {.mem = {.latency = 3, .stall_percent = 50},
       .cmd_stall = 10,
       .spm_stall = 60,
       .sem_percent = 30},
      {.mem = {.latency = 1}, .cmd_stall = 50, .spm_stall = 5},
      {.mem = {.latency = 20, .read_bytes = 2, .write_bytes = 4, .stall_percent = 5},
       .spm_stall = 10},
      {.mem = {.latency = 90, .read_bytes = 8, .write_bytes = 16, .stall_percent = 10},
       .sem_percent = 1},
  };
  ct_rng rng = ct_rng_make(1);
  uint64_t crossings = 0, mixed = 0;
  for (unsigned k = 0; k < sizeof configs / sizeof *configs; ++k) {
    dma_bench *b = dma_open(&configs[k]);
    random_mix(b, &rng, 25);
    dma_check(b);
    const struct ct_axi_mem_stats *stats = ct_axi_mem_stats(b->mem);
    assert_int_equal(b->beats[0][kLd] + b->beats[1][kLd], stats->read_beats);
    assert_int_equal(b->beats[0][kSt] + b->beats[1][kSt], stats->write_beats);
    assert_true(b->waits[kTrn][kLd] > 0 && b->waits[kTrn][kSt] > 0);
    crossings += b->crossings;
    mixed += b->mixed;
    dma_close(b);
  }
  assert_true(crossings > 100);
  assert_true(mixed > 1000);
}

/* A record cut at every place by the 4 KB boundary, loaded and stored again. */
static void records_over_pages(void **state) {
  (void)state;
  dma_bench *b = dma_open(&kPlain);
  for (unsigned before = 0; before <= 17; ++before) {
    const struct ct_cmd ld =
        dma_command(rd_region(0) + 256 * (before + 1) - before, 16 * before, true, 16, 1);
    dma_push(b, 0, kLd, &ld);
    const struct ct_cmd st =
        dma_command(wr_region(0) + 256 * (before + 1) - before, 1024 + 16 * before, true, 16, 1);
    dma_push(b, 0, kSt, &st);
  }
  dma_drain(b, 10000);
  assert_int_equal(b->bursts[0][kLd], 18 + 16);
  assert_int_equal(b->bursts[0][kSt], 18 + 16);
  dma_check(b);
  dma_close(b);
}

/* Load, store what was loaded, load it back elsewhere: every step waits for the one before. */
static void semaphores_order_the_queues(void **state) {
  (void)state;
  const struct dma_config config = {.mem = {.latency = 60, .stall_percent = 20}, .spm_stall = 20};
  dma_bench *b = dma_open(&config);
  *b->dut->rd_limit_i = (*b->dut->rd_limit_i & ~UINT64_C(0xFFFFFFFF)) | kCtxUnits;
  struct ct_cmd cmd = dma_command(rd_region(0), 0, true, 16, 1);
  dma_loop2(&cmd, 20, 17, 16);
  CT_PUT(&cmd, ALL_SIG0, CT_SEM(5));
  dma_push(b, 0, kLd, &cmd);
  cmd = dma_command(wr_region(0), 0, true, 16, 1);
  dma_loop2(&cmd, 20, 19, 16);
  CT_PUT(&cmd, ALL_WAIT0, CT_SEM(5));
  CT_PUT(&cmd, ALL_SIG0, CT_SEM(6));
  dma_push(b, 0, kSt, &cmd);
  /* The monitor holds loads to the read region: this one reads back through the model's eyes only.
   */
  cmd = dma_command(rd_region(0) + 17 * 5, 1024, true, 16, 1);
  dma_loop2(&cmd, 20, 17, 16);
  CT_PUT(&cmd, ALL_WAIT0, CT_SEM(6));
  CT_PUT(&cmd, ALL_SIG1, CT_SEM(7));
  dma_push(b, 0, kLd, &cmd);
  dma_drain(b, 100000);
  assert_int_equal(b->sem[0][5], 0);
  assert_int_equal(b->sem[0][6], 0);
  assert_int_equal(b->sem[0][7], 1);
  dma_check(b);
  dma_close(b);
}

/* ---- Speed --------------------------------------------------------------------------------- */

/* Percent of the cycles between the first and the last beat that moved one. */
static double share(uint64_t beats, uint64_t first, uint64_t last) {
  return 100.0 * (double)beats / (double)(last - first + 1);
}

static struct ct_cmd long_command(int ctx, int side, bool hdr, unsigned nb) {
  struct ct_cmd cmd = dma_command(side == kLd ? rd_region(ctx) : wr_region(ctx),
                                  side == kLd ? 0 : kCtxSpm / 2, hdr, nb, 1);
  dma_loop1(&cmd, 25, (int)nb + hdr, (int)nb);
  dma_loop2(&cmd, 8, 25 * ((int)nb + hdr), 0);
  return cmd;
}

static void long_transfers_saturate_the_bus(void **state) {
  (void)state;
  for (int ctx = 0; ctx < kCtx; ++ctx) {
    for (int hdr = 0; hdr < 2; ++hdr) {
      dma_bench *b = dma_open(&kPlain);
      for (int side = 0; side < kSides; ++side) {
        const struct ct_cmd cmd = long_command(ctx, side, hdr, 16);
        dma_push(b, ctx, side, &cmd);
        dma_push(b, ctx, side, &cmd);
      }
      dma_drain(b, 20000);
      const double r = share(b->beats[ctx][kLd], b->r_first, b->r_last);
      const double w = share(b->beats[ctx][kSt], b->w_first, b->w_last);
      print_message("context %d, %s: read %.2f %%, write %.2f %% of 16 bytes a cycle\n", ctx,
                    hdr ? "records" : "raw", r, w);
      assert_true(r >= 97.0);
      assert_true(w >= 97.0);
      dma_check(b);
      dma_close(b);
    }
  }
}

/* With a memory that is not the limit, one-beat bursts go out in every second cycle. */
static void short_bursts_take_two_cycles(void **state) {
  (void)state;
  const struct dma_config config = {.mem = {.latency = 1}};
  dma_bench *b = dma_open(&config);
  struct ct_cmd cmd = dma_command(rd_region(0), 0, false, 1, 1);
  dma_loop1(&cmd, 10, 3, 1);
  dma_loop2(&cmd, 30, 40, 10);
  for (int i = 0; i < 10; ++i)
    dma_push(b, 0, kLd, &cmd);
  dma_drain(b, 20000);
  assert_int_equal(b->beats[0][kLd], 3000);
  assert_true(share(3000, b->r_first, b->r_last) > 49.5);
  dma_check(b);
  dma_close(b);
}

/* A command costs no cycle more. */
static void short_commands_take_two_cycles(void **state) {
  (void)state;
  const struct dma_config config = {.mem = {.latency = 1}};
  dma_bench *b = dma_open(&config);
  for (unsigned i = 0; i < 250; ++i) {
    const struct ct_cmd cmd = dma_command(rd_region(0) + 5 * i, i, false, 1, 1);
    dma_push(b, 0, kLd, &cmd);
  }
  dma_drain(b, 2000);
  assert_int_equal(b->r_last - b->r_first, 2 * 249);
  dma_check(b);
  dma_close(b);
}

/* Cycles from the moment a command of inference for so many records is there until it is done. */
static unsigned time_records(dma_bench *b, int side, unsigned records) {
  struct ct_cmd cmd = dma_command(side == kLd ? rd_region(0) : wr_region(0),
                                  side == kLd ? 0 : kCtxSpm / 2, true, 16, 1);
  dma_loop1(&cmd, records, 17, 16);
  CT_PUT(&cmd, ALL_SIG1, CT_SEM(1));
  dma_push(b, kInf, side, &cmd);
  for (unsigned i = 0;; ++i) {
    if (dma_done(b, kInf)) return i;
    if (i > 50000) fail_msg("inference starved");
    dma_cycle(b);
  }
}

/* Slots that a floor can give training while inference takes n. */
static unsigned owed_for(unsigned n, unsigned floor) {
  return (n * floor + 255 - floor) / (256 - floor);
}

/* While training moves all it can, a load waits for no more than its cap of bursts and the one in
 * the AR register, a store for the burst under way and one granted at its end. With a floor each
 * waits for the bursts, too, that training is owed, and for their grants, a store for the words
 * that training is owed of the SPM. */
static void delays(dma_bench *b, unsigned cap, unsigned floor) {
  const unsigned owed = owed_for(1, floor), words = owed_for(16, floor);
  const unsigned ld_alone = time_records(b, kLd, 1), st_alone = time_records(b, kSt, 1);
  for (int side = 0; side < kSides; ++side) {
    const struct ct_cmd cmd = long_command(kTrn, side, true, 16);
    for (int i = 0; i < 20; ++i)
      dma_push(b, kTrn, side, &cmd);
  }
  unsigned ld_most = 0, st_most = 0;
  for (unsigned i = 0; i < 40; ++i) {
    dma_cycles(b, 200 + 7 * i);
    const unsigned ld = time_records(b, kLd, 1), st = time_records(b, kSt, 1);
    if (ld > ld_most) ld_most = ld;
    if (st > st_most) st_most = st;
  }
  assert_false(dma_done(b, kTrn));
  print_message(
      "cap %u, floor %u: a record is loaded in %u cycles alone, %u beside training; "
      "stored in %u, %u\n",
      cap, floor, ld_alone, ld_most, st_alone, st_most);
  assert_int_equal(b->most_reads[kTrn], cap);
  assert_true(ld_most <= ld_alone + 17u * cap + 1 + 18 * owed);
  assert_true(st_most <= st_alone + 17 + 2 + 1 + 18 * owed + words);
}

static void training_delays_inference_by_its_bound(void **state) {
  (void)state;
  static const uint8_t floors[] = {0, 64, 200};
  for (unsigned i = 0; i < sizeof floors; ++i) {
    for (unsigned cap = 1; cap <= 8; cap *= 2) {
      dma_bench *b = dma_open(&kPlain);
      *b->dut->train_cap_i = (uint8_t)cap;
      b->floor = floors[i];
      delays(b, cap, floors[i]);
      dma_close(b);
    }
  }
}

/* A long load waits once for training's cap of bursts and then for those that training is owed, and
 * so many it is owed. */
static void long_loads_wait_for_what_is_owed(void **state) {
  (void)state;
  static const uint8_t floors[] = {0, 16, 64};
  enum { kRecords = 96, kCap = 8 };
  for (unsigned i = 0; i < sizeof floors; ++i) {
    dma_bench *b = dma_open(&kPlain);
    const unsigned floor = floors[i], owed = owed_for(kRecords, floor);
    b->floor = floors[i];
    *b->dut->train_cap_i = kCap;
    const unsigned alone = time_records(b, kLd, kRecords);
    const struct ct_cmd cmd = long_command(kTrn, kLd, true, 16);
    for (int n = 0; n < 20; ++n)
      dma_push(b, kTrn, kLd, &cmd);
    dma_cycles(b, 500);
    const unsigned both = time_records(b, kLd, kRecords);
    print_message("floor %u: %d records in %u cycles alone, %u beside training (owed %u)\n", floor,
                  kRecords, alone, both, owed);
    assert_false(dma_done(b, kTrn));
    assert_true(both <= alone + 17 * kCap + 1 + 18 * owed);
    assert_true(both + 17 >= alone + 17 * owed);
    dma_close(b);
  }
}

/* While both move all they can, a floor of F gives training F/256 of the bursts, and none is 0. */
static void shares(dma_bench *b, int side, unsigned floor) {
  for (int c = kInf; c <= kTrn; ++c) {
    const struct ct_cmd cmd = long_command(c, side, true, 16);
    for (int n = 0; n < 20; ++n)
      dma_push(b, c, side, &cmd);
  }
  dma_cycles(b, 2000);
  const uint64_t inf = b->beats[kInf][side], trn = b->beats[kTrn][side];
  dma_cycles(b, 34000);
  const double got = (double)(b->beats[kTrn][side] - trn),
               all = got + (double)(b->beats[kInf][side] - inf);
  assert_false(dma_done(b, kInf) || dma_done(b, kTrn));
  print_message("%s, floor %u: training has %.1f / 256 of the beats\n",
                side == kLd ? "read" : "write", floor, 256 * got / all);
  assert_true(got >= all * (floor - 1.) / 256 && got <= all * (floor + 1.) / 256);
  assert_true(floor || got == 0);
  assert_true(all > 0.99 * 34000);
}

static void floor_is_the_share_of_bursts(void **state) {
  (void)state;
  static const uint8_t floors[] = {0, 16, 32, 64};
  for (unsigned i = 0; i < sizeof floors; ++i) {
    for (int side = 0; side < kSides; ++side) {
      dma_bench *b = dma_open(&kPlain);
      b->floor = floors[i];
      *b->dut->train_cap_i = 8; /* else that could be the limit */
      shares(b, side, floors[i]);
      dma_close(b);
    }
  }
}

/* A fetch goes before the loads of its context. */
static void fetch_goes_first(void **state) {
  (void)state;
  dma_bench *b = dma_open(&kPlain);
  const struct ct_cmd cmd = long_command(kInf, kLd, true, 16);
  dma_push(b, kInf, kLd, &cmd);
  dma_cycles(b, 500);
  dma_fetch(b, kInf, rd_region(0) + 100, 64);
  unsigned i = 0;
  for (; b->fetcher[0].answered == 0; ++i) {
    assert_true(i < 1000);
    dma_cycle(b);
  }
  assert_true(i <= 60 + 8 * 17 + 64 + 8);
  dma_drain(b, 20000);
  dma_check(b);
  dma_close(b);
}

static void freeze_grants_nothing(void **state) {
  (void)state;
  dma_bench *b = dma_open(&kPlain);
  for (int c = 0; c < kCtx; ++c) {
    for (int s = 0; s < kSides; ++s) {
      const struct ct_cmd cmd = long_command(c, s, true, 16);
      dma_push(b, c, s, &cmd);
    }
  }
  dma_cycles(b, 300);
  *b->dut->freeze_i = 1;
  dma_cycles(b, 300); /* what was granted runs out */
  const uint64_t beats =
      ct_axi_mem_stats(b->mem)->read_beats + ct_axi_mem_stats(b->mem)->write_beats;
  for (int i = 0; i < 300; ++i) {
    dma_cycle(b);
    assert_false(b->in.arvalid || b->in.awvalid || b->in.wvalid);
  }
  assert_int_equal(ct_axi_mem_stats(b->mem)->read_beats + ct_axi_mem_stats(b->mem)->write_beats,
                   beats);
  *b->dut->freeze_i = 0;
  dma_drain(b, 50000);
  dma_check(b);
  dma_close(b);
}

/* ---- Errors -------------------------------------------------------------------------------- */

/* Runs until the context has its error, compares that, flushes, and shows that it works again. */
static void expect_error(dma_bench *b, int ctx, unsigned code, uint32_t addr) {
  b->expect_error[ctx] = true;
  for (int i = 0; b->err[ctx].count == 0; ++i) {
    if (i > 20000) fail_msg("no error, expected %u", code);
    dma_cycle(b);
  }
  assert_int_equal(b->err[ctx].code, code);
  assert_int_equal(b->err[ctx].addr, addr);
  dma_cycles(b, 100); /* one error, and not idle before the flush */
  assert_int_equal(b->err[ctx].count, 1);
  assert_int_equal((*b->dut->ld_idle_o | *b->dut->st_idle_o) >> ctx & 1, 0);
  dma_flush(b, ctx, 1000);
  b->expect_error[ctx] = false;
}

static void work_on(dma_bench *b, ct_rng *rng, int ctx) {
  for (int s = 0; s < kSides; ++s) {
    for (int i = 0; i < 3; ++i)
      push_random(b, rng, ctx, s);
  }
}

struct wrong {
  int side;
  uint32_t dram, spm; /* relative to the regions */
  bool hdr;
  unsigned nb, s0, n1;
  int d1, s1;
  unsigned code;
  uint32_t addr; /* relative to the region if it is a DRAM address */
};

/* Addresses are relative to the start of a context's read region (its write region follows). */
static const struct wrong kWrong[] = {
    {kLd, 16384 - 20, 0, true, 16, 1, 3, 17, 16, CT_DEV_DRAM_READ_WINDOW, 16384},
    {kLd, 16384, 0, false, 1, 1, 1, 0, 0, CT_DEV_DRAM_READ_WINDOW, 16384},
    {kLd, 16384 - 30, 0, false, 31, 1, 1, 0, 0, CT_DEV_DRAM_READ_WINDOW, 16384},
    {kLd, 10, 0, false, 4, 1, 5, -4, 0, CT_DEV_DRAM_READ_WINDOW, (uint32_t)-2},
    {kLd, 0, 2048 - 40, true, 16, 1, 9, 17, 16, CT_DEV_SPM_WINDOW, 2048},
    {kLd, 0, 2000, false, 20, 5, 1, 0, 0, CT_DEV_SPM_WINDOW, 2050},
    {kLd, 0, 10, false, 8, 1, 4, 8, -8, CT_DEV_SPM_WINDOW, (1 << 20) - 6},
    {kSt, 32768 - 33, 1024, true, 16, 1, 2, 17, 16, CT_DEV_DRAM_WRITE_WINDOW, 32768},
    {kSt, 16384 + 3, 1024, false, 5, 1, 3, -3, 0, CT_DEV_DRAM_WRITE_WINDOW, 16384 - 3},
    {kSt, 32768 + 77, 1024, false, 5, 1, 1, 0, 0, CT_DEV_DRAM_WRITE_WINDOW, 32768 + 77},
    {kSt, 16384, 2040, false, 100, 1, 1, 0, 0, CT_DEV_SPM_WINDOW, 2048},
    {kSt, 16384, 1100, true, 16, 60, 4, 17, 20, CT_DEV_SPM_WINDOW, 2060},
    {kSt, 16384, 4, false, 2, 1, 5, 2, -2, CT_DEV_SPM_WINDOW, (1 << 20) - 2},
};

/* Each wrong command, alone and amid work of both contexts; the other context never notices. */
static void windows_are_kept(void **state) {
  (void)state;
  const struct dma_config config = {.mem = {.latency = 20, .stall_percent = 10}, .spm_stall = 10};
  ct_rng rng = ct_rng_make(3);
  for (unsigned k = 0; k < 2 * sizeof kWrong / sizeof *kWrong; ++k) {
    const struct wrong *w = &kWrong[k / 2];
    const int ctx = (int)(k % 2);
    dma_bench *b = dma_open(&config);
    work_on(b, &rng, !ctx);
    if (k & 2) work_on(b, &rng, ctx);
    const uint32_t base = rd_region(ctx);
    struct ct_cmd cmd = dma_command(base + w->dram, w->spm, w->hdr, w->nb, w->s0);
    dma_loop1(&cmd, w->n1, w->d1, w->s1);
    dma_push_wrong(b, ctx, w->side, &cmd);
    expect_error(b, ctx, w->code, w->code == CT_DEV_SPM_WINDOW ? w->addr : base + w->addr);
    work_on(b, &rng, ctx);
    work_on(b, &rng, !ctx);
    dma_drain(b, 100000);
    dma_check(b);
    dma_close(b);
  }
}

static void fetch_obeys_the_window(void **state) {
  (void)state;
  dma_bench *b = dma_open(&kPlain);
  ct_rng rng = ct_rng_make(4);
  work_on(b, &rng, kInf);
  dma_fetch(b, kTrn, rd_region(1) + kRdUnits - 40, 41);
  expect_error(b, kTrn, CT_DEV_DRAM_READ_WINDOW, rd_region(1) + kRdUnits);
  fetch_random(b, &rng, kTrn);
  dma_drain(b, 100000);
  dma_check(b);
  dma_close(b);
}

/* First unit of the burst that holds unit + beat: one of `most` beats, or from a page of 4 KB on.
 */
static uint32_t burst_of(uint32_t unit, uint32_t beat, uint32_t most) {
  uint32_t at = unit;
  for (;;) {
    const uint32_t page = 256 - at % 256, n = page < most ? page : most;
    if (unit + beat < at + n) return at;
    at += n;
    if (most == 17 && at - unit < 17) most = 17 - (at - unit);
  }
}

/* The address of an AXI error is that of the burst, whichever of its beats has it; it comes for
 * loads, fetches and stores, under every policy. */
static void axi_errors(void **state) {
  (void)state;
  const struct dma_config config = {.mem = {.latency = 30, .stall_percent = 20}, .spm_stall = 20};
  ct_rng rng = ct_rng_make(5);
  for (int k = 0; k < 60; ++k) {
    const int ctx = k % 2, kind = k / 2 % 3;
    dma_bench *b = dma_open(&config);
    work_on(b, &rng, !ctx);
    const uint32_t at = 256 + ct_rng_below(&rng, 100);
    const uint32_t unit = (kind == 2 ? wr_region(ctx) : rd_region(ctx)) + 17 * at;
    const uint32_t beat = ct_rng_below(&rng, kind == 1 ? 300 : 17);
    const uint32_t burst = burst_of(unit, beat, kind == 1 ? 16 : 17);
    change_settings(b, &rng);
    ct_axi_mem_fault(b->mem, kind == 2 ? CT_FAULT_AXI_WRITE : CT_FAULT_AXI_READ,
                     16 * (uint64_t)(unit + beat) + 5);
    if (kind == 1) {
      dma_fetch(b, ctx, unit, 300);
    } else {
      const int side = kind == 2 ? kSt : kLd;
      struct ct_cmd cmd = dma_command(unit - 17 * 10, side == kSt ? 1024 : 0, true, 16, 1);
      dma_loop1(&cmd, 40, 17, 16);
      CT_PUT(&cmd, ALL_SIG1, CT_SEM(4));
      dma_push(b, ctx, side, &cmd);
    }
    expect_error(b, ctx, kind == 2 ? CT_DEV_AXI_WRITE : CT_DEV_AXI_READ, burst);
    work_on(b, &rng, ctx);
    dma_drain(b, 100000);
    dma_check(b);
    dma_close(b);
  }
}

/* Beyond the end of memory: DECERR, at the first burst that is beyond. */
static void decode_error(void **state) {
  (void)state;
  dma_bench *b = dma_open(&kPlain);
  b->open_windows = true;
  *b->dut->rd_limit_i = UINT64_MAX;
  struct ct_cmd cmd = dma_command(kUnits - 3, 0, false, 4, 1);
  dma_push_wrong(b, kTrn, kLd, &cmd);
  expect_error(b, kTrn, CT_DEV_AXI_READ, kUnits);
  *b->dut->wr_limit_i = UINT64_MAX;
  cmd = dma_command(kUnits - 3, 0, false, 4, 1);
  dma_push_wrong(b, kTrn, kSt, &cmd);
  expect_error(b, kTrn, CT_DEV_AXI_WRITE, kUnits);
  dma_check(b);
  dma_close(b);
}

static void parity_error(void **state) {
  (void)state;
  ct_rng rng = ct_rng_make(6);
  for (int k = 0; k < 32; ++k) {
    dma_bench *b = dma_open(&kPlain);
    const int ctx = k % 2;
    work_on(b, &rng, !ctx);
    const uint32_t word = (uint32_t)k * 3;
    b->bad_word = (int32_t)((uint32_t)ctx * kCtxSpm + 1024 + word);
    struct ct_cmd cmd = dma_command(wr_region(ctx), 1024, k & 2, 16, 1);
    dma_loop1(&cmd, 10, 17, 16);
    CT_PUT(&cmd, ALL_SIG1, CT_SEM(4));
    dma_push(b, ctx, kSt, &cmd);
    expect_error(b, ctx, CT_DEV_PARITY, (uint32_t)b->bad_word);
    b->bad_word = -1;
    work_on(b, &rng, ctx);
    dma_drain(b, 100000);
    dma_check(b);
    dma_close(b);
  }
}

/* ---- Flush and abandon --------------------------------------------------------------------- */

/* A flush at any moment: it ends, the other context's bytes are right, and so are the next ones. */
static void flush_in_the_middle(void **state) {
  (void)state;
  static const struct dma_config configs[] = {
      {.mem = {.latency = 60}},
      {.mem = {.latency = 15, .stall_percent = 30}, .spm_stall = 30, .cmd_stall = 10},
  };
  ct_rng rng = ct_rng_make(7);
  for (int k = 0; k < 2; ++k) {
    dma_bench *b = dma_open(&configs[k]);
    for (int i = 0; i < 60; ++i) {
      const int ctx = (int)ct_rng_below(&rng, 2);
      if (b->queue[!ctx][kLd].pushed > kMaxCmds - 20) {
        dma_drain(b, 200000);
        dma_flush(b, !ctx, 1);
      }
      for (int c = 0; c < kCtx; ++c) {
        work_on(b, &rng, c);
        if (ct_rng_percent(&rng, 50)) fetch_random(b, &rng, c);
      }
      change_settings(b, &rng);
      restless_cycles(b, &rng, ct_rng_below(&rng, 400));
      dma_flush(b, ctx, 20000);
    }
    dma_drain(b, 200000);
    dma_check(b);
    dma_close(b);
  }
}

/* Stores of a context that keep out of the way of those of long_command. */
static void push_far_store(dma_bench *b, int ctx) {
  struct ct_cmd cmd = dma_command(wr_region(ctx) + 5000, kCtxSpm / 2 + 3, true, 16, 1);
  dma_loop1(&cmd, 30, 19, 16);
  CT_PUT(&cmd, ALL_SIG0, CT_SEM(9));
  dma_push(b, ctx, kSt, &cmd);
}

/* Answers of a fetch that has failed or was dropped: those that come are right, then it is over. */
static void end_fetch(dma_bench *b, int ctx, unsigned at_least, unsigned at_most) {
  struct dma_fetcher *f = &b->fetcher[ctx];
  assert_int_equal(f->popped, f->pushed);
  CT_TB_WHILE (!(*b->dut->fetch_idle_o >> ctx & 1), 100000)
    dma_cycle(b);
  assert_in_range(f->beat, at_least, at_most);
  assert_int_equal(b->err[ctx].count, 0);
  f->beat = 0;
  f->answered = f->popped;
  b->cut[ctx] = false;
}

/* What is wrong with a soft fetch is a pulse, loads and the other context work on. */
static void soft_fetches(void **state) {
  (void)state;
  ct_rng rng = ct_rng_make(9);
  for (unsigned k = 0; k < 24; ++k) {
    const int ctx = k % 2;
    dma_bench *b = dma_open(&kPlain);
    b->policy = k / 6;
    for (int c = 0; c < kCtx; ++c)
      push_random(b, &rng, c, kLd);
    const uint32_t end = rd_region(ctx) + kRdUnits;
    uint32_t at = end - 40, most = 40;
    if (k / 2 % 3 == 0) at = end + 7, most = 0;
    if (k / 2 % 3 == 1) {
      at = rd_region(ctx) + 512;
      most = 99;
      ct_axi_mem_fault(b->mem, CT_FAULT_AXI_READ, 16 * (uint64_t)(at + 20));
    }
    b->cut[ctx] = true;
    dma_fetch_soft(b, ctx, at, 100);
    CT_TB_WHILE (!b->bad_fetches[ctx], 100000)
      dma_cycle(b);
    end_fetch(b, ctx, 0, most);
    fetch_random(b, &rng, ctx);
    work_on(b, &rng, !ctx);
    dma_drain(b, 200000);
    dma_check(b);
    dma_close(b);
  }
}

/* A fetch that is dropped gives no more than what was asked for, and the next one comes whole. */
static void dropped_fetches(void **state) {
  (void)state;
  ct_rng rng = ct_rng_make(10);
  for (unsigned k = 0; k < 40; ++k) {
    const int ctx = k % 2;
    dma_bench *b = dma_open(&kPlain);
    b->policy = k / 10;
    for (int c = 0; c < kCtx; ++c)
      push_random(b, &rng, c, kLd);
    b->cut[ctx] = true;
    dma_fetch_soft(b, ctx, rd_region(ctx) + 512 + k, 1000);
    CT_TB_WHILE (b->fetcher[ctx].popped < b->fetcher[ctx].pushed, 100000)
      dma_cycle(b);
    dma_cycles(b, ct_rng_below(&rng, 60));
    *b->dut->fetch_drop_i = (uint8_t)(1u << ctx);
    dma_cycle(b);
    *b->dut->fetch_drop_i = 0;
    end_fetch(b, ctx, 0, 8 * 16 * 2);
    fetch_random(b, &rng, ctx);
    work_on(b, &rng, !ctx);
    dma_drain(b, 200000);
    dma_check(b);
    dma_close(b);
  }
}

/* Stores are sealed when only answers are missing: no signal of theirs comes any more, an error of
 * theirs is no error of the context, the next stores are as ever. With flush: these are flushed. */
static void sealed_stores(void **state) {
  (void)state;
  ct_rng rng = ct_rng_make(11);
  unsigned errors = 0, olds = 0;
  for (unsigned k = 0; k < 60; ++k) {
    const int ctx = k % 2;
    const uint8_t bit = (uint8_t)(1u << ctx);
    dma_bench *b = dma_open(&kPlain);
    ct_dma_dut *d = b->dut;
    struct dma_queue *q = &b->queue[ctx][kSt];
    push_far_store(b, ctx);
    if (k & 2)
      ct_axi_mem_fault(b->mem, CT_FAULT_AXI_WRITE,
                       16 * ((uint64_t)wr_region(ctx) + 5000 + 19 * 29));
    work_on(b, &rng, !ctx);
    CT_TB_WHILE (q->popped < q->pushed || !(*d->st_quiet_o & bit), 100000)
      dma_cycle(b);
    assert_false(*d->st_idle_o & bit);
    dma_cycles(b, k % 7);
    *d->st_seal_i = bit;
    dma_cycle(b);
    *d->st_seal_i = 0;
    olds += *d->st_old_o >> ctx & 1;
    dma_cycle(b); /* a signal may be on its wire */
    q->sig_head = q->sig_tail;
    push_random(b, &rng, ctx, kLd);
    for (unsigned n = 0; n < 4; ++n) { /* the same place: they come after */
      push_far_store(b, ctx);
    }
    if (k & 4) {
      dma_cycles(b, k);
      dma_flush(b, ctx, 20000);
    }
    CT_TB_WHILE ((*d->st_old_o & bit) != 0, 100000)
      dma_cycle(b);
    assert_int_equal(b->old_errs[ctx], (k & 2) != 0);
    if (k & 2) assert_int_equal(b->old_err_addr, wr_region(ctx) + 5000 + 19 * 29);
    errors += b->old_errs[ctx];
    push_far_store(b, ctx);
    dma_drain(b, 200000);
    dma_check(b);
    dma_close(b);
  }
  assert_true(errors > 10 && olds > 50);
}

static void wait_hung(dma_bench *b, int ctx) {
  *b->dut->flush_i |= (uint8_t)(1u << ctx);
  dma_cycles(b, 1000);
  assert_int_equal((*b->dut->ld_idle_o & *b->dut->st_idle_o) >> ctx & 1, 0);
  b->forgotten[ctx] = true;
  *b->dut->abandon_i = (uint8_t)(1u << ctx);
  dma_cycle(b);
  *b->dut->abandon_i = 0;
  dma_flush(b, ctx, 5);
}

/* What abandoned stores wrote is nobody's business: a store whose answer is late may have happened.
 */
static void accept_abandoned_stores(dma_bench *b, int ctx) {
  const size_t at = 16 * (size_t)wr_region(ctx);
  memcpy(b->model_dram + at, ct_axi_mem_data(b->mem) + at, (size_t)16 * 4000);
}

/* A memory that does not answer: not idle until the bursts are abandoned; when their answers come
 * after all they change nothing, and the next commands get their own. */
static void abandoned_answers_are_dropped(void **state) {
  (void)state;
  ct_rng rng = ct_rng_make(8);
  for (unsigned k = 0; k < 12; ++k) {
    const int ctx = k % 2;
    const unsigned kind = k / 2 % 3; /* load, store, fetch */
    dma_bench *b = dma_open(&kPlain);
    ct_axi_mem_fault(b->mem, CT_FAULT_AXI_HANG, 16 * ((uint64_t)rd_region(ctx) + 1700));
    ct_axi_mem_fault(b->mem, CT_FAULT_AXI_HANG, 16 * ((uint64_t)wr_region(ctx) + 1700));
    if (kind == 2) {
      dma_fetch(b, ctx, rd_region(ctx) + 1600, 400);
    } else {
      const struct ct_cmd cmd = long_command(ctx, kind == 0 ? kLd : kSt, true, 16);
      dma_push_wrong(b, ctx, kind == 0 ? kLd : kSt, &cmd);
    }
    dma_cycles(b, 4000);
    work_on(b, &rng, !ctx);
    wait_hung(b, ctx);
    work_on(b, &rng, !ctx);
    dma_cycles(b, 300);
    ct_axi_mem_fault(b->mem, CT_FAULT_NONE, 0);
    dma_cycles(b, k * 10);
    for (int i = 0; i < 5; ++i)
      push_random(b, &rng, ctx, kLd);
    push_far_store(b, ctx);
    fetch_random(b, &rng, ctx);
    dma_drain(b, 200000);
    accept_abandoned_stores(b, ctx);
    dma_check(b);
    dma_close(b);
  }
}

/* A memory that has stopped to answer inference, in the middle of a long load or of a fetch, does
 * not keep training from it, with a floor or without. */
static void training_reads_beside_a_hung_inference(void **state) {
  (void)state;
  for (unsigned k = 0; k < 4; ++k) {
    dma_bench *b = dma_open(&kPlain);
    b->floor = k & 1 ? 64 : 0;
    *b->dut->train_cap_i = 8;
    ct_axi_mem_fault(b->mem, CT_FAULT_AXI_HANG, 16 * ((uint64_t)rd_region(kInf) + 1700));
    if (k & 2) {
      dma_fetch(b, kInf, rd_region(kInf) + 1600, 400);
    } else {
      const struct ct_cmd cmd = long_command(kInf, kLd, true, 16);
      dma_push_wrong(b, kInf, kLd, &cmd);
    }
    dma_cycles(b, 2500); /* it has come to the place */
    const struct ct_cmd cmd = long_command(kTrn, kLd, true, 16);
    dma_push(b, kTrn, kLd, &cmd);
    for (unsigned i = 0; !dma_done(b, kTrn); ++i) {
      assert_true(i < 255 + 3400 + 300);
      dma_cycle(b);
    }
    wait_hung(b, kInf);
    dma_check(b);
    dma_close(b);
  }
}

/* Asked to, training reads nothing more than what is under way, under PRIORITY. */
static void training_stops_to_read(void **state) {
  (void)state;
  enum { kCap = 4 };
  for (unsigned policy = 0; policy < 5; ++policy) {
    dma_bench *b = dma_open(&kPlain);
    b->policy = policy;
    *b->dut->train_cap_i = kCap;
    const struct ct_cmd cmd = long_command(kTrn, kLd, true, 16);
    for (int i = 0; i < 20; ++i)
      dma_push(b, kTrn, kLd, &cmd);
    dma_cycles(b, 300);
    *b->dut->ld_yield_i = 1;
    uint64_t before = b->beats[kTrn][kLd];
    dma_cycles(b, 600);
    const uint64_t meanwhile = b->beats[kTrn][kLd] - before;
    if (policy == 0)
      assert_in_range(meanwhile, 1, 17 * kCap);
    else
      assert_true(meanwhile > 17 * (kCap + 1));
    *b->dut->ld_yield_i = 0;
    before = b->beats[kTrn][kLd];
    dma_cycles(b, 600);
    assert_true(b->beats[kTrn][kLd] - before > 17 * (kCap + 1));
    dma_drain(b, 200000);
    dma_check(b);
    dma_close(b);
  }
}

/* Blocked, neither context reads anything more than what is under way, whatever the policy. */
static void blocked_loads_stop(void **state) {
  (void)state;
  enum { kCap = 4 };
  for (unsigned policy = 0; policy < 5; ++policy) {
    dma_bench *b = dma_open(&kPlain);
    b->policy = policy;
    b->floor = 64;
    *b->dut->train_cap_i = kCap;
    for (int c = 0; c < 2; ++c) {
      const struct ct_cmd cmd = long_command(c, kLd, true, 16);
      for (int i = 0; i < 20; ++i)
        dma_push(b, c, kLd, &cmd);
    }
    for (unsigned round = 0; round < 3; ++round) {
      dma_cycles(b, 300);
      *b->dut->ld_block_i = 1;
      dma_cycles(b, 17 * (8 + kCap) + 100);
      const uint64_t before = b->beats[kInf][kLd] + b->beats[kTrn][kLd];
      dma_cycles(b, 300);
      assert_int_equal(b->beats[kInf][kLd] + b->beats[kTrn][kLd], before);
      *b->dut->ld_block_i = 0;
    }
    dma_drain(b, 200000);
    dma_check(b);
    dma_close(b);
  }
}

/* W stands still in the middle of a burst, for long: the context is let go, its next stores wait
 * until the burst is through, and nothing of the old job gets into them. */
static void abandoned_in_a_burst(void **state) {
  (void)state;
  for (unsigned k = 0; k < 40; ++k) {
    const int ctx = k % 2;
    dma_bench *b = dma_open(&kPlain);
    const struct ct_cmd cmd = long_command(ctx, kSt, k & 4, 16);
    dma_push_wrong(b, ctx, kSt, &cmd);
    dma_cycles(b, 150 + 3 * k);
    b->hold_writes = true;
    wait_hung(b, ctx);
    push_far_store(b, ctx);
    dma_cycles(b, k & 8 ? 0 : 100);
    b->hold_writes = false;
    dma_drain(b, 5000);
    accept_abandoned_stores(b, ctx);
    dma_check(b);
    dma_close(b);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(random_traffic),
      cmocka_unit_test(records_over_pages),
      cmocka_unit_test(semaphores_order_the_queues),
      cmocka_unit_test(long_transfers_saturate_the_bus),
      cmocka_unit_test(short_bursts_take_two_cycles),
      cmocka_unit_test(short_commands_take_two_cycles),
      cmocka_unit_test(training_delays_inference_by_its_bound),
      cmocka_unit_test(long_loads_wait_for_what_is_owed),
      cmocka_unit_test(floor_is_the_share_of_bursts),
      cmocka_unit_test(fetch_goes_first),
      cmocka_unit_test(freeze_grants_nothing),
      cmocka_unit_test(windows_are_kept),
      cmocka_unit_test(fetch_obeys_the_window),
      cmocka_unit_test(axi_errors),
      cmocka_unit_test(decode_error),
      cmocka_unit_test(parity_error),
      cmocka_unit_test(flush_in_the_middle),
      cmocka_unit_test(abandoned_answers_are_dropped),
      cmocka_unit_test(training_reads_beside_a_hung_inference),
      cmocka_unit_test(training_stops_to_read),
      cmocka_unit_test(blocked_loads_stop),
      cmocka_unit_test(abandoned_in_a_burst),
      cmocka_unit_test(soft_fetches),
      cmocka_unit_test(dropped_fetches),
      cmocka_unit_test(sealed_stores),
  };
  return cmocka_run_group_tests_name("ct_dma", tests, NULL, NULL);
}
