/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Servers when the way to the device fails: requests that stay while thousands pass, register
 * accesses that fail with and without effect, reads of weights that fail, batches that do not end.
 * Nothing is lost, nothing comes twice, no other is hit.
 *
 * On sim:, where it matters with a memory that stalls, and on emu:.
 */
#include <string.h>
#include <unistd.h>

#include "ct_server.h"
#include "flaky.h"
#include "server_bed.h"

/* ---- Slots ---- */

/* One request of a model that waits, while more than all slots' number of another's come and go. */
static void one_stays(void **state) {
  (void)state;
  enum { ROUNDS = 66, MANY = 64 };
  struct ask ask[MANY], stays = {.sample = 1};
  struct bed *b = bed_open("sim:dram=32");
  bed_serve(b, 0, &(struct ct_serving){.batching = CT_BATCHING_FIXED, .max_wait = UINT32_MAX / 2});
  bed_serve(b, 2, NULL);
  stays.served = &b->served[0];
  bed_push(b, &stays, 0, CT_NO_CYCLE);
  for (uint32_t i = 0; i < MANY; ++i)
    ask[i] = (struct ask){.served = &b->served[2], .sample = i % BED_SAMPLES};
  for (unsigned round = 0; round < ROUNDS; ++round) {
    for (uint32_t i = 0; i < MANY - 1; ++i)
      bed_push(b, &ask[i], 0, CT_NO_CYCLE);
    for (uint32_t i = 0; i < MANY - 1; ++i) {
      const struct ct_event r = bed_reap(b, &ask[i]);
      bed_check(b, &r);
    }
  }
  assert_int_equal(ct_outstanding(b->dev, CT_INFERENCE), 1);
  OK(ct_cancel(b->dev, stays.tag));
  assert_int_equal(bed_reap(b, &stays).code, CT_DEV_CANCELLED);
  bed_close(b);
}

/* While one waits for ever, as many others can be under way as without it but one, again and again:
 * no number is kept from use by an older one. */
static void one_stays_among_all(void **state) {
  (void)state;
  enum { SLOTS = 4096, AGAIN = 300 };
  struct ask stays = {.sample = 1}, other = {.sample = 2};
  struct bed *b = bed_open("sim:dram=32");
  struct ct_event r;
  bed_serve(b, 0, &(struct ct_serving){.batching = CT_BATCHING_FIXED, .max_wait = UINT32_MAX / 2});
  bed_serve(b, 2, NULL);
  stays.served = &b->served[0];
  other.served = &b->served[2];
  bed_push(b, &stays, 0, CT_NO_CYCLE);
  struct ct_request request = bed_request(b, &other);
  for (unsigned i = 0; i < SLOTS - 1; ++i) {
    OK(ct_server_push(b->served[2].server, &request, NULL));
    request = bed_request(b, &other);
  }
  assert_int_equal(ct_server_push(b->served[2].server, &request, NULL), CT_ERR_FULL);
  for (unsigned i = 0; i < SLOTS - 1 + AGAIN; ++i) {
    OK(ct_reap(b->dev, &r, 20000));
    assert_true(r.user == &other && r.error == CT_OK);
    if (i >= AGAIN) continue;
    request = bed_request(b, &other);
    OK(ct_server_push(b->served[2].server, &request, NULL));
  }
  assert_int_equal(ct_outstanding(b->dev, CT_INFERENCE), 1);
  OK(ct_cancel(b->dev, stays.tag));
  assert_int_equal(bed_reap(b, &stays).code, CT_DEV_CANCELLED);
  bed_close(b);
}

/* Tags of requests long ago name nothing, although their slots are used again. */
static void tags_are_new(void **state) {
  (void)state;
  enum { SLOTS = 4096, OLD = 3 };
  struct ask ask = {.sample = 2};
  struct ct_event r;
  uint64_t old[OLD];
  struct bed *b = bed_open("emu:dram=32");
  bed_serve(b, 1, NULL);
  ask.served = &b->served[1];
  for (unsigned i = 0; i < OLD; ++i) {
    bed_push(b, &ask, 0, CT_NO_CYCLE);
    r = bed_reap(b, &ask);
    bed_check(b, &r);
    old[i] = ask.tag;
  }
  struct ct_request request = {.row = 0};
  for (int round = 0; round < 2; ++round) {
    for (unsigned i = 0; i < SLOTS; ++i) {
      request = bed_request(b, &ask);
      OK(ct_server_push(b->served[1].server, &request, NULL));
    }
    request = bed_request(b, &ask);
    assert_int_equal(ct_server_push(b->served[1].server, &request, NULL), CT_ERR_FULL);
    for (unsigned i = 0; i < OLD; ++i)
      assert_int_equal(ct_cancel(b->dev, old[i]), CT_ERR_NOT_FOUND);
    for (unsigned i = 0; i < SLOTS; ++i) {
      OK(ct_reap(b->dev, &r, 5000));
      assert_int_equal(r.error, CT_OK);
    }
  }
  bed_close(b);
}

/* ---- Accesses that fail ---- */

/* Takes a record although reaping may fail on the way. */
static struct ct_event reap_stubbornly(struct bed *b) {
  struct ct_event r;
  for (int i = 0; i < 1000; ++i) {
    const int err = ct_reap(b->dev, &r, 5000);
    if (err == CT_OK) return r;
    assert_int_equal(err, CT_ERR_DEVICE);
  }
  fail_msg("reaping has failed a thousand times");
  return r;
}

/* Each request has one record and one answer, whichever access failed, however. */
static void accesses_fail(const char *uri, unsigned rounds) {
  enum { MOST = 100 };
  struct ask ask[MOST];
  struct flaky flaky;
  struct bed *b = bed_open(uri);
  bed_serve(b, 0, &(struct ct_serving){.stream = true});
  bed_serve(b, 2, &(struct ct_serving){.stream = true});
  flaky_begin(&flaky, b->dev);
  for (unsigned round = 0; round < rounds; ++round) {
    const uint32_t n = 1 + ct_rng_below(&b->rng, MOST);
    flaky.percent = round % 4 ? 3 : 30;
    for (uint32_t i = 0; i < n; ++i) {
      ask[i] = (struct ask){.served = &b->served[i % 2 * 2], .sample = i % BED_SAMPLES};
      bed_push(b, &ask[i], 0, CT_NO_CYCLE);
    }
    for (uint32_t i = 0; i < n; ++i) {
      const struct ct_event r = reap_stubbornly(b);
      bed_check(b, &r);
    }
    assert_int_equal(ct_outstanding(b->dev, CT_INFERENCE), 0);
  }
  assert_true(flaky.failed[0] > 10 && flaky.failed[1] > 10);
  flaky_end(&flaky, b->dev);
  bed_close(b);
}

static void nothing_comes_twice(void **state) {
  (void)state;
  accesses_fail("emu:dram=32", 200);
  accesses_fail("sim:dram=32,stall=10", 12);
}

/* The first push of all, when the device has accepted none whose ticket could tell. */
static void first_push_fails(void **state) {
  (void)state;
  for (uint32_t how = 0; how < 8; ++how) {
    struct flaky flaky;
    struct ask ask[2] = {{.sample = 1}, {.sample = 2}};
    struct bed *b = bed_open(how % 2 ? "emu:dram=32" : "sim:dram=32");
    bed_serve(b, 1, &(struct ct_serving){.stream = true});
    flaky_begin(&flaky, b->dev);
    flaky.rng = ct_rng_make(how / 2);
    flaky.percent = 70;
    flaky.only = CT_REG_REQ_PUSH;
    for (int i = 0; i < 2; ++i) {
      ask[i].served = &b->served[1];
      bed_push(b, &ask[i], 0, CT_NO_CYCLE);
    }
    for (int i = 0; i < 2; ++i) {
      const struct ct_event r = reap_stubbornly(b);
      assert_ptr_equal(r.user, &ask[i]);
      bed_check(b, &r);
    }
    flaky_end(&flaky, b->dev);
    bed_close(b);
  }
}

/* A job of the ring is not begun when batches could not be told to load their weights again; nor
 * when it is tried once more. */
static void weights_are_not_trusted(void **state) {
  (void)state;
  struct flaky flaky;
  struct ask ask = {.sample = 3};
  float logits[BED_OUT_MOST];
  struct bed *b = bed_open("emu:dram=32,spm=2048");
  bed_serve(b, 0, NULL);
  ask.served = &b->served[0];
  assert_non_null(ask.served->server->resident);
  for (int i = 0; i < 3; ++i) {
    bed_push(b, &ask, 0, CT_NO_CYCLE);
    const struct ct_event r = bed_reap(b, &ask);
    bed_check(b, &r);
  }
  assert_true(ask.served->server->kept);
  flaky_begin(&flaky, b->dev);
  flaky.only = CT_REG_MODEL_COMMIT;
  for (int i = 0; i < 6; ++i) {
    const struct served *s = &b->served[1];
    flaky.percent = i < 5 ? 100 : 0;
    assert_int_equal(ct_model_infer(s->model, s->weights, s->x[1], 1, logits),
                     i < 5 ? CT_ERR_DEVICE : CT_OK);
  }
  assert_false(ask.served->server->kept);
  flaky_end(&flaky, b->dev);
  bed_push(b, &ask, 0, CT_NO_CYCLE);
  const struct ct_event r = bed_reap(b, &ask);
  bed_check(b, &r);
  bed_close(b);
}

/* Other weights, and what number `version` will answer by them. */
static void other_weights(struct bed *b, struct served *s, uint32_t version) {
  bed_draw_weights(b, s);
  for (size_t i = 0; i < BED_SAMPLES; ++i)
    OK(ct_model_infer(s->model, NULL, s->x[i], 1, s->want[version][i]));
}

/* So many requests to model 0, not reaped. */
static void push_some(struct bed *b, struct ask *ask, uint32_t n) {
  for (uint32_t i = 0; i < n; ++i) {
    ask[i] = (struct ask){.served = &b->served[0], .sample = i % BED_SAMPLES};
    bed_push(b, &ask[i], 0, CT_NO_CYCLE);
  }
}

/* Reaps them; how many were answered by each version. */
static void reap_by_version(struct bed *b, uint32_t n, unsigned *by) {
  memset(by, 0, BED_VERSIONS * sizeof *by);
  for (uint32_t i = 0; i < n; ++i) {
    const struct ct_event r = reap_stubbornly(b);
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
  flaky_fail_writes(flaky, CT_REG_MODEL_COMMIT, 1, effect);
  assert_int_equal(bed_publish(b, s), CT_ERR_DEVICE);
  push_some(b, ask, N);
  s->version = 2; /* may come */
  bed_draw_weights(b, s);
  OK(bed_publish(b, s));
  assert_int_equal(s->version, 3);
  for (size_t i = 0; i < BED_SAMPLES; ++i)
    OK(ct_model_infer(s->model, NULL, s->x[i], 1, s->want[3][i]));
  reap_by_version(b, N, by);
  /* The emulator makes batches when it is looked at, and has been told again by then. */
  assert_int_equal(by[2] > 0, effect == WITH && !b->emu);
  push_some(b, ask, N);
  reap_by_version(b, N, by);
  assert_int_equal(by[3], N);
}

static void versions_stay_whole(void **state) {
  (void)state;
  for (unsigned how = 0; how < 8; ++how) {
    struct flaky flaky;
    struct bed *b = bed_open(how & 1 ? "emu:dram=32" : "sim:dram=32,stall=25");
    bed_serve(b, 0, &(struct ct_serving){.max_batch = 1, .stream = how & 2});
    flaky_begin(&flaky, b->dev);
    a_commit_fails(b, &flaky, how & 4 ? WITH : WITHOUT);
    flaky_end(&flaky, b->dev);
    bed_close(b);
  }
}

/* After a change of versions that failed the version before stays, whatever the library tells the
 * device afterwards: here because a job of the ring comes. */
static void the_version_before_stays(void **state) {
  (void)state;
  enum { N = 5 };
  for (enum effect effect = WITHOUT; effect <= WITH; ++effect) {
    struct flaky flaky;
    struct ask ask[N];
    struct ct_server_info info;
    unsigned by[BED_VERSIONS];
    float logits[BED_OUT_MOST];
    struct bed *b = bed_open("emu:dram=32");
    struct served *s = &b->served[0];
    bed_serve(b, 0, NULL);
    push_some(b, ask, N);
    reap_by_version(b, N, by);
    assert_true(s->server->kept);
    other_weights(b, s, 2);
    flaky_begin(&flaky, b->dev);
    flaky_fail_writes(&flaky, CT_REG_MODEL_COMMIT, 1, effect);
    assert_int_equal(bed_publish(b, s), CT_ERR_DEVICE);
    OK(ct_model_infer(s->model, s->weights, s->x[0], 1, logits));
    ct_assert_same("alone", logits, s->want[1][0], s->out * sizeof *logits);
    OK(ct_server_info(s->server, &info));
    assert_int_equal(info.version, 1);
    push_some(b, ask, N);
    reap_by_version(b, N, by);
    assert_int_equal(by[1], N);
    flaky_end(&flaky, b->dev);
    bed_close(b);
  }
}

/* Model 0 with weights that stay, and a request whose rows cannot be read: taking its record fails,
 * because so many writes of that register do. To be closed. */
static struct bed *failing_batch(struct flaky *f, struct ask *ask, uint32_t only, unsigned most,
                                 enum effect effect) {
  unsigned by[BED_VERSIONS];
  struct ct_event r;
  struct bed *b = bed_open("emu:dram=32");
  bed_serve(b, 0, NULL);
  push_some(b, ask, 1);
  reap_by_version(b, 1, by);
  assert_true(b->served[0].server->kept);
  OK(b->dev->plugin.ops->fault(b->dev->self, CT_FAULT_AXI_READ, bed_row_at(&b->served[0], 0)));
  flaky_begin(f, b->dev);
  push_some(b, ask, 1);
  flaky_fail_writes(f, only, most, effect);
  assert_int_equal(ct_reap(b->dev, &r, 5000), CT_ERR_DEVICE);
  return b;
}

/* Batches load weights again after one that failed, although the device could not be told so at
 * once. */
static void told_until_it_works(void **state) {
  (void)state;
  enum { TRIES = 3 };
  struct flaky flaky;
  struct ask ask;
  unsigned by[BED_VERSIONS];
  struct bed *b = failing_batch(&flaky, &ask, CT_REG_MODEL_COMMIT, TRIES, WITHOUT);
  assert_int_equal(ct_poll(b->dev), CT_ERR_DEVICE);
  assert_int_equal(ct_poll(b->dev), CT_ERR_DEVICE);
  OK(ct_poll(b->dev));
  assert_false(b->served[0].server->kept);
  assert_int_equal(bed_reap(b, &ask).code, CT_DEV_AXI_READ);
  push_some(b, &ask, 1);
  reap_by_version(b, 1, by);
  assert_true(b->served[0].server->kept);
  flaky_end(&flaky, b->dev);
  bed_close(b);
}

/* The one record of a batch that failed is heeded although its pop failed. */
static void failed_pop_of_a_failed_batch(void **state) {
  (void)state;
  for (enum effect effect = WITHOUT; effect <= WITH; ++effect) {
    struct flaky flaky;
    struct ask ask;
    struct bed *b = failing_batch(&flaky, &ask, CT_REG_REC_STATE, 1, effect);
    assert_int_equal(bed_reap(b, &ask).code, CT_DEV_AXI_READ);
    OK(ct_poll(b->dev));
    assert_false(b->served[0].server->kept);
    flaky_end(&flaky, b->dev);
    bed_close(b);
  }
}

/* A device that cannot schedule: requests arrive when their time has come, or a little later,
 * whatever else is done meanwhile; and the host waits for it. */
static void arrivals_without_a_schedule(void **state) {
  (void)state;
  enum { N = 6, GAP = 20000, LATE = 3000, TAKES = 6000 };
  struct bed *b = bed_open("sim:dram=32,stall=10");
  struct ask ask[N];
  struct flaky flaky;
  uint64_t now = 0;
  bed_serve(b, 0, NULL);
  flaky_begin(&flaky, b->dev);
  assert_null(b->dev->plugin.ops->reg_write_at);
  OK(ct_now(b->dev, &now));
  for (uint32_t i = 0; i < N; ++i) {
    ask[i] = (struct ask){.served = &b->served[0], .sample = i};
    bed_push(b, &ask[i], i % 2 ? 15000 : 0, now + (i + 1) * (uint64_t)GAP);
  }
  assert_int_equal(ct_requests_of(b->dev)->list[CT_REQUEST_HOST].count, N);
  for (uint32_t i = 0; i < N; ++i) {
    const struct ct_event r = bed_reap(b, &ask[i]);
    bed_check(b, &r);
    assert_int_equal(r.scheduled, now + (i + 1) * (uint64_t)GAP);
    assert_in_range(r.start, r.scheduled, r.scheduled + LATE);
    assert_in_range(r.end, r.start, r.start + TAKES);
    assert_int_equal(r.met, CT_MET_YES);
  }
  flaky_end(&flaky, b->dev);
  bed_close(b);
}

/* A device that says after every pop that there is no record: all come, in order, also to a host
 * that does not wait. */
static void none_after_a_pop(void **state) {
  (void)state;
  enum { N = 90 };
  for (int emu = 0; emu < 2; ++emu) {
    struct ask ask[N];
    struct flaky flaky;
    struct bed *b = bed_open(emu ? "emu:dram=32" : "sim:dram=32");
    bed_serve(b, 2, NULL);
    flaky_begin(&flaky, b->dev);
    flaky.shy = true;
    for (uint32_t i = 0; i < N; ++i) {
      ask[i] = (struct ask){.served = &b->served[2], .sample = i % BED_SAMPLES};
      bed_push(b, &ask[i], 0, CT_NO_CYCLE);
    }
    for (uint32_t i = 0; i < N; ++i) {
      struct ct_event r;
      int err = CT_ERR_TIMEOUT;
      for (int look = 0; look < 50 && err == CT_ERR_TIMEOUT; ++look)
        err = ct_reap(b->dev, &r, i % 2 ? CT_NO_WAIT : 5000);
      OK(err);
      assert_ptr_equal(r.user, &ask[i]);
      bed_check(b, &r);
    }
    flaky_end(&flaky, b->dev);
    bed_close(b);
  }
}

/* ---- Reads of weights that fail ---- */

/* A request of model 1, alone in its batch. */
static void push_one(struct bed *b, struct ask *ask, uint32_t number) {
  *ask = (struct ask){.served = &b->served[1], .sample = number % BED_SAMPLES};
  bed_push(b, ask, 0, CT_NO_CYCLE);
}

static void fail_a_read(struct bed *b, uint64_t unit) {
  OK(b->dev->plugin.ops->fault(b->dev->self, CT_FAULT_AXI_READ, unit * CT_UNIT));
}

/* Of batches that follow each other the first loads the weights; the second, formed before that was
 * known, loads them again, and the read of a unit of the last layer's fails; the third was formed
 * to find them in the scratchpad, before the failure was known. It does: a beat that comes with an
 * error is not written, and the other words are what they were. */
static void a_second_load_fails(struct bed *b, uint64_t unit) {
  enum { FIRST, AGAIN, KEPT, LATER, LAST, BATCHES };
  const struct ct_server *s = b->served[1].server;
  const uint64_t image = s->weights->image / CT_UNIT;
  const uint64_t tile = image + (uint64_t)ct_mlp_tile(&s->model->net, 2) * CT_RECORD_UNITS;
  struct ask ask[BATCHES];
  struct ct_event r;
  push_one(b, &ask[FIRST], FIRST);
  push_one(b, &ask[AGAIN], AGAIN);
  r = bed_reap(b, &ask[FIRST]);
  bed_check(b, &r);
  assert_true(s->kept);
  fail_a_read(b, tile + unit);
  fail_a_read(b, image); /* the second is past it: for batches that load again */
  push_one(b, &ask[KEPT], KEPT);
  r = bed_reap(b, &ask[AGAIN]);
  assert_int_equal(r.code, CT_DEV_AXI_READ);
  assert_in_range(r.address, tile, tile + unit);
  assert_false(s->kept);
  r = bed_reap(b, &ask[KEPT]);
  bed_check(b, &r);
  push_one(b, &ask[LATER], LATER);
  r = bed_reap(b, &ask[LATER]);
  assert_int_equal(r.code, CT_DEV_AXI_READ);
  assert_int_equal(r.address, image);
  push_one(b, &ask[LAST], LAST);
  r = bed_reap(b, &ask[LAST]);
  bed_check(b, &r);
}

static void weights_survive_a_failed_read(void **state) {
  (void)state;
  for (uint64_t unit = 0; unit < CT_RECORD_UNITS; unit += 4) {
    struct bed *b = bed_open(unit % 8 ? "sim:dram=32,stall=10" : "sim:dram=32");
    bed_serve(b, 1, &(struct ct_serving){.max_batch = 1});
    a_second_load_fails(b, unit);
    bed_close(b);
  }
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
  const struct ct_transport_ops *ops = b->dev->plugin.ops;
  if (on)
    OK(ops->fault(b->dev->self, CT_FAULT_AXI_HANG, bed_row_at(&b->served[0], 0)));
  else
    OK(ops->fault(b->dev->self, CT_FAULT_NONE, 0));
}

/* A batch of model 0 whose input never comes; a cancel waits for it, and not only so long. */
static void begin_stuck(struct bed *b, struct ask *ask) {
  struct ct_event r;
  *ask = (struct ask){.served = &b->served[0]};
  OK(ct_reg_write(b->dev, CT_REG_DRAIN_LIMIT, UINT32_MAX));
  hang(b, true);
  bed_push(b, ask, 0, CT_NO_CYCLE);
  assert_int_equal(ct_reap(b->dev, &r, 20), CT_ERR_TIMEOUT);
}

enum left_how { SERVER_GOES, BOTH_GO, MODEL_GOES, DEVICE_GOES, LEFT_HOWS };

static bool model_goes(enum left_how how) {
  return how == BOTH_GO || how == MODEL_GOES;
}

/* With the model go the handles of what the batch reads and writes. */
static void free_stuck(struct bed *b, enum left_how how) {
  struct served *s = &b->served[0];
  if (how != MODEL_GOES) ct_server_free(s->server);
  if (!model_goes(how)) return;
  ct_model_free(s->model);
  bed_free_handles(s);
}

/* A version can be made while another one is kept. */
static void publish_beside(struct bed *b, struct served *s) {
  ct_weights *weights;
  OK(ct_model_publish(s->model, &weights));
  ct_weights_free(weights);
}

/* Device memory that size bytes take. */
static uint64_t taken(uint64_t size) {
  return (size + 255) / 256 * 256;
}

/* While it is stuck: nobody gets its number, memory or words of the scratchpad. */
static void others_keep_off(struct bed *b, const struct ct_server *before) {
  struct ask ask = {.served = &b->served[2], .sample = 3};
  bed_serve(b, 2, NULL);
  const struct ct_server *s = b->served[2].server;
  assert_true(s->number != before->number);
  assert_true(s->pin_words > 0 && s->pin_at + s->pin_words <= before->pin_at);
  bed_push(b, &ask, 0, CT_NO_CYCLE);
  hang(b, false);
  struct ct_event r;
  OK(ct_reap(b->dev, &r, 5000));
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
    assert_null(ct_requests_of(b->dev)->server[i]);
  if (how == MODEL_GOES) ct_server_free(s->server);
  s->server = NULL;
  if (how != SERVER_GOES) return;
  struct ask ask = {.served = s, .sample = 5};
  bed_next_version(b, s);
  bed_serve(b, 0, NULL);
  assert_true(s->server->number == before->number && s->server->pin_at == before->pin_at);
  bed_push(b, &ask, 0, CT_NO_CYCLE);
  const struct ct_event r = bed_reap(b, &ask);
  bed_check(b, &r);
}

static void stuck_batches_keep_theirs(void **state) {
  (void)state;
  for (enum left_how how = 0; how < LEFT_HOWS; ++how) {
    struct ask ask;
    struct bed *b = bed_open("sim:dram=32,stall=10");
    struct served *s = &b->served[0];
    const uint64_t data = used(&b->dev->data), code = used(&b->dev->code);
    const uint64_t image = taken(ct_image_bytes(&s->model->net)),
                   asked = taken(s->rows->count * s->rows->pitch) +
                           taken(s->answers->count * s->answers->size);
    bed_serve(b, 0, NULL);
    const struct ct_server before = *s->server;
    begin_stuck(b, &ask);
    free_stuck(b, how);
    if (how == DEVICE_GOES) {
      ct_close(b->dev);
      for (int i = 0; i < BED_MODELS; ++i) {
        ct_model_free(b->served[i].model);
        bed_free_handles(&b->served[i]);
      }
      test_free(b);
      continue;
    }
    if (how == SERVER_GOES) publish_beside(b, s);
    const uint64_t kept = used(&b->dev->code);
    const uint64_t gone = model_goes(how) ? image : 0; /* the live weights, which no batch reads */
    assert_int_equal(used(&b->dev->data), data - gone);
    others_keep_off(b, &before);
    assert_int_equal(used(&b->dev->data), model_goes(how) ? data - 2 * image - asked : data);
    if (how == SERVER_GOES)
      assert_true(used(&b->dev->code) >= code && used(&b->dev->code) < kept);
    else
      assert_true(used(&b->dev->code) < kept);
    all_is_given_back(b, how, &before);
    if (how != SERVER_GOES) s->model = NULL;
    bed_close(b);
  }
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
  struct ask stuck, other = {.sample = 7};
  struct flaky flaky;
  struct bed *b = bed_open("sim:dram=32");
  bed_serve(b, 0, NULL);
  bed_serve(b, 2, &(struct ct_serving){.batching = CT_BATCHING_FIXED, .max_wait = UINT32_MAX / 2});
  assert_int_equal(b->served[2].server->number, 1);
  other.served = &b->served[2];
  bed_push(b, &other, 0, CT_NO_CYCLE);
  begin_stuck(b, &stuck);
  flaky_begin(&flaky, b->dev);
  flaky.at_state = other_begins;
  ct_server_free(b->served[0].server);
  b->served[0].server = NULL;
  flaky.at_state = NULL;
  flaky_end(&flaky, b->dev);
  for (int i = 0; i < 2; ++i) {
    struct ct_event r;
    OK(ct_reap(b->dev, &r, 5000));
    if (r.user == &other) bed_check(b, &r);
    if (r.user == &stuck) assert_int_equal(r.error, CT_ERR_CANCELLED);
  }
  bed_close(b);
}

/* Nobody stays frozen because a write of CTRL failed while a batch was cancelled: writes `from` and
 * after, so many. The look that cannot undo it says so, and ct_poll_fd() asks for another one. */
static void thaws(unsigned from, unsigned most, enum effect effect, unsigned failed_looks) {
  struct ask stuck, other = {.sample = 7};
  struct flaky flaky;
  struct ct_event r;
  struct bed *b = bed_open("sim:dram=32");
  bed_serve(b, 0, NULL);
  bed_serve(b, 2, NULL);
  begin_stuck(b, &stuck);
  flaky_begin(&flaky, b->dev);
  flaky_have_irq(&flaky);
  const int fd = ct_poll_fd(b->dev);
  flaky_fail_writes(&flaky, CT_REG_CTRL, most, effect);
  flaky.from = from;
  ct_server_free(b->served[0].server);
  b->served[0].server = NULL;
  OK(flaky.inner->fault(flaky.self, CT_FAULT_NONE, 0));
  other.served = &b->served[2];
  bed_push(b, &other, 0, CT_NO_CYCLE);
  for (; failed_looks; --failed_looks) {
    assert_true(bed_is_readable(fd));
    assert_int_equal(ct_reap(b->dev, &r, 5000), CT_ERR_DEVICE);
  }
  bool answered = false;
  for (int i = 0; i < 2; ++i) {
    OK(ct_reap(b->dev, &r, 5000));
    assert_true(r.user == &stuck || r.user == &other);
    if (r.user == &other) bed_check(b, &r);
    answered |= r.user == &other;
  }
  assert_true(answered && flaky.percent == 0);
  flaky_end(&flaky, b->dev);
  bed_close(b);
  close(flaky.irq);
}

static void nobody_stays_frozen(void **state) {
  (void)state;
  thaws(0, 1, WITH, 0);    /* the write that freezes */
  thaws(1, 1, WITH, 0);    /* the one that is to undo it */
  thaws(1, 3, WITHOUT, 2); /* and the next ones */
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(one_stays),
      cmocka_unit_test(one_stays_among_all),
      cmocka_unit_test(tags_are_new),
      cmocka_unit_test(nothing_comes_twice),
      cmocka_unit_test(first_push_fails),
      cmocka_unit_test(weights_are_not_trusted),
      cmocka_unit_test(versions_stay_whole),
      cmocka_unit_test(the_version_before_stays),
      cmocka_unit_test(told_until_it_works),
      cmocka_unit_test(failed_pop_of_a_failed_batch),
      cmocka_unit_test(arrivals_without_a_schedule),
      cmocka_unit_test(none_after_a_pop),
      cmocka_unit_test(weights_survive_a_failed_read),
      cmocka_unit_test(stuck_batches_keep_theirs),
      cmocka_unit_test(cancel_hits_its_own),
      cmocka_unit_test(nobody_stays_frozen),
  };
  ct_tb_seed();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
