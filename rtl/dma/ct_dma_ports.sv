// SPDX-License-Identifier: Apache-2.0
//
// The scratchpad's ports of ST and LD between plain commands of both contexts and the compressed ones of context 1. Combinational.
//
// Reads       a compressed store reads only in a cycle in which no plain one wants to.
// Writes      a word of a compressed load is written only in a cycle in which no plain word lands, and not while ld_hold_i is high: when words that land keep
//             VS out of its banks. The port itself always takes what it gets.
// So inference sees of a compressed command what it sees of plain loads and stores of the other context, and less.

`default_nettype none
`include "ct_assert.svh"

module ct_dma_ports #(
  localparam int unsigned SpmW = ct_pkg::SpmAddrW
) (
  input  logic            clk_i,
  input  logic            rst_ni,

  input  logic            plain_rd_valid_i,
  input  logic [SpmW-1:0] plain_rd_addr_i,
  input  logic            plain_rd_ctx_i,
  input  logic            comp_rd_valid_i,
  input  logic [SpmW-1:0] comp_rd_addr_i,
  output logic            comp_rd_ready_o,
  output logic            spm_rd_valid_o,
  output logic [SpmW-1:0] spm_rd_addr_o,
  output logic            spm_rd_ctx_o,
  input  logic            spm_rd_ready_i,

  input  logic            ld_hold_i,
  input  logic            plain_wr_valid_i,
  input  logic [SpmW-1:0] plain_wr_addr_i,
  input  logic            plain_wr_ctx_i,
  input  logic [127:0]    plain_wr_data_i,
  input  logic [7:0]      plain_wr_exp_i,
  input  logic            comp_wr_valid_i,
  input  logic [SpmW-1:0] comp_wr_addr_i,
  input  logic [127:0]    comp_wr_data_i,
  input  logic [7:0]      comp_wr_exp_i,
  output logic            comp_wr_ready_o,
  output logic            spm_wr_valid_o,
  output logic [SpmW-1:0] spm_wr_addr_o,
  output logic            spm_wr_ctx_o,
  output logic [127:0]    spm_wr_data_o,
  output logic [7:0]      spm_wr_exp_o
);

  assign comp_rd_ready_o = spm_rd_ready_i && !plain_rd_valid_i;
  assign spm_rd_valid_o  = plain_rd_valid_i || comp_rd_valid_i;
  assign spm_rd_addr_o   = plain_rd_valid_i ? plain_rd_addr_i : comp_rd_addr_i;
  assign spm_rd_ctx_o    = plain_rd_valid_i ? plain_rd_ctx_i : 1'b1;

  assign comp_wr_ready_o = !plain_wr_valid_i && !ld_hold_i;
  assign spm_wr_valid_o  = plain_wr_valid_i || (comp_wr_valid_i && !ld_hold_i);
  assign spm_wr_addr_o   = plain_wr_valid_i ? plain_wr_addr_i : comp_wr_addr_i;
  assign spm_wr_ctx_o    = plain_wr_valid_i ? plain_wr_ctx_i : 1'b1;
  assign spm_wr_data_o   = plain_wr_valid_i ? plain_wr_data_i : comp_wr_data_i;
  assign spm_wr_exp_o    = plain_wr_valid_i ? plain_wr_exp_i : comp_wr_exp_i;

  `CT_ASSERT(PlainReadsFirst_A, !plain_rd_valid_i || (!comp_rd_ready_o && {spm_rd_addr_o, spm_rd_ctx_o} == {plain_rd_addr_i, plain_rd_ctx_i}))
  `CT_ASSERT(PlainWritesFirst_A, !plain_wr_valid_i || (!comp_wr_ready_o && {spm_wr_addr_o, spm_wr_ctx_o} == {plain_wr_addr_i, plain_wr_ctx_i}))
  `CT_ASSERT(HeldWritesNothing_A, !ld_hold_i || spm_wr_valid_o == plain_wr_valid_i)
  `CT_ASSERT(TakenIsWritten_A, !(comp_wr_valid_i && comp_wr_ready_o) || (spm_wr_valid_o && spm_wr_addr_o == comp_wr_addr_i && spm_wr_ctx_o))
  `CT_ASSERT(TakenIsRead_A, !(comp_rd_valid_i && comp_rd_ready_o) || (spm_rd_valid_o && spm_rd_ready_i && spm_rd_addr_o == comp_rd_addr_i))

  `CT_COVER(ReadWaits_C, comp_rd_valid_i && plain_rd_valid_i)
  `CT_COVER(WriteWaits_C, comp_wr_valid_i && plain_wr_valid_i)

endmodule

`default_nettype wire
