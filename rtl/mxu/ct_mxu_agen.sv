// SPDX-License-Identifier: Apache-2.0
//
// A stream of one MXU context: walks the tiles of A (k, n, m, row) and requests their words, one a cycle, without a gap at the
// end of a row, tile, k step or command. With each word goes the entry of the row it will become (meta).
//
// Room        A row is requested only when the row buffer has a free place for it (Depth places, given back by pop_i), so answers
//             never wait. A transposed tile needs 16 free places and one of the transposer's buffers (alloc_*), and is then
//             requested to its end; all its 16 words are read, even if fewer rows are wanted. Rows of a tile that is not
//             transposed wait until the transposer holds nothing of this context (own_i): rows stay in order.
// Request     registered; req_valid_o stays until req_ready_i, except on a flush. Physical address = spm_base_i + relative.
// Walks       (Conv) the rows of an MM with Walk are where ct_mxu_walk says. One that is padding is requested, too, so that it keeps its turn, but is not to
//             be read, and its address is not looked at.
// Errors      a relative address outside 0 .. spm_size_i - 1 is not requested: err_o with the address until halt_i.
// Flush       drops command, permits and request at once.
//
// Parameters
//   Depth  places of the row buffer, at least 16
//   Conv   1: there are walks

`default_nettype none
`include "ct_assert.svh"

module ct_mxu_agen #(
  parameter  int unsigned Depth  = 64,
  parameter  int unsigned Conv   = 0,
  localparam int unsigned NxtW   = 94,
  localparam int unsigned MetaW  = 26,
  localparam int unsigned KSteps = 8
) (
  input  logic             clk_i,
  input  logic             rst_ni,

  input  logic             flush_i,
  input  logic             halt_i,

  input  logic             nxt_valid_i,
  input  logic [NxtW-1:0]  nxt_i,         // as nxt_a_o of ct_mxu_seq
  input  logic [26:0]      nxt_walk_i,
  output logic             nxt_take_o,
  input  logic             permit_i,

  input  logic             wpix_i,        // as of ct_mxu_seq, in cmd_i
  input  logic             wtap_i,
  input  logic [255:0]     cmd_i,

  input  logic [19:0]      spm_base_i,
  input  logic [19:0]      spm_size_i,

  // A buffer of the transposer for the tile that starts: asked for, granted in the same cycle.
  output logic             alloc_o,
  output logic [3:0]       alloc_rows_o,  // rows wanted of it, less one
  input  logic             alloc_ok_i,
  input  logic             alloc_buf_i,
  input  logic             own_i,

  output logic             req_valid_o,
  output logic [19:0]      req_addr_o,
  output logic             req_trans_o,   // the word goes to the transposer ...
  output logic             req_buf_o,     // ... into this buffer ...
  output logic [3:0]       req_idx_o,     // ... as this row
  output logic             req_klast_o,   // last A word of a k step
  output logic             req_walk_o,    // of an MM with Walk
  output logic             req_pad_o,     // it is padding, and not to be read
  input  logic             req_ready_i,

  output logic             meta_valid_o,  // a row was requested
  output logic [MetaW-1:0] meta_o,        // {last row of its tile, Wait2 is the command's last, Wait2, Sig1, start at +0, last of the
                                          //  operation, first of the operation, number of Wait2, number of Sig1, ACC tile, row}
  input  logic             pop_i,         // a row has left the row buffer

  output logic             err_o,
  output logic [19:0]      err_addr_o,
  output logic             work_o,        // a command is being walked and its next k step is permitted
  output logic             idle_o
);

  if (Depth < 16) begin : g_check_depth
    ct_error_mxu_row_buffer_must_hold_a_tile u_error ();
  end

  localparam int unsigned FreeW = $clog2(Depth + 1);
  localparam int unsigned PermW = $clog2(KSteps + 1);

  // The command being walked.
  logic [19:0]      nx_a;
  logic [15:0]      nx_am, nx_ak;
  logic             nx_trans, nx_accum;
  logic [11:0]      nx_kt_m1;
  logic [2:0]       nx_nt_m1;
  logic [6:0]       nx_rows_m1;
  logic [3:0]       nx_acc, nx_accn;
  logic [4:0]       nx_wait2, nx_sig1;
  logic [15:0]      am_q, ak_q;
  logic             trans_q, accum_q;
  logic [2:0]       nt_m1_q;
  logic [6:0]       rows_m1_q;
  logic [3:0]       acc_q, accn_q;
  logic [4:0]       wait2_q, sig1_q;

  // Where it is.
  logic             cur_vld_d, cur_vld_q;
  logic [PermW-1:0] perm_d, perm_q;      // permits in hand
  logic [FreeW-1:0] free_d, free_q;      // places in the row buffer
  logic [19:0]      addr_q, tile_q, kbase_q, step;
  logic [19:0]      addr;                 // of the row that is due ...
  logic             pad;                  // ... unless it is padding
  logic [3:0]       row_q;
  logic [2:0]       m_q, n_q;
  logic [11:0]      k_left_q;
  logic             k_first_q;
  logic [3:0]       tile_acc_q, col_acc_q;  // ACC tile of (n, m), and of (n, 0)
  logic             buf_q;

  logic [3:0]       tile_rows_m1;  // rows of this tile that are wanted, less one
  logic             m_last, n_last, k_last, row_last, tile_start, k_start, cmd_end;
  logic             want, fits, bad, can, fire, load, room_used;
  logic             req_vld_d, req_vld_q;

  assign {nx_a, nx_am, nx_ak, nx_trans, nx_accum, nx_kt_m1, nx_nt_m1, nx_rows_m1, nx_acc, nx_accn, nx_wait2, nx_sig1} = nxt_i;

  assign m_last       = (m_q == rows_m1_q[6:4]);
  assign n_last       = (n_q == nt_m1_q);
  assign k_last       = (k_left_q == '0);
  assign tile_rows_m1 = m_last ? rows_m1_q[3:0] : 4'd15;
  assign row_last     = (row_q == (trans_q ? 4'd15 : tile_rows_m1));
  assign tile_start   = (row_q == '0);
  assign k_start      = tile_start && m_q == '0 && n_q == '0;
  assign cmd_end      = row_last && m_last && n_last && k_last;

  // want: a word is due; can: and there is room for what it becomes.
  assign want = cur_vld_q && (perm_q != '0 || !k_start) && !halt_i && !flush_i;
  assign bad  = (addr >= spm_size_i) && !pad;
  assign fits = !req_vld_q || req_ready_i;
  assign can  = want && !bad && fits;
  always_comb begin
    if (!trans_q)        fire = can && free_q != '0 && !own_i;
    else if (tile_start) fire = can && free_q >= FreeW'(16) && alloc_ok_i;
    else                 fire = can;
  end
  assign alloc_o      = can && trans_q && tile_start && free_q >= FreeW'(16);
  assign alloc_rows_o = tile_rows_m1;
  assign room_used    = fire && row_q <= tile_rows_m1;
  assign err_o        = want && bad;
  assign err_addr_o   = addr;

  assign load       = nxt_valid_i && (!cur_vld_q || (fire && cmd_end)) && !halt_i && !flush_i;
  assign nxt_take_o = load;
  assign work_o     = cur_vld_q && (perm_q != '0 || !k_start);
  assign idle_o     = !cur_vld_q && !req_vld_q;

  assign meta_valid_o = room_used;
  assign meta_o = {tile_rows_m1, n_last && m_last, k_first_q && tile_start && wait2_q[4], k_last && row_q == tile_rows_m1 && sig1_q[4],
                   k_first_q && !accum_q, m_last && row_q == tile_rows_m1, tile_start && m_q == '0,
                   wait2_q[3:0], sig1_q[3:0], tile_acc_q, row_q};

  // The tile after this one: the next m, else back to m = 0 of the next n, else of the next k.
  always_comb begin
    if (!m_last)      step = tile_q + {{4{am_q[15]}}, am_q};
    else if (!n_last) step = kbase_q;
    else              step = kbase_q + {{4{ak_q[15]}}, ak_q};
  end

  always_comb begin
    cur_vld_d = load || (cur_vld_q && !(fire && cmd_end));
    perm_d    = perm_q + PermW'(permit_i) - PermW'(fire && k_start);
    free_d    = free_q + FreeW'(pop_i) - FreeW'(room_used);
    req_vld_d = fire || (req_vld_q && !req_ready_i);
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
      row_q  <= row_q + 4'd1;
      addr_q <= addr_q + 20'd1;
      if (tile_start) buf_q <= alloc_buf_i;
      if (row_last) begin
        row_q      <= '0;
        addr_q     <= step;
        tile_q     <= step;
        m_q        <= m_q + 3'd1;
        tile_acc_q <= tile_acc_q + 4'd1;
        if (m_last) begin
          m_q        <= '0;
          n_q        <= n_q + 3'd1;
          tile_acc_q <= col_acc_q + accn_q;
          col_acc_q  <= col_acc_q + accn_q;
          if (n_last) begin
            n_q        <= '0;
            tile_acc_q <= acc_q;
            col_acc_q  <= acc_q;
            kbase_q    <= step;
            k_left_q   <= k_left_q - 12'd1;
            k_first_q  <= 1'b0;
          end
        end
      end
    end
    if (load) begin
      am_q       <= nx_am;
      ak_q       <= nx_ak;
      trans_q    <= nx_trans;
      accum_q    <= nx_accum;
      nt_m1_q    <= nx_nt_m1;
      rows_m1_q  <= nx_rows_m1;
      acc_q      <= nx_acc;
      accn_q     <= nx_accn;
      wait2_q    <= nx_wait2;
      sig1_q     <= nx_sig1;
      row_q      <= '0;
      m_q        <= '0;
      n_q        <= '0;
      k_left_q   <= nx_kt_m1;
      k_first_q  <= 1'b1;
      addr_q     <= nx_a;
      tile_q     <= nx_a;
      kbase_q    <= nx_a;
      tile_acc_q <= nx_acc;
      col_acc_q  <= nx_acc;
    end
  end

  // Walks.
  if (Conv != 0) begin : g_walk
    logic        walk_q, walk_pad, req_walk_q, req_pad_q;
    logic [19:0] walk_addr;
    ct_mxu_walk u_walk (
      .clk_i, .wpix_i, .wtap_i, .cmd_i,
      .load_i(load && nxt_walk_i[26]), .trans_i(nx_trans), .a_i(nx_a), .pos_i(nxt_walk_i[25:0]),
      .next_i(fire && walk_q), .row_last_i(row_last), .m_last_i(m_last), .n_last_i(n_last), .tile0_i(m_q == '0 && n_q == '0),
      .addr_o(walk_addr), .pad_o(walk_pad)
    );
    always_ff @(posedge clk_i) begin
      if (load) walk_q <= nxt_walk_i[26];
      if (fire) {req_walk_q, req_pad_q} <= {walk_q, pad};
    end
    assign addr       = walk_q ? walk_addr : addr_q;
    assign pad        = walk_q && walk_pad;
    assign req_walk_o = req_walk_q;
    assign req_pad_o  = req_pad_q;
  end else begin : g_no_walk
    assign addr       = addr_q;
    assign pad        = 1'b0;
    assign req_walk_o = 1'b0;
    assign req_pad_o  = 1'b0;
    logic unused_walk;
    assign unused_walk = ^{nxt_walk_i, wpix_i, wtap_i, cmd_i};
  end

  // The request register.
  logic [19:0] req_addr_q;
  logic        req_trans_q, req_buf_q, req_klast_q;
  logic [3:0]  req_idx_q;
  always_ff @(posedge clk_i) begin
    if (fire) begin
      req_addr_q  <= addr + spm_base_i;
      req_trans_q <= trans_q;
      req_buf_q   <= tile_start ? alloc_buf_i : buf_q;
      req_idx_q   <= row_q;
      req_klast_q <= row_last && m_last && n_last;
    end
  end
  assign req_valid_o = req_vld_q;
  assign req_addr_o  = req_addr_q;
  assign req_trans_o = req_trans_q;
  assign req_buf_o   = req_buf_q;
  assign req_idx_o   = req_idx_q;
  assign req_klast_o = req_klast_q;

  `CT_ASSERT(RoomCounted_A, free_q <= FreeW'(Depth) && !(free_q == '0 && room_used))
  `CT_ASSERT(PermitsCounted_A, perm_q <= PermW'(KSteps))

`ifdef FORMAL
  `include "ct_mxu_agen_formal.svh"
`endif

endmodule

`default_nettype wire
