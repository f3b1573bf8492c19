// SPDX-License-Identifier: Apache-2.0
//
// Turns the completion of an operation into semaphore pulses of its owner.
//
// Latency     sem_inc_o pulses in the cycle after done_i. A command that signals one semaphore twice (Sig0 = Sig1) pulses in
//             that cycle and in the next one.
// Handshake   done_i must stay low in the cycle after the completion of such a command (wait_o is high then), else a pulse would
//             merge with the second one and a count would be lost.
// Flush       completions of a context with drop_i give no pulse; its semaphores are about to be cleared.
//             busy_o[c]: a pulse of c is under way.

`default_nettype none
`include "ct_assert.svh"

module ct_vpu_sig (
  input  logic        clk_i,
  input  logic        rst_ni,

  input  logic        done_i,
  input  logic        ctx_i,
  input  logic [9:0]  sig_i,      // {Sig1, Sig0}
  input  logic [1:0]  drop_i,
  output logic        wait_o,
  output logic [31:0] sem_inc_o,
  output logic [1:0]  busy_o
);

  logic        fire, ctx_q, twice_d, twice_q;
  logic [15:0] first, second, inc_d, inc_q;

  assign fire   = done_i && !drop_i[ctx_i];
  assign first  = {15'd0, sig_i[4]} << sig_i[3:0];
  assign second = {15'd0, sig_i[9]} << sig_i[8:5];

  // When both are the same, the first pulse is all that the second one is.
  assign inc_d   = twice_q ? inc_q : fire ? first | second : 16'd0;
  assign twice_d = fire && sig_i[4] && sig_i[9:5] == sig_i[4:0];

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      inc_q   <= '0;
      twice_q <= 1'b0;
      ctx_q   <= 1'b0;
    end else begin
      inc_q   <= inc_d;
      twice_q <= twice_d;
      if (fire) ctx_q <= ctx_i;
    end
  end

  assign wait_o    = twice_q;
  assign sem_inc_o = {ctx_q ? inc_q : 16'd0, ctx_q ? 16'd0 : inc_q};
  assign busy_o    = {inc_q != 16'd0 && ctx_q, inc_q != 16'd0 && !ctx_q};

  `CT_ASSERT(NoMerge_A, !(twice_q && done_i))

endmodule

`default_nettype wire
