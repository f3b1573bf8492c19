/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first run of a network that keeps activations compressed in few pages, one behind a run for
 * which these were too few, and one from a file.
 *
 * Bounds are made before anything is known of its numbers, which may need more pages than there
 * are. So forward passes are made, with larger and larger bounds, until one has room. The run that
 * follows reads the same numbers, so it has room, too. What forward passes change for good, such as
 * running means, is put back. Where none has room, or something else fails, all is as before.
 */
#include <stdlib.h>
#include <string.h>

#include "ct_graph_impl.h"
#include "ct_network_kept.h"

/* ---- What changes -------------------------------------------------------------------------- */

/* A state or a weight that becomes what a forward pass makes. */
static bool is_changed(const ct_network *n, size_t i) {
  const ct_graph *g = n->graph;
  const int now = g->tensor[i]->becomes, by = now ? g->tensor[now]->node : -1;
  return now && n->compiled.lay[i].kind != CT_LAY_NONE && (by < 0 || !g->node[by]->backward);
}

static size_t changed_bytes(const ct_network *n) {
  size_t bytes = 0;
  for (size_t i = 1; i <= n->graph->tensors; ++i)
    if (is_changed(n, i)) bytes += ct_network_raw(&n->compiled.lay[i].mat);
  return bytes;
}

static int get_changed(ct_network *n, const struct ct_regions *at, uint8_t *x) {
  int err = CT_OK;
  for (size_t i = 1; i <= n->graph->tensors && !err; ++i) {
    if (!is_changed(n, i)) continue;
    err = ct_network_get_raw(n, at, &n->compiled.lay[i].mat, x);
    x += ct_network_raw(&n->compiled.lay[i].mat);
  }
  return err;
}

/* All that can be. */
static int put_back(ct_network *n, const struct ct_regions *at, const uint8_t *x) {
  int err = CT_OK;
  for (size_t i = 1; i <= n->graph->tensors; ++i) {
    if (!is_changed(n, i)) continue;
    const int one = ct_network_put_raw(n, at, &n->compiled.lay[i].mat, x);
    if (!err) err = one;
    x += ct_network_raw(&n->compiled.lay[i].mat);
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
    ct_kept_leaks(n);
    if (full && ct_kept_widen(n, by)) err = ct_kept_begin(n, queue);
  }
  return err;
}

/* x: room for what changes, and for the bounds behind it. What a job fails with, the run itself
 * tells. */
static int try_with(ct_network *n, enum ct_queue queue, const struct ct_regions *at, uint64_t step,
                    uint8_t *x) {
  uint8_t *bounds = x + changed_bytes(n);
  int err = get_changed(n, at, x);
  if (err) return err;
  memcpy(bounds, n->bound, n->compiled.kepts);
  err = find_bounds(n, queue, at, step);
  if (err) memcpy(n->bound, bounds, n->compiled.kepts);
  n->guessed = err != CT_OK;
  if (err == CT_ERR_JOB) err = CT_OK;
  const int back = put_back(n, at, x);
  if (!err) err = back;
  return err ? err : ct_kept_begin(n, queue);
}

int ct_network_try(ct_network *n, enum ct_queue queue, const struct ct_regions *at, uint64_t step) {
  if (!n->guessed) return CT_OK;
  uint8_t *x = malloc(changed_bytes(n) + n->compiled.kepts);
  if (!x) return ct_fail(n->dev, CT_ERR_MEMORY, "no memory for the states of the network");
  const int err = try_with(n, queue, at, step, x);
  free(x);
  return err;
}
