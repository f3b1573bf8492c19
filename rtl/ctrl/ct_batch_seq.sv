// SPDX-License-Identifier: Apache-2.0
//
// The machine of ct_batch: decides what is done next, and takes the other parts through it, one thing at a time.
//
// Order       note a start, end a batch, reset, form a batch, execute a command, load a record, answer a read. But a read that has let a command
//             go first goes before the next, and a command that came before a reset goes before it. While a batch could go, a command waits
//             until a whole scan has passed or a batch has gone (cmd_ok).
// Commands    writes of PUSH, CANCEL, MODEL_COMMIT, MODEL_UNLOAD and REC_STATE (wr_i with wr_word_i, while free_o is high), one at a time. A push that
//             is refused ends in its first cycle, COMMIT and a pop in that of their pulse; CANCEL and UNLOAD are passes over the queue.
// States      step_o counts the cycles in one (insert_o goes on from 4); the parts look at a state's output and at step_o.
//
//             push_o     4 cycles, 1 if refuse_i: the request's times are written; ins_o with the last
//             insert_o   until q_done_i (inserted_o)
//             (take)     until q_done_i: a pass after take_o; what leaves is counted in n_o (joins_o: it joins the batch that is being formed)
//             left_o     1 cycle behind it: code_o says why they left, gone_o that they are no batch and will not run
//             stream_o   33 cycles: the model's 32 words of descriptor are read
//             lead_o     3 cycles: a model's service and margin are added up
//             note_o     2 cycles: the start of a batch is written
//             ending_o   5 cycles: its end; ended_o with the last, when done_* is taken
//             service_o  3 cycles: what it took, if done_ok_i
//             load_o     4 cycles: the oldest record; back to the first while gat_i takes the port
//             (read)     2 cycles likewise: rd_vld_o with the second
//
//     idle --> push --> insert ---------------------> lead --> idle
//          --> take --> left ---- a batch --> stream --> lead
//                            ---- a cancel --> lead,  unload or reset --> idle
//          --> note --> idle
//          --> ending ---- it went well --> service --> lead,  else --> idle
//          --> load, read --> idle
//
// Resets      (reset_i, pulses) are noted until their pass begins; a batch that was taken but not begun goes in that cycle (dropped_o).

`default_nettype none
`include "ct_assert.svh"

module ct_batch_seq (
  input  logic       clk_i,
  input  logic       rst_ni,

  // Commands.
  input  logic       wr_i,
  input  logic [5:0] wr_word_i,
  output logic       free_o,         // there is none
  output logic       has_push_o,     // there is a push
  output logic       pushed_o,       // pulses: it is over, accepted or not
  output logic       commit_o,
  output logic       unload_o,
  output logic       pop_o,
  output logic       cancelled_o,    // a cancel has found n_o requests

  input  logic       rd_valid_i,
  output logic       rd_vld_o,

  // ct_job.
  input  logic       reset_i,
  output logic       reset_pend_o,
  input  logic       job_ready_i,
  input  logic       start_i,
  output logic       start_pend_o,   // a start has not been noted
  input  logic       done_valid_i,
  input  logic       done_ok_i,
  output logic       forming_o,      // a batch, until its descriptor has been read

  // What the other parts say.
  input  logic       refuse_i,       // the push that is there
  input  logic       next_vld_i,     // a batch has been formed and not begun
  input  logic       pick_vld_i,     // a model is due
  input  logic       scanned_i,      // a whole scan has passed
  input  logic       none_wait_i,
  input  logic       some_left_i,    // there are requests that wait no more
  input  logic       rec_vld_i,      // the oldest record is here
  input  logic       over_i,         // load_o, step 1: its batch is over
  input  logic       gat_i,          // the request RAM is read for the DMA

  // ct_batch_queue; what leaves, a cycle after it.
  output logic       ins_o,
  output logic       take_o,
  output logic [1:0] take_by_o,
  output logic       take_arg_o,     // of the command's model, not of the one that is due
  output logic       take_few_o,     // with take_o: no more than a batch of them
  input  logic       q_done_i,
  input  logic       out_i,

  // The machine.
  output logic       idle_o,
  output logic       push_o,
  output logic       insert_o,
  output logic       inserted_o,
  output logic       left_o,
  output logic       stream_o,
  output logic       lead_o,
  output logic       note_o,
  output logic       ending_o,
  output logic       ended_o,
  output logic       service_o,
  output logic       load_o,
  output logic [5:0] step_o,
  output logic       settled_o,      // counts and services of the models are up to date
  output logic       form_now_o,     // pulses: a batch begins to be formed
  output logic       joins_o,
  output logic       formed_o,
  output logic       dropped_o,
  output logic       gone_o,
  output logic [7:0] code_o,
  output logic [6:0] n_o
);

  // Commands, by the words of the bank.
  localparam logic [5:0] WordPush   = {1'b0, 5'(ct_pkg::RegReqPush >> 2)};
  localparam logic [5:0] WordCancel = {1'b0, 5'(ct_pkg::RegReqCancel >> 2)};
  localparam logic [5:0] WordCommit = {1'b0, 5'(ct_pkg::RegModelCommit >> 2)};
  localparam logic [5:0] WordUnload = {1'b0, 5'(ct_pkg::RegModelUnload >> 2)};
  localparam logic [5:0] WordRecord = {1'b0, 5'(ct_pkg::RegRecState >> 2)};

  typedef enum logic [3:0] {
    StIdle, StPush, StInsert, StTake, StLeft, StStream, StLead, StStart, StDone, StService, StLoad, StRead
  } state_e;
  typedef enum logic [2:0] {CmdNone, CmdPush, CmdCancel, CmdCommit, CmdUnload, CmdPop} cmd_e;
  typedef enum logic [1:0] {ForBatch, ForCancel, ForUnload, ForReset} for_e;

  state_e     state_d, state_q;
  logic [5:0] step_d, step_q;
  for_e       for_d, for_q;              // why requests leave
  logic       look_d, look_q;            // there may be a record to load
  logic [6:0] n_q;                       // requests that left
  logic       start_pend_q, reset_q;
  logic       cmd_first_q;               // a command waits that came before the reset
  logic       rd_turn_q, cmd_turn_q;     // a read has let a command go first, a command a batch
  logic       cmd_ok, cmd_now, cmd_done, reset_now, streamed;

  // ---- What is to be done ---------------------------------------------------------------------------------------------------------

  cmd_e cmd_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      cmd_q <= CmdNone;
    end else begin
      if (cmd_done) cmd_q <= CmdNone;
      if (wr_i) begin
        unique case (wr_word_i)
          WordPush:   cmd_q <= CmdPush;
          WordCancel: cmd_q <= CmdCancel;
          WordCommit: cmd_q <= CmdCommit;
          WordUnload: cmd_q <= CmdUnload;
          WordRecord: cmd_q <= CmdPop;
          default: ;
        endcase
      end
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      start_pend_q <= 1'b0;
      reset_q      <= 1'b0;
      cmd_first_q  <= 1'b0;
    end else begin
      if (start_i) start_pend_q <= 1'b1;
      else if (state_q == StStart && step_q == 6'd1) start_pend_q <= 1'b0;
      // (A command that came before the reset takes effect before it.)
      if (reset_i && cmd_q != CmdNone) cmd_first_q <= 1'b1;
      if (cmd_done) cmd_first_q <= 1'b0;
      if (reset_i) reset_q <= 1'b1;
      else if (reset_now) reset_q <= 1'b0;  // another one during the pass asks for another pass
    end
  end

  // While a batch could go, each command lets a whole scan pass before the next, or a batch be formed: no host, however busy, keeps the
  // queue from being seen, and no stream of short batches holds up the host.
  assign cmd_ok = !job_ready_i || next_vld_i || none_wait_i || scanned_i || cmd_turn_q;

  // ---- The order of things ----------------------------------------------------------------------------------------------------------

  assign streamed = (state_q == StStream) && (step_q == 6'd32);

  always_comb begin
    state_d  = state_q;
    step_d   = step_q + 6'd1;
    for_d    = for_q;
    cmd_done = 1'b0;
    cmd_now  = 1'b0;
    look_d   = look_q;
    take_o   = 1'b0;
    unique case (state_q)
      StIdle: begin
        if (start_pend_q) begin
          state_d = StStart;
        end else if (done_valid_i) begin
          state_d = StDone;
        end else if (reset_q && !cmd_first_q) begin
          state_d = StTake;
          for_d   = ForReset;
          take_o  = 1'b1;
        end else if (job_ready_i && pick_vld_i && !next_vld_i && !reset_i && !reset_q) begin
          state_d = StTake;
          for_d   = ForBatch;
          take_o  = 1'b1;
        end else if (rd_turn_q && rd_valid_i && !cmd_first_q) begin
          state_d = StRead;
        end else if (cmd_q != CmdNone && (cmd_ok || cmd_first_q)) begin
          cmd_now = 1'b1;
          unique case (cmd_q)
            CmdPush: state_d = StPush;
            CmdCancel: begin
              state_d = StTake;
              for_d   = ForCancel;
              take_o  = 1'b1;
            end
            CmdUnload: begin
              state_d = StTake;
              for_d   = ForUnload;
              take_o  = 1'b1;
            end
            default: cmd_done = 1'b1;  // COMMIT and a pop take one cycle
          endcase
        end else if (look_q && !rec_vld_i && some_left_i) begin
          state_d = StLoad;
        end else if (rd_valid_i && cmd_q == CmdNone) begin
          state_d = StRead;
        end
        step_d = '0;
        if (cmd_now && cmd_q == CmdPop) look_d = 1'b1;
      end
      StPush: begin
        if (step_q == 6'd0 && refuse_i) begin
          state_d  = StIdle;
          cmd_done = 1'b1;
        end else if (step_q == 6'd3) begin
          state_d = StInsert;
        end
      end
      StInsert: begin
        if (q_done_i) begin
          state_d  = StLead;
          cmd_done = 1'b1;
          step_d   = '0;
        end
      end
      StTake: if (q_done_i) state_d = StLeft;
      StLeft: begin
        // One cycle: the batch's first word.
        step_d = '0;
        look_d = 1'b1;
        unique case (for_q)
          ForBatch:  state_d = StStream;
          ForCancel: begin
            state_d  = StLead;
            cmd_done = 1'b1;
          end
          ForUnload: begin
            state_d  = StIdle;
            cmd_done = 1'b1;
          end
          default:   state_d = StIdle;
        endcase
      end
      StStream: begin
        if (streamed) begin
          state_d = StLead;
          step_d  = '0;
        end
      end
      StLead: if (step_q == 6'd2) state_d = StIdle;
      StStart: if (step_q == 6'd1) state_d = StIdle;
      StDone: begin
        if (step_q == 6'd4) begin
          state_d = done_ok_i ? StService : StIdle;
          step_d  = '0;
          look_d  = 1'b1;
        end
      end
      StService: begin
        // 0: read, 1: compare, 2: write.
        if (step_q == 6'd2) begin
          state_d = StLead;
          step_d  = '0;
        end
      end
      StLoad: begin
        // 0: read the code. 1: over? then the deadline and the end, low halves, 2: high ones, 3: compare.
        if (step_q == 6'd1 && !over_i) begin
          state_d = StIdle;
          look_d  = 1'b0;
        end else if (gat_i && step_q != 6'd3) begin
          step_d = '0;                           // the request's words cannot be read now
        end else if (step_q == 6'd3) begin
          state_d = StIdle;
        end
      end
      StRead: begin
        if (step_q == 6'd0 && gat_i) step_d = '0;
        if (step_q == 6'd1) state_d = StIdle;
      end
      default: state_d = StIdle;
    endcase
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q    <= StIdle;
      step_q     <= '0;
      for_q      <= ForBatch;
      look_q     <= 1'b0;
      rd_turn_q  <= 1'b0;
      cmd_turn_q <= 1'b0;
      n_q        <= '0;
    end else begin
      state_q    <= state_d;
      step_q     <= step_d;
      for_q      <= for_d;
      look_q     <= look_d;
      cmd_turn_q <= (cmd_q != CmdNone) && !cmd_done && (cmd_turn_q || form_now_o);
      rd_turn_q  <= rd_valid_i && !rd_vld_o && (rd_turn_q || cmd_done);
      if (take_o)     n_q <= '0;
      else if (out_i) n_q <= n_q + 1'b1;
    end
  end

  // ---- What the other parts do for it -------------------------------------------------------------------------------------------------

  assign free_o       = (cmd_q == CmdNone);
  assign has_push_o   = (cmd_q == CmdPush);
  assign pushed_o     = cmd_done && (cmd_q == CmdPush);
  assign commit_o     = cmd_now && (cmd_q == CmdCommit);
  assign unload_o     = cmd_now && (cmd_q == CmdUnload);
  assign pop_o        = cmd_now && (cmd_q == CmdPop);
  assign cancelled_o  = (state_q == StLeft) && (for_q == ForCancel);
  assign rd_vld_o     = (state_q == StRead) && (step_q == 6'd1);
  assign reset_pend_o = reset_q;
  assign start_pend_o = start_pend_q;

  assign ins_o      = (state_q == StPush) && (step_q == 6'd3);
  // (What leaves is looked at from the next cycle on, how many at once.)
  assign take_by_o  = (for_q == ForCancel) ? 2'd1 : (for_q == ForReset) ? 2'd2 : 2'd0;
  assign take_arg_o = (for_q == ForUnload);
  assign take_few_o = (for_d == ForBatch);

  assign idle_o     = (state_q == StIdle);
  assign push_o     = (state_q == StPush);
  assign insert_o   = (state_q == StInsert);
  assign inserted_o = (state_q == StInsert) && q_done_i;
  assign left_o     = (state_q == StLeft);
  assign stream_o   = (state_q == StStream);
  assign lead_o     = (state_q == StLead);
  assign note_o     = (state_q == StStart);
  assign ending_o   = (state_q == StDone);
  // done_*: over with the fourth word, and only then does the next one's cycle count.
  assign ended_o    = (state_q == StDone) && (step_q == 6'd4);
  assign service_o  = (state_q == StService);
  assign load_o     = (state_q == StLoad);
  assign step_o     = step_q;
  assign settled_o  = (state_q != StInsert) && (state_q != StTake) && (state_q != StLeft) && (state_q != StStream) && (state_q != StLead);

  assign form_now_o = (state_q == StIdle) && (state_d == StTake) && (for_d == ForBatch);
  assign reset_now  = (state_q == StIdle) && (state_d == StTake) && (for_d == ForReset);
  assign dropped_o  = reset_now && next_vld_i;
  assign joins_o    = (state_q == StTake) && out_i && (for_q == ForBatch);
  assign formed_o   = (state_q == StLeft) && (for_q == ForBatch);
  assign forming_o  = ((state_q == StTake || state_q == StLeft) && for_q == ForBatch) || state_q == StStream;
  assign gone_o     = (for_q != ForBatch);
  assign code_o     = (for_q == ForCancel) ? ct_pkg::ErrCancelled : (for_q == ForReset) ? ct_pkg::ErrReset :
                      (for_q == ForUnload) ? ct_pkg::ErrUnloaded : ct_pkg::ErrOk;
  assign n_o        = n_q;

  // ---- Invariants -------------------------------------------------------------------------------------------------------------------

  `CT_ASSERT(NotedInPass_A, !out_i || state_q == StTake)

  `CT_COVER(Restart_C, state_q == StLoad && gat_i && step_q != 6'd3)

endmodule

`default_nettype wire
