// SPDX-License-Identifier: Apache-2.0
//
// The reads of the DMA: the ring (ct_dma_rd) and its clients, in the order of their ranks: fetches, LD, and with Compress the compressed LD of context 1,
// which lies outside (ct_dma_comp) and comes in by comp_*.
//
//     fetch   ct_dma_fetch (2) ──┐
//     LD      ct_dma_ld ─────────┼─> ct_dma_rd ─> AR, R
//     LD Comp comp_* ────────────┘
//
// Errors      err_o[c] is combinational, with code and address: those of loads before those of fetches, for loads are work of programs that have been
//             fetched. ct_dma answers with halt_i[c].
//
// Parameters
//   Gather    as ct_dma
//   Compress  1: there is the client comp_*

`default_nettype none

module ct_dma_reads #(
  parameter  int unsigned Gather    = 0,
  parameter  int unsigned Compress  = 0,
  localparam int unsigned CompTagW  = 4
) (
  input  logic                          clk_i,
  input  logic                          rst_ni,

  input  logic [ct_pkg::QosW-1:0]       qos_i,
  input  logic                          freeze_i,
  input  logic [3:0]                    train_cap_i,
  input  logic                          yield_i,
  input  logic                          block_i,
  input  logic [1:0]                    flush_i,
  input  logic [1:0]                    halt_i,
  input  logic [1:0]                    abandon_i,
  output logic [1:0]                    err_o,
  output logic [15:0]                   err_code_o,
  output logic [63:0]                   err_addr_o,

  // Loads.
  input  logic [1:0]                    cmd_valid_i,
  input  logic [2*ct_pkg::CmdW-1:0]     cmd_i,
  output logic [1:0]                    cmd_ready_o,
  input  logic [31:0]                   sem_nz_i,
  output logic [31:0]                   sem_dec_o,
  output logic [31:0]                   sem_inc_o,
  output logic [1:0]                    quiet_o,
  output logic                          gat_valid_o,
  output logic [3:0]                    gat_row_o,
  input  logic                          gat_gnt_i,
  input  logic                          gat_vld_i,
  input  logic [31:0]                   gat_addr_i,
  output logic                          spm_wr_valid_o,
  output logic [ct_pkg::SpmAddrW-1:0]   spm_wr_addr_o,
  output logic                          spm_wr_ctx_o,
  output logic [127:0]                  spm_wr_data_o,
  output logic [7:0]                    spm_wr_exp_o,

  // Fetches.
  input  logic [1:0]                    fetch_valid_i,
  input  logic [63:0]                   fetch_addr_i,
  input  logic [21:0]                   fetch_len_i,
  input  logic [1:0]                    fetch_soft_i,
  input  logic [1:0]                    fetch_drop_i,
  output logic [1:0]                    fetch_ready_o,
  output logic [1:0]                    fetch_bad_o,
  output logic [1:0]                    fetch_idle_o,
  output logic [1:0]                    fetch_rvalid_o,
  output logic                          fetch_rlast_o,
  output logic [127:0]                  data_o,          // of the beat of the last cycle, of any client

  // The client outside, of context 1.
  input  logic                          comp_valid_i,
  input  logic [31:0]                   comp_addr_i,
  input  logic [4:0]                    comp_beats_i,
  input  logic [CompTagW-1:0]           comp_tag_i,
  output logic                          comp_ready_o,
  output logic                          comp_beat_o,
  output logic                          comp_fault_o,
  output logic                          comp_beat_last_o,
  output logic [31:0]                   comp_beat_addr_o,
  output logic [CompTagW-1:0]           comp_beat_tag_o,
  output logic                          comp_idle_o,
  output logic                          comp_still_o,

  input  logic [63:0]                   base_i,
  input  logic [63:0]                   limit_i,
  input  logic [2*ct_pkg::SpmAddrW-1:0] spm_base_i,
  input  logic [2*ct_pkg::SpmAddrW-1:0] spm_size_i,

  output logic                          m_axi_arvalid_o,
  input  logic                          m_axi_arready_i,
  output logic                          m_axi_arid_o,
  output logic [ct_pkg::AxiAddrW-1:0]   m_axi_araddr_o,
  output logic [7:0]                    m_axi_arlen_o,
  input  logic                          m_axi_rvalid_i,
  input  logic                          m_axi_rid_i,
  input  logic [127:0]                  m_axi_rdata_i,
  input  logic [1:0]                    m_axi_rresp_i,
  input  logic                          m_axi_rlast_i,

  output logic [1:0]                    ev_beats_o,
  output logic [1:0]                    ev_wait_arb_o,
  output logic [1:0]                    ev_wait_mem_o,
  output logic [1:0]                    ev_wait_sem_o,
  output logic [9:0]                    probe_o
);

  // The clients, the first of a context first; bit 2*k + c is of client k, context c.

  localparam int unsigned Clients   = (Compress != 0) ? 3 : 2;
  localparam int unsigned Fetch     = 0;
  localparam int unsigned Load      = 1;
  localparam int unsigned Comp      = 2;
  localparam int unsigned LdTagW    = ct_pkg::SpmAddrW + 15 + 2;
  localparam int unsigned FetchTagW = 2;
  localparam int unsigned TagW      = LdTagW;
  localparam int unsigned EndW      = 10;

  logic [2*Clients-1:0]      rd_valid, rd_ready, rd_undo, rd_beat, rd_fault, rd_end, rd_stay, rd_idle;
  logic [64*Clients-1:0]     rd_addr;
  logic [10*Clients-1:0]     rd_beats;
  logic [2*TagW*Clients-1:0] rd_tag;
  logic [2*EndW*Clients-1:0] rd_end_tag;
  logic                      beat_ctx, beat_first, beat_last;
  logic [31:0]               beat_addr;
  logic [TagW-1:0]           beat_tag;
  logic [127:0]              rd_data;
  logic [2*EndW-1:0]         end_tag;
  logic [1:0]                rd_still, ld_err, f_err;
  logic [15:0]               ld_code, f_code;
  logic [63:0]               ld_addr, f_addr;

  ct_dma_rd #(.Clients(Clients), .TagW(TagW), .EndW(EndW), .Chained(Clients'(1) << Fetch)) u_rd (
    .clk_i, .rst_ni, .qos_i, .freeze_i, .train_cap_i, .yield_i, .block_i, .flush_i, .halt_i, .abandon_i,
    .valid_i      (rd_valid),
    .addr_i       (rd_addr),
    .beats_i      (rd_beats),
    .tag_i        (rd_tag),
    .end_tag_i    (rd_end_tag),
    .undo_i       (rd_undo),
    .ready_o      (rd_ready),
    .beat_o       (rd_beat),
    .fault_o      (rd_fault),
    .beat_ctx_o   (beat_ctx),
    .beat_first_o (beat_first),
    .beat_last_o  (beat_last),
    .beat_addr_o  (beat_addr),
    .beat_tag_o   (beat_tag),
    .data_o       (rd_data),
    .end_o        (rd_end),
    .end_tag_o    (end_tag),
    .stay_i       (rd_stay),
    .idle_o       (rd_idle),
    .still_o      (rd_still),
    .m_axi_arvalid_o, .m_axi_arready_i, .m_axi_arid_o, .m_axi_araddr_o, .m_axi_arlen_o,
    .m_axi_rvalid_i, .m_axi_rid_i, .m_axi_rdata_i, .m_axi_rresp_i, .m_axi_rlast_i,
    .ev_beats_o, .ev_wait_arb_o, .ev_wait_mem_o, .probe_o
  );

  ct_dma_ld #(.Gather(Gather != 0)) u_ld (
    .clk_i, .rst_ni, .flush_i, .halt_i, .quiet_o, .cmd_valid_i, .cmd_i, .cmd_ready_o, .sem_nz_i, .sem_dec_o, .sem_inc_o,
    .gat_valid_o, .gat_row_o, .gat_gnt_i, .gat_vld_i, .gat_addr_i, .base_i, .limit_i, .spm_base_i, .spm_size_i,
    .err_o        (ld_err),
    .err_code_o   (ld_code),
    .err_addr_o   (ld_addr),
    .rd_valid_o   (rd_valid[2*Load +: 2]),
    .rd_addr_o    (rd_addr[64*Load +: 64]),
    .rd_beats_o   (rd_beats[10*Load +: 10]),
    .rd_tag_o     (rd_tag[2*TagW*Load +: 2*TagW]),
    .rd_end_tag_o (rd_end_tag[2*EndW*Load +: 2*EndW]),
    .rd_ready_i   (rd_ready[2*Load +: 2]),
    .beat_i       (rd_beat[2*Load +: 2]),
    .fault_i      (rd_fault[2*Load +: 2]),
    .beat_ctx_i   (beat_ctx),
    .beat_first_i (beat_first),
    .beat_addr_i  (beat_addr),
    .beat_tag_i   (beat_tag),
    .data_i       (rd_data),
    .end_i        (rd_end[2*Load +: 2]),
    .end_tag_i    (end_tag),
    .end_stay_o   (rd_stay[2*Load +: 2]),
    .rd_idle_i    (rd_idle[2*Load +: 2]),
    .rd_still_i   (rd_still),
    .spm_wr_valid_o, .spm_wr_addr_o, .spm_wr_ctx_o, .spm_wr_data_o, .spm_wr_exp_o,
    .ev_wait_sem_o
  );
  assign rd_undo[2*Load +: 2] = 2'b00;

  logic [1:0]             f_rlast;
  logic [2*FetchTagW-1:0] f_tag;
  for (genvar c = 0; c < 2; c++) begin : g_fetch
    ct_dma_fetch u_fetch (
      .clk_i, .rst_ni,
      .flush_i     (flush_i[c]),
      .halt_i      (halt_i[c]),
      .drop_i      (fetch_drop_i[c]),
      .idle_o      (fetch_idle_o[c]),
      .req_valid_i (fetch_valid_i[c]),
      .req_addr_i  (fetch_addr_i[32*c +: 32]),
      .req_len_i   (fetch_len_i[11*c +: 11]),
      .req_soft_i  (fetch_soft_i[c]),
      .req_ready_o (fetch_ready_o[c]),
      .base_i      (base_i[32*c +: 32]),
      .limit_i     (limit_i[32*c +: 32]),
      .err_o       (f_err[c]),
      .err_code_o  (f_code[8*c +: 8]),
      .err_addr_o  (f_addr[32*c +: 32]),
      .bad_o       (fetch_bad_o[c]),
      .rd_valid_o  (rd_valid[2*Fetch + c]),
      .rd_addr_o   (rd_addr[32*(2*Fetch + c) +: 32]),
      .rd_beats_o  (rd_beats[5*(2*Fetch + c) +: 5]),
      .rd_tag_o    (f_tag[FetchTagW*c +: FetchTagW]),
      .rd_undo_o   (rd_undo[2*Fetch + c]),
      .rd_ready_i  (rd_ready[2*Fetch + c]),
      .beat_i      (rd_beat[2*Fetch + c]),
      .fault_i     (rd_fault[2*Fetch + c]),
      .beat_last_i (beat_last),
      .beat_addr_i (beat_addr),
      .beat_tag_i  (beat_tag[FetchTagW-1:0]),
      .rd_idle_i   (rd_idle[2*Fetch + c]),
      .rvalid_o    (fetch_rvalid_o[c]),
      .rlast_o     (f_rlast[c])
    );
    assign rd_tag[TagW*(2*Fetch + c) +: TagW]     = TagW'(f_tag[FetchTagW*c +: FetchTagW]);
    assign rd_end_tag[EndW*(2*Fetch + c) +: EndW] = '0;
  end
  assign rd_stay[2*Fetch +: 2] = 2'b00;
  logic unused_end;
  assign unused_end = ^rd_end[2*Fetch +: 2];
  assign fetch_rlast_o = f_rlast != 2'b00;
  assign data_o        = rd_data;

  // The client outside tells the end of what it loads itself.
  if (Compress != 0) begin : g_comp
    assign rd_valid[2*Comp +: 2]                 = {comp_valid_i, 1'b0};
    assign rd_addr[64*Comp +: 64]                = {comp_addr_i, 32'd0};
    assign rd_beats[10*Comp +: 10]               = {comp_beats_i, 5'd0};
    assign rd_tag[2*TagW*Comp +: 2*TagW]         = {TagW'(comp_tag_i), TagW'(0)};
    assign rd_end_tag[2*EndW*Comp +: 2*EndW]     = '0;
    assign {rd_undo[2*Comp +: 2], rd_stay[2*Comp +: 2]} = '0;
    assign comp_ready_o = rd_ready[2*Comp + 1];
    assign comp_beat_o  = rd_beat[2*Comp + 1];
    assign comp_fault_o = rd_fault[2*Comp + 1];
    assign comp_idle_o  = rd_idle[2*Comp + 1];
    logic unused_comp;
    assign unused_comp = ^{rd_ready[2*Comp], rd_beat[2*Comp], rd_fault[2*Comp], rd_idle[2*Comp], rd_end[2*Comp +: 2]};
  end else begin : g_no_comp
    assign {comp_ready_o, comp_beat_o, comp_fault_o, comp_idle_o} = 4'b0001;
    logic unused_comp;
    assign unused_comp = ^{comp_valid_i, comp_addr_i, comp_beats_i, comp_tag_i};
  end
  assign comp_beat_last_o = beat_last;
  assign comp_beat_addr_o = beat_addr;
  assign comp_beat_tag_o  = beat_tag[CompTagW-1:0];
  assign comp_still_o     = rd_still[1];

  assign err_o = ld_err | f_err;
  always_comb begin
    for (int c = 0; c < 2; c++) begin
      err_code_o[8*c +: 8]   = ld_err[c] ? ld_code[8*c +: 8] : f_code[8*c +: 8];
      err_addr_o[32*c +: 32] = ld_err[c] ? ld_addr[32*c +: 32] : f_addr[32*c +: 32];
    end
  end

endmodule

`default_nettype wire
