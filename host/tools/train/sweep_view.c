/* SPDX-License-Identifier: Apache-2.0 */
/* The table of a sweep: redrawn on a terminal, elsewhere a line for each member and epoch. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "sweep.h"

enum { EVERY_MS = 250 };

static uint64_t now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* ---- Figures ------------------------------------------------------------------------------- */

static struct sweep_text figure(const char *pattern, double x) {
  struct sweep_text t = {"-"};
  if (!isnan(x)) snprintf(t.text, sizeof t.text, pattern, x);
  return t;
}

static double loss_of(const struct sweep_member *m) {
  return m->count ? m->sum / (double)m->count : m->loss;
}

static const char *state_of(const struct sweep_member *m, const struct sweep *s) {
  if (m->info.state == CT_MEMBER_DIVERGED) return "diverged";
  if (m->info.state == CT_MEMBER_FAILED) return "failed";
  if (m->left) return "left";
  return m->epochs >= s->l->epochs ? "done" : "training";
}

static bool is_swept(const struct sweep *s, size_t key) {
  return s->o->axis[key].count > 0;
}

/* ---- The table ----------------------------------------------------------------------------- */

static void put_head(const struct sweep *s, FILE *to, const char *end) {
  fprintf(to, "  #");
  for (size_t k = 0; k < SWEEP_KEYS; ++k)
    if (is_swept(s, k)) fprintf(to, "  %-12s", sweep_key_name((enum sweep_key)k));
  fprintf(to, "   steps     loss  accuracy  state%s", end);
}

static void put_member(const struct sweep *s, FILE *to, const struct sweep_member *m,
                       const char *end) {
  fprintf(to, "%3" PRIu32, m->number);
  for (size_t k = 0; k < SWEEP_KEYS; ++k)
    if (is_swept(s, k))
      fprintf(to, "  %-12s", sweep_value_text((enum sweep_key)k, m->value[k]).text);
  fprintf(to, "  %6" PRIu64 "  %7s  %8s  %s%s", m->info.runs, figure("%.4f", loss_of(m)).text,
          figure("%.2f %%", 100 * m->accuracy).text, state_of(m, s), end);
}

static void put_table(const struct sweep *s, FILE *to, const char *end) {
  put_head(s, to, end);
  for (size_t i = 0; i < s->members; ++i)
    put_member(s, to, &s->member[i], end);
}

static void draw(struct sweep *s) {
  char name[256];
  learn_name(s->l, name, sizeof name);
  fprintf(s->text,
          "\33[Hcoltrain train --sweep: %zu of %s on %s, epoch %" PRIu64 "/%" PRIu64
          "\33[K\n\33[K\n",
          s->members, name, s->l->device, s->epoch, s->l->epochs);
  put_table(s, s->text, "\33[K\n");
  fputs("\33[J\nCtrl-C stops, and keeps the best\33[K", s->text);
  fflush(s->text);
}

/* ---- When it is shown ---------------------------------------------------------------------- */

/* The alternate screen, without a cursor. */
void sweep_view_open(struct sweep *s) {
  const char *term = getenv("TERM");
  s->view.terminal = isatty(fileno(s->text)) && term && strcmp(term, "dumb") != 0;
  if (s->view.terminal) fputs("\33[?1049h\33[?25l", s->text);
}

/* To whoever looks on: the runs of all, and the loss of the best so far. */
static void show_live(struct sweep *s) {
  json_t *line = live_begin(&s->live);
  uint64_t done = 0, all = 0;
  double loss = (double)NAN;
  if (!line) return;
  for (size_t i = 0; i < s->members; ++i) {
    const struct sweep_member *m = &s->member[i];
    done += m->info.runs;
    all += m->left ? m->info.runs : s->l->epochs * m->feed->order.per_epoch;
    if (!(loss_of(m) >= loss)) loss = loss_of(m);
  }
  json_object_set_new(line, "run",
                      json_sprintf("%zu trainings, epoch %" PRIu64 "/%" PRIu64, s->members,
                                   s->epoch, s->l->epochs));
  json_object_set_new(line, "fraction", json_real((double)done / (double)all));
  json_object_set_new(line, "queues",
                      json_pack("{s:I, s:I}", "inference", (json_int_t)0, "training",
                                (json_int_t)ct_outstanding(s->dev, CT_TRAINING)));
  live_steps(&s->live, line, done, all, loss);
  live_end(&s->live, line);
}

void sweep_view_update(struct sweep *s) {
  show_live(s);
  const uint64_t now = now_ms();
  if (!s->view.terminal || now - s->view.drawn < EVERY_MS) return;
  s->view.drawn = now;
  draw(s);
}

void sweep_view_epoch(struct sweep *s) {
  if (s->view.terminal) {
    draw(s);
    return;
  }
  for (size_t i = 0; i < s->members; ++i) {
    const struct sweep_member *m = &s->member[i];
    if (m->left) continue;
    fprintf(s->text, "epoch %" PRIu64 "/%" PRIu64 "  member %" PRIu32, s->epoch, s->l->epochs,
            m->number);
    for (size_t k = 0; k < SWEEP_KEYS; ++k)
      if (is_swept(s, k))
        fprintf(s->text, "  %s %s", sweep_key_name((enum sweep_key)k),
                sweep_value_text((enum sweep_key)k, m->value[k]).text);
    fprintf(s->text, "  loss %s  test accuracy %s%s\n", figure("%.4f", m->loss).text,
            figure("%.2f %%", 100 * m->accuracy).text,
            m->info.state == CT_MEMBER_READY      ? ""
            : m->info.state == CT_MEMBER_DIVERGED ? "  diverged"
                                                  : "  failed");
  }
  fflush(s->text);
}

void sweep_view_leave(struct sweep *s) {
  if (s->view.terminal) fputs("\33[?25h\33[?1049l", s->text);
  fflush(s->text);
  s->view.terminal = false;
}

void sweep_view_close(struct sweep *s) {
  sweep_view_leave(s);
  put_table(s, s->text, "\n");
  fflush(s->text);
}
