/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside the lowering layer. What is recorded is a tree in pre-order (ct_lower_record.c,
 * ct_lower_loop.c). For each job a stretch of its top level becomes a tree of items, which gets
 * carriers, waits and signals (ct_lower_sync.c, ct_lower_steps.c: full; ct_lower_free.c: free),
 * semaphores, and is written down (ct_lower_jobs.c).
 */
#ifndef CT_LOWER_IMPL_H
#define CT_LOWER_IMPL_H

#include "ct_lower.h"

enum { CT_MOST_SPACES = 96, CT_MOST_ACCESSES = 3, CT_MOST_TOKENS = 255 };

/* A tensor or a ring. */
struct ct_space {
  const char *name;
  enum ct_place place;
  unsigned reg;
  uint32_t at, size, row, col;
  uint32_t slots, steps; /* slots 0: a tensor */
  bool other_frees;
  enum ct_q freed_by;
  uint32_t pos;  /* of the next generation */
  uint32_t twin; /* a ring in the same place; 0: none */
};

struct ct_access {
  uint32_t space;
  bool write;
  bool one_part;
  uint32_t gen, gens, part;        /* of a ring */
  int32_t lo[2], hi[2];            /* of a tensor */
  int32_t stride[2][CT_NUM_LOOPS]; /* of lo and hi per pass, innermost loop first */
};

/* A recorded command, or a loop over those behind it. */
struct ct_rec {
  struct ct_node n;
  enum ct_q q; /* CT_Q_COUNT: a loop */
  bool by_step;
  uint32_t mult; /* tokens it gives or takes where it does so by steps, tiles, repetitions */
  unsigned accesses;
  struct ct_access access[CT_MOST_ACCESSES];
};

struct ct_gen {
  uint32_t ring, slot;
  size_t at; /* it began in front of this record */
};

struct ct_lower {
  struct ct_build b;                     /* arguments, batch; the nodes of a finished job */
  struct ct_space space[CT_MOST_SPACES]; /* from 1 on */
  uint32_t spaces;
  uint64_t spm; /* words taken: ct_lower_places.c */
  struct ct_rec *rec;
  size_t count, room;
  struct ct_gen *gen;
  size_t gens, gen_room;
  struct ct_carriers carriers;
  bool has_carriers, flat, one_job;
  uint64_t look, looked; /* records of passes that are compared alone: at most, so far */
  unsigned looking;      /* loops that compare one */
  unsigned repeating;    /* bodies under way */
  uint32_t member;       /* of ct_members(), under way; of these `member % round` is in the pass */
  size_t limit, cut;
  enum ct_lower_fault fault;
  unsigned fault_nth;
  uint64_t work, *count_work;
  int error;
  char why[256];
};

/* Channels: of the tokens from one queue to another, and of those that free a ring's slots. */
enum {
  CT_FULL_CHANNELS = CT_Q_COUNT * CT_Q_COUNT,
  CT_CHANNELS = CT_FULL_CHANNELS + CT_MOST_SPACES
};
static inline unsigned ct_full_channel(enum ct_q from, enum ct_q to) {
  return (unsigned)from * CT_Q_COUNT + (unsigned)to;
}
static inline unsigned ct_free_channel(uint32_t ring) {
  return CT_FULL_CHANNELS + ring;
}

/* How far a queue has come: its command's place in the program, and how many of its tokens. */
typedef uint64_t ct_point;
enum { CT_ALL_OF_IT = 4095 };
static inline ct_point ct_point_of(uint64_t seq, uint32_t tokens) {
  return seq << 12 | tokens;
}

enum { CT_NOBODY = -1 };

/* A command or loop of a job. Links are indices; parent CT_NOBODY: the top level. */
struct ct_item {
  struct ct_node n;
  enum ct_q q;
  bool by_step, carrier;
  uint32_t mult, taken; /* tokens of a command that gives several, and how many were taken */
  unsigned opened;      /* the channel of those, + 1 */
  unsigned accesses;
  struct ct_access access[CT_MOST_ACCESSES];
  uint64_t seq;
  int32_t parent, next, prev, child, last_child;
  unsigned depth;          /* loops around it */
  uint8_t wait[3], sig[2]; /* channels + 1 */
  ct_point before[CT_Q_COUNT], knows[CT_Q_COUNT];
  int32_t last_in[CT_Q_COUNT]; /* the last command of each queue in it */
};

/* A use of a space in a job. */
struct ct_use {
  int32_t item;
  uint8_t access;
  int32_t next; /* of the same space, the one before */
};

struct ct_sync {
  struct ct_lower *l;
  struct ct_item *item;
  size_t items, item_room;
  int32_t first, last; /* of the top level */
  struct ct_use *use;
  size_t uses, use_room;
  int32_t used[CT_MOST_SPACES];           /* the latest use */
  ct_point known[CT_Q_COUNT][CT_Q_COUNT]; /* what each queue knows of the others */
  int32_t latest[CT_Q_COUNT];             /* latest command of each queue */
  int32_t open[CT_FULL_CHANNELS];         /* who has tokens left to be taken */
  int32_t late[CT_Q_COUNT]; /* known behind the command that is visited, not in front of it */
  uint32_t ahead[CT_FULL_CHANNELS]; /* tokens that no ring holds back */
  bool overlap[CT_MOST_SPACES][CT_MOST_SPACES];
  size_t rec_from; /* the first record of the job */
  unsigned faults;
  bool too_few; /* semaphores */
  bool tight;   /* rings share them even where that takes carriers */
  /* A carrier of the queue reads the calm words early, so that it knows them; one would have had
   * to, so all is done again. */
  bool warm[CT_Q_COUNT], cold[CT_Q_COUNT];
  bool again;
};

/* Pieces of the next member's tensor in device memory come behind so many rows of pieces. */
enum { CT_MEMBER_PIECES = 1 << 25 };

/* ct_lower_record.c */
size_t ct_rec_add(struct ct_lower *l, const struct ct_rec *rec);
uint32_t ct_cmd_address(const struct ct_lower *l, const struct ct_ref *ref);

/* When a command takes its tokens: all before it begins; one for each outer step of LD and ST, or k
 * step; one for each output tile or repetition. */
enum ct_when { CT_AT_START, CT_BY_STEP, CT_BY_TILE };

/* ct_lower_items.c: the tree, tokens, carriers. */
int ct_items_make(struct ct_sync *s, size_t from, size_t to);
void ct_items_walk(struct ct_sync *s, size_t from);
void ct_items_warm(struct ct_sync *s, enum ct_q q);
void ct_items_free(struct ct_sync *s);
int32_t ct_lift(const struct ct_sync *s, int32_t item, int32_t parent);
int32_t ct_common_parent(const struct ct_sync *s, int32_t a, int32_t b);
bool ct_add_wait(struct ct_sync *s, int32_t item, unsigned channel, uint32_t tokens,
                 enum ct_when when);
bool ct_add_signal(struct ct_sync *s, int32_t item, unsigned channel, uint32_t tokens);
int32_t ct_carrier_behind(struct ct_sync *s, int32_t item, enum ct_q q);
int32_t ct_carrier_before(struct ct_sync *s, int32_t item, enum ct_q q, uint32_t tokens);
int32_t ct_latest_at(const struct ct_sync *s, int32_t at, enum ct_q q);
int32_t ct_latest_before(const struct ct_sync *s, int32_t at, enum ct_q q);
int32_t ct_carrier_last(struct ct_sync *s, int32_t loop, enum ct_q q, uint32_t tokens);
bool ct_faulty(struct ct_sync *s, enum ct_lower_fault fault);

/* What a command needs of another queue. */
struct ct_need {
  int32_t item; /* CT_NOBODY: nothing */
  ct_point point;
};

/* ct_lower_sync.c */
void ct_sync_full(struct ct_sync *s);
void ct_no_needs(struct ct_need *need);
void ct_needs_of(struct ct_sync *s, int32_t at, const struct ct_access *a, struct ct_need *need);
void ct_learn(struct ct_sync *s, enum ct_q q, int32_t giver, uint32_t tokens);
void ct_close_giver(struct ct_sync *s, unsigned channel, int32_t at);

/* ct_lower_steps.c: false: not step by step. */
bool ct_follow_steps(struct ct_sync *s, int32_t at, enum ct_q from);
bool ct_follow_parts(struct ct_sync *s, int32_t at, int32_t last);

/* ct_lower_pieces.c */
bool ct_pieces_meet(const struct ct_sync *s, const struct ct_use *before, int32_t item,
                    const struct ct_access *access);
void ct_check_passes(struct ct_sync *s, int32_t loop);

/* ct_lower_free.c */
void ct_sync_free(struct ct_sync *s);

/* ct_lower_sems.c */
void ct_sync_number(struct ct_sync *s);

#endif
