/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Labelled images, in memory as bytes: a pixel's value is byte * scale, and scale is a power of
 * two, so that every value is exact in FP32 (and 60,000 images of 28x28 take 47 MB instead of 188).
 * Only what is float32 in a file is float32 in memory.
 *
 *   digits         1,797 images 8x8 of 10 classes, inside the program; x/16 of 0..16, so 0..1.
 *                  Shuffled by the seed; the first 1,437 (80 %) train, the other 360 test.
 *   fashion-mnist  60,000 + 10,000 images 28x28 of 10 classes: Debian's package
 *                  dataset-fashion-mnist, in /usr/share/datasets/fashion-mnist; the environment
 *                  variable CT_DATASETS names another folder in place of /usr/share/datasets.
 *   random-HxWxC   1,024 training images and 256 test images of that size of 10 classes, drawn by
 * the seed (ct_random.c), for networks whose data are not there. a folder       of files of one
 * kind, which is seen from what is in them. Write ./digits for a folder named digits.
 *
 * Folders:
 *
 *   IDX    four files by MNIST's names: train-images-idx3-ubyte and train-labels-idx1-ubyte, and
 *          the same with t10k- or test-; "-idx" may be ".idx".
 *   CIFAR  the binary batches of CIFAR-10 or CIFAR-100 (fine labels): all files named *.bin, put
 *          together in the order of their names; those whose name begins with "test" are the test
 *          set. Images are 32x32 with three channels: red, green and blue of a pixel side by side.
 *   .npy   x_train.npy, y_train.npy, x_test.npy and y_test.npy, or train_x.npy and so on: images
 *          (N x D, N x H x W or N x H x W x C) of uint8 or float32, labels (N or N x 1) of any
 *          integers. Or x.npy and y.npy alone, which are shuffled and split as the digits are. An
 *          .npz file of such arrays is taken in place of a folder.
 *
 * Files of IDX and CIFAR may be gzipped (.gz). Bytes are x/256 of 0..255, so 0..0.996: x/255, which
 * others use, is not exact. Float32 is taken as it is. The classes are 0 .. the largest training
 * label (CIFAR: 10 or 100). Training and test images stay apart, as the files have them, and are
 * each shuffled by the seed.
 *
 * The order, to the bit: one generator (ct_rand.h), stream CT_RAND_STREAM_DATASET of the seed.
 * Digits, and x.npy: shuffle all; the first 80 % train. Others: shuffle the training images, then
 * the test images.
 */
#ifndef CT_DATASET_H
#define CT_DATASET_H

#include <stddef.h>
#include <stdint.h>

struct ct_dataset_part {
  size_t count;
  uint8_t
      *pixels;   /* count x features, rows of pixels, channels innermost; NULL if values has them */
  float *values; /* the same in FP32, to be taken as they are; NULL if pixels has them */
  uint8_t *labels; /* count */
};

struct ct_dataset {
  uint32_t height, width, channels;
  uint32_t features; /* height * width * channels */
  uint32_t classes;  /* labels are 0 .. classes - 1 */
  float scale;       /* value = byte * scale; 1 for values */
  struct ct_dataset_part train, test;
};

/* Enough for every sentence, with a path of ordinary length. */
#define CT_DATASET_WHY 512

/* Opens a data set by name or folder. samples: keep at most so many training and at most so many
 * test images, 0 for all. 0, or -1 with one sentence in why (cut to whysize bytes) and *ds empty.
 * Free with ct_dataset_free. */
int ct_dataset_open(struct ct_dataset *ds, const char *name, uint64_t seed, size_t samples,
                    char *why, size_t whysize);

/* The same for a gzipped CSV in the form of digits.csv.gz that is in memory. */
int ct_dataset_open_csv(struct ct_dataset *ds, const void *gz, size_t bytes, uint64_t seed,
                        size_t samples, char *why, size_t whysize);

/* Accepts NULL and what a failed open left. */
void ct_dataset_free(struct ct_dataset *ds);

/* Writes n x features values, those of images order[0] .. order[n-1], or 0 .. n-1 if order is NULL.
 * Every index must be below part->count. */
void ct_dataset_values(const struct ct_dataset *ds, const struct ct_dataset_part *part,
                       const uint32_t *order, size_t n, float *out);

/* The built-in file (ct_digits.c). */
extern const unsigned char ct_digits_gz[] __attribute__((visibility("hidden")));
extern const unsigned char ct_digits_gz_end[] __attribute__((visibility("hidden")));

#endif
