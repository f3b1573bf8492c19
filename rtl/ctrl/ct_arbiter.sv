// SPDX-License-Identifier: Apache-2.0
//
// The arbiter of the project: two requesters (0 inference, 1 training), one grant, one instance in front of every datapath.
//
// Words       A *slot* is what one grant gives (a row, a burst, a tile operation). An *operation* is a row of slots of one
//             context whose end the context marks with last_i; a requester that has only single slots ties last_i high.
// Latency     gnt_o is combinational from req_i (and from qos_i, defer_i, flush_i); it does not depend on take_i and last_i,
//             so take_i may be made from gnt_o in the same cycle. The state moves at the edge after a cycle with take_i.
// Handshake   req_i[c] says that a slot's worth of work of c is ready *now*: nothing waits inside a grant. gnt_o is one-hot or
//             zero, and never without a request. take_i: the granted slot is used in this cycle (ignored while gnt_o is zero).
//             A grant that is not taken is void: the next cycle decides anew.
// Defer       defer_i (a level, Ranked only): training asks, but only for what it is owed, whether inference asks in this cycle or not.
//             Slots that inference takes meanwhile count as contested. Tied low where inference needs no room between its slots.
// Flush       flush_i[c] (a level) makes c lose what it holds here, for an operation that is dropped never shows its last slot.
//
// Rules (qos_i of ct_qos; a change takes effect with the next grant)
//   Ranked         In each slot 0 before 1: an operation of training can be interleaved at any slot. With a floor above 0 a credit grows by
//                  floor/256 of a slot with every slot that is taken while both request, or training defers; as soon as it makes a whole
//                  slot, the next slot goes to training and costs one. So training gets floor/256 of the slots as long as it asks, and
//                  inference never waits for two owed slots in a row (floor <= 128; in general for ceil(floor / (256 - floor)) of
//                  them). The credit counts slots and not cycles, so that the share is the same whatever a slot lasts.
//   Whole          An operation keeps the grant until its last slot, even in cycles in which it does not request. Then the operation
//                  whose request rose first; inference if both rose together.
//   Whole, Turns   The same, but afterwards the other context, if it requests.
//   Turns          Each slot to the context that did not have the last one, if it requests.
//
// The requester must choose operations that finish without any help of the other context, or Whole dead-locks:
// no semaphore may be waited for inside an operation.

`default_nettype none
`include "ct_assert.svh"

module ct_arbiter (
  input  logic       clk_i,
  input  logic       rst_ni,

  input  logic [ct_pkg::QosW-1:0] qos_i,
  input  logic [1:0] flush_i,

  input  logic [1:0] req_i,
  input  logic       defer_i,
  input  logic [1:0] last_i,
  input  logic       take_i,
  output logic [1:0] gnt_o
);

  logic       locked_d, locked_q;  // an operation has the grant until its last slot
  logic       owner_d, owner_q;    // its context; while not locked, the one served last
  logic [1:0] wait_d, wait_q;      // the operation that c offers was already waiting in the last cycle
  logic       first_d, first_q;    // which of two waiting operations came first
  logic [8:0] credit_d, credit_q;  // what training is owed, in 1/256 of a slot

  logic prio;
  logic strict;
  logic [7:0] floor;
  logic by_slot;  // every slot is decided anew
  logic held;
  logic owed;
  logic defer;
  logic contest;  // with a rank the floor counts this slot, whoever gets it
  logic [1:0] req;
  logic first;
  logic pick;     // who goes when both request and none is held
  logic done;     // a slot is used, and it is the last of its operation

  assign prio    = qos_i[ct_pkg::QosRanked];
  assign strict  = qos_i[ct_pkg::QosStrict];
  assign by_slot = !qos_i[ct_pkg::QosWhole];
  assign floor   = qos_i[ct_pkg::QosFloorLsb +: 8];
  assign held    = !by_slot && locked_q && !flush_i[owner_q];
  assign owed    = (floor != 8'd0) && credit_q[8];
  assign defer   = prio && defer_i;
  assign req     = req_i & {!defer || owed, 1'b1};
  assign contest = req_i[1] && (req_i[0] || defer);

  // Who waits longer: known if just one waited in the last cycle; as before if both did; inference if none did.
  assign first = (wait_q == 2'b11) ? first_q : wait_q[1];

  assign pick = prio ? owed : qos_i[ct_pkg::QosTurns] ? !owner_q : first;

  always_comb begin
    if (held)                gnt_o = req & {owner_q, !owner_q};
    else if (req == 2'b11)   gnt_o = {pick, !pick};
    else                     gnt_o = req;
  end

  assign done = take_i && ((gnt_o & last_i) != 2'b00);

  always_comb begin
    locked_d = locked_q && held;
    owner_d  = owner_q;
    first_d  = first;
    credit_d = credit_q;
    wait_d   = req_i & ~flush_i;

    if (take_i && gnt_o != 2'b00) begin
      locked_d = !done && !by_slot;
      owner_d  = gnt_o[1];
      if (done) wait_d = wait_d & ~gnt_o;
      // A slot that was owed is paid; one that training got because nobody else asked is neither paid nor owed.
      if (contest && prio) begin
        credit_d = credit_q + {1'b0, floor} - (gnt_o[1] ? 9'd256 : 9'd0);
      end
    end
    if (!prio || floor == 8'd0) credit_d = '0;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      locked_q <= 1'b0;
      owner_q  <= 1'b1;
      first_q  <= 1'b0;
      wait_q   <= 2'b00;
      credit_q <= '0;
    end else begin
      locked_q <= locked_d;
      owner_q  <= owner_d;
      first_q  <= first_d;
      wait_q   <= wait_d;
      credit_q <= credit_d;
    end
  end

  `CT_ASSUME(OneRule_M, prio != (!by_slot || qos_i[ct_pkg::QosTurns]))
  `CT_ASSUME(StrictOwesNothing_M, strict == (prio && floor == 8'd0))
  `CT_ASSERT(GrantOneHot_A, gnt_o != 2'b11)
  `CT_ASSERT(GrantNeedsRequest_A, (gnt_o & ~req_i) == 2'b00)
  `CT_ASSERT(WorkConserving_A, held || (req_i[0] || (req_i[1] && !(defer && !owed))) == (gnt_o != 2'b00))
  `CT_ASSERT(DeferredIsOwed_A, !(prio && defer_i && gnt_o[1]) || (floor != 8'd0 && credit_q[8]))
  `CT_ASSERT(InferenceFirst_A, !(strict && req_i[0]) || gnt_o == 2'b01)
  `CT_ASSERT(OwnerKept_A, !held || (gnt_o & {!owner_q, owner_q}) == 2'b00)
  // At most one slot and a fraction is ever owed, and only to a training that requests does it matter.
  `CT_ASSERT(CreditBounded_A, !credit_q[8] || credit_q[7:0] < 8'd255)

`ifdef FORMAL
  `include "ct_arbiter_formal.svh"
`endif

  `CT_COVER(OwedSlot_C, prio && owed && req_i == 2'b11 && gnt_o == 2'b10)
  `CT_COVER(HeldWhileOtherWaits_C, held && req_i == 2'b11)

endmodule

`default_nettype wire
