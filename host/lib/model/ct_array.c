/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays of networks: members join and leave. */
#include "ct_array.h"

#include <math.h>
#include <stdlib.h>

#include "ct_graph_impl.h"

enum { AHEAD = 2, LOOK = 100 };

static int no_memory(ct_device *dev) {
  return ct_fail(dev, CT_ERR_MEMORY, "no memory for an array of networks");
}

int ct_check_array(const struct ct_array *a) {
  return ct_check_handle(a ? &a->handle : NULL, "array");
}

/* ---- Arrays -------------------------------------------------------------------------------- */

static int check_options(ct_device *dev, const struct ct_array_options *o) {
  if (!o) return CT_OK;
  if (o->ahead > CT_ARRAY_AHEAD)
    return ct_fail(dev, CT_ERR_ARG, "%u runs of a member at once: at most %d", o->ahead,
                   CT_ARRAY_AHEAD);
  return ct_check_reserved(dev, "ct_array_options", o->reserved,
                           sizeof o->reserved / sizeof *o->reserved);
}

int ct_array_create(ct_device *dev, const struct ct_array_options *options, ct_array **array) {
  if (array) *array = NULL;
  int err = ct_check_device(dev);
  if (err) return err;
  CT_NEED(dev, array);
  err = check_options(dev, options);
  if (err) return err;
  struct ct_array *a = calloc(1, sizeof *a);
  if (!a) return no_memory(dev);
  ct_handle_open(&a->handle, dev);
  a->dev = dev;
  a->ahead = options && options->ahead ? options->ahead : AHEAD;
  a->look = options && options->look ? options->look : LOOK;
  a->apart = options && options->apart;
  a->both = options && options->both;
  *array = a;
  return CT_OK;
}

static void free_member(struct ct_array_member *m) {
  for (unsigned i = 0; i < CT_ARRAY_AHEAD; ++i)
    ct_frame_free(m->frame[i]);
  ct_network_free(m->network);
  free(m);
}

void ct_array_free(ct_array *a) {
  if (!a || !ct_handle_close(&a->handle, "array")) return;
  for (size_t i = 0; i < a->members; ++i)
    free_member(a->member[i]);
  free(a->member);
  free(a->flight);
  ct_array_batches_free(a);
  a->member = NULL;
  a->flight = NULL;
  ct_handle_bury(&a->handle);
}

/* ---- Joining ------------------------------------------------------------------------------- */

static int check_member(const struct ct_array *a, const struct ct_member *m) {
  const int err =
      ct_check_reserved(a->dev, "ct_member", m->reserved, sizeof m->reserved / sizeof *m->reserved);
  if (err) return err;
  if (!m->graph == !m->file)
    return ct_fail(a->dev, CT_ERR_ARG, "a member is of a graph or of a file: give one of them");
  if (m->file && m->optimise)
    return ct_fail(a->dev, CT_ERR_ARG, "%s has its updates: nothing can be optimised", m->file);
  CT_NEED_OF(a->dev, "ct_array_join", m->feed.write);
  return CT_OK;
}

/* The graph with updates, checked. */
static int graph_of(const struct ct_array *a, const struct ct_member *member, ct_graph **graph) {
  const char *loss = member->loss ? member->loss : "loss";
  int err = ct_graph_copy(member->graph, graph);
  if (!err && member->optimise)
    err = ct_graph_optimise(*graph, ct_graph_find(*graph, loss), member->optimise);
  if (!err) err = ct_graph_check(*graph);
  if (!err) return CT_OK;
  return ct_fail(a->dev, err, "the graph of the member: %s",
                 *graph ? ct_graph_error(*graph) : ct_strerror(err));
}

/* A member that has the programs of such a graph. */
static ct_network *like(const void *array, const ct_graph *g,
                        const struct ct_network_options *how) {
  const unsigned narrow = how->mantissa ? 8 - how->mantissa : 0;
  const struct ct_array *a = array;
  for (size_t i = 0; i < a->members; ++i) {
    ct_network *n = a->member[i]->network;
    if (n->narrow == narrow && n->kernels == how->kernels &&
        ct_compiled_suits(&n->shared->compiled, n->shared->graph, g))
      return n;
  }
  return NULL;
}

static int from_graph(const struct ct_array *a, const struct ct_member *member,
                      ct_network **network) {
  ct_graph *graph = NULL;
  int err = graph_of(a, member, &graph);
  struct ct_network_options options = {.mantissa = member->mantissa, .seed = member->masks};
  if (!err) options.like = like(a, graph, &options);
  if (!err) err = ct_network_make(a->dev, graph, &options, true, network);
  if (!err) err = ct_network_draw(*network, member->seed);
  ct_graph_free(graph);
  return err;
}

static int from_file(const struct ct_array *a, const struct ct_member *member,
                     ct_network **network) {
  const struct ct_network_options options = {.mantissa = member->mantissa, .seed = member->masks};
  return ct_network_load_like(a->dev, member->file, &options,
                              &(struct ct_network_choice){like, a, true}, network);
}

static int find_loss(const struct ct_array *a, const struct ct_member *member,
                     struct ct_array_member *m) {
  const char *name = member->loss ? member->loss : "loss";
  const ct_graph *g = m->network->graph;
  m->loss = ct_graph_find(m->network->graph, name);
  if (m->loss < 0) return ct_fail(a->dev, CT_ERR_ARG, "the member has no tensor %.80s", name);
  const struct ct_gtensor *t = g->tensor[m->loss];
  if (t->role == CT_ROLE_OUTPUT && t->elements == 1) return CT_OK;
  return ct_fail(a->dev, CT_ERR_ARG, "the loss %.80s is no output of one number", name);
}

/* What a run of it needs of the device, now rather than at its first run. */
static int check_network(const struct ct_array *a, ct_network *n) {
  if (!n->changes) return ct_fail(a->dev, CT_ERR_ARG, "the member has no updates");
  return ct_network_check_most(n, ct_network_most_jobs(n, CT_STAGES_ALL));
}

/* With inputs, where these are its own. */
static uint64_t bytes_of(const struct ct_array_member *m) {
  const ct_network *n = m->network;
  const bool own = ct_array_has_own_inputs(m);
  uint64_t units = n->compiled.lasting;
  for (size_t i = 0; i < n->compiled.externals; ++i) {
    const struct ct_external *x = &n->compiled.external[i];
    if (own || ct_network_makes(n, x)) units += x->units * m->ahead;
  }
  return units * CT_UNIT;
}

/* Runs of a network with dropout share their masks: there is one at a time. */
static int make_frames(struct ct_array *a, struct ct_array_member *m) {
  int err = CT_OK;
  m->ahead = m->network->compiled.masks ? 1 : a->ahead;
  for (unsigned i = 0; i < m->ahead && !err; ++i)
    err = ct_frame_make(m->network, false, &m->frame[i]);
  if (!err) err = ct_array_batch_reserve(a, m);
  return err;
}

static int make_member(struct ct_array *a, const struct ct_member *member,
                       struct ct_array_member *m) {
  int err = member->graph ? from_graph(a, member, &m->network) : from_file(a, member, &m->network);
  if (!err) err = check_network(a, m->network);
  if (!err) err = find_loss(a, member, m);
  if (!err) err = make_frames(a, m);
  if (err) return err;
  m->feed = member->feed;
  m->next = m->goal = m->network->live->steps;
  m->looked = m->ended_by = m->limit = m->wrote = CT_NO_CYCLE;
  m->info = (struct ct_member_info){.loss = NAN, .user = member->user};
  return CT_OK;
}

/* Batches that were made for one that does not join after all go with it. */
static void give_up(struct ct_array *a, struct ct_array_member *m) {
  if (!m) return;
  ct_array_batches_trim(a);
  free_member(m);
}

/* A member by itself, not among the others yet. */
static int make(struct ct_array *a, const struct ct_member *member, struct ct_array_member **m) {
  *m = calloc(1, sizeof **m);
  const int err = *m ? make_member(a, member, *m) : no_memory(a->dev);
  if (!err) return CT_OK;
  give_up(a, *m);
  *m = NULL;
  return err;
}

int ct_array_join(ct_array *a, const struct ct_member *member, uint32_t *number) {
  int err = ct_check_array(a);
  if (err) return err;
  CT_NEED(a->dev, member);
  err = check_member(a, member);
  if (err) return err;
  struct ct_array_member **more =
      realloc(a->member, (a->members + 1) * sizeof(struct ct_array_member *));
  struct ct_array_member *m;
  if (!more) return no_memory(a->dev);
  a->member = more;
  err = make(a, member, &m);
  if (err == CT_ERR_NO_SPACE && ct_array_spare(a)) err = make(a, member, &m);
  if (err) return err;
  m->number = ++a->numbered;
  a->member[a->members++] = m;
  if (number) *number = m->number;
  return CT_OK;
}

/* ---- Finding ------------------------------------------------------------------------------- */

static int find(const struct ct_array *a, uint32_t number, size_t *at) {
  int err = ct_check_array(a);
  if (err) return err;
  for (*at = 0; *at < a->members; ++*at)
    if (a->member[*at]->number == number) return CT_OK;
  return ct_fail(a->dev, CT_ERR_NOT_FOUND, "the array has no member %u", number);
}

/* The network's end is that of its runs; their flights stay until somebody has waited for them. */
int ct_array_leave(ct_array *a, uint32_t number) {
  size_t at;
  const int err = find(a, number, &at);
  if (err) return err;
  struct ct_array_member *m = a->member[at];
  for (size_t i = 0; i < a->flights; ++i)
    for (uint32_t k = 0; k < a->flight[i].row.count; ++k)
      if (a->flight[i].row.member[k] == m) a->flight[i].row.member[k] = NULL;
  for (size_t i = at + 1; i < a->members; ++i)
    a->member[i - 1] = a->member[i];
  --a->members;
  ct_array_batches_trim(a);
  free_member(m);
  return CT_OK;
}

ct_network *ct_array_network(ct_array *a, uint32_t number) {
  size_t at;
  return find(a, number, &at) ? NULL : a->member[at]->network;
}

int ct_array_limit(ct_array *a, uint32_t number, uint64_t run) {
  size_t at;
  const int err = find(a, number, &at);
  if (!err) a->member[at]->limit = run;
  return err;
}

/* ---- Facts --------------------------------------------------------------------------------- */

static uint32_t together(const struct ct_array *a, const struct ct_shared *kind) {
  uint32_t count = 0;
  for (size_t i = 0; i < a->members; ++i)
    count += a->member[i]->network->shared == kind;
  return count;
}

static struct ct_member_info info_of(const struct ct_array *a, const struct ct_array_member *m) {
  struct ct_member_info info = m->info;
  info.number = m->number;
  info.runs = m->next - m->under_way;
  info.ended_by = m->ended_by;
  info.together = together(a, m->network->shared);
  info.bytes = bytes_of(m);
  return info;
}

size_t ct_array_members(const ct_array *a, struct ct_member_info *members, size_t count) {
  if (ct_check_array(a)) return 0;
  for (size_t i = 0; members && i < a->members && i < count; ++i)
    members[i] = info_of(a, a->member[i]);
  return a->members;
}

int ct_array_member(const ct_array *a, uint32_t number, struct ct_member_info *info) {
  size_t at;
  const int err = find(a, number, &at);
  if (err) return err;
  CT_NEED(a->dev, info);
  *info = info_of(a, a->member[at]);
  return CT_OK;
}

static bool is_first_of_kind(const struct ct_array *a, size_t at) {
  for (size_t i = 0; i < at; ++i)
    if (a->member[i]->network->shared == a->member[at]->network->shared) return false;
  return true;
}

static uint64_t batch_bytes(const struct ct_array *a) {
  uint64_t units = 0;
  for (size_t i = 0; i < a->batches; ++i) {
    const struct ct_shared *kind = a->batch[i]->kind;
    for (size_t k = 0; kind && k < kind->compiled.externals; ++k) {
      const struct ct_external *x = &kind->compiled.external[k];
      if (a->batch[i]->at.external[x->reg - CT_ARG_FIRST]) units += x->units;
    }
  }
  return units * CT_UNIT;
}

int ct_array_info(const ct_array *a, struct ct_array_info *info) {
  const int err = ct_check_array(a);
  if (err) return err;
  CT_NEED(a->dev, info);
  *info = (struct ct_array_info){
      .members = a->members, .batches = a->written, .runs = a->ended, .bytes = batch_bytes(a)};
  for (size_t i = 0; i < a->members; ++i) {
    info->ready += a->member[i]->info.state == CT_MEMBER_READY;
    info->programs += is_first_of_kind(a, i);
  }
  return CT_OK;
}
