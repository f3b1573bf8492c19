/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Serving requests in batches, inside the library.
 *
 *   ct_request.c  requests: from the caller to the device, and their records back
 *   ct_server.c   models for serving: programs, versions, weights that stay in the scratchpad
 *   ct_service.c  how long batches take, and how early they have to go
 *
 * A request goes through
 *
 *   host --hand over, in order of the calls--> device --record--> event, and its place is free
 *     '-----------cancel, end of its server----------------------^
 *
 * The device gets a request when it arrives, or up to CT_AHEAD cycles before by a scheduled
 * write, where the transport has these. At most CT_REQ_WAITING are handed over and without a
 * record, so that none is ever refused; beyond that the device is asked for its room first.
 */
#ifndef CT_SERVER_H
#define CT_SERVER_H

#include "ct_chain.h"
#include "ct_cmd.h"
#include "ct_network.h"
#include "ct_queue.h"

enum {
  CT_REQUESTS = 4096, /* of a device that are under way; a power of two */
  CT_AHEAD = 1024     /* cycles */
};

enum ct_request_state { CT_REQUEST_FREE, CT_REQUEST_HOST, CT_REQUEST_DEVICE, CT_REQUEST_STATES };

/* A place for a request. Its number is the slot's and, above, how often the slot has been used:
 * never 0, and never the same again. The device's tag is the low half. */
struct ct_request_slot {
  enum ct_request_state state;
  uint16_t next, prev; /* in the list of its state */
  ct_server *server;
  bool trial;                       /* the library's own: it has no event */
  uint32_t input, output, deadline; /* units, cycles */
  struct ct_request request;        /* of others: what it uses until it is over */
  uint8_t ticket;
  uint64_t seq;       /* in the order in which requests were handed over */
  uint64_t pushed_at; /* cycle it is scheduled for; 0: it was pushed at once */
  uint64_t arrival;   /* of one that had to wait in the host; 0: the device notes it */
  uint64_t number;
  struct ct_event event;
};

/* Slots of one state, in the order in which they came to it. */
struct ct_request_list {
  uint16_t first, last; /* if there is one */
  size_t count;
};

struct ct_requests {
  struct ct_request_slot slot[CT_REQUESTS];
  struct ct_request_list list[CT_REQUEST_STATES];
  uint64_t handed;                /* sequence number of the next one that is handed over */
  struct ct_request_slot *unsure; /* its push may have taken effect; NULL: there is none */
  bool any;                       /* some request has been handed over */
  uint64_t unpopped; /* number of a record that is taken, but perhaps not popped; 0: none */
  unsigned room;     /* may be handed over although many are in the device */
  uint64_t latest;   /* highest cycle a push was scheduled for */
  uint64_t arrived;  /* latest arrival that was asked for */
  uint64_t now;      /* when requests were last handed over */
  uint64_t idle;     /* requests from here on have seen no job of the inference ring */
  uint8_t ticket[CT_REQ_PLACES]; /* that are free, in the order in which they became so */
  size_t ticket_first, tickets;
  ct_server *server[CT_MODELS];
  bool trained; /* there has been a job of training */
  bool frozen;  /* the device, to cancel a batch: nothing begins until that is undone */
};

/* Service times and margin of a server. */
struct ct_service {
  uint32_t cycles[CT_BATCH_MAX]; /* of a batch of 1, 2 ...: what the device was given last */
  bool known;                    /* they have been measured, or were given */
  bool unsent;                   /* the device has to be given them */
  uint32_t loads;                /* longer, if it loads its weights */
  uint32_t training;             /* that it can be delayed by training */
  uint32_t longest;              /* of the last batches */
  uint32_t margin;               /* what the device was given */
  uint64_t last;                 /* start of the batch that was seen last */
  bool warned, warned_late;      /* of a deadline that cannot hold, or may not */
  bool trying;                   /* batches of its own are under way: */
  unsigned trials;               /* requests without a record */
  struct ct_event trial;         /* what became of the last one */
  uint64_t memory, answer_at;    /* that they use; 0: none */
};

/* Weights that batches may still use although others are served: until the requests that were in
 * the device at the change have their records. `open`: the change has failed, but may have taken
 * effect, and those requests are counted when the next one succeeds. */
struct ct_outgoing {
  ct_weights *weights;
  struct ct_outgoing *next;
  uint64_t before; /* requests handed over before the change */
  size_t old;      /* of those, without a record */
  bool open;
};

struct ct_server {
  struct ct_handle handle; /* first */
  ct_device *dev;
  ct_model *model;              /* what is served: it, or ... */
  ct_network *network;          /* ... a network that is a perceptron */
  struct ct_follower *followed; /* of what is served; NULL: it is not any more */
  struct ct_mlp net;
  bool left; /* it has ended, but a batch has not, so that all of it stays */
  struct ct_serving how;
  unsigned number;            /* of the device's model */
  ct_program *program;        /* loads its weights */
  ct_program *resident;       /* finds them at pin_at; NULL: they cannot stay */
  uint64_t work;              /* address of the batches' workspace; 0: they need none */
  uint32_t spm_words;         /* of the scratchpad that its batches use for a while */
  uint32_t pin_at, pin_words; /* and for ever */
  bool kept;                  /* batches find the weights */
  bool unsure;                /* the device may have what it was given last, or what stands here */
  uint64_t load_seq;          /* requests from here on have loaded them */
  ct_weights *weights;        /* being served */
  struct ct_outgoing *outgoing;
  size_t in_device, in_host;
  struct ct_service service;
  bool ending, unloaded;
};

/* The requests of a device; NULL: nothing has been served yet, or it is closed. */
static inline struct ct_requests *ct_requests_of(const ct_device *dev) {
  return dev->queues ? dev->queues->above : NULL;
}

/* ---- ct_request.c ---- */

int ct_requests_open(ct_device *dev);

/* Makes sure of a push whose write failed: whether the device has the request or not. */
int ct_requests_sure(ct_device *dev);

/* Pushes n requests of the library's own, in front of all that wait in the host and, by their
 * deadlines, in the device. server->service.trials counts those without a record. */
int ct_requests_try(ct_server *server, uint64_t input, uint64_t output, uint32_t n);

/* Requests of a server that wait in the host end with this code. */
void ct_requests_give_up(ct_server *server, uint32_t code);

/* ---- ct_server.c ---- */

/* CT_OK, or an error with a sentence: NULL, freed before, or its model was. */
int ct_check_server(const ct_server *server);

/* The request with that number in the order of handing over has left the device. */
void ct_server_passed(ct_server *server, uint64_t seq);

/* A record of the server's request has come. */
int ct_server_saw(ct_server *server, uint64_t seq, const struct ct_event *event);

/* A job is about to join the inference ring: it may use all of the scratchpad. */
int ct_servers_unpin(ct_device *dev);

/* Writes again what failed before and others wait for; whether there is such a thing. */
int ct_servers_retry(ct_device *dev);
bool ct_servers_owe(const ct_device *dev);

int ct_server_write_words(ct_server *server, uint32_t word, const uint32_t *value, unsigned count);

/* Ends what a new server has under way, and makes it as it was: CT_ERR_TIMEOUT if it does not end.
 */
int ct_server_quiet(ct_server *server);

/* ---- ct_service.c ---- */

/* Measures, where the server needs that and nothing was given. The model is loaded. On failure its
 * batches do not end. */
int ct_service_measure(ct_server *server);
void ct_service_close(ct_server *server);

/* Writes the control words as they were asked for, with service times and margin. */
int ct_service_begin(ct_server *server);

/* A record has come. */
void ct_service_saw(ct_server *server, const struct ct_event *event);

/* Tells the device what has changed. */
int ct_services_poll(ct_device *dev);

/* Deadlines that can hold, and that do; 0: unknown. */
uint32_t ct_service_least(const ct_server *server);
uint32_t ct_service_safe(const ct_server *server);

/* Says in the log, once, that one may not hold. */
void ct_service_warn(ct_server *server, uint32_t deadline);

/* ---- ct_server.c ---- */

/* Gives back what servers left behind have kept, where the last record has come. */
int ct_servers_poll(ct_device *dev);

/* The same for all, because the device is about to be closed. */
void ct_servers_close(ct_device *dev);

#endif
