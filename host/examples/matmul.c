/* SPDX-License-Identifier: Apache-2.0 */
/* The simple calls: what a device is, and a matrix product on it.
 *
 *   build/bin/examples/matmul [DEVICE]        DEVICE: emu: (the default) or sim: */
#include <coltrain/coltrain.h>
#include <inttypes.h>
#include <stdio.h>

enum { M = 2, N = 2, K = 3 };

int main(int argc, char **argv) {
  const float a[M * K] = {1, 2, 3, 4, 5, 6}; /* M x K, row by row */
  const float b[K * N] = {1, 0, 0, 1, 1, 1}; /* K x N */
  float c[M * N];
  ct_device *dev;
  struct ct_info info;
  struct ct_timing timing;

  if (ct_open(argc > 1 ? argv[1] : "emu:", &dev)) {
    fprintf(stderr, "%s\n", ct_last_error(NULL));
    return 1;
  }
  int err = ct_info(dev, &info);
  if (!err) err = ct_matmul(dev, CT_INFERENCE, M, N, K, a, b, c, &timing);
  if (err) {
    fprintf(stderr, "%s\n", ct_last_error(dev));
  } else {
    printf("%s has an array of %" PRIu32 " x %" PRIu32 "\n", info.uri, info.array_rows,
           info.array_cols);
    printf("product: %g %g / %g %g\n", (double)c[0], (double)c[1], (double)c[2], (double)c[3]);
    if (info.has_clock) printf("in %" PRIu64 " cycles\n", timing.cycles);
  }
  ct_close(dev);
  return err ? 1 : 0;
}
