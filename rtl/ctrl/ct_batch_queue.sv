// SPDX-License-Identifier: Apache-2.0
//
// The waiting requests in order of their deadlines: one list in a block RAM, and one pass over it at a time.
//
// Order       earliest deadline first; of equal ones the one that came first. Times are modulo 2^TimeW, and what is compared must lie less
//             than half of that apart.
// Insert      ins_valid_i (a pulse, while busy_o is low): later entries move up by one, from the last one down, until the place is free.
// Take        take_valid_i (a pulse, while busy_o is low): the first take_max_i entries that fit take_by_i leave, in order, one out_valid_o
//             pulse each, never refused; the others close up. take_by_i: 0 those of take_model_i, 1 the one of take_slot_i, 2 all.
// Latency     done_o in the cycle in which the pass ends: 1 to Depth + 1 cycles after an insert's pulse, count_o + 1 after a take's. The
//             other inputs of ins and take are stable from the pulse to done_o.
// Scan        while no pass runs, the entries go by on scan_*, one a cycle, in order, again and again; scan_first_o and scan_last_o mark
//             the ends. A pass breaks the scan off; it begins anew two cycles after done_o.
// Why         a sorted list of indices costs three block RAMs and one comparator. 64 comparators would cost a twentieth of the device.
//
// Parameters
//   Depth   entries, a power of two
//   SlotW, ModelW, TimeW   widths of what an entry holds: place of the request, model, deadline and time to go

`default_nettype none
`include "ct_assert.svh"

module ct_batch_queue #(
  parameter  int unsigned Depth  = 64,
  parameter  int unsigned SlotW  = 7,
  parameter  int unsigned ModelW = 3,
  parameter  int unsigned TimeW  = 40,
  localparam int unsigned CountW = $clog2(Depth + 1)
) (
  input  logic              clk_i,
  input  logic              rst_ni,

  output logic              busy_o,
  output logic              done_o,
  output logic [CountW-1:0] count_o,   // entries; changes with the end of a pass

  input  logic              ins_valid_i,
  input  logic [TimeW-1:0]  ins_deadline_i,
  input  logic [TimeW-1:0]  ins_go_i,
  input  logic [ModelW-1:0] ins_model_i,
  input  logic [SlotW-1:0]  ins_slot_i,

  input  logic              take_valid_i,
  input  logic [1:0]        take_by_i,
  input  logic [ModelW-1:0] take_model_i,
  input  logic [SlotW-1:0]  take_slot_i,
  input  logic [CountW-1:0] take_max_i,
  output logic              out_valid_o,
  output logic [SlotW-1:0]  out_slot_o,
  output logic [ModelW-1:0] out_model_o,
  output logic [TimeW-1:0]  out_deadline_o,

  output logic              scan_valid_o,
  output logic              scan_first_o,
  output logic              scan_last_o,
  output logic [ModelW-1:0] scan_model_o,
  output logic [TimeW-1:0]  scan_go_o,
  output logic [TimeW-1:0]  scan_deadline_o
);

  if (Depth < 2 || (Depth & (Depth - 1)) != 0) begin : g_check_depth
    ct_error_depth_must_be_a_power_of_two u_error ();
  end

  localparam int unsigned PtrW = $clog2(Depth);
  localparam int unsigned W    = 2*TimeW + ModelW + SlotW;

  typedef enum logic [1:0] {StScan, StInsert, StTake} state_e;

  (* no_rw_check *) logic [W-1:0] mem [0:Depth-1];  // never read where it is written (Apart_A)

  state_e            state_d, state_q;
  logic              vld_d, vld_q;      // rdata_q is the entry at pos_q
  logic [PtrW-1:0]   pos_d, pos_q;
  logic [PtrW-1:0]   to_d, to_q;        // take: where the next entry that stays goes
  logic [CountW-1:0] left_d, left_q;    // take: entries that may still leave
  logic [CountW-1:0] count_d, count_q;
  logic [W-1:0]      rdata_q, wdata;
  logic              we, re;
  logic [PtrW-1:0]   waddr;

  logic [TimeW-1:0]  deadline, go, ahead;
  logic [ModelW-1:0] model;
  logic [SlotW-1:0]  slot;
  logic              later, fits, hit, last;

  assign {deadline, go, model, slot} = rdata_q;

  assign ahead = ins_deadline_i - deadline;
  assign later = ahead[TimeW-1];  // than the new one
  assign last  = (CountW'(pos_q) + 1'b1 == count_q);

  always_comb begin
    unique case (take_by_i)
      2'd0:    fits = (model == take_model_i);
      2'd1:    fits = (slot == take_slot_i);
      default: fits = 1'b1;
    endcase
  end
  assign hit = (state_q == StTake) && vld_q && fits && (left_q != '0);

  // pos_d is what is read in this cycle.
  always_comb begin
    state_d = state_q;
    vld_d   = 1'b0;
    pos_d   = '0;
    to_d    = to_q;
    left_d  = left_q;
    count_d = count_q;
    we      = 1'b0;
    waddr   = to_q;
    wdata   = rdata_q;
    done_o  = 1'b0;
    unique case (state_q)
      StScan: begin
        vld_d = (count_q != '0);
        if (vld_q && !last) pos_d = pos_q + 1'b1;
        if (ins_valid_i) begin
          state_d = StInsert;
          pos_d   = PtrW'(count_q - 1'b1);
        end else if (take_valid_i) begin
          state_d = StTake;
          pos_d   = '0;
          to_d    = '0;
          left_d  = take_max_i;
        end
      end
      StInsert: begin
        we    = 1'b1;
        waddr = vld_q ? pos_q + 1'b1 : '0;
        if (vld_q && later) begin
          vld_d = (pos_q != '0);
          pos_d = pos_q - 1'b1;
        end else begin
          wdata   = {ins_deadline_i, ins_go_i, ins_model_i, ins_slot_i};
          count_d = count_q + 1'b1;
          state_d = StScan;
          done_o  = 1'b1;
        end
      end
      StTake: begin
        if (vld_q) begin
          vld_d = !last;
          pos_d = pos_q + 1'b1;
          if (hit) begin
            left_d = left_q - 1'b1;
          end else begin
            we   = 1'b1;
            to_d = to_q + 1'b1;
          end
        end else begin
          // Nothing left, or all of Depth: then to_q has gone round.
          count_d = (to_q == '0 && left_q == take_max_i) ? count_q : CountW'(to_q);
          state_d = StScan;
          done_o  = 1'b1;
        end
      end
      default: state_d = StScan;
    endcase
  end

  assign re = vld_d;

  always_ff @(posedge clk_i) begin
    if (we) mem[waddr] <= wdata;
    if (re) rdata_q <= mem[pos_d];
    pos_q  <= pos_d;
    to_q   <= to_d;
    left_q <= left_d;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= StScan;
      vld_q   <= 1'b0;
      count_q <= '0;
    end else begin
      state_q <= state_d;
      vld_q   <= vld_d;
      count_q <= count_d;
    end
  end

  assign busy_o          = (state_q != StScan);
  assign count_o         = count_q;
  assign out_valid_o     = hit;
  assign out_slot_o      = slot;
  assign out_model_o     = model;
  assign out_deadline_o  = deadline;
  assign scan_valid_o    = (state_q == StScan) && vld_q && !ins_valid_i && !take_valid_i;
  assign scan_first_o    = (pos_q == '0);
  assign scan_last_o     = last;
  assign scan_model_o    = model;
  assign scan_go_o       = go;
  assign scan_deadline_o = deadline;

  // ---- Invariants -------------------------------------------------------------------------------------------------------------

  // The entry before the one on the way by, in the same scan.
  logic             prev_q;
  logic [TimeW-1:0] prev_deadline_q, step;
  assign step = deadline - prev_deadline_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) prev_q <= 1'b0;
    else         prev_q <= scan_valid_o && !last;
  end
  always_ff @(posedge clk_i) prev_deadline_q <= deadline;

  `CT_ASSERT(Ordered_A, !(prev_q && scan_valid_o) || !step[TimeW-1])
  `CT_ASSERT(CountInRange_A, count_q <= CountW'(Depth))
  `CT_ASSERT(InRange_A, !vld_q || CountW'(pos_q) < count_q)
  `CT_ASSERT(Apart_A, !(we && re) || waddr != pos_d)
  `CT_ASSERT(TakeBehind_A, state_q != StTake || !vld_q || to_q <= pos_q)
  `CT_ASSUME(OneAtATime_M, !(ins_valid_i && take_valid_i))
  `CT_ASSUME(WhenFree_M, !(ins_valid_i || take_valid_i) || !busy_o)
  `CT_ASSUME(Room_M, !ins_valid_i || count_q != CountW'(Depth))
  `CT_ASSUME(SomeToTake_M, !take_valid_i || take_max_i != '0)

`ifdef FORMAL
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
  logic                    f_busy_q;
  logic [2*TimeW+2*ModelW+2*SlotW+CountW+1:0] f_in, f_in_q;
  assign f_in = {ins_deadline_i, ins_go_i, ins_model_i, ins_slot_i, take_model_i, take_slot_i, take_max_i, take_by_i};
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) f_busy_q <= 1'b0;
    else         f_busy_q <= (busy_o || ins_valid_i || take_valid_i) && !done_o;
  end
  always_ff @(posedge clk_i) f_in_q <= f_in;
  `CT_ASSUME(Stable_M, !f_busy_q || f_in == f_in_q)
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
  `CT_ASSERT(TakeFrom_A, state_q != StTake || left_q <= take_max_i)
  `CT_ASSERT(TookSome_A, state_q != StTake || left_q == take_max_i || vld_q || CountW'(to_q) <= count_q)
  `CT_ASSERT(AllStay_A, state_q != StTake || left_q != take_max_i || (vld_q ? to_q == pos_q : to_q == PtrW'(count_q)))
  `CT_ASSERT(Gap_A, state_q != StTake || left_q == take_max_i || !vld_q || to_q < pos_q)
  `CT_ASSERT(Free_A, state_q != StScan || !f_busy_q)
  `CT_ASSERT(Busy_A, state_q == StScan || f_busy_q)
  `CT_ASSERT(KnownState_A, state_q == StScan || state_q == StInsert || state_q == StTake)
  `CT_ASSERT(RoomKept_A, state_q != StInsert || count_q != CountW'(Depth))
`endif

  `CT_COVER(Full_C, count_q == CountW'(Depth))

endmodule

`default_nettype wire
