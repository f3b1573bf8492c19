/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In the place of ct_usb_link.c, whose functions these are: the plug-in "usb:" as it is, on a
 * Verilated board. The serial number says what is simulated: "fifo" or "serial", and behind it the
 * percent of stalls, as in usb:serial=fifo25.
 *
 * A thread of its own runs the board, whether somebody waits for it or not, as a real one does.
 */
#include "board_link.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "board_sim.h"
#include "coltrain/coltrain.h"
#include "host/transports/usb/ct_usb_link.h"

enum {
  LINE = 1024,  /* bytes that wait for the board, as in the chip */
  PACKET = 510, /* bytes of a packet from the chip */
  STEPS = 256   /* edges between looks at what the host wants */
};

struct ct_usb_link {
  struct board_sim *board; /* of the thread */
  uint8_t packet[PACKET];  /* of the thread */
  size_t packed;
  ct_line_take *take;
  void *arg;
  char name[96], error[200];
  pthread_t thread;

  pthread_mutex_t lock; /* of what follows */
  pthread_cond_t room;
  uint8_t line[LINE];
  size_t first, count;
  bool stop, gone;
  uint8_t lit; /* lamps that were on */
};

/* The one that was opened last. */
static pthread_mutex_t last_lock = PTHREAD_MUTEX_INITIALIZER;
static struct ct_usb_link *last;

/* ---- The thread ----------------------------------------------------------------------------- */

static void flush(void *arg) {
  struct ct_usb_link *l = arg;
  if (l->packed) l->take(l->arg, l->packet, l->packed);
  l->packed = 0;
}

static void came(void *arg, uint8_t byte) {
  struct ct_usb_link *l = arg;
  l->packet[l->packed++] = byte;
  if (l->packed == PACKET) flush(l);
}

static int next(void *arg) {
  struct ct_usb_link *l = arg;
  int byte = -1;
  pthread_mutex_lock(&l->lock);
  if (l->count) {
    byte = l->line[l->first];
    l->first = (l->first + 1) % LINE;
    --l->count;
    pthread_cond_signal(&l->room);
  }
  pthread_mutex_unlock(&l->lock);
  return byte;
}

static void *run(void *arg) {
  struct ct_usb_link *l = arg;
  bool stop = false, good = true;
  while (!stop && good) {
    uint8_t lit = 0;
    for (unsigned i = 0; i < STEPS && good; ++i) {
      good = board_sim_step(l->board);
      lit |= board_sim_lamps(l->board);
    }
    pthread_mutex_lock(&l->lock);
    stop = l->stop;
    l->lit |= lit;
    if (!good) {
      l->gone = true;
      snprintf(l->error, sizeof l->error, "the simulated board broke a rule: %s",
               board_sim_fault(l->board));
      pthread_cond_signal(&l->room);
    }
    pthread_mutex_unlock(&l->lock);
  }
  if (!good) l->take(l->arg, NULL, 0);
  return NULL;
}

/* ---- The link ------------------------------------------------------------------------------- */

static bool options_of(const char *serial, struct board_sim_options *o) {
  const size_t letters = strcspn(serial, "0123456789");
  *o = (struct board_sim_options){.serial = !strncmp(serial, "serial", letters) && letters == 6,
                                  .stall = (unsigned)atoi(serial + letters),
                                  .seed = 1};
  const char *seed = getenv("CT_SEED");
  if (seed) o->seed = strtoull(seed, NULL, 0);
  return o->serial || (!strncmp(serial, "fifo", letters) && letters == 4);
}

int ct_usb_link_open(const struct ct_usb_where *where, ct_line_take *take, void *arg, void **link,
                     char *why, size_t whysize) {
  struct board_sim_options options;
  if (!options_of(where->serial, &options)) {
    snprintf(why, whysize, "the simulated board is called fifo or serial, not '%s'", where->serial);
    return CT_ERR_NOT_FOUND;
  }
  struct ct_usb_link *l = calloc(1, sizeof *l);
  if (!l) return CT_ERR_MEMORY;
  const struct board_host host = {next, came, flush, l};
  l->take = take;
  l->arg = arg;
  snprintf(l->name, sizeof l->name, "the simulated board (%s)", where->serial);
  pthread_mutex_init(&l->lock, NULL);
  pthread_cond_init(&l->room, NULL);
  l->board = board_sim_new(&options, &host);
  if (!l->board || pthread_create(&l->thread, NULL, run, l)) {
    board_sim_free(l->board);
    free(l);
    snprintf(why, whysize, "the host has no memory for a simulated board");
    return CT_ERR_MEMORY;
  }
  pthread_mutex_lock(&last_lock);
  last = l;
  pthread_mutex_unlock(&last_lock);
  *link = l;
  return CT_OK;
}

int ct_usb_link_list(ct_transport_found *found, void *arg) {
  found(arg, "serial=fifo", "a simulated board, by its FIFO", CT_OK);
  found(arg, "serial=serial", "a simulated board, by its serial line", CT_OK);
  return CT_OK;
}

void ct_usb_link_close(void *link) {
  struct ct_usb_link *l = link;
  if (!l) return;
  pthread_mutex_lock(&last_lock);
  if (last == l) last = NULL;
  pthread_mutex_unlock(&last_lock);
  pthread_mutex_lock(&l->lock);
  l->stop = true;
  pthread_mutex_unlock(&l->lock);
  pthread_join(l->thread, NULL);
  board_sim_free(l->board);
  pthread_cond_destroy(&l->room);
  pthread_mutex_destroy(&l->lock);
  free(l);
}

int ct_usb_link_send(void *link, const uint8_t *bytes, size_t size, unsigned timeout_ms) {
  struct ct_usb_link *l = link;
  (void)timeout_ms;
  pthread_mutex_lock(&l->lock);
  for (size_t done = 0; done < size && !l->gone;) {
    while (l->count == LINE && !l->gone)
      pthread_cond_wait(&l->room, &l->lock);
    for (; done < size && l->count < LINE; ++done)
      l->line[(l->first + l->count++) % LINE] = bytes[done];
  }
  const bool gone = l->gone;
  pthread_mutex_unlock(&l->lock);
  return gone ? CT_ERR_DEVICE : CT_OK;
}

const char *ct_usb_link_error(void *link) {
  struct ct_usb_link *l = link;
  pthread_mutex_lock(&l->lock);
  const bool gone = l->gone;
  pthread_mutex_unlock(&l->lock);
  return gone ? l->error : "";
}

const char *ct_usb_link_name(const void *link) {
  return ((const struct ct_usb_link *)link)->name;
}

/* ---- For tests ------------------------------------------------------------------------------ */

uint8_t board_link_lamps(void) {
  uint8_t lit = 0;
  pthread_mutex_lock(&last_lock);
  if (last) {
    pthread_mutex_lock(&last->lock);
    lit = last->lit;
    last->lit = 0;
    pthread_mutex_unlock(&last->lock);
  }
  pthread_mutex_unlock(&last_lock);
  return lit;
}

void board_link_noise(const uint8_t *bytes, size_t size) {
  pthread_mutex_lock(&last_lock);
  if (last) (void)ct_usb_link_send(last, bytes, size, 0);
  pthread_mutex_unlock(&last_lock);
}
