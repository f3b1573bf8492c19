/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A device inside the library: its transport, memory, errors, handles. Nothing here is public.
 *
 *   ct_device.c  opening, information, registers   ct_plugin.c  transports by name
 *   ct_error.c   sentences, the log, handles       ct_heap.c    device memory
 *
 * Layers stand on each other in one direction (scripts/layers): what lies above a device, its
 * queues first, hangs on it by a pointer that this layer never looks into.
 */
#ifndef CT_DEVICE_H
#define CT_DEVICE_H

#include "coltrain/coltrain.h"
#include "ct_transport.h"

struct ct_queues;

enum { CT_QUEUES = 2, CT_UNIT = 16 };

/* Bytes of device memory that are used at the most: 64 GiB less a MiB. */
#define CT_MOST_MEMORY ((UINT64_C(1) << 36) - (UINT64_C(1) << 20))

/* Jobs that may still use some memory: of each queue those with a number below. How jobs are
 * counted is known to the layer above. */
struct ct_until {
  uint64_t below[CT_QUEUES];
};

/* Free and used blocks of a range of device memory, in order of address. */
struct ct_heap_block {
  uint64_t addr, size;
  bool used;
  bool leaving; /* its owner has gone; what may still use it has not: until.. */
  struct ct_until until;
  struct ct_heap_block *next;
};

struct ct_heap {
  struct ct_heap_block *first;
};

/* size and align in bytes, align a power of two. */
int ct_heap_init(struct ct_heap *heap, uint64_t addr, uint64_t size);
void ct_heap_free_all(struct ct_heap *heap);
int ct_heap_alloc(struct ct_heap *heap, uint64_t size, uint64_t align, uint64_t *addr);
int ct_heap_free(struct ct_heap *heap, uint64_t addr);
/* The same as soon as ct_heap_sweep() finds these completed. It takes no memory. */
int ct_heap_leave(struct ct_heap *heap, uint64_t addr, const struct ct_until *until);
/* Frees what has left, now that all jobs below have completed. Returns how many blocks still wait.
 */
size_t ct_heap_sweep(struct ct_heap *heap, const struct ct_until *completed);
uint64_t ct_heap_largest(const struct ct_heap *heap); /* bytes of the largest free block */
uint64_t ct_heap_room(const struct ct_heap *heap);    /* bytes of all of them */

struct ct_plugin {
  void *handle; /* of dlopen(); NULL: linked in */
  const struct ct_transport_ops *ops;
};

/* What models and programs begin with, so that a call can tell a live one from a freed one and from
 * one whose device has been closed. The last few that were freed are kept, marked. */
struct ct_handle {
  ct_device *dev;
  bool live;
};

enum { CT_GRAVES = 16 };

struct ct_device {
  struct ct_plugin plugin;
  void *self;  /* of the transport; NULL: not open, or closed */
  bool opened; /* failed calls are logged */
  bool taken;  /* it was reset, and is stopped again when it is closed */
  bool closed; /* by ct_close(); models or programs are left */
  struct ct_info info;
  ct_log_fn *log;
  void *log_arg;
  int log_level;
  char error[512];
  char *long_error; /* a sentence that has no room there; NULL: there is none */
  size_t handles;   /* live ones; the device goes with the last */
  struct ct_handle *grave[CT_GRAVES];
  size_t graves;             /* ever dug: the next is graves modulo CT_GRAVES */
  struct ct_heap code, data; /* programs are out of programs' reach */
  uint64_t data_start;       /* rings (from 0 on) and programs lie below */
  unsigned ring_log2;        /* log2 of the slots of a ring */
  int timeout_ms;            /* of calls that block */
  struct ct_queues *queues;  /* of the layer above; NULL until they are there */
  const void *pages;         /* who has the pages for compressed groups; NULL: nobody ... */
  uint64_t pages_until;      /* ... from when so many jobs of the training queue have completed */
};

/* Finds the transport of a scheme, linked in or as a plug-in. */
int ct_plugin_open(const char *scheme, size_t len, struct ct_plugin *plugin, char *why,
                   size_t why_size);
void ct_plugin_close(struct ct_plugin *plugin);

/* Keeps a sentence for ct_last_error() and returns error. dev NULL: for this thread. */
int ct_fail(ct_device *dev, int error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The same with a sentence of any length; as much of it as there is memory for. */
int ct_fail_long(ct_device *dev, int error, const char *text);
#ifdef __clang_analyzer__ /* what it cannot see in a file without the function's body */
#define ct_fail(dev, error, ...) ((ct_fail)(dev, error, __VA_ARGS__), (error))
#endif

/* The same after a function of the transport has failed: adds what it knows of the reason. */
int ct_fail_device(ct_device *dev, int error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void ct_log(ct_device *dev, int level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* CT_OK, or an error with a sentence: the device is NULL or closed. */
int ct_check_device(ct_device *dev);

/* The same for a queue's number. */
int ct_check_queue(ct_device *dev, enum ct_queue queue);

/* The same for the reserved words of a structure. what: its name. */
int ct_check_reserved(ct_device *dev, const char *what, const uintptr_t *word, size_t count);

/* The same for a timeout. */
int ct_check_timeout(ct_device *dev, int timeout_ms);

/* The same for size bytes at addr of what programs may write, addr a multiple of 16. what: of the
 * sentence, such as "the batch". */
int ct_check_range(ct_device *dev, const char *what, uint64_t addr, uint64_t size);

/* Returns from a public function with CT_ERR_ARG and the pointer's name if it is NULL. CT_NEED_OF:
 * from what several of them share; call is the one that was called, as a text. */
#define CT_NEED(dev, pointer) CT_NEED_OF(dev, __func__, pointer)
#define CT_NEED_OF(dev, call, pointer) \
  if (!(pointer)) return ct_fail(dev, CT_ERR_ARG, "%s(): %s is NULL", call, #pointer)

/* Handles. what: "model" or "program". */
void ct_handle_open(struct ct_handle *handle, ct_device *dev);
int ct_check_handle(const struct ct_handle *handle, const char *what);
/* False, with a sentence, if it cannot be freed (again). */
bool ct_handle_close(struct ct_handle *handle, const char *what);
/* The memory, when nothing else is left; the device too, if it was closed and this was the last. */
void ct_handle_bury(struct ct_handle *handle);
/* The same at once, for what no caller ever had: it takes no grave from what some did. */
void ct_handle_burn(struct ct_handle *handle);
/* Frees a closed device without handles. */
void ct_device_drop(ct_device *dev);

int ct_reg_read(ct_device *dev, uint32_t offset, uint32_t *value);
int ct_reg_write(ct_device *dev, uint32_t offset, uint32_t value);

/* ct_mem_write() to anywhere. */
int ct_mem_put(ct_device *dev, uint64_t addr, const void *data, size_t size);

/* Opens the transport that uri names, resets the device, sets its windows and heaps. On failure
 * *device is there all the same, for ct_device_failed(). */
int ct_device_open(const char *uri, const struct ct_options *options, ct_device **device);

/* The same without the reset and all after it: only registers may be read. */
int ct_device_look(const char *uri, const struct ct_options *options, ct_device **device);

/* Says why a device could not be opened where someone may look, and returns err. */
int ct_device_failed(ct_device *dev, const char *uri, const struct ct_options *options, int err);

/* Stops both contexts and lets the transport and the memory go; what lies above has gone before. */
void ct_device_close(ct_device *dev);

/* Words of the scratchpad window of either queue. */
uint32_t ct_window_words(const ct_device *dev);

#endif
