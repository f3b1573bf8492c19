/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of networks, format version 2: docs/model-format.md says what is in them. One of a model,
 * format version 1, is read as that of a network that is a perceptron.
 *
 * A file is taken apart in the host's memory: its graph is built by the calls that refuse what is
 * wrong, and values are believed only as far as there are bytes. Nothing reaches a device before
 * all of it has been found right.
 */
#include "ct_network_file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ct_file.h"
#include "ct_graph_impl.h"
#include "ct_graph_perceptron.h"

enum { TAG = 4, CHUNK = TAG + 8, INFO = 36, VALUE = 12 };
enum { KERNELS = 256 }; /* in INFO, beside the bits of mantissas */
static const char BOUNDS[] = "kept";

static bool lasts(const struct ct_gtensor *t) {
  return t->role == CT_ROLE_WEIGHT || t->role == CT_ROLE_STATE;
}

/* ---- Writing ------------------------------------------------------------------------------- */

/* Bytes of all values. */
static uint64_t values_size(const ct_network *n) {
  uint64_t size = 0;
  for (size_t i = 1; i <= n->graph->tensors; ++i)
    if (lasts(n->graph->tensor[i]) && n->compiled.lay[i].kind != CT_LAY_NONE)
      size += VALUE + 4 * n->graph->tensor[i]->elements;
  return size;
}

static uint8_t *put_chunk(uint8_t *p, const char *tag, uint64_t size) {
  memcpy(p, tag, TAG);
  ct_file_put(p + TAG, size, 8);
  return p + CHUNK;
}

static uint8_t *put_info(const ct_network *n, uint8_t *p) {
  p = put_chunk(p, "INFO", INFO);
  ct_file_put(p, n->live->seed, 8);
  ct_file_put(p + 8, n->live->steps, 8);
  ct_file_put(p + 16, n->live->epochs, 8);
  ct_file_put(p + 24, n->seed, 8);
  ct_file_put(p + 32, (8 - n->narrow) | (n->kernels ? KERNELS : 0), 4);
  return p + INFO;
}

static int put_values(ct_network *n, uint8_t **at) {
  uint8_t *p = put_chunk(*at, "VALU", values_size(n));
  int err = CT_OK;
  for (size_t i = 1; i <= n->graph->tensors && !err; ++i) {
    const struct ct_gtensor *t = n->graph->tensor[i];
    if (!lasts(t) || n->compiled.lay[i].kind == CT_LAY_NONE) continue;
    float *x = malloc(t->elements * sizeof *x);
    err = x ? ct_network_read(n, (int)i, x, t->elements)
            : ct_fail(n->dev, CT_ERR_MEMORY, "no memory to save the network");
    ct_file_put(p, i, 4);
    ct_file_put(p + 4, t->elements, 8);
    p += VALUE;
    if (!err) p = ct_file_put_floats(p, x, t->elements);
    free(x);
  }
  *at = p;
  return err;
}

/* With its head; there is none if nothing is kept compressed. */
static size_t bounds_size(const ct_network *n) {
  const size_t size = ct_bounds_size(n);
  return size ? CHUNK + size : 0;
}

static int encode(ct_network *n, const uint8_t *graph, size_t graph_size, uint8_t *data) {
  ct_file_begin(data, CT_FILE_NETWORK);
  uint8_t *p = put_info(n, data + CT_FILE_HEAD);
  p = put_chunk(p, "GRAF", graph_size);
  memcpy(p, graph, graph_size);
  p += graph_size;
  const int err = put_values(n, &p);
  if (!err && bounds_size(n)) ct_bounds_put(n, put_chunk(p, BOUNDS, ct_bounds_size(n)));
  return err;
}

int ct_network_save(ct_network *n, const char *path) {
  uint8_t *graph = NULL, *data = NULL;
  size_t graph_size = 0, size = 0;
  int err = ct_check_network(n);
  if (err) return err;
  CT_NEED(n->dev, path);
  err = ct_network_still(n, false, "saved");
  if (!err) err = ct_kept_settle(n);
  if (!err && ct_graph_pack(n->graph, &graph, &graph_size))
    err = ct_fail(n->dev, CT_ERR_MEMORY, "no memory to save the network");
  if (!err) {
    size = CT_FILE_HEAD + CHUNK + INFO + CHUNK + graph_size + CHUNK + values_size(n) +
           bounds_size(n) + CT_FILE_SUM;
    data = malloc(size);
    err = data ? encode(n, graph, graph_size, data)
               : ct_fail(n->dev, CT_ERR_MEMORY, "no memory to save the network");
  }
  if (!err) err = ct_file_write(n->dev, path, data, size);
  ct_graph_free_bytes(graph);
  free(data);
  return err;
}

/* ---- Reading ------------------------------------------------------------------------------- */

/* What is left of a file. */
struct source {
  ct_device *dev;
  const char *path;
  const uint8_t *at, *end;
};

static int no_room(const struct source *s) {
  return ct_fail(s->dev, CT_ERR_MEMORY, "no memory for the network in %s", s->path);
}

struct chunk {
  char tag[TAG + 1];
  const uint8_t *at;
  size_t size;
};

/* A chunk that this library does not know but may leave out begins with a small letter. */
static bool may_be_skipped(const struct chunk *c) {
  return c->tag[0] >= 'a' && c->tag[0] <= 'z';
}

/* Its size is believed only if there is as much. */
static int next_chunk(struct source *s, struct chunk *c) {
  if (s->end - s->at < CHUNK)
    return ct_fail(s->dev, CT_ERR_FORMAT, "%s is damaged: a chunk is missing", s->path);
  memcpy(c->tag, s->at, TAG);
  c->tag[TAG] = 0;
  const uint64_t size = ct_file_get(s->at + TAG, 8);
  s->at += CHUNK;
  if (size > (size_t)(s->end - s->at))
    return ct_fail(s->dev, CT_ERR_FORMAT, "%s was cut short: a chunk goes on behind the end",
                   s->path);
  c->at = s->at;
  c->size = (size_t)size;
  s->at += c->size;
  return CT_OK;
}

static int need_chunk(struct source *s, const char *tag, struct chunk *c) {
  int err = next_chunk(s, c);
  while (!err && may_be_skipped(c))
    err = next_chunk(s, c);
  if (err || !memcmp(c->tag, tag, TAG)) return err;
  return ct_fail(s->dev, CT_ERR_FORMAT, "%s is damaged: the chunk %s is missing", s->path, tag);
}

static int read_info(struct source *s, struct ct_network_file *f) {
  struct chunk c;
  const int err = need_chunk(s, "INFO", &c);
  if (err) return err;
  const uint64_t how = c.size == INFO ? ct_file_get(c.at + 32, 4) : 0, bits = how & ~KERNELS;
  if (bits < 2 || bits > 8)
    return ct_fail(s->dev, CT_ERR_FORMAT, "%s is damaged: its chunk INFO makes no sense", s->path);
  f->seed = ct_file_get(c.at, 8);
  f->steps = ct_file_get(c.at + 8, 8);
  f->epochs = ct_file_get(c.at + 16, 8);
  f->masks = ct_file_get(c.at + 24, 8);
  f->mantissa = (uint32_t)bits;
  f->kernels = how & KERNELS;
  return CT_OK;
}

static int read_graph(struct source *s, struct ct_network_file *f) {
  struct chunk c;
  int err = need_chunk(s, "GRAF", &c);
  if (err) return err;
  if (ct_graph_create(&f->graph)) return no_room(s);
  err = ct_graph_unpack(f->graph, c.at, c.size);
  if (!err) err = ct_graph_check(f->graph);
  if (!err) return CT_OK;
  return ct_fail(s->dev, err == CT_ERR_MEMORY ? err : CT_ERR_FORMAT, "%s: its graph: %s", s->path,
                 ct_graph_error(f->graph));
}

/* One value: a weight or state of the graph, none twice. */
static int check_value(const struct source *s, struct ct_network_file *f, const uint8_t *p,
                       size_t left, size_t *size) {
  const uint64_t tensor = left >= VALUE ? ct_file_get(p, 4) : 0;
  if (tensor < 1 || tensor > f->graph->tensors || !lasts(f->graph->tensor[tensor]))
    return ct_fail(s->dev, CT_ERR_FORMAT, "%s is damaged: a value belongs to no weight or state",
                   s->path);
  const struct ct_gtensor *t = f->graph->tensor[tensor];
  if (ct_file_get(p + 4, 8) != t->elements || t->elements > (left - VALUE) / 4)
    return ct_fail(s->dev, CT_ERR_FORMAT,
                   "%s is damaged: the value of %.80s has not the size that its graph says",
                   s->path, t->name);
  if (f->value[tensor])
    return ct_fail(s->dev, CT_ERR_FORMAT, "%s is damaged: %.80s has two values", s->path, t->name);
  f->value[tensor] = p + VALUE;
  *size = VALUE + 4 * (size_t)t->elements;
  return CT_OK;
}

static int read_values(struct source *s, struct ct_network_file *f) {
  struct chunk c;
  int err = need_chunk(s, "VALU", &c);
  if (err) return err;
  f->value = calloc(f->graph->tensors + 1, sizeof *f->value);
  if (!f->value) return no_room(s);
  for (size_t at = 0, size = 0; at < c.size && !err; at += size)
    err = check_value(s, f, c.at + at, c.size - at, &size);
  return err;
}

/* Behind what must be there are bounds, of a network that has some, and what may be skipped. */
static int read_rest(struct source *s, struct ct_network_file *f) {
  struct chunk c;
  int err = CT_OK;
  while (!err && s->at != s->end) {
    err = next_chunk(s, &c);
    if (!err && !memcmp(c.tag, BOUNDS, TAG))
      err = ct_bounds_parse(s->dev, s->path, c.at, c.size, &f->bounds);
    else if (!err && !may_be_skipped(&c))
      err = ct_fail(s->dev, CT_ERR_FORMAT, "%s is damaged: a chunk more than there should be",
                    s->path);
  }
  return err;
}

/* ---- Models -------------------------------------------------------------------------------- */

/* There is none of these rows whatever the rates, or there is. */
static int say_why_no_graph(const struct source *s, const struct ct_model_file *m,
                            const struct ct_perceptron *p) {
  const struct ct_rates *rates = &m->training.rates;
  struct ct_perceptron plain = *p;
  ct_graph *graph = NULL;
  plain.schedule = (struct ct_schedule){.rate = 1};
  plain.momentum = plain.decay = 0;
  const int err = ct_graph_perceptron_make(&plain, &graph);
  ct_graph_free(graph);
  if (err == CT_ERR_MEMORY) return no_room(s);
  if (err)
    return ct_fail(s->dev, CT_ERR_FORMAT,
                   "%s says steps of %u rows, which are more than a graph of these widths has",
                   s->path, p->batch);
  return ct_fail(s->dev, CT_ERR_FORMAT,
                 "%s says a learning rate of %g, a momentum of %g and a weight decay of %g: no "
                 "graph takes such rates",
                 s->path, (double)rates->lr, (double)rates->momentum, (double)rates->weight_decay);
}

/* Its steps; of one that was never prepared for any the answers to a row. */
static int make_graph(const struct source *s, const struct ct_model_file *m,
                      struct ct_perceptron *p, ct_graph **graph) {
  const struct ct_rates *rates = &m->training.rates;
  *p = (struct ct_perceptron){.layers = m->net.layers,
                              .batch = m->training.batch ? m->training.batch : 1,
                              .trains = m->training.batch > 0,
                              .schedule = {.rate = rates->lr},
                              .momentum = rates->momentum,
                              .decay = rates->weight_decay};
  memcpy(p->width, m->net.width, sizeof p->width);
  const int err = ct_graph_perceptron_make(p, graph);
  if (err == CT_ERR_MEMORY || (!err && ct_graph_perceptron(*graph, p) < 0)) return no_room(s);
  return err ? say_why_no_graph(s, m, p) : CT_OK;
}

/* Tensors follow each other as in struct ct_numbers. */
static int find_numbers(const struct source *s, const struct ct_model_file *m,
                        const struct ct_perceptron *p, struct ct_network_file *f) {
  const uint8_t *at = m->numbers;
  f->value = calloc(f->graph->tensors + 1, sizeof *f->value);
  if (!f->value) return no_room(s);
  for (uint32_t l = 0; l < p->layers; ++l) {
    const int tensor[] = {p->w[l], p->b[l], p->vw[l], p->vb[l]};
    for (unsigned i = 0; i < 4; ++i) {
      f->value[tensor[i]] = at; /* (of 0, what is not there, nobody asks) */
      at += 4 * (size_t)p->width[l + 1] * (i % 2 ? 1 : p->width[l]);
    }
  }
  return CT_OK;
}

static int read_model(const struct source *s, const uint8_t *data, size_t size,
                      struct ct_network_file *f) {
  struct ct_model_file m;
  struct ct_perceptron p;
  int err = ct_model_file_parse(s->dev, s->path, data, size, &m);
  if (!err) err = make_graph(s, &m, &p, &f->graph);
  if (!err) err = find_numbers(s, &m, &p, f);
  f->seed = m.seed;
  f->steps = m.steps;
  f->epochs = m.epochs;
  f->mantissa = 8;
  return err;
}

/* ---- Both ---------------------------------------------------------------------------------- */

static int read_network(struct source *s, const uint8_t *data, size_t size,
                        struct ct_network_file *f) {
  if (size < CT_FILE_HEAD + CT_FILE_SUM)
    return ct_fail(s->dev, CT_ERR_FORMAT,
                   "%s was cut short: a model file goes on after these %zu bytes", s->path, size);
  if (!ct_file_is_sealed(data, size))
    return ct_fail(s->dev, CT_ERR_FORMAT,
                   "%s is damaged or was cut short: the checksum does not match", s->path);
  s->at = data + CT_FILE_HEAD;
  s->end = data + size - CT_FILE_SUM;
  int err = read_info(s, f);
  if (!err) err = read_graph(s, f);
  if (!err) err = read_values(s, f);
  return err ? err : read_rest(s, f);
}

int ct_network_file_parse(ct_device *dev, const char *path, const uint8_t *data, size_t size,
                          struct ct_network_file *f) {
  struct source s = {.dev = dev, .path = path};
  uint32_t format = 0;
  *f = (struct ct_network_file){.graph = NULL};
  const int err = ct_file_check(dev, path, data, size, &format);
  if (err) return err;
  return format == CT_FILE_MODEL ? read_model(&s, data, size, f) : read_network(&s, data, size, f);
}

void ct_network_file_free(struct ct_network_file *f) {
  ct_graph_free(f->graph);
  free(f->value);
  *f = (struct ct_network_file){.graph = NULL};
}

/* ---- Loading ------------------------------------------------------------------------------- */

static int put_value(ct_network *n, const struct ct_network_file *f, size_t i) {
  const struct ct_gtensor *t = f->graph->tensor[i];
  float *x = malloc(t->elements * sizeof *x);
  if (!x) return ct_fail(n->dev, CT_ERR_MEMORY, "no memory for the network");
  ct_file_get_floats(f->value[i], x, t->elements);
  const int err = ct_network_write(n, (int)i, x, t->elements);
  free(x);
  return err;
}

static bool is_kept(const ct_network *n, const struct ct_network_file *f, size_t i) {
  return lasts(f->graph->tensor[i]) && n->compiled.lay[i].kind != CT_LAY_NONE;
}

/* What the device keeps and the file lacks is refused, before anything is written. */
static int check_all_there(ct_network *n, const struct ct_network_file *f, const char *path) {
  for (size_t i = 1; i <= f->graph->tensors; ++i)
    if (is_kept(n, f, i) && !f->value[i])
      return ct_fail(n->dev, CT_ERR_FORMAT, "%s has no value for %.80s", path,
                     f->graph->tensor[i]->name);
  return CT_OK;
}

/* So is a weight that is no number, as where training has diverged. */
static int check_weights(ct_network *n, const struct ct_network_file *f, const char *path) {
  for (size_t i = 1; i <= f->graph->tensors; ++i) {
    const struct ct_gtensor *t = f->graph->tensor[i];
    if (!is_kept(n, f, i) || t->role != CT_ROLE_WEIGHT) continue;
    for (uint64_t k = 0; k < t->elements; ++k)
      if (isnan(ct_file_get_float(f->value[i] + k * sizeof(float))))
        return ct_fail(n->dev, CT_ERR_FORMAT,
                       "%s: weight %.80s has NaN among its values (element %llu), as where "
                       "training has diverged",
                       path, t->name, (unsigned long long)k);
  }
  return CT_OK;
}

/* Values of all that the device keeps, then how far these have come. */
static int fill(ct_network *n, const struct ct_network_file *f, const char *path) {
  int err = check_all_there(n, f, path);
  if (!err) err = check_weights(n, f, path);
  if (!err) err = ct_bounds_check(n, &f->bounds, path);
  for (size_t i = 1; i <= f->graph->tensors && !err; ++i)
    if (is_kept(n, f, i)) err = put_value(n, f, i);
  if (err) return err;
  n->live->seed = f->seed;
  n->live->steps = f->steps;
  n->live->epochs = f->epochs;
  ct_bounds_take(n, &f->bounds);
  return CT_OK;
}

/* What a file says where the options say nothing. */
static void fill_in(struct ct_network_options *how, const struct ct_network_file *f,
                    const struct ct_network_choice *choose) {
  if (!how->mantissa) how->mantissa = f->mantissa;
  how->kernels = how->kernels || f->kernels;
  if (!how->seed) how->seed = f->masks;
  ct_bounds_fill_in(how, &f->bounds);
  if (choose) how->like = choose->like(choose->arg, f->graph, how);
}

/* Of each member the same. */
static int fill_all(ct_network *n, const struct ct_network_file *f, const char *path) {
  int err = CT_OK;
  for (uint32_t m = n->members; m-- > 0 && !err;) {
    err = ct_network_select(n, m);
    if (!err) err = fill(n, f, path);
  }
  return err;
}

int ct_network_load_like(ct_device *dev, const char *path, const struct ct_network_options *options,
                         const struct ct_network_choice *choose, ct_network **network) {
  struct ct_network_file f = {.graph = NULL};
  struct ct_network_options how = {.mantissa = 0};
  uint8_t *data = NULL;
  size_t size = 0;
  ct_network *n = NULL;
  if (options) how = *options;
  if (how.weights_of)
    return ct_fail(dev, CT_ERR_ARG, "%s has weights: its network cannot have those of another one",
                   path);
  int err = ct_file_read(dev, path, &data, &size);
  if (!err) err = ct_network_file_parse(dev, path, data, size, &f);
  if (!err) fill_in(&how, &f, choose);
  if (!err) err = ct_network_make(dev, f.graph, &how, choose && choose->bare, &n);
  if (!err) err = fill_all(n, &f, path);
  ct_network_file_free(&f);
  free(data);
  if (err)
    ct_network_free(n);
  else
    *network = n;
  return err;
}

int ct_network_load(ct_device *dev, const char *path, const struct ct_network_options *options,
                    ct_network **network) {
  if (network) *network = NULL;
  const int err = ct_check_device(dev);
  if (err) return err;
  CT_NEED(dev, path);
  CT_NEED(dev, network);
  return ct_network_load_like(dev, path, options, NULL, network);
}

static int check_kin(ct_network *n, const struct ct_network_file *f, const char *path) {
  if (f->mantissa == 8 - n->narrow &&
      ct_compiled_suits(&n->shared->compiled, n->shared->graph, f->graph))
    return CT_OK;
  return ct_fail(n->dev, CT_ERR_ARG,
                 "%s is of another network: more than numbers of its updates differ", path);
}

/* An array counts its members' runs, and feeds them by these. */
static int check_no_member(ct_network *n) {
  if (!n->bare) return CT_OK;
  return ct_fail(n->dev, CT_ERR_UNSUPPORTED,
                 "the network is a member of an array: another member can join from the file");
}

int ct_network_restore(ct_network *n, const char *path) {
  struct ct_network_file f = {.graph = NULL};
  uint8_t *data = NULL;
  size_t size = 0;
  int err = ct_check_network(n);
  if (err) return err;
  CT_NEED(n->dev, path);
  err = check_no_member(n);
  if (!err) err = ct_network_owned(n, "restored");
  if (!err) err = ct_network_still(n, true, "restored");
  if (!err) err = ct_file_read(n->dev, path, &data, &size);
  if (!err) err = ct_network_file_parse(n->dev, path, data, size, &f);
  if (!err) err = check_kin(n, &f, path);
  if (!err) err = fill(n, &f, path);
  ct_network_file_free(&f);
  free(data);
  return err;
}
