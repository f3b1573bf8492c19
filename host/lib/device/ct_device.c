/* SPDX-License-Identifier: Apache-2.0 */
/* Opening and closing devices, what they are, their memory. */
#include "ct_device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ct_cmd.h"

enum { ALIGN = 256, RESET_POLLS = 1000 };

/* ---- Registers and memory ------------------------------------------------------------------ */

int ct_reg_read(ct_device *dev, uint32_t offset, uint32_t *value) {
  const int err = dev->plugin.ops->reg_read(dev->self, offset, value);
  return err < 0 ? ct_fail_device(dev, err, "reading register 0x%x failed", offset) : CT_OK;
}

int ct_reg_write(ct_device *dev, uint32_t offset, uint32_t value) {
  const int err = dev->plugin.ops->reg_write(dev->self, offset, value);
  return err < 0 ? ct_fail_device(dev, err, "writing register 0x%x failed", offset) : CT_OK;
}

int ct_mem_alloc(ct_device *dev, uint64_t size, uint64_t *addr) {
  int err = ct_check_device(dev);
  if (err) return err;
  CT_NEED(dev, addr);
  err = ct_heap_alloc(&dev->data, size, ALIGN, addr);
  if (!err) return CT_OK;
  if (err == CT_ERR_MEMORY) return ct_fail(dev, err, "the host has no memory left");
  return ct_fail(dev, err,
                 "no room for %llu bytes in device memory: the largest free piece has %llu",
                 (unsigned long long)size, (unsigned long long)ct_heap_largest(&dev->data));
}

int ct_mem_free(ct_device *dev, uint64_t addr) {
  const int err = ct_check_device(dev);
  if (err || addr == 0) return err;
  return ct_heap_free(&dev->data, addr)
             ? ct_fail(dev, CT_ERR_ARG,
                       "nothing is allocated at 0x%llx: it was freed before, or never allocated",
                       (unsigned long long)addr)
             : CT_OK;
}

int ct_mem_put(ct_device *dev, uint64_t addr, const void *data, size_t size) {
  const int err = dev->plugin.ops->mem_write(dev->self, addr, data, size);
  return err < 0 ? ct_fail_device(dev, err, "writing %zu bytes to device memory at 0x%llx failed",
                                  size, (unsigned long long)addr)
                 : CT_OK;
}

/* Whether the bytes lie between low and the end of the memory. */
static int check_bytes(ct_device *dev, uint64_t low, uint64_t addr, size_t size) {
  const uint64_t end = dev->info.dram_bytes;
  if (addr >= low && addr <= end && size <= end - addr) return CT_OK;
  return ct_fail(dev, CT_ERR_ARG, "%zu bytes at 0x%llx are not within the memory 0x%llx..0x%llx",
                 size, (unsigned long long)addr, (unsigned long long)low,
                 (unsigned long long)end - 1);
}

int ct_mem_write(ct_device *dev, uint64_t addr, const void *data, size_t size) {
  int err = ct_check_device(dev);
  if (err || size == 0) return err;
  CT_NEED(dev, data);
  err = check_bytes(dev, dev->data_start, addr, size);
  return err ? err : ct_mem_put(dev, addr, data, size);
}

int ct_mem_read(ct_device *dev, uint64_t addr, void *data, size_t size) {
  int err = ct_check_device(dev);
  if (err || size == 0) return err;
  CT_NEED(dev, data);
  err = check_bytes(dev, 0, addr, size);
  if (err) return err;
  err = dev->plugin.ops->mem_read(dev->self, addr, data, size);
  return err < 0 ? ct_fail_device(dev, err, "reading %zu bytes of device memory at 0x%llx failed",
                                  size, (unsigned long long)addr)
                 : CT_OK;
}

/* ---- What it is ---------------------------------------------------------------------------- */

static int read_info(ct_device *dev) {
  static const uint32_t offset[] = {CT_REG_ID,        CT_REG_ABI,      CT_REG_GEOMETRY,
                                    CT_REG_SPM_WORDS, CT_REG_CLOCK_HZ, CT_REG_FEATURES,
                                    CT_REG_DRAM_BYTES};
  uint32_t v[7] = {0};
  for (unsigned i = 0; i < 7; ++i) {
    const int err = ct_reg_read(dev, offset[i], &v[i]);
    if (err) return err;
  }
  if (v[0] != CT_ID_VALUE)
    return ct_fail(dev, CT_ERR_DEVICE, "this is not a Coltrain device (ID 0x%08x)", v[0]);
  if (v[1] != CT_ABI_VERSION)
    return ct_fail(dev, CT_ERR_ABI, "the device has interface version %u, this library %u", v[1],
                   CT_ABI_VERSION);
  struct ct_info *info = &dev->info;
  info->abi = v[1];
  info->array_rows = v[2] & 255;
  info->array_cols = v[2] >> 8 & 255;
  info->vpu_lanes = v[2] >> 16 & 255;
  info->block = v[2] >> 24;
  info->macs_per_cycle = info->array_rows * info->array_cols;
  info->spm_words = v[3];
  info->spm_bytes = (uint64_t)v[3] * CT_UNIT;
  info->clock_hz = v[4];
  info->features = v[5];
  info->dram_bytes = (uint64_t)v[6] << 20;
  uint64_t cycle = CT_NO_CYCLE;
  const int err = dev->plugin.ops->now(dev->self, &cycle);
  info->has_clock = cycle != CT_NO_CYCLE;
  if (dev->plugin.ops->memory)
    snprintf(info->memory, sizeof info->memory, "%s", dev->plugin.ops->memory(dev->self));
  if (dev->plugin.ops->line_rate) info->line_rate = dev->plugin.ops->line_rate(dev->self);
  info->has_schedule = info->has_clock && dev->plugin.ops->reg_write_at;
  if (err < 0) return ct_fail_device(dev, err, "reading the clock failed");
  if (info->block != 16 || info->array_rows != 16 || v[3] < 128 || v[6] == 0)
    return ct_fail(dev, CT_ERR_DEVICE, "the device reports a geometry that makes no sense");
  return CT_OK;
}

/* Programs count units in 32 bits, and a window's limit, the first unit outside, is such a number,
 * too: so no device has 64 GiB for them. What lies above is left alone. */
static void limit_memory(ct_device *dev) {
  const uint64_t there = dev->info.dram_bytes;
  if (there <= CT_MOST_MEMORY) return;
  dev->info.dram_bytes = CT_MOST_MEMORY;
  ct_log(dev, CT_LOG_WARNING,
         "%s has %llu MiB of memory; the first %llu are used, as far as programs reach",
         dev->info.uri, (unsigned long long)(there >> 20),
         (unsigned long long)(CT_MOST_MEMORY >> 20));
}

static int reset(ct_device *dev) {
  int err = ct_reg_write(dev, CT_REG_CTRL, 1);
  uint32_t ctrl = 1;
  for (unsigned i = 0; !err && ctrl & 1; ++i) {
    if (i == RESET_POLLS) return ct_fail(dev, CT_ERR_DEVICE, "the device does not leave reset");
    err = ct_reg_read(dev, CT_REG_CTRL, &ctrl);
  }
  return err;
}

uint32_t ct_window_words(const ct_device *dev) {
  return dev->info.spm_words / CT_QUEUES;
}

/* Halves of the scratchpad, and memory from data_start on to write to. */
static int set_windows(ct_device *dev, uint64_t data_start) {
  const uint32_t end = (uint32_t)(dev->info.dram_bytes / CT_UNIT);
  for (uint32_t q = 0; q < CT_QUEUES; ++q) {
    const uint32_t at = CT_CTX_BASE + q * CT_CTX_STRIDE;
    const uint32_t set[][2] = {{CT_CREG_RD_BASE, 0},
                               {CT_CREG_RD_LIMIT, end},
                               {CT_CREG_WR_BASE, (uint32_t)(data_start / CT_UNIT)},
                               {CT_CREG_WR_LIMIT, end},
                               {CT_CREG_SPM_BASE, q * ct_window_words(dev)},
                               {CT_CREG_SPM_SIZE, ct_window_words(dev)}};
    for (unsigned i = 0; i < sizeof set / sizeof *set; ++i) {
      const int err = ct_reg_write(dev, at + set[i][0], set[i][1]);
      if (err) return err;
    }
  }
  return CT_OK;
}

/* Device memory: rings, programs, data. A ring has room for the jobs of any training step: 97. */
static int set_up(ct_device *dev) {
  const bool small = dev->info.dram_bytes < UINT64_C(16) << 20;
  dev->ring_log2 = small ? 7 : 10;
  const uint64_t rings = (uint64_t)CT_QUEUES * CT_DESC_BYTES << dev->ring_log2;
  const uint64_t code = small ? UINT64_C(256) << 10 : UINT64_C(4) << 20;
  dev->data_start = rings + code;
  dev->taken = true;
  int err = reset(dev);
  if (!err) err = set_windows(dev, dev->data_start);
  if (!err) err = ct_heap_init(&dev->code, rings, code);
  if (!err) err = ct_heap_init(&dev->data, dev->data_start, dev->info.dram_bytes - dev->data_start);
  return err;
}

/* ---- Opening ------------------------------------------------------------------------------- */

static int open_transport(ct_device *dev, const char *uri) {
  const char *colon = strchr(uri, ':');
  const size_t len = colon ? (size_t)(colon - uri) : strlen(uri);
  if (strlen(uri) >= sizeof dev->info.uri)
    return ct_fail(dev, CT_ERR_ARG, "a device's name has at most %zu characters",
                   sizeof dev->info.uri - 1);
  snprintf(dev->info.uri, sizeof dev->info.uri, "%s", uri);
  int err = ct_plugin_open(uri, len, &dev->plugin, dev->error, sizeof dev->error);
  if (err) return err;
  err = dev->plugin.ops->open(colon ? colon + 1 : "", &dev->self, dev->error, sizeof dev->error);
  if (err < 0) dev->self = NULL;
  return err < 0 ? err : CT_OK;
}

int ct_device_failed(ct_device *dev, const char *uri, const struct ct_options *options, int err) {
  const char *text = dev && dev->error[0] ? dev->error : ct_strerror(err);
  if (options && options->why && options->why_size)
    snprintf(options->why, options->why_size, "%s", text);
  if (dev) ct_log(dev, CT_LOG_ERROR, "%s: %s", uri, text);
  ct_fail(NULL, err, "%s: %s", uri, text);
  return err;
}

static int take_options(ct_device *dev, const struct ct_options *options) {
  dev->log = options->log;
  dev->log_arg = options->log_arg;
  dev->log_level = (int)options->log_level;
  return ct_check_reserved(dev, "ct_options", options->reserved,
                           sizeof options->reserved / sizeof *options->reserved);
}

int ct_device_look(const char *uri, const struct ct_options *options, ct_device **device) {
  ct_device *dev = *device = calloc(1, sizeof *dev);
  if (!dev) return CT_ERR_MEMORY;
  dev->timeout_ms = CT_FOREVER;
  int err = options ? take_options(dev, options) : CT_OK;
  if (!err) err = open_transport(dev, uri);
  if (!err) err = read_info(dev);
  return err;
}

int ct_device_open(const char *uri, const struct ct_options *options, ct_device **device) {
  int err = ct_device_look(uri, options, device);
  if (!err) limit_memory(*device);
  if (!err) err = set_up(*device);
  return err;
}

/* Nothing is waited for but the registers' answers. */
static void shut_down(ct_device *dev) {
  for (uint32_t q = 0; dev->taken && q < CT_QUEUES; ++q)
    if (ct_reg_write(dev, CT_CTX_BASE + q * CT_CTX_STRIDE + CT_CREG_CONTROL, 1)) break;
  if (dev->opened) ct_log(dev, CT_LOG_INFO, "%s is closed", dev->info.uri);
  dev->opened = false;
  dev->plugin.ops->close(dev->self);
}

void ct_device_close(ct_device *dev) {
  if (dev->self) shut_down(dev);
  dev->self = NULL;
  dev->log = NULL;
  dev->closed = true;
  ct_heap_free_all(&dev->code);
  ct_heap_free_all(&dev->data);
  ct_plugin_close(&dev->plugin);
  ct_device_drop(dev);
}

int ct_info(ct_device *dev, struct ct_info *info) {
  const int err = ct_check_device(dev);
  if (err) return err;
  CT_NEED(dev, info);
  *info = dev->info;
  return CT_OK;
}

int ct_now(ct_device *dev, uint64_t *cycle) {
  int err = ct_check_device(dev);
  if (err) return err;
  CT_NEED(dev, cycle);
  err = dev->plugin.ops->now(dev->self, cycle);
  return err < 0 ? ct_fail_device(dev, err, "reading the clock failed") : CT_OK;
}

int ct_set_policy(ct_device *dev, enum ct_policy policy) {
  const int err = ct_check_device(dev);
  if (err) return err;
  if ((int)policy < CT_PRIORITY || policy > CT_SLACK)
    return ct_fail(dev, CT_ERR_ARG, "there is no policy %d", (int)policy);
  if (policy == CT_SLACK && !(dev->info.features & CT_FEATURE_REQUESTS))
    return ct_fail(dev, CT_ERR_UNSUPPORTED,
                   "this device knows no deadlines, so it has no policy CT_SLACK");
  return ct_reg_write(dev, CT_REG_POLICY, (uint32_t)policy);
}

int ct_set_timeout(ct_device *dev, int timeout_ms) {
  int err = ct_check_device(dev);
  if (!err) err = ct_check_timeout(dev, timeout_ms);
  if (!err) dev->timeout_ms = timeout_ms;
  return err;
}

/* ---- Counters ------------------------------------------------------------------------------ */

enum { COUNTERS = 32 };

static bool counter_exists(size_t index) {
  return index < COUNTERS && strcmp(ct_cnt_name((uint32_t)index), "?") != 0;
}

const char *ct_counter_name(size_t index) {
  return counter_exists(index) ? ct_cnt_name((uint32_t)index) : NULL;
}

const char *ct_counter_text(size_t index) {
  for (size_t i = 0; i < CT_NUM_CNT; ++i)
    if (ct_cnt_names[i].value == index) return ct_cnt_names[i].text;
  return NULL;
}

int ct_counters(ct_device *dev, enum ct_queue queue, uint64_t *values, size_t count) {
  int n = ct_check_device(dev);
  if (!n) n = ct_check_queue(dev, queue);
  if (n) return n;
  if (count) CT_NEED(dev, values);
  for (; counter_exists((size_t)n); ++n) {
    if ((size_t)n >= count) continue;
    const uint32_t at = CT_CNT_BASE + ((uint32_t)queue * COUNTERS + (uint32_t)n) * 8;
    uint32_t low = 0, high = 0;
    int err = ct_reg_read(dev, at, &low);
    if (!err) err = ct_reg_read(dev, at + 4, &high);
    if (err) return err;
    values[n] = (uint64_t)high << 32 | low;
  }
  return n;
}
