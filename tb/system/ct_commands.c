/* SPDX-License-Identifier: Apache-2.0 */
#include "ct_commands.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ct_work.h"

enum {
  INFERENCE = 0,
  TRAINING = 1,
  LIMIT = 400000,
  BATCH = 8,          /* random jobs at a time, */
  SERVED = 3,         /* beside jobs of inference */
  KNOWN = 12,         /* different programs for them */
  PROOF = 16,         /* batches between proofs that training works */
  POLICIES = 8,       /* values of POLICY's field, those that mean another one included */
  ALL_SPM = 0x280000, /* in inference's memory: all of the scratchpad as records */
  RECORD = 272,
  CTX_BYTES = CT_RIG_CTX_BYTES,
  OUT_BYTES = 16 * CT_GEN_OUT_UNITS
};

struct bench {
  const struct ct_commands *setup;
  struct ct_commands_result *result;
  struct ct_pair pair;
  ct_rng rng;
  struct ct_fuzz fuzz;
  struct ct_gen_prog known[KNOWN], work[2], setup_known, random[BATCH];
  struct ct_gen_prog first, last, right; /* of a context: setup, dump, work between them */
  struct ct_rig_job job[BATCH];          /* of training; */
  uint32_t before;                       /* how the one before them ended */
  bool cancels;                          /* the host cancels some */
  uint32_t limit;                        /* the context's watchdog */
  uint32_t tag, spm_words;
  uint8_t *bytes[2]; /* room for a context's memory */
};

static void check(struct bench *b, bool holds, const char *what) {
  if (holds) return;
  if (b->result->wrong++ < 20)
    printf("  after %lu jobs: WRONG: %s\n", b->result->jobs[TRAINING], what);
}

static void read_memory(struct bench *b, unsigned device, uint64_t addr, void *to, size_t size) {
  struct ct_rig *rig = &b->pair.rig[device];
  assert_int_equal(rig->ops->mem_read(rig->self, addr, to, size), 0);
}

/* ---- Known jobs ---------------------------------------------------------------------------- */

static void submit(struct bench *b, unsigned device, unsigned ctx, const struct ct_gen_prog *prog,
                   uint32_t tag) {
  const uint32_t flags = (tag % 2 ? CT_FLAG_CHAIN : 0) | (prog->overlap ? CT_FLAG_OVERLAP : 0);
  const struct ct_rig_job job = {.prog = prog, .tag = tag, .version = ~tag, .flags = flags};
  ct_rig_submit(&b->pair.rig[device], ctx, &job);
}

/* A job on both devices, by itself. */
static void run_right(struct bench *b, unsigned ctx, const struct ct_gen_prog *prog,
                      const char *what) {
  struct ct_rig_cpl cpl[2];
  ++b->tag;
  for (unsigned d = 0; d < 2; ++d) {
    submit(b, d, ctx, prog, b->tag);
    ct_rig_ring(&b->pair.rig[d], ctx);
    cpl[d] = ct_rig_reap(&b->pair.rig[d], ctx, LIMIT);
  }
  check(b, cpl[0].code == CT_DEV_OK && ct_same_completions(&cpl[0], &cpl[1]), what);
}

/* Training starts from nothing but its input, works, and shows all it has. */
static void prove_training(struct bench *b) {
  const uint32_t in = ct_rig_unit(TRAINING, CT_RIG_IN), out = ct_rig_unit(TRAINING, CT_RIG_OUT);
  memset(b->bytes[0], 0, OUT_BYTES);
  ct_pair_mem_write(&b->pair, ct_rig_addr(TRAINING, CT_RIG_OUT), b->bytes[0], OUT_BYTES);
  ct_gen_setup(&b->first, in);
  ct_gen_random(&b->rng, &b->right, 80, in, out);
  ct_gen_dump(&b->last, out);
  ct_pair_cwrite(&b->pair, TRAINING, CT_CREG_WATCHDOG, 0);
  b->tag |= 1; /* the setup continues nothing */
  run_right(b, TRAINING, &b->first, "a right job of training (setup)");
  run_right(b, TRAINING, &b->right, "a right job of training");
  run_right(b, TRAINING, &b->last, "a right job of training (dump)");
  check(b, ct_same_out(&b->pair, TRAINING, "proof"), "the bytes of a right job of training");
  b->before = CT_DEV_OK;
  ++b->result->right_jobs;
}

/* ---- The whole scratchpad ------------------------------------------------------------------- */

/* One job of inference that sees it all: loads it from memory (LD) or stores it there (ST). */
static void move_spm(struct bench *b, uint32_t op) {
  const uint32_t unit = ct_rig_unit(INFERENCE, ALL_SPM), tiles = b->spm_words / 16;
  struct ct_gen_prog *p = &b->right;
  memset(p, 0, sizeof *p);
  struct ct_cmd *cmd = &p->cmds[p->count++];
  CT_PUT(cmd, ALL_OP, op);
  CT_PUT(cmd, DMA_DRAM, unit);
  CT_PUT(cmd, DMA_HDR, 1);
  CT_PUT(cmd, DMA_NB, 16);
  CT_PUT(cmd, DMA_S0, 1);
  CT_PUT(cmd, DMA_N1, 64);
  CT_PUT(cmd, DMA_D1, 17);
  CT_PUT(cmd, DMA_S1, 16);
  CT_PUT(cmd, DMA_N2, tiles / 64);
  CT_PUT(cmd, DMA_D2, 17 * 64);
  CT_PUT(cmd, DMA_S2, 16 * 64);
  CT_PUT(&p->cmds[p->count++], ALL_OP, CT_OP_END);
  ct_pair_cwrite(&b->pair, INFERENCE, CT_CREG_SPM_BASE, 0);
  ct_pair_cwrite(&b->pair, INFERENCE, CT_CREG_SPM_SIZE, b->spm_words);
  ct_pair_cwrite(&b->pair, INFERENCE, CT_CREG_WR_LIMIT, ct_rig_unit(INFERENCE, CTX_BYTES));
  run_right(b, INFERENCE, p, "a job that moves the whole scratchpad");
  for (unsigned d = 0; d < 2; ++d)
    ct_rig_windows(&b->pair.rig[d], INFERENCE);
}

static void fill_spm(struct bench *b) {
  for (uint32_t t = 0; t < b->spm_words / 16; ++t) {
    uint8_t record[RECORD];
    ct_rng_fill(&b->rng, record, sizeof record);
    ct_pair_mem_write(&b->pair, ct_rig_addr(INFERENCE, ALL_SPM) + RECORD * (uint64_t)t, record,
                      sizeof record);
  }
  move_spm(b, CT_OP_LD);
}

static void check_spm(struct bench *b) {
  const size_t size = b->spm_words / 16 * RECORD;
  const uint32_t lo = ct_rig_spm_base(TRAINING), hi = lo + CT_GEN_SPM;
  unsigned wrong = 0;
  move_spm(b, CT_OP_ST);
  for (unsigned d = 0; d < 2; ++d)
    read_memory(b, d, ct_rig_addr(INFERENCE, ALL_SPM), b->bytes[d], size);
  for (uint32_t w = 0; w < b->spm_words; ++w) {
    const uint32_t record = w / 16 * RECORD, row = w % 16;
    const uint8_t *core = b->bytes[0] + record, *emu = b->bytes[1] + record;
    if (w >= lo && w < hi) continue;
    wrong += core[row] != emu[row] || memcmp(core + 16 + 16 * row, emu + 16 + 16 * row, 16);
  }
  check(b, !wrong, "the scratchpad outside training's window");
  ct_pair_mem_write(&b->pair, ct_rig_addr(INFERENCE, ALL_SPM), b->bytes[1], size);
}

/* ---- Batches ------------------------------------------------------------------------------- */

static void make_known(struct bench *b) {
  const uint32_t in = ct_rig_unit(INFERENCE, CT_RIG_IN), out = ct_rig_unit(INFERENCE, CT_RIG_OUT);
  ct_gen_setup(&b->setup_known, in);
  for (unsigned i = 0; i < KNOWN; ++i)
    ct_gen_random(&b->rng, &b->known[i], 30 + ct_rng_below(&b->rng, 120), in, out);
  assert_true(ct_work_make(&b->work[0], INFERENCE, CT_WORK_INFER) <= CT_GEN_SPM);
  assert_true(ct_work_make(&b->work[1], INFERENCE, CT_WORK_PRODUCT) <= CT_GEN_SPM);
}

/* Random race-free programs, or one of the library's (after which the scratchpad is not what the
 * others take it to be) and one more. */
static void choose_known(struct bench *b, const struct ct_gen_prog *jobs[SERVED]) {
  for (unsigned i = 0; i < SERVED; ++i)
    jobs[i] = &b->known[ct_rng_below(&b->rng, KNOWN)];
  if (ct_rng_percent(&b->rng, 60)) return;
  jobs[0] = &b->work[ct_rng_below(&b->rng, 2)];
  jobs[1] = &b->setup_known;
}

static unsigned long compressed(const struct ct_gen_prog *p) {
  unsigned long n = 0;
  for (unsigned i = 0; i < p->count; ++i) {
    const uint32_t op = CT_GET(&p->cmds[i], ALL_OP);
    n += (op == CT_OP_LD || op == CT_OP_ST) && CT_GET(&p->cmds[i], DMA_COMP);
  }
  return n;
}

static void submit_random(struct bench *b) {
  b->limit = 500 + ct_rng_below(&b->rng, 5000);
  const uint32_t arena = ct_rig_unit(TRAINING, CT_RIG_OUT) + CT_FUZZ_ARENA;
  if (ct_rng_percent(&b->rng, 50)) { /* pages of jobs that failed are free again */
    ct_rig_cwrite(&b->pair.rig[0], TRAINING, CT_CREG_ARENA_BASE, arena);
    ct_rig_cwrite(&b->pair.rig[0], TRAINING, CT_CREG_ARENA_PAGES, CT_FUZZ_PAGES);
  }
  ct_rig_cwrite(&b->pair.rig[0], TRAINING, CT_CREG_WATCHDOG, b->limit);
  for (unsigned i = 0; i < BATCH; ++i) {
    struct ct_gen_prog *p = &b->random[i];
    struct ct_rig_job *job = &b->job[i];
    ++b->result->kind[ct_fuzz_next(&b->fuzz, p)];
    b->result->submitted += p->count;
    b->result->compressed += compressed(p);
    *job = (struct ct_rig_job){.prog = p, .tag = b->tag + i, .version = ~(b->tag + i)};
    ct_fuzz_descriptor(&b->fuzz, job);
    ct_rig_submit(&b->pair.rig[0], TRAINING, job);
  }
}

/* How the units are shared: any value of any of the registers, the policies in turn. */
static void share(struct bench *b) {
  const uint32_t policy = b->result->policies++ % POLICIES;
  const uint32_t floor = ct_rng_percent(&b->rng, 40) ? 0 : ct_rng_below(&b->rng, 256);
  const uint32_t rest = ct_rng_percent(&b->rng, 10) ? ct_rng_below(&b->rng, 1u << 28) << 3 : 0;
  ct_pair_write(&b->pair, CT_REG_POLICY, policy | rest);
  ct_pair_write(&b->pair, CT_REG_FLOOR, floor | rest << 5);
  ct_pair_write(&b->pair, CT_REG_TRAIN_CAP, ct_rng_below(&b->rng, 16) | rest);
  for (uint32_t at = CT_REG_POLICY; at <= CT_REG_TRAIN_CAP; at += 4) {
    if (at != CT_REG_POLICY && at != CT_REG_FLOOR && at != CT_REG_TRAIN_CAP) continue;
    check(b, ct_rig_read(&b->pair.rig[0], at) == ct_rig_read(&b->pair.rig[1], at),
          "what POLICY, FLOOR or TRAIN_CAP reads");
  }
}

/* Meanwhile the host may share the units otherwise, and cancel this or that job. */
static void meddle(struct bench *b) {
  struct ct_rig *core = &b->pair.rig[0];
  b->cancels = ct_rng_percent(&b->rng, 40);
  for (unsigned n = b->cancels ? 1 + ct_rng_below(&b->rng, 4) : 0; n > 0; --n) {
    const uint32_t job = core->tail[TRAINING] - ct_rng_below(&b->rng, BATCH + 2);
    ct_rig_pass(core, ct_rng_below(&b->rng, 1500));
    ct_rig_cwrite(core, TRAINING, CT_CREG_CONTROL,
                  ct_rng_percent(&b->rng, 70) ? (job & 0xffff) << 16 | 6 : 2);
  }
  if (!ct_rng_percent(&b->rng, 40)) return;
  ct_rig_pass(core, ct_rng_below(&b->rng, 2000));
  share(b);
}

/* All of training's memory but what it may write; then again, to see that nothing has changed. */
static void read_forbidden(struct bench *b, uint8_t *to) {
  const uint32_t after = CT_RIG_OUT + OUT_BYTES;
  read_memory(b, 0, ct_rig_addr(TRAINING, 0), to, CT_RIG_OUT);
  read_memory(b, 0, ct_rig_addr(TRAINING, after), to + CT_RIG_OUT, CTX_BYTES - after);
}

/* It ended because of its time, or the context's, before its descriptor was judged: the descriptor
 * waits for a memory in which inference may go first. */
static bool late(const struct bench *b, const struct ct_rig_job *job,
                 const struct ct_rig_cpl *cpl) {
  const uint32_t own = job->watchdog;
  const uint32_t limit = own && own < b->limit ? own : b->limit;
  return cpl->code == CT_DEV_WATCHDOG && cpl->addr == 0 && cpl->end - cpl->start >= limit;
}

/* What the descriptor says of a job's end, whatever its program is. */
static bool right_code(const struct bench *b, const struct ct_rig_job *job,
                       const struct ct_rig_cpl *cpl) {
  const bool bad = job->ncmds > CT_PROG_MAX || job->flags & ~(CT_FLAG_OVERLAP | CT_FLAG_CHAIN);
  const bool skipped = job->flags & CT_FLAG_CHAIN && b->before != CT_DEV_OK;
  const uint32_t code = cpl->code;
  if (b->cancels && code == CT_DEV_CANCELLED) return true;
  if ((bad || skipped) && late(b, job, cpl)) return true;
  if (bad) return code == CT_DEV_DESCRIPTOR;
  return code != CT_DEV_DESCRIPTOR && (code == CT_DEV_SKIPPED) == skipped;
}

static void reap_random(struct bench *b) {
  for (unsigned i = 0; i < BATCH; ++i) {
    const struct ct_rig_cpl cpl = ct_rig_reap(&b->pair.rig[0], TRAINING, LIMIT);
    const bool right = right_code(b, &b->job[i], &cpl);
    check(b, right, "how a job of training ended");
    if (!right)
      printf("    job %u: %s behind %s; flags 0x%" PRIx32 ", %" PRIu32
             " commands, watchdog %" PRIu32 " or %" PRIu32 ", %" PRIu64 " cycles, address %" PRIu32
             "%s\n",
             i, ct_dev_name(cpl.code), ct_dev_name(b->before), b->job[i].flags, b->job[i].ncmds,
             b->job[i].watchdog, b->limit, cpl.end - cpl.start, cpl.addr,
             b->cancels ? ", cancels" : "");
    b->before = cpl.code;
    check(b, cpl.tag == b->tag + i && cpl.version == ~cpl.tag && cpl.code < CT_COMMANDS_CODES,
          "a completion of training");
    ++b->result->code[cpl.code % CT_COMMANDS_CODES];
    ++b->result->jobs[TRAINING];
  }
}

static void serve(struct bench *b, struct ct_rig_cpl cpl[2][SERVED], unsigned device,
                  const struct ct_gen_prog *const jobs[SERVED]) {
  for (unsigned i = 0; i < SERVED; ++i)
    submit(b, device, INFERENCE, jobs[i], b->tag + i);
  ct_rig_ring(&b->pair.rig[device], INFERENCE);
  if (!device) ct_rig_ring(&b->pair.rig[device], TRAINING);
  if (!device) meddle(b);
  for (unsigned i = 0; i < SERVED; ++i)
    cpl[device][i] = ct_rig_reap(&b->pair.rig[device], INFERENCE, LIMIT);
}

static void batch(struct bench *b) {
  const struct ct_gen_prog *jobs[SERVED];
  const size_t rest = CTX_BYTES - OUT_BYTES;
  struct ct_rig_cpl cpl[2][SERVED];
  b->tag += BATCH;
  choose_known(b, jobs);
  share(b);
  submit_random(b);
  read_forbidden(b, b->bytes[0]);
  serve(b, cpl, 0, jobs);
  reap_random(b);
  read_forbidden(b, b->bytes[1]);
  check(b, !memcmp(b->bytes[0], b->bytes[1], rest), "training's memory outside its window");
  serve(b, cpl, 1, jobs);
  for (unsigned i = 0; i < SERVED; ++i)
    check(b, cpl[0][i].code == CT_DEV_OK && ct_same_completions(&cpl[0][i], &cpl[1][i]),
          "a job of inference");
  b->result->jobs[INFERENCE] += SERVED;
  for (unsigned d = 0; d < 2; ++d)
    read_memory(b, d, ct_rig_addr(INFERENCE, 0), b->bytes[d], CTX_BYTES);
  check(b, !memcmp(b->bytes[0], b->bytes[1], CTX_BYTES), "inference's memory");
}

/* Inference shows all it has: scratchpad window, tile registers, ACC. */
static void check_inference(struct bench *b) {
  ct_gen_dump(&b->last, ct_rig_unit(INFERENCE, CT_RIG_OUT));
  run_right(b, INFERENCE, &b->last, "inference's dump");
  check(b, ct_same_out(&b->pair, INFERENCE, "dump"), "inference's state");
}

static void open_bench(struct bench *b) {
  char args[64];
  snprintf(args, sizeof args, "latency=20,stall=20,seed=%" PRIu64, ct_rng_u64(&b->rng));
  ct_pair_open(&b->pair, b->setup->core, args);
  b->spm_words = ct_rig_read(&b->pair.rig[0], CT_REG_SPM_WORDS);
  for (unsigned c = 0; c < 2; ++c)
    ct_pair_fill_input(&b->pair, c, &b->rng);
  for (unsigned k = 0; ct_work_of(INFERENCE, (enum ct_work_kind)k); ++k)
    ct_work_fill(&b->pair, INFERENCE, (enum ct_work_kind)k, &b->rng);
  fill_spm(b);
  make_known(b);
  run_right(b, INFERENCE, &b->setup_known, "inference's setup");
  prove_training(b);
  ct_fuzz_init(&b->fuzz, b->setup->stream + 1000, TRAINING);
}

static bool todo(const struct ct_commands *setup, const struct ct_commands_result *r) {
  if (setup->stop && r->wrong) return false;
  return r->submitted < setup->count || r->dispatched < setup->count;
}

void ct_commands_run(const struct ct_commands *setup, struct ct_commands_result *r) {
  struct bench *b = test_calloc(1, sizeof *b);
  memset(r, 0, sizeof *r);
  b->setup = setup;
  b->result = r;
  b->rng = ct_rng_make(setup->stream);
  for (unsigned d = 0; d < 2; ++d)
    b->bytes[d] = test_malloc(CTX_BYTES);
  open_bench(b);
  struct ct_rig *core = &b->pair.rig[0];
  if (setup->start) setup->start(core->self);
  for (unsigned n = 1; todo(setup, r); ++n) {
    const uint64_t before = ct_rig_counter(core, TRAINING, CT_CNT_CMDS);
    batch(b);
    r->dispatched += ct_rig_counter(core, TRAINING, CT_CNT_CMDS) - before;
    if (n % PROOF == 0) {
      prove_training(b);
      check_inference(b);
    }
  }
  check_inference(b);
  check_spm(b);
  prove_training(b);
  core->ops->now(core->self, &r->cycles);
  ct_pair_close(&b->pair);
  for (unsigned d = 0; d < 2; ++d)
    test_free(b->bytes[d]);
  test_free(b);
}

void ct_commands_print(const struct ct_commands_result *r) {
  static const char *const kinds[CT_FUZZ_KINDS] = {"raw bits", "random fields", "near to legal",
                                                   "spoilt programs"};
  printf("%lu random commands submitted in %lu jobs of training (", r->submitted,
         r->jobs[TRAINING]);
  for (unsigned i = 0; i < CT_FUZZ_KINDS; ++i)
    printf("%s%lu %s", i ? ", " : "", r->kind[i], kinds[i]);
  printf("); %lu of them compressed, %" PRIu64 " dispatched\nthey ended:", r->compressed,
         r->dispatched);
  for (uint32_t i = 0; i < CT_COMMANDS_CODES; ++i)
    if (r->code[i]) printf(" %s %lu", ct_dev_name(i), r->code[i]);
  printf(
      "\n%lu jobs of inference beside them and %lu proofs that training works: %lu wrong; %" PRIu64
      " cycles\n",
      r->jobs[INFERENCE], r->right_jobs, r->wrong, r->cycles);
}

static const char *const csv_kinds[CT_FUZZ_KINDS] = {"raw_bits", "random_fields", "near_legal",
                                                     "spoilt_programs"};

void ct_commands_csv_head(FILE *file) {
  fprintf(file, "core,commands_submitted,commands_compressed,jobs");
  for (unsigned i = 0; i < CT_FUZZ_KINDS; ++i)
    fprintf(file, ",jobs_%s", csv_kinds[i]);
  fprintf(file, ",commands_dispatched");
  for (uint32_t i = 0; i < CT_NUM_DEV; ++i) {
    fprintf(file, ",ended_");
    for (const char *name = ct_dev_names[i].name; *name; ++name)
      fputc(tolower((unsigned char)*name), file);
  }
  fprintf(file, ",inference_jobs,training_checks,wrong,cycles,rtl_commit\n");
}

void ct_commands_csv_row(FILE *file, const char *core, const struct ct_commands_result *r,
                         const char *rtl_commit) {
  fprintf(file, "%s,%lu,%lu,%lu", core, r->submitted, r->compressed, r->jobs[TRAINING]);
  for (unsigned i = 0; i < CT_FUZZ_KINDS; ++i)
    fprintf(file, ",%lu", r->kind[i]);
  fprintf(file, ",%" PRIu64, r->dispatched);
  for (uint32_t i = 0; i < CT_NUM_DEV; ++i)
    fprintf(file, ",%lu", r->code[ct_dev_names[i].value]);
  fprintf(file, ",%lu,%lu,%lu,%" PRIu64 ",%s\n", r->jobs[INFERENCE], r->right_jobs, r->wrong,
          r->cycles, rtl_commit);
}
