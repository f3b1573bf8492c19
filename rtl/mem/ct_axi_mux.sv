// SPDX-License-Identifier: Apache-2.0
//
// Two AXI4 masters in front of one memory: the core and a host's bridge. An instance of ct_arbiter decides for reads, another for writes.
//
// AXI         what ct_core's master does: 128 bit data, INCR, 16 bytes a beat, one ID bit. The memory sees two: the upper says who, so it
//             may answer in any order that AXI allows. AWLEN and ARLEN are passed on; SIZE and BURST are the same for all.
// Rank        inference of the core (ID 0), then the host, then training (ID 1). Who has been passed by Patience bursts of another is *old*, and
//             while somebody is old only the old ask: so everybody waits for a bounded number of bursts, whatever the others do.
// Bounds      in bursts that are chosen before it while a request waits at the port (reads and writes each): inference 1, the host Patience,
//             training Patience + 1 (InferenceWaits_A, HostWaits_A, TrainingWaits_A). A request of inference behind one of training at the core's
//             port waits for both.
// Grant       of a burst. That of a write holds until its last beat has gone: a master asks only when its data are there (ct_dma_st and ct_usb_mem
//             do), or the others wait for it.
// Latency     two cycles for AR and AW. W, R and B pass through in the same cycle.
// Rate        a request every three cycles, a beat a cycle; a write's address may go when the last beat of the one before it has.
// Paths       AR and AW come from registers, and their readys, too. W, R and B have none, but one multiplexer: every way through it begins and
//             ends at a register of its neighbours (ct_core, ct_usb_bridge and ct_sdram have them).
//
// Parameters
//   Patience  bursts, 1 .. 15

`default_nettype none
`include "ct_assert.svh"

module ct_axi_mux #(
  parameter int unsigned Patience = 4
) (
  input  logic         clk_i,
  input  logic         rst_ni,

  // Ports: 0 the core, 1 the host. Of n signals each, those of port 1 above.
  input  logic [1:0]   s_axi_awvalid_i,
  output logic [1:0]   s_axi_awready_o,
  input  logic [1:0]   s_axi_awid_i,
  input  logic [71:0]  s_axi_awaddr_i,
  input  logic [15:0]  s_axi_awlen_i,
  input  logic [1:0]   s_axi_wvalid_i,
  output logic [1:0]   s_axi_wready_o,
  input  logic [255:0] s_axi_wdata_i,
  input  logic [31:0]  s_axi_wstrb_i,
  input  logic [1:0]   s_axi_wlast_i,
  output logic [1:0]   s_axi_bvalid_o,
  input  logic [1:0]   s_axi_bready_i,
  output logic         s_axi_bid_o,     // B and R are the same for both
  output logic [1:0]   s_axi_bresp_o,
  input  logic [1:0]   s_axi_arvalid_i,
  output logic [1:0]   s_axi_arready_o,
  input  logic [1:0]   s_axi_arid_i,
  input  logic [71:0]  s_axi_araddr_i,
  input  logic [15:0]  s_axi_arlen_i,
  output logic [1:0]   s_axi_rvalid_o,
  input  logic [1:0]   s_axi_rready_i,
  output logic         s_axi_rid_o,
  output logic [127:0] s_axi_rdata_o,
  output logic [1:0]   s_axi_rresp_o,
  output logic         s_axi_rlast_o,

  // The memory.
  output logic         m_axi_awvalid_o,
  input  logic         m_axi_awready_i,
  output logic [1:0]   m_axi_awid_o,
  output logic [35:0]  m_axi_awaddr_o,
  output logic [7:0]   m_axi_awlen_o,
  output logic         m_axi_wvalid_o,
  input  logic         m_axi_wready_i,
  output logic [127:0] m_axi_wdata_o,
  output logic [15:0]  m_axi_wstrb_o,
  output logic         m_axi_wlast_o,
  input  logic         m_axi_bvalid_i,
  output logic         m_axi_bready_o,
  input  logic [1:0]   m_axi_bid_i,
  input  logic [1:0]   m_axi_bresp_i,
  output logic         m_axi_arvalid_o,
  input  logic         m_axi_arready_i,
  output logic [1:0]   m_axi_arid_o,
  output logic [35:0]  m_axi_araddr_o,
  output logic [7:0]   m_axi_arlen_o,
  input  logic         m_axi_rvalid_i,
  output logic         m_axi_rready_o,
  input  logic [1:0]   m_axi_rid_i,
  input  logic [127:0] m_axi_rdata_i,
  input  logic [1:0]   m_axi_rresp_i,
  input  logic         m_axi_rlast_i
);

  logic ar_who, w_open, w_done;

  ct_axi_pick #(.Patience(Patience)) u_ar (
    .clk_i, .rst_ni,
    .valid_i(s_axi_arvalid_i), .ready_o(s_axi_arready_o), .id_i(s_axi_arid_i), .addr_i(s_axi_araddr_i), .len_i(s_axi_arlen_i),
    .valid_o(m_axi_arvalid_o), .ready_i(m_axi_arready_i), .who_o(ar_who), .id_o(m_axi_arid_o[0]), .addr_o(m_axi_araddr_o),
    .len_o(m_axi_arlen_o), .open_o(), .done_i(1'b1)
  );
  assign m_axi_arid_o[1] = ar_who;

  ct_axi_pick #(.Patience(Patience)) u_aw (
    .clk_i, .rst_ni,
    .valid_i(s_axi_awvalid_i), .ready_o(s_axi_awready_o), .id_i(s_axi_awid_i), .addr_i(s_axi_awaddr_i), .len_i(s_axi_awlen_i),
    .valid_o(m_axi_awvalid_o), .ready_i(m_axi_awready_i), .who_o(m_axi_awid_o[1]), .id_o(m_axi_awid_o[0]), .addr_o(m_axi_awaddr_o),
    .len_o(m_axi_awlen_o), .open_o(w_open), .done_i(w_done)
  );

  // The beats of the write that was chosen last.
  logic w_who;
  assign w_who          = m_axi_awid_o[1];
  assign m_axi_wvalid_o = w_open && (w_who ? s_axi_wvalid_i[1] : s_axi_wvalid_i[0]);
  assign m_axi_wdata_o  = w_who ? s_axi_wdata_i[255:128] : s_axi_wdata_i[127:0];
  assign m_axi_wstrb_o  = w_who ? s_axi_wstrb_i[31:16] : s_axi_wstrb_i[15:0];
  assign m_axi_wlast_o  = w_who ? s_axi_wlast_i[1] : s_axi_wlast_i[0];
  assign s_axi_wready_o = {w_who, !w_who} & {2{w_open && m_axi_wready_i}};
  assign w_done         = m_axi_wvalid_o && m_axi_wready_i && m_axi_wlast_o;

  assign s_axi_bvalid_o = {m_axi_bid_i[1], !m_axi_bid_i[1]} & {2{m_axi_bvalid_i}};
  assign m_axi_bready_o = m_axi_bid_i[1] ? s_axi_bready_i[1] : s_axi_bready_i[0];
  assign s_axi_bid_o    = m_axi_bid_i[0];
  assign s_axi_bresp_o  = m_axi_bresp_i;

  assign s_axi_rvalid_o = {m_axi_rid_i[1], !m_axi_rid_i[1]} & {2{m_axi_rvalid_i}};
  assign m_axi_rready_o = m_axi_rid_i[1] ? s_axi_rready_i[1] : s_axi_rready_i[0];
  assign s_axi_rid_o    = m_axi_rid_i[0];
  assign s_axi_rdata_o  = m_axi_rdata_i;
  assign s_axi_rresp_o  = m_axi_rresp_i;
  assign s_axi_rlast_o  = m_axi_rlast_i;

endmodule

`default_nettype wire
