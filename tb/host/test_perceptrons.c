/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Perceptrons as graphs: what they compile to are the programs of a model, so bytes and cycles are
 * a model's; what is no perceptron stays with the kernels; weights go between the two.
 */
#include "ct_tb.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "coltrain/network.h"
#include "ct_network.h"
#include "ct_compile.h"
#include "ct_racecheck.h"

enum { MOST_LAYERS = 4, SPM = 32768 };
static const float kRate = 0.05f, kMomentum = 0.9f, kDecay = 0.001f;

/* A perceptron, and the numbers that go into it. */
struct shape {
  uint32_t layers, width[MOST_LAYERS + 1], batch;
};
struct numbers {
  float *x, *y;
  uint32_t *label;
};

static uint32_t inputs(const struct shape *s) {
  return s->width[0];
}
static uint32_t classes(const struct shape *s) {
  return s->width[s->layers];
}

static struct shape draw_shape(ct_rng *rng, uint32_t widest) {
  struct shape s = {.layers = 1 + ct_rng_below(rng, MOST_LAYERS)};
  for (uint32_t l = 0; l <= s.layers; ++l)
    s.width[l] = 1 + ct_rng_below(rng, widest);
  s.batch = 1 + ct_rng_below(rng, 40);
  return s;
}

static struct numbers draw_numbers(const struct shape *s, ct_rng *rng) {
  const size_t in = (size_t)s->batch * inputs(s), out = (size_t)s->batch * classes(s);
  struct numbers n = {calloc(in, sizeof *n.x), calloc(out, sizeof *n.y),
                      calloc(s->batch, sizeof *n.label)};
  assert_true(n.x && n.y && n.label);
  for (size_t i = 0; i < in; ++i)
    n.x[i] = ((float)ct_rng_below(rng, 2001) - 800.0f) * 1e-3f;
  for (uint32_t i = 0; i < s->batch; ++i) {
    n.label[i] = ct_rng_below(rng, classes(s));
    n.y[(size_t)i * classes(s) + n.label[i]] = 1;
  }
  return n;
}

static void free_numbers(const struct numbers *n) {
  free(n->x);
  free(n->y);
  free(n->label);
}

/* ---- Graphs -------------------------------------------------------------------------------- */

static void must(ct_graph *g, int rc) {
  if (rc < 0) fail_msg("%s", ct_graph_error(g));
}

static const struct ct_optimise kSgd = {
    .schedule = {.rate = 0.05f}, .momentum = 0.9f, .weight_decay = 0.001f};

static ct_graph *answering(const struct shape *s, uint32_t rows) {
  ct_graph *g;
  assert_int_equal(ct_graph_create(&g), CT_OK);
  must(g, ct_graph_mlp(g, s->width, s->layers, rows, false));
  must(g, ct_graph_check(g));
  return g;
}

static int node(ct_graph *g, const char *op, const char *name, const int *in, size_t count) {
  const int y = ct_graph_add(
      g, &(struct ct_new_node){.op = op, .name = name, .inputs = in, .input_count = count});
  must(g, y);
  return y;
}

/* As ct_graph_mlp() makes it, but for names, the order in which things are declared, and what is
 * asked for: the loss alone. */
static ct_graph *trained_without_logits(const struct shape *s, const struct ct_optimise *how) {
  ct_graph *g;
  char name[32];
  assert_int_equal(ct_graph_create(&g), CT_OK);
  const int y = ct_graph_tensor(
      g, &(struct ct_new_tensor){
             .name = "wanted", .role = CT_ROLE_LABEL, .shape = {2, {s->batch, classes(s)}}});
  int x = ct_graph_tensor(
      g, &(struct ct_new_tensor){
             .name = "given", .role = CT_ROLE_INPUT, .shape = {2, {s->batch, inputs(s)}}});
  for (uint32_t l = 0; l < s->layers; ++l) {
    snprintf(name, sizeof name, "b%u", l);
    const int b = ct_graph_tensor(
        g, &(struct ct_new_tensor){
               .name = name, .role = CT_ROLE_WEIGHT, .shape = {1, {s->width[l + 1]}}});
    snprintf(name, sizeof name, "w%u", l);
    const int w =
        ct_graph_tensor(g, &(struct ct_new_tensor){.name = name,
                                                   .role = CT_ROLE_WEIGHT,
                                                   .initial = CT_INITIAL_HE,
                                                   .shape = {2, {s->width[l + 1], s->width[l]}}});
    if (l) x = node(g, "relu", NULL, &x, 1);
    x = node(g, "linear", NULL, (const int[]){x, w, b}, 3);
  }
  const int loss = node(g, "cross_entropy", "error", (const int[]){x, y}, 2);
  must(g, ct_graph_result(g, loss));
  must(g, ct_graph_optimise(g, loss, how));
  must(g, ct_graph_check(g));
  return g;
}

static ct_graph *trained(const struct shape *s, const struct ct_optimise *how) {
  ct_graph *g;
  assert_int_equal(ct_graph_create(&g), CT_OK);
  must(g, ct_graph_mlp(g, s->width, s->layers, s->batch, true));
  must(g, ct_graph_optimise(g, ct_graph_find(g, "loss"), how));
  must(g, ct_graph_check(g));
  return g;
}

/* ---- Programs ------------------------------------------------------------------------------ */

static struct ct_mlp mlp_of(const struct shape *s) {
  struct ct_mlp net = {.layers = s->layers};
  memcpy(net.width, s->width, sizeof s->width);
  return net;
}

static void same_programs_by(const struct ct_codes *want, const ct_graph *g,
                             const struct ct_compile_options *options) {
  struct ct_compiled c;
  if (ct_compile(g, options, &c)) fail_msg("%s", c.why);
  assert_int_equal(c.stages, 1);
  assert_int_equal(c.stage[0].codes.count, want->count);
  for (size_t i = 0; i < want->count; ++i) {
    const struct ct_code *a = &want->job[i], *b = &c.stage[0].codes.job[i];
    assert_int_equal(a->count, b->count);
    assert_memory_equal(a->cmd, b->cmd, a->count * sizeof *a->cmd);
  }
  ct_compiled_free(&c);
}

static void same_programs(const struct ct_codes *want, const ct_graph *g, uint32_t window) {
  same_programs_by(want, g, &(struct ct_compile_options){.spm_words = window});
}

/* Those of a model, command by command: so it takes the same cycles, whatever it runs on. */
static void test_programs_are_those_of_models(void **state) {
  (void)state;
  ct_rng rng = ct_rng_make(1);
  for (int i = 0, draws = ct_tb_draws(40); i < draws; ++i) {
    const struct shape s = draw_shape(&rng, ct_rng_below(&rng, 2) ? 60 : 300);
    const struct ct_mlp net = mlp_of(&s);
    const uint32_t all = 1 + ct_rng_below(&rng, 64), passes = (all + 15) / 16;
    const uint32_t rows = (all + passes - 1) / passes;
    const uint32_t window = ct_rng_below(&rng, 3) ? SPM : 300 + ct_rng_below(&rng, 3000);
    struct ct_code code;
    struct ct_codes codes;
    uint64_t work;
    ct_graph *g = answering(&s, all);
    const struct ct_infer infer = {.net = &net, .rows = rows, .spm_words = window, .work = &work};
    if (!ct_prog_infer(&infer, &code, NULL)) {
      same_programs(&(struct ct_codes){&code, 1}, g, window);
      free(code.cmd);
    }
    ct_graph_free(g);
    g = trained_without_logits(&s, &kSgd);
    const struct ct_train train = {.net = &net, .batch = s.batch, .spm_words = window};
    assert_int_equal(ct_prog_step(&train, &codes, &work, NULL), CT_OK);
    same_programs(&codes, g, window);
    ct_codes_free(&codes);
    ct_graph_free(g);
  }
}

/* A model's steps: of more rows than others, and such as keep their gradients. */
static void test_programs_for_models(void **state) {
  (void)state;
  ct_rng rng = ct_rng_make(2);
  for (unsigned i = 0, draws = (unsigned)ct_tb_draws(12); i < draws; ++i) {
    const bool many = i % 4 == 3;
    struct shape s = draw_shape(&rng, many ? 4 : 60);
    if (many) s.layers = 1, s.batch = 4097 + ct_rng_below(&rng, 2000);
    const struct ct_mlp net = mlp_of(&s);
    const enum ct_gradients gradients = (enum ct_gradients)(i % 3);
    const struct ct_compile_options options = {.spm_words = SPM,
                                               .model = (enum ct_model_job)(CT_MODEL_RUN + i % 3)};
    const struct ct_train train = {
        .net = &net, .batch = s.batch, .spm_words = SPM, .gradients = gradients};
    struct ct_codes codes;
    uint64_t work;
    ct_graph *g = trained_without_logits(&s, &kSgd);
    assert_int_equal(ct_prog_step(&train, &codes, &work, NULL), CT_OK);
    same_programs_by(&codes, g, &options);
    ct_codes_free(&codes);
    ct_graph_free(g);
  }
}

/* ---- What is none -------------------------------------------------------------------------- */

static bool is_one(ct_graph *g, unsigned narrow) {
  const struct ct_compile_options options = {.spm_words = SPM, .narrow = narrow, .walks = true};
  struct ct_compiled c;
  if (ct_compile(g, &options, &c)) assert_non_null(strstr(c.why, "cannot run on the device"));
  const bool one = c.stages == 1 && strstr(c.stage[0].op, "perceptron");
  ct_compiled_free(&c);
  ct_graph_free(g);
  return one;
}

static const struct shape kSmall = {.layers = 2, .width = {20, 33, 7}, .batch = 9};

/* kSmall with something else in it. */
struct other {
  const char *act, *loss;
  bool no_bias, other_output, shared, extra, kept;
};

static ct_graph *other_graph(const struct other *o) {
  const struct shape *s = &kSmall;
  ct_graph *g;
  assert_int_equal(ct_graph_create(&g), CT_OK);
  const uint32_t hidden = o->shared ? s->width[0] : s->width[1];
  const uint32_t last = o->shared ? s->width[0] : s->width[2];
  const int x = ct_graph_tensor(g, &(struct ct_new_tensor){.name = "x", .shape = {2, {9, 20}}});
  const int w = ct_graph_tensor(
      g, &(struct ct_new_tensor){.name = "w", .role = CT_ROLE_WEIGHT, .shape = {2, {hidden, 20}}});
  const int b = ct_graph_tensor(
      g, &(struct ct_new_tensor){.name = "b", .role = CT_ROLE_WEIGHT, .shape = {1, {hidden}}});
  const int v = ct_graph_tensor(
      g,
      &(struct ct_new_tensor){.name = "v", .role = CT_ROLE_WEIGHT, .shape = {2, {last, hidden}}});
  const int d = ct_graph_tensor(
      g, &(struct ct_new_tensor){.name = "d", .role = CT_ROLE_WEIGHT, .shape = {1, {last}}});
  int t = node(g, "linear", NULL, (const int[]){x, w, b}, o->no_bias ? 2 : 3);
  t = node(g, o->act ? o->act : "relu", NULL, &t, 1);
  if (o->other_output) must(g, ct_graph_result(g, t));
  if (o->kept) must(g, ct_graph_set_format(g, t, CT_FORMAT_HBFP8));
  t = node(g, "linear", NULL, (const int[]){t, o->shared ? w : v, d}, 3);
  if (o->extra) t = node(g, "softmax", NULL, &t, 1);
  must(g, ct_graph_result(g, t));
  if (o->loss) {
    const int y = ct_graph_tensor(
        g, &(struct ct_new_tensor){.name = "y", .role = CT_ROLE_LABEL, .shape = {2, {9, last}}});
    const int loss = node(g, o->loss, NULL, (const int[]){t, y}, 2);
    must(g, ct_graph_result(g, loss));
    must(g, ct_graph_optimise(g, loss, &kSgd));
  }
  must(g, ct_graph_check(g));
  return g;
}

/* A layer whose outputs nobody asks for. */
static ct_graph *nothing_asked(void) {
  ct_graph *g;
  assert_int_equal(ct_graph_create(&g), CT_OK);
  const int in[] = {
      ct_graph_tensor(g, &(struct ct_new_tensor){.name = "x", .shape = {2, {4, 16}}}),
      ct_graph_tensor(
          g, &(struct ct_new_tensor){.name = "w", .role = CT_ROLE_WEIGHT, .shape = {2, {8, 16}}})};
  node(g, "linear", NULL, in, 2);
  must(g, ct_graph_check(g));
  return g;
}

static void test_what_is_no_perceptron(void **state) {
  (void)state;
  assert_true(is_one(other_graph(&(struct other){.act = "relu"}), 0));
  assert_true(is_one(other_graph(&(struct other){.loss = "cross_entropy"}), 0));
  assert_false(is_one(other_graph(&(struct other){.act = "relu"}), 4));
  assert_false(is_one(other_graph(&(struct other){.act = "tanh"}), 0));
  assert_false(is_one(other_graph(&(struct other){.act = "dropout"}), 0));
  assert_false(is_one(other_graph(&(struct other){.act = "tanh", .loss = "cross_entropy"}), 0));
  assert_false(is_one(other_graph(&(struct other){.loss = "mse"}), 0));
  assert_false(is_one(other_graph(&(struct other){.no_bias = true}), 0));
  assert_false(is_one(other_graph(&(struct other){.no_bias = true, .loss = "cross_entropy"}), 0));
  assert_false(is_one(other_graph(&(struct other){.other_output = true}), 0));
  assert_false(
      is_one(other_graph(&(struct other){.other_output = true, .loss = "cross_entropy"}), 0));
  assert_false(is_one(other_graph(&(struct other){.shared = true}), 0));
  assert_false(is_one(other_graph(&(struct other){.shared = true, .loss = "cross_entropy"}), 0));
  assert_false(is_one(other_graph(&(struct other){.extra = true}), 0));
  assert_false(is_one(other_graph(&(struct other){.kept = true}), 0));
  assert_false(is_one(other_graph(&(struct other){.kept = true, .loss = "cross_entropy"}), 0));
  assert_true(is_one(answering(&kSmall, 64), 0));
  assert_false(is_one(answering(&kSmall, 65), 0));
  assert_false(is_one(nothing_asked(), 0));
}

static ct_graph *rebuilt(double momentum, double decay) {
  struct ct_optimise how = kSgd;
  how.momentum = momentum;
  how.weight_decay = decay;
  return trained(&kSmall, &how);
}

static void test_ways_to_train(void **state) {
  (void)state;
  struct ct_optimise how = kSgd;
  assert_true(is_one(trained(&kSmall, &how), 0));
  assert_false(is_one(trained(&kSmall, &how), 2));
  assert_true(is_one(rebuilt(0, 0), 0));
  how.schedule = (struct ct_schedule){
      .rate = 0.1, .kind = CT_SCHEDULE_COSINE, .warmup = 3, .period = 10, .floor = 0.01};
  assert_true(is_one(trained(&kSmall, &how), 0));
  how.accumulate = 2;
  assert_false(is_one(trained(&kSmall, &how), 0));
  how.accumulate = 1;
  assert_true(is_one(trained(&kSmall, &how), 0));
  how.clip = 1;
  assert_false(is_one(trained(&kSmall, &how), 0));
  how = (struct ct_optimise){.optimiser = CT_OPTIMISER_ADAM, .schedule = {.rate = 0.01}};
  assert_false(is_one(trained(&kSmall, &how), 0));
  ct_graph *g; /* gradients, but nothing that is done with them */
  assert_int_equal(ct_graph_create(&g), CT_OK);
  must(g, ct_graph_mlp(g, kSmall.width, kSmall.layers, 4, true));
  must(g, ct_graph_gradients(g, ct_graph_find(g, "loss"), NULL, 0));
  must(g, ct_graph_check(g));
  assert_false(is_one(g, 0));
}

/* ---- Devices ------------------------------------------------------------------------------- */

static void ok(ct_device *dev, int rc) {
  if (rc < 0) fail_msg("%s", ct_last_error(dev));
}

static ct_network *put(ct_device *dev, ct_graph *g) {
  ct_network *n;
  ok(dev, ct_network_create(dev, g, NULL, &n));
  return n;
}

static int find(ct_network *n, const char *name) {
  const int t = ct_graph_find(ct_network_graph(n), name);
  assert_true(t > 0);
  return t;
}

static size_t size_of(ct_network *n, int tensor) {
  struct ct_tensor_info info;
  assert_int_equal(ct_graph_tensor_info(ct_network_graph(n), tensor, &info), CT_OK);
  return info.elements;
}

static void put_in(ct_device *dev, ct_network *n, const char *name, const float *x) {
  const int t = find(n, name);
  ok(dev, ct_network_write(n, t, x, size_of(n, t)));
}

/* To be freed. */
static float *read_all(ct_device *dev, ct_network *n, const char *name) {
  const int t = find(n, name);
  float *x = malloc(size_of(n, t) * sizeof *x);
  assert_non_null(x);
  ok(dev, ct_network_read(n, t, x, size_of(n, t)));
  return x;
}

static void same_tensor(ct_device *dev, ct_network *n, const char *name, const float *want) {
  float *x = read_all(dev, n, name);
  ct_assert_same(name, (const uint8_t *)x, (const uint8_t *)want,
                 size_of(n, find(n, name)) * sizeof *x);
  free(x);
}

static struct ct_event wait_for(ct_device *dev, uint64_t tag) {
  struct ct_event e;
  ok(dev, ct_wait(dev, tag, &e, CT_FOREVER));
  assert_int_equal(e.error, CT_OK);
  return e;
}

static ct_weights *publish(ct_device *dev, ct_network *from, ct_network *to) {
  ct_weights *w;
  uint64_t tag;
  ok(dev, ct_network_publish_submit(from, to, NULL, &w, &tag));
  wait_for(dev, tag);
  return w;
}

/* Cycles of the one and the other; where things lie in memory costs a burst here and there. */
static void same_cycles(ct_device *dev, const struct ct_event *a, const struct ct_event *b) {
  struct ct_info info;
  assert_int_equal(ct_info(dev, &info), CT_OK);
  if (!info.has_clock) return;
  const uint64_t x = a->end - a->start, y = b->end - b->start;
  print_message("%llu cycles, %llu\n", (unsigned long long)x, (unsigned long long)y);
  assert_in_range(y, x - x / 50 - 8, x + x / 50 + 8);
}

/* ---- Beside a model ------------------------------------------------------------------------ */

static ct_model *make_model(ct_device *dev, const struct shape *s) {
  ct_model *m;
  ok(dev, ct_model_create(dev, s->width, s->layers, 7, &m));
  return m;
}

static void same_layers(ct_device *dev, ct_model *m, ct_network *n, const struct shape *s) {
  static const char *const part[] = {".weight", ".bias", ".weight.momentum", ".bias.momentum"};
  for (uint32_t l = 0; l < s->layers; ++l) {
    const size_t out = s->width[l + 1], all = out * s->width[l];
    float *x[4];
    for (unsigned i = 0; i < 4; ++i) {
      x[i] = malloc((i % 2 ? out : all) * sizeof **x);
      assert_non_null(x[i]);
    }
    ok(dev, ct_model_get(m, l, x[0], x[1], x[2], x[3]));
    for (unsigned i = 0; i < 4; ++i) {
      char name[64];
      snprintf(name, sizeof name, "fc%u%s", l + 1, part[i]);
      if (l + 1 == s->layers) snprintf(name, sizeof name, "logits%s", part[i]);
      same_tensor(dev, n, name, x[i]);
      free(x[i]);
    }
  }
}

/* Three steps, each with the same event. */
static void compare_steps(ct_device *dev, const struct shape *s, ct_rng *rng) {
  ct_model *m = make_model(dev, s);
  ct_graph *g = trained(s, &kSgd);
  ct_network *n = put(dev, g);
  ct_batch *batch;
  const struct ct_training how = {
      .batch = s->batch, .rates = {.lr = kRate, .momentum = kMomentum, .weight_decay = kDecay}};
  ok(dev, ct_model_training(m, &how));
  ok(dev, ct_network_draw(n, 7));
  ok(dev, ct_batch_create(m, &batch));
  for (uint64_t step = 0; step < 3; ++step) {
    const struct numbers d = draw_numbers(s, rng);
    uint64_t tag[2];
    float loss;
    ok(dev, ct_batch_write(batch, d.x, d.label));
    put_in(dev, n, "x", d.x);
    put_in(dev, n, "y", d.y);
    ok(dev, ct_model_step_submit(m, &(struct ct_step){.batch = batch}, &tag[0]));
    const struct ct_event a = wait_for(dev, tag[0]);
    ok(dev, ct_network_submit(n, &(struct ct_run){.queue = CT_TRAINING, .step = step}, &tag[1]));
    const struct ct_event b = wait_for(dev, tag[1]);
    if (step) same_cycles(dev, &a, &b);
    ok(dev, ct_batch_loss(batch, &loss));
    same_tensor(dev, n, "loss", &loss);
    free_numbers(&d);
  }
  same_layers(dev, m, n, s);
  ct_network_free(n);
  ct_graph_free(g);
  ct_batch_free(batch);
  ct_model_free(m);
}

static void compare_answers(ct_device *dev, const struct shape *s, uint32_t rows, ct_rng *rng) {
  ct_model *m = make_model(dev, s);
  ct_graph *g = answering(s, rows);
  ct_network *n = put(dev, g);
  struct shape asked = *s;
  asked.batch = rows;
  const struct numbers d = draw_numbers(&asked, rng);
  float *want = malloc((size_t)rows * classes(s) * sizeof *want);
  struct ct_request r = {.count = rows};
  struct ct_event a = {0}, b = {0};
  ok(dev, ct_network_draw(n, 7));
  ok(dev, ct_rows_create(m, rows, &r.rows));
  ok(dev, ct_answers_create(m, rows, &r.answers));
  ok(dev, ct_rows_write(r.rows, 0, rows, d.x));
  put_in(dev, n, "x", d.x);
  for (int i = 0; i < 2; ++i) {
    uint64_t tag[2];
    ok(dev, ct_model_infer_submit(m, &r, &tag[0]));
    a = wait_for(dev, tag[0]);
    ok(dev, ct_network_submit(n, &(struct ct_run){.queue = CT_INFERENCE}, &tag[1]));
    b = wait_for(dev, tag[1]);
  }
  same_cycles(dev, &a, &b);
  ok(dev, ct_answers_read(r.answers, 0, rows, want));
  same_tensor(dev, n, "logits", want);
  free(want);
  free_numbers(&d);
  ct_rows_free(r.rows);
  ct_answers_free(r.answers);
  ct_network_free(n);
  ct_graph_free(g);
  ct_model_free(m);
}

/* More rows than a program takes: the bits of so many asked for one by one, by frames, too. */
static void compare_passes(ct_device *dev, const struct shape *s, uint32_t rows, ct_rng *rng) {
  ct_model *m = make_model(dev, s);
  ct_graph *g = answering(s, rows);
  ct_network *n = put(dev, g);
  struct shape asked = *s;
  asked.batch = rows;
  const struct numbers d = draw_numbers(&asked, rng);
  const size_t count = (size_t)rows * classes(s);
  float *want = malloc(count * sizeof *want), *got = malloc(count * sizeof *got);
  struct ct_network_info info;
  struct ct_network_stage stage;
  ct_frame *frame;
  uint64_t tag[2];
  assert_true(want && got);
  ok(dev, ct_network_draw(n, 7));
  for (uint32_t i = 0; i < rows; ++i)
    ok(dev, ct_model_infer(m, NULL, d.x + (size_t)i * inputs(s), 1, want + (size_t)i * classes(s)));
  ok(dev, ct_network_info(n, &info));
  if (ct_network_stages(n) == 1) { /* in a small window kernels may take them */
    assert_int_equal(info.jobs, (rows + 15) / 16);
    ok(dev, ct_network_stage(n, 0, &stage));
    assert_int_equal(stage.jobs, info.jobs);
    assert_int_equal(info.inputs, inputs(s));
  }
  put_in(dev, n, "x", d.x);
  ok(dev, ct_network_run(n, CT_INFERENCE, 0));
  same_tensor(dev, n, "logits", want);
  ok(dev, ct_frame_create(n, &frame));
  ok(dev, ct_frame_write(frame, find(n, "x"), d.x, (size_t)rows * inputs(s)));
  for (unsigned i = 0; i < 2; ++i) /* passes of one run behind those of another */
    ok(dev, ct_network_submit(n, &(struct ct_run){.frame = i ? NULL : frame}, &tag[i]));
  for (unsigned i = 0; i < 2; ++i)
    wait_for(dev, tag[i]);
  same_tensor(dev, n, "logits", want);
  ok(dev, ct_frame_read(frame, find(n, "logits"), got, count));
  ct_assert_same("logits of a frame", (uint8_t *)got, (uint8_t *)want, count * sizeof *want);
  ct_frame_free(frame);
  free(want);
  free(got);
  free_numbers(&d);
  ct_network_free(n);
  ct_graph_free(g);
  ct_model_free(m);
}

static void test_passes(void **state) {
  (void)state;
  static const char *const uris[] = {"emu:", "emu:spm=2048",  "emu:spm=512",
                                     "sim:", "sim:core=16x8", "sim:stall=80,seed=5"};
  static const uint32_t rows[] = {17, 31, 33, 48, 63, 64};
  ct_rng rng = ct_rng_make(9);
  for (size_t i = 0; i < sizeof uris / sizeof *uris; ++i) {
    ct_device *dev;
    if (ct_open(uris[i], &dev)) fail_msg("%s", ct_last_error(NULL));
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k += i < 3 ? 1 : 3) {
      const struct shape s = draw_shape(&rng, i < 3 ? 200 : 60);
      compare_passes(dev, &s, rows[k], &rng);
    }
    ct_close(dev);
  }
}

/* On the core the passes of a run follow each other: they take less than a request each. */
static void test_passes_take_no_longer(void **state) {
  (void)state;
  const struct shape s = {.layers = 3, .width = {100, 70, 50, 10}, .batch = 1};
  ct_device *dev;
  uint64_t took[2];
  if (ct_open("sim:", &dev)) fail_msg("%s", ct_last_error(NULL));
  for (unsigned i = 0; i < 2; ++i) {
    ct_graph *g = answering(&s, i ? 64 : 16);
    ct_network *n = put(dev, g);
    struct ct_event e = {0};
    for (int again = 0; again < 2; ++again) {
      uint64_t tag;
      ok(dev, ct_network_submit(n, &(struct ct_run){.queue = CT_INFERENCE}, &tag));
      e = wait_for(dev, tag);
    }
    took[i] = e.end - e.start;
    ct_network_free(n);
    ct_graph_free(g);
  }
  print_message("16 rows: %llu cycles, 64: %llu\n", (unsigned long long)took[0],
                (unsigned long long)took[1]);
  assert_in_range(took[1], took[0], 4 * took[0]);
  ct_close(dev);
}

/* ---- In front of a larger graph ------------------------------------------------------------ */

/* Layers, as ct_graph_mlp() has them, and then something else. */
struct front {
  uint32_t layers, width[MOST_LAYERS + 1], rows;
  bool images, twice; /* the input is one of images; what the layers give is an output, too */
  enum { SOFTMAX, TANH, NORM, NEXT, SCALED, KINDS } then;
  uint32_t readers; /* of what the layers give: the others do what comes after `then`; 0: 1 */
};

static int weight(ct_graph *g, const char *name, struct ct_shape shape) {
  const int w = ct_graph_tensor(
      g, &(struct ct_new_tensor){
             .name = name, .role = CT_ROLE_WEIGHT, .initial = CT_INITIAL_HE, .shape = shape});
  must(g, w);
  return w;
}

static int add_rest(ct_graph *g, const struct front *f, unsigned then, int t) {
  const uint32_t last = f->width[f->layers];
  char end[32], weights[32];
  snprintf(end, sizeof end, "end%u", then);
  snprintf(weights, sizeof weights, "end%u.weight", then);
  if (then == SOFTMAX) return node(g, "softmax", NULL, &t, 1);
  if (then == TANH) return node(g, "tanh", NULL, &t, 1);
  if (then == SCALED) {
    const int by = weight(g, "factor", (struct ct_shape){1, {last}});
    return node(g, "mul", NULL, (const int[]){t, by}, 2);
  }
  if (then == NORM)
    t = node(g, "layer_norm", NULL,
             (const int[]){t, weight(g, "scale", (struct ct_shape){1, {last}})}, 2);
  /* No bias, so it is no layer of them; of NEXT it reads the matrix as a product does. */
  return node(g, "linear", end,
              (const int[]){t, weight(g, weights, (struct ct_shape){2, {5, last}})}, 2);
}

static ct_graph *with_front(const struct front *f) {
  ct_graph *g;
  char name[32];
  assert_int_equal(ct_graph_create(&g), CT_OK);
  const struct ct_shape rows = {2, {f->rows, f->width[0]}},
                        images = {4, {f->rows, 1, f->width[0] / 4, 4}};
  int t =
      ct_graph_tensor(g, &(struct ct_new_tensor){.name = "x", .shape = f->images ? images : rows});
  if (f->images) t = node(g, "flatten", NULL, &t, 1);
  for (uint32_t l = 0; l < f->layers; ++l) {
    snprintf(name, sizeof name, "w%u", l);
    const int w = weight(g, name, (struct ct_shape){2, {f->width[l + 1], f->width[l]}});
    snprintf(name, sizeof name, "b%u", l);
    const int b = weight(g, name, (struct ct_shape){1, {f->width[l + 1]}});
    if (l) t = node(g, "relu", NULL, &t, 1);
    t = node(g, "linear", NULL, (const int[]){t, w, b}, 3);
  }
  if (f->twice) must(g, ct_graph_result(g, t));
  for (uint32_t k = 0; k < f->readers || k == 0; ++k)
    must(g, ct_graph_result(g, add_rest(g, f, (f->then + k) % KINDS, t)));
  must(g, ct_graph_check(g));
  return g;
}

static bool has_front(ct_network *n) {
  struct ct_network_stage s;
  for (size_t i = 0; i < ct_network_stages(n); ++i)
    if (ct_network_stage(n, i, &s) == CT_OK && !strcmp(s.op, "perceptron")) return true;
  return false;
}

static void same_outputs(ct_device *dev, ct_network *a, ct_network *b) {
  struct ct_tensor_info info;
  for (int t = 1; ct_graph_tensor_info(ct_network_graph(a), t, &info) == CT_OK; ++t) {
    if (info.role != CT_ROLE_OUTPUT) continue;
    float *x = malloc(info.elements * sizeof *x), *y = malloc(info.elements * sizeof *y);
    assert_true(x && y);
    ok(dev, ct_network_read(a, t, x, info.elements));
    ok(dev, ct_network_read(b, t, y, info.elements));
    ct_assert_same(info.name, (uint8_t *)x, (uint8_t *)y, info.elements * sizeof *x);
    free(x);
    free(y);
  }
}

static uint64_t run_again(ct_device *dev, ct_network *n, ct_weights *w) {
  struct ct_event e = {0};
  for (int again = 0; again < 2; ++again) {
    uint64_t tag;
    ok(dev, ct_network_submit(n, &(struct ct_run){.weights = w}, &tag));
    e = wait_for(dev, tag);
  }
  return e.end - e.start;
}

/* The bits of kernels, by its own weights and by a version of theirs; in no more cycles. front:
 * there has to be one. */
static void check_front(ct_device *dev, const struct front *f, bool front, ct_rng *rng) {
  ct_graph *g = with_front(f);
  ct_network *n = put(dev, g), *kernels;
  struct ct_info info;
  ok(dev, ct_info(dev, &info));
  ok(dev, ct_network_create(dev, g, &(struct ct_network_options){.kernels = true}, &kernels));
  assert_false(has_front(kernels));
  if (front) assert_true(has_front(n));
  for (uint64_t seed = 1; seed < 3; ++seed) {
    const size_t count = (size_t)f->rows * f->width[0];
    float *x = malloc(count * sizeof *x);
    assert_non_null(x);
    for (size_t i = 0; i < count; ++i)
      x[i] = ((float)ct_rng_below(rng, 2001) - 800.0f) * 1e-3f;
    ok(dev, ct_network_draw(kernels, seed));
    if (seed == 1) ok(dev, ct_network_draw(n, seed));
    put_in(dev, n, "x", x);
    put_in(dev, kernels, "x", x);
    ct_weights *w = seed == 1 ? NULL : publish(dev, kernels, n);
    const uint64_t took = run_again(dev, n, w), plain = run_again(dev, kernels, NULL);
    same_outputs(dev, n, kernels);
    if (info.has_clock)
      print_message("%u layers, %u rows, then %d: %llu cycles, by kernels %llu\n", f->layers,
                    f->rows, f->then, (unsigned long long)took, (unsigned long long)plain);
    if (info.has_clock && front) assert_in_range(took, 1, plain);
    ct_weights_free(w);
    free(x);
  }
  ct_network_free(kernels);
  ct_network_free(n);
  ct_graph_free(g);
}

static struct front draw_front(ct_rng *rng, uint32_t widest) {
  struct front f = {.layers = 2 + ct_rng_below(rng, MOST_LAYERS - 1),
                    .rows = 1 + ct_rng_below(rng, 20),
                    .images = ct_rng_below(rng, 3) == 0,
                    .twice = ct_rng_below(rng, 3) == 0,
                    .then = ct_rng_below(rng, KINDS),
                    .readers = 1 + ct_rng_below(rng, 3)};
  for (uint32_t l = 0; l <= f.layers; ++l)
    f.width[l] = 4 * (1 + ct_rng_below(rng, widest / 4));
  return f;
}

static void test_in_front(void **state) {
  (void)state;
  static const struct {
    const char *uri;
    uint32_t widest;
    int draws;
  } cases[] = {{"emu:", 200, 20},        {"emu:spm=2048", 200, 8}, {"emu:spm=1024", 400, 6},
               {"sim:", 80, 3},          {"sim:core=16x8", 80, 3}, {"sim:stall=70,seed=3", 60, 2},
               {"sim:latency=60", 60, 1}};
  ct_rng rng = ct_rng_make(10);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    ct_device *dev;
    if (ct_open(cases[i].uri, &dev)) fail_msg("%s", ct_last_error(NULL));
    for (int k = 0, draws = ct_tb_draws(cases[i].draws); k < draws; ++k) {
      const struct front f = draw_front(&rng, cases[i].widest);
      check_front(dev, &f, i == 0 && f.rows <= 16, &rng);
    }
    for (unsigned then = 0; then < KINDS && i < 5; ++then) {
      const struct front f = {
          .layers = 2, .width = {64, 32, 12}, .rows = then % 2 ? 1 : 16, .then = then};
      check_front(dev, &f, then != NORM && then != NEXT && then != SCALED, &rng);
    }
    ct_close(dev);
  }
}

/* What stages should take is what they take, of passes and in front of others, too. */
static void test_expected_cycles(void **state) {
  (void)state;
  static const char *const uris[] = {"sim:", "sim:core=16x8"};
  const struct shape wide = {.layers = 2, .width = {100, 70, 10}};
  const struct front front = {.layers = 3, .width = {64, 60, 40, 12}, .rows = 5};
  for (unsigned i = 0; i < 4; ++i) {
    ct_device *dev;
    ct_network *n;
    if (ct_open(uris[i % 2], &dev)) fail_msg("%s", ct_last_error(NULL));
    ct_graph *g = i < 2 ? answering(&wide, 40) : with_front(&front);
    ok(dev, ct_network_create(dev, g, &(struct ct_network_options){.expect = true}, &n));
    for (int again = 0; again < 2; ++again)
      ok(dev, ct_network_run(n, CT_INFERENCE, 0));
    for (size_t k = 0; k < ct_network_stages(n); ++k) {
      struct ct_network_stage s;
      ok(dev, ct_network_stage(n, k, &s));
      print_message("%s: %llu cycles expected, %llu\n", s.op, (unsigned long long)s.expected,
                    (unsigned long long)s.cycles);
      assert_in_range(s.expected, s.cycles - s.cycles / 10, s.cycles + s.cycles / 10);
      assert_in_range(s.beside, 1, 1000000);
    }
    ct_network_free(n);
    ct_graph_free(g);
    ct_close(dev);
  }
}

/* Layers that nobody needs have no places, and others keep theirs. */
static void test_a_front_for_nothing(void **state) {
  (void)state;
  ct_device *dev;
  ct_graph *g;
  int w[4];
  float ones[20], y[20] = {0};
  assert_int_equal(ct_open("emu:", &dev), CT_OK);
  assert_int_equal(ct_graph_create(&g), CT_OK);
  const int x = ct_graph_tensor(g, &(struct ct_new_tensor){.name = "x", .shape = {2, {1, 20}}});
  const int z = ct_graph_tensor(g, &(struct ct_new_tensor){.name = "z", .shape = {2, {1, 20}}});
  for (unsigned i = 0; i < 4; ++i) {
    const char *const name[] = {"w0", "b0", "w1", "b1"};
    w[i] = weight(g, name[i], i % 2 ? (struct ct_shape){1, {20}} : (struct ct_shape){2, {20, 20}});
  }
  int t = node(g, "linear", NULL, (const int[]){x, w[0], w[1]}, 3);
  t = node(g, "relu", NULL, &t, 1);
  node(g, "linear", NULL, (const int[]){t, w[2], w[3]}, 3);
  const int factor = weight(g, "factor", (struct ct_shape){1, {20}});
  const int out = node(g, "mul", "out", (const int[]){z, factor}, 2);
  must(g, ct_graph_result(g, out));
  must(g, ct_graph_check(g));
  ct_network *n = put(dev, g);
  assert_false(has_front(n));
  for (unsigned i = 0; i < 20; ++i)
    ones[i] = 1;
  ok(dev, ct_network_write(n, factor, ones, 20));
  ok(dev, ct_network_write(n, w[1], y, 20)); /* nowhere */
  ok(dev, ct_network_write(n, z, ones, 20));
  ok(dev, ct_network_run(n, CT_INFERENCE, 0));
  ok(dev, ct_network_read(n, out, y, 20));
  assert_memory_equal(y, ones, sizeof y);
  ct_network_free(n);
  ct_graph_free(g);
  ct_close(dev);
}

/* None where numbers in between are wanted elsewhere, too, or it takes steps. */
static void test_nothing_in_front(void **state) {
  (void)state;
  ct_device *dev;
  assert_int_equal(ct_open("emu:", &dev), CT_OK);
  const struct front one = {.layers = 1, .width = {64, 32}, .rows = 4},
                     many = {.layers = 2, .width = {64, 32, 10}, .rows = 17};
  const struct front *const none[] = {&one, &many};
  for (size_t i = 0; i < sizeof none / sizeof *none; ++i) {
    ct_graph *g = with_front(none[i]);
    ct_network *n = put(dev, g);
    assert_false(has_front(n));
    ct_network_free(n);
    ct_graph_free(g);
  }
  ct_network *n;
  ct_graph *g = other_graph(&(struct other){.other_output = true});
  n = put(dev, g);
  assert_false(has_front(n));
  ct_network_free(n);
  ct_graph_free(g);
  g = other_graph(&(struct other){.kept = true});
  n = put(dev, g);
  assert_false(has_front(n));
  ct_network_free(n);
  ct_graph_free(g);
  ct_close(dev);
}

static void compare_all(const char *uri, uint32_t widest, int draws) {
  ct_rng rng = ct_rng_make(2);
  ct_device *dev;
  if (ct_open(uri, &dev)) fail_msg("%s", ct_last_error(NULL));
  for (int i = 0; i < draws; ++i) {
    const struct shape s = draw_shape(&rng, widest);
    compare_answers(dev, &s, 1 + ct_rng_below(&rng, 16), &rng);
    compare_steps(dev, &s, &rng);
  }
  ct_close(dev);
}

static void test_bytes_of_a_model(void **state) {
  (void)state;
  compare_all("emu:", 60, ct_tb_draws(20));
  compare_all("emu:", 300, ct_tb_draws(4));
  compare_all("emu:spm=2048", 100, ct_tb_draws(6)); /* steps through memory */
  compare_all("emu:spm=512", 700, ct_tb_draws(3));  /* answers, too */
}

static void test_bytes_and_cycles_of_a_model(void **state) {
  (void)state;
  compare_all("sim:", 60, ct_tb_draws(3));
  compare_all("sim:core=16x8", 60, ct_tb_draws(3));
}

/* ---- Weights that go between programs and kernels ------------------------------------------ */

/* Tiles turned one by one. */
static void turn_here(uint8_t *tile) {
  for (unsigned i = 0; i < CT_TILE; ++i)
    for (unsigned k = 0; k < i; ++k) {
      uint8_t *a = tile + CT_TILE * (i + 1) + k, *b = tile + CT_TILE * (k + 1) + i;
      const uint8_t q = *a;
      *a = *b;
      *b = q;
    }
}

static void check_turning(const char *uri, uint32_t tiles, ct_rng *rng) {
  enum { RECORD = CT_RECORD_UNITS * 16, AT = 3 };
  const uint32_t units = AT + 2 * tiles * CT_RECORD_UNITS, to = AT + tiles * CT_RECORD_UNITS;
  const size_t size = (size_t)tiles * RECORD;
  const struct ct_turn k = {.from = AT, .to = AT, .tiles = tiles};
  uint8_t *bytes = calloc(units, 16), *from = bytes + AT * 16, *got = calloc(tiles, RECORD);
  char why[256];
  struct ct_codes codes;
  ct_device *dev;
  uint64_t at, tag;
  assert_true(bytes && got);
  for (uint32_t i = 0; i < tiles; ++i) {
    float x[CT_TILE * CT_TILE];
    for (unsigned j = 0; j < CT_TILE * CT_TILE; ++j)
      x[j] = i % 5 == 3 ? 0 : ((float)ct_rng_below(rng, 2001) - 1000.0f) * (i % 3 ? 1e-3f : 1e-37f);
    if (i % 7 == 6) x[5] = 1e38f * 1e38f;
    ct_pack(x, CT_TILE, CT_TILE, CT_TILE, CT_SQUARE, from + (size_t)i * RECORD);
  }
  if (ct_kernel_turn(&k, 4096, &codes, &(struct ct_why){why, sizeof why})) fail_msg("%s", why);
  assert_int_equal(codes.count, 1);
  struct ct_racecheck check = {.cmds = codes.job[0].cmd,
                               .count = codes.job[0].count,
                               .spm_words = 4096,
                               .dram_units = units,
                               .args = {0, to - AT},
                               .depth = 1 + ct_rng_below(rng, 16),
                               .eager = (int)ct_rng_below(rng, 7)};
  if (!ct_racecheck(&check, NULL, why, sizeof why)) fail_msg("%u tiles: %s", tiles, why);
  if (ct_open(uri, &dev)) fail_msg("%s", ct_last_error(NULL));
  ct_program *program;
  ok(dev, ct_mem_alloc(dev, (uint64_t)units * 16, &at));
  ok(dev, ct_mem_write(dev, at, bytes, (size_t)units * 16));
  ok(dev, ct_program_load(dev, codes.job[0].cmd, codes.job[0].count, &program));
  const struct ct_job job = {.program = program,
                             .args = {(uint32_t)(at / 16), (uint32_t)(at / 16) + to - AT}};
  ok(dev, ct_submit(dev, CT_TRAINING, &job, &tag));
  const struct ct_event e = wait_for(dev, tag);
  print_message("%u tiles: %llu cycles\n", tiles, (unsigned long long)(e.end - e.start));
  ok(dev, ct_mem_read(dev, at + (uint64_t)to * 16, got, size));
  for (uint32_t i = 0; i < tiles; ++i)
    turn_here(from + (size_t)i * RECORD);
  ct_assert_same("turned tiles", got, from, size);
  ct_program_free(program);
  ct_close(dev);
  ct_codes_free(&codes);
  free(bytes);
  free(got);
}

static void test_turning(void **state) {
  (void)state;
  static const uint32_t tiles[] = {1, 2, 3, 4, 5, 8, 29, 70};
  ct_rng rng = ct_rng_make(3);
  for (size_t i = 0; i < sizeof tiles / sizeof *tiles; ++i)
    check_turning("emu:", tiles[i], &rng);
  check_turning("sim:", 29, &rng);
  check_turning("sim:core=16x8", 5, &rng);
}

/* An answer by a version is that of a network with the same weights. */
static void check_version(ct_device *dev, ct_network *steps, const struct shape *s, uint32_t rows,
                          ct_rng *rng) {
  ct_graph *g = answering(s, rows);
  ct_network *n = put(dev, g), *other = put(dev, g);
  struct shape asked = *s;
  asked.batch = rows;
  const struct numbers d = draw_numbers(&asked, rng);
  struct ct_tensor_info info;
  for (int t = 1; ct_graph_tensor_info(g, t, &info) == CT_OK; ++t) {
    if (info.role != CT_ROLE_WEIGHT) continue;
    float *x = read_all(dev, steps, info.name);
    put_in(dev, other, info.name, x);
    free(x);
  }
  for (int again = 0; again < 2; ++again) { /* programs of the copies are there from the first */
    ct_weights *w = publish(dev, steps, n);
    uint64_t tag;
    put_in(dev, n, "x", d.x);
    put_in(dev, other, "x", d.x);
    ok(dev, ct_network_run(other, CT_INFERENCE, 0));
    ok(dev, ct_network_submit(n, &(struct ct_run){.weights = w}, &tag));
    wait_for(dev, tag);
    float *want = read_all(dev, other, "logits");
    same_tensor(dev, n, "logits", want);
    free(want);
    ct_weights_free(w);
  }
  free_numbers(&d);
  ct_network_free(n);
  ct_network_free(other);
  ct_graph_free(g);
}

static void check_publishing(const char *uri, const struct shape *s, const struct ct_optimise *how,
                             ct_rng *rng) {
  ct_device *dev;
  if (ct_open(uri, &dev)) fail_msg("%s", ct_last_error(NULL));
  ct_graph *g = trained(s, how);
  ct_network *n = put(dev, g);
  const struct numbers d = draw_numbers(s, rng);
  ok(dev, ct_network_draw(n, 3));
  put_in(dev, n, "x", d.x);
  put_in(dev, n, "y", d.y);
  ok(dev, ct_network_run(n, CT_TRAINING, 0));
  check_version(dev, n, s, 3, rng);  /* a perceptron's programs */
  check_version(dev, n, s, 20, rng); /* in two passes */
  check_version(dev, n, s, 70, rng); /* kernels */
  free_numbers(&d);
  ct_network_free(n);
  ct_graph_free(g);
  ct_close(dev);
}

/* A version of what is trained by its own programs takes what one of a model does: a copy. */
static void test_versions_take_no_longer(void **state) {
  (void)state;
  static const char *const uris[] = {"sim:", "sim:core=16x8"};
  const struct shape s = {.layers = 3, .width = {100, 70, 50, 10}, .batch = 4};
  for (unsigned i = 0; i < 2; ++i) {
    ct_device *dev;
    ct_weights *w[2];
    uint64_t tag[2];
    if (ct_open(uris[i], &dev)) fail_msg("%s", ct_last_error(NULL));
    ct_model *m = make_model(dev, &s);
    ct_graph *g = trained(&s, &kSgd), *a = answering(&s, 1);
    ct_network *n = put(dev, g), *answers = put(dev, a);
    struct ct_event took[2] = {{0}};
    for (int again = 0; again < 2; ++again) {
      ok(dev, ct_model_publish_submit(m, NULL, &w[0], &tag[0]));
      took[0] = wait_for(dev, tag[0]);
      ok(dev, ct_network_publish_submit(n, answers, NULL, &w[1], &tag[1]));
      took[1] = wait_for(dev, tag[1]);
      ct_weights_free(w[0]);
      ct_weights_free(w[1]);
    }
    same_cycles(dev, &took[0], &took[1]);
    ct_network_free(answers);
    ct_network_free(n);
    ct_graph_free(a);
    ct_graph_free(g);
    ct_model_free(m);
    ct_close(dev);
  }
}

static void test_versions_of_both_kinds(void **state) {
  (void)state;
  const struct ct_optimise adam = {.optimiser = CT_OPTIMISER_ADAM, .schedule = {.rate = 0.01}};
  ct_rng rng = ct_rng_make(4);
  for (int i = 0, draws = ct_tb_draws(6); i < draws; ++i) {
    const struct shape s = draw_shape(&rng, 90);
    check_publishing("emu:", &s, &kSgd, &rng);
    check_publishing("emu:", &s, &adam, &rng);
  }
  check_publishing("sim:", &kSmall, &kSgd, &rng);
  check_publishing("sim:", &kSmall, &adam, &rng);
}

/* A perceptron on images of 4 x 5 pixels with 3 channels. */
static const struct shape kImages = {.layers = 2, .width = {60, 33, 7}, .batch = 9};

static ct_graph *on_images(const struct ct_optimise *how) {
  static const char *const name[] = {"fc1.weight", "fc1.bias", "logits.weight", "logits.bias"};
  static const struct ct_shape shape[] = {{2, {33, 60}}, {1, {33}}, {2, {7, 33}}, {1, {7}}};
  ct_graph *g;
  int w[4];
  assert_int_equal(ct_graph_create(&g), CT_OK);
  const int x =
      ct_graph_tensor(g, &(struct ct_new_tensor){.name = "x", .shape = {4, {9, 4, 5, 3}}});
  for (int i = 0; i < 4; ++i)
    w[i] = ct_graph_tensor(
        g, &(struct ct_new_tensor){.name = name[i],
                                   .role = CT_ROLE_WEIGHT,
                                   .initial = i % 2 ? CT_INITIAL_ZEROS : CT_INITIAL_HE,
                                   .shape = shape[i]});
  int t = node(g, "flatten", NULL, &x, 1);
  t = node(g, "linear", NULL, (const int[]){t, w[0], w[1]}, 3);
  t = node(g, "relu", NULL, &t, 1);
  t = node(g, "linear", NULL, (const int[]){t, w[2], w[3]}, 3);
  const int y = ct_graph_tensor(
      g, &(struct ct_new_tensor){.name = "y", .role = CT_ROLE_LABEL, .shape = {2, {9, 7}}});
  const int loss = node(g, "cross_entropy", NULL, (const int[]){t, y}, 2);
  must(g, ct_graph_result(g, loss));
  must(g, ct_graph_optimise(g, loss, how));
  must(g, ct_graph_check(g));
  return g;
}

/* The bits of one whose rows are given as such; its versions are good for that one's answers. */
static void check_images(const struct ct_optimise *how, bool one, ct_rng *rng) {
  ct_device *dev;
  assert_int_equal(ct_open("emu:", &dev), CT_OK);
  ct_graph *g = on_images(how), *rows = trained(&kImages, how);
  ct_network *n[2] = {put(dev, g), put(dev, rows)};
  const struct numbers d = draw_numbers(&kImages, rng);
  assert_true(one == (ct_network_stages(n[0]) == 1));
  for (int i = 0; i < 2; ++i) {
    ok(dev, ct_network_draw(n[i], 3));
    put_in(dev, n[i], "x", d.x);
    put_in(dev, n[i], "y", d.y);
    ok(dev, ct_network_run(n[i], CT_TRAINING, 0));
  }
  for (unsigned i = 0; i < 2; ++i) {
    static const char *const name[] = {"fc1.weight", "logits.weight"};
    float *want = read_all(dev, n[1], name[i]);
    same_tensor(dev, n[0], name[i], want);
    free(want);
  }
  check_version(dev, n[0], &kImages, 3, rng);
  check_version(dev, n[0], &kImages, 70, rng);
  free_numbers(&d);
  for (int i = 0; i < 2; ++i)
    ct_network_free(n[i]);
  ct_graph_free(rows);
  ct_graph_free(g);
  ct_close(dev);
}

static void test_images(void **state) {
  (void)state;
  const struct ct_optimise adam = {.optimiser = CT_OPTIMISER_ADAM, .schedule = {.rate = 0.01}};
  ct_rng rng = ct_rng_make(8);
  check_images(&kSgd, true, &rng);
  check_images(&adam, false, &rng);
}

/* ---- What networks can do ------------------------------------------------------------------ */

/* Training goes on from a file as it goes on without; by kernels, too, if it was. */
static void check_file(bool kernels) {
  char path[] = "/tmp/ct_perceptronXXXXXX";
  ct_rng rng = ct_rng_make(5);
  ct_device *dev;
  ct_network *loaded;
  assert_int_equal(ct_open("emu:", &dev), CT_OK);
  const int fd = mkstemp(path);
  assert_true(fd >= 0);
  close(fd);
  ct_graph *g = trained(&kSmall, &kSgd);
  ct_network *n;
  ok(dev, ct_network_create(dev, g, &(struct ct_network_options){.kernels = kernels}, &n));
  assert_true(kernels == (ct_network_stages(n) > 1));
  const struct numbers d = draw_numbers(&kSmall, &rng);
  ok(dev, ct_network_draw(n, 3));
  put_in(dev, n, "x", d.x);
  put_in(dev, n, "y", d.y);
  ok(dev, ct_network_run(n, CT_TRAINING, 0));
  ok(dev, ct_network_save(n, path));
  ok(dev, ct_network_load(dev, path, NULL, &loaded));
  assert_int_equal(ct_network_stages(loaded), ct_network_stages(n));
  put_in(dev, loaded, "x", d.x);
  put_in(dev, loaded, "y", d.y);
  ok(dev, ct_network_run(n, CT_TRAINING, 1));
  ok(dev, ct_network_run(loaded, CT_TRAINING, 1));
  struct ct_tensor_info info;
  for (int t = 1; ct_graph_tensor_info(g, t, &info) == CT_OK; ++t) {
    if (info.role != CT_ROLE_WEIGHT && info.role != CT_ROLE_STATE && info.role != CT_ROLE_OUTPUT)
      continue;
    float *x = read_all(dev, n, info.name);
    same_tensor(dev, loaded, info.name, x);
    free(x);
  }
  ct_network_free(loaded);
  ct_network_free(n);
  ct_graph_free(g);
  free_numbers(&d);
  ct_close(dev);
  unlink(path);
}

static void test_files(void **state) {
  (void)state;
  check_file(false);
  check_file(true);
}

/* A model's file, before any training or in the middle of it, is a network's, too, and that goes
 * on from there with the same bits. */
static void go_on_from_a_model(bool trained_before) {
  char path[] = "/tmp/ct_perceptronXXXXXX";
  ct_rng rng = ct_rng_make(9);
  ct_device *dev;
  ct_network *n;
  struct ct_network_info info;
  assert_int_equal(ct_open("emu:", &dev), CT_OK);
  const int fd = mkstemp(path);
  assert_true(fd >= 0);
  close(fd);
  ct_model *m = make_model(dev, &kSmall);
  const struct numbers d = draw_numbers(&kSmall, &rng);
  const struct ct_training how = {
      .batch = kSmall.batch, .rates = {.lr = kRate, .momentum = kMomentum, .weight_decay = kDecay}};
  float want[64], loss;
  if (trained_before) ok(dev, ct_model_training(m, &how));
  for (int i = 0; i < 3 && trained_before; ++i)
    ok(dev, ct_model_step(m, d.x, d.label, &loss));
  ct_model_set_epochs(m, 4);
  ok(dev, ct_model_save(m, path));
  ok(dev, ct_network_load(dev, path, NULL, &n));
  ok(dev, ct_network_info(n, &info));
  assert_true(info.seed == 7 && info.steps == 3 * trained_before && info.epochs == 4);
  assert_true(info.changes == trained_before && ct_network_stages(n) == 1);
  put_in(dev, n, "x", d.x);
  if (trained_before) {
    same_layers(dev, m, n, &kSmall);
    put_in(dev, n, "y", d.y);
    for (uint64_t step = 3; step < 5; ++step) {
      ok(dev, ct_model_step(m, d.x, d.label, &loss));
      ok(dev, ct_network_run(n, CT_TRAINING, step));
      same_tensor(dev, n, "loss", &loss);
    }
    same_layers(dev, m, n, &kSmall);
  } else {
    ok(dev, ct_network_run(n, CT_INFERENCE, 0));
    ok(dev, ct_model_infer(m, NULL, d.x, 1, want));
    same_tensor(dev, n, "logits", want);
  }
  ct_network_free(n);
  ct_model_free(m);
  free_numbers(&d);
  ct_close(dev);
  unlink(path);
}

static void test_files_of_models(void **state) {
  (void)state;
  go_on_from_a_model(false);
  go_on_from_a_model(true);
}

/* Weights of one device on another; several runs under way, each with its frame. */
static void test_frames_and_weights(void **state) {
  (void)state;
  enum { FRAMES = 3 };
  ct_rng rng = ct_rng_make(6);
  struct shape s = kSmall;
  s.batch = 4;
  ct_graph *g = answering(&s, s.batch);
  float *want[FRAMES];
  uint8_t *bytes = NULL;
  size_t size = 0;
  struct numbers d[FRAMES];
  for (unsigned i = 0; i < FRAMES; ++i)
    d[i] = draw_numbers(&s, &rng);
  for (int second = 0; second < 2; ++second) {
    ct_device *dev;
    ct_frame *f[FRAMES];
    ct_weights *w;
    uint64_t tag[FRAMES];
    struct ct_network_info info;
    if (ct_open(second ? "sim:" : "emu:", &dev)) fail_msg("%s", ct_last_error(NULL));
    ct_network *n = put(dev, g);
    assert_int_equal(ct_network_info(n, &info), CT_OK);
    assert_int_equal(info.jobs, 1);
    if (second) {
      assert_int_equal(size, info.weights_bytes);
      ok(dev, ct_network_load_weights(n, bytes, size, &w));
    } else {
      ok(dev, ct_network_draw(n, 3));
      w = publish(dev, n, n);
      size = info.weights_bytes;
      bytes = malloc(size);
      ok(dev, ct_weights_read(w, bytes, size));
    }
    for (unsigned i = 0; i < FRAMES; ++i) {
      ok(dev, ct_frame_create(n, &f[i]));
      ok(dev, ct_frame_write(f[i], find(n, "x"), d[i].x, (size_t)s.batch * inputs(&s)));
      ok(dev, ct_network_submit(n, &(struct ct_run){.frame = f[i], .weights = w}, &tag[i]));
    }
    for (unsigned i = 0; i < FRAMES; ++i) {
      const size_t count = (size_t)s.batch * classes(&s);
      float *x = malloc(count * sizeof *x);
      wait_for(dev, tag[i]);
      ok(dev, ct_frame_read(f[i], find(n, "logits"), x, count));
      if (second) assert_memory_equal(x, want[i], count * sizeof *x);
      if (second) free(want[i]);
      want[i] = x;
      ct_frame_free(f[i]);
    }
    ct_weights_free(w);
    ct_network_free(n);
    ct_close(dev);
  }
  for (unsigned i = 0; i < FRAMES; ++i) {
    free(want[i]);
    free_numbers(&d[i]);
  }
  free(bytes);
  ct_graph_free(g);
}

/* What was written is read as products see it; what is trained in FP32. */
static void test_tensors_that_are_read(void **state) {
  (void)state;
  ct_rng rng = ct_rng_make(7);
  ct_device *dev;
  assert_int_equal(ct_open("emu:", &dev), CT_OK);
  for (int trains = 0; trains < 2; ++trains) {
    struct shape s = {.layers = 1, .width = {300, 5}, .batch = 7};
    ct_graph *g = trains ? trained(&s, &kSgd) : answering(&s, s.batch);
    ct_network *n = put(dev, g);
    const size_t count = (size_t)s.batch * inputs(&s), all = (size_t)s.width[0] * s.width[1];
    float *x = malloc(count * sizeof *x), *w = malloc(all * sizeof *w);
    assert_true(x && w);
    for (size_t i = 0; i < count; ++i)
      x[i] = (float)ct_rng_below(&rng, 64) / 64;
    for (size_t i = 0; i < all; ++i)
      w[i] = trains ? (float)ct_rng_below(&rng, 99999) : (float)ct_rng_below(&rng, 64);
    put_in(dev, n, "x", x);
    same_tensor(dev, n, "x", x);
    put_in(dev, n, "logits.weight", w);
    if (trains) put_in(dev, n, "logits.weight.momentum", w);
    same_tensor(dev, n, "logits.weight", w);
    free(x);
    free(w);
    ct_network_free(n);
    ct_graph_free(g);
  }
  ct_close(dev);
}

/* Tiles of a weight and of its momentum take turns: both are there if both are written at once. */
static void test_tensors_between_each_other(void **state) {
  (void)state;
  static const char *const names[] = {"logits.weight", "logits.weight.momentum"};
  ct_rng rng = ct_rng_make(9);
  ct_device *dev;
  assert_int_equal(ct_open("emu:", &dev), CT_OK);
  struct shape s = {.layers = 1, .width = {300, 5}, .batch = 7};
  ct_graph *g = trained(&s, &kSgd);
  ct_network *n = put(dev, g);
  const size_t all = (size_t)s.width[0] * s.width[1];
  const struct ct_regions own = ct_network_own(n);
  struct ct_put two[2];
  float *x[2];
  for (unsigned i = 0; i < 2; ++i) {
    x[i] = malloc(all * sizeof *x[i]);
    assert_non_null(x[i]);
    for (size_t k = 0; k < all; ++k)
      x[i][k] = (float)ct_rng_below(&rng, 99999);
    two[i].data = x[i];
    ok(dev, ct_network_find(n, ct_graph_find(g, names[i]), all, &two[i].lay));
    assert_true(two[i].lay->pitch > CT_F32_TILE_UNITS);
  }
  ok(dev, ct_network_put_mlps(n, &own, two, 2));
  for (unsigned i = 0; i < 2; ++i) {
    same_tensor(dev, n, names[i], x[i]);
    free(x[i]);
  }
  ct_network_free(n);
  ct_graph_free(g);
  ct_close(dev);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_programs_are_those_of_models),
                                     cmocka_unit_test(test_programs_for_models),
                                     cmocka_unit_test(test_what_is_no_perceptron),
                                     cmocka_unit_test(test_ways_to_train),
                                     cmocka_unit_test(test_bytes_of_a_model),
                                     cmocka_unit_test(test_bytes_and_cycles_of_a_model),
                                     cmocka_unit_test(test_passes),
                                     cmocka_unit_test(test_passes_take_no_longer),
                                     cmocka_unit_test(test_in_front),
                                     cmocka_unit_test(test_nothing_in_front),
                                     cmocka_unit_test(test_a_front_for_nothing),
                                     cmocka_unit_test(test_expected_cycles),
                                     cmocka_unit_test(test_turning),
                                     cmocka_unit_test(test_versions_of_both_kinds),
                                     cmocka_unit_test(test_versions_take_no_longer),
                                     cmocka_unit_test(test_images),
                                     cmocka_unit_test(test_files),
                                     cmocka_unit_test(test_files_of_models),
                                     cmocka_unit_test(test_frames_and_weights),
                                     cmocka_unit_test(test_tensors_that_are_read),
                                     cmocka_unit_test(test_tensors_between_each_other)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
