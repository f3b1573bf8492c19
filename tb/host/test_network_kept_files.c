/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of networks that keep activations compressed: training goes on with the bounds that it had,
 * to the bit; what does not fit is refused with a sentence.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ct_file.h"
#include "ct_graph_impl.h"
#include "ct_network.h"
#include "ct_network_file.h"
#include "kept_bed.h"
#include "network_bed.h"

enum { FROM = 17, HALF = 22, TO = 27 }; /* looks are in 17 to 20, and 24 */
enum { MOST_KEPT = 64 };
static const struct ct_network_options in_file = {
    .error = 0.1, .refresh = 4, .bits = 6, .masks = CT_MASKS_OFF};
static char path[64];

/* Waited for, or submitted: then nobody has looked at the last one when it has ended. */
static void steps(ct_network *net, unsigned from, unsigned to, bool submit) {
  for (unsigned i = from; i < to; ++i) {
    const struct ct_run run = {.queue = CT_TRAINING, .step = i};
    struct ct_event event;
    uint64_t tag;
    if (!submit) {
      assert_int_equal(ct_network_run(net, CT_TRAINING, i), CT_OK);
      continue;
    }
    assert_int_equal(ct_network_submit(net, &run, &tag), CT_OK);
    assert_int_equal(ct_wait(net->dev, tag, &event, CT_FOREVER), CT_OK);
    assert_int_equal(event.error, CT_OK);
  }
}

static uint64_t digest_of(ct_network *net) {
  struct bed b = {.g = ct_network_graph(net)};
  return net_digest(&(struct net_bed){.bed = &b, .dev = net->dev, .net = net});
}

static ct_network *loaded(ct_device *dev, const struct ct_network_options *options) {
  ct_network *net;
  if (ct_network_load(dev, path, options, &net)) fail_msg("%s", ct_last_error(dev));
  kept_fill(net);
  return net;
}

/* What training has come to. */
struct past {
  uint64_t digest;
  uint8_t bound[MOST_KEPT];
};

/* Up to TO, by way of a file after HALF if there is a device to go on with. */
static struct past trained(const char *uri, const char *other, enum ct_masks masks, bool submit) {
  struct ct_network_options how = in_file;
  struct past p = {0};
  ct_device *dev;
  how.masks = masks;
  assert_int_equal(ct_open(uri, &dev), CT_OK);
  ct_network *net = kept_network(dev, &how);
  kept_ready(net);
  assert_false(kept_info(net).continued);
  steps(net, FROM, other ? HALF : TO, submit);
  if (other) {
    assert_int_equal(ct_network_save(net, path), CT_OK);
    ct_network_free(net);
    ct_close(dev);
    assert_int_equal(ct_open(other, &dev), CT_OK);
    net = loaded(dev, NULL);
    const struct ct_network_info info = kept_info(net);
    assert_true(info.continued && info.masks == masks && info.refresh == 4 && info.bits == 6);
    assert_true(info.error > 0.09 && info.error < 0.11);
    steps(net, HALF, TO, submit);
  }
  struct ct_network_kept kept; /* looks at the last one */
  assert_int_equal(ct_network_kept(net, 0, &kept), CT_OK);
  p.digest = digest_of(net);
  memcpy(p.bound, net->bound, net->compiled.kepts);
  ct_network_free(net);
  ct_close(dev);
  return p;
}

/* With a file in between training comes to the same bits, on any core. */
static void test_a_file_goes_on(void **state) {
  (void)state;
  for (unsigned i = 0; i < 4; ++i) {
    static const enum ct_masks all[] = {CT_MASKS_OFF, CT_MASKS_ON, CT_MASKS_STORED, CT_MASKS_ON};
    const enum ct_masks masks = all[i];
    const bool submit = i & 2;
    const struct past want = trained("emu:", NULL, masks, submit),
                      got = trained("emu:", i ? "emu:" : "emu:core=16x8", masks, submit);
    assert_memory_equal(got.bound, want.bound, sizeof got.bound);
    assert_true(got.digest == want.digest);
  }
}

/* A file after a run that has looked, of which nobody has asked. */
static void test_a_file_has_the_last_look(void **state) {
  (void)state;
  ct_device *dev;
  assert_int_equal(ct_open("emu:", &dev), CT_OK);
  ct_network *net = kept_network(dev, &in_file);
  kept_ready(net);
  steps(net, FROM, FROM + 1, true);
  assert_true(net->shared->looking == net);
  assert_int_equal(ct_network_save(net, path), CT_OK);
  assert_null(net->shared->looking);
  uint8_t bound[MOST_KEPT];
  const size_t kepts = net->compiled.kepts;
  memcpy(bound, net->bound, kepts);
  ct_network_free(net);
  net = loaded(dev, NULL);
  assert_memory_equal(net->bound, bound, kepts);
  ct_network_free(net);
  ct_close(dev);
}

/* What the last run has seen is what it has left, whatever is written behind it. */
static void test_writing_behind_a_look(void **state) {
  (void)state;
  uint8_t bound[2][MOST_KEPT] = {{0}};
  for (unsigned submit = 0; submit < 2; ++submit) {
    ct_device *dev;
    assert_int_equal(ct_open("emu:", &dev), CT_OK);
    ct_network *net = kept_network(dev, &in_file);
    kept_ready(net);
    steps(net, FROM, FROM + 2, submit);
    assert_int_equal(ct_network_draw(net, 2), CT_OK); /* no momentum */
    steps(net, HALF, HALF + 1, submit);               /* which does not look */
    memcpy(bound[submit], net->bound, net->compiled.kepts);
    ct_network_free(net);
    ct_close(dev);
  }
  assert_memory_equal(bound[0], bound[1], sizeof bound[0]);
}

/* A K that is set behind a run that has looked stays, though nobody has asked for that yet. */
static void test_a_bound_behind_a_look(void **state) {
  (void)state;
  ct_device *dev;
  struct ct_network_kept kept;
  assert_int_equal(ct_open("emu:", &dev), CT_OK);
  ct_network *net = kept_network(dev, &in_file);
  kept_ready(net);
  size_t i = 0;
  while (!net->compiled.kept[i].sums)
    ++i;
  steps(net, FROM, FROM + 1, true);
  assert_int_equal(ct_network_keep_within(net, i, 200), CT_OK);
  assert_int_equal(ct_network_kept(net, i, &kept), CT_OK);
  assert_int_equal(kept.bound, 200);
  ct_network_free(net);
  ct_close(dev);
}

/* What a network has seen so far is nothing to what is restored into it. */
static void test_a_file_is_restored(void **state) {
  (void)state;
  ct_device *dev;
  uint8_t bound[MOST_KEPT];
  assert_int_equal(ct_open("emu:", &dev), CT_OK);
  ct_network *net = kept_network(dev, &in_file);
  kept_ready(net);
  steps(net, FROM, HALF, false);
  assert_int_equal(ct_network_save(net, path), CT_OK);
  memcpy(bound, net->bound, net->compiled.kepts);
  steps(net, HALF, TO, false);
  const uint64_t want = digest_of(net);
  assert_int_equal(ct_network_draw(net, 3), CT_OK);
  steps(net, 0, 2, true); /* a look is still to come */
  assert_int_equal(ct_network_restore(net, path), CT_OK);
  assert_memory_equal(net->bound, bound, net->compiled.kepts);
  steps(net, HALF, TO, true);
  assert_true(digest_of(net) == want);
  ct_network_free(net);
  ct_close(dev);
}

#define DOES_NOT_FIT(dev, words, call)                  \
  do {                                                  \
    assert_int_equal(call, CT_ERR_ARG);                 \
    assert_non_null(strstr(ct_last_error(dev), words)); \
    assert_non_null(strstr(ct_last_error(dev), path));  \
  } while (0)

/* Where its chunk begins, in a file of that network. */
static uint8_t *chunk_of(ct_network *net, uint8_t *data, size_t size) {
  uint8_t *p = data + size - 4 - ct_bounds_size(net) - 12;
  assert_memory_equal(p, "kept", 4);
  return p;
}

static void write_back(ct_device *dev, uint8_t *data, size_t size) {
  assert_int_equal(ct_file_write(dev, path, data, size), CT_OK);
}

static void test_other_settings(void **state) {
  (void)state;
  ct_device *dev;
  ct_network *net, *other;
  assert_int_equal(ct_open("emu:", &dev), CT_OK);
  net = kept_network(dev, &in_file);
  kept_ready(net);
  assert_int_equal(ct_network_save(net, path), CT_OK);
  const struct ct_network_options more = {.error = 0.2}, often = {.refresh = 5},
                                  masked = {.masks = CT_MASKS_ON}, pages = {.bits = 9},
                                  unmasked = {.error = 0.2, .masks = CT_MASKS_OFF};
  ct_network_free(net);
  DOES_NOT_FIT(dev, "an error of 0.1, not 0.2", ct_network_load(dev, path, &more, &other));
  DOES_NOT_FIT(dev, "a look each 4 steps, not each 5", ct_network_load(dev, path, &often, &other));
  DOES_NOT_FIT(dev, "without masks, not with all masks",
               ct_network_load(dev, path, &masked, &other));
  const struct ct_network_options none[] = {{.error = (double)NAN}, {.error = -0.1}};
  for (unsigned i = 0; i < 2; ++i) {
    assert_int_equal(ct_network_load(dev, path, &none[i], &other), CT_ERR_ARG);
    assert_non_null(strstr(ct_last_error(dev), "0 to 1 of the momentum"));
  }
  other = loaded(dev, &pages); /* which are nothing to bounds */
  assert_int_equal(kept_info(other).bits, 9);
  ct_network_free(other);
  other = kept_network(dev, &unmasked);
  kept_ready(other);
  const uint64_t before = digest_of(other);
  DOES_NOT_FIT(dev, "an error of 0.1, not 0.2", ct_network_restore(other, path));
  assert_true(digest_of(other) == before);
  ct_network_free(other);
  ct_close(dev);
}

/* A file of a network with pages for all bits, saved before its first step, in a network with few:
 * it begins as one that had few from the start, and has room. */
static void test_fewer_pages(void **state) {
  (void)state;
  ct_device *dev;
  ct_network *net, *fresh;
  assert_int_equal(ct_open("emu:", &dev), CT_OK);
  net = kept_network(dev,
                     &(struct ct_network_options){.error = 0.1, .bits = 12, .masks = CT_MASKS_OFF});
  kept_ready(net);
  assert_int_equal(net->bound[0], 0);
  assert_int_equal(ct_network_save(net, path), CT_OK);
  ct_network_free(net);
  fresh = kept_network(
      dev, &(struct ct_network_options){.error = 0.1, .bits = 4, .masks = CT_MASKS_OFF});
  uint8_t begin[64];
  const size_t kepts = fresh->compiled.kepts;
  assert_true(kepts <= sizeof begin);
  memcpy(begin, fresh->bound, kepts);
  ct_network_free(fresh);
  assert_int_equal(ct_network_load(dev, path, &(struct ct_network_options){.bits = 4}, &net),
                   CT_OK);
  assert_memory_equal(net->bound, begin, kepts);
  ct_network_free(net);
  ct_close(dev);
}

/* Saved before its first step a network with few pages begins as if it had not been. */
static void test_saved_before_the_first_step(void **state) {
  (void)state;
  uint64_t digest[2];
  for (unsigned saved = 0; saved < 2; ++saved) {
    ct_device *dev;
    assert_int_equal(ct_open("emu:", &dev), CT_OK);
    ct_network *net = kept_network(dev, &(struct ct_network_options){.error = 0.1, .bits = 2});
    kept_ready(net);
    if (saved) {
      assert_int_equal(ct_network_save(net, path), CT_OK);
      ct_network_free(net);
      net = loaded(dev, NULL);
    }
    kept_fill_times(net, 1e5f);
    for (unsigned s = 0; s < 3; ++s)
      assert_int_equal(ct_network_run(net, CT_TRAINING, s), CT_OK);
    digest[saved] = digest_of(net);
    ct_network_free(net);
    ct_close(dev);
  }
  assert_true(digest[0] == digest[1]);
}

/* A chunk for other tensors, for fewer, and none, as in files of older releases. */
static void test_other_tensors(void **state) {
  (void)state;
  enum { HEAD = 12 + 24, NAME = HEAD + 16, FLAGS = 12 + 16, COUNT = 12 + 20 };
  ct_device *dev;
  ct_network *net, *other;
  uint8_t *data;
  size_t size;
  assert_int_equal(ct_open("emu:", &dev), CT_OK);
  net = kept_network(dev, &in_file);
  kept_ready(net);
  steps(net, 0, 1, false);
  assert_int_equal(ct_network_save(net, path), CT_OK);
  assert_int_equal(ct_file_read(dev, path, &data, &size), CT_OK);
  uint8_t *p = chunk_of(net, data, size);
  const size_t first = 16 + strlen(net->compiled.kept[0].tensor), rest = ct_bounds_size(net) + 12;
  p[NAME] ^= 1;
  write_back(dev, data, size);
  DOES_NOT_FIT(dev, "no bound for that in its place", ct_network_restore(net, path));
  p[NAME] ^= 1;
  p[HEAD] ^= 1; /* rows */
  write_back(dev, data, size);
  DOES_NOT_FIT(dev, "no bound for that in its place", ct_network_restore(net, path));
  p[HEAD] ^= 1;
  p[FLAGS] ^= 4; /* of which nobody knows what it means */
  write_back(dev, data, size);
  assert_int_equal(ct_network_restore(net, path), CT_ERR_FORMAT);
  p[FLAGS] ^= 4;
  uint8_t *one = malloc(size + first);
  memcpy(one, data, size); /* one more, the first again */
  memcpy(one + size - 4, p + HEAD, first);
  ++one[p - data + COUNT];
  ct_file_put(one + (p - data) + 4, rest - 12 + first, 8);
  write_back(dev, one, size + first);
  DOES_NOT_FIT(dev, "it has bounds for", ct_network_restore(net, path));
  free(one);
  ct_network_free(net);
  write_back(dev, data, size - rest);
  other = loaded(dev, &in_file);
  assert_false(kept_info(other).continued);
  net = kept_network(dev, &(struct ct_network_options){.like = other, .error = 0.1, .refresh = 4});
  assert_memory_equal(net->bound, other->bound, net->compiled.kepts); /* anew */
  ct_network_free(net);
  ct_network_free(other);
  free(data);
  ct_close(dev);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_file_goes_on),
      cmocka_unit_test(test_a_file_has_the_last_look),
      cmocka_unit_test(test_writing_behind_a_look),
      cmocka_unit_test(test_a_file_is_restored),
      cmocka_unit_test(test_a_bound_behind_a_look),
      cmocka_unit_test(test_other_settings),
      cmocka_unit_test(test_fewer_pages),
      cmocka_unit_test(test_saved_before_the_first_step),
      cmocka_unit_test(test_other_tensors),
  };
  snprintf(path, sizeof path, "/tmp/ct-kept-%ld.ctm", (long)getpid());
  const int failed = cmocka_run_group_tests_name("files of kept activations", tests, NULL, NULL);
  unlink(path);
  return failed;
}
