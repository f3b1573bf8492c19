// SPDX-License-Identifier: Apache-2.0
//
// The arithmetic of VA, stages 2 to 26 of ct_vpu_va: y = Func(post(OP(a * b, c))) on a row or a quarter of one.
//
// What        A row is issued (issue_i) with where its operands come from; two cycles later ACC and the tile registers give them. What is not
//             asked for is neutral: b = 1.0, c = -0.0.
// Latency     wr_data_o is there FnStage + FnLat + 1 cycles after issue_i, or four for a row that goes the short way (short_i while it is in
//             stage 3), and stays until the next one. Nothing stalls: vld_i[k] says that stage k has a row.
// Turns       with one FnLanes of four each quarter of a function operation comes four times; lane *_turn_i goes through the function and is
//             written, the others stay.
//
// Parameters
//   VpuLanes  lanes, 16 or 4
//   FnLanes   lanes with functions: VpuLanes, or 1 of 4
//   AddStage, FnStage  stages with the adder's and the function's input
//   FnLat     of ct_fn

`default_nettype none

module ct_vpu_lanes #(
  parameter  int unsigned VpuLanes = 16,
  parameter  int unsigned FnLanes  = (VpuLanes == 4) ? 1 : VpuLanes,
  parameter  int unsigned AddStage = 9,
  parameter  int unsigned FnStage  = 15,
  parameter  int unsigned FnLat    = 11,
  localparam int unsigned PadStage = FnStage + FnLat,
  localparam int unsigned W        = 32 * VpuLanes
) (
  input  logic              clk_i,
  input  logic              rst_ni,

  input  logic              issue_i,
  input  logic              moving_i,   // a row is issued or under way
  input  logic [PadStage:1] vld_i,

  // of the row that is issued
  input  logic [1:0]        asrc_i,
  input  logic [1:0]        bsrc_i,
  input  logic [1:0]        csrc_i,
  input  logic              negc_i,
  input  logic [31:0]       sb_i,
  input  logic [31:0]       sc_i,
  input  logic [3:0]        lane_xor_i,

  // of the row in stage 2
  input  logic [W-1:0]      acc_i,
  input  logic [W-1:0]      a_i,
  input  logic [W-1:0]      q_i,

  input  logic [2:0]        op_i,       // in the stage in front of AddStage

  // in FnStage
  input  logic              fn_relu_i,
  input  logic [3:0]        fn_func_i,  // {has one, which}
  input  logic [1:0]        fn_turn_i,

  // that is padded: in the last stage, or in stage 3
  input  logic              short_i,
  input  logic              pad_func_i,
  input  logic              pad_ninf_i,
  input  logic [4:0]        pad_cols_i,
  input  logic              pad_row_i,  // all of it is padding
  input  logic [1:0]        pad_beat_i,
  input  logic [1:0]        pad_turn_i,
  output logic [W-1:0]      wr_data_o
);

  localparam bit          FnTurns = (FnLanes != VpuLanes);
  localparam logic [2:0]  OpAdd   = 3'd0;
  localparam logic [2:0]  OpMax   = 3'd1;
  localparam logic [2:0]  OpMin   = 3'd2;
  localparam logic [2:0]  OpEqual = 3'd4;
  localparam logic [31:0] One     = 32'h3F800000;
  localparam logic [31:0] NegZero = 32'h80000000;
  localparam logic [31:0] Nan     = 32'h7FC00000;
  localparam logic [31:0] NegInf  = 32'hFF800000;

  // --- 0, 1: where the operands come from ---

  logic [1:0]  asrc1_q, asrc2_q, bsrc1_q, bsrc2_q, csrc1_q, csrc2_q;
  logic        negc1_q, negc2_q;
  logic [3:0]  lane_xor1_q, lane_xor2_q;
  logic [31:0] sb1_q, sb2_q, sc1_q, sc2_q;

  always_ff @(posedge clk_i) begin
    if (issue_i) begin
      asrc1_q     <= asrc_i;
      bsrc1_q     <= bsrc_i;
      csrc1_q     <= csrc_i;
      negc1_q     <= negc_i;
      lane_xor1_q <= lane_xor_i;
      sb1_q       <= sb_i;
      sc1_q       <= sc_i;
    end
    if (vld_i[1]) begin
      asrc2_q     <= asrc1_q;
      bsrc2_q     <= bsrc1_q;
      csrc2_q     <= csrc1_q;
      negc2_q     <= negc1_q;
      lane_xor2_q <= lane_xor1_q;
      sb2_q       <= sb1_q;
      sc2_q       <= sc1_q;
    end
  end

  // --- 2: operands. Only one of b and c can come from the tile register, so both share q3_q; else all lanes have the same. ---

  logic [W-1:0] a3_q, q3_q;
  logic [31:0]  b3_q, c3_q;       // what all lanes have
  logic         b_is_q3_q, c_is_q3_q, negc3_q;

  // Lane i gets what lane i ^ by holds: a swap of neighbours, of pairs, of fours, of eights.
  function automatic logic [W-1:0] permute(input logic [W-1:0] x, input logic [3:0] by);
    logic [W-1:0] v, w;
    begin
      v = x;
      for (int s = 0; s < $clog2(VpuLanes); s++) begin
        w = v;
        if (by[s]) for (int i = 0; i < VpuLanes; i++) w[32*i +: 32] = v[32*(i ^ (1 << s)) +: 32];
        v = w;
      end
      permute = v;
    end
  endfunction

  always_ff @(posedge clk_i) begin
    if (vld_i[2]) begin
      unique case (asrc2_q)
        2'd0:    a3_q <= a_i;
        2'd1:    a3_q <= acc_i;
        default: a3_q <= '0;
      endcase
      if (^bsrc2_q || ^csrc2_q) q3_q <= permute(q_i, lane_xor2_q);
      b3_q      <= (bsrc2_q == 2'd0) ? One : sb2_q;
      c3_q      <= (csrc2_q == 2'd0) ? NegZero : {sc2_q[31] ^ negc2_q, sc2_q[30:0]};
      b_is_q3_q <= (bsrc2_q == 2'd1) || (bsrc2_q == 2'd2);
      c_is_q3_q <= (csrc2_q == 2'd1) || (csrc2_q == 2'd2);
      negc3_q   <= negc2_q;
    end
  end

  // --- 3..7: multiply; c waits ---

  logic [W-1:0] c4_q, c5_q, c6_q, c7_q, c8_q, product;
  logic         product_valid_unused;

  ct_fp_mul #(.Lanes(VpuLanes)) u_mul (
    .clk_i, .rst_ni,
    .valid_i (vld_i[3]),
    .a_i     (a3_q),
    .b_i     (b_is_q3_q ? q3_q : {VpuLanes{b3_q}}),
    .valid_o (product_valid_unused),
    .prod_o  (product)
  );

  always_ff @(posedge clk_i) begin
    if (vld_i[3]) c4_q <= c_is_q3_q ? q3_q ^ {VpuLanes{{negc3_q, 31'd0}}} : {VpuLanes{c3_q}};
    if (vld_i[4]) c5_q <= c4_q;
    if (vld_i[5]) c6_q <= c5_q;
    if (vld_i[6]) c7_q <= c6_q;
    if (vld_i[7]) c8_q <= c7_q;
  end

  // --- 8: max, min, select, equal in front of the adder ---

  logic [W-1:0] x9_q, y9_q;

  // p is canonical, c need not be: the adder cleans up the result. Order by value, -0 below +0, magnitudes of subnormals do
  // no harm for they all become zeros of their sign. Zeros are equal whatever their signs. Two bits choose p, c or neither, which makes it
  // one LUT a bit.
  function automatic logic [31:0] choose(input logic [2:0] op, input logic [31:0] p, input logic [31:0] c);
    logic ordered, c_nan, nan, p_less, take_p, take_c, same;
    begin
      ordered = op == OpMax || op == OpMin;
      c_nan   = &c[30:23] && c[22:0] != '0;
      nan     = (&p[30:23] && p[22:0] != '0) || c_nan;
      p_less  = p[31] != c[31] ? p[31] : (p[30:0] < c[30:0]) ^ p[31];  // either if they are equal
      same    = op == OpEqual && !nan && (p == c || (p[30:23] == '0 && c[30:23] == '0));
      take_p  = ordered ? !nan && p_less == (op == OpMin) : op != OpEqual && !c[31] && c[30:23] != '0 && !c_nan;
      take_c  = ordered && !nan && p_less == (op == OpMax);
      choose  = (take_p ? p : '0) | (take_c ? c : '0) | (ordered && nan ? Nan : '0) | (same ? One : '0);
    end
  endfunction

  always_ff @(posedge clk_i) begin
    if (vld_i[AddStage-1]) begin
      if (op_i == OpAdd) begin
        x9_q <= product;
        y9_q <= c8_q;
      end else begin
        for (int i = 0; i < VpuLanes; i++) x9_q[32*i +: 32] <= choose(op_i, product[32*i +: 32], c8_q[32*i +: 32]);
        y9_q <= {VpuLanes{NegZero}};
      end
    end
  end

  // --- 9..14: add; 15: ReLU ---

  logic [W-1:0] sum, fn_in;
  logic         sum_valid_unused, fn_valid_unused;

  ct_fp_add #(.Lanes(VpuLanes)) u_add (
    .clk_i, .rst_ni,
    .valid_i (vld_i[AddStage]),
    .a_i     (x9_q),
    .b_i     (y9_q),
    .valid_o (sum_valid_unused),
    .sum_o   (sum)
  );

  // A NaN of the adder has no sign.
  always_comb begin
    for (int i = 0; i < VpuLanes; i++) fn_in[32*i +: 32] = (fn_relu_i && sum[32*i + 31]) ? 32'd0 : sum[32*i +: 32];
  end

  // --- 15..25: function, or a ring of 16 words as delay line ---

  logic [32*FnLanes-1:0] fn_x, fn_y;

  if (FnTurns) begin : g_fn_x_one
    assign fn_x = fn_in[32*fn_turn_i +: 32];
  end else begin : g_fn_x_all
    assign fn_x = fn_in;
  end

  ct_fn #(.Lanes(FnLanes)) u_fn (
    .clk_i, .rst_ni,
    .valid_i (vld_i[FnStage] && fn_func_i[3]),
    .sel_i   (fn_func_i[2:0]),
    .x_i     (fn_x),
    .valid_o (fn_valid_unused),
    .y_o     (fn_y)
  );

  logic [W-1:0] ring [0:15];
  logic [3:0]   ring_d, ring_q;

  assign ring_d = ring_q + {3'd0, moving_i};

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) ring_q <= '0;
    else         ring_q <= ring_d;
  end

  always_ff @(posedge clk_i) begin
    if (vld_i[FnStage] && !fn_func_i[3]) ring[ring_q] <= fn_in;
  end

  // --- 26: padding ---

  logic [W-1:0] wr_data_q, x26;

  assign x26 = short_i ? a3_q : ring[ring_q - 4'(FnLat)];

  logic [VpuLanes-1:0] pad;

  always_comb begin
    for (int i = 0; i < VpuLanes; i++) pad[i] = pad_row_i || {1'b0, pad_beat_i, 2'd0} + 5'(i) >= pad_cols_i;
  end

  if (FnTurns) begin : g_gather
    always_ff @(posedge clk_i) begin
      if (vld_i[PadStage] || short_i) begin
        for (int i = 0; i < VpuLanes; i++) begin
          if (!pad_func_i || pad_turn_i == 2'(i)) begin
            wr_data_q[32*i +: 32] <= pad[i] ? (pad_ninf_i ? NegInf : 32'd0) : pad_func_i ? fn_y[31:0] : x26[32*i +: 32];
          end
        end
      end
    end
  end else begin : g_whole
    always_ff @(posedge clk_i) begin
      if (vld_i[PadStage] || short_i) begin
        wr_data_q <= pad_func_i ? fn_y : x26;
        for (int i = 0; i < VpuLanes; i++) if (pad[i]) wr_data_q[32*i +: 32] <= pad_ninf_i ? NegInf : 32'd0;
      end
    end
  end

  assign wr_data_o = wr_data_q;

  logic unused;
  assign unused = ^{product_valid_unused, sum_valid_unused, fn_valid_unused, fn_turn_i, pad_turn_i};

endmodule

`default_nettype wire
