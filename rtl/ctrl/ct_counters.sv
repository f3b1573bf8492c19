// SPDX-License-Identifier: Apache-2.0
//
// The event counters of both contexts: 64 bits each, in one block RAM.
//
// How         each counter has an accumulator of 8 bits that counts its events, and a word of the RAM. A sweep adds one
//             accumulator after the other to its word, two cycles each (read; add and write), round and round. A read takes the
//             sweep's place for two cycles and answers word + accumulator, so what it shows is exact, not as of the last sweep.
// Latency     rd_vld_o comes 3 to 6 cycles after rd_req_i, with all events up to two cycles before it.
// Reads       one at a time: rd_req_i is a pulse, the next not before rd_vld_o. An index without a counter reads 0.
// Bound       an accumulator waits for at most 2 * (2 * Counters) sweep steps, with reads taking at most every other one: less
//             than 255 cycles, so it cannot overflow (asserted).
//
// ev_i[Counters*c + n] is the event of counter n of context c, at most one a cycle.

`default_nettype none
`include "ct_assert.svh"

module ct_counters #(
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

  localparam int unsigned All   = 2 * Counters;
  localparam int unsigned SlotW = 6;

  (* no_rw_check *)  // read in phase 0, written in phase 1
  logic [63:0]       mem [0:63];
  logic [63:0]       word_q, sum;
  logic [8*All-1:0]  acc_q;
  logic              phase_q;               // 0: read the RAM, 1: add
  logic              host_q, pend_q;        // the step is a read; one is waiting
  logic              known_q;               // the read's index has a counter
  logic [SlotW-1:0]  sweep_q, slot_q, pend_slot_q;
  logic              pend_known_q;
  logic              init_q;                // first sweep after reset: the RAM holds nothing yet
  logic              boot_q;                // reset was on in the last cycle: the accumulators start now
  logic              empty;                 // ... and the word to be read has not been written
  logic              host;
  logic [SlotW-1:0]  slot;
  logic              write;
  logic [All-1:0]    clear;

  // A step begins: a waiting read first, else the next counter of the sweep.
  assign host  = pend_q;
  assign slot  = host ? pend_slot_q : sweep_q;
  assign empty = init_q && (slot >= sweep_q);
  assign write = phase_q && !host_q;
  assign sum   = word_q + 64'(acc_q[8*slot_q +: 8]);

  always_comb begin
    clear = '0;
    if (write) clear[slot_q] = 1'b1;
  end

  always_ff @(posedge clk_i) begin
    if (!phase_q) begin
      if (empty) word_q <= '0;
      else       word_q <= mem[slot];
    end
    if (write)    mem[slot_q] <= sum;
    if (!phase_q) begin
      slot_q  <= slot;
      known_q <= pend_known_q;
    end
    if (rd_req_i) begin
      pend_slot_q  <= (32'(rd_index_i) < Counters) ? SlotW'(rd_index_i) + (rd_ctx_i ? SlotW'(Counters) : '0) : '0;
      pend_known_q <= (32'(rd_index_i) < Counters);
    end
    if (phase_q && host_q) rd_data_o <= known_q ? sum : '0;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      phase_q  <= 1'b0;
      host_q   <= 1'b0;
      pend_q   <= 1'b0;
      sweep_q  <= '0;
      init_q   <= 1'b1;
      rd_vld_o <= 1'b0;
    end else begin
      phase_q  <= !phase_q;
      rd_vld_o <= phase_q && host_q;
      if (!phase_q) host_q <= host;
      if (rd_req_i)              pend_q <= 1'b1;
      else if (!phase_q && host) pend_q <= 1'b0;
      if (write) begin
        sweep_q <= (sweep_q == SlotW'(All - 1)) ? '0 : sweep_q + 1'b1;
        if (sweep_q == SlotW'(All - 1)) init_q <= 1'b0;
      end
    end
  end

  // Bit 0 apart, so that a clear is the synchronous reset of the others; they have no second one.
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) boot_q <= 1'b1;
    else         boot_q <= 1'b0;
  end

  always_ff @(posedge clk_i) begin
    for (int i = 0; i < All; i++) begin
      if (boot_q || clear[i]) acc_q[8*i+1 +: 7] <= '0;
      else if (ev_i[i])       acc_q[8*i+1 +: 7] <= acc_q[8*i+1 +: 7] + 7'(acc_q[8*i]);
      acc_q[8*i] <= ev_i[i] ^ (acc_q[8*i] && !clear[i] && !boot_q);
    end
  end

  logic [All-1:0] brimful;
  always_comb begin
    for (int i = 0; i < All; i++) brimful[i] = (acc_q[8*i +: 8] == 8'hff);
  end
  `CT_ASSERT(NoOverflow_A, brimful == '0)
  `CT_ASSERT(OneRead_A, !(rd_req_i && pend_q))
  `CT_ASSERT(SweepOwnSlot_A, !write || slot_q == sweep_q)

endmodule

`default_nettype wire
