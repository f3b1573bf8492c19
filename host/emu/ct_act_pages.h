/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where groups of compressed activations lie (docs/compression.md): pages of 256 units that are
 * taken as they fill and freed by count. ct_act_pages.sv in plain C.
 */
#ifndef CT_ACT_PAGES_H
#define CT_ACT_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CT_ACT_PAGE_UNITS = 256, CT_ACT_NO_PLACE = -1, CT_ACT_ENTRIES = 4 /* in an index unit */ };

struct ct_act_pages {
  uint32_t pages;   /* that there are, up to 2^17 */
  uint16_t *groups; /* of each page: memory of the caller's */
  uint32_t *freed;  /* pages that were freed, the last one on top: of the caller's, too */
  uint32_t fresh;   /* the lowest page that was never used */
  uint32_t tops;    /* of freed[] */
  bool open;        /* there is an open page: */
  uint32_t page, used;
  uint32_t held, most; /* pages in use: now, and at most */
};

/* No page is in use. groups and freed hold `pages` each. */
struct ct_act_pages ct_act_pages(uint32_t pages, uint16_t *groups, uint32_t *freed);

/* Where a group of 1 to 70 units goes, in units from the arena's base, or CT_ACT_NO_PLACE. */
int64_t ct_act_take(struct ct_act_pages *p, unsigned units);

/* Frees a group that begins there. False: no such group can be in use. */
bool ct_act_free(struct ct_act_pages *p, uint32_t place);

/* An index entry, and what it says. */
uint32_t ct_act_entry(uint32_t place, unsigned units);
static inline uint32_t ct_act_entry_place(uint32_t entry) {
  return entry >> 7;
}
static inline unsigned ct_act_entry_units(uint32_t entry) {
  return entry & 127;
}
/* Entry i of index units, as they lie in memory. */
static inline uint32_t ct_act_entry_at(const uint8_t *index, size_t i) {
  const uint8_t *p = index + 4 * i;
  return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

#endif
