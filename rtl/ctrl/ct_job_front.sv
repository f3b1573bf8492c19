// SPDX-License-Identifier: Apache-2.0
//
// The front end of ct_job: reads the descriptor and the program of the next job, whether it has begun or not, and takes batches from ct_batch.
//
//     NONE --> DESC ----------------> PROG ------------------> NONE, when the program of the running job has arrived
//               |  8 beats             ^ |
//               |  (program asked for  | | fetch_bad_i
//               |  with the second)    | v
//               +--------------------> HAVE     (bad NCMDS or FLAGS; not to run; program lost or wrongly guessed)
//
// own_o: its job is the one in front, the main machine's. here_o: the next job's descriptor is here; batch_o: it is a batch.
//
// Fetches    What is asked for before its job begins is soft: if anything is wrong with it (fetch_bad_i), it is forgotten and asked for
//            again when the job has begun; only then is it an error. If the last two programs were the same, this program is
//            asked for together with the next descriptor, as a guess, soft, too; it is fresh from memory, so only address and length are
//            guessed. A wrong guess costs the answers to what was asked for (fetch_drop_o forgets the rest of it).
// Turns      a batch and the ring never take the front end in the same cycle: while a batch is due it has its turn, unless the ring has (and
//            then there is something in the ring that can be taken; what can not does not count).
// Batches    as ct_job says. A flush does not lose a batch that has not begun; a soft reset does.
// Stages     the program is asked for in the cycle after the descriptor's second beat; ct_fetch hears of a program and its start a cycle after that is
//            decided (until then what it says is of the one before: prog_first_o is what it says of this one).
// Cancelled  cancel_next_i: the next job of the ring is not to run. It begins and ends at once (doomed_o), though a batch may go before.

`default_nettype none
`include "ct_assert.svh"

module ct_job_front (
  input  logic         clk_i,
  input  logic         rst_ni,

  input  logic         reset_i,
  input  logic         hold_i,
  input  logic         freeze_i,

  // The main machine: its state, what it does in this cycle, what comes next.
  input  logic [2:0]   state_i,
  input  logic         active_i,       // a job is in front that can still fail
  input  logic         start_i,        // the next job begins
  input  logic         fail_i,
  input  logic         desc_over_i,    // DESC is left
  input  logic         drained_i,      // DRAIN is over
  input  logic         to_abort_i,     // ABORT comes next, or stays
  input  logic         flush_next_i,   // the next cycle flushes
  input  logic         flush_i,        // this one does
  input  logic         silent_i,
  input  logic         meta_i,         // what is known of its job at the start still needs the registers here
  input  logic         ring_bad_i,     // the last completion of the ring had an error
  input  logic         cpl_ready_i,    // there is room for one
  input  logic         cancel_next_i,

  // The ring: where the next descriptor lies, whether there is one.
  input  logic [31:0]  slot_i,
  input  logic         ring_more_i,

  output logic [1:0]   fe_o,
  output logic         own_o,
  output logic         here_o,
  output logic         batch_o,
  output logic         ring_o,         // it holds, or can take, something of the ring
  output logic         kill_o,         // fetches for a job that a reset has dropped are outstanding
  output logic         request_o,      // a fetch is offered,
  output logic         req_prog_o,     // of the program
  output logic         desc_ask_o,
  output logic         desc_beat_o,
  output logic         desc_last_o,
  output logic         bad_desc_o,
  output logic         ncmds_bad_o,
  output logic         skip_o,         // the job in front is not to run: what it continues has failed
  output logic         doomed_o,       // nor is this one: it was cancelled before it began
  output logic         beside_o,       // the next job can start beside the one before
  output logic [31:0]  tag_o,
  output logic [31:0]  version_o,
  output logic [31:0]  limit_o,
  output logic         front_isb_o,    // the job in front is a batch,
  output logic [4:0]   rows_o,         // of so many requests

  // Batches.
  output logic         batch_ready_o,
  input  logic         batch_due_i,
  input  logic         batch_on_i,
  input  logic         form_i,
  input  logic         batch_valid_i,
  input  logic         batch_first_i,
  input  logic [127:0] batch_data_i,
  input  logic [4:0]   batch_rows_i,

  // DMA fetch client.
  output logic         fetch_valid_o,
  input  logic         fetch_ready_i,
  output logic [31:0]  fetch_addr_o,
  output logic [10:0]  fetch_len_o,
  output logic         fetch_soft_o,
  output logic         fetch_drop_o,
  input  logic         fetch_bad_i,
  input  logic         fetch_idle_i,
  input  logic         fetch_rvalid_i,
  input  logic [127:0] fetch_rdata_i,

  // ct_fetch.
  output logic         prog_load_o,
  output logic         prog_start_o,
  output logic [9:0]   prog_ncmds_o,
  output logic         prog_valid_o,
  output logic         arg_we_o,
  output logic [2:0]   arg_group_o,
  output logic [127:0] arg_data_o,
  input  logic         prog_first_i,
  input  logic         prog_loaded_i,
  output logic         prog_first_o
);

  `include "ct_job_states.svh"

  fe_e         fe_d, fe_q;
  logic        own_d, own_q;           // its job is the one in front
  logic        request_d, request_q;   // a fetch is offered:
  logic        req_prog_d, req_prog_q; // of the program
  logic        req_soft_d, req_soft_q;
  logic        asked_d, asked_q;       // the program has been asked for
  logic        guess_d, guess_q;       // before the descriptor was known
  logic        wait_d, wait_q;         // nothing new until all fetches are answered
  logic        lost_d, lost_q;         // a soft fetch failed: no other one
  logic        drop_d, drop_q;
  logic        kill_d, kill_q;
  logic        doomed_d, doomed_q;     // the next job of the ring is cancelled before its start (a batch may go before)
  logic [4:0]  fe_rows_d, fe_rows_q;   // requests of the batch it holds, 0: of the ring
  logic        fe_isb_d, fe_isb_q;     // what it holds, or held last, is a batch
  logic [4:0]  rows_front_q;           // the same of the job in front
  logic        front_isb_q;
  logic        ring_turn_q;            // the last one taken was a batch
  logic        loaded_q, begun_q;      // what prog_load_o and prog_start_o say has been said

  logic        desc_ask, desc_beat, desc_last, prog_ask;
  logic        desc_drop;
  logic        fe_here, fe_batch;
  logic        batch_first;            // a batch comes
  logic        ring_ok;                // the ring may be looked at
  logic        fetch_quiet;
  logic        wrong_guess;
  logic        bad_desc;
  logic        prog_loaded;

  // The descriptor it holds.
  logic [2:0]  beat_q;
  logic        first_beat_q;           // the first one came in the last cycle
  logic        second_beat_q;          // the second one did
  logic        same_q;                 // it names the program of the one before
  logic [31:0] prog_q;
  logic [9:0]  ncmds_q;
  logic        ncmds_bad_q, flags_bad_q, overlap_q, chain_q;

  ct_job_desc u_desc (
    .clk_i, .rst_ni,
    .clear_i      (desc_ask),
    .drop_i       (desc_drop),
    .beat_valid_i (desc_beat),
    .batch_i      (fe_batch),
    .batch_first_i(batch_first),
    .batch_rows_i, .batch_data_i,
    .fetch_data_i (fetch_rdata_i),
    .count_o      (beat_q),
    .last_o       (desc_last),
    .first_o      (first_beat_q),
    .second_o     (second_beat_q),
    .tag_o, .version_o, .limit_o,
    .prog_o       (prog_q),
    .ncmds_o      (ncmds_q),
    .ncmds_bad_o  (ncmds_bad_q),
    .same_o       (same_q),
    .flags_bad_o  (flags_bad_q),
    .overlap_o    (overlap_q),
    .chain_o      (chain_q),
    .arg_we_o, .arg_group_o, .arg_data_o
  );

  // ---- What it holds ----------------------------------------------------------------------------------------------------------

  assign fe_batch      = (fe_q != FeNone) && fe_isb_q;
  assign fe_here       = !own_q && (fe_q == FeHave || fe_q == FeProg);
  assign bad_desc      = ncmds_bad_q || flags_bad_q;
  assign skip_o        = (state_i == StProg) && chain_q && ring_bad_i;
  assign doomed_o      = (state_i == StProg) && doomed_q && !front_isb_q;
  assign beside_o      = fe_here && overlap_q && !bad_desc && !(doomed_q && !fe_batch);
  assign batch_ready_o = (fe_q == FeNone) && !own_q && !wait_q && !kill_q && !hold_i && !freeze_i && !(ring_turn_q && ring_more_i && cpl_ready_i) &&
                         ((state_i == StIdle && !silent_i) || (state_i == StDrain && !meta_i));
  assign ring_ok       = !form_i && !(batch_due_i && !ring_turn_q && !freeze_i);
  assign batch_first   = batch_valid_i && batch_first_i && (fe_q == FeNone);
  // After a soft failure the descriptor is taken for lost, and what still comes is not it.
  assign desc_beat     = batch_first || ((fe_q == FeDesc) && (fe_batch ? batch_valid_i : fetch_rvalid_i && !(wait_q && lost_q)));
  assign desc_drop     = (reset_i && !own_q) || (to_abort_i && !fe_batch && !batch_first) || (wait_q && fetch_quiet && !fe_batch && !batch_first);
  assign fetch_quiet   = fetch_idle_i && !request_q;
  assign wrong_guess   = (fe_q == FeDesc) && first_beat_q && guess_q && !same_q;

  assign fe_o          = fe_q;
  assign own_o         = own_q;
  assign here_o        = fe_here;
  assign batch_o       = fe_batch;
  assign ring_o        = (fe_q != FeNone) ? !fe_batch : ring_more_i && ring_ok;
  assign kill_o        = kill_q;
  assign request_o     = request_q;
  assign req_prog_o    = req_prog_q;
  assign desc_ask_o    = desc_ask;
  assign desc_beat_o   = desc_beat;
  assign desc_last_o   = desc_last;
  assign bad_desc_o    = bad_desc;
  assign ncmds_bad_o   = ncmds_bad_q;
  assign front_isb_o   = front_isb_q;
  assign rows_o        = rows_front_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni)                            ring_turn_q <= 1'b0;
    else if (form_i)                        ring_turn_q <= 1'b1;
    else if (desc_ask && state_i != StDesc) ring_turn_q <= 1'b0;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      rows_front_q <= '0;
      front_isb_q  <= 1'b0;
    end else if (start_i) begin
      rows_front_q <= fe_batch ? fe_rows_q : '0;
      front_isb_q  <= fe_batch;
    end
  end

  // ---- What it asks for -------------------------------------------------------------------------------------------------------

  always_comb begin
    desc_ask = 1'b0;
    prog_ask = 1'b0;
    unique case (fe_q)
      FeNone: desc_ask = (start_i && state_i == StIdle) || (state_i == StDesc && !desc_over_i) ||
                         (state_i == StDrain && !fail_i && !drained_i && !meta_i && !own_q && !wait_q && !lost_q && ring_more_i && ring_ok && (cpl_ready_i || !batch_on_i) &&
                          !hold_i);
      // Not before it is known whether the job runs: else what is wrong with its program would come first.
      FeDesc: prog_ask = second_beat_q && !asked_q && !bad_desc && !(own_q && chain_q && ring_bad_i) && !wait_q;
      FeHave: prog_ask = !wait_q && !bad_desc && (own_q ? active_i : (!lost_q && (state_i == StDrain || state_i == StIdle)));
      default: ;
    endcase
    if (reset_i || kill_q || flush_next_i) begin
      desc_ask = 1'b0;
      prog_ask = 1'b0;
    end
  end

  always_comb begin
    fe_d       = fe_q;
    own_d      = own_q || start_i;
    request_d  = request_q && !fetch_ready_i;
    req_prog_d = req_prog_q;
    req_soft_d = req_soft_q;
    asked_d    = asked_q;
    guess_d    = guess_q;
    wait_d     = wait_q && !fetch_quiet;
    lost_d     = lost_q && !(own_q && to_abort_i);
    drop_d     = 1'b0;
    doomed_d   = (doomed_q || cancel_next_i) && !(own_q && !front_isb_q && (state_i == StProg || to_abort_i)) && !reset_i;
    kill_d     = kill_q;
    fe_rows_d  = fe_rows_q;
    fe_isb_d   = fe_isb_q;

    // The program is asked for with the descriptor if it was the same twice.
    if (request_q && fetch_ready_i && !req_prog_q && same_q && !lost_q) begin
      request_d  = 1'b1;
      req_prog_d = 1'b1;
      req_soft_d = 1'b1;
      asked_d    = 1'b1;
      guess_d    = 1'b1;
    end
    if (first_beat_q) guess_d = 1'b0;
    if (wrong_guess) begin
      drop_d    = 1'b1;
      asked_d   = 1'b0;
      wait_d    = 1'b1;
      request_d = 1'b0;
    end
    if (fe_q == FeDesc && wait_q && fetch_quiet && !fe_batch) fe_d = FeNone;  // the descriptor is what was lost
    if (batch_first) begin
      fe_d      = FeDesc;
      fe_rows_d = batch_rows_i;
      fe_isb_d  = 1'b1;
      asked_d   = 1'b0;
      guess_d   = 1'b0;
      lost_d    = 1'b0;
    end
    if (desc_ask) begin
      fe_rows_d  = '0;
      fe_isb_d   = 1'b0;
      fe_d       = FeDesc;
      request_d  = 1'b1;
      req_prog_d = 1'b0;
      req_soft_d = !own_d;
      asked_d    = 1'b0;
      guess_d    = 1'b0;
    end
    if (prog_ask) begin
      request_d  = 1'b1;
      req_prog_d = 1'b1;
      req_soft_d = !own_d;
      asked_d    = 1'b1;
    end
    if (fetch_bad_i && fe_q != FeNone) begin
      asked_d   = 1'b0;
      guess_d   = 1'b0;
      wait_d    = 1'b1;
      lost_d    = 1'b1;
      request_d = 1'b0;
      if (fe_q == FeProg) fe_d = FeHave;
    end
    if (desc_last) fe_d = asked_d ? FeProg : FeHave;
    if (fe_q == FeHave && prog_ask) fe_d = FeProg;
    if (own_q && fe_q == FeProg && !fetch_bad_i && prog_loaded && (state_i == StRun || state_i == StDrain)) begin
      fe_d   = FeNone;
      own_d  = 1'b0;
      lost_d = 1'b0;
    end

    // A flush drops all fetches; a job that has not begun keeps its descriptor, and a batch what will come of it.
    if (to_abort_i) begin
      if (own_q)                                 fe_d = FeNone;
      else if (fe_d == FeDesc && !fe_isb_d)      fe_d = FeNone;
      else if (fe_d == FeProg)                   fe_d = FeHave;
      asked_d   = 1'b0;
      own_d     = 1'b0;
      request_d = 1'b0;
      wait_d    = 1'b0;
      kill_d    = 1'b0;
    end
    if (reset_i && !own_q) begin
      kill_d    = (state_i == StIdle || state_i == StDrain || state_i == StAbort || state_i == StComplete) && !to_abort_i && (fe_q == FeDesc || fe_q == FeProg || wait_q || kill_q);
      fe_d      = FeNone;
      request_d = 1'b0;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      fe_q         <= FeNone;
      own_q        <= 1'b0;
      request_q    <= 1'b0;
      req_prog_q   <= 1'b0;
      req_soft_q   <= 1'b0;
      asked_q      <= 1'b0;
      guess_q      <= 1'b0;
      wait_q       <= 1'b0;
      lost_q       <= 1'b0;
      drop_q       <= 1'b0;
      doomed_q     <= 1'b0;
      kill_q       <= 1'b0;
      fe_rows_q    <= '0;
      fe_isb_q     <= 1'b0;
    end else begin
      fe_q         <= fe_d;
      own_q        <= own_d;
      request_q    <= request_d;
      req_prog_q   <= req_prog_d;
      req_soft_q   <= req_soft_d;
      asked_q      <= asked_d;
      guess_q      <= guess_d;
      wait_q       <= wait_d;
      lost_q       <= lost_d;
      drop_q       <= drop_d;
      doomed_q     <= doomed_d;
      kill_q       <= kill_d;
      fe_rows_q    <= fe_rows_d;
      fe_isb_q     <= fe_isb_d;
    end
  end

  // ---- To ct_fetch and the DMA ------------------------------------------------------------------------------------------------

  // ct_fetch hears a cycle later that a program follows; until then it speaks of the one before.
  assign prog_first_o = prog_first_i && !prog_load_o;
  assign prog_loaded  = prog_loaded_i && !prog_load_o;
  assign prog_load_o  = request_q && req_prog_q && !loaded_q;
  assign prog_start_o = (state_i == StProg && fe_q == FeProg) && !begun_q;
  assign prog_ncmds_o = ncmds_q;
  // (The descriptor of a batch may be slower than its program.)
  // What comes with the news that the rest does not is not taken: the program would begin, and begin again when it is read again.
  assign prog_valid_o = fetch_rvalid_i && !fetch_bad_i && (fe_q == FeProg || (fe_q == FeDesc && fe_batch && asked_q));

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      loaded_q <= 1'b0;
      begun_q  <= 1'b0;
    end else begin
      loaded_q <= request_q && req_prog_q;
      begun_q  <= (state_i == StProg) && (fe_q == FeProg);
    end
  end

  assign fetch_valid_o = request_q && !wrong_guess;  // what it names has just been overwritten
  assign fetch_addr_o  = req_prog_q ? prog_q : slot_i;
  assign fetch_len_o   = req_prog_q ? {ncmds_q, 1'b0} : 11'd8;
  assign fetch_soft_o  = req_soft_q;
  assign fetch_drop_o  = drop_q;

  // ---- Invariants -------------------------------------------------------------------------------------------------------------

  `CT_ASSERT(FetchStates_A, !request_q || fe_q == FeDesc || fe_q == FeProg)                      // ct_job 5
  `CT_ASSERT(AskWhenQuiet_A, !(fe_q == FeHave && prog_ask) || fetch_quiet)  // ct_job 5
  `CT_ASSERT(TakenInTurn_A, !(batch_ready_o && batch_due_i && (desc_ask || start_i)))
  `CT_ASSERT(BatchComesToFree_A, !(batch_valid_i && batch_first_i) || (fe_q == FeNone && !own_q && !kill_q) || reset_i)
  `CT_ASSERT(BatchBeginsWhole_A, !(start_i && fe_batch) || fe_here)
  `CT_ASSERT(NoStrayBeat_A, !fetch_rvalid_i || fe_q == FeDesc || fe_q == FeProg || wait_q || kill_q || flush_i)  // ct_job 5
  `CT_ASSERT(OwnStates_A, !(state_i == StDesc || state_i == StProg) || own_q)
  `CT_ASSERT(DescState_A, state_i != StDesc || fe_q == FeDesc || fe_q == FeNone)
  `CT_ASSERT(ProgState_A, state_i != StProg || fe_q == FeHave || fe_q == FeProg)
  `CT_ASSERT(OwnReads_A, !own_q || state_i == StDesc || fe_q == FeHave || fe_q == FeProg)
  `CT_ASSERT(RunReadsOwn_A, state_i != StRun || own_q || fe_q == FeNone)
  `CT_ASSERT(NotOwnInIdle_A, !(state_i == StIdle || state_i == StAbort || state_i == StComplete) || !own_q)
  `CT_ASSERT(MetaKept_A, !(state_i == StDesc || state_i == StProg || state_i == StRun) || meta_i == (rows_front_q == '0))
  `CT_ASSERT(KindIsRows_A, fe_isb_q == (fe_rows_q != '0) && front_isb_q == (rows_front_q != '0))
  `CT_ASSERT(MetaOfRing_A, !meta_i || rows_front_q == '0)
  `CT_ASSERT(BatchNotInDesc_A, !(state_i == StDesc || (fe_q == FeDesc && own_q)) || (rows_front_q == '0 && !fe_batch))
  `CT_ASSERT(BatchNoGuess_A, !(fe_batch && fe_q == FeDesc) || (!guess_q && (!request_q || req_prog_q)))
  `CT_ASSERT(OwnKind_A, !own_q || fe_q == FeNone || fe_rows_q == rows_front_q)
  `CT_ASSERT(MetaOfFront_A, !meta_i || own_q || fe_q == FeNone)
  `CT_ASSERT(KillStates_A, !kill_q || state_i == StIdle || state_i == StComplete)
  `CT_ASSERT(KillHasNone_A, !kill_q || fe_q == FeNone)
  `CT_ASSERT(WaitStates_A, !wait_q || fe_q != FeProg)
  `CT_ASSERT(AskedStates_A, !(request_q && fe_q == FeDesc && req_prog_q) || asked_q)
  `CT_ASSERT(ProgIsAsked_A, fe_q != FeProg || !request_q || req_prog_q)
  `CT_ASSERT(AbortAsksNothing_A, !flush_i || ((fe_q == FeNone || fe_q == FeHave || (fe_batch && fe_q == FeDesc && !asked_q)) && !request_q))
  `CT_ASSERT(GuessIsAsked_A, fe_q != FeDesc || !guess_q || asked_q)
  `CT_ASSERT(WaitAsksAgain_A, fe_q != FeDesc || !wait_q || !asked_q)
  `CT_ASSERT(DescFirst_A, !request_q || req_prog_q || (!asked_q && !guess_q))
  `CT_ASSERT(SecondBeat_A, !second_beat_q || fe_q != FeDesc || (beat_q == 3'd2 && !first_beat_q))
  `CT_ASSERT(BeatStates_A, fe_q == FeDesc || beat_q == '0)
  `CT_ASSERT(AskedIsGood_A, !(request_q && req_prog_q) || !ncmds_bad_q || wrong_guess)
  `CT_ASSERT(FetchLength_A, !fetch_valid_o || (fetch_len_o != '0 && 32'(fetch_len_o) <= 2 * ct_pkg::ProgMax))

`ifdef FORMAL
  `include "ct_job_front_formal.svh"
`endif

  `CT_COVER(GuessRight_C, fe_q == FeDesc && first_beat_q && guess_q && same_q)
  `CT_COVER(GuessWrong_C, drop_q)
  `CT_COVER(LostThenAsked_C, prog_ask && lost_q)
  `CT_COVER(DoomedBeforeStart_C, state_i == StProg && doomed_q)

endmodule

`default_nettype wire
