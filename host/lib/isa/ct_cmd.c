/* SPDX-License-Identifier: Apache-2.0 */
#define CT_SPEC_TABLES
#include "ct_cmd.h"

const struct ct_op_info *ct_op_find(unsigned code) {
  for (size_t i = 0; i < CT_NUM_OPS; ++i)
    if (ct_ops[i].code == code) return &ct_ops[i];
  return NULL;
}

const struct ct_sum_info *ct_sum_of(enum ct_field_id field) {
  for (size_t i = 0; i < CT_NUM_SUMS; ++i)
    if (ct_sums[i].value == field || ct_sums[i].reg == field) return &ct_sums[i];
  return NULL;
}

static const struct ct_name_info *find(const struct ct_name_info *t, size_t n, uint32_t value) {
  static const struct ct_name_info unknown = {0, "?", "unknown"};
  for (size_t i = 0; i < n; ++i)
    if (t[i].value == value) return &t[i];
  return &unknown;
}

const char *ct_dev_name(uint32_t code) {
  return find(ct_dev_names, CT_NUM_DEV, code)->name;
}

const char *ct_dev_text(uint32_t code) {
  return find(ct_dev_names, CT_NUM_DEV, code)->text;
}

const char *ct_cnt_name(uint32_t index) {
  return find(ct_cnt_names, CT_NUM_CNT, index)->name;
}

bool ct_cmd_set(struct ct_cmd *cmd, enum ct_field_id field, int64_t value) {
  const struct ct_field_info *f = &ct_fields[field];
  const int64_t range = INT64_C(1) << f->width;
  const bool is_int = f->kind == CT_KIND_INT;
  if (value < (is_int ? -range / 2 : 0) || value >= (is_int ? range / 2 : range)) return false;
  ct_cmd_set_bits(cmd, f->lsb, f->width, (uint32_t)value);
  return true;
}

void ct_cmd_to_bytes(const struct ct_cmd *cmd, uint8_t bytes[CT_CMD_BYTES]) {
  for (unsigned i = 0; i < CT_CMD_BYTES; ++i)
    bytes[i] = (uint8_t)(cmd->w[i / 4] >> 8 * (i % 4));
}

struct ct_cmd ct_cmd_from_bytes(const uint8_t bytes[CT_CMD_BYTES]) {
  struct ct_cmd cmd = {{0}};
  for (unsigned i = 0; i < CT_CMD_BYTES; ++i)
    cmd.w[i / 4] |= (uint32_t)bytes[i] << 8 * (i % 4);
  return cmd;
}
