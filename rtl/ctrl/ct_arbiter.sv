// SPDX-License-Identifier: Apache-2.0
//
// The arbiter of the project: N requesters, each of a class, one grant, one instance in front of every datapath.
//
// Words       A *slot* is what one grant gives (a row, a burst, a tile operation). An *operation* is a row of slots of one
//             requester whose end it marks with last_i; a requester that has only single slots ties last_i high.
// Classes     The class of a requester is its rank: ClassInf goes first, ClassTrn last, and what has a place between them (ClassHost, a
//             host that reads and writes memory) has a number between theirs. The floor is training's, as a class. A requester whose work is
//             now of one class and now of another is two requesters, of which one asks.
// Latency     gnt_o is combinational from req_i (and from qos_i, defer_i, flush_i); it does not depend on take_i and last_i,
//             so take_i may be made from gnt_o in the same cycle. The state moves at the edge after a cycle with take_i.
// Handshake   req_i[i] says that a slot's worth of work of i is ready *now*: nothing waits inside a grant. gnt_o is one-hot or
//             zero, and never without a request. take_i: the granted slot is used in this cycle (ignored while gnt_o is zero).
//             A grant that is not taken is void: the next cycle decides anew.
// Defer       defer_i (a level, Ranked only): training asks, but only for what it is owed, whether somebody else asks in this cycle or not.
//             Slots that others take meanwhile count as contested. Tied low where inference needs no room between its slots.
// Flush       flush_i[i] (a level) makes i lose what it holds here, for an operation that is dropped never shows its last slot.
//
// Rules (qos_i of ct_qos; a change takes effect with the next grant)
//   Ranked         In each slot the lowest class that asks, and of equals the one that was served least recently: an operation of training
//                  can be interleaved at any slot. With a floor above 0 a credit grows by floor/256 of a slot with every slot that is taken
//                  while training and another class request, or training defers; as soon as it makes a whole slot, the next slot goes to
//                  training, before all others, and costs one. The credit counts slots and not cycles, so that the share is the same
//                  whatever a slot lasts.
//   Whole          An operation keeps the grant until its last slot, even in cycles in which it does not request. Then the operation
//                  whose request rose first; of those that rose together the first requester's.
//   Whole, Turns   The same, but afterwards the requester that asks and was served least recently.
//   Turns          Each slot to the requester that asks and was served least recently.
//
// Bounds (proven for N = 2, 3 and 4; ct_bound_arbiter() computes them). While one requester waits,
//   Ranked         no class behind its own is served, but for the slots that training is owed: ceil(floor / (256 - floor)) in a row at most,
//                  one up to a floor of 128, and with n equals F n / (256 - F), rounded up, in all. Of its equals each is served once at most. A class
//                  between has no bound while classes before it ask without end. Training gets floor/256 of the contested slots, to less
//                  than two.
//   Turns          each other requester is served once at most: N - 1 slots.
//   Whole          each other requester begins one operation at most, beside the one that is under way.
//
// The requester must choose operations that finish without any help of another one, or Whole dead-locks:
// no semaphore may be waited for inside an operation.
//
// Parameters
//   N        requesters, 2 .. 8
//   Classes  the class of requester i in bits 2*i +: 2

`default_nettype none
`include "ct_assert.svh"

module ct_arbiter #(
  parameter int unsigned    N       = 2,
  parameter logic [2*N-1:0] Classes = (2*N)'({ct_pkg::ClassTrn, ct_pkg::ClassInf})
) (
  input  logic         clk_i,
  input  logic         rst_ni,

  input  logic [ct_pkg::QosW-1:0] qos_i,
  input  logic [N-1:0] flush_i,

  input  logic [N-1:0] req_i,
  input  logic         defer_i,
  input  logic [N-1:0] last_i,
  input  logic         take_i,
  output logic [N-1:0] gnt_o
);

  if (N < 2 || N > 8) begin : g_check
    ct_error_arbiter_needs_2_to_8_requesters u_error ();
  end

  // Of two requesters i < j: bit N*i + j. The other bits are not used.
  logic [N*N-1:0] served_d, served_q;  // i was served after j
  logic [N*N-1:0] first_d, first_q;    // both wait, and j came before i
  logic [N*N-1:0] yields;              // if both ask j goes

  logic         locked_d, locked_q;  // an operation has the grant until its last slot: that of the requester served last
  logic [N-1:0] wait_d, wait_q;      // the operation that i offers was already waiting in the last cycle
  logic [8:0]   credit_d, credit_q;  // what training is owed, in 1/256 of a slot

  logic prio;
  logic strict;
  logic [7:0] floor;
  logic by_slot;  // every slot is decided anew
  logic held;
  logic owed;
  logic defer;
  logic contest;  // with a rank the floor counts this slot, whoever gets it
  logic [N-1:0] trn;    // is of training
  logic [N-1:0] owner;  // was served last
  logic [N-1:0] req;
  logic [N-1:0] win;
  logic done;     // a slot is used, and it is the last of its operation

  assign prio    = qos_i[ct_pkg::QosRanked];
  assign strict  = qos_i[ct_pkg::QosStrict];
  assign by_slot = !qos_i[ct_pkg::QosWhole];
  assign floor   = qos_i[ct_pkg::QosFloorLsb +: 8];
  assign held    = !by_slot && locked_q && (flush_i & owner) == '0;
  assign owed    = !strict && credit_q[8];  // (that there is a floor is known from qos_i: a compare of it would be in every grant's way)
  assign defer   = prio && defer_i;
  assign req     = req_i & ~((defer && !owed) ? trn : '0);
  assign contest = (req_i & trn) != '0 && ((req_i & ~trn) != '0 || defer);

  always_comb begin
    owner = '1;
    for (int i = 0; i < N; i++) begin
      trn[i] = Classes[2*i +: 2] == ct_pkg::ClassTrn;
      for (int j = i + 1; j < N; j++) begin
        if (served_q[N*i + j]) owner[j] = 1'b0;
        else                   owner[i] = 1'b0;
      end
    end
  end

  // Who waits longer: known if just one waited in the last cycle; as before if both did; the first if none did.
  always_comb begin
    first_d = '0;
    yields  = '0;
    for (int i = 0; i < N; i++) begin
      for (int j = i + 1; j < N; j++) begin
        first_d[N*i + j] = (wait_q[i] && wait_q[j]) ? first_q[N*i + j] : wait_q[j];
        if (!prio)                                         yields[N*i + j] = qos_i[ct_pkg::QosTurns] ? served_q[N*i + j] : first_d[N*i + j];
        else if (Classes[2*i +: 2] == Classes[2*j +: 2])   yields[N*i + j] = served_q[N*i + j];
        else if (Classes[2*i +: 2] == ct_pkg::ClassTrn)    yields[N*i + j] = !owed;
        else if (Classes[2*j +: 2] == ct_pkg::ClassTrn)    yields[N*i + j] = owed;
        else                                               yields[N*i + j] = Classes[2*j +: 2] < Classes[2*i +: 2];
      end
    end
  end

  always_comb begin
    win = req;
    for (int i = 0; i < N; i++) begin
      for (int j = i + 1; j < N; j++) begin
        if (req[i] && req[j]) begin
          if (yields[N*i + j]) win[i] = 1'b0;
          else                 win[j] = 1'b0;
        end
      end
    end
  end

  assign gnt_o = held ? req & owner : win;
  assign done  = take_i && (gnt_o & last_i) != '0;

  always_comb begin
    locked_d = locked_q && held;
    served_d = served_q;
    credit_d = credit_q;
    wait_d   = req_i & ~flush_i;

    if (take_i && gnt_o != '0) begin
      locked_d = !done && !by_slot;
      for (int i = 0; i < N; i++) begin
        for (int j = i + 1; j < N; j++) begin
          if (gnt_o[i]) served_d[N*i + j] = 1'b1;
          if (gnt_o[j]) served_d[N*i + j] = 1'b0;
        end
      end
      if (done) wait_d = wait_d & ~gnt_o;
      // A slot that was owed is paid; one that training got because nobody else asked is neither paid nor owed.
      if (contest && prio) begin
        credit_d = credit_q + {1'b0, floor} - ((gnt_o & trn) != '0 ? 9'd256 : 9'd0);
      end
    end
    if (!prio || floor == 8'd0) credit_d = '0;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      locked_q <= 1'b0;
      served_q <= '0;
      first_q  <= '0;
      wait_q   <= '0;
      credit_q <= '0;
    end else begin
      locked_q <= locked_d;
      served_q <= served_d;
      first_q  <= first_d;
      wait_q   <= wait_d;
      credit_q <= credit_d;
    end
  end

  `CT_ASSUME(OneRule_M, prio != (!by_slot || qos_i[ct_pkg::QosTurns]))
  `CT_ASSUME(StrictOwesNothing_M, strict == (prio && floor == 8'd0))
  `CT_ASSERT(GrantOneHot_A, (gnt_o & (gnt_o - N'(1))) == '0)
  `CT_ASSERT(GrantNeedsRequest_A, (gnt_o & ~req_i) == '0)
  `CT_ASSERT(WorkConserving_A, held || ((req_i & ~((defer && !owed) ? trn : '0)) != '0) == (gnt_o != '0))
  `CT_ASSERT(DeferredIsOwed_A, !(prio && defer_i && (gnt_o & trn) != '0) || (floor != 8'd0 && credit_q[8]))
  `CT_ASSERT(OwnerKept_A, !held || (gnt_o & ~owner) == '0)
  // At most one slot and a fraction is ever owed, and only to a training that requests does it matter.
  `CT_ASSERT(CreditBounded_A, !credit_q[8] || credit_q[7:0] < 8'd255)
  // Ranked: of two that ask the one of the lower class, but for an owed slot.
  logic ranked;
  always_comb begin
    ranked = 1'b1;
    for (int i = 0; i < N; i++) begin
      for (int j = 0; j < N; j++) begin
        if (Classes[2*i +: 2] < Classes[2*j +: 2] && req_i[i] && gnt_o[j] && (strict || !trn[j] || !credit_q[8])) ranked = 1'b0;
      end
    end
  end
  `CT_ASSERT(LowestClassFirst_A, !prio || ranked)

`ifdef FORMAL
  `include "ct_arbiter_formal.svh"
`endif

  `CT_COVER(OwedSlot_C, prio && owed && (req_i & ~trn) != '0 && (gnt_o & trn) != '0)
  `CT_COVER(HeldWhileOtherWaits_C, held && (req_i & ~owner) != '0)

endmodule

`default_nettype wire
