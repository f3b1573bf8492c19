/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `coltrain top`: connects to a running job (live.h) and shows its lines, on a terminal as a screen
 * that is redrawn, elsewhere one below the other.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli.h"
#include "live.h"
#include "top_view.h"

/* ROOM: of the longest line. QUIET_MS: for so long a job may say nothing. WAIT_MS: between two
 * looks for Ctrl-C. */
enum { ROOM = 16384, QUIET_MS = 60000, WAIT_MS = 200 };

struct options {
  long pid;
  uint64_t lines; /* 0: until the job ends */
  bool json;
};

struct top {
  const struct options *o;
  int socket;
  bool terminal, color;
  char text[ROOM];
  size_t have;
  uint64_t shown;
};

static void take_pid(void *input, const char *arg, const struct argp_state *state) {
  struct options *o = input;
  if (state->arg_num) argp_error(state, "\"%s\" is one argument too many", arg);
  o->pid = (long)cli_count(state, "PID", arg, 1, 1u << 30);
}

/* ---- The terminal ---- */

static unsigned columns(void) {
  struct winsize size;
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col - 1u : 79;
}

/* The alternate screen, without a cursor; leaving it brings back what was there before. */
static void enter(struct top *t) {
  const char *term = getenv("TERM"), *no_color = getenv("NO_COLOR");
  t->terminal = !t->o->json && isatty(STDOUT_FILENO) && term && strcmp(term, "dumb") != 0;
  t->color = t->terminal && !(no_color && *no_color);
  if (t->terminal) fputs("\33[?1049h\33[?25l", stdout);
}

static void leave(struct top *t) {
  if (t->terminal) fputs("\33[?25h\33[?1049l", stdout);
  fflush(stdout);
}

/* ---- Lines ---- */

static void show(struct top *t, const char *text) {
  json_t *line = json_loads(text, 0, NULL);
  if (!json_is_object(line)) {
    json_decref(line);
    return;
  }
  if (t->o->json) {
    puts(text);
  } else if (t->terminal) {
    fputs("\33[H", stdout);
    top_screen(stdout, line, columns(), t->color);
    fputs("\33[J\nCtrl-C leaves; the job goes on\33[K", stdout);
  } else {
    top_line(stdout, line);
  }
  fflush(stdout);
  ++t->shown;
  json_decref(line);
}

/* Shows the whole lines of what has come. */
static void take(struct top *t) {
  char *begin = t->text, *end;
  t->text[t->have] = 0;
  while ((end = strchr(begin, '\n')) && (!t->o->lines || t->shown < t->o->lines)) {
    *end = 0;
    show(t, begin);
    begin = end + 1;
  }
  t->have = strlen(begin);
  memmove(t->text, begin, t->have);
}

/* Until the job ends, enough lines are shown or Ctrl-C is pressed. */
static int follow(struct top *t) {
  unsigned quiet = 0;
  while (!cli_stopped() && (!t->o->lines || t->shown < t->o->lines)) {
    struct pollfd p = {.fd = t->socket, .events = POLLIN};
    const int ready = poll(&p, 1, WAIT_MS);
    quiet = ready == 0 ? quiet + WAIT_MS : 0;
    if (quiet >= QUIET_MS) return cli_fail("the job has said nothing for a minute");
    if (ready <= 0) continue;
    const ssize_t n = recv(t->socket, t->text + t->have, ROOM - 1 - t->have, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return 0; /* it has ended */
    t->have += (size_t)n;
    take(t);
    if (t->have == ROOM - 1) t->have = 0; /* no job sends such a line */
  }
  return 0;
}

static int no_job(const struct options *o) {
  if (o->pid)
    return cli_fail("process %ld is no coltrain colocate or train that runs here", o->pid);
  return cli_fail(
      "no job runs here; coltrain colocate or coltrain train in another terminal is one");
}

int verb_top(int argc, char **argv) {
  static const struct cli_option options[] = {
      {"lines", "N", "End after N updates, four a second (when the job ends)",
       CLI_COUNT_AT(struct options, lines, 1, 1000000000)},
      {"json", NULL, "Print each update as a line of JSON", CLI_FLAG_AT(struct options, json)}};
  static const struct cli_command command = {
      CLI_COMMAND(options), .arg = take_pid, .args = "[PID]",
      .doc =
          "Shows what a running coltrain colocate or train does: queues, how busy each unit is for "
          "inference and for training, latency, training rate.\vPID is its process number; "
          "without, "
          "the job that began last is shown. Watching does not change what a simulated device "
          "does. "
          "Ctrl-C leaves; the job goes on. Where standard output is no terminal, each update is "
          "one "
          "line.\n\nExample:\n  coltrain top\n"};
  struct options o = {.pid = 0};
  unsigned jobs = 0;
  if (cli_options(&command, argc, argv, &o)) return 1;
  static struct top t; /* NOLINT: large for a stack */
  t = (struct top){.o = &o, .socket = live_connect(o.pid, &jobs)};
  if (t.socket < 0) return no_job(&o);
  if (!o.pid && jobs > 1 && !o.json)
    fprintf(stderr, "%u jobs run; this is the newest, coltrain top PID shows another\n", jobs);
  cli_catch_stop();
  enter(&t);
  const int status = follow(&t);
  leave(&t);
  close(t.socket);
  if (!status && !cli_stopped() && t.terminal) puts("The job has ended.");
  return status;
}
