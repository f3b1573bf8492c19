// SPDX-License-Identifier: Apache-2.0
//
// Front of one side of the VPU (VL, VA or VS): holds the next command of each context, waits for its semaphores and lets the
// arbiter choose who starts.
//
// What        One command of each context is taken out of its queue and kept here. When all its enabled waits are above zero it takes them;
//             then it requests, if the side has no reason of its own against it (hold_i). The choice is made when the side can
//             start something (ready_i), not before: a command that becomes ready later but ranks higher is not overtaken
//             by one that has been picked early. A slot of the arbiter is what the side takes at once, a row of the tile where it can.
//             With Window = 1 one command is taken a cycle, of the context that has waited longer.
// Latency     a command taken at cycle t takes its waits from t + 1 on and requests from the cycle after that: semaphores and choice are a
//             cycle each, and what the window needs of the address is worked out meanwhile. Of two contexts that have
//             not taken theirs one is looked at in a cycle, in turn. sem_dec_o comes a cycle later. valid_o, ctx_o, cmd_o are combinational from registers, hold_i and flush_i. The next
//             command is taken in the cycle its predecessor's last row starts, without Ahead in the one after it.
// Handshake   a command, or its next row, starts in a cycle with valid_o && ready_i; a tile has taken one from each awaited semaphore
//             before it starts. valid_o may fall again and the choice may change while ready_i is low.
// Rows        a command that starts with stays_i has more rows: it stays, has paid its waits, and asks again for the next one. So whoever
//             ranks higher waits for a row of the other context and not for an operation.
// Repetition  a command with More not 0 stays when it starts and comes again for its next tile: VA with Ta + 1 and Td + 1, VS with Ts + 1 and
//             its addresses TileStride further. Each time it waits and competes anew.
// Flush       flush_i[c] drops the command held for c, begun or not, and takes no other. stop_i[c] keeps it from starting.
// Freeze      freeze_i keeps all from starting; waits are taken all the same, so that what is ready starts when it falls.
// Window      with Window = 1 the fields Spm, Mode, RowStride and Rows (where VL and VS have them) are reduced to the highest relative
//             address of the command: top_o, and bad_o if that lies outside the context's window. Nothing of such a command may run.
//             at_o is the physical address of the row that starts: RowStride further after each start with moves_i.
//
// Parameters
//   Window  the side touches the SPM
//   Ahead   for a side that may start a row every cycle; without it what starts is not in front of what the queue gives
//   Repeat  the side's commands have the field More: 0 no (VL), 1 VA, 2 VS

`default_nettype none
`include "ct_assert.svh"

module ct_vpu_front #(
  parameter bit          Window = 1'b0,
  parameter bit          Ahead  = 1'b1,
  parameter int unsigned Repeat = 0
) (
  input  logic         clk_i,
  input  logic         rst_ni,

  input  logic [ct_pkg::QosW-1:0] qos_i,
  input  logic         freeze_i,

  // command queues and semaphores
  input  logic [1:0]   cmd_valid_i,
  input  logic [511:0] cmd_i,
  output logic [1:0]   cmd_ready_o,
  input  logic [31:0]  sem_nz_i,
  output logic [31:0]  sem_dec_o,
  input  logic [1:0]   flush_i,
  input  logic [1:0]   stop_i,
  input  logic [39:0]  spm_base_i,
  input  logic [39:0]  spm_size_i,

  // the side
  input  logic [1:0]   hold_i,       // the command held for c must not start now
  input  logic [1:0]   busy_i,       // the side works for c (for the waits only: no cycle is both)
  output logic [1:0]   head_valid_o,
  output logic [1:0]   paid_o,       // it has taken its waits
  output logic [511:0] head_o,       // the commands held
  output logic         valid_o,
  input  logic         ready_i,
  input  logic [1:0]   stays_i,      // of each context: the side takes a part of its command (from head_o and registers)
  input  logic [1:0]   moves_i,      // and its next row has another address
  output logic         ctx_o,
  output logic [255:0] cmd_o,
  output logic         bad_o,
  output logic [20:0]  top_o,
  output logic [19:0]  at_o,
  output logic [1:0]   wait_arb_o,   // c could start but for the other context
  output logic [1:0]   wait_sem_o,   // c has a command that may not start yet
  output logic [3:0]   probe_o       // starts, ready: a bit each context (see ct_core)
);

  logic [1:0]   vld_d, vld_q;
  logic [511:0] head_q;
  logic [1:0]   load, start, room;
  logic [5:0]   more;            // tiles of each command after this one
  logic [1:0]   has_more, bad, stays;
  logic [1:0]   ends;            // the last row of a tile starts
  logic [1:0]   leaves;          // the last row of a command would start
  logic [1:0]   unpaid, pays;    // has not taken its waits; does
  logic         look, look_q;    // whose waits are looked at; if neither has taken them
  logic         can;
  logic [1:0]   paid_d, paid_q;
  logic [1:0]   begun_d, begun_q;  // a part of the tile has started
  logic         turn_d, turn_q;  // whose command is taken if both come
  logic [14:0]  waits;           // of that command
  logic [15:0]  need, dec_q;     // the semaphores; those that are taken
  logic [1:0]   dec_vld_q;
  logic [1:0]   req, gnt;

  // The semaphore of a wait, one bit of sixteen; bit 4 of a field enables it.
  function automatic logic [15:0] awaited(input logic [4:0] w);
    logic [3:0] low, high;
    begin
      low  = 4'd1 << w[1:0];
      high = {3'd0, w[4]} << w[3:2];
      for (int i = 0; i < 16; i++) awaited[i] = low[i & 3] && high[i >> 2];
    end
  endfunction

  // The highest relative address: Spm + (Rows - 1) * RowStride, and three more for the four words of an FP32 row. (A multiplier block; as
  // logic it would be the largest part of the front.)
  function automatic logic [20:0] top(input logic [19:0] spm, input logic [2:0] mode, input logic [15:0] stride,
                                      input logic [3:0] rows);
    logic [3:0]  r;
    logic [19:0] far;
    begin
      r   = rows - 4'd1;
      far = {16'd0, r} * {4'd0, stride};
      top = {1'b0, spm} + {1'b0, far} + ((mode == 3'd0) ? 21'd3 : 21'd0);
    end
  endfunction

  // --- Waits ---

  assign unpaid    = vld_q & ~paid_q;
  assign look      = (unpaid == 2'b11) ? look_q : unpaid[1];
  assign waits     = look ? head_q[256 + ct_pkg::AllWait0Lsb +: 15] : head_q[ct_pkg::AllWait0Lsb +: 15];
  assign need      = awaited(waits[4:0]) | awaited(waits[9:5]) | awaited(waits[14:10]);
  assign can       = unpaid != 2'b00 && (need & ~(look ? sem_nz_i[31:16] : sem_nz_i[15:0])) == 16'd0;
  assign pays      = {can && look, can && !look} & ~flush_i & ~stop_i;
  assign paid_d    = ((paid_q & ~ends) | pays) & ~flush_i;
  assign sem_dec_o = {dec_vld_q[1] && !flush_i[1] ? dec_q : 16'd0, dec_vld_q[0] && !flush_i[0] ? dec_q : 16'd0};

  // --- Choice ---

  assign req = paid_q & ~flush_i & ~stop_i & ~hold_i & {2{!freeze_i}};

  ct_arbiter u_arbiter (
    .clk_i, .rst_ni, .qos_i, .flush_i,
    .req_i   (req),
    .defer_i (1'b0),
    .last_i  (~stays),
    .take_i  (ready_i),
    .gnt_o   (gnt)
  );

  assign valid_o = (gnt != 2'b00);
  assign ctx_o   = gnt[1];
  assign cmd_o   = gnt[1] ? head_q[511:256] : head_q[255:0];
  assign start   = ready_i ? gnt : 2'b00;

  // What becomes of a command that starts is known of each before the choice.
  for (genvar c = 0; c < 2; c++) begin : g_more
    assign more[3*c +: 3] = (Repeat == 1) ? head_q[256*c + ct_pkg::VaMoreLsb +: 3] : (Repeat == 2) ? head_q[256*c + ct_pkg::VsMoreLsb +: 3] : 3'd0;
    assign has_more[c]    = more[3*c +: 3] != 3'd0;
  end
  assign stays  = stays_i & ~bad;
  assign leaves = ~stays & ~has_more;
  assign ends   = start & ~stays;

  assign wait_arb_o  = req & ~start & ~busy_i;
  assign wait_sem_o  = vld_q & ~req & ~busy_i;
  // Behind a row of its own a command is not ready before that ends.
  assign probe_o     = {start, req & ~(begun_q & busy_i & {2{!ready_i}})};
  assign begun_d     = (begun_q | start) & ~ends & ~flush_i;
  assign room        = (~vld_q | (Ahead ? start & leaves : 2'b00)) & ~flush_i;
  assign cmd_ready_o = room & ~(Window ? {room[0] && cmd_valid_i[0] && !turn_q, room[1] && cmd_valid_i[1] && turn_q} : 2'b00);
  assign turn_d      = load[0] || (turn_q && !load[1]);
  assign load        = cmd_valid_i & cmd_ready_o;
  assign vld_d       = ((vld_q & ~(start & leaves)) | load) & ~flush_i;

  assign head_valid_o = vld_q;
  assign head_o       = head_q;
  assign paid_o       = paid_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      vld_q   <= 2'b00;
      paid_q  <= 2'b00;
      begun_q <= 2'b00;
      turn_q  <= 1'b0;
      look_q  <= 1'b0;
      dec_vld_q <= 2'b00;
    end else begin
      vld_q   <= vld_d;
      paid_q  <= paid_d;
      begun_q <= begun_d;
      turn_q  <= turn_d;
      look_q  <= !look_q;
      dec_vld_q <= pays;
    end
  end

  always_ff @(posedge clk_i) begin
    dec_q <= need;
    if (load[0]) head_q[255:0]   <= cmd_i[255:0];
    if (load[1]) head_q[511:256] <= cmd_i[511:256];
    for (int c = 0; c < 2; c++) begin
      if (ends[c] && has_more[c] && Repeat == 1) begin
        head_q[256*c + ct_pkg::VaMoreLsb +: 3] <= more[3*c +: 3] - 3'd1;
        head_q[256*c + ct_pkg::VaTaLsb +: 4]   <= head_q[256*c + ct_pkg::VaTaLsb +: 4] + 4'd1;
        head_q[256*c + ct_pkg::VaTdLsb +: 4]   <= head_q[256*c + ct_pkg::VaTdLsb +: 4] + 4'd1;
      end
      if (ends[c] && has_more[c] && Repeat == 2) begin
        head_q[256*c + ct_pkg::VsMoreLsb +: 3] <= more[3*c +: 3] - 3'd1;
        head_q[256*c + ct_pkg::VsTsLsb +: 4]   <= head_q[256*c + ct_pkg::VsTsLsb +: 4] + 4'd1;
      end
    end
  end

  if (Window) begin : g_window
    // In the cycle after a command is taken, or the last row of a tile has started, its addresses are worked out. At most one command is taken
    // in a cycle and at most one tile ends, so each is made in one place.
    logic [1:0]   fresh_q;  // has been taken in the last cycle
    logic [1:0]   tile_q;   // goes on with its next tile
    logic [42:0]  coming;   // {Rows, RowStride, Mode, Spm}
    logic [41:0]  top_q;
    logic [39:0]  at_q;     // of the next row
    logic [39:0]  tile_at_q;  // of row 0
    logic [20:0]  top_coming, top_next;
    logic [19:0]  at_coming, at_next;
    logic [11:0]  tile_stride;

    assign coming = fresh_q[1]
        ? {head_q[256 + ct_pkg::VlRowsLsb +: 4], head_q[256 + ct_pkg::VlRowStrideLsb +: 16],
           head_q[256 + ct_pkg::VlModeLsb +: 3], head_q[256 + ct_pkg::VlSpmLsb +: 20]}
        : {head_q[ct_pkg::VlRowsLsb +: 4], head_q[ct_pkg::VlRowStrideLsb +: 16],
           head_q[ct_pkg::VlModeLsb +: 3], head_q[ct_pkg::VlSpmLsb +: 20]};
    assign top_coming  = top(coming[19:0], coming[22:20], coming[38:23], coming[42:39]);
    assign at_coming   = coming[19:0] + (fresh_q[1] ? spm_base_i[39:20] : spm_base_i[19:0]);
    assign tile_stride = tile_q[1] ? head_q[256 + ct_pkg::VsTileStrideLsb +: 12] : head_q[ct_pkg::VsTileStrideLsb +: 12];
    assign top_next    = (tile_q[1] ? top_q[41:21] : top_q[20:0]) + {9'd0, tile_stride};
    assign at_next     = (tile_q[1] ? tile_at_q[39:20] : tile_at_q[19:0]) + {8'd0, tile_stride};

    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        fresh_q <= 2'b00;
        tile_q  <= 2'b00;
      end else begin
        fresh_q <= load;
        tile_q  <= (Repeat == 2) ? ends & has_more : 2'b00;
      end
    end

    always_ff @(posedge clk_i) begin
      for (int c = 0; c < 2; c++) begin
        if (fresh_q[c]) begin
          top_q[21*c +: 21]     <= top_coming;
          at_q[20*c +: 20]      <= at_coming;
          tile_at_q[20*c +: 20] <= at_coming;
        end else if (tile_q[c]) begin
          top_q[21*c +: 21]     <= top_next;
          at_q[20*c +: 20]      <= at_next;
          tile_at_q[20*c +: 20] <= at_next;
        end else if (start[c] && moves_i[c]) begin
          at_q[20*c +: 20] <= at_q[20*c +: 20] + {4'd0, head_q[256*c + ct_pkg::VlRowStrideLsb +: 16]};
        end
      end
    end
    assign top_o = gnt[1] ? top_q[41:21] : top_q[20:0];
    assign at_o  = gnt[1] ? at_q[39:20] : at_q[19:0];
    assign bad   = {top_q[41:21] >= {1'b0, spm_size_i[39:20]}, top_q[20:0] >= {1'b0, spm_size_i[19:0]}};
    assign bad_o = gnt[1] ? bad[1] : bad[0];
`ifdef FORMAL
    `CT_ASSERT(FreshIsFresh_A, fresh_q[f_ctx] == f_fresh_q)
    `CT_ASSERT(AddressHeld_A, !f_held_q || fresh_q[f_ctx] || tile_q[f_ctx] || (at_q[20*f_ctx +: 20] == f_at_q && tile_at_q[20*f_ctx +: 20] == f_tile_at_q))
    `CT_ASSERT(AddressOfNext_A, !f_held_q || !tile_q[f_ctx] || (tile_at_q[20*f_ctx +: 20] + 20'(f_cmd_q[ct_pkg::VsTileStrideLsb +: 12]) == f_at_q && f_tile_at_q == f_at_q))
    `CT_ASSERT(PaidIsHeld_A, (paid_q & ~vld_q) == 2'b00)
    `CT_ASSERT(NotPaidMeanwhile_A, ((fresh_q | tile_q) & paid_q) == 2'b00 && fresh_q != 2'b11 && tile_q != 2'b11)
`endif
  end else begin : g_no_window
    logic unused;
    assign unused = ^{spm_base_i, spm_size_i, moves_i};
    assign bad    = 2'b00;
    assign top_o  = '0;
    assign at_o   = '0;
    assign bad_o  = 1'b0;
  end

  `CT_ASSERT(StartsOne_A, start != 2'b11)
  `CT_ASSERT(FlushedDoesNotStart_A, (start & flush_i) == 2'b00)

`ifdef FORMAL
  // Of programs that keep the rule that one queue alone waits for a semaphore. Another's may take the last one between the cycle in which it is seen here and
  // that in which it is taken: then the job ends in SEM (ct_sem).
  `CT_ASSERT(NothingBelowZero_A, (sem_dec_o & ~sem_nz_i) == 32'd0)
  `include "ct_vpu_front_formal.svh"
`endif

endmodule

`default_nettype wire
