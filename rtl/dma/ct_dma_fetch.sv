// SPDX-License-Identifier: Apache-2.0
//
// Cuts one fetch request (1..1024 beats of program or descriptor) into bursts of at most 16 beats that do not cross 4 KB; one
// instance per context. Request taken in t, first burst offered in t + 3, then one in every second cycle; a request at a time.
//
// valid_o holds until ready_i; flush_i drops the request, halt_i hides it until a flush. A burst that is not inside
// [base_i, limit_i) is never offered: err_o is high (a level) with its first unit outside. (The window is looked at once, in the cycle
// before.) A soft request (req_soft_i) makes no
// error: what is left of it is dropped, and bad_o is high for that cycle. drop_i (pulse) drops what is left of a request.

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
  output logic [31:0] err_addr_o,
  output logic        bad_o,

  output logic        valid_o,
  input  logic        ready_i,
  output logic [31:0] addr_o,
  output logic [4:0]  beats_o,  // 1..16
  output logic        last_o,   // of the request
  output logic        soft_o
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
  assign move        = cut_q && !halt_i && (!(out_q || outside_q) || (valid_o && ready_i));
  assign outside     = cut_addr_q < base_i || cut_end_q > {1'b0, limit_i};
  assign drop        = flush_i || drop_i || bad_o;
  assign req_ready_o = !halt_i && !drop && !act_q && !cut_q;
  assign load        = req_valid_i && req_ready_o;

  always_comb begin
    act_d = act_q;
    cut_d = cut_q;
    out_d = out_q || outside_q;
    if (valid_o && ready_i) out_d = 1'b0;
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
      addr_o  <= cut_addr_q;
      beats_o <= cut_beats_q;
      last_o  <= cut_last_q;
      soft_o  <= soft_q;
      low_q   <= cut_addr_q < base_i || cut_addr_q >= limit_i;
    end
  end

  assign err_o      = outside_q && !soft_o && !halt_i && !flush_i;
  assign err_addr_o = !outside_q ? '0 : low_q ? addr_o : limit_i;
  assign bad_o      = outside_q && soft_o && !halt_i && !flush_i;
  assign valid_o    = out_q && !halt_i && !flush_i && !drop_i;
  assign idle_o     = !act_q && !cut_q && !out_q && !outside_q;

  `CT_ASSUME(LengthInRange_M, !load || (req_len_i != 11'd0 && req_len_i <= 11'd1024))
  `CT_ASSERT(BurstInPage_A, !valid_o || 9'(addr_o[7:0]) + 9'(beats_o) <= 9'd256)

`ifdef FORMAL
  `include "ct_dma_fetch_formal.svh"
`endif

endmodule

`default_nettype wire
