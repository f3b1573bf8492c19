// SPDX-License-Identifier: Apache-2.0
//
// The cells of Lattice ECP5 that ct_ulx3s names. Synthesis takes their ports alone (scripts/ecp5.sh reads this file with -lib); what they do, without
// delays, is for simulation (tb/board).

/* verilator lint_off DECLFILENAME */
/* verilator lint_off UNUSED */
`default_nettype none

// A bidirectional pin: T high lets go of it.
(* blackbox *)
module BB (
  inout  wire  B,
  input  logic I,
  input  logic T,
  output logic O
);
  assign B = T ? 1'bz : I;
  assign O = B;
endmodule

// An output register for both edges: D0 while SCLK is high, D1 while it is low.
(* blackbox *)
module ODDRX1F (
  input  logic D0,
  input  logic D1,
  input  logic SCLK,
  input  logic RST,
  output logic Q
);
  assign Q = !RST && (SCLK ? D0 : D1);
endmodule

// A delay between an input and its register.
(* blackbox *)
module DELAYG #(
  parameter DEL_MODE = "USER_DEFINED"
) (
  input  logic A,
  output logic Z
);
  assign Z = A;
endmodule

// The PLL. In simulation it hands on what comes in, and has locked: who simulates gives the clock that it would make.
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
  parameter CLKOS3_ENABLE = "DISABLED"
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
  assign CLKOP = CLKI;
  assign CLKOS = CLKI;
  assign LOCK  = 1'b1;
endmodule

`default_nettype wire
/* verilator lint_on UNUSED */
/* verilator lint_on DECLFILENAME */
