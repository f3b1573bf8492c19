/* SPDX-License-Identifier: Apache-2.0 */
#include "ct_chart.h"

#include <math.h>
#include <string.h>

/* Room around the plot. TICK_*: pixels that a tick of an axis needs. */
enum { LEFT = 56, RIGHT = 16, TOP = 38, BOTTOM = 44, TICK_WIDTH = 56, TICK_HEIGHT = 44 };

/* ---- Scales ---- */

static double nines(double p) {
  return -log10(1 - (p < 0.9999999 ? p : 0.9999999));
}

static double warp(const struct ct_scale *s, double v) {
  if (s->kind == CT_LOG) return log10(v > 0 ? v : 1e-300);
  return s->kind == CT_NINES ? nines(v) : v;
}

double ct_scale_at(const struct ct_scale *s, double value) {
  const double low = warp(s, s->low), high = warp(s, s->high);
  double part = high > low ? (warp(s, value) - low) / (high - low) : 0;
  part = part < 0 ? 0 : part > 1 ? 1 : part;
  return s->from + part * (s->to - s->from);
}

/* The smallest of 1, 2, 5 times a power of ten that is not below x. */
static double round_up(double x) {
  const double power = pow(10, floor(log10(x)));
  const double steps[] = {1, 2, 5, 10};
  for (size_t i = 0; i < 4; ++i)
    if (steps[i] * power >= x * (1 - 1e-9)) return steps[i] * power;
  return 10 * power;
}

static size_t linear_ticks(const struct ct_scale *s, size_t max, double *ticks) {
  size_t n = 0;
  const double step = round_up((s->high - s->low) / (double)(max > 1 ? max - 1 : 1));
  const long first = (long)ceil(s->low / step - 1e-9);
  for (long i = first; n < max && (double)i * step <= s->high + step * 1e-9; ++i)
    ticks[n++] = (double)i * step;
  return n;
}

static size_t log_ticks(const struct ct_scale *s, size_t max, double *ticks) {
  static const double sets[3][3] = {{1, 2, 5}, {1, 3, 0}, {1, 0, 0}};
  size_t n = 0;
  for (size_t set = 0; set < 3; ++set) {
    n = 0;
    const int first = (int)floor(log10(s->low)), last = (int)floor(log10(s->high));
    for (int power = first; power <= last; ++power)
      for (size_t i = 0; i < 3; ++i) {
        const double v = sets[set][i] * pow(10, power);
        if (v < s->low * (1 - 1e-9) || v > s->high * (1 + 1e-9) || v <= 0) continue;
        if (n < max) ticks[n] = v;
        ++n;
      }
    if (n <= max) break;
  }
  return n < max ? n : max;
}

static size_t nines_ticks(const struct ct_scale *s, size_t max, double *ticks) {
  static const double all[] = {0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999};
  size_t n = 0;
  for (size_t i = 0; i < sizeof all / sizeof *all && n < max; ++i)
    if (all[i] >= s->low && all[i] <= s->high) ticks[n++] = all[i];
  return n;
}

size_t ct_ticks(const struct ct_scale *s, size_t max, double ticks[CT_TICKS]) {
  if (max > CT_TICKS) max = CT_TICKS;
  if (max < 2) max = 2;
  if (!(s->high > s->low)) return 0;
  if (s->kind == CT_LOG) return s->low > 0 ? log_ticks(s, max, ticks) : 0;
  return s->kind == CT_NINES ? nines_ticks(s, max, ticks) : linear_ticks(s, max, ticks);
}

/* ---- Text ---- */

void ct_format_number(double value, char *text, size_t size) {
  const long v = fabs(value) < 1e9 ? lround(value) : 0;
  if (v >= 1000000)
    snprintf(text, size, "%ld,%03ld,%03ld", v / 1000000, v / 1000 % 1000, v % 1000);
  else if (v >= 1000)
    snprintf(text, size, "%ld,%03ld", v / 1000, v % 1000);
  else
    snprintf(text, size, "%.4g", value);
}

void ct_format_percent(double value, char *text, size_t size) {
  snprintf(text, size, "%.6g %%", 100 * value);
}

void ct_escape(FILE *to, const char *text) {
  for (; *text; ++text) {
    const char *const found = strchr("&<>\"'", *text);
    if (!found)
      fputc(*text, to);
    else
      fprintf(to, "&#%d;", *found);
  }
}

void ct_chart_text(struct ct_chart *c, const char *class, double x, double y, const char *anchor,
                   const char *text) {
  fprintf(c->to, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", class, x, y,
          anchor);
  ct_escape(c->to, text);
  fputs("</text>\n", c->to);
}

/* ---- Frame ---- */

void ct_chart_open(struct ct_chart *c, FILE *to, double w, double h, const char *title,
                   const char *text) {
  *c = (struct ct_chart){
      .to = to, .w = w, .h = h, .left = LEFT, .right = RIGHT, .top = TOP, .bottom = BOTTOM};
  fprintf(to, "<svg role=\"img\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" height=\"%.0f\"", w, h, w,
          h);
  fputs(" aria-label=\"", to);
  ct_escape(to, title);
  fputs(": ", to);
  ct_escape(to, text);
  fputs("\">\n", to);
}

void ct_chart_close(struct ct_chart *c) {
  fputs("</svg>\n", c->to);
}

static void line(struct ct_chart *c, const char *class, double x1, double y1, double x2,
                 double y2) {
  fprintf(c->to, "<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n", class,
          x1, y1, x2, y2);
}

void ct_chart_x(struct ct_chart *c, double low, double high, enum ct_scale_kind kind,
                const char *label, ct_format *format) {
  double ticks[CT_TICKS];
  char text[32];
  c->x = (struct ct_scale){kind, low, high, c->left, c->w - c->right};
  const double bottom = c->h - c->bottom, width = c->x.to - c->x.from;
  const size_t n = ct_ticks(&c->x, (size_t)(width / TICK_WIDTH) + 1, ticks);
  for (size_t i = 0; i < n; ++i) {
    const double x = ct_scale_at(&c->x, ticks[i]);
    (format ? format : ct_format_number)(ticks[i], text, sizeof text);
    line(c, "grid", x, c->top, x, bottom);
    ct_chart_text(c, "tick", x, bottom + 17, "middle", text);
  }
  line(c, "axis", c->x.from, bottom, c->x.to, bottom);
  ct_chart_text(c, "label", (c->x.from + c->x.to) / 2, c->h - 6, "middle", label);
}

void ct_chart_y(struct ct_chart *c, double low, double high, enum ct_scale_kind kind,
                const char *label, ct_format *format) {
  double ticks[CT_TICKS];
  char text[32];
  c->y = (struct ct_scale){kind, low, high, c->h - c->bottom, c->top};
  const size_t n = ct_ticks(&c->y, (size_t)((c->y.from - c->y.to) / TICK_HEIGHT) + 1, ticks);
  for (size_t i = 0; i < n; ++i) {
    const double y = ct_scale_at(&c->y, ticks[i]);
    (format ? format : ct_format_number)(ticks[i], text, sizeof text);
    line(c, "grid", c->left, y, c->w - c->right, y);
    ct_chart_text(c, "tick", c->left - 7, y + 4, "end", text);
  }
  line(c, "axis", c->left, c->y.from, c->left, c->y.to);
  /* Above the axis: turned text is hard to read. */
  ct_chart_text(c, "label", 2, 13, "start", label);
}

/* ---- Marks ---- */

static void path(struct ct_chart *c, const char *class, const double *x, const double *y, size_t n,
                 bool stairs) {
  bool pen = false;
  fprintf(c->to, "<path class=\"line %s\" d=\"", class);
  for (size_t i = 0; i < n; ++i) {
    if (isnan(x[i]) || isnan(y[i])) {
      pen = false;
      continue;
    }
    const double px = ct_scale_at(&c->x, x[i]), py = ct_scale_at(&c->y, y[i]);
    if (!pen)
      fprintf(c->to, "M%.1f %.1f", px, py);
    else if (stairs)
      fprintf(c->to, "H%.1fV%.1f", px, py);
    else
      fprintf(c->to, "L%.1f %.1f", px, py);
    pen = true;
  }
  fputs("\"/>\n", c->to);
}

void ct_chart_line(struct ct_chart *c, const char *class, const double *x, const double *y,
                   size_t n) {
  path(c, class, x, y, n, false);
}

void ct_chart_stairs(struct ct_chart *c, const char *class, const double *x, const double *y,
                     size_t n) {
  path(c, class, x, y, n, true);
}

void ct_chart_segment(struct ct_chart *c, const char *class, double x1, double y1, double x2,
                      double y2) {
  line(c, class, ct_scale_at(&c->x, x1), ct_scale_at(&c->y, y1), ct_scale_at(&c->x, x2),
       ct_scale_at(&c->y, y2));
}

void ct_chart_dot(struct ct_chart *c, const char *class, double x, double y, double radius) {
  fprintf(c->to, "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\"/>\n", class,
          ct_scale_at(&c->x, x), ct_scale_at(&c->y, y), radius);
}

void ct_chart_mark(struct ct_chart *c, const char *class, double x, const char *label) {
  const double px = ct_scale_at(&c->x, x);
  line(c, class, px, c->top, px, c->h - c->bottom);
  if (label) ct_chart_text(c, "note", px, c->top - 5, "middle", label);
}

void ct_chart_rect(struct ct_chart *c, const char *class, double x, double y, double w, double h,
                   const char *tip) {
  if (!(w > 0)) return;
  fprintf(c->to, "<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\">", class,
          x, y, w, h);
  if (tip) {
    fputs("<title>", c->to);
    ct_escape(c->to, tip);
    fputs("</title>", c->to);
  }
  fputs("</rect>\n", c->to);
}
