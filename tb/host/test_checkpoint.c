/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Training that is killed (SIGKILL) at random moments and resumed gives the file of training that
 * was never disturbed, byte for byte, and whenever it was killed, the file that is there is whole.
 */
#include "ct_tb.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli_run.h"
#include "coltrain/coltrain.h"

/* Many short epochs of a model whose file is large, so that saving takes its share of the time. */
#define EPOCHS 24
#define TRAIN                                                                               \
  "train --samples 48 --layers 64-400-200-10 --batch 16 --lr 0.04 --momentum 0.8 --seed 3 " \
  "--device emu:"
#define RESUME "train --samples 48 --device emu:"

/* How many epochs the model in the file has had; it must be whole. */
static uint64_t epochs_in(const char *path) {
  ct_device *dev;
  ct_model *model;
  struct ct_model_info info;
  assert_int_equal(ct_open("emu:", &dev), CT_OK);
  if (ct_model_load(dev, path, &model)) fail_msg("%s", ct_last_error(dev));
  assert_int_equal(ct_model_info(model, &info), CT_OK);
  ct_model_free(model);
  ct_close(dev);
  return info.epochs;
}

static void killed_training_resumes(void **state) {
  (void)state;
  char line[1024];
  char whole[256], part[256];
  ct_rng rng = ct_rng_make(1);
  snprintf(whole, sizeof whole, "%s", cli_path("whole.ctm"));
  snprintf(part, sizeof part, "%s", cli_path("part.ctm"));
  struct timespec from, to;
  clock_gettime(CLOCK_MONOTONIC, &from);
  snprintf(line, sizeof line, TRAIN " --epochs %d --save %s", EPOCHS, whole);
  free(cli_expect(0, "", line));
  clock_gettime(CLOCK_MONOTONIC, &to);
  unsigned ms =
      (unsigned)((to.tv_sec - from.tv_sec) * 1000 + (to.tv_nsec - from.tv_nsec) / 1000000);
  assert_int_equal(epochs_in(whole), EPOCHS);
  uint64_t done = 0;
  int kills = 0, gains = 0;
  for (int turn = 0; turn < 60; ++turn) {
    const bool begun = access(part, F_OK) == 0;
    snprintf(line, sizeof line, "%s --epochs %d --save %s%s%s", begun ? RESUME : TRAIN, EPOCHS,
             part, begun ? " --resume " : "", begun ? part : "");
    /* The last turns are left alone, so that this ends on a slow machine. */
    const unsigned wait = turn < 45 ? ms / 16 + ct_rng_below(&rng, ms / 4 + 1) + 1 : 0;
    struct cli_run run = cli_run_signal(line, wait, SIGKILL);
    if (run.status != 0 && run.status != 128 + SIGKILL) fail_msg("%s: %s", line, run.err);
    kills += run.status != 0;
    const bool finished = run.status == 0;
    cli_run_free(&run);
    if (access(part, F_OK) == 0) {
      const uint64_t now = epochs_in(part);
      assert_true(now >= done);
      gains += now > done;
      done = now;
    }
    if (!finished && done < EPOCHS) continue;
    if (kills >= 3) break;
    /* The machine has become faster since the undisturbed run was timed: once more, with haste. */
    unlink(part);
    done = 0;
    ms = ms / 2 + 1;
  }
  print_message("killed %d times, %d of the runs got further\n", kills, gains);
  assert_int_equal(done, EPOCHS);
  assert_true(kills >= 3);
  cli_assert_same_files(whole, part);
}

/* ---- A save that fails on the way ---- */

static const uint32_t widths[] = {64, 300, 10};

static void failed_save_leaves_the_old_file(void **state) {
  (void)state;
  ct_device *dev;
  ct_model *model, *again;
  char path[256], beside[300], copy[256];
  snprintf(path, sizeof path, "%s", cli_path("kept.ctm"));
  snprintf(copy, sizeof copy, "%s", cli_path("copy.ctm"));
  snprintf(beside, sizeof beside, "%s.new", path);
  assert_int_equal(ct_open("emu:", &dev), CT_OK);
  assert_int_equal(ct_model_create(dev, widths, 2, 9, &model), CT_OK);
  assert_int_equal(ct_model_save(model, path), CT_OK);
  assert_int_equal(ct_model_save(model, copy), CT_OK);
  /* The disk is full after some bytes, wherever that is. */
  struct rlimit old, small;
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
  signal(SIGXFSZ, SIG_IGN);
  ct_model_set_epochs(model, 7);
  for (rlim_t limit = 0; limit < 180000; limit += 17001) {
    small = (struct rlimit){.rlim_cur = limit, .rlim_max = old.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    const int err = ct_model_save(model, path);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_int_equal(err, CT_ERR_IO);
    if (!strstr(ct_last_error(dev), path)) fail_msg("%s", ct_last_error(dev));
    cli_assert_same_files(path, copy);
    assert_int_equal(access(beside, F_OK), -1);
  }
  /* What an earlier crash left beside is no obstacle, nor is it ever read. */
  FILE *f = fopen(beside, "w");
  assert_non_null(f);
  fputs("half a model", f);
  fclose(f);
  assert_int_equal(ct_model_save(model, path), CT_OK);
  assert_int_equal(access(beside, F_OK), -1);
  assert_int_equal(epochs_in(path), 7);
  /* A link stays a link, and its file is replaced. */
  char link[256];
  snprintf(link, sizeof link, "%s", cli_path("link.ctm"));
  assert_int_equal(symlink(path, link), 0);
  ct_model_set_epochs(model, 8);
  assert_int_equal(ct_model_save(model, link), CT_OK);
  struct stat st;
  assert_int_equal(lstat(link, &st), 0);
  assert_true(S_ISLNK(st.st_mode));
  assert_int_equal(epochs_in(path), 8);
  /* A device is written to, not replaced by a file. */
  assert_int_equal(ct_model_save(model, "/dev/null"), CT_OK);
  assert_int_equal(stat("/dev/null", &st), 0);
  assert_true(S_ISCHR(st.st_mode));
  if (access("/dev/full", W_OK) == 0)
    assert_int_equal(ct_model_save(model, "/dev/full"), CT_ERR_IO);
  assert_int_equal(ct_model_load(dev, link, &again), CT_OK);
  ct_model_free(again);
  ct_model_free(model);
  ct_close(dev);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(killed_training_resumes),
      cmocka_unit_test(failed_save_leaves_the_old_file),
  };
  return cmocka_run_group_tests(tests, cli_make_folder, cli_remove_folder);
}
