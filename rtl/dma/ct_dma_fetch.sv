// SPDX-License-Identifier: Apache-2.0
//
// Fetches of programs and descriptors, one instance per context: a client of ct_dma_rd that cuts a request (1..1024 beats) into bursts of at
// most 16 beats that do not cross 4 KB. Request taken in t, first burst offered in t + 3, then one in every second cycle; a request at
// a time. The beats of its bursts are the answer (rvalid_o, in order, never refused), a cycle after beat_i, when data_o of ct_dma_rd has them.
//
// A burst on offer holds until it is taken; flush_i drops the request, halt_i hides it until a flush. A burst that is not inside
// [base_i, limit_i) is never offered: err_o is high (a level) with its first unit outside. (The window is looked at once, in the cycle
// before.) A beat that comes with an error is one, too.
//
// Soft        a request that is only a guess, or comes before its turn, is soft (req_soft_i): what goes wrong with it is no error but a
//             pulse of bad_o; what is left of it outside the window is dropped, its good beats come nevertheless. drop_i (pulse) drops what was not
//             asked for yet of a request.
// Idle        idle_o: nothing is left of the request, and its answers have been given.

`default_nettype none
`include "ct_assert.svh"

module ct_dma_fetch (
  input  logic        clk_i,
  input  logic        rst_ni,

  input  logic        flush_i,
  input  logic        halt_i,
  input  logic        drop_i,
  output logic        idle_o,

  input  logic        req_valid_i,
  input  logic [31:0] req_addr_i,  // units of 16 bytes
  input  logic [10:0] req_len_i,   // beats
  input  logic        req_soft_i,
  output logic        req_ready_o,

  input  logic [31:0] base_i,
  input  logic [31:0] limit_i,
  output logic        err_o,
  output logic [7:0]  err_code_o,
  output logic [31:0] err_addr_o,
  output logic        bad_o,

  // A client of ct_dma_rd, one context of it.
  output logic        rd_valid_o,
  output logic [31:0] rd_addr_o,
  output logic [4:0]  rd_beats_o,  // 1..16
  output logic [1:0]  rd_tag_o,    // soft, last of the request
  output logic        rd_undo_o,
  input  logic        rd_ready_i,
  input  logic        beat_i,
  input  logic        fault_i,
  input  logic        beat_last_i,
  input  logic [31:0] beat_addr_i,
  input  logic [1:0]  beat_tag_i,
  input  logic        rd_idle_i,

  output logic        rvalid_o,
  output logic        rlast_o
);

  logic        act_d, act_q;
  logic [31:0] addr_q;
  logic [10:0] rem_q;
  logic        soft_q;

  // The burst that was cut last, until it is on offer.
  logic        cut_d, cut_q;
  logic [31:0] cut_addr_q;
  logic [32:0] cut_end_q;
  logic [4:0]  cut_beats_q;
  logic        cut_last_q;

  // The burst on offer, or the one that may not be.
  logic        out_d, out_q, outside_q;
  logic        low_q;  // its first unit is outside

  logic        seq_bad;            // a soft one that may not be
  logic        last_q, offer_soft_q;

  logic [4:0]  most, beats;
  logic [32:0] piece_end;
  logic        load, go, move, done, drop, outside;

  always_comb begin
    most      = '0;
    beats     = '0;
    piece_end = '0;
    done      = 1'b0;
    if (act_q) begin
      most      = (addr_q[7:4] == 4'hf) ? 5'd16 - {1'b0, addr_q[3:0]} : 5'd16;
      done      = rem_q <= {6'd0, most};
      beats     = done ? rem_q[4:0] : most;
      piece_end = {1'b0, addr_q} + {28'd0, beats};
    end
  end

  assign go          = act_q && !flush_i && !halt_i && !cut_q;
  assign move        = cut_q && !halt_i && (!(out_q || outside_q) || (rd_valid_o && rd_ready_i));
  assign outside     = cut_addr_q < base_i || cut_end_q > {1'b0, limit_i};
  assign drop        = flush_i || drop_i || seq_bad;
  assign req_ready_o = !halt_i && !drop && !act_q && !cut_q;
  assign load        = req_valid_i && req_ready_o;

  always_comb begin
    act_d = act_q;
    cut_d = cut_q;
    out_d = out_q || outside_q;
    if (rd_valid_o && rd_ready_i) out_d = 1'b0;
    if (move) begin
      cut_d = 1'b0;
      out_d = 1'b1;
    end
    if (go) cut_d = 1'b1;
    if (go && done) act_d = 1'b0;
    if (load) act_d = 1'b1;
    if (drop) begin
      act_d = 1'b0;
      cut_d = 1'b0;
      out_d = 1'b0;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      act_q     <= 1'b0;
      cut_q     <= 1'b0;
      out_q     <= 1'b0;
      outside_q <= 1'b0;
    end else begin
      act_q     <= act_d;
      cut_q     <= cut_d;
      out_q     <= out_d && (move ? !outside : out_q);
      outside_q <= out_d && (move ? outside : outside_q);
    end
  end

  always_ff @(posedge clk_i) begin
    if (load) begin
      addr_q <= req_addr_i;
      rem_q  <= req_len_i;
      soft_q <= req_soft_i;
    end else if (go) begin
      addr_q <= piece_end[31:0];
      rem_q  <= rem_q - {6'd0, beats};
    end
    if (go) begin
      cut_addr_q  <= addr_q;
      cut_end_q   <= piece_end;
      cut_beats_q <= beats;
      cut_last_q  <= done;
    end
    if (move) begin
      rd_addr_o    <= cut_addr_q;
      rd_beats_o   <= cut_beats_q;
      last_q       <= cut_last_q;
      offer_soft_q <= soft_q;
      low_q        <= cut_addr_q < base_i || cut_addr_q >= limit_i;
    end
  end

  assign seq_bad    = outside_q && offer_soft_q && !halt_i && !flush_i;
  assign rd_valid_o = out_q && !halt_i && !flush_i && !drop_i;
  assign rd_tag_o   = {offer_soft_q, last_q};
  assign rd_undo_o  = drop_i || seq_bad;

  // The answer.
  logic beat_soft, beat_end;
  logic rvalid_q, rlast_q;
  assign {beat_soft, beat_end} = beat_tag_i;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      rvalid_q <= 1'b0;
      bad_o    <= 1'b0;
    end else begin
      rvalid_q <= beat_i;
      bad_o    <= seq_bad || (fault_i && beat_soft);
    end
  end
  always_ff @(posedge clk_i) begin
    if (beat_i) rlast_q <= beat_end && beat_last_i;
  end
  assign rvalid_o = rvalid_q && !halt_i && !flush_i;
  assign rlast_o  = rvalid_o && rlast_q;
  assign idle_o   = !act_q && !cut_q && !out_q && !outside_q && rd_idle_i && !rvalid_q;

  // Errors, the oldest work first.
  logic fault;
  assign fault = fault_i && !beat_soft;
  assign err_o = fault || (outside_q && !offer_soft_q && !halt_i && !flush_i);
  always_comb begin
    err_code_o = 8'd0;
    err_addr_o = '0;
    if (fault) begin
      err_code_o = ct_pkg::ErrAxiRead;
      err_addr_o = beat_addr_i;
    end else if (outside_q) begin
      err_code_o = ct_pkg::ErrDramReadWindow;
      err_addr_o = low_q ? rd_addr_o : limit_i;
    end
  end

  `CT_ASSUME(LengthInRange_M, !load || (req_len_i != 11'd0 && req_len_i <= 11'd1024))
  `CT_ASSERT(BurstInPage_A, !rd_valid_o || 9'(rd_addr_o[7:0]) + 9'(rd_beats_o) <= 9'd256)

`ifdef FORMAL
  `include "ct_dma_fetch_formal.svh"
`endif

endmodule

`default_nettype wire
