/* SPDX-License-Identifier: Apache-2.0 */
/* What models do but learning: publishing, serving. */
#include <stdlib.h>
#include <string.h>

#include "ct_model.h"
#include "ct_num.h"

static int submit_one(ct_device *dev, enum ct_queue queue, enum ct_event_kind kind,
                      const struct ct_job *job, uint64_t cycle, uint64_t *tag) {
  const struct ct_work work = {.queue = queue, .kind = kind, .job = job, .jobs = 1, .cycle = cycle};
  return ct_submit_work(dev, &work, tag);
}

/* ---- Versions ------------------------------------------------------------------------------ */

int ct_model_publish(ct_model *m, uint64_t addr, void *user, uint64_t *tag) {
  int err = ct_check_model(m);
  if (!err) err = ct_check_range(m->dev, "the version", addr, ct_model_image_bytes(m));
  if (err) return err;
  if (!m->copy) {
    char text[256] = "";
    const struct ct_why why = {text, sizeof text};
    struct ct_code code;
    err = ct_prog_copy(ct_mlp_image_units(&m->net), ct_window_words(m->dev), &code, &why);
    if (err) return ct_fail(m->dev, err, "%s", text);
    err = ct_code_load(m->dev, &code, &m->copy);
    if (err) return err;
  }
  struct ct_job job = {.program = m->copy, .user = user};
  job.args[CT_COPY_FROM - 1] = ct_units_of(m->image);
  job.args[CT_COPY_TO - 1] = ct_units_of(addr);
  return submit_one(m->dev, CT_TRAINING, CT_EVENT_COPY, &job, CT_NO_CYCLE, tag);
}

/* A server that was freed may have left a batch behind, which reads one of the images. */
static int check_left(ct_model *m) {
  const int err = m->left ? ct_poll(m->dev) : CT_OK;
  if (err || !m->left) return err;
  return ct_fail(m->dev, CT_ERR_TIMEOUT,
                 "a batch of a server that was freed has not ended: it may still read a version of "
                 "this model; call ct_model_serve() again later, or close the device");
}

/* Requests name their version's image when they are submitted, and the swap is one assignment
 * between two of them: no request sees half of one version and half of another. The copy goes where
 * the version before the present one lay, which requests from before the last swap may still read.
 * Requests of a server name no image: their batches do, by a descriptor that is swapped as well. */
int ct_model_serve(ct_model *m, uint32_t *version) {
  int err = ct_check_model(m);
  if (!err) err = check_left(m);
  if (err) return err;
  uint64_t *image = &m->served[!m->at], tag = 0;
  if (!*image) err = ct_mem_alloc(m->dev, ct_model_image_bytes(m), image);
  if (!err) err = ct_wait_completed(m->dev, CT_INFERENCE, m->swapped, m->dev->timeout_ms);
  if (!err && m->follower) err = m->follower->settle(m->follower_self);
  if (!err) err = ct_model_publish(m, *image, NULL, &tag);
  if (!err) err = ct_finish(m->dev, tag, NULL);
  if (err) return err;
  ++m->numbered; /* even if the commit fails: a batch may have it by then */
  if (m->follower) err = m->follower->commit(m->follower_self, *image, m->numbered);
  if (err) return err;
  m->version = m->numbered;
  m->at = !m->at;
  m->swapped = ct_queue_submitted(m->dev, CT_INFERENCE);
  if (version) *version = m->version;
  return CT_OK;
}

/* ---- Serving ------------------------------------------------------------------------------- */

/* The program for that many rows, made when it is first needed. */
static int infer_program(ct_model *m, size_t rows) {
  char text[256] = "";
  const struct ct_why why = {text, sizeof text};
  const struct ct_infer shape = {
      .net = &m->net, .rows = (uint32_t)rows, .spm_words = ct_window_words(m->dev)};
  struct ct_code code;
  if (m->infer[rows - 1]) return CT_OK;
  const int err = ct_prog_infer(&shape, &code, &why);
  if (err) return ct_fail(m->dev, err, "%s", text);
  return ct_code_load(m->dev, &code, &m->infer[rows - 1]);
}

static uint32_t classes_of(const ct_model *m) {
  return m->net.width[m->net.layers];
}

uint64_t ct_model_answer_size(const ct_model *m) {
  return m && m->handle.live ? (uint64_t)(classes_of(m) + 3) / 4 * CT_UNIT : 0;
}

/* The address of an image, and its version's number if the library counts it. */
static int find_image(ct_model *m, uint64_t *image, uint32_t *version) {
  if (*image == CT_IMAGE_OWN) {
    *image = m->image;
  } else if (*image == CT_IMAGE_SERVED) {
    if (!m->version)
      return ct_fail(m->dev, CT_ERR_ARG,
                     "no version of the model is served yet: ct_model_serve() makes one");
    *image = m->served[m->at];
    *version = m->version;
  }
  return ct_check_range(m->dev, "the version", *image, ct_model_image_bytes(m));
}

int ct_model_infer_submit(ct_model *m, enum ct_queue queue, uint64_t image, uint32_t version,
                          size_t rows, const uint64_t *row_addrs, uint64_t out, uint64_t cycle,
                          void *user, uint64_t *tag) {
  int err = ct_check_model(m);
  if (err) return err;
  CT_NEED(m->dev, row_addrs);
  if (rows < 1 || rows > CT_INFER_ROWS_MAX)
    return ct_fail(m->dev, CT_ERR_ARG, "a request has 1..%d rows, not %zu", CT_INFER_ROWS_MAX,
                   rows);
  err = find_image(m, &image, &version);
  for (size_t r = 0; r < rows && !err; ++r)
    err = ct_check_range(m->dev, "a row", row_addrs[r], ct_pack_row_size(m->net.width[0]));
  if (!err) err = ct_check_range(m->dev, "the answer", out, rows * ct_model_answer_size(m));
  if (!err) err = infer_program(m, rows);
  if (err) return err;
  struct ct_job job = {.program = m->infer[rows - 1], .version = version, .user = user};
  job.args[CT_INFER_IMAGE - 1] = ct_units_of(image);
  job.args[CT_INFER_OUT - 1] = ct_units_of(out);
  /* A request reads an image and its rows; the request before it writes answers. */
  if (queue == CT_INFERENCE) job.flags = CT_JOB_OVERLAP;
  for (size_t r = 0; r < rows; ++r)
    job.args[CT_INFER_ROW - 1 + r] = ct_units_of(row_addrs[r]);
  return submit_one(m->dev, queue, CT_EVENT_ANSWER, &job, cycle, tag);
}

/* Up to 16 rows through buffers at `at`: packed rows, then answers. */
static int infer_some(ct_model *m, uint64_t image, const float *x, size_t rows, uint64_t at,
                      uint8_t *buffer, float *logits) {
  const size_t in = m->net.width[0], row_size = ct_pack_row_size(in), classes = classes_of(m);
  const size_t answer = (size_t)ct_model_answer_size(m);
  const uint64_t out = at + CT_INFER_ROWS_MAX * row_size;
  uint64_t row_addr[CT_INFER_ROWS_MAX], tag = 0;
  for (size_t r = 0; r < rows; ++r) {
    ct_pack_row(x + r * in, in, buffer + r * row_size);
    row_addr[r] = at + r * row_size;
  }
  int err = ct_mem_write(m->dev, at, buffer, rows * row_size);
  if (!err)
    err = ct_model_infer_submit(m, CT_INFERENCE, image, 0, rows, row_addr, out, CT_NO_CYCLE, NULL,
                                &tag);
  if (!err) err = ct_finish(m->dev, tag, NULL);
  if (!err) err = ct_mem_read(m->dev, out, buffer, rows * answer);
  for (size_t r = 0; r < rows && !err; ++r)
    memcpy(logits + r * classes, buffer + r * answer, classes * sizeof *logits);
  return err;
}

/* Whether so many rows of inputs and of answers can lie in the caller's memory. */
static int check_rows(const ct_model *m, size_t rows) {
  const size_t in = m->net.width[0], out = classes_of(m);
  if (rows < SIZE_MAX / sizeof(float) / (in > out ? in : out)) return CT_OK;
  return ct_fail(m->dev, CT_ERR_ARG, "%zu rows are more than this machine can address", rows);
}

/* How many of so many rows go together: fewer where the activations of all have no room. */
static size_t rows_together(ct_model *m, size_t rows) {
  size_t n = rows < CT_INFER_ROWS_MAX ? rows : CT_INFER_ROWS_MAX;
  while (n > 1 && infer_program(m, n) == CT_ERR_NO_SPACE)
    n /= 2;
  return n;
}

int ct_model_infer(ct_model *m, uint64_t image, const float *x, size_t rows, float *logits) {
  int err = ct_check_model(m);
  if (err || rows == 0) return err;
  CT_NEED(m->dev, x);
  CT_NEED(m->dev, logits);
  err = check_rows(m, rows);
  if (err) return err;
  const size_t row_size = ct_pack_row_size(m->net.width[0]),
               answer = (size_t)ct_model_answer_size(m);
  uint64_t at = 0;
  uint8_t *buffer = malloc(CT_INFER_ROWS_MAX * (row_size > answer ? row_size : answer) + 1);
  if (!buffer) return ct_fail(m->dev, CT_ERR_MEMORY, "no memory for requests");
  err = ct_mem_alloc(m->dev, CT_INFER_ROWS_MAX * (row_size + answer), &at);
  for (size_t r = 0, n; r < rows && !err; r += n) {
    n = rows_together(m, rows - r);
    err = infer_some(m, image, x + r * m->net.width[0], n, at, buffer, logits + r * classes_of(m));
  }
  if (at && err != CT_ERR_DEVICE) ct_heap_free(&m->dev->data, at);
  free(buffer);
  return err;
}

/* The first of the largest. */
static size_t largest(const float *x, size_t n) {
  size_t best = 0;
  for (size_t i = 1; i < n; ++i)
    if (ct_fp_gt(ct_bits_of(x[i]), ct_bits_of(x[best]))) best = i;
  return best;
}

int ct_model_evaluate(ct_model *m, uint64_t image, const float *x, const uint32_t *labels,
                      size_t rows, size_t *right) {
  int err = ct_check_model(m);
  if (err) return err;
  CT_NEED(m->dev, right);
  if (rows) CT_NEED(m->dev, x);
  if (rows) CT_NEED(m->dev, labels);
  const size_t classes = classes_of(m);
  err = check_rows(m, rows);
  if (err) return err;
  float *logits = calloc(rows * classes + 1, sizeof *logits);
  if (!logits) return ct_fail(m->dev, CT_ERR_MEMORY, "no memory for answers");
  err = ct_model_infer(m, image, x, rows, logits);
  size_t hits = 0;
  for (size_t r = 0; r < rows && !err; ++r)
    hits += largest(logits + r * classes, classes) == labels[r];
  if (!err) *right = hits;
  free(logits);
  return err;
}
