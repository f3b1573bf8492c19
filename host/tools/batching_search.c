/* SPDX-License-Identifier: Apache-2.0 */
#include "batching.h"

/* UNIT: cycles of a rate. LOWEST: of the rate of single requests back to back, percent; nothing is
 * searched below. STEP: 1 / 100. */
enum { UNIT = 1000000000, LOWEST = 10, STEP = 100 };

/* More than the capacity no run sustains for long, though a short one may be over before its p99
 * shows that. In 1/65536, so that low rates rise in even steps, too. */
void batching_rates(struct batching_row *row) {
  const uint64_t last = (uint64_t)UNIT * row->batching.max_batch / row->interval;
  uint64_t rate = ((uint64_t)UNIT << 16) / row->cost[1] * LOWEST / 100;
  row->rates = 0;
  while (row->rates < BATCHING_RATES && rate >> 16 <= last) {
    row->rate[row->rates++] = rate >> 16;
    rate += rate / STEP;
  }
}

bool batching_held(const struct batching_row *row, const struct exp_result *result) {
  return !result->given_up && result->p99 <= row->batching.bound;
}

/* Steps that double, until a rate on the other side is known; then the middle of what is left. */
size_t batching_next(const struct batching_row *row) {
  const size_t none = SIZE_MAX, last = row->rates - 1;
  if (row->below || row->tries == BATCHING_TRIES) return none;
  if (!row->good && !row->bad) return row->model;
  if (!row->bad) {
    if (row->good->rate == last) return none;
    return last - row->good->rate > row->step ? row->good->rate + row->step : last;
  }
  if (!row->good) {
    if (row->bad->rate == 0) return none;
    return row->bad->rate > row->step ? row->bad->rate - row->step : 0;
  }
  if (row->bad->rate - row->good->rate <= 1) return none;
  return (row->bad->rate + row->good->rate) / 2;
}

void batching_take(struct batching_row *row, size_t rate, const struct exp_result *result) {
  struct batching_try *t = &row->tried[row->tries++];
  *t = (struct batching_try){rate, *result};
  if (batching_held(row, result))
    row->good = t;
  else
    row->bad = t;
  row->step = row->tries == 1 ? 1 : 2 * row->step;
}

bool batching_is_over(const struct batching_row *row) {
  return (row->below || row->tries) && batching_next(row) == SIZE_MAX;
}
