/* SPDX-License-Identifier: Apache-2.0 */
#include "ct_bound.h"

uint64_t ct_bound_owed(uint32_t floor, uint64_t n) {
  return (n * floor + 255 - floor) / (256 - floor);
}

/* Under PRIORITY, of the requester's equals each is before it once at most. With a floor training
 * comes to its slots, too: each takes 256 / floor slots of anybody. */
static uint64_t ranked(uint32_t floor, const struct ct_bound_place *p) {
  if (p->requesters == p->equals) return p->equals - 1;
  if (p->training) return floor ? (256 * (uint64_t)p->equals + floor - 1) / floor : CT_NO_BOUND;
  return p->before ? CT_NO_BOUND : p->equals - 1 + ct_bound_owed(floor, p->equals);
}

uint64_t ct_bound_arbiter(const struct ct_bound_setting *s, const struct ct_bound_place *p) {
  const uint64_t in_turn = p->requesters - 1;
  if (s->policy == CT_PRIORITY) return ranked(s->floor, p);
  if (s->policy != CT_SLACK || p->requesters == p->equals) return in_turn;
  /* In turn, then by rank, and again. Training's credit does not outlast that. */
  return p->before ? CT_NO_BOUND : in_turn + ct_bound_owed(s->floor, p->equals);
}

/* Operations of training that begin while one of inference waits, one that is under way then not
 * counted. In turn, one begins only if none was under way. */
static uint64_t that_begin(const struct ct_bound_setting *s) {
  if (s->policy == CT_FCFS) return 1;
  return s->policy == CT_PRIORITY || s->policy == CT_SLACK ? ct_bound_owed(s->floor, 1) : 0;
}

enum { READS = 8 }; /* bursts of inference that may be outstanding */

/* Bursts of training that were asked for before, and those that may come in front of it besides:
 * what inference's other bursts bring training, too, if the memory reorders, and, if training may
 * ask for more than it is owed, any number. */
static uint64_t read_bound(const struct ct_bound_setting *s, uint64_t ahead) {
  const uint64_t cap = !s->train_cap ? 1 : s->train_cap > 8 ? 8 : s->train_cap;
  if (s->policy == CT_PRIORITY && s->reorders)
    ahead = ct_bound_owed(s->floor, READS);
  else if (s->policy != CT_PRIORITY && s->policy != CT_WHOLE_JOB && s->reorders)
    return CT_NO_BOUND;
  return CT_BURST * cap + 1 + CT_BURST_AHEAD * (s->policy == CT_PRIORITY || ahead ? ahead : 1);
}

/* A slot is a row; FCFS and ROUND_ROBIN give the rows of a row tile in one go. */
static uint64_t array_bound(const struct ct_bound_setting *s, uint64_t ahead) {
  const uint64_t beats = 16 / s->array_cols;
  if (s->policy == CT_FCFS || s->policy == CT_ROUND_ROBIN) return 16 * beats;
  if (s->policy == CT_SLACK && !ahead) return beats;
  return beats - 1 + beats * ahead;
}

/* What a side of the vector unit does in one go: a slot is a row of a tile, a VA with 16 lanes
 * whole (with 4, the four rows at its end); an operation is what FCFS and ROUND_ROBIN leave whole.
 * A slot takes a cycle more if it, or those before it, double a signal. */
struct vpu_side {
  uint64_t slot, owed, operation;
};

static struct vpu_side vpu_side(enum ct_unit unit, bool small) {
  switch (unit) {
    case CT_UNIT_VL:
      return (struct vpu_side){4, small ? 5 : 4, small ? 65 : 64};
    case CT_UNIT_VA:
      return (struct vpu_side){16, small ? 16 : 17, small ? 256 : 17};
    default:
      return (struct vpu_side){4, 5, small ? 128 : 65};
  }
}

/* At most a slot is left of what is under way. */
static uint64_t vpu_bound(const struct ct_bound_setting *s, enum ct_unit unit, uint64_t slots) {
  const struct vpu_side v = vpu_side(unit, s->vpu_lanes == 4);
  switch (s->policy) {
    case CT_PRIORITY:
      return v.slot + v.owed * ct_bound_owed(s->floor, slots);
    case CT_SLACK: /* in turn, or what PRIORITY with this floor would do */
      return v.owed * slots + (s->floor ? v.slot + v.owed * ct_bound_owed(s->floor, slots) : 0);
    case CT_FCFS: /* what is under way is whole, and one may have come first */
      return 2 * v.operation;
    default:
      return v.operation;
  }
}

uint64_t ct_bound_slots(enum ct_unit unit, const struct ct_bound_setting *s, uint64_t slots) {
  /* Under JOB only what is read ahead of a job meets the other context. */
  return s->policy == CT_WHOLE_JOB ? 0 : vpu_bound(s, unit, slots);
}

uint64_t ct_bound_wait(enum ct_unit unit, const struct ct_bound_setting *s) {
  const uint64_t ahead = that_begin(s);
  if (s->policy == CT_WHOLE_JOB && unit != CT_UNIT_READ) return 0;
  switch (unit) {
    case CT_UNIT_READ:
      return read_bound(s, ahead);
    case CT_UNIT_WRITE:
      return CT_BURST + 3 + CT_BURST_AHEAD * ahead;
    case CT_UNIT_MXU:
      return array_bound(s, ahead);
    default:
      return ct_bound_slots(unit, s, 1);
  }
}
