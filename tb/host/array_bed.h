/* SPDX-License-Identifier: Apache-2.0 */
/* Members of arrays for tests, and the same networks alone. */
#ifndef ARRAY_BED_H
#define ARRAY_BED_H

#include "ct_tb.h"

#include "coltrain/array.h"

/* A feed: batches from a seed. From run `poison` on inputs hold an Inf, from run `refuse` on it
 * fails; CT_NO_CYCLE: never. */
struct bed_feed {
  uint64_t seed, poison, refuse;
  uint64_t asked; /* how often it was asked for a batch */
};
int bed_write(void *feed, uint64_t run, ct_frame *frame);

/* A network and how it is trained: what a member is made of. */
struct bed_case {
  const char *net; /* NULL: a perceptron */
  uint32_t widths[4], layers, batch;
  double drop; /* of a perceptron: dropout behind its first layer; 0: none */
  struct ct_optimise how;
  uint64_t seed, masks;
  struct bed_feed *feed;
};
void bed_draw_case(struct bed_case *c, ct_rng *rng);
/* One with other numbers, but the same programs and the same feed. */
void bed_draw_kin(struct bed_case *c, const struct bed_case *like, ct_rng *rng);
/* Without updates, checked. */
ct_graph *bed_graph(const struct bed_case *c);
/* Joins; fails the test if it cannot. */
uint32_t bed_join(ct_array *a, ct_device *dev, const struct bed_case *c);
int bed_try_join(ct_array *a, const struct bed_case *c, uint32_t *number);

/* The network alone, drawn; so many runs of it from the first on. */
ct_network *bed_alone(ct_device *dev, const struct bed_case *c);
void bed_run_alone(ct_network *n, const struct bed_case *c, uint64_t from, uint64_t runs);

/* A digest of all weights and states. */
uint64_t bed_digest(ct_network *n);
/* Fails the test unless a member is what so many runs alone make of it. */
void bed_expect_alone(ct_array *a, uint32_t number, const struct bed_case *c, uint64_t runs,
                      ct_device *beside);

#endif
