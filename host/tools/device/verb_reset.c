/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "cli.h"

struct options {
  const char *device, *json;
};

/* What matters of a device's state: the job of each context, and whether its memory port is dead.
 */
struct state {
  char job[2][16];
  bool dead[2];
};

static int look(const char *device, struct state *s) {
  struct ct_register *r;
  size_t count;
  char why[512] = "", name[24];
  const struct ct_options quiet = {.why = why, .why_size = sizeof why};
  const int rc = ct_registers(device, &quiet, &r, &count);
  if (rc) {
    cli_fail("cannot look at %s: %s", device, why);
    return 1;
  }
  *s = (struct state){.dead = {false}};
  for (size_t i = 0; i < count; ++i)
    for (int q = 0; q < 2 && r[i].field; ++q) {
      snprintf(name, sizeof name, "CTX%d.STATUS", q);
      if (!strcmp(r[i].name, name) && !strcmp(r[i].field, "JOB"))
        snprintf(s->job[q], sizeof s->job[q], "%s", r[i].called);
      snprintf(name, sizeof name, "CTX%d", q);
      if (!strcmp(r[i].name, "DEAD") && !strcmp(r[i].field, name)) s->dead[q] = r[i].value;
    }
  ct_registers_free(r);
  return 0;
}

static json_t *as_json(const struct state *s) {
  return json_pack("{s:s, s:s, s:b, s:b}", "inference", s->job[CT_INFERENCE], "training",
                   s->job[CT_TRAINING], "inference_dead", s->dead[CT_INFERENCE], "training_dead",
                   s->dead[CT_TRAINING]);
}

static void print_text(FILE *to, const char *device, const struct state *s) {
  fprintf(to, "%s was reset; before: inference %s%s, training %s%s\n", device, s->job[CT_INFERENCE],
          s->dead[CT_INFERENCE] ? ", its memory port dead" : "", s->job[CT_TRAINING],
          s->dead[CT_TRAINING] ? ", its memory port dead" : "");
}

static bool is_well(const struct state *s) {
  return !strcmp(s->job[0], "idle") && !strcmp(s->job[1], "idle") && !s->dead[0] && !s->dead[1];
}

int verb_reset(int argc, char **argv) {
  static const struct cli_option options[] = {
      CLI_DEVICE_AT(struct options, device),
      {"json", "FILE", "Write the state before and after (- for standard output)",
       CLI_FILE_AT(struct options, json, CLI_WRITE)}};
  static const struct cli_command command = {
      CLI_COMMAND(options),
      .doc =
          "Resets a device and says in which state it was. What other programs do on it ends. "
          "Device memory is left as it is."
          "\vExample:\n  coltrain reset --device usb:\n"};
  struct options o = {.device = CLI_DEVICE};
  struct state before, after;
  ct_device *dev;
  if (cli_options(&command, argc, argv, &o)) return 1;
  if (look(o.device, &before) || cli_open(o.device, &dev)) return 1;
  ct_close(dev);
  if (look(o.device, &after)) return 1;
  if (!is_well(&after))
    return cli_fail("%s is not idle after a reset: power it off, or load its bitstream again",
                    o.device);
  print_text(cli_text(o.json), o.device, &before);
  return cli_json_write(o.json, json_pack("{s:s, s:o, s:o}", "device", o.device, "before",
                                          as_json(&before), "after", as_json(&after)));
}
