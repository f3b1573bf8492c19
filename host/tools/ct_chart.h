/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Charts as SVG inside an HTML page. Colours, fonts and line styles are the page's: elements have
 * only classes (axis, grid, tick, label, and what the caller names). Lengths are pixels of the
 * chart; values are those of its two scales.
 *
 *   struct ct_chart c;
 *   ct_chart_open(&c, file, 720, 300, "Loss", "what a person sees who cannot see it");
 *   ct_chart_x(&c, 0, 600, CT_LINEAR, "training steps", NULL);
 *   ct_chart_y(&c, 0, 2, CT_LINEAR, "loss", NULL);
 *   ct_chart_line(&c, "train", xs, ys, n);
 *   ct_chart_close(&c);
 *
 * Errors of writing show in the file.
 */
#ifndef CT_CHART_H
#define CT_CHART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* NINES: the share p of a distribution from 0 to below 1, with equal room for each further nine
 * (0.9, 0.99, 0.999): the way tails of latency are drawn. */
enum ct_scale_kind { CT_LINEAR, CT_LOG, CT_NINES };

struct ct_scale {
  enum ct_scale_kind kind;
  double low, high; /* values */
  double from, to;  /* their pixels */
};

/* The pixel of a value, kept within the scale. */
double ct_scale_at(const struct ct_scale *scale, double value);

enum { CT_TICKS = 12 };

/* Round values from low to high, at most max of them; returns how many. For LOG 1, 2 and 5 times
 * powers of ten or powers alone, for NINES 0.5, 0.9, 0.99 ... */
size_t ct_ticks(const struct ct_scale *scale, size_t max, double ticks[CT_TICKS]);

/* Text of a value on an axis. */
typedef void ct_format(double value, char *text, size_t size);
void ct_format_number(double value, char *text, size_t size);  /* 0.05, 12, 3,400 */
void ct_format_percent(double value, char *text, size_t size); /* of 0 .. 1 */

struct ct_chart {
  FILE *to;
  double w, h, left, right, top, bottom; /* margins */
  struct ct_scale x, y;
};

/* Text with &, <, > and quotes made harmless. */
void ct_escape(FILE *to, const char *text);

void ct_chart_open(struct ct_chart *c, FILE *to, double w, double h, const char *title,
                   const char *text);
void ct_chart_close(struct ct_chart *c);

/* Set the scale and draw the axis with its grid. format NULL: ct_format_number. */
void ct_chart_x(struct ct_chart *c, double low, double high, enum ct_scale_kind kind,
                const char *label, ct_format *format);
void ct_chart_y(struct ct_chart *c, double low, double high, enum ct_scale_kind kind,
                const char *label, ct_format *format);

/* A polyline; NaNs interrupt it. stairs: a value holds until the next x. */
void ct_chart_line(struct ct_chart *c, const char *class, const double *x, const double *y,
                   size_t n);
void ct_chart_stairs(struct ct_chart *c, const char *class, const double *x, const double *y,
                     size_t n);

/* Straight lines between values, a circle at one. */
void ct_chart_segment(struct ct_chart *c, const char *class, double x1, double y1, double x2,
                      double y2);
void ct_chart_dot(struct ct_chart *c, const char *class, double x, double y, double radius);

/* A vertical line over the whole height with a label above it (may be NULL). */
void ct_chart_mark(struct ct_chart *c, const char *class, double x, const char *label);

/* In pixels: a rectangle with a tooltip (may be NULL), a text ("start", "middle", "end"). */
void ct_chart_rect(struct ct_chart *c, const char *class, double x, double y, double w, double h,
                   const char *tip);
void ct_chart_text(struct ct_chart *c, const char *class, double x, double y, const char *anchor,
                   const char *text);

#endif
