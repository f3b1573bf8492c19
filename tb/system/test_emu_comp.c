/* SPDX-License-Identifier: Apache-2.0 */
/* LD and ST with Comp on the emulator (ct_comp.h), and a device that has none. */
#include "ct_comp.h"

/* Where there is no arena commands are illegal, and registers read 0. */
static void without(void **state) {
  const struct ct_comp_device *dev = *state;
  for (unsigned none = 0; none < 2; ++none) {
    struct ct_comp *b = ct_comp_open(dev, none ? "compress=0" : "");
    const unsigned ctx = none ? 1 : 0;
    const struct ct_rig_job job = {.prog = &b->prog};
    ct_rig_cwrite(&b->rig, ctx, CT_CREG_ARENA_BASE, 0x10000);
    ct_rig_cwrite(&b->rig, ctx, CT_CREG_ARENA_PAGES, 5);
    assert_int_equal(ct_rig_cread(&b->rig, ctx, CT_CREG_ARENA_BASE), 0);
    assert_int_equal(ct_rig_cread(&b->rig, ctx, CT_CREG_ARENA_PAGES), 0);
    ct_comp_groups(b, CT_OP_ST, 0, 1, 4, 0);
    ct_comp_add(b, CT_OP_END);
    ct_rig_submit(&b->rig, ctx, &job);
    ct_rig_ring(&b->rig, ctx);
    assert_int_equal(ct_rig_reap(&b->rig, ctx, 0).code, CT_DEV_ILLEGAL);
    assert_int_equal(!(ct_rig_read(&b->rig, CT_REG_FEATURES) & CT_FEATURE_COMPRESS), none);
    ct_comp_close(b);
  }
  struct ct_comp *b = ct_comp_open(dev, "");
  ct_rig_cwrite(&b->rig, 1, CT_CREG_ARENA_BASE, 0x123456ff);
  ct_rig_cwrite(&b->rig, 1, CT_CREG_ARENA_PAGES, CT_COMP_PAGES + 1);
  assert_int_equal(ct_rig_cread(&b->rig, 1, CT_CREG_ARENA_BASE), 0x12345600);
  assert_int_equal(ct_rig_cread(&b->rig, 1, CT_CREG_ARENA_PAGES), CT_COMP_PAGES);
  ct_comp_close(b);
}

int main(void) {
  static struct ct_comp_device emu = {"emu", &ct_transport_emu, NULL, "dram=8", 60};
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_prestate(ct_comp_groups_come_back, &emu),
      cmocka_unit_test_prestate(ct_comp_jobs_end_in_errors, &emu),
      cmocka_unit_test_prestate(ct_comp_arenas_are_full, &emu),
      cmocka_unit_test_prestate(ct_comp_what_is_illegal, &emu),
      cmocka_unit_test_prestate(without, &emu),
      cmocka_unit_test_prestate(ct_comp_anything_is_loaded, &emu),
  };
  ct_tb_seed();
  return cmocka_run_group_tests_name("compressed groups", tests, NULL, NULL);
}
