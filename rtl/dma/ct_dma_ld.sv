// SPDX-License-Identifier: Apache-2.0
//
// LD commands of both contexts: a client of ct_dma_rd whose beats land in the SPM.
//
//     ct_dma_seq of each context ─> ct_dma_rd ─> beat ─> window, exponent ─> SPM write port
//                                          └──> end ──> ct_dma_sig
//
// Pieces      ct_dma_seq cuts a command into bursts, in order. A burst's tag says where in the SPM its run lies and whether the run is a record;
//             its end_tag has the signals of the command that it carries.
// Latency     command taken in t: its first burst on offer in t + 3. beat_i in t: written to the SPM in t + 2. end_i in t: signals
//             (sem_inc_o) in t + 2, when all words of the burst have been written.
// Throughput  a beat a cycle, an end a cycle.
// Order       bursts of a context land and are signalled in order; Sig0 before Sig1 of the same semaphore, a cycle apart (end_stay_o).
// Errors      err_o[c] is combinational, with code and address, the oldest work first; the one above registers it and answers with halt_i[c].
//             From then (and under flush_i[c]) nothing of c is written, asked for or signalled.
// Quiet       quiet_o[c]: no load of c is left.

`default_nettype none
`include "ct_assert.svh"

module ct_dma_ld #(
  parameter bit Gather = 1'b0,           // context 0 has it (see ct_dma_seq)
  localparam int unsigned TagW = ct_pkg::SpmAddrW + 15 + 2,
  localparam int unsigned EndW = 10
) (
  input  logic                          clk_i,
  input  logic                          rst_ni,

  input  logic [1:0]                    flush_i,
  input  logic [1:0]                    halt_i,
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

  // A client of ct_dma_rd.
  output logic [1:0]                    rd_valid_o,
  output logic [63:0]                   rd_addr_o,
  output logic [9:0]                    rd_beats_o,
  output logic [2*TagW-1:0]             rd_tag_o,
  output logic [2*EndW-1:0]             rd_end_tag_o,
  input  logic [1:0]                    rd_ready_i,
  input  logic [1:0]                    beat_i,
  input  logic [1:0]                    fault_i,
  input  logic                          beat_ctx_i,
  input  logic                          beat_first_i,
  input  logic [31:0]                   beat_addr_i,
  input  logic [TagW-1:0]               beat_tag_i,
  input  logic [127:0]                  data_i,
  input  logic [1:0]                    end_i,
  input  logic [2*EndW-1:0]             end_tag_i,
  output logic [1:0]                    end_stay_o,
  input  logic [1:0]                    rd_idle_i,
  input  logic [1:0]                    rd_still_i,

  output logic                          spm_wr_valid_o,
  output logic [ct_pkg::SpmAddrW-1:0]   spm_wr_addr_o,
  output logic                          spm_wr_ctx_o,
  output logic [127:0]                  spm_wr_data_o,
  output logic [7:0]                    spm_wr_exp_o,

  output logic [1:0]                    ev_wait_sem_o
);

  localparam int unsigned SpmW  = ct_pkg::SpmAddrW;
  localparam int unsigned CmdW  = ct_pkg::CmdW;

  logic [1:0] drop;
  assign drop = flush_i | halt_i;

  // ---------------------------------------------------------------------------------------------------------------------------
  // What each context wants to read next.

  logic [1:0]        seq_idle, seq_err, seq_rec, seq_first;
  logic [63:0]       seq_err_addr;
  logic [9:0]        seq_sig0, seq_sig1;
  logic [2*SpmW-1:0] seq_spm;
  logic [29:0]       seq_s0;

  logic [1:0] gat_valid;
  logic [7:0] gat_row;
  assign gat_valid_o = gat_valid[0];
  assign gat_row_o   = gat_row[3:0];
  logic unused_gather;
  assign unused_gather = ^{gat_valid[1], gat_row[7:4]};

  for (genvar c = 0; c < 2; c++) begin : g_ctx
    ct_dma_seq #(.SplitRecords(1'b1), .Gather((c == 0) ? Gather : 1'b0)) u_seq (
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
      .valid_o     (rd_valid_o[c]),
      .ready_i     (rd_ready_i[c]),
      .addr_o      (rd_addr_o[32*c +: 32]),
      .beats_o     (rd_beats_o[5*c +: 5]),
      .spm_o       (seq_spm[SpmW*c +: SpmW]),
      .s0_o        (seq_s0[15*c +: 15]),
      .rec_o       (seq_rec[c]),
      .first_o     (seq_first[c]),
      .sig0_o      (seq_sig0[5*c +: 5]),
      .sig1_o      (seq_sig1[5*c +: 5])
    );
    assign rd_tag_o[TagW*c +: TagW]     = {seq_spm[SpmW*c +: SpmW], seq_s0[15*c +: 15], seq_rec[c], seq_first[c]};
    assign rd_end_tag_o[EndW*c +: EndW] = {seq_sig1[5*c +: 5], seq_sig0[5*c +: 5]};
  end

  // ---------------------------------------------------------------------------------------------------------------------------
  // A beat, first cycle: which word of the run.

  logic [SpmW-1:0]   m_spm;
  logic [14:0]       m_s0;
  logic              m_rec, m_first;
  assign {m_spm, m_s0, m_rec, m_first} = beat_tag_i;

  logic [2*SpmW-1:0] at_q;           // next word of the run, relative
  logic [7:0]        idx_q;          // its number in the record
  logic [127:0]      exps0_q, exps1_q;
  logic              rid, r_beat, r_head, r_start;
  logic [SpmW-1:0]   r_at, r_next;
  logic [3:0]        r_idx;

  assign rid     = beat_ctx_i;
  assign r_beat  = beat_i != 2'b00;
  assign r_start = beat_first_i && m_first;  // first beat of a run
  assign r_head  = r_start && m_rec;
  assign r_at    = r_start ? m_spm : rid ? at_q[SpmW +: SpmW] : at_q[0 +: SpmW];
  assign r_idx   = rid ? idx_q[7:4] : idx_q[3:0];
  always_comb begin
    r_next = '0;
    if (r_beat) r_next = r_head ? m_spm : r_at + {{(SpmW-15){1'b0}}, m_s0};
  end

  logic            w_v_q, w_ctx_q, w_rec_q;  // a word to be written
  logic            w_head_q;                 // or the exponents of a record
  logic [SpmW-1:0] w_rel_q;
  logic [3:0]      w_idx_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      w_v_q    <= 1'b0;
      w_head_q <= 1'b0;
    end else begin
      w_v_q    <= r_beat && !r_head;
      w_head_q <= r_beat && r_head;
    end
  end

  always_ff @(posedge clk_i) begin
    if (r_beat) begin
      w_ctx_q <= rid;
      w_rec_q <= m_rec;
      w_rel_q <= r_at;
      w_idx_q <= r_idx;
      if (!rid) begin
        at_q[0 +: SpmW] <= r_next;
        idx_q[3:0]      <= r_head ? 4'd0 : r_idx + 4'd1;
      end else begin
        at_q[SpmW +: SpmW] <= r_next;
        idx_q[7:4]         <= r_head ? 4'd0 : r_idx + 4'd1;
      end
    end
    if (w_head_q && !w_ctx_q) exps0_q <= data_i;
    if (w_head_q && w_ctx_q)  exps1_q <= data_i;
  end

  // Second cycle: the window, the physical address, the exponent; then out.
  logic w_out;  // outside the SPM window
  logic x_v_q;
  assign w_out          = w_v_q && !drop[w_ctx_q] && w_rel_q >= (w_ctx_q ? spm_size_i[SpmW +: SpmW] : spm_size_i[0 +: SpmW]);
  assign spm_wr_valid_o = x_v_q && !drop[spm_wr_ctx_o];

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) x_v_q <= 1'b0;
    else         x_v_q <= w_v_q && !w_out && !drop[w_ctx_q];
  end

  always_ff @(posedge clk_i) begin
    if (w_v_q) begin
      spm_wr_addr_o <= w_rel_q + (w_ctx_q ? spm_base_i[SpmW +: SpmW] : spm_base_i[0 +: SpmW]);
      spm_wr_ctx_o  <= w_ctx_q;
      spm_wr_data_o <= data_i;
      spm_wr_exp_o  <= w_exp;
    end
  end

  logic [7:0] w_exp;
  logic [127:0] exps;
  always_comb begin
    exps  = '0;
    w_exp = 8'd0;
    if (w_v_q && w_rec_q) begin
      exps  = w_ctx_q ? exps1_q : exps0_q;
      w_exp = exps[8*w_idx_q +: 8];
    end
  end

  // ---------------------------------------------------------------------------------------------------------------------------
  // Signals.

  logic [31:0] inc;
  ct_dma_sig u_sig (
    .clk_i, .rst_ni,
    .mute_i    (drop),
    .end_i,
    .end_tag_i,
    .stay_o    (end_stay_o),
    .inc_o     (inc)
  );

  // (A cycle later: the last word is written then.)
  logic [1:0] told_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      sem_inc_o <= '0;
      told_q    <= 2'b00;
    end else begin
      sem_inc_o <= {drop[1] ? 16'd0 : inc[31:16], drop[0] ? 16'd0 : inc[15:0]};
      told_q    <= {inc[31:16] != 16'd0, inc[15:0] != 16'd0};
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) ev_wait_sem_o <= 2'b00;
    else         ev_wait_sem_o <= rd_still_i & ~seq_idle;
  end

  always_comb begin
    for (int c = 0; c < 2; c++) begin
      quiet_o[c] = seq_idle[c] && rd_idle_i[c] && inc[16*c +: 16] == 16'd0 && !told_q[c] && !(w_v_q && w_ctx_q == c[0]) && !(x_v_q && spm_wr_ctx_o == c[0]);
    end
  end

  // ---------------------------------------------------------------------------------------------------------------------------
  // Errors, the oldest work first.

  always_comb begin
    err_o      = 2'b00;
    err_code_o = '0;
    err_addr_o = '0;
    for (int c = 0; c < 2; c++) begin
      if (!(w_out || fault_i[c] || seq_err[c])) begin
        err_o[c] = 1'b0;
      end else if (w_out && w_ctx_q == c[0]) begin
        err_o[c]               = 1'b1;
        err_code_o[8*c +: 8]   = ct_pkg::ErrSpmWindow;
        err_addr_o[32*c +: 32] = {{(32-SpmW){1'b0}}, w_rel_q};
      end else if (fault_i[c]) begin
        err_o[c]               = 1'b1;
        err_code_o[8*c +: 8]   = ct_pkg::ErrAxiRead;
        err_addr_o[32*c +: 32] = beat_addr_i;
      end else if (seq_err[c]) begin
        err_o[c]               = 1'b1;
        err_code_o[8*c +: 8]   = ct_pkg::ErrDramReadWindow;
        err_addr_o[32*c +: 32] = seq_err_addr[32*c +: 32];
      end
    end
  end

  `CT_ASSUME(BeatOfOneContext_M, ((beat_i | fault_i) & {!beat_ctx_i, beat_ctx_i}) == 2'b00)
  `CT_ASSUME(NoBeatWhenDropped_M, ((beat_i | fault_i) & drop) == 2'b00)
  `CT_ASSERT(NothingWrittenWhenDropped_A, !spm_wr_valid_o || !drop[spm_wr_ctx_o])
`ifdef FORMAL
  `include "ct_dma_ld_formal.svh"
`endif

  `CT_COVER(SplitRecord_C, r_beat && m_rec && beat_first_i && !m_first)

endmodule

`default_nettype wire
