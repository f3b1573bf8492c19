/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coltrain_spec.h"
#include "ct_units.h"
#include "feeder.h"
#include "learn.h"
#include "live.h"
#include "load.h"

struct options {
  struct learn learn;
  const char *resume;
};

struct train {
  const struct learn *l;
  const struct ct_dataset *ds;
  struct load load;
  ct_model *model;
  struct feeder feeder;
  uint64_t end; /* steps of the epoch under way and those before */
  struct live live;
  uint64_t first_epoch, first_step;  /* of this run */
  float *losses;                     /* of every step taken */
  size_t steps;                      /* how many */
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
  const double all = (double)t->l->epochs * (double)t->feeder.per_epoch;
  json_object_set_new(line, "fraction", json_real((double)t->feeder.finished / all));
  json_object_set_new(line, "queues",
                      json_pack("{s:I, s:I}", "inference", (json_int_t)0, "training",
                                (json_int_t)(t->feeder.submitted - t->feeder.finished)));
  live_steps(&t->live, line, t->feeder.finished, t->l->epochs * t->feeder.per_epoch,
             t->steps ? (double)t->losses[t->steps - 1] : (double)NAN);
  live_end(&t->live, line);
}

static void show(struct train *t, uint64_t epoch) {
  const uint64_t all = t->l->epochs * t->feeder.per_epoch - t->first_step;
  char label[32];
  snprintf(label, sizeof label, "epoch %" PRIu64 "/%" PRIu64, epoch + 1, t->l->epochs);
  struct ct_progress_state state = {.label = label,
                                    .known = CT_PROGRESS_FRACTION,
                                    .fraction = (double)t->steps / (double)all,
                                    .accuracy = t->accuracy};
  if (t->steps) {
    state.known |= CT_PROGRESS_LOSS;
    state.loss = (double)t->losses[t->steps - 1];
  }
  if (json_array_size(t->epochs)) state.known |= CT_PROGRESS_ACCURACY;
  ct_progress_update(&t->load.progress, &state);
  show_live(t, &state);
}

/* A part of the load: the steps of an epoch. */
static int top_up(void *arg) {
  struct train *t = arg;
  int rc = 0;
  while (rc >= 0 && t->feeder.submitted < t->end && !cli_stopped())
    rc = feeder_submit(&t->feeder);
  return rc;
}

static int take(void *arg, const struct ct_event *event) {
  struct train *t = arg;
  float loss = 0;
  if (event->error)
    return cli_fail("training step %zu failed on the device: %s", t->steps + 1,
                    ct_code_text(event->code));
  if (!event->user) return 0; /* a part of a step */
  const int rc = feeder_finish(&t->feeder, event->user, &loss);
  t->losses[t->steps++] = loss;
  return load_check(&t->load, rc, "reading the loss");
}

/* Trains to the end of an epoch, or until stopped; the mean of its losses goes to *mean. */
static int train_epoch(struct train *t, uint64_t epoch, double *mean) {
  const struct feeder *f = &t->feeder;
  const size_t before = t->steps;
  t->end = (epoch + 1) * f->per_epoch;
  while (f->finished < t->end && !(cli_stopped() && f->finished == f->submitted)) {
    if (load_turn(&t->load, CT_NO_CYCLE)) return 1;
    show(t, epoch);
  }
  for (size_t i = before; i < t->steps; ++i)
    *mean += (double)t->losses[i] / (double)(t->steps - before);
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
  const int rc = ct_model_save(t->model, t->l->save);
  if (rc >= 0) return 0;
  ct_progress_drop(&t->load.progress);
  return cli_fail_device(t->load.dev, rc, "saving the model");
}

static int run_epoch(struct train *t, uint64_t epoch) {
  double mean = 0;
  size_t right = 0;
  if (timed_epoch(t, epoch, &mean)) return 1;
  if (t->feeder.finished < (epoch + 1) * t->feeder.per_epoch) return save(t);
  ct_model_set_epochs(t->model, epoch + 1);
  if (save(t)) return 1;
  const int rc = learn_evaluate(t->model, NULL, t->ds, &t->ds->test, &right);
  if (rc < 0) return cli_fail_device(t->load.dev, rc, "evaluating on the test images");
  t->accuracy = (double)right / (double)t->ds->test.count;
  json_array_append_new(t->epochs, json_pack("{s:I, s:f, s:f}", "epoch", (json_int_t)epoch + 1,
                                             "loss", mean, "test_accuracy", t->accuracy));
  ct_progress_clear(&t->load.progress);
  fprintf(t->load.text, "epoch %" PRIu64 "/%" PRIu64 "  loss %.4f  test accuracy %.2f %%\n",
          epoch + 1, t->l->epochs, mean, 100 * t->accuracy);
  fflush(t->load.text);
  return 0;
}

static double mean_loss(const struct train *t, bool last) {
  return learn_mean_loss(t->losses, t->steps, last);
}

static uint64_t all_steps(const struct train *t) {
  return t->l->epochs * t->feeder.per_epoch;
}

static bool is_stopped(const struct train *t) {
  return t->feeder.finished < all_steps(t);
}

static void tell_stopped(const struct train *t) {
  fprintf(t->load.text, "stopped after %" PRIu64 " of %" PRIu64 " steps", t->feeder.finished,
          all_steps(t));
  if (t->steps)
    fprintf(t->load.text, ", loss %.4f to %.4f", mean_loss(t, false), mean_loss(t, true));
  fprintf(t->load.text, "; %s\n",
          t->l->save ? "--resume goes on from there" : "nothing is kept without --save");
}

static int write_json(struct train *t) {
  uint32_t crc;
  if (cli_weights_crc32(t->model, &crc)) return cli_fail("the weights cannot be read back");
  json_t *root = json_object();
  learn_json(t->l, root);
  const bool timed = t->cycles != CT_NO_CYCLE;
  json_object_update_new(
      root, json_pack("{s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:O, s:b}", "steps",
                      (json_int_t)t->steps, "loss_first", cli_json_number(mean_loss(t, false)),
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

static int run_feeder(struct train *t) {
  const uint64_t steps = learn_steps(t->l, t->ds);
  t->losses = malloc((t->l->epochs - t->first_epoch) * steps * sizeof *t->losses);
  t->epochs = json_array();
  /* A model that was stopped within an epoch goes on there; one with another batch size, at the
   * beginning of the next epoch. */
  if (t->first_step / steps != t->first_epoch) t->first_step = t->first_epoch * steps;
  const int rc = feeder_open(&t->feeder, t->load.dev, t->model, t->l, t->ds, t->first_step);
  int status;
  if (rc < 0)
    status = cli_fail_device(t->load.dev, rc, "no room for the batches");
  else if (!t->losses)
    status = cli_fail("no memory for the losses of %" PRIu64 " epochs", t->l->epochs);
  else
    status = run_epochs(t);
  feeder_close(&t->feeder);
  free(t->losses);
  json_decref(t->epochs);
  return status;
}

/* ---- Start ---- */

/* What was not given is as it was when the model was saved. */
static void keep_training(struct learn *l, const struct ct_training *was) {
  if (was->batch == 0) return; /* never trained */
  if (l->batch == 0) l->batch = was->batch;
  if (l->lr < 0) l->lr = was->rates.lr;
  if (l->momentum < 0) l->momentum = was->rates.momentum;
  if (l->weight_decay < 0) l->weight_decay = was->rates.weight_decay;
}

/* A saved model decides layers and seed; whoever names others asks for something else. */
static int take_over(struct learn *l, const char *path, const struct ct_model_info *info) {
  char have[256], want[256];
  learn_layers_text(info->widths, info->layers, have, sizeof have);
  learn_layers_text(l->widths, l->layers, want, sizeof want);
  if (l->layers && strcmp(have, want) != 0)
    return cli_fail("%s holds a model of the layers %s, not %s; leave --layers out", path, have,
                    want);
  if (l->seed_given && l->seed != info->seed)
    return cli_fail("%s was begun with seed %" PRIu64 ", not %" PRIu64 "; leave --seed out", path,
                    info->seed, l->seed);
  memcpy(l->widths, info->widths, (info->layers + 1) * sizeof *info->widths);
  l->layers = info->layers;
  l->seed = info->seed;
  keep_training(l, &info->training);
  return 0;
}

/* The model of a file; sets the epoch to go on with. */
static int resume(struct train *t, struct learn *l, const char *path) {
  struct ct_model_info info;
  int rc = ct_model_load(t->load.dev, path, &t->model);
  if (rc < 0) {
    t->model = NULL;
    return cli_fail_device(t->load.dev, rc, "the model cannot be loaded");
  }
  rc = ct_model_info(t->model, &info);
  if (rc < 0) return cli_fail_device(t->load.dev, rc, path);
  t->first_epoch = info.epochs;
  t->first_step = info.steps;
  return take_over(l, path, &info);
}

static int run(struct train *t, struct learn *l, const char *from, struct ct_dataset *ds) {
  if (from && resume(t, l, from)) return 1;
  if (learn_open(l, ds)) return 1;
  if (from && l->epochs <= t->first_epoch)
    return cli_fail("%s has been trained for %" PRIu64
                    " epochs; give --epochs a larger number "
                    "than that to go on",
                    from, t->first_epoch);
  if (from ? learn_prepare(l, t->load.dev, t->model) : learn_create(l, t->load.dev, &t->model))
    return 1;
  return run_feeder(t);
}

int verb_train(int argc, char **argv) {
  static const struct cli_option options[] = {
      {"resume", "FILE",
       "Go on from a saved model, with the same bits as if it had never stopped (give the same "
       "--data, --samples and --epochs; batch and optimiser are in the file)",
       1, CLI_FILE_AT(struct options, resume, CLI_RESUME)}};
  static const struct cli_command command = {
      CLI_COMMAND(options), LEARN_SHARED,
      .doc =
          "Trains a multilayer perceptron on the device.\vThe --save file is written after every "
          "epoch, and when Ctrl-C stops the run; pressed again it ends the program.\n\n"
          "Example:\n  coltrain train --data digits --epochs 10 --save model.ctm\n"};
  struct options o = {.learn = LEARN_DEFAULTS};
  if (cli_options(&command, argc, argv, &o)) return 1;
  struct train t = {.l = &o.learn};
  struct ct_dataset ds = {.height = 0};
  t.ds = &ds;
  cli_catch_stop(); /* first: from here on Ctrl-C leaves a file */
  if (load_open(&t.load, o.learn.device, o.learn.json)) return 1;
  t.load.part[0] = (struct load_part){"submitting a training step", top_up, &t};
  t.load.take = take;
  t.load.arg = &t;
  live_open(&t.live, "train", o.learn.device, t.load.dev);
  const int status = run(&t, &o.learn, o.resume, &ds);
  live_close(&t.live);
  ct_model_free(t.model);
  load_close(&t.load);
  ct_dataset_free(&ds);
  return status;
}
