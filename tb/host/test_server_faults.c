/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Servers when things go wrong: requests that stay while thousands pass, register accesses that
 * fail with and without effect, a host that does not reap, batches that do not end, cancels at any
 * moment, neighbours that hang or go. Nothing is lost, nothing comes twice, no other is hit.
 *
 * On sim:, where it matters with a memory that stalls, and on emu:.
 */
#include "server_bed.h"

#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "ct_server.h"

/* ---- Slots ---- */

/* One request of a model that waits, while more than all slots' number of another's come and go. */
static void one_stays(void **state) {
  (void)state;
  enum { ROUNDS = 66, MANY = 64 };
  struct bed *b = test_malloc(sizeof *b);
  struct ask ask[MANY], stays = {.sample = 1, .place = MANY};
  bed_open(b, "sim:dram=32");
  bed_serve(b, 0, &(struct ct_serving){.batching = CT_BATCHING_FIXED, .max_wait = UINT32_MAX / 2});
  bed_serve(b, 2, NULL);
  stays.served = &b->served[0];
  bed_push(b, &stays, 0, CT_NO_CYCLE);
  for (uint32_t i = 0; i < MANY; ++i)
    ask[i] = (struct ask){.served = &b->served[2], .sample = i % BED_SAMPLES, .place = i};
  for (unsigned round = 0; round < ROUNDS; ++round) {
    for (uint32_t i = 0; i < MANY - 1; ++i)
      bed_push(b, &ask[i], 0, CT_NO_CYCLE);
    for (uint32_t i = 0; i < MANY - 1; ++i) {
      const struct ct_record r = bed_reap(b, &ask[i]);
      bed_check(b, &r);
    }
  }
  assert_int_equal(ct_server_outstanding(b->dev), 1);
  OK(ct_server_cancel(b->dev, stays.tag));
  assert_int_equal(bed_reap(b, &stays).code, CT_DEV_CANCELLED);
  bed_close(b);
  test_free(b);
}

/* Tags of requests long ago name nothing, although their slots are used again. */
static void tags_are_new(void **state) {
  (void)state;
  enum { SLOTS = 4096, OLD = 3 };
  struct bed *b = test_malloc(sizeof *b);
  struct ask ask = {.sample = 2};
  struct ct_record r;
  uint64_t old[OLD];
  bed_open(b, "emu:dram=32");
  bed_serve(b, 1, NULL);
  ask.served = &b->served[1];
  for (unsigned i = 0; i < OLD; ++i) {
    bed_push(b, &ask, 0, CT_NO_CYCLE);
    r = bed_reap(b, &ask);
    bed_check(b, &r);
    old[i] = ask.tag;
  }
  const struct ct_request request = bed_request(b, &ask);
  for (int round = 0; round < 2; ++round) {
    for (unsigned i = 0; i < SLOTS; ++i)
      OK(ct_server_push(b->served[1].server, &request, NULL));
    assert_int_equal(ct_server_push(b->served[1].server, &request, NULL), CT_ERR_FULL);
    for (unsigned i = 0; i < OLD; ++i)
      assert_int_equal(ct_server_cancel(b->dev, old[i]), CT_ERR_NOT_FOUND);
    for (unsigned i = 0; i < SLOTS; ++i) {
      OK(ct_server_reap(b->dev, &r, 5000));
      assert_int_equal(r.error, CT_OK);
    }
  }
  bed_close(b);
  test_free(b);
}

/* ---- Accesses that fail ---- */

enum effect { EITHER, WITHOUT, WITH };

/* A transport in front of another one: accesses of requests fail, some after they have taken
 * effect; and after a pop the device may say once that there is no record. */
struct flaky {
  struct ct_transport_ops ops;
  const struct ct_transport_ops *inner;
  void *self;
  ct_rng rng;
  uint32_t percent, only; /* writes of this register fail, and nothing else; 0: all of requests */
  unsigned from, most;    /* with only: after so many writes, and so many of them; 0: all */
  enum effect effect;
  bool shy, popped;
  int irq;                           /* see have_irq() */
  void (*at_state)(struct flaky *f); /* NULL, or what happens while BATCH_STATE is on its way */
  unsigned failed[2];                /* without, with effect */
};

static bool fails(struct flaky *f, uint32_t offset) {
  return offset >= CT_REG_REQ_INPUT && offset <= CT_REG_REC_ROWS &&
         ct_rng_percent(&f->rng, f->percent);
}

static bool write_fails(struct flaky *f, uint32_t offset) {
  if (!f->only) return fails(f, offset);
  if (offset != f->only) return false;
  if (f->from) {
    --f->from;
    return false;
  }
  if (!ct_rng_percent(&f->rng, f->percent)) return false;
  if (f->most && --f->most == 0) f->percent = 0;
  return true;
}

static int flaky_read(void *self, uint32_t offset, uint32_t *value) {
  struct flaky *f = self;
  if (!f->only && fails(f, offset)) return CT_ERR_DEVICE;
  const int err = f->inner->reg_read(f->self, offset, value);
  if (offset == CT_REG_REC_STATE && f->shy && f->popped) *value = 0;
  if (offset == CT_REG_REC_STATE) f->popped = false;
  if (offset == CT_REG_BATCH_STATE && f->at_state) f->at_state(f);
  return err;
}

static int flaky_write(void *self, uint32_t offset, uint32_t value) {
  struct flaky *f = self;
  const bool fail = write_fails(f, offset);
  const bool effect =
      !fail || f->effect == WITH || (f->effect == EITHER && ct_rng_below(&f->rng, 2));
  const int err = effect ? f->inner->reg_write(f->self, offset, value) : 0;
  if (offset == CT_REG_REC_STATE) f->popped = true;
  f->failed[effect] += fail;
  return fail ? CT_ERR_DEVICE : err;
}

static int flaky_wait(void *self, uint64_t until, int timeout_ms) {
  struct flaky *f = self;
  return f->inner->wait(f->self, until, timeout_ms);
}

static int flaky_now(void *self, uint64_t *cycle) {
  struct flaky *f = self;
  return f->inner->now(f->self, cycle);
}

static int flaky_mem_read(void *self, uint64_t addr, void *buf, size_t size) {
  struct flaky *f = self;
  return f->inner->mem_read(f->self, addr, buf, size);
}

static int flaky_mem_write(void *self, uint64_t addr, const void *buf, size_t size) {
  struct flaky *f = self;
  return f->inner->mem_write(f->self, addr, buf, size);
}

static int flaky_write_at(void *self, uint64_t cycle, uint32_t offset, uint32_t value) {
  struct flaky *f = self;
  return f->inner->reg_write_at(f->self, cycle, offset, value);
}

static int flaky_irq_fd(void *self) {
  const struct flaky *f = self;
  return f->irq;
}

static void put_before(struct flaky *f, ct_device *dev) {
  *f = (struct flaky){.ops = {.abi = CT_TRANSPORT_ABI,
                              .scheme = "flaky",
                              .reg_read = flaky_read,
                              .reg_write = flaky_write,
                              .mem_read = flaky_mem_read,
                              .mem_write = flaky_mem_write,
                              .wait = flaky_wait,
                              .now = flaky_now},
                      .inner = dev->plugin.ops,
                      .self = dev->self,
                      .rng = ct_rng_make(7)};
  dev->plugin.ops = &f->ops;
  dev->self = f;
}

/* As a device that runs by itself: its clock is the simulator's, its interrupt does not come.
 * f->irq is to be closed. */
static void have_irq(struct flaky *f) {
  f->irq = eventfd(0, EFD_CLOEXEC);
  assert_true(f->irq >= 0);
  f->ops.irq_fd = flaky_irq_fd;
  f->ops.reg_write_at = flaky_write_at;
}

static void take_away(struct flaky *f, ct_device *dev) {
  dev->plugin.ops = f->inner;
  dev->self = f->self;
}

/* Takes a record although reaping may fail on the way. */
static struct ct_record reap_stubbornly(struct bed *b) {
  struct ct_record r;
  for (int i = 0; i < 1000; ++i) {
    const int err = ct_server_reap(b->dev, &r, 5000);
    if (err == CT_OK) return r;
    assert_int_equal(err, CT_ERR_DEVICE);
  }
  fail_msg("reaping has failed a thousand times");
  return r;
}

/* Each request has one record and one answer, whichever access failed, however. */
static void accesses_fail(const char *uri, unsigned rounds) {
  enum { MOST = 100 };
  struct bed *b = test_malloc(sizeof *b);
  struct ask ask[MOST];
  struct flaky flaky;
  bed_open(b, uri);
  bed_serve(b, 0, &(struct ct_serving){.stream = true});
  bed_serve(b, 2, &(struct ct_serving){.stream = true});
  put_before(&flaky, b->dev);
  for (unsigned round = 0; round < rounds; ++round) {
    const uint32_t n = 1 + ct_rng_below(&b->rng, MOST);
    flaky.percent = round % 4 ? 3 : 30;
    for (uint32_t i = 0; i < n; ++i) {
      ask[i] = (struct ask){.served = &b->served[i % 2 * 2], .sample = i % BED_SAMPLES, .place = i};
      bed_push(b, &ask[i], 0, CT_NO_CYCLE);
    }
    for (uint32_t i = 0; i < n; ++i) {
      const struct ct_record r = reap_stubbornly(b);
      bed_check(b, &r);
    }
    assert_int_equal(ct_server_outstanding(b->dev), 0);
  }
  assert_true(flaky.failed[0] > 10 && flaky.failed[1] > 10);
  take_away(&flaky, b->dev);
  bed_close(b);
  test_free(b);
}

static void nothing_comes_twice(void **state) {
  (void)state;
  accesses_fail("emu:dram=32", 200);
  accesses_fail("sim:dram=32,stall=10", 12);
}

/* The first push of all, when the device has accepted none whose ticket could tell. */
static void first_push_fails(void **state) {
  (void)state;
  struct bed *b = test_malloc(sizeof *b);
  for (uint32_t how = 0; how < 8; ++how) {
    struct flaky flaky;
    struct ask ask[2] = {{.sample = 1, .place = 1}, {.sample = 2, .place = 2}};
    bed_open(b, how % 2 ? "emu:dram=32" : "sim:dram=32");
    bed_serve(b, 1, &(struct ct_serving){.stream = true});
    put_before(&flaky, b->dev);
    flaky.rng = ct_rng_make(how / 2);
    flaky.percent = 70;
    flaky.only = CT_REG_REQ_PUSH;
    for (int i = 0; i < 2; ++i) {
      ask[i].served = &b->served[1];
      bed_push(b, &ask[i], 0, CT_NO_CYCLE);
    }
    for (int i = 0; i < 2; ++i) {
      const struct ct_record r = reap_stubbornly(b);
      assert_ptr_equal(r.user, &ask[i]);
      bed_check(b, &r);
    }
    take_away(&flaky, b->dev);
    bed_close(b);
  }
  test_free(b);
}

/* A job of the ring is not begun when batches could not be told to load their weights again; nor
 * when it is tried once more. */
static void weights_are_not_trusted(void **state) {
  (void)state;
  struct bed *b = test_malloc(sizeof *b);
  struct flaky flaky;
  struct ask ask = {.sample = 3, .place = 3};
  float logits[BED_OUT_MOST];
  bed_open(b, "emu:dram=32,spm=2048");
  bed_serve(b, 0, NULL);
  ask.served = &b->served[0];
  assert_non_null(ask.served->server->resident);
  for (int i = 0; i < 3; ++i) {
    bed_push(b, &ask, 0, CT_NO_CYCLE);
    const struct ct_record r = bed_reap(b, &ask);
    bed_check(b, &r);
  }
  assert_true(ask.served->server->kept);
  put_before(&flaky, b->dev);
  flaky.only = CT_REG_MODEL_COMMIT;
  for (int i = 0; i < 6; ++i) {
    const struct served *s = &b->served[1];
    flaky.percent = i < 5 ? 100 : 0;
    assert_int_equal(ct_model_infer(s->model, CT_IMAGE_SERVED, s->x[1], 1, logits),
                     i < 5 ? CT_ERR_DEVICE : CT_OK);
  }
  assert_false(ask.served->server->kept);
  take_away(&flaky, b->dev);
  bed_push(b, &ask, 0, CT_NO_CYCLE);
  const struct ct_record r = bed_reap(b, &ask);
  bed_check(b, &r);
  bed_close(b);
  test_free(b);
}

/* Fails so many writes of a register, from now on. */
static void fail_writes(struct flaky *f, uint32_t only, unsigned most, enum effect effect) {
  f->only = only;
  f->most = most;
  f->effect = effect;
  f->percent = 100;
}

/* Other weights, and what number `version` will answer by them. */
static void other_weights(struct bed *b, struct served *s, uint32_t version) {
  bed_draw_weights(b, s);
  for (size_t i = 0; i < BED_SAMPLES; ++i)
    OK(ct_model_infer(s->model, CT_IMAGE_OWN, s->x[i], 1, s->want[version][i]));
}

/* So many requests to model 0, not reaped. */
static void push_some(struct bed *b, struct ask *ask, uint32_t n) {
  for (uint32_t i = 0; i < n; ++i) {
    ask[i] = (struct ask){.served = &b->served[0], .sample = i % BED_SAMPLES, .place = i};
    bed_push(b, &ask[i], 0, CT_NO_CYCLE);
  }
}

/* Reaps them; how many were answered by each version. */
static void reap_by_version(struct bed *b, uint32_t n, unsigned *by) {
  memset(by, 0, BED_VERSIONS * sizeof *by);
  for (uint32_t i = 0; i < n; ++i) {
    const struct ct_record r = reap_stubbornly(b);
    bed_check(b, &r);
    ++by[r.version];
  }
}

/* A change of versions that fails, perhaps with effect, and is tried again while batches may be
 * running: no answer is by half of one version and half of another, and no number means two. */
static void a_commit_fails(struct bed *b, struct flaky *flaky, enum effect effect) {
  enum { N = 40 };
  struct ask ask[N];
  unsigned by[BED_VERSIONS];
  struct served *s = &b->served[0];
  other_weights(b, s, 2);
  fail_writes(flaky, CT_REG_MODEL_COMMIT, 1, effect);
  assert_int_equal(ct_model_serve(s->model, NULL), CT_ERR_DEVICE);
  push_some(b, ask, N);
  s->version = 2; /* may come */
  bed_draw_weights(b, s);
  OK(ct_model_serve(s->model, &s->version));
  assert_int_equal(s->version, 3);
  for (size_t i = 0; i < BED_SAMPLES; ++i)
    OK(ct_model_infer(s->model, CT_IMAGE_OWN, s->x[i], 1, s->want[3][i]));
  reap_by_version(b, N, by);
  /* The emulator makes batches when it is looked at, and has been told again by then. */
  assert_int_equal(by[2] > 0, effect == WITH && !b->emu);
  push_some(b, ask, N);
  reap_by_version(b, N, by);
  assert_int_equal(by[3], N);
}

static void versions_stay_whole(void **state) {
  (void)state;
  struct bed *b = test_malloc(sizeof *b);
  for (unsigned how = 0; how < 8; ++how) {
    struct flaky flaky;
    bed_open(b, how & 1 ? "emu:dram=32" : "sim:dram=32,stall=25");
    bed_serve(b, 0, &(struct ct_serving){.max_batch = 1, .stream = how & 2});
    put_before(&flaky, b->dev);
    a_commit_fails(b, &flaky, how & 4 ? WITH : WITHOUT);
    take_away(&flaky, b->dev);
    bed_close(b);
  }
  test_free(b);
}

/* After a change of versions that failed the version before stays, whatever the library tells the
 * device afterwards: here because a job of the ring comes. */
static void the_version_before_stays(void **state) {
  (void)state;
  enum { N = 5 };
  struct bed *b = test_malloc(sizeof *b);
  for (enum effect effect = WITHOUT; effect <= WITH; ++effect) {
    struct flaky flaky;
    struct ask ask[N];
    struct ct_server_info info;
    unsigned by[BED_VERSIONS];
    float logits[BED_OUT_MOST];
    bed_open(b, "emu:dram=32");
    struct served *s = &b->served[0];
    bed_serve(b, 0, NULL);
    push_some(b, ask, N);
    reap_by_version(b, N, by);
    assert_true(s->server->kept);
    other_weights(b, s, 2);
    put_before(&flaky, b->dev);
    fail_writes(&flaky, CT_REG_MODEL_COMMIT, 1, effect);
    assert_int_equal(ct_model_serve(s->model, NULL), CT_ERR_DEVICE);
    OK(ct_model_infer(s->model, CT_IMAGE_SERVED, s->x[0], 1, logits));
    ct_assert_same("alone", logits, s->want[1][0], s->out * sizeof *logits);
    OK(ct_server_info(s->server, &info));
    assert_int_equal(info.version, 1);
    push_some(b, ask, N);
    reap_by_version(b, N, by);
    assert_int_equal(by[1], N);
    take_away(&flaky, b->dev);
    bed_close(b);
  }
  test_free(b);
}

/* Batches load weights again after one that failed, although the device could not be told so at
 * once. */
static void told_until_it_works(void **state) {
  (void)state;
  enum { TRIES = 3 };
  struct bed *b = test_malloc(sizeof *b);
  struct flaky flaky;
  struct ask ask;
  struct ct_record r;
  unsigned by[BED_VERSIONS];
  bed_open(b, "emu:dram=32");
  bed_serve(b, 0, NULL);
  push_some(b, &ask, 1);
  reap_by_version(b, 1, by);
  assert_true(b->served[0].server->kept);
  OK(b->dev->plugin.ops->fault(b->dev->self, CT_FAULT_AXI_READ, b->served[0].rows));
  put_before(&flaky, b->dev);
  push_some(b, &ask, 1);
  fail_writes(&flaky, CT_REG_MODEL_COMMIT, TRIES, WITHOUT);
  assert_int_equal(ct_server_reap(b->dev, &r, 5000), CT_ERR_DEVICE);
  assert_int_equal(ct_poll(b->dev), CT_ERR_DEVICE);
  assert_int_equal(ct_poll(b->dev), CT_ERR_DEVICE);
  OK(ct_poll(b->dev));
  assert_false(b->served[0].server->kept);
  r = bed_reap(b, &ask);
  assert_int_equal(r.code, CT_DEV_AXI_READ);
  push_some(b, &ask, 1);
  reap_by_version(b, 1, by);
  assert_true(b->served[0].server->kept);
  take_away(&flaky, b->dev);
  bed_close(b);
  test_free(b);
}

/* The one record of a batch that failed is heeded although its pop failed. */
static void failed_pop_of_a_failed_batch(void **state) {
  (void)state;
  struct bed *b = test_malloc(sizeof *b);
  for (enum effect effect = WITHOUT; effect <= WITH; ++effect) {
    struct flaky flaky;
    struct ask ask;
    struct ct_record r;
    unsigned by[BED_VERSIONS];
    bed_open(b, "emu:dram=32");
    bed_serve(b, 0, NULL);
    push_some(b, &ask, 1);
    reap_by_version(b, 1, by);
    assert_true(b->served[0].server->kept);
    OK(b->dev->plugin.ops->fault(b->dev->self, CT_FAULT_AXI_READ, b->served[0].rows));
    put_before(&flaky, b->dev);
    push_some(b, &ask, 1);
    fail_writes(&flaky, CT_REG_REC_STATE, 1, effect);
    assert_int_equal(ct_server_reap(b->dev, &r, 5000), CT_ERR_DEVICE);
    r = bed_reap(b, &ask);
    assert_int_equal(r.code, CT_DEV_AXI_READ);
    OK(ct_poll(b->dev));
    assert_false(b->served[0].server->kept);
    take_away(&flaky, b->dev);
    bed_close(b);
  }
  test_free(b);
}

/* A device that says after every pop that there is no record: all come, in order, also to a host
 * that does not wait. */
static void none_after_a_pop(void **state) {
  (void)state;
  enum { N = 90 };
  struct bed *b = test_malloc(sizeof *b);
  for (int emu = 0; emu < 2; ++emu) {
    struct ask ask[N];
    struct flaky flaky;
    bed_open(b, emu ? "emu:dram=32" : "sim:dram=32");
    bed_serve(b, 2, NULL);
    put_before(&flaky, b->dev);
    flaky.shy = true;
    for (uint32_t i = 0; i < N; ++i) {
      ask[i] = (struct ask){.served = &b->served[2], .sample = i % BED_SAMPLES, .place = i};
      bed_push(b, &ask[i], 0, CT_NO_CYCLE);
    }
    for (uint32_t i = 0; i < N; ++i) {
      struct ct_record r;
      int err = CT_ERR_TIMEOUT;
      for (int look = 0; look < 50 && err == CT_ERR_TIMEOUT; ++look)
        err = ct_server_reap(b->dev, &r, i % 2 ? CT_NO_WAIT : 5000);
      OK(err);
      assert_ptr_equal(r.user, &ask[i]);
      bed_check(b, &r);
    }
    take_away(&flaky, b->dev);
    bed_close(b);
  }
  test_free(b);
}

/* ---- Batches that do not end ---- */

/* Bytes that are allocated in a heap. */
static uint64_t used(const struct ct_heap *heap) {
  uint64_t sum = 0;
  for (const struct ct_heap_block *h = heap->first; h; h = h->next)
    sum += h->used ? h->size : 0;
  return sum;
}

static void hang(struct bed *b, bool on) {
  OK(b->dev->plugin.ops->fault(b->dev->self, on ? CT_FAULT_AXI_HANG : CT_FAULT_NONE,
                               b->served[0].rows));
}

/* A batch of model 0 whose input never comes; a cancel waits for it, and not only so long. */
static void begin_stuck(struct bed *b, struct ask *ask) {
  struct ct_record r;
  *ask = (struct ask){.served = &b->served[0]};
  OK(ct_reg_write(b->dev, CT_REG_DRAIN_LIMIT, UINT32_MAX));
  hang(b, true);
  bed_push(b, ask, 0, CT_NO_CYCLE);
  assert_int_equal(ct_server_reap(b->dev, &r, 20), CT_ERR_TIMEOUT);
}

enum left_how { SERVER_GOES, BOTH_GO, MODEL_GOES, DEVICE_GOES, LEFT_HOWS };

static void free_stuck(struct bed *b, enum left_how how) {
  struct served *s = &b->served[0];
  if (how != MODEL_GOES) ct_server_free(s->server);
  if (how == BOTH_GO || how == MODEL_GOES) ct_model_free(s->model);
}

/* While it is stuck: nobody gets its number, memory or words of the scratchpad. */
static void others_keep_off(struct bed *b, const struct ct_server *before) {
  struct ask ask = {.served = &b->served[2], .sample = 3, .place = 3};
  bed_serve(b, 2, NULL);
  const struct ct_server *s = b->served[2].server;
  assert_true(s->number != before->number);
  assert_true(s->pin_words > 0 && s->pin_at + s->pin_words <= before->pin_at);
  bed_push(b, &ask, 0, CT_NO_CYCLE);
  hang(b, false);
  struct ct_record r;
  OK(ct_server_reap(b->dev, &r, 5000));
  assert_int_equal(r.error, CT_ERR_CANCELLED);
  assert_int_equal(r.code, CT_DEV_CANCELLED);
  r = bed_reap(b, &ask);
  bed_check(b, &r);
  ct_server_free(b->served[2].server);
  b->served[2].server = NULL;
}

/* It has ended: everything is there again, and the model can be served as before. */
static void all_is_given_back(struct bed *b, enum left_how how, const struct ct_server *before) {
  struct served *s = &b->served[0];
  for (unsigned i = 0; i < CT_MODELS; ++i)
    assert_null(b->dev->requests->server[i]);
  if (how == MODEL_GOES) ct_server_free(s->server);
  s->server = NULL;
  if (how != SERVER_GOES) return;
  struct ask ask = {.served = s, .sample = 5, .place = 5};
  bed_next_version(b, s);
  bed_serve(b, 0, NULL);
  assert_true(s->server->number == before->number && s->server->pin_at == before->pin_at);
  bed_push(b, &ask, 0, CT_NO_CYCLE);
  const struct ct_record r = bed_reap(b, &ask);
  bed_check(b, &r);
}

static void stuck_batches_keep_theirs(void **state) {
  (void)state;
  struct bed *b = test_malloc(sizeof *b);
  for (enum left_how how = 0; how < LEFT_HOWS; ++how) {
    struct ask ask;
    bed_open(b, "sim:dram=32,stall=10");
    struct served *s = &b->served[0];
    const uint64_t data = used(&b->dev->data), code = used(&b->dev->code);
    const uint64_t memory = 2 * ct_model_image_bytes(s->model); /* and the state of training */
    bed_serve(b, 0, NULL);
    const struct ct_server before = *s->server;
    begin_stuck(b, &ask);
    free_stuck(b, how);
    if (how == DEVICE_GOES) {
      ct_close(b->dev);
      for (int i = 0; i < BED_MODELS; ++i)
        ct_model_free(b->served[i].model);
      continue;
    }
    if (how == SERVER_GOES) {
      assert_int_equal(ct_model_serve(s->model, NULL), CT_ERR_TIMEOUT);
      assert_non_null(strstr(ct_last_error(b->dev), "ct_model_serve() again later, or close"));
    }
    const uint64_t kept = used(&b->dev->code);
    assert_int_equal(used(&b->dev->data), data);
    others_keep_off(b, &before);
    if (how == SERVER_GOES)
      assert_int_equal(used(&b->dev->code), code);
    else
      assert_true(used(&b->dev->code) < kept && used(&b->dev->data) + memory < data);
    all_is_given_back(b, how, &before);
    if (how != SERVER_GOES) s->model = NULL;
    bed_close(b);
  }
  test_free(b);
}

/* ---- Cancels of batches ---- */

/* Lets the stuck batch go on, makes model 2 due, and time pass until a batch of it has begun, or
 * for longer than that would take. */
static void other_begins(struct flaky *f) {
  uint32_t state = 0;
  f->inner->fault(f->self, CT_FAULT_NONE, 0);
  f->inner->reg_write(f->self, CT_REG_MODEL_ADDR, 1 * CT_MODEL_WORDS + CT_MODEL_CTL);
  f->inner->reg_write(f->self, CT_REG_MODEL_DATA, CT_BATCHING_FIXED | 1 << 8);
  for (int i = 0; i < 1000 && (state >> 8 & 255) != 2; ++i)
    f->inner->reg_read(f->self, CT_REG_BATCH_STATE, &state);
  for (int i = 0; i < 10; ++i) /* it is in front, and has not ended */
    f->inner->reg_read(f->self, CT_REG_ID, &state);
}

/* The cancel of a batch hits no other model's, which begins just then. */
static void cancel_hits_its_own(void **state) {
  (void)state;
  struct bed *b = test_malloc(sizeof *b);
  struct ask stuck, other = {.sample = 7, .place = 7};
  struct flaky flaky;
  bed_open(b, "sim:dram=32");
  bed_serve(b, 0, NULL);
  bed_serve(b, 2, &(struct ct_serving){.batching = CT_BATCHING_FIXED, .max_wait = UINT32_MAX / 2});
  assert_int_equal(b->served[2].server->number, 1);
  other.served = &b->served[2];
  bed_push(b, &other, 0, CT_NO_CYCLE);
  begin_stuck(b, &stuck);
  put_before(&flaky, b->dev);
  flaky.at_state = other_begins;
  ct_server_free(b->served[0].server);
  b->served[0].server = NULL;
  flaky.at_state = NULL;
  take_away(&flaky, b->dev);
  for (int i = 0; i < 2; ++i) {
    struct ct_record r;
    OK(ct_server_reap(b->dev, &r, 5000));
    if (r.user == &other) bed_check(b, &r);
    if (r.user == &stuck) assert_int_equal(r.error, CT_ERR_CANCELLED);
  }
  bed_close(b);
  test_free(b);
}

/* Nobody stays frozen because a write of CTRL failed while a batch was cancelled: writes `from` and
 * after, so many. The look that cannot undo it says so, and ct_poll_fd() asks for another one. */
static void thaws(unsigned from, unsigned most, enum effect effect, unsigned failed_looks) {
  struct bed *b = test_malloc(sizeof *b);
  struct ask stuck, other = {.sample = 7, .place = 7};
  struct flaky flaky;
  struct ct_record r;
  bed_open(b, "sim:dram=32");
  bed_serve(b, 0, NULL);
  bed_serve(b, 2, NULL);
  begin_stuck(b, &stuck);
  put_before(&flaky, b->dev);
  have_irq(&flaky);
  const int fd = ct_poll_fd(b->dev);
  fail_writes(&flaky, CT_REG_CTRL, most, effect);
  flaky.from = from;
  ct_server_free(b->served[0].server);
  b->served[0].server = NULL;
  OK(flaky.inner->fault(flaky.self, CT_FAULT_NONE, 0));
  other.served = &b->served[2];
  bed_push(b, &other, 0, CT_NO_CYCLE);
  for (; failed_looks; --failed_looks) {
    assert_true(bed_is_readable(fd));
    assert_int_equal(ct_server_reap(b->dev, &r, 5000), CT_ERR_DEVICE);
  }
  bool answered = false;
  for (int i = 0; i < 2; ++i) {
    OK(ct_server_reap(b->dev, &r, 5000));
    assert_true(r.user == &stuck || r.user == &other);
    if (r.user == &other) bed_check(b, &r);
    answered |= r.user == &other;
  }
  assert_true(answered && flaky.percent == 0);
  take_away(&flaky, b->dev);
  bed_close(b);
  close(flaky.irq);
  test_free(b);
}

static void nobody_stays_frozen(void **state) {
  (void)state;
  thaws(0, 1, WITH, 0);    /* the write that freezes */
  thaws(1, 1, WITH, 0);    /* the one that is to undo it */
  thaws(1, 3, WITHOUT, 2); /* and the next ones */
}

/* ---- A host that does not reap ---- */

/* Time passes while nobody looks at what the device has to say. */
static void pass(struct bed *b, uint64_t cycles) {
  uint64_t begin = 0, now = 0;
  uint32_t id;
  OK(ct_now(b->dev, &begin));
  for (now = begin; now < begin + cycles;) {
    OK(ct_reg_read(b->dev, CT_REG_ID, &id));
    OK(ct_now(b->dev, &now));
  }
}

enum { UNREAPED = 300 };

/* A step of training, and an answer alone. */
static void other_calls_work(struct bed *b, struct bed_training *training) {
  const struct served *s = &b->served[1];
  float logits[BED_OUT_MOST];
  bed_train(training);
  OK(ct_model_infer(s->model, CT_IMAGE_SERVED, s->x[1], 1, logits));
  ct_assert_same("alone", logits, s->want[s->version][1], s->out * sizeof *logits);
}

/* To models 0 and 2 in turns. */
static void all_come_in_order(struct bed *b, const struct ask *ask) {
  uint32_t next[2] = {0, 1};
  for (uint32_t i = 0; i < UNREAPED; ++i) {
    struct ct_record r;
    OK(ct_server_reap(b->dev, &r, 5000));
    const uint32_t which = r.server == b->served[2].server;
    assert_ptr_equal(r.user, &ask[next[which]]);
    next[which] += 2;
    bed_check(b, &r);
  }
}

/* Records pile up, in the device and then in the host; other calls go on working; more requests are
 * pushed; and when the host reaps again, each record is there, in order. */
static void nobody_reaps(void **state) {
  (void)state;
  enum { ROUNDS = 2 };
  struct bed *b = test_malloc(sizeof *b);
  struct ask *ask = test_calloc(UNREAPED, sizeof *ask);
  struct bed_training training;
  bed_open(b, "sim:dram=32,stall=25");
  bed_training_open(b->dev, &training);
  bed_serve(b, 0, NULL);
  bed_serve(b, 2, NULL);
  for (unsigned round = 0; round < ROUNDS; ++round) {
    for (uint32_t i = 0; i < UNREAPED; ++i) {
      ask[i] =
          (struct ask){.served = &b->served[i % 2 * 2], .sample = i % BED_SAMPLES, .place = i % 40};
      bed_push(b, &ask[i], 0, CT_NO_CYCLE);
      if (i != UNREAPED / 2) continue;
      pass(b, 40000);
      other_calls_work(b, &training);
    }
    pass(b, 20000);
    assert_int_equal(ct_server_outstanding(b->dev), UNREAPED);
    all_come_in_order(b, ask);
  }
  bed_check_training(&training);
  ct_model_free(training.model);
  bed_close(b);
  test_free(ask);
  test_free(b);
}

/* ---- Cancels at any moment ---- */

/* Whether a batch is on its way: this look takes in nothing. */
static bool batch_runs(struct bed *b) {
  uint32_t state = 0;
  OK(ct_reg_read(b->dev, CT_REG_BATCH_STATE, &state));
  return state >> 8 & 255;
}

/* Requests by the state in which they are cancelled. */
enum { HOST = 90, QUEUE = 40, BATCH = 0, DONE = 1, AHEAD = 98, LATER = 99, IN_STATES = 100 };

/* In a batch, done, in the host, in the device. */
static void cancel_present(struct bed *b, struct ask *ask) {
  bed_push(b, &ask[BATCH], 0, CT_NO_CYCLE);
  for (int look = 0; look < 1000 && !batch_runs(b); ++look)
    continue;
  assert_true(batch_runs(b));
  OK(ct_server_cancel(b->dev, ask[BATCH].tag));
  bed_push(b, &ask[DONE], 0, CT_NO_CYCLE);
  pass(b, 20000);
  OK(ct_poll(b->dev));
  OK(ct_poll(b->dev));
  OK(ct_server_cancel(b->dev, ask[DONE].tag));
  bed_freeze(b, true);
  for (uint32_t i = 2; i < AHEAD; ++i)
    bed_push(b, &ask[i], 0, CT_NO_CYCLE);
  OK(ct_server_cancel(b->dev, ask[HOST].tag));
  OK(ct_server_cancel(b->dev, ask[QUEUE].tag));
  bed_freeze(b, false);
}

/* Reaped. */
static void reap_present(struct bed *b, const struct ask *ask) {
  unsigned gone = 0;
  for (uint32_t i = 0; i < AHEAD; ++i) {
    struct ct_record r;
    OK(ct_server_reap(b->dev, &r, 5000));
    const struct ask *a = r.user;
    assert_int_equal(r.error == CT_OK, a != &ask[HOST] && a != &ask[QUEUE]);
    if (r.error == CT_OK) bed_check(b, &r);
    gone += r.error == CT_ERR_CANCELLED && r.code == CT_DEV_CANCELLED && r.batch == 0;
    assert_int_equal(ct_server_cancel(b->dev, r.tag), CT_ERR_NOT_FOUND);
  }
  assert_int_equal(gone, 2);
}

/* Ahead of its time: one that the device is to get in a moment, and one much later. */
static void cancel_scheduled(struct bed *b, struct ask *ask) {
  uint64_t now = 0;
  OK(ct_now(b->dev, &now));
  bed_push(b, &ask[AHEAD], 0, now + 800);
  bed_push(b, &ask[LATER], 0, now + 80000);
  for (uint32_t i = AHEAD; i <= LATER; ++i)
    OK(ct_server_cancel(b->dev, ask[i].tag));
  for (uint32_t i = AHEAD; i <= LATER; ++i) {
    struct ct_record r;
    OK(ct_server_reap(b->dev, &r, 5000));
    assert_int_equal(r.code, CT_DEV_CANCELLED);
  }
}

static void cancelled_in_every_state(void **state) {
  (void)state;
  struct bed *b = test_malloc(sizeof *b);
  struct ask ask[IN_STATES];
  bed_open(b, "sim:dram=32,stall=25");
  bed_serve(b, 0, &(struct ct_serving){.max_batch = 1});
  bed_serve(b, 2, &(struct ct_serving){.batching = CT_BATCHING_FIXED, .max_wait = 9000});
  for (uint32_t i = 0; i < IN_STATES; ++i)
    ask[i] = (struct ask){
        .served = &b->served[i < AHEAD ? 0 : 2], .sample = i % BED_SAMPLES, .place = i};
  cancel_present(b, ask);
  reap_present(b, ask);
  cancel_scheduled(b, ask);
  bed_close(b);
  test_free(b);
}

/* On a device that has a descriptor for its interrupt, a request that is cancelled in the host can
 * be reaped at once, and ct_poll_fd() says so. */
static void cancel_in_the_host_is_shown(void **state) {
  (void)state;
  struct bed *b = test_malloc(sizeof *b);
  struct flaky flaky;
  struct ask ask = {.sample = 1};
  uint64_t now = 0;
  bed_open(b, "sim:dram=32");
  bed_serve(b, 0, NULL);
  put_before(&flaky, b->dev);
  have_irq(&flaky);
  const int fd = ct_poll_fd(b->dev);
  ask.served = &b->served[0];
  OK(ct_now(b->dev, &now));
  bed_push(b, &ask, 0, now + 80000);
  assert_false(bed_is_readable(fd));
  OK(ct_server_cancel(b->dev, ask.tag));
  assert_true(bed_is_readable(fd));
  assert_int_equal(bed_reap(b, &ask).code, CT_DEV_CANCELLED);
  assert_false(bed_is_readable(fd));
  take_away(&flaky, b->dev);
  bed_close(b);
  close(flaky.irq);
  test_free(b);
}

/* Whenever it comes, a cancel changes one record at most, its own. */
static void cancels_at_random(void **state) {
  (void)state;
  enum { N = 60, ROUNDS = 8 };
  struct bed *b = test_malloc(sizeof *b);
  struct ask ask[N];
  unsigned gone = 0, answered = 0;
  bed_open(b, "sim:dram=32,stall=25");
  bed_serve(b, 0, &(struct ct_serving){.max_batch = 4});
  bed_serve(b, 2, &(struct ct_serving){.batching = CT_BATCHING_FIXED, .max_wait = 700});
  for (unsigned round = 0; round < ROUNDS; ++round) {
    bool asked[N] = {false};
    for (uint32_t i = 0; i < N; ++i) {
      ask[i] = (struct ask){.served = &b->served[i % 2 * 2], .sample = i % BED_SAMPLES, .place = i};
      bed_push(b, &ask[i], 0, CT_NO_CYCLE);
      if (!ct_rng_percent(&b->rng, 40)) continue;
      const uint32_t which = ct_rng_below(&b->rng, i + 1);
      if (ct_rng_percent(&b->rng, 50)) pass(b, ct_rng_below(&b->rng, 500));
      OK(ct_server_cancel(b->dev, ask[which].tag));
      asked[which] = true;
    }
    for (uint32_t i = 0; i < N; ++i) {
      struct ct_record r;
      OK(ct_server_reap(b->dev, &r, 5000));
      const struct ask *a = r.user;
      assert_true(a->busy && (r.error == CT_OK || asked[a - ask]));
      if (r.error == CT_OK) bed_check(b, &r);
      ask[a - ask].busy = false;
      gone += r.error != CT_OK;
      answered += r.error == CT_OK;
    }
  }
  assert_true(gone > 20 && answered > 100);
  bed_close(b);
  test_free(b);
}

/* ---- Neighbours ---- */

enum { ARRIVALS = 120 };

/* Requests to model 2 by a clock, and what is to happen beside them. */
struct run {
  const char *uri;
  uint32_t gap;
  bool training; /* hangs */
  bool both;     /* model 0 has as many requests */
  bool unload;   /* model 0 goes when half of model 2's are answered */

  uint64_t latency[ARRIVALS]; /* from the time asked for to the end of the batch */
  uint64_t longest;           /* batch of model 2 */
  uint64_t reads;             /* LDs of a batch, and the read of its program */
  unsigned unloaded, waited;  /* requests of model 0; of these, had arrived in the device */
  struct ask ask[ARRIVALS], beside[ARRIVALS];
};

static uint64_t reads_of_a_batch(struct bed *b, const struct ct_server *s) {
  uint8_t bytes[CT_CMD_BYTES];
  uint64_t reads = 1;
  for (uint32_t i = 0; i < s->program->count; ++i) {
    OK(ct_mem_read(b->dev, s->program->addr + i * (uint64_t)CT_CMD_BYTES, bytes, sizeof bytes));
    const struct ct_cmd cmd = ct_cmd_from_bytes(bytes);
    const uint32_t op = ct_cmd_get(&cmd, CT_F_ALL_OP), steps = ct_cmd_get(&cmd, CT_F_DMA_N2);
    assert_true(op != CT_OP_LOOP);
    if (op == CT_OP_LD) reads += steps ? steps : 1;
  }
  return reads;
}

/* Loads without end: the read port is never idle. */
static ct_program *greedy(struct bed *b) {
  struct ct_cmd cmd[4] = {{{0}}, {{0}}, {{0}}, {{0}}};
  uint8_t bytes[4 * CT_CMD_BYTES];
  ct_program *program = NULL;
  CT_PUT(&cmd[0], ALL_OP, CT_OP_LOOP);
  CT_PUT(&cmd[0], CTL_COUNT, UINT32_MAX);
  CT_PUT(&cmd[1], ALL_OP, CT_OP_LD);
  CT_PUT(&cmd[1], DMA_DRAM, (uint32_t)(b->served[1].rows / CT_UNIT));
  CT_PUT(&cmd[1], DMA_NB, 256);
  CT_PUT(&cmd[1], DMA_S0, 1);
  CT_PUT(&cmd[1], DMA_N1, 1);
  CT_PUT(&cmd[1], DMA_N2, 1);
  CT_PUT(&cmd[2], ALL_OP, CT_OP_ENDL);
  CT_PUT(&cmd[3], ALL_OP, CT_OP_END);
  for (int i = 0; i < 4; ++i)
    ct_cmd_to_bytes(&cmd[i], bytes + (size_t)i * CT_CMD_BYTES);
  OK(ct_program_load(b->dev, bytes, 4, &program));
  return program;
}

enum { HANGING = 4, LIMIT = 40000 };

static ct_program *training_hangs(struct bed *b, uint64_t start) {
  ct_program *program = greedy(b);
  for (uint64_t i = 0; i < HANGING; ++i) {
    const struct ct_job job = {.program = program, .watchdog = LIMIT};
    OK(ct_submit_at(b->dev, CT_TRAINING, &job, start + i * LIMIT, NULL));
  }
  return program;
}

static void training_has_failed(struct bed *b, ct_program *program) {
  uint64_t counter[32];
  for (unsigned i = 0; i < HANGING; ++i) {
    struct ct_result r;
    OK(ct_reap(b->dev, &r, 20000));
    assert_int_equal(r.error, CT_ERR_JOB);
    assert_int_equal(r.code, CT_DEV_WATCHDOG);
    assert_int_equal(r.queue, CT_TRAINING);
    assert_in_range(r.end - r.start, LIMIT, LIMIT + 2000);
    assert_non_null(strstr(ct_code_text(r.code), "longer than its limit"));
  }
  /* It has read in most of the cycles. */
  assert_in_range(ct_counters(b->dev, CT_TRAINING, counter, 32), CT_CNT_LD_BEATS + 1, 32);
  assert_true(counter[CT_CNT_LD_BEATS] > HANGING * LIMIT / 2);
  ct_program_free(program);
}

static void push_all(struct bed *b, struct run *run, uint64_t start) {
  for (uint32_t i = 0; i < ARRIVALS; ++i) {
    const uint64_t at = start + (uint64_t)i * run->gap;
    run->ask[i] = (struct ask){.served = &b->served[2], .sample = i % BED_SAMPLES, .place = i % 60};
    run->beside[i] =
        (struct ask){.served = &b->served[0], .sample = i % BED_SAMPLES, .place = 60 + i % 60};
    if (run->both) bed_push(b, &run->beside[i], 0, at);
    bed_push(b, &run->ask[i], 0, at);
  }
}

/* Model 0's requests may be unloaded, and only by an unload. */
static void take(struct bed *b, struct run *run, const struct ct_record *r) {
  const struct ask *a = r->user;
  if (a->served == &b->served[0] && r->error) {
    assert_int_equal(r->error, CT_ERR_CANCELLED);
    assert_int_equal(r->code, CT_DEV_UNLOADED);
    ++run->unloaded;
    run->waited += r->arrive != CT_NO_CYCLE;
    return;
  }
  bed_check(b, r);
  if (a->served == &b->served[0]) return;
  run->latency[a - run->ask] = r->end - r->scheduled;
  if (r->end - r->start > run->longest) run->longest = r->end - r->start;
}

/* Every request of model 2 is answered, to the bit. */
static void run(struct run *run) {
  struct bed *b = test_malloc(sizeof *b);
  ct_program *program = NULL;
  uint64_t start = 0;
  unsigned served = 0;
  bed_open(b, run->uri);
  bed_serve(b, 2, &(struct ct_serving){.stream = true});
  bed_serve(b, 0,
            &(struct ct_serving){.batching = CT_BATCHING_FIXED, .max_wait = 4000, .stream = true});
  run->reads = reads_of_a_batch(b, b->served[2].server);
  OK(ct_now(b->dev, &start));
  start += 5000;
  if (run->training) program = training_hangs(b, start);
  push_all(b, run, start);
  while (ct_server_outstanding(b->dev)) {
    struct ct_record r;
    OK(ct_server_reap(b->dev, &r, 20000));
    take(b, run, &r);
    served += ((struct ask *)r.user)->served == &b->served[2];
    if (served == ARRIVALS / 2 && run->unload) ct_server_free(b->served[0].server);
    if (served == ARRIVALS / 2) run->unload = false;
  }
  assert_int_equal(served, ARRIVALS);
  if (run->unloaded) b->served[0].server = NULL;
  if (run->training) training_has_failed(b, program);
  bed_close(b);
  test_free(b);
}

/* How much later a request was answered in the second run than in the first, at most. */
static uint64_t most_later(const struct run *first, const struct run *second) {
  uint64_t most = 0;
  for (unsigned i = 0; i < ARRIVALS; ++i)
    if (second->latency[i] > first->latency[i] + most)
      most = second->latency[i] - first->latency[i];
  return most;
}

static const char *const devices[] = {"sim:dram=32", "sim:dram=32,stall=25"};

/* A training job that reads without end until its watchdog ends it, and again: it gets its error;
 * requests are answered, none later than alone by more than the bound of docs/architecture.md. */
static void training_runs_into_its_watchdog(void **state) {
  (void)state;
  enum { TRAIN_CAP = 4, A_READ = 17 * TRAIN_CAP + 1 };
  struct run *alone = test_malloc(sizeof *alone), *beside = test_malloc(sizeof *beside);
  for (uint64_t stalls = 0; stalls < 2; ++stalls) {
    *alone = (struct run){.uri = devices[stalls], .gap = 1500};
    *beside = (struct run){.uri = devices[stalls], .gap = 1500, .training = true};
    run(alone);
    run(beside);
    /* A memory that stalls in a quarter of the cycles takes 4/3 of them for a beat. */
    const uint64_t bound = alone->reads * A_READ * (3 + stalls) / 3;
    const uint64_t most = most_later(alone, beside);
    print_message("%s: alone %llu cycles, beside up to %llu more, bound %llu\n", alone->uri,
                  (unsigned long long)alone->latency[0], (unsigned long long)most,
                  (unsigned long long)bound);
    assert_true(most <= bound);
  }
  test_free(alone);
  test_free(beside);
}

/* A model that is unloaded under load: what waits leaves, the rest is answered; requests of the
 * other model are all answered, none later than if it had stayed by more than a batch takes, which
 * is one that a request may only just have missed. */
static void a_model_goes_under_load(void **state) {
  (void)state;
  struct run *stays = test_malloc(sizeof *stays), *goes = test_malloc(sizeof *goes);
  for (unsigned stalls = 0; stalls < 2; ++stalls) {
    *stays = (struct run){.uri = devices[stalls], .gap = 400, .both = true};
    *goes = (struct run){.uri = devices[stalls], .gap = 400, .both = true, .unload = true};
    run(stays);
    run(goes);
    const uint64_t most = most_later(stays, goes);
    print_message(
        "%s: %u unloaded, %u waited in the device; others up to %llu cycles later, bound %llu\n",
        stays->uri, goes->unloaded, goes->waited, (unsigned long long)most,
        (unsigned long long)stays->longest);
    assert_int_equal(stays->unloaded, 0);
    assert_in_range(goes->unloaded, ARRIVALS / 4, ARRIVALS / 2 + 20);
    assert_true(goes->waited > 2 && goes->waited < goes->unloaded);
    assert_true(most <= stays->longest);
  }
  test_free(stays);
  test_free(goes);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(one_stays),
      cmocka_unit_test(tags_are_new),
      cmocka_unit_test(nothing_comes_twice),
      cmocka_unit_test(first_push_fails),
      cmocka_unit_test(weights_are_not_trusted),
      cmocka_unit_test(versions_stay_whole),
      cmocka_unit_test(the_version_before_stays),
      cmocka_unit_test(told_until_it_works),
      cmocka_unit_test(failed_pop_of_a_failed_batch),
      cmocka_unit_test(none_after_a_pop),
      cmocka_unit_test(stuck_batches_keep_theirs),
      cmocka_unit_test(cancel_hits_its_own),
      cmocka_unit_test(nobody_stays_frozen),
      cmocka_unit_test(nobody_reaps),
      cmocka_unit_test(cancelled_in_every_state),
      cmocka_unit_test(cancel_in_the_host_is_shown),
      cmocka_unit_test(cancels_at_random),
      cmocka_unit_test(training_runs_into_its_watchdog),
      cmocka_unit_test(a_model_goes_under_load),
  };
  ct_tb_seed();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
