/* SPDX-License-Identifier: Apache-2.0 */
#include "top_view.h"

#include <math.h>
#include <stdint.h>

enum { TEXT = 32, BAR_MAX = 60, BAR_MIN = 10 };
#define END "\33[K\n"
/* The colours of reports, as near as 256 of them come. */
#define BLUE "\33[48;5;25m"
#define ORANGE "\33[48;5;166m"

/* ---- Members ---- */

/* NaN for what is missing or null. path: two names at most, "steps.loss". */
static double number(json_t *line, const char *object, const char *name) {
  json_t *node = object ? json_object_get(line, object) : line;
  node = json_object_get(node, name);
  return json_is_number(node) ? json_number_value(node) : (double)NAN;
}

static const char *string(json_t *line, const char *name) {
  const char *text = json_string_value(json_object_get(line, name));
  return text ? text : "";
}

/* ---- Figures as text, "-" for what is not known ---- */

struct text {
  char text[TEXT];
};

static struct text format(const char *pattern, double x) {
  struct text t = {"-"};
  if (!isnan(x)) snprintf(t.text, sizeof t.text, pattern, x);
  return t;
}

static struct text time_text(double us) {
  return us < 1000 ? format("%.1f us", us) : format("%.2f ms", us / 1000);
}

/* 12, 3.4 k, 5.6 M */
static struct text count_text(double x) {
  if (x >= 1e6) return format("%.2f M", x / 1e6);
  return x >= 1e4 ? format("%.1f k", x / 1e3) : format(x < 100 ? "%.1f" : "%.0f", x);
}

/* ---- Bars ---- */

struct bar {
  FILE *to;
  unsigned cells;
  bool color;
};

static void run_of(const struct bar *b, unsigned n, const char *paint, char letter) {
  if (!n) return;
  if (b->color) fputs(paint, b->to);
  while (n--)
    fputc(b->color ? ' ' : letter, b->to);
  if (b->color) fputs("\33[0m", b->to);
}

/* Shares of inference and training, then the rest. */
static void put_bar(const struct bar *b, double inference, double training) {
  const double shares[2] = {inference, inference + training};
  unsigned at[2];
  for (unsigned i = 0; i < 2; ++i) {
    const double x = isnan(shares[i]) ? 0 : fmin(fmax(shares[i], 0), 1);
    at[i] = (unsigned)lround(x * (double)b->cells);
  }
  fputc('[', b->to);
  run_of(b, at[0], BLUE, 'i');
  run_of(b, at[1] - at[0], ORANGE, 't');
  run_of(b, b->cells - at[1], "", '.');
  fputc(']', b->to);
}

/* ---- The screen ---- */

static void put_head(FILE *to, json_t *line) {
  const double fraction = number(line, NULL, "fraction"), cycle = number(line, NULL, "cycle"),
               hz = number(line, NULL, "clock_hz");
  fprintf(to, "coltrain %s, process %.0f, device %s" END, string(line, "verb"),
          number(line, NULL, "pid"), string(line, "device"));
  fprintf(to, "%s", string(line, "run"));
  if (!isnan(fraction)) fprintf(to, "  %.0f %% of the whole job", floor(100 * fraction));
  if (!isnan(cycle)) fprintf(to, "  cycle %.0f, %.2f ms", cycle, 1e3 * cycle / hz);
  fputs(END END, to);
}

static void put_queue(FILE *to, const struct bar *bar, const char *name, double jobs, bool first) {
  const double share = jobs / 32;
  fprintf(to, "  %-10s %5s jobs  ", name, format("%.0f", jobs).text);
  put_bar(bar, first ? share : 0, first ? 0 : share);
  fputs(END, to);
}

static void put_figures(FILE *to, json_t *line) {
  if (json_object_get(line, "requests")) {
    fprintf(to, "requests     %.0f of %.0f   p50 %s   p99 %s   right %s" END,
            number(line, "requests", "done"), number(line, "requests", "count"),
            time_text(number(line, "requests", "p50_us")).text,
            time_text(number(line, "requests", "p99_us")).text,
            format("%.1f %%", 100 * number(line, "requests", "accuracy")).text);
  }
  if (json_object_get(line, "steps")) {
    fprintf(to, "training     %.0f of %.0f steps   loss %s" END, number(line, "steps", "done"),
            number(line, "steps", "count"), format("%.4f", number(line, "steps", "loss")).text);
    fprintf(to, "             %s steps a second of device time, %s of wall clock" END,
            count_text(number(line, "steps", "per_second")).text,
            count_text(number(line, "steps", "per_wall_second")).text);
  }
}

static void put_units(FILE *to, json_t *line, const struct bar *bar) {
  const json_t *units = json_object_get(line, "units");
  if (!json_array_size(units)) {
    fputs("units        not known yet, or without time, as on emu:" END, to);
    return;
  }
  fputs("units        busy for inference (i, blue) and training (t, orange)" END, to);
  for (size_t i = 0; i < json_array_size(units); ++i) {
    json_t *unit = json_array_get(units, i);
    const double inference = number(unit, NULL, "inference"),
                 training = number(unit, NULL, "training");
    fprintf(to, "  %-10s %3.0f %% %3.0f %%  ", string(unit, "name"), 100 * inference,
            100 * training);
    put_bar(bar, inference, training);
    fputs(END, to);
  }
}

void top_screen(FILE *to, json_t *line, unsigned width, bool color) {
  unsigned cells = width > 28 + BAR_MIN ? width - 28 : BAR_MIN;
  if (cells > BAR_MAX) cells = BAR_MAX;
  const struct bar bar = {to, cells, color};
  put_head(to, line);
  fputs("queues       waiting or in service" END, to);
  put_queue(to, &bar, "inference", number(line, "queues", "inference"), true);
  put_queue(to, &bar, "training", number(line, "queues", "training"), false);
  fputs(END, to);
  put_figures(to, line);
  fputs(END, to);
  put_units(to, line, &bar);
}

void top_line(FILE *to, json_t *line) {
  const json_t *units = json_object_get(line, "units");
  const double fraction = number(line, NULL, "fraction");
  fprintf(to, "%s", string(line, "run"));
  if (!isnan(fraction)) fprintf(to, " (%.0f %% of the whole job)", floor(100 * fraction));
  fprintf(to, "  queues %.0f/%.0f", number(line, "queues", "inference"),
          number(line, "queues", "training"));
  if (json_object_get(line, "requests"))
    fprintf(to, "  requests %.0f  p50 %s  p99 %s", number(line, "requests", "done"),
            time_text(number(line, "requests", "p50_us")).text,
            time_text(number(line, "requests", "p99_us")).text);
  fprintf(
      to, "  steps %.0f  loss %s  %s steps/s", number(line, "steps", "done"),
      format("%.4f", number(line, "steps", "loss")).text,
      count_text(isnan(number(line, NULL, "clock_hz")) ? number(line, "steps", "per_wall_second")
                                                       : number(line, "steps", "per_second"))
          .text);
  for (size_t i = 0; i < json_array_size(units); ++i) {
    json_t *unit = json_array_get(units, i);
    fprintf(to, "  %s %.0f+%.0f%%", string(unit, "name"), 100 * number(unit, NULL, "inference"),
            100 * number(unit, NULL, "training"));
  }
  fputc('\n', to);
}
