// SPDX-License-Identifier: Apache-2.0
//
// The places of ct_batch: the words of its requests, the ring of their numbers, and the addresses that the DMA asks for.
//
// Places      a request's 8 words in a block RAM, from its push until its record has been popped: 0 input, 1 output, 2 tag, 3 and 4 arrival, 5
//             deadline, 6 its upper bits, model and whether there is none.
// Ring        numbers of places in the order in which requests left the queue: records (from head_q), batches, and, behind the newest (write_o), as
//             many unused positions as requests wait; from alloc_q to head_q the free places. In the first round position n stands for place n.
// Push        the next free place is fetched while nothing else happens; INPUT, OUTPUT and TAG go there as they are written, and wait for it
//             (ready_o), or are lost if there is none, which the push then hears (refuse_o, step 0 of push_i; also without its model or
//             a place in the queue). Its times are deadline_o and go_o, from steps 1 and 2 on: arrival and DEADLINE, arrival and what its policy says.
// Leave       out_i puts a place into the ring, popped_i takes the oldest out.
// Gather      row r of the running batch reads at the input address of its request r, and writes at its output address: gat_*, one
//             address the cycle after gat_gnt_o. LD goes before ST, both before all else that reads here.
// Reads       word_o follows a cycle later: in load_i the oldest request's deadline (steps 0 and 1: its lower word), else word rd_word_i of
//             rec_place_i. oldest_o is the oldest request's place, in load_i.

`default_nettype none
`include "ct_assert.svh"

module ct_batch_places #(
  parameter  int unsigned Depth  = 64,   // requests that may wait
  parameter  int unsigned Slots  = 128,
  parameter  int unsigned TimeW  = 40,
  localparam int unsigned SlotW  = $clog2(Slots),
  localparam int unsigned CountW = $clog2(Depth + 1)
) (
  input  logic              clk_i,
  input  logic              rst_ni,

  input  logic [63:0]       cycle_i,

  // Registers.
  input  logic              wr_i,
  input  logic [5:0]        wr_word_i,
  input  logic [31:0]       wr_data_i,
  output logic              ready_o,         // for words of the request
  output logic [SlotW-1:0]  ticket_o,        // place of the last one accepted
  output logic [CountW-1:0] room_o,          // requests that would be accepted

  // The machine.
  input  logic              idle_i,
  input  logic              free_i,          // there is no command
  input  logic              push_i,
  input  logic              pushed_i,
  input  logic              inserted_i,
  input  logic              load_i,
  input  logic [5:0]        step_i,
  input  logic [2:0]        model_i,         // of the push
  input  logic              known_i,         // it is loaded
  input  logic [1:0]        policy_i,
  input  logic [31:0]       wait_i,          // its max_wait, in step 1
  output logic              refuse_o,
  output logic [SlotW-1:0]  place_o,
  output logic [TimeW-1:0]  deadline_o,
  output logic [TimeW-1:0]  go_o,
  input  logic [CountW-1:0] waiting_i,       // requests in the queue
  output logic              some_left_o,     // there are requests that wait no more

  input  logic              out_i,
  input  logic [SlotW-1:0]  out_slot_i,
  output logic [SlotW-1:0]  write_o,
  input  logic              popped_i,

  // Reads.
  input  logic [2:0]        rd_word_i,
  input  logic [SlotW-1:0]  rec_place_i,
  output logic [SlotW-1:0]  oldest_o,
  output logic [31:0]       word_o,

  // DMA: LD, ST.
  input  logic [1:0]        gat_valid_i,
  input  logic [7:0]        gat_row_i,
  output logic [1:0]        gat_gnt_o,
  output logic [1:0]        gat_vld_o,
  output logic [31:0]       gat_addr_o,
  input  logic [SlotW-1:0]  run_base_i       // position of the running batch's row 0
);

  localparam logic [5:0] WordTag      = {1'b0, 5'(ct_pkg::RegReqTag >> 2)};
  localparam logic [5:0] WordDeadline = {1'b0, 5'(ct_pkg::RegReqDeadline >> 2)};

  // Words of a request.
  localparam logic [2:0] ReqArrive = 3'd3, ReqDeadline = 3'd5;

  (* no_rw_check *) logic [31:0] req_mem [0:8*Slots-1];
  logic             req_we;
  logic [SlotW+2:0] req_waddr, req_raddr;
  logic [31:0]      req_wdata, req_q;

  always_ff @(posedge clk_i) begin
    if (req_we) req_mem[req_waddr] <= req_wdata;
    req_q <= req_mem[req_raddr];
  end

  logic [SlotW-1:0] ring [0:Slots-1];
  logic [SlotW-1:0] alloc_q, head_q, write_q, ring_raddr, ring_rdata;
  logic [SlotW:0]   free_q;
  logic             fresh_q;            // the first round
  logic [SlotW-1:0] place_q;            // the place of the request that is being written and pushed, if
  logic             placed_q;           // there is one

  logic [31:0]      rel_q;              // DEADLINE
  logic [63:0]      arrive_q;
  logic             spoilt_q;           // a word of the request found no place
  logic [SlotW-1:0] ticket_q;
  logic [TimeW-1:0] deadline_q, go_q, sum;
  logic [31:0]      addend;
  logic             accept, gat;

  assign gat      = (gat_valid_i != '0);
  assign ready_o  = placed_q || (free_q == '0);
  assign refuse_o = !known_i || free_q == '0 || waiting_i == CountW'(Depth) || spoilt_q;
  assign accept   = push_i && (step_i == 6'd0) && !refuse_o;
  assign room_o   = (free_q < (SlotW + 1)'(CountW'(Depth) - waiting_i)) ? CountW'(free_q) : CountW'(Depth) - waiting_i;
  // (Without one the oldest batch's words are those of one long ago.)
  assign some_left_o = (free_q + (SlotW + 1)'(waiting_i) != (SlotW + 1)'(Slots));

  // ---- The ring -------------------------------------------------------------------------------------------------------------------

  // A push takes a place, a pop gives one back.
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      alloc_q <= '0;
      head_q  <= '0;
      write_q <= '0;
      free_q  <= (SlotW + 1)'(Slots);
      fresh_q <= 1'b1;
    end else begin
      if (accept) begin
        alloc_q <= alloc_q + 1'b1;
        free_q  <= free_q - 1'b1;
        if (alloc_q == SlotW'(Slots - 1)) fresh_q <= 1'b0;
      end
      if (popped_i) begin
        head_q <= head_q + 1'b1;
        free_q <= free_q + 1'b1;
      end
      if (out_i) write_q <= write_q + 1'b1;
    end
  end

  // The next free place is fetched while nothing else happens.
  assign ring_rdata = ring[ring_raddr];
  always_comb begin
    ring_raddr = load_i ? head_q : alloc_q;
    if (gat_valid_i[1]) ring_raddr = run_base_i + SlotW'(gat_row_i[7:4]);
    if (gat_valid_i[0]) ring_raddr = run_base_i + SlotW'(gat_row_i[3:0]);
  end

  always_ff @(posedge clk_i) begin
    if (out_i) ring[write_q] <= out_slot_i;
    if (!placed_q) place_q <= fresh_q ? alloc_q : ring_rdata;
    if (accept) ticket_q <= place_q;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni)                                                     placed_q <= 1'b0;
    else if (inserted_i)                                             placed_q <= 1'b0;
    else if (!placed_q && free_q != '0 && !gat && !load_i && free_i) placed_q <= 1'b1;
  end

  assign write_o  = write_q;
  assign oldest_o = ring_rdata;
  assign place_o  = place_q;
  assign ticket_o = ticket_q;

  // ---- A request's words ------------------------------------------------------------------------------------------------------------

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      spoilt_q <= 1'b0;
    end else begin
      if (pushed_i) spoilt_q <= 1'b0;
      if (wr_i && wr_word_i <= WordDeadline && free_q == '0) spoilt_q <= 1'b1;
    end
  end

  always_ff @(posedge clk_i) begin
    if (wr_i) begin
      arrive_q <= cycle_i;
      if (wr_word_i == WordDeadline) rel_q <= wr_data_i;
    end
  end

  // Times of a push: deadline, then time to go.
  always_comb begin
    addend = (rel_q == '0) ? '1 : rel_q;
    if (step_i != 6'd0) begin
      if (policy_i == ct_pkg::BatchNone)                       addend = '0;
      else if (policy_i == ct_pkg::BatchFixed || rel_q == '0)  addend = wait_i;
    end
  end
  assign sum = arrive_q[TimeW-1:0] + TimeW'(addend);
  always_ff @(posedge clk_i) begin
    if (push_i && step_i == 6'd0) deadline_q <= sum;
    if (push_i && step_i == 6'd1) go_q <= sum;
  end
  assign deadline_o = deadline_q;
  assign go_o       = go_q;

  always_comb begin
    req_we    = wr_i && (wr_word_i <= WordTag) && placed_q;
    req_waddr = {place_q, wr_word_i[2:0]};
    req_wdata = wr_data_i;
    if (push_i) begin
      req_we    = (step_i != 6'd0) || accept;
      req_waddr = {place_q, ReqArrive + step_i[2:0]};
      unique case (step_i[1:0])
        2'd0:    req_wdata = arrive_q[31:0];
        2'd1:    req_wdata = arrive_q[63:32];
        2'd2:    req_wdata = deadline_q[31:0];
        default: req_wdata = {rel_q == '0, model_i, 20'd0, deadline_q[TimeW-1:32]};
      endcase
    end
    req_raddr = {rec_place_i, rd_word_i};
    if (load_i)            req_raddr = {ring_rdata, (step_i == 6'd1) ? ReqDeadline : ReqDeadline + 3'd1};
    if (gat_valid_i != '0) req_raddr = {ring_rdata, 2'd0, !gat_valid_i[0]};
  end
  assign word_o = req_q;

  assign gat_gnt_o  = {gat_valid_i[1] && !gat_valid_i[0], gat_valid_i[0]};
  assign gat_addr_o = req_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) gat_vld_o <= '0;
    else         gat_vld_o <= gat_gnt_o;
  end

  // ---- Invariants -------------------------------------------------------------------------------------------------------------------

  logic [SlotW-1:0] left_there, held;
  assign left_there = write_q - head_q;
  assign held       = SlotW'(Slots - 32'(free_q)) - SlotW'(waiting_i);

  `CT_ASSERT(Conserved_A, !idle_i || left_there == held)
  `CT_ASSERT(PlaceKept_A, !(push_i || inserted_i) || placed_q || refuse_o)

  `CT_COVER(AllHeld_C, free_q == '0)

endmodule

`default_nettype wire
