/* SPDX-License-Identifier: Apache-2.0 */
/* First-fit allocation of device memory; the bookkeeping is on the host. */
#include <stdlib.h>

#include "ct_device.h"

static struct ct_heap_block *block_new(uint64_t addr, uint64_t size, struct ct_heap_block *next) {
  struct ct_heap_block *b = malloc(sizeof *b);
  if (b) *b = (struct ct_heap_block){.addr = addr, .size = size, .next = next};
  return b;
}

int ct_heap_init(struct ct_heap *heap, uint64_t addr, uint64_t size) {
  heap->first = block_new(addr, size, NULL);
  return heap->first ? CT_OK : CT_ERR_MEMORY;
}

void ct_heap_free_all(struct ct_heap *heap) {
  for (struct ct_heap_block *b = heap->first, *next; b; b = next) {
    next = b->next;
    free(b);
  }
  heap->first = NULL;
}

/* Cuts b after size bytes. */
static int split(struct ct_heap_block *b, uint64_t size) {
  if (b->size == size) return CT_OK;
  struct ct_heap_block *rest = block_new(b->addr + size, b->size - size, b->next);
  if (!rest) return CT_ERR_MEMORY;
  b->next = rest;
  b->size = size;
  return CT_OK;
}

int ct_heap_alloc(struct ct_heap *heap, uint64_t size, uint64_t align, uint64_t *addr) {
  if (size == 0) size = 1;
  if (size > UINT64_MAX - align) return CT_ERR_NO_SPACE;
  size = (size + align - 1) & ~(align - 1);
  for (struct ct_heap_block *b = heap->first; b; b = b->next) {
    const uint64_t gap = -b->addr & (align - 1);
    if (b->used || b->size < gap || b->size - gap < size) continue;
    if (gap) {
      if (split(b, gap)) return CT_ERR_MEMORY;
      b = b->next;
    }
    if (split(b, size)) return CT_ERR_MEMORY;
    b->used = true;
    *addr = b->addr;
    return CT_OK;
  }
  return CT_ERR_NO_SPACE;
}

static void merge_next(struct ct_heap_block *b) {
  struct ct_heap_block *next = b->next;
  if (!next || b->used || next->used) return;
  b->size += next->size;
  b->next = next->next;
  free(next);
}

/* before: the block before b, or NULL. */
static void release(struct ct_heap_block *b, struct ct_heap_block *before) {
  b->used = b->leaving = false;
  merge_next(b);
  if (before) merge_next(before);
}

/* The block of an owner at that address, and the one before. */
static struct ct_heap_block *find_used(const struct ct_heap *heap, uint64_t addr,
                                       struct ct_heap_block **before) {
  *before = NULL;
  for (struct ct_heap_block *b = heap->first; b; *before = b, b = b->next)
    if (b->addr == addr && b->used && !b->leaving) return b;
  return NULL;
}

int ct_heap_free(struct ct_heap *heap, uint64_t addr) {
  struct ct_heap_block *before, *b = find_used(heap, addr, &before);
  if (!b) return CT_ERR_NOT_FOUND;
  release(b, before);
  return CT_OK;
}

int ct_heap_leave(struct ct_heap *heap, uint64_t addr, const struct ct_until *until) {
  struct ct_heap_block *before, *b = find_used(heap, addr, &before);
  if (!b) return CT_ERR_NOT_FOUND;
  b->leaving = true;
  b->until = *until;
  return CT_OK;
}

static bool is_through(const struct ct_heap_block *b, const struct ct_until *completed) {
  for (unsigned q = 0; q < CT_QUEUES; ++q)
    if (b->until.below[q] > completed->below[q]) return false;
  return true;
}

size_t ct_heap_sweep(struct ct_heap *heap, const struct ct_until *completed) {
  size_t waiting = 0;
  for (struct ct_heap_block *b = heap->first, *before = NULL; b; b = b->next) {
    const bool joins = before && !before->used; /* then b goes up in it */
    if (b->leaving && is_through(b, completed)) {
      release(b, before);
      if (joins) b = before;
    }
    waiting += b->leaving;
    before = b;
  }
  return waiting;
}

uint64_t ct_heap_room(const struct ct_heap *heap) {
  uint64_t room = 0;
  for (const struct ct_heap_block *b = heap->first; b; b = b->next)
    room += b->used ? 0 : b->size;
  return room;
}

uint64_t ct_heap_largest(const struct ct_heap *heap) {
  uint64_t largest = 0;
  for (const struct ct_heap_block *b = heap->first; b; b = b->next)
    if (!b->used && b->size > largest) largest = b->size;
  return largest;
}
