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

  `CT_ASSUME(OneRule_M, !(prio && (!by_slot || qos_i[ct_pkg::QosTurns])) && strict == (prio && floor == 8'd0) && (prio || !by_slot || qos_i[ct_pkg::QosTurns]))
  `CT_ASSERT(GrantOneHot_A, gnt_o != 2'b11)
  `CT_ASSERT(GrantNeedsRequest_A, (gnt_o & ~req_i) == 2'b00)
  `CT_ASSERT(WorkConserving_A, held || (req_i[0] || (req_i[1] && !(defer && !owed))) == (gnt_o != 2'b00))
  `CT_ASSERT(DeferredIsOwed_A, !(prio && defer_i && gnt_o[1]) || (floor != 8'd0 && credit_q[8]))
  `CT_ASSERT(InferenceFirst_A, !(strict && req_i[0]) || gnt_o == 2'b01)
  `CT_ASSERT(OwnerKept_A, !held || (gnt_o & {!owner_q, owner_q}) == 2'b00)
  // At most one slot and a fraction is ever owed, and only to a training that requests does it matter.
  `CT_ASSERT(CreditBounded_A, !credit_q[8] || credit_q[7:0] < 8'd255)

`ifdef FORMAL
  logic       taken;      // a slot is used
  logic       contested;  // and the floor counts it
  logic [ct_pkg::QosW-1:0] f_qos_q;  // of the last cycle
  logic [7:0] f_floor_q;
  assign f_floor_q = f_qos_q[ct_pkg::QosFloorLsb +: 8];
  logic       f_still;
  assign taken     = take_i && gnt_o != 2'b00;
  assign contested = taken && prio && req_i[1] && (req_i[0] || defer_i) && floor != 8'd0;
  assign f_still   = qos_i == f_qos_q;

  // Slots of training in a row under the eyes of an inference that requests, or that training defers to (f_run_q), while the floor
  // stands still and from a credit on that this floor can make (f_calm_q). Each costs 256 - floor more credit than it brings
  // (f_spent_q), and credit is short of 256 + floor.
  logic [7:0] f_run_q;
  logic [11:0] f_spent_q, f_spent;
  logic       f_calm_q;
  assign f_spent = (f_still && f_calm_q ? f_spent_q : 12'd0) + (contested && gnt_o[1] ? 12'd256 - 12'(floor) : 12'd0);

  // What contested slots have brought training and what its own have cost since any moment, in 1/256 of a slot. (The credit then: f_since_q.)
  (* anyseq *) logic  f_begin;
  logic signed [15:0] f_due_q;
  logic [8:0]         f_since_q;

  // Operations as the requesters see them: one has begun and not ended; how many of the other have begun while c waited.
  logic [1:0] f_open_q, f_begins, f_waits;
  logic [3:0] f_over_q;
  assign f_begins = taken ? gnt_o & ~f_open_q : 2'b00;
  assign f_waits  = req_i & ~(taken ? gnt_o : 2'b00) & ~flush_i & ~{2{by_slot}};

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      f_qos_q    <= 12'h300;
      f_run_q    <= 8'd0;
      f_spent_q  <= '0;
      f_calm_q   <= 1'b1;
      f_due_q    <= '0;
      f_since_q  <= '0;
      f_open_q   <= 2'b00;
      f_over_q   <= 4'd0;
    end else begin
      f_qos_q    <= qos_i;
      f_calm_q   <= (f_calm_q && f_still) || credit_q < 9'd256;
      f_run_q    <= (f_still && f_calm_q ? f_run_q : 8'd0) + 8'(contested && gnt_o[1]);
      f_spent_q  <= f_spent;
      if ((!req_i[0] && !defer_i) || !prio || (taken && gnt_o[0])) begin
        f_run_q   <= 8'd0;
        f_spent_q <= '0;
      end
      if (f_begin || !prio || floor == 8'd0) begin
        f_due_q   <= '0;
        f_since_q <= credit_d;
      end else if (contested) begin
        f_due_q <= f_due_q + $signed({8'd0, floor}) - (gnt_o[1] ? 16'sd256 : 16'sd0);
      end
      if (by_slot)    f_open_q <= 2'b00;
      else if (taken) f_open_q <= (f_open_q & ~flush_i & ~gnt_o) | (gnt_o & ~last_i);
      else            f_open_q <= f_open_q & ~flush_i;
      for (int c = 0; c < 2; c++) begin
        if (!f_waits[c] || !f_still) f_over_q[2*c +: 2] <= 2'd0;
        else if (f_begins[1-c])      f_over_q[2*c +: 2] <= f_over_q[2*c +: 2] + 2'd1;
      end
    end
  end

  `CT_ASSERT(CreditOfFloor_A, !f_calm_q || credit_q <= 9'd255 + 9'(f_floor_q))
  `CT_ASSERT(SpentOfCredit_A, !f_calm_q || f_spent_q <= 12'd510 && 12'(credit_q) + f_spent_q <= 12'd255 + 12'(f_floor_q))
  `CT_ASSERT(RunIsSpent_A, !f_calm_q || f_run_q == 8'd0 || f_spent_q >= 12'd256 - 12'(f_floor_q))
  // ceil(floor / (256 - floor)) slots in a row: so many times 256 - floor is at most 255. Up to a floor of 128 that is one slot.
  `CT_ASSERT(SecondBound_A, !(contested && gnt_o[1] && f_still && f_calm_q) || f_spent <= 12'd255)
  `CT_ASSERT(OneOwedSlot_A, !(contested && gnt_o[1] && f_still && f_calm_q) || floor > 8'd128 || f_run_q == 8'd0)
  `CT_ASSERT(DueIsCredit_A, 16'(credit_q) == 16'(f_since_q) + f_due_q)
  `CT_ASSERT(CreditRange_A, credit_q < 9'd511 && f_since_q < 9'd511)
  `CT_ASSERT(FloorKept_A, f_due_q > -16'sd512 && f_due_q < 16'sd512)
  `CT_ASSERT(OpenIsLocked_A, f_open_q == (locked_q ? {owner_q, !owner_q} : 2'b00))
  `CT_ASSERT(WholeOperations_A, !taken || by_slot || ((f_open_q & ~flush_i) & ~gnt_o) == 2'b00)
  // SLACK: how many slots went to the other while c requests.
  logic [3:0] f_passed_q;
  logic [1:0] f_turn;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      f_passed_q <= '0;
    end else begin
      for (int c = 0; c < 2; c++) begin
        if (!req_i[c] || !by_slot || prio || (taken && gnt_o[c])) f_passed_q[2*c +: 2] <= 2'd0;
        else if (taken && f_passed_q[2*c +: 2] != 2'd3)                          f_passed_q[2*c +: 2] <= f_passed_q[2*c +: 2] + 2'd1;
      end
    end
  end
  always_comb begin
    for (int c = 0; c < 2; c++) f_turn[c] = f_passed_q[2*c +: 2] == 2'd0 || (f_passed_q[2*c +: 2] == 2'd1 && owner_q != c[0]);
  end
  `CT_ASSERT(SlackInTurn_A, f_turn == 2'b11)
  // Who has been overtaken is next: it waits behind an open operation, or has waited longest, or is not the one served last.
  logic [1:0] f_next, f_patient;
  always_comb begin
    for (int c = 0; c < 2; c++) begin
      f_next[c]    = f_over_q[2*c +: 2] == 2'd0 || (wait_q[c] && owner_q != c[0] && (f_open_q[1-c] || !wait_q[1-c] || first_q == c[0]));
      f_patient[c] = !f_waits[c] || !f_still || f_over_q[2*c +: 2] + 2'(f_begins[1-c]) <= 2'd1;
    end
  end
  `CT_ASSERT(NextAfterOther_A, f_next == 2'b11)
  `CT_ASSERT(OvertakenOnce_A, f_patient == 2'b11)
`endif

  `CT_COVER(OwedSlot_C, prio && owed && req_i == 2'b11 && gnt_o == 2'b10)
  `CT_COVER(HeldWhileOtherWaits_C, held && req_i == 2'b11)

endmodule

`default_nettype wire
