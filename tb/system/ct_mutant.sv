// SPDX-License-Identifier: Apache-2.0
//
// Which mutation a model of mutated sources has now (tb/system/mutants.sh); ct_core_watch sets it.

`default_nettype none

package ct_mutant;
  logic [7:0] which;
endpackage

`default_nettype wire
