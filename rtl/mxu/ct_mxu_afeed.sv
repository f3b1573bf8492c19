// SPDX-License-Identifier: Apache-2.0
//
// The shared part of the two A streams: SPM port A, the transposer, the row buffers of both contexts.
//
// Port        a ct_arbiter gives it word by word: under PRIORITY (with 16 columns) as the array itself, so that training's words come at the
//             rate of the rows that its floor gives it; else in turn, since a context whose rows do not come never asks for the array,
//             whatever share of it the policy gives it (ct_mxu chooses). Data comes SpmLat = 2 cycles after the grant.
// Rows        A word goes into its context's row buffer as it is, or through the transposer. Each context has 64 places; its stream
//             asks for a word only when a place is free (or 16 places, for a transposed tile), so nothing here ever waits for the array.
//             avail_o[c]: the oldest row of c may be popped. After pop_i[c], row_o holds it from the next cycle until the next pop.
// Transposer  two buffers, each of one context from alloc until its last rows leave; a ct_arbiter gives them tile by tile, as port A, to a
//             context whose words before the tile have all been taken, the last one in this cycle at the latest. Under
//             PRIORITY with the floor at 0 training takes none while context 0 has one: so that may find both taken when it begins, but not
//             between its tiles. A tile leaves at a row a cycle once its 16 words have arrived; at full rate a tile takes 16 cycles.
// Walks       (Conv) A word with req_pad_i is not read: it comes as a block with exponent 0, in its turn. A tile to transpose with req_walk_i may have
//             different exponents: ct_mxu_gather aligns what leaves the transposer, which takes a cycle more.
// Errors      PARITY, or SQUARE if the words of a tile to transpose carry different exponents: a pulse with the physical address.
// Flush       flush_i[c] drops everything of c at once, and ignores what SPM still answers.

`default_nettype none
`include "ct_assert.svh"

module ct_mxu_afeed #(
  parameter int unsigned Conv = 0
) (
  input  logic         clk_i,
  input  logic         rst_ni,

  input  logic [ct_pkg::QosW-1:0] qos_i,
  input  logic [1:0]   flush_i,
  input  logic [1:0]   halt_i,       // c asks for nothing until it is flushed

  // Requests of the two A streams (ct_mxu_agen).
  input  logic [1:0]   req_valid_i,
  input  logic [39:0]  req_addr_i,
  input  logic [1:0]   req_trans_i,
  input  logic [1:0]   req_buf_i,
  input  logic [7:0]   req_idx_i,
  input  logic [1:0]   req_klast_i,
  input  logic [1:0]   req_walk_i,
  input  logic [1:0]   req_pad_i,
  output logic [1:0]   req_ready_o,

  input  logic [1:0]   alloc_i,
  input  logic [7:0]   alloc_rows_i,
  output logic [1:0]   alloc_ok_o,
  output logic         alloc_buf_o,
  output logic [1:0]   own_o,

  output logic         spm_rd_valid_o,
  output logic [19:0]  spm_rd_addr_o,
  output logic         spm_rd_ctx_o,
  input  logic         spm_rd_ready_i,
  input  logic         spm_rd_vld_i,
  input  logic [127:0] spm_rd_data_i,
  input  logic [7:0]   spm_rd_exp_i,
  input  logic         spm_rd_perr_i,

  output logic [1:0]   avail_o,
  output logic [13:0]  count_o,      // rows that may be popped, of each context
  input  logic [1:0]   pop_i,        // at most one bit
  output logic [135:0] row_o,        // {exponent, mantissas}

  output logic [1:0]   kdone_o,      // the last A word of a k step has arrived
  output logic [1:0]   err_perr_o,
  output logic [1:0]   err_square_o,
  output logic [19:0]  err_addr_o
);

  // --- requests -------------------------------------------------------------------------------------------------------------

  typedef struct packed {
    logic        ctx;
    logic        trans;
    logic        tbuf;
    logic [3:0]  idx;
    logic        klast;
    logic        walk;
    logic        pad;
    logic [19:0] addr;
  } tag_t;

  logic       sel, taken, granted;
  logic [1:0] gnt;
  tag_t       req, t1_q, t2_q;
  logic       t1_vld_q, t2_vld_q;

  logic [ct_pkg::QosW-1:0] turns;  // of the port and of the transposer, whose words and tiles hold nothing up
  always_comb begin
    turns = qos_i[ct_pkg::QosRanked] ? qos_i : ct_pkg::QosRoundRobin;
    turns[ct_pkg::QosWhole] = 1'b0;  // (every word and tile is whole: so nothing that stops a context stands before the choice)
  end

  ct_arbiter u_arbiter (
    .clk_i, .rst_ni, .flush_i,
    .qos_i    (turns),
    .req_i    (req_valid_i),
    .defer_i  (1'b0),
    .last_i   (2'b11),
    .take_i   (taken),
    .gnt_o    (gnt)
  );

  assign sel            = gnt[1];
  assign taken          = spm_rd_ready_i || req.pad;
  assign spm_rd_valid_o = gnt != 2'b00 && !req.pad;
  assign spm_rd_addr_o  = req.addr;
  assign spm_rd_ctx_o   = sel;
  assign granted        = gnt != 2'b00 && taken;
  assign req_ready_o    = taken ? gnt : 2'b00;

  always_comb begin
    req.ctx   = sel;
    req.trans = req_trans_i[sel];
    req.tbuf  = req_buf_i[sel];
    req.idx   = sel ? req_idx_i[7:4] : req_idx_i[3:0];
    req.klast = req_klast_i[sel];
    req.walk  = Conv != 0 && req_walk_i[sel];
    req.pad   = Conv != 0 && req_pad_i[sel];
    req.addr  = sel ? req_addr_i[39:20] : req_addr_i[19:0];
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      t1_vld_q <= 1'b0;
      t2_vld_q <= 1'b0;
    end else begin
      t1_vld_q <= granted && !flush_i[sel];
      t2_vld_q <= t1_vld_q && !flush_i[t1_q.ctx];
    end
  end

  always_ff @(posedge clk_i) begin
    if (granted)  t1_q <= req;
    if (t1_vld_q) t2_q <= t1_q;
  end

  // --- answers --------------------------------------------------------------------------------------------------------------

  logic       arrive, arrive_trans;
  logic [7:0] in_exp;
  logic       in_pad, in_walk;
  logic [7:0] first_exp;  // exponent of the words before of the tile that this word belongs to

  assign arrive       = t2_vld_q && (spm_rd_vld_i || in_pad) && !flush_i[t2_q.ctx];
  assign in_pad       = Conv != 0 && t2_q.pad;
  assign in_walk      = Conv != 0 && t2_q.walk;
  assign in_exp       = in_pad ? 8'd0 : spm_rd_exp_i;
  assign arrive_trans = arrive && t2_q.trans;
  assign kdone_o      = {arrive && t2_q.klast && t2_q.ctx, arrive && t2_q.klast && !t2_q.ctx};
  assign err_addr_o   = t2_q.addr;

  always_comb begin
    err_perr_o   = 2'b00;
    err_square_o = 2'b00;
    err_perr_o[t2_q.ctx]   = arrive && spm_rd_perr_i && !in_pad;
    err_square_o[t2_q.ctx] = arrive_trans && !spm_rd_perr_i && !in_walk && t2_q.idx != '0 && spm_rd_exp_i != first_exp;
  end

  // --- transposer -----------------------------------------------------------------------------------------------------------

  logic [1:0]   own_vld_d, own_vld_q;    // buffer b belongs to ...
  logic [1:0]   own_ctx_d, own_ctx_q;    // ... this context
  logic [1:0]   tile_in_d, tile_in_q;    // its 16 words have arrived
  logic [7:0]   rows_q;                  // rows wanted, less one
  logic [15:0]  exps;                    // the exponent of its rows
  logic         buf_free, alloc, alloc_ctx, strict, alone;
  logic [1:0]   alloc_gnt, all_taken;
  logic [1:0]   flush_buf;               // buffer b is being dropped

  logic         out_vld_d, out_vld_q;    // a tile is leaving
  logic         out_buf_q, out_ctx_q;
  logic [3:0]   out_col_q, out_rows_q;   // the row that leaves now; the last one
  logic [7:0]   out_exp_q;
  logic         out_end, pick, pick_buf;
  logic         released_q;              // its buffer has been given away
  logic         row_vld_q, row_ctx_q;    // a row has left the transposer
  logic [7:0]   row_exp_q;
  logic [127:0] row_data;
  logic         turned_vld, turned_ctx;  // it goes into its row buffer
  logic [7:0]   turned_exp;
  logic [127:0] turned_data;

  assign strict      = qos_i[ct_pkg::QosStrict];
  assign alone       = strict && own_o[0] && !halt_i[0];
  assign all_taken   = ~req_valid_i | req_ready_o;
  assign alloc       = alloc_ok_o != 2'b00;
  assign alloc_ctx   = alloc_gnt[1];
  assign alloc_buf_o = own_vld_q[0];
  assign buf_free    = own_vld_q != 2'b11;
  assign alloc_ok_o  = buf_free ? alloc_gnt & all_taken : 2'b00;
  assign own_o       = {|(own_vld_q & own_ctx_q) || (out_vld_q && out_ctx_q) || (row_vld_q && row_ctx_q) || (turned_vld && turned_ctx),
                        |(own_vld_q & ~own_ctx_q) || (out_vld_q && !out_ctx_q) || (row_vld_q && !row_ctx_q) || (turned_vld && !turned_ctx)};
  assign flush_buf   = {flush_i[own_ctx_q[1]], flush_i[own_ctx_q[0]]};
  assign first_exp   = t2_q.tbuf ? exps[15:8] : exps[7:0];

  ct_arbiter u_tile_arbiter (
    .clk_i, .rst_ni, .flush_i,
    .qos_i    (turns),
    .req_i    (alloc_i & {!alone, 1'b1}),
    .defer_i  (1'b0),
    .last_i   (2'b11),
    .take_i   (alloc),
    .gnt_o    (alloc_gnt)
  );

  // A tile that has begun to leave does so at a row a cycle. So its buffer can be given away when four rows are left: a word
  // requested then arrives three cycles later, when the last row has been read.
  assign out_end = out_vld_q && out_col_q == out_rows_q;
  assign pick    = tile_in_q != 2'b00 && (!out_vld_q || out_end);
  // One complete tile at most waits: while one leaves, its own buffer cannot fill again (OneTileWaits_A).
  assign pick_buf = tile_in_q[1];

  always_comb begin
    own_vld_d = own_vld_q;
    own_ctx_d = own_ctx_q;
    tile_in_d = tile_in_q;
    out_vld_d = (out_vld_q && !out_end && !flush_i[out_ctx_q]) || (pick && !flush_buf[pick_buf]);
    if (pick) tile_in_d[pick_buf] = 1'b0;
    if (out_vld_q && out_rows_q - out_col_q <= 4'd4 && !released_q) own_vld_d[out_buf_q] = 1'b0;
    if (arrive_trans && t2_q.idx == 4'd15) tile_in_d[t2_q.tbuf] = 1'b1;
    own_vld_d = own_vld_d & ~flush_buf;
    tile_in_d = tile_in_d & ~flush_buf;
    if (alloc) begin
      own_vld_d[alloc_buf_o] = 1'b1;
      own_ctx_d[alloc_buf_o] = alloc_ctx;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      own_vld_q  <= 2'b00;
      own_ctx_q  <= 2'b00;
      tile_in_q  <= 2'b00;
      out_vld_q  <= 1'b0;
      row_vld_q  <= 1'b0;
      released_q <= 1'b0;
    end else begin
      own_vld_q  <= own_vld_d;
      own_ctx_q  <= own_ctx_d;
      tile_in_q  <= tile_in_d;
      out_vld_q  <= out_vld_d;
      row_vld_q  <= out_vld_q && !flush_i[out_ctx_q];
      released_q <= out_vld_q && !pick && out_rows_q - out_col_q <= 4'd4;
    end
  end

  always_ff @(posedge clk_i) begin
    if (alloc) begin
      if (alloc_buf_o) rows_q[7:4] <= alloc_ctx ? alloc_rows_i[7:4] : alloc_rows_i[3:0];
      else             rows_q[3:0] <= alloc_ctx ? alloc_rows_i[7:4] : alloc_rows_i[3:0];
    end
    if (out_vld_q) begin
      out_col_q <= out_col_q + 4'd1;
      row_ctx_q <= out_ctx_q;
      row_exp_q <= out_exp_q;
    end
    if (pick) begin
      out_buf_q  <= pick_buf;
      out_ctx_q  <= own_ctx_q[pick_buf];
      out_col_q  <= '0;
      out_rows_q <= pick_buf ? rows_q[7:4] : rows_q[3:0];
      out_exp_q  <= pick_buf ? exps[15:8] : exps[7:0];
    end
  end

  ct_mxu_transpose u_transpose (
    .clk_i, .rst_ni,
    .wr_valid_i(arrive_trans), .wr_buf_i(t2_q.tbuf), .wr_turn_i(1'b0), .wr_row_i(t2_q.idx), .wr_data_i(spm_rd_data_i),
    .rd_valid_i(out_vld_q), .rd_buf_i(out_buf_q), .rd_turn_i(1'b0), .rd_col_i(out_col_q), .rd_data_o(row_data)
  );

  if (Conv != 0) begin : g_gather
    logic       vld_q, ctx_q;
    logic [7:0] e_q;
    ct_mxu_gather u_gather (
      .clk_i,
      .put_i(arrive_trans), .put_buf_i(t2_q.tbuf), .put_row_i(t2_q.idx), .put_exp_i(in_exp), .top_o(exps),
      .pick_i(pick), .pick_buf_i(pick_buf), .row_i(row_data), .row_o(turned_data)
    );
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) vld_q <= 1'b0;
      else         vld_q <= row_vld_q && !flush_i[row_ctx_q];
    end
    always_ff @(posedge clk_i) {ctx_q, e_q} <= {row_ctx_q, row_exp_q};
    assign {turned_vld, turned_ctx, turned_exp} = {vld_q, ctx_q, e_q};
  end else begin : g_square
    logic [15:0] exp_q;  // of the first word
    always_ff @(posedge clk_i) begin
      if (arrive_trans && t2_q.idx == '0) exp_q[8*t2_q.tbuf +: 8] <= in_exp;
    end
    assign exps = exp_q;
    assign {turned_vld, turned_ctx, turned_exp, turned_data} = {row_vld_q, row_ctx_q, row_exp_q, row_data};
    logic unused_walk;
    assign unused_walk = ^{req_walk_i, req_pad_i};
  end

  // --- row buffers ----------------------------------------------------------------------------------------------------------

  // A block RAM for each context: a word from SPM for one and a row from the transposer for the other may come in one cycle.
  (* ram_style = "block" *) logic [135:0] rows0 [0:63];
  (* ram_style = "block" *) logic [135:0] rows1 [0:63];
  logic [1:0]   wr_direct, wr_turned;
  logic [11:0]  wptr_d, wptr_q;    // 6 bits for each context
  logic [11:0]  rptr_d, rptr_q;
  logic [13:0]  count_d, count_q;  // 7 bits for each context
  logic [135:0] direct_row, turned_row;

  assign wr_direct  = {arrive && !t2_q.trans && t2_q.ctx, arrive && !t2_q.trans && !t2_q.ctx};
  assign wr_turned  = {turned_vld && turned_ctx, turned_vld && !turned_ctx} & ~flush_i;
  assign direct_row = {in_exp, spm_rd_data_i};
  assign turned_row = {turned_exp, turned_data};

  always_comb begin
    wptr_d  = wptr_q;
    rptr_d  = rptr_q;
    count_d = count_q;
    for (int c = 0; c < 2; c++) begin
      if (wr_direct[c] || wr_turned[c]) wptr_d[6*c +: 6] = wptr_q[6*c +: 6] + 6'd1;
      if (pop_i[c])                     rptr_d[6*c +: 6] = rptr_q[6*c +: 6] + 6'd1;
      count_d[7*c +: 7] = count_q[7*c +: 7] + 7'(wr_direct[c] || wr_turned[c]) - 7'(pop_i[c]);
      if (flush_i[c]) begin
        wptr_d[6*c +: 6]  = '0;
        rptr_d[6*c +: 6]  = '0;
        count_d[7*c +: 7] = '0;
      end
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      wptr_q  <= '0;
      rptr_q  <= '0;
      count_q <= '0;
    end else begin
      wptr_q  <= wptr_d;
      rptr_q  <= rptr_d;
      count_q <= count_d;
    end
  end

  logic [135:0] row0_q, row1_q;
  logic         pop_ctx_q;
  always_ff @(posedge clk_i) begin
    if (wr_direct[0] || wr_turned[0]) rows0[wptr_q[5:0]]  <= wr_turned[0] ? turned_row : direct_row;
    if (wr_direct[1] || wr_turned[1]) rows1[wptr_q[11:6]] <= wr_turned[1] ? turned_row : direct_row;
    // (a place is never read while it is written)
    if (pop_i[0]) row0_q <= ((wr_direct[0] || wr_turned[0]) && wptr_q[5:0] == rptr_q[5:0]) ? 'x : rows0[rptr_q[5:0]];
    if (pop_i[1]) row1_q <= ((wr_direct[1] || wr_turned[1]) && wptr_q[11:6] == rptr_q[11:6]) ? 'x : rows1[rptr_q[11:6]];
    if (pop_i != 2'b00) pop_ctx_q <= pop_i[1];
  end

  assign row_o   = pop_ctx_q ? row1_q : row0_q;
  assign avail_o = {count_q[13:7] != '0, count_q[6:0] != '0};
  assign count_o = count_q;

  logic unused_halt;
  assign unused_halt = halt_i[1];

  `CT_ASSUME(AnswerInTime_M, !t2_vld_q || spm_rd_vld_i || in_pad)
  `CT_ASSERT(OneRowWritten_A, (wr_direct & wr_turned) == 2'b00)
  `CT_ASSUME(PopsWhatIsThere_M, (pop_i & ~avail_o) == 2'b00 && pop_i != 2'b11)
  `CT_ASSERT(RowsCounted_A, count_q[6:0] <= 7'd64 && count_q[13:7] <= 7'd64)
  `CT_ASSERT(TileHasAnOwner_A, (tile_in_q & ~own_vld_q) == 2'b00)
  `CT_ASSERT(OneTileWaits_A, tile_in_q != 2'b11)
  // Nothing is written into a buffer before its last tile has left.
  `CT_ASSERT(TileLeftInTime_A, !(arrive_trans && out_vld_q && t2_q.tbuf == out_buf_q && !out_end) || flush_i[out_ctx_q])

  `CT_ASSUME(StrictOwesNothing_M, !qos_i[ct_pkg::QosStrict] || (qos_i[ct_pkg::QosRanked] && qos_i[ct_pkg::QosFloorLsb +: 8] == 8'd0))

`ifdef FORMAL
  `include "ct_mxu_afeed_formal.svh"
`endif

endmodule

`default_nettype wire
