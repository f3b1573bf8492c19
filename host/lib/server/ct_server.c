/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Models for serving. See ct_server.h.
 *
 * Weights that stay. A server's weights have a place at the upper end of the inference window where
 * they fit there beside what the batches of all servers use for a while. Its batches load them
 * there (`program`), until one of them has done so: from then on batches find them (`resident`). A
 * new version, a batch that failed, and a job of the inference ring, which may use all of the
 * scratchpad, put an end to that, and batches load again. Which of the two it is goes by the
 * descriptor, as versions do, so no batch sees half of it. Batches on their way while one is found
 * to have loaded them load the same words once more; should a read of theirs fail, it writes none,
 * so those behind still find what they expect.
 */
#include "ct_server.h"

#include <stdlib.h>
#include <string.h>

#include "ct_sharing.h"

/* ---- The model's words --------------------------------------------------------------------- */

int ct_server_write_words(ct_server *s, uint32_t word, const uint32_t *value, unsigned count) {
  int err = ct_reg_write(s->dev, CT_REG_MODEL_ADDR, s->number * CT_MODEL_WORDS + word);
  for (unsigned i = 0; i < count && !err; ++i)
    err = ct_reg_write(s->dev, CT_REG_MODEL_DATA, value[i]);
  return err;
}

/* What the batches go by that are formed from now on. Nothing has to be waited for: the device
 * forms a batch, its descriptor included, and commits in one piece each, so these words go to the
 * copy that no batch reads. */
static int write_descriptor(ct_server *s, const ct_weights *weights, bool kept) {
  const ct_program *program = kept ? s->resident : s->program;
  uint32_t desc[CT_DESC_BYTES / 4] = {0};
  desc[CT_DESC_VERSION] = weights->version;
  desc[CT_DESC_PROG] = ct_units_of(program->addr);
  desc[CT_DESC_NCMDS] = program->count;
  desc[CT_DESC_WATCHDOG] = s->how.watchdog;
  /* A batch reads an image and its rows; the job before it writes answers. */
  desc[CT_DESC_FLAGS] = s->work ? 0 : CT_JOB_OVERLAP;
  if (s->work) desc[CT_DESC_ARG0 + ct_infer_work(CT_INFER_BATCH) - 1] = ct_units_of(s->work);
  desc[CT_DESC_ARG0 + CT_INFER_IMAGE - 1] = ct_units_of(weights->image);
  int err = ct_server_write_words(s, 0, desc, CT_DESC_BYTES / 4);
  return err ? err : ct_reg_write(s->dev, CT_REG_MODEL_COMMIT, s->number);
}

/* Lets go of outgoing weights that no batch can use any more; all: of every one. */
static void let_go(ct_server *s, bool all) {
  for (struct ct_outgoing **at = &s->outgoing, *o; (o = *at);) {
    if (!all && (o->open || o->old)) {
      at = &o->next;
      continue;
    }
    *at = o->next;
    ct_weights_drop(o->weights, ct_use_serves());
    free(o);
  }
}

/* The device surely has what is said here: open changes are over, too. */
static void close_changes(ct_server *s) {
  for (struct ct_outgoing *o = s->outgoing; o; o = o->next) {
    if (!o->open) continue;
    o->open = false;
    o->before = ct_requests_of(s->dev)->handed;
    o->old = s->in_device;
  }
  let_go(s, false);
}

void ct_server_passed(ct_server *s, uint64_t seq) {
  for (struct ct_outgoing *o = s->outgoing; o; o = o->next)
    if (!o->open && seq < o->before) --o->old;
  let_go(s, false);
}

/* Writes the descriptor. If that fails, it may have taken effect all the same: the server is unsure
 * and stays with what it had, which the device is given again when it is looked at. */
static int tell(ct_server *s, ct_weights *weights, bool kept) {
  int err = ct_requests_sure(s->dev); /* it counts as one in the device, or not */
  s->unsure = true;
  if (!err) err = write_descriptor(s, weights, kept);
  if (err) {
    ct_show_outstanding(s->dev);
    return err;
  }
  s->unsure = false;
  s->weights = weights;
  s->kept = kept;
  s->load_seq = ct_requests_of(s->dev)->handed;
  close_changes(s);
  return CT_OK;
}

static int set_kept(ct_server *s, bool kept) {
  return tell(s, s->weights, kept);
}

/* ---- Weights that stay --------------------------------------------------------------------- */

/* First word above what may be used for a while. */
static uint32_t pinned_from(const ct_device *dev) {
  uint32_t from = ct_window_words(dev);
  for (unsigned i = 0; i < CT_MODELS; ++i) {
    const ct_server *s = ct_requests_of(dev)->server[i];
    if (s && s->pin_words && s->pin_at < from) from = s->pin_at;
  }
  return from;
}

/* Words that the batches of all servers use for a while. */
static uint32_t used_words(const ct_device *dev) {
  uint32_t most = 0;
  for (unsigned i = 0; i < CT_MODELS; ++i) {
    const ct_server *s = ct_requests_of(dev)->server[i];
    if (s && s->spm_words > most) most = s->spm_words;
  }
  return most;
}

/* What training can add to a batch of the largest size, with a memory of 16 bytes a cycle. */
static uint32_t added_by_training(ct_server *s, const struct ct_code *code) {
  struct ct_chain_core core;
  if (ct_sharing(s->dev, s->how.max_batch ? s->how.max_batch : CT_BATCH_MAX, &core)) return 0;
  return (uint32_t)ct_chain_job(&core, code);
}

/* A program for batches; its code is loaded. */
static int make_program(ct_server *s, struct ct_infer *shape, ct_program **program,
                        const struct ct_why *why) {
  struct ct_code code;
  shape->used = &s->spm_words;
  const int err = ct_prog_infer(shape, &code, why);
  if (err) return err;
  const uint32_t added = s->dev->info.has_clock ? added_by_training(s, &code) : 0;
  if (added > s->service.training) s->service.training = added;
  return ct_code_load(s->dev, &code, program);
}

/* Tries to give the weights a place. */
static bool try_pin(ct_server *s) {
  const uint32_t from = pinned_from(s->dev), words = ct_infer_pinned(&s->net);
  if (s->how.stream || words >= from || used_words(s->dev) > from - words) return false;
  if (from - words < CT_INFER_LEAST) return false; /* another server may come */
  struct ct_infer shape = {.net = &s->net,
                           .rows = CT_INFER_BATCH,
                           .spm_words = from - words,
                           .pinned = true,
                           .pin_at = from - words};
  int err = make_program(s, &shape, &s->program, NULL);
  shape.resident = true;
  if (!err) err = make_program(s, &shape, &s->resident, NULL);
  if (!err) {
    s->pin_at = from - words;
    s->pin_words = words;
    return true;
  }
  ct_program_free(s->program);
  s->program = NULL;
  return false;
}

static int make_programs(ct_server *s) {
  char text[256] = "";
  const struct ct_why why = {text, sizeof text};
  uint64_t units = 0;
  if (try_pin(s)) return CT_OK;
  struct ct_infer shape = {.net = &s->net,
                           .rows = CT_INFER_BATCH,
                           .batch_most = s->how.max_batch,
                           .spm_words = pinned_from(s->dev),
                           .work = &units};
  const int err = make_program(s, &shape, &s->program, &why);
  if (err) return text[0] ? ct_fail(s->dev, err, "%s", text) : err;
  return units ? ct_mem_alloc(s->dev, units * CT_UNIT, &s->work) : CT_OK;
}

int ct_server_saw(ct_server *s, uint64_t seq, const struct ct_event *event) {
  ct_service_saw(s, event);
  if (!s->resident || !event->batch || s->ending || s->unsure) return CT_OK;
  if (s->kept == (event->error == CT_OK)) return CT_OK;
  if (s->kept) return set_kept(s, false);
  const bool loaded = event->version == s->weights->version && seq >= s->load_seq &&
                      seq >= ct_requests_of(s->dev)->idle && ct_queue_is_idle(s->dev, CT_INFERENCE);
  return loaded ? set_kept(s, true) : CT_OK;
}

int ct_servers_unpin(ct_device *dev) {
  int err = CT_OK;
  for (unsigned i = 0; i < CT_MODELS && ct_requests_of(dev) && !err; ++i) {
    ct_server *s = ct_requests_of(dev)->server[i];
    if (s && (s->kept || s->unsure) && !s->unloaded) err = set_kept(s, false);
  }
  return err;
}

/* ---- Weights ------------------------------------------------------------------------------- */

int ct_check_server(const ct_server *s) {
  const int err = ct_check_handle(s ? &s->handle : NULL, "server");
  if (err || !s || s->followed) return err;
  return ct_fail(s->dev, CT_ERR_CLOSED, "the server's model was freed before");
}

/* The weights that a call means, if they can be served. *own: they are a version without a handle
 * of the caller's. */
static int find_weights(const ct_server *s, ct_weights **weights, bool *own) {
  *own = false;
  return s->network ? ct_network_version(s->network, weights, own)
                    : ct_weights_find(s->model, ct_use_serves(), weights);
}

/* Both stay until it is known that no batch uses the one or the other. */
static int change_weights(ct_server *s, ct_weights *weights) {
  struct ct_outgoing *o = calloc(1, sizeof *o);
  if (!o) return ct_fail(s->dev, CT_ERR_MEMORY, "the host has no memory left");
  ct_weights *before = s->weights;
  ct_weights_take(weights, ct_use_serves());
  *o = (struct ct_outgoing){.weights = before, .open = true, .next = s->outgoing};
  s->outgoing = o;
  const int err = tell(s, weights, false);
  if (err) o->weights = weights; /* which may be in use; those before stay */
  return err;
}

int ct_server_set_weights(ct_server *s, ct_weights *weights) {
  bool own = false;
  int err = ct_check_server(s);
  if (!err) err = find_weights(s, &weights, &own);
  if (err) return err;
  err = change_weights(s, weights);
  if (own) ct_weights_free(weights);
  return err;
}

static bool owes(const ct_server *s) {
  return s && s->unsure && !s->ending;
}

bool ct_servers_owe(const ct_device *dev) {
  bool owe = ct_requests_of(dev) && ct_requests_of(dev)->frozen;
  for (unsigned i = 0; i < CT_MODELS && ct_requests_of(dev); ++i)
    owe |= owes(ct_requests_of(dev)->server[i]);
  return owe;
}

/* Undoes the freeze of cancel_batch(). */
static int thaw(ct_device *dev) {
  if (!ct_requests_of(dev)->frozen) return CT_OK;
  const int err = ct_reg_write(dev, CT_REG_CTRL, 0);
  ct_requests_of(dev)->frozen = err != CT_OK;
  if (err) ct_show_outstanding(dev);
  return err;
}

int ct_servers_retry(ct_device *dev) {
  int err = thaw(dev);
  for (unsigned i = 0; i < CT_MODELS && !err; ++i)
    if (owes(ct_requests_of(dev)->server[i])) err = set_kept(ct_requests_of(dev)->server[i], false);
  return err;
}

/* ---- Ending -------------------------------------------------------------------------------- */

/* Waits until everything that is scheduled now has been pushed. */
static int wait_pushed(ct_server *s) {
  const uint64_t latest = ct_requests_of(s->dev)->latest;
  struct ct_patience p = ct_patience(latest + 1, CT_CANCEL_MS);
  uint64_t now = 0;
  int err = ct_now(s->dev, &now);
  while (!err && now <= latest) {
    err = ct_wait_more(s->dev, &p, "request");
    if (!err) err = ct_poll(s->dev);
    if (!err) err = ct_now(s->dev, &now);
  }
  return err;
}

/* Unloads the model when nothing more of it comes. */
static int unload(ct_server *s) {
  int err = ct_requests_sure(s->dev);
  ct_requests_give_up(s, CT_DEV_UNLOADED);
  if (!err) err = wait_pushed(s);
  if (!err) err = ct_reg_write(s->dev, CT_REG_MODEL_UNLOAD, s->number);
  s->unloaded = !err;
  return err;
}

/* Waits until none of its requests is in the device, but not for long. */
static int wait_empty(ct_server *s) {
  struct ct_patience p = ct_patience(CT_NO_CYCLE, CT_CANCEL_MS);
  int err = ct_poll(s->dev);
  while (!err && s->in_device) {
    err = ct_wait_more(s->dev, &p, "request");
    if (!err) err = ct_poll(s->dev);
  }
  return err;
}

/* Cancels a batch that does not end, if it is surely this server's that is in front: a batch has no
 * name, and a cancel hits whichever it finds. While the device is frozen it forms none, so what
 * BATCH_STATE shows stays true until the cancel, but for batches that end. */
static int cancel_batch(ct_server *s) {
  enum { FREEZE = 2, CANCEL = 2 };
  uint32_t ctrl = 0, state = 0;
  if (!ct_queue_is_idle(s->dev, CT_INFERENCE)) return CT_ERR_TIMEOUT;
  int err = ct_reg_read(s->dev, CT_REG_CTRL, &ctrl);
  if (err) return err;
  if (!(ctrl & FREEZE)) {
    ct_requests_of(s->dev)->frozen = true; /* perhaps even if the write fails */
    err = ct_reg_write(s->dev, CT_REG_CTRL, FREEZE);
  }
  if (!err) err = ct_reg_read(s->dev, CT_REG_BATCH_STATE, &state);
  const bool alone = (state >> 8 & 255) == 1u << s->number;
  if (!err && alone) err = ct_reg_write(s->dev, CT_CTX_BASE + CT_CREG_CONTROL, CANCEL);
  const int stays = thaw(s->dev);
  if (!err) err = stays;
  return err || alone ? err : CT_ERR_TIMEOUT;
}

/* Of three batches on their way each may have to be cancelled. */
static int end(ct_server *s) {
  size_t before = SIZE_MAX;
  int err = unload(s);
  if (!err) err = wait_empty(s);
  while (err == CT_ERR_TIMEOUT && s->in_device < before) {
    before = s->in_device;
    err = cancel_batch(s);
    if (!err) err = wait_empty(s);
  }
  return err;
}

/* What batches of its own have under way ends; then it is loaded anew. */
int ct_server_quiet(ct_server *s) {
  const int err = end(s);
  if (err) return err;
  s->unloaded = false;
  return tell(s, s->weights, false);
}

/* Gives back what batches used. */
static void give_back(ct_server *s) {
  struct ct_requests *q = ct_requests_of(s->dev);
  let_go(s, true);
  ct_weights_drop(s->weights, ct_use_serves());
  ct_service_close(s);
  if (s->work && s->dev->self) ct_heap_free(&s->dev->data, s->work);
  s->work = 0;
  ct_program_free(s->program);
  ct_program_free(s->resident);
  if (q && q->server[s->number] == s) q->server[s->number] = NULL;
}

/* A batch has not ended: the device may still use what belongs to the server, so that all of it
 * stays as it is, with the weights, until the batch's last record has come. */
static void leave(ct_server *s) {
  ct_log(s->dev, CT_LOG_WARNING,
         "a batch of a model that is not served any more does not end; what it uses stays until it "
         "does, or the device is closed");
  s->left = true;
}

static void end_left(ct_server *s) {
  s->left = false;
  give_back(s);
  if (!s->handle.live) ct_handle_bury(&s->handle);
}

int ct_servers_poll(ct_device *dev) {
  for (unsigned i = 0; i < CT_MODELS; ++i) {
    ct_server *s = ct_requests_of(dev)->server[i];
    if (!s || !s->left) continue;
    uint64_t now = 0;
    int err = s->unloaded ? CT_OK : ct_now(dev, &now);
    if (!err && !s->unloaded && now > ct_requests_of(dev)->latest) err = unload(s);
    if (err) return err;
    if (s->unloaded && !s->in_device) end_left(s);
  }
  return ct_services_poll(dev);
}

void ct_servers_close(ct_device *dev) {
  for (unsigned i = 0; i < CT_MODELS && ct_requests_of(dev); ++i) {
    ct_server *s = ct_requests_of(dev)->server[i];
    if (s && s->left) end_left(s);
  }
}

/* Ends serving, because the model is freed. If a batch cannot be ended, the server is left behind:
 * it keeps its number, its programs and its part of the scratchpad, and its weights. */
static void end_serving(void *self) {
  ct_server *s = self;
  if (!s->followed) return;
  s->ending = true;
  if (s->dev->self && end(s))
    leave(s);
  else
    give_back(s);
  *s->followed = (struct ct_follower){NULL, NULL};
  s->followed = NULL;
}

void ct_server_free(ct_server *s) {
  if (!s || !ct_handle_close(&s->handle, "server")) return;
  end_serving(s);
  if (!s->left) ct_handle_bury(&s->handle);
}

/* ---- Beginning ----------------------------------------------------------------------------- */

static int check_serving(ct_device *dev, const struct ct_serving *how) {
  if ((int)how->batching < CT_BATCHING_NONE || how->batching > CT_BATCHING_ADAPTIVE)
    return ct_fail(dev, CT_ERR_ARG,
                   "there is no waiting policy %d: CT_BATCHING_NONE, _FIXED or _ADAPTIVE",
                   (int)how->batching);
  if (how->max_batch > CT_BATCH_MAX)
    return ct_fail(dev, CT_ERR_ARG, "a batch has 1..%u requests, not %u", CT_BATCH_MAX,
                   (unsigned)how->max_batch);
  return ct_check_reserved(dev, "ct_serving", how->reserved,
                           sizeof how->reserved / sizeof *how->reserved);
}

static int check_model(ct_device *dev, const struct ct_follower *followed) {
  if (!(dev->info.features & CT_FEATURE_REQUESTS))
    return ct_fail(dev, CT_ERR_UNSUPPORTED,
                   "this device makes no batches of requests; submit jobs with "
                   "ct_model_infer_submit()");
  if (followed->end)
    return ct_fail(dev, CT_ERR_ARG, "the model is being served already: a model has one server");
  return CT_OK;
}

/* A model of the device that is not in use. */
static int find_number(ct_device *dev, unsigned *number) {
  const int err = ct_requests_open(dev);
  for (*number = 0; !err && *number < CT_MODELS; ++*number)
    if (!ct_requests_of(dev)->server[*number]) return CT_OK;
  return err ? err
             : ct_fail(dev, CT_ERR_FULL, "the device serves %u models already; free a server first",
                       CT_MODELS);
}

/* Loads the model, and learns what its batches take. Jobs of the ring that are under way may use
 * all of the scratchpad. */
static int load(ct_server *s) {
  int err = tell(s, s->weights, false);
  if (!err) err = ct_service_measure(s);
  if (err == CT_ERR_TIMEOUT)
    return ct_fail(s->dev, err,
                   "the batches by which the model was to be measured do not end; what they use "
                   "stays until they do, or ct_reset()");
  return err ? err : ct_service_begin(s);
}

static int check_deadline(const ct_server *s) {
  const uint32_t least = ct_service_least(s);
  if (!s->how.deadline || s->how.deadline >= least) return CT_OK;
  return ct_fail(s->dev, CT_ERR_ARG,
                 "a deadline of %u cycles cannot hold: a request alone takes %u; ask for more, or "
                 "give a faster model",
                 (unsigned)s->how.deadline, (unsigned)least);
}

/* There will be no server, unless a batch that was measured does not end. */
static void fail(ct_server *s) {
  const bool loaded = ct_requests_of(s->dev)->server[s->number] == s;
  s->handle.live = false;
  s->ending = true;
  if (loaded && !s->in_device) (void)end(s);
  if (s->in_device)
    leave(s);
  else
    give_back(s);
  s->followed = NULL;
  if (!s->left) ct_handle_bury(&s->handle);
}

/* Programs, and what the device needs to be told. */
static int set_up(ct_server *s) {
  int err = make_programs(s);
  if (err) return err;
  ct_requests_of(s->dev)->server[s->number] = s;
  err = load(s);
  return err ? err : check_deadline(s);
}

/* A server of what `of` says, of these weights. */
static int begin(const ct_server *of, ct_weights *weights, const struct ct_serving *how,
                 ct_server **server) {
  static const struct ct_serving at_once;
  ct_server *s = calloc(1, sizeof *s);
  if (!s) return ct_fail(of->dev, CT_ERR_MEMORY, "the host has no memory left");
  *s = *of;
  ct_handle_open(&s->handle, s->dev);
  s->how = how ? *how : at_once;
  s->weights = weights;
  ct_weights_take(weights, ct_use_serves());
  const int err = set_up(s);
  if (err) {
    fail(s);
    return err;
  }
  *s->followed = (struct ct_follower){end_serving, s};
  *server = s;
  return CT_OK;
}

static int create(ct_server *of, ct_weights *weights, const struct ct_serving *how,
                  ct_server **server) {
  bool own = false;
  int err = check_model(of->dev, of->followed);
  if (!err && how) err = check_serving(of->dev, how);
  if (!err) err = find_weights(of, &weights, &own);
  if (err) return err;
  err = find_number(of->dev, &of->number);
  if (!err) err = begin(of, weights, how, server);
  if (own) ct_weights_free(weights);
  return err;
}

int ct_server_create(ct_model *m, ct_weights *weights, const struct ct_serving *how,
                     ct_server **server) {
  if (server) *server = NULL;
  const int err = ct_check_model(m);
  if (err) return err;
  CT_NEED(m->dev, server);
  ct_server of = {.dev = m->dev, .model = m, .followed = &m->follower, .net = m->net};
  return create(&of, weights, how, server);
}

int ct_network_server_create(ct_network *n, ct_weights *weights, const struct ct_serving *how,
                             ct_server **server) {
  if (server) *server = NULL;
  const int err = ct_network_batched(n);
  if (err) return err;
  CT_NEED(n->dev, server);
  ct_server of = {.dev = n->dev, .network = n, .followed = &n->follower, .net = n->compiled.mlp};
  return create(&of, weights, how, server);
}

int ct_server_info(const ct_server *s, struct ct_server_info *info) {
  const int err = ct_check_server(s);
  if (err) return err;
  CT_NEED(s->dev, info);
  memset(info, 0, sizeof *info);
  info->serving = s->how;
  info->version = s->weights->version;
  info->waiting = s->in_host + s->in_device;
  info->pinned_words = s->pin_words;
  info->margin = s->how.batching == CT_BATCHING_ADAPTIVE ? s->service.margin : s->how.margin;
  info->least_deadline = ct_service_least(s);
  info->safe_deadline = ct_service_safe(s);
  if (s->service.known) memcpy(info->service, s->service.cycles, sizeof info->service);
  return CT_OK;
}
