/* SPDX-License-Identifier: Apache-2.0 */
#include "ct_rig.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const uint32_t spm_base[2] = {100, 3001};

static void check(struct ct_rig *rig, int result, const char *what) {
  if (result >= 0) return;
  fail_msg("%s: %s failed with %d%s%s", rig->name, what, result, rig->error ? ": " : "",
           rig->error ? rig->error(rig->self) : "");
}

uint32_t ct_rig_read(struct ct_rig *rig, uint32_t offset) {
  uint32_t value = 0;
  check(rig, rig->ops->reg_read(rig->self, offset, &value), "register read");
  return value;
}

void ct_rig_write(struct ct_rig *rig, uint32_t offset, uint32_t value) {
  check(rig, rig->ops->reg_write(rig->self, offset, value), "register write");
}

static uint32_t creg_at(unsigned ctx, uint32_t creg) {
  return CT_CTX_BASE + ctx * CT_CTX_STRIDE + creg;
}

uint32_t ct_rig_cread(struct ct_rig *rig, unsigned ctx, uint32_t creg) {
  return ct_rig_read(rig, creg_at(ctx, creg));
}

void ct_rig_cwrite(struct ct_rig *rig, unsigned ctx, uint32_t creg, uint32_t value) {
  ct_rig_write(rig, creg_at(ctx, creg), value);
}

uint64_t ct_rig_counter(struct ct_rig *rig, unsigned ctx, unsigned index) {
  const uint32_t at = CT_CNT_BASE + (ctx * 32 + index) * 8;
  const uint64_t low = ct_rig_read(rig, at);
  return low | (uint64_t)ct_rig_read(rig, at + 4) << 32;
}

uint64_t ct_rig_addr(unsigned ctx, uint32_t offset) {
  return (uint64_t)ctx * CT_RIG_CTX_BYTES + offset;
}

uint32_t ct_rig_unit(unsigned ctx, uint32_t offset) {
  return (uint32_t)(ct_rig_addr(ctx, offset) / 16);
}

void ct_rig_windows(struct ct_rig *rig, unsigned c) {
  ct_rig_cwrite(rig, c, CT_CREG_RING_BASE, ct_rig_unit(c, 0));
  ct_rig_cwrite(rig, c, CT_CREG_RD_BASE, ct_rig_unit(c, 0));
  ct_rig_cwrite(rig, c, CT_CREG_RD_LIMIT, ct_rig_unit(c, CT_RIG_CTX_BYTES));
  ct_rig_cwrite(rig, c, CT_CREG_WR_BASE, ct_rig_unit(c, CT_RIG_OUT));
  ct_rig_cwrite(rig, c, CT_CREG_WR_LIMIT, ct_rig_unit(c, CT_RIG_OUT) + CT_GEN_OUT_UNITS);
  ct_rig_cwrite(rig, c, CT_CREG_SPM_BASE, spm_base[c]);
  ct_rig_cwrite(rig, c, CT_CREG_SPM_SIZE, CT_GEN_SPM);
}

void ct_rig_setup(struct ct_rig *rig) {
  for (unsigned c = 0; c < 2; ++c) {
    rig->tail[c] = 0;
    ct_rig_cwrite(rig, c, CT_CREG_RING_LOG2, CT_RIG_RING_LOG2);
    ct_rig_windows(rig, c);
  }
}

uint32_t ct_rig_spm_base(unsigned ctx) {
  return spm_base[ctx];
}

void ct_rig_open(struct ct_rig *rig, const char *name, const struct ct_transport_ops *ops,
                 const char *(*error)(void *self), const char *args) {
  char why[256] = "";
  *rig = (struct ct_rig){.name = name, .ops = ops, .error = error};
  assert_int_equal(ops->abi, CT_TRANSPORT_ABI);
  if (ops->open(args, &rig->self, why, sizeof why) < 0) fail_msg("%s:%s: %s", name, args, why);
  ct_rig_setup(rig);
}

void ct_rig_close(struct ct_rig *rig) {
  rig->ops->close(rig->self);
}

static void put32(uint8_t *p, unsigned word, uint32_t value) {
  for (unsigned b = 0; b < 4; ++b)
    p[4 * word + b] = (uint8_t)(value >> 8 * b);
}

void ct_rig_submit(struct ct_rig *rig, unsigned ctx, const struct ct_rig_job *job) {
  const unsigned slot = rig->tail[ctx] % (1u << CT_RIG_RING_LOG2);
  const uint32_t at = CT_RIG_PROGS + slot * CT_PROG_MAX * CT_CMD_BYTES;
  uint8_t prog[CT_PROG_MAX * CT_CMD_BYTES], desc[CT_DESC_BYTES] = {0};
  for (unsigned i = 0; i < job->prog->count; ++i)
    ct_cmd_to_bytes(&job->prog->cmds[i], prog + CT_CMD_BYTES * i);
  put32(desc, CT_DESC_TAG, job->tag);
  put32(desc, CT_DESC_VERSION, job->version);
  put32(desc, CT_DESC_PROG, job->prog_unit ? job->prog_unit : ct_rig_unit(ctx, at));
  put32(desc, CT_DESC_NCMDS, job->ncmds ? job->ncmds : job->prog->count);
  put32(desc, CT_DESC_WATCHDOG, job->watchdog);
  put32(desc, CT_DESC_FLAGS, job->flags);
  for (unsigned i = 0; i < CT_NUM_ARGS; ++i)
    put32(desc, CT_DESC_ARG0 + i, job->prog->args[i]);
  check(rig,
        rig->ops->mem_write(rig->self, ct_rig_addr(ctx, at), prog,
                            CT_CMD_BYTES * (size_t)job->prog->count),
        "memory write");
  check(rig,
        rig->ops->mem_write(rig->self, ct_rig_addr(ctx, slot * CT_DESC_BYTES), desc, sizeof desc),
        "memory write");
  ++rig->tail[ctx];
}

void ct_rig_ring(struct ct_rig *rig, unsigned ctx) {
  ct_rig_cwrite(rig, ctx, CT_CREG_TAIL, rig->tail[ctx]);
}

static uint64_t read64(struct ct_rig *rig, unsigned ctx, uint32_t lo, uint32_t hi) {
  return ct_rig_cread(rig, ctx, lo) | (uint64_t)ct_rig_cread(rig, ctx, hi) << 32;
}

struct ct_rig_cpl ct_rig_reap(struct ct_rig *rig, unsigned ctx, uint64_t limit) {
  uint64_t now;
  check(rig, rig->ops->now(rig->self, &now), "now");
  ct_rig_write(rig, CT_REG_IRQ_ENABLE, 1u << ctx);
  const uint64_t until = now == CT_NO_CYCLE ? CT_NO_CYCLE : now + limit;
  check(rig, rig->ops->wait(rig->self, until, -1), "wait");
  if (!ct_rig_cread(rig, ctx, CT_CREG_CPL_COUNT))
    fail_msg("%s: context %u: no completion within %" PRIu64 " cycles; STATUS %08" PRIx32,
             rig->name, ctx, limit, ct_rig_cread(rig, ctx, CT_CREG_STATUS));
  const struct ct_rig_cpl c = {
      .tag = ct_rig_cread(rig, ctx, CT_CREG_CPL_TAG),
      .code = ct_rig_cread(rig, ctx, CT_CREG_CPL_CODE),
      .addr = ct_rig_cread(rig, ctx, CT_CREG_CPL_ADDR),
      .version = ct_rig_cread(rig, ctx, CT_CREG_CPL_VERSION),
      .rows = ct_rig_cread(rig, ctx, CT_CREG_CPL_ROWS),
      .arrive = read64(rig, ctx, CT_CREG_CPL_ARRIVE_LO, CT_CREG_CPL_ARRIVE_HI),
      .start = read64(rig, ctx, CT_CREG_CPL_START_LO, CT_CREG_CPL_START_HI),
      .end = read64(rig, ctx, CT_CREG_CPL_END_LO, CT_CREG_CPL_END_HI),
  };
  ct_rig_cwrite(rig, ctx, CT_CREG_CPL_POP, 1);
  return c;
}

void ct_rig_pass(struct ct_rig *rig, uint64_t cycles) {
  uint64_t now;
  check(rig, rig->ops->now(rig->self, &now), "now");
  if (now == CT_NO_CYCLE) return;
  ct_rig_write(rig, CT_REG_IRQ_ENABLE, 0);
  check(rig, rig->ops->wait(rig->self, now + cycles, -1), "wait");
}

void ct_rig_peek(struct ct_rig *rig, uint32_t addr, uint32_t word[5]) {
  ct_rig_write(rig, CT_REG_DBG_ADDR, addr);
  ct_rig_write(rig, CT_REG_DBG_PEEK, 1);
  word[4] = 0;
  for (unsigned tries = 0; tries < 100 && !(word[4] >> 31); ++tries)
    word[4] = ct_rig_read(rig, CT_REG_DBG_DATA4);
  assert_true(word[4] >> 31);
  for (unsigned i = 0; i < 4; ++i)
    word[i] = ct_rig_read(rig, CT_REG_DBG_DATA0 + 4 * i);
}
