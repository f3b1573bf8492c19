/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The report for people: one HTML page without scripts or anything from elsewhere. Every chart is
 * there twice, for a desktop and for a telephone; the style sheet shows one of them.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "colocate.h"
#include "colocate_page.h"

static void put(struct page *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(struct page *p, const char *format, ...) {
  va_list args;
  va_start(args, format);
  vfprintf(p->to, format, args);
  va_end(args);
}

/* ---- Figures in words ---- */

/* "83.2 µs" */
static const char *time_text(struct page *p, double us) {
  char *text = page_text(p);
  if (!isfinite(us))
    snprintf(text, PAGE_TEXT, "not known");
  else if (us < 1000)
    snprintf(text, PAGE_TEXT, "%.1f µs", us);
  else
    snprintf(text, PAGE_TEXT, "%.2f ms", us / 1000);
  return text;
}

static const char *percent_text(struct page *p, double share) {
  char *text = page_text(p);
  if (isfinite(share))
    snprintf(text, PAGE_TEXT, "%.1f %%", 100 * share);
  else
    snprintf(text, PAGE_TEXT, "not known");
  return text;
}

static const char *ratio_text(struct page *p, double ratio) {
  char *text = page_text(p);
  if (isfinite(ratio))
    snprintf(text, PAGE_TEXT, "× %.3f", ratio);
  else
    snprintf(text, PAGE_TEXT, "not known");
  return text;
}

char *page_text(struct page *p) {
  return p->text[p->next++ % PAGE_TEXTS];
}

/* ---- Parts ---- */

struct drawing {
  struct page *page;
  page_chart *chart;
};

static void draw(void *context, FILE *to, double w, double h) {
  const struct drawing *const d = context;
  (void)to; /* the page's */
  d->chart(d->page, w, h);
}

static void put_figure(struct page *p, page_chart *chart) {
  struct drawing drawing = {p, chart};
  ct_page_figure(p->to, draw, &drawing);
}

/* ---- Head ---- */

static void put_cards(struct page *p) {
  const struct colocate *c = p->c;
  char text[256];
  ct_page_cards_open(p->to);
  if (p->timed) {
    snprintf(text, sizeof text,
             "for 99 of 100 requests at most, while training. %s without training: × %.3f",
             time_text(p, p->alone.p99), p->together.p99 / p->alone.p99);
    ct_page_card(p->to, "Time to an answer", time_text(p, p->together.p99),
                 isfinite(p->alone.p99) ? text : "for 99 of 100 requests at most, while training");
    ct_page_card(p->to, "Training speed", percent_text(p, p->kept),
                 "of what the same hardware trains in the same time when it serves nobody");
  }
  const struct version *first = serving_version(c, false), *last = serving_version(c, true);
  const ptrdiff_t swaps = first ? last - first : 0;
  snprintf(text, sizeof text,
           "of the test images, by the version of the weights that served last; the first one had "
           "%s. New weights took over %td time%s while requests arrived",
           percent_text(p, accuracy_of(first)), swaps, swaps == 1 ? "" : "s");
  ct_page_card(p->to, "Right answers", percent_text(p, accuracy_of(last)), text);
  char big[64];
  snprintf(big, sizeof big, "%zu", lost(&c->serve) + c->wrong);
  snprintf(
      text, sizeof text,
      "of %zu answers. Each was computed again by the exact model in C and compared bit by bit",
      c->serve.done);
  ct_page_card(p->to, "Lost or wrong", big, text);
  ct_page_cards_close(p->to);
}

static void put_head(struct page *p) {
  const struct colocate *c = p->c;
  put(p,
      "<h1>Serving while training</h1>\n"
      "<p class=\"lead\">A small neural network answered %zu requests while the very same hardware "
      "went on training it. This page shows what the two cost each other.</p>\n"
      "<p class=\"soft\">Coltrain is an accelerator with two job queues. Requests go first, in "
      "every "
      "slot of every unit; training takes the cycles that are left over. The requests arrive by "
      "themselves, whether the hardware is ready or not, and whenever a round of training is over, "
      "the better weights take over between two requests.</p>\n",
      served(&c->serve));
  if (cli_stopped())
    put(p,
        "<p class=\"note\">This run was stopped early: %zu of %zu requests were answered. The page "
        "shows what was measured until then.</p>\n",
        served(&c->serve), c->serve.count);
  if (!p->timed)
    put(p,
        "<p class=\"note\">This device (<code>emu:</code>) computes the same bits as the hardware "
        "but has no clock, so there are no times on this page. <code>--device sim:</code> "
        "measures them.</p>\n");
  put_cards(p);
}

/* ---- Sections ---- */

static void put_latency_table(struct page *p) {
  put(p,
      "<details><summary>The figures</summary><div class=\"scroll\"><table><tr><th>time to an "
      "answer<th>serving alone<th>while training<th>ratio</tr>\n");
  const struct {
    const char *name;
    double alone, together;
  } rows[] = {{"median (50 of 100 are faster)", p->alone.p50, p->together.p50},
              {"p99 (99 of 100 are faster)", p->alone.p99, p->together.p99},
              {"longest", p->alone.max, p->together.max}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i)
    put(p, "<tr><td>%s<td>%s<td>%s<td>%s</tr>\n", rows[i].name, time_text(p, rows[i].alone),
        time_text(p, rows[i].together), ratio_text(p, rows[i].together / rows[i].alone));
  put(p, "</table></div></details>\n");
}

static void put_latency(struct page *p) {
  const struct colocate *c = p->c;
  const struct latency l = latency_of(&c->serve, true);
  if (!p->timed || !l.measured) return;
  put(p,
      "<h2>Do requests feel the training?</h2>\n<figure><figcaption>How long requests took, from "
      "the "
      "moment they arrived until their answer was there, sorted from the fastest to the slowest: "
      "at "
      "99 %% on the scale you read the time within which 99 of 100 were answered. The same "
      "requests "
      "arrived at the same moments twice, once while training and once without.</figcaption>\n");
  ct_page_keys_open(p->to);
  ct_page_key(p->to, "serve", "while training");
  if (c->alone.done) ct_page_key(p->to, "alone", "serving alone");
  ct_page_keys_close(p->to);
  put_figure(p, page_latency);
  put(p,
      "</figure>\n<p class=\"good\">Good: the two lines lie on each other, also at the right end, "
      "where the slowest requests are. Even alone some requests take longer than others, because "
      "they arrive at random and wait for each other.</p>\n");
  if (c->alone.done) put_latency_table(p);
  if (!meets_definition(c, &l))
    put(p,
        "<p class=\"soft\">%zu requests were measured, after the first %zu. This is a short run: "
        "the "
        "slowest 1 %% are only %zu requests, so p99 moves by some percent from seed to seed, "
        "though "
        "the ratio moves less.</p>\n",
        l.measured, l.dropped, l.measured / 100);
}

static void put_others(struct page *p) {
  if (p->rows < 3) return;
  put(p,
      "<h2>What would it have been under other policies?</h2>\n<p>The policy decides who gets the "
      "next slot of a unit. The first requests arrived again, at the same moments, under each of "
      "the "
      "other policies, beside training.</p>\n<figure><figcaption>Time to an answer, from the "
      "median "
      "(hollow) to the slowest 1 %% (filled, p99). Equal distances on the scale are equal "
      "factors.</figcaption>\n");
  put_figure(p, page_policies);
  put(p,
      "</figure>\n<figure><figcaption>Training speed kept, against training alone.</figcaption>\n");
  put_figure(p, page_kept);
  put(p,
      "</figure>\n<p class=\"good\">Good: short times without giving up much training. First come, "
      "first served and taking turns let a request wait for whole operations of training in every "
      "unit, exclusive jobs for a whole training step.</p>\n<ul class=\"soft\">\n");
  for (size_t i = 0; i < p->rows; ++i) {
    const struct page_row *r = &p->row[i];
    put(p, "<li>%s: %s. %zu requests", r->name, r->meaning, r->requests);
    if (r->answered < r->requests)
      put(p, "; %zu were answered before the run was given up after %s", r->answered,
          time_text(p, r->length));
    put(p, ".</li>\n");
  }
  put(p, "</ul>\n");
}

static void put_learning(struct page *p) {
  const struct colocate *c = p->c;
  if (!c->feed.finished) return;
  put(p,
      "<h2>Does it learn?</h2>\n<figure><figcaption>The loss is how far the network is from the "
      "right "
      "answers on the %" PRIu32
      " samples of a training step; less is better. Dotted lines mark where a new version of the "
      "weights (v1, v2 …) was handed to serving.</figcaption>\n",
      c->l->batch);
  char text[64];
  snprintf(text, sizeof text, "average of %zu steps", page_smooth(c));
  ct_page_keys_open(p->to);
  if (page_smooth(c) > 1) ct_page_key(p->to, "raw", "each step");
  ct_page_key(p->to, "train", page_smooth(c) > 1 ? text : "each step");
  ct_page_keys_close(p->to);
  put_figure(p, page_loss);
  put(p,
      "</figure>\n<p class=\"good\">Good: it falls, as it does without serving. The final weights "
      "are "
      "the same, bit by bit, whatever happens beside the training.</p>\n");
}

static void put_accuracy(struct page *p) {
  const struct colocate *c = p->c;
  if (c->serve.done < 2) return;
  put(p,
      "<h2>Do the answers get better while it serves?</h2>\n<figure><figcaption>The share of right "
      "answers among the last %zu requests, over %s. Dotted lines: a new version takes over, "
      "between "
      "two requests.</figcaption>\n",
      page_recent(c), p->timed ? "time" : "the requests");
  ct_page_keys_open(p->to);
  ct_page_key(p->to, "serve", "answers to the requests");
  ct_page_key(p->to, "known", "the serving version on all test images");
  ct_page_keys_close(p->to);
  put_figure(p, page_accuracy);
  put(p,
      "</figure>\n<p class=\"good\">Good: it rises in steps with the versions, without a gap in "
      "serving. The solid line scatters around the dashed one, because few requests are a small "
      "sample.</p>\n");
}

static void put_unit_table(struct page *p) {
  const struct window *w = &p->c->together;
  static const char *const queues[] = {"serving", "training"};
  put(p,
      "<details><summary>What the units wait for</summary><p>Every cycle of a unit and a queue is "
      "one "
      "of these.</p><div class=\"scroll\"><table><tr><th>unit<th>queue<th>busy<th>waits for the "
      "other "
      "queue<th>waits for operands or memory<th>waits for a semaphore<th>nothing to do</tr>\n");
  for (unsigned u = 0; u < CT_UNITS; ++u)
    for (unsigned q = 0; q < 2; ++q) {
      const struct ct_unit_time t = ct_unit_time(u, w->counter[q]);
      const double all = (double)(w->to - w->from);
      put(p, "<tr><td>%s<td>%s<td>%.1f %%<td>%.1f %%<td>%.1f %%<td>%.1f %%<td>%.1f %%</tr>\n",
          ct_unit_name(u), queues[q], 100 * (double)t.busy / all, 100 * (double)t.other / all,
          100 * (double)t.operands / all, 100 * (double)t.semaphore / all,
          100 * (double)ct_unit_idle(&t, w->to - w->from) / all);
    }
  put(p, "</table></div></details>\n");
}

static void put_units(struct page *p) {
  if (!p->timed || !p->c->together.closed) return;
  put(p,
      "<h2>Where do the cycles go?</h2>\n<figure><figcaption>How much of the time each unit of the "
      "hardware was at work, while both were running and, for comparison, with training alone. The "
      "matrix unit does the multiplications; the vector unit loads, computes and stores tiles; the "
      "DMA moves data to and from memory.</figcaption>\n");
  ct_page_keys_open(p->to);
  ct_page_key_box(p->to, "serve", "serving");
  ct_page_key_box(p->to, "train", "training");
  ct_page_key_box(p->to, "idle", "neither");
  ct_page_keys_close(p->to);
  put_figure(p, page_units);
  put(p,
      "</figure>\n<p class=\"good\">Good: little of the bars is left idle where a unit is the "
      "bottleneck. No unit can be busy all the time: each waits for what another one has to finish "
      "first.</p>\n");
  put_unit_table(p);
}

static void put_words(struct page *p) {
  put(p,
      "<h2>Words used here</h2>\n<dl>\n"
      "<dt>request</dt><dd>one image to be classified. Requests arrive at random moments, on "
      "average "
      "at %.3g times the rate the hardware could serve if it did nothing else.</dd>\n"
      "<dt>time to an answer, latency</dt><dd>from the moment a request arrives until its answer "
      "can "
      "be read, waiting included.</dd>\n"
      "<dt>p99</dt><dd>the time within which 99 of 100 requests were answered: what an unlucky "
      "user "
      "sees.</dd>\n"
      "<dt>version</dt><dd>a copy of the weights that answers requests. Training makes a better "
      "one "
      "after every pass over its data.</dd>\n"
      "<dt>training speed</dt><dd>multiplications done for training, for each cycle of the clock, "
      "while requests arrive.</dd>\n"
      "<dt>cycle</dt><dd>one tick of the hardware's clock.</dd>\n</dl>\n",
      (double)p->c->o->permille / 1000);
}

static void put_run(struct page *p) {
  const struct colocate *c = p->c;
  char text[512];
  put(p, "<h2>This run</h2>\n");
  ct_page_run_open(p->to);
  ct_page_run(p->to, "device", c->l->device);
  if (p->timed) {
    snprintf(text, sizeof text, "%.6g MHz; %" PRIu32 " x %" PRIu32 " multipliers",
             (double)c->info.clock_hz / 1e6, c->info.array_rows, c->info.array_cols);
    ct_page_run(p->to, "clock and array", text);
  }
  ct_page_run(p->to, "data", c->l->data);
  learn_layers_text(c->l->widths, c->l->layers, text, sizeof text);
  ct_page_run(p->to, "network (widths)", text);
  snprintf(text, sizeof text,
           "%" PRIu64 " of %" PRIu64 " steps of %" PRIu32
           " samples, learning rate %g, seed %" PRIu64,
           c->feed.finished, c->steps, c->l->batch, (double)c->l->lr, c->l->seed);
  ct_page_run(p->to, "training", text);
  snprintf(text, sizeof text, "%zu, at %.3g of what the device can serve alone", c->serve.count,
           (double)c->o->permille / 1000);
  ct_page_run(p->to, "requests", text);
  ct_page_run(p->to, "policy", ct_policy_name(c->o->policy));
  ct_page_run(p->to, "made by", "coltrain " CT_VERSION_STRING);
  ct_page_run_close(p->to);
}

/* ---- The page ---- */

int colocate_page(const struct colocate *c) {
  const char *path = c->o->report;
  if (!path) return 0;
  struct page p = {.c = c};
  if (page_open(&p)) return cli_fail("no memory for the report");
  p.to = ct_page_open(path, "Coltrain: serving while training");
  if (!p.to) {
    page_close(&p);
    return 1;
  }
  put_head(&p);
  put_latency(&p);
  put_others(&p);
  put_learning(&p);
  put_accuracy(&p);
  put_units(&p);
  put_words(&p);
  put_run(&p);
  page_close(&p);
  if (ct_page_close(p.to, path)) return 1;
  fprintf(c->text, "%s is the report; open it in a browser\n", path);
  return 0;
}
