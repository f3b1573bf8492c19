/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "ct_uri.h"

struct options {
  const char *json;
};

static const char *error_name(int error) {
  return error ? ct_strerror(error) : "";
}

/* Whether an entry is of a kind of devices. */
static bool is_of(const struct ct_entry *e, const char *scheme) {
  const size_t length = strlen(scheme);
  return !strncmp(e->uri, scheme, length) && e->uri[length] == ':';
}

static void print_entry(FILE *to, const struct ct_entry *e) {
  const int wide = strlen(e->uri) > 22;
  fprintf(to, "%-22s%s%s%s%s\n", e->uri, wide ? "\n                      " : "",
          e->error ? error_name(e->error) : e->text, e->error ? ": " : "", e->error ? e->text : "");
}

/* By kinds; of one that has none that is said. */
static void print_text(FILE *to, const struct ct_entry *entries, size_t count) {
  const struct ct_uri_scheme *s;
  for (size_t k = 0; (s = ct_uri_scheme(k)); ++k) {
    size_t found = 0;
    for (size_t i = 0; i < count; ++i) {
      if (!is_of(&entries[i], s->name)) continue;
      print_entry(to, &entries[i]);
      ++found;
    }
    if (!found)
      fprintf(to, "%s:%*s%s\n", s->name, 21 - (int)strlen(s->name), "",
              s->unlisted ? s->unlisted : "none on this machine");
  }
}

static json_t *as_json(const struct ct_entry *entries, size_t count) {
  json_t *list = json_array();
  for (size_t i = 0; i < count; ++i)
    json_array_append_new(list, json_pack("{s:s, s:b, s:s, s:s}", "device", entries[i].uri,
                                          "available", entries[i].error == CT_OK, "error",
                                          error_name(entries[i].error), "text", entries[i].text));
  return json_pack("{s:o}", "devices", list);
}

int verb_list(int argc, char **argv) {
  static const struct cli_option options[] = {{"json", "FILE",
                                               "Write the list (- for standard output)",
                                               CLI_FILE_AT(struct options, json, CLI_WRITE)}};
  static const struct cli_command command = {
      CLI_COMMAND(options),
      .doc =
          "Lists the devices that this machine has: simulated cores, the emulator, boards on USB, "
          "UIO devices and PCI functions, and why one cannot be opened. None is opened for work."
          "\vExample:\n  coltrain list\n"};
  struct options o = {0};
  struct ct_entry *entries;
  size_t count;
  if (cli_options(&command, argc, argv, &o)) return 1;
  if (ct_scan(&entries, &count)) return cli_fail("%s", ct_last_error(NULL));
  print_text(cli_text(o.json), entries, count);
  json_t *root = as_json(entries, count);
  ct_list_free(entries);
  return cli_json_write(o.json, root);
}
