// SPDX-License-Identifier: Apache-2.0
//
// The semaphores of one context: 16 counters of 8 bits.
//
// Inputs      dec_i and inc_i carry one bit per unit and semaphore (bit 16*u + s; units in the order LD, ST, MM, VL, VA, VS). A
//             unit that takes one must have seen nz_o[s] in the same cycle. All bits of a cycle are added up: six units may
//             give and take the same semaphore at once.
// Latency     one cycle: what is given in cycle t can be taken in cycle t + 1.
// Errors      a sum below 0 or above 255 sets err_o for one cycle, one cycle later, with the lowest semaphore concerned; that
//             counter then stays at the limit it ran into. Below 0 happens only if two units wait for the same semaphore.
// Clear       while clear_i is high all counters are zero, and dec_i and inc_i are ignored.

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

  // How many of six bits are set.
  function automatic logic [2:0] count6(input logic [5:0] x);
    logic [1:0] lo;
    logic [1:0] hi;
    lo = {1'b0, x[0]} + {1'b0, x[1]} + {1'b0, x[2]};
    hi = {1'b0, x[3]} + {1'b0, x[4]} + {1'b0, x[5]};
    count6 = {1'b0, lo} + {1'b0, hi};
  endfunction

  logic [8*NumSems-1:0]  cnt_d, cnt_q;
  logic [NumSems-1:0]    nz_d, nz_q;  // cnt is not zero
  logic [10*NumSems-1:0] sum;    // two's complement, -6 .. 261
  logic [NumSems-1:0]    wrong;  // this counter leaves 0..255
  logic                  active;
  logic                  err_q;
  logic [3:0]            err_num_d, err_num_q;

  assign active = !clear_i && ((dec_i != '0) || (inc_i != '0));

  always_comb begin
    cnt_d     = cnt_q;
    sum       = '0;
    wrong     = '0;
    err_num_d = 4'd0;
    nz_d      = nz_q;
    if (active) begin
      for (int s = 0; s < NumSems; s++) begin
        sum[10*s +: 10] = {2'b00, cnt_q[8*s +: 8]}
          + {7'd0, count6({inc_i[80+s], inc_i[64+s], inc_i[48+s], inc_i[32+s], inc_i[16+s], inc_i[s]})}
          - {7'd0, count6({dec_i[80+s], dec_i[64+s], dec_i[48+s], dec_i[32+s], dec_i[16+s], dec_i[s]})};
        wrong[s] = (sum[10*s+8 +: 2] != 2'b00);
        // Bit 9 is the sign: below zero stops at 0, above 255 at 255.
        cnt_d[8*s +: 8] = wrong[s] ? {8{!sum[10*s+9]}} : sum[10*s +: 8];
        nz_d[s] = (cnt_d[8*s +: 8] != 8'd0);
      end
      for (int s = NumSems - 1; s >= 0; s--) begin
        if (wrong[s]) err_num_d = 4'(s);
      end
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      cnt_q <= '0;
      nz_q  <= '0;
      err_q <= 1'b0;
    end else begin
      if (clear_i) begin
        cnt_q <= '0;
        nz_q  <= '0;
      end else if (active) begin
        cnt_q <= cnt_d;
        nz_q  <= nz_d;
      end
      err_q <= (wrong != '0);
    end
  end

  always_ff @(posedge clk_i) begin
    if (wrong != '0) err_num_q <= err_num_d;
  end

  assign nz_o      = nz_q;
  assign err_o     = err_q;
  assign err_num_o = err_num_q;

  logic [NumSems-1:0] nonzero;
  always_comb begin
    for (int s = 0; s < NumSems; s++) nonzero[s] = (cnt_q[8*s +: 8] != 8'd0);
  end
  `CT_ASSERT(NotZero_A, nz_q == nonzero)

`ifdef FORMAL
  // Any one semaphore by itself, as a plain sum of what the units give and take, held within its range.
  (* anyconst *) logic [3:0] f_sem;
  logic [7:0]         f_cnt_q, f_next;
  logic signed [10:0] f_sum;
  logic               f_wrong_q;
  always_comb begin
    f_sum = $signed({3'b000, f_cnt_q})
          + $signed({8'd0, count6({inc_i[80+f_sem], inc_i[64+f_sem], inc_i[48+f_sem], inc_i[32+f_sem], inc_i[16+f_sem], inc_i[f_sem]})})
          - $signed({8'd0, count6({dec_i[80+f_sem], dec_i[64+f_sem], dec_i[48+f_sem], dec_i[32+f_sem], dec_i[16+f_sem], dec_i[f_sem]})});
    f_next = clear_i || f_sum < 0 ? 8'd0 : f_sum > 255 ? 8'd255 : f_sum[7:0];
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      f_cnt_q   <= '0;
      f_wrong_q <= 1'b0;
    end else begin
      f_cnt_q   <= f_next;
      f_wrong_q <= !clear_i && (f_sum < 0 || f_sum > 255);
    end
  end
  `CT_ASSERT(CountsAll_A, cnt_q[8*f_sem +: 8] == f_cnt_q)
  `CT_ASSERT(ErrorsSeen_A, !f_wrong_q || (err_o && err_num_o <= f_sem))
  `CT_ASSERT(ErrorIsOne_A, !err_o || err_num_o != f_sem || f_wrong_q)
`endif

  `CT_COVER(Overflow_C, err_q && nz_o[err_num_q])
  `CT_COVER(Underflow_C, err_q && !nz_o[err_num_q])

endmodule

`default_nettype wire
