/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lowering: kernels say what to do with which data; this layer makes the loops, the waits and
 * signals and the jobs.
 *
 * A kernel declares spaces: TENSORS, which live long and are cut into pieces by row and column, and
 * RINGS of equal slots, whose users take turns. Then it records commands in the order in which one
 * processor would run them. Commands name what they read and write by refs.
 *
 *   struct ct_ref w = ct_next(l, panel);                        the next slot of a ring ...
 *   ct_ld(l, &(struct ct_dma){.dram = ct_tiles_of(l, image, n, 2, 0, kt), .spm = w, ...});
 *   ct_mm(l, &(struct ct_mm){.a = ..., .b = w, .acc = ct_next_n(l, acc, 2), ...});
 *                                                               ... is one generation of it
 *
 * A generation begins with ct_next() and ends with the last command that names it. No more than the
 * ring has slots may be alive. All generations of a ring begin with the same queue's command.
 *
 * Loops. ct_repeat() calls a body for the passes 0, 1, 2, ..: as often as the rings take to come
 * round, once more to see how addresses go on, and for what is left over at the end. So a body is
 * written once, for a pass; addresses and pieces must move by the same step from each pass to the
 * next and everything else must be the same. All passes are looked at for that, or, when a program
 * has cost so many records (CT_LOOK), the first two and the last. Bodies nest, up to four loops
 * deep.
 *
 * Waits and signals.
 *
 *   Full. A command that reads (or writes) what a command of another queue wrote (or read) waits
 * for a signal of that one, unless its queue knows already: from a signal it took before, of the
 * same queue or of one that knew. So tokens of a pair of queues are taken in the order in which
 * they are given, and a pair needs one semaphore. LD, MM, VA and VS that signal by step, tile or
 *   repetition are followed step by step. What lies in different loops is ordered by commands
 *   without effect ("carriers") behind the one loop and before the other.
 *
 *   Free. For each ring the last user of a generation signals, and the first command of the
 * generation `slots` later waits. Each generation gives one and takes one, so it does not matter in
 * which loops they are. They are taken in the order in which they are given, so the generations of
 * a ring have to end in the order in which they begin: the kernel sees to that. The first ones of a
 * job find their slots free; where they are in a loop, whose passes must look alike, carriers give
 * their signals before it. A ring may name another queue that gives the signal (freed_by): its
 * first command that knows the generation to be over and has a signal to spare, or a carrier.
 *
 *   Semaphores are numbered last: uses of one that follow each other may be between different
 * queues, where those know that the use before is over (ct_lower_sems.c).
 *
 *   A semaphore counts to 255. Tokens outstanding are bounded by the slots of rings (times the
 * steps of a slot), which is checked.
 *
 * Between the passes of a loop only rings order anything: a tensor of which one pass writes what
 * another one uses is refused, unless all of them are commands of one queue.
 *
 * Jobs. If the program is too long it is cut between two nodes of the top level. Scratchpad, ACC
 * and tile registers keep what they hold from job to job, and every job begins with everything
 * complete and all semaphores 0; so nothing crosses a cut but data. A job's program is read in
 * front of its first loads, the next one's while it runs: a kernel may name a place where a long
 * job ends.
 *
 * Not this layer's: to decide where things lie, and that a generation is in its slot.
 */
#ifndef CT_LOWER_H
#define CT_LOWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ct_prog.h"
#include "ct_walk.h"

struct ct_lower;

enum ct_q { CT_Q_LD, CT_Q_ST, CT_Q_MM, CT_Q_VL, CT_Q_VA, CT_Q_VS, CT_Q_COUNT };

enum ct_place { CT_IN_SPM, CT_IN_DRAM, CT_IN_REG, CT_IN_ACC };

/* Words of SPM, units of DRAM behind an argument, tile registers, ACC tiles. Piece (r, c) is at
 * at + r * row + c * col; the layer orders by pieces, so every access says which it touches. */
struct ct_tensor {
  const char *name;
  enum ct_place place;
  unsigned reg; /* CT_IN_DRAM: the argument */
  uint32_t at, size;
  uint32_t row, col;
};

/* Slots of `size` each. */
struct ct_ring {
  const char *name;
  enum ct_place place; /* not DRAM */
  uint32_t at, size, slots;
};

/* What a command names. */
struct ct_ref {
  uint32_t space;       /* 0: nothing */
  uint32_t gen, gens;   /* of a ring: the first, how many neighbours */
  uint32_t at;          /* behind the start of the space, or of the slot */
  uint32_t part;        /* of a slot that is filled by steps: the first one used ... */
  bool one_part;        /* ... and the only one */
  int32_t lo[2], hi[2]; /* of a tensor: rows and columns of pieces, hi not included */
};

enum { CT_CARRIER_WORDS = 5 };

/* Where carriers may go: see ct_lower_start(). */
struct ct_carriers {
  unsigned va_reg; /* VA copies its first row onto itself: a register that only VA uses */
  unsigned vs_reg; /* VS reads it: nothing may write it */
  unsigned vl_reg; /* VL writes it: nothing else may use it */
  unsigned acc;    /* an ACC tile that nothing else uses, if MM may need carriers */
  uint32_t spm;    /* CT_CARRIER_WORDS: 4 for VS, one more for LD */
  uint32_t calm;   /* a tensor in SPM that begins with an HBFP8 tile which stays as it is while VL
                      and MM may need carriers; 0: neither carries */
  uint32_t load;   /* a tensor in DRAM whose first unit LD may read; 0: LD carries nothing */
  uint32_t store_spm, store_dram; /* ST may copy the first unit of one to the other at any time from
                                     when a job stored it; 0: ST carries nothing */
};

/* NULL: out of memory. args: registers r1..r<args> hold arguments; batch: as in struct ct_build. */
struct ct_lower *ct_lower_start(unsigned args, bool batch);
void ct_lower_carriers(struct ct_lower *l, const struct ct_carriers *carriers);

uint32_t ct_tensor(struct ct_lower *l, const struct ct_tensor *tensor);
uint32_t ct_ring(struct ct_lower *l, const struct ct_ring *ring);

/* ---- Spaces of the usual layouts ---- */

/* rows x cols pieces of so many words or units, row by row or column by column. */
struct ct_grid {
  uint32_t rows, cols, piece;
  bool by_column;
};
static inline struct ct_grid ct_grid(uint32_t rows, uint32_t cols, uint32_t piece) {
  return (struct ct_grid){rows, cols, piece, false};
}
static inline struct ct_grid ct_columns(uint32_t rows, uint32_t cols, uint32_t piece) {
  return (struct ct_grid){rows, cols, piece, true};
}

/* What lies in the scratchpad is put one behind the other; so are words that no space names. What
 * has been taken so far may be more than there is: compare before going on. */
uint32_t ct_spm_take(struct ct_lower *l, uint64_t words);
uint64_t ct_spm_taken(const struct ct_lower *l);
uint32_t ct_spm_tensor(struct ct_lower *l, const char *name, struct ct_grid grid);
uint32_t ct_spm_ring(struct ct_lower *l, const char *name, uint32_t words, uint32_t slots);

/* Behind an argument; registers and ACC tiles from `at` on: piece (i, 0) is tile i. */
uint32_t ct_dram_tensor(struct ct_lower *l, const char *name, unsigned reg, uint64_t at,
                        struct ct_grid grid);
uint32_t ct_reg_tensor(struct ct_lower *l, const char *name, uint32_t at, uint32_t tiles);
uint32_t ct_reg_ring(struct ct_lower *l, const char *name, uint32_t at, uint32_t slots);
uint32_t ct_acc_ring(struct ct_lower *l, const char *name, uint32_t at, uint32_t slots);

/* LD fills a slot step by step, in so many at most. That queue signals that a generation is over,
 * instead of its last user. */
void ct_ring_steps(struct ct_lower *l, uint32_t ring, uint32_t steps);
void ct_ring_freed_by(struct ct_lower *l, uint32_t ring, enum ct_q q);
/* A ring in the same place, with generations of its own. LD fills a slot of both at once (struct
 * ct_dma), whoever reads one frees that: so two queues read what was loaded that know nothing of
 * each other. Nothing else is written to either. */
uint32_t ct_ring_twin(struct ct_lower *l, uint32_t ring, const char *name);

/* ---- Refs ---- */

/* The next generation; n neighbours of a ring of registers or tiles. Where too few slots are left
 * at the ring's end they are passed over, but not in a loop, whose passes must find it alike. */
struct ct_ref ct_next(struct ct_lower *l, uint32_t ring);
struct ct_ref ct_next_n(struct ct_lower *l, uint32_t ring, uint32_t n);

/* A piece, a box of pieces, all of a tensor. */
struct ct_ref ct_tile_of(const struct ct_lower *l, uint32_t tensor, uint32_t r, uint32_t c);
struct ct_ref ct_tiles_of(const struct ct_lower *l, uint32_t tensor, uint32_t r, uint32_t rows,
                          uint32_t c, uint32_t cols);
struct ct_ref ct_all_of(const struct ct_lower *l, uint32_t tensor);

/* Generation i of several; words behind the start; a part of a slot, which commands that touch
 * other parts do not wait for (an LD by_step: the first of its parts). */
struct ct_ref ct_nth(struct ct_ref ref, uint32_t i);
struct ct_ref ct_behind(struct ct_ref ref, uint32_t words);
struct ct_ref ct_part(struct ct_ref ref, uint32_t part, uint32_t words);

/* ---- Commands: fields as in docs/programming.md ---- */

/* Groups of compressed tiles (docs/compression.md): n1 groups, one to four, of nb words, which are
 * entries of the index unit `dram` from 0 on. n1_reg: an argument with the bound's exponent in bits
 * 11..4, and zeros. free: an LD gives their pages back. */
struct ct_comp {
  bool on, free;
  unsigned n1_reg;
};

/* by_step: each outer step fills (ST: takes) a part of the ring's slot, from spm.part on. */
struct ct_dma {
  struct ct_ref dram, spm;
  struct ct_ref twin; /* of an LD: the slot of the twin of spm's ring; or nothing */
  bool hdr, gather, by_step;
  uint32_t nb, s0;        /* s0: 0 means 1 */
  uint32_t n1, n2;        /* 0 means 1 */
  int32_t d1, s1, d2, s2; /* DRAM and SPM strides */
  struct ct_comp comp;
};
void ct_ld(struct ct_lower *l, const struct ct_dma *c);
void ct_st(struct ct_lower *l, const struct ct_dma *c);

/* How the rows of A go over pixels and taps from here on, for products that walk: two commands. A
 * job begins with those that were the last in front of it. */
void ct_mm_walk(struct ct_lower *l, const struct ct_walk_shape *shape);

/* acc: a generation for each output tile. by_step: each k step waits for a part of b, and columns
 * of a (a tensor) go with the steps. walk: a is all that rows may touch, and the first pixel at the
 * first tap lies walk_a words behind it (it may lie in front); am, ak are not used. */
struct ct_mm {
  struct ct_ref a, b, acc;
  bool a_trans, b_trans, accum, by_step, walk;
  int32_t walk_a;
  uint32_t pos;
  int32_t am, ak, bn, bk;
  uint32_t kt, nt, rows, rows_reg; /* with rows_reg: 16 at most */
  uint32_t acc_n;
};
void ct_mm(struct ct_lower *l, const struct ct_mm *c);

enum { CT_VL_F32 = 0, CT_VL_HBFP8 = 1, CT_VL_SIGN = 2 };
enum { CT_VS_F32 = 0, CT_VS_ROWS = 1, CT_VS_SQUARE = 2 };

/* stride: 0 means that rows are neighbours. VL: from SPM to a register; VS: the other way. */
struct ct_vmove {
  struct ct_ref spm, reg;
  unsigned mode;
  uint32_t rows, rows_reg, stride;
  uint32_t more, tile_stride; /* VS: further tiles, of neighbouring generations or registers */
  unsigned narrow;            /* VS, HBFP8: mantissas of 8 - narrow bits, 2..8 */
};
void ct_vl(struct ct_lower *l, const struct ct_vmove *c);
void ct_vs(struct ct_lower *l, const struct ct_vmove *c);

enum { CT_VA_ADD = 0, CT_VA_MAX = 1, CT_VA_MIN = 2, CT_VA_SELECT = 3, CT_VA_EQUAL = 4 };
enum { CT_VA_EXP = 8, CT_VA_RECIP = 9, CT_VA_LOG = 10, CT_VA_RSQRT = 11 };
enum { CT_VA_NONE = 0, CT_VA_TILE = 1, CT_VA_ROW0 = 2, CT_VA_SCALAR = 3 };

/* a: a register or ACC tile; without one, +0. q: the register of operand b or c. */
struct ct_va {
  struct ct_ref to, a, q;
  unsigned b, c; /* CT_VA_NONE .. */
  unsigned fn, func;
  unsigned sb_reg, sc_reg; /* registers of scalars; 0: sb, sc are their bits */
  uint32_t sb, sc;
  bool neg_c, relu, ninf, part_rows; /* part_rows: rows past `rows` are not written */
  uint32_t rows, rows_reg, cols;     /* 0 means 16 (rows: unless rows_reg) */
  unsigned row_xor, lane_xor, more;
};
void ct_va(struct ct_lower *l, const struct ct_va *c);

/* Combines partials j and j + 8, 4, 2, 1 of rows or lanes of register a, with b in between; the
 * result goes to `to`. Four VAs. */
struct ct_reduce {
  struct ct_ref a, b, to;
  bool rows;
  unsigned fn;
};
void ct_reduce(struct ct_lower *l, const struct ct_reduce *c);

/* ---- Loops ---- */

typedef void ct_body(void *kernel, uint32_t pass);
void ct_repeat(struct ct_lower *l, uint32_t passes, ct_body *body, void *kernel);

/* ---- Members ---- */

/* What is recorded in ct_members() is done for each member of a group: body(kernel, i), for the
 * `round` members of a pass, becomes the body of a loop whose passes are an argument of the job.
 * Tensors in device memory are the member's, numbers of a run its own. A pass begins with the
 * rings' first slots: where a round is not complete the last ones are passed over, and fewer may be
 * alive. CT_ERR_NO_SPACE if loops nest too deep, or the program is too long for one job. So members
 * follow each other without a gap: only rings and what a single queue uses are handed on. group
 * NULL: there is one member, without a loop. */
enum { CT_MOST_PASSES = 256 };
void ct_lower_group(struct ct_lower *l, const struct ct_fused *group);
void ct_members(struct ct_lower *l, ct_body *body, void *kernel);

/* What went wrong so far: CT_OK, or an error whose sentence ct_lower_finish() gives. */
int ct_lower_error(const struct ct_lower *l);
int ct_lower_fail(struct ct_lower *l, int error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- Programs ---- */

/* Makes the jobs and frees l, whatever the outcome. name: of the program, for sentences. */
int ct_lower_finish(struct ct_lower *l, const char *name, struct ct_codes *codes,
                    const struct ct_why *why);
void ct_lower_drop(struct ct_lower *l);

/* A job of more than CT_LONG_JOB records that goes on here ends here; the last such place counts.
 */
enum { CT_LONG_JOB = 256 };
void ct_lower_cut(struct ct_lower *l);

/* Not to be cut: CT_ERR_NO_SPACE if one job cannot hold it. */
void ct_lower_one_job(struct ct_lower *l);

/* Where ct_lower_finish() adds what building cost: commands recorded and written, uses compared. */
void ct_lower_count(struct ct_lower *l, uint64_t *work);

/* ---- For tests ---- */

/* Commands per job at most, instead of CT_PROG_MAX. */
void ct_lower_limit(struct ct_lower *l, size_t commands);
/* Records of passes that are recorded for nothing but a look at them, at most, instead of CT_LOOK.
 */
enum { CT_LOOK = 1 << 16 };
void ct_lower_look(struct ct_lower *l, uint64_t records);
/* Loops are written out, and ct_lower_list() gives the commands, with neither waits nor signals. */
void ct_lower_flat(struct ct_lower *l);
int ct_lower_list(const struct ct_lower *l, struct ct_code *code);
/* What a wrong layer would do; all of them must be found out. */
enum ct_lower_fault {
  CT_NO_FAULT,
  CT_FAULT_NO_FULL_WAIT, /* one queue's command does not wait for another's */
  CT_FAULT_NO_FREE_WAIT, /* a generation does not wait for the one before it in its slot */
  CT_FAULT_NO_SIGNAL,
  CT_FAULT_CREDIT,     /* a signal more than a ring has slots */
  CT_FAULT_NO_BARRIER, /* what lies in different loops is not ordered */
  CT_FAULT_KNOWS,      /* a queue is taken to know what it does not */
  CT_FAULT_SHARED,     /* channels share a semaphore that nothing keeps apart */
  CT_FAULTS
};
void ct_lower_fault(struct ct_lower *l, enum ct_lower_fault fault, unsigned nth);

#endif
