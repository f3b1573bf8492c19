/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two queues of a device: programs, descriptors, completions, events.
 *
 *   ct_open.c     a device with its queues         ct_ring.c    descriptors, doorbells, completions
 *   ct_program.c  programs in device memory        ct_event.c   what has ended, waiting for it
 *   ct_cancel.c   ending jobs, resetting a queue   ct_cache.c   programs that are kept
 *
 * Work goes through
 *
 *   ct_submit_work() --descriptors, one doorbell--> ring --completions--> event --ct_reap()-->
 * caller
 *
 * What lies above and has completions of its own (requests, which the device answers without
 * descriptors) registers a listener and puts its events into the same list.
 */
#ifndef CT_QUEUE_H
#define CT_QUEUE_H

#include "ct_cmd.h"
#include "ct_device.h"

/* Work: jobs of one queue that run in a row and have one event. If one of them fails, those behind
 * it do nothing. */
struct ct_work {
  enum ct_queue queue;
  enum ct_event_kind kind;
  const struct ct_job *job; /* user, version, watchdog and flags are those of each job */
  unsigned jobs;            /* at least 1 */
  uint64_t cycle;           /* CT_NO_CYCLE: now */
  bool chained;             /* it does nothing, either, if the job before it in the queue fails */
  /* Called when the event is known, before anybody can reap it: what the work used is free again.
   * It must not submit. NULL: nobody is. For what ct_close() finds under way it is called with
   * CT_ERR_CLOSED, when the device has stopped and its handles still are there. */
  void (*done)(void *arg, const struct ct_event *event);
  void *arg;
};

/* A submitted job whose completion has not been seen. */
struct ct_pending {
  ct_program *program; /* NULL: it was freed, and the job could not be ended */
  uint64_t scheduled;
  void *user;
  void (*done)(void *arg, const struct ct_event *event);
  void *arg;
  enum ct_event_kind kind;
  bool emptied;    /* its descriptor has been left without commands */
  bool last;       /* of its work */
  unsigned before; /* jobs of the same work before it */
};

/* A ring of descriptors in device memory. Job number seq (from 0) lies in slot seq modulo slots. */
struct ct_ring {
  uint64_t addr;
  struct ct_pending *pending;    /* by slot */
  uint64_t submitted, completed; /* sequence numbers */
  uint64_t dropped;              /* those below have completed, or were dropped by a reset */
  uint64_t latest;               /* highest cycle a doorbell was scheduled for */
  bool owed;                     /* the last doorbell failed: the device may not know of all jobs */
  uint32_t popped;               /* tag of the completion taken in last ... */
  bool unpopped;                 /* ... which may still be in the device */
  size_t unreaped;               /* events of this queue that are to come or to be reaped */
  struct ct_event work;          /* of the jobs of a work that have completed before its last */
};

/* What lies above. All functions are called with the device's thread; each may be NULL. */
struct ct_listener {
  /* The registers have been looked at: IRQ_STATUS. */
  int (*poll)(ct_device *dev, uint32_t status);
  /* The cycle in which the device wants to be looked at again; CT_NO_CYCLE: whenever. */
  uint64_t (*due)(ct_device *dev);
  /* A job is about to join the ring of that queue; on failure it does not. */
  int (*joins)(ct_device *dev, enum ct_queue queue);
  /* A job of that queue has completed. */
  void (*completed)(ct_device *dev, enum ct_queue queue);
  /* Whether something that failed is to be tried again, for which others wait. */
  bool (*owes)(const ct_device *dev);
  /* Whether the event of that tag is still to come; asking for its end. */
  bool (*pending)(const ct_device *dev, uint64_t tag);
  int (*cancel)(ct_device *dev, uint64_t tag);
  /* The device is about to be closed. */
  void (*close)(ct_device *dev);
};

/* Programs that are kept for a shape, in words that the maker of the key chooses, and what else he
 * wants to remember of them. */
enum { CT_CACHE = 8, CT_CACHE_KEY = 4, CT_CACHE_NOTES = 2, CT_CACHED_PROGRAMS = 9 };
struct ct_cached {
  uint32_t key[CT_CACHE_KEY];
  uint32_t note[CT_CACHE_NOTES];
  ct_program *program[CT_CACHED_PROGRAMS]; /* may be NULL */
  uint64_t used;                           /* when; 0: there is none */
};

/* Everything this layer knows of a device. */
struct ct_queues {
  struct ct_ring ring[CT_QUEUES];
  struct ct_event *event; /* seen, not reaped: a ring buffer with room for all that are to come */
  size_t first, count, room;
  int fd;   /* what ct_poll_fd() gave; -1: nobody has asked */
  int wake; /* an eventfd in it, or fd itself: up while a look is worth it */
  int irq;  /* the transport's irq_fd() in it; -1: it has none */
  bool wake_up, irq_watched;
  const struct ct_listener *listener; /* NULL: nobody */
  void *above;                        /* the listener's own */
  struct ct_cached cache[CT_CACHE];
  uint64_t cache_uses;
  size_t leaving; /* pieces of memory that jobs which could not be ended keep, at the last look */
};

struct ct_program {
  struct ct_handle handle; /* first */
  uint64_t addr;
  uint32_t count;
  size_t jobs; /* submitted and not completed */
};

/* ---- Submitting ---- */

/* All jobs or none: CT_ERR_FULL, and everything ct_submit() can say. *tag may be NULL. */
int ct_submit_work(ct_device *dev, const struct ct_work *work, uint64_t *tag);

/* Jobs that can join a queue now. */
uint64_t ct_queue_room(const ct_device *dev, enum ct_queue queue);

/* Jobs of a queue ever submitted, and whether all of them have completed. */
uint64_t ct_queue_submitted(const ct_device *dev, enum ct_queue queue);
bool ct_queue_is_idle(const ct_device *dev, enum ct_queue queue);

/* Whether the oldest job of a queue that has not completed is of a kind; false if there is none. */
bool ct_queue_is_at(const ct_device *dev, enum ct_queue queue, enum ct_event_kind kind);

/* Loads what a builder made and frees code->cmd, whatever the outcome. */
int ct_code_load(ct_device *dev, struct ct_code *code, ct_program **program);

/* When the device is closed: no job is ended, and nothing is waited for. */
void ct_program_drop(ct_program *program);

/* ---- Memory that jobs use ---- */

/* Gives back device memory (addr 0: none) that the jobs of a call that blocked have used in a
 * queue. err: how the call ended. If one of them could not be ended (CT_ERR_DEVICE), it stays until
 * it has. (What does not block has its works' `done`.) */
void ct_give_back_after(ct_device *dev, uint64_t addr, enum ct_queue queue, int err);
/* The same, when these jobs have completed. */
void ct_give_back_until(ct_device *dev, uint64_t addr, const struct ct_until *until);

/* ---- Programs that are kept ---- */

/* NULL: there is none for the key. It stays as it is until the next ct_cache_keep() or
 * ct_program_load(). */
struct ct_cached *ct_cache_find(ct_device *dev, const uint32_t *key);
/* Takes over the programs of a set. NULL: there is no place, since jobs of all others have not
 * completed; the set stays the caller's. */
struct ct_cached *ct_cache_keep(ct_device *dev, const struct ct_cached *set);
void ct_cache_empty(struct ct_cached *set);

/* ---- Events ---- */

/* Makes room for an event of that queue that is to come: CT_ERR_MEMORY. */
int ct_event_expect(ct_device *dev, enum ct_queue queue);

/* It will not come after all. */
void ct_event_forget(ct_device *dev, enum ct_queue queue);

/* It has come. */
void ct_event_put(ct_device *dev, const struct ct_event *event);

/* Waits, as long as a blocking call may, for the event of that tag and takes it (event may be
 * NULL). CT_OK if all did well. What takes too long is cancelled; if even that does not end it, the
 * answer is CT_ERR_DEVICE and its memory is given back by ct_give_back_after(). */
int ct_finish(ct_device *dev, uint64_t tag, struct ct_event *event);

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

/* How long the end of something cancelled is waited for, milliseconds. */
enum { CT_CANCEL_MS = 500 };

/* Waits until every job of a queue with a number below seq has completed; takes nothing. */
int ct_wait_completed(ct_device *dev, enum ct_queue queue, uint64_t seq, int timeout_ms);

/* The error of an event by the device's code. */
int ct_code_error(uint32_t code);

/* CT_OK, or the error of an event with a sentence about it. */
int ct_event_error(ct_device *dev, const struct ct_event *event);

/* Shows in ct_poll_fd() whether something is outstanding. */
void ct_show_outstanding(ct_device *dev);

/* ---- Between the files of this layer ---- */

int ct_rings_open(ct_device *dev);

/* Gives up a set that nothing uses: false if there is none. */
bool ct_cache_shrink(ct_device *dev);
void ct_cache_close(ct_device *dev);

/* Frees what the jobs that have completed have kept. */
void ct_sweep(ct_device *dev);

/* Rings a doorbell again that has failed. */
int ct_ring_again(ct_device *dev, enum ct_queue queue);

/* Takes in the completions of a queue, of which at least one waits. */
int ct_ring_take(ct_device *dev, enum ct_queue queue);

/* Jobs that a reset has dropped have no completion: ends them. */
void ct_ring_drop(ct_device *dev, enum ct_queue queue);

/* The offset of a queue's register. */
static inline uint32_t ct_queue_reg(enum ct_queue queue, uint32_t offset) {
  return CT_CTX_BASE + (uint32_t)queue * CT_CTX_STRIDE + offset;
}

/* The slot of a job, and how many there are. */
static inline uint64_t ct_ring_slots(const ct_device *dev) {
  return UINT64_C(1) << dev->ring_log2;
}
static inline struct ct_pending *ct_ring_pending(const ct_device *dev, enum ct_queue queue,
                                                 uint64_t seq) {
  return &dev->queues->ring[queue].pending[seq & (ct_ring_slots(dev) - 1)];
}

/* Tags of all kinds share one space. Bits 1..0: CT_INFERENCE or CT_TRAINING for a work, whose last
 * job's number plus one stands above; CT_TAG_ABOVE for what the listener counts. No tag is 0. */
enum { CT_TAG_ABOVE = 2, CT_TAG_BITS = 2 };
static inline uint64_t ct_job_tag(enum ct_queue queue, uint64_t seq) {
  return (seq + 1) << CT_TAG_BITS | (uint64_t)queue;
}

/* Whether the tag is of a work whose event is still to come; the number of its last job. */
bool ct_is_pending(const ct_device *dev, uint64_t tag, uint64_t *seq);

/* Cancels a work whose event is still to come, in whatever state it is: all of its jobs. last: the
 * number of its last one. */
int ct_cancel_work(ct_device *dev, enum ct_queue queue, uint64_t last);

/* Takes the event of that tag (0: the oldest) if it is there. */
bool ct_event_take(ct_device *dev, uint64_t tag, struct ct_event *event);
bool ct_event_is_there(const ct_device *dev, uint64_t tag);

/* CT_ERR_NOT_FOUND with a sentence. */
int ct_unknown_tag(ct_device *dev, uint64_t tag);

/* Gives back what ct_poll_fd() made. */
void ct_poll_close(ct_device *dev);

#endif
