/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Networks of layers by the coltrain command: trained, saved, resumed, served while they are
 * trained on emu: and on a simulated core, and a sentence for what goes wrong.
 */
#include "ct_tb.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli_run.h"
#include "coltrain/network.h"
#include "ct_device.h"
#include "ct_file.h"

#define EMU " --device emu:"
/* Images of LeNet-5's size that need no package. */
#define DATA " --data random-28x28x1 --samples 48"
#define LENET "--model lenet5 --seed 3" DATA EMU

static void resumed_bit_for_bit(void **state) {
  (void)state;
  json_t *whole = cli_expect_json(
      cli_line("train --epochs 2 --save %s --json - " LENET, cli_path("whole.ctm")));
  json_decref(cli_expect_json(
      cli_line("train --epochs 1 --save %s --json - " LENET, cli_path("part.ctm"))));
  json_t *rest =
      cli_expect_json(cli_line("train --epochs 2 --resume %s --save %s --json -" DATA EMU,
                               cli_path("part.ctm"), cli_path("part.ctm")));
  cli_assert_same_files(cli_path("whole.ctm"), cli_path("part.ctm"));
  assert_int_equal(cli_number_at(whole, "steps"), 6);
  assert_int_equal(cli_number_at(rest, "steps"), 3);
  assert_true(cli_number_at(whole, "weights_crc32") == cli_number_at(rest, "weights_crc32"));
  assert_string_equal(json_string_value(cli_at(whole, "layers")), "lenet5");
  assert_true(cli_number_at(whole, "loss_last") < cli_number_at(whole, "loss_first"));
  json_decref(whole);
  json_decref(rest);
  free(cli_expect(0, "",
                  cli_line("infer --model %s --data random-28x28x1" EMU, cli_path("whole.ctm"))));
  char *text = cli_expect(0, "", cli_line("explain %s" EMU, cli_path("whole.ctm")));
  assert_non_null(strstr(text, "sgd"));
  free(text);
}

/* An update from two steps, of which an epoch has three: the file is written in the middle. */
static void accumulated(void **state) {
  (void)state;
  json_t *whole = cli_expect_json(
      cli_line("train --epochs 2 --accumulate 2 --save %s --json - " LENET, cli_path("w2.ctm")));
  json_t *part = cli_expect_json(
      cli_line("train --epochs 1 --accumulate 2 --save %s --json - " LENET, cli_path("p2.ctm")));
  /* Other samples: the epoch begins with run 5, the next step with run 6. */
  json_t *other = cli_expect_json(
      cli_line("train --epochs 2 --resume %s --json - --samples 80 --data random-28x28x1" EMU,
               cli_path("p2.ctm")));
  assert_int_equal(cli_number_at(other, "steps"), 4);
  json_decref(other);
  json_t *rest =
      cli_expect_json(cli_line("train --epochs 2 --resume %s --save %s --json -" DATA EMU,
                               cli_path("p2.ctm"), cli_path("p2.ctm")));
  cli_assert_same_files(cli_path("w2.ctm"), cli_path("p2.ctm"));
  json_t *const all[] = {whole, part, rest};
  for (int i = 0; i < 3; ++i) {
    assert_int_equal(cli_number_at(all[i], "accumulate"), 2);
    assert_int_equal(cli_number_at(all[i], "steps"), i ? 3 : 6);
  }
  assert_true(cli_number_at(whole, "weights_crc32") == cli_number_at(rest, "weights_crc32"));
  char *text = cli_expect(0, "", cli_line("explain %s" EMU, cli_path("w2.ctm")));
  assert_non_null(strstr(text, "accumulate"));
  free(text);
  json_t *beside = cli_expect_json(cli_line(
      "colocate --requests 5 --epochs 1 --model %s --json -" DATA EMU, cli_path("w2.ctm")));
  assert_int_equal(cli_number_at(beside, "accumulate"), 2);
  json_decref(beside);
  free(cli_expect(1, "--accumulate is for networks", "train --accumulate 2" EMU));
  free(cli_expect(2, "accumulate", "train --model lenet5 --accumulate 0" EMU));
  free(cli_expect(2, "accumulate", "train --model lenet5 --accumulate 65537" EMU));
  free(cli_expect(
      1, "--accumulate, --keep and --memory out",
      cli_line("train --epochs 9 --accumulate 2 --resume %s" DATA EMU, cli_path("w2.ctm"))));
  for (int i = 0; i < 3; ++i)
    json_decref(all[i]);
}

static void check_served(json_t *root, int requests) {
  assert_int_equal(cli_number_at(root, "serve.completed"), requests);
  assert_int_equal(cli_number_at(root, "serve.lost"), 0);
  assert_int_equal(cli_number_at(root, "serve.wrong"), 0);
  assert_true(cli_number_at(root, "serve.accuracy_last") >= 0);
}

/* Training beside requests leaves what training alone does; the model is saved and served. */
static void served_while_trained(void **state) {
  (void)state;
  json_t *train = cli_expect_json("train --epochs 2 --json - " LENET);
  json_t *root = cli_expect_json(
      cli_line("colocate --epochs 2 --requests 20 --save %s --json - " LENET, cli_path("c.ctm")));
  check_served(root, 20);
  assert_true(cli_number_at(root, "train.weights_crc32") == cli_number_at(train, "weights_crc32"));
  assert_int_equal(json_array_size(cli_at(root, "versions")), 3);
  json_t *again = cli_expect_json(
      cli_line("colocate --requests 5 --epochs 1 --report %s --model %s --json -" DATA EMU,
               cli_path("c.html"), cli_path("c.ctm")));
  char *page = cli_slurp(cli_path("c.html"), NULL);
  assert_non_null(strstr(page, "updates as its file says"));
  free(page);
  check_served(again, 5);
  assert_true(cli_at(again, "lr") && json_is_null(cli_at(again, "lr")));
  assert_int_equal(cli_number_at(again, "batch"), 16);
  json_decref(train);
  json_decref(again);
  json_decref(root);
}

/* With normalisation, whose statistics are published, too. */
static void a_residual_network(void **state) {
  (void)state;
  json_t *root = cli_expect_json(
      "colocate --model resnet8 --samples 8 --batch 4 --epochs 2 --requests 6 --json -" EMU);
  check_served(root, 6);
  assert_string_equal(json_string_value(cli_at(root, "data")), "random-32x32x3");
  json_decref(root);
}

/* A graph with its updates as a file. */
static void save_graph(ct_graph *g, const char *path, uint32_t mantissa) {
  const struct ct_optimise how = {.schedule = {.rate = 0.1}, .momentum = 0.9};
  ct_device *dev;
  ct_network *net;
  assert_int_equal(ct_open("emu:", &dev), CT_OK);
  assert_int_equal(ct_graph_optimise(g, ct_graph_find(g, "loss"), &how), CT_OK);
  ct_graph_tensor(
      g, &(struct ct_new_tensor){.name = "unread", .role = CT_ROLE_WEIGHT, .shape = {1, {5}}});
  assert_int_equal(ct_graph_check(g), CT_OK);
  const struct ct_network_options options = {.mantissa = mantissa};
  assert_int_equal(ct_network_create(dev, g, &options, &net), CT_OK);
  assert_int_equal(ct_network_draw(net, 4), CT_OK);
  assert_int_equal(ct_network_save(net, path), CT_OK);
  ct_network_free(net);
  ct_graph_free(g);
  ct_close(dev);
}

/* A small network for data of 64 numbers and ten classes. Nothing reads one of its weights, so that
 * it has no place on the device. */
static void save_small(const char *path, uint32_t mantissa) {
  ct_graph *g;
  assert_int_equal(ct_graph_create(&g), CT_OK);
  assert_int_equal(ct_graph_mlp(g, (const uint32_t[]){64, 16, 10}, 2, 16, true), CT_OK);
  save_graph(g, path, mantissa);
}

static int node(ct_graph *g, const char *op, const char *output, const int in[2]) {
  const int out =
      ct_graph_tensor(g, &(struct ct_new_tensor){.name = output, .role = CT_ROLE_ACTIVATION});
  return ct_graph_add(
      g,
      &(struct ct_new_node){
          .op = op, .name = output, .inputs = in, .input_count = in[1] ? 2 : 1, .outputs = &out});
}

/* The same with dropout. */
static void save_dropout(const char *path) {
  const struct ct_shape shape[] = {{2, {16, 64}}, {2, {10, 64}}, {2, {16, 10}}};
  ct_graph *g;
  assert_int_equal(ct_graph_create(&g), CT_OK);
  const int x = ct_graph_tensor(g, &(struct ct_new_tensor){.name = "x", .shape = shape[0]});
  const int w = ct_graph_tensor(
      g, &(struct ct_new_tensor){
             .name = "w", .shape = shape[1], .role = CT_ROLE_WEIGHT, .initial = CT_INITIAL_HE});
  const int y = ct_graph_tensor(
      g, &(struct ct_new_tensor){.name = "y", .shape = shape[2], .role = CT_ROLE_LABEL});
  const int kept = node(g, "dropout", "kept", (const int[]){x, 0});
  const int logits = node(g, "linear", "logits", (const int[]){kept, w});
  const int loss = node(g, "cross_entropy", "loss", (const int[]){logits, y});
  if (ct_graph_result(g, logits) < 0 || ct_graph_result(g, loss) < 0)
    fail_msg("%s", ct_graph_error(g));
  save_graph(g, path, 8);
}

/* Steps with dropout, which the device takes one after the other: on the simulated core the same
 * weights as on emu:, where each has ended before the next is submitted. */
static void dropout(void **state) {
  (void)state;
  char run[512];
  save_dropout(cli_path("dropout.ctm"));
  snprintf(run, sizeof run, "%s --data digits --samples 64 --epochs 2 --json - --device",
           cli_path("dropout.ctm"));
  json_t *emu = cli_expect_json(cli_line("train --resume %s emu:", run));
  json_t *sim = cli_expect_json(cli_line("train --resume %s sim:", run));
  json_t *served = cli_expect_json(cli_line("colocate --requests 10 --model %s sim:", run));
  const double want = cli_number_at(emu, "weights_crc32");
  assert_true(cli_number_at(sim, "weights_crc32") == want);
  check_served(served, 10);
  json_decref(served);
  json_decref(sim);
  json_decref(emu);
}

/* On simulated cores, with times: the same weights as on emu:, whatever is served meanwhile. */
static void simulated(void **state) {
  (void)state;
  static const char *const cores[] = {"sim:", "sim:core=16x8"};
  char run[512];
  save_small(cli_path("small.ctm"), 8);
  snprintf(run, sizeof run,
           "colocate --model %s --data digits --samples 64 --epochs 2 --requests 40 --json - "
           "--device",
           cli_path("small.ctm"));
  json_t *emu = cli_expect_json(cli_line("%s emu:", run));
  for (size_t i = 0; i < 2; ++i) {
    json_t *root = cli_expect_json(cli_line("%s %s", run, cores[i]));
    check_served(root, 40);
    assert_int_equal(cli_number_at(root, "serve_alone.wrong"), 0);
    assert_int_equal(cli_number_at(root, "serve_alone.completed"), 40);
    assert_true(cli_number_at(root, "train.weights_crc32") ==
                cli_number_at(emu, "train.weights_crc32"));
    assert_true(cli_number_at(root, "ratio.p99") > 0.9);
    const double share = cli_number_at(root, "ratio.train_throughput");
    assert_true(share > 0 && share < 1.1);
    json_decref(root);
  }
  json_decref(emu);
}

/* A run of `coltrain load` with that network. */
static const char *load_of(const char *network) {
  FILE *file = fopen(cli_path("run.json"), "w");
  assert_non_null(file);
  fprintf(file,
          "{\"kind\": \"capacity\", \"networks\": [\"%s\", \"64-16-10\"], \"requests\": 40, "
          "\"batching\": \"adaptive\", \"device\": \"sim:core=16x8\"}",
          network);
  assert_int_equal(fclose(file), 0);
  return cli_line("load %s", cli_path("run.json"));
}

/* The device's batcher takes a perceptron from a file, beside one of widths. */
static void in_the_devices_batches(void **state) {
  (void)state;
  char path[256];
  save_small(cli_path("small.ctm"), 8);
  snprintf(path, sizeof path, "%s", cli_path("small.ctm"));
  json_t *root = cli_expect_json(cli_line("explain --json - %s" EMU, path));
  const json_t *layers = cli_at(root, "layers");
  assert_int_equal(json_array_size(layers), 1);
  assert_string_equal(json_string_value(json_object_get(json_array_get(layers, 0), "kernel")),
                      "step of a perceptron");
  json_decref(root);
  root = cli_expect_json(load_of(path));
  assert_int_equal(cli_number_at(root, "wrong"), 0);
  assert_true(cli_number_at(root, "completed") > 20);
  double most = 0;
  const json_t *batches = cli_at(root, "batches");
  for (size_t i = 8; i < json_array_size(batches); ++i)
    most += json_number_value(json_array_get(batches, i));
  assert_true(most > 0);
  json_decref(root);
  save_dropout(cli_path("dropout.ctm"));
  snprintf(path, sizeof path, "%s", cli_path("dropout.ctm"));
  free(cli_expect(1, "makes batches of perceptrons alone", load_of(path)));
}

/* Answers have the mantissas of the file. */
static void narrow_mantissas(void **state) {
  (void)state;
  char digits[256];
  save_small(cli_path("narrow.ctm"), 4);
  snprintf(digits, sizeof digits, "%s --data digits", cli_path("narrow.ctm"));
  free(cli_expect(0, "", cli_line("infer --model %s" EMU, digits)));
  free(cli_expect(0, "", cli_line("train --epochs 1 --samples 64 --resume %s" EMU, digits)));
  json_t *root = cli_expect_json(
      cli_line("colocate --samples 64 --epochs 1 --requests 5 --json - --model %s" EMU, digits));
  check_served(root, 5);
  json_decref(root);
}

/* Ctrl-C ends it in good order, with what there is so far. */
static void stopped(void **state) {
  (void)state;
  struct cli_run run = cli_run_signal(
      cli_line("colocate --model lenet5 --epochs 1000 --requests 100000 --save %s" DATA EMU,
               cli_path("stopped.ctm")),
      1500, SIGINT);
  if (run.status != 1 || !strstr(run.out, "lost, 0 wrong")) fail_msg("%d %s", run.status, run.err);
  cli_run_free(&run);
  if (access(cli_path("stopped.ctm"), F_OK)) fail_msg("no file");
}

static double run_bytes(const char *keep) {
  json_t *root =
      cli_expect_json(cli_line("explain resnet8 --batch 4 --train --keep %s --json -" EMU, keep));
  const double bytes = cli_number_at(root, "memory.run_bytes");
  const char *name = json_string_value(cli_at(root, "keep"));
  const size_t length = strcspn(keep, ":");
  assert_true(!strncmp(name, keep, length) && !name[length]);
  json_decref(root);
  return bytes;
}

/* Activations and gradients in HBFP8: half of the memory, other bits, and a file knows of it. */
static void kept_in_less(void **state) {
  (void)state;
  static const char *const train =
      "train --model resnet8 --samples 32 --batch 8 --epochs %d --keep %s --save %s" EMU;
  assert_true(run_bytes("hbfp8") < 0.6 * run_bytes("fp32"));
  assert_true(run_bytes("hbfp4") == run_bytes("hbfp8"));
  free(cli_expect(0, "", cli_line(train, 1, "fp32", cli_path("fp32.ctm"))));
  free(cli_expect(0, "", cli_line(train, 1, "hbfp8", cli_path("kept.ctm"))));
  free(cli_expect(0, "", cli_line(train, 2, "hbfp8", cli_path("twice.ctm"))));
  size_t a, b;
  char *x = cli_slurp(cli_path("fp32.ctm"), &a), *y = cli_slurp(cli_path("kept.ctm"), &b);
  assert_true(a != b || memcmp(x, y, a) != 0);
  free(x);
  free(y);
  free(cli_expect(
      0, "",
      cli_line("train --resume %s --data random-32x32x3 --samples 32 --epochs 2 --save %s" EMU,
               cli_path("kept.ctm"), cli_path("on.ctm"))));
  cli_assert_same_files(cli_path("twice.ctm"), cli_path("on.ctm"));
  free(cli_expect(2, "recompute, compressed:ERROR:BITS:nomask (0..1, 1..12) or auto, not hbfp5",
                  "explain lenet5 --keep hbfp5" EMU));
  free(cli_expect(1, "--keep is for networks: give --model",
                  "train --layers 64-10 --keep hbfp8" EMU));
}

/* Made again, or compressed: explain says how many bits that takes. A device without pages refuses.
 */
static void kept_compressed(void **state) {
  (void)state;
  static const char *const wrong[] = {
      "compressed:2",       "compressed:",  "compressed:0.1:13",
      "compressed:0.1:",    "compressed:x", "compressed:0.1:nomasks",
      "compressed:mask:0.1"};
  assert_true(run_bytes("recompute") < run_bytes("hbfp8"));
  assert_true(run_bytes("compressed:0") < 0.7 * run_bytes("hbfp8"));
  json_t *raw = cli_expect_json("explain resnet8 --train --batch 2 --keep hbfp8 --json -" EMU);
  json_t *root =
      cli_expect_json("explain resnet8 --train --batch 2 --keep compressed:0.1 --json -" EMU);
  const json_t *kept = json_object_get(root, "compressed");
  size_t exact = 0;
  assert_string_equal(json_string_value(json_object_get(root, "keep")), "compressed");
  assert_true(json_array_size(kept) > 5);
  for (size_t i = 0; i < json_array_size(kept); ++i) {
    const double bits = cli_number_at(json_array_get(kept, i), "bits");
    assert_true(bits > 0 && bits < 12);
    exact += json_is_true(json_object_get(json_array_get(kept, i), "exact"));
  }
  assert_int_equal(exact, 3); /* masks of what is stored, not of what is made again */
  assert_true(cli_number_at(root, "total.macs") == cli_number_at(raw, "total.macs"));
  json_decref(raw);
  assert_true(cli_number_at(root, "memory.pages_most_bytes") > 0);
  assert_true(cli_number_at(root, "memory.pages_bytes") >=
              cli_number_at(root, "memory.pages_most_bytes"));
  json_decref(root);
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i)
    free(
        cli_expect(2, "compressed:ERROR:BITS", cli_line("explain lenet5 --keep %s" EMU, wrong[i])));
  free(cli_expect(
      0, "loss",
      "train --model resnet8 --samples 16 --batch 8 --keep compressed:0.1:8:nomask" EMU));
  free(cli_expect(0, "for an error of 0.001 that was too few",
                  "train --model lenet5 --samples 2048 --batch 32 --keep compressed:0.001:1" EMU));
  free(cli_expect(1, "which this device cannot do",
                  "explain resnet8 --train --batch 1 --keep compressed --device emu:compress=0"));
  free(cli_expect(1, "a sweep cannot keep activations compressed",
                  "train --model lenet5 --samples 32 --keep compressed --sweep lr=0.01,0.02" EMU));
  free(cli_expect(1, "a sweep cannot keep activations compressed", /* before data are read */
                  "train --model lenet5 --data /none --keep compressed --sweep lr=0.01,0.02" EMU));
}

static double group_of(json_t *root, size_t layer, const char *name) {
  json_t *of = json_array_get(json_object_get(root, "layers"), layer);
  return cli_number_at(json_object_get(of, "group"), name);
}

/* What one member costs is what is said without the others; all take about as much as one after the
 * other or less, and no less than their units work. A block of eight is as the next, but for where
 * bursts begin. */
static void members_explained(void **state) {
  (void)state;
  static const char *const line = "explain lenet5 --batch 2 --train %s --json -" EMU;
  json_t *alone = cli_expect_json(cli_line(line, ""));
  json_t *one = cli_expect_json(cli_line(line, "--members 1"));
  json_t *some = cli_expect_json(cli_line(line, "--members 8"));
  json_t *more = cli_expect_json(cli_line(line, "--members 19"));
  json_t *three = cli_expect_json(cli_line(line, "--members 3"));
  const size_t layers = json_array_size(json_object_get(alone, "layers"));
  size_t together = 0;
  assert_int_equal(cli_number_at(alone, "members"), 1);
  assert_null(json_object_get(alone, "group"));
  assert_int_equal(cli_number_at(more, "members"), 19);
  for (size_t i = 0; i < layers; ++i) {
    const double expected = group_of(some, i, "cycles_expected");
    const double busy = group_of(some, i, "cycles_busy");
    assert_true(expected >= busy && busy > 0);
    /* One by one, too: only what is read ahead is another job's. */
    assert_true(expected <= 8.5 * group_of(one, i, "cycles_expected"));
    assert_float_equal(group_of(some, i, "gain_bound"), expected / busy, 1e-9);
    const double blocks = 2 * expected + group_of(three, i, "cycles_expected");
    assert_float_equal(group_of(more, i, "cycles_expected"), blocks, 0.02 * blocks);
    together += group_of(some, i, "members_a_pass") > 0;
  }
  assert_true(together > layers / 2);
  static const char *const same[] = {"total.bytes", "total.macs", "memory.weights_bytes",
                                     "memory.run_bytes"};
  for (size_t i = 0; i < sizeof same / sizeof *same; ++i) {
    assert_true(cli_number_at(alone, same[i]) == cli_number_at(one, same[i]));
    assert_true(cli_number_at(alone, same[i]) == cli_number_at(some, same[i]));
  }
  const double step = cli_number_at(alone, "total.cycles_expected");
  assert_float_equal(cli_number_at(some, "total.cycles_expected"), step, 0.01 * step);
  assert_true(cli_number_at(one, "group.cycles_expected") == step); /* one is a group, too */
  assert_true(cli_number_at(some, "group.member_bytes") ==
              cli_number_at(alone, "memory.weights_bytes"));
  assert_true(cli_number_at(more, "group.run_bytes") ==
              8 * cli_number_at(alone, "memory.run_bytes"));
  json_t *const all[] = {alone, one, some, more, three};
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i)
    json_decref(all[i]);
  free(cli_expect(1, "--members is for training steps", "explain lenet5 --members 4" EMU));
  free(cli_expect(2, "--members: \"0\" is not", "explain lenet5 --train --members 0" EMU));
  free(cli_expect(2, "--members: \"257\" is not", "explain lenet5 --train --members 257" EMU));
  free(
      cli_expect(1, "leave --members out", "explain lenet5 --train --members 4 --memory 4MiB" EMU));
  free(cli_expect(1, "with --members name a way",
                  "explain lenet5 --train --members 4 --keep auto" EMU));
  free(cli_expect(1, "members", "explain resnet8 --train --members 2 --keep compressed" EMU));
  char *text =
      cli_expect(0, "", "explain resnet8 --train --batch 2 --members 1 --keep compressed" EMU);
  assert_non_null(strstr(text, "1 member in the same jobs"));
  free(text);
}

/* Bytes of a step, with the batch that --batch or --memory gives. */
static double step_bytes(const char *option, double *batch) {
  json_t *root =
      cli_expect_json(cli_line("explain resnet8 --train --keep hbfp8 %s --json -" EMU, option));
  const double bytes = cli_number_at(root, "memory.weights_bytes") +
                       cli_number_at(root, "memory.frame_bytes") +
                       cli_number_at(root, "memory.run_bytes");
  *batch = cli_number_at(root, "batch");
  json_decref(root);
  return bytes;
}

/* The largest batch that fits: one more does not. */
static void fits_the_memory(void **state) {
  (void)state;
  const double limit = 3 << 20;
  double batch, more;
  assert_true(step_bytes("--memory 3MiB", &batch) <= limit);
  char option[64];
  snprintf(option, sizeof option, "--batch %.0f", batch + 1);
  assert_true(step_bytes(option, &more) > limit);
  /* Compressed activations make room for more images, pages included. */
  json_t *root =
      cli_expect_json("explain resnet8 --train --keep compressed --memory 3MiB --json -" EMU);
  assert_true(cli_number_at(root, "batch") > batch);
  assert_true(
      cli_number_at(root, "memory.weights_bytes") + cli_number_at(root, "memory.frame_bytes") +
          cli_number_at(root, "memory.run_bytes") + cli_number_at(root, "memory.pages_bytes") <=
      limit);
  json_decref(root);
  root = cli_expect_json(
      "train --model lenet5 --memory 3MiB --epochs 1"
      " --json -" DATA EMU);
  assert_true(cli_number_at(root, "batch") > 4 && cli_number_at(root, "batch") < 16);
  json_decref(root);
  free(cli_expect(1, "a step of one sample takes", "explain resnet8 --train --memory 64KiB" EMU));
  free(cli_expect(2, "such as 64MiB, not 64MB", "explain resnet8 --memory 64MB" EMU));
  free(cli_expect(1, "one of them", "explain resnet8 --memory 3MiB --batch 4" EMU));
  /* At once: its programs would take a minute. */
  free(cli_expect(1, "the network needs 383822400 bytes of device memory: 590400 for weights",
                  "explain resnet20 --batch 4000" EMU));
  free(cli_expect(1, "one of them", "train --model lenet5 --memory 3MiB --batch 4" EMU));
  free(cli_expect(1, "--memory is for networks", "train --layers 64-10 --memory 3MiB" EMU));
  root = cli_expect_json("explain lenet5 --keep auto --memory 3MiB --json -" EMU);
  assert_true(cli_number_at(root, "batch") > 1);
  json_decref(root);
  root = cli_expect_json("explain lenet5 --train --keep auto --memory 1MiB --json -" EMU);
  assert_true(cli_number_at(root, "batch") > 1);
  json_decref(root);
  free(cli_expect(1, "give --memory", "explain resnet8 --train --keep auto" EMU));
  free(cli_expect(1, "give --memory", "train --model lenet5 --samples 32 --keep auto" EMU));
  free(cli_expect(1, "does not fit", "explain resnet8 --train --keep auto --memory 64KiB" EMU));
  free(cli_expect(0, "activations are kept in",
                  "train --model lenet5 --samples 64 --keep auto --memory 1MiB" EMU));
}

/* Left to it, it takes the way that has room for most; without pages the best that is left.
 * (A minute under sanitizers, which see the same code for lenet5 above.) */
static void way_for_the_memory(void **state) {
  (void)state;
  json_t *root = cli_expect_json("explain resnet8 --train --keep auto --memory 6MiB --json -" EMU);
  assert_string_equal(json_string_value(json_object_get(root, "keep")), "compressed");
  json_decref(root);
  root = cli_expect_json(
      "explain resnet8 --train --keep auto --memory 3MiB --json - --device emu:compress=0");
  assert_string_equal(json_string_value(json_object_get(root, "keep")), "recompute");
  json_decref(root);
}

static void refused(void **state) {
  (void)state;
  char path[256];
  snprintf(path, sizeof path, "%s", cli_path("whole.ctm"));
  FILE *file = fopen(cli_path("broken.ctm"), "wb");
  assert_non_null(file);
  fputs("COLTRAIN\x02", file);
  assert_int_equal(fclose(file), 0);
  free(cli_expect(1, "no network lenet6", "colocate --model lenet6" EMU));
  free(cli_expect(1, "no network lenet6", "train --model lenet6" EMU));
  free(cli_expect(1, "no network lenet6", "explain lenet6" EMU));
  free(cli_expect(1, "one of them", "train --model lenet5 --layers 784-10" EMU));
  free(cli_expect(1, "digits does not fit lenet5", "train --model lenet5 --data digits" EMU));
  free(cli_expect(1, "is not random-HxWxC", "train --model lenet5 --data random-28x28" EMU));
  free(cli_expect(1, "go on with --resume", cli_line("train --model %s" DATA EMU, path)));
  free(cli_expect(1, "give --data", cli_line("colocate --model %s" EMU, path)));
  free(
      cli_expect(1, "leave --batch out", cli_line("colocate --batch 3 --model %s" DATA EMU, path)));
  free(cli_expect(1, "says itself how", cli_line("colocate --lr 1 --model %s" DATA EMU, path)));
  free(cli_expect(1, "leave --seed out",
                  cli_line("train --epochs 9 --seed 4 --resume %s" DATA EMU, path)));
  free(cli_expect(1, "leave --layers and --model out",
                  cli_line("train --epochs 9 --layers 9-9 --resume %s" DATA EMU, path)));
  free(cli_expect(1, "larger number", cli_line("train --epochs 2 --resume %s" DATA EMU, path)));
  free(cli_expect(1, "leave --batch, --train, --keep and --memory out",
                  cli_line("explain --train %s" EMU, path)));
  free(
      cli_expect(1, "cut short", cli_line("colocate --model %s" DATA EMU, cli_path("broken.ctm"))));
  free(cli_expect(1, "cut short", cli_line("explain %s" EMU, cli_path("broken.ctm"))));
  free(cli_expect(0, "",
                  cli_line("train --epochs 1 --samples 64 --save %s" EMU, cli_path("mlp.ctm"))));
  free(cli_expect(0, "", cli_line("explain %s" EMU, cli_path("mlp.ctm"))));
  free(cli_expect(0, "",
                  cli_line("colocate --data digits --epochs 1 --requests 5 --model %s" EMU,
                           cli_path("mlp.ctm"))));
  free(cli_expect(1, "", cli_line("infer --model %s --data digits" EMU, cli_path("broken.ctm"))));
}

/* One of an older release: without the last chunk, which says how activations are kept. */
static void make_old(const char *from, const char *to) {
  size_t size, at;
  char *data = cli_slurp(from, &size);
  for (at = size - 4; memcmp(data + at, "kept", 4) != 0; --at)
    assert_true(at > 16);
  ct_file_seal((uint8_t *)data, at + 4);
  FILE *f = fopen(to, "wb");
  assert_non_null(f);
  assert_int_equal(fwrite(data, 1, at + 4, f), at + 4);
  assert_int_equal(fclose(f), 0);
  free(data);
}

/* Training goes on as a file says that it is kept, to the bit. */
static void kept_compressed_again(void **state) {
  (void)state;
  static const char *const ways[] = {"compressed", "compressed:0.1:nomask", "compressed:0"},
                           train[] =
                               "train --model lenet5 --samples 32 --batch 8 --epochs %d "
                               "--keep %s --save %s" EMU,
                           resume[] =
                               "train --data fashion-mnist --samples 32 --epochs 2 "
                               "--resume %s --save %s" EMU;
  char path[256], on[256], twice[256];
  snprintf(path, sizeof path, "%s", cli_path("kept.ctm"));
  snprintf(on, sizeof on, "%s", cli_path("on.ctm"));
  snprintf(twice, sizeof twice, "%s", cli_path("twice.ctm"));
  for (size_t i = sizeof ways / sizeof *ways; i-- > 0;) {
    free(cli_expect(0, "", cli_line(train, 1, ways[i], path)));
    free(cli_expect(0, "", cli_line(train, 2, ways[i], twice)));
    free(cli_expect(0, "", cli_line(resume, path, on)));
    cli_assert_same_files(on, twice);
  }
  free(cli_expect(0, "", cli_line("infer --data fashion-mnist --model %s" EMU, path)));
  free(cli_expect(0, "", cli_line("explain %s" EMU, path)));
}

/* What the file says may be said again, with other pages, and nothing else. An old one says
 * nothing, so it has to be. */
static void kept_compressed_otherwise(void **state) {
  (void)state;
  char path[256], resume[512];
  snprintf(path, sizeof path, "%s", cli_path("kept.ctm"));
  snprintf(resume, sizeof resume,
           "train --data fashion-mnist --samples 32 --epochs 2 --resume %s --json -", path);
  free(cli_expect(1, "leave --lr", cli_line("%s --keep hbfp8" EMU, resume)));
  free(cli_expect(1, "leave --lr", cli_line("%s --keep fp32" EMU, resume)));
  free(cli_expect(1, "with an error of 0.1, not 0;",
                  cli_line("%s --keep compressed:0" EMU, resume)));
  free(cli_expect(1,
                  "with an error of 0.1, not 1:", cli_line("%s --keep compressed:1" EMU, resume)));
  free(cli_expect(1, "with masks of what is stored alone, not without masks",
                  cli_line("%s --keep compressed:nomask" EMU, resume)));
  free(cli_expect(0, "", cli_line("%s --keep compressed:0.1:12" EMU, resume)));
  free(cli_expect(1, "not with all masks", cli_line("%s --keep compressed:0.1:mask" EMU, resume)));
  make_old(cli_path("kept.ctm"), cli_path("old.ctm"));
  snprintf(resume, sizeof resume,
           "train --data fashion-mnist --samples 32 --epochs 2 --resume %s --json -",
           cli_path("old.ctm"));
  free(cli_expect(1, "give --keep compressed:ERROR again", cli_line("%s" EMU, resume)));
  json_t *lossy = cli_expect_json(cli_line("%s --keep compressed:1" EMU, resume));
  json_t *whole = cli_expect_json(cli_line("%s --keep compressed:0" EMU, resume));
  assert_true(cli_number_at(whole, "weights_crc32") != cli_number_at(lossy, "weights_crc32"));
  json_decref(lossy);
  json_decref(whole);
  free(
      cli_expect(1, "keeps nothing compressed; leave --keep out",
                 cli_line("train --data fashion-mnist --keep compressed --epochs 9 --resume %s" EMU,
                          cli_path("whole.ctm"))));
  free(cli_expect(1, "colocate trains two networks",
                  "colocate --model lenet5 --keep compressed" EMU));
  free(cli_expect(1, "colocate trains two networks",
                  cli_line("colocate --data fashion-mnist --samples 32 --model %s" EMU, path)));
}

/* The table has names in full, for two nodes may begin alike. */
static void names_of_layers(void **state) {
  (void)state;
  char *text = cli_expect(0, "", "explain lenet5 --train --batch 1" EMU);
  if (!strstr(text, "\nconv2/conv_input_grad") || !strstr(text, "\nconv2/conv_weight_grad"))
    fail_msg("%s", text);
  free(text);
}

/* A core without walks: the sentence names the nodes. */
static void a_core_without_convolution(void **state) {
  (void)state;
  ct_device *dev;
  ct_network *net;
  ct_graph *g, *answers;
  assert_int_equal(ct_open("emu:", &dev), CT_OK);
  dev->info.features &= ~CT_FEATURE_CONVOLUTION;
  assert_int_equal(ct_graph_create(&g), CT_OK);
  assert_int_equal(ct_graph_create(&answers), CT_OK);
  assert_int_equal(ct_graph_builtin(g, "lenet5", 4, true), CT_OK);
  assert_int_equal(ct_graph_answers(answers, g, ct_graph_find(g, "logits"), 1), CT_OK);
  assert_int_equal(ct_graph_check(answers), CT_OK);
  assert_int_equal(ct_network_create(dev, answers, NULL, &net), CT_ERR_UNSUPPORTED);
  if (!strstr(ct_last_error(dev), "conv1")) fail_msg("%s", ct_last_error(dev));
  assert_int_equal(ct_network_load(dev, cli_path("whole.ctm"), NULL, &net), CT_ERR_UNSUPPORTED);
  assert_null(net);
  ct_graph_free(g);
  ct_graph_free(answers);
  ct_close(dev);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(resumed_bit_for_bit),
      cmocka_unit_test(accumulated),
      cmocka_unit_test(served_while_trained),
      cmocka_unit_test(a_residual_network),
      cmocka_unit_test(simulated),
      cmocka_unit_test(in_the_devices_batches),
      cmocka_unit_test(narrow_mantissas),
      cmocka_unit_test(dropout),
      cmocka_unit_test(stopped),
      cmocka_unit_test(kept_in_less),
      cmocka_unit_test(kept_compressed),
      cmocka_unit_test(kept_compressed_again),
      cmocka_unit_test(kept_compressed_otherwise),
      cmocka_unit_test(members_explained),
      cmocka_unit_test(fits_the_memory),
      CT_PLAIN_TEST(way_for_the_memory),
      cmocka_unit_test(names_of_layers),
      cmocka_unit_test(refused),
      cmocka_unit_test(a_core_without_convolution),
  };
  return cmocka_run_group_tests(tests, cli_make_folder, cli_remove_folder);
}
