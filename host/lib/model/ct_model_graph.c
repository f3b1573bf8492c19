/* SPDX-License-Identifier: Apache-2.0 */
/* The graphs of a model: answers of so many rows, steps of a batch. */
#include "ct_graph_perceptron.h"
#include "ct_network.h"

/* Numbers of a step are those of its rates: what they are here is not asked. */
int ct_model_compile(const struct ct_model_part *part, ct_network **network) {
  struct ct_perceptron p = {.layers = part->net->layers,
                            .batch = part->rows,
                            .trains = part->trains,
                            .quiet = part->trains,
                            .schedule = {.rate = 1}};
  ct_graph *graph = NULL;
  memcpy(p.width, part->net->width, sizeof p.width);
  int err = ct_graph_perceptron_make(&p, &graph);
  if (err) return ct_fail(part->dev, err, "no graph of the model: %s", ct_strerror(err));
  err = ct_network_make_guest(part->dev, graph, part->job, network);
  ct_graph_free(graph);
  return err;
}

void ct_model_arguments(const ct_network *n, const struct ct_regions *at,
                        const struct ct_rates *rates, struct ct_job *job) {
  struct ct_scalar scalar[CT_SCALARS];
  const struct ct_optimise how = {.schedule = {.rate = rates->lr},
                                  .momentum = rates->momentum,
                                  .weight_decay = rates->weight_decay};
  memcpy(scalar, n->compiled.scalar, sizeof scalar);
  for (size_t i = 0; i < n->compiled.scalars; ++i)
    ct_compiled_update(&scalar[i], &how);
  ct_compiled_arguments(&n->compiled, at, scalar, 0, job);
}
