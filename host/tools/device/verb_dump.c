/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>

#include "cli.h"

struct options {
  const char *device, *json;
};

static bool is_counter(const struct ct_register *r) {
  return r->msb == 63;
}

static void print_field(FILE *to, const struct ct_register *f) {
  char bits[16];
  snprintf(bits, sizeof bits, f->msb == f->lsb ? "%u" : "%u..%u", f->msb, f->lsb);
  fprintf(to, "%-17s %-7s %-12s %" PRIu64 "%s%s\n", "", bits, f->field, f->value,
          f->called[0] ? " " : "", f->called);
}

static void print_text(FILE *to, const struct ct_register *r, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (r[i].field)
      print_field(to, &r[i]);
    else if (is_counter(&r[i]))
      fprintf(to, "0x%03" PRIx32 "  %-21s %" PRIu64 "\n", r[i].offset, r[i].name, r[i].value);
    else
      fprintf(to, "0x%03" PRIx32 "  %-21s 0x%08" PRIx64 "\n", r[i].offset, r[i].name, r[i].value);
  }
}

static json_t *field_json(const struct ct_register *f) {
  return json_pack("{s:s, s:i, s:i, s:I, s:o}", "name", f->field, "msb", (int)f->msb, "lsb",
                   (int)f->lsb, "value", (json_int_t)f->value, "called",
                   f->called[0] ? json_string(f->called) : json_null());
}

static json_t *as_json(const char *device, const struct ct_register *r, size_t count) {
  json_t *list = json_array(), *fields = NULL;
  for (size_t i = 0; i < count; ++i) {
    if (r[i].field) {
      json_array_append_new(fields, field_json(&r[i]));
      continue;
    }
    fields = json_array();
    json_array_append_new(
        list, json_pack("{s:s, s:i, s:I, s:s, s:o}", "name", r[i].name, "offset", (int)r[i].offset,
                        "value", (json_int_t)r[i].value, "text", r[i].text, "fields", fields));
  }
  return json_pack("{s:s, s:o}", "device", device, "registers", list);
}

int verb_dump(int argc, char **argv) {
  static const struct cli_option options[] = {
      CLI_DEVICE_AT(struct options, device),
      {"json", "FILE", "Write registers, fields and what they are (- for standard output)",
       CLI_FILE_AT(struct options, json, CLI_WRITE)}};
  static const struct cli_command command = {
      CLI_COMMAND(options),
      .doc =
          "Shows the registers of a device by name, with their fields, and the counters. Nothing "
          "is reset, so what a program left behind, or where it hangs, can be seen."
          "\vExample:\n  coltrain dump --device usb:\n"};
  struct options o = {.device = CLI_DEVICE};
  struct ct_register *r;
  size_t count;
  char why[512] = "";
  const struct ct_options quiet = {.why = why, .why_size = sizeof why};
  if (cli_options(&command, argc, argv, &o)) return 1;
  const int rc = ct_registers(o.device, &quiet, &r, &count);
  if (rc) return cli_fail("cannot read the registers of %s: %s", o.device, why);
  print_text(cli_text(o.json), r, count);
  json_t *root = as_json(o.device, r, count);
  ct_registers_free(r);
  return cli_json_write(o.json, root);
}
