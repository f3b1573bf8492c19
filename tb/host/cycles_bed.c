/* SPDX-License-Identifier: Apache-2.0 */
#include "cycles_bed.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ct_device.h"
#include "harness/ct_tb.h"

/* How far the model may be off: percent, and cycles more. */
enum { TOLERANCE = 3, SLACK = 20 };

/* ---- Measured ---- */

static uint64_t count_of(struct cycles_bed *b, unsigned counter) {
  uint64_t value[32];
  assert_true(ct_counters(b->dev, b->queue, value, 32) > (int)counter);
  return value[counter];
}

struct seen {
  uint64_t cycles, busy[CT_UNIT_COUNT], commands, rows;
};

static const unsigned counters[CT_UNIT_COUNT] = {CT_CNT_LD_BEATS, CT_CNT_ST_BEATS, CT_CNT_MXU_BUSY,
                                                 CT_CNT_VL_BUSY,  CT_CNT_VA_BUSY,  CT_CNT_VS_BUSY};

static void count(struct cycles_bed *b, struct seen *s, uint64_t sign) {
  for (unsigned u = 0; u < CT_UNIT_COUNT; ++u)
    s->busy[u] += sign * count_of(b, counters[u]);
  s->commands += sign * count_of(b, CT_CNT_CMDS);
  s->rows += sign * count_of(b, CT_CNT_MXU_ROWS);
}

/* A job that does nothing. Behind it the device does not guess that a program comes again, which a
 * test's one might, at the address that the last one had. */
static void run_nothing(struct cycles_bed *b) {
  struct ct_cmd end = {{0}};
  uint8_t bytes[CT_CMD_BYTES];
  CT_PUT(&end, ALL_OP, CT_OP_END);
  ct_cmd_to_bytes(&end, bytes);
  struct ct_job job = {0};
  ct_program *program;
  assert_int_equal(ct_program_load(b->dev, bytes, 1, &program), CT_OK);
  job.program = program;
  assert_int_equal(ct_submit(b->dev, b->queue, &job, NULL), CT_OK);
  struct ct_event e;
  assert_int_equal(ct_reap(b->dev, &e, CT_FOREVER), CT_OK);
  ct_program_free(program);
}

/* Jobs in a row, from the first one's start to the last one's end. */
static struct seen measure(struct cycles_bed *b, const struct ct_codes *codes,
                           const uint32_t *args) {
  struct seen s = {0};
  ct_program **program = test_calloc(codes->count, sizeof(ct_program *));
  uint8_t *bytes = test_malloc((size_t)CT_PROG_MAX * CT_CMD_BYTES);
  for (size_t i = 0; i < codes->count; ++i) {
    for (size_t k = 0; k < codes->job[i].count; ++k)
      ct_cmd_to_bytes(&codes->job[i].cmd[k], bytes + k * (size_t)CT_CMD_BYTES);
    assert_int_equal(ct_program_load(b->dev, bytes, codes->job[i].count, &program[i]), CT_OK);
  }
  run_nothing(b);
  count(b, &s, UINT64_MAX);
  for (size_t i = 0; i < codes->count; ++i) {
    struct ct_job job = {.program = program[i]};
    memcpy(job.args, args, CT_NUM_ARGS * sizeof *args);
    assert_int_equal(ct_submit(b->dev, b->queue, &job, NULL), CT_OK);
  }
  uint64_t start = 0;
  for (size_t i = 0; i < codes->count; ++i) {
    struct ct_event e;
    assert_int_equal(ct_reap(b->dev, &e, CT_FOREVER), CT_OK);
    assert_int_equal(e.code, CT_DEV_OK);
    if (!i) start = e.start;
    s.cycles = e.end - start;
  }
  count(b, &s, 1);
  for (size_t i = 0; i < codes->count; ++i)
    ct_program_free(program[i]);
  test_free(bytes);
  test_free(program);
  return s;
}

/* ---- Expected ---- */

static struct ct_cycles expect(const struct cycles_bed *b, const struct ct_codes *codes,
                               const uint32_t *args) {
  struct ct_cycles sum = {0}, one = {0};
  struct ct_cycles_core core = b->core;
  for (size_t i = 0; i < codes->count; ++i) {
    core.ahead = one.tail;
    core.next = i + 1 < codes->count ? (uint32_t)codes->job[i + 1].count : 0;
    const int err = ct_cycles(&core, codes->job[i].cmd, codes->job[i].count, args, &one);
    if (err) fail_msg("job %zu: error %d", i, err);
    sum.total += one.total;
    sum.beats_read += one.beats_read;
    sum.beats_written += one.beats_written;
    sum.rows += one.rows;
    sum.commands += one.commands;
    for (unsigned u = 0; u < CT_UNIT_COUNT; ++u)
      sum.busy[u] += one.busy[u];
  }
  return sum;
}

static bool near(uint64_t want, uint64_t got) {
  const uint64_t off = want > got ? want - got : got - want;
  return off * 100 <= want * TOLERANCE + UINT64_C(100) * SLACK;
}

/* What the model says of the units is what their counters say: of the array, where tiles with few
 * rows wait for weights, no less; of VL, which waits for the scratchpad, no more. */
static bool same_work(const struct ct_cycles *want, const struct seen *got) {
  bool same = want->beats_read == got->busy[CT_UNIT_READ] &&
              want->beats_written == got->busy[CT_UNIT_WRITE] && want->rows == got->rows &&
              want->commands == got->commands && want->busy[CT_UNIT_MXU] >= got->busy[CT_UNIT_MXU];
  same &= want->busy[CT_UNIT_VL] <= got->busy[CT_UNIT_VL];
  return same && near(got->busy[CT_UNIT_VA], want->busy[CT_UNIT_VA]) &&
         near(got->busy[CT_UNIT_VS], want->busy[CT_UNIT_VS]);
}

void cycles_compare(struct cycles_bed *b, const char *name, const struct ct_codes *codes,
                    const uint32_t *args) {
  const struct ct_cycles want = expect(b, codes, args);
  const struct seen got = measure(b, codes, args);
  const double off = 100.0 * ((double)want.total - (double)got.cycles) / (double)got.cycles;
  const bool good = near(got.cycles, want.total) && same_work(&want, &got);
  if (getenv("SHOW"))
    print_message("%-26s %8" PRIu64 " measured %8" PRIu64 " expected %+5d %+6.1f %%  %s\n", name,
                  got.cycles, want.total, (int)(want.total - got.cycles), off,
                  ct_cycles_by_name(ct_cycles_bound(&want)));
  ++b->cases;
  if (good) return;
  ++b->wrong;
  print_message("%s, %s: %" PRIu64 " cycles, not %" PRIu64 "; rows %" PRIu64 ", not %" PRIu64
                "; commands %" PRIu64 ", not %" PRIu64 "\n",
                b->uri, name, got.cycles, want.total, got.rows, want.rows, got.commands,
                want.commands);
  for (unsigned u = 0; u < CT_UNIT_COUNT; ++u)
    print_message("  unit %u worked %" PRIu64 " cycles or beats, not %" PRIu64 "\n", u, got.busy[u],
                  want.busy[u]);
}

/* ---- Cores and memories ---- */

void cycles_open(struct cycles_bed *b, const char *uri, enum ct_queue queue, uint32_t latency,
                 uint32_t bytes) {
  struct ct_info info;
  uint64_t addr;
  *b = (struct cycles_bed){.uri = uri, .queue = queue};
  if (ct_open(uri, &b->dev)) fail_msg("%s", ct_last_error(NULL));
  assert_int_equal(ct_info(b->dev, &info), CT_OK);
  assert_int_equal(ct_mem_alloc(b->dev, (uint64_t)CYCLES_PART * CYCLES_PARTS, &addr), CT_OK);
  b->core = (struct ct_cycles_core){.cols = info.array_cols,
                                    .lanes = info.vpu_lanes,
                                    .walks = info.features & CT_FEATURE_CONVOLUTION,
                                    .latency = latency,
                                    .bytes = bytes};
  if (queue == CT_TRAINING)
    assert_int_equal(ct_reg_read(b->dev, CT_REG_TRAIN_CAP, &b->core.reads), CT_OK);
  b->unit = (uint32_t)(addr / 16);
  b->spm_words = info.spm_words / 2;
}

void cycles_close(struct cycles_bed *b) {
  ct_close(b->dev);
  print_message("%s: %u of %u programs as expected\n", b->uri, b->cases - b->wrong, b->cases);
  assert_int_equal(b->wrong, 0);
}
