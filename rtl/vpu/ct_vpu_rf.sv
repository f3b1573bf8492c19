// SPDX-License-Identifier: Apache-2.0
//
// Tile registers of the VPU: 2 contexts x 16 tiles of 16 x 16 FP32, in words of VpuLanes elements.
//
// Address     {context, tile[3:0], row[3:0], beat}: with 4 lanes a row is four words (beat = column / 4), with 16 lanes one (no beat).
// Latency     data_o of a read port one cycle after en_i; it stays until the next en_i.
// Handshake   three reads (VA operand a, VA operand q, VS) and VA's write a cycle, always. VL's write has to wait while VA writes the same
//             bank (vl_wr_ready_o). A word read in the cycle in which it is written is undefined: race-free programs never do it, so no
//             bypass is paid for.
// Banks       two, for even and odd words: VA walks through them in turn, so that VL gets in between, a cycle later at most, however busy
//             VA is. An optimiser step loads as much as it computes.
// Storage     memories without reset, of which the tools make a block RAM copy for each read port. ECP5, 4 lanes: 3 x 2 x 1024 x 128 bits.
//             What is written is chosen here and not in front, so that an idle write port costs a simulator nothing.
//
// Parameters
//   VpuLanes  elements in a word, 16 or 4

`default_nettype none

module ct_vpu_rf #(
  parameter  int unsigned VpuLanes = 16,
  localparam int unsigned AddrW    = (VpuLanes == 4) ? 11 : 9,
  localparam int unsigned W        = 32 * VpuLanes
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

  // write: VA goes first
  input  logic             va_wr_valid_i,
  input  logic [AddrW-1:0] va_wr_addr_i,
  input  logic [W-1:0]     va_wr_data_i,
  input  logic             vl_wr_valid_i,
  output logic             vl_wr_ready_o,
  input  logic [AddrW-1:0] vl_wr_addr_i,
  input  logic [W-1:0]     vl_wr_data_i
);

  if (VpuLanes != 16 && VpuLanes != 4) begin : g_check
    ct_error_vpu_lanes_must_be_16_or_4 u_error ();
  end

  logic [2*W-1:0] a_q, q_q, s_q;              // what each bank has read last
  logic           a_bank_q, q_bank_q, s_bank_q;  // the bank that was asked

  assign vl_wr_ready_o = !(va_wr_valid_i && va_wr_addr_i[0] == vl_wr_addr_i[0]);

  for (genvar b = 0; b < 2; b++) begin : g_bank
    (* no_rw_check *)
    logic [W-1:0] mem [0:2**(AddrW-1)-1];

    logic             va_wr, vl_wr;
    logic [AddrW-2:0] wr_addr;

    assign va_wr   = va_wr_valid_i && va_wr_addr_i[0] == 1'(b);
    assign vl_wr   = vl_wr_valid_i && vl_wr_addr_i[0] == 1'(b);
    assign wr_addr = va_wr ? va_wr_addr_i[AddrW-1:1] : vl_wr_addr_i[AddrW-1:1];

    always_ff @(posedge clk_i) begin
      if (va_wr || vl_wr) mem[wr_addr] <= va_wr ? va_wr_data_i : vl_wr_data_i;
    end

    always_ff @(posedge clk_i) begin
      if (a_en_i && a_addr_i[0] == 1'(b)) a_q[W*b +: W] <= mem[a_addr_i[AddrW-1:1]];
      if (q_en_i && q_addr_i[0] == 1'(b)) q_q[W*b +: W] <= mem[q_addr_i[AddrW-1:1]];
      if (s_en_i && s_addr_i[0] == 1'(b)) s_q[W*b +: W] <= mem[s_addr_i[AddrW-1:1]];
    end
  end

  always_ff @(posedge clk_i) begin
    if (a_en_i) a_bank_q <= a_addr_i[0];
    if (q_en_i) q_bank_q <= q_addr_i[0];
    if (s_en_i) s_bank_q <= s_addr_i[0];
  end

  assign a_data_o = a_bank_q ? a_q[2*W-1:W] : a_q[W-1:0];
  assign q_data_o = q_bank_q ? q_q[2*W-1:W] : q_q[W-1:0];
  assign s_data_o = s_bank_q ? s_q[2*W-1:W] : s_q[W-1:0];

endmodule

`default_nettype wire
