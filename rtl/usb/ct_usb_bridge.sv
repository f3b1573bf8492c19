// SPDX-License-Identifier: Apache-2.0
//
// The board's end of the protocol of docs/usb.md, version 1: frames in, register accesses on AXI4-Lite and memory bursts on AXI4, frames out.
//
//   rx bytes --> ct_usb_rx (whole and checked) --> ct_usb_exec --> ct_usb_reg --> AXI4-Lite
//                                                               |   \--> ct_usb_mem --> AXI4
//   tx bytes <-- ct_usb_tx (the last answer and the next) <-----+
//
// Safety      what reaches a bus has come in a frame of which every byte is here and both CRCs are right. All else is counted, answered
//             (DAMAGED) where the protocol says so, and skipped.
// Rate        a byte a cycle in each direction. While a frame is taken or sent the one before it is done: for each 128 bytes of memory as
//             long as the longer of the bus (latency and burst) and the move of 64 words.
// Bound       2^TimeoutLog2 cycles for each access to a bus; see ct_usb_exec.
// Memory bus  one burst at a time, at most 8 beats, its data at hand when it begins: a guest that comes behind the core's requests costs them
//             at most one such burst.
// Reset       in the middle of a burst only together with what is on the other side of the buses.
// Ports       outputs come from registers, but for readys of single handshakes, which depend on registers only.
//
// Parameters
//   TimeoutLog2   4 to 31

`default_nettype none
`include "ct_assert.svh"

module ct_usb_bridge #(
  parameter int unsigned TimeoutLog2 = 20
) (
  input  logic        clk_i,
  input  logic        rst_ni,

  input  logic        rx_valid_i,
  output logic        rx_ready_o,
  input  logic [7:0]  rx_data_i,
  output logic        tx_valid_o,
  input  logic        tx_ready_i,
  output logic [7:0]  tx_data_o,
  output logic        tx_flush_o,       // with the last byte of a frame: send what is there

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
  input  logic [1:0]  m_axil_rresp_i,

  output logic                       m_axi_awvalid_o,
  input  logic                       m_axi_awready_i,
  output logic [ct_pkg::AxiIdW-1:0]  m_axi_awid_o,
  output logic [35:0]                m_axi_awaddr_o,
  output logic [7:0]                 m_axi_awlen_o,
  output logic [2:0]                 m_axi_awsize_o,
  output logic [1:0]                 m_axi_awburst_o,
  output logic                       m_axi_wvalid_o,
  input  logic                       m_axi_wready_i,
  output logic [127:0]               m_axi_wdata_o,
  output logic [15:0]                m_axi_wstrb_o,
  output logic                       m_axi_wlast_o,
  input  logic                       m_axi_bvalid_i,
  output logic                       m_axi_bready_o,
  input  logic [ct_pkg::AxiIdW-1:0]  m_axi_bid_i,
  input  logic [1:0]                 m_axi_bresp_i,
  output logic                       m_axi_arvalid_o,
  input  logic                       m_axi_arready_i,
  output logic [ct_pkg::AxiIdW-1:0]  m_axi_arid_o,
  output logic [35:0]                m_axi_araddr_o,
  output logic [7:0]                 m_axi_arlen_o,
  output logic [2:0]                 m_axi_arsize_o,
  output logic [1:0]                 m_axi_arburst_o,
  input  logic                       m_axi_rvalid_i,
  output logic                       m_axi_rready_o,
  input  logic [ct_pkg::AxiIdW-1:0]  m_axi_rid_i,
  input  logic [127:0]               m_axi_rdata_i,
  input  logic [1:0]                 m_axi_rresp_i,
  input  logic                       m_axi_rlast_i,

  input  logic        irq_i,

  output logic [7:0]  bad_heads_o,      // see ct_usb_rx
  output logic [7:0]  bad_frames_o
);

  logic        frame_valid, frame_ready, frame_hello, frame_damaged;
  logic [15:0] frame_tag, frame_word;
  logic [11:0] frame_size;
  logic [9:0]  frame_addr;

  ct_usb_rx u_rx (
    .clk_i, .rst_ni, .rx_valid_i, .rx_ready_o, .rx_data_i,
    .frame_valid_o(frame_valid), .frame_ready_i(frame_ready), .frame_hello_o(frame_hello), .frame_damaged_o(frame_damaged),
    .frame_tag_o(frame_tag), .frame_size_o(frame_size), .word_addr_i(frame_addr), .word_o(frame_word),
    .bad_heads_o, .bad_frames_o
  );

  logic        answer_valid, answer_ready, answer_buf;
  logic [2:0]  answer_code;
  logic [15:0] answer_tag, answer_word;
  logic [11:0] answer_size;
  logic [1:0]  answer_we;
  logic [10:0] answer_addr;

  logic        burst_start, burst_write, burst_busy, burst_done, burst_error, fill;
  logic [27:0] burst_block;
  logic [7:0]  burst_first, burst_last;
  logic [6:0]  fill_at, beat_at;
  logic [15:0] fill_word, beat_word;

  logic        reg_start, reg_write, reg_busy, reg_done, reg_error;
  logic [11:0] reg_addr;
  logic [31:0] reg_wdata, reg_rdata;

  ct_usb_exec #(.TimeoutLog2(TimeoutLog2)) u_exec (
    .clk_i, .rst_ni,
    .frame_valid_i(frame_valid), .frame_ready_o(frame_ready), .frame_hello_i(frame_hello), .frame_damaged_i(frame_damaged),
    .frame_tag_i(frame_tag), .frame_size_i(frame_size), .frame_addr_o(frame_addr), .frame_word_i(frame_word),
    .answer_valid_o(answer_valid), .answer_ready_i(answer_ready), .answer_code_o(answer_code), .answer_tag_o(answer_tag),
    .answer_size_o(answer_size), .answer_buf_o(answer_buf), .answer_we_o(answer_we), .answer_addr_o(answer_addr),
    .answer_word_o(answer_word),
    .burst_start_o(burst_start), .burst_write_o(burst_write), .burst_block_o(burst_block), .burst_first_o(burst_first),
    .burst_last_o(burst_last), .burst_busy_i(burst_busy), .burst_done_i(burst_done), .burst_error_i(burst_error),
    .fill_o(fill), .fill_at_o(fill_at), .fill_word_o(fill_word), .beat_at_o(beat_at), .beat_word_i(beat_word),
    .reg_start_o(reg_start), .reg_write_o(reg_write), .reg_addr_o(reg_addr), .reg_data_o(reg_wdata),
    .reg_busy_i(reg_busy), .reg_done_i(reg_done), .reg_error_i(reg_error), .reg_data_i(reg_rdata)
  );

  ct_usb_reg u_reg (
    .clk_i, .rst_ni,
    .start_i(reg_start), .write_i(reg_write), .addr_i(reg_addr), .data_i(reg_wdata),
    .busy_o(reg_busy), .done_o(reg_done), .error_o(reg_error), .data_o(reg_rdata),
    .m_axil_awvalid_o, .m_axil_awready_i, .m_axil_awaddr_o, .m_axil_wvalid_o, .m_axil_wready_i, .m_axil_wdata_o, .m_axil_wstrb_o,
    .m_axil_bvalid_i, .m_axil_bready_o, .m_axil_bresp_i, .m_axil_arvalid_o, .m_axil_arready_i, .m_axil_araddr_o, .m_axil_rvalid_i,
    .m_axil_rready_o, .m_axil_rdata_i, .m_axil_rresp_i
  );

  ct_usb_mem u_mem (
    .clk_i, .rst_ni,
    .start_i(burst_start), .write_i(burst_write), .block_i(burst_block), .first_i(burst_first), .last_i(burst_last),
    .busy_o(burst_busy), .done_o(burst_done), .error_o(burst_error),
    .fill_i(fill), .fill_at_i(fill_at), .fill_word_i(fill_word), .word_at_i(beat_at), .word_o(beat_word),
    .m_axi_awvalid_o, .m_axi_awready_i, .m_axi_awid_o, .m_axi_awaddr_o, .m_axi_awlen_o, .m_axi_awsize_o, .m_axi_awburst_o,
    .m_axi_wvalid_o, .m_axi_wready_i, .m_axi_wdata_o, .m_axi_wstrb_o, .m_axi_wlast_o,
    .m_axi_bvalid_i, .m_axi_bready_o, .m_axi_bid_i, .m_axi_bresp_i,
    .m_axi_arvalid_o, .m_axi_arready_i, .m_axi_arid_o, .m_axi_araddr_o, .m_axi_arlen_o, .m_axi_arsize_o, .m_axi_arburst_o,
    .m_axi_rvalid_i, .m_axi_rready_o, .m_axi_rid_i, .m_axi_rdata_i, .m_axi_rresp_i, .m_axi_rlast_i
  );

  ct_usb_tx u_tx (
    .clk_i, .rst_ni, .irq_i,
    .start_valid_i(answer_valid), .start_ready_o(answer_ready), .start_code_i(answer_code), .start_tag_i(answer_tag),
    .start_size_i(answer_size), .start_buf_i(answer_buf),
    .we_i(answer_we), .waddr_i(answer_addr), .wdata_i(answer_word),
    .tx_valid_o, .tx_ready_i, .tx_data_o, .tx_flush_o
  );

endmodule

`default_nettype wire
