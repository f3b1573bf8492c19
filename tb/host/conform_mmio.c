/* SPDX-License-Identifier: Apache-2.0 */
/* A simulated core in the address space, see mmio_rig.h. */
#include "conform.h"
#include "mmio_rig.h"

static void start(unsigned devices) {
  (void)devices;
  rig_start("stall=25,seed=7");
}

static void lose(unsigned how) {
  if (how == 0) rig_kill();
}

const struct conform_way *conform_way(const char *argument) {
  static const struct conform_way way = {.uri = RIG_BY_UIO,
                                         .enter = rig_begin,
                                         .start = start,
                                         .stop = rig_stop,
                                         .losses = 1,
                                         .accesses = 300,
                                         .lose = lose,
                                         .absent = "mmio:/dev/uio9"};
  (void)argument;
  return &way;
}
