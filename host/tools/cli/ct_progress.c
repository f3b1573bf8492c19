/* SPDX-License-Identifier: Apache-2.0 */
#include "ct_progress.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define SECOND UINT64_C(1000000000)
#define TERMINAL_INTERVAL (SECOND / 10)
#define PLAIN_INTERVAL (5 * SECOND)

enum { kFigures = 5, kText = 32, kBarMax = 40, kBarMin = 10 };

/* The figures in their order; those not known are empty. */
struct figures {
  char text[kFigures][kText];
};

static double clamp(double x, double low, double high) {
  return x < low ? low : x > high ? high : x;
}

/* 100 only when all is done. */
static unsigned percent(double fraction) {
  return isnan(fraction) ? 0 : (unsigned)(clamp(fraction, 0, 1) * 100);
}

static void format_time(char *out, double us) {
  if (us < 1000)
    snprintf(out, kText, "p99 %.1f us", us);
  else if (us < 1e6)
    snprintf(out, kText, "p99 %.2f ms", us / 1e3);
  else if (us < 1e12)
    snprintf(out, kText, "p99 %.2f s", us / 1e6);
  else
    snprintf(out, kText, isnan(us) ? "p99 nan" : "p99 inf"); /* refused requests never end */
}

static void format_left(char *out, double seconds) {
  if (!(seconds < 360000)) {
    snprintf(out, kText, ">100 h left");
    return;
  }
  const unsigned s = (unsigned)ceil(clamp(seconds, 0, 360000));
  if (s < 3600)
    snprintf(out, kText, "%u:%02u left", s / 60, s % 60);
  else
    snprintf(out, kText, "%u:%02u:%02u left", s / 3600, s / 60 % 60, s % 60);
}

static void format_figures(struct figures *f, const struct ct_progress_state *s) {
  memset(f, 0, sizeof *f);
  if (s->known & CT_PROGRESS_FRACTION) snprintf(f->text[0], kText, "%3u %%", percent(s->fraction));
  if (s->known & CT_PROGRESS_LOSS)
    snprintf(f->text[1], kText, fabs(s->loss) < 1000 ? "loss %.4f" : "loss %.3g", s->loss);
  if (s->known & CT_PROGRESS_ACCURACY)
    snprintf(f->text[2], kText, "acc %.1f %%", clamp(s->accuracy, 0, 1) * 100);
  if (s->known & CT_PROGRESS_P99) format_time(f->text[3], s->p99);
  if (s->known & CT_PROGRESS_LEFT) format_left(f->text[4], s->left);
}

/* Columns of the first count figures, each behind two blanks. */
static unsigned columns(const struct figures *f, unsigned count) {
  unsigned sum = 0;
  for (unsigned i = 0; i < count; ++i)
    if (f->text[i][0]) sum += 2 + (unsigned)strlen(f->text[i]);
  return sum;
}

/* Appends to a line whose capacity is known to do. */
static size_t add(char *line, size_t len, const char *text) {
  const size_t n = strlen(text);
  if (len + n >= CT_PROGRESS_MAX) return len;
  memcpy(line + len, text, n + 1);
  return len + n;
}

static size_t add_bar(char *line, size_t len, unsigned cells, bool color, double fraction) {
  char bar[kBarMax + 1];
  const double share = isnan(fraction) ? 0 : clamp(fraction, 0, 1);
  const unsigned full = (unsigned)(share * cells);
  if (len > 0) len = add(line, len, " ");
  len = add(line, len, color ? "[\33[32m" : "[");
  memset(bar, '#', full);
  bar[full] = 0;
  len = add(line, len, bar);
  memset(bar, '.', cells - full);
  bar[cells - full] = 0;
  if (color) len = add(line, len, "\33[0m");
  len = add(line, len, bar);
  return add(line, len, "]");
}

size_t ct_progress_line(char line[CT_PROGRESS_MAX], unsigned width, bool color,
                        const struct ct_progress_state *state) {
  struct figures f;
  char label[kText] = "";
  unsigned count = kFigures, cells = 0;
  format_figures(&f, state);
  if (state->label) snprintf(label, sizeof label, "%s", state->label);
  if (width > 0) {
    const unsigned need = (unsigned)strlen(label) + columns(&f, count);
    const unsigned frame = label[0] ? 3 : 2; /* " []" */
    if ((state->known & CT_PROGRESS_FRACTION) && width >= need + frame + kBarMin) {
      cells = width - need - frame;
      if (cells > kBarMax) cells = kBarMax;
    }
    if (need > width) label[0] = 0;
    /* Without a label the line begins with a figure, whose two blanks are left out below. */
    while (count > 0 && strlen(label) + columns(&f, count) > width + (label[0] ? 0 : 2))
      --count;
  }
  size_t len = 0;
  line[0] = 0;
  len = add(line, len, label);
  if (cells) len = add_bar(line, len, cells, color, state->fraction);
  for (unsigned i = 0; i < count; ++i) {
    if (!f.text[i][0]) continue;
    if (len > 0) len = add(line, len, "  ");
    len = add(line, len, f.text[i]);
  }
  return len;
}

void ct_progress_open(struct ct_progress *progress, FILE *out) {
  memset(progress, 0, sizeof *progress);
  const char *term = getenv("TERM"), *no_color = getenv("NO_COLOR");
  progress->out = out;
  progress->terminal = isatty(fileno(out)) && !(term && strcmp(term, "dumb") == 0);
  progress->color = progress->terminal && !(no_color && *no_color);
}

/* The terminal may be resized at any time. One column stays free: some terminals wrap after the
 * last. */
static unsigned terminal_columns(const struct ct_progress *p) {
  struct winsize size;
  unsigned n = p->columns;
  if (n == 0 && ioctl(fileno(p->out), TIOCGWINSZ, &size) == 0) n = size.ws_col;
  if (n == 0) {
    const char *text = getenv("COLUMNS");
    const long value = text ? strtol(text, NULL, 10) : 0;
    n = value > 0 && value < 10000 ? (unsigned)value : 80;
  }
  return n > 1 ? n - 1 : 1;
}

static void show(struct ct_progress *p) {
  char line[CT_PROGRESS_MAX];
  if (p->terminal) {
    ct_progress_line(line, terminal_columns(p), p->color, &p->state);
    fprintf(p->out, "\r%s\33[K", line);
    p->drawn = true;
  } else {
    ct_progress_line(line, 0, false, &p->state);
    fprintf(p->out, "%s\n", line);
  }
  fflush(p->out);
  p->stale = false;
}

/* From the second on, when the rate so far says something. */
static void estimate(struct ct_progress *p, uint64_t now) {
  const double done = p->state.fraction - p->first;
  p->state.known &= ~(unsigned)CT_PROGRESS_LEFT;
  if (!(p->state.known & CT_PROGRESS_FRACTION) || now - p->start < SECOND || !(done > 0)) return;
  p->state.left = (double)(now - p->start) / (double)SECOND * (1 - p->state.fraction) / done;
  p->state.known |= CT_PROGRESS_LEFT;
}

bool ct_progress_update_at(struct ct_progress *progress, uint64_t now,
                           const struct ct_progress_state *state) {
  struct ct_progress *p = progress;
  const uint64_t interval = p->terminal ? TERMINAL_INTERVAL : PLAIN_INTERVAL;
  const bool first = !p->started;
  p->state = *state;
  snprintf(p->label, sizeof p->label, "%s", state->label ? state->label : "");
  p->state.label = p->label; /* the caller's text may be gone when the run is closed */
  if (first) {
    p->started = true;
    p->start = now;
    p->first = state->known & CT_PROGRESS_FRACTION ? state->fraction : 0;
  }
  p->stale = true;
  estimate(p, now);
  const bool cleared = p->terminal && !p->drawn;
  if (!first && !cleared && now - p->last < interval) return false;
  p->last = now;
  show(p);
  return true;
}

void ct_progress_update(struct ct_progress *progress, const struct ct_progress_state *state) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  ct_progress_update_at(progress, (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec, state);
}

void ct_progress_clear(struct ct_progress *progress) {
  if (!progress->drawn) return;
  fputs("\r\33[K", progress->out);
  fflush(progress->out);
  progress->drawn = false;
  progress->stale = true;
}

void ct_progress_drop(struct ct_progress *p) {
  ct_progress_clear(p);
  p->stale = false;
}

void ct_progress_close(struct ct_progress *progress) {
  if (!progress->started) return;
  if (progress->stale) show(progress);
  if (progress->drawn) {
    fputc('\n', progress->out);
    fflush(progress->out);
  }
  progress->started = progress->drawn = false;
}
