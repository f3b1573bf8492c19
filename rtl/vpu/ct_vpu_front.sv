// SPDX-License-Identifier: Apache-2.0
//
// Front of one side of the VPU (VL, VA or VS): holds the next command of each context, waits for its semaphores and lets the
// arbiter choose who starts.
//
// What        One command of each context is taken out of its queue and kept here. It requests as soon as all its enabled waits
//             are above zero and the side has no reason of its own against it (hold_i). The choice is made when the side can
//             start something (ready_i), not before: a command that becomes ready later but ranks higher is not overtaken
//             by one that has been picked early. A slot of the arbiter is what the side takes at once, a row of the tile where it can.
//             With Window = 1 one command is taken a cycle, of the context that has waited longer.
// Latency     a command taken at cycle t requests from t + 1 on; valid_o, ctx_o, cmd_o are combinational from registers, sem_nz_i,
//             hold_i and flush_i. The next is taken in the cycle its predecessor starts.
// Handshake   a command, or its next row, starts in a cycle with valid_o && ready_i; the first start of a tile takes one from each
//             awaited semaphore in that cycle (sem_dec_o). valid_o may fall again and the choice may change while ready_i is low.
// Rows        a command that starts with stays_i has more rows: it stays, has paid its waits, and asks again for the next one. So whoever
//             ranks higher waits for a row of the other context and not for an operation.
// Repetition  a command with More not 0 stays when it starts and comes again for its next tile: VA with Ta + 1 and Td + 1, VS with Ts + 1 and
//             its addresses TileStride further. Each time it waits and competes anew.
// Flush       flush_i[c] drops the command held for c, begun or not, and takes no other. stop_i[c] keeps it from starting.
// Window      with Window = 1 the fields Spm, Mode, RowStride and Rows (where VL and VS have them) are reduced to the highest relative
//             address of the command: top_o, and bad_o if that lies outside the context's window. Nothing of such a command may run.
//             at_o is the physical address of row 0.
//
// Parameters
//   Window  the side touches the SPM
//   Repeat  the side's commands have the field More: 0 no (VL), 1 VA, 2 VS

`default_nettype none
`include "ct_assert.svh"

module ct_vpu_front #(
  parameter bit          Window = 1'b0,
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
  output logic [511:0] head_o,       // the commands held
  output logic         valid_o,
  input  logic         ready_i,
  input  logic         stays_i,      // the side takes a part of the command on offer (combinational from ctx_o and cmd_o)
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
  logic [2:0]   more;    // tiles of the chosen command after this one
  logic [1:0]   again;   // it starts and stays
  logic         next_tile;      // when it comes again it is for its next tile
  logic [1:0]   begun_d, begun_q;  // a part of the command has started
  logic         turn_d, turn_q;  // whose command is taken if both come
  logic [15:0]  need;    // the semaphores the chosen command waits for
  logic [1:0]   req, gnt;

  // The awaited ones of Wait2, Wait1, Wait0 (bit 4 of a field enables it) are above zero.
  function automatic logic present(input logic [14:0] w, input logic [15:0] nz);
    present = (!w[4] || nz[w[3:0]]) && (!w[9] || nz[w[8:5]]) && (!w[14] || nz[w[13:10]]);
  endfunction

  // The highest relative address: Spm + (Rows - 1) * RowStride, and three more for the four words of an FP32 row.
  function automatic logic [20:0] top(input logic [19:0] spm, input logic [2:0] mode, input logic [15:0] stride,
                                      input logic [3:0] rows);
    logic [3:0] r;
    begin
      r   = rows - 4'd1;
      top = {1'b0, spm} + ((mode == 3'd0) ? 21'd3 : 21'd0)
          + ((r[0] ? {5'd0, stride} : 21'd0) + (r[1] ? {4'd0, stride, 1'b0} : 21'd0))
          + ((r[2] ? {3'd0, stride, 2'd0} : 21'd0) + (r[3] ? {2'd0, stride, 3'd0} : 21'd0));
    end
  endfunction

  assign req[0] = vld_q[0] && (begun_q[0] || present(head_q[ct_pkg::AllWait0Lsb +: 15], sem_nz_i[15:0]))
               && !flush_i[0] && !stop_i[0] && !hold_i[0] && !freeze_i;
  assign req[1] = vld_q[1] && (begun_q[1] || present(head_q[256 + ct_pkg::AllWait0Lsb +: 15], sem_nz_i[31:16]))
               && !flush_i[1] && !stop_i[1] && !hold_i[1] && !freeze_i;

  ct_arbiter u_arbiter (
    .clk_i, .rst_ni, .qos_i, .flush_i,
    .req_i   (req),
    .defer_i (1'b0),
    .last_i  ({2{!stays_i}}),
    .take_i  (ready_i),
    .gnt_o   (gnt)
  );

  assign valid_o = (gnt != 2'b00);
  assign ctx_o   = gnt[1];
  assign cmd_o   = gnt[1] ? head_q[511:256] : head_q[255:0];
  assign start   = ready_i ? gnt : 2'b00;

  assign need        = ({15'd0, cmd_o[ct_pkg::AllWait0Lsb + 4]} << cmd_o[ct_pkg::AllWait0Lsb +: 4])
                     | ({15'd0, cmd_o[ct_pkg::AllWait1Lsb + 4]} << cmd_o[ct_pkg::AllWait1Lsb +: 4])
                     | ({15'd0, cmd_o[ct_pkg::AllWait2Lsb + 4]} << cmd_o[ct_pkg::AllWait2Lsb +: 4]);
  assign sem_dec_o   = {start[1] && !begun_q[1] ? need : 16'd0, start[0] && !begun_q[0] ? need : 16'd0};
  assign wait_arb_o  = req & ~start & ~busy_i;
  assign wait_sem_o  = vld_q & ~req & ~busy_i;
  // Behind a row of its own a command is not ready before that ends.
  assign probe_o     = {start, req & ~(begun_q & busy_i & {2{!ready_i}})};
  assign again       = (stays_i || more != 3'd0) ? start : 2'b00;
  assign next_tile   = !stays_i;
  assign begun_d     = ((begun_q & ~start) | (stays_i ? start : 2'b00)) & ~flush_i;
  assign room        = (~vld_q | (start & ~again)) & ~flush_i;
  assign cmd_ready_o = room & ~(Window ? {room[0] && cmd_valid_i[0] && !turn_q, room[1] && cmd_valid_i[1] && turn_q} : 2'b00);
  assign turn_d      = load[0] || (turn_q && !load[1]);
  assign load        = cmd_valid_i & cmd_ready_o;
  assign vld_d       = ((vld_q & ~(start & ~again)) | load) & ~flush_i;

  assign head_valid_o = vld_q;
  assign head_o       = head_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      vld_q   <= 2'b00;
      begun_q <= 2'b00;
      turn_q  <= 1'b0;
    end else begin
      vld_q   <= vld_d;
      begun_q <= begun_d;
      turn_q  <= turn_d;
    end
  end

  always_ff @(posedge clk_i) begin
    if (load[0]) head_q[255:0]   <= cmd_i[255:0];
    if (load[1]) head_q[511:256] <= cmd_i[511:256];
    for (int c = 0; c < 2; c++) begin
      if (again[c] && next_tile && Repeat == 1) begin
        head_q[256*c + ct_pkg::VaMoreLsb +: 3] <= more - 3'd1;
        head_q[256*c + ct_pkg::VaTaLsb +: 4]   <= cmd_o[ct_pkg::VaTaLsb +: 4] + 4'd1;
        head_q[256*c + ct_pkg::VaTdLsb +: 4]   <= cmd_o[ct_pkg::VaTdLsb +: 4] + 4'd1;
      end
      if (again[c] && next_tile && Repeat == 2) begin
        head_q[256*c + ct_pkg::VsMoreLsb +: 3] <= more - 3'd1;
        head_q[256*c + ct_pkg::VsTsLsb +: 4]   <= cmd_o[ct_pkg::VsTsLsb +: 4] + 4'd1;
      end
    end
  end

  assign more = (Repeat == 1) ? cmd_o[ct_pkg::VaMoreLsb +: 3] : (Repeat == 2) ? cmd_o[ct_pkg::VsMoreLsb +: 3] : 3'd0;

  if (Window) begin : g_window
    // One command is taken a cycle, so that its address is worked out in one place.
    logic         from;
    logic [42:0]  coming;  // {Rows, RowStride, Mode, Spm}
    logic [41:0]  top_q;
    logic [39:0]  at_q;
    logic [1:0]   bad;
    logic [20:0]  top_next;
    logic [19:0]  at_next;
    assign top_next = top_o + {9'd0, cmd_o[ct_pkg::VsTileStrideLsb +: 12]};
    assign at_next  = at_o + {8'd0, cmd_o[ct_pkg::VsTileStrideLsb +: 12]};
    assign from   = !load[0];
    assign coming = from
        ? {cmd_i[256 + ct_pkg::VlRowsLsb +: 4], cmd_i[256 + ct_pkg::VlRowStrideLsb +: 16],
           cmd_i[256 + ct_pkg::VlModeLsb +: 3], cmd_i[256 + ct_pkg::VlSpmLsb +: 20]}
        : {cmd_i[ct_pkg::VlRowsLsb +: 4], cmd_i[ct_pkg::VlRowStrideLsb +: 16],
           cmd_i[ct_pkg::VlModeLsb +: 3], cmd_i[ct_pkg::VlSpmLsb +: 20]};
    always_ff @(posedge clk_i) begin
      for (int c = 0; c < 2; c++) begin
        if (load[c]) begin
          top_q[21*c +: 21] <= top(coming[19:0], coming[22:20], coming[38:23], coming[42:39]);
          at_q[20*c +: 20]  <= coming[19:0] + (from ? spm_base_i[39:20] : spm_base_i[19:0]);
        end else if (again[c] && next_tile) begin
          top_q[21*c +: 21] <= top_next;
          at_q[20*c +: 20]  <= at_next;
        end
      end
    end
    assign top_o = gnt[1] ? top_q[41:21] : top_q[20:0];
    assign at_o  = gnt[1] ? at_q[39:20] : at_q[19:0];
    assign bad   = {top_q[41:21] >= {1'b0, spm_size_i[39:20]}, top_q[20:0] >= {1'b0, spm_size_i[19:0]}};
    assign bad_o = gnt[1] ? bad[1] : bad[0];
`ifdef FORMAL
    `CT_ASSERT(AddressHeld_A, !f_held_q || at_q[20*f_ctx +: 20] == f_at_q)
`endif
  end else begin : g_no_window
    logic unused;
    assign unused = ^{spm_base_i, spm_size_i};
    assign top_o  = '0;
    assign at_o   = '0;
    assign bad_o  = 1'b0;
  end

  `CT_ASSERT(StartsOne_A, start != 2'b11)
  `CT_ASSERT(NothingBelowZero_A, (sem_dec_o & ~sem_nz_i) == 32'd0)
  `CT_ASSERT(FlushedDoesNotStart_A, (start & flush_i) == 2'b00)

`ifdef FORMAL
  `include "ct_vpu_front_formal.svh"
`endif

endmodule

`default_nettype wire
