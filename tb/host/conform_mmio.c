/* SPDX-License-Identifier: Apache-2.0 */
/* A simulated core in the address space, see mmio_rig.h. */
#include <sys/stat.h>

#include "cli_run.h"
#include "coltrain/coltrain.h"
#include "conform.h"
#include "ct_tb.h"
#include "mmio_rig.h"

static void start(unsigned devices) {
  (void)devices;
  rig_start("stall=25,seed=7");
}

static void lose(unsigned how) {
  if (how == 0) rig_kill();
}

static void occupy(bool occupied) {
  static ct_device *other;
  if (occupied)
    assert_int_equal(ct_open(RIG_BY_UIO, &other), CT_OK);
  else
    ct_close(other);
}

static void forbid(bool forbidden) {
  assert_int_equal(chmod(cli_path("root/dev/uio0"), forbidden ? 0 : 0600), 0);
}

const struct conform_way *conform_way(const char *argument) {
  static const struct conform_way way = {.uri = RIG_BY_UIO,
                                         .enter = rig_begin,
                                         .start = start,
                                         .stop = rig_stop,
                                         .losses = 1,
                                         .accesses = CT_TB_SANITIZED ? 1000 : 2000,
                                         .lose = lose,
                                         .occupy = occupy,
                                         .forbid = forbid,
                                         .absent = "mmio:/dev/uio9"};
  (void)argument;
  return &way;
}
