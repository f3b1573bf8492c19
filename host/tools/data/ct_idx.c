/* SPDX-License-Identifier: Apache-2.0 */
/* Folders with the four IDX files of MNIST. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "ct_folder.h"
#include "ct_source.h"

enum {
  kImagesMagic = 0x803, /* unsigned bytes, three dimensions */
  kLabelsMagic = 0x801,
};

static uint32_t be32(const uint8_t *b) {
  return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

/* The magic and its dimensions, each at least 1. */
static int header(struct ct_source *s, uint32_t magic, uint32_t *dims) {
  const struct ct_fault *f = &s->fault;
  const unsigned count = magic & 0xFF;
  uint8_t head[16];
  const unsigned need = 4 + 4 * count;
  const int got = ct_source_some(s, head, need);
  if (got < 0) return -1;
  const uint32_t found = got >= 4 ? be32(head) : 0;
  if (got >= 4 && found != magic && (found == kImagesMagic || found == kLabelsMagic))
    return ct_fault_say(f, "holds %s instead of %s; are the names exchanged?",
                        found == kImagesMagic ? "images" : "labels",
                        magic == kImagesMagic ? "images" : "labels");
  if (got >= 4 && found != magic)
    return ct_fault_say(f,
                        "begins with 0x%08x instead of 0x%08x; an IDX file of %u-D unsigned bytes "
                        "is needed",
                        (unsigned)found, (unsigned)magic, count);
  if ((unsigned)got < need)
    return ct_fault_say(f, "is shorter than the header of an IDX file; copy it again");
  for (unsigned i = 0; i < count; ++i)
    if ((dims[i] = be32(head + 4 + (size_t)4 * i)) == 0)
      return ct_fault_say(f, "is empty: one dimension is 0");
  return 0;
}

/* The bytes of so many images, or 0 and a sentence. */
static size_t image_bytes(const struct ct_fault *f, const uint32_t dims[3]) {
  if (dims[1] - 1 >= CT_FOLDER_SIDE || dims[2] - 1 >= CT_FOLDER_SIDE)
    ct_fault_write(f, "claims images of %ux%u; at most %dx%d are taken", (unsigned)dims[1],
                   (unsigned)dims[2], CT_FOLDER_SIDE, CT_FOLDER_SIDE);
  else if (dims[0] > SIZE_MAX / dims[1] / dims[2])
    ct_fault_write(f, "claims more images than this machine can address");
  else
    return (size_t)dims[0] * dims[1] * dims[2];
  return 0;
}

/* One file into *out; dims holds as many numbers as the magic has dimensions. */
static int read_file(const struct ct_fault *where, const char *path, uint32_t magic, uint32_t *dims,
                     uint8_t **out) {
  struct ct_source s;
  if (ct_source_open(&s, path, where)) return -1;
  int rc = header(&s, magic, dims);
  if (rc == 0) {
    const size_t need = magic == kImagesMagic ? image_bytes(&s.fault, dims) : dims[0];
    rc = need ? ct_source_all_of(&s, need, out) : -1;
  }
  ct_source_close(&s);
  return rc;
}

/* The file of a kind ("images-idx3") of a part by one of its usual names. */
static int find(const struct ct_fault *f, const char *const *parts, const char *kind, char *path) {
  static const char *const ends[] = {"", ".gz"};
  for (; *parts; ++parts)
    for (unsigned i = 0; i < 4; ++i) {
      const int n = snprintf(path, CT_SOURCE_PATH, "%s/%s-%.6s%c%s-ubyte%s", f->file, *parts, kind,
                             i < 2 ? '-' : '.', kind + 7, ends[i % 2]);
      struct stat st;
      if (n < 0 || n >= CT_SOURCE_PATH)
        return ct_fault_say(f, "the name of the folder is too long");
      if (stat(path, &st) == 0) return 0;
      if (errno != ENOENT) return ct_fault_say(f, "%s: %s", path, strerror(errno));
    }
  return ct_fault_say(f,
                      "has no %s-%s-ubyte, nor one with .gz; give a folder with the four IDX files "
                      "of MNIST",
                      parts[-1], kind);
}

static int read_part(const struct ct_fault *f, const char *const *parts, uint32_t *dims,
                     struct ct_dataset_part *part) {
  char path[CT_SOURCE_PATH];
  uint32_t labels = 0;
  if (find(f, parts, "images-idx3", path) ||
      read_file(f, path, kImagesMagic, dims, &part->pixels) ||
      find(f, parts, "labels-idx1", path) ||
      read_file(f, path, kLabelsMagic, &labels, &part->labels))
    return -1;
  if (labels != dims[0])
    return ct_fault_say(f, "has %u images but %u labels in %s", (unsigned)dims[0], (unsigned)labels,
                        path);
  part->count = labels;
  return 0;
}

int ct_idx_read(struct ct_dataset *ds, const struct ct_fault *f, uint32_t classes) {
  static const char *const train[] = {"train", NULL};
  static const char *const test[] = {"test", "t10k", NULL};
  uint32_t dims[3] = {0}, testdims[3] = {0};
  if (read_part(f, train, dims, &ds->train) || read_part(f, test, testdims, &ds->test)) return -1;
  if (testdims[1] != dims[1] || testdims[2] != dims[2])
    return ct_fault_say(f, "its training images are %ux%u but its test images %ux%u",
                        (unsigned)dims[1], (unsigned)dims[2], (unsigned)testdims[1],
                        (unsigned)testdims[2]);
  ds->height = dims[1];
  ds->width = dims[2];
  ds->channels = 1;
  ds->classes = classes;
  ds->scale = 1.0f / 256;
  return 0;
}
