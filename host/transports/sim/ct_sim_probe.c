/* SPDX-License-Identifier: Apache-2.0 */
#include "ct_sim_probe.h"

static void keep(struct ct_probe_wait *w, uint64_t cycles) {
  w->sum += cycles;
  if (cycles > w->max) w->max = cycles;
  ++w->bin[cycles < CT_PROBE_BINS ? cycles : CT_PROBE_BINS - 1];
}

static void served(struct ct_probe_side *side, const struct ct_sim_wait *waited) {
  ++side->served;
  keep(&side->peer, waited->peer);
  keep(&side->rest, waited->rest);
}

/* Bit c of the two bits of an event. */
static unsigned event(uint64_t events, enum ct_probe_event e, unsigned c) {
  return (unsigned)(events >> (2 * e + c)) & 1;
}

/* Another cycle of a wait; whether it is over. */
static bool waits(struct ct_sim_wait *w, uint64_t events, unsigned c) {
  if (!event(events, CT_PROBE_READY, c)) return false;
  if (event(events, CT_PROBE_GRANT, c)) return true;
  if (event(events, CT_PROBE_USED, !c) || event(events, CT_PROBE_GRANT, !c))
    ++w->peer;
  else
    ++w->rest;
  return false;
}

/* A read's beats come in the order of its context's grants. What a read waits for after its grant
 * are the beats, of the peer or none of either, until its first. */
static void read_cycle(struct ct_sim_probe *p, uint64_t events, unsigned c) {
  struct ct_probe_side *side = &p->to->side[CT_UNIT_READ][c];
  struct ct_sim_wait *beats = &p->beats[c];
  if (event(events, CT_PROBE_USED, c) && p->head[c] != p->tail[c]) {
    struct ct_sim_wait *r = &p->read[c][p->head[c] % CT_SIM_PROBE_READS];
    if (!p->begun[c]) {
      const struct ct_sim_wait waited = {r->peer + beats->peer, r->rest + beats->rest};
      served(side, &waited);
    }
    p->begun[c] = !event(events, CT_PROBE_ACCEPT, c);
    if (!p->begun[c]) ++p->head[c];
  }
  if (waits(&p->wait[CT_UNIT_READ][c], events, c)) {
    struct ct_sim_wait *w = &p->wait[CT_UNIT_READ][c];
    p->read[c][p->tail[c]++ % CT_SIM_PROBE_READS] =
        (struct ct_sim_wait){w->peer - beats->peer, w->rest - beats->rest};
    *w = (struct ct_sim_wait){0, 0};
  }
  if (event(events, CT_PROBE_USED, !c))
    ++beats->peer;
  else
    ++beats->rest;
}

static void unit_cycle(struct ct_sim_probe *p, enum ct_unit unit, uint64_t events) {
  for (unsigned c = 0; c < 2; ++c) {
    struct ct_probe_side *side = &p->to->side[unit][c];
    side->used += event(events, CT_PROBE_USED, c);
    side->complete += event(events, CT_PROBE_COMPLETE, c);
    if (unit == CT_UNIT_READ) {
      read_cycle(p, events, c);
    } else if (waits(&p->wait[unit][c], events, c)) {
      served(side, &p->wait[unit][c]);
      p->wait[unit][c] = (struct ct_sim_wait){0, 0};
    }
  }
}

void ct_sim_probe_cycle(struct ct_sim_probe *p, uint64_t cycle, uint64_t events) {
  ++p->to->cycles;
  if (p->to->watch) p->to->watch(p->to->watch_arg, cycle, events);
  for (unsigned u = 0; u < CT_UNIT_COUNT; ++u)
    unit_cycle(p, u, events >> CT_PROBE_UNIT_BITS * u);
}
