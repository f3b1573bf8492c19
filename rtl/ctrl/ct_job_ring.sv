// SPDX-License-Identifier: Apache-2.0
//
// The ring of ct_job: HEAD and TAIL, when the doorbell of a descriptor rang, and which job a cancel names.
//
// HEAD       moves when the descriptor has been read (its slot may then be written again), and by a soft reset, to TAIL as
//            it was then (in DESC only when the descriptor has been read). For a batch it does not move.
// More       HEAD and TAIL are compared in a cycle of its own: a cycle after one of them has moved there is nothing in the ring (more_o).
// Arrival    arrive_o: the cycle with tail_we_i that made visible the descriptor that is read, or was read last (ct_bells).
// Cancel     a job's number is HEAD before it was taken; batches have none. cancel_o: the job in front was named, or none was, a cycle ago and is the
//            same one still. cancel_next_o: the next one, whose descriptor is being read or is here, is named.

`default_nettype none
`include "ct_assert.svh"

module ct_job_ring (
  input  logic        clk_i,
  input  logic        rst_ni,

  // Registers, see ct_job.
  input  logic [31:0] ring_base_i,
  input  logic [3:0]  ring_log2_i,
  input  logic        tail_we_i,
  input  logic [15:0] tail_i,
  input  logic        reset_i,
  input  logic        cancel_i,
  input  logic        cancel_named_i,
  input  logic [47:0] cancel_num_i,
  input  logic [63:0] cycle_i,
  output logic [15:0] tail_o,
  output logic [15:0] head_o,

  // The machines: their states, what they do in this cycle.
  input  logic [2:0]  state_i,
  input  logic [1:0]  fe_i,
  input  logic        own_i,
  input  logic        here_i,
  input  logic        batch_i,       // the front end holds a batch
  input  logic        front_isb_i,   // the job in front is one
  input  logic        start_i,
  input  logic        desc_last_i,   // the last beat of a descriptor comes
  input  logic        desc_over_i,   // DESC is left

  output logic [31:0] slot_o,        // where the descriptor at HEAD lies
  output logic [15:0] after_o,       // HEAD when it has been read, in DESC
  output logic        more_o,
  output logic [63:0] arrive_o,
  output logic        cancel_o,
  output logic        cancel_next_o
);

  `include "ct_job_states.svh"

  logic [15:0] head_d, head_q, tail_q;
  logic        reset_seen_q;           // a soft reset came while in DESC
  logic [15:0] reset_head_q;           // where that reset sets HEAD, once the descriptor has been read
  logic        ring_more_q;            // there was something in the ring in the cycle before,
  logic        ring_moved_q;           // in which HEAD or TAIL moved
  logic [63:0] arrive_q, bell;
  logic        named_head, named_last, named_front;
  logic        cancel_front, cancel_q;

  // ---- HEAD and TAIL ----------------------------------------------------------------------------------------------------------

  assign after_o = reset_seen_q ? reset_head_q : head_q + 16'd1;

  always_comb begin
    head_d = head_q;
    if (reset_i && (state_i != StDesc || desc_over_i))       head_d = tail_q;
    else if (state_i == StDesc && desc_over_i)               head_d = after_o;
    else if (state_i != StDesc && desc_last_i && !batch_i)   head_d = head_q + 16'd1;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      head_q       <= '0;
      tail_q       <= '0;
      reset_seen_q <= 1'b0;
      ring_more_q  <= 1'b0;
      ring_moved_q <= 1'b0;
    end else begin
      head_q       <= head_d;
      if (tail_we_i) tail_q <= tail_i;
      reset_seen_q <= (state_i == StDesc) && (reset_seen_q || reset_i);
      ring_more_q  <= (head_q != tail_q);
      ring_moved_q <= tail_we_i || reset_i || desc_last_i || (state_i == StDesc && desc_over_i);
    end
  end

  always_ff @(posedge clk_i) begin
    if (reset_i) reset_head_q <= tail_q;
  end

  assign head_o = head_q;
  assign tail_o = tail_q;
  assign more_o = ring_more_q && !ring_moved_q;
  // A slot is 8 units of 16 bytes.
  assign slot_o = ring_base_i + {13'd0, head_q & ~(16'hffff << ring_log2_i), 3'b000};

  // ---- Doorbell times -----------------------------------------------------------------------------------------------------------

  ct_bells u_bells (
    .clk_i, .rst_ni,
    .reset_i,
    .tail_we_i,
    .tail_i,
    .moves_i (tail_i != tail_q),
    .head_i  (head_q),
    .cycle_i,
    .bell_o  (bell)
  );

  always_ff @(posedge clk_i) begin
    if (fe_i == FeDesc && !reset_seen_q) arrive_q <= bell;
  end

  assign arrive_o = arrive_q;

  // ---- Cancel -------------------------------------------------------------------------------------------------------------------

  // The job at HEAD; the last one whose descriptor has been read; of these the one in front.
  assign named_head    = (cancel_num_i[15:0] == head_q);
  assign named_last    = (cancel_num_i[31:16] == head_q);
  assign named_front   = (state_i == StDesc) ? named_head : (here_i && !batch_i) ? (cancel_num_i[47:32] == head_q) : named_last;
  assign cancel_front  = cancel_i && (!cancel_named_i || (!front_isb_i && named_front));
  assign cancel_next_o = cancel_i && cancel_named_i && !own_i && !batch_i && ((fe_i == FeDesc && named_head) || (here_i && named_last));

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) cancel_q <= 1'b0;
    else         cancel_q <= cancel_front && !start_i;
  end

  assign cancel_o = cancel_q;

  // ---- Invariants -------------------------------------------------------------------------------------------------------------

  `CT_ASSERT(MoreIsThere_A, !more_o || head_q != tail_q)

endmodule

`default_nettype wire
