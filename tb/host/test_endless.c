/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs that compute for ever, or nearly, on emu: and sim:. No call takes longer than it was told
 * to, the other queue goes on, and such a job can be cancelled, reset, freed and closed over. With
 * a watchdog it ends by that: the emulator counts work as its time, and never more than the
 * hardware takes.
 */
#include "ct_tb.h"

#include <string.h>

#include "coltrain/coltrain.h"
#include "ct_cmd.h"
#include "ct_prog.h"
#include "ct_queue.h"

enum { UNIT = 16, MOST = 16, PATIENCE_MS = 3000 };

struct list {
  struct ct_cmd cmd[MOST];
  size_t count;
};

static struct ct_cmd *add(struct list *l, uint32_t op) {
  assert_true(l->count < MOST);
  struct ct_cmd *cmd = &l->cmd[l->count++];
  memset(cmd, 0, sizeof *cmd);
  CT_PUT(cmd, ALL_OP, op);
  return cmd;
}

/* So many loops, one in the other, of 2^32 - 1 passes; or their ends. */
static void loops(struct list *l, unsigned n, uint32_t op) {
  for (unsigned i = 0; i < n; ++i) {
    struct ct_cmd *cmd = add(l, op);
    if (op == CT_OP_LOOP) CT_PUT(cmd, CTL_COUNT, UINT32_MAX);
  }
}

/* As much as one command moves: 2^32 beats. */
static void add_dma(struct list *l, uint32_t op, uint32_t reg) {
  struct ct_cmd *cmd = add(l, op);
  CT_PUT(cmd, DMA_DRAM_REG, reg);
  CT_PUT(cmd, DMA_NB, 256);
  CT_PUT(cmd, DMA_S0, 1);
  CT_PUT(cmd, DMA_N1, 4095);
  CT_PUT(cmd, DMA_N2, 4095);
}

static void add_mm(struct list *l) {
  struct ct_cmd *cmd = add(l, CT_OP_MM);
  CT_PUT(cmd, MM_KT, 4095);
  CT_PUT(cmd, MM_NT, 8);
  CT_PUT(cmd, MM_ROWS, 16);
  CT_PUT(cmd, MM_ACC_N, 1);
}

static void add_va(struct list *l) {
  struct ct_cmd *cmd = add(l, CT_OP_VA);
  CT_PUT(cmd, VA_MORE, 7);
  CT_PUT(cmd, VA_ROWS, 16);
  CT_PUT(cmd, VA_COLS, 16);
}

/* Ways to be busy for ever. */
enum kind { CONTROL, NEST, LOAD, STORE, MULTIPLY, VECTOR, KINDS };

static void write_down(struct list *l, enum kind kind) {
  const unsigned nest = kind == NEST ? 4 : 1;
  l->count = 0;
  loops(l, kind == CONTROL ? 4 : nest, CT_OP_LOOP);
  if (kind == NEST) CT_PUT(add(l, CT_OP_ADDI), ADDI_RD0, 9);
  if (kind == LOAD) add_dma(l, CT_OP_LD, 1);
  if (kind == STORE) add_dma(l, CT_OP_ST, 2);
  if (kind == MULTIPLY) add_mm(l);
  if (kind == VECTOR) add_va(l);
  loops(l, kind == CONTROL ? 4 : nest, CT_OP_ENDL);
  add(l, CT_OP_END);
}

/* ---- A device, and programs on it ---- */

struct bed {
  ct_device *dev;
  bool emu;
  uint64_t at; /* memory that is written to */
};

static void open_bed(struct bed *b, bool emu) {
  *b = (struct bed){.emu = emu};
  if (ct_open(emu ? "emu:dram=32" : "sim:dram=32", &b->dev)) fail_msg("%s", ct_last_error(NULL));
  assert_int_equal(ct_mem_alloc(b->dev, 1 << 16, &b->at), CT_OK);
  /* Under CT_PRIORITY training has no claim to a unit that inference keeps busy. */
  assert_int_equal(ct_set_policy(b->dev, CT_ROUND_ROBIN), CT_OK);
}

static ct_program *load(struct bed *b, const struct list *l) {
  uint8_t bytes[MOST * CT_CMD_BYTES];
  ct_program *program;
  for (size_t i = 0; i < l->count; ++i)
    ct_cmd_to_bytes(&l->cmd[i], bytes + i * CT_CMD_BYTES);
  assert_int_equal(ct_program_load(b->dev, bytes, l->count, &program), CT_OK);
  return program;
}

static ct_program *endless(struct bed *b, enum kind kind) {
  struct list l;
  write_down(&l, kind);
  return load(b, &l);
}

static uint64_t submit(struct bed *b, enum ct_queue queue, const ct_program *p, uint32_t watchdog) {
  const uint32_t at = (uint32_t)(b->at / UNIT);
  const struct ct_job job = {.program = p, .args = {at, at}, .watchdog = watchdog};
  uint64_t tag;
  const uint64_t from = ct_tb_ms();
  assert_int_equal(ct_submit(b->dev, queue, &job, &tag), CT_OK);
  assert_true(ct_tb_ms() - from < PATIENCE_MS);
  return tag;
}

/* A timeout that is kept, and no event. */
static void waits_in_vain(struct bed *b, uint64_t tag, int timeout_ms) {
  const uint64_t from = ct_tb_ms();
  assert_int_equal(ct_wait(b->dev, tag, NULL, timeout_ms), CT_ERR_TIMEOUT);
  assert_true(ct_tb_ms() - from < PATIENCE_MS);
  assert_true(ct_tb_ms() - from >= (uint64_t)timeout_ms);
}

static void ends_with(struct bed *b, uint64_t tag, int error, uint32_t code) {
  struct ct_event e;
  assert_int_equal(ct_wait(b->dev, tag, &e, PATIENCE_MS), CT_OK);
  assert_int_equal(e.error, error);
  assert_int_equal(e.code, code);
}

/* Whether the queue computes as it should. */
static void works(struct bed *b, enum ct_queue queue) {
  const float two = 2, three = 3;
  float six = 0;
  if (ct_matmul(b->dev, queue, 1, 1, 1, &two, &three, &six, NULL))
    fail_msg("%s", ct_last_error(b->dev));
  assert_true(six == 6.0f);
}

/* ---- Tests ---- */

static void a_watchdog_ends_it(struct bed *b) {
  for (int kind = 0; kind < KINDS; ++kind) {
    for (int queue = 0; queue < CT_QUEUES; ++queue) {
      ct_program *p = endless(b, (enum kind)kind);
      const uint64_t tag = submit(b, (enum ct_queue)queue, p, 10000);
      ends_with(b, tag, CT_ERR_JOB, CT_DEV_WATCHDOG);
      works(b, (enum ct_queue)queue);
      ct_program_free(p);
    }
  }
}

/* That of the context, where the job names none. */
static void the_context_has_one_too(struct bed *b) {
  ct_program *p = endless(b, NEST);
  const uint32_t reg = ct_queue_reg(CT_TRAINING, CT_CREG_WATCHDOG);
  assert_int_equal(ct_reg_write(b->dev, reg, 5000), CT_OK);
  ends_with(b, submit(b, CT_TRAINING, p, 0), CT_ERR_JOB, CT_DEV_WATCHDOG);
  assert_int_equal(ct_reg_write(b->dev, reg, 0), CT_OK);
  works(b, CT_TRAINING);
  ct_program_free(p);
}

/* Without one: calls return in time, the other queue goes on, and a cancel ends it. */
static void a_cancel_ends_it(struct bed *b) {
  for (int kind = 0; kind < KINDS; ++kind) {
    for (int queue = 0; queue < CT_QUEUES; ++queue) {
      ct_program *p = endless(b, (enum kind)kind);
      const uint64_t tag = submit(b, (enum ct_queue)queue, p, 0);
      waits_in_vain(b, tag, CT_NO_WAIT);
      waits_in_vain(b, tag, 30);
      works(b, (enum ct_queue) !queue);
      assert_int_equal(ct_outstanding(b->dev, (enum ct_queue)queue), 1);
      assert_int_equal(ct_cancel(b->dev, tag), CT_OK);
      ends_with(b, tag, CT_ERR_CANCELLED, CT_DEV_CANCELLED);
      works(b, (enum ct_queue)queue);
      ct_program_free(p);
    }
  }
}

/* A call that blocks behind it gives up; freeing its program ends it. */
static void others_give_up(struct bed *b) {
  const float one = 1;
  float c;
  struct ct_event e;
  ct_program *p = endless(b, NEST);
  const uint64_t tag = submit(b, CT_INFERENCE, p, 0);
  assert_int_equal(ct_set_timeout(b->dev, 50), CT_OK);
  const uint64_t from = ct_tb_ms();
  assert_int_equal(ct_matmul(b->dev, CT_INFERENCE, 1, 1, 1, &one, &one, &c, NULL), CT_ERR_DEVICE);
  assert_true(ct_tb_ms() - from < PATIENCE_MS);
  ct_program_free(p);
  assert_true(ct_tb_ms() - from < 2 * PATIENCE_MS);
  ends_with(b, tag, CT_ERR_CANCELLED, CT_DEV_CANCELLED);
  assert_int_equal(ct_reap(b->dev, &e, PATIENCE_MS), CT_OK);
  assert_int_equal(e.error, CT_ERR_CANCELLED);
  assert_int_equal(ct_set_timeout(b->dev, CT_FOREVER), CT_OK);
  works(b, CT_INFERENCE);
}

/* A reset of the context ends it, and drops what is queued behind it. */
static void a_reset_ends_it(struct bed *b) {
  ct_program *p = endless(b, LOAD);
  const uint64_t tag = submit(b, CT_TRAINING, p, 0);
  assert_int_equal(ct_reg_write(b->dev, ct_queue_reg(CT_TRAINING, CT_CREG_CONTROL), 1), CT_OK);
  ends_with(b, tag, CT_ERR_CANCELLED, CT_DEV_RESET);
  works(b, CT_TRAINING);
  ct_program_free(p);
}

/* What takes more than a call's share of work, and ends: a look is enough to get it there. */
static void long_jobs_end_by_looking(struct bed *b) {
  enum { PASSES = 300000 };
  struct list l = {.count = 0};
  CT_PUT(add(&l, CT_OP_LOOP), CTL_COUNT, PASSES);
  add(&l, CT_OP_NOP);
  add(&l, CT_OP_NOP);
  add(&l, CT_OP_ENDL);
  add(&l, CT_OP_END);
  ct_program *p = load(b, &l);
  const uint64_t tag = submit(b, CT_INFERENCE, p, 2 * 4 * PASSES);
  const uint64_t from = ct_tb_ms();
  struct ct_event e;
  int looks = 0, err = CT_ERR_TIMEOUT;
  for (; err == CT_ERR_TIMEOUT && ct_tb_ms() - from < 20 * PATIENCE_MS; ++looks)
    err = ct_reap(b->dev, &e, CT_NO_WAIT);
  assert_int_equal(err, CT_OK);
  assert_true(e.tag == tag);
  assert_int_equal(e.error, CT_OK);
  assert_true(looks > 1);
  ct_program_free(p);
}

/* The emulator's time is a lower bound: commands dispatched, or beats, or rows, whichever are most.
 * So a limit of that many is kept there, and one less is not; and hardware takes longer. */
static void the_limit_is_the_work(struct bed *b) {
  ct_rng rng = ct_rng_make(ct_tb_seed());
  for (int i = 0; i < 20; ++i) {
    struct list l = {.count = 0};
    const uint32_t passes = 1 + ct_rng_below(&rng, 500), beats = 1 + ct_rng_below(&rng, 4);
    CT_PUT(add(&l, CT_OP_LOOP), CTL_COUNT, passes);
    add_dma(&l, CT_OP_LD, 1);
    CT_PUT(&l.cmd[1], DMA_NB, beats);
    CT_PUT(&l.cmd[1], DMA_N1, 1);
    CT_PUT(&l.cmd[1], DMA_N2, 1);
    add(&l, CT_OP_ENDL);
    add(&l, CT_OP_END);
    const uint32_t commands = 2 * passes + 2, loaded = beats * passes;
    const uint32_t least = commands > loaded ? commands : loaded;
    ct_program *p = load(b, &l);
    ends_with(b, submit(b, CT_TRAINING, p, least - 1), CT_ERR_JOB, CT_DEV_WATCHDOG);
    const uint64_t tag = submit(b, CT_TRAINING, p, b->emu ? least : 20 * least + 1000);
    ends_with(b, tag, CT_OK, CT_DEV_OK);
    ct_program_free(p);
  }
}

static void closing_is_bounded(void **state) {
  (void)state;
  for (int emu = 0; emu < 2; ++emu) {
    for (int kind = 0; kind < KINDS; ++kind) {
      struct bed b;
      open_bed(&b, emu);
      ct_program *p = endless(&b, (enum kind)kind);
      for (int i = 0; i < 3; ++i) {
        submit(&b, CT_INFERENCE, p, 0);
        submit(&b, CT_TRAINING, p, 0);
      }
      const uint64_t from = ct_tb_ms();
      ct_close(b.dev);
      assert_true(ct_tb_ms() - from < PATIENCE_MS);
      ct_program_free(p);
    }
  }
}

/* ---- On both ---- */

static void on_both(void (*test)(struct bed *)) {
  for (int emu = 0; emu < 2; ++emu) {
    struct bed b;
    open_bed(&b, emu);
    test(&b);
    assert_int_equal(ct_outstanding(b.dev, CT_INFERENCE) + ct_outstanding(b.dev, CT_TRAINING), 0);
    ct_close(b.dev);
  }
}

#define ON_BOTH(test)                           \
  static void test##_everywhere(void **state) { \
    (void)state;                                \
    on_both(test);                              \
  }

ON_BOTH(a_watchdog_ends_it)
ON_BOTH(the_context_has_one_too)
ON_BOTH(a_cancel_ends_it)
ON_BOTH(others_give_up)
ON_BOTH(a_reset_ends_it)
ON_BOTH(long_jobs_end_by_looking)
ON_BOTH(the_limit_is_the_work)

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_watchdog_ends_it_everywhere),
      cmocka_unit_test(the_context_has_one_too_everywhere),
      cmocka_unit_test(a_cancel_ends_it_everywhere),
      cmocka_unit_test(others_give_up_everywhere),
      cmocka_unit_test(a_reset_ends_it_everywhere),
      cmocka_unit_test(long_jobs_end_by_looking_everywhere),
      cmocka_unit_test(the_limit_is_the_work_everywhere),
      cmocka_unit_test(closing_is_bounded),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
