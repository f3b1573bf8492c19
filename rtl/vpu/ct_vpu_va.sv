// SPDX-License-Identifier: Apache-2.0
//
// VA side of the VPU: y = Func(post(OP(a * b, c))) on the elements of a tile, a row (16 lanes) or a quarter of one (4 lanes) a cycle.
//
// Latency     VaLat = 27 cycles, fixed: an operation that issues its first row VaLat cycles after this one reads what this one wrote.
//             In cycles after the issue of a row:
//               0 ACC asked   1 tile registers read   2 operands chosen, Tq permuted   3..7 multiply   8 max, min, select, equal
//               9..14 add   15 ReLU   15..25 function, or its delay line   26 padding   27 written, completion (ct_vpu_lanes has 2 to 26)
// Short way   an operation that only copies from ACC (no b, no c, no ReLU, no function: what ACC holds is canonical) goes from stage 3
//             to the padding, and its rows are written in cycle 4, unless rows that go the long way are still to be written.
// Throughput  a row (quarter) a cycle; the next operation issues in the cycle after the last row of this one. Nothing ever stalls:
//             the tile register write of VA goes first.
// Rows        with 4 lanes a start is a row, but the last four rows of an operation that tells ahead of its end (see Completion) go together;
//             with 16 lanes it is the operation. While stays_o[c] is high (from registers) more follow: the same
//             command must come again for each, with rows of the other context between them or not.
// What is not asked for is a neutral operand, so that every operation takes the same way and every result is canonical: b = 1.0 when
//             BSrc = 0; c = -0.0 when CSrc = 0 (x + -0.0 = x for every x). max, min, select and equal are made in front of the adder, which
//             then adds -0.0 to their result.
// Front       what a command is (head_i) is looked at in the cycle in which it takes its waits, and known in the next one.
// Spacing     hold_o[c] keeps a new command in front from starting: while it would read a tile register that is not written yet (VaSpace =
//             VaLat + 4 cycles after the start of what writes it, see ct_vpu_apart), and, if it permutes or follows a command with row 0 last or one of four issues a quarter, until the last
//             write of c before it is visible. Also while gap_i[c].
// Functions   FnLanes lanes have them. With one, each quarter of a row of a function operation is issued four times, its lane 0 to 3
//             going through the function in turn; the results gather in the write register, and the last of the four writes it.
// Operation   16 rows at most: 16 cycles with 16 lanes, 64 with 4, 256 with 4 and a single function (16 lanes: one more if it signals
//             one semaphore twice). A start takes 16 cycles at most (17).
// Completion  goes with the first write (4 lanes: with one of the last 16), since the others follow a cycle apart: all rows have been
//             read by then, and who hears of it goes through the rows in the same order, a row (quarter) a cycle at most, as VS and VL do.
//             (That is why those 16 are one start.)
//             With row 0 last, or four issues a quarter, it goes with the last write.
// Flush       kill_i[c] drops rows not issued, with those to come, and holds back signals of c; rows in the pipe are still written.
// In place    Td = Tq and row 0 of Tq used for all rows: with 16 lanes the last row has read before row 0 is written. With 4 lanes it
//             would not, so there row 0 goes last, and the next command of the context waits until it is written.
// Duty of the program (checked at dispatch): BSrc and CSrc are not both tiles; Td is not Tq when RowXor or LaneXor is not 0.
//
// Parameters
//   VpuLanes  lanes, 16 or 4
//   FnLanes   lanes with functions: VpuLanes, or 1 of 4

`default_nettype none
`include "ct_assert.svh"

module ct_vpu_va #(
  parameter  int unsigned VpuLanes = 16,
  parameter  int unsigned FnLanes  = (VpuLanes == 4) ? 1 : VpuLanes,
  localparam int unsigned AddrW    = (VpuLanes == 4) ? 11 : 9,
  localparam int unsigned W        = 32 * VpuLanes
) (
  input  logic             clk_i,
  input  logic             rst_ni,

  // operation that starts, and the commands in front
  input  logic [511:0]     head_i,
  output logic [1:0]       hold_o,
  input  logic             start_valid_i,
  output logic             start_ready_o,
  output logic [1:0]       stays_o,
  input  logic             start_ctx_i,
  input  logic [255:0]     start_cmd_i,

  input  logic [1:0]       kill_i,
  input  logic [1:0]       gap_i,      // c must not start: VL needs the write port
  output logic [31:0]      sem_inc_o,
  output logic [1:0]       busy_o,     // the sequencer works for c
  output logic [1:0]       pending_o,  // something of c is left
  output logic [5:0]       probe_o,    // complete, accept, slot used: a bit each context (see ct_core)

  // ACC read port
  output logic             acc_rd_valid_o,
  output logic             acc_rd_ctx_o,
  output logic [3:0]       acc_rd_tile_o,
  output logic [3:0]       acc_rd_row_o,
  output logic [1:0]       acc_rd_beat_o,
  input  logic [W-1:0]     acc_rd_data_i,

  // tile registers
  output logic             a_en_o,
  output logic [AddrW-1:0] a_addr_o,
  input  logic [W-1:0]     a_data_i,
  output logic             q_en_o,
  output logic [AddrW-1:0] q_addr_o,
  input  logic [W-1:0]     q_data_i,
  output logic             wr_valid_o,
  output logic [AddrW-1:0] wr_addr_o,
  output logic [W-1:0]     wr_data_o
);

  if (FnLanes != VpuLanes && (FnLanes != 1 || VpuLanes != 4)) begin : g_check_fn_lanes
    ct_error_fn_lanes_must_be_vpu_lanes_or_1_of_4 u_error ();
  end

  localparam int unsigned FnLat    = 11;  // of ct_fn
  localparam int unsigned AddStage = 9;   // the adder's input
  localparam int unsigned FnStage  = 15;  // the function's input
  localparam int unsigned PadStage = FnStage + FnLat;
  localparam int unsigned VaLat    = PadStage + 1;
  localparam int unsigned VaSpace  = VaLat + 4;
  localparam bit          FnTurns  = (FnLanes != VpuLanes);  // the lanes take turns in the function
  localparam int unsigned MaxBeats = 16;  // of a start

  localparam logic [2:0] OpAdd    = 3'd0;

  // --- Sequencer ---

  logic        act_d, act_q;
  logic        gap_d, gap_q;  // a cycle that leaves room for the second signal, in front of a command with a single row
  logic        tail_q;        // row 0 goes last
  logic        single_q;      // the start under way is one row
  logic        final_q;       // it ends its operation
  logic [1:0]  begun_d, begun_q;  // the command of each context goes on, with this row
  logic [7:0]  next_q;
  logic [1:0]  dropped;       // an operation ends before its last row
  logic [1:0]  starts;        // start, of each context
  // The command in front of each context: rows go last or four issues a quarter; it permutes; could go the short way.
  logic [1:0]  head_tail_q, head_turns_q, head_permutes_q, head_short_q;
  logic [7:0]  head_last_q;
  // The start that would come next of each: its row and the one behind, alone, the last.
  logic [7:0]  row, row_after;
  logic [1:0]  single, final_row;
  // The one that is chosen.
  logic [3:0]  start_row, start_last;
  logic        start_single, start_final, start_tail, start_turns, start_short;
  logic [1:0]  late_d, late_q;  // the last operation of c was one of these
  logic        ctx_q;
  logic [3:0]  td_q, ta_q, tq_q, row_d, row_q, last_row_q, row_xor_q, lane_xor_q, func_q;
  logic [1:0]  asrc_q, bsrc_q, csrc_q, beat, turn;
  logic [2:0]  op_q;
  logic        negc_q, relu_q, ninf_q;
  logic [31:0] sb_q, sc_q;
  logic [4:0]  rows_q, cols_q;
  logic [9:0]  sig_q;
  logic        start, issue, turn_end, row_end, last, needs_gap, finish;  // last: of the start
  logic        tells;         // completion goes with this write
  logic        short_q;       // the operation goes the short way

  localparam int unsigned CountW = 5;
  logic [CountW-1:0] long_d, long_q;  // since the last row that goes the long way: zero when what starts now is written later

  assign start         = start_valid_i && start_ready_o;
  assign start_ready_o = !act_q || finish;
  assign issue         = act_q && !gap_q && !kill_i[ctx_q];
  assign last          = row_end && (single_q || row_q == last_row_q);
  // (Not the first quarter of a row: a doubled signal of an operation that tells with its last one needs the cycle.)
  assign tells         = (tail_q || (FnTurns && func_q[3])) ? last && final_q : (VpuLanes == 16) ? row_q == 4'd0
                       : beat == 2'd1 && row_q == ((last_row_q < 4'd3) ? 4'd0 : last_row_q - 4'd3);
  assign needs_gap     = (VpuLanes == 16) && sig_q[4] && (sig_q[4:0] == sig_q[9:5]);
  assign finish        = (issue && last && !needs_gap) || gap_q;

  always_comb begin
    act_d   = act_q && !kill_i[ctx_q] && !finish;
    gap_d   = issue && last && needs_gap;
    row_d   = row_q;
    if (issue && row_end) row_d = row_q + 4'd1;
    if (start) begin
      act_d = 1'b1;
      row_d = start_row;
    end
    late_d  = (late_q & ~starts) | (starts & (head_tail_q | head_turns_q));
    begun_d = ((begun_q | starts) & ~(starts & final_row)) & ~kill_i;
  end

  for (genvar c = 0; c < 2; c++) begin : g_head
    localparam int unsigned C = 256 * c;
    logic row0;  // row 0 of Tq for all rows
    assign row0 = head_i[C + ct_pkg::VaBSrcLsb +: 2] == 2'd2 || head_i[C + ct_pkg::VaCSrcLsb +: 2] == 2'd2;
    always_ff @(posedge clk_i) begin
      head_last_q[4*c +: 4] <= head_i[C + ct_pkg::VaFullLsb] ? 4'd15 : head_i[C + ct_pkg::VaRowsLsb +: 4] - 4'd1;
      head_tail_q[c]     <= VpuLanes == 4 && row0 && head_i[C + ct_pkg::VaTdLsb +: 4] == head_i[C + ct_pkg::VaTqLsb +: 4]
                         && (head_i[C + ct_pkg::VaFullLsb] || head_i[C + ct_pkg::VaRowsLsb +: 5] != 5'd1);
      head_turns_q[c]    <= FnTurns && head_i[C + ct_pkg::VaFuncLsb + 3];
      head_permutes_q[c] <= head_i[C + ct_pkg::VaRowXorLsb +: 8] != 8'd0;
      head_short_q[c]    <= head_i[C + ct_pkg::VaASrcLsb +: 2] == 2'd1 && head_i[C + ct_pkg::VaBSrcLsb +: 2] == 2'd0
                         && head_i[C + ct_pkg::VaCSrcLsb +: 2] == 2'd0 && !head_i[C + ct_pkg::VaReluLsb]
                         && head_i[C + ct_pkg::VaFuncLsb +: 4] == 4'd0;
    end
    logic       one_by_one;
    logic [3:0] at, last_row;
    assign one_by_one    = head_tail_q[c] || head_turns_q[c];
    assign last_row      = head_last_q[4*c +: 4];
    assign at            = begun_q[c] ? next_q[4*c +: 4] : {3'd0, head_tail_q[c]};
    assign single[c]     = (VpuLanes == 4) && (one_by_one || 4'(last_row - at) >= 4'd4);
    assign final_row[c]  = !single[c] || at == (head_tail_q[c] ? 4'd0 : last_row);
    assign row[4*c +: 4]       = at;
    assign row_after[4*c +: 4] = (head_tail_q[c] && at == last_row) ? 4'd0 : at + 4'd1;
  end
  assign starts       = {start && start_ctx_i, start && !start_ctx_i};
  assign stays_o      = ~final_row;
  assign start_row    = row[4*start_ctx_i +: 4];
  assign start_last   = head_last_q[4*start_ctx_i +: 4];
  assign start_single = single[start_ctx_i];
  assign start_final  = final_row[start_ctx_i];
  assign start_tail   = head_tail_q[start_ctx_i];
  assign start_turns  = head_turns_q[start_ctx_i];
  assign start_short  = head_short_q[start_ctx_i] && long_q == '0 && (!act_q || short_q);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      act_q   <= 1'b0;
      gap_q   <= 1'b0;
      late_q  <= 2'b00;
      begun_q <= 2'b00;
    end else begin
      act_q   <= act_d;
      gap_q   <= gap_d;
      late_q  <= late_d;
      begun_q <= begun_d;
    end
  end

  always_ff @(posedge clk_i) begin
    row_q <= row_d;
    for (int c = 0; c < 2; c++) if (starts[c]) next_q[4*c +: 4] <= row_after[4*c +: 4];
    if (start) begin
      ctx_q      <= start_ctx_i;
      tail_q     <= start_tail;
      single_q   <= start_single;
      final_q    <= start_final;
      short_q    <= start_short;
      td_q       <= start_cmd_i[ct_pkg::VaTdLsb +: 4];
      ta_q       <= start_cmd_i[ct_pkg::VaTaLsb +: 4];
      tq_q       <= start_cmd_i[ct_pkg::VaTqLsb +: 4];
      asrc_q     <= start_cmd_i[ct_pkg::VaASrcLsb +: 2];
      bsrc_q     <= start_cmd_i[ct_pkg::VaBSrcLsb +: 2];
      csrc_q     <= start_cmd_i[ct_pkg::VaCSrcLsb +: 2];
      op_q       <= (start_cmd_i[ct_pkg::VaCSrcLsb +: 2] == 2'd0) ? OpAdd : start_cmd_i[ct_pkg::VaFnLsb +: 3];
      negc_q     <= start_cmd_i[ct_pkg::VaNegCLsb];
      relu_q     <= start_cmd_i[ct_pkg::VaReluLsb];
      ninf_q     <= start_cmd_i[ct_pkg::VaPadNinfLsb];
      func_q     <= start_cmd_i[ct_pkg::VaFuncLsb +: 4];
      last_row_q <= start_last;
      sb_q       <= start_cmd_i[ct_pkg::VaSbLsb +: 32];
      sc_q       <= start_cmd_i[ct_pkg::VaScLsb +: 32];
      rows_q     <= start_cmd_i[ct_pkg::VaRowsLsb +: 5];
      cols_q     <= start_cmd_i[ct_pkg::VaColsLsb +: 5];
      row_xor_q  <= start_cmd_i[ct_pkg::VaRowXorLsb +: 4];
      lane_xor_q <= start_cmd_i[ct_pkg::VaLaneXorLsb +: 4];
      sig_q      <= start_cmd_i[ct_pkg::AllSig0Lsb +: 10];
    end
  end

  // --- Spacing ---

  logic [1:0]          apart;     // what the command in front reads is not written yet
  logic [2*CountW-1:0] drain_d, drain_q;  // since the last row, down to zero: not zero until it has been written
  logic [1:0]          drained_q; // drain is 3 at most

  ct_vpu_apart #(.VpuLanes(VpuLanes), .Space(VaSpace)) u_apart (
    .clk_i, .rst_ni, .head_i,
    .starts_i   (starts),
    .row_i      (row),
    .start_to_i (start_cmd_i[ct_pkg::VaTdLsb +: 4]),
    .hold_o     (apart)
  );

  always_comb begin
    drain_d = drain_q;
    long_d  = (issue && !short_q) ? CountW'(VaLat - 4) : (long_q != '0) ? long_q - 1'b1 : '0;
    for (int c = 0; c < 2; c++) begin
      if (drain_q[CountW*c +: CountW] != '0) drain_d[CountW*c +: CountW] = drain_q[CountW*c +: CountW] - 1'b1;
      if (issue && ctx_q == c[0])       drain_d[CountW*c +: CountW] = CountW'(VaLat + 1);
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      drain_q   <= '0;
      long_q    <= '0;
      drained_q <= '1;
    end else begin
      for (int c = 0; c < 2; c++) begin
        drained_q[c] <= drain_d[CountW*c +: CountW] <= CountW'(3);
      end
      drain_q <= drain_d;
      long_q  <= long_d;
    end
  end

  // A start at cycle t issues its first row at t + 1. With 3 left of drain, that row is VaLat cycles after the last one before it.
  assign hold_o = gap_i | (~begun_q & (apart | ((late_q | head_permutes_q) & (~drained_q | busy_o))));

  assign busy_o  = {act_q && ctx_q, act_q && !ctx_q};
  assign dropped = kill_i & (busy_o | begun_q);
  assign probe_o = {{ctx_pipe_q[VaLat], !ctx_pipe_q[VaLat]} & {2{vld_q[VaLat] && meta[MetaW*VaLat]}},
                    dropped | ({ctx_q, !ctx_q} & {2{act_q && finish && final_q}}), {ctx_q, !ctx_q} & {2{act_q}}};

  // --- The way of a row: valid bits and what it needs later. ---

  // Where it is in meta; MetaTurn is there if there are turns. The context is in ctx_pipe_q.
  localparam int unsigned MetaSig      = 1;   // 10; in front of it, bit 0: completion goes with it
  localparam int unsigned MetaTile     = 11;  // 4
  localparam int unsigned MetaRow      = 15;  // 4
  localparam int unsigned MetaBeat     = 19;  // 2
  localparam int unsigned MetaRowValid = 21;
  localparam int unsigned MetaCols     = 22;  // 5
  localparam int unsigned MetaNinf     = 27;
  localparam int unsigned MetaRelu     = 28;
  localparam int unsigned MetaFunc     = 29;  // 4
  localparam int unsigned MetaOp       = 33;  // 3
  localparam int unsigned MetaTurn     = FnTurns ? 36 : 33;  // 2
  localparam int unsigned MetaW        = FnTurns ? 38 : 36;

  logic [VaLat:1]             vld_q;
  logic [MetaW*(VaLat+1)-1:0] meta;    // stage k in bits MetaW*k +: MetaW; stage 0 is the issue
  logic [MetaW*VaLat-1:0]     meta_q;
  logic                       moving, moving_q;

  assign meta[MetaW-1:0] = MetaW'({turn, op_q, func_q, relu_q, ninf_q, cols_q, {1'b0, row_q} < rows_q, beat, row_q, td_q, sig_q, tells});
  assign meta[MetaW*(VaLat+1)-1:MetaW] = meta_q;
  assign moving = act_q || moving_q;  // all of the cycles in which something is issued or under way, and few others

  logic [VaLat:1] ctx_pipe_q;
  logic [VaLat:1] vld_d;
  logic [3:1]     short_pipe_q;
  logic           short3;        // the row in stage 3 goes to the padding

  assign short3 = vld_q[3] && short_pipe_q[3];

  always_comb begin
    vld_d        = {vld_q[VaLat-1:1], issue};
    vld_d[4]     = vld_q[3] && !short3;
    vld_d[VaLat] = vld_q[PadStage] || short3;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      vld_q    <= '0;
      moving_q <= 1'b0;
    end else begin
      vld_q    <= vld_d;
      moving_q <= act_q || vld_q != '0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (moving) begin
      meta_q       <= meta[MetaW*VaLat-1:0];
      ctx_pipe_q   <= {ctx_pipe_q[VaLat-1:1], ctx_q};
      short_pipe_q <= {short_pipe_q[2:1], short_q};
    end
    if (short3) begin
      meta_q[MetaW*(VaLat-1) +: MetaW] <= meta[MetaW*3 +: MetaW];
      ctx_pipe_q[VaLat]                <= ctx_pipe_q[3];
    end
  end

  // --- 0: ACC asked, addresses; 1: tile registers read ---

  logic [AddrW-1:0] a_addr1_q, q_addr1_q;
  logic [10:0]      a_full, q_full;
  logic             use_q, use_q1_q, from_tile1_q;
  logic [3:0]       q_row;

  assign acc_rd_valid_o = issue && (asrc_q == 2'd1);
  assign acc_rd_ctx_o   = ctx_q;
  assign acc_rd_tile_o  = ta_q;
  assign acc_rd_row_o   = row_q;
  assign acc_rd_beat_o  = beat;

  assign use_q  = (bsrc_q == 2'd1) || (bsrc_q == 2'd2) || (csrc_q == 2'd1) || (csrc_q == 2'd2);
  assign q_row  = ((bsrc_q == 2'd2) || (csrc_q == 2'd2)) ? row_xor_q : row_q ^ row_xor_q;
  assign a_full = {beat, ta_q, row_q, ctx_q};
  assign q_full = {beat ^ lane_xor_q[3:2], tq_q, q_row, ctx_q};

  logic [10:0] w_full;  // the same of the row that is written

  if (VpuLanes == 4) begin : g_lanes_4
    logic [1:0] beat_d, beat_q;
    assign beat    = beat_q;
    assign row_end = (beat_q == 2'd3) && turn_end;
    assign beat_d  = start ? 2'd0 : beat_q + {1'b0, issue && turn_end};
    always_ff @(posedge clk_i) begin
      beat_q <= beat_d;
      if (issue) begin
        a_addr1_q <= {a_full[0], a_full[8:5], a_full[4:1], a_full[10:9]};
        q_addr1_q <= {q_full[0], q_full[8:5], q_full[4:1], q_full[10:9]};
      end
    end
    assign wr_addr_o = {w_full[0], w_full[8:5], w_full[4:1], w_full[10:9]};
  end else begin : g_lanes_16
    assign beat    = 2'd0;
    assign row_end = turn_end;
    always_ff @(posedge clk_i) begin
      if (issue) begin
        a_addr1_q <= {a_full[0], a_full[8:5], a_full[4:1]};
        q_addr1_q <= {q_full[0], q_full[8:5], q_full[4:1]};
      end
    end
    assign wr_addr_o = {w_full[0], w_full[8:5], w_full[4:1]};
    logic unused_beat;
    assign unused_beat = ^{a_full[10:9], q_full[10:9], w_full[10:9]};
  end

  if (FnTurns) begin : g_turns
    logic [1:0] turn_d, turn_q;
    assign turn     = turn_q;
    assign turn_end = !func_q[3] || (turn_q == 2'd3);
    assign turn_d   = start ? 2'd0 : turn_q + {1'b0, issue && func_q[3]};
    always_ff @(posedge clk_i) turn_q <= turn_d;
  end else begin : g_no_turns
    assign turn     = 2'd0;
    assign turn_end = 1'b1;
  end

  always_ff @(posedge clk_i) begin
    if (issue) begin
      from_tile1_q <= asrc_q == 2'd0;
      use_q1_q     <= use_q;
    end
  end

  assign a_en_o   = vld_q[1] && from_tile1_q;
  assign a_addr_o = a_addr1_q;
  assign q_en_o   = vld_q[1] && use_q1_q;
  assign q_addr_o = q_addr1_q;

  // --- 2..26: the arithmetic ---

  logic [MetaW-1:0] pad_meta;

  assign pad_meta   = short3 ? meta[MetaW*3 +: MetaW] : meta[MetaW*PadStage +: MetaW];
  assign wr_valid_o = vld_q[VaLat] && (!FnTurns || !meta[MetaW*VaLat + MetaFunc + 3] || meta[MetaW*VaLat + MetaTurn +: 2] == 2'd3);

  ct_vpu_lanes #(.VpuLanes(VpuLanes), .FnLanes(FnLanes), .AddStage(AddStage), .FnStage(FnStage), .FnLat(FnLat)) u_lanes (
    .clk_i, .rst_ni,
    .issue_i      (issue),
    .moving_i     (moving),
    .vld_i        (vld_q[PadStage:1]),
    .asrc_i       (asrc_q),
    .bsrc_i       (bsrc_q),
    .csrc_i       (csrc_q),
    .negc_i       (negc_q),
    .sb_i         (sb_q),
    .sc_i         (sc_q),
    .lane_xor_i   (lane_xor_q),
    .acc_i        (acc_rd_data_i),
    .a_i          (a_data_i),
    .q_i          (q_data_i),
    .op_i         (meta[MetaW*(AddStage-1) + MetaOp +: 3]),
    .fn_relu_i    (meta[MetaW*FnStage + MetaRelu]),
    .fn_func_i    (meta[MetaW*FnStage + MetaFunc +: 4]),
    .fn_turn_i    (FnTurns ? meta[MetaW*FnStage + MetaTurn +: 2] : 2'd0),
    .short_i      (short3),
    .pad_func_i   (pad_meta[MetaFunc + 3]),
    .pad_ninf_i   (pad_meta[MetaNinf]),
    .pad_cols_i   (pad_meta[MetaCols +: 5]),
    .pad_row_i    (!pad_meta[MetaRowValid]),
    .pad_beat_i   (pad_meta[MetaBeat +: 2]),
    .pad_turn_i   (FnTurns ? pad_meta[MetaTurn +: 2] : 2'd0),
    .wr_data_o
  );

  // --- 27: write, completion ---

  logic [1:0] sig_busy;
  logic       sig_wait_unused;

  assign w_full = {meta[MetaW*VaLat + MetaBeat +: 2], meta[MetaW*VaLat + MetaTile +: 4], meta[MetaW*VaLat + MetaRow +: 4], ctx_pipe_q[VaLat]};

  ct_vpu_sig u_sig (
    .clk_i, .rst_ni,
    .done_i    (vld_q[VaLat] && meta[MetaW*VaLat]),
    .ctx_i     (ctx_pipe_q[VaLat]),
    .sig_i     (meta[MetaW*VaLat + MetaSig +: 10]),
    .drop_i    (kill_i),
    .wait_o    (sig_wait_unused),
    .sem_inc_o (sem_inc_o),
    .busy_o    (sig_busy)
  );

  assign pending_o = busy_o | sig_busy | {drain_q[CountW +: CountW] != '0, drain_q[0 +: CountW] != '0};

  logic unused;
  assign unused = ^{head_i, start_cmd_i, start_turns, start_last, pad_meta, sig_wait_unused};

  // Invariants
  logic [4:0] beats_d, beats_q;  // of the start under way
  assign beats_d = start ? 5'd0 : beats_q + {4'd0, issue};
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) beats_q <= '0;
    else         beats_q <= beats_d;
  end

  `CT_ASSERT(StartBounded_A, !act_q || gap_q || beats_q < 5'(MaxBeats))
  `CT_ASSERT(OneWayAtATime_A, !(short3 && vld_q[PadStage:4] != '0))
`ifdef FORMAL
  `include "ct_vpu_va_formal.svh"
`endif

  `CT_ASSERT(DrainCoversPipe_A, drain_q != '0 || vld_q == '0)
  `CT_ASSUME(RowsLegal_M, !start || (start_cmd_i[ct_pkg::VaRowsLsb +: 5] != 5'd0 && start_cmd_i[ct_pkg::VaRowsLsb +: 5] <= 5'd16))
  `CT_ASSUME(OneTileOperand_M, !start || !(^start_cmd_i[ct_pkg::VaBSrcLsb +: 2] && ^start_cmd_i[ct_pkg::VaCSrcLsb +: 2]))
  `CT_ASSUME(PermutedNotInPlace_M, !start || start_cmd_i[ct_pkg::VaRowXorLsb +: 8] == 8'd0
             || start_cmd_i[ct_pkg::VaTdLsb +: 4] != start_cmd_i[ct_pkg::VaTqLsb +: 4])

endmodule

`default_nettype wire
