/* SPDX-License-Identifier: Apache-2.0 */
#define _DEFAULT_SOURCE 1 /* syscall */
#include "ct_modes.h"

#include <linux/capability.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ct_tb.h"

/* Of a thread, not of a process: the library has no function for it. */
void ct_obey_modes(bool obey) {
  const uint32_t above = 1U << CAP_DAC_OVERRIDE | 1U << CAP_DAC_READ_SEARCH;
  struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
  struct __user_cap_data_struct set[_LINUX_CAPABILITY_U32S_3];
  memset(set, 0, sizeof set);
  assert_int_equal(syscall(SYS_capget, &head, set), 0);
  set[0].effective =
      obey ? set[0].effective & ~above : set[0].effective | (set[0].permitted & above);
  assert_int_equal(syscall(SYS_capset, &head, set), 0);
}
