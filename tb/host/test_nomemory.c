/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A host without memory: each allocation of the library fails in turn, once (and the next succeeds)
 * or from there on. A call then says CT_ERR_MEMORY with a sentence, or has done its work; what was
 * submitted has its event, however little memory there is by then; nothing is left behind, and when
 * there is memory again everything goes on.
 *
 * The linker sends the library's allocations here (--wrap).
 */
#include "ct_tb.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "coltrain/coltrain.h"
#include "coltrain/array.h"
#include "coltrain/graph.h"
#include "coltrain/network.h"
#include "ct_network.h"
#include "ct_prog.h"
#include "ct_queue.h"
#include "one_copy.h"

/* ---- Allocations --------------------------------------------------------------------------- */

/* NOLINTBEGIN(bugprone-reserved-identifier): the linker's names */
void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void *__real_aligned_alloc(size_t align, size_t size);
char *__real_strdup(const char *text);
void __real_free(void *p);
void *__real_mmap(void *at, size_t size, int prot, int flags, int fd, off_t offset);
int __real_munmap(void *at, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
void *__wrap_aligned_alloc(size_t align, size_t size);
char *__wrap_strdup(const char *text);
void __wrap_free(void *p);
void *__wrap_mmap(void *at, size_t size, int prot, int flags, int fd, off_t offset);
int __wrap_munmap(void *at, size_t size);

static struct {
  bool armed, for_good; /* from the one that fails on */
  long before;          /* allocations until then */
  bool failed;
  long live; /* allocated and not freed */
} host;

static bool refuses(void) {
  if (!host.armed || host.before-- > 0) return false;
  host.failed = true;
  host.before = 0;
  host.armed = host.for_good;
  return true;
}

static void *counted(void *p) {
  host.live += p != NULL;
  return p;
}

void *__wrap_malloc(size_t size) {
  return refuses() ? NULL : counted(__real_malloc(size));
}

void *__wrap_calloc(size_t count, size_t size) {
  return refuses() ? NULL : counted(__real_calloc(count, size));
}

void *__wrap_realloc(void *old, size_t size) {
  if (refuses()) return NULL;
  void *p = __real_realloc(old, size);
  host.live += p && !old;
  return p;
}

void *__wrap_aligned_alloc(size_t align, size_t size) {
  return refuses() ? NULL : counted(__real_aligned_alloc(align, size));
}

char *__wrap_strdup(const char *text) {
  return refuses() ? NULL : counted(__real_strdup(text));
}

void __wrap_free(void *p) {
  host.live -= p != NULL;
  __real_free(p);
}

/* The memory of a device (ct_memory.h). */
void *__wrap_mmap(void *at, size_t size, int prot, int flags, int fd, off_t offset) {
  if (refuses()) return MAP_FAILED;
  void *p = __real_mmap(at, size, prot, flags, fd, offset);
  host.live += p != MAP_FAILED;
  return p;
}

int __wrap_munmap(void *at, size_t size) {
  --host.live;
  return __real_munmap(at, size);
}
/* NOLINTEND(bugprone-reserved-identifier) */

/* ---- What is tried ------------------------------------------------------------------------- */

enum { IN = 20, HIDDEN = 33, OUT = 5, LAYERS = 2, BATCH = 4, UNIT = 16 };

struct world {
  ct_device *dev;
  ct_program *copy;
  ct_model *model; /* prepared for training */
  ct_weights *version;
  ct_batch *batch;
  ct_rows *rows;
  ct_answers *answers;
  uint64_t at; /* memory that copies write */
  char path[64];
  ct_graph *trained, *asked; /* a perceptron and its answers, many rows of which go by kernels */
  ct_graph *pooled;          /* kept compressed */
};

/* CT_OK, or CT_ERR_MEMORY with a sentence while the host refuses memory. */
static int fine(const struct world *w, int err) {
  const char *text = ct_last_error(w->dev);
  if (err && err != CT_ERR_MEMORY) fail_msg("%d: %s", err, text);
  if (!err) return err;
  assert_true(host.failed);
  if (!strstr(text, "memory")) fail_msg("no word of memory: %s", text);
  return err;
}

#define OK(call)                                                \
  do {                                                          \
    if ((call) != CT_OK) fail_msg("%s", ct_last_error(w->dev)); \
  } while (0)

static void check_product(struct world *w) {
  enum { N = 37 };
  float x[N * N] = {0}, y[N * N], z[N * N];
  for (int i = 0; i < N * N; ++i)
    y[i] = (float)(i % 91);
  for (int i = 0; i < N; ++i)
    x[i * N + i] = 1;
  const int err = ct_matmul(w->dev, CT_TRAINING, N, N, N, x, y, z, NULL);
  if (fine(w, err) == CT_OK) assert_memory_equal(y, z, sizeof y);
}

static void products(struct world *w) {
  check_product(w);
  check_product(w);
  float x[16 * 3] = {1}, y[3 * 50] = {2}, z[16 * 50];
  for (size_t n = 40; n < 50; ++n)
    fine(w, ct_matmul(w->dev, CT_INFERENCE, 16, n, 3, x, y, z, NULL));
}

/* More jobs than events had room for at first; some are cancelled. Each has its event. */
static void jobs(struct world *w) {
  enum { JOBS = 150 };
  const uint32_t at = (uint32_t)(w->at / UNIT);
  static int seen[JOBS];
  size_t n = 0;
  uint64_t tag[JOBS];
  struct ct_event e;
  memset(seen, 0, sizeof seen);
  for (int i = 0; i < JOBS; ++i) {
    const struct ct_job job = {.program = w->copy, .args = {at, at + 64}, .user = &seen[n]};
    const enum ct_queue queue = i % 3 ? CT_TRAINING : CT_INFERENCE;
    if (fine(w, ct_submit(w->dev, queue, &job, &tag[n])) == CT_OK) ++n;
  }
  for (size_t i = 0; i < n; i += 7)
    OK(ct_cancel(w->dev, tag[i]));
  assert_int_equal(ct_outstanding(w->dev, CT_INFERENCE) + ct_outstanding(w->dev, CT_TRAINING), n);
  for (size_t i = 0; i < n; ++i) {
    if (i % 2)
      OK(ct_reap(w->dev, &e, 5000));
    else if (!seen[i])
      OK(ct_wait(w->dev, tag[i], &e, 5000));
    else
      continue;
    assert_true(e.error == CT_OK || e.error == CT_ERR_CANCELLED);
    ++*(int *)e.user;
  }
  while (ct_outstanding(w->dev, CT_INFERENCE) + ct_outstanding(w->dev, CT_TRAINING)) {
    OK(ct_reap(w->dev, &e, 5000));
    ++*(int *)e.user;
  }
  for (size_t i = 0; i < n; ++i)
    assert_int_equal(seen[i], 1);
}

static void programs(struct world *w) {
  struct ct_code code;
  const int err = one_copy(3, 4096, &code, NULL);
  assert_true(err == CT_OK || (err == CT_ERR_MEMORY && host.failed));
  ct_program *p = NULL;
  if (err == CT_OK && fine(w, ct_code_load(w->dev, &code, &p)) == CT_OK) assert_non_null(p);
  ct_program_free(p);
  const int fd = ct_poll_fd(w->dev);
  if (fd < 0) fine(w, fd);
}

static const uint32_t widths[] = {IN, HIDDEN, OUT};
static const struct ct_training training = {.batch = BATCH,
                                            .rates = {.lr = 0.1f, .momentum = 0.5f}};
static const uint32_t labels[BATCH] = {1, 2, 3, 4};
static float inputs[BATCH * IN];

/* All calls of a model that is made here. */
static void models(struct world *w) {
  ct_model *m = NULL;
  ct_weights *version = NULL;
  float y[BATCH * OUT], loss, b[HIDDEN];
  size_t right;
  if (fine(w, ct_model_create(w->dev, widths, LAYERS, 3, &m))) {
    assert_null(m);
    return;
  }
  const bool armed = fine(w, ct_model_training(m, &training)) == CT_OK;
  for (int i = 0; i < 2 && armed; ++i)
    fine(w, ct_model_step(m, inputs, labels, &loss));
  fine(w, ct_model_infer(m, NULL, inputs, 3, y));
  fine(w, ct_model_evaluate(m, NULL, inputs, labels, BATCH, &right));
  if (fine(w, ct_model_get(m, 0, NULL, b, NULL, NULL)) == CT_OK)
    fine(w, ct_model_set(m, 0, NULL, b, NULL, NULL));
  if (fine(w, ct_model_publish(m, &version)) == CT_OK)
    fine(w, ct_model_infer(m, version, inputs, 3, y));
  else
    assert_null(version);
  ct_weights_free(version);
  ct_model_free(m);
}

/* Gradients: to be prepared for, left, added, read and written, updates. */
static void gradients(struct world *w) {
  struct ct_training with = training;
  with.gradients = true;
  float g[HIDDEN * IN], b[HIDDEN], norm;
  uint64_t tag[3];
  struct ct_event e;
  int n = 0;
  if (fine(w, ct_model_training(w->model, &with))) return;
  struct ct_step step = {.batch = w->batch, .gradients = CT_GRADIENTS_SET};
  const bool set = fine(w, ct_model_step_submit(w->model, &step, &tag[n])) == CT_OK;
  n += set;
  step.gradients = CT_GRADIENTS_ADD;
  if (set) n += fine(w, ct_model_step_submit(w->model, &step, &tag[n])) == CT_OK;
  if (set) n += fine(w, ct_model_apply_submit(w->model, NULL, &tag[n])) == CT_OK;
  while (n-- > 0) {
    OK(ct_wait(w->dev, tag[n], &e, 5000));
    OK(e.error);
  }
  if (!set) return;
  if (fine(w, ct_model_get_gradients(w->model, 0, g, b)) == CT_OK)
    fine(w, ct_model_set_gradients(w->model, 0, g, b));
  fine(w, ct_model_gradient_norm(w->model, &norm));
  fine(w, ct_model_apply(w->model, NULL));
}

/* Handles for batches, rows and answers. */
static void handles(struct world *w) {
  ct_batch *batch;
  ct_rows *rows;
  ct_answers *answers;
  if (fine(w, ct_batch_create(w->model, &batch)) == CT_OK)
    fine(w, ct_batch_write(batch, inputs, labels));
  if (fine(w, ct_rows_create(w->model, 5, &rows)) == CT_OK)
    fine(w, ct_rows_write(rows, 1, 3, inputs));
  fine(w, ct_answers_create(w->model, 7, &answers));
  ct_batch_free(batch);
  ct_rows_free(rows);
  ct_answers_free(answers);
}

/* Steps, versions and answers in flight when memory runs out. */
static void work_of_models(struct world *w) {
  enum { ROUNDS = 4 };
  ct_weights *version[ROUNDS];
  uint64_t tag[3 * ROUNDS];
  float y[OUT];
  int n = 0;
  bool asked[ROUNDS];
  struct ct_event e;
  for (size_t i = 0; i < ROUNDS; ++i) {
    const struct ct_step step = {.batch = w->batch};
    const struct ct_request request = {
        .weights = w->version, .rows = w->rows, .answers = w->answers, .answer = i};
    n += fine(w, ct_model_step_submit(w->model, &step, &tag[n])) == CT_OK;
    asked[i] = fine(w, ct_model_infer_submit(w->model, &request, &tag[n])) == CT_OK;
    n += asked[i];
    n += fine(w, ct_model_publish_submit(w->model, NULL, &version[i], &tag[n])) == CT_OK;
  }
  while (n-- > 0) {
    OK(ct_wait(w->dev, tag[n], &e, 5000));
    OK(e.error);
  }
  for (size_t i = 0; i < ROUNDS; ++i) {
    if (asked[i]) fine(w, ct_answers_read(w->answers, i, 1, y));
    ct_weights_free(version[i]);
  }
}

/* A file is whole, or as it was, and there is nothing beside it. */
static void files(struct world *w) {
  ct_model *m = NULL;
  char beside[256];
  struct stat st;
  const int err = fine(w, ct_model_save(w->model, w->path));
  snprintf(beside, sizeof beside, "%s.new", w->path);
  assert_int_not_equal(stat(beside, &st), 0);
  if (err) assert_int_not_equal(stat(w->path, &st), 0);
  if (!err) fine(w, ct_model_load(w->dev, w->path, &m));
  ct_model_free(m);
  unlink(w->path);
}

/* A server, and more requests than events had room for. */
static void requests(struct world *w) {
  enum { REQUESTS = 150 };
  ct_server *s = NULL;
  struct ct_event e;
  size_t n = 0;
  if (fine(w, ct_server_create(w->model, w->version, NULL, &s))) {
    assert_null(s);
    return;
  }
  for (size_t i = 0; i < REQUESTS; ++i) {
    const struct ct_request r = {.rows = w->rows, .answers = w->answers, .answer = i};
    n += fine(w, ct_server_push(s, &r, NULL)) == CT_OK;
    if (i == REQUESTS / 2) fine(w, ct_server_set_weights(s, w->version));
  }
  assert_int_equal(ct_outstanding(w->dev, CT_INFERENCE), n);
  for (; n > 3; --n) {
    OK(ct_reap(w->dev, &e, 5000));
    OK(e.error);
  }
  ct_server_free(s);
  for (; n > 0; --n)
    OK(ct_reap(w->dev, &e, 5000));
}

static ct_graph *perceptron(uint32_t rows, bool trains) {
  static const struct ct_optimise how = {.schedule = {.rate = 0.1}, .momentum = 0.5};
  ct_graph *g;
  if (ct_graph_create(&g) || ct_graph_mlp(g, widths, LAYERS, rows, trains) ||
      (trains && ct_graph_optimise(g, ct_graph_find(g, "loss"), &how)) || ct_graph_check(g))
    fail_msg("%s", ct_graph_error(g));
  return g;
}

/* A version for a network, served in batches if that can be. */
static void serve_network(struct world *w, ct_network *n, ct_weights *version) {
  ct_server *s = NULL;
  ct_rows *rows = NULL;
  ct_answers *answers = NULL;
  struct ct_event e;
  uint64_t tag;
  if (fine(w, ct_network_rows_create(n, 1, &rows)) == CT_OK &&
      fine(w, ct_network_answers_create(n, 1, &answers)) == CT_OK &&
      fine(w, ct_rows_write(rows, 0, 1, inputs)) == CT_OK &&
      fine(w, ct_network_server_create(n, version, NULL, &s)) == CT_OK) {
    const struct ct_request r = {.rows = rows, .answers = answers};
    fine(w, ct_server_set_weights(s, NULL));
    if (fine(w, ct_server_push(s, &r, &tag)) == CT_OK) {
      OK(ct_wait(w->dev, tag, &e, 5000));
      OK(e.error);
    }
  }
  ct_server_free(s);
  ct_rows_free(rows);
  ct_answers_free(answers);
}

/* A perceptron as a graph: steps, and versions of it for its own programs or for kernels. */
static void answer(struct world *w, ct_network *steps, bool kernels) {
  const struct ct_network_options how = {.kernels = kernels};
  ct_network *n = NULL;
  ct_weights *version = NULL;
  struct ct_event e;
  uint64_t tag;
  if (fine(w, ct_network_create(w->dev, w->asked, &how, &n))) {
    assert_null(n);
    return;
  }
  if (fine(w, ct_network_publish_submit(steps, n, NULL, &version, &tag)) == CT_OK) {
    OK(ct_wait(w->dev, tag, &e, 5000));
    OK(e.error);
    if (fine(w, ct_network_submit(n, &(struct ct_run){.weights = version}, &tag)) == CT_OK) {
      OK(ct_wait(w->dev, tag, &e, 5000));
      OK(e.error);
    }
    if (!kernels) serve_network(w, n, version);
  }
  ct_weights_free(version);
  ct_network_free(n);
}

static void networks(struct world *w) {
  static const float targets[BATCH * OUT] = {1, [6] = 1, [12] = 1, [18] = 1};
  ct_network *steps = NULL, *loaded = NULL;
  float loss;
  if (fine(w, ct_network_create(w->dev, w->trained, NULL, &steps))) {
    assert_null(steps);
    return;
  }
  const bool drawn = fine(w, ct_network_draw(steps, 1)) == CT_OK;
  fine(w, ct_network_write(steps, ct_graph_find(w->trained, "x"), inputs, BATCH * IN));
  fine(w, ct_network_write(steps, ct_graph_find(w->trained, "y"), targets, BATCH * OUT));
  if (drawn && fine(w, ct_network_run(steps, CT_TRAINING, 0)) == CT_OK)
    fine(w, ct_network_read(steps, ct_graph_find(w->trained, "loss"), &loss, 1));
  answer(w, steps, false);
  answer(w, steps, true);
  if (fine(w, ct_network_save(steps, w->path)) == CT_OK)
    fine(w, ct_network_load(w->dev, w->path, NULL, &loaded));
  unlink(w->path);
  ct_network_free(loaded);
  ct_network_free(steps);
}

/* Activations kept compressed, with masks and the places of maxima. */
static ct_graph *pooled(void) {
  static const struct ct_optimise how = {.schedule = {.rate = 0.5}, .momentum = 0.5};
  ct_graph *g = NULL;
  assert_int_equal(ct_graph_create(&g), CT_OK);
  const int x = ct_graph_tensor(g,
                                &(struct ct_new_tensor){.name = "x", .shape = {4, {1, 4, 4, 3}}}),
            w = ct_graph_tensor(
                g, &(struct ct_new_tensor){.role = CT_ROLE_WEIGHT, .shape = {4, {5, 1, 1, 3}}}),
            v = ct_graph_tensor(
                g, &(struct ct_new_tensor){.role = CT_ROLE_WEIGHT, .shape = {2, {2, 20}}}),
            t = ct_graph_tensor(
                g, &(struct ct_new_tensor){.role = CT_ROLE_LABEL, .shape = {2, {1, 2}}});
  const struct ct_attr windows[] = {{"kernel", 2, {2, 2}}, {"stride", 2, {2, 2}}};
  int y = ct_graph_add(
      g, &(struct ct_new_node){.op = "conv", .inputs = (int[]){x, w}, .input_count = 2});
  y = ct_graph_add(g, &(struct ct_new_node){.op = "relu", .inputs = &y, .input_count = 1});
  y = ct_graph_add(
      g, &(struct ct_new_node){
             .op = "max_pool", .inputs = &y, .input_count = 1, .attrs = windows, .attr_count = 2});
  y = ct_graph_add(g, &(struct ct_new_node){.op = "flatten", .inputs = &y, .input_count = 1});
  y = ct_graph_add(
      g, &(struct ct_new_node){.op = "linear", .inputs = (int[]){y, v}, .input_count = 2});
  y = ct_graph_add(
      g, &(struct ct_new_node){.op = "cross_entropy", .inputs = (int[]){y, t}, .input_count = 2});
  assert_int_equal(ct_graph_optimise(g, ct_graph_result(g, y), &how), CT_OK);
  assert_true(ct_graph_keep(g, CT_ROLE_ACTIVATION, CT_FORMAT_COMPRESSED) > 0);
  assert_int_equal(ct_graph_check(g), CT_OK);
  return g;
}

static void kept(struct world *w) {
  const struct ct_network_options how = {.masks = CT_MASKS_ON, .error = 0.1};
  struct ct_network_kept k;
  ct_network *n = NULL;
  if (fine(w, ct_network_create(w->dev, w->pooled, &how, &n))) {
    assert_null(n);
    return;
  }
  OK(ct_network_kept(n, 2, &k));
  if (fine(w, ct_network_draw(n, 1)) == CT_OK) fine(w, ct_network_run(n, CT_TRAINING, 0));
  ct_network_free(n);
}

/* ---- Again and again ------------------------------------------------------------------------ */

static void open_world(struct world *w) {
  struct ct_code code;
  *w = (struct world){.dev = NULL};
  snprintf(w->path, sizeof w->path, "/tmp/ct_nomemory.%ld", (long)getpid());
  if (ct_open("emu:dram=16,spm=4096", &w->dev)) fail_msg("%s", ct_last_error(NULL));
  OK(one_copy(1, 2048, &code, NULL));
  OK(ct_code_load(w->dev, &code, &w->copy));
  OK(ct_mem_alloc(w->dev, 1 << 16, &w->at));
  OK(ct_model_create(w->dev, widths, LAYERS, 1, &w->model));
  OK(ct_model_training(w->model, &training));
  OK(ct_model_publish(w->model, &w->version));
  OK(ct_batch_create(w->model, &w->batch));
  OK(ct_batch_write(w->batch, inputs, labels));
  OK(ct_rows_create(w->model, 1, &w->rows));
  OK(ct_rows_write(w->rows, 0, 1, inputs));
  OK(ct_answers_create(w->model, 200, &w->answers));
  w->trained = perceptron(BATCH, true);
  w->asked = perceptron(3, false);
  w->pooled = pooled();
}

/* With memory again: all of it works. */
static void go_on(struct world *w) {
  products(w);
  jobs(w);
  models(w);
  gradients(w);
  handles(w);
  work_of_models(w);
  files(w);
  requests(w);
  networks(w);
  kept(w);
}

static void close_world(struct world *w) {
  assert_int_equal(ct_outstanding(w->dev, CT_INFERENCE) + ct_outstanding(w->dev, CT_TRAINING), 0);
  ct_model_free(w->model);
  ct_weights_free(w->version);
  ct_batch_free(w->batch);
  ct_rows_free(w->rows);
  ct_answers_free(w->answers);
  ct_program_free(w->copy);
  ct_graph_free(w->trained);
  ct_graph_free(w->asked);
  ct_graph_free(w->pooled);
  ct_close(w->dev);
}

/* The n-th allocation fails, for all n there are, under the sanitizers for one in seven. Returns
 * how many there are, or a few more. */
static long each_in_turn(void (*try)(struct world *w), bool for_good) {
  const long step = ct_tb_draws(8) > 1 ? 1 : 7;
  ct_rng rng = ct_rng_make(1);
  long n = ct_rng_below(&rng, (uint32_t)step);
  for (bool failed = true; failed; n += step) {
    const long live = host.live;
    struct world w;
    open_world(&w);
    host.before = n;
    host.for_good = for_good;
    host.failed = false;
    host.armed = true;
    try(&w);
    host.armed = false;
    failed = host.failed;
    host.failed = false;
    if (n % 8 == 0 || !failed) go_on(&w);
    close_world(&w);
    if (host.live != live) fail_msg("%ld: %ld allocations are left", n, host.live - live);
  }
  return n;
}

#define EACH(what, least)                             \
  static void without_memory_##what(void **state) {   \
    (void)state;                                      \
    assert_true(each_in_turn(what, false) > (least)); \
    assert_true(each_in_turn(what, true) > (least));  \
  }

EACH(products, 20)
EACH(jobs, 1)
EACH(programs, 3)
EACH(models, 20)
EACH(gradients, 20)
EACH(handles, 10)
EACH(work_of_models, 3)
EACH(files, 5)
EACH(requests, 3)
EACH(networks, 100)
EACH(kept, 100)

/* ---- Arrays --------------------------------------------------------------------------------- */

/* A perceptron without updates. */
static ct_graph *perceptron_of(ct_device *dev) {
  ct_graph *g = NULL;
  const uint32_t few[] = {3, 4, 2};
  if (ct_graph_create(&g) || ct_graph_mlp(g, few, 2, 2, true)) fail_msg("%s", ct_last_error(dev));
  return g;
}

static int write_zeros(void *arg, uint64_t run, ct_frame *frame) {
  static const float zeros[2 * 3];
  ct_graph *g = ct_network_graph(ct_frame_network(frame));
  (void)arg;
  (void)run;
  const int err = ct_frame_write(frame, ct_graph_find(g, "x"), zeros, 6);
  return err ? err : ct_frame_write(frame, ct_graph_find(g, "y"), zeros, 4);
}

/* A member joins one that is there, both run, it leaves. The other has either done all its runs, or
 * the call says why not; a member that fails says so itself. */
static void arrays(ct_device *dev, ct_array *a, const struct ct_member *member) {
  uint32_t number = 0;
  struct ct_member_info info;
  const int joined = ct_array_join(a, member, &number);
  assert_true(joined == CT_OK || joined == CT_ERR_MEMORY);
  if (joined) assert_non_null(strstr(ct_last_error(dev), "memory"));
  const int ran = ct_array_run(a, 3, NULL);
  assert_true(ran == CT_OK || ran == CT_ERR_MEMORY);
  assert_int_equal(ct_array_member(a, 1, &info), CT_OK);
  if (ran == CT_OK && info.state == CT_MEMBER_READY) assert_int_equal(info.runs, 3);
  if (info.state == CT_MEMBER_FAILED) assert_int_equal(info.error, CT_ERR_MEMORY);
  if (!joined) assert_int_equal(ct_array_leave(a, number), CT_OK);
}

/* The n-th allocation fails; how many are left, and whether one failed. */
static bool try_array(long n, bool for_good) {
  const long live = host.live;
  ct_device *dev;
  ct_array *a;
  if (ct_open("emu:dram=16,spm=4096", &dev)) fail_msg("%s", ct_last_error(NULL));
  ct_graph *g = perceptron_of(dev);
  const struct ct_optimise how = {.schedule = {.rate = 0.1}, .momentum = 0.5};
  const struct ct_member member = {.graph = g, .optimise = &how, .feed = {write_zeros, NULL}};
  if (ct_array_create(dev, NULL, &a) || ct_array_join(a, &member, NULL))
    fail_msg("%s", ct_last_error(dev));
  host.before = n;
  host.for_good = for_good;
  host.failed = false;
  host.armed = true;
  arrays(dev, a, &member);
  host.armed = false;
  const bool failed = host.failed;
  host.failed = false;
  uint32_t number;
  if (ct_array_join(a, &member, &number) || ct_array_run(a, 2, NULL))
    fail_msg("%s", ct_last_error(dev));
  struct ct_member_info info;
  assert_int_equal(ct_array_member(a, number, &info), CT_OK);
  assert_int_equal(info.runs, 2);
  ct_array_free(a);
  ct_graph_free(g);
  ct_close(dev);
  if (host.live != live) fail_msg("%ld: %ld allocations are left", n, host.live - live);
  return failed;
}

/* What runs need for a while begins with zeros, also if there was no memory for these at first. */
static void without_memory_arenas(void **state) {
  enum { DIRTY = 1 << 20 };
  (void)state;
  const struct ct_network_options how = {.kernels = true};
  bool failed = true;
  for (long n = 0; failed; ++n) {
    ct_device *dev;
    ct_network *net;
    uint64_t at = 0;
    uint8_t *bytes = malloc(DIRTY);
    if (ct_open("emu:dram=16,spm=4096", &dev)) fail_msg("%s", ct_last_error(NULL));
    ct_graph *g = perceptron_of(dev);
    if (ct_graph_check(g) || ct_network_create(dev, g, &how, &net))
      fail_msg("%s", ct_last_error(dev));
    assert_int_equal(ct_network_arena(net, CT_TRAINING, &at), CT_OK);
    assert_non_null(bytes);
    memset(bytes, 0xff, DIRTY);
    assert_int_equal(ct_mem_alloc(dev, DIRTY, &at), CT_OK);
    assert_int_equal(ct_mem_write(dev, at, bytes, DIRTY), CT_OK);
    assert_int_equal(ct_mem_free(dev, at), CT_OK);
    host.before = n;
    host.for_good = host.failed = false;
    host.armed = true;
    const int err = ct_network_arena(net, CT_INFERENCE, &at);
    host.armed = false;
    failed = host.failed;
    assert_int_equal(err, failed ? CT_ERR_MEMORY : CT_OK);
    assert_int_equal(ct_network_arena(net, CT_INFERENCE, &at), CT_OK);
    const size_t size = (size_t)net->compiled.arena * CT_UNIT;
    assert_in_range(size, 1, DIRTY);
    assert_int_equal(ct_mem_read(dev, at, bytes, size), CT_OK);
    for (size_t i = 0; i < size; ++i)
      assert_int_equal(bytes[i], 0);
    free(bytes);
    ct_network_free(net);
    ct_graph_free(g);
    ct_close(dev);
  }
}

static bool has_group(const struct ct_fusion *group, size_t stages) {
  for (size_t i = 0; group->stage && i < stages; ++i)
    if (group->stage[i].programs.count) return true;
  return false;
}

/* Programs of members are made by the next call, then. */
static void without_memory_groups(void **state) {
  (void)state;
  const struct ct_network_options how = {.kernels = true};
  const struct ct_fusion *group;
  ct_device *dev;
  ct_network *net;
  if (ct_open("emu:", &dev)) fail_msg("%s", ct_last_error(NULL));
  ct_graph *g = perceptron(BATCH, true);
  if (ct_network_create(dev, g, &how, &net)) fail_msg("%s", ct_last_error(dev));
  long n = 0;
  host.for_good = false;
  for (bool failed = true; failed; ++n) {
    host.before = n;
    host.failed = false;
    host.armed = true;
    const int err = ct_fusion_make(net, true, &group);
    host.armed = false;
    failed = host.failed;
    assert_int_equal(err, failed ? CT_ERR_MEMORY : CT_OK);
    assert_true(has_group(group, net->compiled.stages) == !failed);
  }
  assert_true(n > 100);
  ct_network_free(net);
  ct_graph_free(g);
  ct_close(dev);
}

static void without_memory_arrays(void **state) {
  (void)state;
  for (int for_good = 0; for_good < 2; ++for_good) {
    long n = 0;
    while (try_array(n, for_good))
      ++n;
    assert_true(n > 50);
  }
}

/* Opening a device, and the list of them. */
static void without_memory_opening(void **state) {
  (void)state;
  for (int for_good = 0; for_good < 2; ++for_good) {
    bool failed = true;
    for (long n = 0; failed; ++n) {
      const long live = host.live;
      ct_device *dev;
      struct ct_entry *entries;
      size_t count;
      host.before = n;
      host.for_good = for_good;
      host.failed = false;
      host.armed = true;
      const int err = ct_open("emu:dram=2,spm=512", &dev);
      const int list = ct_list(&entries, &count);
      struct ct_entry *there;
      const int scan = ct_scan(&there, &count);
      struct ct_register *registers;
      const int read = ct_registers("emu:dram=2,spm=512", NULL, &registers, &count);
      host.armed = false;
      failed = host.failed;
      assert_true(
          (err == CT_OK || err == CT_ERR_MEMORY) && (list == CT_OK || list == CT_ERR_MEMORY) &&
          (scan == CT_OK || scan == CT_ERR_MEMORY) && (read == CT_OK || read == CT_ERR_MEMORY));
      assert_true((err || list || scan || read) == failed);
      if (err) assert_null(dev);
      if (err || list || scan || read) assert_non_null(strstr(ct_last_error(NULL), "memory"));
      if (!list) ct_list_free(entries);
      ct_list_free(there);
      ct_registers_free(registers);
      ct_close(dev);
      assert_int_equal(host.live, live);
    }
  }
}

/* A graph, its training step and a run of the reference. */
static int graph_calls(ct_graph *g) {
  static const uint32_t perceptron[] = {3, 4, 2};
  static double value[32][16];
  struct ct_value values[32] = {{0}};
  struct ct_reference run = {.values = values, .update = true};
  const struct ct_optimise how = {
      .optimiser = CT_OPTIMISER_ADAM, .schedule = {.rate = 1}, .clip = 1};
  int err = ct_graph_mlp(g, perceptron, 2, 2, true);
  if (!err) err = ct_graph_fold(g);
  if (!err) err = ct_graph_optimise(g, ct_graph_find(g, "loss"), &how);
  if (!err) err = ct_graph_check(g);
  if (err) return err;
  struct ct_tensor_info info;
  for (int t = 1; ct_graph_tensor_info(g, t, &info) == CT_OK; ++t)
    if (info.node < 0) {
      values[run.value_count] = (struct ct_value){t, value[run.value_count], info.elements};
      ++run.value_count;
    }
  return ct_graph_run_reference(g, &run);
}

static void without_memory_graphs(void **state) {
  (void)state;
  for (int for_good = 0; for_good < 2; ++for_good) {
    bool failed = true;
    long n = 0;
    for (; failed; ++n) {
      const long live = host.live;
      ct_graph *g;
      host.before = n;
      host.for_good = for_good;
      host.failed = false;
      host.armed = true;
      int err = ct_graph_create(&g);
      if (!err) err = graph_calls(g);
      host.armed = false;
      failed = host.failed;
      assert_int_equal(err, failed ? CT_ERR_MEMORY : CT_OK);
      if (g && err) assert_non_null(strstr(ct_graph_error(g), "memory"));
      ct_graph_free(g);
      assert_int_equal(host.live, live);
    }
    assert_in_range(n, 100, 1000);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(without_memory_graphs),         cmocka_unit_test(without_memory_opening),
      cmocka_unit_test(without_memory_products),       cmocka_unit_test(without_memory_jobs),
      cmocka_unit_test(without_memory_programs),       cmocka_unit_test(without_memory_models),
      cmocka_unit_test(without_memory_work_of_models), cmocka_unit_test(without_memory_handles),
      cmocka_unit_test(without_memory_files),          cmocka_unit_test(without_memory_requests),
      cmocka_unit_test(without_memory_gradients),      cmocka_unit_test(without_memory_networks),
      cmocka_unit_test(without_memory_kept),           cmocka_unit_test(without_memory_arrays),
      cmocka_unit_test(without_memory_arenas),         cmocka_unit_test(without_memory_groups),
  };
  ct_rng rng = ct_rng_make(1);
  for (int i = 0; i < BATCH * IN; ++i)
    inputs[i] = (float)ct_rng_below(&rng, 100) * 0.01f;
  return cmocka_run_group_tests(tests, NULL, NULL);
}
