/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Verilated core, its memory, and register accesses in real bus cycles.
 *
 * The clock: cycle n is the time between rising edges n and n + 1 after reset; the core's CYCLE
 * register shows n in it. tick() is one cycle: drive the inputs, let the outputs settle, note what
 * the buses hand over, then the rising edge. The model takes its inputs when it is notified that
 * they changed (ct_core_sampled.sv says why).
 */
#ifndef CT_SIM_MODEL
#define CT_SIM_MODEL ct_core
#define CT_SIM_HEADER "ct_core_dut.h"
#endif

#include <errno.h>
#include <fenv.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include CT_SIM_HEADER
#include "coltrain/coltrain.h" /* the errors transports return */
#include "coltrain_spec.h"
#include "ct_sim.h"
#include "ct_sim_mem.h"
#include "ct_sim_probe.h"
#include "host/transports/ct_deadline.h"
#include "host/transports/ct_uri.h"

#define PASTE2(a, b) a##b
#define PASTE(a, b) PASTE2(a, b)
#define DUT(name) PASTE(CT_SIM_MODEL, PASTE(_, name))

enum {
  ANSWER_CYCLES = 10000, /* a register access that takes longer has failed */
  GUARD_CYCLES = 64,     /* a blocking write lets scheduled ones pass that are this near */
  WRITE_CYCLES = 1,      /* from the cycle in which the core takes a write to its effect */
  CLOCK_TICKS = 1024     /* cycles between looks at the wall clock */
};

/* An AXI-Lite write or read under way. */
struct access {
  bool active, addr_done, data_done;
  uint32_t offset, data, resp;
};

struct scheduled {
  uint64_t cycle;
  uint32_t offset, value;
};

struct sim {
  const struct ct_transport_ops *ops; /* first: the plug-in finds the model's functions by it */
  DUT(dut) * dut;
  struct ct_sim_mem mem;
  struct ct_axi_in in;
  struct ct_axi_out out, driven; /* what the memory says; what the inputs are */
  struct access write, read;
  struct scheduled *queue; /* sorted by cycle; queue[first] is next */
  size_t first, count, capacity;
  uint64_t cycle;
  uint64_t dram_mib, clock_hz;
  bool axil_driven; /* the register bus was not idle in the last cycle */
  bool changed;     /* an input was driven that the model has not taken */
  bool traced;
  struct ct_sim_probe probe;
  struct ct_sim_mem_counts probed; /* what the memory had counted when it began */
  char error[200];
};

/* ---- Buses --------------------------------------------------------------------------------- */

static void take_axi_outputs(struct sim *s) {
  const DUT(dut) *d = s->dut;
  struct ct_axi_in *in = &s->in;
  in->awvalid = *d->m_axi_awvalid_o;
  in->wvalid = *d->m_axi_wvalid_o;
  in->arvalid = *d->m_axi_arvalid_o;
  in->bready = *d->m_axi_bready_o;
  in->rready = *d->m_axi_rready_o;
  if (in->awvalid) {
    in->awid = *d->m_axi_awid_o;
    in->awaddr = *d->m_axi_awaddr_o;
    in->awlen = *d->m_axi_awlen_o;
    in->awsize = *d->m_axi_awsize_o;
    in->awburst = *d->m_axi_awburst_o;
  }
  if (in->arvalid) {
    in->arid = *d->m_axi_arid_o;
    in->araddr = *d->m_axi_araddr_o;
    in->arlen = *d->m_axi_arlen_o;
    in->arsize = *d->m_axi_arsize_o;
    in->arburst = *d->m_axi_arburst_o;
  }
  if (in->wvalid) {
    memcpy(in->wdata, d->m_axi_wdata_o, sizeof in->wdata);
    in->wstrb = *d->m_axi_wstrb_o;
    in->wlast = *d->m_axi_wlast_o;
  }
}

static void drive_axi_inputs(struct sim *s) {
  const DUT(dut) *d = s->dut;
  const struct ct_axi_out *out = &s->out;
  if (!memcmp(out, &s->driven, sizeof *out)) return;
  s->driven = *out;
  s->changed = true;
  *d->m_axi_awready_i = out->awready;
  *d->m_axi_wready_i = out->wready;
  *d->m_axi_arready_i = out->arready;
  *d->m_axi_bvalid_i = out->bvalid;
  *d->m_axi_bid_i = out->bid;
  *d->m_axi_bresp_i = out->bresp;
  *d->m_axi_rvalid_i = out->rvalid;
  *d->m_axi_rid_i = out->rid;
  *d->m_axi_rresp_i = out->rresp;
  *d->m_axi_rlast_i = out->rlast;
  memcpy(d->m_axi_rdata_i, out->rdata, sizeof out->rdata);
}

static void drive_axil(struct sim *s) {
  const DUT(dut) *d = s->dut;
  s->changed = true;
  *d->s_axil_awvalid_i = s->write.active && !s->write.addr_done;
  *d->s_axil_wvalid_i = s->write.active && !s->write.data_done;
  *d->s_axil_awaddr_i = (uint16_t)s->write.offset;
  *d->s_axil_wdata_i = s->write.data;
  *d->s_axil_wstrb_i = 15;
  *d->s_axil_bready_i = 1;
  *d->s_axil_arvalid_i = s->read.active && !s->read.addr_done;
  *d->s_axil_araddr_i = (uint16_t)s->read.offset;
  *d->s_axil_rready_i = 1;
}

/* What the settled handshakes of this cycle hand over. */
static void take_axil(struct sim *s) {
  const DUT(dut) *d = s->dut;
  struct access *w = &s->write, *r = &s->read;
  if (*d->s_axil_bvalid_o && w->addr_done && w->data_done) {
    w->resp = *d->s_axil_bresp_o;
    w->active = false;
  }
  if (*d->s_axil_rvalid_o && r->addr_done) {
    r->resp = *d->s_axil_rresp_o;
    r->data = *d->s_axil_rdata_o;
    r->active = false;
  }
  if (*d->s_axil_awvalid_i && *d->s_axil_awready_o) w->addr_done = true;
  if (*d->s_axil_wvalid_i && *d->s_axil_wready_o) w->data_done = true;
  if (*d->s_axil_arvalid_i && *d->s_axil_arready_o) r->addr_done = true;
}

static void start_access(struct access *a, uint32_t offset, uint32_t data) {
  *a = (struct access){.active = true, .offset = offset, .data = data};
}

/* ---- The clock ----------------------------------------------------------------------------- */

static void start_scheduled(struct sim *s) {
  if (s->write.active || !s->count || s->queue[s->first].cycle > s->cycle + WRITE_CYCLES) return;
  start_access(&s->write, s->queue[s->first].offset, s->queue[s->first].value);
  ++s->first;
  --s->count;
}

static void probe(struct sim *s) {
  const struct ct_sim_mem_counts now = ct_sim_mem_counts(&s->mem);
  s->probe.to->refused += now.refused;
  s->probe.to->refreshes = now.refreshes - s->probed.refreshes;
  s->probe.to->rows = now.rows - s->probed.rows;
  ct_sim_probe_cycle(&s->probe, s->cycle, *s->dut->probe_o);
}

static void tick(struct sim *s) {
  start_scheduled(s);
  const bool access = s->write.active || s->read.active;
  if (access || s->axil_driven) drive_axil(s);
  s->axil_driven = access;
  take_axi_outputs(s);
  if (ct_sim_mem_cycle(&s->mem, &s->in, &s->out)) drive_axi_inputs(s);
  *s->dut->clk_i = 0;
  *s->dut->sample_i = s->changed;
  s->changed = false;
  DUT(eval)(s->dut);
  if (access) take_axil(s);
  if (s->probe.to) probe(s);
  if (s->traced) {
    DUT(tick)(s->dut);
  } else {
    *s->dut->clk_i = 1;
    *s->dut->sample_i = 0;
    DUT(eval)(s->dut);
  }
  ++s->cycle;
}

/* The first thing that has gone wrong, if any. */
static bool broken(struct sim *s) {
  const char *fault = ct_sim_mem_error(&s->mem);
  if (!*s->error && fault) snprintf(s->error, sizeof s->error, "%s", fault);
  return *s->error != 0;
}

/* Ticks until the access has its answer. */
static int finish(struct sim *s, const struct access *a) {
  for (unsigned n = 0; a->active && n < ANSWER_CYCLES && !broken(s); ++n)
    tick(s);
  if (broken(s)) return CT_ERR_DEVICE;
  if (a->active) {
    snprintf(s->error, sizeof s->error, "the core does not answer at register 0x%03" PRIx32,
             a->offset);
    return CT_ERR_DEVICE;
  }
  return a->resp ? CT_ERR_ARG : 0;
}

/* ---- Transport ----------------------------------------------------------------------------- */

/* Verilator's runtime reckons with times when a model begins and ends; the caller's floating-point
 * environment must not show it. */
static void sim_close(void *self) {
  struct sim *s = self;
  fenv_t caller;
  if (!s) return;
  fegetenv(&caller);
  DUT(free)(s->dut);
  ct_sim_mem_close(&s->mem);
  fesetenv(&caller);
  free(s->queue);
  free(s);
}

/* What the model looks at; core= and threads= are the plug-in's. */
struct options {
  struct ct_uri uri;
  uint64_t dram_mib;
  char wave[512];
};

static bool parse(const char *args, struct options *o, char *why, size_t whysize) {
  if (!ct_uri_parse(&o->uri, "sim", args, why, whysize) ||
      ct_sim_mem_check(&o->uri, &o->dram_mib, why, whysize))
    return false;
  ct_uri_text(&o->uri, "wave", o->wave, sizeof o->wave);
  return true;
}

/* Verilator does not say that a file cannot be written. */
static int check_wave(const char *path, char *why, size_t whysize) {
  FILE *file = *path ? fopen(path, "wb") : NULL;
  if (!*path || (file && fclose(file) == 0)) return CT_OK;
  snprintf(why, whysize, "option wave=%s: the file cannot be written: %s", path, strerror(errno));
  return errno == EACCES || errno == EROFS ? CT_ERR_PERMISSION : CT_ERR_IO;
}

static void reset(struct sim *s) {
  drive_axil(s);
  ct_sim_mem_reset(&s->mem, &s->out);
  memset(&s->driven, 0xff, sizeof s->driven); /* nothing the memory says */
  drive_axi_inputs(s);
  DUT(reset)(s->dut, 8);
}

static int sim_open(const char *args, void **self, char *why, size_t whysize) {
  struct options o;
  fenv_t caller;
  if (!parse(args, &o, why, whysize)) return CT_ERR_ARG;
  const int err = check_wave(o.wave, why, whysize);
  if (err) return err;
  fegetenv(&caller);
  struct sim *s = calloc(1, sizeof *s);
  if (s) {
    s->ops = &PASTE(CT_SIM_MODEL, _sim);
    s->dram_mib = o.dram_mib;
    s->clock_hz = ct_uri_number(&o.uri, "clock");
    s->traced = o.wave[0] != 0;
    s->dut = ct_sim_mem_open(&s->mem, &o.uri) ? DUT(new)(s->traced ? o.wave : NULL) : NULL;
  }
  fesetenv(&caller); /* see sim_close() */
  if (!s || !s->dut) {
    snprintf(why, whysize, "no memory for a device with %" PRIu64 " MiB", o.dram_mib);
    if (s) ct_sim_mem_close(&s->mem);
    free(s);
    return CT_ERR_MEMORY;
  }
  reset(s);
  *self = s;
  return 0;
}

static bool is_register(uint32_t offset) {
  return offset % 4 == 0 && offset < 0x1000;
}

/* The size of the memory and the clock's speed are the simulator's to choose, not the core's. */
static int sim_reg_read(void *self, uint32_t offset, uint32_t *value) {
  struct sim *s = self;
  if (!is_register(offset)) return CT_ERR_ARG;
  start_access(&s->read, offset, 0);
  const int err = finish(s, &s->read);
  *value = offset == CT_REG_DRAM_BYTES ? (uint32_t)s->dram_mib
           : offset == CT_REG_CLOCK_HZ ? (uint32_t)s->clock_hz
                                       : s->read.data;
  return err;
}

static int sim_reg_write(void *self, uint32_t offset, uint32_t value) {
  struct sim *s = self;
  if (!is_register(offset)) return CT_ERR_ARG;
  while (s->write.active || (s->count && s->queue[s->first].cycle <= s->cycle + GUARD_CYCLES)) {
    if (broken(s)) return CT_ERR_DEVICE;
    tick(s);
  }
  start_access(&s->write, offset, value);
  return finish(s, &s->write);
}

static int sim_reg_write_at(void *self, uint64_t cycle, uint32_t offset, uint32_t value) {
  struct sim *s = self;
  if (!is_register(offset)) return CT_ERR_ARG;
  if (s->first + s->count == s->capacity) {
    memmove(s->queue, s->queue + s->first, s->count * sizeof *s->queue);
    s->first = 0;
  }
  if (s->count == s->capacity) {
    const size_t capacity = s->capacity ? 2 * s->capacity : 64;
    struct scheduled *queue = realloc(s->queue, capacity * sizeof *queue);
    if (!queue) return CT_ERR_MEMORY;
    s->queue = queue;
    s->capacity = capacity;
  }
  size_t at = s->first + s->count++;
  for (; at > s->first && s->queue[at - 1].cycle > cycle; --at)
    s->queue[at] = s->queue[at - 1];
  s->queue[at] = (struct scheduled){cycle, offset, value};
  return 0;
}

static bool in_dram(const struct sim *s, uint64_t addr, size_t size) {
  const uint64_t bytes = s->dram_mib << 20;
  return addr <= bytes && size <= bytes - addr;
}

static int sim_mem_read(void *self, uint64_t addr, void *buf, size_t size) {
  struct sim *s = self;
  if (!in_dram(s, addr, size)) return CT_ERR_ARG;
  memcpy(buf, ct_sim_mem_data(&s->mem) + addr, size);
  return 0;
}

static int sim_mem_write(void *self, uint64_t addr, const void *buf, size_t size) {
  struct sim *s = self;
  if (!in_dram(s, addr, size)) return CT_ERR_ARG;
  memcpy(ct_sim_mem_data(&s->mem) + addr, buf, size);
  return 0;
}

/* Even a timeout of 0 lets some cycles pass: a caller that only polls would otherwise stand still.
 */
static int sim_wait(void *self, uint64_t until, int timeout_ms) {
  struct sim *s = self;
  const int64_t start = timeout_ms < 0 ? 0 : ct_ms_now();
  for (unsigned n = 0; !*s->dut->irq_o && s->cycle < until; ++n) {
    if (n % CLOCK_TICKS == CLOCK_TICKS - 1) {
      if (broken(s)) break;
      if (timeout_ms >= 0 && ct_ms_now() - start >= timeout_ms) break;
    }
    tick(s);
  }
  if (broken(s)) return CT_ERR_DEVICE;
  return *s->dut->irq_o != 0;
}

static int sim_now(void *self, uint64_t *cycle) {
  *cycle = ((struct sim *)self)->cycle;
  return 0;
}

static int sim_fault(void *self, enum ct_fault kind, uint64_t addr) {
  ct_axi_mem *mem = ((struct sim *)self)->mem.plain;
  if (!mem) return CT_ERR_UNSUPPORTED; /* a board's memory knows none */
  return ct_axi_mem_fault(mem, kind, addr) ? 0 : CT_ERR_DEVICE;
}

/* Operations under way when it begins are seen from then on. */
static int sim_probe(void *self, struct ct_probe *to) {
  struct sim *s = self;
  s->probe = (struct ct_sim_probe){.to = to};
  s->probed = ct_sim_mem_counts(&s->mem);
  return 0;
}

static const char *sim_memory(void *self) {
  return ((struct sim *)self)->mem.text;
}

/* What went wrong, after CT_ERR_DEVICE. */
const char *PASTE(CT_SIM_MODEL, _sim_error)(void *self) {
  return ((struct sim *)self)->error;
}

const struct ct_transport_ops PASTE(CT_SIM_MODEL, _sim) = {
    .abi = CT_TRANSPORT_ABI,
    .scheme = "sim",
    .open = sim_open,
    .close = sim_close,
    .reg_read = sim_reg_read,
    .reg_write = sim_reg_write,
    .reg_write_at = sim_reg_write_at,
    .mem_read = sim_mem_read,
    .mem_write = sim_mem_write,
    .wait = sim_wait,
    .now = sim_now,
    .fault = sim_fault,
    .probe = sim_probe,
    .error = PASTE(CT_SIM_MODEL, _sim_error),
    .memory = sim_memory,
};
