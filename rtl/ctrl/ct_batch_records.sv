// SPDX-License-Identifier: Apache-2.0
//
// The records of ct_batch: the words of its batches, and the oldest request that waits no more.
//
// Batches     8 words each in a block RAM, in turn by number (form_number_o is that of the next one): 0 and 1 start, 2 and 3 end, 4 version of the
//             model, 5 and 6 address and rows of the failed command, 7 code, number of requests, whether it ran and whether it is over.
//             Requests that a cancel, an unload or a reset took out of the queue are a batch that is over without having run.
// Written     by the machine's states (ct_batch_seq, step_i): left_i the code, stream_i the version, note_i the start, ending_i the end, and with
//             dropped_i the code of a batch that a reset has dropped.
// Oldest      in load_i, as far as over_i (step 1) says that its batch is over; then rec_vld_o, until pop_i. It met its deadline if its batch
//             ran and did not fail, and its end (modulo 2^40 cycles) was not behind the deadline, or if there was none.
// Reads       state_o is REC_STATE; batch_word_o follows rd_word_i by a cycle: a word of the oldest record's batch. Both are 0 without a record, and
//             so is the word of a batch that has not run, and its code.

`default_nettype none

module ct_batch_records #(
  parameter  int unsigned Slots = 128,
  localparam int unsigned SlotW = $clog2(Slots)
) (
  input  logic             clk_i,
  input  logic             rst_ni,

  // The machine.
  input  logic             left_i,
  input  logic             stream_i,
  input  logic             note_i,
  input  logic             ending_i,
  input  logic             load_i,
  input  logic [5:0]       step_i,
  input  logic             dropped_i,
  input  logic             gone_i,          // left_i: they will not run
  input  logic [7:0]       code_i,          // left_i: why they left
  input  logic [6:0]       n_i,             // and how many
  output logic             over_o,          // load_i, step 1
  output logic [SlotW-1:0] form_number_o,

  // The batches on their way, and what is written of them.
  input  logic [SlotW-1:0] next_number_i,
  input  logic [4:0]       next_n_i,
  input  logic [31:0]      version_i,       // stream_i, step 2
  input  logic [SlotW-1:0] run_number_i,
  input  logic [63:0]      run_start_i,
  input  logic [SlotW-1:0] done_number_i,
  input  logic [4:0]       done_n_i,
  input  logic [63:0]      end_i,
  input  logic [7:0]       done_code_i,
  input  logic [31:0]      done_addr_i,
  input  logic [31:0]      done_rows_i,

  // The oldest request: its place (load_i, step 1), and its words.
  input  logic [SlotW-1:0] place_i,
  input  logic [31:0]      request_i,
  input  logic             pop_i,
  output logic             popped_o,        // there was one
  output logic             rec_vld_o,
  output logic [SlotW-1:0] rec_place_o,

  input  logic [2:0]       rd_word_i,
  output logic [31:0]      state_o,
  output logic [31:0]      batch_word_o
);

  // Words of a batch.
  localparam logic [2:0] RecStart = 3'd0, RecEnd = 3'd2, RecVersion = 3'd4, RecAddr = 3'd5, RecRows = 3'd6, RecCode = 3'd7;

  (* no_rw_check *) logic [31:0] bat_mem [0:8*Slots-1];
  logic             bat_we;
  logic [SlotW+2:0] bat_waddr, bat_raddr;
  logic [31:0]      bat_wdata, bat_q;

  always_ff @(posedge clk_i) begin
    if (bat_we) bat_mem[bat_waddr] <= bat_wdata;
    bat_q <= bat_mem[bat_raddr];
  end

  logic [SlotW-1:0] bat_q_form;         // number of the next batch
  logic [SlotW-1:0] bat_head_q;         // the oldest batch
  logic [6:0]       left_q;             // its requests whose records are not popped

  // The oldest record, if rec_vld_q.
  logic             rec_vld_q, rec_ran_q, rec_met_q, borrow_q;
  logic [SlotW-1:0] rec_place_q;
  logic [6:0]       rec_n_q;
  logic [7:0]       rec_code_q, left_over;

  // ---- What is written ------------------------------------------------------------------------------------------------------------

  logic [6:0]       code_n;
  logic [7:0]       code;
  logic             code_over, code_ran;
  logic [SlotW-1:0] bat;
  logic [2:0]       bat_word;
  always_comb begin
    bat       = bat_q_form;
    bat_word  = RecCode;
    bat_we    = 1'b0;
    code_n    = n_i;
    code      = ct_pkg::ErrOk;
    code_over = 1'b1;
    code_ran  = 1'b0;
    unique case (1'b1)
      dropped_i: begin
        bat    = next_number_i;
        bat_we = 1'b1;
        code_n = 7'(next_n_i);
        code   = ct_pkg::ErrReset;
      end
      left_i: begin
        bat_we    = (n_i != '0);
        code_over = gone_i;
        code      = code_i;
      end
      stream_i: begin
        bat      = next_number_i;
        bat_word = RecVersion;
        bat_we   = (step_i == 6'd2);
      end
      note_i: begin
        bat      = run_number_i;
        bat_word = RecStart + step_i[2:0];
        bat_we   = 1'b1;
      end
      ending_i: begin
        bat      = done_number_i;
        bat_word = (step_i < 6'd2) ? RecEnd + step_i[2:0] : (step_i == 6'd2) ? RecAddr : (step_i == 6'd3) ? RecRows : RecCode;
        bat_we   = 1'b1;
        code_n   = 7'(done_n_i);
        code     = done_code_i;
        code_ran = 1'b1;
      end
      default: ;
    endcase
  end
  assign bat_waddr = {bat, bat_word};
  always_comb begin
    unique case (bat_word)
      3'd0:       bat_wdata = run_start_i[31:0];
      3'd1:       bat_wdata = run_start_i[63:32];
      3'd2:       bat_wdata = end_i[31:0];
      3'd3:       bat_wdata = end_i[63:32];
      RecVersion: bat_wdata = version_i;
      RecAddr:    bat_wdata = done_addr_i;
      RecRows:    bat_wdata = done_rows_i;
      default:    bat_wdata = {code_over, code_ran, 15'd0, code_n, code};
    endcase
    bat_raddr = {bat_head_q, rd_word_i};
    if (load_i) bat_raddr = {bat_head_q, (step_i == 6'd0) ? RecCode : RecEnd + 3'(step_i != 6'd1)};
  end

  // ---- The oldest record: its words, and whether its end came in time -----------------------------------------------------------------

  assign popped_o = pop_i && rec_vld_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      rec_vld_q  <= 1'b0;
      bat_head_q <= '0;
      bat_q_form <= '0;
      left_q     <= '0;
    end else begin
      if (popped_o) begin
        rec_vld_q <= 1'b0;
        left_q    <= left_q - 1'b1;
        if (left_q == 7'd1) bat_head_q <= bat_head_q + 1'b1;
      end
      if (left_i && n_i != '0) bat_q_form <= bat_q_form + 1'b1;
      if (load_i && step_i == 6'd1 && over_o && left_q == '0) left_q <= bat_q[14:8];
      if (load_i && step_i == 6'd3) rec_vld_q <= 1'b1;
    end
  end

  assign over_o    = bat_q[31];
  assign left_over = request_i[7:0] - bat_q[7:0] - 8'(borrow_q);
  always_ff @(posedge clk_i) begin
    if (load_i) begin
      if (step_i == 6'd1) begin
        {rec_ran_q, rec_n_q, rec_code_q} <= {bat_q[30], bat_q[14:8], bat_q[7:0]};
        rec_place_q                      <= place_i;
      end
      if (step_i == 6'd2) borrow_q  <= (request_i < bat_q);
      if (step_i == 6'd3) rec_met_q <= (request_i[31] || !left_over[7]) && rec_ran_q && rec_code_q == ct_pkg::ErrOk;
    end
  end

  assign form_number_o = bat_q_form;
  assign rec_vld_o     = rec_vld_q;
  assign rec_place_o   = rec_place_q;
  assign state_o       = rec_vld_q ? {1'b1, rec_met_q, rec_ran_q, 6'd0, rec_place_q, 1'b0, rec_n_q, rec_code_q} : '0;
  assign batch_word_o  = (rec_vld_q && rec_ran_q && rd_word_i != RecCode) ? bat_q : '0;

  logic unused;
  assign unused = ^left_over[6:0];

endmodule

`default_nettype wire
