// SPDX-License-Identifier: Apache-2.0
//
// When the doorbells of a ring rang: for the next descriptor to be read the cycle of the TAIL write that made it visible.
//
// How         TAIL as written and the cycle lie in a block RAM, read ahead by one. The front, if it has been looked at, belongs to descriptors that
//             have not been read yet; it is dropped two cycles after the last of them has been read.
// Bound       up to 64 writes are remembered; one that finds all 64 in use is forgotten, and its descriptors show the next remembered write's
//             time, or the last's.
// Latency     bell_o is right from the fifth cycle after HEAD or TAIL has moved; a descriptor takes longer to read.

`default_nettype none
`include "ct_assert.svh"

module ct_bells (
  input  logic        clk_i,
  input  logic        rst_ni,

  input  logic        reset_i,    // all that have rung are forgotten
  input  logic        tail_we_i,
  input  logic [15:0] tail_i,
  input  logic        moves_i,    // the write changes TAIL
  input  logic [15:0] head_i,     // the descriptor to be read next
  input  logic [63:0] cycle_i,
  output logic [63:0] bell_o
);

  localparam int unsigned Doorbells = 64;
  localparam int unsigned BellW = $clog2(Doorbells);

  (* no_rw_check *)                     // never read where it is written, see BellsApart_A
  logic [79:0]      bells [0:Doorbells-1];
  logic [79:0]      front_q;             // the oldest, if front_vld_q
  logic             front_vld_q;
  logic [BellW-1:0] bell_w_q, bell_r_d, bell_r_q;
  logic [BellW:0]   bell_count_q, bell_left;
  logic [63:0]      last_bell_q;
  logic [15:0]      ahead;               // descriptors from the next to be read to the front's last
  logic             bell_push, bell_stale;
  logic             bell_drop_q;         // the front goes
  logic             front_good_q;        // it has been looked at, and is not stale

  assign ahead      = front_q[79:64] - head_i;
  assign bell_push  = tail_we_i && moves_i && (bell_count_q != (BellW + 1)'(Doorbells));
  assign bell_stale = front_vld_q && (ahead == '0 || ahead[15]);
  assign bell_r_d   = bell_r_q + BellW'(bell_drop_q);
  assign bell_left  = bell_count_q - (BellW + 1)'(bell_drop_q);
  assign bell_o     = front_good_q ? front_q[63:0] : last_bell_q;

  always_ff @(posedge clk_i) begin
    if (bell_push) bells[bell_w_q] <= {tail_i, cycle_i};
    front_q <= bells[bell_r_d];
    if (tail_we_i) last_bell_q <= cycle_i;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      bell_w_q     <= '0;
      bell_drop_q  <= 1'b0;
      front_good_q <= 1'b0;
      bell_r_q     <= '0;
      bell_count_q <= '0;
      front_vld_q  <= 1'b0;
    end else if (reset_i) begin
      bell_drop_q  <= 1'b0;
      front_good_q <= 1'b0;
      bell_r_q     <= bell_w_q;
      bell_count_q <= '0;
      front_vld_q  <= 1'b0;
    end else begin
      bell_drop_q  <= bell_stale && !bell_drop_q;
      front_good_q <= front_vld_q && !bell_stale && !bell_drop_q;
      bell_w_q     <= bell_w_q + BellW'(bell_push);
      bell_r_q     <= bell_r_d;
      bell_count_q <= bell_left + (BellW + 1)'(bell_push);
      front_vld_q  <= (bell_left != '0);
    end
  end

  `CT_ASSERT(BellCount_A, bell_count_q <= (BellW + 1)'(Doorbells))
  `CT_ASSERT(BellPointers_A, BellW'(bell_w_q - bell_r_q) == bell_count_q[BellW-1:0])
  `CT_ASSERT(BellsApart_A, !bell_push || bell_left == '0 || bell_r_d != bell_w_q)
  `CT_ASSERT(FrontHeld_A, !front_vld_q || bell_count_q != '0)

endmodule

`default_nettype wire
