/* SPDX-License-Identifier: Apache-2.0 */
#include "ct_act_pages.h"

#include <string.h>

struct ct_act_pages ct_act_pages(uint32_t pages, uint16_t *groups, uint32_t *freed) {
  memset(groups, 0, pages * sizeof(*groups));
  return (struct ct_act_pages){.pages = pages, .groups = groups, .freed = freed};
}

/* The page that was freed last, else the lowest one that was never used. */
static bool open_page(struct ct_act_pages *p) {
  if (!p->tops && p->fresh == p->pages) return false;
  p->page = p->tops ? p->freed[--p->tops] : p->fresh++;
  p->open = true;
  p->used = 0;
  if (++p->held > p->most) p->most = p->held;
  return true;
}

int64_t ct_act_take(struct ct_act_pages *p, unsigned units) {
  if (!p->open || p->used + units > CT_ACT_PAGE_UNITS) {
    /* (The one that is closed has groups, or it would have begun anew.) */
    if (!open_page(p)) return CT_ACT_NO_PLACE;
  }
  const uint32_t at = p->used;
  p->used += units;
  ++p->groups[p->page];
  return (int64_t)p->page * CT_ACT_PAGE_UNITS + at;
}

bool ct_act_free(struct ct_act_pages *p, uint32_t place) {
  const uint32_t page = place / CT_ACT_PAGE_UNITS;
  if (page >= p->fresh || !p->groups[page]) return false;
  if (--p->groups[page]) return true;
  if (p->open && page == p->page) {
    p->used = 0;
    return true;
  }
  p->freed[p->tops++] = page;
  --p->held;
  return true;
}

uint32_t ct_act_entry(uint32_t place, unsigned units) {
  return place << 7 | units;
}
