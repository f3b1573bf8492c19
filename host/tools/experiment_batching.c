#include "experiment.h"
int experiment_batching(int argc, char **argv) {
  (void)argc;
  (void)argv;
  return cli_fail("not there yet");
}
