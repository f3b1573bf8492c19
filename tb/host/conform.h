/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every way to a device must do, tested by one program (conform.c). A way that can lose its
 * device, or has several, says how; the rest is the same for all.
 */
#ifndef CONFORM_H
#define CONFORM_H

#include <stdbool.h>

struct conform_way {
  const char *uri;       /* of the device */
  const char *impatient; /* the same, given up sooner, for when it is lost; NULL: uri */
  const char *second;    /* of another one, there together with the first after start(2); or NULL */
  /* Begins the program anew where that is needed. False: this machine cannot. NULL: not needed. */
  bool (*enter)(char **argv);
  /* Makes so many devices; stop() ends them. NULL: the device is there. */
  void (*start)(unsigned devices);
  void (*stop)(void);
  /* A program that had the first device open was killed. NULL: nothing to do. */
  void (*killed)(void);
  /* Ways to lose the first device, with how from 0; after them start() makes it anew. */
  unsigned losses;
  void (*lose)(unsigned how);
  /* The first device is in use elsewhere, or the mode of its file forbids to open it, until undone;
   * NULL: there is no such thing. */
  void (*occupy)(bool occupied);
  void (*forbid)(bool forbidden);
  unsigned accesses;  /* random ones to memory; 0: 2000 */
  const char *absent; /* the name of a device that is not there, or NULL */
};

/* Of this program; argument: what it was called with, or NULL. */
const struct conform_way *conform_way(const char *argument);

#endif
