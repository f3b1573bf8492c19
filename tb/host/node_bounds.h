/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How far what a device makes of a node may be from the reference, number by number, given what the
 * node reads. The bounds follow from the arithmetic (docs/numerics.md):
 *
 * - A factor of a product is off by d, half a step of HBFP8, which is at most 1/128 of the largest
 *   number of its block. So a sum of n products is off by at most
 *
 *       sum(|a| d_b + |b| d_a + d_a d_b)  +  (n + 8) 2^-24 sum(|a| + d_a)(|b| + d_b)
 *
 *   where the second part is what FP32 loses. Both are the node itself on magnitudes.
 * - Sums of n numbers in FP32 are off by (n + 8) 2^-24 times the sum of magnitudes.
 * - Functions (exponential, root, reciprocal, error function) are off by 2^-20 of their value or,
 *   near 0, of 1 (docs/programming.md, Sequences); an operator has a few of them.
 * - What is made of such values, as in a normalisation, is off by what their errors make of it.
 */
#ifndef NODE_BOUNDS_H
#define NODE_BOUNDS_H

#include "graph_bed.h"

enum { NODE_MOST_INPUTS = 64, NODE_MOST_OUTPUTS = 5 };

/* A node alone in a graph, with the values that it reads. Inputs that are left out are 0. */
struct node_case {
  struct bed bed;
  struct ct_node_info of; /* in the graph that it is taken from */
  int in[NODE_MOST_INPUTS], out[NODE_MOST_OUTPUTS];
};

/* Takes node number `index` of a graph; then bed_data() of `in` has zeros, which the caller
 * replaces, and node_run() makes the values of `out`. */
void node_take(struct node_case *n, struct bed *from, size_t index);
void node_run(struct node_case *n);
void node_drop(struct node_case *n);

/* The bound of each number of an output, after node_run(); the caller's to free. */
double *node_bound(struct node_case *n, size_t output);

#endif
