// SPDX-License-Identifier: Apache-2.0
//
// One access at a time to registers, on AXI4-Lite.
//
// Start       not while busy_o is high. Address and data stay while they are on offer, whatever comes at the ports meanwhile.
// End         done_o for a cycle, with it error_o and, of a read, data_o. A slave that never answers leaves busy_o high; a late answer is taken.

`default_nettype none
`include "ct_assert.svh"

module ct_usb_reg (
  input  logic        clk_i,
  input  logic        rst_ni,

  input  logic        start_i,
  input  logic        write_i,
  input  logic [11:0] addr_i,
  input  logic [31:0] data_i,
  output logic        busy_o,
  output logic        done_o,
  output logic        error_o,
  output logic [31:0] data_o,

  output logic        m_axil_awvalid_o,
  input  logic        m_axil_awready_i,
  output logic [11:0] m_axil_awaddr_o,
  output logic        m_axil_wvalid_o,
  input  logic        m_axil_wready_i,
  output logic [31:0] m_axil_wdata_o,
  output logic [3:0]  m_axil_wstrb_o,
  input  logic        m_axil_bvalid_i,
  output logic        m_axil_bready_o,
  input  logic [1:0]  m_axil_bresp_i,
  output logic        m_axil_arvalid_o,
  input  logic        m_axil_arready_i,
  output logic [11:0] m_axil_araddr_o,
  input  logic        m_axil_rvalid_i,
  output logic        m_axil_rready_o,
  input  logic [31:0] m_axil_rdata_i,
  input  logic [1:0]  m_axil_rresp_i
);

  logic        aw_q, w_q, ar_q, b_wait_q, r_wait_q;
  logic [11:0] addr_q;
  logic [31:0] data_q;
  assign busy_o  = b_wait_q || r_wait_q;
  assign done_o  = (m_axil_bvalid_i && m_axil_bready_o) || (m_axil_rvalid_i && m_axil_rready_o);
  assign error_o = (b_wait_q ? m_axil_bresp_i : m_axil_rresp_i) != 2'd0;
  assign data_o  = m_axil_rdata_i;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      aw_q     <= 1'b0;
      w_q      <= 1'b0;
      ar_q     <= 1'b0;
      b_wait_q <= 1'b0;
      r_wait_q <= 1'b0;
    end else begin
      aw_q     <= (start_i && write_i) || (aw_q && !m_axil_awready_i);
      w_q      <= (start_i && write_i) || (w_q && !m_axil_wready_i);
      ar_q     <= (start_i && !write_i) || (ar_q && !m_axil_arready_i);
      b_wait_q <= (start_i && write_i) || (b_wait_q && !(m_axil_bvalid_i && m_axil_bready_o));
      r_wait_q <= (start_i && !write_i) || (r_wait_q && !(m_axil_rvalid_i && m_axil_rready_o));
    end
  end

  always_ff @(posedge clk_i) begin
    if (start_i) begin
      addr_q <= addr_i;
      data_q <= data_i;
    end
  end

  assign m_axil_awvalid_o = aw_q;
  assign m_axil_awaddr_o  = addr_q;
  assign m_axil_wvalid_o  = w_q;
  assign m_axil_wdata_o   = data_q;
  assign m_axil_wstrb_o   = 4'hf;
  assign m_axil_bready_o  = b_wait_q && !aw_q && !w_q;
  assign m_axil_arvalid_o = ar_q;
  assign m_axil_araddr_o  = addr_q;
  assign m_axil_rready_o  = r_wait_q && !ar_q;

  `CT_ASSUME(NotWhileBusy_M, !start_i || !busy_o)

`ifdef FORMAL
  `include "ct_usb_reg_formal.svh"
`endif

endmodule

`default_nettype wire
