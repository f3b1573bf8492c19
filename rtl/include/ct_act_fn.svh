// SPDX-License-Identifier: Apache-2.0
//
// Functions of the coder of activations, included in the modules that use them.

  function automatic logic [4:0] ones(input logic [15:0] v);
    ones = '0;
    for (int i = 0; i < 16; i++) ones = ones + 5'(v[i]);
  endfunction

  // A product by additions: it would take a DSP block.
  function automatic logic [7:0] times(input logic [4:0] a, input logic [3:0] b);
    times = '0;
    for (int i = 0; i < 4; i++) if (b[i]) times = times + (8'(a) << i);
  endfunction
