/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "ct_uri.h"

struct options {
  const char *device;
  bool json, list;
};

struct feature {
  uint32_t bit;
  const char *name;
};

static const struct feature features[] = {
    {CT_FEATURE_HBFP8, "hbfp8"},
    {CT_FEATURE_TRAINING, "training"},
    {CT_FEATURE_FUNCTIONS, "functions"},
    {CT_FEATURE_PARITY, "parity"},
    {CT_FEATURE_REQUESTS, "requests"},
    {CT_FEATURE_CONVOLUTION, "convolution"},
    {CT_FEATURE_COMPRESSION, "compression"},
};
enum { FEATURES = sizeof features / sizeof *features };

static int print_json(const struct ct_info *info) {
  json_t *names = json_array();
  for (size_t i = 0; i < FEATURES; ++i)
    if (info->features & features[i].bit)
      json_array_append_new(names, json_string(features[i].name));
  json_t *root = json_pack(
      "{s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:I, s:I, s:I, s:s, s:o, s:b, s:b, s:o, s:o}", "device",
      info->uri, "abi", (int)info->abi, "array_rows", (int)info->array_rows, "array_cols",
      (int)info->array_cols, "vpu_lanes", (int)info->vpu_lanes, "block", (int)info->block,
      "macs_per_cycle", (int)info->macs_per_cycle, "spm_words", (json_int_t)info->spm_words,
      "spm_bytes", (json_int_t)info->spm_bytes, "dram_bytes", (json_int_t)info->dram_bytes,
      "memory", info->memory, "clock_hz",
      info->has_clock ? json_integer((json_int_t)info->clock_hz) : json_null(), "has_clock",
      (int)info->has_clock, "has_schedule", (int)info->has_schedule, "line_rate",
      info->line_rate ? json_integer((json_int_t)info->line_rate) : json_null(), "features", names);
  return cli_json_write("-", root);
}

static int print_text(const struct ct_info *info) {
  printf("device          %s\n", info->uri);
  printf("interface       version %" PRIu32 "\n", info->abi);
  printf("array           %" PRIu32 " x %" PRIu32 ", %" PRIu32 " multiply-accumulates a cycle\n",
         info->array_rows, info->array_cols, info->macs_per_cycle);
  printf("block           %" PRIu32 " elements share an exponent\n", info->block);
  printf("vector lanes    %" PRIu32 "\n", info->vpu_lanes);
  printf("scratchpad      %" PRIu64 " KiB in %" PRIu32 " words\n", info->spm_bytes >> 10,
         info->spm_words);
  printf("device memory   %" PRIu64 " MiB%s%s\n", info->dram_bytes >> 20, *info->memory ? ", " : "",
         info->memory);
  if (info->has_clock)
    printf("clock           %.6g MHz\n", (double)info->clock_hz / 1e6);
  else
    printf("clock           none: this device has no time\n");
  if (info->line_rate)
    printf("line            %.6g MB/s each way\n", (double)info->line_rate / 1e6);
  printf("features       ");
  for (size_t i = 0; i < FEATURES; ++i)
    if (info->features & features[i].bit) printf(" %s", features[i].name);
  putchar('\n');
  return 0;
}

/* The options behind a device's name. */
static json_t *keys_json(const char *uri) {
  char name[16];
  json_t *list = json_array();
  snprintf(name, sizeof name, "%.*s", (int)strcspn(uri, ":"), uri);
  const struct ct_uri_scheme *s = ct_uri_find(name);
  for (size_t i = 0; s && i < s->keys; ++i)
    json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:s}", "key", s->key[i].name, "values",
                                          ct_uri_values(&s->key[i]).text, "default",
                                          ct_uri_default(&s->key[i]).text, "text", s->key[i].text));
  return list;
}

/* What can be opened, and what cannot and why. */
static int print_list(bool json) {
  struct ct_entry *entries;
  size_t count;
  if (ct_list(&entries, &count)) return cli_fail("%s", ct_last_error(NULL));
  json_t *root = json_array();
  for (size_t i = 0; i < count; ++i) {
    const struct ct_entry *e = &entries[i];
    if (!json) printf("%-8s%s\n", e->uri, e->text);
    json_array_append_new(
        root, json_pack("{s:s, s:s, s:b, s:o}", "device", e->uri, "text", e->text, "available",
                        e->error == CT_OK, "options", keys_json(e->uri)));
  }
  ct_list_free(entries);
  return cli_json_write(json ? "-" : NULL, root);
}

/* The options behind a device's name, for --help. */
static void put_keys(FILE *to, const struct ct_uri_scheme *s) {
  fprintf(to, "\n  %s:%s\n", s->name, s->file ? s->file : "");
  for (size_t i = 0; i < s->keys; ++i) {
    char given[64];
    const struct ct_uri_key *k = &s->key[i];
    snprintf(given, sizeof given, "%s=%s", k->name, ct_uri_values(k).text);
    fprintf(to, "    %-24s %s (%s)\n", given, k->text, ct_uri_default(k).text);
  }
}

static char *help(int key, const char *text, void *input) {
  char *all = NULL;
  size_t size = 0;
  (void)input;
  if (key != ARGP_KEY_HELP_EXTRA) return (char *)text;
  FILE *to = open_memstream(&all, &size);
  if (!to) return NULL;
  fputs(
      "Options behind a device's name, as in sim:core=16x8,stall=25, and what holds\n"
      "without them (docs/devices.md):\n",
      to);
  const struct ct_uri_scheme *s;
  for (size_t i = 0; (s = ct_uri_scheme(i)); ++i)
    put_keys(to, s);
  fclose(to);
  return all;
}

int verb_info(int argc, char **argv) {
  static const struct cli_option options[] = {
      CLI_DEVICE_AT(struct options, device),
      {"list", NULL, "Say instead what devices there are (--json: with their options)",
       CLI_FLAG_AT(struct options, list)},
      {"json", NULL, "Print JSON", CLI_FLAG_AT(struct options, json)}};
  static const struct cli_command command = {
      CLI_COMMAND(options), .help = help,
      .doc =
          "Says what a device is: array, memory, clock."
          "\vExample:\n  coltrain info --device sim:core=16x8\n"};
  struct options o = {.device = CLI_DEVICE};
  if (cli_options(&command, argc, argv, &o)) return 1;
  if (o.list) return print_list(o.json);
  ct_device *dev;
  if (cli_open(o.device, &dev)) return 1;
  struct ct_info info;
  const int rc = ct_info(dev, &info);
  int status;
  if (rc < 0)
    status = cli_fail_device(dev, rc, o.device);
  else
    status = o.json ? print_json(&info) : print_text(&info);
  ct_close(dev);
  return status;
}
