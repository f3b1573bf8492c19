/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page of `experiment batching` for people. What is not there is said to be missing.
 */
#include <inttypes.h>
#include <string.h>

#include "batching_page.h"

enum { TEXT = 128, ROWS_OF_NETWORK = BATCHING_BOUNDS * BATCHING_SIZES };

static void put_number(FILE *to, double value) {
  char text[TEXT];
  ct_format_number(value, text, sizeof text);
  fprintf(to, "<td>%s", text);
}

static const char *bound_text(const struct batching_row *row) {
  if (!strcmp(row->bound_name, "50us")) return "50 µs";
  if (!strcmp(row->bound_name, "500us")) return "500 µs";
  return "10 × a request alone";
}

/* The row of a network in batches at the bound of the targets. */
static const struct batching_row *main_row(const struct batching_row *rows, size_t network) {
  return &rows[network * ROWS_OF_NETWORK + 1];
}

/* ---- Head ---- */

static void put_cards(const struct batching_row *rows, FILE *to) {
  char big[TEXT], title[TEXT], text[3 * TEXT], single[TEXT], batches[TEXT];
  ct_page_cards_open(to);
  for (size_t i = 0; i < BATCHING_SERVERS; ++i) {
    const struct batching_row *row = main_row(rows, i), *one = batching_single(rows, row);
    const double gain = batching_gain(rows, row);
    snprintf(title, sizeof title, "Batches for %s", row->server->name);
    snprintf(big, sizeof big, "missing");
    snprintf(text, sizeof text, "times the rate of single requests within the same bound");
    if (gain > 0) {
      snprintf(big, sizeof big, "× %.2f", gain);
      ct_format_number(batching_per_second(one, one->good->rate), single, sizeof single);
      ct_format_number(batching_per_second(row, row->good->rate), batches, sizeof batches);
      snprintf(text, sizeof text,
               "%s instead of %s requests a second, with a p99 of at most ten times what a "
               "request alone takes",
               batches, single);
    }
    ct_page_card(to, title, big, text);
  }
  ct_page_cards_close(to);
}

static size_t rows_missing(const struct batching_row *rows) {
  size_t n = 0;
  for (size_t i = 0; i < BATCHING_ROWS; ++i)
    n += !rows[i].known || (rows[i].feasible && !batching_is_over(&rows[i]));
  return n;
}

static void put_head(const struct batching_row *rows, const struct exp_settings *settings,
                     FILE *to) {
  const size_t missing = rows_missing(rows);
  fprintf(
      to,
      "<h1>What batches add</h1>\n<p class=\"lead\">How many requests a second one accelerator "
      "answers so that 99 of 100 are answered within a bound: one by one, and in batches of up to "
      "16.</p>\n"
      "<p class=\"soft\">The weights of a layer are loaded once for a batch, so 16 requests cost "
      "hardly more than one. But a batch has to be waited for. The device decides by itself when "
      "one goes: when 16 requests wait, or as late as the deadline of one of them allows "
      "(ADAPTIVE).</p>\n");
  if (missing)
    fprintf(to, "<p class=\"note\">%zu of %d searches are not over.</p>\n", missing, BATCHING_ROWS);
  if (settings->part < 100)
    fprintf(
        to,
        "<p class=\"note\">A trial: with %" PRIu32
        " %% of the requests that the definition asks for. So short a run may be over before its "
        "p99 shows that a rate cannot last.</p>\n",
        settings->part);
  put_cards(rows, to);
}

static void put_targets(const struct batching_row *rows, const struct exp_settings *settings,
                        FILE *to) {
  struct exp_target target[EXP_TARGETS];
  const size_t count = batching_targets(rows, settings, target);
  fprintf(to, "<h2>Are the targets met?</h2>\n");
  ct_page_targets_open(to);
  for (size_t i = 0; i < count; ++i)
    ct_page_target(to, target[i].held, target[i].text, target[i].figure);
  ct_page_targets_close(to);
}

/* ---- Charts ---- */

static void put_costs(const struct batching_row *rows, FILE *to) {
  fprintf(
      to,
      "<h2>What does a batch cost?</h2>\n<p>Cycles from start to end of a batch on a device that "
      "does nothing else, divided by its requests.</p>\n");
  for (size_t i = 0; i < BATCHING_SERVERS; ++i) {
    const struct batching_row *row = main_row(rows, i);
    if (!row->known) continue;
    fprintf(to, "<figure><figcaption><b>%s</b></figcaption>\n", row->server->name);
    ct_page_figure(to, batching_chart_cost, (void *)row);
    fprintf(to, "</figure>\n");
  }
  fprintf(
      to,
      "<p class=\"good\">Good: the line falls like 1&#160;/&#160;n. Then 16 requests together cost "
      "as much as one.</p>\n");
}

static void put_searches(const struct batching_row *rows, FILE *to) {
  fprintf(
      to,
      "<h2>Which rates are sustained?</h2>\n<p>Every mark is a run of the simulated hardware. The "
      "search ends with two rates, one percent apart, of which one stays within the bound (the "
      "dotted line) and the other does not. A mark at the top edge is a run that was ended, "
      "because its p99 was above the bound already, or far above.</p>\n");
  for (size_t i = 0; i < BATCHING_ROWS; i += BATCHING_SIZES) {
    struct batching_pair pair = {{&rows[i], &rows[i + 1]}};
    if (!rows[i].tries && !rows[i + 1].tries) continue;
    fprintf(to, "<figure><figcaption><b>%s</b>, bound %s</figcaption>\n", rows[i].server->name,
            bound_text(&rows[i]));
    ct_page_keys_open(to);
    ct_page_key(to, "fcfs", "single requests");
    ct_page_key(to, "priority", "batches of up to 16");
    ct_page_keys_close(to);
    ct_page_figure(to, batching_chart_search, &pair);
    fprintf(to, "</figure>\n");
  }
}

/* ---- Tables ---- */

static void put_next(const struct batching_row *row, FILE *to) {
  if (!row->bad) {
    fprintf(to, "<td>%s", batching_is_over(row) ? "the capacity" : "-");
    return;
  }
  put_number(to, batching_per_second(row, row->bad->rate));
}

/* Seeds at which the rate was tried, and at how many of them the bound held. */
static void put_seeds(const struct batching_row *row, FILE *to) {
  size_t held = 0;
  for (size_t i = 0; i < row->seeds; ++i)
    held += batching_held(row, &row->seed[i].result);
  fprintf(to, "<td>%zu of %zu", held, row->seeds);
}

static void put_outcome(const struct batching_row *rows, const struct batching_row *row, FILE *to) {
  const double gain = batching_gain(rows, row);
  if (!row->feasible) {
    fprintf(to, "<td colspan=\"7\">infeasible: a request alone takes longer");
    return;
  }
  if (!row->good) {
    if (batching_is_over(row))
      fprintf(to, "<td colspan=\"7\">less than %.0f, %s", batching_floor(row),
              batching_floor_by(row));
    else
      fprintf(to, "<td colspan=\"7\">not measured");
    return;
  }
  put_number(to, batching_per_second(row, row->good->rate));
  put_next(row, to);
  fprintf(to, "<td>%.3f", batching_load(row, row->good->rate));
  put_number(to, (double)row->good->result.p99);
  fprintf(to, "<td>%.2f", row->good->result.mean_batch);
  put_seeds(row, to);
  if (gain > 0 && row->batching.max_batch > 1)
    fprintf(to, "<td>%.2f", gain);
  else
    fprintf(to, "<td>");
}

static void put_rows(const struct batching_row *rows, FILE *to) {
  fprintf(
      to,
      "<h2>All figures</h2>\n<div class=\"scroll\"><table><tr><th>network, bound<th>bound, "
      "cycles<th>a request alone, cycles<th>most in a batch<th>requests a second<th>not "
      "sustained<th>load<th>p99, cycles<th>mean batch<th>seeds within the bound<th>times single "
      "requests</tr>\n");
  for (size_t i = 0; i < BATCHING_ROWS; ++i) {
    const struct batching_row *row = &rows[i];
    if (!row->known) continue;
    fprintf(to, "<tr><td>%s, %s", row->server->name, bound_text(row));
    put_number(to, (double)row->batching.bound);
    put_number(to, (double)row->service);
    fprintf(to, "<td>%" PRIu32, row->batching.max_batch);
    put_outcome(rows, row, to);
    fprintf(to, "</tr>\n");
  }
  fprintf(to, "</table></div>\n<div class=\"scroll\"><table><tr><th>cycles of a batch of");
  for (int n = 1; n <= EXP_BATCH; ++n)
    fprintf(to, "<th>%d", n);
  fprintf(to, "<th>16 c(1) / c(16)</tr>\n");
  for (size_t i = 0; i < BATCHING_SERVERS; ++i) {
    const struct batching_row *row = main_row(rows, i);
    if (!row->known) continue;
    fprintf(to, "<tr><td>%s", row->server->name);
    for (size_t n = 1; n <= EXP_BATCH; ++n)
      put_number(to, (double)row->cost[n]);
    fprintf(to, "<td>%.2f</tr>\n", batching_promise(row));
  }
  fprintf(
      to,
      "</table></div>\n<p class=\"soft\">Beside ours: Equinox (MICRO 2021) reports %.2f times the "
      "rate of single requests at 500 µs, on another machine with other networks.</p>\n",
      batching_equinox);
}

static void put_end(const struct exp_settings *settings, FILE *to) {
  fprintf(
      to,
      "<h2>Words used here</h2>\n<dl>\n"
      "<dt>p99</dt><dd>the latency that 99 of 100 measured requests do not exceed, from the moment "
      "a request is due until its answer can be read.</dd>\n"
      "<dt>load</dt><dd>the rate as a part of the capacity, which is that of full batches that "
      "follow each other without a gap.</dd>\n"
      "<dt>cycle</dt><dd>a tick of the device's clock. At 100 MHz, which the simulator states, 100 "
      "cycles are a microsecond.</dd>\n</dl>\n"
      "<p class=\"soft\">The exact definitions are in docs/experiments.md.</p>\n"
      "<h2>Making it again</h2>\n<pre><code>coltrain experiment batching --out DIR</code></pre>\n"
      "<p>makes every run anew; they come out the same to the byte. For each there is a file of "
      "figures in <code>DIR/points</code> and one with a row for each request.</p>\n");
  ct_page_run_open(to);
  ct_page_run(to, "folder", settings->out);
  ct_page_run(to, "made by", "coltrain " CT_VERSION_STRING);
  ct_page_run_close(to);
}

/* ---- The page ---- */

int batching_page(const struct batching_row *rows, const struct exp_settings *settings,
                  const char *path) {
  FILE *const to = ct_page_open(path, "Coltrain: what batches add");
  if (!to) return 1;
  put_head(rows, settings, to);
  put_targets(rows, settings, to);
  put_costs(rows, to);
  put_searches(rows, to);
  put_rows(rows, to);
  put_end(settings, to);
  return ct_page_close(to, path);
}
