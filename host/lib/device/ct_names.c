/* SPDX-License-Identifier: Apache-2.0 */
/* What things are called: the library's version, policies, ways to make batches. */
#include <string.h>

#include "ct_device.h"

const char *ct_version(void) {
  return CT_VERSION_STRING;
}

uint32_t ct_version_number(void) {
  return CT_VERSION_NUMBER;
}

/* ---- Lists of names ------------------------------------------------------------------------ */

/* The names of an enum that counts from 0. */
struct names {
  const char *what, *all; /* "policy"; the list for people */
  const char *const *name;
  int count;
};

static const char *name_of(const struct names *n, int value) {
  return value >= 0 && value < n->count ? n->name[value] : NULL;
}

static int find(const struct names *n, const char *name, int *value) {
  for (int i = 0; i < n->count; ++i) {
    if (strcmp(n->name[i], name) != 0) continue;
    *value = i;
    return CT_OK;
  }
  return ct_fail(NULL, CT_ERR_ARG, "there is no %s \"%s\": %s", n->what, name, n->all);
}

static const char *const policy_name[] = {
    [CT_PRIORITY] = "priority", [CT_FCFS] = "fcfs",   [CT_ROUND_ROBIN] = "round-robin",
    [CT_WHOLE_JOB] = "job",     [CT_SLACK] = "slack",
};
static const struct names policies = {"policy", "priority, fcfs, round-robin, job or slack",
                                      policy_name, sizeof policy_name / sizeof *policy_name};

const char *ct_policy_name(enum ct_policy policy) {
  return name_of(&policies, (int)policy);
}

int ct_policy_by_name(const char *name, enum ct_policy *policy) {
  int value = 0;
  CT_NEED(NULL, name);
  CT_NEED(NULL, policy);
  const int err = find(&policies, name, &value);
  if (!err) *policy = (enum ct_policy)value;
  return err;
}

static const char *const batching_name[] = {
    [CT_BATCHING_NONE] = "none",
    [CT_BATCHING_FIXED] = "fixed",
    [CT_BATCHING_ADAPTIVE] = "adaptive",
};
static const struct names batchings = {"batching", "none, fixed or adaptive", batching_name,
                                       sizeof batching_name / sizeof *batching_name};

const char *ct_batching_name(enum ct_batching batching) {
  return name_of(&batchings, (int)batching);
}

int ct_batching_by_name(const char *name, enum ct_batching *batching) {
  int value = 0;
  CT_NEED(NULL, name);
  CT_NEED(NULL, batching);
  const int err = find(&batchings, name, &value);
  if (!err) *batching = (enum ct_batching)value;
  return err;
}
