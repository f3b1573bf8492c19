/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Training: rates, plans, steps.
 *
 * A plan is the programs of a step of so many rows. A model has one that new steps go by; one that
 * it had before stays until the steps that were submitted by it have ended. So preparing for
 * another batch size neither waits nor cancels, and the new plan is complete before it takes the
 * old one's place: what is refused changes nothing.
 */
#include <stdlib.h>
#include <string.h>

#include "ct_model.h"
#include "ct_num.h"

/* ---- Rates --------------------------------------------------------------------------------- */

/* A rate that makes sense: a number from 0 to most. By its bits, as the environment is the caller's
 * and comparing NaN would leave a trace in it. */
static int check_rate(const char *name, float value, float most) {
  const uint32_t bits = ct_bits_of(value), size = bits & ~CT_FP_SIGN;
  if (size >= 0x7f800000) return ct_fail(NULL, CT_ERR_ARG, "the %s is not a finite number", name);
  if (size == 0 || (bits == size && size <= ct_bits_of(most))) return CT_OK;
  return ct_fail(NULL, CT_ERR_ARG, "a %s of %.7g: it must be 0..%g", name, (double)value,
                 (double)most);
}

int ct_rates_check(const struct ct_rates *rates) {
  CT_NEED(NULL, rates);
  int err = check_rate("learning rate", rates->lr, 1000.0f);
  if (!err) err = check_rate("momentum", rates->momentum, 1.0f);
  if (!err) err = check_rate("weight decay", rates->weight_decay, 1.0f);
  if (!err)
    err = ct_check_reserved(NULL, "ct_rates", rates->reserved,
                            sizeof rates->reserved / sizeof *rates->reserved);
  return err;
}

/* The same with the sentence in the model's device. */
static int check_rates(const ct_model *m, const struct ct_rates *rates) {
  const int err = ct_rates_check(rates);
  return err ? ct_fail(m->dev, err, "%s", ct_last_error(NULL)) : CT_OK;
}

int ct_model_set_rates(ct_model *m, const struct ct_rates *rates) {
  int err = ct_check_model(m);
  if (err) return err;
  CT_NEED(m->dev, rates);
  err = check_rates(m, rates);
  if (!err) m->training.rates = *rates;
  return err;
}

/* ---- Plans --------------------------------------------------------------------------------- */

static void free_programs(struct ct_plan *p) {
  for (int i = 0; i < p->jobs; ++i)
    ct_program_free(p->step[i]);
  p->jobs = 0;
  free(p->step);
  p->step = NULL;
}

static void release(struct ct_plan *p) {
  if (!p || --p->refs) return;
  free_programs(p);
  for (struct ct_plan **at = p->model ? &p->model->plans : NULL; at; at = &(*at)->next) {
    if (*at != p) continue;
    *at = p->next;
    break;
  }
  free(p);
}

void ct_plans_end(ct_model *m) {
  release(m->plan);
  m->plan = NULL;
  for (struct ct_plan *p; (p = m->plans);) {
    ++p->refs; /* steps that end meanwhile give theirs back */
    for (int i = 0; i < p->jobs; ++i)
      m->stuck |= !ct_program_end(p->step[i]);
    p->jobs = 0;
    free(p->step);
    p->step = NULL;
    m->plans = p->next;
    p->model = NULL;
    release(p);
  }
}

/* Loads the programs of a step. */
static int load_plan(ct_model *m, struct ct_codes *codes, struct ct_plan *p) {
  int err = CT_OK;
  p->step = calloc(codes->count, sizeof *p->step);
  if (!p->step) return ct_fail(m->dev, CT_ERR_MEMORY, "no memory for the programs of a step");
  for (size_t i = 0; i < codes->count && !err; ++i) {
    err = ct_code_load(m->dev, &codes->job[i], &p->step[i]);
    codes->job[i].cmd = NULL;
    if (!err) p->jobs = (int)i + 1;
  }
  return err;
}

/* Programs for steps of so many rows, on the device. */
static int make_plan(ct_model *m, uint32_t batch, struct ct_plan **plan) {
  char text[256] = "";
  const struct ct_why why = {text, sizeof text};
  const struct ct_train shape = {
      .net = &m->net, .batch = batch, .spm_words = ct_window_words(m->dev)};
  struct ct_codes codes;
  int err = ct_prog_train(&shape, &codes, &why);
  if (err) return ct_fail(m->dev, err, "%s", text);
  struct ct_plan *p = calloc(1, sizeof *p);
  err = p ? load_plan(m, &codes, p)
          : ct_fail(m->dev, CT_ERR_MEMORY, "no memory for the programs of a step");
  ct_codes_free(&codes);
  if (err) {
    if (p) free_programs(p);
    free(p);
    return err;
  }
  p->model = m;
  p->batch = batch;
  p->refs = 1;
  p->next = m->plans;
  m->plans = p;
  *plan = p;
  return CT_OK;
}

int ct_model_training(ct_model *m, const struct ct_training *training) {
  int err = ct_check_model(m);
  if (err) return err;
  CT_NEED(m->dev, training);
  err = check_rates(m, &training->rates);
  if (!err)
    err = ct_check_reserved(m->dev, "ct_training", training->reserved,
                            sizeof training->reserved / sizeof *training->reserved);
  if (err) return err;
  if (!(m->dev->info.features & CT_FEATURE_TRAINING))
    return ct_fail(m->dev, CT_ERR_UNSUPPORTED, "this device cannot train");
  if (!m->plan || m->plan->batch != training->batch) {
    struct ct_plan *plan = NULL;
    err = make_plan(m, training->batch, &plan);
    if (err) return err;
    release(m->plan);
    m->plan = plan;
  }
  m->training = *training;
  return CT_OK;
}

/* ---- Steps --------------------------------------------------------------------------------- */

int ct_model_step_jobs(const ct_model *m) {
  return m && m->handle.live && m->plan ? m->plan->jobs : 0;
}

static size_t inputs_size(const ct_model *m) {
  return ct_pack_size(m->plan->batch, m->net.width[0]);
}

static size_t targets_size(const ct_model *m) {
  return ct_pack_size(m->plan->batch, m->net.width[m->net.layers]);
}

uint64_t ct_model_batch_size(const ct_model *m) {
  return m && m->handle.live && m->plan ? inputs_size(m) + targets_size(m) : 0;
}

/* A live model that ct_model_training() has prepared. */
static int check_prepared(const ct_model *m) {
  const int err = ct_check_model(m);
  if (err || m->plan) return err;
  return ct_fail(m->dev, CT_ERR_ARG,
                 "the model has not been prepared for training: ct_model_training() does that");
}

int ct_model_batch_write(ct_model *m, uint64_t addr, const float *x, const uint32_t *labels) {
  int err = check_prepared(m);
  if (err) return err;
  CT_NEED(m->dev, x);
  CT_NEED(m->dev, labels);
  const size_t rows = m->plan->batch, in = m->net.width[0], classes = m->net.width[m->net.layers];
  for (size_t i = 0; i < rows; ++i)
    if (labels[i] >= classes)
      return ct_fail(m->dev, CT_ERR_ARG, "label %u of row %zu: the model has %zu classes",
                     labels[i], i, classes);
  const size_t size = inputs_size(m) + targets_size(m);
  float *y = calloc(rows * classes + 1, sizeof *y);
  uint8_t *packed = malloc(size);
  err = CT_ERR_MEMORY;
  if (y && packed) {
    for (size_t i = 0; i < rows; ++i)
      y[i * classes + labels[i]] = 1.0f;
    ct_pack(x, rows, in, in, CT_SQUARE, packed);
    ct_pack(y, rows, classes, classes, CT_SQUARE, packed + inputs_size(m));
    err = ct_mem_write(m->dev, addr, packed, size);
  } else {
    ct_fail(m->dev, err, "no memory for a batch");
  }
  free(y);
  free(packed);
  return err;
}

static void step_ended(void *arg, const struct ct_event *event) {
  struct ct_plan *p = arg;
  if (p->model && !event->error) ++p->model->steps;
  release(p);
}

/* The rates are arguments of the step's jobs. */
static void put_rates(struct ct_job *job, const struct ct_rates *rates) {
  job->args[CT_TRAIN_MU - 1] = ct_bits_of(rates->momentum);
  job->args[CT_TRAIN_NEG_LR - 1] = ct_bits_of(-rates->lr);
  job->args[CT_TRAIN_WD - 1] = ct_bits_of(rates->weight_decay);
}

int ct_model_step_submit(ct_model *m, uint64_t batch_addr, uint64_t loss_addr,
                         const struct ct_rates *rates, void *user, uint64_t *tag) {
  int err = check_prepared(m);
  if (!err && rates) err = check_rates(m, rates);
  if (!err) err = ct_check_range(m->dev, "the batch", batch_addr, ct_model_batch_size(m));
  if (!err) err = ct_check_range(m->dev, "the loss", loss_addr, CT_UNIT);
  if (err) return err;
  struct ct_plan *p = m->plan;
  struct ct_job job = {.user = user}, *jobs = calloc((size_t)p->jobs, sizeof *jobs);
  if (!jobs) return ct_fail(m->dev, CT_ERR_MEMORY, "no memory for the jobs of a step");
  job.args[CT_TRAIN_X - 1] = ct_units_of(batch_addr);
  job.args[CT_TRAIN_Y - 1] = ct_units_of(batch_addr + inputs_size(m));
  job.args[CT_TRAIN_IMAGE - 1] = ct_units_of(m->image);
  job.args[CT_TRAIN_STATE - 1] = ct_units_of(m->state);
  job.args[CT_TRAIN_LOSS - 1] = ct_units_of(loss_addr);
  job.args[CT_TRAIN_INV - 1] = ct_bits_of(ct_divide(1.0f, p->batch));
  put_rates(&job, rates ? rates : &m->training.rates);
  for (int i = 0; i < p->jobs; ++i) {
    jobs[i] = job;
    jobs[i].program = p->step[i];
  }
  const struct ct_work work = {.queue = CT_TRAINING,
                               .kind = CT_EVENT_STEP,
                               .job = jobs,
                               .jobs = (unsigned)p->jobs,
                               .cycle = CT_NO_CYCLE,
                               .done = step_ended,
                               .arg = p};
  err = ct_submit_work(m->dev, &work, tag);
  free(jobs);
  if (!err) ++p->refs;
  return err;
}

int ct_model_step(ct_model *m, const float *x, const uint32_t *labels, float *loss) {
  int err = check_prepared(m);
  if (err) return err;
  CT_NEED(m->dev, x);
  CT_NEED(m->dev, labels);
  uint64_t at = 0, tag = 0;
  float sum = 0;
  err = ct_mem_alloc(m->dev, ct_model_batch_size(m) + CT_UNIT, &at);
  const uint64_t loss_at = at + ct_model_batch_size(m);
  if (!err) err = ct_model_batch_write(m, at, x, labels);
  if (!err) err = ct_model_step_submit(m, at, loss_at, NULL, NULL, &tag);
  if (!err) err = ct_finish(m->dev, tag, NULL);
  if (!err) err = ct_mem_read(m->dev, loss_at, &sum, sizeof sum);
  if (!err && loss) *loss = ct_divide(sum, m->plan->batch);
  if (at && err != CT_ERR_DEVICE) ct_heap_free(&m->dev->data, at);
  return err;
}
