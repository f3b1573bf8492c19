// SPDX-License-Identifier: Apache-2.0
//
// Assertion macros, one branch per tool.
//
//   `CT_ASSERT(Name_A, expr)   expr holds at every rising edge of clk_i outside reset
//   `CT_ASSUME(Name_M, expr)   as above, about the module's inputs; the formal tools take it for granted, simulation checks it
//   `CT_COVER (Name_C, expr)   expr is reachable (counted by Verilator under --coverage, searched for by the formal tools)
//
// The clock is the signal clk_i and the reset is rst_ni of the module that includes this file. A use is one line at module
// level, without a semicolon after it. expr is a boolean over current values: write an implication as (!a || b); no ##N, no |->.
// For "what was true a cycle ago" keep a register with a reset and say so in the expression: it reads the same in every tool.
//
//   in Verilator, run with --assert     a concurrent assertion; a failure stops the simulation
//   in Yosys, read_verilog -formal      an immediate assertion about every cycle outside reset (not inside a loop of generate: there the
//                                       name would be used twice; make a vector and assert that)
//   in all others (synthesis)          nothing
`ifndef CT_ASSERT_SVH_
`define CT_ASSERT_SVH_

`ifdef VERILATOR

`define CT_ASSERT(Name, Expr) \
  Name: assert property (@(posedge clk_i) disable iff (!rst_ni) (Expr));
`define CT_ASSUME(Name, Expr) \
  Name: assume property (@(posedge clk_i) disable iff (!rst_ni) (Expr));
`define CT_COVER(Name, Expr) \
  Name: cover property (@(posedge clk_i) disable iff (!rst_ni) (Expr));

`elsif FORMAL

`define CT_ASSERT(Name, Expr) \
  always @(*) if (rst_ni) Name: assert (Expr);
`define CT_ASSUME(Name, Expr) \
  always @(*) if (rst_ni) Name: assume (Expr);
`define CT_COVER(Name, Expr) \
  always @(*) if (rst_ni) Name: cover (Expr);

`else

`define CT_ASSERT(Name, Expr)
`define CT_ASSUME(Name, Expr)
`define CT_COVER(Name, Expr)

`endif

`endif  // CT_ASSERT_SVH_
