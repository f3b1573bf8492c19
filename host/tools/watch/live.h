/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looking at a running job: `coltrain colocate` and `coltrain train` listen at a Unix socket, and
 * whoever connects (`coltrain top`) gets a line of JSON four times a second. Nobody connected costs
 * a look at the socket twenty times a second; somebody who does not read is left out, then dropped.
 * Watching changes no cycle of a simulated device: what its units do is counted outside of it.
 * Other devices are asked for their counters.
 *
 * The sockets are PID.sock in $COLTRAIN_RUN_DIR, else $XDG_RUNTIME_DIR/coltrain, else
 * /tmp/coltrain-UID: a folder that belongs to the user alone. Where none can be made, nobody can
 * look, and the job runs on.
 *
 * A line is an object; what is not known is null or missing:
 *   verb, pid, device, run ("serving and training"), fraction, seconds_left
 *   cycle, clock_hz            of the device
 *   queues.inference, .training   jobs that wait or are in service
 *   units[]                    name, inference, training: share of the cycles since the last line
 *   requests                   done, count, p50_us, p99_us (of the last 1000), accuracy
 *   steps                      done, count, loss, per_second (device time), per_wall_second
 */
#ifndef LIVE_H
#define LIVE_H

#include "cli.h"
#include "ct_probe.h"

/* RATES: lines that rates are taken over, ten seconds. */
enum { LIVE_CLIENTS = 4, LIVE_PATH = 108, LIVE_RATES = 40 };

struct live {
  ct_device *dev;
  const char *verb, *device;
  uint64_t clock_hz; /* 0: no clock */
  char path[LIVE_PATH];
  int listener, client[LIVE_CLIENTS]; /* -1: none */
  uint64_t looked, sent;              /* ns */
  struct ct_probe *units;             /* what the device adds to while it is watched */
  bool watching, can_watch;
  uint64_t cycles, used[CT_UNIT_COUNT][2]; /* at the last line */
  struct {
    uint64_t cycle, steps, wall;
  } rate[LIVE_RATES]; /* at the last lines, a ring */
  unsigned rates;
};

/* Begins to listen; whatever goes wrong is no failure. */
void live_open(struct live *l, const char *verb, const char *device, ct_device *dev);
void live_close(struct live *l);

/* Has every cycle told to watch as well, NULL: no more. CT_ERR_UNSUPPORTED unless the device is a
 * simulated core. */
int live_watch(struct live *l, ct_probe_watch *watch, void *arg);

/* A new object for a line, if somebody wants one now, or NULL. Fill it in and hand it over. */
json_t *live_begin(struct live *l);
void live_end(struct live *l, json_t *line);

/* Adds "steps". */
void live_steps(struct live *l, json_t *line, uint64_t done, uint64_t count, double loss);

/* ---- The other side ---- */

/* The folder of the sockets; false if there is none. */
bool live_folder(char *folder, size_t size);

/* Connects to the job of a process, pid 0: the newest one. Sockets of processes that are gone are
 * removed. The file descriptor, or -1; *jobs (may be NULL) says how many there are. */
int live_connect(long pid, unsigned *jobs);

#endif
