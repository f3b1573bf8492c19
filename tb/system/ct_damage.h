/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Single bits of compressed groups and of their index turn over in device memory, between the job
 * that stores them and the one that loads them (ct_kept.c), which begins beside work of the other
 * context. A bit of a group, or of the length in its entry, has to end the job in COMP with the
 * index unit of that group; an entry may come to name another group, or what looks like one, which
 * has no check (docs/compression.md). Whatever it is: the core says what the emulator says, and
 * writes what it writes; no other memory changes; and training does its next job right.
 */
#ifndef CT_DAMAGE_H
#define CT_DAMAGE_H

#include <stdio.h>

#include "ct_pair.h"

/* Where the bit is: in a group; in an index entry, of the length, of the place. */
enum ct_damage_place { CT_DAMAGE_GROUP, CT_DAMAGE_LENGTH, CT_DAMAGE_WHERE, CT_DAMAGE_PLACES };
enum ct_damage_class {
  CT_DAMAGE_COMP,  /* the job ended in COMP, with the index unit */
  CT_DAMAGE_NAMED, /* it ended well: the entry names another group; of a place alone */
  CT_DAMAGE_WRONG, /* anything else */
  CT_DAMAGE_CLASSES
};

struct ct_damage {
  const struct ct_core *core;
  unsigned long count;
  uint64_t stream;           /* of random numbers */
  void (*start)(void *self); /* called with the opened device; may be NULL */
  bool stop;                 /* at the first that is wrong */
};

struct ct_damage_result {
  unsigned long count[CT_DAMAGE_PLACES][CT_DAMAGE_CLASSES];
  unsigned long flips, wrong, jobs;
  uint64_t cycles;
};

void ct_damage_run(const struct ct_damage *setup, struct ct_damage_result *result);
void ct_damage_print(const struct ct_damage_result *result);
/* As in docs/data/faults-groups.csv. */
void ct_damage_csv(FILE *file, const struct ct_damage_result *result, const char *rtl_commit);

#endif
