/* SPDX-License-Identifier: Apache-2.0 */
#include "ct_gemm.h"

void ct_gemm_write(struct gemm *g) {
  g->how->start(g);
  for (uint32_t q = 0; q < g->blocks * g->chunks; ++q) {
    const struct chunk c = ct_gemm_chunk(g, q);
    if (q >= g->how->together) g->how->multiply(g, &c);
    if (!g->how->ahead) return;
    g->how->ahead(g, &c);
    if (c.last) ct_gemm_drain(g, &c.b);
  }
}
