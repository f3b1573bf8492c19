/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "coltrain_spec.h"
#include "ct_units.h"
#include "learn.h"
#include "live.h"
#include "sweep.h"
#include "train_beside.h"

struct options {
  struct learn learn;
  const char *resume;
  struct sweep_options sweep;
};

struct train {
  const struct learn *l;
  struct load load;
  struct trainer trainer; /* its end: steps of the epoch under way and those before */
  struct live live;
  uint64_t first_epoch, first_step; /* of this run */
  uint64_t epochs_done;
  uint64_t cycles;                   /* spent on steps alone */
  uint64_t counter[CT_MAX_COUNTERS]; /* of training, in these cycles */
  double accuracy;                   /* of the last evaluation */
  json_t *epochs;
};

/* ---- A run ---- */

/* To whoever looks on. */
static void show_live(struct train *t, const struct ct_progress_state *state) {
  json_t *line = live_begin(&t->live);
  if (!line) return;
  json_object_set_new(line, "run", json_string(state->label));
  /* Of all steps, as they are counted below, also where a saved model goes on. */
  const double all = (double)t->l->epochs * (double)t->trainer.feed.order.per_epoch;
  json_object_set_new(line, "fraction", json_real((double)t->trainer.feed.finished / all));
  json_object_set_new(
      line, "queues",
      json_pack("{s:I, s:I}", "inference", (json_int_t)0, "training",
                (json_int_t)(t->trainer.feed.submitted - t->trainer.feed.finished)));
  live_steps(&t->live, line, t->trainer.feed.finished,
             t->l->epochs * t->trainer.feed.order.per_epoch,
             t->trainer.count ? (double)t->trainer.losses[t->trainer.count - 1] : (double)NAN);
  live_end(&t->live, line);
}

static void show(struct train *t, uint64_t epoch) {
  const uint64_t all = t->l->epochs * t->trainer.feed.order.per_epoch - t->first_step;
  char label[32];
  snprintf(label, sizeof label, "epoch %" PRIu64 "/%" PRIu64, epoch + 1, t->l->epochs);
  struct ct_progress_state state = {.label = label,
                                    .known = CT_PROGRESS_FRACTION,
                                    .fraction = (double)t->trainer.count / (double)all,
                                    .accuracy = t->accuracy};
  if (t->trainer.count) {
    state.known |= CT_PROGRESS_LOSS;
    state.loss = (double)t->trainer.losses[t->trainer.count - 1];
  }
  if (json_array_size(t->epochs)) state.known |= CT_PROGRESS_ACCURACY;
  ct_progress_update(&t->load.progress, &state);
  show_live(t, &state);
}

/* Trains to the end of an epoch, or until stopped; the mean of its losses goes to *mean. */
static int train_epoch(struct train *t, uint64_t epoch, double *mean) {
  const struct feeder *f = &t->trainer.feed;
  const size_t before = t->trainer.count;
  t->trainer.end = (epoch + 1) * f->order.per_epoch;
  while (f->finished < t->trainer.end && !(cli_stopped() && f->finished == f->submitted)) {
    if (load_turn(&t->load, CT_NO_CYCLE)) return 1;
    show(t, epoch);
  }
  for (size_t i = before; i < t->trainer.count; ++i)
    *mean += (double)t->trainer.losses[i] / (double)(t->trainer.count - before);
  return 0;
}

/* What training has counted so far, on a device at rest. */
static int snapshot(struct train *t, uint64_t counter[CT_MAX_COUNTERS]) {
  return load_check(&t->load, ct_counters(t->load.dev, CT_TRAINING, counter, CT_MAX_COUNTERS),
                    "reading the counters");
}

/* Reading the counters takes cycles, which are none of the epoch's. */
static int timed_epoch(struct train *t, uint64_t epoch, double *mean) {
  uint64_t from = 0, to = 0, before[CT_MAX_COUNTERS] = {0}, after[CT_MAX_COUNTERS] = {0};
  if (snapshot(t, before) || load_now(&t->load, &from)) return 1;
  if (train_epoch(t, epoch, mean)) return 1;
  if (load_now(&t->load, &to) || snapshot(t, after)) return 1;
  t->cycles = from == CT_NO_CYCLE ? CT_NO_CYCLE : t->cycles + (to - from);
  for (size_t i = 0; i < CT_MAX_COUNTERS; ++i)
    t->counter[i] += after[i] - before[i];
  return 0;
}

/* After every epoch, and when stopped: whatever ends the run, --resume goes on from there. */
static int save(struct train *t) {
  if (!t->l->save) return 0;
  const int rc = learner_save(&t->trainer.learner, t->l->save, t->epochs_done);
  if (rc >= 0) return 0;
  ct_progress_drop(&t->load.progress);
  return cli_fail_device(t->load.dev, rc, "saving the model");
}

static int run_epoch(struct train *t, uint64_t epoch) {
  double mean = 0;
  size_t right = 0;
  if (timed_epoch(t, epoch, &mean)) return 1;
  if (t->trainer.feed.finished < (epoch + 1) * t->trainer.feed.order.per_epoch) return save(t);
  t->epochs_done = epoch + 1;
  if (save(t)) return 1;
  const int rc = learner_evaluate(&t->trainer.learner, NULL, &t->trainer.data.test, &right);
  if (rc < 0) return cli_fail_device(t->load.dev, rc, "evaluating on the test images");
  t->accuracy = (double)right / (double)t->trainer.data.test.count;
  json_array_append_new(t->epochs, json_pack("{s:I, s:f, s:f}", "epoch", (json_int_t)epoch + 1,
                                             "loss", mean, "test_accuracy", t->accuracy));
  ct_progress_drop(&t->load.progress); /* the line says more */
  fprintf(t->load.text,
          fabs(mean) < 1000 ? "epoch %" PRIu64 "/%" PRIu64 "  loss %.4f  test accuracy %.2f %%\n"
                            : "epoch %" PRIu64 "/%" PRIu64 "  loss %.3g  test accuracy %.2f %%\n",
          epoch + 1, t->l->epochs, mean, 100 * t->accuracy);
  fflush(t->load.text);
  return 0;
}

static double mean_loss(const struct train *t, bool last) {
  return learn_mean_loss(t->trainer.losses, t->trainer.count, last);
}

static uint64_t all_steps(const struct train *t) {
  return t->l->epochs * t->trainer.feed.order.per_epoch;
}

static bool is_stopped(const struct train *t) {
  return t->trainer.feed.finished < all_steps(t);
}

static void tell_stopped(const struct train *t) {
  fprintf(t->load.text, "stopped after %" PRIu64 " of %" PRIu64 " steps", t->trainer.feed.finished,
          all_steps(t));
  if (t->trainer.count)
    fprintf(t->load.text, ", loss %.4f to %.4f", mean_loss(t, false), mean_loss(t, true));
  fprintf(t->load.text, "; %s\n",
          t->l->save ? "--resume goes on from there" : "nothing is kept without --save");
}

static int write_json(struct train *t) {
  uint32_t crc;
  if (learner_crc32(&t->trainer.learner, &crc)) return cli_fail("the weights cannot be read back");
  json_t *root = json_object();
  learn_json(t->l, root);
  const bool timed = t->cycles != CT_NO_CYCLE;
  json_object_update_new(
      root,
      json_pack("{s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:O, s:b}", "steps",
                (json_int_t)t->trainer.count, "loss_first", cli_json_number(mean_loss(t, false)),
                "loss_last", cli_json_number(mean_loss(t, true)), "test_accuracy",
                json_array_size(t->epochs) ? json_real(t->accuracy) : json_null(), "cycles",
                cli_json_cycles(t->cycles), "macs_per_cycle",
                timed ? cli_json_ratio((double)t->counter[CT_CNT_MXU_ROWS] * CLI_MACS_PER_ROW,
                                       (double)t->cycles)
                      : json_null(),
                "array", cli_json_array(t->load.dev), "time",
                ct_units_json(NULL, t->counter, t->cycles), "weights_crc32", (json_int_t)crc,
                "by_epoch", t->epochs, "stopped", is_stopped(t)));
  return cli_json_write(t->l->json, root);
}

static int run_epochs(struct train *t) {
  uint64_t epoch = t->first_epoch;
  ct_progress_open(&t->load.progress, stderr);
  int status = 0;
  for (; !status && epoch < t->l->epochs && !cli_stopped(); ++epoch)
    status = run_epoch(t, epoch);
  if (!status && epoch == t->first_epoch) status = save(t); /* stopped before it began */
  ct_progress_close(&t->load.progress);
  if (status) return 1;
  if (is_stopped(t)) tell_stopped(t);
  if (t->l->save) fprintf(t->load.text, "saved to %s\n", t->l->save);
  return write_json(t) || is_stopped(t);
}

/* A model that was stopped within an epoch goes on there; one with another number of steps in it,
 * at the beginning of the next epoch. Where runs accumulate that is the first one that begins a
 * step: the sum of those in front of it is not there. */
static int find_first_step(struct train *t, uint64_t steps) {
  const uint64_t runs = t->l->accumulate ? t->l->accumulate : 1;
  if (t->first_step / steps == t->first_epoch) return 0;
  t->first_step = (t->first_epoch * steps + runs - 1) / runs * runs;
  t->first_epoch = t->epochs_done = t->first_step / steps;
  if (t->first_epoch < t->l->epochs) return 0;
  return cli_fail(
      "no step of %" PRIu64 " runs begins in what is left; give --epochs a larger number", runs);
}

static int run_feeder(struct train *t) {
  const uint64_t steps = learn_steps(t->l->batch, &t->trainer.data);
  if (find_first_step(t, steps)) return 1;
  t->trainer.losses = malloc((t->l->epochs - t->first_epoch) * steps * sizeof *t->trainer.losses);
  t->epochs = json_array();
  int status = trainer_start(&t->trainer, t->first_step);
  if (!status && !t->trainer.losses)
    status = cli_fail("no memory for the losses of %" PRIu64 " epochs", t->l->epochs);
  if (!status) status = run_epochs(t);
  if (!status) learner_tell(&t->trainer.learner);
  free(t->trainer.losses);
  json_decref(t->epochs);
  return status;
}

/* ---- Start ---- */

/* What a file holds; sets the epoch to go on with. */
static int load_past(struct train *t, struct learn *l, const char *path) {
  struct learner_past past = {0};
  if (learner_load(&t->trainer.learner, l, t->load.dev, path, &past)) return 1;
  t->first_epoch = t->epochs_done = past.epochs;
  t->first_step = past.steps;
  return 0;
}

/* A file goes on from its own step, with its own seed. */
static int refuse_file(const char *model) {
  if (learn_check_model(model)) return 1;
  return cli_fail("%s is a file: go on with --resume %s", model, model);
}

static int run(struct train *t, struct learn *l, const char *from) {
  if (!from && learn_is_file(l->model)) return refuse_file(l->model);
  if (from && load_past(t, l, from)) return 1;
  if (learn_open(l, &t->trainer.data)) return 1;
  if (from && l->epochs <= t->first_epoch)
    return cli_fail("%s has been trained for %" PRIu64
                    " epoch%s; give --epochs a larger number "
                    "than that to go on",
                    from, t->first_epoch, t->first_epoch == 1 ? "" : "s");
  if (from ? learner_resume(&t->trainer.learner, &t->trainer.data)
           : learner_open(&t->trainer.learner, l, &t->trainer.data, t->load.dev, true))
    return 1;
  l->batch = t->trainer.learner.batch; /* a file has its own */
  return run_feeder(t);
}

/* ---- Sweeps ---- */

static void take_sweep(void *input, const char *arg, const struct argp_state *state) {
  struct options *o = input;
  sweep_take(&o->sweep, arg, state);
}

/* What follows --sweep LIST: more lists. */
static void take_more(void *input, const char *arg, const struct argp_state *state) {
  const struct options *o = input;
  if (!o->sweep.given) argp_error(state, "\"%s\" is one argument too many", arg);
  take_sweep(input, arg, state);
}

static void check_sweep(void *input, const struct argp_state *state) {
  const struct options *o = input;
  if (o->sweep.given && o->resume) argp_error(state, "--sweep and --resume: give one of them");
  if (o->sweep.halving && !o->sweep.given) argp_error(state, "--halving is for --sweep");
}

int verb_train(int argc, char **argv) {
  static const struct cli_option options[] = {
      {"sweep", "NAME=A,B,..",
       "Train with each of these values, and with each combination if more such lists follow, all "
       "at once: of lr, momentum, weight-decay, optimiser (sgd, adam, adamw), beta1, beta2, "
       "epsilon, batch, seed; --save then keeps the best",
       2, .call = take_sweep},
      {"halving", "ETA",
       "Of a sweep: train all for a while, then the best 1/ETA of them for ETA times as long, and "
       "so "
       "on",
       2, CLI_COUNT_AT(struct options, sweep.halving, 2, 100)},
      {"resume", "FILE",
       "Go on from a saved model, with the same bits as if it had never stopped (give the same "
       "--data, --samples and --epochs; batch and optimiser are in the file)",
       1, CLI_FILE_AT(struct options, resume, CLI_RESUME)}};
  static const struct cli_command command = {
      CLI_COMMAND(options),
      LEARN_SHARED,
      .arg = take_more,
      .end = check_sweep,
      .args = "[NAME=A,B,..]",
      .doc =
          "Trains a multilayer perceptron, or another network, on the device.\vThe --save file is "
          "written after every "
          "epoch, and when Ctrl-C stops the run; pressed again it ends the program.\n\n"
          "Example:\n  coltrain train --data digits --epochs 10 --save model.ctm\n"
          "  coltrain train --sweep lr=0.03,0.1,0.3 momentum=0.5,0.9 --save best.ctm\n"};
  struct options o = {.learn = LEARN_DEFAULTS};
  if (cli_options(&command, argc, argv, &o)) return 1;
  struct train t = {.l = &o.learn};
  t.trainer.load = &t.load;
  cli_catch_stop(); /* first: from here on Ctrl-C leaves a file */
  if (o.sweep.given) return sweep_run(&o.learn, &o.sweep);
  if (load_open(&t.load, o.learn.device, o.learn.json)) return 1;
  t.load.take = trainer_take;
  t.load.arg = &t.trainer;
  live_open(&t.live, "train", o.learn.device, t.load.dev);
  const int status = run(&t, &o.learn, o.resume);
  live_close(&t.live);
  trainer_close(&t.trainer);
  load_close(&t.load);
  return status;
}
