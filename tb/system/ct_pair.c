/* SPDX-License-Identifier: Apache-2.0 */
#include "ct_pair.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "host/transports/sim/ct_sim.h"

const struct ct_core ct_cores[CT_ALL_CORES] = {
    {"16x16", &ct_core_sim, ct_core_sim_error, "dram=8"},
    {"16x8", &ct_core_16x8_sim, ct_core_16x8_sim_error, "dram=8,spm=8192,cols=8,lanes=4"},
    {"16x4", &ct_core_16x4_sim, ct_core_16x4_sim_error,
     "dram=8,spm=4096,cols=4,lanes=4,compress=0"},
};

void ct_pair_open(struct ct_pair *p, const struct ct_core *core, const char *args) {
  char all[256];
  snprintf(all, sizeof all, "dram=%d%s%s", CT_RIG_MIB, *args ? "," : "", args);
  ct_rig_open(&p->rig[0], core->name, core->ops, core->error, all);
  ct_rig_open(&p->rig[1], "emu", &ct_transport_emu, NULL, core->emu_args);
}

void ct_pair_close(struct ct_pair *p) {
  ct_rig_close(&p->rig[0]);
  ct_rig_close(&p->rig[1]);
}

void ct_pair_write(struct ct_pair *p, uint32_t offset, uint32_t value) {
  for (unsigned d = 0; d < 2; ++d)
    ct_rig_write(&p->rig[d], offset, value);
}

void ct_pair_cwrite(struct ct_pair *p, unsigned ctx, uint32_t creg, uint32_t value) {
  for (unsigned d = 0; d < 2; ++d)
    ct_rig_cwrite(&p->rig[d], ctx, creg, value);
}

void ct_pair_mem_write(struct ct_pair *p, uint64_t addr, const void *bytes, size_t size) {
  for (unsigned d = 0; d < 2; ++d)
    assert_int_equal(p->rig[d].ops->mem_write(p->rig[d].self, addr, bytes, size), 0);
}

void ct_pair_submit(struct ct_pair *p, unsigned ctx, const struct ct_rig_job *job) {
  for (unsigned d = 0; d < 2; ++d)
    ct_rig_submit(&p->rig[d], ctx, job);
}

void ct_pair_ring(struct ct_pair *p, unsigned ctx) {
  for (unsigned d = 0; d < 2; ++d)
    ct_rig_ring(&p->rig[d], ctx);
}

void ct_pair_fill_input(struct ct_pair *p, unsigned ctx, ct_rng *rng) {
  uint8_t *bytes = test_malloc(16 * CT_GEN_IN_UNITS);
  ct_gen_input(rng, bytes);
  ct_pair_mem_write(p, ct_rig_addr(ctx, CT_RIG_IN), bytes, 16 * CT_GEN_IN_UNITS);
  test_free(bytes);
}

bool ct_same_out(struct ct_pair *p, unsigned c, const char *when) {
  const size_t size = 16 * CT_GEN_OUT_UNITS;
  uint8_t *bytes = test_malloc(2 * size);
  for (unsigned d = 0; d < 2; ++d)
    p->rig[d].ops->mem_read(p->rig[d].self, ct_rig_addr(c, CT_RIG_OUT), bytes + d * size, size);
  unsigned wrong = 0;
  for (unsigned u = 0; u < CT_GEN_OUT_UNITS; ++u) {
    const uint8_t *core = bytes + 16 * u, *emu = core + size;
    if (!memcmp(core, emu, 16) || wrong++ >= 10) continue;
    printf("context %u, %s: out + %u (unit 0x%" PRIx32 "): core ", c, when, u,
           ct_rig_unit(c, CT_RIG_OUT) + u);
    for (unsigned i = 0; i < 16; ++i)
      printf("%02x", core[i]);
    printf(", emulator ");
    for (unsigned i = 0; i < 16; ++i)
      printf("%02x", emu[i]);
    printf("\n");
  }
  test_free(bytes);
  return wrong == 0;
}

bool ct_same_completions(const struct ct_rig_cpl *core, const struct ct_rig_cpl *emu) {
  const bool same = core->tag == emu->tag && core->code == emu->code && core->addr == emu->addr &&
                    core->version == emu->version && core->rows == emu->rows;
  if (!same)
    printf("core: tag %" PRIu32 " code %" PRIu32 " addr 0x%" PRIx32 " rows %" PRIu32
           "; emulator: tag %" PRIu32 " code %" PRIu32 " addr 0x%" PRIx32 " rows %" PRIu32 "\n",
           core->tag, core->code, core->addr, core->rows, emu->tag, emu->code, emu->addr,
           emu->rows);
  return same;
}

bool ct_same_counters(struct ct_pair *p, bool reads) {
  static const unsigned counters[] = {CT_CNT_JOBS,     CT_CNT_MXU_ROWS, CT_CNT_LD_BEATS,
                                      CT_CNT_ST_BEATS, CT_CNT_CMDS,     CT_CNT_NAN_GROUPS};
  bool same = true;
  for (unsigned c = 0; c < 2; ++c) {
    for (size_t i = 0; i < sizeof counters / sizeof *counters; ++i) {
      if (counters[i] == CT_CNT_LD_BEATS && !reads) continue;
      const uint64_t core = ct_rig_counter(&p->rig[0], c, counters[i]);
      const uint64_t emu = ct_rig_counter(&p->rig[1], c, counters[i]);
      if (core == emu) continue;
      printf("context %u: counter %s: core %" PRIu64 ", emulator %" PRIu64 "\n", c,
             ct_cnt_name(counters[i]), core, emu);
      same = false;
    }
  }
  return same;
}
