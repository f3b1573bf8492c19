/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Networks: a compiled graph in device memory, and its runs.
 *
 * A run submits a work for each stage, in their order, each of which does nothing if the one before
 * it failed. So each stage has an event of its own, which says what it took.
 */
#include "ct_network.h"

#include <stdlib.h>
#include <string.h>

#include "ct_cycles.h"
#include "ct_fixed.h"
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
  uint8_t *data = NULL;
  size_t size = 0;
  ct_graph *from = (ct_graph *)graph; /* only sentences are written to it */
  int err = ct_graph_pack(from, &data, &size);
  if (!err) err = ct_graph_create(&n->graph);
  if (!err) err = ct_graph_unpack(n->graph, data, size);
  if (!err) err = ct_graph_check(n->graph);
  free(data);
  if (!err) return CT_OK;
  return ct_fail(n->dev, err, "the graph: %s",
                 n->graph ? ct_graph_error(n->graph) : ct_strerror(err));
}

static bool walks(const ct_device *dev) {
  return dev->info.features & CT_FEATURE_CONVOLUTION;
}

static int compile(ct_network *n, unsigned narrow) {
  char text[384] = "";
  const struct ct_why why = {text, sizeof text};
  const struct ct_compile_options options = {
      .spm_words = ct_window_words(n->dev), .narrow = narrow, .walks = walks(n->dev)};
  const int err = ct_compile(n->graph, &options, &n->compiled, &why);
  return err ? ct_fail(n->dev, err, "%s", text[0] ? text : ct_strerror(err)) : CT_OK;
}

static int alloc_zeros(ct_network *n, uint64_t units, uint64_t *addr) {
  if (!units) return CT_OK;
  int err = ct_mem_alloc(n->dev, units * CT_UNIT, addr);
  if (err) return err;
  uint8_t *zeros = calloc(units, CT_UNIT);
  if (!zeros) return no_memory(n->dev);
  err = ct_mem_write(n->dev, *addr, zeros, units * CT_UNIT);
  free(zeros);
  return err;
}

static int make_room(ct_network *n) {
  const struct ct_compiled *c = &n->compiled;
  int err = alloc_zeros(n, c->lasting, &n->lasting);
  if (!err) err = alloc_zeros(n, c->arena, &n->arena);
  for (size_t i = 0; i < c->externals && !err; ++i)
    err = alloc_zeros(n, c->external[i].units, &n->external[c->external[i].reg - CT_ARG_FIRST]);
  return err;
}

static float *matrix_of(const struct ct_lay *lay) {
  return malloc(((size_t)lay->mat.rows * lay->mat.cols + 1) * sizeof(float));
}

static int put_constant(ct_network *n, const struct ct_constant *k) {
  const size_t count = ct_lay_elements(&k->lay);
  float *x = malloc((count + 1) * sizeof *x), *matrix = matrix_of(&k->lay);
  for (size_t j = 0; x && j < count; ++j)
    x[j] = k->value;
  int err = CT_OK;
  if (x && matrix) {
    ct_lay_spread(&k->lay, x, matrix);
    err = ct_network_put(n, &k->lay.mat, matrix);
  } else {
    err = no_memory(n->dev);
  }
  free(x);
  free(matrix);
  return err;
}

static int put_constants(ct_network *n) {
  int err = CT_OK;
  for (size_t i = 0; i < n->compiled.constants && !err; ++i)
    err = put_constant(n, &n->compiled.constant[i]);
  return err;
}

static void set_arguments(const ct_network *n, uint64_t step, struct ct_job *job) {
  const struct ct_compiled *c = &n->compiled;
  job->args[CT_ARG_LASTING - 1] = ct_units_of(n->lasting);
  job->args[CT_ARG_ARENA - 1] = ct_units_of(n->arena);
  for (size_t i = 0; i < c->externals; ++i) {
    const unsigned reg = c->external[i].reg;
    job->args[reg - 1] = ct_units_of(n->external[reg - CT_ARG_FIRST]);
  }
  for (size_t i = 0; i < c->scalars; ++i)
    job->args[c->scalar[i].reg - 1] = ct_bits_of(ct_compiled_scalar(&c->scalar[i], step));
}

static bool has_updates(const ct_graph *g) {
  for (size_t i = 1; i <= g->tensors; ++i)
    if (g->tensor[i]->becomes) return true;
  return false;
}

/* What TRAIN_CAP is after a reset: the reads of training that are under way at once. */
enum { TRAIN_CAP = 4 };

/* What a stage's jobs should take in a row, on this device when it does nothing else. */
static int expect(ct_network *n, const struct ct_codes *codes, struct ct_network_part *part,
                  uint64_t *ahead) {
  const struct ct_info *info = &n->dev->info;
  struct ct_cycles_core core = {.cols = info->array_cols,
                                .lanes = info->vpu_lanes,
                                .walks = walks(n->dev),
                                .reads = has_updates(n->graph) ? TRAIN_CAP : 0,
                                .ahead = *ahead};
  struct ct_cycles all = {0}, one;
  struct ct_job job = {0};
  set_arguments(n, 0, &job);
  for (size_t i = 0; i < codes->count; ++i) {
    const int err = ct_cycles(&core, codes->job[i].cmd, codes->job[i].count, job.args, &one);
    if (err == CT_ERR_MEMORY) return no_memory(n->dev);
    if (err) return CT_OK; /* too long to be followed: not known */
    all.total += one.total;
    for (unsigned u = 0; u < CT_UNIT_COUNT; ++u)
      all.busy[u] += one.busy[u];
    core.ahead = *ahead = one.tail;
  }
  part->expected = all.total;
  part->bound = codes->count ? ct_cycles_by_name(ct_cycles_bound(&all)) : "";
  return CT_OK;
}

static int load(ct_network *n, bool expected) {
  uint64_t ahead = 0;
  int err = CT_OK;
  n->part = calloc(n->compiled.stages + 1, sizeof *n->part);
  if (!n->part) return no_memory(n->dev);
  for (size_t i = 0; i < n->compiled.stages && !err; ++i) {
    struct ct_codes *codes = &n->compiled.stage[i].codes;
    struct ct_network_part *part = &n->part[i];
    part->cycles = codes->count ? CT_NO_CYCLE : 0;
    part->expected = CT_NO_CYCLE;
    for (size_t k = 0; k < codes->count; ++k)
      part->commands += codes->job[k].count;
    if (expected) err = expect(n, codes, part, &ahead);
    if (err) break;
    err = ct_programs_load(n->dev, codes, &part->programs);
    *codes = (struct ct_codes){0};
  }
  return err;
}

static int build(ct_network *n, const ct_graph *graph, const struct ct_network_options *o) {
  const unsigned narrow = o && o->mantissa ? 8 - o->mantissa : 0;
  n->seed = o ? o->seed : 0;
  int err = copy_graph(n, graph);
  if (!err) err = compile(n, narrow);
  if (!err) err = make_room(n);
  if (!err) err = put_constants(n);
  if (!err) err = load(n, o && o->expect);
  n->stale = true;
  n->changes = !err && has_updates(n->graph);
  return err;
}

static int check_options(ct_device *dev, const struct ct_network_options *o) {
  if (!o) return CT_OK;
  if (o->mantissa && (o->mantissa < 2 || o->mantissa > 8))
    return ct_fail(dev, CT_ERR_ARG, "mantissas of %u bits: 2..8", o->mantissa);
  return ct_check_reserved(dev, "ct_network_options", o->reserved,
                           sizeof o->reserved / sizeof *o->reserved);
}

int ct_network_create(ct_device *dev, const ct_graph *graph,
                      const struct ct_network_options *options, ct_network **network) {
  if (network) *network = NULL;
  int err = ct_check_device(dev);
  if (err) return err;
  CT_NEED(dev, graph);
  CT_NEED(dev, network);
  err = check_options(dev, options);
  if (err) return err;
  if (!graph->checked) return ct_fail(dev, CT_ERR_ARG, "the graph has not been checked");
  ct_network *n = calloc(1, sizeof *n);
  if (!n) return no_memory(dev);
  ct_handle_open(&n->handle, dev);
  n->dev = dev;
  err = build(n, graph, options);
  if (err)
    ct_network_free(n);
  else
    *network = n;
  return err;
}

/* What jobs that could not be ended still use stays until they have. */
static void leave_room(const ct_network *n) {
  ct_give_back_after(n->dev, n->lasting, n->queue, n->error);
  ct_give_back_after(n->dev, n->arena, n->queue, n->error);
  for (unsigned i = 0; i < CT_EXTERNALS; ++i)
    ct_give_back_after(n->dev, n->external[i], n->queue, n->error);
}

void ct_network_free(ct_network *n) {
  if (!n || !ct_handle_close(&n->handle, "network")) return;
  for (size_t i = 0; n->part && i < n->compiled.stages; ++i)
    ct_programs_free(&n->part[i].programs);
  if (n->dev->queues) leave_room(n);
  free(n->part);
  ct_compiled_free(&n->compiled);
  ct_graph_free(n->graph);
  n->part = NULL;
  n->graph = NULL;
  ct_handle_bury(&n->handle);
}

/* ---- Tensors ------------------------------------------------------------------------------- */

static int check(const ct_network *n) {
  return ct_check_handle(n ? &n->handle : NULL, "network");
}

/* The layout of a tensor. */
static int find(ct_network *n, int tensor, size_t count, const struct ct_lay **lay) {
  if (tensor < 1 || (size_t)tensor > n->compiled.tensors)
    return ct_fail(n->dev, CT_ERR_ARG, "the network has no tensor %d", tensor);
  const struct ct_gtensor *t = n->graph->tensor[tensor];
  *lay = &n->compiled.lay[tensor];
  if (count != t->elements)
    return ct_fail(n->dev, CT_ERR_ARG, "tensor %.80s has %llu elements, not %zu", t->name,
                   (unsigned long long)t->elements, count);
  return CT_OK;
}

int ct_network_write(ct_network *n, int tensor, const float *data, size_t count) {
  const struct ct_lay *lay;
  int err = check(n);
  if (err) return err;
  CT_NEED(n->dev, data);
  err = find(n, tensor, count, &lay);
  if (err) return err;
  const struct ct_gtensor *t = n->graph->tensor[tensor];
  if (t->node >= 0)
    return ct_fail(n->dev, CT_ERR_ARG, "tensor %.80s is made by the network: it cannot be written",
                   t->name);
  if (lay->kind == CT_LAY_NONE) return CT_OK;
  float *matrix = matrix_of(lay);
  if (!matrix) return no_memory(n->dev);
  ct_lay_spread(lay, data, matrix);
  err = ct_network_put(n, &lay->mat, matrix);
  free(matrix);
  if (t->role == CT_ROLE_WEIGHT || t->role == CT_ROLE_STATE) n->stale = true;
  return err;
}

int ct_network_read(ct_network *n, int tensor, float *data, size_t count) {
  const struct ct_lay *lay;
  int err = check(n);
  if (err) return err;
  CT_NEED(n->dev, data);
  err = find(n, tensor, count, &lay);
  if (err) return err;
  if (lay->kind == CT_LAY_NONE)
    return ct_fail(n->dev, CT_ERR_ARG, "tensor %.80s has no place on the device",
                   n->graph->tensor[tensor]->name);
  if (lay->kind == CT_LAY_WINDOWS)
    return ct_fail(n->dev, CT_ERR_ARG, "tensor %.80s is an input: it cannot be read",
                   n->graph->tensor[tensor]->name);
  float *matrix = matrix_of(lay);
  if (!matrix) return no_memory(n->dev);
  err = ct_network_get(n, &lay->mat, matrix);
  if (!err) ct_lay_gather(lay, matrix, data);
  free(matrix);
  return err;
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
  int err = check(n);
  for (size_t i = 1; !err && i <= n->graph->tensors; ++i) {
    const struct ct_gtensor *t = n->graph->tensor[i];
    if (t->role != CT_ROLE_WEIGHT && t->role != CT_ROLE_STATE) continue;
    float *x = malloc(t->elements * sizeof *x);
    if (!x) return no_memory(n->dev);
    draw(t, &state, x);
    if (n->compiled.lay[i].kind != CT_LAY_NONE) err = ct_network_write(n, (int)i, x, t->elements);
    free(x);
  }
  return err;
}

/* ---- Runs ---------------------------------------------------------------------------------- */

/* Stages that have been submitted and not finished. */
struct run {
  ct_network *n;
  enum ct_queue queue;
  struct ct_job job;
  uint64_t *tag; /* by stage; 0: not submitted */
  size_t first;  /* the oldest one under way */
};

static int finish_one(struct run *r) {
  struct ct_network_part *part = &r->n->part[r->first];
  const uint64_t tag = r->tag[r->first++];
  struct ct_event e;
  if (!tag) return CT_OK;
  const int err = ct_finish(r->n->dev, tag, &e);
  if (err == CT_ERR_DEVICE) r->n->error = err; /* whatever the run ends with */
  part->rows = e.rows;
  part->cycles = err || e.end == CT_NO_CYCLE ? CT_NO_CYCLE : e.end - e.start;
  return err;
}

/* Ends stages until so many jobs fit into the queue, or none is left. */
static int make_queue_room(struct run *r, size_t stage, size_t jobs) {
  int err = CT_OK;
  while (!err && r->first < stage && ct_queue_room(r->n->dev, r->queue) < jobs)
    err = finish_one(r);
  return err;
}

static int submit_stage(struct run *r, size_t stage, bool chained) {
  const struct ct_programs *p = &r->n->part[stage].programs;
  struct ct_job *jobs = malloc((p->count + 1) * sizeof *jobs);
  if (!jobs) return no_memory(r->n->dev);
  for (size_t i = 0; i < p->count; ++i) {
    jobs[i] = r->job;
    jobs[i].program = p->of[i];
  }
  const struct ct_work work = {.queue = r->queue,
                               .kind = CT_EVENT_JOB,
                               .job = jobs,
                               .jobs = (unsigned)p->count,
                               .cycle = CT_NO_CYCLE,
                               .chained = chained};
  const int err = ct_submit_work(r->n->dev, &work, &r->tag[stage]);
  free(jobs);
  return err;
}

static int run_stages(struct run *r) {
  ct_network *n = r->n;
  int err = CT_OK;
  size_t i = 0;
  for (bool chained = false; i < n->compiled.stages && !err; ++i) {
    if (n->compiled.stage[i].once && !n->stale && !n->changes) continue;
    if (!n->part[i].programs.count) continue;
    err = make_queue_room(r, i, n->part[i].programs.count);
    if (!err) err = submit_stage(r, i, chained);
    chained = true;
  }
  while (r->first < i) {
    const int one = finish_one(r);
    if (!err) err = one;
  }
  return err;
}

/* No instruction of the device makes random numbers: masks of dropout come from here. */
static int put_masks(ct_network *n, uint64_t step) {
  int err = CT_OK;
  for (size_t i = 0; i < n->compiled.masks && !err; ++i) {
    const struct ct_mask *m = &n->compiled.mask[i];
    float *x = malloc((size_t)m->mat.rows * m->mat.cols * sizeof *x);
    if (!x) return no_memory(n->dev);
    ct_compiled_mask(m, n->seed, step, x);
    err = ct_network_put(n, &m->mat, x);
    free(x);
  }
  return err;
}

/* A run that could not be ended goes on: jobs of its queue are not through. */
static bool goes_on(const ct_network *n) {
  return n->error == CT_ERR_DEVICE && !ct_queue_is_idle(n->dev, n->queue);
}

int ct_network_run(ct_network *n, enum ct_queue queue, uint64_t step) {
  int err = check(n);
  if (!err) err = ct_check_queue(n->dev, queue);
  if (err) return err;
  if (goes_on(n))
    return ct_fail(n->dev, CT_ERR_BUSY, "a run of the network that failed has not ended");
  struct run r = {.n = n, .queue = queue, .tag = calloc(n->compiled.stages + 1, sizeof *r.tag)};
  if (!r.tag) return no_memory(n->dev);
  set_arguments(n, step, &r.job);
  n->queue = queue;
  n->error = CT_OK;
  err = put_masks(n, step);
  if (!err) err = run_stages(&r);
  free(r.tag);
  if (err && !n->error) n->error = err;
  if (!err) n->stale = false;
  return err;
}

/* ---- Facts --------------------------------------------------------------------------------- */

size_t ct_network_stages(const ct_network *n) {
  return n && n->handle.live ? n->compiled.stages : 0;
}

int ct_network_stage(ct_network *n, size_t index, struct ct_network_stage *stage) {
  const int err = check(n);
  if (err) return err;
  CT_NEED(n->dev, stage);
  if (index >= n->compiled.stages)
    return ct_fail(n->dev, CT_ERR_NOT_FOUND, "the network has %zu stages, there is no stage %zu",
                   n->compiled.stages, index);
  const struct ct_stage *s = &n->compiled.stage[index];
  const struct ct_network_part *p = &n->part[index];
  *stage = (struct ct_network_stage){.node = s->node,
                                     .op = s->op,
                                     .backward = s->backward,
                                     .once = s->once,
                                     .jobs = (uint32_t)p->programs.count,
                                     .macs = s->macs,
                                     .read = s->read,
                                     .written = s->written,
                                     .rows = p->rows,
                                     .cycles = p->cycles,
                                     .commands = p->commands,
                                     .expected = p->expected,
                                     .bound = p->bound ? p->bound : ""};
  return CT_OK;
}
