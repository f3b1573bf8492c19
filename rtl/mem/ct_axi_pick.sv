// SPDX-License-Identifier: Apache-2.0
//
// The address channel of ct_axi_mux: chooses between the requests of two ports and keeps the chosen one on offer. That header says who goes
// first and who waits how long.
//
//     Idle: somebody asks, one is chosen ─> Take: ready for it, its address into the register ─> Offer ─> Idle
//
// Open        open_o is high from Take on until done_i: the burst's data may pass. The next is chosen after it, and after the offer was taken.
//             done_i high all the time: for reads.

`default_nettype none
`include "ct_assert.svh"

module ct_axi_pick #(
  parameter int unsigned Patience = 4
) (
  input  logic        clk_i,
  input  logic        rst_ni,

  input  logic [1:0]  valid_i,
  output logic [1:0]  ready_o,
  input  logic [1:0]  id_i,      // of port 0: 0 inference, 1 training
  input  logic [71:0] addr_i,
  input  logic [15:0] len_i,

  output logic        valid_o,
  input  logic        ready_i,
  output logic        who_o,
  output logic        id_o,
  output logic [35:0] addr_o,
  output logic [7:0]  len_o,

  output logic        open_o,
  input  logic        done_i
);

  if (Patience < 1 || Patience > 15) begin : g_check
    ct_error_axi_mux_patience_must_be_1_to_15 u_error ();
  end

  // Requesters: inference, the host, training. The first and the last are one port, which asks as one of them.
  localparam int unsigned Inf  = 0;
  localparam int unsigned Host = 1;
  localparam int unsigned Trn  = 2;
  localparam logic [5:0]  Classes = {ct_pkg::ClassTrn, ct_pkg::ClassHost, ct_pkg::ClassInf};
  localparam logic [ct_pkg::QosW-1:0] Ranked =
    (ct_pkg::QosW'(1) << ct_pkg::QosRanked) | (ct_pkg::QosW'(1) << ct_pkg::QosStrict);

  logic        take_q, valid_q, open_q, who_q, id_q, choose;
  logic [2:0]  req, old, ask, gnt;
  logic [4:0]  host_q, trn_q;   // bursts that have passed the request that waits
  logic [35:0] addr_q;
  logic [7:0]  len_q;

  assign req    = {valid_i[0] && id_i[0], valid_i[1], valid_i[0] && !id_i[0]};
  assign old    = {trn_q >= 5'(Patience), host_q >= 5'(Patience), 1'b0};
  assign ask    = ((req & old) != '0) ? req & old : req;
  assign choose = !take_q && !valid_q && !open_q && gnt != '0;

  ct_arbiter #(.N(3), .Classes(Classes)) u_arbiter (
    .clk_i, .rst_ni,
    .qos_i(Ranked), .flush_i('0),
    .req_i(ask), .defer_i(1'b0), .last_i('1), .take_i(choose), .gnt_o(gnt)
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      take_q  <= 1'b0;
      valid_q <= 1'b0;
      open_q  <= 1'b0;
      who_q   <= 1'b0;
      host_q  <= '0;
      trn_q   <= '0;
    end else begin
      take_q  <= choose;
      valid_q <= take_q || (valid_q && !ready_i);
      open_q  <= take_q || (open_q && !done_i);
      if (choose) who_q <= gnt[Host];
      if (choose) begin
        host_q <= (gnt[Host] || !req[Host]) ? '0 : host_q + 1'b1;
        trn_q  <= (gnt[Trn] || !req[Trn])   ? '0 : trn_q + 1'b1;
      end
    end
  end

  assign ready_o = {who_q, !who_q} & {2{take_q}};
  assign valid_o = valid_q;
  assign open_o  = open_q;
  assign who_o   = who_q;
  assign id_o    = id_q;
  assign addr_o  = addr_q;
  assign len_o   = len_q;

  always_ff @(posedge clk_i) begin
    if (take_q) begin
      id_q   <= who_q ? id_i[1] : id_i[0];
      addr_q <= who_q ? addr_i[71:36] : addr_i[35:0];
      len_q  <= who_q ? len_i[15:8] : len_i[7:0];
    end
  end

  // A request stays until it is taken, as AXI has it.
  logic [1:0]  asked_q, ids_q;
  logic [1:0]  inf_q;            // bursts that have passed inference
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      asked_q <= '0;
      ids_q   <= '0;
      inf_q   <= '0;
    end else begin
      asked_q <= valid_i & ~ready_o;
      ids_q   <= id_i;
      if (choose) inf_q <= (gnt[Inf] || !req[Inf]) ? '0 : inf_q + 1'b1;
    end
  end
  `CT_ASSUME(RequestStays_M, (asked_q & ~valid_i) == '0 && (asked_q & (ids_q ^ id_i)) == '0)
  `CT_ASSERT(InferenceWaits_A, inf_q <= 2'd1)
  `CT_ASSERT(HostWaits_A, host_q <= 5'(Patience))
  `CT_ASSERT(TrainingWaits_A, trn_q <= 5'(Patience) + 5'd1)
  `CT_ASSERT(TakesOnOffer_A, (ready_o & ~valid_i) == '0)
  `CT_ASSERT(OneAtATime_A, !(take_q && (valid_q || open_q)))
  // Whoever is old, or was passed by one that was, goes next: those that count are fresh.
  `CT_ASSERT(FreshAfterOld_A, !(inf_q != '0 && host_q != '0) && !(trn_q == 5'(Patience) + 5'd1 && host_q != '0))

`ifdef FORMAL
  // The burst on offer is the one that was chosen: that of the port whose turn it is.
  logic [35:0] f_addr_q;
  logic        f_who_q, f_id_q, f_stay_q;
  logic [7:0]  f_len_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) f_stay_q <= 1'b0;
    else         f_stay_q <= valid_o && !ready_i;
  end
  always_ff @(posedge clk_i) begin
    if (ready_o != '0) begin
      f_addr_q <= ready_o[1] ? addr_i[71:36] : addr_i[35:0];
      f_len_q  <= ready_o[1] ? len_i[15:8] : len_i[7:0];
      f_id_q   <= ready_o[1] ? id_i[1] : id_i[0];
      f_who_q  <= ready_o[1];
    end
  end
  `CT_ASSERT(OfferIsChosen_A, !valid_o || (addr_o == f_addr_q && len_o == f_len_q && id_o == f_id_q && who_o == f_who_q))
  `CT_ASSERT(OpenIsChosen_A, !open_o || who_o == f_who_q)
  `CT_ASSERT(KeepsOffer_A, !f_stay_q || valid_o)
  `CT_ASSERT(ChosenAsks_A, !take_q || (valid_i & {who_q, !who_q}) != '0)
`endif

endmodule

`default_nettype wire
