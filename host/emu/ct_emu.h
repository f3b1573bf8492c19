/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The device in C, as software sees it: registers, jobs, semaphores, units, memory; bit by bit what
 * the RTL computes, without time. This is the specification in code, written to be read.
 *
 *   ct_emu.c        memory, registers, jobs, the transport "emu:"
 *   ct_emu_prog.c   programs: control commands, legality, dispatch into the queues
 *   ct_emu_units.c  what the six units do with a command
 *
 * The transport's arguments: spm=WORDS (65536), cols=8|16 (16), lanes=4|16 (16), dram=MIB (256).
 * A job runs when a register access makes it runnable, to its end, inference before training. Each
 * unit advances in semaphore steps (LD, ST: outer step; MM: k step; others: command), all in turn.
 * When no unit and no dispatch can advance, the job would wait for ever: it ends with WATCHDOG.
 */
#ifndef CT_EMU_H
#define CT_EMU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ct_cmd.h"
#include "ct_transport.h"

enum { CT_EMU_CTXS = 2, CT_EMU_QUEUE = 16 };

enum ct_emu_unit { CT_EMU_LD, CT_EMU_ST, CT_EMU_MM, CT_EMU_VL, CT_EMU_VA, CT_EMU_VS, CT_EMU_UNITS };

/* A scratchpad word. FP32 element i lies in bytes 4i..4i+3, little-endian. */
struct ct_emu_word {
  int8_t q[16];
  uint8_t e;
  uint8_t wrong; /* the parity bits that do not fit: 0 after a write */
};

/* 16x16 FP32 values, by their bits: an accumulator tile or a tile register. */
struct ct_emu_tile {
  uint32_t x[16][16];
};

/* One queue: the commands that wait and how far the one in the unit has come. */
struct ct_emu_queue {
  struct ct_cmd waiting[CT_EMU_QUEUE];
  unsigned head, count;
  bool active; /* cmd is in the unit */
  bool begun;  /* the current step has its semaphores */
  struct ct_cmd cmd;
  uint32_t step; /* LD, ST: i2; MM: k */
  uint32_t n, m; /* MM: next output tile of the step */
};

struct ct_emu_completion {
  uint32_t tag, code, addr, version, rows;
};

struct ct_emu_ctx {
  uint32_t reg[64]; /* as written, at CT_CREG_x / 4 */
  uint32_t head;
  struct ct_emu_completion cpl[CT_CPL_DEPTH];
  unsigned cpl_head, cpl_count;
  uint64_t cnt[32];

  /* The running job. */
  bool running, ended; /* ended: END was dispatched */
  bool failed;
  bool owed; /* the memory port owes answers to a job that has ended: no job starts */
  struct ct_emu_completion result; /* code and addr hold the first failure */
  struct ct_cmd prog[CT_PROG_MAX];
  uint32_t ncmds, pc, r[CT_NUM_REGS];
  struct {
    uint32_t first, left; /* index after LOOP; passes still to start */
  } loop[CT_NUM_LOOPS];
  unsigned depth;
  uint8_t sem[CT_NUM_SEMS];
  struct ct_emu_queue queue[CT_EMU_UNITS];

  /* State that outlives jobs. */
  struct ct_emu_tile acc[CT_ACC_TILES], tile[CT_TILE_REGS];
};

struct ct_emu {
  struct ct_emu_ctx ctx[CT_EMU_CTXS];
  struct ct_emu_word *spm;
  uint32_t spm_words; /* a power of two */
  uint8_t *dram;
  uint64_t dram_bytes;
  uint32_t cols, lanes;
  uint32_t reg[64]; /* global registers as written, at CT_REG_x / 4 */
  uint32_t dead, cnt_latch, peek[5];
  /* The armed fault. */
  enum ct_fault fault;
  uint64_t fault_addr;
};

#define CT_EMU_REG(emu, NAME) ((emu)->reg[CT_REG_##NAME / 4])
#define CT_EMU_CREG(ctx, NAME) ((ctx)->reg[CT_CREG_##NAME / 4])

/* ---- ct_emu.c: memory ---- */

/* Ends the job with this code, unless it has failed already. */
void ct_emu_fail(struct ct_emu_ctx *ctx, uint32_t code, uint32_t addr);

/* Whether words up to rel (relative, not wrapped) lie in the window; false: the job has failed. */
bool ct_emu_spm_window(struct ct_emu_ctx *ctx, uint32_t rel);

/* A word of the context's window as a read port gives it; false: the job has failed. */
bool ct_emu_spm_read(struct ct_emu *emu, struct ct_emu_ctx *ctx, uint32_t rel,
                     struct ct_emu_word *word);
bool ct_emu_spm_write(struct ct_emu *emu, struct ct_emu_ctx *ctx, uint32_t rel,
                      const struct ct_emu_word *word);

/* Device memory through the AXI port, in bursts as the DMA cuts them (no longer than max_beats,
 * never across 4 KB); addr in units of 16 bytes. False: the job has failed. */
bool ct_emu_dram_read(struct ct_emu *emu, struct ct_emu_ctx *ctx, uint32_t addr, uint32_t beats,
                      uint32_t max_beats, uint8_t *data);
bool ct_emu_dram_write(struct ct_emu *emu, struct ct_emu_ctx *ctx, uint32_t addr, uint32_t beats,
                       uint32_t max_beats, const uint8_t *data);

/* ---- ct_emu_prog.c ---- */

/* Dispatches the next command or executes it, if it is a control command. True: something moved. */
bool ct_emu_dispatch(struct ct_emu_ctx *ctx);

/* ---- ct_emu_units.c ---- */

/* Advances one queue by a step. True: something moved. */
bool ct_emu_unit_step(struct ct_emu *emu, struct ct_emu_ctx *ctx, enum ct_emu_unit unit);

#endif
