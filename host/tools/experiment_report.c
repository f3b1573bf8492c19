/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page of co-location for people. What is not there is not shown, and said to be missing.
 */
#include <inttypes.h>
#include <math.h>

#include "experiment_page.h"

enum { TEXT = 128, HIGH = 800, LOW = 200 };

/* ---- Figures in words ---- */

static void times_text(double ratio, char text[TEXT]) {
  if (isinf(ratio))
    snprintf(text, TEXT, "never");
  else if (isnan(ratio)) /* infinite alone, too */
    snprintf(text, TEXT, "none");
  else
    snprintf(text, TEXT, "× %.3f", ratio);
}

/* ", 95 % interval 1.011 to 1.019", nothing where there is none. */
static void interval_text(const struct exp_ratio *r, double scale, int digits, const char *unit,
                          char text[TEXT]) {
  *text = 0;
  if (isfinite(r->low) && isfinite(r->high))
    snprintf(text, TEXT, " (95&#160;%% interval: %.*f to %.*f%s)", digits, scale * r->low, digits,
             scale * r->high, unit);
}

static const char *server_text(const struct exp_server *server) {
  return server->models > 1 ? "both networks" : server->name;
}

static const char *arrivals_text(enum serve_arrivals arrivals) {
  return arrivals == SERVE_TRACE ? "recorded" : serve_arrivals_name(arrivals);
}

/* ---- The cells of the headline ---- */

static const struct exp_server *large(void) {
  return &exp_servers[1];
}

/* The worst p99 beside training under PRIORITY; NULL: not measured. */
static const struct exp_cell *worst_stretch(const struct exp_summary *s) {
  const struct exp_drawing d = {s, large()};
  const struct exp_cell *worst = NULL;
  uint32_t load[EXP_PAGE_LOADS];
  const size_t loads = exp_page_loads(&d, load);
  for (size_t i = 0; i < loads && load[i] <= HIGH; ++i) {
    const struct exp_cell *c = exp_page_cell(&d, CT_PRIORITY, load[i]);
    if (c && (!worst || isnan(c->stretch.mean) || c->stretch.mean > worst->stretch.mean)) worst = c;
    if (worst && isnan(worst->stretch.mean)) break;
  }
  return worst;
}

static void put_stretch_card(const struct exp_summary *s, FILE *to) {
  const struct exp_cell *c = worst_stretch(s);
  char big[TEXT] = "missing", interval[TEXT] = "", text[3 * TEXT];
  if (c) {
    times_text(c->stretch.mean, big);
    interval_text(&c->stretch, 1, 3, "", interval);
  }
  snprintf(text, sizeof text,
           "p99 beside training against p99 alone, %s under PRIORITY: the worst load up to 0.8%s",
           large()->name, interval);
  ct_page_card(to, "Price for requests", big, text);
}

static void put_share_card(const struct exp_summary *s, FILE *to, uint32_t permille) {
  const struct exp_drawing d = {s, large()};
  const struct exp_cell *c = exp_page_cell(&d, CT_PRIORITY, permille);
  char big[TEXT] = "missing", interval[TEXT] = "", title[TEXT], text[3 * TEXT];
  snprintf(title, sizeof title, "Training at load %g", permille / 1000.0);
  if (c && !isnan(c->share.mean)) {
    snprintf(big, sizeof big, "%.1f %%", 100 * c->share.mean);
    interval_text(&c->share, 100, 1, " %", interval);
    snprintf(text, sizeof text, "of its speed alone%s; serving leaves %.1f %% of the time free",
             interval, 100 * (1 - c->u));
  } else {
    snprintf(text, sizeof text, "of its speed alone, beside %s under PRIORITY", large()->name);
  }
  ct_page_card(to, title, big, text);
}

static void put_wrong_card(const struct exp_summary *s, FILE *to) {
  uint64_t wrong = 0, answered = 0;
  char big[TEXT], all[TEXT], text[3 * TEXT];
  for (size_t i = 0; i < s->cells; ++i) {
    wrong += s->cell[i].wrong;
    answered += s->cell[i].answered;
  }
  snprintf(big, sizeof big, "%" PRIu64, wrong);
  ct_format_number((double)answered, all, sizeof all);
  snprintf(text, sizeof text,
           "of %s beside training. Each was compared, in every bit, with what the exact model in C "
           "answers",
           all);
  ct_page_card(to, "Wrong answers", answered ? big : "missing", text);
}

/* ---- Head ---- */

/* Seeds of the cell that has most. */
static size_t seeds_of(const struct exp_summary *s) {
  size_t seeds = 0;
  for (size_t i = 0; i < s->cells; ++i)
    if (s->cell[i].seeds > seeds) seeds = s->cell[i].seeds;
  return seeds;
}

static void put_lead(const struct exp_summary *s, FILE *to) {
  const struct exp_cell *c = worst_stretch(s);
  fprintf(to, "<p class=\"lead\">");
  if (c && isfinite(c->stretch.mean))
    fprintf(
        to,
        "While the hardware went on training, the time within which 99 of 100 requests to %s were "
        "answered was at most %.3f times what it is without training, at every measured load up to "
        "%g of what the hardware can serve.</p>\n",
        large()->name, c->stretch.mean, HIGH / 1000.0);
  else
    fprintf(
        to,
        "How long requests wait, and how fast training goes on, when one accelerator does both at "
        "once: at several loads, and under every policy.</p>\n");
  fprintf(
      to,
      "<p class=\"soft\">Requests arrive by themselves, whether the hardware is ready or not, and "
      "wait for one another; the device answers them in batches. Beside them it trains. Each "
      "figure compares with the same requests, at the same moments, without training, or with the "
      "same training without requests.</p>\n");
}

static void put_notes(const struct exp_summary *s, FILE *to) {
  if (s->there < s->points)
    fprintf(
        to,
        "<p class=\"note\">This page is of a part of the experiment: %zu of %zu measurements are "
        "there. It shows those; what it says about targets may change with the others.</p>\n",
        s->there, s->points);
  if (s->settings->part < 100)
    fprintf(to,
            "<p class=\"note\">A trial: with %" PRIu32
            " %% of the requests that the definition asks for. Its p99 moves much from seed to "
            "seed.</p>\n",
            s->settings->part);
  if (seeds_of(s) == 1)
    fprintf(
        to,
        "<p class=\"note\">There is one seed of everything, so there are no intervals, and nothing "
        "here says by how much another seed would differ.</p>\n");
}

static void put_head(const struct exp_summary *s, FILE *to) {
  fprintf(to, "<h1>Serving beside training, load by load</h1>\n");
  put_lead(s, to);
  put_notes(s, to);
  ct_page_cards_open(to);
  put_stretch_card(s, to);
  put_share_card(s, to, LOW);
  put_share_card(s, to, HIGH);
  put_wrong_card(s, to);
  ct_page_cards_close(to);
}

static void put_targets(const struct exp_summary *s, FILE *to) {
  struct exp_target target[EXP_TARGETS];
  const size_t count = exp_summary_targets(s, target);
  fprintf(to,
          "<h2>Are the targets met?</h2>\n<p>What was aimed for, under PRIORITY. The worst load "
          "decides, with the unfavourable end of its 95&#160;%% interval%s.</p>\n",
          s->there < s->points ? "; so far, by the measurements that are there" : "");
  ct_page_targets_open(to);
  for (size_t i = 0; i < count; ++i)
    ct_page_target(to, target[i].held, target[i].text, target[i].figure);
  ct_page_targets_close(to);
}

/* ---- Charts ---- */

static bool has_core(const struct exp_drawing *d, enum ct_policy policy) {
  for (size_t i = 0; i < d->summary->cells; ++i) {
    const struct exp_point *p = &d->summary->cell[i].point;
    if (p->core && p->server == d->server && p->policy == policy) return true;
  }
  return false;
}

static bool has_any(const struct exp_drawing *d) {
  uint32_t load[EXP_PAGE_LOADS];
  return exp_page_loads(d, load) > 0;
}

static void put_keys(const struct exp_drawing *d, FILE *to, const char *alone) {
  static const char *const meanings[EXP_PAGE_POLICIES] = {
      "PRIORITY: requests first", "FCFS: first come, first served",
      "ROUND_ROBIN: queues take turns", "JOB: one whole job at a time"};
  ct_page_keys_open(to);
  ct_page_key(to, "alone", alone);
  for (unsigned p = 0; p < EXP_PAGE_POLICIES; ++p)
    if (has_core(d, (enum ct_policy)p))
      ct_page_key(to, exp_page_class((enum ct_policy)p), meanings[p]);
  ct_page_keys_close(to);
}

/* A chart for every server that has one. */
static void put_charts(const struct exp_summary *s, FILE *to, ct_page_draw *chart,
                       const char *alone) {
  for (size_t i = 0; i < EXP_PAGE_SERVERS; ++i) {
    struct exp_drawing d = {s, &exp_servers[i]};
    if (!has_any(&d)) continue;
    fprintf(to, "<figure><figcaption><b>%s</b></figcaption>\n", d.server->name);
    if (alone) put_keys(&d, to, alone);
    ct_page_figure(to, chart, &d);
    fprintf(to, "</figure>\n");
  }
}

static void put_latency(const struct exp_summary *s, FILE *to) {
  fprintf(
      to,
      "<h2>Do requests feel the training?</h2>\n<p>p99 is the time within which 99 of 100 requests "
      "were answered, from the moment they arrived. Even without training "
      "most of it is waiting: at low loads for a batch to fill, as long as the deadline allows; at "
      "high ones for the batches before. Whiskers: the 95&#160;%% interval of what training makes "
      "of it. Marks of one load stand side by side so that none hides another.</p>\n");
  put_charts(s, to, exp_chart_p99, "serving alone");
  fprintf(
      to,
      "<p class=\"good\">Good: the line of a policy lies on that of serving alone. A mark at the "
      "top edge means that more than one request in a hundred was never answered: the requests "
      "came faster than the policy let them be served.</p>\n"
      "<h3>Under PRIORITY, closer</h3>\n<p>How many times as long p99 is beside training.</p>\n");
  put_charts(s, to, exp_chart_stretch, NULL);
  fprintf(
      to,
      "<p class=\"good\">Good: near 1, the dotted line, also at high loads, where waiting for one "
      "another makes several percent out of each percent that a request's own service takes "
      "longer.</p>\n");
}

static void put_training(const struct exp_summary *s, FILE *to) {
  fprintf(
      to,
      "<h2>What is left for training?</h2>\n<p>Training's speed beside the requests, in parts of "
      "its speed alone. The dashed grey line is 1&#160;-&#160;u: the part of the time in which no "
      "batch is "
      "in service.</p>\n");
  put_charts(s, to, exp_chart_share, "1&#160;-&#160;u, time without a request");
  fprintf(
      to,
      "<p class=\"good\">Good: on the grey line or above it. Above it, training also uses slots "
      "in the midst of a batch, which serving leaves empty while it waits for weights. A policy "
      "that trains more by letting requests wait shows that in the charts before.</p>\n");
}

static void put_batches(const struct exp_summary *s, FILE *to) {
  fprintf(
      to,
      "<h2>How large are the batches?</h2>\n<p>A batch goes when 16 requests wait, or as late as "
      "the deadline of one of them allows. The bars are percent of the batches under "
      "PRIORITY.</p>\n");
  put_charts(s, to, exp_chart_batches, NULL);
  fprintf(
      to,
      "<p class=\"good\">Good: full ones. A batch reads the weights once, for one request or for "
      "sixteen, so full ones take the least of the time.</p>\n");
}

/* ---- Tables ---- */

static void put_interval(FILE *to, const struct exp_ratio *r, int digits) {
  if (isinf(r->mean)) {
    fprintf(to, "<td>never");
    return;
  }
  if (isnan(r->mean)) {
    fprintf(to, "<td>-");
    return;
  }
  fprintf(to, "<td>%.*f", digits, r->mean);
  if (isfinite(r->low) && isfinite(r->high))
    fprintf(to, "<span class=\"between\">%.*f – %.*f</span>", digits, r->low, digits, r->high);
}

static void put_cycles(FILE *to, double cycles) {
  char text[TEXT];
  if (isinf(cycles))
    snprintf(text, sizeof text, "never");
  else if (isnan(cycles))
    snprintf(text, sizeof text, "-");
  else
    ct_format_number(round(cycles), text, sizeof text);
  fprintf(to, "<td>%s", text);
}

static void put_count(FILE *to, uint64_t count) {
  put_cycles(to, (double)count);
}

/* The policy of a cell of the core grid, which stands below its network; in what others differ. */
static void put_setting(FILE *to, const struct exp_point *p) {
  if (p->core) {
    fprintf(to, "<td>%s", exp_policy_text(p->policy).text);
    return;
  }
  fprintf(to, "<td>%s", server_text(p->server));
  if (p->policy != CT_PRIORITY) fprintf(to, ", %s", exp_policy_text(p->policy).text);
  if (p->arrivals != SERVE_POISSON) fprintf(to, ", %s arrivals", arrivals_text(p->arrivals));
  if (*p->memory) {
    fprintf(to, ", ");
    ct_escape(to, p->memory);
  }
}

static void put_cell(FILE *to, const struct exp_cell *c) {
  fprintf(to, "<tr>");
  put_setting(to, &c->point);
  fprintf(to, "<td>%g", c->point.permille / 1000.0);
  put_cycles(to, c->p99_alone);
  put_cycles(to, c->p99);
  put_interval(to, &c->stretch, 3);
  put_interval(to, &c->share, 3);
  fprintf(to, "<td>%.3f<td>%.3f", c->u, c->u_over_load);
  put_interval(to, &c->share_of_idle, 3);
  fprintf(to, "<td>%.2f", c->mean_batch);
  put_count(to, c->asked);
  put_count(to, c->answered);
  put_count(to, c->wrong);
  put_count(to, c->requests);
  put_count(to, c->deadline);
  put_count(to, c->missed_alone);
  put_count(to, c->missed);
  put_count(to, c->missed_only_together);
  fprintf(to, "<td>%zu</tr>\n", c->seeds);
}

static void put_table(const struct exp_summary *s, FILE *to, const struct exp_server *server,
                      bool core) {
  fprintf(
      to,
      "<div class=\"scroll\"><table><tr><th>%s<th>load<th>p99 alone, cycles<th>p99, cycles<th>p99 "
      "/ "
      "alone<th>training / alone<th>u<th>u / load, most<th>training / (1&#160;-&#160;u)<th>mean "
      "batch<th>requests<th>answered<th>wrong<th>measured<th>deadline, cycles<th>late "
      "alone<th>late<th>late only beside training<th>seeds</tr>\n",
      core ? "policy" : "network, setting");
  for (size_t i = 0; i < s->cells; ++i) {
    const struct exp_cell *c = &s->cell[i];
    if (c->point.core == core && (!server || c->point.server == server)) put_cell(to, c);
  }
  fprintf(to, "</table></div>\n");
}

static bool has_axes(const struct exp_summary *s) {
  for (size_t i = 0; i < s->cells; ++i)
    if (!s->cell[i].point.core) return true;
  return false;
}

static void put_tables(const struct exp_summary *s, FILE *to) {
  fprintf(
      to,
      "<h2>All figures</h2>\n<p>Means over the seeds; below them, where there are several seeds, "
      "the 95&#160;%% interval. The table is wide: it scrolls sideways.</p>\n");
  for (size_t i = 0; i < EXP_PAGE_SERVERS; ++i) {
    const struct exp_drawing d = {s, &exp_servers[i]};
    if (!has_any(&d)) continue;
    fprintf(to, "<h3>%s</h3>\n", d.server->name);
    put_table(s, to, d.server, true);
  }
  if (!has_axes(s)) return;
  fprintf(
      to,
      "<h2>Other memory, arrivals, networks</h2>\n<p>One thing at a time is different, under "
      "PRIORITY if no policy stands there: a memory of fewer bytes a cycle "
      "(<code>bandwidth=8</code> "
      "is half of the default); arrivals in bursts, or at the times of a recorded service; another "
      "load; the policy SLACK, which gives training its turn while every deadline is far; two "
      "networks served at once.</p>\n");
  put_table(s, to, NULL, false);
}

/* ---- Words, and how to do it again ---- */

static void put_words(FILE *to) {
  fprintf(
      to,
      "<h2>Words used here</h2>\n<dl>\n"
      "<dt>capacity</dt><dd>requests a cycle that the device answers when the queue is never empty "
      "and nothing is trained.</dd>\n"
      "<dt>load</dt><dd>requests a cycle that arrive, as a part of the capacity. At 1 the queue "
      "would grow without end.</dd>\n"
      "<dt>latency</dt><dd>cycles from the moment a request is due until its answer can be read, "
      "all waiting included.</dd>\n"
      "<dt>p99</dt><dd>the latency that 99 of 100 measured requests do not exceed. A request that "
      "is never answered counts as infinitely long.</dd>\n"
      "<dt>u</dt><dd>the part of the time in which a batch is in service, without training.</dd>\n"
      "<dt>training / alone</dt><dd>multiplications done for training while requests arrive, "
      "divided by those in as many cycles without requests.</dd>\n"
      "<dt>late</dt><dd>answered after its deadline, ten times what a request alone takes, or "
      "never.</dd>\n"
      "<dt>seed</dt><dd>decides when requests arrive, which samples they ask for, and the weights. "
      "Ratios compare runs of one seed; their mean over seeds is the geometric one, with Student's "
      "t for the interval.</dd>\n"
      "<dt>cycle</dt><dd>a tick of the device's clock. At 100 MHz, which the simulator states, 100 "
      "cycles are a microsecond.</dd>\n</dl>\n"
      "<p class=\"soft\">The exact definitions are in docs/experiments.md.</p>\n");
}

static void put_servers(const struct exp_summary *s, FILE *to) {
  char text[3 * TEXT], service[TEXT], capacity[TEXT];
  for (size_t i = 0; i < EXP_SERVERS; ++i) {
    const struct exp_result *r = &s->capacity[i];
    if (!r->there || !r->done) continue;
    ct_format_number((double)r->service, service, sizeof service);
    ct_format_number((double)r->busy / (double)r->done, capacity, sizeof capacity);
    snprintf(text, sizeof text,
             "a request by itself takes %s cycles; at capacity one is answered every %s cycles",
             service, capacity);
    ct_page_run(to, server_text(&exp_servers[i]), text);
  }
}

static void put_run(const struct exp_summary *s, FILE *to) {
  const struct exp_settings *o = s->settings;
  char text[3 * TEXT];
  fprintf(
      to,
      "<h2>Making it again</h2>\n<pre><code>coltrain experiment colocation --out DIR</code></pre>"
      "\n<p>makes every measurement anew; on any machine, and in any order, they come out the "
      "same to the byte. For each there is a file of figures in <code>DIR/points</code> and one "
      "with a row for each request, from which everything here can be computed again.</p>\n");
  ct_page_run_open(to);
  ct_page_run(to, "folder", o->out);
  put_servers(s, to);
  snprintf(text, sizeof text, "%s, batches of 64, of %s", exp_trained, o->data);
  ct_page_run(to, "trained network", text);
  snprintf(text, sizeof text, "%zu", seeds_of(s));
  ct_page_run(to, "seeds", text);
  snprintf(text, sizeof text,
           "in the first %" PRIu64 " %% of every %" PRIu64 " services of a request alone",
           o->on_percent, o->period);
  ct_page_run(to, "bursts", text);
  if (o->trace) ct_page_run(to, "recorded arrivals", o->trace);
  snprintf(text, sizeof text, "%zu of %zu", s->there, s->points);
  ct_page_run(to, "measurements", text);
  ct_page_run(to, "made by", "coltrain " CT_VERSION_STRING);
  ct_page_run_close(to);
}

/* ---- The page ---- */

int exp_report(const struct exp_summary *summary, const char *path) {
  FILE *const to = ct_page_open(path, "Coltrain: serving beside training, load by load");
  if (!to) return 1;
  put_head(summary, to);
  put_targets(summary, to);
  if (summary->cells) {
    put_latency(summary, to);
    put_training(summary, to);
    put_batches(summary, to);
    put_tables(summary, to);
  }
  put_words(to);
  put_run(summary, to);
  return ct_page_close(to, path);
}
