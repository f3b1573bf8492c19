/* SPDX-License-Identifier: Apache-2.0 */
/* Transports by name: those linked in, plug-ins SCHEME.so, and those that are known of. */
#define _GNU_SOURCE 1 /* dladdr */
#include <ctype.h>
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ct_device.h"
#include "ct_uri.h"

#ifndef CT_PLUGIN_DIR
#define CT_PLUGIN_DIR "/usr/local/lib/coltrain"
#endif

enum { LONGEST_SCHEME = 32 };

/* The folder of a path, in place. */
static void folder_of(char *path) {
  char *slash = strrchr(path, '/');
  if (slash) *slash = 0;
}

/* ---- The transports that are known ---------------------------------------------------------- */

/* What can stand before the colon (ct_uri.c says what each means). ops NULL: a plug-in, if it is
 * there; absent: what to say when it is not. Other plug-ins are found by their name alone. */
struct scheme {
  const char *name;
  const struct ct_transport_ops *ops;
  const char *absent;
};

static const struct scheme schemes[] = {
    {"emu", &ct_transport_emu, NULL},
    {"sim", NULL,
     "the simulator sim.so is not where plug-ins are looked for: build it with make, or name its "
     "folder in COLTRAIN_PLUGIN_DIR"},
    {"mmio", &ct_transport_mmio, NULL},
    {"usb", NULL,
     "the transport for boards on USB, usb.so, is not where plug-ins are looked for: install "
     "libusb-1.0-0-dev and build it with make, or name its folder in COLTRAIN_PLUGIN_DIR"},
    {"serial", NULL,
     "the transport for boards on a serial port, serial.so, is not where plug-ins are looked for: "
     "build it with make, or name its folder in COLTRAIN_PLUGIN_DIR"},
};
enum { SCHEMES = sizeof schemes / sizeof *schemes };

static const struct scheme *find_scheme(const char *name) {
  for (size_t i = 0; i < SCHEMES; ++i)
    if (!strcmp(name, schemes[i].name)) return &schemes[i];
  return NULL;
}

/* ---- Plug-ins ------------------------------------------------------------------------------ */

/* Tries FOLDER/SUB/SCHEME.so. False: there is no such file (go on looking). */
static bool try_load(const char *folder, const char *sub, const char *scheme, void **handle,
                     char *why, size_t why_size) {
  char path[PATH_MAX];
  const int n = snprintf(path, sizeof path, "%s%s/%s.so", folder, sub, scheme);
  if (n < 0 || (size_t)n >= sizeof path || access(path, F_OK)) return false;
  *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!*handle) snprintf(why, why_size, "%s", dlerror());
  return true;
}

/* The folder of the running program; "" if unknown. */
static void program_folder(char *path, size_t size) {
  const ssize_t n = readlink("/proc/self/exe", path, size - 1);
  path[n > 0 ? n : 0] = 0;
  folder_of(path);
}

/* The folder this library (or the program it is linked into) was loaded from; that of the file
 * itself, where a link leads to it. */
static void library_folder(char *path, size_t size) {
  Dl_info info;
  path[0] = 0;
  void *here = NULL;
  int (*function)(const char *, size_t, struct ct_plugin *, char *, size_t) = ct_plugin_open;
  memcpy(&here, &function, sizeof here);
  if (!dladdr(here, &info) || !info.dli_fname) return;
  if (size < PATH_MAX || !strchr(info.dli_fname, '/') || !realpath(info.dli_fname, path))
    path[0] = 0;
  folder_of(path);
}

/* Where plug-ins are, seen from the program's folder: in a build tree, and as installed. */
static const char *const beside_program[] = {"/../lib/coltrain", "/../../lib/coltrain",
#ifdef CT_MULTIARCH
                                             "/../lib/" CT_MULTIARCH "/coltrain",
#endif
                                             "/../lib64/coltrain"};
/* And from the library's. */
static const char *const beside_library[] = {"/coltrain", "/../lib/coltrain"};

static bool find_plugin(const char *scheme, void **handle, char *why, size_t why_size) {
  char program[PATH_MAX], library[PATH_MAX];
  program_folder(program, sizeof program);
  library_folder(library, sizeof library);
  const char *chosen = getenv("COLTRAIN_PLUGIN_DIR");
  if (chosen && *chosen && try_load(chosen, "", scheme, handle, why, why_size)) return true;
  for (size_t i = 0; *program && i < sizeof beside_program / sizeof *beside_program; ++i)
    if (try_load(program, beside_program[i], scheme, handle, why, why_size)) return true;
  for (size_t i = 0; *library && i < sizeof beside_library / sizeof *beside_library; ++i)
    if (try_load(library, beside_library[i], scheme, handle, why, why_size)) return true;
  return try_load(CT_PLUGIN_DIR, "", scheme, handle, why, why_size);
}

static int check_ops(struct ct_plugin *plugin, const char *scheme, char *why, size_t why_size) {
  const struct ct_transport_ops *(*entry)(void) = NULL;
  void *symbol = dlsym(plugin->handle, "ct_transport_plugin");
  memcpy(&entry, &symbol, sizeof entry);
  if (entry) plugin->ops = entry();
  if (!plugin->ops) {
    snprintf(why, why_size, "the plug-in for \"%s:\" has no ct_transport_plugin()", scheme);
    return CT_ERR_DEVICE;
  }
  if (plugin->ops->abi == CT_TRANSPORT_ABI) return CT_OK;
  snprintf(
      why, why_size,
      "the plug-in for \"%s:\" has interface version %u, this library %u: build or install both "
      "from one version of Coltrain",
      scheme, plugin->ops->abi, CT_TRANSPORT_ABI);
  return CT_ERR_ABI;
}

int ct_plugin_open(const char *scheme, size_t len, struct ct_plugin *plugin, char *why,
                   size_t why_size) {
  char name[LONGEST_SCHEME + 1];
  *plugin = (struct ct_plugin){NULL, NULL};
  bool plain = len > 0 && len <= LONGEST_SCHEME;
  for (size_t i = 0; plain && i < len; ++i)
    plain = isalnum((unsigned char)scheme[i]);
  if (!plain) {
    snprintf(why, why_size, "a device is named SCHEME:ARGUMENTS, such as emu: or sim:");
    return CT_ERR_ARG;
  }
  memcpy(name, scheme, len);
  name[len] = 0;
  const struct scheme *known = find_scheme(name);
  if (known && known->ops) {
    plugin->ops = known->ops;
    return CT_OK;
  }
  if (!find_plugin(name, &plugin->handle, why, why_size)) {
    if (known) {
      snprintf(why, why_size, "%s", known->absent);
      return CT_ERR_UNSUPPORTED;
    }
    snprintf(why, why_size,
             "there is no transport \"%s:\" (no %s.so where plug-ins are looked for)", name, name);
    return CT_ERR_NOT_FOUND;
  }
  if (!plugin->handle) return CT_ERR_DEVICE;
  const int err = check_ops(plugin, name, why, why_size);
  if (err) ct_plugin_close(plugin);
  return err;
}

void ct_plugin_close(struct ct_plugin *plugin) {
  if (plugin->handle) dlclose(plugin->handle);
  *plugin = (struct ct_plugin){NULL, NULL};
}

/* ---- The list ------------------------------------------------------------------------------ */

static void describe(const struct scheme *s, struct ct_entry *e) {
  struct ct_plugin plugin;
  char why[sizeof e->text] = "";
  snprintf(e->uri, sizeof e->uri, "%s:", s->name);
  e->error = ct_plugin_open(s->name, strlen(s->name), &plugin, why, sizeof why);
  snprintf(e->text, sizeof e->text, "%s", e->error ? why : ct_uri_find(s->name)->text);
  ct_plugin_close(&plugin);
}

int ct_list(struct ct_entry **entries, size_t *count) {
  CT_NEED(NULL, entries);
  CT_NEED(NULL, count);
  *count = 0;
  *entries = calloc(SCHEMES, sizeof **entries);
  if (!*entries) return ct_fail(NULL, CT_ERR_MEMORY, "the host has no memory left");
  for (; *count < SCHEMES; ++*count)
    describe(&schemes[*count], &(*entries)[*count]);
  return CT_OK;
}

/* ---- What the machine has ------------------------------------------------------------------- */

struct scan {
  const char *scheme;
  struct ct_entry *entry;
  size_t count, room;
  bool failed; /* the host has no memory */
};

static void note(void *arg, const char *args, const char *text, int error) {
  struct scan *s = arg;
  if (s->count == s->room && !s->failed) {
    const size_t room = s->room ? 2 * s->room : 8;
    struct ct_entry *entry = realloc(s->entry, room * sizeof *entry);
    s->failed = !entry;
    if (entry) {
      s->entry = entry;
      s->room = room;
    }
  }
  if (s->failed) return;
  struct ct_entry *e = &s->entry[s->count++];
  *e = (struct ct_entry){.error = error};
  snprintf(e->uri, sizeof e->uri, "%s:%s", s->scheme, args);
  snprintf(e->text, sizeof e->text, "%s", text);
}

static void scan_scheme(struct scan *s, const char *name) {
  struct ct_plugin plugin;
  char why[sizeof s->entry->text] = "";
  s->scheme = name;
  int err = ct_plugin_open(name, strlen(name), &plugin, why, sizeof why);
  if (err)
    note(s, "", why, err);
  else if (!plugin.ops->list)
    note(s, "", ct_uri_find(name)->text, CT_OK);
  else if ((err = plugin.ops->list(note, s)) < 0)
    note(s, "", ct_strerror(err), err);
  ct_plugin_close(&plugin);
}

int ct_scan(struct ct_entry **entries, size_t *count) {
  struct scan s = {.count = 0};
  CT_NEED(NULL, entries);
  CT_NEED(NULL, count);
  for (size_t i = 0; i < SCHEMES; ++i)
    scan_scheme(&s, schemes[i].name);
  if (s.failed) {
    free(s.entry);
    s.entry = NULL;
    s.count = 0;
  }
  *entries = s.entry;
  *count = s.count;
  return s.failed ? ct_fail(NULL, CT_ERR_MEMORY, "the host has no memory left") : CT_OK;
}

void ct_list_free(struct ct_entry *entries) {
  free(entries);
}
