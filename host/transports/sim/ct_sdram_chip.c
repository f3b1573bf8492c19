/* SPDX-License-Identifier: Apache-2.0 */
#define _DEFAULT_SOURCE 1 /* ct_memory.h */
#include "ct_sdram_chip.h"

#include <stdio.h>
#include <stdlib.h>

#include "host/transports/ct_memory.h"

enum { kBanks = 4, kBurst = 8, kRing = 32 };

/* RAS, CAS, WE, low when active. */
enum {
  kMode = 0,
  kRefresh = 1,
  kPrecharge = 2,
  kActive = 3,
  kWrite = 4,
  kRead = 5,
  kStop = 6,
  kNop = 7
};

/* Edges at which things last happened; long ago at first. */
struct bank {
  bool open;
  uint32_t row;
  int64_t active, precharge, read, write;
};

struct ct_sdram_chip {
  struct ct_sdram_chip_config config;
  uint8_t *data;
  struct bank bank[kBanks];
  int64_t now, active, refresh, mode, column, driven;
  uint32_t latency; /* 0: the mode register is not set */
  uint32_t refreshes_before;
  bool all_closed; /* the PRECHARGE of power-up */
  int64_t ready;   /* when the mode register was set */
  struct ct_sdram_counts counts;
  /* Words to come out, by edge. */
  bool out[kRing];
  uint16_t word[kRing];
  uint8_t dqm[kRing];
  /* The write under way. */
  uint32_t write_left;
  size_t write_at;
  char fault[96];
};

struct ct_sdram_chip_config ct_sdram_chip_default(uint32_t clock_ps) {
  const struct ct_sdram_chip_config config = {
      .clock_ps = clock_ps,
      .row_bits = 13,
      .col_bits = 9,
      .rcd_ps = 20000,
      .rp_ps = 20000,
      .ras_ps = 45000,
      .rc_ps = 66000,
      .rrd_ps = 15000,
      .rfc_ps = 70000,
      .wr_ps = 15000,
      .wr_cycles = 2,
      .refresh_ps = 7812500,
      .power_up_us = 200,
      .power_up_refresh = 8,
  };
  return config;
}

static size_t bytes_of(const ct_sdram_chip *chip) {
  return (size_t)2 * kBanks << (chip->config.row_bits + chip->config.col_bits);
}

ct_sdram_chip *ct_sdram_chip_new(const struct ct_sdram_chip_config *config) {
  ct_sdram_chip *chip = calloc(1, sizeof *chip);
  if (!chip) return NULL;
  chip->config = *config;
  chip->data = ct_memory_new(bytes_of(chip));
  if (!chip->data) {
    free(chip);
    return NULL;
  }
  const int64_t long_ago = -1000000;
  chip->active = chip->refresh = chip->mode = chip->column = chip->driven = long_ago;
  for (int b = 0; b < kBanks; ++b) {
    const struct bank bank = {
        .active = long_ago, .precharge = long_ago, .read = long_ago, .write = long_ago};
    chip->bank[b] = bank;
  }
  return chip;
}

void ct_sdram_chip_free(ct_sdram_chip *chip) {
  if (!chip) return;
  ct_memory_free(chip->data, bytes_of(chip));
  free(chip);
}

const char *ct_sdram_chip_fault(const ct_sdram_chip *chip) {
  return chip->fault[0] ? chip->fault : NULL;
}

uint8_t *ct_sdram_chip_data(ct_sdram_chip *chip) {
  return chip->data;
}

struct ct_sdram_counts ct_sdram_chip_counts(const ct_sdram_chip *chip) {
  return chip->counts;
}

static void must(ct_sdram_chip *chip, bool kept, const char *rule) {
  if (kept || chip->fault[0]) return;
  (void)snprintf(chip->fault, sizeof chip->fault, "%s (edge %lld)", rule, (long long)chip->now);
}

/* At least so long since then. */
static void since(ct_sdram_chip *chip, int64_t then, uint32_t ps, const char *rule) {
  must(chip, (chip->now - then) * (int64_t)chip->config.clock_ps >= (int64_t)ps, rule);
}

static size_t word_at(const ct_sdram_chip *chip, uint32_t bank, uint32_t column) {
  return ((((size_t)chip->bank[bank].row * kBanks) + bank) << chip->config.col_bits) | column;
}

static void activate(ct_sdram_chip *chip, const struct ct_sdram_pins *pins) {
  struct bank *b = &chip->bank[pins->ba];
  must(chip, chip->latency != 0, "ACTIVE before the mode register is set");
  must(chip, !b->open, "ACTIVE to an open bank");
  since(chip, b->precharge, chip->config.rp_ps, "tRP: ACTIVE too soon after PRECHARGE");
  since(chip, b->active, chip->config.rc_ps, "tRC: ACTIVE too soon after ACTIVE of the bank");
  since(chip, chip->active, chip->config.rrd_ps, "tRRD: ACTIVE too soon after ACTIVE");
  since(chip, chip->refresh, chip->config.rfc_ps, "tRFC: ACTIVE too soon after REFRESH");
  must(chip, chip->now - chip->mode >= 2, "tMRD: ACTIVE too soon after the mode register");
  must(chip, pins->a >> chip->config.row_bits == 0, "a row that is not there");
  b->open = true;
  ++chip->counts.rows;
  b->row = pins->a;
  b->active = chip->active = chip->now;
}

static void column(ct_sdram_chip *chip, const struct ct_sdram_pins *pins, bool write) {
  struct bank *b = &chip->bank[pins->ba];
  must(chip, b->open, "READ or WRITE to a closed bank");
  must(chip, !(pins->a >> 10 & 1), "READ or WRITE with auto-precharge");
  since(chip, b->active, chip->config.rcd_ps, "tRCD: READ or WRITE too soon after ACTIVE");
  must(chip, chip->now - chip->column >= kBurst, "a burst is cut short by READ or WRITE");
  chip->column = chip->now;
  const uint32_t first = pins->a & ((1u << chip->config.col_bits) - 1u);
  ++*(write ? &chip->counts.writes : &chip->counts.reads);
  if (write) {
    b->write = chip->now;
    chip->write_left = kBurst;
    chip->write_at = word_at(chip, pins->ba, first & ~7u);
    must(chip, (first & 7u) == 0, "a WRITE in the middle of eight words");
    return;
  }
  b->read = chip->now;
  for (uint32_t i = 0; i < kBurst; ++i) {
    const size_t at = 2 * word_at(chip, pins->ba, (first & ~7u) | ((first + i) & 7u));
    const int64_t edge = (chip->now + chip->latency + i) % kRing;
    chip->out[edge] = true;
    chip->word[edge] = (uint16_t)(chip->data[at] | chip->data[at + 1] << 8);
  }
}

static void close_bank(ct_sdram_chip *chip, struct bank *b) {
  if (b->open) {
    since(chip, b->active, chip->config.ras_ps, "tRAS: PRECHARGE too soon after ACTIVE");
    must(chip, chip->now - b->read >= kBurst, "a read is cut short by PRECHARGE");
    const int64_t last = b->write + kBurst - 1;
    since(chip, last, chip->config.wr_ps, "tWR: PRECHARGE too soon after written data");
    must(chip, chip->now - last >= chip->config.wr_cycles,
         "tWR: PRECHARGE too few cycles after written data");
  }
  b->open = false;
  b->precharge = chip->now;
}

static void precharge(ct_sdram_chip *chip, const struct ct_sdram_pins *pins) {
  if (pins->a >> 10 & 1) {
    for (int b = 0; b < kBanks; ++b)
      close_bank(chip, &chip->bank[b]);
    chip->all_closed = true;
  } else {
    close_bank(chip, &chip->bank[pins->ba]);
  }
}

static void all_idle(ct_sdram_chip *chip) {
  must(chip, chip->all_closed, "power-up: not all banks were closed first");
  for (int b = 0; b < kBanks; ++b) {
    must(chip, !chip->bank[b].open, "REFRESH or mode register with an open bank");
    since(chip, chip->bank[b].precharge, chip->config.rp_ps,
          "tRP: REFRESH too soon after PRECHARGE");
    since(chip, chip->bank[b].active, chip->config.rc_ps, "tRC: REFRESH too soon after ACTIVE");
  }
  since(chip, chip->refresh, chip->config.rfc_ps, "tRFC: REFRESH too soon after REFRESH");
}

static void refresh(ct_sdram_chip *chip) {
  all_idle(chip);
  chip->refresh = chip->now;
  if (chip->latency)
    ++chip->counts.refreshes;
  else
    ++chip->refreshes_before;
}

static void set_mode(ct_sdram_chip *chip, const struct ct_sdram_pins *pins) {
  all_idle(chip);
  must(chip, chip->refreshes_before >= chip->config.power_up_refresh,
       "power-up: too few refreshes");
  must(chip, (pins->a & 0xF) == 3 && !(pins->a >> 7) && pins->ba == 0,
       "mode register: not sequential bursts of eight");
  const uint32_t latency = pins->a >> 4 & 7;
  must(chip, latency == 2 || latency == 3, "mode register: a CAS latency that is not there");
  chip->latency = latency == 2 ? 2 : 3;
  chip->mode = chip->ready = chip->now;
}

static void command(ct_sdram_chip *chip, const struct ct_sdram_pins *pins) {
  const int code = pins->ras_n << 2 | pins->cas_n << 1 | (int)pins->we_n;
  if (!pins->cke || pins->cs_n || code == kNop) return;
  must(chip,
       chip->now * (int64_t)chip->config.clock_ps >= (int64_t)chip->config.power_up_us * 1000000,
       "a command in power-up");
  switch (code) {
    case kMode:
      set_mode(chip, pins);
      break;
    case kRefresh:
      refresh(chip);
      break;
    case kPrecharge:
      precharge(chip, pins);
      break;
    case kActive:
      activate(chip, pins);
      break;
    case kWrite:
      column(chip, pins, true);
      break;
    case kRead:
      column(chip, pins, false);
      break;
    default:
      must(chip, false, "a command that no controller of ours gives");
      break;
  }
}

/* One word of the write under way. */
static void take_word(ct_sdram_chip *chip, const struct ct_sdram_pins *pins) {
  must(chip, pins->dq_oe, "nobody drives the data of a write");
  uint8_t *to = chip->data + 2 * chip->write_at;
  if (!(pins->dqm & 1)) to[0] = (uint8_t)pins->dq;
  if (!(pins->dqm & 2)) to[1] = (uint8_t)(pins->dq >> 8);
  ++chip->write_at;
  --chip->write_left;
}

/* What is on the pins: the word of a read, where DQM was low two edges ago; else what nobody should
 * use. */
static uint16_t give_word(ct_sdram_chip *chip) {
  const size_t edge = (size_t)(chip->now % kRing);
  uint16_t dq = 0xA5C3;
  if (chip->out[edge]) {
    const uint8_t masked = chip->dqm[(chip->now + kRing - 2) % kRing];
    const uint16_t mask = (uint16_t)((masked & 1 ? 0xFF : 0) | (masked & 2 ? 0xFF00 : 0));
    dq = (uint16_t)((chip->word[edge] & ~mask) | (dq & mask));
    chip->driven = chip->now;
  }
  return dq;
}

uint16_t ct_sdram_chip_cycle(ct_sdram_chip *chip, const struct ct_sdram_pins *pins) {
  const size_t edge = (size_t)(chip->now % kRing);
  chip->dqm[edge] = pins->dqm;
  const uint16_t dq = give_word(chip);
  command(chip, pins);
  must(chip, !pins->dq_oe || chip->now - chip->driven > 1,
       "the controller drives the data pins with the chip");
  if (chip->write_left != 0) take_word(chip, pins);
  chip->out[edge] = false;
  if (chip->latency) {
    const int64_t due =
        (chip->now - chip->ready) * (int64_t)chip->config.clock_ps / chip->config.refresh_ps;
    must(chip, due <= (int64_t)chip->counts.refreshes + 2, "refreshes are late");
  }
  ++chip->now;
  return dq;
}
