/* SPDX-License-Identifier: Apache-2.0 */
/* Bounds of single nodes: see the header. */
#include "node_bounds.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define UNIT 0x1p-24
#define FUNCTION 0x1p-19 /* 32 units, of what is computed in FP32 around it, too */
#define STEPS 128        /* half a step is at most this part of a block's largest number */

static void *room(size_t count, size_t size) {
  void *p = calloc(count + 1, size);
  assert_non_null(p);
  return p;
}

/* ---- A node alone -------------------------------------------------------------------------- */

static size_t attributes(struct bed *from, size_t index, const char *op, struct ct_attr *attrs,
                         size_t most) {
  size_t count = 0;
  const char *name;
  for (size_t i = 0; (name = ct_graph_op_attr(op, i)); ++i) {
    assert_true(count < most);
    if (!ct_graph_node_attr(from->g, index, name, &attrs[count])) ++count;
  }
  return count;
}

void node_take(struct node_case *n, struct bed *from, size_t index) {
  struct ct_attr attrs[16];
  *n = (struct node_case){0};
  assert_int_equal(ct_graph_node_info(from->g, index, &n->of), CT_OK);
  assert_true(n->of.input_count <= NODE_MOST_INPUTS && n->of.output_count <= NODE_MOST_OUTPUTS);
  bed_make(&n->bed);
  n->bed.seed = from->seed;
  n->bed.step = from->step;
  for (size_t i = 0; i < n->of.input_count; ++i)
    if (n->of.inputs[i])
      n->in[i] = bed_tensor(&n->bed, CT_ROLE_INPUT, bed_info(from, n->of.inputs[i]).shape);
  const size_t count = attributes(from, index, n->of.op, attrs, 16);
  const int first = ct_graph_add(n->bed.g, &(struct ct_new_node){.op = n->of.op,
                                                                 .name = n->of.name,
                                                                 .inputs = n->in,
                                                                 .input_count = n->of.input_count,
                                                                 .attrs = attrs,
                                                                 .attr_count = count});
  if (first < 0) fail_msg("%s", ct_graph_error(n->bed.g));
  for (size_t i = 0; i < n->of.output_count; ++i)
    n->out[i] = ct_graph_result(n->bed.g, first + (int)i);
  bed_check(&n->bed);
  for (size_t i = 0; i < n->of.input_count; ++i)
    if (n->in[i]) (void)bed_data(&n->bed, n->in[i]);
  for (size_t i = 0; i < n->of.output_count; ++i)
    (void)bed_data(&n->bed, n->out[i]);
}

void node_run(struct node_case *n) {
  bed_run(&n->bed);
}

void node_drop(struct node_case *n) {
  bed_free(&n->bed);
}

static size_t elements(struct node_case *n, int tensor) {
  return bed_info(&n->bed, tensor).elements;
}

static double attr(struct node_case *n, const char *name) {
  struct ct_attr a;
  if (ct_graph_node_attr(n->bed.g, 0, name, &a)) fail_msg("%s has no %s", n->of.op, name);
  return a.value[0];
}

static const double *input(struct node_case *n, size_t i) {
  return bed_data(&n->bed, n->in[i]);
}

static bool is(const struct node_case *n, const char *op) {
  return strcmp(n->of.op, op) == 0;
}

static double largest(const double *x, size_t count) {
  double most = 0;
  for (size_t i = 0; i < count; ++i)
    if (fabs(x[i]) > most) most = fabs(x[i]);
  return most;
}

/* ---- Products ------------------------------------------------------------------------------ */

/* Which numbers a block of a factor may have, as far as the bound has to know: those of a row, of
 * 16 rows, of 16 channels anywhere, all. Rows are the last dimension; of weights all but the first.
 */
enum blocks { OF_ROW, OF_ROWS, OF_CHANNELS, OF_ALL };

/* How often it is rounded: what is gathered was rounded by rows before. */
struct factor {
  enum blocks blocks;
  int times;
};

/* docs/numerics.md, Networks: activations by rows, weights and gradients in squares of 16 x 16. A
 * row of an image with few channels has several pixels. */
static struct factor factor_of(struct node_case *n, size_t i) {
  const struct ct_shape s = bed_info(&n->bed, n->in[i]).shape;
  const bool few = s.dim[s.dims - 1] < 16;
  if (is(n, "conv") && i == 0) return (struct factor){few ? OF_ALL : OF_ROW, 1};
  if (is(n, "linear") && i == 0) return (struct factor){OF_ROW, 1};
  if (is(n, "conv") || is(n, "linear")) return (struct factor){OF_ROWS, 1};
  if (is(n, "conv_input_grad")) return (struct factor){i == 0 ? OF_CHANNELS : OF_ROWS, 1};
  if (is(n, "conv_weight_grad"))
    return i == 0 ? (struct factor){OF_CHANNELS, 1}
                  : (struct factor){few ? OF_ALL : OF_CHANNELS, 2};
  return (struct factor){OF_ALL, attr(n, "transpose_a") != 0 ? 2 : 1};
}

static size_t block_of(const struct factor *f, const struct ct_shape *s, size_t row, size_t k) {
  const size_t channels = s->dim[s->dims - 1];
  switch (f->blocks) {
    case OF_ROW:
      return k / row;
    case OF_ROWS:
      return k / row / 16;
    case OF_CHANNELS:
      return k % channels / 16;
    default:
      return 0;
  }
}

/* Adds d to each magnitude of a factor. */
static void add_steps(struct node_case *n, size_t i, double *x) {
  const struct ct_shape s = bed_info(&n->bed, n->in[i]).shape;
  const size_t count = elements(n, n->in[i]);
  const struct factor f = factor_of(n, i);
  const size_t row = f.blocks == OF_ROWS ? count / s.dim[0] : s.dim[s.dims - 1];
  double *most = room(count, sizeof *most);
  for (size_t k = 0; k < count; ++k) {
    double *m = &most[block_of(&f, &s, row, k)];
    if (x[k] > *m) *m = x[k];
  }
  for (size_t k = 0; k < count; ++k)
    x[k] += f.times * most[block_of(&f, &s, row, k)] / STEPS;
  free(most);
}

/* Input i as magnitudes, so that all terms of a sum add up. Where maxima are stays. */
static void to_magnitudes(struct node_case *n, size_t i, double *x) {
  const bool other = i == 1;
  if (other && is(n, "max_pool_grad")) return;
  const double sign = other && (is(n, "sub") || is(n, "mse")) ? -1 : 1;
  for (size_t k = 0; k < elements(n, n->in[i]); ++k)
    x[k] = sign * fabs(x[k]);
}

/* The node on magnitudes, of factors as large as they may be made if `steps`. */
static double *on_magnitudes(struct node_case *n, size_t output, bool steps) {
  double *was[NODE_MOST_INPUTS] = {0};
  const size_t count = elements(n, n->out[output]);
  double *y = bed_data(&n->bed, n->out[output]), *of = room(count, sizeof *of);
  double *kept = room(count, sizeof *kept);
  memcpy(kept, y, count * sizeof *y);
  for (size_t i = 0; i < n->of.input_count; ++i) {
    if (!n->in[i]) continue;
    const size_t size = elements(n, n->in[i]);
    double *x = bed_data(&n->bed, n->in[i]);
    was[i] = room(size, sizeof *x);
    memcpy(was[i], x, size * sizeof *x);
    to_magnitudes(n, i, x);
    if (steps && i < 2) add_steps(n, i, x);
  }
  bed_run(&n->bed);
  memcpy(of, y, count * sizeof *y);
  memcpy(y, kept, count * sizeof *y);
  for (size_t i = 0; i < n->of.input_count; ++i) {
    if (was[i]) memcpy(bed_data(&n->bed, n->in[i]), was[i], elements(n, n->in[i]) * sizeof **was);
    free(was[i]);
  }
  free(kept);
  return of;
}

/* Numbers that are summed to one of the output. */
static double terms(struct node_case *n, size_t output) {
  const double outputs = (double)elements(n, n->out[output]);
  double most = (double)n->of.macs / outputs;
  for (size_t i = 0; i < n->of.input_count; ++i)
    if (n->in[i] && (double)elements(n, n->in[i]) / outputs > most)
      most = (double)elements(n, n->in[i]) / outputs;
  return most;
}

static double *of_products(struct node_case *n, size_t output) {
  double *least = on_magnitudes(n, output, false), *most = on_magnitudes(n, output, true);
  const double fp32 = (terms(n, output) + 8) * UNIT;
  for (size_t i = 0; i < elements(n, n->out[output]); ++i)
    most[i] = most[i] - least[i] + fp32 * most[i];
  free(least);
  return most;
}

static double *of_sums(struct node_case *n, size_t output) {
  double *bound = on_magnitudes(n, output, false);
  const double fp32 = (terms(n, output) + 8) * UNIT;
  for (size_t i = 0; i < elements(n, n->out[output]); ++i)
    bound[i] = fp32 * fabs(bound[i]);
  return bound;
}

/* ---- Functions ----------------------------------------------------------------------------- */

/* f(x): a few functions of what is as large as x. */
static double *of_function(struct node_case *n, size_t output) {
  const size_t count = elements(n, n->out[output]);
  const double *y = bed_data(&n->bed, n->out[output]);
  const double scale = 8 * (1 + largest(input(n, 0), elements(n, n->in[0])));
  double *bound = room(count, sizeof *bound);
  for (size_t i = 0; i < count; ++i)
    bound[i] = FUNCTION * (scale * fabs(y[i]) + 1);
  return bound;
}

/* gy f'(x): of a slope of at most 2 that is made of a few functions. */
static double *of_slope(struct node_case *n, size_t output) {
  const size_t count = elements(n, n->out[output]);
  double *bound = room(count, sizeof *bound);
  for (size_t i = 0; i < count; ++i)
    bound[i] = 32 * FUNCTION * fabs(input(n, 0)[i]);
  return bound;
}

static double *of_softmax_grad(struct node_case *n, size_t output) {
  const struct ct_shape s = bed_info(&n->bed, n->out[output]).shape;
  const size_t count = elements(n, n->out[output]), row = s.dim[s.dims - 1];
  const double *gy = input(n, 0), *y = input(n, 1);
  double *bound = room(count, sizeof *bound);
  for (size_t at = 0; at < count; at += row) {
    double sum = 0;
    for (size_t k = at; k < at + row; ++k)
      sum += fabs(gy[k] * y[k]);
    for (size_t k = at; k < at + row; ++k)
      bound[k] = ((double)row + 8) * UNIT * fabs(y[k]) * (fabs(gy[k]) + sum);
  }
  return bound;
}

/* The mean over the rows of t (log(sum e^z) - z); rows of t are probabilities. */
static double *of_entropy(struct node_case *n, size_t output) {
  const struct ct_shape s = bed_info(&n->bed, n->in[0]).shape;
  const double row = s.dim[s.dims - 1];
  (void)output;
  double *bound = room(1, sizeof *bound);
  bound[0] = 16 * FUNCTION * (1 + largest(input(n, 0), elements(n, n->in[0])) + log(row));
  return bound;
}

static double *of_entropy_grad(struct node_case *n, size_t output) {
  const struct ct_shape s = bed_info(&n->bed, n->in[1]).shape;
  const size_t count = elements(n, n->out[output]);
  const double rows = (double)count / s.dim[s.dims - 1];
  const double scale = 8 * (1 + largest(input(n, 1), count));
  double *bound = room(count, sizeof *bound);
  for (size_t i = 0; i < count; ++i)
    bound[i] = FUNCTION * scale * fabs(input(n, 0)[0]) / rows;
  return bound;
}

/* ---- Normalisations ------------------------------------------------------------------------ */

/* Of what shares a mean and a variance: both, how far a device's are off, and sums of the gradient.
 * `h` is (x - mean) / root; magnitudes of it are those of its parts. */
struct group {
  double mean, root, off_mean, off_root; /* off_root: of 1 / root, relative */
};

static struct group group_of(double mean, double variance, double epsilon) {
  return (struct group){.mean = mean, .root = sqrt(variance + epsilon), .off_root = 8 * FUNCTION};
}

/* Numbers at, at + step, .. of x: a mean of so many, and a variance by their squares or by the
 * differences, whichever is worse. */
static struct group group_of_numbers(const double *x, size_t at, size_t step, size_t count,
                                     double epsilon) {
  double mean = 0, size = 0, squares = 0, variance = 0;
  for (size_t i = 0; i < count; ++i) {
    const double v = x[at + i * step];
    mean += v / (double)count;
    size += fabs(v) / (double)count;
    squares += v * v / (double)count;
  }
  for (size_t i = 0; i < count; ++i) {
    const double d = x[at + i * step] - mean;
    variance += d * d / (double)count;
  }
  struct group g = group_of(mean, variance, epsilon);
  g.off_mean = ((double)count + 8) * UNIT * size;
  g.off_root += 2 * ((double)count + 8) * UNIT * squares / (variance + epsilon);
  return g;
}

static double h_size(const struct group *g, double x) {
  return (fabs(x) + fabs(g->mean)) / g->root;
}

/* How far h is off. */
static double h_off(const struct group *g, double x) {
  return g->off_mean / g->root + h_size(g, x) * (g->off_root + 8 * UNIT);
}

/* y = h scale + bias. */
static double y_off(const struct group *g, double x, double scale, double bias) {
  return fabs(scale) * h_off(g, x) + 8 * UNIT * (fabs(scale) * h_size(g, x) + fabs(bias));
}

/* The groups of an input: channels of a batch, each with numbers `step` apart, or rows. */
struct groups {
  size_t count, numbers, step;
  bool batch;
};

static struct groups groups_of(struct node_case *n, int tensor) {
  const struct ct_shape s = bed_info(&n->bed, tensor).shape;
  const size_t all = elements(n, tensor), last = s.dim[s.dims - 1];
  const bool batch = !strncmp(n->of.op, "batch", 5);
  return batch ? (struct groups){last, all / last, last, true}
               : (struct groups){all / last, last, 1, false};
}

static size_t place(const struct groups *s, size_t group, size_t i) {
  return s->batch ? i * s->step + group : group * s->numbers + i;
}

static size_t weight_of(const struct groups *s, size_t group, size_t i) {
  return s->batch ? group : i;
}

static double *of_normalisation(struct node_case *n, size_t output) {
  const struct groups s = groups_of(n, n->in[0]);
  const double *x = input(n, 0), *scale = input(n, 1), *bias = n->in[2] ? input(n, 2) : NULL;
  const double epsilon = attr(n, "epsilon");
  const bool given = is(n, "batch_norm");
  double *bound = room(elements(n, n->out[output]), sizeof *bound);
  for (size_t k = 0; k < s.count; ++k) {
    const struct group g =
        given ? group_of(input(n, 3)[k], input(n, 4)[k], epsilon)
              : group_of_numbers(x, place(&s, k, 0), s.batch ? s.step : 1, s.numbers, epsilon);
    const double off_variance = g.off_root * g.root * g.root;
    for (size_t i = 0; output == 0 && i < s.numbers; ++i) {
      const size_t at = place(&s, k, i), w = weight_of(&s, k, i);
      bound[at] = y_off(&g, x[at], scale[w], bias ? bias[w] : 0);
    }
    /* The running and the batch's own mean and variance. */
    if (output == 1 || output == 3) bound[k] = g.off_mean;
    if (output == 2 || output == 4) bound[k] = off_variance;
    if (output == 1 || output == 2)
      bound[k] += 8 * UNIT * (fabs(input(n, 2 + output)[k]) + fabs(g.mean) + g.root * g.root);
  }
  return bound;
}

/* Sums over a group of gy s and of gy s h, s the scale where it differs inside the group; and how
 * far they are off. */
struct group_sums {
  double plain, with_h, off_plain, off_h;
};

static struct group_sums sums_of(struct node_case *n, const struct groups *s, size_t k,
                                 const struct group *g) {
  const double *gy = input(n, 0), *x = input(n, 1), *scale = input(n, 2);
  const double fp32 = ((double)s->numbers + 8) * UNIT;
  struct group_sums sum = {0};
  for (size_t i = 0; i < s->numbers; ++i) {
    const size_t at = place(s, k, i);
    const double size = fabs(gy[at] * (s->batch ? 1 : scale[i]));
    sum.plain += size;
    sum.with_h += size * h_size(g, x[at]);
    sum.off_h += size * h_off(g, x[at]);
  }
  sum.off_plain = fp32 * sum.plain;
  sum.off_h += fp32 * sum.with_h;
  return sum;
}

/* x' = s / root (gy - (sum gy + h sum gy h) / n): off by what its parts are off. */
static double x_grad_off(const struct group *g, const struct group_sums *sum, double n, double gy,
                         double x) {
  const double h = h_size(g, x);
  const double size = fabs(gy) + (sum->plain + h * sum->with_h) / n;
  const double off = (sum->off_plain + h * sum->off_h + h_off(g, x) * sum->with_h) / n;
  return (off + size * (g->off_root + 16 * UNIT)) / g->root;
}

static double *of_normalisation_grad(struct node_case *n, size_t output) {
  const struct groups s = groups_of(n, n->in[1]);
  const double *gy = input(n, 0), *x = input(n, 1), *scale = input(n, 2);
  const double epsilon = attr(n, "epsilon");
  const bool running = s.batch && attr(n, "batch") == 0;
  double *bound = room(elements(n, n->out[output]), sizeof *bound);
  for (size_t k = 0; k < s.count; ++k) {
    const struct group g = s.batch ? group_of(input(n, 3)[k], input(n, 4)[k], epsilon)
                                   : group_of_numbers(x, place(&s, k, 0), 1, s.numbers, epsilon);
    struct group_sums sum = sums_of(n, &s, k, &g);
    const struct group_sums weights = sum;
    if (running) sum = (struct group_sums){0};
    for (size_t i = 0; i < s.numbers; ++i) {
      const size_t at = place(&s, k, i);
      const double scaled = s.batch ? gy[at] : gy[at] * scale[i];
      if (output == 0)
        bound[at] =
            (s.batch ? fabs(scale[k]) : 1) * x_grad_off(&g, &sum, (double)s.numbers, scaled, x[at]);
      /* Of rows the weights' gradients are sums over the groups. */
      const double fp32 = ((double)s.count + 8) * UNIT;
      if (!s.batch && output == 1)
        bound[i] += fabs(gy[at]) * (h_off(&g, x[at]) + fp32 * h_size(&g, x[at]));
      if (!s.batch && output == 2) bound[i] += fp32 * fabs(gy[at]);
    }
    if (s.batch && output == 1) bound[k] = weights.off_h;
    if (s.batch && output == 2) bound[k] = weights.off_plain;
  }
  return bound;
}

/* ---- Updates ------------------------------------------------------------------------------- */

static double *of_sgd(struct node_case *n, size_t output) {
  const double *w = input(n, 0), *g = input(n, 1), *v = input(n, 2), rate = input(n, 3)[0];
  const double momentum = attr(n, "momentum"), decay = attr(n, "decay");
  const size_t count = elements(n, n->out[output]);
  double *bound = room(count, sizeof *bound);
  for (size_t i = 0; i < count; ++i) {
    const double step = fabs(momentum * v[i]) + fabs(g[i]) + fabs(decay * w[i]);
    bound[i] = 8 * UNIT * (output == 0 ? fabs(w[i]) + rate * step : step);
  }
  return bound;
}

/* 1 - beta is made of beta in FP32, so it is off by as much as beta is. */
static double *of_adam(struct node_case *n, size_t output) {
  const double *w = input(n, 0), *g = input(n, 1), *m = input(n, 2), *v = input(n, 3);
  const double b1 = attr(n, "beta1"), b2 = attr(n, "beta2"), decay = attr(n, "decay");
  const double rate = input(n, 4)[0], t = (double)n->bed.step + 1;
  const size_t count = elements(n, n->out[output]);
  double *bound = room(count, sizeof *bound);
  for (size_t i = 0; i < count; ++i) {
    const double pull = fabs(g[i]) + decay * fabs(w[i]);
    const double mean = b1 * fabs(m[i]) + (1 - b1) * pull;
    const double square = b2 * v[i] + (1 - b2) * pull * pull;
    const double root = sqrt(bed_data(&n->bed, n->out[2])[i] / (1 - pow(b2, t)));
    const double step = mean / (1 - pow(b1, t)) / (root + attr(n, "epsilon")) + decay * fabs(w[i]);
    const double off = 8 * FUNCTION + UNIT / (1 - b1) + UNIT / (1 - b2);
    const double of[3] = {8 * UNIT * fabs(w[i]) + off * rate * step, 8 * UNIT * mean + UNIT * pull,
                          8 * UNIT * square + UNIT * pull * pull};
    bound[i] = of[output];
  }
  return bound;
}

/* min(1, most / norm): a sum of squares, a root, a quotient. */
static double *of_clip_norm(struct node_case *n, size_t output) {
  double *bound = room(1, sizeof *bound), numbers = 0;
  for (size_t i = 0; i < n->of.input_count; ++i)
    if (n->in[i]) numbers += (double)elements(n, n->in[i]);
  bound[0] = (numbers * UNIT + 8 * FUNCTION) * fabs(bed_data(&n->bed, n->out[output])[0]);
  return bound;
}

/* ---- The table ----------------------------------------------------------------------------- */

typedef double *bound_fn(struct node_case *n, size_t output);

/* All others are sums, or moves, which are sums of one number. */
static const struct {
  const char *op;
  bound_fn *of;
} bounds[] = {{"conv", of_products},
              {"conv_input_grad", of_products},
              {"conv_weight_grad", of_products},
              {"linear", of_products},
              {"matmul", of_products},
              {"sigmoid", of_function},
              {"tanh", of_function},
              {"erf", of_function},
              {"gelu", of_function},
              {"softmax", of_function},
              {"div", of_function},
              {"sigmoid_grad", of_slope},
              {"tanh_grad", of_slope},
              {"erf_grad", of_slope},
              {"gelu_grad", of_slope},
              {"softmax_grad", of_softmax_grad},
              {"cross_entropy", of_entropy},
              {"cross_entropy_grad", of_entropy_grad},
              {"batch_norm", of_normalisation},
              {"batch_norm_train", of_normalisation},
              {"layer_norm", of_normalisation},
              {"batch_norm_grad", of_normalisation_grad},
              {"layer_norm_grad", of_normalisation_grad},
              {"sgd", of_sgd},
              {"adam", of_adam},
              {"clip_norm", of_clip_norm}};

double *node_bound(struct node_case *n, size_t output) {
  for (size_t i = 0; i < sizeof bounds / sizeof *bounds; ++i)
    if (is(n, bounds[i].op)) return bounds[i].of(n, output);
  return of_sums(n, output);
}
