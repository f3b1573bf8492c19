/* SPDX-License-Identifier: Apache-2.0 */
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "ct_commit.h" /* CT_COMMIT */

/* ---- Errors ---- */

int cli_fail(const char *format, ...) {
  va_list args;
  fflush(stdout);
  fputs("coltrain: ", stderr);
  va_start(args, format);
  vfprintf(stderr, format, args);
  va_end(args);
  fputc('\n', stderr);
  return 1;
}

/* At the end, whichever way it came. */
static void check_output(void) {
  errno = 0;
  if (fflush(stdout) == 0 && !ferror(stdout)) return;
  cli_fail("standard output: cannot be written%s%s", errno ? ": " : "",
           errno ? strerror(errno) : "");
  _exit(1);
}

/* What is closed would be the next file that is opened: it is given a place that takes nothing. */
void cli_guard_output(void) {
  for (int fd = 0; fd <= 2; ++fd)
    if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == 1 ? O_RDONLY : O_RDWR) != fd) _exit(1);
  atexit(check_output);
}

int cli_fail_device(const ct_device *dev, int error, const char *what) {
  const char *text = dev ? ct_last_error(dev) : "";
  return cli_fail("%s: %s", what, *text ? text : ct_strerror(error));
}

/* ---- Options ---- */

uint64_t cli_count(const struct argp_state *state, const char *option, const char *text,
                   uint64_t min, uint64_t max) {
  char *end = NULL;
  errno = 0;
  const unsigned long long n = strtoull(text, &end, 10);
  if (*text >= '0' && *text <= '9' && !*end && !errno && n >= min && n <= max) return n;
  if (max == UINT64_MAX)
    argp_error(state, "%s: \"%s\" is not a whole number of at least %" PRIu64, option, text, min);
  else
    argp_error(state, "%s: \"%s\" is not a whole number of %" PRIu64 "..%" PRIu64, option, text,
               min, max);
  return min;
}

float cli_real(const struct argp_state *state, const char *option, const char *text, float min,
               float max) {
  char *end = NULL;
  const float x = strtof(text, &end);
  if (end != text && !*end && x >= min && x <= max) return x;
  if (isinf(min) && isinf(max))
    argp_error(state, "%s: \"%s\" is not a number", option, text);
  else
    argp_error(state, "%s: \"%s\" is not a number of %g..%g", option, text, (double)min,
               (double)max);
  return min;
}

/* ---- Devices ---- */

int cli_open(const char *uri, ct_device **dev) {
  char why[512] = "";
  const struct ct_options options = {.why = why, .why_size = sizeof why};
  const int rc = ct_open_with(uri, &options, dev);
  if (rc >= 0) return 0;
  return cli_fail("cannot open the device \"%s\": %s", uri, *why ? why : ct_strerror(rc));
}

int cli_counter_index(const char *name) {
  const char *have;
  for (size_t i = 0; (have = ct_counter_name(i)); ++i)
    if (strcmp(have, name) == 0) return (int)i;
  return -1;
}

/* ---- Models ---- */

static uint32_t crc32_floats(uint32_t crc, const float *x, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    uint32_t bits;
    memcpy(&bits, &x[i], sizeof bits);
    const uint8_t bytes[4] = {(uint8_t)bits, (uint8_t)(bits >> 8), (uint8_t)(bits >> 16),
                              (uint8_t)(bits >> 24)};
    crc = (uint32_t)crc32(crc, bytes, sizeof bytes);
  }
  return crc;
}

int cli_weights_crc32(ct_model *model, uint32_t *crc) {
  struct ct_model_info info;
  int rc = ct_model_info(model, &info);
  *crc = 0;
  for (size_t i = 0; rc >= 0 && i < info.layers; ++i) {
    const size_t outs = info.widths[i + 1], weights = outs * info.widths[i];
    float *w = malloc((weights + outs) * sizeof *w);
    if (!w) return CT_ERR_MEMORY;
    rc = ct_model_get(model, i, w, w + weights, NULL, NULL);
    if (rc >= 0) *crc = crc32_floats(*crc, w, weights + outs);
    free(w);
  }
  return rc < 0 ? rc : 0;
}

int cli_network_crc32(ct_network *network, uint32_t *crc) {
  ct_graph *g = ct_network_graph(network);
  struct ct_graph_info info;
  int rc = ct_graph_info(g, &info);
  *crc = 0;
  for (size_t i = 1; rc >= 0 && i <= info.tensors; ++i) {
    struct ct_tensor_info t;
    rc = ct_graph_tensor_info(g, (int)i, &t);
    if (rc < 0 || (t.role != CT_ROLE_WEIGHT && t.role != CT_ROLE_STATE)) continue;
    float *x = malloc(t.elements * sizeof *x);
    rc = x ? ct_network_read(network, (int)i, x, t.elements) : CT_ERR_MEMORY;
    if (rc >= 0) *crc = crc32_floats(*crc, x, t.elements);
    if (rc == CT_ERR_ARG) rc = 0; /* nothing reads it, so it is nowhere: files leave it out, too */
    free(x);
  }
  return rc < 0 ? rc : 0;
}

uint32_t cli_argmax(const float *values, size_t n) {
  size_t best = 0;
  for (size_t i = 1; i < n; ++i)
    if (values[i] > values[best]) best = i;
  return (uint32_t)best;
}

/* ---- Results ---- */

json_t *cli_json_cycles(uint64_t cycles) {
  return cycles == CT_NO_CYCLE ? json_null() : json_integer((json_int_t)cycles);
}

json_t *cli_json_array(ct_device *dev) {
  struct ct_info info;
  if (ct_info(dev, &info) < 0) return json_null();
  return json_pack("[I, I]", (json_int_t)info.array_rows, (json_int_t)info.array_cols);
}

json_t *cli_json_number(double x) {
  return isfinite(x) ? json_real(x) : json_null();
}

json_t *cli_json_ratio(double a, double b) {
  return isfinite(a) && isfinite(b) && b > 0 ? json_real(a / b) : json_null();
}

/* The folder of a path, "." if it names none; returns the name in it. */
static const char *folder_of(const char *path, char *folder, size_t size) {
  const char *slash = strrchr(path, '/');
  const size_t length = slash ? (size_t)(slash - path) + 1 : 0;
  snprintf(folder, size, "%.*s", length ? (int)length : 1, length ? path : ".");
  return path + length;
}

static void add_version(json_t *root) {
  const char *commit = CT_COMMIT;
  if (!json_is_object(root)) return;
  json_object_set_new(root, "coltrain", json_string(CT_VERSION_STRING));
  json_object_set_new(root, "commit", *commit ? json_string(commit) : json_null());
}

int cli_json_write(const char *path, json_t *root) {
  int failed = 0;
  if (path) add_version(root);
  const size_t flags = JSON_INDENT(2) | JSON_REAL_PRECISION(9);
  if (path && strcmp(path, "-") == 0) {
    failed = json_dumpf(root, stdout, flags) || putchar('\n') < 0 || fflush(stdout);
  } else if (path) {
    FILE *file = fopen(path, "w");
    failed = !file || json_dumpf(root, file, flags) || fputc('\n', file) < 0;
    if (file && fclose(file)) failed = 1;
  }
  json_decref(root);
  if (!failed) return 0;
  if (strcmp(path, "-") == 0) return 1; /* check_output() says so */
  return cli_fail("%s: the results cannot be written: %s", path, strerror(errno));
}

static int check_writable(const char *path) {
  char folder[4096] = ".";
  struct stat st;
  if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
    errno = EISDIR;
  } else {
    if (access(path, W_OK) == 0) return 0;
    if (errno == ENOENT) {
      folder_of(path, folder, sizeof folder);
      if (access(folder, W_OK) == 0) return 0;
    }
  }
  return cli_fail("%s: cannot be written: %s", path, strerror(errno));
}

/* Whether both are one file, or would be: of one that is not there yet the folder counts. What is
 * no plain file, such as /dev/null, is not overwritten. */
static bool same_file(const char *a, const char *b) {
  struct stat x, y;
  const bool has_x = stat(a, &x) == 0, has_y = stat(b, &y) == 0;
  if (has_x != has_y) return false;
  if (has_x) return S_ISREG(x.st_mode) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
  char folder[2][4096];
  const char *name[2] = {folder_of(a, folder[0], sizeof folder[0]),
                         folder_of(b, folder[1], sizeof folder[1])};
  return strcmp(name[0], name[1]) == 0 && stat(folder[0], &x) == 0 && stat(folder[1], &y) == 0 &&
         x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* Whether a would replace a data set's file in the folder b. */
static bool is_data_of(const char *a, const char *b) {
  struct stat x, y;
  char folder[4096];
  const char *name = folder_of(a, folder, sizeof folder);
  return strstr(name, "-ubyte") && access(a, F_OK) == 0 && stat(b, &y) == 0 && S_ISDIR(y.st_mode) &&
         stat(folder, &x) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static bool is_file(const struct cli_file *f) {
  return f->path && *f->path && strcmp(f->path, "-") != 0;
}

int cli_files(const struct cli_file *files, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const struct cli_file *f = &files[i];
    if (!f->path || f->use < CLI_WRITE) continue;
    if (!strcmp(f->path, "-") && !strcmp(f->option, "--json")) continue;
    if (!is_file(f))
      return cli_fail("%s \"%s\" is no file; name one, such as /dev/stdout", f->option, f->path);
    for (size_t k = 0; k < count; ++k) {
      const struct cli_file *other = &files[k];
      if (k == i || !is_file(other) || (f->use == CLI_REPLACE && other->use == CLI_RESUME))
        continue;
      if (same_file(f->path, other->path) || is_data_of(f->path, other->path))
        return cli_fail("%s %s is also %s %s, which it would overwrite; choose another name",
                        f->option, f->path, other->option, other->path);
    }
    if (check_writable(f->path)) return 1;
  }
  return 0;
}

FILE *cli_text(const char *json) {
  return json && strcmp(json, "-") == 0 ? stderr : stdout;
}

/* ---- Stopping ---- */

static volatile sig_atomic_t stopped; /* a signal handler has nothing else to write to */

static void note_stop(int signal) {
  (void)signal;
  stopped = 1;
}

void cli_catch_stop(void) {
  struct sigaction action = {0};
  action.sa_handler = note_stop;
  /* What is being printed is printed to its end: a write that is cut short is an error of stdout.
   * Waits (poll, sleep) end all the same. */
  action.sa_flags = (int)(SA_RESETHAND | SA_RESTART);
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, NULL);
  sigaction(SIGTERM, &action, NULL);
}

bool cli_stopped(void) {
  return stopped;
}

int cli_tell_stopped(FILE *text) {
  if (stopped) fputs("Stopped; this is what was measured so far.\n", text);
  return stopped;
}
