/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How far a run is: one line that is redrawn on a terminal, at most ten times a second and as wide
 * as the terminal; elsewhere (a pipe, a log, TERM=dumb) plain lines, one every five seconds at
 * most. The last state is always shown. No colour where the environment has a NO_COLOR that is not
 * empty.
 *
 *   training [##########..............]  42 %  loss 0.1234  acc 91.2 %  p99 123.0 us  0:42 left
 *
 *   struct ct_progress progress;
 *   ct_progress_open(&progress, stderr);
 *   for (...) ct_progress_update(&progress, &state);     cheap: usually only looks at the clock
 *   ct_progress_close(&progress);
 *
 * For one thread at a time. Errors of writing are not noticed: progress is not a result.
 */
#ifndef CT_PROGRESS_H
#define CT_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Which of the figures are known. A figure that is NaN is shown as such: a diverged loss is news.
 */
enum {
  CT_PROGRESS_FRACTION = 1,
  CT_PROGRESS_LOSS = 2,
  CT_PROGRESS_ACCURACY = 4,
  CT_PROGRESS_P99 = 8,
  CT_PROGRESS_LEFT = 16, /* set by ct_progress_update itself */
};

struct ct_progress_state {
  const char *label; /* "training"; NULL or "" for none; plain ASCII, up to 31 characters shown */
  unsigned known;    /* CT_PROGRESS_... */
  double fraction;   /* done so far, 0 .. 1 */
  double loss;
  double accuracy; /* 0 .. 1 */
  double p99;      /* so far, in microseconds */
  double left;     /* seconds */
};

/* Longest line, terminating zero and colours included. */
#define CT_PROGRESS_MAX 256

/* Writes the line for a terminal of width columns, using at most width of them, or a plain line if
 * width is 0; neither newline nor carriage return. What does not fit goes in this order: columns of
 * the bar (40 down to 10), the bar, the label, then the figures from the right. Returns the length.
 * The same arguments always make the same line. */
size_t ct_progress_line(char line[CT_PROGRESS_MAX], unsigned width, bool color,
                        const struct ct_progress_state *state);

/* Fields are for the functions below and for tests. */
struct ct_progress {
  FILE *out;
  bool terminal, color;
  unsigned columns;     /* of the terminal; 0 to ask it each time */
  bool started, stale;  /* an update has come; its state has not been shown */
  bool drawn;           /* a line without newline stands on the terminal */
  uint64_t start, last; /* ns: first update, last output */
  double first;         /* fraction at the first update */
  char label[32];
  struct ct_progress_state state;
};

void ct_progress_open(struct ct_progress *progress, FILE *out);

/* Shows state if it is time to. */
void ct_progress_update(struct ct_progress *progress, const struct ct_progress_state *state);

/* The same at a given time in ns; true if something was written. */
bool ct_progress_update_at(struct ct_progress *progress, uint64_t now,
                           const struct ct_progress_state *state);

/* Takes the line off the terminal, so that other text can be written; the next update draws it. */
void ct_progress_clear(struct ct_progress *progress);

/* Takes the line off and forgets the last state: what was under way has failed. */
void ct_progress_drop(struct ct_progress *progress);

/* Shows the last state if it was not, and ends the line. Again does nothing. */
void ct_progress_close(struct ct_progress *progress);

#endif
