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

  `CT_ASSUME(NoMerge_M, !(twice_q && done_i))

`ifdef FORMAL
  // The completion of the last cycle, and of the one before.
  logic        f_done_q, f_done2_q;
  logic        f_ctx_q, f_ctx2_q;
  logic [9:0]  f_sig_q, f_sig2_q;
  logic [15:0] f_own;
  logic        f_again;  // the second of two equal signals
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      f_done_q  <= 1'b0;
      f_done2_q <= 1'b0;
    end else begin
      f_done_q  <= done_i && !drop_i[ctx_i];
      f_done2_q <= f_done_q;
    end
  end
  always_ff @(posedge clk_i) begin
    {f_ctx_q, f_sig_q}   <= {ctx_i, sig_i};
    {f_ctx2_q, f_sig2_q} <= {f_ctx_q, f_sig_q};
  end
  assign f_again = f_done2_q && f_sig2_q[4] && f_sig2_q[9:5] == f_sig2_q[4:0];
  always_comb begin
    for (int s = 0; s < 16; s++) begin
      f_own[s] = (f_done_q && (f_sig_q[4:0] == {1'b1, 4'(s)} || f_sig_q[9:5] == {1'b1, 4'(s)})) || (f_again && f_sig2_q[4:0] == {1'b1, 4'(s)});
    end
  end
  `CT_ASSERT(TwiceIsAgain_A, twice_q == (f_done_q && f_sig_q[4] && f_sig_q[9:5] == f_sig_q[4:0]))
  `CT_ASSERT(IncIsOwn_A, inc_q == f_own && (f_own == 16'd0 || ctx_q == (f_done_q ? f_ctx_q : f_ctx2_q)))
  `CT_ASSERT(OwnerHears_A, sem_inc_o == ((f_done_q ? f_ctx_q : f_ctx2_q) ? {f_own, 16'd0} : {16'd0, f_own}))
  `CT_ASSERT(HeardOnce_A, f_done_q || f_again || sem_inc_o == 32'd0)
`endif

endmodule

`default_nettype wire
