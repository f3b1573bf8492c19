/* SPDX-License-Identifier: Apache-2.0 */
#include "ct_folder.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "ct_source.h"

/* More files than a data set has: a folder that was named by mistake is not looked through. */
enum { kFilesMost = 1000, kHead = 6 };

/* What is known of a folder: a file that begins as each kind does, and the batches. */
struct look {
  char idx[CT_SOURCE_PATH], npy[CT_SOURCE_PATH]; /* "" for none */
  char **batches;
  size_t count;
};

static bool ends(const char *name, const char *end) {
  const size_t n = strlen(name), m = strlen(end);
  return n > m && strcmp(name + n - m, end) == 0;
}

/* The first bytes of a file, gzipped or not; fewer, or none, where there are no more, or they
 * cannot be read (whoever reads the file says why). */
static int head_of(const char *path, uint8_t head[kHead]) {
  const struct ct_fault silent = {path, NULL, 0};
  struct ct_source s;
  if (ct_source_open(&s, path, &silent)) return 0;
  const int got = ct_source_some(&s, head, kHead);
  ct_source_close(&s);
  return got < 0 ? 0 : got;
}

/* Two zeros, a type and a number of dimensions: IDX of any kind, so that it is the reader who says
 * what is wrong with one. */
static bool is_idx(const uint8_t *head, int n) {
  return n >= 4 && head[0] == 0 && head[1] == 0 && head[2] >= 8 && head[2] <= 14 && head[3] >= 1 &&
         head[3] <= 4;
}

static int look_at(const struct ct_fault *f, const char *name, struct look *l) {
  char path[CT_SOURCE_PATH];
  uint8_t head[kHead];
  const int n = snprintf(path, sizeof path, "%s/%s", f->file, name);
  if (n < 0 || (size_t)n >= sizeof path)
    return ct_fault_say(f, "the name of the folder is too long");
  const int got = head_of(path, head);
  if (is_idx(head, got) && !*l->idx) snprintf(l->idx, sizeof l->idx, "%s", name);
  if (got == kHead && memcmp(head, "\x93NUMPY", kHead) == 0 && !*l->npy)
    snprintf(l->npy, sizeof l->npy, "%s", name);
  if (!ends(name, ".bin") && !ends(name, ".bin.gz")) return 0;
  l->batches[l->count] = strdup(name);
  return l->batches[l->count++] ? 0 : ct_fault_say(f, "no memory for its files' names");
}

static int look_through(const struct ct_fault *f, DIR *dir, struct look *l) {
  size_t files = 0;
  const struct dirent *e;
  while ((e = readdir(dir))) {
    if (e->d_name[0] == '.') continue;
    if (++files > kFilesMost)
      return ct_fault_say(f, "has more than %d files, which no data set has", kFilesMost);
    if (look_at(f, e->d_name, l)) return -1;
  }
  return 0;
}

static int by_name(const void *a, const void *b) {
  return strcmp(*(char *const *)a, *(char *const *)b);
}

static int read_as(struct ct_dataset *ds, const struct ct_fault *f, const struct look *l) {
  if (*l->idx && *l->npy)
    return ct_fault_say(f, "has IDX files (%s) and .npy files (%s); give a folder with one kind",
                        l->idx, l->npy);
  if (*l->idx) return ct_idx_read(ds, f, 0);
  if (*l->npy) return ct_npyset_read(ds, f);
  if (l->count == 0)
    return ct_fault_say(f,
                        "has no data set that is known: IDX files as of MNIST, batches of CIFAR "
                        "(*.bin) or .npy files");
  qsort(l->batches, l->count, sizeof *l->batches, by_name);
  return ct_cifar_read(ds, f, l->batches, l->count);
}

int ct_folder_read(struct ct_dataset *ds, const struct ct_fault *f) {
  struct look l = {"", "", calloc(kFilesMost, sizeof *l.batches), 0};
  DIR *dir = opendir(f->file);
  int rc = dir ? 0 : ct_fault_say(f, "cannot be opened: %s", strerror(errno));
  if (!l.batches) rc = ct_fault_say(f, "no memory for its files' names");
  if (rc == 0) rc = look_through(f, dir, &l);
  if (dir) closedir(dir);
  if (rc == 0) rc = read_as(ds, f, &l);
  for (size_t i = 0; i < l.count; ++i)
    free(l.batches[i]);
  free(l.batches);
  return rc;
}
