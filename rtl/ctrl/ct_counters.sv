// SPDX-License-Identifier: Apache-2.0
//
// The event counters of both contexts: 64 bits each, in one block RAM.
//
// How         each counter has an accumulator of 6 bits that steps with its events and is never cleared: a shift register with feedback, which goes
//             round in 63 steps and costs one LUT, where a binary counter costs eight. A word of the RAM has the count and the step at which the
//             accumulator stood when it was written. A sweep brings one word after the other up to date, one a cycle in three steps (read;
//             take the shift register's state for its step; add the steps gone since, and write).
//             A read takes the sweep's place for a cycle and answers the same sum, so what it shows is exact, not as of the last sweep.
// Latency     rd_vld_o comes 4 to 22 cycles after rd_req_i, with all events up to five cycles before it.
// Reads       one at a time: rd_req_i is a pulse, the next not before rd_vld_o. An index without a counter reads 0.
// Bound       a read goes in only where the sweep stands at a multiple of eight, so a word is at most 2 * Counters * 9 / 8 + 1 cycles old:
//             less than 63 for up to 27 counters, so that an accumulator cannot go round unseen (checked at elaboration).
//
// ev_i[Counters*c + n] is the event of counter n of context c, at most one a cycle.

`default_nettype none
`include "ct_assert.svh"

module ct_counters #(
  parameter  int unsigned Contexts = 2,
  localparam int unsigned Counters = ct_pkg::NumCounters
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,

  input  logic [2*Counters-1:0] ev_i,

  input  logic                  rd_req_i,
  input  logic                  rd_ctx_i,
  input  logic [4:0]            rd_index_i,
  output logic                  rd_vld_o,
  output logic [63:0]           rd_data_o
);

  localparam int unsigned All   = Contexts * Counters;
  localparam int unsigned SlotW = 6;
  localparam int unsigned AccW  = 6;
  localparam int unsigned Steps = 2 ** AccW - 1;

  if (All + (All + 7) / 8 + 1 >= Steps) begin : g_too_many
    ct_error_too_many_counters_for_the_width_of_an_accumulator u_error ();
  end

  // The accumulator after one more event; all ones it never is.
  function automatic logic [AccW-1:0] next(input logic [AccW-1:0] acc);
    next = {acc[AccW-2:0], !(acc[AccW-1] ^ acc[AccW-2])};
  endfunction

  // The step at which it stands, for each of its states.
  function automatic logic [2**AccW*AccW-1:0] steps_of_states();
    logic [AccW-1:0] state;
    steps_of_states = '0;
    state = '0;
    for (int unsigned i = 0; i < Steps; i++) begin
      steps_of_states[AccW*state +: AccW] = AccW'(i);
      state = next(state);
    end
  endfunction

  localparam logic [2**AccW*AccW-1:0] StepOf = steps_of_states();

  (* no_rw_check *)  // never the word that is being written: the sweep is ahead, a read waits
  logic [AccW+63:0]    mem [0:63];
  logic [AccW+63:0]    word_q;                // {step, count}
  logic [AccW-1:0]     now_q, then_q, acc;
  logic [63:0]         count_q, sum;
  logic [AccW:0]       gone;                  // steps since, bit AccW: past the end
  logic [AccW-1:0]     more;                  // events since
  logic [All-1:0]      ev_q;
  logic [AccW*All-1:0] acc_q;
  logic                pend_q, pend_known_q;  // a read waits; its index has a counter
  logic [SlotW-1:0]    sweep_q, slot_q, slot2_q, pend_slot_q, slot;
  logic                second_q, third_q;     // the second step is slot_q's, the third slot2_q's
  logic                host_q, host2_q;       // ... and it is a read
  logic                init_q;                // first sweep after reset: the RAM holds nothing yet
  logic                host;

  // First step: a waiting read, unless its word is being written; else the next counter of the sweep.
  assign host = pend_q && sweep_q[2:0] == 3'd0 && !(second_q && !host_q && slot_q == pend_slot_q) && !(third_q && !host2_q && slot2_q == pend_slot_q);
  assign slot = host ? pend_slot_q : sweep_q;

  // Bit by bit, so that it is a multiplexer and no shifter.
  for (genvar b = 0; b < AccW; b++) begin : g_bit
    logic [63:0] plane;
    always_comb begin
      plane = '0;
      for (int i = 0; i < All; i++) plane[i] = acc_q[AccW*i + b];
    end
    assign acc[b] = plane[slot_q];
  end

  // Third step.
  assign gone = {1'b0, now_q} - {1'b0, then_q};
  assign more = gone[AccW-1:0] - AccW'(gone[AccW]);
  assign sum  = count_q + 64'(more);

  always_ff @(posedge clk_i) begin
    if (init_q && slot >= sweep_q) word_q <= '0;  // not written yet
    else                           word_q <= mem[slot];
    if (third_q && !host2_q) mem[slot2_q] <= {now_q, sum};
    slot_q  <= slot;
    slot2_q <= slot_q;
    now_q   <= StepOf[AccW*acc +: AccW];
    {then_q, count_q} <= word_q;
    if (rd_req_i) begin
      pend_slot_q  <= (32'(rd_index_i) < Counters && 32'(rd_ctx_i) < Contexts) ? SlotW'(rd_index_i) + (rd_ctx_i ? SlotW'(Counters) : '0) : '0;
      pend_known_q <= (32'(rd_index_i) < Counters && 32'(rd_ctx_i) < Contexts);
    end
    if (third_q && host2_q) begin
      if (pend_known_q) rd_data_o <= sum;
      else              rd_data_o <= '0;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      second_q <= 1'b0;
      third_q  <= 1'b0;
      host_q   <= 1'b0;
      host2_q  <= 1'b0;
      pend_q   <= 1'b0;
      sweep_q  <= '0;
      init_q   <= 1'b1;
      rd_vld_o <= 1'b0;
    end else begin
      second_q <= 1'b1;
      third_q  <= second_q;
      host_q   <= host;
      host2_q  <= host_q;
      rd_vld_o <= third_q && host2_q;
      if (rd_req_i)  pend_q <= 1'b1;
      else if (host) pend_q <= 1'b0;
      if (!host) begin
        sweep_q <= (sweep_q == SlotW'(All - 1)) ? '0 : sweep_q + 1'b1;
        if (sweep_q == SlotW'(All - 1)) init_q <= 1'b0;
      end
    end
  end

  // (Registered once: what the units say comes late in a cycle.)
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      ev_q  <= '0;
      acc_q <= '0;
    end else begin
      ev_q <= ev_i[All-1:0];
      for (int i = 0; i < All; i++) begin
        if (ev_q[i]) acc_q[AccW*i +: AccW] <= next(acc_q[AccW*i +: AccW]);
      end
    end
  end

  if (Contexts == 1) begin : g_one
    logic unused_ev;
    assign unused_ev = ^ev_i[2*Counters-1:Counters];
  end

  `CT_ASSERT(OneRead_A, !(rd_req_i && pend_q))

endmodule

`default_nettype wire
