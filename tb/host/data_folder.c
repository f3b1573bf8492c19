/* SPDX-License-Identifier: Apache-2.0 */
#include "data_folder.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <zlib.h>

#include "ct_tb.h"

static char folder[64];

int folder_make(void **state) {
  (void)state;
  snprintf(folder, sizeof folder, "/tmp/ct_test_data.XXXXXX");
  return mkdtemp(folder) ? 0 : -1;
}

int folder_drop(void **state) {
  (void)state;
  folder_empty();
  return rmdir(folder);
}

const char *folder_name(void) {
  return folder;
}

const char *in_folder(const char *name) {
  static char path[512];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

void folder_empty(void) {
  DIR *dir = opendir(folder);
  assert_non_null(dir);
  const struct dirent *e;
  while ((e = readdir(dir)))
    if (e->d_name[0] != '.') remove(in_folder(e->d_name));
  closedir(dir);
}

void put(const char *name, const void *bytes, size_t n) {
  FILE *f = fopen(in_folder(name), "wb");
  assert_non_null(f);
  assert_int_equal(fwrite(bytes, 1, n, f), n);
  assert_int_equal(fclose(f), 0);
}

void put_gz(const char *name, const void *bytes, size_t n) {
  gzFile f = gzopen(in_folder(name), "wb");
  assert_non_null(f);
  assert_int_equal(gzwrite(f, bytes, (unsigned)n), n);
  assert_int_equal(gzclose(f), 0);
}
