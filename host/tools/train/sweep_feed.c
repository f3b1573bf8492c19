/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "sweep.h"

int sweep_feed_open(struct sweep_feed *f, const struct ct_dataset *ds, uint32_t batch,
                    uint64_t seed) {
  const int err = batch_order_open(&f->order, ds, batch, seed);
  f->x = malloc((size_t)batch * ds->features * sizeof *f->x);
  f->y = malloc((size_t)batch * ds->classes * sizeof *f->y);
  f->labels = malloc(batch * sizeof *f->labels);
  return !err && f->x && f->y && f->labels ? CT_OK : CT_ERR_MEMORY;
}

void sweep_feed_close(struct sweep_feed *f) {
  batch_order_close(&f->order);
  free(f->x);
  free(f->y);
  free(f->labels);
  f->x = f->y = NULL;
  f->labels = NULL;
}

int sweep_feed_write(void *feed, uint64_t run, ct_frame *frame) {
  struct sweep_feed *f = feed;
  const size_t batch = f->order.batch;
  const size_t classes = f->order.ds->classes;
  ct_graph *g = ct_network_graph(ct_frame_network(frame));
  batch_order_read(&f->order, run, f->x, f->labels);
  memset(f->y, 0, batch * classes * sizeof *f->y);
  for (size_t j = 0; j < batch; ++j)
    f->y[j * classes + f->labels[j]] = 1.0f;
  const int rc = ct_frame_write(frame, ct_graph_find(g, "x"), f->x, batch * f->order.ds->features);
  return rc < 0 ? rc : ct_frame_write(frame, ct_graph_find(g, "y"), f->y, batch * classes);
}
