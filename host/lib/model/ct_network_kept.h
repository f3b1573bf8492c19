/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What networks keep compressed, as its two halves know it: pages, runs and facts
 * (ct_network_kept.c), and the bounds that runs ask for (ct_network_look.c).
 */
#ifndef CT_NETWORK_KEPT_H
#define CT_NETWORK_KEPT_H

#include "ct_act.h"
#include "ct_act_pages.h"
#include "ct_network.h"

/* From LOSSLESS bits a number on nothing need be lost, but where pages have a rest. UNIT: the bound
 * whose step is 4. */
enum { CT_KEPT_LOSSLESS = 9, CT_KEPT_UNIT = 136 };

static inline bool ct_keeps(const ct_network *n) {
  return n->compiled.kepts > 0;
}

static inline uint32_t ct_kept_tiles(const struct ct_kept *k) {
  return ct_tiles(k->rows) * ct_tiles(k->cols);
}

/* Numbers with the padding to whole tiles. */
static inline uint64_t ct_kept_padded(const struct ct_kept *k) {
  return (uint64_t)ct_kept_tiles(k) * CT_TILE * CT_TILE;
}

static inline size_t ct_kept_entries(const struct ct_kept *k) {
  return (size_t)ct_pack_units(k->rows, k->cols) * CT_ACT_ENTRIES;
}

static inline uint64_t ct_kept_index(const ct_network *n, const struct ct_kept *k) {
  return ct_network_own(n).lasting + (uint64_t)k->index.at * CT_UNIT;
}

/* Pages begin at multiples of their size. */
static inline uint64_t ct_first_page(const struct ct_shared *s) {
  return (s->pages + CT_PAGE_BYTES - 1) / CT_PAGE_BYTES * CT_PAGE_BYTES;
}

/* Fewer than what loses nothing takes. */
static inline bool ct_kept_has_few(const ct_network *n) {
  return n->kept_error > 0 && n->shared->page_bits < CT_KEPT_LOSSLESS;
}

/* The bound of a tensor if it is larger by so many powers of two, as ct_kept_widen() makes it. */
uint8_t ct_kept_wider(const ct_network *n, size_t i, unsigned by);

#endif
