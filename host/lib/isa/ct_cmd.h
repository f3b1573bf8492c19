/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands as 256-bit words: fields by name, and the tables that describe them (generated from
 * rtl/spec/, see coltrain_spec.h).
 */
#ifndef CT_CMD_H
#define CT_CMD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "coltrain_spec.h"

struct ct_cmd {
  uint32_t w[8]; /* bit b of the command is bit b % 32 of w[b / 32]; in memory little-endian */
};

/* A finished program. free(cmd). */
struct ct_code {
  struct ct_cmd *cmd;
  size_t count;
};

/* The value of a SEM field that names semaphore n; 0 is "none". */
#define CT_SEM(n) (16u | (unsigned)(n))

/* NULL if there is no such operation code. */
const struct ct_op_info *ct_op_find(unsigned code);
/* The sum whose value or register is this field; NULL if none. */
const struct ct_sum_info *ct_sum_of(enum ct_field_id field);

/* Names of completion codes and counters; "?" for numbers without one. */
const char *ct_dev_name(uint32_t code);
const char *ct_dev_text(uint32_t code);
const char *ct_cnt_name(uint32_t index);

static inline uint32_t ct_cmd_bits(const struct ct_cmd *cmd, unsigned lsb, unsigned width) {
  const unsigned word = lsb / 32, bit = lsb % 32;
  uint64_t v = cmd->w[word];
  if (bit + width > 32) v |= (uint64_t)cmd->w[word + 1] << 32;
  return (uint32_t)(v >> bit & ((UINT64_C(1) << width) - 1));
}

static inline void ct_cmd_set_bits(struct ct_cmd *cmd, unsigned lsb, unsigned width,
                                   uint32_t value) {
  const unsigned word = lsb / 32, bit = lsb % 32;
  const uint64_t mask = ((UINT64_C(1) << width) - 1) << bit, bits = (uint64_t)value << bit & mask;
  cmd->w[word] = (cmd->w[word] & ~(uint32_t)mask) | (uint32_t)bits;
  if (bit + width > 32)
    cmd->w[word + 1] = (cmd->w[word + 1] & ~(uint32_t)(mask >> 32)) | (uint32_t)(bits >> 32);
}

/* Two's complement of that width. */
static inline int32_t ct_sign_extend(uint32_t value, unsigned width) {
  const uint32_t sign = UINT32_C(1) << (width - 1);
  return (int32_t)((value ^ sign) - sign);
}

/* A field whose name is known when the program is compiled: CT_GET(&cmd, MM_A). CT_GETS: INT. */
#define CT_GET(cmd, F) ct_cmd_bits(cmd, CT_F_##F##_LSB, CT_F_##F##_W)
#define CT_GETS(cmd, F) ct_sign_extend(CT_GET(cmd, F), CT_F_##F##_W)
#define CT_PUT(cmd, F, value) ct_cmd_set_bits(cmd, CT_F_##F##_LSB, CT_F_##F##_W, value)

static inline uint32_t ct_cmd_get(const struct ct_cmd *cmd, enum ct_field_id field) {
  return ct_cmd_bits(cmd, ct_fields[field].lsb, ct_fields[field].width);
}

/* False (and nothing set) if the value does not fit the field; INT fields take negative ones. */
bool ct_cmd_set(struct ct_cmd *cmd, enum ct_field_id field, int64_t value);

/* The bytes of device memory. */
void ct_cmd_to_bytes(const struct ct_cmd *cmd, uint8_t bytes[CT_CMD_BYTES]);
struct ct_cmd ct_cmd_from_bytes(const uint8_t bytes[CT_CMD_BYTES]);

#endif
