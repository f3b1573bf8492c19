/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long batches take, and how early they have to go. See ct_server.h.
 *
 * The device keeps a table of service times for each model, by the size of a batch, and adds the
 * model's margin. A size that has not occurred would count as no time at all: so the table is full
 * before the first request comes. It is measured by batches of the server's own, or goes by the
 * first batch that is served: until then every batch is due at once.
 *
 * The margin holds what the table does not (see struct ct_serving). It is written anew when it has
 * changed by more than a sixteenth: servers come and go, batches get longer, training begins.
 */
#include "ct_server.h"

enum {
  START = 500,       /* cycles of the batcher, and of a job until it is in front */
  AT_ONCE = 1 << 30, /* a service time with which every batch is due */
  TRIAL_MS = 2000,   /* that a batch of the server's own may take */
  FADE = 64,         /* part by which the longest batch is forgotten with each shorter one */
  HYSTERESIS = 16,   /* part of a margin */
  MOST = 1 << 30     /* of a margin */
};

static uint32_t largest(const ct_server *s) {
  return s->how.max_batch ? s->how.max_batch : CT_BATCH_MAX;
}

/* ---- The table ----------------------------------------------------------------------------- */

/* The part of the way from a to b that i has gone, of n. */
static uint32_t between(uint32_t a, uint32_t b, uint32_t i, uint32_t n) {
  return (uint32_t)(((uint64_t)a * (n - i) + (uint64_t)b * i) / n);
}

/* Fills in what is 0: in a line between two sizes that are known; below them the smallest, for
 * fewer rows take no longer; above them in proportion, for one batch takes no longer than two. No
 * batch takes less than a smaller one. False: nothing is known. */
static bool fill(uint32_t c[CT_BATCH_MAX]) {
  uint32_t last = CT_BATCH_MAX;
  for (uint32_t n = 0; n < CT_BATCH_MAX; ++n) {
    if (!c[n]) continue;
    for (uint32_t i = last == CT_BATCH_MAX ? 0 : last + 1; i < n; ++i)
      c[i] = last == CT_BATCH_MAX ? c[n] : between(c[last], c[n], i - last, n - last);
    last = n;
  }
  if (last == CT_BATCH_MAX) return false;
  for (uint32_t n = last + 1; n < CT_BATCH_MAX; ++n) {
    const uint64_t more = (uint64_t)c[last] * (n + 1) / (last + 1);
    c[n] = more < AT_ONCE ? (uint32_t)more : AT_ONCE;
  }
  for (uint32_t n = 1; n < CT_BATCH_MAX; ++n)
    if (c[n] < c[n - 1]) c[n] = c[n - 1];
  return true;
}

static void at_once(uint32_t c[CT_BATCH_MAX]) {
  for (uint32_t n = 0; n < CT_BATCH_MAX; ++n)
    c[n] = AT_ONCE;
}

/* The table as the device gets it. */
static void settle_table(ct_server *s) {
  struct ct_service *v = &s->service;
  v->known = fill(v->cycles);
  if (v->known)
    v->longest = v->cycles[largest(s) - 1];
  else if (s->dev->info.has_clock && s->how.batching == CT_BATCHING_ADAPTIVE)
    at_once(v->cycles);
}

/* ---- The margin ---------------------------------------------------------------------------- */

/* The longest batch of all servers. */
static uint32_t longest_of_all(const ct_device *dev) {
  uint32_t most = 0;
  for (unsigned i = 0; i < CT_MODELS; ++i) {
    const ct_server *s = ct_requests_of(dev)->server[i];
    if (s && s->service.longest > most) most = s->service.longest;
  }
  return most;
}

/* A server whose batches nobody has seen counts as the longest. */
static uint32_t reckon(const ct_server *s) {
  const struct ct_service *v = &s->service;
  const uint32_t most = longest_of_all(s->dev);
  uint64_t sum = UINT64_C(2) * most + v->loads + START;
  for (unsigned i = 0; i < CT_MODELS; ++i) {
    const ct_server *other = ct_requests_of(s->dev)->server[i];
    if (other && other != s) sum += other->service.longest ? other->service.longest : most;
  }
  if (v->known) sum += v->cycles[largest(s) - 1] - v->cycles[0];
  if (ct_requests_of(s->dev)->trained) sum += v->training;
  return sum < MOST ? (uint32_t)sum : MOST;
}

static bool has_margin(const ct_server *s) {
  return s->how.batching == CT_BATCHING_ADAPTIVE && !s->how.margin && s->dev->info.has_clock;
}

static int tell_margin(ct_server *s) {
  const uint32_t margin = reckon(s), now = s->service.margin;
  const uint32_t apart = margin > now ? margin - now : now - margin;
  if (apart <= now / HYSTERESIS) return CT_OK;
  const int err = ct_server_write_words(s, CT_MODEL_MARGIN, &margin, 1);
  if (!err) s->service.margin = margin;
  return err;
}

/* Whether something trains: what the library copies by that queue does not count. */
static void look_at_training(ct_device *dev) {
  ct_requests_of(dev)->trained |= ct_queue_is_at(dev, CT_TRAINING, CT_EVENT_STEP) ||
                                  ct_queue_is_at(dev, CT_TRAINING, CT_EVENT_APPLY) ||
                                  ct_queue_is_at(dev, CT_TRAINING, CT_EVENT_RUN) ||
                                  ct_queue_is_at(dev, CT_TRAINING, CT_EVENT_JOB);
}

int ct_services_poll(ct_device *dev) {
  int err = CT_OK;
  look_at_training(dev);
  for (unsigned i = 0; i < CT_MODELS && !err; ++i) {
    ct_server *s = ct_requests_of(dev)->server[i];
    if (!s || !s->followed || s->ending || s->service.trying || !s->dev->info.has_clock) continue;
    err = has_margin(s) ? tell_margin(s) : CT_OK;
    if (!err && s->service.unsent)
      err = ct_server_write_words(s, CT_MODEL_SERVICE, s->service.cycles, CT_BATCH_MAX);
    if (!err) s->service.unsent = false;
  }
  return err;
}

/* ---- Batches that were served --------------------------------------------------------------- */

void ct_service_saw(ct_server *s, const struct ct_event *event) {
  struct ct_service *v = &s->service;
  if (v->trying || event->error || !event->batch || event->start == v->last) return;
  if (event->start == CT_NO_CYCLE || event->end - event->start >= AT_ONCE) return;
  const uint32_t took = (uint32_t)(event->end - event->start);
  v->last = event->start;
  v->longest = took > v->longest ? took : v->longest - (v->longest - took) / FADE;
  if (v->known || s->how.batching != CT_BATCHING_ADAPTIVE) return;
  for (uint32_t n = 0; n < CT_BATCH_MAX; ++n)
    v->cycles[n] = n + 1 == event->batch ? took : 0;
  v->known = fill(v->cycles);
  v->unsent = true;
}

/* ---- Batches of its own --------------------------------------------------------------------- */

/* Policy, the size at which a batch goes, how long it waits for others. */
static int write_control(ct_server *s, enum ct_batching batching, uint32_t most, uint32_t wait) {
  const uint32_t control[] = {(uint32_t)batching | most << 8, wait, s->service.margin};
  return ct_server_write_words(s, CT_MODEL_CTL, control, 3);
}

static int await_trials(ct_server *s) {
  struct ct_patience p = ct_patience(CT_NO_CYCLE, TRIAL_MS);
  int err = ct_poll(s->dev);
  while (!err && s->service.trials) {
    err = ct_wait_more(s->dev, &p, "request");
    if (!err) err = ct_poll(s->dev);
  }
  return err;
}

/* A batch of n. *cycles stays if it fails, as it does when its watchdog is too short. */
static int try_batch(ct_server *s, uint32_t n, uint32_t *cycles) {
  struct ct_service *v = &s->service;
  int err = write_control(s, CT_BATCHING_FIXED, n, UINT32_MAX);
  if (!err) err = ct_requests_try(s, v->memory, v->memory + v->answer_at, n);
  if (!err) err = await_trials(s);
  if (err || v->trial.error) return err;
  const uint64_t took = v->trial.end - v->trial.start;
  *cycles = took < AT_ONCE ? (uint32_t)took : AT_ONCE;
  return CT_OK;
}

static int try_batches(ct_server *s) {
  struct ct_service *v = &s->service;
  uint32_t first = 0;
  int err = try_batch(s, 1, &first);
  v->cycles[0] = first;
  if (!err && s->kept) err = try_batch(s, 1, &v->cycles[0]);
  if (!err && first && largest(s) > 1) err = try_batch(s, largest(s), &v->cycles[largest(s) - 1]);
  if (first > v->cycles[0]) v->loads = first - v->cycles[0];
  return err;
}

/* Rows of zeros, and where their answers go. */
static int open_memory(ct_server *s) {
  struct ct_service *v = &s->service;
  static const uint8_t zeros[4096];
  const uint64_t row =
      ((uint64_t)ct_pack_row_size(s->net.width[0]) + CT_UNIT - 1) / CT_UNIT * CT_UNIT;
  int err = ct_mem_alloc(s->dev, row + ((uint64_t)s->net.width[s->net.layers] + 3) / 4 * CT_UNIT,
                         &v->memory);
  v->answer_at = row;
  for (uint64_t at = 0; at < row && !err; at += sizeof zeros) {
    const uint64_t left = row - at;
    err = ct_mem_write(s->dev, v->memory + at, zeros, left < sizeof zeros ? left : sizeof zeros);
  }
  return err;
}

void ct_service_close(ct_server *s) {
  if (s->service.memory && s->dev->self) ct_heap_free(&s->dev->data, s->service.memory);
  s->service.memory = 0;
}

static bool is_preset(const ct_server *s) {
  for (uint32_t n = 0; n < CT_BATCH_MAX; ++n)
    if (s->how.service[n]) return true;
  return false;
}

int ct_service_measure(ct_server *s) {
  struct ct_service *v = &s->service;
  const bool wanted = s->how.batching == CT_BATCHING_ADAPTIVE || s->how.deadline;
  if (!wanted || is_preset(s) || !s->dev->info.has_clock) return CT_OK;
  v->trying = true;
  int err = open_memory(s);
  if (err) { /* nothing is known then */
    ct_service_close(s);
    v->trying = false;
    return CT_OK;
  }
  err = try_batches(s);
  if (err) err = ct_server_quiet(s);
  v->trying = false;
  if (!err) ct_service_close(s);
  return err;
}

int ct_service_begin(ct_server *s) {
  struct ct_service *v = &s->service;
  if (is_preset(s))
    for (uint32_t n = 0; n < CT_BATCH_MAX; ++n)
      v->cycles[n] = s->how.service[n];
  settle_table(s);
  v->margin = has_margin(s) ? reckon(s) : s->how.margin;
  const int err = write_control(s, s->how.batching, s->how.max_batch, s->how.max_wait);
  return err ? err : ct_server_write_words(s, CT_MODEL_SERVICE, v->cycles, CT_BATCH_MAX);
}

/* ---- Deadlines ------------------------------------------------------------------------------ */

uint32_t ct_service_least(const ct_server *s) {
  return s->service.known ? s->service.cycles[0] : 0;
}

uint32_t ct_service_safe(const ct_server *s) {
  return s->service.known ? s->service.cycles[0] + s->service.margin : 0;
}

void ct_service_warn(ct_server *s, uint32_t deadline) {
  struct ct_service *v = &s->service;
  const uint32_t least = ct_service_least(s), safe = ct_service_safe(s);
  const bool adaptive = s->how.batching == CT_BATCHING_ADAPTIVE;
  if (!deadline) return;
  if (deadline < least && !v->warned) {
    v->warned = true;
    ct_log(s->dev, CT_LOG_WARNING,
           "a deadline of %u cycles cannot hold: a request alone takes %u; it is served all the "
           "same",
           (unsigned)deadline, (unsigned)least);
  } else if (adaptive && deadline >= least && deadline < safe && !v->warned_late) {
    v->warned_late = true;
    ct_log(s->dev, CT_LOG_INFO,
           "a deadline of %u cycles leaves nothing to wait for: it may be missed when other "
           "batches are in front; from %u cycles on it is not",
           (unsigned)deadline, (unsigned)safe);
  }
}
