/* SPDX-License-Identifier: Apache-2.0 */
/* The compiler from a graph to jobs: nodes in order, then places, then programs. */
#include "ct_compile.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ct_compile_impl.h"
#include "ct_real.h"

/* ---- Errors -------------------------------------------------------------------------------- */

/* A text as long as it has to be; NULL: no memory. */
static char *text_of(const char *format, va_list args) {
  va_list again;
  va_copy(again, args);
  const int size = vsnprintf(NULL, 0, format, args);
  char *text = size < 0 ? NULL : malloc((size_t)size + 1);
  if (text) vsnprintf(text, (size_t)size + 1, format, again);
  va_end(again);
  return text;
}

__attribute__((format(printf, 1, 2))) static char *text_with(const char *format, ...) {
  va_list args;
  va_start(args, format);
  char *text = text_of(format, args);
  va_end(args);
  return text;
}

void ct_compile_no_memory(struct ct_compiler *c) {
  ct_compile_fail(c, CT_ERR_MEMORY, "no memory for the network");
}

void ct_compile_fail(struct ct_compiler *c, int error, const char *format, ...) {
  if (c->error) return;
  va_list args;
  va_start(args, format);
  c->out->why = text_of(format, args);
  va_end(args);
  c->error = error;
}

/* Room is doubled: a list of thousands takes no longer for each. */
static bool append(struct ct_compiler *c, const char *text) {
  const size_t size = strlen(text), need = c->missing_size + size + 1;
  if (need > c->missing_room) {
    char *all = realloc(c->missing, 2 * need);
    if (!all) return false;
    c->missing = all;
    c->missing_room = 2 * need;
  }
  memcpy(c->missing + c->missing_size, text, size + 1);
  c->missing_size += size;
  return true;
}

/* Each node once. CT_ERR_NO_SPACE says that another device would do, if that is so of all. */
static void note(struct ct_compiler *c, const struct ct_gnode *n, int error, const char *reason) {
  if (c->error || c->noted[n->index]) return;
  char *one = text_with("%s%s (%s): %s", c->missed ? "; " : "", n->name, n->op->name, reason);
  const bool kept = one && append(c, one);
  free(one);
  if (!kept) {
    ct_compile_no_memory(c);
    return;
  }
  c->noted[n->index] = true;
  ++c->missed;
  if (c->refusal != CT_ERR_UNSUPPORTED) c->refusal = error;
}

void ct_compile_miss(struct ct_compiler *c, const struct ct_gnode *n, const char *format, ...) {
  va_list args;
  va_start(args, format);
  char *reason = text_of(format, args);
  va_end(args);
  if (reason)
    note(c, n, CT_ERR_UNSUPPORTED, reason);
  else
    ct_compile_no_memory(c);
  free(reason);
}

void ct_compile_no_kernel(struct ct_compiler *c, const struct ct_gnode *n, int error,
                          const char *reason) {
  if (error == CT_ERR_UNSUPPORTED || error == CT_ERR_NO_SPACE)
    note(c, n, error, reason);
  else
    ct_compile_fail(c, error, "node %s (%s): %s", n->name, n->op->name, reason);
}

/* What has been noted is the error; what else went wrong may come of it. */
static void refuse(struct ct_compiler *c) {
  if (!c->missed || c->error == CT_ERR_MEMORY) return;
  free(c->out->why);
  c->out->why = NULL;
  c->error = CT_OK;
  ct_compile_fail(c, c->refusal, "%zu node%s cannot run on the device: %s", c->missed,
                  c->missed == 1 ? "" : "s", c->missing);
}

/* ---- Operators ----------------------------------------------------------------------------- */

#define CT_LOWER_ENTRY(op) {#op, ct_lower_op_##op},
static const struct {
  const char *op;
  ct_lower_op *lower;
} lowered[] = {CT_LOWERED(CT_LOWER_ENTRY)};

ct_lower_op *ct_lower_of(const char *op) {
  for (size_t i = 0; i < sizeof lowered / sizeof *lowered; ++i)
    if (!strcmp(lowered[i].op, op)) return lowered[i].lower;
  return NULL;
}

bool ct_compile_has(const char *op) {
  return ct_lower_of(op) != NULL;
}

bool ct_compiled_runs(const struct ct_stage *stage, uint64_t run) {
  return ct_ends_step(run, stage->runs);
}

uint32_t ct_compiled_passes(const struct ct_stage *stage) {
  return stage->passes.count ? stage->passes.count : 1;
}

void ct_compiled_pass(const struct ct_compiled *compiled, const struct ct_stage *stage,
                      uint32_t pass, uint32_t *args) {
  const struct ct_argument *a = stage->own ? stage->own : compiled->argument;
  const struct ct_passes *p = &stage->passes;
  const uint32_t first = pass ? ct_min_u32(pass * p->rows, p->all - p->rows) : 0;
  uint32_t common[CT_MAX_ARGS];
  if (!stage->own && !first) return; /* as they are: so it is for each request of a model */
  memcpy(common, args, sizeof common);
  for (unsigned i = 0; i < CT_MAX_ARGS; ++i) {
    if (stage->own) args[i] = a[i].region ? common[a[i].region - 1] + a[i].at : 0;
    args[i] += a[i].row * first;
  }
}

void ct_compiled_mask(const struct ct_mask *m, uint64_t seed, uint64_t step, float *x) {
  const struct ct_dropout d = {.seed = seed, .step = step, .stream = m->stream, .limit = m->limit};
  const size_t count = (size_t)m->mat.rows * m->mat.cols;
  for (size_t i = 0; i < count; i += 4) {
    bool dropped[4];
    ct_dropout_four(&d, i / 4, dropped);
    for (size_t k = i; k < i + 4 && k < count; ++k)
      x[k] = dropped[k - i] ? 0 : 1;
  }
}

/* ---- The whole ----------------------------------------------------------------------------- */

/* What nobody needs is not computed: marks nodes that outputs and new values depend on. */
static void mark_needed(struct ct_compiler *c, bool *needed) {
  const ct_graph *g = c->g;
  for (size_t t = 1; t <= g->tensors; ++t) {
    const struct ct_gtensor *x = g->tensor[t];
    if (x->role == CT_ROLE_OUTPUT && x->node >= 0) needed[x->node] = true;
    if (x->becomes && g->tensor[x->becomes]->node >= 0) needed[g->tensor[x->becomes]->node] = true;
  }
  for (size_t i = g->nodes; i-- > 0;) {
    const struct ct_gnode *n = g->node[c->order[i]];
    for (uint32_t k = 0; needed[n->index] && k < n->inputs; ++k)
      if (ct_has(n, k) && g->tensor[n->in[k]]->node >= 0) needed[g->tensor[n->in[k]]->node] = true;
  }
}

static void lower_nodes(struct ct_compiler *c) {
  bool *needed = calloc(c->g->nodes + 1, sizeof *needed);
  if (!needed) {
    ct_compile_no_memory(c);
    return;
  }
  mark_needed(c, needed);
  for (size_t i = 0; i < c->g->nodes && !c->error; ++i) {
    const struct ct_gnode *n = c->g->node[c->order[i]];
    ct_lower_op *lower = ct_lower_of(n->op->name);
    if (!needed[n->index]) continue;
    if (ct_front_has(c, n))
      ct_front_lower(c, n);
    else if (lower)
      lower(c, n);
    else
      ct_compile_miss(c, n, "no kernel for this operator yet");
  }
  free(needed);
}

/* Who reads each tensor: nodes, the caller, and what it becomes. */
static void count_readers(struct ct_compiler *c) {
  for (size_t t = 1; t <= c->g->tensors; ++t) {
    c->readers[t] += c->g->tensor[t]->role == CT_ROLE_OUTPUT;
    ++c->readers[c->g->tensor[t]->becomes];
  }
  for (size_t i = 0; i < c->g->nodes; ++i)
    for (uint32_t k = 0; k < c->g->node[i]->inputs; ++k)
      ++c->readers[c->g->node[i]->in[k]];
}

/* Of those that can run the first added does, so updates come last. */
static void order_of(struct ct_compiler *c) {
  c->order = calloc(c->g->nodes + 1, sizeof *c->order);
  c->value_of = malloc((c->g->tensors + 1) * sizeof *c->value_of);
  c->readers = calloc(c->g->tensors + 1, sizeof *c->readers);
  c->noted = calloc(c->g->nodes + 1, sizeof *c->noted);
  c->out->lay = calloc(c->g->tensors + 1, sizeof *c->out->lay);
  if (!c->order || !c->value_of || !c->readers || !c->noted || !c->out->lay) {
    ct_compile_no_memory(c);
    return;
  }
  for (size_t t = 0; t <= c->g->tensors; ++t)
    c->value_of[t] = CT_NO_VALUE;
  c->out->tensors = c->g->tensors;
  count_readers(c);
  /* Sorting leaves sentences in the graph and changes nothing else. */
  ct_graph *g = (ct_graph *)c->g; /* NOLINT(cppcoreguidelines-pro-type-const-cast) */
  const int n = ct_graph_order(g, c->order, g->nodes);
  if (n < 0) ct_compile_fail(c, n, "%s", ct_graph_error(g));
}

/* Of all that comes from outside, or goes there. */
static uint64_t external_units(const struct ct_compiled *o, uint32_t members) {
  uint64_t units = 0;
  for (size_t i = 0; i < o->externals; ++i)
    units += o->external[i].units * (o->external[i].shared ? 1 : members);
  return units;
}

/* Programs of what has no room would be made for nothing, and take the longest. */
static void check_room(struct ct_compiler *c) {
  const struct ct_compile_room *r = c->options->room;
  const struct ct_compiled *o = c->out;
  if (!r || c->error || c->missed) return; /* nodes that are missing are the better reason */
  const uint64_t weights = o->lasting * r->lasting * CT_TILE, run = o->arena * r->arena * CT_TILE,
                 ends = r->external ? external_units(o, r->external) * CT_TILE : 0,
                 all = weights + run + ends;
  if (all <= r->bytes) return;
  ct_compile_fail(c, CT_ERR_NO_SPACE,
                  "the network needs %llu bytes of device memory: %llu for weights and what else "
                  "lasts, %llu for what a run makes, %llu for inputs, labels and outputs; %llu are "
                  "free",
                  (unsigned long long)all, (unsigned long long)weights, (unsigned long long)run,
                  (unsigned long long)ends, (unsigned long long)r->bytes);
}

/* Nodes that are not there make nothing, but kernels of others may be refused, too. */
static void lower_all(struct ct_compiler *c) {
  if (!c->error) ct_front_find(c);
  if (!c->error) lower_nodes(c);
  if (!c->error) ct_compile_places(c);
  check_room(c);
  if (!c->error) ct_compile_programs(c);
  refuse(c);
}

static void finish(struct ct_compiler *c) {
  free(c->order);
  free(c->value_of);
  free(c->readers);
  free(c->noted);
  free(c->missing);
  free(c->value);
  free(c->step);
  ct_front_free(c);
}

/* full: numbers of a run had no place. */
static int compile(const ct_graph *graph, const struct ct_compile_options *options,
                   struct ct_compiled *compiled, bool *full) {
  struct ct_compiler c = {.g = graph, .options = options, .out = compiled};
  if (!graph->checked)
    ct_compile_fail(&c, CT_ERR_ARG, "the graph has not been checked");
  else
    order_of(&c);
  if (!c.error && ct_compile_mlp(&c))
    check_room(&c);
  else
    lower_all(&c);
  finish(&c);
  *full = c.full;
  return c.error;
}

int ct_compile(const ct_graph *graph, const struct ct_compile_options *options,
               struct ct_compiled *compiled) {
  bool full = false;
  *compiled = (struct ct_compiled){.fixed = false};
  const int err = compile(graph, options, compiled, &full);
  if (!full) return err;
  ct_compiled_free(compiled);
  compiled->fixed = true;
  return compile(graph, options, compiled, &full);
}

void ct_compiled_free(struct ct_compiled *o) {
  for (size_t i = 0; i < o->stages; ++i) {
    ct_codes_free(&o->stage[i].codes);
    ct_codes_free(&o->stage[i].group.codes);
    free(o->stage[i].own);
  }
  free(o->stage);
  free(o->constant);
  free(o->mask);
  free(o->kept);
  free(o->lay);
  free(o->why);
  *o = (struct ct_compiled){0};
}
