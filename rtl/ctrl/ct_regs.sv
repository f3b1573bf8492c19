// SPDX-License-Identifier: Apache-2.0
//
// The core's registers on AXI4-Lite, counters, interrupt, debug access, global reset. The map: rtl/spec/ct_regs.def.
//
// Writes      address and data are taken apart, two of each ahead, whatever the other inputs are: no output of this block depends on an
//             input of the same cycle. The write takes effect when both are there and an answer can follow, at the earliest in the cycle
//             after the later of them was taken, one a cycle; the answer (always OKAY) comes in the next. Only whole words: a write
//             with a WSTRB other than 1111 changes nothing. Writes to read-only and unmapped addresses change nothing.
//             What a write sets off in a context (tail_we_o, reset_o, cancel_o, cpl_pop_o) goes on a cycle later, from registers, all by
//             the same way, so in the order of the writes: a read that is asked for after the answer sees it done.
// Reads       rvalid_o three cycles after the address (counters: 6 to 24); always OKAY, unmapped addresses read 0. One at a time.
//             Reading CYCLE_LO latches CYCLE_HI; reading the low half of a counter latches the high half (one latch for all
//             counters: read low, then high).
// Reset       CTRL bit 0 stops both contexts (their jobs end with RESET), waits until the memory port owes nothing (or DRAIN_LIMIT
//             says it is dead) and then resets everything on core_rst_no for a few cycles: all blocks, all registers, completions and
//             counters. The AXI4-Lite side and CYCLE go on; block RAM keeps its contents. The bit reads 1 until that is done.
//
// Registers   those of the whole core are in ct_regs_global, those of a context in ct_regs_ctx, the counters in ct_counters; reset values are there.
//             RING_LOG2 keeps to 0..10: a larger value is taken as 10.
//
// Requests     addresses 0x300..0x37f are ct_batch's: a write is taken when bat_wr_ready_i is high, too (a write of part of a word is taken and
//              forgotten); a read holds bat_rd_valid_o until bat_rd_vld_i brings the data.
//
// Parameters   what the capability registers say; Batcher = 0: there is no ct_batch, its addresses read 0, and POLICY 4 is 0. Contexts = 1: FEATURES
//              says that there is no training; the registers and counters of context 1, POLICY and FLOOR read 0. Compress = 0: no arena, its registers read 0;
//              1 needs both contexts.

`default_nettype none
`include "ct_assert.svh"

module ct_regs #(
  parameter  int unsigned Cols     = 16,
  parameter  int unsigned VpuLanes = 16,
  parameter  int unsigned SpmWords = 65536,
  parameter  int unsigned ClockHz  = 100000000,
  parameter  int unsigned DramMib  = 256,
  parameter  int unsigned Batcher  = 0,
  parameter  int unsigned Conv     = 0,
  parameter  int unsigned Contexts = 2,
  parameter  int unsigned Compress = 0,
  localparam int unsigned PageW    = ct_pkg::CompPageW,
  localparam int unsigned CplW     = ct_pkg::CplW,
  localparam int unsigned Counters = ct_pkg::NumCounters
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,

  // AXI4-Lite.
  input  logic                  s_axil_awvalid_i,
  output logic                  s_axil_awready_o,
  input  logic [11:0]           s_axil_awaddr_i,
  input  logic                  s_axil_wvalid_i,
  output logic                  s_axil_wready_o,
  input  logic [31:0]           s_axil_wdata_i,
  input  logic [3:0]            s_axil_wstrb_i,
  output logic                  s_axil_bvalid_o,
  input  logic                  s_axil_bready_i,
  output logic [1:0]            s_axil_bresp_o,
  input  logic                  s_axil_arvalid_i,
  output logic                  s_axil_arready_o,
  input  logic [11:0]           s_axil_araddr_i,
  output logic                  s_axil_rvalid_o,
  input  logic                  s_axil_rready_i,
  output logic [31:0]           s_axil_rdata_o,
  output logic [1:0]            s_axil_rresp_o,
  output logic                  irq_o,

  // Global.
  output logic                  core_rst_no,
  output logic [2:0]            policy_o,
  output logic [7:0]            floor_o,
  output logic [3:0]            train_cap_o,
  output logic                  freeze_o,
  output logic [31:0]           drain_limit_o,
  output logic [63:0]           cycle_o,
  output logic [63:0]           cycle_next_o,

  // Contexts, context 1 in the upper halves.
  output logic [2*32-1:0]       ring_base_o,
  output logic [2*4-1:0]        ring_log2_o,
  output logic [1:0]            tail_we_o,
  output logic [15:0]           tail_o,
  output logic [1:0]            reset_o,
  output logic [1:0]            cancel_o,
  output logic                  cancel_named_o,
  output logic [47:0]           cancel_num_o,      // the number, one more and two more
  output logic                  hold_o,
  output logic [2*32-1:0]       watchdog_o,
  output logic [2*32-1:0]       rd_base_o,
  output logic [2*32-1:0]       rd_limit_o,
  output logic [2*32-1:0]       wr_base_o,
  output logic [2*32-1:0]       wr_limit_o,
  output logic [2*20-1:0]       spm_base_o,
  output logic [2*20-1:0]       spm_size_o,
  output logic                  arena_reset_o,     // of context 1
  output logic [31:0]           arena_base_o,
  output logic [PageW:0]        arena_pages_o,
  input  logic [PageW:0]        arena_held_i,
  input  logic [PageW:0]        arena_most_i,
  input  logic [2*16-1:0]       tail_i,
  input  logic [2*16-1:0]       head_i,
  input  logic [2*3-1:0]        status_i,
  input  logic [1:0]            quiet_i,
  input  logic [1:0]            dead_i,
  input  logic [1:0]            cpl_valid_i,
  input  logic [2*5-1:0]        cpl_count_i,
  input  logic [2*CplW-1:0]     cpl_i,
  output logic [1:0]            cpl_pop_o,

  // ct_batch.
  output logic                  bat_wr_valid_o,
  input  logic                  bat_wr_ready_i,
  output logic [5:0]            bat_wr_word_o,
  output logic [31:0]           bat_wr_data_o,
  output logic                  bat_rd_valid_o,
  output logic [5:0]            bat_rd_word_o,
  input  logic                  bat_rd_vld_i,
  input  logic [31:0]           bat_rd_data_i,
  input  logic                  bat_irq_i,

  // Scratchpad debug.
  output logic                  flip_arm_o,
  output logic [19:0]           flip_addr_o,
  output logic [7:0]            flip_bit_o,
  output logic                  peek_o,
  output logic [19:0]           peek_addr_o,
  input  logic                  peek_vld_i,
  input  logic [127:0]          peek_data_i,
  input  logic [7:0]            peek_exp_i,
  input  logic                  peek_perr_i,

  // Counter events.
  input  logic [2*Counters-1:0] ev_i
);

  localparam int unsigned ResetCycles = 4;
  localparam logic [4:0]  BatBank     = 5'(ct_pkg::RegReqInput >> 7);

  // ---- Write channel --------------------------------------------------------------------------------------------------------

  logic        wr, bvalid_q;
  logic [11:0] waddr;
  logic [31:0] wdata;
  logic [3:0]  wstrb;
  logic        aw_valid, w_valid;
  logic        whole;      // address and whole word are there, and the answer can follow
  logic        wr_bat;     // the write is ct_batch's
  logic        wr_global;
  logic [1:0]  wr_ctx;

  ct_skid #(.Width(10)) u_aw (
    .clk_i, .rst_ni,
    .valid_i (s_axil_awvalid_i), .ready_o (s_axil_awready_o), .data_i (s_axil_awaddr_i[11:2]),
    .valid_o (aw_valid),         .ready_i (wr),               .data_o (waddr[11:2])
  );
  ct_skid #(.Width(36)) u_w (
    .clk_i, .rst_ni,
    .valid_i (s_axil_wvalid_i),  .ready_o (s_axil_wready_o),  .data_i ({s_axil_wstrb_i, s_axil_wdata_i}),
    .valid_o (w_valid),          .ready_i (wr),               .data_o ({wstrb, wdata})
  );

  logic unused_addr;  // a word has no bytes of its own
  assign unused_addr     = ^s_axil_awaddr_i[1:0];
  assign waddr[1:0]      = 2'b00;
  assign whole           = aw_valid && w_valid && (!bvalid_q || s_axil_bready_i);
  assign wr_bat          = (Batcher != 0) && (wstrb == 4'hf) && (waddr[11:7] == BatBank);
  assign bat_wr_valid_o  = whole && wr_bat;
  assign bat_wr_word_o   = {1'b0, waddr[6:2]};
  assign bat_wr_data_o   = wdata;

  assign wr              = whole && (!wr_bat || bat_wr_ready_i);
  assign s_axil_bvalid_o = bvalid_q;
  assign s_axil_bresp_o  = 2'b00;
  assign wr_global       = wr && (wstrb == 4'hf) && (waddr[11:8] == 4'h0);
  assign wr_ctx[0]       = wr && (wstrb == 4'hf) && (waddr[11:8] == 4'(ct_pkg::CtxBase >> 8));
  assign wr_ctx[1]       = wr && (wstrb == 4'hf) && (waddr[11:8] == 4'((ct_pkg::CtxBase + ct_pkg::CtxStride) >> 8));

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni)              bvalid_q <= 1'b0;
    else if (wr)              bvalid_q <= 1'b1;
    else if (s_axil_bready_i) bvalid_q <= 1'b0;
  end

  // ---- Cycle counter and global reset ----------------------------------------------------------------------------------------

  logic [63:0] cycle_q, cycle_next_q;
  logic        reset_pend_q;  // asked for, contexts are stopping
  logic        reset_now_q;   // core_rst_no is low
  logic [2:0]  reset_count_q;
  logic        reset_ask;
  logic        core_rst_n;

  assign cycle_o      = cycle_q;
  assign cycle_next_o = cycle_next_q;
  assign reset_ask    = wr_global && (waddr == ct_pkg::RegCtrl) && wdata[0] && !reset_pend_q;
  assign hold_o       = reset_pend_q;
  assign core_rst_n   = rst_ni && !reset_now_q;
  assign core_rst_no  = core_rst_n;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      cycle_q       <= '0;
      cycle_next_q  <= 64'd1;
      reset_pend_q  <= 1'b0;
      reset_now_q   <= 1'b0;
      reset_count_q <= '0;
    end else begin
      cycle_q      <= cycle_next_q;
      cycle_next_q <= cycle_next_q + 64'd1;
      if (reset_ask) begin
        reset_pend_q  <= 1'b1;
        reset_count_q <= '0;
      end else if (reset_pend_q) begin
        // ResetCycles for the contexts to hear of it, as long as they need, ResetCycles of reset.
        if (reset_count_q != 3'(ResetCycles)) begin
          reset_count_q <= reset_count_q + 3'd1;
        end else if (reset_now_q) begin
          reset_now_q  <= 1'b0;
          reset_pend_q <= 1'b0;
        end else if (quiet_i == 2'b11) begin
          reset_now_q   <= 1'b1;
          reset_count_q <= '0;
        end
      end
    end
  end

  // ---- Global registers -------------------------------------------------------------------------------------------------------

  logic [31:0] global_rdata, cycle_hi_q;
  logic        global_rvalid;
  logic [4:0]  rword;

  ct_regs_global #(
    .Cols(Cols), .VpuLanes(VpuLanes), .SpmWords(SpmWords), .ClockHz(ClockHz), .DramMib(DramMib),
    .Batcher(Batcher), .Conv(Conv), .Contexts(Contexts), .Compress(Compress)
  ) u_global (
    .clk_i,
    .rst_ni      (core_rst_n),
    .wr_i        (wr_global),
    .wr_addr_i   (waddr),
    .wr_data_i   (wdata),
    .rd_valid_i  (global_rvalid),
    .rd_word_i   (rword),
    .rd_data_o   (global_rdata),
    .hold_i      (reset_pend_q),
    .cycle_lo_i  (cycle_q[31:0]),
    .cycle_hi_i  (cycle_hi_q),
    .dead_i,
    .cpl_valid_i,
    .bat_irq_i,
    .irq_o,
    .policy_o, .floor_o, .train_cap_o, .freeze_o, .drain_limit_o,
    .flip_arm_o, .flip_addr_o, .flip_bit_o,
    .peek_o, .peek_addr_o, .peek_vld_i, .peek_data_i, .peek_exp_i, .peek_perr_i
  );

  // ---- Registers of the contexts --------------------------------------------------------------------------------------------

  logic [63:0] ctx_rdata;
  logic [1:0]  ctx_rvalid;
  logic [1:0]  ctx_tail_we, ctx_reset, ctx_cancel, ctx_pop, ctx_arena_reset;
  logic [63:0] ctx_arena_base;
  logic [2*(PageW+1)-1:0] ctx_arena_pages, ctx_held, ctx_most;
  assign ctx_held = {arena_held_i, {PageW + 1{1'b0}}};
  assign ctx_most = {arena_most_i, {PageW + 1{1'b0}}};

  for (genvar c = 0; c < 2; c++) begin : g_ctx
    if (c < Contexts) begin : g_on
      ct_regs_ctx #(.SpmWords(SpmWords), .SpmFirst(c * (SpmWords / 2)), .Compress((c == 1) ? Compress : 0)) u_ctx (
        .clk_i,
        .rst_ni      (core_rst_n),
        .wr_i        (wr_ctx[c]),
        .wr_offset_i (waddr[7:0]),
        .wr_data_i   (wdata),
        .rd_valid_i  (ctx_rvalid[c]),
        .rd_word_i   (rword),
        .rd_data_o   (ctx_rdata[32*c +: 32]),
        .ring_base_o (ring_base_o[32*c +: 32]),
        .ring_log2_o (ring_log2_o[4*c +: 4]),
        .tail_we_o   (ctx_tail_we[c]),
        .reset_o     (ctx_reset[c]),
        .cancel_o    (ctx_cancel[c]),
        .watchdog_o  (watchdog_o[32*c +: 32]),
        .rd_base_o   (rd_base_o[32*c +: 32]),
        .rd_limit_o  (rd_limit_o[32*c +: 32]),
        .wr_base_o   (wr_base_o[32*c +: 32]),
        .wr_limit_o  (wr_limit_o[32*c +: 32]),
        .spm_base_o  (spm_base_o[20*c +: 20]),
        .spm_size_o  (spm_size_o[20*c +: 20]),
        .arena_reset_o (ctx_arena_reset[c]),
        .arena_base_o  (ctx_arena_base[32*c +: 32]),
        .arena_pages_o (ctx_arena_pages[(PageW+1)*c +: PageW+1]),
        .arena_held_i  (ctx_held[(PageW+1)*c +: PageW+1]),
        .arena_most_i  (ctx_most[(PageW+1)*c +: PageW+1]),
        .tail_i      (tail_i[16*c +: 16]),
        .head_i      (head_i[16*c +: 16]),
        .status_i    (status_i[3*c +: 3]),
        .cpl_valid_i (cpl_valid_i[c]),
        .cpl_count_i (cpl_count_i[5*c +: 5]),
        .cpl_i       (cpl_i[CplW*c +: CplW]),
        .cpl_pop_o   (ctx_pop[c])
      );
    end else begin : g_off
      assign ctx_rdata[32*c +: 32]   = '0;
      assign ring_base_o[32*c +: 32] = '0;
      assign ring_log2_o[4*c +: 4]   = '0;
      assign watchdog_o[32*c +: 32]  = '0;
      assign rd_base_o[32*c +: 32]   = '0;
      assign rd_limit_o[32*c +: 32]  = '0;
      assign wr_base_o[32*c +: 32]   = '0;
      assign wr_limit_o[32*c +: 32]  = '0;
      assign spm_base_o[20*c +: 20]  = '0;
      assign spm_size_o[20*c +: 20]  = '0;
      assign {ctx_tail_we[c], ctx_reset[c], ctx_cancel[c], ctx_pop[c]} = '0;
      assign {ctx_arena_reset[c], ctx_arena_base[32*c +: 32], ctx_arena_pages[(PageW+1)*c +: PageW+1]} = '0;
      logic unused_off;
      assign unused_off = ^{wr_ctx[c], ctx_rvalid[c], tail_i[16*c +: 16], head_i[16*c +: 16], status_i[3*c +: 3], cpl_count_i[5*c +: 5], cpl_i[CplW*c +: CplW]};
    end
  end

  assign arena_reset_o = ctx_arena_reset[1];
  assign arena_base_o  = ctx_arena_base[63:32];
  assign arena_pages_o = ctx_arena_pages[PageW+1 +: PageW+1];
  logic unused_arena;
  assign unused_arena = ^{ctx_arena_reset[0], ctx_arena_base[31:0], ctx_arena_pages[PageW:0], ctx_held, ctx_most};

  // The pulses go on a cycle later: behind the address there is no time for what they set off. A cancel has with it what its number is
  // compared with.
  always_ff @(posedge clk_i or negedge core_rst_n) begin
    if (!core_rst_n) begin
      tail_we_o <= '0;
      reset_o   <= '0;
      cancel_o  <= '0;
      cpl_pop_o <= '0;
    end else begin
      tail_we_o <= ctx_tail_we;
      reset_o   <= ctx_reset | {2{reset_ask}};
      cancel_o  <= ctx_cancel;
      cpl_pop_o <= ctx_pop;
    end
  end
  always_ff @(posedge clk_i) begin
    if (ctx_tail_we != '0) tail_o <= wdata[15:0];
    if (ctx_cancel != '0) begin
      cancel_named_o <= wdata[2];
      cancel_num_o   <= {wdata[31:16] + 16'd2, wdata[31:16] + 16'd1, wdata[31:16]};
    end
  end

  // ---- Read channel ---------------------------------------------------------------------------------------------------------

  typedef enum logic [2:0] {RdIdle, RdMux, RdPick, RdCounter, RdBatch, RdAnswer} rd_state_e;

  rd_state_e   rd_q;
  logic [11:0] raddr_q;
  logic [31:0] rdata_q, count_hi_q;
  logic        ar, is_counter, is_bat, count_req, count_vld;
  logic [63:0] count_data;

  assign s_axil_arready_o = (rd_q == RdIdle);
  assign s_axil_rvalid_o  = (rd_q == RdAnswer);
  assign s_axil_rdata_o   = rdata_q;
  assign s_axil_rresp_o   = 2'b00;
  assign ar               = s_axil_arvalid_i && s_axil_arready_o;
  // Each bank has 32 words.
  assign rword            = raddr_q[6:2];
  assign global_rvalid    = (raddr_q[11:7] == 5'd0);
  assign ctx_rvalid[0]    = (raddr_q[11:7] == 5'(ct_pkg::CtxBase >> 7));
  assign ctx_rvalid[1]    = (raddr_q[11:7] == 5'((ct_pkg::CtxBase + ct_pkg::CtxStride) >> 7));
  // Two contexts of 32 counters of 8 bytes: 0x400 .. 0x5ff.
  assign is_counter       = (raddr_q[11:9] == 3'(ct_pkg::CntBase >> 9));
  assign is_bat           = (Batcher != 0) && (raddr_q[11:7] == BatBank);
  assign bat_rd_valid_o   = (rd_q == RdBatch);
  assign bat_rd_word_o    = {1'b0, rword};
  assign count_req        = (rd_q == RdMux) && is_counter && !raddr_q[2];

  always_ff @(posedge clk_i) begin
    if (ar) raddr_q <= s_axil_araddr_i & 12'hffc;
    // Two steps: a word of each bank, but 0 of those that are not meant; then, here, all of them together.
    if (rd_q == RdPick) rdata_q <= is_counter ? count_hi_q : global_rdata | ctx_rdata[31:0] | ctx_rdata[63:32];
    if (rd_q == RdMux) begin
      if (raddr_q == ct_pkg::RegCycleLo) cycle_hi_q <= cycle_q[63:32];
    end
    if (count_vld) begin
      rdata_q    <= count_data[31:0];
      count_hi_q <= count_data[63:32];
    end
    if (rd_q == RdBatch && bat_rd_vld_i) rdata_q <= bat_rd_data_i;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      rd_q <= RdIdle;
    end else begin
      unique case (rd_q)
        RdIdle:    if (ar) rd_q <= RdMux;
        // In the reset the counters do not answer.
        RdMux:     if (!reset_now_q) rd_q <= count_req ? RdCounter : is_bat ? RdBatch : RdPick;
        RdPick:    rd_q <= RdAnswer;
        RdCounter: if (count_vld || reset_now_q) rd_q <= RdAnswer;
        // ct_batch takes its turn; in the reset it does not answer.
        RdBatch:   if (bat_rd_vld_i) rd_q <= RdAnswer;
        RdAnswer:  if (s_axil_rready_i) rd_q <= RdIdle;
        default:   rd_q <= RdIdle;
      endcase
    end
  end

  ct_counters #(.Contexts(Contexts)) u_counters (
    .clk_i,
    .rst_ni     (core_rst_n),
    .ev_i,
    .rd_req_i   (count_req && !reset_now_q),
    .rd_ctx_i   (raddr_q[8]),
    .rd_index_i (raddr_q[7:3]),
    .rd_vld_o   (count_vld),
    .rd_data_o  (count_data)
  );

  // ---- Invariants -------------------------------------------------------------------------------------------------------------

  `CT_ASSERT(AnswerKept_A, !wr || !bvalid_q || s_axil_bready_i)
  `CT_ASSERT(ReadStates_A, rd_q <= RdAnswer)
  `CT_ASSERT(HoldInReset_A, !reset_now_q || hold_o)
`ifdef FORMAL
  `include "ct_regs_formal.svh"
`endif

  `CT_COVER(GlobalReset_C, reset_now_q)

endmodule

`default_nettype wire
