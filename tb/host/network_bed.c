/* SPDX-License-Identifier: Apache-2.0 */
/* A graph on a device beside its reference: see the header. */
#include "network_bed.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void must(struct net_bed *n, int err, const char *what) {
  if (err) fail_msg("%s: %s", what, ct_last_error(n->dev));
}

bool net_try_open(struct net_bed *n, struct bed *bed, const char *uri) {
  *n = (struct net_bed){.bed = bed};
  if (ct_open(uri, &n->dev)) fail_msg("%s: %s", uri, ct_last_error(NULL));
  const struct ct_network_options options = {.seed = bed->seed,
                                             .masks = bed->masks ? bed->masks : CT_MASKS_OFF};
  const int err = ct_network_create(n->dev, bed->g, &options, &n->net);
  if (err == CT_ERR_NO_SPACE && strstr(ct_last_error(n->dev), "words of scratchpad")) {
    ct_close(n->dev);
    return false;
  }
  must(n, err, "the network");
  return true;
}

void net_open(struct net_bed *n, struct bed *bed, const char *uri) {
  if (!net_try_open(n, bed, uri)) fail_msg("%s: the scratchpad is too small", uri);
}

void net_close(struct net_bed *n) {
  ct_network_free(n->net);
  ct_close(n->dev);
}

static size_t tensors(const struct net_bed *n) {
  struct ct_graph_info info;
  assert_int_equal(ct_graph_info(n->bed->g, &info), CT_OK);
  return info.tensors;
}

static bool from_outside(const struct ct_tensor_info *t) {
  return t->node < 0;
}

static void put(struct net_bed *n, int tensor, const double *x, size_t count) {
  float *f = calloc(count + 1, sizeof *f);
  assert_non_null(f);
  for (size_t i = 0; i < count; ++i)
    f[i] = (float)x[i];
  must(n, ct_network_write(n->net, tensor, f, count), "write");
  free(f);
}

static void get(struct net_bed *n, int tensor, double *x, size_t count) {
  float *f = calloc(count + 1, sizeof *f);
  assert_non_null(f);
  must(n, ct_network_read(n->net, tensor, f, count), "read");
  for (size_t i = 0; i < count; ++i)
    x[i] = (double)f[i];
  free(f);
}

static void draw_one(struct net_bed *n, int tensor, const struct ct_tensor_info *t, ct_rng *rng) {
  double *x = bed_data(n->bed, tensor);
  const size_t cols = t->shape.dim[t->shape.dims - 1];
  for (size_t i = 0; i < t->elements; ++i)
    x[i] = ((double)ct_rng_below(rng, 255) - 127) / 64;
  for (size_t i = 0; t->role == CT_ROLE_LABEL && i < t->elements; i += cols) {
    memset(x + i, 0, cols * sizeof *x);
    x[i + ct_rng_below(rng, (uint32_t)cols)] = 1;
  }
  put(n, tensor, x, t->elements);
}

static bool lasts(const struct ct_tensor_info *t) {
  return t->role == CT_ROLE_WEIGHT || t->role == CT_ROLE_STATE;
}

void net_draw_inputs(struct net_bed *n, ct_rng *rng) {
  for (size_t i = 1; i <= tensors(n); ++i) {
    const struct ct_tensor_info t = bed_info(n->bed, (int)i);
    if (from_outside(&t) && !lasts(&t)) draw_one(n, (int)i, &t, rng);
  }
}

void net_draw(struct net_bed *n, uint64_t seed, ct_rng *rng) {
  must(n, ct_network_draw(n->net, seed), "draw");
  for (size_t i = 1; i <= tensors(n); ++i) {
    const struct ct_tensor_info t = bed_info(n->bed, (int)i);
    if (lasts(&t)) get(n, (int)i, bed_data(n->bed, (int)i), t.elements);
  }
  net_draw_inputs(n, rng);
}

void net_run(struct net_bed *n) {
  for (size_t i = 1; i <= tensors(n); ++i)
    if (bed_info(n->bed, (int)i).role == CT_ROLE_OUTPUT) (void)bed_data(n->bed, (int)i);
  bed_run(n->bed);
  net_run_device(n, n->bed->step);
}

void net_run_device(struct net_bed *n, uint64_t step) {
  must(n, ct_network_run(n->net, CT_TRAINING, step), "run");
}

double net_distance(struct net_bed *n, int tensor) {
  const size_t count = bed_info(n->bed, tensor).elements;
  const double *want = bed_data(n->bed, tensor);
  double *x = malloc(count * sizeof *x), far = 0, size = (double)count * 1e-4;
  assert_non_null(x);
  get(n, tensor, x, count);
  for (size_t i = 0; i < count; ++i) {
    far += (x[i] - want[i]) * (x[i] - want[i]);
    size += want[i] * want[i];
  }
  free(x);
  return far == 0 ? 0 : sqrt(far / size);
}

static bool compared(const struct net_bed *n, const struct ct_tensor_info *t) {
  return t->role == CT_ROLE_OUTPUT || (n->bed->update && t->becomes);
}

void net_expect(struct net_bed *n, double most, const char *what) {
  for (size_t i = 1; i <= tensors(n); ++i) {
    const struct ct_tensor_info t = bed_info(n->bed, (int)i);
    if (!compared(n, &t)) continue;
    const double far = net_distance(n, (int)i);
    if (getenv("SHOW")) printf("%s: %-24s %.5f\n", what, t.name, far);
    if (!(far <= most)) fail_msg("%s: %s is %.4f off, most %.4f", what, t.name, far, most);
  }
}

uint64_t net_digest(struct net_bed *n) {
  uint64_t h = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
  for (size_t i = 1; i <= tensors(n); ++i) {
    const struct ct_tensor_info t = bed_info(n->bed, (int)i);
    if (t.role != CT_ROLE_OUTPUT && t.role != CT_ROLE_WEIGHT && t.role != CT_ROLE_STATE) continue;
    float *f = malloc(t.elements * sizeof *f);
    assert_non_null(f);
    must(n, ct_network_read(n->net, (int)i, f, t.elements), "read");
    for (size_t k = 0; k < t.elements * sizeof *f; ++k)
      h = (h ^ ((const unsigned char *)f)[k]) * UINT64_C(0x100000001b3);
    free(f);
  }
  return h;
}

/* ---- Random networks ----------------------------------------------------------------------- */

struct maker {
  struct bed *b;
  ct_rng *rng;
  const struct net_shape *shape;
  int count; /* of names */
};

static uint32_t draw(struct maker *m, uint32_t most) {
  return 1 + ct_rng_below(m->rng, most);
}

static int weight(struct maker *m, struct ct_shape shape, enum ct_initial initial) {
  char name[24];
  snprintf(name, sizeof name, "w%d", m->count++);
  return ct_graph_tensor(
      m->b->g, &(struct ct_new_tensor){
                   .name = name, .shape = shape, .role = CT_ROLE_WEIGHT, .initial = initial});
}

static struct ct_shape shape_of(struct maker *m, int t) {
  return bed_info(m->b, t).shape;
}

/* One that leaves lines and columns. */
static int same_conv(struct maker *m, int x, uint32_t outputs, bool normalised) {
  const double pad = ct_rng_below(m->rng, 2);
  const uint32_t k = pad > 0 ? 3 : 1;
  const bool bias = !normalised && ct_rng_percent(m->rng, 50);
  const int in[3] = {x, weight(m, SHAPE(outputs, k, k, shape_of(m, x).dim[3]), CT_INITIAL_HE),
                     bias ? weight(m, SHAPE(outputs), CT_INITIAL_ZEROS) : 0};
  return BED_ADD(m->b, "conv", .inputs = in, .input_count = 3,
                 BED_ATTRS({"pad", 4, {pad, pad, pad, pad}}));
}

/* A normalisation behind it takes out any bias, whose gradient is nothing but rounding. */
static int conv(struct maker *m, int x, bool normalised) {
  const struct ct_shape s = shape_of(m, x);
  if (m->shape->whole) return same_conv(m, x, draw(m, m->shape->most_channels), normalised);
  const uint32_t ky = draw(m, s.dim[1] < 5 ? s.dim[1] : 5),
                 kx = draw(m, s.dim[2] < 5 ? s.dim[2] : 5);
  const uint32_t outputs = draw(m, m->shape->most_channels);
  const double pad[4] = {ct_rng_below(m->rng, ky), ct_rng_below(m->rng, kx),
                         ct_rng_below(m->rng, ky), ct_rng_below(m->rng, kx)};
  const bool bias = !normalised && ct_rng_percent(m->rng, 50);
  const int w = weight(m, SHAPE(outputs, ky, kx, s.dim[3]), CT_INITIAL_HE);
  const int in[3] = {x, w, bias ? weight(m, SHAPE(outputs), CT_INITIAL_ZEROS) : 0};
  return BED_ADD(m->b, "conv", .inputs = in, .input_count = 3,
                 BED_ATTRS({"pad", 4, {pad[0], pad[1], pad[2], pad[3]}},
                           {"stride", 2, {draw(m, 2), draw(m, 2)}}));
}

static int pool(struct maker *m, int x) {
  const struct ct_shape s = shape_of(m, x);
  const uint32_t ky = draw(m, s.dim[1] < 3 ? s.dim[1] : 3),
                 kx = draw(m, s.dim[2] < 3 ? s.dim[2] : 3);
  const bool max = !m->shape->smooth && ct_rng_percent(m->rng, 60);
  if (m->shape->whole)
    return BED_ADD(m->b, max ? "max_pool" : "average_pool", BED_IN(x),
                   BED_ATTRS({"kernel", 2, {3, 3}}, {"pad", 4, {1, 1, 1, 1}}));
  return BED_ADD(m->b, max ? "max_pool" : "average_pool", BED_IN(x),
                 BED_ATTRS({"kernel", 2, {ky, kx}}, {"stride", 2, {draw(m, 2), draw(m, 2)}}));
}

/* Over so few rows the deviation may be next to nothing, and its gradient anything. So may be the
 * gradient of a scale that stands alone: a sum that cancels, with no others beside it. */
enum { LEAST_ROWS = 32, LEAST_CHANNELS = 3 };

static int norm(struct maker *m, int x) {
  const struct ct_shape s = shape_of(m, x), c = {1, {s.dim[3]}};
  if (m->shape->training && m->shape->smooth &&
      (s.dim[0] * s.dim[1] * s.dim[2] < LEAST_ROWS || s.dim[3] < LEAST_CHANNELS))
    return x;
  const int in[5] = {
      x, weight(m, c, CT_INITIAL_ONES), weight(m, c, CT_INITIAL_ZEROS),
      ct_graph_tensor(m->b->g, &(struct ct_new_tensor){.shape = c, .role = CT_ROLE_STATE}),
      ct_graph_tensor(m->b->g, &(struct ct_new_tensor){
                                   .shape = c, .role = CT_ROLE_STATE, .initial = CT_INITIAL_ONES})};
  if (!m->shape->training) return BED_ADD(m->b, "batch_norm", .inputs = in, .input_count = 5);
  const int y = BED_ADD(m->b, "batch_norm_train", .inputs = in, .input_count = 5);
  ct_graph_becomes(m->b->g, in[3], y + 1);
  ct_graph_becomes(m->b->g, in[4], y + 2);
  return y;
}

static int activation(struct maker *m, int x) {
  static const char *const smooth[] = {"tanh", "sigmoid"};
  static const char *const all[] = {"tanh", "sigmoid", "relu", "relu", "leaky_relu", "gelu"};
  return BED_ADD(m->b,
                 m->shape->smooth ? smooth[ct_rng_below(m->rng, 2)] : all[ct_rng_below(m->rng, 6)],
                 BED_IN(x));
}

/* x + f(x), f a convolution that leaves the shape. */
static int residual(struct maker *m, int x) {
  const struct ct_shape s = shape_of(m, x);
  const int w = weight(m, SHAPE(s.dim[3], 3, 3, s.dim[3]), CT_INITIAL_HE);
  int y = BED_ADD(m->b, "conv", BED_IN(x, w), BED_ATTRS({"pad", 4, {1, 1, 1, 1}}));
  if (ct_rng_percent(m->rng, 50)) y = norm(m, y);
  return activation(m, BED_ADD(m->b, "add", BED_IN(y, x)));
}

/* Some whole blocks of 16 channels, or all from one of them on. */
static int part(struct maker *m, int x) {
  const uint32_t all = shape_of(m, x).dim[3], begin = 16 * ct_rng_below(m->rng, (all + 15) / 16);
  const uint32_t blocks = (all - begin) / 16;
  const uint32_t size = blocks && ct_rng_percent(m->rng, 50) ? 16 * draw(m, blocks) : all - begin;
  return BED_ADD(m->b, "slice", BED_IN(x),
                 BED_ATTRS({"axis", 1, {3}}, {"begin", 1, {begin}}, {"size", 1, {size}}));
}

/* f(x) beside x; without training a part of that, or a part of a part, which have no gradients. */
static int beside(struct maker *m, int x) {
  const struct ct_shape s = shape_of(m, x);
  const int w = weight(m, SHAPE(16 * draw(m, 2), 3, 3, s.dim[3]), CT_INITIAL_HE);
  const int f = BED_ADD(m->b, "conv", BED_IN(x, w), BED_ATTRS({"pad", 4, {1, 1, 1, 1}}));
  int y = BED_ADD(m->b, "concat", BED_IN(activation(m, f), x), BED_ATTRS({"axis", 1, {3}}));
  while (!m->shape->training && ct_rng_percent(m->rng, 50))
    y = part(m, y);
  return ct_rng_percent(m->rng, 50) ? activation(m, y) : y;
}

/* The channels of each pixel; of two or three they may all but be one, and their gradient anything.
 */
static int layer_norm(struct maker *m, int x) {
  const struct ct_shape s = shape_of(m, x), c = {1, {s.dim[3]}};
  if (m->shape->smooth && s.dim[3] < 8) return x;
  const int in[3] = {x, weight(m, c, CT_INITIAL_ONES),
                     ct_rng_percent(m->rng, 50) ? weight(m, c, CT_INITIAL_ZEROS) : 0};
  return BED_ADD(m->b, "layer_norm", .inputs = in, .input_count = 3);
}

/* Lines, columns and channels change places; images stay. */
static int transposed(struct maker *m, int x) {
  static const double perms[][3] = {{2, 1, 3}, {1, 3, 2}, {3, 2, 1}, {2, 3, 1}, {3, 1, 2}};
  const double *p = perms[ct_rng_below(m->rng, 5)];
  return BED_ADD(m->b, "transpose", BED_IN(x), BED_ATTRS({"perm", 4, {0, p[0], p[1], p[2]}}));
}

/* The mean of an image's channels beside it, as squeeze and excitation have it. */
static int excited(struct maker *m, int x) {
  const struct ct_shape s = shape_of(m, x);
  int y = BED_ADD(m->b, "sigmoid", BED_IN(BED_ADD(m->b, "global_average_pool", BED_IN(x))));
  y = BED_ADD(m->b, "reshape", BED_IN(y), BED_ATTRS({"shape", 4, {s.dim[0], 1, 1, s.dim[3]}}));
  return BED_ADD(m->b, "mul", BED_IN(x, y));
}

static int other_layer(struct maker *m, int x) {
  switch (ct_rng_below(m->rng, 5)) {
    case 0:
      return layer_norm(m, x);
    case 1:
      return transposed(m, x);
    case 2:
      return excited(m, x);
    case 3:
      return BED_ADD(m->b, "softmax", BED_IN(x));
    default:
      return m->shape->training ? BED_ADD(m->b, "dropout", BED_IN(x)) : x;
  }
}

static int layer(struct maker *m, int x) {
  switch (ct_rng_below(m->rng, 7)) {
    case 0:
      return activation(m, norm(m, conv(m, x, true)));
    case 1:
      return pool(m, x);
    case 2:
      return residual(m, x);
    case 3:
      return beside(m, x);
    case 4:
      return other_layer(m, x);
    default:
      return activation(m, conv(m, x, false));
  }
}

/* Ways of keeping for what is made in a run; narrow ones only where nothing is compared closely. */
static void draw_formats(const struct maker *m) {
  struct ct_graph_info g;
  ct_graph_info(m->b->g, &g);
  const uint32_t formats = m->shape->smooth ? 1 : 3, percent = ct_rng_below(m->rng, 2) ? 25 : 100;
  for (int i = 1; i <= (int)g.tensors; ++i) {
    const enum ct_format f = (enum ct_format)(1 + ct_rng_below(m->rng, formats));
    const enum ct_role role = bed_info(m->b, i).role;
    if ((role != CT_ROLE_ACTIVATION && role != CT_ROLE_GRADIENT) ||
        !ct_rng_percent(m->rng, percent))
      continue;
    if (ct_graph_set_format(m->b->g, i, f) < 0) fail_msg("%s", ct_graph_error(m->b->g));
  }
}

/* All but what weights and states become, which is read from those. */
static void show_all(const struct maker *m) {
  struct ct_graph_info g;
  ct_graph_info(m->b->g, &g);
  for (int i = 1; i <= (int)g.tensors; ++i)
    if (bed_info(m->b, i).node >= 0) ct_graph_result(m->b->g, i);
}

void net_random(struct bed *b, const struct net_shape *shape, ct_rng *rng) {
  struct maker m = {b, rng, shape, 0};
  const uint32_t images = draw(&m, shape->most_images), classes = 1 + draw(&m, 20);
  bed_make(b);
  const uint32_t h = shape->whole ? 16 : draw(&m, shape->most_size),
                 w = shape->whole ? 16 : draw(&m, shape->most_size);
  int x = bed_tensor(b, CT_ROLE_INPUT, SHAPE(images, h, w, draw(&m, shape->most_channels)));
  for (uint32_t i = draw(&m, shape->most_layers); i > 0; --i)
    x = layer(&m, x);
  if (ct_rng_percent(rng, 20)) x = BED_ADD(b, "global_average_pool", BED_IN(x));
  x = BED_ADD(b, "flatten", BED_IN(x));
  const int last = weight(&m, SHAPE(classes, shape_of(&m, x).dim[1]), CT_INITIAL_HE);
  x = BED_ADD(b, "linear", BED_IN(x, last, weight(&m, SHAPE(classes), CT_INITIAL_ZEROS)));
  ct_graph_result(b->g, x);
  if (shape->training) {
    const int y = bed_tensor(b, CT_ROLE_LABEL, SHAPE(images, classes));
    const char *loss_op = ct_rng_percent(rng, 70) ? "cross_entropy" : "mse";
    const int loss = ct_graph_result(b->g, BED_ADD(b, loss_op, BED_IN(x, y)));
    const struct ct_optimise how = {.optimiser = !shape->smooth && ct_rng_percent(rng, 30)
                                                     ? CT_OPTIMISER_ADAM
                                                     : CT_OPTIMISER_SGD,
                                    .schedule = {.rate = 0.01},
                                    .momentum = 0.9,
                                    .weight_decay = 0.001,
                                    .accumulate = shape->accumulate,
                                    .clip = ct_rng_percent(rng, 30) ? 0.5 : 0};
    if (ct_graph_optimise(b->g, loss, &how)) fail_msg("%s", ct_graph_error(b->g));
    b->update = true;
  }
  b->formats = ct_rng_percent(rng, 40);
  if (b->formats) draw_formats(&m);
  if (shape->all) show_all(&m);
  bed_check(b);
}

const char *net_text(const struct bed *b, char *text, size_t size) {
  struct ct_node_info n;
  *text = 0;
  for (size_t i = 0; !ct_graph_node_info(b->g, i, &n) && !n.backward; ++i) {
    const struct ct_tensor_info t = bed_info(b, n.outputs[0]);
    const size_t used = strlen(text);
    snprintf(text + used, size - used, "%s %ux%ux%ux%u; ", n.op, t.shape.dim[0], t.shape.dim[1],
             t.shape.dim[2], t.shape.dim[3]);
  }
  return text;
}
