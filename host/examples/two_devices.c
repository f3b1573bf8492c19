/* SPDX-License-Identifier: Apache-2.0 */
/* Two devices in one process, each on a thread of its own: they share nothing, so nothing is
 * locked. The same product on both has the same bits.
 *
 *   build/bin/examples/two_devices [DEVICE [DEVICE]]        emu: and emu:cols=8,lanes=4 if not
 * given */
#include <coltrain/coltrain.h>
#include <pthread.h>
#include <stdio.h>

enum { N = 40 };

struct work {
  const char *uri;
  float c[N * N];
  int err;
  char why[256];
};

static void *run(void *arg) {
  struct work *w = arg;
  float a[N * N], b[N * N];
  ct_device *dev = NULL;
  for (int i = 0; i < N * N; ++i) {
    a[i] = (float)(i % 13) - 6.0f;
    b[i] = (float)(i % 7) * 0.25f;
  }
  w->err = ct_open(w->uri, &dev);
  if (!w->err) w->err = ct_matmul(dev, CT_INFERENCE, N, N, N, a, b, w->c, NULL);
  /* The sentence goes with the device, or, if there is none, with the thread. */
  if (w->err) snprintf(w->why, sizeof w->why, "%s", ct_last_error(dev));
  ct_close(dev);
  return NULL;
}

int main(int argc, char **argv) {
  static struct work work[2];
  pthread_t thread[2];
  work[0].uri = argc > 1 ? argv[1] : "emu:";
  work[1].uri = argc > 2 ? argv[2] : "emu:cols=8,lanes=4";
  for (int i = 0; i < 2; ++i)
    if (pthread_create(&thread[i], NULL, run, &work[i])) return 1;
  for (int i = 0; i < 2; ++i)
    pthread_join(thread[i], NULL);
  for (int i = 0; i < 2; ++i) {
    if (!work[i].err) continue;
    fprintf(stderr, "%s\n", work[i].why);
    return 1;
  }
  bool same = true;
  for (int i = 0; i < N * N; ++i)
    same = same && work[0].c[i] == work[1].c[i];
  printf("%s and %s: %s bits\n", work[0].uri, work[1].uri, same ? "the same" : "different");
  return same ? 0 : 1;
}
