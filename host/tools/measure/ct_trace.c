/* SPDX-License-Identifier: Apache-2.0 */
#include "ct_trace.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* GAPS: of an operation that are kept apart; ASKED: bursts of a context under way, a power of two.
 * PID_JOBS, PID_UNITS: "processes" of the viewer; no track has a process's number, or Perfetto
 * would call it that one's main thread. */
enum { GAPS = 64, ASKED = 32, BURSTS = CT_UNIT_WRITE + 1, PID_JOBS = 1, PID_UNITS = 10 };

enum reason { MOVES, PREEMPTED, OPERANDS };

/* A stretch of cycles of which nothing moved. */
struct gap {
  uint64_t from, to;
  enum reason reason;
};

struct operation {
  bool open, ends; /* ends: accepted, and only a second half of a row may follow */
  uint64_t from, busy, waited, asked;
  struct gap gap[GAPS];
  unsigned gaps;
};

struct wait {
  bool open, other; /* for the other context */
  uint64_t from, total;
};

struct side {
  struct operation op;
  struct wait wait;
  uint64_t waited; /* by the operation granted last */
  bool granted;    /* in the cycle before */
  bool runs;       /* vector unit: a row is under way, and none of the other queue since */
};

/* A burst that was granted and has had no beat yet. */
struct asked {
  uint64_t cycle, waited;
};

struct job {
  enum ct_trace_kind kind;
  unsigned queue;
  uint64_t number, arrive, start, end;
};

struct ct_trace {
  FILE *file;
  double us; /* of a cycle */
  uint64_t limit, last;
  bool begun, closing;
  struct side side[CT_UNIT_COUNT][2];
  struct asked asked[BURSTS][2][ASKED];
  unsigned head[BURSTS][2], tail[BURSTS][2];
  struct job *jobs;
  size_t job_count, job_room;
  struct ct_trace_summary sum;
};

static const char *const contexts[] = {"inference", "training"};
static const char *const operations[] = {"read burst", "write burst",     "tile product",
                                         "tile load",  "tile arithmetic", "tile store"};

/* ---- Writing ---- */

__attribute__((format(printf, 2, 3))) static void put(struct ct_trace *t, const char *format, ...) {
  va_list args;
  va_start(args, format);
  const int n = vfprintf(t->file, format, args);
  va_end(args);
  if (n < 0)
    t->sum.failed = true;
  else
    t->sum.bytes += (uint64_t)n;
}

/* Jobs are written at the end and get an eighth of the size. A file that is full still takes the
 * cycle in which that came out, and what is under way in it: so it is whole up to sum.to. */
static bool has_room(struct ct_trace *t) {
  if (t->closing) return t->sum.bytes < t->limit;
  if (!t->sum.full && t->sum.bytes >= t->limit - t->limit / 8) {
    t->sum.full = true;
    if (t->last + 1 < t->sum.to) t->sum.to = t->last + 1;
  }
  return true;
}

/* The beginning of an event, up to its time. */
static void begin_event(struct ct_trace *t, char phase, unsigned pid, unsigned tid, uint64_t cycle,
                        const char *name) {
  put(t, "%s{\"ph\":\"%c\",\"pid\":%u,\"tid\":%u,\"ts\":%.3f,\"name\":\"%s", t->begun ? ",\n" : "",
      phase, pid, tid, (double)cycle * t->us, name);
  t->begun = true;
  ++t->sum.events;
}

/* The beginning of a slice of a track, cut to the window; false: nothing is left of it. */
static bool slice(struct ct_trace *t, unsigned pid, unsigned tid, uint64_t from, uint64_t to,
                  const char *name, const char *of) {
  if (from < t->sum.from) from = t->sum.from;
  if (to > t->sum.to) to = t->sum.to;
  if (from >= to || !has_room(t)) return false;
  begin_event(t, 'X', pid, tid, from, name);
  put(t, "%s\",\"dur\":%.3f", of, (double)(to - from) * t->us);
  return true;
}

static void name_track(struct ct_trace *t, const char *what, unsigned pid, unsigned tid,
                       const char *name, const char *more) {
  put(t, "%s{\"ph\":\"M\",\"pid\":%u,\"tid\":%u,\"name\":\"%s\",\"args\":{\"name\":\"%s%s\"}}",
      t->begun ? ",\n" : "", pid, tid, what, name, more);
  t->begun = true;
}

/* Tracks of a unit: operations and waits of inference, then of training. */
static unsigned lane(unsigned context, bool waits) {
  return 1 + 2 * context + waits;
}

static void put_tracks(struct ct_trace *t) {
  name_track(t, "process_name", PID_JOBS, 0, "Jobs", "");
  for (unsigned u = 0; u < CT_UNIT_COUNT; ++u) {
    name_track(t, "process_name", PID_UNITS + u, 0, ct_probe_name(u), "");
    for (unsigned c = 0; c < 2; ++c) {
      name_track(t, "thread_name", PID_UNITS + u, lane(c, false), contexts[c], "");
      name_track(t, "thread_name", PID_UNITS + u, lane(c, true), contexts[c], " waits");
    }
  }
}

static void put_head(struct ct_trace *t) {
  put(t, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n");
  put_tracks(t);
}

struct ct_trace *ct_trace_open(const char *path, uint64_t clock_hz, uint64_t bytes) {
  struct ct_trace *t = calloc(1, sizeof *t);
  if (!t) return NULL;
  t->file = fopen(path, "w");
  if (!t->file) {
    free(t);
    return NULL;
  }
  t->us = clock_hz ? 1e6 / (double)clock_hz : 1;
  t->limit = bytes;
  t->sum.from = t->sum.to = UINT64_MAX;
  put_head(t);
  return t;
}

/* Takes back what has been written. */
static void start_over(struct ct_trace *t) {
  const bool failed =
      fflush(t->file) || fseek(t->file, 0, SEEK_SET) || ftruncate(fileno(t->file), 0);
  t->sum = (struct ct_trace_summary){.failed = t->sum.failed || failed};
  t->begun = false;
  for (unsigned u = 0; u < CT_UNIT_COUNT; ++u)
    for (unsigned c = 0; c < 2; ++c)
      t->side[u][c].op.busy = 0;
  put_head(t);
}

void ct_trace_window(struct ct_trace *t, uint64_t from, uint64_t to) {
  if (t->sum.from != UINT64_MAX) start_over(t);
  t->sum.from = from;
  t->sum.to = to;
}

bool ct_trace_wants(const struct ct_trace *t) {
  return t && (t->sum.to == UINT64_MAX || t->last + 1 < t->sum.to);
}

/* ---- Operations ---- */

static bool in_window(const struct ct_trace *t, uint64_t cycle) {
  return cycle >= t->sum.from && cycle < t->sum.to;
}

static const char *gap_name(unsigned unit, enum reason reason) {
  if (reason == PREEMPTED) return "preempted by ";
  if (unit == CT_UNIT_MXU) return "waits for operands";
  return unit < CT_UNIT_MXU ? "waits for the memory" : "waits for the scratchpad";
}

static void close_operation(struct ct_trace *t, unsigned u, unsigned c, uint64_t end) {
  struct operation *op = &t->side[u][c].op;
  op->open = op->ends = false;
  if (!slice(t, PID_UNITS + u, lane(c, false), op->from, end, operations[u], "")) return;
  put(t, ",\"args\":{\"busy\":%" PRIu64 ",\"waited\":%" PRIu64, op->busy, op->waited);
  if (u < BURSTS) put(t, ",\"after_request\":%" PRIu64, op->from - op->asked);
  put(t, "}}");
  for (unsigned i = 0; i < op->gaps; ++i) {
    const struct gap *g = &op->gap[i];
    if (slice(t, PID_UNITS + u, lane(c, false), g->from, g->to, gap_name(u, g->reason),
              g->reason == PREEMPTED ? contexts[!c] : ""))
      put(t, "}");
  }
}

static void open_operation(struct ct_trace *t, unsigned u, unsigned c, uint64_t cycle) {
  struct side *s = &t->side[u][c];
  struct operation *op = &s->op;
  op->open = true;
  op->ends = false;
  op->from = cycle;
  op->busy = 0;
  op->gaps = 0;
  op->waited = s->waited;
  op->asked = cycle;
  if (u >= BURSTS || t->head[u][c] == t->tail[u][c]) return;
  const struct asked *asked = &t->asked[u][c][t->head[u][c]++ % ASKED];
  op->waited = asked->waited;
  op->asked = asked->cycle;
}

/* Nothing moved in this cycle. Of too many stretches the last is drawn out to the end. */
static void note_gap(struct operation *op, uint64_t cycle, enum reason reason) {
  struct gap *g = op->gaps ? &op->gap[op->gaps - 1] : NULL;
  if (g && g->to == cycle && g->reason == reason)
    ++g->to;
  else if (op->gaps < GAPS)
    op->gap[op->gaps++] = (struct gap){cycle, cycle + 1, reason};
}

static bool event(uint64_t events, enum ct_probe_event e, unsigned c) {
  return events >> (2 * e + c) & 1;
}

/* Who had the slot that an operation under way did not use. */
static enum reason reason_of(unsigned u, uint64_t events, unsigned c, const struct side *s) {
  const bool other = event(events, CT_PROBE_USED, !c);
  if (u == CT_UNIT_VL || u == CT_UNIT_VS) return s->runs ? OPERANDS : PREEMPTED;
  if (u == CT_UNIT_MXU) return other && event(events, CT_PROBE_READY, c) ? PREEMPTED : OPERANDS;
  return other ? PREEMPTED : OPERANDS;
}

static void operation_cycle(struct ct_trace *t, unsigned u, unsigned c, uint64_t cycle,
                            uint64_t events) {
  struct side *s = &t->side[u][c];
  struct operation *op = &s->op;
  const bool used = event(events, CT_PROBE_USED, c), granted = event(events, CT_PROBE_GRANT, c);
  const bool vector = u > CT_UNIT_MXU;
  /* The array's second half of a row comes after the row's grant, and maybe after its accept. */
  if (op->open && op->ends && (!used || granted)) close_operation(t, u, c, cycle);
  if (!op->open && (used || (vector && s->granted))) open_operation(t, u, c, cycle);
  s->granted = granted;
  if (!op->open) return;
  const bool stalls = (u == CT_UNIT_VL || u == CT_UNIT_VS) && s->runs;
  if ((used || stalls) && in_window(t, cycle)) {
    ++op->busy;
    ++t->sum.busy[u][c];
  }
  if (!used) {
    const enum reason reason = reason_of(u, events, c, s);
    const bool again =
        op->gaps && op->gap[op->gaps - 1].to == cycle && op->gap[op->gaps - 1].reason == PREEMPTED;
    if (reason == PREEMPTED && !again && in_window(t, cycle)) ++t->sum.preempted[u][c];
    note_gap(op, cycle, reason);
  }
  if (!event(events, CT_PROBE_ACCEPT, c)) return;
  if (u == CT_UNIT_MXU)
    op->ends = true;
  else
    close_operation(t, u, c, cycle + 1);
}

/* ---- Waits ---- */

static void close_wait(struct ct_trace *t, unsigned u, unsigned c, uint64_t end) {
  struct wait *w = &t->side[u][c].wait;
  if (!w->open) return;
  w->open = false;
  w->total += end - w->from;
  if (slice(t, PID_UNITS + u, lane(c, true), w->from, end,
            w->other ? "waits for " : "waits for its own work or the memory",
            w->other ? contexts[!c] : ""))
    put(t, "}");
}

static void wait_cycle(struct ct_trace *t, unsigned u, unsigned c, uint64_t cycle,
                       uint64_t events) {
  struct side *s = &t->side[u][c];
  struct wait *w = &s->wait;
  const bool granted = event(events, CT_PROBE_GRANT, c);
  const bool waits = event(events, CT_PROBE_READY, c) && !granted;
  const bool other = event(events, CT_PROBE_USED, !c) || event(events, CT_PROBE_GRANT, !c);
  if (w->open && (!waits || other != w->other)) close_wait(t, u, c, cycle);
  if (waits && !w->open) {
    w->open = true;
    w->other = other;
    w->from = cycle;
  }
  if (granted) {
    s->waited = w->total;
    w->total = 0;
    if (u < BURSTS) t->asked[u][c][t->tail[u][c]++ % ASKED] = (struct asked){cycle, s->waited};
  }
}

/* A row of the vector unit begins in the cycle after its grant, and then none of the other queue is
 * under way. */
static void rows_begin(struct side side[2]) {
  for (unsigned c = 0; c < 2; ++c)
    if (side[0].granted || side[1].granted) side[c].runs = side[c].granted;
}

/* Outside of the window too: what is under way has begun before. */
void ct_trace_cycle(void *trace, uint64_t cycle, uint64_t events) {
  struct ct_trace *t = trace;
  t->last = cycle;
  for (unsigned u = 0; u < CT_UNIT_COUNT; ++u, events >>= CT_PROBE_UNIT_BITS) {
    rows_begin(t->side[u]);
    for (unsigned c = 0; c < 2; ++c) {
      /* A row enters the array in the cycle of its grant, a tile operation begins in the next. */
      if (u == CT_UNIT_MXU) wait_cycle(t, u, c, cycle, events);
      operation_cycle(t, u, c, cycle, events);
      if (u != CT_UNIT_MXU) wait_cycle(t, u, c, cycle, events);
    }
  }
}

/* ---- Jobs ---- */

void ct_trace_job(struct ct_trace *t, enum ct_trace_kind kind, unsigned queue, uint64_t number,
                  uint64_t arrive, uint64_t start, uint64_t end) {
  if (end < t->sum.from || arrive >= t->sum.to) return;
  if (t->job_count == t->job_room) {
    const size_t room = t->job_room ? 2 * t->job_room : 256;
    struct job *jobs = realloc(t->jobs, room * sizeof *jobs);
    if (!jobs) return;
    t->jobs = jobs;
    t->job_room = room;
  }
  t->jobs[t->job_count++] = (struct job){kind, queue, number, arrive, start, end};
}

void ct_trace_swap(struct ct_trace *t, uint64_t version, uint64_t cycle) {
  if (!in_window(t, cycle) || !has_room(t)) return;
  begin_event(t, 'i', PID_JOBS, 0, cycle, "");
  put(t, "version %" PRIu64 " of the weights takes over\",\"s\":\"g\"}", version);
}

/* One end of a nested pair of asynchronous events. All requests have one name: the viewers put them
 * together by it. */
static void job_edge(struct ct_trace *t, const struct job *j, char phase, uint64_t cycle,
                     const char *name) {
  if (cycle < t->sum.from) cycle = t->sum.from;
  if (cycle > t->sum.to) cycle = t->sum.to;
  begin_event(t, phase, PID_JOBS, j->queue, cycle, name);
  put(t, "\",\"cat\":\"%s\",\"id2\":{\"local\":\"0x%u%u%08" PRIx64 "\"}", contexts[j->queue],
      j->queue + 1, (unsigned)j->kind, j->number);
  put(t, ",\"args\":{\"number\":%" PRIu64 "}}", j->number);
}

static void job_phase(struct ct_trace *t, const struct job *j, uint64_t from, uint64_t to,
                      const char *name) {
  if (from == to || from >= t->sum.to || to <= t->sum.from) return;
  job_edge(t, j, 'b', from, name);
  job_edge(t, j, 'e', to, name);
}

/* The window may have changed since the job was noted. */
static bool is_shown(const struct ct_trace *t, const struct job *j) {
  return j->arrive < t->sum.to && j->end >= t->sum.from;
}

static void put_job(struct ct_trace *t, const struct job *j) {
  static const char *const kinds[] = {"request", "training step", "publishing"};
  if (!is_shown(t, j) || !has_room(t)) return;
  job_edge(t, j, 'b', j->arrive, kinds[j->kind]);
  job_phase(t, j, j->arrive, j->start, "in the queue");
  job_phase(t, j, j->start, j->end, "in service");
  job_edge(t, j, 'e', j->end, kinds[j->kind]);
}

struct edge {
  uint64_t cycle;
  int step;
};

static int by_cycle(const void *a, const void *b) {
  const struct edge *x = a, *y = b;
  return x->cycle != y->cycle ? (x->cycle < y->cycle ? -1 : 1) : y->step - x->step;
}

/* How many jobs the queue holds, waiting and in service. */
static void put_depth(struct ct_trace *t, unsigned queue) {
  struct edge *edges = malloc((2 * t->job_count + 1) * sizeof *edges);
  size_t n = 0;
  int depth = 0;
  for (size_t i = 0; edges && i < t->job_count; ++i) {
    const struct job *j = &t->jobs[i];
    if (j->queue != queue || !is_shown(t, j)) continue;
    edges[n++] = (struct edge){j->arrive > t->sum.from ? j->arrive : t->sum.from, 1};
    edges[n++] = (struct edge){j->end, -1};
  }
  if (edges) qsort(edges, n, sizeof *edges, by_cycle);
  for (size_t i = 0; i < n; ++i) {
    depth += edges[i].step;
    if (edges[i].cycle >= t->sum.to) break;
    if (i + 1 < n && edges[i + 1].cycle == edges[i].cycle) continue;
    if (!has_room(t)) break;
    begin_event(t, 'C', PID_JOBS, 0, edges[i].cycle, contexts[queue]);
    put(t, " queue\",\"args\":{\"jobs\":%d}}", depth);
  }
  free(edges);
}

/* ---- The end ---- */

static void put_totals(struct ct_trace *t, const char *name, uint64_t totals[CT_UNIT_COUNT][2]) {
  put(t, ",\n\"%s\":{", name);
  for (unsigned u = 0; u < CT_UNIT_COUNT; ++u)
    put(t, "%s\"%s\":[%" PRIu64 ",%" PRIu64 "]", u ? "," : "", ct_probe_name(u), totals[u][0],
        totals[u][1]);
  put(t, "}");
}

int ct_trace_close(struct ct_trace *t, struct ct_trace_summary *summary) {
  if (!t) return 0;
  if (t->sum.to > t->last + 1) t->sum.to = t->last + 1;
  for (unsigned u = 0; u < CT_UNIT_COUNT; ++u)
    for (unsigned c = 0; c < 2; ++c) {
      if (t->side[u][c].op.open) close_operation(t, u, c, t->sum.to);
      close_wait(t, u, c, t->sum.to);
    }
  t->closing = true;
  for (size_t i = 0; i < t->job_count; ++i)
    put_job(t, &t->jobs[i]);
  put_depth(t, 0);
  put_depth(t, 1);
  put(t,
      "\n],\n\"otherData\":{\"from_cycle\":%" PRIu64 ",\"to_cycle\":%" PRIu64
      ",\"us_per_cycle\":%.6f,\"full\":%s",
      t->sum.from, t->sum.to, t->us, t->sum.full ? "true" : "false");
  put_totals(t, "busy_cycles", t->sum.busy);
  put_totals(t, "preemptions", t->sum.preempted);
  put(t, "}}\n");
  if (fclose(t->file)) t->sum.failed = true;
  const int failed = t->sum.failed ? -1 : 0;
  if (summary) *summary = t->sum;
  free(t->jobs);
  free(t);
  return failed;
}
