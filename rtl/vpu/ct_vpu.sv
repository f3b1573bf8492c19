// SPDX-License-Identifier: Apache-2.0
//
// Vector unit: VL loads tile registers from the SPM, VA computes on them and on ACC, VS stores them to the SPM, quantising.
//
//     commands --- front, arbiter --- ct_vpu_vl --- SPM read ---+
//     commands --- front, arbiter --- ct_vpu_va --- ACC read    +-- ct_vpu_rf (2 x 16 tile registers)
//     commands --- front, arbiter --- ct_vpu_vs --- SPM write --+
//
// What        The three sides run freely against each other; each takes the commands of a context in order. A command asks when its
//             semaphores allow, and again for each row (see ct_vpu_front); what is granted finishes without any help of the other context.
//             Its side takes the next grant in the cycle of its last row (accept); its semaphores are signalled, to the owner only,
//             when its results are visible (complete).
// Latency     from cmd_valid_i to the grant at least 2 cycles; then VL 8 cycles to the first write, VA 27 (VaLat in ct_vpu_va), VS 9 to the
//             first word. Completion is a pulse of sem_inc_o in the cycle after the last write.
// Interference  under PRIORITY a ready row of a tile (VA with 16 lanes: an operation) waits for at most one of the other context on its side: VL
//             and VS 4 cycles plus what the SPM takes, VA 16. VL writes when VA does not: if VA leaves no gap for 16 cycles, it starts
//             nothing more until VL has written. Under PRIORITY with the floor at 0 training gives way at once (below).
// Errors      SPM_WINDOW: a VL or VS command leaves the context's window; its highest relative address. Nothing of it is read or written,
//             its waits have been taken. PARITY: physical address of the word. After an error of a context nothing more of it is
//             granted or signalled on any side until flush_i has been high, of all sides together: ct_job aborts the job.
// Flush       per side: what has not been granted or issued is dropped, what is under way drains, then idle_o rises.
// SPM read    data exactly ct_pkg::SpmLat cycles after the grant, ACC data exactly ct_pkg::AccLat cycles after the request.
//
// Parameters
//   VpuLanes  FP32 lanes, 16 or 4
//   FnLanes   lanes with functions: VpuLanes, or 1 of 4, which makes a function operation take four times as long

`default_nettype none
`include "ct_assert.svh"

module ct_vpu #(
  parameter  int unsigned VpuLanes = 16,
  parameter  int unsigned FnLanes  = (VpuLanes == 4) ? 1 : VpuLanes,
  localparam int unsigned W        = 32 * VpuLanes
) (
  input  logic         clk_i,
  input  logic         rst_ni,

  // configuration
  input  logic [ct_pkg::QosW-1:0] qos_i,
  input  logic         freeze_i,
  input  logic [39:0]  spm_base_i,
  input  logic [39:0]  spm_size_i,

  // VL
  input  logic [1:0]   vl_cmd_valid_i,
  input  logic [511:0] vl_cmd_i,
  output logic [1:0]   vl_cmd_ready_o,
  input  logic [31:0]  vl_sem_nz_i,
  output logic [31:0]  vl_sem_dec_o,
  output logic [31:0]  vl_sem_inc_o,
  input  logic [1:0]   vl_flush_i,
  output logic [1:0]   vl_idle_o,

  // VA
  input  logic [1:0]   va_cmd_valid_i,
  input  logic [511:0] va_cmd_i,
  output logic [1:0]   va_cmd_ready_o,
  input  logic [31:0]  va_sem_nz_i,
  output logic [31:0]  va_sem_dec_o,
  output logic [31:0]  va_sem_inc_o,
  input  logic [1:0]   va_flush_i,
  output logic [1:0]   va_idle_o,

  // VS
  input  logic [1:0]   vs_cmd_valid_i,
  input  logic [511:0] vs_cmd_i,
  output logic [1:0]   vs_cmd_ready_o,
  input  logic [31:0]  vs_sem_nz_i,
  output logic [31:0]  vs_sem_dec_o,
  output logic [31:0]  vs_sem_inc_o,
  input  logic [1:0]   vs_flush_i,
  output logic [1:0]   vs_idle_o,

  // errors
  output logic [1:0]   err_o,
  output logic [15:0]  err_code_o,
  output logic [63:0]  err_addr_o,

  // SPM read port
  output logic         spm_rd_valid_o,
  output logic [19:0]  spm_rd_addr_o,
  output logic         spm_rd_ctx_o,    // whose it counts as (see urgent_q)
  input  logic         spm_rd_ready_i,
  input  logic         spm_rd_vld_i,
  input  logic [127:0] spm_rd_data_i,
  input  logic [7:0]   spm_rd_exp_i,
  input  logic         spm_rd_perr_i,

  // SPM write port
  output logic         spm_wr_valid_o,
  output logic [19:0]  spm_wr_addr_o,
  output logic [127:0] spm_wr_data_o,
  output logic [7:0]   spm_wr_exp_o,
  input  logic         spm_wr_ready_i,
  input  logic         spm_wr_other_i,  // a word of training has the bank
  output logic         spm_wr_yield_o,  // no more of those, please
  output logic         spm_wr_block_o,  // of neither context
  output logic         vl_refused_o,    // VL waits for a bank of the tile registers

  // ACC read port
  output logic         acc_rd_valid_o,
  output logic         acc_rd_ctx_o,
  output logic [3:0]   acc_rd_tile_o,
  output logic [3:0]   acc_rd_row_o,
  output logic [1:0]   acc_rd_beat_o,
  input  logic [W-1:0] acc_rd_data_i,

  // events, one bit each context
  output logic [1:0]   ev_vl_busy_o,
  output logic [1:0]   ev_va_busy_o,
  output logic [1:0]   ev_vs_busy_o,
  output logic [5:0]   ev_wait_arb_o,  // VS, VA, VL
  output logic [5:0]   ev_wait_sem_o,
  output logic [1:0]   ev_nan_o,

  // what a simulator watches: VL, VA, VS (see ct_core)
  output logic [29:0]  probe_o
);

  if (VpuLanes != 16 && VpuLanes != 4) begin : g_check
    ct_error_vpu_lanes_must_be_16_or_4 u_error ();
  end

  localparam int unsigned AddrW = (VpuLanes == 4) ? 11 : 9;

  logic [1:0] stop_d, stop_q;  // after an error, until the flush

  // --- VL ---

  logic         vl_valid, vl_ready, vl_ctx, vl_bad;
  logic [1:0]   vl_stays, vl_paid;
  logic [255:0] vl_cmd;
  logic [511:0] vl_head;
  logic [20:0]  vl_top, vl_window_addr;
  logic [19:0]  vl_at;
  logic [1:0]   vl_head_valid, vl_busy, vl_pending, vl_wait_arb, vl_wait_sem, vl_window, vl_parity;
  logic [19:0]  vl_parity_addr;
  logic         vl_starved, vl_wr_valid, vl_wr_ready, vl_rd_ctx;
  logic         vl_barred;  // training's VA has the bank, and inference is to have it
  logic [1:0]   va_gap_d, va_gap_q;
  logic [AddrW-1:0] vl_wr_addr;
  logic [W-1:0]     vl_wr_data;

  ct_vpu_front #(.Window(1'b1), .Ahead(VpuLanes == 16)) u_vl_front (
    .clk_i, .rst_ni, .qos_i, .freeze_i,
    .cmd_valid_i  (vl_cmd_valid_i),
    .cmd_i        (vl_cmd_i),
    .cmd_ready_o  (vl_cmd_ready_o),
    .sem_nz_i     (vl_sem_nz_i),
    .sem_dec_o    (vl_sem_dec_o),
    .flush_i      (vl_flush_i),
    .stop_i       (stop_q),
    .spm_base_i,
    .spm_size_i,
    .hold_i       (2'b00),
    .busy_i       (vl_busy),
    .head_valid_o (vl_head_valid),
    .paid_o       (vl_paid),
    .head_o       (vl_head),
    .valid_o      (vl_valid),
    .ready_i      (vl_ready),
    .stays_i      (vl_stays),
    .moves_i      (2'b11),
    .ctx_o        (vl_ctx),
    .cmd_o        (vl_cmd),
    .bad_o        (vl_bad),
    .top_o        (vl_top),
    .at_o         (vl_at),
    .wait_arb_o   (vl_wait_arb),
    .wait_sem_o   (vl_wait_sem),
    .probe_o      (probe_o[3:0])
  );

  ct_vpu_vl #(.VpuLanes(VpuLanes)) u_vl (
    .clk_i, .rst_ni,
    .head_i        (vl_head),
    .start_valid_i (vl_valid),
    .start_ready_o (vl_ready),
    .stays_o       (vl_stays),
    .start_ctx_i   (vl_ctx),
    .start_cmd_i   (vl_cmd),
    .start_bad_i   (vl_bad),
    .start_top_i   (vl_top),
    .start_at_i    (vl_at),
    .kill_i        (vl_flush_i | stop_q),
    .sem_inc_o     (vl_sem_inc_o),
    .busy_o        (vl_busy),
    .pending_o     (vl_pending),
    .probe_o       (probe_o[9:4]),
    .starved_o     (vl_starved),
    .spm_rd_valid_o, .spm_rd_addr_o, .spm_rd_ctx_o(vl_rd_ctx), .spm_rd_ready_i, .spm_rd_vld_i, .spm_rd_data_i, .spm_rd_exp_i, .spm_rd_perr_i,
    .wr_valid_o    (vl_wr_valid),
    .wr_ready_i    (vl_wr_ready),
    .wr_other_i    (vl_barred),
    .wr_addr_o     (vl_wr_addr),
    .wr_data_o     (vl_wr_data),
    .err_window_o      (vl_window),
    .err_window_addr_o (vl_window_addr),
    .err_parity_o      (vl_parity),
    .err_parity_addr_o (vl_parity_addr)
  );

  // --- VA ---

  logic         va_valid, va_ready, va_ctx, va_bad_unused;
  logic [1:0]   va_stays, va_paid;
  logic [255:0] va_cmd;
  logic [511:0] va_head;
  logic [20:0]  va_top_unused;
  logic [19:0]  va_at_unused;
  logic [1:0]   va_head_valid, va_hold, va_busy, va_pending, va_wait_arb, va_wait_sem;
  logic         a_en, q_en, va_wr_valid;
  logic [AddrW-1:0] a_addr, q_addr, va_wr_addr;
  logic [W-1:0]     a_data, q_data, va_wr_data;

  ct_vpu_front #(.Window(1'b0), .Ahead(VpuLanes == 16), .Repeat(1)) u_va_front (
    .clk_i, .rst_ni, .qos_i, .freeze_i,
    .cmd_valid_i  (va_cmd_valid_i),
    .cmd_i        (va_cmd_i),
    .cmd_ready_o  (va_cmd_ready_o),
    .sem_nz_i     (va_sem_nz_i),
    .sem_dec_o    (va_sem_dec_o),
    .flush_i      (va_flush_i),
    .stop_i       (stop_q),
    .spm_base_i,
    .spm_size_i,
    .hold_i       (va_hold),
    .busy_i       (va_busy),
    .head_valid_o (va_head_valid),
    .paid_o       (va_paid),
    .head_o       (va_head),
    .valid_o      (va_valid),
    .ready_i      (va_ready),
    .stays_i      (va_stays),
    .moves_i      (2'b00),
    .ctx_o        (va_ctx),
    .cmd_o        (va_cmd),
    .bad_o        (va_bad_unused),
    .top_o        (va_top_unused),
    .at_o         (va_at_unused),
    .wait_arb_o   (va_wait_arb),
    .wait_sem_o   (va_wait_sem),
    .probe_o      (probe_o[13:10])
  );

  ct_vpu_va #(.VpuLanes(VpuLanes), .FnLanes(FnLanes)) u_va (
    .clk_i, .rst_ni,
    .head_i        (va_head),
    .hold_o        (va_hold),
    .start_valid_i (va_valid),
    .start_ready_o (va_ready),
    .stays_o       (va_stays),
    .start_ctx_i   (va_ctx),
    .start_cmd_i   (va_cmd),
    .kill_i        (va_flush_i | stop_q),
    .gap_i         (va_gap_q),
    .sem_inc_o     (va_sem_inc_o),
    .busy_o        (va_busy),
    .pending_o     (va_pending),
    .probe_o       (probe_o[19:14]),
    .acc_rd_valid_o, .acc_rd_ctx_o, .acc_rd_tile_o, .acc_rd_row_o, .acc_rd_beat_o, .acc_rd_data_i,
    .a_en_o        (a_en),
    .a_addr_o      (a_addr),
    .a_data_i      (a_data),
    .q_en_o        (q_en),
    .q_addr_o      (q_addr),
    .q_data_i      (q_data),
    .wr_valid_o    (va_wr_valid),
    .wr_addr_o     (va_wr_addr),
    .wr_data_o     (va_wr_data)
  );

  // --- VS ---

  logic         vs_valid, vs_ready, vs_ctx, vs_bad;
  logic [1:0]   vs_stays, vs_moves, vs_paid;
  logic [255:0] vs_cmd;
  logic [511:0] vs_head;
  logic [20:0]  vs_top, vs_window_addr;
  logic [19:0]  vs_at;
  logic [1:0]   vs_head_valid, vs_busy, vs_pending, vs_wait_arb, vs_wait_sem, vs_window;
  logic         s_en;
  logic [AddrW-1:0] s_addr;
  logic [W-1:0]     s_data;

  ct_vpu_front #(.Window(1'b1), .Ahead(VpuLanes == 16), .Repeat(2)) u_vs_front (
    .clk_i, .rst_ni, .qos_i, .freeze_i,
    .cmd_valid_i  (vs_cmd_valid_i),
    .cmd_i        (vs_cmd_i),
    .cmd_ready_o  (vs_cmd_ready_o),
    .sem_nz_i     (vs_sem_nz_i),
    .sem_dec_o    (vs_sem_dec_o),
    .flush_i      (vs_flush_i),
    .stop_i       (stop_q),
    .spm_base_i,
    .spm_size_i,
    .hold_i       (2'b00),
    .busy_i       (vs_busy),
    .head_valid_o (vs_head_valid),
    .paid_o       (vs_paid),
    .head_o       (vs_head),
    .valid_o      (vs_valid),
    .ready_i      (vs_ready),
    .stays_i      (vs_stays),
    .moves_i      (vs_moves),
    .ctx_o        (vs_ctx),
    .cmd_o        (vs_cmd),
    .bad_o        (vs_bad),
    .top_o        (vs_top),
    .at_o         (vs_at),
    .wait_arb_o   (vs_wait_arb),
    .wait_sem_o   (vs_wait_sem),
    .probe_o      (probe_o[23:20])
  );

  ct_vpu_vs #(.VpuLanes(VpuLanes)) u_vs (
    .clk_i, .rst_ni,
    .head_i        (vs_head),
    .start_valid_i (vs_valid),
    .start_ready_o (vs_ready),
    .stays_o       (vs_stays),
    .moves_o       (vs_moves),
    .start_ctx_i   (vs_ctx),
    .start_cmd_i   (vs_cmd),
    .start_bad_i   (vs_bad),
    .start_top_i   (vs_top),
    .start_at_i    (vs_at),
    .kill_i        (vs_flush_i | stop_q),
    .sem_inc_o     (vs_sem_inc_o),
    .busy_o        (vs_busy),
    .pending_o     (vs_pending),
    .probe_o       (probe_o[29:24]),
    .nan_o         (ev_nan_o),
    .rf_en_o       (s_en),
    .rf_addr_o     (s_addr),
    .rf_data_i     (s_data),
    .spm_wr_valid_o, .spm_wr_ready_i, .spm_wr_addr_o, .spm_wr_data_o, .spm_wr_exp_o,
    .err_window_o      (vs_window),
    .err_window_addr_o (vs_window_addr)
  );

  // --- What operations of inference need and those of training have ---

  // A side is urgent while an operation of inference has taken its waits, or is under way: then what training has begun there
  // counts as inference's own, for inference stands behind it. Under PRIORITY with the floor at 0, training makes way for an urgent side: its
  // VA starts nothing more once a row of it has kept VL from writing, its DMA reads nothing more once a word of it has kept VS from
  // writing. VA of inference makes gaps for an urgent VL only. (With a floor training could lose its share by that.)
  logic       strict, gap_d, gap_q, yield_d, yield_q;
  logic [1:0] urgent_d, urgent_q;  // VS, VL

  assign strict    = qos_i[ct_pkg::QosStrict];
  assign urgent_d  = {vs_pending[0] || vs_paid[0], vl_pending[0] || vl_paid[0]};
  assign vl_barred = strict && urgent_q[0] && va_wr_addr[AddrW-1];
  assign gap_d     = strict && urgent_q[0] && (gap_q || (vl_wr_valid && !vl_wr_ready && va_wr_addr[AddrW-1]));
  assign yield_d   = strict && urgent_q[1] && (yield_q || (spm_wr_valid_o && !spm_wr_ready_i && spm_wr_other_i));
  assign va_gap_d  = {vl_starved || gap_q, vl_starved && !(strict && vl_wr_addr[AddrW-1] && !urgent_q[0])};

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      urgent_q <= 2'b00;
      va_gap_q <= 2'b00;
      gap_q    <= 1'b0;
      yield_q  <= 1'b0;
    end else begin
      urgent_q <= urgent_d;
      va_gap_q <= va_gap_d;
      gap_q    <= gap_d;
      yield_q  <= yield_d;
    end
  end

  assign spm_rd_ctx_o   = vl_rd_ctx && !urgent_q[0];
  assign spm_wr_yield_o = yield_q;

  ct_vpu_guard u_guard (
    .clk_i, .rst_ni,
    .enable_i (!strict || urgent_q[1]),
    .busy_i   (vs_pending != 2'b00),
    .valid_i  (spm_wr_valid_o),
    .ready_i  (spm_wr_ready_i),
    .block_o  (spm_wr_block_o)
  );
  assign vl_refused_o   = vl_wr_valid && !vl_wr_ready;

  // --- Tile registers: VA writes first. ---

  ct_vpu_rf #(.VpuLanes(VpuLanes)) u_rf (
    .clk_i,
    .a_en_i    (a_en),
    .a_addr_i  (a_addr),
    .a_data_o  (a_data),
    .q_en_i    (q_en),
    .q_addr_i  (q_addr),
    .q_data_o  (q_data),
    .s_en_i    (s_en),
    .s_addr_i  (s_addr),
    .s_data_o  (s_data),
    .va_wr_valid_i (va_wr_valid),
    .va_wr_addr_i  (va_wr_addr),
    .va_wr_data_i  (va_wr_data),
    .vl_wr_valid_i (vl_wr_valid),
    .vl_wr_ready_o (vl_wr_ready),
    .vl_wr_addr_i  (vl_wr_addr),
    .vl_wr_data_i  (vl_wr_data)
  );

  // --- Idle, events, errors ---

  assign vl_idle_o = ~(vl_head_valid | vl_pending);
  assign va_idle_o = ~(va_head_valid | va_pending);
  assign vs_idle_o = ~(vs_head_valid | vs_pending);

  assign ev_vl_busy_o  = vl_busy;
  assign ev_va_busy_o  = va_busy;
  assign ev_vs_busy_o  = vs_busy;
  assign ev_wait_arb_o = {vs_wait_arb, va_wait_arb, vl_wait_arb};
  assign ev_wait_sem_o = {vs_wait_sem, va_wait_sem, vl_wait_sem};

  // One error of a context in a cycle; what else goes wrong then is lost with the job.
  always_comb begin
    err_o      = 2'b00;
    err_code_o = '0;
    err_addr_o = '0;
    for (int c = 0; c < 2; c++) begin
      if (vl_parity[c]) begin
        err_code_o[8*c +: 8]   = ct_pkg::ErrParity;
        err_addr_o[32*c +: 32] = {12'd0, vl_parity_addr};
      end else if (vl_window[c]) begin
        err_code_o[8*c +: 8]   = ct_pkg::ErrSpmWindow;
        err_addr_o[32*c +: 32] = {11'd0, vl_window_addr};
      end else if (vs_window[c]) begin
        err_code_o[8*c +: 8]   = ct_pkg::ErrSpmWindow;
        err_addr_o[32*c +: 32] = {11'd0, vs_window_addr};
      end
      err_o[c] = vl_parity[c] || vl_window[c] || vs_window[c];
    end
  end

  assign stop_d = (stop_q | err_o) & ~(vl_flush_i | va_flush_i | vs_flush_i);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) stop_q <= 2'b00;
    else         stop_q <= stop_d;
  end

  logic unused;
  assign unused = ^{va_paid, vl_paid[1], vs_paid[1]};

  // A side forgets the rows to come when its context stops, its front only when it is flushed: after an error all three are flushed at once.
  `CT_ASSUME(ErrorFlushesAll_M, ((stop_q | err_o) & (vl_flush_i | va_flush_i | vs_flush_i) & ~(vl_flush_i & va_flush_i & vs_flush_i)) == 2'b00)

endmodule

`default_nettype wire
