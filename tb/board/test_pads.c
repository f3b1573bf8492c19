/* SPDX-License-Identifier: Apache-2.0 */
/*
 * That the simulated board sees what its pads do: broken copies of ct_ulx3s are found out, by an
 * assertion or by what they do to the memory. They have no core, as the memory answers without one.
 * Each is a program of its own (try_memory.c), as assertions abort.
 */
#include "ct_tb.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

enum { SAME = 0, OTHER = 1, TEXT = 4096 };

static char build[512];

/* The exit status of such a program, -1 if a signal ended it, and what it said. */
static int end_of(const char *name, char said[TEXT]) {
  char command[700];
  snprintf(command, sizeof command, "exec %s/tb/pads/%s 2>&1", build, name);
  FILE *pipe = popen(command, "r");
  assert_non_null(pipe);
  said[fread(said, 1, TEXT - 1, pipe)] = 0;
  const int status = pclose(pipe);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void the_board_as_it_is_passes(void **state) {
  (void)state;
  char said[TEXT];
  const int end = end_of("good", said);
  if (end != SAME) fail_msg("%d: %s", end, said);
}

/* The assertion that fails, or NULL: the memory has other data. */
static const struct {
  const char *name, *fault, *assertion;
} broken_copies[] = {
    {"inverted", "all pads drive when they should not", "Pad_A"},
    {"dq", "the SDRAM's pads always drive", "DqPad_A"},
    {"ft", "the FIFO's pads always drive", "FtPad_A"},
    {"through", "the SDRAM's data have no register of the falling edge", NULL},
    {"clock", "the SDRAM's clock is the core's, not its inverse", "ChipClock_A"},
};

static void broken_copies_are_found_out(void **state) {
  (void)state;
  for (unsigned i = 0; i < sizeof(broken_copies) / sizeof(broken_copies[0]); ++i) {
    const char *assertion = broken_copies[i].assertion;
    char said[TEXT];
    const int end = end_of(broken_copies[i].name, said);
    const bool found = assertion ? end < 0 && strstr(said, assertion) : end == OTHER;
    const char *by = assertion ? assertion : "the memory has other data";
    printf("  %s: %s\n", broken_copies[i].fault, found ? by : "not found out");
    if (!found) fail_msg("%d: %s", end, said);
  }
}

int main(int argc, char **argv) {
  (void)argc;
  snprintf(build, sizeof build, "%s", argv[0]);
  char *slash = strstr(build, "/tb/test_pads");
  assert_non_null(slash);
  *slash = 0;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_board_as_it_is_passes),
      cmocka_unit_test(broken_copies_are_found_out),
  };
  return cmocka_run_group_tests_name("pads", tests, NULL, NULL);
}
