/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `coltrain train --sweep`: members are what `coltrain train` makes of the same numbers, the best
 * is kept, the worst leave.
 */
#include "ct_tb.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "cli_run.h"

#define EMU " --device emu:"
#define DATA " --data random-28x28x1 --samples 48"
#define LENET "--model lenet5 --seed 3" DATA EMU

static json_t *member(json_t *root, size_t index) {
  json_t *m = json_array_get(cli_at(root, "members"), index);
  assert_non_null(m);
  return m;
}

static void the_same_alone(void **state) {
  (void)state;
  json_t *all = cli_expect_json("train --epochs 2 --json - " LENET
                                " --sweep lr=0.01,0.05 momentum=0.5,0.9 weight-decay=0.001");
  assert_int_equal(json_array_size(cli_at(all, "members")), 4);
  for (size_t i = 0; i < 4; ++i) {
    json_t *alone = cli_expect_json(
        cli_line("train --epochs 2 --lr %s --momentum %s --weight-decay 0.001 --json - " LENET,
                 i / 2 ? "0.05" : "0.01", i % 2 ? "0.9" : "0.5"));
    assert_true(cli_number_at(member(all, i), "weights_crc32") ==
                cli_number_at(alone, "weights_crc32"));
    assert_int_equal(cli_number_at(member(all, i), "steps"), cli_number_at(alone, "steps"));
    assert_int_equal(cli_number_at(member(all, i), "together"), 4);
    assert_true(cli_number_at(member(all, i), "lr") == (i / 2 ? 0.05 : 0.01));
    json_t *epochs = cli_at(alone, "by_epoch"), *own = cli_at(member(all, i), "by_epoch");
    for (size_t e = 0; e < 2; ++e)
      assert_true(cli_number_at(json_array_get(epochs, e), "test_accuracy") ==
                  cli_number_at(json_array_get(own, e), "test_accuracy"));
    json_decref(alone);
  }
  assert_int_equal(cli_number_at(all, "batches"), 6); /* written once for all */
  assert_true(json_is_null(cli_at(all, "cycles")));
  json_decref(all);
}

/* All digits that were given are there, and no more. */
static void values_are_as_given(void **state) {
  (void)state;
  json_t *all = cli_expect_json(
      "train --epochs 1 --samples 64 --batch 16 --momentum 0.7 --json - "
      "--sweep lr=0.123456789 seed=4294967295,16777217" EMU);
  assert_true(cli_number_at(member(all, 0), "lr") == 0.123456789);
  assert_true(cli_number_at(member(all, 0), "momentum") == 0.7);
  assert_true(cli_number_at(member(all, 0), "seed") == 4294967295.0);
  assert_true(cli_number_at(member(all, 1), "seed") == 16777217.0);
  json_decref(all);
}

/* The file of the best is that of a network, which can be trained on. */
static void the_best_is_kept(void **state) {
  (void)state;
  json_t *all = cli_expect_json(
      cli_line("train --epochs 1 --json - --save %s --samples 200 --sweep lr=0.2,0.001,0.1" EMU,
               cli_path("best.ctm")));
  const size_t best = (size_t)cli_number_at(all, "best") - 1;
  for (size_t i = 0; i < 3; ++i)
    assert_true(cli_number_at(member(all, i), "test_accuracy") <=
                cli_number_at(member(all, best), "test_accuracy"));
  json_t *more = cli_expect_json(
      cli_line("train --epochs 2 --json - --samples 200 --data digits --resume %s" EMU,
               cli_path("best.ctm")));
  assert_int_equal(cli_number_at(more, "steps"), 7);
  free(cli_expect(0, "", cli_line("infer --model %s --data digits" EMU, cli_path("best.ctm"))));
  json_decref(more);
  json_decref(all);
}

/* Of 9 a third after an epoch of 9, and a third of these after 3. */
static void halving(void **state) {
  size_t count[10] = {0};
  (void)state;
  json_t *all = cli_expect_json(
      "train --epochs 9 --json - --samples 100 --halving 3 "
      "--sweep lr=0.2,0.1,0.01 optimiser=sgd,adam,adamw" EMU);
  for (size_t i = 0; i < 9; ++i) {
    json_t *m = member(all, i);
    const size_t epochs = (size_t)cli_number_at(m, "epochs");
    assert_int_equal(json_array_size(cli_at(m, "by_epoch")), epochs);
    ++count[epochs];
  }
  assert_int_equal(count[1], 6);
  assert_int_equal(count[3], 2);
  assert_int_equal(count[9], 1);
  assert_int_equal(cli_number_at(member(all, (size_t)cli_number_at(all, "best") - 1), "epochs"), 9);
  json_decref(all);
}

/* Of other batch sizes each member sees the same data. */
static void batches(void **state) {
  (void)state;
  json_t *all =
      cli_expect_json("train --epochs 2 --json - --samples 96 --sweep batch=8,32 seed=1,2" EMU);
  for (size_t i = 0; i < 4; ++i) {
    assert_int_equal(cli_number_at(member(all, i), "epochs"), 2);
    assert_int_equal(cli_number_at(member(all, i), "steps"), i < 2 ? 24 : 6);
  }
  assert_true(cli_number_at(member(all, 0), "weights_crc32") !=
              cli_number_at(member(all, 1), "weights_crc32"));
  json_decref(all);
}

/* Rates that nothing survives, beside one that learns. */
static void one_diverges(void **state) {
  (void)state;
  json_t *all = cli_expect_json(cli_line(
      "train --epochs 3 --json - --samples 200 --save %s --sweep lr=1000,0.0001 weight-decay=1" EMU,
      cli_path("survivor.ctm")));
  assert_string_equal(json_string_value(cli_at(member(all, 0), "state")), "diverged");
  assert_true(json_is_integer(cli_at(member(all, 0), "ended_by")));
  assert_string_equal(json_string_value(cli_at(member(all, 1), "state")), "ready");
  assert_int_equal(cli_number_at(all, "best"), 2);
  json_decref(all);
  free(cli_expect(1, "all have diverged",
                  "train --epochs 3 --samples 200 --sweep lr=1000,999 weight-decay=1" EMU));
}

/* A perceptron, too: what a model learns has the same losses to the last digit. */
static void perceptrons(void **state) {
  (void)state;
  json_t *all = cli_expect_json(
      "train --epochs 2 --samples 320 --json - --sweep lr=0.1,0.2 momentum=0.7" EMU);
  for (size_t i = 0; i < 2; ++i) {
    json_t *alone = cli_expect_json(
        cli_line("train --epochs 2 --samples 320 --lr 0.%u --json -" EMU, (unsigned)i + 1));
    for (size_t e = 0; e < 2; ++e) {
      json_t *want = json_array_get(cli_at(alone, "by_epoch"), e),
             *own = json_array_get(cli_at(member(all, i), "by_epoch"), e);
      assert_true(cli_number_at(want, "loss") == cli_number_at(own, "loss"));
      assert_true(cli_number_at(want, "test_accuracy") == cli_number_at(own, "test_accuracy"));
    }
    json_decref(alone);
  }
  json_decref(all);
}

/* Activations in less, as `coltrain train` keeps them. */
static void kept(void **state) {
  (void)state;
  json_t *all = cli_expect_json("train --epochs 1 --keep hbfp8 --json - " LENET " --sweep lr=0.05");
  json_t *alone = cli_expect_json("train --epochs 1 --keep hbfp8 --lr 0.05 --json - " LENET);
  assert_true(cli_number_at(member(all, 0), "weights_crc32") ==
              cli_number_at(alone, "weights_crc32"));
  assert_true(cli_number_at(json_array_get(cli_at(alone, "by_epoch"), 0), "test_accuracy") ==
              cli_number_at(member(all, 0), "test_accuracy"));
  json_decref(alone);
  json_decref(all);
}

static void lines_and_cycles(void **state) {
  (void)state;
  char *text = cli_expect(0, "", "train --epochs 1 --samples 64 --sweep lr=0.1,0.2" EMU);
  assert_non_null(strstr(text, "epoch 1/1  member 2  lr 0.2  loss "));
  assert_non_null(strstr(text, "best: member "));
  assert_null(strchr(text, '\33'));
  free(text);
  json_t *all = cli_expect_json(
      "train --epochs 1 --samples 64 --layers 64-16-10 --json - --sweep lr=0.1,0.2 --device sim:");
  assert_true(cli_number_at(all, "cycles") > 0);
  assert_true(cli_number_at(all, "models_steps_per_mcycle") > 0);
  json_decref(all);
}

/* Somebody looks on. */
static void watched(void **state) {
  (void)state;
  assert_int_equal(setenv("COLTRAIN_RUN_DIR", cli_path("run"), 1), 0);
  const pid_t pid = cli_start("train --epochs 100000 --sweep lr=0.1,0.2" EMU, cli_path("w.out"),
                              cli_path("w.err"));
  char *text = NULL;
  for (int i = 0; i < 100 && !text; ++i) {
    struct cli_run top = cli_run("top --lines 2", 0);
    if (!top.status) text = strdup(top.out);
    cli_run_free(&top);
    cli_sleep_ms(100);
  }
  kill(pid, SIGKILL);
  waitpid(pid, NULL, 0);
  assert_non_null(text);
  if (!strstr(text, "2 trainings, epoch ") || !strstr(text, "  loss ")) fail_msg("%s", text);
  free(text);
  unsetenv("COLTRAIN_RUN_DIR");
}

static void stopped(void **state) {
  (void)state;
  struct cli_run run = cli_run(
      cli_line("train --epochs 100000 --save %s --sweep lr=0.1,0.2" EMU, cli_path("stopped.ctm")),
      1500);
  assert_int_equal(run.status, 1);
  assert_non_null(strstr(run.out, "saved to "));
  cli_run_free(&run);
}

static void refused(void **state) {
  (void)state;
  free(cli_expect(2, "does not begin with what can be swept", "train --sweep foo=1"));
  free(cli_expect(2, "write lr=A,B,C", "train --sweep lr"));
  free(cli_expect(2, "lr \"x\" is no number", "train --sweep lr=0.1,x"));
  free(cli_expect(2, "batch \"1.5\" is no whole number", "train --sweep batch=1.5"));
  free(cli_expect(2, "none of sgd, adam, adamw", "train --sweep optimiser=sdg"));
  free(cli_expect(2, "given twice", "train --sweep lr=0.1 lr=0.2"));
  free(cli_expect(2, "one argument too many", "train lr=0.1"));
  free(cli_expect(2, "give one of them", "train --resume x --sweep lr=0.1"));
  free(cli_expect(2, "--halving is for --sweep", "train --halving 2"));
  free(cli_expect(1, "more than 256 combinations",
                  "train --sweep lr=1,2,3,4,5,6,7,8,9 momentum=0,0.1,0.2,0.3,0.4,0.5 "
                  "seed=1,2,3,4,5" EMU));
  free(cli_expect(1, "does not fit the network",
                  "train --model lenet5 --data digits --sweep lr=0.1" EMU));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_same_alone),
      cmocka_unit_test(values_are_as_given),
      cmocka_unit_test(the_best_is_kept),
      cmocka_unit_test(halving),
      cmocka_unit_test(batches),
      cmocka_unit_test(one_diverges),
      cmocka_unit_test(kept),
      cmocka_unit_test(perceptrons),
      cmocka_unit_test(lines_and_cycles),
      cmocka_unit_test(watched),
      cmocka_unit_test(stopped),
      cmocka_unit_test(refused),
  };
  return cmocka_run_group_tests(tests, cli_make_folder, cli_remove_folder);
}
