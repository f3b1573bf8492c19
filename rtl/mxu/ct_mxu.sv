// SPDX-License-Identifier: Apache-2.0
//
// MXU: executes the MM commands of both contexts on one array (docs/architecture.md; the command in rtl/spec/ct_isa.def).
//
//   cmd -> ct_mxu_seq -> ct_mxu_agen -> ct_mxu_afeed (SPM port A, transposer, row buffers) --> row arbiter -> ct_mxu_array -> ACC
//               |              \-> what belongs to the rows -> ct_fifo -> ct_mxu_head ----------^
//               \-> ct_mxu_bload (SPM port B of the context) -> ct_mxu_btile (transposer, pairs) -> shadow tile -^
//
// Every cycle (Cols = 8: every second one while rows flow, Cols = 4: every fourth) the arbiter takes a row of either context. A row is ready when
//   - it is in the row buffer, and the row before it on the same ACC address has been added up (9 cycles);
//   - it is the head (ct_mxu_head): as first row of an output tile in its command's first k step it has taken its Wait2 in a cycle before;
//   - as first row of a tile operation (all rows that use one weight tile): the shadow tile is complete, and freeze_i is low.
// Full rate: a row a cycle (two or four cycles) as long as a tile operation has 16 rows or more; then 16 words of the next weight tile arrive
// meanwhile. With fewer rows an operation starts every 16 cycles at most, and the other context has the slots between.
//
// Latency     issue to ACC: a row issued in cycle t is readable through the ACC port from t + 15 (t + 16 with Cols = 8, t + 18 with 4) on. Sig1 is
//             visible on sem_inc_o in that cycle if the tile has fewer than 16 rows, else in t + 2: whoever waits for it reads the rows
//             in ascending order, at most one a cycle, the first not before t + 3, and finds each one there. A command whose operands are
//             there: about 25 cycles to its first row.
// Errors      SPM_WINDOW (relative address), PARITY and SQUARE (physical address); the first one of a context stops it until flush_i. SQUARE
//             counts a cycle later than the others; its block keeps idle_o low until the flush.
// Flush       flush_i[c] drops everything of context c that is not in the array yet, from the next cycle on; idle_o[c] when nothing of c is left.
//             A flush that falls before idle_o is carried to its end all the same.
// Interference under PRIORITY without a floor, a ready row of context 0 is taken at once (Cols = 8: after at most one cycle, Cols = 4: three).
//
// Parameters
//   Cols      columns of the array, 16, 8 (then a row takes two cycles) or 4 (four)
//   VpuLanes  columns of the ACC read port, 16 or 4
//   Conv      1: there are walks (WPIX, WTAP, MM with Walk)
//   PackDsp   1: two products in one DSP (see ct_mxu_dots); for synthesis where DSPs are scarce

`default_nettype none
`include "ct_assert.svh"

module ct_mxu #(
  parameter int unsigned Cols     = 16,
  parameter int unsigned VpuLanes = 16,
  parameter int unsigned PackDsp  = 0,
  parameter int unsigned Conv     = 0
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,

  // Commands and semaphores; context 1 in the upper half.
  input  logic [1:0]             cmd_valid_i,
  input  logic [511:0]           cmd_i,
  output logic [1:0]             cmd_ready_o,
  input  logic [31:0]            sem_nz_i,
  output logic [31:0]            sem_dec_o,
  output logic [31:0]            sem_inc_o,
  input  logic [1:0]             flush_i,
  output logic [1:0]             idle_o,
  output logic [1:0]             err_o,
  output logic [15:0]            err_code_o,
  output logic [63:0]            err_addr_o,

  // Configuration.
  input  logic [ct_pkg::QosW-1:0] qos_i,
  input  logic                   freeze_i,
  input  logic [39:0]            spm_base_i,
  input  logic [39:0]            spm_size_i,

  // SPM read ports: A, B of context 0, B of context 1.
  output logic [2:0]             spm_rd_valid_o,
  output logic [59:0]            spm_rd_addr_o,
  output logic [2:0]             spm_rd_ctx_o,
  input  logic [2:0]             spm_rd_ready_i,
  input  logic [2:0]             spm_rd_vld_i,
  input  logic [383:0]           spm_rd_data_i,
  input  logic [23:0]            spm_rd_exp_i,
  input  logic [2:0]             spm_rd_perr_i,

  // ACC read port: data two cycles later.
  input  logic                   acc_rd_valid_i,
  input  logic                   acc_rd_ctx_i,
  input  logic [3:0]             acc_rd_tile_i,
  input  logic [3:0]             acc_rd_row_i,
  input  logic [1:0]             acc_rd_beat_i,
  output logic [32*VpuLanes-1:0] acc_rd_data_o,

  // Events for the counters, one bit for each context, registered.
  output logic [1:0]             ev_rows_o,      // a row entered the array
  output logic [1:0]             ev_busy_o,      // the array took a row or a part of one
  output logic [1:0]             ev_wait_arb_o,  // a ready row waited for the other context
  output logic [1:0]             ev_wait_b_o,    // a row waited for its weight tile
  output logic [1:0]             ev_wait_a_o,    // a product waited for a row, or for the sum its row adds to
  output logic [1:0]             ev_wait_sem_o,  // a product waited for a semaphore

  // What a simulator watches (see ct_core): complete, accept, slot used, granted, ready.
  output logic [9:0]             probe_o
);

  if (Cols != 16 && Cols != 8 && Cols != 4) begin : g_check_cols
    ct_error_mxu_cols_must_be_16_8_or_4 u_error ();
  end
  if (VpuLanes != 16 && VpuLanes != 4) begin : g_check_lanes
    ct_error_mxu_vpulanes_must_be_16_or_4 u_error ();
  end

  localparam int unsigned RowDepth = 64;  // places of a context's row buffer (the pointers of ct_mxu_afeed)
  localparam int unsigned MetaW    = ct_pkg::MxuMetaW;
  localparam int unsigned Parts    = 16 / Cols;  // cycles that a row takes the array

  `include "ct_mxu_bundles.svh"

  // A flush stands in a register of its own near each of those that it stops: they lie all over a chip.
  (* keep *) logic [1:0] seq_flush_q, a_flush_q, b_flush_q, flush_q;
  logic [1:0]   flush_d, stays, hold_q;
  logic [1:0]   drained;
  logic [1:0]   halt_q;

  // A stream
  logic [1:0]   req_valid, req_trans, req_buf, req_klast, req_walk, req_pad, req_ready;
  logic [39:0]  req_addr;
  logic [7:0]   req_idx;
  logic [1:0]   alloc, alloc_ok, own;
  logic [7:0]   alloc_rows;
  logic         alloc_buf;
  logic [1:0]   avail;
  logic [13:0]  count;
  logic [135:0] row;
  logic [1:0]   a_work;
  logic [1:0]   kdone_a;

  // B stream
  logic [1:0]   word_vld, word_trans, word_pop;
  logic [271:0] word;
  logic         ld_valid, ld_ctx;
  logic [2:0]   ld_pair;
  logic [271:0] ld_words;
  logic [1:0]   tile_ready, tile_idle;

  // Errors
  logic [1:0]   a_err_win, a_err_perr, a_err_square;
  logic [39:0]  a_err_win_addr;
  logic [19:0]  a_err_addr;
  logic [1:0]   b_err_win, b_err_perr, b_err_square;
  logic [39:0]  b_err_win_addr, b_err_addr;

  // The rows at the heads of the row buffers, the ones behind them, and which one goes
  logic [2*MetaW-1:0] head, next;
  mxu_meta_t    head0, head1, next0, next1;  // of context 0 and 1
  logic [1:0]   head_vld, next_vld, next_w2, next_w2_last, move;
  logic [7:0]   next_w2_id;
  logic [15:0]  next_acc;
  logic [1:0]   head_last, head_first, head_clr, head_sig1;
  logic [7:0]   head_sig1_id, head_end;
  logic [15:0]  head_acc;
  logic [1:0]   hazard, ready;
  logic [1:0]   gnt, take, take_last;
  logic         take_any, slot, ctx;
  logic [1:0]   rest_d, rest_q;  // parts of the row taken last that the array takes after this cycle
  logic         within_q;        // it takes one of them, and not the first, in this cycle
  logic         within_ctx_q;
  logic [1:0]   open_q;        // an operation has begun and not ended
  logic [1:0]   sig1_valid;
  logic [7:0]   sig1_id;
  logic [1:0]   busy;
  logic [1:0]   seq_wait;
  logic [1:0]   frozen;        // would go but for freeze_i
  logic [1:0]   meta_lost, row_unknown;  // never

  // A flush lasts until everything has drained.
  assign stays   = flush_q & ~drained;
  assign flush_d = flush_i | stays;
  assign idle_o  = drained & ~hold_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      flush_q     <= 2'b00;
      seq_flush_q <= 2'b00;
      a_flush_q   <= 2'b00;
      b_flush_q   <= 2'b00;
      hold_q      <= 2'b00;
    end else begin
      flush_q     <= flush_d;
      seq_flush_q <= flush_d;
      a_flush_q   <= flush_d;
      b_flush_q   <= flush_d;
      hold_q      <= stays;
    end
  end

  for (genvar c = 0; c < 2; c++) begin : g_ctx
    logic        nxt_a_valid, nxt_a_take, nxt_b_valid, nxt_b_take;
    logic [ct_pkg::MxuAW-1:0] nxt_a;
    logic [ct_pkg::MxuBW-1:0] nxt_b;
    logic        wpix, wtap;
    logic        permit, kdone_b;
    logic        seq_idle, a_idle, b_idle;
    logic        meta_valid, meta_ready, meta_vld, meta_pop;
    logic [MetaW-1:0] meta, meta_head;
    logic        w2_ok;

    assign drained[c] = seq_idle && a_idle && b_idle && tile_idle[c] && !meta_vld && !next_vld[c] && !head_vld[c] &&
                        !avail[c] && !own[c] && !busy[c];

    ct_mxu_seq #(.Conv(Conv)) u_seq (
      .clk_i, .rst_ni, .flush_i(seq_flush_q[c]), .halt_i(halt_q[c]),
      .cmd_valid_i(cmd_valid_i[c]), .cmd_i(cmd_i[256*c +: 256]), .cmd_ready_o(cmd_ready_o[c]),
      .sem_nz_i(sem_nz_i[16*c +: 16]), .sem_dec_o(sem_dec_o[16*c +: 16]), .sem_inc_o(sem_inc_o[16*c +: 16]),
      .nxt_a_valid_o(nxt_a_valid), .nxt_a_o(nxt_a), .nxt_a_take_i(nxt_a_take), .wpix_o(wpix), .wtap_o(wtap),
      .nxt_b_valid_o(nxt_b_valid), .nxt_b_o(nxt_b), .nxt_b_take_i(nxt_b_take),
      .permit_o(permit), .kdone_a_i(kdone_a[c]), .kdone_b_i(kdone_b),
      .head_w2_i(next_vld[c] && next_w2[c]), .head_w2_end_i(next_w2_last[c]), .head_w2_id_i(next_w2_id[4*c +: 4]), .head_pop_i(move[c]),
      .w2_ok_o(w2_ok), .sig1_valid_i(sig1_valid[c]), .sig1_id_i(sig1_id[4*c +: 4]), .wait_sem_o(seq_wait[c]), .idle_o(seq_idle)
    );

    ct_mxu_agen #(.Depth(RowDepth), .Conv(Conv), .Chained(Cols == 16)) u_agen (
      .clk_i, .rst_ni, .flush_i(seq_flush_q[c]), .halt_i(halt_q[c]),
      .nxt_valid_i(nxt_a_valid), .nxt_i(nxt_a), .nxt_take_o(nxt_a_take), .permit_i(permit),
      .wpix_i(wpix), .wtap_i(wtap), .cmd_i(cmd_i[256*c +: 256]),
      .spm_base_i(spm_base_i[20*c +: 20]), .spm_size_i(spm_size_i[20*c +: 20]),
      .alloc_o(alloc[c]), .alloc_rows_o(alloc_rows[4*c +: 4]), .alloc_ok_i(alloc_ok[c]), .alloc_buf_i(alloc_buf), .own_i(own[c]),
      .req_valid_o(req_valid[c]), .req_addr_o(req_addr[20*c +: 20]), .req_trans_o(req_trans[c]), .req_buf_o(req_buf[c]),
      .req_idx_o(req_idx[4*c +: 4]), .req_klast_o(req_klast[c]), .req_walk_o(req_walk[c]), .req_pad_o(req_pad[c]), .req_ready_i(req_ready[c]),
      .meta_valid_o(meta_valid), .meta_o(meta), .pop_i(take[c]),
      .err_o(a_err_win[c]), .err_addr_o(a_err_win_addr[20*c +: 20]), .work_o(a_work[c]), .idle_o(a_idle)
    );

    // What belongs to the rows asked for, in order.
    ct_fifo #(.Width(MetaW), .Depth(RowDepth)) u_meta (
      .clk_i, .rst_ni,
      .valid_i(meta_valid), .ready_o(meta_ready), .data_i(meta),
      .valid_o(meta_vld), .ready_i(meta_pop || flush_q[c]), .data_o(meta_head), .count_o()
    );

    ct_mxu_head #(.Width(MetaW)) u_head (
      .clk_i, .rst_ni, .flush_i(flush_q[c]), .halt_i(halt_q[c]),
      .valid_i(meta_vld), .ready_o(meta_pop), .data_i(meta_head),
      .next_vld_o(next_vld[c]), .next_o(next[MetaW*c +: MetaW]), .next_ok_i(w2_ok), .move_o(move[c]),
      .head_vld_o(head_vld[c]), .head_o(head[MetaW*c +: MetaW]), .take_i(take[c])
    );

    ct_mxu_bload #(.Chained(Cols == 16)) u_bload (
      .clk_i, .rst_ni, .flush_i(b_flush_q[c]), .halt_i(halt_q[c]),
      .nxt_valid_i(nxt_b_valid), .nxt_i(nxt_b), .nxt_take_o(nxt_b_take), .permit_i(permit),
      .spm_base_i(spm_base_i[20*c +: 20]), .spm_size_i(spm_size_i[20*c +: 20]),
      .spm_rd_valid_o(spm_rd_valid_o[1+c]), .spm_rd_addr_o(spm_rd_addr_o[20*(1+c) +: 20]), .spm_rd_ready_i(spm_rd_ready_i[1+c]),
      .spm_rd_vld_i(spm_rd_vld_i[1+c]), .spm_rd_data_i(spm_rd_data_i[128*(1+c) +: 128]), .spm_rd_exp_i(spm_rd_exp_i[8*(1+c) +: 8]),
      .spm_rd_perr_i(spm_rd_perr_i[1+c]),
      .word_vld_o(word_vld[c]), .word_trans_o(word_trans[c]), .word_o(word[136*c +: 136]), .pop_i(word_pop[c]),
      .kdone_o(kdone_b), .err_win_o(b_err_win[c]), .err_perr_o(b_err_perr[c]), .err_square_o(b_err_square[c]),
      .err_win_addr_o(b_err_win_addr[20*c +: 20]), .err_addr_o(b_err_addr[20*c +: 20]), .idle_o(b_idle)
    );

    assign meta_lost[c]   = meta_valid && !meta_ready;
    assign row_unknown[c] = avail[c] && !head_vld[c] && !(next_vld[c] && next_w2[c]) && !halt_q[c] && !flush_q[c];
  end

  // (Outside of the generate block, where Yosys 0.23 does not know the fields of a struct.)
  assign {head1, head0} = head;
  assign {next1, next0} = next;
  assign head_end     = {head1.rows_m1, head0.rows_m1};
  assign head_sig1    = {head1.sig1, head0.sig1};
  assign head_clr     = {head1.clr, head0.clr};
  assign head_last    = {head1.last, head0.last};
  assign head_first   = {head1.first, head0.first};
  assign head_sig1_id = {head1.sig1_id, head0.sig1_id};
  assign head_acc     = {head1.tile, head1.row, head0.tile, head0.row};
  assign next_w2      = {next1.w2, next0.w2};
  assign next_w2_last = {next1.w2_last, next0.w2_last};
  assign next_w2_id   = {next1.w2_id, next0.w2_id};
  assign next_acc     = {next1.tile, next1.row, next0.tile, next0.row};
  logic unused_meta;  // (the head has its Wait2)
  assign unused_meta = ^{head0, head1, next0, next1};

  `CT_ASSERT(MetaHasRoom_A, meta_lost == 2'b00)
  `CT_ASSERT(RowHasMeta_A, row_unknown == 2'b00)

  ct_mxu_btile u_btile (
    .clk_i, .rst_ni, .strict_i(qos_i[ct_pkg::QosStrict]), .flush_i(b_flush_q),
    .word_vld_i(word_vld), .word_trans_i(word_trans), .word_i(word), .pop_o(word_pop),
    .ld_valid_o(ld_valid), .ld_ctx_o(ld_ctx), .ld_pair_o(ld_pair), .ld_words_o(ld_words),
    .tile_ready_o(tile_ready), .take_i(take & head_first), .idle_o(tile_idle)
  );

  // With fewer columns a row takes port A for one cycle and the array for more: both contexts in turn have what they need, whatever the floor.
  logic [ct_pkg::QosW-1:0] a_qos;
  logic       a_ctx;
  assign spm_rd_ctx_o = {2'b10, a_ctx};
  assign a_qos = (Cols != 16 && !qos_i[ct_pkg::QosStrict]) ? ct_pkg::QosRoundRobin : qos_i;

  ct_mxu_afeed #(.Conv(Conv)) u_afeed (
    .clk_i, .rst_ni, .qos_i(a_qos), .flush_i(a_flush_q), .halt_i(halt_q),
    .req_valid_i(req_valid), .req_addr_i(req_addr), .req_trans_i(req_trans), .req_buf_i(req_buf), .req_idx_i(req_idx),
    .req_klast_i(req_klast), .req_walk_i(req_walk), .req_pad_i(req_pad), .req_ready_o(req_ready),
    .alloc_i(alloc), .alloc_rows_i(alloc_rows), .alloc_ok_o(alloc_ok), .alloc_buf_o(alloc_buf), .own_o(own),
    .spm_rd_valid_o(spm_rd_valid_o[0]), .spm_rd_addr_o(spm_rd_addr_o[19:0]), .spm_rd_ctx_o(a_ctx), .spm_rd_ready_i(spm_rd_ready_i[0]),
    .spm_rd_vld_i(spm_rd_vld_i[0]), .spm_rd_data_i(spm_rd_data_i[127:0]), .spm_rd_exp_i(spm_rd_exp_i[7:0]),
    .spm_rd_perr_i(spm_rd_perr_i[0]),
    .avail_o(avail), .count_o(count), .pop_i(take), .row_o(row),
    .kdone_o(kdone_a), .err_perr_o(a_err_perr), .err_square_o(a_err_square), .err_addr_o(a_err_addr)
  );

  // --- which row goes -------------------------------------------------------------------------------------------------------

  logic [1:0] avail_go;   // there is a row, and nothing has gone wrong
  assign avail_go = avail & ~halt_q & ~flush_q;
  assign frozen   = head_first & {2{freeze_i}};
  assign ready    = avail_go & head_vld & ~hazard & (~head_first | tile_ready) & ~frozen & ~partial;

  // Where an operation keeps the grant it is a row tile, and begins when all of its rows are in the row buffer: a Wait2 comes before
  // it, and no row inside it has to come through the scratchpad. (A row tile that was begun row by row goes on as soon as a row is there.)
  logic       whole;             // the policy leaves operations whole
  logic [1:0] tile_first, tile_last, partial;
  assign whole = qos_i[ct_pkg::QosWhole];
  always_comb begin
    for (int c = 0; c < 2; c++) begin
      tile_first[c] = head_acc[8*c +: 4] == 4'd0;
      tile_last[c]  = head_acc[8*c +: 4] == head_end[4*c +: 4];
      partial[c]    = whole && tile_first[c] && count[7*c +: 7] <= 7'(head_end[4*c +: 4]);
    end
  end

  ct_arbiter u_arbiter (
    .clk_i, .rst_ni, .qos_i, .flush_i(flush_q | halt_q),
    .req_i(ready), .defer_i(1'b0), .last_i(tile_last), .take_i(slot), .gnt_o(gnt)
  );

  assign slot      = !within_q;
  assign take      = slot ? gnt : 2'b00;
  assign take_any  = take != 2'b00;
  assign take_last = take & head_last;
  assign rest_d    = take_any ? 2'(Parts > 1 ? Parts - 2 : 0) : (rest_q != '0) ? rest_q - 2'd1 : '0;
  assign ctx       = take[1];

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      rest_q   <= '0;
      within_q <= 1'b0;
      open_q   <= 2'b00;
    end else begin
      rest_q   <= rest_d;
      within_q <= (Parts > 1) && (take_any || rest_q != '0);
      open_q   <= (open_q | take) & ~take_last & ~flush_q;
    end
  end

  always_ff @(posedge clk_i) begin
    if (take_any) within_ctx_q <= ctx;
  end

  ct_mxu_array #(.Cols(Cols), .VpuLanes(VpuLanes), .PackDsp(PackDsp)) u_array (
    .clk_i, .rst_ni,
    .ld_valid_i(ld_valid), .ld_ctx_i(ld_ctx), .ld_pair_i(ld_pair), .ld_words_i(ld_words),
    .iss_valid_i(take_any), .iss_ctx_i(ctx), .iss_first_i(head_first[ctx]), .iss_clr_i(head_clr[ctx]), .iss_sig1_i(head_sig1[ctx]),
    .iss_sig1_id_i(ctx ? head_sig1_id[7:4] : head_sig1_id[3:0]), .iss_acc_i(ctx ? head_acc[15:8] : head_acc[7:0]), .row_i(row),
    .head_acc_i(head_acc), .next_acc_i(next_acc), .move_i(move), .hazard_o(hazard),
    .sig1_valid_o(sig1_valid), .sig1_id_o(sig1_id), .busy_o(busy),
    .acc_rd_valid_i, .acc_rd_ctx_i, .acc_rd_tile_i, .acc_rd_row_i, .acc_rd_beat_i, .acc_rd_data_o
  );

  // --- errors ---------------------------------------------------------------------------------------------------------------

  // The first error of a context that counts, and among those of one cycle the first in this list.
  logic [1:0]  err_d, err1_q, err_q, halt_d;
  logic [15:0] err_code_d, err_code_q;
  logic [39:0] err_addr_d, err_addr_q;

  // Unequal exponents count a cycle later than the other errors: the block they are in takes longer than that through its transposer. They
  // belong to an earlier word than a parity error of that cycle.
  logic [1:0]  a_square1_q, b_square1_q;
  logic [19:0] a_addr1_q;
  logic [39:0] b_addr1_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      a_square1_q <= 2'b00;
      b_square1_q <= 2'b00;
    end else begin
      a_square1_q <= a_err_square;
      b_square1_q <= b_err_square;
    end
  end

  // Which one it is, is looked at in the cycle after it. (The streams keep the address of one outside the window until the flush.)
  logic [1:0]  a_perr_q, a_square_q, b_perr_q, b_square_q, a_win_q;
  logic [19:0] a_addr_q;
  logic [39:0] b_addr_q;
  always_ff @(posedge clk_i) begin
    {a_perr_q, a_square_q, b_perr_q, b_square_q, a_win_q} <= {a_err_perr, a_square1_q, b_err_perr, b_square1_q, a_err_win};
    a_addr1_q <= a_err_addr;
    b_addr1_q <= b_err_addr;
    a_addr_q  <= a_addr1_q;
    b_addr_q  <= b_addr1_q;
  end

  always_comb begin
    err_code_d = '0;
    err_addr_d = '0;
    for (int c = 0; c < 2; c++) begin
      err_d[c] = (a_err_perr[c] || a_square1_q[c] || b_err_perr[c] || b_square1_q[c] || a_err_win[c] || b_err_win[c]) &&
                 !halt_q[c] && !flush_q[c];
      if (a_square_q[c]) begin
        err_code_d[8*c +: 8]   = 8'(ct_pkg::ErrSquare);
        err_addr_d[20*c +: 20] = a_addr_q;
      end else if (a_perr_q[c]) begin
        err_code_d[8*c +: 8]   = 8'(ct_pkg::ErrParity);
        err_addr_d[20*c +: 20] = a_addr1_q;
      end else if (b_square_q[c]) begin
        err_code_d[8*c +: 8]   = 8'(ct_pkg::ErrSquare);
        err_addr_d[20*c +: 20] = b_addr_q[20*c +: 20];
      end else if (b_perr_q[c]) begin
        err_code_d[8*c +: 8]   = 8'(ct_pkg::ErrParity);
        err_addr_d[20*c +: 20] = b_addr1_q[20*c +: 20];
      end else if (a_win_q[c]) begin
        err_code_d[8*c +: 8]   = 8'(ct_pkg::ErrSpmWindow);
        err_addr_d[20*c +: 20] = a_err_win_addr[20*c +: 20];
      end else begin
        err_code_d[8*c +: 8]   = 8'(ct_pkg::ErrSpmWindow);
        err_addr_d[20*c +: 20] = b_err_win_addr[20*c +: 20];
      end
    end
    halt_d = (halt_q | err_d) & ~flush_q;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      halt_q <= 2'b00;
      err1_q <= 2'b00;
      err_q  <= 2'b00;
    end else begin
      halt_q <= halt_d;
      err1_q <= err_d;
      err_q  <= err1_q;
    end
  end

  always_ff @(posedge clk_i) begin
    if (err1_q != 2'b00) begin
      err_code_q <= err_code_d;
      err_addr_q <= err_addr_d;
    end
  end

  assign err_o      = err_q;
  assign err_code_o = err_code_q;
  assign err_addr_o = {12'd0, err_addr_q[39:20], 12'd0, err_addr_q[19:0]};

  // --- events ---------------------------------------------------------------------------------------------------------------

  logic [1:0] in_row;
  logic [1:0] ev_rows_q, ev_busy_q, ev_wait_arb_q, ev_wait_b_q, ev_wait_a_q, ev_wait_sem_q;
  logic [1:0] sem_starved;

  assign in_row   = {within_q && within_ctx_q, within_q && !within_ctx_q};
  assign sem_starved = (avail_go & ~head_vld) | (~avail & ~a_work & seq_wait);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      ev_rows_q     <= 2'b00;
      ev_busy_q     <= 2'b00;
      ev_wait_arb_q <= 2'b00;
      ev_wait_b_q   <= 2'b00;
      ev_wait_a_q   <= 2'b00;
      ev_wait_sem_q <= 2'b00;
    end else begin
      ev_rows_q     <= take;
      ev_busy_q     <= take | in_row;
      ev_wait_arb_q <= ready & ~take & ~in_row;
      ev_wait_b_q   <= avail_go & head_vld & head_first & ~tile_ready & ~in_row;
      ev_wait_a_q   <= ((avail_go & head_vld & hazard & (~head_first | tile_ready)) |
                        (~avail & (open_q | tile_ready | a_work) & ~sem_starved & ~halt_q & ~flush_q)) & ~in_row;
      ev_wait_sem_q <= sem_starved & ~in_row;
    end
  end

  assign probe_o       = {sig1_valid, take_last, take | in_row, take, ready};

  assign ev_rows_o     = ev_rows_q;
  assign ev_busy_o     = ev_busy_q;
  assign ev_wait_arb_o = ev_wait_arb_q;
  assign ev_wait_b_o   = ev_wait_b_q;
  assign ev_wait_a_o   = ev_wait_a_q;
  assign ev_wait_sem_o = ev_wait_sem_q;

  // Operations are whole, and inference is never kept waiting by training.
  `CT_ASSERT(FirstOpensOperation_A, ((take & head_first) & open_q) == 2'b00)
  `CT_ASSERT(OnlyFirstOpens_A, ((take & ~head_first) & ~open_q) == 2'b00)
  `CT_ASSERT(OneOwner_A, take != 2'b11 && (take & ~ready) == 2'b00 && (!take_any || take[ctx]))
  `CT_ASSERT(InferenceServed_A, !qos_i[ct_pkg::QosStrict] || !ready[0] || take[0] || within_q)

`ifdef FORMAL
  `include "ct_mxu_formal.svh"
`endif

endmodule

`default_nettype wire
