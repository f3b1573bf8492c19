// SPDX-License-Identifier: Apache-2.0
//
// Decodes the commands of a program as they arrive: what each is, and which registers it adds.
//
// Beats    valid_i with a half of a command in data_i, low (high_i low) before high. The code and some numbers of registers stand in the low half,
//          the others in the high one; kind_o and need_o are those of the command whose high half is on data_i.
// Need     a bit for each sum (or pair of ADDI) that the command needs, in the order of its slots; none for r0.
//
// Parameters
//   Conv  1: there are walks (MM may add a register to its position)

`default_nettype none

module ct_fetch_decode #(
  parameter int unsigned Conv = 0
) (
  input  logic         clk_i,

  input  logic         valid_i,
  input  logic         high_i,
  input  logic [127:0] data_i,
  output logic [3:0]   kind_o,
  output logic [3:0]   need_o
);

  `include "ct_fetch_kinds.svh"

  kind_e      kind_d, kind_q;
  logic [2:0] need_q;       // sums whose registers stand in the low half

  always_comb begin
    unique case (data_i[ct_pkg::AllOpLsb +: ct_pkg::AllOpW])
      ct_pkg::OpNop:  kind_d = KindNop;
      ct_pkg::OpEnd:  kind_d = KindEnd;
      ct_pkg::OpLoop: kind_d = KindLoop;
      ct_pkg::OpEndl: kind_d = KindEndl;
      ct_pkg::OpAddi: kind_d = KindAddi;
      ct_pkg::OpLd:   kind_d = KindLd;
      ct_pkg::OpSt:   kind_d = KindSt;
      ct_pkg::OpMm:   kind_d = KindMm;
      ct_pkg::OpWpix, ct_pkg::OpWtap: kind_d = KindWalk;
      ct_pkg::OpVl:   kind_d = KindVl;
      ct_pkg::OpVa:   kind_d = KindVa;
      ct_pkg::OpVs:   kind_d = KindVs;
      default:        kind_d = KindBad;
    endcase
  end

  always_ff @(posedge clk_i) begin
    if (valid_i && !high_i) begin
      kind_q <= kind_d;
      need_q <= '0;
      unique case (kind_d)
        KindLoop:       need_q[0] <= (data_i[ct_pkg::CtlCountRegLsb +: 5] != '0);
        KindLd, KindSt: need_q <= {data_i[ct_pkg::DmaN1RegLsb +: 5] != '0, data_i[ct_pkg::DmaSpmRegLsb +: 5] != '0,
                                   data_i[ct_pkg::DmaDramRegLsb +: 5] != '0};
        KindMm:         need_q[1:0] <= {data_i[ct_pkg::MmBRegLsb +: 5] != '0, data_i[ct_pkg::MmARegLsb +: 5] != '0};
        KindVl:         need_q[1:0] <= {data_i[ct_pkg::VlRowsRegLsb +: 5] != '0, data_i[ct_pkg::VlSpmRegLsb +: 5] != '0};
        KindVs:         need_q[1:0] <= {data_i[ct_pkg::VsRowsRegLsb +: 5] != '0, data_i[ct_pkg::VsSpmRegLsb +: 5] != '0};
        default: ;
      endcase
    end
  end

  always_comb begin
    need_o = {1'b0, need_q};
    unique case (kind_q)
      KindAddi: need_o = {data_i[ct_pkg::AddiRd3Lsb-128 +: 5] != '0, data_i[ct_pkg::AddiRd2Lsb-128 +: 5] != '0,
                          data_i[ct_pkg::AddiRd1Lsb-128 +: 5] != '0, data_i[ct_pkg::AddiRd0Lsb-128 +: 5] != '0};
      KindMm:   need_o[3:2] = {Conv != 0 && data_i[ct_pkg::MmPosRegLsb-128 +: 5] != '0, data_i[ct_pkg::MmRowsRegLsb-128 +: 5] != '0};
      KindVa:   need_o[2:0] = {data_i[ct_pkg::VaRowsRegLsb-128 +: 5] != '0, data_i[ct_pkg::VaScRegLsb-128 +: 5] != '0,
                               data_i[ct_pkg::VaSbRegLsb-128 +: 5] != '0};
      default: ;
    endcase
  end

  assign kind_o = kind_q;

  logic unused_data;  // a half has more than the code and the numbers of registers
  assign unused_data = ^data_i;

endmodule

`default_nettype wire
