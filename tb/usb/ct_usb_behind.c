/* SPDX-License-Identifier: Apache-2.0 */
#include "ct_usb_behind.h"

#include <string.h>
#include <time.h>

#include "ct_tb.h"

enum { SLICE = 2000 /* cycles */, IDLE_NS = 50000 };

void ct_usb_behind_open(struct ct_usb_behind *b, const char *device,
                        void (*send)(void *arg, const uint8_t *bytes, size_t size), void *arg) {
  char why[256] = "";
  const size_t scheme = strcspn(device, ":");
  if (ct_plugin_open(device, scheme, &b->plugin, why, sizeof why) ||
      b->plugin.ops->open(device + scheme + 1, &b->self, why, sizeof why))
    fail_msg("%s: %s", device, why);
  b->board = (struct ct_usb_board){
      .ops = b->plugin.ops, .self = b->self, .send = send, .arg = arg, .version = CT_USB_VERSION};
}

void ct_usb_behind_close(struct ct_usb_behind *b) {
  if (b->self) b->plugin.ops->close(b->self);
  ct_plugin_close(&b->plugin);
}

void ct_usb_behind_run(struct ct_usb_behind *b, bool idle) {
  static const struct timespec pause = {.tv_nsec = IDLE_NS};
  uint64_t cycle = 0;
  b->board.ops->now(b->self, &cycle);
  if (idle) b->board.ops->wait(b->self, cycle == CT_NO_CYCLE ? 0 : cycle + SLICE, 0);
  ct_usb_board_look(&b->board);
  if (idle) nanosleep(&pause, NULL);
}
