/* SPDX-License-Identifier: Apache-2.0 */
/* Folders with arrays of images and labels as .npy files, and .npz archives of such. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "ct_folder.h"
#include "ct_npy.h"
#include "ct_source.h"
#include "ct_zip.h"

enum {
  kLabelMost = 255,
  kFeaturesMost = 1 << 24,
};

/* One part's two files, and what is in them. */
struct files {
  char x_path[CT_SOURCE_PATH], y_path[CT_SOURCE_PATH];
  struct ct_npy_array x, y;
};

/* Names of x and y of the training part, and of the test part, or none. */
struct names {
  const char *train[2], *test[2];
};
static const struct names kNames[] = {
    {{"x_train.npy", "y_train.npy"}, {"x_test.npy", "y_test.npy"}},
    {{"train_x.npy", "train_y.npy"}, {"test_x.npy", "test_y.npy"}},
    {{"x.npy", "y.npy"}, {NULL, NULL}},
};

/* Where the arrays are: a folder, or an archive. */
struct place {
  const struct ct_fault *f;
  const struct ct_zip *zip; /* NULL: a folder */
};

/* The path of a file in there; false if it is not there, or cannot have one. */
static bool path_of(const struct place *p, const char *name, char *path) {
  struct stat st;
  const int n = snprintf(path, CT_SOURCE_PATH, "%s/%s", p->f->file, name);
  if (n <= 0 || n >= CT_SOURCE_PATH) return false;
  if (p->zip) return ct_zip_has(p->zip, name);
  return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

static int read_member(const struct place *p, const char *name, const char *path,
                       struct ct_npy_array *a) {
  uint8_t *data;
  size_t bytes;
  int rc = ct_zip_read(p->zip, name, &data, &bytes);
  FILE *file = rc == 0 && bytes ? fmemopen(data, bytes, "rb") : NULL;
  if (rc == 0 && !file)
    rc = ct_fault_say(p->f, "%s of it is empty, or there is no memory to read it", name);
  if (rc == 0) rc = ct_npy_read_stream(file, path, a, p->f->why, p->f->whysize);
  if (file) fclose(file);
  free(data);
  return rc;
}

static int read_array(const struct place *p, const char *name, const char *path,
                      struct ct_npy_array *a) {
  return p->zip ? read_member(p, name, path, a)
                : ct_npy_read_array(path, a, p->f->why, p->f->whysize);
}

static int read_pair(const struct place *at, const char *const names[2], struct files *p) {
  if (!path_of(at, names[0], p->x_path))
    return ct_fault_say(at->f, "has no %s, an array of images", names[0]);
  if (!path_of(at, names[1], p->y_path))
    return ct_fault_say(at->f, "has no %s, the labels of %s", names[1], names[0]);
  if (read_array(at, names[0], p->x_path, &p->x)) return -1;
  return read_array(at, names[1], p->y_path, &p->y);
}

/* Height, width, channels: of N x H x W x C, N x H x W, or N x D. */
static int shape_of(const struct ct_fault *of, const struct ct_npy_array *x, size_t image[3]) {
  if (x->dims < 2)
    return ct_fault_say(of, "holds a 1-D array; images are N x D, N x H x W or N x H x W x C");
  image[0] = x->dims == 2 ? 1 : x->shape[1];
  image[1] = x->dims == 2 ? x->shape[1] : x->shape[2];
  image[2] = x->dims == 4 ? x->shape[3] : 1;
  const size_t most = x->dims == 2 ? kFeaturesMost : CT_FOLDER_SIDE;
  if (image[0] > most || image[1] > most || image[2] > most ||
      image[0] * image[1] > kFeaturesMost / image[2])
    return ct_fault_say(
        of, "claims images of %zux%zux%zu; at most %d for each and %d together are taken", image[0],
        image[1], image[2], CT_FOLDER_SIDE, kFeaturesMost);
  return 0;
}

/* Images as bytes, or as floats that are numbers: the array's memory becomes the part's. */
static int take_images(const struct ct_fault *of, struct ct_npy_array *x,
                       struct ct_dataset_part *part) {
  if (x->type == 'f') {
    const float *v = (const float *)(const void *)x->data;
    for (size_t i = 0; i < x->count; ++i)
      if (!isfinite(v[i]))
        return ct_fault_say(of, "value %zu of image %zu is not a finite number",
                            i % (x->count / x->shape[0]), i / (x->count / x->shape[0]));
    part->values = (float *)(void *)x->data;
  } else if (x->type == 'u' && x->item == 1) {
    part->pixels = x->data;
  } else {
    return ct_fault_say(of, "holds integers of %zu bytes; images are uint8 (0..255) or float32",
                        x->item);
  }
  part->count = x->shape[0];
  x->data = NULL;
  return 0;
}

static int take_labels(const struct ct_fault *of, const struct ct_npy_array *y,
                       struct ct_dataset_part *part) {
  if (y->type == 'f')
    return ct_fault_say(of, "holds float32; labels are integers of 0..%d", kLabelMost);
  if (y->count != y->shape[0])
    return ct_fault_say(of, "is no list: labels are N, or N x 1, integers");
  if (y->count != part->count)
    return ct_fault_say(of, "has %zu labels for %zu images", y->count, part->count);
  part->labels = malloc(y->count);
  if (!part->labels) return ct_fault_say(of, "no memory for %zu labels", y->count);
  for (size_t i = 0; i < y->count; ++i) {
    uint64_t label;
    const bool positive = ct_npy_integer(y, i, &label);
    if (!positive || label > kLabelMost)
      return ct_fault_say(of, "label %zu is %s %d; labels are 0..%d", i,
                          positive ? "more than" : "less than", positive ? kLabelMost : 0,
                          kLabelMost);
    part->labels[i] = (uint8_t)label;
  }
  return 0;
}

static int read_part(const struct place *at, const char *const names[2],
                     struct ct_dataset_part *part, size_t image[3]) {
  const struct ct_fault *f = at->f;
  struct files p = {0};
  int rc = read_pair(at, names, &p);
  const struct ct_fault x = {p.x_path, f->why, f->whysize}, y = {p.y_path, f->why, f->whysize};
  if (rc == 0) rc = shape_of(&x, &p.x, image);
  if (rc == 0) rc = take_images(&x, &p.x, part);
  if (rc == 0) rc = take_labels(&y, &p.y, part);
  ct_npy_free_array(&p.x);
  ct_npy_free_array(&p.y);
  return rc;
}

static int read_parts(struct ct_dataset *ds, const struct place *at, const struct names *names) {
  const struct ct_fault *f = at->f;
  size_t image[3], test[3];
  if (read_part(at, names->train, &ds->train, image)) return -1;
  if (names->test[0]) {
    if (read_part(at, names->test, &ds->test, test)) return -1;
    if (memcmp(image, test, sizeof image) != 0)
      return ct_fault_say(f, "its training images are %zux%zux%zu but its test images %zux%zux%zu",
                          image[0], image[1], image[2], test[0], test[1], test[2]);
    if ((ds->train.values == NULL) != (ds->test.values == NULL))
      return ct_fault_say(f, "%s and %s are of different types: both uint8 or both float32",
                          names->train[0], names->test[0]);
  }
  ds->height = (uint32_t)image[0];
  ds->width = (uint32_t)image[1];
  ds->channels = (uint32_t)image[2];
  ds->scale = ds->train.values ? 1.0f : 1.0f / 256;
  return 0;
}

static int read_place(struct ct_dataset *ds, const struct place *p) {
  char path[CT_SOURCE_PATH];
  for (size_t i = 0; i < sizeof kNames / sizeof *kNames; ++i)
    if (path_of(p, kNames[i].train[0], path) || path_of(p, kNames[i].train[1], path))
      return read_parts(ds, p, &kNames[i]);
  return ct_fault_say(p->f,
                      "has .npy files, but neither x_train.npy, y_train.npy, x_test.npy and "
                      "y_test.npy, nor train_x.npy and so on, nor x.npy and y.npy");
}

int ct_npyset_read(struct ct_dataset *ds, const struct ct_fault *f) {
  return read_place(ds, &(struct place){.f = f});
}

int ct_npzset_read(struct ct_dataset *ds, const struct ct_fault *f) {
  struct ct_zip zip;
  if (ct_zip_open(&zip, f)) return -1;
  const int rc = read_place(ds, &(struct place){f, &zip});
  ct_zip_close(&zip);
  return rc;
}
