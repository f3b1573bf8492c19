/* SPDX-License-Identifier: Apache-2.0 */
/* The check behind `wrong`: it finds every answer that was tampered with, and no other. */
#include "ct_tb.h"

#include <string.h>

#include "host/tools/colocate/colocate.h"

enum { REQUESTS = 30 };

/* A short run on emu:, not yet checked. */
static void run(struct colocate *c, struct colocate_options *o) {
  *o = (struct colocate_options){.learn = LEARN_DEFAULTS, .requests = REQUESTS, .permille = 500};
  o->learn.device = "emu:";
  o->learn.samples = 96;
  o->learn.batch = 16;
  o->learn.epochs = 2;
  assert_int_equal(colocate_open(c, o), 0);
  ct_progress_open(&c->load.progress, stderr);
  assert_int_equal(colocate_runs(c), 0);
  ct_progress_close(&c->load.progress);
  assert_int_equal(c->serve.run.done, REQUESTS);
  assert_int_equal(c->versions.published, 3);
}

static void flip(void *at, unsigned bit) {
  uint8_t *bytes = at;
  bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
}

static void honest_answers_pass(void **state) {
  (void)state;
  struct colocate_options o;
  struct colocate c;
  run(&c, &o);
  assert_int_equal(colocate_check(&c), 0);
  assert_true(c.checked);
  assert_int_equal(c.wrong, 0);
  for (size_t v = 0; v < 3; ++v)
    assert_true(c.versions.version[v].accuracy >= 0);
  colocate_close(&c);
  colocate_close(&c);
}

static void every_flipped_bit_is_found(void **state) {
  (void)state;
  struct colocate_options o;
  struct colocate c;
  ct_rng rng = ct_rng_make(1);
  run(&c, &o);
  const size_t bits = c.serve.classes * 32;
  for (size_t i = 3; i <= 9; i += 3)
    flip(c.serve.logits + i * c.serve.classes, ct_rng_below(&rng, (uint32_t)bits));
  assert_int_equal(colocate_check(&c), 0);
  assert_int_equal(c.wrong, 3);
  colocate_close(&c);
}

static void another_version_is_found(void **state) {
  (void)state;
  struct colocate_options o;
  struct colocate c;
  run(&c, &o);
  assert_int_equal(c.serve.run.request[0].version, 1);
  c.serve.run.request[0].version = 2;  /* answered by 1 */
  c.serve.run.request[1].version = 77; /* there is none */
  assert_int_equal(colocate_check(&c), 0);
  assert_int_equal(c.wrong, 2);
  colocate_close(&c);
}

/* Weights that were not those the device served with: every answer of that version differs. */
static void other_weights_are_found(void **state) {
  (void)state;
  struct colocate_options o;
  struct colocate c;
  size_t answered = 0;
  run(&c, &o);
  memcpy(c.versions.version[0].bytes, c.versions.version[2].bytes, c.versions.weights_bytes);
  for (size_t i = 0; i < REQUESTS; ++i)
    answered += c.serve.run.request[i].version == 1;
  assert_int_equal(colocate_check(&c), 0);
  assert_in_range(answered, 1, REQUESTS - 1);
  assert_int_equal(c.wrong, answered);
  colocate_close(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(honest_answers_pass),
      cmocka_unit_test(every_flipped_bit_is_found),
      cmocka_unit_test(another_version_is_found),
      cmocka_unit_test(other_weights_are_found),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
