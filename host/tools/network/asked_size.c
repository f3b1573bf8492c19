/* SPDX-License-Identifier: Apache-2.0 */
/* The largest batch of a network that fits a limit of device memory. */
#include <inttypes.h>
#include <string.h>

#include "asked.h"

enum { MOST_ROWS = 65536 };

uint64_t asked_take_size(const char *arg, const struct argp_state *state) {
  static const struct {
    const char *name;
    unsigned shift;
  } units[] = {{"KiB", 10}, {"MiB", 20}, {"GiB", 30}};
  char number[32];
  for (size_t i = 0; i < sizeof units / sizeof *units; ++i) {
    const char *unit = strstr(arg, units[i].name);
    if (!unit || strcmp(unit, units[i].name) != 0 || unit == arg) continue;
    if ((size_t)(unit - arg) >= sizeof number) break;
    memcpy(number, arg, (size_t)(unit - arg));
    number[unit - arg] = 0;
    return cli_count(state, "--memory", number, 1, UINT64_C(1) << 30) << units[i].shift;
  }
  argp_error(state, "--memory: a number of KiB, MiB or GiB, such as 64MiB, not %s", arg);
  return 0;
}

/* What a step of so many rows takes; UINT64_MAX: more than the device has. */
static int measure(ct_device *dev, const struct asked_name *of, uint64_t *bytes) {
  struct ct_network_options options = {.bits = 0};
  struct ct_network_info info = {.run_bytes = 0};
  ct_network *net = NULL;
  ct_graph *g = NULL;
  int rc = CT_OK;
  if (asked_named(of, &g)) {
    ct_graph_free(g);
    return 1;
  }
  asked_keep_options(&of->keep, &options);
  rc = ct_network_create(dev, g, &options, &net);
  if (!rc) rc = ct_network_info(net, &info);
  *bytes = info.weights_bytes + info.run_bytes + info.frame_bytes + info.pages;
  ct_network_free(net);
  ct_graph_free(g);
  const bool larger = rc == CT_ERR_NO_SPACE && of->rows > 1;
  if (larger) *bytes = UINT64_MAX;
  return rc && !larger ? cli_fail_device(dev, rc, of->model) : 0;
}

/* The most rows that fit, and what one takes; 0 rows: it does not. A batch that does not fit tells
 * that no larger one does. */
static int search(ct_device *dev, struct asked_name *of, uint64_t limit, uint64_t *least) {
  uint32_t fits = 0, most = MOST_ROWS + 1;
  uint64_t bytes = 0;
  for (uint32_t rows = 1; fits + 1 < most; rows = fits + (most - fits) / 2) {
    if (most > MOST_ROWS && fits) rows = 2 * fits < most ? 2 * fits : most - 1;
    of->rows = rows;
    if (measure(dev, of, &bytes)) return 1;
    if (rows == 1) *least = bytes;
    if (bytes <= limit)
      fits = rows;
    else
      most = rows;
  }
  of->rows = fits;
  return 0;
}

static bool compresses(ct_device *dev) {
  struct ct_info info = {.features = 0};
  ct_info(dev, &info);
  return info.features & CT_FEATURE_COMPRESSION;
}

/* The first way that has the largest batch. */
static int choose(ct_device *dev, struct asked_name *of, uint64_t limit, uint64_t *least) {
  static const enum ct_format ways[] = {CT_FORMAT_FP32, CT_FORMAT_HBFP8, CT_FORMAT_RECOMPUTE,
                                        CT_FORMAT_COMPRESSED};
  struct asked_name best = *of, one = *of;
  best.rows = 0;
  *least = UINT64_MAX;
  one.keep.chooses = false;
  for (size_t i = 0; i < sizeof ways / sizeof *ways; ++i) {
    uint64_t bytes = 0;
    if (ways[i] == CT_FORMAT_COMPRESSED && !compresses(dev)) continue;
    one.keep.format = ways[i];
    one.keep.error = ways[i] == CT_FORMAT_COMPRESSED ? of->keep.error : 0;
    if (search(dev, &one, limit, &bytes)) return 1;
    if (bytes < *least) *least = bytes;
    if (one.rows > best.rows) best = one;
  }
  *of = best;
  return 0;
}

int asked_largest(ct_device *dev, struct asked_name *of, uint64_t limit) {
  uint64_t least = 0;
  if (of->keep.chooses ? choose(dev, of, limit, &least) : search(dev, of, limit, &least)) return 1;
  if (of->rows) return 0;
  return cli_fail("%s does not fit %" PRIu64 " KiB: a step of one sample takes %" PRIu64 " KiB",
                  of->model, limit / 1024, (least + 1023) / 1024);
}
