/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files through which a device's registers, memory and interrupt are reached: UIO devices
 * (areas and their sizes in /sys/class/uio), PCI BARs in sysfs (as large as the file is), and files
 * without a size, such as /dev/mem.
 */
#ifndef CT_MMIO_FILE_H
#define CT_MMIO_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host/transports/ct_transport.h"

enum { CT_MMIO_PATH = 256 };

struct ct_mmio_file {
  int fd;                  /* -1: not open */
  char path[CT_MMIO_PATH]; /* as the caller named it */
  char uio[32];            /* "uio0", ...; "": it is none */
  uint64_t size;           /* 0: unknown; of a UIO device, see ct_mmio_area() */
};

/* A piece of a file, and where it is mapped. */
struct ct_mmio_area {
  uint64_t offset; /* for mmap(), before the page is made whole */
  uint64_t skip;   /* bytes of that page before the first one asked for */
  uint64_t size;   /* from the first byte asked for; UINT64_MAX: unknown */
  void *at;        /* what mmap() gave, NULL: not mapped */
  size_t length;
  volatile uint8_t *data; /* the first byte asked for */
};

/* All return 0 or a CT_ERR_* with a sentence in why that names the file and what to do. */

/* Opens for reading and writing, uncached. */
int ct_mmio_file_open(struct ct_mmio_file *file, const char *path, char *why, size_t why_size);
void ct_mmio_file_close(struct ct_mmio_file *file);

/* Whether a UIO device's driver is still bound to it, and a PCI function not removed; true for
 * other files. */
bool ct_mmio_file_is_there(const struct ct_mmio_file *file);

/* Finds the place of byte `at`, in map number `map` of a UIO device. */
int ct_mmio_area(const struct ct_mmio_file *file, unsigned map, uint64_t at,
                 struct ct_mmio_area *area, char *why, size_t why_size);

/* Keeps other opens, here and in other processes, off this area until the file is closed:
 * CT_ERR_BUSY. */
int ct_mmio_lock(const struct ct_mmio_file *file, const struct ct_mmio_area *area, uint64_t size,
                 char *why, size_t why_size);

/* Maps the first size bytes. */
int ct_mmio_map(const struct ct_mmio_file *file, struct ct_mmio_area *area, uint64_t size,
                char *why, size_t why_size);
void ct_mmio_unmap(struct ct_mmio_area *area);

/* Opens a UIO device for its interrupt. *fd -1: it has none. *armed: it has to be enabled again
 * after each, by writing 1. *config: the same, by ct_mmio_irq_unmask() of this descriptor, unless
 * -1. Both are the caller's to close. */
int ct_mmio_irq_open(const char *path, int *fd, bool *armed, int *config, char *why,
                     size_t why_size);

/* False: the device is no longer there. */
bool ct_mmio_irq_unmask(int config);

/* Tells of what may be a core here (ct_transport.h); always CT_OK. */
int ct_mmio_list(ct_transport_found *found, void *arg);

#endif
