/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs back to back on the simulated core: what one costs when the next waits for it, and when it
 * may overlap (CT_JOB_OVERLAP); and the start of a single one. The results are those of emu:.
 * Prints the cycles, as the table of docs/results.md.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "ct_tb.h"

#include "coltrain/coltrain.h"
#include "host/lib/queue/ct_queue.h"
#include "host/transports/ct_probe.h"
#include "host/lib/lower/ct_prog.h"

enum { JOBS = 20, UNIT = 16 };

struct batch {
  ct_device *dev;
  ct_program *program, *twin; /* twin: the same commands in another place */
  uint32_t size;              /* products of size cubed */
  uint64_t a, b, c;           /* addresses: operands (the same for all), the first result */
  uint64_t c_bytes;
};

static void check(ct_device *dev, int err) {
  if (err) fail_msg("%s: %s", ct_strerror(err), ct_last_error(dev));
}

static void make(struct batch *p, const char *uri, uint32_t size) {
  *p = (struct batch){.size = size, .c_bytes = (uint64_t)4 * size * size};
  check(NULL, ct_open(uri, &p->dev));
  float *x = test_malloc(sizeof *x * size * size);
  ct_rng rng = ct_rng_make(size);
  for (uint32_t i = 0; i < size * size; ++i)
    x[i] = (float)ct_rng_below(&rng, 2001) - 1000.0f;
  const size_t bytes = ct_pack_size(size, size);
  void *packed = test_malloc(bytes);
  ct_pack(x, size, size, size, CT_ROW, packed);
  check(p->dev, ct_mem_alloc(p->dev, bytes, &p->a));
  check(p->dev, ct_mem_alloc(p->dev, JOBS * p->c_bytes, &p->c));
  check(p->dev, ct_mem_write(p->dev, p->a, packed, bytes));
  p->b = p->a;
  test_free(packed);
  test_free(x);
  char text[256];
  const struct ct_why why = {text, sizeof text};
  const struct ct_gemm shape = {
      .m = size, .n = size, .k = size, .pitch = size / 4, .spm_words = ct_window_words(p->dev)};
  for (unsigned i = 0; i < 2; ++i) {
    struct ct_code code;
    check(p->dev, ct_prog_gemm(&shape, &code, &why));
    check(p->dev, ct_code_load(p->dev, &code, i ? &p->twin : &p->program));
  }
}

static void submit(struct batch *p, unsigned i, uint32_t flags, uint64_t cycle) {
  struct ct_job job = {.program = p->program, .flags = flags};
  job.args[CT_GEMM_A - 1] = (uint32_t)(p->a / UNIT);
  job.args[CT_GEMM_B - 1] = (uint32_t)(p->b / UNIT);
  job.args[CT_GEMM_C - 1] = (uint32_t)((p->c + i * p->c_bytes) / UNIT);
  check(p->dev, ct_submit_at(p->dev, CT_INFERENCE, &job, cycle, NULL));
}

static struct ct_event reap(struct batch *p) {
  struct ct_event r;
  check(p->dev, ct_reap(p->dev, &r, 60000));
  assert_int_equal(r.error, CT_OK);
  return r;
}

/* Cycles from doorbell to completion of jobs alone, all earlier ones done, on average, since stalls
 * fall differently each time. In turns: of two programs, so that none is the one before. */
static double alone(struct batch *p, bool turns) {
  ct_program *const program = p->program;
  uint64_t sum = 0;
  for (unsigned i = 0; i < JOBS + 2; ++i) {
    /* One that is not in turns comes with the descriptor from the third job on. */
    p->program = turns && i % 2 ? p->twin : program;
    submit(p, 0, CT_JOB_OVERLAP, CT_NO_CYCLE);
    const struct ct_event r = reap(p);
    if (i >= 2) sum += r.end - r.arrive;
  }
  p->program = program;
  return (double)sum / JOBS;
}

/* Bursts of reads that were asked for while stores were not answered yet. */
struct early {
  uint64_t reads, stores; /* stores: under way */
};

static void watch(void *arg, uint64_t cycle, uint64_t events) {
  (void)cycle;
  struct early *e = arg;
  const uint64_t read = events >> CT_PROBE_UNIT_BITS * CT_UNIT_READ;
  const uint64_t write = events >> CT_PROBE_UNIT_BITS * CT_UNIT_WRITE;
  e->reads += e->stores && (read >> 2 * CT_PROBE_GRANT & 1);
  e->stores += write >> 2 * CT_PROBE_GRANT & 1;
  e->stores -= write >> 2 * CT_PROBE_COMPLETE & 1;
}

/* All at once; cycles for each but the first. */
static double back_to_back(struct batch *p, uint32_t flags) {
  uint64_t first = 0, last = 0;
  uint64_t now = 0;
  if (p->dev->info.has_clock) check(p->dev, ct_now(p->dev, &now));
  for (unsigned i = 0; i < JOBS; ++i)
    submit(p, i, flags, p->dev->info.has_clock ? now + 5000 : CT_NO_CYCLE);
  for (unsigned i = 0; i < JOBS; ++i) {
    const struct ct_event r = reap(p);
    if (i == 0) first = r.end;
    if (i > 0 && p->dev->info.has_clock) assert_true(r.end > last);
    if (i > 0 && !flags && p->dev->info.has_clock) assert_true(r.start >= last);
    last = r.end;
  }
  return (double)(last - first) / (JOBS - 1);
}

static void same_results(struct batch *p, struct batch *emu) {
  const size_t bytes = JOBS * (size_t)p->c_bytes;
  void *x = test_malloc(bytes), *y = test_malloc(bytes);
  check(p->dev, ct_mem_read(p->dev, p->c, x, bytes));
  check(emu->dev, ct_mem_read(emu->dev, emu->c, y, bytes));
  ct_assert_same("products", x, y, bytes);
  test_free(x);
  test_free(y);
}

/* The same, and how many reads there are for each job while stores are under way. */
static double watched(struct batch *p, uint32_t flags, double *reads) {
  struct early early = {0, 0};
  struct ct_probe probe = {.watch = watch, .watch_arg = &early};
  check(p->dev, ct_probe(p->dev, &probe));
  const double cycles = back_to_back(p, flags);
  check(p->dev, ct_probe(p->dev, NULL));
  assert_int_equal(early.stores, 0);
  *reads = (double)early.reads / JOBS;
  return cycles;
}

static void drop(struct batch *p) {
  ct_program_free(p->program);
  ct_program_free(p->twin);
  ct_close(p->dev);
}

static void products(void **state) {
  static const uint32_t sizes[] = {16, 32, 64};
  static const char *const uris[] = {"sim:", "sim:stall=25"};
  (void)state;
  puts(
      "| device | cubed | alone | again | back to back | overlapping | reads beside stores | the "
      "same, "
      "overlapping |\n|---|---:|---:|---:|---:|---:|---:|---:|");
  for (unsigned u = 0; u < 2; ++u) {
    for (unsigned i = 0; i < 3; ++i) {
      struct batch p, emu;
      make(&p, uris[u], sizes[i]);
      make(&emu, "emu:", sizes[i]);
      back_to_back(&emu, 0);
      const double first = alone(&p, true), third = alone(&p, false);
      double ahead, early;
      const double plain = watched(&p, 0, &ahead);
      same_results(&p, &emu);
      const double overlap = watched(&p, CT_JOB_OVERLAP, &early);
      same_results(&p, &emu);
      printf("| %s | %" PRIu32 " | %.1f | %.1f | %.1f | %.1f | %.1f | %.1f |\n", uris[u], sizes[i],
             first, third, plain, overlap, ahead, early);
      /* Descriptor and program are read ahead, as far as the work behind END hides it. */
      assert_true(third + (u ? 40 : 55) < first); /* a round trip to memory (60 cycles) */
      assert_true(plain + (sizes[i] <= 32 ? 60 : -10) < third);
      /* Loads of the next job go while stores of this one are not answered yet. */
      assert_true(overlap + 50 < plain);
      assert_true(early >= ahead + 2);
      drop(&p);
      drop(&emu);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(products)};
  ct_tb_seed();
  return cmocka_run_group_tests_name("jobs", tests, NULL, NULL);
}
