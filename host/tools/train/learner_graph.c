/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs of layers that are trained and served. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "asked.h"
#include "learner.h"

/* ---- Graphs ---- */

/* The network with its steps, by name; checked. */
static int describe(struct learner *l, ct_graph **g) {
  const struct learn *how = l->learn;
  const struct ct_optimise optimise = {.schedule = {.rate = (double)how->lr},
                                       .momentum = (double)how->momentum,
                                       .weight_decay = (double)how->weight_decay,
                                       .accumulate = how->accumulate};
  struct asked_name name = {
      .model = how->model, .rows = l->batch, .how = &optimise, .keep = how->keep};
  if (how->memory && asked_largest(l->dev, &name, how->memory)) return 1;
  l->batch = name.rows;
  l->keep = name.keep;
  if (how->keep.chooses)
    fprintf(stderr, "coltrain: activations are kept in %s, batches have %" PRIu32 " samples\n",
            asked_format_name(l->keep.format), l->batch);
  return asked_named(&name, g);
}

/* A tensor by name, and its numbers for each sample, which become what is not known so far. */
static int find(const struct learner *l, ct_graph *g, const char *name, size_t *numbers,
                int *tensor) {
  struct ct_tensor_info info;
  *tensor = ct_graph_find(g, name);
  if (*tensor < 0) return cli_fail("%s has no tensor %s", l->learn->model, name);
  ct_graph_tensor_info(g, *tensor, &info);
  const size_t have = info.elements / info.shape.dim[0];
  if (!*numbers) *numbers = have;
  if (have == *numbers) return 0;
  if (!l->learn->data)
    return cli_fail("%s: %s has %zu numbers for each sample, not %zu", l->learn->model, name, have,
                    *numbers);
  return cli_fail("%s does not fit %s: %s has %zu numbers for each sample, not %zu", l->learn->data,
                  l->learn->model, name, have, *numbers);
}

static int find_all(struct learner *l, ct_graph *trained, ct_graph *answers) {
  size_t one = 1;
  const bool trains = !l->learn->answers;
  return find(l, trained, "x", &l->features, &l->x) ||
         (trains && find(l, trained, "y", &l->classes, &l->y)) ||
         (trains && find(l, trained, "loss", &one, &l->loss)) ||
         find(l, answers, "x", &l->features, &l->asked) ||
         find(l, answers, "logits", &l->classes, &l->logits);
}

/* ---- Opening ---- */

static int fail_device(const struct learner *l, int rc) {
  return rc < 0 ? cli_fail_device(l->dev, rc, l->learn->model) : 0;
}

/* With the mantissas of the steps, whose weights it gets. */
static int create_answers(struct learner *l, const ct_graph *g) {
  struct ct_network_options options = {.mantissa = 0};
  struct ct_network_info info;
  if (l->steps) {
    if (fail_device(l, ct_network_info(l->steps, &info))) return 1;
    options.mantissa = info.mantissa;
  }
  return fail_device(l, ct_network_create(l->dev, g, &options, &l->answers));
}

/* Makes the network that answers, of the graph of the one that takes steps. */
static int make_answers(struct learner *l, ct_graph *trained) {
  ct_graph *answers = NULL;
  const int logits = ct_graph_find(trained, "logits");
  int status = logits < 0 ? cli_fail("%s has no tensor logits", l->learn->model)
                          : asked_graph(l->learn->model, trained, logits, 1, &answers);
  if (!status) status = find_all(l, trained, answers);
  if (!status) status = create_answers(l, answers);
  ct_graph_free(answers);
  return status;
}

/* By name: no network takes steps where none are wanted. */
static int open_named(struct learner *l, bool trains) {
  struct ct_network_options options = {.mantissa = 0};
  ct_graph *trained = NULL;
  int status = describe(l, &trained) || make_answers(l, trained);
  asked_keep_options(&l->keep, &options);
  if (!status && trains)
    status = fail_device(l, ct_network_create(l->dev, trained, &options, &l->steps)) ||
             fail_device(l, ct_network_draw(l->steps, l->learn->seed));
  ct_graph_free(trained);
  return status;
}

/* ---- Files ---- */

/* The rows of its steps. */
static int batch_of(struct learner *l, ct_graph *g) {
  struct ct_tensor_info x;
  const int tensor = ct_graph_find(g, "x");
  if (tensor < 0) return cli_fail("%s has no tensor x", l->learn->model);
  ct_graph_tensor_info(g, tensor, &x);
  l->batch = x.shape.dim[0];
  if (!l->learn->batch || l->learn->batch == l->batch) return 0;
  return cli_fail("%s has steps of %u samples; leave --batch out", l->learn->model,
                  (unsigned)l->batch);
}

/* What its updates are is part of it. */
static int check_file(struct learner *l) {
  const struct learn *how = l->learn;
  struct ct_network_info info;
  if (how->lr >= 0 || how->momentum >= 0 || how->weight_decay >= 0 || how->accumulate ||
      (how->keep.given && how->keep.format != CT_FORMAT_COMPRESSED) || how->memory)
    return cli_fail(
        "%s says itself how it is trained; leave --lr, --momentum, --weight-decay, --accumulate, "
        "--keep and --memory out",
        how->model);
  if (fail_device(l, ct_network_info(l->steps, &info))) return 1;
  l->accumulate = info.accumulate;
  if (info.changes || how->answers) return 0;
  return cli_fail("%s holds a network without updates: it cannot be trained", how->model);
}

/* A file says how it is kept compressed; --keep may say the same, with more bits for pages. One of
 * an older release lacks that: without an error training would go on as if there were none. */
static int check_kept(const struct learner *l) {
  const struct asked_keep *keep = &l->learn->keep;
  struct ct_network_info info;
  if (fail_device(l, ct_network_info(l->steps, &info))) return 1;
  if (keep->format && !info.bits)
    return cli_fail("%s keeps nothing compressed; leave --keep out", l->learn->model);
  if (keep->format && keep->error < info.error)
    return cli_fail("%s keeps activations compressed with an error of %g, not %g; leave --keep out",
                    l->learn->model, info.error, keep->error);
  if (l->learn->answers || keep->format || !info.bits || info.continued) return 0;
  return cli_fail(
      "%s keeps activations compressed, but does not say what error that may cost, as an older "
      "release has written it: give --keep compressed:ERROR again",
      l->learn->model);
}

static int load_file(struct learner *l) {
  struct ct_network_options options = {.mantissa = 0};
  asked_keep_options(&l->learn->keep, &options);
  const int rc = ct_network_load(l->dev, l->learn->model, &options, &l->steps);
  if (rc < 0) return cli_fail_device(l->dev, rc, "the network cannot be loaded");
  return check_file(l) || check_kept(l) || batch_of(l, ct_network_graph(l->steps));
}

static int open_file(struct learner *l, bool trains) {
  if (load_file(l) || make_answers(l, ct_network_graph(l->steps))) return 1;
  if (trains) return 0;
  ct_network_free(l->steps);
  l->steps = NULL;
  return 0;
}

int learner_graph_open(struct learner *l, bool trains) {
  return learn_is_file(l->learn->model) ? open_file(l, trains) : open_named(l, trains);
}

int learner_graph_load(struct learner *l, struct learn *learn, const char *path,
                       struct learner_past *past) {
  struct ct_network_info info;
  if (learn->layers || (learn->model && strcmp(learn->model, path) != 0))
    return cli_fail("%s says itself what the network is; leave --layers and --model out", path);
  learn->model = path;
  if (load_file(l) || fail_device(l, ct_network_info(l->steps, &info))) return 1;
  if (learn->seed_given && learn->seed != info.seed)
    return cli_fail("%s was begun with seed %llu, not %llu; leave --seed out", path,
                    (unsigned long long)info.seed, (unsigned long long)learn->seed);
  learn->seed = info.seed;
  learn->batch = l->batch;
  learn->accumulate = l->accumulate;
  *past = (struct learner_past){.steps = info.steps, .epochs = info.epochs};
  return 0;
}

static int resume(struct learner *l) {
  return make_answers(l, ct_network_graph(l->steps));
}

static int save(struct learner *l, const char *path, uint64_t epochs) {
  ct_network_set_epochs(l->steps, epochs);
  return ct_network_save(l->steps, path);
}

static void close_it(struct learner *l) {
  ct_network_free(l->steps);
  ct_network_free(l->answers);
}

/* ---- Training ---- */

static int batch_open(struct learner *l, struct learner_batch *b) {
  return ct_frame_create(l->steps, &b->frame);
}

static int batch_write(struct learner_batch *b, const float *x, const uint32_t *labels) {
  const struct learner *l = b->of;
  const size_t rows = l->batch;
  float *y = calloc(rows * l->classes, sizeof *y);
  if (!y) return CT_ERR_MEMORY;
  for (size_t i = 0; i < rows; ++i)
    y[i * l->classes + labels[i]] = 1.0f;
  int rc = ct_frame_write(b->frame, l->x, x, rows * l->features);
  if (rc >= 0) rc = ct_frame_write(b->frame, l->y, y, rows * l->classes);
  free(y);
  return rc;
}

static int batch_loss(struct learner_batch *b, float *loss) {
  return ct_frame_read(b->frame, b->of->loss, loss, 1);
}

/* Steps with dropout share their masks: the next has to wait for the one before, as for room. */
static int step(struct learner *l, struct learner_batch *b, uint64_t number, void *user) {
  const struct ct_run run = {.frame = b->frame, .queue = CT_TRAINING, .step = number, .user = user};
  const int rc = ct_network_submit(l->steps, &run, NULL);
  return rc == CT_ERR_BUSY ? CT_ERR_FULL : rc;
}

/* ---- Serving ---- */

static int publish(struct learner *l, void *user, ct_weights **weights) {
  return ct_network_publish_submit(l->steps, l->answers, user, weights, NULL);
}

static int load_weights(struct learner *l, const void *data, size_t size, ct_weights **weights) {
  return ct_network_load_weights(l->answers, data, size, weights);
}

static int places_open(struct learner *l, struct learner_places *p) {
  p->x = malloc(l->features * sizeof *p->x);
  p->frame = calloc(p->count, sizeof(ct_frame *));
  int rc = p->x && p->frame ? 0 : CT_ERR_MEMORY;
  for (size_t i = 0; i < p->count && rc >= 0; ++i)
    rc = ct_frame_create(l->answers, &p->frame[i]);
  return rc;
}

static int ask(struct learner_places *p, const struct learner_request *r) {
  const struct learner *l = p->of;
  const struct ct_run run = {.frame = p->frame[r->place],
                             .weights = r->weights,
                             .queue = CT_INFERENCE,
                             .cycle = r->cycle == CT_NO_CYCLE ? 0 : r->cycle,
                             .user = r->user};
  ct_dataset_values(l->ds, &l->ds->test, &r->sample, 1, p->x);
  const int rc = ct_frame_write(run.frame, l->asked, p->x, l->features);
  return rc < 0 ? rc : ct_network_submit(l->answers, &run, NULL);
}

static int answer(struct learner_places *p, size_t place, float *logits) {
  return ct_frame_read(p->frame[place], p->of->logits, logits, p->of->classes);
}

/* ---- Calls that wait ---- */

/* The event of what has the tag; others stay for later. */
static int await(const struct learner *l, uint64_t tag) {
  struct ct_event event = {.error = CT_OK};
  const int rc = ct_wait(l->dev, tag, &event, CT_FOREVER);
  return rc < 0 ? rc : event.error;
}

static int infer_one(const struct learner *l, const struct ct_run *run, const float *x,
                     float *logits) {
  uint64_t tag = 0;
  int rc = ct_frame_write(run->frame, l->asked, x, l->features);
  if (rc >= 0) rc = ct_network_submit(l->answers, run, &tag);
  if (rc >= 0) rc = await(l, tag);
  return rc < 0 ? rc : ct_frame_read(run->frame, l->logits, logits, l->classes);
}

/* The weights as they are, for the caller to free. */
static int publish_now(struct learner *l, ct_weights **weights) {
  uint64_t tag = 0;
  const int rc = ct_network_publish_submit(l->steps, l->answers, NULL, weights, &tag);
  return rc < 0 ? rc : await(l, tag);
}

static int infer(struct learner *l, ct_weights *weights, const float *x, size_t n, float *logits) {
  struct ct_run run = {.weights = weights, .queue = CT_INFERENCE};
  ct_weights *live = NULL;
  int rc = ct_frame_create(l->answers, &run.frame);
  if (rc >= 0 && !weights) {
    rc = publish_now(l, &live);
    run.weights = live;
  }
  for (size_t i = 0; i < n && rc >= 0; ++i)
    rc = infer_one(l, &run, x + i * l->features, logits + i * l->classes);
  ct_weights_free(live);
  ct_frame_free(run.frame);
  return rc < 0 ? rc : 0;
}

enum { CHUNK = 64 /* images that are unpacked to FP32 at once */ };

/* The first of the largest logits is the label. */
static int evaluate_some(struct learner *l, ct_weights *weights, const struct ct_dataset_part *part,
                         size_t from, size_t *right) {
  const size_t n = part->count - from < CHUNK ? part->count - from : CHUNK;
  float *x = malloc(n * l->features * sizeof *x), *z = malloc(n * l->classes * sizeof *z);
  uint32_t index[CHUNK] = {0};
  for (size_t i = 0; i < n; ++i)
    index[i] = (uint32_t)(from + i);
  int rc = x && z ? 0 : CT_ERR_MEMORY;
  if (rc >= 0) ct_dataset_values(l->ds, part, index, n, x);
  if (rc >= 0) rc = infer(l, weights, x, n, z);
  for (size_t i = 0; i < n && rc >= 0; ++i)
    *right += cli_argmax(z + i * l->classes, l->classes) == part->labels[from + i];
  free(x);
  free(z);
  return rc;
}

static int evaluate(struct learner *l, ct_weights *weights, const struct ct_dataset_part *part,
                    size_t *right) {
  ct_weights *live = NULL;
  int rc = weights ? 0 : publish_now(l, &live);
  *right = 0;
  for (size_t from = 0; from < part->count && rc >= 0; from += CHUNK)
    rc = evaluate_some(l, weights ? weights : live, part, from, right);
  ct_weights_free(live);
  return rc < 0 ? rc : 0;
}

static int crc(struct learner *l, uint32_t *crc32) {
  return cli_network_crc32(l->steps, crc32);
}

const struct learner_ops learner_graph = {batch_open,   batch_write, batch_loss, step,   publish,
                                          load_weights, places_open, ask,        answer, infer,
                                          evaluate,     crc,         save,       resume, close_it};
