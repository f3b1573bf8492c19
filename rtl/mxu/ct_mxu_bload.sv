// SPDX-License-Identifier: Apache-2.0
//
// B stream of one MXU context: reads the weight tiles B(n,k) in the order (k, n) through its own SPM port and fills the shadow tile
// in the array, 16 words a tile, without a gap between tiles.
//
// Ahead       Words wait in a buffer of Depth words until they can go on (at once, if none waits). A word is requested only when the
//             buffer has a place for it, so answers never wait.
// Latency     permit_i in t: first word requested in t + 1, written in t + 3, the tile complete in t + 18.
// Transposed  tiles go from the buffer through a transposer of their own: 18 cycles later, but as fast. A tile that is not transposed
//             waits until the transposer is empty.
// Shadow      ld_*_o writes the weights of column ld_idx_o. tile_ready_o says that the tile will be complete at the end of this cycle;
//             take_i (the first row of its operation enters the array) frees it: in the next cycle the shadow tile becomes the active
//             one, and column 0 of the next tile may be written at that same edge. So a new tile may be taken every 16 cycles.
// Errors      SPM_WINDOW: a relative address outside the window is not requested (err_win_o, relative address, until halt_i).
//             PARITY and SQUARE (a tile read transposed carries two exponents): pulses with the physical address.
// Flush       drops everything; held until idle_o.
//
// Parameters
//   Depth  words of the buffer, at least 4 (the SPM's latency); 16 fills a LUT RAM

`default_nettype none
`include "ct_assert.svh"

module ct_mxu_bload #(
  parameter  int unsigned Depth  = 16,
  localparam int unsigned NxtW   = 68,
  localparam int unsigned KSteps = 8
) (
  input  logic            clk_i,
  input  logic            rst_ni,

  input  logic            flush_i,
  input  logic            halt_i,

  input  logic            nxt_valid_i,
  input  logic [NxtW-1:0] nxt_i,         // as nxt_b_o of ct_mxu_seq
  output logic            nxt_take_o,
  input  logic            permit_i,

  input  logic [19:0]     spm_base_i,
  input  logic [19:0]     spm_size_i,

  output logic            spm_rd_valid_o,
  output logic [19:0]     spm_rd_addr_o,
  input  logic            spm_rd_ready_i,
  input  logic            spm_rd_vld_i,
  input  logic [127:0]    spm_rd_data_i,
  input  logic [7:0]      spm_rd_exp_i,
  input  logic            spm_rd_perr_i,

  output logic            ld_valid_o,    // column ld_idx_o of the tile
  output logic [3:0]      ld_idx_o,
  output logic [135:0]    ld_word_o,     // {exponent, mantissas}
  output logic            tile_ready_o,
  input  logic            take_i,

  output logic            kdone_o,       // the last B word of a k step has arrived
  output logic            err_win_o,
  output logic            err_perr_o,
  output logic            err_square_o,
  output logic [19:0]     err_win_addr_o,
  output logic [19:0]     err_addr_o,
  output logic            idle_o
);

  if (Depth < 4) begin : g_check_depth
    ct_error_mxu_b_buffer_must_cover_the_latency u_error ();
  end

  localparam int unsigned FreeW = $clog2(Depth + 1);
  localparam int unsigned PermW = $clog2(KSteps + 1);

  // The command being walked, and where it is.
  logic [19:0]      nx_b;
  logic [15:0]      nx_bn, nx_bk;
  logic             nx_trans;
  logic [11:0]      nx_kt_m1;
  logic [2:0]       nx_nt_m1;
  logic [15:0]      bn_q, bk_q;
  logic             trans_q;
  logic [2:0]       nt_m1_q;

  logic             cur_vld_d, cur_vld_q;
  logic [PermW-1:0] perm_d, perm_q;
  logic [FreeW-1:0] free_d, free_q;
  logic [19:0]      addr_q, tile_q, kbase_q, step;
  logic [3:0]       row_q;
  logic [2:0]       n_q;
  logic [11:0]      k_left_q;

  logic             n_last, row_last, k_start, cmd_end;
  logic             want, bad, fire, load, pop;
  logic             req_vld_d, req_vld_q;
  logic [19:0]      req_addr_q;
  logic [2:0]       req_tag_q;  // {transposed, first word of a tile, last word of a k step}

  assign {nx_b, nx_bn, nx_bk, nx_trans, nx_kt_m1, nx_nt_m1} = nxt_i;

  assign n_last   = (n_q == nt_m1_q);
  assign row_last = (row_q == 4'd15);
  assign k_start  = (row_q == '0) && n_q == '0;
  assign cmd_end  = row_last && n_last && k_left_q == '0;

  assign want = cur_vld_q && (perm_q != '0 || permit_i || !k_start) && !halt_i && !flush_i;
  assign bad  = (addr_q >= spm_size_i);
  assign fire = want && !bad && free_q != '0 && (!req_vld_q || spm_rd_ready_i);

  assign err_win_o      = want && bad;
  assign err_win_addr_o = addr_q;

  assign load       = nxt_valid_i && (!cur_vld_q || (fire && cmd_end)) && !halt_i && !flush_i;
  assign nxt_take_o = load;
  assign step       = (n_last ? kbase_q : tile_q) + (n_last ? {{4{bk_q[15]}}, bk_q} : {{4{bn_q[15]}}, bn_q});

  always_comb begin
    cur_vld_d = load || (cur_vld_q && !(fire && cmd_end));
    perm_d    = perm_q + PermW'(permit_i) - PermW'(fire && k_start);
    free_d    = free_q + FreeW'(pop) - FreeW'(fire);
    req_vld_d = fire || (req_vld_q && !spm_rd_ready_i);
    if (flush_i) begin
      cur_vld_d = 1'b0;
      perm_d    = '0;
      free_d    = FreeW'(Depth);
      req_vld_d = 1'b0;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      cur_vld_q <= 1'b0;
      perm_q    <= '0;
      free_q    <= FreeW'(Depth);
      req_vld_q <= 1'b0;
    end else begin
      cur_vld_q <= cur_vld_d;
      perm_q    <= perm_d;
      free_q    <= free_d;
      req_vld_q <= req_vld_d;
    end
  end

  always_ff @(posedge clk_i) begin
    if (fire) begin
      req_addr_q <= addr_q + spm_base_i;
      req_tag_q  <= {trans_q, row_q == '0, row_last && n_last};
      row_q      <= row_q + 4'd1;
      addr_q     <= addr_q + 20'd1;
      if (row_last) begin
        addr_q <= step;
        tile_q <= step;
        n_q    <= n_q + 3'd1;
        if (n_last) begin
          n_q      <= '0;
          kbase_q  <= step;
          k_left_q <= k_left_q - 12'd1;
        end
      end
    end
    if (load) begin
      bn_q     <= nx_bn;
      bk_q     <= nx_bk;
      trans_q  <= nx_trans;
      nt_m1_q  <= nx_nt_m1;
      row_q    <= '0;
      n_q      <= '0;
      k_left_q <= nx_kt_m1;
      addr_q   <= nx_b;
      tile_q   <= nx_b;
      kbase_q  <= nx_b;
    end
  end

  assign spm_rd_valid_o = req_vld_q;
  assign spm_rd_addr_o  = req_addr_q;

  // What was granted one and two cycles ago.
  logic        t1_vld_q, t2_vld_q, arrive;
  logic [2:0]  t1_tag_q, t2_tag_q;
  logic [19:0] t1_addr_q, t2_addr_q;
  logic [7:0]  tile_exp_q;  // of the first word of the tile

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      t1_vld_q <= 1'b0;
      t2_vld_q <= 1'b0;
    end else begin
      t1_vld_q <= req_vld_q && spm_rd_ready_i && !flush_i;
      t2_vld_q <= t1_vld_q && !flush_i;
    end
  end

  assign arrive = t2_vld_q && spm_rd_vld_i && !flush_i;

  always_ff @(posedge clk_i) begin
    if (req_vld_q) begin
      t1_tag_q  <= req_tag_q;
      t1_addr_q <= req_addr_q;
    end
    if (t1_vld_q) begin
      t2_tag_q  <= t1_tag_q;
      t2_addr_q <= t1_addr_q;
    end
    if (arrive && t2_tag_q[1]) tile_exp_q <= spm_rd_exp_i;
  end

  assign kdone_o      = arrive && t2_tag_q[0];
  assign err_perr_o   = arrive && spm_rd_perr_i;
  assign err_square_o = arrive && !spm_rd_perr_i && t2_tag_q[2:1] == 2'b10 && spm_rd_exp_i != tile_exp_q;
  assign err_addr_o   = t2_addr_q;

  // The buffer.
  logic         word_vld, word_trans, put, buf_ready;
  logic         buf_vld, buf_trans;
  logic [135:0] word, buf_word;

  assign put = arrive && !(pop && !buf_vld);

  ct_fifo #(.Width(137), .Depth(Depth)) u_words (
    .clk_i, .rst_ni,
    .valid_i(put), .ready_o(buf_ready), .data_i({t2_tag_q[2], spm_rd_exp_i, spm_rd_data_i}),
    .valid_o(buf_vld), .ready_i(pop || flush_i), .data_o({buf_trans, buf_word}),
    .count_o()
  );

  // The oldest word there is.
  assign word_vld   = buf_vld || arrive;
  assign word_trans = buf_vld ? buf_trans : t2_tag_q[2];
  assign word       = buf_vld ? buf_word : {spm_rd_exp_i, spm_rd_data_i};

  // The transposer: one of its buffers fills while the other one empties.
  logic         fill_buf_d, fill_buf_q;
  logic [3:0]   fill_row_d, fill_row_q;
  logic         turn_buf_d, turn_buf_q;
  logic [3:0]   turn_col_d, turn_col_q;
  logic [1:0]   tile_in_d, tile_in_q;    // buffer b holds a tile
  logic         last_d, last_q;          // the last word of a tile is being written
  logic         out_vld_d, out_vld_q;    // there is a column of a tile
  logic [7:0]   exp0_q, exp1_q, out_exp_q;
  logic [127:0] out_data;
  logic         fill, turn, turn_end, fill_free, turner_empty;
  logic         full_d, full_q;          // the shadow tile is complete
  logic [3:0]   idx_d, idx_q;            // the next word of it

  assign turn         = tile_in_q[turn_buf_q] && (!out_vld_q || !full_q) && !flush_i;
  assign turn_end     = turn && turn_col_q == 4'd15;
  // A word written in the cycle in which the last column is read lands after it.
  assign fill_free    = !tile_in_q[fill_buf_q] || (turn_end && turn_buf_q == fill_buf_q);
  assign fill         = word_vld && word_trans && fill_free && !flush_i;
  assign turner_empty = tile_in_q == 2'b00 && fill_row_q == '0 && !last_q && !out_vld_q;

  always_comb begin
    fill_row_d = fill ? fill_row_q + 4'd1 : fill_row_q;
    last_d     = fill && fill_row_q == 4'd15;
    fill_buf_d = last_d ? !fill_buf_q : fill_buf_q;
    turn_col_d = turn ? turn_col_q + 4'd1 : turn_col_q;
    turn_buf_d = turn_end ? !turn_buf_q : turn_buf_q;
    out_vld_d  = turn || (out_vld_q && full_q);
    tile_in_d  = tile_in_q;
    if (turn_end) tile_in_d[turn_buf_q] = 1'b0;
    if (last_q)   tile_in_d[!fill_buf_q] = 1'b1;
    if (flush_i) begin
      fill_row_d = '0;
      last_d     = 1'b0;
      fill_buf_d = 1'b0;
      turn_col_d = '0;
      turn_buf_d = 1'b0;
      out_vld_d  = 1'b0;
      tile_in_d  = 2'b00;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      fill_row_q <= '0;
      last_q     <= 1'b0;
      fill_buf_q <= 1'b0;
      turn_col_q <= '0;
      turn_buf_q <= 1'b0;
      out_vld_q  <= 1'b0;
      tile_in_q  <= 2'b00;
    end else begin
      fill_row_q <= fill_row_d;
      last_q     <= last_d;
      fill_buf_q <= fill_buf_d;
      turn_col_q <= turn_col_d;
      turn_buf_q <= turn_buf_d;
      out_vld_q  <= out_vld_d;
      tile_in_q  <= tile_in_d;
    end
  end

  always_ff @(posedge clk_i) begin
    if (fill && !fill_buf_q) exp0_q <= word[135:128];
    if (fill && fill_buf_q)  exp1_q <= word[135:128];
    if (turn) out_exp_q <= turn_buf_q ? exp1_q : exp0_q;
  end

  ct_mxu_transpose u_transpose (
    .clk_i, .rst_ni,
    .wr_valid_i(fill), .wr_buf_i(fill_buf_q), .wr_row_i(fill_row_q), .wr_data_i(word[127:0]),
    .rd_valid_i(turn), .rd_buf_i(turn_buf_q), .rd_col_i(turn_col_q), .rd_data_o(out_data)
  );

  // The shadow tile.
  logic direct;
  assign direct       = word_vld && !word_trans && turner_empty && !full_q && !flush_i;
  assign pop          = direct || fill;
  assign ld_valid_o   = direct || (out_vld_q && !full_q && !flush_i);
  assign ld_word_o    = out_vld_q ? {out_exp_q, out_data} : word;
  assign ld_idx_o     = idx_q;
  assign tile_ready_o = full_q || (ld_valid_o && idx_q == 4'd15);

  always_comb begin
    idx_d  = ld_valid_o ? idx_q + 4'd1 : idx_q;
    full_d = tile_ready_o && !take_i;
    if (flush_i) begin
      idx_d  = '0;
      full_d = 1'b0;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      idx_q  <= '0;
      full_q <= 1'b0;
    end else begin
      idx_q  <= idx_d;
      full_q <= full_d;
    end
  end

  assign idle_o = !cur_vld_q && !req_vld_q && !t1_vld_q && !t2_vld_q && !word_vld && turner_empty && idx_q == '0 && !full_q;

  `CT_ASSUME(AnswerInTime_M, !t2_vld_q || spm_rd_vld_i)
  `CT_ASSERT(BufferHasRoom_A, !arrive || buf_ready)
  `CT_ASSERT(PlacesCounted_A, free_q <= FreeW'(Depth))
  `CT_ASSERT(PermitsCounted_A, perm_q <= PermW'(KSteps))
  `CT_ASSUME(TakesWholeTiles_M, !take_i || tile_ready_o)

`ifdef FORMAL
  `include "ct_mxu_bload_formal.svh"
`endif

endmodule

`default_nettype wire
