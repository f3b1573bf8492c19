/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Folders with the binary batches of CIFAR. A record of CIFAR-10 is a label and 3,072 pixels, one
 * of CIFAR-100 two labels (of 20 coarse and of 100 fine classes) and the pixels: a plane of 32x32
 * for each of red, green and blue, which become the channels of each pixel here.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ct_folder.h"
#include "ct_source.h"

enum {
  kSide = 32,
  kPlane = kSide * kSide,
  kChannels = 3,
  kImage = kPlane * kChannels,
  kRecordsMax = 1 << 18, /* of a file: an answer to one that inflates without end */
};

/* How records begin: labels of so many classes, of which the last counts. */
struct kind {
  const char *name;
  size_t labels, record;
  uint8_t classes[2];
};
static const struct kind kKinds[] = {{"CIFAR-10", 1, 1 + kImage, {10}},
                                     {"CIFAR-100", 2, 2 + kImage, {20, 100}}};

/* A batch in memory. */
struct batch {
  const char *path;
  uint8_t *data;
  size_t bytes;
};

/* The first label out of range; count if there is none. */
static size_t bad_label(const struct kind *k, const struct batch *b, unsigned *label) {
  const size_t count = b->bytes / k->record;
  for (size_t i = 0; i < count; ++i)
    for (size_t j = 0; j < k->labels; ++j)
      if ((*label = b->data[i * k->record + j]) >= k->classes[j]) return i;
  return count;
}

/* The kind whose records the batch is made of. Where it might be both, by its labels. */
static const struct kind *kind_of(const struct batch *b) {
  unsigned label;
  const bool ten = b->bytes % kKinds[0].record == 0, hundred = b->bytes % kKinds[1].record == 0;
  if (!hundred) return ten ? &kKinds[0] : NULL;
  return ten && bad_label(&kKinds[0], b, &label) == b->bytes / kKinds[0].record ? &kKinds[0]
                                                                                : &kKinds[1];
}

static int check_batch(const struct ct_fault *f, const struct kind **kind, const struct batch *b) {
  const struct ct_fault of = {b->path, f->why, f->whysize};
  unsigned label = 0;
  if (!*kind) {
    *kind = kind_of(b);
    if (!*kind)
      return ct_fault_say(&of,
                          "its %zu bytes are no whole number of records, neither of CIFAR-10 (%zu "
                          "bytes) nor of CIFAR-100 (%zu); it was cut short, or is no batch",
                          b->bytes, kKinds[0].record, kKinds[1].record);
  }
  const struct kind *k = *kind;
  if (b->bytes % k->record)
    return ct_fault_say(&of,
                        "its %zu bytes are no whole number of records of %zu bytes, which the "
                        "batches before have (%s); it was cut short, or is of another kind",
                        b->bytes, k->record, k->name);
  const size_t bad = bad_label(k, b, &label);
  if (bad < b->bytes / k->record)
    return ct_fault_say(&of, "label %u of image %zu is out of range: %s is what its length says",
                        label, bad, k->name);
  return 0;
}

/* Puts a batch behind what the part has. */
static int append(const struct ct_fault *f, const struct kind *k, const struct batch *b,
                  struct ct_dataset_part *part) {
  const size_t more = b->bytes / k->record, count = part->count + more;
  uint8_t *pixels = realloc(part->pixels, count * kImage);
  if (pixels) part->pixels = pixels;
  uint8_t *labels = realloc(part->labels, count);
  if (labels) part->labels = labels;
  if (!pixels || !labels) return ct_fault_say(f, "no memory for %zu images", count);
  pixels += part->count * kImage;
  labels += part->count;
  for (const uint8_t *from = b->data; from < b->data + b->bytes; from += k->record) {
    *labels++ = from[k->labels - 1];
    for (size_t i = 0; i < kPlane; ++i)
      for (size_t c = 0; c < kChannels; ++c)
        *pixels++ = from[k->labels + c * kPlane + i];
  }
  part->count = count;
  return 0;
}

static int read_batch(const struct ct_fault *f, struct ct_dataset *ds, const struct kind **kind,
                      const char *name) {
  char path[CT_SOURCE_PATH];
  struct ct_source s;
  struct batch b = {path, NULL, 0};
  const int n = snprintf(path, sizeof path, "%s/%s", f->file, name);
  if (n < 0 || (size_t)n >= sizeof path)
    return ct_fault_say(f, "the name of the folder is too long");
  if (ct_source_open(&s, path, f)) return -1;
  int rc = ct_source_whole(&s, kRecordsMax * kKinds[1].record, &b.data, &b.bytes);
  ct_source_close(&s);
  if (rc == 0) rc = check_batch(f, kind, &b);
  if (rc == 0) rc = append(f, *kind, &b, strncmp(name, "test", 4) == 0 ? &ds->test : &ds->train);
  free(b.data);
  return rc;
}

int ct_cifar_read(struct ct_dataset *ds, const struct ct_fault *f, char *const *names,
                  size_t count) {
  const struct kind *kind = NULL;
  for (size_t i = 0; i < count; ++i)
    if (read_batch(f, ds, &kind, names[i])) return -1;
  if (!kind || ds->train.count == 0 || ds->test.count == 0)
    return ct_fault_say(
        f, "has no %s among its batches (test_batch.bin, test.bin); all of them are %s",
        ds->train.count ? "test batch" : "training batch",
        ds->train.count ? "training batches" : "test batches");
  ds->height = ds->width = kSide;
  ds->channels = kChannels;
  ds->classes = kind->classes[kind->labels - 1];
  ds->scale = 1.0f / 256;
  return 0;
}
