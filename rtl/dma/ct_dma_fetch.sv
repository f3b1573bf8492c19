// SPDX-License-Identifier: Apache-2.0
//
// Cuts one fetch request (1..1024 beats of program or descriptor) into bursts of at most 16 beats that do not cross 4 KB; one
// instance per context. Request taken in t, first burst offered in t + 2, then one a cycle; a request at a time.
//
// valid_o holds until ready_i; flush_i drops the request, halt_i hides it until a flush. A burst that is not inside
// [base_i, limit_i) is never offered: err_o is high (a level) with its first unit outside. A soft request (req_soft_i) makes no
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
  logic        out_d, out_q;
  logic [32:0] out_end_q;

  logic [8:0]  page;
  logic [10:0] beats;
  logic [32:0] piece_end;
  logic        load, go, done;
  logic        soft_q;

  always_comb begin
    page      = '0;
    beats     = '0;
    piece_end = '0;
    done      = 1'b0;
    if (act_q) begin
      page  = 9'd256 - {1'b0, addr_q[7:0]};
      beats = (rem_q > 11'd16) ? 11'd16 : rem_q;
      if (beats > {2'd0, page}) beats = {2'd0, page};
      piece_end = {1'b0, addr_q} + {22'd0, beats};
      done      = (beats == rem_q);
    end
  end

  assign go          = act_q && !flush_i && !halt_i && (!out_q || (valid_o && ready_i));
  assign req_ready_o = !flush_i && !halt_i && !drop_i && !bad_o && !act_q;
  assign load        = req_valid_i && req_ready_o;

  always_comb begin
    act_d = act_q;
    out_d = out_q;
    if (valid_o && ready_i) out_d = 1'b0;
    if (go) out_d = 1'b1;
    if (go && done) act_d = 1'b0;
    if (load) act_d = 1'b1;
    if (flush_i || drop_i || bad_o) begin
      act_d = 1'b0;
      out_d = 1'b0;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      act_q <= 1'b0;
      out_q <= 1'b0;
    end else begin
      act_q <= act_d;
      out_q <= out_d;
    end
  end

  always_ff @(posedge clk_i) begin
    if (load) begin
      addr_q <= req_addr_i;
      rem_q  <= req_len_i;
      soft_q <= req_soft_i;
    end else if (go) begin
      addr_q <= piece_end[31:0];
      rem_q  <= rem_q - beats;
    end
    if (go) begin
      addr_o    <= addr_q;
      out_end_q <= piece_end;
      beats_o   <= beats[4:0];
      last_o    <= done;
      soft_o    <= soft_q;
    end
  end

  logic outside;
  always_comb begin
    outside    = 1'b0;
    err_addr_o = '0;
    if (out_q) begin
      outside    = addr_o < base_i || out_end_q > {1'b0, limit_i};
      err_addr_o = (addr_o < base_i || addr_o >= limit_i) ? addr_o : limit_i;
    end
  end

  assign err_o   = out_q && outside && !soft_o && !halt_i && !flush_i;
  assign bad_o   = out_q && outside && soft_o && !halt_i && !flush_i;
  assign valid_o = out_q && !outside && !halt_i && !flush_i && !drop_i;
  assign idle_o  = !act_q && !out_q;

  `CT_ASSUME(LengthInRange_M, !load || (req_len_i != 11'd0 && req_len_i <= 11'd1024))
  `CT_ASSERT(BurstInPage_A, !valid_o || addr_o[31:8] == out_end_q[31:8] || out_end_q[7:0] == 8'd0)
  `CT_ASSERT(BurstInWindow_A, !valid_o || (addr_o >= base_i && out_end_q <= {1'b0, limit_i}))

`ifdef FORMAL
  `include "ct_dma_fetch_formal.svh"
`endif

endmodule

`default_nettype wire
