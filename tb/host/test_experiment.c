/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page of co-location, from made-up cells: that it is well-formed whatever they are, and says
 * what is not there.
 */
#include "ct_tb.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli_run.h"
#include "host/tools/experiment.h"

enum { CELLS = 48, DEPTH = 32, LOADS = 4 };

static const uint32_t loads[LOADS] = {200, 500, 800, 900};

/* ---- Made-up cells ---- */

static struct exp_ratio ratio(double mean, size_t seeds) {
  const double part = seeds > 1 ? 0.01 : (double)NAN;
  if (isinf(mean)) return (struct exp_ratio){seeds, mean, mean, mean};
  return (struct exp_ratio){seeds, mean, mean * (1 - part), mean * (1 + part)};
}

/* p99 times stretch; infinite: never. */
static struct exp_cell cell(struct exp_point point, double stretch, size_t seeds) {
  const double load = point.permille / 1000.0, alone = 20000 / (1.05 - load);
  const double share = (1 - load) * (point.policy == CT_PRIORITY ? 1.04 : 1.3);
  struct exp_cell c = {.point = point,
                       .seeds = seeds,
                       .p99 = alone * stretch,
                       .p99_alone = alone,
                       .stretch = ratio(stretch, seeds),
                       .share = ratio(share, seeds),
                       .share_of_idle = ratio(share / (1 - load), seeds),
                       .u = load * 0.98,
                       .u_over_load = 0.985,
                       .mean_batch = 1 + 4 * load,
                       .asked = 3000 * seeds,
                       .answered = 3000 * seeds,
                       .requests = 2000 * seeds,
                       .deadline = 364550};
  if (isinf(stretch)) c.answered -= 1234;
  for (size_t n = 1; n <= EXP_BATCH; ++n)
    c.batches[n] = (uint64_t)(10000 * exp(-(double)(n - 1) / (0.3 + 4 * load)));
  return c;
}

static double stretch_of(enum ct_policy policy, uint32_t permille) {
  const double load = permille / 1000.0;
  if (policy == CT_PRIORITY) return 1.004 + 0.03 * load * load;
  if (policy == CT_WHOLE_JOB) return (double)INFINITY;
  return permille > 500 ? (double)INFINITY : 3 + 20 * load + policy;
}

/* Everything, as a whole experiment has it. */
static size_t all_cells(struct exp_cell *list, size_t seeds) {
  size_t n = 0;
  struct exp_point p = {.kind = EXP_TOGETHER, .memory = "", .seed = 1, .core = true};
  for (size_t s = 0; s < 2; ++s)
    for (p.policy = CT_PRIORITY; p.policy <= CT_WHOLE_JOB; ++p.policy)
      for (size_t l = 0; l < LOADS; ++l) {
        p.server = &exp_servers[s];
        p.permille = loads[l];
        list[n++] = cell(p, stretch_of(p.policy, loads[l]), seeds);
      }
  const struct exp_point axes[] = {
      {.policy = CT_SLACK, .memory = ""},
      {.arrivals = SERVE_BURSTY, .memory = ""},
      {.arrivals = SERVE_TRACE, .memory = ""},
      {.memory = "bandwidth=8"},
  };
  for (size_t i = 0; i < 2 * sizeof axes / sizeof *axes; ++i) {
    p = axes[i / 2];
    p.kind = EXP_TOGETHER;
    p.server = &exp_servers[i % 2];
    p.permille = 500;
    list[n++] = cell(p, 1.01, seeds);
  }
  p = (struct exp_point){
      .kind = EXP_TOGETHER, .server = &exp_servers[2], .permille = 500, .memory = ""};
  list[n++] = cell(p, 1.02, seeds);
  return n;
}

static const struct exp_settings settings = {.out = "build/experiments/colocation",
                                             .trace = "host/data/traces/recorded.csv",
                                             .data = "fashion-mnist",
                                             .part = 100,
                                             .on_percent = 50,
                                             .period = 20,
                                             .whole = true};

static struct exp_summary summary_of(struct exp_cell *list, size_t cells) {
  struct exp_summary s = {
      .settings = &settings, .cell = list, .cells = cells, .points = 500, .there = 500};
  for (size_t i = 0; i < EXP_SERVERS; ++i)
    s.capacity[i] = (struct exp_result){
        .there = true, .service = i ? 36455 : 1623, .busy = 4000000, .done = 2000};
  return s;
}

/* ---- HTML ---- */

/* Elements without an end, and those that the next one of their kind ends. */
static bool is_void(const char *name) {
  return !strcmp(name, "meta");
}

static bool ends_by_itself(const char *name) {
  return !strcmp(name, "td") || !strcmp(name, "th");
}

struct elements {
  char name[DEPTH][16];
  size_t depth;
};

static void open_element(struct elements *e, const char *name) {
  if (ends_by_itself(name) && e->depth && ends_by_itself(e->name[e->depth - 1])) --e->depth;
  assert_true(e->depth < DEPTH);
  snprintf(e->name[e->depth++], sizeof e->name[0], "%s", name);
}

static void close_element(struct elements *e, const char *name) {
  if (e->depth && ends_by_itself(e->name[e->depth - 1]) && !ends_by_itself(name)) --e->depth;
  assert_true(e->depth > 0);
  if (strcmp(e->name[e->depth - 1], name))
    fail_msg("</%s> where <%s> is open", name, e->name[e->depth - 1]);
  --e->depth;
}

/* Attributes are NAME="VALUE", with nothing else between them. Returns the end of the tag. */
static const char *check_attributes(const char *p) {
  for (;;) {
    p += strspn(p, " ");
    if (*p == '/') ++p;
    if (*p == '>') return p;
    const size_t n = strspn(p, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-0123456789");
    if (!n || p[n] != '=' || p[n + 1] != '"') fail_msg("an attribute like %.40s", p);
    p += n + 2;
    const size_t length = strcspn(p, "\"<>");
    if (p[length] != '"') fail_msg("an attribute's value like %.40s", p);
    p += length + 1;
  }
}

/* Text has no bare "&". */
static void check_text(const char *p, const char *end) {
  for (; p < end; ++p)
    if (*p == '&') {
      const char *semicolon = memchr(p, ';', (size_t)(end - p));
      if (!semicolon || semicolon - p > 8) fail_msg("a bare & in %.40s", p);
    }
}

/* Every element is closed in order. The style sheet is no HTML. */
static void check_page(const char *page) {
  struct elements e = {.depth = 0};
  const char *p = page;
  assert_int_equal(strncmp(p, "<!doctype html>", 15), 0);
  p += 15;
  while (*p) {
    const char *tag = strchr(p, '<');
    check_text(p, tag ? tag : p + strlen(p));
    if (!tag) break;
    const bool ends = tag[1] == '/';
    char name[16];
    const size_t n = strcspn(tag + 1 + ends, " />");
    assert_in_range(n, 1, sizeof name - 1);
    memcpy(name, tag + 1 + ends, n);
    name[n] = 0;
    const char *end = check_attributes(tag + 1 + ends + n);
    if (ends)
      close_element(&e, name);
    else if (end[-1] != '/' && !is_void(name))
      open_element(&e, name);
    p = !ends && !strcmp(name, "style") ? strstr(end, "</style>") : end + 1;
    assert_non_null(p);
  }
  assert_int_equal(e.depth, 0);
}

static size_t count_of(const char *page, const char *text) {
  size_t n = 0;
  while ((page = strstr(page, text))) {
    page += strlen(text);
    ++n;
  }
  return n;
}

static void expect(const char *page, const char *text) {
  if (!strstr(page, text)) fail_msg("the page has no \"%s\"", text);
}

/* Nothing from elsewhere, no scripts, no figure that is none. */
static void expect_clean(const char *page) {
  static const char *const not [] = {"<script", "http", "url(", "nan", "(null)", "-0.0", ">inf"};
  for (size_t i = 0; i < sizeof not / sizeof *not ; ++i)
    if (strstr(page, not [i])) fail_msg("the page has %.60s", strstr(page, not [i]));
}

/* free() it. */
static char *page_of(const struct exp_summary *s) {
  const char *path = cli_path("report.html");
  assert_int_equal(exp_report(s, path), 0);
  char *page = cli_slurp(path, NULL);
  check_page(page);
  expect_clean(page);
  return page;
}

/* ---- Tests ---- */

static void a_whole_page(void **state) {
  (void)state;
  struct exp_cell list[CELLS];
  const struct exp_summary s = summary_of(list, all_cells(list, 5));
  char *page = page_of(&s);
  expect(page, "at most 1.023 times what it is");
  expect(page, "<p class=\"big\">× 1.023</p>");
  expect(page, "<p class=\"big\">83.2 %</p>"); /* at load 0.2 */
  expect(page, "(95&#160;% interval: 1.013 to 1.033)");
  expect(page, "<span class=\"between\">1.013 – 1.033</span>");
  expect(page, "both networks<td>0.5");
  expect(page, "784-512-256-10, bursty arrivals<td>0.5");
  expect(page, "784-512-256-10, recorded arrivals<td>0.5");
  expect(page, "digits, SLACK<td>0.5");
  expect(page, "digits, bandwidth=8<td>0.5");
  expect(page, "of 595,256 beside training"); /* 41 cells of 15,000, 16 without 1,234 */
  assert_null(strstr(page, "a part of the experiment"));
  assert_null(strstr(page, "There is one seed"));
  /* Two servers, four charts, each for two screens. */
  assert_int_equal(count_of(page, "<svg role=\"img\""), 16);
  /* Three tables have a head; one more is how it was made. */
  const char *run = strstr(page, "<table class=\"run\">");
  assert_non_null(run);
  assert_int_equal(count_of(page, "<tr>") - count_of(run, "<tr>"), s.cells + 3);
  free(page);
}

/* An arrow at the top edge in the chart, a word in the table; the scale stays one of the others. */
static void what_was_never_answered(void **state) {
  (void)state;
  struct exp_cell list[CELLS];
  const struct exp_summary s = summary_of(list, all_cells(list, 5));
  size_t never = 0;
  for (size_t i = 0; i < s.cells; ++i)
    never += isinf(list[i].p99) != 0;
  char *page = page_of(&s);
  assert_int_equal(count_of(page, "<path class=\"never "), 2 * never);
  assert_int_equal(count_of(page, "<td>never"), 2 * never); /* p99 and the ratio */
  assert_int_equal(count_of(page, "at the top edge: never"), 4);
  free(page);
  /* Nothing but that. */
  for (size_t i = 0; i < s.cells; ++i)
    list[i] = cell(list[i].point, (double)INFINITY, 1);
  free(page_of(&s));
  /* Alone, too: there is no ratio. */
  for (size_t i = 0; i < s.cells; ++i) {
    list[i].p99_alone = (double)INFINITY;
    list[i].stretch = (struct exp_ratio){1, (double)NAN, (double)NAN, (double)NAN};
  }
  page = page_of(&s);
  assert_int_equal(count_of(page, "<td>never<td>never<td>-<td>"), s.cells);
  free(page);
}

static void a_part_of_the_points(void **state) {
  (void)state;
  struct exp_cell list[CELLS];
  struct exp_summary s = summary_of(list, all_cells(list, 1));
  struct exp_settings trial = settings;
  trial.part = 2;
  s.settings = &trial;
  s.cells = 3; /* digits under PRIORITY up to 0.8 */
  s.there = 17;
  char *page = page_of(&s);
  expect(page, "17 of 500 measurements are there");
  expect(page, "with 2 % of the requests");
  expect(page, "There is one seed of everything");
  expect(page, "<p class=\"big\">missing</p>");
  expect(page, "<b class=\"unknown\">missing</b>");
  assert_int_equal(count_of(page, "<svg role=\"img\""), 8);
  assert_int_equal(count_of(page, "class=\"between\""), 0);
  assert_int_equal(count_of(page, " whisker\""), 0);
  free(page);
}

static void nothing_yet(void **state) {
  (void)state;
  struct exp_cell none;
  struct exp_summary s = summary_of(&none, 0);
  s.there = 0;
  for (size_t i = 0; i < EXP_SERVERS; ++i)
    s.capacity[i].there = false;
  char *page = page_of(&s);
  expect(page, "0 of 500 measurements are there");
  expect(page, "<p class=\"big\">missing</p>");
  assert_int_equal(count_of(page, "<svg role=\"img\""), 0);
  free(page);
}

/* What a user gave stands in the page as text. */
static void names_are_escaped(void **state) {
  (void)state;
  struct exp_cell list[CELLS];
  struct exp_summary s = summary_of(list, all_cells(list, 5));
  struct exp_settings odd = settings;
  odd.out = "<b>&\"'";
  odd.data = "a<b";
  odd.trace = "<script>alert(1)</script>";
  s.settings = &odd;
  list[s.cells - 2].point.memory = "<i>";
  char *page = page_of(&s);
  expect(page, "<td>&#60;b&#62;&#38;&#34;&#39;");
  expect(page, "batches of 64, of a&#60;b");
  expect(page, "&#60;script&#62;alert(1)&#60;/script&#62;");
  expect(page, ", &#60;i&#62;<td>0.5");
  free(page);
}

/* scripts/experiment-results reads what exp_summary_json() writes. */
static void tables_of_the_results(void **state) {
  (void)state;
  struct exp_cell list[CELLS];
  const struct exp_summary s = summary_of(list, all_cells(list, 5));
  char command[1024];
  if (system("command -v python3 >/dev/null")) skip();
  assert_int_equal(cli_json_write(cli_path("summary.json"), exp_summary_json(&s)), 0);
  const char *file = cli_path("results.md"), *end = strrchr(file, '/');
  snprintf(command, sizeof command, "python3 scripts/experiment-results %.*s %s", (int)(end - file),
           file, file);
  assert_int_equal(system(command), 0);
  char *once = cli_slurp(file, NULL);
  expect(once, "| PRIORITY | 0.8 | 80,000 | 81,856 | 1.023 (1.013 to 1.033) | 0.208 ");
  expect(once, "| JOB | 0.2 | 23,529 | never | - | 1.040 ");
  expect(once, "| both networks | 0.5 |");
  expect(once, "| 784-512-256-10, recorded arrivals | 0.5 |");
  expect(once, " | 1.0334 (784-512-256-10 at load 0.8) | held |");
  assert_null(strstr(once, "A part of"));
  assert_null(strstr(once, "None"));
  /* Again: the section takes the place of the one that is there. */
  assert_int_equal(system(command), 0);
  char *twice = cli_slurp(file, NULL);
  assert_string_equal(once, twice);
  free(twice);
  /* Without a summary of batching, what the file says of it stays. */
  char *marker = strstr(once, "<!-- experiments: end -->");
  assert_non_null(marker);
  FILE *other = fopen(file, "w");
  assert_non_null(other);
  fprintf(other, "%.*s## What batches add\n\nas it was\n\n%s", (int)(marker - once), once, marker);
  assert_int_equal(fclose(other), 0);
  assert_int_equal(system(command), 0);
  twice = cli_slurp(file, NULL);
  expect(twice, "\n\n## What batches add\n\nas it was\n\n<!-- experiments: end -->");
  assert_int_equal(count_of(twice, "## Serving beside training"), 1);
  free(once);
  free(twice);
}

static void no_place_for_it(void **state) {
  (void)state;
  struct exp_cell none;
  const struct exp_summary s = summary_of(&none, 0);
  assert_int_equal(exp_report(&s, "/nonexistent/report.html"), 1);
  assert_int_equal(exp_report(&s, "/dev/full"), 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_whole_page),          cmocka_unit_test(what_was_never_answered),
      cmocka_unit_test(a_part_of_the_points),  cmocka_unit_test(nothing_yet),
      cmocka_unit_test(names_are_escaped),     cmocka_unit_test(no_place_for_it),
      cmocka_unit_test(tables_of_the_results),
  };
  return cmocka_run_group_tests(tests, cli_make_folder, cli_remove_folder);
}
