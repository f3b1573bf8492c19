/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "interfere.h"

/* 0, or 1 after a sentence: the file is of the same jobs on the same device. */
static int same_jobs(const struct interfere *t, const json_t *file) {
  const struct interfere_options *o = t->o;
  json_t *wanted = interfere_jobs_json(o);
  const char *name;
  json_t *value;
  int status = 0;
  json_object_foreach(wanted, name, value) {
    if (status || json_equal(json_object_get(file, name), value)) continue;
    char *here = json_dumps(value, JSON_ENCODE_ANY);
    char *there = json_dumps(json_object_get(file, name), JSON_ENCODE_ANY);
    status = cli_fail("--alone %s: its %s is %s, not %s; give it a run of the same jobs", o->alone,
                      name, there ? there : "missing", here ? here : "this");
    free(here);
    free(there);
  }
  json_decref(wanted);
  return status;
}

/* 0, or 1: every job of the run has its latency. */
static int take_run(struct interfere *t, const json_t *run) {
  const json_t *list = json_object_get(run, "latency");
  struct interfere_run *r = &t->alone;
  if (json_array_size(list) != t->o->jobs) return 1;
  r->latency = calloc(t->o->jobs, sizeof *r->latency);
  if (!r->latency) return 1;
  for (; r->jobs < t->o->jobs; ++r->jobs) {
    const json_int_t cycles = json_integer_value(json_array_get(list, r->jobs));
    if (cycles <= 0) return 1;
    r->latency[r->jobs] = (uint64_t)cycles;
    r->served_cycles += (uint64_t)cycles;
  }
  r->window.to = (uint64_t)json_integer_value(json_object_get(run, "cycles"));
  r->wrong = (size_t)json_integer_value(json_object_get(run, "wrong"));
  r->window.closed = r->window.to >= r->served_cycles;
  return !r->window.closed;
}

int interfere_alone_read(struct interfere *t) {
  json_error_t error;
  json_t *file = json_load_file(t->o->alone, 0, &error);
  if (!file) return cli_fail("--alone %s: %s", t->o->alone, error.text);
  json_t *run = json_object_get(file, "alone");
  int status = same_jobs(t, file);
  if (!status && take_run(t, run))
    status = cli_fail("--alone %s: the run of inference alone is not whole", t->o->alone);
  const json_int_t range = json_integer_value(json_object_get(file, "gap_range"));
  if (!status && range <= 0) status = cli_fail("--alone %s: it has no gap_range", t->o->alone);
  if (!status) {
    t->gap_range = (uint64_t)range;
    t->alone_json = json_incref(run);
  }
  json_decref(file);
  return status;
}
