/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A board on a serial port without hardware: a pseudo terminal, and at its other end the Verilated
 * board's serial line, bit by bit, or ct_usb_board over a simulated core or the emulator.
 */
#ifndef CT_SERIAL_BED_H
#define CT_SERIAL_BED_H

#include <stdbool.h>

struct ct_serial_bed;

/* What the line does wrong, from the next byte on; zeros: nothing. */
struct ct_serial_faults {
  unsigned drop, damage; /* bytes in a million, of the model only */
  bool silent;           /* nothing is answered */
};

/* device: "rtl:", or what is behind the model of the bridge: "sim:..." or "emu:...". */
struct ct_serial_bed *ct_serial_bed_new(const char *device);
void ct_serial_bed_free(struct ct_serial_bed *bed);

/* The port's file. */
const char *ct_serial_bed_file(const struct ct_serial_bed *bed);

void ct_serial_bed_faults(struct ct_serial_bed *bed, struct ct_serial_faults faults);
void ct_serial_bed_unplug(struct ct_serial_bed *bed);
/* Somebody else has the port. */
void ct_serial_bed_occupy(struct ct_serial_bed *bed, bool occupied);
/* To be called when a program that had the port open was killed: a port forgets then who had it for
 * himself, but this one is open here, too. */
void ct_serial_bed_killed(struct ct_serial_bed *bed);

#endif
