/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file of the digits, as it is, in the program. The path is relative to the folder the compiler
 * runs in, the top of the repository; host.mk has this object made again when the file changes.
 */
#include "ct_dataset.h"

#ifndef CT_DIGITS_FILE
#define CT_DIGITS_FILE "host/data/digits/digits.csv.gz"
#endif

__asm__(
    ".pushsection .rodata,\"a\",%progbits\n"
    ".global ct_digits_gz\n"
    ".hidden ct_digits_gz\n"
    ".type ct_digits_gz, %object\n"
    "ct_digits_gz:\n"
    ".incbin \"" CT_DIGITS_FILE
    "\"\n"
    ".size ct_digits_gz, . - ct_digits_gz\n"
    ".global ct_digits_gz_end\n"
    ".hidden ct_digits_gz_end\n"
    ".type ct_digits_gz_end, %object\n"
    "ct_digits_gz_end:\n"
    ".byte 0\n"
    ".popsection\n");
