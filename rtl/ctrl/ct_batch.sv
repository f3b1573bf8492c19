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
// Waiting     in ct_batch_queue, earliest deadline first. A scan over it finds which models are due, and the first of these in order
//             of deadlines. A model is due when max_batch of its requests wait, or for one of them the time to go has come: at
//             once (NONE), max_wait after its arrival (FIXED), its deadline less the service time of such a batch and a margin (ADAPTIVE;
//             without a deadline as FIXED).
// Forming     while job_ready_i is high and a model is due: up to max_batch first requests of that model leave the queue (form_o is high
//             from the cycle after this decision on). Then the model's descriptor goes to ct_job as 8 beats of 128 bits, every fourth
//             cycle, the first 8 cycles and one for each waiting request after the decision; desc_rows_o says how many requests it is for.
//             ct_job reports the job's start (start_i) and its end (done_*).
// Gather      the running batch's row r reads at the input address of its request r, and writes at its output address: gat_*, one address
//             the cycle after gat_gnt_o. LD goes before ST, both before all else.
// One thing   at a time is done: the machine below notes a start, ends a batch, resets, forms, executes a write, loads a record, or answers
//             a read, in this order; but a read that has let a command go first goes before the next. No step takes longer than 110 cycles,
//             and a register access is held up for 600 at most (the bench sees to it).
// Records     in the order in which requests left the queue (in a batch: of their deadlines). The oldest is shown when its batch is over.
// Reset       reset_i (pulse), behind a command that came before it: all that wait, and the batch that ct_job has taken but not begun, leave with code RESET. ct_job forgets that
//             batch by itself, even if its first beat comes in the same cycle; no beat comes after it.
// Service     for each model and size of a batch the time from start to end: raised at once to what was measured, lowered by an eighth of
//             the difference; batches that failed do not count. A table in the model's words, so the host can read and preset it.
// slack_o     no request runs or waits whose deadline is nearer than the service of the running batch, of one batch of each model with an
//             earlier deadline, and of its own (with margins). Low if some model has more waiting than one batch.
// Times       deadlines are kept modulo 2^40 cycles; records have 64 bits. A request must not wait for 2^39 cycles.
//
// Registers   words of the bank, see Word* below and docs/programming.md. A write is taken when wr_ready_o is high with wr_valid_i; a read
//             holds rd_valid_i until rd_vld_o, which comes with the data.
// Model table for each model 32 words of descriptor, twice (writes go to the one not in use; COMMIT changes over), and 32 of control: 0 policy
//             (bits 1..0) and max_batch (12..8), 1 max_wait, 2 margin, 16 + b - 1 service of a batch of b.

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

  // Words of the bank. 16..22 are the words of the oldest record's request, 24..30 those of its batch.
  localparam logic [5:0] WordInput    = {1'b0, 5'(ct_pkg::RegReqInput >> 2)};
  localparam logic [5:0] WordTag      = {1'b0, 5'(ct_pkg::RegReqTag >> 2)};
  localparam logic [5:0] WordDeadline = {1'b0, 5'(ct_pkg::RegReqDeadline >> 2)};
  localparam logic [5:0] WordPush     = {1'b0, 5'(ct_pkg::RegReqPush >> 2)};
  localparam logic [5:0] WordResult   = {1'b0, 5'(ct_pkg::RegReqResult >> 2)};
  localparam logic [5:0] WordCancel   = {1'b0, 5'(ct_pkg::RegReqCancel >> 2)};
  localparam logic [5:0] WordAddr     = {1'b0, 5'(ct_pkg::RegModelAddr >> 2)};
  localparam logic [5:0] WordData     = {1'b0, 5'(ct_pkg::RegModelData >> 2)};
  localparam logic [5:0] WordCommit   = {1'b0, 5'(ct_pkg::RegModelCommit >> 2)};
  localparam logic [5:0] WordUnload   = {1'b0, 5'(ct_pkg::RegModelUnload >> 2)};
  localparam logic [5:0] WordState    = {1'b0, 5'(ct_pkg::RegBatchState >> 2)};
  localparam logic [5:0] WordRecord   = {1'b0, 5'(ct_pkg::RegRecState >> 2)};

  // What RESULT says of the last command.
  localparam logic [2:0] ResOk = 3'd0, ResFull = 3'd1, ResModel = 3'd2, ResGone = 3'd3;

  localparam logic [1:0] PolicyNone = 2'd0, PolicyFixed = 2'd1, PolicyAdaptive = 2'd2;

  // Words of a batch's record, of a request, and of a model's control.
  localparam logic [2:0] RecStart = 3'd0, RecEnd = 3'd2, RecVersion = 3'd4, RecAddr = 3'd5, RecRows = 3'd6, RecCode = 3'd7;
  localparam logic [2:0] ReqArrive = 3'd3, ReqDeadline = 3'd5;
  localparam logic [4:0] CtlWait = 5'd1, CtlMargin = 5'd2;

  typedef enum logic [3:0] {
    StIdle, StPush, StInsert, StTake, StLeft, StStream, StLead, StStart, StDone, StService, StLoad, StRead
  } state_e;
  typedef enum logic [2:0] {CmdNone, CmdPush, CmdCancel, CmdCommit, CmdUnload, CmdPop} cmd_e;
  typedef enum logic [1:0] {ForBatch, ForCancel, ForUnload, ForReset} for_e;

  state_e     state_d, state_q;
  logic [5:0] step_d, step_q;
  for_e       for_d, for_q;        // why requests leave

  // ---- Memories -----------------------------------------------------------------------------------------------------------------

  // Requests (8 words a place), batches (8 words), models. Each has one port to write and one to read.
  (* no_rw_check *) logic [31:0] req_mem [0:8*Slots-1];
  (* no_rw_check *) logic [31:0] bat_mem [0:8*Slots-1];
  (* no_rw_check *) logic [31:0] mod_mem [0:128*Models-1];
  logic              req_we, bat_we, mod_we;
  logic [SlotW+2:0]  req_waddr, req_raddr, bat_waddr, bat_raddr;
  logic [ModelW+6:0] mod_waddr, mod_raddr;
  logic [31:0]       req_wdata, bat_wdata, mod_wdata, req_q, bat_q, mod_q;

  always_ff @(posedge clk_i) begin
    if (req_we) req_mem[req_waddr] <= req_wdata;
    req_q <= req_mem[req_raddr];
    if (bat_we) bat_mem[bat_waddr] <= bat_wdata;
    bat_q <= bat_mem[bat_raddr];
    if (mod_we) mod_mem[mod_waddr] <= mod_wdata;
    mod_q <= mod_mem[mod_raddr];
  end

  // Places in the order in which requests left: records (from head_q), batches, and, behind the newest, as many unused positions as
  // requests wait; from alloc_q to head_q the free places. In the first round position n stands for place n.
  logic [SlotW-1:0] ring [0:Slots-1];
  logic [SlotW-1:0] alloc_q, head_q, write_q, ring_raddr, ring_rdata;
  logic [SlotW:0]   free_q;
  logic             fresh_q;
  logic [SlotW-1:0] place_q;            // the place of the request that is being written and pushed, if
  logic             placed_q;           // there is one

  // Of each model.
  logic [Models-1:0] loaded_q, bank_q;
  logic [6:0]        ctl [0:Models-1];   // policy, max_batch
  logic [6:0]        cnt [0:Models-1];   // that wait
  logic [31:0]       lead [0:Models-1];  // service of the batch that these would be, and margin

  // ---- Registers ----------------------------------------------------------------------------------------------------------------

  cmd_e        cmd_q;
  logic [6:0]  arg_q;
  logic [31:0] rel_q;             // DEADLINE
  logic [63:0] arrive_q;
  logic        spoilt_q;          // a word of the request found no place
  logic [8:0]  mod_at_q;          // MODEL_ADDR
  logic [2:0]  result_q;
  logic [6:0]  ticket_q;
  logic        wr, cmd_done, mod_host;

  logic        service_we;        // the machine's write of mod_mem, in StService

  assign wr_ready_o = (cmd_q == CmdNone) && (placed_q || free_q == '0 || wr_word_i > WordPush) && !done_pop &&
                      (state_q != StService);
  assign wr         = wr_valid_i && wr_ready_o;
  assign mod_host   = wr && (wr_word_i == WordData);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      cmd_q    <= CmdNone;
      spoilt_q <= 1'b0;
    end else begin
      if (cmd_done) cmd_q <= CmdNone;
      if (cmd_done && cmd_q == CmdPush) spoilt_q <= 1'b0;
      if (wr) begin
        unique case (wr_word_i)
          WordPush:   cmd_q <= CmdPush;
          WordCancel: cmd_q <= CmdCancel;
          WordCommit: cmd_q <= CmdCommit;
          WordUnload: cmd_q <= CmdUnload;
          WordRecord: cmd_q <= CmdPop;
          default: ;
        endcase
        if (wr_word_i <= WordDeadline && free_q == '0) spoilt_q <= 1'b1;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (wr) begin
      arg_q    <= wr_data_i[6:0];
      arrive_q <= cycle_i;
      if (wr_word_i == WordDeadline) rel_q <= wr_data_i;
      if (wr_word_i == WordAddr)     mod_at_q <= wr_data_i[8:0];
      if (mod_host)                  mod_at_q <= mod_at_q + 9'd1;
      // The control word that every scan needs; a max_batch of 0 or too much is 16.
      if (mod_host && mod_at_q[5:0] == 6'd32)
        ctl[mod_at_q[8:6]] <= {wr_data_i[1:0], (wr_data_i[12:8] == '0 || wr_data_i[12:8] > 5'(Most)) ? 5'(Most) : wr_data_i[12:8]};
    end
  end

  // ---- Batches on their way: formed, begun, and begun before --------------------------------------------------------------------

  logic              next_vld_q, run_vld_q, old_vld_q;
  logic [ModelW-1:0] next_model_q, run_model_q, old_model_q;
  logic [SlotW-1:0]  next_bat_q, run_bat_q, old_bat_q;
  logic [4:0]        next_n_q, run_n_q, old_n_q;
  logic [SlotW-1:0]  next_base_q, run_base_q;
  logic              next_bank_q;
  logic [TimeW-1:0]  next_deadline_q, run_limit_q;   // limit: deadline less lead
  logic [31:0]       next_lead_q, run_lead_q;
  logic [31:0]       old_start_q;
  logic [63:0]       start_q, end_q;
  logic              start_pend_q, end_seen_q, reset_q;
  logic              cmd_first_q;        // a command waits that came before the reset
  logic [SlotW-1:0]  bat_q_form;         // number of the next batch

  logic              done_old;           // what is over is the older one
  logic [ModelW-1:0] done_model;
  logic [SlotW-1:0]  done_bat;
  logic [4:0]        done_n;
  logic [31:0]       done_start, took;
  logic [32:0]       lower_q;            // service so far less what this batch took
  logic              formed, reset_next, done_pop;

  assign done_old   = old_vld_q;
  assign done_model = done_old ? old_model_q : run_model_q;
  assign done_bat   = done_old ? old_bat_q : run_bat_q;
  assign done_n     = done_old ? old_n_q : run_n_q;
  assign done_start = done_old ? old_start_q : start_q[31:0];
  assign took       = end_q[31:0] - done_start;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      next_vld_q   <= 1'b0;
      run_vld_q    <= 1'b0;
      old_vld_q    <= 1'b0;
      start_pend_q <= 1'b0;
      end_seen_q   <= 1'b0;
      reset_q      <= 1'b0;
      cmd_first_q  <= 1'b0;
    end else begin
      if (formed) next_vld_q <= 1'b1;
      if (start_i || reset_next) next_vld_q <= 1'b0;
      if (done_pop && done_old)  old_vld_q <= 1'b0;
      if (done_pop && !done_old) run_vld_q <= 1'b0;
      if (start_i) begin
        run_vld_q <= 1'b1;
        old_vld_q <= run_vld_q && !(done_pop && !done_old);
      end
      if (start_i) start_pend_q <= 1'b1;
      else if (state_q == StStart && step_q == 6'd1) start_pend_q <= 1'b0;
      end_seen_q <= done_valid_i && !done_pop;
      // (A command that came before the reset takes effect before it.)
      if (reset_i && cmd_q != CmdNone) cmd_first_q <= 1'b1;
      if (cmd_done) cmd_first_q <= 1'b0;
      if (reset_i) reset_q <= 1'b1;
      else if (reset_now) reset_q <= 1'b0;  // another one during the pass asks for another pass
    end
  end

  always_ff @(posedge clk_i) begin
    if (start_i) begin
      old_model_q    <= run_model_q;
      old_bat_q      <= run_bat_q;
      old_n_q        <= run_n_q;
      old_start_q    <= start_q[31:0];
      run_model_q    <= next_model_q;
      run_bat_q      <= next_bat_q;
      run_n_q        <= next_n_q;
      run_base_q     <= next_base_q;
      run_limit_q    <= next_deadline_q - TimeW'(next_lead_q);
      run_lead_q     <= next_lead_q;
      start_q        <= cycle_i;
    end
    if (done_valid_i && !end_seen_q) end_q <= cycle_i;
  end

  // ---- The queue ------------------------------------------------------------------------------------------------------------------

  logic              q_busy, q_done, ins, take, out_d, out;
  logic [CountW-1:0] waiting, take_max;
  logic [1:0]        take_by;
  logic [TimeW-1:0]  deadline_q, go_q, out_deadline_d, out_deadline, scan_go, scan_deadline, sum;
  logic [ModelW-1:0] out_model_d, out_model, scan_model, take_model;
  logic [SlotW-1:0]  out_slot_d, out_slot;
  logic              scan_vld_d, scan_vld, scan_first_d, scan_first, scan_last_d, scan_last;
  logic [ModelW-1:0] scan_model_d;
  logic [TimeW-1:0]  scan_go_d, scan_deadline_d;

  ct_batch_queue #(.Depth(Depth), .SlotW(SlotW), .ModelW(ModelW), .TimeW(TimeW)) u_queue (
    .clk_i, .rst_ni,
    .busy_o          (q_busy),
    .done_o          (q_done),
    .count_o         (waiting),
    .ins_valid_i     (ins),
    .ins_deadline_i  (deadline_q),
    .ins_go_i        (go_q),
    .ins_model_i     (arg_q[ModelW-1:0]),
    .ins_slot_i      (place_q),
    .take_valid_i    (take),
    .take_by_i       (take_by),
    .take_model_i    (take_model),
    .take_slot_i     (arg_q),
    .take_max_i      (take_max),
    .out_valid_o     (out_d),
    .out_slot_o      (out_slot_d),
    .out_model_o     (out_model_d),
    .out_deadline_o  (out_deadline_d),
    .scan_valid_o    (scan_vld_d),
    .scan_first_o    (scan_first_d),
    .scan_last_o     (scan_last_d),
    .scan_model_o    (scan_model_d),
    .scan_go_o       (scan_go_d),
    .scan_deadline_o (scan_deadline_d)
  );

  // What leaves and what goes by is looked at a cycle later, for block RAM answers late in a cycle: the last that leaves in the cycle of q_done.
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) {out, scan_vld} <= 2'b00;
    else         {out, scan_vld} <= {out_d, scan_vld_d};
  end
  always_ff @(posedge clk_i) begin
    {out_slot, out_model, out_deadline} <= {out_slot_d, out_model_d, out_deadline_d};
    {scan_first, scan_last}             <= {scan_first_d, scan_last_d};
    {scan_model, scan_go, scan_deadline} <= {scan_model_d, scan_go_d, scan_deadline_d};
  end

  // ---- The scan: who is due, who comes first, and is there slack? ---------------------------------------------------------------

  logic              settled, scan_use, s_on_q, s_vld_q, s_first_q, s_last_q, s_full_q, s_many_q;
  logic [ModelW-1:0] s_model_q;
  logic [TimeW-1:0]  s_go_q, s_left_q;   // cycles until the time to go, and until the deadline
  logic [31:0]       s_lead_q;           // what ADAPTIVE goes ahead of it
  logic [TimeW-1:0]  s_need_q;           // service of the batches up to this one
  logic [Models-1:0] s_seen_q, seen;
  logic [6:0]        s_ctl;
  logic [TimeW-1:0]  now, due_in, spare;
  logic              due, tight, dirty, cand, pass;
  logic [Models-1:0] due_q, due_all, met_q, met;
  logic              dirty_q, cand_q, tight_q, slack_q, run_tight_q, pick_vld_q, is_cand;
  logic [ModelW-1:0] cand_model_q, pick_q, cand_model;
  logic              scanned_q;          // a whole scan since the last pass
  logic [TimeW-1:0]  run_spare;

  assign now   = cycle_i[TimeW-1:0];
  assign s_ctl = ctl[scan_model];
  assign seen  = scan_first ? '0 : s_seen_q;
  assign pass  = ins || take;            // breaks a scan off

  // What is known of the models is up to date: a scan that begins now counts.
  assign settled  = (state_q != StInsert) && (state_q != StTake) && (state_q != StLeft) && (state_q != StStream) && (state_q != StLead);
  assign scan_use = scan_vld && !pass && settled && (scan_first || s_on_q);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      s_on_q  <= 1'b0;
      s_vld_q <= 1'b0;
    end else begin
      // (A start changes what all of them have before them.)
      s_on_q  <= !start_i && (scan_use || (s_on_q && !pass && settled));
      s_vld_q <= !start_i && scan_use;
    end
  end

  always_ff @(posedge clk_i) begin
    if (scan_use) begin
      s_first_q <= scan_first;
      s_last_q  <= scan_last;
      s_model_q <= scan_model;
      s_go_q    <= scan_go - now;
      s_left_q  <= scan_deadline - now;
      s_lead_q  <= (s_ctl[6:5] == PolicyAdaptive) ? lead[scan_model] : '0;
      s_full_q  <= (cnt[scan_model] >= 7'(s_ctl[4:0]));
      s_many_q  <= (cnt[scan_model] > 7'(s_ctl[4:0]));
      s_seen_q  <= seen | (Models'(1) << scan_model);
      s_need_q  <= (scan_first ? (run_vld_q ? TimeW'(run_lead_q) : '0) : s_need_q) + (seen[scan_model] ? '0 : TimeW'(lead[scan_model]));
    end
    run_spare   <= run_limit_q - now;
    run_tight_q <= run_vld_q && run_spare[TimeW-1];
  end

  assign due_in  = s_go_q - TimeW'(s_lead_q);
  assign due     = due_in[TimeW-1] || s_full_q;
  assign spare   = s_left_q - s_need_q;
  assign tight   = (s_first_q ? 1'b0 : tight_q) || spare[TimeW-1] || s_many_q;
  assign met     = s_first_q ? '0 : met_q;
  assign due_all = due_q | (Models'(due) << s_model_q);
  // A model found due after one of its entries has gone by: the first one due is known only after another scan.
  assign dirty   = (s_first_q ? 1'b0 : dirty_q) || (due && !due_q[s_model_q] && met[s_model_q]);
  assign is_cand    = !s_first_q && cand_q;
  assign cand       = is_cand || due_all[s_model_q];
  assign cand_model = is_cand ? cand_model_q : s_model_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      due_q      <= '0;
      scanned_q  <= 1'b0;
      pick_vld_q <= 1'b0;
      slack_q    <= 1'b0;
    end else begin
      if (s_vld_q) begin
        due_q <= due_all;
        if (s_last_q) begin
          pick_vld_q <= cand && !dirty;
          slack_q    <= !tight;
        end
      end
      if (s_vld_q && s_last_q) scanned_q <= 1'b1;
      if (pass) begin
        scanned_q  <= 1'b0;
        pick_vld_q <= 1'b0;
      end
      if (pass || start_i) slack_q <= 1'b0;
      if (take) due_q <= '0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (s_vld_q) begin
      met_q        <= met | (Models'(1) << s_model_q);
      dirty_q      <= dirty;
      tight_q      <= tight;
      cand_q       <= cand;
      cand_model_q <= cand_model;
      if (s_last_q && !pass) pick_q <= cand_model;
    end
  end

  assign due_o    = (due_q != '0);
  assign loaded_o = (loaded_q != '0);
  // (What is tight about a batch that has just begun shows before its start has been noted.)
  assign slack_o = !run_tight_q && !next_vld_q && !start_pend_q && !form_o && cmd_q != CmdPush && (slack_q || (waiting == '0 && !q_busy));

  // ---- The machine ----------------------------------------------------------------------------------------------------------------

  logic              over, look_d, look_q;
  logic [6:0]        n_q, left_q;              // requests that left; of the oldest batch, those whose records are not popped
  logic [SlotW-1:0]  bat_head_q;               // the oldest batch
  logic [ModelW-1:0] lead_model_q;
  logic [6:0]        lead_cnt;
  logic [4:0]        lead_n, pick_max;
  logic [31:0]       add_q, addend;
  logic [32:0]       lead_sum;
  logic              rd_turn_q, cmd_turn_q;    // a read has let a command go first, a command a batch
  logic              refuse, cmd_ok, some_left, accept, cmd_now, form_now, reset_now, cancelled, streamed, gat;

  // The oldest record, if rec_vld_q.
  logic              rec_vld_q, rec_ran_q, rec_met_q, borrow_q;
  logic [SlotW-1:0]  rec_place_q;
  logic [6:0]        rec_n_q;
  logic [7:0]        rec_code_q, left_over;

  assign gat       = (gat_valid_i != '0);
  assign refuse    = !loaded_q[arg_q[ModelW-1:0]] || free_q == '0 || waiting == CountW'(Depth) || spoilt_q;
  // While a batch could go, each command lets a whole scan pass before the next, or a batch be formed: no host, however busy, keeps the
  // queue from being seen, and no stream of short batches holds up the host.
  assign cmd_ok    = !job_ready_i || next_vld_q || waiting == '0 || scanned_q || cmd_turn_q;
  // Requests that are neither waiting nor gone. (Without one the oldest batch's words are those of one long ago.)
  assign some_left = (free_q + (SlotW + 1)'(waiting) != (SlotW + 1)'(Slots));
  assign accept    = (state_q == StPush) && (step_q == 6'd0) && !refuse;
  assign pick_max  = ctl[pick_q][4:0];
  assign form_now  = (state_q == StIdle) && (state_d == StTake) && (for_d == ForBatch);
  assign reset_now = (state_q == StIdle) && (state_d == StTake) && (for_d == ForReset);
  assign streamed  = (state_q == StStream) && (step_q == 6'd32);

  // The order of things. step_q counts the cycles in a state.
  always_comb begin
    state_d  = state_q;
    step_d   = step_q + 6'd1;
    for_d    = for_q;
    cmd_done = 1'b0;
    cmd_now  = 1'b0;
    look_d   = look_q;
    take     = 1'b0;
    unique case (state_q)
      StIdle: begin
        if (start_pend_q) begin
          state_d = StStart;
        end else if (done_valid_i) begin
          state_d = StDone;
        end else if (reset_q && !cmd_first_q) begin
          state_d = StTake;
          for_d   = ForReset;
          take    = 1'b1;
        end else if (job_ready_i && pick_vld_q && !next_vld_q && !reset_i && !reset_q) begin
          state_d = StTake;
          for_d   = ForBatch;
          take    = 1'b1;
        end else if (rd_turn_q && rd_valid_i && !cmd_first_q) begin
          state_d = StRead;
        end else if (cmd_q != CmdNone && (cmd_ok || cmd_first_q)) begin
          cmd_now = 1'b1;
          unique case (cmd_q)
            CmdPush: state_d = StPush;
            CmdCancel: begin
              state_d = StTake;
              for_d   = ForCancel;
              take    = 1'b1;
            end
            CmdUnload: begin
              state_d = StTake;
              for_d   = ForUnload;
              take    = 1'b1;
            end
            default: cmd_done = 1'b1;  // COMMIT and a pop take one cycle
          endcase
        end else if (look_q && !rec_vld_q && some_left) begin
          state_d = StLoad;
        end else if (rd_valid_i && cmd_q == CmdNone) begin
          state_d = StRead;
        end
        step_d = '0;
        if (cmd_now && cmd_q == CmdPop) look_d = 1'b1;
      end
      StPush: begin
        if (step_q == 6'd0 && refuse) begin
          state_d  = StIdle;
          cmd_done = 1'b1;
        end else if (step_q == 6'd3) begin
          state_d = StInsert;
        end
      end
      StInsert: begin
        if (q_done) begin
          state_d  = StLead;
          cmd_done = 1'b1;
          step_d   = '0;
        end
      end
      StTake: if (q_done) state_d = StLeft;
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
          state_d = (done_code_i == ct_pkg::ErrOk) ? StService : StIdle;
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
        if (step_q == 6'd1 && !over) begin
          state_d = StIdle;
          look_d  = 1'b0;
        end else if (gat && step_q != 6'd3) begin
          step_d = '0;                           // the request's words cannot be read now
        end else if (step_q == 6'd3) begin
          state_d = StIdle;
        end
      end
      StRead: begin
        if (step_q == 6'd0 && gat) step_d = '0;
        if (step_q == 6'd1) state_d = StIdle;
      end
      default: state_d = StIdle;
    endcase
  end

  // done_*: over with the fourth word, and only then does the next one's cycle count.
  assign done_pop     = (state_q == StDone) && (step_q == 6'd4);
  assign done_ready_o = done_pop;
  assign formed       = (state_q == StLeft) && (for_q == ForBatch);
  assign reset_next   = reset_now && next_vld_q;
  assign form_o       = ((state_q == StTake || state_q == StLeft) && for_q == ForBatch) || state_q == StStream || desc_valid_o;
  assign ins          = (state_q == StPush) && (step_q == 6'd3);
  // (What leaves is looked at from the next cycle on, how many at once.)
  assign take_by      = (for_q == ForCancel) ? 2'd1 : (for_q == ForReset) ? 2'd2 : 2'd0;
  assign take_model   = (for_q == ForUnload) ? arg_q[ModelW-1:0] : pick_q;
  assign take_max     = (for_d == ForBatch) ? CountW'(pick_max) : CountW'(Depth);
  assign cancelled    = (state_q == StLeft) && (for_q == ForCancel);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q    <= StIdle;
      step_q     <= '0;
      for_q      <= ForBatch;
      look_q     <= 1'b0;
      rd_turn_q  <= 1'b0;
      cmd_turn_q <= 1'b0;
      rec_vld_q  <= 1'b0;
      loaded_q   <= '0;
      bank_q     <= '0;
      alloc_q    <= '0;
      head_q     <= '0;
      write_q    <= '0;
      bat_head_q <= '0;
      bat_q_form <= '0;
      left_q     <= '0;
      n_q        <= '0;
      free_q     <= (SlotW + 1)'(Slots);
      fresh_q    <= 1'b1;
      result_q   <= ResOk;
    end else begin
      state_q <= state_d;
      step_q  <= step_d;
      for_q   <= for_d;
      look_q  <= look_d;
      cmd_turn_q <= (cmd_q != CmdNone) && !cmd_done && (cmd_turn_q || form_now);
      rd_turn_q <= rd_valid_i && !rd_vld_o && (rd_turn_q || cmd_done);

      // A push takes a place, a pop gives one back.
      if (accept) begin
        alloc_q <= alloc_q + 1'b1;
        free_q  <= free_q - 1'b1;
        if (alloc_q == SlotW'(Slots - 1)) fresh_q <= 1'b0;
      end
      if (cmd_now && cmd_q == CmdPop && rec_vld_q) begin
        rec_vld_q <= 1'b0;
        head_q    <= head_q + 1'b1;
        free_q    <= free_q + 1'b1;
        left_q    <= left_q - 1'b1;
        if (left_q == 7'd1) bat_head_q <= bat_head_q + 1'b1;
      end
      if (out) write_q <= write_q + 1'b1;

      if (take) n_q <= '0;
      else if (out) n_q <= n_q + 1'b1;
      if (state_q == StLeft && n_q != '0) bat_q_form <= bat_q_form + 1'b1;

      if (state_q == StLoad && step_q == 6'd1 && over && left_q == '0) left_q <= bat_q[14:8];
      if (state_q == StLoad && step_q == 6'd3) rec_vld_q <= 1'b1;

      if (cmd_now && cmd_q == CmdCommit) begin
        loaded_q[arg_q[ModelW-1:0]] <= 1'b1;
        bank_q[arg_q[ModelW-1:0]]   <= !bank_q[arg_q[ModelW-1:0]];
      end
      if (cmd_now && cmd_q == CmdUnload) loaded_q[arg_q[ModelW-1:0]] <= 1'b0;

      if (state_q == StPush && step_q == 6'd0)
        result_q <= !loaded_q[arg_q[ModelW-1:0]] ? ResModel : refuse ? ResFull : ResOk;
      if (cancelled) result_q <= (n_q == '0) ? ResGone : ResOk;
    end
  end

  // ---- What the machine reads and writes ----------------------------------------------------------------------------------------

  // Places. The next free one is fetched while nothing else happens.
  assign ring_rdata = ring[ring_raddr];
  always_comb begin
    ring_raddr = (state_q == StLoad) ? head_q : alloc_q;
    if (gat_valid_i[1]) ring_raddr = run_base_q + SlotW'(gat_row_i[7:4]);
    if (gat_valid_i[0]) ring_raddr = run_base_q + SlotW'(gat_row_i[3:0]);
  end

  always_ff @(posedge clk_i) begin
    if (out) ring[write_q] <= out_slot;
    if (!placed_q) place_q <= fresh_q ? alloc_q : ring_rdata;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni)                                                                                    placed_q <= 1'b0;
    else if (state_q == StInsert && q_done)                                                         placed_q <= 1'b0;
    else if (!placed_q && free_q != '0 && !gat && state_q != StLoad && cmd_q == CmdNone)            placed_q <= 1'b1;
  end

  // Requests.
  always_comb begin
    req_we    = wr && (wr_word_i <= WordTag) && placed_q;
    req_waddr = {place_q, wr_word_i[2:0]};
    req_wdata = wr_data_i;
    if (state_q == StPush) begin
      req_we    = (step_q != 6'd0) || accept;
      req_waddr = {place_q, ReqArrive + step_q[2:0]};
      unique case (step_q[1:0])
        2'd0:    req_wdata = arrive_q[31:0];
        2'd1:    req_wdata = arrive_q[63:32];
        2'd2:    req_wdata = deadline_q[31:0];
        default: req_wdata = {rel_q == '0, arg_q[2:0], 20'd0, deadline_q[TimeW-1:32]};
      endcase
    end
    req_raddr = {rec_place_q, rd_word_i[2:0]};
    if (state_q == StLoad)   req_raddr = {ring_rdata, (step_q == 6'd1) ? ReqDeadline : ReqDeadline + 3'd1};
    if (gat_valid_i != '0)   req_raddr = {ring_rdata, 2'd0, !gat_valid_i[0]};
  end

  assign gat_gnt_o  = {gat_valid_i[1] && !gat_valid_i[0], gat_valid_i[0]};
  assign gat_addr_o = req_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) gat_vld_o <= '0;
    else         gat_vld_o <= gat_gnt_o;
  end

  // Times of a push: deadline, then time to go.
  always_comb begin
    addend = (rel_q == '0) ? '1 : rel_q;
    if (step_q != 6'd0) begin
      if (ctl[arg_q[ModelW-1:0]][6:5] == PolicyNone)                          addend = '0;
      else if (ctl[arg_q[ModelW-1:0]][6:5] == PolicyFixed || rel_q == '0)     addend = mod_q;
    end
  end
  assign sum = arrive_q[TimeW-1:0] + TimeW'(addend);
  always_ff @(posedge clk_i) begin
    if (state_q == StPush && step_q == 6'd0) deadline_q <= sum;
    if (state_q == StPush && step_q == 6'd1) go_q <= sum;
  end

  // How many of a model wait.
  logic              cnt_we;
  logic [ModelW-1:0] cnt_model;
  logic [6:0]        cnt_now, cnt_next;
  always_comb begin
    cnt_we    = out || (state_q == StInsert && q_done) || (cmd_now && cmd_q == CmdCommit && !loaded_q[arg_q[ModelW-1:0]]);
    cnt_model = out ? out_model : arg_q[ModelW-1:0];
    cnt_now   = cnt[cnt_model];
    cnt_next  = out ? cnt_now - 1'b1 : (state_q == StInsert) ? cnt_now + 1'b1 : '0;
  end
  always_ff @(posedge clk_i) begin
    if (cnt_we) cnt[cnt_model] <= cnt_next;
  end

  // Batches.
  logic [6:0]       code_n;
  logic [7:0]       code;
  logic             code_over, code_ran;
  logic [SlotW-1:0] bat;
  logic [2:0]       bat_word;
  always_comb begin
    bat       = bat_q_form;
    bat_word  = RecCode;
    bat_we    = 1'b0;
    code_n    = n_q;
    code      = ct_pkg::ErrOk;
    code_over = 1'b1;
    code_ran  = 1'b0;
    unique case (state_q)
      StIdle: begin
        bat    = next_bat_q;
        bat_we = reset_next;
        code_n = 7'(next_n_q);
        code   = ct_pkg::ErrReset;
      end
      StLeft: begin
        bat_we    = (n_q != '0);
        code_over = (for_q != ForBatch);
        code      = (for_q == ForCancel) ? ct_pkg::ErrCancelled : (for_q == ForReset) ? ct_pkg::ErrReset :
                    (for_q == ForUnload) ? ct_pkg::ErrUnloaded : ct_pkg::ErrOk;
      end
      StStream: begin
        bat      = next_bat_q;
        bat_word = RecVersion;
        bat_we   = (step_q == 6'd2);
      end
      StStart: begin
        bat      = run_bat_q;
        bat_word = RecStart + step_q[2:0];
        bat_we   = 1'b1;
      end
      StDone: begin
        bat      = done_bat;
        bat_word = (step_q < 6'd2) ? RecEnd + step_q[2:0] : (step_q == 6'd2) ? RecAddr : (step_q == 6'd3) ? RecRows : RecCode;
        bat_we   = 1'b1;
        code_n   = 7'(done_n);
        code     = done_code_i;
        code_ran = 1'b1;
      end
      default: ;
    endcase
  end
  assign bat_waddr = {bat, bat_word};
  always_comb begin
    unique case (bat_word)
      3'd0:       bat_wdata = start_q[31:0];
      3'd1:       bat_wdata = start_q[63:32];
      3'd2:       bat_wdata = end_q[31:0];
      3'd3:       bat_wdata = end_q[63:32];
      RecVersion: bat_wdata = mod_q;
      RecAddr:    bat_wdata = done_addr_i;
      RecRows:    bat_wdata = done_rows_i;
      default:    bat_wdata = {code_over, code_ran, 15'd0, code_n, code};
    endcase
    bat_raddr = {bat_head_q, rd_word_i[2:0]};
    if (state_q == StLoad) bat_raddr = {bat_head_q, (step_q == 6'd0) ? RecCode : RecEnd + 3'(step_q != 6'd1)};
  end

  always_ff @(posedge clk_i) begin
    if (form_now) begin
      next_model_q <= pick_q;
      next_bank_q  <= bank_q[pick_q];
      next_lead_q  <= lead[pick_q];
    end
    if (state_q == StTake && out && n_q == '0 && for_q == ForBatch) begin
      next_deadline_q <= out_deadline;
      next_base_q     <= write_q;
    end
    if (formed) begin
      next_bat_q <= bat_q_form;
      next_n_q   <= n_q[4:0];
    end
  end

  // The oldest record: its words, and whether its end came in time.
  assign over      = bat_q[31];
  assign left_over = req_q[7:0] - bat_q[7:0] - 8'(borrow_q);
  always_ff @(posedge clk_i) begin
    if (state_q == StLoad) begin
      if (step_q == 6'd1) begin
        {rec_ran_q, rec_n_q, rec_code_q} <= {bat_q[30], bat_q[14:8], bat_q[7:0]};
        rec_place_q                      <= ring_rdata;
      end
      if (step_q == 6'd2) borrow_q  <= (req_q < bat_q);
      if (step_q == 6'd3) rec_met_q <= (req_q[31] || !left_over[7]) && rec_ran_q && rec_code_q == ct_pkg::ErrOk;
    end
  end
  assign irq_o = rec_vld_q;

  // Models.
  logic [ModelW-1:0] took_model_q;
  logic [4:0]        took_n_q;
  logic [31:0]       took_q;
  logic [ModelW+6:0] mod_host_at;
  logic [ModelW-1:0] mod_at;
  assign mod_at      = mod_at_q[8:6];
  assign mod_host_at = mod_at_q[5] ? {2'b10, mod_at, mod_at_q[4:0]} : {1'b0, !bank_q[mod_at], mod_at, mod_at_q[4:0]};
  assign service_we  = (state_q == StService) && (step_q == 6'd2);
  always_ff @(posedge clk_i) lower_q <= {1'b0, mod_q} - {1'b0, took_q};
  assign lead_cnt    = cnt[lead_model_q];
  assign lead_n      = (lead_cnt > 7'(ctl[lead_model_q][4:0])) ? ctl[lead_model_q][4:0] : (lead_cnt == '0) ? 5'd1 : lead_cnt[4:0];
  assign lead_sum    = {1'b0, add_q} + {1'b0, mod_q};

  always_comb begin
    mod_we    = mod_host || service_we;
    mod_waddr = mod_host_at;
    mod_wdata = wr_data_i;
    if (service_we) begin
      mod_waddr = {2'b10, took_model_q, 1'b1, 4'(took_n_q - 5'd1)};
      mod_wdata = lower_q[32] ? took_q : mod_q - {3'd0, lower_q[31:3]};
    end
    unique case (state_q)
      StPush:    mod_raddr = {2'b10, arg_q[ModelW-1:0], CtlWait};
      StStream:  mod_raddr = {1'b0, next_bank_q, next_model_q, step_q[4:0]};
      StLead:    mod_raddr = {2'b10, lead_model_q, (step_q == 6'd0) ? {1'b1, 4'(lead_n - 5'd1)} : CtlMargin};
      StService: mod_raddr = {2'b10, took_model_q, 1'b1, 4'(took_n_q - 5'd1)};
      default:   mod_raddr = mod_host_at;
    endcase
  end

  always_ff @(posedge clk_i) begin
    if (state_q == StInsert)    lead_model_q <= arg_q[ModelW-1:0];
    if (out)                    lead_model_q <= out_model;
    if (state_q == StService)   lead_model_q <= took_model_q;
    if (state_q == StDone) begin
      took_model_q <= done_model;
      took_n_q     <= done_n;
      took_q       <= took;
    end
    if (state_q == StLead && step_q == 6'd1) add_q <= mod_q;
    if (state_q == StLead && step_q == 6'd2) lead[lead_model_q] <= lead_sum[32] ? '1 : lead_sum[31:0];
  end

  // The descriptor: four words to a beat.
  logic         desc_valid_q, desc_first_q;
  logic [127:0] shift_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) desc_valid_q <= 1'b0;
    // (What a reset has dropped is not offered any more.)
    else         desc_valid_q <= (state_q == StStream) && (step_q[1:0] == 2'd0) && (step_q != 6'd0) && !reset_q && !reset_i;
  end
  always_ff @(posedge clk_i) begin
    desc_first_q <= (step_q == 6'd4);
    if (state_q == StStream) shift_q <= {mod_q, shift_q[127:32]};
  end
  assign desc_valid_o = desc_valid_q;
  assign desc_first_o = desc_valid_q && desc_first_q;
  assign desc_data_o  = shift_q;
  assign desc_rows_o  = next_n_q;

  // ---- Reads --------------------------------------------------------------------------------------------------------------------

  logic [CountW-1:0] room;
  logic [Models-1:0] busy;
  assign room = (free_q < (SlotW + 1)'(CountW'(Depth) - waiting)) ? CountW'(free_q) : CountW'(Depth) - waiting;
  assign busy = (Models'(next_vld_q) << next_model_q) | (Models'(run_vld_q) << run_model_q) | (Models'(old_vld_q) << old_model_q);

  assign rd_vld_o = (state_q == StRead) && (step_q == 6'd1);
  always_comb begin
    rd_data_o = '0;
    if (rd_word_i[5:3] == 3'd2 && rd_word_i != WordRecord) begin
      if (rec_vld_q) rd_data_o = req_q;
    end else if (rd_word_i[5:3] == 3'd3) begin
      if (rec_vld_q && rec_ran_q && rd_word_i[2:0] != RecCode) rd_data_o = bat_q;
    end else begin
      unique case (rd_word_i)
        WordResult: rd_data_o = {9'd0, ticket_q, 1'b0, room, 5'd0, result_q};
        WordState:  rd_data_o = {1'b0, waiting, 8'd0, busy, loaded_q};
        WordData:   rd_data_o = mod_q;
        WordRecord: if (rec_vld_q) rd_data_o = {1'b1, rec_met_q, rec_ran_q, 6'd0, rec_place_q, 1'b0, rec_n_q, rec_code_q};
        default: ;
      endcase
    end
  end
  always_ff @(posedge clk_i) begin
    if (accept) ticket_q <= place_q;
  end

  // ---- Invariants -------------------------------------------------------------------------------------------------------------

  logic [SlotW-1:0] left_there, held;
  logic [11:0]      go_wait_q;           // cycles in which a batch could have gone
  assign left_there = write_q - head_q;
  assign held       = SlotW'(Slots - 32'(free_q)) - SlotW'(waiting);
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) go_wait_q <= '0;
    else         go_wait_q <= (job_ready_i && !next_vld_q && !form_o && due_q != '0) ? go_wait_q + 1'b1 : '0;
  end

  `CT_ASSERT(Conserved_A, state_q != StIdle || left_there == held)
  `CT_ASSERT(NotedInPass_A, !out || state_q == StTake)
  `CT_ASSERT(OwnModel_A, !(out && state_q == StTake && for_q == ForBatch) || out_model == next_model_q)
  `CT_ASSERT(SizeOfBatch_A, !formed || (n_q != '0 && n_q <= 7'(Most)))
  `CT_ASSERT(DueGoes_A, go_wait_q < 12'd2500)
  `CT_ASSERT(PlaceKept_A, !(state_q == StPush || state_q == StInsert) || placed_q || refuse)
  `CT_ASSUME(StartsWhatWasTaken_M, !start_i || (next_vld_q && !(run_vld_q && old_vld_q) && !start_pend_q))
  `CT_ASSUME(EndsWhatRan_M, !done_valid_i || run_vld_q || old_vld_q)
  `CT_ASSUME(RowOfBatch_M, (!gat_valid_i[0] || 5'(gat_row_i[3:0]) < run_n_q) && (!gat_valid_i[1] || 5'(gat_row_i[7:4]) < run_n_q))

  `CT_COVER(AllHeld_C, free_q == '0)
  `CT_COVER(Overlap_C, run_vld_q && old_vld_q)
  `CT_COVER(Restart_C, state_q == StLoad && gat && step_q != 6'd3)

  logic unused;
  assign unused = ^{WordInput, left_over[6:0], lower_q[2:0]};

endmodule

`default_nettype wire
