/* SPDX-License-Identifier: Apache-2.0 */
/* The self-test of a device: each part says what it did, or in a sentence what was wrong. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "coltrain_spec.h"
#include "ct_device.h"
#include "ct_model.h"
#include "ct_rand.h"

enum {
  PATTERNS = 68, /* of a register: every bit alone, every bit but one, and four words */
  CHUNK = 65536, /* bytes of the memory's pattern at a time */
  M = 70,
  N = 50,
  K = 90,
  IN = 40,
  HIDDEN = 33,
  OUT = 10,
  BATCH = 20,
  FIRST = IN * HIDDEN, /* weights of the first layer */
  LAYERS = 2,
  WAIT_MS = 60000 /* for any job */
};

struct options {
  const char *device, *json;
  uint32_t mib;
  uint64_t seed;
};

struct test {
  const struct options *o;
  ct_device *dev, *emu;
  struct ct_info info;
  char text[512]; /* of the part that runs */
};

__attribute__((format(printf, 2, 3))) static void say(struct test *t, const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(t->text, sizeof t->text, format, args);
  va_end(args);
}

/* A call that failed. */
static int failed(struct test *t, const ct_device *dev, int error) {
  say(t, "%s%s", dev == t->emu ? "the emulator: " : "", ct_last_error(dev));
  return error;
}

static void draw(struct test *t, float *x, size_t n) {
  struct ct_rand rand;
  ct_rand_seed(&rand, t->o->seed, CT_RAND_STREAM_NONE);
  for (size_t i = 0; i < n; ++i)
    x[i] = 2 * ct_rand_unit(&rand) - 1;
}

/* ---- Registers ---- */

static uint32_t pattern(unsigned i) {
  static const uint32_t words[] = {0x55555555, 0xaaaaaaaa, 0, 0xffffffff};
  if (i < 32) return UINT32_C(1) << i;
  return i < 64 ? ~(UINT32_C(1) << (i - 32)) : words[i - 64];
}

/* Both contexts' WATCHDOG have 32 bits and do nothing while no job runs; each gets the other's
 * complement, so that one written in place of the other shows. */
static int walk(struct test *t, const uint32_t at[2], unsigned i) {
  int err = CT_OK;
  for (int q = 0; !err && q < 2; ++q)
    err = ct_reg_write(t->dev, at[q], q ? ~pattern(i) : pattern(i));
  for (int q = 0; !err && q < 2; ++q) {
    uint32_t got = 0;
    const uint32_t want = q ? ~pattern(i) : pattern(i);
    err = ct_reg_read(t->dev, at[q], &got);
    if (err || got == want) continue;
    say(t, "register 0x%03" PRIx32 " was written 0x%08" PRIx32 " and reads 0x%08" PRIx32, at[q],
        want, got);
    return CT_ERR_DEVICE;
  }
  return err ? failed(t, t->dev, err) : CT_OK;
}

static int test_registers(struct test *t) {
  const uint32_t at[2] = {CT_CTX_BASE + CT_CREG_WATCHDOG,
                          CT_CTX_BASE + CT_CTX_STRIDE + CT_CREG_WATCHDOG};
  uint32_t before[2] = {0, 0};
  int err = CT_OK;
  for (int q = 0; !err && q < 2; ++q)
    err = ct_reg_read(t->dev, at[q], &before[q]);
  if (err) return failed(t, t->dev, err);
  for (unsigned i = 0; !err && i < PATTERNS; ++i)
    err = walk(t, at, i);
  for (int q = 0; q < 2; ++q)
    if (ct_reg_write(t->dev, at[q], before[q]) && !err) err = failed(t, t->dev, CT_ERR_DEVICE);
  if (!err) say(t, "%d patterns in two registers, read back", PATTERNS);
  return err;
}

/* ---- Memory ---- */

/* The words of a chunk depend on their address, so that a line that is missing shows. */
static void fill(struct test *t, uint32_t *words, uint64_t addr, uint32_t flip) {
  for (size_t i = 0; i < CHUNK / 4; ++i) {
    const uint64_t x =
        (addr / 4 + i + t->o->seed) * UINT64_C(0x9E3779B97F4A7C15); /* the golden ratio */
    words[i] = (uint32_t)(x >> 32) ^ flip;
  }
}

static int wrong_word(struct test *t, uint64_t addr, uint32_t want, uint32_t got) {
  say(t,
      "the word at 0x%" PRIx64 " was written 0x%08" PRIx32 " and reads 0x%08" PRIx32
      " (wrong bits: 0x%08" PRIx32 ")",
      addr, want, got, want ^ got);
  return CT_ERR_DEVICE;
}

static int check_chunk(struct test *t, uint64_t addr, const uint32_t *got, const uint32_t *want) {
  for (size_t i = 0; i < CHUNK / 4; ++i)
    if (got[i] != want[i]) return wrong_word(t, addr + 4 * i, want[i], got[i]);
  return CT_OK;
}

/* All of it is written before any of it is read. */
static int pass(struct test *t, uint64_t base, uint64_t size, uint32_t flip) {
  static uint32_t want[CHUNK / 4], got[CHUNK / 4];
  int err = CT_OK;
  for (uint64_t at = 0; !err && at < size; at += CHUNK) {
    fill(t, want, base + at, flip);
    err = ct_mem_write(t->dev, base + at, want, CHUNK);
  }
  for (uint64_t at = 0; !err && at < size; at += CHUNK) {
    fill(t, want, base + at, flip);
    err = ct_mem_read(t->dev, base + at, got, CHUNK);
    if (!err && check_chunk(t, base + at, got, want)) return CT_ERR_DEVICE;
  }
  return err ? failed(t, t->dev, err) : CT_OK;
}

/* Two words whose addresses differ in one bit alone, of which the second is written last. */
static int one_line(struct test *t, uint64_t low, unsigned bit) {
  const uint64_t at[2] = {low, low | UINT64_C(1) << bit};
  const uint32_t want[2] = {UINT32_C(0x5a5a0000) | bit, UINT32_C(0xa5a5ff00) | bit};
  uint32_t got[2] = {0, 0};
  int err = CT_OK;
  for (int i = 0; !err && i < 2; ++i)
    err = ct_mem_write(t->dev, at[i], &want[i], sizeof want[i]);
  for (int i = 0; !err && i < 2; ++i)
    err = ct_mem_read(t->dev, at[i], &got[i], sizeof got[i]);
  if (err) return failed(t, t->dev, err);
  if (got[0] == want[1]) {
    say(t,
        "bit %u of its addresses does nothing: what is written to 0x%" PRIx64
        " is read at 0x%" PRIx64 ", too",
        bit, at[1], at[0]);
    return CT_ERR_DEVICE;
  }
  for (int i = 0; i < 2; ++i)
    if (got[i] != want[i]) return wrong_word(t, at[i], want[i], got[i]);
  return CT_OK;
}

/* Every line of the address, also those that what is tried of the memory does not reach: in as much
 * as is free in one piece. */
static int test_lines(struct test *t) {
  const uint64_t size = ct_heap_largest(&t->dev->data);
  uint64_t base;
  int err = ct_mem_alloc(t->dev, size, &base);
  if (err) return failed(t, t->dev, err);
  for (unsigned bit = 2; !err && bit < 64 && size >> bit; ++bit) {
    const uint64_t one = UINT64_C(1) << bit;
    const uint64_t low = base & one ? (base | (one - 1)) + 1 : base;
    if ((low | one) + sizeof(uint32_t) <= base + size) err = one_line(t, low, bit);
  }
  ct_mem_free(t->dev, base);
  return err;
}

static int test_memory(struct test *t) {
  const uint64_t size = (uint64_t)t->o->mib << 20;
  uint64_t base;
  int err = test_lines(t);
  if (err) return err;
  err = ct_mem_alloc(t->dev, size, &base);
  if (err) return failed(t, t->dev, err);
  err = pass(t, base, size, 0);
  if (!err) err = pass(t, base, size, UINT32_MAX);
  ct_mem_free(t->dev, base);
  if (!err)
    say(t, "0x%" PRIx64 "..0x%" PRIx64 ", a word for each address and its complement", base,
        base + size - 1);
  return err;
}

/* ---- Work, compared with the emulator ---- */

/* Both results lie in one array. */
static int compare(struct test *t, const char *what, const float *both, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    if (ct_bits_of(both[i]) == ct_bits_of(both[n + i])) continue;
    say(t, "element %zu of %s is %a and should be %a", i, what, (double)both[i],
        (double)both[n + i]);
    return CT_ERR_DEVICE;
  }
  return CT_OK;
}

static int test_product(struct test *t) {
  static float a[M * K], b[K * N], c[2 * M * N];
  struct ct_timing timing;
  draw(t, a, sizeof a / sizeof *a);
  draw(t, b, sizeof b / sizeof *b);
  int err = ct_matmul(t->dev, CT_INFERENCE, M, N, K, a, b, c, &timing);
  if (err) return failed(t, t->dev, err);
  err = ct_matmul(t->emu, CT_INFERENCE, M, N, K, a, b, c + (size_t)M * N, NULL);
  if (err) return failed(t, t->emu, err);
  err = compare(t, "the product", c, (size_t)M * N);
  if (!err) say(t, "%d x %d x %d, the emulator's bytes", M, N, K);
  return err;
}

/* What a model gives: logits, and after a step its loss and all weights. */
struct learnt {
  float logits[BATCH * OUT], loss, w[FIRST + HIDDEN * OUT], bias[HIDDEN + OUT];
};
enum { LEARNT = sizeof(struct learnt) / sizeof(float) };

static int read_weights(ct_model *model, struct learnt *l) {
  const int err = ct_model_get(model, 0, l->w, l->bias, NULL, NULL);
  return err ? err : ct_model_get(model, 1, l->w + FIRST, l->bias + HIDDEN, NULL, NULL);
}

static int learn(struct test *t, ct_device *dev, bool step, struct learnt *l) {
  static const uint32_t widths[] = {IN, HIDDEN, OUT};
  static const struct ct_training training = {.batch = BATCH,
                                              .rates = {.lr = 0.1f, .momentum = 0.9f}};
  static float x[BATCH * IN];
  uint32_t labels[BATCH];
  ct_model *model = NULL;
  draw(t, x, sizeof x / sizeof *x);
  for (uint32_t i = 0; i < BATCH; ++i)
    labels[i] = i % OUT;
  int err = ct_model_create(dev, widths, LAYERS, t->o->seed, &model);
  if (!err && step) err = ct_model_training(model, &training);
  if (!err && step) err = ct_model_step(model, x, labels, &l->loss);
  if (!err && step) err = read_weights(model, l);
  if (!err) err = ct_model_infer(model, NULL, x, BATCH, l->logits);
  ct_model_free(model);
  return err ? failed(t, dev, err) : CT_OK;
}

static int learn_both(struct test *t, bool step, const char *what) {
  static union {
    struct learnt of[2];
    float all[2 * LEARNT];
  } both;
  memset(&both, 0, sizeof both);
  int err = learn(t, t->dev, step, &both.of[0]);
  if (!err) err = learn(t, t->emu, step, &both.of[1]);
  if (!err) err = compare(t, what, both.all, LEARNT);
  if (!err)
    say(t, "%d-%d-%d, batch %d: %s have the emulator's bytes", IN, HIDDEN, OUT, BATCH, what);
  return err;
}

static int test_inference(struct test *t) {
  return learn_both(t, false, "logits");
}

static int test_training(struct test *t) {
  return learn_both(t, true, "logits, loss, weights and biases after a step");
}

/* ---- All of it ---- */

static int open_emulator(struct test *t) {
  char uri[96];
  const struct ct_info *i = &t->info;
  snprintf(uri, sizeof uri, "emu:cols=%" PRIu32 ",lanes=%" PRIu32 ",spm=%" PRIu32 ",dram=%" PRIu64,
           i->array_cols, i->vpu_lanes, i->spm_words, i->dram_bytes >> 20);
  return cli_open(uri, &t->emu);
}

/* Each part, also after one that failed, but not when the device is gone. */
static int run(struct test *t, FILE *text, json_t *parts) {
  static const struct {
    const char *name;
    int (*run)(struct test *t);
  } part[] = {{"registers", test_registers},
              {"memory", test_memory},
              {"product", test_product},
              {"inference", test_inference},
              {"training", test_training}};
  int status = 0;
  for (size_t i = 0; i < sizeof part / sizeof *part; ++i) {
    const int err = part[i].run(t);
    fprintf(text, "%-10s %-7s %s\n", part[i].name, err ? "FAILED" : "ok", t->text);
    json_array_append_new(
        parts, json_pack("{s:s, s:b, s:s}", "name", part[i].name, "passed", !err, "text", t->text));
    if (err) status = 1;
    fflush(text);
  }
  return status;
}

static int test_device(struct test *t) {
  json_t *parts = json_array();
  FILE *text = cli_text(t->o->json);
  ct_set_timeout(t->dev, WAIT_MS);
  const int status = run(t, text, parts);
  if (status) cli_fail("%s failed its test", t->o->device);
  json_t *root =
      json_pack("{s:s, s:I, s:i, s:b, s:o}", "device", t->o->device, "seed", (json_int_t)t->o->seed,
                "mib", (int)t->o->mib, "passed", !status, "parts", parts);
  return cli_json_write(t->o->json, root) || status;
}

int verb_test(int argc, char **argv) {
  static const struct cli_option options[] = {
      CLI_DEVICE_AT(struct options, device),
      {"mib", "N", "How much device memory is tried (1)",
       CLI_COUNT_AT(struct options, mib, 1, 65535)},
      {"seed", "N", "Of patterns, operands and weights (1)",
       CLI_COUNT_AT(struct options, seed, 0, INT64_MAX)},
      {"json", "FILE", "Write what each part found (- for standard output)",
       CLI_FILE_AT(struct options, json, CLI_WRITE)}};
  static const struct cli_command command = {
      CLI_COMMAND(options),
      .doc =
          "Tests the device at hand: registers, memory, a product, inference and a step of "
          "training. Results must have the bytes of the emulator. The exit status is 1 if a part "
          "fails."
          "\vExample:\n  coltrain test --device usb: --mib 16\n"};
  struct options o = {.device = CLI_DEVICE, .mib = 1, .seed = 1};
  struct test t = {.o = &o};
  if (cli_options(&command, argc, argv, &o) || cli_open(o.device, &t.dev)) return 1;
  const int rc = ct_info(t.dev, &t.info);
  int status = rc ? cli_fail_device(t.dev, rc, o.device) : open_emulator(&t);
  if (!status) status = test_device(&t);
  ct_close(t.emu);
  ct_close(t.dev);
  return status;
}
