// SPDX-License-Identifier: Apache-2.0
//
// Units of 16 bytes in, a window on their bits out: the next 168 bits of a group of compressed activations, of which any number may be taken
// (docs/compression.md).
//
// Window      bits_o begins with the next bit that was not taken; have_o of them are the group's. What is behind may be anything. (The last byte of a group
//             does not count: it is the check.)
// Taking      take_i takes len_i bits, at most have_o and 168. With next_i the group is over: what is left of it goes, too, ended_o must be high, and the
//             window is on the next group in the next cycle.
// End         ended_o: the last unit of the group is here. wrong_o: and the exclusive or of all bytes of the group is not 0.
// Room        three units; full_o: all are here. Then there are 257 bits, or the end of the group is here.
// Throughput  a unit a cycle, 168 bits a cycle.

`default_nettype none
`include "ct_assert.svh"

module ct_act_bits (
  input  logic         clk_i,
  input  logic         rst_ni,

  input  logic         flush_i,
  output logic         idle_o,     // no unit is here

  input  logic         valid_i,
  output logic         ready_o,
  input  logic [127:0] data_i,
  input  logic         last_i,     // the last unit of a group
  input  logic [1:0]   tag_i,      // comes out with its first bit

  output logic [167:0] bits_o,
  output logic [1:0]   tag_o,
  output logic [8:0]   have_o,
  output logic         ended_o,
  output logic         wrong_o,
  output logic         full_o,
  input  logic         take_i,
  input  logic [7:0]   len_i,
  input  logic         next_i
);

  logic [383:0] units_d, units_q;
  logic [2:0]   last_d, last_q, wrong_d, wrong_q;  // of each unit
  logic [5:0]   tag_d, tag_q;
  logic [1:0]   count_d, count_q;                  // units that are here
  logic [6:0]   at_d, at_q;                        // the next bit, in the first unit
  logic [7:0]   check_d, check_q;
  logic         push;

  function automatic logic [7:0] fold(input logic [127:0] v);
    fold = '0;
    for (int i = 0; i < 16; i++) fold = fold ^ v[8*i +: 8];
  endfunction

  assign full_o  = count_q == 2'd3;
  assign ready_o = !full_o;
  assign idle_o  = count_q == 2'd0 && check_q == 8'd0;
  assign push    = valid_i && ready_o;
  always_comb begin
    check_d = check_q;
    if (push) check_d = check_q ^ fold(data_i);
  end

  // Units of the group that are here. (Those of the next one may be behind.)
  logic [1:0] own;
  always_comb begin
    own = count_q;
    if (last_q[1] && count_q > 2'd1) own = 2'd2;
    if (last_q[0] && count_q != 2'd0) own = 2'd1;
  end
  assign ended_o = (last_q[0] && count_q != 2'd0) || (last_q[1] && count_q > 2'd1) || (last_q[2] && full_o);
  assign wrong_o = ended_o && (own == 2'd1 ? wrong_q[0] : own == 2'd2 ? wrong_q[1] : wrong_q[2]);

  logic [8:0]   stop;     // the first bit that is not the group's
  assign stop    = ended_o ? {own, 7'd0} - 9'd8 : {own, 7'd0};
  assign have_o  = stop > {2'd0, at_q} ? stop - {2'd0, at_q} : 9'd0;
  assign tag_o   = tag_q[1:0];
  // (Behind count_q, so that a simulator shifts only what is here.)
  always_comb begin
    bits_o = '0;
    if (count_q != 2'd0) bits_o = 168'(units_q[294:0] >> at_q);
  end

  // Units that are done with go, then one comes behind what is left.
  logic [8:0] next;
  logic [1:0] gone, left;
  assign next = {2'd0, at_q} + {1'b0, len_i};
  assign gone = !take_i ? 2'd0 : next_i ? own : next[8:7];
  assign left = count_q - gone;

  always_comb begin
    units_d = units_q;
    last_d  = last_q;
    wrong_d = wrong_q;
    tag_d   = tag_q;
    if (gone[0]) begin
      units_d = {128'd0, units_d[383:128]};
      last_d  = {1'b0, last_d[2:1]};
      wrong_d = {1'b0, wrong_d[2:1]};
      tag_d   = {2'd0, tag_d[5:2]};
    end
    if (gone[1]) begin
      units_d = {256'd0, units_d[383:256]};
      last_d  = {2'b00, last_d[2]};
      wrong_d = {2'b00, wrong_d[2]};
      tag_d   = {4'd0, tag_d[5:4]};
    end
    for (int i = 0; i < 3; i++) begin
      if (push && left == 2'(i)) begin
        units_d[128*i +: 128] = data_i;
        last_d[i]             = last_i;
        wrong_d[i]            = check_d != 8'd0;
        tag_d[2*i +: 2]       = tag_i;
      end
    end
    count_d = left + 2'(push);
    at_d    = !take_i ? at_q : next_i ? 7'd0 : next[6:0];
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      count_q <= '0;
      at_q    <= '0;
      check_q <= '0;
    end else if (flush_i) begin
      count_q <= '0;
      at_q    <= '0;
      check_q <= '0;
    end else begin
      count_q <= count_d;
      at_q    <= at_d;
      if (push) check_q <= last_i ? 8'd0 : check_d;
    end
  end

  always_ff @(posedge clk_i) begin
    if (take_i || push) begin
      units_q <= units_d;
      last_q  <= last_d;
      wrong_q <= wrong_d;
      tag_q   <= tag_d;
    end
  end

  `CT_ASSUME(TakesWhatIsHere_M, !take_i || ({1'b0, len_i} <= have_o && len_i <= 8'd168))
  `CT_ASSUME(NextAtTheEnd_M, !next_i || ended_o)
  `CT_ASSERT(EnoughWhenFull_A, !full_o || ended_o || have_o >= 9'd257)
  `CT_ASSERT(GoneWereHere_A, gone <= count_q)
`ifdef FORMAL
  `include "ct_act_bits_formal.svh"
`endif

  `CT_COVER(TwoGone_C, take_i && !next_i && gone == 2'd2)

endmodule

`default_nettype wire
