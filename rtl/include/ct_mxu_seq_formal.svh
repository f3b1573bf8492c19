// SPDX-License-Identifier: Apache-2.0
//
// What is proven of ct_mxu_seq (tb/formal/ct_mxu_seq.proof), included at its end.

  // The command in the slot: its k steps, permitted so far; how often each stream took it. Takes of Wait2 since the last row went.
  logic [11:0] f_kt_q, f_permits_q;
  logic [1:0]  f_a_takes_q, f_b_takes_q, f_w2_q;
  logic        f_slot_q, f_flush_q;
  logic [4:0]  f_sig0_q, f_sig1_q;  // what was to be signalled in the last cycle
  logic [15:0] f_wait01_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      f_slot_q  <= 1'b0;
      f_flush_q <= 1'b0;
      f_w2_q    <= '0;
      f_sig0_q  <= '0;
      f_sig1_q  <= '0;
    end else begin
      f_slot_q  <= slot_vld_q;
      f_flush_q <= flush_i;
      f_w2_q    <= flush_i || head_pop_i ? 2'd0 : f_w2_q + 2'(w2_take);
      f_sig0_q  <= sig0_pop && !flush_i ? sig0_head : 5'd0;
      f_sig1_q  <= sig1_valid_i && !flush_i ? {1'b1, sig1_id_i} : 5'd0;
    end
  end
  always_ff @(posedge clk_i) begin
    if (load) begin
      f_kt_q      <= cmd_i[ct_pkg::MmKtLsb +: 12];
      f_permits_q <= '0;
      f_a_takes_q <= '0;
      f_b_takes_q <= '0;
      f_wait01_q  <= onehot(cmd_i[ct_pkg::AllWait0Lsb+4], cmd_i[ct_pkg::AllWait0Lsb +: 4]) |
                     onehot(cmd_i[ct_pkg::AllWait1Lsb+4], cmd_i[ct_pkg::AllWait1Lsb +: 4]);
    end else begin
      f_permits_q <= f_permits_q + 12'(permit_o);
      f_a_takes_q <= f_a_takes_q + 2'(nxt_a_take_i && nxt_a_valid_o);
      f_b_takes_q <= f_b_takes_q + 2'(nxt_b_take_i && nxt_b_valid_o);
    end
  end
  `CT_ASSERT(LeftIsRest_A, !slot_vld_q || f_kt_q == f_permits_q + (k_end_q ? 12'd0 : k_left_q + 12'd1))
  `CT_ASSERT(LeftInRange_A, !slot_vld_q || k_end_q || k_left_q < f_kt_q)
  `CT_ASSERT(TakenIsTaken_A, !slot_vld_q || (f_a_takes_q == 2'(a_taken_q) && f_b_takes_q == 2'(b_taken_q)))
  `CT_ASSERT(OneWaitOfTwo_A, !slot_vld_q || f_wait01_q == wait01_q)
  `CT_ASSERT(W2Taken_A, f_w2_q == 2'(w2_taken_q))
  // What is said of a command when it leaves the slot, and on the way.
  `CT_ASSERT(EveryKStepOnce_A, !f_slot_q || f_flush_q || slot_vld_q || (f_permits_q == f_kt_q && f_a_takes_q == 2'd1 && f_b_takes_q == 2'd1))
  `CT_ASSERT(OperationBounded_A, !permit_o || (slot_vld_q && f_permits_q < f_kt_q))
  `CT_ASSERT(TakesItsWaits_A, sem_dec_o == ((permit_o ? f_wait01_q : 16'd0) | onehot(w2_take, head_w2_id_i)))
  `CT_ASSERT(Wait2Once_A, !head_pop_i || !head_w2_i || f_w2_q + 2'(w2_take) == 2'd1)
  `CT_ASSERT(SignalsOnce_A, sem_inc_o == (onehot(f_sig0_q[4], f_sig0_q[3:0]) | onehot(f_sig1_q[4], f_sig1_q[3:0])) &&
                            !(f_sig0_q[4] && f_sig0_q == f_sig1_q))
  `CT_ASSERT(SignalsWhatIsDone_A, !sig0_pop || (sig0_vld && kdone_a_q != '0 && kdone_b_q != '0))
  `CT_ASSERT(HaltStops_A, !(halt_i || flush_i) || (!permit_o && !w2_take && sem_dec_o == '0))

  // Walks. What comes is MM, WPIX or WTAP; each goes as what it is, once, a walk when both streams have taken all products before.
  logic [5:0]  f_op;
  logic [1:0]  f_open_q;  // the stream of A, of B has not taken the last product
  logic [26:0] f_walk_q;  // its Walk and Pos
  mxu_a_t      f_nxt_a;
  assign f_op    = cmd_i[ct_pkg::AllOpLsb +: ct_pkg::AllOpW];
  assign f_nxt_a = nxt_a_o;
  `CT_ASSUME(ProductsOnly_M, !cmd_valid_i || f_op == ct_pkg::OpMm || f_op == ct_pkg::OpWpix || f_op == ct_pkg::OpWtap)
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni)      f_open_q <= 2'b00;
    else if (flush_i) f_open_q <= 2'b00;
    else if (load)    f_open_q <= 2'b11;
    else              f_open_q <= f_open_q & ~{nxt_b_take_i, nxt_a_take_i};
  end
  always_ff @(posedge clk_i) begin
    if (load) f_walk_q <= {cmd_i[ct_pkg::MmWalkLsb], cmd_i[ct_pkg::MmPosLsb +: ct_pkg::MmPosW]};
  end
  `CT_ASSERT(EachAsItIs_A, Conv == 0 || {load, wtap_o, wpix_o} ==
                           (cmd_valid_i && cmd_ready_o ? {f_op == ct_pkg::OpMm, f_op == ct_pkg::OpWtap, f_op == ct_pkg::OpWpix} : 3'b000))
  `CT_ASSERT(OpenIsOffered_A, f_open_q == {nxt_b_valid_o, nxt_a_valid_o})
  `CT_ASSERT(WalkBehindAll_A, !(wpix_o || wtap_o) || f_open_q == 2'b00)
  `CT_ASSERT(WalkIsSaid_A, Conv == 0 || !nxt_a_valid_o || {f_nxt_a.walk, f_nxt_a.pos} == f_walk_q)
