/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that make no sense, one after the other on one device: each gives its code and a sentence
 * that names what was wrong, and afterwards the device multiplies as before. On emu: and sim:.
 */
#include "ct_tb.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "coltrain/coltrain.h"

enum { IN = 20, OUT = 5, BATCH = 4, LEAST = 160 };

/* A device with one of everything. */
struct bed {
  ct_device *dev, *other;
  ct_model *model, *untrained, *wide, *foreign_model; /* wide: of other widths */
  ct_batch *batch, *foreign_batch;
  ct_rows *rows, *foreign_rows;
  ct_answers *answers, *foreign_answers;
  ct_weights *version, *foreign_version;
  ct_program *program, *foreign;
  uint64_t at, end; /* 4 KiB of memory; the memory's end */
  float x[BATCH * IN], logits[BATCH * OUT];
  uint32_t labels[BATCH];
  char folder[32];
  int count;
};

static const uint32_t widths[] = {IN, 17, OUT}, wide[] = {IN + 1, 3, OUT + 1};

enum { ROWS = 20 };

/* ---- What is checked after every call ---- */

static void check_usable(struct bed *b, const char *call) {
  const float two = 2, three = 3;
  float six = 0;
  if (ct_matmul(b->dev, CT_TRAINING, 1, 1, 1, &two, &three, &six, NULL) || six != 6.0f)
    fail_msg("after %s the device is not usable: %s", call, ct_last_error(b->dev));
}

/* A sentence that names a function names the one that was called, in brackets or not. */
static void check_name(const char *call, const char *text) {
  const char *end = strstr(text, "(): ");
  const size_t skip = *call == '(', name = strcspn(call + skip, "(");
  if (!end) return;
  if (text + name != end || strncmp(text, call + skip, name) != 0)
    fail_msg("%s: \"%s\" names another function", call, text);
}

static void check_refused(struct bed *b, const ct_device *dev, int want, const char *part,
                          const char *call, int got) {
  const char *text = ct_last_error(dev);
  if (got != want) fail_msg("%s gave %d instead of %d: %s", call, got, want, text);
  if (!strstr(text, part)) fail_msg("%s: \"%s\" does not speak of \"%s\"", call, text, part);
  check_name(call, text);
  ++b->count;
  check_usable(b, call);
}

/* The sentence is the device's, or the thread's. */
#define REFUSED(error, part, call) check_refused(b, b->dev, error, part, #call, call)
#define REFUSED_ALONE(error, part, call) check_refused(b, NULL, error, part, #call, call)

/* ---- Setting up ---- */

static const unsigned char end_command[32] = {0x3f}; /* never run */

/* Everything that work in flight names, on one of the two devices. */
static void open_handles(struct bed *b, ct_device *dev, ct_model **model, ct_batch **batch,
                         ct_rows **rows, ct_answers **answers, ct_weights **version) {
  const struct ct_training training = {.batch = BATCH, .rates = {.lr = 0.1f, .momentum = 0.9f}};
  float x[ROWS * IN];
  for (int i = 0; i < ROWS * IN; ++i)
    x[i] = (float)(i % 9) * 0.125f;
  assert_int_equal(ct_model_create(dev, widths, 2, 1, model), CT_OK);
  assert_int_equal(ct_model_training(*model, &training), CT_OK);
  assert_int_equal(ct_batch_create(*model, batch), CT_OK);
  assert_int_equal(ct_batch_write(*batch, b->x, b->labels), CT_OK);
  assert_int_equal(ct_rows_create(*model, ROWS, rows), CT_OK);
  assert_int_equal(ct_rows_write(*rows, 0, ROWS - 1, x), CT_OK);
  assert_int_equal(ct_answers_create(*model, ROWS, answers), CT_OK);
  assert_int_equal(ct_model_publish(*model, version), CT_OK);
}

static void open_bed(struct bed *b, const char *uri) {
  struct ct_info info;
  *b = (struct bed){.count = 0};
  snprintf(b->folder, sizeof b->folder, "/tmp/ct_calls_XXXXXX");
  assert_non_null(mkdtemp(b->folder));
  for (int i = 0; i < BATCH * IN; ++i)
    b->x[i] = (float)(i % 7) * 0.25f;
  for (uint32_t i = 0; i < BATCH; ++i)
    b->labels[i] = i;
  if (ct_open(uri, &b->dev)) fail_msg("%s", ct_last_error(NULL));
  assert_int_equal(ct_open("emu:dram=32", &b->other), CT_OK);
  assert_int_equal(ct_info(b->dev, &info), CT_OK);
  b->end = info.dram_bytes;
  assert_int_equal(ct_mem_alloc(b->dev, 4096, &b->at), CT_OK);
  open_handles(b, b->dev, &b->model, &b->batch, &b->rows, &b->answers, &b->version);
  open_handles(b, b->other, &b->foreign_model, &b->foreign_batch, &b->foreign_rows,
               &b->foreign_answers, &b->foreign_version);
  assert_int_equal(ct_model_create(b->dev, widths, 2, 1, &b->untrained), CT_OK);
  assert_int_equal(ct_model_create(b->dev, wide, 2, 1, &b->wide), CT_OK);
  assert_int_equal(ct_program_load(b->dev, end_command, 1, &b->program), CT_OK);
  assert_int_equal(ct_program_load(b->other, end_command, 1, &b->foreign), CT_OK);
  check_usable(b, "opening");
}

static void close_bed(struct bed *b) {
  /* Everything that was not refused still works. */
  float loss = 0;
  assert_int_equal(ct_model_step(b->model, b->x, b->labels, &loss), CT_OK);
  assert_true(loss > 0.5f && loss < 5.0f);
  assert_int_equal(ct_outstanding(b->dev, CT_INFERENCE), 0);
  assert_int_equal(ct_outstanding(b->dev, CT_TRAINING), 0);
  ct_program_free(b->program);
  ct_program_free(b->foreign);
  ct_batch_free(b->batch);
  ct_batch_free(b->foreign_batch);
  ct_rows_free(b->rows);
  ct_rows_free(b->foreign_rows);
  ct_answers_free(b->answers);
  ct_answers_free(b->foreign_answers);
  ct_weights_free(b->version);
  ct_weights_free(b->foreign_version);
  ct_model_free(b->model);
  ct_model_free(b->foreign_model);
  ct_model_free(b->untrained);
  ct_model_free(b->wide);
  ct_close(b->other);
  ct_close(b->dev);
  rmdir(b->folder);
}

/* ---- The calls ---- */

static void bad_devices(struct bed *b) {
  ct_device *none = (ct_device *)b;
  struct ct_info info;
  uint64_t word;
  char longest[300];
  memset(longest, 'x', sizeof longest);
  memcpy(longest, "emu:", 4);
  longest[sizeof longest - 1] = 0;
  const struct ct_options newer = {.reserved = {[7] = 1}};
  REFUSED_ALONE(CT_ERR_ARG, "device is NULL", ct_open("emu:", NULL));
  REFUSED_ALONE(CT_ERR_ARG, "uri is NULL", ct_open(NULL, &none));
  REFUSED_ALONE(CT_ERR_ARG, "uri is NULL", ct_open_with(NULL, NULL, &none));
  REFUSED_ALONE(CT_ERR_ARG, "count is NULL", ct_list((struct ct_entry **)&none, NULL));
  assert_null(none);
  REFUSED_ALONE(CT_ERR_ARG, "SCHEME:ARGUMENTS", ct_open("", &none));
  REFUSED_ALONE(CT_ERR_ARG, "SCHEME:ARGUMENTS", ct_open("a/b:", &none));
  REFUSED_ALONE(CT_ERR_ARG, "at most 255 characters", ct_open(longest, &none));
  REFUSED_ALONE(CT_ERR_ARG, "reserved[7] of ct_options", ct_open_with("emu:", &newer, &none));
  REFUSED_ALONE(CT_ERR_NOT_FOUND, "no transport \"none:\"", ct_open("none:", &none));
  REFUSED_ALONE(CT_ERR_ARG, "emu: has no option \"size\"", ct_open("emu:size=3", &none));
  REFUSED_ALONE(CT_ERR_ARG, "option dram=0", ct_open("emu:dram=0", &none));
  REFUSED_ALONE(CT_ERR_ARG, "name the file of the registers", ct_open("mmio:", &none));
  REFUSED_ALONE(CT_ERR_NOT_FOUND, "/dev/no-uio is not there", ct_open("mmio:/dev/no-uio", &none));
  REFUSED_ALONE(CT_ERR_NOT_FOUND, "no board with an FT232H",
                ct_open("usb:bus=255,addr=127", &none));
  REFUSED_ALONE(CT_ERR_ARG, "usb: has no option \"speed\"", ct_open("usb:speed=3", &none));
  REFUSED_ALONE(CT_ERR_ARG, "the device is NULL", ct_info(NULL, &info));
  REFUSED_ALONE(CT_ERR_ARG, "the device is NULL", ct_now(NULL, &word));
  REFUSED_ALONE(CT_ERR_ARG, "the device is NULL", ct_poll_fd(NULL));
  REFUSED(CT_ERR_ARG, "info is NULL", ct_info(b->dev, NULL));
  REFUSED(CT_ERR_ARG, "cycle is NULL", ct_now(b->dev, NULL));
  REFUSED(CT_ERR_ARG, "no policy 7", ct_set_policy(b->dev, (enum ct_policy)7));
  REFUSED(CT_ERR_ARG, "no policy -1", ct_set_policy(b->dev, (enum ct_policy) - 1));
  REFUSED(CT_ERR_ARG, "no queue 2", ct_counters(b->dev, (enum ct_queue)2, &word, 1));
  REFUSED(CT_ERR_ARG, "values is NULL", ct_counters(b->dev, CT_TRAINING, NULL, 1));
  REFUSED(CT_ERR_ARG, "timeout of -2 ms", ct_set_timeout(b->dev, -2));
  REFUSED_ALONE(CT_ERR_ARG, "entries is NULL", ct_list(NULL, NULL));
  REFUSED_ALONE(CT_ERR_ARG, "entries is NULL", ct_scan(NULL, NULL));
  REFUSED_ALONE(CT_ERR_ARG, "uri is NULL", ct_registers(NULL, NULL, NULL, NULL));
  REFUSED_ALONE(CT_ERR_ARG, "registers is NULL", ct_registers("emu:", NULL, NULL, NULL));
  enum ct_policy policy = CT_FCFS;
  enum ct_batching batching = CT_BATCHING_FIXED;
  REFUSED_ALONE(CT_ERR_ARG, "name is NULL", ct_policy_by_name(NULL, &policy));
  REFUSED_ALONE(CT_ERR_ARG, "policy is NULL", ct_policy_by_name("fcfs", NULL));
  REFUSED_ALONE(CT_ERR_ARG, "no policy \"lifo\": priority, fcfs",
                ct_policy_by_name("lifo", &policy));
  REFUSED_ALONE(CT_ERR_ARG, "name is NULL", ct_batching_by_name(NULL, &batching));
  REFUSED_ALONE(CT_ERR_ARG, "batching is NULL", ct_batching_by_name("fixed", NULL));
  REFUSED_ALONE(CT_ERR_ARG, "none, fixed or adaptive", ct_batching_by_name("", &batching));
  assert_true(policy == CT_FCFS && batching == CT_BATCHING_FIXED);
}

static void bad_memory(struct bed *b) {
  uint64_t a, huge;
  char bytes[16] = "";
  assert_int_equal(ct_mem_alloc(b->dev, 16, &a), CT_OK);
  assert_int_equal(ct_mem_free(b->dev, a), CT_OK);
  REFUSED(CT_ERR_ARG, "it was freed before", ct_mem_free(b->dev, a));
  REFUSED(CT_ERR_ARG, "nothing is allocated at 0x", ct_mem_free(b->dev, b->at + 16));
  REFUSED(CT_ERR_ARG, "addr is NULL", ct_mem_alloc(b->dev, 16, NULL));
  REFUSED(CT_ERR_NO_SPACE, "the largest free piece has", ct_mem_alloc(b->dev, b->end, &huge));
  REFUSED(CT_ERR_NO_SPACE, "18446744073709551615 bytes", ct_mem_alloc(b->dev, UINT64_MAX, &huge));
  REFUSED(CT_ERR_ARG, "data is NULL", ct_mem_write(b->dev, b->at, NULL, 16));
  REFUSED(CT_ERR_ARG, "data is NULL", ct_mem_read(b->dev, b->at, NULL, 16));
  REFUSED(CT_ERR_ARG, "16 bytes at 0x0 are not", ct_mem_write(b->dev, 0, bytes, 16));
  REFUSED(CT_ERR_ARG, "are not within the memory", ct_mem_write(b->dev, b->end - 15, bytes, 16));
  REFUSED(CT_ERR_ARG, "are not within the memory", ct_mem_read(b->dev, UINT64_MAX, bytes, 16));
  REFUSED(CT_ERR_ARG, "are not within the memory", ct_mem_read(b->dev, b->at, bytes, SIZE_MAX));
  REFUSED_ALONE(CT_ERR_ARG, "the device is NULL", ct_mem_free(NULL, 4096));
}

static void bad_tensors(struct bed *b) {
  uint8_t out[272];
  REFUSED_ALONE(CT_ERR_ARG, "x is NULL", ct_pack(NULL, 4, 4, 4, CT_ROW, out));
  REFUSED_ALONE(CT_ERR_ARG, "out is NULL", ct_pack(b->x, 4, 4, 4, CT_ROW, NULL));
  REFUSED_ALONE(CT_ERR_ARG, "pitch of 3", ct_pack(b->x, 4, 4, 3, CT_ROW, out));
  REFUSED_ALONE(CT_ERR_ARG, "no sharing 2", ct_pack(b->x, 4, 4, 4, (enum ct_sharing)2, out));
  REFUSED_ALONE(CT_ERR_ARG, "more than this machine can address",
                ct_pack(b->x, SIZE_MAX, SIZE_MAX, SIZE_MAX, CT_ROW, out));
  REFUSED_ALONE(CT_ERR_ARG, "pitch of 4", ct_pack_transposed(b->x, 5, 4, 4, CT_SQUARE, out));
  REFUSED_ALONE(CT_ERR_ARG, "packed is NULL", ct_unpack(NULL, 4, 4, 4, b->logits));
  REFUSED_ALONE(CT_ERR_ARG, "x is NULL", ct_unpack(out, 4, 4, 4, NULL));
  REFUSED_ALONE(CT_ERR_ARG, "x is NULL", ct_pack_row(NULL, 4, out));
  REFUSED_ALONE(CT_ERR_ARG, "out is NULL", ct_pack_row(b->x, 4, NULL));
  REFUSED_ALONE(CT_ERR_ARG, "out is NULL", ct_pack_transposed(b->x, 4, 4, 4, CT_ROW, NULL));
  REFUSED_ALONE(CT_ERR_ARG, "a row of 18446744073709551615", ct_pack_row(b->x, SIZE_MAX, out));
  int8_t m[16] = {0};
  uint8_t scale[1] = {1};
  REFUSED_ALONE(CT_ERR_ARG, "elements is NULL", ct_pack_mxint8(NULL, scale, 1, 16, out));
  REFUSED_ALONE(CT_ERR_ARG, "scales is NULL", ct_pack_mxint8(m, NULL, 1, 16, out));
  REFUSED_ALONE(CT_ERR_ARG, "out is NULL", ct_pack_mxint8(m, scale, 1, 16, NULL));
  REFUSED_ALONE(CT_ERR_ARG, "more than this machine can address",
                ct_pack_mxint8(m, scale, SIZE_MAX, SIZE_MAX, out));
  REFUSED_ALONE(CT_ERR_ARG, "packed is NULL", ct_unpack_mxint8(NULL, 1, 16, CT_EXACT, m, scale));
  REFUSED_ALONE(CT_ERR_ARG, "elements is NULL",
                ct_unpack_mxint8(out, 1, 16, CT_EXACT, NULL, scale));
  REFUSED_ALONE(CT_ERR_ARG, "scales is NULL", ct_unpack_mxint8(out, 1, 16, CT_EXACT, m, NULL));
  REFUSED_ALONE(CT_ERR_ARG, "no rounding 2",
                ct_unpack_mxint8(out, 1, 16, (enum ct_rounding)2, m, scale));
  REFUSED_ALONE(CT_ERR_ARG, "more than this machine can address",
                ct_unpack_mxint8(out, SIZE_MAX, SIZE_MAX, CT_EXACT, m, scale));
  REFUSED_ALONE(CT_ERR_ARG, "a pitch of 18446744073709551615",
                ct_pack(b->x, 2, 4, SIZE_MAX, CT_ROW, out));
  REFUSED_ALONE(CT_ERR_ARG, "a pitch of 4611686018427387904",
                ct_unpack(out, 2, 4, SIZE_MAX / 4 + 1, b->x));
}

static void count_line(void *arg, const char *text) {
  assert_non_null(strstr(text, "END"));
  ++*(size_t *)arg;
}

/* As for a program that is loaded, but without a device. */
static void disassembling(struct bed *b) {
  uint8_t ends[513 * 32 + 1] = {0};
  size_t lines = 0;
  for (size_t i = 0; i < 513; ++i)
    ends[i * 32 + 1] = 0x01;
  assert_int_equal(ct_disassemble(ends + 1, 512, count_line, &lines), 0);
  assert_int_equal(lines, 512);
  assert_int_equal(ct_disassemble(ends, 0, count_line, &lines), 0);
  assert_int_equal(lines, 512);
  REFUSED_ALONE(CT_ERR_ARG, "commands is NULL", ct_disassemble(NULL, 1, count_line, &lines));
  REFUSED_ALONE(CT_ERR_ARG, "line is NULL", ct_disassemble(ends, 1, NULL, &lines));
  REFUSED_ALONE(CT_ERR_ARG, "at most 512 commands, not 513",
                ct_disassemble(ends, 513, count_line, &lines));
}

static void bad_products(struct bed *b) {
  float c[4];
  const float *x = b->x;
  REFUSED(CT_ERR_ARG, "a is NULL", ct_matmul(b->dev, CT_INFERENCE, 2, 2, 2, NULL, x, c, NULL));
  REFUSED(CT_ERR_ARG, "c is NULL", ct_matmul(b->dev, CT_INFERENCE, 2, 2, 2, x, x, NULL, NULL));
  REFUSED(CT_ERR_ARG, "product of 2 x 0 x 2",
          ct_matmul(b->dev, CT_INFERENCE, 2, 0, 2, x, x, c, NULL));
  REFUSED(CT_ERR_ARG, "each must be 1..",
          ct_matmul(b->dev, CT_INFERENCE, 2, 2, SIZE_MAX, x, x, c, NULL));
  REFUSED(CT_ERR_ARG, "no queue 9", ct_matmul(b->dev, (enum ct_queue)9, 2, 2, 2, x, x, c, NULL));
  REFUSED(CT_ERR_NO_SPACE, "no room for",
          ct_matmul(b->dev, CT_INFERENCE, 1 << 24, 1 << 24, 1, x, x, c, NULL));
}

static void bad_models(struct bed *b) {
  ct_model *m = NULL;
  struct ct_model_info info;
  static const uint32_t zero[] = {IN, 0, OUT}, huge[] = {IN, 70000, OUT}, large[] = {65536, 65536};
  const struct ct_training none = {.rates = {.lr = 0.1f}},
                           many = {.batch = 70000, .rates = {.lr = 0.1f}},
                           some = {.batch = 60000, .rates = {.lr = 0.1f}},
                           newer = {.batch = 4, .reserved = {0, 1}};
  REFUSED(CT_ERR_ARG, "widths is NULL", ct_model_create(b->dev, NULL, 2, 1, &m));
  REFUSED(CT_ERR_ARG, "model is NULL", ct_model_create(b->dev, widths, 2, 1, NULL));
  REFUSED(CT_ERR_ARG, "1..16 layers, not 0", ct_model_create(b->dev, widths, 0, 1, &m));
  REFUSED(CT_ERR_ARG, "1..16 layers, not 20", ct_model_create(b->dev, widths, 20, 1, &m));
  REFUSED(CT_ERR_ARG, "1..16 layers", ct_model_create(b->dev, widths, SIZE_MAX, 1, &m));
  REFUSED(CT_ERR_ARG, "units, not 0", ct_model_create(b->dev, zero, 2, 1, &m));
  REFUSED(CT_ERR_ARG, "units, not 70000", ct_model_create(b->dev, huge, 2, 1, &m));
  REFUSED(CT_ERR_NO_SPACE, "too large", ct_model_create(b->dev, large, 1, 1, &m));
  REFUSED_ALONE(CT_ERR_ARG, "the device is NULL", ct_model_create(NULL, widths, 2, 1, &m));
  REFUSED_ALONE(CT_ERR_ARG, "the model is NULL", ct_model_info(NULL, &info));
  REFUSED(CT_ERR_ARG, "info is NULL", ct_model_info(b->model, NULL));
  REFUSED(CT_ERR_ARG, "there is no layer 2", ct_model_get(b->model, 2, b->x, NULL, NULL, NULL));
  REFUSED(CT_ERR_ARG, "there is no layer",
          ct_model_set(b->model, SIZE_MAX, b->x, NULL, NULL, NULL));
  REFUSED(CT_ERR_ARG, "training is NULL", ct_model_training(b->model, NULL));
  REFUSED(CT_ERR_ARG, "at least one row", ct_model_training(b->model, &none));
  REFUSED(CT_ERR_NO_SPACE, "70000 rows", ct_model_training(b->model, &many));
  REFUSED(CT_ERR_NO_SPACE, "a batch of 60000 rows is too large: 4096 are the most",
          ct_model_training(b->model, &some));
  static const struct {
    struct ct_rates rates;
    const char *part;
  } bad[] = {
      {{.lr = -1}, "a learning rate of -1: it must be 0..1000"},
      {{.lr = 1000.5f}, "a learning rate of 1000.5: it must be 0..1000"},
      {{.lr = -INFINITY}, "learning rate is not a finite number"},
      {{.momentum = 2}, "a momentum of 2: it must be 0..1"},
      {{.momentum = NAN}, "momentum is not a finite number"},
      {{.weight_decay = -5}, "a weight decay of -5: it must be 0..1"},
      {{.weight_decay = -1e-40f}, "a weight decay of -9.99"},
      {{.weight_decay = INFINITY}, "weight decay is not a finite number"},
      {{.lr = NAN}, "learning rate is not a finite number"},
      {{.reserved = {[3] = 1}}, "reserved[3] of ct_rates"},
  };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) {
    const struct ct_training t = {.batch = 4, .rates = bad[i].rates};
    REFUSED(CT_ERR_ARG, bad[i].part, ct_model_training(b->model, &t));
    REFUSED(CT_ERR_ARG, bad[i].part, ct_model_set_rates(b->model, &bad[i].rates));
    const struct ct_step step = {.batch = b->batch, .rates = &bad[i].rates};
    REFUSED(CT_ERR_ARG, bad[i].part, ct_model_step_submit(b->model, &step, NULL));
    REFUSED_ALONE(CT_ERR_ARG, bad[i].part, ct_rates_check(&bad[i].rates));
  }
  static const struct ct_rates edges[] = {{.lr = 0, .momentum = -0.0f},
                                          {.lr = 1000, .momentum = 1, .weight_decay = 1}};
  assert_int_equal(ct_rates_check(&edges[0]), CT_OK);
  assert_int_equal(ct_rates_check(&edges[1]), CT_OK);
  REFUSED_ALONE(CT_ERR_ARG, "rates is NULL", ct_rates_check(NULL));
  REFUSED(CT_ERR_ARG, "rates is NULL", ct_model_set_rates(b->model, NULL));
  REFUSED(CT_ERR_ARG, "reserved[1] of ct_training", ct_model_training(b->model, &newer));
}

static void bad_gradients(struct bed *b) {
  const struct ct_apply newer = {.reserved = {[3] = 1}}, scale = {.scale = -1};
  const struct ct_training training = {.batch = BATCH, .rates = {.lr = 0.1f}, .gradients = true};
  const struct ct_step step = {.batch = b->batch, .gradients = CT_GRADIENTS_SET},
                       add = {.batch = b->batch, .gradients = CT_GRADIENTS_ADD},
                       odd = {.batch = b->batch, .gradients = (enum ct_gradients)3};
  float g[IN * 17], norm;
  REFUSED_ALONE(CT_ERR_ARG, "the model is NULL", ct_model_apply(NULL, NULL));
  REFUSED_ALONE(CT_ERR_ARG, "the model is NULL", ct_model_apply_submit(NULL, NULL, NULL));
  REFUSED_ALONE(CT_ERR_ARG, "the model is NULL", ct_model_get_gradients(NULL, 0, g, g));
  REFUSED_ALONE(CT_ERR_ARG, "the model is NULL", ct_model_set_gradients(NULL, 0, g, g));
  REFUSED_ALONE(CT_ERR_ARG, "the model is NULL", ct_model_gradient_norm(NULL, &norm));
  REFUSED_ALONE(CT_ERR_ARG, "clipped is NULL", ct_clip_scale(1, 1, 1, NULL));
  REFUSED_ALONE(CT_ERR_ARG, "norm is not a finite", ct_clip_scale(NAN, 1, 1, &norm));
  REFUSED_ALONE(CT_ERR_ARG, "scale is not a positive", ct_clip_scale(1, 0, 1, &norm));
  REFUSED_ALONE(CT_ERR_ARG, "largest norm is not", ct_clip_scale(1, 1, -1, &norm));
  REFUSED(CT_ERR_ARG, "gradients of 4 rows", ct_model_step_submit(b->model, &step, NULL));
  REFUSED(CT_ERR_ARG, "gradients 3", ct_model_step_submit(b->model, &odd, NULL));
  REFUSED(CT_ERR_ARG, "prepared for gradients", ct_model_apply(b->untrained, NULL));
  REFUSED(CT_ERR_ARG, "prepared for gradients", ct_model_get_gradients(b->model, 0, g, g));
  REFUSED(CT_ERR_ARG, "prepared for gradients", ct_model_gradient_norm(b->model, &norm));
  assert_int_equal(ct_model_training(b->model, &training), CT_OK);
  REFUSED(CT_ERR_ARG, "layer 0 has no gradients", ct_model_apply(b->model, NULL));
  REFUSED(CT_ERR_ARG, "layer 0 has no gradients", ct_model_step_submit(b->model, &add, NULL));
  REFUSED(CT_ERR_ARG, "layer 1 has no gradients", ct_model_get_gradients(b->model, 1, g, g));
  REFUSED(CT_ERR_ARG, "layer 1 has no gradients", ct_model_set_gradients(b->model, 1, g, NULL));
  REFUSED(CT_ERR_ARG, "there is no layer 2", ct_model_get_gradients(b->model, 2, g, g));
  REFUSED(CT_ERR_ARG, "norm is NULL", ct_model_gradient_norm(b->model, NULL));
  REFUSED(CT_ERR_ARG, "reserved[3] of ct_apply", ct_model_apply(b->model, &newer));
  REFUSED(CT_ERR_ARG, "the scale of an update", ct_model_apply(b->model, &scale));
}

static void bad_steps(struct bed *b) {
  uint32_t high[BATCH] = {0, 1, OUT, 0};
  ct_batch *none = b->batch, *blank;
  float loss;
  const struct ct_step good = {.batch = b->batch}, without = {.batch = NULL},
                       foreign = {.batch = b->foreign_batch},
                       newer = {.batch = b->batch, .reserved = {[2] = 1}};
  REFUSED(CT_ERR_ARG, "not been prepared", ct_model_step(b->untrained, b->x, b->labels, NULL));
  REFUSED(CT_ERR_ARG, "x is NULL", ct_model_step(b->model, NULL, b->labels, NULL));
  REFUSED(CT_ERR_ARG, "labels is NULL", ct_model_step(b->model, b->x, NULL, NULL));
  REFUSED(CT_ERR_ARG, "label 5 of row 2", ct_model_step(b->model, b->x, high, NULL));
  REFUSED_ALONE(CT_ERR_ARG, "the model is NULL", ct_batch_create(NULL, &none));
  assert_null(none);
  REFUSED(CT_ERR_ARG, "not been prepared", ct_batch_create(b->untrained, &none));
  REFUSED(CT_ERR_ARG, "batch is NULL", ct_batch_create(b->model, NULL));
  REFUSED_ALONE(CT_ERR_ARG, "the batch is NULL", ct_batch_write(NULL, b->x, b->labels));
  REFUSED(CT_ERR_ARG, "x is NULL", ct_batch_write(b->batch, NULL, b->labels));
  REFUSED(CT_ERR_ARG, "labels is NULL", ct_batch_write(b->batch, b->x, NULL));
  REFUSED(CT_ERR_ARG, "label 5 of row 2", ct_batch_write(b->batch, b->x, high));
  REFUSED_ALONE(CT_ERR_ARG, "the batch is NULL", ct_batch_loss(NULL, &loss));
  REFUSED(CT_ERR_ARG, "loss is NULL", ct_batch_loss(b->batch, NULL));
  REFUSED(CT_ERR_ARG, "it has no loss", ct_batch_loss(b->batch, &loss));
  REFUSED_ALONE(CT_ERR_ARG, "the model is NULL", ct_model_step_submit(NULL, &good, NULL));
  REFUSED(CT_ERR_ARG, "step is NULL", ct_model_step_submit(b->model, NULL, NULL));
  REFUSED(CT_ERR_ARG, "the step's batch is NULL", ct_model_step_submit(b->model, &without, NULL));
  REFUSED(CT_ERR_ARG, "belongs to another device", ct_model_step_submit(b->model, &foreign, NULL));
  REFUSED(CT_ERR_ARG, "not been prepared", ct_model_step_submit(b->untrained, &good, NULL));
  REFUSED(CT_ERR_ARG, "reserved[2] of ct_step", ct_model_step_submit(b->model, &newer, NULL));
  assert_int_equal(ct_batch_create(b->model, &blank), CT_OK);
  const struct ct_step early = {.batch = blank};
  REFUSED(CT_ERR_ARG, "has not been written", ct_model_step_submit(b->model, &early, NULL));
  ct_batch_free(blank);
  REFUSED(CT_ERR_CLOSED, "the batch was freed before",
          ct_model_step_submit(b->model, &early, NULL));
  REFUSED(CT_ERR_CLOSED, "the batch was freed before", ct_batch_write(blank, b->x, b->labels));
  REFUSED(CT_ERR_CLOSED, "the batch was freed before", (ct_batch_free(blank), CT_ERR_CLOSED));
  /* A batch of another model, which may have the same widths. */
  const struct ct_training training = {.batch = BATCH};
  ct_model *twin;
  assert_int_equal(ct_model_create(b->dev, widths, 2, 1, &twin), CT_OK);
  assert_int_equal(ct_model_training(twin, &training), CT_OK);
  REFUSED(CT_ERR_ARG, "belongs to another model", ct_model_step_submit(twin, &good, NULL));
  ct_model_free(twin);
}

static void bad_rows(struct bed *b) {
  ct_rows *rows = b->rows;
  ct_answers *answers = b->answers;
  float logits[OUT];
  REFUSED_ALONE(CT_ERR_ARG, "the model is NULL", ct_rows_create(NULL, 1, &rows));
  REFUSED_ALONE(CT_ERR_ARG, "the model is NULL", ct_answers_create(NULL, 1, &answers));
  assert_true(!rows && !answers);
  REFUSED(CT_ERR_ARG, "rows is NULL", ct_rows_create(b->model, 1, NULL));
  REFUSED(CT_ERR_ARG, "answers is NULL", ct_answers_create(b->model, 1, NULL));
  REFUSED(CT_ERR_ARG, "0 rows: there can be 1..", ct_rows_create(b->model, 0, &rows));
  REFUSED(CT_ERR_ARG, "0 answers: there can be 1..", ct_answers_create(b->model, 0, &answers));
  REFUSED(CT_ERR_ARG, "there can be 1..", ct_rows_create(b->model, SIZE_MAX, &rows));
  REFUSED(CT_ERR_ARG, "there can be 1..", ct_answers_create(b->model, SIZE_MAX, &answers));
  REFUSED(CT_ERR_NO_SPACE, "no room for", ct_rows_create(b->model, 1 << 24, &rows));
  REFUSED(CT_ERR_NO_SPACE, "no room for", ct_answers_create(b->model, 1 << 24, &answers));
  assert_true(!rows && !answers);
  REFUSED_ALONE(CT_ERR_ARG, "the rows handle is NULL", ct_rows_write(NULL, 0, 1, b->x));
  REFUSED(CT_ERR_ARG, "x is NULL", ct_rows_write(b->rows, 0, 1, NULL));
  REFUSED(CT_ERR_ARG, "2 rows from number 19 on: there are 20",
          ct_rows_write(b->rows, ROWS - 1, 2, b->x));
  REFUSED(CT_ERR_ARG, "there are 20", ct_rows_write(b->rows, SIZE_MAX, 2, b->x));
  REFUSED(CT_ERR_ARG, "there are 20", ct_rows_write(b->rows, 1, SIZE_MAX, b->x));
  REFUSED_ALONE(CT_ERR_ARG, "the answers handle is NULL", ct_answers_read(NULL, 0, 1, logits));
  REFUSED(CT_ERR_ARG, "logits is NULL", ct_answers_read(b->answers, 0, 1, NULL));
  REFUSED(CT_ERR_ARG, "there are 20", ct_answers_read(b->answers, ROWS, 1, logits));
  REFUSED(CT_ERR_ARG, "answer 3: no request has been submitted",
          ct_answers_read(b->answers, 3, 1, logits));
}

static void bad_requests(struct bed *b) {
  const struct ct_request good = {.rows = b->rows, .answers = b->answers};
  struct ct_request q = good;
  size_t right;
#define REQUEST(error, part, field, value)                           \
  do {                                                               \
    q = good;                                                        \
    q.field = value;                                                 \
    REFUSED(error, part, ct_model_infer_submit(b->model, &q, NULL)); \
  } while (0)
  REFUSED_ALONE(CT_ERR_ARG, "the model is NULL", ct_model_infer_submit(NULL, &good, NULL));
  REFUSED(CT_ERR_ARG, "request is NULL", ct_model_infer_submit(b->model, NULL, NULL));
  REQUEST(CT_ERR_ARG, "the request's rows are NULL", rows, NULL);
  REQUEST(CT_ERR_ARG, "the request's answers are NULL", answers, NULL);
  REQUEST(CT_ERR_ARG, "the rows belong to another device", rows, b->foreign_rows);
  REQUEST(CT_ERR_ARG, "the answers belong to another device", answers, b->foreign_answers);
  REQUEST(CT_ERR_ARG, "the weights belong to another device", weights, b->foreign_version);
  REQUEST(CT_ERR_ARG, "of other widths", weights, ct_model_weights(b->wide));
  REQUEST(CT_ERR_ARG, "1..16 rows, not 17", count, 17);
  REQUEST(CT_ERR_ARG, "there are 20", row, ROWS);
  REQUEST(CT_ERR_ARG, "there are 20", row, SIZE_MAX);
  REQUEST(CT_ERR_ARG, "there are 20", answer, ROWS);
  REQUEST(CT_ERR_ARG, "row 19 has not been written", row, ROWS - 1);
  REQUEST(CT_ERR_ARG, "no queue 2", queue, (enum ct_queue)2);
  REQUEST(CT_ERR_ARG, "a job has no deadline", deadline, 5);
  REQUEST(CT_ERR_ARG, "reserved[1] of ct_request", reserved[1], 1);
#undef REQUEST
  REFUSED(CT_ERR_ARG, "the rows have 20 inputs, the model 21",
          ct_model_infer_submit(b->wide, &good, NULL));
  REFUSED(CT_ERR_ARG, "x is NULL", ct_model_infer(b->model, NULL, NULL, 1, b->logits));
  REFUSED(CT_ERR_ARG, "logits is NULL", ct_model_infer(b->model, NULL, b->x, 1, NULL));
  REFUSED(CT_ERR_ARG, "of other widths",
          ct_model_infer(b->model, ct_model_weights(b->wide), b->x, 1, b->logits));
  REFUSED(CT_ERR_ARG, "belong to another device",
          ct_model_infer(b->model, b->foreign_version, b->x, 1, b->logits));
  REFUSED(CT_ERR_ARG, "right is NULL", ct_model_evaluate(b->model, NULL, b->x, b->labels, 1, NULL));
  REFUSED(CT_ERR_ARG, "more than this machine",
          ct_model_evaluate(b->model, NULL, b->x, b->labels, SIZE_MAX, &right));
  REFUSED(CT_ERR_ARG, "more than this machine",
          ct_model_infer(b->model, NULL, b->x, SIZE_MAX, b->logits));
  REFUSED(CT_ERR_ARG, "x is NULL", ct_model_evaluate(b->model, NULL, NULL, b->labels, 1, &right));
  REFUSED(CT_ERR_ARG, "labels is NULL", ct_model_evaluate(b->model, NULL, b->x, NULL, 1, &right));
}

static void bad_weights(struct bed *b) {
  ct_weights *w = b->version, *loaded, *live = ct_model_weights(b->model);
  struct ct_weights_info info;
  static uint8_t bytes[8192];
  assert_int_equal(ct_weights_info(b->version, &info), CT_OK);
  const size_t size = info.bytes;
  assert_true(size < sizeof bytes);
  REFUSED_ALONE(CT_ERR_ARG, "the model is NULL", ct_model_publish(NULL, &w));
  assert_null(w);
  REFUSED(CT_ERR_ARG, "ct_model_publish(): weights is NULL", ct_model_publish(b->model, NULL));
  REFUSED(CT_ERR_ARG, "ct_model_publish_submit(): weights is NULL",
          ct_model_publish_submit(b->model, NULL, NULL, NULL));
  REFUSED_ALONE(CT_ERR_ARG, "the version is NULL", ct_weights_info(NULL, &info));
  REFUSED(CT_ERR_ARG, "info is NULL", ct_weights_info(b->version, NULL));
  REFUSED_ALONE(CT_ERR_ARG, "the version is NULL", ct_weights_read(NULL, bytes, size));
  REFUSED(CT_ERR_ARG, "data is NULL", ct_weights_read(b->version, NULL, size));
  REFUSED(CT_ERR_ARG, "not 12", ct_weights_read(b->version, bytes, 12));
  REFUSED_ALONE(CT_ERR_ARG, "the model is NULL", ct_weights_load(NULL, bytes, size, &w));
  REFUSED(CT_ERR_ARG, "data is NULL", ct_weights_load(b->model, NULL, size, &w));
  REFUSED(CT_ERR_ARG, "weights is NULL", ct_weights_load(b->model, bytes, size, NULL));
  REFUSED(CT_ERR_ARG, "these weights have", ct_weights_load(b->model, bytes, size + 1, &w));
  REFUSED(CT_ERR_ARG, "these weights have", ct_weights_load(b->wide, bytes, size, &w));
  assert_int_equal(ct_weights_read(b->version, bytes, size), CT_OK);
  assert_int_equal(ct_weights_load(b->model, bytes, size, &loaded), CT_OK);
  ct_weights_free(loaded);
  REFUSED(CT_ERR_CLOSED, "the version was freed before", ct_weights_info(loaded, &info));
  REFUSED(CT_ERR_CLOSED, "the version was freed before",
          ct_model_infer(b->model, loaded, b->x, 1, b->logits));
  REFUSED(CT_ERR_CLOSED, "the version was freed before", (ct_weights_free(loaded), CT_ERR_CLOSED));
  REFUSED(CT_ERR_ARG, "go with their model", (ct_weights_free(live), CT_ERR_ARG));
  assert_int_equal(ct_weights_info(live, &info), CT_OK);
  assert_null(ct_model_weights(NULL));
  assert_int_equal(ct_weights_address(NULL), 0);
  assert_int_equal(ct_weights_address(loaded), 0);
  ct_weights_free(NULL);
  ct_batch_free(NULL);
  ct_rows_free(NULL);
  ct_answers_free(NULL);
}

static void bad_servers(struct bed *b) {
  struct ct_server_info known;
  struct ct_event r;
  ct_server *s = NULL, *second = NULL;
  const struct ct_request good = {.rows = b->rows, .answers = b->answers},
                          two = {.rows = b->rows, .answers = b->answers, .count = 2},
                          own = {.rows = b->rows, .answers = b->answers, .weights = b->version},
                          aside = {.rows = b->rows, .answers = b->answers, .queue = CT_TRAINING},
                          nowhere = {.answers = b->answers},
                          beyond = {.rows = b->rows, .answers = b->answers, .answer = ROWS},
                          reserved = {.rows = b->rows, .answers = b->answers, .reserved = {0, 1}};
  const struct ct_serving never = {.batching = (enum ct_batching)3}, large = {.max_batch = 17},
                          newer = {.reserved = {1}};
  REFUSED_ALONE(CT_ERR_ARG, "the device is NULL", ct_reap(NULL, &r, CT_NO_WAIT));
  REFUSED_ALONE(CT_ERR_ARG, "the device is NULL", ct_cancel(NULL, 1));
  REFUSED_ALONE(CT_ERR_ARG, "the model is NULL", ct_server_create(NULL, NULL, NULL, &s));
  REFUSED_ALONE(CT_ERR_ARG, "the server is NULL", ct_server_push(NULL, &good, NULL));
  REFUSED_ALONE(CT_ERR_ARG, "the server is NULL", ct_server_info(NULL, &known));
  REFUSED_ALONE(CT_ERR_ARG, "the server is NULL", ct_server_set_weights(NULL, b->version));
  REFUSED(CT_ERR_NOT_FOUND, "no job or request is outstanding", ct_reap(b->dev, &r, CT_FOREVER));
  REFUSED(CT_ERR_NOT_FOUND, "nothing with tag 0 ", ct_cancel(b->dev, 0));
  REFUSED(CT_ERR_ARG, "event is NULL", ct_reap(b->dev, NULL, CT_NO_WAIT));
  REFUSED(CT_ERR_ARG, "timeout of -3 ms", ct_reap(b->dev, &r, -3));
  REFUSED(CT_ERR_ARG, "server is NULL", ct_server_create(b->model, NULL, NULL, NULL));
  assert_int_equal(ct_set_policy(b->dev, CT_SLACK), CT_OK);
  check_usable(b, "CT_SLACK");
  assert_int_equal(ct_set_policy(b->dev, CT_PRIORITY), CT_OK);
  REFUSED(CT_ERR_ARG, "of other widths", ct_server_create(b->wide, b->version, NULL, &s));
  REFUSED(CT_ERR_ARG, "another device", ct_server_create(b->model, b->foreign_version, NULL, &s));
  REFUSED(CT_ERR_ARG, "no waiting policy 3", ct_server_create(b->untrained, NULL, &never, &s));
  REFUSED(CT_ERR_ARG, "1..16 requests, not 17", ct_server_create(b->untrained, NULL, &large, &s));
  REFUSED(CT_ERR_ARG, "reserved[0] of ct_serving",
          ct_server_create(b->untrained, NULL, &newer, &s));
  assert_null(s);
  assert_int_equal(ct_server_create(b->untrained, NULL, NULL, &s), CT_OK);
  REFUSED(CT_ERR_ARG, "a model has one server",
          ct_server_create(b->untrained, NULL, NULL, &second));
  REFUSED(CT_ERR_ARG, "request is NULL", ct_server_push(s, NULL, NULL));
  REFUSED(CT_ERR_ARG, "the request's rows are NULL", ct_server_push(s, &nowhere, NULL));
  REFUSED(CT_ERR_ARG, "there are 20", ct_server_push(s, &beyond, NULL));
  REFUSED(CT_ERR_ARG, "one row, not 2", ct_server_push(s, &two, NULL));
  REFUSED(CT_ERR_ARG, "names no weights", ct_server_push(s, &own, NULL));
  REFUSED(CT_ERR_ARG, "go to the inference queue", ct_server_push(s, &aside, NULL));
  REFUSED(CT_ERR_ARG, "reserved[1] of ct_request", ct_server_push(s, &reserved, NULL));
  REFUSED(CT_ERR_ARG, "info is NULL", ct_server_info(s, NULL));
  REFUSED(CT_ERR_ARG, "of other widths", ct_server_set_weights(s, ct_model_weights(b->wide)));
  REFUSED(CT_ERR_ARG, "another device", ct_server_set_weights(s, b->foreign_version));
  REFUSED(CT_ERR_BUSY, "they can be set", ct_model_set(b->untrained, 0, NULL, NULL, NULL, NULL));
  REFUSED(CT_ERR_NOT_FOUND, "tag 18446744073709551615", ct_cancel(b->dev, UINT64_MAX));
  assert_int_equal(ct_outstanding(b->dev, CT_INFERENCE), 0);
  ct_server_free(s);
  REFUSED(CT_ERR_CLOSED, "the server was freed before", ct_server_push(s, &good, NULL));
  REFUSED(CT_ERR_CLOSED, "the server was freed before", (ct_server_free(s), CT_ERR_CLOSED));
}

static void write_bytes(const char *path, const void *data, size_t size) {
  FILE *f = fopen(path, "wb");
  assert_non_null(f);
  assert_int_equal(fwrite(data, 1, size, f), size);
  assert_int_equal(fclose(f), 0);
}

static void bad_files(struct bed *b) {
  char path[64], file[70000];
  ct_model *m = NULL;
  snprintf(path, sizeof path, "%s/model", b->folder);
  assert_int_equal(ct_model_save(b->model, path), CT_OK);
  FILE *f = fopen(path, "rb");
  assert_non_null(f);
  const size_t size = fread(file, 1, sizeof file, f);
  fclose(f);
  REFUSED(CT_ERR_ARG, "path is NULL", ct_model_save(b->model, NULL));
  REFUSED(CT_ERR_IO, "/nowhere/x could not be written", ct_model_save(b->model, "/nowhere/x"));
  REFUSED(CT_ERR_IO, b->folder, ct_model_save(b->model, b->folder));
  REFUSED(CT_ERR_ARG, "path is NULL", ct_model_load(b->dev, NULL, &m));
  REFUSED(CT_ERR_ARG, "model is NULL", ct_model_load(b->dev, path, NULL));
  REFUSED(CT_ERR_NOT_FOUND, "/nowhere/x cannot be opened", ct_model_load(b->dev, "/nowhere/x", &m));
  REFUSED(CT_ERR_IO, b->folder, ct_model_load(b->dev, b->folder, &m));
  REFUSED(CT_ERR_FORMAT, "/dev/null is empty", ct_model_load(b->dev, "/dev/null", &m));
  REFUSED(CT_ERR_FORMAT, "/dev/zero is not a model file", ct_model_load(b->dev, "/dev/zero", &m));
  write_bytes(path, "\x93NUMPY\x01\x00 of another kind", 24);
  REFUSED(CT_ERR_FORMAT, "does not begin with COLTRAIN", ct_model_load(b->dev, path, &m));
  write_bytes(path, file, 9);
  REFUSED(CT_ERR_FORMAT, "was cut short", ct_model_load(b->dev, path, &m));
  write_bytes(path, file, 70);
  REFUSED(CT_ERR_FORMAT, "was cut short", ct_model_load(b->dev, path, &m));
  write_bytes(path, file, size - 1);
  REFUSED(CT_ERR_FORMAT, "its header says", ct_model_load(b->dev, path, &m));
  write_bytes(path, file, size + 1);
  REFUSED(CT_ERR_FORMAT, "goes on after", ct_model_load(b->dev, path, &m));
  file[200] ^= 1;
  write_bytes(path, file, size);
  REFUSED(CT_ERR_FORMAT, "is damaged", ct_model_load(b->dev, path, &m));
  file[8] = 2;
  write_bytes(path, file, size);
  REFUSED(CT_ERR_FORMAT, "format version 2", ct_model_load(b->dev, path, &m));
  memcpy(file + 8, "\0\0\0\1\1\2\3\4", 8); /* version and order as a big-endian host writes them */
  write_bytes(path, file, size);
  REFUSED(CT_ERR_FORMAT, "has big-endian numbers", ct_model_load(b->dev, path, &m));
  memcpy(file + 8, "\1\0\0\0\1\2\4\3", 8);
  write_bytes(path, file, size);
  REFUSED(CT_ERR_FORMAT, "another order of bytes", ct_model_load(b->dev, path, &m));
  assert_null(m);
  unlink(path);
}

static void bad_jobs(struct bed *b) {
  struct ct_event r;
  struct ct_job job = {.program = NULL}, foreign = {.program = b->foreign},
                odd = {.program = b->program, .flags = 6},
                newer = {.program = b->program, .reserved = {1}};
  ct_program *p = NULL;
  uint64_t tag;
  REFUSED(CT_ERR_ARG, "commands is NULL", ct_program_load(b->dev, NULL, 1, &p));
  REFUSED(CT_ERR_ARG, "program is NULL", ct_program_load(b->dev, end_command, 1, NULL));
  REFUSED(CT_ERR_ARG, "event is NULL", ct_reap_until(b->dev, NULL, 1, CT_NO_WAIT));
  REFUSED(CT_ERR_ARG, "commands, not 0", ct_program_load(b->dev, end_command, 0, &p));
  REFUSED(CT_ERR_ARG, "commands, not 513", ct_program_load(b->dev, end_command, 513, &p));
  REFUSED(CT_ERR_ARG, "the job's program is NULL", ct_submit(b->dev, CT_INFERENCE, &job, &tag));
  REFUSED(CT_ERR_ARG, "the job is NULL", ct_submit(b->dev, CT_INFERENCE, NULL, &tag));
  REFUSED(CT_ERR_ARG, "another device", ct_submit(b->dev, CT_INFERENCE, &foreign, &tag));
  REFUSED(CT_ERR_ARG, "flags 0x6", ct_submit(b->dev, CT_INFERENCE, &odd, &tag));
  REFUSED(CT_ERR_ARG, "reserved[0] of ct_job", ct_submit(b->dev, CT_INFERENCE, &newer, &tag));
  REFUSED(CT_ERR_ARG, "no queue -1", ct_submit(b->dev, (enum ct_queue) - 1, &odd, &tag));
  REFUSED(CT_ERR_NOT_FOUND, "no job or request is outstanding", ct_reap(b->dev, &r, CT_FOREVER));
  REFUSED(CT_ERR_ARG, "event is NULL", ct_reap(b->dev, NULL, CT_NO_WAIT));
  REFUSED(CT_ERR_ARG, "timeout of -5 ms", ct_reap(b->dev, &r, -5));
  REFUSED(CT_ERR_NOT_FOUND, "tag 0", ct_wait(b->dev, 0, &r, CT_FOREVER));
  REFUSED(CT_ERR_NOT_FOUND, "tag 123456", ct_wait(b->dev, 123456, &r, CT_FOREVER));
  REFUSED(CT_ERR_NOT_FOUND, "tag 2 ", ct_cancel(b->dev, 2));
  REFUSED(CT_ERR_NOT_FOUND, "tag 18446744073709551615", ct_cancel(b->dev, UINT64_MAX));
}

/* Handles that were good once. */
static void bad_handles(struct bed *b) {
  ct_model *m;
  ct_program *p;
  struct ct_model_info info;
  struct ct_job job = {.program = NULL};
  assert_int_equal(ct_model_create(b->dev, widths, 2, 1, &m), CT_OK);
  assert_int_equal(ct_program_load(b->dev, end_command, 1, &p), CT_OK);
  job.program = p;
  ct_model_free(m);
  ct_program_free(p);
  REFUSED(CT_ERR_CLOSED, "the model was freed before", ct_model_info(m, &info));
  REFUSED(CT_ERR_CLOSED, "the model was freed before", ct_model_step(m, b->x, b->labels, NULL));
  REFUSED(CT_ERR_CLOSED, "the program was freed before",
          ct_submit(b->dev, CT_TRAINING, &job, NULL));
  REFUSED(CT_ERR_CLOSED, "the model was freed before", (ct_model_free(m), CT_ERR_CLOSED));
  REFUSED(CT_ERR_CLOSED, "the program was freed before", (ct_program_free(p), CT_ERR_CLOSED));
  assert_null(ct_model_weights(m));
}

/* A device that was closed while a model of it was left. */
static void closed_devices(struct bed *b) {
  ct_device *dev;
  ct_model *m;
  ct_program *p;
  struct ct_info info;
  uint64_t addr;
  assert_int_equal(ct_open("emu:dram=32", &dev), CT_OK);
  assert_int_equal(ct_model_create(dev, widths, 2, 1, &m), CT_OK);
  assert_int_equal(ct_program_load(dev, end_command, 1, &p), CT_OK);
  ct_close(dev);
#define CLOSED(part, call) check_refused(b, dev, CT_ERR_CLOSED, part, #call, call)
  CLOSED("the device emu:dram=32 is closed", ct_info(dev, &info));
  CLOSED("is closed", ct_mem_alloc(dev, 16, &addr));
  CLOSED("is closed", ct_poll_fd(dev));
  CLOSED("the model's device emu:dram=32 is closed", ct_model_step(m, b->x, b->labels, NULL));
  CLOSED("is closed", ct_model_save(m, "/tmp/never"));
  CLOSED("was closed before", (ct_close(dev), CT_ERR_CLOSED));
#undef CLOSED
  ct_program_free(p);
  ct_model_free(m); /* and with it the device */
}

static void refuse_everything(const char *uri) {
  struct bed bed, *b = &bed;
  open_bed(b, uri);
  bad_devices(b);
  bad_memory(b);
  bad_tensors(b);
  disassembling(b);
  bad_products(b);
  bad_models(b);
  bad_steps(b);
  bad_gradients(b);
  bad_rows(b);
  bad_requests(b);
  bad_weights(b);
  bad_servers(b);
  bad_files(b);
  bad_jobs(b);
  bad_handles(b);
  closed_devices(b);
  print_message("%s: %d calls refused\n", uri, b->count);
  assert_true(b->count >= LEAST);
  close_bed(b);
}

static void on_the_emulator(void **state) {
  (void)state;
  refuse_everything("emu:");
}

static void on_the_simulator(void **state) {
  (void)state;
  refuse_everything("sim:");
}

/* ---- The log ---- */

struct lines {
  int count[4];
  char last[256];
};

static void keep_line(void *arg, int level, const char *text) {
  struct lines *l = arg;
  assert_in_range(level, CT_LOG_ERROR, CT_LOG_DEBUG);
  ++l->count[level];
  snprintf(l->last, sizeof l->last, "%s", text);
}

static void check_log(enum ct_log_level level, int errors, int warnings, int infos, int debugs) {
  struct lines l = {{0}, ""};
  const struct ct_options options = {.log = keep_line, .log_arg = &l, .log_level = level};
  ct_device *dev, *none;
  ct_model *m;
  assert_int_equal(ct_open_with("emu:x", &options, &none), CT_ERR_ARG);
  assert_non_null(strstr(l.last, "emu:x: emu: has no option"));
  assert_int_equal(ct_open_with("emu:", &options, &dev), CT_OK);
  assert_int_equal(ct_model_create(dev, widths, 2, 1, &m), CT_OK);
  assert_int_equal(ct_model_training(m, NULL), CT_ERR_ARG);
  ct_model_free(m);
  ct_model_free(m);
  ct_close(dev);
  const int want[] = {errors, warnings, infos, debugs};
  for (int i = 0; i < 4; ++i)
    assert_int_equal(l.count[i], want[i]);
}

static void the_log_has_levels(void **state) {
  (void)state;
  check_log(CT_LOG_ERROR, 1, 0, 0, 0);
  check_log(CT_LOG_WARNING, 1, 1, 0, 0);
  check_log(CT_LOG_INFO, 1, 1, 2, 0);
  check_log(CT_LOG_DEBUG, 1, 1, 2, 2);
}

/* ---- The list ---- */

static void devices_are_listed(void **state) {
  (void)state;
  struct ct_entry *entries;
  size_t count;
  static const struct {
    const char *uri;
    int error, open_error;
  } want[] = {{"emu:", CT_OK, CT_OK},
              {"sim:", CT_OK, CT_OK},
              {"mmio:", CT_OK, CT_ERR_ARG}, /* which file? */
              {"usb:", CT_OK, CT_ERR_NOT_FOUND},
              {"serial:", CT_OK, CT_ERR_ARG}}; /* which port? */
  assert_int_equal(ct_list(&entries, &count), CT_OK);
  assert_int_equal(count, 5);
  for (size_t i = 0; i < count; ++i) {
    ct_device *dev;
    assert_string_equal(entries[i].uri, want[i].uri);
    assert_int_equal(entries[i].error, want[i].error);
    assert_true(strlen(entries[i].text) > 10);
    /* A chip on this machine that happens to be one of those usb: looks for is left alone. */
    const char *uri = i == 3 ? "usb:bus=255,addr=127" : entries[i].uri;
    assert_int_equal(ct_open(uri, &dev), want[i].open_error);
    ct_close(dev);
  }
  ct_list_free(entries);
  ct_list_free(NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(on_the_emulator),
      cmocka_unit_test(on_the_simulator),
      cmocka_unit_test(the_log_has_levels),
      cmocka_unit_test(devices_are_listed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
