/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An SDRAM chip of 16 bit (SDR, four banks, bursts of eight), pin by pin: its memory, and every
 * rule of its data sheet that a controller can break. It knows nothing of Verilator.
 *
 * One call per rising edge of its clock:
 *
 *     read the controller's pins into `pins`; dq = ct_sdram_chip_cycle(chip, &pins); give dq to the
 *     controller as what it samples at the same edge; clock.
 *
 * (A READ of this edge shows two or three edges later, so dq never depends on the pins of the
 * call.)
 *
 * Rules: nothing but NOP in power-up; then all banks closed, refreshes, the mode register; no
 * command to a bank that is open (ACTIVE) or closed (READ, WRITE); tRCD, tRP, tRAS, tRC, tRRD,
 * tRFC, tWR, tMRD; no burst cut short; as many refreshes as time has passed, two late at most; the
 * data pins driven by the controller in all eight cycles of a write, never with the chip or in the
 * cycle after it. The first broken rule is kept (ct_sdram_chip_fault).
 */
#ifndef CT_SDRAM_CHIP_H
#define CT_SDRAM_CHIP_H

#include <stdbool.h>
#include <stdint.h>

/* Times in picoseconds. */
struct ct_sdram_chip_config {
  uint32_t clock_ps;
  uint32_t row_bits, col_bits;
  uint32_t rcd_ps, rp_ps, ras_ps, rc_ps, rrd_ps, rfc_ps, wr_ps;
  uint32_t wr_cycles;        /* tWR is no less than so many cycles */
  uint32_t refresh_ps;       /* a refresh is due every so often: 64 ms / 8192 */
  uint32_t power_up_us;      /* NOPs at the start */
  uint32_t power_up_refresh; /* refreshes before the mode register */
};

/* What the controller drives. */
struct ct_sdram_pins {
  bool cke, cs_n, ras_n, cas_n, we_n, dq_oe;
  uint8_t ba, dqm;
  uint16_t a, dq;
};

typedef struct ct_sdram_chip ct_sdram_chip;

/* What ct_sdram keeps by default: the slowest of MT48LC16M16A2, W9825G6KH and IS42S16160 in grades
 * for 133 MHz, and AS4C16M16SA-6: 32 MB. (AS4C16M16SA-7 asks for 21 ns of tRCD and tRP.) */
struct ct_sdram_chip_config ct_sdram_chip_default(uint32_t clock_ps);

/* NULL if there is no memory for it. The contents start as zeros. */
ct_sdram_chip *ct_sdram_chip_new(const struct ct_sdram_chip_config *config);
/* Accepts NULL. */
void ct_sdram_chip_free(ct_sdram_chip *chip);

/* One edge, see above. */
uint16_t ct_sdram_chip_cycle(ct_sdram_chip *chip, const struct ct_sdram_pins *pins);

/* The first rule that was broken, as a sentence, or NULL. Valid as long as the chip. */
const char *ct_sdram_chip_fault(const ct_sdram_chip *chip);

/* Commands so far: refreshes behind power-up, rows opened, reads and writes of eight words. */
struct ct_sdram_counts {
  uint64_t refreshes, rows, reads, writes;
};
struct ct_sdram_counts ct_sdram_chip_counts(const ct_sdram_chip *chip);

/* The bytes, in the order row, bank, column. */
uint8_t *ct_sdram_chip_data(ct_sdram_chip *chip);

#endif
