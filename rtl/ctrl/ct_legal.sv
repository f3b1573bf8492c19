// SPDX-License-Identifier: Apache-2.0
//
// Whether a command is illegal. Combinational.
//
// Illegal are: unknown codes; reserved values (VL/VS Mode > 2, VA ASrc = 3, Fn > 4, Func other than 0, 8, 9, 10; VS Round not 0, Narrow = 7);
// LD/ST Nb = 0 or > 256, or > 16 with Hdr, N1 = 0, N2 = 0 (without Gather), Gather outside a batch; with Comp: Hdr, Gather, Nb not 16, 32, 48 or 64,
// groups (bits 2..0 of N1) = 0 or First + groups > 4, bit 3 of N1, of ST a bound (bits 11..4) of 255; with Compress = 0 Comp at all; MM Kt = 0, Nt = 0, Rows outside 1..128, Mt * Nt > 8, an ACC tile above 15; VL,
// VA, VS Rows outside 1..16; MM with Walk before both a WPIX and a WTAP of the job (walks_i: those that there were);
// WPIX with W = 0 or H = 0, WTAP with KX = 0 or CB = 0, an enabled wait or signal on either; with Conv = 0 all three of them; VA Cols outside 1..16, both BSrc and CSrc in {1, 2}, Td = Tq when RowXor or LaneXor is not 0
// (whether Tq is used or not) or BSrc or CSrc is 2; two enabled waits of a command for one semaphore; an enabled wait or signal on CTL and ADDI; LOOP with
// Count = 0 or nested deeper than 4; ENDL without LOOP; and, seen by ct_fetch, the end of the program without END. Ranges hold for the sums, modulo the field's
// width. Fields a command does not use are not looked at (so Count matters to LOOP only).
//
// cmd_i has its sums done. vld_i only keeps a simulator from work whose result nobody uses. rows_i: requests of the batch, 0: none. inner_i: a
// loop is open; deepest_i: as many as may be.
//
// Parameters
//   Conv      1: there are walks
//   Compress  1: there is Comp

`default_nettype none

module ct_legal #(
  parameter int unsigned Conv     = 0,
  parameter int unsigned Compress = 0
) (
  input  logic         vld_i,
  input  logic [255:0] cmd_i,
  input  logic [4:0]   rows_i,
  input  logic [1:0]   walks_i,
  input  logic         inner_i,
  input  logic         deepest_i,
  output logic         illegal_o
);

  logic [ct_pkg::AllOpW-1:0] op;
  assign op = cmd_i[ct_pkg::AllOpLsb +: ct_pkg::AllOpW];

  logic [2:0] wait_en;
  logic       sem_used, wait_twice;
  logic [4:0] rows16;         // VL, VA, VS
  logic       rows16_bad;
  logic       mm_bad;
  logic [7:0] mm_rows;
  logic [3:0] mm_nt;
  logic [2:0] mm_nt_1;
  logic [3:0] mm_accn;
  logic [3:0] mm_mt;          // ceil(Rows / 16): 1..8 for legal Rows
  logic       mm_area_bad;
  logic [7:0] mm_top;         // highest ACC tile, at most 15 + 7 * 15 + 7
  logic       walk_bad;       // WPIX, WTAP
  logic [8:0] nb;
  logic [11:0] n1;
  logic       dma_bad, comp_bad;
  logic       va_crosses;     // elements of Tq are read where other elements are written
  logic [3:0] va_ahead;       // Tq comes that many tiles after Td
  logic       va_bad;

  always_comb begin
    wait_en     = '0;
    sem_used    = 1'b0;
    wait_twice  = 1'b0;
    rows16      = '0;
    rows16_bad  = 1'b0;
    mm_rows     = '0;
    mm_nt       = '0;
    mm_nt_1     = '0;
    mm_accn     = '0;
    mm_mt       = '0;
    mm_area_bad = 1'b0;
    mm_top      = '0;
    mm_bad      = 1'b0;
    walk_bad    = 1'b0;
    nb          = '0;
    n1          = '0;
    dma_bad     = 1'b0;
    comp_bad    = 1'b0;
    va_crosses  = 1'b0;
    va_ahead    = '0;
    va_bad      = 1'b0;
    illegal_o   = 1'b0;
    if (vld_i) begin
      wait_en    = {cmd_i[ct_pkg::AllWait2Lsb+4], cmd_i[ct_pkg::AllWait1Lsb+4], cmd_i[ct_pkg::AllWait0Lsb+4]};
      sem_used   = (wait_en != '0) || cmd_i[ct_pkg::AllSig0Lsb+4] || cmd_i[ct_pkg::AllSig1Lsb+4];
      wait_twice = (wait_en[0] && wait_en[1] && cmd_i[ct_pkg::AllWait0Lsb +: 4] == cmd_i[ct_pkg::AllWait1Lsb +: 4]) ||
                   (wait_en[0] && wait_en[2] && cmd_i[ct_pkg::AllWait0Lsb +: 4] == cmd_i[ct_pkg::AllWait2Lsb +: 4]) ||
                   (wait_en[1] && wait_en[2] && cmd_i[ct_pkg::AllWait1Lsb +: 4] == cmd_i[ct_pkg::AllWait2Lsb +: 4]);

      unique case (op)
        ct_pkg::OpVl:  rows16 = cmd_i[ct_pkg::VlRowsLsb +: 5];
        ct_pkg::OpVs:  rows16 = cmd_i[ct_pkg::VsRowsLsb +: 5];
        default: rows16 = cmd_i[ct_pkg::VaRowsLsb +: 5];
      endcase
      rows16_bad = (rows16 == 5'd0) || (rows16 > 5'd16);

      nb      = cmd_i[ct_pkg::DmaNbLsb +: ct_pkg::DmaNbW];
      dma_bad = (nb == '0) || (nb > (cmd_i[ct_pkg::DmaHdrLsb] ? 9'd16 : 9'd256)) ||
                (cmd_i[ct_pkg::DmaN1Lsb +: ct_pkg::DmaN1W] == '0) ||
                (cmd_i[ct_pkg::DmaGatherLsb] ? rows_i == '0 : cmd_i[ct_pkg::DmaN2Lsb +: ct_pkg::DmaN2W] == '0);

      n1       = cmd_i[ct_pkg::DmaN1Lsb +: ct_pkg::DmaN1W];
      comp_bad = cmd_i[ct_pkg::DmaCompLsb] &&
                 ((Compress == 0) || cmd_i[ct_pkg::DmaHdrLsb] || cmd_i[ct_pkg::DmaGatherLsb] || (nb[3:0] != '0) || (nb > 9'd64) ||
                  (n1[2:0] == '0) || ({1'b0, n1[2:0]} + {2'd0, cmd_i[ct_pkg::DmaFirstLsb +: ct_pkg::DmaFirstW]} > 4'd4) || n1[3] ||
                  (op == ct_pkg::OpSt && n1[11:4] == 8'd255));

      mm_rows = cmd_i[ct_pkg::MmRowsLsb +: ct_pkg::MmRowsW];
      mm_nt   = cmd_i[ct_pkg::MmNtLsb +: ct_pkg::MmNtW];
      mm_nt_1 = mm_nt[2:0] - 3'd1;
      mm_accn = cmd_i[ct_pkg::MmAccNLsb +: 4];
      mm_mt   = mm_rows[7:4] + {3'd0, mm_rows[3:0] != 4'd0};
      // The product by hand: three terms in logic are cheaper than a DSP. (Nt > 8 is refused anyway.)
      mm_top  = 8'(cmd_i[ct_pkg::MmAccLsb +: 4]) + (mm_nt_1[0] ? {4'd0, mm_accn} : 8'd0) +
                (mm_nt_1[1] ? {3'd0, mm_accn, 1'b0} : 8'd0) + (mm_nt_1[2] ? {2'd0, mm_accn, 2'b00} : 8'd0) + 8'(mm_mt) - 8'd1;
      unique case (mm_nt)
        4'd1:                   mm_area_bad = (mm_mt > 4'd8);
        4'd2:                   mm_area_bad = (mm_mt > 4'd4);
        4'd3, 4'd4:             mm_area_bad = (mm_mt > 4'd2);
        4'd5, 4'd6, 4'd7, 4'd8: mm_area_bad = (mm_mt > 4'd1);
        default:                mm_area_bad = 1'b1;
      endcase
      mm_bad = (mm_rows == 8'd0) || (mm_rows > 8'd128) || mm_area_bad || (mm_top > 8'd15) ||
               (cmd_i[ct_pkg::MmKtLsb +: ct_pkg::MmKtW] == '0) ||
               (cmd_i[ct_pkg::MmWalkLsb] && (Conv == 0 || walks_i != 2'b11));

      walk_bad = (Conv == 0) || sem_used ||
                 (op == ct_pkg::OpWpix ? cmd_i[ct_pkg::WpixWLsb +: ct_pkg::WpixWW] == '0 || cmd_i[ct_pkg::WpixHLsb +: ct_pkg::WpixHW] == '0
                                       : cmd_i[ct_pkg::WtapKXLsb +: ct_pkg::WtapKXW] == '0 || cmd_i[ct_pkg::WtapCBLsb +: ct_pkg::WtapCBW] == '0);

      va_crosses = (cmd_i[ct_pkg::VaRowXorLsb +: 4] != '0) || (cmd_i[ct_pkg::VaLaneXorLsb +: 4] != '0) ||
                   (cmd_i[ct_pkg::VaBSrcLsb +: 2] == 2'd2) || (cmd_i[ct_pkg::VaCSrcLsb +: 2] == 2'd2);
      va_ahead   = cmd_i[ct_pkg::VaTqLsb +: 4] - cmd_i[ct_pkg::VaTdLsb +: 4];
      va_bad = (cmd_i[ct_pkg::VaASrcLsb +: 2] == 2'd3) || (cmd_i[ct_pkg::VaFnLsb +: 3] > 3'd4) ||
               (cmd_i[ct_pkg::VaFuncLsb +: 4] != 4'd0 && cmd_i[ct_pkg::VaFuncLsb+2 +: 2] != 2'b10) ||
               (cmd_i[ct_pkg::VaColsLsb +: 5] == 5'd0) || (cmd_i[ct_pkg::VaColsLsb +: 5] > 5'd16) ||
               ((cmd_i[ct_pkg::VaBSrcLsb] != cmd_i[ct_pkg::VaBSrcLsb+1]) &&
                (cmd_i[ct_pkg::VaCSrcLsb] != cmd_i[ct_pkg::VaCSrcLsb+1])) ||
               (va_crosses && (va_ahead <= {1'b0, cmd_i[ct_pkg::VaMoreLsb +: 3]}));

      unique case (op)
        ct_pkg::OpNop, ct_pkg::OpEnd, ct_pkg::OpAddi: illegal_o = sem_used;
        ct_pkg::OpLoop: illegal_o = sem_used || (cmd_i[ct_pkg::CtlCountLsb +: 32] == '0) || deepest_i;
        ct_pkg::OpEndl: illegal_o = sem_used || !inner_i;
        ct_pkg::OpLd, ct_pkg::OpSt: illegal_o = wait_twice || dma_bad || comp_bad;
        ct_pkg::OpMm:   illegal_o = wait_twice || mm_bad;
        ct_pkg::OpWpix, ct_pkg::OpWtap: illegal_o = walk_bad;
        ct_pkg::OpVl:   illegal_o = wait_twice || rows16_bad || (cmd_i[ct_pkg::VlModeLsb +: 3] > 3'd2);
        ct_pkg::OpVa:   illegal_o = wait_twice || rows16_bad || va_bad;
        ct_pkg::OpVs:   illegal_o = wait_twice || rows16_bad || (cmd_i[ct_pkg::VsModeLsb +: 3] > 3'd2) ||
                                    (cmd_i[ct_pkg::VsRoundLsb +: 2] != 2'd0) || (&cmd_i[ct_pkg::VsNarrowLsb +: 3]);
        default:        illegal_o = 1'b1;
      endcase
    end
  end

endmodule

`default_nettype wire
