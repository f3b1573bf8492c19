/* SPDX-License-Identifier: Apache-2.0 */
#include "ct_units.h"

#include "coltrain_spec.h"

/* operands: -1 for a counter that the unit does not have. */
static const struct {
  const char *name;
  int busy, other, operands[2], semaphore;
} units[CT_UNIT_COUNT] = {
    {"DMA read", CT_CNT_LD_BEATS, CT_CNT_LD_WAIT_ARB, {CT_CNT_LD_WAIT_MEM, -1}, CT_CNT_LD_WAIT_SEM},
    {"DMA write",
     CT_CNT_ST_BEATS,
     CT_CNT_ST_WAIT_ARB,
     {CT_CNT_ST_WAIT_MEM, -1},
     CT_CNT_ST_WAIT_SEM},
    {"MXU",
     CT_CNT_MXU_BUSY,
     CT_CNT_MXU_WAIT_ARB,
     {CT_CNT_MXU_WAIT_B, CT_CNT_MXU_WAIT_A},
     CT_CNT_MXU_WAIT_SEM},
    {"VL", CT_CNT_VL_BUSY, CT_CNT_VL_WAIT_ARB, {-1, -1}, CT_CNT_VL_WAIT_SEM},
    {"VA", CT_CNT_VA_BUSY, CT_CNT_VA_WAIT_ARB, {-1, -1}, CT_CNT_VA_WAIT_SEM},
    {"VS", CT_CNT_VS_BUSY, CT_CNT_VS_WAIT_ARB, {-1, -1}, CT_CNT_VS_WAIT_SEM},
};

const char *ct_unit_name(unsigned unit) {
  return units[unit].name;
}

struct ct_unit_time ct_unit_time(unsigned unit, const uint64_t counters[CT_MAX_COUNTERS]) {
  struct ct_unit_time t = {.busy = counters[units[unit].busy],
                           .other = counters[units[unit].other],
                           .semaphore = counters[units[unit].semaphore]};
  for (unsigned i = 0; i < 2; ++i)
    if (units[unit].operands[i] >= 0) t.operands += counters[units[unit].operands[i]];
  return t;
}

int64_t ct_unit_idle(const struct ct_unit_time *time, uint64_t cycles) {
  return (int64_t)(cycles - time->busy - time->other - time->operands - time->semaphore);
}

static json_t *unit_json(unsigned unit, const char *queue, const uint64_t *counters,
                         uint64_t cycles) {
  const struct ct_unit_time t = ct_unit_time(unit, counters);
  return json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:I}", "unit", ct_unit_name(unit), "queue",
                   queue, "busy", (json_int_t)t.busy, "other", (json_int_t)t.other, "operands",
                   (json_int_t)t.operands, "semaphore", (json_int_t)t.semaphore, "idle",
                   (json_int_t)ct_unit_idle(&t, cycles));
}

json_t *ct_units_list(const uint64_t *inference, const uint64_t *training, uint64_t cycles) {
  json_t *list = json_array();
  for (unsigned u = 0; u < CT_UNIT_COUNT; ++u) {
    if (inference) json_array_append_new(list, unit_json(u, "inference", inference, cycles));
    if (training) json_array_append_new(list, unit_json(u, "training", training, cycles));
  }
  return list;
}

json_t *ct_units_json(const uint64_t *inference, const uint64_t *training, uint64_t cycles) {
  if (!cycles || cycles == CT_NO_CYCLE) return json_null();
  return json_pack("{s:I, s:o}", "cycles", (json_int_t)cycles, "units",
                   ct_units_list(inference, training, cycles));
}

void ct_units_print(FILE *to, const uint64_t *inference, const uint64_t *training,
                    uint64_t cycles) {
  static const char *const queues[] = {"inference", "training"};
  const double percent = cycles ? 100 / (double)cycles : 0;
  fprintf(to, "%-10s %-10s %7s %7s %9s %9s %7s\n", "unit", "queue", "busy", "other", "operands",
          "semaphore", "idle");
  for (unsigned u = 0; u < CT_UNIT_COUNT; ++u) {
    for (unsigned c = 0; c < 2; ++c) {
      const uint64_t *counters = c ? training : inference;
      if (!counters) continue;
      const struct ct_unit_time t = ct_unit_time(u, counters);
      fprintf(to, "%-10s %-10s %6.2f%% %6.2f%% %8.2f%% %8.2f%% %6.2f%%\n",
              c && inference ? "" : units[u].name, queues[c], percent * (double)t.busy,
              percent * (double)t.other, percent * (double)t.operands,
              percent * (double)t.semaphore, percent * (double)ct_unit_idle(&t, cycles));
    }
  }
}
