// SPDX-License-Identifier: Apache-2.0
//
// What a command is, for ct_fetch and its decoder. Included inside the module.

  typedef enum logic [3:0] {
    KindBad, KindNop, KindEnd, KindLoop, KindEndl, KindAddi, KindLd, KindSt, KindMm, KindVl, KindVa, KindVs, KindWalk
  } kind_e;
