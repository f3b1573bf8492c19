// SPDX-License-Identifier: Apache-2.0
//
// The MXU alone in an FPGA, to see whether it routes and how fast (scripts/pnr-mxu). All its inputs come from one shift register and
// all its outputs go into another, so that four pins are enough. A result here is the MXU's own: every path that counts begins and
// ends in it or in the registers around it. Not a design one could use.

`default_nettype none

module ct_mxu_pnr #(
  parameter int unsigned Cols     = 8,
  parameter int unsigned VpuLanes = 4,
  parameter int unsigned PackDsp  = 0
) (
  input  logic clk_i,
  input  logic rst_ni,
  input  logic bit_i,
  output logic bit_o
);

  localparam int unsigned InW  = 2 + 512 + 32 + 2 + ct_pkg::QosW + 1 + 40 + 40 + 3 + 3 + 384 + 24 + 3 + 1 + 1 + 4 + 4 + 2;
  localparam int unsigned OutW = 2 + 32 + 32 + 2 + 2 + 16 + 64 + 3 + 60 + 32*VpuLanes + 12;

  logic [InW-1:0]  in_q;
  logic [OutW-1:0] out, out_q, shift_q;
  logic [9:0]      count_q;

  logic [1:0]   cmd_valid, flush;
  logic [ct_pkg::QosW-1:0] qos;
  logic [511:0] cmd;
  logic [31:0]  sem_nz;
  logic         freeze, acc_rd_valid, acc_rd_ctx;
  logic [39:0]  spm_base, spm_size;
  logic [2:0]   spm_rd_ready, spm_rd_vld, spm_rd_perr;
  logic [383:0] spm_rd_data;
  logic [23:0]  spm_rd_exp;
  logic [3:0]   acc_rd_tile, acc_rd_row;
  logic [1:0]   acc_rd_beat;

  assign {cmd_valid, cmd, sem_nz, flush, qos, freeze, spm_base, spm_size, spm_rd_ready, spm_rd_vld, spm_rd_data, spm_rd_exp,
          spm_rd_perr, acc_rd_valid, acc_rd_ctx, acc_rd_tile, acc_rd_row, acc_rd_beat} = in_q;

  logic [1:0]             cmd_ready, idle, err, ev_rows, ev_busy, ev_wait_arb, ev_wait_b, ev_wait_a, ev_wait_sem;
  logic [31:0]            sem_dec, sem_inc;
  logic [15:0]            err_code;
  logic [63:0]            err_addr;
  logic [2:0]             spm_rd_valid;
  logic [59:0]            spm_rd_addr;
  logic [32*VpuLanes-1:0] acc_rd_data;

  ct_mxu #(.Cols(Cols), .VpuLanes(VpuLanes), .PackDsp(PackDsp)) u_mxu (
    .clk_i, .rst_ni,
    .cmd_valid_i(cmd_valid), .cmd_i(cmd), .cmd_ready_o(cmd_ready), .sem_nz_i(sem_nz), .sem_dec_o(sem_dec), .sem_inc_o(sem_inc),
    .flush_i(flush), .idle_o(idle), .err_o(err), .err_code_o(err_code), .err_addr_o(err_addr),
    .qos_i(qos), .freeze_i(freeze), .spm_base_i(spm_base), .spm_size_i(spm_size),
    .spm_rd_valid_o(spm_rd_valid), .spm_rd_addr_o(spm_rd_addr), .spm_rd_ready_i(spm_rd_ready), .spm_rd_vld_i(spm_rd_vld),
    .spm_rd_data_i(spm_rd_data), .spm_rd_exp_i(spm_rd_exp), .spm_rd_perr_i(spm_rd_perr),
    .acc_rd_valid_i(acc_rd_valid), .acc_rd_ctx_i(acc_rd_ctx), .acc_rd_tile_i(acc_rd_tile), .acc_rd_row_i(acc_rd_row),
    .acc_rd_beat_i(acc_rd_beat), .acc_rd_data_o(acc_rd_data),
    .ev_rows_o(ev_rows), .ev_busy_o(ev_busy), .ev_wait_arb_o(ev_wait_arb), .ev_wait_b_o(ev_wait_b), .ev_wait_a_o(ev_wait_a),
    .ev_wait_sem_o(ev_wait_sem), .probe_o()
  );

  assign out = {cmd_ready, sem_dec, sem_inc, idle, err, err_code, err_addr, spm_rd_valid, spm_rd_addr, acc_rd_data, ev_rows, ev_busy, ev_wait_arb,
                ev_wait_b, ev_wait_a, ev_wait_sem};

  // The outputs are caught in every cycle and shifted out now and then.
  always_ff @(posedge clk_i) begin
    in_q    <= {in_q[InW-2:0], bit_i};
    out_q   <= out;
    shift_q <= (count_q == '0) ? out_q : {1'b0, shift_q[OutW-1:1]};
    bit_o   <= shift_q[0];
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) count_q <= '0;
    else         count_q <= count_q + 10'd1;
  end

endmodule

`default_nettype wire
