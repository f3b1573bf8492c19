/* SPDX-License-Identifier: Apache-2.0 */
/* A device that is there, by its name. */
#include "conform.h"

#include <stdio.h>
#include <string.h>

const struct conform_way *conform_way(const char *argument) {
  static struct conform_way way;
  if (!argument) {
    fprintf(stderr, "usage: conform DEVICE\n");
    return NULL;
  }
  way.uri = argument;
  /* Simulated devices are made when they are opened: there are as many as one likes. */
  if (!strncmp(argument, "sim:", 4) || !strncmp(argument, "emu:", 4)) way.second = argument;
  return &way;
}
