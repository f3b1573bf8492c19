/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dropout: element i is dropped when r < rate * 2^32 (rounded down), else multiplied by 1 / (1 -
 * rate). r is word i % 4 of what Philox4x32-10 makes of the counter (i / 4, stream, step's lower
 * word, step's upper word) and the key (seed's lower word, seed's upper word). So the mask is a
 * function of seed, step, stream and i; the stream is the node's number unless it is given. The
 * gradient is the same operator with the same stream.
 */
#include "ct_op.h"
#include "ct_real.h"

enum { RATE, STREAM };
static const struct ct_attr_rule dropout_attrs[] = {
    CT_NUMBER("rate", 0, 0.999999, 0.5),
    {.name = "stream", .count = 1, .high = UINT32_MAX, .whole = true, .numbered = true},
    {0}};

static void dropout_reference(const struct ct_ref_call *c) {
  const double rate = ct_attr(c->n, RATE, 0);
  const struct ct_dropout d = {.seed = c->seed,
                               .step = c->step,
                               .stream = ct_attr_u32(c->n, STREAM, 0),
                               .limit = (uint32_t)(rate * 0x1p32)};
  const uint64_t count = ct_shape_elements(ct_out(c->g, c->n, 0));
  for (uint64_t i = 0; i < count; i += 4) {
    bool dropped[4];
    ct_dropout_four(&d, i / 4, dropped);
    for (uint64_t k = i; k < i + 4 && k < count; ++k)
      c->out[0][k] = dropped[k - i] ? 0 : c->in[0][k] / (1 - rate);
  }
}

static void dropout_grad(ct_graph *g, const struct ct_gnode *n, const int *gy, int *gx) {
  gx[0] = CT_EMIT(g, n, .op = "dropout", CT_IN(gy[0]),
                  CT_ATTRS(ct_attr_copy(n, RATE), ct_attr_copy(n, STREAM)));
}

const struct ct_gop ct_gop_dropout = {.name = "dropout",
                                      .inputs = 1,
                                      .outputs = 1,
                                      .attrs = dropout_attrs,
                                      .shape = ct_shape_of_first,
                                      .grad = dropout_grad,
                                      .reference = dropout_reference};
