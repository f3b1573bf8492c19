// SPDX-License-Identifier: Apache-2.0
//
// Commands of one queue of context 1, of LD or ST: plain ones leave by plain_*, those with Comp become requests for groups.
//
// Order       ct_dma_turn: plain and compressed commands are never at work at the same time. comp_quiet_i: of the requests taken nothing is left that a plain
//             command may meet; idle_o: of the commands taken all requests have been.
// Requests    ct_act_walk, whose halt_i and flush_i these are. begin_o and end_o: first and last group of a step. tiles_o (less one), bound_o and free_o are the
//             command's, the same for all its requests.

`default_nettype none

module ct_dma_groups #(
  localparam int unsigned SpmW = ct_pkg::SpmAddrW,
  localparam int unsigned CmdW = ct_pkg::CmdW
) (
  input  logic            clk_i,
  input  logic            rst_ni,

  input  logic            flush_i,
  input  logic            halt_i,
  output logic            idle_o,

  input  logic            cmd_valid_i,
  input  logic [CmdW-1:0] cmd_i,
  output logic            cmd_ready_o,
  output logic            plain_valid_o,
  input  logic            plain_ready_i,
  input  logic            plain_quiet_i,
  input  logic            comp_quiet_i,
  input  logic [15:0]     sem_nz_i,
  output logic [15:0]     sem_dec_o,

  output logic            valid_o,
  input  logic            ready_i,
  output logic [SpmW-1:0] spm_o,
  output logic [31:0]     index_o,
  output logic [1:0]      entry_o,
  output logic            begin_o,
  output logic            end_o,
  output logic [9:0]      sigs_o,
  output logic [1:0]      tiles_o,
  output logic [7:0]      bound_o,
  output logic            free_o
);

  logic valid, ready;

  ct_dma_turn u_turn (
    .clk_i, .rst_ni,
    .valid_i       (cmd_valid_i),
    .comp_i        (cmd_i[ct_pkg::DmaCompLsb]),
    .ready_o       (cmd_ready_o),
    .plain_valid_o, .plain_ready_i, .plain_quiet_i,
    .comp_valid_o  (valid),
    .comp_ready_i  (ready),
    .comp_quiet_i
  );

  ct_act_walk u_walk (
    .clk_i, .rst_ni, .flush_i, .halt_i, .idle_o,
    .cmd_valid_i (valid),
    .cmd_ready_o (ready),
    .dram_i      (cmd_i[ct_pkg::DmaDramLsb +: 32]),
    .spm_i       (cmd_i[ct_pkg::DmaSpmLsb +: SpmW]),
    .first_i     (cmd_i[ct_pkg::DmaFirstLsb +: 2]),
    .groups_i    (cmd_i[ct_pkg::DmaN1Lsb +: 3]),
    .n2_i        (cmd_i[ct_pkg::DmaN2Lsb +: 12]),
    .d2_i        (cmd_i[ct_pkg::DmaD2Lsb +: 24]),
    .s1_i        (cmd_i[ct_pkg::DmaS1Lsb +: SpmW]),
    .s2_i        (cmd_i[ct_pkg::DmaS2Lsb +: SpmW]),
    .wait0_i     (cmd_i[ct_pkg::AllWait0Lsb +: 5]),
    .wait1_i     (cmd_i[ct_pkg::AllWait1Lsb +: 5]),
    .wait2_i     (cmd_i[ct_pkg::AllWait2Lsb +: 5]),
    .sig0_i      (cmd_i[ct_pkg::AllSig0Lsb +: 5]),
    .sig1_i      (cmd_i[ct_pkg::AllSig1Lsb +: 5]),
    .sem_nz_i, .sem_dec_o, .valid_o, .ready_i, .spm_o, .index_o, .entry_o, .begin_o, .end_o, .sigs_o
  );

  // Of Nb, 16 to 64, the tiles less one; of N1 the bound.
  always_ff @(posedge clk_i) begin
    if (valid && ready) begin
      tiles_o <= cmd_i[ct_pkg::DmaNbLsb + 4 +: 2] - 2'd1;
      bound_o <= cmd_i[ct_pkg::DmaN1Lsb + 4 +: 8];
      free_o  <= cmd_i[ct_pkg::DmaFreeLsb];
    end
  end

  logic unused_cmd;
  assign unused_cmd = ^cmd_i;

endmodule

`default_nettype wire
