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

/* Values for everything from outside: weights and states as the network draws them, the rest drawn
 * here; labels are one-hot rows. The bed has them, too. */
void net_draw(struct net_bed *n, uint64_t seed, ct_rng *rng);

/* Runs both. */
void net_run(struct net_bed *n);

/* How far a tensor is from the reference: the root of the squares' sum of differences, over that of
 * the reference. */
double net_distance(struct net_bed *n, int tensor);
/* Of all outputs, and of all weights and states after an update: each at most this. */
void net_expect(struct net_bed *n, double most, const char *what);

/* A digest of all outputs, weights and states. */
uint64_t net_digest(struct net_bed *n);

#endif
