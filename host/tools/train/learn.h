/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What training needs and both `train` and `colocate` have: options, data, a model.
 */
#ifndef LEARN_H
#define LEARN_H

#include "cli.h"
#include "coltrain/graph.h"
#include "asked.h"
#include "ct_dataset.h"

struct learn {
  const char *data;  /* NULL: not given */
  const char *model; /* a graph: its name, or its file; NULL: a perceptron */
  const char *device, *json, *save;
  uint32_t widths[CT_MAX_LAYERS + 1];
  size_t layers;          /* 0: not given */
  uint64_t epochs;        /* 0: not given */
  uint32_t batch;         /* 0: not given */
  uint32_t accumulate;    /* of a graph; 0: not given */
  struct asked_keep keep; /* of a graph */
  uint64_t memory;        /* of a graph: the batch is the largest that fits; 0: not given */
  float lr, momentum, weight_decay; /* below 0: not given */
  uint64_t seed;
  bool seed_given;
  bool answers; /* alone: a network needs neither loss nor updates */
  size_t samples;
};

/* Options of a verb whose struct begins with a struct learn; set it to LEARN_DEFAULTS first. */
enum { LEARN_OPTIONS = 16 };
extern const struct cli_option learn_options[LEARN_OPTIONS];
#define LEARN_SHARED .shared = learn_options, .shared_count = LEARN_OPTIONS
#define LEARN_DEFAULTS \
  { .device = CLI_DEVICE, .lr = -1.0f, .momentum = -1.0f, .weight_decay = -1.0f, .seed = 1 }

/* Widths such as "64-128-64-10" into CT_MAX_LAYERS + 1 places; returns the layers, 0 for a bad
 * list.
 */
size_t learn_layers_of(const char *text, uint32_t *widths);

/* The same of an option: a bad list is a usage error. */
size_t learn_parse_layers(const char *option, const char *arg, const struct argp_state *state,
                          uint32_t *widths);

/* Opens the data and fills in what depends on it and was not given: data, layers, epochs, batch,
 * accumulation, learning rate, momentum, weight decay. A file of a network has the last five
 * itself. 0, or 1 after a sentence. */
int learn_open(struct learn *l, struct ct_dataset *ds);

/* A new model, ready for training. *model is NULL on failure; 0, or 1 after a sentence. */
int learn_create(const struct learn *l, ct_device *dev, ct_model **model);

/* Tells a model batch size and optimiser; 0, or 1 after a sentence. */
int learn_prepare(const struct learn *l, ct_device *dev, ct_model *model);

/* Steps of an epoch: every sample at least once; the last batch is completed with the first
 * samples of the epoch. */
uint64_t learn_steps(uint32_t batch, const struct ct_dataset *ds);

/* Whether a network is a file, not one by name; whether there is such a network: 0, or 1 after a
 * sentence. NULL, a perceptron, is neither file nor wrong. */
bool learn_is_file(const char *model);
int learn_check_model(const char *model);

/* Whether a file is one of a network, format 2; what is wrong with it the library says. Of a pipe
 * nothing is read: it holds a perceptron. */
bool learn_holds_network(const char *path);

/* What the network is called: its name, or "64-128-64-10". */
void learn_name(const struct learn *l, char *text, size_t size);

/* "64-128-64-10" */
void learn_layers_text(const uint32_t *widths, size_t layers, char *text, size_t size);

/* Puts data, layers, batch, optimiser and seed into an object. */
void learn_json(const struct learn *l, json_t *object);

/* Mean loss of the first or last ten of so many steps, or of half of them if there are fewer; NaN
 * without any. */
double learn_mean_loss(const float *losses, uint64_t steps, bool last);

/* How many of a part's images these weights (NULL: the live ones) classify rightly; a ct_error. */
int learn_evaluate(ct_model *model, ct_weights *weights, const struct ct_dataset *ds,
                   const struct ct_dataset_part *part, size_t *right);

#endif
