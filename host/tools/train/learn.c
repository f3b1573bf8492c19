/* SPDX-License-Identifier: Apache-2.0 */
#include "learn.h"

#include "asked.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Options ---- */

enum { MAX_WIDTH = 1 << 20, MAX_BATCH = 1 << 16 };

size_t learn_layers_of(const char *text, uint32_t *widths) {
  const char *p = text;
  for (size_t n = 0; n <= CT_MAX_LAYERS; ++n) {
    char *end = NULL;
    const unsigned long width = strtoul(p, &end, 10);
    if (*p < '0' || *p > '9' || width < 1 || width > MAX_WIDTH) break;
    widths[n] = (uint32_t)width;
    if (!*end && n > 0) return n;
    if (*end != '-') break;
    p = end + 1;
  }
  return 0;
}

size_t learn_parse_layers(const char *option, const char *arg, const struct argp_state *state,
                          uint32_t *widths) {
  const size_t layers = learn_layers_of(arg, widths);
  if (!layers)
    argp_error(state,
               "%s: \"%s\" is not a list of 2..%d widths such as 64-128-64-10: inputs, hidden "
               "layers, classes",
               option, arg, CT_MAX_LAYERS + 1);
  return layers;
}

static void take_layers(void *input, const char *arg, const struct argp_state *state) {
  struct learn *l = input;
  l->layers = learn_parse_layers("--layers", arg, state, l->widths);
}

static void take_keep(void *input, const char *arg, const struct argp_state *state) {
  struct learn *l = input;
  l->keep = asked_take_keep(arg, state);
}

static void take_memory(void *input, const char *arg, const struct argp_state *state) {
  struct learn *l = input;
  l->memory = asked_take_size(arg, state);
}

static void take_model(void *input, const char *arg, const struct argp_state *state) {
  struct learn *l = input;
  (void)state;
  l->model = arg;
}

/* A rate that the library takes; at: which of them. */
static float rate_of(const struct argp_state *state, const char *option, const char *arg,
                     size_t at) {
  struct ct_rates t = {.lr = 0};
  const float rate = cli_real(state, option, arg, -INFINITY, INFINITY);
  memcpy((char *)&t + at, &rate, sizeof rate);
  if (ct_rates_check(&t)) argp_error(state, "%s: %s", option, ct_last_error(NULL));
  return rate;
}

static void take_lr(void *input, const char *arg, const struct argp_state *state) {
  struct learn *l = input;
  l->lr = rate_of(state, "--lr", arg, offsetof(struct ct_rates, lr));
}

static void take_momentum(void *input, const char *arg, const struct argp_state *state) {
  struct learn *l = input;
  l->momentum = rate_of(state, "--momentum", arg, offsetof(struct ct_rates, momentum));
}

static void take_decay(void *input, const char *arg, const struct argp_state *state) {
  struct learn *l = input;
  l->weight_decay = rate_of(state, "--weight-decay", arg, offsetof(struct ct_rates, weight_decay));
}

static void take_seed(void *input, const char *arg, const struct argp_state *state) {
  struct learn *l = input;
  l->seed = cli_count(state, "--seed", arg, 0, UINT64_MAX);
  l->seed_given = true;
}

const struct cli_option learn_options[LEARN_OPTIONS] = {
    {"save", "FILE", "Where the model goes, after every epoch; what was there is replaced",
     CLI_FILE_AT(struct learn, save, CLI_REPLACE)},
    {"json", "FILE", "Write the results (- for standard output)",
     CLI_FILE_AT(struct learn, json, CLI_WRITE)},
    {"data", "NAME",
     "digits (the default), fashion-mnist (of lenet5), random-32x32x3 (of resnet8, resnet20 and "
     "vgg) or "
     "another size, a folder of IDX files, CIFAR batches or .npy files, or an .npz file of such "
     "arrays",
     CLI_FILE_AT(struct learn, data, CLI_READ)},
    {"layers", "W-W-W", "Widths (inputs-128-64-classes)", .call = take_layers},
    {"model", "MODEL",
     "A network in place of a perceptron: lenet5, resnet8, resnet20 or vgg; for colocate also a "
     "file "
     "that --save has written of one, with --data",
     .call = take_model},
    {"batch", "N", "Samples of a training step (32; of a MODEL 16)",
     CLI_COUNT_AT(struct learn, batch, 1, MAX_BATCH)},
    {"accumulate", "N",
     "Steps of a MODEL after which weights are updated once, by the mean of their gradients (1)",
     CLI_COUNT_AT(struct learn, accumulate, 1, CT_MOST_ACCUMULATED)},
    {"keep", "FORMAT", ASKED_KEEP "of a MODEL (fp32)", .call = take_keep},
    {"memory", "SIZE",
     "Of a MODEL: the largest batch whose steps fit so much device memory, such as 64MiB",
     .call = take_memory},
    {"epochs", "N", "Passes over the training data, in all (digits: 5, others: 1)",
     CLI_COUNT_AT(struct learn, epochs, 1, 1000000)},
    {"lr", "L", "Learning rate (digits: 0.2, others: 0.05)", .call = take_lr},
    {"momentum", "M", "Momentum (digits: 0.7, others: 0.9)", .call = take_momentum},
    {"weight-decay", "W", "Weight decay (0)", .call = take_decay},
    {"seed", "S", "Decides weights, shuffles and arrivals (1)", .call = take_seed},
    {"samples", "N", "At most so many training and test images (all)",
     CLI_COUNT_AT(struct learn, samples, 1, UINT32_MAX)},
    CLI_DEVICE_AT(struct learn, device)};

/* ---- Data ---- */

/* What fits the network. */
static const char *usual_data(const char *model) {
  if (!model) return "digits";
  return strcmp(model, "lenet5") ? "random-32x32x3" : "fashion-mnist";
}

bool learn_is_file(const char *model) {
  static const char *const names[] = {"lenet5", "resnet8", "resnet20", "vgg"};
  for (size_t i = 0; model && i < sizeof names / sizeof *names; ++i)
    if (!strcmp(model, names[i])) return false;
  return model;
}

int learn_check_model(const char *model) {
  if (!learn_is_file(model) || !access(model, F_OK)) return 0;
  return cli_fail("there is no network %s: lenet5, resnet8, resnet20, vgg or a file", model);
}

bool learn_holds_network(const char *path) {
  static const char magic[12] = "COLTRAIN\x02"; /* and the format, little-endian */
  char head[sizeof magic] = "";
  struct stat st;
  if (stat(path, &st) || !S_ISREG(st.st_mode)) return false; /* a pipe can be read but once */
  FILE *file = fopen(path, "rb");
  if (!file) return false;
  const size_t got = fread(head, 1, sizeof head, file);
  fclose(file);
  return got == sizeof head && !memcmp(head, magic, sizeof magic);
}

static void fill_in(struct learn *l, const struct ct_dataset *ds) {
  const bool digits = strcmp(l->data, "digits") == 0;
  if (l->layers == 0 && !l->model) {
    l->widths[0] = ds->features;
    l->widths[1] = 128;
    l->widths[2] = 64;
    l->widths[3] = ds->classes;
    l->layers = 3;
  }
  if (l->epochs == 0) l->epochs = digits ? 5 : 1;
  if (learn_is_file(l->model)) return;
  if (l->batch == 0) l->batch = l->model ? 16 : 32;
  if (l->accumulate == 0) l->accumulate = 1;
  if (l->lr < 0) l->lr = digits ? 0.2f : 0.05f;
  if (l->momentum < 0) l->momentum = digits ? 0.7f : 0.9f;
  if (l->weight_decay < 0) l->weight_decay = 0;
}

int learn_open(struct learn *l, struct ct_dataset *ds) {
  char why[CT_DATASET_WHY];
  if (l->model && l->layers)
    return cli_fail("--model and --layers: one of them says what the network is");
  if (l->accumulate > 1 && !l->model) return cli_fail("--accumulate is for networks: give --model");
  if (l->keep.given && !l->model) return cli_fail("--keep is for networks: give --model");
  if (asked_check_keep(&l->keep, l->memory)) return 1;
  if (l->memory && !l->model) return cli_fail("--memory is for networks: give --model");
  if (l->memory && l->batch) return cli_fail("--memory and --batch: one of them says the batch");
  if (learn_check_model(l->model)) return 1;
  if (!l->data && learn_is_file(l->model))
    return cli_fail("%s: give --data, the data set that it is for", l->model);
  if (!l->data) l->data = usual_data(l->model);
  if (ct_dataset_open(ds, l->data, l->seed, l->samples, why, sizeof why))
    return cli_fail("%s", why);
  fill_in(l, ds);
  if (l->model || (l->widths[0] == ds->features && l->widths[l->layers] == ds->classes)) return 0;
  char text[256];
  learn_layers_text(l->widths, l->layers, text, sizeof text);
  return cli_fail("the layers %s do not fit %s, which has %" PRIu32 " inputs and %" PRIu32
                  " classes: the first width must be %" PRIu32 ", the last %" PRIu32,
                  text, l->data, ds->features, ds->classes, ds->features, ds->classes);
}

uint64_t learn_steps(uint32_t batch, const struct ct_dataset *ds) {
  return (ds->train.count + batch - 1) / batch;
}

/* ---- Models ---- */

int learn_prepare(const struct learn *l, ct_device *dev, ct_model *model) {
  const struct ct_training training = {
      .batch = l->batch,
      .rates = {.lr = l->lr, .momentum = l->momentum, .weight_decay = l->weight_decay}};
  const int rc = ct_model_training(model, &training);
  return rc < 0 ? cli_fail_device(dev, rc, "the model cannot be trained on this device") : 0;
}

int learn_create(const struct learn *l, ct_device *dev, ct_model **model) {
  char text[256];
  *model = NULL;
  const int rc = ct_model_create(dev, l->widths, l->layers, l->seed, model);
  if (rc >= 0) return learn_prepare(l, dev, *model);
  learn_layers_text(l->widths, l->layers, text, sizeof text);
  *model = NULL;
  return cli_fail("a model of the layers %s cannot be made: %s", text,
                  *ct_last_error(dev) ? ct_last_error(dev) : ct_strerror(rc));
}

void learn_name(const struct learn *l, char *text, size_t size) {
  if (l->model)
    snprintf(text, size, "%s", l->model);
  else
    learn_layers_text(l->widths, l->layers, text, size);
}

void learn_layers_text(const uint32_t *widths, size_t layers, char *text, size_t size) {
  size_t len = 0;
  text[0] = 0;
  for (size_t i = 0; i <= layers && len < size; ++i) {
    const int n = snprintf(text + len, size - len, "%s%" PRIu32, i ? "-" : "", widths[i]);
    len += n > 0 ? (size_t)n : size;
  }
}

/* The decimal number that a float was read from, not its 53-bit neighbour; null if it was not
 * given.
 */
static json_t *json_float(float x) {
  char text[32];
  if (x < 0) return json_null();
  snprintf(text, sizeof text, "%.7g", (double)x);
  return json_real(strtod(text, NULL));
}

void learn_json(const struct learn *l, json_t *object) {
  char text[256];
  learn_name(l, text, sizeof text);
  json_object_update_new(
      object,
      json_pack("{s:s, s:s, s:s, s:I, s:o, s:I, s:o, s:o, s:o, s:I}", "device", l->device, "data",
                l->data, "layers", text, "batch", (json_int_t)l->batch, "accumulate",
                l->accumulate ? json_integer(l->accumulate) : json_null(), "epochs",
                (json_int_t)l->epochs, "lr", json_float(l->lr), "momentum", json_float(l->momentum),
                "weight_decay", json_float(l->weight_decay), "seed", (json_int_t)l->seed));
}

/* ---- Evaluation ---- */

enum { CHUNK = 256 /* images that are unpacked to FP32 at once */, ENDS = 10 };

double learn_mean_loss(const float *losses, uint64_t steps, bool last) {
  const uint64_t half = (steps + 1) / 2, n = half < ENDS ? half : ENDS;
  double sum = 0;
  for (uint64_t i = 0; i < n; ++i)
    sum += (double)losses[last ? steps - 1 - i : i];
  return n ? sum / (double)n : (double)NAN;
}

int learn_evaluate(ct_model *model, ct_weights *weights, const struct ct_dataset *ds,
                   const struct ct_dataset_part *part, size_t *right) {
  int rc = 0;
  uint32_t index[CHUNK], labels[CHUNK];
  float *x = malloc(CHUNK * sizeof *x * ds->features);
  if (!x) return CT_ERR_MEMORY;
  *right = 0;
  for (size_t from = 0; rc >= 0 && from < part->count; from += CHUNK) {
    const size_t n = part->count - from < CHUNK ? part->count - from : CHUNK;
    size_t hits = 0;
    for (size_t i = 0; i < n; ++i) {
      index[i] = (uint32_t)(from + i);
      labels[i] = part->labels[from + i];
    }
    ct_dataset_values(ds, part, index, n, x);
    rc = ct_model_evaluate(model, weights, x, labels, n, &hits);
    *right += hits;
  }
  free(x);
  return rc < 0 ? rc : 0;
}
