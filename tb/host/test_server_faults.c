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

/* A transport in front of another one: accesses of requests fail, some after they have taken
 * effect; and after a pop the device may say once that there is no record. */
struct flaky {
  struct ct_transport_ops ops;
  const struct ct_transport_ops *inner;
  void *self;
  ct_rng rng;
  uint32_t percent, only; /* a register; 0: all of requests */
  bool shy, popped;
  void (*at_state)(struct flaky *f); /* NULL, or what happens while BATCH_STATE is on its way */
  unsigned failed[2];                /* without, with effect */
};

static bool fails(struct flaky *f, uint32_t offset) {
  return offset >= CT_REG_REQ_INPUT && offset <= CT_REG_REC_ROWS &&
         (!f->only || offset == f->only) && ct_rng_percent(&f->rng, f->percent);
}

static int flaky_read(void *self, uint32_t offset, uint32_t *value) {
  struct flaky *f = self;
  if (fails(f, offset)) return CT_ERR_DEVICE;
  const int err = f->inner->reg_read(f->self, offset, value);
  if (offset == CT_REG_REC_STATE && f->shy && f->popped) *value = 0;
  if (offset == CT_REG_REC_STATE) f->popped = false;
  if (offset == CT_REG_BATCH_STATE && f->at_state) f->at_state(f);
  return err;
}

static int flaky_write(void *self, uint32_t offset, uint32_t value) {
  struct flaky *f = self;
  const bool fail = fails(f, offset), effect = !fail || ct_rng_below(&f->rng, 2);
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
    if (how == SERVER_GOES) assert_int_equal(ct_model_serve(s->model, NULL), CT_ERR_TIMEOUT);
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

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(one_stays),           cmocka_unit_test(tags_are_new),
      cmocka_unit_test(nothing_comes_twice), cmocka_unit_test(first_push_fails),
      cmocka_unit_test(none_after_a_pop),    cmocka_unit_test(stuck_batches_keep_theirs),
      cmocka_unit_test(cancel_hits_its_own),
  };
  ct_tb_seed();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
