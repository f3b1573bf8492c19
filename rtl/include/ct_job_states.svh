// SPDX-License-Identifier: Apache-2.0
//
// The states of the two machines of ct_job, for its parts. Included inside the module.

  // The main machine; its numbers are those of STATUS.
  typedef enum logic [2:0] {
    StIdle = 3'd0, StDesc = 3'd1, StProg = 3'd2, StRun = 3'd3, StDrain = 3'd4, StAbort = 3'd5, StComplete = 3'd6
  } state_e;

  // The front end.
  typedef enum logic [1:0] {FeNone = 2'd0, FeDesc = 2'd1, FeHave = 2'd2, FeProg = 2'd3} fe_e;
