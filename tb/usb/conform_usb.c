/* SPDX-License-Identifier: Apache-2.0 */
/* The Verilated board, which umockdev shows to the unmodified libusb. */
#include <sys/stat.h>

#include "ct_tb.h"
#include "ct_usb_bed.h"
#include "host/conform.h"

enum { BEDS = 2 };

static struct ct_usb_bed *bed[BEDS];

static bool enter(char **argv) {
  ct_usb_bed_enter(argv);
  return true;
}

static void start(unsigned devices) {
  static const char *const serial[BEDS] = {"CT0001", "CT0002"};
  for (unsigned i = 0; i < devices; ++i)
    bed[i] = ct_usb_bed_new("rtl:", serial[i]);
}

static void stop(void) {
  for (unsigned i = 0; i < BEDS; ++i) {
    if (bed[i]) ct_usb_bed_free(bed[i]);
    bed[i] = NULL;
  }
}

/* Unplugged, or silent as without a bitstream. */
static void lose(unsigned how) {
  if (how == 0)
    ct_usb_bed_unplug(bed[0]);
  else
    ct_usb_bed_faults(bed[0], (struct ct_usb_faults){.silent = true});
}

static void killed(void) {
  ct_usb_bed_killed(bed[0]);
}

static void occupy(bool occupied) {
  ct_usb_bed_faults(bed[0], (struct ct_usb_faults){.busy = occupied});
}

/* As for a user for whom no udev rule is there. */
static void forbid(bool forbidden) {
  assert_int_equal(chmod(ct_usb_bed_node(bed[0]), forbidden ? 0 : 0600), 0);
}

const struct conform_way *conform_way(const char *argument) {
  static const struct conform_way way = {.uri = "usb:serial=CT0001,timeout=20000",
                                         .impatient = "usb:serial=CT0001,timeout=3000",
                                         .second = "usb:serial=CT0002,timeout=20000",
                                         .enter = enter,
                                         .start = start,
                                         .stop = stop,
                                         .killed = killed,
                                         .accesses = CT_TB_SANITIZED ? 300 : 2000,
                                         .losses = 2,
                                         .lose = lose,
                                         .occupy = occupy,
                                         .forbid = forbid,
                                         .absent = "usb:serial=NONE"};
  (void)argument;
  return &way;
}
