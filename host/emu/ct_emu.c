/* SPDX-License-Identifier: Apache-2.0 */
/* Memory, registers and jobs of the emulated device, and the transport "emu:". */
#define _DEFAULT_SOURCE 1 /* ct_memory.h */
#include "ct_emu.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coltrain/coltrain.h" /* the errors transports return */
#include "ct_deadline.h"
#include "ct_memory.h"
#include "ct_uri.h"

static const size_t UNIT = 16; /* bytes of a beat, and of DRAM addresses */

enum { FETCH_BEATS = 16, DESC_UNITS = CT_DESC_BYTES / 16, PAGE_UNITS = 4096 / 16 };

static unsigned index_of(const struct ct_emu *emu, const struct ct_emu_ctx *ctx) {
  return (unsigned)(ctx - emu->ctx);
}

void ct_emu_fail(struct ct_emu_ctx *ctx, uint32_t code, uint32_t addr) {
  if (ctx->failed) return;
  ctx->failed = true;
  ctx->result.code = code;
  ctx->result.addr = addr;
}

/* ---- Scratchpad ---------------------------------------------------------------------------- */

bool ct_emu_spm_window(struct ct_emu_ctx *ctx, uint32_t rel) {
  if (rel < ctx->spm_len) return true;
  ct_emu_fail(ctx, CT_DEV_SPM_WINDOW, rel);
  return false;
}

bool ct_emu_spm_read(struct ct_emu *emu, struct ct_emu_ctx *ctx, uint32_t rel,
                     struct ct_emu_word *word) {
  if (!ct_emu_spm_window(ctx, rel)) return false;
  const uint32_t at = CT_EMU_CREG(ctx, SPM_BASE) + rel;
  memcpy(word->q, emu->spm_q[at], sizeof word->q);
  word->e = emu->spm_e[at];
  if (!emu->spm_wrong[at]) return true;
  ct_emu_fail(ctx, CT_DEV_PARITY, at);
  return false;
}

bool ct_emu_spm_write(struct ct_emu *emu, struct ct_emu_ctx *ctx, uint32_t rel,
                      const struct ct_emu_word *word) {
  if (!ct_emu_spm_window(ctx, rel)) return false;
  const uint32_t at = CT_EMU_CREG(ctx, SPM_BASE) + rel;
  memcpy(emu->spm_q[at], word->q, sizeof word->q);
  emu->spm_e[at] = word->e;
  emu->spm_wrong[at] = 0;
  return true;
}

/* DBG_ADDR: bits beyond the memory are ignored. */
static uint32_t debug_at(const struct ct_emu *emu) {
  return CT_EMU_REG(emu, DBG_ADDR) & (emu->spm_words - 1);
}

/* DBG_FLIP: bits 0..127 mantissas, 128..135 exponent, 136..143 parity. Parity bit g covers the bits
 * g, g + 8, ... */
static void flip(struct ct_emu *emu, uint32_t bit) {
  const uint32_t at = debug_at(emu);
  const uint8_t mask = (uint8_t)(1u << bit % 8);
  if (bit >= 144) return;
  if (bit < 128)
    emu->spm_q[at][bit / 8] = (int8_t)(emu->spm_q[at][bit / 8] ^ (int8_t)mask);
  else if (bit < 136)
    emu->spm_e[at] ^= mask;
  emu->spm_wrong[at] ^= mask;
  emu->flipped = true;
}

/* DBG_PEEK. */
static void peek(struct ct_emu *emu) {
  const uint32_t at = debug_at(emu);
  memset(emu->peek, 0, sizeof emu->peek);
  for (unsigned i = 0; i < 16; ++i)
    emu->peek[i / 4] |= (uint32_t)(uint8_t)emu->spm_q[at][i] << 8 * (i % 4);
  emu->peek[4] = UINT32_C(1) << 31 | (uint32_t)(emu->spm_wrong[at] != 0) << 8 | emu->spm_e[at];
}

/* ---- Device memory ------------------------------------------------------------------------- */

/* Beats of the burst that starts at addr. */
static uint32_t burst_beats(uint32_t addr, uint32_t left, uint32_t max_beats) {
  const uint32_t page = PAGE_UNITS - addr % PAGE_UNITS;
  const uint32_t n = left < max_beats ? left : max_beats;
  return n < page ? n : page;
}

/* Whether the memory surely answers all of it as it should: no burst needs a look. */
static bool all_ok(const struct ct_emu *emu, const struct ct_emu_ctx *ctx, bool write,
                   uint32_t addr, uint32_t beats) {
  const uint32_t base = write ? CT_EMU_CREG(ctx, WR_BASE) : CT_EMU_CREG(ctx, RD_BASE);
  const uint32_t limit = write ? CT_EMU_CREG(ctx, WR_LIMIT) : CT_EMU_CREG(ctx, RD_LIMIT);
  const uint64_t end = (uint64_t)addr + beats;
  return emu->fault == CT_FAULT_NONE && addr >= base && end <= limit && end * 16 <= emu->dram_bytes;
}

bool ct_emu_dram_window(struct ct_emu_ctx *ctx, bool write, uint32_t addr, uint32_t beats) {
  const uint32_t base = write ? CT_EMU_CREG(ctx, WR_BASE) : CT_EMU_CREG(ctx, RD_BASE);
  const uint32_t limit = write ? CT_EMU_CREG(ctx, WR_LIMIT) : CT_EMU_CREG(ctx, RD_LIMIT);
  if (addr >= base && (uint64_t)addr + beats <= limit) return true;
  const uint32_t outside = addr >= base && addr < limit ? limit : addr; /* the first that is */
  ct_emu_fail(ctx, write ? CT_DEV_DRAM_WRITE_WINDOW : CT_DEV_DRAM_READ_WINDOW, outside);
  return false;
}

/* Whether the memory answers the burst as it should; if not, the job has failed. */
static bool burst_ok(struct ct_emu *emu, struct ct_emu_ctx *ctx, bool write, uint32_t addr,
                     uint32_t beats) {
  const uint64_t end = (uint64_t)addr + beats, at = emu->fault_addr / 16;
  if (!ct_emu_dram_window(ctx, write, addr, beats)) return false;
  const bool covered = at >= addr && at < end;
  if (emu->fault == CT_FAULT_AXI_HANG && covered) {
    emu->dead |= 1u << index_of(emu, ctx);
    ctx->owed = true;
    ct_emu_fail(ctx, CT_DEV_DEAD, 0);
    return false;
  }
  const bool fault = emu->fault == (write ? CT_FAULT_AXI_WRITE : CT_FAULT_AXI_READ) && covered;
  if (fault) emu->fault = CT_FAULT_NONE;
  if (!fault && end * 16 <= emu->dram_bytes) return true;
  emu->refused = fault ? (uint32_t)at : addr;
  ct_emu_fail(ctx, write ? CT_DEV_AXI_WRITE : CT_DEV_AXI_READ, addr);
  return false;
}

const uint8_t *ct_emu_dram_read(struct ct_emu *emu, struct ct_emu_ctx *ctx, uint32_t addr,
                                uint32_t beats, uint32_t max_beats) {
  const bool ok = all_ok(emu, ctx, false, addr, beats);
  for (uint32_t done = 0, n; done < beats; done += n) {
    n = ok ? beats : burst_beats(addr + done, beats - done, max_beats);
    if (!ok && !burst_ok(emu, ctx, false, addr + done, n)) return NULL;
    ctx->cnt[CT_CNT_LD_BEATS] += n;
  }
  ctx->fuel -= beats;
  return emu->dram + UNIT * addr;
}

bool ct_emu_dram_write(struct ct_emu *emu, struct ct_emu_ctx *ctx, uint32_t addr, uint32_t beats,
                       uint32_t max_beats, const uint8_t *data) {
  const bool ok = all_ok(emu, ctx, true, addr, beats);
  for (uint32_t done = 0, n; done < beats; done += n, addr += n) {
    n = ok ? beats : burst_beats(addr, beats - done, max_beats);
    if (!ok && !burst_ok(emu, ctx, true, addr, n)) return false;
    memmove(emu->dram + UNIT * addr, data + UNIT * done, UNIT * n);
    ctx->cnt[CT_CNT_ST_BEATS] += n;
  }
  ctx->fuel -= beats;
  return true;
}

/* ---- Jobs ---------------------------------------------------------------------------------- */

/* The job's time, in cycles that any hardware takes at the least: the most that one unit has done.
 * Commands are dispatched, beats loaded, beats stored and rows multiplied one a cycle at best. So a
 * watchdog ends nothing here that hardware would have let finish. */
static uint64_t time_of(const struct ct_emu_ctx *ctx) {
  static const unsigned unit[] = {CT_CNT_CMDS, CT_CNT_LD_BEATS, CT_CNT_ST_BEATS, CT_CNT_MXU_ROWS};
  uint64_t most = 0;
  for (unsigned i = 0; i < sizeof unit / sizeof *unit; ++i) {
    const uint64_t done = ctx->cnt[unit[i]] - ctx->since[unit[i]];
    if (done > most) most = done;
  }
  return most;
}

/* Looks at the watchdog, if the job has not ended some other way. */
static void watch(struct ct_emu_ctx *ctx) {
  if (ctx->limit && time_of(ctx) > ctx->limit) ct_emu_fail(ctx, CT_DEV_WATCHDOG, ctx->pc);
}

static uint32_t word_at(const uint8_t *p, size_t index) {
  p += 4 * index;
  return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* The descriptor in the ring's next slot; false: it cannot be read. If the memory refuses a unit
 * behind its first, that has come: the completion has its tag and version. */
static bool read_descriptor(struct ct_emu *emu, struct ct_emu_ctx *ctx, uint32_t *desc) {
  const uint32_t slot = ctx->head & ((UINT32_C(1) << CT_EMU_CREG(ctx, RING_LOG2)) - 1);
  ctx->head = (ctx->head + 1) & 0xffff;
  const uint32_t at = CT_EMU_CREG(ctx, RING_BASE) + slot * DESC_UNITS;
  const uint8_t *p = ct_emu_dram_read(emu, ctx, at, DESC_UNITS, FETCH_BEATS);
  for (unsigned i = 0; p && i < CT_DESC_BYTES / 4; ++i)
    desc[i] = word_at(p, i);
  const uint8_t *came = emu->dram + UNIT * at;
  if (!p && came && ctx->result.code == CT_DEV_AXI_READ && emu->refused > at) {
    ctx->result.tag = word_at(came, CT_DESC_TAG);
    ctx->result.version = word_at(came, CT_DESC_VERSION);
  }
  return p != NULL;
}

/* Takes over and checks a descriptor, then reads the program. */
static void fetch_job(struct ct_emu *emu, struct ct_emu_ctx *ctx, const uint32_t *desc) {
  ctx->result.tag = desc[CT_DESC_TAG];
  ctx->result.version = desc[CT_DESC_VERSION];
  ctx->ncmds = desc[CT_DESC_NCMDS];
  if (ctx->ncmds < 1 || ctx->ncmds > CT_PROG_MAX)
    ct_emu_fail(ctx, CT_DEV_DESCRIPTOR, CT_DESC_NCMDS);
  else if (desc[CT_DESC_FLAGS] & ~(uint32_t)(CT_FLAG_OVERLAP | (ctx->batch ? 0 : CT_FLAG_CHAIN)))
    ct_emu_fail(ctx, CT_DEV_DESCRIPTOR, CT_DESC_FLAGS);
  else if (desc[CT_DESC_FLAGS] & CT_FLAG_CHAIN && ctx->ring_bad)
    ct_emu_fail(ctx, CT_DEV_SKIPPED, 0);
  memcpy(&ctx->r[1], &desc[CT_DESC_ARG0], CT_NUM_ARGS * sizeof *desc);
  ctx->r[CT_NUM_ARGS + 1] = ctx->batch;
  if (ctx->failed) return;
  const uint8_t *prog = ct_emu_dram_read(emu, ctx, desc[CT_DESC_PROG], 2 * ctx->ncmds, FETCH_BEATS);
  for (size_t i = 0; prog && i < ctx->ncmds; ++i) {
    const struct ct_cmd cmd = ct_cmd_from_bytes(prog + CT_CMD_BYTES * i);
    ct_emu_prepare(&ctx->prog[i], &cmd);
  }
  ctx->limit = desc[CT_DESC_WATCHDOG] ? desc[CT_DESC_WATCHDOG] : CT_EMU_CREG(ctx, WATCHDOG);
  memcpy(ctx->since, ctx->cnt, sizeof ctx->since);
}

/* Starts a batch with this descriptor, or (NULL) the ring's next job. */
static void start_job(struct ct_emu *emu, struct ct_emu_ctx *ctx, const uint32_t *batch) {
  uint32_t desc[CT_DESC_BYTES / 4];
  ctx->running = true;
  --ctx->fuel;
  ctx->limit = 0;
  ctx->ended = ctx->failed = false;
  ctx->pc = ctx->ncmds = ctx->depth = 0;
  ctx->walks = 0;
  memset(&ctx->result, 0, sizeof ctx->result);
  memset(ctx->r, 0, sizeof ctx->r);
  memset(ctx->sem, 0, CT_NUM_SEMS);
  ctx->sem[CT_NUM_SEMS] = 1;
  memset(ctx->queue, 0, sizeof ctx->queue);
  if (!batch) ctx->batch = 0;
  if (batch || read_descriptor(emu, ctx, desc)) fetch_job(emu, ctx, batch ? batch : desc);
}

static void finish_job(struct ct_emu *emu, struct ct_emu_ctx *ctx) {
  if (ctx->batch)
    ct_emu_batch_done(&emu->batcher, ctx);
  else
    ctx->cpl[(ctx->cpl_head + ctx->cpl_count++) % CT_CPL_DEPTH] = ctx->result;
  if (!ctx->batch) ctx->ring_bad = ctx->result.code != CT_DEV_OK;
  ++ctx->cnt[CT_CNT_JOBS];
  ctx->running = false;
}

static bool all_idle(const struct ct_emu_ctx *ctx) {
  for (unsigned u = 0; u < CT_EMU_UNITS; ++u)
    if (ctx->queue[u].cmd || ctx->queue[u].count) return false;
  return true;
}

/* Starts a job of the ring or a batch, in turn where both wait; false: there is none. */
static bool start_next(struct ct_emu *emu, struct ct_emu_ctx *ctx) {
  struct ct_emu_batcher *b = &emu->batcher;
  const bool ring = ctx->head != CT_EMU_CREG(ctx, TAIL) && ctx->cpl_count < CT_CPL_DEPTH;
  const bool first = index_of(emu, ctx) == 0;
  if (ctx->owed) return false;
  const uint32_t *batch = first && !(ring && b->ring_turn) ? ct_emu_batch_form(b, ctx) : NULL;
  if (!batch && !ring) return false;
  if (first) b->ring_turn = batch != NULL;
  start_job(emu, ctx, batch);
  return true;
}

enum { BURST = 64 }; /* commands dispatched before the units get their turn */

/* Dispatches and moves the units: each by one step, or as far as it can. */
static bool move(struct ct_emu *emu, struct ct_emu_ctx *ctx, bool one_step) {
  bool moved = false;
  for (unsigned i = 0; i < (one_step ? 1 : BURST) && ct_emu_dispatch(ctx); ++i)
    moved = true;
  for (unsigned u = 0; u < CT_EMU_UNITS; ++u)
    if (ct_emu_unit_run(emu, ctx, (enum ct_emu_unit)u, one_step)) moved = true;
  return moved;
}

/* One round of the context: a job's start or end, or everything that can move. */
static bool context_step(struct ct_emu *emu, struct ct_emu_ctx *ctx, bool one_step) {
  if (!ctx->running) {
    return start_next(emu, ctx);
  } else if (ctx->failed || (ctx->ended && all_idle(ctx))) {
    finish_job(emu, ctx);
  } else if (move(emu, ctx, one_step)) {
    watch(ctx);
  } else {
    ct_emu_fail(ctx, CT_DEV_WATCHDOG, ctx->pc);
  }
  return true;
}

/* Inference before training, while it has a slice left: a job of inference without end does not
 * keep training from running. */
static bool step(struct ct_emu *emu, bool one_step) {
  for (unsigned c = 0; c < CT_EMU_CTXS; ++c)
    if (emu->ctx[c].fuel > 0 && context_step(emu, &emu->ctx[c], one_step)) return true;
  return false;
}

static void fill_up(struct ct_emu *emu) {
  for (unsigned c = 0; c < CT_EMU_CTXS; ++c)
    emu->ctx[c].fuel = CT_EMU_SLICE;
}

/* Runs until nothing is left to do, or a slice of each context is used up; false: there is more. */
static bool run(struct ct_emu *emu) {
  const unsigned state = emu->path->enter();
  fill_up(emu);
  while (!(CT_EMU_REG(emu, CTRL) & 2) && step(emu, false)) {
  }
  emu->path->leave(state);
  return emu->ctx[0].fuel > 0 && emu->ctx[1].fuel > 0;
}

/* While frozen: one step of everything. */
static void run_step(struct ct_emu *emu) {
  const unsigned state = emu->path->enter();
  fill_up(emu);
  step(emu, true);
  emu->path->leave(state);
}

/* ---- Registers ----------------------------------------------------------------------------- */

/* The window as SPM_BASE and SPM_SIZE say, as far as there is a scratchpad. */
static void set_window(const struct ct_emu *emu, struct ct_emu_ctx *ctx) {
  const uint32_t base = CT_EMU_CREG(ctx, SPM_BASE), size = CT_EMU_CREG(ctx, SPM_SIZE);
  const uint32_t room = base < emu->spm_words ? emu->spm_words - base : 0;
  ctx->spm_len = size < room ? size : room;
}

/* What a reset clears; memories keep their contents. */
static void reset(struct ct_emu *emu) {
  for (unsigned c = 0; c < CT_EMU_CTXS; ++c) {
    struct ct_emu_ctx *ctx = &emu->ctx[c];
    memset(ctx->reg, 0, sizeof ctx->reg);
    ctx->ring_bad = false;
    memset(ctx->cnt, 0, sizeof ctx->cnt);
    ct_emu_comp_arena(ctx, 0);
    ctx->head = 0;
    ctx->cpl_head = ctx->cpl_count = 0;
    ctx->running = false;
    CT_EMU_CREG(ctx, SPM_BASE) = c * emu->spm_words / 2;
    CT_EMU_CREG(ctx, SPM_SIZE) = emu->spm_words / 2;
    set_window(emu, ctx);
  }
  memset(emu->reg, 0, sizeof emu->reg);
  memset(emu->peek, 0, sizeof emu->peek);
  CT_EMU_REG(emu, TRAIN_CAP) = 4;
  CT_EMU_REG(emu, DRAIN_LIMIT) = 100000;
  emu->dead = 0;
  ct_emu_batch_reset(&emu->batcher);
}

/* A register that reads as it was written: its bits, and the largest value it takes. */
struct stored {
  uint32_t offset, mask, max;
};

static bool store(const struct stored *table, size_t count, uint32_t *regs, uint32_t offset,
                  uint32_t value) {
  for (size_t i = 0; i < count; ++i) {
    if (table[i].offset != offset) continue;
    value &= table[i].mask;
    regs[offset / 4] = value < table[i].max ? value : table[i].max;
    return true;
  }
  return false;
}

static void write_global(struct ct_emu *emu, uint32_t offset, uint32_t value) {
  static const struct stored table[] = {{CT_REG_POLICY, 7, 4},
                                        {CT_REG_FLOOR, 255, 255},
                                        {CT_REG_IRQ_ENABLE, 7, 7},
                                        {CT_REG_TRAIN_CAP, UINT32_MAX, 8},
                                        {CT_REG_DBG_ADDR, 0xfffff, 0xfffff},
                                        {CT_REG_DRAIN_LIMIT, UINT32_MAX, UINT32_MAX}};
  if (offset == CT_REG_TRAIN_CAP && value == 0) value = 1;
  if (store(table, sizeof table / sizeof *table, emu->reg, offset, value)) return;
  switch (offset) {
    case CT_REG_CTRL:
      if ((CT_EMU_REG(emu, CTRL) & value & 2) && value & 4) run_step(emu);
      CT_EMU_REG(emu, CTRL) = value & 2;
      if (value & 1) reset(emu);
      break;
    case CT_REG_DBG_FLIP:
      if (value & 0x100) flip(emu, value & 255);
      CT_EMU_REG(emu, DBG_FLIP) = value & 255;
      break;
    case CT_REG_DBG_PEEK:
      peek(emu);
      break;
    default:
      break;
  }
}

/* CONTROL. A job that has not begun is not taken here, so what a cancel can hit is what runs. */
static void control(struct ct_emu *emu, struct ct_emu_ctx *ctx, uint32_t value) {
  if (value & 1) {
    ctx->head = CT_EMU_CREG(ctx, TAIL);
    ctx->owed = false;
    if (index_of(emu, ctx) == 0) ct_emu_batch_drop(&emu->batcher);
  }
  const bool named = (value & 4) != 0; /* a job of the ring, by its number */
  const bool hit = !named || (!ctx->batch && ((ctx->head - 1) & 0xffff) == value >> 16);
  if (!hit) value &= ~UINT32_C(2);
  if (ctx->running && value & 3) ct_emu_fail(ctx, value & 1 ? CT_DEV_RESET : CT_DEV_CANCELLED, 0);
}

static void pop(struct ct_emu_ctx *ctx) {
  if (!ctx->cpl_count) return;
  ctx->cpl_head = (ctx->cpl_head + 1) % CT_CPL_DEPTH;
  --ctx->cpl_count;
}

static void write_context(struct ct_emu *emu, struct ct_emu_ctx *ctx, uint32_t offset,
                          uint32_t value) {
  const uint32_t arena = ctx->compress ? 0xffffff00 : 0;
  const struct stored table[] = {{CT_CREG_RING_BASE, UINT32_MAX, UINT32_MAX},
                                 {CT_CREG_RING_LOG2, UINT32_MAX, 10},
                                 {CT_CREG_TAIL, 0xffff, 0xffff},
                                 {CT_CREG_RD_BASE, UINT32_MAX, UINT32_MAX},
                                 {CT_CREG_RD_LIMIT, UINT32_MAX, UINT32_MAX},
                                 {CT_CREG_WR_BASE, UINT32_MAX, UINT32_MAX},
                                 {CT_CREG_WR_LIMIT, UINT32_MAX, UINT32_MAX},
                                 {CT_CREG_SPM_BASE, 0xfffff, 0xfffff},
                                 {CT_CREG_SPM_SIZE, 0xfffff, 0xfffff},
                                 {CT_CREG_WATCHDOG, UINT32_MAX, UINT32_MAX},
                                 {CT_CREG_ARENA_BASE, arena, UINT32_MAX}};
  if (store(table, sizeof table / sizeof *table, ctx->reg, offset, value)) {
    set_window(emu, ctx);
    return;
  }
  if (offset == CT_CREG_CONTROL) control(emu, ctx, value);
  if (offset == CT_CREG_CPL_POP) pop(ctx);
  if (offset == CT_CREG_ARENA_PAGES) ct_emu_comp_arena(ctx, value);
}

static uint32_t irq_status(const struct ct_emu *emu) {
  return (uint32_t)(emu->ctx[0].cpl_count > 0) | (uint32_t)(emu->ctx[1].cpl_count > 0) << 1 |
         (uint32_t)ct_emu_batch_record(&emu->batcher) << 2;
}

static uint32_t read_global(const struct ct_emu *emu, uint32_t offset) {
  switch (offset) {
    case CT_REG_ID:
      return CT_ID_VALUE;
    case CT_REG_ABI:
      return CT_ABI_VERSION;
    case CT_REG_GEOMETRY:
      return 16 | emu->cols << 8 | emu->lanes << 16 | 16u << 24;
    case CT_REG_SPM_WORDS:
      return emu->spm_words;
    case CT_REG_CLOCK_HZ:
      return emu->clock_hz;
    case CT_REG_FEATURES:
      return 15 | CT_FEATURE_BATCHER | CT_FEATURE_CONV |
             (emu->ctx[1].compress ? CT_FEATURE_COMPRESS : 0);
    case CT_REG_DRAM_BYTES:
      return (uint32_t)(emu->dram_bytes >> 20);
    case CT_REG_IRQ_STATUS:
      return irq_status(emu);
    case CT_REG_DEAD:
      return emu->dead;
    case CT_REG_DBG_DATA0:
    case CT_REG_DBG_DATA1:
    case CT_REG_DBG_DATA2:
    case CT_REG_DBG_DATA3:
    case CT_REG_DBG_DATA4:
      return emu->peek[(offset - CT_REG_DBG_DATA0) / 4];
    default:
      return emu->reg[offset / 4]; /* 0 where nothing is stored, such as CYCLE_LO */
  }
}

static uint32_t status(const struct ct_emu_ctx *ctx) {
  const bool held = !ctx->running && ctx->head != CT_EMU_CREG(ctx, TAIL);
  return (ctx->running ? 3u : held ? 7u : 0u) | ctx->cpl_count << 8;
}

static uint32_t read_context(const struct ct_emu_ctx *ctx, uint32_t offset) {
  static const struct ct_emu_completion none;
  const struct ct_emu_completion *cpl = ctx->cpl_count ? &ctx->cpl[ctx->cpl_head] : &none;
  switch (offset) {
    case CT_CREG_HEAD:
      return ctx->head;
    case CT_CREG_SPM_SIZE:
      return ctx->spm_len;
    case CT_CREG_STATUS:
      return status(ctx);
    case CT_CREG_CPL_COUNT:
      return ctx->cpl_count;
    case CT_CREG_CPL_TAG:
      return cpl->tag;
    case CT_CREG_CPL_CODE:
      return cpl->code;
    case CT_CREG_CPL_ADDR:
      return cpl->addr;
    case CT_CREG_CPL_VERSION:
      return cpl->version;
    case CT_CREG_CPL_ROWS:
      return cpl->rows;
    case CT_CREG_ARENA_HELD:
      return ctx->pages.held;
    case CT_CREG_ARENA_MOST:
      return ctx->pages.most;
    default:
      return ctx->reg[offset / 4];
  }
}

static uint32_t read_batcher(struct ct_emu *emu, uint32_t offset) {
  if (ct_emu_batch_looks(offset)) {
    emu->batcher.form = emu->batcher.waits > 0;
    run(emu);
  }
  return ct_emu_batch_read(emu, offset);
}

static uint32_t read_counter(struct ct_emu *emu, uint32_t offset) {
  const uint32_t index = offset / 8;
  const uint64_t value = emu->ctx[index / 32].cnt[index % 32];
  if (offset & 4) return emu->cnt_latch;
  emu->cnt_latch = (uint32_t)(value >> 32);
  return (uint32_t)value;
}

/* ---- Transport ----------------------------------------------------------------------------- */

static void emu_close(void *self) {
  struct ct_emu *emu = self;
  if (!emu) return;
  ct_emu_comp_free(&emu->ctx[1]);
  free(emu->spm_q);
  free(emu->spm_e);
  free(emu->spm_wrong);
  ct_memory_free(emu->dram, emu->dram_bytes);
  free(emu);
}

/* Zeroed, at a cache line: vectors that lie across two are slow. */
static void *alloc_lines(size_t size) {
  const size_t lines = (size + 63) / 64 * 64;
  void *p = aligned_alloc(64, lines);
  if (p) memset(p, 0, lines);
  return p;
}

static struct ct_emu *alloc_emu(size_t spm_words, size_t dram_bytes) {
  struct ct_emu *emu = alloc_lines(sizeof *emu);
  if (!emu) return NULL;
  emu->spm_words = (uint32_t)spm_words;
  emu->dram_bytes = dram_bytes;
  emu->spm_q = alloc_lines(spm_words * sizeof *emu->spm_q);
  emu->spm_e = calloc(spm_words, 1);
  emu->spm_wrong = calloc(spm_words, 1);
  emu->dram = ct_memory_new(dram_bytes);
  if (emu->spm_q && emu->spm_e && emu->spm_wrong && emu->dram) return emu;
  emu_close(emu);
  return NULL;
}

struct options {
  uint64_t spm, cols, lanes, dram, clock_hz;
  bool compress;
  const struct ct_path *path;
};

/* core= says what the others are where they are not given. */
static bool parse(const char *args, struct options *o, char *why, size_t why_size) {
  struct ct_uri u;
  char path[16];
  if (!ct_uri_parse(&u, "emu", args, why, why_size)) return false;
  const bool narrow = ct_uri_is(&u, "core", "16x4"),
             small = narrow || ct_uri_is(&u, "core", "16x8");
  *o = (struct options){.spm = narrow  ? 4096
                               : small ? 8192
                                       : 65536,
                        .cols = narrow  ? 4
                                : small ? 8
                                        : 16,
                        .lanes = small ? 4 : 16,
                        .compress = !narrow,
                        .dram = ct_uri_number(&u, "dram"),
                        .clock_hz = ct_uri_number(&u, "clock")};
  if (ct_uri_given(&u, "spm")) o->spm = ct_uri_number(&u, "spm");
  if (ct_uri_given(&u, "cols")) o->cols = ct_uri_number(&u, "cols");
  if (ct_uri_given(&u, "lanes")) o->lanes = ct_uri_number(&u, "lanes");
  if (ct_uri_given(&u, "compress")) o->compress = ct_uri_number(&u, "compress");
  ct_uri_text(&u, "path", path, sizeof path);
  o->path = ct_path_find(path);
  if (o->spm & (o->spm - 1))
    snprintf(why, why_size, "option spm=%" PRIu64 ": needs a power of two", o->spm);
  else if (!o->path)
    snprintf(why, why_size, "option path=%s: this machine has no such instructions; plain goes",
             path);
  else
    return true;
  return false;
}

static int emu_open(const char *args, void **self, char *why, size_t whysize) {
  struct options o;
  if (!parse(args, &o, why, whysize)) return CT_ERR_ARG;
  struct ct_emu *emu = alloc_emu(o.spm, o.dram << 20);
  if (!emu) {
    snprintf(why, whysize, "no memory for a device with %" PRIu64 " MiB", o.dram);
    return CT_ERR_MEMORY;
  }
  if (o.compress && !ct_emu_comp_init(&emu->ctx[1])) {
    snprintf(why, whysize, "no memory for a device");
    emu_close(emu);
    return CT_ERR_MEMORY;
  }
  emu->path = o.path;
  emu->cols = (uint32_t)o.cols;
  emu->lanes = (uint32_t)o.lanes;
  emu->clock_hz = (uint32_t)o.clock_hz;
  reset(emu);
  *self = emu;
  return 0;
}

static bool is_register(uint32_t offset) {
  return offset % 4 == 0 && offset < 0x1000;
}

static int emu_reg_read(void *self, uint32_t offset, uint32_t *value) {
  struct ct_emu *emu = self;
  if (!is_register(offset)) return CT_ERR_ARG;
  const uint32_t bank = offset / CT_CTX_STRIDE;
  if (offset >= CT_CNT_BASE + CT_EMU_CTXS * 32 * 8)
    *value = 0;
  else if (offset >= CT_CNT_BASE)
    *value = read_counter(emu, offset - CT_CNT_BASE);
  else if (bank == 0)
    *value = read_global(emu, offset);
  else if (bank <= CT_EMU_CTXS)
    *value = read_context(&emu->ctx[bank - 1], offset % CT_CTX_STRIDE);
  else
    *value = read_batcher(emu, offset);
  return 0;
}

static int emu_reg_write(void *self, uint32_t offset, uint32_t value) {
  struct ct_emu *emu = self;
  if (!is_register(offset)) return CT_ERR_ARG;
  const uint32_t bank = offset / CT_CTX_STRIDE;
  if (bank == 0)
    write_global(emu, offset, value);
  else if (bank <= CT_EMU_CTXS)
    write_context(emu, &emu->ctx[bank - 1], offset % CT_CTX_STRIDE, value);
  else if (offset < CT_CNT_BASE)
    ct_emu_batch_write(emu, offset, value);
  run(emu);
  return 0;
}

static bool in_dram(const struct ct_emu *emu, uint64_t addr, size_t size) {
  return addr <= emu->dram_bytes && size <= emu->dram_bytes - addr;
}

static int emu_mem_read(void *self, uint64_t addr, void *buf, size_t size) {
  const struct ct_emu *emu = self;
  if (!in_dram(emu, addr, size)) return CT_ERR_ARG;
  memcpy(buf, emu->dram + addr, size);
  return 0;
}

static int emu_mem_write(void *self, uint64_t addr, const void *buf, size_t size) {
  struct ct_emu *emu = self;
  if (!in_dram(emu, addr, size)) return CT_ERR_ARG;
  memcpy(emu->dram + addr, buf, size);
  return 0;
}

static bool irq_is_up(const struct ct_emu *emu) {
  return (irq_status(emu) & CT_EMU_REG(emu, IRQ_ENABLE)) != 0;
}

/* Goes on with what the register accesses left, slice by slice and with one at the least, so that a
 * host that only looks gets there, too. When nothing can move there is nothing to wait for. */
static int emu_wait(void *self, uint64_t until, int timeout_ms) {
  struct ct_emu *emu = self;
  (void)until; /* of a clock that is not there */
  const int64_t end = timeout_ms > 0 ? ct_ms_now() + timeout_ms : 0;
  while (!irq_is_up(emu)) {
    if (run(emu)) break;
    if (timeout_ms == 0 || (timeout_ms > 0 && ct_ms_now() >= end)) break;
  }
  return irq_is_up(emu);
}

static int emu_now(void *self, uint64_t *cycle) {
  (void)self;
  *cycle = CT_NO_CYCLE;
  return 0;
}

static int emu_fault(void *self, enum ct_fault kind, uint64_t addr) {
  struct ct_emu *emu = self;
  emu->fault = kind;
  emu->fault_addr = addr;
  if (kind == CT_FAULT_NONE) {
    emu->ctx[0].owed = emu->ctx[1].owed = false;
    run(emu);
  }
  return 0;
}

const struct ct_transport_ops ct_transport_emu = {
    .abi = CT_TRANSPORT_ABI,
    .scheme = "emu",
    .open = emu_open,
    .close = emu_close,
    .reg_read = emu_reg_read,
    .reg_write = emu_reg_write,
    .mem_read = emu_mem_read,
    .mem_write = emu_mem_write,
    .wait = emu_wait,
    .now = emu_now,
    .fault = emu_fault,
};
