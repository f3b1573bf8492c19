/* SPDX-License-Identifier: Apache-2.0 */
#include "asked.h"

#include <stdlib.h>
#include <string.h>

#include "ct_network.h"
#include "learn.h"

static int refuse(const char *model, const ct_graph *g) {
  return cli_fail("%s: %s", model, g ? ct_graph_error(g) : "no memory for the network");
}

static int fail_device(const struct asked *a, int rc) {
  return rc < 0 ? cli_fail_device(a->dev, rc, a->model) : 0;
}

/* ---- Opening ---- */

static const double KEEP_ERROR = 0.1;

/* Gradients are never kept narrower than in HBFP8: there is less room for error in them. */
static int keep(ct_graph *g, const struct asked_keep *how) {
  const enum ct_format format = how->format;
  int err = CT_OK;
  if (format != CT_FORMAT_FP32) err = ct_graph_keep(g, CT_ROLE_ACTIVATION, format);
  if (format != CT_FORMAT_FP32 && err >= 0)
    err = ct_graph_keep(g, CT_ROLE_GRADIENT, CT_FORMAT_HBFP8);
  return err < 0 ? err : CT_OK;
}

static const char *const formats[] = {
    [CT_FORMAT_FP32] = "fp32",           [CT_FORMAT_HBFP8] = "hbfp8",
    [CT_FORMAT_HBFP6] = "hbfp6",         [CT_FORMAT_HBFP4] = "hbfp4",
    [CT_FORMAT_RECOMPUTE] = "recompute", [CT_FORMAT_COMPRESSED] = "compressed"};

/* ":mask", ":nomask" or nothing. */
static bool take_masks(const char *arg, enum ct_masks *masks) {
  if (!strcmp(arg, ":mask")) *masks = CT_MASKS_ON;
  if (!strcmp(arg, ":nomask")) *masks = CT_MASKS_OFF;
  return !*arg || *masks != CT_MASKS_DEFAULT;
}

/* Behind "compressed": ":ERROR", ":ERROR:BITS" or nothing, and what take_masks() takes. */
static bool take_error(const char *arg, struct asked_keep *keep) {
  char *end;
  keep->error = KEEP_ERROR;
  if (take_masks(arg, &keep->masks)) return true;
  if (*arg != ':') return false;
  keep->error = strtod(arg + 1, &end);
  if (end == arg + 1 || !(keep->error >= 0 && keep->error <= 1)) return false;
  if (*end == ':' && end[1] >= '1' && end[1] <= '9')
    keep->bits = (uint32_t)strtoul(end + 1, &end, 10);
  return take_masks(end, &keep->masks) && keep->bits <= CT_KEPT_BITS;
}

struct asked_keep asked_take_keep(const char *arg, const struct argp_state *state) {
  struct asked_keep keep = {.given = true, .format = CT_FORMAT_COMPRESSED};
  const char *compressed = formats[CT_FORMAT_COMPRESSED];
  const size_t length = strlen(compressed);
  if (!strncmp(arg, compressed, length) && take_error(arg + length, &keep)) return keep;
  for (size_t f = 0; f < sizeof formats / sizeof *formats; ++f)
    if (!strcmp(arg, formats[f]))
      return (struct asked_keep){.given = true, .format = (enum ct_format)f};
  keep.chooses = !strcmp(arg, "auto");
  keep.error = KEEP_ERROR;
  if (keep.chooses) return keep;
  argp_error(state,
             "--keep: fp32, hbfp8, hbfp6, hbfp4, recompute, compressed:ERROR:BITS:nomask (0..1, "
             "1..%d) or auto, not %s",
             CT_KEPT_BITS, arg);
  return keep;
}

int asked_check_keep(const struct asked_keep *keep, uint64_t limit) {
  if (!keep->chooses || limit) return 0;
  return cli_fail("--keep auto chooses for a limit: give --memory");
}

void asked_keep_options(const struct asked_keep *keep, struct ct_network_options *options) {
  options->error = keep->error;
  options->bits = keep->bits;
  options->masks = keep->masks;
}

const char *asked_format_name(enum ct_format format) {
  return formats[format];
}

int asked_named(const struct asked_name *of, ct_graph **g) {
  int err = ct_graph_create(g);
  if (!err) err = ct_graph_builtin(*g, of->model, of->rows, of->how);
  if (!err && of->how) err = ct_graph_optimise(*g, ct_graph_find(*g, "loss"), of->how);
  if (!err) err = keep(*g, &of->keep);
  if (!err) err = ct_graph_check(*g);
  return err ? refuse(of->model, *g) : 0;
}

static int describe(struct asked *a) {
  const int status = asked_named(&(struct asked_name){.model = a->model, .rows = 1}, &a->named);
  a->graph = a->named;
  return status;
}

static int load(struct asked *a) {
  const int rc = ct_network_load(a->dev, a->model, NULL, &a->file);
  if (rc < 0) return cli_fail_device(a->dev, rc, "the network cannot be loaded");
  a->graph = ct_network_graph(a->file);
  return 0;
}

/* How many tensors of these roles there are; *tensor: the last. */
static size_t find(ct_graph *g, enum ct_role role, enum ct_role other, int *tensor) {
  struct ct_tensor_info info;
  size_t count = 0;
  for (int i = 1; !ct_graph_tensor_info(g, i, &info); ++i) {
    if (info.role != role && info.role != other) continue;
    *tensor = i;
    ++count;
  }
  return count;
}

static int find_output(struct asked *a) {
  a->output = ct_graph_find(a->graph, "logits");
  if (a->output >= 0 || find(a->graph, CT_ROLE_OUTPUT, CT_ROLE_OUTPUT, &a->output) == 1) return 0;
  return cli_fail(
      "%s gives several tensors, or none, and none is called logits: which is the "
      "answer is not known",
      a->model);
}

int asked_open(struct asked *a, ct_device *dev, const char *model, uint64_t seed) {
  *a = (struct asked){.dev = dev, .model = model, .seed = seed};
  if (learn_check_model(model)) return 1;
  return (learn_is_file(model) ? load(a) : describe(a)) || find_output(a);
}

void asked_close(struct asked *a) {
  ct_graph_free(a->named);
  ct_network_free(a->file);
  *a = (struct asked){.dev = NULL};
}

/* ---- Compiling ---- */

int asked_graph(const char *model, const ct_graph *of, int output, uint32_t rows, ct_graph **g) {
  int err = ct_graph_create(g);
  if (!err) err = ct_graph_answers(*g, of, output, rows);
  if (!err) err = ct_graph_check(*g);
  return err ? refuse(model, *g) : 0;
}

/* Its input and output, and the numbers of a row. */
static int find_ends(const struct asked *a, ct_graph *g, struct asked_net *n) {
  struct ct_tensor_info in, out;
  if (find(g, CT_ROLE_INPUT, CT_ROLE_LABEL, &n->input) != 1)
    return cli_fail("%s does not have exactly one input, of which requests are rows", a->model);
  if (find(g, CT_ROLE_OUTPUT, CT_ROLE_OUTPUT, &n->output) != 1 ||
      ct_graph_tensor_info(g, n->input, &in) || ct_graph_tensor_info(g, n->output, &out) ||
      out.shape.dim[0] != n->rows)
    return cli_fail("%s does not give a row of numbers for each row of its input", a->model);
  n->features = in.elements / n->rows;
  n->values = out.elements / n->rows;
  return 0;
}

/* With the mantissas of the file, whose weights it gets. */
static int create(const struct asked *a, const ct_graph *g, const struct asked_net *of,
                  struct asked_net *n) {
  struct ct_network_options options = {.weights_of = of ? of->net : NULL};
  struct ct_network_info info = {.mantissa = 0};
  int rc = a->file ? ct_network_info(a->file, &info) : 0;
  options.mantissa = info.mantissa;
  if (rc >= 0) rc = ct_network_create(a->dev, g, &options, &n->net);
  n->lent = of && rc >= 0;
  if (of && rc == CT_ERR_UNSUPPORTED) {
    options.weights_of = NULL;
    rc = ct_network_create(a->dev, g, &options, &n->net);
  }
  if (rc >= 0) rc = ct_network_info(n->net, &info);
  n->jobs = info.jobs;
  return fail_device(a, rc);
}

/* A version: what runs once for a network's weights is done with them. */
static int publish(const struct asked *a, struct asked_net *n) {
  struct ct_event event = {.error = CT_OK};
  uint64_t tag = 0;
  int rc = a->file ? 0 : ct_network_draw(n->net, a->seed);
  if (rc >= 0)
    rc = ct_network_publish_submit(a->file ? a->file : n->net, n->net, NULL, &n->weights, &tag);
  if (rc >= 0) rc = ct_wait(a->dev, tag, &event, CT_FOREVER);
  return fail_device(a, rc < 0 ? rc : event.error);
}

int asked_compile(const struct asked *a, uint32_t rows, const struct asked_net *of,
                  struct asked_net *n) {
  ct_graph *g = NULL;
  *n = (struct asked_net){.dev = a->dev, .rows = rows};
  int status = asked_graph(a->model, a->graph, a->output, rows, &g) || find_ends(a, g, n) ||
               create(a, g, of, n);
  if (!status && n->lent)
    n->weights = of->weights;
  else if (!status)
    status = publish(a, n);
  ct_graph_free(g);
  return status;
}

void asked_free(struct asked_net *n) {
  if (!n->lent) ct_weights_free(n->weights);
  ct_network_free(n->net);
  *n = (struct asked_net){.dev = NULL};
}

/* ---- Runs ---- */

int asked_submit(const struct asked_net *n, ct_frame *frame, uint64_t cycle, void *user,
                 uint64_t *tag) {
  const struct ct_run run = {
      .frame = frame, .weights = n->weights, .queue = CT_INFERENCE, .cycle = cycle, .user = user};
  return ct_network_submit(n->net, &run, tag);
}

int asked_run(const struct asked_net *n, ct_frame *frame, struct ct_event *event) {
  uint64_t tag = 0;
  int rc = asked_submit(n, frame, 0, NULL, &tag);
  if (rc >= 0) rc = ct_wait(n->dev, tag, event, CT_FOREVER);
  return rc < 0 ? rc : event->error;
}
