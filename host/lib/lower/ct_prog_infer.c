/* SPDX-License-Identifier: Apache-2.0 */
/* Which program a forward pass takes: flat, in loops, or through device memory. */
#include "coltrain/coltrain.h"
#include "ct_infer_spilled.h"
#include "ct_infer_wide.h"

uint32_t ct_infer_pinned(const struct ct_mlp *net) {
  return ct_mlp_bias_tile(net, net->layers) * CT_F32_ROW_UNITS +
         ct_mlp_tile(net, net->layers) * CT_TILE;
}

/* The last resort is slow, and never has too many commands. */
static int write_loops(const struct ct_infer *shape, struct ct_code *code,
                       const struct ct_why *why) {
  const int err = ct_infer_wide(shape, code, why);
  return err == CT_ERR_NO_SPACE && shape->work ? ct_infer_spilled(shape, code, why) : err;
}

int ct_prog_infer(const struct ct_infer *shape, struct ct_code *code, const struct ct_why *why) {
  *code = (struct ct_code){NULL, 0};
  if (shape->work) *shape->work = 0;
  int err = ct_mlp_check(shape->net, why);
  if (!err && shape->rows > CT_INFER_ROWS_MAX)
    err =
        ct_why(why, CT_ERR_ARG, "a request has 1..%d rows, not %u", CT_INFER_ROWS_MAX, shape->rows);
  if (err) return err;
  err = ct_infer_flat(shape, code, why);
  if (err == CT_ERR_NO_SPACE && !shape->pinned && !shape->resident)
    return write_loops(shape, code, why);
  return err;
}
