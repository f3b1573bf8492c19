/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options: argp does the work; before it sees them, names that no option has are answered with the
 * one that was probably meant.
 */
#include <stdlib.h>
#include <string.h>

#include "cli.h"

/* NAME_MAX: longer names are not compared. NEAR: of so many letters one may be wrong. */
enum { NAME_LENGTH = 63, NEAR = 3 };

/* ---- Nearest names ---- */

static size_t least(size_t a, size_t b) {
  return a < b ? a : b;
}

/* Letters to insert, remove, replace or swap with their neighbour to make b of a. */
static size_t distance(const char *a, const char *b) {
  size_t row[3][NAME_LENGTH + 2];
  const size_t n = strlen(a), m = strlen(b);
  if (n > NAME_LENGTH || m > NAME_LENGTH) return NAME_LENGTH;
  size_t *before = row[0], *last = row[1], *now = row[2];
  for (size_t j = 0; j <= m; ++j)
    last[j] = before[j] = j;
  for (size_t i = 1; i <= n; ++i) {
    now[0] = i;
    for (size_t j = 1; j <= m; ++j) {
      now[j] = least(least(last[j], now[j - 1]) + 1, last[j - 1] + (a[i - 1] != b[j - 1]));
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        now[j] = least(now[j], before[j - 2] + 1);
    }
    size_t *const free_row = before;
    before = last;
    last = now;
    now = free_row;
  }
  return last[m];
}

void cli_consider(struct cli_near *near, const char *name) {
  const size_t d = distance(near->given, name);
  const size_t length = strlen(near->given);
  /* A name that the given one begins, or that begins it, is near too. */
  const size_t common = least(length, strlen(name));
  const bool begins = common >= NEAR && strncmp(near->given, name, common) == 0;
  if (!begins && d > (length + NEAR - 1) / NEAR) return;
  if (near->name && d >= near->distance) return;
  near->name = name;
  near->distance = d;
}

/* ---- Options ---- */

/* What a name on the command line is. */
struct option_search {
  const char *name;
  size_t length;
  unsigned prefixes; /* options that begin with it */
  bool exact, takes_value;
  struct cli_near near;
};

static void search(const struct argp *argp, struct option_search *s) {
  for (const struct argp_option *o = argp->options; o && (o->name || o->key || o->doc); ++o) {
    if (!o->name) continue;
    cli_consider(&s->near, o->name);
    if (strncmp(o->name, s->name, s->length) != 0) continue;
    const bool exact = o->name[s->length] == 0;
    if (exact || !s->exact) s->takes_value = o->arg && !(o->flags & OPTION_ARG_OPTIONAL);
    s->exact |= exact;
    ++s->prefixes;
  }
  for (const struct argp_child *child = argp->children; child && child->argp; ++child)
    search(child->argp, s);
}

/* Options that argp adds itself. */
static bool is_common(const char *name, size_t length) {
  static const char *const common[] = {"help", "usage", "version"};
  for (size_t i = 0; i < sizeof common / sizeof *common; ++i)
    if (length && strncmp(common[i], name, length) == 0) return true;
  return false;
}

static void refuse(const char *verb, const struct option_search *s) {
  fflush(stdout);
  if (s->near.name)
    fprintf(stderr, "%s: there is no option --%s; did you mean --%s?\n", verb, s->near.given,
            s->near.name);
  else
    fprintf(stderr, "%s: there is no option --%s; %s --help lists them\n", verb, s->near.given,
            verb);
  exit(argp_err_exit_status);
}

void cli_parse(const struct argp *argp, int argc, char **argv, void *input) {
  for (int i = 1; i < argc; ++i) {
    char given[NAME_LENGTH + 1] = "";
    const char *name = argv[i] + 2;
    if (strncmp(argv[i], "--", 2) != 0) continue;
    const size_t length = strcspn(name, "=");
    if (!*name) break;
    if (is_common(name, length)) continue;
    snprintf(given, sizeof given, "%.*s", (int)length, name);
    struct option_search s = {.name = name, .length = length, .near = {.given = given}};
    search(argp, &s);
    if (!s.prefixes) refuse(argv[0], &s);
    if ((s.exact || s.prefixes == 1) && s.takes_value && !name[length]) ++i;
  }
  if (argp_parse(argp, argc, argv, 0, NULL, input)) exit(argp_err_exit_status);
}

/* ---- Choices ---- */

static void print_choices(const struct cli_choices *c, FILE *to) {
  fprintf(to, "Usage: coltrain %s WHAT [OPTION...]\n%s\n\n", c->verb, c->intro);
  for (size_t i = 0; i < c->count; ++i)
    fprintf(to, "  %-14s %s\n", c->choice[i].name, c->choice[i].text);
  fprintf(to, "\n  coltrain %s WHAT --help     its options\n\nExample:\n  %s\n", c->verb,
          c->example);
}

static int refuse_choice(const struct cli_choices *c, const char *given) {
  struct cli_near near = {.given = given};
  for (size_t i = 0; i < c->count; ++i)
    cli_consider(&near, c->choice[i].name);
  if (near.name)
    cli_fail("there is no %s \"%s\"; did you mean \"%s\"?", c->what, given, near.name);
  else
    cli_fail("there is no %s \"%s\"; coltrain %s --help lists them", c->what, given, c->verb);
  return 2;
}

int cli_choose(const struct cli_choices *choices, int argc, char **argv) {
  if (argc < 2) {
    print_choices(choices, stderr);
    return 2;
  }
  if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-?")) {
    print_choices(choices, stdout);
    return 0;
  }
  for (size_t i = 0; i < choices->count; ++i) {
    if (strcmp(argv[1], choices->choice[i].name) != 0) continue;
    char name[64];
    snprintf(name, sizeof name, "coltrain %s %s", choices->verb, choices->choice[i].name);
    argv[1] = name;
    return choices->choice[i].run(argc - 1, argv + 1);
  }
  return refuse_choice(choices, argv[1]);
}
