/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A device of its own: mmio_core SOCKET SIM.SO ARGUMENTS runs the simulated core that the plug-in
 * gives for these arguments, and serves accesses to it at the socket (mmio_wire.h). Between
 * requests it runs by itself, as hardware would; with nothing to do it sleeps.
 *
 * It holds the accesses to the rules of a device on a bus: registers by aligned 32-bit accesses,
 * memory by naturally aligned ones, and what was written to memory has been read back at its end
 * before any register is written. What breaks one is counted.
 */
#include <dlfcn.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "coltrain_spec.h"
#include "ct_transport.h"
#include "mmio_wire.h"

enum { CLIENTS = 16, SLICE_CYCLES = 40, IDLE_MS = 2, CONTEXTS = 2 };

struct core {
  const struct ct_transport_ops *ops;
  void *self;
  enum wire_mode mode;
  struct pollfd fd[1 + CLIENTS]; /* 0: where they arrive */
  bool irq[1 + CLIENTS];         /* this one is an interrupt's */
  int32_t irqs;
  bool irq_enabled, busy;
  uint32_t tail[CONTEXTS];
  bool unread; /* memory was written and its end not read back */
  uint64_t written, broken;
};

static void stop(const char *why) {
  fprintf(stderr, "mmio_core: %s\n", why);
  exit(1);
}

/* ---- Accesses ------------------------------------------------------------------------------ */

static uint64_t read_reg(struct core *c, const struct wire *w) {
  uint32_t value = 0;
  if (c->ops->reg_read(c->self, (uint32_t)w->addr, &value)) ++c->broken;
  if (c->mode == WIRE_BAD_ID && w->addr == CT_REG_ID) return 0x10ee7024;
  if (c->mode == WIRE_BAD_ABI && w->addr == CT_REG_ABI) return CT_ABI_VERSION + 1;
  return value;
}

static void write_reg(struct core *c, const struct wire *w) {
  if (c->unread) ++c->broken;
  if (c->ops->reg_write(c->self, (uint32_t)w->addr, (uint32_t)w->value)) ++c->broken;
  for (uint32_t q = 0; q < CONTEXTS; ++q)
    if (w->addr == CT_CTX_BASE + q * CT_CTX_STRIDE + CT_CREG_TAIL) c->tail[q] = (uint32_t)w->value;
  if (w->addr == CT_REG_CTRL && w->value & 1) c->tail[0] = c->tail[1] = 0;
  c->busy = true;
}

static void access_memory(struct core *c, struct wire *w) {
  int err;
  if (w->op == WIRE_WRITE_MEM) {
    const uint64_t zero = 0;
    err = c->ops->mem_write(c->self, w->addr, c->mode == WIRE_NO_MEM ? &zero : &w->value, w->size);
    c->unread = true;
    c->written = w->addr;
  } else {
    w->value = 0;
    err = c->ops->mem_read(c->self, w->addr, &w->value, w->size);
    if (w->addr <= c->written && c->written < w->addr + w->size) c->unread = false;
  }
  if (err) ++c->broken;
}

static void serve(struct core *c, struct wire *w) {
  const bool reg = w->op == WIRE_READ_REG || w->op == WIRE_WRITE_REG;
  if (w->op == WIRE_STATS) {
    w->value = w->value ? (uint64_t)c->irqs : c->broken;
  } else if (w->op == WIRE_MODE) {
    c->mode = (enum wire_mode)w->value;
  } else if (c->mode == WIRE_VANISH) {
    w->op = WIRE_MODE;
  } else if (c->mode == WIRE_ONES) {
    w->value = UINT64_MAX;
  } else if (w->addr % w->size || (reg && w->size != 4)) {
    ++c->broken;
  } else if (w->op == WIRE_READ_REG) {
    w->value = read_reg(c, w);
  } else if (reg) {
    write_reg(c, w);
  } else {
    access_memory(c, w);
  }
}

/* ---- Connections --------------------------------------------------------------------------- */

static void hang_up(struct core *c, int i) {
  close(c->fd[i].fd);
  c->fd[i].fd = -1;
  c->irq[i] = false;
}

static void welcome(struct core *c) {
  const int s = accept(c->fd[0].fd, NULL, NULL);
  for (int i = 1; i <= CLIENTS && s >= 0; ++i) {
    if (c->fd[i].fd >= 0) continue;
    c->fd[i].fd = s;
    return;
  }
  if (s >= 0) close(s);
}

static void listen_to(struct core *c, int i) {
  struct wire w;
  int32_t enable;
  const ssize_t n = recv(c->fd[i].fd, &w, sizeof w, 0);
  if (c->irq[i] && n == (ssize_t)sizeof enable) {
    memcpy(&enable, &w, sizeof enable);
    c->irq_enabled = enable != 0;
  } else if (n != (ssize_t)sizeof w) {
    hang_up(c, i);
  } else if (w.op == WIRE_IRQ) {
    c->irq[i] = true;
  } else {
    serve(c, &w);
    if (send(c->fd[i].fd, &w, sizeof w, MSG_NOSIGNAL) != (ssize_t)sizeof w) hang_up(c, i);
  }
}

/* As uio_pdrv_genirq does it: an interrupt is counted and shut off until it is enabled again. */
static void interrupt(struct core *c) {
  uint64_t now = 0;
  c->ops->now(c->self, &now);
  if (c->mode == WIRE_UNBOUND)
    for (int i = 1; i <= CLIENTS; ++i)
      if (c->irq[i]) hang_up(c, i);
  const bool up = c->mode == WIRE_STUCK || c->ops->wait(c->self, now, 0) > 0;
  if (!c->irq_enabled || c->mode == WIRE_NO_IRQ || !up) return;
  c->irq_enabled = false;
  ++c->irqs;
  for (int i = 1; i <= CLIENTS; ++i)
    if (c->irq[i] && send(c->fd[i].fd, &c->irqs, sizeof c->irqs, MSG_NOSIGNAL) < 0) hang_up(c, i);
}

/* ---- The core ------------------------------------------------------------------------------ */

/* Whether any job waits or runs. */
static bool has_jobs(struct core *c) {
  for (uint32_t q = 0; q < CONTEXTS; ++q) {
    const uint32_t at = CT_CTX_BASE + q * CT_CTX_STRIDE;
    uint32_t head = 0, status = 0;
    c->ops->reg_read(c->self, at + CT_CREG_HEAD, &head);
    c->ops->reg_read(c->self, at + CT_CREG_STATUS, &status);
    if (head != c->tail[q] || status & 7) return true;
  }
  return false;
}

/* wait() would stop at the interrupt, and the clock must not. */
static void advance(struct core *c) {
  uint64_t now = 0;
  uint32_t id;
  c->ops->now(c->self, &now);
  if (c->ops->wait(c->self, now + SLICE_CYCLES, -1) > 0)
    for (int i = 0; i < SLICE_CYCLES / 8; ++i)
      c->ops->reg_read(c->self, CT_REG_ID, &id);
  c->busy = has_jobs(c);
}

static void run(struct core *c) {
  for (;;) {
    const int n = poll(c->fd, 1 + CLIENTS, c->busy ? 0 : IDLE_MS);
    if (c->fd[0].revents & POLLIN) welcome(c);
    for (int i = 1; i <= CLIENTS; ++i)
      if (c->fd[i].fd >= 0 && c->fd[i].revents) listen_to(c, i);
    if (n == 0) advance(c);
    interrupt(c);
  }
}

int main(int argc, char **argv) {
  struct sockaddr_un a = {.sun_family = AF_UNIX};
  static struct core core; /* zeros */
  const struct ct_transport_ops *(*plugin)(void) = NULL;
  char why[256] = "cannot load the simulator";
  if (argc != 4 || strlen(argv[1]) >= sizeof a.sun_path) stop("usage: SOCKET SIM.SO ARGUMENTS");
  void *so = dlopen(argv[2], RTLD_NOW | RTLD_LOCAL);
  void *symbol = so ? dlsym(so, "ct_transport_plugin") : NULL;
  memcpy(&plugin, &symbol, sizeof plugin);
  if (!plugin || plugin()->open(argv[3], &core.self, why, sizeof why)) stop(why);
  core.ops = plugin();
  for (int i = 0; i <= CLIENTS; ++i)
    core.fd[i] = (struct pollfd){.fd = -1, .events = POLLIN};
  snprintf(a.sun_path, sizeof a.sun_path, "%s", argv[1]);
  core.fd[0].fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (bind(core.fd[0].fd, (struct sockaddr *)&a, sizeof a) || listen(core.fd[0].fd, CLIENTS))
    stop("cannot listen at the socket");
  run(&core);
}
