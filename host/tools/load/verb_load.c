/* SPDX-License-Identifier: Apache-2.0 */
/* `coltrain load`: one measured run, told by a JSON object (verb_load.h). */
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>

#include "learn.h"
#include "verb_load.h"

struct options {
  const char *spec, *csv, *json;
};

/* ---- The object that says what to run ---- */

static const char *const kinds[] = {"capacity", "training", "requests", "cost"};

static int bad(const char *key, const char *what) {
  return cli_fail("the run: \"%s\": %s", key, what);
}

#define COUNT(field, most) CLI_COUNT_AT(struct load_spec, field, 0, most)
#define TEXT(field) CLI_TEXT_AT(struct load_spec, field)
enum { MANY = 10000000 };

static const struct cli_option members[] = {
    {"kind", TEXT(kind_name)},
    {"device", TEXT(serve.device)},
    {"label", TEXT(label)},
    {"policy", TEXT(policy_name)},
    {"seed", COUNT(serve.seed, INT64_MAX)},
    {"requests", COUNT(serve.requests, MANY)},
    {"dropped", COUNT(dropped, MANY)},
    {"samples", COUNT(samples, MANY)},
    {"permille", COUNT(serve.permille, UINT32_MAX)},
    {"busy_cycles", COUNT(busy, INT64_MAX)},
    {"completed", COUNT(done, INT64_MAX)},
    {"deadline_cycles", COUNT(serve.deadline, UINT32_MAX)},
    {"late_allowed", COUNT(late_allowed, MANY)},
    {"arrivals", TEXT(arrivals_name)},
    {"trace", TEXT(serve.arrivals.file)},
    {"on_percent", COUNT(serve.arrivals.on_percent, UINT32_MAX)},
    {"period_cycles", COUNT(serve.arrivals.period, UINT32_MAX)},
    {"batching", TEXT(batching_name)},
    {"max_batch", COUNT(serve.serving.max_batch, UINT32_MAX)},
    {"margin_cycles", COUNT(serve.serving.margin, UINT32_MAX)},
};

/* Of "training". */
static const struct cli_option training[] = {{"data", TEXT(data)},
                                             {"batch", COUNT(train_batch, UINT32_MAX)}};

static int take_members(const json_t *o, struct load_spec *spec) {
  const json_t *t = json_object_get(o, "training");
  return cli_members("the run", members, sizeof members / sizeof *members, o, spec) ||
         cli_members("the run", training, sizeof training / sizeof *training, t, spec);
}

static int take_shape(const json_t *v, const char *key, struct serve_shape *shape) {
  const char *text = json_string_value(v);
  shape->layers = text ? learn_layers_of(text, shape->widths) : 0;
  return shape->layers ? 0 : bad(key, "is no list of widths such as 64-128-64-10");
}

/* Widths, or a file. */
static int take_network(const json_t *v, struct serve_shape *shape) {
  const char *text = json_string_value(v);
  shape->layers = text ? learn_layers_of(text, shape->widths) : 0;
  if (!shape->layers) shape->network = text;
  return text ? 0 : bad("networks", "is no list of widths such as 64-128-64-10, or of files");
}

static int take_networks(const json_t *o, struct load_spec *spec) {
  const json_t *list = json_object_get(o, "networks");
  spec->serve.models = json_array_size(list);
  if (spec->kind == LOAD_TRAINING && !list) return 0;
  if (!spec->serve.models || spec->serve.models > SERVE_MODELS)
    return bad("networks", "is no list of 1 to 8 networks");
  int status = 0;
  for (size_t i = 0; i < spec->serve.models && !status; ++i)
    status = take_network(json_array_get(list, i), &spec->serve.shape[i]);
  return status;
}

static int take_arrivals(const json_t *o, struct load_spec *spec) {
  struct arrivals_options *a = &spec->serve.arrivals;
  if (!arrivals_by_name(spec->arrivals_name, &a->kind))
    return bad("arrivals", "is none of poisson, constant, bursty, trace");
  a->ring = true;
  if (a->kind == ARRIVALS_FILE && !json_object_get(o, "trace"))
    return bad("trace", "is missing: the file of the arrivals");
  return 0;
}

static int take_batching(const json_t *o, struct load_spec *spec) {
  struct ct_serving *how = &spec->serve.serving;
  const json_t *list = json_object_get(o, "service_cycles");
  if (ct_batching_by_name(spec->batching_name, &how->batching))
    return bad("batching", ct_last_error(NULL));
  if (list && json_array_size(list) != LOAD_BATCH) return bad("service_cycles", "is no list of 16");
  for (size_t i = 0; list && i < LOAD_BATCH; ++i)
    how->service[i] = (uint32_t)json_integer_value(json_array_get(list, i));
  return 0;
}

static int take_training(const json_t *o, struct load_spec *spec) {
  const json_t *t = json_object_get(o, "training");
  spec->beside = t && spec->kind == LOAD_REQUESTS;
  if (!t) return spec->kind == LOAD_TRAINING ? bad("training", "is missing") : 0;
  return take_shape(json_object_get(t, "layers"), "layers", &spec->trained);
}

static int take_kind(struct load_spec *spec) {
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; ++i) {
    spec->kind = (enum load_kind)i;
    if (!strcmp(spec->kind_name, kinds[i])) return 0;
  }
  return bad("kind", "is none of capacity, training, requests, cost");
}

static int take_policy(struct load_spec *spec) {
  return ct_policy_by_name(spec->policy_name, &spec->policy) ? bad("policy", ct_last_error(NULL))
                                                             : 0;
}

/* What a load needs to be made of. */
static int check(const struct load_spec *spec) {
  if (spec->kind == LOAD_TRAINING) return spec->samples ? 0 : bad("samples", "is missing");
  if (spec->serve.requests < 2) return bad("requests", "is missing, or fewer than 2");
  if (spec->kind != LOAD_REQUESTS) return 0;
  if (!spec->busy || !spec->done) return bad("busy_cycles, completed", "the capacity is missing");
  if (!spec->serve.permille) return bad("permille", "is missing");
  return spec->dropped < spec->serve.requests ? 0 : bad("dropped", "leaves nothing to be measured");
}

static int take(const json_t *o, struct load_spec *spec) {
  *spec = (struct load_spec){.serve = {.device = CLI_DEVICE, .seed = 1, .batcher = true},
                             .label = "load",
                             .kind_name = "",
                             .policy_name = "priority",
                             .arrivals_name = "poisson",
                             .batching_name = "none",
                             .data = "digits",
                             .train_batch = 64};
  if (take_members(o, spec) || take_kind(spec)) return 1;
  if (spec->kind == LOAD_COST && !spec->serve.requests) spec->serve.requests = SERVE_SAMPLES;
  spec->bounded = json_object_get(o, "late_allowed");
  return take_networks(o, spec) || take_arrivals(o, spec) || take_batching(o, spec) ||
         take_training(o, spec) || take_policy(spec) || check(spec);
}

/* ---- The command ---- */

static void take_file(void *input, const char *arg, const struct argp_state *state) {
  struct options *o = input;
  if (o->spec) argp_error(state, "\"%s\" is one argument too many", arg);
  o->spec = arg;
}

static void end(void *input, const struct argp_state *state) {
  const struct options *o = input;
  if (!o->spec) argp_error(state, "give the file that says what to run, or - for standard input");
}

static int run(const struct options *o, const json_t *object) {
  struct load_spec spec;
  if (take(object, &spec)) return 1;
  spec.serve.csv = o->csv;
  json_t *figures = json_object();
  int status = load_run(&spec, figures);
  if (!status && cli_stopped()) status = 1;
  if (!status) return cli_json_write(o->json, figures);
  json_decref(figures);
  return status;
}

int verb_load(int argc, char **argv) {
  static const struct cli_option options[] = {
      {"json", "FILE", "Write the figures (- for standard output, the default)", 1,
       CLI_FILE_AT(struct options, json, CLI_WRITE)},
      {"csv", "FILE.csv", "Write a row for each request", 1,
       CLI_FILE_AT(struct options, csv, CLI_WRITE)}};
  static const struct cli_command command = {
      CLI_COMMAND(options), .arg = take_file, .end = end, .args = "RUN.json",
      .doc =
          "Makes one measured run on a device of its own, as experiments ask for it.\v"
          "RUN.json (- for standard input) has the kind of run, networks, requests, arrivals, "
          "batching and training; docs/experiments.md lists its members. A network is given by its "
          "widths, or as a file if it is a perceptron. It ends when the "
          "program that started it does.\n\nExample:\n"
          "  echo '{\"kind\": \"cost\", \"networks\": [\"64-128-64-10\"]}' | coltrain load -\n"};
  struct options o = {.json = "-"};
  if (cli_options(&command, argc, argv, &o)) return 1;
  cli_catch_stop();
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  json_error_t error;
  json_t *spec =
      strcmp(o.spec, "-") ? json_load_file(o.spec, 0, &error) : json_loadf(stdin, 0, &error);
  if (!spec) return cli_fail("%s: %s", o.spec, error.text);
  const int status = run(&o, spec);
  json_decref(spec);
  return status;
}
