/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "experiment.h"

/* ---- Points ---- */

static bool needs_capacity(const struct exp_point *p) {
  return p->kind == EXP_ALONE || p->kind == EXP_TOGETHER;
}

static bool is_there(const struct exp_settings *settings, const struct exp_point *p) {
  struct exp_result result;
  const bool there = exp_store_load(settings, p, &result);
  exp_result_free(&result);
  return there;
}

static int make_claimed(const struct exp_settings *settings, const struct exp_point *p) {
  char csv[EXP_PATH];
  json_t *json = NULL;
  if (is_there(settings, p)) return 0;
  if (needs_capacity(p) && !p->capacity.done)
    return cli_fail("%s: the capacity it refers to was not measured", p->name);
  exp_store_path(settings, p, ".csv.new", csv);
  if (exp_point_run(settings, p, csv, &json)) return 1;
  return json ? exp_store_save(settings, p, json) : 0;
}

int exp_make(const struct exp_settings *settings, const struct exp_point *point, bool *left) {
  if (is_there(settings, point)) return 0;
  const int claim = exp_store_claim(settings, point);
  if (claim == -1) *left = true;
  if (claim < 0) return claim != -1;
  const int status = make_claimed(settings, point);
  close(claim);
  return status;
}

/* ---- Processes ---- */

/* Sentences about failures, of all that a child wrote. */
static void pass_on(FILE *written, int to) {
  char line[1024];
  rewind(written);
  while (fgets(line, sizeof line, written))
    if (!strncmp(line, "coltrain: ", 10)) dprintf(to, "%s", line);
}

/* Shows no progress, which is the parent's, and does not outlive it. */
static int be_child(int (*all)(const void *arg), const void *arg, pid_t parent) {
  const int to = dup(STDERR_FILENO);
  FILE *written = tmpfile();
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent || to < 0 || !written || dup2(fileno(written), STDERR_FILENO) < 0)
    return 1;
  const int status = all(arg);
  fflush(stderr);
  if (status) pass_on(written, to);
  return status;
}

/* The points that a child is at are lost, if it is told to stop. It is told once: a second time
 * would not leave it the time to end. waitpid() alone would sleep through a Ctrl-C just before. */
static int await_child(pid_t child, bool stop) {
  const struct timespec a_while = {.tv_nsec = 20000000};
  bool told = false;
  int how = 0;
  pid_t ended;
  while ((ended = waitpid(child, &how, WNOHANG)) == 0 || (ended < 0 && errno == EINTR)) {
    if (!told && (stop || cli_stopped())) told = kill(child, SIGTERM) == 0;
    nanosleep(&a_while, NULL);
  }
  return ended < 0 || !WIFEXITED(how) || WEXITSTATUS(how);
}

int exp_make_by(uint64_t jobs, int (*all)(const void *arg), const void *arg) {
  const pid_t parent = getpid();
  pid_t child[EXP_PROCESSES];
  size_t children = 0;
  fflush(NULL);
  while (children + 1 < jobs) {
    const pid_t pid = fork();
    if (pid < 0) break; /* fewer then */
    if (pid == 0) _exit(be_child(all, arg, parent));
    child[children++] = pid;
  }
  int status = all(arg);
  for (size_t i = 0; i < children; ++i)
    status |= await_child(child[i], status || cli_stopped());
  return status;
}

int exp_make_end(int status) {
  if (cli_stopped())
    fprintf(stderr, "Stopped. The same command goes on with the points that are missing.\n");
  return status || cli_stopped();
}

/* ---- Options ---- */

enum { KEY_OUT = CLI_KEY_VERB, KEY_ONLY, KEY_SEEDS, KEY_JOBS, KEY_PART, KEY_REPORT };

static error_t parse(int key, char *arg, struct argp_state *state) {
  struct exp_options *o = state->input;
  switch (key) {
    case KEY_OUT:
      o->settings.out = arg;
      break;
    case KEY_ONLY:
      o->only = arg;
      break;
    case KEY_SEEDS:
      o->seeds = cli_count(state, "--seeds", arg, 1, EXP_SEEDS);
      break;
    case KEY_JOBS:
      o->jobs = cli_count(state, "--jobs", arg, 1, EXP_PROCESSES);
      break;
    case KEY_PART:
      o->settings.part = (uint32_t)cli_count(state, "--part", arg, 1, 100);
      break;
    case KEY_REPORT:
      o->report = arg;
      break;
    default:
      return cli_common(key, arg, state, NULL, &o->json);
  }
  return 0;
}

static const struct argp_option list[] = {
    {"out", KEY_OUT, "DIR", 0,
     "Folder of the points; those that are there are kept (build/experiments/ and the name)", 1},
    {"seeds", KEY_SEEDS, "N", 0, "Arrivals, samples and weights by seeds 1 .. N (5; batching 1)",
     2},
    {"only", KEY_ONLY, "PATTERN", 0, "Make only what has such a name, as in 'digits-*'", 2},
    {"part", KEY_PART, "P", 0, "Percent of the requests that the definition asks for (100)", 2},
    {"jobs", KEY_JOBS, "N", 0, "Processes at once (1)", 3},
    {"report", KEY_REPORT, "FILE.html", 0, "The page (report.html in the folder)", 4},
    {"json", CLI_KEY_JSON, "FILE", 0, "The summary (summary.json in the folder)", 4},
    {0}};

const struct argp exp_options_argp = {.options = list, .parser = parse};

const char *exp_options_path(const struct exp_options *o, const char *given, const char *name,
                             char path[EXP_PATH]) {
  if (given) return given;
  snprintf(path, EXP_PATH, "%s/%s", o->settings.out, name);
  return path;
}
