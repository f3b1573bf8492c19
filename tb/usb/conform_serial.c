/* SPDX-License-Identifier: Apache-2.0 */
/* The model of the board's bridge over a simulated core, at the other end of a pseudo terminal. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include "ct_serial_bed.h"
#include "ct_tb.h"
#include "host/conform.h"

enum { BEDS = 2, URI = 192 };

static struct ct_serial_bed *bed[BEDS];

/* Names that stay, whatever the ports are called: links in a folder of this program. */
static char link_to[BEDS][64], uri[BEDS][URI], impatient[URI];

static void start(unsigned devices) {
  for (unsigned i = 0; i < devices; ++i) {
    bed[i] = ct_serial_bed_new("sim:core=16x8");
    unlink(link_to[i]);
    assert_int_equal(symlink(ct_serial_bed_file(bed[i]), link_to[i]), 0);
  }
}

static void stop(void) {
  for (unsigned i = 0; i < BEDS; ++i) {
    if (bed[i]) ct_serial_bed_free(bed[i]);
    bed[i] = NULL;
    unlink(link_to[i]);
  }
}

/* Unplugged, or silent as without a bitstream. */
static void lose(unsigned how) {
  if (how == 0)
    ct_serial_bed_unplug(bed[0]);
  else
    ct_serial_bed_faults(bed[0], (struct ct_serial_faults){.silent = true});
}

static void killed(void) {
  ct_serial_bed_killed(bed[0]);
}

static void occupy(bool occupied) {
  ct_serial_bed_occupy(bed[0], occupied);
}

/* The victim obeys modes, whoever it is (ct_modes.h). */
static void forbid(bool forbidden) {
  assert_int_equal(chmod(ct_serial_bed_file(bed[0]), forbidden ? 0 : 0600), 0);
}

const struct conform_way *conform_way(const char *argument) {
  static struct conform_way way = {.impatient = impatient,
                                   .second = uri[1],
                                   .start = start,
                                   .stop = stop,
                                   .killed = killed,
                                   .losses = 2,
                                   .lose = lose,
                                   .occupy = occupy,
                                   .forbid = forbid,
                                   .absent = "serial:/dev/ttyNONE"};
  for (unsigned i = 0; i < BEDS; ++i) {
    snprintf(link_to[i], sizeof link_to[i], "/tmp/conform-serial-%d-%u", (int)getpid(), i);
    snprintf(uri[i], URI, "serial:%s,timeout=20000", link_to[i]);
  }
  snprintf(impatient, URI, "serial:%s,timeout=3000", link_to[0]);
  way.uri = argument ? argument : uri[0]; /* the victim is told its device */
  return &way;
}
