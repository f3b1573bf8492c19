/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The report's charts (colocate_charts.c) and its text (colocate_page.c).
 */
#ifndef COLOCATE_PAGE_H
#define COLOCATE_PAGE_H

#include "colocate.h"
#include "ct_chart.h"
#include "ct_page.h"
#include "ct_units.h"

enum { PAGE_TEXTS = 8, PAGE_TEXT = 64, PAGE_ROWS = POLICIES + 1 };

/* Times in microseconds; NaN: not known, or never. */
struct page_times {
  double p50, p99, max;
};

/* A row of the comparison of policies. */
struct page_row {
  const char *name, *brief, *meaning;
  size_t requests, answered;
  struct page_times latency;
  double kept;   /* of training's speed alone; NaN for serving alone */
  double length; /* of the run */
  bool present;  /* the policy of this run */
};

struct page {
  const struct colocate *c;
  FILE *to;
  bool timed;
  double us; /* of a cycle */
  struct page_times together, alone;
  double kept;
  struct page_row row[PAGE_ROWS];
  size_t rows;
  double *x, *y; /* room for a chart's values */
  size_t room;
  char text[PAGE_TEXTS][PAGE_TEXT];
  unsigned next;
};

/* Works out what several parts show; -1 without memory. */
int page_open(struct page *p);
void page_close(struct page *p);

/* One of a few lines of text, for a short time. */
char *page_text(struct page *p);

/* Requests that the share of right answers is taken over. */
size_t page_recent(const struct colocate *c);

/* Steps that the loss is averaged over; 1 in a short run. */
size_t page_smooth(const struct colocate *c);

/* A chart of that many pixels; some choose their height themselves. */
typedef void page_chart(struct page *p, double w, double h);
page_chart page_latency, page_policies, page_kept, page_loss, page_accuracy, page_units;

#endif
