/* SPDX-License-Identifier: Apache-2.0 */
/* Recording: spaces, refs, commands. See ct_lower.h. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coltrain/coltrain.h"
#include "ct_lower_impl.h"

/* ---- The recorder -------------------------------------------------------------------------- */

struct ct_lower *ct_lower_start(unsigned args, bool batch) {
  struct ct_lower *l = calloc(1, sizeof *l);
  if (!l) return NULL;
  ct_build_init(&l->b, args);
  l->b.batch = batch;
  l->spaces = 1;
  l->limit = CT_PROG_MAX;
  l->look = CT_LOOK;
  return l;
}

void ct_lower_drop(struct ct_lower *l) {
  if (!l) return;
  ct_build_free(&l->b);
  free(l->rec);
  free(l->gen);
  free(l);
}

int ct_lower_error(const struct ct_lower *l) {
  return l->error;
}

int ct_lower_fail(struct ct_lower *l, int error, const char *format, ...) {
  if (l->error) return l->error;
  l->error = error;
  va_list args;
  va_start(args, format);
  vsnprintf(l->why, sizeof l->why, format, args);
  va_end(args);
  return error;
}

void ct_lower_carriers(struct ct_lower *l, const struct ct_carriers *carriers) {
  l->carriers = *carriers;
  l->has_carriers = true;
}

void ct_lower_count(struct ct_lower *l, uint64_t *work) {
  l->count_work = work;
}

void ct_lower_one_job(struct ct_lower *l) {
  l->one_job = true;
}

void ct_lower_cut(struct ct_lower *l) {
  l->cut = l->count;
}

void ct_lower_limit(struct ct_lower *l, size_t commands) {
  l->limit = commands;
}

void ct_lower_look(struct ct_lower *l, uint64_t records) {
  l->look = records;
}

void ct_lower_flat(struct ct_lower *l) {
  l->flat = true;
}

void ct_lower_fault(struct ct_lower *l, enum ct_lower_fault fault, unsigned nth) {
  l->fault = fault;
  l->fault_nth = nth;
}

/* ---- Spaces -------------------------------------------------------------------------------- */

static uint32_t add_space(struct ct_lower *l, const struct ct_space *space) {
  if (l->spaces == CT_MOST_SPACES) {
    ct_lower_fail(l, CT_ERR_NO_SPACE, "a program with more than %d tensors and rings",
                  CT_MOST_SPACES - 1);
    return 0;
  }
  l->space[l->spaces] = *space;
  return l->spaces++;
}

uint32_t ct_tensor(struct ct_lower *l, const struct ct_tensor *t) {
  return add_space(l, &(struct ct_space){.name = t->name,
                                         .place = t->place,
                                         .reg = t->reg,
                                         .at = t->at,
                                         .size = t->size,
                                         .row = t->row,
                                         .col = t->col});
}

uint32_t ct_ring(struct ct_lower *l, const struct ct_ring *r) {
  if (r->slots == 0 || r->place == CT_IN_DRAM)
    ct_lower_fail(l, CT_ERR_INTERNAL, "ring %s has no slots", r->name);
  const uint32_t ring = add_space(
      l, &(struct ct_space){
             .name = r->name, .place = r->place, .at = r->at, .size = r->size, .slots = r->slots});
  ct_ring_steps(l, ring, 0);
  return ring;
}

/* ---- Refs ---------------------------------------------------------------------------------- */

static uint32_t add_gen(struct ct_lower *l, uint32_t ring) {
  struct ct_space *space = &l->space[ring];
  if (l->gens == l->gen_room) {
    const size_t room = l->gen_room ? 2 * l->gen_room : 256;
    struct ct_gen *gen = realloc(l->gen, room * sizeof *gen);
    if (!gen) {
      ct_lower_fail(l, CT_ERR_MEMORY, "out of memory");
      return 0;
    }
    l->gen = gen;
    l->gen_room = room;
  }
  l->gen[l->gens] = (struct ct_gen){.ring = ring, .slot = space->pos, .at = l->count};
  space->pos = (space->pos + 1) % space->slots;
  return (uint32_t)l->gens++;
}

struct ct_ref ct_next_n(struct ct_lower *l, uint32_t ring, uint32_t n) {
  if (l->error) return (struct ct_ref){.space = 0};
  if (!l->repeating && n <= l->space[ring].slots && l->space[ring].pos + n > l->space[ring].slots)
    l->space[ring].pos = 0;
  if (n == 0 || l->space[ring].slots == 0 || l->space[ring].pos + n > l->space[ring].slots) {
    ct_lower_fail(l, CT_ERR_INTERNAL, "%u neighbours of ring %s from slot %u on: it has %u", n,
                  l->space[ring].name, l->space[ring].pos, l->space[ring].slots);
    return (struct ct_ref){.space = 0};
  }
  const struct ct_ref ref = {.space = ring, .gen = add_gen(l, ring), .gens = n};
  for (uint32_t i = 1; i < n; ++i)
    add_gen(l, ring);
  return ref;
}

struct ct_ref ct_next(struct ct_lower *l, uint32_t ring) {
  return ct_next_n(l, ring, 1);
}

struct ct_ref ct_tiles_of(const struct ct_lower *l, uint32_t tensor, uint32_t r, uint32_t rows,
                          uint32_t c, uint32_t cols) {
  const struct ct_space *t = &l->space[tensor];
  return (struct ct_ref){.space = tensor,
                         .at = r * t->row + c * t->col,
                         .lo = {(int32_t)r, (int32_t)c},
                         .hi = {(int32_t)(r + rows), (int32_t)(c + cols)}};
}

struct ct_ref ct_tile_of(const struct ct_lower *l, uint32_t tensor, uint32_t r, uint32_t c) {
  return ct_tiles_of(l, tensor, r, 1, c, 1);
}

struct ct_ref ct_all_of(const struct ct_lower *l, uint32_t tensor) {
  (void)l;
  return (struct ct_ref){.space = tensor, .hi = {1 << 24, 1 << 24}};
}

struct ct_ref ct_nth(struct ct_ref ref, uint32_t i) {
  ref.gen += i;
  ref.gens = 1;
  return ref;
}

struct ct_ref ct_behind(struct ct_ref ref, uint32_t words) {
  ref.at += words;
  return ref;
}

struct ct_ref ct_part(struct ct_ref ref, uint32_t part, uint32_t words) {
  ref.part = part;
  ref.one_part = true;
  ref.at += words;
  return ref;
}

uint32_t ct_cmd_address(const struct ct_lower *l, const struct ct_ref *ref) {
  const struct ct_space *space = &l->space[ref->space];
  const uint32_t slot = space->slots && ref->gen < l->gens ? l->gen[ref->gen].slot : 0;
  const uint32_t at = space->at + slot * space->size + ref->at;
  if (space->place != CT_IN_DRAM || !l->b.group) return at;
  return at + l->member * l->b.group->stride[space->reg];
}

/* ---- Commands ------------------------------------------------------------------------------ */

size_t ct_rec_add(struct ct_lower *l, const struct ct_rec *rec) {
  if (l->count == l->room) {
    const size_t room = l->room ? 2 * l->room : 256;
    struct ct_rec *more = realloc(l->rec, room * sizeof *more);
    if (!more) {
      ct_lower_fail(l, CT_ERR_MEMORY, "out of memory");
      return 0;
    }
    l->rec = more;
    l->room = room;
  }
  l->rec[l->count] = *rec;
  ++l->work;
  l->looked += l->looking > 0;
  return l->count++;
}

static void touch(struct ct_lower *l, struct ct_rec *rec, const struct ct_ref *ref, bool write) {
  if (ref->space == 0 || ref->space >= l->spaces) {
    ct_lower_fail(l, CT_ERR_INTERNAL, "a command of queue %d names no space", (int)rec->q);
    return;
  }
  struct ct_access *a = &rec->access[rec->accesses++];
  *a = (struct ct_access){.space = ref->space, .write = write, .part = ref->part};
  a->one_part = ref->one_part;
  if (l->space[ref->space].slots) {
    a->gen = ref->gen;
    a->gens = ref->gens;
  } else {
    memcpy(a->lo, ref->lo, sizeof a->lo);
    memcpy(a->hi, ref->hi, sizeof a->hi);
    const bool own = l->b.group && l->space[ref->space].place == CT_IN_DRAM;
    const int32_t behind = own ? (int32_t)(l->member * CT_MEMBER_PIECES) : 0;
    a->lo[0] += behind;
    a->hi[0] += behind;
  }
}

/* Appends a command made of a field list. */
static void add(struct ct_lower *l, struct ct_rec *rec, uint32_t op, const struct ct_field_value *v,
                size_t n) {
  struct ct_cmd cmd = {{0}};
  if (l->error) return;
  CT_PUT(&cmd, ALL_OP, op);
  for (size_t i = 0; i < n; ++i)
    if (!ct_cmd_set(&cmd, v[i].field, v[i].value)) {
      ct_lower_fail(l, CT_ERR_INTERNAL, "%s of %s cannot be %lld", ct_fields[v[i].field].name,
                    ct_op_find(op)->name, (long long)v[i].value);
      return;
    }
  ct_node_of(&rec->n, &cmd);
  if (rec->mult == 0) rec->mult = 1;
  ct_rec_add(l, rec);
}
#define ADD(l, rec, OP, ...)                                            \
  add(l, rec, CT_OP_##OP, (const struct ct_field_value[]){__VA_ARGS__}, \
      sizeof((const struct ct_field_value[]){__VA_ARGS__}) / sizeof(struct ct_field_value))

static uint32_t or_one(uint32_t n) {
  return n ? n : 1;
}

/* Slots of twins are the same words. */
static void check_twin(struct ct_lower *l, const struct ct_dma *c, enum ct_q q) {
  if (q != CT_Q_LD || l->space[c->spm.space].twin != c->twin.space ||
      ct_cmd_address(l, &c->spm) != ct_cmd_address(l, &c->twin))
    ct_lower_fail(l, CT_ERR_INTERNAL, "ring %s is not filled with its twin",
                  l->space[c->spm.space].name);
}

static void dma(struct ct_lower *l, const struct ct_dma *c, enum ct_q q) {
  struct ct_rec rec = {.q = q, .by_step = c->by_step, .mult = c->by_step ? or_one(c->n2) : 1};
  if (l->error) return;
  touch(l, &rec, &c->dram, q == CT_Q_ST);
  touch(l, &rec, &c->spm, q == CT_Q_LD);
  if (!l->error && c->twin.space) {
    touch(l, &rec, &c->twin, true);
    if (!l->error) check_twin(l, c, q);
  }
  if (l->error) return;
  const struct ct_field_value v[] = {CT_SET(DMA_DRAM, ct_cmd_address(l, &c->dram)),
                                     CT_SET(DMA_DRAM_REG, l->space[c->dram.space].reg),
                                     CT_SET(DMA_SPM, ct_cmd_address(l, &c->spm)),
                                     CT_SET(DMA_HDR, c->hdr),
                                     CT_SET(DMA_GATHER, c->gather),
                                     CT_SET(DMA_NB, c->nb),
                                     CT_SET(DMA_S0, or_one(c->s0)),
                                     CT_SET(DMA_N1, or_one(c->n1)),
                                     CT_SET(DMA_N1_REG, c->comp.n1_reg),
                                     CT_SET(DMA_COMP, c->comp.on),
                                     CT_SET(DMA_FREE, c->comp.free),
                                     CT_SET(DMA_D1, c->d1),
                                     CT_SET(DMA_S1, c->s1),
                                     CT_SET(DMA_N2, or_one(c->n2)),
                                     CT_SET(DMA_D2, c->d2),
                                     CT_SET(DMA_S2, c->s2)};
  add(l, &rec, q == CT_Q_LD ? CT_OP_LD : CT_OP_ST, v, sizeof v / sizeof *v);
}

void ct_ld(struct ct_lower *l, const struct ct_dma *c) {
  dma(l, c, CT_Q_LD);
}

void ct_st(struct ct_lower *l, const struct ct_dma *c) {
  dma(l, c, CT_Q_ST);
}

void ct_mm_walk(struct ct_lower *l, const struct ct_walk_shape *shape) {
  struct ct_cmd cmd[2];
  if (l->error) return;
  if (!ct_walk_commands(shape, &cmd[0], &cmd[1])) {
    ct_lower_fail(l, CT_ERR_INTERNAL, "a walk over images of %d x %d does not fit its commands",
                  (int)shape->w, (int)shape->h);
    return;
  }
  for (unsigned i = 0; i < 2; ++i) {
    struct ct_rec rec = {.q = CT_Q_MM, .mult = 1};
    ct_node_of(&rec.n, &cmd[i]);
    ct_rec_add(l, &rec);
  }
}

/* A word of the window, or, of a walk that begins with padding, one in front of it. */
static uint32_t address_of_a(const struct ct_lower *l, const struct ct_mm *c) {
  const uint32_t a = ct_cmd_address(l, &c->a);
  return c->walk ? (a + (uint32_t)c->walk_a) & 0xfffff : a;
}

void ct_mm(struct ct_lower *l, const struct ct_mm *c) {
  const uint32_t rows = c->rows_reg ? CT_TILE : c->rows;
  struct ct_rec rec = {.q = CT_Q_MM, .by_step = c->by_step, .mult = ct_tiles(rows) * c->nt};
  if (l->error) return;
  touch(l, &rec, &c->acc, true);
  touch(l, &rec, &c->b, false);
  touch(l, &rec, &c->a, false);
  if (l->error) return;
  ADD(l, &rec, MM, CT_SET(MM_A, address_of_a(l, c)), CT_SET(MM_A_TRANS, c->a_trans),
      CT_SET(MM_WALK, c->walk), CT_SET(MM_POS, c->pos), CT_SET(MM_AM, c->am), CT_SET(MM_AK, c->ak),
      CT_SET(MM_B, ct_cmd_address(l, &c->b)), CT_SET(MM_B_TRANS, c->b_trans), CT_SET(MM_BN, c->bn),
      CT_SET(MM_BK, c->bk), CT_SET(MM_ACCUM, c->accum), CT_SET(MM_KT, c->kt), CT_SET(MM_NT, c->nt),
      CT_SET(MM_ROWS, c->rows), CT_SET(MM_ROWS_REG, c->rows_reg),
      CT_SET(MM_ACC, ct_cmd_address(l, &c->acc)), CT_SET(MM_ACC_N, c->acc_n));
}

void ct_vl(struct ct_lower *l, const struct ct_vmove *c) {
  struct ct_rec rec = {.q = CT_Q_VL};
  const uint32_t stride = c->stride ? c->stride : c->mode == CT_VL_F32 ? CT_F32_ROW_UNITS : 1;
  if (l->error) return;
  touch(l, &rec, &c->reg, true);
  touch(l, &rec, &c->spm, false);
  if (l->error) return;
  ADD(l, &rec, VL, CT_SET(VL_TD, ct_cmd_address(l, &c->reg)),
      CT_SET(VL_SPM, ct_cmd_address(l, &c->spm)), CT_SET(VL_MODE, c->mode),
      CT_SET(VL_ROWS, c->rows), CT_SET(VL_ROWS_REG, c->rows_reg), CT_SET(VL_ROW_STRIDE, stride));
}

void ct_vs(struct ct_lower *l, const struct ct_vmove *c) {
  struct ct_rec rec = {.q = CT_Q_VS, .mult = c->more + 1};
  const uint32_t stride = c->stride ? c->stride : c->mode == CT_VS_F32 ? CT_F32_ROW_UNITS : 1;
  if (l->error) return;
  touch(l, &rec, &c->reg, false);
  touch(l, &rec, &c->spm, true);
  if (l->error) return;
  ADD(l, &rec, VS, CT_SET(VS_TS, ct_cmd_address(l, &c->reg)),
      CT_SET(VS_SPM, ct_cmd_address(l, &c->spm)), CT_SET(VS_MODE, c->mode),
      CT_SET(VS_ROWS, c->rows), CT_SET(VS_ROWS_REG, c->rows_reg), CT_SET(VS_ROW_STRIDE, stride),
      CT_SET(VS_MORE, c->more), CT_SET(VS_TILE_STRIDE, c->tile_stride),
      CT_SET(VS_NARROW, c->narrow));
}

static unsigned va_source(const struct ct_lower *l, const struct ct_ref *a) {
  if (a->space == 0) return 2;
  return l->space[a->space].place == CT_IN_ACC ? 1 : 0;
}

/* The register of a number that differs from member to member. */
static unsigned number_reg(struct ct_lower *l, unsigned reg) {
  const struct ct_fused *g = l->b.group;
  if (!g || !g->place[reg]) return reg;
  if (g->round * g->numbers > g->all)
    ct_lower_fail(l, CT_ERR_NO_SPACE, "%u members of %u numbers each in a pass", g->round,
                  g->numbers);
  return g->table + g->place[reg] - 1 + l->member % g->round * g->numbers;
}

void ct_va(struct ct_lower *l, const struct ct_va *c) {
  struct ct_rec rec = {.q = CT_Q_VA, .mult = c->more + 1};
  if (l->error) return;
  if (c->a.space) touch(l, &rec, &c->a, false);
  if (c->q.space) touch(l, &rec, &c->q, false);
  touch(l, &rec, &c->to, true);
  if (l->error) return;
  const uint32_t rows = c->rows || c->rows_reg ? c->rows : CT_TILE;
  const struct ct_field_value v[] = {CT_SET(VA_TD, ct_cmd_address(l, &c->to)),
                                     CT_SET(VA_TA, c->a.space ? ct_cmd_address(l, &c->a) : 0),
                                     CT_SET(VA_TQ, c->q.space ? ct_cmd_address(l, &c->q) : 0),
                                     CT_SET(VA_A_SRC, va_source(l, &c->a)),
                                     CT_SET(VA_B_SRC, c->b),
                                     CT_SET(VA_C_SRC, c->c),
                                     CT_SET(VA_FN, c->fn),
                                     CT_SET(VA_FUNC, c->func),
                                     CT_SET(VA_NEG_C, c->neg_c),
                                     CT_SET(VA_RELU, c->relu),
                                     CT_SET(VA_PAD_NINF, c->ninf),
                                     CT_SET(VA_FULL, !c->part_rows),
                                     CT_SET(VA_SB, c->sb),
                                     CT_SET(VA_SC, c->sc),
                                     CT_SET(VA_SB_REG, number_reg(l, c->sb_reg)),
                                     CT_SET(VA_SC_REG, number_reg(l, c->sc_reg)),
                                     CT_SET(VA_ROWS, rows),
                                     CT_SET(VA_ROWS_REG, c->rows_reg),
                                     CT_SET(VA_COLS, c->cols ? c->cols : CT_TILE),
                                     CT_SET(VA_ROW_XOR, c->row_xor),
                                     CT_SET(VA_LANE_XOR, c->lane_xor),
                                     CT_SET(VA_MORE, c->more)};
  add(l, &rec, CT_OP_VA, v, sizeof v / sizeof *v);
}

void ct_reduce(struct ct_lower *l, const struct ct_reduce *c) {
  for (unsigned i = 0; i < 4; ++i) {
    const struct ct_ref from = i & 1 ? c->b : c->a, next = i & 1 ? c->a : c->b;
    ct_va(l, &(struct ct_va){.to = i == 3 ? c->to : next,
                             .a = from,
                             .q = from,
                             .c = CT_VA_TILE,
                             .fn = c->fn,
                             .row_xor = c->rows ? 8u >> i : 0,
                             .lane_xor = c->rows ? 0 : 8u >> i});
  }
}
