/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A board on USB without hardware: umockdev shows an FT232H to the unmodified libusb of this
 * process and its children; behind it a model of the chip (its requests, status bytes, packets of
 * 512 bytes) and the Verilated board, or ct_usb_board over a simulated core or the emulator. Faults
 * on the line by chance.
 */
#ifndef CT_USB_BED_H
#define CT_USB_BED_H

#include <stdbool.h>

struct ct_usb_bed;

/* What the line and the board do wrong, from the next byte on; zeros: nothing. */
struct ct_usb_faults {
  unsigned drop, damage; /* bytes in a million */
  unsigned packets;      /* percent of the packets from the chip that are cut short by chance */
  unsigned delay;        /* percent of looks at which the chip has nothing to give */
  bool silent;           /* nothing is answered */
  bool busy;             /* the interface is claimed elsewhere */
};

/* Begins again as PROGRAM under umockdev's preloaded library if that is not there yet; returns
 * when it is. */
void ct_usb_bed_enter(char **argv);

/* device: "rtl:", the Verilated board of ct_usb_rtl.h, or what is behind the model of its bridge in
 * C: "sim:..." or "emu:...". serial: of the chip. Up to four boards at a time. */
struct ct_usb_bed *ct_usb_bed_new(const char *device, const char *serial);
void ct_usb_bed_free(struct ct_usb_bed *bed);
/* Boards that are there. */
unsigned ct_usb_bed_count(void);

void ct_usb_bed_faults(struct ct_usb_bed *bed, struct ct_usb_faults faults);
/* Of the protocol, that the board says it speaks. */
void ct_usb_bed_version(struct ct_usb_bed *bed, unsigned version);
void ct_usb_bed_unplug(struct ct_usb_bed *bed);
/* To be called when a program that had the board open was killed: the kernel would have ended its
 * transfers, which umockdev does not. The board itself goes on. */
void ct_usb_bed_killed(struct ct_usb_bed *bed);

struct ct_usb_bed_counts {
  unsigned long done, again; /* requests, see ct_usb_board.h */
  unsigned long bad;         /* bytes that the line has lost or damaged, both ways */
};
struct ct_usb_bed_counts ct_usb_bed_counts(struct ct_usb_bed *bed);

/* The file that stands for the board under /dev/bus/usb. */
const char *ct_usb_bed_node(struct ct_usb_bed *bed);

#endif
