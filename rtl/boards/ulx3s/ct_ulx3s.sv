// SPDX-License-Identifier: Apache-2.0
//
// The top for a ULX3S (Lattice ECP5): ct_board with the PLL, the clock of the SDRAM and the cells of bidirectional pins. constraints/ulx3s.lpf has the pins.
//
// Clock       CoreMhz, a multiple of 5, from the 25 MHz on the board, by a VCO of 400 to 750 MHz. An output of 25 MHz goes back into the PLL, so that its
//             phase detector has 25 MHz whatever the core's clock is (the data sheet asks for 10 at least, or LOCK may never rise).
// Pins        registers of the FIFO's and the SDRAM's pins are in the pins (pins.sh, scripts/io-registers), so the times at them
//             do not depend on where the rest lies. docs/fpga.md has the sums.
// SDRAM       its clock comes out of a pin's register for both edges, half a cycle from the core's and as late as the commands. What the chip sends is taken
//             at the falling edge of the core's clock, and handed on at the rising one.
// Reset       until the PLL has locked, and while button FIRE1 is held.
// ESP32       wifi_gpio0 is high, or the board's ESP32 may start anew and load a bitstream of its own.
// FIFO        an FT232H's synchronous 245 FIFO on the header J1: see docs/fpga.md. Its clock is gp[12], a clock pin. Its flag RXF# and its data
//             are delayed in the pins by what the clock is meant to take from its pin to the registers: the chip need not hold them after the edge.
// Lamps       ct_board's; lamp 7 alone, steady: the PLL has not locked.
//
// Parameters
//   CoreMhz      25 .. 80, a multiple of 5: above, what the SDRAM sends comes too late for its register (docs/fpga.md)
//   Core, Cols, VpuLanes, SpmWords, PackDsp, Batcher, Conv   ct_board

`default_nettype none

module ct_ulx3s #(
  parameter int unsigned CoreMhz    = 40,
  parameter int unsigned Core       = 1,
  parameter int unsigned Cols       = 8,
  parameter int unsigned VpuLanes   = 4,
  parameter int unsigned SpmWords   = 8192,
  parameter int unsigned PackDsp    = 0,
  parameter int unsigned Batcher    = 1,
  parameter int unsigned Conv       = 1
) (
  input  logic        clk_25mhz,
  input  logic        btn_fire1,    // high while it is held
  output logic [7:0]  led,
  output logic        wifi_gpio0,   // high

  output logic        ftdi_rxd,     // to the FT231X
  input  logic        ftdi_txd,     // from it

  input  logic        ft_clk,
  input  logic        ft_rxf_n,
  input  logic        ft_txe_n,
  output logic        ft_oe_n,
  output logic        ft_rd_n,
  output logic        ft_wr_n,
  output logic        ft_siwu_n,
  inout  wire  [7:0]  ft_data,

  output logic        sdram_clk,
  output logic        sdram_cke,
  output logic        sdram_csn,
  output logic        sdram_wen,
  output logic        sdram_rasn,
  output logic        sdram_casn,
  output logic [12:0] sdram_a,
  output logic [1:0]  sdram_ba,
  output logic [1:0]  sdram_dqm,
  inout  wire  [15:0] sdram_d
);

  if (CoreMhz < 25 || CoreMhz > 80 || CoreMhz % 5 != 0) begin : g_check_mhz
    ct_error_core_mhz_must_be_a_multiple_of_5_from_25_to_80 u_error ();
  end

  // The VCO runs at VcoMhz, a multiple of 25.
  localparam int unsigned Div    = 5 * (150 / CoreMhz);
  localparam int unsigned VcoMhz = CoreMhz * Div;

  if (VcoMhz < 400 || VcoMhz > 800 || VcoMhz % 25 != 0) begin : g_check_vco
    ct_error_pll_vco_must_be_400_to_800_mhz u_error ();
  end

  logic clk, back, locked;
  (* FREQUENCY_PIN_CLKI = "25", ICP_CURRENT = "12", LPF_RESISTOR = "8", MFG_ENABLE_FILTEROPAMP = "1", MFG_GMCREF_SEL = "2" *)
  EHXPLLL #(
    .CLKI_DIV(1), .CLKFB_DIV(1), .FEEDBK_PATH("CLKOP"),
    .CLKOP_ENABLE("ENABLED"), .CLKOP_DIV(VcoMhz / 25), .CLKOP_CPHASE(VcoMhz / 50), .CLKOP_FPHASE(0),
    .CLKOS_ENABLE("ENABLED"), .CLKOS_DIV(Div), .CLKOS_CPHASE(Div / 2), .CLKOS_FPHASE(0),
    .CLKOS2_ENABLE("DISABLED"), .CLKOS3_ENABLE("DISABLED")
  ) u_pll (
    .CLKI(clk_25mhz), .CLKFB(back), .CLKOP(back), .CLKOS(clk), .LOCK(locked),
    .RST(1'b0), .STDBY(1'b0), .PHASESEL0(1'b0), .PHASESEL1(1'b0), .PHASEDIR(1'b1), .PHASESTEP(1'b1), .PHASELOADREG(1'b1),
    .PLLWAKESYNC(1'b0), .ENCLKOP(1'b0), .ENCLKOS(1'b0)
  );
  ODDRX1F u_sdram_clk (.D0(1'b0), .D1(1'b1), .SCLK(clk), .RST(1'b0), .Q(sdram_clk));

  assign wifi_gpio0 = 1'b1;

  logic        ft_rxf_n_late;
  logic [7:0]  ft_in, ft_late, ft_out, lamps;
  logic [15:0] dq_in, dq_in_q, dq_out;
  logic        ft_drive, dq_oe;

  for (genvar i = 0; i < 8; i++) begin : g_ft
    BB u_pad (.B(ft_data[i]), .I(ft_out[i]), .O(ft_in[i]), .T(!ft_drive));
    DELAYG #(.DEL_MODE("SCLK_ZEROHOLD")) u_late (.A(ft_in[i]), .Z(ft_late[i]));
  end
  DELAYG #(.DEL_MODE("SCLK_ZEROHOLD")) u_rxf_late (.A(ft_rxf_n), .Z(ft_rxf_n_late));
  for (genvar i = 0; i < 16; i++) begin : g_dq
    BB u_pad (.B(sdram_d[i]), .I(dq_out[i]), .O(dq_in[i]), .T(!dq_oe));
  end
  always_ff @(negedge clk) dq_in_q <= dq_in;

  ct_board #(
    .ClockHz(CoreMhz * 1000000), .Core(Core), .Cols(Cols), .VpuLanes(VpuLanes), .SpmWords(SpmWords), .PackDsp(PackDsp), .Batcher(Batcher), .Conv(Conv)
  ) u_board (
    .clk_i(clk), .arst_ni(locked && !btn_fire1),
    .ft_clk_i(ft_clk), .ft_rxf_n_i(ft_rxf_n_late), .ft_txe_n_i(ft_txe_n), .ft_oe_n_o(ft_oe_n), .ft_rd_n_o(ft_rd_n), .ft_wr_n_o(ft_wr_n),
    .ft_siwu_n_o(ft_siwu_n), .ft_data_i(ft_late), .ft_data_o(ft_out), .ft_drive_o(ft_drive),
    .uart_rx_i(ftdi_txd), .uart_tx_o(ftdi_rxd),
    .sdram_cke_o(sdram_cke), .sdram_cs_no(sdram_csn), .sdram_ras_no(sdram_rasn), .sdram_cas_no(sdram_casn), .sdram_we_no(sdram_wen),
    .sdram_ba_o(sdram_ba), .sdram_a_o(sdram_a), .sdram_dqm_o(sdram_dqm), .sdram_dq_o(dq_out), .sdram_dq_oe_o(dq_oe), .sdram_dq_i(dq_in_q),
    .led_o(lamps)
  );
  assign led = {lamps[7] || !locked, lamps[6:0]};

endmodule

`default_nettype wire
