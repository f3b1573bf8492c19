/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CT_SDRAM_GLUE(NAME): the wires of the Verilated ct_sdram that is called NAME as plain structs,
 * for the simulator and for benches. NAME_dut.h is included before.
 */
#ifndef CT_SDRAM_GLUE_H
#define CT_SDRAM_GLUE_H

#include <string.h>

#include "host/transports/sim/ct_axi_mem.h" /* the wires of AXI */
#include "host/transports/sim/ct_sdram_chip.h"

/* NAME_outputs_any: what it drives before an edge, all of it from registers. NAME_tick_any: the
 * edge, with these inputs. */
#define CT_SDRAM_GLUE(name)                                                                     \
  static void name##_outputs_any(void *v, struct ct_axi_out *axi, struct ct_sdram_pins *pins) { \
    const name##_dut *d = v;                                                                    \
    axi->awready = *d->s_axi_awready_o;                                                         \
    axi->wready = *d->s_axi_wready_o;                                                           \
    axi->arready = *d->s_axi_arready_o;                                                         \
    axi->bvalid = *d->s_axi_bvalid_o;                                                           \
    axi->bid = *d->s_axi_bid_o;                                                                 \
    axi->bresp = *d->s_axi_bresp_o;                                                             \
    axi->rvalid = *d->s_axi_rvalid_o;                                                           \
    axi->rid = *d->s_axi_rid_o;                                                                 \
    axi->rresp = *d->s_axi_rresp_o;                                                             \
    axi->rlast = *d->s_axi_rlast_o;                                                             \
    memcpy(axi->rdata, d->s_axi_rdata_o, sizeof axi->rdata);                                    \
    const struct ct_sdram_pins p = {.cke = *d->sdram_cke_o,                                     \
                                    .cs_n = *d->sdram_cs_no,                                    \
                                    .ras_n = *d->sdram_ras_no,                                  \
                                    .cas_n = *d->sdram_cas_no,                                  \
                                    .we_n = *d->sdram_we_no,                                    \
                                    .dq_oe = *d->sdram_dq_oe_o,                                 \
                                    .ba = *d->sdram_ba_o,                                       \
                                    .dqm = *d->sdram_dqm_o,                                     \
                                    .a = *d->sdram_a_o,                                         \
                                    .dq = *d->sdram_dq_o};                                      \
    *pins = p;                                                                                  \
  }                                                                                             \
  static void name##_tick_any(void *v, const struct ct_axi_in *axi, uint16_t dq) {              \
    name##_dut *d = v;                                                                          \
    *d->s_axi_awvalid_i = axi->awvalid;                                                         \
    *d->s_axi_awid_i = axi->awid;                                                               \
    *d->s_axi_awaddr_i = axi->awaddr;                                                           \
    *d->s_axi_awlen_i = axi->awlen;                                                             \
    *d->s_axi_wvalid_i = axi->wvalid;                                                           \
    memcpy(d->s_axi_wdata_i, axi->wdata, sizeof axi->wdata);                                    \
    *d->s_axi_wstrb_i = axi->wstrb;                                                             \
    *d->s_axi_wlast_i = axi->wlast;                                                             \
    *d->s_axi_bready_i = axi->bready;                                                           \
    *d->s_axi_arvalid_i = axi->arvalid;                                                         \
    *d->s_axi_arid_i = axi->arid;                                                               \
    *d->s_axi_araddr_i = axi->araddr;                                                           \
    *d->s_axi_arlen_i = axi->arlen;                                                             \
    *d->s_axi_rready_i = axi->rready;                                                           \
    *d->sdram_dq_i = dq;                                                                        \
    name##_tick(d);                                                                             \
  }                                                                                             \
  static void name##_close_any(void *v) {                                                       \
    name##_free(v);                                                                             \
  }

#endif
