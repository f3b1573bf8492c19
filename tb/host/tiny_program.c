/* SPDX-License-Identifier: Apache-2.0 */
#include "tiny_program.h"

#include <string.h>

#include "ct_cmd.h"
#include "ct_device.h"
#include "ct_tb.h"

ct_program *tiny_program(ct_device *dev, bool endless) {
  struct ct_cmd cmd[2] = {{{0}}, {{0}}};
  uint8_t bytes[2 * CT_CMD_BYTES];
  ct_program *program = NULL;
  CT_PUT(&cmd[0], ALL_OP, CT_OP_LD);
  CT_PUT(&cmd[0], DMA_NB, 1);
  CT_PUT(&cmd[0], DMA_S0, 1);
  CT_PUT(&cmd[0], DMA_N1, 1);
  CT_PUT(&cmd[0], DMA_N2, 1);
  CT_PUT(&cmd[0], ALL_WAIT1, CT_SEM(0));
  CT_PUT(&cmd[1], ALL_OP, CT_OP_END);
  for (int i = 0; i < 2; ++i)
    ct_cmd_to_bytes(&cmd[i], bytes + (size_t)i * CT_CMD_BYTES);
  const size_t skip = endless ? 0 : 1;
  assert_int_equal(ct_program_load(dev, bytes + skip * CT_CMD_BYTES, 2 - skip, &program), CT_OK);
  return program;
}

enum { FROZEN = 2 }; /* CTRL: no job begins */

uint64_t tiny_hold(ct_device *dev, enum ct_queue queue, ct_program *endless, bool emu) {
  const struct ct_job job = {.program = endless};
  uint64_t tag = 0;
  if (emu) assert_int_equal(ct_reg_write(dev, CT_REG_CTRL, FROZEN), CT_OK);
  assert_int_equal(ct_submit(dev, queue, &job, &tag), CT_OK);
  return tag;
}

void tiny_let_go(ct_device *dev, uint64_t tag, bool emu) {
  assert_int_equal(ct_cancel(dev, tag), CT_OK);
  if (emu) assert_int_equal(ct_reg_write(dev, CT_REG_CTRL, 0), CT_OK);
  assert_int_equal(ct_wait(dev, tag, NULL, 5000), CT_OK);
}

void tiny_refused(const char *uri, int error, const char *text) {
  ct_device *dev;
  const uint64_t start = ct_tb_ms();
  assert_int_equal(ct_open(uri, &dev), error);
  if (!strstr(ct_last_error(NULL), text)) fail_msg("\"%s\"", ct_last_error(NULL));
  assert_true(ct_tb_ms() - start < 3000);
}
