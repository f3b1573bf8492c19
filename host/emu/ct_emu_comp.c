/* SPDX-License-Identifier: Apache-2.0 */
/* LD and ST with Comp: groups of compressed tiles, their index and their pages. */
#include <stdlib.h>
#include <string.h>

#include "ct_act.h"
#include "ct_emu.h"

enum { SPM_MASK = (1 << 20) - 1, BURST = 16, ENTRY_BYTES = 4 };

static void set_entry(uint8_t *unit, uint32_t i, uint32_t entry) {
  unit += (size_t)ENTRY_BYTES * i;
  for (unsigned b = 0; b < ENTRY_BYTES; ++b)
    unit[b] = (uint8_t)(entry >> 8 * b);
}

/* A group, its index entry or the arena is not usable. */
static bool no_group(struct ct_emu_ctx *ctx, uint32_t index) {
  ct_emu_fail(ctx, CT_DEV_COMP, index);
  return false;
}

/* A step of the command. */
struct step {
  uint32_t groups, first, bound, tiles;
  uint32_t index, spm;
};

static struct step step_of(const struct ct_emu_queue *q) {
  const struct ct_cmd *cmd = q->cmd;
  const uint32_t n1 = CT_GET(cmd, DMA_N1);
  return (struct step){
      .groups = n1 & 7,
      .first = CT_GET(cmd, DMA_FIRST),
      .bound = n1 >> 4,
      .tiles = CT_GET(cmd, DMA_NB) / CT_ACT_BLOCKS,
      .index = CT_GET(cmd, DMA_DRAM) + q->step * (uint32_t)CT_GETS(cmd, DMA_D2),
      .spm = CT_GET(cmd, DMA_SPM) + q->step * (uint32_t)CT_GETS(cmd, DMA_S2),
  };
}

static uint32_t spm_of(const struct ct_emu_queue *q, const struct step *s, uint32_t i) {
  return s->spm + i * (uint32_t)CT_GETS(q->cmd, DMA_S1);
}

/* ---- ST ---- */

/* Reads the words of a group and stores it in a page; false: the job has failed. */
static bool store_group(struct ct_emu *emu, struct ct_emu_ctx *ctx, const struct step *s,
                        uint32_t spm, uint32_t *entry) {
  struct ct_act_block b[CT_ACT_TILES * CT_ACT_BLOCKS];
  uint8_t group[CT_ACT_BYTES];
  for (uint32_t j = 0; j < s->tiles * CT_ACT_BLOCKS; ++j) {
    struct ct_emu_word word;
    if (!ct_emu_spm_read(emu, ctx, (spm + j) & SPM_MASK, &word)) return false;
    memcpy(b[j].q, word.q, sizeof b[j].q);
    b[j].e = word.e;
  }
  const unsigned units = ct_act_encode(b, s->tiles, (uint8_t)s->bound, group);
  const int64_t place = ct_act_take(&ctx->pages, units);
  if (place == CT_ACT_NO_PLACE) return no_group(ctx, s->index);
  const uint32_t at = CT_EMU_CREG(ctx, ARENA_BASE) + (uint32_t)place;
  *entry = ct_act_entry((uint32_t)place, units);
  return ct_emu_dram_window(ctx, true, at, units) &&
         ct_emu_dram_write(emu, ctx, at, units, BURST, group);
}

void ct_emu_comp_store(struct ct_emu *emu, struct ct_emu_ctx *ctx, const struct ct_emu_queue *q) {
  const struct step s = step_of(q);
  uint8_t unit[CT_ACT_UNIT] = {0};
  for (uint32_t i = 0; i < s.groups; ++i) {
    uint32_t entry;
    if (!store_group(emu, ctx, &s, spm_of(q, &s, i), &entry)) return;
    set_entry(unit, s.first + i, entry);
  }
  ct_emu_dram_write(emu, ctx, s.index, 1, BURST, unit);
}

/* ---- LD ---- */

/* Whether an entry can name a group of an arena of so many pages. */
static bool is_entry(const struct ct_act_pages *p, uint32_t entry) {
  const uint32_t units = ct_act_entry_units(entry), place = ct_act_entry_place(entry);
  return units > 0 && units <= CT_ACT_UNITS && place / CT_ACT_PAGE_UNITS < p->pages &&
         place % CT_ACT_PAGE_UNITS + units <= CT_ACT_PAGE_UNITS;
}

static bool load_group(struct ct_emu *emu, struct ct_emu_ctx *ctx, const struct step *s,
                       uint32_t entry, uint32_t spm) {
  struct ct_act_block b[CT_ACT_TILES * CT_ACT_BLOCKS];
  const uint32_t at = CT_EMU_CREG(ctx, ARENA_BASE) + ct_act_entry_place(entry);
  const uint32_t units = ct_act_entry_units(entry);
  if (!is_entry(&ctx->pages, entry)) return no_group(ctx, s->index);
  if (!ct_emu_dram_window(ctx, false, at, units)) return false;
  const uint8_t *data = ct_emu_dram_read(emu, ctx, at, units, BURST);
  if (!data) return false;
  if (!ct_act_decode(data, units, s->tiles, b)) return no_group(ctx, s->index);
  for (uint32_t j = 0; j < s->tiles * CT_ACT_BLOCKS; ++j) {
    struct ct_emu_word word = {.e = b[j].e};
    memcpy(word.q, b[j].q, sizeof word.q);
    if (!ct_emu_spm_write(emu, ctx, (spm + j) & SPM_MASK, &word)) return false;
  }
  return true;
}

void ct_emu_comp_load(struct ct_emu *emu, struct ct_emu_ctx *ctx, const struct ct_emu_queue *q) {
  const struct step s = step_of(q);
  const uint8_t *unit = ct_emu_dram_read(emu, ctx, s.index, 1, BURST);
  uint8_t index[CT_ACT_UNIT];
  if (!unit) return;
  memcpy(index, unit, sizeof index);
  for (uint32_t i = 0; i < s.groups; ++i) {
    const uint32_t entry = ct_act_entry_at(index, s.first + i);
    if (!load_group(emu, ctx, &s, entry, spm_of(q, &s, i))) return;
    if (CT_GET(q->cmd, DMA_FREE) && !ct_act_free(&ctx->pages, ct_act_entry_place(entry))) {
      no_group(ctx, s.index);
      return;
    }
  }
}

/* ---- Registers ---- */

bool ct_emu_comp_init(struct ct_emu_ctx *ctx) {
  ctx->pages.groups = calloc(CT_COMP_PAGES, sizeof *ctx->pages.groups);
  ctx->pages.freed = calloc(CT_COMP_PAGES, sizeof *ctx->pages.freed);
  ctx->compress = ctx->pages.groups && ctx->pages.freed;
  return ctx->compress;
}

void ct_emu_comp_free(struct ct_emu_ctx *ctx) {
  free(ctx->pages.groups);
  free(ctx->pages.freed);
}

void ct_emu_comp_arena(struct ct_emu_ctx *ctx, uint32_t pages) {
  if (pages > CT_COMP_PAGES) pages = CT_COMP_PAGES;
  if (!ctx->compress) return;
  CT_EMU_CREG(ctx, ARENA_PAGES) = pages;
  ctx->pages = ct_act_pages(pages, ctx->pages.groups, ctx->pages.freed);
}
