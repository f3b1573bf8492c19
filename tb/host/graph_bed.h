/* SPDX-License-Identifier: Apache-2.0 */
/* A graph with values for its tensors, for tests: short ways to add nodes, to run it, and to
 * compare its gradients with central differences. */
#ifndef GRAPH_BED_H
#define GRAPH_BED_H

#include "ct_tb.h"

#include "coltrain/coltrain.h"
#include "coltrain/network.h"

struct bed {
  ct_graph *g;
  double **data; /* by tensor; NULL: no value is given or asked for */
  size_t room;
  uint64_t seed, step;
  enum ct_masks masks; /* of gates, beside what a network keeps compressed */
  bool update;
  bool formats; /* some tensors are kept in another format than FP32 */
};

void bed_make(struct bed *b);
void bed_free(struct bed *b);

#define SHAPE(...) \
  ((struct ct_shape){sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t), {__VA_ARGS__}})
/* A tensor without values; its number, or an error. */
int bed_tensor(struct bed *b, enum ct_role role, struct ct_shape shape);
/* One with values: so many, or drawn. No two drawn values are closer than a grid, none is near 0.
 */
int bed_values(struct bed *b, enum ct_role role, struct ct_shape shape, const double *values);
int bed_drawn(struct bed *b, enum ct_role role, struct ct_shape shape, ct_rng *rng);

#define BED_IN(...) \
  .inputs = (int[]){__VA_ARGS__}, .input_count = sizeof((int[]){__VA_ARGS__}) / sizeof(int)
#define BED_ATTRS(...)                      \
  .attrs = (struct ct_attr[]){__VA_ARGS__}, \
  .attr_count = sizeof((struct ct_attr[]){__VA_ARGS__}) / sizeof(struct ct_attr)
#define BED_ADD(b, op_, ...) ct_graph_add((b)->g, &(struct ct_new_node){.op = (op_), __VA_ARGS__})

struct ct_tensor_info bed_info(const struct bed *b, int tensor);
/* Memory for a tensor's value, zeros at first: given if it comes from outside, else asked for. */
double *bed_data(struct bed *b, int tensor);
void bed_check(struct bed *b);
int bed_try(struct bed *b);
void bed_run(struct bed *b);
/* Runs the graph and compares one tensor, to the bit (tolerance 0) or so far apart. */
void bed_expect(struct bed *b, int tensor, const double *want, size_t count, double tolerance);

/* What a comparison of gradients found: elements compared, with a gradient that is not 0, beside a
 * kink (left out). */
struct bed_found {
  size_t compared, nonzero, kinks;
};
/* Adds the mean squared distance of y to drawn numbers, or takes y itself if it is a scalar: a
 * loss. */
int bed_loss(struct bed *b, int y, ct_rng *rng);
/* Compares up to most elements of the gradient of each weight, of a graph that has them. what: for
 * the message. */
void bed_compare(struct bed *b, int loss, size_t most, ct_rng *rng, struct bed_found *found,
                 const char *what);
/* All of it. */
void bed_gradients(struct bed *b, int y, size_t most, ct_rng *rng, struct bed_found *found,
                   const char *what);

#endif
