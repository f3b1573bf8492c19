/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gradients in device memory: what steps leave there, updates from them, the host's access.
 *
 * They are whole layer by layer (`whole` of the live weights). A step that leaves new ones makes
 * all of them whole, one that fails none; that is known when its event is. Works that need them are
 * submitted before: each is chained to the one before it in the queue, which must therefore be the
 * last that writes or reads them.
 */
#include <stdlib.h>
#include <string.h>

#include "ct_network.h"
#include "ct_num.h"

static uint64_t gradient_bytes(const struct ct_mlp *net) {
  return (uint64_t)ct_mlp_gradient_units(net) * CT_UNIT;
}

static uint32_t all_layers(const struct ct_mlp *net) {
  return (UINT32_C(1) << net->layers) - 1;
}

/* ---- What is there ------------------------------------------------------------------------- */

/* The programs are the model's and the memory its live weights', for works that outlive it. */
int ct_gradients_prepare(ct_model *m) {
  const struct ct_model_part part = {
      .dev = m->dev, .net = &m->net, .rows = 1, .trains = true, .job = CT_MODEL_UPDATE};
  if (m->live->gradients) return CT_OK;
  int err = ct_model_compile(&part, &m->apply);
  if (err) return err;
  err = ct_mem_alloc(m->dev, gradient_bytes(&m->net), &m->live->gradients);
  if (!err) return CT_OK;
  ct_network_free(m->apply);
  m->apply = NULL;
  return err;
}

static int check_prepared(const ct_model *m) {
  const int err = ct_check_model(m);
  if (err || m->live->gradients) return err;
  return ct_fail(m->dev, CT_ERR_ARG,
                 "the model has not been prepared for gradients: set ct_training.gradients for "
                 "ct_model_training()");
}

static int check_whole(const ct_model *m, uint32_t layers) {
  const uint32_t missing = layers & ~m->live->whole;
  if (!missing) return CT_OK;
  return ct_fail(m->dev, CT_ERR_ARG,
                 "layer %d has no gradients: no step has left any, or the last one failed; submit "
                 "one with CT_GRADIENTS_SET, or set them",
                 __builtin_ctz(missing));
}

int ct_gradients_follow(ct_model *m, bool *chained) {
  const ct_weights *live = m->live;
  *chained = false;
  if (live->keepers && live->behind != ct_queue_submitted(m->dev, CT_TRAINING)) {
    const int err = ct_poll(m->dev);
    if (err) return err;
    if (live->keepers)
      return ct_fail(m->dev, CT_ERR_BUSY,
                     "steps that leave gradients are in flight, with other work of the training "
                     "queue behind them: what needs the gradients can be submitted when the steps "
                     "have ended");
  }
  if (live->keepers == 0) return check_whole(m, all_layers(&m->net));
  *chained = true;
  return CT_OK;
}

void ct_gradients_take(ct_model *m) {
  ++m->live->keepers;
  m->live->behind = ct_queue_submitted(m->dev, CT_TRAINING);
}

void ct_gradients_kept(ct_weights *live, enum ct_gradients how, int error) {
  --live->keepers;
  if (how == CT_GRADIENTS_NONE) return; /* they were only read */
  if (error)
    live->whole = 0;
  else if (how == CT_GRADIENTS_SET)
    live->whole = all_layers(&live->net);
}

/* ---- Updates ------------------------------------------------------------------------------- */

static void applied(void *arg, const struct ct_event *event) {
  ct_weights *live = arg;
  live->steps += !event->error;
  ct_gradients_kept(live, CT_GRADIENTS_NONE, event->error);
  ct_weights_drop(live, ct_use_changes(CT_TRAINING));
}

/* Positive, and with all its bits: neither subnormal nor infinite. */
static bool is_normal(float x) {
  const uint32_t bits = ct_bits_of(x);
  return bits >= 0x00800000 && bits < CT_FP_INF;
}

static int check_apply(ct_model *m, const struct ct_apply *apply) {
  int err = ct_check_reserved(m->dev, "ct_apply", apply->reserved,
                              sizeof apply->reserved / sizeof *apply->reserved);
  if (!err && apply->rates) err = ct_model_rates(m, apply->rates);
  if (err) return err;
  if (ct_bits_of(apply->scale) != 0 && !is_normal(apply->scale))
    return ct_fail(m->dev, CT_ERR_ARG,
                   "the scale of an update is not a positive number that FP32 holds with 24 bits");
  ct_weights *live = NULL;
  return ct_weights_find(m, ct_use_changes(CT_TRAINING), &live);
}

static int submit(ct_model *m, const struct ct_apply *apply, struct ct_work *work, uint64_t *tag) {
  const ct_weights *live = m->live;
  const struct ct_regions at = {
      .lasting = live->image, .state = live->state, .arena = live->gradients};
  struct ct_job like = {.user = apply->user};
  like.args[CT_APPLY_SCALE - 1] = ct_bits_of(apply->scale) ? ct_bits_of(apply->scale) : CT_FP_ONE;
  ct_model_arguments(m->apply, &at, apply->rates ? apply->rates : &m->training.rates, &like);
  return ct_network_send(m->apply, CT_STAGES_ALL, 0, &like, work, tag);
}

int ct_model_apply_submit(ct_model *m, const struct ct_apply *apply, uint64_t *tag) {
  const struct ct_apply usual = {.scale = 0};
  int err = check_prepared(m);
  if (err) return err;
  if (!apply) apply = &usual;
  err = check_apply(m, apply);
  struct ct_work work = {.queue = CT_TRAINING,
                         .kind = CT_EVENT_APPLY,
                         .cycle = CT_NO_CYCLE,
                         .done = applied,
                         .arg = m->live};
  if (!err) err = ct_gradients_follow(m, &work.chained);
  if (err) return err;
  err = submit(m, apply, &work, tag);
  if (err) return err;
  ct_weights_take(m->live, ct_use_changes(CT_TRAINING));
  ct_gradients_take(m);
  return CT_OK;
}

int ct_model_apply(ct_model *m, const struct ct_apply *apply) {
  uint64_t tag = 0;
  const int err = ct_model_apply_submit(m, apply, &tag);
  return err ? err : ct_finish(m->dev, tag, NULL);
}

/* ---- To and from the host ------------------------------------------------------------------ */

/* What the device has completed meanwhile counts. */
static int check_still(ct_model *m) {
  int err = check_prepared(m);
  if (!err && m->live->keepers) err = ct_poll(m->dev);
  if (err || !m->live->keepers) return err;
  return ct_fail(m->dev, CT_ERR_BUSY,
                 "steps or updates in flight use the gradients: the host can when they have ended");
}

static int check_layer(ct_model *m, size_t layer) {
  const int err = check_still(m);
  if (err || layer < m->net.layers) return err;
  return ct_fail(m->dev, CT_ERR_ARG, "the model has %u layers, there is no layer %zu",
                 m->net.layers, layer);
}

/* A layer's gradients are tensors like all others, in what its updates read. */
struct part {
  ct_network *n;
  struct ct_regions at;
  struct ct_lay w, b;
};

static struct part part_of(const ct_model *m, size_t layer) {
  struct part p = {.n = m->apply, .at = {.arena = m->live->gradients}};
  ct_layer_gradients(&m->net, (uint32_t)layer, &p.w, &p.b);
  return p;
}

int ct_model_get_gradients(ct_model *m, size_t layer, float *w, float *b) {
  int err = check_layer(m, layer);
  if (!err) err = check_whole(m, UINT32_C(1) << layer);
  if (err) return err;
  const struct part p = part_of(m, layer);
  if (w) err = ct_network_get_tensor(p.n, &p.at, &p.w, w);
  if (!err && b) err = ct_network_get_tensor(p.n, &p.at, &p.b, b);
  return err;
}

int ct_model_set_gradients(ct_model *m, size_t layer, const float *w, const float *b) {
  int err = check_layer(m, layer);
  if (!err && !(w && b)) err = check_whole(m, UINT32_C(1) << layer);
  if (err) return err;
  const struct part p = part_of(m, layer);
  const uint32_t before = m->live->whole;
  m->live->whole &= ~(UINT32_C(1) << layer); /* if this fails, it is neither this nor what it was */
  err = ct_network_put_mlps(p.n, &p.at, (struct ct_put[]){{&p.w, w}, {&p.b, b}}, 2);
  if (err == CT_ERR_MEMORY) m->live->whole = before;
  if (!err) m->live->whole |= UINT32_C(1) << layer;
  return err;
}

/* ---- Norms --------------------------------------------------------------------------------- */

/* A sum of squares, exact, in units of 2^-298, the square of the smallest FP32 bit. The largest
 * square takes 554 bits of it, and as many as there can be 40 more. */
enum { SUM_WORDS = 10, SUM_POINT = 298, CHUNK = 1 << 14 };
struct sum {
  uint64_t word[SUM_WORDS];
  bool infinite;
};

static void add_square(struct sum *s, uint32_t bits) {
  const uint32_t exp = bits >> 23 & 255;
  const uint64_t mant = (bits & 0x7fffff) | 0x800000, square = mant * mant;
  if (exp == 255) s->infinite = true;
  if (exp == 0 || exp == 255) return;
  const unsigned at = 2 * (exp - 1), shift = at % 64;
  unsigned i = at / 64;
  const uint64_t high = shift ? square >> (64 - shift) : 0, low = square << shift;
  s->word[i] += low;
  uint64_t carry = high + (s->word[i] < low); /* high < 2^48 */
  for (++i; carry && i < SUM_WORDS; ++i) {
    s->word[i] += carry;
    carry = s->word[i] < carry;
  }
}

static float norm_of(const struct sum *s) {
  const uint32_t infinity = CT_FP_INF;
  float norm;
  if (!s->infinite) return ct_root(s->word, SUM_WORDS, SUM_POINT);
  memcpy(&norm, &infinity, sizeof norm);
  return norm;
}

/* What pads tiles is 0, as a step leaves it and the host writes it. */
int ct_model_gradient_norm(ct_model *m, float *norm) {
  int err = check_still(m);
  if (err) return err;
  CT_NEED(m->dev, norm);
  err = check_whole(m, all_layers(&m->net));
  if (err) return err;
  uint32_t *chunk = malloc(CHUNK * sizeof *chunk);
  if (!chunk) return ct_fail(m->dev, CT_ERR_MEMORY, "no memory for gradients");
  struct sum sum = {.infinite = false};
  const uint64_t count = (uint64_t)ct_mlp_scratch_at(&m->net) * CT_UNIT / sizeof *chunk;
  for (uint64_t at = 0; at < count && !err; at += CHUNK) {
    const size_t n = count - at < CHUNK ? (size_t)(count - at) : CHUNK;
    err = ct_mem_read(m->dev, m->live->gradients + at * sizeof *chunk, chunk, n * sizeof *chunk);
    for (size_t i = 0; i < n && !err; ++i)
      add_square(&sum, chunk[i]);
  }
  free(chunk);
  if (!err) *norm = norm_of(&sum);
  return err;
}

int ct_clip_scale(float norm, float scale, float most, float *clipped) {
  CT_NEED(NULL, clipped);
  if (!is_normal(scale))
    return ct_fail(NULL, CT_ERR_ARG, "the scale is not a positive, finite number");
  if (!is_normal(most))
    return ct_fail(NULL, CT_ERR_ARG, "the largest norm is not a positive, finite number");
  if (ct_bits_of(norm) != 0 && !is_normal(norm))
    return ct_fail(NULL, CT_ERR_ARG,
                   "the norm is not a finite number: some gradient is not, or they are too large");
  const uint32_t scaled = ct_fp_mul(ct_bits_of(norm), ct_bits_of(scale));
  const float to = ct_fp_gt(scaled, ct_bits_of(most)) ? ct_quotient(most, norm) : scale;
  if (ct_bits_of(to) == 0)
    return ct_fail(NULL, CT_ERR_ARG, "the largest norm by the norm is too small for FP32");
  *clipped = to;
  return CT_OK;
}
