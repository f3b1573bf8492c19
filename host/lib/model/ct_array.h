/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An array inside the library: members, batches, and the runs under way.
 *
 *   ct_array.c         members: joining, leaving, facts
 *   ct_array_batch.c   batches: who reads which, when one is written
 *   ct_array_rank.c    ranks: who lies beside whom
 *   ct_array_run.c     runs: which is next, what has come of it
 *
 * A member is a network, with as many frames as it has runs under way at once. Frames have places
 * for outputs alone; those of inputs are lent to them by batches, which several members read that
 * have the same feed.
 *
 * Rules, so that a member becomes what it becomes alone:
 *   1. Run r of a member begins when its run r - ahead has ended and its loss is known.
 *   2. It does not begin if any run up to that one had a loss that is not finite.
 *   3. Before run r, r a multiple of `look`, all others of the member have ended, and its weights
 *      are looked at.
 *   4. Nothing else of another member or of time decides what a member does, but that a failure
 *      is that of all whose run it was.
 *
 * Members of a rank that can begin the same run on the same batch, and are neighbours, begin it
 * together. Ranks are made anew at the beginning of a call, when nothing is under way, where who
 * can run has changed; so neighbours are what is left of them.
 */
#ifndef CT_ARRAY_H
#define CT_ARRAY_H

#include "coltrain/array.h"
#include "ct_network.h"

/* Each run of a member that is under way has a frame, with a place in the member's rank. */
enum { CT_ARRAY_AHEAD = CT_RANK_FRAMES };

/* Inputs and labels of a run of networks of the same programs. */
struct ct_array_batch {
  const struct ct_shared *kind; /* NULL: no member is of it any more */
  struct ct_feed feed;
  uint64_t run; /* that it is for; CT_NO_CYCLE: nothing has been written, or not all of it */
  struct ct_regions at;
  size_t uses;   /* runs under way */
  uint64_t used; /* when last, by the array's count of submitted runs */
};

struct ct_array_member {
  uint32_t number;
  ct_network *network;
  ct_frame *frame[CT_ARRAY_AHEAD];
  uint32_t slot; /* in its network's rank, if that has one */
  int loss;      /* the tensor */
  uint32_t ahead;
  struct ct_feed feed;
  uint64_t limit;      /* as in ct_array_limit() */
  uint64_t next, goal; /* the run that begins next; where to stop for now */
  uint64_t under_way;  /* runs ... */
  enum ct_queue queue; /* ... which are in this one */
  uint64_t wrote;      /* its frame has the inputs of this run; CT_NO_CYCLE: of none */
  uint64_t looked;     /* weights were found right in front of this run; CT_NO_CYCLE: of none */
  uint64_t ended_by;   /* as in struct ct_member_info */
  bool ended;          /* no more runs begin */
  struct ct_member_info info; /* but for what is asked when it is copied */
};

/* Members whose runs begin together, slot by slot. */
struct ct_array_row {
  struct ct_array_member *member[CT_MEMBERS_AT_ONCE]; /* NULL: it has left */
  uint32_t count;
};

/* A run under way. */
struct ct_array_flight {
  struct ct_array_row row;
  uint32_t frame; /* the number of its frames */
  enum ct_queue queue;
  struct ct_array_batch *batch;
  uint64_t run, tag;
};

struct ct_array {
  struct ct_handle handle; /* first */
  ct_device *dev;
  uint32_t ahead, look;
  bool apart, both;
  struct ct_array_member **member;
  size_t members;
  uint32_t numbered; /* members that have ever joined */
  struct ct_array_batch **batch;
  size_t batches;
  struct ct_array_flight *flight; /* in the order in which they were submitted */
  size_t flights, flight_room;
  size_t turn;        /* the member that is asked next */
  enum ct_queue full; /* the queue that had no room */
  bool stop;          /* the watch has asked for the end */
  uint64_t submitted, ended, written;
};

/* CT_OK, or an error with a sentence: NULL, freed before, or of a closed device. */
int ct_check_array(const struct ct_array *a);

bool ct_array_same_feed(const struct ct_feed *a, const struct ct_feed *b);

/* A batch for the next run of a member, written and taken. *batch is NULL when there is no room for
 * another one at present. CT_OK, or an error; *own: it is the feed's, not the device's. */
int ct_array_batch_take(struct ct_array *a, struct ct_array_member *m,
                        struct ct_array_batch **batch, bool *own);
/* Makes sure that there is one for members of that kind. */
int ct_array_batch_reserve(struct ct_array *a, const struct ct_array_member *m);
/* Frees those that no member is of the kind of. */
void ct_array_batches_trim(struct ct_array *a);
void ct_array_batches_free(struct ct_array *a);

/* Puts members side by side that can take their next run together; nothing is under way. Where
 * there is no room for that they stay where they are. */
int ct_array_ranks(struct ct_array *a);
/* Gives back what runs of ranks need for a while, unless such runs are under way; the next makes
 * it again, where there is room. Whether there was any. */
bool ct_array_spare(struct ct_array *a);
/* Whether it does not read batches: it lies in a rank whose members have inputs of their own. */
bool ct_array_has_own_inputs(const struct ct_array_member *m);
/* The member in the next slot of the same rank (by 1, or -1); NULL: nobody is there. */
struct ct_array_member *ct_array_neighbour(const struct ct_array *a,
                                           const struct ct_array_member *m, int by);

#endif
