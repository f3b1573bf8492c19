/* SPDX-License-Identifier: Apache-2.0 */
/* The name that was probably meant: of verbs, options and keys. */
#ifndef CT_NEAR_H
#define CT_NEAR_H

#include <stddef.h>

/* The name that is nearest to one that does not exist, of those considered so far; NULL if all are
 * far away. */
struct ct_near {
  const char *given, *name;
  size_t distance;
};
void ct_near_consider(struct ct_near *near, const char *name);

#endif
