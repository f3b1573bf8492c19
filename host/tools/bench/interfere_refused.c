/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bound of a job where the memory refuses at random ("stall="). It refuses in other cycles
 * beside training than alone, so a job's latency alone says little about that beside training.
 * What holds: a cycle in which the memory refuses something costs a job that cycle at most. So
 *
 *   latency <= latency alone, without refusals + cycles with a refusal in it + bound of the job
 *
 * The first of these is measured on a second device that is the same but for "stall="; the second
 * is counted by the memory, whatever was refused and to whom.
 */
#include <stdlib.h>
#include <string.h>

#include "ct_uri.h"
#include "interfere.h"

/* From the third on, a job's program is guessed and asked for with its descriptor. */
enum { SETTLED = 4 };

static void note(void *arg, uint64_t cycle, uint64_t events) {
  struct interfere *t = arg;
  (void)events;
  if (cycle == t->refusals.from) t->refusals.before = t->refusals.recent[(cycle - 1) % RECENT];
  t->refusals.recent[cycle % RECENT] = t->live.refused;
  t->refusals.cycle = cycle;
}

void interfere_clear(struct interfere *t) {
  memset(&t->live, 0, sizeof t->live);
  t->live.watch = t->refused > 0 ? note : NULL;
  t->live.watch_arg = t;
}

uint64_t interfere_refused_until(const struct interfere *t, uint64_t end) {
  const bool recent = t->refusals.cycle - end < RECENT;
  return (recent ? t->refusals.recent[end % RECENT] : t->live.refused) - t->refusals.before;
}

/* The device that never refuses, and without a file for waves, which is the first one's. */
static char *unrefusing(const char *device) {
  static const char *const keys[] = {"stall", "wave", NULL};
  char *uri = malloc(strlen(device) + 1);
  if (uri) ct_uri_without(device, keys, uri);
  return uri;
}

static int measure(const struct interfere_options *o, struct interfere *plain, uint64_t *cycles) {
  const int status = interfere_open(plain, o) || interfere_service(plain, SETTLED, cycles);
  interfere_close(plain);
  return status;
}

int interfere_unrefused(struct interfere *t) {
  struct interfere_options o = *t->o;
  struct interfere *plain = calloc(1, sizeof *plain);
  char *uri = unrefusing(o.device);
  o.device = uri;
  o.load = LOAD_NONE;
  const int status = plain && uri ? measure(&o, plain, &t->unrefused)
                                  : cli_fail("no memory for a device without refusals");
  free(uri);
  free(plain);
  return status;
}

int64_t interfere_beyond(const struct interfere *t, const struct interfere_run *r) {
  int64_t most = 0;
  for (size_t i = 0; i < r->jobs; ++i) {
    const int64_t more = (int64_t)(r->latency[i] - r->refused[i] - t->unrefused);
    if (!i || more > most) most = more;
  }
  return most;
}
