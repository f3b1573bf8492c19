/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of devices: the table of their options, the parser, and that documents say what the table
 * says. It runs in the folder of the Makefile, as all tests do.
 */
#include "ct_tb.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coltrain/coltrain.h"
#include "ct_near.h"
#include "ct_uri.h"

enum { WHY = 512, LINE = 48, DRAWS = 20000 };

static void refused(const char *scheme, const char *args, const char *part) {
  struct ct_uri u;
  char why[WHY] = "";
  if (ct_uri_parse(&u, scheme, args, why, sizeof why)) fail_msg("%s:%s was taken", scheme, args);
  if (!strstr(why, part)) fail_msg("%s:%s: \"%s\" does not say \"%s\"", scheme, args, why, part);
}

static uint64_t taken(const char *scheme, const char *args, const char *key) {
  struct ct_uri u;
  char why[WHY] = "";
  if (!ct_uri_parse(&u, scheme, args, why, sizeof why)) fail_msg("%s:%s: %s", scheme, args, why);
  return ct_uri_number(&u, key);
}

/* ---- The table ---- */

static void the_table_is_sound(void **state) {
  (void)state;
  const struct ct_uri_scheme *s;
  size_t n = 0;
  for (; (s = ct_uri_scheme(n)); ++n) {
    assert_ptr_equal(ct_uri_find(s->name), s);
    assert_in_range(s->keys, 1, CT_URI_KEYS);
    for (size_t i = 0; i < s->keys; ++i) {
      const struct ct_uri_key *k = &s->key[i];
      const bool number = k->kind == CT_URI_NUMBER || k->kind == CT_URI_MHZ;
      if (number) assert_true(k->min <= k->max);
      if (number && !k->fallback) assert_in_range(k->otherwise, k->min, k->max);
      if (!number) assert_true(k->values && k->fallback);
      if (strlen(k->text) + strlen(ct_uri_default(k).text) + 3 > LINE)
        fail_msg("%s: %s=: a line of help is too long", s->name, k->name);
      for (size_t j = 0; j < i; ++j)
        assert_string_not_equal(k->name, s->key[j].name);
    }
  }
  assert_int_equal(n, 5);
  assert_null(ct_uri_find("none"));
}

/* Every key at its limits and beyond. */
static void every_range_holds(void **state) {
  (void)state;
  const struct ct_uri_scheme *s;
  for (size_t n = 0; (s = ct_uri_scheme(n)); ++n) {
    for (size_t i = 0; i < s->keys; ++i) {
      const struct ct_uri_key *k = &s->key[i];
      const char *file = s->file ? "/dev/null," : "";
      char args[1024];
      if (k->kind == CT_URI_NUMBER) {
        snprintf(args, sizeof args, "%s%s=%" PRIu64, file, k->name, k->min);
        assert_true(taken(s->name, args, k->name) == k->min);
        snprintf(args, sizeof args, "%s%s=0x%" PRIx64, file, k->name, k->max);
        assert_true(taken(s->name, args, k->name) == k->max);
        snprintf(args, sizeof args, "%s%s=%" PRIu64 "0", file, k->name, k->max);
        refused(s->name, args, "needs a number of");
        snprintf(args, sizeof args, "%s%s=%" PRIu64, file, k->name, k->min - 1);
        if (k->min) refused(s->name, args, "needs a number of");
      }
      static const char *const bad[] = {"", "=", "=-1", "=+1", "= 1", "=1 ", "=0x", "=1x", "=nan"};
      for (size_t b = 0; b < sizeof bad / sizeof *bad; ++b) {
        snprintf(args, sizeof args, "%s%s%s", file, k->name, bad[b]);
        if (k->kind != CT_URI_TEXT || b < 2) refused(s->name, args, k->name);
      }
    }
  }
}

/* A leading zero is no octal; decimals of a clock are exact; a choice is one whole word of its
 * list. */
static void values_mean_what_they_say(void **state) {
  (void)state;
  assert_int_equal(taken("sim", "dram=010", "dram"), 10);
  assert_int_equal(taken("sim", "dram=0x10", "dram"), 16);
  assert_int_equal(taken("sim", NULL, "dram"), 256);
  assert_int_equal(taken("sim", "", "clock"), 100000000);
  assert_int_equal(taken("sim", "clock=56.8", "clock"), 56800000);
  assert_int_equal(taken("sim", "clock=1.000001", "clock"), 1000001);
  assert_true(taken("sim", "clock=4000", "clock") == UINT64_C(4000000000));
  assert_int_equal(taken("emu", "cols=8", "cols"), 8);
  assert_int_equal(taken("sim", "dram=1,dram=2", "dram"), 2);
  refused("sim", "dram=1,", "ends with a comma");
  refused("emu", ",", "ends with a comma");
  refused("mmio", "/dev/null,", "ends with a comma");
  static const char *const clocks[] = {"0",  "0.9",  "4000.000001", "1.0000001", "1.",
                                       ".5", "1..2", "1e3",         "99999999",  "12345678901"};
  char args[64];
  for (size_t i = 0; i < sizeof clocks / sizeof *clocks; ++i) {
    snprintf(args, sizeof args, "clock=%s", clocks[i]);
    refused("sim", args, "option clock=");
  }
  refused("emu", "cols=9", "one of 4|8|16");
  refused("emu", "cols=1", "one of 4|8|16");
  refused("emu", "core=16x", "one of 16x16|16x8|16x4");
  refused("emu", "core=16x16|16x8", "one of 16x16|16x8|16x4");
  refused("emu", "lanes=8", "one of 4|16");
}

static void a_wrong_key_is_answered(void **state) {
  (void)state;
  refused("sim", "stal=5",
          "sim: has no option \"stal\"; did you mean stall=? there are core=16x16|16x8|16x4,");
  refused("sim", "stal=5", "dram=1..65536, clock=1..4000,");
  refused("emu", "corse=16x8", "did you mean core=?");
  refused("emu", "quantum=1", "has no option \"quantum\"; there are core=");
  refused("mmio", "/dev/uio0,memsize=1", "did you mean mem-size=?");
  refused("usb", "adr=1", "did you mean addr=?");
  refused("sim", "dram=8,,stall=1", "has no option \"\"");
  refused("sim", "=5", "has no option \"\"");
  refused("none", "", "not in the table");
}

static void files_and_texts(void **state) {
  (void)state;
  struct ct_uri u;
  char why[WHY], text[16];
  assert_true(ct_uri_parse(&u, "mmio", "/dev/uio0,irq=off", why, sizeof why));
  assert_int_equal(u.file_length, 9);
  assert_memory_equal(u.file, "/dev/uio0", 9);
  assert_true(ct_uri_is(&u, "irq", "off") && !ct_uri_is(&u, "irq", "of"));
  assert_false(ct_uri_is(&u, "irq", "offs"));
  assert_true(ct_uri_given(&u, "irq") && !ct_uri_given(&u, "mem"));
  ct_uri_text(&u, "mem", text, sizeof text);
  assert_string_equal(text, "");
  ct_uri_text(&u, "irq", text, sizeof text);
  assert_string_equal(text, "off");
  assert_true(ct_uri_parse(&u, "mmio", "regs=4", why, sizeof why));
  assert_int_equal(u.file_length, 0);
  assert_true(ct_uri_clock(0, 5, why, sizeof why) && ct_uri_clock(7, 7, why, sizeof why));
  assert_false(ct_uri_clock(7, 56800000, why, sizeof why));
  assert_non_null(strstr(why, "56.800000 MHz"));
}

static void keys_can_be_left_out(void **state) {
  (void)state;
  static const char *const keys[] = {"stall", "wave", NULL};
  static const char *const pairs[][2] = {{"sim:", "sim:"},
                                         {"sim", "sim"},
                                         {"sim:stall=5", "sim:"},
                                         {"sim:stall=5,dram=8", "sim:dram=8"},
                                         {"sim:dram=8,stall=5", "sim:dram=8"},
                                         {"sim:a=1,wave=x,b=2,stall=3,c=3", "sim:a=1,b=2,c=3"},
                                         {"sim:stalls=5,wavestall=1", "sim:stalls=5,wavestall=1"}};
  char to[64];
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; ++i) {
    ct_uri_without(pairs[i][0], keys, to);
    assert_string_equal(to, pairs[i][1]);
  }
}

/* Anything may come; a text that is taken means the same when it is taken again. */
static void random_arguments(void **state) {
  (void)state;
  static const char letters[] = "adeklmorstv=,=,.0123456789x|16x8";
  ct_rng rng = ct_rng_make(1);
  unsigned good = 0;
  for (unsigned n = 0; n < DRAWS; ++n) {
    const struct ct_uri_scheme *s = ct_uri_scheme(ct_rng_below(&rng, 5));
    struct ct_uri u, again;
    char args[128] = "", why[WHY] = "", small[8];
    for (unsigned k = ct_rng_below(&rng, 5); k; --k) {
      const struct ct_uri_key *key = &s->key[ct_rng_below(&rng, (uint32_t)s->keys)];
      size_t at = strlen(args);
      at += (size_t)snprintf(args + at, sizeof args - at, "%s=", key->name);
      for (unsigned i = ct_rng_below(&rng, 4); i && at + 2 < sizeof args; --i)
        args[at++] = ct_rng_percent(&rng, 80) ? (char)('0' + ct_rng_below(&rng, 10))
                                              : letters[ct_rng_below(&rng, sizeof letters - 1)];
      args[at++] = ',';
      args[at] = 0;
    }
    if (ct_uri_parse(&u, s->name, args, why, sizeof why)) {
      ++good;
      assert_true(ct_uri_parse(&again, s->name, args, small, sizeof small));
      for (size_t i = 0; i < s->keys; ++i)
        assert_true(ct_uri_number(&u, s->key[i].name) == ct_uri_number(&again, s->key[i].name));
    } else {
      assert_true(strlen(why) > 10);
      assert_false(ct_uri_parse(&again, s->name, args, small, sizeof small));
      assert_true(strlen(small) < sizeof small);
    }
  }
  assert_in_range(good, DRAWS / 50, DRAWS - DRAWS / 50);
}

/* ---- Devices ---- */

static void info_of(const char *uri, struct ct_info *info) {
  ct_device *dev;
  if (ct_open(uri, &dev)) fail_msg("%s", ct_last_error(NULL));
  assert_int_equal(ct_info(dev, info), CT_OK);
  ct_close(dev);
}

/* A name means the same device on emu: and sim:. */
static void devices_are_what_is_asked_for(void **state) {
  (void)state;
  static const char *const args[] = {"",           "core=16x8", "core=16x16,dram=64",
                                     "clock=56.8", "core=16x4", "core=16x8,clock=250,dram=16"};
  for (size_t i = 0; i < sizeof args / sizeof *args; ++i) {
    struct ct_info emu, sim;
    char uri[128];
    snprintf(uri, sizeof uri, "emu:%s", args[i]);
    info_of(uri, &emu);
    snprintf(uri, sizeof uri, "sim:%s", args[i]);
    info_of(uri, &sim);
    assert_int_equal(emu.array_cols, sim.array_cols);
    assert_int_equal(emu.vpu_lanes, sim.vpu_lanes);
    assert_int_equal(emu.spm_words, sim.spm_words);
    assert_true(emu.dram_bytes == sim.dram_bytes && emu.clock_hz == sim.clock_hz);
    assert_true(sim.has_clock && !emu.has_clock);
    if (i == 3) assert_int_equal(sim.clock_hz, 56800000);
  }
  struct ct_info own;
  info_of("emu:core=16x8,spm=1024,lanes=16", &own);
  assert_true(own.array_cols == 8 && own.vpu_lanes == 16 && own.spm_words == 1024);
}

static void refused_device(const char *uri, int error, const char *part) {
  ct_device *dev;
  const int got = ct_open(uri, &dev);
  if (got != error || !strstr(ct_last_error(NULL), part))
    fail_msg("%s: %d instead of %d, or not \"%s\": %s", uri, got, error, part, ct_last_error(NULL));
}

/* What an ordinary build has not says what to build; it is there only if somebody has. */
static void twins_say_what_to_build(void **state) {
  (void)state;
  const char *build = getenv("BUILD");
  char path[256];
  static const char *const twin[][4] = {
      {"trace", "sim:wave=/tmp/ct_uri.fst", "option wave= needs", "run make TRACE=1"},
      {"threads2", "sim:threads=2", "option threads=2 needs", "run make THREADS=2"}};
  for (size_t i = 0; i < 2; ++i) {
    snprintf(path, sizeof path, "%s/%s/lib/coltrain/sim.so", build ? build : "build", twin[i][0]);
    FILE *there = fopen(path, "rb");
    if (there) {
      fclose(there);
      continue;
    }
    refused_device(twin[i][1], CT_ERR_UNSUPPORTED, twin[i][2]);
    refused_device(twin[i][1], CT_ERR_UNSUPPORTED, twin[i][3]);
  }
}

/* ---- Documents ---- */

static char *slurp(const char *name) {
  FILE *file = fopen(name, "rb");
  if (!file) fail_msg("%s is not there: tests run in the folder of the Makefile", name);
  char *text = calloc(1, 1 << 20);
  assert_non_null(text);
  text[fread(text, 1, (1 << 20) - 1, file)] = 0;
  fclose(file);
  return text;
}

static void put_bar(FILE *to, const char *text) {
  for (; *text; ++text)
    fprintf(to, "%s%c", *text == '|' ? "\\" : "", *text);
}

static char *tables(void) {
  char *text = NULL;
  size_t size = 0;
  FILE *to = open_memstream(&text, &size);
  const struct ct_uri_scheme *s;
  assert_non_null(to);
  for (size_t n = 0; (s = ct_uri_scheme(n)); ++n) {
    fprintf(to, "### `%s:%s`: %s\n\n", s->name, s->file ? s->file : "", s->text);
    fprintf(to, "| option | values | without it | what it is |\n|---|---|---|---|\n");
    for (size_t i = 0; i < s->keys; ++i) {
      fprintf(to, "| `%s=` | ", s->key[i].name);
      put_bar(to, ct_uri_values(&s->key[i]).text);
      fprintf(to, " | %s | %s |\n", ct_uri_default(&s->key[i]).text, s->key[i].text);
    }
    fputc('\n', to);
  }
  fclose(to);
  return text;
}

/* CT_FIX=1 writes them into the page. */
static void the_page_has_the_tables(void **state) {
  (void)state;
  static const char name[] = "docs/devices.md", begin[] = "<!-- keys: begin -->\n",
                    end[] = "<!-- keys: end -->";
  char *page = slurp(name), *want = tables();
  char *from = strstr(page, begin), *to = strstr(page, end);
  assert_true(from && to && from < to);
  from += sizeof begin - 1;
  const size_t length = (size_t)(to - from);
  const bool same = strlen(want) == length && !memcmp(from, want, length);
  if (!same && getenv("CT_FIX")) {
    FILE *file = fopen(name, "wb");
    assert_non_null(file);
    fprintf(file, "%.*s%s%s", (int)(from - page), page, want, to);
    assert_int_equal(fclose(file), 0);
  } else if (!same) {
    fail_msg(
        "%s does not say what host/transports/ct_uri.c says; CT_FIX=1 build/tb/test_uri writes "
        "it",
        name);
  }
  free(page);
  free(want);
}

/* What stands in documents, examples and scripts as a device's name names keys that there are. */
static void check_names(const char *file, const struct ct_uri_scheme *s, const char *text,
                        unsigned *seen) {
  char head[16];
  snprintf(head, sizeof head, "%s:", s->name);
  for (const char *at = text; (at = strstr(at, head)); at += strlen(head)) {
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyz0123456789-_=,./ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    char args[256], why[WHY] = "";
    struct ct_uri u;
    const size_t length = strspn(at + strlen(head), allowed);
    if (length >= sizeof args || (at > text && strchr(allowed, at[-1]))) continue;
    snprintf(args, sizeof args, "%.*s", (int)length, at + strlen(head));
    if (!strchr(args, '=')) continue;
    ++*seen;
    if (!ct_uri_parse(&u, s->name, args, why, sizeof why) && strstr(why, "has no option"))
      fail_msg("%s: %s%s: %s", file, head, args, why);
  }
}

static void documents_name_what_there_is(void **state) {
  (void)state;
  static const char *const files[] = {"README.md",
                                      "docs/cli.md",
                                      "docs/getting-started.md",
                                      "docs/mmio.md",
                                      "docs/usb.md",
                                      "docs/serial.md",
                                      "docs/devices.md",
                                      "docs/faq.md",
                                      "docs/programming.md",
                                      "docs/api.md",
                                      "docs/watching.md",
                                      "docs/experiments.md",
                                      "CONTRIBUTING.md",
                                      "docs/architecture.md",
                                      "docs/numerics.md",
                                      "scripts/measure",
                                      "host/python/coltrain/experiments/interference.py",
                                      "host/tools/main.c",
                                      "scripts/same-bytes"};
  unsigned seen = 0;
  for (size_t i = 0; i < sizeof files / sizeof *files; ++i) {
    char *text = slurp(files[i]);
    const struct ct_uri_scheme *s;
    for (size_t n = 0; (s = ct_uri_scheme(n)); ++n)
      check_names(files[i], s, text, &seen);
    free(text);
  }
  assert_true(seen > 10);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_table_is_sound),
      cmocka_unit_test(every_range_holds),
      cmocka_unit_test(values_mean_what_they_say),
      cmocka_unit_test(a_wrong_key_is_answered),
      cmocka_unit_test(files_and_texts),
      cmocka_unit_test(keys_can_be_left_out),
      cmocka_unit_test(random_arguments),
      cmocka_unit_test(devices_are_what_is_asked_for),
      cmocka_unit_test(twins_say_what_to_build),
      cmocka_unit_test(the_page_has_the_tables),
      cmocka_unit_test(documents_name_what_there_is),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
