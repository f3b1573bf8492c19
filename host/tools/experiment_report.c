#include "experiment.h"
int exp_report(const struct exp_summary *summary, const char *path) {
  (void)summary;
  (void)path;
  return 0;
}
