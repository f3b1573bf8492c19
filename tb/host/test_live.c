/* SPDX-License-Identifier: Apache-2.0 */
/*
 * coltrain top beside a job: what it prints, on a terminal and elsewhere, when there is no job,
 * when the job ends; and that watching changes no cycle.
 */
#include "ct_pty.h"
#include "ct_tb.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli_run.h"
#include "host/tools/watch/live.h"

#define LEARN " --samples 160 --layers 64-24-10 --batch 16"
enum { PATIENCE_MS = 20000, STEP_MS = 20 };

/* The sockets of this test are its own. */
static int set_up(void **state) {
  return cli_make_folder(state) || setenv("COLTRAIN_RUN_DIR", cli_path("run"), 1);
}

static bool is_there(const char *path) {
  return access(path, F_OK) == 0;
}

static const char *socket_of(pid_t pid) {
  char name[64];
  snprintf(name, sizeof name, "run/%ld.sock", (long)pid);
  return cli_path(name);
}

/* Starts a job and waits until it can be looked at. */
static pid_t start_job(const char *args) {
  const pid_t pid = cli_start(args, cli_path("job.out"), cli_path("job.err"));
  for (unsigned ms = 0; ms < PATIENCE_MS && !is_there(socket_of(pid)); ms += STEP_MS)
    cli_sleep_ms(STEP_MS);
  assert_true(is_there(socket_of(pid)));
  return pid;
}

static void wait_for_text(const char *path) {
  struct stat info;
  for (unsigned ms = 0; ms < PATIENCE_MS; ms += STEP_MS) {
    if (stat(path, &info) == 0 && info.st_size) return;
    cli_sleep_ms(STEP_MS);
  }
  fail_msg("nothing comes in %s", path);
}

static int end_job(pid_t pid, int signal) {
  int status = 0;
  if (signal) kill(pid, signal);
  assert_int_equal(waitpid(pid, &status, 0), pid);
  return status;
}

static size_t count_of(const char *text, const char *what) {
  size_t n = 0;
  for (; (text = strstr(text, what)); text += strlen(what))
    ++n;
  return n;
}

/* ---- Beside a job ---- */

/* A socket that is there listens, since top takes one that refuses for that of a killed job: it
 * gets its name when it is ready, by being renamed. */
static void a_job_begins(void **state) {
  (void)state;
  _Alignas(struct inotify_event) char events[4096];
  char want[64];
  bool begun = false;
  const int watch = inotify_init();
  mkdir(cli_path("run"), 0700);
  assert_true(inotify_add_watch(watch, cli_path("run"), IN_CREATE | IN_MOVED_TO) >= 0);
  const pid_t job = cli_start("train --device emu: --epochs 100000" LEARN, cli_path("job.out"),
                              cli_path("job.err"));
  snprintf(want, sizeof want, "%ld.sock", (long)job);
  while (!begun) {
    struct pollfd ready = {.fd = watch, .events = POLLIN};
    assert_int_equal(poll(&ready, 1, PATIENCE_MS), 1);
    const ssize_t size = read(watch, events, sizeof events);
    for (ssize_t at = 0; at < size;) {
      const struct inotify_event *e = (const void *)(events + at);
      if (strcmp(e->name, want) == 0) {
        assert_true(e->mask & IN_MOVED_TO);
        begun = true;
      }
      at += (ssize_t)(sizeof *e + e->len);
    }
  }
  close(watch);
  end_job(job, SIGINT);
}

static void lines_of_a_job(void **state) {
  (void)state;
  char args[64];
  const pid_t job = start_job("colocate --device emu: --epochs 100000 --requests 100000" LEARN);
  char *out = cli_expect(0, "", "top --lines 3");
  assert_int_equal(count_of(out, "\n"), 3);
  assert_int_equal(count_of(out, "queues"), 3);
  assert_int_equal(count_of(out, "steps/s"), 3);
  assert_null(strchr(out, '\33'));
  free(out);
  snprintf(args, sizeof args, "top %ld --json --lines 1", (long)job);
  json_t *line = cli_expect_json(args);
  assert_int_equal(cli_number_at(line, "pid"), job);
  assert_string_equal(json_string_value(cli_at(line, "verb")), "colocate");
  assert_true(json_is_null(cli_at(line, "cycle")));
  assert_true(cli_number_at(line, "steps.done") >= 1);
  assert_int_equal(json_array_size(cli_at(line, "units")), 0);
  json_decref(line);
  const int status = end_job(job, SIGINT);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
  assert_false(is_there(socket_of(job)));
  free(cli_expect(1, "no job runs here", "top"));
  snprintf(args, sizeof args, "top %ld", (long)job);
  free(cli_expect(1, "is no coltrain colocate or train that runs here", args));
  free(cli_expect(2, "PID: \"x\"", "top x"));
  free(cli_expect(2, "did you mean --lines?", "top --line5 3"));
}

/* A job that is killed ends the look at it and leaves a socket, which the next look removes. */
static void a_job_that_is_killed(void **state) {
  (void)state;
  const pid_t job = start_job("train --device emu: --epochs 100000" LEARN);
  const pid_t top = cli_start("top", cli_path("top.out"), cli_path("top.err"));
  wait_for_text(cli_path("top.out"));
  end_job(job, SIGKILL);
  const int status = end_job(top, 0);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  char *out = cli_slurp(cli_path("top.out"), NULL);
  assert_non_null(strstr(out, "epoch "));
  free(out);
  assert_true(is_there(socket_of(job)));
  free(cli_expect(1, "no job runs here", "top"));
  assert_false(is_there(socket_of(job)));
}

/* Somebody who connects and never reads does not hold up the job; it ends when it is done. */
static void a_reader_who_sleeps(void **state) {
  (void)state;
  const pid_t job = start_job("train --device emu: --epochs 2500" LEARN);
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  snprintf(address.sun_path, sizeof address.sun_path, "%s", socket_of(job));
  const int s = socket(AF_UNIX, SOCK_STREAM, 0), small = 1;
  setsockopt(s, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
  assert_int_equal(connect(s, (const struct sockaddr *)&address, sizeof address), 0);
  const int status = end_job(job, 0);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  close(s);
}

/* ---- On a terminal ---- */

static pid_t start_on_terminal(const char *name) {
  setenv("TERM", "xterm", 1);
  return cli_start("top", name, "/dev/null");
}

static void leaves_the_terminal_sane(void **state) {
  (void)state;
  static char text[1 << 18];
  size_t have = 0;
  char name[CT_PTY_NAME];
  const int terminal = ct_pty_open(name);
  const pid_t job = start_job("train --device emu: --epochs 100000" LEARN);
  const pid_t top = start_on_terminal(name);
  for (unsigned ms = 0, pressed = 0; ms < PATIENCE_MS && have < sizeof text - 1; ms += STEP_MS) {
    struct pollfd p = {.fd = terminal, .events = POLLIN};
    if (poll(&p, 1, STEP_MS) > 0) {
      const ssize_t n = read(terminal, text + have, sizeof text - 1 - have);
      if (n <= 0) break; /* the other side is closed */
      have += (size_t)n;
      text[have] = 0;
    }
    if (!pressed && count_of(text, "\33[H") >= 2) {
      kill(top, SIGINT);
      pressed = 1;
    }
  }
  const int status = end_job(top, 0);
  end_job(job, SIGINT);
  close(terminal);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  assert_int_equal(strncmp(text, "\33[?1049h\33[?25l", 14), 0);
  assert_true(have > 16 && !strcmp(text + have - 14, "\33[?25h\33[?1049l"));
  assert_non_null(strstr(text, "queues"));
  assert_non_null(strstr(text, "not known yet, or without time, as on emu:"));
}

/* ---- The simulated core ---- */

/* A device that cannot be watched is asked for its counters: a product keeps the array busy for as
 * many cycles as it has rows. */
static void units_by_counters(void **state) {
  (void)state;
  enum { N = 64, ROWS = N / 16 * N / 16 * N };
  float x[3 * N * N] = {1};
  struct live l;
  ct_device *dev;
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  assert_int_equal(ct_open("sim:", &dev), 0);
  live_open(&l, "test", "sim:", dev);
  l.can_watch = false;
  snprintf(address.sun_path, sizeof address.sun_path, "%s", l.path);
  const int s = socket(AF_UNIX, SOCK_STREAM, 0);
  assert_int_equal(connect(s, (const struct sockaddr *)&address, sizeof address), 0);
  json_t *line = live_begin(&l);
  assert_non_null(line);
  assert_null(live_begin(&l)); /* four a second */
  assert_int_equal(json_array_size(cli_at(line, "units")), 0);
  const double before = cli_number_at(line, "cycle");
  live_end(&l, line);
  assert_int_equal(ct_matmul(dev, CT_TRAINING, N, N, N, x, x + N * N, x + 2 * N * N, NULL), 0);
  cli_sleep_ms(300);
  line = live_begin(&l);
  assert_non_null(line);
  json_t *mxu = json_array_get(cli_at(line, "units"), 2);
  const double cycles = cli_number_at(line, "cycle") - before;
  assert_string_equal(json_string_value(cli_at(mxu, "name")), "MXU");
  assert_float_equal(cli_number_at(mxu, "training") * cycles, ROWS, 0.5);
  assert_float_equal(cli_number_at(mxu, "inference"), 0, 1e-9);
  live_end(&l, line);
  char text[4096];
  const ssize_t n = recv(s, text, sizeof text, 0);
  assert_true(n > 0 && text[n - 1] == '\n');
  close(s);
  live_close(&l);
  live_close(&l);
  ct_close(dev);
}

#define SIM                                                                                  \
  "colocate --samples 64 --layers 64-16-10 --batch 16 --epochs 2 --requests 120 --load 0.6 " \
  "--seed "                                                                                  \
  "3"

static json_t *results(const char *name) {
  json_t *root = json_load_file(cli_path(name), 0, NULL);
  assert_non_null(root);
  return root;
}

static void watching_changes_nothing(void **state) {
  (void)state;
  char args[512];
  snprintf(args, sizeof args, SIM " --json %s", cli_path("alone.json"));
  free(cli_expect(0, "", args));
  snprintf(args, sizeof args, SIM " --json %s", cli_path("watched.json"));
  const pid_t job = start_job(args);
  json_t *last = NULL;
  for (unsigned i = 0; i < 3 && is_there(socket_of(job)); ++i) {
    struct cli_run run = cli_run("top --json --lines 2", 0);
    char *second = strchr(run.out, '\n');
    json_t *line = second ? json_loads(second + 1, 0, NULL) : NULL;
    if (line) {
      json_decref(last);
      last = line;
    }
    cli_run_free(&run);
  }
  const int status = end_job(job, 0);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  assert_non_null(last);
  const json_t *units = cli_at(last, "units");
  assert_int_equal(json_array_size(units), 6);
  for (size_t i = 0; i < 6; ++i) {
    json_t *unit = json_array_get(units, i);
    const double busy = cli_number_at(unit, "inference") + cli_number_at(unit, "training");
    assert_true(busy >= 0 && busy <= 1);
  }
  assert_true(cli_number_at(last, "cycle") > 0);
  json_decref(last);
  json_t *a = results("alone.json"), *b = results("watched.json");
  static const char *const same[] = {"serve", "serve_alone", "train", "train_alone", "ratio"};
  for (size_t i = 0; i < sizeof same / sizeof *same; ++i)
    if (!json_equal(cli_at(a, same[i]), cli_at(b, same[i])))
      fail_msg("%s differs if somebody looks on", same[i]);
  json_decref(a);
  json_decref(b);
}

/* The requests that measure the capacity are none of those that are asked for, and the percentage
 * says what it is of. */
static void what_is_served_is_what_was_asked_for(void **state) {
  (void)state;
  const pid_t job = start_job("colocate --samples 160 --requests 200");
  const pid_t top = cli_start("top --json", cli_path("top.out"), cli_path("top.err"));
  unsigned capacity = 0, serving = 0;
  for (unsigned ms = 0; ms < PATIENCE_MS && !serving; ms += 10 * STEP_MS) {
    char *out = cli_slurp(cli_path("top.out"), NULL), *rest = NULL;
    capacity = 0;
    for (char *text = strtok_r(out, "\n", &rest); text; text = strtok_r(NULL, "\n", &rest)) {
      json_t *line = json_loads(text, 0, NULL);
      if (!line) continue; /* half of one */
      const char *run = json_string_value(cli_at(line, "run"));
      const bool shown = json_object_get(line, "requests") != NULL;
      capacity += !strcmp(run, "capacity");
      serving += shown;
      if (shown) {
        assert_string_not_equal(run, "capacity");
        assert_int_equal(cli_number_at(line, "requests.count"), 200);
      }
      json_decref(line);
    }
    free(out);
    cli_sleep_ms(10 * STEP_MS);
  }
  char *out = cli_expect(0, "", "top --lines 1");
  assert_non_null(strstr(out, "% of the whole job)"));
  free(out);
  end_job(job, SIGKILL);
  end_job(top, 0);
  assert_true(capacity && serving);
}

/* A run that goes on from a file counts steps and percents from the model's beginning. */
static void a_resumed_run_agrees_with_its_steps(void **state) {
  (void)state;
  char args[256];
  snprintf(args, sizeof args, "train --device emu: --epochs 500 --save %s" LEARN,
           cli_path("m.ctm"));
  free(cli_expect(0, "", args));
  snprintf(args, sizeof args, "train --device emu: --epochs 100000 --resume %s" LEARN,
           cli_path("m.ctm"));
  const pid_t job = start_job(args);
  json_t *line = cli_expect_json("top --json --lines 1");
  const double done = cli_number_at(line, "steps.done"), count = cli_number_at(line, "steps.count");
  assert_true(done >= 5000 && count == 1000000);
  assert_float_equal(cli_number_at(line, "fraction"), done / count, 1e-4);
  json_decref(line);
  end_job(job, SIGINT);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_job_begins),
      cmocka_unit_test(lines_of_a_job),
      cmocka_unit_test(a_job_that_is_killed),
      cmocka_unit_test(a_reader_who_sleeps),
      cmocka_unit_test(a_resumed_run_agrees_with_its_steps),
      cmocka_unit_test(what_is_served_is_what_was_asked_for),
      cmocka_unit_test(leaves_the_terminal_sane),
      cmocka_unit_test(watching_changes_nothing),
      cmocka_unit_test(units_by_counters),
  };
  return cmocka_run_group_tests(tests, set_up, cli_remove_folder);
}
