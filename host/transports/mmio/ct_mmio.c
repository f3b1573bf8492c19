/* SPDX-License-Identifier: Apache-2.0 */
/*
 * "mmio:": a core in this machine's address space (docs/mmio.md); its arguments are in ct_uri.c.
 *
 * Registers are read and written by aligned 32-bit accesses, memory by aligned ones of 8 bytes (and
 * of one at ragged ends). Before a register is written, what was written to memory has arrived: its
 * last word is read back, which on PCI and behind bridges pushes all of it through, between two
 * barriers. After a register was read, memory is read no earlier.
 *
 * Waiting is looking at IRQ_STATUS: after the interrupt if there is one, else after pauses that
 * double from MIN_PAUSE to MAX_PAUSE and begin anew with each register write. An interrupt that
 * does not come (a line that is not connected) costs a SLICE a few times, then it is no longer
 * waited for; one that always comes (a line that is stuck) is given up, too.
 *
 * A device that is gone reads all ones, or its mapping raises SIGBUS (ct_mmio_guard.h), or its
 * driver is unbound. From then on every call is CT_ERR_DEVICE at once.
 */
#define _GNU_SOURCE 1 /* ppoll */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "coltrain_spec.h"
#include "ct_mmio_file.h"
#include "ct_mmio_guard.h"
#include "ct_mmio_io.h"
#include "ct_transport.h"
#include "coltrain/coltrain.h" /* the errors transports return */
#include "host/transports/ct_uri.h"

enum {
  REG_BYTES = 4096, /* what the core decodes */
  MIN_PAUSE = 20,   /* us between looks */
  MAX_PAUSE = 1000, /* us */
  SLICE = 50000,    /* us that the interrupt is trusted for */
  DEAF = 3,         /* interrupts in a row that did not come */
  FALSE_ALARMS = 8, /* that came in a row for nothing */
  MIB = 1 << 20
};

struct mmio {
  struct ct_mmio_file file, mem_file; /* mem_file.fd -1: one file has both */
  struct ct_mmio_area regs, mem;
  struct ct_guard guard;
  bool guarded;
  uint64_t mem_bytes;
  uint32_t clock_hz, given_hz; /* by clock= */
  bool has_clock;
  int irq_config;  /* a PCI function's configuration, where it is enabled again; -1: not there */
  int irq;         /* descriptor of the UIO device, -1: none */
  bool irq_enable; /* it has to be enabled again after each */
  unsigned missed, false_alarms; /* interrupts in a row that did not come, or for nothing */
  bool up, overdue; /* since it was armed: IRQ_STATUS was up; a SLICE passed without it */
  int watch;        /* epoll of timer and irq, -1: not asked for */
  int timer;
  bool sliced;                  /* the timer runs for a SLICE */
  uint64_t pause;               /* us: the next one */
  const volatile void *written; /* memory that the device may not have yet, NULL: none */
  char error[CT_MMIO_PATH + 200];
};

static int64_t now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static struct timespec timespec_of_us(int64_t us) {
  return (struct timespec){.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};
}

/* ---- Registers and memory ------------------------------------------------------------------ */

/* Keeps why the device is gone; for good. */
static int gone(struct mmio *m, const char *how) {
  m->guard.gone = 1;
  if (!m->error[0])
    snprintf(m->error, sizeof m->error,
             "%s: %s; close it, and open it again when the device is back", m->file.path, how);
  return CT_ERR_DEVICE;
}

static int end_access(struct mmio *m) {
  return ct_guard_end(&m->guard) ? CT_OK : gone(m, "the device was taken away");
}

static bool is_register(uint32_t offset) {
  return offset % 4 == 0 && offset < REG_BYTES;
}

/* All ones may be a register's value, but never ID's. */
static int mmio_reg_read(void *self, uint32_t offset, uint32_t *value) {
  struct mmio *m = self;
  if (!is_register(offset)) return CT_ERR_ARG;
  if (m->guard.gone) return CT_ERR_DEVICE;
  ct_guard_begin(&m->guard);
  *value = ct_io_read32(m->regs.data + offset);
  const bool ones = *value == UINT32_MAX && ct_io_read32(m->regs.data + CT_REG_ID) == UINT32_MAX;
  ct_io_barrier();
  const int err = end_access(m);
  if (!err && ones)
    return gone(m, "its registers read all ones: the device is gone, unpowered or disabled");
  if (offset == CT_REG_IRQ_STATUS && *value) m->up = true;
  if (offset == CT_REG_CLOCK_HZ && *value == 0) *value = m->given_hz;
  if (offset == CT_REG_DRAM_BYTES && m->mem_bytes) *value = (uint32_t)(m->mem_bytes / MIB);
  return err;
}

/* What was written to memory arrives before what is done next. */
static void publish(struct mmio *m) {
  ct_io_barrier();
  if (!m->written) return;
  (void)ct_io_read64(m->written);
  ct_io_barrier();
  m->written = NULL;
}

static int mmio_reg_write(void *self, uint32_t offset, uint32_t value) {
  struct mmio *m = self;
  if (!is_register(offset)) return CT_ERR_ARG;
  if (m->guard.gone) return CT_ERR_DEVICE;
  ct_guard_begin(&m->guard);
  publish(m);
  ct_io_write32(m->regs.data + offset, value);
  m->pause = MIN_PAUSE;
  return end_access(m);
}

static bool in_memory(const struct mmio *m, uint64_t addr, size_t size) {
  return addr <= m->mem_bytes && size <= m->mem_bytes - addr;
}

static int mmio_mem_write(void *self, uint64_t addr, const void *buf, size_t size) {
  struct mmio *m = self;
  if (!in_memory(m, addr, size)) return CT_ERR_ARG;
  if (m->guard.gone) return CT_ERR_DEVICE;
  if (!size) return CT_OK;
  ct_guard_begin(&m->guard);
  ct_io_copy_to(m->mem.data + addr, buf, size);
  m->written = m->mem.data + (addr + size - 1) / 8 * 8;
  return end_access(m);
}

/* Data that end in ones may be what a bus answers for a device that is gone. */
static int mmio_mem_read(void *self, uint64_t addr, void *buf, size_t size) {
  struct mmio *m = self;
  uint32_t id;
  if (!in_memory(m, addr, size)) return CT_ERR_ARG;
  if (m->guard.gone) return CT_ERR_DEVICE;
  if (!size) return CT_OK;
  ct_guard_begin(&m->guard);
  ct_io_copy_from(buf, m->mem.data + addr, size);
  const int err = end_access(m);
  if (err || ((const uint8_t *)buf)[size - 1] != 0xff) return err;
  return mmio_reg_read(m, CT_REG_ID, &id);
}

/* Reading the low half latches the high one. */
static int mmio_now(void *self, uint64_t *cycle) {
  struct mmio *m = self;
  uint32_t low = 0, high = 0;
  *cycle = CT_NO_CYCLE;
  if (!m->has_clock) return CT_OK;
  int err = mmio_reg_read(m, CT_REG_CYCLE_LO, &low);
  if (!err) err = mmio_reg_read(m, CT_REG_CYCLE_HI, &high);
  if (!err) *cycle = (uint64_t)high << 32 | low;
  return err;
}

/* ---- Waiting ------------------------------------------------------------------------------- */

static bool has_irq(const struct mmio *m) {
  return m->irq >= 0 && m->missed < DEAF;
}

/* It comes without a reason again and again: another device's, or a line that is stuck. */
static void drop_irq(struct mmio *m) {
  if (m->watch >= 0) epoll_ctl(m->watch, EPOLL_CTL_DEL, m->irq, NULL);
  close(m->irq);
  m->irq = -1;
}

/* Forgets interrupts that came and lets the next one come. UIO counts them; each read takes all. */
static int arm(struct mmio *m) {
  int32_t count;
  bool came = false;
  const int32_t enable = 1;
  ssize_t n;
  if (m->irq < 0) return CT_OK;
  if (m->overdue && m->up) ++m->missed;
  while ((n = read(m->irq, &count, sizeof count)) == (ssize_t)sizeof count)
    came = true;
  if (came) {
    m->missed = 0;
    m->false_alarms = m->up ? 0 : m->false_alarms + 1;
  }
  m->up = m->overdue = false;
  if (n == 0 || (errno != EAGAIN && errno != EINTR))
    return gone(m, "its driver is unbound and no interrupts come");
  if (m->false_alarms >= FALSE_ALARMS) {
    drop_irq(m);
    return CT_OK;
  }
  if (m->irq_enable && write(m->irq, &enable, sizeof enable) != (ssize_t)sizeof enable)
    return gone(m, "its driver is unbound and the interrupt cannot be enabled");
  if (m->irq_config >= 0 && !ct_mmio_irq_unmask(m->irq_config))
    return gone(m, "it was removed and the interrupt cannot be enabled");
  return CT_OK;
}

/* us until the device's clock shows a cycle, by what it says of its speed. */
static int until_cycle(struct mmio *m, uint64_t until, int64_t *us) {
  uint64_t cycle;
  const int err = mmio_now(m, &cycle);
  *us = 0; /* without a clock it shows any cycle */
  if (err || cycle >= until) return err;
  const uint64_t hz = m->clock_hz ? m->clock_hz : 1000000000, n = until - cycle;
  *us = n / hz < 1000000000 ? (int64_t)(n / hz * 1000000 + n % hz * 1000000 / hz + MIN_PAUSE)
                            : INT64_MAX;
  return CT_OK;
}

/* When nothing has come for a while: whether the device is still the system's. */
static int check_system(struct mmio *m) {
  if (ct_mmio_file_is_there(&m->file)) return CT_OK;
  return gone(m, "it is no longer in /sys: its driver was unbound, or the device removed");
}

/* Sleeps for the interrupt or a pause, at most so long. */
static int sleep_for(struct mmio *m, int64_t left) {
  const bool irq = has_irq(m);
  int64_t us = irq ? SLICE : (int64_t)m->pause;
  const bool whole = us <= left;
  if (!whole) us = left;
  const struct timespec t = timespec_of_us(us);
  struct pollfd p = {.fd = m->irq, .events = POLLIN};
  const int n = ppoll(&p, irq, &t, NULL);
  if (!irq && m->pause < MAX_PAUSE) m->pause *= 2;
  if (irq && n > 0 && !(p.revents & POLLIN)) return gone(m, "its driver is unbound");
  if (n == 0 && irq && whole) m->overdue = true;
  return n == 0 ? check_system(m) : CT_OK;
}

/* Looks, and only then sleeps; between the two the interrupt is armed and looked at once more. */
static int mmio_wait(void *self, uint64_t until, int timeout_ms) {
  struct mmio *m = self;
  const int64_t end = timeout_ms < 0 ? INT64_MAX : now_us() + (int64_t)timeout_ms * 1000;
  uint32_t status = 0;
  for (bool armed = !has_irq(m);; armed = !armed || !has_irq(m)) {
    int64_t left = INT64_MAX, clock = INT64_MAX;
    int err = mmio_reg_read(m, CT_REG_IRQ_STATUS, &status);
    if (err || status) return err ? err : 1;
    if (timeout_ms >= 0) left = end - now_us();
    if (until != CT_NO_CYCLE) err = until_cycle(m, until, &clock);
    if (clock < left) left = clock;
    if (err || left <= 0) return err;
    err = armed ? sleep_for(m, left) : arm(m);
    if (err) return err;
  }
}

static int open_watch(struct mmio *m) {
  struct epoll_event event = {.events = EPOLLIN};
  m->watch = epoll_create1(EPOLL_CLOEXEC);
  m->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
  if (m->watch >= 0 && m->timer >= 0 && !epoll_ctl(m->watch, EPOLL_CTL_ADD, m->timer, &event) &&
      (m->irq < 0 || !epoll_ctl(m->watch, EPOLL_CTL_ADD, m->irq, &event)))
    return CT_OK;
  return CT_ERR_MEMORY;
}

/* The timer stands in for the interrupt, and makes sure of one. What has come already, or an error,
 * is seen at once. */
static int mmio_irq_fd(void *self) {
  struct mmio *m = self;
  uint32_t status = 0;
  uint64_t ticks;
  if (m->watch < 0 && open_watch(m)) return CT_ERR_MEMORY;
  const bool due = read(m->timer, &ticks, sizeof ticks) == (ssize_t)sizeof ticks;
  m->overdue |= due && m->sliced;
  if (due) check_system(m); /* the next look fails then */
  int64_t us = has_irq(m) ? SLICE : (int64_t)m->pause;
  if (!has_irq(m) && m->pause < MAX_PAUSE) m->pause *= 2;
  if (arm(m) || mmio_reg_read(m, CT_REG_IRQ_STATUS, &status) || status) us = 1;
  m->sliced = us == SLICE;
  const struct itimerspec t = {.it_value = timespec_of_us(us)};
  return timerfd_settime(m->timer, 0, &t, NULL) ? CT_ERR_MEMORY : m->watch;
}

/* ---- Opening ------------------------------------------------------------------------------- */

struct options {
  char file[CT_MMIO_PATH], mem[CT_MMIO_PATH], irq[CT_MMIO_PATH];
  uint64_t regs, mem_at, mem_size;
  uint32_t clock_hz;
};

static bool parse(const char *args, struct options *o, char *why, size_t why_size) {
  struct ct_uri u;
  if (!ct_uri_parse(&u, "mmio", args, why, why_size)) return false;
  if (u.file_length == 0 || u.file_length >= sizeof o->file) {
    snprintf(why, why_size,
             "name the file of the registers first: mmio:/dev/uio0, "
             "mmio:/sys/bus/pci/devices/.../resource0,mem=FILE or "
             "mmio:/dev/mem,regs=OFFSET,mem-at=OFFSET,mem-size=BYTES");
    return false;
  }
  *o = (struct options){.regs = ct_uri_number(&u, "regs"),
                        .mem_at = ct_uri_number(&u, "mem-at"),
                        .mem_size = ct_uri_number(&u, "mem-size"),
                        .clock_hz = (uint32_t)ct_uri_number(&u, "clock")};
  memcpy(o->file, u.file, u.file_length);
  ct_uri_text(&u, "mem", o->mem, sizeof o->mem);
  ct_uri_text(&u, "irq", o->irq, sizeof o->irq);
  if (o->regs % 4 == 0 && (o->mem_at % 16 == 0 || o->mem_at == UINT64_MAX)) return true;
  snprintf(why, why_size, "regs= must be a multiple of 4 and mem-at= one of 16");
  return false;
}

/* Whether these are a core's registers that this library knows; nothing is written. */
static int check_core(struct mmio *m, char *why, size_t why_size) {
  static const char alive[] =
      "is the core programmed, clocked and out of reset, and on PCI its memory space on (echo 1 > "
      ".../enable)?";
  uint32_t id = 0, abi = 0;
  int err = mmio_reg_read(m, CT_REG_ID, &id);
  if (!err) err = mmio_reg_read(m, CT_REG_ABI, &abi);
  if (err) {
    snprintf(why, why_size, "%s: the registers %s: %s", m->file.path,
             id == UINT32_MAX ? "read all ones" : "vanish", alive);
    return err;
  }
  if (id != CT_ID_VALUE) {
    snprintf(why, why_size,
             "%s is not a Coltrain core: at the offset 0x%" PRIx64 " ID reads 0x%08" PRIx32
             " instead of 0x%08x; %s",
             m->file.path, m->regs.offset + m->regs.skip, id, CT_ID_VALUE,
             id ? "regs= says where the registers begin" : alive);
    return CT_ERR_DEVICE;
  }
  if (abi == CT_ABI_VERSION) return CT_OK;
  snprintf(why, why_size,
           "%s: the core has interface version %" PRIu32
           ", this library %d: the CHANGELOG says "
           "which go together",
           m->file.path, abi, CT_ABI_VERSION);
  return CT_ERR_ABI;
}

static int open_registers(struct mmio *m, const struct options *o, char *why, size_t why_size) {
  int err = ct_mmio_file_open(&m->file, o->file, why, why_size);
  if (!err) err = ct_mmio_area(&m->file, 0, o->regs, &m->regs, why, why_size);
  if (!err) err = ct_mmio_lock(&m->file, &m->regs, REG_BYTES, why, why_size);
  if (!err) err = ct_mmio_map(&m->file, &m->regs, REG_BYTES, why, why_size);
  if (err) return err;
  m->guard.area[0].at = m->regs.at;
  m->guard.area[0].length = m->regs.length;
  return check_core(m, why, why_size);
}

/* The file that has the memory, and where in it. */
static int find_memory(struct mmio *m, const struct options *o, char *why, size_t why_size) {
  const bool at = o->mem_at != UINT64_MAX;
  if (o->mem[0]) {
    const int err = ct_mmio_file_open(&m->mem_file, o->mem, why, why_size);
    return err ? err : ct_mmio_area(&m->mem_file, 0, at ? o->mem_at : 0, &m->mem, why, why_size);
  }
  if (m->file.uio[0]) return ct_mmio_area(&m->file, 1, at ? o->mem_at : 0, &m->mem, why, why_size);
  if (at) return ct_mmio_area(&m->file, 0, o->mem_at, &m->mem, why, why_size);
  snprintf(why, why_size,
           "%s: where is the core's memory? Name its file with mem= (on PCI another resource), or "
           "with mem-at= its offset in this one",
           m->file.path);
  return CT_ERR_ARG;
}

/* How much of it is used: what the core says, or what mem-size= does if that is less. */
static int choose_size(struct mmio *m, const struct options *o, const char *path, char *why,
                       size_t why_size) {
  uint32_t mib = 0;
  int err = mmio_reg_read(m, CT_REG_DRAM_BYTES, &mib);
  const uint64_t has = (uint64_t)mib * MIB;
  if (!err && m->mem.size == UINT64_MAX && !o->mem_size) {
    snprintf(why, why_size,
             "%s does not say how large it is: give mem-size=, the bytes that belong to the core "
             "(it says %" PRIu64 ")",
             path, has);
    return CT_ERR_ARG;
  }
  if (!err && !has) {
    snprintf(why, why_size, "%s: the core says that it has no memory", m->file.path);
    return CT_ERR_DEVICE;
  }
  m->mem_bytes = o->mem_size && o->mem_size < has ? o->mem_size / MIB * MIB : has;
  if (err || m->mem_bytes <= m->mem.size) return err;
  snprintf(why, why_size,
           "%s has %" PRIu64 " bytes for the core's memory and the core says it has %" PRIu64
           ": map all of it, or use less with mem-size=",
           path, m->mem.size, has);
  return CT_ERR_DEVICE;
}

/* Both ends keep what is written to them: catches a wrong offset, memory that is smaller than said,
 * and memory that is only readable. The words are restored. */
static int check_memory(struct mmio *m, const char *path, char *why, size_t why_size) {
  enum { WORD = 8 };
  static const uint8_t pattern[2][WORD] = {"\x01\x23\x45\x67\x89\xab\xcd", "core end"};
  const uint64_t at[2] = {0, m->mem_bytes - WORD};
  uint8_t kept[2][WORD] = {{0}}, got[2][WORD] = {{0}};
  int err = CT_OK;
  for (int i = 0; i < 2 && !err; ++i)
    err = mmio_mem_read(m, at[i], kept[i], WORD);
  for (int i = 0; i < 2 && !err; ++i)
    err = mmio_mem_write(m, at[i], pattern[i], WORD);
  for (int i = 0; i < 2 && !err; ++i)
    err = mmio_mem_read(m, at[i], got[i], WORD);
  for (int i = 0; i < 2 && !err; ++i)
    err = mmio_mem_write(m, at[i], kept[i], WORD);
  if (err) snprintf(why, why_size, "%s", m->error);
  for (int i = 0; i < 2 && !err; ++i) {
    if (!memcmp(got[i], pattern[i], WORD)) continue;
    snprintf(why, why_size,
             "%s: byte 0x%" PRIx64
             " of the core's memory does not keep what is written to it: are "
             "mem=, mem-at= and mem-size= right?",
             path, at[i]);
    err = CT_ERR_DEVICE;
  }
  return err;
}

static int open_memory(struct mmio *m, const struct options *o, char *why, size_t why_size) {
  int err = find_memory(m, o, why, why_size);
  const struct ct_mmio_file *file = o->mem[0] ? &m->mem_file : &m->file;
  if (!err) err = choose_size(m, o, file->path, why, why_size);
  if (!err) err = ct_mmio_map(file, &m->mem, m->mem_bytes, why, why_size);
  if (err) return err;
  m->guard.area[1].at = m->mem.at;
  m->guard.area[1].length = m->mem.length;
  return check_memory(m, file->path, why, why_size);
}

/* irq=, else the UIO device of the registers, else none. */
static int open_interrupt(struct mmio *m, const struct options *o, char *why, size_t why_size) {
  if (strcmp(o->irq, "off") == 0 || (!o->irq[0] && !m->file.uio[0])) return CT_OK;
  return ct_mmio_irq_open(o->irq[0] ? o->irq : m->file.path, &m->irq, &m->irq_enable,
                          &m->irq_config, why, why_size);
}

/* A clock that stands still is none. clock= is for a core that cannot tell, and for no other. */
static int find_clock(struct mmio *m, char *why, size_t why_size) {
  uint64_t cycle[2] = {0, 0};
  int err = mmio_reg_read(m, CT_REG_CLOCK_HZ, &m->clock_hz);
  if (!err && !ct_uri_clock(m->given_hz, m->clock_hz, why, why_size)) err = CT_ERR_ARG;
  m->has_clock = true;
  for (int i = 0; i < 2 && !err; ++i)
    err = mmio_now(m, &cycle[i]);
  m->has_clock = cycle[0] != cycle[1];
  return err;
}

static void release(struct mmio *m) {
  ct_mmio_unmap(&m->regs);
  ct_mmio_unmap(&m->mem);
  ct_mmio_file_close(&m->file);
  ct_mmio_file_close(&m->mem_file);
  if (m->irq >= 0) close(m->irq);
  if (m->irq_config >= 0) close(m->irq_config);
  if (m->timer >= 0) close(m->timer);
  if (m->watch >= 0) close(m->watch);
  if (m->guarded) ct_guard_close();
  free(m);
}

static int mmio_open(const char *args, void **self, char *why, size_t why_size) {
  struct options o;
  if (!parse(args, &o, why, why_size)) return CT_ERR_ARG;
  struct mmio *m = calloc(1, sizeof *m);
  if (!m) {
    snprintf(why, why_size, "the host has no memory left");
    return CT_ERR_MEMORY;
  }
  m->file.fd = m->mem_file.fd = m->irq = m->irq_config = m->watch = m->timer = -1;
  m->pause = MIN_PAUSE;
  m->given_hz = o.clock_hz;
  m->guarded = ct_guard_open(&m->guard);
  int err = open_registers(m, &o, why, why_size);
  if (!err) err = open_memory(m, &o, why, why_size);
  if (!err) err = open_interrupt(m, &o, why, why_size);
  if (!err) err = find_clock(m, why, why_size);
  if (err)
    release(m);
  else
    *self = m;
  return err;
}

/* The library has reset both contexts; nobody is left who would want to hear of their ends. */
static void mmio_close(void *self) {
  if (!self) return;
  mmio_reg_write(self, CT_REG_IRQ_ENABLE, 0);
  release(self);
}

static const char *mmio_error(void *self) {
  return ((struct mmio *)self)->error;
}

const struct ct_transport_ops ct_transport_mmio = {
    .abi = CT_TRANSPORT_ABI,
    .scheme = "mmio",
    .open = mmio_open,
    .close = mmio_close,
    .reg_read = mmio_reg_read,
    .reg_write = mmio_reg_write,
    .mem_read = mmio_mem_read,
    .mem_write = mmio_mem_write,
    .wait = mmio_wait,
    .now = mmio_now,
    .irq_fd = mmio_irq_fd,
    .error = mmio_error,
    .list = ct_mmio_list,
};
