// SPDX-License-Identifier: Apache-2.0
//
// The batches of ct_batch that are on their way, one in each of three stages.
//
// next        it is being formed, or has been and ct_job has taken it: from form_now_i on its model, with joins_i its requests (the first one's
//             deadline is the batch's), from formed_i on all of it, and next_vld_o. A reset drops it (dropped_i).
// run         it has begun (start_i, a pulse): the one whose rows the DMA asks for.
// old         it had begun before that one, and is not over. At most one.
//
// Ends        done_valid_i, until ended_i takes it: the older one is over (done_*_o), which took took_o cycles. end_o is when done_valid_i came.
// tight_o     the batch that runs has less time than the service of one like it, and a margin (that of its model when it was formed).

`default_nettype none
`include "ct_assert.svh"

module ct_batch_stages #(
  parameter  int unsigned SlotW  = 7,
  parameter  int unsigned Models = 8,
  parameter  int unsigned Most   = 16,
  parameter  int unsigned TimeW  = 40,
  localparam int unsigned ModelW = $clog2(Models)
) (
  input  logic              clk_i,
  input  logic              rst_ni,

  input  logic [63:0]       cycle_i,

  // Forming.
  input  logic              form_now_i,
  input  logic [ModelW-1:0] model_i,
  input  logic              bank_i,          // the model's descriptor
  input  logic [31:0]       lead_i,          // its service of a batch of those that wait, and margin
  input  logic              joins_i,
  input  logic [TimeW-1:0]  deadline_i,
  input  logic [SlotW-1:0]  position_i,      // in the ring of places
  input  logic              formed_i,
  input  logic [SlotW-1:0]  number_i,
  input  logic [6:0]        n_i,             // requests that have joined
  input  logic              dropped_i,

  // Start and end.
  input  logic              start_i,
  input  logic              done_valid_i,
  input  logic              ended_i,

  output logic              next_vld_o,
  output logic [ModelW-1:0] next_model_o,
  output logic              next_bank_o,
  output logic [SlotW-1:0]  next_number_o,
  output logic [4:0]        next_n_o,

  output logic              run_vld_o,
  output logic [SlotW-1:0]  run_number_o,
  output logic [4:0]        run_n_o,
  output logic [SlotW-1:0]  run_base_o,      // position of its first request
  output logic [31:0]       run_lead_o,
  output logic [63:0]       run_start_o,
  output logic              tight_o,

  output logic              old_vld_o,

  output logic [ModelW-1:0] done_model_o,
  output logic [SlotW-1:0]  done_number_o,
  output logic [4:0]        done_n_o,
  output logic [63:0]       end_o,
  output logic [31:0]       took_o,

  output logic [Models-1:0] busy_o           // models that have batches on their way
);

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
  logic              end_seen_q;
  logic [TimeW-1:0]  run_spare;
  logic              run_tight_q;

  logic              done_old;           // what is over is the older one
  logic [31:0]       done_start;

  assign done_old      = old_vld_q;
  assign done_model_o  = done_old ? old_model_q : run_model_q;
  assign done_number_o = done_old ? old_bat_q : run_bat_q;
  assign done_n_o      = done_old ? old_n_q : run_n_q;
  assign done_start    = done_old ? old_start_q : start_q[31:0];
  assign took_o        = end_q[31:0] - done_start;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      next_vld_q <= 1'b0;
      run_vld_q  <= 1'b0;
      old_vld_q  <= 1'b0;
      end_seen_q <= 1'b0;
    end else begin
      if (formed_i) next_vld_q <= 1'b1;
      if (start_i || dropped_i) next_vld_q <= 1'b0;
      if (ended_i && done_old)  old_vld_q <= 1'b0;
      if (ended_i && !done_old) run_vld_q <= 1'b0;
      if (start_i) begin
        run_vld_q <= 1'b1;
        old_vld_q <= run_vld_q && !(ended_i && !done_old);
      end
      end_seen_q <= done_valid_i && !ended_i;
    end
  end

  always_ff @(posedge clk_i) begin
    if (form_now_i) begin
      next_model_q <= model_i;
      next_bank_q  <= bank_i;
      next_lead_q  <= lead_i;
    end
    if (joins_i && n_i == '0) begin
      next_deadline_q <= deadline_i;
      next_base_q     <= position_i;
    end
    if (formed_i) begin
      next_bat_q <= number_i;
      next_n_q   <= n_i[4:0];
    end
    if (start_i) begin
      old_model_q <= run_model_q;
      old_bat_q   <= run_bat_q;
      old_n_q     <= run_n_q;
      old_start_q <= start_q[31:0];
      run_model_q <= next_model_q;
      run_bat_q   <= next_bat_q;
      run_n_q     <= next_n_q;
      run_base_q  <= next_base_q;
      run_limit_q <= next_deadline_q - TimeW'(next_lead_q);
      run_lead_q  <= next_lead_q;
      start_q     <= cycle_i;
    end
    if (done_valid_i && !end_seen_q) end_q <= cycle_i;
    run_spare   <= run_limit_q - cycle_i[TimeW-1:0];
    run_tight_q <= run_vld_q && run_spare[TimeW-1];
  end

  assign next_vld_o    = next_vld_q;
  assign next_model_o  = next_model_q;
  assign next_bank_o   = next_bank_q;
  assign next_number_o = next_bat_q;
  assign next_n_o      = next_n_q;
  assign run_vld_o     = run_vld_q;
  assign run_number_o  = run_bat_q;
  assign run_n_o       = run_n_q;
  assign run_base_o    = run_base_q;
  assign run_lead_o    = run_lead_q;
  assign run_start_o   = start_q;
  assign tight_o       = run_tight_q;
  assign old_vld_o     = old_vld_q;
  assign end_o         = end_q;

  assign busy_o = (Models'(next_vld_q) << next_model_q) | (Models'(run_vld_q) << run_model_q) | (Models'(old_vld_q) << old_model_q);

  // ---- Invariants -------------------------------------------------------------------------------------------------------------------

  `CT_ASSERT(SizeOfBatch_A, !formed_i || (n_i != '0 && n_i <= 7'(Most)))

  `CT_COVER(Overlap_C, run_vld_q && old_vld_q)

endmodule

`default_nettype wire
