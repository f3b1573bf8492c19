/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads and stores of a device's registers and memory, and their order.
 *
 * Every access is naturally aligned and happens as often as it is written here: the mapping may be
 * device memory, where an arm64 processor faults on unaligned accesses, and registers act when they
 * are read. That is why nothing here may become a memcpy(): what the compiler makes of one is its
 * own choice.
 */
#ifndef CT_MMIO_IO_H
#define CT_MMIO_IO_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* All accesses before it have arrived before any after it is made. On x86-64 uncached mappings are
 * in order anyway; write-combining ones are not. On arm64 memory and registers are different
 * endpoints, and only a DSB waits for the one's answer before the other is touched. */
static inline void ct_io_barrier(void) {
#if defined(__x86_64__) || defined(__i386__)
  __asm__ volatile("mfence" ::: "memory");
#elif defined(__aarch64__)
  __asm__ volatile("dsb sy" ::: "memory");
#elif defined(__riscv)
  __asm__ volatile("fence iorw, iorw" ::: "memory");
#else
  __sync_synchronize();
#endif
}

static inline uint32_t ct_io_read32(const volatile void *at) {
  return *(const volatile uint32_t *)at;
}

static inline void ct_io_write32(volatile void *at, uint32_t value) {
  *(volatile uint32_t *)at = value;
}

static inline uint64_t ct_io_read64(const volatile void *at) {
  return *(const volatile uint64_t *)at;
}

/* Bytes up to a multiple of 8, words, and the bytes that are left. */
static inline void ct_io_copy_to(volatile uint8_t *to, const uint8_t *from, size_t size) {
  for (; size && (uintptr_t)to % 8; --size)
    *to++ = *from++;
  for (; size >= 8; size -= 8, to += 8, from += 8) {
    uint64_t word;
    memcpy(&word, from, sizeof word);
    *(volatile uint64_t *)to = word;
  }
  for (; size; --size)
    *to++ = *from++;
}

static inline void ct_io_copy_from(uint8_t *to, const volatile uint8_t *from, size_t size) {
  for (; size && (uintptr_t)from % 8; --size)
    *to++ = *from++;
  for (; size >= 8; size -= 8, to += 8, from += 8) {
    const uint64_t word = ct_io_read64(from);
    memcpy(to, &word, sizeof word);
  }
  for (; size; --size)
    *to++ = *from++;
}

#endif
