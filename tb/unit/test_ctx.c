/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ct_ctx: jobs one after the other and overlapping, with six made-up units, a made-up fetch client,
 * a memory that answers stores late and a host that stalls, under every way in which a job can end,
 * at random times; beside the ring's jobs come batches from a made-up batcher. Programs have loops
 * and semaphores; sums are test_fetch's business.
 */
#include <string.h>

#include "ct_tb.h"

#include "ct_ctx_dut.h"
#include "host/lib/isa/ct_cmd.h"

enum {
  kUnits = 6,
  kQueue = 8, /* at least what a queue holds */
  kSems = 16,
  kSlots = 16,    /* of the ring, unless a test says otherwise */
  kProg = 0x1000, /* of job 0; units of 16 bytes, like all addresses here */
  kProgUnits = 128,
  kProgs = 2 * kSlots, /* HEAD moves before the program is read, so there is one more than slots */
  kRing = kProg + kProgs * kProgUnits, /* up to 2^10 slots */
  kMemUnits = kRing + 1024 * 8,
  kMaxCmds = kProgUnits / 2,
  kMaxRun = 250, /* commands that a program executes, NOPs and what ends it aside */
  kMaxSem = 200,
  kBatches = 8,       /* batches whose programs are remembered */
  kBatchProg = 0x100, /* of batch 0 */
  kDrainLimit = 3000,
  kPlans = 1024 /* jobs remembered: those that wait for their pop and those that resets drop */
};

/* Job states as STATUS shows them. */
enum { kIdle, kDesc, kProgram, kRun, kDrain, kAbort, kComplete, kHeld };

enum scenario {
  kNormal,
  kIllegal,   /* an unknown operation somewhere */
  kNoEnd,     /* runs off the end */
  kHang,      /* waits for a semaphore nobody gives: the watchdog */
  kSemError,  /* takes what is not there */
  kUnitError, /* a unit reports an error at some time */
  kCancel,
  kReset,
  kTwoResets, /* the second whenever it comes: the job may be over by then */
  kTwo,       /* two of these, one after the other */
  kBadCount,  /* NCMDS */
  kBadFlags,
  kRefused, /* the read of the descriptor is refused */
  kNoDesc,  /* the descriptor does not come; then a cancel */
  kDoomed,  /* cancelled by its number, before its start if it is read before */
  kDead,    /* a unit error, and the memory port does not get idle in time */
  kOldDead, /* the next job has begun, and the answers to this one's stores do not come */
  kScenarios
};

/* A job as the host has written it, and what the bench expects of it. */
typedef struct {
  enum scenario scenario;
  uint32_t tag, version;
  uint32_t watchdog;   /* its limit, 0: none */
  bool by_context;     /* the limit is not in the descriptor but the context's */
  unsigned ncmds;      /* that exist */
  uint32_t code, addr; /* how it ends if nobody interferes */
  uint32_t prog;
  bool overlap, chain, doomed;
  unsigned when; /* cycles after the start, for what happens at some time */
  uint64_t arrive;
} plan;

typedef struct {
  bool active, begun;
  struct ct_cmd cmd;
  unsigned left;    /* cycles to go, once begun */
  unsigned signals; /* sent */
  ct_stall stall;
} unit;

/* Where the execution of a program stands, and what it has sent to the units' queues. */
typedef struct {
  unsigned pc, depth, first[CT_NUM_LOOPS];
  uint32_t left[CT_NUM_LOOPS];
  bool ended;
  uint32_t id[kUnits][kQueue];
  unsigned put[kUnits], taken[kUnits];
} walk;

/* A request of the fetch client. */
typedef struct {
  bool desc, soft, dropping, failed;
  bool stale; /* of a job that a reset has dropped */
  uint32_t addr;
  unsigned beats, next, delay;
  unsigned bad; /* soft: fails at this beat; beats + 1: does not */
  unsigned in;  /* soft: so many beats lie in the window */
} request;

typedef struct {
  request r[2]; /* the older first */
  unsigned count;
  ct_stall stall;
} fetcher;

/* A job that has started and not completed. */
typedef struct {
  uint32_t job;
  plan *plan;
  bool batch;
  bool skipped; /* what it continues has failed */
  bool settled; /* code and addr are final: it only waits to be taken */
  uint64_t start;
  uint32_t code, addr; /* of the first interference it must feel */
  unsigned rows;
  bool no_desc;
} run;

/* What offers batches. */
typedef struct {
  unsigned per_mille; /* of the cycles in which one gets due; 0: there is none */
  bool due, go, forming, lost, whole;
  unsigned wait, sent, rows, count;
  uint32_t desc[CT_DESC_BYTES / 4];
  plan *plan, plans[kBatches];
  ct_stall take;
} batcher;

typedef struct {
  ct_ctx_dut *dut;
  ct_rng rng;
  uint64_t cycle;
  uint32_t mem[kMemUnits][4];
  unit unit[kUnits];
  fetcher fetch;
  ct_stall host, pop, gate;
  enum scenario only; /* kScenarios: all */
  unsigned slots;
  unsigned losses;   /* in percent of the soft fetches */
  unsigned chains;   /* in percent of the ring's jobs */
  unsigned patience; /* about so many cycles until a context with a dead port is reset; 0: never */
  bool last;         /* answers to stores are errors when nothing else is missing */

  batcher batcher;
  plan plans[kPlans];
  uint32_t written, visible, started, completed; /* jobs so far */
  uint32_t next;                                 /* the one that starts next */

  /* The job in front, and the one before if only answers to its stores are missing. */
  run run, old;
  bool running, old_valid;
  walk walk;                      /* of its program */
  bool ring_bad;                  /* the last completion had an error */
  bool away;                      /* which has been lost while it ran, and is not here again */
  unsigned struck;                /* interferences so far */
  unsigned again;                 /* cycles to the second reset, 0: none */
  bool next_read;                 /* the descriptor of the next job has been read */
  bool beat_first, beat_last;     /* of a descriptor, in this cycle */
  uint32_t last_prog, last_beats; /* of the last descriptor that was read */
  bool stuck;
  unsigned stuck_left;
  unsigned answers, old_answers; /* outstanding; of these the old job's, which come first */
  unsigned answer_left, hold;    /* cycles to the next one */
  bool old_fails;
  struct {
    unsigned overlaps, ahead, guesses, wrong, lost, cut, late, jumps_away, old_errors, old_deads,
        doomed;
    unsigned skipped, continued; /* jobs that say CHAIN */
    unsigned programs;           /* asked for */
    unsigned batches, batch_overlaps, parked, dropped;
    unsigned again[8]; /* second resets, by state */
  } n;
  struct {
    uint64_t start, end;
    uint32_t code, addr, rows, job;
    bool no_desc;
  } cpl[32];
  unsigned cpl_head, cpl_tail;
  unsigned abandoned;
  unsigned seen[kScenarios][CT_DEV_SKIPPED + 1]; /* codes */
} bench;

/* ---- Programs ------------------------------------------------------------------------------ */

static const uint8_t unit_codes[kUnits] = {CT_OP_LD, CT_OP_ST, CT_OP_MM,
                                           CT_OP_VL, CT_OP_VA, CT_OP_VS};

static unsigned unit_of(uint32_t code) {
  unsigned u = 0;
  while (u < kUnits && unit_codes[u] != code)
    ++u;
  assert_true(u < kUnits);
  return u;
}

/* A legal command of the unit that carries an id in a field nobody checks. */
static struct ct_cmd unit_command(unsigned u, uint32_t id) {
  struct ct_cmd c = {{0}};
  CT_PUT(&c, ALL_OP, unit_codes[u]);
  switch (u) {
    case 0:
    case 1:
      CT_PUT(&c, DMA_NB, 1);
      CT_PUT(&c, DMA_N1, 1);
      CT_PUT(&c, DMA_N2, 1);
      CT_PUT(&c, DMA_DRAM, id);
      break;
    case 2:
      CT_PUT(&c, MM_KT, 1);
      CT_PUT(&c, MM_NT, 1);
      CT_PUT(&c, MM_ROWS, 16);
      CT_PUT(&c, MM_B, id);
      break;
    case 3:
      CT_PUT(&c, VL_ROWS, 1);
      CT_PUT(&c, VL_SPM, id);
      break;
    case 4:
      CT_PUT(&c, VA_ROWS, 1);
      CT_PUT(&c, VA_COLS, 1);
      CT_PUT(&c, VA_SB, id);
      break;
    default:
      CT_PUT(&c, VS_ROWS, 1);
      CT_PUT(&c, VS_SPM, id);
  }
  return c;
}

static uint32_t id_of(unsigned u, const struct ct_cmd *c) {
  switch (u) {
    case 0:
    case 1:
      return CT_GET(c, DMA_DRAM);
    case 2:
      return CT_GET(c, MM_B);
    case 3:
      return CT_GET(c, VL_SPM);
    case 4:
      return CT_GET(c, VA_SB);
    default:
      return CT_GET(c, VS_SPM);
  }
}

/* A program as it is written: what it may still hold, and what it gives. */
typedef struct {
  bench *b;
  plan *p;
  uint32_t prog;
  unsigned room;         /* commands */
  unsigned run;          /* how many of them it may execute */
  unsigned all[kSems];   /* tokens given so far, whoever takes them */
  unsigned given[kSems]; /* of these are there, in each pass of the innermost loop */
} writer;

/* Semaphore s is waited for by unit s % 6 only, and only for what an earlier command of the same
 * pass gives: so the program always comes to its end. */
static struct ct_cmd random_command(writer *w, uint32_t id, unsigned u, unsigned times) {
  ct_rng *rng = &w->b->rng;
  struct ct_cmd c = unit_command(u, id);
  static const enum ct_field_id waits[] = {CT_F_ALL_WAIT0, CT_F_ALL_WAIT1, CT_F_ALL_WAIT2};
  unsigned n = 0;
  for (unsigned s = u; s < kSems && n < 3; s += kUnits) {
    if (!w->given[s] || ct_rng_percent(rng, 30)) continue;
    --w->given[s];
    ct_cmd_set(&c, waits[n++], CT_SEM(s));
  }
  for (unsigned k = 0; k < 2; ++k) {
    const unsigned s = ct_rng_below(rng, kSems);
    if (w->all[s] + times > kMaxSem || ct_rng_percent(rng, 40)) continue;
    w->all[s] += times;
    ++w->given[s];
    ct_cmd_set(&c, k ? CT_F_ALL_SIG1 : CT_F_ALL_SIG0, CT_SEM(s));
  }
  return c;
}

static void put_command(writer *w, const struct ct_cmd *c) {
  memcpy(w->b->mem[w->prog + 2 * w->p->ncmds], c->w, 32);
  ++w->p->ncmds;
  --w->room;
}

static void put_control(writer *w, unsigned code, uint32_t count) {
  struct ct_cmd c = {{0}};
  CT_PUT(&c, ALL_OP, code);
  CT_PUT(&c, CTL_COUNT, count);
  put_command(w, &c);
}

/* A command of a random unit, executed so many times. */
static void put_random(writer *w, unsigned times) {
  const unsigned u = ct_rng_below(&w->b->rng, kUnits);
  const uint32_t id = (w->b->written % 256) << 8 | w->p->ncmds;
  const struct ct_cmd c = random_command(w, id, u, times);
  w->run -= times;
  put_command(w, &c);
}

static void put_block(writer *w, unsigned n, unsigned depth, unsigned times);

/* A body may be empty, or a NOP; few passes or many. What its passes leave over is there behind. */
static void put_loop(writer *w, unsigned depth, unsigned times) {
  ct_rng *rng = &w->b->rng;
  const bool idle = ct_rng_percent(rng, 30);
  const unsigned most = w->run / times < 6 ? 1 + w->run / times : 6;
  const unsigned passes = 1 + ct_rng_below(rng, idle && depth == 0 ? 60 : most);
  unsigned given[kSems];
  memcpy(given, w->given, sizeof given);
  memset(w->given, 0, sizeof w->given);
  w->room -= w->room > 0; /* for the ENDL */
  put_control(w, CT_OP_LOOP, passes);
  if (!idle)
    put_block(w, ct_rng_below(rng, 5), depth + 1, times * passes);
  else if (w->room && ct_rng_percent(rng, 50))
    put_control(w, CT_OP_NOP, 0);
  ++w->room;
  put_control(w, CT_OP_ENDL, 0);
  for (unsigned s = 0; s < kSems; ++s)
    w->given[s] = w->given[s] * passes + given[s];
}

/* n commands, or loops of them, as far as there is room. */
static void put_block(writer *w, unsigned n, unsigned depth, unsigned times) {
  for (; n && w->room && w->run >= times; --n) {
    if (w->room >= 3 && depth < CT_NUM_LOOPS && ct_rng_percent(&w->b->rng, 15))
      put_loop(w, depth, times);
    else
      put_random(w, times);
  }
}

/* Something that is never over: a command that waits for what nobody gives, or a loop. */
static void put_hang(writer *w) {
  const unsigned u = ct_rng_below(&w->b->rng, kUnits);
  w->p->code = CT_DEV_WATCHDOG;
  if (w->given[u] || ct_rng_percent(&w->b->rng, 30)) {
    put_control(w, CT_OP_LOOP, UINT32_MAX);
    for (unsigned n = ct_rng_below(&w->b->rng, 3); n; --n)
      put_control(w, CT_OP_NOP, 0);
    put_control(w, CT_OP_ENDL, 0);
    return;
  }
  struct ct_cmd c = unit_command(u, w->p->ncmds);
  CT_PUT(&c, ALL_WAIT0, CT_SEM(u));
  for (unsigned s = u; s < kSems; s += kUnits) {
    w->all[s] = kMaxSem; /* so that nobody gives it */
    w->given[s] = 0;
  }
  put_command(w, &c);
}

/* What is wrong with the program stands between two parts of it, neither of them in a loop. */
static void write_program(bench *b, plan *p, uint32_t prog) {
  const unsigned n = 1 + ct_rng_below(&b->rng, 40), before = ct_rng_below(&b->rng, n);
  writer w = {.b = b, .p = p, .prog = prog, .room = kMaxCmds - 10, .run = kMaxRun};
  put_block(&w, before, 0, 1);
  w.room += 4;
  if (p->scenario == kHang) put_hang(&w);
  if (p->scenario == kIllegal) {
    p->code = CT_DEV_ILLEGAL;
    p->addr = p->ncmds;
    put_control(&w, 0x3f, 0);
  }
  w.room -= w.room < 4 ? w.room : 4;
  put_block(&w, n - before, 0, 1);
  w.room = 6;
  put_control(&w, p->scenario == kNoEnd ? CT_OP_NOP : CT_OP_END, 0);
  if (p->scenario == kNoEnd) {
    p->code = CT_DEV_ILLEGAL;
    p->addr = p->ncmds;
  } else if (ct_rng_percent(&b->rng, 30)) {
    const struct ct_cmd rest = unit_command(0, 0); /* never reached, but fetched */
    for (unsigned i = 0; i < 4; ++i)
      put_command(&w, &rest);
  }
}

/* One command has been executed, or dispatched. */
static void walk_on(bench *b) {
  walk *w = &b->walk;
  struct ct_cmd c;
  assert_false(w->ended);
  memcpy(c.w, b->mem[b->run.plan->prog + 2 * w->pc], 32);
  const uint32_t code = CT_GET(&c, ALL_OP);
  ++w->pc;
  if (code == CT_OP_END) {
    w->ended = true;
  } else if (code == CT_OP_LOOP) {
    w->first[w->depth] = w->pc;
    w->left[w->depth++] = CT_GET(&c, CTL_COUNT);
  } else if (code == CT_OP_ENDL) {
    if (--w->left[w->depth - 1]) {
      w->pc = w->first[w->depth - 1];
      b->n.jumps_away += b->away;
    } else {
      --w->depth;
    }
  } else if (code != CT_OP_NOP) {
    const unsigned u = unit_of(code);
    assert_true(w->put[u] - w->taken[u] < kQueue);
    w->id[u][w->put[u]++ % kQueue] = id_of(u, &c);
  }
}

/* The program has ended, and all that it has for the units is there. */
static bool walked(const bench *b) {
  for (unsigned u = 0; u < kUnits; ++u)
    if (b->walk.put[u] != b->walk.taken[u]) return false;
  return b->walk.ended;
}

static enum scenario choose(bench *b) {
  if (b->only != kScenarios) return b->only;
  return ct_rng_percent(&b->rng, 40) ? kNormal : (enum scenario)ct_rng_below(&b->rng, kDead);
}

/* Whether both programs are what every other job may have: nothing is wrong with them. */
static bool same_program(const plan *x, const plan *y) {
  const uint32_t special = 1u << kIllegal | 1u << kNoEnd | 1u << kHang | 1u << kBadCount;
  return !((special >> x->scenario | special >> y->scenario) & 1);
}

/* The descriptor of a plan whose program is written, and what is wrong with it. */
static void describe(bench *b, plan *p, uint32_t *d, bool batch) {
  if (p->code == CT_DEV_WATCHDOG) p->watchdog = 300 + ct_rng_below(&b->rng, 1500);
  ct_rng_fill(&b->rng, d, CT_DESC_BYTES);
  d[CT_DESC_TAG] = p->tag;
  d[CT_DESC_VERSION] = p->version;
  d[CT_DESC_PROG] = p->prog;
  d[CT_DESC_NCMDS] = p->ncmds;
  p->by_context = ct_rng_percent(&b->rng, 50);
  d[CT_DESC_WATCHDOG] = p->by_context ? 0 : p->watchdog;
  p->overlap = ct_rng_percent(&b->rng, 60);
  p->chain = !batch && ct_rng_percent(&b->rng, b->chains);
  d[CT_DESC_FLAGS] = (p->overlap ? CT_FLAG_OVERLAP : 0) | (p->chain ? CT_FLAG_CHAIN : 0);
  if (p->scenario == kBadCount) {
    d[CT_DESC_NCMDS] =
        ct_rng_percent(&b->rng, 50) ? 0 : CT_PROG_MAX + 1 + ((uint32_t)ct_rng_u64(&b->rng) >> 8);
    p->code = CT_DEV_DESCRIPTOR;
    p->addr = CT_DESC_NCMDS;
  }
  if (p->scenario == kBadFlags) {
    const unsigned legal = batch ? 1 : 2; /* a batch continues nothing */
    d[CT_DESC_FLAGS] |= UINT32_C(1) << (legal + ct_rng_below(&b->rng, 32 - legal));
    p->code = CT_DEV_DESCRIPTOR;
    p->addr = CT_DESC_FLAGS;
  }
}

/* The next batch: any way to end that a batch can have. */
static void write_batch(bench *b) {
  const uint32_t never = 1u << kTwoResets | 1u << kRefused | 1u << kNoDesc | 1u << kDoomed;
  batcher *x = &b->batcher;
  plan *p = x->plan = &x->plans[x->count % kBatches];
  memset(p, 0, sizeof *p);
  do
    p->scenario = choose(b);
  while (never >> p->scenario & 1);
  p->when = 1 + ct_rng_below(&b->rng, ct_rng_percent(&b->rng, 30) ? 40 : 400);
  p->prog = kBatchProg + x->count++ % kBatches * kProgUnits;
  write_program(b, p, p->prog);
  describe(b, p, x->desc, true);
  x->rows = 1 + ct_rng_below(&b->rng, CT_BATCH_MAX);
}

/* Writes the next descriptor and its program into their slots. */
static void write_job(bench *b) {
  plan *p = &b->plans[b->written % kPlans];
  memset(p, 0, sizeof *p);
  p->scenario = choose(b);
  const plan *before = &b->plans[(b->written - 1) % kPlans];
  p->tag = (uint32_t)ct_rng_u64(&b->rng) | 1;
  p->version = (uint32_t)ct_rng_u64(&b->rng);
  p->when = 1 + ct_rng_below(&b->rng, ct_rng_percent(&b->rng, 30) ? 40 : 400);
  const unsigned slot = b->written % b->slots;
  p->prog = kProg + b->written % kProgs * kProgUnits;
  /* Often the program of the job before, if that one is not too old. */
  if (b->written && same_program(before, p) && b->written % 8 && ct_rng_percent(&b->rng, 60)) {
    p->prog = before->prog;
    p->ncmds = before->ncmds;
  } else {
    write_program(b, p, p->prog);
  }
  describe(b, p, b->mem[kRing + 8 * slot], false);
  ++b->written;
}

/* ---- The made-up surroundings -------------------------------------------------------------- */

static unsigned status_of(const bench *b) {
  return *b->dut->status_o;
}

static bool in_job(const bench *b) {
  return status_of(b) >= kDesc && status_of(b) <= kDrain;
}

static plan *running(bench *b) {
  return b->run.plan;
}

/* The job whose number is HEAD's. */
static uint32_t head_job(const bench *b) {
  return b->visible - (uint16_t)(b->visible - *b->dut->head_o);
}

static uint16_t wait_mask(const struct ct_cmd *c) {
  static const enum ct_field_id waits[] = {CT_F_ALL_WAIT0, CT_F_ALL_WAIT1, CT_F_ALL_WAIT2};
  uint16_t mask = 0;
  for (unsigned w = 0; w < 3; ++w) {
    const uint32_t v = ct_cmd_get(c, waits[w]);
    if (v & 16) mask |= (uint16_t)(1u << (v & 15));
  }
  return mask;
}

/* What a unit does in this cycle with the command it holds. */
static void unit_step(bench *b, unsigned u, uint16_t *dec, uint16_t *inc) {
  unit *x = &b->unit[u];
  const bool flush = *b->dut->flush_o;
  if (!x->active) return;
  if (!x->begun) {
    const uint16_t mask = wait_mask(&x->cmd);
    if (flush) {
      x->active = false;
    } else if ((*b->dut->sem_nz_o & mask) == mask) {
      *dec = mask;
      x->begun = true;
    }
    return;
  }
  if (x->left) {
    --x->left;
    return;
  }
  const uint32_t sig[2] = {CT_GET(&x->cmd, ALL_SIG0), CT_GET(&x->cmd, ALL_SIG1)};
  while (x->signals < 2 && !(sig[x->signals] & 16))
    ++x->signals;
  if (x->signals == 2) {
    x->active = false;
    b->answers += u == 1;
  } else {
    *inc = (uint16_t)(1u << (sig[x->signals++] & 15));
  }
}

static void set_idle(bench *b, bool quiet) {
  ct_ctx_dut *d = b->dut;
  *d->fetch_idle_i = !b->fetch.count;
  *d->units_quiet_i = quiet;
  *d->units_done_i = quiet && !b->answers;
  *d->units_idle_i = quiet && !b->answers && !b->fetch.count;
}

/* The answers to stores come in order, those of the old job with an error now and then. */
static void answers_step(bench *b) {
  ct_ctx_dut *d = b->dut;
  *d->old_err_i = 0;
  *d->old_i = b->old_answers > 0;
  if (b->hold) {
    --b->hold;
  } else if (b->answers && b->answer_left) {
    --b->answer_left;
  } else if (b->answers) {
    if (b->old_answers && b->old_fails && ct_rng_percent(&b->rng, 50)) {
      *d->old_err_i = 1;
      *d->old_err_addr_i = (uint32_t)ct_rng_u64(&b->rng);
      if (!b->old.code) {
        b->old.code = CT_DEV_AXI_WRITE;
        b->old.addr = *d->old_err_addr_i;
        ++b->n.old_errors;
      }
    }
    --b->answers;
    b->old_answers -= b->old_answers > 0;
    b->answer_left = ct_rng_below(&b->rng, 40);
  }
}

static void units_step(bench *b) {
  ct_ctx_dut *d = b->dut;
  uint16_t dec[kUnits] = {0}, inc[kUnits] = {0};
  bool quiet = !b->stuck;
  *d->cmd_ready_i = 0;
  for (unsigned u = 0; u < kUnits; ++u) {
    unit *x = &b->unit[u];
    unit_step(b, u, &dec[u], &inc[u]);
    if (x->active || dec[u] || inc[u]) quiet = false;
    if (!x->active && !ct_stall_next(&x->stall)) *d->cmd_ready_i |= (uint8_t)(1u << u);
  }
  memcpy(d->sem_dec_i, dec, sizeof dec);
  memcpy(d->sem_inc_i, inc, sizeof inc);
  set_idle(b, quiet);
}

static void pop_request(fetcher *f) {
  f->r[0] = f->r[1];
  --f->count;
}

/* The failure of a soft request: what came before it or comes behind it is good, but no use. */
static void fail_request(bench *b, request *r) {
  *b->dut->fetch_bad_i = 1;
  ++b->n.lost;
  /* What has been asked for with a descriptor that is still to come is lost with it. */
  b->fetch.r[0].failed = r->failed = true;
  if (r->desc || !b->running || status_of(b) < kRun || b->walk.ended) return;
  b->away = true;
  b->n.late += b->walk.pc > 0;
}

/* A beat of the oldest request, or its failure; there may be several. */
static void deliver(bench *b) {
  ct_ctx_dut *d = b->dut;
  fetcher *f = &b->fetch;
  request *r = &f->r[0];
  if (r->next == r->bad) {
    fail_request(b, r);
    r->bad = ct_rng_percent(&b->rng, 70) ? r->beats + 1 : r->next + 1 + ct_rng_below(&b->rng, 20);
  } else {
    *d->fetch_rvalid_i = 1;
    memcpy(d->fetch_rdata_i, b->mem[(r->addr + r->next) % kMemUnits], 16);
    b->beat_first = r->desc && r->next == 0 && !r->failed && !r->stale;
    b->beat_last = r->desc && r->next + 1 == r->beats && !r->failed && !r->stale;
    if (!r->desc && !r->soft && r->next + 1 == r->beats) b->away = false;
  }
  if (++r->next == r->beats) pop_request(f);
}

/* What lies outside the window is not asked for; that is known before the beats in front have come,
 * even those of the request before. */
static void cut_request(bench *b) {
  fetcher *f = &b->fetch;
  request *r = f->count ? &f->r[f->count - 1] : NULL;
  if (!r || r->in >= r->beats || r->delay || r->dropping || !ct_rng_percent(&b->rng, 10)) return;
  fail_request(b, r);
  ++b->n.cut;
  r->beats = r->in = r->in < r->next ? r->next : r->in;
  r->bad = r->beats + 1;
  f->count -= r->next == r->beats;
}

/* Beats come in order, with gaps; a flush lets them come to an end or drops the rest. */
static void fetch_step(bench *b) {
  ct_ctx_dut *d = b->dut;
  fetcher *f = &b->fetch;
  *d->fetch_rvalid_i = *d->fetch_bad_i = 0;
  b->beat_first = b->beat_last = false;
  *d->fetch_ready_i = f->count < 2 && !ct_stall_next(&f->stall);
  if (!f->count) return;
  for (unsigned i = 0; i < f->count; ++i) {
    request *r = &f->r[i];
    r->delay -= r->delay > 0;
    if (!*d->flush_o || r->dropping) continue;
    r->bad = r->beats + 1;
    r->in = r->beats;
    r->dropping = r->delay > 1000 || ct_rng_percent(&b->rng, 50);
    if (r->dropping) r->delay = ct_rng_below(&b->rng, 50);
  }
  if (!f->r[0].delay) {
    if (f->r[0].dropping)
      pop_request(f);
    else if (!ct_stall_next(&f->stall))
      deliver(b);
  }
  cut_request(b);
}

/* The job feels this from now on, unless something else came first. */
static void strike(bench *b, uint32_t code, uint32_t addr) {
  ++b->struck;
  if (b->run.code) return;
  b->run.code = code;
  b->run.addr = addr;
}

static void unit_error(bench *b) {
  static const uint8_t codes[] = {CT_DEV_DRAM_READ_WINDOW, CT_DEV_AXI_WRITE, CT_DEV_PARITY};
  const unsigned block = ct_rng_below(&b->rng, 3);
  const uint32_t addr = (uint32_t)ct_rng_u64(&b->rng);
  *b->dut->err_i = (uint8_t)(1u << block);
  *b->dut->err_code_i = (uint32_t)codes[block] << 8 * block;
  b->dut->err_addr_i[block] = addr;
  strike(b, codes[block], addr);
}

static void reset_context(bench *b) {
  *b->dut->reset_i = 1;
  strike(b, CT_DEV_RESET, 0);
}

/* Another reset, in any state. (In the very cycle in which a job fails by itself, its own error may
 * come first: jobs that do are left alone.) */
static bool reset_again(bench *b) {
  if (!b->again || --b->again) return false;
  if (in_job(b) && (running(b)->code || running(b)->doomed)) {
    b->again = 1;
    return false;
  }
  ++b->n.again[status_of(b)];
  if (in_job(b))
    reset_context(b);
  else
    *b->dut->reset_i = 1;
  return true;
}

static void name_job(ct_ctx_dut *d, unsigned number) {
  uint16_t *num = (uint16_t *)d->cancel_num_i;
  for (unsigned i = 0; i < 3; ++i)
    num[i] = (uint16_t)(number + i);
}

static void cancel(bench *b) {
  *b->dut->cancel_i = 1;
  *b->dut->cancel_named_i = !b->run.batch && ct_rng_percent(&b->rng, 50);
  name_job(b->dut, b->started - 1);
  strike(b, CT_DEV_CANCELLED, 0);
}

/* Nobody has or gives semaphore s in this cycle. */
static bool is_zero(const bench *b, unsigned s) {
  const uint16_t *inc = (const uint16_t *)b->dut->sem_inc_i;
  unsigned any = *b->dut->sem_nz_o;
  for (unsigned u = 0; u < kUnits; ++u)
    any |= inc[u];
  return !(any >> s & 1);
}

/* The job in front continues what has failed. */
static bool is_skipped(const bench *b) {
  const plan *p = b->run.plan;
  return !b->run.batch && p->chain && b->ring_bad && p->code != CT_DEV_DESCRIPTOR;
}

/* In its first cycle with a descriptor; what has hit it before counts, what comes with it does not.
 */
static bool skip_front(bench *b) {
  if (!b->running || status_of(b) != kProgram || !is_skipped(b)) return false;
  b->run.skipped = !b->run.code;
  if (b->run.skipped) b->run.code = CT_DEV_SKIPPED;
  return true;
}

static void interfere_once(bench *b, enum scenario s) {
  switch (s) {
    case kUnitError:
    case kDead:
      unit_error(b);
      if (s == kDead) {
        b->stuck = true;
        b->stuck_left = kDrainLimit + 500;
      }
      break;
    case kCancel:
    case kNoDesc:
    case kDoomed:
      cancel(b);
      break;
    case kTwoResets:
      b->again = ct_rng_percent(&b->rng, 30) ? 1 : 1 + ct_rng_below(&b->rng, 100);
      reset_context(b);
      break;
    case kReset:
      reset_context(b);
      break;
    default:
      break;
  }
}

/* Cancels by number: a job that is read and has not begun, or one that is not there. */
static void doom(bench *b) {
  ct_ctx_dut *d = b->dut;
  plan *next = &b->plans[b->next % kPlans];
  const request *r = &b->fetch.r[0];
  const bool reading = status_of(b) == kDrain && b->fetch.count && r->desc;
  if ((b->next_read || reading) && next->scenario == kDoomed && !next->doomed &&
      ct_rng_percent(&b->rng, 10)) {
    *d->cancel_i = *d->cancel_named_i = 1;
    name_job(d, b->next);
    next->doomed = true;
  } else if (ct_rng_percent(&b->rng, 5)) {
    *d->cancel_i = *d->cancel_named_i = 1;
    const bool front = b->running && !b->run.batch;
    name_job(d, b->started - 1 - front - ct_rng_below(&b->rng, 1000));
  }
}

/* At the time the plan has set. A second one strikes a few cycles after the first. */
static void interfere(bench *b) {
  static const enum scenario any[] = {kUnitError, kCancel, kReset};
  ct_ctx_dut *d = b->dut;
  *d->err_i = *d->cancel_i = *d->cancel_named_i = *d->reset_i = 0;
  if (b->stuck && b->stuck_left-- == 0) b->stuck = false;
  if (b->patience && status_of(b) == kAbort && ct_rng_below(&b->rng, b->patience) == 0)
    *d->reset_i = *d->dead_o;
  const bool skips = skip_front(b);
  if (reset_again(b)) return;
  doom(b);
  if (skips || !in_job(b) || *d->cancel_i) return;
  const plan *p = running(b);
  const uint64_t age = b->cycle - b->run.start;
  if (p->scenario == kRefused) {
    const request *r = &b->fetch.r[0];
    if (b->fetch.count && !r->soft && status_of(b) == kDesc && r->delay == 1) {
      *d->err_i = 1;
      *d->err_code_i = CT_DEV_DRAM_READ_WINDOW;
      d->err_addr_i[0] = r->addr;
      strike(b, CT_DEV_DRAM_READ_WINDOW, r->addr);
      b->fetch.count = 0;
    }
  } else if (p->scenario == kTwo) {
    if (b->struck < 2 && age >= p->when && (b->struck == 0 || ct_rng_percent(&b->rng, 20)))
      interfere_once(b, any[ct_rng_below(&b->rng, 3)]);
  } else if (p->scenario == kSemError) {
    if (!b->struck && status_of(b) == kRun && age >= p->when && is_zero(b, 3)) {
      ((uint16_t *)d->sem_dec_i)[4] |= 1u << 3;
      *d->units_idle_i = *d->units_done_i = *d->units_quiet_i = 0;
      strike(b, CT_DEV_SEM, 3);
    }
  } else if (b->last) {
    if (!b->struck && status_of(b) == kDrain && *d->units_quiet_i && !*d->units_done_i &&
        ct_rng_percent(&b->rng, 15)) {
      *d->err_i = 1;
      *d->err_code_i = CT_DEV_AXI_WRITE;
      strike(b, CT_DEV_AXI_WRITE, d->err_addr_i[0]);
    }
  } else if (!b->struck && age >= p->when) {
    interfere_once(b, p->scenario);
  }
}

/* ---- Batches ------------------------------------------------------------------------------- */

/* A beat of the batch's descriptor. */
static void send_beat(bench *b) {
  ct_ctx_dut *d = b->dut;
  batcher *x = &b->batcher;
  *d->batch_valid_i = 1;
  *d->batch_first_i = x->sent == 0;
  *d->batch_rows_i = (uint8_t)x->rows;
  memcpy(d->batch_data_i, x->desc + 4 * x->sent, 16);
  if (x->sent == 0) {
    b->last_prog = x->desc[CT_DESC_PROG];
    b->last_beats = 2 * x->desc[CT_DESC_NCMDS];
  }
  x->wait = ct_rng_percent(&b->rng, 50) ? 3 : ct_rng_below(&b->rng, 3);
  x->whole = ++x->sent == 8;
}

/* Formed in the cycle after it could be taken; the descriptor comes later, or a reset first. */
static void batcher_step(bench *b) {
  ct_ctx_dut *d = b->dut;
  batcher *x = &b->batcher;
  *d->batch_valid_i = *d->batch_first_i = 0;
  *d->batch_on_i = x->per_mille > 0;
  *d->batch_done_ready_i = !ct_stall_next(&x->take);
  if (x->forming && (x->whole || (x->lost && ct_rng_percent(&b->rng, 20)))) x->forming = false;
  if (x->go) {
    write_batch(b);
    x->forming = true;
    x->go = x->due = x->lost = x->whole = false;
    x->sent = 0;
    x->wait = 8 + ct_rng_below(&b->rng, 60);
  }
  if (!x->forming && ct_rng_below(&b->rng, 1000) < x->per_mille) x->due = true;
  *d->batch_due_i = x->due;
  *d->form_i = x->forming;
  if (!x->forming || x->lost) return;
  if (x->wait)
    --x->wait;
  else
    send_beat(b);
}

/* What the batcher sees at the end of the cycle. */
static void batcher_look(bench *b) {
  const ct_ctx_dut *d = b->dut;
  batcher *x = &b->batcher;
  if (*d->reset_i) {
    if (x->plan && !*d->batch_start_o) ++b->n.dropped;
    x->lost = true;
    x->plan = NULL;
  }
  x->go = *d->batch_ready_o && x->due && !x->forming && !*d->reset_i && ct_rng_percent(&b->rng, 60);
}

/* ---- Host ---------------------------------------------------------------------------------- */

static uint32_t outstanding(const bench *b) {
  return (uint16_t)(b->written - *b->dut->head_o);
}

static void host_step(bench *b) {
  ct_ctx_dut *d = b->dut;
  *d->tail_we_i = 0;
  if (*d->reset_i || ct_stall_next(&b->host)) return;
  if (outstanding(b) < kSlots && ct_rng_percent(&b->rng, 50)) write_job(b);
  if (b->visible != b->written && ct_rng_percent(&b->rng, 30)) {
    *d->tail_we_i = 1;
    *d->tail_i = (uint16_t)b->written;
    for (; b->visible != b->written; ++b->visible)
      b->plans[b->visible % kPlans].arrive = b->cycle;
  }
}

/* One cycle, in which nothing but this happens. */
static void ring_bell(bench *b) {
  ct_ctx_dut *d = b->dut;
  *d->tail_i = (uint16_t)b->written;
  *d->tail_we_i = 1;
  *d->cycle_i = b->cycle;
  *d->cycle_next_i = b->cycle + 1;
  for (; b->visible != b->written; ++b->visible)
    b->plans[b->visible % kPlans].arrive = b->cycle;
  ct_ctx_tick(d);
  ++b->cycle;
  *d->tail_we_i = 0;
}

static uint64_t field(const bench *b, unsigned lsb, unsigned width) {
  uint64_t v = 0;
  for (unsigned i = 0; i < width; ++i)
    v |= (uint64_t)(b->dut->cpl_o[(lsb + i) / 32] >> (lsb + i) % 32 & 1) << i;
  return v;
}

/* The oldest completion, against what the monitor has noted when it appeared. */
static void check_completion(bench *b) {
  const unsigned at = b->cpl_head++ % 32;
  const plan *p = &b->plans[b->cpl[at].job % kPlans];
  /* Without a descriptor: what of it may have come. */
  const bool none = b->cpl[at].no_desc && field(b, 0, 32) == 0;
  assert_int_equal(field(b, 0, 32), none ? 0 : p->tag);
  assert_int_equal(field(b, 32, 8), b->cpl[at].code);
  assert_int_equal(field(b, 40, 32), b->cpl[at].addr);
  assert_int_equal(field(b, 72, 32), none ? 0 : p->version);
  assert_int_equal(field(b, 104, 64), p->arrive);
  assert_int_equal(field(b, 168, 64), b->cpl[at].start);
  assert_int_equal(field(b, 232, 64), b->cpl[at].end);
  assert_int_equal(field(b, 296, 32), b->cpl[at].rows);
}

static void pop_step(bench *b) {
  *b->dut->cpl_pop_i = *b->dut->cpl_valid_o && !ct_stall_next(&b->pop);
  if (*b->dut->cpl_pop_i) check_completion(b);
}

/* ---- Monitor ------------------------------------------------------------------------------- */

/* The job in front has nothing left but answers; the next one takes its place. */
static void on_overlap(bench *b) {
  const bool batch = *b->dut->batch_start_o;
  const plan *p = running(b);
  const plan *next = batch ? b->batcher.plan : &b->plans[b->next % kPlans];
  assert_int_equal(status_of(b), kDrain);
  assert_true(*b->dut->overlap_i);
  assert_true(batch || b->next_read);
  b->n.batch_overlaps += batch || b->run.batch;
  assert_true(next->overlap && !next->chain);
  assert_false(b->old_valid);
  assert_int_equal(b->run.code, CT_DEV_OK);
  assert_true(*b->dut->units_quiet_i && *b->dut->seal_o);
  assert_int_equal(p->code, CT_DEV_OK);
  assert_true(walked(b));
  b->old = b->run;
  b->old_valid = true;
  b->old_answers = b->answers;
  b->old_fails = ct_rng_percent(&b->rng, 20);
  if (p->scenario == kOldDead && b->answers) {
    b->hold = kDrainLimit + 500;
    b->old.code = CT_DEV_DEAD;
    b->old.addr = 0;
    ++b->n.old_deads;
  }
  ++b->n.overlaps;
}

/* The code and address of the job in front, as it ends. */
static void settle(bench *b) {
  run *r = &b->run;
  const plan *p = r->plan;
  if (!r->code) {
    r->code = p->code;
    r->addr = p->addr;
  }
  if (r->code == CT_DEV_WATCHDOG) r->addr = b->walk.pc;
  if (p->scenario == kDead && b->struck && !r->skipped) {
    r->code = CT_DEV_DEAD;
    r->addr = 0;
  }
  if (r->code == CT_DEV_OK) assert_true(walked(b));
  r->settled = true;
}

/* A batch that only waits to be taken goes aside. */
static void park(bench *b) {
  assert_true(b->run.batch && *b->dut->batch_done_valid_o && *b->dut->overlap_i);
  assert_false(b->old_valid);
  settle(b);
  b->old = b->run;
  b->old_valid = true;
  b->old_answers = 0;
  b->old_fails = false;
  ++b->n.parked;
}

/* It is the one that has been handed over whole, and not another's. */
static void on_batch_start(bench *b) {
  batcher *x = &b->batcher;
  assert_true(x->plan && x->whole);
  b->run = (run){.plan = x->plan, .batch = true, .start = b->cycle + 1};
  x->plan = NULL;
  b->running = true;
  b->walk = (walk){0};
  b->away = false;
  b->struck = 0;
  ++b->n.batches;
}

static void on_start(bench *b) {
  const bool over = status_of(b) == kDrain;
  if (over)
    on_overlap(b);
  else
    assert_true(*b->dut->gate_i);
  if (!over && b->running) park(b);
  if (*b->dut->batch_start_o) {
    on_batch_start(b);
    return;
  }
  b->started = head_job(b) + !b->next_read;
  assert_int_equal(b->started - 1, b->next++);
  b->n.ahead += b->next_read;
  b->run = (run){.job = b->started - 1, .start = b->cycle + 1, .no_desc = !b->next_read};
  b->run.plan = &b->plans[b->run.job % kPlans];
  const request *r = &b->fetch.r[0];
  if (b->beat_last || (b->fetch.count && r->desc && r->next && !r->failed)) b->run.no_desc = false;
  if (running(b)->doomed && !is_skipped(b)) strike(b, CT_DEV_CANCELLED, 0);
  b->n.doomed += running(b)->doomed;
  b->running = true;
  b->next_read = false;
  b->walk = (walk){0};
  b->away = false;
  b->struck = 0;
}

/* On any beat, often on one of the last; or so many are not in the window. */
static void draw_failure(bench *b, request *r) {
  const unsigned back = ct_rng_below(&b->rng, ct_rng_percent(&b->rng, 40) ? 4 : r->beats);
  const unsigned at = back < r->beats ? r->beats - 1 - back : 0;
  if (ct_rng_percent(&b->rng, 60))
    r->bad = at;
  else
    r->in = at;
}

static void take_request(bench *b, bool desc) {
  ct_ctx_dut *d = b->dut;
  fetcher *f = &b->fetch;
  const plan *p = &b->plans[head_job(b) % kPlans];
  request *r = &f->r[f->count++];
  *r = (request){.desc = desc, .soft = *d->fetch_soft_o, .addr = *d->fetch_addr_o};
  r->beats = *d->fetch_len_o;
  b->n.programs += !desc;
  if (desc && b->running && status_of(b) == kDesc) b->run.no_desc = true;
  r->bad = r->beats + 1;
  r->in = r->beats;
  if (r->soft && ct_rng_percent(&b->rng, b->losses)) draw_failure(b, r);
  if (desc && r->soft && p->scenario == kRefused) {
    r->bad = 0;
    r->in = r->beats;
  }
  r->delay = 2 + ct_rng_below(&b->rng, 60);
  if (desc && p->scenario == kNoDesc) r->delay = 1000000;
}

/* A descriptor is asked for in its place, a program as its descriptor says, or as the last one said
 * if this one is not here yet. */
static void check_request(bench *b) {
  ct_ctx_dut *d = b->dut;
  const fetcher *f = &b->fetch;
  const bool desc = *d->fetch_addr_o >= kRing, plain = status_of(b) <= kProgram;
  assert_in_range(*d->fetch_len_o, 1, 2 * CT_PROG_MAX);
  if (desc) {
    assert_int_equal(*d->fetch_addr_o, kRing + 8 * (*d->head_o % b->slots));
    assert_int_equal(*d->fetch_len_o, 8);
    if (!(b->running && plain)) assert_true(*d->fetch_soft_o);
  } else {
    const plan *p = &b->plans[head_job(b) % kPlans], *last = &b->plans[(head_job(b) - 1) % kPlans];
    const bool reading = f->count && f->r[0].desc, first = reading && f->r[0].next == 0;
    if (first) {
      assert_int_equal(*d->fetch_addr_o, b->last_prog);
      assert_int_equal(*d->fetch_len_o, b->last_beats);
      assert_true(*d->fetch_soft_o);
      b->n.guesses += *d->fetch_ready_i;
    } else {
      const uint32_t addr = *d->fetch_addr_o, len = *d->fetch_len_o;
      assert_true((addr == p->prog && len == 2 * p->ncmds) ||
                  (addr == last->prog && len == 2 * last->ncmds) ||
                  (addr == b->last_prog && len == b->last_beats));
    }
  }
  if (*d->fetch_ready_i) take_request(b, desc);
}

/* The first beat of a descriptor. */
static void note_descriptor(bench *b) {
  const uint32_t *word = b->dut->fetch_rdata_i;
  if (b->running && status_of(b) == kDesc) b->run.no_desc = false;
  b->last_prog = word[CT_DESC_PROG];
  b->last_beats = 2 * word[CT_DESC_NCMDS];
}

static void take_command(bench *b, unsigned u) {
  unit *x = &b->unit[u];
  walk *w = &b->walk;
  assert_true(b->running);
  *x = (unit){.active = true, .stall = x->stall, .left = ct_rng_below(&b->rng, 30)};
  memcpy(x->cmd.w, b->dut->cmd_o + 8 * u, 32);
  assert_true(w->taken[u] != w->put[u]);
  assert_int_equal(id_of(u, &x->cmd), w->id[u][w->taken[u]++ % kQueue]);
}

/* How the oldest job has ended, when its completion is pushed. */
static void on_finish(bench *b) {
  const bool old = b->old_valid;
  const run *r = old ? &b->old : &b->run;
  const plan *p = r->plan;
  assert_true(old || b->running);
  if (!old) settle(b);
  const uint32_t code = r->code, addr = code ? r->addr : 0;
  if (r->batch) {
    const ct_ctx_dut *d = b->dut;
    assert_true(*d->batch_done_valid_o && *d->batch_done_ready_i);
    assert_int_equal(*d->batch_done_code_o, code);
    assert_int_equal(*d->batch_done_addr_o, addr);
    assert_int_equal(*d->batch_done_rows_o, r->rows);
  } else {
    const unsigned at = b->cpl_tail++ % 32;
    b->n.skipped += code == CT_DEV_SKIPPED;
    b->n.continued += p->chain && code == CT_DEV_OK;
    b->ring_bad = code != CT_DEV_OK;
    b->cpl[at].code = code;
    b->cpl[at].addr = addr;
    b->cpl[at].start = r->start;
    b->cpl[at].end = b->cycle + 1;
    b->cpl[at].rows = r->rows;
    b->cpl[at].job = r->job;
    b->cpl[at].no_desc = r->no_desc;
  }
  if (old && code == CT_DEV_OK) assert_int_equal(b->old_answers, 0);
  if (code == CT_DEV_WATCHDOG) assert_true(b->cycle - r->start >= p->watchdog);
  if (old && p->scenario == kOldDead && code == CT_DEV_DEAD) strike(b, CT_DEV_DEAD, 0);
  ++b->seen[p->scenario][code];
  ++b->completed;
  if (old)
    b->old_valid = false;
  else
    b->running = false;
}

static void monitor(bench *b) {
  ct_ctx_dut *d = b->dut;
  const unsigned s = status_of(b);
  const unsigned waiting = b->cpl_tail - b->cpl_head + *d->cpl_pop_i;
  assert_int_equal(*d->cpl_count_o, waiting);
  assert_true(waiting <= CT_CPL_DEPTH);
  if (*d->fetch_drop_o) {
    ++b->n.wrong;
    for (unsigned i = 0; i < b->fetch.count; ++i) /* a few beats may be on their way */
      if (!b->fetch.r[i].desc) b->fetch.r[i].dropping = ct_rng_percent(&b->rng, 50);
  }
  if (*d->fetch_valid_o) check_request(b);
  if (b->beat_first && !*d->flush_o) note_descriptor(b);
  if (*d->finish_o) on_finish(b);
  if (*d->start_o) on_start(b);
  if (s == kIdle || s == kHeld) {
    assert_int_equal(*d->sem_nz_o, 0);
    assert_int_equal(*d->cmd_valid_o, 0);
    if (*d->start_o && !*d->batch_start_o) assert_true(waiting < CT_CPL_DEPTH);
    return;
  }
  if (*d->flush_o) assert_int_equal(*d->cmd_valid_o, 0);
  if (*d->abandon_o) {
    assert_true(*d->flush_o && *d->reset_i && *d->dead_o);
    b->abandoned += b->stuck;
    b->stuck = false;
    b->answers = b->old_answers = 0;
    b->hold = 0;
  }
  for (unsigned u = 0; u < kUnits; ++u)
    if (*d->cmd_valid_o & *d->cmd_ready_i & 1u << u) take_command(b, u);
  /* The watchdog reports the next command as of the cycle in which it strikes. */
  if (*d->dispatch_o &&
      !(running(b)->code == CT_DEV_WATCHDOG && b->cycle - b->run.start >= running(b)->watchdog))
    walk_on(b);
  if (s == kRun) b->run.rows += *d->row_i;
}

/* A soft reset forgets the jobs that are written and have not begun, and what is read of them. */
static void on_reset(bench *b) {
  b->next = b->visible;
  b->next_read = false;
  for (unsigned i = 0; i < b->fetch.count; ++i)
    b->fetch.r[i].stale = status_of(b) != kDesc;
}

static void cycle(bench *b) {
  ct_ctx_dut *d = b->dut;
  fetch_step(b);
  answers_step(b);
  units_step(b);
  interfere(b);
  host_step(b);
  batcher_step(b);
  *d->row_i = status_of(b) == kRun && ct_rng_percent(&b->rng, 50);
  *d->gate_i = !ct_stall_next(&b->gate);
  *d->overlap_i = ct_rng_percent(&b->rng, 95);
  if (b->running) {
    const plan *p = running(b);
    *d->watchdog_i = p->by_context ? p->watchdog : p->watchdog ? 100000 : 0;
  }
  *d->cycle_i = b->cycle;
  *d->cycle_next_i = b->cycle + 1;
  pop_step(b);
  ct_ctx_eval(d);
  monitor(b);
  if (*d->reset_i)
    on_reset(b);
  else if (b->beat_last && !*d->flush_o && status_of(b) != kDesc && !*d->start_o)
    b->next_read = true;
  batcher_look(b);
  ct_ctx_tick(d);
  ++b->cycle;
}

/* The device as it is after a reset of the core, and nothing written for it. */
static void reset_core(bench *b) {
  ct_ctx_dut *d = b->dut;
  *d->ring_base_i = kRing;
  *d->ring_log2_i = 4;
  *d->drain_limit_i = kDrainLimit;
  *d->watchdog_i = *d->freeze_i = *d->hold_i = *d->tail_we_i = *d->cpl_pop_i = 0;
  *d->fetch_rvalid_i = *d->err_i = *d->reset_i = *d->cancel_i = 0;
  *d->cancel_named_i = *d->old_i = *d->old_err_i = *d->fetch_bad_i = 0;
  *d->batch_due_i = *d->batch_on_i = *d->form_i = *d->batch_valid_i = *d->batch_first_i = 0;
  ct_ctx_reset(d, 2);
  b->written = b->visible = b->started = b->completed = b->next = 0;
  b->cpl_head = b->cpl_tail = b->fetch.count = 0;
  b->run.plan = b->plans;
  b->ring_bad = false;
}

static bench *open_bench(uint64_t stream, unsigned stall, unsigned pop, enum scenario only) {
  bench *b = test_calloc(1, sizeof *b);
  b->dut = ct_ctx_new(ct_tb_trace());
  b->rng = ct_rng_make(stream);
  b->only = only;
  b->slots = kSlots;
  b->losses = 15;
  b->chains = 25;
  for (unsigned u = 0; u < kUnits; ++u)
    b->unit[u].stall = ct_stall_make(stream + 1 + u, stall, 6);
  b->fetch.stall = ct_stall_make(stream + 8, stall, 4);
  b->host = ct_stall_make(stream + 9, 30, 200);
  b->pop = ct_stall_make(stream + 10, pop, 3000);
  b->gate = ct_stall_make(stream + 11, 30, 20);
  b->batcher.take = ct_stall_make(stream + 12, 50, 60);
  reset_core(b);
  return b;
}

static void close_bench(bench *b) {
  ct_ctx_free(b->dut);
  test_free(b);
}

/* ---- Tests --------------------------------------------------------------------------------- */

static void all_endings(void **state) {
  (void)state;
  static const unsigned percents[] = {0, 40, 75};
  unsigned wrong = 0, lost = 0, cut = 0, late = 0, jumps = 0, old_errors = 0, doomed = 0,
           overlaps = 0;
  for (unsigned k = 0; k < 3; ++k) {
    bench *b = open_bench(1000 * k, percents[k], k == 1 ? 60 : 20, kScenarios);
    for (unsigned i = 0; i < 150000; ++i)
      cycle(b);
    assert_true(b->completed > 80);
    for (unsigned s = 0; s < kDead; ++s) { /* each has happened */
      unsigned n = 0;
      for (unsigned code = 0; code <= CT_DEV_SKIPPED; ++code)
        n += b->seen[s][code];
      assert_true(n > 0);
    }
    assert_true(b->seen[kNormal][CT_DEV_OK] > 10);
    assert_true(b->seen[kHang][CT_DEV_WATCHDOG] > 0);
    assert_true(b->seen[kSemError][CT_DEV_SEM] + b->seen[kTwo][CT_DEV_RESET] > 0);
    /* What must have happened besides. */
    assert_true(b->n.overlaps > 5);
    assert_true(b->n.ahead > b->n.overlaps); /* read before, but not overlapping */
    assert_true(b->n.guesses > b->n.wrong);
    assert_true(b->n.skipped > 5 && b->n.continued > 2);
    wrong += b->n.wrong;
    lost += b->n.lost;
    cut += b->n.cut;
    late += b->n.late;
    jumps += b->n.jumps_away;
    old_errors += b->n.old_errors;
    doomed += b->n.doomed;
    overlaps += b->n.overlaps;
    close_bench(b);
  }
  assert_true(wrong > 0 && lost > 0 && cut > 0 && old_errors > 0 && doomed > 0 && overlaps > 30);
  assert_true(late > 4 && jumps > 20); /* programs came again while they ran, in loops, too */
}

static void one_scenario(enum scenario s, unsigned code, unsigned cycles) {
  bench *b = open_bench(50 + s, 30, 20, s);
  for (unsigned i = 0; i < cycles; ++i)
    cycle(b);
  assert_true(b->seen[s][code] > 3);
  close_bench(b);
}

static void cancels(void **state) {
  (void)state;
  one_scenario(kCancel, CT_DEV_CANCELLED, 60000);
}

static void resets(void **state) {
  (void)state;
  one_scenario(kReset, CT_DEV_RESET, 60000);
}

/* Two resets, in the same state or in any other, back to back or with some cycles between. What was
 * written before the second is forgotten by it, what is written after it runs; each job that has
 * begun completes once (on_start, on_finish). */
static void double_resets(void **state) {
  (void)state;
  bench *b = open_bench(97, 30, 20, kTwoResets);
  for (unsigned i = 0; i < 150000; ++i)
    cycle(b);
  assert_true(b->seen[kTwoResets][CT_DEV_RESET] > 100);
  const unsigned *again = b->n.again;
  assert_true(again[kIdle] > 0 && again[kHeld] > 0 && again[kDesc] > 0 && again[kProgram] > 0);
  assert_true(again[kRun] + again[kDrain] > 0 && again[kAbort] > 0);
  close_bench(b);
}

/* The first descriptor since the reset counts no commands, nor does the next one: both end as bad
 * descriptors, and no program is asked for, least of all one of no beats, which would be the guess
 * if the first were taken for the same as what the registers happen to hold. The second round's
 * registers hold just that. */
static void first_descriptor_empty(void **state) {
  (void)state;
  enum { kEmpty = 2, kGood = 20, kLimit = 20000 };
  bench *b = open_bench(98, 30, 0, kBadCount);
  b->chains = 0;
  for (unsigned round = 0; round < 2; ++round) {
    if (round) reset_core(b);
    b->host.percent = 100;
    b->host.left = 0;
    for (unsigned i = 0; i < kEmpty; ++i) {
      write_job(b);
      b->mem[kRing + 8 * i][CT_DESC_PROG] = 0;
      b->mem[kRing + 8 * i][CT_DESC_NCMDS] = 0;
    }
    ring_bell(b);
    for (unsigned i = 0; i < kLimit && b->completed < kEmpty; ++i)
      cycle(b);
    assert_int_equal(b->seen[kBadCount][CT_DEV_DESCRIPTOR], kEmpty * (round + 1));
    assert_int_equal(b->n.programs, 0);
  }
  b->only = kNormal;
  b->host = ct_stall_make(99, 0, 1);
  for (unsigned i = 0; i < kLimit && b->completed < kEmpty + kGood; ++i)
    cycle(b);
  /* Their stores may be answered with an error. */
  assert_int_equal(b->seen[kNormal][CT_DEV_OK] + b->seen[kNormal][CT_DEV_AXI_WRITE], kGood);
  close_bench(b);
}

static void sem_errors(void **state) {
  (void)state;
  one_scenario(kSemError, CT_DEV_SEM, 60000);
}

static void descriptor_never_comes(void **state) {
  (void)state;
  one_scenario(kNoDesc, CT_DEV_CANCELLED, 60000);
}

static void dead_port(void **state) {
  (void)state;
  bench *b = open_bench(90, 30, 20, kDead);
  for (unsigned i = 0; i < 60000; ++i) {
    cycle(b);
    if (!*b->dut->dead_o) assert_int_equal(b->seen[kDead][CT_DEV_DEAD], 0);
  }
  assert_true(b->seen[kDead][CT_DEV_DEAD] > 3);
  close_bench(b);
}

/* The answers to the stores of a job do not come, while the next one runs: both end with DEAD. */
static void old_job_dies(void **state) {
  (void)state;
  bench *b = open_bench(94, 30, 20, kOldDead);
  for (unsigned i = 0; i < 100000; ++i)
    cycle(b);
  assert_true(b->n.old_deads > 3);
  assert_true(b->seen[kOldDead][CT_DEV_DEAD] >= 2 * b->n.old_deads - 2);
  close_bench(b);
}

/* Nothing goes wrong, but for soft fetches and the stores' answers: jobs overlap whenever they may.
 */
static void overlaps(void **state) {
  (void)state;
  bench *b = open_bench(95, 20, 0, kNormal);
  b->losses = 5;
  b->chains = 0;
  b->host = ct_stall_make(96, 0, 1);
  for (unsigned i = 0; i < 100000; ++i)
    cycle(b);
  assert_true(b->n.overlaps > b->completed / 4);
  assert_true(b->n.ahead > b->completed * 2 / 3);
  close_bench(b);
}

/* A store's answer is an error while the next job could take the place of this one, or in the very
 * cycle in which it would: it is this job's error, and the next one does not start beside it. */
static void last_answers_fail(void **state) {
  (void)state;
  bench *b = open_bench(89, 20, 0, kUnitError);
  b->last = true;
  b->losses = 5;
  b->chains = 0;
  b->host = ct_stall_make(88, 0, 1);
  for (unsigned i = 0; i < 100000; ++i)
    cycle(b);
  assert_true(b->n.overlaps > 20);
  assert_true(b->seen[kUnitError][CT_DEV_AXI_WRITE] > 20);
  close_bench(b);
}

/* A soft reset does not wait for a dead port. */
static void dead_port_given_up(void **state) {
  (void)state;
  bench *b = open_bench(92, 30, 20, kDead);
  b->patience = 400;
  for (unsigned i = 0; i < 100000; ++i)
    cycle(b);
  assert_true(b->abandoned > 3);
  close_bench(b);
}

/* More doorbells than the device remembers: what it has forgotten shows the last one's time. */
static void many_doorbells(void **state) {
  (void)state;
  enum { kMany = 100, kRemembered = 64 };
  bench *b = open_bench(93, 30, 0, kBadCount);
  ct_ctx_dut *d = b->dut;
  *d->ring_log2_i = 10;
  b->slots = 1024;
  b->host.percent = 100;
  b->host.left = 0;
  *d->hold_i = 1;
  for (unsigned i = 0; i < kMany; ++i) {
    write_job(b);
    ring_bell(b);
    for (unsigned n = ct_rng_below(&b->rng, 5); n; --n)
      cycle(b);
  }
  for (unsigned i = kRemembered; i < kMany; ++i)
    b->plans[i].arrive = b->plans[kMany - 1].arrive;
  *d->hold_i = 0;
  for (unsigned i = 0; i < 20000; ++i)
    cycle(b);
  assert_int_equal(b->cpl_head, kMany);
  close_bench(b);
}

/* Batches beside the ring's jobs, under every way in which either can end. Each that was handed
 * over begins once and ends once, with its own code, or a reset drops it (on_start, on_finish). */
static void batches(void **state) {
  (void)state;
  static const unsigned often[] = {50, 1000, 1, 2};
  unsigned batches = 0, overlaps = 0, parked = 0, dropped = 0, wrong = 0;
  for (unsigned k = 0; k < 4; ++k) {
    bench *b = open_bench(3000 + 100 * k, 25 * k, 20, k == 3 ? kNormal : kScenarios);
    b->batcher.per_mille = often[k];
    for (unsigned i = 0; i < 150000; ++i)
      cycle(b);
    assert_true(b->completed > 80);
    assert_true(b->n.batches > 30 && b->n.batches < b->completed);
    if (k == 1) assert_true(b->n.batches + 30 > b->completed / 2); /* in turn */
    batches += b->n.batches;
    overlaps += b->n.batch_overlaps;
    parked += b->n.parked;
    dropped += b->n.dropped;
    wrong += b->n.wrong;
    close_bench(b);
  }
  assert_true(batches > 300 && overlaps > 10 && parked > 0 && dropped > 0 && wrong > 0);
}

/* Nobody pops: the sixteenth completion holds the next job, the first pop lets it start. */
static void full_of_completions(void **state) {
  (void)state;
  bench *b = open_bench(91, 0, 100, kNormal);
  for (unsigned i = 0; i < 60000; ++i)
    cycle(b);
  assert_int_equal(b->completed, CT_CPL_DEPTH);
  assert_int_equal(status_of(b), kHeld);
  b->pop.percent = 0;
  for (unsigned i = 0; i < 60000; ++i)
    cycle(b);
  assert_true(b->completed > 2 * CT_CPL_DEPTH);
  close_bench(b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(all_endings),
      cmocka_unit_test(cancels),
      cmocka_unit_test(resets),
      cmocka_unit_test(double_resets),
      cmocka_unit_test(first_descriptor_empty),
      cmocka_unit_test(sem_errors),
      cmocka_unit_test(descriptor_never_comes),
      cmocka_unit_test(dead_port),
      cmocka_unit_test(full_of_completions),
      cmocka_unit_test(dead_port_given_up),
      cmocka_unit_test(many_doorbells),
      cmocka_unit_test(old_job_dies),
      cmocka_unit_test(overlaps),
      cmocka_unit_test(last_answers_fail),
      cmocka_unit_test(batches),
  };
  return cmocka_run_group_tests_name("ct_ctx", tests, NULL, NULL);
}
