// SPDX-License-Identifier: Apache-2.0
//
// What is proven of ct_vpu_apart (tb/formal/ct_vpu_apart.proof), included at its end. Any context, any tile register; 16 lanes.

  (* anyconst *) logic       f_c;
  (* anyconst *) logic [3:0] f_tile;
  logic [AgeW-1:0] f_left_q, f_age, f_before;  // until what was written to it may be read
  logic            f_writes, f_reads, f_reads_q, f_started_q;
  logic            f_any;
  logic [3:0]      f_to, f_to_before;

  assign f_writes = starts_i[f_c] && start_to_i == f_tile;
  assign f_reads  = (head_i[256*f_c + ct_pkg::VaASrcLsb +: 2] == 2'd0 && head_i[256*f_c + ct_pkg::VaTaLsb +: 4] == f_tile)
                 || ((^head_i[256*f_c + ct_pkg::VaBSrcLsb +: 2] || ^head_i[256*f_c + ct_pkg::VaCSrcLsb +: 2])
                     && head_i[256*f_c + ct_pkg::VaTqLsb +: 4] == f_tile);
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      f_left_q    <= '0;
      f_reads_q   <= 1'b0;
      f_started_q <= 1'b0;
    end else begin
      f_left_q    <= f_writes ? AgeW'(Space - 1) : f_left_q - AgeW'(f_left_q != '0);
      f_reads_q   <= f_reads;
      f_started_q <= starts_i[f_c];
    end
  end
  assign f_age       = f_c ? g_context[1].age_q : g_context[0].age_q;
  if (VpuLanes == 16) begin : g_seen
    assign f_before    = f_c ? g_context[1].g_lanes_16.before_q : g_context[0].g_lanes_16.before_q;
    assign f_any       = f_c ? g_context[1].g_lanes_16.any_q : g_context[0].g_lanes_16.any_q;
    assign f_to        = f_c ? g_context[1].g_lanes_16.to_q : g_context[0].g_lanes_16.to_q;
    assign f_to_before = f_c ? g_context[1].g_lanes_16.to_before_q : g_context[0].g_lanes_16.to_before_q;
  end else begin : g_not_seen
    assign {f_before, f_any, f_to, f_to_before} = '0;
  end

  `CT_ASSERT(AgesInOrder_A, f_age <= AgeW'(Space - 1) && (f_before == '0 || f_before < f_age))
  `CT_ASSERT(Known_A, VpuLanes != 16 || f_left_q == '0 || (f_to == f_tile && f_left_q == f_age)
             || (f_left_q <= f_before && (f_any || f_to_before == f_tile)))
  // A command that has been in front for a cycle, and is not the one that has just started.
  `CT_ASSERT(ReadsHeld_A, VpuLanes != 16 || !(f_left_q != '0 && f_reads_q && !f_started_q) || hold_o[f_c])
