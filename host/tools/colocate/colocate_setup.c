/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "colocate.h"

/* Requests that the capacity is measured with: as defined, or fewer in a short run. */
enum { CAPACITY_REQUESTS = 2000, CAPACITY_LEAST = 100 };

/* The first requests once more, for every other policy. */
static int open_others(struct colocate *c) {
  const size_t n = c->o->compare < c->o->requests ? c->o->compare : c->o->requests;
  int rc = 0;
  for (unsigned p = 0, i = 0; rc >= 0 && n && p < POLICIES; ++p) {
    if (p == c->o->policy) continue;
    struct other *o = &c->other[i++];
    o->policy = (enum ct_policy)p;
    rc = server_open(&o->server, c->dev, c->model, &c->images, &c->versions, n, c->ds.test.count,
                     c->l->seed);
  }
  return rc;
}

static int open_servers(struct colocate *c) {
  const size_t n = c->o->requests;
  size_t probes = n < CAPACITY_REQUESTS ? n : CAPACITY_REQUESTS;
  if (probes < CAPACITY_LEAST) probes = CAPACITY_LEAST;
  const struct {
    struct server *server;
    size_t count;
  } all[] = {{&c->probe, probes}, {&c->serve, n}, {&c->alone, n}};
  int rc = images_open(&c->images, c->model, &c->ds);
  for (size_t i = 0; rc >= 0 && i < sizeof all / sizeof *all; ++i)
    rc = server_open(all[i].server, c->dev, c->model, &c->images, &c->versions, all[i].count,
                     c->ds.test.count, c->l->seed);
  return rc >= 0 ? open_others(c) : rc;
}

/* Everything on the device that the runs use. */
static int set_up(struct colocate *c) {
  int rc = ct_set_policy(c->dev, c->o->policy);
  if (rc < 0) return cli_fail_device(c->dev, rc, "setting the policy");
  if (learn_create(c->l, c->dev, &c->model) || learn_create(c->l, c->dev, &c->filler_model))
    return 1;
  rc = feeder_open(&c->feed, c->dev, c->model, c->l, &c->ds, 0);
  if (rc >= 0) rc = feeder_open(&c->filler, c->dev, c->filler_model, c->l, &c->ds, 0);
  if (rc >= 0) rc = versions_open(&c->versions, c->dev, c->model, c->l->epochs + 1);
  if (rc >= 0) rc = open_servers(c);
  if (rc < 0) return cli_fail_device(c->dev, rc, "no room for requests, batches and versions");
  c->steps = c->l->epochs * c->feed.per_epoch;
  c->warm_steps = c->feed.per_epoch / 4 ? c->feed.per_epoch / 4 : 1;
  c->losses = calloc(c->steps, sizeof *c->losses);
  c->arrivals = calloc(c->o->requests, sizeof *c->arrivals);
  if (!c->losses || !c->arrivals) return cli_fail("no memory for the results");
  return colocate_trace_open(c);
}

int colocate_open(struct colocate *c, struct colocate_options *o) {
  *c = (struct colocate){
      .o = o, .l = &o->learn, .text = cli_text(o->learn.json), .give_up = CT_NO_CYCLE};
  if (learn_open(&o->learn, &c->ds) || cli_open(o->learn.device, &c->dev)) return 1;
  const int rc = ct_info(c->dev, &c->info);
  if (rc < 0) return cli_fail_device(c->dev, rc, o->learn.device);
  live_open(&c->live, "colocate", o->learn.device, c->dev);
  return set_up(c);
}

void colocate_close(struct colocate *c) {
  colocate_trace_close(c);
  live_close(&c->live);
  for (size_t i = 0; i < POLICIES - 1; ++i)
    server_close(&c->other[i].server);
  server_close(&c->alone);
  server_close(&c->serve);
  server_close(&c->probe);
  images_close(&c->images);
  versions_close(&c->versions);
  feeder_close(&c->filler);
  feeder_close(&c->feed);
  ct_model_free(c->filler_model);
  ct_model_free(c->model);
  ct_close(c->dev);
  ct_dataset_free(&c->ds);
  free(c->losses);
  free(c->arrivals);
  *c = (struct colocate){.o = NULL};
}
