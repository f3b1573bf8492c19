// SPDX-License-Identifier: Apache-2.0
//
// What is proven of ct_arbiter (tb/formal/ct_arbiter.proof), included at its end.

  logic       taken;      // a slot is used
  logic       paid;       // by training
  logic       contested;  // and the floor counts it
  logic [ct_pkg::QosW-1:0] f_qos_q;  // of the last cycle
  logic [7:0] f_floor_q;
  assign f_floor_q = f_qos_q[ct_pkg::QosFloorLsb +: 8];
  logic       f_still;
  assign taken     = take_i && gnt_o != '0;
  assign paid      = (gnt_o & trn) != '0;
  assign contested = taken && prio && (req_i & trn) != '0 && ((req_i & ~trn) != '0 || defer_i) && floor != 8'd0;
  assign f_still   = qos_i == f_qos_q;

  // Slots of training in a row under the eyes of another class that requests, or that training defers to (f_run_q), while the floor
  // stands still and from a credit on that this floor can make (f_calm_q). Each costs 256 - floor more credit than it brings
  // (f_spent_q), and credit is short of 256 + floor.
  logic [7:0] f_run_q;
  logic [11:0] f_spent_q, f_spent;
  logic       f_calm_q;
  assign f_spent = (f_still && f_calm_q ? f_spent_q : 12'd0) + (contested && paid ? 12'd256 - 12'(floor) : 12'd0);

  // What contested slots have brought training and what its own have cost since any moment, in 1/256 of a slot. (The credit then: f_since_q.)
  (* anyseq *) logic  f_begin;
  logic signed [15:0] f_due_q;
  logic [8:0]         f_since_q;

  // Any two requesters: what f_b gets while f_a waits.
  (* anyconst *) logic [2:0] f_a, f_b;
  logic f_pair, f_same;
  logic f_a_served_after, f_a_first;  // of the two
  assign f_pair = f_a != f_b && 4'(f_a) < 4'(N) && 4'(f_b) < 4'(N);
  assign f_same = Classes[2*f_a +: 2] == Classes[2*f_b +: 2];
  assign f_a_served_after = f_a < f_b ? served_q[N*f_a + f_b] : !served_q[N*f_b + f_a];
  assign f_a_first        = f_a < f_b ? !first_q[N*f_a + f_b] : first_q[N*f_b + f_a];

  // Operations as the requesters see them: one has begun and not ended; how many of f_b have begun while f_a waited.
  logic [N-1:0] f_open_q, f_begins;
  logic         f_waits;
  logic [1:0]   f_over_q;
  assign f_begins = taken ? gnt_o & ~f_open_q : '0;
  assign f_waits  = req_i[f_a] && !(taken && gnt_o[f_a]) && !flush_i[f_a] && !by_slot;

  // The same for slots: under Turns of any other, under Ranked of an equal.
  logic [1:0] f_passed_q;
  logic       f_patience;
  assign f_patience = req_i[f_a] && by_slot && !(taken && gnt_o[f_a]) && (prio ? f_same : 1'b1);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      f_qos_q    <= '0;
      f_run_q    <= 8'd0;
      f_spent_q  <= '0;
      f_calm_q   <= 1'b1;
      f_due_q    <= '0;
      f_since_q  <= '0;
      f_open_q   <= '0;
      f_over_q   <= 2'd0;
      f_passed_q <= 2'd0;
    end else begin
      f_qos_q    <= qos_i;
      f_calm_q   <= (f_calm_q && f_still) || credit_q < 9'd256;
      f_run_q    <= (f_still && f_calm_q ? f_run_q : 8'd0) + 8'(contested && paid);
      f_spent_q  <= f_spent;
      if (((req_i & ~trn) == '0 && !defer_i) || !prio || (taken && !paid)) begin
        f_run_q   <= 8'd0;
        f_spent_q <= '0;
      end
      if (f_begin || !prio || floor == 8'd0) begin
        f_due_q   <= '0;
        f_since_q <= credit_d;
      end else if (contested) begin
        f_due_q <= f_due_q + $signed({8'd0, floor}) - (paid ? 16'sd256 : 16'sd0);
      end
      if (by_slot)    f_open_q <= '0;
      else if (taken) f_open_q <= (f_open_q & ~flush_i & ~gnt_o) | (gnt_o & ~last_i);
      else            f_open_q <= f_open_q & ~flush_i;
      if (!f_waits || !f_still) f_over_q <= 2'd0;
      else                      f_over_q <= f_over_q + 2'(f_begins[f_b]);
      if (!f_patience) f_passed_q <= 2'd0;
      else             f_passed_q <= f_passed_q + 2'(taken && gnt_o[f_b] && f_passed_q != 2'd3);
    end
  end

  // Both orders are orders: of no three is each behind another.
  logic f_total;
  always_comb begin
    f_total = 1'b1;
    for (int c = 2; c < N; c++) begin
      for (int b = 1; b < c; b++) begin
        for (int a = 0; a < b; a++) begin
          if (served_q[N*a + b] == served_q[N*b + c] && served_q[N*a + c] != served_q[N*a + b]) f_total = 1'b0;
          if (wait_q[a] && wait_q[b] && wait_q[c] && first_q[N*a + b] == first_q[N*b + c] && first_q[N*a + c] != first_q[N*a + b]) f_total = 1'b0;
        end
      end
    end
  end
  `CT_ASSERT(OrdersAreTotal_A, f_total)

  `CT_ASSERT(CreditOfFloor_A, !f_calm_q || credit_q <= 9'd255 + 9'(f_floor_q))
  `CT_ASSERT(SpentOfCredit_A, !f_calm_q || f_spent_q <= 12'd510 && 12'(credit_q) + f_spent_q <= 12'd255 + 12'(f_floor_q))
  `CT_ASSERT(RunIsSpent_A, !f_calm_q || f_run_q == 8'd0 || f_spent_q >= 12'd256 - 12'(f_floor_q))
  // ceil(floor / (256 - floor)) slots in a row: so many times 256 - floor is at most 255. Up to a floor of 128 that is one slot.
  `CT_ASSERT(SecondBound_A, !(contested && paid && f_still && f_calm_q) || f_spent <= 12'd255)
  `CT_ASSERT(OneOwedSlot_A, !(contested && paid && f_still && f_calm_q) || floor > 8'd128 || f_run_q == 8'd0)
  `CT_ASSERT(DueIsCredit_A, 16'(credit_q) == 16'(f_since_q) + f_due_q)
  `CT_ASSERT(CreditRange_A, credit_q < 9'd511 && f_since_q < 9'd511)
  `CT_ASSERT(FloorKept_A, f_due_q > -16'sd512 && f_due_q < 16'sd512)
  `CT_ASSERT(OpenIsLocked_A, f_open_q == (locked_q ? owner : '0))
  `CT_ASSERT(WholeOperations_A, !taken || by_slot || ((f_open_q & ~flush_i) & ~gnt_o) == '0)
  `CT_ASSERT(PassedIsServed_A, !f_pair || f_passed_q == 2'd0 || !f_a_served_after)
  `CT_ASSERT(SlotsInTurn_A, !f_pair || f_passed_q <= 2'd1)
  // Who has been overtaken is next of the two: it waits behind the open operation, or has waited longer, and was served before.
  `CT_ASSERT(NextAfterOther_A, !f_pair || f_over_q == 2'd0 ||
                               (wait_q[f_a] && !f_a_served_after && (f_open_q[f_b] || !wait_q[f_b] || f_a_first)))
  `CT_ASSERT(OvertakenOnce_A, !f_pair || !f_waits || !f_still || f_over_q + 2'(f_begins[f_b]) <= 2'd1)
  // Single slots never hold the grant. (With last_i tied high the register is a constant: where the arbiter is part of a block this is known.)
  logic f_single_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) f_single_q <= 1'b1;
    else         f_single_q <= f_single_q && last_i == '1;
  end
  `CT_ASSERT(SinglesLockNothing_A, !f_single_q || !locked_q)
