// SPDX-License-Identifier: Apache-2.0
//
// What is proven of ct_arbiter (tb/formal/ct_arbiter.proof), included at its end.

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
      f_qos_q    <= '0;
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
