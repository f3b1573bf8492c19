// SPDX-License-Identifier: Apache-2.0
//
// The ports of the cells of Lattice ECP5 that ct_ulx3s names: for tools that do not know them. What they do is in the chip.

`default_nettype none

// A bidirectional pin: T high lets go of it.
(* blackbox *)
module BB (
  inout  wire  B,
  input  logic I,
  input  logic T,
  output logic O
);
endmodule

// The PLL.
(* blackbox *)
module EHXPLLL #(
  parameter CLKI_DIV      = 1,
  parameter CLKFB_DIV     = 1,
  parameter FEEDBK_PATH   = "CLKOP",
  parameter CLKOP_ENABLE  = "ENABLED",
  parameter CLKOP_DIV     = 8,
  parameter CLKOP_CPHASE  = 0,
  parameter CLKOP_FPHASE  = 0,
  parameter CLKOS_ENABLE  = "DISABLED",
  parameter CLKOS_DIV     = 8,
  parameter CLKOS_CPHASE  = 0,
  parameter CLKOS_FPHASE  = 0,
  parameter CLKOS2_ENABLE = "DISABLED",
  parameter CLKOS2_DIV    = 8,
  parameter CLKOS2_CPHASE = 0,
  parameter CLKOS2_FPHASE = 0
) (
  input  logic CLKI,
  input  logic CLKFB,
  output logic CLKOP,
  output logic CLKOS,
  output logic LOCK,
  input  logic RST,
  input  logic STDBY,
  input  logic PHASESEL0,
  input  logic PHASESEL1,
  input  logic PHASEDIR,
  input  logic PHASESTEP,
  input  logic PHASELOADREG,
  input  logic PLLWAKESYNC,
  input  logic ENCLKOP,
  input  logic ENCLKOS
);
endmodule

`default_nettype wire
