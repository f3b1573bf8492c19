// SPDX-License-Identifier: Apache-2.0
//
// What is proven of ct_batch_queue (tb/formal/ct_batch_queue.proof), included at its end.

  // What lies where: everything below the count, but for the hole that an insert moves down, and the gap that a take closes.
  localparam int Words = Depth;
  logic [Depth-1:0] f_live;
  logic [PtrW:0]    f_hole;
  assign f_hole = vld_q ? (PtrW + 1)'(pos_q) + 1'b1 : '0;
  always_comb begin
    for (int p = 0; p < Words; p++) begin
      unique case (state_q)
        StInsert: f_live[p] = (CountW'(p) <= count_q) && ((PtrW + 1)'(p) != f_hole);
        StTake:   f_live[p] = (PtrW'(p) < to_q) || (vld_q && PtrW'(p) >= pos_q && CountW'(p) < count_q) ||
                              (!vld_q && to_q == '0 && left_q == take_max_i && CountW'(p) < count_q);
        default:  f_live[p] = (CountW'(p) < count_q);
      endcase
    end
  end

  // The user's side: inputs stay, a place is in the queue once at most. Deadlines count from 0 here: only their differences matter.
  logic                    f_busy_q, f_take_q;
  logic [2*TimeW+ModelW+SlotW+CountW-1:0] f_in, f_in_q;
  logic [ModelW+SlotW+1:0] f_by, f_by_q;
  assign f_in = {ins_deadline_i, ins_go_i, ins_model_i, ins_slot_i, take_max_i};
  assign f_by = {take_model_i, take_slot_i, take_by_i};
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      f_busy_q <= 1'b0;
      f_take_q <= 1'b0;
    end else begin
      f_busy_q <= (busy_o || ins_valid_i || take_valid_i) && !done_o;
      f_take_q <= state_q == StTake;
    end
  end
  always_ff @(posedge clk_i) {f_in_q, f_by_q} <= {f_in, f_by};
  `CT_ASSUME(Stable_M, (!f_busy_q || f_in == f_in_q) && (!f_take_q || state_q != StTake || f_by == f_by_q))
  `CT_ASSUME(FromZero_M, !ins_deadline_i[TimeW-1])

  // Any one place is followed.
  (* anyconst *) logic [SlotW-1:0] f_pick;
  logic             f_there_q;
  logic [Depth-1:0] f_is, f_early, f_apart, f_read;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni)                                                         f_there_q <= 1'b0;
    else if (state_q == StInsert && done_o && ins_slot_i == f_pick)      f_there_q <= 1'b1;
    else if (out_valid_o && out_slot_o == f_pick)                        f_there_q <= 1'b0;
  end
  `CT_ASSUME(Once_M, !(ins_valid_i || state_q == StInsert) || ins_slot_i != f_pick || !f_there_q)

  always_comb begin
    for (int p = 0; p < Words; p++) begin
      f_is[p]    = f_live[p] && (mem[p][SlotW-1:0] == f_pick);
      f_read[p]  = vld_q && (pos_q == PtrW'(p)) && (mem[p] != rdata_q);
      f_early[p] = !f_live[p] || !mem[p][W-1];
      // In order with every one before it; above the hole of an insert later than the new one.
      f_apart[p] = !(f_live[p] && state_q == StInsert && (PtrW + 1)'(p) > f_hole && mem[p][W-1 -: TimeW] <= ins_deadline_i);
      for (int q = 0; q < p; q++)
        if (f_live[p] && f_live[q] && mem[q][W-1 -: TimeW] > mem[p][W-1 -: TimeW]) f_apart[p] = 1'b0;
    end
  end
  `CT_ASSERT(StaysOnce_A, f_there_q ? (f_is != '0 && (f_is & (f_is - 1'b1)) == '0) : f_is == '0)
  `CT_ASSERT(LeavesOnce_A, !(out_valid_o && out_slot_o == f_pick) || f_there_q)
  `CT_ASSERT(InOrder_A, &f_apart)
  `CT_ASSERT(FromZero_A, &f_early)
  `CT_ASSERT(ReadIsThere_A, f_read == '0)
  `CT_ASSERT(TakeFrom_A, state_q != StTake || (left_q <= take_max_i && none_q == (left_q == take_max_i)))
  `CT_ASSERT(TookSome_A, state_q != StTake || left_q == take_max_i || vld_q || CountW'(to_q) <= count_q)
  `CT_ASSERT(AllStay_A, state_q != StTake || left_q != take_max_i || (vld_q ? to_q == pos_q : to_q == PtrW'(count_q)))
  `CT_ASSERT(Gap_A, state_q != StTake || left_q == take_max_i || !vld_q || to_q < pos_q)
  `CT_ASSERT(Free_A, state_q != StScan || !f_busy_q)
  `CT_ASSERT(Busy_A, state_q == StScan || f_busy_q)
  `CT_ASSERT(KnownState_A, state_q == StScan || state_q == StInsert || state_q == StTake)
  `CT_ASSERT(RoomKept_A, state_q != StInsert || count_q != CountW'(Depth))
