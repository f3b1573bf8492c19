/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Training: rates, plans, batches, steps.
 *
 * A plan is the programs of a step of so many rows. A model has one that new batches go by; one
 * that it had before stays until its batches and the steps on them have gone. So preparing for
 * another batch size neither waits nor cancels, and the new plan is complete before it takes the
 * old one's place: what is refused changes nothing.
 */
#include <stdlib.h>

#include "ct_network.h"
#include "ct_num.h"

enum { LARGEST_BATCH = 65536 }; /* that any program could be made for */

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

int ct_model_rates(const ct_model *m, const struct ct_rates *rates) {
  const int err = ct_rates_check(rates);
  return err ? ct_fail(m->dev, err, "%s", ct_last_error(NULL)) : CT_OK;
}

int ct_model_set_rates(ct_model *m, const struct ct_rates *rates) {
  int err = ct_check_model(m);
  if (err) return err;
  CT_NEED(m->dev, rates);
  err = ct_model_rates(m, rates);
  if (!err) m->training.rates = *rates;
  return err;
}

/* ---- Plans --------------------------------------------------------------------------------- */

void ct_programs_free(struct ct_programs *p) {
  for (size_t i = 0; i < p->count; ++i)
    ct_program_free(p->of[i]);
  free(p->of);
  *p = (struct ct_programs){.of = NULL};
}

int ct_programs_load(ct_device *dev, struct ct_codes *codes, struct ct_programs *p) {
  int err = CT_OK;
  *p = (struct ct_programs){.of = calloc(codes->count, sizeof(ct_program *))};
  if (!p->of) err = ct_fail(dev, CT_ERR_MEMORY, "no memory for the programs of a step");
  for (size_t i = 0; i < codes->count && !err; ++i) {
    err = ct_code_load(dev, &codes->job[i], &p->of[i]);
    codes->job[i].cmd = NULL;
    if (!err) p->count = i + 1;
  }
  ct_codes_free(codes);
  if (err) ct_programs_free(p);
  return err;
}

static void free_step(struct ct_plan *p, enum ct_gradients gradients) {
  ct_network_free(p->step[gradients]);
  p->step[gradients] = NULL;
}

static void free_steps(struct ct_plan *p) {
  for (unsigned i = 0; i < CT_STEP_KINDS; ++i)
    free_step(p, (enum ct_gradients)i);
}

static void free_plan(struct ct_plan *p) {
  if (!p) return;
  free_steps(p);
  if (p->work) ct_heap_free(&p->dev->data, p->work);
  free(p);
}

static void release(struct ct_plan *p) {
  if (!p || --p->refs) return;
  for (struct ct_plan **at = p->model ? &p->model->plans : NULL; at; at = &(*at)->next) {
    if (*at != p) continue;
    *at = p->next;
    break;
  }
  free_plan(p);
}

void ct_plans_end(ct_model *m) {
  release(m->plan);
  m->plan = NULL;
  for (struct ct_plan *p; (p = m->plans);) {
    ++p->refs; /* batches of steps that end meanwhile may give theirs back */
    free_steps(p);
    m->plans = p->next;
    p->model = NULL;
    release(p);
  }
}

/* Adds a kind of step, and finds room for a workspace, if it needs one. */
static int add_step(struct ct_plan *p, enum ct_gradients gradients) {
  static const enum ct_model_job job[CT_STEP_KINDS] = {[CT_GRADIENTS_NONE] = CT_MODEL_RUN,
                                                       [CT_GRADIENTS_SET] = CT_MODEL_SET,
                                                       [CT_GRADIENTS_ADD] = CT_MODEL_ADD};
  const struct ct_model_part part = {.dev = p->dev,
                                     .net = &p->model->net,
                                     .rows = p->batch,
                                     .trains = true,
                                     .job = job[gradients]};
  int err = ct_model_compile(&part, &p->step[gradients]);
  if (err) return err;
  const uint64_t units = p->step[gradients]->compiled.arena;
  if (units && !p->work) err = ct_mem_alloc(p->dev, units * CT_UNIT, &p->work);
  if (err) free_step(p, gradients);
  return err;
}

/* Programs for steps of so many rows, on the device. */
static int make_plan(ct_model *m, uint32_t batch, struct ct_plan **plan) {
  struct ct_plan *p = calloc(1, sizeof *p);
  if (!p) return ct_fail(m->dev, CT_ERR_MEMORY, "no memory for the programs of a step");
  *p = (struct ct_plan){.model = m, .dev = m->dev, .batch = batch, .refs = 1};
  const int err = add_step(p, CT_GRADIENTS_NONE);
  if (err) {
    free_plan(p);
    return err;
  }
  p->next = m->plans;
  m->plans = p;
  *plan = p;
  return CT_OK;
}

/* One that some batch still has is as good as new. */
static int find_plan(ct_model *m, uint32_t batch, struct ct_plan **plan) {
  for (struct ct_plan *p = m->plans; p; p = p->next) {
    if (p->batch != batch) continue;
    ++p->refs;
    *plan = p;
    return CT_OK;
  }
  return make_plan(m, batch, plan);
}

/* Steps of the plan may keep gradients from here on; if it is refused, it leaves nothing. */
static int add_gradients(struct ct_plan *p) {
  const uint64_t work = p->work;
  if (p->step[CT_GRADIENTS_SET]) return CT_OK;
  int err = add_step(p, CT_GRADIENTS_SET);
  if (!err) err = add_step(p, CT_GRADIENTS_ADD);
  if (!err) err = ct_gradients_prepare(p->model);
  if (!err) return CT_OK;
  free_step(p, CT_GRADIENTS_SET);
  free_step(p, CT_GRADIENTS_ADD);
  if (p->work != work) ct_heap_free(&p->dev->data, p->work);
  p->work = work;
  return err;
}

/* All that such steps need is there, and the plan is the model's. */
static int change_plan(ct_model *m, const struct ct_training *training) {
  struct ct_plan *plan = NULL;
  int err = find_plan(m, training->batch, &plan);
  if (err) return err;
  err = ct_model_arm(m);
  if (!err && training->gradients) err = add_gradients(plan);
  release(err ? plan : m->plan);
  if (!err) m->plan = plan;
  return err;
}

int ct_model_training(ct_model *m, const struct ct_training *training) {
  int err = ct_check_model(m);
  if (err) return err;
  CT_NEED(m->dev, training);
  err = ct_model_rates(m, &training->rates);
  if (!err)
    err = ct_check_reserved(m->dev, "ct_training", training->reserved,
                            sizeof training->reserved / sizeof *training->reserved);
  if (err) return err;
  if (!(m->dev->info.features & CT_FEATURE_TRAINING))
    return ct_fail(m->dev, CT_ERR_UNSUPPORTED, "this device cannot train");
  if (training->batch < 1) return ct_fail(m->dev, CT_ERR_ARG, "a batch has at least one row");
  if (training->batch > LARGEST_BATCH)
    return ct_fail(m->dev, CT_ERR_NO_SPACE,
                   "a batch of %u rows is too large: no model takes more than %d", training->batch,
                   LARGEST_BATCH);
  err = change_plan(m, training);
  if (!err) m->training = *training;
  return err;
}

/* ---- Batches ------------------------------------------------------------------------------- */

/* A live model that ct_model_training() has prepared. */
static int check_prepared(const ct_model *m) {
  const int err = ct_check_model(m);
  if (err || m->plan) return err;
  return ct_fail(m->dev, CT_ERR_ARG,
                 "the model has not been prepared for training: ct_model_training() does that");
}

static int check_batch(const ct_batch *b) {
  return ct_check_handle(b ? &b->frame.handle : NULL, "batch");
}

/* Its plan stays as long as it, and goes first: with the last handle a closed device goes. */
static void release_batch(ct_batch *b) {
  if (b->frame.refs == 1) release(b->plan);
  ct_frame_release(&b->frame);
}

static const struct ct_lay *lay_of(const ct_network *n, unsigned external) {
  return &n->compiled.lay[n->compiled.external[external].tensor];
}

int ct_batch_create(ct_model *m, ct_batch **batch) {
  if (batch) *batch = NULL;
  int err = check_prepared(m);
  if (err) return err;
  CT_NEED(m->dev, batch);
  ct_network *n = m->plan->step[CT_GRADIENTS_NONE];
  ct_batch *b = calloc(1, sizeof *b);
  if (!b) return ct_fail(m->dev, CT_ERR_MEMORY, "no memory for a batch");
  err = ct_frame_open(n, &b->frame);
  if (err) {
    free(b);
    return err;
  }
  b->plan = m->plan;
  b->classes = m->net.width[m->net.layers];
  b->x = *lay_of(n, CT_MLP_X);
  b->y = *lay_of(n, CT_MLP_Y);
  b->loss = *lay_of(n, CT_MLP_LOSS);
  ++b->plan->refs;
  *batch = b;
  return CT_OK;
}

void ct_batch_free(ct_batch *b) {
  if (b && ct_handle_close(&b->frame.handle, "batch")) release_batch(b);
}

static int write_batch(ct_batch *b, const float *x, const uint32_t *labels) {
  const ct_frame *f = &b->frame;
  const size_t rows = b->plan->batch;
  float *y = calloc(rows * b->classes + 1, sizeof *y);
  if (!y) return ct_fail(f->dev, CT_ERR_MEMORY, "no memory for a batch");
  for (size_t i = 0; i < rows; ++i)
    y[i * b->classes + labels[i]] = 1.0f;
  const bool before = b->written;
  b->written = false; /* if this fails, it is neither this nor what it was */
  const int err =
      ct_network_put_mlps(f->network, &f->at, (struct ct_put[]){{&b->x, x}, {&b->y, y}}, 2);
  b->written = err == CT_ERR_MEMORY ? before : !err;
  free(y);
  return err;
}

int ct_batch_write(ct_batch *b, const float *x, const uint32_t *labels) {
  int err = check_batch(b);
  if (err) return err;
  CT_NEED(b->frame.dev, x);
  CT_NEED(b->frame.dev, labels);
  for (uint32_t i = 0; i < b->plan->batch; ++i)
    if (labels[i] >= b->classes)
      return ct_fail(b->frame.dev, CT_ERR_ARG, "label %u of row %u: the model has %u classes",
                     labels[i], i, b->classes);
  err = ct_frame_idle(&b->frame, "batch", "written");
  return err ? err : write_batch(b, x, labels);
}

int ct_batch_loss(ct_batch *b, float *loss) {
  int err = check_batch(b);
  if (err) return err;
  const ct_frame *f = &b->frame;
  CT_NEED(f->dev, loss);
  err = ct_frame_idle(f, "batch", "read");
  if (err) return err;
  if (!f->ran)
    return ct_fail(f->dev, CT_ERR_ARG, "no step on the batch has been submitted: it has no loss");
  if (f->outcome)
    return ct_fail(f->dev, f->outcome, "the last step on the batch has no loss: %s",
                   ct_strerror(f->outcome));
  float mean = 0;
  err = ct_network_get_tensor(f->network, &f->at, &b->loss, &mean);
  if (!err) *loss = mean;
  return err;
}

/* ---- Steps --------------------------------------------------------------------------------- */

static void end_step(ct_batch *b, int error) {
  ct_frame_ended(&b->frame, error);
  release_batch(b);
}

static void step_ended(void *arg, const struct ct_event *event) {
  ct_batch *b = arg;
  ct_weights *live = b->live;
  live->steps += !event->error;
  ct_weights_drop(live, ct_use_changes(CT_TRAINING));
  end_step(b, event->error);
}

static void kept(ct_batch *b, enum ct_gradients how, int error) {
  ct_weights *live = b->live;
  ct_gradients_kept(live, how, error);
  ct_weights_drop(live, ct_use_reads(CT_TRAINING));
  end_step(b, error);
}

static void set_ended(void *arg, const struct ct_event *event) {
  kept(arg, CT_GRADIENTS_SET, event->error);
}

static void add_ended(void *arg, const struct ct_event *event) {
  kept(arg, CT_GRADIENTS_ADD, event->error);
}

/* The rates are arguments of the step's jobs. */
static int submit(const ct_model *m, const struct ct_step *step, struct ct_work *work,
                  uint64_t *tag) {
  const ct_batch *b = step->batch;
  const ct_weights *live = m->live;
  const ct_network *n = b->plan->step[step->gradients];
  struct ct_regions at = b->frame.at;
  at.lasting = live->image;
  at.state = step->gradients ? live->gradients : live->state;
  at.arena = b->plan->work;
  struct ct_job like = {.user = step->user};
  ct_model_arguments(n, &at, step->rates ? step->rates : &m->training.rates, &like);
  return ct_network_send(n, CT_STAGES_ALL, 0, &like, work, tag);
}

static struct ct_use use_of(const struct ct_step *step) {
  return step->gradients ? ct_use_reads(CT_TRAINING) : ct_use_changes(CT_TRAINING);
}

static int check_gradients(const ct_model *m, const struct ct_step *step) {
  const ct_batch *b = step->batch;
  if ((unsigned)step->gradients >= CT_STEP_KINDS)
    return ct_fail(m->dev, CT_ERR_ARG, "there are no gradients %d: see enum ct_gradients",
                   (int)step->gradients);
  if (b->plan->step[step->gradients]) return CT_OK;
  return ct_fail(m->dev, CT_ERR_ARG,
                 "the model has not been prepared for gradients of %u rows: set "
                 "ct_training.gradients for ct_model_training()",
                 b->plan->batch);
}

static int check_step(ct_model *m, const struct ct_step *step) {
  int err = ct_check_reserved(m->dev, "ct_step", step->reserved,
                              sizeof step->reserved / sizeof *step->reserved);
  const ct_batch *b = step->batch;
  if (err) return err;
  if (!b) return ct_fail(m->dev, CT_ERR_ARG, "the step's batch is NULL");
  if (b->frame.handle.dev != m->dev)
    return ct_fail(m->dev, CT_ERR_ARG, "the batch belongs to another device");
  err = check_batch(b);
  if (!err && step->rates) err = ct_model_rates(m, step->rates);
  if (err) return err;
  if (b->plan->model != m) return ct_fail(m->dev, CT_ERR_ARG, "the batch belongs to another model");
  if (!b->written) return ct_fail(m->dev, CT_ERR_ARG, "the batch has not been written");
  err = check_gradients(m, step);
  if (err) return err;
  ct_weights *live = NULL;
  return ct_weights_find(m, use_of(step), &live);
}

int ct_model_step_submit(ct_model *m, const struct ct_step *step, uint64_t *tag) {
  static void (*const done[CT_STEP_KINDS])(void *, const struct ct_event *) = {
      [CT_GRADIENTS_NONE] = step_ended,
      [CT_GRADIENTS_SET] = set_ended,
      [CT_GRADIENTS_ADD] = add_ended};
  int err = check_prepared(m);
  if (err) return err;
  CT_NEED(m->dev, step);
  err = check_step(m, step);
  if (err) return err;
  ct_batch *b = step->batch;
  struct ct_work work = {.queue = CT_TRAINING,
                         .kind = CT_EVENT_STEP,
                         .cycle = CT_NO_CYCLE,
                         .done = done[step->gradients],
                         .arg = b};
  if (step->gradients == CT_GRADIENTS_ADD) err = ct_gradients_follow(m, &work.chained);
  if (err) return err;
  err = submit(m, step, &work, tag);
  if (err) return err;
  b->live = m->live;
  ct_frame_take(&b->frame);
  ct_weights_take(m->live, use_of(step));
  if (step->gradients) ct_gradients_take(m);
  return CT_OK;
}

int ct_model_step(ct_model *m, const float *x, const uint32_t *labels, float *loss) {
  int err = check_prepared(m);
  if (err) return err;
  CT_NEED(m->dev, x);
  CT_NEED(m->dev, labels);
  uint64_t tag = 0;
  struct ct_step step = {.batch = NULL};
  err = ct_batch_create(m, &step.batch);
  if (!err) err = ct_batch_write(step.batch, x, labels);
  if (!err) err = ct_model_step_submit(m, &step, &tag);
  if (!err) err = ct_finish(m->dev, tag, NULL);
  if (!err && loss) err = ct_batch_loss(step.batch, loss);
  ct_batch_free(step.batch);
  return err;
}
