/* SPDX-License-Identifier: Apache-2.0 */
/* Options by a table: argp shows and reads them, each value goes to its place. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

/* QUOTED: of a name that does not exist. */
enum { FIRST_KEY = 0x1000, MOST = 40, NAME = 24, QUOTED = 63 };

struct reader {
  const struct cli_command *command;
  void *input;
};

static size_t count_of(const struct cli_command *c) {
  return c->shared_count + c->count;
}

static const struct cli_option *option_of(const struct cli_command *c, size_t i) {
  return i < c->shared_count ? &c->shared[i] : &c->option[i - c->shared_count];
}

static int key_of(const struct cli_option *o, size_t i) {
  return o->letter ? o->letter : FIRST_KEY + (int)i;
}

static bool is_option(const struct cli_option *o) {
  return o->arg || o->kind == CLI_FLAG || o->kind == CLI_CALL;
}

/* As it is written on the command line. */
static const char *name_of(const struct cli_option *o, char name[NAME]) {
  if (o->letter)
    snprintf(name, NAME, "-%c", o->letter);
  else
    snprintf(name, NAME, "%s%s", is_option(o) ? "--" : "", o->name);
  return name;
}

/* ---- Names ---- */

/* What a name on the command line is. */
struct option_search {
  const char *name;
  size_t length;
  unsigned prefixes; /* options that begin with it */
  bool exact, takes_value;
  struct ct_near near;
};

static void search(const struct cli_command *c, struct option_search *s) {
  for (size_t i = 0; i < count_of(c); ++i) {
    const struct cli_option *o = option_of(c, i);
    if (!is_option(o)) continue;
    ct_near_consider(&s->near, o->name);
    if (strncmp(o->name, s->name, s->length) != 0) continue;
    const bool exact = o->name[s->length] == 0;
    if (exact || !s->exact) s->takes_value = o->arg;
    s->exact |= exact;
    ++s->prefixes;
  }
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

/* Before argp sees them, names that no option has are answered with the one that was probably
 * meant. */
static void check_names(const struct cli_command *c, int argc, char **argv) {
  for (int i = 1; i < argc; ++i) {
    char given[QUOTED + 1] = "";
    const char *name = argv[i] + 2;
    if (strncmp(argv[i], "--", 2) != 0) continue;
    const size_t length = strcspn(name, "=");
    if (!*name) break;
    if (is_common(name, length)) continue;
    snprintf(given, sizeof given, "%.*s", (int)length, name);
    struct option_search s = {.name = name, .length = length, .near = {.given = given}};
    search(c, &s);
    if (!s.prefixes) refuse(argv[0], &s);
    if ((s.exact || s.prefixes == 1) && s.takes_value && !name[length]) ++i;
  }
}

/* ---- Values ---- */

static void store_count(const struct cli_option *o, char *at, uint64_t n) {
  const uint32_t word = (uint32_t)n;
  if (o->size == sizeof word)
    memcpy(at, &word, sizeof word);
  else
    memcpy(at, &n, sizeof n);
}

static void take(const struct cli_option *o, void *input, const char *arg,
                 const struct argp_state *state) {
  char *at = (char *)input + o->at, name[NAME];
  float x;
  switch (o->kind) {
    case CLI_CALL:
      o->call(input, arg, state);
      break;
    case CLI_FLAG:
      *(bool *)at = true;
      break;
    case CLI_COUNT:
      store_count(o, at, cli_count(state, name_of(o, name), arg, o->least, o->most));
      break;
    case CLI_REAL:
      x = cli_real(state, name_of(o, name), arg, o->low, o->high);
      memcpy(at, &x, sizeof x);
      break;
    case CLI_PERMILLE: /* a part, stored as a whole number */
      x = cli_real(state, name_of(o, name), arg, o->low, o->high);
      store_count(o, at, (uint64_t)lroundf(1000 * x));
      break;
    default:
      memcpy(at, &arg, sizeof arg);
  }
}

static error_t parse(int key, char *arg, struct argp_state *state) {
  const struct reader *r = state->input;
  const struct cli_command *c = r->command;
  if (key == ARGP_KEY_END && c->end) c->end(r->input, state);
  if (key == ARGP_KEY_ARG && c->arg)
    c->arg(r->input, arg, state);
  else if (key == ARGP_KEY_ARG)
    argp_error(state, "\"%s\" is one argument too many", arg);
  if (key == ARGP_KEY_ARG) return 0;
  for (size_t i = 0; i < count_of(c); ++i) {
    const struct cli_option *o = option_of(c, i);
    if (!is_option(o) || key_of(o, i) != key) continue;
    take(o, r->input, arg, state);
    return 0;
  }
  return ARGP_ERR_UNKNOWN;
}

static int check_files(const struct cli_command *c, const void *input) {
  struct cli_file files[MOST];
  char name[MOST][NAME];
  size_t n = 0;
  for (size_t i = 0; i < count_of(c); ++i) {
    const struct cli_option *o = option_of(c, i);
    if (o->kind != CLI_FILE) continue;
    files[n] = (struct cli_file){.option = name_of(o, name[n]), .use = o->use};
    memcpy(&files[n++].path, (const char *)input + o->at, sizeof files->path);
  }
  return cli_files(files, n);
}

int cli_options(const struct cli_command *command, int argc, char **argv, void *input) {
  struct argp_option list[MOST + 1] = {{0}};
  struct reader reader = {command, input};
  size_t n = 0;
  for (size_t i = 0; i < count_of(command); ++i) {
    const struct cli_option *o = option_of(command, i);
    if (is_option(o))
      list[n++] = (struct argp_option){o->name, key_of(o, i), o->arg, 0, o->text, o->group};
  }
  const struct argp argp = {.options = list,
                            .parser = parse,
                            .args_doc = command->args,
                            .doc = command->doc,
                            .help_filter = command->help};
  check_names(command, argc, argv);
  if (argp_parse(&argp, argc, argv, 0, NULL, &reader)) exit(argp_err_exit_status);
  return check_files(command, input);
}

/* ---- Members of an object ---- */

int cli_members(const char *what, const struct cli_option *members, size_t count,
                const json_t *object, void *input) {
  for (size_t i = 0; i < count; ++i) {
    const struct cli_option *o = &members[i];
    const json_t *v = json_object_get(object, o->name);
    const json_int_t n = json_integer_value(v);
    const char *text = json_string_value(v);
    if (!v) continue;
    if (o->kind == CLI_TEXT && !text) return cli_fail("%s: \"%s\": is no text", what, o->name);
    if (o->kind == CLI_COUNT && (!json_is_integer(v) || n < 0 || (uint64_t)n > o->most))
      return cli_fail("%s: \"%s\" is no whole number of 0..%" PRIu64, what, o->name, o->most);
    if (o->kind == CLI_TEXT)
      memcpy((char *)input + o->at, &text, sizeof text);
    else
      store_count(o, (char *)input + o->at, (uint64_t)n);
  }
  return 0;
}
