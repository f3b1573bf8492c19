// SPDX-License-Identifier: Apache-2.0
//
// Makes a block of sixteen mantissas and an exponent of the bits of compressed activations (docs/compression.md): with front_i 32 bits that are not its own, an
// exponent's distance from base_i of off_bits_i bits (0 to 8), then for each of its lanes a value of size_i bits and, with sign_i, a sign. With mask_i a
// value is one less than its size.
//
// Latency     a block taken in t is on offer in t + 4.
// Throughput  a block a cycle.
// Handshake   valid_o holds until ready_i, but flush_i takes everything away.
// Errors      err_o, high for a cycle, instead of a block whose exponent is above 255 or that has a mantissa of 128: the blocks in front of it have been taken by then. What
//             is behind it comes all the same.

`default_nettype none

module ct_act_unpack (
  input  logic         clk_i,
  input  logic         rst_ni,

  input  logic         flush_i,
  output logic         idle_o,
  output logic         err_o,

  input  logic         valid_i,
  output logic         ready_o,
  input  logic [167:0] bits_i,
  input  logic         front_i,
  input  logic [15:0]  lanes_i,
  input  logic         mask_i,
  input  logic [2:0]   size_i,
  input  logic         sign_i,
  input  logic [7:0]   base_i,
  input  logic [3:0]   off_bits_i,
  input  logic         last_i,

  output logic         valid_o,
  input  logic         ready_i,
  output logic [127:0] data_o,
  output logic [7:0]   exp_o,
  output logic         last_o
);

  // Values of `bits` bits become values of 8 bits.
  function automatic logic [127:0] loose(input logic [127:0] values, input logic [3:0] bits);
    loose = '0;
    for (int i = 0; i < 16; i++) begin
      unique case (bits)
        4'd1:    loose[8*i +: 1] = values[1*i +: 1];
        4'd2:    loose[8*i +: 2] = values[2*i +: 2];
        4'd3:    loose[8*i +: 3] = values[3*i +: 3];
        4'd4:    loose[8*i +: 4] = values[4*i +: 4];
        4'd5:    loose[8*i +: 5] = values[5*i +: 5];
        4'd6:    loose[8*i +: 6] = values[6*i +: 6];
        4'd7:    loose[8*i +: 7] = values[7*i +: 7];
        4'd8:    loose[8*i +: 8] = values[8*i +: 8];
        default: loose[8*i +: 8] = '0;
      endcase
    end
  endfunction

  // The mantissas, and in front of them whether one is 128. Lane i has the value of as many lanes as have one below it.
  function automatic logic [128:0] apart(input logic [127:0] values, input logic [15:0] lanes, input logic [2:0] bits, input logic mask, input logic sign);
    logic [3:0] rank;
    logic [7:0] value, size;
    begin
      rank  = '0;
      apart = '0;
      for (int i = 0; i < 16; i++) begin
        value = values[8*rank +: 8];
        size  = (value & ~(8'hFF << bits)) + 8'(mask);
        if (lanes[i]) begin
          apart[128]      = apart[128] || size[7];
          apart[8*i +: 8] = (sign && (value >> bits) != 8'd0) ? -size : size;
          rank            = rank + 4'd1;
        end
      end
    end
  endfunction

  logic [3:0] v_d, v_q;
  logic       move;
  assign move    = !v_q[3] || ready_i;
  assign ready_o = move;
  assign v_d     = move ? {v_q[2] && !err_o, v_q[1:0], valid_i} : v_q;

  // First: the bits. Second: the exponent, the values behind it. Third: values of 8 bits. Fourth: each in its lane, as a mantissa.
  logic [167:0] b_bits_q;
  logic         b_front_q, b_mask_q, b_sign_q, b_last_q, c_mask_q, c_sign_q, c_last_q, d_mask_q, d_sign_q, d_last_q;
  logic [2:0]   b_size_q, c_size_q, d_size_q;
  logic [7:0]   b_base_q;
  logic [3:0]   b_off_bits_q, c_bits;
  logic [135:0] b_rest;
  logic [7:0]   b_off;
  logic [15:0]  b_lanes_q, c_lanes_q, d_lanes_q;
  logic [8:0]   c_exp_q, d_exp_q;
  logic [127:0] c_values_q, d_values_q, mantissas;
  logic         d_large, o_last_q;
  logic [7:0]   o_exp_q;
  logic [127:0] o_data_q;

  assign b_rest    = b_front_q ? b_bits_q[167:32] : b_bits_q[135:0];
  assign b_off     = b_rest[7:0] & ~(8'hFF << b_off_bits_q);
  assign c_bits    = (c_mask_q || c_size_q != 3'd0) ? {1'b0, c_size_q} + 4'(c_sign_q) : 4'd0;

  // (Each stage works only where there is something: a simulator skips the rest.)
  always_comb begin
    {d_large, mantissas} = '0;
    if (v_q[2]) {d_large, mantissas} = apart(d_values_q, d_lanes_q, d_size_q, d_mask_q, d_sign_q);
  end
  assign err_o = v_q[2] && move && (d_large || d_exp_q[8]);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni)      v_q <= '0;
    else if (flush_i) v_q <= '0;
    else              v_q <= v_d;
  end

  always_ff @(posedge clk_i) begin
    if (move && valid_i) begin
      b_bits_q     <= bits_i;
      b_front_q    <= front_i;
      b_lanes_q    <= lanes_i;
      b_mask_q     <= mask_i;
      b_sign_q     <= sign_i;
      b_size_q     <= size_i;
      b_base_q     <= base_i;
      b_off_bits_q <= off_bits_i;
      b_last_q     <= last_i;
    end
    if (move && v_q[0]) begin
      c_values_q <= 128'(b_rest >> b_off_bits_q);
      c_exp_q    <= {1'b0, b_base_q} + {1'b0, b_off};
      c_lanes_q  <= b_lanes_q;
      c_mask_q   <= b_mask_q;
      c_sign_q   <= b_sign_q;
      c_size_q   <= b_size_q;
      c_last_q   <= b_last_q;
    end
    if (move && v_q[1]) begin
      d_values_q <= loose(c_values_q, c_bits);
      d_exp_q    <= c_exp_q;
      d_lanes_q  <= c_lanes_q;
      d_mask_q   <= c_mask_q;
      d_sign_q   <= c_sign_q;
      d_size_q   <= c_size_q;
      d_last_q   <= c_last_q;
    end
    if (move && v_q[2]) begin
      o_data_q <= mantissas;
      o_exp_q  <= d_exp_q[7:0];
      o_last_q <= d_last_q;
    end
  end

  assign valid_o = v_q[3];
  assign data_o  = o_data_q;
  assign exp_o   = o_exp_q;
  assign last_o  = o_last_q;
  assign idle_o  = v_q == '0;

endmodule

`default_nettype wire
