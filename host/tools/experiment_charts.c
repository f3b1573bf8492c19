/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "experiment_page.h"

/* DODGE: pixels between the marks of neighbouring policies at one load, so that none hides another.
 * CAP: of a whisker. LOG_FROM: times the smallest figure from which a scale is logarithmic. */
enum { DODGE = 6, CAP = 3, LOG_FROM = 5, DOT = 4 };

size_t exp_page_loads(const struct exp_drawing *d, uint32_t permille[EXP_PAGE_LOADS]) {
  size_t n = 0;
  for (size_t i = 0; i < d->summary->cells; ++i) {
    const struct exp_point *p = &d->summary->cell[i].point;
    if (!p->core || p->server != d->server) continue;
    size_t at = 0;
    while (at < n && permille[at] < p->permille)
      ++at;
    if ((at < n && permille[at] == p->permille) || n == EXP_PAGE_LOADS) continue;
    memmove(permille + at + 1, permille + at, (n++ - at) * sizeof *permille);
    permille[at] = p->permille;
  }
  return n;
}

const struct exp_cell *exp_page_cell(const struct exp_drawing *d, enum ct_policy policy,
                                     uint32_t permille) {
  for (size_t i = 0; i < d->summary->cells; ++i) {
    const struct exp_cell *c = &d->summary->cell[i];
    if (c->point.core && c->point.server == d->server && c->point.policy == policy &&
        c->point.permille == permille)
      return c;
  }
  return NULL;
}

const char *exp_page_class(enum ct_policy policy) {
  return ct_policy_name(policy == CT_SLACK ? CT_PRIORITY : policy);
}

/* ---- Lines over the load ---- */

/* Figures at the loads at which there is one, with intervals (NaN: none). Infinite: never. */
struct line {
  const char *class;
  double load[EXP_PAGE_LOADS], y[EXP_PAGE_LOADS], low[EXP_PAGE_LOADS], high[EXP_PAGE_LOADS];
  size_t n;
  double shift; /* pixels */
};

static void add(struct line *l, uint32_t permille, double y, double low, double high) {
  if (isnan(y)) return; /* p99 was infinite alone, too */
  const size_t i = l->n++;
  l->load[i] = permille / 1000.0;
  l->y[i] = y;
  l->low[i] = low;
  l->high[i] = high;
}

/* The range of all finite figures and intervals. False: there is none. */
static bool range_of(const struct line *lines, size_t count, double *low, double *high) {
  *low = INFINITY;
  *high = -INFINITY;
  for (size_t k = 0; k < count; ++k)
    for (size_t i = 0; i < lines[k].n; ++i) {
      const double values[] = {lines[k].y[i], lines[k].low[i], lines[k].high[i]};
      for (size_t v = 0; v < 3; ++v) {
        if (!isfinite(values[v])) continue;
        if (values[v] < *low) *low = values[v];
        if (values[v] > *high) *high = values[v];
      }
    }
  return *low <= *high;
}

static bool has_never(const struct line *lines, size_t count) {
  for (size_t k = 0; k < count; ++k)
    for (size_t i = 0; i < lines[k].n; ++i)
      if (isinf(lines[k].y[i])) return true;
  return false;
}

/* With room beside the loads. */
static void load_axis(struct ct_chart *chart, const struct exp_drawing *d) {
  uint32_t load[EXP_PAGE_LOADS];
  const size_t n = exp_page_loads(d, load);
  const double low = n ? load[0] / 1000.0 - 0.05 : 0, high = n ? load[n - 1] / 1000.0 + 0.05 : 1;
  ct_chart_x(chart, low > 0 ? low : 0, high, CT_LINEAR, "load: requests as a part of the capacity",
             NULL);
}

/* The value that lies so many pixels beside a load. */
static double beside(const struct ct_chart *chart, double load, double pixels) {
  const struct ct_scale *x = &chart->x;
  return load + pixels / (x->to - x->from) * (x->high - x->low);
}

static void draw_whisker(struct ct_chart *chart, const struct line *l, size_t i, double x) {
  if (!isfinite(l->low[i]) || !isfinite(l->high[i])) return;
  char class[64];
  snprintf(class, sizeof class, "%s whisker", l->class);
  const double a = beside(chart, x, -CAP), b = beside(chart, x, CAP);
  ct_chart_segment(chart, class, x, l->low[i], x, l->high[i]);
  ct_chart_segment(chart, class, a, l->low[i], b, l->low[i]);
  ct_chart_segment(chart, class, a, l->high[i], b, l->high[i]);
}

/* What was never answered is an arrow at the top edge. */
static void draw_line(struct ct_chart *chart, const struct line *l) {
  double x[EXP_PAGE_LOADS], y[EXP_PAGE_LOADS];
  for (size_t i = 0; i < l->n; ++i) {
    x[i] = beside(chart, l->load[i], l->shift);
    y[i] = isinf(l->y[i]) ? chart->y.high : l->y[i];
  }
  ct_chart_line(chart, l->class, x, y, l->n);
  for (size_t i = 0; i < l->n; ++i) {
    if (isinf(l->y[i])) {
      fprintf(chart->to, "<path class=\"never %s\" d=\"M%.1f %.1fl5 10h-10z\"/>\n", l->class,
              ct_scale_at(&chart->x, x[i]), chart->top - 6);
      continue;
    }
    draw_whisker(chart, l, i, x[i]);
    ct_chart_dot(chart, l->class, x[i], y[i], DOT);
  }
}

static void draw_lines(struct ct_chart *chart, struct line *lines, size_t count) {
  for (size_t k = count; k-- > 0;) {
    lines[k].shift = DODGE * ((double)k - (double)(count - 1) / 2);
    if (lines[k].n) draw_line(chart, &lines[k]);
  }
}

/* ---- p99 ---- */

/* Serving alone, then the policies. The interval is that of the ratio to the same arrivals alone:
 * p99 itself varies with the arrivals, which is not the policy's doing. */
static size_t p99_lines(const struct exp_drawing *d, struct line lines[1 + EXP_PAGE_POLICIES]) {
  uint32_t load[EXP_PAGE_LOADS];
  const size_t loads = exp_page_loads(d, load);
  lines[0].class = "alone";
  for (unsigned p = 0; p < EXP_PAGE_POLICIES; ++p) {
    struct line *l = &lines[1 + p];
    l->class = exp_page_class((enum ct_policy)p);
    for (size_t i = 0; i < loads; ++i) {
      const struct exp_cell *c = exp_page_cell(d, (enum ct_policy)p, load[i]);
      if (!c) continue;
      add(l, load[i], c->p99, c->p99_alone * c->stretch.low, c->p99_alone * c->stretch.high);
    }
  }
  for (size_t i = 0; i < loads; ++i) {
    const struct exp_cell *c = NULL;
    for (unsigned p = 0; p < EXP_PAGE_POLICIES && !c; ++p)
      c = exp_page_cell(d, (enum ct_policy)p, load[i]);
    if (c) add(&lines[0], load[i], c->p99_alone, (double)NAN, (double)NAN);
  }
  return 1 + EXP_PAGE_POLICIES;
}

static void format_cycles(double cycles, char *text, size_t size) {
  if (cycles < 1e6)
    ct_format_number(cycles, text, size);
  else
    snprintf(text, size, "%.4g M", cycles / 1e6);
}

void exp_chart_p99(void *context, FILE *to, double w, double h) {
  const struct exp_drawing *d = context;
  struct line lines[1 + EXP_PAGE_POLICIES] = {{.n = 0}};
  struct ct_chart chart;
  double low, high;
  const size_t count = p99_lines(d, lines);
  if (!range_of(lines, count, &low, &high)) low = high = 1000;
  const bool never = has_never(lines, count), wide = high > LOG_FROM * low;
  ct_chart_open(&chart, to, w, h, "p99 latency over load",
                "a line for serving alone and for each policy; the figures are in the table below");
  load_axis(&chart, d);
  if (wide)
    ct_chart_y(&chart, low / 1.3, high * (never ? pow(high / low, 0.15) : 1.3), CT_LOG,
               "p99, cycles", format_cycles);
  else
    ct_chart_y(&chart, 0, high * 1.15, CT_LINEAR, "p99, cycles", format_cycles);
  if (never)
    ct_chart_text(&chart, "tick", chart.w - chart.right, chart.top - 12, "end",
                  "at the top edge: never");
  draw_lines(&chart, lines, count);
  ct_chart_close(&chart);
}

/* ---- Stretch under PRIORITY ---- */

void exp_chart_stretch(void *context, FILE *to, double w, double h) {
  const struct exp_drawing *d = context;
  struct line line = {.class = "priority"};
  struct ct_chart chart;
  uint32_t load[EXP_PAGE_LOADS];
  const size_t loads = exp_page_loads(d, load);
  for (size_t i = 0; i < loads; ++i) {
    const struct exp_cell *c = exp_page_cell(d, CT_PRIORITY, load[i]);
    if (c) add(&line, load[i], c->stretch.mean, c->stretch.low, c->stretch.high);
  }
  double low, high;
  if (!range_of(&line, 1, &low, &high)) low = high = 1;
  const double room = (high > 1 ? high - 1 : 1 - low) * 0.2 + 0.005;
  ct_chart_open(&chart, to, w, h, "p99 beside training over p99 alone",
                "a point for each load; 1 would be no effect at all");
  load_axis(&chart, d);
  ct_chart_y(&chart, low < 1 ? low - room : 1 - room, (high > 1 ? high : 1) + room, CT_LINEAR,
             "p99 beside training / p99 alone", NULL);
  ct_chart_segment(&chart, "target", chart.x.low, 1, chart.x.high, 1);
  draw_line(&chart, &line);
  ct_chart_close(&chart);
}

/* ---- Training ---- */

void exp_chart_share(void *context, FILE *to, double w, double h) {
  const struct exp_drawing *d = context;
  struct line lines[EXP_PAGE_POLICIES] = {{.n = 0}}, idle = {.class = "alone"};
  struct ct_chart chart;
  uint32_t load[EXP_PAGE_LOADS];
  const size_t loads = exp_page_loads(d, load);
  for (size_t i = 0; i < loads; ++i) {
    const struct exp_cell *any = NULL;
    for (unsigned p = 0; p < EXP_PAGE_POLICIES; ++p) {
      const struct exp_cell *c = exp_page_cell(d, (enum ct_policy)p, load[i]);
      if (!c) continue;
      any = c;
      lines[p].class = exp_page_class((enum ct_policy)p);
      add(&lines[p], load[i], c->share.mean, c->share.low, c->share.high);
    }
    if (any) add(&idle, load[i], 1 - any->u, (double)NAN, (double)NAN);
  }
  double low, high;
  if (!range_of(lines, EXP_PAGE_POLICIES, &low, &high) || high < 1) high = 1;
  ct_chart_open(&chart, to, w, h, "Training over load",
                "training's part of its speed alone, for each policy, and the time left over");
  load_axis(&chart, d);
  ct_chart_y(&chart, 0, high, CT_LINEAR, "of training's speed alone", ct_format_percent);
  ct_chart_line(&chart, idle.class, idle.load, idle.y, idle.n);
  draw_lines(&chart, lines, EXP_PAGE_POLICIES);
  ct_chart_close(&chart);
}

/* ---- Batches ---- */

enum { BATCH_ROW = 74, BATCH_NAMES = 92, BATCH_BARS = 46 };

static double share_of(const struct exp_cell *c, size_t n) {
  double all = 0;
  for (size_t i = 1; i <= EXP_BATCH; ++i)
    all += (double)c->batches[i];
  return all > 0 ? (double)c->batches[n] / all : 0;
}

static void draw_batches(struct ct_chart *chart, const struct exp_cell *c, double y, double most) {
  char text[64];
  const double pitch = (chart->w - chart->left - chart->right) / EXP_BATCH;
  snprintf(text, sizeof text, "load %g", c->point.permille / 1000.0);
  ct_chart_text(chart, "b", 2, y - 18, "start", text);
  snprintf(text, sizeof text, "mean %.2f", c->mean_batch);
  ct_chart_text(chart, "tick", 2, y - 2, "start", text);
  for (size_t n = 1; n <= EXP_BATCH; ++n) {
    const double share = share_of(c, n), height = share / most * BATCH_BARS;
    const double x = chart->left + pitch * (double)(n - 1);
    snprintf(text, sizeof text, "%zu in a batch: %.2f %% of the batches", n, 100 * share);
    if (share > 0)
      ct_chart_rect(chart, "serve", x + pitch * 0.12, y - (height > 1 ? height : 1), pitch * 0.76,
                    height > 1 ? height : 1, text);
    snprintf(text, sizeof text, "%.0f", 100 * share);
    if (share >= 0.005) ct_chart_text(chart, "tick", x + pitch / 2, y - height - 4, "middle", text);
  }
  fprintf(chart->to, "<line class=\"axis\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n",
          chart->left, y, chart->w - chart->right, y);
}

void exp_chart_batches(void *context, FILE *to, double w, double h) {
  const struct exp_drawing *d = context;
  const struct exp_cell *cell[EXP_PAGE_LOADS];
  struct ct_chart chart;
  char text[32];
  uint32_t load[EXP_PAGE_LOADS];
  double most = 0.01;
  size_t rows = 0;
  const size_t loads = exp_page_loads(d, load);
  for (size_t i = 0; i < loads; ++i) {
    const struct exp_cell *c = exp_page_cell(d, CT_PRIORITY, load[i]);
    if (!c) continue;
    cell[rows++] = c;
    for (size_t n = 1; n <= EXP_BATCH; ++n)
      if (share_of(c, n) > most) most = share_of(c, n);
  }
  h = BATCH_ROW * (double)rows + 48;
  ct_chart_open(&chart, to, w, h, "Batches by size and load",
                "a row of bars for each load, in percent of the batches");
  chart.left = w < CT_PAGE_NARROW ? BATCH_NAMES - 22 : BATCH_NAMES;
  chart.right = 4;
  for (size_t i = 0; i < rows; ++i)
    draw_batches(&chart, cell[i], BATCH_ROW * (double)(i + 1) - 4, most);
  const double pitch = (w - chart.left - chart.right) / EXP_BATCH;
  for (size_t n = 1; n <= EXP_BATCH; ++n) {
    snprintf(text, sizeof text, "%zu", n);
    ct_chart_text(&chart, "tick", chart.left + pitch * ((double)n - 0.5), h - 32, "middle", text);
  }
  ct_chart_text(&chart, "label", (chart.left + w) / 2, h - 10, "middle", "requests in a batch");
  ct_chart_close(&chart);
}
