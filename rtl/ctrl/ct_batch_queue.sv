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
//             other inputs of ins and take are stable from the pulse to done_o, take_by_i, take_model_i and take_slot_i from the cycle after it.
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
  logic              none_d, none_q;    // none has
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
    none_d  = none_q;
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
          none_d  = 1'b1;
        end
      end
      StInsert: begin
        we    = 1'b1;
        waddr = vld_q ? pos_q + 1'b1 : '0;
        pos_d = pos_q - 1'b1;  // read in any case: whether it is needed is known late
        if (vld_q && later) begin
          vld_d = (pos_q != '0);
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
            none_d = 1'b0;
          end else begin
            we   = 1'b1;
            to_d = to_q + 1'b1;
          end
        end else begin
          // Nothing left, or all of Depth: then to_q has gone round.
          count_d = (to_q == '0 && none_q) ? count_q : CountW'(to_q);
          state_d = StScan;
          done_o  = 1'b1;
        end
      end
      default: state_d = StScan;
    endcase
  end

  assign re = (state_q == StInsert) ? vld_q && pos_q != '0 : vld_d;

  always_ff @(posedge clk_i) begin
    if (we) mem[waddr] <= wdata;
    if (re) rdata_q <= mem[pos_d];
    pos_q  <= pos_d;
    to_q   <= to_d;
    left_q <= left_d;
    none_q <= none_d;
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
  `include "ct_batch_queue_formal.svh"
`endif

  `CT_COVER(Full_C, count_q == CountW'(Depth))

endmodule

`default_nettype wire
