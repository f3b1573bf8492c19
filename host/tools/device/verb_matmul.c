/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "ct_npy.h"
#include "ct_units.h"

struct options {
  const char *device, *json, *out, *in[2];
  enum ct_queue queue;
};

static void take_queue(void *input, const char *arg, const struct argp_state *state) {
  struct options *o = input;
  o->queue = strcmp(arg, "training") ? CT_INFERENCE : CT_TRAINING;
  if (o->queue == CT_INFERENCE && strcmp(arg, "inference") != 0)
    argp_error(state, "--queue: \"%s\" is neither inference nor training", arg);
}

static void take_matrix(void *input, const char *arg, const struct argp_state *state) {
  struct options *o = input;
  if (state->arg_num >= 2) argp_error(state, "\"%s\" is one argument too many", arg);
  o->in[state->arg_num] = arg;
}

static void end(void *input, const struct argp_state *state) {
  const struct options *o = input;
  if (!o->in[1]) argp_error(state, "two matrices are needed: A.npy and B.npy");
  if (!o->out) argp_error(state, "-o C.npy is missing: it says where the product goes");
}

/* What the queue did since the device was opened: the product, and nothing else. */
static json_t *json_time(const struct options *o, ct_device *dev, uint64_t cycles) {
  uint64_t counter[CT_MAX_COUNTERS] = {0};
  if (ct_counters(dev, o->queue, counter, CT_MAX_COUNTERS) < 0) return json_null();
  const bool training = o->queue == CT_TRAINING;
  return ct_units_json(training ? NULL : counter, training ? counter : NULL, cycles);
}

static int write_json(const struct options *o, ct_device *dev, const struct ct_npy *a,
                      const struct ct_npy *b, const struct ct_timing *timing) {
  struct ct_info info;
  const int rc = ct_info(dev, &info);
  if (rc < 0) return cli_fail_device(dev, rc, o->device);
  const bool timed = info.has_clock && timing->cycles != CT_NO_CYCLE;
  const double macs = (double)a->rows * (double)b->cols * (double)a->cols;
  json_t *root =
      json_pack("{s:I, s:I, s:I, s:o, s:I, s:o, s:s, s:s}", "m", (json_int_t)a->rows, "n",
                (json_int_t)b->cols, "k", (json_int_t)a->cols, "cycles",
                cli_json_cycles(timed ? timing->cycles : CT_NO_CYCLE), "macs", (json_int_t)macs,
                "utilisation",
                timed ? cli_json_ratio(macs, (double)info.macs_per_cycle * (double)timing->cycles)
                      : json_null(),
                "device", o->device, "queue", o->queue == CT_INFERENCE ? "inference" : "training");
  json_object_set_new(root, "array", cli_json_array(dev));
  json_object_set_new(root, "time", json_time(o, dev, timed ? timing->cycles : CT_NO_CYCLE));
  return cli_json_write(o->json, root);
}

static int multiply(const struct options *o, ct_device *dev, const struct ct_npy *a,
                    const struct ct_npy *b) {
  char why[CT_NPY_WHY];
  struct ct_timing timing = {.cycles = CT_NO_CYCLE};
  float *c = calloc(a->rows, b->cols * sizeof *c);
  if (!c) return cli_fail("no memory for a product of %zu x %zu", a->rows, b->cols);
  int status = 0;
  const int rc = ct_matmul(dev, o->queue, a->rows, b->cols, a->cols, a->data, b->data, c, &timing);
  if (rc < 0)
    status = cli_fail_device(dev, rc, o->device);
  else if (ct_npy_write(o->out, c, a->rows, b->cols, why, sizeof why))
    status = cli_fail("%s", why);
  else if (o->json)
    status = write_json(o, dev, a, b, &timing);
  free(c);
  return status;
}

static int run(const struct options *o, struct ct_npy in[2]) {
  char why[CT_NPY_WHY];
  for (int i = 0; i < 2; ++i)
    if (ct_npy_read(o->in[i], &in[i], why, sizeof why)) return cli_fail("%s", why);
  if (in[0].cols != in[1].rows)
    return cli_fail(
        "%s is %zux%zu and %s is %zux%zu: the columns of the first must be the rows "
        "of the second",
        o->in[0], in[0].rows, in[0].cols, o->in[1], in[1].rows, in[1].cols);
  if (in[1].cols > SIZE_MAX / sizeof(float) / in[0].rows)
    return cli_fail("a product of %zu x %zu is more than this machine can address", in[0].rows,
                    in[1].cols);
  ct_device *dev;
  if (cli_open(o->device, &dev)) return 1;
  const int status = multiply(o, dev, &in[0], &in[1]);
  ct_close(dev);
  return status;
}

int verb_matmul(int argc, char **argv) {
  static const struct cli_option options[] = {
      {"output", "C.npy", "Where the product goes", CLI_FILE_AT(struct options, out, CLI_WRITE),
       .letter = 'o'},
      {"json", "FILE", "Write shape, cycles and utilisation (- for standard output)",
       CLI_FILE_AT(struct options, json, CLI_WRITE)},
      {"the matrix", CLI_FILE_AT(struct options, in[0], CLI_READ)},
      {"the matrix", CLI_FILE_AT(struct options, in[1], CLI_READ)},
      {"queue", "NAME", "inference (the default) or training", .call = take_queue},
      CLI_DEVICE_AT(struct options, device)};
  static const struct cli_command command = {
      CLI_COMMAND(options), .arg = take_matrix, .end = end, .args = "A.npy B.npy -o C.npy",
      .doc =
          "Multiplies float32 matrices: C = A B. Both are quantised to HBFP8 along the "
          "contraction, sums are FP32.\vExample:\n  coltrain matmul A.npy B.npy -o C.npy\n"};
  struct options o = {.device = CLI_DEVICE, .queue = CT_INFERENCE};
  if (cli_options(&command, argc, argv, &o)) return 1;
  struct ct_npy in[2] = {{0, 0, NULL}, {0, 0, NULL}};
  const int status = run(&o, in);
  ct_npy_free(&in[0]);
  ct_npy_free(&in[1]);
  return status;
}
