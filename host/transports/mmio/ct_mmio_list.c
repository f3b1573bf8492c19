/* SPDX-License-Identifier: Apache-2.0 */
/* The devices of this machine that may be a core: UIO devices, and PCI functions of the class of
 * accelerators. Their registers are not read: those of another device may mind. */
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "coltrain/coltrain.h"
#include "ct_mmio_file.h"

enum { LEAST = 4096, ACCELERATOR = 0x12, RESOURCES = 6 };

#define UIO_FOLDER "/sys/class/uio"
#define PCI_FOLDER "/sys/bus/pci/devices"

/* What found() is told with. */
struct listing {
  ct_transport_found *found;
  void *arg;
};

/* Whether the file could be opened now, and nobody else has it. */
static int try_file(const char *path, char *why, size_t why_size) {
  struct ct_mmio_file file;
  struct ct_mmio_area area;
  int err = ct_mmio_file_open(&file, path, why, why_size);
  if (!err) err = ct_mmio_area(&file, 0, 0, &area, why, why_size);
  if (!err) err = ct_mmio_lock(&file, &area, LEAST, why, why_size);
  ct_mmio_file_close(&file);
  return err;
}

/* The first line of a file; "" if it cannot be read. */
static void read_line(const char *path, char *line, size_t size) {
  FILE *file = fopen(path, "re");
  if (!file || !fgets(line, (int)size, file)) *line = 0;
  line[strcspn(line, "\n")] = 0;
  if (file) fclose(file);
}

static void list_uio(const struct listing *l, const char *device) {
  char path[CT_MMIO_PATH], name[64], text[CT_MMIO_PATH], why[256];
  snprintf(path, sizeof path, UIO_FOLDER "/%.32s/name", device);
  read_line(path, name, sizeof name);
  snprintf(text, sizeof text, "UIO device \"%s\"%s", name,
           strstr(name, "coltrain") ? "" : "; whether it is a core shows when it is opened");
  snprintf(path, sizeof path, "/dev/%.32s", device);
  const int err = try_file(path, why, sizeof why);
  l->found(l->arg, path, err ? why : text, err);
}

/* A core's functions have registers in BAR 0 and memory in the largest other one. */
static int memory_bar(const char *folder, uint64_t *size) {
  int bar = 0;
  *size = 0;
  for (int i = 1; i < RESOURCES; ++i) {
    char path[CT_MMIO_PATH];
    struct stat st;
    snprintf(path, sizeof path, "%s/resource%d", folder, i);
    if (stat(path, &st) || (uint64_t)st.st_size <= *size) continue;
    *size = (uint64_t)st.st_size;
    bar = i;
  }
  return bar;
}

static void list_pci(const struct listing *l, const char *function) {
  char folder[64], path[96], args[224], line[32], text[128], why[256];
  uint64_t size;
  struct stat st;
  snprintf(folder, sizeof folder, PCI_FOLDER "/%.32s", function);
  snprintf(path, sizeof path, "%s/class", folder);
  read_line(path, line, sizeof line);
  if (strtoul(line, NULL, 16) >> 16 != ACCELERATOR) return;
  snprintf(path, sizeof path, "%s/resource0", folder);
  const int bar = memory_bar(folder, &size);
  if (!bar || stat(path, &st) || st.st_size < LEAST) return;
  snprintf(args, sizeof args, "%s,mem=%s/resource%d", path, folder, bar);
  snprintf(text, sizeof text,
           "PCI function with %" PRIu64 " MiB; whether it is a core shows when it is opened",
           size >> 20);
  const int err = try_file(path, why, sizeof why);
  l->found(l->arg, args, err ? why : text, err);
}

static void each(const char *folder, const struct listing *l,
                 void (*list)(const struct listing *l, const char *name)) {
  DIR *dir = opendir(folder);
  for (struct dirent *e = dir ? readdir(dir) : NULL; e; e = readdir(dir))
    if (e->d_name[0] != '.') list(l, e->d_name);
  if (dir) closedir(dir);
}

int ct_mmio_list(ct_transport_found *found, void *arg) {
  const struct listing l = {found, arg};
  each(UIO_FOLDER, &l, list_uio);
  each(PCI_FOLDER, &l, list_pci);
  return CT_OK;
}
