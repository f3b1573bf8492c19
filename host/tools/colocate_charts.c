/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "colocate_page.h"
#include "ct_stats.h"

/* POINTS: of a curve. SMOOTH: steps the loss is averaged over. NAMES: versions up to which each
 * mark has its name. */
enum { POINTS = 300, SMOOTH = 20, NAMES = 8 };

/* ---- What is shown ---- */

static struct page_times times_of(const struct page *p, const struct latency *l) {
  return (struct page_times){cycles_or_nan(l->p50) * p->us, cycles_or_nan(l->p99) * p->us,
                             cycles_or_nan(l->max) * p->us};
}

static size_t answered_by(const struct server *s, size_t n, uint64_t by) {
  size_t answered = 0;
  for (size_t i = 0; i < n && i < s->count; ++i)
    answered += s->request[i].answered && s->request[i].end <= by;
  return answered;
}

static void add_row(struct page *p, const char *name, const char *brief, const char *meaning,
                    const struct server *s, size_t n, const struct window *w) {
  const uint64_t by = w ? w->to : CT_NO_CYCLE;
  const struct latency l = latency_of_first(s, n, by);
  p->row[p->rows++] = (struct page_row){
      .name = name,
      .brief = brief,
      .meaning = meaning,
      .requests = n,
      .answered = answered_by(s, n, by),
      .latency = times_of(p, &l),
      .kept = w ? macs_per_cycle(w) / macs_per_cycle(&p->c->train_alone) : (double)NAN,
      .length = w ? (double)(w->to - w->from) * p->us : (double)NAN};
}

/* Serving alone, then the policies in their order. */
static void add_rows(struct page *p) {
  static const char *const briefs[POLICIES] = {"requests first", "first come, first served",
                                               "taking turns", "one job at a time"};
  static const char *const meanings[POLICIES] = {
      "requests go first, in every slot of every unit", "first come, first served, in every unit",
      "the queues take turns in every unit", "one whole job at a time"};
  const struct colocate *c = p->c;
  const size_t n = c->other[0].server.count;
  if (!p->timed || !c->alone.done || !n) return;
  add_row(p, "serving alone", "no training", "no training", &c->alone, n, NULL);
  for (unsigned policy = 0; policy < POLICIES; ++policy) {
    const char *name = ct_policy_name((enum ct_policy)policy);
    if (policy == c->o->policy) {
      add_row(p, name, briefs[policy], meanings[policy], &c->serve, n, &c->together);
      p->row[p->rows - 1].present = true;
      continue;
    }
    for (size_t i = 0; i < POLICIES - 1; ++i)
      if (c->other[i].window.closed && c->other[i].policy == policy)
        add_row(p, name, briefs[policy], meanings[policy], &c->other[i].server, n,
                &c->other[i].window);
  }
}

size_t page_recent(const struct colocate *c) {
  const size_t n = c->serve.count / 20;
  return n < 20 ? 20 : n > 500 ? 500 : n;
}

int page_open(struct page *p) {
  const struct colocate *c = p->c;
  p->timed = c->info.has_clock && c->info.clock_hz;
  p->us = p->timed ? 1e6 / (double)c->info.clock_hz : 0;
  p->room = 2 * (c->serve.count + (size_t)c->steps) + POINTS + 2 * c->versions.room + 8;
  p->x = malloc(p->room * sizeof *p->x);
  p->y = malloc(p->room * sizeof *p->y);
  if (!p->x || !p->y) return -1;
  const struct latency together = latency_of(&c->serve, p->timed),
                       alone = latency_of(&c->alone, p->timed);
  p->together = times_of(p, &together);
  p->alone = times_of(p, &alone);
  p->kept = macs_per_cycle(&c->together) / macs_per_cycle(&c->train_alone);
  add_rows(p);
  return 0;
}

void page_close(struct page *p) {
  free(p->x);
  free(p->y);
}

/* ---- Latency ---- */

/* The quantiles of a server's latencies in p->x (share) and p->y (microseconds). */
static size_t quantiles(struct page *p, const struct server *s, double top) {
  const size_t n = s->done, drop = latency_of(s, true).dropped, left = n - drop;
  uint64_t *samples = left ? malloc(n * sizeof *samples) : NULL;
  if (!samples) return 0;
  server_latencies(s, 0, n, samples);
  ct_stats_sort(samples + drop, left);
  for (size_t i = 0; i < POINTS; ++i) {
    const double share = 1 - pow(1 - top, (double)i / (POINTS - 1));
    const size_t at = (size_t)(share * (double)left);
    const uint64_t v = samples[drop + (at < left ? at : left - 1)];
    p->x[i] = share;
    p->y[i] = v == CT_STATS_NEVER ? (double)NAN : (double)v * p->us;
  }
  free(samples);
  return POINTS;
}

static double largest(const double *y, size_t n, double least) {
  for (size_t i = 0; i < n; ++i)
    if (y[i] > least) least = y[i];
  return least;
}

void page_latency(struct page *p, double w, double h) {
  const struct colocate *c = p->c;
  const size_t left = latency_of(&c->serve, true).measured;
  const double top = 1 - 1 / (double)(left > 10 ? left : 10);
  struct ct_chart chart;
  double high = largest(p->y, quantiles(p, &c->alone, top), 1);
  const size_t n = quantiles(p, &c->serve, top);
  high = largest(p->y, n, high);
  ct_chart_open(&chart, p->to, w, h, "Time to an answer by share of requests",
                "two lines, while training and alone; the figures are in the table below");
  chart.right = 24;
  ct_chart_x(&chart, 0, top, CT_NINES, "share of the requests that were faster", ct_format_percent);
  ct_chart_y(&chart, 0, high * 1.05, CT_LINEAR, "time to an answer, µs", NULL);
  ct_chart_line(&chart, "serve", p->x, p->y, n);
  ct_chart_line(&chart, "alone", p->x, p->y, quantiles(p, &c->alone, top));
  ct_chart_close(&chart);
}

/* ---- Policies ---- */

static void format_us(double us, char *text, size_t size) {
  if (us < 1000)
    snprintf(text, size, "%.3g µs", us);
  else if (us < 1e6)
    snprintf(text, size, "%.3g ms", us / 1e3);
  else
    snprintf(text, size, "%.3g s", us / 1e6);
}

enum { ROW_HEIGHT = 42, ROW_NAMES = 104, ROW_MEANINGS = 190 };

/* What a policy means stands below its name where there is room. */
static void name_row(struct ct_chart *chart, const struct page_row *r, double y) {
  char text[64];
  const bool room = chart->left > ROW_NAMES;
  snprintf(text, sizeof text, "%s%s", room ? r->brief : "",
           r->present ? room ? " (this run)" : "this run" : "");
  ct_chart_text(chart, r->present ? "b" : "", 2, y + (*text ? -2 : 4), "start", r->name);
  if (*text) ct_chart_text(chart, "tick", 2, y + 13, "start", text);
}

/* The smallest and the largest time of the comparison, with room for texts. */
static void time_range(const struct page *p, double *low, double *high) {
  *low = INFINITY;
  *high = 0;
  for (size_t i = 0; i < p->rows; ++i) {
    const struct page_times *t = &p->row[i].latency;
    if (t->p50 < *low) *low = t->p50;
    if (t->p50 > *high) *high = t->p50;
    if (t->p99 > *high) *high = t->p99;
  }
  *low = isfinite(*low) ? pow(10, floor(log10(*low))) : 1;
  *high = *high > 0 ? *high * 1.2 : 10;
}

/* What did not come in time goes on to the right edge, with an arrow. */
static void draw_times(struct ct_chart *chart, const struct page_row *r, double y) {
  const bool never = !isfinite(r->latency.p99);
  const double x1 = isfinite(r->latency.p50) ? ct_scale_at(&chart->x, r->latency.p50) : chart->x.to,
               x2 = never ? chart->x.to : ct_scale_at(&chart->x, r->latency.p99);
  char text[64];
  fprintf(chart->to,
          "<line class=\"serve range\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n", x1, y,
          x2, y);
  if (isfinite(r->latency.p50))
    fprintf(chart->to,
            "<circle class=\"serve hollow\" style=\"fill:var(--bg);stroke:var(--serve)\" "
            "cx=\"%.1f\" cy=\"%.1f\" r=\"5\"/>\n",
            x1, y);
  if (never) {
    fprintf(chart->to, "<path style=\"fill:var(--serve)\" d=\"M%.1f %.1fl10 6l-10 6z\"/>\n", x2,
            y - 6);
    snprintf(text, sizeof text, "%zu of %zu in time", r->answered, r->requests);
  } else {
    fprintf(chart->to, "<circle class=\"serve\" cx=\"%.1f\" cy=\"%.1f\" r=\"6\"/>\n", x2, y);
    format_us(r->latency.p99, text, sizeof text);
  }
  if (never)
    ct_chart_text(chart, "b", x1 < x2 ? x2 + 14 : x2 - 8, x1 < x2 ? y - 9 : y + 4, "end", text);
  else
    ct_chart_text(chart, "b", x2 + 11, y + 4, "start", text);
}

void page_policies(struct page *p, double w, double h) {
  struct ct_chart chart;
  double low, high;
  time_range(p, &low, &high);
  h = ROW_HEIGHT * (double)p->rows + 60;
  ct_chart_open(&chart, p->to, w, h, "Time to an answer by policy",
                "median and p99 for serving alone and each policy, on a logarithmic scale");
  chart.left = w < CT_PAGE_NARROW ? ROW_NAMES : ROW_MEANINGS;
  chart.right = 70;
  chart.top = 6;
  ct_chart_x(&chart, low, high, CT_LOG, "time to an answer", format_us);
  for (size_t i = 0; i < p->rows; ++i) {
    const double y = chart.top + ROW_HEIGHT * ((double)i + 0.5);
    name_row(&chart, &p->row[i], y);
    draw_times(&chart, &p->row[i], y);
  }
  ct_chart_close(&chart);
}

void page_kept(struct page *p, double w, double h) {
  struct ct_chart chart;
  char text[32];
  h = ROW_HEIGHT * (double)(p->rows - 1) + 60;
  ct_chart_open(&chart, p->to, w, h, "Training speed kept by policy",
                "a bar for each policy, in percent of training alone");
  chart.left = w < CT_PAGE_NARROW ? ROW_NAMES : ROW_MEANINGS;
  chart.right = 70;
  chart.top = 6;
  ct_chart_x(&chart, 0, 1, CT_LINEAR, "of training's speed alone", ct_format_percent);
  for (size_t i = 1; i < p->rows; ++i) {
    const struct page_row *r = &p->row[i];
    const double y = chart.top + ROW_HEIGHT * ((double)i - 0.5);
    const double x = ct_scale_at(&chart.x, r->kept);
    name_row(&chart, r, y);
    ct_chart_rect(&chart, "train", chart.left, y - 10, x - chart.left, 20, NULL);
    snprintf(text, sizeof text, "%.0f %%", 100 * r->kept);
    ct_chart_text(&chart, "b", x + 8, y + 5, "start", text);
  }
  ct_chart_close(&chart);
}

/* ---- Loss ---- */

/* At most max_points of the raw losses, or means of the SMOOTH steps up to each. */
static size_t losses(struct page *p, size_t smooth) {
  const struct colocate *c = p->c;
  const size_t n = (size_t)c->feed.finished, stride = n / 600 + 1;
  size_t points = 0;
  for (size_t i = smooth - 1; i < n; i += stride) {
    double sum = 0;
    for (size_t k = 0; k < smooth; ++k)
      sum += (double)c->losses[i - k];
    p->x[points] = (double)(i + 1) - (double)(smooth - 1) / 2;
    p->y[points++] = sum / (double)smooth;
  }
  return points;
}

size_t page_smooth(const struct colocate *c) {
  const size_t smooth = SMOOTH;
  return c->feed.finished < 2 * smooth ? 1 : smooth;
}

static void mark_version(const struct page *p, struct ct_chart *chart, size_t i, double x) {
  char name[32];
  snprintf(name, sizeof name, "v%zu", i + 1);
  ct_chart_mark(chart, "swap", x, p->c->versions.published <= NAMES ? name : NULL);
}

void page_loss(struct page *p, double w, double h) {
  const struct colocate *c = p->c;
  struct ct_chart chart;
  const size_t n = (size_t)c->feed.finished;
  const size_t smooth = page_smooth(c);
  const double high = largest(p->y, losses(p, 1), 0.01);
  ct_chart_open(&chart, p->to, w, h, "Loss by training step",
                "it falls from step to step; marks where versions were handed to serving");
  ct_chart_x(&chart, 0, (double)(n > 1 ? n : 2), CT_LINEAR, "training steps", NULL);
  ct_chart_y(&chart, 0, high * 1.05, CT_LINEAR, "loss", NULL);
  for (size_t i = 0; i < c->versions.published; ++i)
    mark_version(p, &chart, i, (double)c->versions.version[i].step);
  if (smooth > 1) ct_chart_line(&chart, "raw", p->x, p->y, losses(p, 1));
  ct_chart_line(&chart, "train", p->x, p->y, losses(p, smooth));
  ct_chart_close(&chart);
}

/* ---- Accuracy ---- */

/* When a request was answered: milliseconds since the first arrived, or its number. */
static double when(const struct page *p, size_t i) {
  const struct request *first = p->c->serve.request, *r = first + i;
  if (!p->timed) return (double)i + 1;
  return (double)(r->end - first->scheduled) * p->us / 1000;
}

static size_t right_answers(struct page *p) {
  const struct colocate *c = p->c;
  const struct server *s = &c->serve;
  const size_t recent = page_recent(c), stride = s->done / 800 + 1;
  size_t points = 0, right = 0, have = 0;
  for (size_t i = 0; i < s->done; ++i) {
    const struct request *r = &s->request[i];
    right += r->answered && r->answer == c->ds.test.labels[r->sample];
    if (++have > recent) {
      const struct request *old = &s->request[i - recent];
      right -= old->answered && old->answer == c->ds.test.labels[old->sample];
      --have;
    }
    if (!r->answered || (have < recent && i + 1 < s->done) || i % stride) continue;
    p->x[points] = when(p, i);
    p->y[points++] = (double)right / (double)have;
  }
  return points;
}

/* Accuracy of the version that serves, as stairs; marks the swaps if a chart is given. */
static size_t known_accuracy(struct page *p, struct ct_chart *chart) {
  const struct colocate *c = p->c;
  const struct server *s = &c->serve;
  size_t points = 0;
  uint32_t version = 0;
  for (size_t i = 0; i < s->done; ++i) {
    const struct request *r = &s->request[i];
    if (!r->answered || (r->version == version && i + 1 < s->done)) continue;
    if (r->version < 1 || r->version > c->versions.published) continue;
    if (chart && r->version != version) mark_version(p, chart, r->version - 1, when(p, i));
    version = r->version;
    p->x[points] = when(p, i);
    p->y[points++] = accuracy_of(&c->versions.version[version - 1]);
  }
  return points;
}

static double smallest(const double *y, size_t n, double most) {
  for (size_t i = 0; i < n; ++i)
    if (y[i] < most) most = y[i];
  return most;
}

void page_accuracy(struct page *p, double w, double h) {
  const struct colocate *c = p->c;
  struct ct_chart chart;
  double low = smallest(p->y, right_answers(p), 1);
  low = smallest(p->y, known_accuracy(p, NULL), low);
  low = low > 0.05 ? floor(low * 10 - 0.3) / 10 : 0;
  ct_chart_open(&chart, p->to, w, h, "Right answers over time",
                "the share of right answers rises as new versions of the weights take over");
  ct_chart_x(&chart, 0, when(p, c->serve.done - 1), CT_LINEAR,
             p->timed ? "milliseconds since the first request" : "requests", NULL);
  ct_chart_y(&chart, low, 1, CT_LINEAR, "right answers", ct_format_percent);
  known_accuracy(p, &chart);
  ct_chart_stairs(&chart, "known", p->x, p->y, known_accuracy(p, NULL));
  ct_chart_line(&chart, "serve", p->x, p->y, right_answers(p));
  ct_chart_close(&chart);
}

/* ---- Units ---- */

enum { UNIT_HEIGHT = 66, BAR = 16 };

static double busy_of(const struct window *w, unsigned unit, unsigned queue) {
  const struct ct_unit_time t = ct_unit_time(unit, w->counter[queue]);
  return w->to > w->from ? (double)t.busy / (double)(w->to - w->from) : 0;
}

static void draw_bar(struct ct_chart *chart, const char *name, double y, double serve,
                     double train) {
  char text[64];
  const double x0 = chart->x.from, x1 = ct_scale_at(&chart->x, serve),
               x2 = ct_scale_at(&chart->x, serve + train);
  ct_chart_text(chart, "tick", chart->left - 8, y + 12, "end", name);
  snprintf(text, sizeof text, "serving %.1f %%", 100 * serve);
  ct_chart_rect(chart, "serve", x0, y, x1 - x0, BAR, text);
  snprintf(text, sizeof text, "training %.1f %%", 100 * train);
  ct_chart_rect(chart, "train", x1, y, x2 - x1, BAR, text);
  ct_chart_rect(chart, "idle", x2, y, chart->x.to - x2, BAR, "neither");
  snprintf(text, sizeof text, "%.0f %%", 100 * (serve + train));
  ct_chart_text(chart, "tick b", chart->w - 2, y + 12, "end", text);
}

void page_units(struct page *p, double w, double h) {
  static const char *const names[CT_UNITS] = {
      "DMA read: memory to scratchpad", "DMA write: scratchpad to memory",
      "MXU: the matrix unit",           "VL: vector unit, loading",
      "VA: vector unit, computing",     "VS: vector unit, storing"};
  const struct colocate *c = p->c;
  struct ct_chart chart;
  h = UNIT_HEIGHT * CT_UNITS + 50;
  ct_chart_open(&chart, p->to, w, h, "Occupancy of the units",
                "for each unit a bar of serving and training, and one of training alone");
  chart.left = ROW_NAMES;
  chart.right = 48;
  chart.top = 6;
  ct_chart_x(&chart, 0, 1, CT_LINEAR, "of the time", ct_format_percent);
  for (unsigned u = 0; u < CT_UNITS; ++u) {
    const double y = chart.top + UNIT_HEIGHT * u;
    ct_chart_text(&chart, "b", 2, y + 14, "start", names[u]);
    draw_bar(&chart, "both", y + 22, busy_of(&c->together, u, 0), busy_of(&c->together, u, 1));
    if (c->train_alone.closed)
      draw_bar(&chart, w < CT_PAGE_NARROW ? "training" : "training alone", y + 22 + BAR + 3, 0,
               busy_of(&c->train_alone, u, 1));
  }
  ct_chart_close(&chart);
}
