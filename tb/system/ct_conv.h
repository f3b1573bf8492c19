/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A convolution layer by walks: its forward pass, its input gradient and its weight gradient as
 * programs, and what has to come out, to the bit, by plain loops over pixels and taps that know
 * nothing of walks.
 */
#ifndef CT_CONV_H
#define CT_CONV_H

#include "ct_gen.h"

enum {
  CT_CONV_WORDS = 4096 /* of the scratchpad window, from 0 on */,
  CT_CONV_TILES = 128 /* results at most */
};

enum ct_conv_pass { CT_CONV_FORWARD, CT_CONV_INPUT, CT_CONV_WEIGHT, CT_CONV_PASSES };

struct ct_conv {
  const char *name;
  int32_t w, h, images, cb, nb; /* input, blocks of channels in and out */
  int32_t k, stride, pad, dilation;
  bool grouped; /* output block n sees input block n only (then cb = nb) */
  bool lines;   /* forward: an MM for each line of taps */
  bool mixed;   /* all blocks of a pixel lie together */
};

/* Contents: words of HBFP8. Weight tiles and 16 pixels of the gradient carry one exponent. */
struct ct_conv_word {
  int8_t q[16];
  uint8_t e;
};
struct ct_conv_data {
  struct ct_conv_word word[CT_CONV_WORDS];
  uint32_t x, weights, dy, out, end; /* where they lie in the scratchpad */
};

/* Draws the data of a layer. plain: ordinary exponents only, no empty or NaN block. */
void ct_conv_draw(const struct ct_conv *c, ct_rng *rng, bool plain, struct ct_conv_data *d);

/* The data as records of 16 words, from device memory's first unit `in` on, and their size. */
size_t ct_conv_records(const struct ct_conv_data *d, uint8_t *bytes);

/* A pass that leaves FP32 tiles from unit `out` on. */
void ct_conv_program(const struct ct_conv *c, const struct ct_conv_data *d, enum ct_conv_pass pass,
                     uint32_t in, uint32_t out, struct ct_gen_prog *prog);

/* What is in the tiles: bits[tile][row][column], and, of rows that mean something, values and how
 * far FP32 and alignment may take the bits from them. Returns tiles. */
struct ct_conv_result {
  uint32_t bits[CT_CONV_TILES][16][16];
  double value[CT_CONV_TILES][16][16], radius[CT_CONV_TILES][16][16];
  unsigned rows[CT_CONV_TILES];
};
unsigned ct_conv_expect(const struct ct_conv *c, const struct ct_conv_data *d,
                        enum ct_conv_pass pass, struct ct_conv_result *r);

/* Small programs with a walk, and how each has to end, in a window of this many words. All of them
 * one after the other: a job knows nothing of the walks before it. */
enum { CT_CONV_ENDS_WINDOW = 256 };
struct ct_conv_end {
  const char *what;
  uint32_t code, addr;
};
extern const struct ct_conv_end ct_conv_ends[];
extern const unsigned ct_conv_end_count;
void ct_conv_end_program(unsigned number, struct ct_gen_prog *prog);

/* The layers that the tests go through. */
extern const struct ct_conv ct_conv_layers[];
extern const unsigned ct_conv_layer_count;

#endif
