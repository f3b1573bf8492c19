/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The emulator's batcher against a list that is searched anew for every batch: orders, refusals,
 * tickets, codes, records, and what the batches have copied. Every model's program copies a unit
 * from each request's input to its output.
 */
#include <string.h>

#include "ct_rig.h"

enum {
  STEPS = 300000,
  UNIT = 16,
  INPUTS = 256,
  OUTPUTS = 512,
  NOWHERE = 0x10000000, /* in no window */
  FREEZE = 2
};

struct request {
  uint32_t word[3], deadline; /* input, output, tag */
  unsigned model, ticket, count;
  uint64_t number;
  bool ran;
  uint32_t code, addr, version;
};

struct model {
  bool loaded;
  unsigned most;
  uint32_t version;
};

struct bench {
  struct ct_rig rig;
  ct_rng rng;
  struct ct_gen_prog *copy;
  struct model model[CT_MODELS];
  struct request wait[CT_REQ_WAITING], left[CT_REQ_PLACES];
  unsigned waits, lefts, free[CT_REQ_PLACES], frees;
  uint32_t result, ticket, tag;
  uint64_t numbers;
  bool frozen, due;
  uint8_t in[INPUTS][UNIT], out[OUTPUTS][UNIT]; /* the memories as they should be */
  unsigned seen[16], codes[16];                 /* batches by size - 1; records by code */
  unsigned refused[4];
};

/* ---- The device's side ---- */

static struct ct_cmd *add_dma(struct ct_gen_prog *p, unsigned code) {
  struct ct_cmd *cmd = &p->cmds[p->count++];
  CT_PUT(cmd, ALL_OP, code);
  CT_PUT(cmd, DMA_GATHER, 1);
  CT_PUT(cmd, DMA_NB, 1);
  CT_PUT(cmd, DMA_S0, 1);
  CT_PUT(cmd, DMA_N1, 1);
  CT_PUT(cmd, DMA_S2, 1);
  return cmd;
}

static void build_copy(struct ct_gen_prog *p) {
  struct ct_cmd *load = add_dma(p, CT_OP_LD), *store = add_dma(p, CT_OP_ST);
  CT_PUT(load, ALL_SIG1, CT_SEM(0));
  CT_PUT(store, ALL_WAIT1, CT_SEM(0));
  CT_PUT(&p->cmds[p->count++], ALL_OP, CT_OP_END);
}

static void write_model(struct bench *b, unsigned m) {
  const uint32_t at = ct_rig_unit(0, CT_RIG_PROGS);
  ct_rig_write(&b->rig, CT_REG_MODEL_ADDR, m * CT_MODEL_WORDS);
  for (unsigned i = 0; i < CT_DESC_BYTES / 4; ++i)
    ct_rig_write(&b->rig, CT_REG_MODEL_DATA,
                 i == CT_DESC_VERSION ? b->model[m].version
                 : i == CT_DESC_PROG  ? at
                 : i == CT_DESC_NCMDS ? b->copy->count
                                      : 0);
}

static void write_control(struct bench *b, unsigned m) {
  ct_rig_write(&b->rig, CT_REG_MODEL_ADDR, m * CT_MODEL_WORDS + CT_MODEL_CTL);
  ct_rig_write(&b->rig, CT_REG_MODEL_DATA, CT_WAIT_FIXED | b->model[m].most << 8);
}

static void set_up(struct bench *b) {
  uint8_t bytes[CT_CMD_BYTES];
  ct_rig_setup(&b->rig);
  for (unsigned i = 0; i < b->copy->count; ++i) {
    ct_cmd_to_bytes(&b->copy->cmds[i], bytes);
    b->rig.ops->mem_write(b->rig.self, ct_rig_addr(0, CT_RIG_PROGS) + i * sizeof bytes, bytes,
                          sizeof bytes);
  }
  ct_rig_write(&b->rig, CT_REG_IRQ_ENABLE, 7);
}

static void open_bench(struct bench *b, uint64_t stream) {
  memset(b, 0, sizeof *b);
  b->rng = ct_rng_make(stream);
  b->copy = test_calloc(1, sizeof *b->copy);
  build_copy(b->copy);
  ct_rig_open(&b->rig, "emu", &ct_transport_emu, NULL, "dram=8");
  set_up(b);
  ct_rng_fill(&b->rng, b->in, sizeof b->in);
  b->rig.ops->mem_write(b->rig.self, ct_rig_addr(0, CT_RIG_IN), b->in, sizeof b->in);
  for (unsigned i = 0; i < CT_REQ_PLACES; ++i)
    b->free[b->frees++] = i;
}

static void close_bench(struct bench *b) {
  ct_rig_close(&b->rig);
  test_free(b->copy);
}

/* ---- What it should do ---- */

static bool before(const struct request *a, const struct request *b) {
  const uint32_t da = a->deadline ? a->deadline : UINT32_MAX;
  const uint32_t db = b->deadline ? b->deadline : UINT32_MAX;
  return da != db ? da < db : a->number < b->number;
}

/* The first of a model (-1: of all) that wait; waits: there is none. */
static unsigned first_of(const struct bench *b, int model) {
  unsigned best = b->waits;
  for (unsigned i = 0; i < b->waits; ++i)
    if ((model < 0 || b->wait[i].model == (unsigned)model) &&
        (best == b->waits || before(&b->wait[i], &b->wait[best])))
      best = i;
  return best;
}

static struct request *leave(struct bench *b, unsigned i) {
  struct request *r = &b->left[b->lefts++];
  *r = b->wait[i];
  b->wait[i] = b->wait[--b->waits];
  b->due &= b->waits > 0;
  return r;
}

static bool is_good(uint32_t addr) {
  return addr != NOWHERE;
}

/* A batch fails with the first input, or else output, that is outside. */
static void run_batch(struct bench *b, struct request *r, unsigned n) {
  uint32_t code = CT_DEV_OK, addr = 0;
  for (unsigned i = 0; i < 2 * n && !code; ++i)
    if (!is_good(r[i % n].word[i / n])) {
      code = i < n ? CT_DEV_DRAM_READ_WINDOW : CT_DEV_DRAM_WRITE_WINDOW;
      addr = NOWHERE;
    }
  for (unsigned i = 0; i < n && code != CT_DEV_DRAM_READ_WINDOW && is_good(r[i].word[1]); ++i)
    memcpy(b->out[r[i].word[1] - ct_rig_unit(0, CT_RIG_OUT)],
           b->in[r[i].word[0] - ct_rig_unit(0, CT_RIG_IN)], UNIT);
  for (unsigned i = 0; i < n; ++i) {
    r[i].ran = true;
    r[i].count = n;
    r[i].code = code;
    r[i].addr = addr;
    r[i].version = b->model[r[i].model].version;
  }
  ++b->seen[n - 1];
}

static void run_all(struct bench *b) {
  while (b->due && !b->frozen && b->waits) {
    const unsigned model = b->wait[first_of(b, -1)].model, from = b->lefts;
    while (b->lefts - from < b->model[model].most && first_of(b, (int)model) < b->waits)
      leave(b, first_of(b, (int)model));
    run_batch(b, &b->left[from], b->lefts - from);
  }
}

static void look(struct bench *b) {
  b->due = b->waits > 0;
  run_all(b);
}

static unsigned room(const struct bench *b) {
  const unsigned queue = CT_REQ_WAITING - b->waits;
  return b->frees < queue ? b->frees : queue;
}

/* Those that fit leave with this code. */
static unsigned give_up(struct bench *b, int model, int ticket, uint32_t code) {
  const unsigned from = b->lefts;
  for (;;) {
    unsigned best = b->waits;
    for (unsigned i = 0; i < b->waits; ++i)
      if ((model < 0 || b->wait[i].model == (unsigned)model) &&
          (ticket < 0 || b->wait[i].ticket == (unsigned)ticket) &&
          (best == b->waits || before(&b->wait[i], &b->wait[best])))
        best = i;
    if (best == b->waits) break;
    leave(b, best)->code = code;
  }
  for (unsigned i = from; i < b->lefts; ++i)
    b->left[i].count = b->lefts - from;
  return b->lefts - from;
}

/* ---- Both ---- */

static void push(struct bench *b) {
  struct request r = {.number = b->numbers++,
                      .model = ct_rng_below(&b->rng, 1 + ct_rng_below(&b->rng, CT_MODELS))};
  r.word[0] = ct_rig_unit(0, CT_RIG_IN) + ct_rng_below(&b->rng, INPUTS);
  r.word[1] = ct_rig_unit(0, CT_RIG_OUT) + ct_rng_below(&b->rng, OUTPUTS);
  if (ct_rng_below(&b->rng, 200) == 0) r.word[0] = NOWHERE;
  if (ct_rng_below(&b->rng, 200) == 0) r.word[1] = NOWHERE;
  r.word[2] = b->tag++;
  r.deadline = ct_rng_percent(&b->rng, 30) ? 0 : 1 + ct_rng_below(&b->rng, 50);
  const bool no_place = b->frees == 0;
  for (unsigned i = 0; i < 3; ++i)
    ct_rig_write(&b->rig, CT_REG_REQ_INPUT + 4 * i, r.word[i]);
  ct_rig_write(&b->rig, CT_REG_REQ_DEADLINE, r.deadline);
  ct_rig_write(&b->rig, CT_REG_REQ_PUSH, r.model);
  b->result = !b->model[r.model].loaded                ? CT_REQ_MODEL
              : no_place || b->waits == CT_REQ_WAITING ? CT_REQ_FULL
                                                       : CT_REQ_OK;
  ++b->refused[b->result];
  if (b->result != CT_REQ_OK) return;
  r.ticket = b->ticket = b->free[0];
  memmove(b->free, b->free + 1, --b->frees * sizeof *b->free);
  b->wait[b->waits++] = r;
  if (b->waits == CT_REQ_WAITING) look(b);
}

static void cancel(struct bench *b) {
  const unsigned ticket = ct_rng_below(&b->rng, CT_REQ_PLACES);
  ct_rig_write(&b->rig, CT_REG_REQ_CANCEL, ticket);
  b->result = give_up(b, -1, (int)ticket, CT_DEV_CANCELLED) ? CT_REQ_OK : CT_REQ_GONE;
}

static void load(struct bench *b) {
  const unsigned m = ct_rng_below(&b->rng, CT_MODELS);
  struct model *k = &b->model[m];
  if (!k->loaded) {
    k->most = 1 + ct_rng_below(&b->rng, CT_BATCH_MAX);
    write_control(b, m);
  }
  k->loaded = true;
  ++k->version;
  write_model(b, m);
  ct_rig_write(&b->rig, CT_REG_MODEL_COMMIT, m);
}

static void unload(struct bench *b) {
  const unsigned m = ct_rng_below(&b->rng, CT_MODELS);
  ct_rig_write(&b->rig, CT_REG_MODEL_UNLOAD, m);
  b->model[m].loaded = false;
  give_up(b, (int)m, -1, CT_DEV_UNLOADED);
}

static void freeze(struct bench *b) {
  b->frozen = !b->frozen;
  ct_rig_write(&b->rig, CT_REG_CTRL, b->frozen ? FREEZE : 0);
  run_all(b);
}

static void soft_reset(struct bench *b) {
  ct_rig_cwrite(&b->rig, 0, CT_CREG_CONTROL, 1);
  give_up(b, -1, -1, CT_DEV_RESET);
}

static void check_state(struct bench *b) {
  look(b);
  const uint32_t want = b->result | room(b) << 8 | b->ticket << 16;
  assert_int_equal(ct_rig_read(&b->rig, CT_REG_REQ_RESULT), want);
  uint32_t loaded = 0;
  for (unsigned m = 0; m < CT_MODELS; ++m)
    loaded |= (uint32_t)b->model[m].loaded << m;
  assert_int_equal(ct_rig_read(&b->rig, CT_REG_BATCH_STATE), loaded | b->waits << 24);
}

static void check_record(struct bench *b) {
  const struct request *r = &b->left[0];
  look(b);
  const uint32_t there = b->lefts > 0;
  assert_int_equal(ct_rig_read(&b->rig, CT_REG_REC_STATE) >> 31, there);
  assert_int_equal(ct_rig_read(&b->rig, CT_REG_IRQ_STATUS), there << 2);
  assert_int_equal(b->rig.ops->wait(b->rig.self, CT_NO_CYCLE, 0), there);
  if (!there) {
    for (uint32_t at = CT_REG_REC_INPUT; at <= CT_REG_REC_ROWS; at += 4)
      assert_int_equal(ct_rig_read(&b->rig, at), 0);
    return;
  }
  for (unsigned i = 0; i < 3; ++i)
    assert_int_equal(ct_rig_read(&b->rig, CT_REG_REC_INPUT + 4 * i), r->word[i]);
  const bool met = r->ran && r->code == CT_DEV_OK;
  assert_int_equal(ct_rig_read(&b->rig, CT_REG_REC_STATE),
                   UINT32_C(1) << 31 | (uint32_t)met << 30 | (uint32_t)r->ran << 29 |
                       r->ticket << 16 | r->count << 8 | r->code);
  assert_int_equal(ct_rig_read(&b->rig, CT_REG_REC_MODEL),
                   (r->deadline ? 0 : UINT32_C(1) << 31) | (uint32_t)r->model << 28);
  assert_int_equal(ct_rig_read(&b->rig, CT_REG_REC_VERSION), r->version);
  assert_int_equal(ct_rig_read(&b->rig, CT_REG_REC_ADDR), r->addr);
  assert_int_equal(ct_rig_read(&b->rig, CT_REG_REC_END_LO), 0);
  ++b->codes[r->code];
  ct_rig_write(&b->rig, CT_REG_REC_STATE, 0);
  b->free[b->frees++] = r->ticket;
  memmove(b->left, b->left + 1, --b->lefts * sizeof *b->left);
}

static void check_memory(struct bench *b) {
  static uint8_t out[OUTPUTS][UNIT];
  look(b);
  (void)ct_rig_read(&b->rig, CT_REG_BATCH_STATE);
  b->rig.ops->mem_read(b->rig.self, ct_rig_addr(0, CT_RIG_OUT), out, sizeof out);
  ct_assert_same("outputs", out, b->out, sizeof out);
}

static void random_requests(void **state) {
  (void)state;
  struct bench *b = test_malloc(sizeof *b);
  open_bench(b, 1);
  unsigned reap = 30; /* percent */
  for (unsigned i = 0; i < STEPS; ++i) {
    const unsigned what = ct_rng_below(&b->rng, 1000);
    if (i % 500 == 0) reap = i / 500 % 4 == 3 ? 0 : 10 + ct_rng_below(&b->rng, 30);
    if (what < 600)
      push(b);
    else if (what < 600 + 10 * reap && what < 940)
      check_record(b);
    else if (what < 960)
      cancel(b);
    else if (what < 970)
      load(b);
    else if (what < 973)
      unload(b);
    else if (what < 976)
      freeze(b);
    else if (what < 978)
      soft_reset(b);
    else if (what < 990)
      check_state(b);
    else if (what < 995)
      check_memory(b);
  }
  if (b->frozen) freeze(b);
  look(b);
  while (b->lefts)
    check_record(b);
  check_record(b);
  check_memory(b);
  for (unsigned n = 0; n < CT_BATCH_MAX; ++n)
    assert_true(b->seen[n] > 0);
  static const uint32_t wanted[] = {CT_DEV_OK,        CT_DEV_DRAM_READ_WINDOW,
                                    CT_DEV_CANCELLED, CT_DEV_DRAM_WRITE_WINDOW,
                                    CT_DEV_RESET,     CT_DEV_UNLOADED};
  for (unsigned i = 0; i < sizeof wanted / sizeof *wanted; ++i)
    assert_true(b->codes[wanted[i]] > 10);
  for (unsigned i = 0; i < CT_REQ_GONE; ++i)
    assert_true(b->refused[i] > 100);
  close_bench(b);
  test_free(b);
}

/* What is the queue's, and what the ring's. */
static void the_ring_takes_turns(void **state) {
  (void)state;
  struct bench *b = test_malloc(sizeof *b);
  open_bench(b, 2);
  struct ct_gen_prog end = {.count = 1};
  CT_PUT(&end.cmds[0], ALL_OP, CT_OP_END);
  b->model[3].most = 1;
  write_control(b, 3);
  write_model(b, 3);
  ct_rig_write(&b->rig, CT_REG_MODEL_COMMIT, 3);
  ct_rig_write(&b->rig, CT_REG_CTRL, FREEZE);
  /* (In the slot whose program's place is not the batches'.) */
  ct_rig_submit(&b->rig, 0, &(struct ct_rig_job){.prog = b->copy, .tag = 7});
  ct_rig_submit(&b->rig, 0, &(struct ct_rig_job){.prog = &end, .tag = 8});
  ct_rig_ring(&b->rig, 0);
  for (unsigned i = 0; i < 3; ++i) {
    ct_rig_write(&b->rig, CT_REG_REQ_INPUT, ct_rig_unit(0, CT_RIG_IN) + i);
    ct_rig_write(&b->rig, CT_REG_REQ_OUTPUT, ct_rig_unit(0, CT_RIG_OUT) + i);
    ct_rig_write(&b->rig, CT_REG_REQ_TAG, i);
    ct_rig_write(&b->rig, CT_REG_REQ_DEADLINE, 0);
    ct_rig_write(&b->rig, CT_REG_REQ_PUSH, 3);
  }
  assert_int_equal(ct_rig_read(&b->rig, CT_REG_REC_STATE), 0);
  /* Step by step: which of the two has begun shows in HEAD and in the models on their way. */
  static const char order[] = "brbrb";
  for (unsigned i = 0, head = 0; i < sizeof order - 1; ++i) {
    ct_rig_write(&b->rig, CT_REG_CTRL, FREEZE | 4);
    head += order[i] == 'r';
    assert_int_equal(ct_rig_read(&b->rig, CT_REG_BATCH_STATE) >> 8 & 255, order[i] == 'b' ? 8 : 0);
    assert_int_equal(ct_rig_cread(&b->rig, 0, CT_CREG_HEAD), head);
    /* A cancel by number is for the ring's jobs. */
    if (order[i] == 'b') ct_rig_cwrite(&b->rig, 0, CT_CREG_CONTROL, (head - 1) << 16 | 6);
    while (ct_rig_cread(&b->rig, 0, CT_CREG_STATUS) & 2 &&
           (ct_rig_cread(&b->rig, 0, CT_CREG_STATUS) & 7) == 3)
      ct_rig_write(&b->rig, CT_REG_CTRL, FREEZE | 4);
  }
  ct_rig_write(&b->rig, CT_REG_CTRL, 0);
  /* In a job of the ring Gather is illegal. */
  struct ct_rig_cpl c = ct_rig_reap(&b->rig, 0, 0);
  assert_int_equal(c.tag, 7);
  assert_int_equal(c.code, CT_DEV_ILLEGAL);
  assert_int_equal(c.addr, 0);
  c = ct_rig_reap(&b->rig, 0, 0);
  assert_int_equal(c.tag, 8);
  assert_int_equal(c.code, CT_DEV_OK);
  for (unsigned i = 0; i < 3; ++i) {
    assert_int_equal(ct_rig_read(&b->rig, CT_REG_REC_TAG), i);
    assert_int_equal(ct_rig_read(&b->rig, CT_REG_REC_STATE) & 0xff, CT_DEV_OK);
    ct_rig_write(&b->rig, CT_REG_REC_STATE, 1);
  }
  assert_int_equal(ct_rig_read(&b->rig, CT_REG_REC_STATE), 0);
  close_bench(b);
  test_free(b);
}

/* Words of models: two descriptors in turn, one table of control words; a batch that is under way
 * keeps its own and is cancelled as a whole; a global reset forgets everything. */
static void words_of_models(void **state) {
  (void)state;
  struct bench *b = test_malloc(sizeof *b);
  open_bench(b, 3);
  for (unsigned i = 0; i < CT_MODEL_WORDS; ++i) {
    ct_rig_write(&b->rig, CT_REG_MODEL_ADDR, 5 * CT_MODEL_WORDS + i);
    ct_rig_write(&b->rig, CT_REG_MODEL_DATA, 100 + i);
  }
  ct_rig_write(&b->rig, CT_REG_MODEL_COMMIT, 5);
  for (unsigned i = 0; i < CT_MODEL_WORDS; ++i) {
    ct_rig_write(&b->rig, CT_REG_MODEL_ADDR, 5 * CT_MODEL_WORDS + i);
    assert_int_equal(ct_rig_read(&b->rig, CT_REG_MODEL_DATA), i < 32 ? 0 : 100 + i);
  }
  ct_rig_write(&b->rig, CT_REG_MODEL_COMMIT, 5);
  ct_rig_write(&b->rig, CT_REG_MODEL_ADDR, 5 * CT_MODEL_WORDS + 31);
  assert_int_equal(ct_rig_read(&b->rig, CT_REG_MODEL_DATA), 131);
  assert_int_equal(ct_rig_read(&b->rig, CT_REG_BATCH_STATE), 1u << 5);
  /* Neither makes sense: the one that is committed last counts, even after the push. */
  ct_rig_write(&b->rig, CT_REG_REQ_PUSH, 5);
  ct_rig_write(&b->rig, CT_REG_MODEL_COMMIT, 5);
  assert_int_equal(ct_rig_read(&b->rig, CT_REG_REC_STATE) & 0x7fff, 1 << 8 | CT_DEV_DESCRIPTOR);
  assert_int_equal(ct_rig_read(&b->rig, CT_REG_REC_VERSION), 101);
  assert_int_equal(ct_rig_read(&b->rig, CT_REG_REC_ADDR), CT_DESC_FLAGS);
  ct_rig_write(&b->rig, CT_REG_REC_STATE, 0);
  ct_rig_write(&b->rig, CT_REG_MODEL_COMMIT, 5);
  ct_rig_write(&b->rig, CT_REG_REQ_PUSH, 5);
  assert_int_equal(ct_rig_read(&b->rig, CT_REG_REC_STATE) & 0x7fff, 1 << 8 | CT_DEV_DESCRIPTOR);
  assert_int_equal(ct_rig_read(&b->rig, CT_REG_REC_ADDR), CT_DESC_NCMDS);
  /* Under way: cancelled as a whole. */
  b->model[0].most = 4;
  write_control(b, 0);
  write_model(b, 0);
  ct_rig_write(&b->rig, CT_REG_MODEL_COMMIT, 0);
  ct_rig_write(&b->rig, CT_REG_REC_STATE, 0);
  ct_rig_write(&b->rig, CT_REG_CTRL, FREEZE);
  for (unsigned i = 0; i < 5; ++i)
    ct_rig_write(&b->rig, CT_REG_REQ_PUSH, 0);
  assert_int_equal(ct_rig_read(&b->rig, CT_REG_REC_STATE), 0);
  ct_rig_write(&b->rig, CT_REG_CTRL, FREEZE | 4);
  assert_int_equal(ct_rig_read(&b->rig, CT_REG_BATCH_STATE), 1u << 5 | 1u | 1u << 8 | 1u << 24);
  ct_rig_cwrite(&b->rig, 0, CT_CREG_CONTROL, 2);
  ct_rig_write(&b->rig, CT_REG_CTRL, FREEZE | 4);
  for (unsigned i = 0; i < 4; ++i) {
    assert_int_equal(ct_rig_read(&b->rig, CT_REG_REC_STATE) & ~(UINT32_C(127) << 16),
                     UINT32_C(5) << 29 | 4 << 8 | CT_DEV_CANCELLED);
    ct_rig_write(&b->rig, CT_REG_REC_STATE, 0);
  }
  assert_int_equal(ct_rig_read(&b->rig, CT_REG_BATCH_STATE), 1u << 5 | 1u | 1u << 24);
  ct_rig_write(&b->rig, CT_REG_CTRL, 1);
  assert_int_equal(ct_rig_read(&b->rig, CT_REG_BATCH_STATE), 0);
  assert_int_equal(ct_rig_read(&b->rig, CT_REG_REQ_RESULT), CT_REQ_WAITING << 8);
  ct_rig_write(&b->rig, CT_REG_REQ_PUSH, 0);
  assert_int_equal(ct_rig_read(&b->rig, CT_REG_REQ_RESULT) & 7, CT_REQ_MODEL);
  close_bench(b);
  test_free(b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(random_requests),
      cmocka_unit_test(the_ring_takes_turns),
      cmocka_unit_test(words_of_models),
  };
  ct_tb_seed();
  return cmocka_run_group_tests_name("emulated batcher", tests, NULL, NULL);
}
