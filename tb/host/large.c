/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The transport "large:MIB" of test_memory: an emulated device of 32 MiB that says it has MIB. Of
 * its memory only the first 32 MiB are there.
 */
#include <stdio.h>
#include <stdlib.h>

#include "coltrain/coltrain.h"
#include "coltrain_spec.h"
#include "ct_transport.h"

struct large {
  void *emu;
  uint32_t mib;
};

static int large_open(const char *args, void **self, char *why, size_t why_size) {
  struct large *l = malloc(sizeof *l);
  if (!l) {
    snprintf(why, why_size, "no memory");
    return CT_ERR_MEMORY;
  }
  l->mib = (uint32_t)strtoul(args, NULL, 10);
  const int err = ct_transport_emu.open("dram=32", &l->emu, why, why_size);
  if (err)
    free(l);
  else
    *self = l;
  return err;
}

static void large_close(void *self) {
  struct large *l = self;
  ct_transport_emu.close(l->emu);
  free(l);
}

static int large_reg_read(void *self, uint32_t offset, uint32_t *value) {
  struct large *l = self;
  const int err = ct_transport_emu.reg_read(l->emu, offset, value);
  if (offset == CT_REG_DRAM_BYTES) *value = l->mib;
  return err;
}

static int large_reg_write(void *self, uint32_t offset, uint32_t value) {
  struct large *l = self;
  return ct_transport_emu.reg_write(l->emu, offset, value);
}

static int large_mem_read(void *self, uint64_t addr, void *buf, size_t size) {
  struct large *l = self;
  return ct_transport_emu.mem_read(l->emu, addr, buf, size);
}

static int large_mem_write(void *self, uint64_t addr, const void *buf, size_t size) {
  struct large *l = self;
  return ct_transport_emu.mem_write(l->emu, addr, buf, size);
}

static int large_wait(void *self, uint64_t until, int timeout_ms) {
  struct large *l = self;
  return ct_transport_emu.wait(l->emu, until, timeout_ms);
}

static int large_now(void *self, uint64_t *cycle) {
  struct large *l = self;
  return ct_transport_emu.now(l->emu, cycle);
}

const struct ct_transport_ops *ct_transport_plugin(void) {
  static const struct ct_transport_ops ops = {.abi = CT_TRANSPORT_ABI,
                                              .scheme = "large",
                                              .open = large_open,
                                              .close = large_close,
                                              .reg_read = large_reg_read,
                                              .reg_write = large_reg_write,
                                              .mem_read = large_mem_read,
                                              .mem_write = large_mem_write,
                                              .wait = large_wait,
                                              .now = large_now};
  return &ops;
}
