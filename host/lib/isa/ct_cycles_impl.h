/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside the model of time (ct_cycles.h).
 *
 * Units are taken in turn, each as far as it can come. A unit's step gets its time from what it
 * follows: the step before, the commands in its queue, the signals it takes. A signal is a time in
 * its semaphore's list; the k-th wait takes the k-th. So no list of events is needed: a unit only
 * stops where the time of a signal, or of a place in a queue, is not known yet.
 *
 * Times are cycles from the job's start on. Constants are distances between registers: the heads of
 * the RTL's modules derive them.
 */
#ifndef CT_CYCLES_IMPL_H
#define CT_CYCLES_IMPL_H

#include "ct_cycles.h"

enum ct_cycles_unit { CYC_LD, CYC_ST, CYC_MM, CYC_VL, CYC_VA, CYC_VS, CYC_UNITS };

enum { CYC_QUEUE = 16, CYC_SEM_MOST = 255, CYC_SEM_RING = 512 };

/* Signals given and not taken, each as the first cycle in which it may be taken. */
struct cyc_sem {
  uint64_t at[CYC_SEM_RING];
  uint32_t head, count;
};

/* Commands that wait, and when each was taken out. */
struct cyc_queue {
  struct ct_cmd cmd[CYC_QUEUE];
  uint64_t here[CYC_QUEUE];  /* from when on it may be taken */
  uint64_t taken[CYC_QUEUE]; /* of the last 16, by number */
  uint64_t in, out;          /* commands put in, taken out */
};

/* The memory's read or write channel: when its data bus is free, in 1/256 cycle. */
struct cyc_bus {
  uint64_t free, cost;
};

/* Its last beat is on the bus in `last`. */
struct cyc_burst {
  uint64_t grant, last;
  uint32_t beats;
};

/* RECENT: the bursts of an index unit, and those in front of them. */
enum { CYC_READS = 8, CYC_RECENT = 32, CYC_WRITES = 16, CYC_SLOTS = 4 };

/* Pieces of an LD or ST, as ct_dma_seq cuts them. */
struct cyc_pieces {
  struct ct_cmd cmd;
  bool active, begun, step_begun;
  uint32_t i1, i2, left; /* runs, steps that remain after this one; beats left of the run */
  uint32_t length;       /* beats of a run */
  uint32_t addr, run, step;
  uint64_t go;    /* first cycle in which the next piece may be cut */
  uint64_t taken; /* the piece on offer was taken */
};

/* The groups of a command with Comp, as ct_act_walk asks for them, and the change between these
 * commands and all others of a queue (ct_dma_turn). */
struct cyc_walk {
  struct ct_cmd cmd;
  bool active, begun, step_begun;
  uint32_t i1, i2;       /* groups, steps that remain after this one */
  uint32_t index;        /* unit of the step */
  uint32_t tiles, units; /* of a group */
  uint64_t go;           /* the next request can be on offer from then on */
  uint64_t quiet;        /* nothing is left that a plain command may meet */
  uint64_t requests;
};

enum { CYC_GROUPS = 8 };

/* ct_act_ld. Times of the last group: its bursts are granted; its last word is written. */
struct cyc_act_ld {
  uint64_t put[CYC_GROUPS]; /* when the last ones were done with */
  uint64_t asked;           /* the last one's index unit was asked for, or was not read */
  uint64_t used;            /* the last index unit came into use */
  uint64_t got, word;
};

/* ct_act_st: of the last groups the requests that are through; of the encoder when the last tile's
 * first word came, when its header was given to the packer; of a half of the buffer when it is free
 * again. */
struct cyc_act_st {
  uint64_t through[4], reader, in, give, sent;
  uint64_t half[2];
};

struct cyc_reads {
  struct cyc_bus bus;
  uint64_t grant; /* of the last burst */
  struct cyc_burst recent[CYC_RECENT];
  uint64_t bursts;
};

/* What the front end reads of a job, burst by burst: the descriptor, from its second beat on the
 * program. */
struct cyc_fetch {
  uint32_t beats; /* of the program, not asked for */
  bool desc;      /* nor is the descriptor */
  uint64_t ask;   /* what comes next is on offer from then on */
  uint64_t last;  /* last beat of the last burst */
};

struct cyc_writes {
  struct cyc_bus bus;
  uint64_t grant, asked; /* of the last burst, and of its last beat */
  uint64_t answer;       /* the last one */
  uint64_t answers[CYC_WRITES];
  uint64_t slot[CYC_SLOTS]; /* last beats of the last pieces were asked for */
  uint64_t read;            /* last word of the last piece was asked of the scratchpad */
  uint64_t bursts, beats, pieces;
};

enum { CYC_ROWS = 64, CYC_KSTEPS = 8, CYC_PACED = 64 };

/* Cycles from first to last in which a word of A was asked for each time the array had taken a row.
 */
struct cyc_paced {
  uint64_t first, last;
};

/* A stream of weight tiles. Of the last tile: first and last word asked for, first, third and last
 * word gone into the shadow tile, transposed tile begun, rows begun. */
struct cyc_weights {
  uint64_t ask0, ask15, gone0, gone2, gone15, turn, take;
  uint64_t ready; /* of the tile of the step */
};

struct cyc_mm {
  struct ct_cmd cmd;
  bool active, permitted; /* the k step has its semaphores */
  uint32_t rows, tiles;   /* along m */
  uint32_t k, n, m;
  uint64_t load;   /* the command came into the slot */
  uint64_t slot;   /* first cycle in which the next one may */
  uint64_t permit; /* of the last k step */
  uint64_t signalled[CYC_KSTEPS];
  uint64_t ksteps;
  uint64_t ask;            /* last row of A */
  uint64_t take[CYC_ROWS]; /* last rows, by number */
  uint64_t row;            /* rows before */
  uint64_t last;           /* row taken */
  struct cyc_weights b;
  uint64_t turned[2];                /* A transposed: tiles began to leave */
  uint64_t turned_end;               /* the last one has left */
  bool turning;                      /* the last tile was transposed */
  struct cyc_paced paced[CYC_PACED]; /* the last ones */
  uint64_t paces;
};

/* What the sides of the vector unit have in common: ct_vpu_front. */
struct cyc_side {
  struct ct_cmd cmd;
  bool active;
  uint32_t more;  /* tiles after this one */
  uint64_t look;  /* first cycle in which it may take its waits */
  uint64_t ends;  /* the last row of the last tile started */
  uint64_t ready; /* the side can start something */
  uint64_t last;  /* everything is done */
};

/* What an operation of VA writes, and from when on one that reads it may start. any: it stands for
 * others that are as young, whatever they write. */
struct cyc_young {
  uint64_t until;
  uint32_t to;
  bool any;
};

/* VA's last operation. */
struct cyc_va {
  uint64_t apart;                /* 4 lanes: from when on one that reads tile registers may start */
  struct cyc_young last, before; /* 16 lanes */
  uint64_t issue;                /* its last row */
  uint64_t slow;                 /* the last row that went the long way; 0: none */
  bool late;                     /* its rows are written later than its signal says */
};

/* VS's last operation. */
struct cyc_vs {
  bool fp32;
  uint32_t tile, rows;
  uint64_t end;
};

struct cyc {
  const struct ct_cycles_core *core;
  struct ct_cycles *out;
  struct cyc_sem sem[CT_NUM_SEMS];
  struct cyc_queue queue[CYC_UNITS];
  struct cyc_pieces ld, st;
  struct cyc_walk ld_walk, st_walk;
  struct cyc_act_ld act_ld;
  struct cyc_act_st act_st;
  uint64_t ld_plain, st_plain; /* from when on what is compressed does not meet plain commands */
  uint64_t decoded, encoded;   /* cycles of tiles in groups beyond those of their beats */
  struct cyc_reads reads;
  uint64_t landed;       /* last beat of what the job itself has read */
  struct cyc_fetch next; /* the job behind this one */
  struct cyc_writes writes;
  struct cyc_mm mm;
  struct cyc_side vl, va, vs;
  uint64_t vl_write; /* last write of VL */
  struct cyc_va va_pipe;
  struct cyc_vs vs_before;
  uint64_t latency, parts, most_reads;
  uint64_t steps;
  int error;
};

/* ---- ct_cycles.c ---- */

static inline uint64_t cyc_max(uint64_t a, uint64_t b) {
  return a > b ? a : b;
}

static inline uint64_t cyc_min(uint64_t a, uint64_t b) {
  return a < b ? a : b;
}

/* The next command of a unit; NULL: there is none yet. */
const struct ct_cmd *cyc_front(const struct cyc *c, enum ct_cycles_unit u);
/* When it may be taken at the earliest, and takes it. */
uint64_t cyc_here(const struct cyc *c, enum ct_cycles_unit u);
void cyc_pop(struct cyc *c, enum ct_cycles_unit u, uint64_t at);

/* Whether all of these have been signalled; *at then is no earlier than that. Takes them. */
bool cyc_wait(struct cyc *c, const uint32_t *field, unsigned count, uint64_t *at);
/* Whether a signal has room; it is given with times that do not fall. */
bool cyc_room(const struct cyc *c, uint32_t field);
void cyc_signal(struct cyc *c, uint32_t field, uint64_t at);

/* ---- ct_cycles_dma.c ---- */

/* The job's descriptor is asked for, by ct_job_front, from a cycle on; `from`: it starts, or the
 * job before has come to its END. */
struct cyc_fetch cyc_fetch_from(uint64_t from, size_t commands);
static inline bool cyc_fetch_more(const struct cyc_fetch *f) {
  return f->desc || f->beats;
}
/* Its next burst; returns the beats of it. */
uint32_t cyc_fetch_burst(const struct cyc *c, struct cyc_reads *r, struct cyc_fetch *f);
/* A burst of LD, or of ST that is on offer from `ask` on. Of the one the last beat on the bus, of
 * the other its answer. */
uint64_t cyc_read(struct cyc *c, uint64_t ask, uint32_t beats);
uint64_t cyc_read_before(struct cyc *c, uint64_t ask); /* a beat, before bursts that came later */
uint64_t cyc_write(struct cyc *c, uint64_t ask, uint32_t beats);
bool cyc_ld(struct cyc *c);
bool cyc_st(struct cyc *c);

/* From an answer to its signal. */
enum { CYC_WRITE_SIGNAL = 3 };

/* ---- ct_cycles_comp.c ---- */

bool cyc_ld_groups(struct cyc *c);
bool cyc_st_groups(struct cyc *c);
static inline bool cyc_is_comp(const struct ct_cmd *cmd) {
  return cmd && CT_GET(cmd, DMA_COMP);
}

/* ---- ct_cycles_mm.c, ct_cycles_vpu.c ---- */

bool cyc_mm(struct cyc *c);
/* Whether a word of A was asked for at the pace of the array's rows about then. */
bool cyc_mm_paced(const struct cyc_mm *mm, uint64_t at);
bool cyc_vl(struct cyc *c);
bool cyc_va(struct cyc *c);
bool cyc_vs(struct cyc *c);

#endif
