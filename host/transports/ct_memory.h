/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory for what stands for a device's: zeroed, and taken from the system only page by page as it
 * is touched.
 *
 * calloc() promises the zeros, but not that: with MALLOC_PERTURB_, and in some allocators by
 * themselves, each byte is written, and a device has hundreds of megabytes of which most programs
 * touch a few. A page that nobody may touch stands on either side, so that an address outside ends
 * the program where it is used.
 *
 * Who includes this defines _DEFAULT_SOURCE (or _GNU_SOURCE) in front of all includes. Any thread.
 */
#ifndef CT_MEMORY_H
#define CT_MEMORY_H

#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MAP_ANONYMOUS
#error "MAP_ANONYMOUS is needed: define _DEFAULT_SOURCE in front of all includes"
#endif

/* What is mapped for so many bytes, or 0 if no address is that large. */
static inline size_t ct_memory_mapped(size_t bytes, size_t page) {
  if (bytes > SIZE_MAX - 3 * page) return 0;
  return (bytes + page - 1) / page * page + 2 * page;
}

/* NULL if there is none; else for ct_memory_free() with the same number of bytes. At a page. */
static inline void *ct_memory_new(size_t bytes) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE), all = ct_memory_mapped(bytes, page);
  if (!all) return NULL;
  uint8_t *at = mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) return NULL;
  /* Without these pages it is memory all the same. */
  (void)mprotect(at, page, PROT_NONE);
  (void)mprotect(at + all - page, page, PROT_NONE);
  return at + page;
}

/* NULL does nothing. */
static inline void ct_memory_free(void *memory, size_t bytes) {
  if (!memory) return;
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  munmap((uint8_t *)memory - page, ct_memory_mapped(bytes, page));
}

#endif
