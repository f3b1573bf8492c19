/* SPDX-License-Identifier: Apache-2.0 */
/* LD and ST with Comp on a device, the emulator or a core: what comes back, which pages are in use,
 * how jobs end. */
#ifndef CT_COMP_H
#define CT_COMP_H

#include "ct_rig.h"
#include "unit/act_gen.h"

/* In the output area of context 1: tiles that come back, index, pages. */
enum {
  CT_COMP_TILES = 16,
  CT_COMP_TILE_UNITS = 17,
  CT_COMP_BACK = CT_RIG_OUT,
  CT_COMP_INDEX = CT_RIG_OUT + 0x4000,
  CT_COMP_ARENA = CT_RIG_OUT + 0x5000,
  CT_COMP_ARENA_PAGES = 16,
  CT_COMP_WORDS = 16 * CT_COMP_TILES,
  CT_COMP_SECOND = 512, /* where they are loaded to */
  CT_COMP_BOUND_REG = 9
};

struct ct_comp {
  struct ct_rig rig;
  struct ct_gen_prog prog;
  struct act_group group;
  struct ct_act_block block[CT_COMP_WORDS];
  uint8_t in[CT_COMP_TILES * CT_COMP_TILE_UNITS * 16], out[CT_COMP_TILES * CT_COMP_TILE_UNITS * 16];
  uint8_t memory[CT_RIG_MIB << 20], after[CT_RIG_MIB << 20];
};

/* A device for the cases: their state. rounds: of the random ones, 16 at least. */
struct ct_comp_device {
  const char *name;
  const struct ct_transport_ops *ops;
  const char *(*error)(void *self);
  const char *args;
  unsigned rounds;
};

struct ct_comp *ct_comp_open(const struct ct_comp_device *dev, const char *args);
void ct_comp_close(struct ct_comp *b);

/* A command behind those of the program. */
struct ct_cmd *ct_comp_add(struct ct_comp *b, unsigned code);
/* Records of all tiles, one behind the other. */
struct ct_cmd *ct_comp_records(struct ct_comp *b, unsigned code, uint32_t at, uint32_t spm);
/* How many tiles fill index units, in groups of so many tiles, so many in a unit. */
unsigned ct_comp_whole(unsigned tiles, unsigned groups);
/* These, in groups of so many tiles, four or fewer in an index unit. */
struct ct_cmd *ct_comp_groups(struct ct_comp *b, unsigned code, uint32_t spm, unsigned tiles,
                              unsigned groups, unsigned first);
/* One begins when the other is complete. */
void ct_comp_order(struct ct_cmd *before, struct ct_cmd *after, unsigned sem);
/* Runs the program, and empties it. */
struct ct_rig_cpl ct_comp_run(struct ct_comp *b);
/* Tiles of a random kind in memory and, as they are to come back, in block[]. */
void ct_comp_draw(struct ct_comp *b, ct_rng *rng, uint8_t bound);

/* The cases. */
void ct_comp_groups_come_back(void **state);
void ct_comp_jobs_end_in_errors(void **state);
void ct_comp_arenas_are_full(void **state);
void ct_comp_what_is_illegal(void **state);
void ct_comp_anything_is_loaded(void **state);

#endif
