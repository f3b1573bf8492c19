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

/* A number of 0 .. most, or what was there before if the object has none. */
static int take_count(const json_t *o, const char *key, uint64_t most, uint64_t *value) {
  const json_t *v = json_object_get(o, key);
  if (!v) return 0;
  if (!json_is_integer(v) || json_integer_value(v) < 0 || (uint64_t)json_integer_value(v) > most)
    return cli_fail("the run: \"%s\" is no whole number of 0..%llu", key, (unsigned long long)most);
  *value = (uint64_t)json_integer_value(v);
  return 0;
}

static int take_size(const json_t *o, const char *key, size_t *value) {
  uint64_t n = *value;
  const int status = take_count(o, key, 10000000, &n);
  *value = (size_t)n;
  return status;
}

static int take_word(const json_t *o, const char *key, uint32_t *value) {
  uint64_t n = *value;
  const int status = take_count(o, key, UINT32_MAX, &n);
  *value = (uint32_t)n;
  return status;
}

static int take_text(const json_t *o, const char *key, const char **value) {
  const json_t *v = json_object_get(o, key);
  if (v && !json_is_string(v)) return bad(key, "is no text");
  if (v) *value = json_string_value(v);
  return 0;
}

static int take_shape(const json_t *v, const char *key, struct serve_shape *shape) {
  const char *text = json_string_value(v);
  shape->layers = text ? learn_layers_of(text, shape->widths) : 0;
  return shape->layers ? 0 : bad(key, "is no list of widths such as 64-128-64-10");
}

static int take_networks(const json_t *o, struct load_spec *spec) {
  const json_t *list = json_object_get(o, "networks");
  spec->serve.models = json_array_size(list);
  if (spec->kind == LOAD_TRAINING && !list) return 0;
  if (!spec->serve.models || spec->serve.models > SERVE_MODELS)
    return bad("networks", "is no list of 1 to 8 networks");
  int status = 0;
  for (size_t i = 0; i < spec->serve.models && !status; ++i)
    status = take_shape(json_array_get(list, i), "networks", &spec->serve.shape[i]);
  return status;
}

static int take_arrivals(const json_t *o, struct arrivals_options *a) {
  const char *name = "poisson";
  if (take_text(o, "arrivals", &name)) return 1;
  if (!arrivals_by_name(name, &a->kind))
    return bad("arrivals", "is none of poisson, constant, bursty, trace");
  a->ring = true;
  if (a->kind == ARRIVALS_FILE && !json_object_get(o, "trace"))
    return bad("trace", "is missing: the file of the arrivals");
  return take_text(o, "trace", &a->file) || take_word(o, "on_percent", &a->on_percent) ||
         take_count(o, "period_cycles", UINT32_MAX, &a->period);
}

static int take_batching(const json_t *o, struct ct_serving *how) {
  const char *name = "none";
  const json_t *list = json_object_get(o, "service_cycles");
  if (take_text(o, "batching", &name)) return 1;
  if (ct_batching_by_name(name, &how->batching)) return bad("batching", ct_last_error(NULL));
  if (list && json_array_size(list) != LOAD_BATCH) return bad("service_cycles", "is no list of 16");
  for (size_t i = 0; list && i < LOAD_BATCH; ++i)
    how->service[i] = (uint32_t)json_integer_value(json_array_get(list, i));
  return take_word(o, "max_batch", &how->max_batch) || take_word(o, "margin_cycles", &how->margin);
}

static int take_training(const json_t *o, struct load_spec *spec) {
  const json_t *t = json_object_get(o, "training");
  spec->beside = t && spec->kind == LOAD_REQUESTS;
  if (!t) return spec->kind == LOAD_TRAINING ? bad("training", "is missing") : 0;
  spec->data = "digits";
  spec->train_batch = 64;
  return take_shape(json_object_get(t, "layers"), "layers", &spec->trained) ||
         take_text(t, "data", &spec->data) || take_word(t, "batch", &spec->train_batch);
}

static int take_kind(const json_t *o, struct load_spec *spec) {
  const char *name = "";
  if (take_text(o, "kind", &name)) return 1;
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; ++i) {
    spec->kind = (enum load_kind)i;
    if (!strcmp(name, kinds[i])) return 0;
  }
  return bad("kind", "is none of capacity, training, requests, cost");
}

static int take_policy(const json_t *o, struct load_spec *spec) {
  const char *name = "priority";
  if (take_text(o, "policy", &name)) return 1;
  return ct_policy_by_name(name, &spec->policy) ? bad("policy", ct_last_error(NULL)) : 0;
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
  *spec = (struct load_spec){.label = "load", .seed = 1};
  struct serve_options *s = &spec->serve;
  s->device = CLI_DEVICE;
  if (take_kind(o, spec)) return 1;
  if (spec->kind == LOAD_COST) s->requests = SERVE_SAMPLES;
  const int status =
      take_text(o, "device", &s->device) || take_text(o, "label", &spec->label) ||
      take_size(o, "requests", &s->requests) || take_size(o, "dropped", &spec->dropped) ||
      take_count(o, "seed", INT64_MAX, &spec->seed) || take_word(o, "permille", &s->permille) ||
      take_word(o, "deadline_cycles", &s->deadline) || take_size(o, "samples", &spec->samples) ||
      take_count(o, "busy_cycles", INT64_MAX, &spec->busy) ||
      take_count(o, "completed", INT64_MAX, &spec->done) ||
      take_size(o, "late_allowed", &spec->late_allowed) || take_networks(o, spec) ||
      take_arrivals(o, &s->arrivals) || take_batching(o, &s->serving) || take_training(o, spec) ||
      take_policy(o, spec) || check(spec);
  spec->bounded = json_object_get(o, "late_allowed");
  s->seed = spec->seed;
  return status;
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
          "batching and training; docs/experiments.md lists its members. It ends when the "
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
