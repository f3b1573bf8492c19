// SPDX-License-Identifier: Apache-2.0
//
// What is proven of ct_vpu_front (tb/formal/ct_vpu_front.proof), included at its end.

  // Any one context: the command that it gave last, which of its tiles is still to start, and what that one is.
  (* anyconst *) logic f_ctx;
  logic         f_held_q, f_load, f_last, f_begun_q;
  logic [2:0]   f_more, f_tile_q;
  logic [255:0] f_cmd_q, f_now;
  logic [19:0]  f_at_q, f_tile_at_q;  // of the row that starts next; of row 0 of its tile
  logic         f_fresh_q, f_paid_q, f_pays_q;
  logic [15:0]  f_need, f_needed_q;
  logic [31:0]  f_nz_q, f_dec_q;      // of the last cycle
  assign f_load = cmd_valid_i[f_ctx] && cmd_ready_o[f_ctx];
  assign f_more = (Repeat == 1) ? f_cmd_q[ct_pkg::VaMoreLsb +: 3] : (Repeat == 2) ? f_cmd_q[ct_pkg::VsMoreLsb +: 3] : 3'd0;
  assign f_last = f_tile_q == f_more && !stays[f_ctx];
  always_comb begin
    f_now = f_cmd_q;
    if (Repeat == 1) begin
      f_now[ct_pkg::VaMoreLsb +: 3] = f_cmd_q[ct_pkg::VaMoreLsb +: 3] - f_tile_q;
      f_now[ct_pkg::VaTaLsb +: 4]   = f_cmd_q[ct_pkg::VaTaLsb +: 4] + 4'(f_tile_q);
      f_now[ct_pkg::VaTdLsb +: 4]   = f_cmd_q[ct_pkg::VaTdLsb +: 4] + 4'(f_tile_q);
    end
    if (Repeat == 2) begin
      f_now[ct_pkg::VsMoreLsb +: 3] = f_cmd_q[ct_pkg::VsMoreLsb +: 3] - f_tile_q;
      f_now[ct_pkg::VsTsLsb +: 4]   = f_cmd_q[ct_pkg::VsTsLsb +: 4] + 4'(f_tile_q);
    end
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      f_held_q  <= 1'b0;
      f_begun_q <= 1'b0;
      f_fresh_q <= 1'b0;
      f_paid_q  <= 1'b0;
      f_pays_q  <= 1'b0;
      f_nz_q    <= '0;
      f_dec_q   <= '0;
    end else begin
      f_held_q  <= !flush_i[f_ctx] && ((f_held_q && !(start[f_ctx] && f_last)) || f_load);
      f_begun_q <= !flush_i[f_ctx] && (start[f_ctx] ? stays[f_ctx] : f_begun_q);
      f_fresh_q <= f_load;
      f_paid_q  <= !flush_i[f_ctx] && ((f_paid_q && !(start[f_ctx] && !stays[f_ctx])) || pays[f_ctx]);
      f_pays_q  <= pays[f_ctx];
      f_nz_q    <= sem_nz_i;
      f_dec_q   <= sem_dec_o;
    end
  end
  always_ff @(posedge clk_i) begin
    if (f_load) begin
      f_cmd_q  <= f_ctx ? cmd_i[511:256] : cmd_i[255:0];
      f_tile_q <= 3'd0;
    end else if (start[f_ctx] && !stays[f_ctx]) begin
      f_tile_q <= f_tile_q + 3'd1;
    end
    if (f_fresh_q) begin
      f_at_q      <= f_cmd_q[ct_pkg::VlSpmLsb +: 20] + spm_base_i[20*f_ctx +: 20];
      f_tile_at_q <= f_cmd_q[ct_pkg::VlSpmLsb +: 20] + spm_base_i[20*f_ctx +: 20];
    end else if (start[f_ctx] && !stays[f_ctx]) begin
      f_at_q      <= f_tile_at_q + 20'(f_cmd_q[ct_pkg::VsTileStrideLsb +: 12]);
      f_tile_at_q <= f_tile_at_q + 20'(f_cmd_q[ct_pkg::VsTileStrideLsb +: 12]);
    end else if (start[f_ctx] && moves_i[f_ctx]) begin
      f_at_q <= f_at_q + 20'(f_cmd_q[ct_pkg::VlRowStrideLsb +: 16]);
    end
    if (pays[f_ctx]) f_needed_q <= f_need;
  end
  always_comb begin
    for (int s = 0; s < 16; s++) begin
      f_need[s] = f_cmd_q[ct_pkg::AllWait0Lsb +: 5] == {1'b1, 4'(s)} || f_cmd_q[ct_pkg::AllWait1Lsb +: 5] == {1'b1, 4'(s)} ||
                  f_cmd_q[ct_pkg::AllWait2Lsb +: 5] == {1'b1, 4'(s)};
    end
  end
  `CT_ASSERT(Held_A, f_held_q == vld_q[f_ctx] && f_begun_q == begun_q[f_ctx] && (!f_begun_q || f_held_q) && (!f_held_q || (f_tile_q <= f_more && f_now == (f_ctx ? head_q[511:256] : head_q[255:0]))))
  `CT_ASSERT(StartsOnce_A, !start[f_ctx] || f_held_q)
  `CT_ASSERT(StartsWhatItTook_A, !(valid_o && ready_i && ctx_o == f_ctx) || (start[f_ctx] && cmd_o == f_now))
  `CT_ASSERT(KeepsWhatItTook_A, !f_load || !f_held_q || (start[f_ctx] && f_last))
  `CT_ASSERT(AddressOfTile_A, !Window || !start[f_ctx] || at_o == f_at_q)
  // What is above zero stays there until this side takes it, or its context is flushed.
  `CT_ASSUME(SemaphoresStay_M, (f_nz_q & ~f_dec_q & ~sem_nz_i & {{16{!flush_i[1]}}, {16{!flush_i[0]}}}) == 32'd0)
  logic [31:0] f_takes;
  assign f_takes = {dec_vld_q[1] ? dec_q : 16'd0, dec_vld_q[0] ? dec_q : 16'd0};
  `CT_ASSERT(WasThere_A, (f_takes & ~f_nz_q) == 32'd0 && (f_takes & f_dec_q) == 32'd0 && (dec_vld_q & ~paid_q) == 2'b00 && dec_vld_q != 2'b11)
  `CT_ASSERT(OwnerPays_A, (f_ctx ? sem_dec_o[31:16] : sem_dec_o[15:0]) == (f_pays_q && !flush_i[f_ctx] ? f_needed_q : 16'd0))
  `CT_ASSERT(PaysOnce_A, paid_q[f_ctx] == f_paid_q && (!f_paid_q || f_held_q) && (!f_begun_q || f_paid_q) && !(pays[f_ctx] && (f_paid_q || !f_held_q)) && (!start[f_ctx] || f_paid_q))
  `CT_ASSERT(InferenceFirst_A, !(qos_i[ct_pkg::QosStrict] && start[1]) || !req[0])
