// SPDX-License-Identifier: Apache-2.0
//
// LD and ST with Comp of one context (docs/compression.md): between its queues, the scratchpad's ports of LD and ST, the rings of the DMA and ct_act.
//
//     queue of ST ─> ct_dma_groups ┬─> plain: ct_dma_st
//                                  └─> ct_act ─> a client of ct_dma_wr ─> end  ─┐
//     queue of LD ─> ct_dma_groups ┬─> plain: ct_dma_ld                         ├─> ct_dma_sig
//                                  └─> ct_act <─ a client of ct_dma_rd    done ─┘
//
// Order       of a queue plain and compressed commands are never at work at the same time (ct_dma_groups). For ST quiet means that only granted bursts are left:
//             the ring writes and signals them in order.
// Ports       what the plain side leaves (ct_dma_ports).
// Signals     ST: with the end of the burst of the index unit; LD: when all words of the step are written, and freed are its groups with Free.
// Errors      err_o is combinational, with code and address, the one of LD before that of ST; ct_dma answers with halt_i. An error, a flush or an abandon
//             leaves the account of the pages as it was in the middle: void, until pages_reset_i.
// Quiet       ld_quiet_o: no load is left; st_quiet_o: nothing but granted bursts; st_idle_o: not those either.

`default_nettype none

module ct_dma_comp #(
  localparam int unsigned PageW = ct_pkg::CompPageW,
  localparam int unsigned SpmW  = ct_pkg::SpmAddrW,
  localparam int unsigned CmdW  = ct_pkg::CmdW,
  localparam int unsigned EndW  = 10
) (
  input  logic            clk_i,
  input  logic            rst_ni,

  input  logic            flush_i,
  input  logic            halt_i,
  input  logic            abandon_i,
  output logic            err_o,
  output logic [7:0]      err_code_o,
  output logic [31:0]     err_addr_o,

  // Arena and windows.
  input  logic            pages_reset_i,
  input  logic [31:0]     arena_i,
  input  logic [PageW:0]  pages_i,
  output logic [PageW:0]  held_o,
  output logic [PageW:0]  most_o,
  input  logic [31:0]     rd_base_i,
  input  logic [31:0]     rd_limit_i,
  input  logic [31:0]     wr_base_i,
  input  logic [31:0]     wr_limit_i,
  input  logic [SpmW-1:0] spm_base_i,
  input  logic [SpmW-1:0] spm_size_i,

  // Queues, and the plain side of each.
  input  logic            ld_cmd_valid_i,
  input  logic [CmdW-1:0] ld_cmd_i,
  output logic            ld_cmd_ready_o,
  output logic            ld_plain_valid_o,
  input  logic            ld_plain_ready_i,
  input  logic            ld_plain_quiet_i,
  input  logic [15:0]     ld_sem_nz_i,
  output logic [15:0]     ld_sem_dec_o,
  output logic [15:0]     ld_sem_inc_o,
  output logic            ld_quiet_o,
  input  logic            st_cmd_valid_i,
  input  logic [CmdW-1:0] st_cmd_i,
  output logic            st_cmd_ready_o,
  output logic            st_plain_valid_o,
  input  logic            st_plain_ready_i,
  input  logic            st_plain_quiet_i,
  input  logic [15:0]     st_sem_nz_i,
  output logic [15:0]     st_sem_dec_o,
  output logic [15:0]     st_sem_inc_o,
  output logic            st_quiet_o,
  output logic            st_idle_o,

  // The scratchpad's ports, the plain side's way in, and the way out.
  input  logic            plain_rd_valid_i,
  input  logic [SpmW-1:0] plain_rd_addr_i,
  input  logic            plain_rd_ctx_i,
  output logic            spm_rd_valid_o,
  output logic [SpmW-1:0] spm_rd_addr_o,
  output logic            spm_rd_ctx_o,
  input  logic            spm_rd_ready_i,
  input  logic [127:0]    spm_rd_data_i,
  input  logic [7:0]      spm_rd_exp_i,
  input  logic            spm_rd_perr_i,
  input  logic            ld_hold_i,
  input  logic            plain_wr_valid_i,
  input  logic [SpmW-1:0] plain_wr_addr_i,
  input  logic            plain_wr_ctx_i,
  input  logic [127:0]    plain_wr_data_i,
  input  logic [7:0]      plain_wr_exp_i,
  output logic            spm_wr_valid_o,
  output logic [SpmW-1:0] spm_wr_addr_o,
  output logic            spm_wr_ctx_o,
  output logic [127:0]    spm_wr_data_o,
  output logic [7:0]      spm_wr_exp_o,

  // A client of ct_dma_rd, and one of ct_dma_wr.
  output logic            rd_valid_o,
  output logic [31:0]     rd_addr_o,
  output logic [4:0]      rd_beats_o,
  output logic [3:0]      rd_tag_o,
  input  logic            rd_ready_i,
  input  logic            rd_beat_i,
  input  logic            rd_fault_i,
  input  logic            rd_beat_last_i,
  input  logic [31:0]     rd_beat_addr_i,
  input  logic [3:0]      rd_beat_tag_i,
  input  logic [127:0]    rd_data_i,
  input  logic            rd_idle_i,
  input  logic            rd_still_i,
  output logic            wr_valid_o,
  output logic [31:0]     wr_addr_o,
  output logic [4:0]      wr_beats_o,
  output logic [7:0]      wr_at_o,
  output logic [1:0]      wr_tag_o,
  output logic [EndW-1:0] wr_end_tag_o,
  input  logic            wr_ready_i,
  output logic            wr_busy_o,
  input  logic            wr_beat_i,
  input  logic [7:0]      wr_beat_at_i,
  input  logic [1:0]      wr_beat_tag_i,
  input  logic            wr_beat_last_i,
  output logic [127:0]    wr_data_o,
  input  logic            wr_fault_i,
  input  logic [31:0]     wr_fault_addr_i,
  input  logic            wr_end_i,
  input  logic [EndW-1:0] wr_told_i,
  output logic            wr_stay_o,
  input  logic            wr_old_i,       // ends are of the job before
  input  logic            wr_within_i,
  input  logic            wr_idle_i,
  input  logic            wr_still_i,

  output logic            ev_ld_wait_mem_o,
  output logic            ev_ld_wait_sem_o,
  output logic            ev_st_wait_sem_o
);

  // ---------------------------------------------------------------------------------------------------------------------------
  // Commands become requests for groups.

  logic            ld_valid, ld_ready, ld_walk_idle, ld_act_idle, ld_read, ld_free;
  logic [SpmW-1:0] ld_spm;
  logic [31:0]     ld_index;
  logic [1:0]      ld_entry, ld_tiles;
  logic [EndW-1:0] ld_sigs;

  ct_dma_groups u_ld (
    .clk_i, .rst_ni, .flush_i, .halt_i,
    .idle_o        (ld_walk_idle),
    .cmd_valid_i   (ld_cmd_valid_i),
    .cmd_i         (ld_cmd_i),
    .cmd_ready_o   (ld_cmd_ready_o),
    .plain_valid_o (ld_plain_valid_o),
    .plain_ready_i (ld_plain_ready_i),
    .plain_quiet_i (ld_plain_quiet_i),
    .comp_quiet_i  (ld_quiet_o),
    .sem_nz_i      (ld_sem_nz_i),
    .sem_dec_o     (ld_sem_dec_o),
    .valid_o       (ld_valid),
    .ready_i       (ld_ready),
    .spm_o         (ld_spm),
    .index_o       (ld_index),
    .entry_o       (ld_entry),
    .begin_o       (ld_read),
    .end_o         (),
    .sigs_o        (ld_sigs),
    .tiles_o       (ld_tiles),
    .bound_o       (),
    .free_o        (ld_free)
  );

  logic            st_valid, st_ready, st_walk_idle, st_act_idle, st_last;
  logic [SpmW-1:0] st_spm;
  logic [31:0]     st_index;
  logic [1:0]      st_entry, st_tiles;
  logic [7:0]      st_bound;
  logic [EndW-1:0] st_sigs;

  ct_dma_groups u_st (
    .clk_i, .rst_ni, .flush_i, .halt_i,
    .idle_o        (st_walk_idle),
    .cmd_valid_i   (st_cmd_valid_i),
    .cmd_i         (st_cmd_i),
    .cmd_ready_o   (st_cmd_ready_o),
    .plain_valid_o (st_plain_valid_o),
    .plain_ready_i (st_plain_ready_i),
    .plain_quiet_i (st_plain_quiet_i),
    .comp_quiet_i  (st_quiet_o),
    .sem_nz_i      (st_sem_nz_i),
    .sem_dec_o     (st_sem_dec_o),
    .valid_o       (st_valid),
    .ready_i       (st_ready),
    .spm_o         (st_spm),
    .index_o       (st_index),
    .entry_o       (st_entry),
    .begin_o       (),
    .end_o         (st_last),
    .sigs_o        (st_sigs),
    .tiles_o       (st_tiles),
    .bound_o       (st_bound),
    .free_o        ()
  );

  // ---------------------------------------------------------------------------------------------------------------------------
  // The front ends.

  logic            act_rd_valid, act_wr_valid, act_rd_ready, act_wr_ready, act_st_err, act_ld_err, ld_done, ld_stay;
  logic [SpmW-1:0] act_rd_addr, act_wr_addr;
  logic [127:0]    act_wr_data;
  logic [7:0]      act_wr_exp;
  logic [1:0]      act_st_kind, act_ld_kind;
  logic [31:0]     act_st_addr, act_ld_addr;
  logic [EndW-1:0] ld_told;

  ct_act #(.PageW(PageW), .EndW(EndW)) u_act (
    .clk_i, .rst_ni, .flush_i, .halt_i, .abandon_i,
    .st_idle_o       (st_act_idle),
    .ld_idle_o       (ld_act_idle),
    .pages_reset_i, .arena_i, .pages_i, .held_o, .most_o,
    .rd_base_i, .rd_limit_i, .wr_base_i, .wr_limit_i, .spm_base_i, .spm_size_i,
    .st_valid_i      (st_valid),
    .st_ready_o      (st_ready),
    .st_spm_i        (st_spm),
    .st_tiles_i      (st_tiles),
    .st_bound_i      (st_bound),
    .st_index_i      (st_index),
    .st_entry_i      (st_entry),
    .st_store_i      (st_last),
    .st_sigs_i       (st_sigs),
    .st_err_o        (act_st_err),
    .st_err_kind_o   (act_st_kind),
    .st_err_addr_o   (act_st_addr),
    .ld_valid_i      (ld_valid),
    .ld_ready_o      (ld_ready),
    .ld_spm_i        (ld_spm),
    .ld_tiles_i      (ld_tiles),
    .ld_index_i      (ld_index),
    .ld_entry_i      (ld_entry),
    .ld_read_i       (ld_read),
    .ld_free_i       (ld_free),
    .ld_sigs_i       (ld_sigs),
    .ld_err_o        (act_ld_err),
    .ld_err_kind_o   (act_ld_kind),
    .ld_err_addr_o   (act_ld_addr),
    .ld_done_o       (ld_done),
    .ld_sigs_o       (ld_told),
    .ld_done_ready_i (!ld_stay),
    .spm_rd_valid_o  (act_rd_valid),
    .spm_rd_addr_o   (act_rd_addr),
    .spm_rd_ready_i  (act_rd_ready),
    .spm_rd_data_i, .spm_rd_exp_i, .spm_rd_perr_i,
    .spm_wr_valid_o  (act_wr_valid),
    .spm_wr_ready_i  (act_wr_ready),
    .spm_wr_addr_o   (act_wr_addr),
    .spm_wr_data_o   (act_wr_data),
    .spm_wr_exp_o    (act_wr_exp),
    .wr_valid_o, .wr_addr_o, .wr_beats_o, .wr_at_o, .wr_tag_o, .wr_end_tag_o, .wr_ready_i, .wr_busy_o,
    .wr_beat_i, .wr_beat_at_i, .wr_beat_tag_i, .wr_beat_last_i, .wr_data_o, .wr_within_i,
    .rd_valid_o, .rd_addr_o, .rd_beats_o, .rd_tag_o, .rd_ready_i,
    .rd_beat_i, .rd_fault_i, .rd_beat_last_i, .rd_beat_addr_i, .rd_beat_tag_i, .rd_data_i
  );

  ct_dma_ports u_ports (
    .clk_i, .rst_ni,
    .plain_rd_valid_i, .plain_rd_addr_i, .plain_rd_ctx_i,
    .comp_rd_valid_i (act_rd_valid),
    .comp_rd_addr_i  (act_rd_addr),
    .comp_rd_ready_o (act_rd_ready),
    .spm_rd_valid_o, .spm_rd_addr_o, .spm_rd_ctx_o, .spm_rd_ready_i,
    .ld_hold_i,
    .plain_wr_valid_i, .plain_wr_addr_i, .plain_wr_ctx_i, .plain_wr_data_i, .plain_wr_exp_i,
    .comp_wr_valid_i (act_wr_valid),
    .comp_wr_addr_i  (act_wr_addr),
    .comp_wr_data_i  (act_wr_data),
    .comp_wr_exp_i   (act_wr_exp),
    .comp_wr_ready_o (act_wr_ready),
    .spm_wr_valid_o, .spm_wr_addr_o, .spm_wr_ctx_o, .spm_wr_data_o, .spm_wr_exp_o
  );

  // ---------------------------------------------------------------------------------------------------------------------------
  // Signals (of the two halves of ct_dma_sig one is LD's, the other ST's), quiet, errors, events.

  ct_dma_sig u_sig (
    .clk_i, .rst_ni,
    .mute_i    ({flush_i || halt_i || wr_old_i, flush_i || halt_i}),
    .end_i     ({wr_end_i, ld_done}),
    .end_tag_i ({wr_told_i, ld_told}),
    .stay_o    ({wr_stay_o, ld_stay}),
    .inc_o     ({st_sem_inc_o, ld_sem_inc_o})
  );

  assign ld_quiet_o = ld_walk_idle && ld_act_idle && rd_idle_i && ld_sem_inc_o == 16'd0;
  assign st_quiet_o = st_walk_idle && st_act_idle;
  assign st_idle_o  = st_quiet_o && wr_idle_i && st_sem_inc_o == 16'd0;

  always_comb begin
    err_o = act_ld_err || wr_fault_i || act_st_err;
    if (act_ld_err) begin
      err_addr_o = act_ld_addr;
      unique case (act_ld_kind)
        2'd0:    err_code_o = ct_pkg::ErrSpmWindow;
        2'd1:    err_code_o = ct_pkg::ErrAxiRead;
        2'd2:    err_code_o = ct_pkg::ErrDramReadWindow;
        default: err_code_o = ct_pkg::ErrComp;
      endcase
    end else if (wr_fault_i) begin
      err_addr_o = wr_fault_addr_i;
      err_code_o = ct_pkg::ErrAxiWrite;
    end else begin
      err_addr_o = act_st_addr;
      unique case (act_st_kind)
        2'd0:    err_code_o = ct_pkg::ErrSpmWindow;
        2'd1:    err_code_o = ct_pkg::ErrParity;
        2'd2:    err_code_o = ct_pkg::ErrDramWriteWindow;
        default: err_code_o = ct_pkg::ErrComp;
      endcase
    end
  end

  // (A store that reads or encodes has said so to ct_dma_wr: wr_busy_o.)
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      ev_ld_wait_mem_o <= 1'b0;
      ev_ld_wait_sem_o <= 1'b0;
      ev_st_wait_sem_o <= 1'b0;
    end else begin
      ev_ld_wait_mem_o <= rd_still_i && !ld_act_idle;
      ev_ld_wait_sem_o <= rd_still_i && ld_act_idle && !ld_walk_idle;
      ev_st_wait_sem_o <= wr_still_i && !st_walk_idle;
    end
  end

endmodule

`default_nettype wire
