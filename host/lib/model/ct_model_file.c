/* SPDX-License-Identifier: Apache-2.0 */
/* Model files: docs/model-format.md says what is in them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ct_file.h"
#include "ct_model.h"

/* Where things are in a file of format version 1; the widths follow the header. */
enum {
  AT_LAYERS = 16,
  AT_BATCH = 20,
  AT_SEED = 24,
  AT_STEPS = 32,
  AT_EPOCHS = 40,
  AT_RATES = 48, /* learning rate, momentum, weight decay */
  HEADER = 64
};

static size_t width_at(uint32_t l) {
  return HEADER + 4 * (size_t)l;
}

static size_t file_size(const struct ct_mlp *net, size_t numbers) {
  return width_at(net->layers + 1) + 4 * numbers + CT_FILE_SUM;
}

/* ---- Saving -------------------------------------------------------------------------------- */

/* The bytes of a file that says that, but for its numbers, which begin at *numbers. NULL: no
 * memory. */
static uint8_t *make_file(const struct ct_model_file *f, size_t *size, uint8_t **numbers) {
  *size = file_size(&f->net, ct_numbers_count(&f->net));
  uint8_t *p = calloc(1, *size);
  if (!p) return NULL;
  ct_file_begin(p, CT_FILE_MODEL);
  ct_file_put(p + AT_LAYERS, f->net.layers, 4);
  ct_file_put(p + AT_BATCH, f->training.batch, 4);
  ct_file_put(p + AT_SEED, f->seed, 8);
  ct_file_put(p + AT_STEPS, f->steps, 8);
  ct_file_put(p + AT_EPOCHS, f->epochs, 8);
  ct_file_put_float(p + AT_RATES, f->training.rates.lr);
  ct_file_put_float(p + AT_RATES + 4, f->training.rates.momentum);
  ct_file_put_float(p + AT_RATES + 8, f->training.rates.weight_decay);
  for (uint32_t l = 0; l <= f->net.layers; ++l)
    ct_file_put(p + width_at(l), f->net.width[l], 4);
  *numbers = p + width_at(f->net.layers + 1);
  return p;
}

static int save(ct_model *m, const struct ct_numbers *x, const char *path) {
  const struct ct_model_file f = {.net = m->net,
                                  .seed = m->live->seed,
                                  .steps = m->live->steps,
                                  .epochs = m->live->epochs,
                                  .training = m->training};
  size_t size = 0;
  uint8_t *numbers = NULL, *data = make_file(&f, &size, &numbers);
  if (!data) return ct_fail(m->dev, CT_ERR_MEMORY, "no memory to save the model");
  ct_file_put_floats(numbers, x->all, x->count);
  const int err = ct_file_write(m->dev, path, data, size);
  free(data);
  return err;
}

int ct_model_save(ct_model *m, const char *path) {
  int err = ct_check_model(m);
  if (err) return err;
  CT_NEED(m->dev, path);
  struct ct_numbers *x = NULL;
  err = ct_model_numbers(m, "saved", &x);
  if (!err && x) err = save(m, x, path);
  ct_numbers_free(x);
  return err;
}

/* ---- Loading ------------------------------------------------------------------------------- */

/* Layers and widths, as far as they are there. */
static void read_widths(const uint8_t *p, size_t size, struct ct_mlp *net) {
  net->layers = size < HEADER ? 0 : (uint32_t)ct_file_get(p + AT_LAYERS, 4);
  for (uint32_t l = 0; l <= net->layers && l <= CT_MLP_LAYERS && size >= width_at(l + 1); ++l)
    net->width[l] = (uint32_t)ct_file_get(p + width_at(l), 4);
}

static bool has_widths(const struct ct_mlp *net, size_t size) {
  return size >= width_at(net->layers + 1);
}

bool ct_model_file_is_read(const uint8_t *p, size_t size) {
  struct ct_mlp net = {.layers = 0};
  read_widths(p, size, &net);
  if (size < HEADER) return false;
  if (net.layers < 1 || net.layers > CT_MLP_LAYERS) return true;
  return has_widths(&net, size) &&
         (ct_mlp_check(&net, NULL) || size > file_size(&net, ct_numbers_count(&net)));
}

static int check_header(ct_device *dev, const char *path, size_t size, const struct ct_mlp *net) {
  char text[256] = "";
  const struct ct_why why = {text, sizeof text};
  const bool layers = net->layers >= 1 && net->layers <= CT_MLP_LAYERS;
  if (size >= HEADER && !layers)
    return ct_fail(dev, CT_ERR_FORMAT, "%s claims %u layers; a model has 1..%d", path, net->layers,
                   CT_MLP_LAYERS);
  if (size < HEADER || !has_widths(net, size))
    return ct_fail(dev, CT_ERR_FORMAT,
                   "%s was cut short: a model file goes on after these %zu bytes", path, size);
  return ct_mlp_check(net, &why) ? ct_fail(dev, CT_ERR_FORMAT, "%s: %s", path, text) : CT_OK;
}

/* Its length follows from its header. */
static int check_length(ct_device *dev, const char *path, size_t size, size_t want) {
  if (size < want)
    return ct_fail(dev, CT_ERR_FORMAT, "%s was cut short: it has %zu bytes, its header says %zu",
                   path, size, want);
  if (size > want)
    return ct_fail(dev, CT_ERR_FORMAT, "%s goes on after the %zu bytes that its header says", path,
                   want);
  return CT_OK;
}

/* Weights, biases and their velocities. */
static int check_numbers(ct_device *dev, const char *path, const struct ct_model_file *f) {
  const size_t count = ct_numbers_count(&f->net);
  for (size_t i = 0; i < count; ++i)
    if (isnan(ct_file_get_float(f->numbers + i * sizeof(float))))
      return ct_fail(dev, CT_ERR_FORMAT,
                     "%s has NaN among its weights, biases and velocities (number %zu), "
                     "as where training has diverged",
                     path, i);
  return CT_OK;
}

int ct_model_file_parse(ct_device *dev, const char *path, const uint8_t *p, size_t size,
                        struct ct_model_file *f) {
  *f = (struct ct_model_file){.numbers = NULL};
  read_widths(p, size, &f->net);
  int err = check_header(dev, path, size, &f->net);
  if (!err) err = check_length(dev, path, size, file_size(&f->net, ct_numbers_count(&f->net)));
  if (err) return err;
  if (!ct_file_is_sealed(p, size))
    return ct_fail(dev, CT_ERR_FORMAT, "%s is damaged: the checksum does not match", path);
  f->seed = ct_file_get(p + AT_SEED, 8);
  f->steps = ct_file_get(p + AT_STEPS, 8);
  f->epochs = ct_file_get(p + AT_EPOCHS, 8);
  f->training =
      (struct ct_training){.batch = (uint32_t)ct_file_get(p + AT_BATCH, 4),
                           .rates = {.lr = ct_file_get_float(p + AT_RATES),
                                     .momentum = ct_file_get_float(p + AT_RATES + 4),
                                     .weight_decay = ct_file_get_float(p + AT_RATES + 8)}};
  f->numbers = p + width_at(f->net.layers + 1);
  return check_numbers(dev, path, f);
}

/* From a file in memory to the device. */
static int decode(ct_device *dev, const struct ct_model_file *f, ct_model **model) {
  struct ct_numbers *x = ct_numbers_alloc(&f->net);
  if (!x) return ct_fail(dev, CT_ERR_MEMORY, "no memory for the model");
  ct_file_get_floats(f->numbers, x->all, x->count);
  const int err = ct_model_alloc(dev, &f->net, x, model);
  if (err) return err;
  (*model)->live->seed = f->seed;
  (*model)->live->steps = f->steps;
  (*model)->live->epochs = f->epochs;
  (*model)->training = f->training;
  return CT_OK;
}

int ct_model_load(ct_device *dev, const char *path, ct_model **model) {
  struct ct_model_file f;
  uint8_t *data = NULL;
  size_t size = 0;
  uint32_t format = 0;
  if (model) *model = NULL;
  int err = ct_check_device(dev);
  if (err) return err;
  CT_NEED(dev, path);
  CT_NEED(dev, model);
  err = ct_file_read(dev, path, &data, &size);
  if (!err) err = ct_file_check(dev, path, data, size, &format);
  if (!err && format != CT_FILE_MODEL)
    err = ct_fail(dev, CT_ERR_FORMAT,
                  "%s has format version %u: it holds a network, which ct_network_load() reads",
                  path, format);
  if (!err) err = ct_model_file_parse(dev, path, data, size, &f);
  if (!err) err = decode(dev, &f, model);
  free(data);
  return err;
}
