// SPDX-License-Identifier: Apache-2.0
//
// VL side of the VPU: words of the SPM into a tile register.
//
// What        Mode 0 (FP32) writes the elements of the words as they are, modes 1 and 2 (HBFP8, HBFP8 sign) the sixteen elements
//             that ct_hbfp_dequant makes of a word: in one write with 16 lanes, in four with 4 lanes. With 16 lanes the four words of an
//             FP32 row are gathered and written together, which leaves three of four cycles of the write port to VA.
// Path        sequencer -> ct_skid -> SPM port -> (SpmLat) -> ct_fifo -> a word's register -> ct_hbfp_dequant (two registers, of which the
//             second is that of the write) -> tile register. A word asks the SPM only when it has a place in the FIFO, because SPM data
//             cannot be refused. Behind the FIFO all move together, when a write fires or none is there.
// Latency     first write 8 cycles after the start of an operation on an idle side (the SPM granting at once).
// Throughput  a word a cycle (HBFP8 with 4 lanes: a word in four cycles); the next row enters in the cycle after the last word of this one.
// Rows        a start is a row. While stays_o[c] is high (combinational from the command in front of c) more of them follow: the same command
//             must come again for each, with rows of the other context between them or not. next_q says which one it is.
// Handshake   start_valid_i/start_ready_o. A tile register write (wr_valid_o) waits while wr_ready_i is low, for VA goes first;
//             starved_o asks VA for a gap when that has lasted StarveCycles, not counting those with wr_other_i.
// Operation   a row has 1 or 4 words, an operation 16 rows at most: 64 cycles, plus those in which SPM or VA go first (4 lanes, HBFP8: 64 writes).
// Errors      a command with start_bad_i does nothing but err_window_o (its highest relative address). err_parity_o comes with the
//             physical address of the word; the word is written all the same: ct_vpu stops the context.
// Flush       kill_i[c] drops what has not asked the SPM yet, with the rows to come, and holds back signals of c; words under way are still written, but for
//             those of a row whose last word has not been asked for.
//
// Parameters
//   VpuLanes  elements in a word of the tile registers, 16 or 4

`default_nettype none
`include "ct_assert.svh"

module ct_vpu_vl #(
  parameter  int unsigned VpuLanes = 16,
  localparam int unsigned AddrW    = (VpuLanes == 4) ? 11 : 9,
  localparam int unsigned W        = 32 * VpuLanes
) (
  input  logic             clk_i,
  input  logic             rst_ni,

  // operation that starts, and the commands in front
  input  logic [511:0]     head_i,
  input  logic             start_valid_i,
  output logic             start_ready_o,
  output logic [1:0]       stays_o,
  input  logic             start_ctx_i,
  input  logic [255:0]     start_cmd_i,
  input  logic             start_bad_i,
  input  logic [20:0]      start_top_i,   // highest relative address
  input  logic [19:0]      start_at_i,    // physical address of the row

  input  logic [1:0]       kill_i,
  output logic [31:0]      sem_inc_o,
  output logic [1:0]       busy_o,     // the sequencer works for c
  output logic [1:0]       pending_o,  // something of c is left
  output logic [5:0]       probe_o,    // complete, accept, slot used: a bit each context (see ct_core)
  output logic             starved_o,

  // SPM read port
  output logic             spm_rd_valid_o,
  output logic [19:0]      spm_rd_addr_o,
  output logic             spm_rd_ctx_o,
  input  logic             spm_rd_ready_i,
  input  logic             spm_rd_vld_i,
  input  logic [127:0]     spm_rd_data_i,
  input  logic [7:0]       spm_rd_exp_i,
  input  logic             spm_rd_perr_i,

  // tile register write
  output logic             wr_valid_o,
  input  logic             wr_ready_i,
  input  logic             wr_other_i,   // training's VA has the bank and leaves it anyway
  output logic [AddrW-1:0] wr_addr_o,
  output logic [W-1:0]     wr_data_o,

  // errors: one bit each context
  output logic [1:0]       err_window_o,
  output logic [20:0]      err_window_addr_o,
  output logic [1:0]       err_parity_o,
  output logic [19:0]      err_parity_addr_o
);

  localparam int unsigned FifoDepth    = 6;   // covers skid and SpmLat at full rate
  localparam int unsigned StarveCycles = 16;
  localparam int unsigned MaxWords     = 4;   // of a row

  // What goes along with a word: {sig[10], last, mode[2], word[2], row[4], tile[4], ctx}
  localparam int unsigned MetaW = 24;

  // --- Sequencer: one address a cycle. ---

  logic        act_d, act_q;
  logic        ctx_q;
  logic [1:0]  mode_q, word_d, word_q;
  logic [3:0]  row_q, tile_q;
  logic        final_q;                 // the last row of its operation
  logic [7:0]  next_d, next_q;          // the row that each context goes on with; 0: its next command is a new one
  logic [3:0]  start_row;
  logic [1:0]  dropped;                 // an operation ends before its last row
  logic [19:0] addr_q;
  logic [1:0]  starts;                  // start, of each context
  logic [9:0]  sig_q;
  logic        start, run, space, step, row_end;
  logic        ask_ready;
  logic [3:0]  credit_d, credit_q;  // words between here and the dequantiser
  logic        full_d, full_q;      // credit_q is FifoDepth
  logic        pop;

  assign start         = start_valid_i && start_ready_o && !start_bad_i;
  assign start_ready_o = !act_q || (step && row_end);
  assign start_row     = next_q[4*start_ctx_i +: 4];
  assign starts        = {start && start_ctx_i, start && !start_ctx_i};
  for (genvar c = 0; c < 2; c++) begin : g_stays
    assign stays_o[c] = 4'(next_q[4*c +: 4] + 4'd1) != head_i[256*c + ct_pkg::VlRowsLsb +: 4];
  end
  assign run           = act_q && !kill_i[ctx_q];
  assign space         = !full_q;
  assign step          = run && space && ask_ready;
  assign row_end       = (mode_q != 2'd0) || (word_q == 2'd3);

  always_comb begin
    act_d    = run && !(step && row_end);
    word_d   = step ? word_q + 2'd1 : word_q;
    next_d   = next_q;
    credit_d = credit_q + {3'd0, step} - {3'd0, pop};
    full_d   = !pop && (full_q || (credit_q == 4'(FifoDepth - 1) && step));
    if (start) begin
      act_d  = 1'b1;
      word_d = 2'd0;
    end
    for (int c = 0; c < 2; c++) if (starts[c]) next_d[4*c +: 4] = stays_o[c] ? next_q[4*c +: 4] + 4'd1 : 4'd0;
    next_d = next_d & ~{{4{kill_i[1]}}, {4{kill_i[0]}}};
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      act_q    <= 1'b0;
      next_q   <= '0;
      credit_q <= '0;
      full_q   <= 1'b0;
    end else begin
      act_q    <= act_d;
      next_q   <= next_d;
      credit_q <= credit_d;
      full_q   <= full_d;
    end
  end

  always_ff @(posedge clk_i) begin
    word_q <= word_d;
    if (start) begin
      ctx_q      <= start_ctx_i;
      row_q      <= start_row;
      final_q    <= !stays_o[start_ctx_i];
      addr_q     <= start_at_i;
      mode_q     <= start_cmd_i[ct_pkg::VlModeLsb +: 2];
      tile_q     <= start_cmd_i[ct_pkg::VlTdLsb +: 4];
      sig_q      <= start_cmd_i[ct_pkg::AllSig0Lsb +: 10];
    end
  end

  assign busy_o  = {act_q && ctx_q, act_q && !ctx_q};
  assign dropped = kill_i & (busy_o | {next_q[7:4] != 4'd0, next_q[3:0] != 4'd0});
  assign probe_o = {{wr_ctx_q, !wr_ctx_q} & {2{fired && wr_end_q}}, dropped | ({ctx_q, !ctx_q} & {2{step && row_end && final_q}}), {ctx_q, !ctx_q} & {2{step}}};

  // --- SPM port ---

  logic [MetaW+19:0] ask_word;
  logic [MetaW-1:0]  ask_meta, got1_q, got2_q;
  logic [19:0]       got1_addr_q, got2_addr_q;
  logic              got1_vld_q, got2_vld_q;
  logic              granted;

  assign ask_word = {addr_q + {18'd0, word_q}, sig_q, row_end && final_q, mode_q, word_q, row_q, tile_q, ctx_q};

  ct_skid #(.Width(MetaW + 20)) u_ask (
    .clk_i, .rst_ni,
    .valid_i (run && space),
    .ready_o (ask_ready),
    .data_i  (ask_word),
    .valid_o (spm_rd_valid_o),
    .ready_i (spm_rd_ready_i),
    .data_o  ({spm_rd_addr_o, ask_meta})
  );

  assign spm_rd_ctx_o = ask_meta[0];
  assign granted      = spm_rd_valid_o && spm_rd_ready_i;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      got1_vld_q <= 1'b0;
      got2_vld_q <= 1'b0;
    end else begin
      got1_vld_q <= granted;
      got2_vld_q <= got1_vld_q;
    end
  end

  always_ff @(posedge clk_i) begin
    if (granted) begin
      got1_q      <= ask_meta;
      got1_addr_q <= spm_rd_addr_o;
    end
    if (got1_vld_q) begin
      got2_q      <= got1_q;
      got2_addr_q <= got1_addr_q;
    end
  end

  logic               fifo_valid, fifo_ready_unused;
  logic [MetaW+135:0] got_word;
  logic [MetaW-1:0]   meta;
  logic [127:0]       data;
  logic [7:0]         exponent;

  assign got_word = {spm_rd_data_i, spm_rd_exp_i, got2_q};

  ct_fifo #(.Width(MetaW + 136), .Depth(FifoDepth)) u_got (
    .clk_i, .rst_ni,
    .valid_i (spm_rd_vld_i),
    .ready_o (fifo_ready_unused),
    .data_i  (got_word),
    .valid_o (fifo_valid),
    .ready_i (pop),
    .data_o  ({data, exponent, meta}),
    .count_o ()
  );

  // --- Tile register writes: a word's register, then two stages of the dequantiser. ---

  // What goes along: {sig[10], owner, completes its operation, ends its word, place of the write[AddrW]}
  localparam int unsigned WriteW = 13 + AddrW;

  logic              word_vld_d, word_vld_q;  // a word is here
  logic [MetaW-1:0]  word_meta_q;
  logic [7:0]        word_exp_q;
  logic [127:0]      got_q;            // 4 lanes: its next quarter is below
  logic              word_fp32;
  logic              half_vld_q;         // a write in the middle of the dequantiser
  logic [WriteW-1:0] word_write, half_write_q, write_q;
  logic              wr_vld_q;
  logic              wr_end_q;           // the last write of an operation
  logic              wr_word_end_q;
  logic              wr_ctx_q;
  logic [9:0]        wr_sig_q;
  logic [AddrW-1:0]  wr_addr_q, wr_place;
  logic              move, fired, sig_wait;
  logic              part;               // the word waits for the rest of its row
  logic              parts;              // and goes there now
  logic [1:0]        beat;               // 4 lanes, HBFP8: which quarter of the word
  logic              beats_done;
  logic              load;               // a write enters the dequantiser
  logic [W-1:0]      raw;

  assign word_fp32 = (word_meta_q[12:11] == 2'd0);
  assign fired     = wr_vld_q && wr_ready_i && !sig_wait;
  assign move      = !wr_vld_q || fired;
  assign load      = move && word_vld_q && !part;
  assign parts     = word_vld_q && part;
  assign pop       = fifo_valid && (!word_vld_q || parts || (load && beats_done));

  assign word_vld_d = pop || (word_vld_q && !parts && !(load && beats_done));

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      word_vld_q <= 1'b0;
      half_vld_q <= 1'b0;
      wr_vld_q   <= 1'b0;
    end else begin
      word_vld_q <= word_vld_d;
      if (move) half_vld_q <= load;
      if (move) wr_vld_q   <= half_vld_q;
    end
  end

  assign word_write = {word_meta_q[23:14], word_meta_q[0], word_meta_q[13] && beats_done, beats_done, wr_place};
  assign {wr_sig_q, wr_ctx_q, wr_end_q, wr_word_end_q, wr_addr_q} = write_q;

  always_ff @(posedge clk_i) begin
    if (pop) begin
      word_meta_q <= meta;
      word_exp_q  <= exponent;
    end
    if (load)               half_write_q <= word_write;
    if (move && half_vld_q) write_q      <= half_write_q;
  end

  if (VpuLanes == 4) begin : g_lanes_4
    logic [1:0] beat_d, beat_q;
    assign beat_d     = (load && !word_fp32) ? beat_q + 2'd1 : beat_q;
    assign beat       = beat_q;
    assign beats_done = word_fp32 || (beat_q == 2'd3);
    assign part       = 1'b0;
    assign raw        = got_q;
    assign wr_place   = {word_meta_q[0], word_meta_q[4:1], word_meta_q[8:5], word_fp32 ? word_meta_q[10:9] : beat};
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) beat_q <= 2'd0;
      else         beat_q <= beat_d;
    end
    always_ff @(posedge clk_i) begin
      if (pop)       got_q <= data;
      else if (load) got_q[95:0] <= got_q[127:32];
    end
  end else begin : g_lanes_16
    assign beat       = 2'd0;
    assign beats_done = 1'b1;
    assign part       = word_fp32 && (word_meta_q[10:9] != 2'd3);
    assign wr_place   = {word_meta_q[0], word_meta_q[4:1], word_meta_q[8:5]};
    // The first three words of a row gather behind the word's register, so that they come in while the row before waits.
    logic [383:0] parts_q;
    assign raw = {got_q, parts_q};
    always_ff @(posedge clk_i) begin
      if (pop)   got_q <= data;
      if (parts) parts_q <= {got_q, parts_q[383:128]};
    end
  end

  logic dequant_valid_unused;

  // Its output register is the data register of the write.
  ct_hbfp_dequant #(.Lanes(VpuLanes)) u_dequant (
    .clk_i, .rst_ni,
    .en_i    (move),
    .valid_i (load),
    .mode_i  (word_meta_q[12:11]),
    .q_i     (got_q[8*VpuLanes-1:0]),
    .e_i     (word_exp_q),
    .raw_i   (raw),
    .valid_o (dequant_valid_unused),
    .x_o     (wr_data_o)
  );

  assign wr_valid_o     = wr_vld_q && !sig_wait;
  assign wr_addr_o      = wr_addr_q;

  // --- Completion, what is left, hunger ---

  logic [1:0] sig_busy;
  logic [3:0] left0_d, left0_q, left1_d, left1_q;  // words of each context between sequencer and tile register
  logic       left_dec, part_dec;                  // a word's last write; a word that waits for its row
  logic [4:0] starve_d, starve_q;

  ct_vpu_sig u_sig (
    .clk_i, .rst_ni,
    .done_i    (fired && wr_end_q),
    .ctx_i     (wr_ctx_q),
    .sig_i     (wr_sig_q),
    .drop_i    (kill_i),
    .wait_o    (sig_wait),
    .sem_inc_o (sem_inc_o),
    .busy_o    (sig_busy)
  );

  assign left_dec  = fired && wr_word_end_q;
  assign part_dec  = parts;
  assign left0_d   = left0_q + {3'd0, step && !ctx_q} - {3'd0, left_dec && !wr_ctx_q} - {3'd0, part_dec && !word_meta_q[0]};
  assign left1_d   = left1_q + {3'd0, step && ctx_q}  - {3'd0, left_dec && wr_ctx_q}  - {3'd0, part_dec && word_meta_q[0]};
  assign pending_o = busy_o | sig_busy | {left1_q != '0, left0_q != '0};

  always_comb begin
    starve_d = starve_q;
    if (!wr_vld_q || fired)                               starve_d = '0;
    else if (starve_q != 5'(StarveCycles) && !wr_other_i) starve_d = starve_q + 5'd1;
  end

  assign starved_o = (starve_q == 5'(StarveCycles));

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      left0_q  <= '0;
      left1_q  <= '0;
      starve_q <= '0;
    end else begin
      left0_q  <= left0_d;
      left1_q  <= left1_d;
      starve_q <= starve_d;
    end
  end

  // --- Errors ---

  logic parity, window;

  assign parity            = spm_rd_vld_i && spm_rd_perr_i && !kill_i[got2_q[0]];
  assign window            = start_valid_i && start_ready_o && start_bad_i;
  assign err_parity_o      = {parity && got2_q[0], parity && !got2_q[0]};
  assign err_parity_addr_o = got2_addr_q;
  assign err_window_o      = {window && start_ctx_i, window && !start_ctx_i};
  assign err_window_addr_o = start_top_i;

  logic unused;
  assign unused = ^{head_i, start_cmd_i, beat, fifo_ready_unused, dequant_valid_unused};

  // Invariants
  logic [2:0] words_d, words_q;  // of the start under way
  assign words_d = start ? 3'd0 : words_q + {2'd0, step};
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) words_q <= '0;
    else         words_q <= words_d;
  end

  `CT_ASSERT(StartBounded_A, !act_q || words_q < 3'(MaxWords))
`ifdef FORMAL
  `include "ct_vpu_vl_formal.svh"
`endif

  `CT_ASSERT(AnswerInTime_A, spm_rd_vld_i == got2_vld_q)
  `CT_ASSERT(AnswerHasPlace_A, !spm_rd_vld_i || fifo_ready_unused)
  `CT_ASSERT(CreditsInRange_A, credit_q <= 4'(FifoDepth) && full_q == (credit_q == 4'(FifoDepth)))

endmodule

`default_nettype wire
