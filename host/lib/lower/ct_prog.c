/* SPDX-License-Identifier: Apache-2.0 */
/* What all program builders share. */
#include "ct_prog.h"

#include <stdarg.h>
#include <stdio.h>

#include "coltrain/coltrain.h"

int ct_why(const struct ct_why *why, int error, const char *format, ...) {
  if (!why || !why->text || why->size == 0) return error;
  va_list args;
  va_start(args, format);
  vsnprintf(why->text, why->size, format, args);
  va_end(args);
  return error;
}

int ct_code_finish(struct ct_build *b, struct ct_code *code, const char *name,
                   const struct ct_why *why) {
  size_t needed = 0;
  const int count = ct_build_finish(b, &code->cmd, &needed);
  ct_build_free(b);
  code->count = count > 0 ? (size_t)count : 0;
  if (count >= 0) return CT_OK;
  if (count == CT_ERR_NO_SPACE && needed == 0)
    return ct_why(why, count, "the program for %s needs more registers than there are", name);
  if (count == CT_ERR_NO_SPACE)
    return ct_why(why, count, "the program for %s needs %zu commands, a device takes %u", name,
                  needed, CT_PROG_MAX);
  return ct_why(why, count, "the program for %s could not be built: %s", name, ct_strerror(count));
}
