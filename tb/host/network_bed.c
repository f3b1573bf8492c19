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

void net_open(struct net_bed *n, struct bed *bed, const char *uri) {
  *n = (struct net_bed){.bed = bed};
  if (ct_open(uri, &n->dev)) fail_msg("%s: %s", uri, ct_last_error(NULL));
  must(n, ct_network_create(n->dev, bed->g, NULL, &n->net), "the network");
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
  float *f = malloc(count * sizeof *f);
  assert_non_null(f);
  for (size_t i = 0; i < count; ++i)
    f[i] = (float)x[i];
  must(n, ct_network_write(n->net, tensor, f, count), "write");
  free(f);
}

static void get(struct net_bed *n, int tensor, double *x, size_t count) {
  float *f = malloc(count * sizeof *f);
  assert_non_null(f);
  must(n, ct_network_read(n->net, tensor, f, count), "read");
  for (size_t i = 0; i < count; ++i)
    x[i] = (double)f[i];
  free(f);
}

/* Inputs: whole 64ths below 2, which HBFP8 holds. */
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

void net_draw(struct net_bed *n, uint64_t seed, ct_rng *rng) {
  must(n, ct_network_draw(n->net, seed), "draw");
  for (size_t i = 1; i <= tensors(n); ++i) {
    const struct ct_tensor_info t = bed_info(n->bed, (int)i);
    if (!from_outside(&t)) continue;
    if (t.role == CT_ROLE_WEIGHT || t.role == CT_ROLE_STATE)
      get(n, (int)i, bed_data(n->bed, (int)i), t.elements);
    else
      draw_one(n, (int)i, &t, rng);
  }
}

void net_run(struct net_bed *n) {
  for (size_t i = 1; i <= tensors(n); ++i)
    if (bed_info(n->bed, (int)i).role == CT_ROLE_OUTPUT) (void)bed_data(n->bed, (int)i);
  bed_run(n->bed);
  must(n, ct_network_run(n->net, CT_TRAINING, n->bed->step), "run");
}

double net_distance(struct net_bed *n, int tensor) {
  const size_t count = bed_info(n->bed, tensor).elements;
  const double *want = bed_data(n->bed, tensor);
  double *x = malloc(count * sizeof *x), far = 0, size = 0;
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
