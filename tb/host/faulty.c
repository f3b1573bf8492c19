/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The transport "faulty:FAULT=NUMBER" of test_cli and test_memory: an emulated device of 32 MiB
 * with one fault.
 *
 *   stuck=ADDRESS   bit 3 of that byte of memory is always 1
 *   line=BIT        that bit of memory's addresses is always 0, where the host reads and writes
 *   flip=BYTES      once so many bytes of memory have been read, one comes with a wrong bit
 *   job=NUMBER      what that job, from 1, leaves in memory has a wrong bit
 *   keep=BIT        that bit of the training context's WATCHDOG is always 0
 *   same=0          both contexts' WATCHDOG are one register
 *   size=MIB        it says that it has so much memory
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coltrain/coltrain.h"
#include "coltrain_spec.h"
#include "ct_transport.h"

enum {
  STUCK_BIT = 1 << 3,
  WRONG_BIT = 1 << 6,
  RESULT = 64, /* bytes of a read that is of a result, at least */
  WATCHDOG_0 = CT_CTX_BASE + CT_CREG_WATCHDOG,
  WATCHDOG_1 = WATCHDOG_0 + CT_CTX_STRIDE
};

enum kind { STUCK, LINE, FLIP, JOB, KEEP, SAME, SIZE, KINDS };

struct faulty {
  void *emu;
  enum kind kind;
  uint64_t number;
  uint64_t bytes, jobs; /* read, and rung for, so far */
};

static bool parse(struct faulty *f, const char *args) {
  static const char *const names[KINDS] = {
      "stuck=", "line=", "flip=", "job=", "keep=", "same=", "size="};
  for (int k = 0; k < KINDS; ++k) {
    const size_t n = strlen(names[k]);
    if (strncmp(args, names[k], n) != 0) continue;
    f->kind = (enum kind)k;
    f->number = strtoull(args + n, NULL, 0);
    return true;
  }
  return false;
}

static int faulty_open(const char *args, void **self, char *why, size_t why_size) {
  struct faulty *f = calloc(1, sizeof *f);
  if (!f || !parse(f, args)) {
    snprintf(why, why_size, "%s", f ? "there is no such fault" : "no memory");
    free(f);
    return f ? CT_ERR_ARG : CT_ERR_MEMORY;
  }
  const int err = ct_transport_emu.open("dram=32", &f->emu, why, why_size);
  if (err)
    free(f);
  else
    *self = f;
  return err;
}

static void faulty_close(void *self) {
  struct faulty *f = self;
  ct_transport_emu.close(f->emu);
  free(f);
}

/* ---- Registers ----------------------------------------------------------------------------- */

static uint32_t register_at(const struct faulty *f, uint32_t offset) {
  return f->kind == SAME && offset == WATCHDOG_1 ? WATCHDOG_0 : offset;
}

static int faulty_reg_read(void *self, uint32_t offset, uint32_t *value) {
  struct faulty *f = self;
  const int err = ct_transport_emu.reg_read(f->emu, register_at(f, offset), value);
  if (f->kind == KEEP && offset == WATCHDOG_1) *value &= ~(UINT32_C(1) << f->number);
  if (f->kind == SIZE && offset == CT_REG_DRAM_BYTES) *value = (uint32_t)f->number;
  return err;
}

static int faulty_reg_write(void *self, uint32_t offset, uint32_t value) {
  struct faulty *f = self;
  const uint32_t tail = CT_CTX_BASE + CT_CREG_TAIL;
  if (offset == tail || offset == tail + CT_CTX_STRIDE) ++f->jobs;
  return ct_transport_emu.reg_write(f->emu, register_at(f, offset), value);
}

/* ---- Memory -------------------------------------------------------------------------------- */

/* Goes to the emulator in pieces without a carry into the dead address bit. */
static int each_piece(struct faulty *f, uint64_t addr, size_t size, void *to, const void *from) {
  const uint64_t bit = f->kind == LINE ? UINT64_C(1) << f->number : 0;
  int err = CT_OK;
  for (size_t done = 0, n; !err && done < size; done += n) {
    const uint64_t at = addr + done;
    n = size - done;
    if (bit && n > bit - at % bit) n = (size_t)(bit - at % bit);
    err = to ? ct_transport_emu.mem_read(f->emu, at & ~bit, (uint8_t *)to + done, n)
             : ct_transport_emu.mem_write(f->emu, at & ~bit, (const uint8_t *)from + done, n);
  }
  return err;
}

static int faulty_mem_read(void *self, uint64_t addr, void *buf, size_t size) {
  struct faulty *f = self;
  uint8_t *bytes = buf;
  const int err = each_piece(f, addr, size, buf, NULL);
  if (f->kind == STUCK && f->number - addr < size) bytes[f->number - addr] |= STUCK_BIT;
  if (f->kind == FLIP && f->number - f->bytes < size) bytes[f->number - f->bytes] ^= WRONG_BIT;
  if (f->kind == JOB && f->jobs == f->number && size >= RESULT) bytes[RESULT / 2] ^= WRONG_BIT;
  f->bytes += size;
  return err;
}

static int faulty_mem_write(void *self, uint64_t addr, const void *buf, size_t size) {
  return each_piece(self, addr, size, NULL, buf);
}

static int faulty_wait(void *self, uint64_t until, int timeout_ms) {
  struct faulty *f = self;
  return ct_transport_emu.wait(f->emu, until, timeout_ms);
}

static int faulty_now(void *self, uint64_t *cycle) {
  struct faulty *f = self;
  return ct_transport_emu.now(f->emu, cycle);
}

const struct ct_transport_ops *ct_transport_plugin(void) {
  static const struct ct_transport_ops ops = {.abi = CT_TRANSPORT_ABI,
                                              .scheme = "faulty",
                                              .open = faulty_open,
                                              .close = faulty_close,
                                              .reg_read = faulty_reg_read,
                                              .reg_write = faulty_reg_write,
                                              .mem_read = faulty_mem_read,
                                              .mem_write = faulty_mem_write,
                                              .wait = faulty_wait,
                                              .now = faulty_now};
  return &ops;
}
