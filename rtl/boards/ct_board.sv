// SPDX-License-Identifier: Apache-2.0
//
// A whole board but for the cells of one vendor: the core, its memory, and two lines to a host.
//
//     FT245 pins ─> ct_ft245 ─> ct_async_fifo ─┐                                  ┌─> registers of ct_core ─┐
//                                              ├─> ct_link ─> ct_usb_bridge ──────┤                         ├─> ct_axi_mux ─> ct_sdram ─> pins
//     serial line ────────────> ct_uart ───────┘                                  └─────────────────────────┘
//
// Clocks      clk_i for all but ct_ft245, which runs on the chip's ft_clk_i. Two ct_async_fifo are the only ways between them. Without an add-on ft_clk_i
//             stands still, and nothing waits for it.
// Reset       arst_ni may fall and rise at any time; each clock has its own ct_reset, and ft_clk_i's follows the core's.
// Lines       what comes on the FIFO or on the serial line goes to the same bridge, which answers there (ct_link).
// Memory      2^(RowBits + ColBits + 3) bytes; the chip's clock is half a cycle before clk_i, see ct_sdram.
// Lamps       led_o, from bit 0: 0 heartbeat (clock and reset are right), 1 inference moves data, 2 training moves data, 3 bytes on the line to the
//             host, 4 the serial line is the one in use, 5 the interrupt is up, 6 a damaged frame came, 7 the memory answered with an error
//             (stays until a reset). 1, 2, 3 and 6 for 1/16 to 1/8 s.
//
// Parameters
//   ClockHz     of clk_i: the core's, the memory's and the serial line's times
//   Core        0: no core. Registers are then answered with an error; lines and memory are as they are.
//   Cols .. PackDsp, Batcher, Conv   ct_core
//   CasLatency, RowBits, ColBits   the SDRAM chip (2 up to 100 MHz)
//   PowerUpUs   its wait after power-up
//   Baud        of the serial line
//   Quiet       cycles after which the other line may be chosen (ct_link)

`default_nettype none
`include "ct_assert.svh"

module ct_board #(
  parameter int unsigned ClockHz    = 40000000,
  parameter int unsigned Core       = 1,
  parameter int unsigned Cols       = 8,
  parameter int unsigned VpuLanes   = 4,
  parameter int unsigned SpmWords   = 8192,
  parameter int unsigned QueueDepth = 16,
  parameter int unsigned PackDsp    = 0,
  parameter int unsigned Batcher    = 1,
  parameter int unsigned Conv       = 1,
  parameter int unsigned CasLatency = 2,
  parameter int unsigned RowBits    = 13,
  parameter int unsigned ColBits    = 9,
  parameter int unsigned PowerUpUs  = 200,
  parameter int unsigned Baud       = 3000000,
  parameter int unsigned Quiet      = 16384
) (
  input  logic               clk_i,
  input  logic               arst_ni,

  // Pins of the add-on's FIFO, all with ft_clk_i; ft_drive_o: we drive the data.
  input  logic               ft_clk_i,
  input  logic               ft_rxf_n_i,
  input  logic               ft_txe_n_i,
  output logic               ft_oe_n_o,
  output logic               ft_rd_n_o,
  output logic               ft_wr_n_o,
  output logic               ft_siwu_n_o,
  input  logic [7:0]         ft_data_i,
  output logic [7:0]         ft_data_o,
  output logic               ft_drive_o,

  input  logic               uart_rx_i,
  output logic               uart_tx_o,

  output logic               sdram_cke_o,
  output logic               sdram_cs_no,
  output logic               sdram_ras_no,
  output logic               sdram_cas_no,
  output logic               sdram_we_no,
  output logic [1:0]         sdram_ba_o,
  output logic [RowBits-1:0] sdram_a_o,
  output logic [1:0]         sdram_dqm_o,
  output logic [15:0]        sdram_dq_o,
  output logic               sdram_dq_oe_o,
  input  logic [15:0]        sdram_dq_i,

  output logic [7:0]         led_o
);

  localparam int unsigned DramMib = 2 ** (RowBits + ColBits + 3 - 20);

  logic rst_n, ft_rst_n;
  ct_reset u_reset    (.clk_i,              .arst_ni, .rst_no(rst_n));
  // (After the core's: so no way from a pin to ft_clk is longer than ft_txe_n's, which make fpga looks at.)
  ct_reset u_ft_reset (.clk_i(ft_clk_i),    .arst_ni(rst_n), .rst_no(ft_rst_n));

  // ---- Lines to the host ------------------------------------------------------------------------------------------------------------

  logic       fin_valid, fin_ready, fout_valid, fout_ready, fout_flush;  // at the pins' clock
  logic [7:0] fin_data, fout_data;

  ct_ft245 #(.Width(8)) u_ft (
    .clk_i(ft_clk_i), .rst_ni(ft_rst_n),
    .rxf_n_i(ft_rxf_n_i), .txe_n_i(ft_txe_n_i), .oe_n_o(ft_oe_n_o), .rd_n_o(ft_rd_n_o), .wr_n_o(ft_wr_n_o), .siwu_n_o(ft_siwu_n_o),
    .data_i(ft_data_i), .data_o(ft_data_o), .be_i(1'b1), .be_o(), .drive_o(ft_drive_o),
    .rx_valid_o(fin_valid), .rx_ready_i(fin_ready), .rx_data_o(fin_data), .rx_keep_o(),
    .tx_valid_i(fout_valid), .tx_ready_o(fout_ready), .tx_data_i(fout_data), .tx_keep_i(1'b1), .tx_flush_i(fout_flush)
  );

  logic [1:0]  rx_valid, rx_ready, tx_valid, tx_ready;
  logic [15:0] rx_data;
  logic [7:0]  tx_data;
  logic        tx_flush;

  ct_async_fifo #(.Width(8), .Depth(16)) u_fin (
    .wclk_i(ft_clk_i), .wrst_ni(ft_rst_n), .wvalid_i(fin_valid), .wready_o(fin_ready), .wdata_i(fin_data),
    .rclk_i(clk_i), .rrst_ni(rst_n), .rvalid_o(rx_valid[0]), .rready_i(rx_ready[0]), .rdata_o(rx_data[7:0])
  );
  ct_async_fifo #(.Width(9), .Depth(16)) u_fout (
    .wclk_i(clk_i), .wrst_ni(rst_n), .wvalid_i(tx_valid[0]), .wready_o(tx_ready[0]), .wdata_i({tx_flush, tx_data}),
    .rclk_i(ft_clk_i), .rrst_ni(ft_rst_n), .rvalid_o(fout_valid), .rready_i(fout_ready), .rdata_o({fout_flush, fout_data})
  );
  ct_uart #(.ClockHz(ClockHz), .Baud(Baud)) u_uart (
    .clk_i, .rst_ni(rst_n), .rx_i(uart_rx_i), .tx_o(uart_tx_o),
    .rx_valid_o(rx_valid[1]), .rx_ready_i(rx_ready[1]), .rx_data_o(rx_data[15:8]),
    .tx_valid_i(tx_valid[1]), .tx_ready_o(tx_ready[1]), .tx_data_i(tx_data)
  );

  logic       in_valid, in_ready, out_valid, out_ready, out_flush, line, moved;
  logic [7:0] in_data, out_data;
  ct_link #(.Quiet(Quiet)) u_link (
    .clk_i, .rst_ni(rst_n),
    .rx_valid_i(rx_valid), .rx_ready_o(rx_ready), .rx_data_i(rx_data),
    .tx_valid_o(tx_valid), .tx_ready_i(tx_ready), .tx_data_o(tx_data), .tx_flush_o(tx_flush),
    .rx_valid_o(in_valid), .rx_ready_i(in_ready), .rx_data_o(in_data),
    .tx_valid_i(out_valid), .tx_ready_o(out_ready), .tx_data_i(out_data), .tx_flush_i(out_flush),
    .sel_o(line), .moved_o(moved)
  );

  // ---- Bridge, core, memory ---------------------------------------------------------------------------------------------------------

  logic         lawvalid, lawready, lwvalid, lwready, lbvalid, lbready, larvalid, larready, lrvalid, lrready;
  logic [11:0]  lawaddr, laraddr;
  logic [31:0]  lwdata, lrdata;
  logic [3:0]   lwstrb;
  logic [1:0]   lbresp, lrresp;

  // The two masters, the bridge above the core.
  logic [1:0]   awvalid, awready, awid, wvalid, wready, wlast, bvalid, bready, arvalid, arready, arid, rvalid, rready;
  logic [71:0]  awaddr, araddr;
  logic [15:0]  awlen, arlen;
  logic [255:0] wdata;
  logic [31:0]  wstrb;
  logic         bid, rid, rlast;
  logic [1:0]   bresp, rresp;
  logic [127:0] rdata;
  logic         irq;
  logic [59:0]  probe;
  logic [7:0]   bad_heads, bad_frames;

  ct_usb_bridge u_bridge (
    .clk_i, .rst_ni(rst_n),
    .rx_valid_i(in_valid), .rx_ready_o(in_ready), .rx_data_i(in_data),
    .tx_valid_o(out_valid), .tx_ready_i(out_ready), .tx_data_o(out_data), .tx_flush_o(out_flush),
    .m_axil_awvalid_o(lawvalid), .m_axil_awready_i(lawready), .m_axil_awaddr_o(lawaddr),
    .m_axil_wvalid_o(lwvalid), .m_axil_wready_i(lwready), .m_axil_wdata_o(lwdata), .m_axil_wstrb_o(lwstrb),
    .m_axil_bvalid_i(lbvalid), .m_axil_bready_o(lbready), .m_axil_bresp_i(lbresp),
    .m_axil_arvalid_o(larvalid), .m_axil_arready_i(larready), .m_axil_araddr_o(laraddr),
    .m_axil_rvalid_i(lrvalid), .m_axil_rready_o(lrready), .m_axil_rdata_i(lrdata), .m_axil_rresp_i(lrresp),
    .m_axi_awvalid_o(awvalid[1]), .m_axi_awready_i(awready[1]), .m_axi_awid_o(awid[1]), .m_axi_awaddr_o(awaddr[71:36]),
    .m_axi_awlen_o(awlen[15:8]), .m_axi_awsize_o(), .m_axi_awburst_o(),
    .m_axi_wvalid_o(wvalid[1]), .m_axi_wready_i(wready[1]), .m_axi_wdata_o(wdata[255:128]), .m_axi_wstrb_o(wstrb[31:16]),
    .m_axi_wlast_o(wlast[1]),
    .m_axi_bvalid_i(bvalid[1]), .m_axi_bready_o(bready[1]), .m_axi_bid_i(bid), .m_axi_bresp_i(bresp),
    .m_axi_arvalid_o(arvalid[1]), .m_axi_arready_i(arready[1]), .m_axi_arid_o(arid[1]), .m_axi_araddr_o(araddr[71:36]),
    .m_axi_arlen_o(arlen[15:8]), .m_axi_arsize_o(), .m_axi_arburst_o(),
    .m_axi_rvalid_i(rvalid[1]), .m_axi_rready_o(rready[1]), .m_axi_rid_i(rid), .m_axi_rdata_i(rdata), .m_axi_rresp_i(rresp),
    .m_axi_rlast_i(rlast),
    .irq_i(irq), .bad_heads_o(bad_heads), .bad_frames_o(bad_frames)
  );

  if (Core != 0) begin : g_core
    ct_core #(
      .Cols(Cols), .VpuLanes(VpuLanes), .SpmWords(SpmWords), .ClockHz(ClockHz), .DramMib(DramMib), .QueueDepth(QueueDepth),
      .PackDsp(PackDsp), .Batcher(Batcher), .Conv(Conv)
    ) u_core (
      .clk_i, .rst_ni(rst_n),
      .s_axil_awvalid_i(lawvalid), .s_axil_awready_o(lawready), .s_axil_awaddr_i(lawaddr),
      .s_axil_wvalid_i(lwvalid), .s_axil_wready_o(lwready), .s_axil_wdata_i(lwdata), .s_axil_wstrb_i(lwstrb),
      .s_axil_bvalid_o(lbvalid), .s_axil_bready_i(lbready), .s_axil_bresp_o(lbresp),
      .s_axil_arvalid_i(larvalid), .s_axil_arready_o(larready), .s_axil_araddr_i(laraddr),
      .s_axil_rvalid_o(lrvalid), .s_axil_rready_i(lrready), .s_axil_rdata_o(lrdata), .s_axil_rresp_o(lrresp),
      .m_axi_awvalid_o(awvalid[0]), .m_axi_awready_i(awready[0]), .m_axi_awid_o(awid[0]), .m_axi_awaddr_o(awaddr[35:0]),
      .m_axi_awlen_o(awlen[7:0]), .m_axi_awsize_o(), .m_axi_awburst_o(),
      .m_axi_wvalid_o(wvalid[0]), .m_axi_wready_i(wready[0]), .m_axi_wdata_o(wdata[127:0]), .m_axi_wstrb_o(wstrb[15:0]),
      .m_axi_wlast_o(wlast[0]),
      .m_axi_bvalid_i(bvalid[0]), .m_axi_bready_o(bready[0]), .m_axi_bid_i(bid), .m_axi_bresp_i(bresp),
      .m_axi_arvalid_o(arvalid[0]), .m_axi_arready_i(arready[0]), .m_axi_arid_o(arid[0]), .m_axi_araddr_o(araddr[35:0]),
      .m_axi_arlen_o(arlen[7:0]), .m_axi_arsize_o(), .m_axi_arburst_o(),
      .m_axi_rvalid_i(rvalid[0]), .m_axi_rready_o(rready[0]), .m_axi_rid_i(rid), .m_axi_rdata_i(rdata), .m_axi_rresp_i(rresp),
      .m_axi_rlast_i(rlast),
      .irq_o(irq), .probe_o(probe)
    );
  end else begin : g_no_core
    // Every register is answered with an error.
    logic b_q, r_q;
    assign lawready = !b_q && lwvalid;
    assign lwready  = !b_q && lawvalid;
    assign lbvalid  = b_q;
    assign lbresp   = 2'b10;
    assign larready = !r_q;
    assign lrvalid  = r_q;
    assign lrresp   = 2'b10;
    assign lrdata   = '0;
    always_ff @(posedge clk_i or negedge rst_n) begin
      if (!rst_n) begin
        b_q <= 1'b0;
        r_q <= 1'b0;
      end else begin
        b_q <= b_q ? !lbready : lawvalid && lwvalid;
        r_q <= r_q ? !lrready : larvalid;
      end
    end
    assign {awvalid[0], wvalid[0], arvalid[0], irq} = '0;
    assign {awid[0], awaddr[35:0], awlen[7:0], arid[0], araddr[35:0], arlen[7:0]} = '0;
    assign {wdata[127:0], wstrb[15:0], wlast[0]} = '0;
    assign {bready[0], rready[0]} = 2'b11;
    assign probe = '0;
  end

  logic         mawvalid, mawready, mwvalid, mwready, mwlast, mbvalid, mbready, marvalid, marready, mrvalid, mrready, mrlast;
  logic [1:0]   mawid, mbid, mbresp, marid, mrid, mrresp;
  logic [35:0]  mawaddr, maraddr;
  logic [7:0]   mawlen, marlen;
  logic [127:0] mwdata, mrdata;
  logic [15:0]  mwstrb;

  ct_axi_mux u_mux (
    .clk_i, .rst_ni(rst_n),
    .s_axi_awvalid_i(awvalid), .s_axi_awready_o(awready), .s_axi_awid_i(awid), .s_axi_awaddr_i(awaddr), .s_axi_awlen_i(awlen),
    .s_axi_wvalid_i(wvalid), .s_axi_wready_o(wready), .s_axi_wdata_i(wdata), .s_axi_wstrb_i(wstrb), .s_axi_wlast_i(wlast),
    .s_axi_bvalid_o(bvalid), .s_axi_bready_i(bready), .s_axi_bid_o(bid), .s_axi_bresp_o(bresp),
    .s_axi_arvalid_i(arvalid), .s_axi_arready_o(arready), .s_axi_arid_i(arid), .s_axi_araddr_i(araddr), .s_axi_arlen_i(arlen),
    .s_axi_rvalid_o(rvalid), .s_axi_rready_i(rready), .s_axi_rid_o(rid), .s_axi_rdata_o(rdata), .s_axi_rresp_o(rresp),
    .s_axi_rlast_o(rlast),
    .m_axi_awvalid_o(mawvalid), .m_axi_awready_i(mawready), .m_axi_awid_o(mawid), .m_axi_awaddr_o(mawaddr), .m_axi_awlen_o(mawlen),
    .m_axi_wvalid_o(mwvalid), .m_axi_wready_i(mwready), .m_axi_wdata_o(mwdata), .m_axi_wstrb_o(mwstrb), .m_axi_wlast_o(mwlast),
    .m_axi_bvalid_i(mbvalid), .m_axi_bready_o(mbready), .m_axi_bid_i(mbid), .m_axi_bresp_i(mbresp),
    .m_axi_arvalid_o(marvalid), .m_axi_arready_i(marready), .m_axi_arid_o(marid), .m_axi_araddr_o(maraddr), .m_axi_arlen_o(marlen),
    .m_axi_rvalid_i(mrvalid), .m_axi_rready_o(mrready), .m_axi_rid_i(mrid), .m_axi_rdata_i(mrdata), .m_axi_rresp_i(mrresp),
    .m_axi_rlast_i(mrlast)
  );

  ct_sdram #(
    .ClockHz(ClockHz), .RowBits(RowBits), .ColBits(ColBits), .CasLatency(CasLatency), .PowerUpUs(PowerUpUs),
    .RcdNs(21), .RpNs(21),  // the AS4C16M16SA-7's
    .MaxBeats(ct_pkg::BurstBeats), .IdW(2)
  ) u_sdram (
    .clk_i, .rst_ni(rst_n),
    .s_axi_awvalid_i(mawvalid), .s_axi_awready_o(mawready), .s_axi_awid_i(mawid), .s_axi_awaddr_i(mawaddr), .s_axi_awlen_i(mawlen),
    .s_axi_wvalid_i(mwvalid), .s_axi_wready_o(mwready), .s_axi_wdata_i(mwdata), .s_axi_wstrb_i(mwstrb), .s_axi_wlast_i(mwlast),
    .s_axi_bvalid_o(mbvalid), .s_axi_bready_i(mbready), .s_axi_bid_o(mbid), .s_axi_bresp_o(mbresp),
    .s_axi_arvalid_i(marvalid), .s_axi_arready_o(marready), .s_axi_arid_i(marid), .s_axi_araddr_i(maraddr), .s_axi_arlen_i(marlen),
    .s_axi_rvalid_o(mrvalid), .s_axi_rready_i(mrready), .s_axi_rid_o(mrid), .s_axi_rdata_o(mrdata), .s_axi_rresp_o(mrresp),
    .s_axi_rlast_o(mrlast),
    .sdram_cke_o, .sdram_cs_no, .sdram_ras_no, .sdram_cas_no, .sdram_we_no, .sdram_ba_o, .sdram_a_o, .sdram_dqm_o,
    .sdram_dq_o, .sdram_dq_oe_o, .sdram_dq_i
  );

  // ---- Lamps ------------------------------------------------------------------------------------------------------------------------

  logic [15:0] bad_q;
  logic [1:0] busy, busy_q;   // a unit moves something of inference, of training
  logic       bad, bad_mem_q, beat;
  logic [3:0] lamp;

  always_comb begin
    busy = '0;
    for (int u = 0; u < 6; u++) busy = busy | probe[10*u + 4 +: 2];
  end
  assign bad = bad_q != {bad_heads, bad_frames};

  always_ff @(posedge clk_i or negedge rst_n) begin
    if (!rst_n) begin
      bad_q     <= '0;
      busy_q    <= '0;
      bad_mem_q <= 1'b0;
    end else begin
      bad_q     <= {bad_heads, bad_frames};
      busy_q    <= busy;
      bad_mem_q <= bad_mem_q || (mbvalid && mbready && mbresp != '0) || (mrvalid && mrready && mrresp != '0);
    end
  end

  ct_leds #(.ClockHz(ClockHz), .Lamps(4)) u_leds (
    .clk_i, .rst_ni(rst_n), .event_i({bad, moved, busy_q[1], busy_q[0]}), .lamp_o(lamp), .beat_o(beat)
  );
  assign led_o = {bad_mem_q, lamp[3], irq, line, lamp[2], lamp[1], lamp[0], beat};

  // The probe's other bits are for simulators.
  logic unused;
  assign unused = ^{probe, 1'b0};

endmodule

`default_nettype wire
