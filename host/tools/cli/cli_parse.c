/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options: argp does the work; before it sees them, names that no option has are answered with the
 * one that was probably meant.
 */
#include <stdlib.h>
#include <string.h>

#include "cli.h"

enum { NAME_LENGTH = 63 /* of what is quoted */ };

/* ---- Options ---- */

/* What a name on the command line is. */
struct option_search {
  const char *name;
  size_t length;
  unsigned prefixes; /* options that begin with it */
  bool exact, takes_value;
  struct ct_near near;
};

static void search(const struct argp *argp, struct option_search *s) {
  for (const struct argp_option *o = argp->options; o && (o->name || o->key || o->doc); ++o) {
    if (!o->name) continue;
    ct_near_consider(&s->near, o->name);
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
  struct ct_near near = {.given = given};
  for (size_t i = 0; i < c->count; ++i)
    ct_near_consider(&near, c->choice[i].name);
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
