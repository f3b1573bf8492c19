/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests: handed to the device when their time comes, cancelled, and their records. See
 * ct_server.h.
 */
#include <stdlib.h>
#include <string.h>

#include "ct_server.h"

/* Bits of REC_STATE and REQ_RESULT. */
enum { RECORD = 1u << 31, TICKETS = CT_REQ_PLACES - 1, BATCH = 127, CODE = 255, RESULT = 7 };

/* ---- Slots --------------------------------------------------------------------------------- */

static uint16_t number_of(const struct ct_requests *q, const struct ct_request_slot *r) {
  return (uint16_t)(r - q->slot);
}

static struct ct_request_slot *first_of(struct ct_requests *q, enum ct_request_state state) {
  return q->list[state].count ? &q->slot[q->list[state].first] : NULL;
}

static void append(struct ct_requests *q, struct ct_request_slot *r, enum ct_request_state state) {
  struct ct_request_list *l = &q->list[state];
  const uint16_t number = number_of(q, r);
  r->state = state;
  r->prev = l->last;
  if (l->count++)
    q->slot[l->last].next = number;
  else
    l->first = number;
  l->last = number;
}

static void take_out(struct ct_requests *q, struct ct_request_slot *r) {
  struct ct_request_list *l = &q->list[r->state];
  const uint16_t number = number_of(q, r);
  if (l->first == number)
    l->first = r->next;
  else
    q->slot[r->prev].next = r->next;
  if (l->last == number)
    l->last = r->prev;
  else
    q->slot[r->next].prev = r->prev;
  --l->count;
}

/* To the end of another state's list. */
static void move(struct ct_requests *q, struct ct_request_slot *r, enum ct_request_state state) {
  take_out(q, r);
  append(q, r, state);
}

/* To its beginning. */
static void move_to_front(struct ct_requests *q, struct ct_request_slot *r,
                          enum ct_request_state state) {
  struct ct_request_list *l = &q->list[state];
  const uint16_t number = number_of(q, r);
  take_out(q, r);
  r->state = state;
  r->next = l->first;
  if (l->count++)
    q->slot[l->first].prev = number;
  else
    l->last = number;
  l->first = number;
}

static size_t in_device(const struct ct_requests *q) {
  return q->list[CT_REQUEST_DEVICE].count;
}

/* It is over: for the caller, or for the library. */
static void report(struct ct_request_slot *r) {
  struct ct_service *service = &r->server->service;
  if (!r->trial) {
    ct_request_drop(&r->request, 1, r->event.error);
    ct_event_put(r->server->dev, &r->event);
    return;
  }
  service->trial = r->event;
  --service->trials;
}

/* ---- Ends in the host ---------------------------------------------------------------------- */

static void give_up(struct ct_requests *q, struct ct_request_slot *r, uint32_t code) {
  --r->server->in_host;
  r->event.error = CT_ERR_CANCELLED;
  r->event.code = code;
  r->event.arrive = r->event.start = r->event.end = CT_NO_CYCLE;
  move(q, r, CT_REQUEST_FREE);
  report(r);
}

void ct_requests_give_up(ct_server *server, uint32_t code) {
  struct ct_requests *q = ct_requests_of(server->dev);
  struct ct_request_slot *r = first_of(q, CT_REQUEST_HOST);
  for (size_t n = q->list[CT_REQUEST_HOST].count; n; --n) {
    struct ct_request_slot *next = &q->slot[r->next];
    if (r->server == server && r != q->unsure) give_up(q, r, code);
    r = next;
  }
}

/* ---- Records ------------------------------------------------------------------------------- */

static uint64_t cycle_of(const ct_device *dev, uint32_t low, uint32_t high) {
  return dev->info.has_clock ? (uint64_t)high << 32 | low : CT_NO_CYCLE;
}

/* The device's bit knows nothing of what the request has waited for in the host. */
static enum ct_met met(const ct_device *dev, const struct ct_request_slot *r) {
  const struct ct_event *record = &r->event;
  if (record->error) return CT_MET_NO;
  if (!r->deadline) return CT_MET_YES;
  if (!dev->info.has_clock) return CT_MET_UNKNOWN;
  return record->end <= record->deadline ? CT_MET_YES : CT_MET_NO;
}

static void fill_record(ct_device *dev, struct ct_request_slot *r, uint32_t state,
                        const uint32_t *v) {
  struct ct_event *record = &r->event;
  const bool ran = state >> 29 & 1;
  record->code = state & CODE;
  record->error = ct_code_error(record->code);
  record->batch = ran ? state >> 8 & BATCH : 0;
  record->version = v[1];
  record->address = v[2];
  record->rows = v[3];
  record->arrive = cycle_of(dev, v[4], v[5]);
  record->start = ran ? cycle_of(dev, v[6], v[7]) : CT_NO_CYCLE;
  record->end = ran ? cycle_of(dev, v[8], v[9]) : CT_NO_CYCLE;
  if (r->arrival && r->arrival < record->arrive) record->arrive = r->arrival;
  if (r->deadline && dev->info.has_clock) record->deadline = record->arrive + r->deadline;
  record->met = met(dev, r);
}

/* The words of the record that the device shows. */
static int read_record(ct_device *dev, uint32_t *v) {
  static const uint32_t offset[] = {CT_REG_REC_TAG,      CT_REG_REC_VERSION,   CT_REG_REC_ADDR,
                                    CT_REG_REC_ROWS,     CT_REG_REC_ARRIVE_LO, CT_REG_REC_ARRIVE_HI,
                                    CT_REG_REC_START_LO, CT_REG_REC_START_HI,  CT_REG_REC_END_LO,
                                    CT_REG_REC_END_HI};
  const unsigned n = dev->info.has_clock ? 10 : 4;
  int err = CT_OK;
  for (unsigned i = 0; i < n && !err; ++i)
    err = ct_reg_read(dev, offset[i], &v[i]);
  return err;
}

/* The request is done, whatever becomes of the pop. */
static void end_request(ct_device *dev, struct ct_request_slot *r, uint32_t state,
                        const uint32_t *v) {
  struct ct_requests *q = ct_requests_of(dev);
  fill_record(dev, r, state, v);
  move(q, r, CT_REQUEST_FREE);
  report(r);
  q->ticket[(q->ticket_first + q->tickets++) % CT_REQ_PLACES] = r->ticket;
  q->unpopped = r->number;
  --r->server->in_device;
  ct_server_passed(r->server, r->seq);
}

static int pop(ct_device *dev) {
  const int err = ct_reg_write(dev, CT_REG_REC_STATE, 1);
  if (!err) ct_requests_of(dev)->unpopped = 0;
  return err;
}

/* Takes the record that the device shows. */
static int take_record(ct_device *dev, uint32_t state) {
  struct ct_requests *q = ct_requests_of(dev);
  uint32_t v[10] = {0};
  int err = read_record(dev, v);
  if (err) return err;
  if (q->unpopped && (uint32_t)q->unpopped == v[0]) return pop(dev);
  struct ct_request_slot *r = &q->slot[v[0] % CT_REQUESTS];
  if (r->state != CT_REQUEST_DEVICE || (uint32_t)r->number != v[0] ||
      r->ticket != (state >> 16 & TICKETS))
    return ct_fail(dev, CT_ERR_DEVICE, "a record came that belongs to no request (tag 0x%x)", v[0]);
  end_request(dev, r, state, v);
  err = pop(dev);
  const int told = ct_server_saw(r->server, r->seq, &r->event); /* it is not taken a second time */
  return err ? err : told;
}

/* After a pop the device may say once that there is none, before it has fetched the next one. That
 * one is taken when this is called again: IRQ_STATUS, and the interrupt, say so as soon as it is
 * there. */
static int take_records(ct_device *dev) {
  uint32_t state = 0;
  int err = ct_reg_read(dev, CT_REG_REC_STATE, &state);
  while (!err && state & RECORD) {
    err = take_record(dev, state);
    if (!err) err = ct_reg_read(dev, CT_REG_REC_STATE, &state);
  }
  return err;
}

/* ---- To the device ------------------------------------------------------------------------- */

static bool can_schedule(const ct_device *dev) {
  return dev->info.has_clock && dev->plugin.ops->reg_write_at;
}

/* Writes a register of requests: now, or at that cycle. */
static int write_at(ct_device *dev, uint64_t cycle, uint32_t offset, uint32_t value) {
  if (cycle == CT_NO_CYCLE) return ct_reg_write(dev, offset, value);
  const int err = dev->plugin.ops->reg_write_at(dev->self, cycle, offset, value);
  return err < 0 ? ct_fail_device(dev, err, "scheduling a request failed") : CT_OK;
}

/* Cycles from a push to the request's deadline: what it has waited for in the host is over. */
static uint32_t time_left(const struct ct_request_slot *r, uint64_t at) {
  if (!r->deadline || !r->arrival || at <= r->arrival) return r->deadline;
  return at - r->arrival < r->deadline ? (uint32_t)(r->deadline - (at - r->arrival)) : 1;
}

enum { LEAD = 24 /* cycles that the words before the push take */ };

/* Pushes at that cycle (CT_NO_CYCLE: now). The words before come as early as the push before
 * allows. */
static int push(ct_device *dev, struct ct_request_slot *r, uint64_t cycle) {
  struct ct_requests *q = ct_requests_of(dev);
  const bool now = cycle == CT_NO_CYCLE;
  uint64_t at = cycle;
  int err = now && r->deadline && r->arrival ? ct_now(dev, &at) : CT_OK;
  const uint64_t early = now ? cycle : cycle < q->latest + LEAD ? q->latest : cycle - LEAD;
  const uint32_t word[] = {r->input, r->output, (uint32_t)r->number, time_left(r, at)};
  for (uint32_t i = 0; i < 4 && !err; ++i)
    err = write_at(dev, early, CT_REG_REQ_INPUT + 4 * i, word[i]);
  if (err) return err;
  r->seq = q->handed++;
  err = write_at(dev, cycle, CT_REG_REQ_PUSH, r->server->number);
  if (err && now) q->unsure = r;
  if (!err && !now) q->latest = cycle;
  return err;
}

/* The device has it. */
static void handed_over(struct ct_requests *q, struct ct_request_slot *r, uint64_t cycle) {
  r->ticket = q->ticket[q->ticket_first];
  q->ticket_first = (q->ticket_first + 1) % CT_REQ_PLACES;
  --q->tickets;
  r->pushed_at = cycle == CT_NO_CYCLE ? 0 : cycle;
  move(q, r, CT_REQUEST_DEVICE);
  q->any = true;
  ++r->server->in_device;
  --r->server->in_host;
}

/* What the device says of the last push, which must not be done again if it has taken effect: then
 * the last request that was accepted has the ticket that this one was to get. The one before it has
 * another, because the last free ticket is never used; if there is none before it, there is no
 * ticket, but the result is that of the cancel in ct_requests_open(). */
int ct_requests_sure(ct_device *dev) {
  struct ct_requests *q = ct_requests_of(dev);
  struct ct_request_slot *r = q->unsure;
  uint32_t result = 0;
  if (!r) return CT_OK;
  int err = ct_reg_write(dev, CT_REG_MODEL_ADDR, 0);
  if (!err) err = ct_reg_read(dev, CT_REG_REQ_RESULT, &result);
  if (err) return err;
  const bool accepted = (result >> 16 & TICKETS) == q->ticket[q->ticket_first] &&
                        (q->any || (result & RESULT) == CT_REQ_OK);
  q->unsure = NULL;
  if (accepted) handed_over(q, r, CT_NO_CYCLE);
  return CT_OK;
}

/* Asks the device for its room, when nothing is scheduled any more: the write before makes sure
 * that all pushes have been counted. */
static int ask_room(ct_device *dev) {
  uint32_t result = 0;
  int err = ct_reg_write(dev, CT_REG_MODEL_ADDR, 0);
  if (!err) err = ct_reg_read(dev, CT_REG_REQ_RESULT, &result);
  ct_requests_of(dev)->room = result >> 8 & BATCH;
  return err;
}

/* When it is to be pushed: as it was asked for, but not before one that was asked for earlier. */
static uint64_t push_time(const struct ct_requests *q, const struct ct_request_slot *r) {
  const uint64_t arrival = r->event.scheduled == CT_NO_CYCLE ? 0 : r->event.scheduled;
  return arrival > q->latest ? arrival : q->latest;
}

/* How long before its time a request is handed over: with many in the device, and on one that
 * cannot schedule, not at all. */
static uint64_t lead_of(const ct_device *dev) {
  return can_schedule(dev) && in_device(ct_requests_of(dev)) < CT_REQ_WAITING ? CT_AHEAD : 0;
}

/* Whether the next request can be handed over, and when it is to be pushed. */
static int can_hand_over(ct_device *dev, const struct ct_request_slot *r, uint64_t now,
                         uint64_t *cycle, bool *can) {
  struct ct_requests *q = ct_requests_of(dev);
  const uint64_t at = push_time(q, r);
  *can = false;
  *cycle = CT_NO_CYCLE;
  if (dev->info.has_clock && at > now + lead_of(dev)) return CT_OK;
  if (dev->info.has_clock && at > now) *cycle = at;
  if (in_device(q) < CT_REQ_WAITING) {
    *can = true;
    return CT_OK;
  }
  if (q->tickets <= 1) return CT_OK; /* see ct_requests_sure() */
  const int err = q->room ? CT_OK : ask_room(dev);
  *can = !err && q->room > 0;
  if (*can) --q->room;
  return err;
}

/* Hands over what is due, in order. */
static int feed(ct_device *dev) {
  struct ct_requests *q = ct_requests_of(dev);
  int err = ct_requests_sure(dev);
  struct ct_request_slot *r = first_of(q, CT_REQUEST_HOST);
  uint64_t now = 0, cycle = 0;
  bool can = true;
  if (!err && r) err = ct_now(dev, &now);
  q->room = 0;
  q->now = now;
  for (; !err && can && r; r = first_of(q, CT_REQUEST_HOST)) {
    err = can_hand_over(dev, r, now, &cycle, &can);
    if (err || !can) break;
    err = push(dev, r, cycle);
    if (!err) handed_over(q, r, cycle);
  }
  return err;
}

/* ---- Calls --------------------------------------------------------------------------------- */

/* A request of a server has one row, and its weights are the server's. */
static int check_request(ct_server *s, const struct ct_request *request) {
  int err = ct_check_server(s);
  if (err) return err;
  if (!request) return ct_fail(s->dev, CT_ERR_ARG, "ct_server_push(): request is NULL");
  if (request->count > 1)
    return ct_fail(s->dev, CT_ERR_ARG, "a request of a server has one row, not %u", request->count);
  if (request->weights)
    return ct_fail(s->dev, CT_ERR_ARG,
                   "a request of a server names no weights: ct_server_set_weights() does");
  if (request->queue != CT_INFERENCE)
    return ct_fail(s->dev, CT_ERR_ARG, "requests of a server go to the inference queue");
  return ct_request_check(s->dev, &s->net, request, 1);
}

/* Takes a slot for a request; NULL: there is none. */
static struct ct_request_slot *fill_slot(ct_server *s, const struct ct_request *request,
                                         uint64_t cycle) {
  struct ct_request_slot *r = first_of(ct_requests_of(s->dev), CT_REQUEST_FREE);
  if (!r) return NULL;
  r->server = s;
  r->trial = false;
  r->request = *request;
  r->deadline = request->deadline;
  r->arrival = 0;
  r->number += CT_REQUESTS;
  r->event = (struct ct_event){.tag = r->number << CT_TAG_BITS | CT_TAG_ABOVE,
                               .kind = CT_EVENT_REQUEST,
                               .queue = CT_INFERENCE,
                               .server = s,
                               .scheduled = cycle,
                               .deadline = CT_NO_CYCLE,
                               .user = request->user};
  ++s->in_host;
  return r;
}

static int no_slot(ct_device *dev) {
  return ct_fail(dev, CT_ERR_FULL, "%d requests are under way; wait for some first", CT_REQUESTS);
}

int ct_server_push(ct_server *s, const struct ct_request *request, uint64_t *tag) {
  int err = check_request(s, request);
  if (err) return err;
  struct ct_requests *q = ct_requests_of(s->dev);
  if (!q->list[CT_REQUEST_FREE].count) return no_slot(s->dev);
  err = ct_event_expect(s->dev, CT_INFERENCE);
  if (err) return err;
  ct_service_warn(s, request->deadline);
  const uint64_t cycle = request->cycle ? request->cycle : CT_NO_CYCLE;
  struct ct_request_slot *r = fill_slot(s, request, cycle);
  r->input = ct_units_of(ct_request_row(request));
  r->output = ct_units_of(ct_request_answer(request));
  ct_request_take(request, 1);
  move(q, r, CT_REQUEST_HOST);
  if (tag) *tag = r->event.tag;
  ct_show_outstanding(s->dev);
  if (cycle != CT_NO_CYCLE && cycle > q->arrived) q->arrived = cycle;
  (void)feed(s->dev); /* the request is accepted; what fails here fails again when it is reaped */
  if (r->state == CT_REQUEST_HOST && s->dev->info.has_clock) {
    if (q->now != CT_NO_CYCLE && q->now > q->arrived) q->arrived = q->now;
    r->arrival = q->arrived;
  }
  return CT_OK;
}

int ct_requests_try(ct_server *s, uint64_t input, uint64_t output, uint32_t n) {
  struct ct_requests *q = ct_requests_of(s->dev);
  const struct ct_request request = {.deadline = 1};
  if (q->list[CT_REQUEST_FREE].count < n) return no_slot(s->dev);
  for (uint32_t i = 0; i < n; ++i) {
    struct ct_request_slot *r = fill_slot(s, &request, CT_NO_CYCLE);
    r->trial = true;
    r->input = ct_units_of(input);
    r->output = ct_units_of(output);
    ++s->service.trials;
    move_to_front(q, r, CT_REQUEST_HOST);
  }
  return feed(s->dev);
}

/* ---- What the queues tell, and ask ---------------------------------------------------------- */

/* The request of that tag if it has no event yet; NULL: there is none. */
static struct ct_request_slot *find(const ct_device *dev, uint64_t tag) {
  struct ct_requests *q = ct_requests_of(dev);
  struct ct_request_slot *r = &q->slot[(tag >> CT_TAG_BITS) % CT_REQUESTS];
  return r->state != CT_REQUEST_FREE && r->event.tag == tag ? r : NULL;
}

static bool is_pending(const ct_device *dev, uint64_t tag) {
  return find(dev, tag) != NULL;
}

/* One that is scheduled is cancelled when it has been pushed. */
static int cancel(ct_device *dev, uint64_t tag) {
  struct ct_requests *q = ct_requests_of(dev);
  struct ct_request_slot *r = find(dev, tag);
  int err = ct_requests_sure(dev);
  if (err || !r) return err;
  if (r->state == CT_REQUEST_HOST) give_up(q, r, CT_DEV_CANCELLED);
  if (r->state != CT_REQUEST_DEVICE) return CT_OK;
  uint64_t now = 0;
  err = ct_now(dev, &now);
  if (err) return err;
  return write_at(dev, r->pushed_at > now ? r->pushed_at : CT_NO_CYCLE, CT_REG_REQ_CANCEL,
                  r->ticket);
}

/* A device without a clock makes batches when it is looked at, and only then. */
static int look(ct_device *dev, uint32_t status) {
  struct ct_requests *q = ct_requests_of(dev);
  int err = ct_requests_sure(dev);
  if (!err) err = ct_servers_retry(dev);
  if (!err && (status & 4 || (in_device(q) && !dev->info.has_clock))) err = take_records(dev);
  if (!err) err = feed(dev);
  return err ? err : ct_servers_poll(dev);
}

/* When a request is to be handed over next; CT_NO_CYCLE: nothing waits but for room. */
static uint64_t due(ct_device *dev) {
  struct ct_requests *q = ct_requests_of(dev);
  const struct ct_request_slot *r = dev->info.has_clock ? first_of(q, CT_REQUEST_HOST) : NULL;
  uint64_t now = 0;
  if (!r || ct_now(dev, &now)) return CT_NO_CYCLE;
  const uint64_t at = push_time(q, r), lead = lead_of(dev);
  const uint64_t then = at < lead ? at : at - lead;
  return then > now ? then : CT_NO_CYCLE;
}

static int joins(ct_device *dev, enum ct_queue queue) {
  return queue == CT_INFERENCE ? ct_servers_unpin(dev) : CT_OK;
}

static void completed(ct_device *dev, enum ct_queue queue) {
  struct ct_requests *q = ct_requests_of(dev);
  if (queue == CT_INFERENCE) q->idle = q->handed;
}

static void closing(ct_device *dev) {
  struct ct_queues *queues = dev->queues;
  struct ct_requests *q = ct_requests_of(dev);
  for (uint32_t i = 0; i < CT_REQUESTS; ++i)
    if (q->slot[i].state != CT_REQUEST_FREE) ct_request_drop(&q->slot[i].request, 1, CT_ERR_CLOSED);
  ct_servers_close(dev);
  free(queues->above);
  queues->above = NULL;
  queues->listener = NULL;
}

static const struct ct_listener listener = {.poll = look,
                                            .due = due,
                                            .joins = joins,
                                            .completed = completed,
                                            .owes = ct_servers_owe,
                                            .pending = is_pending,
                                            .cancel = cancel,
                                            .close = closing};

/* ---- The beginning -------------------------------------------------------------------------- */

int ct_requests_open(ct_device *dev) {
  if (ct_requests_of(dev)) return CT_OK;
  /* So that the result is not that of a push. */
  const int err = ct_reg_write(dev, CT_REG_REQ_CANCEL, 0);
  if (err) return err;
  struct ct_requests *q = calloc(1, sizeof *q);
  if (!q) return ct_fail(dev, CT_ERR_MEMORY, "the host has no memory left");
  for (; q->tickets < CT_REQ_PLACES; ++q->tickets)
    q->ticket[q->tickets] = (uint8_t)q->tickets;
  for (uint32_t i = 0; i < CT_REQUESTS; ++i) {
    q->slot[i].number = i;
    append(q, &q->slot[i], CT_REQUEST_FREE);
  }
  dev->queues->above = q;
  dev->queues->listener = &listener;
  return CT_OK;
}
