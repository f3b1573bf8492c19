// SPDX-License-Identifier: Apache-2.0
//
// VS side of the VPU: rows of a tile register into the SPM, as FP32 or quantised to HBFP8.
//
// What        Mode 0: four FP32 words a row, exponent 0. Mode 1: a word a row with the row's exponent. Mode 2: a word a row with one exponent for
//             all rows. The exponent is the largest exponent field (0: all zero, 255: a NaN or Inf is among them). Narrow: fewer bits in
//             a mantissa, the same exponent.
// Passes      The exponent has to be known before the first mantissa. With 16 lanes a row arrives whole and mode 1 needs one pass;
//             mode 2, and with 4 lanes mode 1 too, read the group twice: once for the exponent, once for the mantissas. A mode 2 that
//             follows a mode 0 of the same tile and rows without a cycle between them (an optimiser stores a master weight and then its
//             compute copy) has its exponent from that one and needs the second pass only.
// Operation   slots (cycles in which the SPM does not hold VS up) for 16 rows:    mode 0   mode 1   mode 2
//                                                                      16 lanes       64       16       32
//                                                                       4 lanes       64      128      128
// Latency     first word at the SPM port 9 cycles after its read; in front of that the pass for the exponent.
// Rows        a start is one pass over one row: 1 slot, or 4 with 4 lanes and in mode 0. While stays_o[c] is high (combinational from the
//             command in front of c) more of them follow: the same command must come again for each, with rows of the other context between them or
//             not. Each context has its own largest exponent, which lasts from row to row.
// Throughput  the next row enters in the cycle after the last slot of this one.
// Handshake   start_valid_i/start_ready_o; SPM write port valid/ready. Words wait in a ct_fifo, and a word starts only with a place in
//             it, so that nothing between tile register and FIFO stalls. Completion: the SPM took the last word.
// Errors      a command with start_bad_i does nothing but err_window_o (its highest relative address).
// Flush       kill_i[c] drops slots not issued, with the rows to come, and holds back signals of c; words under way are still written.
//
// Parameters
//   VpuLanes  elements in a word of the tile registers, 16 or 4

`default_nettype none
`include "ct_assert.svh"

module ct_vpu_vs #(
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
  output logic [1:0]       moves_o,       // the row is written, so that the next one has another address
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
  output logic [1:0]       nan_o,      // a group of c became NaN

  // tile register read
  output logic             rf_en_o,
  output logic [AddrW-1:0] rf_addr_o,
  input  logic [W-1:0]     rf_data_i,

  // SPM write port
  output logic             spm_wr_valid_o,
  input  logic             spm_wr_ready_i,
  output logic [19:0]      spm_wr_addr_o,
  output logic [127:0]     spm_wr_data_o,
  output logic [7:0]       spm_wr_exp_o,

  // errors, one bit each context
  output logic [1:0]       err_window_o,
  output logic [20:0]      err_window_addr_o
);

  localparam int unsigned FifoDepth = 10;  // covers the pipeline at a word a cycle
  localparam int unsigned MaxSlots  = 4;  // of a start

  // --- Sequencer. A slot is one read of the tile register. ---

  logic        act_d, act_q;
  logic        ctx_q;
  logic [1:0]  mode_q;
  logic        pass_q;          // 0 looks for the exponent, 1 makes words
  logic [3:0]  row_q, tile_q;
  logic        final_q;         // the last row of the last pass
  logic [1:0]  begun_d, begun_q, next_pass_q;  // of each context: its command goes on, with this pass and row
  logic [7:0]  next_row_q;
  logic [1:0]  dropped;         // an operation ends before its last row
  logic [1:0]  starts;          // start, of each context
  logic [1:0]  pass, final_row, pass_after;  // of each context: what its command does next
  logic [7:0]  row, row_after;
  logic        start_pass, start_final, one_pass_start;  // of the one that is chosen
  logic [3:0]  start_row, start_last;
  logic [1:0]  quad_d, quad_q;  // 4 lanes: the beat; 16 lanes, mode 0: which four elements
  logic [19:0] addr_q;
  logic [9:0]  sig_q;
  logic [2:0]  narrow_q;
  logic        start, run, space, step, row_end, last, makes_word;
  logic        makes_d, makes_q;  // makes_word, known a cycle before
  logic        four_slots;
  logic [1:0]  one_pass;
  logic [4:0]  credit_d, credit_q;
  logic        full_d, full_q;    // credit_q is FifoDepth
  logic        pop;

  assign start          = start_valid_i && start_ready_o && !start_bad_i;
  assign start_ready_o  = !act_q || (step && row_end);
  assign run            = act_q && !kill_i[ctx_q];
  assign four_slots     = (VpuLanes == 4) || (mode_q == 2'd0);
  assign row_end        = !four_slots || (quad_q == 2'd3);
  assign makes_word     = makes_q;
  assign space          = !full_q;
  assign step           = run && (space || !makes_word);
  assign last           = row_end && final_q;

  // What the command of each context does next, before one of them is chosen. What comes behind a row: its second pass and then the next
  // row, or a pass over all rows.
  for (genvar c = 0; c < 2; c++) begin : g_next
    logic [1:0] mode;
    logic [3:0] last_row;
    logic       known, by_row;
    assign mode     = head_i[256*c + ct_pkg::VsModeLsb +: 2];
    assign last_row = head_i[256*c + ct_pkg::VsRowsLsb +: 4] - 4'd1;
    assign by_row   = VpuLanes == 4 && mode == 2'd1;
    // The operation that ends has been through the same rows. Nobody can have written them since: that would have to wait for its
    // signals, which go later than this.
    assign known         = act_q && final_q && mode_q == 2'd0 && mode == 2'd2 && ctx_q == 1'(c)
                        && head_i[256*c + ct_pkg::VsTsLsb +: 4] == tile_q && last_row == row_q;
    assign one_pass[c]   = mode == 2'd0 || (VpuLanes == 16 && mode == 2'd1) || known;
    assign pass[c]       = begun_q[c] ? next_pass_q[c] : one_pass[c];
    assign row[4*c +: 4] = begun_q[c] ? next_row_q[4*c +: 4] : 4'd0;
    assign final_row[c]  = pass[c] && row[4*c +: 4] == last_row;
    assign pass_after[c] = by_row ? !pass[c] : pass[c] || row[4*c +: 4] == last_row;
    assign row_after[4*c +: 4] = by_row ? row[4*c +: 4] + {3'd0, pass[c]} : row[4*c +: 4] == last_row ? 4'd0 : row[4*c +: 4] + 4'd1;
  end
  assign starts         = {start && start_ctx_i, start && !start_ctx_i};
  assign stays_o        = ~final_row;
  assign moves_o        = pass;
  assign start_pass     = pass[start_ctx_i];
  assign start_final    = final_row[start_ctx_i];
  assign start_row      = row[4*start_ctx_i +: 4];
  assign start_last     = start_cmd_i[ct_pkg::VsRowsLsb +: 4] - 4'd1;
  assign one_pass_start = one_pass[start_ctx_i];

  always_comb begin
    act_d    = run && !(step && row_end);
    quad_d   = step ? quad_q + 2'd1 : quad_q;
    credit_d = credit_q + {4'd0, step && makes_word} - {4'd0, taken};
    full_d   = !taken && (full_q || (credit_q == 5'(FifoDepth - 1) && step && makes_word));
    makes_d  = makes_q;
    if (step)  makes_d = pass_q && (mode_q == 2'd0 || quad_q == 2'd2);
    if (start) makes_d = start_pass && (start_cmd_i[ct_pkg::VsModeLsb +: 2] == 2'd0 || VpuLanes != 4);
    if (start) begin
      act_d  = 1'b1;
      quad_d = 2'd0;
    end
    begun_d = ((begun_q | starts) & ~(starts & final_row)) & ~kill_i;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      act_q    <= 1'b0;
      begun_q  <= 2'b00;
      credit_q <= '0;
      full_q   <= 1'b0;
    end else begin
      act_q    <= act_d;
      begun_q  <= begun_d;
      credit_q <= credit_d;
      full_q   <= full_d;
    end
  end

  always_ff @(posedge clk_i) begin
    quad_q  <= quad_d;
    makes_q <= makes_d;
    for (int c = 0; c < 2; c++) begin
      if (starts[c]) begin
        next_pass_q[c]       <= pass_after[c];
        next_row_q[4*c +: 4] <= row_after[4*c +: 4];
      end
    end
    if (start) begin
      ctx_q    <= start_ctx_i;
      pass_q   <= start_pass;
      row_q    <= start_row;
      final_q  <= start_final;
      addr_q   <= start_at_i;
      mode_q   <= start_cmd_i[ct_pkg::VsModeLsb +: 2];
      tile_q   <= start_cmd_i[ct_pkg::VsTsLsb +: 4];
      sig_q    <= start_cmd_i[ct_pkg::AllSig0Lsb +: 10];
      narrow_q <= start_cmd_i[ct_pkg::VsNarrowLsb +: 3];
    end
  end

  assign busy_o  = {act_q && ctx_q, act_q && !ctx_q};
  assign dropped = kill_i & (busy_o | begun_q);
  assign probe_o = {{out_ctx, !out_ctx} & {2{pop && out_last}}, dropped | ({ctx_q, !ctx_q} & {2{step && last}}), {ctx_q, !ctx_q} & {2{step}}};

  assign rf_en_o = step;
  if (VpuLanes == 4) begin : g_addr_4
    assign rf_addr_o = {ctx_q, tile_q, row_q, quad_q};
  end else begin : g_addr_16
    assign rf_addr_o = {ctx_q, tile_q, row_q};
  end

  // --- The way of a slot: 1 data at the tile register, 2 in d2_q (exponent fields compared by pairs), 3 in d3_q (compared with the largest so
  //     far), 4 in d4_q (exponent known), 5 gap, 6 scaled, 7 rounded: word into the FIFO. ---

  // {narrow[3], addr[20], sig[10], ctx, last, makes a word, first of its group (tile: first row), quad[2], mode[2], takes part in the exponent, starts it}
  localparam int unsigned MetaW = 43;

  logic [7:1]         vld_q;
  logic [MetaW-1:0]   meta, meta1_q, meta2_q, meta3_q, meta4_q, meta5_q, meta6_q, meta7_q;
  logic               looks, looks_first;

  assign looks       = !pass_q || mode_q == 2'd0 || (VpuLanes == 16 && mode_q == 2'd1);
  assign looks_first = (quad_q == 2'd0) && (mode_q == 2'd1 || row_q == 4'd0);

  assign meta = {narrow_q, addr_q + ((mode_q == 2'd0) ? {18'd0, quad_q} : 20'd0), sig_q, ctx_q, last, makes_word,
                 mode_q == 2'd1 || row_q == 4'd0, quad_q, mode_q, looks, looks_first};

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) vld_q <= '0;
    else         vld_q <= {vld_q[6:1], step};
  end

  localparam int unsigned Pairs = VpuLanes / 2;
  logic [W-1:0]   d2_q, d3_q, d4_q;
  logic [127:0]   raw4, raw5_q, raw6_q, raw7_q;
  logic [8*Pairs-1:0] larger3_q;  // exponent field of each pair
  logic [15:0]    exps_q;         // the largest exponent field so far of each context
  logic [7:0]     exp3, exp4, exp5_q, exp6_q, exp7_q;
  logic [8*VpuLanes-1:0] mantissas;
  logic           quant_valid;
  logic [2:0]     quant_narrow;

  function automatic logic [8*Pairs-1:0] larger(input logic [W-1:0] x);
    for (int i = 0; i < Pairs; i++) begin
      larger[8*i +: 8] = x[64*i + 23 +: 8] > x[64*i + 55 +: 8] ? x[64*i + 23 +: 8] : x[64*i + 55 +: 8];
    end
  endfunction

  function automatic logic [7:0] largest(input logic [8*Pairs-1:0] x, input logic [7:0] seed);
    logic [8*Pairs-1:0] e;
    begin
      e = x;
      for (int s = Pairs / 2; s > 0; s = s / 2) begin
        for (int i = 0; i < s; i++) if (e[8*(i + s) +: 8] > e[8*i +: 8]) e[8*i +: 8] = e[8*(i + s) +: 8];
      end
      largest = (seed > e[7:0]) ? seed : e[7:0];
    end
  endfunction

  assign exp3 = meta3_q[9] ? exps_q[15:8] : exps_q[7:0];
  assign exp4 = meta4_q[9] ? exps_q[15:8] : exps_q[7:0];

  always_ff @(posedge clk_i) begin
    if (step) meta1_q <= meta;
    if (vld_q[1]) begin
      meta2_q <= meta1_q;
      d2_q    <= rf_data_i;
    end
    if (vld_q[2]) begin
      meta3_q   <= meta2_q;
      d3_q      <= d2_q;
      larger3_q <= larger(d2_q);
    end
    if (vld_q[3]) begin
      meta4_q <= meta3_q;
      d4_q    <= d3_q;
      if (meta3_q[1]) exps_q[8*meta3_q[9] +: 8] <= largest(larger3_q, meta3_q[0] ? 8'd0 : exp3);
    end
    if (vld_q[4]) begin
      meta5_q <= meta4_q;
      raw5_q  <= raw4;
      exp5_q  <= exp4;
    end
    if (vld_q[5]) begin
      meta6_q <= meta5_q;
      raw6_q  <= raw5_q;
      exp6_q  <= exp5_q;
    end
    if (vld_q[6]) begin
      meta7_q <= meta6_q;
      raw7_q  <= raw6_q;
      exp7_q  <= exp6_q;
    end
  end

  // Slots that only look for the exponent are not quantised.
  assign quant_valid = vld_q[4] && (meta4_q[3:2] != 2'd0) && (!meta4_q[1] || meta4_q[7]);

  assign quant_narrow = meta4_q[42:40];

  logic mantissas_valid_unused;

  ct_hbfp_quant #(.Lanes(VpuLanes)) u_quant (
    .clk_i, .rst_ni,
    .valid_i (quant_valid),
    .x_i     (d4_q),
    .e_i     (exp4),
    .narrow_i(quant_narrow),
    .valid_o (mantissas_valid_unused),
    .q_o     (mantissas)
  );

  logic [127:0] word;

  if (VpuLanes == 4) begin : g_word_4
    logic [95:0] parts_q;  // the mantissas of the beats before
    always_ff @(posedge clk_i) begin
      if (vld_q[7]) parts_q <= {mantissas, parts_q[95:32]};
    end
    assign raw4 = d4_q;
    assign word = {mantissas, parts_q};
  end else begin : g_word_16
    assign raw4 = d4_q[128*meta4_q[5:4] +: 128];
    assign word = mantissas;
  end

  // --- FIFO and SPM port ---

  localparam int unsigned WordW = 128 + 8 + 20 + 12;

  logic             push, fifo_valid, fifo_ready_unused, out_ctx, out_last, sig_wait;
  logic             out_vld_d, out_vld_q, taken;
  logic [9:0]       out_sig;
  logic             raw7;
  logic [WordW-1:0] made_word, fifo_word, out_q;

  assign push      = vld_q[7] && meta7_q[7];
  assign raw7      = (meta7_q[3:2] == 2'd0);
  assign made_word = {raw7 ? raw7_q : word, raw7 ? 8'd0 : exp7_q, meta7_q[39:20], meta7_q[19:10], meta7_q[9], meta7_q[8]};

  ct_fifo #(.Width(WordW), .Depth(FifoDepth)) u_words (
    .clk_i, .rst_ni,
    .valid_i (push),
    .ready_o (fifo_ready_unused),
    .data_i  (made_word),
    .valid_o (fifo_valid),
    .ready_i (taken),
    .data_o  (fifo_word),
    .count_o ()
  );

  // What the SPM sees comes from registers: its choice of banks begins with the address.
  assign taken     = fifo_valid && (!out_vld_q || pop);
  assign out_vld_d = taken || (out_vld_q && !pop);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) out_vld_q <= 1'b0;
    else         out_vld_q <= out_vld_d;
  end

  always_ff @(posedge clk_i) begin
    if (taken) out_q <= fifo_word;
  end

  assign {spm_wr_data_o, spm_wr_exp_o, spm_wr_addr_o, out_sig, out_ctx, out_last} = out_q;

  // A word that follows a doubled signal waits a cycle: it may be a last word, too.
  assign spm_wr_valid_o = out_vld_q && !sig_wait;
  assign pop            = spm_wr_valid_o && spm_wr_ready_i;

  // --- Completion, what is left, events ---

  logic [1:0] sig_busy, nan_d, nan_q;
  logic [4:0] left0_d, left0_q, left1_d, left1_q;  // words of each context between sequencer and SPM

  ct_vpu_sig u_sig (
    .clk_i, .rst_ni,
    .done_i    (pop && out_last),
    .ctx_i     (out_ctx),
    .sig_i     (out_sig),
    .drop_i    (kill_i),
    .wait_o    (sig_wait),
    .sem_inc_o (sem_inc_o),
    .busy_o    (sig_busy)
  );

  assign left0_d = left0_q + {4'd0, step && makes_word && !ctx_q} - {4'd0, pop && !out_ctx};
  assign left1_d = left1_q + {4'd0, step && makes_word && ctx_q}  - {4'd0, pop && out_ctx};

  always_comb begin
    nan_d = 2'b00;
    if (push && !raw7 && meta7_q[6] && &exp7_q) nan_d = {meta7_q[9], !meta7_q[9]};
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      left0_q <= '0;
      left1_q <= '0;
      nan_q   <= '0;
    end else begin
      left0_q <= left0_d;
      left1_q <= left1_d;
      nan_q   <= nan_d;
    end
  end

  assign nan_o     = nan_q;
  assign pending_o = busy_o | sig_busy | {left1_q != '0, left0_q != '0};

  logic window;
  assign window            = start_valid_i && start_ready_o && start_bad_i;
  assign err_window_o      = {window && start_ctx_i, window && !start_ctx_i};
  assign err_window_addr_o = start_top_i;

  logic unused;
  assign unused = ^{head_i, start_cmd_i, start_last, one_pass_start, meta7_q, fifo_ready_unused, mantissas_valid_unused};

  // Invariants
  logic [2:0] slots_d, slots_q;  // of the start under way
  assign slots_d = start ? 3'd0 : slots_q + {2'd0, step};
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) slots_q <= '0;
    else         slots_q <= slots_d;
  end

  `CT_ASSERT(StartBounded_A, !act_q || slots_q < 3'(MaxSlots))
`ifdef FORMAL
  `include "ct_vpu_vs_formal.svh"
`endif

  `CT_ASSERT(WordHasPlace_A, !push || fifo_ready_unused)
  `CT_ASSERT(CreditsInRange_A, credit_q <= 5'(FifoDepth) && full_q == (credit_q == 5'(FifoDepth)))
  `CT_ASSERT(MakesInTime_A, !act_q || makes_q == (pass_q && (mode_q == 2'd0 || row_end)))

endmodule

`default_nettype wire
