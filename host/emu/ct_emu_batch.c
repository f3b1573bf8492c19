/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The batcher: requests, and the batches they become (docs/programming.md, Requests).
 *
 * Without time every request is due at once. So what waits stays until the host looks, or the queue
 * is full; then one batch after the other goes, until nothing waits.
 */
#include <string.h>

#include "ct_emu.h"

enum {
  DESC_WORDS = CT_DESC_BYTES / 4,
  CONTROL = CT_MODEL_WORDS / 2, /* bit of a word's number: not of the descriptor */
  ROOM_SHIFT = 8,
  TICKET_SHIFT = 16,
  BUSY_SHIFT = 8,
  WAITS_SHIFT = 24,
  NO_DEADLINE = 1u << 31,
  MODEL_SHIFT = 28,
  THERE_IS_ONE = 1u << 31,
  MET = 1u << 30,
  RAN = 1u << 29
};

/* ---- Places -------------------------------------------------------------------------------- */

static void append(struct ct_emu_places *p, uint8_t place) {
  p->place[(p->first + p->count++) % CT_REQ_PLACES] = place;
}

static uint8_t take_first(struct ct_emu_places *p) {
  const uint8_t place = p->place[p->first];
  p->first = (p->first + 1) % CT_REQ_PLACES;
  --p->count;
  return place;
}

void ct_emu_batch_reset(struct ct_emu_batcher *b) {
  memset(b, 0, sizeof *b);
  for (unsigned i = 0; i < CT_REQ_PLACES; ++i)
    append(&b->free, (uint8_t)i);
}

/* ---- The queue ----------------------------------------------------------------------------- */

static uint32_t deadline_of(const struct ct_emu_request *r) {
  return r->deadline ? r->deadline : UINT32_MAX;
}

/* Behind all whose deadline is not later. */
static void insert(struct ct_emu_batcher *b, uint8_t place) {
  const uint32_t deadline = deadline_of(&b->request[place]);
  unsigned at = b->waits++;
  for (; at && deadline_of(&b->request[b->waiting[at - 1]]) > deadline; --at)
    b->waiting[at] = b->waiting[at - 1];
  b->waiting[at] = place;
}

/* Moves the first `most` of a model (CT_MODELS: of all), or a place's, from the queue to those that
 * have left; returns how many. */
static unsigned leave(struct ct_emu_batcher *b, unsigned model, unsigned place, unsigned most) {
  unsigned n = 0, stay = 0;
  for (unsigned i = 0; i < b->waits; ++i) {
    const uint8_t p = b->waiting[i];
    const bool fits = (model == CT_MODELS || b->request[p].model == model) &&
                      (place == CT_REQ_PLACES || p == place) && n < most;
    if (fits)
      append(&b->left, p);
    else
      b->waiting[stay++] = p;
    n += fits;
  }
  b->waits = stay;
  b->form &= stay > 0;
  return n;
}

/* The same, without a batch. */
static unsigned give_up(struct ct_emu_batcher *b, unsigned model, unsigned place, uint32_t code) {
  const unsigned n = leave(b, model, place, CT_REQ_WAITING);
  for (unsigned i = b->left.count - n; i < b->left.count; ++i) {
    struct ct_emu_request *r = &b->request[b->left.place[(b->left.first + i) % CT_REQ_PLACES]];
    r->over = true;
    r->count = (uint8_t)n;
    r->result.code = code;
  }
  return n;
}

void ct_emu_batch_drop(struct ct_emu_batcher *b) {
  give_up(b, CT_MODELS, CT_REQ_PLACES, CT_DEV_RESET);
}

/* ---- Batches ------------------------------------------------------------------------------- */

static unsigned max_batch(const struct ct_emu_model *m) {
  const uint32_t most = m->control[CT_MODEL_CTL % CONTROL] >> 8 & 31;
  return most == 0 || most > CT_BATCH_MAX ? CT_BATCH_MAX : most;
}

const uint32_t *ct_emu_batch_form(struct ct_emu_batcher *b, struct ct_emu_ctx *ctx) {
  if (!b->form) return NULL;
  const unsigned number = b->request[b->waiting[0]].model;
  const struct ct_emu_model *m = &b->model[number];
  ctx->batch = leave(b, number, CT_REQ_PLACES, max_batch(m));
  for (unsigned i = 0; i < ctx->batch; ++i) {
    const unsigned at = b->left.first + b->left.count - ctx->batch + i;
    ctx->batch_place[i] = b->left.place[at % CT_REQ_PLACES];
  }
  return m->desc[m->used];
}

void ct_emu_batch_done(struct ct_emu_batcher *b, const struct ct_emu_ctx *ctx) {
  for (unsigned i = 0; i < ctx->batch; ++i) {
    struct ct_emu_request *r = &b->request[ctx->batch_place[i]];
    r->over = r->ran = true;
    r->count = (uint8_t)ctx->batch;
    r->result = ctx->result;
  }
}

/* Models of which a batch is on its way. */
static uint32_t busy(const struct ct_emu *emu) {
  const struct ct_emu_ctx *ctx = &emu->ctx[0];
  if (!ctx->running || !ctx->batch) return 0;
  return 1u << emu->batcher.request[ctx->batch_place[0]].model;
}

/* ---- Registers ----------------------------------------------------------------------------- */

static uint32_t push(struct ct_emu_batcher *b, uint32_t model) {
  const bool spoilt = b->spoilt;
  b->spoilt = false;
  if (!b->model[model].loaded) return CT_REQ_MODEL;
  if (spoilt || b->free.count == 0 || b->waits == CT_REQ_WAITING) return CT_REQ_FULL;
  const uint8_t place = take_first(&b->free);
  b->request[place] = b->staged;
  b->request[place].model = (uint8_t)model;
  b->ticket = place;
  insert(b, place);
  b->form |= b->waits == CT_REQ_WAITING;
  return CT_REQ_OK;
}

static uint32_t *model_word(struct ct_emu_batcher *b) {
  struct ct_emu_model *m = &b->model[b->model_at / CT_MODEL_WORDS];
  const uint32_t word = b->model_at % CT_MODEL_WORDS;
  return word < DESC_WORDS ? &m->desc[!m->used][word] : &m->control[word % CONTROL];
}

static void commit(struct ct_emu_model *m) {
  m->loaded = true;
  m->used = !m->used;
}

static void pop(struct ct_emu_batcher *b) {
  if (ct_emu_batch_record(b)) append(&b->free, take_first(&b->left));
}

/* The words of a request are written to its place, and lost if there is none. */
static void stage(struct ct_emu_batcher *b, uint32_t *word, uint32_t value) {
  b->spoilt |= b->free.count == 0;
  *word = value;
}

void ct_emu_batch_write(struct ct_emu *emu, uint32_t offset, uint32_t value) {
  struct ct_emu_batcher *b = &emu->batcher;
  const uint32_t model = value % CT_MODELS;
  switch (offset) {
    case CT_REG_REQ_INPUT:
      stage(b, &b->staged.input, value);
      break;
    case CT_REG_REQ_OUTPUT:
      stage(b, &b->staged.output, value);
      break;
    case CT_REG_REQ_TAG:
      stage(b, &b->staged.tag, value);
      break;
    case CT_REG_REQ_DEADLINE:
      stage(b, &b->staged.deadline, value);
      break;
    case CT_REG_REQ_PUSH:
      b->result = push(b, model);
      break;
    case CT_REG_REQ_CANCEL:
      b->result =
          give_up(b, CT_MODELS, value % CT_REQ_PLACES, CT_DEV_CANCELLED) ? CT_REQ_OK : CT_REQ_GONE;
      break;
    case CT_REG_MODEL_ADDR:
      b->model_at = value % (CT_MODELS * CT_MODEL_WORDS);
      break;
    case CT_REG_MODEL_DATA:
      *model_word(b) = value;
      b->model_at = (b->model_at + 1) % (CT_MODELS * CT_MODEL_WORDS);
      break;
    case CT_REG_MODEL_COMMIT:
      commit(&b->model[model]);
      break;
    case CT_REG_MODEL_UNLOAD:
      b->model[model].loaded = false;
      give_up(b, model, CT_REQ_PLACES, CT_DEV_UNLOADED);
      break;
    case CT_REG_REC_STATE:
      pop(b);
      break;
    default:
      break;
  }
}

bool ct_emu_batch_looks(uint32_t offset) {
  return offset == CT_REG_REQ_RESULT || offset == CT_REG_BATCH_STATE ||
         (offset >= CT_REG_REC_INPUT && offset <= CT_REG_REC_ROWS);
}

bool ct_emu_batch_record(const struct ct_emu_batcher *b) {
  return b->left.count && b->request[b->left.place[b->left.first]].over;
}

static uint32_t room(const struct ct_emu_batcher *b) {
  const unsigned queue = CT_REQ_WAITING - b->waits;
  return b->free.count < queue ? b->free.count : queue;
}

static uint32_t loaded(const struct ct_emu_batcher *b) {
  uint32_t set = 0;
  for (unsigned i = 0; i < CT_MODELS; ++i)
    set |= (uint32_t)b->model[i].loaded << i;
  return set;
}

/* Of the oldest record. All times are 0. */
static uint32_t read_record(const struct ct_emu_batcher *b, uint32_t offset) {
  const uint8_t place = b->left.place[b->left.first];
  const struct ct_emu_request *r = &b->request[place];
  const uint32_t batch = r->ran ? RAN | (r->result.code == CT_DEV_OK ? MET : 0) : 0;
  switch (offset) {
    case CT_REG_REC_INPUT:
      return r->input;
    case CT_REG_REC_OUTPUT:
      return r->output;
    case CT_REG_REC_TAG:
      return r->tag;
    case CT_REG_REC_MODEL:
      return (r->deadline ? 0 : NO_DEADLINE) | (uint32_t)r->model << MODEL_SHIFT;
    case CT_REG_REC_STATE:
      return THERE_IS_ONE | batch | (uint32_t)place << TICKET_SHIFT |
             (uint32_t)r->count << ROOM_SHIFT | r->result.code;
    case CT_REG_REC_VERSION:
      return r->result.version;
    case CT_REG_REC_ADDR:
      return r->result.addr;
    case CT_REG_REC_ROWS:
      return r->result.rows;
    default:
      return 0;
  }
}

uint32_t ct_emu_batch_read(struct ct_emu *emu, uint32_t offset) {
  struct ct_emu_batcher *b = &emu->batcher;
  switch (offset) {
    case CT_REG_REQ_RESULT:
      return b->result | room(b) << ROOM_SHIFT | b->ticket << TICKET_SHIFT;
    case CT_REG_BATCH_STATE:
      return loaded(b) | busy(emu) << BUSY_SHIFT | b->waits << WAITS_SHIFT;
    case CT_REG_MODEL_DATA:
      return *model_word(b);
    default:
      return ct_emu_batch_record(b) ? read_record(b, offset) : 0;
  }
}
