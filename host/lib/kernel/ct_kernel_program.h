/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What kernels of the vector unit have in common: a program with carriers, tensors of matrices, and
 * commands that move tiles.
 */
#ifndef CT_KERNEL_PROGRAM_H
#define CT_KERNEL_PROGRAM_H

#include <string.h>

#include "ct_kernel.h"
#include "ct_lower.h"

enum { CT_VK_MATS = 32, CT_VK_FIRST_REG = 2 };

/* A program that is being recorded. Registers 0 and 1 are carriers'. */
struct ct_vk {
  struct ct_lower *l;
  const char *name;
  const struct ct_room *room;
  const struct ct_why *why;
  uint32_t calm;
  struct {
    struct ct_seat seat;
    uint32_t units, piece, tensor;
    bool written;
  } mat[CT_VK_MATS];
  unsigned mats;
};

/* A way of keeping a matrix that is read: FP32, if there are several. false: it has none. */
bool ct_vk_keep(const struct ct_mat *m, enum ct_keep *keep);
/* An error unless it has so many rows and columns and (if it is read) is kept somehow, in arguments
 * that there are. what: in sentences. */
int ct_vk_check(const struct ct_vk *v, const struct ct_mat *m, const char *what, uint32_t rows,
                uint32_t cols);

int ct_vk_start(struct ct_vk *v, const char *name, const struct ct_room *room,
                const struct ct_why *why);
/* Pieces of rows (planes) and columns (groups). The same place is the same tensor. */
uint32_t ct_vk_tensor(struct ct_vk *v, const struct ct_mat *m, enum ct_keep keep, bool written);
/* Of what is kept as FP32: pieces are planes and rows. */
uint32_t ct_vk_rows_tensor(struct ct_vk *v, const struct ct_mat *m, bool written);
/* The same, but one plane behind the other: pieces are rows alone. */
uint32_t ct_vk_line_tensor(struct ct_vk *v, const struct ct_mat *m, bool written);
/* Index units of groups: planes, and units of sixteen tiles. */
uint32_t ct_vk_groups_tensor(struct ct_vk *v, const struct ct_mat *m, bool written);
/* Units one behind the other. */
uint32_t ct_vk_units_tensor(struct ct_vk *v, struct ct_seat seat, uint32_t units, bool written);
/* When all tensors are known; loads calm words. va_reg: a register that only VA uses. */
void ct_vk_carriers(struct ct_vk *v, unsigned va_reg);
/* Words of the scratchpad that are left. */
uint64_t ct_vk_left(const struct ct_vk *v);
int ct_vk_end(struct ct_vk *v, struct ct_codes *codes);

static inline uint32_t ct_vk_bits(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

/* Words of a tile in the scratchpad, of a row of it. */
static inline uint32_t ct_vk_words(enum ct_keep keep) {
  return keep == CT_KEEP_F32 ? CT_F32_TILE_UNITS : CT_TILE;
}
static inline uint32_t ct_vk_row_words(enum ct_keep keep) {
  return keep == CT_KEEP_F32 ? CT_F32_ROW_UNITS : 1;
}
static inline unsigned ct_vk_vl_mode(enum ct_keep keep) {
  return keep == CT_KEEP_F32 ? CT_VL_F32 : CT_VL_HBFP8;
}

/* So many tiles side by side; the first row of a tile. */
void ct_vk_ld(struct ct_vk *v, enum ct_keep keep, struct ct_ref dram, struct ct_ref spm,
              uint32_t tiles);
/* The same with so many rows of each: what is behind them, zeros, stays in device memory. */
void ct_vk_ld_part(struct ct_vk *v, enum ct_keep keep, struct ct_ref dram, struct ct_ref spm,
                   uint32_t tiles, uint32_t rows);
/* The tiles of so many index units. twin: a slot that is filled, too (struct ct_dma); or nothing.
 */
void ct_vk_ld_groups(struct ct_vk *v, struct ct_ref dram, struct ct_ref spm, uint32_t units,
                     bool free);
void ct_vk_ld_twin_groups(struct ct_vk *v, struct ct_ref dram, struct ct_ref spm,
                          struct ct_ref twin, uint32_t units, bool free);
void ct_vk_st_groups(struct ct_vk *v, struct ct_ref dram, struct ct_ref spm, uint32_t units,
                     unsigned bound_reg);
/* Rows of a tensor of rows. */
void ct_vk_ld_rows(struct ct_vk *v, uint32_t tensor, uint32_t plane, uint32_t row, uint32_t rows,
                   struct ct_ref spm);
void ct_vk_ld_row(struct ct_vk *v, enum ct_keep keep, struct ct_ref dram, struct ct_ref spm);
void ct_vk_st(struct ct_vk *v, enum ct_keep keep, struct ct_ref dram, struct ct_ref spm,
              uint32_t tiles);
/* All of them from one place. */
void ct_vk_st_same(struct ct_vk *v, enum ct_keep keep, struct ct_ref dram, struct ct_ref spm,
                   uint32_t tiles);
/* more: further tiles, of neighbouring registers, side by side. */
void ct_vk_vs_more(struct ct_vk *v, enum ct_keep keep, unsigned narrow, struct ct_ref reg,
                   struct ct_ref spm, uint32_t more);
static inline void ct_vk_vs(struct ct_vk *v, enum ct_keep keep, unsigned narrow, struct ct_ref reg,
                            struct ct_ref spm) {
  ct_vk_vs_more(v, keep, narrow, reg, spm, 0);
}

/* Where tiles of a matrix lie in a slot of the scratchpad, one behind the other, when it is kept in
 * one way. groups: of compressed tiles, which an input is instead; of an output they are stored,
 * too, if it is stored otherwise. 0: there are none. */
struct ct_vk_lane {
  enum ct_keep keep;
  uint32_t tensor, groups;
  uint32_t at; /* words of a tile that are in front, in a slot */
};
static inline bool ct_vk_lane_is(const struct ct_vk_lane *lane) {
  return lane->tensor || lane->groups;
}
/* The lane of what is made, if it is kept or packed so, behind so many words of a tile, to which
 * its own are added. Returns whether it is packed. */
bool ct_vk_lane_out(struct ct_vk *v, const struct ct_mat *m, enum ct_keep keep, uint32_t *words,
                    struct ct_vk_lane *lane);

/* Index units of groups of some planes, in the order in which they are loaded: one at first, so
 * that work begins early, then as many as come at once, for LD changes between groups and others
 * only when the one is through. The next ones are loaded while these are worked on: in their order
 * their commands would come behind all those of that. */
struct ct_vk_units {
  uint32_t first_plane, planes, first, units; /* units: of a plane, from `first` on */
  uint32_t at_once;
};
struct ct_vk_stretch {
  uint32_t plane, unit, units; /* units 0: in front of the first stretch */
  bool first, last;            /* of its plane */
};
/* false: there are no more. */
bool ct_vk_next_stretch(const struct ct_vk_units *of, struct ct_vk_stretch *stretch);

/* A matrix that a kernel makes, in each way of keeping that it has. */
struct ct_vk_made {
  const struct ct_mat *mat;
  uint32_t tensor[CT_KEEPS]; /* 0: it is not kept so */
};

/* Returns the words that a tile takes in all ways; none without rows. */
uint32_t ct_vk_made(struct ct_vk *v, const struct ct_mat *m, struct ct_vk_made *made);
/* A tile from a register to the scratchpad, in all ways one behind the other; from there to its
 * place. Both return the words. */
uint32_t ct_vk_vs_made(struct ct_vk *v, const struct ct_vk_made *made, struct ct_ref reg,
                       struct ct_ref spm);
uint32_t ct_vk_st_made(struct ct_vk *v, const struct ct_vk_made *made, uint32_t plane,
                       struct ct_ref spm, uint32_t group);

#endif
