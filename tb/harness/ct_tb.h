/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Helpers every test bench may use: a seeded random source, stalls, comparison of buffers with a
 * readable difference.
 */
#ifndef CT_TB_H
#define CT_TB_H

/* cmocka wants these four before itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>

/* xoshiro256**: one state for each independent stream, so that a change in one driver leaves the
 * others' sequences alone. */
typedef struct {
  uint64_t s[4];
} ct_rng;

/* The seed of this run: CT_SEED from the environment (any base), else a fixed default. Printed on
 * the first call. */
uint64_t ct_tb_seed(void);

/* What ct_qos makes of a policy (enum ct_policy; SLACK: with slack) and a floor. */
uint16_t ct_tb_qos(unsigned policy, unsigned floor);

/* A stream of its own for each (seed of this run, stream number). */
ct_rng ct_rng_make(uint64_t stream);
uint64_t ct_rng_u64(ct_rng *rng);
/* 0 .. bound-1, without bias worth noticing; bound > 0. */
uint32_t ct_rng_below(ct_rng *rng, uint32_t bound);
/* True in percent of the calls. */
bool ct_rng_percent(ct_rng *rng, unsigned percent);
void ct_rng_fill(ct_rng *rng, void *buffer, size_t bytes);

/* How often a random test draws: half of n; an eighth in a program built with a sanitizer, which
 * is several times slower and looks for faults of memory, not for wrong numbers. With CT_ALL in
 * the environment (make campaign) n times always. */
int ct_tb_draws(int n);

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CT_TB_SANITIZED 1
#else
#define CT_TB_SANITIZED 0
#endif

/* For cmocka_unit_test, of a test that spends its time in the simulated core, which no sanitizer
 * sees, or on more of what others do: a program built with one leaves it out. (cmocka passes over
 * an entry without function.) */
#define CT_PLAIN_TEST(test) \
  { #test, CT_TB_SANITIZED ? NULL : (test), NULL, NULL, NULL }
#define CT_PLAIN_TEST_PRESTATE(test, state) \
  { #test, CT_TB_SANITIZED ? NULL : (test), NULL, NULL, state }

/*
 * A random stall that also holds: an independent coin a cycle rarely makes the long bursts and long
 * pauses in which FIFOs fill and run dry. Ask once a cycle.
 */
typedef struct {
  ct_rng rng;
  unsigned percent; /* of the cycles stalled, in the long run: 0 never, 100 always */
  unsigned mean;    /* cycles a burst or a pause lasts, in the mean; at least 1 */
  bool stalled;
  unsigned left;
} ct_stall;

ct_stall ct_stall_make(uint64_t stream, unsigned percent, unsigned mean);
bool ct_stall_next(ct_stall *stall);

/* Milliseconds of a clock that is never set. */
uint64_t ct_tb_ms(void);

/* The file to write waves to, from CT_TRACE in the environment, or NULL: the argument for
 * NAME_new(). */
const char *ct_tb_trace(void);

/* Writes the low `bits` (at most 32) of value into bits lsb .. lsb + bits - 1 of a port of any
 * width. */
void ct_tb_put(void *port, unsigned lsb, unsigned bits, uint32_t value);

/* Fails the test, showing the 16-byte lines that differ, unless the buffers are equal. */
void ct_assert_same(const char *what, const void *got, const void *want, size_t bytes);

/* A loop that waits: `CT_TB_WHILE (condition, rounds) step(b);` fails the test after so many
 * rounds, with the condition that still holds. */
#define CT_TB_WHILE(condition, rounds) \
  for (unsigned long ct_left_ = (rounds); (condition); ct_tb_round(&ct_left_, #condition))
void ct_tb_round(unsigned long *left, const char *condition);

/*
 * A bench of one block in several widths has a model each. CT_TB_ANY(NAME) makes NAME_eval_any()
 * and NAME_free_any(), and CT_TB_ANY_CLOCK(NAME) NAME_tick_any() and NAME_reset_any(), which take
 * the model as void * and so fit one table.
 */
#define CT_TB_ANY(name)                         \
  static inline void name##_eval_any(void *d) { \
    name##_eval(d);                             \
  }                                             \
  static inline void name##_free_any(void *d) { \
    name##_free(d);                             \
  }
#define CT_TB_ANY_CLOCK(name)                                     \
  static inline void name##_tick_any(void *d) {                   \
    name##_tick(d);                                               \
  }                                                               \
  static inline void name##_reset_any(void *d, unsigned cycles) { \
    name##_reset(d, cycles);                                      \
  }

/* What such a table has of each model: its members, and their values for a model d. */
#define CT_TB_ANY_CALLS                      \
  void *dut;                                 \
  void (*eval)(void *dut);                   \
  void (*tick)(void *dut);                   \
  void (*reset)(void *dut, unsigned cycles); \
  void (*close)(void *dut)
#define CT_TB_ANY_OF(name, d)                                                              \
  .dut = (d), .eval = name##_eval_any, .tick = name##_tick_any, .reset = name##_reset_any, \
  .close = name##_free_any

#endif
