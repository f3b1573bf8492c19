/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random commands: what a broken or hostile program might hold. Programs may hang, race, leave
 * every window and break every rule of the manual.
 */
#ifndef CT_FUZZ_H
#define CT_FUZZ_H

#include "ct_rig.h"

enum ct_fuzz_kind {
  CT_FUZZ_RAW,    /* 256 random bits each */
  CT_FUZZ_FIELDS, /* a legal operation code, every field random over its whole width */
  CT_FUZZ_NEAR,   /* fields mostly of a size that means something: runs long before it breaks */
  CT_FUZZ_SPOILT, /* a race-free program with up to three bits inverted */
  CT_FUZZ_KINDS
};

/* Race-free programs to be spoilt, every other one compresses. */
enum { CT_FUZZ_POOL = 24 };
/* Units of the output area: index units of compressed groups (where ct_gen_compressing() has them,
 * too), and their pages (of 256). */
enum { CT_FUZZ_INDEX = 4000, CT_FUZZ_ARENA = 4096, CT_FUZZ_PAGES = 12 };
struct ct_fuzz {
  ct_rng rng;
  uint32_t in, out; /* first units of the context's areas */
  struct ct_gen_prog pool[CT_FUZZ_POOL];
};

void ct_fuzz_init(struct ct_fuzz *fuzz, uint64_t stream, unsigned ctx);

/* The next program, of a random kind and length. */
enum ct_fuzz_kind ct_fuzz_next(struct ct_fuzz *fuzz, struct ct_gen_prog *prog);

/* What the job's descriptor says besides: flags, reserved ones now and then, and sometimes a
 * length, a place of the program or a time limit that is not the program's. */
void ct_fuzz_descriptor(struct ct_fuzz *fuzz, struct ct_rig_job *job);

#endif
