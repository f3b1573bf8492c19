/* SPDX-License-Identifier: Apache-2.0 */
/* What training can cost an operation of inference, by the unit that both share. */
#ifndef CT_BOUND_H
#define CT_BOUND_H

#include <stdbool.h>
#include <stdint.h>

#include "coltrain/coltrain.h"

/* In the order of ct_core's probe_o. */
enum ct_unit {
  CT_UNIT_READ,
  CT_UNIT_WRITE,
  CT_UNIT_MXU,
  CT_UNIT_VL,
  CT_UNIT_VA,
  CT_UNIT_VS,
  CT_UNIT_COUNT
};

/* What the bound of a wait depends on: the registers' values, and the core's shape. */
struct ct_bound_setting {
  enum ct_policy policy;
  uint32_t floor, train_cap;
  uint32_t array_cols, vpu_lanes;
  bool reorders; /* the memory may answer a read before an older one of the other context */
};

enum { CT_NO_BOUND = INT32_MAX };

/* Cycles of a burst, and of one that is in front or owed: the cycle of its grant comes on top if no
 * beat moves meanwhile. */
enum { CT_BURST = 17, CT_BURST_AHEAD = CT_BURST + 1 };

/* What a VL or VS of inference loses under way, with the floor at 0: VL to rows of training's VA
 * that are on their way when the first has VL's bank (with 4 lanes a function row is finished, and
 * has every fourth cycle), and to the words of training that may be in front of its first one, nine
 * and eleven. A word takes a cycle, or a VL's four writes with 4 lanes, and one more if it doubles
 * a signal. */
enum { CT_VL_PIPE_16 = 31, CT_VL_PIPE_4 = 46 };
enum { CT_VL_AHEAD_16 = 18, CT_VL_AHEAD_4 = 40, CT_VS_AHEAD = 22 };

/* How much later a VA of inference that only copies from ACC is through behind rows of training
 * that go the long way: 27 cycles to its write instead of 4. */
enum { CT_VA_LONG = 23 };

/* The most cycles that a slot of inference (a burst, a row, with 16 lanes a VA) waits while the
 * unit serves training (docs/architecture.md, "What bounds a wait"; side[unit][CT_INFERENCE].peer),
 * or CT_NO_BOUND. Under JOB both jobs began under JOB. */
uint64_t ct_bound_wait(enum ct_unit unit, const struct ct_bound_setting *s);

/* The same for a VL, VA or VS of so many slots, from the first to the last together. */
uint64_t ct_bound_slots(enum ct_unit unit, const struct ct_bound_setting *s, uint64_t slots);

/* Slots that a floor can give training under PRIORITY while inference takes n. */
uint64_t ct_bound_owed(uint32_t floor, uint64_t n);

/* An arbiter's requesters (rtl/ctrl/ct_arbiter.sv), seen from one of them. */
struct ct_bound_place {
  uint32_t requesters; /* all, itself included: 2 .. 8 */
  uint32_t equals;     /* of its class, itself included */
  uint32_t before;     /* of classes that go before its own */
  bool training;       /* its class is training's */
};

/* The most slots (PRIORITY, SLACK) or operations (FCFS, ROUND_ROBIN, JOB; one that is under way not
 * counted) that others get of an arbiter while one waits for its own, or CT_NO_BOUND. */
uint64_t ct_bound_arbiter(const struct ct_bound_setting *s, const struct ct_bound_place *p);

#endif
