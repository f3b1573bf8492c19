// SPDX-License-Identifier: Apache-2.0
//
// Command sequencer of one MXU context: takes MM commands, takes and gives their semaphores.
//
// Commands    A command waits in the slot here until both streams (ct_mxu_agen, ct_mxu_bload) have copied it and its k steps
//             have all been permitted; then the next one is taken from the queue. The streams' copies are one half of a double
//             buffer, this slot the other: a stream that ends a command starts the next in the following cycle.
// k steps     permit_o is a pulse for each k step, in order, once Wait0 and Wait1 are both available; both are taken in that
//             cycle. Both streams count permits: a stream may not read a k step's words before its permit. Up to KSteps k steps
//             may be permitted and not yet signalled.
// Walks       (Conv) WPIX and WTAP are executed as they are taken from the queue: wpix_o, wtap_o, with the command where it lies. By then both streams have
//             all MMs before.
// Wait2       belongs to the row at the head of the row buffer (head_*_i) when that is the first row of an output tile. It is taken
//             as soon as it is available; w2_ok_o says that the head may enter the array. A k step that waits for a semaphore which
//             an earlier tile's Wait2 still has to take is held back, so that counts are taken in program order.
// Signals     Sig0 of a k step when both streams have reported all its words read; Sig1 when the array reports a final tile.
//             sem_inc_o is registered. If both name one semaphore in one cycle, Sig0 waits a cycle.
// Duplicates  A command that names one semaphore in Wait0 and Wait1 takes one count for both.
// Halt        halt_i (after an error, until the flush) stops everything but Sig1 of rows already in the array.
// Flush       flush_i drops everything; it must be held until idle_o.
//
// Parameters
//   KSteps  k steps between permit and Sig0, at least 2
//   Conv    1: there are walks

`default_nettype none
`include "ct_assert.svh"

module ct_mxu_seq #(
  parameter int unsigned KSteps = 8,
  parameter int unsigned Conv   = 0
) (
  input  logic             clk_i,
  input  logic             rst_ni,

  input  logic             flush_i,
  input  logic             halt_i,

  input  logic             cmd_valid_i,
  input  logic [255:0]     cmd_i,
  output logic             cmd_ready_o,

  input  logic [15:0]      sem_nz_i,
  output logic [15:0]      sem_dec_o,      // combinational
  output logic [15:0]      sem_inc_o,      // registered

  // The command in the slot, for each stream until it has taken it.
  output logic             nxt_a_valid_o,
  output logic [ct_pkg::MxuAW-1:0] nxt_a_o,  // mxu_a_t
  input  logic             nxt_a_take_i,
  output logic             nxt_b_valid_o,
  output logic [ct_pkg::MxuBW-1:0] nxt_b_o,  // mxu_b_t
  input  logic             nxt_b_take_i,

  output logic             wpix_o,         // there is one in cmd_i, and it goes
  output logic             wtap_o,

  output logic             permit_o,       // one more k step may be read
  input  logic             kdone_a_i,      // the A words of one more k step have arrived
  input  logic             kdone_b_i,      // its B words

  // The row at the head of the row buffer.
  input  logic             head_w2_i,      // it must take Wait2 before it enters the array
  input  logic             head_w2_end_i,  // that is the last Wait2 of its command
  input  logic [3:0]       head_w2_id_i,
  input  logic             head_pop_i,     // it enters the array in this cycle
  output logic             w2_ok_o,

  input  logic             sig1_valid_i,   // a final tile is being written
  input  logic [3:0]       sig1_id_i,

  output logic             wait_sem_o,     // the next k step lacks a semaphore
  output logic             idle_o
);

  if (KSteps < 2) begin : g_check_ksteps
    ct_error_mxu_ksteps_must_be_at_least_2 u_error ();
  end

  `include "ct_mxu_bundles.svh"

  localparam int unsigned KCntW = $clog2(KSteps + 1);

  function automatic logic [15:0] onehot(input logic en, input logic [3:0] id);
    onehot = en ? (16'd1 << id) : 16'd0;
  endfunction

  // The slot.
  logic             slot_vld_d, slot_vld_q;
  logic             a_taken_d, a_taken_q;
  logic             b_taken_d, b_taken_q;
  logic             k_end_d, k_end_q;      // all k steps are permitted
  logic             k_first_d, k_first_q;  // the next k step is the command's first
  logic [11:0]      k_left_d, k_left_q;    // k steps after the next one
  logic [15:0]      wait01_q;              // one bit for each semaphore a k step takes
  logic [4:0]       wait2_q, sig0_q;
  mxu_a_t           nxt_a_d, nxt_a_q;
  mxu_b_t           nxt_b_d, nxt_b_q;
  logic             load, is_walk;

  logic [11:0]      kt_m1;
  logic [3:0]       nt_m1;
  logic [7:0]       rows_m1;

  // Wait2 of commands whose tiles have not all been started.
  logic             w2_take;
  logic             w2_taken_d, w2_taken_q;  // the head has its count already
  logic [6:0]       w2_cmds_d, w2_cmds_q;    // commands
  logic [15:0]      w2_mask_d, w2_mask_q;    // semaphores they name

  logic             permit;
  logic             sems_ready;
  logic             sems_free;
  logic             sig_ready;

  // Sig0 of the k steps permitted, in order.
  logic             sig0_vld, sig0_pop;
  logic [4:0]       sig0_head;
  logic [KCntW-1:0] sig0_count;              // k steps permitted, not yet signalled
  logic [KCntW-1:0] kdone_a_d, kdone_a_q;    // k steps read by the A stream, not yet signalled
  logic [KCntW-1:0] kdone_b_d, kdone_b_q;
  logic [15:0]      inc_d, inc_q;

  assign kt_m1   = cmd_i[ct_pkg::MmKtLsb +: 12] - 12'd1;
  assign nt_m1   = cmd_i[ct_pkg::MmNtLsb +: 4] - 4'd1;
  assign rows_m1 = cmd_i[ct_pkg::MmRowsLsb +: 8] - 8'd1;
  always_comb begin
    nxt_a_d.a       = cmd_i[ct_pkg::MmALsb +: 20];
    nxt_a_d.am      = cmd_i[ct_pkg::MmAMLsb +: 16];
    nxt_a_d.ak      = cmd_i[ct_pkg::MmAKLsb +: 16];
    nxt_a_d.trans   = cmd_i[ct_pkg::MmATransLsb];
    nxt_a_d.accum   = cmd_i[ct_pkg::MmAccumLsb];
    nxt_a_d.kt_m1   = kt_m1;
    nxt_a_d.nt_m1   = nt_m1[2:0];
    nxt_a_d.rows_m1 = rows_m1[6:0];
    nxt_a_d.acc     = cmd_i[ct_pkg::MmAccLsb +: 4];
    nxt_a_d.accn    = cmd_i[ct_pkg::MmAccNLsb +: 4];
    nxt_a_d.wait2   = cmd_i[ct_pkg::AllWait2Lsb +: 5];
    nxt_a_d.sig1    = cmd_i[ct_pkg::AllSig1Lsb +: 5];
    nxt_a_d.walk    = Conv != 0 && cmd_i[ct_pkg::MmWalkLsb];
    nxt_a_d.pos     = (Conv != 0) ? cmd_i[ct_pkg::MmPosLsb +: ct_pkg::MmPosW] : '0;
    nxt_b_d.b       = cmd_i[ct_pkg::MmBLsb +: 20];
    nxt_b_d.bn      = cmd_i[ct_pkg::MmBNLsb +: 16];
    nxt_b_d.bk      = cmd_i[ct_pkg::MmBKLsb +: 16];
    nxt_b_d.trans   = cmd_i[ct_pkg::MmBTransLsb];
    nxt_b_d.kt_m1   = kt_m1;
    nxt_b_d.nt_m1   = nt_m1[2:0];
  end

  // Register numbers were resolved at dispatch; the other bits are not defined for MM.
  logic unused_bits;
  assign unused_bits = ^{cmd_i, nt_m1[3], rows_m1[7]};

  assign cmd_ready_o   = !slot_vld_q && !flush_i && !halt_i;
  assign load          = cmd_valid_i && cmd_ready_o && !is_walk;
  assign is_walk       = Conv != 0 && cmd_i[1:0] != 2'b00;
  assign wpix_o        = cmd_valid_i && cmd_ready_o && is_walk && cmd_i[0];
  assign wtap_o        = cmd_valid_i && cmd_ready_o && is_walk && cmd_i[1];
  assign nxt_a_valid_o = slot_vld_q && !a_taken_q;
  assign nxt_b_valid_o = slot_vld_q && !b_taken_q;
  assign nxt_a_o       = nxt_a_q;
  assign nxt_b_o       = nxt_b_q;

  // Wait2 first: the k steps give way to it if they want the same semaphore.
  assign w2_take = head_w2_i && !w2_taken_q && sem_nz_i[head_w2_id_i] && !halt_i && !flush_i;
  assign w2_ok_o = !head_w2_i || w2_taken_q || sem_nz_i[head_w2_id_i];

  assign sems_ready = (wait01_q & ~sem_nz_i) == '0;
  assign sems_free  = (wait01_q & w2_mask_q) == '0;
  assign permit     = slot_vld_q && !k_end_q && sems_ready && sems_free && sig_ready && !halt_i && !flush_i;
  assign permit_o   = permit;
  assign sem_dec_o  = (permit ? wait01_q : 16'd0) | onehot(w2_take, head_w2_id_i);
  assign wait_sem_o = slot_vld_q && !k_end_q && !(sems_ready && sems_free);

  always_comb begin
    a_taken_d  = a_taken_q || nxt_a_take_i;
    b_taken_d  = b_taken_q || nxt_b_take_i;
    k_end_d    = k_end_q || (permit && k_left_q == '0);
    k_first_d  = k_first_q && !permit;
    k_left_d   = permit ? k_left_q - 12'd1 : k_left_q;
    slot_vld_d = slot_vld_q && !(a_taken_d && b_taken_d && k_end_d);
    if (load) begin
      slot_vld_d = 1'b1;
      a_taken_d  = 1'b0;
      b_taken_d  = 1'b0;
      k_end_d    = 1'b0;
      k_first_d  = 1'b1;
      k_left_d   = kt_m1;
    end
    if (flush_i) slot_vld_d = 1'b0;
  end

  always_comb begin
    w2_taken_d = (w2_taken_q || w2_take) && !head_pop_i;
    w2_cmds_d  = w2_cmds_q;
    w2_mask_d  = w2_mask_q;
    if (w2_take && head_w2_end_i) begin
      w2_cmds_d = w2_cmds_d - 7'd1;
      if (w2_cmds_d == '0) w2_mask_d = '0;
    end
    if (permit && k_first_q && wait2_q[4]) begin
      w2_cmds_d = w2_cmds_d + 7'd1;
      w2_mask_d = w2_mask_d | onehot(1'b1, wait2_q[3:0]);
    end
    if (flush_i) begin
      w2_taken_d = 1'b0;
      w2_cmds_d  = '0;
      w2_mask_d  = '0;
    end
  end

  ct_fifo #(.Width(5), .Depth(KSteps)) u_sig0 (
    .clk_i, .rst_ni,
    .valid_i(permit), .ready_o(sig_ready), .data_i(sig0_q),
    .valid_o(sig0_vld), .ready_i(sig0_pop || flush_i), .data_o(sig0_head),
    .count_o(sig0_count)
  );

  assign sig0_pop = sig0_vld && kdone_a_q != '0 && kdone_b_q != '0 && !halt_i &&
                    !(sig0_head[4] && sig1_valid_i && sig0_head[3:0] == sig1_id_i);

  always_comb begin
    kdone_a_d = kdone_a_q + KCntW'(kdone_a_i) - KCntW'(sig0_pop);
    kdone_b_d = kdone_b_q + KCntW'(kdone_b_i) - KCntW'(sig0_pop);
    inc_d     = onehot(sig0_pop && sig0_head[4], sig0_head[3:0]) | onehot(sig1_valid_i, sig1_id_i);
    if (flush_i) begin
      kdone_a_d = '0;
      kdone_b_d = '0;
      inc_d     = '0;
    end
  end

  assign sem_inc_o = inc_q;
  assign idle_o    = !slot_vld_q && !sig0_vld && inc_q == '0;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      slot_vld_q <= 1'b0;
      a_taken_q  <= 1'b0;
      b_taken_q  <= 1'b0;
      k_end_q    <= 1'b0;
      k_first_q  <= 1'b0;
      k_left_q   <= '0;
      w2_taken_q <= 1'b0;
      w2_cmds_q  <= '0;
      w2_mask_q  <= '0;
      kdone_a_q  <= '0;
      kdone_b_q  <= '0;
      inc_q      <= '0;
    end else begin
      slot_vld_q <= slot_vld_d;
      a_taken_q  <= a_taken_d;
      b_taken_q  <= b_taken_d;
      k_end_q    <= k_end_d;
      k_first_q  <= k_first_d;
      k_left_q   <= k_left_d;
      w2_taken_q <= w2_taken_d;
      w2_cmds_q  <= w2_cmds_d;
      w2_mask_q  <= w2_mask_d;
      kdone_a_q  <= kdone_a_d;
      kdone_b_q  <= kdone_b_d;
      inc_q      <= inc_d;
    end
  end

  always_ff @(posedge clk_i) begin
    if (load) begin
      nxt_a_q  <= nxt_a_d;
      nxt_b_q  <= nxt_b_d;
      wait01_q <= onehot(cmd_i[ct_pkg::AllWait0Lsb+4], cmd_i[ct_pkg::AllWait0Lsb +: 4]) |
                  onehot(cmd_i[ct_pkg::AllWait1Lsb+4], cmd_i[ct_pkg::AllWait1Lsb +: 4]);
      wait2_q  <= cmd_i[ct_pkg::AllWait2Lsb +: 5];
      sig0_q   <= cmd_i[ct_pkg::AllSig0Lsb +: 5];
    end
  end

  // A count is seen before it is taken, and each command's Wait2 is accounted for once.
  `CT_ASSERT(TakesWhatIsThere_A, (sem_dec_o & ~sem_nz_i) == '0)
  `CT_ASSERT(OneTakerOfASemaphore_A, !(permit && w2_take && wait01_q[head_w2_id_i]))
  `CT_ASSERT(Wait2Counted_A, !w2_take || w2_cmds_q != '0)
  `CT_ASSERT(KStepsCounted_A, kdone_a_q <= sig0_count && kdone_b_q <= sig0_count)

  // The streams take what is offered and end what was permitted; a row that needs Wait2 belongs to a command whose first k step was
  // permitted, and goes when it has it.
  logic flushed_q;  // in the last cycle, and something was left
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) flushed_q <= 1'b0;
    else         flushed_q <= flush_i && !idle_o;
  end
  `CT_ASSUME(FlushUntilIdle_M, !flushed_q || flush_i)
  `CT_ASSUME(KtNotZero_M, !load || cmd_i[ct_pkg::MmKtLsb +: 12] != 12'd0)
  `CT_ASSUME(TakesOffers_M, (!nxt_a_take_i || nxt_a_valid_o || flush_i) && (!nxt_b_take_i || nxt_b_valid_o || flush_i))
  `CT_ASSUME(EndsPermitted_M, flush_i || ((!kdone_a_i || kdone_a_q < sig0_count) && (!kdone_b_i || kdone_b_q < sig0_count)))
  `CT_ASSUME(HeadWasPermitted_M, !head_w2_i || w2_taken_q || flush_i || (w2_cmds_q != '0 && w2_mask_q[head_w2_id_i]))
  `CT_ASSUME(HeadHasWait2_M, !head_pop_i || (w2_ok_o && !halt_i && !flush_i))

`ifdef FORMAL
  `include "ct_mxu_seq_formal.svh"
`endif

  `CT_COVER(SigsCollide_C, sig0_vld && sig0_head[4] && sig1_valid_i && sig0_head[3:0] == sig1_id_i && kdone_a_q != '0 && kdone_b_q != '0)
  `CT_COVER(HeldForWait2_C, slot_vld_q && !k_end_q && sems_ready && !sems_free)

endmodule

`default_nettype wire
