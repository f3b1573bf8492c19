/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Verilated board without a core (board_link.c): what is written to its memory by the FIFO is
 * read back. Exit status 0 if it is the same, 1 if not, 2 if the board does not answer; a failed
 * assertion of the model aborts.
 */
#include "ct_tb.h"

#include <stdio.h>
#include <string.h>

#include "coltrain/coltrain.h"
#include "host/transports/frames/ct_frames.h"
#include "host/transports/usb/ct_usb_link.h"

enum { BYTES = 4096, ADDRESS = 0x10000, TIMEOUT_MS = 30000 };

int main(void) {
  static const struct ct_line_ops line = {.send = ct_usb_link_send,
                                          .error = ct_usb_link_error,
                                          .name = ct_usb_link_name,
                                          .close = ct_usb_link_close};
  static const struct ct_line_limits limits = {.reads = 32, .writes = 32, .rate = 60000000};
  static const struct ct_usb_where where = {.serial = "fifo20"};
  static uint8_t sent[BYTES], got[BYTES];
  struct ct_frames *f = NULL;
  void *link = NULL;
  char why[200] = "";
  if (ct_frames_new(TIMEOUT_MS, 0, &f, why, sizeof why) ||
      ct_usb_link_open(&where, ct_frames_take, f, &link, why, sizeof why)) {
    printf("%s\n", why);
    return 2;
  }
  ct_frames_set_line(f, &line, link, &limits);
  ct_rng rng = ct_rng_make(1);
  ct_rng_fill(&rng, sent, BYTES);
  /* (Without the greeting: it asks a register for the clock, and registers are the core's.) */
  const bool answers = ct_frames_mem_write(f, ADDRESS, sent, BYTES) == CT_OK &&
                       ct_frames_mem_read(f, ADDRESS, got, BYTES) == CT_OK;
  if (!answers) printf("%s\n", ct_frames_error(f));
  ct_frames_close(f);
  return !answers ? 2 : memcmp(got, sent, BYTES) ? 1 : 0;
}
