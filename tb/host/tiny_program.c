/* SPDX-License-Identifier: Apache-2.0 */
#include "tiny_program.h"

#include "ct_cmd.h"
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
