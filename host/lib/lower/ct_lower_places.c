/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors and rings of the usual layouts, one behind the other. See ct_lower.h. */
#include "ct_lower_impl.h"

uint32_t ct_spm_take(struct ct_lower *l, uint64_t words) {
  const uint32_t at = (uint32_t)l->spm;
  l->spm += words;
  return at;
}

uint64_t ct_spm_taken(const struct ct_lower *l) {
  return l->spm;
}

static uint64_t words_of(const struct ct_grid *grid) {
  return (uint64_t)grid->rows * grid->cols * grid->piece;
}

static uint32_t tensor(struct ct_lower *l, struct ct_tensor t, const struct ct_grid *grid) {
  t.size = (uint32_t)words_of(grid);
  t.row = grid->by_column ? grid->piece : grid->cols * grid->piece;
  t.col = grid->by_column ? grid->rows * grid->piece : grid->piece;
  return ct_tensor(l, &t);
}

uint32_t ct_spm_tensor(struct ct_lower *l, const char *name, struct ct_grid grid) {
  const uint32_t at = ct_spm_take(l, words_of(&grid));
  return tensor(l, (struct ct_tensor){.name = name, .place = CT_IN_SPM, .at = at}, &grid);
}

uint32_t ct_dram_tensor(struct ct_lower *l, const char *name, unsigned reg, uint64_t at,
                        struct ct_grid grid) {
  return tensor(
      l, (struct ct_tensor){.name = name, .place = CT_IN_DRAM, .reg = reg, .at = (uint32_t)at},
      &grid);
}

uint32_t ct_reg_tensor(struct ct_lower *l, const char *name, uint32_t at, uint32_t tiles) {
  const struct ct_grid grid = {.rows = tiles, .cols = 1, .piece = 1};
  return tensor(l, (struct ct_tensor){.name = name, .place = CT_IN_REG, .at = at}, &grid);
}

uint32_t ct_spm_ring(struct ct_lower *l, const char *name, uint32_t words, uint32_t slots) {
  const uint32_t at = ct_spm_take(l, (uint64_t)words * slots);
  return ct_ring(l, &(struct ct_ring){
                        .name = name, .place = CT_IN_SPM, .at = at, .size = words, .slots = slots});
}

uint32_t ct_reg_ring(struct ct_lower *l, const char *name, uint32_t at, uint32_t slots) {
  return ct_ring(
      l, &(struct ct_ring){.name = name, .place = CT_IN_REG, .at = at, .size = 1, .slots = slots});
}

uint32_t ct_acc_ring(struct ct_lower *l, const char *name, uint32_t at, uint32_t slots) {
  return ct_ring(
      l, &(struct ct_ring){.name = name, .place = CT_IN_ACC, .at = at, .size = 1, .slots = slots});
}

uint32_t ct_ring_twin(struct ct_lower *l, uint32_t ring, const char *name) {
  const struct ct_space of = l->space[ring];
  const uint32_t twin = ct_ring(
      l, &(struct ct_ring){
             .name = name, .place = of.place, .at = of.at, .size = of.size, .slots = of.slots});
  l->space[twin].twin = ring;
  l->space[ring].twin = twin;
  return twin;
}

void ct_ring_steps(struct ct_lower *l, uint32_t ring, uint32_t steps) {
  struct ct_space *r = &l->space[ring];
  r->steps = steps;
  if ((uint64_t)(steps ? steps : 1) * r->slots > CT_MOST_TOKENS)
    ct_lower_fail(l, CT_ERR_NO_SPACE, "ring %s has %u slots of %u steps, a semaphore counts to %d",
                  r->name, r->slots, steps, CT_MOST_TOKENS);
}

void ct_ring_freed_by(struct ct_lower *l, uint32_t ring, enum ct_q q) {
  l->space[ring].other_frees = true;
  l->space[ring].freed_by = q;
}
