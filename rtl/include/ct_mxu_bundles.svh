// SPDX-License-Identifier: Apache-2.0
//
// The bundles between the blocks of the MXU, included in the body of each that makes or reads one. At the ports they are flat vectors of
// ct_pkg::MxuAW, MxuBW and MxuMetaW bits.

  // What the stream of A needs of a command. Counts are less one.
  typedef struct packed {
    logic [19:0] a;        // scratchpad address of the first tile
    logic [15:0] am;       // from one row tile to the next
    logic [15:0] ak;       // from one k step to the next
    logic        trans;    // tiles are to be transposed
    logic        accum;    // add to what is in ACC
    logic [11:0] kt_m1;    // k steps
    logic [2:0]  nt_m1;    // column tiles
    logic [6:0]  rows_m1;  // rows
    logic [3:0]  acc;      // ACC tile of the first output tile
    logic [3:0]  accn;     // from one column tile to the next
    logic [4:0]  wait2;    // {used, number}
    logic [4:0]  sig1;
    logic        walk;     // its rows are those of a walk (ct_mxu_walk), ...
    logic [25:0] pos;      // ... from this pixel on: images from its own on, Y, X
  } mxu_a_t;

  // What the stream of B needs.
  typedef struct packed {
    logic [19:0] b;
    logic [15:0] bn;       // from one column tile to the next
    logic [15:0] bk;       // from one k step to the next
    logic        trans;
    logic [11:0] kt_m1;
    logic [2:0]  nt_m1;
  } mxu_b_t;

  // What belongs to a row of A.
  typedef struct packed {
    logic [3:0]  rows_m1;  // rows of its tile, less one
    logic        w2_last;  // its Wait2 is the last one of its command
    logic        w2;       // it takes Wait2
    logic        sig1;     // last row of a final tile
    logic        clr;      // starts from +0
    logic        last;     // of its operation
    logic        first;
    logic [3:0]  w2_id;
    logic [3:0]  sig1_id;
    logic [3:0]  tile;     // ACC tile
    logic [3:0]  row;      // of its tile
  } mxu_meta_t;
