/* SPDX-License-Identifier: Apache-2.0 */
/* The progress line: its text and width, when it is written, and what a terminal gets. */
#include "ct_pty.h"
#include "ct_tb.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "host/tools/cli/ct_progress.h"

#define MS UINT64_C(1000000)

enum {
  kAll = CT_PROGRESS_FRACTION | CT_PROGRESS_LOSS | CT_PROGRESS_ACCURACY | CT_PROGRESS_P99 |
         CT_PROGRESS_LEFT
};

static const struct ct_progress_state kState = {"training", kAll, 0.425, 0.12344, 0.9117, 123, 42};

static void expect(unsigned width, bool color, const struct ct_progress_state *s,
                   const char *want) {
  char line[CT_PROGRESS_MAX];
  const size_t n = ct_progress_line(line, width, color, s);
  assert_string_equal(line, want);
  assert_int_equal(n, strlen(want));
}

/* --- the line ----------------------------------------------------------------------------------
 */

static void widths(void **state) {
  (void)state;
  const char *figures = "   42 %  loss 0.1234  acc 91.2 %  p99 123.0 us  0:42 left";
  char want[CT_PROGRESS_MAX];
  snprintf(want, sizeof want, "training%s", figures);
  expect(0, false, &kState, want); /* 8 + 57 columns */
  expect(65, false, &kState, want);
  expect(77, false, &kState, want);
  snprintf(want, sizeof want, "training [####......]%s", figures);
  expect(78, false, &kState, want);
  snprintf(want, sizeof want, "training [####.......]%s", figures);
  expect(79, false, &kState, want);
  snprintf(want, sizeof want, "training [#################.......................]%s", figures);
  expect(108, false, &kState, want);
  expect(500, false, &kState, want);
  expect(64, false, &kState, figures + 2); /* percent are right-aligned */
  expect(55, false, &kState, figures + 2);
  expect(54, false, &kState, " 42 %  loss 0.1234  acc 91.2 %  p99 123.0 us");
  expect(44, false, &kState, " 42 %  loss 0.1234  acc 91.2 %  p99 123.0 us");
  expect(43, false, &kState, " 42 %  loss 0.1234  acc 91.2 %");
  expect(30, false, &kState, " 42 %  loss 0.1234  acc 91.2 %");
  expect(29, false, &kState, " 42 %  loss 0.1234");
  expect(18, false, &kState, " 42 %  loss 0.1234");
  expect(17, false, &kState, " 42 %");
  expect(5, false, &kState, " 42 %");
  expect(4, false, &kState, "");
  expect(1, false, &kState, "");
}

static void colours(void **state) {
  (void)state;
  const char *figures = "   42 %  loss 0.1234  acc 91.2 %  p99 123.0 us  0:42 left";
  char want[CT_PROGRESS_MAX];
  snprintf(want, sizeof want, "training [\33[32m####\33[0m......]%s", figures);
  expect(78, true, &kState, want);
  snprintf(want, sizeof want, "training%s", figures);
  expect(77, true, &kState, want);
}

/* Figures that are not known leave no gap. */
static void unknown_figures(void **state) {
  (void)state;
  struct ct_progress_state s = kState;
  s.known = CT_PROGRESS_LOSS | CT_PROGRESS_P99;
  expect(80, false, &s, "training  loss 0.1234  p99 123.0 us");
  s.label = NULL;
  expect(80, false, &s, "loss 0.1234  p99 123.0 us");
  expect(25, false, &s, "loss 0.1234  p99 123.0 us");
  expect(24, false, &s, "loss 0.1234");
  s.known = CT_PROGRESS_FRACTION;
  expect(22, false, &s, "[#####........]   42 %");
  expect(19, false, &s, "[####......]   42 %");
  expect(18, false, &s, " 42 %");
  s.known = 0;
  expect(80, false, &s, "");
  s.label = "a label that is much too long to be shown in full";
  expect(80, false, &s, "a label that is much too long t");
}

static void values(void **state) {
  (void)state;
  static const struct {
    unsigned known;
    double value;
    const char *want;
  } table[] = {
      {CT_PROGRESS_FRACTION, 0, "  0 %"},          {CT_PROGRESS_FRACTION, 0.9999, " 99 %"},
      {CT_PROGRESS_FRACTION, 1, "100 %"},          {CT_PROGRESS_FRACTION, 7, "100 %"},
      {CT_PROGRESS_FRACTION, -1, "  0 %"},         {CT_PROGRESS_FRACTION, NAN, "  0 %"},
      {CT_PROGRESS_LOSS, 2.302585, "loss 2.3026"}, {CT_PROGRESS_LOSS, 123456, "loss 1.23e+05"},
      {CT_PROGRESS_LOSS, NAN, "loss nan"},         {CT_PROGRESS_LOSS, INFINITY, "loss inf"},
      {CT_PROGRESS_LOSS, -1e300, "loss -1e+300"},  {CT_PROGRESS_ACCURACY, 1, "acc 100.0 %"},
      {CT_PROGRESS_P99, 0.4, "p99 0.4 us"},        {CT_PROGRESS_P99, 12345, "p99 12.35 ms"},
      {CT_PROGRESS_P99, 2.5e6, "p99 2.50 s"},      {CT_PROGRESS_P99, INFINITY, "p99 inf"},
      {CT_PROGRESS_P99, NAN, "p99 nan"},           {CT_PROGRESS_LEFT, 0, "0:00 left"},
      {CT_PROGRESS_LEFT, 59.2, "1:00 left"},       {CT_PROGRESS_LEFT, 3599, "59:59 left"},
      {CT_PROGRESS_LEFT, 3600, "1:00:00 left"},    {CT_PROGRESS_LEFT, 359999, "99:59:59 left"},
      {CT_PROGRESS_LEFT, 360000, ">100 h left"},   {CT_PROGRESS_LEFT, INFINITY, ">100 h left"},
      {CT_PROGRESS_LEFT, -5, "0:00 left"},
  };
  for (size_t i = 0; i < sizeof table / sizeof *table; ++i) {
    const double v = table[i].value;
    const struct ct_progress_state s = {NULL, table[i].known, v, v, v, v, v};
    expect(0, false, &s, table[i].want);
  }
}

/* Random states: never wider than the terminal, colours apart, and never longer than the buffer. */
static void never_too_wide(void **state) {
  (void)state;
  ct_rng rng = ct_rng_make(1);
  for (int turn = 0; turn < 20000; ++turn) {
    const unsigned width = 1 + ct_rng_below(&rng, 200);
    const bool color = ct_rng_percent(&rng, 50);
    const double scale = pow(10, (double)ct_rng_below(&rng, 40) - 12);
    const double v = ct_rng_below(&rng, 1000) * scale;
    const struct ct_progress_state s = {&"a label of this bench"[ct_rng_below(&rng, 22)],
                                        ct_rng_below(&rng, 32),
                                        ct_rng_below(&rng, 1001) / 1000.0,
                                        v,
                                        v,
                                        v,
                                        v};
    char line[CT_PROGRESS_MAX];
    const size_t n = ct_progress_line(line, width, color, &s);
    assert_int_equal(n, strlen(line));
    assert_true(n < CT_PROGRESS_MAX);
    const size_t escapes = strstr(line, "\33[32m") ? 9 : 0;
    assert_in_range(n - escapes, 0, width);
  }
}

/* --- when it is written ------------------------------------------------------------------------
 */

static struct ct_progress progress;
static char *text;
static size_t length;

static void start(bool terminal) {
  FILE *out = open_memstream(&text, &length);
  assert_non_null(out);
  ct_progress_open(&progress, out);
  assert_false(progress.terminal);
  progress.terminal = terminal;
  progress.columns = 41;
}

static void finish(const char *want) {
  ct_progress_close(&progress);
  ct_progress_close(&progress);
  fclose(progress.out);
  assert_string_equal(text, want);
  free(text);
}

static struct ct_progress_state at(double fraction) {
  const struct ct_progress_state s = {"run", CT_PROGRESS_FRACTION, fraction, 0, 0, 0, 0};
  return s;
}

static bool update(uint64_t ms, double fraction) {
  const struct ct_progress_state s = at(fraction);
  return ct_progress_update_at(&progress, 5 * MS + ms * MS, &s);
}

static void plain_lines(void **state) {
  (void)state;
  start(false);
  assert_true(update(0, 0));
  for (unsigned ms = 1; ms < 5000; ms += 7)
    assert_false(update(ms, ms / 20000.0));
  assert_true(update(5000, 0.25));
  assert_false(update(9999, 0.5));
  assert_true(update(10000, 0.5));
  assert_false(update(11000, 1));
  finish(
      "run    0 %\n"
      "run   25 %  0:15 left\n"
      "run   50 %  0:10 left\n"
      "run  100 %  0:00 left\n");
}

static void on_a_terminal(void **state) {
  (void)state;
  start(true);
  assert_true(update(0, 0.1));
  assert_false(update(99, 0.2));
  assert_true(update(100, 0.2));
  assert_false(update(199, 0.3));
  ct_progress_clear(&progress);
  ct_progress_clear(&progress);
  assert_true(update(199, 0.3)); /* what was cleared comes back at once */
  assert_false(update(298, 0.4));
  assert_true(update(299, 1));
  finish(
      "\rrun [##.........................]   10 %\33[K"
      "\rrun [#####......................]   20 %\33[K"
      "\r\33[K"
      "\rrun [########...................]   30 %\33[K"
      "\rrun [###########################]  100 %\33[K\n");
}

static void nothing_to_show(void **state) {
  (void)state;
  start(true);
  finish("");
  start(true); /* a line that was cleared is drawn again at the end */
  assert_true(update(0, 1));
  ct_progress_clear(&progress);
  finish(
      "\rrun [###########################]  100 %\33[K\r\33[K"
      "\rrun [###########################]  100 %\33[K\n");
}

/* From where the run began, not from zero: a run that is taken up again at 80 %. */
static void time_left(void **state) {
  (void)state;
  start(false);
  update(0, 0.8);
  update(999, 0.81);
  assert_false(progress.state.known & CT_PROGRESS_LEFT); /* too early to tell */
  update(1000, 0.8);
  assert_false(progress.state.known & CT_PROGRESS_LEFT); /* nothing done */
  update(4000, 0.9);
  assert_true(progress.state.known & CT_PROGRESS_LEFT);
  assert_true(fabs(progress.state.left - 4) < 1e-6);
  finish("run   80 %\nrun   90 %  0:04 left\n");
}

/* The label may be gone when the line is written. */
static void label_is_copied(void **state) {
  (void)state;
  start(false);
  char label[8] = "first";
  struct ct_progress_state s = at(0.5);
  s.label = label;
  ct_progress_update_at(&progress, MS, &s);
  strcpy(label, "next");
  ct_progress_update_at(&progress, 2 * MS, &s);
  memset(label, 'x', sizeof label);
  finish("first   50 %\nnext   50 %\n");
}

/* --- a real terminal ---------------------------------------------------------------------------
 */

static FILE *open_terminal(int *master, unsigned short columns) {
  const struct winsize size = {25, columns, 0, 0};
  char name[CT_PTY_NAME];
  *master = ct_pty_open(name);
  const int fd = open(name, O_RDWR | O_NOCTTY);
  assert_true(fd >= 0);
  assert_int_equal(ioctl(fd, TIOCSWINSZ, &size), 0);
  return fdopen(fd, "w");
}

static void terminals(void **state) {
  (void)state;
  int master;
  FILE *out = open_terminal(&master, 41);
  char got[256] = "";
  setenv("TERM", "xterm", 1);
  unsetenv("NO_COLOR");
  ct_progress_open(&progress, out);
  assert_true(progress.terminal);
  assert_true(progress.color);
  setenv("NO_COLOR", "", 1);
  ct_progress_open(&progress, out);
  assert_true(progress.color);
  setenv("TERM", "dumb", 1);
  ct_progress_open(&progress, out);
  assert_false(progress.terminal);
  assert_false(progress.color);
  setenv("TERM", "xterm", 1);
  setenv("NO_COLOR", "1", 1);
  ct_progress_open(&progress, out);
  assert_true(progress.terminal);
  assert_false(progress.color);
  const struct ct_progress_state s = at(0.1);
  ct_progress_update(&progress, &s);
  const char *want = "\rrun [##.........................]   10 %\33[K";
  const ssize_t n = read(master, got, sizeof got - 1);
  assert_int_equal(n, strlen(want));
  assert_string_equal(got, want);
  ct_progress_close(&progress);
  fclose(out);
  close(master);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(widths),          cmocka_unit_test(colours),
      cmocka_unit_test(unknown_figures), cmocka_unit_test(values),
      cmocka_unit_test(never_too_wide),  cmocka_unit_test(plain_lines),
      cmocka_unit_test(on_a_terminal),   cmocka_unit_test(nothing_to_show),
      cmocka_unit_test(time_left),       cmocka_unit_test(label_is_copied),
      cmocka_unit_test(terminals),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
