/* SPDX-License-Identifier: Apache-2.0 */
/* Registers by name, with their fields and counters, of a device that nobody resets. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coltrain_spec.h"
#include "ct_device.h"

enum {
  BATCHER = 0x300, /* first of its registers */
  REGISTERS = CT_NUM_REG_INFOS + CT_NUM_BITS + CT_NUM_CNT,
  MOST = CT_QUEUES * REGISTERS
};

struct reading {
  ct_device *dev;
  struct ct_register *list;
  size_t count;
};

/* The name of a value among names with bars between them; "" if it has none. */
static void value_name(const char *names, uint64_t value, char *to, size_t size) {
  for (; value && *names; --value) {
    names += strcspn(names, "|");
    names += *names == '|';
  }
  snprintf(to, size, "%.*s", (int)strcspn(names, "|"), names);
}

static void note_fields(struct reading *r, const char *reg, const struct ct_register *whole) {
  for (size_t i = 0; i < CT_NUM_BITS; ++i) {
    const struct ct_bits_info *b = &ct_bits_infos[i];
    if (strcmp(b->reg, reg) != 0) continue;
    struct ct_register *f = &r->list[r->count++];
    *f = *whole;
    f->field = b->name;
    f->msb = b->msb;
    f->lsb = b->lsb;
    f->value = whole->value >> b->lsb & (UINT64_MAX >> (63 - (b->msb - b->lsb)));
    value_name(b->values, f->value, f->called, sizeof f->called);
  }
}

/* context: CT_QUEUES for what is no context's. */
static int read_register(struct reading *r, const struct ct_reg_info *info, uint32_t context) {
  struct ct_register reg = {.text = info->text, .msb = 31, .offset = info->offset};
  uint32_t value = 0;
  if (context < CT_QUEUES) {
    reg.offset += CT_CTX_BASE + context * CT_CTX_STRIDE;
    snprintf(reg.name, sizeof reg.name, "CTX%u.%s", context, info->name);
  } else {
    snprintf(reg.name, sizeof reg.name, "%s", info->name);
  }
  const int err = ct_reg_read(r->dev, reg.offset, &value);
  if (err) return err;
  reg.value = value;
  r->list[r->count++] = reg;
  note_fields(r, info->name, &reg);
  return CT_OK;
}

static int read_counters(struct reading *r, uint32_t context) {
  for (size_t i = 0; i < CT_NUM_CNT; ++i) {
    const struct ct_name_info *info = &ct_cnt_names[i];
    struct ct_register *reg = &r->list[r->count];
    uint32_t low = 0, high = 0;
    const uint32_t at = CT_CNT_BASE + (context * CT_MAX_COUNTERS + info->value) * 8;
    int err = ct_reg_read(r->dev, at, &low);
    if (!err) err = ct_reg_read(r->dev, at + 4, &high);
    if (err) return err;
    *reg = (struct ct_register){.text = info->text, .msb = 63, .offset = at};
    reg->value = (uint64_t)high << 32 | low;
    snprintf(reg->name, sizeof reg->name, "CTX%u.CNT.%s", context, info->name);
    ++r->count;
  }
  return CT_OK;
}

/* Of registers below `end` that are not below `from`, or of a context. */
static int read_range(struct reading *r, uint32_t from, uint32_t end, uint32_t context) {
  int err = CT_OK;
  for (size_t i = 0; !err && i < CT_NUM_REG_INFOS; ++i) {
    const struct ct_reg_info *info = &ct_reg_infos[i];
    const bool wanted = info->context ? context < CT_QUEUES : context == CT_QUEUES;
    if (wanted && info->readable && info->offset >= from && info->offset < end)
      err = read_register(r, info, context);
  }
  return err;
}

static int read_all(struct reading *r) {
  int err = read_range(r, 0, BATCHER, CT_QUEUES);
  for (uint32_t q = 0; !err && q < CT_QUEUES; ++q)
    err = read_range(r, 0, UINT32_MAX, q);
  if (!err && r->dev->info.features & CT_FEATURE_REQUESTS)
    err = read_range(r, BATCHER, UINT32_MAX, CT_QUEUES);
  for (uint32_t q = 0; !err && q < CT_QUEUES; ++q)
    err = read_counters(r, q);
  return err;
}

int ct_registers(const char *uri, const struct ct_options *options, struct ct_register **registers,
                 size_t *count) {
  CT_NEED(NULL, uri);
  CT_NEED(NULL, registers);
  CT_NEED(NULL, count);
  *registers = NULL;
  *count = 0;
  struct reading r = {.list = calloc(MOST, sizeof *r.list)};
  int err = r.list ? ct_device_look(uri, options, &r.dev) : CT_ERR_MEMORY;
  if (!err) err = read_all(&r);
  if (err) ct_device_failed(r.dev, uri, options, err);
  if (r.dev) ct_device_close(r.dev);
  if (err) {
    free(r.list);
    return err;
  }
  *registers = r.list;
  *count = r.count;
  return CT_OK;
}

void ct_registers_free(struct ct_register *registers) {
  free(registers);
}
