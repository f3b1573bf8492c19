/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything around ct_dma: the driver of its commands and fetches, the memory behind its AXI port,
 * a scratchpad, semaphores, a monitor of what must always hold, and a model of what it should do.
 *
 * The model runs each command when it is pushed, on a memory and a scratchpad of its own. Commands
 * of different queues that touch the same words must therefore be ordered by semaphores as they
 * were pushed. Each context has its own half of both memories; its windows are:
 *
 *     DRAM, units of 16 bytes   read  [ctx * 32768, + 16384)    write [ctx * 32768 + 16384, +
 * 16384) SPM words                 [2048 * ctx, + 2048): by custom LD writes the lower half, ST
 * reads the upper
 */
#ifndef DMA_BENCH_H
#define DMA_BENCH_H

#include "ct_tb.h"

#include "ct_dma_dut.h"
#include "host/lib/isa/ct_cmd.h"
#include "host/transports/sim/ct_axi_mem.h"

enum { kLd, kSt, kSides };
enum {
  kCtx = 2,
  kUnits = 1 << 16, /* DRAM, units of 16 bytes */
  kCtxUnits = 32768,
  kRdUnits = 16384,
  kSpm = 4096, /* words */
  kCtxSpm = 2048,
  kSems = 16,
  kMaxCmds = 256,
  kMaxSigs = 8192,
  kMaxFetches = 64
};

struct dma_word {
  uint32_t q[4];
  uint8_t e;
};

/* A signal that must come: of which semaphore, of which command, and how much must be done by then
 * (LD: words written to the SPM, ST: bursts answered, both counted since the start). */
struct dma_sig {
  unsigned sem, cmd;
  uint64_t done;
};

/* LD or ST of one context. */
struct dma_queue {
  struct ct_cmd cmd[kMaxCmds];
  unsigned pushed, popped;
  struct dma_sig sig[kMaxSigs];
  unsigned sig_head, sig_tail;
  uint64_t done, promised; /* work, as counted in dma_sig: seen, and according to the model */
  ct_stall stall;
};

struct dma_fetch {
  uint32_t addr, len;
  bool soft;
};

struct dma_fetcher {
  struct dma_fetch fetch[kMaxFetches];
  unsigned pushed, popped, answered; /* free running */
  uint32_t beat;
  ct_stall stall;
};

struct dma_config {
  struct ct_axi_mem_config mem;
  unsigned cmd_stall;   /* percent of the cycles in which a queue offers nothing */
  unsigned spm_stall;   /* percent of the cycles in which the SPM refuses */
  unsigned sem_percent; /* of the cycles in which a semaphore that is owed is given; 0 = always */
};

typedef struct {
  struct dma_config config;
  ct_dma_dut *dut;
  ct_axi_mem *mem;
  struct ct_axi_in in;
  struct ct_axi_out out;
  struct dma_queue queue[kCtx][kSides];
  struct dma_fetcher fetcher[kCtx];
  uint32_t sem[kCtx][kSems], owed[kCtx][kSems];
  ct_rng rng;
  unsigned policy, floor;
  ct_stall spm_stall;

  struct dma_word spm[kSpm], model_spm[kSpm];
  uint8_t *model_dram;
  uint8_t gat_granted; /* gathers, in the last cycle: the side, and the address for it */
  uint32_t gat_answer;
  int32_t bad_word; /* physical SPM word that reads with a parity error, -1: none */
  struct {
    bool valid, perr;
    struct dma_word w;
  } read_pipe[2];

  /* Seen by the monitor. */
  uint64_t now;
  uint64_t beats[kCtx][kSides], waits[kCtx][kSides]; /* sums of the events */
  uint64_t bursts[kCtx][kSides];
  uint64_t crossings; /* bursts that end at a 4 KB boundary before their run does */
  uint64_t mixed;     /* beats of R inside a burst of the other ID */
  unsigned reads_pending[kCtx];
  unsigned most_reads[kCtx];
  uint64_t r_first, r_last, w_first,
      w_last; /* cycles of beats of either context; UINT64_MAX: none */
  bool expect_error[kCtx], forgotten[kCtx];
  bool open_windows; /* bursts may leave the regions */
  bool hold_writes;  /* AW and W are not taken */
  struct {
    unsigned count;
    uint8_t code;
    uint32_t addr;
  } err[kCtx];
  unsigned bad_fetches[kCtx]; /* pulses of fetch_bad_o */
  bool cut[kCtx];             /* the fetch will not come whole */
  unsigned old_errs[kCtx];    /* of old_err_o */
  uint32_t old_err_addr;
  uint8_t last_rid;
  bool last_open;
} dma_bench;

dma_bench *dma_open(const struct dma_config *config);
void dma_close(dma_bench *b);

/* A command without semaphores: one run of nb words. */
struct ct_cmd dma_command(uint32_t dram, uint32_t spm, bool hdr, unsigned nb, unsigned s0);
void dma_loop1(struct ct_cmd *cmd, unsigned n1, int d1, int s1);
void dma_loop2(struct ct_cmd *cmd, unsigned n2, int d2, int s2);
/* A legal command with random loops inside the regions of that context and side, and random
 * semaphores, for which what it waits for is owed (see dma_cycle). */
struct ct_cmd dma_random_command(dma_bench *b, ct_rng *rng, int ctx, int side);

/* Queues a command. dma_push tells the model, dma_push_wrong does not (for commands that fail). */
void dma_push(dma_bench *b, int ctx, int side, const struct ct_cmd *cmd);
void dma_push_wrong(dma_bench *b, int ctx, int side, const struct ct_cmd *cmd);
void dma_fetch(dma_bench *b, int ctx, uint32_t addr, uint32_t len);
void dma_fetch_soft(dma_bench *b, int ctx, uint32_t addr, uint32_t len);

/* One clock. Gives semaphores that are owed at random, drives, checks, counts. */
void dma_cycle(dma_bench *b);
void dma_cycles(dma_bench *b, unsigned n);

/* All that was pushed for the context is done, signalled and answered, and the DMA says so. */
bool dma_done(const dma_bench *b, int ctx);
/* Cycles until both contexts are done; fails after limit cycles. */
unsigned dma_drain(dma_bench *b, unsigned limit);

/* Raises flush_i of the context, waits for both idles (fails after limit), lowers it, forgets what
 * was queued and takes over into the model what the memories hold there. */
void dma_flush(dma_bench *b, int ctx, unsigned limit);

/* Memory and scratchpad equal the model's; no rule of AXI was violated. */
void dma_check(dma_bench *b);

#endif
