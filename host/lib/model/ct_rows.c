/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows and answers: what requests read and write in device memory.
 *
 * A row may be read by many requests at once and is written while none does. An answer's place is
 * one request's from its submission to its end, and then holds what came of it. The memory stays as
 * long as a request uses it, whatever becomes of the handle.
 */
#include <stdlib.h>
#include <string.h>

#include "ct_model.h"

/* ALIGN: a row begins with a burst of its own. */
enum { MOST = 1 << 24, ALIGN = 64 };

static int check_rows(const ct_rows *r) {
  return ct_check_handle(r ? &r->handle : NULL, "rows handle");
}

static int check_answers(const ct_answers *a) {
  return ct_check_handle(a ? &a->handle : NULL, "answers handle");
}

/* Numbers first..first + count - 1 of `all`. what: "rows", "answers". */
static int check_span(ct_device *dev, const char *what, size_t first, size_t count, size_t all) {
  if (first <= all && count <= all - first) return CT_OK;
  return ct_fail(dev, CT_ERR_ARG, "%zu %s from number %zu on: there are %zu", count, what, first,
                 all);
}

static int check_count(ct_device *dev, const char *what, size_t count) {
  if (count >= 1 && count <= MOST) return CT_OK;
  return ct_fail(dev, CT_ERR_ARG, "%zu %s: there can be 1..%d", count, what, MOST);
}

/* ---- Rows ---------------------------------------------------------------------------------- */

static void release_rows(ct_rows *r) {
  if (--r->refs) return;
  ct_heap_free(&r->dev->data, r->at);
  free(r->use);
  r->use = NULL;
  ct_handle_bury(&r->handle);
}

int ct_rows_make(ct_device *dev, uint32_t width, size_t count, ct_rows **rows) {
  int err = check_count(dev, "rows", count);
  if (err) return err;
  ct_rows *r = calloc(1, sizeof *r);
  uint32_t *use = calloc(count, sizeof *use);
  err = r && use ? CT_OK : ct_fail(dev, CT_ERR_MEMORY, "no memory for rows");
  if (!err) {
    const size_t pitch = (ct_pack_row_size(width) + ALIGN - 1) / ALIGN * ALIGN;
    *r = (ct_rows){
        .dev = dev, .width = width, .count = count, .pitch = pitch, .use = use, .refs = 1};
    err = ct_mem_alloc(dev, (uint64_t)count * pitch, &r->at);
  }
  if (err) {
    free(use);
    free(r);
    return err;
  }
  ct_handle_open(&r->handle, dev);
  *rows = r;
  return CT_OK;
}

int ct_rows_create(ct_model *m, size_t count, ct_rows **rows) {
  if (rows) *rows = NULL;
  const int err = ct_check_model(m);
  if (err) return err;
  CT_NEED(m->dev, rows);
  return ct_rows_make(m->dev, m->net.width[0], count, rows);
}

void ct_rows_free(ct_rows *r) {
  if (r && ct_handle_close(&r->handle, "rows handle")) release_rows(r);
}

/* The first row of some that a request reads; first + count: none. */
static size_t row_in_use(const ct_rows *r, size_t first, size_t count) {
  size_t i = first;
  while (i < first + count && r->use[i] < CT_ROW_USE)
    ++i;
  return i;
}

static int write_rows(ct_rows *r, size_t first, size_t count, const float *x) {
  uint8_t *packed = calloc(CT_INFER_ROWS_MAX, r->pitch);
  int err = packed ? CT_OK : ct_fail(r->dev, CT_ERR_MEMORY, "no memory for rows");
  for (size_t i = 0; i < count && !err; i += CT_INFER_ROWS_MAX) {
    const size_t n = count - i < CT_INFER_ROWS_MAX ? count - i : CT_INFER_ROWS_MAX;
    for (size_t k = 0; k < n; ++k) {
      ct_pack_row(x + (i + k) * r->width, r->width, packed + k * r->pitch);
      r->use[first + i + k] = 0; /* if this fails, it is neither this nor what it was */
    }
    err = ct_mem_write(r->dev, r->at + (first + i) * r->pitch, packed, n * r->pitch);
    for (size_t k = 0; k < n && !err; ++k)
      r->use[first + i + k] = CT_ROW_WRITTEN;
  }
  free(packed);
  return err;
}

int ct_rows_write(ct_rows *r, size_t first, size_t count, const float *x) {
  int err = check_rows(r);
  if (err) return err;
  CT_NEED(r->dev, x);
  err = check_span(r->dev, "rows", first, count, r->count);
  if (!err && row_in_use(r, first, count) < first + count) err = ct_poll(r->dev);
  if (err) return err;
  const size_t busy = row_in_use(r, first, count);
  if (busy < first + count)
    return ct_fail(r->dev, CT_ERR_BUSY,
                   "row %zu is being read by a request in flight: it can be written afterwards",
                   busy);
  return write_rows(r, first, count, x);
}

/* ---- Answers ------------------------------------------------------------------------------- */

static void release_answers(ct_answers *a) {
  if (--a->refs) return;
  ct_heap_free(&a->dev->data, a->at);
  free(a->state);
  a->state = NULL;
  ct_handle_bury(&a->handle);
}

int ct_answers_make(ct_device *dev, uint32_t classes, size_t count, ct_answers **answers) {
  int err = check_count(dev, "answers", count);
  if (err) return err;
  ct_answers *a = calloc(1, sizeof *a);
  int8_t *state = malloc(count);
  err = a && state ? CT_OK : ct_fail(dev, CT_ERR_MEMORY, "no memory for answers");
  if (!err) {
    *a = (ct_answers){.dev = dev,
                      .classes = classes,
                      .count = count,
                      .size = (size_t)(classes + 3) / 4 * CT_UNIT,
                      .state = state,
                      .refs = 1};
    memset(state, CT_ANSWER_NONE, count);
    err = ct_mem_alloc(dev, (uint64_t)count * a->size, &a->at);
  }
  if (err) {
    free(state);
    free(a);
    return err;
  }
  ct_handle_open(&a->handle, dev);
  *answers = a;
  return CT_OK;
}

int ct_answers_create(ct_model *m, size_t count, ct_answers **answers) {
  if (answers) *answers = NULL;
  const int err = ct_check_model(m);
  if (err) return err;
  CT_NEED(m->dev, answers);
  return ct_answers_make(m->dev, m->net.width[m->net.layers], count, answers);
}

void ct_answers_free(ct_answers *a) {
  if (a && ct_handle_close(&a->handle, "answers handle")) release_answers(a);
}

/* The first answer of some that is not there; first + count: all are. */
static size_t answer_missing(const ct_answers *a, size_t first, size_t count) {
  size_t i = first;
  while (i < first + count && a->state[i] == CT_OK)
    ++i;
  return i;
}

static int say_missing(const ct_answers *a, size_t i) {
  if (a->state[i] == CT_ANSWER_NONE)
    return ct_fail(a->dev, CT_ERR_ARG, "answer %zu: no request has been submitted for it", i);
  if (a->state[i] == CT_ANSWER_AWAITED)
    return ct_fail(a->dev, CT_ERR_BUSY,
                   "answer %zu: its request is in flight; it can be read afterwards", i);
  return ct_fail(a->dev, a->state[i], "answer %zu: its request failed: %s", i,
                 ct_strerror(a->state[i]));
}

int ct_answers_read(ct_answers *a, size_t first, size_t count, float *logits) {
  int err = check_answers(a);
  if (err) return err;
  CT_NEED(a->dev, logits);
  err = check_span(a->dev, "answers", first, count, a->count);
  if (!err && answer_missing(a, first, count) < first + count) err = ct_poll(a->dev);
  if (err) return err;
  const size_t missing = answer_missing(a, first, count), row = a->classes * sizeof *logits;
  if (missing < first + count) return say_missing(a, missing);
  const uint64_t at = a->at + first * a->size;
  if (row == a->size) return ct_mem_read(a->dev, at, logits, count * row);
  uint8_t *bytes = malloc(count * a->size + 1);
  if (!bytes) return ct_fail(a->dev, CT_ERR_MEMORY, "no memory for answers");
  err = ct_mem_read(a->dev, at, bytes, count * a->size);
  for (size_t i = 0; i < count && !err; ++i)
    memcpy(logits + i * a->classes, bytes + i * a->size, row);
  free(bytes);
  return err;
}

/* ---- Requests ------------------------------------------------------------------------------ */

static int check_request_rows(ct_device *dev, uint32_t width, const struct ct_request *q,
                              uint32_t count) {
  const ct_rows *r = q->rows;
  if (!r) return ct_fail(dev, CT_ERR_ARG, "the request's rows are NULL");
  if (r->handle.dev != dev) return ct_fail(dev, CT_ERR_ARG, "the rows belong to another device");
  int err = check_rows(r);
  if (err) return err;
  if (r->width != width)
    return ct_fail(dev, CT_ERR_ARG, "the rows have %u inputs, the model %u", r->width, width);
  err = check_span(dev, "rows", q->row, count, r->count);
  for (uint32_t i = 0; i < count && !err; ++i)
    if (!(r->use[q->row + i] & CT_ROW_WRITTEN))
      err = ct_fail(dev, CT_ERR_ARG, "row %zu has not been written", q->row + i);
  return err;
}

static size_t answer_awaited(const struct ct_request *q, uint32_t count) {
  size_t i = q->answer;
  while (i < q->answer + count && q->answers->state[i] != CT_ANSWER_AWAITED)
    ++i;
  return i;
}

static int check_request_answers(ct_device *dev, uint32_t classes, const struct ct_request *q,
                                 uint32_t count) {
  const ct_answers *a = q->answers;
  if (!a) return ct_fail(dev, CT_ERR_ARG, "the request's answers are NULL");
  if (a->handle.dev != dev) return ct_fail(dev, CT_ERR_ARG, "the answers belong to another device");
  int err = check_answers(a);
  if (err) return err;
  if (a->classes != classes)
    return ct_fail(dev, CT_ERR_ARG, "the answers have %u classes, the model %u", a->classes,
                   classes);
  err = check_span(dev, "answers", q->answer, count, a->count);
  if (err) return err;
  if (answer_awaited(q, count) < q->answer + count) err = ct_poll(dev);
  if (err) return err;
  const size_t awaited = answer_awaited(q, count);
  if (awaited == q->answer + count) return CT_OK;
  return ct_fail(dev, CT_ERR_BUSY, "answer %zu is awaited by another request in flight", awaited);
}

int ct_request_check(ct_device *dev, const struct ct_mlp *net, const struct ct_request *request,
                     uint32_t count) {
  int err = ct_check_reserved(dev, "ct_request", request->reserved,
                              sizeof request->reserved / sizeof *request->reserved);
  if (!err) err = check_request_rows(dev, net->width[0], request, count);
  return err ? err : check_request_answers(dev, net->width[net->layers], request, count);
}

uint64_t ct_request_row(const struct ct_request *q) {
  return q->rows->at + q->row * q->rows->pitch;
}

uint64_t ct_request_answer(const struct ct_request *q) {
  return q->answers->at + q->answer * q->answers->size;
}

void ct_request_take(const struct ct_request *q, uint32_t count) {
  ++q->rows->refs;
  ++q->answers->refs;
  for (uint32_t i = 0; i < count; ++i) {
    q->rows->use[q->row + i] += CT_ROW_USE;
    q->answers->state[q->answer + i] = CT_ANSWER_AWAITED;
  }
}

void ct_request_drop(const struct ct_request *q, uint32_t count, int error) {
  for (uint32_t i = 0; i < count; ++i) {
    q->rows->use[q->row + i] -= CT_ROW_USE;
    q->answers->state[q->answer + i] = (int8_t)error;
  }
  release_rows(q->rows);
  release_answers(q->answers);
}
