/* SPDX-License-Identifier: Apache-2.0 */
#include "ct_disasm.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Text under construction; what does not fit is dropped. */
struct text {
  char *buf;
  size_t size, len;
};

__attribute__((format(printf, 2, 3))) static void put(struct text *t, const char *format, ...) {
  if (t->len + 1 >= t->size) return;
  va_list args;
  va_start(args, format);
  const int n = vsnprintf(t->buf + t->len, t->size - t->len, format, args);
  va_end(args);
  if (n > 0) t->len += (size_t)n;
  if (t->len >= t->size) t->len = t->size - 1;
}

/* A sum without limits is an address. */
static bool is_address(const struct ct_field_info *f, const struct ct_sum_info *sum) {
  return sum && f->kind == CT_KIND_UINT && !sum->min && !sum->max;
}

static void put_f32(struct text *t, uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  if (value != value || (bits & 0x7f800000u) == 0)
    put(t, "0x%08" PRIx32, bits); /* NaN, zero with sign, subnormal */
  else
    put(t, "%.9g", (double)value);
}

static void put_value(struct text *t, const struct ct_cmd *cmd, enum ct_field_id id) {
  const struct ct_field_info *f = &ct_fields[id];
  const struct ct_sum_info *sum = ct_sum_of(id);
  const uint32_t value = ct_cmd_get(cmd, id);
  const uint32_t reg = sum ? ct_cmd_get(cmd, (enum ct_field_id)sum->reg) : 0;
  if (!value && !reg && (!is_address(f, sum) || id == CT_F_MM_POS)) return;
  put(t, " %s", f->name);
  if (f->kind == CT_KIND_FLAG) return;
  put(t, "=");
  if (reg) put(t, "r%" PRIu32, reg);
  if (reg && !value) return;
  if (reg) put(t, "+");
  if (f->kind == CT_KIND_INT)
    put(t, "%" PRId32, ct_sign_extend(value, f->width));
  else if (f->kind == CT_KIND_F32 && !reg)
    put_f32(t, value);
  else
    put(t, is_address(f, sum) || f->kind == CT_KIND_F32 ? "0x%" PRIx32 : "%" PRIu32, value);
}

static void put_addi(struct text *t, const struct ct_cmd *cmd) {
  static const enum ct_field_id pairs[4][3] = {
      {CT_F_ADDI_RD0, CT_F_ADDI_RS0, CT_F_ADDI_IMM0},
      {CT_F_ADDI_RD1, CT_F_ADDI_RS1, CT_F_ADDI_IMM1},
      {CT_F_ADDI_RD2, CT_F_ADDI_RS2, CT_F_ADDI_IMM2},
      {CT_F_ADDI_RD3, CT_F_ADDI_RS3, CT_F_ADDI_IMM3},
  };
  const char *comma = "";
  for (unsigned i = 0; i < 4; ++i) {
    const uint32_t rd = ct_cmd_get(cmd, pairs[i][0]), rs = ct_cmd_get(cmd, pairs[i][1]);
    const int32_t imm = (int32_t)ct_cmd_get(cmd, pairs[i][2]);
    if (!rd) continue;
    put(t, "%s r%" PRIu32 " = ", comma, rd);
    if (rs) put(t, "r%" PRIu32 " %c ", rs, imm < 0 ? '-' : '+');
    put(t, "%" PRId64, rs && imm < 0 ? -(int64_t)imm : (int64_t)imm);
    comma = ",";
  }
}

static void put_sems(struct text *t, const struct ct_cmd *cmd) {
  static const struct {
    enum ct_field_id id;
    const char *name;
  } sems[] = {{CT_F_ALL_WAIT0, "wait0"},
              {CT_F_ALL_WAIT1, "wait1"},
              {CT_F_ALL_WAIT2, "wait2"},
              {CT_F_ALL_SIG0, "sig0"},
              {CT_F_ALL_SIG1, "sig1"}};
  const char *before = ";";
  for (size_t i = 0; i < sizeof sems / sizeof *sems; ++i) {
    const uint32_t sem = ct_cmd_get(cmd, sems[i].id);
    if (!(sem & 16)) continue;
    put(t, "%s %s s%" PRIu32, before, sems[i].name, sem & 15);
    before = ",";
  }
}

/* Bits no field of the group explains. */
static void put_reserved(struct text *t, const struct ct_cmd *cmd, unsigned group) {
  struct ct_cmd rest = *cmd;
  for (size_t i = 0; i < CT_NUM_FIELDS; ++i)
    if (ct_fields[i].group == group || ct_fields[i].group == CT_GROUP_ALL)
      ct_cmd_set_bits(&rest, ct_fields[i].lsb, ct_fields[i].width, 0);
  const char *before = "; reserved";
  for (unsigned i = 0; i < 8; ++i) {
    if (!rest.w[i]) continue;
    put(t, "%s word%u=0x%08" PRIx32, before, i, rest.w[i]);
    before = "";
  }
}

size_t ct_disasm_cmd(const struct ct_cmd *cmd, char *buf, size_t size) {
  struct text t = {buf, size, 0};
  if (size) buf[0] = 0;
  const uint32_t code = CT_GET(cmd, ALL_OP);
  const struct ct_op_info *op = ct_op_find(code);
  if (!op) {
    put(&t, "?0x%02" PRIx32 " ", code);
    for (unsigned i = 0; i < 8; ++i)
      put(&t, " %08" PRIx32, cmd->w[i]);
    return t.len;
  }
  put(&t, "%s", op->name);
  for (size_t len = t.len; len < 5; ++len)
    put(&t, " ");
  if (op->group == CT_GROUP_ADDI) put_addi(&t, cmd);
  for (size_t i = 0; i < CT_NUM_FIELDS && op->group != CT_GROUP_ADDI; ++i) {
    const struct ct_sum_info *sum = ct_sum_of((enum ct_field_id)i);
    if (ct_fields[i].group != op->group || (sum && sum->reg == i)) continue;
    put_value(&t, cmd, (enum ct_field_id)i);
  }
  put_sems(&t, cmd);
  put_reserved(&t, cmd, op->group);
  while (t.len && buf[t.len - 1] == ' ')
    buf[--t.len] = 0;
  return t.len;
}

void ct_disasm(const struct ct_cmd *cmds, size_t count, void (*line)(void *arg, const char *text),
               void *arg) {
  char text[CT_DISASM_MAX + 32];
  unsigned depth = 0;
  for (size_t i = 0; i < count; ++i) {
    const uint32_t code = CT_GET(&cmds[i], ALL_OP);
    if (code == CT_OP_ENDL && depth) --depth;
    const unsigned indent = 2 * (depth < 8 ? depth : 8);
    const int n = snprintf(text, sizeof text, "%4zu  %*s", i, (int)indent, "");
    ct_disasm_cmd(&cmds[i], text + n, sizeof text - (size_t)n);
    line(arg, text);
    if (code == CT_OP_LOOP) ++depth;
  }
}
