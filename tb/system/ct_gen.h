/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random programs that are race-free by construction.
 *
 * A program is written command by command, as if they ran one after the other. For every word,
 * DRAM unit, tile register and ACC tile the generator knows who wrote it last and who has read it
 * since; a command that must come after one of another queue gets a semaphore from it, unless the
 * semaphores that are already there order the two. Blocks with semaphores of their own (products
 * fed step by step, stores fed step by step, loops) cover what plain pairs do not.
 *
 * What is where, for each context:
 *   SPM window  1024 words: square tiles, rows of HBFP8, FP32, anything
 *   DRAM        input (square records, row records, raw), read only; output
 */
#ifndef CT_GEN_H
#define CT_GEN_H

#include "ct_tb.h"
#include "host/lib/isa/ct_cmd.h"

enum {
  CT_GEN_SPM = 1024,      /* words of the SPM window */
  CT_GEN_IN_UNITS = 4096, /* DRAM areas, units of 16 bytes */
  CT_GEN_OUT_UNITS = 8192
};

struct ct_gen_prog {
  struct ct_cmd cmds[CT_PROG_MAX];
  unsigned count;
  uint32_t args[CT_NUM_ARGS];
  bool overlap; /* reads nothing that another job writes: may have CT_FLAG_OVERLAP */
};

/* The contents of the input area. */
void ct_gen_input(ct_rng *rng, uint8_t bytes[16 * CT_GEN_IN_UNITS]);

/* Gives SPM window, tile registers and ACC their first contents. in, out: the areas' first units.
 */
void ct_gen_setup(struct ct_gen_prog *prog, uint32_t in);

/* At most length commands of random work; about half of the programs may overlap. */
void ct_gen_random(ct_rng *rng, struct ct_gen_prog *prog, unsigned length, uint32_t in,
                   uint32_t out);

/* The same, with LD and ST with Comp among the rest: 32 groups at most of a program are left in the
 * arena. For context 1 of a device that has it, with pages outside the areas. */
void ct_gen_compressing(ct_rng *rng, struct ct_gen_prog *prog, unsigned length, uint32_t in,
                        uint32_t out);

/* Stores SPM window, tile registers and ACC to the output area (over what is there). */
void ct_gen_dump(struct ct_gen_prog *prog, uint32_t out);

#endif
