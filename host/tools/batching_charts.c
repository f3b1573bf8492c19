/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "batching_page.h"

enum { DOT = 4, HEADROOM = 25 };

/* ---- What a batch costs ---- */

void batching_chart_cost(void *context, FILE *to, double w, double h) {
  const struct batching_row *row = context;
  struct ct_chart chart;
  double size[EXP_BATCH], each[EXP_BATCH];
  for (size_t n = 1; n <= EXP_BATCH; ++n) {
    size[n - 1] = (double)n;
    each[n - 1] = (double)row->cost[n] / (double)n;
  }
  ct_chart_open(&chart, to, w, h, "Cycles a request by the size of its batch",
                "the cost of a batch divided by its requests; the figures are in the table below");
  ct_chart_x(&chart, 0, EXP_BATCH, CT_LINEAR, "requests in a batch", NULL);
  ct_chart_y(&chart, 0, each[0] * 1.1, CT_LINEAR, "cycles a request", NULL);
  ct_chart_line(&chart, "serve", size, each, EXP_BATCH);
  for (size_t i = 0; i < EXP_BATCH; ++i)
    ct_chart_dot(&chart, "serve", size[i], each[i], DOT);
  ct_chart_close(&chart);
}

/* ---- The search ---- */

/* Rates and p99 of a row; a run that was ended early, or p99 far above the bound: at the edge. */
static void draw_tries(struct ct_chart *chart, const struct batching_row *row, const char *class) {
  for (size_t i = 0; i < row->tries; ++i) {
    const struct batching_try *t = &row->tried[i];
    const double x = batching_per_second(row, t->rate);
    if (!t->result.given_up && (double)t->result.p99 <= chart->y.high)
      ct_chart_dot(chart, class, x, (double)t->result.p99, DOT);
    else
      fprintf(chart->to, "<path class=\"never %s\" d=\"M%.1f %.1fl5 10h-10z\"/>\n", class,
              ct_scale_at(&chart->x, x), chart->top - 6);
  }
}

static void range_of(const struct batching_pair *pair, double *low, double *high) {
  *low = INFINITY;
  *high = 0;
  for (size_t k = 0; k < BATCHING_SIZES; ++k)
    for (size_t i = 0; i < pair->row[k]->tries; ++i) {
      const double x = batching_per_second(pair->row[k], pair->row[k]->tried[i].rate);
      *low = fmin(*low, x);
      *high = fmax(*high, x);
    }
}

void batching_chart_search(void *context, FILE *to, double w, double h) {
  static const char *const classes[BATCHING_SIZES] = {"fcfs", "priority"};
  const struct batching_pair *pair = context;
  const double bound = (double)pair->row[0]->batching.bound;
  struct ct_chart chart;
  double low, high;
  range_of(pair, &low, &high);
  ct_chart_open(&chart, to, w, h, "p99 of every rate that was tried",
                "a mark for each rate, for single requests and for batches; the line is the bound");
  ct_chart_x(&chart, low / 1.3, high * 1.3, CT_LOG, "requests a second", NULL);
  ct_chart_y(&chart, 0, bound * (100 + HEADROOM) / 100, CT_LINEAR, "p99, cycles", NULL);
  ct_chart_segment(&chart, "target", low / 1.3, bound, high * 1.3, bound);
  for (size_t k = 0; k < BATCHING_SIZES; ++k)
    draw_tries(&chart, pair->row[k], classes[k]);
  ct_chart_close(&chart);
}
