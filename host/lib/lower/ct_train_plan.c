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

static uint32_t most_steps(const struct train *t) {
  uint32_t steps;
  panel_words(t, 1, &steps);
  return steps;
}

/* ---- Spaces -------------------------------------------------------------------------------- */

static uint32_t bias_words(const struct train *t) {
  return ct_mlp_bias_tile(t->net, t->net->layers) * CT_F32_ROW_UNITS;
}

void ct_train_declare_model(struct train *t, unsigned gradients, struct ct_grid biases) {
  struct ct_lower *l = t->l;
  const struct ct_mlp *n = t->net;
  const bool updates = t->end == CT_TRAIN_UPDATES || t->end == CT_TRAIN_APPLIES;
  const bool keeps = t->end != CT_TRAIN_UPDATES;
  for (uint32_t i = 0; i < n->layers; ++i) {
    const uint32_t nt = ct_mlp_out(n, i), kt = ct_mlp_in(n, i);
    const uint64_t tile = ct_mlp_tile(n, i);
    t->weights[i] = ct_dram_tensor(l, "weights", CT_TRAIN_IMAGE, tile * CT_RECORD_UNITS,
                                   ct_grid(nt, kt, CT_RECORD_UNITS));
    if (updates)
      t->state[i] = ct_dram_tensor(l, "state", CT_TRAIN_STATE, tile * CT_STATE_UNITS,
                                   ct_grid(nt, kt, CT_STATE_UNITS));
    if (keeps)
      t->gradients[i] = ct_dram_tensor(l, "gradients", gradients, tile * CT_F32_TILE_UNITS,
                                       ct_grid(nt, kt, CT_F32_TILE_UNITS));
  }
  t->image_bias = ct_dram_tensor(l, "biases", CT_TRAIN_IMAGE, ct_mlp_bias_at(n), biases);
  if (updates)
    t->state_bias =
        ct_dram_tensor(l, "momentum of biases", CT_TRAIN_STATE, ct_mlp_bias_momentum_at(n), biases);
  if (keeps)
    t->gradient_bias =
        ct_dram_tensor(l, "gradients of biases", gradients, ct_mlp_bias_gradient_at(n), biases);
}

static void declare_memory(struct train *t) {
  struct ct_lower *l = t->l;
  const struct ct_mlp *n = t->net;
  t->in_x =
      ct_dram_tensor(l, "inputs", CT_TRAIN_X, 0, ct_grid(t->mt, ct_mlp_in(n, 0), CT_RECORD_UNITS));
  t->in_y = ct_dram_tensor(l, "targets", CT_TRAIN_Y, 0, ct_grid(t->mt, t->ct, CT_RECORD_UNITS));
  ct_train_declare_model(t, CT_TRAIN_STATE, ct_grid(bias_words(t), 1, 1));
  t->out_loss = ct_dram_tensor(l, "the loss", CT_TRAIN_LOSS, 0, ct_grid(1, 1, 1));
  if (t->logits)
    t->out_z =
        ct_dram_tensor(l, "logits", CT_TRAIN_LOGITS, 0, ct_grid(t->mt, t->ct, CT_F32_TILE_UNITS));
}

static void declare_registers(struct train *t) {
  struct ct_lower *l = t->l;
  const uint32_t round = t->bm == 3 ? 3 : CT_TRAIN_BLOCK;
  t->temp = ct_reg_tensor(l, "temporaries", R_TEMP, R_TEMPS);
  t->sum_loss = ct_reg_tensor(l, "sum of losses", R_SUM, 1);
  t->load = ct_reg_ring(l, "loads", R_LOAD, 4);
  t->out = ct_reg_ring(l, "results", R_OUT, 4);
  t->block_load = round == 4 ? t->load : ct_reg_ring(l, "signs", R_LOAD, round);
  t->block_out = round == 4 ? t->out : ct_reg_ring(l, "results of blocks", R_OUT, round);
  if (t->end != CT_TRAIN_UPDATES) {
    t->keep_load = ct_reg_ring(l, "gradients before", R_LOAD, SLOTS);
    t->keep_out = ct_reg_ring(l, "gradients", R_OUT, SLOTS);
  }
  t->logit = ct_reg_ring(l, "gradients of logits", R_OUT, 1);
  t->sum = ct_reg_ring(l, "sums", R_SUM, 1);
  for (uint32_t n = 1; n <= round; ++n)
    if (round % n == 0) t->acc[n] = ct_acc_ring(l, "products", ACC_BLOCK, round);
  t->acc_unit = ct_acc_ring(l, "gradients", ACC_UNIT, t->unit);
  for (uint32_t r = 1; r < t->unit; ++r)
    t->acc_rest[r] = ct_acc_ring(l, "other gradients", ACC_REST, r == 3 ? 3 : 4);
  for (uint32_t n = 1; n <= CT_TRAIN_BLOCK; n *= 2) {
    t->biases[n] = ct_reg_ring(l, "biases", R_TEMP, n);
    ct_ring_freed_by(l, t->biases[n], CT_Q_VS);
  }
}

static void declare_words(struct train *t) {
  struct ct_lower *l = t->l;
  const struct ct_grid biases = ct_grid(bias_words(t), 1, 1);
  for (uint32_t i = 0; i < t->net->layers; ++i) {
    t->x[i] = ct_spm_tensor(l, "X", ct_columns(t->mt, ct_mlp_in(t->net, i), CT_TILE));
    t->dz[i] = ct_spm_tensor(l, "dZ", ct_columns(t->mt, ct_mlp_out(t->net, i), CT_TILE));
  }
  t->z = ct_spm_tensor(l, "Z", ct_columns(t->mt, t->ct, CT_F32_TILE_UNITS));
  t->y = ct_spm_tensor(l, "Y", ct_grid(t->mt, t->ct, CT_TILE));
  t->bias = ct_spm_tensor(l, "b", biases);
  t->vb = ct_spm_tensor(l, "momentum of b", biases);
  t->db = ct_spm_tensor(l, "gradient of b", biases);
  t->loss = ct_spm_tensor(l, "loss", ct_grid(CT_F32_ROW_UNITS, 1, 1));
  ct_lower_carriers(
      l, &(struct ct_carriers){
             .va_reg = R_TEMP + R_TEMPS - 1,
             .vs_reg = R_VS,
             .vl_reg = R_VL,
             .acc = ACC_CARRIER,
             .spm = ct_spm_take(l, CT_CARRIER_WORDS),
             .calm = t->x[0],
             .load = t->in_x,
             .store_spm = t->vb,
             .store_dram = t->end == CT_TRAIN_UPDATES ? t->state_bias : t->gradient_bias});
  uint32_t steps;
  t->panel = ct_spm_ring(l, "panels", panel_words(t, t->chunk, &steps), SLOTS);
  ct_ring_steps(l, t->panel, t->chunk);
  if (t->chunk >= steps) ct_ring_freed_by(l, t->panel, CT_Q_VS);
  t->in_slot = ct_spm_ring(l, "state in", t->unit * CT_STATE_UNITS, SLOTS);
  ct_ring_steps(l, t->in_slot, t->unit);
  t->out_slot = ct_spm_ring(l, "state out", t->unit * CT_OUT_UNITS, SLOTS);
}

/* ---- Sizes --------------------------------------------------------------------------------- */

static void choose_blocks(struct train *t) {
  t->mt = ct_tiles(t->batch);
  t->bm = CT_TRAIN_BLOCK;
  while (t->mt % t->bm)
    --t->bm;
  t->blocks = t->mt / t->bm;
  t->classes = t->net->width[t->net->layers];
  t->ct = ct_tiles(t->classes);
  t->unit = CT_TRAIN_UNIT;
  t->chunk = ct_min_u32(most_steps(t), CT_TRAIN_CHUNK);
}

/* Smaller units, then shorter panels, until all has room. */
int ct_train_start(struct train *t, uint32_t spm_words, const struct ct_why *why) {
  uint64_t words = 0;
  for (choose_blocks(t); t->chunk > 0; *(t->unit > 1 ? &t->unit : &t->chunk) /= 2) {
    t->l = ct_lower_start(t->logits ? CT_TRAIN_LOGITS : CT_TRAIN_ARGS, false);
    if (!t->l) return ct_why(why, CT_ERR_MEMORY, "out of memory");
    declare_memory(t);
    declare_registers(t);
    declare_words(t);
    words = ct_spm_taken(t->l);
    if (words <= spm_words) return CT_OK;
    ct_lower_drop(t->l);
  }
  return ct_why(
      why, CT_ERR_NO_SPACE,
      "a step of %u rows needs %llu words of scratchpad, the window has %u: try a smaller "
      "batch",
      t->batch, (unsigned long long)words, spm_words);
}
