/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mmio_pci SOCKET QEMU ARGUMENTS...: runs QEMU with a PCI function in it whose BARs are the device
 * at SOCKET (mmio_core): BAR 0 its registers, 4 KB, BAR 2 its memory, 16 MiB, prefetchable. QEMU
 * has the means for that, a proxy whose device is another process (x-pci-proxy-dev); the messages
 * are those of its include/hw/remote/mpqemu-link.h. No interrupts and no bus mastering. Ends as
 * QEMU ends.
 */
#define _GNU_SOURCE 1
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mmio_wire.h"

enum { REG_BYTES = 4096, MEM_BYTES = 16 << 20, BAR0 = 0x10, BAR2 = 0x18, PREFETCHABLE = 8 };

enum command {
  SYNC_MEMORY,
  ANSWER,
  CONFIG_WRITE,
  CONFIG_READ,
  BAR_WRITE,
  BAR_READ,
  SET_IRQ,
  RESET
};

struct message {
  int command;
  size_t size;
  union {
    uint64_t value;
    struct {
      uint32_t addr, value;
      int len;
    } config;
    struct {
      uint64_t addr, value;
      unsigned size;
      uint8_t memory;
    } bar;
    struct {
      uint64_t addr[8], size[8];
      int64_t offset[8];
    } memory;
  } u;
};

struct function {
  int qemu, core;
  uint8_t config[256], writable[256];
};

static void put32(uint8_t *at, uint32_t value) {
  memcpy(at, &value, sizeof value);
}

static void make_config(struct function *f) {
  put32(f->config, 0x00011209);     /* an id for tests */
  put32(f->config + 8, 0x12000000); /* a processing accelerator */
  put32(f->config + 0x2c, 0x00011209);
  put32(f->config + BAR2, PREFETCHABLE);
  f->writable[4] = 7;
  f->writable[5] = 4;
  f->writable[0x3c] = 255;
  put32(f->writable + BAR0, (uint32_t)-REG_BYTES);
  put32(f->writable + BAR2, (uint32_t)-MEM_BYTES);
}

/* ---- QEMU's side --------------------------------------------------------------------------- */

/* Exactly so many bytes; descriptors that come along (of guest memory) are not wanted. */
static bool receive(int from, void *to, size_t size) {
  char fds[CMSG_SPACE(8 * sizeof(int))];
  struct iovec io = {.iov_base = to, .iov_len = size};
  struct msghdr m = {
      .msg_iov = &io, .msg_iovlen = 1, .msg_control = fds, .msg_controllen = sizeof fds};
  while (io.iov_len) {
    const ssize_t n = recvmsg(from, &m, MSG_CMSG_CLOEXEC);
    if (n <= 0) return false;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c))
      for (size_t i = 0; c->cmsg_type == SCM_RIGHTS && i < (c->cmsg_len - CMSG_LEN(0)) / 4; ++i) {
        int fd;
        memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
        close(fd);
      }
    io.iov_base = (char *)io.iov_base + n;
    io.iov_len -= (size_t)n;
    m.msg_controllen = sizeof fds;
  }
  return true;
}

static bool answer(const struct function *f, uint64_t value) {
  struct message m;
  memset(&m, 0, sizeof m);
  m.command = ANSWER;
  m.size = sizeof m.u.value;
  m.u.value = value;
  const size_t size = offsetof(struct message, u) + m.size;
  return send(f->qemu, &m, size, MSG_NOSIGNAL) == (ssize_t)size;
}

/* ---- The device ---------------------------------------------------------------------------- */

static uint32_t base_of(const struct function *f, int bar) {
  uint32_t base;
  memcpy(&base, f->config + bar, sizeof base);
  return base & ~15U;
}

/* Addresses are the guest's. */
static uint64_t access_bar(const struct function *f, const struct message *m) {
  const uint64_t addr = m->u.bar.addr, mem = base_of(f, BAR2), regs = base_of(f, BAR0);
  const bool in_mem = addr - mem < MEM_BYTES;
  struct wire w = {.op = (in_mem ? WIRE_READ_MEM : WIRE_READ_REG) + (m->command == BAR_WRITE),
                   .size = m->u.bar.size,
                   .addr = addr - (in_mem ? mem : regs),
                   .value = m->u.bar.value};
  if (!in_mem && addr - regs >= REG_BYTES) return UINT64_MAX;
  if (send(f->core, &w, sizeof w, MSG_NOSIGNAL) != sizeof w ||
      recv(f->core, &w, sizeof w, 0) != sizeof w)
    return UINT64_MAX;
  return w.value;
}

static uint64_t access_config(struct function *f, const struct message *m) {
  uint32_t value = 0;
  for (int i = 0; i < m->u.config.len && i < 4; ++i) {
    const uint32_t at = (m->u.config.addr + (uint32_t)i) & 255;
    const uint8_t byte = (uint8_t)(m->u.config.value >> 8 * i), mask = f->writable[at];
    if (m->command == CONFIG_WRITE)
      f->config[at] = (uint8_t)((f->config[at] & ~mask) | (byte & mask));
    value |= (uint32_t)f->config[at] << 8 * i;
  }
  return m->command == CONFIG_WRITE ? 0 : value;
}

static bool serve(struct function *f) {
  struct message m;
  memset(&m, 0, sizeof m);
  if (!receive(f->qemu, &m, offsetof(struct message, u)) || m.size > sizeof m.u ||
      (m.size && !receive(f->qemu, &m.u, m.size)))
    return false;
  switch (m.command) {
    case CONFIG_READ:
    case CONFIG_WRITE:
      return answer(f, access_config(f, &m));
    case BAR_READ:
    case BAR_WRITE:
      return answer(f, access_bar(f, &m));
    case RESET:
      return answer(f, 0);
    default: /* guest memory, an interrupt: not needed, not answered */
      return true;
  }
}

static int dial(const char *path) {
  struct sockaddr_un a = {.sun_family = AF_UNIX};
  snprintf(a.sun_path, sizeof a.sun_path, "%s", path);
  const int s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  return s >= 0 && !connect(s, (struct sockaddr *)&a, sizeof a) ? s : -1;
}

static void become_qemu(int fd, int argc, char **argv) {
  char device[64];
  char **args = calloc((size_t)argc + 3, sizeof *args);
  snprintf(device, sizeof device, "x-pci-proxy-dev,id=core,fd=%d,addr=05.0", fd);
  if (!args) _exit(127);
  memcpy(args, argv, (size_t)argc * sizeof *args);
  args[argc] = (char *)"-device";
  args[argc + 1] = device;
  execvp(args[0], args);
  _exit(127);
}

int main(int argc, char **argv) {
  static struct function f; /* zeros */
  int pair[2], status = 0;
  if (argc < 3) return 2;
  make_config(&f);
  f.core = dial(argv[1]);
  if (f.core < 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, pair)) {
    fprintf(stderr, "mmio_pci: no device at %s\n", argv[1]);
    return 1;
  }
  const pid_t pid = fork();
  if (pid == 0) {
    close(pair[0]);
    become_qemu(pair[1], argc - 2, argv + 2);
  }
  close(pair[1]);
  f.qemu = pair[0];
  while (serve(&f)) {
  }
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
