// SPDX-License-Identifier: Apache-2.0
//
// The simulator's core (ct_core_sampled) under observation: the core as it is, and beside it a monitor of the one scratchpad word that
// was flipped last (DBG_FLIP).
// Only for benches; it reads signals inside the core by their hierarchical names and drives none.
//
// watch_o  about the last flip, from its arming on:
//          bit 0     the inverted bit is in the memory now
//          bit 1     it has been in the memory
//          bit 2     a unit has written the word since
//          bits 7:3  read ports (ct_spm's numbers) that were given the word while the bit was inverted
// at_o     cycles from reset to the cycle in which the bit was inverted
//
// With CT_MUTANT, for models built of mutated sources (tb/system/mutants.sh): mutant_i chooses the mutation; 0 is none.

`default_nettype none

module ct_core_watch #(
  parameter int unsigned Cols     = 16,
  parameter int unsigned VpuLanes = 16,
  parameter int unsigned SpmWords = 65536
) (
  input  logic         clk_i,
  input  logic         sample_i,
  input  logic         rst_ni,

  // AXI4-Lite slave: registers.
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

  // AXI4 master: device memory.
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
  output logic [59:0]  probe_o,

`ifdef CT_MUTANT
  input  logic [7:0]   mutant_i,
`endif
  output logic [7:0]   watch_o,
  output logic [63:0]  at_o
);

  ct_core_sampled #(.Cols(Cols), .VpuLanes(VpuLanes), .SpmWords(SpmWords)) u_sampled (.*);

`ifdef CT_MUTANT
  always_comb ct_mutant::which = mutant_i;
`endif

  localparam int unsigned AddrW = ct_pkg::SpmAddrW;
  localparam int unsigned WordW = $clog2(SpmWords);  // of an address; the scratchpad ignores the rest

  logic [4:0]         rd;
  logic [1:0]         wr;
  logic [5*AddrW-1:0] rd_addr;
  logic [2*AddrW-1:0] wr_addr;
  assign rd      = u_sampled.u_core.u_units.u_spm.rd_valid_i & u_sampled.u_core.u_units.u_spm.rd_ready_o;
  assign wr      = u_sampled.u_core.u_units.u_spm.wr_valid_i & u_sampled.u_core.u_units.u_spm.wr_ready_o;
  assign rd_addr = u_sampled.u_core.u_units.u_spm.rd_addr_i;
  assign wr_addr = u_sampled.u_core.u_units.u_spm.wr_addr_i;

  logic [WordW-1:0] word_q;
  logic [4:0]       read_q;
  logic             live_q, done_q, written_q;
  logic [63:0]      cycle_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      {live_q, done_q, written_q} <= '0;
      read_q  <= '0;
      word_q  <= '0;
      cycle_q <= '0;
      at_o    <= '0;
    end else begin
      cycle_q <= cycle_q + 64'd1;
      if (u_sampled.u_core.u_units.u_spm.flip_arm_i) begin
        {live_q, done_q, written_q} <= '0;
        read_q <= '0;
        word_q <= u_sampled.u_core.u_units.u_spm.flip_addr_i[WordW-1:0];
      end else begin
        for (int p = 0; p < 5; p++) begin
          if (live_q && rd[p] && rd_addr[AddrW*p +: WordW] == word_q) read_q[p] <= 1'b1;
        end
        if (u_sampled.u_core.u_units.u_spm.dbg_wr_go && u_sampled.u_core.u_units.u_spm.flip_q) begin
          live_q <= 1'b1;
          done_q <= 1'b1;
          at_o   <= cycle_q;
        end
        for (int p = 0; p < 2; p++) begin
          if (wr[p] && wr_addr[AddrW*p +: WordW] == word_q) begin
            live_q    <= 1'b0;
            written_q <= 1'b1;
          end
        end
      end
    end
  end

  assign watch_o = {read_q, written_q, done_q, live_q};

endmodule

`default_nettype wire
