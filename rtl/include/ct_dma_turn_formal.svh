// SPDX-License-Identifier: Apache-2.0
//
// What is proven of ct_dma_turn (tb/formal/ct_dma_turn.proof), included at its end.

  // The blocks: quiet until a command is taken, not quiet in the cycle after.
  logic f_plain_quiet_q, f_comp_quiet_q, f_plain_take_q, f_comp_take_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      f_plain_quiet_q <= 1'b1;
      f_comp_quiet_q  <= 1'b1;
      f_plain_take_q  <= 1'b0;
      f_comp_take_q   <= 1'b0;
    end else begin
      f_plain_quiet_q <= plain_quiet_i;
      f_comp_quiet_q  <= comp_quiet_i;
      f_plain_take_q  <= plain_take;
      f_comp_take_q   <= comp_take;
    end
  end
  `CT_ASSUME(PlainBusyByCommand_M, plain_quiet_i ? !f_plain_take_q : (f_plain_take_q || !f_plain_quiet_q))
  `CT_ASSUME(CompBusyByCommand_M, comp_quiet_i ? !f_comp_take_q : (f_comp_take_q || !f_comp_quiet_q))

  // What is kept of it is never quiet too early.
  `CT_ASSERT(PlainQuietKept_A, !plain_quiet_q || plain_quiet_i)
  `CT_ASSERT(CompQuietKept_A, !comp_quiet_q || comp_quiet_i)
  // A command is given to one block, whole: taken from the queue when its block takes it.
  `CT_ASSERT(TakenOnce_A, (valid_i && ready_o) == (plain_take || comp_take))
  // In a queue whose blocks are quiet no command waits for them.
  `CT_ASSERT(NoWaitWhenQuiet_A, !(plain_quiet_q && comp_quiet_q) || ready_o == (comp_i ? comp_ready_i : plain_ready_i))
