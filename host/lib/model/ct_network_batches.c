/* SPDX-License-Identifier: Apache-2.0 */
/* What the device's batcher needs of a network: it takes perceptrons, request by request. */
#include <stdlib.h>

#include "ct_network.h"

int ct_network_batched(ct_network *n) {
  const int err = ct_check_network(n);
  if (err || n->compiled.mlp.layers) return err;
  return ct_fail(n->dev, CT_ERR_UNSUPPORTED,
                 "the device makes batches of perceptrons alone: linear layers with biases, ReLU "
                 "between them, mantissas of 8 bits, 1..%d rows of numbers in, logits out; submit "
                 "runs of other networks",
                 CT_MLP_ROWS_MAX);
}

int ct_network_rows_create(ct_network *n, size_t count, ct_rows **rows) {
  if (rows) *rows = NULL;
  const int err = ct_network_batched(n);
  if (err) return err;
  CT_NEED(n->dev, rows);
  return ct_rows_make(n->dev, n->compiled.mlp.width[0], count, rows);
}

int ct_network_answers_create(ct_network *n, size_t count, ct_answers **answers) {
  if (answers) *answers = NULL;
  const int err = ct_network_batched(n);
  if (err) return err;
  CT_NEED(n->dev, answers);
  return ct_answers_make(n->dev, n->compiled.mlp.width[n->compiled.mlp.layers], count, answers);
}

/* Another network's runs may change them. */
static int copy_own(ct_network *n, ct_weights **weights) {
  const size_t size = n->compiled.lasting * CT_UNIT;
  int err = ct_network_still(n, false, "served");
  if (err) return err;
  uint8_t *image = malloc(size);
  if (!image) return ct_fail(n->dev, CT_ERR_MEMORY, "no memory for a version");
  err = ct_mem_read(n->dev, ct_network_own(n).lasting, image, size);
  if (!err) err = ct_network_load_weights(n, image, size, weights);
  free(image);
  return err;
}

int ct_network_version(ct_network *n, ct_weights **weights, bool *own) {
  *own = !*weights;
  return *own ? copy_own(n, weights) : ct_network_takes(n, *weights);
}
