// SPDX-License-Identifier: Apache-2.0
//
// What is proven of ct_job (tb/formal/ct_job.proof), included at its end.

  // Jobs as the host counts them: descriptors one after the other; a soft reset forgets those written so far that have not begun.
  logic [15:0] f_next_q;               // the number of the job that starts next
  logic [15:0] f_front_q;              // of the job in front
  logic [7:0]  f_starts_q, f_ends_q;   // how many have started, have ended
  logic [15:0] f_desc_q;               // whose descriptor was asked for last
  logic        f_got_q;                // some of it has come
  logic [2:0]  f_from_q;               // the state of the last cycle
  logic        f_clear_q;              // the semaphores were held at zero in the last cycle
  logic        f_clean_q;              // it has ended with queues and units idle
  logic        f_err_q;                // the job in front has failed, at first with
  logic [7:0]  f_code_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      f_next_q    <= '0;
      f_starts_q  <= '0;
      f_ends_q    <= '0;
      f_from_q    <= '0;
      f_got_q     <= 1'b0;
      f_clear_q   <= 1'b0;
      f_clean_q   <= 1'b0;
      f_err_q     <= 1'b0;
    end else begin
      if (reset_i)      f_next_q <= tail;
      else if (start_o && !fe_batch) f_next_q <= f_next_q + 16'd1;
      f_starts_q  <= f_starts_q + 8'(start_o);
      f_ends_q    <= f_ends_q + 8'(finish_o);
      f_from_q    <= state_q;
      f_clear_q   <= sem_clear_o;
      f_clean_q   <= (state_q == StDrain && drained && !fail) || (f_clean_q && state_q == StComplete);
      f_err_q     <= (f_err_q || fail) && !start_o;
      if (desc_ask)                                    f_got_q <= 1'b0;
      else if (desc_beat && fe == FeDesc && !fe_batch) f_got_q <= 1'b1;
    end
  end
  always_ff @(posedge clk_i) begin
    if (start_o) f_front_q <= f_next_q;
    if (fetch_valid_o && fetch_ready_i && !req_prog) f_desc_q <= head;
    if (fail && !f_err_q) f_code_q <= fail_code;
  end

  `CT_ASSUME(IdleIsIdle_M, !units_idle_i || fetch_idle_i)
  `CT_ASSERT(HeadIsNext_A, (state_q == StDesc) ? (f_front_q == head && f_next_q == head_after)
                                               : (f_next_q == ((fe_here && !fe_batch) ? 16'(head - 16'd1) : head)))
  `CT_ASSERT(JobInOrder_A, !start_o || (!hold_i && (!old || (batch_done_valid_o && !over_start && overlap_i)) && (over_start || gate_i) &&
                                        (!over_start || overlap_i) && (fe != FeNone || (head == f_next_q && f_next_q != tail))))
  `CT_ASSERT(AsksForNext_A, !desc_ask || head == (state_q == StDesc ? f_front_q : f_next_q))
  `CT_ASSERT(AsksWhatIsWritten_A, !desc_ask || state_q == StDesc || head != tail)
  `CT_ASSERT(SlotOfJob_A, !fetch_valid_o || req_prog ||
             fetch_addr_o == ring_base_i + {13'd0, (state_q == StDesc ? f_front_q : f_next_q) & ~(16'hffff << ring_log2_i), 3'b000})
  `CT_ASSERT(HasItsDescriptor_A, !(fe_here || state_q == StProg || state_q == StRun) || (fe_here ? fe_batch : rows_o != '0) || (f_got_q && f_desc_q == (fe_here ? f_next_q : f_front_q)))
  `CT_ASSERT(EarlyIsOfJob_A, !meta || !f_got_q || f_desc_q == f_front_q)
  `CT_ASSERT(DescIsOfJob_A, fe != FeDesc || fe_batch || (request && !req_prog && !f_got_q) || f_desc_q == head)

  `CT_ASSERT(OneCompletion_A, 8'(f_starts_q - f_ends_q) == 8'(front_open) + 8'(old) && (!start_o || !front_open || over_start))
  `CT_ASSERT(RetiresFront_A, !retire || (!old && front_open))

  `CT_ASSERT(FirstErrorIsCode_A, !front_open || code == (f_err_q ? f_code_q : ct_pkg::ErrOk) || (state_q == StComplete && code == ct_pkg::ErrDead))
  `CT_ASSERT(FailedOrClean_A, !f_err_q || f_code_q != ct_pkg::ErrOk)
  `CT_ASSERT(ErrorOfFront_A, !active || f_err_q == err)
  `CT_ASSERT(CompletesClean_A, !retire || code != ct_pkg::ErrOk || over_start || f_clean_q)
  `CT_ASSERT(CleanIsComplete_A, state_q != StComplete || f_clean_q == (code == ct_pkg::ErrOk))
  `CT_ASSERT(ClearedBeforeRun_A, state_q != StRun || f_from_q == StRun || f_clear_q)
