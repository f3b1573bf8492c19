/* SPDX-License-Identifier: Apache-2.0 */
#include "ct_damage.h"

#include <inttypes.h>
#include <string.h>

#include "ct_act_pages.h"
#include "ct_work.h"

enum {
  INFERENCE = 0,
  TRAINING = 1,
  LIMIT = 400000,
  FRESH = 40, /* flips between new operands */
  BUSY = 2,   /* jobs of inference beside the load */
  GROUPS = CT_WORK_UNITS * CT_WORK_GROUPS,
  OUT_BYTES = 16 * CT_GEN_OUT_UNITS,
  CHUNK = 1 << 20
};

struct bench {
  const struct ct_damage *setup;
  struct ct_damage_result *result;
  struct ct_pair pair;
  ct_rng rng;
  uint32_t tag;
  struct ct_gen_prog front, back, busy;
  uint32_t entry[GROUPS];
  uint8_t *bytes[2], *out; /* a piece of memory of each; training's output as it was */
};

struct damage {
  enum ct_damage_place place;
  unsigned group;
  uint32_t bit;  /* of the group, or of the index entry */
  uint64_t addr; /* of its byte */
};

/* ---- Jobs ---------------------------------------------------------------------------------- */

static void submit(struct bench *b, unsigned device, unsigned ctx, const struct ct_gen_prog *prog) {
  const struct ct_rig_job job = {.prog = prog, .tag = ++b->tag};
  ct_rig_submit(&b->pair.rig[device], ctx, &job);
  b->result->jobs += device == 0;
}

/* Training's job beside inference's; how it ended. False: inference did not do its work. */
static bool run(struct bench *b, unsigned device, const struct ct_gen_prog *prog,
                struct ct_rig_cpl *cpl) {
  struct ct_rig *rig = &b->pair.rig[device];
  const uint32_t tag = b->tag;
  bool right = true;
  for (unsigned i = 0; i < BUSY; ++i)
    submit(b, device, INFERENCE, &b->busy);
  submit(b, device, TRAINING, prog);
  ct_rig_ring(rig, INFERENCE);
  ct_rig_ring(rig, TRAINING);
  *cpl = ct_rig_reap(rig, TRAINING, LIMIT);
  for (unsigned i = 0; i < BUSY; ++i)
    right &= ct_rig_reap(rig, INFERENCE, LIMIT).code == CT_DEV_OK;
  if (!device) b->tag = tag; /* the emulator's have the same */
  return right;
}

/* On both devices. False: inference is wrong, or they do not end alike. */
static bool run_both(struct bench *b, const struct ct_gen_prog *prog, uint32_t *code,
                     uint32_t *addr) {
  struct ct_rig_cpl cpl[2];
  bool right = true;
  for (unsigned d = 0; d < 2; ++d)
    right &= run(b, d, prog, &cpl[d]);
  *code = cpl[0].code;
  *addr = cpl[0].addr;
  return right && cpl[0].code == cpl[1].code && cpl[0].addr == cpl[1].addr;
}

/* Memory of both is the same; where a job failed but for training's output, of which one may have
 * written more than the other. */
static bool same_memory(struct bench *b, bool failed) {
  const uint64_t lo = ct_rig_addr(TRAINING, CT_RIG_OUT), hi = lo + OUT_BYTES;
  for (uint64_t at = 0; at < (uint64_t)CT_RIG_MIB << 20; at += CHUNK) {
    for (unsigned d = 0; d < 2; ++d) {
      b->pair.rig[d].ops->mem_read(b->pair.rig[d].self, at, b->bytes[d], CHUNK);
      if (failed && at <= lo && hi <= at + CHUNK) memset(b->bytes[d] + (lo - at), 0, OUT_BYTES);
    }
    if (memcmp(b->bytes[0], b->bytes[1], CHUNK)) return false;
  }
  return true;
}

/* Both halves, as if nothing had been before. */
static bool proof(struct bench *b) {
  uint32_t code[2], addr;
  ct_pair_mem_write(&b->pair, ct_rig_addr(TRAINING, CT_RIG_OUT), b->out, OUT_BYTES);
  for (unsigned d = 0; d < 2; ++d)
    ct_work_arena(&b->pair.rig[d]);
  const bool front = run_both(b, &b->front, &code[0], &addr);
  const bool back = run_both(b, &b->back, &code[1], &addr);
  return front && back && code[0] == CT_DEV_OK && code[1] == CT_DEV_OK && same_memory(b, false);
}

/* ---- Flips --------------------------------------------------------------------------------- */

static void read_entries(struct bench *b) {
  struct ct_rig *emu = &b->pair.rig[1];
  uint8_t index[16 * CT_WORK_UNITS];
  emu->ops->mem_read(emu->self, ct_rig_addr(TRAINING, CT_WORK_INDEX), index, sizeof index);
  for (unsigned g = 0; g < GROUPS; ++g)
    b->entry[g] = ct_act_entry_at(index, g / CT_WORK_GROUPS * CT_ACT_ENTRIES + g % CT_WORK_GROUPS);
}

static struct damage draw(struct bench *b) {
  struct damage d = {.group = ct_rng_below(&b->rng, GROUPS)};
  const uint32_t entry = b->entry[d.group];
  const uint32_t at = CT_ACT_ENTRIES * (d.group / CT_WORK_GROUPS) + d.group % CT_WORK_GROUPS;
  if (ct_rng_percent(&b->rng, 80)) {
    d.place = CT_DAMAGE_GROUP;
    d.bit = ct_rng_below(&b->rng, 128 * ct_act_entry_units(entry));
    d.addr = ct_rig_addr(TRAINING, CT_WORK_ARENA) + 16 * (uint64_t)ct_act_entry_place(entry);
  } else {
    d.bit = ct_rng_below(&b->rng, 32);
    d.place = d.bit < 7 ? CT_DAMAGE_LENGTH : CT_DAMAGE_WHERE;
    d.addr = ct_rig_addr(TRAINING, CT_WORK_INDEX) + 4 * (uint64_t)at;
  }
  d.addr += d.bit / 8;
  return d;
}

static void turn_over(struct bench *b, const struct damage *d) {
  uint8_t byte;
  struct ct_rig *emu = &b->pair.rig[1];
  emu->ops->mem_read(emu->self, d->addr, &byte, 1);
  byte ^= (uint8_t)(1u << d->bit % 8);
  ct_pair_mem_write(&b->pair, d->addr, &byte, 1);
}

static void print_wrong(const struct bench *b, const struct damage *d, uint32_t code, uint32_t addr,
                        const char *what) {
  static const char *const places[] = {"the group", "the length", "the place"};
  printf("  flip %lu: WRONG: %s: bit %" PRIu32 " of %s of group %u of %" PRIu32
         " units; the job ended in %s, 0x%" PRIx32 "\n",
         b->result->flips, what, d->bit, places[d->place], d->group,
         (uint32_t)ct_act_entry_units(b->entry[d->group]), ct_dev_name(code), addr);
}

static void one_flip(struct bench *b) {
  uint32_t code, addr;
  for (unsigned d = 0; d < 2; ++d)
    ct_work_arena(&b->pair.rig[d]);
  const bool stored = run_both(b, &b->front, &code, &addr) && code == CT_DEV_OK;
  read_entries(b);
  const struct damage d = draw(b);
  turn_over(b, &d);
  const bool alike = run_both(b, &b->back, &code, &addr), comp = code == CT_DEV_COMP;
  const uint32_t unit = ct_rig_unit(TRAINING, CT_WORK_INDEX) + d.group / CT_WORK_GROUPS;
  const bool told = comp && addr == unit;
  const bool named = code == CT_DEV_OK && d.place == CT_DAMAGE_WHERE;
  const bool memory = same_memory(b, code != CT_DEV_OK), works = proof(b);
  const bool wrong = !stored || !alike || !(told || named) || !memory || !works;
  if (wrong && b->result->wrong++ < 20)
    print_wrong(b, &d, code, addr,
                !stored || !alike ? "not as the emulator"
                : !memory         ? "other memory"
                : !works          ? "no right job behind it"
                                  : "not told");
  ++b->result->flips;
  ++b->result->count[d.place][wrong ? CT_DAMAGE_WRONG : comp ? CT_DAMAGE_COMP : CT_DAMAGE_NAMED];
}

/* ---- Campaign ------------------------------------------------------------------------------ */

static void new_operands(struct bench *b) {
  ct_work_fill(&b->pair, INFERENCE, CT_WORK_INFER, &b->rng);
  ct_work_fill(&b->pair, TRAINING, CT_WORK_KEPT, &b->rng);
  ct_pair_write(&b->pair, CT_REG_POLICY, ct_rng_below(&b->rng, 4));
  assert_true(proof(b));
}

static void open_bench(struct bench *b) {
  char args[64];
  b->rng = ct_rng_make(b->setup->stream);
  for (unsigned d = 0; d < 2; ++d)
    b->bytes[d] = test_malloc(CHUNK);
  b->out = test_calloc(1, OUT_BYTES);
  snprintf(args, sizeof args, "latency=20,stall=25,seed=%" PRIu64, ct_rng_u64(&b->rng));
  ct_pair_open(&b->pair, b->setup->core, args);
  ct_pair_cwrite(&b->pair, INFERENCE, CT_CREG_SPM_SIZE,
                 ct_work_make(&b->busy, INFERENCE, CT_WORK_INFER));
  assert_true(ct_work_make(&b->front, TRAINING, CT_WORK_FRONT) <= CT_GEN_SPM);
  assert_true(ct_work_make(&b->back, TRAINING, CT_WORK_BACK) <= CT_GEN_SPM);
}

static void close_bench(struct bench *b) {
  b->pair.rig[0].ops->now(b->pair.rig[0].self, &b->result->cycles);
  ct_pair_close(&b->pair);
  for (unsigned d = 0; d < 2; ++d)
    test_free(b->bytes[d]);
  test_free(b->out);
  test_free(b);
}

void ct_damage_run(const struct ct_damage *setup, struct ct_damage_result *r) {
  struct bench *b = test_calloc(1, sizeof *b);
  memset(r, 0, sizeof *r);
  b->setup = setup;
  b->result = r;
  open_bench(b);
  new_operands(b);
  if (setup->start) setup->start(b->pair.rig[0].self);
  for (unsigned long n = 1; r->flips < setup->count && !(setup->stop && r->wrong); ++n) {
    if (n % FRESH == 0) new_operands(b);
    one_flip(b);
  }
  close_bench(b);
}

static const char *const place_names[CT_DAMAGE_PLACES] = {
    "a compressed group", "a group's length in the index", "a group's place in the index"};

void ct_damage_print(const struct ct_damage_result *r) {
  printf("%-30s %9s %15s %9s\n", "a bit turned over in memory", "COMP", "names another", "WRONG");
  for (unsigned i = 0; i < CT_DAMAGE_PLACES; ++i)
    printf("%-30s %9lu %15lu %9lu\n", place_names[i], r->count[i][CT_DAMAGE_COMP],
           r->count[i][CT_DAMAGE_NAMED], r->count[i][CT_DAMAGE_WRONG]);
  printf("%lu flips, %lu wrong; %lu jobs, %" PRIu64 " cycles\n", r->flips, r->wrong, r->jobs,
         r->cycles);
}

void ct_damage_csv(FILE *file, const struct ct_damage_result *r, const char *rtl_commit) {
  fprintf(file, "bit_of,flips,ended_comp,named_another,wrong,rtl_commit\n");
  for (unsigned i = 0; i < CT_DAMAGE_PLACES; ++i) {
    const unsigned long *n = r->count[i];
    fprintf(file, "%s,%lu,%lu,%lu,%lu,%s\n", place_names[i],
            n[CT_DAMAGE_COMP] + n[CT_DAMAGE_NAMED] + n[CT_DAMAGE_WRONG], n[CT_DAMAGE_COMP],
            n[CT_DAMAGE_NAMED], n[CT_DAMAGE_WRONG], rtl_commit);
  }
}
