/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs for ct_vpu: commands by a short notation, and random race-free programs.
 */
#ifndef VPU_GEN_H
#define VPU_GEN_H

#include "vpu_bench.h"

struct ct_cmd gen_vl(unsigned td, unsigned mode, unsigned spm, unsigned stride, unsigned rows);
struct ct_cmd gen_vs(unsigned ts, unsigned mode, unsigned spm, unsigned stride, unsigned rows);
/* A VA of 16 x 16 without operands b and c: y = a. */
struct ct_cmd gen_va(unsigned td, unsigned ta);
/* Adds an operand from tile tq; source as in BSrc. */
void gen_b(struct ct_cmd *cmd, unsigned source, unsigned tq);
void gen_c(struct ct_cmd *cmd, unsigned source, unsigned tq, unsigned fn);

/*
 * Orders commands of different sides by semaphores. A side that another one has to wait for signals
 * the pair's semaphore with its latest command, and the waiting command takes that one; so the n-th
 * wait meets the n-th signal.
 */
typedef struct {
  vpu_bench *b;
  unsigned c;
  uint8_t name[kSides][kSides]; /* semaphore of (from, to) */
  int last[kSides];             /* index of the latest command of a side, -1: none */
  int ordered[kSides][kSides];  /* latest command of (from) that a command of (to) waits for */
  int writer[kTiles];           /* latest command that wrote a tile */
  int reader[kTiles][kSides];   /* latest command of a side that read it */
  uint8_t side[kMaxProgram];
  uint64_t reads[kMaxProgram][kWindow / 64], writes[kMaxProgram][kWindow / 64]; /* SPM words */
} gen_order;

gen_order *gen_order_new(vpu_bench *b, unsigned c);

/* Adds what the command has to wait for, emits it, and returns its index. */
unsigned gen_emit(gen_order *o, const struct ct_cmd *cmd);

/* Random contents of the SPM: words 0..255 FP32, 256..511 HBFP8, the rest +0. */
void gen_memory(vpu_bench *b, unsigned c, ct_rng *rng);
/* All tile registers of the context from the SPM; all of them to the SPM as FP32. */
void gen_load_all(gen_order *o, ct_rng *rng);
void gen_store_all(gen_order *o);
/* A random command. rows: its number of rows at most. */
struct ct_cmd gen_random(ct_rng *rng, unsigned rows);
uint32_t gen_float(ct_rng *rng);

#endif
