/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images that are drawn, for networks whose data set is not there: each class has a picture of
 * noise, each image is the mean of its class's picture and of noise of its own.
 */
#include "ct_random.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ct_rand.h"

enum { CLASSES = 10, TRAIN = 1024, TEST = 256, MOST_SIDE = 256, MOST_CHANNELS = 64 };

/* H, W and C of random-HxWxC. */
static bool size_of(const char *name, uint32_t size[3]) {
  const char *p = name + sizeof CT_RANDOM_NAME - 1;
  for (unsigned i = 0; i < 3; ++i) {
    char *end = NULL;
    const unsigned long n = strtoul(p, &end, 10);
    if (*p < '1' || *p > '9' || n > (i < 2 ? MOST_SIDE : MOST_CHANNELS)) return false;
    size[i] = (uint32_t)n;
    if (*end != (i < 2 ? 'x' : 0)) return false;
    p = end + 1;
  }
  return true;
}

bool ct_random_is(const char *name) {
  return !strncmp(name, CT_RANDOM_NAME, sizeof CT_RANDOM_NAME - 1);
}

static int draw(struct ct_dataset_part *part, size_t count, size_t features,
                const uint8_t *pictures, struct ct_rand *rand) {
  part->count = count;
  part->pixels = malloc(count * features);
  part->labels = malloc(count);
  if (!part->pixels || !part->labels) return -1;
  for (size_t i = 0; i < count; ++i) {
    part->labels[i] = (uint8_t)ct_rand_below(rand, CLASSES);
    const uint8_t *picture = pictures + part->labels[i] * features;
    for (size_t k = 0; k < features; ++k)
      part->pixels[i * features + k] = (uint8_t)((picture[k] + (ct_rand_next(rand) >> 56)) / 2);
  }
  return 0;
}

int ct_random_make(struct ct_dataset *ds, const struct ct_fault *f, uint64_t seed) {
  uint32_t size[3];
  struct ct_rand rand;
  if (!size_of(f->file, size))
    return ct_fault_say(f,
                        "is not random-HxWxC, height and width of 1..%d and channels of 1..%d, "
                        "such as random-32x32x3",
                        MOST_SIDE, MOST_CHANNELS);
  ds->height = size[0];
  ds->width = size[1];
  ds->channels = size[2];
  ds->features = size[0] * size[1] * size[2];
  ds->classes = CLASSES;
  ds->scale = 1.0f / 256;
  uint8_t *pictures = malloc((size_t)CLASSES * ds->features);
  ct_rand_seed(&rand, seed, CT_RAND_STREAM_IMAGES);
  for (size_t i = 0; pictures && i < (size_t)CLASSES * ds->features; ++i)
    pictures[i] = (uint8_t)(ct_rand_next(&rand) >> 56);
  const int rc = !pictures || draw(&ds->train, TRAIN, ds->features, pictures, &rand) ||
                 draw(&ds->test, TEST, ds->features, pictures, &rand);
  free(pictures);
  return rc ? ct_fault_say(f, "there is no memory for its images") : 0;
}
