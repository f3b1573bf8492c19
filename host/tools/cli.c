/* SPDX-License-Identifier: Apache-2.0 */
#include "cli.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

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

int cli_fail_device(const ct_device *dev, int error, const char *what) {
  const char *text = dev ? ct_last_error(dev) : "";
  return cli_fail("%s: %s", what, *text ? text : ct_strerror(error));
}

/* ---- Options ---- */

error_t cli_common(int key, char *arg, const struct argp_state *state, const char **device,
                   const char **json) {
  if (key == CLI_KEY_DEVICE && device)
    *device = arg;
  else if (key == CLI_KEY_JSON && json)
    *json = arg;
  else if (key == ARGP_KEY_ARG)
    argp_error(state, "\"%s\" is one argument too many", arg);
  else
    return ARGP_ERR_UNKNOWN;
  return 0;
}

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
  return cli_fail("cannot open the device %s: %s", uri, *why ? why : ct_strerror(rc));
}

int cli_counter_index(const char *name) {
  const char *have;
  for (size_t i = 0; (have = ct_counter_name(i)); ++i)
    if (strcmp(have, name) == 0) return (int)i;
  return -1;
}

int cli_counter(ct_device *dev, enum ct_queue queue, int index, uint64_t *value) {
  uint64_t values[CT_MAX_COUNTERS] = {0};
  if (index < 0 || index >= CT_MAX_COUNTERS) return CT_ERR_UNSUPPORTED;
  const int rc = ct_counters(dev, queue, values, (size_t)index + 1);
  *value = values[index];
  return rc < 0 ? rc : 0;
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

json_t *cli_json_ratio(double a, double b) {
  return isfinite(a) && isfinite(b) && b > 0 ? json_real(a / b) : json_null();
}

int cli_json_write(const char *path, json_t *root) {
  int failed = 0;
  const size_t flags = JSON_INDENT(2) | JSON_REAL_PRECISION(9);
  if (path && strcmp(path, "-") == 0) {
    failed = json_dumpf(root, stdout, flags) || putchar('\n') < 0 || fflush(stdout);
  } else if (path) {
    FILE *file = fopen(path, "w");
    failed = !file || json_dumpf(root, file, flags) || fputc('\n', file) < 0;
    if (file && fclose(file)) failed = 1;
  }
  json_decref(root);
  if (failed) return cli_fail("%s: the results cannot be written: %s", path, strerror(errno));
  return 0;
}

int cli_writable(const char *path) {
  char folder[4096] = ".";
  if (!path || !strcmp(path, "-") || access(path, W_OK) == 0) return 0;
  if (errno == ENOENT) {
    const char *slash = strrchr(path, '/');
    const size_t len = slash ? (size_t)(slash - path) + 1 : 0;
    if (len && len < sizeof folder) snprintf(folder, sizeof folder, "%.*s", (int)len, path);
    if (access(folder, W_OK) == 0) return 0;
  }
  return cli_fail("%s: cannot be written: %s", path, strerror(errno));
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
  action.sa_flags = (int)SA_RESETHAND;
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
