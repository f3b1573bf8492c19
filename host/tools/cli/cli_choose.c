/* SPDX-License-Identifier: Apache-2.0 */
/* A verb that is followed by what it shall do. */
#include <string.h>

#include "cli.h"

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
