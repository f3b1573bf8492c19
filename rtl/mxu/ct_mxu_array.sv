// SPDX-License-Identifier: Apache-2.0
//
// The array: from a row of A to the accumulators. Weight tiles and dot products (ct_mxu_dots), the terms of the product
// (ct_fp_term), the accumulation (ct_fp_add) and ACC (ct_mxu_acc), with everything that travels along.
//
// Issue       iss_valid_i in cycle 0; row_i is that row from cycle 1 until the next issue. A row takes 16 / Cols beats, of Cols columns each
//             from column 0 on, so there must be that many cycles from one issue to the next. iss_first_i: the shadow tile becomes
//             active for this row.
// Stages      1 row register, shadow to active   2 weights read   3 operands   4 products   5 sums of four   6 sums:
//             ct_fp_term; ACC read   8 terms: ct_fp_add   14 result: written to ACC at the end of the cycle.
// Hazard      a row must not be issued while a row of the same ACC address is on its way: ACC is read in stage 6 and written in stage 14,
//             so that is the case if it was issued in the last 8 cycles. hazard_o[c] (a register) says so for the row at head_acc_i (8 * c). What is
//             looked for is a row on the way to the sum of the row behind it, at next_acc_i, in the cycle in which that becomes the head (move_i);
//             from then on its place is followed.
// Signal      sig1_valid_o[c] for a row with iss_sig1_i: if that is row 15, in stage 1, since the rows before it are at least a cycle
//             apart and who hears of it reads ACC row after row from row 0 on, three cycles later at the earliest (row 0, readable
//             15 cycles after its issue, is by then; not so with Cols = 4 and 16 lanes); else in the cycle in which its last part is written.
// Idle        busy_o[c]: a row of c is on its way.
//
// Parameters  see ct_mxu

`default_nettype none
`include "ct_assert.svh"

module ct_mxu_array #(
  parameter int unsigned Cols     = 16,
  parameter int unsigned VpuLanes = 16,
  parameter int unsigned PackDsp  = 0
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,

  // Shadow tiles.
  input  logic                   ld_valid_i,
  input  logic                   ld_ctx_i,
  input  logic [2:0]             ld_pair_i,
  input  logic [271:0]           ld_words_i,

  // Rows.
  input  logic                   iss_valid_i,
  input  logic                   iss_ctx_i,
  input  logic                   iss_first_i,     // first row of its tile operation
  input  logic                   iss_clr_i,       // starts from +0
  input  logic                   iss_sig1_i,      // last row of a final tile: signal iss_sig1_id_i
  input  logic [3:0]             iss_sig1_id_i,
  input  logic [7:0]             iss_acc_i,       // {ACC tile, row}
  input  logic [135:0]           row_i,           // {exponent, mantissas}, one cycle after iss_valid_i

  // {ACC tile, row} of each context's head, and of the row behind it, which is the head in the next cycle if move_i.
  input  logic [15:0]            head_acc_i,
  input  logic [15:0]            next_acc_i,
  input  logic [1:0]             move_i,
  output logic [1:0]             hazard_o,

  output logic [1:0]             sig1_valid_o,
  output logic [7:0]             sig1_id_o,       // 4 * c
  output logic [1:0]             busy_o,

  input  logic                   acc_rd_valid_i,
  input  logic                   acc_rd_ctx_i,
  input  logic [3:0]             acc_rd_tile_i,
  input  logic [3:0]             acc_rd_row_i,
  input  logic [1:0]             acc_rd_beat_i,
  output logic [32*VpuLanes-1:0] acc_rd_data_o
);

  localparam int unsigned Parts = 16 / Cols;  // beats of a row

  // A reader of 16 columns a cycle would come to the last parts of row 15 before they are written.
  localparam bit Early = (Cols != 4 || VpuLanes == 4);

  localparam int unsigned TermStage = 6;
  localparam int unsigned AddStage  = 8;
  localparam int unsigned Last      = 14;

  // What travels with a beat: {part[2], ctx, acc[8], clr, sig1, id[4]}; stage i in bits W*(i-1) +: W.
  localparam int unsigned W     = 17;
  localparam int unsigned IdB   = 0;
  localparam int unsigned SigB  = 4;
  localparam int unsigned ClrB  = 5;
  localparam int unsigned AddrB = 6;   // {ctx, acc}
  localparam int unsigned CtxB  = 14;
  localparam int unsigned PartB = 15;

  logic [Last-1:0]   vld_q;           // bit i-1: stage i
  logic [W*Last-1:0] beat_q;
  logic              first_q;
  logic              more;            // another part of the row in stage 1 follows

  assign more = vld_q[0] && beat_q[PartB +: 2] != 2'(Parts - 1);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) vld_q <= '0;
    else         vld_q <= {vld_q[Last-2:0], iss_valid_i || more};
  end

  always_ff @(posedge clk_i) begin
    if (vld_q != '0 || iss_valid_i) beat_q[W*Last-1:W] <= beat_q[W*(Last-1)-1:0];
    if (iss_valid_i) begin
      beat_q[W-1:0] <= {2'd0, iss_ctx_i, iss_acc_i, iss_clr_i, iss_sig1_i, iss_sig1_id_i};
      first_q       <= iss_first_i;
    end else if (more) begin
      beat_q[PartB +: 2] <= beat_q[PartB +: 2] + 2'd1;
      first_q            <= 1'b0;
    end
  end

  always_comb begin
    busy_o = 2'b00;
    for (int i = 0; i < Last; i++) begin
      if (vld_q[i]) begin
        if (beat_q[W*i+CtxB]) busy_o[1] = 1'b1;
        else                  busy_o[0] = 1'b1;
      end
    end
  end

  // Hazards. Bit i: the row in stage i + 1 goes to the sum of the head.
  for (genvar c = 0; c < 2; c++) begin : g_hazard
    logic [AddStage-1:0] meets_d;
    logic [AddStage-2:0] meets_q;
    logic                hazard_q;

    always_comb begin
      meets_d = {meets_q, meets_q[0] && more};
      if (move_i[c]) begin
        for (int i = 1; i < AddStage; i++)
          meets_d[i] = vld_q[i-1] && beat_q[W*(i-1)+AddrB +: 9] == {c[0], next_acc_i[8*c +: 8]};
        meets_d[0] = (meets_d[1] && more) || (iss_valid_i && iss_ctx_i == c[0] && head_acc_i[8*c +: 8] == next_acc_i[8*c +: 8]);
      end
    end

    always_ff @(posedge clk_i) begin
      meets_q  <= meets_d[AddStage-2:0];
      hazard_q <= meets_d != '0;
    end

    assign hazard_o[c] = hazard_q;
  end

  // Stage 1 to 6: the row register, tiles and dot products.
  logic [1:0]         copy;
  logic [135:0]       row_q;
  logic [19*Cols-1:0] s;
  logic [7:0]         ea;
  logic [8*Cols-1:0]  eb;

  assign copy = {vld_q[0] && first_q && beat_q[CtxB], vld_q[0] && first_q && !beat_q[CtxB]};

  always_ff @(posedge clk_i) begin
    if (vld_q[0]) row_q <= row_i;
  end

  ct_mxu_dots #(.Cols(Cols), .PackDsp(PackDsp)) u_dots (
    .clk_i, .rst_ni,
    .ld_valid_i, .ld_ctx_i, .ld_pair_i, .ld_words_i, .copy_i(copy),
    .pre_valid_i(vld_q[0]), .pre_ctx_i(beat_q[CtxB]), .pre_part_i(beat_q[PartB +: 2]), .row_valid_i(vld_q[1]), .row_i(row_q),
    .s_o(s), .ea_o(ea), .eb_o(eb)
  );

  // Stage 6 to 14: terms, accumulation.
  logic [32*Cols-1:0] p, acc, sum;
  logic               p_vld, sum_vld;

  ct_fp_term #(.Lanes(Cols)) u_term (
    .clk_i, .rst_ni,
    .valid_i(vld_q[TermStage-1]), .s_i(s), .ea_i(ea), .eb_i(eb),
    .valid_o(p_vld), .p_o(p)
  );

  ct_fp_add #(.Lanes(Cols)) u_add (
    .clk_i, .rst_ni,
    .valid_i(p_vld), .a_i(acc), .b_i(p),
    .valid_o(sum_vld), .sum_o(sum)
  );

  ct_mxu_acc #(.Cols(Cols), .VpuLanes(VpuLanes)) u_acc (
    .clk_i, .rst_ni,
    .rd_valid_i(vld_q[TermStage-1]), .rd_clr_i(beat_q[W*(TermStage-1)+ClrB]), .rd_part_i(beat_q[W*(TermStage-1)+PartB +: 2]),
    .rd_addr_i(beat_q[W*(TermStage-1)+AddrB +: 9]), .rd_data_o(acc),
    .wr_valid_i(sum_vld), .wr_part_i(beat_q[W*(Last-1)+PartB +: 2]),
    .wr_addr_i(beat_q[W*(Last-1)+AddrB +: 9]), .wr_data_i(sum),
    .va_valid_i(acc_rd_valid_i), .va_addr_i({acc_rd_ctx_i, acc_rd_tile_i, acc_rd_row_i}), .va_beat_i(acc_rd_beat_i),
    .va_data_o(acc_rd_data_o)
  );

  logic       sig1_first, sig1_last;
  logic [1:0] early;
  assign sig1_first   = Early && vld_q[0] && beat_q[SigB] && (&beat_q[AddrB +: 4]) && beat_q[PartB +: 2] == 2'd0;
  assign sig1_last    = vld_q[Last-1] && beat_q[W*(Last-1)+SigB] && !(Early && (&beat_q[W*(Last-1)+AddrB +: 4])) &&
                        beat_q[W*(Last-1)+PartB +: 2] == 2'(Parts - 1);
  assign early        = {sig1_first && beat_q[CtxB], sig1_first && !beat_q[CtxB]};
  assign sig1_valid_o = early | {sig1_last && beat_q[W*(Last-1)+CtxB], sig1_last && !beat_q[W*(Last-1)+CtxB]};
  assign sig1_id_o    = {early[1] ? beat_q[IdB +: 4] : beat_q[W*(Last-1)+IdB +: 4],
                         early[0] ? beat_q[IdB +: 4] : beat_q[W*(Last-1)+IdB +: 4]};

  // The stages above are those of the modules, and parts are not overrun.
  `CT_ASSERT(TermOnTime_A, p_vld == vld_q[AddStage-1])
  `CT_ASSERT(SumOnTime_A, sum_vld == vld_q[Last-1])
  // A tile of fewer rows was signalled before the next one can be complete.
  `CT_ASSERT(OneTileSignalled_A, !(sig1_first && sig1_last && beat_q[CtxB] == beat_q[W*(Last-1)+CtxB]))
  `CT_ASSERT(NoOverrun_A, !(iss_valid_i && more))

`ifdef FORMAL
  `include "ct_mxu_array_formal.svh"
`endif

endmodule

`default_nettype wire
