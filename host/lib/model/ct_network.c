/* SPDX-License-Identifier: Apache-2.0 */
/* Networks: a compiled graph in device memory. */
#include "ct_network.h"

#include <math.h>
#include <stdlib.h>

#include "ct_cycles.h"
#include "ct_graph_impl.h"

bool ct_network_has(const char *op) {
  return op && ct_compile_has(op);
}

/* ---- Making one ---------------------------------------------------------------------------- */

static int no_memory(ct_device *dev) {
  return ct_fail(dev, CT_ERR_MEMORY, "no memory for the network");
}

/* A copy that nobody else changes or frees. */
static int copy_graph(ct_network *n, const ct_graph *graph) {
  int err = ct_graph_copy(graph, &n->graph);
  if (!err) err = ct_graph_check(n->graph);
  if (!err) return CT_OK;
  return ct_fail(n->dev, err, "the graph: %s",
                 n->graph ? ct_graph_error(n->graph) : ct_strerror(err));
}

static bool walks(const ct_device *dev) {
  return dev->info.features & CT_FEATURE_CONVOLUTION;
}

static bool has_updates(const ct_graph *g) {
  for (size_t i = 1; i <= g->tensors; ++i)
    if (g->tensor[i]->becomes) return true;
  return false;
}

/* What TRAIN_CAP is after a reset: the reads of training that are under way at once. */
enum { TRAIN_CAP = 4 };

struct ct_cycles_core ct_network_core(const ct_network *n) {
  return (struct ct_cycles_core){.cols = n->dev->info.array_cols,
                                 .lanes = n->dev->info.vpu_lanes,
                                 .walks = walks(n->dev),
                                 .reads = has_updates(n->graph) ? TRAIN_CAP : 0};
}

int ct_network_compile(ct_network *n, bool members, bool common, const struct ct_compile_room *room,
                       struct ct_compiled *compiled) {
  const struct ct_cycles_core core = ct_network_core(n);
  const struct ct_compile_options options = {
      .spm_words = ct_window_words(n->dev),
      .narrow = n->narrow,
      .kernels = n->kernels,
      .model = n->guest,
      .walks = walks(n->dev),
      .compress = n->dev->info.features & CT_FEATURE_COMPRESSION,
      .masks = n->masks != CT_MASKS_OFF,
      .masks_again = n->masks == CT_MASKS_ON,
      .members = members,
      .shared = common,
      .core = &core,
      .room = room};
  const int err = ct_compile(n->shared->graph, &options, compiled);
  if (!err) return CT_OK;
  return ct_fail_long(n->dev, err, compiled->why ? compiled->why : ct_strerror(err));
}

/* What make_room() asks for has to be there. borrows: weights are in memory already. */
static int compile(ct_network *n, bool borrows) {
  const struct ct_compile_room room = {.bytes = ct_heap_room(&n->dev->data),
                                       .lasting = borrows ? 0 : n->members,
                                       .arena = ct_min_u32(n->members, CT_MEMBERS_AT_ONCE),
                                       .external = n->bare ? 0 : n->members};
  n->shared->graph = n->graph;
  const int err = ct_network_compile(n, n->members > 1, n->common, n->guest ? NULL : &room,
                                     &n->shared->compiled);
  n->compiled = n->shared->compiled;
  return err;
}

int ct_network_alloc(ct_network *n, uint64_t units, uint64_t *addr) {
  if (!units) return CT_OK;
  int err = ct_mem_alloc(n->dev, units * CT_UNIT, addr);
  if (err) return err;
  uint8_t *zeros = calloc(units, CT_UNIT);
  err = zeros ? ct_mem_write(n->dev, *addr, zeros, units * CT_UNIT) : no_memory(n->dev);
  free(zeros);
  if (!err) return CT_OK;
  ct_heap_free(&n->dev->data, *addr);
  *addr = 0;
  return err;
}

/* What lasts of all members. */
static int make_live(ct_network *n) {
  const int err = ct_weights_open(n->dev, &n->live);
  if (err) return err;
  n->live->live = n->live->inside = true;
  return ct_network_alloc(n, n->compiled.lasting * n->members, &n->live->image);
}

static int make_room(ct_network *n) {
  const struct ct_compiled *c = &n->compiled;
  const uint32_t at_once = ct_min_u32(n->members, CT_MEMBERS_AT_ONCE);
  int err = CT_OK;
  if (n->guest) return CT_OK;
  if (!n->borrows) err = make_live(n);
  if (!err && n->shared->open == 1)
    err = ct_network_alloc(n, c->arena * at_once, &n->shared->spare);
  for (size_t i = 0; i < c->externals && !err && !n->bare; ++i)
    err = ct_network_alloc(n, c->external[i].units * (c->external[i].shared ? 1 : n->members),
                           &n->base.external[c->external[i].reg - CT_ARG_FIRST]);
  return err ? err : ct_kept_open(n);
}

static int put_constant(ct_network *n, const struct ct_regions *r, const struct ct_constant *k) {
  const size_t count = ct_lay_elements(&k->lay);
  float *x = malloc((count + 1) * sizeof *x);
  if (!x) return no_memory(n->dev);
  for (size_t j = 0; j < count; ++j)
    x[j] = k->value;
  const int err = ct_network_put_tensor(n, r, &k->lay, x);
  free(x);
  return err;
}

int ct_network_put_constants(ct_network *n, const struct ct_regions *r) {
  int err = CT_OK;
  for (size_t i = 0; i < n->compiled.constants && !err; ++i)
    err = put_constant(n, r, &n->compiled.constant[i]);
  return err;
}

static int load_stage(ct_network *n, size_t i, uint64_t *ahead) {
  struct ct_codes *codes = &n->shared->compiled.stage[i].codes;
  struct ct_network_part *part = &n->part[i];
  int err = CT_OK;
  part->cycles = codes->count ? CT_NO_CYCLE : 0;
  part->one.expected = part->beside = CT_NO_CYCLE;
  for (size_t k = 0; k < codes->count; ++k)
    part->commands += codes->job[k].count;
  if (n->shared->expected) err = ct_expect_stage(n, i, ahead);
  if (!err) err = ct_programs_load(n->dev, codes, &n->shared->programs[i]);
  if (!err) *codes = (struct ct_codes){0};
  part->programs = n->shared->programs[i];
  return err;
}

static int load(ct_network *n) {
  const size_t stages = n->compiled.stages;
  uint64_t ahead = 0;
  n->part = calloc(stages + 1, sizeof *n->part);
  n->shared->programs = calloc(stages + 1, sizeof *n->shared->programs);
  if (!n->part || !n->shared->programs) return no_memory(n->dev);
  int err = ct_expect_keep(n);
  if (!err && n->shared->expected && n->members > 1) err = ct_expect_members(n);
  for (size_t i = 0; i < stages && !err; ++i)
    err = load_stage(n, i, &ahead);
  if (!err && n->members > 1)
    err = ct_fusion_load(n, &n->shared->compiled, &n->shared->group[n->common]);
  return err;
}

/* ---- Networks of the same programs --------------------------------------------------------- */

static bool may_share(const ct_network *n, const ct_network *like, bool expected) {
  return like && like->members == 1 && n->members == 1 && like->narrow == n->narrow &&
         like->kernels == n->kernels && like->masks == n->masks &&
         (!expected || like->shared->expected) &&
         ct_compiled_suits(&like->shared->compiled, like->shared->graph, n->graph);
}

static void join(ct_network *n, struct ct_shared *shared) {
  n->shared = shared;
  ++shared->open;
  ++shared->refs;
}

/* What is known of programs is known of them here, too. */
static int share(ct_network *n, const ct_network *like) {
  join(n, like->shared);
  n->compiled = n->shared->compiled;
  ct_compiled_numbers(&n->compiled, n->graph);
  n->part = calloc(n->compiled.stages + 1, sizeof *n->part);
  if (!n->part) return no_memory(n->dev);
  for (size_t i = 0; i < n->compiled.stages; ++i) {
    n->part[i] = like->part[i];
    n->part[i].rows = 0;
    n->part[i].cycles = n->part[i].programs.count ? CT_NO_CYCLE : 0;
  }
  return CT_OK;
}

static int begin_shared(ct_network *n, const struct ct_network_options *o) {
  struct ct_shared *shared = calloc(1, sizeof *shared);
  if (!shared) return no_memory(n->dev);
  shared->expected = o && o->expect;
  shared->page_bits = o ? o->bits : 0;
  join(n, shared);
  return compile(n, o && o->weights_of);
}

/* The last open network takes the programs with it, and what of them is under way. */
static void leave_programs(struct ct_shared *shared) {
  if (--shared->open) return;
  for (size_t i = 0; shared->programs && i < shared->compiled.stages; ++i)
    ct_programs_free(&shared->programs[i]);
  for (unsigned i = 0; i < 2; ++i)
    ct_fusion_free(&shared->group[i], shared->compiled.stages);
  ct_expect_free(shared);
  free(shared->programs);
  ct_compiled_free(&shared->compiled);
  ct_graph_free(shared->graph);
  shared->programs = NULL;
  shared->graph = NULL;
}

/* What has no argument of the jobs lies with the weights, so each member has its own. */
static int check_common(ct_network *n) {
  if (n->members == 1 || !n->common || !n->compiled.crowded) return CT_OK;
  return ct_fail(
      n->dev, CT_ERR_UNSUPPORTED,
      "the network has more than %d inputs, labels and outputs: members cannot share them",
      CT_EXTERNALS);
}

static bool has_once(const ct_network *n) {
  for (size_t i = 0; i < n->compiled.stages; ++i)
    if (n->compiled.stage[i].once) return true;
  return false;
}

enum { REFRESH = 50 };

static enum ct_masks masks_of(const struct ct_network_options *o) {
  if (!o) return CT_MASKS_OFF;
  if (o->masks != CT_MASKS_DEFAULT) return o->masks;
  if (o->like && o->like->compiled.kepts) return o->like->masks;
  return o->error > 0 ? CT_MASKS_STORED : CT_MASKS_OFF;
}

static int build(ct_network *n, const ct_graph *graph, const struct ct_network_options *o) {
  n->narrow = o && o->mantissa ? 8 - o->mantissa : 0;
  n->seed = o ? o->seed : 0;
  n->members = o && o->members ? o->members : 1;
  n->kernels = (o && o->kernels) || n->members > 1;
  n->kept_error = o ? o->error : 0;
  n->refresh = o && o->refresh ? o->refresh : REFRESH;
  n->masks = masks_of(o);
  n->common = o && o->shared;
  n->member = calloc(n->members, sizeof *n->member);
  const ct_network *like = o ? o->like : NULL;
  int err = n->member ? copy_graph(n, graph) : no_memory(n->dev);
  const bool shares = !err && may_share(n, like, o && o->expect);
  if (!err) err = shares ? share(n, like) : begin_shared(n, o);
  if (!err) err = check_common(n);
  if (!err && o && o->weights_of) err = ct_network_join(n, o->weights_of);
  if (!err) err = make_room(n);
  for (uint32_t m = 0; m < n->members && !err && n->live && !n->borrows; ++m) {
    const struct ct_regions at = ct_network_member_at(n, m);
    err = ct_network_put_constants(n, &at);
  }
  if (!err && !shares) err = load(n);
  n->once = !err && has_once(n);
  for (uint32_t m = 0; n->member && m < n->members; ++m)
    n->member[m].stale = n->once;
  n->stale = n->once;
  n->changes = !err && has_updates(n->graph);
  return err;
}

/* One that the options name. role: of the sentence. */
static int check_other(ct_device *dev, const ct_network *other, const char *role) {
  const int err = other ? ct_check_network(other) : CT_OK;
  if (err || !other || other->dev == dev) return err;
  return ct_fail(dev, CT_ERR_ARG, "the network %s is on another device", role);
}

static int check_options(ct_device *dev, const struct ct_network_options *o) {
  if (!o) return CT_OK;
  if (o->mantissa && (o->mantissa < 2 || o->mantissa > 8))
    return ct_fail(dev, CT_ERR_ARG, "mantissas of %u bits: 2..8", o->mantissa);
  if (o->members > CT_MEMBERS)
    return ct_fail(dev, CT_ERR_ARG, "a network of %u members: %d are the most", o->members,
                   CT_MEMBERS);
  if (!(o->error >= 0 && o->error <= 1))
    return ct_fail(dev, CT_ERR_ARG, "an error of %g: 0 to 1 of the momentum", o->error);
  if (o->masks > CT_MASKS_STORED)
    return ct_fail(dev, CT_ERR_ARG, "masks %u: see enum ct_masks", (unsigned)o->masks);
  if (o->bits > CT_KEPT_BITS)
    return ct_fail(dev, CT_ERR_ARG, "pages for %u bits a number: 1..%d", o->bits, CT_KEPT_BITS);
  int err = check_other(dev, o->like, "that it is to be like");
  if (!err) err = check_other(dev, o->weights_of, "whose weights it is to have");
  if (err) return err;
  return ct_check_reserved(dev, "ct_network_options", o->reserved,
                           sizeof o->reserved / sizeof *o->reserved);
}

static ct_network *open_network(ct_device *dev) {
  ct_network *n = calloc(1, sizeof *n);
  if (!n) {
    no_memory(dev);
    return NULL;
  }
  ct_handle_open(&n->handle, dev);
  n->dev = dev;
  n->refs = 1;
  return n;
}

static int build_or_free(ct_network *n, const ct_graph *graph, const struct ct_network_options *o,
                         ct_network **network) {
  const int err = build(n, graph, o);
  if (err)
    ct_network_free(n);
  else
    *network = n;
  return err;
}

int ct_network_make(ct_device *dev, const ct_graph *graph, const struct ct_network_options *options,
                    bool bare, ct_network **network) {
  const int err = check_options(dev, options);
  if (err) return err;
  if (!graph->checked) return ct_fail(dev, CT_ERR_ARG, "the graph has not been checked");
  ct_network *n = open_network(dev);
  if (!n) return CT_ERR_MEMORY;
  n->bare = bare;
  return build_or_free(n, graph, options, network);
}

int ct_network_make_guest(ct_device *dev, const ct_graph *graph, enum ct_model_job job,
                          ct_network **network) {
  ct_network *n = open_network(dev);
  if (!n) return CT_ERR_MEMORY;
  n->bare = true;
  n->guest = job;
  return build_or_free(n, graph, NULL, network);
}

int ct_network_create(ct_device *dev, const ct_graph *graph,
                      const struct ct_network_options *options, ct_network **network) {
  if (network) *network = NULL;
  const int err = ct_check_device(dev);
  if (err) return err;
  CT_NEED(dev, graph);
  CT_NEED(dev, network);
  return ct_network_make(dev, graph, options, false, network);
}

int ct_network_has_frame(ct_network *n) {
  if (!n->bare) return CT_OK;
  return ct_fail(
      n->dev, CT_ERR_UNSUPPORTED,
      "the network is a member of an array: it has no inputs and outputs of its own, and "
      "only the array runs it");
}

/* What jobs that could not be ended still use stays until they have. */
static void leave_room(const ct_network *n) {
  for (unsigned i = 0; i < CT_EXTERNALS; ++i)
    ct_give_back_after(n->dev, n->base.external[i], n->queue, n->error);
}

static void leave_arenas(ct_device *dev, struct ct_shared *shared) {
  ct_kept_leave(dev, shared);
  ct_give_back_after(dev, shared->spare, CT_TRAINING, CT_OK);
  for (unsigned q = 0; q < CT_QUEUES; ++q) {
    ct_give_back_after(dev, shared->ranks[q], (enum ct_queue)q, shared->error[q]);
    ct_give_back_after(dev, shared->arena[q], (enum ct_queue)q, shared->error[q]);
  }
}

static void leave_shared(ct_network *n) {
  struct ct_shared *shared = n->shared;
  if (n->error == CT_ERR_DEVICE) shared->error[n->queue] = n->error;
  if (--shared->refs) return;
  if (n->dev->queues) leave_arenas(n->dev, shared);
  free(shared);
}

void ct_network_release(ct_network *n) {
  if (--n->refs) return;
  if (n->dev->queues) leave_room(n);
  if (n->live) ct_weights_release(n->live);
  n->live = NULL;
  if (n->shared) leave_shared(n);
  n->shared = NULL;
  free(n->member);
  free(n->bound);
  free(n->groups);
  free(n->stored);
  n->member = NULL;
  n->bound = NULL;
  n->groups = NULL;
  n->stored = NULL;
  if (n->guest)
    ct_handle_burn(&n->handle);
  else
    ct_handle_bury(&n->handle);
}

void ct_network_free(ct_network *n) {
  if (!n || !ct_handle_close(&n->handle, "network")) return;
  ct_follower_end(&n->follower);
  ct_kept_forget(n);
  ct_copies_free(&n->copies);
  if (!n->shared || n->graph != n->shared->graph) ct_graph_free(n->graph);
  if (n->shared) leave_programs(n->shared);
  free(n->part);
  n->part = NULL;
  n->graph = NULL;
  ct_network_release(n);
}

/* ---- Tensors ------------------------------------------------------------------------------- */

int ct_check_network(const ct_network *n) {
  return ct_check_handle(n ? &n->handle : NULL, "network");
}

/* The layout of a tensor. */
int ct_network_find(ct_network *n, int tensor, size_t count, const struct ct_lay **lay) {
  if (tensor < 1 || (size_t)tensor > n->compiled.tensors)
    return ct_fail(n->dev, CT_ERR_ARG, "the network has no tensor %d", tensor);
  const struct ct_gtensor *t = n->graph->tensor[tensor];
  *lay = &n->compiled.lay[tensor];
  if (count != t->elements)
    return ct_fail(n->dev, CT_ERR_ARG, "tensor %.80s has %llu elements, not %zu", t->name,
                   (unsigned long long)t->elements, count);
  return CT_OK;
}

static float *matrix_of(const struct ct_lay *lay) {
  return malloc(((size_t)lay->mat.rows * lay->mat.cols + 1) * sizeof(float));
}

int ct_network_put_tensor(ct_network *n, const struct ct_regions *r, const struct ct_lay *lay,
                          const float *data) {
  if (ct_lay_is_mlp(lay)) return ct_network_put_mlp(n, r, lay, data);
  float *matrix = matrix_of(lay);
  if (!matrix) return no_memory(n->dev);
  ct_lay_spread(lay, data, matrix);
  const int err = ct_network_put(n, r, &lay->mat, matrix);
  free(matrix);
  return err;
}

int ct_network_get_tensor(ct_network *n, const struct ct_regions *r, const struct ct_lay *lay,
                          float *data) {
  if (ct_lay_is_mlp(lay)) return ct_network_get_mlp(n, r, lay, data);
  float *matrix = matrix_of(lay);
  if (!matrix) return no_memory(n->dev);
  const int err = ct_network_get(n, r, &lay->mat, matrix);
  if (!err) ct_lay_gather(lay, matrix, data);
  free(matrix);
  return err;
}

/* Whether it is part of the frame, not of what lasts. */
static bool comes_and_goes(const struct ct_gtensor *t) {
  return t->role != CT_ROLE_WEIGHT && t->role != CT_ROLE_STATE;
}

/* Nothing under way is in the way of that. What lies with the weights is theirs, too. */
static int check_still(ct_network *n, const struct ct_gtensor *t, bool change, const char *what) {
  const bool own = comes_and_goes(t);
  int err = own ? ct_network_has_frame(n) : CT_OK;
  if (!err && own) err = ct_network_frame_still(n, what);
  return err || (own && !n->compiled.crowded) ? err : ct_network_still(n, change, what);
}

/* The other network may have them in more ways than this one knows. */
int ct_network_owned(ct_network *n, const char *what) {
  if (!n->borrows) return CT_OK;
  return ct_fail(n->dev, CT_ERR_UNSUPPORTED,
                 "the network's weights are those of another one: they are %s there", what);
}

/* The node that reads a tensor first. */
static const char *reader_of(const ct_graph *g, int tensor) {
  for (size_t i = 0; i < g->nodes; ++i)
    for (size_t k = 0; k < g->node[i]->inputs; ++k)
      if (g->node[i]->in[k] == tensor) return g->node[i]->name;
  return "none";
}

bool ct_no_nan(const float *x, size_t count, size_t *at) {
  for (*at = 0; *at < count; ++*at)
    if (isnan(x[*at])) return false;
  return true;
}

/* What somebody gives a weight; training that diverges gets there by itself. */
static int check_weight(const ct_network *n, int tensor, const float *x, size_t count) {
  const struct ct_gtensor *t = n->graph->tensor[tensor];
  size_t at;
  if (t->role != CT_ROLE_WEIGHT || ct_no_nan(x, count, &at)) return CT_OK;
  return ct_fail(n->dev, CT_ERR_ARG,
                 "weight %.80s of node %.80s has NaN among its values (element %zu)", t->name,
                 reader_of(n->graph, tensor), at);
}

int ct_network_write(ct_network *n, int tensor, const float *data, size_t count) {
  const struct ct_lay *lay;
  int err = ct_check_network(n);
  if (err) return err;
  CT_NEED(n->dev, data);
  err = ct_network_find(n, tensor, count, &lay);
  if (err) return err;
  const struct ct_gtensor *t = n->graph->tensor[tensor];
  if (t->node >= 0)
    return ct_fail(n->dev, CT_ERR_ARG, "tensor %.80s is made by the network: it cannot be written",
                   t->name);
  if (lay->kind == CT_LAY_NONE) return check_weight(n, tensor, data, count);
  err = comes_and_goes(t) ? CT_OK : ct_network_owned(n, "written");
  if (!err) err = check_still(n, t, true, "written");
  if (!err) err = check_weight(n, tensor, data, count);
  if (err) return err;
  if (!comes_and_goes(t)) {
    n->stale = n->once;
    ct_kept_hear(n);
  }
  const struct ct_regions own = ct_network_own(n);
  return ct_network_put_tensor(n, &own, lay, data);
}

int ct_network_read(ct_network *n, int tensor, float *data, size_t count) {
  const struct ct_lay *lay;
  int err = ct_check_network(n);
  if (err) return err;
  CT_NEED(n->dev, data);
  err = ct_network_find(n, tensor, count, &lay);
  if (err) return err;
  const struct ct_gtensor *t = n->graph->tensor[tensor];
  if (lay->kind == CT_LAY_NONE)
    return ct_fail(n->dev, CT_ERR_ARG, "tensor %.80s has no place on the device", t->name);
  if (lay->kind == CT_LAY_WINDOWS)
    return ct_fail(n->dev, CT_ERR_ARG, "tensor %.80s is an input: it cannot be read", t->name);
  err = check_still(n, t, false, "read");
  const struct ct_regions own = ct_network_own(n);
  return err ? err : ct_network_get_tensor(n, &own, lay, data);
}

static void draw(const struct ct_gtensor *t, uint64_t *state, float *x) {
  uint64_t inputs = t->shape.dims > 1 ? t->elements / t->shape.dim[0] : t->elements;
  if (t->initial == CT_INITIAL_HE)
    ct_draw_he(state, inputs ? (uint32_t)inputs : 1, t->elements, x);
  else
    for (uint64_t i = 0; i < t->elements; ++i)
      x[i] = t->initial == CT_INITIAL_ONES ? 1.0f : 0.0f;
}

int ct_network_draw(ct_network *n, uint64_t seed) {
  uint64_t state = seed;
  int err = ct_check_network(n);
  if (!err) err = ct_network_owned(n, "drawn");
  if (!err) err = ct_network_still(n, true, "drawn");
  if (!err) n->live->seed = seed;
  for (size_t i = 1; !err && i <= n->graph->tensors; ++i) {
    const struct ct_gtensor *t = n->graph->tensor[i];
    if (t->role != CT_ROLE_WEIGHT && t->role != CT_ROLE_STATE) continue;
    float *x = malloc(t->elements * sizeof *x);
    if (!x) return no_memory(n->dev);
    draw(t, &state, x);
    err = ct_network_write(n, (int)i, x, t->elements);
    free(x);
  }
  return err;
}

/* ---- Facts --------------------------------------------------------------------------------- */

ct_graph *ct_network_graph(ct_network *n) {
  return n && n->handle.live ? n->graph : NULL;
}

static uint32_t runs_of_step(const ct_network *n) {
  uint32_t most = 1;
  for (size_t i = 0; i < n->compiled.stages; ++i)
    if (n->compiled.stage[i].runs > most) most = n->compiled.stage[i].runs;
  return most;
}

/* Arenas: of a run, and of those who have run side by side. */
static uint64_t run_units(const ct_network *n) {
  uint64_t count = ct_min_u32(n->members, CT_MEMBERS_AT_ONCE);
  for (unsigned q = 0; q < CT_QUEUES; ++q)
    if (n->shared->ranks[q]) count += CT_MEMBERS_AT_ONCE;
  return n->compiled.arena * count;
}

static uint64_t frame_units(const ct_network *n) {
  uint64_t units = 0;
  for (size_t i = 0; i < n->compiled.externals; ++i)
    units += n->compiled.external[i].units;
  return units;
}

/* The most pages in use so far. */
static uint64_t pages_most(const ct_network *n) {
  uint32_t pages = 0;
  if (!n->shared->pages) return 0;
  ct_reg_read(n->dev, ct_queue_reg(CT_TRAINING, CT_CREG_ARENA_MOST), &pages);
  return (uint64_t)pages * CT_PAGE_BYTES;
}

static void tell_kept(const ct_network *n, struct ct_network_info *info) {
  info->error = n->kept_error;
  info->refresh = n->refresh;
  info->bits = n->shared->page_bits;
  info->masks = n->masks;
  info->pressed = n->pressed;
  info->continued = n->continued;
}

int ct_network_info(const ct_network *n, struct ct_network_info *info) {
  const int err = ct_check_network(n);
  if (err) return err;
  CT_NEED(n->dev, info);
  const struct ct_mlp *mlp = &n->compiled.mlp;
  *info = (struct ct_network_info){.seed = n->live->seed,
                                   .steps = n->live->steps,
                                   .epochs = n->live->epochs,
                                   .mantissa = 8 - n->narrow,
                                   .changes = n->changes,
                                   .together = (uint32_t)n->shared->open,
                                   .weights_bytes = n->compiled.lasting * CT_UNIT,
                                   .run_bytes = run_units(n) * CT_UNIT,
                                   .members = n->members,
                                   .frame_bytes = frame_units(n) * CT_UNIT,
                                   .pages = (uint64_t)n->shared->page_count * CT_PAGE_BYTES,
                                   .pages_most = pages_most(n),
                                   .jobs = (uint32_t)ct_network_most_jobs(n, CT_STAGES_REST),
                                   .accumulate = runs_of_step(n),
                                   .inputs = mlp->layers ? mlp->width[0] : 0,
                                   .classes = mlp->layers ? mlp->width[mlp->layers] : 0};
  if (n->compiled.kepts) tell_kept(n, info);
  return CT_OK;
}

void ct_network_set_epochs(ct_network *n, uint64_t epochs) {
  if (n && n->handle.live) n->live->epochs = epochs;
}

size_t ct_network_stages(const ct_network *n) {
  return n && n->handle.live ? n->compiled.stages : 0;
}

static const char *or_nothing(const char *text) {
  return text ? text : "";
}

/* What is known of a run of all members: of one what is known of it. */
static const struct ct_network_cost *cost_of_all(const ct_network *n, size_t stage) {
  const struct ct_network_part *p = &n->part[stage];
  return n->members > 1 && n->shared->expected ? &p->all : &p->one;
}

int ct_network_stage(ct_network *n, size_t index, struct ct_network_stage *stage) {
  const int err = ct_check_network(n);
  if (err) return err;
  CT_NEED(n->dev, stage);
  if (index >= n->compiled.stages)
    return ct_fail(n->dev, CT_ERR_NOT_FOUND, "the network has %zu stages, there is no stage %zu",
                   n->compiled.stages, index);
  ct_expect_again(n);
  const struct ct_stage *s = &n->compiled.stage[index];
  const struct ct_network_part *p = &n->part[index];
  const struct ct_network_cost *all = cost_of_all(n, index);
  const struct ct_fusion *group = &n->shared->group[n->common];
  *stage = (struct ct_network_stage){.node = s->node,
                                     .op = s->op,
                                     .backward = s->backward,
                                     .once = s->once,
                                     .runs = s->runs,
                                     .jobs = (uint32_t)ct_network_stage_jobs(n, index),
                                     .macs = s->macs,
                                     .rows = p->rows,
                                     .cycles = p->cycles,
                                     .commands = p->commands,
                                     .expected = p->one.expected,
                                     .busy = p->one.busy,
                                     .beside = p->beside,
                                     .bound = or_nothing(p->one.bound),
                                     .unit = or_nothing(p->one.unit),
                                     .all_expected = all->expected,
                                     .all_busy = all->busy,
                                     .all_bound = or_nothing(all->bound),
                                     .all_unit = or_nothing(all->unit),
                                     .round = group->stage ? group->stage[index].how.round : 0};
  ct_kept_bytes(n, s, &stage->read, &stage->written);
  return CT_OK;
}
