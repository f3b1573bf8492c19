/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ct_batch against a model of requests, models and batches that knows nothing of scans and passes.
 *
 * The bench plays both sides: the host (registers, one access after the other, with stalls) and
 * ct_job with the DMA (takes a batch, begins it, gathers its rows, ends it, with a code now and
 * then). It checks every cycle: a batch is formed only of a model that is due, never while another
 * one with an earlier deadline has been due for long, and of exactly its first requests; a due
 * batch does not wait; slack is what it says. And of every accepted request that exactly one record
 * comes, in order, with its own words.
 */
#include <stdlib.h>
#include <string.h>

#include "coltrain_spec.h"
#include "ct_tb.h"

#include "ct_batch_dut.h"

enum { kModels = 8, kDepth = 64, kSlots = 128, kMost = 16, kGroups = 256, kScript = 1024 };
enum { kNone, kFixed, kAdaptive };
enum {
  kWordTag = 2,
  kWordDeadline = 3,
  kWordPush = 4,
  kWordResult = 5,
  kWordCancel = 6,
  kWordAddr = 8,
  kWordData = 9,
  kWordCommit = 10,
  kWordUnload = 11,
  kWordState = 12,
  kWordRequest = 16,
  kWordRecord = 23,
  kWordBatch = 24,
  kWordNothing = 63
};
enum { kOk, kFull, kNoModel, kGone };
enum { kCodeUnloaded = 15 };
/* Cycles: in which what has become due must be known, in which it must go, with and without a host
 * that asks for things, and that an access takes. */
enum { kKnown = 200, kGo = 2500, kGoAlone = 200, kAccess = 600 };

typedef struct {
  uint32_t word[3]; /* input, output, tag */
  uint32_t rel;
  unsigned model, ticket;
  uint64_t arrive, deadline, go;
} request;

/* Requests that left together. */
typedef struct {
  request req[kDepth];
  unsigned n, reaped;
  bool ran, over;
  unsigned model;
  uint32_t code, version, addr, rows;
  uint64_t start, end, lead;
} group;

typedef struct {
  bool loaded;
  unsigned bank, policy, most;
  uint32_t max_wait, margin, desc[2][32], service[kMost + 1];
  uint64_t due_since; /* ~0: it is not */
  bool was_due;       /* since requests left; what raised its lead may have passed */
} model;

typedef struct {
  uint8_t word;
  uint32_t data;
} host_write;

/* What a scenario is like. Percent of cycles (push, cancel, swap: per ten thousand). */
typedef struct {
  const char *name;
  unsigned push, cancel, swap, reset, reap, job_stall, gather;
  unsigned deadline, service; /* cycles, at most */
  unsigned models;
  int policy; /* -1: any */
  bool fill;  /* the queue gets full */
} scenario;

typedef struct {
  ct_batch_dut *d;
  ct_rng rng, job_rng, gat_rng;
  ct_stall host_stall, reap_stall, job_stall;
  const scenario *sc;
  uint64_t t;

  /* Model. */
  request wait[kDepth];
  unsigned waiting, held;         /* held: places in use */
  unsigned fullest;               /* most that ever waited */
  unsigned refusals[4];           /* by reason */
  unsigned codes[256];            /* records by code */
  unsigned free[kSlots], free_at; /* places, in the order in which they are given out */
  model m[kModels];
  group g[kGroups];
  unsigned first, formed; /* groups: the oldest with a record to reap, the next */
  request staged;
  bool spoilt;
  unsigned result, ticket;
  uint64_t alone_since; /* and nobody has asked for anything */
  uint64_t quiet_since; /* nothing but time has held a due batch back since */
  uint64_t service_at;  /* of the last change by a batch's end */
  unsigned service_model;

  /* Host. */
  host_write script[kScript];
  unsigned script_at, script_end;
  unsigned command; /* the word of the command that is under way; 0: none */
  uint32_t command_data;
  uint64_t command_at, no_command_until;
  unsigned held_up[2], longest[2]; /* cycles, of writes and reads */
  int reading;                     /* word; -1: none */
  uint32_t value;                  /* the last that was read */
  bool steady;                     /* nothing has happened since it was asked for */
  uint32_t rec[16];
  unsigned rec_step;
  bool rec_whole; /* all its words are read, not only the state */
  bool rec_popping;

  /* ct_job: group numbers, -1: none. */
  int next, run, old;
  unsigned beats;
  bool was_forming, first_seen, dropped; /* dropped: by a reset, while being formed */
  uint64_t form_at, next_at, run_until, old_until;
  bool done, done_seen;
  unsigned gat_row[2];
  bool gat_on[2];
  uint64_t accepted, batches, batched, records;
} bench;

static bool per_ten_thousand(bench *b, unsigned rate) {
  return ct_rng_below(&b->rng, 10000) < rate;
}

/* ---- Model ------------------------------------------------------------------------------------
 */

static group *group_of(bench *b, int n) {
  return &b->g[(unsigned)n % kGroups];
}

static unsigned count_of(const bench *b, unsigned m) {
  unsigned n = 0;
  for (unsigned i = 0; i < b->waiting; ++i)
    n += b->wait[i].model == m;
  return n;
}

static uint64_t lead_of(const bench *b, unsigned m) {
  const unsigned n = count_of(b, m), most = b->m[m].most;
  const uint64_t sum = (uint64_t)b->m[m].service[n > most ? most : n ? n : 1] + b->m[m].margin;
  return sum > UINT32_MAX ? UINT32_MAX : sum;
}

static bool is_due(const bench *b, unsigned m, uint64_t lead) {
  if (b->m[m].policy != kAdaptive) lead = 0;
  const unsigned n = count_of(b, m);
  if (n && n >= b->m[m].most) return true;
  for (unsigned i = 0; i < b->waiting; ++i)
    if (b->wait[i].model == m && b->t + lead >= b->wait[i].go) return true;
  return false;
}

static void look_who_is_due(bench *b) {
  for (unsigned m = 0; m < kModels; ++m)
    if (!is_due(b, m, lead_of(b, m))) {
      b->m[m].due_since = UINT64_MAX;
    } else {
      b->m[m].was_due = true;
      if (b->m[m].due_since == UINT64_MAX) b->m[m].due_since = b->t;
    }
}

static void nobody_is_due(bench *b) {
  for (unsigned m = 0; m < kModels; ++m)
    b->m[m].was_due = false;
  b->quiet_since = b->t;
}

static void insert(bench *b, const request *r) {
  unsigned at = b->waiting;
  for (; at && b->wait[at - 1].deadline > r->deadline; --at)
    b->wait[at] = b->wait[at - 1];
  b->wait[at] = *r;
  ++b->waiting;
  if (b->waiting > b->fullest) b->fullest = b->waiting;
}

/* Moves the first `most` that fit into a new group; -1 stands for any. */
static group *leave(bench *b, int by_model, int by_ticket, unsigned most) {
  group *g = group_of(b, (int)b->formed);
  unsigned stay = 0;
  memset(g, 0, sizeof *g);
  for (unsigned i = 0; i < b->waiting; ++i) {
    const request *r = &b->wait[i];
    const bool fits = (by_model < 0 || r->model == (unsigned)by_model) &&
                      (by_ticket < 0 || r->ticket == (unsigned)by_ticket) && g->n < most;
    if (fits)
      g->req[g->n++] = *r;
    else
      b->wait[stay++] = *r;
  }
  b->waiting = stay;
  if (g->n) ++b->formed;
  assert_true(b->formed - b->first < kGroups);
  return g;
}

static unsigned model_push(bench *b, unsigned m, uint64_t at) {
  const model *k = &b->m[m];
  request r = b->staged;
  const bool spoilt = b->spoilt;
  b->spoilt = false;
  if (!k->loaded) return kNoModel;
  if (b->waiting == kDepth || b->held == kSlots || spoilt) return kFull;
  r.model = m;
  r.arrive = at;
  r.deadline = at + (r.rel ? r.rel : UINT32_MAX);
  r.go = k->policy == kNone ? at : k->policy == kFixed || !r.rel ? at + k->max_wait : r.deadline;
  r.ticket = b->ticket = b->free[b->free_at++ % kSlots];
  ++b->held;
  ++b->accepted;
  insert(b, &r);
  return kOk;
}

/* A group without a batch. */
static void drop(bench *b, int by_model, int by_ticket, uint32_t code) {
  group *g = leave(b, by_model, by_ticket, kDepth);
  g->over = true;
  g->code = code;
  nobody_is_due(b);
}

static void reap(bench *b) {
  group *g = group_of(b, (int)b->first);
  b->free[(b->free_at + kSlots - b->held--) % kSlots] = g->req[g->reaped].ticket;
  ++b->records;
  if (++g->reaped == g->n) ++b->first;
}

static void model_command(bench *b) {
  const unsigned m = b->command_data % kModels;
  const unsigned before = b->waiting;
  switch (b->command) {
    case kWordPush:
      b->result = model_push(b, m, b->command_at);
      ++b->refusals[b->result];
      break;
    case kWordCancel:
      drop(b, -1, (int)(b->command_data % kSlots), CT_DEV_CANCELLED);
      b->result = b->waiting == before ? kGone : kOk;
      break;
    case kWordCommit:
      b->m[m].bank ^= 1;
      b->m[m].loaded = true;
      break;
    case kWordUnload:
      b->m[m].loaded = false;
      drop(b, (int)m, -1, kCodeUnloaded);
      break;
    default: /* pop */
      if (b->rec_popping) reap(b);
      b->rec_popping = false;
      break;
  }
  b->command = 0;
}

/* The first beat says which model it is. */
static void model_form(bench *b, unsigned m, unsigned rows) {
  assert_in_range(m, 0, kModels - 1);
  const model *k = &b->m[m];
  const unsigned count = count_of(b, m), n = count < k->most ? count : k->most;
  assert_true(n > 0);
  assert_int_equal(rows, n);
  /* It was due when it was taken, and nobody before it for long. */
  uint64_t lead = lead_of(b, m);
  if (b->service_model == m && b->form_at - b->service_at < 64) lead = UINT32_MAX;
  assert_true(k->was_due || is_due(b, m, lead));
  unsigned at = 0;
  while (b->wait[at].model != m)
    ++at;
  for (unsigned i = 0; i < at; ++i) {
    const model *other = &b->m[b->wait[i].model];
    if (b->wait[i].deadline < b->wait[at].deadline && other->due_since != UINT64_MAX)
      assert_true(other->due_since + kKnown > b->form_at);
  }
  const uint64_t lead_now = lead_of(b, m);
  b->next = (int)b->formed;
  group *g = leave(b, (int)m, -1, n);
  g->model = m;
  g->lead = lead_now;
  g->version = k->desc[k->bank][CT_DESC_VERSION];
  nobody_is_due(b);
  ++b->batches;
  b->batched += n;
}

static void model_end(bench *b, group *g) {
  uint32_t *s = &b->m[g->model].service[g->n];
  const uint32_t took = (uint32_t)(g->end - g->start);
  g->over = g->ran = true;
  if (g->code != CT_DEV_OK) return;
  b->service_at = b->t;
  b->service_model = g->model;
  *s = *s < took ? took : *s - ((*s - took) >> 3);
}

/* ---- Checks of every cycle --------------------------------------------------------------------
 */

static void check_slack(const bench *b) {
  enum { kStale = 300 };
  bool seen[kModels] = {false};
  uint64_t need = 0;
  /* What is leaving just now has left the device before the model. */
  if (!*b->d->slack_o || b->command == kWordCancel || b->command == kWordUnload) return;
  if (b->run >= 0) {
    const group *g = &b->g[(unsigned)b->run % kGroups];
    need = g->lead;
    assert_true(g->req[0].deadline + 4 >= b->t + need);
  }
  for (unsigned i = 0; i < b->waiting; ++i) {
    const request *r = &b->wait[i];
    if (!seen[r->model]) need += lead_of(b, r->model);
    seen[r->model] = true;
    assert_true(r->deadline + kStale >= b->t + need);
  }
}

static uint64_t later(uint64_t a, uint64_t b) {
  return a > b ? a : b;
}

static void check_wait(bench *b) {
  const ct_batch_dut *d = b->d;
  if (*d->wr_valid_i || *d->rd_valid_i || *d->irq_o || b->command || b->done || *d->start_i)
    b->alone_since = b->t;
  b->alone_since = later(b->alone_since, b->quiet_since);
  for (unsigned m = 0; m < kModels; ++m)
    if (b->m[m].due_since != UINT64_MAX) {
      assert_true(b->t <= kGo + later(b->m[m].due_since, b->quiet_since));
      assert_true(b->t <= kGoAlone + later(b->m[m].due_since, b->alone_since));
    }
}

/* ---- ct_job and the DMA -----------------------------------------------------------------------
 */

static void drive_job(bench *b) {
  ct_batch_dut *d = b->d;
  const bool stall = ct_stall_next(&b->job_stall);
  const bool forming = *d->form_o;
  /* The next one begins when the one before is over, or only waits for its answers; what is over
   * may still wait to be taken. */
  *d->start_i = b->next >= 0 && b->beats == 8 && b->old < 0 && b->t >= b->next_at &&
                (b->run < 0 || b->done || b->t + 40 > b->run_until);
  *d->job_ready_i = forming ? *d->job_ready_i : b->next < 0 && !stall;
  if (!*d->job_ready_i || forming) b->quiet_since = b->t;
  const int ending = b->old >= 0 ? b->old : b->run;
  if (!b->done && !*d->start_i && ending >= 0 &&
      b->t >= (b->old >= 0 ? b->old_until : b->run_until)) {
    group *g = group_of(b, ending);
    b->done = true;
    if (!g->code && ct_rng_percent(&b->job_rng, 10)) g->code = 1 + ct_rng_below(&b->job_rng, 10);
    g->addr = (uint32_t)ct_rng_u64(&b->job_rng);
    g->rows = (uint32_t)ct_rng_u64(&b->job_rng);
    g->end = b->t;
  }
  *d->done_valid_i = b->done;
  const group *g = b->done ? group_of(b, ending) : NULL;
  *d->done_code_i = (uint8_t)(g ? g->code : 0);
  *d->done_addr_i = g ? g->addr : 0;
  *d->done_rows_i = g ? g->rows : 0;
}

static void drive_gather(bench *b) {
  ct_batch_dut *d = b->d;
  for (unsigned s = 0; s < 2; ++s) {
    if (b->run < 0) b->gat_on[s] = false;
    if (!b->gat_on[s] && b->run >= 0 && ct_rng_percent(&b->gat_rng, b->sc->gather)) {
      b->gat_on[s] = true;
      b->gat_row[s] = ct_rng_below(&b->gat_rng, group_of(b, b->run)->n);
    }
  }
  *d->gat_valid_i = (uint8_t)(b->gat_on[0] | b->gat_on[1] << 1);
  *d->gat_row_i = (uint8_t)(b->gat_row[0] | b->gat_row[1] << 4);
}

static void watch_gather(bench *b, int answer[2]) {
  const unsigned gnt = *b->d->gat_gnt_o;
  assert_int_equal(gnt, b->gat_on[0] ? 1 : b->gat_on[1] ? 2 : 0);
  for (unsigned s = 0; s < 2; ++s) {
    answer[s] = gnt >> s & 1 ? (int)b->gat_row[s] : -1;
    if (answer[s] >= 0) b->gat_on[s] = false;
  }
}

/* After the edge: the address of what was granted. */
static void check_gather(bench *b, const int answer[2], const group *g) {
  for (unsigned s = 0; s < 2; ++s) {
    assert_int_equal(*b->d->gat_vld_o >> s & 1, answer[s] >= 0);
    if (answer[s] >= 0 && g) assert_int_equal(*b->d->gat_addr_o, g->req[answer[s]].word[s]);
  }
}

static void watch_form(bench *b) {
  const ct_batch_dut *d = b->d;
  const bool forming = *d->form_o;
  if (forming && !b->was_forming) {
    assert_true(*d->job_ready_i);
    assert_true(b->next < 0);
    b->form_at = b->t - 1; /* the decision */
    b->first_seen = b->dropped = false;
    b->beats = 0;
  }
  b->was_forming = forming;
  if (!*d->desc_valid_o) return;
  assert_false(b->dropped);
  if (*d->desc_first_o) {
    b->first_seen = true;
    assert_int_equal(b->t - b->form_at, b->waiting + 8);
    model_form(b, d->desc_data_o[CT_DESC_PROG] & 0xff, *d->desc_rows_o);
    b->next_at = b->t + ct_rng_below(&b->job_rng, 60);
    b->beats = 0;
  }
  const model *k = &b->m[group_of(b, b->next)->model];
  ct_assert_same("descriptor", d->desc_data_o, &k->desc[k->bank][(size_t)4 * b->beats], 16);
  ++b->beats;
}

/* A reset caught it before its model showed: the only one that had requests. */
static void model_form_only(bench *b) {
  const unsigned m = b->wait[0].model, n = count_of(b, m);
  model_form(b, m, n < b->m[m].most ? n : b->m[m].most);
}

static void watch_job(bench *b) {
  ct_batch_dut *d = b->d;
  if (b->done && *d->done_ready_o) {
    int *which = b->old >= 0 ? &b->old : &b->run;
    model_end(b, group_of(b, *which));
    *which = -1;
    b->done = false;
  }
  if (*d->start_i) {
    b->old = b->run;
    b->old_until = b->run_until;
    b->run = b->next;
    b->next = -1;
    b->gat_on[0] = b->gat_on[1] = false;
    b->beats = 0;
    group_of(b, b->run)->start = b->t;
    b->run_until = b->t + 20 + ct_rng_below(&b->job_rng, b->sc->service);
  }
  if (*d->reset_i) {
    if (*d->form_o && !b->first_seen) model_form_only(b);
    b->dropped = true;
    if (b->next >= 0) {
      group *g = group_of(b, b->next);
      g->over = true;
      g->code = CT_DEV_RESET;
      b->next = -1;
    }
    drop(b, -1, -1, CT_DEV_RESET);
    if (b->run >= 0 && !b->done) {
      group_of(b, b->run)->code = CT_DEV_RESET;
      b->run_until = b->t + 20;
    }
    b->no_command_until = b->t + 400;
  }
}

/* ---- The host ---------------------------------------------------------------------------------
 */

static void put(bench *b, unsigned word, uint32_t data) {
  assert_true(b->script_end < kScript);
  b->script[b->script_end++] = (host_write){(uint8_t)word, data};
}

static void script_push(bench *b) {
  const unsigned m = ct_rng_below(&b->rng, b->sc->models);
  const bool none = ct_rng_percent(&b->rng, 5);
  put(b, 0, (uint32_t)ct_rng_u64(&b->rng));
  put(b, 1, (uint32_t)ct_rng_u64(&b->rng));
  put(b, kWordTag, (uint32_t)ct_rng_u64(&b->rng));
  put(b, kWordDeadline, none ? 0 : 1 + ct_rng_below(&b->rng, b->sc->deadline));
  put(b, kWordPush, m);
}

/* Another version of a model: the words that change, then the switch. */
static void script_commit(bench *b, unsigned m) {
  const uint32_t version = (uint32_t)ct_rng_u64(&b->rng);
  put(b, kWordAddr, m << 6);
  for (unsigned i = 0; i < 32; ++i)
    put(b, kWordData, i == CT_DESC_PROG ? (version & 0xffff) << 8 | m : version + i * 0x9e3779b1u);
  put(b, kWordCommit, m);
}

static void script_control(bench *b, unsigned m) {
  const uint32_t policy = b->sc->policy >= 0 ? (uint32_t)b->sc->policy : ct_rng_below(&b->rng, 3);
  put(b, kWordAddr, m << 6 | 32);
  put(b, kWordData, policy | ct_rng_below(&b->rng, 19) << 8);
  put(b, kWordData, ct_rng_below(&b->rng, b->sc->deadline));
  put(b, kWordData, ct_rng_below(&b->rng, 200));
  put(b, kWordAddr, m << 6 | 48);
  for (unsigned i = 0; i < kMost; ++i)
    put(b, kWordData, ct_rng_below(&b->rng, b->sc->service));
}

static void plan_host(bench *b) {
  if (b->script_at < b->script_end) return;
  b->script_at = b->script_end = 0;
  if (b->t < b->no_command_until) return;
  const unsigned m = ct_rng_below(&b->rng, b->sc->models);
  if (per_ten_thousand(b, b->sc->swap)) {
    script_commit(b, m);
  } else if (per_ten_thousand(b, b->sc->swap / 2)) {
    put(b, kWordUnload, m);
    script_control(b, m);
    script_commit(b, m);
  } else if (per_ten_thousand(b, b->sc->cancel)) {
    const bool one = b->waiting && ct_rng_percent(&b->rng, 80);
    put(b, kWordCancel,
        one ? b->wait[ct_rng_below(&b->rng, b->waiting)].ticket : ct_rng_below(&b->rng, kSlots));
  } else if (per_ten_thousand(b, b->sc->push)) {
    script_push(b);
  }
}

/* One access at a time. While a command is under way nothing that needs a place is offered: so
 * that wr_ready_o says when it is done. */
static void drive_host(bench *b) {
  ct_batch_dut *d = b->d;
  plan_host(b);
  const bool stall = ct_stall_next(&b->host_stall);
  *d->wr_valid_i = 0;
  *d->wr_word_i = kWordNothing;
  if (b->rec_step == 16 && !b->command && !b->rec_popping) {
    *d->wr_valid_i = 1;
    *d->wr_word_i = kWordRecord;
  } else if (b->script_at < b->script_end && !stall) {
    const host_write *w = &b->script[b->script_at];
    const bool after_reset = b->t < b->no_command_until;
    if (!(b->command && w->word <= kWordPush) && !after_reset) {
      *d->wr_valid_i = 1;
      *d->wr_word_i = w->word;
      *d->wr_data_i = w->data;
    }
  }
}

static void model_data(bench *b, uint32_t data) {
  static const unsigned kWords = 64;
  const unsigned m = b->staged.ticket / kWords % kModels, w = b->staged.ticket % kWords;
  model *k = &b->m[m];
  if (w < 32) k->desc[!k->bank][w] = data;
  if (w == 32) {
    k->policy = data & 3;
    k->most = data >> 8 & 31;
    if (k->most == 0 || k->most > kMost) k->most = kMost;
  }
  if (w == 33) k->max_wait = data;
  if (w == 34) k->margin = data;
  if (w >= 48) k->service[w - 47] = data;
  ++b->staged.ticket; /* (in the staged request: MODEL_ADDR) */
}

static bool is_command(unsigned word) {
  return word == kWordPush || word == kWordCancel || word == kWordCommit || word == kWordUnload ||
         word == kWordRecord;
}

static void watch_write(bench *b) {
  const ct_batch_dut *d = b->d;
  const unsigned word = *d->wr_word_i;
  const uint32_t data = *d->wr_data_i;
  if (*d->start_i || *d->done_ready_o || *d->reset_i) b->steady = false;
  if (!*d->wr_valid_i || !*d->wr_ready_o) return;
  b->steady = false;
  if (word <= kWordDeadline && b->held == kSlots) b->spoilt = true;
  if (word <= kWordTag) b->staged.word[word] = data;
  if (word == kWordDeadline) b->staged.rel = data;
  if (word == kWordAddr) b->staged.ticket = data;
  if (word == kWordData) model_data(b, data);
  if (is_command(word)) {
    b->command = word;
    b->command_data = data;
    b->command_at = b->t;
  }
  if (word == kWordRecord) {
    b->rec_step = 0;
    b->rec_popping = true;
  } else {
    ++b->script_at;
  }
}

/* ---- Records ----------------------------------------------------------------------------------
 */

static void check_record(bench *b) {
  assert_true(b->first != b->formed);
  const group *g = group_of(b, (int)b->first);
  assert_true(g->over);
  const request *r = &g->req[g->reaped];
  const bool met = g->ran && !g->code && (!r->rel || g->end <= r->deadline);
  assert_int_equal(b->rec[7], UINT32_C(1) << 31 | (uint32_t)met << 30 | (uint32_t)g->ran << 29 |
                                  r->ticket << 16 | g->n << 8 | g->code);
  if (!b->rec_whole) return;
  for (unsigned i = 0; i < 3; ++i)
    assert_int_equal(b->rec[i], r->word[i]);
  assert_int_equal(b->rec[3] | (uint64_t)b->rec[4] << 32, r->arrive);
  assert_int_equal(b->rec[5], (uint32_t)r->deadline);
  assert_int_equal(b->rec[6],
                   (uint32_t)!r->rel << 31 | r->model << 28 | (r->deadline >> 32 & 0xff));
  assert_int_equal(b->rec[8] | (uint64_t)b->rec[9] << 32, g->start);
  assert_int_equal(b->rec[10] | (uint64_t)b->rec[11] << 32, g->end);
  assert_int_equal(b->rec[12], g->ran ? g->version : 0);
  assert_int_equal(b->rec[13], g->addr);
  assert_int_equal(b->rec[14], g->rows);
  assert_int_equal(b->rec[15], 0);
}

/* Of most records only the state is read. */
static int next_read(bench *b) {
  if (b->rec_step == 0) b->rec_whole = ct_rng_percent(&b->rng, 30);
  if (!b->rec_whole) b->rec_step = kWordRecord - kWordRequest;
  return (int)(kWordRequest + b->rec_step);
}

static void drive_read(bench *b) {
  ct_batch_dut *d = b->d;
  const bool stall = ct_stall_next(&b->reap_stall), record = *d->irq_o && b->rec_step < 16;
  if (b->reading < 0 && !stall && record && !b->rec_popping) b->reading = next_read(b);
  if (b->reading < 0 && !b->command && per_ten_thousand(b, 100)) {
    b->reading = ct_rng_percent(&b->rng, 50) ? kWordResult : kWordState;
    b->steady = true;
  }
  *d->rd_valid_i = b->reading >= 0;
  *d->rd_word_i = (uint8_t)(b->reading >= 0 ? b->reading : 0);
}

/* RESULT and STATE, when nothing has changed since they were asked for. */
static void check_status(const bench *b) {
  const unsigned room = kDepth - b->waiting, places = kSlots - b->held;
  unsigned loaded = 0, busy = 0;
  const int on_way[3] = {b->next, b->run, b->old};
  if (!b->steady || *b->d->form_o || b->t < b->no_command_until) return;
  for (unsigned m = 0; m < kModels; ++m)
    loaded |= (unsigned)b->m[m].loaded << m;
  for (unsigned i = 0; i < 3; ++i)
    if (on_way[i] >= 0) busy |= 1u << b->g[(unsigned)on_way[i] % kGroups].model;
  if (b->reading == kWordResult)
    assert_int_equal(b->value, b->ticket << 16 | (room < places ? room : places) << 8 | b->result);
  if (b->reading == kWordState) assert_int_equal(b->value, b->waiting << 24 | busy << 8 | loaded);
}

static void watch_read(bench *b) {
  if (b->reading < 0 || !*b->d->rd_vld_o) return;
  const bool record = b->reading >= kWordRequest;
  b->value = *b->d->rd_data_o;
  check_status(b);
  b->reading = -1;
  if (!record) return;
  b->rec[b->rec_step++] = b->value;
  if (!b->rec_whole) b->rec_step = 16;
  if (b->rec_step == 16) {
    check_record(b);
    ++b->codes[b->rec[7] & 255];
  }
}

/* ---- A run ------------------------------------------------------------------------------------
 */

/* A reset while a batch is being formed is fine if one can tell of what. */
static void drive_reset(bench *b) {
  const ct_batch_dut *d = b->d;
  bool clear = true;
  for (unsigned i = 1; i < b->waiting; ++i)
    if (b->wait[i].model != b->wait[0].model) clear = false;
  *d->reset_i = !b->command && !*d->wr_valid_i && b->script_at >= b->script_end &&
                (clear || !*d->form_o || b->first_seen) && b->t > b->no_command_until &&
                per_ten_thousand(b, b->sc->reset);
}

/* Accesses are held up, but not for long. */
static void check_access(bench *b) {
  const ct_batch_dut *d = b->d;
  const bool waits[2] = {*d->wr_valid_i && !*d->wr_ready_o, *d->rd_valid_i && !*d->rd_vld_o};
  for (unsigned i = 0; i < 2; ++i) {
    b->held_up[i] = waits[i] ? b->held_up[i] + 1 : 0;
    if (b->held_up[i] > b->longest[i]) b->longest[i] = b->held_up[i];
    assert_true(b->longest[i] <= kAccess);
  }
}

static void cycle(bench *b) {
  ct_batch_dut *d = b->d;
  int answer[2];
  *d->cycle_i = b->t;
  drive_host(b);
  drive_read(b);
  drive_job(b);
  drive_gather(b);
  drive_reset(b);
  ct_batch_eval(d);
  check_access(b);
  if (b->command && *d->wr_ready_o) model_command(b);
  const group *running = b->run >= 0 ? group_of(b, b->run) : NULL;
  watch_gather(b, answer);
  watch_form(b);
  watch_job(b);
  watch_read(b);
  watch_write(b);
  look_who_is_due(b);
  check_slack(b);
  check_wait(b);
  ct_batch_tick(d);
  check_gather(b, answer, running);
  ++b->t;
}

static void drain(bench *b, unsigned limit) {
  while (limit-- &&
         (b->script_at < b->script_end || b->command || b->first != b->formed || b->waiting))
    cycle(b);
}

static bench *open_bench(const scenario *sc, uint64_t stream, uint64_t time) {
  bench *b = calloc(1, sizeof *b);
  assert_non_null(b);
  b->d = ct_batch_new(ct_tb_trace());
  b->rng = ct_rng_make(stream);
  b->job_rng = ct_rng_make(stream + 1);
  b->gat_rng = ct_rng_make(stream + 2);
  b->host_stall = ct_stall_make(stream + 3, 25, 10);
  b->reap_stall = ct_stall_make(stream + 4, sc->reap, 300);
  b->job_stall = ct_stall_make(stream + 5, sc->job_stall, 200);
  b->sc = sc;
  b->t = time;
  b->next = b->run = b->old = b->reading = -1;
  for (unsigned i = 0; i < kSlots; ++i)
    b->free[i] = i;
  for (unsigned m = 0; m < kModels; ++m)
    b->m[m].due_since = UINT64_MAX;
  *b->d->wr_valid_i = *b->d->rd_valid_i = *b->d->reset_i = *b->d->job_ready_i = 0;
  *b->d->start_i = *b->d->done_valid_i = *b->d->gat_valid_i = 0;
  ct_batch_reset(b->d, 2);
  return b;
}

static void load_models(bench *b) {
  for (unsigned m = 0; m < b->sc->models; ++m) {
    script_control(b, m);
    script_commit(b, m);
    CT_TB_WHILE (b->script_at < b->script_end || b->command, 100000)
      cycle(b);
  }
}

/* What the device has learnt of service times is what it was shown. */
static void check_service(bench *b) {
  for (unsigned m = 0; m < kModels; ++m)
    for (unsigned n = 1; n <= kMost && b->m[m].loaded; ++n) {
      put(b, kWordAddr, m << 6 | (47 + n));
      CT_TB_WHILE (b->script_at < b->script_end || b->command || b->reading >= 0, 100000)
        cycle(b);
      b->reading = kWordData;
      CT_TB_WHILE (b->reading >= 0, 100000)
        cycle(b);
      assert_int_equal(b->value, b->m[m].service[n]);
    }
}

/* All that a scenario accepts leaves, and its records are reaped. */
static void random_run(const scenario *sc, uint64_t stream, uint64_t time, unsigned cycles) {
  static const scenario kRest = {"rest", 0, 0, 0, 0, 0, 0, 10, 1000, 1000, 1, -1, false};
  scenario rest = kRest;
  bench *b = open_bench(sc, stream, time);
  load_models(b);
  while (cycles--)
    cycle(b);
  rest.service = sc->service;
  b->sc = &rest;
  b->reap_stall = ct_stall_make(stream + 6, 0, 1);
  b->job_stall = ct_stall_make(stream + 7, 0, 1);
  drain(b, 2000000);
  assert_int_equal(b->waiting, 0);
  assert_true(b->first == b->formed && b->held == 0);
  assert_true(b->accepted == b->records);
  check_service(b);
  print_message(
      "%s: %llu cycles, %llu accepted, %u + %u refused (full, no model), %llu in %llu batches\n",
      sc->name, (unsigned long long)(b->t - time), (unsigned long long)b->accepted,
      b->refusals[kFull], b->refusals[kNoModel], (unsigned long long)b->batched,
      (unsigned long long)b->batches);
  print_message(
      "  accesses took up to %u and %u cycles (write, read); records: %u good, %u cancelled, %u "
      "reset, %u unloaded\n",
      b->longest[0], b->longest[1], b->codes[CT_DEV_OK], b->codes[CT_DEV_CANCELLED],
      b->codes[CT_DEV_RESET], b->codes[kCodeUnloaded]);
  assert_true(b->batches > 20);
  assert_true(sc->cancel < 20 || b->codes[CT_DEV_CANCELLED]);
  assert_true(!sc->fill || b->fullest == kDepth);
  ct_batch_free(b->d);
  free(b);
}

/* name, push, cancel, swap, reset, reap stall, job stall, gather, deadline, service, models, policy
 */
static void at_once(void **state) {
  (void)state;
  static const scenario sc = {"none", 400, 0, 0, 0, 2, 10, 20, 3000, 1500, 3, kNone, false};
  random_run(&sc, 100, 0, 60000);
}

static void waits_a_while(void **state) {
  (void)state;
  static const scenario sc = {"fixed", 300, 0, 0, 0, 2, 10, 20, 4000, 400, 2, kFixed, false};
  random_run(&sc, 200, UINT32_MAX - UINT64_C(30000), 60000);
}

static void waits_for_the_deadline(void **state) {
  (void)state;
  static const scenario sc = {"adaptive", 100, 0, 0, 0, 2, 0, 20, 5000, 300, 3, kAdaptive, false};
  random_run(&sc, 300, (UINT64_C(1) << 40) - 30000, 60000);
}

static void all_together(void **state) {
  (void)state;
  static const scenario sc = {"mixed", 120, 20, 3, 2, 10, 30, 20, 6000, 600, 8, -1, false};
  for (uint64_t i = 0; i < 4; ++i)
    random_run(&sc, 400 + 10 * i, UINT64_C(1) << (20 + 10 * i), 100000);
}

/* More than can be served: the queue is full, and refuses. */
static void overload(void **state) {
  (void)state;
  static const scenario sc = {"overload", 3000, 5, 0, 0, 0, 30, 20, 30000, 4000, 8, -1, true};
  random_run(&sc, 500, 5, 150000);
}

/* A host that hardly reaps runs out of places. */
static void no_reaping(void **state) {
  (void)state;
  static const scenario sc = {"no reaping", 500, 5, 0, 1, 98, 10, 20, 3000, 200, 4, -1, false};
  random_run(&sc, 600, 77, 150000);
}

/* Passes over the queue without end: each cancels what is not there. The due batch goes all the
 * same. */
static void busy_host(void **state) {
  (void)state;
  static const scenario sc = {"busy", 0, 0, 0, 0, 0, 100, 0, 3000, 100, 1, kNone, false};
  bench *b = open_bench(&sc, 700, 0);
  load_models(b);
  for (unsigned i = 0; i < 12; ++i) {
    script_push(b);
    CT_TB_WHILE (b->script_at < b->script_end || b->command, 100000)
      cycle(b);
  }
  assert_int_equal(b->waiting, 12);
  b->job_stall = ct_stall_make(701, 0, 1);
  b->host_stall = ct_stall_make(702, 0, 1);
  for (unsigned i = 0; i < 3 * kGo; ++i) {
    if (b->script_at == b->script_end) {
      b->script_at = b->script_end = 0;
      put(b, kWordCancel, b->free[(b->free_at + kSlots - b->held - 1) % kSlots]);
    }
    cycle(b);
  }
  assert_int_equal(b->waiting, 0);
  ct_batch_free(b->d);
  free(b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(at_once),
      cmocka_unit_test(waits_a_while),
      cmocka_unit_test(waits_for_the_deadline),
      cmocka_unit_test(all_together),
      cmocka_unit_test(overload),
      cmocka_unit_test(no_reaping),
      cmocka_unit_test(busy_host),
  };
  return cmocka_run_group_tests_name("ct_batch", tests, NULL, NULL);
}
