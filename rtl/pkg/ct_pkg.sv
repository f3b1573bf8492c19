// SPDX-License-Identifier: Apache-2.0
//
// Constants of the core. The generated part (ct_spec.svh: command fields, registers, error codes,
// counters) comes from rtl/spec/*.def; what is written here is structure that software never sees.
`default_nettype none

package ct_pkg;

  `include "ct_spec.svh"

  // Numbers of contexts and names for them.
  localparam int unsigned NumCtx = 2;
  localparam int unsigned CtxInf = 0;
  localparam int unsigned CtxTrn = 1;

  // Classes of requesters (ct_arbiter): a lower one goes first. Number 2 is free, for what stands behind a host.
  localparam logic [1:0] ClassInf = 2'd0;
  localparam logic [1:0] ClassHost = 2'd1;
  localparam logic [1:0] ClassTrn = 2'd3;

  localparam int unsigned Units = 6;  // LD, ST, MM, VL, VA, VS

  // Widths that meet at module borders.
  localparam int unsigned CmdW = 256;     // a command, as fetched and as dispatched (registers added in)
  localparam int unsigned SpmAddrW = 20;  // SPM word address, physical or relative
  localparam int unsigned DramAddrW = 32; // DRAM address in units of 16 bytes
  localparam int unsigned AxiAddrW = 36;  // DRAM address in bytes
  localparam int unsigned AxiDataW = 128;
  localparam int unsigned AxiIdW = 1;     // one ID per context

  localparam int unsigned CompPageW = $clog2(CompPages);  // bits of a page of the arena of compressed groups

  // Bundles of the MXU (ct_mxu_bundles.svh).
  localparam int unsigned MxuAW = 121;
  localparam int unsigned MxuBW = 68;
  localparam int unsigned MxuMetaW = 26;

  // Pipeline depths, in cycles from input to output registers.
  localparam int unsigned SpmLat = 2;     // SPM read: request granted -> data
  localparam int unsigned AccLat = 2;     // ACC read: request -> data

  // Arbitration policies (register POLICY).
  localparam logic [2:0] PolicyPriority = 3'd0;
  localparam logic [2:0] PolicyFcfs = 3'd1;
  localparam logic [2:0] PolicyRoundRobin = 3'd2;
  localparam logic [2:0] PolicyJob = 3'd3;
  localparam logic [2:0] PolicySlack = 3'd4;  // in turn while there is slack, PRIORITY while there is none

  // When a batch of a model goes (bits 1..0 of its first control word).
  localparam logic [1:0] BatchNone = 2'd0;      // at once
  localparam logic [1:0] BatchFixed = 2'd1;     // some time after an arrival
  localparam logic [1:0] BatchAdaptive = 2'd2;  // in time for a deadline

  // What ct_qos makes of policy, floor and slack.
  localparam int unsigned QosFloorLsb = 0;  // 8
  localparam int unsigned QosRanked = 8;
  localparam int unsigned QosStrict = 9;
  localparam int unsigned QosTurns = 10;
  localparam int unsigned QosWhole = 11;
  localparam int unsigned QosW = 12;
  localparam logic [QosW-1:0] QosFcfs = QosW'(1) << QosWhole;
  localparam logic [QosW-1:0] QosRoundRobin = (QosW'(1) << QosWhole) | (QosW'(1) << QosTurns);

  // A completion on its way from ct_job to ct_regs.
  localparam int unsigned CplTagLsb = 0;       // 32
  localparam int unsigned CplCodeLsb = 32;     // 8
  localparam int unsigned CplAddrLsb = 40;     // 32
  localparam int unsigned CplVersionLsb = 72;  // 32
  localparam int unsigned CplArriveLsb = 104;  // 64
  localparam int unsigned CplStartLsb = 168;   // 64
  localparam int unsigned CplEndLsb = 232;     // 64
  localparam int unsigned CplRowsLsb = 296;    // 32
  localparam int unsigned CplW = 328;

  // Counters of a context in use (register map: CT_CNT).
  localparam int unsigned NumCounters = 27;

  // Longest burst on the memory port: a record is 17 beats; raw runs are cut at 16.
  localparam int unsigned BurstBeats = 17;

endpackage

`default_nettype wire
