// SPDX-License-Identifier: Apache-2.0
//
// The FIFO of the project: first word falls through, valid/ready on both sides.
//
// Latency     a word written into an empty FIFO is at data_o in the next cycle.
// Throughput  one word a cycle; with Depth = 1 one word every two cycles, because a full FIFO takes nothing even while it is
//             read: ready_o depends on registers only. Take Depth = 2 (or ct_skid) where full throughput matters.
// Handshake   a word moves where valid and ready are both high at the rising edge. valid_o never falls and data_o never changes
//             before ready_i. valid_i may fall again without having been taken.
// Storage     an array without reset, read combinationally: registers when small, LUT RAM when deeper. Deep and wide buffers
//             belong into block RAM, which this module does not use.
//
// Parameters
//   Width  bits of a word, at least 1
//   Depth  words, at least 1; any number, not only powers of two
//
// count_o is the number of words held (0 .. Depth); leave it open, .count_o (), where it is not needed.

`default_nettype none
`include "ct_assert.svh"

module ct_fifo #(
  parameter  int unsigned Width  = 8,
  parameter  int unsigned Depth  = 2,
  localparam int unsigned CountW = (Depth == 0) ? 1 : $clog2(Depth + 1)
) (
  input  logic              clk_i,
  input  logic              rst_ni,

  input  logic              valid_i,
  output logic              ready_o,
  input  logic [Width-1:0]  data_i,

  output logic              valid_o,
  input  logic              ready_i,
  output logic [Width-1:0]  data_o,

  output logic [CountW-1:0] count_o
);

  if (Depth == 0) begin : g_check_depth
    ct_error_fifo_depth_must_be_at_least_1 u_error ();
  end
  if (Width == 0) begin : g_check_width
    ct_error_fifo_width_must_be_at_least_1 u_error ();
  end

  localparam int unsigned Words = (Depth == 0) ? 1 : Depth;
  localparam int unsigned PtrW  = (Words == 1) ? 1 : $clog2(Words);
  localparam logic [PtrW-1:0]   Last = PtrW'(Words - 1);
  localparam logic [CountW-1:0] Full = CountW'(Words);

  logic [Width-1:0]  mem [0:Words-1];
  logic [PtrW-1:0]   wptr_d, wptr_q;
  logic [PtrW-1:0]   rptr_d, rptr_q;
  logic [CountW-1:0] count_d, count_q;
  logic              some_d, some_q, full_d, full_q;  // what count_q says, without a comparison: the outputs come from registers
  logic              push, pop;

  assign ready_o = !full_q;
  assign valid_o = some_q;
  assign data_o  = mem[rptr_q];
  assign count_o = count_q;

  assign push = valid_i && ready_o;
  assign pop  = valid_o && ready_i;

  always_comb begin
    wptr_d  = wptr_q;
    rptr_d  = rptr_q;
    count_d = count_q;
    if (push) wptr_d = (wptr_q == Last) ? '0 : wptr_q + 1'b1;
    if (pop)  rptr_d = (rptr_q == Last) ? '0 : rptr_q + 1'b1;
    if (push && !pop) count_d = count_q + 1'b1;
    if (pop && !push) count_d = count_q - 1'b1;
    some_d = push || (some_q && !(pop && count_q == CountW'(1)));
    full_d = !pop && (full_q || (push && count_q == Full - 1'b1));
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      wptr_q  <= '0;
      rptr_q  <= '0;
      count_q <= '0;
      some_q  <= 1'b0;
      full_q  <= 1'b0;
    end else begin
      wptr_q  <= wptr_d;
      rptr_q  <= rptr_d;
      count_q <= count_d;
      some_q  <= some_d;
      full_q  <= full_d;
    end
  end

  always_ff @(posedge clk_i) begin
    if (push) mem[wptr_q] <= data_i;
  end

  // Invariants. The words held lie from rptr_q on, around the end of the array, up to wptr_q.
  logic [CountW:0] stop;
  assign stop = (CountW + 1)'(rptr_q) + (CountW + 1)'(count_q);

  `CT_ASSERT(CountInRange_A, count_q <= Full)
  `CT_ASSERT(FlagsAreCount_A, some_q == (count_q != '0) && full_q == (count_q == Full))
  `CT_ASSERT(PointersInRange_A, wptr_q <= Last && rptr_q <= Last)
  `CT_ASSERT(CountIsDistance_A, stop == (CountW + 1)'(wptr_q) || stop == (CountW + 1)'(wptr_q) + (CountW + 1)'(Words))

`ifdef FORMAL
  `include "ct_fifo_formal.svh"
`endif

  `CT_COVER(Full_C, count_q == Full)
  `CT_COVER(FullAndRead_C, count_q == Full && ready_i)

endmodule

`default_nettype wire
