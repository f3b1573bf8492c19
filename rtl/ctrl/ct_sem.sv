// SPDX-License-Identifier: Apache-2.0
//
// The semaphores of one context: 16 counters of 8 bits.
//
// Inputs      dec_i and inc_i carry one bit per unit and semaphore (bit 16*u + s; units in the order LD, ST, MM, VL, VA, VS). A
//             unit that takes one must have seen nz_o[s] in the same cycle (the vector unit: in the one before). All bits of a cycle are
//             added up: six units may give and take the same semaphore at once.
// Latency     one cycle: what is given in cycle t can be taken in cycle t + 1.
// Errors      a sum below 0 or above 255 sets err_o for one cycle, two cycles later, with the lowest semaphore concerned (which one that
//             is, is looked at in a cycle of its own); that counter then keeps what it held. Below 0 happens only if two units wait for the same semaphore.
// Clear       while clear_i is high all counters are zero, dec_i and inc_i are ignored, and what was wrong in the cycle before is not told: it is of
//             the job before. The counters have no other reset: clear_i must be high in the last cycle of reset (a second reset in front of
//             each bit would be a LUT each).

`default_nettype none
`include "ct_assert.svh"

module ct_sem (
  input  logic            clk_i,
  input  logic            rst_ni,

  input  logic            clear_i,
  input  logic [6*16-1:0] dec_i,
  input  logic [6*16-1:0] inc_i,

  output logic [15:0]     nz_o,
  output logic            err_o,
  output logic [3:0]      err_num_o
);

  localparam int NumSems = 16;

  // The carry of one full adder. (Sums of a few bits are written as logic: an adder would cost a carry chain each.)
  function automatic logic carry(input logic a, input logic b, input logic c);
    carry = (a && b) || (a && c) || (b && c);
  endfunction

  // How many of six bits are set.
  function automatic logic [2:0] count6(input logic [5:0] x);
    logic [1:0] lo;
    logic [1:0] hi;
    lo = {carry(x[0], x[1], x[2]), x[0] ^ x[1] ^ x[2]};
    hi = {carry(x[3], x[4], x[5]), x[3] ^ x[4] ^ x[5]};
    count6 = {carry(lo[1], hi[1], lo[0] && hi[0]), lo[1] ^ hi[1] ^ (lo[0] && hi[0]), lo[0] ^ hi[0]};
  endfunction

  // a - b of two such counts: two's complement, -6 .. 6.
  function automatic logic [3:0] minus(input logic [2:0] a, input logic [2:0] b);
    logic [3:1] borrow;
    borrow[1] = !a[0] && b[0];
    borrow[2] = carry(!a[1], b[1], borrow[1]);
    borrow[3] = carry(!a[2], b[2], borrow[2]);
    minus = {borrow[3], a[2] ^ b[2] ^ borrow[2], a[1] ^ b[1] ^ borrow[1], a[0] ^ b[0]};
  endfunction

  logic [8*NumSems-1:0]  cnt_q;
  logic [NumSems-1:0]    nz_q;   // cnt is not zero
  logic [4*NumSems-1:0]  change;
  logic [10*NumSems-1:0] sum;    // two's complement, -6 .. 261
  logic [NumSems-1:0]    wrong;  // this counter would leave 0..255
  logic                  active;
  logic [NumSems-1:0]    wrong_q;
  logic                  err_q;
  logic [3:0]            err_num_d, err_num_q;

  assign active = !clear_i && ((dec_i != '0) || (inc_i != '0));

  // (Nobody looks at these unless active; saying so with x leaves synthesis free and spares a simulator the work.)
  always_comb begin
    change = 'x;
    sum    = 'x;
    wrong  = 'x;
    if (active) begin
      for (int s = 0; s < NumSems; s++) begin
        change[4*s +: 4] = minus(count6({inc_i[80+s], inc_i[64+s], inc_i[48+s], inc_i[32+s], inc_i[16+s], inc_i[s]}),
                                 count6({dec_i[80+s], dec_i[64+s], dec_i[48+s], dec_i[32+s], dec_i[16+s], dec_i[s]}));
        sum[10*s +: 10] = {2'b00, cnt_q[8*s +: 8]} + {{6{change[4*s+3]}}, change[4*s +: 4]};
        wrong[s] = (sum[10*s+8 +: 2] != 2'b00);
      end
    end
  end

  always_comb begin
    err_num_d = 4'd0;
    for (int s = NumSems - 1; s >= 0; s--) begin
      if (wrong_q[s]) err_num_d = 4'(s);
    end
  end

  always_ff @(posedge clk_i) begin
    if (clear_i) begin
      cnt_q <= '0;
      nz_q  <= '0;
    end else if (active) begin
      for (int s = 0; s < NumSems; s++) begin
        if (!wrong[s]) begin
          cnt_q[8*s +: 8] <= sum[10*s +: 8];
          nz_q[s]         <= (sum[10*s +: 8] != 8'd0);
        end
      end
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      wrong_q <= '0;
      err_q   <= 1'b0;
    end else begin
      wrong_q <= active ? wrong : '0;
      err_q   <= (wrong_q != '0) && !clear_i;
    end
  end

  always_ff @(posedge clk_i) begin
    if (wrong_q != '0) err_num_q <= err_num_d;
  end

  assign nz_o      = nz_q;
  assign err_o     = err_q;
  assign err_num_o = err_num_q;

  logic [NumSems-1:0] nonzero;
  always_comb begin
    for (int s = 0; s < NumSems; s++) nonzero[s] = (cnt_q[8*s +: 8] != 8'd0);
  end
  logic cleared_q;  // in the last cycle
  always_ff @(posedge clk_i) cleared_q <= clear_i;
  logic started_q;  // reset was over in the last cycle
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) started_q <= 1'b0;
    else         started_q <= 1'b1;
  end
  `CT_ASSUME(ClearedByReset_M, started_q || cleared_q)
  `CT_ASSERT(NotZero_A, nz_q == nonzero)

`ifdef FORMAL
  `include "ct_sem_formal.svh"
`endif

  `CT_COVER(Overflow_C, err_q && nz_o[err_num_q])
  `CT_COVER(Underflow_C, err_q && !nz_o[err_num_q])

endmodule

`default_nettype wire
