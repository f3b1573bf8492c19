/* SPDX-License-Identifier: Apache-2.0 */
#include "flaky.h"

#include <sys/eventfd.h>

#include "coltrain_spec.h"

static bool fails(struct flaky *f, uint32_t offset) {
  return offset >= CT_REG_REQ_INPUT && offset <= CT_REG_REC_ROWS &&
         ct_rng_percent(&f->rng, f->percent);
}

static bool write_fails(struct flaky *f, uint32_t offset) {
  if (!f->only) return fails(f, offset);
  if (offset != f->only) return false;
  if (f->from) {
    --f->from;
    return false;
  }
  if (!ct_rng_percent(&f->rng, f->percent)) return false;
  if (f->most && --f->most == 0) f->percent = 0;
  return true;
}

/* The way to the device takes its time: of a simulator, accesses of a register that does nothing.
 */
static void lag(struct flaky *f) {
  uint64_t now = 0, end = 0;
  uint32_t id = 0;
  if (!f->lag || f->inner->now(f->self, &now) || now == CT_NO_CYCLE) return;
  end = now + ct_rng_below(&f->rng, f->lag + 1);
  while (now < end && !f->inner->reg_read(f->self, CT_REG_ID, &id) && !f->inner->now(f->self, &now))
    continue;
}

static int flaky_read(void *self, uint32_t offset, uint32_t *value) {
  struct flaky *f = self;
  lag(f);
  if (!f->only && fails(f, offset)) return CT_ERR_DEVICE;
  const int err = f->inner->reg_read(f->self, offset, value);
  if (offset == CT_REG_REC_STATE && f->shy && f->popped) *value = 0;
  if (offset == CT_REG_REC_STATE) f->popped = false;
  if (offset == CT_REG_BATCH_STATE && f->at_state) f->at_state(f);
  return err;
}

static int flaky_write(void *self, uint32_t offset, uint32_t value) {
  struct flaky *f = self;
  lag(f);
  const bool fail = write_fails(f, offset);
  const bool effect =
      !fail || f->effect == WITH || (f->effect == EITHER && ct_rng_below(&f->rng, 2));
  const int err = effect ? f->inner->reg_write(f->self, offset, value) : 0;
  if (offset == CT_REG_REC_STATE) f->popped = true;
  f->failed[effect] += fail;
  return fail ? CT_ERR_DEVICE : err;
}

static int flaky_wait(void *self, uint64_t until, int timeout_ms) {
  struct flaky *f = self;
  return f->inner->wait(f->self, until, timeout_ms);
}

static int flaky_now(void *self, uint64_t *cycle) {
  struct flaky *f = self;
  return f->inner->now(f->self, cycle);
}

/* How much of a transfer goes through: all of it, or with a failure less, or that, too. */
static size_t part(struct flaky *f, size_t size, bool *fail) {
  *fail = ct_rng_percent(&f->rng, f->mem_percent);
  f->mem_failed += *fail;
  return *fail && ct_rng_percent(&f->rng, 80) ? (size_t)(ct_rng_u64(&f->rng) % (size + 1)) : size;
}

static int flaky_mem_read(void *self, uint64_t addr, void *buf, size_t size) {
  struct flaky *f = self;
  bool fail;
  const size_t some = part(f, size, &fail);
  const int err = some ? f->inner->mem_read(f->self, addr, buf, some) : 0;
  return fail ? CT_ERR_DEVICE : err;
}

static int flaky_mem_write(void *self, uint64_t addr, const void *buf, size_t size) {
  struct flaky *f = self;
  bool fail;
  const size_t some = part(f, size, &fail);
  const int err = some ? f->inner->mem_write(f->self, addr, buf, some) : 0;
  return fail ? CT_ERR_DEVICE : err;
}

static int flaky_write_at(void *self, uint64_t cycle, uint32_t offset, uint32_t value) {
  struct flaky *f = self;
  return f->inner->reg_write_at(f->self, cycle, offset, value);
}

static int flaky_irq_fd(void *self) {
  const struct flaky *f = self;
  return f->irq;
}

void flaky_begin(struct flaky *f, ct_device *dev) {
  *f = (struct flaky){.ops = {.abi = CT_TRANSPORT_ABI,
                              .scheme = "flaky",
                              .reg_read = flaky_read,
                              .reg_write = flaky_write,
                              .mem_read = flaky_mem_read,
                              .mem_write = flaky_mem_write,
                              .wait = flaky_wait,
                              .now = flaky_now},
                      .inner = dev->plugin.ops,
                      .self = dev->self,
                      .rng = ct_rng_make(7)};
  dev->plugin.ops = &f->ops;
  dev->self = f;
}

void flaky_have_irq(struct flaky *f) {
  f->irq = eventfd(0, EFD_CLOEXEC);
  assert_true(f->irq >= 0);
  f->ops.irq_fd = flaky_irq_fd;
  f->ops.reg_write_at = flaky_write_at;
}

void flaky_end(struct flaky *f, ct_device *dev) {
  dev->plugin.ops = f->inner;
  dev->self = f->self;
}

void flaky_fail_writes(struct flaky *f, uint32_t only, unsigned most, enum effect effect) {
  f->only = only;
  f->most = most;
  f->effect = effect;
  f->percent = 100;
}
