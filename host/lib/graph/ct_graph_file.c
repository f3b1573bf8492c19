/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A graph as bytes, as docs/graph.md describes them: chunks TENS, NODE and LINK. Reading
 * builds the graph by the calls that a program would use, so whatever those refuse is refused here;
 * counts are believed only as far as there are bytes.
 */
#include <stdlib.h>
#include <string.h>

#include "ct_graph_impl.h"

enum { TAG = 4, HEAD = TAG + 8, MOST_NAME = 255 };

/* ---- Writing ------------------------------------------------------------------------------- */

/* Bytes that grow; failed: without memory, and nothing is written from then on. */
struct sink {
  uint8_t *data;
  size_t size, room;
  bool failed;
};

static void put_bytes(struct sink *s, const void *bytes, size_t n) {
  if (s->failed) return;
  if (n > s->room - s->size) {
    const size_t room = 2 * s->room + n + 256;
    uint8_t *data = realloc(s->data, room);
    if (!data) {
      s->failed = true;
      return;
    }
    s->data = data;
    s->room = room;
  }
  memcpy(s->data + s->size, bytes, n);
  s->size += n;
}

static void put(struct sink *s, uint64_t v, unsigned bytes) {
  uint8_t b[8];
  for (unsigned i = 0; i < bytes; ++i)
    b[i] = (uint8_t)(v >> 8 * i);
  put_bytes(s, b, bytes);
}

static void put_real(struct sink *s, double x) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  put(s, bits, 8);
}

/* Names that are longer are cut; names must differ all the same, which the reader's check says. */
static void put_name(struct sink *s, const char *name) {
  const size_t length = strlen(name);
  const size_t n = length < MOST_NAME ? length : MOST_NAME;
  put(s, n, 1);
  put_bytes(s, name, n);
}

static void put_tensors(struct sink *s, const ct_graph *g) {
  put(s, g->tensors, 4);
  for (size_t i = 1; i <= g->tensors; ++i) {
    const struct ct_gtensor *t = g->tensor[i];
    put_name(s, t->name);
    put(s, t->role, 1);
    put(s, t->format, 1);
    put(s, t->initial, 1);
    put(s, t->shape.dims, 1);
    for (uint32_t d = 0; d < t->shape.dims; ++d)
      put(s, t->shape.dim[d], 4);
  }
}

static void put_attrs(struct sink *s, const struct ct_gnode *n) {
  unsigned count = 0;
  while (n->op->attrs && n->op->attrs[count].name)
    ++count;
  put(s, count, 1);
  for (unsigned i = 0; i < count; ++i) {
    put_name(s, n->op->attrs[i].name);
    put(s, n->attr[i].count, 1);
    for (unsigned k = 0; k < n->attr[i].count; ++k)
      put_real(s, n->attr[i].value[k]);
  }
}

static void put_nodes(struct sink *s, const ct_graph *g) {
  put(s, g->nodes, 4);
  for (size_t i = 0; i < g->nodes; ++i) {
    const struct ct_gnode *n = g->node[i];
    put_name(s, n->op->name);
    put_name(s, n->name);
    put(s, n->backward, 1);
    put(s, n->inputs, 2);
    for (unsigned k = 0; k < n->inputs; ++k)
      put(s, (uint64_t)n->in[k], 4);
    put(s, n->op->outputs, 1);
    for (unsigned k = 0; k < n->op->outputs; ++k)
      put(s, (uint64_t)n->out[k], 4);
    put_attrs(s, n);
  }
}

/* For each tensor that has them: its gradient, what it becomes. */
static void put_links(struct sink *s, const ct_graph *g) {
  uint32_t count = 0;
  for (size_t i = 1; i <= g->tensors; ++i)
    count += g->tensor[i]->gradient || g->tensor[i]->becomes;
  put(s, g->differentiated, 1);
  put(s, count, 4);
  for (size_t i = 1; i <= g->tensors; ++i) {
    const struct ct_gtensor *t = g->tensor[i];
    if (!t->gradient && !t->becomes) continue;
    put(s, i, 4);
    put(s, (uint64_t)t->gradient, 4);
    put(s, (uint64_t)t->becomes, 4);
  }
}

static void put_chunk(struct sink *s, const char *tag, const ct_graph *g,
                      void (*body)(struct sink *s, const ct_graph *g)) {
  const size_t at = s->size;
  put_bytes(s, tag, TAG);
  put(s, 0, 8);
  body(s, g);
  for (unsigned i = 0; i < 8 && !s->failed; ++i)
    s->data[at + TAG + i] = (uint8_t)((s->size - at - HEAD) >> 8 * i);
}

int ct_graph_pack(ct_graph *g, uint8_t **data, size_t *size) {
  struct sink s = {0};
  if (!g) return CT_ERR_ARG;
  if (!data || !size)
    return ct_graph_fail(g, CT_ERR_ARG, "where the bytes or their number go is NULL");
  put_chunk(&s, "TENS", g, put_tensors);
  put_chunk(&s, "NODE", g, put_nodes);
  put_chunk(&s, "LINK", g, put_links);
  if (s.failed) {
    free(s.data);
    return ct_graph_fail(g, CT_ERR_MEMORY, "no memory to save the graph");
  }
  *data = s.data;
  *size = s.size;
  return CT_OK;
}

void ct_graph_free_bytes(uint8_t *data) {
  free(data);
}

/* ---- Reading ------------------------------------------------------------------------------- */

/* What is left of a chunk; short: something was asked for that is not there, zeros were given. */
struct source {
  const uint8_t *at, *end;
  bool cut;
};

static const uint8_t *take(struct source *s, size_t n) {
  if (s->cut || n > (size_t)(s->end - s->at)) {
    s->cut = true;
    return NULL;
  }
  s->at += n;
  return s->at - n;
}

static uint64_t get(struct source *s, unsigned bytes) {
  const uint8_t *p = take(s, bytes);
  uint64_t v = 0;
  for (unsigned i = 0; p && i < bytes; ++i)
    v |= (uint64_t)p[i] << 8 * i;
  return v;
}

static double get_real(struct source *s) {
  const uint64_t bits = get(s, 8);
  double x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

/* A tensor's number: what is none becomes one that every call refuses. */
static int get_id(struct source *s) {
  const uint64_t id = get(s, 4);
  return id > INT32_MAX ? INT32_MAX : (int)id;
}

struct name {
  char text[MOST_NAME + 1];
};

static struct name get_name(struct source *s) {
  struct name n = {{0}};
  const size_t length = get(s, 1);
  const uint8_t *p = take(s, length);
  if (p) memcpy(n.text, p, length);
  return n;
}

static int cut_short(ct_graph *g, const char *what) {
  return ct_graph_fail(g, CT_ERR_FORMAT, "the graph's %s were cut short", what);
}

/* Tensors that nodes make are declared first and get their roles at the end. */
static int get_tensor(ct_graph *g, struct source *s, uint8_t *role) {
  const struct name name = get_name(s);
  struct ct_new_tensor t = {.name = name.text};
  *role = (uint8_t)get(s, 1);
  t.role = *role > CT_ROLE_ACTIVATION ? CT_ROLE_ACTIVATION : (enum ct_role) * role;
  t.format = (enum ct_format)get(s, 1);
  t.initial = (enum ct_initial)get(s, 1);
  t.shape.dims = (uint32_t)get(s, 1);
  for (uint32_t d = 0; d < t.shape.dims && d < CT_GRAPH_DIMS; ++d)
    t.shape.dim[d] = (uint32_t)get(s, 4);
  if (s->cut) return cut_short(g, "tensors");
  if (*role > CT_ROLE_OUTPUT)
    return ct_graph_fail(g, CT_ERR_FORMAT, "tensor %.80s has role %u", name.text, *role);
  return ct_graph_tensor(g, &t);
}

static int get_tensors(ct_graph *g, struct source *s, uint8_t **roles) {
  const uint64_t count = get(s, 4);
  if (s->cut || count > (size_t)(s->end - s->at) / 5) return cut_short(g, "tensors");
  *roles = calloc(count + 1, 1);
  if (!*roles) return ct_graph_fail(g, CT_ERR_MEMORY, "no memory for the graph");
  int err = CT_OK;
  for (uint64_t i = 1; i <= count && err >= 0; ++i)
    err = get_tensor(g, s, &(*roles)[i]);
  return err < 0 ? err : CT_OK;
}

static int get_attrs(ct_graph *g, struct source *s, struct ct_attr *attrs, struct name *names,
                     size_t *count) {
  *count = get(s, 1);
  if (*count > CT_GOP_ATTRS)
    return ct_graph_fail(g, CT_ERR_FORMAT, "a node has %zu attributes, %d are the most", *count,
                         CT_GOP_ATTRS);
  for (size_t i = 0; i < *count; ++i) {
    names[i] = get_name(s);
    attrs[i] = (struct ct_attr){.name = names[i].text, .count = (uint32_t)get(s, 1)};
    if (attrs[i].count > 4)
      return ct_graph_fail(g, CT_ERR_FORMAT, "an attribute has %u numbers", attrs[i].count);
    for (unsigned k = 0; k < attrs[i].count; ++k)
      attrs[i].value[k] = get_real(s);
  }
  return CT_OK;
}

/* Outputs must be as many as the operator makes: the call that adds the node reads that many. */
static int check_outputs(ct_graph *g, const char *name, const char *op_name, size_t outputs) {
  const struct ct_gop *op = ct_gop_find(op_name);
  if (!op || op->outputs == outputs) return CT_OK;
  return ct_graph_fail(g, CT_ERR_FORMAT, "node %.80s (%s): it makes %u tensors, not %zu", name,
                       op->name, op->outputs, outputs);
}

static int get_node(ct_graph *g, struct source *s) {
  const struct name op = get_name(s), name = get_name(s);
  struct name attr_names[CT_GOP_ATTRS];
  struct ct_attr attrs[CT_GOP_ATTRS];
  int in[CT_GOP_INPUTS], out[CT_GOP_OUTPUTS];
  struct ct_new_node n = {.op = op.text, .name = name.text, .inputs = in, .attrs = attrs};
  g->backward = get(s, 1) == 1;
  n.input_count = get(s, 2);
  if (n.input_count > CT_GOP_INPUTS)
    return ct_graph_fail(g, CT_ERR_FORMAT, "node %.80s: it has too many inputs: %zu", name.text,
                         n.input_count);
  for (size_t i = 0; i < n.input_count; ++i)
    in[i] = get_id(s);
  const size_t outputs = get(s, 1);
  if (outputs > CT_GOP_OUTPUTS)
    return ct_graph_fail(g, CT_ERR_FORMAT, "node %.80s: it makes %zu tensors", name.text, outputs);
  for (size_t i = 0; i < outputs; ++i)
    out[i] = get_id(s);
  n.outputs = out;
  int err = get_attrs(g, s, attrs, attr_names, &n.attr_count);
  if (!err && s->cut) err = cut_short(g, "nodes");
  if (!err) err = check_outputs(g, name.text, op.text, outputs);
  return err ? err : ct_graph_add(g, &n);
}

static int get_nodes(ct_graph *g, struct source *s) {
  const uint64_t count = get(s, 4);
  int err = CT_OK;
  for (uint64_t i = 0; i < count && err >= 0; ++i)
    err = get_node(g, s);
  g->backward = false;
  if (err >= 0 && s->cut) err = cut_short(g, "nodes");
  return err < 0 ? err : CT_OK;
}

static int get_link(ct_graph *g, struct source *s) {
  const int tensor = get_id(s), gradient = get_id(s), becomes = get_id(s);
  if (s->cut) return cut_short(g, "links");
  int err = ct_graph_has(g, tensor, "a link");
  if (!err && gradient) err = ct_graph_has(g, gradient, "a gradient");
  if (!err && gradient && !ct_shape_same(&g->tensor[tensor]->shape, &g->tensor[gradient]->shape))
    err = ct_graph_fail(g, CT_ERR_FORMAT, "tensor %.80s has a gradient of another shape",
                        g->tensor[tensor]->name);
  if (!err && gradient) g->tensor[tensor]->gradient = gradient;
  if (!err && becomes) err = ct_graph_becomes(g, tensor, becomes);
  return err;
}

static int get_links(ct_graph *g, struct source *s) {
  g->differentiated = get(s, 1) != 0;
  const uint64_t count = get(s, 4);
  int err = s->cut ? cut_short(g, "links") : CT_OK;
  for (uint64_t i = 0; i < count && err >= 0; ++i)
    err = get_link(g, s);
  return err < 0 ? err : CT_OK;
}

/* Roles that only what a node makes can have. */
static int give_roles(ct_graph *g, const uint8_t *roles) {
  for (size_t i = 1; i <= g->tensors; ++i)
    if (roles[i] > CT_ROLE_ACTIVATION) {
      if (g->tensor[i]->node < 0)
        return ct_graph_fail(g, CT_ERR_FORMAT, "tensor %.80s is made by no node",
                             g->tensor[i]->name);
      g->tensor[i]->role = (enum ct_role)roles[i];
    }
  return CT_OK;
}

/* The chunk that has to come next, whole. */
static int open_chunk(ct_graph *g, struct source *all, const char *tag, struct source *chunk) {
  const uint8_t *found = take(all, TAG);
  const uint64_t size = get(all, 8);
  if (all->cut || size > (size_t)(all->end - all->at)) return cut_short(g, "chunks");
  if (memcmp(found, tag, TAG) != 0)
    return ct_graph_fail(g, CT_ERR_FORMAT, "the graph's chunk %s is missing", tag);
  const uint8_t *at = take(all, (size_t)size);
  *chunk = (struct source){at, at + size, false};
  return CT_OK;
}

static int end_chunk(ct_graph *g, const struct source *chunk, const char *tag) {
  return chunk->at == chunk->end
             ? CT_OK
             : ct_graph_fail(g, CT_ERR_FORMAT, "the graph's chunk %s goes on behind its end", tag);
}

static int read_all(ct_graph *g, struct source *all, uint8_t **roles) {
  struct source chunk;
  int err = open_chunk(g, all, "TENS", &chunk);
  if (!err) err = get_tensors(g, &chunk, roles);
  if (!err) err = end_chunk(g, &chunk, "TENS");
  if (!err) err = open_chunk(g, all, "NODE", &chunk);
  if (!err) err = get_nodes(g, &chunk);
  if (!err) err = end_chunk(g, &chunk, "NODE");
  if (!err) err = open_chunk(g, all, "LINK", &chunk);
  if (!err) err = get_links(g, &chunk);
  if (!err) err = end_chunk(g, &chunk, "LINK");
  if (!err) err = end_chunk(g, all, "LINK");
  return err ? err : give_roles(g, *roles);
}

int ct_graph_unpack(ct_graph *g, const uint8_t *data, size_t size) {
  uint8_t *roles = NULL;
  int err = ct_graph_open(g);
  if (err) return err;
  if (!data) return ct_graph_fail(g, CT_ERR_ARG, "the bytes of the graph are NULL");
  struct source all = {data, data + size, false};
  if (g->tensors || g->nodes) return ct_graph_fail(g, CT_ERR_ARG, "the graph is not empty");
  err = read_all(g, &all, &roles);
  free(roles);
  if (!err) return CT_OK;
  ct_graph_rollback(g, (struct ct_mark){0, 0});
  g->differentiated = false;
  return err;
}

int ct_graph_copy(const ct_graph *graph, ct_graph **copy) {
  uint8_t *data = NULL;
  size_t size = 0;
  ct_graph *from = (ct_graph *)graph; /* NOLINT(cppcoreguidelines-pro-type-const-cast) */
  int err = ct_graph_pack(from, &data, &size);
  if (!err) err = ct_graph_create(copy);
  if (!err) err = ct_graph_unpack(*copy, data, size);
  ct_graph_free_bytes(data);
  return err;
}
