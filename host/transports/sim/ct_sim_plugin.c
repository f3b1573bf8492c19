/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plug-in "sim:": chooses the model that core= names. For wave= and threads=2 it loads a twin
 * from the build tree beside it: a model that can write waves is slower even when it does not, and
 * the number of threads is decided when a model is made.
 */
#define _GNU_SOURCE /* dladdr */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "ct_sim.h"
#include "host/transports/ct_args.h"

/* Every model's device begins with a pointer to its functions. */
static const struct ct_transport_ops *ops_of(void *self) {
  return *(const struct ct_transport_ops *const *)self;
}

/* The value of one option in args, or "". */
static void find_option(const char *args, const char *name, char *value, size_t size) {
  *value = 0;
  for (const char *p = args ? args : ""; *p; p += strcspn(p, ","), p += *p == ',') {
    const size_t len = strlen(name);
    if (strncmp(p, name, len) != 0 || p[len] != '=') continue;
    snprintf(value, size, "%.*s", (int)strcspn(p + len + 1, ","), p + len + 1);
  }
}

/* What this build can do itself; for the rest its twins are asked. */
#ifdef CT_SIM_TRACE
enum { HAS_WAVES = 1 };
#else
enum { HAS_WAVES = 0 };
#endif
#ifndef CT_SIM_THREADS
#define CT_SIM_THREADS 1
#endif

/* Opens a device of the plug-in in the build tree `twin` beside this one. */
static int open_twin(const char *twin, const char *made_by, const char *args, void **self,
                     char *why, size_t whysize) {
  char path[4096] = "";
  Dl_info here;
  static const char anchor;
  if (dladdr(&anchor, &here) && here.dli_fname) {
    const char *slash = strrchr(here.dli_fname, '/');
    const int dir = slash ? (int)(slash - here.dli_fname) : 0;
    snprintf(path, sizeof path, "%.*s%s../../%s/lib/coltrain/sim.so", dir, here.dli_fname,
             slash ? "/" : "", twin);
  }
  void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  const struct ct_transport_ops *(*plugin)(void) = NULL;
  if (lib) *(void **)&plugin = dlsym(lib, "ct_transport_plugin");
  if (plugin && plugin != ct_transport_plugin) return plugin()->open(args, self, why, whysize);
  snprintf(why, whysize, "this needs another model (%s), which is not at %s", made_by, path);
  if (lib) dlclose(lib);
  return CT_ERR_DEVICE;
}

static int plugin_open(const char *args, void **self, char *why, size_t whysize) {
  char core[32], wave[8], threads[8];
  find_option(args, "core", core, sizeof core);
  find_option(args, "wave", wave, sizeof wave);
  find_option(args, "threads", threads, sizeof threads);
  if (*wave && !HAS_WAVES) return open_twin("trace", "make TRACE=1", args, self, why, whysize);
  if (strcmp(threads, "2") == 0 && !*wave && CT_SIM_THREADS != 2)
    return open_twin("threads2", "make THREADS=2", args, self, why, whysize);
  if (!*core || strcmp(core, "16x16") == 0) return ct_core_sim.open(args, self, why, whysize);
  if (strcmp(core, "16x8") == 0) return ct_core_16x8_sim.open(args, self, why, whysize);
  snprintf(why, whysize, "option core=%s: there are 16x16 and 16x8", core);
  return CT_ERR_ARG;
}

static void plugin_close(void *self) {
  if (self) ops_of(self)->close(self);
}

static int plugin_reg_read(void *self, uint32_t offset, uint32_t *value) {
  return ops_of(self)->reg_read(self, offset, value);
}

static int plugin_reg_write(void *self, uint32_t offset, uint32_t value) {
  return ops_of(self)->reg_write(self, offset, value);
}

static int plugin_reg_write_at(void *self, uint64_t cycle, uint32_t offset, uint32_t value) {
  return ops_of(self)->reg_write_at(self, cycle, offset, value);
}

static int plugin_mem_read(void *self, uint64_t addr, void *buf, size_t size) {
  return ops_of(self)->mem_read(self, addr, buf, size);
}

static int plugin_mem_write(void *self, uint64_t addr, const void *buf, size_t size) {
  return ops_of(self)->mem_write(self, addr, buf, size);
}

static int plugin_wait(void *self, uint64_t until, int timeout_ms) {
  return ops_of(self)->wait(self, until, timeout_ms);
}

static int plugin_now(void *self, uint64_t *cycle) {
  return ops_of(self)->now(self, cycle);
}

static int plugin_fault(void *self, enum ct_fault kind, uint64_t addr) {
  return ops_of(self)->fault(self, kind, addr);
}

static int plugin_probe(void *self, struct ct_probe *probe) {
  return ops_of(self)->probe(self, probe);
}

static const char *plugin_error(void *self) {
  return ops_of(self)->error(self);
}

const struct ct_transport_ops *ct_transport_plugin(void) {
  static const struct ct_transport_ops ops = {
      .abi = CT_TRANSPORT_ABI,
      .scheme = "sim",
      .open = plugin_open,
      .close = plugin_close,
      .reg_read = plugin_reg_read,
      .reg_write = plugin_reg_write,
      .reg_write_at = plugin_reg_write_at,
      .mem_read = plugin_mem_read,
      .mem_write = plugin_mem_write,
      .wait = plugin_wait,
      .now = plugin_now,
      .fault = plugin_fault,
      .probe = plugin_probe,
      .error = plugin_error,
  };
  return &ops;
}
