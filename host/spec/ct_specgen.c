/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns the tables of rtl/spec/ into what the RTL, the C code and the manual use.
 *
 *   ct_specgen sv      ct_spec.svh, included inside package ct_pkg
 *   ct_specgen header  coltrain_spec.h
 *   ct_specgen md      the manual's tables, Markdown
 *
 * Every run checks the tables first; a mistake ends it with one sentence and exit code 1.
 */
#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { CMD_BITS = 256, NAME_SIZE = 64 };

struct op {
  const char *name;
  unsigned code;
  const char *group, *text;
};
struct field {
  const char *group, *name;
  unsigned lsb, width;
  const char *kind, *text;
};
struct sum {
  const char *group, *value, *reg;
  unsigned min, max;
};
/* A row of any other table: registers, codes, counters, words, constants. */
struct item {
  const char *name;
  uint32_t value;
  const char *access, *text;
};
/* A field of a register. */
struct bits {
  const char *reg, *name;
  unsigned msb, lsb;
  const char *values;
};

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

/* Each table is one pass over the definitions with all macros but its own empty. */
#define CT_OP(name, code, group, text)
#define CT_FIELD(group, name, lsb, width, kind, text)
#define CT_SUM(group, value, reg, min, max)
#define CT_REG(name, offset, access, text)
#define CT_CREG(name, offset, access, text)
#define CT_BITS(reg, name, msb, lsb, values)
#define CT_DESC(name, word, text)
#define CT_ERR(name, code, text)
#define CT_CNT(name, index, text)
#define CT_CONST(name, value, text)

#undef CT_OP
#define CT_OP(name, code, group, text) {#name, code, #group, text},
static const struct op ops[] = {
#include "ct_isa.def"
};
#undef CT_OP
#define CT_OP(name, code, group, text)

#undef CT_FIELD
#define CT_FIELD(group, name, lsb, width, kind, text) {#group, #name, lsb, width, #kind, text},
static const struct field fields[] = {
#include "ct_isa.def"
};
#undef CT_FIELD
#define CT_FIELD(group, name, lsb, width, kind, text)

#undef CT_SUM
#define CT_SUM(group, value, reg, min, max) {#group, #value, #reg, min, max},
static const struct sum sums[] = {
#include "ct_isa.def"
};
#undef CT_SUM
#define CT_SUM(group, value, reg, min, max)

#undef CT_REG
#define CT_REG(name, offset, access, text) {#name, offset, #access, text},
static const struct item regs[] = {
#include "ct_regs.def"
};
#undef CT_REG
#define CT_REG(name, offset, access, text)

#undef CT_CREG
#define CT_CREG(name, offset, access, text) {#name, offset, #access, text},
static const struct item cregs[] = {
#include "ct_regs.def"
};
#undef CT_CREG
#define CT_CREG(name, offset, access, text)

#undef CT_BITS
#define CT_BITS(reg, name, msb, lsb, values) {#reg, #name, msb, lsb, values},
static const struct bits bits[] = {
#include "ct_regs.def"
};
#undef CT_BITS
#define CT_BITS(reg, name, msb, lsb, values)

#undef CT_DESC
#define CT_DESC(name, word, text) {#name, word, "", text},
static const struct item descs[] = {
#include "ct_regs.def"
};
#undef CT_DESC
#define CT_DESC(name, word, text)

#undef CT_ERR
#define CT_ERR(name, code, text) {#name, code, "", text},
static const struct item errs[] = {
#include "ct_regs.def"
};
#undef CT_ERR
#define CT_ERR(name, code, text)

#undef CT_CNT
#define CT_CNT(name, index, text) {#name, index, "", text},
static const struct item cnts[] = {
#include "ct_regs.def"
};
#undef CT_CNT
#define CT_CNT(name, index, text)

#undef CT_CONST
#define CT_CONST(name, value, text) {#name, value, "", text},
static const struct item consts[] = {
#include "ct_regs.def"
};

static bool same(const char *a, const char *b) {
  return strcmp(a, b) == 0;
}

/* ---- Names --------------------------------------------------------------------------------- */

struct name {
  char s[NAME_SIZE];
};

/* MXU_ROWS -> MxuRows; MM -> Mm. */
static struct name camel(const char *upper) {
  struct name n;
  size_t len = 0;
  bool start = true;
  for (; *upper && len + 1 < sizeof n.s; ++upper) {
    if (*upper == '_') {
      start = true;
    } else {
      n.s[len++] = (char)(start ? toupper((unsigned char)*upper) : tolower((unsigned char)*upper));
      start = false;
    }
  }
  n.s[len] = 0;
  return n;
}

/* RowStride -> ROW_STRIDE; ATrans -> A_TRANS; AM -> AM; D1 -> D1. */
static struct name snake(const char *mixed) {
  struct name n;
  size_t len = 0;
  for (size_t i = 0; mixed[i] && len + 2 < sizeof n.s; ++i) {
    const bool word =
        i > 0 && isupper((unsigned char)mixed[i]) &&
        (islower((unsigned char)mixed[i + 1]) || !isupper((unsigned char)mixed[i - 1]));
    if (word) n.s[len++] = '_';
    n.s[len++] = (char)toupper((unsigned char)mixed[i]);
  }
  n.s[len] = 0;
  return n;
}

/* ---- Checks -------------------------------------------------------------------------------- */

static bool wrong(const char *what, const char *a, const char *b) {
  fprintf(stderr, "ct_specgen: %s: %s%s%s.\n", what, a, *b ? " and " : "", b);
  return false;
}

static const struct field *find_field(const char *group, const char *name) {
  for (size_t i = 0; i < COUNT(fields); ++i)
    if (same(fields[i].group, group) && same(fields[i].name, name)) return &fields[i];
  return NULL;
}

static bool share_commands(const struct field *a, const struct field *b) {
  return same(a->group, b->group) || same(a->group, "ALL") || same(b->group, "ALL");
}

static bool check_field(const struct field *f) {
  static const struct {
    const char *kind;
    unsigned width; /* 0: any */
  } kinds[] = {{"UINT", 0}, {"INT", 0}, {"FLAG", 1}, {"SEM", 5}, {"REG", 5}, {"F32", 32}};
  size_t k = 0;
  while (k < COUNT(kinds) && !same(kinds[k].kind, f->kind))
    ++k;
  if (k == COUNT(kinds)) return wrong("unknown kind of field", f->name, f->kind);
  if (kinds[k].width && kinds[k].width != f->width)
    return wrong("width does not fit the kind of field", f->group, f->name);
  if (f->width < 1 || f->width > 32) return wrong("width is not 1..32 in field", f->group, f->name);
  if (f->lsb + f->width > CMD_BITS) return wrong("field past bit 255", f->group, f->name);
  for (const struct field *g = fields; g < f; ++g) {
    if (!share_commands(f, g)) continue;
    if (same(f->name, g->name)) return wrong("two fields of one name", f->group, f->name);
    if (f->lsb < g->lsb + g->width && g->lsb < f->lsb + f->width)
      return wrong("fields overlap", f->name, g->name);
  }
  return true;
}

static bool check_commands(void) {
  for (size_t i = 0; i < COUNT(fields); ++i)
    if (!check_field(&fields[i])) return false;
  const struct field *code = find_field("ALL", "Op");
  for (size_t i = 0; i < COUNT(ops); ++i) {
    if (!code || ops[i].code >> code->width)
      return wrong("operation code too wide", ops[i].name, "");
    for (size_t j = 0; j < i; ++j) {
      if (ops[i].code == ops[j].code) return wrong("one code for", ops[i].name, ops[j].name);
      if (same(ops[i].name, ops[j].name)) return wrong("two commands of one name", ops[i].name, "");
    }
  }
  for (size_t i = 0; i < COUNT(sums); ++i) {
    const struct field *reg = find_field(sums[i].group, sums[i].reg);
    if (!find_field(sums[i].group, sums[i].value) || !reg || !same(reg->kind, "REG"))
      return wrong("a sum names unknown fields", sums[i].value, sums[i].reg);
  }
  return true;
}

static bool check_items(const char *what, const struct item *t, size_t count, uint32_t limit,
                        uint32_t step) {
  for (size_t i = 0; i < count; ++i) {
    if (t[i].value > limit || t[i].value % step) return wrong(what, t[i].name, "");
    for (size_t j = 0; j < i; ++j) {
      if (same(t[i].name, t[j].name)) return wrong("a name is used twice", t[i].name, "");
      if (limit != UINT32_MAX && t[i].value == t[j].value)
        return wrong("one number for", t[i].name, t[j].name);
    }
  }
  return true;
}

/* Global registers lie below 0x080, those of the batcher in 0x300 to 0x37c. */
static bool check_regs(void) {
  for (size_t i = 0; i < COUNT(regs); ++i)
    if (regs[i].value >= 0x80 && regs[i].value < 0x300)
      return wrong("register out of place", regs[i].name, "");
  return check_items("register out of place", regs, COUNT(regs), 0x37c, 4);
}

static const struct item *find_item(const struct item *t, size_t count, const char *name) {
  for (size_t i = 0; i < count; ++i)
    if (same(t[i].name, name)) return &t[i];
  return NULL;
}

/* Fields of one register have no bit in common, and none has more names than values. */
static bool check_bits(void) {
  for (size_t i = 0; i < COUNT(bits); ++i) {
    const struct bits *b = &bits[i];
    const struct item *reg = find_item(regs, COUNT(regs), b->reg);
    unsigned names = *b->values != 0;
    if (!reg) reg = find_item(cregs, COUNT(cregs), b->reg);
    if (!reg || same(reg->access, "WO")) return wrong("no such register to read", b->reg, b->name);
    if (b->msb > 31 || b->lsb > b->msb) return wrong("field out of place", b->reg, b->name);
    for (const char *v = b->values; *v; ++v)
      names += *v == '|';
    if (names > 256 || names > UINT64_C(1) << (b->msb - b->lsb + 1))
      return wrong("more names than values", b->reg, b->name);
    for (size_t j = 0; j < i; ++j)
      if (same(bits[j].reg, b->reg) && bits[j].lsb <= b->msb && b->lsb <= bits[j].msb)
        return wrong("fields share a bit", bits[j].name, b->name);
  }
  return true;
}

static bool check_all(void) {
  return check_commands() && check_regs() && check_bits() &&
         check_items("context register out of place", cregs, COUNT(cregs), 0xfc, 4) &&
         check_items("descriptor word out of place", descs, COUNT(descs), 31, 1) &&
         check_items("error code too large", errs, COUNT(errs), 255, 1) &&
         check_items("counter index too large", cnts, COUNT(cnts), 31, 1) &&
         check_items("constant", consts, COUNT(consts), UINT32_MAX, 1);
}

/* ---- SystemVerilog ------------------------------------------------------------------------- */

static void sv_items(const char *prefix, const struct item *t, size_t count, const char *type,
                     const char *format) {
  putchar('\n');
  for (size_t i = 0; i < count; ++i) {
    printf("localparam %s %s%s = ", type, prefix, camel(t[i].name).s);
    printf(format, (unsigned)t[i].value);
    printf(";\n");
  }
}

/* The group that names the queue of a group's commands: its own, but for WPIX and WTAP. */
static const char *queue_of(const char *group) {
  return same(group, "WPIX") || same(group, "WTAP") ? "MM" : group;
}

/* Which bits of a resolved command its unit reads: all fields but the code, which the queue
 * implies (that of MM: all but its two lowest bits), and the numbers of registers. */
static void mark_kept(const char *group, bool kept[256]) {
  memset(kept, 0, 256 * sizeof kept[0]);
  kept[0] = kept[1] = same(group, "MM");
  for (size_t i = 0; i < COUNT(fields); ++i) {
    const struct field *f = &fields[i];
    if (!same(queue_of(f->group), group) && !(same(f->group, "ALL") && same(f->kind, "SEM")))
      continue;
    if (same(f->kind, "REG")) continue;
    for (unsigned b = f->lsb; b < f->lsb + f->width; ++b)
      kept[b] = true;
  }
}

/* The kept bits of cmd side by side or, back in a command, each in its place with zeros between. */
static void sv_runs(const bool kept[256], unsigned total, bool back) {
  unsigned top = total;
  for (int hi = 255; hi >= 0;) {
    int lo = hi;
    while (lo > 0 && kept[lo - 1] == kept[hi])
      --lo;
    const unsigned width = (unsigned)(hi - lo + 1);
    const char *comma = hi == 255 ? "" : ", ";
    if (kept[hi] && back) {
      printf("%skept[%u:%u]", top == total ? comma : ", ", top - 1, top - width);
      top -= width;
    } else if (kept[hi]) {
      printf("%scmd[%d:%d]", top == total ? "" : ", ", hi, lo);
      top -= width;
    } else if (back) {
      printf("%s%u'd0", comma, width);
    }
    hi = lo - 1;
  }
}

static void sv_pack(const char *group) {
  bool kept[256];
  mark_kept(group, kept);
  unsigned total = 0;
  for (unsigned b = 0; b < 256; ++b)
    total += kept[b];
  const struct name g = camel(group);
  printf("\nlocalparam int unsigned %sKept = %u;\n", g.s, total);
  printf("function automatic logic [%u:0] Pack%s(input logic [255:0] cmd);\n  Pack%s = {",
         total - 1, g.s, g.s);
  sv_runs(kept, total, false);
  printf("};\nendfunction\n");
  printf("function automatic logic [255:0] Unpack%s(input logic [%u:0] kept);\n  Unpack%s = {", g.s,
         total - 1, g.s);
  sv_runs(kept, total, true);
  printf("};\nendfunction\n");
}

static void print_sv(void) {
  printf(
      "// SPDX-License-Identifier: Apache-2.0\n//\n"
      "// Made by host/spec/ct_specgen.c from rtl/spec/*.def; included inside package ct_pkg.\n\n");
  for (size_t i = 0; i < COUNT(ops); ++i)
    printf("localparam logic [5:0] Op%s = 6'h%02x;\n", camel(ops[i].name).s, ops[i].code);
  const char *group = "";
  for (size_t i = 0; i < COUNT(fields); ++i) {
    const struct field *f = &fields[i];
    const struct name g = camel(f->group);
    if (!same(group, f->group)) putchar('\n');
    group = f->group;
    printf("localparam int unsigned %s%sLsb = %u; localparam int unsigned %s%sW = %u;\n", g.s,
           f->name, f->lsb, g.s, f->name, f->width);
  }
  printf("\n// Ranges of fields that a register is added to (Max 0: no limit).\n");
  for (size_t i = 0; i < COUNT(sums); ++i) {
    const struct name g = camel(sums[i].group);
    printf("localparam int unsigned %s%sMin = %u; localparam int unsigned %s%sMax = %u;\n", g.s,
           sums[i].value, sums[i].min, g.s, sums[i].value, sums[i].max);
  }
  printf("\n// What a queue keeps of a command: the fields that its unit reads.\n");
  for (size_t i = 0; i < COUNT(ops); ++i) {
    const char *of = ops[i].group;
    if (same(of, "CTL") || same(of, "ADDI") || (i && same(of, ops[i - 1].group)) ||
        !same(of, queue_of(of)))
      continue;
    sv_pack(of);
  }
  sv_items("Reg", regs, COUNT(regs), "logic [11:0]", "12'h%03x");
  sv_items("Creg", cregs, COUNT(cregs), "logic [7:0]", "8'h%02x");
  sv_items("Err", errs, COUNT(errs), "logic [7:0]", "8'd%u");
  sv_items("Cnt", cnts, COUNT(cnts), "int unsigned", "%u");
  sv_items("Desc", descs, COUNT(descs), "int unsigned", "%u");
  sv_items("", consts, COUNT(consts), "int unsigned", "32'h%08x");
}

/* ---- C header ------------------------------------------------------------------------------ */

static void h_items(const char *prefix, const struct item *t, size_t count) {
  putchar('\n');
  for (size_t i = 0; i < count; ++i)
    printf("#define CT_%s%s 0x%xu%s%s%s\n", prefix, t[i].name, (unsigned)t[i].value,
           *t[i].text ? " /* " : "", t[i].text, *t[i].text ? " */" : "");
}

static void h_fields(void) {
  printf("\n/* Fields: CT_F_<group>_<field> is its row in the table, _LSB and _W its place. */\n");
  printf("enum ct_field_id {\n");
  for (size_t i = 0; i < COUNT(fields); ++i)
    printf("  CT_F_%s_%s,\n", fields[i].group, snake(fields[i].name).s);
  printf("  CT_NUM_FIELDS\n};\n");
  for (size_t i = 0; i < COUNT(fields); ++i) {
    const struct name n = snake(fields[i].name);
    printf("#define CT_F_%s_%s_LSB %u\n#define CT_F_%s_%s_W %u\n", fields[i].group, n.s,
           fields[i].lsb, fields[i].group, n.s, fields[i].width);
  }
}

static void h_types(void) {
  printf(
      "\nenum ct_field_kind { CT_KIND_UINT, CT_KIND_INT, CT_KIND_FLAG, CT_KIND_SEM, "
      "CT_KIND_REG, CT_KIND_F32 };\n");
  printf("enum ct_group {");
  const char *group = "";
  for (size_t i = 0; i < COUNT(fields); ++i) {
    if (!same(group, fields[i].group)) printf(" CT_GROUP_%s,", fields[i].group);
    group = fields[i].group;
  }
  printf(" CT_NUM_GROUPS };\n");
  printf(
      "\nstruct ct_op_info {\n  uint8_t code, group; /* enum ct_group */\n  const char *name, "
      "*text;\n};\n"
      "struct ct_field_info {\n  uint8_t group, lsb, width, kind; /* enum ct_group, enum "
      "ct_field_kind */\n"
      "  const char *name, *text;\n};\n"
      "/* value becomes value + R[reg] and must lie in min..max (max 0: no limit). */\n"
      "struct ct_sum_info {\n  uint8_t group, value, reg; /* enum ct_group, enum ct_field_id */\n"
      "  uint32_t min, max;\n};\n"
      "struct ct_name_info {\n  uint32_t value;\n  const char *name, *text;\n};\n"
      "struct ct_reg_info {\n  uint16_t offset;\n  uint8_t context, readable, writable;\n"
      "  const char *name, *text;\n};\n"
      "/* values: the names of 0, 1, ... with bars between; \"\": a number. */\n"
      "struct ct_bits_info {\n  uint8_t msb, lsb;\n  const char *reg, *name, *values;\n};\n");
  printf(
      "\n#define CT_NUM_OPS %zu\n#define CT_NUM_SUMS %zu\n#define CT_NUM_DEV %zu\n#define "
      "CT_NUM_CNT %zu\n#define CT_NUM_REG_INFOS %zu\n#define CT_NUM_BITS %zu\n",
      COUNT(ops), COUNT(sums), COUNT(errs), COUNT(cnts), COUNT(regs) + COUNT(cregs), COUNT(bits));
  printf(
      "\nextern const struct ct_op_info ct_ops[CT_NUM_OPS];\n"
      "extern const struct ct_field_info ct_fields[CT_NUM_FIELDS];\n"
      "extern const struct ct_sum_info ct_sums[CT_NUM_SUMS];\n"
      "extern const struct ct_name_info ct_dev_names[CT_NUM_DEV];\n"
      "extern const struct ct_name_info ct_cnt_names[CT_NUM_CNT];\n"
      "extern const struct ct_reg_info ct_reg_infos[CT_NUM_REG_INFOS];\n"
      "extern const struct ct_bits_info ct_bits_infos[CT_NUM_BITS];\n");
}

static void h_names(const char *name, const char *num, const struct item *t, size_t count) {
  printf("const struct ct_name_info %s[%s] = {\n", name, num);
  for (size_t i = 0; i < count; ++i)
    printf("    {%u, \"%s\", \"%s\"},\n", (unsigned)t[i].value, t[i].name, t[i].text);
  printf("};\n");
}

static void h_regs(bool context, const struct item *t, size_t count) {
  for (size_t i = 0; i < count; ++i)
    printf("    {0x%x, %d, %d, %d, \"%s\", \"%s\"},\n", (unsigned)t[i].value, context,
           !same(t[i].access, "WO"), !same(t[i].access, "RO"), t[i].name, t[i].text);
}

static void h_registers(void) {
  printf("const struct ct_reg_info ct_reg_infos[CT_NUM_REG_INFOS] = {\n");
  h_regs(false, regs, COUNT(regs));
  h_regs(true, cregs, COUNT(cregs));
  printf("};\nconst struct ct_bits_info ct_bits_infos[CT_NUM_BITS] = {\n");
  for (size_t i = 0; i < COUNT(bits); ++i)
    printf("    {%u, %u, \"%s\", \"%s\", \"%s\"},\n", bits[i].msb, bits[i].lsb, bits[i].reg,
           bits[i].name, bits[i].values);
  printf("};\n");
}

static void h_tables(void) {
  printf(
      "\n/* The tables themselves, in the one source that asks for them (ct_cmd.c). */\n#ifdef "
      "CT_SPEC_TABLES\n");
  printf("const struct ct_op_info ct_ops[CT_NUM_OPS] = {\n");
  for (size_t i = 0; i < COUNT(ops); ++i)
    printf("    {0x%02x, CT_GROUP_%s, \"%s\", \"%s\"},\n", ops[i].code, ops[i].group, ops[i].name,
           ops[i].text);
  printf("};\nconst struct ct_field_info ct_fields[CT_NUM_FIELDS] = {\n");
  for (size_t i = 0; i < COUNT(fields); ++i)
    printf("    {CT_GROUP_%s, %u, %u, CT_KIND_%s, \"%s\", \"%s\"},\n", fields[i].group,
           fields[i].lsb, fields[i].width, fields[i].kind, fields[i].name, fields[i].text);
  printf("};\nconst struct ct_sum_info ct_sums[CT_NUM_SUMS] = {\n");
  for (size_t i = 0; i < COUNT(sums); ++i)
    printf("    {CT_GROUP_%s, CT_F_%s_%s, CT_F_%s_%s, %u, %u},\n", sums[i].group, sums[i].group,
           snake(sums[i].value).s, sums[i].group, snake(sums[i].reg).s, sums[i].min, sums[i].max);
  printf("};\n");
  h_names("ct_dev_names", "CT_NUM_DEV", errs, COUNT(errs));
  h_names("ct_cnt_names", "CT_NUM_CNT", cnts, COUNT(cnts));
  h_registers();
  printf("#endif\n");
}

static void print_header(void) {
  printf(
      "/* SPDX-License-Identifier: Apache-2.0 */\n"
      "/* Made by host/spec/ct_specgen.c from rtl/spec/ct_isa.def and ct_regs.def. */\n"
      "#ifndef COLTRAIN_SPEC_H\n#define COLTRAIN_SPEC_H\n\n#include <stdint.h>\n\n");
  for (size_t i = 0; i < COUNT(ops); ++i)
    printf("#define CT_OP_%s 0x%02xu /* %s */\n", ops[i].name, ops[i].code, ops[i].text);
  h_fields();
  h_items("REG_", regs, COUNT(regs));
  h_items("CREG_", cregs, COUNT(cregs));
  h_items("DEV_", errs, COUNT(errs));
  h_items("CNT_", cnts, COUNT(cnts));
  h_items("DESC_", descs, COUNT(descs));
  h_items("", consts, COUNT(consts));
  h_types();
  h_tables();
  printf("\n#endif\n");
}

/* ---- Manual -------------------------------------------------------------------------------- */

/* A cell: the bar would end it. */
static void md_text(const char *s) {
  for (; *s; ++s) {
    if (*s == '|' || *s == '*') putchar('\\');
    putchar(*s);
  }
}

static void md_items(const char *title, const char *columns, const char *format,
                     const struct item *t, size_t count, bool access) {
  printf("\n## %s\n\n%s\n|---|---|---|%s\n", title, columns, access ? "---|" : "");
  for (size_t i = 0; i < count; ++i) {
    printf("| ");
    printf(format, (unsigned)t[i].value);
    printf(" | `%s` | ", t[i].name);
    if (access) printf("%s | ", t[i].access);
    md_text(t[i].text);
    printf(" |\n");
  }
}

static const struct sum *sum_of(const struct field *f) {
  for (size_t i = 0; i < COUNT(sums); ++i)
    if (same(sums[i].group, f->group) && same(sums[i].value, f->name)) return &sums[i];
  return NULL;
}

static void md_field(const struct field *f) {
  printf("| %u..%u | `%s` | %s | ", f->lsb + f->width - 1, f->lsb, f->name, f->kind);
  md_text(f->text);
  const struct sum *s = sum_of(f);
  if (s) printf("; R[%s] is added", s->reg);
  if (s && s->max) printf(", the sum is %u..%u", s->min, s->max);
  if (s && s->min && !s->max) printf(", the sum is at least %u", s->min);
  printf(" |\n");
}

static void md_fields(void) {
  const char *group = "";
  for (size_t i = 0; i < COUNT(fields); ++i) {
    if (!same(group, fields[i].group)) {
      group = fields[i].group;
      printf("\n## Fields of ");
      if (same(group, "ALL")) printf("every command");
      for (size_t k = 0, n = 0; k < COUNT(ops); ++k)
        if (same(ops[k].group, group)) printf("%s%s", n++ ? ", " : "", ops[k].name);
      printf("\n\n| bits | field | kind | meaning |\n|---|---|---|---|\n");
    }
    md_field(&fields[i]);
  }
}

static void print_md(void) {
  printf(
      "# Reference tables\n\nMade from `rtl/spec/ct_isa.def` and `rtl/spec/ct_regs.def`. How "
      "things "
      "work together is told in `docs/programming.md`.\n\n## Commands\n\n"
      "| code | name | fields | what it does |\n|---|---|---|---|\n");
  for (size_t i = 0; i < COUNT(ops); ++i) {
    printf("| 0x%02x | `%s` | %s | ", ops[i].code, ops[i].name, ops[i].group);
    md_text(ops[i].text);
    printf(" |\n");
  }
  md_fields();
  md_items("Global registers", "| offset | name | access | meaning |", "0x%03x", regs, COUNT(regs),
           true);
  md_items("Registers of a context (at CTX_BASE + context * CTX_STRIDE)",
           "| offset | name | access | meaning |", "0x%02x", cregs, COUNT(cregs), true);
  md_items("Job descriptor", "| word | name | meaning |", "%u", descs, COUNT(descs), false);
  md_items("Completion codes", "| code | name | meaning |", "%u", errs, COUNT(errs), false);
  md_items("Counters (64 bit, at CNT_BASE + (context * 32 + index) * 8)",
           "| index | name | meaning |", "%u", cnts, COUNT(cnts), false);
  md_items("Constants", "| value | name | meaning |", "0x%x", consts, COUNT(consts), false);
}

int main(int argc, char **argv) {
  static const struct {
    const char *name;
    void (*print)(void);
  } outputs[] = {{"sv", print_sv}, {"header", print_header}, {"md", print_md}};
  if (!check_all()) return 1;
  for (size_t i = 0; i < COUNT(outputs); ++i) {
    if (argc != 2 || !same(argv[1], outputs[i].name)) continue;
    outputs[i].print();
    if (fflush(stdout) == 0 && !ferror(stdout)) return 0;
    fprintf(stderr, "ct_specgen: cannot write the output.\n");
    return 1;
  }
  fprintf(stderr, "usage: ct_specgen sv|header|md\n");
  return 1;
}
