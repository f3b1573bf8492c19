/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A DRAM behind the core's AXI4 port, cycle by cycle: the memory of the simulated device and of the
 * benches. It knows nothing of Verilator: its wires are two plain structs.
 *
 * One call per clock cycle, before the rising edge:
 *
 *     copy the core's AXI outputs into `in`; ct_axi_mem_cycle(mem, &in, &out); copy `out` to the
 *     core's AXI inputs; clock.
 *
 * This asks of the core that its AXI outputs come from registers (no path from its AXI inputs).
 *
 * Timing. A read's first beat is offered `latency` cycles after its AR was taken, a write's answer
 * `latency` cycles after its last beat. Each direction moves read_bytes (write_bytes) a cycle: a
 * beat of 16 bytes holds the bus for 16 / read_bytes cycles. With stall_percent > 0 each handshake
 * is refused with that probability in every cycle, beats of the two IDs mix and answers overtake
 * one another; within an ID order is always kept. Written bytes show in memory when B is taken, not
 * before, so that a load that does not wait for a store's answer reads old bytes.
 */
#ifndef CT_AXI_MEM_H
#define CT_AXI_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host/transports/ct_transport.h" /* enum ct_fault */

#ifdef __cplusplus
extern "C" {
#endif

struct ct_axi_mem_config {
  size_t bytes;           /* size of the memory; bursts beyond it answer DECERR */
  uint32_t latency;       /* cycles, at least 1; 0 = 60 */
  uint32_t read_bytes;    /* bytes a cycle, 1..16; 0 = 16 */
  uint32_t write_bytes;   /* the same for writes */
  uint32_t stall_percent; /* 0..99 */
  uint64_t seed;          /* of the stalls */
  uint32_t max_beats;     /* longest legal burst; 0 = 17 */
  uint32_t max_reads;     /* most read bursts of an ID under way; 0 = 8 */
  uint32_t max_writes;    /* the same for writes; 0 = 16 */
};

/* What the core drives. Fields of a channel count only while its valid is high, so they need not be
 * copied otherwise. */
struct ct_axi_in {
  bool awvalid, wvalid, bready, arvalid, rready;
  uint8_t awid, awlen, awsize, awburst;
  uint8_t arid, arlen, arsize, arburst;
  uint64_t awaddr, araddr;
  bool wlast;
  uint16_t wstrb;
  uint32_t wdata[4]; /* least significant word first */
};

/* What the memory drives. */
struct ct_axi_out {
  bool awready, wready, bvalid, arready, rvalid, rlast;
  uint8_t bid, bresp, rid, rresp;
  uint32_t rdata[4];
};

struct ct_axi_mem_stats {
  uint64_t reads, writes;           /* bursts taken */
  uint64_t read_beats, write_beats; /* beats moved */
};

typedef struct ct_axi_mem ct_axi_mem;

/* NULL if there is no memory for it. The contents start as zeros. */
ct_axi_mem *ct_axi_mem_new(const struct ct_axi_mem_config *config);
/* Accepts NULL. */
void ct_axi_mem_free(ct_axi_mem *mem);

/* The bytes themselves, to read and write at any time between cycles. */
uint8_t *ct_axi_mem_data(ct_axi_mem *mem);
size_t ct_axi_mem_size(const ct_axi_mem *mem);

/* One cycle, see above. Returns whether anything in `out` may have changed since the last call (the
 * caller may then skip copying it). */
bool ct_axi_mem_cycle(ct_axi_mem *mem, const struct ct_axi_in *in, struct ct_axi_out *out);

/* Drops everything under way and drives idle outputs: for a reset of the core. Memory, armed faults
 * and statistics stay. */
void ct_axi_mem_reset(ct_axi_mem *mem, struct ct_axi_out *out);

/* Whether a stall kept something from happening in the last cycle: a beat or an answer that could
 * have been offered, an address or a beat that could have been taken. */
bool ct_axi_mem_refuses(const ct_axi_mem *mem);

/* Cycles seen. */
uint64_t ct_axi_mem_now(const ct_axi_mem *mem);

/* Arms a fault (as ct_transport.h says; at most 8 at a time, returns false beyond). A read or write
 * fault is used up by the burst it hits. CT_FAULT_NONE also lets hung bursts be answered. */
bool ct_axi_mem_fault(ct_axi_mem *mem, enum ct_fault kind, uint64_t addr);

/* Bursts taken and not yet answered in full, of that ID. */
unsigned ct_axi_mem_pending(const ct_axi_mem *mem, unsigned id);

const struct ct_axi_mem_stats *ct_axi_mem_stats(const ct_axi_mem *mem);

/* The first violation of AXI's rules by the core, as a sentence; NULL if there was none. */
const char *ct_axi_mem_error(const ct_axi_mem *mem);

#ifdef __cplusplus
}
#endif

#endif
