// SPDX-License-Identifier: Apache-2.0
//
// The registers of the whole core (ct_regs has one of these): capabilities, control, policy, interrupt, debug access to the scratchpad.
//
// Writes      in the cycle with wr_i, by whole words; what is not a register, or is read only, is ignored. Bit 0 of CTRL, the reset, is ct_regs's.
// Reads       rd_data_o is the word rd_word_i of the cycle before if rd_valid_i was high then, else 0; what is not mapped reads 0. CYCLE_LO,
//             CYCLE_HI, DEAD and bit 0 of CTRL read cycle_lo_i, cycle_hi_i, dead_i and hold_i.
// Freeze      freeze_o follows CTRL bit 1; a write with bits 1 and 2 while frozen lowers it for one cycle: each unit that is
//             ready then starts one operation, the others none.
// Interrupt   irq_o follows IRQ_STATUS and IRQ_ENABLE a cycle later: completions of both contexts, and ct_batch's.
// Debug       DBG_FLIP and DBG_PEEK are pulses of flip_arm_o and peek_o a cycle later; what a peek brings (peek_vld_i) is kept until the next.
//
// Reset values: POLICY 0, FLOOR 0, TRAIN_CAP 4, DRAIN_LIMIT 100000. TRAIN_CAP keeps to 1..8: larger (smaller) values are taken as the limit.
// Parameters  what the capability registers say. Batcher = 0: POLICY 4 is 0. Contexts = 1: POLICY and FLOOR keep 0.

`default_nettype none
`include "ct_assert.svh"

module ct_regs_global #(
  parameter int unsigned Cols     = 16,
  parameter int unsigned VpuLanes = 16,
  parameter int unsigned SpmWords = 65536,
  parameter int unsigned ClockHz  = 100000000,
  parameter int unsigned DramMib  = 256,
  parameter int unsigned Batcher  = 0,
  parameter int unsigned Conv     = 0,
  parameter int unsigned Contexts = 2,
  parameter int unsigned Compress = 0
) (
  input  logic         clk_i,
  input  logic         rst_ni,

  input  logic         wr_i,
  input  logic [11:0]  wr_addr_i,
  input  logic [31:0]  wr_data_i,
  input  logic         rd_valid_i,
  input  logic [4:0]   rd_word_i,
  output logic [31:0]  rd_data_o,

  input  logic         hold_i,         // a reset was asked for and is not over
  input  logic [31:0]  cycle_lo_i,
  input  logic [31:0]  cycle_hi_i,
  input  logic [1:0]   dead_i,
  input  logic [1:0]   cpl_valid_i,
  input  logic         bat_irq_i,
  output logic         irq_o,

  output logic [2:0]   policy_o,
  output logic [7:0]   floor_o,
  output logic [3:0]   train_cap_o,
  output logic         freeze_o,
  output logic [31:0]  drain_limit_o,

  // Scratchpad debug.
  output logic         flip_arm_o,
  output logic [19:0]  flip_addr_o,
  output logic [7:0]   flip_bit_o,
  output logic         peek_o,
  output logic [19:0]  peek_addr_o,
  input  logic         peek_vld_i,
  input  logic [127:0] peek_data_i,
  input  logic [7:0]   peek_exp_i,
  input  logic         peek_perr_i
);

  logic [2:0]  policy_q, irq_enable_q;
  logic [7:0]  floor_q, flip_bit_q;
  logic [3:0]  train_cap_q;
  logic        freeze_q, step_q, flip_arm_q, peek_q;
  logic [31:0] drain_limit_q;
  logic [19:0] dbg_addr_q;
  logic        irq_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      freeze_q      <= 1'b0;
      step_q        <= 1'b0;
      policy_q      <= ct_pkg::PolicyPriority;
      floor_q       <= '0;
      irq_enable_q  <= '0;
      train_cap_q   <= 4'd4;
      drain_limit_q <= 32'd100000;
      dbg_addr_q    <= '0;
      flip_bit_q    <= '0;
      flip_arm_q    <= 1'b0;
      peek_q        <= 1'b0;
      irq_q         <= 1'b0;
    end else begin
      step_q     <= 1'b0;
      flip_arm_q <= 1'b0;
      peek_q     <= 1'b0;
      irq_q      <= ((irq_enable_q & {bat_irq_i, cpl_valid_i}) != '0);
      if (wr_i) begin
        unique case (wr_addr_i)
          ct_pkg::RegCtrl: begin
            freeze_q <= wr_data_i[1];
            step_q   <= freeze_q && wr_data_i[1] && wr_data_i[2];
          end
          ct_pkg::RegPolicy:     policy_q      <= (Contexts == 1) ? ct_pkg::PolicyPriority : ((Batcher != 0) && wr_data_i[2]) ? ct_pkg::PolicySlack : {1'b0, wr_data_i[1:0]};
          ct_pkg::RegFloor:      floor_q       <= (Contexts == 1) ? '0 : wr_data_i[7:0];
          ct_pkg::RegIrqEnable:  irq_enable_q  <= {(Batcher != 0) && wr_data_i[2], wr_data_i[1:0]};
          ct_pkg::RegTrainCap:   train_cap_q   <= (wr_data_i == '0) ? 4'd1 : (wr_data_i > 32'd8) ? 4'd8 : wr_data_i[3:0];
          ct_pkg::RegDrainLimit: drain_limit_q <= wr_data_i;
          ct_pkg::RegDbgAddr:    dbg_addr_q    <= wr_data_i[19:0];
          ct_pkg::RegDbgFlip: begin
            flip_arm_q <= wr_data_i[8];
            flip_bit_q <= wr_data_i[7:0];
          end
          ct_pkg::RegDbgPeek:    peek_q        <= 1'b1;
          default: ;
        endcase
      end
    end
  end

  assign policy_o      = policy_q;
  assign floor_o       = floor_q;
  assign train_cap_o   = train_cap_q;
  assign freeze_o      = freeze_q && !step_q;
  assign drain_limit_o = drain_limit_q;
  assign irq_o         = irq_q;
  assign flip_arm_o    = flip_arm_q;
  assign flip_addr_o   = dbg_addr_q;
  assign flip_bit_o    = flip_bit_q;
  assign peek_o        = peek_q;
  assign peek_addr_o   = dbg_addr_q;

  // What the last peek found.
  logic         dbg_vld_q;
  logic [127:0] dbg_data_q;
  logic [8:0]   dbg_exp_q;  // parity error, exponent

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni)         dbg_vld_q <= 1'b0;
    else if (peek_vld_i) dbg_vld_q <= 1'b1;
    else if (peek_q)     dbg_vld_q <= 1'b0;
  end

  always_ff @(posedge clk_i) begin
    if (peek_vld_i) begin
      dbg_data_q <= peek_data_i;
      dbg_exp_q  <= {peek_perr_i, peek_exp_i};
    end
  end

  // ---- Read -----------------------------------------------------------------------------------------------------------------

  logic [1023:0] words;
  logic [31:0]   rd_data_q;

  always_comb begin
    words = '0;
    words[8*ct_pkg::RegId +: 32]         = ct_pkg::IdValue;
    words[8*ct_pkg::RegAbi +: 32]        = ct_pkg::AbiVersion;
    words[8*ct_pkg::RegGeometry +: 32]   = {8'd16, 8'(VpuLanes), 8'(Cols), 8'd16};
    words[8*ct_pkg::RegSpmWords +: 32]   = SpmWords;
    words[8*ct_pkg::RegClockHz +: 32]    = ClockHz;
    words[8*ct_pkg::RegFeatures +: 32]   = 32'h0000_000f & ~((Contexts == 1) ? ct_pkg::FeatureTrainer : '0) | ((Batcher != 0) ? ct_pkg::FeatureBatcher : '0) |
                                           ((Conv != 0) ? ct_pkg::FeatureConv : '0) |
                                           ((Compress != 0) ? ct_pkg::FeatureCompress : '0);
    words[8*ct_pkg::RegDramBytes +: 32]  = DramMib;
    words[8*ct_pkg::RegCtrl +: 32]       = {30'd0, freeze_q, hold_i};
    words[8*ct_pkg::RegPolicy +: 32]     = 32'(policy_q);
    words[8*ct_pkg::RegFloor +: 32]      = 32'(floor_q);
    words[8*ct_pkg::RegIrqEnable +: 32]  = 32'(irq_enable_q);
    words[8*ct_pkg::RegIrqStatus +: 32]  = 32'({bat_irq_i, cpl_valid_i});
    words[8*ct_pkg::RegCycleLo +: 32]    = cycle_lo_i;
    words[8*ct_pkg::RegCycleHi +: 32]    = cycle_hi_i;
    words[8*ct_pkg::RegTrainCap +: 32]   = 32'(train_cap_q);
    words[8*ct_pkg::RegDrainLimit +: 32] = drain_limit_q;
    words[8*ct_pkg::RegDead +: 32]       = 32'(dead_i);
    words[8*ct_pkg::RegDbgAddr +: 32]    = 32'(dbg_addr_q);
    words[8*ct_pkg::RegDbgFlip +: 32]    = 32'(flip_bit_q);
    words[8*ct_pkg::RegDbgData0 +: 32]   = dbg_data_q[31:0];
    words[8*ct_pkg::RegDbgData1 +: 32]   = dbg_data_q[63:32];
    words[8*ct_pkg::RegDbgData2 +: 32]   = dbg_data_q[95:64];
    words[8*ct_pkg::RegDbgData3 +: 32]   = dbg_data_q[127:96];
    words[8*ct_pkg::RegDbgData4 +: 32]   = {dbg_vld_q, 22'd0, dbg_exp_q};
  end

  always_ff @(posedge clk_i) begin
    if (rd_valid_i) rd_data_q <= words[32*rd_word_i +: 32];
    else            rd_data_q <= '0;
  end
  assign rd_data_o = rd_data_q;

  `CT_COVER(Step_C, freeze_q && !freeze_o)

endmodule

`default_nettype wire
