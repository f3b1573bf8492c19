/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A device inside the library: its transport, memory, queues. Nothing here is public.
 *
 *   ct_device.c  opening, information, errors     ct_plugin.c  transports by name
 *   ct_heap.c    device memory                    ct_job.c     queues
 */
#ifndef CT_DEVICE_H
#define CT_DEVICE_H

#include "coltrain/coltrain.h"
#include "ct_transport.h"

enum { CT_QUEUES = 2, CT_UNIT = 16 };

/* Free and used blocks of a range of device memory, in order of address. */
struct ct_heap_block {
  uint64_t addr, size;
  bool used;
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

/* A submitted job whose completion has not been seen. */
struct ct_pending {
  uint64_t scheduled;
  void *user;
  bool cancelled; /* its descriptor has been made harmless */
  bool part;      /* of something longer: its result is of interest only if it failed */
};

/* A queue: a ring of descriptors in device memory. Job number seq (from 0) lies in slot seq modulo
 * slots. */
struct ct_ring {
  uint64_t addr;
  unsigned log2;
  struct ct_pending *pending;    /* by slot */
  uint64_t submitted, completed; /* sequence numbers */
  uint64_t latest;               /* highest cycle a doorbell was scheduled for */
  size_t unreaped;               /* submitted and not reaped */
};

struct ct_plugin {
  void *handle; /* of dlopen(); NULL: linked in */
  const struct ct_transport_ops *ops;
};

struct ct_device {
  struct ct_plugin plugin;
  void *self; /* of the transport */
  struct ct_info info;
  ct_log_fn *log;
  void *log_arg;
  char error[512];
  struct ct_heap code, data; /* programs are out of programs' reach */
  struct ct_ring ring[CT_QUEUES];
  struct ct_result *done; /* seen, not reaped: a ring buffer */
  size_t done_first, done_count, done_room;
  ct_program *idle; /* a program that does nothing: what cancelled jobs run */
};

struct ct_program {
  ct_device *dev;
  uint64_t addr;
  uint32_t count;
};

/* Finds the transport of a scheme, linked in or as a plug-in. */
int ct_plugin_open(const char *scheme, size_t len, struct ct_plugin *plugin, char *why,
                   size_t why_size);
void ct_plugin_close(struct ct_plugin *plugin);

/* Keeps a sentence for ct_last_error() and returns error. */
int ct_fail(ct_device *dev, int error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void ct_log(ct_device *dev, int level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

int ct_reg_read(ct_device *dev, uint32_t offset, uint32_t *value);
int ct_reg_write(ct_device *dev, uint32_t offset, uint32_t value);

int ct_rings_init(ct_device *dev, uint64_t addr, unsigned log2);
void ct_rings_free(ct_device *dev);

struct ct_code;
/* Loads what a builder made and frees code->cmd, whatever the outcome. */
int ct_code_load(ct_device *dev, struct ct_code *code, ct_program **program);

/* ct_submit_at(); part: only a failure of this job is reported. */
int ct_submit_job(ct_device *dev, enum ct_queue queue, const struct ct_job *job, uint64_t cycle,
                  bool part, uint64_t *tag);

/* Whether that many jobs can be submitted now. */
bool ct_queue_has_room(const ct_device *dev, enum ct_queue queue, unsigned jobs);

/* CT_OK, or the error of a job's result with a sentence about it. */
int ct_result_error(ct_device *dev, const struct ct_result *result);

/* Words of the scratchpad window of either queue. */
uint32_t ct_window_words(const ct_device *dev);

#endif
