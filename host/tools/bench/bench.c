/* SPDX-License-Identifier: Apache-2.0 */
#include "bench.h"

#include "cli.h"

int bench_write(const char *path, json_t *root, int status) {
  json_object_set_new(root, "stopped", json_boolean(cli_stopped()));
  json_object_set_new(root, "failed", json_boolean(status != 0));
  const int written = cli_json_write(path, root);
  return status | cli_tell_stopped(cli_text(path)) | written;
}

double bench_seconds(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

bool bench_exists(const char *uri, char *why, size_t size) {
  const struct ct_options options = {.why = why, .why_size = size};
  ct_device *dev;
  if (ct_open_with(uri, &options, &dev) < 0) return false;
  ct_close(dev);
  return true;
}
