/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A device that serves three models, for tests of servers: every answer is known to the bit before
 * anything is served. Used by one test at a time; whatever fails ends the test.
 */
#ifndef SERVER_BED_H
#define SERVER_BED_H

#include "ct_tb.h"

#include "coltrain/coltrain.h"
#include "ct_cmd.h"
#include "ct_model.h"
#include "ct_queue.h"

enum {
  BED_MODELS = 3,
  BED_SAMPLES = 20,
  BED_OUT_MOST = 24,
  BED_IN_MOST = 300,
  BED_VERSIONS = 40,
  BED_ASKS = 128,
  BED_PLACES = 8192 /* for answers, of each model */
};

/* A model, its server, and what each version answers to each sample. */
struct served {
  ct_model *model;
  ct_server *server; /* NULL: not served */
  uint32_t version;
  size_t in, out;
  ct_weights *weights; /* what is served */
  ct_rows *rows;       /* the samples */
  ct_answers *answers;
  size_t next; /* place for an answer */
  float x[BED_SAMPLES][BED_IN_MOST];
  float want[BED_VERSIONS][BED_SAMPLES][BED_OUT_MOST];
};

struct bed {
  ct_device *dev;
  bool emu;
  ct_rng rng;
  struct served served[BED_MODELS];
};

/* Fails with the device's sentence. */
void bed_ok(struct bed *b, int err, const char *call);
#define OK(call) bed_ok(b, call, #call)

/* To be closed. */
struct bed *bed_open(const char *uri);

/* Nothing may be outstanding. */
void bed_close(struct bed *b);

/* The handles of a model but those of the model itself and its server. */
void bed_free_handles(struct served *s);

void bed_serve(struct bed *b, int model, const struct ct_serving *how);

/* Changes the weights at random; what is served stays. */
void bed_draw_weights(struct bed *b, struct served *s);

/* The same, publishes them, and asks for each answer alone. */
void bed_next_version(struct bed *b, struct served *s);

/* While frozen, requests wait. */
void bed_freeze(struct bed *b, bool frozen);

/* Publishes the present weights and has them served, or just kept where there is no server; what
 * ct_server_set_weights() said. After a failure what was served stays. */
int bed_publish(struct bed *b, struct served *s);

/* Device memory of a sample. */
uint64_t bed_row_at(const struct served *s, size_t sample);

/* What a request asks, and where its answer goes; user of a request. */
struct ask {
  struct served *served;
  uint32_t sample;
  size_t place;           /* set with each request */
  uint32_t first_version; /* that was served when it was pushed */
  uint64_t tag;
  uint32_t deadline;
  bool busy;
};

/* Each time with another place for the answer. */
struct ct_request bed_request(struct bed *b, struct ask *a);
void bed_push(struct bed *b, struct ask *a, uint32_t deadline, uint64_t cycle);

/* The answer is the version's to this sample, every bit. */
void bed_check(struct bed *b, const struct ct_event *r);

/* Reaps this request's record. */
struct ct_event bed_reap(struct bed *b, const struct ask *a);

/* At present. */
bool bed_is_readable(int fd);

/* ---- Training beside it ---- */

enum { BED_BATCH = 8, BED_TRAINED = 20 };

struct bed_training {
  ct_model *model;
  unsigned steps;
};

void bed_training_open(ct_device *dev, struct bed_training *t);

/* A step; each has its own batch. */
void bed_train(struct bed_training *t);

/* The same weights as without any serving. */
void bed_check_training(const struct bed_training *t);

#endif
