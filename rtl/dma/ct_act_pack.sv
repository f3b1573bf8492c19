// SPDX-License-Identifier: Apache-2.0
//
// Writes blocks of compressed activations one behind the other, bit by bit, into units of 16 bytes (docs/compression.md).
//
// A piece is the masks of a step (32 bits, or none), an exponent's distance (0 to 8 bits) and values of 0 to 8 bits each: those of the lanes in lanes_i. A header is a
// piece too: sixteen values of 8 bits, of which len_i bits count; the bits behind are 0. With last_i a group ends: the last unit is filled up with zeros,
// and its last byte makes the exclusive or of all bytes of the group 0.
//
// Latency     a piece taken in t lies in the accumulator in t + 4.
// Throughput  a piece a cycle, while units of 128 bits or less a cycle come of them; a group ends without a cycle lost.
// Handshake   valid_o holds until ready_i, but flush_i takes everything away.

`default_nettype none
`include "ct_assert.svh"

module ct_act_pack (
  input  logic         clk_i,
  input  logic         rst_ni,

  input  logic         flush_i,
  output logic         idle_o,

  input  logic         valid_i,
  output logic         ready_o,
  input  logic         head_i,   // a header
  input  logic [5:0]   len_i,    // its bits
  input  logic         last_i,   // the last piece of a group
  input  logic         front_i,  // the masks come in front
  input  logic [31:0]  masks_i,
  input  logic [15:0]  lanes_i,  // lanes of which values are written
  input  logic [127:0] values_i, // 8 bits a lane; the bits that are not written are 0
  input  logic [3:0]   bits_i,   // bits that are written of each, 0 to 8
  input  logic [7:0]   off_i,    // the exponent's distance
  input  logic [3:0]   off_bits_i,

  output logic         valid_o,
  input  logic         ready_i,
  output logic [127:0] data_o,
  output logic         last_o,
  output logic [6:0]   units_o   // with last_o: units of the group
);

  localparam int unsigned PieceW = 168;
  localparam int unsigned AccW   = 128 + PieceW;

  logic [2:0] v_d, v_q;  // pieces in the three stages in front of the accumulator
  logic       move, take;
  assign ready_o = move;

  // ---------------------------------------------------------------------------------------------------------------------------
  // Lanes that are written move together: by the number of those below that are not, a bit of it in each step.

  function automatic logic [127:0] together(input logic [127:0] values, input logic [15:0] lanes);
    logic [4:0] gap;
    logic [63:0] by;
    begin
      gap      = '0;
      together = '0;
      by       = '0;
      for (int i = 0; i < 16; i++) begin
        if (lanes[i]) together[8*i +: 8] = values[8*i +: 8];
        if (lanes[i]) by[4*i +: 4] = gap[3:0];
        gap = gap + 5'(!lanes[i]);
      end
      for (int s = 0; s < 4; s++) begin
        for (int i = 0; i < 16; i++) begin
          if (i + (1 << s) < 16) begin
            if (by[4*(i+(1<<s))+s]) begin
              together[8*i +: 8] = together[8*(i+(1<<s)) +: 8];
              by[4*i +: 4]       = by[4*(i+(1<<s)) +: 4];
            end else if (by[4*i+s]) begin
              together[8*i +: 8] = '0;
              by[4*i +: 4]       = '0;
            end
          end else if (by[4*i+s]) begin
            together[8*i +: 8] = '0;
            by[4*i +: 4]       = '0;
          end
        end
      end
    end
  endfunction

  `include "ct_act_fn.svh"

  // Values of 8 bits become values of `bits` bits.
  function automatic logic [127:0] dense(input logic [127:0] values, input logic [3:0] bits);
    dense = '0;
    for (int i = 0; i < 16; i++) begin
      unique case (bits)
        4'd1:    dense[1*i +: 1] = values[8*i +: 1];
        4'd2:    dense[2*i +: 2] = values[8*i +: 2];
        4'd3:    dense[3*i +: 3] = values[8*i +: 3];
        4'd4:    dense[4*i +: 4] = values[8*i +: 4];
        4'd5:    dense[5*i +: 5] = values[8*i +: 5];
        4'd6:    dense[6*i +: 6] = values[8*i +: 6];
        4'd7:    dense[7*i +: 7] = values[8*i +: 7];
        4'd8:    dense[8*i +: 8] = values[8*i +: 8];
        default: dense[8*i +: 8] = '0;
      endcase
    end
  endfunction

  // First stage: together, counted. Second: dense. Third: mask and exponent in front.
  logic [127:0]       c_values_q, d_values_q;
  logic [31:0]        c_masks_q, d_masks_q;
  logic [4:0]         c_some_q;
  logic [5:0]         c_len_q;
  logic [3:0]         c_bits_q, c_off_bits_q, d_off_bits_q;
  logic [7:0]         c_off_q, d_off_q, d_len_q, p_len_q;
  logic               c_head_q, c_front_q, d_front_q, c_last_q, d_last_q, p_last_q;
  logic [PieceW-1:0]  p_piece_d, p_piece_q;
  logic [135:0]       d_off_values;
  assign d_off_values = {8'd0, d_values_q} << d_off_bits_q | 136'(d_off_q);
  assign p_piece_d    = d_front_q ? {d_off_values, d_masks_q} : {32'd0, d_off_values};

  always_ff @(posedge clk_i) begin
    if (move && valid_i) begin
      c_values_q   <= together(values_i, lanes_i);
      c_masks_q    <= masks_i;
      c_some_q     <= ones(lanes_i);
      c_len_q      <= len_i;
      c_bits_q     <= bits_i;
      c_off_q      <= off_i;
      c_off_bits_q <= off_bits_i;
      c_head_q     <= head_i;
      c_front_q    <= front_i;
      c_last_q     <= last_i;
    end
    if (move && v_q[0]) begin
      d_values_q   <= dense(c_values_q, c_bits_q);
      d_masks_q    <= c_masks_q;
      d_off_q      <= c_off_q;
      d_off_bits_q <= c_off_bits_q;
      d_front_q    <= c_front_q;
      d_last_q     <= c_last_q;
      d_len_q      <= c_head_q ? {2'd0, c_len_q} : times(c_some_q, c_bits_q);
    end
    if (move && v_q[1]) begin
      p_piece_q    <= p_piece_d;
      p_len_q      <= d_len_q + {4'd0, d_off_bits_q} + {2'd0, d_front_q, 5'd0};
      p_last_q     <= d_last_q;
    end
  end

  // ---------------------------------------------------------------------------------------------------------------------------
  // The accumulator: bits that have no unit yet, those behind count_q are 0. When the last piece of a group is in (fin_q), its units go first. The
  // header of the next group may come as soon as only the last unit is left (tail_q): it then begins at bit 128, and count_q counts that unit whole.

  logic [AccW-1:0] acc_d, acc_q, rest, piece;
  logic [8:0]      count_d, count_q, left;
  logic            fin_d, fin_q, tail_d, tail_q, pop, ending, behind;
  logic [7:0]      check_q, check;
  logic [6:0]      units_q;

  always_comb begin
    check = check_q;
    for (int i = 0; i < 15; i++) if (valid_o) check = check ^ acc_q[8*i +: 8];
  end

  assign valid_o = fin_q || count_q >= 9'd128;  // (tail_q has such a count)
  assign last_o  = tail_q || (fin_q && count_q <= 9'd120);
  assign data_o  = {last_o ? check : acc_q[127:120], acc_q[119:0]};
  assign units_o = units_q + 7'd1;
  assign pop     = valid_o && ready_i;

  // What is left when the unit has gone; a piece comes behind it if that is less than a unit.
  assign rest   = pop ? {128'd0, acc_q[AccW-1:128]} : acc_q;
  assign left   = !pop ? count_q : count_q < 9'd128 ? 9'd0 : count_q - 9'd128;
  assign ending = fin_q && !(pop && last_o);        // of the finished group something is left
  assign behind = ending && pop && left <= 9'd120;  // its last unit
  assign take   = v_q[2] && (behind || (!ending && left < 9'd128));
  assign move   = !v_q[2] || take;
  assign v_d    = move ? {v_q[1:0], valid_i} : v_q;

  always_comb begin
    piece = '0;
    if (take) piece = behind ? {p_piece_q, 128'd0} : {128'd0, p_piece_q} << left[6:0];
  end

  always_comb begin
    acc_d   = (pop && fin_q && last_o) ? '0 : rest;
    count_d = left;
    fin_d   = ending;
    tail_d  = tail_q && !pop;
    if (take) begin
      acc_d   = acc_d | piece;
      count_d = (behind ? 9'd128 : left) + {1'b0, p_len_q};
      fin_d   = !behind && p_last_q;
      tail_d  = behind;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      v_q     <= 3'b000;
      acc_q   <= '0;
      count_q <= '0;
      fin_q   <= 1'b0;
      tail_q  <= 1'b0;
      check_q <= '0;
      units_q <= '0;
    end else if (flush_i) begin
      v_q     <= 3'b000;
      acc_q   <= '0;
      count_q <= '0;
      fin_q   <= 1'b0;
      tail_q  <= 1'b0;
      check_q <= '0;
      units_q <= '0;
    end else begin
      v_q     <= v_d;
      acc_q   <= acc_d;
      count_q <= count_d;
      fin_q   <= fin_d;
      tail_q  <= tail_d;
      if (pop) begin
        check_q <= last_o ? 8'd0 : check ^ acc_q[127:120];
        units_q <= last_o ? 7'd0 : units_o;
      end
    end
  end

  assign idle_o = v_q == 3'b000 && count_q == 9'd0 && !fin_q;

  `CT_ASSERT(CountFits_A, count_q <= 9'd295)
  `CT_ASSERT(ZeroBehind_A, (count_q == 9'd0 ? acc_q : acc_q >> count_q) == '0)
  // What comes behind a last unit begins a group: it is a header.
  `CT_ASSERT(HeaderBehind_A, !(take && behind && p_last_q))
  `CT_ASSERT(UnitsFit_A, units_q < 7'd70)
`ifdef FORMAL
  `include "ct_act_pack_formal.svh"
`endif

  `CT_COVER(CheckAlone_C, last_o && count_q == 9'd0)

endmodule

`default_nettype wire
