// SPDX-License-Identifier: Apache-2.0
//
// B stream of one MXU context: reads the words of the weight tiles B(n,k) in the order (k, n) through its own SPM port, 16 words a tile,
// without a gap between tiles. ct_mxu_btile makes shadow tiles of them.
//
// Ahead       Words wait in a buffer of Depth words until they can go on. A word is requested only when the buffer has a place for it,
//             so answers never wait. Each side of the buffer is a register's: no path leads through here from the scratchpad to the array.
// Latency     permit_i in t: first word requested in t + 2, at word_o in t + 5.
// Errors      SPM_WINDOW: a relative address outside the window is not requested (err_win_o, relative address, until halt_i).
//             PARITY and SQUARE (a tile read transposed carries two exponents): pulses with the physical address.
// Flush       drops everything; held until idle_o.
//
// Parameters
//   Depth  words of the buffer, at least 4 (the SPM's latency; for a word a cycle 8); 16 fills a LUT RAM
//   Chained  as of ct_mxu_agen

`default_nettype none
`include "ct_assert.svh"

module ct_mxu_bload #(
  parameter  int unsigned Depth  = 16,
  parameter  bit          Chained = 1'b1,
  localparam int unsigned KSteps = 8
) (
  input  logic            clk_i,
  input  logic            rst_ni,

  input  logic            flush_i,
  input  logic            halt_i,

  input  logic            nxt_valid_i,
  input  logic [ct_pkg::MxuBW-1:0] nxt_i,  // mxu_b_t
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

  // The oldest word there is.
  output logic            word_vld_o,
  output logic            word_trans_o,  // of a tile to transpose
  output logic [135:0]    word_o,        // {exponent, mantissas}
  input  logic            pop_i,

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

  `include "ct_mxu_bundles.svh"

  localparam int unsigned FreeW = $clog2(Depth + 1);
  localparam int unsigned PermW = $clog2(KSteps + 1);

  // The next command; the one being walked, and where it is.
  mxu_b_t           nxt;
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
  logic             want, bad, fire, load;
  logic             req_vld_d, req_vld_q;
  logic [19:0]      req_addr_q;
  logic [2:0]       req_tag_q;  // {transposed, first word of a tile, last word of a k step}

  assign nxt = nxt_i;

  assign n_last   = (n_q == nt_m1_q);
  assign row_last = (row_q == 4'd15);
  assign k_start  = (row_q == '0) && n_q == '0;
  assign cmd_end  = row_last && n_last && k_left_q == '0;

  assign want = cur_vld_q && (perm_q != '0 || !k_start) && !halt_i && !flush_i;
  assign bad  = (addr_q >= spm_size_i);
  assign fire = want && !bad && free_q != '0 && (!req_vld_q || spm_rd_ready_i);

  assign err_win_o      = want && bad;
  assign err_win_addr_o = addr_q;

  assign load       = nxt_valid_i && (!cur_vld_q || (Chained && fire && cmd_end)) && !halt_i && !flush_i;
  assign nxt_take_o = load;
  assign step       = (n_last ? kbase_q : tile_q) + (n_last ? {{4{bk_q[15]}}, bk_q} : {{4{bn_q[15]}}, bn_q});

  always_comb begin
    cur_vld_d = load || (cur_vld_q && !(fire && cmd_end));
    perm_d    = perm_q + PermW'(permit_i) - PermW'(fire && k_start);
    free_d    = free_q + FreeW'(gone_q) - FreeW'(fire);
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
      bn_q     <= nxt.bn;
      bk_q     <= nxt.bk;
      trans_q  <= nxt.trans;
      nt_m1_q  <= nxt.nt_m1;
      row_q    <= '0;
      n_q      <= '0;
      k_left_q <= nxt.kt_m1;
      addr_q   <= nxt.b;
      tile_q   <= nxt.b;
      kbase_q  <= nxt.b;
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

  // The buffer. Its place is given back a cycle after the word has gone.
  logic         put, buf_ready;
  logic [136:0] put_word;  // {of a tile to transpose, exponent, mantissas}
  logic         gone_d, gone_q;
  assign put      = arrive;
  assign put_word = {t2_tag_q[2], spm_rd_exp_i, spm_rd_data_i};
  assign gone_d   = pop_i && !flush_i;

  ct_fifo #(.Width(137), .Depth(Depth)) u_words (
    .clk_i, .rst_ni,
    .valid_i(put), .ready_o(buf_ready), .data_i(put_word),
    .valid_o(word_vld_o), .ready_i(pop_i || flush_i), .data_o({word_trans_o, word_o}),
    .count_o()
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) gone_q <= 1'b0;
    else         gone_q <= gone_d;
  end

  assign idle_o = !cur_vld_q && !req_vld_q && !t1_vld_q && !t2_vld_q && !word_vld_o && !gone_q;

  `CT_ASSUME(AnswerInTime_M, !t2_vld_q || spm_rd_vld_i)
  `CT_ASSERT(BufferHasRoom_A, !arrive || buf_ready)
  `CT_ASSERT(PlacesCounted_A, free_q <= FreeW'(Depth))
  `CT_ASSERT(PermitsCounted_A, perm_q <= PermW'(KSteps))
  `CT_ASSUME(PopsWhatIsThere_M, !pop_i || word_vld_o)

`ifdef FORMAL
  `include "ct_mxu_bload_formal.svh"
`endif

endmodule

`default_nettype wire
