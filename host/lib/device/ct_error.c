/* SPDX-License-Identifier: Apache-2.0 */
/* Sentences about what went wrong, the log, and handles that are no longer good. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ct_cmd.h"
#include "ct_device.h"

/* ---- Sentences ----------------------------------------------------------------------------- */

const char *ct_strerror(int error) {
  static const char *const text[] = {
      "success",
      "invalid argument",
      "out of memory",
      "the device does not answer as it should",
      "not found",
      "permission denied",
      "input/output error",
      "incompatible interface version",
      "timed out",
      "the queue is full",
      "not enough memory on the device",
      "not supported",
      "the job failed",
      "cancelled",
      "wrong file format",
      "internal error",
      "closed or freed before",
      "open elsewhere",
  };
  const size_t n = sizeof text / sizeof *text;
  return error <= 0 && (size_t) - (long)error < n ? text[-error] : "unknown error";
}

/* As errno: the only thing that is not kept in a device, for calls that were given none. */
static _Thread_local char without_device[512];

int(ct_fail)(ct_device *dev, int error, const char *format, ...) {
  char text[sizeof without_device]; /* the arguments may point into the old sentence */
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  if (!dev) {
    memcpy(without_device, text, sizeof text);
    return error;
  }
  memcpy(dev->error, text, sizeof dev->error);
  free(dev->long_error);
  dev->long_error = NULL;
  const bool severe = error == CT_ERR_DEVICE || error == CT_ERR_INTERNAL;
  if (dev->opened) ct_log(dev, severe ? CT_LOG_ERROR : CT_LOG_DEBUG, "%s", text);
  return error;
}

int ct_fail_long(ct_device *dev, int error, const char *text) {
  char *all = strlen(text) < sizeof dev->error ? NULL : strdup(text);
  (void)ct_fail(dev, error, "%s", text);
  dev->long_error = all;
  return error;
}

int ct_fail_device(ct_device *dev, int error, const char *format, ...) {
  char text[sizeof without_device];
  const struct ct_transport_ops *ops = dev->plugin.ops;
  const char *why = error == CT_ERR_DEVICE && ops->error ? ops->error(dev->self) : "";
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  return ct_fail(dev, error, "%s%s%s", text, *why ? ": " : "", why);
}

void ct_log(ct_device *dev, int level, const char *format, ...) {
  if (!dev->log || level > dev->log_level) return;
  char text[1024];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  dev->log(dev->log_arg, level, text);
}

const char *ct_last_error(const ct_device *dev) {
  if (!dev) return without_device;
  return dev->long_error ? dev->long_error : dev->error;
}

const char *ct_code_name(uint32_t code) {
  return ct_dev_name(code);
}

const char *ct_code_text(uint32_t code) {
  return ct_dev_text(code);
}

/* ---- Arguments ----------------------------------------------------------------------------- */

int ct_check_device(ct_device *dev) {
  if (!dev) return ct_fail(NULL, CT_ERR_ARG, "the device is NULL: ct_open() makes one");
  return dev->self ? CT_OK : ct_fail(dev, CT_ERR_CLOSED, "the device %s is closed", dev->info.uri);
}

int ct_check_queue(ct_device *dev, enum ct_queue queue) {
  if (queue == CT_INFERENCE || queue == CT_TRAINING) return CT_OK;
  return ct_fail(dev, CT_ERR_ARG, "there is no queue %d: CT_INFERENCE or CT_TRAINING", (int)queue);
}

int ct_check_reserved(ct_device *dev, const char *what, const uintptr_t *word, size_t count) {
  for (size_t i = 0; i < count; ++i)
    if (word[i])
      return ct_fail(dev, CT_ERR_ARG,
                     "reserved[%zu] of %s is not 0: set the whole structure to zeros before its "
                     "fields (or it was made for a newer library)",
                     i, what);
  return CT_OK;
}

int ct_check_timeout(ct_device *dev, int timeout_ms) {
  if (timeout_ms >= 0 || timeout_ms == CT_FOREVER) return CT_OK;
  return ct_fail(dev, CT_ERR_ARG,
                 "a timeout of %d ms: it must be CT_NO_WAIT (0), CT_FOREVER (-1) or positive",
                 timeout_ms);
}

int ct_check_range(ct_device *dev, const char *what, uint64_t addr, uint64_t size) {
  const uint64_t end = dev->info.dram_bytes;
  if (addr % CT_UNIT)
    return ct_fail(dev, CT_ERR_ARG, "%s at 0x%llx: the address must be a multiple of %d", what,
                   (unsigned long long)addr, CT_UNIT);
  if (addr >= dev->data_start && addr <= end && size <= end - addr) return CT_OK;
  return ct_fail(dev, CT_ERR_ARG,
                 "%s at 0x%llx (%llu bytes) is not within the device memory 0x%llx..0x%llx", what,
                 (unsigned long long)addr, (unsigned long long)size,
                 (unsigned long long)dev->data_start, (unsigned long long)end - 1);
}

/* ---- Handles ------------------------------------------------------------------------------- */

void ct_handle_open(struct ct_handle *h, ct_device *dev) {
  *h = (struct ct_handle){.dev = dev, .live = true};
  ++dev->handles;
}

int ct_check_handle(const struct ct_handle *h, const char *what) {
  if (!h) return ct_fail(NULL, CT_ERR_ARG, "the %s is NULL", what);
  if (!h->live) return ct_fail(h->dev, CT_ERR_CLOSED, "the %s was freed before", what);
  if (h->dev->self) return CT_OK;
  return ct_fail(h->dev, CT_ERR_CLOSED, "the %s's device %s is closed", what, h->dev->info.uri);
}

bool ct_handle_close(struct ct_handle *h, const char *what) {
  if (!h) return false;
  if (!h->live) {
    ct_fail(h->dev, CT_ERR_CLOSED, "the %s was freed before", what);
    ct_log(h->dev, CT_LOG_WARNING, "a %s was freed twice", what);
    return false;
  }
  h->live = false;
  return true;
}

void ct_handle_bury(struct ct_handle *h) {
  ct_device *dev = h->dev;
  struct ct_handle **place = &dev->grave[dev->graves++ % CT_GRAVES];
  free(*place);
  *place = h;
  --dev->handles;
  if (!dev->self) ct_device_drop(dev);
}

void ct_handle_burn(struct ct_handle *h) {
  ct_device *dev = h->dev;
  free(h);
  --dev->handles;
  if (!dev->self) ct_device_drop(dev);
}

void ct_device_drop(ct_device *dev) {
  if (dev->handles) return;
  for (size_t i = 0; i < CT_GRAVES; ++i)
    free(dev->grave[i]);
  free(dev->long_error);
  free(dev);
}
