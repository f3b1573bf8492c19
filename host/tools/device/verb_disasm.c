/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "ct_disasm.h"
#include "ct_prog.h"

/* WINDOW: scratchpad words of a queue on a device of 1 MiB, the default: half of them. */
enum { MAX_ARGS = 3, WINDOW = 32768, PROGRAM_BYTES = CT_PROG_MAX * CT_CMD_BYTES };

struct options {
  const char *args[MAX_ARGS];
  unsigned count;
  bool matmul, force;
  const char *result; /* NULL: FP32 */
  uint32_t shape[3];
};

static void take_result(void *input, const char *arg, const struct argp_state *state) {
  struct options *o = input;
  o->result = arg;
  if (strcmp(arg, "fp32") != 0 && strcmp(arg, "hbfp8") != 0)
    argp_error(state, "--result: \"%s\" is not fp32 or hbfp8", arg);
}

static void take_arg(void *input, const char *arg, const struct argp_state *state) {
  struct options *o = input;
  if (o->count >= MAX_ARGS) argp_error(state, "\"%s\" is one argument too many", arg);
  o->args[o->count++] = arg;
}

static void end(void *input, const struct argp_state *state) {
  static const char *const names[3] = {"M", "N", "K"};
  struct options *o = input;
  if (o->count != (o->matmul ? 3u : 1u))
    argp_error(state, o->matmul ? "--matmul needs three sizes: M N K"
                                : "one file with a program is needed, or --matmul M N K");
  if (o->result && !o->matmul) argp_error(state, "--result is for --matmul");
  if (o->force && o->matmul) argp_error(state, "--force is for a file");
  for (unsigned i = 0; o->matmul && i < 3; ++i)
    o->shape[i] = (uint32_t)cli_count(state, names[i], o->args[i], 1, UINT32_MAX / 64);
}

static void print_line(void *arg, const char *text) {
  (void)arg;
  puts(text);
}

/* At most one byte more than the longest program; *size says how many were read. */
static int read_file(const char *path, uint8_t *bytes, size_t room, size_t *size) {
  const bool standard = !strcmp(path, "-");
  FILE *file = standard ? stdin : fopen(path, "rb");
  if (!file) return cli_fail("%s: cannot be opened: %s", path, strerror(errno));
  errno = 0;
  *size = fread(bytes, 1, room, file);
  const bool bad = ferror(file);
  const int error = errno;
  if (!standard) fclose(file);
  return bad ? cli_fail("%s: cannot be read: %s", path, strerror(error)) : 0;
}

/* Files that are taken for programs by mistake: what they begin with. */
static const char *kind_of(const uint8_t *bytes, size_t size) {
  static const struct {
    const char *magic, *kind;
  } kinds[] = {{"\x93NUMPY", "a NumPy matrix"},
               {"COLTRAIN", "a model"},
               {"\x1f\x8b", "gzip data"},
               {"\x7f"
                "ELF",
                "an ELF file"},
               {"PK\x03\x04", "a ZIP archive"}};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; ++i) {
    const size_t n = strlen(kinds[i].magic);
    if (size >= n && memcmp(bytes, kinds[i].magic, n) == 0) return kinds[i].kind;
  }
  return NULL;
}

/* A program has commands that there are, and an END. 0, or 1 after a sentence. */
static int check_program(const char *path, const struct ct_cmd *cmds, size_t count) {
  size_t ends = 0;
  for (size_t i = 0; i < count; ++i) {
    const uint32_t code = CT_GET(&cmds[i], ALL_OP);
    if (!ct_op_find(code))
      return cli_fail(
          "%s: is no program: command %zu has the code 0x%02x, which is no command's (--force "
          "shows "
          "it all the same)",
          path, i, (unsigned)code);
    ends += code == CT_OP_END;
  }
  if (ends) return 0;
  return cli_fail(
      "%s: is no program, or was cut short: none of its %zu commands is END (--force shows it all "
      "the same)",
      path, count);
}

static int show_file(const char *path, bool force) {
  uint8_t bytes[PROGRAM_BYTES + 1];
  struct ct_cmd cmds[CT_PROG_MAX];
  size_t size = 0;
  if (read_file(path, bytes, sizeof bytes, &size)) return 1;
  const char *kind = kind_of(bytes, size);
  if (kind && !force) return cli_fail("%s: is %s, not a program", path, kind);
  if (size == 0 || size % CT_CMD_BYTES || size > PROGRAM_BYTES)
    return cli_fail("%s: has %s%zu bytes; a program is 1..%d commands of %d bytes", path,
                    size == sizeof bytes ? "at least " : "", size, CT_PROG_MAX, CT_CMD_BYTES);
  for (size_t i = 0; i < size / CT_CMD_BYTES; ++i)
    cmds[i] = ct_cmd_from_bytes(bytes + i * CT_CMD_BYTES);
  if (!force && check_program(path, cmds, size / CT_CMD_BYTES)) return 1;
  ct_disassemble(bytes, size / CT_CMD_BYTES, print_line, NULL);
  return 0;
}

static int show_matmul(const struct options *o) {
  char text[512] = "";
  const struct ct_why why = {text, sizeof text};
  const struct ct_gemm shape = {
      .m = o->shape[0],
      .n = o->shape[1],
      .k = o->shape[2],
      .pitch = (o->shape[1] + 3) / 4,
      .spm_words = WINDOW,
      .result = o->result && !strcmp(o->result, "hbfp8") ? CT_GEMM_HBFP8 : CT_GEMM_F32};
  struct ct_code code = {NULL, 0};
  const int rc = ct_prog_gemm(&shape, &code, &why);
  if (rc < 0)
    return cli_fail("no program for a product of %u x %u x %u: %s", shape.m, shape.n, shape.k,
                    *text ? text : ct_strerror(rc));
  ct_disasm(code.cmd, code.count, print_line, NULL);
  free(code.cmd);
  return 0;
}

int verb_disasm(int argc, char **argv) {
  static const struct cli_option options[] = {
      {"matmul", NULL, "Show the library's program for a product of that shape",
       CLI_FLAG_AT(struct options, matmul)},
      {"result", "FORMAT", "Of --matmul: fp32 (the default) or hbfp8", .call = take_result},
      {"force", NULL, "Show a file even if it is no program", CLI_FLAG_AT(struct options, force)}};
  static const struct cli_command command = {
      CLI_COMMAND(options), .arg = take_arg, .end = end, .args = "FILE\n--matmul M N K",
      .doc =
          "Shows a program (commands of 32 bytes; - is standard input) as text, one command a "
          "line.\vExample:\n  coltrain disasm --matmul 64 64 64\n"};
  struct options o = {.count = 0};
  if (cli_options(&command, argc, argv, &o)) return 1;
  return o.matmul ? show_matmul(&o) : show_file(o.args[0], o.force);
}
