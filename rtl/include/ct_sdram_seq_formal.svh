// SPDX-License-Identifier: Apache-2.0
//
// What is proven of ct_sdram_seq (tb/formal/ct_sdram_seq.proof), included at its end: the chip's rules, by cycles counted since each kind of command,
// for any one bank. Counts stop at 31, "long ago", where they start.

  localparam logic [4:0] FLong = 5'd31;

  function automatic logic [4:0] f_older(input logic [4:0] age);
    f_older = (age == FLong) ? FLong : age + 1'b1;
  endfunction
  // A count that is so far ahead of another, as far as counts go.
  function automatic logic f_ahead(input logic [4:0] age, input logic [4:0] than, input int unsigned by);
    f_ahead = (age == FLong) || (32'(age) >= 32'(than) + by);
  endfunction

  (* anyconst *) logic [1:0] f_bank;
  logic [4:0] f_act_q, f_pre_q, f_col_q;                          // of this bank: ACTIVE, PRECHARGE, READ or WRITE
  logic [4:0] f_any_act_q, f_any_col_q, f_rd_q, f_ref_q, f_mode_q;  // of any
  logic       f_wr_q, f_fresh_q;                                  // its last beat was written; it has had none since ACTIVE
  logic       f_mine, f_close, f_refresh, f_mode;
  assign f_mine    = (bank == f_bank);
  assign f_close   = (cmd_o == CmdPrecharge) && (precharge_all || f_mine);
  assign f_refresh = (cmd_o == CmdRefresh);
  assign f_mode    = (cmd_o == CmdMode);

  // The beat that is asked for stays.
  logic             f_held_q, f_write_q;
  logic [BeatW-1:0] f_beat_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      {f_act_q, f_pre_q, f_col_q, f_any_act_q, f_any_col_q, f_rd_q, f_ref_q, f_mode_q} <= {8{FLong}};
      f_wr_q    <= 1'b0;
      f_fresh_q <= 1'b0;
      f_held_q  <= 1'b0;
    end else begin
      f_act_q     <= (activate && f_mine) ? 5'd1 : f_older(f_act_q);
      f_pre_q     <= f_close ? 5'd1 : f_older(f_pre_q);
      f_col_q     <= (go_o && f_mine) ? 5'd1 : f_older(f_col_q);
      f_any_act_q <= activate ? 5'd1 : f_older(f_any_act_q);
      f_any_col_q <= go_o ? 5'd1 : f_older(f_any_col_q);
      f_rd_q      <= read ? 5'd1 : f_older(f_rd_q);
      f_ref_q     <= f_refresh ? 5'd1 : f_older(f_ref_q);
      f_mode_q    <= f_mode ? 5'd1 : f_older(f_mode_q);
      if (go_o && f_mine) f_wr_q <= write;
      f_fresh_q   <= (activate && f_mine) || (f_fresh_q && !(go_o && f_mine));
      f_held_q    <= valid_i && !go_o;
    end
  end
  always_ff @(posedge clk_i) begin
    f_write_q <= write_i;
    f_beat_q  <= beat_i;
  end
  `CT_ASSUME(BeatStays_M, !f_held_q || (valid_i && write_i == f_write_q && beat_i == f_beat_q))

  // The rules.
  localparam int unsigned FKeepWr = (cycles(WrNs) > 2) ? 7 + cycles(WrNs) : 9;
  `CT_ASSERT(Rcd_A, !(go_o && f_mine) || (f_act_q >= 5'(cycles(RcdNs)) && open_q[f_bank]))
  `CT_ASSERT(Rp_A, !((activate && f_mine) || f_refresh || f_mode) || f_pre_q >= 5'(cycles(RpNs)))
  `CT_ASSERT(RasRc_A, !(f_close && open_q[f_bank] && f_act_q < 5'(cycles(RasNs))) &&
             !(((activate && f_mine) || f_refresh) && f_act_q < 5'(cycles(RcNs))))
  `CT_ASSERT(Rrd_A, !activate || f_any_act_q >= 5'(cycles(RrdNs)))
  `CT_ASSERT(Rfc_A, !(activate || f_refresh || f_mode) || f_ref_q >= 5'(cycles(RfcNs)))
  `CT_ASSERT(Mrd_A, !(activate || f_refresh) || f_mode_q >= 5'd2)
  `CT_ASSERT(BeatWhole_A, !(go_o && f_any_col_q < 5'd8) && !(f_close && f_col_q < 5'd8))
  `CT_ASSERT(Wr_A, !(f_close && f_wr_q) || f_col_q >= 5'(FKeepWr))
  `CT_ASSERT(PinsTurn_A, !write || f_rd_q >= 5'(9 + CasLatency))

  // Why: what the counters count.
  `CT_ASSERT(WaitsOut_A, 6'(f_pre_q) + 6'(wait_q) >= 6'(Rp) && 6'(f_act_q) + 6'(wait_q) >= 6'(Rcd) && 6'(f_ref_q) + 6'(wait_q) >= 6'(Rfc) &&
             6'(f_mode_q) + 6'(wait_q) >= 6'd2 && 6'(f_any_act_q) + 6'(wait_q) >= 6'(Rcd))
  `CT_ASSERT(SlotsOut_A, 5'(slot_q) + 6'(f_any_col_q) >= 6'd8 && 6'(turn_q) + 6'(f_rd_q) >= 6'(Turn))
  `CT_ASSERT(KeepsOut_A, keep_bank_q != f_bank || 6'(f_col_q) + 6'(keep_q) >= 6'(f_wr_q ? KeepWr : KeepRd))
  `CT_ASSERT(LastBeat_A, (keep_bank_q != f_bank || f_col_q == f_any_col_q) &&
             (keep_bank_q == f_bank || f_ahead(f_col_q, f_any_col_q, 8)))
  `CT_ASSERT(AfterBeat_A, f_any_col_q != '0 && (state_q == StLook || state_q == StGo || f_any_col_q >= 5'd2))
  `CT_ASSERT(AfterActive_A, (state_q != StLook || f_any_act_q > 5'(Rcd)) &&
             (state_q == StLook || state_q == StGo || f_any_act_q > 5'(Rcd + 1)))
  `CT_ASSERT(Asked_A, !(state_q == StClose || state_q == StOpen || state_q == StGo) || f_held_q)
  `CT_ASSERT(FreshOnlyNow_A, !f_fresh_q || (state_q == StGo && f_beat_q[ColBits-3 +: 2] == f_bank && open_q[f_bank]))
  `CT_ASSERT(ActiveFirst_A, f_fresh_q || !open_q[f_bank] || f_ahead(f_act_q, f_col_q, Rcd))
  `CT_ASSERT(ClosedLast_A, open_q[f_bank] || f_ahead(f_act_q, f_pre_q, Rcd + 8))
  `CT_ASSERT(StateOpen_A, (state_q != StOpen || !open_q[bank]) && (state_q != StGo || (open_q[bank] && hit)) &&
             (open_q == '0 || !(state_q == StPower || state_q == StRefresh || state_q == StMode)))
  `CT_ASSERT(NotReady_A, ready_q ? state_q != StPower && state_q != StMode : (open_q == '0 && due_q == '0 &&
             state_q != StLook && state_q != StClose && state_q != StOpen && state_q != StGo))

  // A refresh is due for how long, and how long it can be until it comes.
  logic [EveryW-1:0] f_age;
  logic [8:0]        f_rest;
  assign f_age = EveryW'(Every - 1) - every_q;
  always_comb begin
    unique case (state_q)
      StRefresh:   f_rest = 9'(wait_q);
      StPrecharge: f_rest = 9'(wait_q) + 9'(keep_q) + 9'd32;
      StLook:      f_rest = 9'd79;
      StGo:        f_rest = 9'(wait_q) + 9'(slot_q) + 9'(turn_q) + 9'd80;
      StOpen:      f_rest = 9'(wait_q) + 9'd127;
      default:     f_rest = 9'(wait_q) + 9'(keep_q) + 9'd143;
    endcase
  end
  `CT_ASSERT(RefreshSoon_A, due_q == '0 || 32'(f_age) + 32'(f_rest) <= 32'd200)
  `CT_ASSERT(DueAge_A, every_q < EveryW'(Every) && (due_q == '0 || 32'(f_age) <= 32'd200))
  `CT_ASSERT(DueFirst_A, !ready_q || due_q != '0 || (state_q != StPrecharge && state_q != StRefresh))
