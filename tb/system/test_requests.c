/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests and batches on the whole core: a host that pushes, cancels, loads, swaps and unloads
 * models, resets, reaps late, beside jobs in the ring and another context at work.
 *
 * Every answer is known beforehand: the emulator has computed it, as a job of its own from the
 * ring. Every record is checked when it is popped: it is of a request that was accepted and had
 * none yet, in a batch of its own model, in order of deadlines within the model, with the answer of
 * the version it names, whoever its batch mates were.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ct_cmd.h"
#include "ct_pair.h"

enum {
  kModels = 5,
  kHang = 4, /* the model whose program never ends */
  kImages = 3,
  kInputs = 48,
  kOutputs = 400, /* places for the answers of requests */
  kRingOutputs = 64,
  kCols = 16,
  kAnswerUnits = 4,
  kInputPitch = 61, /* units; odd, so that runs lie in all ways to pages of 4 KB */
  kOutputPitch = 5,
  kRecordUnits = 17,
  kPlainProgs = 0x60000, /* byte offsets in the memory of context 0 */
  kModelProgs = 0x70000,
  kProgBytes = 0x1000,
  kWeights = 0x80000,
  kWeightBytes = 0x2000,
  kWatchdog = 2500,
  kEvents = 64,
  kCancelContext = 2,
  kReset = 1,
  kFreeze = 2
};

#define RAN (1u << 29)
#define MET (1u << 30)
#define THERE (1u << 31)

/* Blocks of a group and groups of a row: how a model's inputs lie. */
static const struct {
  unsigned blocks, groups;
} shapes[kModels] = {{1, 1}, {3, 1}, {4, 2}, {16, 1}, {2, 1}};

struct request {
  bool live, bad;
  uint32_t input, output, tag, rel;
  unsigned model, in, out, most;
  uint64_t before, after; /* cycles around the push */
  uint64_t version;       /* in use then */
  bool cancelled;
};

struct model {
  bool loaded, overlap;
  unsigned policy, most;
  uint32_t max_wait, margin;
  uint64_t version;  /* in use */
  uint64_t unloaded; /* in which it was, lately */
};

/* When the host did something that may end a batch. */
struct event {
  uint64_t before, after;
};

struct batch {
  unsigned left, n, model;
  uint64_t start, end;
  uint32_t code, addr, version, rows;
  bool bad; /* one of its requests is */
};

struct bench {
  struct ct_pair pair;
  struct ct_rig *rig;
  ct_rng rng;
  struct request req[CT_REQ_PLACES];
  struct model model[kModels];
  bool out_used[kOutputs];
  uint32_t tag, live;
  struct batch batch;
  struct event cancels[kEvents], resets[kEvents];
  unsigned cancel_count, reset_count;
  uint8_t answer[kModels][kImages][kInputs][16 * kAnswerUnits];
  struct ct_gen_prog prog, setup, work, dump;
  bool frozen, busy1;
  uint32_t fault; /* how batches may end that meet the armed fault */
  uint32_t tag1;
  struct {
    uint32_t tag[16];
    unsigned model[16], image[16], in[16], out[16];
    unsigned head, count;
  } ring;
  uint32_t ring_tag;
  uint64_t ring_start, batch_start; /* of the last of each kind that ended */
  unsigned codes[16], sizes[CT_BATCH_MAX + 1], refused[4], met, overlaps, ring_done, other_done;
};

/* ---- Programs ------------------------------------------------------------------------------ */

static struct ct_cmd *add(struct ct_gen_prog *p, unsigned code) {
  struct ct_cmd *cmd = &p->cmds[p->count++];
  memset(cmd, 0, sizeof *cmd);
  CT_PUT(cmd, ALL_OP, code);
  return cmd;
}

static unsigned tiles_of(unsigned m) {
  return shapes[m].blocks * shapes[m].groups;
}

/* One tile of weights a step. r1: where they lie. */
static void add_weights(struct ct_gen_prog *p, unsigned m, unsigned spm) {
  struct ct_cmd *cmd = add(p, CT_OP_LD);
  CT_PUT(cmd, DMA_DRAM_REG, 1);
  CT_PUT(cmd, DMA_SPM, spm);
  CT_PUT(cmd, DMA_HDR, 1);
  CT_PUT(cmd, DMA_NB, 16);
  CT_PUT(cmd, DMA_S0, 1);
  CT_PUT(cmd, DMA_N1, 1);
  CT_PUT(cmd, DMA_N2, tiles_of(m));
  CT_PUT(cmd, DMA_D2, kRecordUnits);
  CT_PUT(cmd, DMA_S2, 16);
  CT_PUT(cmd, ALL_SIG0, CT_SEM(1));
}

/* A DMA command over the rows of a batch or, from the ring, one row at register reg. */
static struct ct_cmd *add_rows(struct ct_gen_prog *p, unsigned code, bool gather, unsigned reg) {
  struct ct_cmd *cmd = add(p, code);
  CT_PUT(cmd, DMA_GATHER, gather);
  if (!gather) {
    CT_PUT(cmd, DMA_DRAM_REG, reg);
    CT_PUT(cmd, DMA_N2, 1);
  }
  return cmd;
}

static void set_rows(struct ct_cmd *cmd, enum ct_field_id rows, enum ct_field_id reg, bool gather) {
  ct_cmd_set(cmd, rows, gather ? 0 : 1);
  ct_cmd_set(cmd, reg, gather ? CT_NUM_ARGS + 1 : 0);
}

/* Rows times weights, stored as FP32. In a batch all its rows; else the one at r2, to r3. */
static void build(struct ct_gen_prog *p, unsigned m, bool gather) {
  const unsigned k = tiles_of(m), weights = 16 * k, answers = 32 * k;
  memset(p, 0, sizeof *p);
  struct ct_cmd *cmd = add_rows(p, CT_OP_LD, gather, 2);
  CT_PUT(cmd, DMA_HDR, 1);
  CT_PUT(cmd, DMA_NB, shapes[m].blocks);
  CT_PUT(cmd, DMA_S0, 16);
  CT_PUT(cmd, DMA_N1, shapes[m].groups);
  CT_PUT(cmd, DMA_D1, 1 + shapes[m].blocks);
  CT_PUT(cmd, DMA_S1, 16 * shapes[m].blocks);
  CT_PUT(cmd, DMA_S2, 1);
  CT_PUT(cmd, ALL_SIG1, CT_SEM(0));
  add_weights(p, m, weights);
  cmd = add(p, CT_OP_MM);
  CT_PUT(cmd, MM_AK, 16);
  CT_PUT(cmd, MM_B, weights);
  CT_PUT(cmd, MM_BK, 16);
  CT_PUT(cmd, MM_KT, k);
  CT_PUT(cmd, MM_NT, 1);
  set_rows(cmd, CT_F_MM_ROWS, CT_F_MM_ROWS_REG, gather);
  CT_PUT(cmd, ALL_WAIT0, CT_SEM(1));
  CT_PUT(cmd, ALL_WAIT2, CT_SEM(m == kHang ? 9 : 0));
  CT_PUT(cmd, ALL_SIG1, CT_SEM(2));
  cmd = add(p, CT_OP_VA);
  CT_PUT(cmd, VA_A_SRC, 1);
  CT_PUT(cmd, VA_COLS, kCols);
  set_rows(cmd, CT_F_VA_ROWS, CT_F_VA_ROWS_REG, gather);
  CT_PUT(cmd, ALL_WAIT0, CT_SEM(2));
  CT_PUT(cmd, ALL_SIG0, CT_SEM(3));
  cmd = add(p, CT_OP_VS);
  CT_PUT(cmd, VS_SPM, answers);
  CT_PUT(cmd, VS_ROW_STRIDE, kAnswerUnits);
  set_rows(cmd, CT_F_VS_ROWS, CT_F_VS_ROWS_REG, gather);
  CT_PUT(cmd, ALL_WAIT0, CT_SEM(3));
  CT_PUT(cmd, ALL_SIG0, CT_SEM(4));
  cmd = add_rows(p, CT_OP_ST, gather, 3);
  CT_PUT(cmd, DMA_SPM, answers);
  CT_PUT(cmd, DMA_NB, kAnswerUnits);
  CT_PUT(cmd, DMA_S0, 1);
  CT_PUT(cmd, DMA_N1, 1);
  CT_PUT(cmd, DMA_S2, kAnswerUnits);
  CT_PUT(cmd, ALL_WAIT1, CT_SEM(4));
  add(p, CT_OP_END);
}

/* ---- Memory -------------------------------------------------------------------------------- */

static uint32_t input_unit(unsigned in) {
  return ct_rig_unit(0, CT_RIG_IN) + kInputPitch * in;
}

static uint32_t output_unit(unsigned out) {
  return ct_rig_unit(0, CT_RIG_OUT) + 1 + kOutputPitch * out;
}

static uint32_t weights_unit(unsigned m, unsigned image) {
  return ct_rig_unit(0, kWeights + (m * kImages + image) * kWeightBytes);
}

/* Blocks as they lie in records and rows: exponents near 1, any mantissas. */
static void fill(struct bench *b, uint32_t unit, unsigned groups, unsigned blocks) {
  uint8_t bytes[16 * 17];
  for (unsigned g = 0; g < groups; ++g) {
    ct_rng_fill(&b->rng, bytes, sizeof bytes);
    for (unsigned i = 0; i < sizeof bytes; ++i) {
      if (i < 16) bytes[i] = (uint8_t)(125 + bytes[i] % 6);
      if (bytes[i] == 0x80) bytes[i] = 0;
    }
    ct_pair_mem_write(&b->pair, 16 * (uint64_t)(unit + g * (1 + blocks)), bytes,
                      16 * (size_t)(1 + blocks));
  }
}

static void write_program(struct bench *b, uint32_t at, const struct ct_gen_prog *p) {
  uint8_t bytes[CT_CMD_BYTES];
  for (unsigned i = 0; i < p->count; ++i) {
    ct_cmd_to_bytes(&p->cmds[i], bytes);
    ct_pair_mem_write(&b->pair, ct_rig_addr(0, at + i * CT_CMD_BYTES), bytes, sizeof bytes);
  }
}

static void read_answer(struct ct_rig *rig, uint32_t unit, uint8_t *answer) {
  assert_int_equal(rig->ops->mem_read(rig->self, 16 * (uint64_t)unit, answer, 16 * kAnswerUnits),
                   0);
}

/* What the emulator makes of each input, image and model, each in a job of its own. */
static void know_answers(struct bench *b) {
  struct ct_rig *emu = &b->pair.rig[1];
  for (unsigned m = 0; m < kModels; ++m) {
    if (m == kHang) continue;
    build(&b->prog, m, false);
    for (unsigned i = 0; i < kImages * kInputs; ++i) {
      b->prog.args[0] = weights_unit(m, i / kInputs);
      b->prog.args[1] = input_unit(i % kInputs);
      b->prog.args[2] = output_unit(0);
      const struct ct_rig_job job = {.prog = &b->prog, .tag = i};
      ct_rig_submit(emu, 0, &job);
      ct_rig_ring(emu, 0);
      assert_int_equal(ct_rig_reap(emu, 0, 1).code, CT_DEV_OK);
      read_answer(emu, output_unit(0), b->answer[m][i / kInputs][i % kInputs]);
    }
  }
  uint8_t *zeros = test_calloc(CT_GEN_OUT_UNITS, 16);
  ct_pair_mem_write(&b->pair, ct_rig_addr(0, CT_RIG_OUT), zeros, 16 * CT_GEN_OUT_UNITS);
  test_free(zeros);
}

/* ---- The host's registers ------------------------------------------------------------------ */

static uint64_t now(struct bench *b) {
  uint64_t cycle;
  assert_int_equal(b->rig->ops->now(b->rig->self, &cycle), 0);
  return cycle;
}

static uint64_t read64(struct bench *b, uint32_t low) {
  return ct_rig_read(b->rig, low) | (uint64_t)ct_rig_read(b->rig, low + 4) << 32;
}

static void write_model_words(struct bench *b, unsigned m, unsigned word, const uint32_t *value,
                              unsigned count) {
  ct_rig_write(b->rig, CT_REG_MODEL_ADDR, m * CT_MODEL_WORDS + word);
  for (unsigned i = 0; i < count; ++i)
    ct_rig_write(b->rig, CT_REG_MODEL_DATA, value[i]);
}

/* The next version of a model: its descriptor, and COMMIT. */
static void commit(struct bench *b, unsigned m) {
  struct model *k = &b->model[m];
  const uint64_t version = k->version + 1;
  build(&b->prog, m, true);
  uint32_t desc[CT_DESC_BYTES / 4] = {0};
  desc[CT_DESC_TAG] = (uint32_t)ct_rng_u64(&b->rng);
  desc[CT_DESC_VERSION] = (uint32_t)version;
  desc[CT_DESC_PROG] = ct_rig_unit(0, kModelProgs + m * kProgBytes);
  desc[CT_DESC_NCMDS] = b->prog.count;
  desc[CT_DESC_WATCHDOG] = m == kHang ? kWatchdog : 0;
  desc[CT_DESC_FLAGS] = k->overlap ? CT_FLAG_OVERLAP : 0;
  desc[CT_DESC_ARG0] = weights_unit(m, (unsigned)(version % kImages));
  write_model_words(b, m, 0, desc, CT_DESC_BYTES / 4);
  ct_rig_write(b->rig, CT_REG_MODEL_COMMIT, m);
  k->version = version;
  k->loaded = true;
}

static void load(struct bench *b, unsigned m) {
  struct model *k = &b->model[m];
  k->overlap = ct_rng_percent(&b->rng, 60);
  k->policy = ct_rng_below(&b->rng, 3);
  k->most = ct_rng_percent(&b->rng, 40) ? CT_BATCH_MAX : 1 + ct_rng_below(&b->rng, CT_BATCH_MAX);
  k->max_wait = ct_rng_below(&b->rng, 3000);
  k->margin = ct_rng_below(&b->rng, 1000);
  const uint32_t control[] = {k->policy | (k->most % CT_BATCH_MAX) << 8, k->max_wait, k->margin};
  write_model_words(b, m, CT_MODEL_CTL, control, 3);
  commit(b, m);
}

static void unload(struct bench *b, unsigned m) {
  ct_rig_write(b->rig, CT_REG_MODEL_UNLOAD, m);
  b->model[m].loaded = false;
  b->model[m].unloaded = now(b);
}

static uint32_t result(struct bench *b) {
  return ct_rig_read(b->rig, CT_REG_REQ_RESULT);
}

/* An output nobody uses, or kOutputs. */
static unsigned free_output(struct bench *b) {
  const unsigned from = ct_rng_below(&b->rng, kOutputs);
  for (unsigned i = 0; i < kOutputs; ++i)
    if (!b->out_used[(from + i) % kOutputs]) return (from + i) % kOutputs;
  return kOutputs;
}

static void push_words(struct bench *b, struct request *r) {
  ct_rig_write(b->rig, CT_REG_REQ_INPUT, r->input);
  ct_rig_write(b->rig, CT_REG_REQ_OUTPUT, r->output);
  ct_rig_write(b->rig, CT_REG_REQ_TAG, r->tag);
  ct_rig_write(b->rig, CT_REG_REQ_DEADLINE, r->rel);
  r->before = now(b);
  ct_rig_write(b->rig, CT_REG_REQ_PUSH, r->model);
  r->after = now(b);
}

static unsigned push(struct bench *b, unsigned m, uint32_t rel, unsigned bad) {
  struct request r = {.live = true, .model = m, .rel = rel, .tag = ++b->tag};
  r.in = ct_rng_below(&b->rng, kInputs);
  r.out = free_output(b);
  assert_true(r.out < kOutputs);
  r.input = bad == 1 ? 0x01000000 + r.in : input_unit(r.in);
  r.output = bad == 2 ? ct_rig_unit(0, 0) + r.in : output_unit(r.out);
  r.bad = bad != 0;
  r.version = b->model[m].version;
  r.most = b->model[m].most;
  push_words(b, &r);
  const uint32_t got = result(b), ticket = got >> 16 & 127;
  ++b->refused[got & 3];
  assert_true((got & 7) <= CT_REQ_MODEL);
  assert_int_equal((got & 7) == CT_REQ_MODEL, !b->model[m].loaded);
  if (got & 7) return got & 7;
  assert_false(b->req[ticket].live);
  b->req[ticket] = r;
  b->out_used[r.out] = true;
  ++b->live;
  return CT_REQ_OK;
}

static void note(struct event *list, unsigned *count, uint64_t before, uint64_t after) {
  list[(*count)++ % kEvents] = (struct event){before, after};
}

/* Something of that kind happened between two cycles. */
static bool happened(const struct event *list, unsigned count, uint64_t from, uint64_t to) {
  for (unsigned i = 0; i < count && i < kEvents; ++i)
    if (list[i].after >= from && list[i].before <= to) return true;
  return false;
}

/* ---- Records ------------------------------------------------------------------------------- */

static uint64_t deadline_of(const struct request *r) {
  return r->before + (r->rel ? r->rel : UINT32_MAX);
}

/* Nobody of the same model who was there before it came, with an earlier deadline, still waits. */
static void check_order(const struct bench *b, const struct request *r) {
  for (unsigned i = 0; i < CT_REQ_PLACES; ++i) {
    const struct request *q = &b->req[i];
    if (!q->live || q->model != r->model || q == r) continue;
    if (q->after < r->before && deadline_of(q) + 200 < deadline_of(r))
      fail_msg("request %" PRIu32 " (deadline %" PRIu64 ") went before %" PRIu32 " (%" PRIu64 ")",
               r->tag, deadline_of(r), q->tag, deadline_of(q));
  }
}

/* The record's part that all of a batch share. */
static void check_batch(struct bench *b, const struct request *r, uint32_t state) {
  struct batch *k = &b->batch;
  const struct batch this = {.n = state >> 8 & 127,
                             .model = r->model,
                             .start = read64(b, CT_REG_REC_START_LO),
                             .end = read64(b, CT_REG_REC_END_LO),
                             .code = state & 255,
                             .addr = ct_rig_read(b->rig, CT_REG_REC_ADDR),
                             .version = ct_rig_read(b->rig, CT_REG_REC_VERSION),
                             .rows = ct_rig_read(b->rig, CT_REG_REC_ROWS)};
  if (k->left == 0) {
    assert_in_range(this.n, 1, r->most);
    assert_true(this.start < this.end && this.end <= now(b));
    assert_true(this.start > b->batch_start);
    b->batch_start = this.start;
    *k = this;
    k->left = this.n;
    ++b->sizes[this.n];
  }
  assert_true(this.n == k->n && this.model == k->model && this.code == k->code);
  assert_true(this.start == k->start && this.end == k->end && this.addr == k->addr);
  assert_true(this.version == k->version && this.rows == k->rows);
  assert_true(r->before < this.start);
  assert_in_range(this.version, r->version, b->model[r->model].version);
  assert_false(happened(b->resets, b->reset_count, r->after + 1, this.start - 200) &&
               this.start > 200 + r->after);
  k->bad |= r->bad;
  --k->left;
}

/* How a batch ended, once all its records have been seen. */
static void check_end(struct bench *b) {
  const struct batch *k = &b->batch;
  const bool cancelled = happened(b->cancels, b->cancel_count, k->start, k->end);
  const bool reset = happened(b->resets, b->reset_count, k->start, k->end);
  if (k->code == CT_DEV_CANCELLED && cancelled) return;
  if (k->code == CT_DEV_RESET && reset) return;
  if (k->code && k->code == b->fault) return;
  if (k->model == kHang) {
    if (k->code == CT_DEV_WATCHDOG) assert_true(k->end - k->start >= kWatchdog);
    assert_true(k->code == CT_DEV_WATCHDOG || (k->bad && (k->code == CT_DEV_DRAM_READ_WINDOW)));
  } else if (k->bad) {
    assert_true(k->code == CT_DEV_DRAM_READ_WINDOW || k->code == CT_DEV_DRAM_WRITE_WINDOW);
    assert_true(k->addr >= 0x01000000 || k->addr < 0x100);
  } else {
    assert_int_equal(k->code, CT_DEV_OK);
    assert_int_equal(k->addr, 0);
    assert_int_equal(k->rows, k->n * tiles_of(k->model));
  }
}

static void check_left(const struct bench *b, const struct request *r, uint32_t code) {
  switch (code) {
    case CT_DEV_CANCELLED:
      assert_true(r->cancelled);
      break;
    case CT_DEV_UNLOADED:
      assert_true(b->model[r->model].unloaded >= r->before);
      break;
    default:
      assert_int_equal(code, CT_DEV_RESET);
      assert_true(happened(b->resets, b->reset_count, r->before, UINT64_MAX));
  }
}

static void check_words(struct bench *b, const struct request *r) {
  const uint64_t arrive = read64(b, CT_REG_REC_ARRIVE_LO);
  const uint64_t deadline = arrive + (r->rel ? r->rel : UINT32_MAX);
  assert_int_equal(ct_rig_read(b->rig, CT_REG_REC_INPUT), r->input);
  assert_int_equal(ct_rig_read(b->rig, CT_REG_REC_OUTPUT), r->output);
  assert_int_equal(ct_rig_read(b->rig, CT_REG_REC_TAG), r->tag);
  assert_in_range(arrive, r->before, r->after);
  assert_int_equal(ct_rig_read(b->rig, CT_REG_REC_DEADLINE), (uint32_t)deadline);
  assert_int_equal(ct_rig_read(b->rig, CT_REG_REC_MODEL),
                   (r->rel ? 0 : THERE) | r->model << 28 | (uint32_t)(deadline >> 32 & 255));
}

static void check_data(struct bench *b, const struct request *r) {
  uint8_t got[16 * kAnswerUnits];
  read_answer(b->rig, r->output, got);
  ct_assert_same("answer", got, b->answer[r->model][b->batch.version % kImages][r->in], sizeof got);
}

/* The oldest record, if there is one. */
static bool reap(struct bench *b) {
  const uint32_t state = ct_rig_read(b->rig, CT_REG_REC_STATE);
  if (!(state & THERE)) return false;
  const uint32_t code = state & 255;
  struct request *r = &b->req[state >> 16 & 127];
  assert_true(r->live);
  check_words(b, r);
  if (state & RAN) {
    check_order(b, r);
    check_batch(b, r, state);
    if (b->batch.left == 0) check_end(b);
    if (code == CT_DEV_OK) check_data(b, r);
    const uint64_t arrive = read64(b, CT_REG_REC_ARRIVE_LO);
    assert_int_equal((state & MET) != 0,
                     code == CT_DEV_OK && (!r->rel || b->batch.end <= arrive + r->rel));
    b->met += (state & MET) != 0;
  } else {
    assert_int_equal(b->batch.left, 0);
    assert_int_equal(state & MET, 0);
    assert_int_equal(ct_rig_read(b->rig, CT_REG_REC_VERSION), 0);
    check_left(b, r, code);
  }
  ++b->codes[code];
  b->out_used[r->out] = false;
  r->live = false;
  --b->live;
  ct_rig_write(b->rig, CT_REG_REC_STATE, 0);
  return true;
}

/* ---- Jobs from the ring, and the other context --------------------------------------------- */

static void submit_ring(struct bench *b) {
  const uint32_t waiting = (uint16_t)(b->rig->tail[0] - ct_rig_cread(b->rig, 0, CT_CREG_HEAD));
  const uint32_t rest = ct_rig_cread(b->rig, 0, CT_CREG_STATUS); /* idle, no completions? */
  if (!waiting && !rest && b->ring.count) {
    assert_true(b->reset_count > 0);
    b->ring.count = 0; /* dropped */
  }
  if (b->ring.count >= 8 || waiting >= 8) return;
  const unsigned at = (b->ring.head + b->ring.count++) % 16, m = ct_rng_below(&b->rng, kHang);
  b->ring.tag[at] = ++b->ring_tag;
  b->ring.model[at] = m;
  b->ring.image[at] = ct_rng_below(&b->rng, kImages);
  b->ring.in[at] = ct_rng_below(&b->rng, kInputs);
  b->ring.out[at] = kOutputs + b->ring_tag % kRingOutputs;
  build(&b->prog, m, false);
  b->prog.args[0] = weights_unit(m, b->ring.image[at]);
  b->prog.args[1] = input_unit(b->ring.in[at]);
  b->prog.args[2] = output_unit(b->ring.out[at]);
  const struct ct_rig_job job = {.prog = &b->prog,
                                 .tag = b->ring_tag,
                                 .flags = ct_rng_percent(&b->rng, 50) ? CT_FLAG_OVERLAP : 0};
  ct_rig_submit(b->rig, 0, &job);
  ct_rig_ring(b->rig, 0);
}

/* A completion of a job from the ring, if there is one. A reset may have dropped some before. */
static bool reap_ring(struct bench *b) {
  if (!ct_rig_cread(b->rig, 0, CT_CREG_CPL_COUNT)) return false;
  const struct ct_rig_cpl c = ct_rig_reap(b->rig, 0, 1);
  while (b->ring.count && b->ring.tag[b->ring.head] != c.tag) {
    assert_true(b->reset_count > 0);
    b->ring.head = (b->ring.head + 1) % 16;
    --b->ring.count;
  }
  assert_true(b->ring.count > 0);
  const unsigned at = b->ring.head;
  b->ring.head = (at + 1) % 16;
  --b->ring.count;
  if (c.code == CT_DEV_OK) {
    uint8_t got[16 * kAnswerUnits];
    read_answer(b->rig, output_unit(b->ring.out[at]), got);
    ct_assert_same("answer of a job", got,
                   b->answer[b->ring.model[at]][b->ring.image[at]][b->ring.in[at]], sizeof got);
  } else if (c.code == CT_DEV_CANCELLED) {
    assert_true(happened(b->cancels, b->cancel_count, c.start - 1, c.end));
  } else {
    assert_int_equal(c.code, CT_DEV_RESET);
    assert_true(happened(b->resets, b->reset_count, c.start - 1, c.end));
  }
  ++b->ring_done;
  return true;
}

/* The other context: first contents, random work, and all of it to memory, on both devices. */
static void submit_other(struct bench *b) {
  const struct ct_gen_prog *progs[] = {&b->setup, &b->work, &b->dump};
  ct_gen_random(&b->rng, &b->work, 60, ct_rig_unit(1, CT_RIG_IN), ct_rig_unit(1, CT_RIG_OUT));
  for (unsigned i = 0; i < 3; ++i) {
    const struct ct_rig_job job = {.prog = progs[i], .tag = ++b->tag1};
    ct_pair_submit(&b->pair, 1, &job);
  }
  ct_pair_ring(&b->pair, 1);
  b->busy1 = true;
}

static void reap_other(struct bench *b) {
  if (!b->busy1 || ct_rig_cread(b->rig, 1, CT_CREG_CPL_COUNT) < 3) return;
  for (unsigned i = 0; i < 3; ++i)
    for (unsigned d = 0; d < 2; ++d)
      assert_int_equal(ct_rig_reap(&b->pair.rig[d], 1, 1).code, CT_DEV_OK);
  assert_true(ct_same_out(&b->pair, 1, "beside requests"));
  b->busy1 = false;
  ++b->other_done;
}

/* ---- The bench ----------------------------------------------------------------------------- */

static struct bench *open_bench(unsigned core, uint64_t stream, const char *args) {
  struct bench *b = test_calloc(1, sizeof *b);
  b->rng = ct_rng_make(stream);
  ct_pair_open(&b->pair, &ct_cores[core], args);
  b->rig = &b->pair.rig[0];
  assert_true(ct_rig_read(b->rig, CT_REG_FEATURES) & CT_FEATURE_BATCHER);
  for (unsigned i = 0; i < kInputs; ++i)
    fill(b, input_unit(i), 2, 16);
  for (unsigned m = 0; m < kModels; ++m) {
    for (unsigned i = 0; i < kImages; ++i)
      fill(b, weights_unit(m, i), tiles_of(m), 16);
    build(&b->prog, m, true);
    write_program(b, kModelProgs + m * kProgBytes, &b->prog);
  }
  know_answers(b);
  ct_pair_fill_input(&b->pair, 1, &b->rng);
  ct_gen_setup(&b->setup, ct_rig_unit(1, CT_RIG_IN));
  ct_gen_dump(&b->dump, ct_rig_unit(1, CT_RIG_OUT));
  return b;
}

static void close_bench(struct bench *b) {
  ct_pair_close(&b->pair);
  test_free(b);
}

static void freeze(struct bench *b, bool on) {
  ct_rig_write(b->rig, CT_REG_CTRL, on ? kFreeze : 0);
  b->frozen = on;
}

static void control(struct bench *b, uint32_t bits) {
  const uint64_t before = now(b);
  ct_rig_cwrite(b->rig, 0, CT_CREG_CONTROL, bits);
  if (bits == kReset)
    note(b->resets, &b->reset_count, before, now(b));
  else
    note(b->cancels, &b->cancel_count, before, now(b));
}

static void cancel_one(struct bench *b) {
  const unsigned ticket = ct_rng_below(&b->rng, CT_REQ_PLACES);
  ct_rig_write(b->rig, CT_REG_REQ_CANCEL, ticket);
  const uint32_t got = result(b) & 7;
  assert_true(got == CT_REQ_OK || got == CT_REQ_GONE);
  if (got == CT_REQ_OK) assert_true(b->req[ticket].live && !b->req[ticket].cancelled);
  if (got == CT_REQ_OK) b->req[ticket].cancelled = true;
}

static void push_some(struct bench *b) {
  const unsigned m = ct_rng_below(&b->rng, 30) ? ct_rng_below(&b->rng, kHang) : (unsigned)kHang;
  for (unsigned n = ct_rng_below(&b->rng, ct_rng_percent(&b->rng, 20) ? 40 : 8); n; --n) {
    const uint32_t rel = ct_rng_percent(&b->rng, 20) ? 0 : 200 + ct_rng_below(&b->rng, 20000);
    const unsigned bad = ct_rng_percent(&b->rng, 2) ? 1 + ct_rng_below(&b->rng, 2) : 0;
    push(b, ct_rng_percent(&b->rng, 70) ? m : ct_rng_below(&b->rng, kHang), rel, bad);
  }
}

/* One thing a host may do. */
static void act(struct bench *b) {
  const unsigned what = ct_rng_below(&b->rng, 1000);
  const unsigned m = ct_rng_below(&b->rng, kModels);
  if (what < 300) {
    push_some(b);
  } else if (what < 600) {
    for (unsigned n = ct_rng_below(&b->rng, 12); n && reap(b); --n)
      continue;
  } else if (what < 640) {
    cancel_one(b);
  } else if (what < 700) {
    /* Also at once again: a batch never gets words of two versions. */
    for (unsigned n = 1 + ct_rng_below(&b->rng, 3); n && b->model[m].loaded; --n)
      commit(b, m);
  } else if (what < 708) {
    if (b->model[m].loaded) unload(b, m);
  } else if (what < 740) {
    /* The control words need that nobody waits: so it is after an unload. */
    if (!b->model[m].loaded) load(b, m);
  } else if (what < 743) {
    control(b, kReset);
  } else if (what < 749) {
    control(b, kCancelContext);
  } else if (what < 820) {
    submit_ring(b);
  } else if (what < 870) {
    reap_ring(b);
  } else if (what < 880) {
    ct_rig_write(b->rig, CT_REG_POLICY, ct_rng_below(&b->rng, 5));
  } else if (what < 885) {
    freeze(b, !b->frozen);
  } else if (b->frozen) {
    freeze(b, false);
  } else {
    ct_rig_pass(b->rig, ct_rng_below(&b->rng, ct_rng_percent(&b->rng, 10) ? 3000 : 300));
  }
  reap_other(b);
  if (!b->busy1 && ct_rng_percent(&b->rng, 3)) submit_other(b);
}

/* All that was accepted has its record in the end, and nothing is left. */
static void drain(struct bench *b) {
  const uint64_t limit = now(b) + 2000000;
  if (b->frozen) freeze(b, false);
  ct_rig_write(b->rig, CT_REG_POLICY, 0);
  while (b->live || b->busy1) {
    while (reap(b))
      continue;
    while (reap_ring(b))
      continue;
    reap_other(b);
    ct_rig_pass(b->rig, 500);
    if (now(b) > limit) fail_msg("%" PRIu32 " requests never had a record", b->live);
  }
  for (unsigned i = 0; i < 200; ++i) {
    ct_rig_pass(b->rig, 100);
    while (reap_ring(b))
      continue;
  }
  for (; b->ring.count; --b->ring.count)
    assert_true(b->reset_count > 0); /* dropped */
  assert_false(reap(b));
  assert_int_equal(ct_rig_read(b->rig, CT_REG_BATCH_STATE) >> 8, 0);
  assert_int_equal(result(b) >> 8 & 127, CT_REQ_WAITING);
  assert_int_equal(b->batch.left, 0);
}

/* ---- Tests --------------------------------------------------------------------------------- */

static void mix(unsigned core, uint64_t stream, const char *args, uint64_t cycles,
                unsigned codes[16], unsigned sizes[CT_BATCH_MAX + 1]) {
  struct bench *b = open_bench(core, stream, args);
  for (unsigned m = 0; m < kModels; ++m)
    load(b, m);
  const uint64_t until = now(b) + cycles;
  while (now(b) < until)
    act(b);
  drain(b);
  for (unsigned i = 0; i < 16; ++i)
    codes[i] += b->codes[i];
  for (unsigned i = 0; i <= CT_BATCH_MAX; ++i)
    sizes[i] += b->sizes[i];
  assert_true(b->codes[CT_DEV_OK] > 50 && b->met > 0);
  assert_true(b->ring_done > 10 && b->other_done > 1);
  close_bench(b);
}

/* Anything at any time. CT_CYCLES: how long, each of four times. */
static void mixes(void **state) {
  (void)state;
  const char *text = getenv("CT_CYCLES");
  const uint64_t cycles = text ? strtoull(text, NULL, 0) : 120000;
  unsigned codes[16] = {0}, sizes[CT_BATCH_MAX + 1] = {0};
  for (unsigned core = 0; core < CT_CORES; ++core) {
    mix(core, 30 + core, "stall=25", cycles, codes, sizes);
    mix(core, 20 + core, "stall=10,latency=5", cycles, codes, sizes);
  }
  unsigned kinds = 0;
  for (unsigned n = 1; n <= CT_BATCH_MAX; ++n)
    kinds += sizes[n] > 0;
  printf("%llu cycles of anything; records:", (unsigned long long)(4 * cycles));
  for (unsigned i = 0; i < 16; ++i)
    if (codes[i]) printf(" %s %u", ct_dev_name(i), codes[i]);
  printf("; none lost, none twice\n");
  assert_true(sizes[1] && sizes[2] && sizes[CT_BATCH_MAX] && kinds >= CT_BATCH_MAX - 4);
  assert_true(codes[CT_DEV_CANCELLED] && codes[CT_DEV_RESET] && codes[CT_DEV_UNLOADED]);
  assert_true(codes[CT_DEV_DRAM_READ_WINDOW] && codes[CT_DEV_DRAM_WRITE_WINDOW]);
  assert_true(codes[CT_DEV_WATCHDOG]);
}

/* A model of a given policy, and nothing else. */
static void one_model(struct bench *b, unsigned m, unsigned policy, unsigned most,
                      uint32_t max_wait, uint32_t margin, uint32_t service) {
  const uint32_t control[] = {policy | most << 8, max_wait, margin};
  uint32_t services[CT_BATCH_MAX];
  for (unsigned i = 0; i < CT_BATCH_MAX; ++i)
    services[i] = service;
  if (b->model[m].loaded) unload(b, m);
  b->model[m].most = most;
  write_model_words(b, m, CT_MODEL_CTL, control, 3);
  write_model_words(b, m, CT_MODEL_SERVICE, services, CT_BATCH_MAX);
  commit(b, m);
}

static void wait_for_record(struct bench *b) {
  uint64_t limit = now(b) + 100000;
  ct_rig_write(b->rig, CT_REG_IRQ_ENABLE, 4);
  assert_int_equal(b->rig->ops->wait(b->rig->self, limit, -1), 1);
  assert_true(ct_rig_read(b->rig, CT_REG_IRQ_STATUS) & 4);
  ct_rig_write(b->rig, CT_REG_IRQ_ENABLE, 0);
}

/* Cycles from the push of the oldest record's request to the start of its batch. */
static uint64_t waited(struct bench *b) {
  wait_for_record(b);
  return read64(b, CT_REG_REC_START_LO) - read64(b, CT_REG_REC_ARRIVE_LO);
}

static void reap_all(struct bench *b) {
  CT_TB_WHILE (b->live, 1000000) {
    wait_for_record(b);
    assert_true(reap(b));
  }
}

/* On an idle device a request waits as its model's policy says, and the start of a job longer. */
static void waiting(void **state) {
  (void)state;
  enum { kStart = 150, kWait = 2000, kDeadline = 9000, kService = 3000, kMargin = 500 };
  for (unsigned core = 0; core < CT_CORES; ++core) {
    struct bench *b = open_bench(core, 40 + core, "stall=10");
    one_model(b, 0, CT_WAIT_NONE, 4, 0, 0, 0);
    push(b, 0, 0, 0);
    assert_in_range(waited(b), 1, kStart);
    reap_all(b);
    one_model(b, 0, CT_WAIT_FIXED, 4, kWait, 0, 0);
    push(b, 0, 0, 0);
    assert_in_range(waited(b), kWait, kWait + kStart);
    reap_all(b);
    for (unsigned i = 0; i < 4; ++i) /* max_batch: nothing to wait for */
      push(b, 0, 0, 0);
    assert_in_range(waited(b), 1, kWait / 2);
    reap_all(b);
    one_model(b, 0, CT_WAIT_ADAPTIVE, 4, kWait, kMargin, kService);
    push(b, 0, kDeadline, 0);
    const uint64_t go = kDeadline - kService - kMargin;
    assert_in_range(waited(b), go, go + kStart);
    assert_true(ct_rig_read(b->rig, CT_REG_REC_STATE) & MET);
    reap_all(b);
    close_bench(b);
  }
}

/* Where both wait, jobs of the ring and batches take turns. */
static void turns(void **state) {
  (void)state;
  enum { kEach = 6 };
  struct bench *b = open_bench(0, 50, "stall=10");
  one_model(b, 0, CT_WAIT_NONE, 1, 0, 0, 0);
  freeze(b, true);
  for (unsigned i = 0; i < kEach; ++i) {
    assert_int_equal(push(b, 0, 0, 0), CT_REQ_OK);
    submit_ring(b);
  }
  ct_rig_pass(b->rig, 1000);
  freeze(b, false);
  uint64_t start[2][kEach];
  for (unsigned i = 0; i < kEach; ++i) {
    wait_for_record(b);
    start[0][i] = read64(b, CT_REG_REC_START_LO);
    assert_true(reap(b));
  }
  for (unsigned i = 0; i < kEach; ++i)
    start[1][i] = ct_rig_reap(b->rig, 0, 100000).start;
  b->ring.count = 0;
  for (unsigned i = 0; i + 1 < kEach; ++i) {
    assert_true(start[0][i] < start[1][i + 1]);
    assert_true(start[1][i] < start[0][i + 1]);
  }
  close_bench(b);
}

/* A host that pops no completions holds up no requests, one that pops no records no jobs; then it
 * is refused. */
static void nobody_reaps(void **state) {
  (void)state;
  struct bench *b = open_bench(0, 60, "stall=10");
  one_model(b, 0, CT_WAIT_NONE, 16, 0, 0, 0);
  for (unsigned done = 0; done < CT_CPL_DEPTH + 4;) {
    b->ring.count = 0; /* these are not popped here */
    const uint16_t tail = b->rig->tail[0];
    submit_ring(b);
    done += tail != b->rig->tail[0];
    ct_rig_pass(b->rig, 2500);
    if (ct_rig_cread(b->rig, 0, CT_CREG_CPL_COUNT) == CT_CPL_DEPTH) break;
  }
  submit_ring(b);
  submit_ring(b);
  for (unsigned i = 0; i < 20; ++i) {
    assert_int_equal(push(b, 0, 0, 0), CT_REQ_OK);
    reap_all(b);
  }
  assert_int_equal(ct_rig_cread(b->rig, 0, CT_CREG_CPL_COUNT), CT_CPL_DEPTH);
  unsigned accepted = 0;
  for (unsigned idle = 0; idle < 20;) {
    if (push(b, 0, 0, 0) == CT_REQ_OK) {
      ++accepted;
      idle = 0;
    } else {
      ct_rig_pass(b->rig, 1000);
      ++idle;
    }
  }
  assert_int_equal(accepted, CT_REQ_PLACES);
  assert_true(b->refused[CT_REQ_FULL] > 0);
  for (unsigned i = 0; i < CT_CPL_DEPTH + 2; ++i)
    assert_int_equal(ct_rig_reap(b->rig, 0, 100000).code, CT_DEV_OK);
  b->ring.count = 0;
  reap_all(b);
  close_bench(b);
}

/* ---- Faults ---------------------------------------------------------------------------------- */

static void arm(struct bench *b, enum ct_fault kind) {
  const uint64_t weights =
      16 * (uint64_t)weights_unit(0, (unsigned)(b->model[0].version % kImages));
  assert_int_equal(b->rig->ops->fault(b->rig->self, kind, weights), 0);
}

/* Codes of the next records, in order. */
static void expect(struct bench *b, unsigned count, uint32_t code) {
  while (count--) {
    wait_for_record(b);
    assert_int_equal(ct_rig_read(b->rig, CT_REG_REC_STATE) & 255, code);
    assert_true(reap(b));
  }
}

static unsigned waiting_now(struct bench *b) {
  return ct_rig_read(b->rig, CT_REG_BATCH_STATE) >> 24;
}

/* An error answer is the error of one whole batch; a port that does not answer is DEAD for the one
 * that runs, the others wait, can be cancelled and dropped, and are served when it answers. */
static void faults(void **state) {
  (void)state;
  enum { kLong = 20000 };
  for (unsigned core = 0; core < CT_CORES; ++core) {
    struct bench *b = open_bench(core, 80 + core, "stall=10");
    one_model(b, 0, CT_WAIT_FIXED, 3, 100000, 0, 0);
    arm(b, CT_FAULT_AXI_READ);
    b->fault = CT_DEV_AXI_READ;
    for (unsigned i = 0; i < 6; ++i)
      push(b, 0, 0, 0);
    expect(b, 3, CT_DEV_AXI_READ);
    expect(b, 3, CT_DEV_OK);
    ct_rig_write(b->rig, CT_REG_DRAIN_LIMIT, 3000);
    ct_rig_cwrite(b->rig, 0, CT_CREG_WATCHDOG, 2000);
    one_model(b, 0, CT_WAIT_NONE, 1, 0, 0, 0);
    b->fault = CT_DEV_DEAD;
    for (unsigned round = 0; round < 2; ++round) {
      arm(b, CT_FAULT_AXI_HANG);
      for (unsigned i = 0; i < 4; ++i)
        push(b, 0, 0, 0);
      expect(b, 1, CT_DEV_DEAD);
      ct_rig_pass(b->rig, kLong);
      assert_int_equal(waiting_now(b), 2); /* and one is the next batch */
      const uint32_t ticket = result(b) >> 16 & 127;
      ct_rig_write(b->rig, CT_REG_REQ_CANCEL, ticket);
      b->req[ticket].cancelled = true;
      assert_int_equal(result(b) & 7, CT_REQ_OK);
      if (round) control(b, kReset);
      arm(b, CT_FAULT_NONE);
      push(b, 0, 0, 0);
      expect(b, 1, round ? CT_DEV_RESET : CT_DEV_OK); /* as they left the queue */
      expect(b, 1, CT_DEV_CANCELLED);
      expect(b, 1, round ? CT_DEV_RESET : CT_DEV_OK);
      expect(b, 1, CT_DEV_OK);
    }
    close_bench(b);
  }
}

/* ---- What SLACK gives ------------------------------------------------------------------------ */

/* Cycles that the other context's jobs take beside requests with this deadline. */
static uint64_t beside(uint32_t policy, uint32_t rel) {
  enum { kRounds = 8, kAtOnce = 12 };
  uint64_t sum = 0;
  struct bench *b = open_bench(0, 90, "bandwidth=4");
  one_model(b, 3, CT_WAIT_NONE, CT_BATCH_MAX, 0, 0, 0);
  ct_rig_write(b->rig, CT_REG_POLICY, policy);
  for (unsigned round = 0; round < kRounds; ++round) {
    b->rng = ct_rng_make(900 + round);
    submit_other(b);
    const uint64_t from = now(b);
    CT_TB_WHILE (b->busy1, 1000000) {
      while (b->live < kAtOnce)
        push(b, 3, rel, 0);
      while (b->live > kAtOnce / 2 && reap(b))
        continue;
      ct_rig_pass(b->rig, 50);
      reap_other(b);
    }
    sum += now(b) - from;
  }
  close_bench(b);
  return sum;
}

/* While there is time the other context gets every other slot, and else none that requests want. */
static void slack(void **state) {
  (void)state;
  const uint64_t priority = beside(0, 0), free_time = beside(4, 0), late = beside(4, 1);
  printf("training beside requests: %" PRIu64 " cycles under PRIORITY, %" PRIu64
         " under SLACK, %" PRIu64 " when all are late\n",
         priority, free_time, late);
  assert_true(free_time < priority);
  assert_in_range(late, priority * 99 / 100, priority * 101 / 100);
}

/* ---- The core and the emulator, request by request ----------------------------------------- */

/* The same accesses on both; what is read must be equal. */
static uint32_t read_both(struct bench *b, uint32_t offset) {
  const uint32_t core = ct_rig_read(&b->pair.rig[0], offset);
  const uint32_t emu = ct_rig_read(&b->pair.rig[1], offset);
  if (core != emu)
    fail_msg("register 0x%03" PRIx32 ": core %08" PRIx32 ", emulator %08" PRIx32, offset, core,
             emu);
  return core;
}

static void load_both(struct bench *b, unsigned m, uint32_t version, uint32_t most) {
  uint32_t desc[CT_DESC_BYTES / 4] = {0};
  build(&b->prog, m, true);
  desc[CT_DESC_VERSION] = version;
  desc[CT_DESC_PROG] = ct_rig_unit(0, kModelProgs + m * kProgBytes);
  desc[CT_DESC_NCMDS] = b->prog.count;
  desc[CT_DESC_WATCHDOG] = m == kHang ? kWatchdog : 0;
  desc[CT_DESC_ARG0] = weights_unit(m, version % kImages);
  ct_pair_write(&b->pair, CT_REG_MODEL_ADDR, m * CT_MODEL_WORDS);
  for (unsigned i = 0; i < CT_DESC_BYTES / 4; ++i)
    ct_pair_write(&b->pair, CT_REG_MODEL_DATA, desc[i]);
  ct_pair_write(&b->pair, CT_REG_MODEL_ADDR, m * CT_MODEL_WORDS + CT_MODEL_CTL);
  ct_pair_write(&b->pair, CT_REG_MODEL_DATA, CT_WAIT_NONE | most << 8);
  ct_pair_write(&b->pair, CT_REG_MODEL_COMMIT, m);
}

static void push_both(struct bench *b) {
  const unsigned m = ct_rng_below(&b->rng, kModels), out = ct_rng_below(&b->rng, kOutputs);
  const bool bad = ct_rng_percent(&b->rng, 3);
  ct_pair_write(&b->pair, CT_REG_REQ_INPUT,
                bad ? 0x01000000 : input_unit(ct_rng_below(&b->rng, kInputs)));
  ct_pair_write(&b->pair, CT_REG_REQ_OUTPUT, output_unit(out));
  ct_pair_write(&b->pair, CT_REG_REQ_TAG, ++b->tag);
  /* So far apart that the cycles between two pushes do not change their order. */
  ct_pair_write(&b->pair, CT_REG_REQ_DEADLINE, 1000000 * ct_rng_below(&b->rng, 1000));
  ct_pair_write(&b->pair, CT_REG_REQ_PUSH, m);
  if (ct_rng_percent(&b->rng, 50)) read_both(b, CT_REG_REQ_RESULT);
}

/* Two resets, the second while the first one still takes the queue apart, and a push between them:
 * it is gone, too. */
static void reset_both(struct bench *b) {
  ct_pair_write(&b->pair, CT_REG_REQ_INPUT, input_unit(0));
  ct_pair_write(&b->pair, CT_REG_REQ_OUTPUT, output_unit(0));
  ct_pair_write(&b->pair, CT_REG_REQ_TAG, ++b->tag);
  ct_pair_write(&b->pair, CT_REG_REQ_DEADLINE, 0);
  ct_pair_cwrite(&b->pair, 0, CT_CREG_CONTROL, kReset);
  ct_pair_write(&b->pair, CT_REG_REQ_PUSH, 0);
  ct_pair_cwrite(&b->pair, 0, CT_CREG_CONTROL, kReset);
}

static void records_of_both(struct bench *b, unsigned codes[16]) {
  static const uint32_t words[] = {CT_REG_REC_INPUT, CT_REG_REC_OUTPUT, CT_REG_REC_TAG,
                                   CT_REG_REC_ADDR, CT_REG_REC_VERSION};
  for (;;) {
    const uint32_t core = ct_rig_read(&b->pair.rig[0], CT_REG_REC_STATE);
    const uint32_t emu = ct_rig_read(&b->pair.rig[1], CT_REG_REC_STATE);
    const uint32_t code = core & 255;
    if ((core ^ emu) & ~MET) fail_msg("record %08" PRIx32 " (emulator: %08" PRIx32 ")", core, emu);
    if (!(core & THERE)) break;
    for (unsigned i = 0; i < sizeof words / sizeof *words; ++i)
      read_both(b, words[i]);
    if (code == CT_DEV_OK || !(core & RAN)) read_both(b, CT_REG_REC_ROWS);
    ++codes[code];
    ct_pair_write(&b->pair, CT_REG_REC_STATE, 0);
  }
}

/* What is pushed while frozen is the same on both: tickets, refusals, batches, records, answers. */
static void same_on_both(void **state) {
  (void)state;
  unsigned codes[16] = {0};
  for (unsigned core = 0; core < CT_CORES; ++core) {
    struct bench *b = open_bench(core, 70 + core, "stall=25");
    for (unsigned round = 0; round < 12; ++round) {
      for (unsigned m = 0; m < kModels; ++m)
        load_both(b, m, round, ct_rng_below(&b->rng, CT_BATCH_MAX));
      ct_pair_write(&b->pair, CT_REG_CTRL, kFreeze);
      for (unsigned n = ct_rng_below(&b->rng, 80); n; --n)
        push_both(b);
      for (unsigned n = ct_rng_below(&b->rng, 6); n; --n) {
        ct_pair_write(&b->pair, CT_REG_REQ_CANCEL, ct_rng_below(&b->rng, CT_REQ_PLACES));
        read_both(b, CT_REG_REQ_RESULT);
      }
      if (round % 3 == 0)
        ct_pair_write(&b->pair, CT_REG_MODEL_UNLOAD, ct_rng_below(&b->rng, kModels));
      if (round % 5 == 4) reset_both(b);
      read_both(b, CT_REG_BATCH_STATE);
      ct_pair_write(&b->pair, CT_REG_CTRL, 0);
      ct_rig_read(&b->pair.rig[1], CT_REG_BATCH_STATE);
      ct_rig_pass(b->rig, 60000);
      records_of_both(b, codes);
      read_both(b, CT_REG_BATCH_STATE);
      assert_true(ct_same_out(&b->pair, 0, "after a round of requests"));
      for (unsigned m = 0; m < kModels; ++m)
        ct_pair_write(&b->pair, CT_REG_MODEL_UNLOAD, m);
    }
    close_bench(b);
  }
  assert_true(codes[CT_DEV_OK] > 100 && codes[CT_DEV_CANCELLED] && codes[CT_DEV_RESET]);
  assert_true(codes[CT_DEV_UNLOADED] && codes[CT_DEV_WATCHDOG]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(waiting), cmocka_unit_test(turns),        cmocka_unit_test(nobody_reaps),
      cmocka_unit_test(mixes),   cmocka_unit_test(same_on_both), cmocka_unit_test(faults),
      cmocka_unit_test(slack),
  };
  return cmocka_run_group_tests_name("requests", tests, NULL, NULL);
}
