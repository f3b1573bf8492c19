// SPDX-License-Identifier: Apache-2.0
//
// One burst at a time on AXI4, of up to 8 beats of 16 bytes, out of and into one half of a buffer of 256 bytes.
//
// Write       every byte of the burst is in the buffer before start_i, so the burst takes the bus no longer than the memory wants.
// Read        rready_o is high as long as the burst lasts: it holds nobody up.
// Buffer      byte k of it belongs to the addresses that end in k. fill_i writes two bytes; while a write is under way into the other half
//             only, while a read is not at all. word_o is two bytes of it, two cycles after word_at_i; while a read is under way from the
//             other half only, while a write is not at all.
// End         done_o for a cycle, error_o with it. A memory that never answers leaves busy_o high; the bus stays as AXI wants it, and a late
//             answer is taken.

`default_nettype none
`include "ct_assert.svh"

module ct_usb_mem (
  input  logic         clk_i,
  input  logic         rst_ni,

  // A burst; not while busy_o is high. Bytes first_i to last_i, both in one half of the block of 256 bytes at block_i.
  input  logic         start_i,
  input  logic         write_i,
  input  logic [27:0]  block_i,
  input  logic [7:0]   first_i,
  input  logic [7:0]   last_i,
  output logic         busy_o,
  output logic         done_o,
  output logic         error_o,

  input  logic         fill_i,
  input  logic [6:0]   fill_at_i,
  input  logic [15:0]  fill_word_i,
  input  logic [6:0]   word_at_i,
  output logic [15:0]  word_o,

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
  input  logic                       m_axi_rlast_i
);

  typedef enum logic [1:0] {Idle, Write, Read} state_e;

  state_e       state_d, state_q;
  logic         aw_d, aw_q, ar_d, ar_q, w_d, w_q;  // on offer
  logic         more_d, more_q;                    // beats wait to be offered
  logic         error_d, error_q;
  logic         load, beat_taken;
  logic [31:0]  addr_q;
  logic [3:0]   len_q, index_d, index_q, stop_q, last_q;
  logic [3:0]   first_q;
  logic [127:0] beat_q;
  logic [15:0]  strb_q;
  logic         wlast_q;

  assign busy_o     = state_q != Idle;
  assign load       = state_q == Write && more_q && (!w_q || m_axi_wready_i);
  assign beat_taken = m_axi_rvalid_i && m_axi_rready_o;

  always_comb begin
    state_d = state_q;
    aw_d    = aw_q && !m_axi_awready_i;
    ar_d    = ar_q && !m_axi_arready_i;
    w_d     = w_q && !m_axi_wready_i;
    more_d  = more_q;
    index_d = index_q;
    error_d = error_q;
    done_o  = 1'b0;
    error_o = error_q;
    if (load) begin
      w_d     = 1'b1;
      more_d  = index_q != stop_q;
      index_d = index_q + 4'd1;
    end
    if (m_axi_bvalid_i && m_axi_bready_o) begin
      state_d = Idle;
      done_o  = 1'b1;
      error_o = m_axi_bresp_i != 2'd0;
    end
    if (beat_taken) begin
      index_d = index_q + 4'd1;
      error_d = error_q || m_axi_rresp_i != 2'd0;
      if (m_axi_rlast_i) begin
        state_d = Idle;
        done_o  = 1'b1;
        error_o = error_d;
      end
    end
    if (start_i) begin
      state_d = write_i ? Write : Read;
      aw_d    = write_i;
      ar_d    = !write_i;
      more_d  = write_i;
      index_d = first_i[7:4];
      error_d = 1'b0;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= Idle;
      aw_q    <= 1'b0;
      ar_q    <= 1'b0;
      w_q     <= 1'b0;
      more_q  <= 1'b0;
      error_q <= 1'b0;
    end else begin
      state_q <= state_d;
      aw_q    <= aw_d;
      ar_q    <= ar_d;
      w_q     <= w_d;
      more_q  <= more_d;
      error_q <= error_d;
    end
  end

  always_ff @(posedge clk_i) begin
    index_q <= index_d;
    if (start_i) begin
      addr_q  <= {block_i, first_i[7:4]};
      len_q   <= last_i[7:4] - first_i[7:4];
      stop_q  <= last_i[7:4];
      last_q  <= last_i[3:0];
      first_q <= first_i[3:0];
    end
    if (load) begin
      // The first beat begins at first_q, the last one ends with last_q.
      strb_q  <= (16'hffff << first_q) & ~((index_q == stop_q) ? 16'hfffe << last_q : 16'd0);
      wlast_q <= index_q == stop_q;
      first_q <= 4'd0;
    end
  end

  // The buffer: LUT RAM, eight lanes of two bytes.
  logic [3:0]  raddr, waddr;
  logic [2:0]  lane_q;
  assign raddr = (state_q == Write) ? index_q : word_at_i[6:3];
  assign waddr = (state_q == Read) ? index_q : fill_at_i[6:3];
  for (genvar i = 0; i < 8; i++) begin : g_lane
    logic [15:0] mem [0:15];
    logic        we;
    assign we = (state_q == Read) ? beat_taken : fill_i && fill_at_i[2:0] == 3'(i);
    always_ff @(posedge clk_i) begin
      if (we) mem[waddr] <= (state_q == Read) ? m_axi_rdata_i[16*i +: 16] : fill_word_i;
      if (load || state_q != Write) beat_q[16*i +: 16] <= mem[raddr];
    end
  end
  always_ff @(posedge clk_i) begin
    lane_q <= word_at_i[2:0];
    word_o <= beat_q[16*lane_q +: 16];
  end

  assign m_axi_awvalid_o = aw_q;
  assign m_axi_awid_o    = '0;
  assign m_axi_awaddr_o  = {addr_q, 4'd0};
  assign m_axi_awlen_o   = {4'd0, len_q};
  assign m_axi_awsize_o  = 3'd4;
  assign m_axi_awburst_o = 2'd1;
  assign m_axi_wvalid_o  = w_q;
  assign m_axi_wdata_o   = beat_q;
  assign m_axi_wstrb_o   = strb_q;
  assign m_axi_wlast_o   = wlast_q;
  assign m_axi_bready_o  = state_q == Write && !aw_q && !w_q && !more_q;
  assign m_axi_arvalid_o = ar_q;
  assign m_axi_arid_o    = '0;
  assign m_axi_araddr_o  = {addr_q, 4'd0};
  assign m_axi_arlen_o   = {4'd0, len_q};
  assign m_axi_arsize_o  = 3'd4;
  assign m_axi_arburst_o = 2'd1;
  assign m_axi_rready_o  = state_q == Read && !ar_q;

  // There is one burst, so answers need no ID.
  logic unused;
  assign unused = ^{m_axi_bid_i, m_axi_rid_i};

`ifdef FORMAL
  `include "ct_usb_mem_formal.svh"
`endif

  `CT_ASSUME(NotWhileBusy_M, !start_i || !busy_o)
  `CT_ASSUME(FillOther_M, !fill_i || !busy_o || (state_q == Write && fill_at_i[6] != stop_q[3]))
  `CT_ASSERT(IdleIsQuiet_A, state_q != Idle || (!aw_q && !ar_q && !w_q && !more_q))

endmodule

`default_nettype wire
