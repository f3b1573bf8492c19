// SPDX-License-Identifier: Apache-2.0
//
// The model table of ct_batch: descriptors, control words and service times, in one block RAM; and what is known of each model at any time.
//
// Table       for each model 32 words of descriptor, twice (writes go to the one not in use; COMMIT changes over), and 32 of control: 0 policy
//             (bits 1..0) and max_batch (12..8), 1 max_wait, 2 margin, 16 + b - 1 service of a batch of b. MODEL_DATA writes the word that
//             MODEL_ADDR names (word_o reads it while the machine reads nothing), which moves on.
// Service     for each model and size of a batch the time from start to end: raised at once to what was measured, lowered by an eighth of
//             the difference; batches that failed do not count. It stands in the model's words, so the host can read and preset it.
// At hand     of each model the policy and max_batch (ctl), how many of its requests wait (cnt: inserted_i one more, out_i one less, 0 when it is
//             loaded), and the service of the batch that these would be, with margin (lead): added up in lead_i, which follows all that changes it.
// Descriptor  desc_*: in stream_i, a beat of four words every fourth cycle from the sixth on. No beat comes after a cycle with drop_i.
//
// The machine's states come from ct_batch_seq, with step_i. A model's values are read by index: that of the command (arg_i), of the scan
// (scan_model_i), and the one that is due (pick_i).

`default_nettype none

module ct_batch_models #(
  parameter  int unsigned Models = 8,
  parameter  int unsigned Most   = 16,
  localparam int unsigned ModelW = $clog2(Models)
) (
  input  logic              clk_i,
  input  logic              rst_ni,

  // Registers and commands.
  input  logic              wr_i,
  input  logic [5:0]        wr_word_i,
  input  logic [31:0]       wr_data_i,
  input  logic              commit_i,
  input  logic              unload_i,
  input  logic [ModelW-1:0] arg_i,
  output logic              known_o,         // it is loaded
  output logic [1:0]        policy_o,
  output logic [Models-1:0] loaded_o,

  // The machine.
  input  logic              push_i,
  input  logic              insert_i,
  input  logic              inserted_i,
  input  logic              stream_i,
  input  logic              lead_i,
  input  logic              ending_i,
  input  logic              service_i,
  input  logic [5:0]        step_i,
  input  logic              out_i,           // a request has left the queue
  input  logic [ModelW-1:0] out_model_i,
  output logic [31:0]       word_o,          // the word that was read

  // For the scan, and for what is formed.
  input  logic [ModelW-1:0] scan_model_i,
  output logic [6:0]        scan_ctl_o,
  output logic [6:0]        scan_cnt_o,
  output logic [31:0]       scan_lead_o,
  input  logic [ModelW-1:0] pick_i,
  output logic [4:0]        pick_max_o,
  output logic              pick_bank_o,
  output logic [31:0]       pick_lead_o,

  // The batch that has been formed, and the one that is over.
  input  logic [ModelW-1:0] next_model_i,
  input  logic              next_bank_i,
  input  logic [ModelW-1:0] done_model_i,
  input  logic [4:0]        done_n_i,
  input  logic [31:0]       took_i,

  input  logic              drop_i,
  output logic              desc_valid_o,
  output logic              desc_first_o,
  output logic [127:0]      desc_data_o
);

  localparam logic [5:0] WordAddr = {1'b0, 5'(ct_pkg::RegModelAddr >> 2)};
  localparam logic [5:0] WordData = {1'b0, 5'(ct_pkg::RegModelData >> 2)};

  // Words of a model's control.
  localparam logic [4:0] CtlWait = 5'd1, CtlMargin = 5'd2;

  (* no_rw_check *) logic [31:0] mod_mem [0:128*Models-1];
  logic              mod_we;
  logic [ModelW+6:0] mod_waddr, mod_raddr;
  logic [31:0]       mod_wdata, mod_q;

  always_ff @(posedge clk_i) begin
    if (mod_we) mod_mem[mod_waddr] <= mod_wdata;
    mod_q <= mod_mem[mod_raddr];
  end
  assign word_o = mod_q;

  // Of each model.
  logic [Models-1:0] loaded_q, bank_q;
  logic [6:0]        ctl [0:Models-1];   // policy, max_batch
  logic [6:0]        cnt [0:Models-1];   // that wait
  logic [31:0]       lead [0:Models-1];  // service of the batch that these would be, and margin

  // ---- Written by the host --------------------------------------------------------------------------------------------------------

  logic              mod_host;
  logic [8:0]        mod_at_q;          // MODEL_ADDR
  logic [ModelW-1:0] mod_at;
  logic [ModelW+6:0] mod_host_at;

  assign mod_host    = wr_i && (wr_word_i == WordData);
  assign mod_at      = mod_at_q[8:6];
  assign mod_host_at = mod_at_q[5] ? {2'b10, mod_at, mod_at_q[4:0]} : {1'b0, !bank_q[mod_at], mod_at, mod_at_q[4:0]};

  always_ff @(posedge clk_i) begin
    if (wr_i) begin
      if (wr_word_i == WordAddr) mod_at_q <= wr_data_i[8:0];
      if (mod_host)              mod_at_q <= mod_at_q + 9'd1;
      // The control word that every scan needs; a max_batch of 0 or too much is 16.
      if (mod_host && mod_at_q[5:0] == 6'd32)
        ctl[mod_at_q[8:6]] <= {wr_data_i[1:0], (wr_data_i[12:8] == '0 || wr_data_i[12:8] > 5'(Most)) ? 5'(Most) : wr_data_i[12:8]};
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      loaded_q <= '0;
      bank_q   <= '0;
    end else begin
      if (commit_i) begin
        loaded_q[arg_i] <= 1'b1;
        bank_q[arg_i]   <= !bank_q[arg_i];
      end
      if (unload_i) loaded_q[arg_i] <= 1'b0;
    end
  end

  assign known_o     = loaded_q[arg_i];
  assign policy_o    = ctl[arg_i][6:5];
  assign loaded_o    = loaded_q;
  assign scan_ctl_o  = ctl[scan_model_i];
  assign scan_cnt_o  = cnt[scan_model_i];
  assign scan_lead_o = lead[scan_model_i];
  assign pick_max_o  = ctl[pick_i][4:0];
  assign pick_bank_o = bank_q[pick_i];
  assign pick_lead_o = lead[pick_i];

  // ---- How many of a model wait -----------------------------------------------------------------------------------------------------

  logic              cnt_we;
  logic [ModelW-1:0] cnt_model;
  logic [6:0]        cnt_now, cnt_next;
  always_comb begin
    cnt_we    = out_i || inserted_i || (commit_i && !loaded_q[arg_i]);
    cnt_model = out_i ? out_model_i : arg_i;
    cnt_now   = cnt[cnt_model];
    cnt_next  = out_i ? cnt_now - 1'b1 : insert_i ? cnt_now + 1'b1 : '0;
  end
  always_ff @(posedge clk_i) begin
    if (cnt_we) cnt[cnt_model] <= cnt_next;
  end

  // ---- Service and lead -------------------------------------------------------------------------------------------------------------

  logic              service_we;         // the machine's write of mod_mem, in service_i
  logic [ModelW-1:0] took_model_q;
  logic [4:0]        took_n_q;
  logic [31:0]       took_q;
  logic [32:0]       lower_q;            // service so far less what this batch took
  logic [ModelW-1:0] lead_model_q;
  logic [6:0]        lead_cnt;
  logic [4:0]        lead_n;
  logic [31:0]       add_q;
  logic [32:0]       lead_sum;

  assign service_we = service_i && (step_i == 6'd2);
  assign lead_cnt   = cnt[lead_model_q];
  assign lead_n     = (lead_cnt > 7'(ctl[lead_model_q][4:0])) ? ctl[lead_model_q][4:0] : (lead_cnt == '0) ? 5'd1 : lead_cnt[4:0];
  assign lead_sum   = {1'b0, add_q} + {1'b0, mod_q};

  always_ff @(posedge clk_i) begin
    lower_q <= {1'b0, mod_q} - {1'b0, took_q};
    if (insert_i)  lead_model_q <= arg_i;
    if (out_i)     lead_model_q <= out_model_i;
    if (service_i) lead_model_q <= took_model_q;
    if (ending_i) begin
      took_model_q <= done_model_i;
      took_n_q     <= done_n_i;
      took_q       <= took_i;
    end
    if (lead_i && step_i == 6'd1) add_q <= mod_q;
    if (lead_i && step_i == 6'd2) lead[lead_model_q] <= lead_sum[32] ? '1 : lead_sum[31:0];
  end

  // ---- What is read and written -----------------------------------------------------------------------------------------------------

  always_comb begin
    mod_we    = mod_host || service_we;
    mod_waddr = mod_host_at;
    mod_wdata = wr_data_i;
    if (service_we) begin
      mod_waddr = {2'b10, took_model_q, 1'b1, 4'(took_n_q - 5'd1)};
      mod_wdata = lower_q[32] ? took_q : mod_q - {3'd0, lower_q[31:3]};
    end
    unique case (1'b1)
      push_i:    mod_raddr = {2'b10, arg_i, CtlWait};
      stream_i:  mod_raddr = {1'b0, next_bank_i, next_model_i, step_i[4:0]};
      lead_i:    mod_raddr = {2'b10, lead_model_q, (step_i == 6'd0) ? {1'b1, 4'(lead_n - 5'd1)} : CtlMargin};
      service_i: mod_raddr = {2'b10, took_model_q, 1'b1, 4'(took_n_q - 5'd1)};
      default:   mod_raddr = mod_host_at;
    endcase
  end

  // The descriptor: four words to a beat.
  logic         desc_valid_q, desc_first_q;
  logic [127:0] shift_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) desc_valid_q <= 1'b0;
    // (What a reset has dropped is not offered any more.)
    else         desc_valid_q <= stream_i && (step_i[1:0] == 2'd0) && (step_i != 6'd0) && !drop_i;
  end
  always_ff @(posedge clk_i) begin
    desc_first_q <= (step_i == 6'd4);
    if (stream_i) shift_q <= {mod_q, shift_q[127:32]};
  end
  assign desc_valid_o = desc_valid_q;
  assign desc_first_o = desc_valid_q && desc_first_q;
  assign desc_data_o  = shift_q;

  logic unused;
  assign unused = ^lower_q[2:0];

endmodule

`default_nettype wire
