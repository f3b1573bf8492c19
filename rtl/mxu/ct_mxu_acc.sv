// SPDX-License-Identifier: Apache-2.0
//
// ACC: the FP32 accumulators of both contexts, 16 tiles of 16 rows of 16 columns each. One write port, two read ports (the
// accumulation and the vector unit), each of fixed latency and never refused.
//
// Address     {context, tile[3:0], row[3:0]}. With Cols = 8 the accumulation works on half rows: half 0 holds columns 0 .. 7.
// Latency     2 cycles on both read ports; data stays until the next read's. A write in cycle t is seen by reads in t + 1 and later.
// Clear       rd_clr_i: rd_data_o is +0 and the memory is not read.
//
// Parameters
//   Cols      columns of the accumulation ports, 16 or 8
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
  input  logic                   rd_half_i,
  input  logic [8:0]             rd_addr_i,
  output logic [32*Cols-1:0]     rd_data_o,

  input  logic                   wr_valid_i,
  input  logic                   wr_half_i,
  input  logic [8:0]             wr_addr_i,
  input  logic [32*Cols-1:0]     wr_data_i,

  input  logic                   va_valid_i,
  input  logic [8:0]             va_addr_i,
  input  logic [1:0]             va_beat_i,
  output logic [32*VpuLanes-1:0] va_data_o
);

  if (Cols != 16 && Cols != 8) begin : g_check_cols
    ct_error_mxu_cols_must_be_16_or_8 u_error ();
  end
  if (VpuLanes != 16 && VpuLanes != 4) begin : g_check_lanes
    ct_error_mxu_vpulanes_must_be_16_or_4 u_error ();
  end

  localparam bit Whole = (Cols == 16);

  // Columns 0 .. 7 and 8 .. 15.
  logic [255:0] mem_lo [0:511];
  logic [255:0] mem_hi [0:511];

  logic [255:0] rd_lo_q, rd_hi_q;
  logic [255:0] va_lo_q, va_hi_q;
  logic         rd_vld_q, va_vld_q;
  logic         rd_clr_q, rd_half_q;
  logic [1:0]   va_beat_q;
  logic         wr_lo, wr_hi, rd_lo, rd_hi, va_lo, va_hi;

  assign wr_lo = wr_valid_i && (Whole || !wr_half_i);
  assign wr_hi = wr_valid_i && (Whole || wr_half_i);
  assign rd_lo = rd_valid_i && !rd_clr_i && (Whole || !rd_half_i);
  assign rd_hi = rd_valid_i && !rd_clr_i && (Whole || rd_half_i);
  assign va_lo = va_valid_i && (VpuLanes == 16 || !va_beat_i[1]);
  assign va_hi = va_valid_i && (VpuLanes == 16 || va_beat_i[1]);

  always_ff @(posedge clk_i) begin
    if (wr_lo) mem_lo[wr_addr_i] <= wr_data_i[255:0];
    if (wr_hi) mem_hi[wr_addr_i] <= wr_data_i[32*Cols-1 -: 256];
    // A word that is read while it is written is worth nothing: block RAMs differ there, and no one may depend on it.
    if (rd_lo) rd_lo_q <= (wr_lo && wr_addr_i == rd_addr_i) ? 'x : mem_lo[rd_addr_i];
    if (rd_hi) rd_hi_q <= (wr_hi && wr_addr_i == rd_addr_i) ? 'x : mem_hi[rd_addr_i];
    if (va_lo) va_lo_q <= (wr_lo && wr_addr_i == va_addr_i) ? 'x : mem_lo[va_addr_i];
    if (va_hi) va_hi_q <= (wr_hi && wr_addr_i == va_addr_i) ? 'x : mem_hi[va_addr_i];
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

  logic [32*Cols-1:0]     rd_data_q;
  logic [32*VpuLanes-1:0] va_data_q;

  always_ff @(posedge clk_i) begin
    if (rd_valid_i) begin
      rd_clr_q  <= rd_clr_i;
      rd_half_q <= rd_half_i;
    end
    if (va_valid_i) va_beat_q <= va_beat_i;
  end

  if (Whole) begin : g_rd_whole
    always_ff @(posedge clk_i) begin
      if (rd_vld_q) rd_data_q <= rd_clr_q ? '0 : {rd_hi_q, rd_lo_q};
    end
    logic unused_half;
    assign unused_half = rd_half_q;
  end else begin : g_rd_half
    always_ff @(posedge clk_i) begin
      if (rd_vld_q) rd_data_q <= rd_clr_q ? '0 : rd_half_q ? rd_hi_q : rd_lo_q;
    end
  end

  if (VpuLanes == 16) begin : g_va_whole
    always_ff @(posedge clk_i) begin
      if (va_vld_q) va_data_q <= {va_hi_q, va_lo_q};
    end
    logic unused_beat;
    assign unused_beat = ^va_beat_q;
  end else begin : g_va_quarter
    always_ff @(posedge clk_i) begin
      if (va_vld_q) begin
        unique case (va_beat_q)
          2'd0:    va_data_q <= va_lo_q[127:0];
          2'd1:    va_data_q <= va_lo_q[255:128];
          2'd2:    va_data_q <= va_hi_q[127:0];
          default: va_data_q <= va_hi_q[255:128];
        endcase
      end
    end
  end

  assign rd_data_o = rd_data_q;
  assign va_data_o = va_data_q;

endmodule

`default_nettype wire
