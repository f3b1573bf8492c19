/* SPDX-License-Identifier: Apache-2.0 */
/* Models: their numbers on the host and on the device. */
#include "ct_network.h"

#include <stdlib.h>
#include <string.h>

enum { TILE_FLOATS = CT_TILE * CT_TILE, TILE_BYTES = CT_F32_TILE_UNITS * CT_UNIT };

/* ---- Numbers ------------------------------------------------------------------------------- */

size_t ct_numbers_count(const struct ct_mlp *net) {
  size_t count = 0;
  for (uint32_t l = 0; l < net->layers; ++l)
    count += 2 * ((size_t)net->width[l] + 1) * net->width[l + 1];
  return count;
}

struct ct_numbers *ct_numbers_alloc(const struct ct_mlp *net) {
  struct ct_numbers *x = calloc(1, sizeof *x);
  if (!x) return NULL;
  x->count = ct_numbers_count(net);
  float *p = x->all = calloc(x->count + 1, sizeof *p);
  if (!p) {
    free(x);
    return NULL;
  }
  for (uint32_t l = 0; l < net->layers; ++l) {
    const size_t out = net->width[l + 1], weights = net->width[l] * out;
    x->w[l] = p;
    x->b[l] = x->w[l] + weights;
    x->vw[l] = x->b[l] + out;
    x->vb[l] = x->vw[l] + weights;
    p = x->vb[l] + out;
  }
  return x;
}

void ct_numbers_free(struct ct_numbers *x) {
  if (x) free(x->all);
  free(x);
}

/* ---- Initial weights ----------------------------------------------------------------------- */

/* splitmix64 (Steele, Lea, Flood): 64 bits from a counter. */
static uint64_t next_random(uint64_t *state) {
  uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return z ^ z >> 31;
}

/* He-uniform: w is uniform in +-sqrt(6 / inputs). The generator starts at the seed and is asked
 * once for each weight, layer by layer, row by row. Its upper 24 bits u give the odd number s = 2u
 * + 1 - 2^24, and
 *
 *   w = floor(s * A / 2^20) * 2^-24      A = floor(sqrt(6 * 2^40 / inputs)), the bound in units of
 * 2^-20
 *
 * (the integer quotient in the root, floor towards minus infinity), which FP32 holds exactly for
 * six inputs or more and rounds to nearest even otherwise. */
void ct_draw_he(uint64_t *state, uint32_t inputs, uint64_t count, float *x) {
  const int64_t bound = (int64_t)ct_floor_root((UINT64_C(6) << 40) / inputs);
  for (uint64_t i = 0; i < count; ++i) {
    const int64_t s = 2 * (int64_t)(next_random(state) >> 40) + 1 - (1 << 24);
    const int64_t product = s * bound;
    const int64_t w = product >= 0 ? product >> 20 : -((-product + (1 << 20) - 1) >> 20);
    x[i] = ct_from_fixed(w, 24);
  }
}

void ct_model_draw(const struct ct_mlp *net, uint64_t seed, struct ct_numbers *x) {
  uint64_t state = seed;
  memset(x->all, 0, x->count * sizeof *x->all);
  for (uint32_t l = 0; l < net->layers; ++l) {
    const uint32_t inputs = net->width[l] ? net->width[l] : 1;
    ct_draw_he(&state, inputs, (uint64_t)inputs * net->width[l + 1], x->w[l]);
  }
}

/* ---- To and from the device ---------------------------------------------------------------- */

/* Where row i of tile (r, c) starts in a row-major matrix. */
static size_t row_at(uint32_t cols, uint32_t r, uint32_t c, uint32_t i) {
  return ((size_t)r * CT_TILE + i) * cols + (size_t)c * CT_TILE;
}

void ct_tile_from(const float *x, uint32_t rows, uint32_t cols, uint32_t r, uint32_t c,
                  float *tile) {
  memset(tile, 0, TILE_BYTES);
  for (uint32_t i = 0; i < ct_in_tile(rows, r); ++i, tile += CT_TILE)
    memcpy(tile, x + row_at(cols, r, c, i), ct_in_tile(cols, c) * sizeof *x);
}

void ct_tile_to(const float *tile, uint32_t rows, uint32_t cols, uint32_t r, uint32_t c, float *x) {
  for (uint32_t i = 0; i < ct_in_tile(rows, r); ++i, tile += CT_TILE)
    memcpy(x + row_at(cols, r, c, i), tile, ct_in_tile(cols, c) * sizeof *x);
}

void ct_tiles_from(const float *x, uint32_t rows, uint32_t cols, size_t pitch, uint8_t *tiles) {
  float tile[TILE_FLOATS];
  for (uint32_t r = 0; r < ct_tiles(rows); ++r) {
    for (uint32_t c = 0; c < ct_tiles(cols); ++c, tiles += pitch) {
      ct_tile_from(x, rows, cols, r, c, tile);
      memcpy(tiles, tile, sizeof tile);
    }
  }
}

void ct_tiles_to(const uint8_t *tiles, uint32_t rows, uint32_t cols, size_t pitch, float *x) {
  float tile[TILE_FLOATS];
  for (uint32_t r = 0; r < ct_tiles(rows); ++r) {
    for (uint32_t c = 0; c < ct_tiles(cols); ++c, tiles += pitch) {
      memcpy(tile, tiles, sizeof tile);
      ct_tile_to(tile, rows, cols, r, c, x);
    }
  }
}

/* The host's copy of image and state, one behind the other. */
struct regions {
  uint8_t *image, *state;
  size_t image_size, state_size;
};

static int regions_alloc(const struct ct_mlp *net, struct regions *r) {
  r->image_size = (size_t)ct_mlp_image_units(net) * CT_UNIT;
  r->state_size = (size_t)ct_mlp_state_units(net) * CT_UNIT;
  r->image = calloc(1, r->image_size + r->state_size);
  r->state = r->image ? r->image + r->image_size : NULL;
  return r->image ? CT_OK : CT_ERR_MEMORY;
}

static void regions_free(struct regions *r) {
  free(r->image);
}

/* A tensor in all its ways of keeping. */
static void write_tensor(const struct ct_lay *lay, const float *x, const struct regions *r) {
  for (unsigned k = 0; k < CT_KEEPS; ++k) {
    const struct ct_seat *seat = &lay->mat.keep[k];
    if (seat->reg) ct_lay_pack(lay, (enum ct_keep)k, x, r->image + (size_t)seat->at * CT_UNIT);
  }
}

/* In FP32, as all that is trained is kept. */
static void read_tensor(const struct ct_lay *lay, const struct regions *r, float *x) {
  const size_t at = lay->mat.keep[CT_KEEP_F32].at;
  ct_lay_unpack(lay, CT_KEEP_F32, r->image + at * CT_UNIT, x);
}

static void write_layer(const struct ct_mlp *net, uint32_t l, const struct ct_numbers *x,
                        const struct regions *r) {
  struct ct_layer_lays lays;
  ct_layer_lays(net, l, ct_mlp_image_units(net), &lays);
  write_tensor(&lays.w, x->w[l], r);
  write_tensor(&lays.b, x->b[l], r);
  write_tensor(&lays.vw, x->vw[l], r);
  write_tensor(&lays.vb, x->vb[l], r);
}

static void read_layer(const struct ct_mlp *net, uint32_t l, const struct regions *r,
                       struct ct_numbers *x) {
  struct ct_layer_lays lays;
  ct_layer_lays(net, l, ct_mlp_image_units(net), &lays);
  read_tensor(&lays.w, r, x->w[l]);
  read_tensor(&lays.b, r, x->b[l]);
  read_tensor(&lays.vw, r, x->vw[l]);
  read_tensor(&lays.vb, r, x->vb[l]);
}

static int no_memory(ct_model *m) {
  return ct_fail(m->dev, CT_ERR_MEMORY, "no memory for the model");
}

enum part { IMAGE = 1, STATE = 2 };

/* Numbers to the parts of the device's memory. */
static int upload(ct_model *m, const struct ct_numbers *x, unsigned parts) {
  struct regions r;
  int err = regions_alloc(&m->net, &r);
  if (err) no_memory(m);
  for (uint32_t l = 0; l < m->net.layers && !err; ++l)
    write_layer(&m->net, l, x, &r);
  if (!err && parts & IMAGE) err = ct_mem_write(m->dev, m->live->image, r.image, r.image_size);
  if (!err && parts & STATE) err = ct_mem_write(m->dev, m->live->state, r.state, r.state_size);
  regions_free(&r);
  return err;
}

static int download(ct_model *m, struct ct_numbers *x) {
  struct regions r;
  int err = regions_alloc(&m->net, &r);
  if (err) no_memory(m);
  if (!err) err = ct_mem_read(m->dev, m->live->image, r.image, r.image_size);
  if (!err) err = ct_mem_read(m->dev, m->live->state, r.state, r.state_size);
  for (uint32_t l = 0; l < m->net.layers && !err; ++l)
    read_layer(&m->net, l, &r, x);
  regions_free(&r);
  return err;
}

int ct_model_numbers(ct_model *m, const char *what, struct ct_numbers **numbers) {
  int err = ct_weights_still(m->live, false, what);
  if (err) return err;
  struct ct_numbers *x = ct_numbers_alloc(&m->net);
  if (!x) return no_memory(m);
  if (m->numbers)
    memcpy(x->all, m->numbers->all, x->count * sizeof *x->all);
  else
    err = download(m, x);
  if (err)
    ct_numbers_free(x);
  else
    *numbers = x;
  return err;
}

/* Until something is trained, masters and momentum are on the host, and the device has what answers
 * need. */
int ct_model_arm(ct_model *m) {
  if (!m->numbers) return CT_OK;
  int err = ct_mem_alloc(m->dev, (uint64_t)ct_mlp_state_units(&m->net) * CT_UNIT, &m->live->state);
  if (!err) err = upload(m, m->numbers, STATE);
  if (!err) {
    ct_numbers_free(m->numbers);
    m->numbers = NULL;
  } else if (m->live->state) {
    ct_heap_free(&m->dev->data, m->live->state);
    m->live->state = 0;
  }
  return err;
}

/* ---- Handles ------------------------------------------------------------------------------- */

int ct_check_model(const ct_model *m) {
  return ct_check_handle(m ? &m->handle : NULL, "model");
}

static int fill(ct_model *m) {
  int err = ct_weights_make_for(m->dev, &m->net, &m->live);
  if (err) return err;
  m->live->live = true;
  m->live->error = CT_OK;
  return upload(m, m->numbers, IMAGE);
}

int ct_model_alloc(ct_device *dev, const struct ct_mlp *net, struct ct_numbers *numbers,
                   ct_model **out) {
  ct_model *m = calloc(1, sizeof *m);
  *out = NULL;
  if (!m) {
    ct_numbers_free(numbers);
    return ct_fail(dev, CT_ERR_MEMORY, "no memory for the model");
  }
  ct_handle_open(&m->handle, dev);
  m->dev = dev;
  m->net = *net;
  m->numbers = numbers;
  const int err = fill(m);
  if (err)
    ct_model_free(m);
  else
    *out = m;
  return err;
}

/* Works that cannot be ended keep what they use: weights, batches, rows, answers. */
void ct_model_free(ct_model *m) {
  if (!m || !ct_handle_close(&m->handle, "model")) return;
  ct_follower_end(&m->follower);
  ct_programs_free(&m->copies);
  ct_plans_end(m);
  ct_network_free(m->apply);
  for (unsigned i = 0; i < CT_INFER_ROWS_MAX; ++i)
    ct_network_free(m->answers[i]);
  for (unsigned q = 0; q < CT_QUEUES && m->dev->queues; ++q) /* when jobs so far have ended */
    ct_give_back_after(m->dev, m->work[q], (enum ct_queue)q, CT_ERR_DEVICE);
  ct_weights_orphan(m->live);
  ct_numbers_free(m->numbers);
  m->numbers = NULL;
  ct_handle_bury(&m->handle);
}

int ct_model_create(ct_device *dev, const uint32_t *widths, size_t layers, uint64_t seed,
                    ct_model **model) {
  char text[256] = "";
  const struct ct_why why = {text, sizeof text};
  if (model) *model = NULL;
  int err = ct_check_device(dev);
  if (err) return err;
  CT_NEED(dev, widths);
  CT_NEED(dev, model);
  if (layers > CT_MLP_LAYERS)
    return ct_fail(dev, CT_ERR_ARG, "a model has 1..%d layers, not %zu", CT_MLP_LAYERS, layers);
  struct ct_mlp net = {.layers = (uint32_t)layers};
  for (size_t l = 0; l <= layers; ++l)
    net.width[l] = widths[l];
  err = ct_mlp_check(&net, &why);
  if (err) return ct_fail(dev, err, "%s", text);
  struct ct_numbers *x = ct_numbers_alloc(&net);
  if (!x) return ct_fail(dev, CT_ERR_MEMORY, "no memory for the model");
  ct_model_draw(&net, seed, x);
  err = ct_model_alloc(dev, &net, x, model);
  if (!err) (*model)->live->seed = seed;
  return err;
}

int ct_model_info(const ct_model *m, struct ct_model_info *info) {
  const int err = ct_check_model(m);
  if (err) return err;
  CT_NEED(m->dev, info);
  *info = (struct ct_model_info){.layers = m->net.layers,
                                 .widths = m->net.width,
                                 .seed = m->live->seed,
                                 .steps = m->live->steps,
                                 .epochs = m->live->epochs,
                                 .training = m->training,
                                 .prepared = m->plan != NULL};
  for (uint32_t l = 0; l < m->net.layers; ++l)
    info->macs_per_row += (uint64_t)m->net.width[l] * m->net.width[l + 1];
  return CT_OK;
}

void ct_model_set_epochs(ct_model *m, uint64_t epochs) {
  if (m && m->handle.live) m->live->epochs = epochs;
}

/* Where the parts of a layer are on the caller's side: to read from, or to write to; NULL: nowhere.
 */
struct parts {
  const float *from[4];
  float *to[4];
};

static void exchange(const struct ct_mlp *net, struct ct_numbers *x, size_t l,
                     const struct parts *p) {
  const size_t out = net->width[l + 1], weights = net->width[l] * out;
  float *const mine[4] = {x->w[l], x->b[l], x->vw[l], x->vb[l]};
  for (int i = 0; i < 4; ++i) {
    const size_t size = (i % 2 ? out : weights) * sizeof(float);
    if (p->from[i]) memcpy(mine[i], p->from[i], size);
    if (p->to[i]) memcpy(p->to[i], mine[i], size);
  }
}

static int check_numbers(ct_model *m, size_t layer, const struct parts *p) {
  static const char *const names[] = {"weights", "bias", "velocity of the weights",
                                      "velocity of the bias"};
  int err = CT_OK;
  size_t at;
  const size_t out = m->net.width[layer + 1], weights = m->net.width[layer] * out;
  for (int i = 0; i < 4 && !err; ++i)
    if (p->from[i] && !ct_no_nan(p->from[i], i % 2 ? out : weights, &at))
      err =
          ct_fail(m->dev, CT_ERR_ARG, "the %s of layer %zu has NaN among its values (element %zu)",
                  names[i], layer, at);
  return err;
}

static int access_layer(ct_model *m, size_t layer, const struct parts *p, bool changes) {
  int err = ct_check_model(m);
  if (err) return err;
  if (layer >= m->net.layers)
    return ct_fail(m->dev, CT_ERR_ARG, "the model has %u layers, there is no layer %zu",
                   m->net.layers, layer);
  if (changes) err = ct_weights_still(m->live, true, "set");
  if (changes && !err) err = check_numbers(m, layer, p);
  if (err) return err;
  struct ct_numbers *x = NULL;
  err = ct_model_numbers(m, "read", &x);
  if (err) return err;
  exchange(&m->net, x, layer, p);
  if (changes) err = upload(m, x, m->numbers ? IMAGE : IMAGE | STATE);
  if (changes && !err && m->numbers) exchange(&m->net, m->numbers, layer, p);
  ct_numbers_free(x);
  return err;
}

int ct_model_get(ct_model *m, size_t layer, float *w, float *b, float *vw, float *vb) {
  const struct parts p = {.to = {w, b, vw, vb}};
  return access_layer(m, layer, &p, false);
}

int ct_model_set(ct_model *m, size_t layer, const float *w, const float *b, const float *vw,
                 const float *vb) {
  const struct parts p = {.from = {w, b, vw, vb}};
  return access_layer(m, layer, &p, true);
}
