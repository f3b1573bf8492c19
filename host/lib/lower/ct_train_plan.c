/* SPDX-License-Identifier: Apache-2.0 */
/* A training step: what lies where. See ct_train.h. */
#include "coltrain/coltrain.h"
#include "ct_train.h"

/* Tile registers: 0..3 are loaded, 4..7 hold results, 8..11 biases, later sums and gradients. */
enum { R_LOAD = 0, R_OUT = 4, R_TEMP = 8, R_TEMPS = 5, R_SUM = 13, R_VL = 14, R_VS = 15 };
enum { ACC_BLOCK = 0, ACC_CARRIER = 7, ACC_UNIT = 8, ACC_REST = 12, SLOTS = 2 };

/* Columns of tiles that a block has, of `tiles` in all. */
uint32_t ct_train_columns(const struct train *t, uint32_t tiles) {
  uint32_t bn = t->blocks == 1 ? CT_TRAIN_BLOCK / t->bm : 1;
  while (tiles % bn)
    bn /= 2;
  return bn;
}

/* The largest panel of all phases with so many k steps at most; *steps: the most there are. */
static uint32_t panel_words(const struct train *t, uint32_t chunk, uint32_t *steps) {
  uint32_t most = 0;
  *steps = 0;
  for (uint32_t l = 0; l < t->net->layers; ++l) {
    const uint32_t kt = ct_mlp_in(t->net, l), nt = ct_mlp_out(t->net, l);
    const uint32_t forward = ct_min_u32(kt, chunk) * ct_train_columns(t, nt);
    const uint32_t backward = l ? ct_min_u32(nt, chunk) * ct_train_columns(t, kt) : 0;
    if (forward > most) most = forward;
    if (backward > most) most = backward;
    if (kt > *steps) *steps = kt;
    if (l && nt > *steps) *steps = nt;
  }
  return most * CT_TILE;
}

static uint64_t bias_words(const struct train *t) {
  return (uint64_t)ct_mlp_bias_tile(t->net, t->net->layers) * CT_F32_ROW_UNITS;
}

/* Words of all that does not depend on chunk and unit. */
static uint64_t fixed_words(const struct train *t) {
  uint64_t words = (uint64_t)t->ct * t->mt * (CT_F32_TILE_UNITS + CT_TILE) + 3 * bias_words(t);
  for (uint32_t l = 0; l < t->net->layers; ++l)
    words += (uint64_t)(ct_mlp_in(t->net, l) + ct_mlp_out(t->net, l)) * t->mt * CT_TILE;
  return words + 2 * (uint64_t)CT_F32_ROW_UNITS + 1;
}

static uint32_t most_steps(const struct train *t) {
  uint32_t steps;
  panel_words(t, 1, &steps);
  return steps;
}

int ct_train_plan(struct train *t, uint32_t spm_words, const struct ct_why *why) {
  uint32_t steps;
  t->mt = ct_tiles(t->batch);
  t->bm = CT_TRAIN_BLOCK;
  while (t->mt % t->bm)
    --t->bm;
  t->blocks = t->mt / t->bm;
  t->classes = t->net->width[t->net->layers];
  t->ct = ct_tiles(t->classes);
  t->unit = CT_TRAIN_UNIT;
  for (t->chunk = ct_min_u32(most_steps(t), CT_TRAIN_CHUNK); t->chunk > 0;) {
    t->panel_words = panel_words(t, t->chunk, &steps);
    const uint64_t words = fixed_words(t) + SLOTS * (uint64_t)t->panel_words +
                           (uint64_t)SLOTS * t->unit * (CT_STATE_UNITS + CT_OUT_UNITS);
    if (words <= spm_words) return CT_OK;
    if (t->unit > 1)
      t->unit /= 2;
    else
      t->chunk /= 2;
  }
  return ct_why(
      why, CT_ERR_NO_SPACE,
      "the activations of a step of %u rows need %llu words of scratchpad, the window has "
      "%u: try a smaller batch",
      t->batch, (unsigned long long)fixed_words(t), spm_words);
}

/* ---- Spaces -------------------------------------------------------------------------------- */

static uint32_t tensor(struct train *t, const char *name, uint32_t *at, uint32_t size, uint32_t row,
                       uint32_t col) {
  const struct ct_tensor tensor = {
      .name = name, .place = CT_IN_SPM, .at = *at, .size = size, .row = row, .col = col};
  *at += size;
  return ct_tensor(t->l, &tensor);
}

static uint32_t memory(struct train *t, const char *name, unsigned reg, uint32_t at, uint32_t size,
                       uint32_t row, uint32_t col) {
  return ct_tensor(t->l, &(struct ct_tensor){.name = name,
                                             .place = CT_IN_DRAM,
                                             .reg = reg,
                                             .at = at,
                                             .size = size,
                                             .row = row,
                                             .col = col});
}

static uint32_t ring(struct train *t, const char *name, enum ct_place place, uint32_t at,
                     uint32_t slots) {
  return ct_ring(
      t->l, &(struct ct_ring){.name = name, .place = place, .at = at, .size = 1, .slots = slots});
}

static void declare_memory(struct train *t) {
  const struct ct_mlp *n = t->net;
  const uint32_t biases = (uint32_t)bias_words(t), in = ct_mlp_in(n, 0);
  t->in_x = memory(t, "inputs", CT_TRAIN_X, 0, in * t->mt * CT_RECORD_UNITS, in * CT_RECORD_UNITS,
                   CT_RECORD_UNITS);
  t->in_y = memory(t, "targets", CT_TRAIN_Y, 0, t->ct * t->mt * CT_RECORD_UNITS,
                   t->ct * CT_RECORD_UNITS, CT_RECORD_UNITS);
  for (uint32_t l = 0; l < n->layers; ++l) {
    const uint32_t kt = ct_mlp_in(n, l), tiles = kt * ct_mlp_out(n, l), at = ct_mlp_tile(n, l);
    t->weights[l] = memory(t, "weights", CT_TRAIN_IMAGE, at * CT_RECORD_UNITS,
                           tiles * CT_RECORD_UNITS, kt * CT_RECORD_UNITS, CT_RECORD_UNITS);
    if (t->end != CT_TRAIN_UPDATES)
      t->gradients[l] =
          memory(t, "gradients", CT_TRAIN_STATE, at * CT_F32_TILE_UNITS, tiles * CT_F32_TILE_UNITS,
                 kt * CT_F32_TILE_UNITS, CT_F32_TILE_UNITS);
    else
      t->state[l] = memory(t, "state", CT_TRAIN_STATE, at * CT_STATE_UNITS, tiles * CT_STATE_UNITS,
                           kt * CT_STATE_UNITS, CT_STATE_UNITS);
  }
  t->image_bias = memory(t, "biases", CT_TRAIN_IMAGE, ct_mlp_bias_at(n), biases, 1, 1);
  if (t->end != CT_TRAIN_UPDATES)
    t->gradient_bias =
        memory(t, "gradients of biases", CT_TRAIN_STATE, ct_mlp_bias_gradient_at(n), biases, 1, 1);
  else
    t->state_bias =
        memory(t, "momentum of biases", CT_TRAIN_STATE, ct_mlp_bias_momentum_at(n), biases, 1, 1);
  t->out_loss = memory(t, "the loss", CT_TRAIN_LOSS, 0, 1, 1, 1);
}

static void declare_registers(struct train *t) {
  const uint32_t round = t->bm == 3 ? 3 : CT_TRAIN_BLOCK;
  t->temp = ct_tensor(
      t->l,
      &(struct ct_tensor){
          .name = "temporaries", .place = CT_IN_REG, .at = R_TEMP, .size = R_TEMPS, .row = 1});
  t->sum_loss = ct_tensor(
      t->l, &(struct ct_tensor){
                .name = "sum of losses", .place = CT_IN_REG, .at = R_SUM, .size = 1, .row = 1});
  t->load = ring(t, "loads", CT_IN_REG, R_LOAD, 4);
  t->out = ring(t, "results", CT_IN_REG, R_OUT, 4);
  t->block_load = round == 4 ? t->load : ring(t, "signs", CT_IN_REG, R_LOAD, round);
  t->block_out = round == 4 ? t->out : ring(t, "results of blocks", CT_IN_REG, R_OUT, round);
  if (t->end != CT_TRAIN_UPDATES) {
    t->keep_load = ring(t, "gradients before", CT_IN_REG, R_LOAD, SLOTS);
    t->keep_out = ring(t, "gradients", CT_IN_REG, R_OUT, SLOTS);
  }
  t->logit = ring(t, "gradients of logits", CT_IN_REG, R_OUT, 1);
  t->sum = ring(t, "sums", CT_IN_REG, R_SUM, 1);
  for (uint32_t n = 1; n <= round; ++n)
    if (round % n == 0) t->acc[n] = ring(t, "products", CT_IN_ACC, ACC_BLOCK, round);
  t->acc_unit = ring(t, "gradients", CT_IN_ACC, ACC_UNIT, t->unit);
  for (uint32_t r = 1; r < t->unit; ++r)
    t->acc_rest[r] = ring(t, "other gradients", CT_IN_ACC, ACC_REST, r == 3 ? 3 : 4);
  for (uint32_t n = 1; n <= CT_TRAIN_BLOCK; n *= 2)
    t->biases[n] = ct_ring(t->l, &(struct ct_ring){.name = "biases",
                                                   .place = CT_IN_REG,
                                                   .at = R_TEMP,
                                                   .size = 1,
                                                   .slots = n,
                                                   .other_frees = true,
                                                   .freed_by = CT_Q_VS});
}

void ct_train_declare(struct train *t) {
  const uint32_t biases = (uint32_t)bias_words(t), square = t->mt * CT_TILE;
  uint32_t at = 0;
  declare_memory(t);
  declare_registers(t);
  for (uint32_t l = 0; l < t->net->layers; ++l) {
    t->x[l] = tensor(t, "X", &at, ct_mlp_in(t->net, l) * square, CT_TILE, square);
    t->dz[l] = tensor(t, "dZ", &at, ct_mlp_out(t->net, l) * square, CT_TILE, square);
  }
  t->z = tensor(t, "Z", &at, t->ct * t->mt * CT_F32_TILE_UNITS, CT_F32_TILE_UNITS,
                t->mt * CT_F32_TILE_UNITS);
  t->y = tensor(t, "Y", &at, t->ct * square, t->ct * CT_TILE, CT_TILE);
  t->bias = tensor(t, "b", &at, biases, 1, 1);
  t->vb = tensor(t, "momentum of b", &at, biases, 1, 1);
  t->db = tensor(t, "gradient of b", &at, biases, 1, 1);
  t->loss = tensor(t, "loss", &at, CT_F32_ROW_UNITS, 1, 1);
  ct_lower_carriers(
      t->l, &(struct ct_carriers){
                .va_reg = R_TEMP + R_TEMPS - 1,
                .vs_reg = R_VS,
                .vl_reg = R_VL,
                .acc = ACC_CARRIER,
                .spm = at,
                .calm = t->x[0],
                .load = t->in_x,
                .store_spm = t->vb,
                .store_dram = t->end == CT_TRAIN_UPDATES ? t->state_bias : t->gradient_bias});
  at += CT_F32_ROW_UNITS + 1;
  t->panel = ct_ring(t->l, &(struct ct_ring){.name = "panels",
                                             .place = CT_IN_SPM,
                                             .at = at,
                                             .size = t->panel_words,
                                             .slots = SLOTS,
                                             .steps = t->chunk,
                                             .other_frees = t->chunk >= most_steps(t),
                                             .freed_by = CT_Q_VS});
  at += SLOTS * t->panel_words;
  t->in_slot = ct_ring(t->l, &(struct ct_ring){.name = "state in",
                                               .place = CT_IN_SPM,
                                               .at = at,
                                               .size = t->unit * CT_STATE_UNITS,
                                               .slots = SLOTS,
                                               .steps = t->unit});
  at += SLOTS * t->unit * CT_STATE_UNITS;
  t->out_slot = ct_ring(t->l, &(struct ct_ring){.name = "state out",
                                                .place = CT_IN_SPM,
                                                .at = at,
                                                .size = t->unit * CT_OUT_UNITS,
                                                .slots = SLOTS});
}
