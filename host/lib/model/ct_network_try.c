/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first run of a network that keeps activations compressed in few pages, and one behind a run
 * for which these were too few.
 *
 * Bounds of the first are made before anything is known of its numbers, which may need more pages
 * than there are. So forward passes are made, with larger and larger bounds, until one has room.
 * The run that follows reads the same numbers, so it has room, too. States that forward passes
 * change, such as running means, are put back.
 */
#include <stdlib.h>

#include "ct_graph_impl.h"
#include "ct_network_kept.h"

/* ---- States -------------------------------------------------------------------------------- */

static bool is_state(const ct_network *n, size_t i) {
  return n->graph->tensor[i]->role == CT_ROLE_STATE && n->compiled.lay[i].kind != CT_LAY_NONE;
}

static size_t state_elements(const ct_network *n) {
  size_t count = 0;
  for (size_t i = 1; i <= n->graph->tensors; ++i)
    if (is_state(n, i)) count += n->graph->tensor[i]->elements;
  return count;
}

static int get_states(ct_network *n, const struct ct_regions *at, float *x) {
  int err = CT_OK;
  for (size_t i = 1; i <= n->graph->tensors && !err; ++i) {
    if (!is_state(n, i)) continue;
    err = ct_network_get_tensor(n, at, &n->compiled.lay[i], x);
    x += n->graph->tensor[i]->elements;
  }
  return err;
}

static int put_states(ct_network *n, const struct ct_regions *at, const float *x) {
  int err = CT_OK;
  for (size_t i = 1; i <= n->graph->tensors && !err; ++i) {
    if (!is_state(n, i)) continue;
    err = ct_network_put_tensor(n, at, &n->compiled.lay[i], x);
    x += n->graph->tensor[i]->elements;
  }
  return err;
}

/* ---- Passes -------------------------------------------------------------------------------- */

/* Bounds become larger by 1, 2, 4, .. powers of two: what is far too large is found soon, and only
 * one step has bounds that are larger than need be. */
static int find_bounds(ct_network *n, enum ct_queue queue, const struct ct_regions *at,
                       uint64_t step) {
  bool full = true;
  int err = CT_OK;
  for (unsigned by = 1; full && !err; by *= 2) {
    err = ct_network_run_forward(n, queue, at, step, &full);
    ct_kept_leaves(n);
    if (!full) break;
    if (ct_kept_widen(n, by)) err = CT_OK;
    if (!err) err = ct_kept_begin(n, queue);
  }
  return err ? err : ct_kept_begin(n, queue);
}

int ct_network_try(ct_network *n, enum ct_queue queue, const struct ct_regions *at, uint64_t step) {
  if (!n->guessed) return CT_OK;
  float *states = malloc((state_elements(n) + 1) * sizeof *states);
  if (!states) return ct_fail(n->dev, CT_ERR_MEMORY, "no memory for the states of the network");
  int err = get_states(n, at, states);
  if (!err) {
    err = find_bounds(n, queue, at, step);
    const int back = put_states(n, at, states);
    if (!err) err = back;
  }
  free(states);
  n->guessed = err != CT_OK;
  return err;
}
