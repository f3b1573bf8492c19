// SPDX-License-Identifier: Apache-2.0
//
// The batcher in front of context 0: requests wait here, become batches, and leave with a record each.
//
// A request   has one of Slots places (a *ticket*): words of a block RAM that hold it from its push until its record has been popped. So
//             there is room for every record before there is a request, a host that pops none runs out of places, and is refused.
//
//     free --push--> waiting --a batch of its model is formed--> in a batch --the batch ends--> record --pop--> free
//                       '-------cancel, unload, reset--------------------------------------------^
//
// Parts       ct_batch_seq      the machine: what is done next; its states, which all others follow
//             ct_batch_places   the words of the requests, their places from push to pop, the addresses for LD and ST
//             ct_batch_queue    who waits, earliest deadline first
//             ct_batch_scan     goes over it: which models are due, the first of them, slack
//             ct_batch_models   descriptors, policies and service times; how many of each model wait
//             ct_batch_stages   the batches on their way: formed, begun, and begun before
//             ct_batch_records  what is kept of each batch, and the oldest record
//             Here are the registers that belong to none of them, and the wires.
//
// Forming     while job_ready_i is high and a model is due: up to max_batch first requests of that model leave the queue (form_o is high
//             from the cycle after this decision on). Then the model's descriptor goes to ct_job as 8 beats of 128 bits, every fourth
//             cycle, the first 8 cycles and one for each waiting request after the decision; desc_rows_o says how many requests it is for.
//             ct_job reports the job's start (start_i) and its end (done_*).
// Gather      the running batch's row r reads at the input address of its request r, and writes at its output address: gat_*, one address
//             the cycle after gat_gnt_o. LD goes before ST, both before all else.
// One thing   at a time is done. No step takes longer than 110 cycles, and a register access is held up for 600 at most (the bench sees to it).
// Records     in the order in which requests left the queue (in a batch: of their deadlines). The oldest is shown when its batch is over.
// Reset       reset_i (pulse), behind a command that came before it: all that wait, and the batch that ct_job has taken but not begun, leave with
//             code RESET. ct_job forgets that batch by itself, even if its first beat comes in the same cycle; no beat comes after it.
// slack_o     no request runs or waits whose deadline is nearer than the service of the running batch, of one batch of each model with an
//             earlier deadline, and of its own (with margins). Low if some model has more waiting than one batch.
// Times       deadlines are kept modulo 2^40 cycles; records have 64 bits. A request must not wait for 2^39 cycles.
//
// Registers   words of the bank, see Word* below and in the parts, and docs/programming.md. A write is taken when wr_ready_o is high with
//             wr_valid_i; a read holds rd_valid_i until rd_vld_o, which comes with the data.

`default_nettype none
`include "ct_assert.svh"

module ct_batch #(
  localparam int unsigned Depth  = 64,   // requests that may wait
  localparam int unsigned Slots  = 128,  // that wait, are in a batch, or whose record waits
  localparam int unsigned Models = 8,
  localparam int unsigned Most   = 16,   // requests in a batch
  localparam int unsigned TimeW  = 40
) (
  input  logic         clk_i,
  input  logic         rst_ni,

  input  logic [63:0]  cycle_i,

  // Registers.
  input  logic         wr_valid_i,
  output logic         wr_ready_o,
  input  logic [5:0]   wr_word_i,
  input  logic [31:0]  wr_data_i,
  input  logic         rd_valid_i,
  input  logic [5:0]   rd_word_i,
  output logic         rd_vld_o,
  output logic [31:0]  rd_data_o,
  output logic         irq_o,         // a record waits

  // ct_job.
  input  logic         reset_i,
  input  logic         job_ready_i,   // it would take a batch now, and does until form_o is seen, or until a reset
  output logic         due_o,         // a batch could go
  output logic         loaded_o,      // some model is loaded
  output logic         form_o,
  output logic         desc_valid_o,
  output logic         desc_first_o,
  output logic [127:0] desc_data_o,
  output logic [4:0]   desc_rows_o,
  input  logic         start_i,       // pulse: the batch it has taken is the job in front, since the cycle before (also in a cycle with reset_i)
  input  logic         done_valid_i,  // the older of those begun is over
  output logic         done_ready_o,
  input  logic [7:0]   done_code_i,
  input  logic [31:0]  done_addr_i,
  input  logic [31:0]  done_rows_i,

  // DMA: LD, ST.
  input  logic [1:0]   gat_valid_i,
  input  logic [7:0]   gat_row_i,
  output logic [1:0]   gat_gnt_o,
  output logic [1:0]   gat_vld_o,
  output logic [31:0]  gat_addr_o,

  output logic         slack_o
);

  localparam int unsigned SlotW  = $clog2(Slots);
  localparam int unsigned ModelW = $clog2(Models);
  localparam int unsigned CountW = $clog2(Depth + 1);

  // Words of the bank that are read. 16..22 are the words of the oldest record's request, 24..30 those of its batch.
  localparam logic [5:0] WordPush   = {1'b0, 5'(ct_pkg::RegReqPush >> 2)};
  localparam logic [5:0] WordResult = {1'b0, 5'(ct_pkg::RegReqResult >> 2)};
  localparam logic [5:0] WordData   = {1'b0, 5'(ct_pkg::RegModelData >> 2)};
  localparam logic [5:0] WordState  = {1'b0, 5'(ct_pkg::RegBatchState >> 2)};
  localparam logic [5:0] WordRecord = {1'b0, 5'(ct_pkg::RegRecState >> 2)};

  // What RESULT says of the last command.
  localparam logic [2:0] ResOk = 3'd0, ResFull = 3'd1, ResModel = 3'd2, ResGone = 3'd3;

  // The machine.
  logic              no_cmd, has_push, pushed, commit, unload, pop, popped, cancelled;
  logic              reset_pend, start_pend, forming, form_now, joins, formed, dropped, gone;
  logic              in_idle, in_push, in_insert, inserted, in_left, in_stream, in_lead, in_note, in_ending, ended, in_service, in_load;
  logic              settled, refuse, some_left, over, gat;
  logic [5:0]        step;
  logic [7:0]        code;
  logic [6:0]        n;

  // Requests and the queue.
  logic              q_busy, q_done, ins, take, take_arg, take_few, out_d, out;
  logic [1:0]        take_by;
  logic [CountW-1:0] waiting, room;
  logic [TimeW-1:0]  deadline, go, out_deadline_d, out_deadline, scan_go, scan_deadline;
  logic [ModelW-1:0] out_model_d, out_model, scan_model;
  logic [SlotW-1:0]  out_slot_d, out_slot, place, position, oldest, ticket;
  logic              scan_vld, scan_first, scan_last, place_ready;
  logic [31:0]       req_word;

  // Models.
  logic              known, pick_bank, scanned, pick_vld, scan_slack;
  logic [1:0]        policy;
  logic [Models-1:0] loaded, due, busy;
  logic [ModelW-1:0] pick, at_model;
  logic [6:0]        at_ctl, at_cnt;
  logic [4:0]        pick_max;
  logic [31:0]       at_lead, pick_lead, mod_word;

  // Batches and records.
  logic              next_vld, next_bank, run_vld, tight, old_vld, rec_vld;
  logic [ModelW-1:0] next_model, done_model;
  logic [SlotW-1:0]  form_number, next_number, run_number, run_base, done_number, rec_place;
  logic [4:0]        next_n, run_n, done_n;
  logic [63:0]       run_start, end_at;
  logic [31:0]       run_lead, took, rec_state, bat_word;

  // ---- Registers ------------------------------------------------------------------------------------------------------------------

  logic       wr;
  logic [6:0] arg_q;
  logic [2:0] result_q;

  assign wr_ready_o = no_cmd && (place_ready || wr_word_i > WordPush) && !ended && !in_service;
  assign wr         = wr_valid_i && wr_ready_o;

  always_ff @(posedge clk_i) begin
    if (wr) arg_q <= wr_data_i[6:0];
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      result_q <= ResOk;
    end else begin
      if (in_push && step == 6'd0) result_q <= !known ? ResModel : refuse ? ResFull : ResOk;
      if (cancelled) result_q <= (n == '0) ? ResGone : ResOk;
    end
  end

  always_comb begin
    rd_data_o = '0;
    if (rd_word_i[5:3] == 3'd2 && rd_word_i != WordRecord) begin
      if (rec_vld) rd_data_o = req_word;
    end else if (rd_word_i[5:3] == 3'd3) begin
      rd_data_o = bat_word;
    end else begin
      unique case (rd_word_i)
        WordResult: rd_data_o = {9'd0, ticket, 1'b0, room, 5'd0, result_q};
        WordState:  rd_data_o = {1'b0, waiting, 8'd0, busy, loaded};
        WordData:   rd_data_o = mod_word;
        WordRecord: rd_data_o = rec_state;
        default: ;
      endcase
    end
  end

  assign irq_o = rec_vld;

  // ---- The machine ----------------------------------------------------------------------------------------------------------------

  assign gat = (gat_valid_i != '0);

  ct_batch_seq u_seq (
    .clk_i, .rst_ni,
    .wr_i         (wr),
    .wr_word_i,
    .free_o       (no_cmd),
    .has_push_o   (has_push),
    .pushed_o     (pushed),
    .commit_o     (commit),
    .unload_o     (unload),
    .pop_o        (pop),
    .cancelled_o  (cancelled),
    .rd_valid_i,
    .rd_vld_o,
    .reset_i,
    .reset_pend_o (reset_pend),
    .job_ready_i,
    .start_i,
    .start_pend_o (start_pend),
    .done_valid_i,
    .done_ok_i    (done_code_i == ct_pkg::ErrOk),
    .forming_o    (forming),
    .refuse_i     (refuse),
    .next_vld_i   (next_vld),
    .pick_vld_i   (pick_vld),
    .scanned_i    (scanned),
    .none_wait_i  (waiting == '0),
    .some_left_i  (some_left),
    .rec_vld_i    (rec_vld),
    .over_i       (over),
    .gat_i        (gat),
    .ins_o        (ins),
    .take_o       (take),
    .take_by_o    (take_by),
    .take_arg_o   (take_arg),
    .take_few_o   (take_few),
    .q_done_i     (q_done),
    .out_i        (out),
    .idle_o       (in_idle),
    .push_o       (in_push),
    .insert_o     (in_insert),
    .inserted_o   (inserted),
    .left_o       (in_left),
    .stream_o     (in_stream),
    .lead_o       (in_lead),
    .note_o       (in_note),
    .ending_o     (in_ending),
    .ended_o      (ended),
    .service_o    (in_service),
    .load_o       (in_load),
    .step_o       (step),
    .settled_o    (settled),
    .form_now_o   (form_now),
    .joins_o      (joins),
    .formed_o     (formed),
    .dropped_o    (dropped),
    .gone_o       (gone),
    .code_o       (code),
    .n_o          (n)
  );

  assign done_ready_o = ended;
  assign form_o       = forming || desc_valid_o;

  // ---- Requests, and those that wait ----------------------------------------------------------------------------------------------

  ct_batch_places #(.Depth(Depth), .Slots(Slots), .TimeW(TimeW)) u_places (
    .clk_i, .rst_ni,
    .cycle_i,
    .wr_i        (wr),
    .wr_word_i,
    .wr_data_i,
    .ready_o     (place_ready),
    .ticket_o    (ticket),
    .room_o      (room),
    .idle_i      (in_idle),
    .free_i      (no_cmd),
    .push_i      (in_push),
    .pushed_i    (pushed),
    .inserted_i  (inserted),
    .load_i      (in_load),
    .step_i      (step),
    .model_i     (arg_q[2:0]),
    .known_i     (known),
    .policy_i    (policy),
    .wait_i      (mod_word),
    .refuse_o    (refuse),
    .place_o     (place),
    .deadline_o  (deadline),
    .go_o        (go),
    .waiting_i   (waiting),
    .some_left_o (some_left),
    .out_i       (out),
    .out_slot_i  (out_slot),
    .write_o     (position),
    .popped_i    (popped),
    .rd_word_i   (rd_word_i[2:0]),
    .rec_place_i (rec_place),
    .oldest_o    (oldest),
    .word_o      (req_word),
    .gat_valid_i,
    .gat_row_i,
    .gat_gnt_o,
    .gat_vld_o,
    .gat_addr_o,
    .run_base_i  (run_base)
  );

  ct_batch_queue #(.Depth(Depth), .SlotW(SlotW), .ModelW(ModelW), .TimeW(TimeW)) u_queue (
    .clk_i, .rst_ni,
    .busy_o          (q_busy),
    .done_o          (q_done),
    .count_o         (waiting),
    .ins_valid_i     (ins),
    .ins_deadline_i  (deadline),
    .ins_go_i        (go),
    .ins_model_i     (arg_q[ModelW-1:0]),
    .ins_slot_i      (place),
    .take_valid_i    (take),
    .take_by_i       (take_by),
    .take_model_i    (take_arg ? arg_q[ModelW-1:0] : pick),
    .take_slot_i     (arg_q),
    .take_max_i      (take_few ? CountW'(pick_max) : CountW'(Depth)),
    .out_valid_o     (out_d),
    .out_slot_o      (out_slot_d),
    .out_model_o     (out_model_d),
    .out_deadline_o  (out_deadline_d),
    .scan_valid_o    (scan_vld),
    .scan_first_o    (scan_first),
    .scan_last_o     (scan_last),
    .scan_model_o    (scan_model),
    .scan_go_o       (scan_go),
    .scan_deadline_o (scan_deadline)
  );

  // What leaves is looked at a cycle later, for block RAM answers late in a cycle: the last that leaves in the cycle of q_done.
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) out <= 1'b0;
    else         out <= out_d;
  end
  always_ff @(posedge clk_i) {out_slot, out_model, out_deadline} <= {out_slot_d, out_model_d, out_deadline_d};

  // ---- Who is due -----------------------------------------------------------------------------------------------------------------

  ct_batch_scan #(.Models(Models), .TimeW(TimeW)) u_scan (
    .clk_i, .rst_ni,
    .now_i           (cycle_i[TimeW-1:0]),
    .scan_valid_i    (scan_vld),
    .scan_first_i    (scan_first),
    .scan_last_i     (scan_last),
    .scan_model_i    (scan_model),
    .scan_go_i       (scan_go),
    .scan_deadline_i (scan_deadline),
    .scan_model_o    (at_model),
    .ctl_i           (at_ctl),
    .cnt_i           (at_cnt),
    .lead_i          (at_lead),
    .pass_i          (ins || take),
    .take_i          (take),
    .settled_i       (settled),
    .start_i,
    .run_vld_i       (run_vld),
    .run_lead_i      (run_lead),
    .due_o           (due),
    .scanned_o       (scanned),
    .pick_vld_o      (pick_vld),
    .pick_o          (pick),
    .slack_o         (scan_slack)
  );

  ct_batch_models #(.Models(Models), .Most(Most)) u_models (
    .clk_i, .rst_ni,
    .wr_i         (wr),
    .wr_word_i,
    .wr_data_i,
    .commit_i     (commit),
    .unload_i     (unload),
    .arg_i        (arg_q[ModelW-1:0]),
    .known_o      (known),
    .policy_o     (policy),
    .loaded_o     (loaded),
    .push_i       (in_push),
    .insert_i     (in_insert),
    .inserted_i   (inserted),
    .stream_i     (in_stream),
    .lead_i       (in_lead),
    .ending_i     (in_ending),
    .service_i    (in_service),
    .step_i       (step),
    .out_i        (out),
    .out_model_i  (out_model),
    .word_o       (mod_word),
    .scan_model_i (at_model),
    .scan_ctl_o   (at_ctl),
    .scan_cnt_o   (at_cnt),
    .scan_lead_o  (at_lead),
    .pick_i       (pick),
    .pick_max_o   (pick_max),
    .pick_bank_o  (pick_bank),
    .pick_lead_o  (pick_lead),
    .next_model_i (next_model),
    .next_bank_i  (next_bank),
    .done_model_i (done_model),
    .done_n_i     (done_n),
    .took_i       (took),
    .drop_i       (reset_i || reset_pend),
    .desc_valid_o,
    .desc_first_o,
    .desc_data_o
  );

  assign desc_rows_o = next_n;
  assign due_o       = (due != '0);
  assign loaded_o    = (loaded != '0);
  // (What is tight about a batch that has just begun shows before its start has been noted.)
  assign slack_o = !tight && !next_vld && !start_pend && !form_o && !has_push && (scan_slack || (waiting == '0 && !q_busy));

  // ---- Batches and records --------------------------------------------------------------------------------------------------------

  ct_batch_stages #(.SlotW(SlotW), .Models(Models), .Most(Most), .TimeW(TimeW)) u_stages (
    .clk_i, .rst_ni,
    .cycle_i,
    .form_now_i    (form_now),
    .model_i       (pick),
    .bank_i        (pick_bank),
    .lead_i        (pick_lead),
    .joins_i       (joins),
    .deadline_i    (out_deadline),
    .position_i    (position),
    .formed_i      (formed),
    .number_i      (form_number),
    .n_i           (n),
    .dropped_i     (dropped),
    .start_i,
    .done_valid_i,
    .ended_i       (ended),
    .next_vld_o    (next_vld),
    .next_model_o  (next_model),
    .next_bank_o   (next_bank),
    .next_number_o (next_number),
    .next_n_o      (next_n),
    .run_vld_o     (run_vld),
    .run_number_o  (run_number),
    .run_n_o       (run_n),
    .run_base_o    (run_base),
    .run_lead_o    (run_lead),
    .run_start_o   (run_start),
    .tight_o       (tight),
    .old_vld_o     (old_vld),
    .done_model_o  (done_model),
    .done_number_o (done_number),
    .done_n_o      (done_n),
    .end_o         (end_at),
    .took_o        (took),
    .busy_o        (busy)
  );

  ct_batch_records #(.Slots(Slots)) u_records (
    .clk_i, .rst_ni,
    .left_i        (in_left),
    .stream_i      (in_stream),
    .note_i        (in_note),
    .ending_i      (in_ending),
    .load_i        (in_load),
    .step_i        (step),
    .dropped_i     (dropped),
    .gone_i        (gone),
    .code_i        (code),
    .n_i           (n),
    .over_o        (over),
    .form_number_o (form_number),
    .next_number_i (next_number),
    .next_n_i      (next_n),
    .version_i     (mod_word),
    .run_number_i  (run_number),
    .run_start_i   (run_start),
    .done_number_i (done_number),
    .done_n_i      (done_n),
    .end_i         (end_at),
    .done_code_i,
    .done_addr_i,
    .done_rows_i,
    .place_i       (oldest),
    .request_i     (req_word),
    .pop_i         (pop),
    .popped_o      (popped),
    .rec_vld_o     (rec_vld),
    .rec_place_o   (rec_place),
    .rd_word_i     (rd_word_i[2:0]),
    .state_o       (rec_state),
    .batch_word_o  (bat_word)
  );

  // ---- Invariants -----------------------------------------------------------------------------------------------------------------

  logic [11:0] go_wait_q;           // cycles in which a batch could have gone
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) go_wait_q <= '0;
    else         go_wait_q <= (job_ready_i && !next_vld && !form_o && due != '0) ? go_wait_q + 1'b1 : '0;
  end

  `CT_ASSERT(OwnModel_A, !joins || out_model == next_model)
  `CT_ASSERT(DueGoes_A, go_wait_q < 12'd2500)
  `CT_ASSUME(StartsWhatWasTaken_M, !start_i || (next_vld && !(run_vld && old_vld) && !start_pend))
  `CT_ASSUME(EndsWhatRan_M, !done_valid_i || run_vld || old_vld)
  `CT_ASSUME(RowOfBatch_M, (!gat_valid_i[0] || 5'(gat_row_i[3:0]) < run_n) && (!gat_valid_i[1] || 5'(gat_row_i[7:4]) < run_n))

endmodule

`default_nettype wire
