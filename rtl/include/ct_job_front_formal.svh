// SPDX-License-Identifier: Apache-2.0
//
// What is proven of the front end of ct_job (tb/formal/ct_job.proof), included at the end of ct_job_front.

  // The fetch port: what it owes of the last descriptor and of the last program, in this order. It loses beats of a soft fetch if it
  // says so, of one that was dropped or flushed, and of a hard one; then it takes nothing more until the flush.
  logic [3:0]  f_dleft_q;
  logic [10:0] f_pleft_q;
  logic        f_owed, f_take, f_loose, f_loose_q, f_bad_q, f_hard_q, f_stop_q;
  logic [31:0] f_prog_q;               // where the program was asked for last, and how long
  logic [10:0] f_len_q;
  assign f_owed     = f_dleft_q != '0 || f_pleft_q != '0;
  assign f_take     = fetch_valid_o && fetch_ready_i;
  assign f_loose    = f_loose_q || fetch_bad_i || fetch_drop_o || flush_i;
  `CT_ASSUME(FetchAnswers_M, f_owed || !(fetch_rvalid_i || fetch_bad_i))
  `CT_ASSUME(FetchIdle_M, f_owed ? (!fetch_idle_i || (!fetch_rvalid_i && (f_loose || f_hard_q))) : fetch_idle_i)
  `CT_ASSUME(FetchStops_M, !(f_stop_q || (fetch_idle_i && f_owed && !f_loose)) || !fetch_ready_i)
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
      f_bad_q   <= (f_bad_q || fetch_bad_i || flush_i) && !fetch_idle_i;
      f_hard_q  <= (f_hard_q && !fetch_idle_i) || (f_take && !fetch_soft_o);
      f_stop_q  <= (f_stop_q || (fetch_idle_i && f_owed && !f_loose)) && !flush_i;
    end
  end
  always_ff @(posedge clk_i) begin
    if (f_take && req_prog_q) begin
      f_prog_q <= fetch_addr_o;
      f_len_q  <= fetch_len_o;
    end
  end
  `CT_ASSERT(NothingBeforeItIsAsked_A, !request_q || req_prog_q || (!f_owed && !fetch_rvalid_i && beat_q == '0 && !first_beat_q && !wait_q && fe_q == FeDesc))
  `CT_ASSERT(OwedStates_A, !f_owed || fe_q == FeDesc || fe_q == FeProg || (fe_q == FeHave && wait_q) || kill_q || flush_i)
  `CT_ASSERT(OwedDesc_A, fe_q != FeDesc || (fe_batch && f_dleft_q == '0 && (f_pleft_q == '0 || asked_q || wait_q || flush_i)) || (request_q && !req_prog_q) || (wait_q && lost_q) ||
             (!fe_batch && (f_dleft_q == '0 ? f_pleft_q == '0 && (f_stop_q || wait_q) : f_dleft_q == 4'd8 - 4'(beat_q))))
  `CT_ASSERT(OwedGuess_A, fe_q != FeDesc || (fe_batch && flush_i) || f_pleft_q == '0 || wait_q || (asked_q && !request_q))
  `CT_ASSERT(OwedLoose_A, !(f_loose_q || fetch_drop_o) || !f_owed || flush_i || kill_q || wait_q)
  `CT_ASSERT(OwedBad_A, !f_bad_q || !f_owed || flush_i || kill_q || (wait_q && lost_q))
  `CT_ASSERT(FirstBeat_A, !(first_beat_q && fe_q == FeDesc) || beat_q == 3'd1)
  `CT_ASSERT(OwedAsked_A, !request_q || (!wait_q && f_pleft_q == '0))
  `CT_ASSERT(OwedProg_A, fe_q != FeProg || (f_dleft_q == '0 && !(request_q && f_pleft_q != '0)))
  `CT_ASSERT(OwedHave_A, fe_q != FeHave || flush_i || (f_dleft_q == '0 && (f_pleft_q == '0 || wait_q)))
  `CT_ASSERT(OneFetch_A, !f_take || (req_prog_q ? f_pleft_q == '0 && (f_dleft_q == '0 || fe_q == FeDesc) : !f_owed))
  `CT_ASSERT(BeatOfDesc_A, !desc_beat || batch_first || fe_batch || f_dleft_q == 4'd8 - 4'(beat_q))
  `CT_ASSERT(BeatOfProg_A, !prog_valid_o || (f_dleft_q == '0 && f_prog_q == prog_q && f_len_q == {ncmds_q, 1'b0}))
  `CT_ASSERT(GuessKept_A, !(fe_q == FeDesc && asked_q && (beat_q == '0 || first_beat_q)) || guess_q)
  `CT_ASSERT(GuessIsIt_A, fe_q != FeDesc || !asked_q || request_q || wait_q || wrong_guess || (f_prog_q == prog_q && f_len_q == {ncmds_q, 1'b0}))
  `CT_ASSERT(ProgOfJob_A, fe_q != FeProg || request_q || (f_prog_q == prog_q && f_len_q == {ncmds_q, 1'b0}))

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
      f_formed_q <= (batch_first || f_formed_q) && !(start_i && fe_batch) && !reset_i;
    end
  end
  `CT_ASSUME(FormWhenReady_M, !form_i || f_form_q || f_ready_q)
  `CT_ASSUME(FormUntilSent_M, form_i || !f_form_q || f_lost_q || f_sent_q == 4'd8)
  `CT_ASSUME(BeatsWhileFormed_M, !batch_valid_i || (form_i && !f_lost_q && f_sent_q < 4'd8 && batch_first_i == (f_sent_q == '0)))
  `CT_ASSUME(RowsOfBatch_M, batch_rows_i != '0 && batch_rows_i <= 5'd16)
  `CT_ASSUME(DueIsOn_M, !batch_due_i || batch_on_i)
  `CT_ASSERT(SentOfForm_A, f_sent_q <= 4'd8 && (f_form_q || (f_sent_q == '0 && !f_lost_q)))
  `CT_ASSERT(KeptFree_A, !(f_ready_q || (f_form_q && !f_lost_q && f_sent_q == '0)) || (fe_q == FeNone && !own_q && !kill_q && !wait_q && !f_owed && state_i != StRun))
  `CT_ASSERT(BatchBeats_A, !(fe_batch && fe_q == FeDesc) || (f_form_q && !f_lost_q && f_sent_q == 4'(beat_q) && beat_q != '0))
  `CT_ASSERT(BatchFirst_A, !(fe_batch && fe_q == FeDesc && first_beat_q) || (!f_owed && !request_q && !asked_q && !wait_q))
  `CT_ASSERT(BatchOwed_A, !(fe_batch && fe_q == FeDesc) || f_dleft_q == '0)
  `CT_ASSERT(BatchKept_A, f_formed_q == (fe_batch && !own_q))
