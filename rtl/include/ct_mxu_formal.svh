// SPDX-License-Identifier: Apache-2.0
//
// What is proven of ct_mxu (tb/formal/ct_mxu.proof), included at its end.

  // Of any context: what the row buffer, its entries and the head keep to (they are cut away; ct_mxu_agen has RowsFollow_A, ct_mxu_head that rows go in
  // order and at once; a row is here four cycles after its entry was made, and the head in three: HeadThere_M is RowHasMeta_A in simulation).
  (* anyconst *) logic f_ctx;
  logic [6:0]       f_count, f_count_q;
  mxu_meta_t        f_head, f_head_q;
  logic             f_take_q, f_vld_q, f_kept_q, f_gone;
  logic             f_open_q;  // a row tile has begun under a policy that leaves it whole, and not ended
  assign f_count = f_ctx ? count[13:7] : count[6:0];
  assign f_head  = f_ctx ? head[2*MetaW-1:MetaW] : head[MetaW-1:0];
  assign f_gone  = flush_q[f_ctx] || halt_q[f_ctx];
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      f_kept_q <= 1'b0;
      f_open_q <= 1'b0;
    end else begin
      f_kept_q <= !f_gone && f_count != '0;
      if (f_gone)           f_open_q <= 1'b0;
      else if (take[f_ctx]) f_open_q <= !tile_last[f_ctx] && (f_open_q || (whole && tile_first[f_ctx]));
    end
  end
  always_ff @(posedge clk_i) begin
    f_count_q <= f_count;
    f_head_q  <= f_head;
    f_take_q  <= take[f_ctx];
    f_vld_q   <= head_vld[f_ctx];
  end
  `CT_ASSUME(RowsThere_M, avail[f_ctx] == (f_count != '0) && f_count <= 7'd64)
  `CT_ASSUME(RowsStay_M, !f_kept_q || f_count >= f_count_q - 7'(f_take_q))
  `CT_ASSUME(HeadThere_M, f_gone || f_count == '0 || head_vld[f_ctx] || (next_vld[f_ctx] && next_w2[f_ctx]))
  `CT_ASSUME(HeadStays_M, !f_kept_q || !f_vld_q || f_take_q || (head_vld[f_ctx] && f_head == f_head_q))
  `CT_ASSUME(HeadFollows_M, !f_kept_q || !f_take_q || f_head_q.row == f_head_q.rows_m1 ||
                            (head_vld[f_ctx] ? f_head.row == f_head_q.row + 4'd1 && f_head.rows_m1 == f_head_q.rows_m1 && !f_head.w2 && !f_head.first
                                                     : !next_w2[f_ctx]))
  `CT_ASSUME(RowInTile_M, !head_vld[f_ctx] || f_head.row <= f_head.rows_m1)
  // (The first row of a tile under way has been taken: the others are here.)
  `CT_ASSERT(RestIsHere_A, !f_open_q || f_gone || (f_head.row != 4'd0 && f_count > 7'(f_head.rows_m1) - 7'(f_head.row) && head_vld[f_ctx] && !head_first[f_ctx]))
  `CT_ASSERT(HolderHasRows_A, !f_open_q || f_gone || ready[f_ctx] || hazard[f_ctx])
