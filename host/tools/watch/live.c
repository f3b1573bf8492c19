/* SPDX-License-Identifier: Apache-2.0 */
#include "live.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "ct_units.h"

#define MS UINT64_C(1000000)
#define LOOK (50 * MS)
#define LINE (250 * MS)

static uint64_t wall(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000 * MS + (uint64_t)t.tv_nsec;
}

/* ---- Sockets ---- */

bool live_folder(char *folder, size_t size) {
  const char *own = getenv("COLTRAIN_RUN_DIR"), *run = getenv("XDG_RUNTIME_DIR");
  struct stat info;
  int n;
  if (own && *own)
    n = snprintf(folder, size, "%s", own);
  else if (run && *run && access(run, W_OK) == 0)
    n = snprintf(folder, size, "%s/coltrain", run);
  else
    n = snprintf(folder, size, "/tmp/coltrain-%ld", (long)getuid());
  if (n < 0 || (size_t)n >= size) return false;
  mkdir(folder, 0700);
  /* In /tmp anybody may have been first. */
  return lstat(folder, &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == getuid() &&
         (info.st_mode & 022) == 0;
}

static bool address_of(struct sockaddr_un *address, const char *path) {
  *address = (struct sockaddr_un){.sun_family = AF_UNIX};
  const int n = snprintf(address->sun_path, sizeof address->sun_path, "%s", path);
  return n > 0 && (size_t)n < sizeof address->sun_path;
}

static int open_socket(void) {
  const int s = socket(AF_UNIX, SOCK_STREAM, 0);
  if (s >= 0) fcntl(s, F_SETFD, FD_CLOEXEC);
  return s;
}

/* It has its name only once it listens: one that refuses is taken for that of a job that was
 * killed, and removed. What a process with this number left behind is replaced. */
static int listen_at(const char *path) {
  struct sockaddr_un address;
  char early[LIVE_PATH + 4];
  snprintf(early, sizeof early, "%s.new", path);
  const int s = address_of(&address, early) ? open_socket() : -1;
  if (s < 0) return -1;
  unlink(early);
  if (bind(s, (const struct sockaddr *)&address, sizeof address) == 0 &&
      listen(s, LIVE_CLIENTS) == 0 && fcntl(s, F_SETFL, O_NONBLOCK) == 0 &&
      rename(early, path) == 0)
    return s;
  unlink(early);
  close(s);
  return -1;
}

void live_open(struct live *l, const char *verb, const char *device, ct_device *dev) {
  struct ct_info info;
  char folder[LIVE_PATH - 24];
  *l = (struct live){.dev = dev, .verb = verb, .device = device, .listener = -1, .can_watch = true};
  for (size_t i = 0; i < LIVE_CLIENTS; ++i)
    l->client[i] = -1;
  if (ct_info(dev, &info) >= 0 && info.has_clock) l->clock_hz = info.clock_hz;
  if (!live_folder(folder, sizeof folder)) return;
  snprintf(l->path, sizeof l->path, "%s/%ld.sock", folder, (long)getpid());
  l->listener = listen_at(l->path);
}

static void drop(struct live *l, size_t i) {
  close(l->client[i]);
  l->client[i] = -1;
}

void live_close(struct live *l) {
  if (!l->dev) return;
  for (size_t i = 0; i < LIVE_CLIENTS; ++i)
    if (l->client[i] >= 0) drop(l, i);
  if (l->listener >= 0) {
    close(l->listener);
    unlink(l->path);
  }
  if (l->watching) ct_probe(l->dev, NULL);
  free(l->units);
  *l = (struct live){.dev = NULL};
}

static void take_clients(struct live *l) {
  for (size_t i = 0; l->listener >= 0 && i < LIVE_CLIENTS; ++i) {
    if (l->client[i] >= 0) continue;
    l->client[i] = accept(l->listener, NULL, NULL);
    if (l->client[i] < 0) return;
    fcntl(l->client[i], F_SETFD, FD_CLOEXEC);
    l->sent = l->rates = 0;
  }
}

static bool has_clients(const struct live *l) {
  for (size_t i = 0; i < LIVE_CLIENTS; ++i)
    if (l->client[i] >= 0) return true;
  return false;
}

/* ---- Watching ---- */

/* Watches the device while somebody wants to know. */
static int update_watching(struct live *l) {
  const bool wanted = l->can_watch && (has_clients(l) || (l->units && l->units->watch));
  if (wanted == l->watching) return 0;
  if (!l->units) l->units = calloc(1, sizeof *l->units);
  if (!l->units) return CT_ERR_MEMORY;
  ct_probe_watch *const watch = l->units->watch;
  void *const arg = l->units->watch_arg;
  *l->units = (struct ct_probe){.watch = watch, .watch_arg = arg};
  l->cycles = 0;
  memset(l->used, 0, sizeof l->used);
  const int rc = ct_probe(l->dev, wanted ? l->units : NULL);
  l->watching = wanted && rc >= 0;
  l->can_watch = rc >= 0;
  return rc;
}

int live_watch(struct live *l, ct_probe_watch *watch, void *arg) {
  if (!l->units) l->units = calloc(1, sizeof *l->units);
  if (!l->units) return CT_ERR_MEMORY;
  l->units->watch = watch;
  l->units->watch_arg = arg;
  return update_watching(l);
}

/* ---- Lines ---- */

/* The cycles so far and those in which each unit worked for a queue. */
static uint64_t read_units(struct live *l, uint64_t cycle, uint64_t used[CT_UNIT_COUNT][2]) {
  uint64_t values[CT_MAX_COUNTERS];
  for (unsigned c = 0; c < 2; ++c) {
    if (!l->watching && ct_counters(l->dev, (enum ct_queue)c, values, CT_MAX_COUNTERS) < 0)
      return 0;
    for (unsigned u = 0; u < CT_UNIT_COUNT; ++u)
      used[u][c] = l->watching ? l->units->side[u][c].used : ct_unit_time(u, values).busy;
  }
  return l->watching ? l->units->cycles : cycle;
}

/* Shares since the last line. */
static json_t *units_of(struct live *l, uint64_t cycle) {
  uint64_t used[CT_UNIT_COUNT][2] = {{0}};
  const uint64_t now = l->clock_hz ? read_units(l, cycle, used) : 0;
  const double cycles = now > l->cycles ? (double)(now - l->cycles) : 0;
  json_t *list = json_array();
  for (unsigned u = 0; cycles > 0 && l->cycles && u < CT_UNIT_COUNT; ++u)
    json_array_append_new(list, json_pack("{s:s, s:f, s:f}", "name", ct_probe_name(u), "inference",
                                          (double)(used[u][0] - l->used[u][0]) / cycles, "training",
                                          (double)(used[u][1] - l->used[u][1]) / cycles));
  memcpy(l->used, used, sizeof l->used);
  l->cycles = now;
  return list;
}

json_t *live_begin(struct live *l) {
  if (!l->dev || l->listener < 0) return NULL;
  const uint64_t now = wall();
  if (now - l->looked < LOOK) return NULL;
  l->looked = now;
  take_clients(l);
  update_watching(l);
  if (!has_clients(l) || now - l->sent < LINE) return NULL;
  l->sent = now;
  uint64_t cycle = CT_NO_CYCLE;
  ct_now(l->dev, &cycle);
  json_t *line =
      json_pack("{s:s, s:I, s:s, s:o, s:o}", "verb", l->verb, "pid", (json_int_t)getpid(), "device",
                l->device, "cycle", cli_json_cycles(cycle), "clock_hz",
                l->clock_hz ? json_integer((json_int_t)l->clock_hz) : json_null());
  json_object_set_new(line, "units", units_of(l, cycle));
  return line;
}

void live_steps(struct live *l, json_t *line, uint64_t done, uint64_t count, double loss) {
  const uint64_t now = wall(), cycle = (uint64_t)json_integer_value(json_object_get(line, "cycle"));
  const unsigned first = l->rates > LIVE_RATES ? l->rates - LIVE_RATES : 0, n = l->rates++;
  const uint64_t before = l->rate[first % LIVE_RATES].steps;
  const double steps = done > before ? (double)(done - before) : 0;
  json_t *rate = json_null(), *wall_rate = json_null();
  if (n > first) {
    const uint64_t from = l->rate[first % LIVE_RATES].cycle;
    wall_rate = cli_json_ratio(1e9 * steps, (double)(now - l->rate[first % LIVE_RATES].wall));
    if (l->clock_hz && cycle > from)
      rate = cli_json_ratio(steps * (double)l->clock_hz, (double)(cycle - from));
  }
  l->rate[n % LIVE_RATES].cycle = cycle;
  l->rate[n % LIVE_RATES].steps = done;
  l->rate[n % LIVE_RATES].wall = now;
  json_object_set_new(
      line, "steps",
      json_pack("{s:I, s:I, s:o, s:o, s:o}", "done", (json_int_t)done, "count", (json_int_t)count,
                "loss", isfinite(loss) ? json_real(loss) : json_null(), "per_second", rate,
                "per_wall_second", wall_rate));
}

void live_end(struct live *l, json_t *line) {
  char *text = json_dumps(line, JSON_COMPACT | JSON_REAL_PRECISION(6));
  const size_t size = text ? strlen(text) : 0;
  if (text) text[size] = '\n'; /* in place of the zero: the length is known */
  for (size_t i = 0; text && i < LIVE_CLIENTS; ++i) {
    if (l->client[i] < 0) continue;
    const ssize_t n = send(l->client[i], text, size + 1, MSG_DONTWAIT | MSG_NOSIGNAL);
    const bool waits = n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
    if (n != (ssize_t)size + 1 && !waits) drop(l, i);
  }
  free(text);
  json_decref(line);
}

/* ---- The other side ---- */

static int connect_to(const char *path) {
  struct sockaddr_un address;
  const int s = address_of(&address, path) ? open_socket() : -1;
  if (s < 0) return -1;
  if (connect(s, (const struct sockaddr *)&address, sizeof address) == 0) return s;
  if (errno == ECONNREFUSED) unlink(path);
  close(s);
  return -1;
}

int live_connect(long pid, unsigned *jobs) {
  char folder[LIVE_PATH - 24], path[LIVE_PATH];
  time_t newest = 0;
  int best = -1;
  unsigned count = 0;
  DIR *dir = live_folder(folder, sizeof folder) ? opendir(folder) : NULL;
  for (struct dirent *e; dir && (e = readdir(dir));) {
    struct stat info;
    char *end = NULL;
    const long number = strtol(e->d_name, &end, 10);
    if (end == e->d_name || strcmp(end, ".sock") != 0 || strlen(e->d_name) > 20) continue;
    snprintf(path, sizeof path, "%s/%ld.sock", folder, number);
    const int s = stat(path, &info) == 0 ? connect_to(path) : -1;
    if (s < 0) continue;
    ++count;
    if (pid ? number == pid : best < 0 || info.st_mtime >= newest) {
      if (best >= 0) close(best);
      best = s;
      newest = info.st_mtime;
    } else {
      close(s);
    }
  }
  if (dir) closedir(dir);
  if (jobs) *jobs = count;
  return best;
}
