/* SPDX-License-Identifier: Apache-2.0 */
/* A graph of a bed (graph_bed.h) on a device, beside its reference. */
#ifndef NETWORK_BED_H
#define NETWORK_BED_H

#include "coltrain/network.h"
#include "graph_bed.h"

struct net_bed {
  struct bed *bed;
  ct_device *dev;
  ct_network *net;
};

/* Opens the device and puts the bed's graph, which is checked, on it. */
void net_open(struct net_bed *n, struct bed *bed, const char *uri);
void net_close(struct net_bed *n);
/* The same; false, and nothing is open, if the device's scratchpad is too small for the network,
 * which the sentence says. */
bool net_try_open(struct net_bed *n, struct bed *bed, const char *uri);

/* Values for inputs and labels: whole 64ths below 2, which HBFP8 holds; labels are one-hot rows.
 * The bed has them, too. */
void net_draw_inputs(struct net_bed *n, ct_rng *rng);
/* Those, and weights and states as the network draws them. */
void net_draw(struct net_bed *n, uint64_t seed, ct_rng *rng);

/* Runs both; the device alone. */
void net_run(struct net_bed *n);
void net_run_device(struct net_bed *n, uint64_t step);

/* How far a tensor is from the reference: the root of the squares' sum of differences, over that of
 * the reference. What should be nothing, but for rounding, is taken as a hundredth. */
double net_distance(struct net_bed *n, int tensor);
/* Of all outputs, and of all weights and states after an update: each at most this. */
void net_expect(struct net_bed *n, double most, const char *what);

/* A digest of all outputs, weights and states. */
uint64_t net_digest(struct net_bed *n);

/* A network drawn at random: convolutions, pooling, normalisation, activations, residual sums,
 * tensors beside each other and parts of them, in the end a linear layer with its loss. smooth: no
 * operator has a kink, and none normalises over a few rows, so that gradients of the device and of
 * the reference can be compared closely. training: with updates, by the gradients of `accumulate`
 * runs (0: one). whole: images of 16 x 16, which convolutions and pooling leave so: pixels are
 * index units of compressed groups. all: whatever a node makes is an output, to be read. */
struct net_shape {
  bool smooth, training, whole, all;
  uint32_t accumulate;
  uint32_t most_layers, most_channels, most_size, most_images;
};
void net_random(struct bed *b, const struct net_shape *shape, ct_rng *rng);
/* The operators that it has, for messages; the caller's buffer. */
const char *net_text(const struct bed *b, char *text, size_t size);

#endif
