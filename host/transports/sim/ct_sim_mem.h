/* SPDX-License-Identifier: Apache-2.0 */
/* The memory behind a simulated core: the plain one (ct_axi_mem.h), or a board's (ct_sdram_mem.h),
 * as memory= says. */
#ifndef CT_SIM_MEM_H
#define CT_SIM_MEM_H

#include "host/transports/ct_uri.h"
#include "host/transports/sim/ct_axi_mem.h"
#include "host/transports/sim/ct_sdram_mem.h"

struct ct_sim_mem {
  ct_axi_mem *plain; /* one of both is NULL */
  ct_sdram_mem *sdram;
  char text[40];   /* what it is, for people */
  char fault[160]; /* what has gone wrong in it, "" so far */
};

/* MiB that the arguments of sim: ask for; what does not go together is CT_ERR_ARG with a sentence.
 */
int ct_sim_mem_check(const struct ct_uri *u, uint64_t *mib, char *why, size_t whysize);

/* False if there is no memory for it. */
bool ct_sim_mem_open(struct ct_sim_mem *mem, const struct ct_uri *u);
void ct_sim_mem_close(struct ct_sim_mem *mem);

uint8_t *ct_sim_mem_data(struct ct_sim_mem *mem);

/* Drives what an idle memory drives, for the core's reset. */
void ct_sim_mem_reset(struct ct_sim_mem *mem, struct ct_axi_out *out);

/* One cycle; whether anything in `out` may have changed. */
bool ct_sim_mem_cycle(struct ct_sim_mem *mem, const struct ct_axi_in *in, struct ct_axi_out *out);

/* What broke a rule, the core or the controller, as a sentence; NULL: neither. */
const char *ct_sim_mem_error(struct ct_sim_mem *mem);

/* Adds what the last cycle was like: refused by a stall, refreshes and rows so far. */
struct ct_sim_mem_counts {
  uint64_t refused, refreshes, rows;
};
struct ct_sim_mem_counts ct_sim_mem_counts(const struct ct_sim_mem *mem);

#endif
