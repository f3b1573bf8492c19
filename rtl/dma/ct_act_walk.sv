// SPDX-License-Identifier: Apache-2.0
//
// Walks the loops of one compressed LD or ST and makes a request for each group, for ct_act_ld or ct_act_st (docs/compression.md, "In the core").
//
// Order       for i2 < n2_i: for i1 < groups_i: words from spm_i + i2*s2_i + i1*s1_i on, entry first_i + i1 of the index unit dram_i + i2*d2_i. first_i + groups_i is
//             4 at most; addresses are modulo the width of the field.
// Semaphores  as ct_dma_seq: wait0_i before each step of i2, wait1_i and wait2_i with the first of the command, all needed in one cycle; sem_dec_o in the
//             cycle after they are taken. The fields of sig0_i go with the last group of a step, those of sig1_i with the last of the command: sigs_o is
//             {sig1, sig0}, zero where the group does not carry them.
// Latency     command taken in t: first request on offer in t + 1 if there is nothing to wait for; then one a cycle.
// Handshake   valid_o holds until ready_i, but flush_i takes it away; halt_i hides it and stops the walk until a flush.

`default_nettype none
`include "ct_assert.svh"

module ct_act_walk #(
  localparam int unsigned SpmW = ct_pkg::SpmAddrW
) (
  input  logic            clk_i,
  input  logic            rst_ni,

  input  logic            flush_i,
  input  logic            halt_i,
  output logic            idle_o,

  input  logic            cmd_valid_i,
  output logic            cmd_ready_o,
  input  logic [31:0]     dram_i,
  input  logic [SpmW-1:0] spm_i,
  input  logic [1:0]      first_i,
  input  logic [2:0]      groups_i,     // 1 to 4
  input  logic [11:0]     n2_i,         // not 0
  input  logic [23:0]     d2_i,         // signed, as the next two
  input  logic [SpmW-1:0] s1_i,
  input  logic [SpmW-1:0] s2_i,
  input  logic [4:0]      wait0_i,      // bit 4 enables, bits 3..0 name a semaphore
  input  logic [4:0]      wait1_i,
  input  logic [4:0]      wait2_i,
  input  logic [4:0]      sig0_i,
  input  logic [4:0]      sig1_i,
  input  logic [15:0]     sem_nz_i,
  output logic [15:0]     sem_dec_o,

  output logic            valid_o,
  input  logic            ready_i,
  output logic [SpmW-1:0] spm_o,
  output logic [31:0]     index_o,
  output logic [1:0]      entry_o,
  output logic            begin_o,      // first group of its step
  output logic            end_o,        // last group of its step
  output logic [9:0]      sigs_o
);

  logic            act_q, open_q;       // a command is walked; its step has its semaphores
  logic [31:0]     index_q;
  logic [SpmW-1:0] spm_q, step_spm_q, s1_q, s2_q;
  logic [23:0]     d2_q;
  logic [1:0]      first_q;
  logic [2:0]      groups_q, i1_q;      // of a step; done of it
  logic [11:0]     left_q;              // steps behind this one
  logic [4:0]      wait0_q, sig0_q, sig1_q;
  logic [15:0]     need_q, dec_q;       // what the next step waits for; what was taken

  function automatic logic [15:0] mask(input logic [4:0] field);
    mask = field[4] ? 16'd1 << field[3:0] : 16'd0;
  endfunction

  logic load, open, go, step_end, cmd_end;
  assign step_end    = i1_q + 3'd1 == groups_q;
  assign cmd_end     = step_end && left_q == 12'd0;
  // (Semaphores that were taken in the last cycle do not show in sem_nz_i yet.)
  assign open        = act_q && !open_q && !halt_i && !flush_i && (need_q & (~sem_nz_i | dec_q)) == 16'd0;
  assign valid_o     = act_q && (open_q || need_q == 16'd0) && !halt_i && !flush_i;
  assign go          = valid_o && ready_i;
  assign cmd_ready_o = !flush_i && !halt_i && (!act_q || (go && cmd_end));
  assign load        = cmd_valid_i && cmd_ready_o;
  assign sem_dec_o   = dec_q;
  assign spm_o       = spm_q;
  assign index_o     = index_q;
  assign entry_o     = first_q + i1_q[1:0];
  assign begin_o     = i1_q == 3'd0;
  assign end_o       = step_end;
  assign sigs_o      = {cmd_end ? sig1_q : 5'd0, step_end ? sig0_q : 5'd0};
  assign idle_o      = !act_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      act_q  <= 1'b0;
      open_q <= 1'b0;
      dec_q  <= '0;
    end else begin
      act_q  <= !flush_i && (load || (act_q && !(go && cmd_end)));
      open_q <= !flush_i && !load && !(go && step_end) && (open_q || open || go);
      dec_q  <= open ? need_q : 16'd0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (go) begin
      i1_q  <= step_end ? 3'd0 : i1_q + 3'd1;
      spm_q <= step_end ? step_spm_q + s2_q : spm_q + s1_q;
      if (step_end) begin
        step_spm_q <= step_spm_q + s2_q;
        index_q    <= index_q + {{8{d2_q[23]}}, d2_q};
        left_q     <= left_q - 12'd1;
        need_q     <= mask(wait0_q);
      end
    end
    if (load) begin
      index_q    <= dram_i;
      spm_q      <= spm_i;
      step_spm_q <= spm_i;
      s1_q       <= s1_i;
      s2_q       <= s2_i;
      d2_q       <= d2_i;
      first_q    <= first_i;
      groups_q   <= groups_i;
      i1_q       <= 3'd0;
      left_q     <= n2_i - 12'd1;
      wait0_q    <= wait0_i;
      sig0_q     <= sig0_i;
      sig1_q     <= sig1_i;
      need_q     <= mask(wait0_i) | mask(wait1_i) | mask(wait2_i);
    end
  end

  `CT_ASSUME(CommandLegal_M, !cmd_valid_i || (groups_i != 3'd0 && {1'b0, first_i} + groups_i <= 3'd4 && n2_i != 12'd0))
`ifdef FORMAL
  `include "ct_act_walk_formal.svh"
`endif

  `CT_COVER(LastOfAll_C, go && cmd_end)

endmodule

`default_nettype wire
