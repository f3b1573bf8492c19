/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Training ahead of the device, on emu: and sim:: rates that change from step to step while steps
 * wait, a model that is prepared anew while they do, preparations that are refused, and what is
 * counted when steps fail. What a queue of steps gives is what the same steps give one by one.
 */
#include "ct_tb.h"

#include <string.h>

#include "coltrain/coltrain.h"
#include "ct_cmd.h"
#include "ct_network.h"
#include "ct_queue.h"
#include "tiny_program.h"

enum { IN = 20, HIDDEN = 13, OUT = 5, ROWS = 8, MOST_ROWS = 12, STEPS = 6 };
enum { NUMBERS = 2 * (HIDDEN * (IN + 1) + OUT * (HIDDEN + 1)) };

static const uint32_t widths[] = {IN, HIDDEN, OUT};

struct bed {
  ct_device *dev;
  bool emu;
  ct_program *endless;
  ct_model *model;
  uint64_t held; /* a job that does not end; 0: none */
};

/* What a step trains on. */
struct lesson {
  float x[MOST_ROWS * IN];
  uint32_t labels[MOST_ROWS];
  struct ct_rates rates;
};

static struct ct_rates some_rates(ct_rng *rng) {
  return (struct ct_rates){.lr = (float)ct_rng_below(rng, 400) * 1e-3f,
                           .momentum = (float)ct_rng_below(rng, 10) * 0.1f,
                           .weight_decay = (float)ct_rng_below(rng, 100) * 1e-4f};
}

static void draw(ct_rng *rng, struct lesson *l) {
  for (size_t i = 0; i < MOST_ROWS * IN; ++i)
    l->x[i] = (float)ct_rng_below(rng, 1000) * 1e-3f - 0.4f;
  for (size_t i = 0; i < MOST_ROWS; ++i)
    l->labels[i] = ct_rng_below(rng, OUT);
  l->rates = some_rates(rng);
}

static void prepare(ct_model *m, uint32_t rows) {
  const struct ct_training training = {.batch = rows, .rates = {.lr = 0.1f}};
  assert_int_equal(ct_model_training(m, &training), CT_OK);
}

static void open_bed(struct bed *b, bool emu) {
  *b = (struct bed){.emu = emu};
  if (ct_open(emu ? "emu:dram=32" : "sim:dram=32", &b->dev)) fail_msg("%s", ct_last_error(NULL));
  b->endless = tiny_program(b->dev, true);
  assert_int_equal(ct_model_create(b->dev, widths, 2, 11, &b->model), CT_OK);
  prepare(b->model, ROWS);
}

static void close_bed(struct bed *b) {
  ct_model_free(b->model);
  ct_program_free(b->endless);
  ct_close(b->dev);
}

/* Steps submitted from here on wait until let_go(). */
static void hold(struct bed *b) {
  b->held = tiny_hold(b->dev, CT_TRAINING, b->endless, b->emu);
}

static void let_go(struct bed *b) {
  tiny_let_go(b->dev, b->held, b->emu);
}

static uint64_t steps_of(ct_model *m) {
  struct ct_model_info info;
  assert_int_equal(ct_model_info(m, &info), CT_OK);
  return info.steps;
}

static void numbers_of(ct_model *m, float *x) {
  for (size_t l = 0; l < 2; ++l) {
    const size_t out = widths[l + 1], weights = out * widths[l];
    assert_int_equal(ct_model_get(m, l, x, x + weights, x + weights + out, x + 2 * weights + out),
                     CT_OK);
    x += 2 * (weights + out);
  }
}

/* ---- Steps that wait ---- */

/* A step under way. */
struct step {
  ct_batch *batch;
  uint64_t tag;
};

static void submit(ct_model *m, const struct lesson *l, const struct ct_rates *rates,
                   struct step *s) {
  assert_int_equal(ct_batch_create(m, &s->batch), CT_OK);
  assert_int_equal(ct_batch_write(s->batch, l->x, l->labels), CT_OK);
  const struct ct_step step = {.batch = s->batch, .rates = rates, .user = s};
  assert_int_equal(ct_model_step_submit(m, &step, &s->tag), CT_OK);
}

static void finish(struct bed *b, struct step *s, int error) {
  struct ct_event e;
  float loss = -1;
  assert_int_equal(ct_wait(b->dev, s->tag, &e, 60000), CT_OK);
  assert_int_equal(e.error, error);
  assert_int_equal(e.kind, CT_EVENT_STEP);
  assert_ptr_equal(e.user, s);
  assert_int_equal(ct_batch_loss(s->batch, &loss), error);
  assert_true(error ? loss == -1 : loss >= 0);
  ct_batch_free(s->batch);
}

/* The same steps, one by one, on another device. */
static void one_by_one(const struct lesson *l, const uint32_t *rows, const bool *counts,
                       float *numbers) {
  ct_device *dev;
  ct_model *m;
  assert_int_equal(ct_open("emu:dram=32", &dev), CT_OK);
  assert_int_equal(ct_model_create(dev, widths, 2, 11, &m), CT_OK);
  for (int i = 0; i < STEPS; ++i) {
    const struct ct_training training = {.batch = rows[i], .rates = l[i].rates};
    if (!counts[i]) continue;
    assert_int_equal(ct_model_training(m, &training), CT_OK);
    assert_int_equal(ct_model_step(m, l[i].x, l[i].labels, NULL), CT_OK);
  }
  numbers_of(m, numbers);
  ct_model_free(m);
  ct_close(dev);
}

static void check_numbers(struct bed *b, const struct lesson *l, const uint32_t *rows,
                          const bool *counts) {
  float want[NUMBERS], got[NUMBERS];
  one_by_one(l, rows, counts, want);
  numbers_of(b->model, got);
  ct_assert_same("trained numbers", got, want, sizeof want);
}

/* Rates go with each step, as its own or as the model's of that moment; none of it cancels, waits
 * or makes a program, and steps that are cancelled are not counted. */
static void rates_are_data(struct bed *b) {
  ct_rng rng = ct_rng_make(b->emu ? 1 : 2);
  struct lesson l[STEPS];
  struct step s[STEPS];
  uint32_t rows[STEPS];
  bool counts[STEPS];
  hold(b);
  for (int i = 0; i < STEPS; ++i) {
    const struct ct_rates other = some_rates(&rng);
    draw(&rng, &l[i]);
    const struct ct_training both = {.batch = ROWS, .rates = l[i].rates};
    if (i % 3 == 0) assert_int_equal(ct_model_set_rates(b->model, &l[i].rates), CT_OK);
    if (i % 3 == 1) assert_int_equal(ct_model_training(b->model, &both), CT_OK);
    if (i % 3 == 2) assert_int_equal(ct_model_set_rates(b->model, &other), CT_OK);
    submit(b->model, &l[i], i % 3 == 2 ? &l[i].rates : NULL, &s[i]);
    rows[i] = ROWS;
    counts[i] = ct_rng_below(&rng, 3) != 0;
  }
  assert_int_equal(ct_outstanding(b->dev, CT_TRAINING), STEPS + 1);
  assert_int_equal(steps_of(b->model), 0);
  uint64_t ran = 0;
  for (int i = 0; i < STEPS; ++i)
    if (!counts[i]) assert_int_equal(ct_cancel(b->dev, s[i].tag), CT_OK);
  let_go(b);
  for (int i = 0; i < STEPS; ++i) {
    finish(b, &s[i], counts[i] ? CT_OK : CT_ERR_CANCELLED);
    ran += counts[i];
  }
  assert_int_equal(steps_of(b->model), ran);
  check_numbers(b, l, rows, counts);
}

/* ---- Programs ---- */

enum { PROGRAM = 512, MOST_PROGRAMS = 2200 };

/* Takes all room for programs that is left; how many fitted. */
static int fill_programs(struct bed *b, ct_program **p) {
  static const unsigned char commands[PROGRAM * 32];
  size_t count = PROGRAM;
  int n = 0;
  while (count && n < MOST_PROGRAMS) {
    if (ct_program_load(b->dev, commands, count, &p[n]))
      count /= 2;
    else
      ++n;
  }
  assert_true(n < MOST_PROGRAMS);
  return n;
}

static void free_programs(ct_program **p, int n) {
  for (int i = 0; i < n; ++i)
    ct_program_free(p[i]);
}

/* How much room is left for programs. */
static uint64_t room_of(struct bed *b) {
  ct_program *p[MOST_PROGRAMS];
  uint64_t commands = 0;
  const int n = fill_programs(b, p);
  for (int i = 0; i < n; ++i)
    commands += p[i]->count;
  free_programs(p, n);
  return commands;
}

/* A model that is prepared for other batches keeps the programs of steps that wait, and no others.
 */
static void preparing_waits_for_nothing(struct bed *b) {
  ct_rng rng = ct_rng_make(b->emu ? 3 : 4);
  struct lesson l[STEPS];
  struct step s[STEPS];
  uint32_t rows[STEPS];
  bool counts[STEPS];
  const uint64_t room = room_of(b);
  hold(b);
  for (int i = 0; i < STEPS; ++i) {
    draw(&rng, &l[i]);
    rows[i] = 1 + ct_rng_below(&rng, MOST_ROWS);
    counts[i] = true;
    prepare(b->model, rows[i]);
    submit(b->model, &l[i], &l[i].rates, &s[i]);
  }
  prepare(b->model, ROWS);
  assert_true(room_of(b) < room);
  let_go(b);
  for (int i = 0; i < STEPS; ++i)
    finish(b, &s[i], CT_OK);
  assert_int_equal(room_of(b), room);
  assert_int_equal(steps_of(b->model), STEPS);
  check_numbers(b, l, rows, counts);
}

static void refuse(struct bed *b, const struct ct_training *t, int error, const char *part) {
  struct ct_model_info before, after;
  assert_int_equal(ct_model_info(b->model, &before), CT_OK);
  assert_int_equal(ct_model_training(b->model, t), error);
  if (!strstr(ct_last_error(b->dev), part))
    fail_msg("\"%s\" does not speak of \"%s\"", ct_last_error(b->dev), part);
  assert_int_equal(ct_model_info(b->model, &after), CT_OK);
  assert_memory_equal(&before.training, &after.training, sizeof before.training);
}

/* Refusals of every kind, each between two steps of which both count. */
static void a_refusal_changes_nothing(struct bed *b) {
  static const struct {
    struct ct_training training;
    int error;
    const char *part;
  } bad[STEPS - 1] = {
      {{.batch = ROWS, .rates = {.lr = -1}}, CT_ERR_ARG, "learning rate"},
      {{.batch = ROWS + 1, .rates = {.lr = 0.5f, .momentum = 7}}, CT_ERR_ARG, "momentum"},
      {{.batch = 0, .rates = {.lr = 0.5f}}, CT_ERR_ARG, "at least one row"},
      {{.batch = 70000, .rates = {.lr = 0.5f}}, CT_ERR_NO_SPACE, "70000 rows"},
      {{.batch = ROWS + 3, .rates = {.lr = 0.5f}}, CT_ERR_NO_SPACE, "no room for another program"}};
  ct_rng rng = ct_rng_make(b->emu ? 5 : 6);
  struct lesson l[STEPS];
  struct step s[STEPS];
  uint32_t rows[STEPS];
  bool counts[STEPS];
  ct_program *filled[MOST_PROGRAMS];
  const struct ct_rates rates = some_rates(&rng);
  const uint64_t room = room_of(b);
  assert_int_equal(ct_model_set_rates(b->model, &rates), CT_OK);
  for (int i = 0; i < STEPS; ++i) {
    draw(&rng, &l[i]);
    l[i].rates = rates;
    rows[i] = ROWS;
    counts[i] = true;
    submit(b->model, &l[i], NULL, &s[i]);
    if (i + 1 == STEPS) break;
    const bool full = i + 2 == STEPS;
    const int n = full ? fill_programs(b, filled) : 0;
    refuse(b, &bad[i].training, bad[i].error, bad[i].part);
    free_programs(filled, n);
  }
  for (int i = 0; i < STEPS; ++i)
    finish(b, &s[i], CT_OK);
  assert_int_equal(room_of(b), room);
  check_numbers(b, l, rows, counts);
}

/* ---- Failures ---- */

/* A step that fails is not counted, those behind it are. */
static void failed_steps_do_not_count(struct bed *b) {
  ct_rng rng = ct_rng_make(7);
  struct lesson l;
  struct step s[3];
  draw(&rng, &l);
  hold(b);
  for (int i = 0; i < 3; ++i)
    submit(b->model, &l, NULL, &s[i]);
  const struct ct_transport_ops *ops = b->dev->plugin.ops;
  assert_int_equal(
      ops->fault(b->dev->self, CT_FAULT_AXI_READ, s[1].batch->frame.at.external[CT_MLP_X]), 0);
  let_go(b);
  finish(b, &s[0], CT_OK);
  finish(b, &s[1], CT_ERR_JOB);
  finish(b, &s[2], CT_OK);
  assert_int_equal(steps_of(b->model), 2);
}

/* The device is closed, the model freed, in either order, while steps wait. */
static void steps_are_left_behind(struct bed *b) {
  ct_rng rng = ct_rng_make(8);
  struct lesson l;
  struct step s[3];
  draw(&rng, &l);
  hold(b);
  for (int i = 0; i < 3; ++i) {
    prepare(b->model, ROWS + (uint32_t)i);
    submit(b->model, &l, NULL, &s[i]);
  }
  if (b->emu) ct_model_free(b->model);
  ct_batch_free(s[0].batch);
  ct_close(b->dev);
  ct_batch_free(s[1].batch);
  if (!b->emu) ct_model_free(b->model);
  ct_batch_free(s[2].batch);
  ct_program_free(b->endless);
  open_bed(b, b->emu);
}

/* ---- On both ---- */

static void on_both(void (*test)(struct bed *)) {
  for (int emu = 0; emu < 2; ++emu) {
    struct bed b;
    open_bed(&b, emu);
    test(&b);
    assert_int_equal(ct_outstanding(b.dev, CT_TRAINING), 0);
    close_bed(&b);
  }
}

#define ON_BOTH(test)                           \
  static void test##_everywhere(void **state) { \
    (void)state;                                \
    on_both(test);                              \
  }

ON_BOTH(rates_are_data)
ON_BOTH(preparing_waits_for_nothing)
ON_BOTH(a_refusal_changes_nothing)
ON_BOTH(failed_steps_do_not_count)
ON_BOTH(steps_are_left_behind)

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(rates_are_data_everywhere),
      cmocka_unit_test(preparing_waits_for_nothing_everywhere),
      cmocka_unit_test(a_refusal_changes_nothing_everywhere),
      cmocka_unit_test(failed_steps_do_not_count_everywhere),
      cmocka_unit_test(steps_are_left_behind_everywhere),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
