/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli.h"
#include "ct_npy.h"
#include "learner.h"

struct options {
  const char *device, *model, *data, *input, *output;
};

static void end(void *input, const struct argp_state *state) {
  const struct options *o = input;
  if (!o->model) argp_error(state, "--model FILE is missing: a model that train has saved");
  if (!o->data == !o->input) argp_error(state, "give either --data, or --input with --output");
  if (!o->input != !o->output) argp_error(state, "--input and --output belong together");
}

/* The seed of the model splits the data, so that its test images are those it was not trained on.
 */
static int test_part(const struct options *o, ct_device *dev, ct_model *model,
                     const struct ct_model_info *info) {
  struct ct_dataset ds;
  struct learn l = LEARN_DEFAULTS;
  size_t right = 0;
  l.data = o->data;
  l.seed = info->seed;
  l.layers = info->layers;
  for (size_t i = 0; i <= info->layers; ++i)
    l.widths[i] = info->widths[i];
  int status = learn_open(&l, &ds);
  if (status == 0) {
    const int rc = learn_evaluate(model, NULL, &ds, &ds.test, &right);
    if (rc < 0)
      status = cli_fail_device(dev, rc, "evaluating on the test images");
    else
      printf("%zu of %zu test images right: accuracy %.2f %%\n", right, ds.test.count,
             100 * (double)right / (double)ds.test.count);
  }
  ct_dataset_free(&ds);
  return status;
}

static int matrix(const struct options *o, ct_device *dev, ct_model *model,
                  const struct ct_model_info *info, const struct ct_npy *in) {
  char why[CT_NPY_WHY];
  const uint32_t inputs = info->widths[0], classes = info->widths[info->layers];
  if (in->cols != inputs)
    return cli_fail("%s has %zu columns, but %s takes %" PRIu32 " inputs", o->input, in->cols,
                    o->model, inputs);
  float *logits = calloc(in->rows, classes * sizeof *logits);
  if (!logits) return cli_fail("no memory for %zu x %" PRIu32 " results", in->rows, classes);
  int status = 0;
  const int rc = ct_model_infer(model, NULL, in->data, in->rows, logits);
  if (rc < 0)
    status = cli_fail_device(dev, rc, o->device);
  else if (ct_npy_write(o->output, logits, in->rows, classes, why, sizeof why))
    status = cli_fail("%s", why);
  else
    printf("%zu x %" PRIu32 " logits written to %s\n", in->rows, classes, o->output);
  free(logits);
  return status;
}

/* ---- Networks ---- */

static int network_data(struct learner *l, struct learn *how, struct ct_dataset *ds) {
  size_t right = 0;
  if (learn_open(how, ds) || learner_resume(l, ds)) return 1;
  const int rc = learner_evaluate(l, NULL, &ds->test, &right);
  if (rc < 0) return cli_fail_device(l->dev, rc, "evaluating on the test images");
  printf("%zu of %zu test images right: accuracy %.2f %%\n", right, ds->test.count,
         100 * (double)right / (double)ds->test.count);
  return 0;
}

static int network_matrix(const struct options *o, struct learner *l, const struct ct_npy *in) {
  char why[CT_NPY_WHY];
  if (learner_resume(l, NULL)) return 1;
  if (in->cols != l->features)
    return cli_fail("%s has %zu columns, but %s takes %zu inputs", o->input, in->cols, o->model,
                    l->features);
  float *logits = calloc(in->rows, l->classes * sizeof *logits);
  if (!logits) return cli_fail("no memory for %zu x %zu results", in->rows, l->classes);
  int status = 0;
  const int rc = learner_infer(l, NULL, in->data, in->rows, logits);
  if (rc < 0)
    status = cli_fail_device(l->dev, rc, o->device);
  else if (ct_npy_write(o->output, logits, in->rows, l->classes, why, sizeof why))
    status = cli_fail("%s", why);
  else
    printf("%zu x %zu logits written to %s\n", in->rows, l->classes, o->output);
  free(logits);
  return status;
}

static int network(const struct options *o, ct_device *dev) {
  struct learn how = LEARN_DEFAULTS;
  struct learner l = {.ops = NULL};
  struct learner_past past;
  struct ct_dataset ds = {0};
  struct ct_npy in = {0, 0, NULL};
  char why[CT_NPY_WHY];
  how.data = o->data;
  how.answers = true;
  int status = learner_load(&l, &how, dev, o->model, &past);
  if (!status && o->data) {
    status = network_data(&l, &how, &ds);
  } else if (!status) {
    status = ct_npy_read(o->input, &in, why, sizeof why) ? cli_fail("%s", why)
                                                         : network_matrix(o, &l, &in);
  }
  ct_npy_free(&in);
  learner_close(&l);
  ct_dataset_free(&ds);
  return status;
}

static int run(const struct options *o, ct_device *dev, ct_model **model) {
  struct ct_model_info info;
  struct ct_npy in = {0, 0, NULL};
  char why[CT_NPY_WHY];
  int rc = ct_model_load(dev, o->model, model);
  if (rc < 0) *model = NULL;
  if (rc >= 0) rc = ct_model_info(*model, &info);
  if (rc < 0) return cli_fail_device(dev, rc, "the model cannot be loaded");
  if (o->data) return test_part(o, dev, *model, &info);
  if (ct_npy_read(o->input, &in, why, sizeof why)) return cli_fail("%s", why);
  const int status = matrix(o, dev, *model, &info, &in);
  ct_npy_free(&in);
  return status;
}

int verb_infer(int argc, char **argv) {
  static const struct cli_option options[] = {
      {"output", "Y.npy", "Where the logits go, one row for each sample",
       CLI_FILE_AT(struct options, output, CLI_WRITE)},
      {"input", "X.npy", "A float32 matrix, one sample a row",
       CLI_FILE_AT(struct options, input, CLI_READ)},
      {"model", "FILE", "A model or network that train has saved",
       CLI_FILE_AT(struct options, model, CLI_READ)},
      {"data", "NAME", "Accuracy on the test part of a data set, named as for train",
       CLI_TEXT_AT(struct options, data)},
      CLI_DEVICE_AT(struct options, device)};
  static const struct cli_command command = {CLI_COMMAND(options), .end = end,
                                             .doc =
                                                 "Runs a saved model on a data set or on a matrix."
                                                 "\vExample:\n  coltrain infer --model model.ctm "
                                                 "--data digits\n"};
  struct options o = {.device = CLI_DEVICE};
  if (cli_options(&command, argc, argv, &o)) return 1;
  ct_device *dev;
  ct_model *model = NULL;
  if (cli_open(o.device, &dev)) return 1;
  const int status = learn_holds_network(o.model) ? network(&o, dev) : run(&o, dev, &model);
  ct_model_free(model);
  ct_close(dev);
  return status;
}
