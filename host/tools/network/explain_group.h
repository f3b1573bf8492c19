/* SPDX-License-Identifier: Apache-2.0 */
/* What steps of several members of a network cost in the same jobs, beside those of one. */
#ifndef EXPLAIN_GROUP_H
#define EXPLAIN_GROUP_H

#include "cli.h"

enum { GROUP_MOST = 256 }; /* members of a network */

struct group {
  ct_device *dev;
  ct_network *net; /* of several members */
  uint32_t members;
  uint64_t step;   /* that is run */
  uint64_t cycles; /* that a step of each took, CT_NO_CYCLE: not known */
};

/* Members that are at work at once, and have memory for what that makes. */
uint32_t group_at_once(const struct group *g);

/* Weights of all members, from seeds that follow each other; of a file: they are there. 0, or 1
 * after a sentence. */
int group_draw(const struct group *g, uint64_t seed);

/* A step of each, as many at once as run in the same jobs. 0, or 1 after a sentence. */
int group_run(struct group *g);

/* Facts of a stage, for its object. */
json_t *group_stage_json(const struct ct_network_stage *stage);

/* Of the whole. alone: cycles that a step of one member took, CT_NO_CYCLE: not known. */
json_t *group_json(const struct group *g, uint64_t alone);

/* The same as a table, with names of layers in so many columns. */
void group_print(FILE *to, const struct group *g, uint64_t alone, int width);

#endif
