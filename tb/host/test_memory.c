/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device memory: how much of it is used, what happens to that of jobs which cannot be ended, and
 * the programs that products leave in it.
 *
 * A job that cannot be ended: the emulator is frozen.
 */
#include "ct_tb.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "coltrain/coltrain.h"
#include "coltrain/network.h"
#include "ct_network.h"
#include "ct_prog.h"
#include "ct_queue.h"
#include "tiny_program.h"

#define OK(call) assert_int_equal(call, CT_OK)

enum { UNIT = 16, MIB = 1 << 20 };

/* A product whose rows pick rows of an operand that HBFP8 holds as it is. */
static void multiply_sizes(ct_device *dev, enum ct_queue queue, const uint32_t *size,
                           int expected) {
  const size_t m = size[0], n = size[1], k = size[2];
  float *x = calloc(m * k, sizeof *x), *y = calloc(k * n, sizeof *y), *z = calloc(m * n, sizeof *z);
  assert_true(x && y && z);
  for (size_t i = 0; i < m; ++i)
    x[i * k + i % k] = 1;
  for (size_t i = 0; i < k * n; ++i)
    y[i] = (float)(i % 101);
  const int err = ct_matmul(dev, queue, m, n, k, x, y, z, NULL);
  if (err != expected) fail_msg("%d instead of %d: %s", err, expected, ct_last_error(dev));
  for (size_t i = 0; i < m && !err; ++i)
    assert_memory_equal(y + i % k * n, z + i * n, n * sizeof *y);
  free(x);
  free(y);
  free(z);
}

static void multiply(ct_device *dev, enum ct_queue queue, uint32_t n, int expected) {
  multiply_sizes(dev, queue, (const uint32_t[]){n, n, n}, expected);
}

/* ---- How much there is --------------------------------------------------------------------- */

struct said {
  char text[512];
  int warnings;
};

static void hear(void *arg, int level, const char *text) {
  struct said *s = arg;
  if (level != CT_LOG_WARNING) return;
  snprintf(s->text, sizeof s->text, "%s", text);
  ++s->warnings;
}

static uint32_t limit_of(ct_device *dev, enum ct_queue queue, uint32_t reg) {
  uint32_t value = 0;
  OK(ct_reg_read(dev, ct_queue_reg(queue, reg), &value));
  return value;
}

static void check_size(unsigned mib) {
  char uri[64];
  ct_device *dev;
  struct said said = {.warnings = 0};
  struct ct_info info;
  uint64_t addr;
  const struct ct_options options = {.log = hear, .log_arg = &said, .log_level = CT_LOG_WARNING};
  const uint64_t used = mib < 65536 ? mib : 65535;
  snprintf(uri, sizeof uri, "faulty:size=%u", mib);
  if (ct_open_with(uri, &options, &dev)) fail_msg("%s", ct_last_error(NULL));
  OK(ct_info(dev, &info));
  assert_true(info.dram_bytes == used * MIB);
  assert_int_equal(said.warnings, mib > used);
  if (mib > used) assert_non_null(strstr(said.text, "65535"));
  for (unsigned q = 0; q < CT_QUEUES; ++q) {
    assert_true((uint64_t)limit_of(dev, (enum ct_queue)q, CT_CREG_RD_LIMIT) * UNIT == used * MIB);
    assert_true((uint64_t)limit_of(dev, (enum ct_queue)q, CT_CREG_WR_LIMIT) * UNIT == used * MIB);
    multiply(dev, (enum ct_queue)q, 20, CT_OK);
  }
  /* All of it can be had, and nothing beyond. */
  OK(ct_mem_alloc(dev, ct_heap_largest(&dev->data), &addr));
  assert_true(addr + 256 < used * MIB);
  assert_int_equal(ct_mem_alloc(dev, UNIT, &addr), CT_ERR_NO_SPACE);
  assert_int_equal(ct_mem_write(dev, used * MIB, &addr, 1), CT_ERR_ARG);
  assert_int_equal(ct_mem_write(dev, used * MIB - 4, &addr, 8), CT_ERR_ARG);
  ct_close(dev);
}

static void no_more_is_used_than_programs_reach(void **state) {
  (void)state;
  static const unsigned mib[] = {32,    4096,  65535,   65536,    65537,
                                 65552, 66000, 1048576, 16777216, UINT_MAX};
  char folder[PATH_MAX];
  const ssize_t n = readlink("/proc/self/exe", folder, sizeof folder - 1);
  assert_true(n > 0);
  folder[n] = 0;
  *strrchr(folder, '/') = 0;
  strncat(folder, "/plugins", sizeof folder - strlen(folder) - 1);
  setenv("COLTRAIN_PLUGIN_DIR", folder, 1);
  for (size_t i = 0; i < sizeof mib / sizeof *mib; ++i)
    check_size(mib[i]);
  unsetenv("COLTRAIN_PLUGIN_DIR");
}

/* ---- Jobs that cannot be ended -------------------------------------------------------------- */

/* How large the largest free piece of each heap is, when everything is free and at present. */
struct room {
  uint64_t data, code;
};

static struct room room_of(ct_device *dev) {
  return (struct room){ct_heap_largest(&dev->data), ct_heap_largest(&dev->code)};
}

static void freeze(ct_device *dev, bool frozen) {
  OK(ct_reg_write(dev, CT_REG_CTRL, frozen ? 2 : 0));
}

/* A piece of memory, and where it lies. */
struct piece {
  uint64_t at, size;
};

/* Takes all of the memory that can be had in pieces, and fails if one lies in p. Returns the number
 * of pieces; a is for as many. */
enum { PIECES = 4096, EACH = 8192 };
static size_t take_all(ct_device *dev, const struct piece *p, uint64_t *a) {
  size_t n = 0;
  while (n < PIECES && ct_mem_alloc(dev, EACH, &a[n]) == CT_OK) {
    if (a[n] < p->at + p->size && p->at < a[n] + EACH) fail_msg("0x%x is free", (unsigned)a[n]);
    ++n;
  }
  assert_in_range(n, 1, PIECES - 1);
  return n;
}

static void check_kept(ct_device *dev, struct piece p) {
  static uint64_t a[PIECES];
  for (size_t n = take_all(dev, &p, a); n > 0; --n)
    OK(ct_mem_free(dev, a[n - 1]));
}

static void check_same_room(ct_device *dev, struct room before) {
  const struct room now = room_of(dev);
  assert_true(now.data == before.data);
  assert_true(now.code == before.code);
}

/* Everything outstanding ends, by whatever error. */
static void reap_all(ct_device *dev) {
  struct ct_event e;
  while (ct_outstanding(dev, CT_INFERENCE) + ct_outstanding(dev, CT_TRAINING))
    OK(ct_reap(dev, &e, 5000));
}

static const uint32_t widths[] = {40, 50, 10};
enum { BATCH = 8, LAYERS = 2 };
static const float inputs[BATCH * 40] = {1, 2, 3};
static const uint32_t labels[BATCH] = {1, 2, 3};
static const struct ct_training training = {.batch = BATCH, .rates = {.lr = 0.1f}};

/* A model with a batch, a row and an answer. */
struct user {
  ct_model *model;
  ct_batch *batch;
  ct_rows *rows;
  ct_answers *answers;
};

static struct user user_open(ct_device *dev) {
  struct user u;
  OK(ct_model_create(dev, widths, LAYERS, 1, &u.model));
  OK(ct_model_training(u.model, &training));
  OK(ct_batch_create(u.model, &u.batch));
  OK(ct_batch_write(u.batch, inputs, labels));
  OK(ct_rows_create(u.model, 1, &u.rows));
  OK(ct_rows_write(u.rows, 0, 1, inputs));
  OK(ct_answers_create(u.model, 1, &u.answers));
  return u;
}

static void user_submit(struct user *u, enum ct_queue queue) {
  const struct ct_step step = {.batch = u->batch};
  const struct ct_request request = {.rows = u->rows, .answers = u->answers};
  if (queue == CT_TRAINING)
    OK(ct_model_step_submit(u->model, &step, NULL));
  else
    OK(ct_model_infer_submit(u->model, &request, NULL));
}

static void user_free(struct user *u) {
  ct_model_free(u->model);
  ct_batch_free(u->batch);
  ct_rows_free(u->rows);
  ct_answers_free(u->answers);
}

static void a_freed_model_keeps_its_memory(void **state) {
  (void)state;
  for (int queue = 0; queue < CT_QUEUES; ++queue) {
    ct_device *dev;
    OK(ct_open("emu:dram=16", &dev));
    const struct room before = room_of(dev);
    struct user u = user_open(dev);
    const struct piece image = {u.model->live->image, ct_image_bytes(&u.model->net)};
    const struct piece used = {
        queue == CT_TRAINING ? u.batch->frame.at.external[CT_MLP_X] : u.answers->at, UNIT};
    freeze(dev, true);
    user_submit(&u, (enum ct_queue)queue);
    user_free(&u);
    check_kept(dev, image);
    check_kept(dev, used);
    assert_true(room_of(dev).code < before.code);
    freeze(dev, false);
    reap_all(dev);
    check_same_room(dev, before);
    ct_close(dev);
  }
}

/* One of the two queues comes to rest: what the other uses stays. */
static void each_queue_for_itself(void **state) {
  (void)state;
  ct_device *dev;
  uint64_t tag[2];
  OK(ct_open("emu:dram=16", &dev));
  const struct room before = room_of(dev);
  ct_program *p[2] = {tiny_program(dev, false), tiny_program(dev, true)};
  freeze(dev, true);
  for (unsigned q = 0; q < 2; ++q) {
    const struct ct_job job = {.program = p[q]};
    OK(ct_submit(dev, (enum ct_queue)q, &job, &tag[q]));
    ct_program_free(p[q]);
  }
  const uint64_t both = room_of(dev).code;
  struct ct_until first = {{1, 0}};
  assert_int_equal(ct_heap_sweep(&dev->code, &first), 1);
  assert_true(room_of(dev).code >= both);
  assert_true(room_of(dev).code < before.code);
  freeze(dev, false);
  reap_all(dev);
  check_same_room(dev, before);
  ct_close(dev);
}

/* Nothing is done with a network whose run goes on. */
static void check_guarded(ct_device *dev, ct_graph *g, ct_network *net) {
  float x[8 * 4] = {0};
  ct_weights *w;
  const int input = ct_graph_find(g, "x"), logits = ct_graph_find(g, "logits");
  const int weight = ct_graph_find(g, "logits.weight");
  assert_true(input > 0 && logits > 0 && weight > 0);
  assert_int_equal(ct_network_write(net, input, x, 3 * 8), CT_ERR_BUSY);
  assert_int_equal(ct_network_write(net, weight, x, 8 * 4), CT_ERR_BUSY);
  assert_int_equal(ct_network_read(net, logits, x, 3 * 4), CT_ERR_BUSY);
  assert_int_equal(ct_network_read(net, weight, x, 8 * 4), CT_ERR_BUSY);
  assert_int_equal(ct_network_draw(net, 1), CT_ERR_BUSY);
  assert_int_equal(ct_network_save(net, "/nonexistent/x"), CT_ERR_BUSY);
  assert_int_equal(ct_network_publish_submit(net, net, NULL, &w, NULL), CT_ERR_BUSY);
  assert_non_null(strstr(ct_last_error(dev), "has not ended"));
}

/* What a network needs at least is known before its programs are made; then it is refused, by
 * numbers. With a little more than that it has room. */
static void check_least_room(ct_device *dev, ct_graph *g, const struct ct_network_options *how) {
  enum { SLACK = 4096 };
  struct ct_network_info info;
  ct_network *net;
  uint64_t held;
  OK(ct_network_create(dev, g, how, &net));
  OK(ct_network_info(net, &info));
  ct_network_free(net);
  const uint64_t each = info.weights_bytes + info.frame_bytes,
                 need = info.run_bytes + each * info.members, free = ct_heap_room(&dev->data);
  unsigned long long said = 0, left = 0;
  OK(ct_mem_alloc(dev, free - need + 256, &held));
  assert_int_equal(ct_network_create(dev, g, how, &net), CT_ERR_NO_SPACE);
  const char *text = ct_last_error(dev), *end = strrchr(text, ';');
  assert_int_equal(sscanf(text, "the network needs %llu bytes of device memory: ", &said), 1);
  assert_int_equal(end ? sscanf(end, "; %llu are free", &left) : 0, 1);
  assert_true(said <= need && said + 64 >= need);
  assert_int_equal(left, ct_heap_room(&dev->data));
  OK(ct_mem_free(dev, held));
  OK(ct_mem_alloc(dev, free - need - SLACK, &held));
  OK(ct_network_create(dev, g, how, &net));
  ct_network_free(net);
  OK(ct_mem_free(dev, held));
}

static void a_network_without_room(void **state) {
  (void)state;
  const struct ct_optimise sgd = {.schedule = {.rate = 0.1}};
  ct_device *dev;
  ct_graph *g;
  OK(ct_open("emu:dram=16", &dev));
  OK(ct_graph_create(&g));
  OK(ct_graph_mlp(g, (const uint32_t[]){40, 20, 10}, 2, 32, true));
  OK(ct_graph_optimise(g, ct_graph_find(g, "loss"), &sgd));
  OK(ct_graph_check(g));
  check_least_room(dev, g, NULL);
  check_least_room(dev, g, &(struct ct_network_options){.kernels = true});
  check_least_room(dev, g, &(struct ct_network_options){.members = 3});
  ct_graph_free(g);
  ct_close(dev);
}

/* A network whose run could not be ended, beside a job of the other queue that could not, either:
 * its memory waits for its own queue, and it does not run meanwhile. */
static void a_freed_network_keeps_its_memory(void **state) {
  (void)state;
  for (unsigned queue = 0; queue < 2; ++queue) {
    ct_device *dev;
    ct_graph *g;
    ct_network *net;
    uint64_t tag;
    OK(ct_open("emu:dram=16", &dev));
    const struct room before = room_of(dev);
    OK(ct_graph_create(&g));
    OK(ct_graph_mlp(g, (const uint32_t[]){8, 4}, 1, 3, false));
    OK(ct_graph_check(g));
    OK(ct_network_create(dev, g, NULL, &net));
    OK(ct_network_run(net, (enum ct_queue)queue, 0));
    ct_program *p = tiny_program(dev, false);
    const struct ct_job job = {.program = p};
    OK(ct_set_timeout(dev, 1));
    freeze(dev, true);
    OK(ct_submit(dev, (enum ct_queue) !queue, &job, &tag));
    assert_int_equal(ct_network_run(net, (enum ct_queue)queue, 0), CT_ERR_DEVICE);
    for (unsigned q = 0; q < 2; ++q)
      assert_int_equal(ct_network_run(net, (enum ct_queue)q, 0), CT_ERR_BUSY);
    check_guarded(dev, g, net);
    ct_network_free(net);
    ct_program_free(p);
    struct ct_until other = {{0, 0}};
    other.below[!queue] = ct_queue_submitted(dev, (enum ct_queue) !queue);
    other.below[queue] = dev->queues->ring[queue].completed;
    const uint64_t kept = room_of(dev).data;
    (void)ct_heap_sweep(&dev->data, &other);
    assert_true(kept < before.data);
    assert_int_equal(room_of(dev).data, kept);
    freeze(dev, false);
    reap_all(dev);
    check_same_room(dev, before);
    ct_graph_free(g);
    ct_close(dev);
  }
}

/* The buffers of calls that block and gave up. */
static void blocking_calls_keep_their_buffers(void **state) {
  (void)state;
  float y[10];
  ct_device *dev;
  OK(ct_open("emu:dram=16", &dev));
  struct user u = user_open(dev);
  OK(ct_model_infer(u.model, NULL, inputs, 1, y));
  multiply(dev, CT_TRAINING, 30, CT_OK);
  const struct room before = room_of(dev);
  OK(ct_set_timeout(dev, 1));
  for (int call = 0; call < 3; ++call) {
    freeze(dev, true);
    if (call == 0) multiply(dev, CT_TRAINING, 30, CT_ERR_DEVICE);
    if (call == 1) assert_int_equal(ct_model_step(u.model, inputs, labels, NULL), CT_ERR_DEVICE);
    if (call == 2) assert_int_equal(ct_model_infer(u.model, NULL, inputs, 1, y), CT_ERR_DEVICE);
    assert_true(room_of(dev).data < before.data);
    freeze(dev, false);
    reap_all(dev);
    check_same_room(dev, before);
  }
  /* One that gave up and could end its job. */
  multiply(dev, CT_INFERENCE, 30, CT_OK);
  check_same_room(dev, before);
  user_free(&u);
  ct_close(dev);
}

/* Closing with such memory, or with a handle of it, leaves nothing behind. */
static void closing_takes_it_all(void **state) {
  (void)state;
  for (int how = 0; how < 2; ++how) {
    ct_device *dev;
    OK(ct_open("emu:dram=16", &dev));
    struct user u = user_open(dev);
    multiply(dev, CT_TRAINING, 30, CT_OK);
    OK(ct_set_timeout(dev, 1));
    freeze(dev, true);
    user_submit(&u, CT_INFERENCE);
    multiply(dev, CT_TRAINING, 30, CT_ERR_DEVICE);
    if (how == 0) user_free(&u);
    const uint64_t from = ct_tb_ms();
    ct_close(dev);
    assert_true(ct_tb_ms() - from < 400);
    if (how == 1) user_free(&u);
  }
}

/* The last that is left of a closed device is a batch, whose steps keep activations in its memory:
 * the device goes with it, and nobody looks into it any more. */
static void a_batch_is_the_last(void **state) {
  (void)state;
  const uint32_t wide[] = {784, 512, 512, 10};
  const struct ct_training many = {.batch = 512, .rates = {.lr = 0.1f}};
  ct_device *dev;
  ct_model *model;
  ct_batch *batch;
  OK(ct_open("emu:dram=64", &dev));
  OK(ct_model_create(dev, wide, 3, 1, &model));
  OK(ct_model_training(model, &many));
  assert_true(model->plan->work != 0);
  OK(ct_batch_create(model, &batch));
  ct_model_free(model);
  ct_close(dev);
  ct_batch_free(batch);
}

/* ---- Programs of products ------------------------------------------------------------------- */

/* Counts what is written where programs lie. */
struct spy {
  struct ct_transport_ops ops;
  const struct ct_transport_ops *inner;
  void *self;
  uint64_t from, to, bytes;
};

static int spy_reg_read(void *self, uint32_t offset, uint32_t *value) {
  struct spy *s = self;
  return s->inner->reg_read(s->self, offset, value);
}

static int spy_reg_write(void *self, uint32_t offset, uint32_t value) {
  struct spy *s = self;
  return s->inner->reg_write(s->self, offset, value);
}

static int spy_mem_read(void *self, uint64_t addr, void *buf, size_t size) {
  struct spy *s = self;
  return s->inner->mem_read(s->self, addr, buf, size);
}

static int spy_mem_write(void *self, uint64_t addr, const void *buf, size_t size) {
  struct spy *s = self;
  if (addr >= s->from && addr < s->to) s->bytes += size;
  return s->inner->mem_write(s->self, addr, buf, size);
}

static int spy_wait(void *self, uint64_t until, int timeout_ms) {
  struct spy *s = self;
  return s->inner->wait(s->self, until, timeout_ms);
}

static int spy_now(void *self, uint64_t *cycle) {
  struct spy *s = self;
  return s->inner->now(s->self, cycle);
}

static void spy_begin(struct spy *s, ct_device *dev) {
  *s = (struct spy){.ops = {.abi = CT_TRANSPORT_ABI,
                            .scheme = "spy",
                            .reg_read = spy_reg_read,
                            .reg_write = spy_reg_write,
                            .mem_read = spy_mem_read,
                            .mem_write = spy_mem_write,
                            .wait = spy_wait,
                            .now = spy_now},
                    .inner = dev->plugin.ops,
                    .self = dev->self,
                    .from = (uint64_t)CT_QUEUES * CT_DESC_BYTES << dev->ring_log2,
                    .to = dev->data_start};
  dev->plugin.ops = &s->ops;
  dev->self = s;
}

static void spy_end(struct spy *s, ct_device *dev) {
  dev->plugin.ops = s->inner;
  dev->self = s->self;
}

/* Bytes of programs that a product writes. */
static uint64_t written_by(struct spy *s, ct_device *dev, uint32_t n) {
  s->bytes = 0;
  multiply(dev, n % 2 ? CT_INFERENCE : CT_TRAINING, n, CT_OK);
  return s->bytes;
}

static void products_keep_their_programs(void **state) {
  (void)state;
  ct_device *dev;
  struct spy spy;
  OK(ct_open("emu:dram=16", &dev));
  spy_begin(&spy, dev);
  for (uint32_t i = 0; i < CT_CACHE; ++i)
    assert_true(written_by(&spy, dev, 10 + 17 * i) > 0);
  for (uint32_t i = 0; i < CT_CACHE; ++i)
    assert_true(written_by(&spy, dev, 10 + 17 * i) == 0);
  /* One more: the one that was used longest ago goes, and no other. */
  assert_true(written_by(&spy, dev, 10) == 0);
  assert_true(written_by(&spy, dev, 200) > 0);
  for (uint32_t i = 0; i < CT_CACHE; ++i)
    if (i != 1) assert_true(written_by(&spy, dev, 10 + 17 * i) == 0);
  assert_true(written_by(&spy, dev, 10 + 17) > 0);
  /* A job that fails takes nothing along. */
  OK(ct_transport_emu.fault(spy.self, CT_FAULT_AXI_READ, dev->data_start));
  multiply(dev, CT_TRAINING, 10 + 17, CT_ERR_JOB);
  assert_true(written_by(&spy, dev, 10 + 17) == 0);
  spy_end(&spy, dev);
  ct_close(dev);
}

/* Loads programs until none fits any more. Returns how many; *all: commands of all of them. */
static size_t fill_with_programs(ct_device *dev, ct_program **p, size_t *all) {
  static const uint8_t commands[CT_PROG_MAX * CT_CMD_BYTES];
  size_t n = 0;
  for (size_t count = CT_PROG_MAX; count >= 1; count /= 2)
    while (n < PIECES && ct_program_load(dev, commands, count, &p[n]) == CT_OK)
      ++n;
  assert_non_null(strstr(ct_last_error(dev), "no room for another program"));
  *all = 0;
  for (size_t i = 0; i < n; ++i)
    *all += p[i]->count;
  return n;
}

/* Programs that are only kept are in nobody's way. */
static void kept_programs_give_way(void **state) {
  (void)state;
  static ct_program *p[PIECES];
  ct_device *dev;
  OK(ct_open("emu:dram=8", &dev));
  size_t fit, again, n = fill_with_programs(dev, p, &fit);
  multiply(dev, CT_TRAINING, 50, CT_ERR_NO_SPACE);
  while (n > 0)
    ct_program_free(p[--n]);
  const struct room before = room_of(dev);
  for (uint32_t i = 0; i < CT_CACHE; ++i)
    multiply(dev, CT_TRAINING, 10 + 17 * i, CT_OK);
  assert_true(room_of(dev).code < before.code);
  n = fill_with_programs(dev, p, &again);
  assert_int_equal(again, fit);
  while (n > 0)
    ct_program_free(p[--n]);
  check_same_room(dev, before);
  /* Nor can they be pushed out while a job of theirs has not ended. */
  OK(ct_set_timeout(dev, 1));
  for (uint32_t i = 0; i < CT_CACHE + 3; ++i) {
    freeze(dev, true);
    multiply(dev, CT_TRAINING, 10 + i, CT_ERR_DEVICE);
  }
  freeze(dev, false);
  reap_all(dev);
  OK(ct_set_timeout(dev, CT_FOREVER));
  for (uint32_t i = 0; i < CT_CACHE + 3; ++i)
    multiply(dev, CT_TRAINING, 10 + i, CT_OK);
  ct_close(dev);
}

/* A product of several jobs in a queue that has little room left. */
static void several_jobs_take_what_room_there_is(void **state) {
  (void)state;
  enum { LITTLE = 2 };
  static const uint32_t size[] = {427, 245, 213};
  ct_device *dev;
  struct ct_event e;
  uint64_t tag;
  OK(ct_open("emu:dram=8,spm=512", &dev));
  const struct ct_gemm shape = {
      .m = size[0], .n = size[1], .k = size[2], .pitch = 62, .spm_words = ct_window_words(dev)};
  struct ct_gemm_jobs jobs;
  OK(ct_prog_gemm_jobs(&shape, &jobs, NULL));
  assert_true(ct_gemm_jobs_count(&shape, &jobs) > LITTLE);
  ct_gemm_jobs_free(&jobs);
  ct_program *p = tiny_program(dev, false);
  const struct ct_job job = {.program = p};
  freeze(dev, true);
  while (ct_queue_room(dev, CT_TRAINING) > LITTLE)
    OK(ct_submit(dev, CT_TRAINING, &job, &tag));
  freeze(dev, false);
  multiply_sizes(dev, CT_TRAINING, size, CT_OK);
  while (ct_outstanding(dev, CT_TRAINING)) {
    OK(ct_reap(dev, &e, 1000));
    OK(e.error);
  }
  ct_program_free(p);
  ct_close(dev);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(no_more_is_used_than_programs_reach),
      cmocka_unit_test(a_freed_model_keeps_its_memory),
      cmocka_unit_test(each_queue_for_itself),
      cmocka_unit_test(a_network_without_room),
      cmocka_unit_test(a_freed_network_keeps_its_memory),
      cmocka_unit_test(blocking_calls_keep_their_buffers),
      cmocka_unit_test(closing_takes_it_all),
      cmocka_unit_test(a_batch_is_the_last),
      cmocka_unit_test(products_keep_their_programs),
      cmocka_unit_test(kept_programs_give_way),
      cmocka_unit_test(several_jobs_take_what_room_there_is),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
