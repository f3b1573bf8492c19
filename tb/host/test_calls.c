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

enum { IN = 20, OUT = 5, BATCH = 4, LEAST = 60 };

/* A device with one of everything. */
struct bed {
  ct_device *dev, *other;
  ct_model *model, *untrained;
  ct_program *program, *foreign;
  uint64_t at, end; /* 4 KiB of memory; the memory's end */
  float x[BATCH * IN], logits[BATCH * OUT];
  uint32_t labels[BATCH];
  char folder[32];
  int count;
};

static const uint32_t widths[] = {IN, 17, OUT};

/* ---- What is checked after every call ---- */

static void check_usable(struct bed *b, const char *call) {
  const float two = 2, three = 3;
  float six = 0;
  if (ct_matmul(b->dev, CT_TRAINING, 1, 1, 1, &two, &three, &six, NULL) || six != 6.0f)
    fail_msg("after %s the device is not usable: %s", call, ct_last_error(b->dev));
}

/* A sentence that names a function names the one that was called, in brackets or not (a macro here
 * hides ct_model_infer_submit()). */
static void check_name(const char *call, const char *text) {
  const char *end = strstr(text, "(): ");
  if (!strncmp(call, "REQUEST(", 8)) call = "ct_model_infer_submit(";
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
  const struct ct_training training = {.batch = BATCH, .rates = {.lr = 0.1f, .momentum = 0.9f}};
  assert_int_equal(ct_mem_alloc(b->dev, 4096, &b->at), CT_OK);
  assert_int_equal(ct_model_create(b->dev, widths, 2, 1, &b->model), CT_OK);
  assert_int_equal(ct_model_training(b->model, &training), CT_OK);
  assert_int_equal(ct_model_create(b->dev, widths, 2, 1, &b->untrained), CT_OK);
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
  ct_model_free(b->model);
  ct_model_free(b->untrained);
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
  REFUSED_ALONE(CT_ERR_ARG, "a pitch of 18446744073709551615",
                ct_pack(b->x, 2, 4, SIZE_MAX, CT_ROW, out));
  REFUSED_ALONE(CT_ERR_ARG, "a pitch of 4611686018427387904",
                ct_unpack(out, 2, 4, SIZE_MAX / 4 + 1, b->x));
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
  static const uint32_t zero[] = {IN, 0, OUT}, wide[] = {IN, 70000, OUT}, large[] = {65536, 65536};
  const struct ct_training none = {.rates = {.lr = 0.1f}},
                           many = {.batch = 70000, .rates = {.lr = 0.1f}},
                           newer = {.batch = 4, .reserved = {0, 1}};
  REFUSED(CT_ERR_ARG, "widths is NULL", ct_model_create(b->dev, NULL, 2, 1, &m));
  REFUSED(CT_ERR_ARG, "model is NULL", ct_model_create(b->dev, widths, 2, 1, NULL));
  REFUSED(CT_ERR_ARG, "1..16 layers, not 0", ct_model_create(b->dev, widths, 0, 1, &m));
  REFUSED(CT_ERR_ARG, "1..16 layers", ct_model_create(b->dev, widths, SIZE_MAX, 1, &m));
  REFUSED(CT_ERR_ARG, "units, not 0", ct_model_create(b->dev, zero, 2, 1, &m));
  REFUSED(CT_ERR_ARG, "units, not 70000", ct_model_create(b->dev, wide, 2, 1, &m));
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
    REFUSED(CT_ERR_ARG, bad[i].part,
            ct_model_step_submit(b->model, b->at, b->at, &bad[i].rates, NULL, NULL));
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

static void bad_steps(struct bed *b) {
  uint32_t high[BATCH] = {0, 1, OUT, 0};
  REFUSED(CT_ERR_ARG, "not been prepared", ct_model_step(b->untrained, b->x, b->labels, NULL));
  REFUSED(CT_ERR_ARG, "x is NULL", ct_model_step(b->model, NULL, b->labels, NULL));
  REFUSED(CT_ERR_ARG, "labels is NULL", ct_model_step(b->model, b->x, NULL, NULL));
  REFUSED(CT_ERR_ARG, "label 5 of row 2", ct_model_step(b->model, b->x, high, NULL));
  REFUSED(CT_ERR_ARG, "are not within the memory",
          ct_model_batch_write(b->model, b->end - 16, b->x, b->labels));
  REFUSED(CT_ERR_ARG, "the batch at",
          ct_model_step_submit(b->model, b->at + 8, b->at, NULL, NULL, NULL));
  REFUSED(CT_ERR_ARG, "the loss at",
          ct_model_step_submit(b->model, b->at, b->end, NULL, NULL, NULL));
  REFUSED(CT_ERR_ARG, "the batch at 0x0",
          ct_model_step_submit(b->model, 0, b->at, NULL, NULL, NULL));
}

static void bad_requests(struct bed *b) {
  const uint64_t row = b->at, odd = b->at + 4, out = b->at + 2048;
  size_t right;
#define REQUEST(image, rows, addrs, out) \
  ct_model_infer_submit(b->model, CT_INFERENCE, image, 1, rows, addrs, out, CT_NO_CYCLE, NULL, NULL)
  REFUSED(CT_ERR_ARG, "row_addrs is NULL", REQUEST(CT_IMAGE_OWN, 1, NULL, out));
  REFUSED(CT_ERR_ARG, "1..16 rows, not 0", REQUEST(CT_IMAGE_OWN, 0, &row, out));
  REFUSED(CT_ERR_ARG, "1..16 rows, not 17", REQUEST(CT_IMAGE_OWN, 17, &row, out));
  REFUSED(CT_ERR_ARG, "a row at", REQUEST(CT_IMAGE_OWN, 1, &odd, out));
  REFUSED(CT_ERR_ARG, "the answer at", REQUEST(CT_IMAGE_OWN, 1, &row, b->end));
  REFUSED(CT_ERR_ARG, "the version at 0x10", REQUEST(16, 1, &row, out));
  REFUSED(CT_ERR_ARG, "ct_model_serve() makes one", REQUEST(CT_IMAGE_SERVED, 1, &row, out));
#undef REQUEST
  REFUSED(CT_ERR_ARG, "x is NULL", ct_model_infer(b->model, CT_IMAGE_OWN, NULL, 1, b->logits));
  REFUSED(CT_ERR_ARG, "logits is NULL", ct_model_infer(b->model, CT_IMAGE_OWN, b->x, 1, NULL));
  REFUSED(CT_ERR_ARG, "right is NULL",
          ct_model_evaluate(b->model, CT_IMAGE_OWN, b->x, b->labels, 1, NULL));
  REFUSED(CT_ERR_ARG, "more than this machine",
          ct_model_evaluate(b->model, CT_IMAGE_OWN, b->x, b->labels, SIZE_MAX, &right));
  REFUSED(CT_ERR_ARG, "more than this machine",
          ct_model_infer(b->model, CT_IMAGE_OWN, b->x, SIZE_MAX, b->logits));
  REFUSED(CT_ERR_ARG, "x is NULL",
          ct_model_evaluate(b->model, CT_IMAGE_OWN, NULL, b->labels, 1, &right));
  REFUSED(CT_ERR_ARG, "labels is NULL",
          ct_model_evaluate(b->model, CT_IMAGE_OWN, b->x, NULL, 1, &right));
  REFUSED(CT_ERR_ARG, "the version at", ct_model_publish(b->model, b->end - 16, NULL, NULL));
}

static void bad_servers(struct bed *b) {
  struct ct_server_info known;
  struct ct_event r;
  ct_server *s = NULL, *second = NULL;
  const struct ct_request good = {.input = b->at, .output = b->at + 2048},
                          odd = {.input = b->at + 4, .output = b->at + 2048},
                          beyond = {.input = b->at, .output = b->end}, nowhere = {.output = b->at},
                          reserved = {.input = b->at, .output = b->at + 2048, .reserved = {0, 1}};
  const struct ct_serving never = {.batching = (enum ct_batching)3}, large = {.max_batch = 17},
                          newer = {.reserved = {1}};
  REFUSED_ALONE(CT_ERR_ARG, "the device is NULL", ct_reap(NULL, &r, CT_NO_WAIT));
  REFUSED_ALONE(CT_ERR_ARG, "the device is NULL", ct_cancel(NULL, 1));
  REFUSED_ALONE(CT_ERR_ARG, "the model is NULL", ct_server_create(NULL, NULL, &s));
  REFUSED_ALONE(CT_ERR_ARG, "the server is NULL", ct_server_push(NULL, &good, NULL));
  REFUSED_ALONE(CT_ERR_ARG, "the server is NULL", ct_server_info(NULL, &known));
  REFUSED_ALONE(CT_ERR_ARG, "the server is NULL", ct_server_publish(NULL, b->at, 1));
  REFUSED(CT_ERR_NOT_FOUND, "no job or request is outstanding", ct_reap(b->dev, &r, CT_FOREVER));
  REFUSED(CT_ERR_NOT_FOUND, "nothing with tag 0 ", ct_cancel(b->dev, 0));
  REFUSED(CT_ERR_ARG, "event is NULL", ct_reap(b->dev, NULL, CT_NO_WAIT));
  REFUSED(CT_ERR_ARG, "timeout of -3 ms", ct_reap(b->dev, &r, -3));
  REFUSED(CT_ERR_ARG, "server is NULL", ct_server_create(b->model, NULL, NULL));
  assert_int_equal(ct_set_policy(b->dev, CT_SLACK), CT_OK);
  check_usable(b, "CT_SLACK");
  assert_int_equal(ct_set_policy(b->dev, CT_PRIORITY), CT_OK);
  REFUSED(CT_ERR_ARG, "ct_model_serve() makes one", ct_server_create(b->untrained, NULL, &s));
  assert_int_equal(ct_model_serve(b->untrained, NULL), CT_OK);
  REFUSED(CT_ERR_ARG, "no waiting policy 3", ct_server_create(b->untrained, &never, &s));
  REFUSED(CT_ERR_ARG, "1..16 requests, not 17", ct_server_create(b->untrained, &large, &s));
  REFUSED(CT_ERR_ARG, "reserved[0] of ct_serving", ct_server_create(b->untrained, &newer, &s));
  assert_null(s);
  assert_int_equal(ct_server_create(b->untrained, NULL, &s), CT_OK);
  REFUSED(CT_ERR_ARG, "a model has one server", ct_server_create(b->untrained, NULL, &second));
  REFUSED(CT_ERR_ARG, "request is NULL", ct_server_push(s, NULL, NULL));
  REFUSED(CT_ERR_ARG, "request is NULL", ct_server_push_at(s, NULL, 1, NULL));
  REFUSED(CT_ERR_ARG, "the input at", ct_server_push(s, &odd, NULL));
  REFUSED(CT_ERR_ARG, "the input at 0x0", ct_server_push(s, &nowhere, NULL));
  REFUSED(CT_ERR_ARG, "the output at", ct_server_push(s, &beyond, NULL));
  REFUSED(CT_ERR_ARG, "reserved[1] of ct_request", ct_server_push(s, &reserved, NULL));
  REFUSED(CT_ERR_ARG, "info is NULL", ct_server_info(s, NULL));
  REFUSED(CT_ERR_ARG, "the version at 0x10", ct_server_publish(s, 16, 1));
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
  assert_int_equal(ct_model_batch_size(m), 0);
  assert_int_equal(ct_model_image(m), 0);
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
  bad_products(b);
  bad_models(b);
  bad_steps(b);
  bad_requests(b);
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
              {"usb:", CT_OK, CT_ERR_NOT_FOUND}};
  assert_int_equal(ct_list(&entries, &count), CT_OK);
  assert_int_equal(count, 4);
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
