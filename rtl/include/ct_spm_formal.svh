// SPDX-License-Identifier: Apache-2.0
//
// What is proven of ct_spm (tb/formal/ct_spm.proof), included at its end.

  // Any two reads that want one bank: f_port's is the earlier.
  (* anyconst *) logic [2:0] f_port, f_other;
  logic             f_both, f_over;
  logic [BankW-1:0] f_wants;
  logic             f_some;  // somebody's read of the bank that f_port wants is served
  assign f_wants = rd_bank[BankW*f_port +: BankW];
  assign f_both  = f_port < f_other && f_other < 3'(Ports) && rd_valid[f_port] && rd_valid[f_other] && f_wants == rd_bank[BankW*f_other +: BankW];
  assign f_over  = rd_yield[f_port] == rd_yield[f_other] ? by_age && later_q[Ports*f_port + f_other] && (f_other != 3'(Dbg) || rd_valid_i[Dbg])
                                                         : rd_yield[f_port];
  always_comb begin
    f_some = 1'b0;
    for (int p = 0; p < Ports; p++) f_some = f_some || (rd_valid[p] && rd_ready[p] && rd_bank[BankW*p +: BankW] == f_wants);
  end
  `CT_ASSERT(OneReadPerBank_A, !f_both || !(rd_ready[f_port] && rd_ready[f_other]))
  `CT_ASSERT(ReadsByRank_A, !f_both || !(f_over ? rd_ready[f_port] : rd_ready[f_other]))
  // The order is one of all ports: of no three is each behind another.
  logic f_total;
  always_comb begin
    f_total = 1'b1;
    for (int c = 2; c < Ports; c++) begin
      for (int b = 1; b < c; b++) begin
        for (int a = 0; a < b; a++) begin
          if (later_q[Ports*a + b] == later_q[Ports*b + c] && later_q[Ports*a + c] != later_q[Ports*a + b]) f_total = 1'b0;
        end
      end
    end
  end
  `CT_ASSERT(OrderIsTotal_A, f_total)
  // How long the read of f_port has waited, and how many ports are before it: without strict_i each cycle takes one away, with it each
  // tick that it has been seen at before.
  logic [2:0] f_before, f_wait_q;
  logic [8:0] f_strict_q;
  logic       f_waits;
  assign f_waits = rd_valid_i[f_port] && !rd_ready[f_port];
  always_comb begin
    f_before = 3'd0;
    for (int p = 0; p < Ports; p++) begin
      if (p[2:0] < f_port) f_before = f_before + 3'(!later_q[Ports*p + f_port]);
      if (p[2:0] > f_port) f_before = f_before + 3'(later_q[Ports*f_port + p]);
    end
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      f_wait_q   <= '0;
      f_strict_q <= '0;
    end else begin
      f_wait_q   <= f_waits && !strict_i ? f_wait_q + 3'd1 : 3'd0;
      f_strict_q <= f_waits && !rd_yield[f_port] ? f_strict_q + 9'd1 : 9'd0;
    end
  end
  `CT_ASSERT(WaitAndBefore_A, f_port >= 3'(Ports) || 4'(f_wait_q) + 4'(f_before) <= 4'd4)
  `CT_ASSERT(WaitBound_A, f_port >= 3'(Ports) || f_wait_q <= 3'd4)
  `CT_ASSERT(SeenWaits_A, f_port >= 3'(Ports) || f_strict_q <= (seen_q[f_port] ? 9'd64 * (9'd5 - 9'(f_before)) : 9'd0) + 9'(tick_q))
  `CT_ASSERT(StrictBound_A, f_port >= 3'(Ports) || f_strict_q <= 9'd384)
  `CT_ASSERT(WantedIsServed_A, f_port >= 3'(Ports) || !rd_valid[f_port] || f_some)
  `CT_ASSERT(DebugWordAlone_A, dbg_q != DbgWait || !vld1_q[Dbg])
