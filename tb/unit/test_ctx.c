/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ct_ctx: jobs one after the other, with six made-up units, a made-up fetch client and a host that
 * stalls, under every way in which a job can end, at random times. Programs here are straight lines
 * with semaphores; loops and sums are test_fetch's business.
 */
#include <string.h>

#include "ct_tb.h"

#include "ct_ctx_dut.h"
#include "host/lib/ct_cmd.h"

enum {
  kUnits = 6,
  kSems = 16,
  kSlots = 16,    /* of the ring, unless a test says otherwise */
  kProg = 0x1000, /* of job 0; units of 16 bytes, like all addresses here */
  kProgUnits = 128,
  kProgs = 2 * kSlots, /* HEAD moves before the program is read, so there is one more than slots */
  kRing = kProg + kProgs * kProgUnits, /* up to 2^10 slots */
  kMemUnits = kRing + 1024 * 8,
  kMaxCmds = kProgUnits / 2,
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
  kTwo,      /* two of these, one after the other */
  kBadCount, /* NCMDS */
  kBadFlags,
  kRefused, /* the read of the descriptor is refused */
  kNoDesc,  /* the descriptor does not come; then a cancel */
  kDead,    /* a unit error, and the memory port does not get idle in time */
  kScenarios
};

/* A job as the host has written it, and what the bench expects of it. */
typedef struct {
  enum scenario scenario;
  uint32_t tag, version;
  uint32_t watchdog;             /* its limit, 0: none */
  bool by_context;               /* the limit is not in the descriptor but the context's */
  unsigned ncmds;                /* that exist */
  uint32_t code, addr;           /* how it ends if nobody interferes */
  uint32_t id[kUnits][kMaxCmds]; /* what each unit gets, in order */
  unsigned ids[kUnits];
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

typedef struct {
  bool busy, dropping;
  uint32_t addr;
  unsigned beats, next, delay;
  ct_stall stall;
} fetcher;

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
  unsigned patience; /* about so many cycles until a context with a dead port is reset; 0: never */

  plan plans[kPlans];
  uint32_t written, visible, started, completed; /* jobs so far */

  /* The running job. */
  uint64_t start;
  unsigned got[kUnits], executed, rows;
  unsigned struck;     /* interferences so far */
  uint32_t code, addr; /* of the first one that the job must feel */
  bool desc_read, prog_asked, stuck;
  unsigned stuck_left;
  struct {
    uint64_t start, end;
    uint32_t code, addr, rows, job;
    bool no_desc;
  } cpl[32];
  unsigned cpl_head, cpl_tail;
  unsigned abandoned;
  unsigned seen[kScenarios][16]; /* codes */
} bench;

/* ---- Programs ------------------------------------------------------------------------------ */

/* A legal command of the unit that carries an id in a field nobody checks. */
static struct ct_cmd unit_command(unsigned u, uint32_t id) {
  static const uint8_t codes[] = {CT_OP_LD, CT_OP_ST, CT_OP_MM, CT_OP_VL, CT_OP_VA, CT_OP_VS};
  struct ct_cmd c = {{0}};
  CT_PUT(&c, ALL_OP, codes[u]);
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

/* Semaphore s is waited for by unit s % 6 only, and only for what an earlier command gives: so the
 * program always comes to its end. */
static struct ct_cmd random_command(bench *b, uint32_t id, unsigned u, unsigned *given) {
  struct ct_cmd c = unit_command(u, id);
  static const enum ct_field_id waits[] = {CT_F_ALL_WAIT0, CT_F_ALL_WAIT1, CT_F_ALL_WAIT2};
  unsigned w = 0;
  for (unsigned s = u; s < kSems && w < 3; s += kUnits) {
    if (!given[s] || ct_rng_percent(&b->rng, 30)) continue;
    --given[s];
    ct_cmd_set(&c, waits[w++], CT_SEM(s));
  }
  for (unsigned k = 0; k < 2; ++k) {
    const unsigned s = ct_rng_below(&b->rng, kSems);
    if (given[s] > 200 || ct_rng_percent(&b->rng, 40)) continue;
    ++given[s];
    ct_cmd_set(&c, k ? CT_F_ALL_SIG1 : CT_F_ALL_SIG0, CT_SEM(s));
  }
  return c;
}

static void put_command(bench *b, plan *p, uint32_t prog, const struct ct_cmd *c) {
  memcpy(b->mem[prog + 2 * p->ncmds], c->w, 32);
  ++p->ncmds;
}

static void write_program(bench *b, plan *p, uint32_t prog) {
  const unsigned n = 1 + ct_rng_below(&b->rng, kMaxCmds - 6);
  const unsigned bad = ct_rng_below(&b->rng, n);
  unsigned given[kSems] = {0};
  for (unsigned i = 0; i < n; ++i) {
    unsigned u = ct_rng_below(&b->rng, kUnits);
    const uint32_t id = (b->written % 256) << 8 | i;
    struct ct_cmd c;
    if (i == bad && p->scenario == kHang && !given[u]) {
      c = unit_command(u, id);
      CT_PUT(&c, ALL_WAIT0, CT_SEM(u));
      p->code = CT_DEV_WATCHDOG;
      for (unsigned s = u; s < kSems; s += kUnits)
        given[s] = 1000; /* so that nobody gives it */
    } else {
      c = random_command(b, id, u, given);
    }
    if (i == bad && p->scenario == kIllegal) {
      CT_PUT(&c, ALL_OP, 0x3f);
      p->code = CT_DEV_ILLEGAL;
      p->addr = i;
    }
    if (p->code != CT_DEV_ILLEGAL) p->id[u][p->ids[u]++] = id;
    put_command(b, p, prog, &c);
  }
  struct ct_cmd end = {{0}};
  CT_PUT(&end, ALL_OP, p->scenario == kNoEnd ? CT_OP_NOP : CT_OP_END);
  put_command(b, p, prog, &end);
  if (p->scenario == kNoEnd) {
    p->code = CT_DEV_ILLEGAL;
    p->addr = p->ncmds;
  } else if (ct_rng_percent(&b->rng, 30)) {
    const struct ct_cmd rest = unit_command(0, 0); /* never reached, but fetched */
    for (unsigned i = 0; i < 4; ++i)
      put_command(b, p, prog, &rest);
  }
}

static enum scenario choose(bench *b) {
  if (b->only != kScenarios) return b->only;
  return ct_rng_percent(&b->rng, 40) ? kNormal : (enum scenario)ct_rng_below(&b->rng, kDead);
}

/* Writes the next descriptor and its program into their slots. */
static void write_job(bench *b) {
  plan *p = &b->plans[b->written % kPlans];
  memset(p, 0, sizeof *p);
  p->scenario = choose(b);
  p->tag = (uint32_t)ct_rng_u64(&b->rng) | 1;
  p->version = (uint32_t)ct_rng_u64(&b->rng);
  p->when = 1 + ct_rng_below(&b->rng, ct_rng_percent(&b->rng, 30) ? 40 : 400);
  const unsigned slot = b->written % b->slots;
  const uint32_t prog = kProg + b->written % kProgs * kProgUnits;
  write_program(b, p, prog);
  if (p->code == CT_DEV_WATCHDOG) p->watchdog = 300 + ct_rng_below(&b->rng, 1500);
  uint32_t *d = b->mem[kRing + 8 * slot];
  ct_rng_fill(&b->rng, d, CT_DESC_BYTES);
  d[CT_DESC_TAG] = p->tag;
  d[CT_DESC_VERSION] = p->version;
  d[CT_DESC_PROG] = prog;
  d[CT_DESC_NCMDS] = p->ncmds;
  p->by_context = ct_rng_percent(&b->rng, 50);
  d[CT_DESC_WATCHDOG] = p->by_context ? 0 : p->watchdog;
  d[CT_DESC_FLAGS] = 0;
  if (p->scenario == kBadCount) {
    d[CT_DESC_NCMDS] = ct_rng_percent(&b->rng, 50) ? 0 : 513 + ((uint32_t)ct_rng_u64(&b->rng) >> 8);
    p->code = CT_DEV_DESCRIPTOR;
    p->addr = CT_DESC_NCMDS;
  }
  if (p->scenario == kBadFlags) {
    d[CT_DESC_FLAGS] = UINT32_C(1) << ct_rng_below(&b->rng, 32);
    p->code = CT_DEV_DESCRIPTOR;
    p->addr = CT_DESC_FLAGS;
  }
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
  return &b->plans[(b->started - 1) % kPlans];
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
  if (x->signals == 2)
    x->active = false;
  else
    *inc = (uint16_t)(1u << (sig[x->signals++] & 15));
}

static void units_step(bench *b) {
  ct_ctx_dut *d = b->dut;
  uint16_t dec[kUnits] = {0}, inc[kUnits] = {0};
  bool idle = !b->fetch.busy && !b->stuck;
  *d->cmd_ready_i = 0;
  for (unsigned u = 0; u < kUnits; ++u) {
    unit *x = &b->unit[u];
    unit_step(b, u, &dec[u], &inc[u]);
    if (x->active || dec[u] || inc[u]) idle = false;
    if (!x->active && !ct_stall_next(&x->stall)) *d->cmd_ready_i |= (uint8_t)(1u << u);
  }
  memcpy(d->sem_dec_i, dec, sizeof dec);
  memcpy(d->sem_inc_i, inc, sizeof inc);
  *d->units_idle_i = idle;
}

/* Beats come in order, with gaps; a flush lets them come to an end or drops the rest. */
static void fetch_step(bench *b) {
  ct_ctx_dut *d = b->dut;
  fetcher *f = &b->fetch;
  *d->fetch_rvalid_i = 0;
  *d->fetch_ready_i = !f->busy && !ct_stall_next(&f->stall);
  if (!f->busy) return;
  if (*d->flush_o && !f->dropping) {
    f->dropping = ct_rng_percent(&b->rng, 50);
    if (f->delay > 1000) f->dropping = true;
    if (f->dropping) f->delay = ct_rng_below(&b->rng, 50);
  }
  if (f->delay) {
    --f->delay;
  } else if (f->dropping) {
    f->busy = false;
  } else if (!ct_stall_next(&f->stall)) {
    *d->fetch_rvalid_i = 1;
    memcpy(d->fetch_rdata_i, b->mem[(f->addr + f->next) % kMemUnits], 16);
    if (++f->next == f->beats) f->busy = false;
  }
}

/* The job feels this from now on, unless something else came first. */
static void strike(bench *b, uint32_t code, uint32_t addr) {
  ++b->struck;
  if (b->code) return;
  b->code = code;
  b->addr = addr;
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

static void cancel(bench *b) {
  *b->dut->cancel_i = 1;
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
      cancel(b);
      break;
    case kReset:
      reset_context(b);
      break;
    default:
      break;
  }
}

/* At the time the plan has set. A second one strikes a few cycles after the first. */
static void interfere(bench *b) {
  static const enum scenario any[] = {kUnitError, kCancel, kReset};
  ct_ctx_dut *d = b->dut;
  *d->err_i = *d->cancel_i = *d->reset_i = 0;
  if (b->stuck && b->stuck_left-- == 0) b->stuck = false;
  if (b->patience && status_of(b) == kAbort && ct_rng_below(&b->rng, b->patience) == 0)
    *d->reset_i = *d->dead_o;
  if (!in_job(b)) return;
  const plan *p = running(b);
  const uint64_t age = b->cycle - b->start;
  if (p->scenario == kRefused) {
    if (b->fetch.busy && status_of(b) == kDesc && b->fetch.delay == 1) {
      b->fetch.busy = false;
      *d->err_i = 1;
      *d->err_code_i = CT_DEV_DRAM_READ_WINDOW;
      d->err_addr_i[0] = b->fetch.addr;
      strike(b, CT_DEV_DRAM_READ_WINDOW, b->fetch.addr);
    }
  } else if (p->scenario == kTwo) {
    if (b->struck < 2 && age >= p->when && (b->struck == 0 || ct_rng_percent(&b->rng, 20)))
      interfere_once(b, any[ct_rng_below(&b->rng, 3)]);
  } else if (p->scenario == kSemError) {
    if (!b->struck && status_of(b) == kRun && age >= p->when && is_zero(b, 3)) {
      ((uint16_t *)d->sem_dec_i)[4] |= 1u << 3;
      *d->units_idle_i = 0;
      strike(b, CT_DEV_SEM, 3);
    }
  } else if (!b->struck && age >= p->when) {
    interfere_once(b, p->scenario);
  }
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
  assert_int_equal(field(b, 0, 32), b->cpl[at].no_desc ? 0 : p->tag);
  assert_int_equal(field(b, 32, 8), b->cpl[at].code);
  assert_int_equal(field(b, 40, 32), b->cpl[at].addr);
  assert_int_equal(field(b, 72, 32), b->cpl[at].no_desc ? 0 : p->version);
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

static void on_start(bench *b) {
  assert_true(*b->dut->gate_i);
  /* A reset has thrown away what is not the host's next. */
  b->started = b->visible - (uint16_t)(b->visible - *b->dut->head_o) + 1;
  b->start = b->cycle + 1;
  memset(b->got, 0, sizeof b->got);
  b->executed = b->rows = b->struck = 0;
  b->code = b->addr = 0;
  b->desc_read = b->prog_asked = false;
}

static void check_request(bench *b) {
  ct_ctx_dut *d = b->dut;
  const uint32_t job = b->started - 1;
  const bool desc = status_of(b) == kDesc;
  assert_int_equal(*d->fetch_addr_o,
                   desc ? kRing + 8 * (job % b->slots) : kProg + job % kProgs * kProgUnits);
  assert_int_equal(*d->fetch_len_o, desc ? 8 : 2 * running(b)->ncmds);
  if (desc && b->cycle == b->start) assert_true(*d->fetch_valid_o);
  if (!*d->fetch_ready_i) return;
  fetcher *f = &b->fetch;
  f->busy = true;
  f->dropping = false;
  f->addr = *d->fetch_addr_o;
  f->beats = *d->fetch_len_o;
  f->next = 0;
  f->delay = 2 + ct_rng_below(&b->rng, 60);
  if (desc && running(b)->scenario == kNoDesc) f->delay = 1000000;
}

static void take_command(bench *b, unsigned u) {
  unit *x = &b->unit[u];
  const plan *p = running(b);
  *x = (unit){.active = true, .stall = x->stall, .left = ct_rng_below(&b->rng, 30)};
  memcpy(x->cmd.w, b->dut->cmd_o + 8 * u, 32);
  assert_true(b->got[u] < p->ids[u]);
  assert_int_equal(id_of(u, &x->cmd), p->id[u][b->got[u]]);
  ++b->got[u];
}

/* How the job has ended, when its completion is pushed. */
static void on_finish(bench *b) {
  const plan *p = running(b);
  uint32_t code = b->code ? b->code : p->code, addr = b->code ? b->addr : p->addr;
  if (code == CT_DEV_WATCHDOG) addr = b->executed;
  const unsigned at = b->cpl_tail++ % 32;
  if (p->scenario == kDead && b->struck) {
    code = CT_DEV_DEAD;
    addr = 0;
  }
  b->cpl[at].code = code;
  b->cpl[at].addr = addr;
  b->cpl[at].start = b->start;
  b->cpl[at].end = b->cycle + 1;
  b->cpl[at].rows = b->rows;
  b->cpl[at].job = b->started - 1;
  b->cpl[at].no_desc = !b->desc_read;
  if (code == CT_DEV_OK)
    for (unsigned u = 0; u < kUnits; ++u)
      assert_int_equal(b->got[u], p->ids[u]);
  if (code == CT_DEV_WATCHDOG) assert_true(b->cycle - b->start >= p->watchdog);
  ++b->seen[p->scenario][code];
  ++b->completed;
}

static void monitor(bench *b) {
  ct_ctx_dut *d = b->dut;
  const unsigned s = status_of(b);
  const unsigned waiting = b->cpl_tail - b->cpl_head + *d->cpl_pop_i;
  assert_int_equal(*d->cpl_count_o, waiting);
  assert_true(waiting <= CT_CPL_DEPTH);
  if (s == kIdle || s == kHeld) {
    assert_int_equal(*d->sem_nz_o, 0);
    assert_int_equal(*d->cmd_valid_o, 0);
    assert_int_equal(s == kHeld, *d->head_o != *d->tail_o);
    assert_false(*d->fetch_valid_o);
    if (*d->start_o) assert_true(waiting < CT_CPL_DEPTH);
    if (*d->start_o) on_start(b);
    return;
  }
  if (*d->flush_o) assert_int_equal(*d->cmd_valid_o, 0);
  if (*d->abandon_o) {
    assert_true(*d->flush_o && *d->reset_i && *d->dead_o);
    b->abandoned += b->stuck;
    b->stuck = false;
  }
  if (*d->fetch_valid_o) check_request(b);
  if (*d->fetch_rvalid_i && s == kDesc && b->fetch.next == 1) b->desc_read = true;
  for (unsigned u = 0; u < kUnits; ++u)
    if (*d->cmd_valid_o & *d->cmd_ready_i & 1u << u) take_command(b, u);
  /* The watchdog reports the next command as of the cycle in which it strikes. */
  if (!(running(b)->code == CT_DEV_WATCHDOG && b->cycle - b->start >= running(b)->watchdog))
    b->executed += *d->dispatch_o;
  if (*d->finish_o) on_finish(b);
  if (s != kComplete) b->rows += *d->row_i;
}

static void cycle(bench *b) {
  ct_ctx_dut *d = b->dut;
  units_step(b);
  fetch_step(b);
  interfere(b);
  host_step(b);
  *d->row_i = (uint8_t)ct_rng_below(&b->rng, 2);
  *d->gate_i = !ct_stall_next(&b->gate);
  *d->cycle_i = b->cycle;
  *d->cycle_next_i = b->cycle + 1;
  if (!in_job(b)) {
    const plan *next = &b->plans[(b->visible - (uint16_t)(b->visible - *d->head_o)) % kPlans];
    *d->watchdog_i = next->by_context ? next->watchdog : next->watchdog ? 100000 : 0;
  }
  pop_step(b);
  ct_ctx_eval(d);
  monitor(b);
  ct_ctx_tick(d);
  ++b->cycle;
}

static bench *open_bench(uint64_t stream, unsigned stall, unsigned pop, enum scenario only) {
  bench *b = test_calloc(1, sizeof *b);
  b->dut = ct_ctx_new(ct_tb_trace());
  b->rng = ct_rng_make(stream);
  b->only = only;
  b->slots = kSlots;
  for (unsigned u = 0; u < kUnits; ++u)
    b->unit[u].stall = ct_stall_make(stream + 1 + u, stall, 6);
  b->fetch.stall = ct_stall_make(stream + 8, stall, 4);
  b->host = ct_stall_make(stream + 9, 30, 200);
  b->pop = ct_stall_make(stream + 10, pop, 3000);
  b->gate = ct_stall_make(stream + 11, 30, 20);
  ct_ctx_dut *d = b->dut;
  *d->ring_base_i = kRing;
  *d->ring_log2_i = 4;
  *d->drain_limit_i = kDrainLimit;
  *d->watchdog_i = *d->freeze_i = *d->hold_i = *d->tail_we_i = *d->cpl_pop_i = 0;
  *d->fetch_rvalid_i = *d->err_i = *d->reset_i = *d->cancel_i = 0;
  ct_ctx_reset(d, 2);
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
  for (unsigned k = 0; k < 3; ++k) {
    bench *b = open_bench(1000 * k, percents[k], k == 1 ? 60 : 20, kScenarios);
    for (unsigned i = 0; i < 150000; ++i)
      cycle(b);
    assert_true(b->completed > 80);
    for (unsigned s = 0; s < kDead; ++s) { /* each has happened */
      unsigned n = 0;
      for (unsigned code = 0; code < 16; ++code)
        n += b->seen[s][code];
      assert_true(n > 0);
    }
    assert_true(b->seen[kNormal][CT_DEV_OK] > 10);
    assert_true(b->seen[kHang][CT_DEV_WATCHDOG] > 0);
    assert_true(b->seen[kSemError][CT_DEV_SEM] + b->seen[kTwo][CT_DEV_RESET] > 0);
    close_bench(b);
  }
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
    if (b->seen[kDead][CT_DEV_DEAD])
      assert_true(*b->dut->dead_o);
    else if (status_of(b) != kComplete)
      assert_false(*b->dut->dead_o);
  }
  assert_true(b->seen[kDead][CT_DEV_DEAD] > 3);
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
    *d->tail_i = (uint16_t)b->written;
    *d->tail_we_i = 1;
    *d->cycle_i = b->cycle;
    *d->cycle_next_i = b->cycle + 1;
    b->plans[i].arrive = b->cycle;
    ct_ctx_tick(d);
    ++b->cycle;
    *d->tail_we_i = 0;
    for (unsigned n = ct_rng_below(&b->rng, 5); n; --n)
      cycle(b);
  }
  b->visible = b->written;
  for (unsigned i = kRemembered; i < kMany; ++i)
    b->plans[i].arrive = b->plans[kMany - 1].arrive;
  *d->hold_i = 0;
  for (unsigned i = 0; i < 20000; ++i)
    cycle(b);
  assert_int_equal(b->cpl_head, kMany);
  close_bench(b);
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
      cmocka_unit_test(sem_errors),
      cmocka_unit_test(descriptor_never_comes),
      cmocka_unit_test(dead_port),
      cmocka_unit_test(full_of_completions),
      cmocka_unit_test(dead_port_given_up),
      cmocka_unit_test(many_doorbells),
  };
  return cmocka_run_group_tests_name("ct_ctx", tests, NULL, NULL);
}
