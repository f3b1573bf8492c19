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
    rc = server_open(&o->server, &c->learner, &c->versions, n);
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
  int rc = 0;
  for (size_t i = 0; rc >= 0 && i < sizeof all / sizeof *all; ++i)
    rc = server_open(all[i].server, &c->learner, &c->versions, all[i].count);
  return rc >= 0 ? open_others(c) : rc;
}

static int refuse_compressed(void) {
  return cli_fail(
      "colocate trains two networks on a device, which has pages for what one keeps compressed: "
      "--keep hbfp8 or recompute");
}

/* So a file may say, too. */
static bool is_compressed(const struct learner *l) {
  struct ct_network_info info;
  return l->steps && !ct_network_info(l->steps, &info) && info.bits;
}

static const struct arrivals_options poisson = {.kind = ARRIVALS_POISSON};

/* Everything on the device that the runs use. */
static int set_up(struct colocate *c) {
  if (load_policy(&c->load, c->o->policy)) return 1;
  if (learner_open(&c->learner, c->l, &c->ds, c->load.dev, true)) return 1;
  if (is_compressed(&c->learner)) return refuse_compressed();
  if (learner_open(&c->filler_learner, c->l, &c->ds, c->load.dev, true)) return 1;
  c->o->learn.batch = c->learner.batch; /* a file has its own */
  int rc = feeder_open(&c->feed, &c->learner, 0);
  if (rc >= 0) rc = feeder_open(&c->filler, &c->filler_learner, 0);
  if (rc >= 0) rc = versions_open(&c->versions, &c->learner, c->l->epochs + 1);
  if (rc >= 0) rc = open_servers(c);
  if (rc < 0) return cli_fail_device(c->load.dev, rc, "no room for requests, batches and versions");
  c->steps = c->l->epochs * c->feed.order.per_epoch;
  c->warm_steps = c->feed.order.per_epoch / 4 ? c->feed.order.per_epoch / 4 : 1;
  c->losses = calloc(c->steps, sizeof *c->losses);
  if (!c->losses) return cli_fail("no memory for the results");
  colocate_parts(c);
  return arrivals_open(&c->arrivals, &poisson, c->o->requests, c->l->seed) ||
         colocate_trace_open(c);
}

int colocate_open(struct colocate *c, struct colocate_options *o) {
  *c = (struct colocate){.o = o, .l = &o->learn, .give_up = CT_NO_CYCLE};
  if (o->learn.keep.format == CT_FORMAT_COMPRESSED) return refuse_compressed();
  if (learn_open(&o->learn, &c->ds) || load_open(&c->load, o->learn.device, o->learn.json))
    return 1;
  live_open(&c->live, "colocate", o->learn.device, c->load.dev);
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
  versions_close(&c->versions);
  feeder_close(&c->filler);
  feeder_close(&c->feed);
  learner_close(&c->filler_learner);
  learner_close(&c->learner);
  load_close(&c->load);
  ct_dataset_free(&c->ds);
  free(c->losses);
  arrivals_close(&c->arrivals);
  *c = (struct colocate){.o = NULL};
}
