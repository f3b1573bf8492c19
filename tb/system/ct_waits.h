/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a job of inference can lose to training under any policy and floor: docs/architecture.md,
 * "Every policy and floor", summed over all operations of a program without loops. (Along its
 * longest chain would do; the sum is no less.)
 */
#ifndef CT_WAITS_H
#define CT_WAITS_H

#include "ct_gen.h"
#include "host/transports/ct_probe.h"

/* Cycles more than alone, at most, on a memory that moves a beat a cycle. Not under JOB. */
uint64_t ct_waits_job(const struct ct_gen_prog *prog, const struct ct_bound_setting *s);

#endif
