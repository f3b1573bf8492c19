/* SPDX-License-Identifier: Apache-2.0 */
#include "ct_sdram_mem.h"

#include <stdlib.h>

#include "ct_sdram_100_2_dut.h"
#include "ct_sdram_100_3_dut.h"
#include "ct_sdram_25_2_dut.h"
#include "ct_sdram_25_3_dut.h"
#include "ct_sdram_30_2_dut.h"
#include "ct_sdram_30_3_dut.h"
#include "ct_sdram_35_2_dut.h"
#include "ct_sdram_35_3_dut.h"
#include "ct_sdram_40_2_dut.h"
#include "ct_sdram_40_3_dut.h"
#include "ct_sdram_60_2_dut.h"
#include "ct_sdram_60_3_dut.h"
#include "ct_sdram_80_2_dut.h"
#include "ct_sdram_80_3_dut.h"
#include "ct_sdram_glue.h"

enum { MHZ = 1000000, POWER_UP_US = 210 };

struct model {
  uint32_t mhz, cas;
  void *(*open)(void);
  void (*outputs)(void *dut, struct ct_axi_out *axi, struct ct_sdram_pins *pins);
  void (*tick)(void *dut, const struct ct_axi_in *axi, uint16_t dq);
  void (*close)(void *dut);
};

struct ct_sdram_mem {
  const struct model *model;
  void *dut;
  ct_sdram_chip *chip;
};

/* ---- Models -------------------------------------------------------------------------------- */

#define OPEN(name)                                                      \
  static void *name##_open_any(void) {                                  \
    name##_dut *d = name##_new(NULL);                                   \
    *d->s_axi_awvalid_i = *d->s_axi_wvalid_i = *d->s_axi_arvalid_i = 0; \
    name##_reset(d, 2);                                                 \
    return d;                                                           \
  }
#define BOTH(X, mhz) X(mhz, 2) X(mhz, 3)
#define MODELS(X) \
  BOTH(X, 25)     \
  BOTH(X, 30)     \
  BOTH(X, 35)     \
  BOTH(X, 40)     \
  BOTH(X, 60)     \
  BOTH(X, 80)     \
  BOTH(X, 100)
#define FUNCTIONS(mhz, cas)             \
  CT_SDRAM_GLUE(ct_sdram_##mhz##_##cas) \
  OPEN(ct_sdram_##mhz##_##cas)
#define ROW(mhz, cas)                    \
  {mhz,                                  \
   cas,                                  \
   ct_sdram_##mhz##_##cas##_open_any,    \
   ct_sdram_##mhz##_##cas##_outputs_any, \
   ct_sdram_##mhz##_##cas##_tick_any,    \
   ct_sdram_##mhz##_##cas##_close_any},

MODELS(FUNCTIONS)
static const struct model models[] = {MODELS(ROW)};

static const struct model *find(uint64_t clock_hz, uint64_t cas) {
  for (size_t i = 0; i < sizeof models / sizeof *models; ++i)
    if ((uint64_t)models[i].mhz * MHZ == clock_hz && models[i].cas == cas) return &models[i];
  return NULL;
}

bool ct_sdram_mem_exists(uint64_t clock_hz, uint64_t cas) {
  return find(clock_hz, cas) != NULL;
}

/* ---- The memory ---------------------------------------------------------------------------- */

/* Nobody asks for anything until the chip can answer, as a board's reset has it. */
static void power_up(ct_sdram_mem *mem) {
  const struct ct_axi_in idle = {.bready = true, .rready = true};
  struct ct_axi_out out;
  for (uint32_t i = 0; i < POWER_UP_US * mem->model->mhz; ++i)
    ct_sdram_mem_cycle(mem, &idle, &out);
}

ct_sdram_mem *ct_sdram_mem_new(uint64_t clock_hz, uint64_t cas) {
  const struct model *model = find(clock_hz, cas);
  ct_sdram_mem *mem = model ? calloc(1, sizeof *mem) : NULL;
  if (!mem) return NULL;
  const struct ct_sdram_chip_config chip = ct_sdram_chip_default(MHZ / model->mhz);
  mem->model = model;
  mem->chip = ct_sdram_chip_new(&chip);
  mem->dut = mem->chip ? model->open() : NULL;
  if (!mem->dut) {
    ct_sdram_mem_free(mem);
    return NULL;
  }
  power_up(mem);
  return mem;
}

void ct_sdram_mem_free(ct_sdram_mem *mem) {
  if (!mem) return;
  if (mem->dut) mem->model->close(mem->dut);
  ct_sdram_chip_free(mem->chip);
  free(mem);
}

uint8_t *ct_sdram_mem_data(ct_sdram_mem *mem) {
  return ct_sdram_chip_data(mem->chip);
}

void ct_sdram_mem_cycle(ct_sdram_mem *mem, const struct ct_axi_in *in, struct ct_axi_out *out) {
  struct ct_sdram_pins pins;
  mem->model->outputs(mem->dut, out, &pins);
  mem->model->tick(mem->dut, in, ct_sdram_chip_cycle(mem->chip, &pins));
}

struct ct_sdram_counts ct_sdram_mem_counts(const ct_sdram_mem *mem) {
  return ct_sdram_chip_counts(mem->chip);
}

const char *ct_sdram_mem_error(const ct_sdram_mem *mem) {
  return ct_sdram_chip_fault(mem->chip);
}
