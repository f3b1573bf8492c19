/* SPDX-License-Identifier: Apache-2.0 */
#include "ct_exec.h"

static bool in_range(uint32_t value, uint32_t min, uint32_t max) {
  return value >= min && value <= max;
}

bool ct_sum_applies(const struct ct_sum_info *sum, const struct ct_op_info *op) {
  return sum->group == op->group && (op->group != CT_GROUP_CTL || op->code == CT_OP_LOOP);
}

bool ct_cmd_resolve(struct ct_cmd *cmd, const struct ct_op_info *op,
                    const uint32_t r[CT_NUM_REGS]) {
  for (size_t i = 0; i < CT_NUM_SUMS; ++i) {
    const struct ct_sum_info *sum = &ct_sums[i];
    if (!ct_sum_applies(sum, op)) continue;
    const struct ct_field_info *value = &ct_fields[sum->value];
    ct_cmd_set_bits(cmd, value->lsb, value->width,
                    ct_cmd_get(cmd, sum->value) + r[ct_cmd_get(cmd, sum->reg)]);
    const uint32_t result = ct_cmd_get(cmd, sum->value);
    if (result < sum->min || (sum->max && result > sum->max)) return false;
  }
  return true;
}

/* No semaphore in two waits: a step could not take it twice. */
static bool waits_legal(const struct ct_cmd *cmd) {
  const uint32_t w0 = CT_GET(cmd, ALL_WAIT0), w1 = CT_GET(cmd, ALL_WAIT1),
                 w2 = CT_GET(cmd, ALL_WAIT2);
  return !((w0 & 16 && (w0 == w1 || w0 == w2)) || (w1 & 16 && w1 == w2));
}

static bool has_sems(const struct ct_cmd *cmd) {
  return (CT_GET(cmd, ALL_WAIT0) | CT_GET(cmd, ALL_WAIT1) | CT_GET(cmd, ALL_WAIT2) |
          CT_GET(cmd, ALL_SIG0) | CT_GET(cmd, ALL_SIG1)) &
         16;
}

/* Groups of whole tiles, of one index unit. (Whether the context has an arena is not known here.)
 */
static bool comp_legal(const struct ct_cmd *cmd) {
  const uint32_t n1 = CT_GET(cmd, DMA_N1), groups = n1 & 7, nb = CT_GET(cmd, DMA_NB);
  const bool store = CT_GET(cmd, ALL_OP) == CT_OP_ST;
  return nb % 16 == 0 && in_range(nb, 16, 64) && in_range(groups, 1, 4) && !(n1 & 8) &&
         CT_GET(cmd, DMA_FIRST) + groups <= 4 && (!store || n1 >> 4 <= 254) &&
         !CT_GET(cmd, DMA_HDR) && !CT_GET(cmd, DMA_GATHER) && CT_GET(cmd, DMA_N2) > 0;
}

static bool dma_legal(const struct ct_cmd *cmd) {
  if (CT_GET(cmd, DMA_COMP)) return comp_legal(cmd);
  return in_range(CT_GET(cmd, DMA_NB), 1, CT_GET(cmd, DMA_HDR) ? 16 : 256) &&
         (CT_GET(cmd, DMA_N2) > 0 || CT_GET(cmd, DMA_GATHER));
}

static bool mm_legal(const struct ct_cmd *cmd) {
  const uint32_t mt = (CT_GET(cmd, MM_ROWS) + 15) / 16, nt = CT_GET(cmd, MM_NT);
  return CT_GET(cmd, MM_KT) > 0 && nt > 0 && mt * nt <= 8 &&
         CT_GET(cmd, MM_ACC) + (nt - 1) * CT_GET(cmd, MM_ACC_N) + mt - 1 < CT_ACC_TILES;
}

static bool wtap_legal(const struct ct_cmd *cmd) {
  return !has_sems(cmd) && CT_GET(cmd, WTAP_KX) > 0 && CT_GET(cmd, WTAP_CB) > 0;
}

static bool wpix_legal(const struct ct_cmd *cmd) {
  return !has_sems(cmd) && CT_GET(cmd, WPIX_W) > 0 && CT_GET(cmd, WPIX_H) > 0;
}

static bool va_legal(const struct ct_cmd *cmd) {
  const uint32_t b = CT_GET(cmd, VA_B_SRC), c = CT_GET(cmd, VA_C_SRC), func = CT_GET(cmd, VA_FUNC);
  const bool b_tile = in_range(b, 1, 2), c_tile = in_range(c, 1, 2);
  /* Elements of Tq are read where other elements are written. */
  const bool crosses = CT_GET(cmd, VA_ROW_XOR) || CT_GET(cmd, VA_LANE_XOR) || b == 2 || c == 2;
  return CT_GET(cmd, VA_A_SRC) < 3 && CT_GET(cmd, VA_FN) <= 4 && !(b_tile && c_tile) &&
         (func == 0 || in_range(func, 8, 11)) && in_range(CT_GET(cmd, VA_COLS), 1, 16) &&
         !(crosses && (CT_GET(cmd, VA_TQ) - CT_GET(cmd, VA_TD)) % 16 <= CT_GET(cmd, VA_MORE));
}

bool ct_cmd_legal(const struct ct_cmd *cmd, unsigned group) {
  if (!waits_legal(cmd)) return false;
  switch (group) {
    case CT_GROUP_CTL:
    case CT_GROUP_ADDI:
      return !has_sems(cmd);
    case CT_GROUP_DMA:
      return dma_legal(cmd);
    case CT_GROUP_MM:
      return mm_legal(cmd);
    case CT_GROUP_WPIX:
      return wpix_legal(cmd);
    case CT_GROUP_WTAP:
      return wtap_legal(cmd);
    case CT_GROUP_VL:
      return CT_GET(cmd, VL_MODE) <= 2;
    case CT_GROUP_VA:
      return va_legal(cmd);
    case CT_GROUP_VS:
      return CT_GET(cmd, VS_MODE) <= 2 && CT_GET(cmd, VS_ROUND) == 0 && CT_GET(cmd, VS_NARROW) <= 6;
    default:
      return false;
  }
}

void ct_cmd_addi(const struct ct_cmd *cmd, uint32_t r[CT_NUM_REGS]) {
  const uint32_t pairs[4][3] = {
      {CT_GET(cmd, ADDI_RD0), CT_GET(cmd, ADDI_RS0), CT_GET(cmd, ADDI_IMM0)},
      {CT_GET(cmd, ADDI_RD1), CT_GET(cmd, ADDI_RS1), CT_GET(cmd, ADDI_IMM1)},
      {CT_GET(cmd, ADDI_RD2), CT_GET(cmd, ADDI_RS2), CT_GET(cmd, ADDI_IMM2)},
      {CT_GET(cmd, ADDI_RD3), CT_GET(cmd, ADDI_RS3), CT_GET(cmd, ADDI_IMM3)}};
  for (unsigned i = 0; i < 4; ++i)
    if (pairs[i][0]) r[pairs[i][0]] = r[pairs[i][1]] + pairs[i][2];
}
