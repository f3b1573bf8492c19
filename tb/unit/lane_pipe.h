/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The monitor of a pipeline of fixed latency without back-pressure: valid_o must be valid_i
 * `latency` cycles ago, and the output what was expected then; in between it stays.
 */
#ifndef LANE_PIPE_H
#define LANE_PIPE_H

#include "ct_tb.h"

enum { kPipeMaxLatency = 16, kPipeMaxWords = 16 };

typedef struct {
  bool valid;
  uint64_t number; /* of the vector, for messages */
  uint32_t want[kPipeMaxWords];
} pipe_slot;

typedef struct {
  const char *name;
  void *dut;
  void (*tick)(void *dut);
  uint8_t *valid_i;
  const uint8_t *valid_o;
  const uint32_t *out;
  unsigned words, latency;

  uint64_t cycle, sent;
  pipe_slot slots[kPipeMaxLatency];
  bool seen; /* held[] is what the last valid output was */
  uint32_t held[kPipeMaxWords];
} lane_pipe;

/* Packs `width` bits of `value` into a port's words, at element `index`. */
void pipe_pack(uint32_t *words, unsigned width, unsigned index, uint32_t value);

/* One cycle with the inputs as the driver has set them: a vector that must give want[], or, with
 * want NULL, none. */
void pipe_step(lane_pipe *p, const uint32_t *want);

/* Idle cycles until all that was sent has been seen. */
void pipe_drain(lane_pipe *p);

#endif
