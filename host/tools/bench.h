/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The measurements of `coltrain bench`. Each has its own options and returns the exit status, like
 * a verb.
 */
#ifndef BENCH_H
#define BENCH_H

int bench_interference(int argc, char **argv);
int bench_sim(int argc, char **argv);
int bench_emu(int argc, char **argv);
int bench_gemm(int argc, char **argv);

#endif
