/* SPDX-License-Identifier: Apache-2.0 */
#include "cli_run.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "ct_tb.h"

static char *program_path(void) {
  static char path[4096];
  char self[2048];
  const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
  assert_true(n > 0);
  self[n] = 0;
  const bool san = n > 4 && !strcmp(self + n - 4, ".san");
  char *slash = strrchr(self, '/');
  assert_non_null(slash);
  *slash = 0;
  snprintf(path, sizeof path, "%s/../%sbin/coltrain", self, san ? "san/" : "");
  return path;
}

/* ---- Files ---- */

static char folder[64];

int cli_make_folder(void **state) {
  (void)state;
  snprintf(folder, sizeof folder, "/tmp/ct_test_cli.XXXXXX");
  return mkdtemp(folder) ? 0 : -1;
}

void cli_use_folder(const char *path) {
  snprintf(folder, sizeof folder, "%s", path);
}

int cli_remove_folder(void **state) {
  (void)state;
  char command[128];
  snprintf(command, sizeof command, "rm -rf '%s'", folder);
  return system(command);
}

const char *cli_path(const char *name) {
  static char paths[8][256];
  static unsigned next;
  char *path = paths[next++ % 8];
  snprintf(path, sizeof paths[0], "%s/%s", folder, name);
  return path;
}

const char *cli_line(const char *format, ...) {
  static char lines[4][1024];
  static unsigned next;
  char *text = lines[next++ % 4];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof lines[0], format, args);
  va_end(args);
  return text;
}

size_t cli_lines_of(const char *text) {
  size_t lines = 0;
  for (const char *p = text; (p = strchr(p, '\n')); ++p)
    ++lines;
  return lines;
}

char *cli_slurp(const char *path, size_t *size) {
  FILE *file = fopen(path, "rb");
  if (!file) fail_msg("%s is not there", path);
  size_t have = 0, room = 1 << 16;
  char *text = malloc(room);
  assert_non_null(text);
  for (size_t n; (n = fread(text + have, 1, room - have - 1, file)) > 0;) {
    have += n;
    if (room - have > 1) continue;
    text = realloc(text, room *= 2);
    assert_non_null(text);
  }
  fclose(file);
  text[have] = 0;
  if (size) *size = have;
  return text;
}

void cli_assert_same_files(const char *a, const char *b) {
  size_t na, nb;
  char *x = cli_slurp(a, &na), *y = cli_slurp(b, &nb);
  assert_int_equal(na, nb);
  ct_assert_same("file", x, y, na);
  free(x);
  free(y);
}

/* ---- Running ---- */

enum { MAX_ARGS = 64, PATIENCE_MS = 20000, STEP_MS = 20 };

static void become(const char *args, const char *out, const char *err) {
  char *argv[MAX_ARGS + 2] = {program_path()}, *copy = strdup(args);
  int argc = 1;
  for (char *arg = strtok(copy, " "); arg && argc <= MAX_ARGS; arg = strtok(NULL, " "))
    argv[argc++] = arg;
  if ((out ? !freopen(out, "w", stdout) : close(STDOUT_FILENO)) || !freopen(err, "w", stderr) ||
      !freopen("/dev/null", "r", stdin))
    _exit(126);
  execv(argv[0], argv);
  _exit(127);
}

void cli_sleep_ms(unsigned ms) {
  const struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
  nanosleep(&t, NULL);
}

struct cli_run cli_run(const char *args, unsigned interrupt_ms) {
  return cli_run_signal(args, interrupt_ms, SIGINT);
}

pid_t cli_start(const char *args, const char *out, const char *err) {
  fflush(NULL);
  const pid_t pid = fork();
  assert_true(pid >= 0);
  if (pid == 0) become(args, out, err);
  return pid;
}

/* Whether a signal does what the program wants: it has a handler, or there can be none; or the
 * program has ended. */
static bool is_caught(pid_t pid, int signal) {
  char path[64], line[256];
  unsigned long long caught = 0;
  bool found = false, ended = false;
  if (signal == SIGKILL) return true;
  snprintf(path, sizeof path, "/proc/%ld/status", (long)pid);
  FILE *f = fopen(path, "r");
  while (f && fgets(line, sizeof line, f)) {
    found |= sscanf(line, "SigCgt: %llx", &caught) == 1;
    ended |= !strncmp(line, "State:\tZ", 8);
  }
  if (f) fclose(f);
  return !found || ended || caught >> (signal - 1) & 1;
}

/* On a busy machine a program may not have its handler by then: then the time begins when it has.
 */
static void wait_for_moment(pid_t pid, unsigned after_ms, int signal) {
  cli_sleep_ms(after_ms);
  if (is_caught(pid, signal)) return;
  for (unsigned ms = 0; ms < PATIENCE_MS && !is_caught(pid, signal); ms += STEP_MS)
    cli_sleep_ms(STEP_MS);
  cli_sleep_ms(after_ms);
}

struct cli_run cli_run_signal(const char *args, unsigned after_ms, int signal) {
  const char *out = cli_path("stdout"), *err = cli_path("stderr");
  const pid_t pid = cli_start(args, out, err);
  if (after_ms) {
    wait_for_moment(pid, after_ms, signal);
    kill(pid, signal);
  }
  int status = 0;
  assert_int_equal(waitpid(pid, &status, 0), pid);
  return (struct cli_run){
      .status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
      .out = cli_slurp(out, NULL),
      .err = cli_slurp(err, NULL)};
}

void cli_run_free(struct cli_run *run) {
  free(run->out);
  free(run->err);
}

char *cli_expect(int status, const char *text, const char *args) {
  struct cli_run run = cli_run(args, 0);
  if (run.status != status || !strstr(run.err, text))
    fail_msg("coltrain %s: status %d instead of %d, or \"%s\" is not in: %s", args, run.status,
             status, text, run.err);
  free(run.err);
  return run.out;
}

json_t *cli_expect_json(const char *args) {
  json_error_t error;
  char *out = cli_expect(0, "", args);
  json_t *root = json_loads(out, 0, &error);
  if (!root) fail_msg("coltrain %s: not JSON (%s): %s", args, error.text, out);
  free(out);
  return root;
}

json_t *cli_at(json_t *root, const char *path) {
  char *copy = strdup(path), *rest = NULL;
  json_t *node = root;
  for (char *key = strtok_r(copy, ".", &rest); key; key = strtok_r(NULL, ".", &rest)) {
    node = json_object_get(node, key);
    if (!node) fail_msg("the JSON has no %s", path);
  }
  free(copy);
  return node;
}

double cli_number_at(json_t *root, const char *path) {
  const json_t *node = cli_at(root, path);
  if (!json_is_number(node)) fail_msg("%s is no number", path);
  return json_number_value(node);
}
