// SPDX-License-Identifier: Apache-2.0
//
// ACC: the FP32 accumulators of both contexts, 16 tiles of 16 rows of 16 columns each. One write port, two read ports (the
// accumulation and the vector unit), each of fixed latency and never refused.
//
// Address     {context, tile[3:0], row[3:0]}. With fewer than 16 columns the accumulation works on parts of rows: part i holds the
//             columns from Cols * i on.
// Storage     memories as wide as the accumulation, so that its port needs no multiplexer; as many as the vector unit's port needs side by
//             side, with the parts of a row in turn.
// Latency     2 cycles on both read ports; data stays until the next read's. A write in cycle t is seen by reads in t + 1 and later.
// Clear       rd_clr_i: rd_data_o is +0 and the memory is not read.
//
// Parameters
//   Cols      columns of the accumulation ports, 16, 8 or 4
//   VpuLanes  columns of the vector unit's port, 16 or 4; with 4, va_beat_i names the quarter of the row

`default_nettype none

module ct_mxu_acc #(
  parameter int unsigned Cols     = 16,
  parameter int unsigned VpuLanes = 16
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,

  input  logic                   rd_valid_i,
  input  logic                   rd_clr_i,
  input  logic [1:0]             rd_part_i,
  input  logic [8:0]             rd_addr_i,
  output logic [32*Cols-1:0]     rd_data_o,

  input  logic                   wr_valid_i,
  input  logic [1:0]             wr_part_i,
  input  logic [8:0]             wr_addr_i,
  input  logic [32*Cols-1:0]     wr_data_i,

  input  logic                   va_valid_i,
  input  logic [8:0]             va_addr_i,
  input  logic [1:0]             va_beat_i,
  output logic [32*VpuLanes-1:0] va_data_o
);

  if (Cols != 16 && Cols != 8 && Cols != 4) begin : g_check_cols
    ct_error_mxu_cols_must_be_16_8_or_4 u_error ();
  end
  if (VpuLanes != 16 && VpuLanes != 4) begin : g_check_lanes
    ct_error_mxu_vpulanes_must_be_16_or_4 u_error ();
  end

  localparam int unsigned Width = 32 * Cols;
  localparam int unsigned PartW = (Cols == 16) ? 0 : (Cols == 8) ? 1 : 2;
  // Memories side by side, and parts of a row in each of them.
  localparam int unsigned Mems  = (VpuLanes > Cols) ? VpuLanes / Cols : 1;
  localparam int unsigned DeepW = (VpuLanes > Cols) ? 0 : PartW;
  localparam int unsigned AddrW = 9 + DeepW;

  logic [AddrW-1:0]      rd_addr, wr_addr, va_addr;
  logic [Mems*Width-1:0] rd_q, va_q;
  logic [Width-1:0]      rd_word;
  logic [Mems-1:0]       rd_here, wr_here;
  logic [Width-1:0]      rd_data_q;
  logic [32*VpuLanes-1:0] va_data_q;
  logic                  rd_vld_q, va_vld_q, rd_clr_q;
  logic [1:0]            rd_part_q, va_beat_q;

  if (DeepW == 0) begin : g_flat
    assign rd_addr = rd_addr_i;
    assign wr_addr = wr_addr_i;
    assign va_addr = va_addr_i;
  end else begin : g_deep
    assign rd_addr = {rd_addr_i, rd_part_i[DeepW-1:0]};
    assign wr_addr = {wr_addr_i, wr_part_i[DeepW-1:0]};
    assign va_addr = {va_addr_i, va_beat_i[1 -: DeepW]};
  end

  for (genvar m = 0; m < Mems; m++) begin : g_mem
    logic [Width-1:0] mem [0:(1<<AddrW)-1];
    assign rd_here[m] = (Mems == 1) || rd_part_i == 2'(m);
    assign wr_here[m] = (Mems == 1) || wr_part_i == 2'(m);
    always_ff @(posedge clk_i) begin
      if (wr_valid_i && wr_here[m]) mem[wr_addr] <= wr_data_i;
      // A word that is read while it is written is worth nothing: block RAMs differ there, and no one may depend on it.
      if (rd_valid_i && !rd_clr_i && rd_here[m]) rd_q[Width*m +: Width] <= (wr_valid_i && wr_here[m] && wr_addr == rd_addr) ? 'x : mem[rd_addr];
      if (va_valid_i) va_q[Width*m +: Width] <= (wr_valid_i && wr_here[m] && wr_addr == va_addr) ? 'x : mem[va_addr];
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      rd_vld_q <= 1'b0;
      va_vld_q <= 1'b0;
    end else begin
      rd_vld_q <= rd_valid_i;
      va_vld_q <= va_valid_i;
    end
  end

  always_ff @(posedge clk_i) begin
    if (rd_valid_i) begin
      rd_clr_q  <= rd_clr_i;
      rd_part_q <= rd_part_i;
    end
    if (va_valid_i) va_beat_q <= va_beat_i;
  end

  if (Mems == 1) begin : g_one
    assign rd_word = rd_q;
    logic unused_part;
    assign unused_part = ^{rd_part_q, rd_part_i, wr_part_i};
  end else begin : g_several
    always_comb begin
      rd_word = '0;
      for (int m = 0; m < Mems; m++) if (rd_part_q == 2'(m)) rd_word = rd_q[Width*m +: Width];
    end
  end

  always_ff @(posedge clk_i) begin
    if (rd_vld_q) rd_data_q <= rd_clr_q ? '0 : rd_word;
  end

  if (VpuLanes >= Cols) begin : g_va_whole
    always_ff @(posedge clk_i) begin
      if (va_vld_q) va_data_q <= va_q;
    end
    logic unused_beat;
    assign unused_beat = ^{va_beat_q, va_beat_i};
  end else begin : g_va_quarter
    // The quarters of this word.
    localparam int unsigned In = Cols / VpuLanes;
    always_ff @(posedge clk_i) begin
      if (va_vld_q) begin
        for (int i = 0; i < In; i++)
          if ((va_beat_q & 2'(In - 1)) == 2'(i)) va_data_q <= va_q[32*VpuLanes*i +: 32*VpuLanes];
      end
    end
  end

  assign rd_data_o = rd_data_q;
  assign va_data_o = va_data_q;

endmodule

`default_nettype wire
