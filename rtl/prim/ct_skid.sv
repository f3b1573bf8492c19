// SPDX-License-Identifier: Apache-2.0
//
// Register slice (skid buffer): cuts every combinational path of a valid/ready stream, at full throughput.
//
// Latency     one cycle.
// Throughput  one word a cycle.
// Handshake   valid_o, data_o and ready_o come from registers; no path from ready_i to ready_o or from an input to an output.
//             A word moves where valid and ready are both high at the rising edge. valid_o never falls and data_o never changes
//             before ready_i. valid_i may fall again without having been taken.
// Cost        two words of registers: the output register, and the skid register for the word that arrives in the cycle in which
//             the output is first refused, when ready_o is still high.
//
// Parameters
//   Width  bits of a word, at least 1

`default_nettype none
`include "ct_assert.svh"

module ct_skid #(
  parameter int unsigned Width = 8
) (
  input  logic             clk_i,
  input  logic             rst_ni,

  input  logic             valid_i,
  output logic             ready_o,
  input  logic [Width-1:0] data_i,

  output logic             valid_o,
  input  logic             ready_i,
  output logic [Width-1:0] data_o
);

  if (Width == 0) begin : g_check_width
    ct_error_skid_width_must_be_at_least_1 u_error ();
  end

  logic             out_vld_q, skid_vld_q;
  logic [Width-1:0] out_q, skid_q;
  logic             move;  // the output register is free in the next cycle

  assign move    = !out_vld_q || ready_i;
  assign ready_o = !skid_vld_q;
  assign valid_o = out_vld_q;
  assign data_o  = out_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      out_vld_q  <= 1'b0;
      skid_vld_q <= 1'b0;
    end else begin
      if (move) out_vld_q <= skid_vld_q || valid_i;
      skid_vld_q <= !move && (skid_vld_q || valid_i);
    end
  end

  always_ff @(posedge clk_i) begin
    if (move && (skid_vld_q || valid_i)) out_q <= skid_vld_q ? skid_q : data_i;
    if (ready_o && valid_i) skid_q <= data_i;
  end

  // Invariants. A word waits in the skid register only behind one in the output register: no word is overtaken.
  `CT_ASSERT(SkidBehindOut_A, !skid_vld_q || out_vld_q)

`ifdef FORMAL
  // As in ct_fifo: words are numbered modulo 16 on both sides, and any one number is followed.
  (* anyconst *) logic [3:0] f_pick;
  logic [3:0]       f_in_q, f_out_q;
  logic [Width-1:0] f_word_q, f_data_q;
  logic             f_kept_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      f_in_q   <= '0;
      f_out_q  <= '0;
      f_kept_q <= 1'b0;
    end else begin
      f_in_q   <= f_in_q + 4'(valid_i && ready_o);
      f_out_q  <= f_out_q + 4'(valid_o && ready_i);
      f_kept_q <= valid_o && !ready_i;
    end
  end
  always_ff @(posedge clk_i) begin
    if (valid_i && ready_o && f_in_q == f_pick) f_word_q <= data_i;
    f_data_q <= data_o;
  end
  `CT_ASSERT(Numbered_A, 4'(f_in_q - f_out_q) == 4'(out_vld_q) + 4'(skid_vld_q))
  `CT_ASSERT(LiesThere_A, (!out_vld_q || f_pick != f_out_q || out_q == f_word_q) &&
                          (!skid_vld_q || f_pick != 4'(f_out_q + 4'd1) || skid_q == f_word_q))
  `CT_ASSERT(InOrder_A, !(valid_o && ready_i) || f_out_q != f_pick || data_o == f_word_q)
  `CT_ASSERT(NothingFromNothing_A, !valid_o || f_in_q != f_out_q)
  `CT_ASSERT(KeepsOffer_A, !f_kept_q || (valid_o && data_o == f_data_q))
`endif

  `CT_COVER(BothFull_C, skid_vld_q && out_vld_q)

endmodule

`default_nettype wire
