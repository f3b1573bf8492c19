// SPDX-License-Identifier: Apache-2.0
//
// A stream of one MXU context: walks the tiles of A (k, n, m, row) and requests their words, one a cycle, without a gap at the
// end of a row, tile or k step, nor, with Chained, of a command (else one of a cycle). With each word goes the entry of the row it will become (meta).
//
// Room        A row is requested only when the row buffer has a free place for it (Depth places, given back by pop_i), so answers
//             never wait. A transposed tile needs 16 free places and one of the transposer's buffers (alloc_*), and is then
//             requested to its end; all its 16 words are read, even if fewer rows are wanted. Rows of a tile that is not
//             transposed wait until the transposer holds nothing of this context (own_i): rows stay in order.
// Request     registered; req_valid_o stays until req_ready_i, except on a flush. Physical address = spm_base_i + relative. Behind the request
//             there is a place for another word, so that the walk does not depend on req_ready_i: only whether the word that waits becomes the
//             request does (as in ct_skid). The first word of a transposed tile waits there until its tile has a buffer.
// Walks       (Conv) the rows of an MM with Walk are where ct_mxu_walk says. One that is padding is requested, too, so that it keeps its turn, but is not to
//             be read, and its address is not looked at.
// Errors      a relative address outside 0 .. spm_size_i - 1 is not requested: where its request would be, err_o with the address until halt_i. (That it is
//             outside is known a cycle after the walk has gone on: no comparison stands in front of it.)
// Flush       drops command, permits and request at once.
//
// Parameters
//   Depth  places of the row buffer, at least 16
//   Conv   1: there are walks
//   Chained  the next command begins in the cycle of the last word of this one: for an array that takes a row every cycle. (The end of the walk is then in front
//            of all that a command begins with.)

`default_nettype none
`include "ct_assert.svh"

module ct_mxu_agen #(
  parameter  int unsigned Depth  = 64,
  parameter  int unsigned Conv   = 0,
  parameter  bit          Chained = 1'b1,
  localparam int unsigned KSteps = 8
) (
  input  logic             clk_i,
  input  logic             rst_ni,

  input  logic             flush_i,
  input  logic             halt_i,

  input  logic             nxt_valid_i,
  input  logic [ct_pkg::MxuAW-1:0] nxt_i,  // mxu_a_t
  output logic             nxt_take_o,
  input  logic             permit_i,

  input  logic             wpix_i,        // as of ct_mxu_seq, in cmd_i
  input  logic             wtap_i,
  input  logic [255:0]     cmd_i,

  input  logic [19:0]      spm_base_i,
  input  logic [19:0]      spm_size_i,

  // A buffer of the transposer for the tile that starts: asked for, granted in the same cycle, once all words before have been taken.
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
  output logic [ct_pkg::MxuMetaW-1:0] meta_o,  // mxu_meta_t
  input  logic             pop_i,         // a row has left the row buffer

  output logic             err_o,
  output logic [19:0]      err_addr_o,
  output logic             work_o,        // a command is being walked and its next k step is permitted
  output logic             idle_o
);

  if (Depth < 16) begin : g_check_depth
    ct_error_mxu_row_buffer_must_hold_a_tile u_error ();
  end

  `include "ct_mxu_bundles.svh"

  localparam int unsigned FreeW = $clog2(Depth + 1);
  localparam int unsigned PermW = $clog2(KSteps + 1);

  mxu_a_t           nxt;   // the next command
  mxu_meta_t        meta;  // of the row that is asked for

  // The command being walked.
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
  logic             walk;                 // of an MM with Walk
  logic [3:0]       row_q;
  logic [2:0]       m_q, n_q;
  logic [11:0]      k_left_q;
  logic             k_first_q;
  logic [3:0]       tile_acc_q, col_acc_q;  // ACC tile of (n, m), and of (n, 0)
  logic             buf_q;

  logic [3:0]       tile_rows_m1;  // rows of this tile that are wanted, less one
  logic             m_last, n_last, k_last, row_last, tile_start, k_start, cmd_end;
  logic             want, can, fire, load, room_used;

  // The request, and the word behind it.
  typedef struct packed {
    logic        klast;
    logic        trans;
    logic        walk;
    logic        pad;
    logic        bad;  // outside of the window
    logic [3:0]  idx;
    logic [19:0] addr;
  } word_t;
  word_t            word, req_q, spare_q;
  logic             req_vld_d, req_vld_q, spare_vld_d, spare_vld_q;
  logic             starts_q;       // the word that waits is the first one of a transposed tile
  logic             behind, begins, given, goes;
  logic             stuck;          // the request is none: nothing goes on until a flush

  assign nxt = nxt_i;

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
  assign can  = want && !spare_vld_q;
  always_comb begin
    if (!trans_q)        fire = can && free_q != '0 && !own_i;
    else if (tile_start) fire = can && free_q >= FreeW'(16);
    else                 fire = can;
  end
  assign room_used    = fire && row_q <= tile_rows_m1;
  assign stuck        = req_vld_q && req_q.bad;
  assign err_o        = stuck;
  assign err_addr_o   = req_q.addr - spm_base_i;

  assign load       = nxt_valid_i && (!cur_vld_q || (Chained && fire && cmd_end)) && !halt_i && !flush_i;
  assign nxt_take_o = load;
  assign work_o     = cur_vld_q && (perm_q != '0 || !k_start);
  assign idle_o     = !cur_vld_q && !req_vld_q && !spare_vld_q;

  assign meta_valid_o = room_used;
  assign meta_o       = meta;
  always_comb begin
    meta.rows_m1 = tile_rows_m1;
    meta.w2_last = n_last && m_last;
    meta.w2      = k_first_q && tile_start && wait2_q[4];
    meta.sig1    = k_last && row_q == tile_rows_m1 && sig1_q[4];
    meta.clr     = k_first_q && !accum_q;
    meta.last    = m_last && row_q == tile_rows_m1;
    meta.first   = tile_start && m_q == '0;
    meta.w2_id   = wait2_q[3:0];
    meta.sig1_id = sig1_q[3:0];
    meta.tile    = tile_acc_q;
    meta.row     = row_q;
  end

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
    if (flush_i) begin
      cur_vld_d = 1'b0;
      perm_d    = '0;
      free_d    = FreeW'(Depth);
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      cur_vld_q <= 1'b0;
      perm_q    <= '0;
      free_q    <= FreeW'(Depth);
    end else begin
      cur_vld_q <= cur_vld_d;
      perm_q    <= perm_d;
      free_q    <= free_d;
    end
  end

  always_ff @(posedge clk_i) begin
    if (fire) begin
      row_q  <= row_q + 4'd1;
      addr_q <= addr_q + 20'd1;
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
      am_q       <= nxt.am;
      ak_q       <= nxt.ak;
      trans_q    <= nxt.trans;
      accum_q    <= nxt.accum;
      nt_m1_q    <= nxt.nt_m1;
      rows_m1_q  <= nxt.rows_m1;
      acc_q      <= nxt.acc;
      accn_q     <= nxt.accn;
      wait2_q    <= nxt.wait2;
      sig1_q     <= nxt.sig1;
      row_q      <= '0;
      m_q        <= '0;
      n_q        <= '0;
      k_left_q   <= nxt.kt_m1;
      k_first_q  <= 1'b1;
      addr_q     <= nxt.a;
      tile_q     <= nxt.a;
      kbase_q    <= nxt.a;
      tile_acc_q <= nxt.acc;
      col_acc_q  <= nxt.acc;
    end
  end

  // Walks.
  if (Conv != 0) begin : g_walk
    logic        walk_q, walk_pad;
    logic [19:0] walk_addr;
    ct_mxu_walk u_walk (
      .clk_i, .wpix_i, .wtap_i, .cmd_i,
      .load_i(load && nxt.walk), .trans_i(nxt.trans), .a_i(nxt.a), .pos_i(nxt.pos),
      .next_i(fire && walk_q), .row_last_i(row_last), .m_last_i(m_last), .n_last_i(n_last), .tile0_i(m_q == 3'd0 && n_q == 3'd0),
      .addr_o(walk_addr), .pad_o(walk_pad)
    );
    always_ff @(posedge clk_i) begin
      if (load) walk_q <= nxt.walk;
    end
    assign addr       = walk_q ? walk_addr : addr_q;
    assign pad        = walk_q && walk_pad;
    assign walk       = walk_q;
  end else begin : g_no_walk
    assign addr       = addr_q;
    assign pad        = 1'b0;
    assign walk       = 1'b0;
    logic unused_walk;
    assign unused_walk = ^{nxt.walk, nxt.pos, wpix_i, wtap_i, cmd_i};
  end

  always_comb begin
    word.klast = row_last && m_last && n_last;
    word.trans = trans_q;
    word.idx   = row_q;
    word.walk  = walk;
    word.pad   = pad;
    word.bad   = (addr >= spm_size_i) && !pad;
    word.addr  = addr + spm_base_i;
  end

  // The next word is the one that waits, else the one that comes.
  assign behind       = spare_vld_q || fire;
  assign begins       = spare_vld_q ? starts_q : fire && trans_q && tile_start;
  assign alloc_o      = begins && !stuck && !halt_i && !flush_i;
  assign alloc_rows_o = tile_rows_m1;  // (no other word comes while the first one waits)
  assign given        = alloc_o && alloc_ok_i;
  assign goes         = behind && (begins ? given : !req_vld_q || req_ready_i);
  assign req_vld_d    = (goes || (req_vld_q && !req_ready_i)) && !flush_i;
  assign spare_vld_d  = behind && !goes && !flush_i;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      req_vld_q   <= 1'b0;
      spare_vld_q <= 1'b0;
    end else begin
      req_vld_q   <= req_vld_d;
      spare_vld_q <= spare_vld_d;
    end
  end

  always_ff @(posedge clk_i) begin
    if (fire) begin
      spare_q  <= word;
      starts_q <= trans_q && tile_start;
    end
    if (!req_vld_q || req_ready_i) req_q <= spare_vld_q ? spare_q : word;
    if (given) buf_q <= alloc_buf_i;
  end

  assign req_valid_o = req_vld_q && !req_q.bad;
  assign req_addr_o  = req_q.addr;
  assign req_trans_o = req_q.trans;
  assign req_buf_o   = buf_q;  // (the next tile is given its buffer when the last word of this one is taken)
  assign req_idx_o   = req_q.idx;
  assign req_klast_o = req_q.klast;
  assign req_walk_o  = req_q.walk;
  assign req_pad_o   = req_q.pad;

  `CT_ASSERT(RoomCounted_A, free_q <= FreeW'(Depth) && !(free_q == '0 && room_used))
  `CT_ASSUME(TakesOffer_M, !req_ready_i || req_valid_o)
  `CT_ASSERT(PermitsCounted_A, perm_q <= PermW'(KSteps))

`ifdef FORMAL
  `include "ct_mxu_agen_formal.svh"
`endif

endmodule

`default_nettype wire
