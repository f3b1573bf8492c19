/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A device inside the library: its transport, memory, queues. Nothing here is public.
 *
 *   ct_device.c  opening, information             ct_plugin.c  transports by name
 *   ct_error.c   sentences, the log, handles      ct_job.c     queues
 *   ct_heap.c    device memory                    ct_request.c requests (ct_server.h)
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
uint64_t ct_heap_largest(const struct ct_heap *heap); /* bytes of the largest free block */

/* A submitted job whose completion has not been seen. */
struct ct_pending {
  ct_program *program; /* NULL: it was freed, and the job could not be ended */
  uint64_t scheduled;
  void *user;
  bool cancelled; /* its descriptor has been made harmless */
  bool part;      /* of something longer: its result is of interest only if it failed */
  unsigned parts; /* that came before it and are cancelled with it */
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
  unsigned parts;                /* of something whose last job is still to be submitted */
};

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
  bool closed; /* by ct_close(); models or programs are left */
  struct ct_info info;
  ct_log_fn *log;
  void *log_arg;
  int log_level;
  char error[512];
  size_t handles; /* live ones; the device goes with the last */
  struct ct_handle *grave[CT_GRAVES];
  size_t graves;             /* ever dug: the next is graves modulo CT_GRAVES */
  struct ct_heap code, data; /* programs are out of programs' reach */
  uint64_t data_start;       /* rings and programs lie below */
  int timeout_ms;            /* of calls that block */
  int fd;                    /* what ct_poll_fd() gave; -1: nobody has asked */
  int wake;                  /* an eventfd in it, or fd itself: up while a look is worth it */
  int irq;                   /* the transport's irq_fd() in it; -1: it has none */
  bool wake_up, irq_watched;
  struct ct_ring ring[CT_QUEUES];
  struct ct_result *done; /* seen, not reaped: a ring buffer */
  size_t done_first, done_count, done_room;
  ct_program *idle;             /* a program that does nothing: what cancelled jobs run */
  struct ct_requests *requests; /* NULL: nothing has been served yet */
};

struct ct_program {
  struct ct_handle handle; /* first */
  uint64_t addr;
  uint32_t count;
  size_t jobs; /* submitted and not completed */
};

/* Finds the transport of a scheme, linked in or as a plug-in. */
int ct_plugin_open(const char *scheme, size_t len, struct ct_plugin *plugin, char *why,
                   size_t why_size);
void ct_plugin_close(struct ct_plugin *plugin);

/* Keeps a sentence for ct_last_error() and returns error. dev NULL: for this thread. */
int ct_fail(ct_device *dev, int error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

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
/* Frees a closed device without handles. */
void ct_device_drop(ct_device *dev);

int ct_reg_read(ct_device *dev, uint32_t offset, uint32_t *value);
int ct_reg_write(ct_device *dev, uint32_t offset, uint32_t value);

/* ct_mem_write() to anywhere. */
int ct_mem_put(ct_device *dev, uint64_t addr, const void *data, size_t size);

int ct_rings_init(ct_device *dev, uint64_t addr, unsigned log2);
void ct_rings_free(ct_device *dev);

/* Gives back what ct_poll_fd() made. */
void ct_poll_close(ct_device *dev);

struct ct_code;
/* Loads what a builder made and frees code->cmd, whatever the outcome. */
int ct_code_load(ct_device *dev, struct ct_code *code, ct_program **program);

/* ct_submit_at(); part: only a failure of this job is reported. */
int ct_submit_job(ct_device *dev, enum ct_queue queue, const struct ct_job *job, uint64_t cycle,
                  bool part, uint64_t *tag);

/* Whether that many jobs can be submitted now. */
bool ct_queue_has_room(const ct_device *dev, enum ct_queue queue, unsigned jobs);

/* Waits, as long as a blocking call may, for the last of so many jobs that were submitted in a row
 * (all but the last of them parts) and takes their results. CT_OK if all did well. A job that takes
 * too long is cancelled; if even that does not end it, the answer is CT_ERR_DEVICE and its memory
 * must not be used again. */
int ct_finish(ct_device *dev, uint64_t tag, unsigned jobs, struct ct_result *result);

/* Takes in what the device has completed. */
int ct_poll(ct_device *dev);

/* What is waited for: until the device's clock or the wall clock says stop. */
struct ct_patience {
  uint64_t until;
  int timeout_ms;
  int64_t end; /* of the wall clock */
  bool last;   /* there was nothing more to wait for: look once again and give up */
};
struct ct_patience ct_patience(uint64_t until, int timeout_ms);

/* Waits for the device to have something new; CT_ERR_TIMEOUT: enough. what: "job", "request". */
int ct_wait_more(ct_device *dev, struct ct_patience *p, const char *what);

/* Shows in ct_poll_fd() whether something is outstanding. */
void ct_show_outstanding(ct_device *dev);

/* How long the end of something cancelled is waited for, milliseconds. */
enum { CT_CANCEL_MS = 500 };

/* Waits until every job of a queue with a number below seq has completed; takes nothing. */
int ct_wait_completed(ct_device *dev, enum ct_queue queue, uint64_t seq, int timeout_ms);

/* ct_program_free(); false: a job of it cannot be ended, so that what it uses must stay. */
bool ct_program_end(ct_program *program);

/* CT_OK, or the error of a job's result with a sentence about it. */
int ct_result_error(ct_device *dev, const struct ct_result *result);

/* Words of the scratchpad window of either queue. */
uint32_t ct_window_words(const ct_device *dev);

#endif
