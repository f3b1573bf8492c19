/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "host/lib/queue/ct_queue.h"
#include "host/lib/model/ct_model.h"
#include "ct_uri.h"
#include "interfere.h"
#include "learn.h"

enum { STRESS_PASSES = 64, TILE_WORDS = 16, F32_TILE_WORDS = 64, BANKS = 8, SCRATCH = 8192 };
enum { FUNCTION = 8 }; /* the first of those that need a function unit */

const char *interfere_load_name(enum interfere_load load) {
  static const char *const names[] = {"model", "stress", "banks", "products", "none"};
  return names[load];
}

/* "784-512-256-10"; "256x3": three layers of that width; "digits". */
static int parse_network(const char *text, struct ct_mlp *net) {
  const char *list = strcmp(text, "digits") == 0 ? "64-128-64-10" : text;
  char *times = NULL, *end = NULL;
  *net = (struct ct_mlp){0};
  net->layers = (uint32_t)learn_layers_of(list, net->width);
  if (net->layers) return 0;
  const unsigned long width = strtoul(text, &times, 10);
  const unsigned long layers = *times == 'x' ? strtoul(times + 1, &end, 10) : 0;
  if (times == text || *times != 'x')
    return cli_fail("--network: \"%s\" is none of digits, WIDTHxLAYERS, IN-...-OUT", text);
  if (end == times + 1 || *end || !layers || layers > CT_MLP_LAYERS || width > CT_MLP_WIDEST)
    return cli_fail("--network: \"%s\" has no such number of layers", text);
  net->layers = (uint32_t)layers;
  for (unsigned i = 0; i <= layers; ++i)
    net->width[i] = (uint32_t)width;
  return 0;
}

/* ---- Inference ---- */

static uint32_t units(uint64_t addr) {
  return (uint32_t)(addr / CT_UNIT);
}

static int load_program(struct interfere *t, const struct ct_cmd *cmds, size_t count,
                        ct_program **program) {
  uint8_t *bytes = malloc(count * CT_CMD_BYTES);
  if (!bytes) return CT_ERR_MEMORY;
  for (size_t i = 0; i < count; ++i)
    ct_cmd_to_bytes(&cmds[i], bytes + i * CT_CMD_BYTES);
  const int rc = ct_program_load(t->load.dev, bytes, count, program);
  free(bytes);
  return rc;
}

static int open_inference(struct interfere *t) {
  char text[256] = "";
  const struct ct_why why = {text, sizeof text};
  const struct ct_infer shape = {.net = &t->net,
                                 .rows = 1,
                                 .spm_words = ct_window_words(t->load.dev),
                                 .resident = t->o->resident};
  if (ct_prog_infer(&shape, &t->code, &why) < 0) return cli_fail("%s", text);
  int rc = load_program(t, t->code.cmd, t->code.count, &t->infer);
  if (rc >= 0) rc = ct_model_publish(t->model, &t->weights);
  return load_check(&t->load, rc, "preparing inference");
}

/* Requests with random numbers, and what emu: answers them with the same weights. */
static int open_requests(struct interfere *t) {
  const uint32_t in = t->net.width[0], classes = t->net.width[t->net.layers];
  float *x = malloc((size_t)REQUESTS * in * sizeof *x);
  float *y = malloc((size_t)REQUESTS * classes * sizeof *y);
  t->row_pitch = (ct_pack_row_size(in) + 255) / 256 * 256;
  t->out_pitch = (classes * sizeof *y + 255) / 256 * 256;
  uint8_t *packed = malloc(t->row_pitch);
  t->expected = calloc(REQUESTS, t->out_pitch);
  int rc = x && y && packed && t->expected ? 0 : CT_ERR_MEMORY;
  if (!rc) rc = ct_mem_alloc(t->load.dev, REQUESTS * t->row_pitch, &t->rows);
  if (!rc) rc = ct_mem_alloc(t->load.dev, REQUESTS * t->out_pitch, &t->out);
  for (uint32_t i = 0; !rc && i < REQUESTS * in; ++i)
    x[i] = ct_rand_unit(&t->rand);
  for (uint32_t i = 0; !rc && i < REQUESTS; ++i) {
    ct_pack_row(x + (size_t)i * in, in, packed);
    rc = ct_mem_write(t->load.dev, t->rows + i * t->row_pitch, packed, ct_pack_row_size(in));
  }
  int status = load_check(&t->load, rc, "preparing requests") ||
               load_expect(t->net.width, t->net.layers, t->o->seed, x, REQUESTS, y);
  for (uint32_t i = 0; y && !status && i < REQUESTS; ++i)
    memcpy(t->expected + i * t->out_pitch, y + (size_t)i * classes, classes * sizeof *y);
  /* Loads the weights that stay: the same numbers once by a job that does not keep them out. */
  if (!status)
    status = load_check(&t->load, ct_model_infer(t->model, t->weights, x, 1, y), "a first request");
  free(x);
  free(y);
  free(packed);
  return status;
}

/* ---- Training ---- */

static int open_batches(struct interfere *t) {
  const struct ct_training training = {.batch = t->o->batch,
                                       .rates = {.lr = 0.01f, .momentum = 0.9f}};
  const uint32_t in = t->net.width[0], classes = t->net.width[t->net.layers];
  int rc = ct_model_training(t->model, &training);
  if (rc < 0) return cli_fail_device(t->load.dev, rc, "preparing training");
  float *x = malloc((size_t)t->o->batch * in * sizeof *x);
  uint32_t *labels = malloc(t->o->batch * sizeof *labels);
  rc = x && labels ? 0 : CT_ERR_MEMORY;
  for (unsigned b = 0; !rc && b < BATCHES; ++b) {
    for (size_t i = 0; i < (size_t)t->o->batch * in; ++i)
      x[i] = ct_rand_unit(&t->rand);
    for (uint32_t i = 0; i < t->o->batch; ++i)
      labels[i] = (uint32_t)ct_rand_below(&t->rand, classes);
    rc = ct_batch_create(t->model, &t->batch[b]);
    if (!rc) rc = ct_batch_write(t->batch[b], x, labels);
  }
  free(x);
  free(labels);
  return load_check(&t->load, rc, "preparing batches");
}

static void put(struct ct_cmd *cmds, size_t *n, uint32_t op, const struct ct_field_value *v,
                size_t count) {
  struct ct_cmd *cmd = &cmds[(*n)++];
  *cmd = (struct ct_cmd){{0}};
  ct_cmd_set(cmd, CT_F_ALL_OP, op);
  for (size_t i = 0; i < count; ++i)
    ct_cmd_set(cmd, v[i].field, v[i].value);
}
#define PUT(OP, ...)                                                      \
  put(cmds, &n, CT_OP_##OP, (const struct ct_field_value[]){__VA_ARGS__}, \
      sizeof((const struct ct_field_value[]){__VA_ARGS__}) / sizeof(struct ct_field_value))

/* The loads are endless passes, in which every unit has about the same number of cycles to do, for
 * the 256 rows that fill all of ACC: 256 cycles, with 8 columns 512. No semaphores: every queue
 * runs as fast as its unit lets it, on operands of its own.
 *
 * stress  the longest operations there are: VL and VS of FP32 (with 4 lanes VS of squares), VA of
 *         whole tiles from ACC and from tile registers (with 4 lanes functions)
 * banks   what is in the way of others most: all words in one bank of the scratchpad, all rows of
 * VA in one bank of the tile registers
 */
struct pass {
  bool small, banks;
  uint32_t cycles;
  uint32_t quarter; /* of the window, in words: for A and B, for LD, for ST, for VL and VS */
};

static size_t put_products(struct ct_cmd *cmds, size_t n, uint32_t k_tiles) {
  for (uint32_t acc = 0; acc < CT_ACC_TILES; acc += CT_ACC_TILES / 2)
    PUT(MM, CT_SET(MM_A, 0), CT_SET(MM_AM, TILE_WORDS), CT_SET(MM_AK, TILE_WORDS),
        CT_SET(MM_B, 8 * TILE_WORDS), CT_SET(MM_BN, TILE_WORDS), CT_SET(MM_BK, TILE_WORDS),
        CT_SET(MM_KT, k_tiles), CT_SET(MM_NT, 2), CT_SET(MM_ROWS, 64), CT_SET(MM_ACC, acc),
        CT_SET(MM_ACC_N, CT_ACC_TILES / 4));
  return n;
}

/* Whole bursts; the program itself is read, too. */
static size_t put_transfers(struct ct_cmd *cmds, size_t n, const struct pass *p) {
  const uint32_t bursts = p->cycles / 16, word = p->banks ? BANKS : 1, run = p->banks ? 0 : 16;
  PUT(LD, CT_SET(DMA_DRAM_REG, 1), CT_SET(DMA_SPM, p->quarter), CT_SET(DMA_NB, 16),
      CT_SET(DMA_S0, word), CT_SET(DMA_N1, bursts - 4), CT_SET(DMA_D1, 16), CT_SET(DMA_S1, run),
      CT_SET(DMA_N2, 1));
  PUT(ST, CT_SET(DMA_DRAM_REG, 2), CT_SET(DMA_SPM, 2 * p->quarter), CT_SET(DMA_NB, 16),
      CT_SET(DMA_S0, word), CT_SET(DMA_N1, bursts), CT_SET(DMA_D1, 16), CT_SET(DMA_S1, run),
      CT_SET(DMA_N2, 1));
  return n;
}

/* Few commands with long operations: those that can be repeated are. */
static size_t put_long_operations(struct ct_cmd *cmds, size_t n, const struct pass *p) {
  const uint32_t from = 3 * p->quarter, to = from + F32_TILE_WORDS;
  const uint32_t square = p->small ? 2 : 0, vs_cycles = p->small ? 128 : 64;
  const uint32_t function = p->small ? FUNCTION : 0, va_tiles = p->small ? 2 : 8;
  for (uint32_t i = 0; i < p->cycles / 64; ++i)
    PUT(VL, CT_SET(VL_SPM, from), CT_SET(VL_ROW_STRIDE, 4), CT_SET(VL_ROWS, 16), CT_SET(VL_TD, i));
  PUT(VS, CT_SET(VS_SPM, to), CT_SET(VS_MODE, square), CT_SET(VS_ROW_STRIDE, 4),
      CT_SET(VS_ROWS, 16), CT_SET(VS_MORE, p->cycles / vs_cycles - 1));
  for (uint32_t done = 0; done < 16 && done < va_tiles * 2; done += 8)
    PUT(VA, CT_SET(VA_A_SRC, 1), CT_SET(VA_TA, done), CT_SET(VA_TD, 8), CT_SET(VA_FUNC, function),
        CT_SET(VA_ROWS, 16), CT_SET(VA_COLS, 16), CT_SET(VA_MORE, va_tiles - 1));
  return n;
}

static size_t put_one_bank(struct ct_cmd *cmds, size_t n, const struct pass *p) {
  const uint32_t from = 3 * p->quarter, to = from + 16 * BANKS;
  for (uint32_t i = 0; i < 8; ++i) {
    PUT(VL, CT_SET(VL_SPM, from), CT_SET(VL_MODE, 1), CT_SET(VL_ROW_STRIDE, BANKS),
        CT_SET(VL_ROWS, 16), CT_SET(VL_TD, i));
    PUT(VA, CT_SET(VA_A_SRC, 1), CT_SET(VA_TD, 8), CT_SET(VA_ROWS, 1), CT_SET(VA_COLS, 16),
        CT_SET(VA_RELU, 1), CT_SET(VA_MORE, 7));
  }
  PUT(VS, CT_SET(VS_SPM, to), CT_SET(VS_MODE, 1), CT_SET(VS_ROW_STRIDE, BANKS), CT_SET(VS_ROWS, 16),
      CT_SET(VS_MORE, 7));
  return n;
}

static size_t stress_program(struct ct_cmd *cmds, const struct interfere *t) {
  const struct pass p = {.small = t->load.info.vpu_lanes == 4,
                         .banks = t->o->load == LOAD_BANKS,
                         .cycles = 256 * (16 / t->load.info.array_cols),
                         .quarter = ct_window_words(t->load.dev) / 4};
  size_t n = 0;
  PUT(LOOP, CT_SET(CTL_COUNT, STRESS_PASSES));
  n = put_products(cmds, n, t->o->load == LOAD_PRODUCTS ? 8 : 1);
  if (t->o->load != LOAD_PRODUCTS) n = put_transfers(cmds, n, &p);
  if (t->o->load == LOAD_STRESS) n = put_long_operations(cmds, n, &p);
  if (t->o->load == LOAD_BANKS) n = put_one_bank(cmds, n, &p);
  cmds[n] = (struct ct_cmd){{0}};
  ct_cmd_set(&cmds[n++], CT_F_ALL_OP, CT_OP_ENDL);
  cmds[n] = (struct ct_cmd){{0}};
  ct_cmd_set(&cmds[n++], CT_F_ALL_OP, CT_OP_END);
  return n;
}

/* The scratchpad of the training queue is filled from memory, so that no word has wrong parity. */
static int fill_scratchpad(struct interfere *t) {
  const uint32_t words = ct_window_words(t->load.dev);
  struct ct_cmd cmds[2] = {{{0}}, {{0}}};
  size_t n = 0;
  ct_program *program = NULL;
  struct ct_job job = {.args = {units(t->scratch)}};
  uint64_t tag = 0;
  PUT(LD, CT_SET(DMA_DRAM_REG, 1), CT_SET(DMA_NB, 256), CT_SET(DMA_S0, 1),
      CT_SET(DMA_N1, words / 256), CT_SET(DMA_S1, 256), CT_SET(DMA_N2, 1));
  ct_cmd_set(&cmds[n++], CT_F_ALL_OP, CT_OP_END);
  int rc = load_program(t, cmds, n, &program);
  job.program = program;
  if (rc >= 0) rc = ct_submit(t->load.dev, CT_TRAINING, &job, &tag);
  if (rc >= 0) rc = ct_wait(t->load.dev, tag, NULL, CT_FOREVER);
  ct_program_free(program);
  return rc;
}

static int open_stress(struct interfere *t) {
  struct ct_cmd cmds[96];
  uint8_t zero[SCRATCH] = {0};
  int rc = ct_mem_alloc(t->load.dev, 2 * (uint64_t)SCRATCH, &t->scratch);
  if (rc >= 0) rc = ct_mem_write(t->load.dev, t->scratch, zero, SCRATCH);
  if (rc >= 0) rc = fill_scratchpad(t);
  const size_t n = stress_program(cmds, t);
  if (rc >= 0) rc = load_program(t, cmds, n, &t->train);
  return load_check(&t->load, rc, "preparing the load");
}

/* Keeps the training queue full, a part of the load. */
static int top_up(void *interfere) {
  enum { DEPTH = 4 };
  struct interfere *t = interfere;
  while (t->training && t->steps_submitted - t->steps_done < DEPTH) {
    struct ct_job job = {.program = t->train, .user = t};
    const struct ct_step step = {.batch = t->batch[t->steps_submitted % BATCHES], .user = t};
    job.args[0] = units(t->scratch);
    job.args[1] = units(t->scratch + SCRATCH);
    const int rc = t->train ? ct_submit(t->load.dev, CT_TRAINING, &job, NULL)
                            : ct_model_step_submit(t->model, &step, NULL);
    if (rc < 0) return rc;
    ++t->steps_submitted;
  }
  return 0;
}

/* ---- All ---- */

static int set_registers(struct interfere *t) {
  int rc = ct_reg_write(t->load.dev, CT_REG_FLOOR, t->o->floor);
  if (rc >= 0) rc = ct_reg_write(t->load.dev, CT_REG_POLICY, t->o->policy);
  if (rc >= 0 && t->o->train_cap) rc = ct_reg_write(t->load.dev, CT_REG_TRAIN_CAP, t->o->train_cap);
  return load_check(&t->load, rc, "setting registers");
}

void interfere_bounds(struct interfere *t) {
  struct ct_chain_core sharing = {.cols = t->load.info.array_cols,
                                  .lanes = t->load.info.vpu_lanes,
                                  .floor = t->o->floor,
                                  .beat_cycles = t->beat_cycles};
  ct_reg_read(t->load.dev, CT_REG_TRAIN_CAP, &t->train_cap);
  sharing.train_cap = t->train_cap;
  const struct ct_bound_setting setting = {.policy = t->o->policy,
                                           .floor = t->o->floor,
                                           .train_cap = t->train_cap,
                                           .array_cols = t->load.info.array_cols,
                                           .vpu_lanes = t->load.info.vpu_lanes,
                                           .reorders = t->refused > 0};
  for (unsigned u = 0; u < CT_UNIT_COUNT; ++u)
    t->bound.unit[u] = ct_bound_wait(u, &setting);
  t->bound.job = ct_chain_job(&sharing, &t->code);
}

bool interfere_job_bounded(const struct interfere *t) {
  return t->o->policy == CT_PRIORITY && t->o->floor == 0;
}

/* What the name of a simulated device says of its memory; no other can be measured. */
static void read_memory(struct interfere *t) {
  const char scheme[] = "sim:", *device = t->o->device;
  struct ct_uri uri;
  char why[256];
  t->beat_cycles = 1;
  if (strncmp(device, scheme, sizeof scheme - 1) != 0 ||
      !ct_uri_parse(&uri, "sim", device + sizeof scheme - 1, why, sizeof why))
    return;
  const uint64_t bandwidth = ct_uri_number(&uri, "bandwidth");
  t->beat_cycles = (CT_UNIT + bandwidth - 1) / bandwidth;
  t->refused = (double)ct_uri_number(&uri, "stall") / 100;
}

int interfere_open(struct interfere *t, const struct interfere_options *o) {
  *t = (struct interfere){.o = o};
  ct_rand_seed(&t->rand, o->seed, CT_RAND_STREAM_INTERFERENCE);
  if (parse_network(o->network, &t->net) || load_open(&t->load, o->device, o->json)) return 1;
  t->load.part[0] = (struct load_part){"submitting training", top_up, t};
  t->load.take = interfere_take;
  t->load.arg = t;
  read_memory(t);
  interfere_clear(t);
  int rc = ct_probe(t->load.dev, &t->live);
  if (rc >= 0) rc = ct_model_create(t->load.dev, t->net.width, t->net.layers, o->seed, &t->model);
  if (rc < 0) return cli_fail_device(t->load.dev, rc, o->device);
  if (set_registers(t) || open_inference(t) || open_requests(t)) return 1;
  if (o->load == LOAD_NONE) return 0;
  return o->load == LOAD_MODEL ? open_batches(t) : open_stress(t);
}

static void free_run(struct interfere_run *r) {
  free(r->latency);
  free(r->refused);
  r->latency = r->refused = NULL;
}

void interfere_close(struct interfere *t) {
  ct_program_free(t->train);
  ct_program_free(t->infer);
  for (size_t i = 0; i < BATCHES; ++i)
    ct_batch_free(t->batch[i]);
  ct_weights_free(t->weights);
  ct_model_free(t->model);
  load_close(&t->load);
  free(t->code.cmd);
  free(t->expected);
  free_run(&t->alone);
  free_run(&t->train_alone);
  free_run(&t->together);
  free_run(&t->busy);
  json_decref(t->alone_json);
}
