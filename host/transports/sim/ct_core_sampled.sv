// SPDX-License-Identifier: Apache-2.0
//
// A core as the simulator wants it: ct_core, its inputs taken on a rising edge of sample_i. For simulation only.
//
// What depends on an input of the top module is computed by Verilator at every call, twice a cycle, changed or not: in ct_core a
// fifth of all work. What depends on a flip-flop is computed when its clock rises. So the caller raises sample_i in the low half of
// a cycle in which an input is not what it was, and lowers it with the rising edge of clk_i. Cycles and bits are those of ct_core.
//
// Parameters  those of ct_core that the simulated cores differ in
// Ports       those of ct_core, and sample_i

`default_nettype none

module ct_core_sampled #(
  parameter int unsigned Cols     = 16,
  parameter int unsigned VpuLanes = 16,
  parameter int unsigned SpmWords = 65536,
  parameter int unsigned Contexts = 2,
  parameter int unsigned Compress = 1
) (
  input  logic         clk_i,
  input  logic         sample_i,
  input  logic         rst_ni,
  input  logic         s_axil_awvalid_i,
  output logic         s_axil_awready_o,
  input  logic [11:0]  s_axil_awaddr_i,
  input  logic         s_axil_wvalid_i,
  output logic         s_axil_wready_o,
  input  logic [31:0]  s_axil_wdata_i,
  input  logic [3:0]   s_axil_wstrb_i,
  output logic         s_axil_bvalid_o,
  input  logic         s_axil_bready_i,
  output logic [1:0]   s_axil_bresp_o,
  input  logic         s_axil_arvalid_i,
  output logic         s_axil_arready_o,
  input  logic [11:0]  s_axil_araddr_i,
  output logic         s_axil_rvalid_o,
  input  logic         s_axil_rready_i,
  output logic [31:0]  s_axil_rdata_o,
  output logic [1:0]   s_axil_rresp_o,
  output logic         m_axi_awvalid_o,
  input  logic         m_axi_awready_i,
  output logic         m_axi_awid_o,
  output logic [35:0]  m_axi_awaddr_o,
  output logic [7:0]   m_axi_awlen_o,
  output logic [2:0]   m_axi_awsize_o,
  output logic [1:0]   m_axi_awburst_o,
  output logic         m_axi_wvalid_o,
  input  logic         m_axi_wready_i,
  output logic [127:0] m_axi_wdata_o,
  output logic [15:0]  m_axi_wstrb_o,
  output logic         m_axi_wlast_o,
  input  logic         m_axi_bvalid_i,
  output logic         m_axi_bready_o,
  input  logic         m_axi_bid_i,
  input  logic [1:0]   m_axi_bresp_i,
  output logic         m_axi_arvalid_o,
  input  logic         m_axi_arready_i,
  output logic         m_axi_arid_o,
  output logic [35:0]  m_axi_araddr_o,
  output logic [7:0]   m_axi_arlen_o,
  output logic [2:0]   m_axi_arsize_o,
  output logic [1:0]   m_axi_arburst_o,
  input  logic         m_axi_rvalid_i,
  output logic         m_axi_rready_o,
  input  logic         m_axi_rid_i,
  input  logic [127:0] m_axi_rdata_i,
  input  logic [1:0]   m_axi_rresp_i,
  input  logic         m_axi_rlast_i,
  output logic         irq_o,
  output logic [59:0]  probe_o
);

  logic         rst_n;
  logic         s_axil_awvalid_q;
  logic [11:0]  s_axil_awaddr_q;
  logic         s_axil_wvalid_q;
  logic [31:0]  s_axil_wdata_q;
  logic [3:0]   s_axil_wstrb_q;
  logic         s_axil_bready_q;
  logic         s_axil_arvalid_q;
  logic [11:0]  s_axil_araddr_q;
  logic         s_axil_rready_q;
  logic         m_axi_awready_q;
  logic         m_axi_wready_q;
  logic         m_axi_bvalid_q;
  logic         m_axi_bid_q;
  logic [1:0]   m_axi_bresp_q;
  logic         m_axi_arready_q;
  logic         m_axi_rvalid_q;
  logic         m_axi_rid_q;
  logic [127:0] m_axi_rdata_q;
  logic [1:0]   m_axi_rresp_q;
  logic         m_axi_rlast_q;

  always_ff @(posedge sample_i) begin
    rst_n             <= rst_ni;
    s_axil_awvalid_q  <= s_axil_awvalid_i;
    s_axil_awaddr_q   <= s_axil_awaddr_i;
    s_axil_wvalid_q   <= s_axil_wvalid_i;
    s_axil_wdata_q    <= s_axil_wdata_i;
    s_axil_wstrb_q    <= s_axil_wstrb_i;
    s_axil_bready_q   <= s_axil_bready_i;
    s_axil_arvalid_q  <= s_axil_arvalid_i;
    s_axil_araddr_q   <= s_axil_araddr_i;
    s_axil_rready_q   <= s_axil_rready_i;
    m_axi_awready_q   <= m_axi_awready_i;
    m_axi_wready_q    <= m_axi_wready_i;
    m_axi_bvalid_q    <= m_axi_bvalid_i;
    m_axi_bid_q       <= m_axi_bid_i;
    m_axi_bresp_q     <= m_axi_bresp_i;
    m_axi_arready_q   <= m_axi_arready_i;
    m_axi_rvalid_q    <= m_axi_rvalid_i;
    m_axi_rid_q       <= m_axi_rid_i;
    m_axi_rdata_q     <= m_axi_rdata_i;
    m_axi_rresp_q     <= m_axi_rresp_i;
    m_axi_rlast_q     <= m_axi_rlast_i;
  end

  ct_core #(
    .Cols     (Cols),
    .VpuLanes (VpuLanes),
    .SpmWords (SpmWords),
    .Contexts (Contexts),
    .Compress (Compress)
  ) u_core (
    .*,
    .rst_ni            (rst_n),
    .s_axil_awvalid_i  (s_axil_awvalid_q),
    .s_axil_awaddr_i   (s_axil_awaddr_q),
    .s_axil_wvalid_i   (s_axil_wvalid_q),
    .s_axil_wdata_i    (s_axil_wdata_q),
    .s_axil_wstrb_i    (s_axil_wstrb_q),
    .s_axil_bready_i   (s_axil_bready_q),
    .s_axil_arvalid_i  (s_axil_arvalid_q),
    .s_axil_araddr_i   (s_axil_araddr_q),
    .s_axil_rready_i   (s_axil_rready_q),
    .m_axi_awready_i   (m_axi_awready_q),
    .m_axi_wready_i    (m_axi_wready_q),
    .m_axi_bvalid_i    (m_axi_bvalid_q),
    .m_axi_bid_i       (m_axi_bid_q),
    .m_axi_bresp_i     (m_axi_bresp_q),
    .m_axi_arready_i   (m_axi_arready_q),
    .m_axi_rvalid_i    (m_axi_rvalid_q),
    .m_axi_rid_i       (m_axi_rid_q),
    .m_axi_rdata_i     (m_axi_rdata_q),
    .m_axi_rresp_i     (m_axi_rresp_q),
    .m_axi_rlast_i     (m_axi_rlast_q)
  );

endmodule

`default_nettype wire
