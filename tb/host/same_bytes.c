/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A product, training, a model file and inference, as a list of digests: the same lines from every
 * compiler, optimisation, processor and device (scripts/same-bytes compares them). The work is done
 * again in other floating-point environments, which must change nothing and come back as they were.
 *
 *   same_bytes [DEVICE]        emu: if none is given
 *
 * Without a test framework, because it is also built for processors that have none installed.
 */
#include <fenv.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef __x86_64__
#include <xmmintrin.h>
#endif

#include "coltrain/coltrain.h"

enum { M = 23, N = 19, K = 50, IN = 30, HIDDEN = 33, OUT = 7, BATCH = 21, STEPS = 3 };

/* What the work gives. */
struct digests {
  uint64_t packed, product, weights, loss, file, logits;
};

static uint64_t digest(const void *data, size_t size) { /* FNV-1a */
  const unsigned char *p = data;
  uint64_t h = UINT64_C(0xcbf29ce484222325);
  for (size_t i = 0; i < size; ++i)
    h = (h ^ p[i]) * UINT64_C(0x100000001b3);
  return h;
}

/* ---- The environment ---- */

/* What of it a call could change: control and flags. */
struct environment {
  int rounding, flags;
  unsigned control;
};

static struct environment look(void) {
  struct environment e = {fegetround(), fetestexcept(FE_ALL_EXCEPT), 0};
#ifdef __x86_64__
  e.control = _mm_getcsr();
#endif
  return e;
}

static struct environment before; /* the call that is under way */
static int changed;               /* calls that did not leave it as it was */

static int keep(int err, const char *call) {
  const struct environment after = look();
  if (after.rounding != before.rounding || after.flags != before.flags ||
      after.control != before.control) {
    printf("not ok - %s changed the floating-point environment\n", call);
    ++changed;
  }
  return err;
}

#define CALL(call) (before = look(), keep(call, #call))

/* ---- The work ---- */

/* Numbers of many sizes, by their bits: no arithmetic of the host is in them. */
static void fill(uint32_t *state, float *x, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    *state = *state * 1664525u + 1013904223u;
    const uint32_t bits = (*state & 0x807fffffu) | (120 + (*state >> 23) % 8) << 23;
    memcpy(&x[i], &bits, sizeof bits);
  }
}

static int multiply(ct_device *dev, uint32_t *state, struct digests *d) {
  static float a[M * K], b[K * N], c[M * N];
  static unsigned char packed[2 * 4 * 272];
  fill(state, a, M * K);
  fill(state, b, K * N);
  int err = CALL(ct_pack(a, M, K, K, CT_SQUARE, packed));
  if (!err) err = CALL(ct_matmul(dev, CT_INFERENCE, M, N, K, a, b, c, NULL));
  d->packed = digest(packed, sizeof packed);
  d->product = digest(c, sizeof c);
  return err;
}

static int file_digest(ct_model *model, uint64_t *d) {
  char path[] = "/tmp/ct_same_XXXXXX";
  static unsigned char bytes[65536];
  const int fd = mkstemp(path);
  if (fd < 0) return CT_ERR_IO;
  close(fd);
  const int err = CALL(ct_model_save(model, path));
  FILE *f = fopen(path, "rb");
  *d = digest(bytes, f ? fread(bytes, 1, sizeof bytes, f) : 0);
  if (f) fclose(f);
  unlink(path);
  return err;
}

static int learn(ct_device *dev, uint32_t *state, struct digests *d) {
  static const uint32_t widths[] = {IN, HIDDEN, OUT};
  const struct ct_training training = {
      .batch = BATCH, .rates = {.lr = 0.1f, .momentum = 0.9f, .weight_decay = 1e-3f}};
  static float x[BATCH * IN], w[IN * HIDDEN], logits[BATCH * OUT], loss[STEPS];
  uint32_t labels[BATCH];
  ct_model *model = NULL;
  int err = CALL(ct_model_create(dev, widths, 2, 77, &model));
  if (!err) err = CALL(ct_model_get(model, 0, w, NULL, NULL, NULL));
  d->weights = digest(w, sizeof w);
  if (!err) err = CALL(ct_model_training(model, &training));
  for (int i = 0; i < STEPS && !err; ++i) {
    fill(state, x, BATCH * IN);
    for (uint32_t j = 0; j < BATCH; ++j)
      labels[j] = (j + (uint32_t)i) % OUT;
    err = CALL(ct_model_step(model, x, labels, &loss[i]));
  }
  size_t right = 0;
  if (!err) err = file_digest(model, &d->file);
  if (!err) err = CALL(ct_model_infer(model, NULL, x, BATCH, logits));
  if (!err) err = CALL(ct_model_evaluate(model, NULL, x, labels, BATCH, &right));
  d->loss = digest(loss, sizeof loss);
  d->logits = digest(logits, sizeof logits) + right;
  ct_model_free(model);
  return err;
}

static int work(const char *uri, struct digests *d) {
  ct_device *dev = NULL;
  uint32_t state = 5;
  memset(d, 0, sizeof *d);
  int err = CALL(ct_open(uri, &dev));
  if (!err) err = multiply(dev, &state, d);
  if (!err) err = learn(dev, &state, d);
  if (err) printf("not ok - %s: %s\n", uri, ct_last_error(dev));
  ct_close(dev);
  return err;
}

/* ---- All environments ---- */

static void nothing(void) {}

static void upward(void) {
  fesetround(FE_UPWARD);
}

static void downward(void) {
  fesetround(FE_DOWNWARD);
}

static void towards_zero_with_flags(void) {
  fesetround(FE_TOWARDZERO);
  feraiseexcept(FE_OVERFLOW | FE_INVALID);
}

#ifdef __x86_64__
static void flushing(void) {
  _mm_setcsr(_mm_getcsr() | 0x8040);
}

/* Every exception but inexact ends the program, if it happens. */
static void trapping(void) {
  _mm_setcsr(_mm_getcsr() & ~0x0f80u);
}
#endif

static const struct {
  const char *name;
  void (*set)(void);
} environments[] = {
    {"as usual", nothing},
    {"rounding up", upward},
    {"rounding down", downward},
    {"rounding towards zero, flags raised", towards_zero_with_flags},
#ifdef __x86_64__
    {"flushing subnormals", flushing},
    {"trapping", trapping},
#endif
};

int main(int argc, char **argv) {
  const char *uri = argc > 1 ? argv[1] : "emu:";
  struct digests first, d;
  int failed = 0;
  fenv_t usual;
  fegetenv(&usual);
  for (size_t i = 0; i < sizeof environments / sizeof *environments; ++i) {
    environments[i].set();
    failed |= work(uri, &d) != 0;
    fesetenv(&usual);
    if (i == 0) first = d;
    if (memcmp(&first, &d, sizeof d) != 0) {
      printf("not ok - other bytes when %s\n", environments[i].name);
      failed = 1;
    }
  }
  printf("packed %016" PRIx64 " product %016" PRIx64 " weights %016" PRIx64 "\n", first.packed,
         first.product, first.weights);
  printf("loss %016" PRIx64 " file %016" PRIx64 " logits %016" PRIx64 "\n", first.loss, first.file,
         first.logits);
  return failed || changed;
}
