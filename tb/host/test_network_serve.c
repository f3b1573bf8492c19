/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Networks that are served while they are trained: runs that are submitted, frames, versions of the
 * weights, files. Whatever goes on beside it, an answer has the bits of a run alone.
 */
#include "ct_tb.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "coltrain/network.h"
#include "coltrain_spec.h"
#include "ct_file.h"
#include "ct_graph_impl.h"
#include "ct_network_file.h"

enum {
  BATCH = 3,
  FRAMES = 4,
  STEPS = 3,
  PIXELS = 28 * 28,
  CLASSES = 10,
  INPUTS = BATCH * PIXELS,
  LABELS = BATCH * CLASSES
};

/* LeNet-5 with its steps, and what answers take of it. */
struct pair {
  ct_device *dev;
  ct_network *steps, *answers;
  int x, y, loss, asked, logits;
};

static ct_graph *trained(void) {
  const struct ct_optimise how = {.schedule = {.rate = 0.05}, .momentum = 0.9};
  ct_graph *g;
  assert_int_equal(ct_graph_create(&g), CT_OK);
  if (ct_graph_builtin(g, "lenet5", BATCH, true) ||
      ct_graph_optimise(g, ct_graph_find(g, "loss"), &how) || ct_graph_check(g))
    fail_msg("%s", ct_graph_error(g));
  return g;
}

static ct_graph *answering(const ct_graph *from, const char *output, uint32_t rows) {
  ct_graph *g;
  assert_int_equal(ct_graph_create(&g), CT_OK);
  if (ct_graph_answers(g, from, ct_graph_find((ct_graph *)from, output), rows) || ct_graph_check(g))
    fail_msg("%s", ct_graph_error(g));
  return g;
}

static void ok(const struct pair *p, int rc) {
  if (rc < 0) fail_msg("%s", ct_last_error(p->dev));
}

static void open_pair(struct pair *p, const char *uri) {
  ct_graph *g = trained(), *a = answering(g, "logits", 1);
  if (ct_open(uri, &p->dev)) fail_msg("%s", ct_last_error(NULL));
  ok(p, ct_network_create(p->dev, g, NULL, &p->steps));
  ok(p, ct_network_create(p->dev, a, &(struct ct_network_options){.expect = true}, &p->answers));
  ok(p, ct_network_draw(p->steps, 5));
  p->x = ct_graph_find(g, "x");
  p->y = ct_graph_find(g, "y");
  p->loss = ct_graph_find(g, "loss");
  p->asked = ct_graph_find(a, "x");
  p->logits = ct_graph_find(a, "logits");
  ct_graph_free(a);
  ct_graph_free(g);
}

static void close_pair(struct pair *p) {
  ct_network_free(p->answers);
  ct_network_free(p->steps);
  ct_close(p->dev);
}

/* Images of whole 64ths, one-hot labels: the same for a number. */
static void image_of(unsigned number, float *x) {
  ct_rng rng = ct_rng_make(number);
  for (unsigned i = 0; i < PIXELS; ++i)
    x[i] = (float)ct_rng_below(&rng, 64) / 64;
}

static void write_batch(const struct pair *p, ct_frame *f, unsigned step) {
  float x[INPUTS], y[LABELS] = {0};
  for (unsigned i = 0; i < BATCH; ++i) {
    image_of(100 + step * BATCH + i, x + (size_t)i * PIXELS);
    y[i * CLASSES + (step + i) % CLASSES] = 1;
  }
  ok(p, ct_frame_write(f, p->x, x, INPUTS));
  ok(p, ct_frame_write(f, p->y, y, LABELS));
}

static struct ct_event wait_for(const struct pair *p, uint64_t tag) {
  struct ct_event e;
  ok(p, ct_wait(p->dev, tag, &e, CT_FOREVER));
  return e;
}

static ct_weights *publish(const struct pair *p) {
  ct_weights *w;
  uint64_t tag;
  ok(p, ct_network_publish_submit(p->steps, p->answers, NULL, &w, &tag));
  const struct ct_event e = wait_for(p, tag);
  assert_int_equal(e.kind, CT_EVENT_PUBLISH);
  assert_int_equal(e.error, CT_OK);
  return w;
}

/* How many cycles it takes, on a device with a clock. */
static uint64_t ask(const struct pair *p, ct_weights *w, unsigned image, float logits[CLASSES]) {
  float x[PIXELS];
  ct_frame *f;
  uint64_t tag;
  image_of(image, x);
  ok(p, ct_frame_create(p->answers, &f));
  ok(p, ct_frame_write(f, p->asked, x, PIXELS));
  ok(p, ct_network_submit(p->answers, &(struct ct_run){.frame = f, .weights = w}, &tag));
  const struct ct_event e = wait_for(p, tag);
  assert_int_equal(e.kind, CT_EVENT_RUN);
  assert_int_equal(e.error, CT_OK);
  ok(p, ct_frame_read(f, p->logits, logits, CLASSES));
  ct_frame_free(f);
  return e.end - e.start;
}

#define REFUSED(p, error, text, call)                                                    \
  do {                                                                                   \
    assert_int_equal(call, error);                                                       \
    if (!strstr(ct_last_error((p)->dev), text)) fail_msg("%s", ct_last_error((p)->dev)); \
  } while (0)

/* ---- Graphs of answers --------------------------------------------------------------------- */

/* Of a network by name they are the graph that it is without training, to the byte. */
static void answers_are_the_network_by_name(void **state) {
  (void)state;
  static const char *const names[] = {"lenet5", "resnet8", "resnet20"};
  for (size_t i = 0; i < 3; ++i) {
    ct_graph *from, *named;
    uint8_t *a, *b;
    size_t a_size, b_size;
    assert_int_equal(ct_graph_create(&from), CT_OK);
    assert_int_equal(ct_graph_create(&named), CT_OK);
    assert_int_equal(ct_graph_builtin(from, names[i], 7, true), CT_OK);
    assert_int_equal(ct_graph_builtin(named, names[i], 2, false), CT_OK);
    ct_graph *g = answering(from, "logits", 2);
    assert_int_equal(ct_graph_pack(g, &a, &a_size), CT_OK);
    assert_int_equal(ct_graph_pack(named, &b, &b_size), CT_OK);
    assert_int_equal(a_size, b_size);
    assert_memory_equal(a, b, a_size);
    ct_graph_free_bytes(a);
    ct_graph_free_bytes(b);
    ct_graph_free(g);
    ct_graph_free(from);
    ct_graph_free(named);
  }
}

static void answers_are_refused(void **state) {
  (void)state;
  ct_graph *from = trained(), *g;
  assert_int_equal(ct_graph_create(&g), CT_OK);
  const int gradient = ct_graph_gradient(from, ct_graph_find(from, "fc1.weight"));
  assert_int_equal(ct_graph_answers(g, from, gradient, 1), CT_ERR_ARG);
  assert_non_null(strstr(ct_graph_error(g), "gradients or updates"));
  assert_int_equal(ct_graph_answers(g, from, 100000, 1), CT_ERR_ARG);
  assert_int_equal(ct_graph_answers(g, NULL, 1, 1), CT_ERR_ARG);
  assert_int_equal(ct_graph_answers(g, from, ct_graph_find(from, "logits"), 0), CT_ERR_ARG);
  assert_int_equal(ct_graph_answers(g, from, ct_graph_find(from, "logits"), 1), CT_OK);
  assert_int_equal(ct_graph_answers(g, from, ct_graph_find(from, "logits"), 1), CT_ERR_ARG);
  ct_graph_free(g);
  ct_graph_free(from);
}

/* ---- Serving beside training --------------------------------------------------------------- */

/* Steps alone: what weights they leave, and the loss of each. */
static void train_alone(struct pair *p, float *loss) {
  ct_frame *f;
  ok(p, ct_frame_create(p->steps, &f));
  for (unsigned s = 0; s < STEPS; ++s) {
    uint64_t tag;
    write_batch(p, f, s);
    ok(p, ct_network_submit(p->steps, &(struct ct_run){.frame = f, .queue = CT_TRAINING, .step = s},
                            &tag));
    assert_int_equal(wait_for(p, tag).error, CT_OK);
    ok(p, ct_frame_read(f, p->loss, &loss[s], 1));
  }
  ct_frame_free(f);
}

/* A version answers as a network that was written the same weights. */
static void version_is_the_weights(void **state) {
  (void)state;
  struct pair p;
  float loss[STEPS], a[CLASSES], b[CLASSES];
  open_pair(&p, "emu:");
  train_alone(&p, loss);
  assert_true(loss[0] > 0);
  ct_weights *w = publish(&p);
  struct ct_weights_info info;
  ok(&p, ct_weights_info(w, &info));
  assert_int_equal(info.version, 1);
  assert_int_equal(info.steps, STEPS);
  ask(&p, w, 1, a);
  ct_graph *from = ct_network_graph(p.steps), *to = ct_network_graph(p.answers);
  for (int i = 1;; ++i) {
    struct ct_tensor_info t;
    if (ct_graph_tensor_info(to, i, &t)) break;
    if (t.role != CT_ROLE_WEIGHT) continue;
    float *x = malloc(t.elements * sizeof *x);
    ok(&p, ct_network_read(p.steps, ct_graph_find(from, t.name), x, t.elements));
    ok(&p, ct_network_write(p.answers, i, x, t.elements));
    free(x);
  }
  ask(&p, NULL, 1, b);
  assert_memory_equal(a, b, sizeof a);
  ct_weights_free(w);
  close_pair(&p);
}

/* On the way to a version: answers of one before are under way while steps change the weights. */
static void serve_beside(const char *uri) {
  struct pair alone, p;
  float want_loss[STEPS], want[2][FRAMES][CLASSES], got[CLASSES], loss;
  uint64_t run[2][FRAMES], step[STEPS], tag;
  ct_frame *frame[2][FRAMES], *batch[STEPS];
  ct_weights *w[2];
  float x[PIXELS];
  open_pair(&alone, "emu:");
  w[0] = publish(&alone);
  for (unsigned i = 0; i < FRAMES; ++i)
    ask(&alone, w[0], i, want[0][i]);
  train_alone(&alone, want_loss);
  w[1] = publish(&alone);
  for (unsigned i = 0; i < FRAMES; ++i)
    ask(&alone, w[1], i, want[1][i]);
  ct_weights_free(w[0]);
  ct_weights_free(w[1]);
  close_pair(&alone);

  open_pair(&p, uri);
  w[0] = publish(&p);
  for (unsigned s = 0; s < STEPS; ++s) {
    ok(&p, ct_frame_create(p.steps, &batch[s]));
    write_batch(&p, batch[s], s);
    ok(&p, ct_network_submit(p.steps,
                             &(struct ct_run){.frame = batch[s], .queue = CT_TRAINING, .step = s},
                             &step[s]));
  }
  for (unsigned v = 0; v < 2; ++v) {
    for (unsigned i = 0; i < FRAMES; ++i) {
      image_of(i, x);
      ok(&p, ct_frame_create(p.answers, &frame[v][i]));
      ok(&p, ct_frame_write(frame[v][i], p.asked, x, PIXELS));
      ok(&p, ct_network_submit(p.answers, &(struct ct_run){.frame = frame[v][i], .weights = w[v]},
                               &run[v][i]));
    }
    if (v) break;
    ok(&p, ct_network_publish_submit(p.steps, p.answers, NULL, &w[1], &tag));
    if (uri[0] == 's') /* emu: ends it at once */
      assert_int_equal(ct_network_submit(p.answers, &(struct ct_run){.weights = w[1]}, NULL),
                       CT_ERR_BUSY);
    assert_int_equal(wait_for(&p, tag).error, CT_OK);
  }
  for (unsigned v = 0; v < 2; ++v)
    for (unsigned i = 0; i < FRAMES; ++i) {
      const struct ct_event e = wait_for(&p, run[v][i]);
      assert_true(e.error == CT_OK && e.version == v + 1);
      ok(&p, ct_frame_read(frame[v][i], p.logits, got, CLASSES));
      assert_memory_equal(got, want[v][i], sizeof got);
      ct_frame_free(frame[v][i]);
    }
  for (unsigned s = 0; s < STEPS; ++s) {
    assert_int_equal(wait_for(&p, step[s]).error, CT_OK);
    ok(&p, ct_frame_read(batch[s], p.loss, &loss, 1));
    assert_memory_equal(&loss, &want_loss[s], sizeof loss);
    ct_frame_free(batch[s]);
  }
  ct_weights_free(w[0]);
  ct_weights_free(w[1]);
  close_pair(&p);
}

static void serves_beside_training(void **state) {
  (void)state;
  serve_beside("emu:");
}

static void serves_beside_training_simulated(void **state) {
  (void)state;
  serve_beside("sim:");
  serve_beside("sim:core=16x8");
}

static uint64_t bound_of(const struct pair *p) {
  uint64_t bound = 0;
  for (size_t i = 0; i < ct_network_stages(p->answers); ++i) {
    struct ct_network_stage stage;
    ok(p, ct_network_stage(p->answers, i, &stage));
    assert_true(stage.beside != CT_NO_CYCLE);
    if (!stage.once) bound += stage.beside;
  }
  return bound;
}

/* Beside training a run takes longer, and by no more than its stages say. */
static void check_bound(const char *uri) {
  struct pair p;
  float logits[CLASSES];
  ct_frame *f[STEPS];
  uint64_t alone = 0, beside = 0, step[STEPS];
  open_pair(&p, uri);
  ct_weights *w = publish(&p);
  const uint64_t bound = bound_of(&p);
  for (unsigned i = 0; i < FRAMES; ++i) {
    const uint64_t took = ask(&p, w, i, logits);
    if (took > alone) alone = took;
  }
  for (unsigned s = 0; s < STEPS; ++s) {
    ok(&p, ct_frame_create(p.steps, &f[s]));
    write_batch(&p, f[s], s);
    ok(&p,
       ct_network_submit(p.steps, &(struct ct_run){.frame = f[s], .queue = CT_TRAINING, .step = s},
                         &step[s]));
  }
  for (unsigned i = 0; i < 2 * FRAMES; ++i) {
    const uint64_t took = ask(&p, w, i, logits);
    if (took > beside) beside = took;
  }
  print_message("%s: %lu cycles alone, %lu beside training, bound + %lu\n", uri,
                (unsigned long)alone, (unsigned long)beside, (unsigned long)bound);
  assert_true(beside > alone);
  assert_true(beside <= alone + bound);
  for (unsigned s = 0; s < STEPS; ++s) {
    assert_int_equal(wait_for(&p, step[s]).error, CT_OK);
    ct_frame_free(f[s]);
  }
  ct_weights_free(w);
  close_pair(&p);
}

static void runs_keep_their_bound(void **state) {
  (void)state;
  check_bound("sim:");
  check_bound("sim:core=16x8");
}

/* A row of four numbers whose weights are trained on what dropout leaves of it. */
static ct_network *dropout(const struct pair *p) {
  static const struct ct_optimise how = {.schedule = {.rate = 0.05}, .momentum = 0.9};
  const struct ct_shape shape = {2, {1, 4}}, square = {2, {4, 4}};
  ct_network *net;
  ct_graph *g;
  assert_int_equal(ct_graph_create(&g), CT_OK);
  int x = ct_graph_tensor(g, &(struct ct_new_tensor){.name = "x", .shape = shape});
  const int w = ct_graph_tensor(
      g, &(struct ct_new_tensor){
             .name = "w", .shape = square, .role = CT_ROLE_WEIGHT, .initial = CT_INITIAL_HE});
  const int y = ct_graph_tensor(
      g, &(struct ct_new_tensor){.name = "y", .shape = shape, .role = CT_ROLE_LABEL});
  x = ct_graph_add(g,
                   &(struct ct_new_node){.op = "dropout", .inputs = (int[]){x}, .input_count = 1});
  x = ct_graph_add(
      g, &(struct ct_new_node){.op = "linear", .inputs = (int[]){x, w}, .input_count = 2});
  x = ct_graph_add(g,
                   &(struct ct_new_node){.op = "mse", .inputs = (int[]){x, y}, .input_count = 2});
  if (ct_graph_result(g, x) < 0 || ct_graph_optimise(g, x, &how) || ct_graph_check(g))
    fail_msg("%s", ct_graph_error(g));
  ok(p, ct_network_create(p->dev, g, NULL, &net));
  ok(p, ct_network_draw(net, 3));
  ct_graph_free(g);
  return net;
}

/* Steps with dropout, one by one or submitted ahead, where a version is made meanwhile. */
static void drop(const char *uri, bool ahead, float w[16]) {
  enum { COUNT = 6 };
  const float x[4] = {1, 2, 3, 4}, y[4] = {0, 1, 0, 1};
  struct pair p = {NULL};
  ct_weights *version[COUNT] = {NULL};
  uint64_t tag[COUNT];
  ct_frame *f[2];
  assert_int_equal(ct_open(uri, &p.dev), CT_OK);
  p.steps = dropout(&p);
  ct_graph *g = ct_network_graph(p.steps);
  for (unsigned i = 0; i < 2; ++i) {
    ok(&p, ct_frame_create(p.steps, &f[i]));
    ok(&p, ct_frame_write(f[i], ct_graph_find(g, "x"), x, 4));
    ok(&p, ct_frame_write(f[i], ct_graph_find(g, "y"), y, 4));
  }
  for (unsigned s = 0; s < COUNT; ++s) {
    const struct ct_run run = {.frame = f[s % 2], .queue = CT_TRAINING, .step = s};
    if (ahead && s && uri[0] == 's')
      REFUSED(&p, CT_ERR_BUSY, "masks of dropout", ct_network_submit(p.steps, &run, NULL));
    if (ahead && s) assert_int_equal(wait_for(&p, tag[s - 1]).error, CT_OK);
    if (ahead && s) ok(&p, ct_network_publish_submit(p.steps, p.steps, NULL, &version[s], NULL));
    ok(&p, ct_network_submit(p.steps, &run, &tag[s]));
    if (!ahead) assert_int_equal(wait_for(&p, tag[s]).error, CT_OK);
  }
  if (ahead) assert_int_equal(wait_for(&p, tag[COUNT - 1]).error, CT_OK);
  ok(&p, ct_network_read(p.steps, ct_graph_find(g, "w"), w, 16));
  for (unsigned s = 0; s < COUNT; ++s)
    ct_weights_free(version[s]);
  ct_frame_free(f[0]);
  ct_frame_free(f[1]);
  close_pair(&p);
}

static void dropout_ahead(void **state) {
  (void)state;
  float want[16], got[16];
  drop("emu:", false, want);
  drop("emu:", true, got);
  assert_memory_equal(got, want, sizeof got);
  drop("sim:", true, got);
  assert_memory_equal(got, want, sizeof got);
}

/* A version that was read back answers the same on another device. */
static void version_moves(void **state) {
  (void)state;
  struct pair p, q;
  struct ct_weights_info info;
  struct ct_network_info net;
  float a[CLASSES], b[CLASSES];
  ct_weights *there;
  open_pair(&p, "emu:");
  open_pair(&q, "emu:");
  ct_weights *w = publish(&p);
  ok(&p, ct_weights_info(w, &info));
  ok(&p, ct_network_info(p.answers, &net));
  assert_int_equal(info.bytes, net.weights_bytes);
  uint8_t *data = malloc(info.bytes);
  ok(&p, ct_weights_read(w, data, info.bytes));
  assert_int_equal(ct_network_load_weights(q.answers, data, info.bytes - 1, &there), CT_ERR_ARG);
  ok(&q, ct_network_load_weights(q.answers, data, info.bytes, &there));
  ask(&p, w, 3, a);
  ask(&q, there, 3, b);
  assert_memory_equal(a, b, sizeof a);
  free(data);
  ct_weights_free(w);
  ct_weights_free(there);
  close_pair(&p);
  close_pair(&q);
}

/* ---- What is refused ----------------------------------------------------------------------- */

static void frames_are_guarded(void **state) {
  (void)state;
  struct pair p;
  ct_frame *f, *g;
  uint64_t tag;
  float x[PIXELS] = {0}, logits[CLASSES];
  open_pair(&p, "sim:"); /* emu: would end a run at once */
  ok(&p, ct_frame_create(p.answers, &f));
  ok(&p, ct_frame_create(p.steps, &g));
  REFUSED(&p, CT_ERR_ARG, "no run with the frame", ct_frame_read(f, p.logits, logits, CLASSES));
  REFUSED(&p, CT_ERR_ARG, "is an input", ct_frame_read(f, p.asked, x, PIXELS));
  REFUSED(&p, CT_ERR_ARG, "made by the network", ct_frame_write(f, p.logits, logits, CLASSES));
  REFUSED(&p, CT_ERR_ARG, "784 elements, not 3", ct_frame_write(f, p.asked, x, 3));
  REFUSED(&p, CT_ERR_ARG, "no input, label or output",
          ct_frame_write(g, ct_graph_find(ct_network_graph(p.steps), "fc2.bias"), x, 84));
  REFUSED(&p, CT_ERR_ARG, "another network",
          ct_network_submit(p.answers, &(struct ct_run){.frame = g}, NULL));
  ok(&p, ct_network_submit(p.answers, &(struct ct_run){.frame = f}, &tag));
  REFUSED(&p, CT_ERR_BUSY, "run again afterwards",
          ct_network_submit(p.answers, &(struct ct_run){.frame = f}, NULL));
  REFUSED(&p, CT_ERR_BUSY, "read afterwards", ct_frame_read(f, p.logits, logits, CLASSES));
  assert_int_equal(wait_for(&p, tag).error, CT_OK);
  ok(&p, ct_network_submit(p.answers, &(struct ct_run){.frame = f}, NULL));
  ct_frame_free(f);
  ct_frame_free(g);
  ct_network_free(p.answers);
  ct_network_free(p.steps);
  p.answers = p.steps = NULL;
  close_pair(&p);
}

static void weights_are_guarded(void **state) {
  (void)state;
  struct pair p;
  ct_model *model;
  ct_weights *w, *none;
  open_pair(&p, "emu:");
  w = publish(&p);
  REFUSED(&p, CT_ERR_ARG, "published for something else",
          ct_network_submit(p.steps, &(struct ct_run){.weights = w, .queue = CT_TRAINING}, NULL));
  ok(&p, ct_model_create(p.dev, (const uint32_t[]){4, 3}, 1, 1, &model));
  REFUSED(&p, CT_ERR_ARG, "published for something else",
          ct_network_submit(p.answers, &(struct ct_run){.weights = ct_model_weights(model)}, NULL));
  float x[4] = {0}, y[3];
  REFUSED(&p, CT_ERR_ARG, "of a network", ct_model_infer(model, w, x, 1, y));
  REFUSED(&p, CT_ERR_UNSUPPORTED, "weights cannot be published",
          ct_network_publish_submit(p.answers, p.steps, NULL, &none, NULL));
  assert_null(none);
  ct_weights_free(w);
  REFUSED(&p, CT_ERR_CLOSED, "freed before",
          ct_network_submit(p.answers, &(struct ct_run){.weights = w}, NULL));
  ct_model_free(model);
  close_pair(&p);
}

/* A perceptron of so many inputs, trained or for answers. */
static ct_network *perceptron(ct_device *dev, uint32_t inputs, bool trains) {
  const struct ct_optimise how = {.schedule = {.rate = 0.05}, .momentum = 0.9};
  ct_network *net;
  ct_graph *g;
  assert_int_equal(ct_graph_create(&g), CT_OK);
  assert_int_equal(ct_graph_mlp(g, (const uint32_t[]){inputs, 4, 2}, 2, 2, trains), CT_OK);
  if (trains) assert_int_equal(ct_graph_optimise(g, ct_graph_find(g, "loss"), &how), CT_OK);
  assert_int_equal(ct_graph_check(g), CT_OK);
  if (ct_network_create(dev, g, NULL, &net)) fail_msg("%s", ct_last_error(dev));
  ct_graph_free(g);
  return net;
}

/* 20 and 30 inputs both take two tiles: the shapes are compared, not the tiles. */
static void shapes_must_agree(void **state) {
  (void)state;
  struct pair p;
  ct_weights *w;
  assert_int_equal(ct_open("emu:", &p.dev), CT_OK);
  p.steps = perceptron(p.dev, 20, true);
  p.answers = perceptron(p.dev, 30, false);
  REFUSED(&p, CT_ERR_UNSUPPORTED, "has another shape",
          ct_network_publish_submit(p.steps, p.answers, NULL, &w, NULL));
  assert_null(w);
  close_pair(&p);
}

/* An input that nothing reads has no place: writing it does nothing, a weight is none of a frame.
 */
static void unread_inputs(void **state) {
  (void)state;
  struct pair p;
  ct_frame *f;
  ct_graph *g;
  float x[4] = {-1, 2, 3, 4};
  assert_int_equal(ct_graph_create(&g), CT_OK);
  const struct ct_shape shape = {2, {1, 4}};
  int read = ct_graph_tensor(g, &(struct ct_new_tensor){.name = "x", .shape = shape});
  const int input = ct_graph_tensor(g, &(struct ct_new_tensor){.name = "u", .shape = shape});
  const int weight = ct_graph_tensor(
      g, &(struct ct_new_tensor){.name = "w", .shape = shape, .role = CT_ROLE_WEIGHT});
  read = ct_graph_add(
      g, &(struct ct_new_node){.op = "relu", .inputs = (int[]){read}, .input_count = 1});
  if (ct_graph_result(g, read) < 0 || ct_graph_check(g)) fail_msg("%s", ct_graph_error(g));
  assert_int_equal(ct_open("emu:", &p.dev), CT_OK);
  ok(&p, ct_network_create(p.dev, g, NULL, &p.answers));
  ok(&p, ct_network_write(p.answers, input, x, 4));
  ok(&p, ct_frame_create(p.answers, &f));
  ok(&p, ct_frame_write(f, input, x, 4));
  REFUSED(&p, CT_ERR_ARG, "4 elements, not 3", ct_frame_write(f, input, x, 3));
  REFUSED(&p, CT_ERR_ARG, "is an input", ct_frame_read(f, input, x, 4));
  REFUSED(&p, CT_ERR_ARG, "no input, label or output", ct_frame_write(f, weight, x, 4));
  ct_frame_free(f);
  ct_graph_free(g);
  p.steps = NULL;
  close_pair(&p);
}

/* More inputs than jobs have arguments for: the rest lie with the weights. */
static void a_crowded_network(void **state) {
  (void)state;
  enum { COUNT = 14 };
  struct pair p;
  ct_frame *f;
  ct_weights *w;
  ct_graph *g;
  uint64_t tag;
  float x[4] = {1, 2, 3, 4}, y[4];
  int sum = 0, in[COUNT];
  assert_int_equal(ct_graph_create(&g), CT_OK);
  for (unsigned i = 0; i < COUNT; ++i) {
    char name[8];
    snprintf(name, sizeof name, "x%u", i);
    in[i] = ct_graph_tensor(
        g, &(struct ct_new_tensor){
               .name = name, .shape = {2, {1, 4}}, .role = i ? CT_ROLE_INPUT : CT_ROLE_WEIGHT});
    sum = i ? ct_graph_add(g,
                           &(struct ct_new_node){
                               .op = "add", .inputs = (int[]){sum, in[i]}, .input_count = 2})
            : in[0];
  }
  if (ct_graph_result(g, sum) < 0 || ct_graph_check(g)) fail_msg("%s", ct_graph_error(g));
  assert_int_equal(ct_open("emu:", &p.dev), CT_OK);
  ok(&p, ct_network_create(p.dev, g, NULL, &p.answers));
  for (unsigned i = 0; i < COUNT; ++i)
    ok(&p, ct_network_write(p.answers, in[i], x, 4));
  ok(&p, ct_network_run(p.answers, CT_INFERENCE, 0));
  ok(&p, ct_network_read(p.answers, sum, y, 4));
  for (unsigned i = 0; i < 4; ++i)
    assert_true(y[i] == COUNT * x[i]);
  REFUSED(&p, CT_ERR_UNSUPPORTED, "it has no frames", ct_frame_create(p.answers, &f));
  assert_null(f);
  ok(&p, ct_network_publish_submit(p.answers, p.answers, NULL, &w, &tag));
  assert_int_equal(wait_for(&p, tag).error, CT_OK);
  REFUSED(&p, CT_ERR_UNSUPPORTED, "more than 12 inputs",
          ct_network_submit(p.answers, &(struct ct_run){.weights = w}, NULL));
  ct_weights_free(w);
  ct_graph_free(g);
  p.steps = NULL;
  close_pair(&p);
}

/* Copies from a network that is laid out in another way do not end those that are under way. */
static void two_networks_publish(void **state) {
  (void)state;
  struct pair p;
  ct_weights *w, *other;
  uint64_t tag;
  float a[CLASSES], b[CLASSES];
  open_pair(&p, "sim:");
  ok(&p, ct_network_publish_submit(p.steps, p.answers, NULL, &w, &tag));
  REFUSED(&p, CT_ERR_BUSY, "another network publishes",
          ct_network_publish_submit(p.answers, p.answers, NULL, &other, NULL));
  assert_int_equal(wait_for(&p, tag).error, CT_OK);
  ok(&p, ct_network_publish_submit(p.answers, p.answers, NULL, &other, &tag));
  assert_int_equal(wait_for(&p, tag).error, CT_OK);
  ask(&p, w, 1, a);
  ask(&p, other, 1, b);
  assert_memory_not_equal(a, b, sizeof a);
  ct_weights_free(w);
  ct_weights_free(other);
  close_pair(&p);
}

/* Runs of the inference queue that change weights are not met by copies; what has ended counts. */
static void steps_of_the_other_queue(void **state) {
  (void)state;
  static const char *const devices[] = {"emu:", "sim:"};
  for (unsigned i = 0; i < 2; ++i) {
    struct pair p;
    ct_weights *w = NULL;
    uint64_t tag;
    open_pair(&p, devices[i]);
    ok(&p, ct_network_submit(p.steps, &(struct ct_run){.queue = CT_INFERENCE}, &tag));
    if (i) { /* emu: has ended it */
      REFUSED(&p, CT_ERR_BUSY, "publish when they have ended",
              ct_network_publish_submit(p.steps, p.answers, NULL, &w, NULL));
      assert_int_equal(wait_for(&p, tag).error, CT_OK);
    }
    ct_weights_free(publish(&p));
    close_pair(&p);
  }
}

/* What has begun keeps its memory, whatever is freed first; what was cancelled says so. */
static void a_cancelled_run(void **state) {
  (void)state;
  struct pair p;
  ct_frame *f[2];
  uint64_t tag[2];
  float loss, y[LABELS] = {0};
  open_pair(&p, "sim:");
  for (unsigned i = 0; i < 2; ++i) {
    ok(&p, ct_frame_create(p.steps, &f[i]));
    write_batch(&p, f[i], i);
    ok(&p, ct_network_submit(
               p.steps, &(struct ct_run){.frame = f[i], .queue = CT_TRAINING, .step = i}, &tag[i]));
  }
  REFUSED(&p, CT_ERR_BUSY, "can be drawn", ct_network_draw(p.steps, 1));
  REFUSED(&p, CT_ERR_BUSY, "written afterwards", ct_frame_write(f[1], p.y, y, LABELS));
  REFUSED(&p, CT_ERR_BUSY, "can be saved", ct_network_save(p.steps, "/nonexistent/x"));
  REFUSED(&p, CT_ERR_BUSY, "publish a version",
          ct_network_submit(p.steps, &(struct ct_run){.queue = CT_INFERENCE}, NULL));
  ok(&p, ct_cancel(p.dev, tag[1]));
  assert_int_equal(wait_for(&p, tag[0]).error, CT_OK);
  const struct ct_event e = wait_for(&p, tag[1]);
  assert_int_equal(e.error, CT_ERR_CANCELLED);
  REFUSED(&p, CT_ERR_CANCELLED, "failed", ct_frame_read(f[1], p.loss, &loss, 1));
  ok(&p, ct_frame_read(f[0], p.loss, &loss, 1));
  ct_frame_free(f[1]);
  ok(&p, ct_network_submit(p.steps, &(struct ct_run){.frame = f[0], .queue = CT_TRAINING}, NULL));
  ct_frame_free(f[0]);
  close_pair(&p);
}

/* A job that fails ends its run, and nothing of it is taken for an answer or for weights. */
static void a_failing_first_job(void **state) {
  (void)state;
  struct pair p;
  ct_frame *f;
  ct_weights *w;
  uint64_t tag;
  uint8_t garbage[CT_CMD_BYTES];
  float logits[CLASSES];
  struct ct_network_info info;
  memset(garbage, 0xff, sizeof garbage);
  open_pair(&p, "emu:");
  w = publish(&p);
  ok(&p, ct_frame_create(p.answers, &f));
  ok(&p, ct_mem_put(p.dev, p.answers->part[0].programs.of[0]->addr, garbage, sizeof garbage));
  ok(&p, ct_network_submit(p.answers, &(struct ct_run){.frame = f, .weights = w}, &tag));
  const struct ct_event e = wait_for(&p, tag);
  assert_int_equal(e.error, CT_ERR_JOB);
  REFUSED(&p, CT_ERR_JOB, "the last run with the frame failed",
          ct_frame_read(f, p.logits, logits, CLASSES));
  ct_frame_free(f);
  ct_weights_free(w);
  ok(&p, ct_mem_put(p.dev, p.answers->copies.programs.of[0]->addr, garbage, sizeof garbage));
  ok(&p, ct_network_publish_submit(p.steps, p.answers, NULL, &w, &tag));
  assert_int_equal(wait_for(&p, tag).error, CT_ERR_JOB);
  REFUSED(&p, CT_ERR_JOB, "never completed",
          ct_network_submit(p.answers, &(struct ct_run){.weights = w}, NULL));
  ct_weights_free(w);
  ok(&p, ct_mem_put(p.dev, p.steps->part[0].programs.of[0]->addr, garbage, sizeof garbage));
  assert_int_equal(ct_network_run(p.steps, CT_TRAINING, 0), CT_ERR_JOB);
  ok(&p, ct_network_submit(p.steps, &(struct ct_run){.queue = CT_TRAINING}, &tag));
  assert_int_equal(wait_for(&p, tag).error, CT_ERR_JOB);
  ok(&p, ct_network_info(p.steps, &info));
  assert_int_equal(info.steps, 0);
  close_pair(&p);
}

/* A run that waits behind submitted ones that hold the whole queue: all of them are steps. */
static void a_full_queue(void **state) {
  (void)state;
  enum { MOST = 200 };
  struct pair p;
  ct_frame *f[MOST];
  uint64_t tag[MOST];
  struct ct_network_info info;
  unsigned count = 0;
  int err = CT_OK;
  open_pair(&p, "emu:");
  for (; !err && count < MOST; count += !err) {
    ok(&p, ct_frame_create(p.steps, &f[count]));
    err = ct_network_submit(
        p.steps, &(struct ct_run){.frame = f[count], .queue = CT_TRAINING, .step = count},
        &tag[count]);
  }
  assert_int_equal(err, CT_ERR_FULL);
  ct_frame_free(f[count]);
  ok(&p, ct_network_run(p.steps, CT_TRAINING, count));
  ok(&p, ct_network_info(p.steps, &info));
  assert_int_equal(info.steps, count + 1);
  for (unsigned i = 0; i < count; ++i) {
    assert_int_equal(wait_for(&p, tag[i]).error, CT_OK);
    ct_frame_free(f[i]);
  }
  close_pair(&p);
}

/* ---- Files --------------------------------------------------------------------------------- */

static char path[64];

static void a_file_goes_on(void **state) {
  (void)state;
  struct pair p;
  float loss[STEPS];
  uint8_t *a, *b;
  size_t a_size, b_size;
  struct ct_network_info info;
  open_pair(&p, "emu:");
  train_alone(&p, loss);
  ct_network_set_epochs(p.steps, 9);
  ok(&p, ct_network_save(p.steps, path));
  ok(&p, ct_file_read(p.dev, path, &a, &a_size));
  ct_network_free(p.steps);
  ok(&p, ct_network_load(p.dev, path, NULL, &p.steps));
  ok(&p, ct_network_info(p.steps, &info));
  assert_true(info.seed == 5 && info.steps == STEPS && info.epochs == 9 && info.changes);
  ok(&p, ct_network_save(p.steps, path));
  ok(&p, ct_file_read(p.dev, path, &b, &b_size));
  assert_int_equal(a_size, b_size);
  assert_memory_equal(a, b, a_size);
  free(a);
  free(b);
  close_pair(&p);
}

/* A small network as a file; its activations kept so. */
static uint8_t *small_file_kept(enum ct_format keep, size_t *size) {
  ct_device *dev;
  ct_network *net;
  ct_graph *g;
  uint8_t *data;
  const struct ct_optimise how = {.schedule = {.rate = 0.05}, .momentum = 0.9};
  assert_int_equal(ct_graph_create(&g), CT_OK);
  assert_int_equal(ct_graph_mlp(g, (const uint32_t[]){3, 4, 2}, 2, 2, true), CT_OK);
  assert_int_equal(ct_graph_optimise(g, ct_graph_find(g, "loss"), &how), CT_OK);
  if (keep != CT_FORMAT_FP32) assert_true(ct_graph_keep(g, CT_ROLE_ACTIVATION, keep) > 0);
  assert_int_equal(ct_graph_check(g), CT_OK);
  assert_int_equal(ct_open("emu:", &dev), CT_OK);
  assert_int_equal(ct_network_create(dev, g, NULL, &net), CT_OK);
  assert_int_equal(net->compiled.kepts > 0, keep == CT_FORMAT_COMPRESSED);
  assert_int_equal(ct_network_draw(net, 2), CT_OK);
  assert_int_equal(ct_network_save(net, path), CT_OK);
  assert_int_equal(ct_file_read(dev, path, &data, size), CT_OK);
  ct_network_free(net);
  ct_close(dev);
  ct_graph_free(g);
  return data;
}

static uint8_t *small_file(size_t *size) {
  return small_file_kept(CT_FORMAT_FP32, size);
}

static int parse(ct_device *dev, const uint8_t *data, size_t size) {
  struct ct_network_file f;
  const int err = ct_network_file_parse(dev, "it", data, size, &f);
  ct_network_file_free(&f);
  return err;
}

static void put_tag(uint8_t *p, const char *tag) {
  for (unsigned i = 0; i < 4; ++i)
    p[i] = (uint8_t)tag[i];
}

static void files_are_refused_by_name(void **state) {
  (void)state;
  size_t size;
  ct_device *dev;
  ct_network *net;
  ct_model *model;
  uint8_t *data = small_file(&size);
  assert_int_equal(ct_open("emu:", &dev), CT_OK);
  const struct pair p = {.dev = dev};
  REFUSED(&p, CT_ERR_FORMAT, "ct_network_load()", ct_model_load(dev, path, &model));
  assert_int_equal(parse(dev, data, size), CT_OK);
  for (size_t n = 0; n < size; ++n)
    assert_int_equal(parse(dev, data, n), CT_ERR_FORMAT);
  data[40] ^= 1;
  REFUSED(&p, CT_ERR_FORMAT, "checksum", parse(dev, data, size));
  data[40] ^= 1;
  put_tag(data + 16, "LOST");
  ct_file_seal(data, size);
  REFUSED(&p, CT_ERR_FORMAT, "INFO is missing", parse(dev, data, size));
  put_tag(data + 16, "INFO");
  data[8] = 1;
  REFUSED(&p, CT_ERR_FORMAT, "claims", parse(dev, data, size));
  data[8] = 3;
  REFUSED(&p, CT_ERR_FORMAT, "reads 1 and 2", parse(dev, data, size));
  data[8] = 2;
  uint8_t *more = calloc(size + 12, 1); /* a chunk that may be skipped, and one that may not */
  memcpy(more, data, size - 4);
  put_tag(more + size - 4, "note");
  ct_file_seal(more, size + 12);
  assert_int_equal(parse(dev, more, size + 12), CT_OK);
  more[size - 4] = 'N';
  ct_file_seal(more, size + 12);
  REFUSED(&p, CT_ERR_FORMAT, "a chunk more", parse(dev, more, size + 12));
  assert_int_equal(ct_network_load(dev, "/nonexistent/x", NULL, &net), CT_ERR_NOT_FOUND);
  REFUSED(&p, CT_ERR_FORMAT, "not a model file", ct_network_load(dev, "/dev/zero", NULL, &net));
  free(more);
  free(data);
  ct_close(dev);
}

/* Numbers of the chunk `kept` that make no sense, and two of it. */
static void bounds_are_refused_by_name(void **state) {
  (void)state;
  static const struct {
    size_t at;
    unsigned bytes;
    uint64_t value;
  } wrong[] = {{4, 8, 23},                   /* too short */
               {12, 8, 0x7ff8000000000000u}, /* an error of NaN */
               {12, 8, 0xbff0000000000000u}, /* of -1 */
               {12, 8, 0x4000000000000000u}, /* of 2 */
               {20, 4, 0},                   /* a look each 0 steps */
               {24, 4, 0},                   /* pages for no bits */
               {24, 4, 13},                  /* for more than there can be */
               {32, 4, 0},                   /* no tensors, but one is there */
               {32, 4, UINT32_MAX},          /* more than there are */
               {44, 4, 255},                 /* K */
               {48, 4, UINT32_MAX},          /* the length of a name */
               {48, 4, 0}};
  size_t size, at = 0;
  ct_device *dev;
  uint8_t *data = small_file_kept(CT_FORMAT_COMPRESSED, &size);
  assert_int_equal(ct_open("emu:", &dev), CT_OK);
  const struct pair p = {.dev = dev};
  assert_int_equal(parse(dev, data, size), CT_OK);
  while (memcmp(data + at, "kept", 4) != 0)
    ++at;
  const size_t chunk = size - 4 - at;
  uint8_t *copy = malloc(size + chunk);
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
    memcpy(copy, data, size);
    ct_file_put(copy + at + wrong[i].at, wrong[i].value, wrong[i].bytes);
    ct_file_seal(copy, size);
    REFUSED(&p, CT_ERR_FORMAT, i ? "chunk kept makes no sense" : "damaged", parse(dev, copy, size));
  }
  memcpy(copy, data, size);
  memcpy(copy + size - 4, data + at, chunk);
  ct_file_seal(copy, size + chunk);
  REFUSED(&p, CT_ERR_FORMAT, "chunk kept is there twice", parse(dev, copy, size + chunk));
  memcpy(copy, data, size);
  ct_file_seal(copy, at + 4);
  assert_int_equal(parse(dev, copy, at + 4), CT_OK); /* none: of an older release */
  free(copy);
  free(data);
  ct_close(dev);
}

/* The same of a model. */
static uint8_t *small_model(size_t *size) {
  ct_device *dev;
  ct_model *m;
  uint8_t *data;
  const struct ct_training how = {.batch = 2, .rates = {.lr = 0.05f, .momentum = 0.9f}};
  assert_int_equal(ct_open("emu:", &dev), CT_OK);
  assert_int_equal(ct_model_create(dev, (const uint32_t[]){3, 4, 2}, 2, 2, &m), CT_OK);
  assert_int_equal(ct_model_training(m, &how), CT_OK);
  assert_int_equal(ct_model_save(m, path), CT_OK);
  assert_int_equal(ct_file_read(dev, path, &data, size), CT_OK);
  ct_model_free(m);
  ct_close(dev);
  return data;
}

/* NaN is no weight: neither written, nor in a file. */
static void weights_are_numbers(void **state) {
  (void)state;
  struct pair p = {.dev = NULL};
  const float mark = 96; /* exact in HBFP8 */
  uint8_t *data, want[4];
  size_t size, at = 0;
  ct_graph *g;
  ok(&p, ct_open("emu:", &p.dev));
  ok(&p, ct_graph_create(&g));
  ok(&p, ct_graph_builtin(g, "lenet5", 1, false));
  ok(&p, ct_graph_check(g));
  ok(&p, ct_network_create(p.dev, g, NULL, &p.steps));
  const int weight = ct_graph_find(g, "conv2.weight");
  const size_t count = (size_t)g->tensor[weight]->elements;
  float *x = calloc(count, sizeof *x);
  x[5] = NAN;
  REFUSED(&p, CT_ERR_ARG, "weight conv2.weight of node conv2 has NaN",
          ct_network_write(p.steps, weight, x, count));
  x[5] = mark;
  ok(&p, ct_network_write(p.steps, weight, x, count));
  ok(&p, ct_network_save(p.steps, path));
  ok(&p, ct_file_read(p.dev, path, &data, &size));
  ct_file_put(want, ct_bits_of(mark), sizeof want);
  while (at + sizeof want < size && memcmp(data + at, want, sizeof want))
    ++at;
  ct_file_put(data + at, 0x7fc00000, 4);
  ct_file_seal(data, size);
  ok(&p, ct_file_write(p.dev, path, data, size));
  /* Whoever is refused has changed nothing: the weights in front of it stay. */
  const int first = ct_graph_find(g, "conv1.weight");
  const size_t firsts = (size_t)g->tensor[first]->elements;
  float *mine = calloc(firsts, sizeof *mine), *kept = calloc(firsts, sizeof *kept);
  mine[0] = 3;
  ok(&p, ct_network_write(p.steps, first, mine, firsts));
  REFUSED(&p, CT_ERR_FORMAT, "weight conv2.weight has NaN", ct_network_restore(p.steps, path));
  ok(&p, ct_network_read(p.steps, first, kept, firsts));
  assert_memory_equal(kept, mine, firsts * sizeof *mine);
  free(mine);
  free(kept);
  ct_network_free(p.steps);
  REFUSED(&p, CT_ERR_FORMAT, "weight conv2.weight has NaN",
          ct_network_load(p.dev, path, NULL, &p.steps));
  assert_null(p.steps);
  free(data);
  free(x);
  ct_graph_free(g);
  ct_close(p.dev);
}

static void models_are_refused_by_name(void **state) {
  enum { BATCH = 20, RATE = 48 };
  (void)state;
  size_t size;
  ct_device *dev;
  uint8_t *data = small_model(&size);
  assert_int_equal(ct_open("emu:", &dev), CT_OK);
  const struct pair p = {.dev = dev};
  assert_int_equal(parse(dev, data, size), CT_OK);
  for (size_t n = 0; n < size; ++n)
    assert_int_equal(parse(dev, data, n), CT_ERR_FORMAT);
  ct_file_put(data + RATE, 0x7fc00000, 4); /* NaN */
  ct_file_seal(data, size);
  REFUSED(&p, CT_ERR_FORMAT, "says a learning rate of nan, a momentum of 0.9",
          parse(dev, data, size));
  ct_file_put(data + RATE, 0, 4);
  ct_file_put(data + BATCH, 1 << 30, 4);
  ct_file_seal(data, size);
  REFUSED(&p, CT_ERR_FORMAT, "says steps of 1073741824 rows", parse(dev, data, size));
  ct_file_put(data + RATE, 0, 4);
  ct_file_put(data + BATCH, 0, 4);
  ct_file_put(data + size - 8, 0x7fc00000, 4); /* its last number */
  ct_file_seal(data, size);
  REFUSED(&p, CT_ERR_FORMAT, "has NaN among its weights, biases and velocities",
          parse(dev, data, size));
  ct_file_put(data + size - 8, 0, 4);
  ct_file_put(data + BATCH, 1 << 30, 4);
  ct_file_put(data + RATE, 0x7fc00000, 4); /* of both the first */
  ct_file_seal(data, size);
  REFUSED(&p, CT_ERR_FORMAT, "says steps of 1073741824 rows", parse(dev, data, size));
  free(data);
  ct_close(dev);
}

/* Mutated files with a right checksum: refused with a sentence, or another network; CT_FUZZ_FILES
 * says how many. */
static void mutate_files(uint8_t *data, size_t size) {
  const char *text = getenv("CT_FUZZ_FILES");
  const unsigned long count = text ? strtoul(text, NULL, 10) : 3000;
  ct_device *dev;
  uint8_t *copy = malloc(size);
  ct_rng rng = ct_rng_make(1);
  unsigned long good = 0;
  assert_int_equal(ct_open("emu:", &dev), CT_OK);
  for (unsigned long i = 0; i < count; ++i) {
    memcpy(copy, data, size);
    size_t n = size;
    for (uint32_t k = ct_rng_below(&rng, 4) + 1; k; --k)
      copy[16 + ct_rng_below(&rng, (uint32_t)size - 20)] =
          (uint8_t)(ct_rng_below(&rng, 2) ? ct_rng_below(&rng, 256) : 255 * ct_rng_below(&rng, 2));
    if (ct_rng_below(&rng, 8) == 0) n = 20 + ct_rng_below(&rng, (uint32_t)size - 20);
    ct_file_seal(copy, n);
    const int err = parse(dev, copy, n);
    if (err && (err != CT_ERR_FORMAT || !*ct_last_error(dev)))
      fail_msg("file %lu: error %d, \"%s\"", i, err, ct_last_error(dev));
    good += !err;
  }
  assert_in_range(good, 1, count - 1);
  free(copy);
  free(data);
  ct_close(dev);
}

static void mutated_files(void **state) {
  (void)state;
  size_t size;
  uint8_t *data = small_file(&size);
  mutate_files(data, size);
  data = small_model(&size);
  mutate_files(data, size);
  data = small_file_kept(CT_FORMAT_COMPRESSED, &size);
  mutate_files(data, size);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(answers_are_the_network_by_name),
      cmocka_unit_test(answers_are_refused),
      cmocka_unit_test(version_is_the_weights),
      cmocka_unit_test(serves_beside_training),
      CT_PLAIN_TEST(serves_beside_training_simulated),
      CT_PLAIN_TEST(runs_keep_their_bound),
      cmocka_unit_test(dropout_ahead),
      cmocka_unit_test(version_moves),
      cmocka_unit_test(frames_are_guarded),
      cmocka_unit_test(weights_are_guarded),
      cmocka_unit_test(shapes_must_agree),
      cmocka_unit_test(unread_inputs),
      cmocka_unit_test(a_crowded_network),
      cmocka_unit_test(two_networks_publish),
      cmocka_unit_test(steps_of_the_other_queue),
      cmocka_unit_test(a_cancelled_run),
      cmocka_unit_test(a_failing_first_job),
      cmocka_unit_test(a_full_queue),
      cmocka_unit_test(a_file_goes_on),
      cmocka_unit_test(files_are_refused_by_name),
      cmocka_unit_test(bounds_are_refused_by_name),
      cmocka_unit_test(models_are_refused_by_name),
      cmocka_unit_test(weights_are_numbers),
      cmocka_unit_test(mutated_files),
  };
  snprintf(path, sizeof path, "/tmp/ct-network-%ld.ctm", (long)getpid());
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  unlink(path);
  return failed;
}
