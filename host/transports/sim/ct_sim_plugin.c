/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plug-in "sim:": chooses the model that core= names. For wave= and threads=2 it loads a twin
 * from the build tree beside it: a model that can write waves is slower even when it does not, and
 * the number of threads is decided when a model is made.
 */
#define _GNU_SOURCE /* dladdr */
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ct_sim.h"
#include "coltrain/coltrain.h" /* the errors transports return */
#include "host/transports/ct_uri.h"

/* Every model's device begins with a pointer to its functions. */
static const struct ct_transport_ops *ops_of(void *self) {
  return *(const struct ct_transport_ops *const *)self;
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

/* Another build tree beside this one. */
struct twin {
  const char *folder, *option, *why, *make;
};

static const struct twin traced = {"trace", "wave=", "a model that writes waves", "make TRACE=1"};
static const struct twin threaded = {"threads2", "threads=2", "a model of two threads",
                                     "make THREADS=2"};

/* The twin's plug-in. */
static void twin_path(const struct twin *twin, char path[PATH_MAX + 64]) {
  Dl_info here;
  static const char anchor;
  *path = 0;
  if (!dladdr(&anchor, &here) || !here.dli_fname) return;
  char tree[PATH_MAX];
  if (!realpath(here.dli_fname, tree)) return;
  for (int i = 0; i < 3; ++i) { /* lib/coltrain/sim.so */
    char *slash = strrchr(tree, '/');
    if (slash) *slash = 0;
  }
  snprintf(path, PATH_MAX + 64, "%s/%s/lib/coltrain/sim.so", tree, twin->folder);
}

static int open_twin(const struct twin *twin, const char *args, void **self, char *why,
                     size_t whysize) {
  char path[PATH_MAX + 64];
  twin_path(twin, path);
  if (access(path, F_OK)) {
    snprintf(why, whysize,
             "option %s needs %s, which takes minutes to build and which the ordinary build leaves "
             "out: run %s in the source tree, then try again (it makes %s)",
             twin->option, twin->why, twin->make, path);
    return CT_ERR_UNSUPPORTED;
  }
  void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  const struct ct_transport_ops *(*plugin)(void) = NULL;
  if (lib) *(void **)&plugin = dlsym(lib, "ct_transport_plugin");
  if (plugin && plugin != ct_transport_plugin && plugin()->abi == CT_TRANSPORT_ABI)
    return plugin()->open(args, self, why, whysize);
  const char *reason = lib ? "it is of another version" : dlerror();
  snprintf(why, whysize, "option %s: %s cannot be used: %s; run %s again", twin->option, path,
           reason, twin->make);
  if (lib) dlclose(lib);
  return CT_ERR_ABI;
}

static int plugin_open(const char *args, void **self, char *why, size_t whysize) {
  struct ct_uri u;
  if (!ct_uri_parse(&u, "sim", args, why, whysize)) return CT_ERR_ARG;
  const bool waves = ct_uri_given(&u, "wave");
  if (waves && !HAS_WAVES) return open_twin(&traced, args, self, why, whysize);
  if (ct_uri_number(&u, "threads") == 2 && !waves && CT_SIM_THREADS != 2)
    return open_twin(&threaded, args, self, why, whysize);
  const struct ct_transport_ops *core = &ct_core_sim;
  if (ct_uri_is(&u, "core", "16x8")) core = &ct_core_16x8_sim;
  if (ct_uri_is(&u, "core", "16x4")) core = &ct_core_16x4_sim;
  return core->open(args, self, why, whysize);
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

static const char *plugin_memory(void *self) {
  return ops_of(self)->memory(self);
}

static int plugin_list(ct_transport_found *found, void *arg) {
  found(arg, "core=16x16", "simulated core, 16 x 16, 16 vector lanes, 1 MiB of scratchpad", CT_OK);
  found(arg, "core=16x8", "simulated core, 16 x 8, 4 vector lanes, 128 KiB of scratchpad", CT_OK);
  found(arg, "core=16x4", "simulated core, 16 x 4, 4 vector lanes, 64 KiB of scratchpad", CT_OK);
  return CT_OK;
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
      .memory = plugin_memory,
      .list = plugin_list,
  };
  return &ops;
}
