/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Networks under load by the coltrain command: every answer, one run for each request, batches that
 * the host forms or, of perceptrons, the device, on emu: and on simulated cores, the same bytes
 * each time, and a sentence for what goes wrong.
 */
#include "ct_tb.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli_run.h"
#include "coltrain/network.h"

#define EMU " --device emu:"
#define SIM " --device sim:core=16x8"

enum { MOST_ROWS = 64 };

/* A network of two layers that was never trained, with names of its own. */
static ct_graph *describe_small(void) {
  ct_graph *g;
  assert_int_equal(ct_graph_create(&g), CT_OK);
  const struct ct_shape shape[] = {{2, {4, 64}}, {2, {40, 64}}, {2, {10, 40}}};
  int in[2] = {ct_graph_tensor(g, &(struct ct_new_tensor){.name = "pixels", .shape = shape[0]})};
  for (int i = 1; i <= 2; ++i) {
    in[1] = ct_graph_tensor(
        g, &(struct ct_new_tensor){
               .shape = shape[i], .role = CT_ROLE_WEIGHT, .initial = CT_INITIAL_HE});
    in[0] = ct_graph_add(g, &(struct ct_new_node){.op = "linear", .inputs = in, .input_count = 2});
    if (i == 1)
      in[0] = ct_graph_add(g, &(struct ct_new_node){.op = "relu", .inputs = in, .input_count = 1});
  }
  if (ct_graph_result(g, in[0]) < 0 || ct_graph_check(g) < 0) fail_msg("%s", ct_graph_error(g));
  return g;
}

/* A perceptron as a network, whose runs have four rows. */
static ct_graph *describe_perceptron(void) {
  ct_graph *g;
  assert_int_equal(ct_graph_create(&g), CT_OK);
  assert_int_equal(ct_graph_mlp(g, (const uint32_t[]){64, 20, 10}, 2, 4, false), CT_OK);
  if (ct_graph_check(g) < 0) fail_msg("%s", ct_graph_error(g));
  return g;
}

static void save(ct_graph *g, uint64_t seed, const char *path) {
  ct_device *dev;
  ct_network *net;
  assert_int_equal(ct_open("emu:", &dev), CT_OK);
  assert_int_equal(ct_network_create(dev, g, NULL, &net), CT_OK);
  assert_int_equal(ct_network_draw(net, seed), CT_OK);
  assert_int_equal(ct_network_save(net, path), CT_OK);
  ct_network_free(net);
  ct_graph_free(g);
  ct_close(dev);
}

static int open_all(void **state) {
  const int status = cli_make_folder(state);
  save(describe_small(), 4, cli_path("small.ctm"));
  save(describe_perceptron(), 1, cli_path("perceptron.ctm"));
  return status;
}

static void check_answers(json_t *root, int requests) {
  assert_int_equal(cli_number_at(root, "serve.requests"), requests);
  assert_int_equal(cli_number_at(root, "serve.completed"), requests);
  assert_int_equal(cli_number_at(root, "serve.wrong"), 0);
}

static int batches_of(json_t *root, size_t size) {
  return (int)json_integer_value(json_array_get(cli_at(root, "serve.batches"), size - 1));
}

/* ---- Answers ---- */

/* A run for each request, whatever waits. */
static void a_run_for_each_request(void **state) {
  (void)state;
  json_t *root = cli_expect_json(cli_line(
      "serve-bench --model lenet5 --requests 9 --json - --csv %s" EMU, cli_path("lenet5.csv")));
  check_answers(root, 9);
  assert_int_equal(batches_of(root, 1), 9);
  assert_int_equal(cli_number_at(root, "max_batch"), 1);
  assert_string_equal(
      json_string_value(json_object_get(json_array_get(cli_at(root, "models"), 0), "layers")),
      "lenet5");
  json_decref(root);
  char *rows = cli_slurp(cli_path("lenet5.csv"), NULL);
  assert_int_equal(cli_lines_of(rows), 10);
  free(rows);
}

/* Runs of 1, 2 and 3 rows, some of them with a row to spare, have the bits of a row alone. */
static void batches_have_the_same_bits(void **state) {
  (void)state;
  json_t *root = cli_expect_json(
      "serve-bench --model lenet5 --batching fixed --max-batch 3 --requests 8 --json -" EMU);
  check_answers(root, 8);
  assert_int_equal(batches_of(root, 3), 2);
  assert_int_equal(batches_of(root, 2), 1);
  json_decref(root);
  root = cli_expect_json(
      cli_line("serve-bench --model %s --batching adaptive --requests 45 --json -" EMU,
               cli_path("small.ctm")));
  check_answers(root, 45);
  assert_int_equal(batches_of(root, 16), 2);
  assert_int_equal(batches_of(root, 13), 1);
  json_decref(root);
}

/* With normalisation; of a file that training has written; several at once. */
static void several_networks(void **state) {
  (void)state;
  char train[512];
  snprintf(train, sizeof train,
           "train --model lenet5 --data random-28x28x1 --samples 16 --epochs 1 --save %s" EMU,
           cli_path("trained.ctm"));
  free(cli_expect(0, "", train));
  json_t *root =
      cli_expect_json(cli_line("serve-bench --model %s --model resnet8 --model %s "
                               "--batching none --max-batch 2 --requests 12 --json -" EMU,
                               cli_path("trained.ctm"), cli_path("small.ctm")));
  check_answers(root, 12);
  assert_int_equal(json_array_size(cli_at(root, "models")), 3);
  assert_true(batches_of(root, 2) > 0);
  json_decref(root);
}

/* ---- Time ---- */

struct row {
  unsigned model, batch;
  uint64_t scheduled, arrive, start, end;
};

static size_t read_rows(const char *path, struct row *row) {
  size_t n = 0;
  char *rows = cli_slurp(path, NULL);
  for (const char *p = rows; (p = strchr(p, '\n')) && *++p; ++n) {
    struct row *r = &row[n];
    assert_true(n < MOST_ROWS);
    assert_int_equal(sscanf(p, "%*u,%u,%*u,%" SCNu64 ",%" SCNu64 ",%" SCNu64 ",%" SCNu64 ",%u",
                            &r->model, &r->scheduled, &r->arrive, &r->start, &r->end, &r->batch),
                     6);
    assert_true(r->arrive == r->scheduled && r->start > r->arrive && r->end > r->start);
  }
  free(rows);
  return n;
}

/* What a run prints, which is the same when it is made again. */
static json_t *expect_same(const char *args) {
  char *first = cli_expect(0, "", args), *again = cli_expect(0, "", args);
  assert_string_equal(first, again);
  json_t *root = json_loads(first, 0, NULL);
  assert_non_null(root);
  free(first);
  free(again);
  return root;
}

/* On the small core: figures, the search for the highest load, and the same bytes again. */
static void served_by_the_clock(void **state) {
  (void)state;
  char args[512], csv[256];
  snprintf(csv, sizeof csv, "%s", cli_path("first.csv"));
  snprintf(args, sizeof args,
           "serve-bench --model %s --requests 40 --load 0.6 --bound 60000 --deadline 60000 "
           "--json - --csv",
           cli_path("small.ctm"));
  char *first = cli_expect(0, "", cli_line("%s %s" SIM, args, csv));
  char *again = cli_expect(0, "", cli_line("%s %s" SIM, args, cli_path("again.csv")));
  assert_string_equal(first, again);
  cli_assert_same_files(csv, cli_path("again.csv"));
  json_t *root = json_loads(first, 0, NULL);
  struct row row[MOST_ROWS];
  assert_non_null(root);
  check_answers(root, 40);
  assert_int_equal(cli_number_at(root, "serve.deadline_misses"), 0);
  assert_int_equal(cli_number_at(root, "serve.deadline_unknown"), 0);
  assert_true(cli_number_at(root, "serve.p99_cycles") > 0);
  assert_true(cli_number_at(root, "capacity.cycles_per_request") > 0);
  assert_true(cli_number_at(root, "sustainable.load") > 0.6);
  assert_int_equal(read_rows(csv, row), 40);
  for (size_t i = 1; i < 40; ++i)
    assert_true(row[i].batch == 1 && row[i].start >= row[i - 1].end);
  json_decref(root);
  free(first);
  free(again);
}

/* A batch goes when it is full or its oldest request has waited, not before. */
static void waits_for_others(void **state) {
  (void)state;
  enum { WAIT = 30000, MOST = 3 };
  struct row row[MOST_ROWS];
  char args[512];
  snprintf(args, sizeof args,
           "serve-bench --model %s --requests 40 --load 0.5 --batching fixed --max-batch %d "
           "--max-wait %d --json - --csv %s" SIM,
           cli_path("small.ctm"), MOST, WAIT, cli_path("fixed.csv"));
  json_t *root = expect_same(args);
  check_answers(root, 40);
  assert_true(cli_number_at(root, "serve.mean_batch") > 1.5);
  json_decref(root);
  const size_t n = read_rows(cli_path("fixed.csv"), row);
  for (size_t i = 0; i < n; i += row[i].batch) {
    assert_in_range(row[i].batch, 1, MOST);
    assert_true(i + row[i].batch <= n);
    const struct row *last = &row[i + row[i].batch - 1];
    assert_true(last->start == row[i].start && last->end == row[i].end);
    assert_true(last->arrive < row[i].start);
    if (row[i].batch < MOST) assert_true(row[i].start >= row[i].arrive + WAIT);
  }
}

/* Batches that wait as long as the deadline allows, and keep it. */
static void keeps_deadlines(void **state) {
  (void)state;
  json_t *root =
      expect_same(cli_line("serve-bench --model %s --requests 40 --load 0.1 --batching "
                           "adaptive --max-batch 8 --deadline 40000 --json -" SIM,
                           cli_path("small.ctm")));
  check_answers(root, 40);
  assert_int_equal(cli_number_at(root, "serve.deadline_misses"), 0);
  assert_true(cli_number_at(root, "serve.mean_batch") > 1.5);
  assert_true(cli_number_at(root, "serve.max_cycles") > 20000);
  assert_true(cli_number_at(root, "safe_deadline_cycles") ==
              cli_number_at(root, "margin_cycles") + cli_number_at(root, "least_deadline_cycles"));
  json_decref(root);
  char *out = cli_expect(0, "",
                         cli_line("serve-bench --model %s --requests 10 --batching adaptive "
                                  "--deadline 100" SIM,
                                  cli_path("small.ctm")));
  assert_non_null(strstr(out, "cannot hold: a request alone takes"));
  free(out);
}

/* Convolutions, of two networks in turn. */
static void convolutions_on_the_small_core(void **state) {
  (void)state;
  json_t *root =
      cli_expect_json(cli_line("serve-bench --model lenet5 --model %s --requests 6 --batching "
                               "fixed --max-batch 2 --max-wait 1000 --json -" SIM,
                               cli_path("small.ctm")));
  check_answers(root, 6);
  assert_true(cli_number_at(root, "serve.p99_cycles") > 0);
  json_decref(root);
}

/* ---- Perceptrons ---- */

/* As a network it goes into the batches of the device, in the cycles of a model of its widths:
 * where things lie in memory costs a burst here and there. */
static void a_perceptron_goes_to_the_batcher(void **state) {
  (void)state;
  static const char args[] =
      "--batching adaptive --deadline 9000 --requests 60 --load 0.7 --json -" SIM;
  double cycles[2];
  for (unsigned i = 0; i < 2; ++i) {
    json_t *root = cli_expect_json(
        cli_line("serve-bench --model %s %s", i ? "64-20-10" : cli_path("perceptron.ctm"), args));
    check_answers(root, 60);
    assert_int_equal(cli_number_at(root, "max_batch"), 16);
    assert_true(cli_number_at(root, "serve.mean_batch") > 2);
    assert_true(
        json_is_true(json_object_get(json_array_get(cli_at(root, "models"), 0), "weights_stay")));
    cycles[i] = cli_number_at(root, "capacity.cycles_per_request");
    json_decref(root);
  }
  assert_true(cycles[0] < 1.02 * cycles[1] && cycles[1] < 1.02 * cycles[0]);
}

/* Beside one of widths; as many requests as to those, unless it is said. */
static void perceptrons_of_both_kinds(void **state) {
  (void)state;
  json_t *root = cli_expect_json(
      cli_line("serve-bench --model %s --model 30-12-5 --json -" EMU, cli_path("perceptron.ctm")));
  check_answers(root, 2000);
  json_decref(root);
}

/* ---- What goes wrong ---- */

static void without_time(void **state) {
  (void)state;
  json_t *root = cli_expect_json(cli_line(
      "serve-bench --model %s --requests 20 --deadline 5000 --json -" EMU, cli_path("small.ctm")));
  assert_int_equal(cli_number_at(root, "serve.deadline_unknown"), 20);
  assert_true(json_is_null(cli_at(root, "serve.deadline_misses")));
  json_decref(root);
}

static void stopped(void **state) {
  (void)state;
  struct cli_run run =
      cli_run_signal("serve-bench --model lenet5 --requests 100000" EMU, 1500, SIGINT);
  if (run.status != 1 || !strstr(run.out, ", 0 wrong")) fail_msg("%d %s", run.status, run.err);
  cli_run_free(&run);
}

static void refused(void **state) {
  (void)state;
  FILE *file = fopen(cli_path("broken.ctm"), "wb");
  assert_non_null(file);
  fwrite("COLTRAIN\x02\0\0", 1, 12, file);
  assert_int_equal(fclose(file), 0);
  free(cli_expect(0, "",
                  cli_line("train --epochs 1 --samples 64 --save %s" EMU, cli_path("mlp.ctm"))));
  free(cli_expect(1, "no network lenet6: lenet5, resnet8", "serve-bench --model lenet6" EMU));
  free(
      cli_expect(0, "", cli_line("serve-bench --model %s --requests 20" EMU, cli_path("mlp.ctm"))));
  free(cli_expect(1, "Is a directory", "serve-bench --model ." EMU));
  free(cli_expect(1, "cut short", cli_line("serve-bench --model %s" EMU, cli_path("broken.ctm"))));
  free(cli_expect(1, "give one kind", "serve-bench --model lenet5 --model 64-10" EMU));
  free(cli_expect(
      1, "give one kind",
      cli_line("serve-bench --model %s --model lenet5" EMU, cli_path("perceptron.ctm"))));
  free(cli_expect(2, "8 models at most",
                  "serve-bench --model lenet5 --model lenet5 --model lenet5 --model lenet5 --model "
                  "lenet5 --model lenet5 --model lenet5 --model lenet5 --model lenet5"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_run_for_each_request),
      cmocka_unit_test(batches_have_the_same_bits),
      cmocka_unit_test(several_networks),
      CT_PLAIN_TEST(served_by_the_clock),
      cmocka_unit_test(waits_for_others),
      cmocka_unit_test(keeps_deadlines),
      cmocka_unit_test(convolutions_on_the_small_core),
      cmocka_unit_test(a_perceptron_goes_to_the_batcher),
      cmocka_unit_test(perceptrons_of_both_kinds),
      cmocka_unit_test(without_time),
      cmocka_unit_test(stopped),
      cmocka_unit_test(refused),
  };
  return cmocka_run_group_tests(tests, open_all, cli_remove_folder);
}
