// SPDX-License-Identifier: Apache-2.0
//
// The writing half of the DMA: ST commands of both contexts, from the SPM through a buffer to AW, W and B.
//
//     ct_dma_seq ─> reader ─> ct_arbiter ─> SPM read ─> slots (4 per context) ─> ct_arbiter ─> AW, W     B ─> signals
//
// Slots       a piece (a record, or up to 16 words of a raw run) is read into a slot of 16 words and 16 exponents; only when it is
//             complete may its bursts be granted, so that W never waits for data. The words of all slots lie in one block RAM; the
//             beat of exponents goes first and is therefore kept apart. A record that crosses 4 KB leaves in two bursts.
// Grant       of AW and W together, per burst under every policy, when at most two beats of the burst before it are left and the memory has taken its
//             address: inference waits for no more than the burst under way and one granted in its last two beats. The burst that a
//             context has next is made out in the cycle before it asks.
// Entries     as in ct_dma_ld: a ring of 16 per context from grant to signals, whose second pointer follows B. BREADY is constant.
// Latency     command taken in t: first word asked of the SPM in t + 4; complete piece to first beat of W: 6 cycles.
// Throughput  a word a cycle from the SPM, a beat a cycle on W without a gap between bursts.
// Errors      as in ct_dma_ld. A burst that was granted is always finished; pieces not granted are dropped under halt_i and flush_i.
// Quiet       quiet_o[c]: of c nothing is left but granted bursts and their answers.
// Seal        seal_i[c], a pulse while quiet_o[c], makes these the bursts of the job before: they signal nothing any more, and an error
//             answer is no error of the context but a pulse of old_err_o[c] with old_err_addr_o, under flush_i[c] and halt_i[c], too.
//             old_o[c] is high from the next cycle until they are answered. One job before at a time.
// Abandoned   bursts (abandon_i) no longer count for idle_o; as many answers of the context are dropped when they come. If W still
//             stands in a burst of the context, its stores wait until that is through.

`default_nettype none
`include "ct_assert.svh"

module ct_dma_st #(
  parameter bit Gather = 1'b0           // context 0 has it (see ct_dma_seq)
) (
  input  logic                          clk_i,
  input  logic                          rst_ni,

  input  logic [ct_pkg::QosW-1:0] qos_i,
  input  logic                          freeze_i,
  input  logic [1:0]                    flush_i,
  input  logic [1:0]                    halt_i,
  input  logic [1:0]                    abandon_i,
  output logic [1:0]                    idle_o,
  output logic [1:0]                    quiet_o,
  input  logic [1:0]                    seal_i,
  output logic [1:0]                    old_o,
  output logic [1:0]                    old_err_o,
  output logic [31:0]                   old_err_addr_o,

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

  output logic                          m_axi_awvalid_o,
  input  logic                          m_axi_awready_i,
  output logic                          m_axi_awid_o,
  output logic [ct_pkg::AxiAddrW-1:0]   m_axi_awaddr_o,
  output logic [7:0]                    m_axi_awlen_o,
  output logic                          m_axi_wvalid_o,
  input  logic                          m_axi_wready_i,
  output logic [127:0]                  m_axi_wdata_o,
  output logic                          m_axi_wlast_o,
  input  logic                          m_axi_bvalid_i,
  input  logic                          m_axi_bid_i,
  input  logic [1:0]                    m_axi_bresp_i,

  output logic [1:0]                    ev_beats_o,
  output logic [1:0]                    ev_wait_arb_o,
  output logic [1:0]                    ev_wait_mem_o,
  output logic [1:0]                    ev_wait_sem_o,
  output logic [9:0]                    probe_o  // complete, accept (last beat), slot used (a beat), granted, ready (see ct_core)
);

  localparam int unsigned SpmW  = ct_pkg::SpmAddrW;
  localparam int unsigned CmdW  = ct_pkg::CmdW;
  localparam int unsigned SlotW = 32 + 5 + 1 + 10;
  localparam int unsigned TagW  = 8 + SpmW;

  // B as it came: nothing of the memory's stands in front of the entries.
  logic b_vld_q, b_id_q, b_err_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) b_vld_q <= 1'b0;
    else         b_vld_q <= m_axi_bvalid_i;
  end
  always_ff @(posedge clk_i) begin
    b_id_q  <= m_axi_bid_i;
    b_err_q <= m_axi_bresp_i[1];
  end

  logic [1:0] wjob;   // W has a burst of the context, or will have in the next cycle
  logic [1:0] left;   // abandoned while W had one
  logic [1:0] drop;   // for signals and errors
  logic [1:0] clear;  // for the reader and the slots
  assign drop  = flush_i | halt_i;
  assign clear = drop | left;

  // ---------------------------------------------------------------------------------------------------------------------------
  // What each context wants to write next.

  logic [1:0]        seq_idle, seq_valid, seq_ready, seq_err, seq_rec, seq_first;
  logic [63:0]       seq_addr, seq_err_addr;
  logic [9:0]        seq_beats, seq_sig0, seq_sig1;
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
      .sig0_o      (seq_sig0[5*c +: 5]),
      .sig1_o      (seq_sig1[5*c +: 5])
    );
  end

  // ---------------------------------------------------------------------------------------------------------------------------
  // Slots of a context, used in order. Pointers run modulo 8, slots modulo 4: fill = next to be read into, done = next to be
  // complete, send = next to be granted, free = next to be empty again. off = beats of the slot at send that are granted.

  logic [5:0]       fill_d, fill_q, done_d, done_q, send_d, send_q, free_d, free_q;
  logic [9:0]       off_d, off_q;
  logic [127:0]     exps_mem [0:7];
  (* no_rw_check *)                // a slot is read when it is complete, see WordsApart_A
  logic [127:0]     word_mem [0:127];

  // Reader: one piece of each context at a time, a word a cycle.
  logic [2*SlotW-1:0] slot;                 // next to be granted, of each context
  logic [1:0]        rd_v_d, rd_v_q;
  logic [9:0]        rd_left_q;             // words not yet asked for
  logic [7:0]        rd_idx_q;              // number of the next word in the piece
  logic [3:0]        rd_slot_q;
  logic [2*SpmW-1:0] rd_rel_q, rd_phys_q;   // its address
  logic [1:0]        rd_far_q;              // it is outside the SPM window
  logic [2*SpmW-1:0] rd_ahead_q;            // the address of the word after it
  logic [29:0]       rd_s0_q;
  logic [1:0]        rd_out, rd_req, rd_last, rd_gnt, rd_go, load;

  always_comb begin
    for (int c = 0; c < 2; c++) begin
      rd_out[c]  = rd_v_q[c] && rd_far_q[c];
      rd_req[c]  = rd_v_q[c] && !rd_out[c] && !clear[c];
      rd_last[c] = rd_left_q[5*c +: 5] == 5'd1;
    end
  end

  ct_arbiter u_rd_arbiter (
    .clk_i, .rst_ni, .qos_i,
    .flush_i (clear),
    .req_i   (rd_req),
    .defer_i (1'b0),
    .last_i  (rd_last),
    .take_i  (spm_rd_ready_i),
    .gnt_o   (rd_gnt)
  );

  assign spm_rd_valid_o = rd_gnt != 2'b00;
  assign spm_rd_addr_o  = rd_gnt[1] ? rd_phys_q[SpmW +: SpmW] : rd_phys_q[0 +: SpmW];
  assign spm_rd_ctx_o   = rd_gnt[1];
  assign rd_go          = spm_rd_ready_i ? rd_gnt : 2'b00;
  assign seq_ready      = load;

  always_comb begin
    for (int c = 0; c < 2; c++) begin
      load[c]   = seq_valid[c] && !clear[c] && fill_q[3*c +: 3] - free_q[3*c +: 3] != 3'd4 &&
                  (!rd_v_q[c] || (rd_go[c] && rd_last[c]));
      rd_v_d[c] = !clear[c] && (load[c] || (rd_v_q[c] && !(rd_go[c] && rd_last[c])));
    end
  end

`ifdef FORMAL
  logic [8*SlotW-1:0] f_slots;
`endif

  // (A slot memory of each context: with two write ports it would not be RAM.)
  for (genvar c = 0; c < 2; c++) begin : g_reader
`ifdef FORMAL
    (* mem2reg *)
`endif
    logic [SlotW-1:0] slot_mem [0:3];
    assign slot[SlotW*c +: SlotW] = slot_mem[send_q[3*c +: 2]];

    always_ff @(posedge clk_i) begin
      if (rd_go[c]) begin
        rd_left_q[5*c +: 5]       <= rd_left_q[5*c +: 5] - 5'd1;
        rd_idx_q[4*c +: 4]        <= rd_idx_q[4*c +: 4] + 4'd1;
        rd_rel_q[SpmW*c +: SpmW]  <= rd_ahead_q[SpmW*c +: SpmW];
        rd_far_q[c]               <= rd_ahead_q[SpmW*c +: SpmW] >= spm_size_i[SpmW*c +: SpmW];
        rd_phys_q[SpmW*c +: SpmW] <= rd_phys_q[SpmW*c +: SpmW] + {{(SpmW-15){1'b0}}, rd_s0_q[15*c +: 15]};
        rd_ahead_q[SpmW*c +: SpmW] <= rd_ahead_q[SpmW*c +: SpmW] + {{(SpmW-15){1'b0}}, rd_s0_q[15*c +: 15]};
      end
      if (load[c]) begin
        rd_left_q[5*c +: 5] <= seq_beats[5*c +: 5] - {4'd0, seq_rec[c]};
        rd_idx_q[4*c +: 4]  <= 4'd0;
        rd_slot_q[2*c +: 2] <= fill_q[3*c +: 2];
        rd_s0_q[15*c +: 15] <= seq_s0[15*c +: 15];
        if (seq_first[c]) begin
          rd_rel_q[SpmW*c +: SpmW]  <= seq_spm[SpmW*c +: SpmW];
          rd_far_q[c]               <= seq_spm[SpmW*c +: SpmW] >= spm_size_i[SpmW*c +: SpmW];
          rd_ahead_q[SpmW*c +: SpmW] <= seq_spm[SpmW*c +: SpmW] + {{(SpmW-15){1'b0}}, seq_s0[15*c +: 15]};
          rd_phys_q[SpmW*c +: SpmW] <= seq_spm[SpmW*c +: SpmW] + spm_base_i[SpmW*c +: SpmW];
        end
        slot_mem[fill_q[3*c +: 2]] <= {seq_addr[32*c +: 32], seq_beats[5*c +: 5], seq_rec[c],
                                       seq_sig1[5*c +: 5], seq_sig0[5*c +: 5]};
      end
    end
`ifdef FORMAL
    assign f_slots[4*SlotW*c +: 4*SlotW] = {slot_mem[3], slot_mem[2], slot_mem[1], slot_mem[0]};
`endif
  end

  // What was asked for comes two cycles later, with its tag: context, slot, number of the word, last of the piece, address.
  logic [1:0]      tag_v_q;
  logic [TagW-1:0] tag0_q, tag1_q;
  logic            t_ctx, t_last;
  logic [1:0]      t_slot;
  logic [3:0]      t_idx;
  logic [SpmW-1:0] t_phys;
  logic            t_bad, t_good;
  logic [1:0]      tags;  // words of the context are on their way

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) tag_v_q <= 2'b00;
    else         tag_v_q <= {tag_v_q[0], rd_go != 2'b00};
  end

  always_ff @(posedge clk_i) begin
    if (rd_go[0]) tag0_q <= {1'b0, rd_slot_q[1:0], rd_idx_q[3:0], rd_last[0], rd_phys_q[0 +: SpmW]};
    if (rd_go[1]) tag0_q <= {1'b1, rd_slot_q[3:2], rd_idx_q[7:4], rd_last[1], rd_phys_q[SpmW +: SpmW]};
    if (tag_v_q[0]) tag1_q <= tag0_q;
  end

  assign {t_ctx, t_slot, t_idx, t_last, t_phys} = tag1_q;
  assign t_good  = tag_v_q[1] && !clear[t_ctx] && !spm_rd_perr_i;
  assign t_bad   = tag_v_q[1] && !clear[t_ctx] && spm_rd_perr_i;
  assign tags[0] = (tag_v_q[0] && !tag0_q[TagW-1]) || (tag_v_q[1] && !t_ctx);
  assign tags[1] = (tag_v_q[0] && tag0_q[TagW-1]) || (tag_v_q[1] && t_ctx);

  always_ff @(posedge clk_i) begin
    if (t_good) begin
      word_mem[{t_ctx, t_slot, t_idx}] <= spm_rd_data_i;
      for (int i = 0; i < 16; i++) begin
        if (t_idx == 4'(i)) exps_mem[{t_ctx, t_slot}][8*i +: 8] <= spm_rd_exp_i;
      end
    end
  end

  // ---------------------------------------------------------------------------------------------------------------------------
  // Grant of a burst: AW and W.

  logic [9:0]  put_d, put_q, ans_d, ans_q, sig_d, sig_q;  // ring of entries: put, answered, signalled (modulo 32, entries modulo 16)
  logic [9:0]  lost_d, lost_q;                            // abandoned bursts whose answers may still come
  logic [41:0] ent_mem [0:31];

  logic [1:0]       aw_req, aw_gnt;
  logic [63:0]      next_addr;   // next burst of each context
  logic [9:0]       next_beats;
  logic [1:0]       next_end;    // it is the last of its piece
  logic [1:0]       ok_d, ok_q;  // it was made out in the last cycle, as follows
  logic [63:0]      aw_addr;
  logic [9:0]       aw_beats;
  logic [1:0]       aw_end;
  logic [31:0]      aw_slot;     // without the address
  logic [1:0]       room_d, room_q;  // for one more burst, if none was granted in the last cycle
  logic [15:0]      who_slot;
  logic [31:0]      who_addr;
  logic [4:0]       who_beats;
  logic             aw_v_q, aw_id_q, aw_take, aw_go, who;
  logic [31:0]      aw_addr_q;
  logic [4:0]       aw_beats_q;

  always_comb begin
    next_addr  = '0;
    next_beats = '0;
    next_end   = 2'b00;
    for (int c = 0; c < 2; c++) if (done_q[3*c +: 3] != send_q[3*c +: 3]) begin
      // The second burst of a piece starts at the 4 KB page that the first one ended at.
      next_addr[32*c +: 32] = (off_q[5*c +: 5] == 5'd0) ? slot[SlotW*c + 16 +: 32] : {slot[SlotW*c + 24 +: 24] + 24'd1, 8'd0};
      next_beats[5*c +: 5]  = slot[SlotW*c + 11 +: 5] - off_q[5*c +: 5];
      next_end[c]           = 1'b1;
      // (Only a first burst crosses a page.)
      if ({1'b0, slot[SlotW*c + 16 +: 8]} + {4'd0, slot[SlotW*c + 11 +: 5]} > 9'd256 && off_q[5*c +: 5] == 5'd0) begin
        next_beats[5*c +: 5] = 5'd0 - slot[SlotW*c + 16 +: 5];
        next_end[c]          = 1'b0;
      end
    end
  end

  always_comb begin
    for (int c = 0; c < 2; c++) begin
      ok_d[c]   = done_q[3*c +: 3] != send_q[3*c +: 3] && !clear[c] && !(aw_go && aw_gnt[c]);
      room_d[c] = (put_q[5*c +: 5] - sig_q[5*c +: 5]) + lost_q[5*c +: 5] < 5'd16;
      aw_req[c] = ok_q[c] && !clear[c] && !freeze_i && room_q[c];
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      ok_q   <= 2'b00;
      room_q <= 2'b00;
    end else begin
      ok_q   <= ok_d;
      room_q <= room_d;
    end
  end

  always_ff @(posedge clk_i) begin
    aw_addr  <= next_addr;
    aw_beats <= next_beats;
    aw_end   <= next_end;
    aw_slot  <= {slot[SlotW +: 16], slot[0 +: 16]};
  end

  ct_arbiter u_aw_arbiter (
    .clk_i, .rst_ni, .qos_i,
    .flush_i (clear),
    .req_i   (aw_req),
    .defer_i (1'b0),
    .last_i  (2'b11),
    .take_i  (aw_take),
    .gnt_o   (aw_gnt)
  );

  assign aw_go     = aw_take && aw_gnt != 2'b00;
  assign who       = aw_gnt[1];

  // (No variable part-selects for this: Yosys makes shifters of them.)
  assign who_slot  = who ? aw_slot[31:16] : aw_slot[15:0];
  assign who_addr  = who ? aw_addr[63:32] : aw_addr[31:0];
  assign who_beats = who ? aw_beats[9:5] : aw_beats[4:0];

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) aw_v_q <= 1'b0;
    else         aw_v_q <= aw_go || (aw_v_q && !m_axi_awready_i);
  end

  always_ff @(posedge clk_i) begin
    if (aw_go) begin
      aw_id_q    <= who;
      aw_addr_q  <= who_addr;
      aw_beats_q <= who_beats;
      ent_mem[{who, who ? put_q[8:5] : put_q[3:0]}] <= {who_addr, aw_end[who] ? who_slot[9:0] : 10'd0};
    end
  end

  assign m_axi_awvalid_o = aw_v_q;
  assign m_axi_awid_o    = aw_id_q;
  assign m_axi_awaddr_o  = {aw_addr_q, 4'd0};
  assign m_axi_awlen_o   = {3'd0, aw_beats_q} - 8'd1;

  // ---------------------------------------------------------------------------------------------------------------------------
  // W: the burst being sent and the next one.

  typedef struct packed {
    logic       ctx;
    logic [1:0] slot;
    logic       rec;
    logic [4:0] words;  // of the piece
    logic [4:0] beat;   // next beat of the piece
    logic [4:0] left;   // beats left of the burst
    logic       fin;    // the piece ends with the burst
  } job_t;

  job_t       new_job, job_q, next_q;
  logic       job_v_d, job_v_q, next_v_d, next_v_q;
  logic       step;      // a beat of the job enters the pipe
  logic       job_end;
  logic       job_free;
  logic       adv;       // the output register takes a beat

  assign new_job.ctx   = who;
  assign new_job.slot  = who ? send_q[4:3] : send_q[1:0];
  assign new_job.rec   = who_slot[10];
  assign new_job.words = who_slot[15:11] - {4'd0, who_slot[10]};
  assign new_job.beat  = who ? off_q[9:5] : off_q[4:0];
  assign new_job.left  = who_beats;
  assign new_job.fin   = aw_end[who];

  assign aw_take = !aw_v_q && !next_v_q && (!job_v_q || job_q.left <= 5'd2);

  // Pipe: s1 = address given to the block RAM, then the output register.
  logic         s1_v_q, s1_ctx_q, s1_head_q, s1_last_q;
  logic [1:0]   s1_slot_q;
  logic [4:0]   s1_words_q;
  logic [127:0] s1_word_q;
  logic         w_v_q, w_ctx_q;
  logic [4:0]   w_idx;  // number of the word in the piece

  assign adv      = !w_v_q || m_axi_wready_i;
  assign step     = job_v_q && (!s1_v_q || adv);
  assign job_end  = step && job_q.left == 5'd1;
  assign job_free = !job_v_q || job_end;
  assign w_idx    = job_q.beat - {4'd0, job_q.rec};

  always_comb begin
    job_v_d  = job_v_q && !job_end;
    next_v_d = next_v_q;
    if (job_free && next_v_q) begin
      job_v_d  = 1'b1;
      next_v_d = 1'b0;
    end
    if (aw_go) begin
      if (job_free) job_v_d = 1'b1;
      else          next_v_d = 1'b1;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      job_v_q    <= 1'b0;
      next_v_q   <= 1'b0;
      s1_v_q     <= 1'b0;
      w_v_q      <= 1'b0;
      ev_beats_o <= 2'b00;
    end else begin
      job_v_q    <= job_v_d;
      next_v_q   <= next_v_d;
      s1_v_q     <= step || (s1_v_q && !adv);
      w_v_q      <= s1_v_q || (w_v_q && !m_axi_wready_i);
      ev_beats_o <= (w_v_q && m_axi_wready_i) ? {w_ctx_q, !w_ctx_q} : 2'b00;
    end
  end

  always_ff @(posedge clk_i) begin
    if (job_free && next_v_q) begin
      job_q <= next_q;
    end else if (job_free && aw_go) begin
      job_q <= new_job;
    end else if (step) begin
      job_q.beat <= job_q.beat + 5'd1;
      job_q.left <= job_q.left - 5'd1;
    end
    if (aw_go) next_q <= new_job;
  end

  always_ff @(posedge clk_i) begin
    if (step) begin
      s1_ctx_q   <= job_q.ctx;
      s1_slot_q  <= job_q.slot;
      s1_words_q <= job_q.words;
      s1_head_q  <= job_q.rec && job_q.beat == 5'd0;
      s1_last_q  <= job_q.left == 5'd1;
      s1_word_q  <= word_mem[{job_q.ctx, job_q.slot, w_idx[3:0]}];
    end
  end

  // The beat of exponents, zero for words that the record does not have.
  logic [127:0] head;
  always_comb begin
    head = '0;
    if (s1_v_q && s1_head_q) begin
      head = exps_mem[{s1_ctx_q, s1_slot_q}];
      for (int i = 0; i < 16; i++) begin
        if (5'(i) >= s1_words_q) head[8*i +: 8] = 8'd0;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (s1_v_q && adv) begin
      m_axi_wdata_o <= s1_head_q ? head : s1_word_q;
      m_axi_wlast_o <= s1_last_q;
      w_ctx_q       <= s1_ctx_q;
    end
  end

  assign m_axi_wvalid_o = w_v_q;

  assign wjob[0] = (job_v_q && !job_q.ctx) || (next_v_q && !next_q.ctx);
  assign wjob[1] = (job_v_q && job_q.ctx) || (next_v_q && next_q.ctx);

  // ---------------------------------------------------------------------------------------------------------------------------
  // B, the pointers and the signals.

  logic [1:0]  old_d, old_q;    // bursts of the job before are outstanding:
  logic [9:0]  mark_d, mark_q;  // those before this entry
  logic [1:0]  owed_d, owed_q;  // and some of their answers (new ones may come before the signals of all are passed over)
  logic        bid, b_lost, b_ours, b_old, b_bad;
  logic [31:0] b_addr;
  assign bid    = b_id_q;
  assign b_lost = b_vld_q && (bid ? lost_q[9:5] : lost_q[4:0]) != 5'd0;
  assign b_ours = b_vld_q && !b_lost && (bid ? ans_q[9:5] != put_q[9:5] : ans_q[4:0] != put_q[4:0]);
  assign b_old  = bid ? seal_i[1] || owed_q[1] : seal_i[0] || owed_q[0];
  assign b_bad  = b_ours && b_err_q && !b_old && !drop[bid];
  always_comb begin
    b_addr = '0;
    if (b_ours && b_err_q) b_addr = ent_mem[{bid, bid ? ans_q[8:5] : ans_q[3:0]}][41:10];
  end

  logic [1:0]  both;
  logic [1:0]  second_d, second_q, left_d, left_q;
  logic [31:0] inc_d, inc_q;
  logic [1:0]  mute;  // no signals
  logic [1:0]  answered;  // the entry at sig is
  logic [19:0] sigs;  // of the entries at sig

  always_comb begin
    sigs = '0;
    answered = 2'b00;
    for (int c = 0; c < 2; c++) begin
      // The last answer brings its signals at once, unless it is an error or the old job's.
      answered[c] = sig_q[5*c +: 5] != ans_q[5*c +: 5] || (b_ours && bid == c[0] && !b_err_q && !b_old);
      if (answered[c]) sigs[10*c +: 10] = ent_mem[{c[0], sig_q[5*c +: 4]}][9:0];
    end
  end

  assign mute = drop | old_q;

  always_comb begin
    put_d    = put_q;
    ans_d    = ans_q;
    sig_d    = sig_q;
    lost_d   = lost_q;
    mark_d   = mark_q;
    old_d    = old_q;
    owed_d   = owed_q;
    second_d = second_q;
    inc_d    = '0;
    both     = 2'b00;
    for (int c = 0; c < 2; c++) begin
      if (aw_go && aw_gnt[c]) put_d[5*c +: 5] = put_q[5*c +: 5] + 5'd1;
      if (b_lost && bid == c[0]) lost_d[5*c +: 5] = lost_q[5*c +: 5] - 5'd1;
      if (b_ours && bid == c[0]) ans_d[5*c +: 5] = ans_q[5*c +: 5] + 5'd1;
      if (answered[c]) begin
        both[c]         = !mute[c] && sigs[10*c + 9] && sigs[10*c + 5 +: 5] == sigs[10*c +: 5];
        second_d[c]     = both[c] && !second_q[c];
        sig_d[5*c +: 5] = second_d[c] ? sig_q[5*c +: 5] : sig_q[5*c +: 5] + 5'd1;
        if (!mute[c]) begin
          for (int s = 0; s < 16; s++) begin
            inc_d[16*c + s] = sigs[10*c +: 5] == {1'b1, 4'(s)} || sigs[10*c + 5 +: 5] == {1'b1, 4'(s)};
          end
        end
      end
      if (abandon_i[c]) begin
        lost_d[5*c +: 5] = lost_d[5*c +: 5] + (put_d[5*c +: 5] - ans_d[5*c +: 5]);
        put_d[5*c +: 5]  = 5'd0;
        ans_d[5*c +: 5]  = 5'd0;
        sig_d[5*c +: 5]  = 5'd0;
        second_d[c]      = 1'b0;
      end
      left_d[c] = (left_q[c] || abandon_i[c]) && (wjob[c] || tags[c]);
      mark_d[5*c +: 5] = seal_i[c] ? put_d[5*c +: 5] : mark_q[5*c +: 5];
      owed_d[c] = (seal_i[c] || owed_q[c]) && ans_d[5*c +: 5] != mark_d[5*c +: 5] && !abandon_i[c];
      old_d[c]  = (seal_i[c] || old_q[c]) && sig_d[5*c +: 5] != mark_d[5*c +: 5] && !abandon_i[c];
    end
  end

  assign left = left_q;

  // Under clear all slots are forgotten; nothing can be read into one before W is through with its burst: the flush lasts until
  // its answer has come, or the context is marked left.
  always_comb begin
    fill_d = fill_q;
    done_d = done_q;
    send_d = send_q;
    free_d = free_q;
    off_d  = off_q;
    for (int c = 0; c < 2; c++) begin
      if (t_good && t_last && t_ctx == c[0]) done_d[3*c +: 3] = done_q[3*c +: 3] + 3'd1;
      if (job_end && job_q.fin && job_q.ctx == c[0]) free_d[3*c +: 3] = free_q[3*c +: 3] + 3'd1;
      if (aw_go && aw_gnt[c]) begin
        off_d[5*c +: 5] = off_q[5*c +: 5] + aw_beats[5*c +: 5];
        if (aw_end[c]) begin
          off_d[5*c +: 5]  = 5'd0;
          send_d[3*c +: 3] = send_q[3*c +: 3] + 3'd1;
        end
      end
      if (load[c]) fill_d[3*c +: 3] = fill_q[3*c +: 3] + 3'd1;
      if (clear[c]) begin
        fill_d[3*c +: 3] = 3'd0;
        done_d[3*c +: 3] = 3'd0;
        send_d[3*c +: 3] = 3'd0;
        free_d[3*c +: 3] = 3'd0;
        off_d[5*c +: 5]  = 5'd0;
      end
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      fill_q   <= '0;
      done_q   <= '0;
      send_q   <= '0;
      free_q   <= '0;
      off_q    <= '0;
      rd_v_q   <= '0;
      put_q    <= '0;
      ans_q    <= '0;
      sig_q    <= '0;
      lost_q   <= '0;
      second_q <= '0;
      inc_q    <= '0;
      left_q   <= '0;
      mark_q   <= '0;
      old_q    <= '0;
      owed_q   <= '0;
      old_err_o <= '0;
    end else begin
      fill_q   <= fill_d;
      done_q   <= done_d;
      send_q   <= send_d;
      free_q   <= free_d;
      off_q    <= off_d;
      rd_v_q   <= rd_v_d;
      put_q    <= put_d;
      ans_q    <= ans_d;
      sig_q    <= sig_d;
      lost_q   <= lost_d;
      second_q <= second_d;
      inc_q    <= inc_d;
      left_q   <= left_d;
      mark_q   <= mark_d;
      old_q    <= old_d;
      owed_q   <= owed_d;
      old_err_o <= (b_ours && b_old && b_err_q) ? {bid, !bid} : 2'b00;
    end
  end

  always_ff @(posedge clk_i) begin
    if (b_ours && b_err_q) old_err_addr_o <= b_addr;
  end

  assign old_o     = old_q;
  assign sem_inc_o = inc_q;

  logic [1:0] beat;
  assign beat    = {step && job_q.ctx, step && !job_q.ctx};

  // A cycle of a context is one of these or a beat on W, or it writes nothing.
  logic [1:0] sent, pend, work;
  always_comb begin
    for (int c = 0; c < 2; c++) begin
      sent[c] = w_v_q && m_axi_wready_i && w_ctx_q == c[0];
      pend[c] = done_q[3*c +: 3] != send_q[3*c +: 3] || wjob[c] || (s1_v_q && s1_ctx_q == c[0]) || (w_v_q && w_ctx_q == c[0]);
      work[c] = pend[c] || fill_q[3*c +: 3] != done_q[3*c +: 3] || put_q[5*c +: 5] != ans_q[5*c +: 5];
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      ev_wait_arb_o <= 2'b00;
      ev_wait_mem_o <= 2'b00;
      ev_wait_sem_o <= 2'b00;
    end else begin
      ev_wait_arb_o <= ~sent & pend & {sent[0], sent[1]};
      ev_wait_mem_o <= ~sent & work & ~(pend & {sent[0], sent[1]});
      ev_wait_sem_o <= ~sent & ~work & ~seq_idle;
    end
  end

  assign probe_o = {answered & ~second_d, beat & {2{job_end}}, beat, aw_go ? aw_gnt : 2'b00, aw_req};

  always_comb begin
    for (int c = 0; c < 2; c++) begin
      quiet_o[c] = seq_idle[c] && fill_q[3*c +: 3] == send_q[3*c +: 3] && !rd_v_q[c] && !tags[c];
      idle_o[c] = seq_idle[c] && put_q[5*c +: 5] == sig_q[5*c +: 5] && inc_q[16*c +: 16] == 16'd0 &&
                  fill_q[3*c +: 3] == free_q[3*c +: 3] && !rd_v_q[c] && !tags[c];
    end
  end

  // ---------------------------------------------------------------------------------------------------------------------------
  // Errors, the oldest work first.

  always_comb begin
    err_o      = 2'b00;
    err_code_o = '0;
    err_addr_o = '0;
    for (int c = 0; c < 2; c++) begin
      if (b_bad && bid == c[0]) begin
        err_o[c]               = 1'b1;
        err_code_o[8*c +: 8]   = ct_pkg::ErrAxiWrite;
        err_addr_o[32*c +: 32] = b_addr;
      end else if (t_bad && t_ctx == c[0]) begin
        err_o[c]               = 1'b1;
        err_code_o[8*c +: 8]   = ct_pkg::ErrParity;
        err_addr_o[32*c +: 32] = {{(32-SpmW){1'b0}}, t_phys};
      end else if (rd_out[c] && !clear[c]) begin
        err_o[c]               = 1'b1;
        err_code_o[8*c +: 8]   = ct_pkg::ErrSpmWindow;
        err_addr_o[32*c +: 32] = {{(32-SpmW){1'b0}}, rd_rel_q[SpmW*c +: SpmW]};
      end else if (seq_err[c]) begin
        err_o[c]               = 1'b1;
        err_code_o[8*c +: 8]   = ct_pkg::ErrDramWriteWindow;
        err_addr_o[32*c +: 32] = seq_err_addr[32*c +: 32];
      end
    end
  end

  logic unused_bits;
  assign unused_bits = ^{m_axi_bresp_i[0], w_idx[4]};

  `CT_ASSERT(SpmAnswersInTwo_A, spm_rd_vld_i == tag_v_q[1])
  `CT_ASSERT(SlotsInOrder0_A, 3'(fill_q[2:0] - free_q[2:0]) <= 3'd4 && 3'(send_q[2:0] - free_q[2:0]) <= 3'(done_q[2:0] - free_q[2:0]) &&
                              3'(done_q[2:0] - free_q[2:0]) <= 3'(fill_q[2:0] - free_q[2:0]))
  `CT_ASSERT(SlotsInOrder1_A, 3'(fill_q[5:3] - free_q[5:3]) <= 3'd4 && 3'(send_q[5:3] - free_q[5:3]) <= 3'(done_q[5:3] - free_q[5:3]) &&
                              3'(done_q[5:3] - free_q[5:3]) <= 3'(fill_q[5:3] - free_q[5:3]))
  `CT_ASSERT(WordsApart_A, !(step && t_good) || {t_ctx, t_slot} != {job_q.ctx, job_q.slot})
  `CT_ASSERT(BurstInPage_A, !aw_v_q || {1'b0, aw_addr_q[7:0]} + {4'd0, aw_beats_q} <= 9'd256)
  `CT_ASSERT(InferenceFirst_A, !(qos_i[ct_pkg::QosStrict] && aw_req[0] && aw_take) || aw_gnt == 2'b01)
  `CT_ASSERT(AnsweredAfterPut_A, 5'(ans_q[4:0] - sig_q[4:0]) <= 5'(put_q[4:0] - sig_q[4:0]) &&
                                 5'(ans_q[9:5] - sig_q[9:5]) <= 5'(put_q[9:5] - sig_q[9:5]))
  `CT_ASSUME(SealWhenQuiet_M, (seal_i & ~quiet_o) == 2'b00 && (seal_i & (old_q | clear)) == 2'b00)
`ifdef FORMAL
  `include "ct_dma_st_formal.svh"
`endif

  `CT_COVER(SecondBurst_C, aw_go && new_job.beat != 5'd0)

endmodule

`default_nettype wire
