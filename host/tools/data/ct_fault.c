/* SPDX-License-Identifier: Apache-2.0 */
#include "ct_fault.h"

#include <stdarg.h>
#include <stdio.h>

void ct_fault_write(const struct ct_fault *f, const char *format, ...) {
  if (!f->why || f->whysize == 0) return;
  const int n = snprintf(f->why, f->whysize, "%s: ", f->file);
  if (n < 0 || (size_t)n >= f->whysize) return;
  va_list args;
  va_start(args, format);
  vsnprintf(f->why + n, f->whysize - (size_t)n, format, args);
  va_end(args);
}
