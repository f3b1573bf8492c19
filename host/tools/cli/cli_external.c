/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Verbs that are programs of their own, coltrain-VERB, as git has them: beside this command, else
 * on the search path. They are told where this command is by COLTRAIN_COMMAND, because they run it.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli.h"

enum { NAME_LENGTH = 32 };

/* Names of programs are simple, so that no verb leads out of the folder. */
static bool is_name(const char *verb) {
  static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789-";
  const size_t length = strspn(verb, letters);
  return length && length <= NAME_LENGTH && !verb[length] && *verb != '-';
}

/* Where this command is, without its name; false: the system does not say. */
static bool own_folder(char *path, size_t size) {
  const ssize_t length = readlink("/proc/self/exe", path, size - 1);
  if (length <= 0 || (size_t)length >= size - 1) return false;
  path[length] = 0;
  setenv("COLTRAIN_COMMAND", path, 1);
  char *slash = strrchr(path, '/');
  if (slash) slash[1] = 0;
  return slash;
}

/* Ends here only if there is no such program. A program that is there and cannot be started lacks
 * what its first line names: Python. */
static int try_program(const char *path, char **argv) {
  if (access(path, F_OK)) return -1;
  fflush(NULL);
  execv(path, argv);
  if (errno == ENOENT)
    return cli_fail(
        "coltrain %s is written in Python 3, which is not installed; install the packages python3, "
        "python3-numpy, python3-matplotlib and python3-jinja2",
        argv[0]);
  return cli_fail("%s: cannot be started: %s", path, strerror(errno));
}

static int search_path(const char *verb, char **argv) {
  const char *folders = getenv("PATH");
  char path[PATH_MAX + 2 * NAME_LENGTH];
  for (const char *p = folders ? folders : ""; *p;) {
    const size_t length = strcspn(p, ":");
    if (length && length < PATH_MAX) {
      snprintf(path, sizeof path, "%.*s/coltrain-%s", (int)length, p, verb);
      const int status = try_program(path, argv);
      if (status >= 0) return status;
    }
    p += length + (p[length] == ':');
  }
  return -1;
}

int cli_external(const char *verb, char **argv) {
  char folder[PATH_MAX], path[PATH_MAX + 2 * NAME_LENGTH];
  if (!is_name(verb)) return -1;
  if (own_folder(folder, sizeof folder)) {
    snprintf(path, sizeof path, "%scoltrain-%s", folder, verb);
    const int status = try_program(path, argv);
    if (status >= 0) return status;
  }
  return search_path(verb, argv);
}

/* Runs it and waits; its exit status. It ends by itself, whatever key was pressed. */
static int run_report(char **argv) {
  int how = 0;
  fflush(NULL);
  const pid_t child = fork();
  if (child < 0) return cli_fail("coltrain-report cannot be started: %s", strerror(errno));
  if (child == 0) {
    setpgid(0, 0);
    const int status = cli_external("report", argv);
    if (status < 0)
      cli_fail(
          "there is no coltrain-report beside coltrain or on the search path, which makes the "
          "page; pip install ./host/python puts it there");
    fflush(NULL);
    _exit(1);
  }
  while (waitpid(child, &how, 0) < 0)
    if (errno != EINTR) return cli_fail("coltrain-report: %s", strerror(errno));
  return !WIFEXITED(how) || WEXITSTATUS(how);
}

int cli_report_check(void) {
  char *argv[] = {"report", "--check", NULL};
  return run_report(argv);
}

int cli_report(json_t *root, const char *page) {
  char name[] = "/tmp/coltrain-report-XXXXXX";
  const int fd = mkstemp(name);
  if (fd < 0) return cli_fail("%s: cannot be made: %s", name, strerror(errno));
  close(fd);
  char *argv[] = {"report", name, "-o", (char *)page, NULL};
  const int status = cli_json_write(name, json_incref(root)) || run_report(argv);
  unlink(name);
  return status;
}
