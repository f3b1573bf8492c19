// SPDX-License-Identifier: Apache-2.0
//
// ct_ulx3s, pads and all, with the ports of ct_board: what drives the one drives the other (board_sim.c).
//
// Pads        sdram_dq_o and ft_data_o are what stands on the pins, ours or theirs. sdram_dq_oe_o and ft_drive_o say that nobody else drives them now: the
//             other side is let go of whenever the board means to drive, so a pad that does not drive shows zeros.
//             Each pad's T is compared with that, or one that always drives would not be found: Verilator makes an OR of two drivers.
// SDRAM       sdram_dq_i is what the chip sends by the middle of the cycle, when its clock rises: it is taken at clk_i's falling edge. While clk_i is high
//             the pins have its inverse, so that who takes it at another edge, or later, gets wrong data.
// Clock       clk_i is the core's (ct_ecp5_cells), as fast as CoreMhz says. ChipClock_A checks D0 and D1 of the SDRAM's clock against our own model of the
//             ODDRX1F: that the cell sends D0 while its clock is high no simulation here shows.

/* verilator lint_off UNUSED */
`default_nettype none

module ct_ulx3s_pins #(
  parameter int unsigned CoreMhz  = 25,
  parameter int unsigned Core     = 1,
  parameter int unsigned Cols     = 8,
  parameter int unsigned VpuLanes = 4,
  parameter int unsigned SpmWords = 8192
) (
  input  logic        clk_i,
  input  logic        arst_ni,

  input  logic        ft_clk_i,
  input  logic        ft_rxf_n_i,
  input  logic        ft_txe_n_i,
  output logic        ft_oe_n_o,
  output logic        ft_rd_n_o,
  output logic        ft_wr_n_o,
  output logic        ft_siwu_n_o,
  input  logic [7:0]  ft_data_i,
  output logic [7:0]  ft_data_o,
  output logic        ft_drive_o,

  input  logic        uart_rx_i,
  output logic        uart_tx_o,

  output logic        sdram_cke_o,
  output logic        sdram_cs_no,
  output logic        sdram_ras_no,
  output logic        sdram_cas_no,
  output logic        sdram_we_no,
  output logic [1:0]  sdram_ba_o,
  output logic [12:0] sdram_a_o,
  output logic [1:0]  sdram_dqm_o,
  output logic [15:0] sdram_dq_o,
  output logic        sdram_dq_oe_o,
  input  logic [15:0] sdram_dq_i,

  output logic [7:0]  led_o
);

  wire [7:0]  ft_data;
  wire [15:0] sdram_d;
  logic       wifi_gpio0, sdram_clk;

  ct_ulx3s #(.CoreMhz(CoreMhz), .Core(Core), .Cols(Cols), .VpuLanes(VpuLanes), .SpmWords(SpmWords)) u_top (
    .clk_25mhz(clk_i), .btn_fire1(!arst_ni), .led(led_o), .wifi_gpio0, .ftdi_rxd(uart_tx_o), .ftdi_txd(uart_rx_i),
    .ft_clk(ft_clk_i), .ft_rxf_n(ft_rxf_n_i), .ft_txe_n(ft_txe_n_i), .ft_oe_n(ft_oe_n_o), .ft_rd_n(ft_rd_n_o), .ft_wr_n(ft_wr_n_o),
    .ft_siwu_n(ft_siwu_n_o), .ft_data,
    .sdram_clk, .sdram_cke(sdram_cke_o), .sdram_csn(sdram_cs_no), .sdram_wen(sdram_we_no), .sdram_rasn(sdram_ras_no), .sdram_casn(sdram_cas_no),
    .sdram_a(sdram_a_o), .sdram_ba(sdram_ba_o), .sdram_dqm(sdram_dqm_o), .sdram_d
  );

  assign ft_drive_o    = u_top.ft_drive;
  assign sdram_dq_oe_o = u_top.dq_oe;
  for (genvar i = 0; i < 8; i++) begin : g_ft
    assign ft_data[i] = ft_drive_o ? 1'bz : ft_data_i[i];
    always_comb begin
      FtPad_A: assert (u_top.g_ft[i].u_pad.T == !ft_drive_o);
    end
  end
  for (genvar i = 0; i < 16; i++) begin : g_dq
    assign sdram_d[i] = sdram_dq_oe_o ? 1'bz : sdram_dq_i[i] ^ clk_i;
    always_comb begin
      DqPad_A: assert (u_top.g_dq[i].u_pad.T == !sdram_dq_oe_o);
    end
  end
  assign ft_data_o  = ft_data;
  assign sdram_dq_o = sdram_d;

  // The chip's clock rises in the middle of the core's cycle.
  always_comb begin
    ChipClock_A: assert (sdram_clk == !clk_i);
  end

endmodule

`default_nettype wire
/* verilator lint_on UNUSED */
