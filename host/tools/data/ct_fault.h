/* SPDX-License-Identifier: Apache-2.0 */
/* A sentence about a file that cannot be used: its name, a colon, and what is wrong with it. */
#ifndef CT_FAULT_H
#define CT_FAULT_H

#include <stddef.h>

/* The file that it is about, and where the sentence goes (cut to whysize bytes; why may be NULL).
 */
struct ct_fault {
  const char *file;
  char *why;
  size_t whysize;
};

/* Writes the sentence; -1, which the caller returns (and which who reads the caller alone can see).
 */
#define ct_fault_say(f, ...) (ct_fault_write(f, __VA_ARGS__), -1)
__attribute__((format(printf, 2, 3))) void ct_fault_write(const struct ct_fault *f,
                                                          const char *format, ...);

#endif
