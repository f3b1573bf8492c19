/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How activations are kept from forward to backward changes no bit where nothing is lost: HBFP8,
 * made again, compressed. What compressing saves, what devices refuse, and how runs end that find
 * no room.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ct_act.h"
#include "ct_graph_impl.h"
#include "ct_network.h"
#include "ct_network_kept.h"
#include "kept_bed.h"
#include "network_bed.h"

/* All maps of a checked graph. */
static void keep_all(ct_graph *g, enum ct_format format) {
  for (size_t i = 1; i <= g->tensors; ++i) {
    struct ct_gtensor *t = g->tensor[i];
    if (t->role == CT_ROLE_ACTIVATION && t->shape.dims > 1) t->format = format;
  }
}

struct outcome {
  uint64_t digest, bytes;
  size_t kept, exact;     /* tensors; of these whole numbers */
  uint64_t stored, pages; /* bytes of groups; in use at most */
};

/* Ways of keeping at random, of what is made in a run; or HBFP8 for all that is made again or
 * compressed in these. */
static void mix(ct_graph *g, uint64_t seed, bool plain) {
  static const enum ct_format ways[] = {CT_FORMAT_FP32,       CT_FORMAT_HBFP8,
                                        CT_FORMAT_RECOMPUTE,  CT_FORMAT_COMPRESSED,
                                        CT_FORMAT_COMPRESSED, CT_FORMAT_COMPRESSED};
  ct_rng rng = ct_rng_make(seed);
  for (size_t i = 1; i <= g->tensors; ++i) {
    struct ct_gtensor *t = g->tensor[i];
    const uint32_t drawn = ct_rng_below(&rng, 6);
    if (t->role == CT_ROLE_GRADIENT) t->format = ways[drawn % 2];
    if (t->role == CT_ROLE_ACTIVATION && t->shape.dims > 1)
      t->format = plain && drawn > 1 ? CT_FORMAT_HBFP8 : ways[drawn];
  }
}

/* Pages that are in use still. */
static uint32_t pages_held(struct net_bed *n) {
  uint32_t held = 0;
  if (!n->net->compiled.kepts) return 0;
  assert_int_equal(ct_reg_read(n->dev, ct_queue_reg(CT_TRAINING, CT_CREG_ARENA_HELD), &held),
                   CT_OK);
  return held;
}

/* Each tensor is stored by one stage and loaded by one at least; returns what is stored. */
static uint64_t bytes_moved(struct net_bed *n) {
  struct ct_network_stage stage;
  uint64_t stored = 0, loaded = 0;
  for (size_t i = 0; !ct_network_stage(n->net, i, &stage); ++i) {
    stored += stage.written - n->net->compiled.stage[i].written;
    loaded += stage.read - n->net->compiled.stage[i].read;
  }
  assert_true(loaded >= stored);
  return stored;
}

/* Two steps on a device; digest 0: its scratchpad is too small. bound: of all that is kept, as
 * tensors' formats say. */
static struct outcome steps_as_said(struct bed *b, const char *uri, uint64_t seed, uint32_t bound) {
  struct ct_network_info info;
  struct outcome o = {0};
  struct net_bed n;
  ct_rng rng = ct_rng_make(seed);
  if (!net_try_open(&n, b, uri)) return o;
  for (size_t i = 0; i < n.net->compiled.kepts; ++i) {
    const bool exact = n.net->compiled.kept[i].whole && bound;
    assert_int_equal(ct_network_keep_within(n.net, i, bound), exact ? CT_ERR_ARG : CT_OK);
  }
  net_draw(&n, seed, &rng);
  net_run_device(&n, 0);
  net_run_device(&n, 1);
  assert_int_equal(ct_network_info(n.net, &info), CT_OK);
  assert_true(pages_held(&n) <= 1); /* one that is open to be filled */
  o = (struct outcome){.digest = net_digest(&n),
                       .bytes = info.run_bytes,
                       .kept = n.net->compiled.kepts,
                       .pages = info.pages_most};
  for (size_t i = 0; i < o.kept; ++i) {
    struct ct_network_kept kept;
    assert_int_equal(ct_network_kept(n.net, i, &kept), CT_OK);
    assert_true(kept.bytes > 0 && kept.bytes <= kept.padded * 35 / 32 + 16);
    assert_true(kept.values > 0 && kept.values <= kept.padded && kept.padded % 256 == 0);
    assert_int_equal(kept.bound, kept.exact ? 0 : bound);
    assert_true(kept.exact || !kept.beside);
    o.exact += kept.exact;
    o.stored += kept.bytes;
  }
  assert_int_equal(bytes_moved(&n), o.stored);
  net_close(&n);
  return o;
}

/* The same with all maps kept so. */
static struct outcome two_steps(struct bed *b, const char *uri, enum ct_format format,
                                uint64_t seed, uint32_t bound) {
  keep_all(b->g, format);
  return steps_as_said(b, uri, seed, bound);
}

static void loses_nothing(struct bed *b, uint64_t seed) {
  const uint64_t exact = two_steps(b, "emu:", CT_FORMAT_HBFP8, seed, 0).digest;
  const struct outcome got = two_steps(b, "emu:", CT_FORMAT_COMPRESSED, seed, 0);
  assert_true(got.digest == exact && got.kept > 0);
}

static void test_same_bits(void **state) {
  (void)state;
  const struct net_shape shape = {
      .training = true, .most_layers = 5, .most_channels = 40, .most_size = 14, .most_images = 6};
  ct_rng rng = ct_rng_make(31);
  size_t kept = 0, exact = 0, less = 0;
  for (int i = 0, draws = ct_tb_draws(25); i < draws; ++i) {
    const uint64_t seed = ct_rng_u64(&rng);
    struct bed b;
    char text[1024];
    net_random(&b, &shape, &rng);
    const struct outcome want = two_steps(&b, "emu:", CT_FORMAT_HBFP8, seed, 0);
    const struct outcome again = two_steps(&b, "emu:", CT_FORMAT_RECOMPUTE, seed, 0);
    const struct outcome comp = two_steps(&b, "emu:", CT_FORMAT_COMPRESSED, seed, 0);
    b.masks = i % 2 ? CT_MASKS_STORED : CT_MASKS_ON;
    const struct outcome masked = two_steps(&b, "emu:", CT_FORMAT_COMPRESSED, seed, 0);
    const struct outcome small = two_steps(&b, "emu:core=16x8", CT_FORMAT_COMPRESSED, seed, 0);
    if (again.digest != want.digest)
      fail_msg("made again it differs: %s", net_text(&b, text, sizeof text));
    if (comp.digest != want.digest || (small.digest && small.digest != want.digest))
      fail_msg("compressed it differs: %s", net_text(&b, text, sizeof text));
    if (masked.digest != want.digest)
      fail_msg("with masks it differs: %s", net_text(&b, text, sizeof text));
    kept += comp.kept;
    exact += masked.exact;
    less += again.bytes < want.bytes;
    bed_free(&b);
  }
  printf(
      "  %zu tensors compressed, with %zu masks; %zu networks are smaller with some made again\n",
      kept, exact, less);
  assert_true(kept > 5 && exact > 1);
}

/* A state's new value takes the old one's place tile by tile, in the step that makes what a
 * gradient reads: what is made again there would read the new one. */
static void state_beside(struct bed *b) {
  static const struct ct_optimise how = {.schedule = {.rate = 0.125}, .momentum = 0.5};
  bed_make(b);
  b->update = true;
  const int x = bed_tensor(b, CT_ROLE_INPUT, SHAPE(16, 32)),
            state = ct_graph_tensor(b->g, &(struct ct_new_tensor){.role = CT_ROLE_STATE,
                                                                  .shape = SHAPE(16, 32),
                                                                  .initial = CT_INITIAL_ONES}),
            y = BED_ADD(b, "mul", BED_IN(x, state)),
            one = ct_graph_tensor(b->g, &(struct ct_new_tensor){.role = CT_ROLE_WEIGHT,
                                                                .shape = SHAPE(32, 32),
                                                                .initial = CT_INITIAL_HE}),
            h = BED_ADD(b, "relu", BED_IN(BED_ADD(b, "linear", BED_IN(y, one)))),
            two = ct_graph_tensor(b->g, &(struct ct_new_tensor){.role = CT_ROLE_WEIGHT,
                                                                .shape = SHAPE(10, 32),
                                                                .initial = CT_INITIAL_HE}),
            labels = bed_tensor(b, CT_ROLE_LABEL, SHAPE(16, 10)),
            logits = BED_ADD(b, "linear", BED_IN(h, two)),
            loss = ct_graph_result(b->g, BED_ADD(b, "cross_entropy", BED_IN(logits, labels)));
  const int now = BED_ADD(b, "add", BED_IN(state, y));
  assert_int_equal(ct_graph_becomes(b->g, state, now), state);
  assert_int_equal(ct_graph_optimise(b->g, loss, &how), CT_OK);
  bed_check(b);
}

static void test_state_that_changes_at_once(void **state) {
  (void)state;
  struct bed b;
  state_beside(&b);
  const uint64_t want = two_steps(&b, "emu:", CT_FORMAT_HBFP8, 5, 0).digest;
  assert_true(two_steps(&b, "emu:", CT_FORMAT_RECOMPUTE, 5, 0).digest == want);
  assert_true(two_steps(&b, "emu:", CT_FORMAT_COMPRESSED, 5, 0).digest == want);
  bed_free(&b);
}

/* Whatever is lost, the simulated cores lose the same, and each needs the pages of its emulator:
 * with another window kernels may store groups in another order. */
static void test_same_on_simulated_cores(void **state) {
  (void)state;
  static const char *const uris[][2] = {{"emu:", "sim:stall=25"},
                                        {"emu:core=16x8", "sim:core=16x8,stall=25"}};
  const struct net_shape shape = {
      .training = true, .most_layers = 4, .most_channels = 33, .most_size = 8, .most_images = 4};
  ct_rng rng = ct_rng_make(32);
  size_t kept = 0;
  for (int i = 0, draws = ct_tb_draws(6); i < draws; ++i) {
    const uint64_t seed = ct_rng_u64(&rng);
    const uint32_t bound = i % 3 ? 120 + ct_rng_below(&rng, 12) : 0;
    struct bed b;
    char text[1024];
    net_random(&b, &shape, &rng);
    b.masks = (enum ct_masks)(CT_MASKS_ON + ct_rng_below(&rng, 3));
    const struct outcome want = two_steps(&b, "emu:", CT_FORMAT_COMPRESSED, seed, bound);
    for (size_t u = 0; u < sizeof uris / sizeof *uris; ++u) {
      const struct outcome own = two_steps(&b, uris[u][0], CT_FORMAT_COMPRESSED, seed, bound);
      const struct outcome got = two_steps(&b, uris[u][1], CT_FORMAT_COMPRESSED, seed, bound);
      if (got.digest &&
          (got.digest != want.digest || got.stored != want.stored || got.pages != own.pages))
        fail_msg("%s differs, K = %u: %s", uris[u][1], (unsigned)bound,
                 net_text(&b, text, sizeof text));
      kept += got.kept;
    }
    bed_free(&b);
  }
  printf("  %zu tensors compressed by simulated cores\n", kept);
  assert_true(kept > 5);
}

/* ---- On the way ---- */

struct kernels {
  unsigned packing, unpacking, made_again, storing; /* of their own; that store groups themselves */
};

static struct kernels kernels_of(const ct_network *net) {
  struct kernels k = {0};
  for (size_t i = 0; i < net->compiled.stages; ++i) {
    const struct ct_stage *s = &net->compiled.stage[i];
    const bool packs = strcmp(s->op, "compressing") == 0;
    if (net->part[i].programs.count == 0) continue;
    k.packing += packs;
    k.unpacking += strcmp(s->op, "decompressing") == 0;
    k.made_again += s->backward && strcmp(s->op, "batch_norm_train") == 0;
    k.storing += !packs && s->stores > 0;
  }
  return k;
}

static struct kernels kernels_with(uint32_t batch, enum ct_masks masks) {
  static const struct ct_optimise how = {.schedule = {.rate = 0.125}, .momentum = 0.5};
  const struct ct_network_options options = {.masks = masks};
  ct_device *dev;
  ct_network *net;
  struct bed b;
  bed_make(&b);
  assert_int_equal(ct_graph_builtin(b.g, "resnet8", batch, true), CT_OK);
  assert_int_equal(ct_graph_optimise(b.g, ct_graph_find(b.g, "loss"), &how), CT_OK);
  assert_true(ct_graph_keep(b.g, CT_ROLE_ACTIVATION, CT_FORMAT_COMPRESSED) >= 0);
  assert_true(ct_graph_keep(b.g, CT_ROLE_GRADIENT, CT_FORMAT_HBFP8) >= 0);
  bed_check(&b);
  assert_int_equal(ct_open("emu:", &dev), CT_OK);
  if (ct_network_create(dev, b.g, &options, &net)) fail_msg("%s", ct_last_error(dev));
  const struct kernels k = kernels_of(net);
  ct_network_free(net);
  ct_close(dev);
  bed_free(&b);
  return k;
}

/* Whoever makes a map of whole index units stores its groups; what is made again is made where it
 * is read first, but in front of a convolution with strides, whose gradient of weights can only
 * unpack. Smaller maps have kernels for that. */
static void test_on_the_way(void **state) {
  (void)state;
  struct kernels k = kernels_with(4, CT_MASKS_OFF);
  assert_true(k.storing == 10 && k.packing == 1 && k.unpacking == 1 && k.made_again == 0);
  k = kernels_with(4, CT_MASKS_ON); /* seven masks, of which four are read where they are */
  assert_true(k.storing == 16 && k.packing == 1);
  k = kernels_with(4, CT_MASKS_STORED); /* three: the others are of what is made again */
  assert_true(k.storing == 12 && k.packing == 1);
  k = kernels_with(1, CT_MASKS_OFF); /* the last maps are 8 x 8 */
  assert_true(k.packing > 1 && k.storing > 0 && k.made_again > 0);
}

/* The gradient of weights in front of which an image's 32 x 32 pixels were unpacked has a stride,
 * and reads them in groups. */
static void test_strides(void **state) {
  (void)state;
  static const struct ct_optimise how = {.schedule = {.rate = 0.125}, .momentum = 0.5};
  enum { SEED = 12, LOSSY = 131 };
  struct bed b;
  bed_make(&b);
  assert_int_equal(ct_graph_builtin(b.g, "resnet8", 1, true), CT_OK);
  assert_int_equal(ct_graph_optimise(b.g, ct_graph_find(b.g, "loss"), &how), CT_OK);
  bed_check(&b);
  loses_nothing(&b, SEED);
  const struct outcome want = two_steps(&b, "emu:", CT_FORMAT_COMPRESSED, SEED, LOSSY);
  const struct outcome got = two_steps(&b, "sim:", CT_FORMAT_COMPRESSED, SEED, LOSSY);
  assert_true(got.digest == want.digest && got.stored == want.stored && got.pages == want.pages);
  bed_free(&b);
}

/* ---- What is lost ---- */

enum { ROWS = 48, COLS = 32, CLASSES = 10, LOST = 2 };

/* A layer without weights yet gives the same whatever it reads, and so the same gradient behind it:
 * what its weights become shows what of its input was kept. */
static void weights_of(enum ct_format format, uint32_t bound, const float *x, float *w) {
  static const struct ct_optimise how = {.schedule = {.rate = 0.125}, .momentum = 0.5};
  float y[ROWS * CLASSES] = {0};
  ct_device *dev;
  ct_network *net;
  struct bed b;
  bed_make(&b);
  const int in = bed_tensor(&b, CT_ROLE_INPUT, SHAPE(ROWS, COLS));
  const int one = bed_tensor(&b, CT_ROLE_WEIGHT, SHAPE(COLS, COLS));
  const int kept = BED_ADD(&b, "linear", BED_IN(in, one));
  const int weight = bed_tensor(&b, CT_ROLE_WEIGHT, SHAPE(CLASSES, COLS));
  const int labels = bed_tensor(&b, CT_ROLE_LABEL, SHAPE(ROWS, CLASSES));
  const int logits = BED_ADD(&b, "linear", BED_IN(kept, weight));
  const int loss = ct_graph_result(b.g, BED_ADD(&b, "cross_entropy", BED_IN(logits, labels)));
  assert_int_equal(ct_graph_optimise(b.g, loss, &how), CT_OK);
  assert_int_equal(ct_graph_set_format(b.g, kept, format), kept);
  bed_check(&b);
  for (size_t i = 0; i < ROWS; ++i)
    y[i * CLASSES + i * 7 % CLASSES] = 1;
  assert_int_equal(ct_open("emu:", &dev), CT_OK);
  if (ct_network_create(dev, b.g, NULL, &net)) fail_msg("%s", ct_last_error(dev));
  assert_int_equal(net->compiled.kepts, format == CT_FORMAT_COMPRESSED);
  if (bound) assert_int_equal(ct_network_keep_within(net, 0, bound), CT_OK);
  float *unit = test_calloc((size_t)COLS * COLS, sizeof *unit);
  for (size_t i = 0; i < COLS; ++i)
    unit[i * COLS + i] = 1;
  assert_int_equal(ct_network_write(net, one, unit, (size_t)COLS * COLS), CT_OK);
  test_free(unit);
  assert_int_equal(ct_network_write(net, in, x, (size_t)ROWS * COLS), CT_OK);
  assert_int_equal(ct_network_write(net, labels, y, (size_t)ROWS * CLASSES), CT_OK);
  assert_int_equal(ct_network_run(net, CT_TRAINING, 0), CT_OK);
  assert_int_equal(ct_network_read(net, weight, w, (size_t)CLASSES * COLS), CT_OK);
  ct_network_free(net);
  ct_close(dev);
  bed_free(&b);
}

/* The numbers of blocks whose exponent is 133, and what the codec makes of them with a bound of
 * LOST more. */
static void draw_blocks(float *x, float *rounded) {
  ct_rng rng = ct_rng_make(33);
  for (size_t at = 0; at < (size_t)ROWS * COLS; at += 16) {
    struct ct_act_block b = {.e = 133};
    b.q[0] = 127;
    for (size_t i = 1; i < 16; ++i)
      b.q[i] = (int8_t)(ct_rng_percent(&rng, 60) ? 0 : (int)ct_rng_below(&rng, 255) - 127);
    for (size_t i = 0; i < 16; ++i)
      x[at + i] = b.q[i];
    ct_act_round(&b, 133 + LOST);
    for (size_t i = 0; i < 16; ++i)
      rounded[at + i] = (float)(b.q[i] * (1 << LOST));
  }
}

static void test_rounded_as_said(void **state) {
  (void)state;
  float *x = test_calloc((size_t)ROWS * COLS, sizeof *x),
        *rounded = test_calloc((size_t)ROWS * COLS, sizeof *x);
  float got[CLASSES * COLS], want[CLASSES * COLS], exact[CLASSES * COLS];
  draw_blocks(x, rounded);
  weights_of(CT_FORMAT_COMPRESSED, 133 + LOST, x, got);
  weights_of(CT_FORMAT_HBFP8, 0, rounded, want);
  assert_memory_equal(got, want, sizeof got);
  weights_of(CT_FORMAT_HBFP8, 0, x, exact);
  assert_memory_not_equal(got, exact, sizeof got);
  weights_of(CT_FORMAT_COMPRESSED, 0, x, got);
  assert_memory_equal(got, exact, sizeof got);
  test_free(x);
  test_free(rounded);
}

/* ---- Masks ---- */

static int convolved(struct bed *b, int x, uint32_t from, uint32_t to);
static void classified(struct bed *b, int map, uint32_t images);

/* What is above 0 in HBFP8, and mostly below the bound, lets gradients through. More than the gate
 * reads it: the next layer, and with `twice` the step that gates. */
static void gated_weights(const char *op, bool twice, bool masks, uint32_t bound, float *w) {
  static const struct ct_optimise how = {.schedule = {.rate = 0.125}, .momentum = 0.5};
  struct bed b;
  struct net_bed n;
  ct_rng rng = ct_rng_make(34);
  bed_make(&b);
  const int in = bed_tensor(&b, CT_ROLE_INPUT, SHAPE(ROWS, COLS)),
            one = ct_graph_tensor(b.g, &(struct ct_new_tensor){.role = CT_ROLE_WEIGHT,
                                                               .shape = SHAPE(COLS, COLS),
                                                               .initial = CT_INITIAL_HE});
  const int gated = BED_ADD(&b, op, BED_IN(BED_ADD(&b, "linear", BED_IN(in, one)))),
            last = twice
                       ? BED_ADD(&b, "add", BED_IN(BED_ADD(&b, "mul", BED_IN(gated, gated)), gated))
                       : gated,
            two = ct_graph_tensor(b.g, &(struct ct_new_tensor){.role = CT_ROLE_WEIGHT,
                                                               .shape = SHAPE(CLASSES, COLS),
                                                               .initial = CT_INITIAL_HE}),
            labels = bed_tensor(&b, CT_ROLE_LABEL, SHAPE(ROWS, CLASSES)),
            logits = BED_ADD(&b, "linear", BED_IN(last, two)),
            loss = ct_graph_result(b.g, BED_ADD(&b, "cross_entropy", BED_IN(logits, labels)));
  assert_int_equal(ct_graph_optimise(b.g, loss, &how), CT_OK);
  assert_true(
      ct_graph_keep(b.g, CT_ROLE_ACTIVATION, bound ? CT_FORMAT_COMPRESSED : CT_FORMAT_HBFP8) > 0);
  bed_check(&b);
  b.masks = masks;
  net_open(&n, &b, "emu:");
  for (size_t i = 0; bound && i < n.net->compiled.kepts; ++i)
    if (!n.net->compiled.kept[i].whole)
      assert_int_equal(ct_network_keep_within(n.net, i, bound), CT_OK);
  net_draw(&n, 34, &rng);
  net_run_device(&n, 0);
  assert_int_equal(ct_network_read(n.net, one, w, (size_t)COLS * COLS), CT_OK);
  net_close(&n);
  bed_free(&b);
}

static void test_masks(void **state) {
  (void)state;
  enum { LARGE = 140 }; /* half a step of 2^6: everything is below it */
  static const char *const ops[] = {"relu", "leaky_relu"};
  float exact[COLS * COLS], masked[COLS * COLS], lost[COLS * COLS];
  for (size_t i = 0; i < sizeof ops / sizeof *ops; ++i) {
    gated_weights(ops[i], false, false, 0, exact);
    gated_weights(ops[i], false, true, LARGE, masked);
    gated_weights(ops[i], false, false, LARGE, lost);
    assert_memory_equal(masked, exact, sizeof exact);
    assert_memory_not_equal(lost, exact, sizeof exact);
  }
  /* The gradient of x * x + x, which is gated, reads the numbers, too. */
  gated_weights("relu", true, false, 0, exact);
  gated_weights("relu", true, true, 1, masked);
  assert_memory_equal(masked, exact, sizeof exact);
  gated_weights("relu", true, true, 129, masked);
  gated_weights("relu", true, false, 129, lost);
  assert_memory_not_equal(masked, exact, sizeof exact);
  assert_memory_not_equal(masked, lost, sizeof exact);
}

/* What is gated and squared by one step has no other reader in front but who makes its mask, which
 * is made of records: these have a place. */
static void test_mask_of_what_one_step_reads(void **state) {
  (void)state;
  struct bed b;
  bed_make(&b);
  b.masks = b.update = true;
  const int in = bed_tensor(&b, CT_ROLE_INPUT, SHAPE(1, 16, 16, 16)),
            mean = BED_ADD(&b, "average_pool", BED_IN(convolved(&b, in, 16, 16)),
                           BED_ATTRS({"kernel", 2, {3, 3}}, {"pad", 4, {1, 1, 1, 1}})),
            gated = BED_ADD(&b, "relu", BED_IN(BED_ADD(&b, "add", BED_IN(mean, in))));
  classified(&b, BED_ADD(&b, "mul", BED_IN(gated, gated)), 1);
  loses_nothing(&b, 40);
  bed_free(&b);
}

/* The gradient of a convolution's input that gates twice by what it multiplies by has place for one
 * mask: its sum takes an input's. */
static void test_masks_for_which_there_is_no_place(void **state) {
  (void)state;
  struct bed b;
  bed_make(&b);
  b.masks = b.update = true;
  const int in = bed_tensor(&b, CT_ROLE_INPUT, SHAPE(1, 16, 16, 16)),
            from = BED_ADD(&b, "sigmoid", BED_IN(convolved(&b, in, 16, 16))),
            other = BED_ADD(&b, "sigmoid", BED_IN(convolved(&b, from, 16, 16))),
            gated = BED_ADD(&b, "relu", BED_IN(BED_ADD(&b, "add", BED_IN(other, from)))),
            twice = BED_ADD(&b, "relu", BED_IN(gated)),
            both = BED_ADD(&b, "mul", BED_IN(twice, gated));
  classified(&b, BED_ADD(&b, "add", BED_IN(convolved(&b, both, 16, 16), both)), 1);
  loses_nothing(&b, 41);
  bed_free(&b);
}

/* A mask of which nothing is 0 takes as many bits as there are pages for, and nothing else of its
 * ReLU is kept. */
static void test_room_for_masks(void **state) {
  (void)state;
  static const struct ct_optimise how = {.schedule = {.rate = 0.125}, .momentum = 0.5};
  static float x[8 * 16 * 16 * 64], unit[64 * 64];
  const struct ct_network_options options = {.masks = CT_MASKS_ON};
  struct ct_network_kept kept;
  ct_device *dev;
  ct_network *net;
  struct bed b;
  bed_make(&b);
  const int in = bed_tensor(&b, CT_ROLE_INPUT, SHAPE(8, 16, 16, 64)),
            one = bed_tensor(&b, CT_ROLE_WEIGHT, SHAPE(64, 1, 1, 64)),
            map = BED_ADD(&b, "relu", BED_IN(BED_ADD(&b, "conv", BED_IN(in, one)))),
            mean = BED_ADD(&b, "global_average_pool", BED_IN(map)),
            weight = bed_tensor(&b, CT_ROLE_WEIGHT, SHAPE(CLASSES, 64)),
            labels = bed_tensor(&b, CT_ROLE_LABEL, SHAPE(8, CLASSES)),
            rows = BED_ADD(&b, "flatten", BED_IN(mean)),
            logits = BED_ADD(&b, "linear", BED_IN(rows, weight)),
            loss = ct_graph_result(b.g, BED_ADD(&b, "cross_entropy", BED_IN(logits, labels)));
  assert_int_equal(ct_graph_optimise(b.g, loss, &how), CT_OK);
  assert_int_equal(ct_graph_set_format(b.g, map, CT_FORMAT_COMPRESSED), map);
  bed_check(&b);
  for (size_t i = 0; i < sizeof x / sizeof *x; ++i)
    x[i] = 1;
  for (size_t i = 0; i < 64; ++i)
    unit[i * 64 + i] = 1;
  assert_int_equal(ct_open("emu:", &dev), CT_OK);
  if (ct_network_create(dev, b.g, &options, &net)) fail_msg("%s", ct_last_error(dev));
  assert_int_equal(net->compiled.kepts, 1);
  assert_int_equal(ct_network_write(net, one, unit, sizeof unit / sizeof *unit), CT_OK);
  assert_int_equal(ct_network_write(net, in, x, sizeof x / sizeof *x), CT_OK);
  if (ct_network_run(net, CT_TRAINING, 0)) fail_msg("%s", ct_last_error(dev));
  assert_int_equal(ct_network_kept(net, 0, &kept), CT_OK);
  assert_true(kept.exact && !kept.beside && kept.values == sizeof x / sizeof *x);
  assert_int_equal(kept.padded, kept.values);
  assert_true(kept.bytes * 8 > kept.values && kept.bytes * 8 < kept.values * 4 / 3);
  ct_network_free(net);
  ct_close(dev);
  bed_free(&b);
}

/* ---- Maxima ---- */

enum { SIZE = 9, IMAGES = 3, PIXELS = IMAGES * SIZE * SIZE };

/* One layer of a convolution that changes nothing, a maximum of overlapping windows and one of
 * others, and what the gradient makes of its weights. Its numbers are whole, and many of them
 * equal, so HBFP8 has them as they are. */
static void weights_behind_maxima(enum ct_format format, uint32_t bound, uint32_t mantissa,
                                  float *w) {
  static const struct ct_optimise how = {.schedule = {.rate = 0.125}, .momentum = 0.5};
  const struct ct_network_options options = {.mantissa = mantissa, .masks = CT_MASKS_ON};
  float x[PIXELS * 16], unit[16 * 16] = {0}, y[IMAGES * CLASSES] = {0};
  ct_device *dev;
  ct_network *net;
  struct bed b;
  ct_rng rng = ct_rng_make(35);
  bed_make(&b);
  const int in = bed_tensor(&b, CT_ROLE_INPUT, SHAPE(IMAGES, SIZE, SIZE, 16)),
            one = bed_tensor(&b, CT_ROLE_WEIGHT, SHAPE(16, 1, 1, 16)),
            map = BED_ADD(&b, "relu", BED_IN(BED_ADD(&b, "conv", BED_IN(in, one)))),
            most = BED_ADD(&b, "max_pool", BED_IN(map),
                           BED_ATTRS({"kernel", 2, {3, 3}}, {"stride", 2, {2, 2}})),
            last = BED_ADD(&b, "max_pool", BED_IN(most),
                           BED_ATTRS({"kernel", 2, {2, 2}}, {"stride", 2, {2, 2}})),
            weight = ct_graph_tensor(b.g, &(struct ct_new_tensor){.role = CT_ROLE_WEIGHT,
                                                                  .shape = SHAPE(CLASSES, 64),
                                                                  .initial = CT_INITIAL_HE}),
            labels = bed_tensor(&b, CT_ROLE_LABEL, SHAPE(IMAGES, CLASSES)),
            logits = BED_ADD(&b, "linear", BED_IN(BED_ADD(&b, "flatten", BED_IN(last)), weight)),
            loss = ct_graph_result(b.g, BED_ADD(&b, "cross_entropy", BED_IN(logits, labels)));
  assert_int_equal(ct_graph_optimise(b.g, loss, &how), CT_OK);
  if (format != CT_FORMAT_FP32) assert_true(ct_graph_keep(b.g, CT_ROLE_ACTIVATION, format) > 3);
  bed_check(&b);
  for (size_t i = 0; i < sizeof x / sizeof *x; ++i)
    x[i] = mantissa ? (float)ct_rng_below(&rng, 2) : (float)ct_rng_below(&rng, 12) - 6;
  for (size_t i = 0; i < 16; ++i)
    unit[i * 16 + i] = 1;
  for (size_t i = 0; i < IMAGES; ++i)
    y[i * CLASSES + i] = 1;
  assert_int_equal(ct_open("emu:", &dev), CT_OK);
  if (ct_network_create(dev, b.g, &options, &net)) fail_msg("%s", ct_last_error(dev));
  assert_int_equal(net->compiled.kepts > 3, format == CT_FORMAT_COMPRESSED);
  for (size_t i = 0; bound && i < net->compiled.kepts; ++i)
    if (!net->compiled.kept[i].whole)
      assert_int_equal(ct_network_keep_within(net, i, bound), CT_OK);
  assert_int_equal(ct_network_draw(net, 35), CT_OK);
  assert_int_equal(ct_network_write(net, one, unit, 16 * 16), CT_OK);
  assert_int_equal(ct_network_write(net, in, x, sizeof x / sizeof *x), CT_OK);
  assert_int_equal(ct_network_write(net, labels, y, sizeof y / sizeof *y), CT_OK);
  assert_int_equal(ct_network_run(net, CT_TRAINING, 0), CT_OK);
  assert_int_equal(ct_network_read(net, one, w, 16 * 16), CT_OK);
  assert_memory_not_equal(w, unit, sizeof unit);
  ct_network_free(net);
  ct_close(dev);
  bed_free(&b);
}

/* Where maxima were is kept exactly, whatever is lost of what they are of. */
static void test_maxima(void **state) {
  (void)state;
  float fp32[16 * 16], w[16 * 16];
  for (uint32_t mantissa = 0; mantissa <= 2; mantissa += 2) {
    weights_behind_maxima(CT_FORMAT_FP32, 0, mantissa, fp32);
    weights_behind_maxima(CT_FORMAT_HBFP8, 0, mantissa, w);
    assert_memory_equal(w, fp32, sizeof w);
    weights_behind_maxima(CT_FORMAT_RECOMPUTE, 0, mantissa, w);
    assert_memory_equal(w, fp32, sizeof w);
    weights_behind_maxima(CT_FORMAT_COMPRESSED, 145, mantissa, w);
    assert_memory_equal(w, fp32, sizeof w);
  }
}

/* Which state a bound follows is told by who updates the weight, whatever others are called. */
static void test_follows_what_updates(void **state) {
  static const struct ct_optimise how = {.optimiser = CT_OPTIMISER_ADAM, .schedule = {.rate = 0.1}};
  (void)state;
  ct_device *dev;
  ct_network *net;
  struct bed b;
  bed_make(&b);
  const int in = bed_tensor(&b, CT_ROLE_INPUT, SHAPE(ROWS, COLS)),
            one = bed_tensor(&b, CT_ROLE_WEIGHT, SHAPE(COLS, COLS)),
            kept = BED_ADD(&b, "linear", BED_IN(in, one)),
            weight = ct_graph_tensor(b.g, &(struct ct_new_tensor){.name = "w",
                                                                  .role = CT_ROLE_WEIGHT,
                                                                  .shape = SHAPE(CLASSES, COLS)}),
            other = ct_graph_tensor(
                b.g, &(struct ct_new_tensor){
                         .name = "w.momentum", .role = CT_ROLE_STATE, .shape = SHAPE(ROWS, COLS)});
  const int labels = bed_tensor(&b, CT_ROLE_LABEL, SHAPE(ROWS, CLASSES)),
            logits = BED_ADD(&b, "linear", BED_IN(kept, weight)),
            loss = ct_graph_result(b.g, BED_ADD(&b, "cross_entropy", BED_IN(logits, labels)));
  assert_int_equal(ct_graph_becomes(b.g, other, BED_ADD(&b, "add", BED_IN(other, in))), other);
  assert_int_equal(ct_graph_optimise(b.g, loss, &how), CT_OK);
  assert_int_equal(ct_graph_set_format(b.g, kept, CT_FORMAT_COMPRESSED), kept);
  bed_check(&b);
  assert_int_equal(ct_open("emu:", &dev), CT_OK);
  if (ct_network_create(dev, b.g, NULL, &net)) fail_msg("%s", ct_last_error(dev));
  assert_int_equal(net->compiled.kepts, 1);
  assert_int_equal(net->compiled.kept[0].sums, 1);
  assert_int_equal(net->compiled.kept[0].sum[0].momentum, ct_graph_find(b.g, "w.mean"));
  ct_network_free(net);
  ct_close(dev);
  bed_free(&b);
}

/* What else is made of a value than a weight's gradient, the formula does not know: no bound. */
static void test_follows_all_or_nothing(void **state) {
  static const struct ct_optimise how = {.schedule = {.rate = 0.1}, .momentum = 0.9};
  static const struct {
    const char *op;
    unsigned sums;
  } also[] = {{"relu", 1}, {"softmax", 1}, {"gelu", 0}}; /* softmax's needs its result alone */
  (void)state;
  for (size_t i = 0; i < sizeof also / sizeof *also; ++i) {
    ct_device *dev;
    ct_network *net;
    struct bed b;
    bed_make(&b);
    const int in = bed_tensor(&b, CT_ROLE_INPUT, SHAPE(ROWS, COLS)),
              one = bed_tensor(&b, CT_ROLE_WEIGHT, SHAPE(COLS, COLS)),
              kept = BED_ADD(&b, "linear", BED_IN(in, one)),
              weight = bed_tensor(&b, CT_ROLE_WEIGHT, SHAPE(COLS, COLS)),
              labels = bed_tensor(&b, CT_ROLE_LABEL, SHAPE(ROWS, COLS));
    const int logits = BED_ADD(&b, "add",
                               BED_IN(BED_ADD(&b, "linear", BED_IN(kept, weight)),
                                      BED_ADD(&b, also[i].op, BED_IN(kept)))),
              loss = ct_graph_result(b.g, BED_ADD(&b, "cross_entropy", BED_IN(logits, labels)));
    assert_int_equal(ct_graph_optimise(b.g, loss, &how), CT_OK);
    assert_int_equal(ct_graph_set_format(b.g, kept, CT_FORMAT_COMPRESSED), kept);
    bed_check(&b);
    assert_int_equal(ct_open("emu:", &dev), CT_OK);
    if (ct_network_create(dev, b.g, NULL, &net)) fail_msg("%s", ct_last_error(dev));
    assert_int_equal(net->compiled.kepts, 1);
    assert_int_equal(net->compiled.kept[0].sums, also[i].sums);
    ct_network_free(net);
    ct_close(dev);
    bed_free(&b);
  }
}

/* ---- Groups that gradients read themselves ---- */

static int normalised(struct bed *b, int x, uint32_t channels) {
  const struct ct_shape c = SHAPE(channels);
  const int in[5] = {
      x,
      ct_graph_tensor(
          b->g,
          &(struct ct_new_tensor){.shape = c, .role = CT_ROLE_WEIGHT, .initial = CT_INITIAL_ONES}),
      bed_tensor(b, CT_ROLE_WEIGHT, c), bed_tensor(b, CT_ROLE_STATE, c),
      ct_graph_tensor(b->g, &(struct ct_new_tensor){
                                .shape = c, .role = CT_ROLE_STATE, .initial = CT_INITIAL_ONES})};
  const int y = BED_ADD(b, "batch_norm_train", .inputs = in, .input_count = 5);
  assert_true(ct_graph_becomes(b->g, in[3], y + 1) > 0 && ct_graph_becomes(b->g, in[4], y + 2) > 0);
  return BED_ADD(b, "relu", BED_IN(y));
}

static int convolved(struct bed *b, int x, uint32_t from, uint32_t to) {
  const int w = ct_graph_tensor(
      b->g, &(struct ct_new_tensor){
                .role = CT_ROLE_WEIGHT, .shape = SHAPE(to, 1, 1, from), .initial = CT_INITIAL_HE});
  return BED_ADD(b, "conv", BED_IN(x, w));
}

/* What classifies the means of maps of 16 channels, and is trained. */
static void classified(struct bed *b, int map, uint32_t images) {
  static const struct ct_optimise how = {.schedule = {.rate = 0.125}, .momentum = 0.5};
  const int mean = BED_ADD(b, "global_average_pool", BED_IN(map)),
            rows = BED_ADD(b, "flatten", BED_IN(mean)),
            w = ct_graph_tensor(b->g, &(struct ct_new_tensor){.role = CT_ROLE_WEIGHT,
                                                              .shape = SHAPE(CLASSES, 16),
                                                              .initial = CT_INITIAL_HE}),
            labels = bed_tensor(b, CT_ROLE_LABEL, SHAPE(images, CLASSES)),
            logits = BED_ADD(b, "linear", BED_IN(rows, w)),
            loss = ct_graph_result(b->g, BED_ADD(b, "cross_entropy", BED_IN(logits, labels)));
  assert_int_equal(ct_graph_optimise(b->g, loss, &how), CT_OK);
  bed_check(b);
}

/* Two layers of images whose pixels are index units as a whole: several in a plane, the last of
 * which is no quarter of them, or one. */
static void whole_units(struct bed *b, uint32_t images, uint32_t channels) {
  bed_make(b);
  b->update = true;
  const int in = bed_tensor(b, CT_ROLE_INPUT, SHAPE(images, 16, 16, 16)),
            one = normalised(b, convolved(b, in, 16, channels), channels);
  classified(b, normalised(b, convolved(b, one, channels, 16), 16), images);
}

/* Bits are those of HBFP8 with K = 0, and the same on all
 * cores with another. Hardly anything is unpacked. */
static void test_groups_are_read(void **state) {
  (void)state;
  static const char *const uris[] = {"emu:core=16x8", "sim:stall=25", "sim:core=16x8"};
  static const uint32_t images[] = {1, 5}, channels[] = {40, 16};
  for (size_t i = 0; i < sizeof images / sizeof *images; ++i) {
    struct bed b;
    struct net_bed n;
    size_t unpack = 0;
    whole_units(&b, images[i], channels[i]);
    const uint64_t exact = two_steps(&b, "emu:", CT_FORMAT_HBFP8, 36, 0).digest;
    assert_true(two_steps(&b, "emu:", CT_FORMAT_COMPRESSED, 36, 0).digest == exact);
    b.masks = i > 0;
    const struct outcome want = two_steps(&b, "emu:", CT_FORMAT_COMPRESSED, 36, 127);
    assert_true(want.digest != exact && want.kept >= 2);
    for (size_t u = 0; u < (CT_TB_SANITIZED ? 1 : sizeof uris / sizeof *uris); ++u) {
      const struct outcome got = two_steps(&b, uris[u], CT_FORMAT_COMPRESSED, 36, 127);
      assert_true(got.digest == want.digest && got.pages == want.pages);
    }
    net_open(&n, &b, "emu:");
    for (size_t s = 0; s < n.net->compiled.stages; ++s)
      unpack += !strcmp(n.net->compiled.stage[s].op, "decompressing");
    assert_int_equal(unpack, b.masks ? 2 : 1); /* the linear layer's input, a mask */
    net_close(&n);
    bed_free(&b);
  }
}

/* The gradient of what has no weight in front is asked for by nobody: the step that would make it
 * has no program, so it gives no pages back. */
static void test_reader_without_a_program(void **state) {
  (void)state;
  struct bed b;
  bed_make(&b);
  b.update = true;
  const int in = bed_tensor(&b, CT_ROLE_INPUT, SHAPE(1, 32, 32, 16)),
            map = BED_ADD(&b, "max_pool", BED_IN(in),
                          BED_ATTRS({"kernel", 2, {2, 2}}, {"stride", 2, {2, 2}}));
  classified(&b, normalised(&b, map, 16), 1);
  loses_nothing(&b, 37);
  bed_free(&b);
}

/* Updates by what each second run makes: gradients are needed in no other, but what is kept in each
 * is given back. */
static void test_readers_of_some_runs(void **state) {
  (void)state;
  struct bed b;
  whole_units(&b, 1, 16);
  for (size_t i = 0; i < b.g->nodes; ++i) {
    struct ct_gnode *n = b.g->node[i];
    for (unsigned a = 0; n->op->attrs && n->op->attrs[a].name; ++a)
      if (!strcmp(n->op->attrs[a].name, "runs")) n->attr[a].value[0] = 2;
  }
  bed_check(&b);
  loses_nothing(&b, 38);
  bed_free(&b);
}

/* Ways of keeping side by side, of images whose pixels are whole index units: nothing is lost with
 * K = 0, and cores agree on what is lost with another. */
static void test_mixed_ways(void **state) {
  (void)state;
  static const char *const uris[] = {"emu:core=16x8", "sim:stall=25", "sim:core=16x8"};
  ct_rng rng = ct_rng_make(39);
  size_t kept = 0, exact = 0;
  for (int i = 0, draws = ct_tb_draws(24); i < draws; ++i) {
    const struct net_shape shape = {.training = true,
                                    .whole = i % 4 != 3,
                                    .accumulate = i % 3 ? 0 : 2,
                                    .most_layers = 5,
                                    .most_channels = 40,
                                    .most_size = 14,
                                    .most_images = 3};
    const uint64_t seed = ct_rng_u64(&rng);
    const uint32_t bound = 120 + ct_rng_below(&rng, 12);
    struct bed b;
    char text[1024];
    net_random(&b, &shape, &rng);
    mix(b.g, seed, true);
    const struct outcome want = steps_as_said(&b, "emu:", seed, 0);
    mix(b.g, seed, false);
    for (unsigned masks = 0; masks < 2; ++masks) {
      b.masks = masks;
      const struct outcome got = steps_as_said(&b, "emu:", seed, 0);
      if (got.digest != want.digest)
        fail_msg("masks %u, it differs: %s", masks, net_text(&b, text, sizeof text));
      kept += got.kept;
      exact += got.exact;
    }
    const struct outcome lost = steps_as_said(&b, "emu:", seed, bound);
    for (size_t u = 0; u < (i % 6 ? 1 : sizeof uris / sizeof *uris); ++u) {
      const struct outcome got = steps_as_said(&b, uris[u], seed, bound);
      if (got.digest && (got.digest != lost.digest || got.pages != lost.pages))
        fail_msg("%s differs, K = %u: %s", uris[u], (unsigned)bound,
                 net_text(&b, text, sizeof text));
    }
    bed_free(&b);
  }
  printf("  %zu tensors compressed, %zu of whole numbers\n", kept, exact);
  assert_true(kept > 5 && exact > 1);
}

/* What a program does with the groups of an index. */
struct use {
  bool reads, frees;
};

static struct use use_of(const struct ct_stage *stage, const struct ct_kept *k) {
  const uint32_t end = k->index.at + ct_pack_units(k->rows, k->cols);
  struct use use = {false, false};
  for (size_t j = 0; j < stage->codes.count; ++j)
    for (size_t i = 0; i < stage->codes.job[j].count; ++i) {
      const struct ct_cmd *cmd = &stage->codes.job[j].cmd[i];
      const uint32_t at = CT_GET(cmd, DMA_DRAM);
      if (CT_GET(cmd, ALL_OP) != CT_OP_LD || !CT_GET(cmd, DMA_COMP) ||
          CT_GET(cmd, DMA_DRAM_REG) != k->index.reg || at < k->index.at || at >= end)
        continue;
      use.reads = true;
      use.frees = use.frees || CT_GET(cmd, DMA_FREE);
    }
  return use;
}

/* Of all that read the same groups the last one gives their pages back, and no other. Returns how
 * many read them. */
static unsigned freed_by_the_last(const struct ct_compiled *c, const struct ct_kept *k) {
  unsigned readers = 0, freed = 0;
  struct use last = {false, false};
  for (size_t i = 0; i < c->stages; ++i) {
    const struct use use = use_of(&c->stage[i], k);
    if (!use.reads) continue;
    ++readers;
    freed += use.frees;
    last = use;
  }
  assert_true(readers > 0 && freed == 1 && last.frees);
  return readers;
}

static void test_the_last_reader_frees(void **state) {
  (void)state;
  unsigned most = 0;
  for (unsigned masks = 0; masks < 2; ++masks) {
    const struct ct_compile_options options = {
        .spm_words = 1 << 15, .walks = true, .compress = true, .masks = masks};
    struct ct_compiled c;
    struct bed b;
    whole_units(&b, 5, 16);
    keep_all(b.g, CT_FORMAT_COMPRESSED);
    if (ct_compile(b.g, &options, &c)) fail_msg("%s", c.why);
    assert_true(c.kepts >= 2);
    for (size_t i = 0; i < c.kepts; ++i) {
      const unsigned readers = freed_by_the_last(&c, &c.kept[i]);
      if (readers > most) most = readers;
    }
    ct_compiled_free(&c);
    bed_free(&b);
  }
  assert_true(most >= 3);
}

static int compiles(const struct bed *b, uint32_t words) {
  const struct ct_compile_options options = {
      .spm_words = words, .walks = true, .compress = true, .masks = true};
  struct ct_compiled c;
  const int err = ct_compile(b->g, &options, &c);
  if (err && err != CT_ERR_NO_SPACE) fail_msg("%s", c.why);
  ct_compiled_free(&c);
  return err;
}

/* What has room for HBFP8 has room for groups: where they do not fit they are unpacked. The
 * gradient of what is normalised row by row reads columns beside them. */
static void test_little_scratchpad(void **state) {
  (void)state;
  struct bed b;
  bed_make(&b);
  const int in = bed_tensor(&b, CT_ROLE_INPUT, SHAPE(4, 16, 16, 16)),
            scale = bed_tensor(&b, CT_ROLE_WEIGHT, SHAPE(16)),
            map = BED_ADD(&b, "layer_norm", BED_IN(convolved(&b, in, 16, 16), scale));
  classified(&b, convolved(&b, map, 16, 16), 4);
  for (uint32_t words = 1024; words <= 16384; words += 128) {
    keep_all(b.g, CT_FORMAT_HBFP8);
    if (compiles(&b, words)) continue;
    keep_all(b.g, CT_FORMAT_COMPRESSED);
    if (compiles(&b, words)) fail_msg("%u words are too few", (unsigned)words);
  }
  bed_free(&b);
}

/* ---- Of one network ---- */

static void test_needs_less(void **state) {
  (void)state;
  static const enum ct_format formats[] = {CT_FORMAT_HBFP8, CT_FORMAT_RECOMPUTE,
                                           CT_FORMAT_COMPRESSED};
  const struct ct_network_options options = {.error = 0.1};
  uint64_t bytes[3], pages = 0;
  ct_device *dev;
  assert_int_equal(ct_open("emu:", &dev), CT_OK);
  for (size_t i = 0; i < 3; ++i) {
    ct_network *net;
    ct_graph *g = kept_resnet8(4, formats[i]);
    if (ct_network_create(dev, g, &options, &net)) fail_msg("%s", ct_last_error(dev));
    bytes[i] = kept_info(net).run_bytes;
    pages = kept_info(net).pages;
    ct_network_free(net);
    ct_graph_free(g);
  }
  printf(
      "  resnet8, 4 images: %llu bytes in HBFP8, %llu made again, %llu compressed, and %llu of "
      "pages\n",
      (unsigned long long)bytes[0], (unsigned long long)bytes[1], (unsigned long long)bytes[2],
      (unsigned long long)pages);
  assert_true(bytes[2] + pages < bytes[0]);
  assert_true(bytes[1] < bytes[0] && bytes[2] * 3 < bytes[0] * 2);
  ct_close(dev);
}

/* Without room a run ends in an error that says so; the next begins with all pages. Another network
 * finds them taken, until the first is gone. */
static void test_pages(void **state) {
  (void)state;
  struct ct_network_kept kept;
  ct_device *dev;
  ct_network *net, *other;
  ct_graph *g = kept_resnet8(1, CT_FORMAT_COMPRESSED);
  assert_int_equal(ct_open("emu:", &dev), CT_OK);
  const struct ct_network_options few = {.bits = 1};
  assert_int_equal(ct_network_create(dev, g, &few, &net), CT_OK);
  const uint64_t pages = kept_info(net).pages;
  assert_int_equal(ct_network_draw(net, 1), CT_OK);
  kept_fill(net);
  for (unsigned i = 0; i < 2; ++i) {
    assert_int_equal(ct_network_run(net, CT_TRAINING, 0), CT_ERR_JOB);
    assert_non_null(strstr(ct_last_error(dev), "COMP"));
    assert_non_null(strstr(ct_last_error(dev), "have pages for more bits a number"));
  }
  assert_int_equal(ct_network_create(dev, g, NULL, &other), CT_ERR_BUSY);
  assert_non_null(strstr(ct_last_error(dev), "another network keeps its activations compressed"));
  /* One with the same programs shares them. */
  const struct ct_network_options like = {.like = net};
  assert_int_equal(ct_network_create(dev, g, &like, &other), CT_OK);
  ct_network_free(net);
  assert_int_equal(ct_network_create(dev, g, NULL, &net), CT_ERR_BUSY);
  ct_network_free(other);
  assert_int_equal(ct_network_create(dev, g, NULL, &net), CT_OK);
  assert_int_equal(ct_network_draw(net, 1), CT_OK);
  kept_fill(net);
  for (unsigned i = 0; i < 3; ++i)
    assert_int_equal(ct_network_run(net, CT_TRAINING, i), CT_OK);
  assert_int_equal(ct_network_run(net, CT_INFERENCE, 0), CT_ERR_UNSUPPORTED);
  const struct ct_network_info info = kept_info(net);
  assert_true(info.pages > 2 * pages && info.pages_most > pages && info.pages_most <= info.pages);
  /* The bound makes it smaller. */
  uint64_t bytes[2] = {0};
  for (unsigned round = 0; round < 2; ++round) {
    for (size_t i = 0; !ct_network_kept(net, i, &kept); ++i)
      bytes[round] += kept.bytes;
    for (size_t i = 0; i < net->compiled.kepts; ++i)
      assert_int_equal(ct_network_keep_within(net, i, 128), CT_OK);
    assert_int_equal(ct_network_run(net, CT_TRAINING, 3), CT_OK);
  }
  printf("  resnet8, an image: %llu bytes exactly, %llu with K = 128\n",
         (unsigned long long)bytes[0], (unsigned long long)bytes[1]);
  assert_true(bytes[1] < bytes[0]);
  assert_int_equal(ct_network_keep_within(net, 0, 255), CT_ERR_ARG);
  assert_int_equal(ct_network_keep_within(net, 1000, 1), CT_ERR_NOT_FOUND);
  ct_network_free(net);
  ct_graph_free(g);
  ct_close(dev);
}

/* Bounds follow momentum and gradients, the same whether runs are waited for or submitted, and what
 * is kept becomes smaller. */
static void steps_with(double error, bool submit, uint8_t *bound, uint64_t *bytes,
                       uint64_t *digest) {
  const struct ct_network_options how = {.error = error, .refresh = 4, .masks = CT_MASKS_OFF};
  struct bed b = {.g = kept_resnet8(1, CT_FORMAT_COMPRESSED)};
  struct net_bed n = {.bed = &b};
  assert_int_equal(ct_open("emu:", &n.dev), CT_OK);
  assert_int_equal(ct_network_create(n.dev, b.g, &how, &n.net), CT_OK);
  assert_int_equal(ct_network_draw(n.net, 1), CT_OK);
  kept_fill(n.net);
  for (unsigned i = 0; i < 4; ++i) {
    if (!submit) {
      assert_int_equal(ct_network_run(n.net, CT_TRAINING, i), CT_OK);
      continue;
    }
    struct ct_event event;
    uint64_t tag;
    const struct ct_run run = {.queue = CT_TRAINING, .step = i};
    assert_int_equal(ct_network_submit(n.net, &run, &tag), CT_OK);
    assert_int_equal(ct_wait(n.dev, tag, &event, CT_FOREVER), CT_OK);
    assert_int_equal(event.error, CT_OK);
  }
  *bytes = 0;
  for (size_t i = 0; i < n.net->compiled.kepts; ++i) {
    struct ct_network_kept kept;
    assert_int_equal(ct_network_kept(n.net, i, &kept), CT_OK);
    *bytes += kept.bytes;
    bound[i] = (uint8_t)kept.bound;
  }
  *digest = net_digest(&n);
  ct_network_free(n.net);
  ct_close(n.dev);
  ct_graph_free(b.g);
}

enum { MOST_KEPT = 64, LOOKS = 8 };

static void test_bounds(void **state) {
  (void)state;
  static const double errors[] = {0, 0.01, 0.1};
  uint8_t bound[3][MOST_KEPT] = {{0}}, again[MOST_KEPT] = {0};
  uint64_t bytes[3], digest[3], more_bytes, more;
  for (size_t i = 0; i < 3; ++i) {
    steps_with(errors[i], false, bound[i], &bytes[i], &digest[i]);
    steps_with(errors[i], true, again, &more_bytes, &more);
    assert_memory_equal(again, bound[i], sizeof again);
    assert_true(more == digest[i] && more_bytes == bytes[i]);
  }
  printf("  resnet8, an image: %llu bytes exactly, %llu with 0.01, %llu with 0.1\n",
         (unsigned long long)bytes[0], (unsigned long long)bytes[1], (unsigned long long)bytes[2]);
  unsigned follow = 0;
  for (size_t i = 0; i < MOST_KEPT; ++i) {
    assert_int_equal(bound[0][i], 0);
    assert_int_equal(bound[1][i] > 0, bound[2][i] > 0);
    follow += bound[1][i] > 0 && bound[2][i] > bound[1][i];
  }
  assert_true(follow >= 4);
  assert_true(bytes[1] < bytes[0] && bytes[2] < bytes[1]);
}

/* One that has the pages of another begins with the bounds for these. */
static void test_pages_of_another(void **state) {
  (void)state;
  ct_device *dev;
  assert_int_equal(ct_open("emu:", &dev), CT_OK);
  const struct ct_network_options few = {.error = 0.1, .bits = 5};
  ct_network *net = kept_network(dev, &few);
  const struct ct_network_options like = {.error = 0.1, .bits = 12, .like = net};
  ct_network *other = kept_network(dev, &like);
  assert_memory_equal(net->bound, other->bound, net->compiled.kepts);
  kept_ready(other);
  for (unsigned i = 0; i < 2; ++i)
    assert_int_equal(ct_network_run(other, CT_TRAINING, i), CT_OK);
  ct_network_free(net);
  ct_network_free(other);
  ct_close(dev);
}

/* Where nothing may be lost the pages of a network that loses something are too few: they would be
 * full for both. */
static void test_too_few_pages_of_another(void **state) {
  (void)state;
  ct_device *dev;
  ct_network *other;
  assert_int_equal(ct_open("emu:", &dev), CT_OK);
  const struct ct_network_options few = {.error = 0.1, .bits = 5};
  ct_network *net = kept_network(dev, &few);
  const struct ct_network_options like = {.like = net};
  assert_int_equal(ct_network_create(dev, ct_network_graph(net), &like, &other), CT_ERR_ARG);
  assert_non_null(strstr(ct_last_error(dev), "nothing lost, which may take 12 bits"));
  ct_network_free(net);
  ct_close(dev);
}

/* A tensor of the network's graph; free it. */
static float *tensor_of(ct_network *net, const char *name, size_t *count) {
  ct_graph *g = ct_network_graph(net);
  const int tensor = ct_graph_find(g, name);
  *count = (size_t)g->tensor[tensor]->elements;
  float *x = malloc(*count * sizeof *x);
  assert_non_null(x);
  assert_int_equal(ct_network_read(net, tensor, x, *count), CT_OK);
  return x;
}

static uint64_t digest_of_network(ct_device *dev, ct_network *net) {
  struct bed b = {.g = ct_network_graph(net)};
  struct net_bed n = {.bed = &b, .dev = dev, .net = net};
  return net_digest(&n);
}

static int run_or_submit(ct_device *dev, ct_network *net, uint64_t step, bool submit) {
  struct ct_event event;
  uint64_t tag;
  const struct ct_run run = {.queue = CT_TRAINING, .step = step};
  if (!submit) return ct_network_run(net, CT_TRAINING, step);
  assert_int_equal(ct_network_submit(net, &run, &tag), CT_OK);
  assert_int_equal(ct_wait(dev, tag, &event, CT_FOREVER), CT_OK);
  return event.error;
}

/* The groups of a tensor are not of zeros alone: these have two units each. */
static bool has_numbers(ct_network *net, size_t k) {
  enum { NUMBERS = 1024, ENTRIES = 4, ZEROS = 2 * 16, UNIT = 16 };
  struct ct_network_kept kept;
  assert_int_equal(ct_network_kept(net, k, &kept), CT_OK);
  const uint64_t groups = (kept.padded + NUMBERS - 1) / NUMBERS,
                 index = (groups + ENTRIES - 1) / ENTRIES * UNIT;
  return kept.exact || kept.bytes > groups * ZEROS + index;
}

/* Steps on numbers of any size, with few pages: nothing fails, waiting or not gives the same. */
static void test_numbers_of_any_size(void **state) {
  (void)state;
  static const float size[] = {1e-3f, 1, 300, 1e6f};
  for (size_t i = 0; i < sizeof size / sizeof *size; ++i) {
    uint64_t digest[2];
    for (unsigned submit = 0; submit < 2; ++submit) {
      ct_device *dev;
      assert_int_equal(ct_open("emu:", &dev), CT_OK);
      const struct ct_network_options few = {.error = 0.1, .bits = 2};
      ct_network *net = kept_network(dev, &few);
      kept_ready(net);
      kept_fill_times(net, size[i]);
      for (unsigned s = 0; s < 24; ++s)
        if (run_or_submit(dev, net, s, submit))
          fail_msg("numbers of %g, step %u: %s", (double)size[i], s, ct_last_error(dev));
      digest[submit] = digest_of_network(dev, net);
      for (size_t k = 0; k < net->compiled.kepts && i > 0; ++k)
        assert_true(has_numbers(net, k));
      assert_true(kept_info(net).pages_most <= kept_info(net).pages);
      ct_network_free(net);
      ct_close(dev);
    }
    assert_true(digest[0] == digest[1]);
  }
}

/* The host reads everything itself. */
static void count_on_host(ct_network *net) {
  for (size_t k = 0; k < net->compiled.kepts; ++k) {
    net->compiled.kept[k].zeros.cols = 0;
    for (unsigned j = 0; j < net->compiled.kept[k].sums; ++j)
      net->compiled.kept[k].sum[j].magnitudes.cols = 0;
  }
}

static void looked_at(const struct ct_network_options *how, const char *device, unsigned looks,
                      bool host, uint8_t bound[][MOST_KEPT]) {
  ct_device *dev;
  assert_int_equal(ct_open(device, &dev), CT_OK);
  ct_network *net = kept_network(dev, how);
  kept_ready(net);
  for (size_t k = 0; k < net->compiled.kepts; ++k)
    assert_int_equal(net->compiled.kept[k].zeros.cols > 0, net->compiled.kept[k].sums > 0);
  if (host) count_on_host(net);
  for (unsigned s = 0; s < looks; ++s) {
    struct ct_network_kept kept;
    kept_fill_times(net, s < LOOKS / 2 ? 1 : 30); /* some look finds the pages full */
    assert_int_equal(ct_network_run(net, CT_TRAINING, s), CT_OK);
    assert_int_equal(ct_network_kept(net, 0, &kept), CT_OK);
    memcpy(bound[s], net->bound, net->compiled.kepts);
  }
  ct_network_free(net);
  ct_close(dev);
}

/* What the device has counted gives the bounds that the host would find, with many pages and few.
 */
static void test_the_device_counts(void **state) {
  (void)state;
  static const struct ct_network_options how[] = {
      {.error = 0.1}, {.error = 0.01}, {.error = 0.1, .bits = 2, .masks = CT_MASKS_OFF}};
  for (size_t i = 0; i < sizeof how / sizeof *how; ++i) {
    uint8_t bound[2][LOOKS][MOST_KEPT] = {{{0}}};
    for (unsigned host = 0; host < 2; ++host)
      looked_at(&how[i], "emu:", LOOKS, host, bound[host]);
    assert_memory_equal(bound[0], bound[1], sizeof bound[0]);
    assert_memory_not_equal(bound[0][0], bound[0][LOOKS - 1], MOST_KEPT);
    if (i) continue;
    looked_at(&how[i], "emu:core=16x8", LOOKS, false, bound[1]);
    assert_memory_equal(bound[0], bound[1], sizeof bound[0]);
    if (CT_TB_SANITIZED) continue;
    looked_at(&how[i], "sim:", 2, false, bound[1]);
    assert_memory_equal(bound[0], bound[1], 2 * sizeof bound[0][0]);
  }
}

/* So nobody asks for groups as long as there is room: these are no longer what they were. */
static void test_groups_are_not_read(void **state) {
  (void)state;
  static const uint8_t garbage[CT_PAGE_BYTES] = {1};
  for (unsigned host = 0; host < 2; ++host) {
    struct ct_network_kept kept;
    ct_device *dev;
    assert_int_equal(ct_open("emu:", &dev), CT_OK);
    const struct ct_network_options options = {.error = 0.1, .bits = 12};
    ct_network *net = kept_network(dev, &options);
    kept_ready(net);
    if (host) count_on_host(net);
    assert_int_equal(run_or_submit(dev, net, 0, true), CT_OK);
    const uint64_t first = ct_first_page(net->shared);
    for (uint32_t page = 0; page < net->shared->page_count; ++page)
      assert_int_equal(
          ct_mem_write(dev, first + (uint64_t)page * CT_PAGE_BYTES, garbage, sizeof garbage),
          CT_OK);
    assert_int_equal(ct_network_kept(net, 0, &kept), host ? CT_ERR_DEVICE : CT_OK);
    ct_network_free(net);
    ct_close(dev);
  }
}

/* From the next run on. */
static void have_pages(ct_network *net, uint32_t pages) {
  net->shared->page_count = pages;
  net->shared->leaky = true;
}

/* Such as gradients of numbers about 1 can stand. */
static void expect_usual_bounds(const ct_network *net) {
  for (size_t k = 0; k < net->compiled.kepts; ++k)
    assert_true(net->bound[k] < 136);
}

/* Pages that are nearly enough: bounds stay as usual. */
static void test_nearly_enough_pages(void **state) {
  (void)state;
  for (uint32_t bits = 8; bits < 12; ++bits) {
    ct_device *dev;
    assert_int_equal(ct_open("emu:", &dev), CT_OK);
    const struct ct_network_options options = {.error = 0.1, .bits = bits};
    ct_network *net = kept_network(dev, &options);
    kept_ready(net);
    for (unsigned s = 0; s < 4; ++s) {
      assert_int_equal(ct_network_run(net, CT_TRAINING, s), CT_OK);
      expect_usual_bounds(net);
    }
    ct_network_free(net);
    ct_close(dev);
  }
}

/* Where no bound has room the run says so, and bounds are as before. */
static void test_no_bound_has_room(void **state) {
  (void)state;
  uint8_t before[MOST_KEPT];
  ct_device *dev;
  assert_int_equal(ct_open("emu:", &dev), CT_OK);
  const struct ct_network_options options = {.error = 0.1};
  ct_network *net = kept_network(dev, &options);
  const uint32_t pages = net->shared->page_count;
  kept_ready(net);
  memcpy(before, net->bound, net->compiled.kepts);
  for (unsigned submit = 0; submit < 2; ++submit) {
    have_pages(net, 0);
    assert_int_equal(run_or_submit(dev, net, 0, submit), CT_ERR_JOB);
    assert_memory_equal(net->bound, before, net->compiled.kepts);
  }
  have_pages(net, pages);
  assert_int_equal(ct_network_run(net, CT_TRAINING, 0), CT_OK);
  expect_usual_bounds(net);
  ct_network_free(net);
  ct_close(dev);
}

/* Forward passes that find bounds leave running means as a single one does. */
static void test_states_after_the_first_step(void **state) {
  (void)state;
  static const char *const name[] = {"norm.mean", "block2.1.norm1.variance"};
  float *x[2][2];
  size_t count[2];
  uint64_t jobs[2];
  for (unsigned few = 0; few < 2; ++few) {
    ct_device *dev;
    assert_int_equal(ct_open("emu:", &dev), CT_OK);
    const struct ct_network_options options = {.error = 0.1, .bits = few ? 8 : 12};
    ct_network *net = kept_network(dev, &options);
    kept_ready(net);
    kept_fill_times(net, 1000);
    if (few) have_pages(net, 15);
    const uint64_t begin = ct_queue_submitted(dev, CT_TRAINING);
    assert_int_equal(ct_network_run(net, CT_TRAINING, 0), CT_OK);
    jobs[few] = ct_queue_submitted(dev, CT_TRAINING) - begin;
    for (unsigned t = 0; t < 2; ++t)
      x[few][t] = tensor_of(net, name[t], &count[t]);
    ct_network_free(net);
    ct_close(dev);
  }
  assert_true(2 * jobs[1] > 3 * jobs[0]); /* several passes in front */
  for (unsigned t = 0; t < 2; ++t) {
    assert_memory_equal(x[0][t], x[1][t], count[t] * sizeof(float));
    free(x[0][t]);
    free(x[1][t]);
  }
}

/* A run whose numbers have grown so much that pages are full fails, and has changed no weight. The
 * next has room. */
static void test_full_later(void **state) {
  (void)state;
  for (unsigned submit = 0; submit < 2; ++submit) {
    ct_device *dev;
    size_t count;
    assert_int_equal(ct_open("emu:", &dev), CT_OK);
    const struct ct_network_options few = {.error = 0.1, .bits = 5};
    ct_network *net = kept_network(dev, &few);
    kept_ready(net);
    for (unsigned s = 0; s < 22; ++s)
      assert_int_equal(run_or_submit(dev, net, s, submit), CT_OK);
    assert_int_equal(kept_info(net).pressed, 0);
    have_pages(net, net->shared->page_count); /* counted from here on */
    assert_int_equal(run_or_submit(dev, net, 22, submit), CT_OK);
    have_pages(net, (uint32_t)(kept_info(net).pages_most / CT_PAGE_BYTES));
    kept_fill_times(net, 1e5f);
    float *before = tensor_of(net, "conv.weight", &count);
    assert_int_equal(run_or_submit(dev, net, 23, submit), CT_ERR_JOB);
    float *after = tensor_of(net, "conv.weight", &count);
    assert_memory_equal(before, after, count * sizeof *before);
    assert_int_equal(kept_info(net).pressed, 1);
    assert_int_equal(run_or_submit(dev, net, 23, submit), CT_OK);
    assert_int_equal(run_or_submit(dev, net, 24, submit), CT_OK);
    assert_int_equal(kept_info(net).pressed, 1);
    free(before);
    free(after);
    ct_network_free(net);
    ct_close(dev);
  }
}

/* A step whose gradients are all 0 says nothing about bounds: with few pages the next still has
 * room. */
static void test_bad_step(void **state) {
  (void)state;
  ct_device *dev;
  assert_int_equal(ct_open("emu:", &dev), CT_OK);
  const struct ct_network_options few = {.error = 0.1, .bits = 5, .masks = CT_MASKS_OFF};
  ct_network *net = kept_network(dev, &few);
  kept_fill(net);
  assert_int_equal(ct_network_run(net, CT_TRAINING, 0), CT_OK); /* weights are 0 */
  assert_int_equal(net->bound[0], 129);                         /* zeros: the bound comes down */
  kept_ready(net);
  for (unsigned i = 1; i < 3; ++i)
    assert_int_equal(ct_network_run(net, CT_TRAINING, i), CT_OK);
  ct_network_free(net);
  ct_close(dev);
}

/* A step has been made even if what it has kept cannot be read: the next tells. */
static void test_look_fails(void **state) {
  (void)state;
  ct_device *dev;
  assert_int_equal(ct_open("emu:", &dev), CT_OK);
  const struct ct_network_options options = {.error = 0.1};
  ct_network *net = kept_network(dev, &options);
  const uint32_t pages = net->shared->page_count;
  kept_ready(net);
  assert_int_equal(ct_network_run(net, CT_TRAINING, 0), CT_OK);
  net->shared->page_count = 0;
  assert_int_equal(ct_network_run(net, CT_TRAINING, 1), CT_OK);
  assert_int_equal(kept_info(net).steps, 2);
  assert_int_equal(ct_network_run(net, CT_TRAINING, 2), CT_ERR_DEVICE);
  assert_non_null(strstr(ct_last_error(dev), "could not be read after an earlier step"));
  assert_int_equal(kept_info(net).steps, 2);
  net->shared->page_count = pages;
  assert_int_equal(ct_network_run(net, CT_TRAINING, 2), CT_OK);
  ct_network_free(net);
  ct_close(dev);
}

/* Pages that nobody knows are freed in front of the next run, even if one is always under way. */
static void test_lost_pages(void **state) {
  (void)state;
  struct ct_event event;
  uint64_t tag[2];
  ct_device *dev;
  assert_int_equal(ct_open("emu:", &dev), CT_OK);
  const struct ct_network_options options = {.error = 0.1};
  ct_network *net = kept_network(dev, &options);
  const struct ct_network_options like = {.error = 0.1, .like = net};
  ct_network *other = kept_network(dev, &like);
  const struct ct_run run = {.queue = CT_TRAINING, .step = 30}; /* which does not look */
  kept_ready(net);
  kept_ready(other);
  assert_int_equal(ct_network_submit(net, &run, &tag[0]), CT_OK);
  net->shared->leaky = true;
  assert_int_equal(ct_network_submit(other, &run, &tag[1]), CT_OK);
  assert_false(net->shared->leaky);
  for (unsigned i = 0; i < 2; ++i) {
    assert_int_equal(ct_wait(dev, tag[i], &event, CT_FOREVER), CT_OK);
    assert_int_equal(event.error, CT_OK);
  }
  ct_network_free(other);
  ct_network_free(net);
  ct_close(dev);
}

static void test_usual_pages(void **state) {
  static const struct {
    double error;
    uint32_t bits;
  } want[] = {{0, 12}, {0.001, 12}, {0.01, 12}, {0.02, 7}, {0.1, 4}, {1, 4}};
  (void)state;
  ct_device *dev;
  assert_int_equal(ct_open("emu:", &dev), CT_OK);
  for (size_t i = 0; i < sizeof want / sizeof *want; ++i) {
    const struct ct_network_options options = {.error = want[i].error};
    ct_network *net = kept_network(dev, &options);
    assert_int_equal(net->shared->page_bits, want[i].bits);
    ct_network_free(net);
  }
  ct_close(dev);
}

/* Where something may be lost there are masks, unless somebody does not want them. */
static void test_masks_by_default(void **state) {
  (void)state;
  static const struct {
    double error;
    enum ct_masks asked;
    enum ct_masks has; /* and one like it that does not say */
  } want[] = {{0, CT_MASKS_DEFAULT, CT_MASKS_OFF},      {0.01, CT_MASKS_DEFAULT, CT_MASKS_STORED},
              {0.1, CT_MASKS_DEFAULT, CT_MASKS_STORED}, {0.1, CT_MASKS_OFF, CT_MASKS_OFF},
              {0.1, CT_MASKS_ON, CT_MASKS_ON},          {0, CT_MASKS_STORED, CT_MASKS_STORED}};
  ct_device *dev;
  assert_int_equal(ct_open("emu:", &dev), CT_OK);
  for (size_t i = 0; i < sizeof want / sizeof *want; ++i) {
    const struct ct_network_options options = {.error = want[i].error, .masks = want[i].asked};
    ct_network *net = kept_network(dev, &options);
    const struct ct_network_options like = {.error = want[i].error, .like = net};
    ct_network *other = kept_network(dev, &like);
    assert_int_equal(kept_info(net).masks, want[i].has);
    assert_int_equal(kept_info(other).masks, want[i].has);
    assert_int_equal(kept_info(net).together, 2);
    ct_network_free(other);
    ct_network_free(net);
  }
  ct_close(dev);
}

static void test_refused(void **state) {
  (void)state;
  ct_device *dev;
  ct_network *net;
  ct_graph *g = kept_resnet8(1, CT_FORMAT_COMPRESSED);
  assert_int_equal(ct_open("emu:compress=0", &dev), CT_OK);
  assert_int_equal(ct_network_create(dev, g, NULL, &net), CT_ERR_UNSUPPORTED);
  assert_non_null(strstr(ct_last_error(dev), "is to be kept compressed, which this device cannot"));
  ct_close(dev);
  assert_int_equal(ct_open("emu:", &dev), CT_OK);
  const struct ct_network_options members = {.members = 2}, wrong = {.error = -1},
                                  little = {.bits = 13}, masks = {.masks = CT_MASKS_STORED + 1};
  assert_int_equal(ct_network_create(dev, g, &members, &net), CT_ERR_UNSUPPORTED);
  assert_non_null(strstr(ct_last_error(dev), "several members"));
  assert_int_equal(ct_network_create(dev, g, &wrong, &net), CT_ERR_ARG);
  assert_int_equal(ct_network_create(dev, g, &little, &net), CT_ERR_ARG);
  assert_int_equal(ct_network_create(dev, g, &masks, &net), CT_ERR_ARG);
  /* One member alone, but run as members are: such runs know no bounds. */
  const struct ct_network_options one = {.seed = 1};
  const struct ct_members run = {.count = 1, .queue = CT_TRAINING};
  assert_int_equal(ct_network_create(dev, g, &one, &net), CT_OK);
  assert_int_equal(ct_network_run_members(net, &run), CT_ERR_UNSUPPORTED);
  assert_non_null(strstr(ct_last_error(dev), "keeps activations compressed"));
  ct_network_free(net);
  ct_graph_free(g);
  ct_close(dev);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_same_bits),
                                     cmocka_unit_test(test_state_that_changes_at_once),
                                     cmocka_unit_test(test_same_on_simulated_cores),
                                     cmocka_unit_test(test_on_the_way),
                                     CT_PLAIN_TEST(test_strides),
                                     cmocka_unit_test(test_rounded_as_said),
                                     cmocka_unit_test(test_masks),
                                     cmocka_unit_test(test_mask_of_what_one_step_reads),
                                     cmocka_unit_test(test_masks_for_which_there_is_no_place),
                                     cmocka_unit_test(test_room_for_masks),
                                     cmocka_unit_test(test_maxima),
                                     cmocka_unit_test(test_follows_what_updates),
                                     cmocka_unit_test(test_follows_all_or_nothing),
                                     cmocka_unit_test(test_groups_are_read),
                                     cmocka_unit_test(test_reader_without_a_program),
                                     cmocka_unit_test(test_readers_of_some_runs),
                                     cmocka_unit_test(test_the_last_reader_frees),
                                     cmocka_unit_test(test_mixed_ways),
                                     cmocka_unit_test(test_little_scratchpad),
                                     cmocka_unit_test(test_needs_less),
                                     cmocka_unit_test(test_pages),
                                     cmocka_unit_test(test_bounds),
                                     cmocka_unit_test(test_usual_pages),
                                     cmocka_unit_test(test_masks_by_default),
                                     cmocka_unit_test(test_pages_of_another),
                                     cmocka_unit_test(test_too_few_pages_of_another),
                                     cmocka_unit_test(test_numbers_of_any_size),
                                     cmocka_unit_test(test_nearly_enough_pages),
                                     cmocka_unit_test(test_no_bound_has_room),
                                     cmocka_unit_test(test_states_after_the_first_step),
                                     cmocka_unit_test(test_full_later),
                                     cmocka_unit_test(test_bad_step),
                                     cmocka_unit_test(test_look_fails),
                                     cmocka_unit_test(test_the_device_counts),
                                     cmocka_unit_test(test_groups_are_not_read),
                                     cmocka_unit_test(test_lost_pages),
                                     cmocka_unit_test(test_refused)};
  ct_tb_seed();
  return cmocka_run_group_tests_name("kept activations", tests, NULL, NULL);
}
