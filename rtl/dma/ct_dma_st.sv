// SPDX-License-Identifier: Apache-2.0
//
// ST commands of both contexts: a client of ct_dma_wr whose words come from the SPM.
//
//     ct_dma_seq of each context ─> ct_dma_words ─> ct_dma_wr ─> end ─> ct_dma_sig
//
// Pieces      ct_dma_seq cuts a command into records and runs of words, in order; ct_dma_words reads them and makes bursts of them. The end tag
//             of a burst has the signals of the command that it carries.
// Latency     command taken in t: first word asked of the SPM in t + 4; complete piece to first beat of W: 7 cycles. end_i in t: signals
//             (sem_inc_o) in t + 1.
// Throughput  a word a cycle from the SPM, a beat a cycle on W, an end a cycle.
// Order       bursts of a context are written and signalled in order; Sig0 before Sig1 of the same semaphore, a cycle apart (end_stay_o).
// Errors      as in ct_dma_ld: the oldest work first. Pieces not granted are dropped under halt_i and flush_i.
// Quiet       quiet_o[c]: of c nothing is left but granted bursts and their answers; idle_o[c]: not those either.
// Seal        ends under old_i[c] are of the job before (see ct_dma_wr): they signal nothing.

`default_nettype none
`include "ct_assert.svh"

module ct_dma_st #(
  parameter bit Gather = 1'b0,           // context 0 has it (see ct_dma_seq)
  localparam int unsigned AtW  = 5,
  localparam int unsigned TagW = 3,
  localparam int unsigned EndW = 10
) (
  input  logic                          clk_i,
  input  logic                          rst_ni,

  input  logic [ct_pkg::QosW-1:0]       qos_i,
  input  logic [1:0]                    flush_i,
  input  logic [1:0]                    halt_i,
  input  logic [1:0]                    abandon_i,
  output logic [1:0]                    idle_o,
  output logic [1:0]                    quiet_o,

  input  logic [1:0]                    cmd_valid_i,
  input  logic [2*ct_pkg::CmdW-1:0]     cmd_i,
  output logic [1:0]                    cmd_ready_o,
  input  logic [31:0]                   sem_nz_i,
  output logic [31:0]                   sem_dec_o,
  output logic [31:0]                   sem_inc_o,

  output logic                          gat_valid_o,  // of context 0
  output logic [3:0]                    gat_row_o,
  input  logic                          gat_gnt_i,
  input  logic                          gat_vld_i,
  input  logic [31:0]                   gat_addr_i,

  input  logic [63:0]                   base_i,
  input  logic [63:0]                   limit_i,
  input  logic [2*ct_pkg::SpmAddrW-1:0] spm_base_i,
  input  logic [2*ct_pkg::SpmAddrW-1:0] spm_size_i,
  output logic [1:0]                    err_o,
  output logic [15:0]                   err_code_o,
  output logic [63:0]                   err_addr_o,

  output logic                          spm_rd_valid_o,
  output logic [ct_pkg::SpmAddrW-1:0]   spm_rd_addr_o,
  output logic                          spm_rd_ctx_o,
  input  logic                          spm_rd_ready_i,
  input  logic                          spm_rd_vld_i,
  input  logic [127:0]                  spm_rd_data_i,
  input  logic [7:0]                    spm_rd_exp_i,
  input  logic                          spm_rd_perr_i,

  // A client of ct_dma_wr.
  output logic [1:0]                    wr_valid_o,
  output logic [63:0]                   wr_addr_o,
  output logic [9:0]                    wr_beats_o,
  output logic [2*AtW-1:0]              wr_at_o,
  output logic [2*TagW-1:0]             wr_tag_o,
  output logic [2*EndW-1:0]             wr_end_tag_o,
  input  logic [1:0]                    wr_ready_i,
  output logic [1:0]                    wr_busy_o,
  input  logic [1:0]                    beat_i,
  input  logic [AtW-1:0]                beat_at_i,
  input  logic [TagW-1:0]               beat_tag_i,
  input  logic                          beat_last_i,
  output logic [127:0]                  data_o,
  input  logic [1:0]                    fault_i,
  input  logic [31:0]                   fault_addr_i,
  input  logic [1:0]                    end_i,
  input  logic [2*EndW-1:0]             end_tag_i,
  output logic [1:0]                    end_stay_o,
  input  logic [1:0]                    old_i,
  input  logic [1:0]                    wr_within_i,
  input  logic [1:0]                    wr_idle_i,
  input  logic [1:0]                    wr_still_i,

  output logic [1:0]                    ev_wait_sem_o
);

  localparam int unsigned SpmW = ct_pkg::SpmAddrW;
  localparam int unsigned CmdW = ct_pkg::CmdW;

  // What each context wants to write next.
  logic [1:0]        seq_idle, seq_valid, seq_ready, seq_err, seq_rec, seq_first;
  logic [63:0]       seq_addr, seq_err_addr;
  logic [9:0]        seq_beats;
  logic [2*EndW-1:0] seq_sigs;
  logic [2*SpmW-1:0] seq_spm;
  logic [29:0]       seq_s0;

  logic [1:0] gat_valid;
  logic [7:0] gat_row;
  assign gat_valid_o = gat_valid[0];
  assign gat_row_o   = gat_row[3:0];
  logic unused_gather;
  assign unused_gather = ^{gat_valid[1], gat_row[7:4]};

  for (genvar c = 0; c < 2; c++) begin : g_ctx
    ct_dma_seq #(.SplitRecords(1'b0), .Gather((c == 0) ? Gather : 1'b0)) u_seq (
      .clk_i, .rst_ni,
      .flush_i     (flush_i[c]),
      .halt_i      (halt_i[c]),
      .idle_o      (seq_idle[c]),
      .cmd_valid_i (cmd_valid_i[c]),
      .cmd_i       (cmd_i[CmdW*c +: CmdW]),
      .cmd_ready_o (cmd_ready_o[c]),
      .sem_nz_i    (sem_nz_i[16*c +: 16]),
      .sem_dec_o   (sem_dec_o[16*c +: 16]),
      .gat_valid_o (gat_valid[c]),
      .gat_row_o   (gat_row[4*c +: 4]),
      .gat_gnt_i   ((c == 0) ? gat_gnt_i : 1'b0),
      .gat_vld_i   ((c == 0) ? gat_vld_i : 1'b0),
      .gat_addr_i,
      .base_i      (base_i[32*c +: 32]),
      .limit_i     (limit_i[32*c +: 32]),
      .err_o       (seq_err[c]),
      .err_addr_o  (seq_err_addr[32*c +: 32]),
      .valid_o     (seq_valid[c]),
      .ready_i     (seq_ready[c]),
      .addr_o      (seq_addr[32*c +: 32]),
      .beats_o     (seq_beats[5*c +: 5]),
      .spm_o       (seq_spm[SpmW*c +: SpmW]),
      .s0_o        (seq_s0[15*c +: 15]),
      .rec_o       (seq_rec[c]),
      .first_o     (seq_first[c]),
      .sig0_o      (seq_sigs[EndW*c +: 5]),
      .sig1_o      (seq_sigs[EndW*c + 5 +: 5])
    );
  end

  // Words and bursts.
  logic [1:0]  w_quiet, w_idle, w_err;
  logic [15:0] w_code;
  logic [63:0] w_addr;

  ct_dma_words u_words (
    .clk_i, .rst_ni, .qos_i, .flush_i, .halt_i, .abandon_i,
    .quiet_o    (w_quiet),
    .idle_o     (w_idle),
    .valid_i    (seq_valid),
    .ready_o    (seq_ready),
    .addr_i     (seq_addr),
    .beats_i    (seq_beats),
    .spm_i      (seq_spm),
    .s0_i       (seq_s0),
    .rec_i      (seq_rec),
    .first_i    (seq_first),
    .sigs_i     (seq_sigs),
    .spm_base_i, .spm_size_i,
    .err_o      (w_err),
    .err_code_o (w_code),
    .err_addr_o (w_addr),
    .spm_rd_valid_o, .spm_rd_addr_o, .spm_rd_ctx_o, .spm_rd_ready_i, .spm_rd_vld_i, .spm_rd_data_i, .spm_rd_exp_i, .spm_rd_perr_i,
    .wr_valid_o, .wr_addr_o, .wr_beats_o, .wr_at_o, .wr_tag_o, .wr_end_tag_o, .wr_ready_i, .wr_busy_o,
    .beat_i, .beat_at_i, .beat_tag_i, .beat_last_i, .data_o, .wr_within_i
  );

  ct_dma_sig u_sig (
    .clk_i, .rst_ni,
    .mute_i    (flush_i | halt_i | old_i),
    .end_i,
    .end_tag_i,
    .stay_o    (end_stay_o),
    .inc_o     (sem_inc_o)
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) ev_wait_sem_o <= 2'b00;
    else         ev_wait_sem_o <= wr_still_i & ~seq_idle;
  end

  always_comb begin
    for (int c = 0; c < 2; c++) begin
      quiet_o[c] = seq_idle[c] && w_quiet[c];
      idle_o[c]  = seq_idle[c] && w_idle[c] && wr_idle_i[c] && sem_inc_o[16*c +: 16] == 16'd0;
    end
  end

  // Errors, the oldest work first.
  always_comb begin
    err_o      = fault_i | w_err | seq_err;
    err_code_o = '0;
    err_addr_o = '0;
    for (int c = 0; c < 2; c++) begin
      if (fault_i[c]) begin
        err_code_o[8*c +: 8]   = ct_pkg::ErrAxiWrite;
        err_addr_o[32*c +: 32] = fault_addr_i;
      end else if (w_err[c]) begin
        err_code_o[8*c +: 8]   = w_code[8*c +: 8];
        err_addr_o[32*c +: 32] = w_addr[32*c +: 32];
      end else if (seq_err[c]) begin
        err_code_o[8*c +: 8]   = ct_pkg::ErrDramWriteWindow;
        err_addr_o[32*c +: 32] = seq_err_addr[32*c +: 32];
      end
    end
  end

endmodule

`default_nettype wire
