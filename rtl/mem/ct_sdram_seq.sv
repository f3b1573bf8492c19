// SPDX-License-Identifier: Apache-2.0
//
// The commands of an SDRAM chip and when they may come: power-up, refresh, and one beat of 16 bytes (eight words) after another, read or
// written, in the order they are asked for.
//
// A beat goes through four states: Look (is its row open?), Close (PRECHARGE), Open (ACTIVE), Go (READ or WRITE). The eight words of a
// beat then hold the data pins for eight cycles, in which the next one looks, closes and opens: where that is another bank's, or the row is open
// already, the pins do not wait (tRP and tRCD together 6 cycles at most; 5 where a new burst begins, which comes a cycle later). Rows stay open until another row of the bank or a refresh needs
// it closed.
//
// Distances, each in cycles of clk_i rounded up from nanoseconds
//   wait_q    after PRECHARGE tRP, after ACTIVE tRCD, after REFRESH tRFC, after the mode register 2 cycles; nothing else is sent meanwhile
//   keep_q    the last beat's bank may not be closed: eight cycles after READ, tWR after the last word of a WRITE; the one before may be, by
//             the time the next beat can ask. tWR is WrNs, and never less than two cycles: some makers give it in cycles (W9825G6: 2)
//   slot_q    the data pins: eight cycles for a beat
//   turn_q    from READ to WRITE 9 + CasLatency: a cycle without a driver between the chip's data and ours
//   due_q     refreshes that are due: one more every 64 ms / 8192. A due one goes in front of the next beat. None is lost: they are counted.
//   tRAS, tRC and tRRD need no counter: each ACTIVE is followed by its READ or WRITE, tRCD later, and that by eight words. Where a chip and a
//             clock would ask for more, elaboration stops.
//
// What comes out (go_o and cmd_*) is decided in this cycle; the parent registers it on its way to the pins.

`default_nettype none
`include "ct_assert.svh"

module ct_sdram_seq #(
  parameter  int unsigned ClockHz    = 100000000,
  parameter  int unsigned RowBits    = 13,
  parameter  int unsigned ColBits    = 9,
  parameter  int unsigned CasLatency = 3,
  parameter  int unsigned RcdNs      = 20,
  parameter  int unsigned RpNs       = 20,
  parameter  int unsigned RasNs      = 45,
  parameter  int unsigned RcNs       = 66,
  parameter  int unsigned RfcNs      = 70,
  parameter  int unsigned WrNs       = 15,
  parameter  int unsigned RrdNs      = 15,
  parameter  int unsigned PowerUpUs  = 200,
  localparam int unsigned BeatW      = RowBits + 2 + ColBits - 3
) (
  input  logic               clk_i,
  input  logic               rst_ni,

  // The next beat. It stays until go_o.
  input  logic               valid_i,
  input  logic               write_i,
  input  logic [BeatW-1:0]   beat_i,  // address in units of 16 bytes: row, bank, column
  output logic               go_o,    // its READ or WRITE is sent in this cycle

  // The command of this cycle: RAS, CAS, WE, low when active.
  output logic [2:0]         cmd_o,
  output logic [1:0]         bank_o,
  output logic [RowBits-1:0] addr_o
);

  // Cycles of NS nanoseconds, rounded up. The clock counts in kHz, also rounded up, so that 32 bits are enough.
  localparam int unsigned Khz = (ClockHz + 999) / 1000;
  function automatic int unsigned cycles(input int unsigned ns);
    cycles = (ns * Khz + 999999) / 1000000;
  endfunction
  function automatic int unsigned most(input int unsigned a, input int unsigned b);
    most = (a > b) ? a : b;
  endfunction

  localparam int unsigned Rcd     = most(cycles(RcdNs), 1);
  localparam int unsigned Rp      = most(cycles(RpNs), 1);
  localparam int unsigned Rfc     = most(cycles(RfcNs), 1);
  localparam int unsigned KeepRd  = 8;
  localparam int unsigned KeepWr  = 7 + most(cycles(WrNs), 2);
  localparam int unsigned Turn    = 9 + CasLatency;
  localparam int unsigned Every   = (ClockHz / 1000 * 64) / 8192;
  localparam int unsigned PowerUp = PowerUpUs * Khz / 1000 + 1;
  localparam int unsigned EveryW  = $clog2(Every + 1);
  localparam int unsigned PowerW  = $clog2(PowerUp + 1);

  localparam int unsigned InitRefreshes = 8;

  if (CasLatency != 2 && CasLatency != 3) begin : g_check_cas
    ct_error_sdram_cas_latency_must_be_2_or_3 u_error ();
  end
  if (RowBits < 11 || RowBits < ColBits + 2 || ColBits < 8 || ColBits > 10) begin : g_check_geometry
    ct_error_sdram_has_11_or_more_row_bits_and_8_to_10_column_bits u_error ();
  end
  if (cycles(RasNs) > Rcd + 8 || cycles(RcNs) > Rcd + 8 + Rp || cycles(RrdNs) > Rcd + 2) begin : g_check_active
    ct_error_sdram_ras_rc_or_rrd_is_longer_than_a_beat_takes u_error ();
  end
  if (Every < 64 || Rfc > 32 || KeepWr > 10 || Rcd > 16 || Rp > 16) begin : g_check_clock
    ct_error_sdram_clock_is_too_slow_or_too_fast u_error ();
  end

  // RAS, CAS, WE.
  localparam logic [2:0] CmdNop       = 3'b111;
  localparam logic [2:0] CmdRead      = 3'b101;
  localparam logic [2:0] CmdWrite     = 3'b100;
  localparam logic [2:0] CmdActive    = 3'b011;
  localparam logic [2:0] CmdPrecharge = 3'b010;
  localparam logic [2:0] CmdRefresh   = 3'b001;
  localparam logic [2:0] CmdMode      = 3'b000;

  // Sequential bursts of eight, writes, too.
  localparam logic [RowBits-1:0] Mode = RowBits'({CasLatency[2:0], 4'b0011});
  // A10: PRECHARGE closes all banks.
  localparam logic [RowBits-1:0] All  = RowBits'(1) << 10;

  typedef enum logic [2:0] {
    StPower, StPrecharge, StMode, StRefresh, StLook, StClose, StOpen, StGo
  } state_e;

  state_e             state_q, state_d;
  logic               ready_d, ready_q;      // the mode register is set
  logic [PowerW-1:0]  power_q;
  logic [3:0]         init_q, init_d;        // refreshes of power-up still to come
  logic [EveryW-1:0]  every_q;
  logic [2:0]         due_q;
  logic [4:0]         wait_q, wait_d;
  logic [3:0]         slot_q, turn_q;
  logic [3:0]         keep_q;
  logic [1:0]         keep_bank_q;
  logic [3:0]         open_q, open_d;
  logic [4*RowBits-1:0] row_q;
  logic               tick, refreshed, idle, keeps_none, keeps, hit, precharge_all, activate, read, write;

  // The beat's address.
  logic [1:0]         bank;
  logic [RowBits-1:0] row, col;
  assign bank = beat_i[ColBits-3 +: 2];
  assign row  = beat_i[BeatW-1 -: RowBits];
  assign col  = RowBits'({beat_i[ColBits-4:0], 3'b000});

  assign idle       = (wait_q == '0);
  assign keeps_none = (keep_q == '0);
  assign keeps      = (keep_q != '0) && (keep_bank_q == bank);
  assign hit        = (row_q[RowBits*bank +: RowBits] == row);
  assign tick       = (every_q == '0);
  assign go_o       = read || write;

  always_comb begin
    state_d       = state_q;
    ready_d       = ready_q;
    init_d        = init_q;
    open_d        = open_q;
    wait_d        = idle ? wait_q : wait_q - 1'b1;
    cmd_o         = CmdNop;
    bank_o        = bank;
    addr_o        = row;
    refreshed     = 1'b0;
    precharge_all = 1'b0;
    activate      = 1'b0;
    read          = 1'b0;
    write         = 1'b0;
    unique case (state_q)
      StPower: if (power_q == '0) state_d = StPrecharge;
      StPrecharge: if (idle && keeps_none) begin
        precharge_all = 1'b1;
        cmd_o         = CmdPrecharge;
        addr_o        = All;
        open_d        = '0;
        wait_d        = 5'(Rp - 1);
        state_d       = StRefresh;
      end
      StRefresh: if (idle) begin
        cmd_o   = CmdRefresh;
        wait_d  = 5'(Rfc - 1);
        if (ready_q) begin
          refreshed = 1'b1;
          state_d   = StLook;
        end else begin
          init_d  = init_q - 1'b1;
          state_d = (init_q == 4'd1) ? StMode : StRefresh;
        end
      end
      StMode: if (idle) begin
        cmd_o   = CmdMode;
        bank_o  = '0;
        addr_o  = Mode;
        ready_d = 1'b1;
        wait_d  = 5'd1;
        state_d = StLook;
      end
      StLook: begin
        if (due_q != '0) state_d = StPrecharge;
        else if (valid_i) begin
          if (!open_q[bank])           state_d = StOpen;
          else if (!hit)         state_d = StClose;
          else                         state_d = StGo;
        end
      end
      StClose: if (idle && !keeps) begin
        cmd_o        = CmdPrecharge;
        addr_o       = '0;
        open_d[bank] = 1'b0;
        wait_d       = 5'(Rp - 1);
        state_d      = StOpen;
      end
      StOpen: if (idle) begin
        activate     = 1'b1;
        cmd_o        = CmdActive;
        open_d[bank] = 1'b1;
        wait_d       = 5'(Rcd - 1);
        state_d      = StGo;
      end
      StGo: if (idle && slot_q == '0 && (!write_i || turn_q == '0)) begin
        read    = !write_i;
        write   = write_i;
        cmd_o   = write_i ? CmdWrite : CmdRead;
        addr_o  = col;
        state_d = StLook;
      end
      default: ;
    endcase
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= StPower;
      ready_q <= 1'b0;
      power_q <= PowerW'(PowerUp);
      init_q  <= 4'(InitRefreshes);
      every_q <= EveryW'(Every - 1);
      due_q   <= '0;
      wait_q  <= '0;
      slot_q  <= '0;
      keep_q  <= '0;
      turn_q  <= '0;
      open_q  <= '0;
    end else begin
      state_q <= state_d;
      ready_q <= ready_d;
      init_q  <= init_d;
      wait_q  <= wait_d;
      open_q  <= open_d;
      if (power_q != '0) power_q <= power_q - 1'b1;
      every_q <= tick ? EveryW'(Every - 1) : every_q - 1'b1;
      if (ready_q) due_q <= due_q + 3'(tick) - 3'(refreshed);
      if (go_o)                slot_q <= 4'd7;
      else if (slot_q != '0)   slot_q <= slot_q - 1'b1;
      if (go_o)                keep_q <= write ? 4'(KeepWr - 1) : 4'(KeepRd - 1);
      else if (keep_q != '0)   keep_q <= keep_q - 1'b1;
      if (read)                turn_q <= 4'(Turn - 1);
      else if (turn_q != '0)   turn_q <= turn_q - 1'b1;
    end
  end

  for (genvar b = 0; b < 4; b++) begin : g_bank
    always_ff @(posedge clk_i) begin
      if (activate && bank == 2'(b)) row_q[RowBits*b +: RowBits] <= row;
    end
  end
  always_ff @(posedge clk_i) begin
    if (go_o) keep_bank_q <= bank;
  end

  // ---- Rules ------------------------------------------------------------------------------------------------------------------

  `CT_ASSERT(OpenRowOnly_A, !go_o || (open_q[bank] && hit))
  `CT_ASSERT(ClosedBankOnly_A, !activate || !open_q[bank])
  `CT_ASSERT(RefreshAllClosed_A, cmd_o != CmdRefresh || open_q == '0)
  `CT_ASSERT(CloseWhenFree_A, !(precharge_all && !keeps_none))
  `CT_ASSERT(RefreshInTime_A, due_q <= 3'd1)

`ifdef FORMAL
`include "ct_sdram_seq_formal.svh"
`endif

endmodule

`default_nettype wire
