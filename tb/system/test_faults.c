/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fault campaign: single bits of the scratchpad that turn over while both contexts work
 * (ct_flips.h), single bits of compressed groups in memory (ct_damage.h), and random commands in
 * the training context while inference is watched (ct_commands.h).
 *
 * CT_FLIPS=N (100): flips in the scratchpad. CT_GROUPS=N (a quarter of these): flips in memory.
 * CT_COMMANDS=N (10000): random commands, half on each core. `make campaign` runs a hundred times
 * as many. CT_DATA=FOLDER: the figures go there as in docs/data, with CT_RTL as the commit of the
 * RTL; what is asked for 0 times has no figures.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "ct_commands.h"
#include "ct_damage.h"
#include "ct_flips.h"

static unsigned long count_from(const char *name, unsigned long otherwise) {
  const char *text = getenv(name);
  return text ? strtoul(text, NULL, 0) : otherwise;
}

static double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static FILE *data_file(const char *name, const char *mode) {
  const char *folder = getenv("CT_DATA");
  char path[512];
  if (!folder) return NULL;
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, mode);
  if (!file) fail_msg("%s cannot be written", path);
  return file;
}

static const char *rtl_commit(void) {
  const char *commit = getenv("CT_RTL");
  return commit ? commit : "";
}

static void commands_data(const struct ct_core *core, const struct ct_commands_result *r) {
  const bool first = core == ct_cores;
  FILE *file = data_file("faults-commands.csv", first ? "w" : "a");
  if (!file) return;
  if (first) ct_commands_csv_head(file);
  ct_commands_csv_row(file, core->name, r, rtl_commit());
  assert_int_equal(fclose(file), 0);
}

static const struct ct_core watched = {"watched 16x16", &ct_core_watch_sim, ct_core_watch_sim_error,
                                       "dram=8"};

static void flips_data(const struct ct_flips_result *r) {
  FILE *file = data_file("faults-flips.csv", "w");
  if (!file) return;
  ct_flips_csv(file, r, rtl_commit());
  assert_int_equal(fclose(file), 0);
  file = data_file("faults-flips-run.csv", "w");
  ct_flips_csv_run(file, r, rtl_commit());
  assert_int_equal(fclose(file), 0);
}

static void damage_data(const struct ct_damage_result *r) {
  FILE *file = data_file("faults-groups.csv", "w");
  if (!file) return;
  ct_damage_csv(file, r, rtl_commit());
  assert_int_equal(fclose(file), 0);
}

static void flipped_bits(void **state) {
  const struct ct_flips setup = {.core = &watched,
                                 .look = ct_core_watch_look,
                                 .count = count_from("CT_FLIPS", 100),
                                 .stream = 1};
  struct ct_flips_result r;
  (void)state;
  ct_tb_seed();
  const double start = seconds();
  ct_flips_run(&setup, &r);
  ct_flips_print(&r);
  printf("%.1f s\n", seconds() - start);
  if (setup.count) flips_data(&r);
  assert_int_equal(r.wrong, 0);
  assert_int_equal(r.flips, setup.count);
}

static void damaged_groups(void **state) {
  const struct ct_damage setup = {.core = &watched,
                                  .count = count_from("CT_GROUPS", count_from("CT_FLIPS", 100) / 4),
                                  .stream = 4};
  struct ct_damage_result r;
  (void)state;
  ct_tb_seed();
  const double start = seconds();
  ct_damage_run(&setup, &r);
  ct_damage_print(&r);
  printf("%.1f s\n", seconds() - start);
  if (setup.count) damage_data(&r);
  assert_int_equal(r.wrong, 0);
  assert_int_equal(r.flips, setup.count);
}

static void random_commands(void **state) {
  const struct ct_commands setup = {
      .core = *state,
      .count = count_from("CT_COMMANDS", 10000) / CT_CORES,
      .stream = 2 + (uint64_t)((const struct ct_core *)*state - ct_cores)};
  struct ct_commands_result r;
  ct_tb_seed();
  const double start = seconds();
  ct_commands_run(&setup, &r);
  ct_commands_print(&r);
  if (setup.count) commands_data(*state, &r);
  printf("%.1f s\n", seconds() - start);
  assert_int_equal(r.wrong, 0);
  assert_true(r.submitted >= setup.count && r.dispatched >= setup.count);
  if (setup.count < 5000) return;
  assert_true(r.policies >= 8 && r.code[CT_DEV_SKIPPED] > 3 && r.code[CT_DEV_DESCRIPTOR] > 0);
  assert_true(r.code[CT_DEV_CANCELLED] > 0 && r.code[CT_DEV_COMP] > 0);
  assert_true(r.compressed > r.submitted / 20);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(flipped_bits),
      cmocka_unit_test(damaged_groups),
      cmocka_unit_test_prestate(random_commands, (void *)&ct_cores[0]),
      cmocka_unit_test_prestate(random_commands, (void *)&ct_cores[1]),
  };
  return cmocka_run_group_tests_name("faults", tests, NULL, NULL);
}
