/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The coltrain command where things go wrong: outputs that cannot be written, outputs that are
 * inputs, files that are something else, options with any value.
 */
#include "ct_tb.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli_run.h"

#define EMU " --device emu:"
#define LEARN " --samples 160 --layers 64-24-10 --batch 16 --epochs 1" EMU

enum { DRAWS = 160 };

/* ---- Files ---- */

static void write_bytes(const char *path, const void *data, size_t size) {
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(data, 1, size, file), size);
  assert_int_equal(fclose(file), 0);
}

static void write_matrix(const char *path, size_t rows, size_t cols) {
  char header[128];
  float x[1024];
  memset(header, ' ', sizeof header);
  memcpy(header, "\x93NUMPY\x01\x00\x76\x00", 10);
  const int n =
      snprintf(header + 10, sizeof header - 10,
               "{'descr': '<f4', 'fortran_order': False, 'shape': (%zu, %zu), }", rows, cols);
  header[10 + n] = ' ';
  header[sizeof header - 1] = '\n';
  for (size_t i = 0; i < rows * cols; ++i)
    x[i] = (float)i / 64;
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(header, 1, sizeof header, file), sizeof header);
  assert_int_equal(fwrite(x, sizeof *x, rows * cols, file), rows * cols);
  assert_int_equal(fclose(file), 0);
}

/* The folder has matrices, a model, and copies of them to compare with. */
static int set_up(void **state) {
  if (cli_make_folder(state)) return -1;
  setenv("COLTRAIN_RUN_DIR", cli_path("run"), 1);
  write_matrix(cli_path("a.npy"), 8, 16);
  write_matrix(cli_path("a.copy"), 8, 16);
  write_matrix(cli_path("b.npy"), 16, 4);
  write_matrix(cli_path("x.npy"), 3, 64);
  write_matrix(cli_path("x.copy"), 3, 64);
  free(cli_expect(0, "", cli_line("train --save %s" LEARN, cli_path("m.ctm"))));
  free(cli_expect(0, "", cli_line("train --save %s" LEARN, cli_path("m.copy"))));
  return 0;
}

static void inputs_are_not_overwritten(void **state) {
  (void)state;
  char a[256], b[256], folder[256];
  snprintf(a, sizeof a, "%s", cli_path("a.npy"));
  snprintf(b, sizeof b, "%s", cli_path("b.npy"));
  snprintf(folder, sizeof folder, "%s", cli_path(""));
  assert_int_equal(symlink("a.npy", cli_path("link.npy")), 0);
  assert_int_equal(link(a, cli_path("hard.npy")), 0);
  static const char *const names[] = {"a.npy", "./a.npy", "link.npy", "hard.npy", "b.npy"};
  for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
    free(cli_expect(1, "is also the matrix",
                    cli_line("matmul %s %s -o %s%s" EMU, a, b, folder, names[i])));
    free(cli_expect(
        1, "is also the matrix",
        cli_line("matmul %s %s -o %sc.npy --json %s%s" EMU, a, b, folder, folder, names[i])));
  }
  cli_assert_same_files(a, cli_path("a.copy"));
  assert_int_not_equal(access(cli_path("c.npy"), F_OK), 0);
  free(cli_expect(1, "is also --json",
                  cli_line("matmul %s %s -o %snew --json %s./new" EMU, a, b, folder, folder)));
  free(cli_expect(0, "", cli_line("matmul %s %s -o %sc.npy" EMU, a, b, folder)));
  free(cli_expect(0, "",
                  cli_line("matmul %s %s -o %sc.npy" EMU, a, b, folder))); /* its own result */
}

static void models_are_not_overwritten(void **state) {
  (void)state;
  char m[256], x[256];
  snprintf(m, sizeof m, "%s", cli_path("m.ctm"));
  snprintf(x, sizeof x, "%s", cli_path("x.npy"));
  free(cli_expect(1, "--output", cli_line("infer --model %s --input %s --output %s" EMU, m, x, x)));
  free(cli_expect(1, "is also --model",
                  cli_line("infer --model %s --input %s --output %s" EMU, m, x, m)));
  free(cli_expect(1, "is also --json", cli_line("train --save %s --json %s" LEARN, m, m)));
  free(cli_expect(1, "is also --resume", cli_line("train --resume %s --json %s" LEARN, m, m)));
  free(
      cli_expect(1, "is also --report", cli_line("colocate --report %s.1 --csv %s.1" LEARN, m, m)));
  cli_assert_same_files(m, cli_path("m.copy"));
  cli_assert_same_files(x, cli_path("x.copy"));
  /* What goes on from a file replaces it. */
  free(cli_expect(0, "", cli_line("train --resume %s --save %s" LEARN "  --epochs 2", m, m)));
  free(cli_expect(0, "", cli_line("train --save %s" LEARN, m)));
  cli_assert_same_files(m, cli_path("m.copy"));
  mkdir(cli_path("data"), 0700);
  write_bytes(cli_path("data/train-images-idx3-ubyte"), "x", 1);
  free(cli_expect(1, "is also --data",
                  cli_line("train --data %s --save %s" EMU, cli_path("data"),
                           cli_path("data/train-images-idx3-ubyte"))));
}

static void outputs_that_are_none(void **state) {
  (void)state;
  char a[256], b[256];
  snprintf(a, sizeof a, "%s", cli_path("a.npy"));
  snprintf(b, sizeof b, "%s", cli_path("b.npy"));
  free(cli_expect(1, "Is a directory", cli_line("matmul %s %s -o /tmp" EMU, a, b)));
  free(cli_expect(1, "cannot be written: No such file",
                  cli_line("matmul %s %s -o /no/x" EMU, a, b)));
  free(cli_expect(1, "is no file; name one, such as /dev/stdout",
                  cli_line("matmul %s %s -o -" EMU, a, b)));
  free(cli_expect(1, "\"\" is no file", cli_line("matmul %s %s --output=" EMU, a, b)));
  free(cli_expect(1, "is no file", "train --save -" LEARN));
  free(cli_expect(1, "No space left", cli_line("matmul %s %s -o /dev/full" EMU, a, b)));
  struct cli_run train = cli_run("train --save /dev/full" LEARN, 0);
  const char *error = strstr(train.err, "No space left");
  assert_true(train.status == 1 && error);
  assert_null(strstr(error, "epoch")); /* it is the last word */
  cli_run_free(&train);
  free(cli_expect(1, "No space left", "train --json /dev/full" LEARN));
  free(cli_expect(1, "/dev/full: cannot be written",
                  "serve-bench --requests 20 --csv /dev/full" EMU));
  free(cli_expect(1, "/dev/full", "colocate --requests 20 --report /dev/full" LEARN));
}

/* ---- Standard output ---- */

static const char *const speaking[] = {"info" EMU,
                                       "info --list",
                                       "info --list --json",
                                       "--help",
                                       "--version",
                                       "train --help",
                                       "bench --help",
                                       "counters" EMU,
                                       "counters --json -" EMU,
                                       "disasm --matmul 16 16 16",
                                       "train" LEARN,
                                       "train --json -" LEARN,
                                       "colocate --requests 20" LEARN,
                                       "colocate --requests 20 --json -" LEARN,
                                       "serve-bench --requests 20" EMU,
                                       "serve-bench --requests 20 --json -" EMU,
                                       "bench emu --seconds 0.1",
                                       "infer --data digits" EMU};

static int status_of(const char *args, const char *out) {
  int status = 0;
  const pid_t pid = cli_start(args, out, cli_path("err"));
  assert_int_equal(waitpid(pid, &status, 0), pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void what_cannot_be_said_is_said(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof speaking / sizeof *speaking; ++i) {
    for (int closed = 0; closed < 2; ++closed) {
      char args[512];
      const bool infers = !strncmp(speaking[i], "infer", 5);
      snprintf(args, sizeof args, "%s%s%s", speaking[i], infers ? " --model " : "",
               infers ? cli_path("m.ctm") : "");
      const int status = status_of(args, closed ? NULL : "/dev/full");
      char *err = cli_slurp(cli_path("err"), NULL);
      if (status != 1 || !strstr(err, "standard output: cannot be written"))
        fail_msg("coltrain %s, closed %d: status %d: %s", args, closed, status, err);
      free(err);
    }
  }
}

/* A descriptor that is closed is not that of the next file: what is printed does not go into it. */
static void files_are_whole_without_output(void **state) {
  (void)state;
  char args[512];
  snprintf(args, sizeof args, "infer --model %s --input %s --output %s" EMU, cli_path("m.ctm"),
           cli_path("x.npy"), cli_path("y1"));
  assert_int_equal(status_of(args, cli_path("out")), 0);
  snprintf(args, sizeof args, "infer --model %s --input %s --output %s" EMU, cli_path("m.ctm"),
           cli_path("x.npy"), cli_path("y2"));
  assert_int_equal(status_of(args, NULL), 1);
  cli_assert_same_files(cli_path("y1"), cli_path("y2"));
}

/* ---- What is no program, no data ---- */

static void files_that_are_no_programs(void **state) {
  (void)state;
  unsigned char program[96] = {0};
  free(cli_expect(1, "is a NumPy matrix, not a program", cli_line("disasm %s", cli_path("a.npy"))));
  free(cli_expect(1, "is a model, not a program", cli_line("disasm %s", cli_path("m.ctm"))));
  free(cli_expect(1, "is an ELF file, not a program", "disasm /proc/self/exe"));
  free(cli_expect(1, "cannot be read: Is a directory", "disasm /tmp"));
  write_bytes(cli_path("p"), program, 96);
  free(cli_expect(1, "none of its 3 commands is END", cli_line("disasm %s", cli_path("p"))));
  char *out = cli_expect(0, "", cli_line("disasm --force %s", cli_path("p")));
  assert_non_null(strstr(out, "   2  NOP"));
  free(out);
  write_bytes(cli_path("p"), program, 95);
  free(cli_expect(1, "has 95 bytes; a program is", cli_line("disasm %s", cli_path("p"))));
  free(cli_expect(2, "--force is for a file", "disasm --force --matmul 1 2 3"));
}

static void data_sets_name_their_folder(void **state) {
  (void)state;
  mkdir(cli_path("sets"), 0700);
  mkdir(cli_path("sets/fashion-mnist"), 0700);
  setenv("CT_DATASETS", cli_path("sets"), 1);
  free(cli_expect(1, cli_line("%s: has no train-images-idx3-ubyte", cli_path("sets/fashion-mnist")),
                  "train --data fashion-mnist" EMU));
  unsetenv("CT_DATASETS");
  free(cli_expect(1, cli_line("%s: has no data set that is known", cli_path("sets")),
                  cli_line("train --data %s" EMU, cli_path("sets"))));
}

/* ---- Any option, any value ---- */

/* The options of a verb that take a value, from its help. */
static size_t options_of(const char *verb, char names[][32], size_t room) {
  char *help = cli_expect(0, "", cli_line("%s --help", verb));
  size_t n = 0;
  for (const char *at = help; (at = strstr(at, "--")) && n < room; at += 2) {
    const size_t length = strspn(at + 2, "abcdefghijklmnopqrstuvwxyz-");
    if (length && length < 32 && at[2 + length] == '=')
      snprintf(names[n++], 32, "%.*s", (int)length, at + 2);
  }
  free(help);
  return n;
}

/* Whatever is asked for: an end with 0, 1 or 2, and a sentence where that is not 0. */
static void any_option_with_any_value(void **state) {
  (void)state;
  static const struct {
    const char *verb, *rest;
  } verbs[] = {{"info", EMU},
               {"matmul", " %sa.npy %sb.npy -o %sfuzz.npy" EMU},
               {"train", LEARN},
               {"infer", " --model %sm.ctm --data digits" EMU},
               {"colocate", " --requests 10" LEARN},
               {"serve-bench", " --requests 10" EMU},
               {"counters", EMU},
               {"disasm", " --matmul 16 16 16"},
               {"top", " --lines 1"}};
  static const char *const values[] = {"",
                                       "-1",
                                       "nan",
                                       "1e400",
                                       "99999999999999999999",
                                       "x",
                                       "/nonexistent/x",
                                       "/tmp",
                                       "-",
                                       "inf",
                                       "a.npy",
                                       "1,2",
                                       "%s%n",
                                       "64-0-1",
                                       "emu:dram=",
                                       "sim:core=1",
                                       "0",
                                       "0x7",
                                       "1:0",
                                       "--",
                                       "/dev/full",
                                       "\x80\xff"};
  ct_rng rng = ct_rng_make(1);
  unsigned refused = 0;
  char home[256], folder[256];
  assert_non_null(getcwd(home, sizeof home));
  snprintf(folder, sizeof folder, "%s", cli_path("fuzz"));
  mkdir(folder, 0700);
  for (unsigned n = 0; n < DRAWS; ++n) {
    char names[32][32], rest[512], args[1024];
    const unsigned v = ct_rng_below(&rng, sizeof verbs / sizeof *verbs);
    const size_t count = options_of(verbs[v].verb, names, 32);
    const char *value = values[ct_rng_below(&rng, sizeof values / sizeof *values)];
    assert_true(count > 0);
    const char *in = cli_path("");
    snprintf(rest, sizeof rest, verbs[v].rest, in, in, in); /* NOLINT: one of the list above */
    snprintf(args, sizeof args, "%s%s --%s=%s", verbs[v].verb, rest,
             names[ct_rng_below(&rng, (uint32_t)count)], value);
    assert_int_equal(chdir(folder), 0); /* where the files go that are made by chance */
    struct cli_run run = cli_run(args, 0);
    assert_int_equal(chdir(home), 0);
    if (run.status < 0 || run.status > 2 || (run.status && !strstr(run.err, "coltrain")))
      fail_msg("coltrain %s: status %d: %s", args, run.status, run.err);
    refused += run.status != 0;
    cli_run_free(&run);
  }
  print_message("%u of %d refused\n", refused, DRAWS);
  assert_true(refused > DRAWS / 3);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(inputs_are_not_overwritten),
      cmocka_unit_test(models_are_not_overwritten),
      cmocka_unit_test(outputs_that_are_none),
      cmocka_unit_test(what_cannot_be_said_is_said),
      cmocka_unit_test(files_are_whole_without_output),
      cmocka_unit_test(files_that_are_no_programs),
      cmocka_unit_test(data_sets_name_their_folder),
      cmocka_unit_test(any_option_with_any_value),
  };
  return cmocka_run_group_tests(tests, set_up, cli_remove_folder);
}
