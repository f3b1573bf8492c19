/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ct_sdram between an AXI master and a chip: random or long streams of bursts, every byte compared.
 * A run ends with a fault, as a sentence, or with none, so that broken copies of the controller can
 * be run, too.
 */
#ifndef SDRAM_BENCH_H
#define SDRAM_BENCH_H

#include "ct_tb.h"

#include "host/transports/sim/ct_sdram_glue.h"

/* A model of ct_sdram, whatever it is built with. */
struct sdram_dut {
  void *dut;
  /* One cycle: the outputs before the edge, then the edge with these inputs. */
  void (*outputs)(void *dut, struct ct_axi_out *axi, struct ct_sdram_pins *pins);
  void (*tick)(void *dut, const struct ct_axi_in *axi, uint16_t dq);
  void (*close)(void *dut);
  bool (*failed)(void *dut); /* whether an assertion has failed */
  uint32_t clock_ps;
  unsigned read_delay; /* cycles between the chip's data and dq_i */
};

struct sdram_traffic {
  unsigned read_percent;     /* of the bursts */
  unsigned stall_percent[5]; /* AR, R, AW, W, B */
  unsigned wild_percent;     /* bursts outside the memory */
  uint32_t rows;             /* rows of each bank that are used, 0: all */
  uint32_t beats;            /* of each burst; 0: 1 to 17 at random */
  bool sequential;           /* one burst behind the other, else anywhere */
  bool strobes;              /* some bytes of a beat are not written */
  unsigned bursts;
};

struct sdram_result {
  const char *fault; /* NULL: none. Valid until the next run. */
  uint64_t cycles;   /* from the first beat to the last */
  uint64_t beats;
  uint64_t longest_read, longest_write; /* cycles from AR to the last R, from AW to B */
};

/* chip: NULL for the default one at this clock. Closes the model. */
struct sdram_result sdram_run(struct sdram_dut dut, const struct ct_sdram_chip_config *chip,
                              const struct sdram_traffic *traffic, uint64_t stream);

#endif
