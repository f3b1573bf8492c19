// SPDX-License-Identifier: Apache-2.0
//
// What is proven of ct_job (tb/formal/ct_job.proof), included at its end.

  // Jobs as the host counts them: descriptors one after the other; a soft reset forgets those written so far that have not begun.
  logic [15:0] f_next_q;               // the number of the job that starts next
  logic [15:0] f_front_q, f_old_q;     // of the job in front, of the one in the last stage
  logic [7:0]  f_starts_q, f_early_q, f_ends_q;  // how many have started, have left their start behind, have ended
  logic [7:0]  f_metas_q;              // of the ring have started
  logic [15:0] f_desc_q;               // whose descriptor was asked for last
  logic        f_got_q;                // some of it has come
  logic [2:0]  f_from_q;               // the state of the last cycle
  logic        f_clear_q;              // the semaphores were held at zero in the last cycle
  logic        f_clean_q;              // it has ended with queues and units idle
  logic        f_err_q;                // the job in front has failed, at first with
  logic [7:0]  f_code_q;
  logic        f_early;
  assign f_early = meta_q && !meta_d;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      f_next_q    <= '0;
      f_starts_q  <= '0;
      f_metas_q   <= '0;
      f_early_q   <= '0;
      f_ends_q    <= '0;
      f_from_q    <= '0;
      f_got_q     <= 1'b0;
      f_clear_q   <= 1'b0;
      f_clean_q   <= 1'b0;
      f_err_q     <= 1'b0;
    end else begin
      if (reset_i)      f_next_q <= tail_q;
      else if (start_o && !fe_batch) f_next_q <= f_next_q + 16'd1;
      f_starts_q  <= f_starts_q + 8'(start_o);
      f_metas_q   <= f_metas_q + 8'(start_o && !fe_batch);
      f_early_q   <= f_early_q + 8'(f_early);
      f_ends_q    <= f_ends_q + 8'(finish_o);
      f_from_q    <= state_q;
      f_clear_q   <= sem_clear_o;
      f_clean_q   <= (state_q == StDrain && settled && units_done_i && !fail) || (f_clean_q && state_q == StComplete);
      f_err_q     <= (f_err_q || fail) && !start_o;
      if (desc_ask)                                   f_got_q <= 1'b0;
      else if (desc_beat && !batch_first && !fe_batch) f_got_q <= 1'b1;
    end
  end
  always_ff @(posedge clk_i) begin
    if (start_o) f_front_q <= f_next_q;
    if (retire)  f_old_q   <= f_front_q;
    if (fetch_valid_o && fetch_ready_i && !req_prog_q) f_desc_q <= head_q;
    if (fail && !f_err_q) f_code_q <= fail_code;
  end

  // The fetch port: what it owes of the last descriptor and of the last program, in this order. It loses beats of a soft fetch if it
  // says so, of one that was dropped or flushed, and of a hard one; then it takes nothing more until the flush.
  logic [3:0]  f_dleft_q;
  logic [10:0] f_pleft_q;
  logic        f_owed, f_take, f_loose, f_loose_q, f_bad_q, f_hard_q, f_stop_q;
  logic        f_aborting;
  logic [31:0] f_prog_q;               // where the program was asked for last, and how long
  logic [10:0] f_len_q;
  assign f_owed     = f_dleft_q != '0 || f_pleft_q != '0;
  assign f_take     = fetch_valid_o && fetch_ready_i;
  assign f_loose    = f_loose_q || fetch_bad_i || fetch_drop_o || flush_o;
  assign f_aborting = state_q == StAbort || (state_q == StComplete && after_dead_q);
  `CT_ASSUME(FetchAnswers_M, f_owed || !(fetch_rvalid_i || fetch_bad_i))
  `CT_ASSUME(FetchIdle_M, f_owed ? (!fetch_idle_i || (!fetch_rvalid_i && (f_loose || f_hard_q))) : fetch_idle_i)
  `CT_ASSUME(FetchStops_M, !(f_stop_q || (fetch_idle_i && f_owed && !f_loose)) || !fetch_ready_i)
  `CT_ASSUME(IdleIsIdle_M, !units_idle_i || fetch_idle_i)
  `CT_ASSUME(Loaded_M, !(fe_q == FeProg && prog_loaded_i) || (f_pleft_q == '0 && !request_q))
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      f_dleft_q <= '0;
      f_pleft_q <= '0;
      f_loose_q <= 1'b0;
      f_bad_q   <= 1'b0;
      f_hard_q  <= 1'b0;
      f_stop_q  <= 1'b0;
    end else begin
      if (fetch_idle_i) begin
        f_dleft_q <= '0;
        f_pleft_q <= '0;
      end else if (fetch_rvalid_i && !f_bad_q) begin
        if (f_dleft_q != '0) f_dleft_q <= f_dleft_q - 4'd1;
        else                 f_pleft_q <= f_pleft_q - 11'd1;
      end
      if (f_take && !req_prog_q) f_dleft_q <= 4'd8;
      if (f_take && req_prog_q)  f_pleft_q <= fetch_len_o;
      f_loose_q <= f_loose && !fetch_idle_i;
      f_bad_q   <= (f_bad_q || fetch_bad_i || flush_o) && !fetch_idle_i;
      f_hard_q  <= (f_hard_q && !fetch_idle_i) || (f_take && !fetch_soft_o);
      f_stop_q  <= (f_stop_q || (fetch_idle_i && f_owed && !f_loose)) && !flush_o;
    end
  end
  always_ff @(posedge clk_i) begin
    if (f_take && req_prog_q) begin
      f_prog_q <= fetch_addr_o;
      f_len_q  <= fetch_len_o;
    end
  end
  `CT_ASSERT(NothingBeforeItIsAsked_A, !request_q || req_prog_q || (!f_owed && !fetch_rvalid_i && beat_q == '0 && !first_beat_q && !wait_q && fe_q == FeDesc))
  `CT_ASSERT(OwedStates_A, !f_owed || fe_q == FeDesc || fe_q == FeProg || (fe_q == FeHave && wait_q) || kill_q || f_aborting)
  `CT_ASSERT(OwedDesc_A, fe_q != FeDesc || (fe_batch && f_dleft_q == '0 && (f_pleft_q == '0 || asked_q || wait_q || f_aborting)) || (request_q && !req_prog_q) || (wait_q && lost_q) ||
             (!fe_batch && (f_dleft_q == '0 ? f_pleft_q == '0 && (f_stop_q || wait_q) : f_dleft_q == 4'd8 - 4'(beat_q))))
  `CT_ASSERT(OwedGuess_A, fe_q != FeDesc || (fe_batch && f_aborting) || f_pleft_q == '0 || wait_q || (asked_q && !request_q))
  `CT_ASSERT(OwedLoose_A, !(f_loose_q || fetch_drop_o) || !f_owed || f_aborting || kill_q || wait_q)
  `CT_ASSERT(OwedBad_A, !f_bad_q || !f_owed || f_aborting || kill_q || (wait_q && lost_q))
  `CT_ASSERT(FirstBeat_A, !(first_beat_q && fe_q == FeDesc) || beat_q == 3'd1)
  `CT_ASSERT(OwedAsked_A, !request_q || (!wait_q && f_pleft_q == '0))
  `CT_ASSERT(OwedProg_A, fe_q != FeProg || (f_dleft_q == '0 && !(request_q && f_pleft_q != '0)))
  `CT_ASSERT(OwedHave_A, fe_q != FeHave || f_aborting || (f_dleft_q == '0 && (f_pleft_q == '0 || wait_q)))
  `CT_ASSERT(OneFetch_A, !f_take || (req_prog_q ? f_pleft_q == '0 && (f_dleft_q == '0 || fe_q == FeDesc) : !f_owed))
  `CT_ASSERT(BeatOfDesc_A, !desc_beat || batch_first || fe_batch || f_dleft_q == 4'd8 - 4'(beat_q))
  `CT_ASSERT(BeatOfProg_A, !prog_valid_o || (f_dleft_q == '0 && f_prog_q == prog_q && f_len_q == {ncmds_q, 1'b0}))
  `CT_ASSERT(GuessKept_A, !(fe_q == FeDesc && asked_q && (beat_q == '0 || first_beat_q)) || guess_q)
  `CT_ASSERT(GuessIsIt_A, fe_q != FeDesc || !asked_q || request_q || wait_q || wrong_guess || (f_prog_q == prog_q && f_len_q == {ncmds_q, 1'b0}))
  `CT_ASSERT(ProgOfJob_A, fe_q != FeProg || request_q || (f_prog_q == prog_q && f_len_q == {ncmds_q, 1'b0}))

  `CT_ASSERT(HeadIsNext_A, (state_q == StDesc) ? (f_front_q == head_q && f_next_q == (reset_seen_q ? reset_head_q : 16'(head_q + 16'd1)))
                                               : (f_next_q == ((fe_here && !fe_batch) ? 16'(head_q - 16'd1) : head_q)))
  `CT_ASSERT(JobInOrder_A, !start_o || (!hold_i && (!old_q || (batch_done_valid_o && !over_start && overlap_i)) && (over_start || gate_i) &&
                                        (!over_start || overlap_i) && (fe_q != FeNone || (head_q == f_next_q && f_next_q != tail_q))))
  `CT_ASSERT(AsksForNext_A, !desc_ask || head_q == (state_q == StDesc ? f_front_q : f_next_q))
  `CT_ASSERT(AsksWhatIsWritten_A, !desc_ask || state_q == StDesc || head_q != tail_q)
  `CT_ASSERT(SlotOfJob_A, !fetch_valid_o || req_prog_q ||
             fetch_addr_o == ring_base_i + {13'd0, (state_q == StDesc ? f_front_q : f_next_q) & ~(16'hffff << ring_log2_i), 3'b000})
  `CT_ASSERT(HasItsDescriptor_A, !(fe_here || state_q == StProg || state_q == StRun) || (fe_here ? fe_batch : rows_front_q != '0) || (f_got_q && f_desc_q == (fe_here ? f_next_q : f_front_q)))
  `CT_ASSERT(EarlyIsOfJob_A, !meta_q || !f_got_q || f_desc_q == f_front_q)
  `CT_ASSERT(DescIsOfJob_A, fe_q != FeDesc || fe_batch || (request_q && !req_prog_q && !f_got_q) || f_desc_q == head_q)

  `CT_ASSERT(OneCompletion_A, 8'(f_starts_q - f_ends_q) == 8'(front_open) + 8'(old_q) && (!finish_o || old_batch_q || late_ready) && (!start_o || !front_open || over_start))
  `CT_ASSERT(OneEarly_A, 8'(f_metas_q - f_early_q) == 8'(meta_q) && (!f_early || cpl_ready))
  `CT_ASSERT(RetiresFront_A, !retire || (!old_q && front_open))

  // The batcher: form_i rises behind a cycle in which a batch was due and could be taken; then come eight beats, or as many as a reset lets.
  logic        f_form_q, f_ready_q, f_lost_q;
  logic [3:0]  f_sent_q;               // beats of the descriptor so far
  logic        f_formed_q;             // a batch has been taken and has not begun
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      f_form_q   <= 1'b0;
      f_ready_q  <= 1'b0;
      f_lost_q   <= 1'b0;
      f_sent_q   <= '0;
      f_formed_q <= 1'b0;
    end else begin
      f_form_q  <= form_i;
      f_ready_q <= batch_ready_o && batch_due_i && !form_i && !reset_i;
      f_lost_q  <= form_i && (f_lost_q || reset_i);
      f_sent_q  <= !form_i ? 4'd0 : f_sent_q + 4'(batch_valid_i);
      f_formed_q <= (batch_first || f_formed_q) && !batch_start_o && !reset_i;
    end
  end
  `CT_ASSUME(FormWhenReady_M, !form_i || f_form_q || f_ready_q)
  `CT_ASSUME(FormUntilSent_M, form_i || !f_form_q || f_lost_q || f_sent_q == 4'd8)
  `CT_ASSUME(BeatsWhileFormed_M, !batch_valid_i || (form_i && !f_lost_q && f_sent_q < 4'd8 && batch_first_i == (f_sent_q == '0)))
  `CT_ASSUME(RowsOfBatch_M, batch_rows_i != '0 && batch_rows_i <= 5'd16)
  `CT_ASSUME(DueIsOn_M, !batch_due_i || batch_on_i)
  `CT_ASSERT(SentOfForm_A, f_sent_q <= 4'd8 && (f_form_q || (f_sent_q == '0 && !f_lost_q)))
  `CT_ASSERT(KeptFree_A, !(f_ready_q || (f_form_q && !f_lost_q && f_sent_q == '0)) || (fe_q == FeNone && !own_q && !kill_q && !wait_q && !f_owed && state_q != StRun))
  `CT_ASSERT(BatchBeats_A, !(fe_batch && fe_q == FeDesc) || (f_form_q && !f_lost_q && f_sent_q == 4'(beat_q) && beat_q != '0))
  `CT_ASSERT(BatchFirst_A, !(fe_batch && fe_q == FeDesc && first_beat_q) || (!f_owed && !request_q && !asked_q && !wait_q))
  `CT_ASSERT(BatchOwed_A, !(fe_batch && fe_q == FeDesc) || f_dleft_q == '0)
  `CT_ASSERT(BatchKept_A, f_formed_q == (fe_batch && !own_q))

  `CT_ASSERT(FirstErrorIsCode_A, !front_open || code_q == (f_err_q ? f_code_q : ct_pkg::ErrOk) || (state_q == StComplete && code_q == ct_pkg::ErrDead))
  `CT_ASSERT(FailedOrClean_A, !f_err_q || f_code_q != ct_pkg::ErrOk)
  `CT_ASSERT(ErrorOfFront_A, !active || f_err_q == err_q)
  `CT_ASSERT(CompletesClean_A, !retire || code_q != ct_pkg::ErrOk || over_start || f_clean_q)
  `CT_ASSERT(CleanIsComplete_A, state_q != StComplete || f_clean_q == (code_q == ct_pkg::ErrOk))
  `CT_ASSERT(ClearedBeforeRun_A, state_q != StRun || f_from_q == StRun || f_clear_q)
