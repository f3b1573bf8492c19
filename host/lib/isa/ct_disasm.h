/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs as text: one line a command, illegal ones too.
 *
 *       0  LD    Dram=r1+0x40 Spm=0x0 Hdr Nb=16 S0=1 N1=4 D1=17 S1=16 N2=1; sig0 s2
 *       1  LOOP  Count=r3
 *       2    MM    A=r4 B=0x100 BTrans Kt=4 Nt=2 Rows=r5; wait0 s2, sig1 s3
 *
 * Fields that are zero are left out. A value with a register in front of the plus sign is added at
 * dispatch. ADDI reads r5 = r5 + 16. Set bits that belong to no field follow as "reserved".
 */
#ifndef CT_DISASM_H
#define CT_DISASM_H

#include "ct_cmd.h"

/* Longest line, terminating zero included, without index and indentation. */
#define CT_DISASM_MAX 640

/* Writes one command, cut to size bytes with the terminating zero; returns its length. */
size_t ct_disasm_cmd(const struct ct_cmd *cmd, char *buf, size_t size);

/* Calls line() for every command of a program, with index and loops indented. */
void ct_disasm(const struct ct_cmd *cmds, size_t count, void (*line)(void *arg, const char *text),
               void *arg);

#endif
