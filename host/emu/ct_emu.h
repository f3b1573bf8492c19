/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The device in C, as software sees it: registers, jobs, semaphores, units, memory; bit by bit what
 * the RTL computes, without time. This is the specification in code, written to be read.
 *
 *   ct_emu.c        memory, registers, jobs, the transport "emu:"
 *   ct_emu_prog.c   programs: control commands, dispatch into the queues (legality: ct_exec.h)
 *   ct_emu_units.c  what the six units do with a command
 *   ct_emu_comp.c   LD and ST of compressed groups (docs/compression.md)
 *   ct_emu_batch.c  requests, and the batches they become
 *   ct_path.h       what they compute on a tile: plainly, or with vector instructions
 *
 * The transport's arguments are in ct_uri.c.
 * A job runs when a register access makes it runnable, inference before training. Each unit
 * advances in semaphore steps (LD, ST: outer step; MM: k step; others: command) as far as it can,
 * all in turn; while the device is frozen, one step each. When no unit and no dispatch can advance,
 * the job would wait for ever: it ends with WATCHDOG.
 *
 * No call takes long. A register access does so much work for each context at most (CT_EMU_SLICE);
 * what is left goes on in the next one and while the host waits, so a job without end can be
 * cancelled and waited for in vain, as on hardware. Its time is counted in work, too:
 * ct_emu_time().
 */
#ifndef CT_EMU_H
#define CT_EMU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ct_act_pages.h"
#include "ct_cmd.h"
#include "ct_path.h"
#include "ct_transport.h"
#include "ct_walk.h"

enum { CT_EMU_CTXS = 2, CT_EMU_QUEUE = 16, CT_EMU_ADDS = 4 };

/* Work of a context in one register access: a command, a step of a unit, a beat, a row of a product
 * are one each. More by the last step at the most, which is below 2^20. */
enum { CT_EMU_SLICE = 1 << 18 };

enum ct_emu_unit { CT_EMU_LD, CT_EMU_ST, CT_EMU_MM, CT_EMU_VL, CT_EMU_VA, CT_EMU_VS, CT_EMU_UNITS };

/* A scratchpad word on its way. FP32 element i lies in bytes 4i..4i+3, little-endian. */
struct ct_emu_word {
  int8_t q[16];
  uint8_t e;
  uint8_t wrong; /* the parity bits that do not fit: 0 after a write */
};

/* The counters that a command's SEM fields name: places in sem[] of its context. A field that names
 * none stands for the spare one, which is always 1. */
struct ct_emu_sems {
  uint8_t wait[3], sig[2];
};

struct ct_emu_slot {
  struct ct_cmd cmd;
  struct ct_emu_sems sems;
};

/* One queue: the commands that wait and how far the one in the unit has come. */
struct ct_emu_queue {
  struct ct_emu_slot slot[2 * CT_EMU_QUEUE]; /* a ring: what is in the unit, then those that wait */
  unsigned head, count;                      /* of those that wait */
  const struct ct_cmd *cmd;                  /* in the unit; NULL: none */
  struct ct_emu_sems sems;                   /* of that */
  bool begun;                                /* the current step has its semaphores */
  uint32_t step;                             /* LD, ST: i2; MM: k; VA, VS: tiles done */
  uint32_t n, m;                             /* MM: next output tile of the step */
  struct ct_walk_place at;                   /* MM with Walk: where the step begins */
  struct ct_va va;                           /* VA: the command taken apart, but for its tiles */
};

/* The slot for the next command to wait. */
static inline struct ct_emu_slot *ct_emu_queue_end(struct ct_emu_queue *q) {
  return &q->slot[(q->head + q->count) % (2 * CT_EMU_QUEUE)];
}

/* A command of a program, prepared for dispatch when the job starts. */
struct ct_emu_line {
  struct ct_cmd cmd;
  struct ct_emu_sems sems;
  const struct ct_op_info *op; /* NULL: there is no such operation */
  enum ct_emu_unit unit;       /* CT_EMU_UNITS: none, a control command */
  bool gather;                 /* legal in a batch only */
  bool comp;                   /* legal where there is an arena only */
  bool walk;                   /* legal behind a WPIX and a WTAP only */
  uint8_t walks;               /* what it is of the two: bit 0, bit 1 */
  bool judged;                 /* whether it is legal depends on no register ... */
  bool legal;                  /* ... and this is the answer */
  /* If judged, the registers to be added in: to the bits `mask` of word `word`, from bit `shift`.
   */
  unsigned adds;
  struct {
    uint8_t reg, word, shift;
    uint32_t mask;
  } add[CT_EMU_ADDS];
};

struct ct_emu_completion {
  uint32_t tag, code, addr, version, rows;
};

struct ct_emu_ctx {
  uint32_t reg[64]; /* as written, at CT_CREG_x / 4 */
  uint32_t spm_len; /* words of the window that the scratchpad has */
  uint32_t head;
  struct ct_emu_completion cpl[CT_CPL_DEPTH];
  unsigned cpl_head, cpl_count;
  uint64_t cnt[32];
  int64_t fuel; /* work that is left of the slice; at or below 0 the context rests */

  /* The running job. */
  bool running, ended; /* ended: END was dispatched */
  bool failed;
  bool owed;     /* the memory port owes answers to a job that has ended: no job starts */
  bool ring_bad; /* the last completion of the ring had an error */
  bool compress; /* there is an arena: of context 1 */
  /* The places of the requests whose batch the job is; 0 of them: it comes from the ring. */
  uint8_t batch_place[CT_BATCH_MAX];
  unsigned batch;
  struct ct_emu_completion result; /* code and addr hold the first failure */
  struct ct_emu_line prog[CT_PROG_MAX];
  uint32_t ncmds, pc, r[CT_NUM_REGS];
  uint32_t limit;     /* its watchdog; 0: none */
  uint64_t since[32]; /* cnt[] when its first command came: see ct_emu_time() */
  struct {
    uint32_t first, left; /* index after LOOP; passes still to start */
  } loop[CT_NUM_LOOPS];
  unsigned depth;
  uint8_t sem[CT_NUM_SEMS + 1]; /* and one that is always 1 */
  uint8_t walks;                /* WPIX (bit 0), WTAP (bit 1) that the job has dispatched */
  struct ct_walk walk;          /* what those say that have come to their turn */
  struct ct_emu_queue queue[CT_EMU_UNITS];

  /* State that outlives jobs. */
  struct ct_act_pages pages; /* of the arena for compressed groups */
  struct ct_emu_tile acc[CT_ACC_TILES], tile[CT_TILE_REGS];
};

/* A request has a place from its push until its record is popped. */
struct ct_emu_request {
  uint32_t input, output, tag;
  uint32_t deadline; /* cycles after its arrival, which is always now; 0: none */
  uint8_t model;
  /* Its record, when it is over: whether it was in a batch, of how many, and what became of it. */
  bool over, ran;
  uint8_t count;
  struct ct_emu_completion result;
};

struct ct_emu_model {
  bool loaded;
  unsigned used;                       /* the descriptor that batches get */
  uint32_t desc[2][CT_DESC_BYTES / 4]; /* writes go to the other */
  uint32_t control[CT_MODEL_WORDS / 2];
};

/* Places in some order: a ring buffer of their numbers. */
struct ct_emu_places {
  uint8_t place[CT_REQ_PLACES];
  unsigned first, count;
};

struct ct_emu_batcher {
  struct ct_emu_request request[CT_REQ_PLACES];
  struct ct_emu_places free; /* as they became free */
  struct ct_emu_places left; /* in a batch, or over: as they left the queue */
  uint8_t waiting[CT_REQ_WAITING];
  unsigned waits; /* earliest deadline first */
  struct ct_emu_model model[CT_MODELS];
  struct ct_emu_request staged; /* as the host has written it so far */
  bool spoilt;                  /* a word of it found no place */
  uint32_t model_at, result, ticket;
  bool form;      /* the host has looked, or the queue is full: all that waits goes */
  bool ring_turn; /* a batch has gone, so a job of the ring is next */
};

struct ct_emu {
  struct ct_emu_ctx ctx[CT_EMU_CTXS];
  const struct ct_path *path;
  /* The scratchpad, word by word: mantissas, exponents, parity bits that do not fit. */
  int8_t (*spm_q)[16];
  uint8_t *spm_e, *spm_wrong;
  uint8_t *dram;
  uint64_t dram_bytes;
  uint64_t fault_addr; /* of the armed fault */
  uint32_t spm_words;  /* a power of two */
  uint32_t cols, lanes, clock_hz;
  uint32_t reg[64]; /* global registers as written, at CT_REG_x / 4 */
  uint32_t dead, cnt_latch, peek[5];
  uint32_t refused; /* the last unit that the memory answered with an error */
  enum ct_fault fault;
  struct ct_emu_batcher batcher;
  bool flipped; /* DBG_FLIP has been used: parity has to be looked at */
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

/* Where count words from rel on lie, if they lie within the window and parity need not be looked
 * at. False: word by word, please; nothing has failed. */
static inline bool ct_emu_spm_together(const struct ct_emu *emu, const struct ct_emu_ctx *ctx,
                                       uint32_t rel, uint32_t count, uint32_t *first) {
  *first = CT_EMU_CREG(ctx, SPM_BASE) + rel;
  return !emu->flipped && rel < ctx->spm_len && count <= ctx->spm_len - rel;
}

/* Device memory through the AXI port, in bursts as the DMA cuts them (no longer than max_beats,
 * never across 4 KB); addr in units of 16 bytes. Reading gives the place of the data. NULL, false:
 * the job has failed. */
const uint8_t *ct_emu_dram_read(struct ct_emu *emu, struct ct_emu_ctx *ctx, uint32_t addr,
                                uint32_t beats, uint32_t max_beats);
bool ct_emu_dram_write(struct ct_emu *emu, struct ct_emu_ctx *ctx, uint32_t addr, uint32_t beats,
                       uint32_t max_beats, const uint8_t *data);

/* Whether all of it lies in the window, whatever bursts it takes; false: the job has failed. */
bool ct_emu_dram_window(struct ct_emu_ctx *ctx, bool write, uint32_t addr, uint32_t beats);

/* ---- ct_emu_comp.c ---- */

/* The outer step of an LD or ST with Comp that has its semaphores. */
void ct_emu_comp_load(struct ct_emu *emu, struct ct_emu_ctx *ctx, const struct ct_emu_queue *q);
void ct_emu_comp_store(struct ct_emu *emu, struct ct_emu_ctx *ctx, const struct ct_emu_queue *q);

/* The context gets an arena, of no pages yet; false: no memory. Freed also after that. */
bool ct_emu_comp_init(struct ct_emu_ctx *ctx);
void ct_emu_comp_free(struct ct_emu_ctx *ctx);

/* ARENA_PAGES: all pages are free. */
void ct_emu_comp_arena(struct ct_emu_ctx *ctx, uint32_t pages);

/* ---- ct_emu_batch.c ---- */

/* As after power-up. */
void ct_emu_batch_reset(struct ct_emu_batcher *b);

/* Registers from CT_REG_REQ_INPUT on. What a host looks at makes batches of what waits, as soon as
 * they can run. */
bool ct_emu_batch_looks(uint32_t offset);
uint32_t ct_emu_batch_read(struct ct_emu *emu, uint32_t offset);
void ct_emu_batch_write(struct ct_emu *emu, uint32_t offset, uint32_t value);

/* Whether a record waits. */
bool ct_emu_batch_record(const struct ct_emu_batcher *b);

/* Makes the first model's first requests the batch of ctx and returns its descriptor; NULL: none is
 * to go. */
const uint32_t *ct_emu_batch_form(struct ct_emu_batcher *b, struct ct_emu_ctx *ctx);

/* The job of ctx, a batch, is over. */
void ct_emu_batch_done(struct ct_emu_batcher *b, const struct ct_emu_ctx *ctx);

/* Soft reset: all that waits leaves. */
void ct_emu_batch_drop(struct ct_emu_batcher *b);

/* ---- ct_emu_prog.c ---- */

/* Prepares a command. */
void ct_emu_prepare(struct ct_emu_line *line, const struct ct_cmd *cmd);

/* Dispatches the next command or executes it, if it is a control command. True: something moved. */
bool ct_emu_dispatch(struct ct_emu_ctx *ctx);

/* ---- ct_emu_units.c ---- */

/* Advances one queue as far as it can, or by one step. True: something moved. */
bool ct_emu_unit_run(struct ct_emu *emu, struct ct_emu_ctx *ctx, enum ct_emu_unit unit,
                     bool one_step);

#endif
