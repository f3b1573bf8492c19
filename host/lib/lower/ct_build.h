/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How programs are made. A builder writes down flat what the device shall do, command by command
 * and with plain addresses, as if there were no loops; ct_build_finish() then rolls repetitions up
 * into LOOPs with address registers (at most 4 deep) and encodes the result.
 *
 * A repetition is a run of commands that differ from the next run only in addresses, and in each
 * place by a constant: so everything else that shall roll has to be periodic, semaphores included.
 */
#ifndef CT_BUILD_H
#define CT_BUILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ct_cmd.h"

enum { CT_SLOTS = 3 };

/*
 * Members: what lies in device memory several times, at constant strides, so that one program can
 * work on all of them. Such a program has a loop whose number of passes is an argument. A pass is
 * for `round` neighbours; behind it the addresses of the regions are moved on. Numbers that differ
 * from member to member are in a table of registers, member by member, which goes down by as many
 * registers. Kernels name them by registers of their own, as if there were one member.
 */
struct ct_fused {
  uint32_t round;               /* members of a pass */
  uint32_t stride[CT_NUM_REGS]; /* units from member to member behind each argument */
  unsigned passes;              /* the argument that says how many there are */
  unsigned table, numbers;      /* its first register, how many numbers a member has in it ... */
  unsigned all;                 /* ... and how many registers it has */
  uint8_t place[CT_NUM_REGS];   /* 1 + which of these a kernel names by a register; 0: none */
};

/* A command, or a loop over the nodes behind it. Addresses (slots) are kept apart from the rest:
 * LD, ST: Dram, Spm; MM: A, B, Pos; VL, VS: Spm. */
struct ct_node {
  struct ct_cmd cmd;                      /* slots are 0 */
  uint32_t slot[CT_SLOTS];                /* of the first pass */
  int32_t stride[CT_SLOTS][CT_NUM_LOOPS]; /* per pass of the enclosing loops, innermost first */
  uint32_t count;                         /* 0: a command; else passes of the loop */
  uint32_t size;                          /* nodes of this subtree, this one included */
  uint8_t depth;                          /* loops inside, this one included */
  bool raw;                               /* a loop of ct_build_repeat(): not rolled inside yet */
  bool members;                           /* the loop over members, on the top level */
  uint64_t shape;                         /* hash of all but the slots */
};

/* A list of nodes. error: the first thing that went wrong, CT_OK or a ct_error. */
struct ct_build {
  struct ct_node *node;
  size_t count, room;
  unsigned args;                /* registers r1..r<args> hold arguments */
  bool batch;                   /* CT_BATCH_REG holds the number of requests: not for addresses */
  const struct ct_fused *group; /* of the loop over members; NULL: there is none */
  int error;
  uint64_t work; /* commands written down and comparisons: what building costs */
};

/* Where the program of a batch finds the number of its requests. */
enum { CT_BATCH_REG = CT_NUM_ARGS + 1 };

/* A command as a node, and as it is in the first pass. */
void ct_node_of(struct ct_node *n, const struct ct_cmd *cmd);
struct ct_cmd ct_node_command(const struct ct_node *n);

void ct_build_init(struct ct_build *b, unsigned args);
void ct_build_free(struct ct_build *b);

/* Appends a command. Commands that reach a loop must not use registers above args. */
void ct_build_add(struct ct_build *b, const struct ct_cmd *cmd);

/* What was appended since `mark` (the count then) is the first two of so many copies, each of the
 * same commands, whose addresses go on by the same steps: a loop takes their place. It is for lists
 * too long to be written down. Whole copies before and behind it, in its own order or turned,
 * join it when all is rolled. CT_ERR_INTERNAL in b->error if the two are not alike. */
void ct_build_repeat(struct ct_build *b, size_t mark, uint32_t copies);

/* body(self, 0), body(self, 1) ... of which two are written down. */
void ct_build_passes(struct ct_build *b, uint32_t passes, void (*body)(void *self, uint32_t pass),
                     void *self);

/* Rolls, appends END and encodes into *cmds (malloc'd; the caller frees). Returns how many, or
 * CT_ERR_MEMORY, or CT_ERR_NO_SPACE if more than CT_PROG_MAX commands remain (*cmds is NULL then,
 * and *needed, which may be NULL, says how many; 0: out of registers). */
int ct_build_finish(struct ct_build *b, struct ct_cmd **cmds, size_t *needed);

/* The same for nodes that have their loops already. */
int ct_build_encode(const struct ct_build *b, struct ct_cmd **cmds, size_t *needed);

/* ---- Commands with a field list, as builders write them ---- */

/* CT_CMD(LD, CT_SET(DMA_NB, 16), CT_SET(DMA_HDR, 1)): a command with those fields. */
struct ct_field_value {
  enum ct_field_id field;
  int64_t value;
};
#define CT_SET(F, value) ((struct ct_field_value){CT_F_##F, (int64_t)(value)})

/* Appends a command; CT_ERR_INTERNAL in b->error if a value does not fit its field. Fields with a
 * value of 0 may be given. */
void ct_build_cmd(struct ct_build *b, uint32_t op, const struct ct_field_value *v, size_t n);
#define CT_ADD(b, OP, ...)                                         \
  ct_build_cmd(                                                    \
      b, CT_OP_##OP, (const struct ct_field_value[]){__VA_ARGS__}, \
      sizeof((const struct ct_field_value[]){__VA_ARGS__}) / sizeof(struct ct_field_value))

#endif
