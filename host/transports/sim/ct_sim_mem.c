/* SPDX-License-Identifier: Apache-2.0 */
#include "ct_sim_mem.h"

#include <inttypes.h>
#include <stdio.h>

#include "coltrain/coltrain.h" /* the errors transports return */

enum { MHZ = 1000000 };

static bool is_sdram(const struct ct_uri *u) {
  return ct_uri_is(u, "memory", "sdram");
}

/* The first of the options that only the plain memory has, or only SDRAM; NULL: none is given. */
static const char *foreign(const struct ct_uri *u) {
  static const char *const plain[] = {"latency", "bandwidth", "stall", "seed"};
  if (!is_sdram(u)) return ct_uri_given(u, "cas") ? "cas" : NULL;
  for (size_t i = 0; i < sizeof plain / sizeof *plain; ++i)
    if (ct_uri_given(u, plain[i])) return plain[i];
  return NULL;
}

int ct_sim_mem_check(const struct ct_uri *u, uint64_t *mib, char *why, size_t whysize) {
  const char *key = foreign(u);
  *mib = ct_uri_number(u, "dram");
  if (key) {
    snprintf(why, whysize, "option %s= is of memory=%s", key, is_sdram(u) ? "plain" : "sdram");
    return CT_ERR_ARG;
  }
  if (!is_sdram(u)) return CT_OK;
  if (ct_uri_given(u, "dram") && *mib != CT_SDRAM_MIB) {
    snprintf(why, whysize, "memory=sdram has %d MiB: leave dram= out", CT_SDRAM_MIB);
    return CT_ERR_ARG;
  }
  *mib = CT_SDRAM_MIB;
  if (ct_sdram_mem_exists(ct_uri_number(u, "clock"), ct_uri_number(u, "cas"))) return CT_OK;
  snprintf(why, whysize, "memory=sdram runs at clock=%s", CT_SDRAM_CLOCKS);
  return CT_ERR_ARG;
}

bool ct_sim_mem_open(struct ct_sim_mem *mem, const struct ct_uri *u) {
  const uint64_t hz = ct_uri_number(u, "clock"), cas = ct_uri_number(u, "cas");
  const uint32_t bandwidth = (uint32_t)ct_uri_number(u, "bandwidth");
  const struct ct_axi_mem_config config = {.bytes = (size_t)ct_uri_number(u, "dram") << 20,
                                           .latency = (uint32_t)ct_uri_number(u, "latency"),
                                           .read_bytes = bandwidth,
                                           .write_bytes = bandwidth,
                                           .stall_percent = (uint32_t)ct_uri_number(u, "stall"),
                                           .seed = ct_uri_number(u, "seed")};
  *mem = (struct ct_sim_mem){.plain = NULL};
  if (is_sdram(u)) {
    mem->sdram = ct_sdram_mem_new(hz, cas);
    snprintf(mem->text, sizeof mem->text, "SDRAM, 16 bit, %u MHz, CAS latency %u",
             (unsigned)(hz / MHZ), (unsigned)cas);
    return mem->sdram;
  }
  mem->plain = ct_axi_mem_new(&config);
  snprintf(mem->text, sizeof mem->text, "plain, %u cycles, %u bytes a cycle", config.latency,
           bandwidth);
  return mem->plain;
}

void ct_sim_mem_close(struct ct_sim_mem *mem) {
  ct_axi_mem_free(mem->plain);
  ct_sdram_mem_free(mem->sdram);
}

uint8_t *ct_sim_mem_data(struct ct_sim_mem *mem) {
  return mem->sdram ? ct_sdram_mem_data(mem->sdram) : ct_axi_mem_data(mem->plain);
}

void ct_sim_mem_reset(struct ct_sim_mem *mem, struct ct_axi_out *out) {
  const struct ct_axi_in idle = {.bready = true, .rready = true};
  if (mem->sdram)
    ct_sdram_mem_cycle(mem->sdram, &idle, out);
  else
    ct_axi_mem_reset(mem->plain, out);
}

bool ct_sim_mem_cycle(struct ct_sim_mem *mem, const struct ct_axi_in *in, struct ct_axi_out *out) {
  if (!mem->sdram) return ct_axi_mem_cycle(mem->plain, in, out);
  ct_sdram_mem_cycle(mem->sdram, in, out);
  return true;
}

const char *ct_sim_mem_error(struct ct_sim_mem *mem) {
  const char *who =
      mem->sdram ? "the SDRAM controller broke a rule of its chip" : "the core broke an AXI rule";
  const char *what = mem->sdram ? ct_sdram_mem_error(mem->sdram) : ct_axi_mem_error(mem->plain);
  if (!what) return NULL;
  if (!mem->fault[0]) snprintf(mem->fault, sizeof mem->fault, "%s: %s", who, what);
  return mem->fault;
}

struct ct_sim_mem_counts ct_sim_mem_counts(const struct ct_sim_mem *mem) {
  if (!mem->sdram) return (struct ct_sim_mem_counts){.refused = ct_axi_mem_refuses(mem->plain)};
  const struct ct_sdram_counts c = ct_sdram_mem_counts(mem->sdram);
  return (struct ct_sim_mem_counts){.refreshes = c.refreshes, .rows = c.rows};
}
