// SPDX-License-Identifier: Apache-2.0
//
// The scan of ct_batch over the waiting requests: which models are due, which of these comes first, and is there slack?
//
// Scan        ct_batch_queue lets its entries go by, one a cycle, in order of deadlines. What goes by is looked at a cycle later, with what the
//             model table knows of its model (scan_model_o; ctl_i, cnt_i and lead_i in the same cycle), and judged in the cycle after that. A scan
//             counts only from its first entry to its last: pass_i, a start or an unsettled model table breaks it off.
// Due         a model is due when max_batch of its requests wait, or for one of them the time to go has come: at once (NONE), max_wait after its
//             arrival (FIXED), its deadline less the service of such a batch and a margin (ADAPTIVE; without a deadline as FIXED). ct_batch_places
//             has put the time to go into the entry; what ADAPTIVE goes ahead of it, the service of those that wait now, is taken off here.
// First       pick_o, if pick_vld_o: the first model in order of deadlines that is due, as of a whole scan. A model found due after one of its
//             entries had gone by makes the scan count as unfinished, and the next one decides.
// Slack       slack_o: as of the last whole scan no request waits whose deadline is nearer than the service of the running batch (run_lead_i), of one
//             batch of each model with an earlier deadline, and of its own; and no model has more waiting than one batch.

`default_nettype none

module ct_batch_scan #(
  parameter  int unsigned Models = 8,
  parameter  int unsigned TimeW  = 40,
  localparam int unsigned ModelW = $clog2(Models)
) (
  input  logic              clk_i,
  input  logic              rst_ni,

  input  logic [TimeW-1:0]  now_i,

  // From ct_batch_queue.
  input  logic              scan_valid_i,
  input  logic              scan_first_i,
  input  logic              scan_last_i,
  input  logic [ModelW-1:0] scan_model_i,
  input  logic [TimeW-1:0]  scan_go_i,
  input  logic [TimeW-1:0]  scan_deadline_i,

  // The model table.
  output logic [ModelW-1:0] scan_model_o,
  input  logic [6:0]        ctl_i,           // policy, max_batch
  input  logic [6:0]        cnt_i,           // requests that wait
  input  logic [31:0]       lead_i,          // service of the batch that these would be, and margin

  input  logic              pass_i,          // begins, of an insert or a take
  input  logic              take_i,
  input  logic              settled_i,       // what is known of the models is up to date
  input  logic              start_i,         // of a batch
  input  logic              run_vld_i,       // one runs
  input  logic [31:0]       run_lead_i,

  output logic [Models-1:0] due_o,
  output logic              scanned_o,       // a whole scan since the last pass
  output logic              pick_vld_o,
  output logic [ModelW-1:0] pick_o,
  output logic              slack_o
);

  logic              scan_vld, scan_first, scan_last;
  logic [ModelW-1:0] scan_model;
  logic [TimeW-1:0]  scan_go, scan_deadline;

  logic              scan_use, s_on_q, s_vld_q, s_first_q, s_last_q, s_full_q, s_many_q;
  logic [ModelW-1:0] s_model_q;
  logic [TimeW-1:0]  s_go_q, s_left_q;   // cycles until the time to go, and until the deadline
  logic [31:0]       s_lead_q;           // what ADAPTIVE goes ahead of it
  logic [TimeW-1:0]  s_need_q;           // service of the batches up to this one
  logic [Models-1:0] s_seen_q, seen;
  logic [TimeW-1:0]  due_in, spare;
  logic              due, tight, dirty, cand;
  logic [Models-1:0] due_q, due_all, met_q, met;
  logic              dirty_q, cand_q, tight_q, slack_q, pick_vld_q, is_cand;
  logic [ModelW-1:0] cand_model_q, pick_q, cand_model;
  logic              scanned_q;

  // What goes by is looked at a cycle later, for block RAM answers late in a cycle.
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) scan_vld <= 1'b0;
    else         scan_vld <= scan_valid_i;
  end
  always_ff @(posedge clk_i) begin
    {scan_first, scan_last}              <= {scan_first_i, scan_last_i};
    {scan_model, scan_go, scan_deadline} <= {scan_model_i, scan_go_i, scan_deadline_i};
  end

  // ---- An entry and its model -------------------------------------------------------------------------------------------------------

  assign scan_model_o = scan_model;
  assign seen         = scan_first ? '0 : s_seen_q;
  assign scan_use     = scan_vld && !pass_i && settled_i && (scan_first || s_on_q);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      s_on_q  <= 1'b0;
      s_vld_q <= 1'b0;
    end else begin
      // (A start changes what all of them have before them.)
      s_on_q  <= !start_i && (scan_use || (s_on_q && !pass_i && settled_i));
      s_vld_q <= !start_i && scan_use;
    end
  end

  always_ff @(posedge clk_i) begin
    if (scan_use) begin
      s_first_q <= scan_first;
      s_last_q  <= scan_last;
      s_model_q <= scan_model;
      s_go_q    <= scan_go - now_i;
      s_left_q  <= scan_deadline - now_i;
      s_lead_q  <= (ctl_i[6:5] == ct_pkg::BatchAdaptive) ? lead_i : '0;
      s_full_q  <= (cnt_i >= 7'(ctl_i[4:0]));
      s_many_q  <= (cnt_i > 7'(ctl_i[4:0]));
      s_seen_q  <= seen | (Models'(1) << scan_model);
      s_need_q  <= (scan_first ? (run_vld_i ? TimeW'(run_lead_i) : '0) : s_need_q) + (seen[scan_model] ? '0 : TimeW'(lead_i));
    end
  end

  // ---- What it says -----------------------------------------------------------------------------------------------------------------

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
      if (pass_i) begin
        scanned_q  <= 1'b0;
        pick_vld_q <= 1'b0;
      end
      if (pass_i || start_i) slack_q <= 1'b0;
      if (take_i) due_q <= '0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (s_vld_q) begin
      met_q        <= met | (Models'(1) << s_model_q);
      dirty_q      <= dirty;
      tight_q      <= tight;
      cand_q       <= cand;
      cand_model_q <= cand_model;
      if (s_last_q && !pass_i) pick_q <= cand_model;
    end
  end

  assign due_o      = due_q;
  assign scanned_o  = scanned_q;
  assign pick_vld_o = pick_vld_q;
  assign pick_o     = pick_q;
  assign slack_o    = slack_q;

endmodule

`default_nettype wire
