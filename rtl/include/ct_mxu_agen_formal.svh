// SPDX-License-Identifier: Apache-2.0
//
// What is proven of ct_mxu_agen (tb/formal/ct_mxu_agen.proof), included at its end.

  // What the sequencer and the row buffer keep to: at most KSteps permits beyond what is read, rows leave that are there.
  `CT_ASSUME(PermitsInHand_M, !permit_i || perm_q < PermW'(KSteps))
  `CT_ASSUME(RowsThere_M, !pop_i || free_q < FreeW'(Depth))
  // Rows of the operation under way, and what it was to have.
  logic [7:0] f_rows_q;
  logic       f_open_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      f_open_q <= 1'b0;
      f_rows_q <= '0;
    end else if (flush_i) begin
      f_open_q <= 1'b0;
    end else if (meta_valid_o) begin
      f_open_q <= !meta.last;
      f_rows_q <= meta.first ? 8'd1 : f_rows_q + 8'd1;
    end
  end
  `CT_ASSERT(InTile_A, !cur_vld_q || (m_q <= rows_m1_q[6:4] && n_q <= nt_m1_q && row_q <= (trans_q ? 4'd15 : tile_rows_m1)))
  `CT_ASSERT(OpenIsInside_A, !cur_vld_q || f_open_q == !((m_q == '0 && row_q == '0) || (m_last && row_q > tile_rows_m1)))
  `CT_ASSERT(ClosedOutside_A, cur_vld_q || !f_open_q)
  `CT_ASSERT(RowsAreWalked_A, !f_open_q || f_rows_q == 8'({m_q, row_q}))
  `CT_ASSERT(OperationWhole_A, !meta_valid_o || meta.first == !f_open_q)
  `CT_ASSERT(OperationBounded_A, !meta_valid_o || !meta.last || (f_open_q ? f_rows_q : 8'd0) == 8'(rows_m1_q))
  `CT_ASSERT(RowsBounded_A, !f_open_q || f_rows_q < 8'd128)
  // A transposed tile has its places from its first row on.
  `CT_ASSERT(RoomKept_A, !cur_vld_q || !trans_q || row_q == '0 || row_q > tile_rows_m1 || free_q > FreeW'(tile_rows_m1) - FreeW'(row_q))
  // The rows of a tile follow each other: the next one is the next of the same tile, with no Wait2, or after the last the first of
  // another one.
  logic       f_mid_q;           // the last row was not the last of its tile
  logic [3:0] f_row_q, f_end_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni)           f_mid_q <= 1'b0;
    else if (flush_i)      f_mid_q <= 1'b0;
    else if (meta_valid_o) f_mid_q <= meta.row != meta.rows_m1;
  end
  always_ff @(posedge clk_i) begin
    if (meta_valid_o) {f_row_q, f_end_q} <= {meta.row, meta.rows_m1};
  end
  `CT_ASSERT(MidTile_A, !f_mid_q || (cur_vld_q && row_q == f_row_q + 4'd1 && tile_rows_m1 == f_end_q && f_row_q < f_end_q))
  `CT_ASSERT(BetweenTiles_A, f_mid_q || !cur_vld_q || row_q == '0 || row_q > tile_rows_m1)
  `CT_ASSERT(RowsFollow_A, !meta_valid_o || (f_mid_q ? meta.row == f_row_q + 4'd1 && meta.rows_m1 == f_end_q && !meta.w2 && !meta.first
                                                     : meta.row == '0))
  // A request stays as it is until it is taken.
  logic        f_kept_q;
  logic [28:0] f_req_q, f_req;
  assign f_req = {req_addr_o, req_trans_o, req_buf_o, req_idx_o, req_klast_o, req_walk_o, req_pad_o};
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) f_kept_q <= 1'b0;
    else         f_kept_q <= req_valid_o && !req_ready_i && !flush_i;
  end
  always_ff @(posedge clk_i) f_req_q <= f_req;
  `CT_ASSERT(KeepsRequest_A, !f_kept_q || (req_valid_o && f_req_q == f_req))

  // What ct_mxu_afeed relies on. A tile that was given a buffer is asked for word by word, and nothing else before its last word is taken; a row as
  // it is only after a cycle in which the transposer had nothing of this context.
  logic       f_given, f_gave_q, f_tail, f_tile_q, f_tbuf_q, f_busy_q, f_waits_q;
  logic [3:0] f_idx_q;
  assign f_given = alloc_o && alloc_ok_i;
  assign f_tail  = req_valid_o && req_ready_i && req_trans_o && req_idx_o == 4'd15;
  `CT_ASSUME(GivenIfAsked_M, !alloc_ok_i || (alloc_o && (!req_valid_o || req_ready_i)))
  `CT_ASSUME(OwnsWhatItFills_M, (!f_tile_q || own_i) && (!own_i || f_busy_q || f_gave_q))
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      f_tile_q  <= 1'b0;
      f_gave_q  <= 1'b0;
      f_busy_q  <= 1'b0;
      f_waits_q <= 1'b0;
    end else begin
      f_tile_q  <= ((f_tile_q && !f_tail) || f_given) && !flush_i;
      f_gave_q  <= f_given;
      f_busy_q  <= own_i;
      f_waits_q <= alloc_o && !alloc_ok_i;
    end
  end
  always_ff @(posedge clk_i) begin
    if (f_given)                                          {f_tbuf_q, f_idx_q} <= {alloc_buf_i, 4'd0};
    else if (req_valid_o && req_ready_i && req_trans_o) f_idx_q <= f_idx_q + 4'd1;
  end
  logic f_turns, f_begun, f_pend;  // a word of a tile is asked for; words of a tile are still to be walked; its first word waits for a buffer
  logic f_behind;                  // the word that waits is the next one after that asked for, of the same tile
  assign f_turns  = req_vld_q && req_trans_o;
  assign f_begun  = cur_vld_q && trans_q && row_q != '0;
  assign f_pend   = spare_vld_q && starts_q;
  assign f_behind = spare_vld_q && spare_q.trans && !starts_q;
  `CT_ASSERT(WaitsBehind_A, !spare_vld_q || (starts_q == (spare_q.trans && spare_q.idx == 4'd0) && (req_vld_q || starts_q)))
  `CT_ASSERT(NextOfTile_A, !spare_vld_q || (starts_q ? f_begun && row_q == 4'd1 && (!f_turns || req_idx_o == 4'd15)
                                                     : f_turns == f_behind && (!f_behind || req_idx_o == spare_q.idx - 4'd1)))
  `CT_ASSERT(LastWalked_A, f_behind ? f_begun == (spare_q.idx != 4'd15) && (!f_begun || row_q == spare_q.idx + 4'd1)
                                    : f_pend || (spare_vld_q ? !f_begun : !f_turns || (f_begun == (req_idx_o != 4'd15) && (!f_begun || row_q == req_idx_o + 4'd1))))
  `CT_ASSERT(TileWalked_A, f_turns ? f_tile_q && f_idx_q == req_idx_o && f_tbuf_q == buf_q
                                   : f_tile_q == (f_begun && !f_pend) && (!f_tile_q || (f_idx_q == row_q && f_tbuf_q == buf_q)))
  `CT_ASSERT(AsItIsAlone_A, !((req_vld_q && !req_trans_o) || (spare_vld_q && !spare_q.trans)) || (!f_busy_q && !f_gave_q))
  `CT_ASSERT(AsksWholeTiles_A, (!req_valid_o || (req_trans_o ? f_tile_q && req_buf_o == f_tbuf_q && req_idx_o == f_idx_q : !f_tile_q && (f_kept_q || !f_busy_q))) &&
                               (!alloc_o || (!flush_i && !halt_i)) && (!alloc_o || (req_valid_o && !req_ready_i) || !f_tile_q || f_tail))
  `CT_ASSERT(KeepsAsking_A, !f_waits_q || alloc_o || halt_i || flush_i)
  `CT_ASSERT(FirstRowWaits_A, !f_pend || (f_row_q == 4'd0 && f_end_q == tile_rows_m1 && free_q >= FreeW'(15)))
  `CT_ASSERT(TileHasItsRows_A, !f_given || (meta_valid_o ? meta.row == '0 && meta.rows_m1 == alloc_rows_o
                                                         : f_row_q == 4'd0 && f_end_q == alloc_rows_o))
  // Rows asked for and not popped, those of a tile from the moment that it is given a buffer.
  logic [7:0] f_up_q, f_rest;
  assign f_rest = f_begun && row_q <= tile_rows_m1 ? 8'(tile_rows_m1) + 8'd1 - 8'(row_q) : 8'd0;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) f_up_q <= '0;
    else         f_up_q <= flush_i ? 8'd0 : f_up_q + 8'(req_valid_o && req_ready_i && !req_trans_o) + (f_given ? 8'(tile_rows_m1) + 8'd1 : 8'd0) - 8'(pop_i);
  end
  `CT_ASSUME(RowsTaken_M, !pop_i || f_up_q != '0)
  `CT_ASSERT(RowsUp_A, f_up_q <= 8'(Depth) && f_up_q + 8'(req_vld_q && !req_trans_o) + 8'(spare_vld_q && !spare_q.trans) +
                       (f_pend ? 8'(tile_rows_m1) + 8'd1 : 8'd0) + 8'(free_q) == 8'(Depth) + f_rest)
  `CT_ASSERT(RoomOfRows_A, (!f_given || f_up_q + 8'(req_valid_o && req_ready_i && !req_trans_o) <= 8'(Depth) - 8'd16) &&
                           (!(req_valid_o && !req_trans_o) || f_up_q < 8'(Depth)))

  // The words of a command by four counters: row in tile m in column n of step k. With Walk they are where the walk says, whatever it says (ct_mxu_walk
  // is cut away, and proven by itself).
  logic [3:0]  f_r_q;
  logic [2:0]  f_m_q, f_n_q;
  logic [11:0] f_k_q, f_kt_q;
  logic [19:0] f_a_q, f_step_q, f_tiles_q;  // f_step_q: k steps from A, f_tiles_q: m tiles from there
  logic        f_walk_q;
  logic [19:0] f_walk_at;
  logic        f_walk_pad;
  typedef struct packed {
    logic [19:0] at;    // in the window
    logic [19:0] addr;  // in the scratchpad
    logic        in;    // it is inside the window
    logic        walk;
    logic        pad;
  } f_word_t;
  f_word_t f_word, f_word_q, f_req_word_q;  // the word walked now, the last one, that of the request
  logic    f_row_last;
  if (Conv != 0) begin : g_f_walk
    assign f_walk_at  = g_walk.walk_addr;
    assign f_walk_pad = g_walk.walk_pad;
  end else begin : g_f_no_walk
    assign f_walk_at  = '0;
    assign f_walk_pad = 1'b0;
  end
  assign f_row_last = f_r_q == (trans_q || f_m_q != rows_m1_q[6:4] ? 4'd15 : rows_m1_q[3:0]);
  always_comb begin
    f_word.walk = f_walk_q;
    f_word.pad  = f_walk_q && f_walk_pad;
    f_word.at   = f_walk_q ? f_walk_at : f_a_q + f_step_q + f_tiles_q + 20'(f_r_q);
    f_word.in   = f_word.at < spm_size_i;
    f_word.addr = spm_base_i + f_word.at;
  end
  always_ff @(posedge clk_i) begin
    if (goes) f_req_word_q <= spare_vld_q ? f_word_q : f_word;
    if (fire) begin
      f_word_q <= f_word;
      f_r_q    <= f_r_q + 4'd1;
      if (f_row_last) begin
        f_r_q <= '0;
        f_m_q <= f_m_q + 3'd1;
        f_tiles_q <= f_tiles_q + {{4{am_q[15]}}, am_q};
        if (f_m_q == rows_m1_q[6:4]) begin
          f_m_q <= '0;
          f_tiles_q <= '0;
          f_n_q <= f_n_q + 3'd1;
          if (f_n_q == nt_m1_q) begin
            f_n_q    <= '0;
            f_k_q    <= f_k_q + 12'd1;
            f_step_q <= f_step_q + {{4{ak_q[15]}}, ak_q};
          end
        end
      end
    end
    if (load) begin
      {f_r_q, f_m_q, f_n_q, f_k_q, f_step_q, f_tiles_q} <= '0;
      f_a_q    <= nxt.a;
      f_kt_q   <= nxt.kt_m1;
      f_walk_q <= Conv != 0 && nxt.walk;
    end
  end
  `CT_ASSERT(WalksInOrder_A, !cur_vld_q || (row_q == f_r_q && m_q == f_m_q && n_q == f_n_q && k_left_q == f_kt_q - f_k_q))
  `CT_ASSERT(WalkIsWalk_A, !cur_vld_q || walk == f_walk_q)
  `CT_ASSERT(TileAddress_A, !cur_vld_q || (kbase_q == f_a_q + f_step_q && tile_q == kbase_q + f_tiles_q && addr_q == tile_q + 20'(row_q)))
  `CT_ASSERT(WordAddress_A, (!req_valid_o || req_addr_o == f_req_word_q.addr) && (!spare_vld_q || spare_q.addr == f_word_q.addr))
  `CT_ASSERT(PaddingIsSaid_A, (!req_vld_q || {req_walk_o, req_pad_o} == {f_req_word_q.walk, f_req_word_q.pad}) &&
                              (!spare_vld_q || {spare_q.walk, spare_q.pad} == {f_word_q.walk, f_word_q.pad}))
  `CT_ASSERT(AsksInside_A, (!req_vld_q || req_q.bad == !(f_req_word_q.in || f_req_word_q.pad)) &&
                           (!spare_vld_q || spare_q.bad == !(f_word_q.in || f_word_q.pad)) &&
                           (!req_valid_o || req_pad_o || f_req_word_q.in) && (!err_o || (req_vld_q && !req_q.pad && !f_req_word_q.in)))
  `CT_ASSERT(EndsAfterAll_A, !fire || cmd_end == (f_k_q == f_kt_q && f_n_q == nt_m1_q && f_m_q == rows_m1_q[6:4] && row_last))
  // What the walk relies on (Told_M there).
  `CT_ASSERT(WalkIsTold_A, !fire || (row_last == f_row_last && m_last == (f_m_q == rows_m1_q[6:4]) && n_last == (f_n_q == nt_m1_q)))
