/* SPDX-License-Identifier: Apache-2.0 */
/* Rolling: repetitions in a list of commands become loops. For ct_build.c alone. */
#ifndef CT_ROLL_H
#define CT_ROLL_H

#include "ct_build.h"

/* Notes the hash of all but a node's slots. */
void ct_node_hash(struct ct_node *node);

/* From a to b in slot s; addresses wrap like their fields do. */
int32_t ct_slot_delta(const struct ct_node *a, const struct ct_node *b, unsigned s);

/* Turns two neighbouring copies, `nodes` in all, into a loop of so many passes, one node and one
 * copy. CT_ERR_INTERNAL: they differ in more than addresses. */
int ct_roll_pair(struct ct_node *node, size_t nodes, uint32_t copies);

/* Rolls a program, the greatest saving first, until nothing repeats. Adds to *work the comparisons
 * made: they grow little faster than the list. */
int ct_roll(struct ct_node *node, size_t *nodes, uint64_t *work);

#endif
