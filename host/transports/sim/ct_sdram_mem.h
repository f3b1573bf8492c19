/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of a board behind a simulated core: the RTL's SDRAM controller, Verilated, and a chip
 * of 32 MB at its pins, cycle by cycle. A call of ct_sdram_mem_cycle() is one as of
 * ct_axi_mem_cycle(); both ends of the bus are registers, so nothing passes within a cycle.
 */
#ifndef CT_SDRAM_MEM_H
#define CT_SDRAM_MEM_H

#include "host/transports/sim/ct_axi_mem.h"
#include "host/transports/sim/ct_sdram_chip.h"

enum { CT_SDRAM_MIB = 32 };

typedef struct ct_sdram_mem ct_sdram_mem;

/* Whether there is a controller for this clock and CAS latency; the clocks there are, in MHz, for
 * people. */
bool ct_sdram_mem_exists(uint64_t clock_hz, uint64_t cas);
#define CT_SDRAM_CLOCKS "25, 30, 35, 40, 60, 80 or 100"

/* As it is after power-up, all bytes zeros. NULL if there is no such controller, or no memory for
 * it. */
ct_sdram_mem *ct_sdram_mem_new(uint64_t clock_hz, uint64_t cas);
/* Accepts NULL. */
void ct_sdram_mem_free(ct_sdram_mem *mem);

/* The bytes of the chip, to read and write at any time between cycles. */
uint8_t *ct_sdram_mem_data(ct_sdram_mem *mem);

void ct_sdram_mem_cycle(ct_sdram_mem *mem, const struct ct_axi_in *in, struct ct_axi_out *out);

/* Commands the chip has been given since power-up. */
struct ct_sdram_counts ct_sdram_mem_counts(const ct_sdram_mem *mem);

/* The first rule of the chip that the controller has broken, as a sentence, or NULL. */
const char *ct_sdram_mem_error(const ct_sdram_mem *mem);

#endif
