/* SPDX-License-Identifier: Apache-2.0 */
#include "bench.h"

#include "cli.h"

int bench_write(const char *path, json_t *root, int status) {
  json_object_set_new(root, "coltrain", json_string(CT_VERSION_STRING));
  json_object_set_new(root, "stopped", json_boolean(cli_stopped()));
  json_object_set_new(root, "failed", json_boolean(status != 0));
  const int written = cli_json_write(path, root);
  return status | cli_tell_stopped(cli_text(path)) | written;
}
