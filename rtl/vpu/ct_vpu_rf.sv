// SPDX-License-Identifier: Apache-2.0
//
// Tile registers of the VPU: 2 contexts x 16 tiles of 16 x 16 FP32, in words of VpuLanes elements.
//
// Address     {context, tile[3:0], row[3:0], beat}: with 4 lanes a row is four words (beat = column / 4), with 16 lanes one (no beat).
// Latency     data_o of a read port one cycle after en_i; it stays until the next en_i.
// Handshake   none: three reads (VA operand a, VA operand q, VS) and one write a cycle, always. A word read in the cycle in which
//             it is written is undefined: race-free programs never do it, so no bypass is paid for.
// Storage     one memory without reset, of which the tools make a block RAM copy for each read port. ECP5, 4 lanes: 3 x 2048 x 128 bits.
//             What is written is chosen here and not in front, so that an idle write port costs a simulator nothing.
//
// Parameters
//   VpuLanes  elements in a word, 16 or 4

`default_nettype none

module ct_vpu_rf #(
  parameter  int unsigned VpuLanes = 16,
  localparam int unsigned AddrW    = (VpuLanes == 4) ? 11 : 9,
  localparam int unsigned W        = 32 * VpuLanes,
  localparam int unsigned Quads    = VpuLanes / 4
) (
  input  logic             clk_i,

  input  logic             a_en_i,
  input  logic [AddrW-1:0] a_addr_i,
  output logic [W-1:0]     a_data_o,

  input  logic             q_en_i,
  input  logic [AddrW-1:0] q_addr_i,
  output logic [W-1:0]     q_data_o,

  input  logic             s_en_i,
  input  logic [AddrW-1:0] s_addr_i,
  output logic [W-1:0]     s_data_o,

  // write: VA goes first, VL sees to it that it waits
  input  logic             va_wr_valid_i,
  input  logic [AddrW-1:0] va_wr_addr_i,
  input  logic [W-1:0]     va_wr_data_i,
  input  logic             vl_wr_valid_i,
  input  logic [Quads-1:0] vl_wr_quad_i,  // the groups of four elements that are written
  input  logic [AddrW-1:0] vl_wr_addr_i,
  input  logic             vl_wr_fp32_i,  // all groups get vl_wr_word_i
  input  logic [127:0]     vl_wr_word_i,
  input  logic [W-1:0]     vl_wr_data_i
);

  if (VpuLanes != 16 && VpuLanes != 4) begin : g_check
    ct_error_vpu_lanes_must_be_16_or_4 u_error ();
  end

  (* no_rw_check *)
  logic [W-1:0] mem [0:2**AddrW-1];

  logic [W-1:0]     a_q, q_q, s_q;
  logic [Quads-1:0] wr_quad;
  logic [AddrW-1:0] wr_addr;

  assign wr_quad = va_wr_valid_i ? {Quads{1'b1}} : vl_wr_valid_i ? vl_wr_quad_i : {Quads{1'b0}};
  assign wr_addr = va_wr_valid_i ? va_wr_addr_i : vl_wr_addr_i;

  always_ff @(posedge clk_i) begin
    for (int i = 0; i < Quads; i++) begin
      if (wr_quad[i]) begin
        mem[wr_addr][128*i +: 128] <= va_wr_valid_i ? va_wr_data_i[128*i +: 128]
                                    : vl_wr_fp32_i  ? vl_wr_word_i : vl_wr_data_i[128*i +: 128];
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (a_en_i) a_q <= mem[a_addr_i];
    if (q_en_i) q_q <= mem[q_addr_i];
    if (s_en_i) s_q <= mem[s_addr_i];
  end

  assign a_data_o = a_q;
  assign q_data_o = q_q;
  assign s_data_o = s_q;

endmodule

`default_nettype wire
