/* SPDX-License-Identifier: Apache-2.0 */
#include "sweep.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "asked.h"

int sweep_fail(struct sweep *s, int error, const char *what) {
  sweep_view_leave(s);
  return cli_fail_device(s->dev, error, what);
}

/* ---- Members ------------------------------------------------------------------------------- */

/* What is not swept has the value of its own option. */
static double usual(const struct learn *l, enum sweep_key key) {
  switch (key) {
    case SWEEP_LR:
      return (double)l->lr;
    case SWEEP_MOMENTUM:
      return (double)l->momentum;
    case SWEEP_DECAY:
      return (double)l->weight_decay;
    case SWEEP_BATCH:
      return l->batch;
    case SWEEP_SEED:
      return (double)l->seed;
    default:
      return 0;
  }
}

/* The combination of that number: the last key changes fastest. */
static void combine(const struct sweep *s, size_t number, double value[SWEEP_KEYS]) {
  for (size_t k = SWEEP_KEYS; k-- > 0;) {
    const size_t count = s->o->axis[k].count;
    value[k] = count ? s->o->axis[k].value[number % count] : usual(s->l, (enum sweep_key)k);
    if (count) number /= count;
  }
}

/* Members of the same batch size and seed see the same batches. */
static struct sweep_feed *feed_for(struct sweep *s, const double value[SWEEP_KEYS]) {
  const uint32_t batch = (uint32_t)value[SWEEP_BATCH];
  const uint64_t seed = s->o->axis[SWEEP_SEED].count ? (uint64_t)value[SWEEP_SEED] : s->l->seed;
  for (size_t i = 0; i < s->feeds; ++i)
    if (s->feed[i].order.batch == batch && s->feed[i].order.seed == seed) return &s->feed[i];
  struct sweep_feed *f = &s->feed[s->feeds++];
  return sweep_feed_open(f, &s->data, batch, seed) ? NULL : f;
}

static int refuse(const struct sweep *s, const ct_graph *g) {
  char name[256];
  learn_name(s->l, name, sizeof name);
  return cli_fail("%s: %s", name, g ? ct_graph_error(g) : "no memory for the network");
}

/* The network with its updates, checked; free it either way. */
static int describe(const struct sweep *s, uint32_t batch, const struct ct_optimise *how,
                    ct_graph **g) {
  const struct learn *l = s->l;
  if (l->model)
    return asked_named(
        &(struct asked_name){.model = l->model, .rows = batch, .how = how, .keep = l->keep}, g);
  int err = ct_graph_create(g);
  if (!err) err = ct_graph_mlp(*g, l->widths, l->layers, batch, true);
  if (!err) err = ct_graph_optimise(*g, ct_graph_find(*g, "loss"), how);
  if (!err) err = ct_graph_check(*g);
  return err ? refuse(s, *g) : 0;
}

static struct ct_optimise how_of(const struct sweep *s, const double value[SWEEP_KEYS]) {
  return (struct ct_optimise){.optimiser = (enum ct_optimiser)value[SWEEP_OPTIMISER],
                              .schedule = {.rate = value[SWEEP_LR]},
                              .momentum = value[SWEEP_MOMENTUM],
                              .weight_decay = value[SWEEP_DECAY],
                              .beta1 = value[SWEEP_BETA1],
                              .beta2 = value[SWEEP_BETA2],
                              .epsilon = value[SWEEP_EPSILON],
                              .accumulate = s->l->accumulate};
}

static int join(struct sweep *s, struct sweep_member *m) {
  const struct ct_optimise how = how_of(s, m->value);
  ct_graph *g = NULL;
  int status = describe(s, (uint32_t)m->value[SWEEP_BATCH], &how, &g);
  const uint64_t seed = s->o->axis[SWEEP_SEED].count ? (uint64_t)m->value[SWEEP_SEED] : s->l->seed;
  const struct ct_member member = {.graph = g, .feed = {sweep_feed_write, m->feed}, .seed = seed};
  if (!status && ct_array_join(s->array, &member, &m->number))
    status = cli_fail("a member cannot join: %s", ct_last_error(s->dev));
  ct_graph_free(g);
  return status;
}

static int join_all(struct sweep *s) {
  for (size_t i = 0; i < s->members; ++i) {
    struct sweep_member *m = &s->member[i];
    *m = (struct sweep_member){.loss = NAN, .accuracy = NAN, .by_epoch = json_array()};
    combine(s, i, m->value);
    m->feed = feed_for(s, m->value);
    if (!m->feed) return cli_fail("no memory for the batches");
    if (join(s, m)) return 1;
  }
  return 0;
}

/* Samples have as many numbers as the network's input. */
static int check_data(struct sweep *s, ct_graph *g) {
  struct ct_tensor_info x;
  s->asked = ct_graph_find(g, "x");
  s->logits = ct_graph_find(g, "logits");
  ct_graph_tensor_info(g, s->asked, &x);
  if (x.elements == (uint64_t)SWEEP_ROWS * s->data.features) return 0;
  return cli_fail("%s does not fit the network: it has %" PRIu32
                  " numbers for each sample, not %" PRIu64,
                  s->l->data, s->data.features, x.elements / SWEEP_ROWS);
}

/* What answers take of the network, for evaluation. */
static int open_answers(struct sweep *s) {
  ct_graph *trained = NULL, *g = NULL;
  double value[SWEEP_KEYS];
  combine(s, 0, value);
  const struct ct_optimise how = how_of(s, value);
  int status = describe(s, SWEEP_ROWS, &how, &trained);
  if (!status)
    status = asked_graph(s->l->model ? s->l->model : "the perceptron", trained,
                         ct_graph_find(trained, "logits"), SWEEP_ROWS, &g);
  if (!status) status = check_data(s, g);
  if (!status && ct_network_create(s->dev, g, NULL, &s->answers))
    status = cli_fail("the network cannot be evaluated: %s", ct_last_error(s->dev));
  ct_graph_free(trained);
  ct_graph_free(g);
  return status;
}

/* ---- Epochs -------------------------------------------------------------------------------- */

static struct sweep_member *find(struct sweep *s, uint32_t number) {
  for (size_t i = 0; i < s->members; ++i)
    if (s->member[i].number == number) return &s->member[i];
  return NULL;
}

static int ended(void *arg, const struct ct_member_run *run) {
  struct sweep *s = arg;
  struct sweep_member *m = find(s, run->number);
  if (!m) return 0;
  ct_array_member(s->array, run->number, &m->info);
  m->sum += (double)run->loss;
  ++m->count;
  sweep_view_update(s);
  return cli_stopped();
}

/* What members have come to at the end of an epoch. */
static void note_epoch(struct sweep *s) {
  for (size_t i = 0; i < s->members; ++i) {
    struct sweep_member *m = &s->member[i];
    if (m->left) continue;
    ct_array_member(s->array, m->number, &m->info);
    if (m->count) m->loss = m->sum / (double)m->count;
    if (m->info.runs < s->epoch * m->feed->order.per_epoch) continue;
    m->epochs = s->epoch;
    m->sum = 0;
    m->count = 0;
  }
}

static void note_accuracy(struct sweep *s) {
  for (size_t i = 0; i < s->members; ++i) {
    struct sweep_member *m = &s->member[i];
    if (m->left || m->epochs != s->epoch) continue;
    json_array_append_new(m->by_epoch, json_pack("{s:I, s:o, s:o}", "epoch", (json_int_t)s->epoch,
                                                 "loss", cli_json_number(m->loss), "test_accuracy",
                                                 cli_json_number(m->accuracy)));
  }
}

static int train_epoch(struct sweep *s) {
  uint64_t from = 0, to = 0;
  for (size_t i = 0; i < s->members; ++i)
    if (!s->member[i].left)
      ct_array_limit(s->array, s->member[i].number, s->epoch * s->member[i].feed->order.per_epoch);
  int rc = ct_now(s->dev, &from);
  if (rc >= 0) rc = ct_array_run(s->array, CT_NO_CYCLE, &(struct ct_watch){ended, s});
  if (rc >= 0) rc = ct_now(s->dev, &to);
  if (rc < 0) return sweep_fail(s, rc, "training");
  s->cycles = from == CT_NO_CYCLE ? CT_NO_CYCLE : s->cycles + (to - from);
  return 0;
}

/* Its numbers stay, its network goes. */
static int leave(struct sweep *s, struct sweep_member *m) {
  int rc = cli_network_crc32(ct_array_network(s->array, m->number), &m->crc);
  if (rc >= 0) rc = ct_array_leave(s->array, m->number);
  m->left = true;
  return rc < 0 ? sweep_fail(s, rc, "a member cannot leave") : 0;
}

/* The worst leave where members are compared. */
static int halve(struct sweep *s) {
  size_t order[SWEEP_MEMBERS], left = s->members;
  uint64_t epochs = 0;
  for (size_t n = 0; sweep_rung(s, n, &epochs, &left); ++n) {
    if (epochs != s->epoch) continue;
    sweep_rank(s, order);
    for (size_t i = left; i < s->members; ++i)
      if (!s->member[order[i]].left && leave(s, &s->member[order[i]])) return 1;
  }
  return 0;
}

static bool anybody_trains(const struct sweep *s) {
  for (size_t i = 0; i < s->members; ++i)
    if (!s->member[i].left && s->member[i].info.state == CT_MEMBER_READY) return true;
  return false;
}

static int run_epochs(struct sweep *s) {
  int status = 0;
  live_open(&s->live, "train", s->l->device, s->dev);
  sweep_view_open(s);
  for (s->epoch = 1; !status && s->epoch <= s->l->epochs && !cli_stopped(); ++s->epoch) {
    if (!anybody_trains(s)) break;
    status = train_epoch(s);
    note_epoch(s);
    if (!status && !cli_stopped()) status = sweep_evaluate(s);
    note_accuracy(s);
    if (!status) sweep_view_epoch(s);
    if (!status && !cli_stopped()) status = halve(s);
  }
  sweep_view_close(s);
  live_close(&s->live);
  return status;
}

/* ---- The end ------------------------------------------------------------------------------- */

/* Of those whose networks are there. */
static struct sweep_member *best_of(struct sweep *s) {
  size_t order[SWEEP_MEMBERS];
  sweep_rank(s, order);
  for (size_t i = 0; i < s->members; ++i) {
    struct sweep_member *m = &s->member[order[i]];
    if (!m->left && m->info.state == CT_MEMBER_READY) return m;
  }
  return NULL;
}

static int save(struct sweep *s, const struct sweep_member *best) {
  if (!s->l->save) return 0;
  ct_network *n = ct_array_network(s->array, best->number);
  ct_network_set_epochs(n, best->epochs);
  const int rc = ct_network_save(n, s->l->save);
  if (rc < 0) return cli_fail_device(s->dev, rc, "saving the best member");
  fprintf(s->text, "saved to %s\n", s->l->save);
  return 0;
}

static int finish(struct sweep *s) {
  const struct sweep_member *best = best_of(s);
  for (size_t i = 0; i < s->members; ++i) {
    struct sweep_member *m = &s->member[i];
    if (!m->left && cli_network_crc32(ct_array_network(s->array, m->number), &m->crc))
      return cli_fail("the weights of member %" PRIu32 " cannot be read back", m->number);
  }
  if (best)
    fprintf(s->text, "best: member %" PRIu32 "\n", best->number);
  else
    cli_fail("no member is left that could be kept: all have diverged or failed");
  if (best && save(s, best)) return 1;
  return sweep_write_json(s, best) || !best || cli_tell_stopped(s->text);
}

/* ---- Start --------------------------------------------------------------------------------- */

static size_t combinations(const struct sweep_options *o) {
  size_t count = 1;
  for (size_t k = 0; k < SWEEP_KEYS && count <= SWEEP_MEMBERS; ++k)
    if (o->axis[k].count) count *= o->axis[k].count;
  return count;
}

static int open_all(struct sweep *s, struct learn *l) {
  s->members = combinations(s->o);
  if (s->members > SWEEP_MEMBERS)
    return cli_fail("--sweep: these are more than %d combinations", SWEEP_MEMBERS);
  if (learn_is_file(l->model)) {
    return learn_check_model(l->model) ||
           cli_fail("--sweep: %s is a file, which says itself how it is trained", l->model);
  }
  if (l->keep.format == CT_FORMAT_COMPRESSED)
    return cli_fail(
        "a sweep cannot keep activations compressed: its members share a device that has "
        "pages for one network. Keep them in hbfp8, or recompute");
  if (learn_open(l, &s->data) || cli_open(l->device, &s->dev)) return 1;
  s->member = calloc(s->members, sizeof *s->member);
  s->feed = calloc(s->members, sizeof *s->feed);
  const struct ct_array_options options = {.both = true}; /* nobody asks for answers meanwhile */
  const int rc =
      s->member && s->feed ? ct_array_create(s->dev, &options, &s->array) : CT_ERR_MEMORY;
  if (rc < 0) return cli_fail_device(s->dev, rc, "the array of members");
  return open_answers(s) || join_all(s);
}

static void close_all(struct sweep *s) {
  ct_array_free(s->array);
  ct_network_free(s->answers);
  for (size_t i = 0; s->member && i < s->members; ++i)
    json_decref(s->member[i].by_epoch);
  for (size_t i = 0; i < s->feeds; ++i)
    sweep_feed_close(&s->feed[i]);
  free(s->member);
  free(s->feed);
  ct_close(s->dev);
  ct_dataset_free(&s->data);
}

int sweep_run(struct learn *l, const struct sweep_options *o) {
  struct sweep s = {.l = l, .o = o, .text = cli_text(l->json)};
  if (l->memory) return cli_fail("--memory is not for sweeps: give --batch, or batch= a list");
  const int status = open_all(&s, l) || run_epochs(&s) || finish(&s);
  close_all(&s);
  return status;
}
