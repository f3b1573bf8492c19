/* SPDX-License-Identifier: Apache-2.0 */
/* coltrain explain: what each layer of a network costs on a device. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "asked.h"
#include "coltrain/network.h"
#include "explain_group.h"
#include "learn.h"

struct options {
  const char *device, *model, *json;
  struct asked_keep keep;
  uint64_t memory;
  uint64_t batch, seed;
  uint64_t members; /* 0: not given */
  bool train;
};

enum { BATCH = 16 /* unless it is given */ };

/* A network under study. */
struct study {
  const struct options *o;
  ct_graph *graph;
  ct_device *dev;
  ct_network *net;
  struct ct_info info;
  uint64_t batch, step;
  bool train;
  struct asked_keep keep;
  struct group group; /* of its members */
};

/* What a group of stages costs. */
struct cost {
  uint64_t macs, rows, cycles, expected, bytes, beside;
  bool known, estimated, bounded; /* cycles; expected; beside */
};

/* ---- The network --------------------------------------------------------------------------- */

/* The rows of its first input. */
static int find_batch(struct study *s) {
  struct ct_tensor_info t;
  ct_graph *g = ct_network_graph(s->net);
  for (int i = 1; !ct_graph_tensor_info(g, i, &t); ++i) {
    if (t.role != CT_ROLE_INPUT) continue;
    s->batch = t.shape.dim[0];
    return 0;
  }
  return cli_fail("%s has no input", s->o->model);
}

static struct ct_network_options options_of(const struct study *s) {
  return (struct ct_network_options){
      .expect = true, .members = (uint32_t)s->o->members, .shared = s->o->members > 1};
}

static int check_members(const struct study *s) {
  if (!s->o->members || s->train) return 0;
  if (learn_is_file(s->o->model))
    return cli_fail("--members: %s has no training steps, which members have", s->o->model);
  return cli_fail("--members is for training steps: give --train");
}

static struct group group_of(const struct study *s) {
  return (struct group){.dev = s->dev,
                        .net = s->net,
                        .members = s->o->members ? (uint32_t)s->o->members : 1,
                        .step = s->step,
                        .cycles = CT_NO_CYCLE};
}

/* A file has its batch and says whether it is trained. */
static int load(struct study *s) {
  const struct ct_network_options options = options_of(s);
  struct ct_network_info info;
  const struct options *o = s->o;
  if (o->batch || o->train || o->keep.given || o->memory)
    return cli_fail(
        "%s has its own batch and steps; leave --batch, --train, --keep and --memory out",
        o->model);
  int err = ct_network_load(s->dev, o->model, &options, &s->net);
  if (!err) err = ct_network_info(s->net, &info);
  if (err) return cli_fail_device(s->dev, err, "the network cannot be loaded");
  s->train = info.changes;
  s->step = info.accumulate - 1; /* a run that has everything */
  s->group = group_of(s);
  return find_batch(s);
}

static int describe(struct study *s) {
  const struct ct_optimise how = {.schedule = {.rate = 0.05}, .momentum = 0.9};
  const struct options *o = s->o;
  s->batch = o->batch ? o->batch : BATCH;
  s->train = o->train;
  if (check_members(s)) return 1;
  struct asked_name name = {.model = o->model,
                            .rows = (uint32_t)s->batch,
                            .how = o->train ? &how : NULL,
                            .keep = o->keep};
  if (o->memory && o->members)
    return cli_fail("--memory is about one network: leave --members out");
  if (o->members && o->keep.chooses)
    return cli_fail("--keep auto chooses for one network in a --memory: with --members name a way");
  if (o->memory && o->batch) return cli_fail("--memory and --batch: one of them says the batch");
  if (asked_check_keep(&o->keep, o->memory)) return 1;
  if (o->memory && asked_largest(s->dev, &name, o->memory)) return 1;
  s->batch = name.rows;
  s->keep = name.keep;
  return asked_named(&name, &s->graph);
}

/* Numbers that are neither all equal nor tiny, the same each time. */
static void fill(float *x, size_t count) {
  for (size_t i = 0; i < count; ++i)
    x[i] = (float)((i * 37 + i / 7) % 255) / 127.0f - 1.0f;
}

static int write_inputs(struct study *s) {
  struct ct_graph_info info;
  ct_graph *g = ct_network_graph(s->net);
  ct_graph_info(g, &info);
  int err = CT_OK;
  for (size_t i = 1; i <= info.tensors && !err; ++i) {
    struct ct_tensor_info t;
    ct_graph_tensor_info(g, (int)i, &t);
    if (t.role != CT_ROLE_INPUT && t.role != CT_ROLE_LABEL) continue;
    float *x = malloc(t.elements * sizeof *x);
    if (!x) return cli_fail("no memory for the inputs");
    fill(x, t.elements);
    err = ct_network_write(s->net, (int)i, x, t.elements);
    free(x);
  }
  return err ? cli_fail_device(s->dev, err, "cannot write the inputs") : 0;
}

static int compile(struct study *s) {
  struct ct_network_options options = options_of(s);
  if (describe(s)) return 1;
  asked_keep_options(&s->keep, &options);
  int err = ct_network_create(s->dev, s->graph, &options, &s->net);
  if (err) return cli_fail_device(s->dev, err, "cannot compile the network");
  s->group = group_of(s);
  return group_draw(&s->group, s->o->seed);
}

static int run(struct study *s) {
  if (learn_check_model(s->o->model)) return 1;
  if (learn_is_file(s->o->model) ? load(s) : compile(s)) return 1;
  if (check_members(s) || write_inputs(s)) return 1;
  const int err = ct_network_run(s->net, s->train ? CT_TRAINING : CT_INFERENCE, s->step);
  if (err) return cli_fail_device(s->dev, err, "cannot run the network");
  return s->o->members ? group_run(&s->group) : 0;
}

/* ---- What it costs ------------------------------------------------------------------------- */

static struct ct_network_stage stage_at(const struct study *s, size_t i) {
  struct ct_network_stage stage = {0};
  ct_network_stage(s->net, i, &stage);
  return stage;
}

static const char *pass_of(const struct ct_network_stage *g) {
  return g->once ? "weights" : g->backward ? "backward" : "forward";
}

static void add(struct cost *c, const struct ct_network_stage *g) {
  c->macs += g->macs;
  c->rows += g->rows;
  c->bytes += g->read + g->written;
  c->known = c->known && g->cycles != CT_NO_CYCLE;
  c->cycles += g->cycles == CT_NO_CYCLE ? 0 : g->cycles;
  c->estimated = c->estimated && g->expected != CT_NO_CYCLE;
  c->expected += g->expected == CT_NO_CYCLE ? 0 : g->expected;
  c->bounded = c->bounded && g->beside != CT_NO_CYCLE;
  c->beside += g->beside == CT_NO_CYCLE ? 0 : g->beside;
}

static double utilisation(const struct study *s, const struct cost *c) {
  if (!c->known || !c->cycles) return -1;
  return (double)c->macs / ((double)c->cycles * s->info.macs_per_cycle);
}

static json_t *cost_json(const struct study *s, const struct cost *c) {
  return json_pack("{s:I, s:o, s:o, s:o, s:o, s:I, s:I}", "macs", (json_int_t)c->macs,
                   "cycles_beside_training", cli_json_cycles(c->bounded ? c->beside : CT_NO_CYCLE),
                   "cycles_expected", cli_json_cycles(c->estimated ? c->expected : CT_NO_CYCLE),
                   "cycles_measured", cli_json_cycles(c->known ? c->cycles : CT_NO_CYCLE),
                   "utilisation",
                   utilisation(s, c) < 0 ? json_null() : cli_json_number(utilisation(s, c)),
                   "bytes", (json_int_t)c->bytes, "rows", (json_int_t)c->rows);
}

static void print_number(FILE *to, bool known, uint64_t x) {
  if (known)
    fprintf(to, " %11" PRIu64, x);
  else
    fprintf(to, " %11s", "-");
}

static void print_cost(FILE *to, const struct study *s, const struct cost *c) {
  fprintf(to, " %12" PRIu64, c->macs);
  print_number(to, c->estimated, c->expected);
  print_number(to, c->known, c->cycles);
  if (utilisation(s, c) < 0)
    fprintf(to, " %6s", "-");
  else
    fprintf(to, " %4.1f %%", 100 * utilisation(s, c));
  fprintf(to, " %10" PRIu64, c->bytes);
}

/* A forward pass is what serves. */
static void print_beside(FILE *to, const struct study *s, const struct cost *total) {
  if (!s->train && total->bounded)
    fprintf(to, "beside training, under the policy PRIORITY, at most %" PRIu64 " cycles more\n",
            total->beside);
}

/* Of one member, as of a network without others. */
static struct ct_network_info info_of(const struct study *s) {
  struct ct_network_info info = {.weights_bytes = 0};
  if (!ct_network_info(s->net, &info) && info.members > 1)
    info.run_bytes /= group_at_once(&s->group);
  return info;
}

static json_t *memory_json(const struct study *s) {
  const struct ct_network_info info = info_of(s);
  return json_pack("{s:I, s:I, s:I, s:I, s:I}", "pages_bytes", (json_int_t)info.pages,
                   "pages_most_bytes", (json_int_t)info.pages_most, "weights_bytes",
                   (json_int_t)info.weights_bytes, "frame_bytes", (json_int_t)info.frame_bytes,
                   "run_bytes", (json_int_t)info.run_bytes);
}

static void print_memory(FILE *to, const struct study *s) {
  const struct ct_network_info info = info_of(s);
  fprintf(to,
          "memory for a batch of %" PRIu64 ": %" PRIu64 " KiB of weights and states, %" PRIu64
          " KiB of inputs and outputs, %" PRIu64 " KiB for what a run makes\n",
          s->batch, (info.weights_bytes + 1023) / 1024, (info.frame_bytes + 1023) / 1024,
          (info.run_bytes + 1023) / 1024);
}

/* ---- What is kept compressed ---- */

static double bits_of(const struct ct_network_kept *k) {
  return 8 * (double)k->bytes / (double)k->values;
}

static json_t *kept_json(const struct study *s) {
  struct ct_network_kept k;
  json_t *all = json_array();
  for (size_t i = 0; !ct_network_kept(s->net, i, &k); ++i)
    json_array_append_new(
        all, json_pack("{s:s, s:I, s:I, s:i, s:b, s:b, s:o}", "tensor", k.tensor, "values",
                       (json_int_t)k.values, "bytes", (json_int_t)k.bytes, "bound", (int)k.bound,
                       "exact", (int)k.exact, "beside", (int)k.beside, "bits",
                       cli_json_number(bits_of(&k))));
  return all;
}

static void print_kept(FILE *to, const struct study *s) {
  struct ct_network_kept k, all = {.values = 0};
  struct ct_network_info info;
  for (size_t i = 0; !ct_network_kept(s->net, i, &k); ++i) {
    fprintf(to, "%s %-24.24s %10" PRIu64 " numbers, %5.2f bits each, ",
            i ? "               " : "kept compressed", k.tensor, k.values, bits_of(&k));
    if (k.exact)
      fprintf(to, "exact\n");
    else
      fprintf(to, "K %u\n", k.bound);
    if (!k.beside) all.values += k.values;
    all.bytes += k.bytes;
  }
  if (all.values && !ct_network_info(s->net, &info))
    fprintf(to,
            "all: %.2f bits a number; %" PRIu64 " KiB of pages, of which %" PRIu64
            " KiB were in use at most\n",
            bits_of(&all), info.pages / 1024, info.pages_most / 1024);
}

/* Columns of the longest name: several layers begin alike. */
static int widest_name(const struct study *s) {
  size_t most = strlen("layer");
  for (size_t i = 0; i < ct_network_stages(s->net); ++i) {
    const struct ct_network_stage g = stage_at(s, i);
    if (strlen(g.node) > most) most = strlen(g.node);
  }
  return (int)most;
}

/* What all members together cost, as text and beside the rest of the JSON. */
static void tell_group(const struct study *s, FILE *to, const struct cost *total, json_t *root) {
  const uint64_t alone = total->known ? total->cycles : CT_NO_CYCLE;
  json_object_set_new(root, "members", json_integer((json_int_t)s->group.members));
  if (!s->o->members) return;
  group_print(to, &s->group, alone, widest_name(s));
  json_object_set_new(root, "group", group_json(&s->group, alone));
}

static json_t *tell(const struct study *s, FILE *to) {
  struct cost total = {.known = true, .estimated = true, .bounded = true};
  json_t *layers = json_array();
  const int width = widest_name(s);
  fprintf(to, "%-*s %-21s %-9s %12s %11s %11s %6s %10s %s\n", width, "layer", "kernel", "pass",
          "MACs", "expected", "cycles", "use", "bytes", "bound by");
  for (size_t i = 0; i < ct_network_stages(s->net); ++i) {
    const struct ct_network_stage g = stage_at(s, i);
    struct cost c = {.known = true, .estimated = true, .bounded = true};
    add(&c, &g);
    if (!g.once && g.expected != 0) add(&total, &g); /* 0: it is part of no run */
    fprintf(to, "%-*s %-21.21s %-9s", width, g.node, g.op, pass_of(&g));
    print_cost(to, s, &c);
    fprintf(to, " %s\n", g.bound);
    json_t *one = cost_json(s, &c);
    json_object_set_new(one, "name", json_string(g.node));
    json_object_set_new(one, "kernel", json_string(g.op));
    json_object_set_new(one, "pass", json_string(pass_of(&g)));
    json_object_set_new(one, "bound", json_string(g.bound));
    json_object_set_new(one, "unit", json_string(g.unit));
    json_object_set_new(one, "cycles_busy", json_integer((json_int_t)g.busy));
    if (s->o->members) json_object_set_new(one, "group", group_stage_json(&g));
    json_array_append_new(layers, one);
  }
  fprintf(to, "%-*s %-21s %-9s", width, "total", "", "");
  print_cost(to, s, &total);
  fputc('\n', to);
  print_beside(to, s, &total);
  print_memory(to, s);
  print_kept(to, s);
  json_t *root =
      json_pack("{s:s, s:s, s:I, s:b, s:s, s:o, s:o, s:o, s:o}", "device", s->info.uri, "model",
                s->o->model, "batch", (json_int_t)s->batch, "train", (int)s->train, "keep",
                asked_format_name(s->keep.format), "layers", layers, "total", cost_json(s, &total),
                "memory", memory_json(s), "compressed", kept_json(s));
  tell_group(s, to, &total, root);
  return root;
}

static void end(struct study *s) {
  ct_network_free(s->net);
  ct_close(s->dev);
  ct_graph_free(s->graph);
}

static void take_model(void *input, const char *arg, const struct argp_state *state) {
  struct options *o = input;
  if (o->model) argp_error(state, "one network, not %s as well", arg);
  o->model = arg;
}

static void take_keep(void *input, const char *arg, const struct argp_state *state) {
  struct options *o = input;
  o->keep = asked_take_keep(arg, state);
}

static void take_memory(void *input, const char *arg, const struct argp_state *state) {
  struct options *o = input;
  o->memory = asked_take_size(arg, state);
}

static void need_model(void *input, const struct argp_state *state) {
  const struct options *o = input;
  if (!o->model) argp_error(state, "which network? lenet5, resnet8, resnet20, vgg or a file");
}

int verb_explain(int argc, char **argv) {
  static const struct cli_option options[] = {
      CLI_DEVICE_AT(struct options, device),
      {"batch", "N", "Images in a batch (16)", CLI_COUNT_AT(struct options, batch, 1, 65536)},
      {"train", NULL, "A whole training step instead of a forward pass",
       CLI_FLAG_AT(struct options, train)},
      {"members", "N",
       "With --train: also a step of N networks like it in the same jobs, beside one "
       "(docs/array.md)",
       CLI_COUNT_AT(struct options, members, 1, GROUP_MOST)},
      {"keep", "FORMAT", ASKED_KEEP "with --train (fp32)", .call = take_keep},
      {"memory", "SIZE", "The largest batch that fits so much device memory, such as 64MiB",
       .call = take_memory},
      {"seed", "N", "Of the weights (1)", CLI_COUNT_AT(struct options, seed, 0, UINT64_MAX)},
      {"json", "FILE", "Write the layers (- for standard output)",
       CLI_FILE_AT(struct options, json, CLI_WRITE)}};
  static const struct cli_command command = {
      CLI_COMMAND(options), .args = "MODEL", .arg = take_model, .end = need_model,
      .doc =
          "Shows what each layer of a network costs on a device: cycles expected and measured, "
          "how much of the array is used, bytes moved, and what bounds it. MODEL is lenet5, "
          "resnet8, resnet20, vgg or a file of a network that train has saved."
          "\vExample:\n  coltrain explain lenet5 --batch 4 --train\n"};
  struct options o = {.device = CLI_DEVICE, .seed = 1};
  struct study s = {.o = &o};
  json_t *root = NULL;
  if (cli_options(&command, argc, argv, &o)) return 1;
  int rc = cli_open(o.device, &s.dev);
  if (!rc && ct_info(s.dev, &s.info)) rc = cli_fail("cannot ask %s what it is", o.device);
  if (!rc) rc = run(&s);
  if (!rc) root = tell(&s, cli_text(o.json));
  end(&s);
  return rc ? rc : cli_json_write(o.json, root);
}
