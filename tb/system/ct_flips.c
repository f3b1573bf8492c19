/* SPDX-License-Identifier: Apache-2.0 */
#include "ct_flips.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ct_work.h"

enum {
  LIMIT = 400000,
  FRESH = 40,   /* flips between new operands */
  SETTLE = 100, /* cycles in which a flip of an idle core is surely done */
  WORD_BITS = 144,
  PARITY_BIT = 136,
  EXP_BIT = 128,
  JOBS_MAX = 3,
  CHUNK = 1 << 20
};

/* What runs at a time: jobs of a kind in each context. */
struct scene {
  enum ct_work_kind kind[2];
  unsigned jobs[2];
};

static const struct scene scenes[] = {
    {{CT_WORK_INFER, CT_WORK_TRAIN}, {3, 1}},   {{CT_WORK_PRODUCT, CT_WORK_TRAIN}, {2, 1}},
    {{CT_WORK_INFER, CT_WORK_PRODUCT}, {1, 2}}, {{CT_WORK_TRAIN, CT_WORK_INFER}, {1, 2}},
    {{CT_WORK_INFER, CT_WORK_KEPT}, {3, 1}},    {{CT_WORK_PRODUCT, CT_WORK_KEPT}, {2, 1}},
    {{CT_WORK_TRAIN, CT_WORK_KEPT}, {1, 2}},
};
enum { SCENES = sizeof scenes / sizeof *scenes };

struct bench {
  const struct ct_flips *setup;
  struct ct_flips_result *result;
  struct ct_pair pair;
  ct_rng rng;
  uint32_t tag;
  struct ct_gen_prog prog[2][CT_WORK_KINDS];
  uint32_t window[2][CT_WORK_KINDS]; /* words they need */
  uint64_t span[SCENES][2];          /* cycles from doorbell to the last completion, last time */
  struct ct_rig_cpl cpl[2][JOBS_MAX];
  uint8_t *bytes[2];
  uint8_t out[16 * CT_GEN_OUT_UNITS];
};

/* A flip and what came of it. */
struct flip {
  const struct scene *scene;
  unsigned ctx;
  uint32_t word, bit; /* physical word */
  struct ct_watch seen;
};

/* ---- Jobs ---------------------------------------------------------------------------------- */

/* Submits the context's jobs of a scene on a device. */
static void submit(struct bench *b, unsigned device, const struct scene *s, unsigned ctx) {
  for (unsigned i = 0; i < s->jobs[ctx]; ++i) {
    const struct ct_rig_job job = {
        .prog = &b->prog[ctx][s->kind[ctx]], .tag = b->tag + i, .version = ctx};
    ct_rig_submit(&b->pair.rig[device], ctx, &job);
  }
  b->result->jobs += device ? 0 : s->jobs[ctx];
}

static void ring_and_reap(struct bench *b, unsigned device, const struct scene *s, unsigned ctx,
                          struct ct_rig_cpl *cpl) {
  ct_rig_ring(&b->pair.rig[device], ctx);
  for (unsigned i = 0; i < s->jobs[ctx]; ++i)
    cpl[i] = ct_rig_reap(&b->pair.rig[device], ctx, LIMIT);
}

/* What a device that has just been opened knows of pages: after a job that failed, too. */
static void free_pages(struct bench *b, unsigned device, const struct scene *s) {
  if (s->kind[1] == CT_WORK_KEPT) ct_work_arena(&b->pair.rig[device]);
}

/* The context's jobs once more, on both devices, from the memory they had the first time. */
static bool repeat(struct bench *b, const struct scene *s, unsigned ctx) {
  struct ct_rig_cpl cpl[2][JOBS_MAX];
  const bool writes_part = s->kind[ctx] == CT_WORK_TRAIN || s->kind[ctx] == CT_WORK_KEPT;
  bool same = true;
  b->tag += JOBS_MAX;
  if (writes_part) /* the others write all that they leave behind */
    ct_pair_mem_write(&b->pair, ct_rig_addr(ctx, CT_RIG_OUT), b->out, sizeof b->out);
  for (unsigned d = 0; d < 2; ++d) {
    free_pages(b, d, s);
    submit(b, d, s, ctx);
    ring_and_reap(b, d, s, ctx, cpl[d]);
  }
  for (unsigned i = 0; i < s->jobs[ctx]; ++i)
    same &= cpl[0][i].code == CT_DEV_OK && ct_same_completions(&cpl[0][i], &cpl[1][i]);
  return same;
}

static void new_operands(struct bench *b) {
  for (unsigned c = 0; c < 2; ++c)
    for (unsigned k = 0; k < CT_WORK_FRONT && ct_work_of(c, (enum ct_work_kind)k); ++k)
      ct_work_fill(&b->pair, c, (enum ct_work_kind)k, &b->rng);
  ct_pair_write(&b->pair, CT_REG_POLICY,
                ct_rng_percent(&b->rng, 50) ? 0 : ct_rng_below(&b->rng, 4));
}

/* ---- Flips --------------------------------------------------------------------------------- */

static void arm(struct bench *b, const struct flip *f, uint64_t cycle) {
  struct ct_rig *core = &b->pair.rig[0];
  ct_rig_write(core, CT_REG_DBG_ADDR, f->word);
  assert_int_equal(core->ops->reg_write_at(core->self, cycle, CT_REG_DBG_FLIP, 0x100 | f->bit), 0);
}

static struct ct_watch look(struct bench *b) {
  return b->setup->look(b->pair.rig[0].self);
}

/* The scene on the core; with a flip at a random time while the context's jobs run. */
static void run_core(struct bench *b, struct flip *f, bool with_flip) {
  struct ct_rig *core = &b->pair.rig[0];
  uint64_t *span = b->span[f->scene - scenes], now, when = 0;
  b->tag += JOBS_MAX;
  free_pages(b, 0, f->scene);
  for (unsigned c = 0; c < 2; ++c) {
    ct_pair_cwrite(&b->pair, c, CT_CREG_SPM_SIZE, b->window[c][f->scene->kind[c]]);
    submit(b, 0, f->scene, c);
  }
  core->ops->now(core->self, &now);
  if (with_flip) {
    when = now + 30 + ct_rng_below(&b->rng, (uint32_t)span[f->ctx]);
    arm(b, f, when);
  }
  ct_rig_ring(core, 1);
  for (unsigned i = 0; i < 2; ++i) {
    const unsigned c = i, last = f->scene->jobs[c] - 1;
    ring_and_reap(b, 0, f->scene, c, b->cpl[c]);
    if (!with_flip) span[c] = b->cpl[c][last].end - b->cpl[c][0].arrive;
  }
  core->ops->now(core->self, &now);
  ct_rig_pass(core, (now < when ? when - now : 0) + SETTLE);
  f->seen = look(b);
}

/* The same on the emulator. False: it does not say what the core says of a job that went well. */
static bool run_emu(struct bench *b, const struct scene *s) {
  bool same = true;
  free_pages(b, 1, s);
  for (unsigned c = 0; c < 2; ++c) {
    struct ct_rig_cpl cpl[JOBS_MAX];
    submit(b, 1, s, c);
    ring_and_reap(b, 1, s, c, cpl);
    for (unsigned i = 0; i < s->jobs[c]; ++i)
      same &= b->cpl[c][i].code != CT_DEV_OK || ct_same_completions(&b->cpl[c][i], &cpl[i]);
  }
  return same;
}

static bool same_memory(struct bench *b) {
  for (uint64_t at = 0; at < (uint64_t)CT_RIG_MIB << 20; at += CHUNK) {
    for (unsigned d = 0; d < 2; ++d)
      b->pair.rig[d].ops->mem_read(b->pair.rig[d].self, at, b->bytes[d], CHUNK);
    if (memcmp(b->bytes[0], b->bytes[1], CHUNK)) return false;
  }
  return true;
}

/* The word on the core is the emulator's, but for the bit if that is still there. */
static bool same_word(struct bench *b, const struct flip *f, bool live) {
  uint32_t core[5], emu[5];
  ct_rig_peek(&b->pair.rig[0], f->word, core);
  ct_rig_peek(&b->pair.rig[1], f->word, emu);
  if (live && f->bit < EXP_BIT) core[f->bit / 32] ^= UINT32_C(1) << f->bit % 32;
  if (live && f->bit >= EXP_BIT && f->bit < PARITY_BIT)
    core[4] ^= UINT32_C(1) << (f->bit - EXP_BIT);
  if (live) core[4] ^= 0x100; /* the parity error itself */
  return !memcmp(core, emu, sizeof core);
}

/* Turns the bit back, so that no later flip meets it. */
static bool undo(struct bench *b, const struct flip *f) {
  uint64_t now;
  b->pair.rig[0].ops->now(b->pair.rig[0].self, &now);
  arm(b, f, now);
  ct_rig_pass(&b->pair.rig[0], SETTLE);
  return same_word(b, f, false);
}

/* ---- Judgement ----------------------------------------------------------------------------- */

/* Which jobs failed: none, or one of the context that was hit, as it should. */
enum verdict { NONE, PARITY, ODD };

static enum verdict judge_completions(const struct bench *b, const struct flip *f) {
  unsigned failed = 0, parity = 0;
  for (unsigned c = 0; c < 2; ++c) {
    for (unsigned i = 0; i < f->scene->jobs[c]; ++i) {
      const struct ct_rig_cpl *cpl = &b->cpl[c][i];
      failed += cpl->code != CT_DEV_OK;
      parity += cpl->code == CT_DEV_PARITY && cpl->addr == f->word && c == f->ctx;
    }
  }
  return !failed ? NONE : failed == 1 && parity == 1 ? PARITY : ODD;
}

static enum ct_flip_class reporter(uint32_t read) {
  static const enum ct_flip_class port[] = {CT_FLIP_REPORTED_A, CT_FLIP_REPORTED_B,
                                            CT_FLIP_REPORTED_B, CT_FLIP_REPORTED_ST,
                                            CT_FLIP_REPORTED_VL};
  for (unsigned p = 0; p < sizeof port / sizeof *port; ++p)
    if (read >> p & 1) return port[p];
  return CT_FLIP_OTHER; /* reported, but nobody has read it */
}

/* f has happened on the core: runs the rest and says what it was. */
static enum ct_flip_class judge(struct bench *b, const struct flip *f) {
  const enum verdict verdict = judge_completions(b, f);
  bool right = run_emu(b, f->scene);
  if (verdict != NONE) right &= repeat(b, f->scene, f->ctx);
  const bool memory = same_memory(b), live = look(b).live;
  bool word = same_word(b, f, live);
  if (live) word &= undo(b, f);
  if (verdict == ODD || !right) return CT_FLIP_OTHER;
  if (verdict == PARITY) return memory && word ? reporter(f->seen.read) : CT_FLIP_OTHER;
  if (!memory || !word) return CT_FLIP_SILENT;
  if (f->seen.read) return CT_FLIP_MASKED;
  if (f->seen.written) return CT_FLIP_WRITTEN;
  return f->seen.done && f->seen.live ? CT_FLIP_UNREAD : CT_FLIP_OTHER;
}

static const char *const class_names[CT_FLIP_CLASSES] = {
    "reported, read by MXU A",
    "reported, read by MXU B",
    "reported, read by VL",
    "reported, read by ST",
    "no effect: written before any read",
    "no effect: not read again",
    "WRONG: read and not reported",
    "WRONG: silent",
    "WRONG: other",
};

static void print_wrong(const struct bench *b, const struct flip *f, enum ct_flip_class class) {
  printf("  flip %lu: %s: word %" PRIu32 " (context %u), bit %" PRIu32 ", cycle %" PRIu64
         ", read by 0x%02" PRIx32 "%s%s; completions",
         b->result->flips, class_names[class], f->word, f->ctx, f->bit, f->seen.at, f->seen.read,
         f->seen.written ? ", written" : "", f->seen.live ? ", live" : "");
  for (unsigned c = 0; c < 2; ++c)
    for (unsigned i = 0; i < f->scene->jobs[c]; ++i)
      printf(" %s@0x%" PRIx32, ct_dev_name(b->cpl[c][i].code), b->cpl[c][i].addr);
  printf("\n");
}

static void count(struct ct_flips_result *r, const struct flip *f, enum ct_flip_class class) {
  const uint32_t word = f->word - ct_rig_spm_base(f->ctx);
  ++r->flips;
  ++r->count[class][f->bit < EXP_BIT ? 0 : f->bit < PARITY_BIT ? 1 : 2];
  if (f->scene->kind[f->ctx] != CT_WORK_KEPT || word >= CT_WORK_DECODED) return;
  ++r->kept[class][word < CT_WORK_ENCODED ? CT_FLIP_ENCODED : CT_FLIP_DECODED];
}

static void one_flip(struct bench *b) {
  struct flip f = {.scene = &scenes[ct_rng_below(&b->rng, SCENES)]};
  const bool keeps = f.scene->kind[1] == CT_WORK_KEPT; /* words to encode live for a short time */
  f.ctx = ct_rng_percent(&b->rng, keeps ? 75 : 50);
  f.word = ct_rig_spm_base(f.ctx) + ct_rng_below(&b->rng, b->window[f.ctx][f.scene->kind[f.ctx]]);
  f.bit = ct_rng_below(&b->rng, WORD_BITS);
  struct ct_rig *emu = &b->pair.rig[1];
  emu->ops->mem_read(emu->self, ct_rig_addr(f.ctx, CT_RIG_OUT), b->out, sizeof b->out);
  run_core(b, &f, true);
  const bool late = f.seen.done && f.seen.at > b->cpl[f.ctx][f.scene->jobs[f.ctx] - 1].end;
  const enum ct_flip_class class = judge(b, &f);
  const bool wrong = class >= CT_FLIP_WRONG;
  if (wrong && b->result->wrong < 20) print_wrong(b, &f, class);
  b->result->wrong += wrong;
  if (late && !wrong) {
    ++b->result->late;
    return;
  }
  count(b->result, &f, class);
}

/* Without a flip the two devices agree; how long each scene takes. */
static void rehearse(struct bench *b) {
  for (unsigned i = 0; i < SCENES; ++i) {
    struct flip f = {.scene = &scenes[i]};
    run_core(b, &f, false);
    assert_int_equal(judge_completions(b, &f), NONE);
    assert_true(run_emu(b, f.scene));
    assert_true(same_memory(b));
  }
}

void ct_flips_run(const struct ct_flips *setup, struct ct_flips_result *result) {
  struct bench *b = test_calloc(1, sizeof *b);
  char args[64];
  memset(result, 0, sizeof *result);
  b->setup = setup;
  b->result = result;
  b->rng = ct_rng_make(setup->stream);
  for (unsigned d = 0; d < 2; ++d)
    b->bytes[d] = test_malloc(CHUNK);
  snprintf(args, sizeof args, "latency=20,stall=25,seed=%" PRIu64, ct_rng_u64(&b->rng));
  ct_pair_open(&b->pair, setup->core, args);
  for (unsigned c = 0; c < 2; ++c)
    for (unsigned k = 0; k < CT_WORK_FRONT && ct_work_of(c, (enum ct_work_kind)k); ++k)
      b->window[c][k] = ct_work_make(&b->prog[c][k], c, (enum ct_work_kind)k);
  new_operands(b);
  rehearse(b);
  if (setup->start) setup->start(b->pair.rig[0].self);
  for (unsigned long n = 1; result->flips < setup->count && !(setup->stop && result->wrong); ++n) {
    if (n % FRESH == 0) {
      new_operands(b);
      rehearse(b);
    }
    one_flip(b);
  }
  b->pair.rig[0].ops->now(b->pair.rig[0].self, &result->cycles);
  ct_pair_close(&b->pair);
  for (unsigned d = 0; d < 2; ++d)
    test_free(b->bytes[d]);
  test_free(b);
}

static unsigned long all_of(const struct ct_flips_result *r, unsigned from, unsigned to) {
  unsigned long all = 0;
  for (unsigned i = from; i < to; ++i)
    for (unsigned k = 0; k < CT_FLIP_BITS; ++k)
      all += r->count[i][k];
  return all;
}

void ct_flips_print(const struct ct_flips_result *r) {
  printf("%-38s %9s %9s %9s %9s %9s %9s\n", "outcome of a flipped bit", "mantissa", "exponent",
         "parity", "all", "encoded", "decoded");
  for (unsigned i = 0; i < CT_FLIP_CLASSES; ++i) {
    const unsigned long *n = r->count[i], all = all_of(r, i, i + 1);
    printf("%-38s %9lu %9lu %9lu %9lu %9lu %9lu\n", class_names[i], n[0], n[1], n[2], all,
           r->kept[i][CT_FLIP_ENCODED], r->kept[i][CT_FLIP_DECODED]);
  }
  printf(
      "%lu flips: %lu reported, %lu proven without effect, %lu wrong (%lu silent); %lu drawn "
      "again because the job had ended\n",
      r->flips, all_of(r, 0, CT_FLIP_WRITTEN), all_of(r, CT_FLIP_WRITTEN, CT_FLIP_WRONG), r->wrong,
      all_of(r, CT_FLIP_SILENT, CT_FLIP_SILENT + 1), r->late);
  printf("%lu jobs, %" PRIu64 " cycles\n", r->jobs, r->cycles);
}

void ct_flips_csv(FILE *file, const struct ct_flips_result *r, const char *rtl_commit) {
  fprintf(file, "outcome,mantissa,exponent,parity,all,encoded,decoded,rtl_commit\n");
  for (unsigned i = 0; i < CT_FLIP_CLASSES; ++i) {
    const char *quote = strchr(class_names[i], ',') ? "\"" : "";
    fprintf(file, "%s%s%s,%lu,%lu,%lu,%lu,%lu,%lu,%s\n", quote, class_names[i], quote,
            r->count[i][0], r->count[i][1], r->count[i][2], all_of(r, i, i + 1),
            r->kept[i][CT_FLIP_ENCODED], r->kept[i][CT_FLIP_DECODED], rtl_commit);
  }
}

void ct_flips_csv_run(FILE *file, const struct ct_flips_result *r, const char *rtl_commit) {
  fprintf(file,
          "flips,reported,without_effect,wrong,silent,drawn_again,jobs,cycles,seed,rtl_commit\n");
  fprintf(file, "%lu,%lu,%lu,%lu,%lu,%lu,%lu,%" PRIu64 ",%" PRIu64 ",%s\n", r->flips,
          all_of(r, 0, CT_FLIP_WRITTEN), all_of(r, CT_FLIP_WRITTEN, CT_FLIP_WRONG), r->wrong,
          all_of(r, CT_FLIP_SILENT, CT_FLIP_SILENT + 1), r->late, r->jobs, r->cycles, ct_tb_seed(),
          rtl_commit);
}
