/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands as they are executed: registers added in, which ones are legal, scalar updates
 * (docs/programming.md, Programs). For whoever runs programs: the emulator, the model of time.
 */
#ifndef CT_EXEC_H
#define CT_EXEC_H

#include <stdbool.h>
#include <stdint.h>

#include "ct_cmd.h"

/* Whether the sum belongs to the command; of the control commands only LOOP has one. */
bool ct_sum_applies(const struct ct_sum_info *sum, const struct ct_op_info *op);

/* Adds the registers in; false if a sum leaves its range. op: of cmd's own code. */
bool ct_cmd_resolve(struct ct_cmd *cmd, const struct ct_op_info *op, const uint32_t r[CT_NUM_REGS]);

/* Of a resolved command of that group, whose sums are in range. */
bool ct_cmd_legal(const struct ct_cmd *cmd, unsigned group);

/* Executes an ADDI. */
void ct_cmd_addi(const struct ct_cmd *cmd, uint32_t r[CT_NUM_REGS]);

#endif
