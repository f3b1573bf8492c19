/* SPDX-License-Identifier: Apache-2.0 */
/* See graph_bed.h. */
#include "graph_bed.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void bed_make(struct bed *b) {
  *b = (struct bed){.seed = 1};
  assert_int_equal(ct_graph_create(&b->g), CT_OK);
}

void bed_free(struct bed *b) {
  for (size_t i = 0; i < b->room; ++i)
    free(b->data[i]);
  free(b->data);
  ct_graph_free(b->g);
}

struct ct_tensor_info bed_info(const struct bed *b, int tensor) {
  struct ct_tensor_info info;
  if (ct_graph_tensor_info(b->g, tensor, &info)) fail_msg("%s", ct_graph_error(b->g));
  return info;
}

double *bed_data(struct bed *b, int tensor) {
  const struct ct_tensor_info info = bed_info(b, tensor);
  if ((size_t)tensor >= b->room) {
    const size_t room = (size_t)tensor + 32;
    b->data = realloc(b->data, room * sizeof *b->data);
    assert_non_null(b->data);
    memset(b->data + b->room, 0, (room - b->room) * sizeof *b->data);
    b->room = room;
  }
  assert_true(info.elements > 0);
  if (!b->data[tensor]) b->data[tensor] = calloc(info.elements, sizeof **b->data);
  assert_non_null(b->data[tensor]);
  return b->data[tensor];
}

/* ---- Tensors ------------------------------------------------------------------------------- */

int bed_tensor(struct bed *b, enum ct_role role, struct ct_shape shape) {
  return ct_graph_tensor(b->g, &(struct ct_new_tensor){.role = role, .shape = shape});
}

int bed_values(struct bed *b, enum ct_role role, struct ct_shape shape, const double *values) {
  const int t = bed_tensor(b, role, shape);
  if (t < 0) fail_msg("%s", ct_graph_error(b->g));
  memcpy(bed_data(b, t), values, bed_info(b, t).elements * sizeof *values);
  return t;
}

int bed_drawn(struct bed *b, enum ct_role role, struct ct_shape shape, ct_rng *rng) {
  const int t = bed_tensor(b, role, shape);
  if (t < 0) fail_msg("%s", ct_graph_error(b->g));
  double *x = bed_data(b, t);
  const size_t n = bed_info(b, t).elements;
  for (size_t i = 0; i < n; ++i)
    x[i] = ((double)i - (double)n / 2 + 0.37) * 3 / (double)n;
  for (size_t i = n; i-- > 1;) {
    const size_t k = ct_rng_below(rng, (uint32_t)i + 1);
    const double swap = x[i];
    x[i] = x[k];
    x[k] = swap;
  }
  return t;
}

/* ---- Runs ---------------------------------------------------------------------------------- */

void bed_check(struct bed *b) {
  if (ct_graph_check(b->g)) fail_msg("%s", ct_graph_error(b->g));
}

int bed_try(struct bed *b) {
  struct ct_value *values = calloc(b->room + 1, sizeof *values);
  struct ct_reference run = {
      .values = values, .seed = b->seed, .step = b->step, .update = b->update};
  assert_non_null(values);
  for (size_t i = 1; i < b->room; ++i)
    if (b->data[i])
      values[run.value_count++] =
          (struct ct_value){(int)i, b->data[i], bed_info(b, (int)i).elements};
  const int err = ct_graph_run_reference(b->g, &run);
  free(values);
  return err;
}

void bed_run(struct bed *b) {
  if (bed_try(b)) fail_msg("%s", ct_graph_error(b->g));
}

void bed_expect(struct bed *b, int tensor, const double *want, size_t count, double tolerance) {
  if (tensor < 0) fail_msg("%s", ct_graph_error(b->g));
  bed_check(b);
  const double *got = bed_data(b, tensor);
  bed_run(b);
  assert_int_equal(bed_info(b, tensor).elements, count);
  for (size_t i = 0; i < count; ++i)
    if (!(fabs(got[i] - want[i]) <= tolerance))
      fail_msg("element %zu of %s is %.17g, not %.17g", i, bed_info(b, tensor).name, got[i],
               want[i]);
}

/* ---- Gradients ----------------------------------------------------------------------------- */

/* The loss with one element moved. */
static double moved(struct bed *b, const double *loss, double *x, double by) {
  const double was = *x;
  *x = was + by;
  bed_run(b);
  *x = was;
  return *loss;
}

/* Half the slopes to both sides, and how much they differ: h times the second derivative where
 * there is one, so that it goes down with h; at a kink it stays. */
struct slope {
  double mean, bend;
};

static struct slope slope(struct bed *b, const double *loss, double *x, double h) {
  const double up = moved(b, loss, x, h), down = moved(b, loss, x, -h), here = moved(b, loss, x, 0);
  return (struct slope){(up - down) / (2 * h), (up - here - (here - down)) / h};
}

static void compare(struct bed *b, const double *loss, double *x, double got,
                    struct bed_found *found, const char *what) {
  const double h = 2e-5;
  const struct slope wide = slope(b, loss, x, h), narrow = slope(b, loss, x, h / 4);
  const double tolerance = 1e-6 * (1 + fabs(wide.mean) + fabs(narrow.mean));
  if (fabs(wide.mean - narrow.mean) > tolerance || fabs(wide.bend / 4 - narrow.bend) > tolerance) {
    ++found->kinks;
    return;
  }
  ++found->compared;
  found->nonzero += fabs(got) > 1e-9;
  if (!(fabs(got - narrow.mean) <= tolerance))
    fail_msg("%s: a gradient is %.12g, differences say %.12g", what, got, narrow.mean);
}

int bed_loss(struct bed *b, int y, ct_rng *rng) {
  const struct ct_tensor_info info = bed_info(b, y);
  if (info.elements == 1) return y;
  const int t = bed_drawn(b, CT_ROLE_LABEL, info.shape, rng);
  return BED_ADD(b, "mse", BED_IN(y, t));
}

void bed_compare(struct bed *b, int loss, size_t most, ct_rng *rng, struct bed_found *found,
                 const char *what) {
  struct ct_graph_info all;
  assert_int_equal(ct_graph_info(b->g, &all), CT_OK);
  const double *value = bed_data(b, loss);
  for (int t = 1; t <= (int)all.tensors; ++t) {
    const struct ct_tensor_info info = bed_info(b, t);
    if (info.role != CT_ROLE_WEIGHT || !info.gradient) continue;
    double *x = bed_data(b, t), *gradient = malloc(info.elements * sizeof *gradient);
    assert_non_null(gradient);
    bed_data(b, info.gradient);
    bed_run(b);
    memcpy(gradient, bed_data(b, info.gradient), info.elements * sizeof *gradient);
    for (size_t i = 0; i < most && i < info.elements; ++i) {
      const size_t at = info.elements <= most ? i : ct_rng_below(rng, (uint32_t)info.elements);
      compare(b, value, &x[at], gradient[at], found, what);
    }
    free(gradient);
  }
}

void bed_gradients(struct bed *b, int y, size_t most, ct_rng *rng, struct bed_found *found,
                   const char *what) {
  if (y < 0) fail_msg("%s: %s", what, ct_graph_error(b->g));
  const int loss = bed_loss(b, y, rng);
  if (ct_graph_gradients(b->g, loss, NULL, 0)) fail_msg("%s: %s", what, ct_graph_error(b->g));
  bed_check(b);
  bed_compare(b, loss, most, rng, found, what);
}
