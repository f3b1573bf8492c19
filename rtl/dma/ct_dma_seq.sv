// SPDX-License-Identifier: Apache-2.0
//
// Walks the loops of one LD or ST command and cuts its runs into pieces, a piece in two cycles; one instance per side and context.
//
// Order       for i2, for i1: a run at DRAM Dram + i2*D2 + i1*D1 and SPM Spm + i2*S2 + i1*S1, all modulo the width of the field. A
//             record (Hdr) is one piece of Nb + 1 beats, any other run is cut into pieces of 16 beats. A piece never crosses 4 KB;
//             with SplitRecords = 0 that is not true of records, and whoever takes them cuts them.
// Semaphores  Wait0 before the first piece of each step of i2, Wait1 and Wait2 with the first of the command: all needed in one cycle,
//             sem_dec_o in the cycle after they are taken (nobody else waits for them, and the next are looked at later). Sig0 goes with the last piece of a step, Sig1 with the last of the
//             command: sig0_o and sig1_o are the fields of the command, zero where the piece does not carry them.
// Latency     command taken in t, first piece offered in t + 3, then one in every second cycle, whatever ends between them: a piece is cut
//             in one cycle and the walk goes on in the next, while the piece is held against the window.
// Gather      (parameter Gather) a command with the bit has the steps of i2 at Dram + an address that is asked for: gat_valid_o with the
//             number of the step in gat_row_o until gat_gnt_i, the address in the next cycle (gat_vld_i, gat_addr_i). The next step's is
//             asked for while this one is cut: steps of two pieces or more lose no cycle, the first one four. D2 is not used.
// Window      a piece that is not inside [base_i, limit_i) is never offered: err_o is high (a level) with its first unit outside. (The
//             window is looked at once, in the cycle before.)
// Handshake   valid_o holds until ready_i, but flush_i takes it away; halt_i hides it and stops the walk until a flush.

`default_nettype none
`include "ct_assert.svh"

module ct_dma_seq #(
  parameter bit SplitRecords = 1'b1,
  parameter bit Gather       = 1'b0
) (
  input  logic                        clk_i,
  input  logic                        rst_ni,

  input  logic                        flush_i,
  input  logic                        halt_i,
  output logic                        idle_o,

  input  logic                        cmd_valid_i,
  input  logic [ct_pkg::CmdW-1:0]     cmd_i,
  output logic                        cmd_ready_o,
  input  logic [15:0]                 sem_nz_i,
  output logic [15:0]                 sem_dec_o,

  output logic                        gat_valid_o,
  output logic [3:0]                  gat_row_o,
  input  logic                        gat_gnt_i,
  input  logic                        gat_vld_i,
  input  logic [31:0]                 gat_addr_i,

  input  logic [31:0]                 base_i,
  input  logic [31:0]                 limit_i,
  output logic                        err_o,
  output logic [31:0]                 err_addr_o,

  output logic                        valid_o,
  input  logic                        ready_i,
  output logic [31:0]                 addr_o,   // units of 16 bytes
  output logic [4:0]                  beats_o,  // 1..17
  output logic [ct_pkg::SpmAddrW-1:0] spm_o,    // of the run's first word, relative
  output logic [14:0]                 s0_o,     // between words of the run
  output logic                        rec_o,    // the run is a record
  output logic                        first_o,  // first piece of the run
  output logic [4:0]                  sig0_o,
  output logic [4:0]                  sig1_o
);

  localparam int unsigned SpmW = ct_pkg::SpmAddrW;

  // The command, as far as it is needed again.
  logic [4:0]      wait0_q, sig0_q, sig1_q;
  logic            rec_q;
  logic [8:0]      len_q;         // beats of a run
  logic [14:0]     s0_q;
  logic [23:0]     d1_q, d2_q;
  logic [11:0]     n1_q;          // runs of a step after the first
  logic [SpmW-1:0] s1_q, s2_q;

  // Where the walk stands: the piece to be cut next.
  logic            act_d, act_q;  // a command is being walked
  logic            new_run_q;     // nothing of the run
  logic [11:0]     i1_q, i2_q;    // runs and steps after this one
  logic [31:0]     addr_q;
  logic [8:0]      rem_q;         // beats left of the run
  logic [31:0]     run_addr_q, step_addr_q;
  logic [SpmW-1:0] run_spm_q, step_spm_q;

  // With Gather: the command has it; its step has no address yet; the next address is here.
  logic            gather_q, miss_q, gat_vld_q;
  logic [31:0]     gat_addr_q;

  // The piece that was cut last, until it is on offer; in the first cycle of it (step_q) the walk goes on.
  logic            cut_d, cut_q, step_q;
  logic [31:0]     cut_addr_q;
  logic [32:0]     cut_end_q;     // first unit after it
  logic [4:0]      cut_beats_q, cut_sig0_q, cut_sig1_q;
  logic [SpmW-1:0] cut_spm_q;
  logic            cut_first_q, cut_rec_q;
  logic [14:0]     cut_s0_q;
  logic            run_end_q, step_end_q, cmd_end_q;  // it ends a run, a step, the command

  // The piece on offer, or the one that may not be.
  logic            out_d, out_q, bad_q;
  logic            low_q;         // its first unit is outside

  function automatic logic [15:0] sem_mask(input logic [4:0] field);
    sem_mask = field[4] ? 16'd1 << field[3:0] : 16'd0;
  endfunction

  // Cut: as much as remains of the run, at most a burst, not beyond the 4 KB page.
  logic [5:0]  most;
  logic [4:0]  beats;
  logic [32:0] piece_end;
  logic        run_end;

  logic [15:0] need_q;            // what the next piece waits for
  logic        go, move;

  // (Behind act_q, so that a simulator skips it while nothing is walked; out of it nothing is used then.)
  always_comb begin
    most      = '0;
    beats     = '0;
    piece_end = '0;
    run_end   = 1'b0;
    if (act_q) begin
      if (!rec_q)            most = (addr_q[7:4] == 4'hf) ? 6'd16 - {2'd0, addr_q[3:0]} : 6'd16;
      else if (SplitRecords) most = (addr_q[7:5] == 3'h7) ? 6'd32 - {1'b0, addr_q[4:0]} : 6'd32;
      else                   most = 6'd17;
      run_end   = rem_q <= {3'd0, most};
      beats     = run_end ? rem_q[4:0] : most[4:0];
      piece_end = {1'b0, addr_q} + {28'd0, beats};
    end
  end

  assign go          = act_q && !miss_q && !cut_q && !halt_i && !flush_i && (need_q & ~sem_nz_i) == 16'd0;
  assign move        = cut_q && !halt_i && (!(out_q || bad_q) || (valid_o && ready_i));
  assign cmd_ready_o = !flush_i && !halt_i && (!act_q || (step_q && cmd_end_q));

  // Where it goes from there: on in the run, to the next run, or to the next step. With Gather step_addr_q stays where it is.
  logic [31:0]     next_addr, stride;
  logic [SpmW-1:0] next_spm;

  always_comb begin
    stride    = '0;
    next_addr = '0;
    next_spm  = '0;
    if (act_q) begin
      stride    = (miss_q || (step_end_q && gather_q)) ? gat_addr_q : step_end_q ? {{8{d2_q[23]}}, d2_q} : {{8{d1_q[23]}}, d1_q};
      next_addr = (run_end_q || miss_q) ? ((step_end_q || miss_q) ? step_addr_q : run_addr_q) + stride : cut_end_q[31:0];
      next_spm  = (step_end_q ? step_spm_q : run_spm_q) + (step_end_q ? s2_q : s1_q);
    end
  end

  logic load;
  assign load = cmd_valid_i && cmd_ready_o;

  // The addresses of the steps: one in hand before it is needed, if there is time.
  logic use_addr;                 // it becomes the step's
  assign use_addr = gat_vld_q && (miss_q || (step_q && step_end_q));

  logic [3:0] gat_row_q, gat_last_q;  // to be asked for; the command's last
  logic       gat_more_q;             // it is one of the command's
  logic       gat_asked_q;            // an answer comes in this cycle

  if (Gather) begin : g_gather
    assign gat_valid_o = act_q && gather_q && gat_more_q && !gat_asked_q && !gat_vld_q;
    assign gat_row_o   = gat_row_q;

    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        gather_q  <= 1'b0;
        miss_q    <= 1'b0;
        gat_vld_q <= 1'b0;
        gat_asked_q   <= 1'b0;
      end else begin
        if (load) gather_q <= cmd_i[ct_pkg::DmaGatherLsb];
        gat_asked_q <= gat_valid_o && gat_gnt_i && !flush_i;
        if (load || flush_i)                gat_vld_q <= 1'b0;
        else if (gat_vld_i && gat_asked_q)      gat_vld_q <= 1'b1;
        else if (use_addr)                  gat_vld_q <= 1'b0;
        if (load)                                                     miss_q <= cmd_i[ct_pkg::DmaGatherLsb];
        else if (flush_i)                                             miss_q <= 1'b0;
        else if (use_addr)                                            miss_q <= 1'b0;
        else if (step_q && step_end_q && !cmd_end_q && gather_q)      miss_q <= 1'b1;
      end
    end

    always_ff @(posedge clk_i) begin
      if (gat_vld_i && gat_asked_q) gat_addr_q <= gat_addr_i;
      if (load) begin
        gat_row_q  <= '0;
        gat_last_q <= cmd_i[ct_pkg::DmaN2Lsb +: 4] - 4'd1;
        gat_more_q <= 1'b1;
      end else if (gat_valid_o && gat_gnt_i) begin
        gat_row_q  <= gat_row_q + 4'd1;
        gat_more_q <= (gat_row_q != gat_last_q);
      end
    end
  end else begin : g_none
    assign gather_q    = 1'b0;
    assign miss_q      = 1'b0;
    assign gat_vld_q   = 1'b0;
    assign gat_addr_q  = '0;
    assign gat_row_q   = '0;
    assign gat_last_q  = '0;
    assign gat_more_q  = 1'b0;
    assign gat_asked_q = 1'b0;
    assign gat_valid_o = 1'b0;
    assign gat_row_o   = '0;
    logic unused_gather;
    assign unused_gather = ^{gat_gnt_i, gat_vld_i, gat_addr_i, use_addr, gat_row_q, gat_last_q, gat_more_q, gat_asked_q};
  end

  always_comb begin
    act_d = act_q;
    cut_d = cut_q;
    out_d = out_q || bad_q;
    if (valid_o && ready_i) out_d = 1'b0;
    if (move) begin
      cut_d = 1'b0;
      out_d = 1'b1;
    end
    if (go) cut_d = 1'b1;
    if (step_q && cmd_end_q) act_d = 1'b0;
    if (load) act_d = 1'b1;
    if (flush_i) begin
      act_d = 1'b0;
      cut_d = 1'b0;
      out_d = 1'b0;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      act_q  <= 1'b0;
      cut_q  <= 1'b0;
      step_q <= 1'b0;
      out_q  <= 1'b0;
      bad_q  <= 1'b0;
    end else begin
      act_q  <= act_d;
      cut_q  <= cut_d;
      step_q <= go;
      out_q  <= out_d && (move ? !outside : out_q);
      bad_q  <= out_d && (move ? outside : bad_q);
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) sem_dec_o <= '0;
    else         sem_dec_o <= go ? need_q : '0;
  end

  always_ff @(posedge clk_i) begin
    if (load)        need_q <= sem_mask(cmd_i[ct_pkg::AllWait0Lsb +: 5]) | sem_mask(cmd_i[ct_pkg::AllWait1Lsb +: 5]) | sem_mask(cmd_i[ct_pkg::AllWait2Lsb +: 5]);
    else if (step_q) need_q <= step_end_q ? sem_mask(wait0_q) : '0;
  end

  always_ff @(posedge clk_i) begin
    if (load) begin
      wait0_q     <= cmd_i[ct_pkg::AllWait0Lsb +: 5];
      sig0_q      <= cmd_i[ct_pkg::AllSig0Lsb +: 5];
      sig1_q      <= cmd_i[ct_pkg::AllSig1Lsb +: 5];
      rec_q       <= cmd_i[ct_pkg::DmaHdrLsb];
      len_q       <= cmd_i[ct_pkg::DmaNbLsb +: 9] + {8'd0, cmd_i[ct_pkg::DmaHdrLsb]};
      rem_q       <= cmd_i[ct_pkg::DmaNbLsb +: 9] + {8'd0, cmd_i[ct_pkg::DmaHdrLsb]};
      s0_q        <= cmd_i[ct_pkg::DmaS0Lsb +: 15];
      d1_q        <= cmd_i[ct_pkg::DmaD1Lsb +: 24];
      d2_q        <= cmd_i[ct_pkg::DmaD2Lsb +: 24];
      s1_q        <= cmd_i[ct_pkg::DmaS1Lsb +: 20];
      s2_q        <= cmd_i[ct_pkg::DmaS2Lsb +: 20];
      n1_q        <= cmd_i[ct_pkg::DmaN1Lsb +: 12] - 12'd1;
      i1_q        <= cmd_i[ct_pkg::DmaN1Lsb +: 12] - 12'd1;
      i2_q        <= cmd_i[ct_pkg::DmaN2Lsb +: 12] - 12'd1;
      addr_q      <= cmd_i[ct_pkg::DmaDramLsb +: 32];
      run_addr_q  <= cmd_i[ct_pkg::DmaDramLsb +: 32];
      step_addr_q <= cmd_i[ct_pkg::DmaDramLsb +: 32];
      run_spm_q   <= cmd_i[ct_pkg::DmaSpmLsb +: 20];
      step_spm_q  <= cmd_i[ct_pkg::DmaSpmLsb +: 20];
      new_run_q   <= 1'b1;
    end else if (step_q) begin
      new_run_q  <= run_end_q;
      rem_q      <= run_end_q ? len_q : rem_q - {4'd0, cut_beats_q};
      addr_q     <= next_addr;
      if (run_end_q) begin
        run_addr_q <= next_addr;
        run_spm_q  <= next_spm;
        i1_q       <= step_end_q ? n1_q : i1_q - 12'd1;
      end
      if (step_end_q) begin
        if (!gather_q) step_addr_q <= next_addr;
        step_spm_q  <= next_spm;
        i2_q        <= i2_q - 12'd1;
      end
    end else if (miss_q && gat_vld_q) begin
      addr_q     <= next_addr;
      run_addr_q <= next_addr;
    end
  end

  logic last_run, last_step;
  assign last_run  = i1_q == 12'd0;
  assign last_step = i2_q == 12'd0;

  always_ff @(posedge clk_i) begin
    if (go) begin
      run_end_q   <= run_end;
      step_end_q  <= run_end && last_run;
      cmd_end_q   <= run_end && last_run && last_step;
      cut_addr_q  <= addr_q;
      cut_end_q   <= piece_end;
      cut_beats_q <= beats;
      cut_spm_q   <= run_spm_q;
      cut_s0_q    <= s0_q;
      cut_rec_q   <= rec_q;
      cut_first_q <= new_run_q;
      cut_sig0_q  <= (run_end && last_run) ? sig0_q : 5'd0;
      cut_sig1_q  <= (run_end && last_run && last_step) ? sig1_q : 5'd0;
    end
    if (move) begin
      addr_o  <= cut_addr_q;
      beats_o <= cut_beats_q;
      spm_o   <= cut_spm_q;
      s0_o    <= cut_s0_q;
      rec_o   <= cut_rec_q;
      first_o <= cut_first_q;
      sig0_o  <= cut_sig0_q;
      sig1_o  <= cut_sig1_q;
      low_q   <= cut_addr_q < base_i || cut_addr_q >= limit_i;
    end
  end

  // The window, of the piece that was cut.
  logic outside;
  assign outside = cut_addr_q < base_i || cut_end_q > {1'b0, limit_i};

  assign err_o      = bad_q && !halt_i && !flush_i;
  assign err_addr_o = !bad_q ? '0 : low_q ? addr_o : limit_i;
  assign valid_o    = out_q && !halt_i && !flush_i;
  assign idle_o     = !act_q && !cut_q && !out_q && !bad_q;

  logic unused_cmd;
  assign unused_cmd = ^cmd_i;

  `CT_ASSUME(RunNotEmpty_M, !load || cmd_i[ct_pkg::DmaNbLsb +: 9] != 9'd0)
  `CT_ASSUME(RunFits_M, !load || cmd_i[ct_pkg::DmaNbLsb +: 9] <= (cmd_i[ct_pkg::DmaHdrLsb] ? 9'd16 : 9'd256))
  `CT_ASSUME(StepsFit_M, !load || !Gather || !cmd_i[ct_pkg::DmaGatherLsb] || cmd_i[ct_pkg::DmaN2Lsb +: 12] <= 12'd16)
  `CT_ASSUME(LoopsNotEmpty_M, !load || (cmd_i[ct_pkg::DmaN1Lsb +: 12] != 12'd0 && cmd_i[ct_pkg::DmaN2Lsb +: 12] != 12'd0))
  `CT_ASSERT(PieceIsABurst_A, !valid_o || (beats_o != 5'd0 && beats_o <= (rec_o ? 5'd17 : 5'd16)))
  `CT_ASSERT(PieceInPage_A, !valid_o || (rec_o && !SplitRecords) || 9'(addr_o[7:0]) + 9'(beats_o) <= 9'd256)
  `CT_ASSERT(OnlyTakesWhatIsThere_A, !go || (need_q & ~sem_nz_i) == 16'd0)

`ifdef FORMAL
  `include "ct_dma_seq_formal.svh"
`endif

endmodule

`default_nettype wire
