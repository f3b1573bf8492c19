/* SPDX-License-Identifier: Apache-2.0 */
/* ct_act_walk against two loops in C: the requests of random commands, the semaphores that they
 * take and carry, stalls, flushes in the middle. */
#include "ct_act_walk_dut.h"
#include "ct_tb.h"

enum { kCommands = 4000, kSems = 16, kSpmMask = (1 << 20) - 1 };

struct command {
  uint32_t dram, spm, first, groups, n2, wait[3], sig[2];
  int32_t d2, s1, s2;
};

struct bench {
  ct_act_walk_dut *d;
  ct_rng rng;
  ct_stall stall;
  struct command cmd; /* that is walked */
  uint32_t i2, i1;    /* its next request */
  bool walks;
  unsigned sem[kSems];
  uint16_t taken, due; /* semaphores taken in this step; what it should take */
  uint16_t dec;        /* as of the last cycle: counted now */
};

static uint32_t draw_sem(ct_rng *rng) {
  return ct_rng_percent(rng, 60) ? 16 + ct_rng_below(rng, kSems) : ct_rng_below(rng, kSems);
}

static uint16_t mask_of(uint32_t field) {
  return (uint16_t)(field & 16 ? 1u << (field & 15) : 0);
}

static struct command draw(ct_rng *rng) {
  struct command c = {.dram = (uint32_t)ct_rng_u64(rng), .spm = ct_rng_below(rng, 1 << 20)};
  c.groups = 1 + ct_rng_below(rng, 4);
  c.first = ct_rng_below(rng, 5 - c.groups);
  c.n2 = 1 + ct_rng_below(rng, 6);
  c.d2 = (int32_t)ct_rng_below(rng, 2000) - 1000;
  c.s1 = (int32_t)ct_rng_below(rng, 1000) - 500;
  c.s2 = (int32_t)ct_rng_below(rng, 1000) - 500;
  for (unsigned i = 0; i < 3; ++i)
    c.wait[i] = draw_sem(rng);
  for (unsigned i = 1; i < 3; ++i) {
    for (unsigned j = 0; j < i; ++j) {
      if ((c.wait[i] & 15) == (c.wait[j] & 15)) c.wait[i] = 0; /* two waits for one are illegal */
    }
  }
  for (unsigned i = 0; i < 2; ++i)
    c.sig[i] = draw_sem(rng);
  return c;
}

static void show(struct bench *b, const struct command *c) {
  *b->d->dram_i = c->dram;
  *b->d->spm_i = c->spm;
  *b->d->first_i = (uint8_t)c->first;
  *b->d->groups_i = (uint8_t)c->groups;
  *b->d->n2_i = (uint16_t)c->n2;
  *b->d->d2_i = (uint32_t)c->d2 & 0xFFFFFF;
  *b->d->s1_i = (uint32_t)c->s1 & kSpmMask;
  *b->d->s2_i = (uint32_t)c->s2 & kSpmMask;
  *b->d->wait0_i = (uint8_t)c->wait[0];
  *b->d->wait1_i = (uint8_t)c->wait[1];
  *b->d->wait2_i = (uint8_t)c->wait[2];
  *b->d->sig0_i = (uint8_t)c->sig[0];
  *b->d->sig1_i = (uint8_t)c->sig[1];
}

static void check_request(struct bench *b) {
  const struct command *c = &b->cmd;
  const bool ends = b->i1 + 1 == c->groups, last = ends && b->i2 + 1 == c->n2;
  assert_int_equal(*b->d->index_o, c->dram + b->i2 * (uint32_t)c->d2);
  assert_int_equal(*b->d->spm_o,
                   (c->spm + b->i2 * (uint32_t)c->s2 + b->i1 * (uint32_t)c->s1) & kSpmMask);
  assert_int_equal(*b->d->entry_o, c->first + b->i1);
  assert_int_equal(*b->d->begin_o, b->i1 == 0);
  assert_int_equal(*b->d->end_o, ends);
  assert_int_equal(*b->d->sigs_o, (last ? c->sig[1] << 5 : 0) | (ends ? c->sig[0] : 0));
}

static void advance(struct bench *b) {
  if (++b->i1 < b->cmd.groups) return;
  assert_int_equal(b->taken, b->due);
  b->i1 = 0;
  b->taken = 0;
  b->due = mask_of(b->cmd.wait[0]);
  if (++b->i2 == b->cmd.n2) b->walks = false;
}

static void count_sems(struct bench *b) {
  const uint16_t dec = *b->d->sem_dec_o;
  uint16_t nz = 0;
  for (unsigned i = 0; i < kSems; ++i) {
    if (dec >> i & 1) {
      assert_true(b->sem[i] > 0);
      --b->sem[i];
    }
    if (b->sem[i] < 200 && ct_rng_percent(&b->rng, 15)) ++b->sem[i];
    nz |= (uint16_t)((b->sem[i] > 0) << i);
  }
  b->taken |= dec;
  *b->d->sem_nz_i = nz;
}

static void begin(struct bench *b, const struct command *c) {
  b->cmd = *c;
  b->walks = true;
  b->i1 = b->i2 = 0;
  b->taken = 0;
  b->due = (uint16_t)(mask_of(c->wait[0]) | mask_of(c->wait[1]) | mask_of(c->wait[2]));
}

static void same_requests(void **state) {
  (void)state;
  struct bench b = {.d = ct_act_walk_new(ct_tb_trace()), .rng = ct_rng_make(1)};
  b.stall = ct_stall_make(2, 30, 3);
  *b.d->flush_i = *b.d->halt_i = *b.d->cmd_valid_i = 0;
  *b.d->sem_nz_i = 0;
  ct_act_walk_reset(b.d, 2);
  struct command next = draw(&b.rng);
  unsigned done = 0, flushed = 0;
  CT_TB_WHILE (done < kCommands, kCommands * 1000ul) {
    show(&b, &next);
    *b.d->cmd_valid_i = ct_rng_percent(&b.rng, 70);
    *b.d->ready_i = !ct_stall_next(&b.stall);
    *b.d->flush_i = ct_rng_below(&b.rng, 500) == 0;
    ct_act_walk_eval(b.d);
    if (*b.d->valid_o) {
      assert_true(b.walks);
      check_request(&b);
      /* No group before its step has what it waits for. */
      assert_int_equal(b.taken | *b.d->sem_dec_o, b.due);
    }
    const bool go = *b.d->valid_o && *b.d->ready_i;
    const bool load = *b.d->cmd_valid_i && *b.d->cmd_ready_o;
    const bool flush = *b.d->flush_i;
    count_sems(&b);
    if (go) advance(&b);
    ct_act_walk_eval(b.d);
    ct_act_walk_tick(b.d);
    if (load) {
      assert_false(b.walks);
      begin(&b, &next);
      next = draw(&b.rng);
      ++done;
    }
    if (flush) {
      b.walks = false;
      count_sems(&b); /* (what was taken in that very cycle) */
      ++flushed;
    }
    assert_int_equal(*b.d->idle_o, !b.walks);
  }
  assert_true(flushed > 20);
  ct_act_walk_free(b.d);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(same_requests)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
