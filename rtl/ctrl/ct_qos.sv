// SPDX-License-Identifier: Apache-2.0
//
// Who goes first, decided in one place: turns the register POLICY, the training floor and the slack of the batcher into the word qos_o, which
// every arbiter, bank and unit follows. Nothing else looks at the policy, but what JOB needs: its gate in ct_contexts and the overlap of jobs in ct_job.
//
//     POLICY, TRAIN_FLOOR ─┐
//     slack of ct_batch ───┴─> ct_qos ─> qos_o ─> ct_arbiter in front of each datapath, banks of ct_spm, ct_vpu, ct_dma_ld
//
// Word        bits as in ct_pkg (Qos...). A slot is what one grant gives, an operation a row of slots of one context.
//               Ranked   in each slot inference before training, but for the slots that the floor owes training
//               Strict   Ranked, and nothing is ever owed: training makes way inside the units, too
//               Turns    of two that ask, the one that did not have the last slot (with Whole: the last operation)
//               Whole    an operation keeps the grant until its last slot; without Ranked and Turns the one goes that asked first
//               Floor    what training is owed of the contested slots, in 1/256; counts with Ranked
// Policies    PRIORITY: Ranked, Strict if the floor is 0. FCFS, JOB: Whole. ROUND_ROBIN: Whole and Turns. SLACK: Turns while there is slack,
//             PRIORITY while there is none.
// Latency     qos_o is a register: what policy_i, floor_i and slack_i say counts from the next cycle on. (It stands in front of every grant.)

`default_nettype none
`include "ct_assert.svh"

module ct_qos (
  input  logic                    clk_i,
  input  logic                    rst_ni,

  input  logic [2:0]              policy_i,
  input  logic [7:0]              floor_i,
  input  logic                    slack_i,
  output logic [ct_pkg::QosW-1:0] qos_o
);

  localparam logic [ct_pkg::QosW-1:0] Reset = (ct_pkg::QosW'(1) << ct_pkg::QosRanked) | (ct_pkg::QosW'(1) << ct_pkg::QosStrict);

  logic                    in_turn, ranked;
  logic [ct_pkg::QosW-1:0] qos_d, qos_q;

  assign in_turn = policy_i == ct_pkg::PolicySlack && slack_i;
  assign ranked  = policy_i == ct_pkg::PolicyPriority || (policy_i == ct_pkg::PolicySlack && !slack_i);
  assign qos_o   = qos_q;

  always_comb begin
    qos_d = '0;
    qos_d[ct_pkg::QosRanked]           = ranked;
    qos_d[ct_pkg::QosStrict]           = ranked && floor_i == 8'd0;
    qos_d[ct_pkg::QosTurns]            = in_turn || policy_i == ct_pkg::PolicyRoundRobin;
    qos_d[ct_pkg::QosWhole]            = !ranked && !in_turn;
    qos_d[ct_pkg::QosFloorLsb +: 8]    = floor_i;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) qos_q <= Reset;
    else         qos_q <= qos_d;
  end

  // What every ct_arbiter takes for granted (OneRule_M).
  `CT_ASSERT(OneRule_A, qos_o[ct_pkg::QosRanked] != (qos_o[ct_pkg::QosTurns] || qos_o[ct_pkg::QosWhole]))
  `CT_ASSERT(StrictOwesNothing_A, qos_o[ct_pkg::QosStrict] == (qos_o[ct_pkg::QosRanked] && qos_o[ct_pkg::QosFloorLsb +: 8] == 8'd0))

`ifdef FORMAL
  logic       f_vld_q;  // there was a last cycle, in which this stood here:
  logic [2:0] f_policy_q;
  logic [7:0] f_floor_q;
  logic       f_slack_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) f_vld_q <= 1'b0;
    else         f_vld_q <= 1'b1;
  end
  always_ff @(posedge clk_i) begin
    f_policy_q <= policy_i;
    f_floor_q  <= floor_i;
    f_slack_q  <= slack_i;
  end
  `CT_ASSERT(SlackOrRank_A, !f_vld_q || f_policy_q != ct_pkg::PolicySlack ||
                            (qos_o[ct_pkg::QosTurns] == f_slack_q && qos_o[ct_pkg::QosRanked] == !f_slack_q))
  `CT_ASSERT(RankOfPriority_A, !f_vld_q || f_policy_q != ct_pkg::PolicyPriority ||
                               (qos_o[ct_pkg::QosRanked] && qos_o[ct_pkg::QosStrict] == (f_floor_q == 8'd0)))
  `CT_ASSERT(WholeOfOthers_A, !f_vld_q || qos_o[ct_pkg::QosWhole] == (f_policy_q != ct_pkg::PolicyPriority && f_policy_q != ct_pkg::PolicySlack))
  `CT_ASSERT(FloorIsSaid_A, !f_vld_q || qos_o[ct_pkg::QosFloorLsb +: 8] == f_floor_q)
`endif

endmodule

`default_nettype wire
